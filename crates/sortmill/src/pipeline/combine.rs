//! Groups on their way into partitions: a table of those that came lately, so that each group goes there once rather than
//! once for each of its records.
//!
//! In come keys and records, out go keys with the state of their aggregates, when the table is full and when no records
//! come any more. It is bounded; where few records find their group in it, it stands aside for a while.

use xxhash_rust::xxh3::xxh3_64;

use super::aggregate::{Computed, State};
use super::column::Value;

/// Takes a key and a value.
pub type PairSink<'s> = &'s mut dyn FnMut(&[u8], &[u8]);

/// Bytes of a hash in front of a key.
pub const HASH_BYTES: usize = 8;
/// Records for each group below which the table is not worth its work.
const WORTH: u64 = 2;
/// It stands aside for as many times the records that showed that.
const ASIDE: u64 = 16;

#[derive(Clone, Copy)]
struct Entry {
    hash: u64,
    from: u32,
    to: u32,
}

/// Where an entry is found: its number and one more, 0 where there is none, and the upper half of its hash, so that most
/// others are passed by without a look at them.
#[derive(Clone, Copy, Default)]
struct Slot {
    number: u32,
    tag: u32,
}

/// Bytes that an entry takes beside its key and its states: itself, and two slots.
const ENTRY_BYTES: usize = size_of::<Entry>() + 2 * size_of::<Slot>();

/// Groups that came lately.
pub struct Table {
    aggregates: Vec<Computed>,
    /// A power of two of them, at most half taken.
    slots: Vec<Slot>,
    entries: Vec<Entry>,
    /// As many for each entry as there are aggregates.
    states: Vec<State>,
    keys: Vec<u8>,
    /// One group alone, of a record that passes by.
    single: Vec<State>,
    bytes: usize,
    bytes_max: usize,
    /// Records since it was empty.
    records: u64,
    /// Records that are still to pass by.
    aside: u64,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Table {
    /// An empty one of at most `bytes_max` bytes, in which nothing is kept if not all `aggregates` can be.
    #[must_use]
    pub fn new(aggregates: &[Computed], bytes_max: u64) -> Self {
        let combines = aggregates.iter().all(Computed::combines);
        Self {
            aggregates: aggregates.to_vec(),
            slots: vec![Slot::default(); 16],
            entries: Vec::new(),
            states: Vec::new(),
            keys: Vec::new(),
            single: Vec::new(),
            bytes: 0,
            bytes_max: usize::try_from(bytes_max)
                .unwrap_or(usize::MAX)
                .min(1 << 30),
            records: 0,
            aside: if combines { 0 } else { u64::MAX },
            key: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Takes a record of the group `key`.
    pub fn add(&mut self, key: &[u8], record: &[Value<'_>], pairs: PairSink<'_>) {
        let hash = xxh3_64(key);
        if self.aside > 0 {
            self.aside = self.aside.saturating_sub(u64::from(self.aside != u64::MAX));
            self.pass(hash, key, record, pairs);
            return;
        }
        self.records += 1;
        let slot = self.slot(hash, key);
        let number = match self.slots[slot].number {
            0 => match self.begin(hash, key, slot) {
                Some(number) => number,
                None => {
                    self.end(pairs);
                    return self.pass(hash, key, record, pairs);
                }
            },
            number => number as usize - 1,
        };
        let count = self.aggregates.len();
        let states = &mut self.states[number * count..(number + 1) * count];
        for (aggregate, state) in self.aggregates.iter().zip(states) {
            aggregate.add(state, record);
        }
    }

    /// The slot of a group, or the empty one where it belongs.
    fn slot(&self, hash: u64, key: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let Slot { number, tag } = self.slots[slot];
            if number == 0 {
                return slot;
            }
            if tag == (hash >> 32) as u32 {
                let entry = self.entries[number as usize - 1];
                if entry.hash == hash && &self.keys[entry.from as usize..entry.to as usize] == key {
                    return slot;
                }
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Begins a group in an empty slot. `None` if there is no room for it.
    fn begin(&mut self, hash: u64, key: &[u8], slot: usize) -> Option<usize> {
        let states: usize = self.aggregates.iter().map(Computed::state_bytes).sum();
        // What grows is doubled, and for a moment there twice.
        let bytes = 2 * (ENTRY_BYTES + key.len() + states);
        if self.bytes + bytes > self.bytes_max {
            return None;
        }
        self.bytes += bytes;
        let from = self.keys.len() as u32;
        self.keys.extend_from_slice(key);
        let number = self.entries.len();
        let to = self.keys.len() as u32;
        self.entries.push(Entry { hash, from, to });
        self.states
            .extend(self.aggregates.iter().map(Computed::begin));
        self.slots[slot] = Slot {
            number: number as u32 + 1,
            tag: (hash >> 32) as u32,
        };
        if 2 * self.entries.len() > self.slots.len() {
            self.grow();
        }
        Some(number)
    }

    fn grow(&mut self) {
        let count = 2 * self.slots.len();
        self.slots.clear();
        self.slots.resize(count, Slot::default());
        for (number, entry) in (1u32..).zip(&self.entries) {
            let mut slot = entry.hash as usize & (count - 1);
            while self.slots[slot].number != 0 {
                slot = (slot + 1) & (count - 1);
            }
            let tag = (entry.hash >> 32) as u32;
            self.slots[slot] = Slot { number, tag };
        }
    }

    /// Hands on a record as a group of its own.
    fn pass(&mut self, hash: u64, key: &[u8], record: &[Value<'_>], pairs: PairSink<'_>) {
        self.single.clear();
        self.single
            .extend(self.aggregates.iter().map(Computed::begin));
        for (aggregate, state) in self.aggregates.iter().zip(&mut self.single) {
            aggregate.add(state, record);
        }
        let Self {
            key: whole,
            value,
            aggregates,
            single,
            ..
        } = self;
        put(
            whole,
            value,
            (hash, key),
            aggregates.iter().zip(&*single),
            pairs,
        );
    }

    /// Hands on all groups: the table is empty afterwards.
    pub fn end(&mut self, pairs: PairSink<'_>) {
        let Self {
            key: whole,
            value,
            aggregates,
            ..
        } = self;
        let count = aggregates.len();
        for (number, entry) in self.entries.iter().enumerate() {
            let key = &self.keys[entry.from as usize..entry.to as usize];
            let states = &self.states[number * count..(number + 1) * count];
            put(
                whole,
                value,
                (entry.hash, key),
                aggregates.iter().zip(states),
                pairs,
            );
        }
        if self.records < WORTH * self.entries.len() as u64 {
            self.aside = ASIDE * self.records;
        }
        self.slots.fill(Slot::default());
        self.entries.clear();
        self.states.clear();
        self.keys.clear();
        self.bytes = 0;
        self.records = 0;
    }
}

fn put<'t>(
    whole: &mut Vec<u8>,
    value: &mut Vec<u8>,
    (hash, key): (u64, &[u8]),
    states: impl Iterator<Item = (&'t Computed, &'t State)>,
    pairs: PairSink<'_>,
) {
    hashed(hash, key, whole);
    value.clear();
    states.for_each(|(aggregate, state)| aggregate.write(state, value));
    pairs(whole, value);
}

/// The key by which groups are brought together: hash and key.
pub fn hashed(hash: u64, key: &[u8], to: &mut Vec<u8>) {
    to.clear();
    to.extend_from_slice(&hash.to_be_bytes());
    to.extend_from_slice(key);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::pipeline::column::{Column, Type};
    use crate::pipeline::count;

    /// Puts keys into a table of `bytes_max` bytes. What comes out must count them all; answers how many pairs that are.
    fn check(keys: impl Iterator<Item = u64>, bytes_max: u64) -> usize {
        let columns = [Column::new("key", Type::U64)];
        let (aggregate, _) = count().find(&columns).unwrap();
        let mut table = Table::new(&[aggregate], bytes_max);
        let (mut wanted, mut found) = (BTreeMap::new(), BTreeMap::new());
        let mut pairs = 0;
        let mut take = |key: &[u8], value: &[u8]| {
            pairs += 1;
            assert_eq!(key[..HASH_BYTES], xxh3_64(&key[HASH_BYTES..]).to_be_bytes());
            let sum = found.entry(key[HASH_BYTES..].to_vec()).or_insert(0);
            *sum += u64::from_le_bytes(value.try_into().unwrap());
        };
        for key in keys {
            *wanted.entry(key.to_be_bytes().to_vec()).or_insert(0) += 1;
            table.add(&key.to_be_bytes(), &[Value::U64(key)], &mut take);
            assert!(table.bytes as u64 <= bytes_max);
        }
        table.end(&mut take);
        table.end(&mut |_, _| panic!("it was empty"));
        assert_eq!(found, wanted);
        pairs
    }

    #[test]
    fn groups_are_counted_and_combined() {
        assert_eq!(check(std::iter::empty(), 1 << 20), 0);
        // All groups fit: each comes out once.
        assert_eq!(
            check((0..50_000).map(|number| number % 1_000), 1 << 20),
            1_000
        );
        // Some do not: those that come often are still combined.
        let uneven = (0..200_000).map(|number| if number % 4 == 0 { number } else { number % 19 });
        assert!(check(uneven, 16 << 10) < 100_000);
    }

    #[test]
    fn it_stands_aside_where_nothing_repeats() {
        assert_eq!(check(0..100_000, 16 << 10), 100_000);
        let columns = [Column::new("key", Type::U64)];
        let (aggregate, _) = count().find(&columns).unwrap();
        let mut table = Table::new(&[aggregate], 16 << 10);
        for key in 0..10_000u64 {
            table.add(&key.to_be_bytes(), &[Value::U64(key)], &mut |_, _| {});
        }
        assert!(table.aside > 0 && table.entries.is_empty());
        // And comes back.
        for _ in 0..10_000 {
            table.add(&[0; 8], &[Value::U64(0)], &mut |_, _| {});
        }
        assert!(table.aside == 0 && table.entries.len() == 1);
    }
}
