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
use sortmill_io::{ALIGN_BYTES, Pool};

use crate::batch::Records;
use crate::chunks::Extent;
use crate::job::{Job, MapFn};
use crate::kept::{Found, Kept, Start, Worth};
use crate::plan::{Inputs, Plan};
use crate::short::{SHORT_BYTES, short_hash, text_hash, unshort};
use crate::waiting::Waiting;

/// Lines are divided by their hash among tables of about so many bytes, which lie near a processor while lines are looked for
/// there.
const TABLE_BYTES: usize = 4 << 20;
const TABLES_MAX: usize = 256;
/// Lines wait for their table in one of so many parts of its memory: enough of them that most find in the cache what others had
/// brought there.
const WAITING_SHARE: usize = 6;
/// So much of it at least, which holds the longest, and so much memory altogether, or every line passes by.
const WAITING_BYTES_MIN: usize = ALIGN_BYTES;
const BYTES_MIN: usize = 2 * ALIGN_BYTES;
const _: () = assert!(Waiting::bytes_of(LINE_BYTES_MAX) <= WAITING_BYTES_MIN);
/// Bytes that a few lines take at first, and how many times as many come after those that are too few: the memory that a job may
/// use is not to be touched for a handful of lines, which takes longer than to count them.
const FIRST_BYTES: usize = 4 << 20;
const GROWS_TIMES: usize = 16;
/// So many lines are looked for together: what their slots and entries lie in is asked for before.
const TOGETHER: usize = 16;
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
                counts.add(line, made);
            }
            None => counts.hand_on(made),
        })
    })
}

/// A line that is looked for together with others.
#[derive(Clone, Copy, Default)]
struct Looked {
    hash: u64,
    /// A short one whole.
    words: [u64; 2],
    length: usize,
    start: Start,
}

/// Takes what was counted.
pub trait Out {
    /// A key, its [`text_hash`] if that is known, and how often it came.
    fn put(&mut self, key: &[u8], hash: Option<u64>, count: u64);
    /// Whether it had better be given no more.
    fn is_full(&self) -> bool;
}

/// Pairs of lines and how often they came.
impl Out for Records {
    fn put(&mut self, line: &[u8], _: Option<u64>, count: u64) {
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
///
/// In a table that is larger than the caches each line waits for memory. So lines are divided among many tables first, and wait in
/// front of theirs until they are many (as the clusters of Manegold, Boncz and Kersten, Optimizing Main-Memory Join on Modern
/// Hardware, TKDE 2002, section 3.2).
pub struct Counts {
    bytes: usize,
    /// Bytes that it takes for now: those that are too few are handed on whole, and it begins anew with more.
    room: usize,
    /// Lines that wait, for each table; no tables before a line has come.
    waiting: Vec<Waiting>,
    /// The tables, mapped when it is known how long lines are; none, where memory is too little for any line.
    kept: Vec<Kept>,
    /// How many lines they have.
    kept_count: usize,
    worth: Worth,
    /// While lines are handed on: the table, and up to where its entries have been.
    handed_on: Option<(usize, usize)>,
}

impl Counts {
    /// Nothing, in at most `bytes` bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self {
            bytes,
            room: bytes,
            waiting: Vec::new(),
            kept: Vec::new(),
            kept_count: 0,
            worth: Worth::default(),
            handed_on: None,
        }
    }

    /// The same, in few bytes at first.
    #[must_use]
    pub fn growing(bytes: usize) -> Self {
        let room = bytes.min(FIRST_BYTES);
        Self {
            room,
            ..Self::new(bytes)
        }
    }

    /// Takes a line without its end, or another key.
    pub fn add(&mut self, line: &[u8], made: &mut impl Out) {
        let hash = text_hash(line);
        if self.handed_on.is_some() {
            // First, as there may be no room for it behind the others.
            made.put(line, Some(hash), 1);
            return self.hand_on_kept(made);
        }
        if line.len() > LINE_BYTES_MAX || self.bytes < BYTES_MIN || !self.worth.wants(hash) {
            return made.put(line, Some(hash), 1);
        }
        self.begin();
        self.wait(hash, line, made);
    }

    /// The same of a [short](crate::short::short) key of `length` bytes.
    #[inline(always)]
    pub fn add_short(&mut self, words: [u64; 2], length: usize, made: &mut impl Out) {
        if self.handed_on.is_none() && self.worth.wants_all() {
            let table = self.table_of(short_hash(words, length));
            if let Some(waiting) = self.waiting.get_mut(table)
                && waiting.has_room(length)
            {
                self.worth.pass();
                return waiting.push_short(words, length);
            }
        }
        let mut bytes = [0; SHORT_BYTES];
        self.add(unshort(words, length, &mut bytes), made);
    }

    /// Takes a key that came `count` times already.
    pub fn add_many(&mut self, key: &[u8], count: u64, made: &mut impl Out) {
        if key.len() > LINE_BYTES_MAX || self.bytes < BYTES_MIN {
            return made.put(key, None, count);
        }
        self.begin();
        self.map(key.len());
        let hash = text_hash(key);
        let table = self.table_of(hash);
        let Some(kept) = self.kept.get_mut(table) else {
            return made.put(key, Some(hash), count);
        };
        match kept.find(hash, key, count) {
            Found::There(at) => kept.add_number(at, count),
            Found::Begun => self.kept_count += 1,
            Found::NoRoom => made.put(key, Some(hash), count),
        }
    }

    /// Only so many keys more will come, which have so many bytes: nothing is mapped beyond what those take, because memory that
    /// is touched for the first time takes longer than they do.
    pub fn expect(&mut self, count: usize, bytes: usize) {
        if self.waiting.is_empty() && count > 0 {
            let room = Kept::bytes_of(count, bytes.div_ceil(count)) + WAITING_BYTES_MIN;
            self.bytes = self.bytes.min(room);
            self.room = self.bytes;
        }
    }

    /// Which table a line of this hash belongs to: by bits that say nothing of where it lies there.
    #[inline(always)]
    fn table_of(&self, hash: u64) -> usize {
        hash as usize & self.waiting.len().wrapping_sub(1)
    }

    /// Divides the memory, if that is still to be done.
    fn begin(&mut self) {
        if !self.waiting.is_empty() {
            return;
        }
        let count = (self.room / TABLE_BYTES).clamp(1, TABLES_MAX);
        let count = count.next_power_of_two();
        let bytes = self.room / count / WAITING_SHARE / ALIGN_BYTES * ALIGN_BYTES;
        let rows = Pool::new(count, bytes.max(WAITING_BYTES_MIN)).ok();
        let rows = rows
            .iter()
            .flat_map(|rows| (0..count).map_while(|_| rows.take()));
        self.waiting = rows.map(Waiting::new).collect();
        if self.waiting.is_empty() {
            self.bytes = 0;
        }
    }

    /// Maps the tables for lines of so many bytes, if that is still to be done.
    fn map(&mut self, line_bytes: usize) {
        if self.kept.is_empty()
            && self.bytes > 0
            && let Some(waiting) = self.waiting.first()
        {
            let count = self.waiting.len();
            let bytes = (self.room / count).saturating_sub(waiting.bytes());
            self.kept = Kept::several(count, bytes, line_bytes).unwrap_or_default();
            if self.kept.is_empty() {
                self.bytes = 0;
            }
        }
    }

    /// Has a line wait for its table, if there is room.
    fn wait(&mut self, hash: u64, line: &[u8], made: &mut impl Out) {
        let table = self.table_of(hash);
        let is_free = |waiting: &Waiting| waiting.has_room(line.len());
        match self.waiting.get(table).map(is_free) {
            Some(true) => {}
            Some(false) if self.count_waiting(table, made) => {}
            _ => return made.put(line, Some(hash), 1),
        }
        self.waiting[table].push(line);
    }

    /// Counts the lines that wait for a table. `false` if some still do: because `made` is full, or what is kept is to be handed on.
    fn count_waiting(&mut self, table: usize, made: &mut impl Out) -> bool {
        if self.waiting[table].is_empty() {
            return true;
        }
        if self.kept.is_empty() {
            self.map(self.waiting[table].mean_bytes());
        }
        let (waiting, mut kept) = (&mut self.waiting[table], self.kept.get_mut(table));
        if let Some(kept) = &kept
            && waiting.is_whole()
        {
            kept.fetch();
        }
        let mut lines = [Looked::default(); TOGETHER];
        loop {
            let mut count = 0;
            for (one, (line, words)) in lines.iter_mut().zip(waiting.iter()) {
                one.words = words;
                one.length = line.len();
                one.hash = match line.len() <= SHORT_BYTES {
                    true => short_hash(words, line.len()),
                    false => text_hash(line),
                };
                if let Some(kept) = &kept {
                    kept.ask_slot(one.hash);
                }
                count += 1;
            }
            if count == 0 {
                return true;
            }
            if let Some(kept) = &kept {
                for one in &mut lines[..count] {
                    one.start = kept.ask_entry(one.hash);
                }
            }
            for one in &lines[..count] {
                let found = match &mut kept {
                    Some(kept) if one.length <= SHORT_BYTES => {
                        kept.find_short_from(one.start, one.hash, one.words, one.length, 1)
                    }
                    Some(kept) => kept.find_from(one.start, one.hash, waiting.first(), 1),
                    None => Found::NoRoom,
                };
                match (&found, &mut kept) {
                    (Found::There(at), Some(kept)) => kept.add_number(*at, 1),
                    (Found::Begun, _) => self.kept_count += 1,
                    _ => made.put(waiting.first(), Some(one.hash), 1),
                }
                waiting.pass(one.length);
                let has_no_room = matches!(found, Found::NoRoom);
                let is_too_small = has_no_room && self.room < self.bytes;
                if self.worth.note(one.hash, &found, self.kept_count) || is_too_small {
                    self.handed_on = Some((0, 0));
                    return false;
                }
                if has_no_room && made.is_full() {
                    return false;
                }
            }
        }
    }

    /// Hands on entries until `made` is full or nothing is kept any more.
    pub fn hand_on(&mut self, made: &mut impl Out) {
        while !made.is_full() {
            let is_last = self.handed_on.is_none()
                && (0..self.waiting.len()).all(|table| self.count_waiting(table, made));
            if is_last {
                self.handed_on = Some((0, 0));
            }
            self.hand_on_kept(made);
            if is_last {
                return;
            }
        }
    }

    /// Hands on entries until `made` is full or there are none any more, and begins anew then.
    fn hand_on_kept(&mut self, made: &mut impl Out) {
        let Some((mut number, mut at)) = self.handed_on else {
            return;
        };
        while let Some(kept) = self.kept.get(number) {
            let Some((count, line, end)) = kept.entry(at) else {
                (number, at) = (number + 1, 0);
                continue;
            };
            if made.is_full() {
                self.handed_on = Some((number, at));
                return;
            }
            made.put(line, None, count);
            at = end;
        }
        self.handed_on = None;
        self.kept_count = 0;
        if self.room < self.bytes {
            self.room = self.bytes.min(GROWS_TIMES * self.room);
            self.kept.clear();
            let before = std::mem::take(&mut self.waiting);
            self.begin();
            for (line, _) in before.iter().flat_map(Waiting::iter) {
                self.wait(text_hash(line), line, made);
            }
        } else {
            self.kept.iter_mut().for_each(Kept::clear);
        }
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
