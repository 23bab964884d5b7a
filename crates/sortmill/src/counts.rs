//! Lines on their way into partitions, counted: one that memory keeps goes there once with how often it came, rather than
//! as often as it comes.
//!
//! A map function makes pairs of lines, and [`Runs`](crate::yields::Runs) are counted of those: the key is a line without
//! its end, the value how often it came in as few bytes as that takes, the least one first, and nothing for once. Each
//! worker keeps lines of its own. When there is no room for more it goes on counting those, and others pass; when few of
//! those that come are among them, they are handed on, piece by piece, and it begins anew.
//!
//! Combining in the mapper: Dean and Ghemawat, "MapReduce" (OSDI 2004), section 4.3.

use sortmill_io::os::Machine;
use sortmill_io::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

use crate::batch::Records;
use crate::chunks::Extent;
use crate::job::{Job, MapFn};
use crate::kept::{Found, Kept, Worth};
use crate::plan::{Inputs, Plan};

/// So many lines, or bytes of them, wait until their places are in the cache.
const WAITING_COUNT: usize = 32;
const WAITING_BYTES: usize = 2048;
/// Bytes that a few lines take at first, and how many times as many come after those that are too few: the memory that a job may
/// use is not to be touched for a handful of lines, which takes longer than to count them.
const FIRST_BYTES: usize = 4 << 20;
const GROWS_TIMES: usize = 16;
/// Longer lines pass by.
const LINE_BYTES_MAX: usize = 1024;

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

/// Whether `machine` has the memory that `job` takes with its lines counted early, whatever its inputs are. Without, it
/// is a sort like any other, and takes less.
#[must_use]
pub fn may_count_early(job: &Job, machine: &Machine) -> bool {
    let mut counting = Job {
        memory_is_wish: false,
        ..job.clone()
    };
    count_early(&mut counting);
    let inputs = Inputs {
        extents: vec![Extent::Stream],
        ..Inputs::default()
    };
    Plan::new(&counting, &inputs, machine).is_ok()
}

/// The map function: lines that end in `delimiter` become pairs.
fn counting(delimiter: u8) -> MapFn {
    Arc::new(move |state_bytes| {
        let mut counts = Counts::growing(usize::try_from(state_bytes).unwrap_or(usize::MAX));
        Box::new(move |line, made| match line {
            Some(line) => {
                let line = line.strip_suffix(&[delimiter]).unwrap_or(line);
                counts.add(xxh3_64(line), line, made);
            }
            None => counts.hand_on(made),
        })
    })
}

/// Takes what was counted.
pub trait Out {
    /// A key, and how often it came.
    fn put(&mut self, key: &[u8], count: u64);
    /// Whether it had better be given no more.
    fn is_full(&self) -> bool;
}

/// Pairs of lines and how often they came.
impl Out for Records {
    fn put(&mut self, line: &[u8], count: u64) {
        let bytes = match count {
            1 => 0,
            _ => (u64::BITS - count.leading_zeros()).div_ceil(8) as usize,
        };
        self.push_pair(line, &count.to_le_bytes()[..bytes]);
    }

    fn is_full(&self) -> bool {
        Self::is_full(self)
    }
}

/// What one worker counts: lines, or other keys.
pub struct Counts {
    bytes: usize,
    /// Bytes that it takes for now: those that are too few are handed on whole, and it begins anew with more.
    room: usize,
    /// Mapped when it is known how long lines are; nothing, where memory is too little for any.
    kept: Option<Kept>,
    worth: Worth,
    waiting: Waiting,
    /// Up to where entries have been handed on, while they are.
    handed_on: Option<usize>,
}

/// Lines that are looked for together, so that their ways from memory overlap.
#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// Of each its hash, and where it ends.
    lines: Vec<(u64, usize)>,
}

impl Counts {
    /// Nothing, in at most `bytes` bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let bytes = bytes.saturating_sub(WAITING_BYTES + LINE_BYTES_MAX);
        Self {
            bytes,
            room: bytes,
            kept: None,
            worth: Worth::default(),
            waiting: Waiting::default(),
            handed_on: None,
        }
    }

    /// The same, in few bytes at first.
    #[must_use]
    pub fn growing(bytes: usize) -> Self {
        let counts = Self::new(bytes);
        Self {
            room: counts.bytes.min(FIRST_BYTES),
            ..counts
        }
    }

    /// Takes a line without its end, or another key, and its hash.
    pub fn add(&mut self, hash: u64, line: &[u8], made: &mut impl Out) {
        if self.handed_on.is_some() {
            // First, as there may be no room for it behind the others.
            made.put(line, 1);
            return self.hand_on(made);
        }
        if line.len() > LINE_BYTES_MAX || self.bytes == 0 || !self.worth.wants(hash) {
            return made.put(line, 1);
        }
        if let Some(kept) = &self.kept {
            kept.fetch_slot(hash);
        }
        self.waiting.bytes.extend_from_slice(line);
        self.waiting.lines.push((hash, self.waiting.bytes.len()));
        let Waiting { bytes, lines } = &self.waiting;
        if lines.len() == WAITING_COUNT || bytes.len() >= WAITING_BYTES {
            self.count_waiting(made);
        }
    }

    /// Takes a key that came `count` times already.
    pub fn add_many(&mut self, hash: u64, key: &[u8], count: u64, made: &mut impl Out) {
        self.begin(key.len());
        let Some(kept) = self.kept.as_mut().filter(|_| key.len() <= LINE_BYTES_MAX) else {
            return made.put(key, count);
        };
        match kept.find(hash, key, count) {
            Found::There(at) => kept.set_number(at, kept.number(at) + count),
            Found::Begun => {}
            Found::NoRoom => made.put(key, count),
        }
    }

    /// Only so many keys more will come, which have so many bytes: nothing is mapped beyond what those take, because memory that
    /// is touched for the first time takes longer than they do.
    pub fn expect(&mut self, count: usize, bytes: usize) {
        if self.kept.is_some() || self.bytes == 0 || count == 0 {
            return;
        }
        let key_bytes = bytes.div_ceil(count);
        let room = Kept::bytes_of(count, key_bytes).min(self.room);
        self.kept = Kept::new(room, key_bytes);
    }

    /// Maps its memory, for keys of so many bytes.
    fn begin(&mut self, key_bytes: usize) {
        if self.kept.is_none() && self.bytes > 0 {
            self.kept = Kept::new(self.room, key_bytes);
            if self.kept.is_none() {
                (self.bytes, self.room) = (0, 0);
            }
        }
    }

    /// Counts the lines that wait.
    fn count_waiting(&mut self, made: &mut impl Out) {
        if !self.waiting.lines.is_empty() {
            self.begin(self.waiting.bytes.len() / self.waiting.lines.len());
        }
        let Waiting { bytes, lines } = &mut self.waiting;
        if let Some(kept) = &self.kept {
            lines.iter().for_each(|&(hash, _)| kept.fetch_entry(hash));
        }
        let mut from = 0;
        for (hash, end) in lines.drain(..) {
            let line = &bytes[from..end];
            from = end;
            let Some(kept) = &mut self.kept else {
                made.put(line, 1);
                continue;
            };
            let found = kept.find(hash, line, 1);
            match found {
                Found::There(at) => kept.set_number(at, kept.number(at) + 1),
                Found::Begun => {}
                Found::NoRoom => {
                    made.put(line, 1);
                    if self.room < self.bytes {
                        self.handed_on = Some(0);
                        continue;
                    }
                }
            }
            if self.worth.note(hash, &found, kept) {
                self.handed_on = Some(0);
            }
        }
        bytes.clear();
    }

    /// Hands on entries until `made` is full or nothing is kept any more.
    pub fn hand_on(&mut self, made: &mut impl Out) {
        self.count_waiting(made);
        let Some(kept) = &mut self.kept else {
            return;
        };
        let mut at = self.handed_on.unwrap_or(0);
        while let Some((count, line, end)) = kept.entry(at) {
            if made.is_full() {
                self.handed_on = Some(at);
                return;
            }
            made.put(line, count);
            at = end;
        }
        match self.room < self.bytes {
            true => {
                self.kept = None;
                self.room = self.bytes.min(GROWS_TIMES * self.room);
            }
            false => kept.clear(),
        }
        self.handed_on = None;
    }
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
        check_of(Counts::new(bytes), lines)
    }

    fn check_of(mut counts: Counts, lines: impl Iterator<Item = Vec<u8>>) -> usize {
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
            counts.add(xxh3_64(&line), &line, &mut made);
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
    fn a_few_lines_take_little_memory_and_more_of_them_more() {
        // Each twice at a time, so that it shows at once that they repeat.
        let grown = |count: u64, times: u64| {
            let lines = (0..2 * count * times).map(|at| number(at / 2 % count));
            check_of(Counts::growing(256 << 20), lines)
        };
        assert_eq!(Counts::growing(256 << 20).room, FIRST_BYTES);
        assert_eq!(grown(1000, 100), 1000);
        // What did not fit at first was handed on, once.
        let pairs = grown(400_000, 3);
        assert!((400_001..700_000).contains(&pairs), "{pairs}");
    }

    #[test]
    fn a_table_whose_lines_come_no_more_begins_anew() {
        // Sorted lines, each a few times: those that fit at first are soon over.
        let pairs = check((0..4_000_000).map(|at| number(at / 100)), 512 << 10);
        assert!(pairs < 900_000, "{pairs}");
    }

    #[test]
    fn lines_pass_where_nothing_repeats() {
        assert_eq!(check((0..300_000).map(number), 512 << 10), 300_000);
        // And are counted again when they do.
        let turned = (0..100_000).chain((0..500_000).map(|at| at % 7));
        assert!(check(turned.map(number), 512 << 10) < 250_000);
    }
}
