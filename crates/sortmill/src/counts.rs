//! Lines on their way into partitions, counted: one that memory keeps goes there once with how often it came, rather than
//! as often as it comes.
//!
//! A map function makes pairs of lines, and [`Runs`](crate::yields::Runs) are counted of those: the key is a line without
//! its end, the value how often it came in as few bytes as that takes, the least one first, and nothing for once. Each worker has a table of its own. When that is full it goes on
//! counting the lines it has, and others pass it; when few of those that come are in it, it is handed on, piece by piece,
//! and begins anew, or stands aside for a while if it was no use.
//!
//! Combining in the mapper: Dean and Ghemawat, "MapReduce" (OSDI 2004), section 4.3.

use sortmill_io::sync::Arc;
use sortmill_io::{ALIGN_BYTES, Buffer, Pool};
use xxhash_rust::xxh3::xxh3_64;

use crate::batch::Records;
use crate::job::{Job, MapFn};
use crate::stage::kernel::prefetch;

/// After so many records it is judged what the table is worth.
const JUDGED_COUNT: u64 = 1 << 16;
/// A full table is handed on if fewer than one in so many records is in it.
const KEPT_ONE_IN: u64 = 4;
/// One that saved less than it holds stands aside for as many times the records that showed that.
const ASIDE: u64 = 16;
/// So many lines, or bytes of them, wait until their places in the table are in the cache.
const WAITING_COUNT: usize = 32;
const WAITING_BYTES: usize = 2048;
/// Longer lines pass by.
const LINE_BYTES_MAX: usize = 1024;
/// In front of a line: its length, and above that how often it came.
const HEAD_BYTES: usize = 8;
const LENGTH_BITS: u32 = 16;
/// Entries begin at multiples of it, so that a slot tells of 32 GiB of them.
const UNIT_BYTES: usize = 8;
const SLOT_BYTES: usize = 8;

/// Has the lines of `job`, of which runs are asked for and whole lines decide, counted on their way into partitions.
pub fn count_early(job: &mut Job) {
    let delimiter = job
        .line_order
        .as_ref()
        .map_or(b'\n', |order| order.delimiter);
    job.map = Some(counting(delimiter));
    job.map_makes_pairs = true;
    job.map_keeps_state = true;
    job.map_ends_in_pieces = true;
}

/// The map function: lines that end in `delimiter` become pairs.
fn counting(delimiter: u8) -> MapFn {
    Arc::new(move |state_bytes| {
        let mut counts = Counts::new(usize::try_from(state_bytes).unwrap_or(usize::MAX));
        Box::new(move |line, made| match line {
            Some(line) => counts.add(line.strip_suffix(&[delimiter]).unwrap_or(line), made),
            None => counts.hand_on(made),
        })
    })
}

/// What one worker counts.
struct Counts {
    bytes: usize,
    /// Mapped when it is known how long lines are; nothing, where memory is too little for any.
    table: Option<Table>,
    waiting: Waiting,
    /// Since the table was empty: lines that were looked for, and those that were found.
    looked: u64,
    found: u64,
    /// As much of that as was judged.
    judged: (u64, u64),
    is_full: bool,
    /// Up to where entries have been handed on, while they are.
    handed_on: Option<usize>,
    /// Lines that are still to pass by.
    aside: u64,
}

/// Lines that are looked for together, so that their ways from memory overlap.
#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// Of each its hash, and where it ends.
    lines: Vec<(u64, usize)>,
}

/// Lines and how often they came.
struct Table {
    /// The upper half of a hash and, one more, in which unit an entry begins. Some are always empty.
    slots: Buffer,
    slot_count: usize,
    entries: Buffer,
    /// Bytes of entries, and how many those are.
    used: usize,
    count: usize,
}

/// Bytes of an entry.
fn entry_bytes(line_bytes: usize) -> usize {
    (HEAD_BYTES + line_bytes).next_multiple_of(UNIT_BYTES)
}

impl Table {
    /// One of at most `bytes` bytes, of lines of about `line_bytes`.
    fn new(bytes: usize, line_bytes: usize) -> Option<Self> {
        // Three of four slots are taken at most.
        let slot = SLOT_BYTES + SLOT_BYTES / 2;
        let part = |bytes: usize| bytes / ALIGN_BYTES * ALIGN_BYTES;
        let slot_bytes = part(
            (bytes as u128 * slot as u128 / (slot + entry_bytes(line_bytes)) as u128) as usize,
        );
        let map = |bytes: usize| match bytes {
            0 => None,
            _ => Pool::new(1, bytes).ok()?.take(),
        };
        Some(Self {
            slots: map(slot_bytes)?,
            slot_count: slot_bytes / SLOT_BYTES,
            entries: map(part(bytes - slot_bytes))?,
            used: 0,
            count: 0,
        })
    }

    fn number(bytes: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
    }

    /// How often the line of the entry that begins at `at` came, and the line.
    fn entry(&self, at: usize) -> (u64, &[u8]) {
        let head = Self::number(&self.entries, at);
        let length = head as usize & ((1 << LENGTH_BITS) - 1);
        (
            head >> LENGTH_BITS,
            &self.entries[at + HEAD_BYTES..][..length],
        )
    }

    /// The slot that a hash chooses.
    fn slot(&self, hash: u64) -> usize {
        (u64::from(hash as u32) * self.slot_count as u64 >> 32) as usize
    }

    /// Where the entry begins that a slot tells of, if it tells of this hash; `None` if it is empty.
    fn told(&self, slot: usize, hash: u64) -> Option<Option<usize>> {
        match Self::number(&self.slots, slot * SLOT_BYTES) {
            0 => None,
            told if told >> 32 == hash >> 32 => Some(Some((told as u32 as usize - 1) * UNIT_BYTES)),
            _ => Some(None),
        }
    }

    /// Fetches the slot of a hash into the cache.
    fn fetch_slot(&self, hash: u64) {
        prefetch(&self.slots, self.slot(hash) * SLOT_BYTES, SLOT_BYTES);
    }

    /// Fetches the entry that the slot of a hash probably tells of.
    fn fetch_entry(&self, hash: u64) {
        if let Some(Some(at)) = self.told(self.slot(hash), hash) {
            prefetch(&self.entries, at, UNIT_BYTES);
        }
    }

    /// Whether the line of the entry that begins at `at` is this one.
    #[inline]
    fn is_of(&self, at: usize, line: &[u8]) -> bool {
        let head = Self::number(&self.entries, at);
        if head as usize & ((1 << LENGTH_BITS) - 1) != line.len() {
            return false;
        }
        let found = &self.entries[at + HEAD_BYTES..][..line.len()];
        // Most are short, and a call for each takes longer than to look.
        match line.len() {
            8..=16 => {
                let last = line.len() - 8;
                Self::number(found, 0) == Self::number(line, 0)
                    && Self::number(found, last) == Self::number(line, last)
            }
            0..8 => found.iter().zip(line).all(|(one, other)| one == other),
            _ => found == line,
        }
    }

    /// Counts a line. Answers whether it was there; `None` if it is not, and there is no room for it.
    fn add(&mut self, hash: u64, line: &[u8]) -> Option<bool> {
        let mut slot = self.slot(hash);
        while let Some(told) = self.told(slot, hash) {
            if let Some(at) = told
                && self.is_of(at, line)
            {
                let head = Self::number(&self.entries, at) + (1 << LENGTH_BITS);
                self.entries[at..at + HEAD_BYTES].copy_from_slice(&head.to_le_bytes());
                return Some(true);
            }
            slot = if slot + 1 == self.slot_count {
                0
            } else {
                slot + 1
            };
        }
        let (at, end) = (self.used, self.used + entry_bytes(line.len()));
        let has_slots = 4 * (self.count + 1) <= 3 * self.slot_count;
        if end > self.entries.len() || !has_slots || at / UNIT_BYTES >= u32::MAX as usize {
            return None;
        }
        let head = 1 << LENGTH_BITS | line.len() as u64;
        self.entries[at..at + HEAD_BYTES].copy_from_slice(&head.to_le_bytes());
        self.entries[at + HEAD_BYTES..][..line.len()].copy_from_slice(line);
        let told = hash >> 32 << 32 | (at / UNIT_BYTES + 1) as u64;
        self.slots[slot * SLOT_BYTES..][..SLOT_BYTES].copy_from_slice(&told.to_le_bytes());
        self.used = end;
        self.count += 1;
        Some(false)
    }

    fn clear(&mut self) {
        self.slots.fill(0);
        (self.used, self.count) = (0, 0);
    }
}

impl Counts {
    /// An empty table in at most `bytes` bytes.
    fn new(bytes: usize) -> Self {
        Self {
            bytes: bytes.saturating_sub(WAITING_BYTES + LINE_BYTES_MAX),
            table: None,
            waiting: Waiting::default(),
            looked: 0,
            found: 0,
            judged: (0, 0),
            is_full: false,
            handed_on: None,
            aside: 0,
        }
    }

    /// Takes a line without its end.
    fn add(&mut self, line: &[u8], made: &mut Records) {
        if self.aside > 0 {
            self.aside -= 1;
            return pass(line, made);
        }
        if self.handed_on.is_some() {
            // First, as there may be no room for it behind the others.
            pass(line, made);
            return self.hand_on(made);
        }
        if line.len() > LINE_BYTES_MAX || self.bytes == 0 {
            return pass(line, made);
        }
        let hash = xxh3_64(line);
        if let Some(table) = &self.table {
            table.fetch_slot(hash);
        }
        self.waiting.bytes.extend_from_slice(line);
        self.waiting.lines.push((hash, self.waiting.bytes.len()));
        let Waiting { bytes, lines } = &self.waiting;
        if lines.len() == WAITING_COUNT || bytes.len() >= WAITING_BYTES {
            self.count_waiting(made);
        }
    }

    /// Counts the lines that wait.
    fn count_waiting(&mut self, made: &mut Records) {
        let Waiting { bytes, lines } = &mut self.waiting;
        if self.table.is_none() && !lines.is_empty() {
            self.table = Table::new(self.bytes, bytes.len() / lines.len());
            if self.table.is_none() {
                self.bytes = 0;
            }
        }
        if let Some(table) = &self.table {
            lines.iter().for_each(|&(hash, _)| table.fetch_entry(hash));
        }
        let mut from = 0;
        for (hash, end) in lines.drain(..) {
            let line = &bytes[from..end];
            from = end;
            self.looked += 1;
            match self.table.as_mut().and_then(|table| table.add(hash, line)) {
                Some(was_there) => self.found += u64::from(was_there),
                None => {
                    self.is_full = true;
                    pass(line, made);
                }
            }
        }
        bytes.clear();
        if self.looked - self.judged.0 >= JUDGED_COUNT {
            let (looked, found) = (self.looked - self.judged.0, self.found - self.judged.1);
            self.judged = (self.looked, self.found);
            if self.is_full && found < looked / KEPT_ONE_IN {
                self.handed_on = Some(0);
            }
        }
    }

    /// Hands on entries until `made` is full or the table is empty.
    fn hand_on(&mut self, made: &mut Records) {
        self.count_waiting(made);
        let Some(table) = &mut self.table else {
            return;
        };
        let mut at = self.handed_on.unwrap_or(0);
        while at < table.used && !made.is_full() {
            let (count, line) = table.entry(at);
            let bytes = match count {
                1 => 0,
                _ => (u64::BITS - count.leading_zeros()).div_ceil(8) as usize,
            };
            made.push_pair(line, &count.to_le_bytes()[..bytes]);
            at += entry_bytes(line.len());
        }
        self.handed_on = Some(at);
        if at < table.used {
            return;
        }
        if self.found < table.count as u64 {
            self.aside = ASIDE * self.looked;
        }
        table.clear();
        (self.looked, self.found, self.judged) = (0, 0, (0, 0));
        (self.is_full, self.handed_on) = (false, None);
    }
}

fn pass(line: &[u8], made: &mut Records) {
    made.push_pair(line, &[]);
}

/// The line of a pair, and how often it came. `None` is no such pair.
#[must_use]
pub fn counted(pair: &[u8]) -> Option<(&[u8], u64)> {
    let (header, rest) = pair.split_at_checked(crate::order::KV_HEADER_BYTES)?;
    let length = u32::from_le_bytes(header[..4].try_into().expect("four bytes"));
    let (line, value) = rest.split_at_checked(length as usize)?;
    if value.is_empty() {
        return Some((line, 1));
    }
    let mut count = [0; 8];
    count.get_mut(..value.len())?.copy_from_slice(value);
    Some((line, u64::from_le_bytes(count)))
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::order::{Format, Order};

    /// Counts lines in `bytes` bytes of memory; all must come out as often as they came in. Answers how many pairs.
    fn check(lines: impl Iterator<Item = Vec<u8>>, bytes: usize) -> usize {
        let mut counts = Counts::new(bytes);
        let order = Order::new(Format::Kv, &[]).unwrap();
        let mut made = Records::new(order, 64 << 10, 1000);
        let (mut wanted, mut found) = (BTreeMap::new(), BTreeMap::new());
        let mut pair_count = 0;
        let mut take = |made: &mut Records| {
            let batch = made.batch(0, 7).unwrap();
            for pair in batch.records() {
                let (line, count) = counted(pair).unwrap();
                *found.entry(line.to_vec()).or_insert(0) += count;
                pair_count += 1;
            }
            let is_empty = batch.is_empty();
            made.clear();
            is_empty
        };
        for line in lines {
            counts.add(&line, &mut made);
            *wanted.entry(line).or_insert(0) += 1;
            if made.is_full() {
                take(&mut made);
            }
        }
        take(&mut made);
        loop {
            counts.hand_on(&mut made);
            if take(&mut made) {
                break;
            }
        }
        assert_eq!(found, wanted);
        pair_count
    }

    fn number(number: u64) -> Vec<u8> {
        number.to_string().into_bytes()
    }

    #[test]
    fn lines_are_counted_in_any_memory() {
        assert_eq!(check(std::iter::empty(), 1 << 20), 0);
        assert_eq!(
            check((0..300_000).map(|at| number(at % 1000)), 1 << 20),
            1000
        );
        // Half of them fit, which is kept, and the others pass.
        let half = check((0..400_000).map(|at| number(at % 20_000)), 400 << 10);
        assert!((100_000..300_000).contains(&half), "{half}");
        // Lines of any length, and empty ones; of more than all memory too.
        let long = (0..2000).map(|at| b"x".repeat(at % 40 * 25));
        assert_eq!(check(long, 1 << 20), 40);
        for bytes in [0, 31, 5000, 200_000] {
            check((0..2000).map(|at| b"x".repeat(at % 40 * 100)), bytes);
        }
    }

    #[test]
    fn a_table_whose_lines_come_no_more_begins_anew() {
        // Sorted lines, each a few times: those that fit at first are soon over.
        let pairs = check((0..4_000_000).map(|at| number(at / 100)), 512 << 10);
        assert!(pairs < 900_000, "{pairs}");
    }

    #[test]
    fn it_stands_aside_where_nothing_repeats() {
        assert_eq!(check((0..300_000).map(number), 512 << 10), 300_000);
        let mut counts = Counts::new(512 << 10);
        let order = Order::new(Format::Kv, &[]).unwrap();
        let mut made = Records::new(order, 64 << 10, 1000);
        let mut at = 0;
        while counts.aside == 0 {
            counts.add(&number(at), &mut made);
            made.clear();
            at += 1;
            assert!(at < 1_000_000, "it is full by now");
        }
        for _ in 0..counts.aside + 10 {
            counts.add(b"again", &mut made);
            made.clear();
        }
        counts.hand_on(&mut made);
        let batch = made.batch(0, 7).unwrap();
        let pairs: Vec<_> = batch.records().map(|pair| counted(pair).unwrap()).collect();
        assert_eq!(pairs, [(&b"again"[..], 10)]);
    }
}
