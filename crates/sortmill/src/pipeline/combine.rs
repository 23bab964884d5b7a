//! Groups on their way into partitions: a table of those that came lately, so that each group goes there once rather than
//! once for each of its records.
//!
//! In come keys and records, out go keys with the state of their aggregates, when the table is full and when no records
//! come any more. It is bounded; where few records find their group in it, it stands aside for a while.

use super::aggregate::{Beside, Computed, Spot};
use super::column::Value;
use super::mix::group_hash;
use crate::short::{SHORT_BYTES, push_text, short, short_hash, unshort};
use crate::stage::kernel::prefetch_words;

/// Takes a key and a value.
pub type PairSink<'s> = &'s mut dyn FnMut(&[u8], &[u8]);

/// Bytes of a hash in front of a key.
pub const HASH_BYTES: usize = 8;
/// Records for each group below which the table is not worth its work.
pub const WORTH: u64 = 2;
/// It stands aside for as many times the records that showed that.
pub const ASIDE: u64 = 16;

// A group is a row of words: its key's length and where it lies, the key's first bytes, and the states of its aggregates. A key
// that is short lies in its row, a longer one among the long keys.

/// One more than the bytes of the key in the lower half, 0 where no group is, and in the upper where it begins among the long keys.
const KEY: usize = 0;
const SHORT: std::ops::Range<usize> = 1..3;
const STATES: usize = 3;
/// What keys and texts have taken of the memory is given back when the table is emptied, but for this part of it: others may need it next.
const KEPT_SHARE: usize = 8;
/// Places of an empty table, a power of two.
const PLACES_MIN: usize = 16;

/// Groups that came lately.
pub struct Table {
    aggregates: Vec<Computed>,
    /// A power of two of places, each a row of `stride` words, at most five of eight taken. Where a group's key says that it belongs,
    /// or in the next place that is free: so one look into memory finds most.
    rows: Vec<u64>,
    stride: usize,
    places: usize,
    group_count: usize,
    keys: Vec<u8>,
    beside: Beside,
    /// The states of a group alone, of a record that passes by.
    single: (Vec<u64>, Beside),
    /// Whether what states take beside their words may grow.
    grows: bool,
    spot: Spot,
    /// Of one group's states, beside words and keys.
    beside_bytes: usize,
    bytes_max: usize,
    /// Records since it was empty.
    records: u64,
    /// Records that are still to pass by.
    aside: u64,
    key: Vec<u8>,
    value: Vec<u8>,
}

/// A key that is looked for.
pub struct Short {
    hash: u64,
    words: [u64; 2],
    length: usize,
}

impl Short {
    /// The key.
    pub fn key<'k>(&self, bytes: &'k mut [u8; SHORT_BYTES]) -> &'k [u8] {
        unshort(self.words, self.length, bytes)
    }
}

impl Table {
    /// An empty one of at most `bytes_max` bytes. Where nobody tells it what record [`Table::comes_from`] where, nothing is kept
    /// if some of `aggregates` follow the order of the input.
    #[must_use]
    pub fn new(aggregates: &[Computed], bytes_max: u64, knows_spots: bool) -> Self {
        let combines = knows_spots || !aggregates.iter().any(Computed::follows_input);
        let words: usize = aggregates.iter().map(Computed::word_count).sum();
        let stride = STATES + words;
        Self {
            aggregates: aggregates.to_vec(),
            rows: vec![0; PLACES_MIN * stride],
            stride,
            places: PLACES_MIN,
            group_count: 0,
            keys: Vec::new(),
            beside: Beside::default(),
            single: (vec![0; words], Beside::default()),
            grows: aggregates.iter().any(Computed::grows),
            spot: Spot::default(),
            beside_bytes: aggregates.iter().map(Computed::beside_bytes).sum(),
            bytes_max: usize::try_from(bytes_max)
                .unwrap_or(usize::MAX)
                .min(1 << 30),
            records: 0,
            aside: if combines { 0 } else { u64::MAX },
            key: Vec::new(),
            value: Vec::new(),
        }
    }

    /// The next record comes from `spot`.
    pub fn comes_from(&mut self, spot: Spot) {
        self.spot = spot;
    }

    /// Takes a record of the group `key`.
    #[inline]
    pub fn add(&mut self, key: &[u8], record: &[Value<'_>], pairs: PairSink<'_>) {
        if self.aside > 0 {
            self.aside = self.aside.saturating_sub(u64::from(self.aside != u64::MAX));
            self.pass(key, record, pairs);
        } else if !self.keep(key, record) {
            self.end(pairs);
            self.pass(key, record, pairs);
        }
    }

    /// Takes a record of the group `key`, unless there is no room for a new one, or for what is to be held: then it answers `false`.
    #[inline]
    pub fn keep(&mut self, key: &[u8], record: &[Value<'_>]) -> bool {
        self.records += 1;
        let short = short(key);
        let from = self.find(key, short);
        if self.rows[from + KEY] == 0 {
            return self.begin(key, short, from, record);
        }
        if self.grows && !self.has_room(self.rows.len(), 0, self.needed(from, record)) {
            return false;
        }
        let mut words = &mut self.rows[from + STATES..from + self.stride];
        for aggregate in &self.aggregates {
            let (state, rest) = words.split_at_mut(aggregate.word_count());
            aggregate.add_words(state, &mut self.beside, record, &self.spot);
            words = rest;
        }
        true
    }

    /// How many groups there are, and how many bytes their keys have at most.
    #[must_use]
    pub fn sizes(&self) -> (usize, usize) {
        let groups = self.group_count;
        (groups, groups * SHORT_BYTES + self.keys.len())
    }

    /// Hands on all groups, each with the words of its states: the table is empty afterwards.
    pub fn take(&mut self, mut see: impl FnMut(&[u8], &[u64])) {
        let taken = |row: &&[u64]| row[KEY] != 0;
        for row in self.rows.chunks_exact(self.stride).filter(taken) {
            let mut bytes = [0; SHORT_BYTES];
            see(self.key_of(row, &mut bytes), &row[STATES..]);
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.rows.fill(0);
        self.group_count = 0;
        let kept = self.bytes_max / KEPT_SHARE;
        self.keys.clear();
        self.keys.shrink_to(kept);
        self.beside.clear(kept);
        self.records = 0;
    }

    /// What [`Table::count`] finds a key by, of which the cache is to have the row; nothing of a key that lies elsewhere.
    #[inline]
    pub fn fetch(&self, key: &[u8]) -> Option<Short> {
        if key.len() > SHORT_BYTES {
            return None;
        }
        Some(self.fetch_short(short(key), key.len()))
    }

    /// The same of a short key of `length` bytes, which are `words` with zeros behind them.
    #[inline(always)]
    pub fn fetch_short(&self, words: [u64; 2], length: usize) -> Short {
        let hash = short_hash(words, length);
        let from = (hash as usize & (self.places - 1)) * self.stride;
        prefetch_words(&self.rows, from, self.stride);
        Short {
            hash,
            words,
            length,
        }
    }

    /// Takes records of groups that are only counted or told apart, up to one of a new group for which there is no room: it answers
    /// how many it took.
    pub fn count(&mut self, keys: &[Short]) -> usize {
        for (number, short) in keys.iter().enumerate() {
            let from = self.find_hashed(short.hash, short.words, short.length, |_| true);
            let row = &mut self.rows[from..from + self.stride];
            if row[KEY] == 0 {
                let mut bytes = [0; SHORT_BYTES];
                if !self.begin(short.key(&mut bytes), short.words, from, &[]) {
                    return number;
                }
            } else if let Some(count) = row.get_mut(STATES) {
                *count += 1;
            }
        }
        keys.len()
    }

    /// Where the row of a group begins, or that of the empty place where it belongs.
    #[inline]
    fn find(&self, key: &[u8], short: [u64; 2]) -> usize {
        // Not the group's hash: nobody else knows it, and of a short key it takes few steps.
        let hash = match key.len() > SHORT_BYTES {
            true => group_hash(key),
            false => short_hash(short, key.len()),
        };
        self.find_hashed(hash, short, key.len(), |row| {
            key.len() <= SHORT_BYTES || self.long_key(row) == key
        })
    }

    #[inline]
    fn find_hashed(
        &self,
        hash: u64,
        short: [u64; 2],
        length: usize,
        is_rest: impl Fn(&[u64]) -> bool,
    ) -> usize {
        let mask = self.places - 1;
        let mut place = hash as usize & mask;
        loop {
            let from = place * self.stride;
            let row = &self.rows[from..from + STATES];
            let is_like = row[SHORT] == short && row[KEY] as u32 as usize == length + 1;
            if is_like && is_rest(row) || row[KEY] == 0 {
                return from;
            }
            place = (place + 1) & mask;
        }
    }

    /// The key of a row, of a long one.
    fn long_key(&self, row: &[u64]) -> &[u8] {
        let from = (row[KEY] >> 32) as usize;
        &self.keys[from..from + row[KEY] as u32 as usize - 1]
    }

    /// The key of a row.
    fn key_of<'k>(&'k self, row: &[u64], bytes: &'k mut [u8; SHORT_BYTES]) -> &'k [u8] {
        match row[KEY] as u32 as usize - 1 {
            long if long > SHORT_BYTES => self.long_key(row),
            length => unshort([row[SHORT.start], row[SHORT.start + 1]], length, bytes),
        }
    }

    /// Begins a group in the empty place whose row begins at `from`. `false` if there is no room for it.
    fn begin(&mut self, key: &[u8], short: [u64; 2], from: usize, record: &[Value<'_>]) -> bool {
        let long: &[u8] = if key.len() > SHORT_BYTES { key } else { &[] };
        let is_full = 8 * (self.group_count + 1) > 5 * self.places;
        let row_words = self.rows.len() * if is_full { 3 } else { 1 };
        let texts = match self.grows {
            true => self
                .aggregates
                .iter()
                .map(|one| one.text_begun(record))
                .sum(),
            false => 0,
        };
        if !self.has_room(row_words, 1, long.len() + texts) {
            return false;
        }
        let from = match is_full {
            true => {
                self.grow();
                self.find(key, short)
            }
            false => from,
        };
        let row = &mut self.rows[from..from + self.stride];
        row[KEY] = (self.keys.len() as u64) << 32 | (key.len() as u64 + 1);
        row[SHORT].copy_from_slice(&short);
        self.keys.extend_from_slice(long);
        let mut words = &mut row[STATES..];
        for aggregate in &self.aggregates {
            let (state, rest) = words.split_at_mut(aggregate.word_count());
            aggregate.begin_words(state, &mut self.beside, record, &self.spot);
            words = rest;
        }
        self.group_count += 1;
        true
    }

    /// How many bytes more are taken beside when the group whose row begins at `from` takes a record.
    fn needed(&self, from: usize, record: &[Value<'_>]) -> usize {
        let mut words = &self.rows[from + STATES..from + self.stride];
        let (mut bytes, mut is_earlier) = (0, false);
        for aggregate in &self.aggregates {
            let (state, rest) = words.split_at(aggregate.word_count());
            let (beside, spot) = (&self.beside, &self.spot);
            bytes += aggregate.needed(state, beside, record, spot, &mut is_earlier);
            words = rest;
        }
        bytes
    }

    /// Whether there is room for so many words of rows, so many groups more, and so many bytes more beside them: what lies there
    /// is doubled as it grows, and for a moment there twice.
    fn has_room(&self, row_words: usize, group_count: usize, bytes: usize) -> bool {
        let states = (self.group_count + group_count) * self.beside_bytes;
        let beside = states + self.keys.len() + self.beside.grown_bytes() + bytes;
        size_of::<u64>() * row_words + 3 * beside <= self.bytes_max
    }

    /// Doubles the places.
    fn grow(&mut self) {
        self.places *= 2;
        let stride = self.stride;
        let rows = std::mem::replace(&mut self.rows, vec![0; self.places * stride]);
        for row in rows.chunks_exact(stride).filter(|row| row[KEY] != 0) {
            let mut bytes = [0; SHORT_BYTES];
            let key = self.key_of(row, &mut bytes);
            let from = self.find(key, [row[SHORT.start], row[SHORT.start + 1]]);
            self.rows[from..from + stride].copy_from_slice(row);
        }
    }

    /// Hands on a record as a group of its own.
    fn pass(&mut self, key: &[u8], record: &[Value<'_>], pairs: PairSink<'_>) {
        let (words, beside) = &mut self.single;
        beside.clear(0);
        self.value.clear();
        let mut words = &mut words[..];
        for aggregate in &self.aggregates {
            let (state, rest) = words.split_at_mut(aggregate.word_count());
            aggregate.write_one((state, &mut *beside), record, &self.spot, &mut self.value);
            words = rest;
        }
        hashed(group_hash(key), key, &mut self.key);
        pairs(&self.key, &self.value);
    }

    /// Hands on all groups: the table is empty afterwards.
    pub fn end(&mut self, pairs: PairSink<'_>) {
        let (mut whole, mut value) = (
            std::mem::take(&mut self.key),
            std::mem::take(&mut self.value),
        );
        let taken = |row: &&[u64]| row[KEY] != 0;
        for row in self.rows.chunks_exact(self.stride).filter(taken) {
            let mut bytes = [0; SHORT_BYTES];
            let key = self.key_of(row, &mut bytes);
            hashed(group_hash(key), key, &mut whole);
            value.clear();
            let mut words = &row[STATES..];
            for aggregate in &self.aggregates {
                let (state, rest) = words.split_at(aggregate.word_count());
                aggregate.write_words(state, &self.beside, &mut value);
                words = rest;
            }
            pairs(&whole, &value);
        }
        (self.key, self.value) = (whole, value);
        if self.records < WORTH * self.group_count as u64 {
            self.aside = ASIDE * self.records;
        }
        self.clear();
    }
}

/// The key by which groups are brought together: hash and key.
pub fn hashed(hash: u64, key: &[u8], to: &mut Vec<u8>) {
    to.clear();
    to.extend_from_slice(&hash.to_be_bytes());
    push_text(key, to);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::pipeline::column::{Column, Type};
    use crate::pipeline::count_bytes::take_count;
    use crate::pipeline::{Aggregate, ExactSum, count, first, max, sum};

    /// Puts keys into a table of `bytes_max` bytes. What comes out must count them all; answers how many pairs that are.
    fn check(keys: impl Iterator<Item = u64>, bytes_max: u64) -> usize {
        let columns = [Column::new("key", Type::U64)];
        let (aggregate, _) = count().find(&columns).unwrap();
        let mut table = Table::new(&[aggregate], bytes_max, true);
        let (mut wanted, mut found) = (BTreeMap::new(), BTreeMap::new());
        let mut pairs = 0;
        let mut take = |key: &[u8], value: &[u8]| {
            pairs += 1;
            assert_eq!(
                key[..HASH_BYTES],
                group_hash(&key[HASH_BYTES..]).to_be_bytes()
            );
            let sum = found.entry(key[HASH_BYTES..].to_vec()).or_insert(0);
            *sum += take_count(&mut &value[..]).unwrap();
        };
        for key in keys {
            *wanted.entry(key.to_be_bytes().to_vec()).or_insert(0) += 1;
            table.add(&key.to_be_bytes(), &[Value::U64(key)], &mut take);
            assert!(8 * table.rows.len() as u64 <= bytes_max.max(1024));
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

    /// Longer texts in place of shorter ones used to fill the table, and so did one that would not have been held at all.
    #[test]
    fn texts_take_each_others_places() {
        let columns = [Column::new("text", Type::String)];
        let of = |one: Aggregate| one.find(&columns).unwrap().0;
        let mut aggregates = [of(max("text")), of(first("text"))];
        Computed::lead(&mut aggregates);
        let mut table = Table::new(&aggregates, 64 << 10, true);
        let (mut pairs, mut found) = (0, Vec::new());
        for number in 0..20_000_u64 {
            let group = [b'a' + (number % 16) as u8];
            // Each greater than the one before, of lengths that go up and down; from time to time one that is long, and less.
            let text = match number % 1000 {
                999 => "0".repeat(40_000),
                _ => format!("1{number:05}{}", "x".repeat(number as usize * 7 % 90)),
            };
            table.comes_from([0, number, 0]);
            table.add(&group, &[Value::Bytes(text.as_bytes())], &mut |_, _| {
                pairs += 1
            });
        }
        table.end(&mut |key, value| found.push((key[HASH_BYTES..].to_vec(), value.to_vec())));
        assert_eq!((pairs, found.len()), (0, 16));
        for (key, value) in found {
            let (mut from, mut is_earlier) = (&value[..], false);
            let told = aggregates.iter().map(|one| {
                let mut state = one.begin();
                one.merge(&mut state, &mut from, &mut is_earlier).unwrap();
                one.value(&state).unwrap().bytes().to_vec()
            });
            let told: Vec<Vec<u8>> = told.collect();
            let group = u64::from(key[0] - b'a');
            let last = (0..20_000)
                .rev()
                .find(|number| number % 16 == group && number % 1000 != 999);
            assert!(told[0].starts_with(format!("1{:05}", last.unwrap()).as_bytes()));
            assert!(told[1].starts_with(format!("1{group:05}").as_bytes()));
            assert!(from.is_empty());
        }
    }

    /// Sums of numbers of very different sizes take more memory than others, and the table stays as small as it is to be.
    #[test]
    fn sums_that_grow_have_room() {
        let columns = [Column::new("number", Type::F64)];
        let aggregate = sum("number").find(&columns).unwrap().0;
        for (groups, sizes, bytes_max, is_all_kept) in [
            (16_u64, 1_u64, 64 << 10, true),
            (16, 5, 64 << 10, true),
            (100, 1, 64 << 10, true),
            (100, 5, 64 << 10, false),
        ] {
            let mut table = Table::new(std::slice::from_ref(&aggregate), bytes_max, true);
            let (mut found, mut most) = (Vec::new(), 0);
            for number in 0..20_000_u64 {
                let value = (10.0f64).powi((number / groups % sizes) as i32 * 60) + number as f64;
                let key = (number % groups).to_be_bytes();
                table.add(&key, &[Value::F64(value)], &mut |key, value| {
                    found.push((key.to_vec(), value.to_vec()));
                });
                most = most.max(table.beside.grown_bytes());
            }
            assert_eq!(
                found.is_empty(),
                is_all_kept,
                "{groups} groups, {sizes} sizes"
            );
            assert_eq!(most > 0, sizes > 1);
            assert!(3 * most as u64 <= bytes_max, "{most}");
            table.end(&mut |key, value| found.push((key.to_vec(), value.to_vec())));
            let mut sums = vec![aggregate.begin(); groups as usize];
            for (key, value) in &found {
                let group = u64::from_be_bytes(key[HASH_BYTES..].try_into().unwrap());
                let (state, mut from) = (&mut sums[group as usize], &value[..]);
                aggregate.merge(state, &mut from, &mut false).unwrap();
            }
            for (group, state) in (0..groups).zip(&sums) {
                let mut whole = ExactSum::default();
                for number in (group..20_000).step_by(groups as usize) {
                    let power = (number / groups % sizes) as i32 * 60;
                    whole.add((10.0f64).powi(power) + number as f64);
                }
                let Value::F64(sum) = aggregate.value(state).unwrap() else {
                    panic!("no float");
                };
                assert_eq!(sum.to_bits(), whole.value().to_bits());
            }
        }
    }

    /// Keys that differ in one byte, or in the last digits of a number, as minutes and numbers of users do, used to begin at one place.
    #[test]
    fn keys_that_are_nearly_alike_have_places_of_their_own() {
        let place_count = |keys: Vec<Vec<u8>>| {
            let place = |key: &Vec<u8>| short_hash(short(key), key.len()) & 0xfff;
            keys.iter()
                .map(place)
                .collect::<std::collections::BTreeSet<_>>()
                .len()
        };
        for length in 1..=SHORT_BYTES {
            for at in 0..length {
                let key = |byte: u8| {
                    let mut key = vec![b'0'; length];
                    key[at] = byte;
                    key
                };
                let found = place_count((0..=u8::MAX).map(key).collect());
                assert!(found > 200, "byte {at} of {length}: {found} of 256");
            }
        }
        let minutes = (0..60).map(|minute| format!("2026-11-23T10:{minute:02}").into_bytes());
        assert!(place_count(minutes.collect()) > 50);
        let users = (0..1000).map(|user| format!("user{user:012}").into_bytes());
        assert!(place_count(users.collect()) > 800);
    }

    #[test]
    fn it_stands_aside_where_nothing_repeats() {
        assert_eq!(check(0..100_000, 16 << 10), 100_000);
        let columns = [Column::new("key", Type::U64)];
        let (aggregate, _) = count().find(&columns).unwrap();
        let mut table = Table::new(&[aggregate], 16 << 10, true);
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
        assert!(table.aside == 0 && table.group_count == 1);
    }
}
