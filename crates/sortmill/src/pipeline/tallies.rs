//! Groups that are only counted, or only told apart: many more of them than a cache holds are kept while they are mapped, so that a
//! result that fits memory takes one pass.
//!
//! At first they are in the table of `combine.rs`, which finds few of them soonest; when that is full they move to counts in much
//! more memory, where keys are looked for many together (`counts.rs`).

use std::ops::Range;

use sortmill_io::sync::Arc;
use sortmill_io::sync::atomic::{AtomicBool, Ordering};

use super::aggregate::Computed;
use super::column::Value;
use super::combine::{PairSink, Short, Table, hashed};
use super::count_bytes::{COUNT_BYTES_MAX, count_bytes};
use super::mix::group_hash;
use crate::counts::{Counts, Out};
use crate::short::{SHORT_BYTES, short_within};

/// The table takes a part of the memory, and no more than lies near a processor.
const TABLE_SHARE: u64 = 8;
const TABLE_BYTES_MAX: u64 = 8 << 20;

/// So many short keys are gathered, and wait until as many more have been, while their rows come into the cache.
const WAITING_COUNT: usize = 16;

/// Groups that are only counted or told apart.
pub struct Tallies {
    table: Table,
    gathered: Vec<Short>,
    waiting: Vec<Short>,
    counts: Counts,
    /// Whether all groups go there, and not to the table.
    is_beyond: bool,
    how: How,
    key: Vec<u8>,
    /// Whether who takes the pairs had better get no more of them for now.
    is_full: Arc<AtomicBool>,
}

/// What a group becomes as a pair.
#[derive(Clone, Copy)]
struct How {
    /// A hash stands in front of its key.
    is_hashed: bool,
    /// How many records it has is the value.
    is_counted: bool,
}

/// Pairs on their way out, as long as there is room.
struct Pairs<'p> {
    pairs: PairSink<'p>,
    is_full: &'p AtomicBool,
    how: How,
    key: &'p mut Vec<u8>,
}

impl Out for Pairs<'_> {
    fn put(&mut self, key: &[u8], hash: Option<u64>, count: u64) {
        let mut bytes = [0; COUNT_BYTES_MAX];
        let value: &[u8] = match self.how.is_counted {
            true => count_bytes(count, &mut bytes),
            false => &[],
        };
        if self.how.is_hashed {
            // That of a long one is the same.
            let hash = hash.filter(|_| key.len() > SHORT_BYTES);
            hashed(hash.unwrap_or_else(|| group_hash(key)), key, self.key);
            (self.pairs)(self.key, value);
        } else {
            (self.pairs)(key, value);
        }
    }

    fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }
}

impl Tallies {
    /// Those of groups with these aggregates, a count or none, which become pairs with a hash in front of their keys or without, in
    /// so many bytes. Who takes the pairs says in `is_full`, after each, whether there is room for more than one record makes.
    #[must_use]
    pub fn new(
        aggregates: &[Computed],
        is_hashed: bool,
        bytes: u64,
        is_full: &Arc<AtomicBool>,
    ) -> Self {
        let table_bytes = (bytes / TABLE_SHARE).min(TABLE_BYTES_MAX);
        Self {
            table: Table::new(aggregates, table_bytes, true),
            gathered: Vec::with_capacity(WAITING_COUNT),
            waiting: Vec::with_capacity(WAITING_COUNT),
            counts: Counts::new(usize::try_from(bytes - table_bytes).unwrap_or(usize::MAX)),
            is_beyond: false,
            how: How {
                is_hashed,
                is_counted: !aggregates.is_empty(),
            },
            key: Vec::new(),
            is_full: Arc::clone(is_full),
        }
    }

    /// Takes a record of the group `key`.
    #[inline]
    pub fn add(&mut self, key: &[u8], record: &[Value<'_>], pairs: PairSink<'_>) {
        if self.is_beyond {
            return self.add_beyond(key, pairs);
        }
        match self.table.fetch(key) {
            Some(short) => self.wait(short, pairs),
            None if self.table.keep(key, record) => {}
            None => {
                self.go_beyond(pairs);
                self.add_beyond(key, pairs);
            }
        }
    }

    /// Takes a record of the group `text[word]`.
    #[inline(always)]
    pub fn add_word(&mut self, text: &[u8], word: Range<usize>, pairs: PairSink<'_>) {
        let is_near_end = text.len() - word.start < SHORT_BYTES;
        if word.len() > SHORT_BYTES || is_near_end {
            return self.add_any_word(&text[word], pairs);
        }
        let words = short_within(text, word.start, word.len());
        if self.is_beyond {
            return self.add_short_beyond(words, word.len(), pairs);
        }
        let short = self.table.fetch_short(words, word.len());
        self.wait(short, pairs);
    }

    #[inline(never)]
    fn add_any_word(&mut self, key: &[u8], pairs: PairSink<'_>) {
        self.add(key, &[Value::Bytes(key)], pairs);
    }

    #[inline(always)]
    fn wait(&mut self, short: Short, pairs: PairSink<'_>) {
        self.gathered.push(short);
        if self.gathered.len() == WAITING_COUNT {
            self.count_waiting(pairs);
        }
    }

    fn add_beyond(&mut self, key: &[u8], pairs: PairSink<'_>) {
        // Counts that are of little use any more are handed on beside the record, all of them: piece by piece.
        let mut pairs = Pairs {
            pairs,
            is_full: &self.is_full,
            how: self.how,
            key: &mut self.key,
        };
        self.counts.add(key, &mut pairs);
    }

    #[inline(always)]
    fn add_short_beyond(&mut self, words: [u64; 2], length: usize, pairs: PairSink<'_>) {
        let mut pairs = Pairs {
            pairs,
            is_full: &self.is_full,
            how: self.how,
            key: &mut self.key,
        };
        self.counts.add_short(words, length, &mut pairs);
    }

    /// Counts the keys that wait; those that have been gathered wait then.
    #[inline(never)]
    fn count_waiting(&mut self, pairs: PairSink<'_>) {
        let mut waiting = std::mem::take(&mut self.waiting);
        let taken = if self.is_beyond {
            0
        } else {
            self.table.count(&waiting)
        };
        if taken < waiting.len() {
            self.go_beyond(pairs);
        }
        for short in &waiting[taken..] {
            let mut bytes = [0; SHORT_BYTES];
            self.add_beyond(short.key(&mut bytes), pairs);
        }
        waiting.clear();
        self.waiting = std::mem::replace(&mut self.gathered, waiting);
    }

    /// Takes all groups out of the table.
    fn go_beyond(&mut self, pairs: PairSink<'_>) {
        let mut pairs = Pairs {
            pairs,
            is_full: &self.is_full,
            how: self.how,
            key: &mut self.key,
        };
        self.is_beyond = true;
        let (is_counted, counts) = (self.how.is_counted, &mut self.counts);
        self.table.take(|key, words| {
            let count = if is_counted { words[0] } else { 1 };
            counts.add_many(key, count, &mut pairs);
        });
    }

    /// Hands on groups until there is no room for more, or there are none any more.
    pub fn hand_on(&mut self, pairs: PairSink<'_>) {
        self.count_waiting(pairs);
        self.count_waiting(pairs);
        if !self.is_beyond {
            let (groups, bytes) = self.table.sizes();
            self.counts.expect(groups, bytes);
        }
        self.go_beyond(pairs);
        self.counts.hand_on(&mut Pairs {
            pairs,
            is_full: &self.is_full,
            how: self.how,
            key: &mut self.key,
        });
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeMap;

    use super::*;
    use crate::pipeline::column::{Column, Type};
    use crate::pipeline::count;
    use crate::pipeline::count_bytes::take_count;

    /// Counts keys in `bytes` bytes, handing on at most a hundred at a time, and little more than that for any one key. What comes out
    /// must count them all; answers how many pairs that are.
    fn check(keys: impl Iterator<Item = String>, bytes: u64, is_hashed: bool) -> usize {
        let columns = [Column::new("key", Type::String)];
        let (aggregate, _) = count().find(&columns).unwrap();
        let is_full = Arc::new(AtomicBool::new(false));
        let mut tallies = Tallies::new(&[aggregate], is_hashed, bytes, &is_full);
        let (mut wanted, mut found) = (BTreeMap::new(), BTreeMap::new());
        let (made, room_from) = (Cell::new(0), Cell::new(0));
        let mut take = |key: &[u8], value: &[u8]| {
            made.set(made.get() + 1);
            is_full.store(made.get() >= room_from.get() + 100, Ordering::Relaxed);
            let (hash, key) = key.split_at(if is_hashed { 8 } else { 0 });
            assert!(!is_hashed || hash == group_hash(key).to_be_bytes());
            let count = take_count(&mut &value[..]).unwrap();
            *found.entry(key.to_vec()).or_insert(0) += count;
        };
        for key in keys {
            room_from.set(made.get());
            is_full.store(false, Ordering::Relaxed);
            tallies.add(key.as_bytes(), &[Value::Bytes(key.as_bytes())], &mut take);
            // Those that waited beside it, and a piece of what is of no use any more.
            let for_one = made.get() - room_from.get();
            assert!(
                for_one <= 100 + 2 * WAITING_COUNT,
                "{for_one} pairs for one key"
            );
            *wanted.entry(key.into_bytes()).or_insert(0) += 1;
        }
        loop {
            room_from.set(made.get());
            is_full.store(false, Ordering::Relaxed);
            tallies.hand_on(&mut take);
            if made.get() == room_from.get() {
                break;
            }
        }
        assert_eq!(found, wanted);
        made.get()
    }

    #[test]
    fn groups_are_counted_in_any_memory() {
        let keys = |count: u32, of: u32| {
            (0..count).map(move |at| "k".repeat((at % 40) as usize) + &(at % of).to_string())
        };
        for is_hashed in [false, true] {
            assert_eq!(check(keys(0, 1), 1 << 20, is_hashed), 0);
            // In the table, beyond it, where some pass by until it is seen that they repeat, and more than fit there.
            assert_eq!(check(keys(50_000, 1000), 4 << 20, is_hashed), 1000);
            let beyond = check(keys(200_000, 20_000), 4 << 20, is_hashed);
            assert!((20_000..60_000).contains(&beyond), "{beyond}");
            assert!(check(keys(200_000, 40_000), 1 << 20, is_hashed) > 40_000);
            // Sorted ones: those that are kept come no more, and are handed on while the next ones come.
            let twice = (0..2_000_000).map(|at| (at / 2).to_string());
            let pairs = check(twice, 2 << 20, is_hashed);
            assert!((1_000_000..1_900_000).contains(&pairs), "{pairs}");
        }
        for bytes in [0, 100, 5000, 100_000] {
            check(keys(3000, 700), bytes, true);
        }
    }
}
