//! Groups on their way into partitions: a table of those that came lately, so that each group goes there once rather than
//! once for each of its records.
//!
//! In come keys and records, out go keys with the state of their aggregates, when the table is full and when no records
//! come any more. It is bounded; where few records find their group in it, it stands aside for a while.

use super::aggregate::{Beside, Computed, State};
use super::column::Value;
use super::mix::group_hash;

/// Takes a key and a value.
pub type PairSink<'s> = &'s mut dyn FnMut(&[u8], &[u8]);

/// Bytes of a hash in front of a key.
pub const HASH_BYTES: usize = 8;
/// Records for each group below which the table is not worth its work.
pub const WORTH: u64 = 2;
/// It stands aside for as many times the records that showed that.
pub const ASIDE: u64 = 16;

/// An entry is a row of words: hash, where its key is, the key's first bytes, and the states of its aggregates. A key of
/// up to so many bytes lies there, a longer one among the long keys.
const SHORT_BYTES: usize = 16;
const HASH: usize = 0;
/// Bytes of the key in the lower half, and in the upper where it begins among the long keys.
const KEY: usize = 1;
const SHORT: std::ops::Range<usize> = 2..4;
const STATES: usize = 4;

/// Where an entry is found: its number and one more, 0 where there is none, and the upper half of its hash, so that most
/// others are passed by without a look at them.
#[derive(Clone, Copy, Default)]
struct Slot {
    number: u32,
    tag: u32,
}

/// Groups that came lately.
pub struct Table {
    aggregates: Vec<Computed>,
    /// A power of two of them, at most half taken.
    slots: Vec<Slot>,
    /// Entries, of `stride` words each.
    entries: Vec<u64>,
    stride: usize,
    entry_count: usize,
    keys: Vec<u8>,
    beside: Beside,
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

/// The bytes of a key that is short, and the first ones of any other: words that overlap, so that nothing is copied byte
/// by byte. Keys of one length that make the same words are alike there.
fn short(key: &[u8]) -> [u64; 2] {
    let word = |at: usize| u64::from_le_bytes(key[at..at + 8].try_into().expect("eight bytes"));
    let half = |at: usize| u32::from_le_bytes(key[at..at + 4].try_into().expect("four bytes"));
    match key.len() {
        0 => [0, 0],
        count @ 1..=3 => {
            let byte = |at: usize| u64::from(key[at]);
            [byte(0) | byte(count / 2) << 8 | byte(count - 1) << 16, 0]
        }
        count @ 4..=7 => [u64::from(half(0)) | u64::from(half(count - 4)) << 32, 0],
        count @ 8..=SHORT_BYTES => [word(0), word(count - 8)],
        _ => [word(0), word(8)],
    }
}

/// The key of `count` bytes that [`short`] made words of.
fn unshort([first, second]: [u64; 2], count: usize, bytes: &mut [u8; SHORT_BYTES]) -> &[u8] {
    let (one, two) = (first.to_le_bytes(), second.to_le_bytes());
    match count {
        0 => {}
        1..=3 => (bytes[0], bytes[count / 2], bytes[count - 1]) = (one[0], one[1], one[2]),
        4..=7 => {
            bytes[..4].copy_from_slice(&one[..4]);
            bytes[count - 4..count].copy_from_slice(&one[4..]);
        }
        _ => {
            bytes[..8].copy_from_slice(&one);
            bytes[count - 8..count].copy_from_slice(&two);
        }
    }
    &bytes[..count]
}

impl Table {
    /// An empty one of at most `bytes_max` bytes, in which nothing is kept if not all `aggregates` can be.
    #[must_use]
    pub fn new(aggregates: &[Computed], bytes_max: u64) -> Self {
        let combines = aggregates.iter().all(Computed::combines);
        let words: usize = aggregates.iter().map(Computed::word_count).sum();
        Self {
            aggregates: aggregates.to_vec(),
            slots: vec![Slot::default(); 16],
            entries: Vec::new(),
            stride: STATES + words,
            entry_count: 0,
            keys: Vec::new(),
            beside: Beside::default(),
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
        let hash = group_hash(key);
        if self.aside > 0 {
            self.aside = self.aside.saturating_sub(u64::from(self.aside != u64::MAX));
            self.pass(hash, key, record, pairs);
            return;
        }
        self.records += 1;
        let (slot, number) = self.find(hash, key);
        let Some(number) = number else {
            if !self.begin((hash, key), slot, record) {
                self.end(pairs);
                self.pass(hash, key, record, pairs);
            }
            return;
        };
        let from = number * self.stride + STATES;
        let mut words = &mut self.entries[from..from + self.stride - STATES];
        for aggregate in &self.aggregates {
            let (state, rest) = words.split_at_mut(aggregate.word_count());
            aggregate.add_words(state, &mut self.beside, record);
            words = rest;
        }
    }

    /// The slot of a group and its number, or the empty slot where it belongs.
    fn find(&self, hash: u64, key: &[u8]) -> (usize, Option<usize>) {
        let mask = self.slots.len() - 1;
        let [first, second] = short(key);
        let mut slot = hash as usize & mask;
        loop {
            let Slot { number, tag } = self.slots[slot];
            if number == 0 {
                return (slot, None);
            }
            if tag == (hash >> 32) as u32 {
                let number = number as usize - 1;
                let entry = &self.entries[number * self.stride..][..STATES];
                let is_like = entry[HASH] == hash && entry[SHORT] == [first, second];
                if is_like && entry[KEY] as u32 as usize == key.len() && self.is_rest(entry, key) {
                    return (slot, Some(number));
                }
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Whether a key that begins like that of an entry, and is as long, is the same.
    fn is_rest(&self, entry: &[u64], key: &[u8]) -> bool {
        key.len() <= SHORT_BYTES || self.key_of(entry) == key
    }

    /// The key of an entry, of a long one.
    fn key_of(&self, entry: &[u64]) -> &[u8] {
        let from = (entry[KEY] >> 32) as usize;
        &self.keys[from..from + entry[KEY] as u32 as usize]
    }

    /// Begins a group in an empty slot. `false` if there is no room for it.
    fn begin(&mut self, (hash, key): (u64, &[u8]), slot: usize, record: &[Value<'_>]) -> bool {
        let long = if key.len() > SHORT_BYTES {
            key.len()
        } else {
            0
        };
        let beside: usize = self.aggregates.iter().map(Computed::beside_bytes).sum();
        let each = self.stride * size_of::<u64>() + 2 * size_of::<Slot>();
        // What grows is doubled, and for a moment there twice.
        let bytes = 2 * (each + long + beside);
        if self.bytes + bytes > self.bytes_max {
            return false;
        }
        self.bytes += bytes;
        let from = self.keys.len() as u64;
        if long > 0 {
            self.keys.extend_from_slice(key);
        }
        let at = self.entries.len();
        self.entries.extend([hash, from << 32 | key.len() as u64]);
        self.entries.extend(short(key));
        self.entries.resize(at + self.stride, 0);
        let mut words = &mut self.entries[at + STATES..];
        for aggregate in &self.aggregates {
            let (state, rest) = words.split_at_mut(aggregate.word_count());
            aggregate.begin_words(state, &mut self.beside, record);
            words = rest;
        }
        self.entry_count += 1;
        self.slots[slot] = Slot {
            number: self.entry_count as u32,
            tag: (hash >> 32) as u32,
        };
        if 2 * self.entry_count > self.slots.len() {
            self.grow();
        }
        true
    }

    fn grow(&mut self) {
        let count = 2 * self.slots.len();
        self.slots.clear();
        self.slots.resize(count, Slot::default());
        for (number, entry) in (1u32..).zip(self.entries.chunks_exact(self.stride)) {
            let mut slot = entry[HASH] as usize & (count - 1);
            while self.slots[slot].number != 0 {
                slot = (slot + 1) & (count - 1);
            }
            let tag = (entry[HASH] >> 32) as u32;
            self.slots[slot] = Slot { number, tag };
        }
    }

    /// Hands on a record as a group of its own.
    fn pass(&mut self, hash: u64, key: &[u8], record: &[Value<'_>], pairs: PairSink<'_>) {
        self.single.clear();
        self.single
            .extend(self.aggregates.iter().map(Computed::begin));
        self.value.clear();
        for (aggregate, state) in self.aggregates.iter().zip(&mut self.single) {
            aggregate.add(state, record);
            aggregate.write(state, &mut self.value);
        }
        hashed(hash, key, &mut self.key);
        pairs(&self.key, &self.value);
    }

    /// Hands on all groups: the table is empty afterwards.
    pub fn end(&mut self, pairs: PairSink<'_>) {
        let (mut whole, mut value) = (
            std::mem::take(&mut self.key),
            std::mem::take(&mut self.value),
        );
        for entry in self.entries.chunks_exact(self.stride) {
            let mut bytes = [0; SHORT_BYTES];
            let key = match entry[KEY] as u32 as usize {
                long if long > SHORT_BYTES => self.key_of(entry),
                length => unshort([entry[2], entry[3]], length, &mut bytes),
            };
            hashed(entry[HASH], key, &mut whole);
            value.clear();
            let mut words = &entry[STATES..];
            for aggregate in &self.aggregates {
                let (state, rest) = words.split_at(aggregate.word_count());
                aggregate.write_words(state, &self.beside, &mut value);
                words = rest;
            }
            pairs(&whole, &value);
        }
        (self.key, self.value) = (whole, value);
        if self.records < WORTH * self.entry_count as u64 {
            self.aside = ASIDE * self.records;
        }
        self.slots.fill(Slot::default());
        self.entries.clear();
        self.entry_count = 0;
        self.keys.clear();
        self.beside.clear();
        self.bytes = 0;
        self.records = 0;
    }
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
            assert_eq!(
                key[..HASH_BYTES],
                group_hash(&key[HASH_BYTES..]).to_be_bytes()
            );
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
    fn short_keys_come_back() {
        let text = b"abcdefghijklmnop";
        for count in 0..=SHORT_BYTES {
            assert_eq!(
                unshort(short(&text[..count]), count, &mut [9; SHORT_BYTES]),
                &text[..count]
            );
            // Any other byte makes other words.
            for at in 0..count {
                let mut other = text[..count].to_vec();
                other[at] = 0;
                assert_ne!(short(&other), short(&text[..count]));
            }
        }
    }

    #[test]
    fn it_stands_aside_where_nothing_repeats() {
        assert_eq!(check(0..100_000, 16 << 10), 100_000);
        let columns = [Column::new("key", Type::U64)];
        let (aggregate, _) = count().find(&columns).unwrap();
        let mut table = Table::new(&[aggregate], 16 << 10);
        let mut key = 0u64;
        while table.aside == 0 {
            table.add(&key.to_be_bytes(), &[Value::U64(key)], &mut |_, _| {});
            key += 1;
            assert!(key < 10_000, "it is full by now");
        }
        // And comes back.
        for _ in 0..10_000 {
            table.add(&[0; 8], &[Value::U64(0)], &mut |_, _| {});
        }
        assert!(table.aside == 0 && table.entry_count == 1);
    }
}
