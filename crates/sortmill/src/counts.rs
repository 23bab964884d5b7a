//! Lines on their way into partitions, counted: one that memory keeps goes there once with how often it came, rather than
//! as often as it comes.
//!
//! A map function makes pairs of lines, and [`Runs`](crate::yields::Runs) are counted of those: the key is a line without
//! its end, the value how often it came, nothing for once. Each worker has a table of its own. When that is full it goes on
//! counting the lines it has, and others pass it; when few of those that come are in it, it is handed on, piece by piece,
//! and begins anew, or stands aside for a while if it was no use.
//!
//! Combining in the mapper: Dean and Ghemawat, "MapReduce" (OSDI 2004), section 4.3.

use sortmill_io::sync::Arc;
use sortmill_io::{ALIGN_BYTES, Buffer, Pool, Table};
use xxhash_rust::xxh3::xxh3_64;

use crate::batch::Records;
use crate::job::{Job, MapFn};

/// After so many records it is judged what the table is worth.
const JUDGED_COUNT: u64 = 1 << 16;
/// A full table is handed on if fewer than one in so many records is in it.
const KEPT_ONE_IN: u64 = 4;
/// One that saved less than it holds stands aside for as many times the records that showed that.
const ASIDE: u64 = 16;
/// In front of a line: how often it came, and its length.
const HEAD_BYTES: usize = 12;
/// Entries begin at multiples of it, so that a slot tells of 32 GiB of them.
const UNIT_BYTES: usize = 8;

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
    /// Nothing, where memory is too little for any.
    memory: Option<Memory>,
    /// Since the table was empty: records that were looked for, and those that were found.
    looked: u64,
    found: u64,
    /// As much of that as was judged.
    judged: (u64, u64),
    is_full: bool,
    /// Up to where entries have been handed on, while they are.
    handed_on: Option<usize>,
    /// Records that are still to pass by.
    aside: u64,
}

struct Memory {
    /// A power of two of them, some always empty: the upper half of a hash and, one more, in which unit an entry begins.
    slots: Table<u64>,
    entries: Buffer,
    /// Bytes of entries, and how many those are.
    used: usize,
    count: usize,
}

impl Memory {
    fn new(bytes: usize) -> Option<Self> {
        // A short line takes a slot and three units.
        let slot_count = 1 << (bytes / 32).checked_ilog2()?;
        let entry_bytes =
            bytes.checked_sub(slot_count * size_of::<u64>())? / ALIGN_BYTES * ALIGN_BYTES;
        if entry_bytes == 0 {
            return None;
        }
        Some(Self {
            slots: Table::new(slot_count).ok()?,
            entries: Pool::new(1, entry_bytes).ok()?.take()?,
            used: 0,
            count: 0,
        })
    }

    fn number(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.entries[at..at + 8].try_into().expect("eight bytes"))
    }

    /// The line of the entry that begins at `at`.
    fn line(&self, at: usize) -> &[u8] {
        let bytes = &self.entries[at + 8..at + HEAD_BYTES];
        let length = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        &self.entries[at + HEAD_BYTES..][..length as usize]
    }

    /// The slot where a line is, or belongs, and where its entry begins, if it has one.
    #[inline]
    fn find(&self, hash: u64, line: &[u8]) -> (usize, Option<usize>) {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let found = self.slots[slot];
            if found == 0 {
                return (slot, None);
            }
            if found >> 32 == hash >> 32 {
                let at = (found as u32 as usize - 1) * UNIT_BYTES;
                if self.line(at) == line {
                    return (slot, Some(at));
                }
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Begins an entry in an empty slot. `false` if there is no room for it.
    fn begin(&mut self, slot: usize, hash: u64, line: &[u8]) -> bool {
        let (at, end) = (self.used, self.used + HEAD_BYTES + line.len());
        let has_slots = 4 * self.count < 3 * self.slots.len();
        if end > self.entries.len() || !has_slots || at / UNIT_BYTES >= u32::MAX as usize {
            return false;
        }
        self.entries[at..at + 8].copy_from_slice(&1u64.to_le_bytes());
        self.entries[at + 8..at + HEAD_BYTES].copy_from_slice(&(line.len() as u32).to_le_bytes());
        self.entries[at + HEAD_BYTES..end].copy_from_slice(line);
        self.slots[slot] = hash >> 32 << 32 | (at / UNIT_BYTES + 1) as u64;
        self.used = end.next_multiple_of(UNIT_BYTES);
        self.count += 1;
        true
    }
}

impl Counts {
    /// An empty table in at most `bytes` bytes.
    fn new(bytes: usize) -> Self {
        Self {
            memory: Memory::new(bytes),
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
        let Some(memory) = &mut self.memory else {
            return pass(line, made);
        };
        let hash = xxh3_64(line);
        let (slot, entry) = memory.find(hash, line);
        self.looked += 1;
        if let Some(at) = entry {
            self.found += 1;
            let count = memory.number(at) + 1;
            memory.entries[at..at + 8].copy_from_slice(&count.to_le_bytes());
        } else if !memory.begin(slot, hash, line) {
            self.is_full = true;
            pass(line, made);
        }
        if self.looked - self.judged.0 == JUDGED_COUNT {
            let lately = self.found - self.judged.1;
            self.judged = (self.looked, self.found);
            if self.is_full && lately < JUDGED_COUNT / KEPT_ONE_IN {
                self.handed_on = Some(0);
            }
        }
    }

    /// Hands on entries until `made` is full or the table is empty.
    fn hand_on(&mut self, made: &mut Records) {
        let Some(memory) = &mut self.memory else {
            return;
        };
        let mut at = self.handed_on.unwrap_or(0);
        while at < memory.used && !made.is_full() {
            let line = memory.line(at);
            match memory.number(at) {
                1 => made.push_pair(line, &[]),
                count => made.push_pair(line, &count.to_le_bytes()),
            }
            at += (HEAD_BYTES + line.len()).next_multiple_of(UNIT_BYTES);
        }
        self.handed_on = Some(at);
        if at < memory.used {
            return;
        }
        if self.found < memory.count as u64 {
            self.aside = ASIDE * self.looked;
        }
        memory.slots.fill(0);
        (memory.used, memory.count) = (0, 0);
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
    match value {
        [] => Some((line, 1)),
        _ => Some((line, u64::from_le_bytes(value.try_into().ok()?))),
    }
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
        assert!((150_000..250_000).contains(&half), "{half}");
        // Lines of any length, and empty ones; of more than all memory too.
        let long = (0..2000).map(|at| b"x".repeat(at % 40 * 100));
        assert!(check(long, 1 << 20) <= 80);
        for bytes in [0, 31, 5000] {
            check((0..2000).map(|at| b"x".repeat(at % 40 * 100)), bytes);
        }
    }

    #[test]
    fn a_table_whose_lines_come_no_more_begins_anew() {
        // Sorted lines, each a few times: those that fit at first are soon over.
        let pairs = check((0..4_000_000).map(|at| number(at / 100)), 256 << 10);
        assert!(pairs < 900_000, "{pairs}");
    }

    #[test]
    fn it_stands_aside_where_nothing_repeats() {
        assert_eq!(check((0..300_000).map(number), 256 << 10), 300_000);
        let mut counts = Counts::new(256 << 10);
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
        assert_eq!(counts.found, 9);
    }
}
