//! Groups of one whole number, with aggregates that are a word each: they go to partitions as records of a fixed size,
//! rather than as pairs.
//!
//! ```text
//! | mixed key, 8, the highest byte first | a word of 8 for each aggregate, little-endian |
//! ```
//!
//! The key is mixed (`mix.rs`), so that it is its own hash. A word is what an aggregate makes of one record or of several,
//! which look alike: so groups that came lately are combined in a table of rows of words, and what does not fit there goes
//! by as it is. A pair of the same would have 8 bytes of lengths, 8 of a hash and a wider state besides; records of one size
//! need no table of where they begin. As in `combine.rs`, the table stands aside for a while where few records find their
//! group in it; what comes often is then still kept, in the few places of a cache that the next group takes over (CD 1.7.2: a
//! small combiner for the commonest words).

use std::sync::Arc;

use super::aggregate::{Computed, State, in_group};
use super::column::{Column, Type, Value, corrupt, row};
use super::combine::{ASIDE, PairSink, WORTH};
use super::mix::{mix, unmix};
use super::verbs::Sink;
use crate::error::Result;
use crate::job::{Job, Join};
use crate::order::{Format, KeyPart};
use crate::stage::kernel::prefetch_words;

/// Bytes of a key, and of a word.
const WORD_BYTES: usize = 8;
/// By which numbers with a sign are in the order of those without.
const SIGN: u64 = 1 << 63;
/// In a place of the table where no group is. A group whose key looks so has a place of its own behind all others.
const NOBODY: u64 = u64::MAX;
/// Places at first, and those that are kept while the table stands aside.
const PLACES_MIN: usize = 1024;

/// How a group that is so narrow lies in a record.
#[derive(Clone)]
pub struct Narrow {
    /// Which column the group is, and its type.
    at: usize,
    kind: Type,
    aggregates: Vec<Computed>,
    /// Of its one aggregate words are added, as numbers without a sign.
    adds: bool,
}

impl Narrow {
    /// If groups of the columns `by` with these aggregates can lie so.
    #[must_use]
    pub fn new(table: &[Column], by: &[usize], aggregates: &[Computed]) -> Option<Self> {
        let &[at] = by else {
            return None;
        };
        let (kind, nullable) = (table[at].kind, table[at].nullable);
        let is_narrow = matches!(kind, Type::I64 | Type::U64 | Type::Timestamp) && !nullable;
        (is_narrow && aggregates.iter().all(Computed::is_word)).then(|| Self {
            at,
            kind,
            aggregates: aggregates.to_vec(),
            adds: matches!(aggregates, [one] if one.adds_words()),
        })
    }

    /// Bytes of a record.
    #[must_use]
    pub fn record_bytes(&self) -> u32 {
        (WORD_BYTES * (1 + self.aggregates.len())) as u32
    }

    /// Says in `job` what its records are, made by a function or read, and how they are joined.
    pub fn ask(&self, job: &mut Job) {
        let narrow = self.clone();
        job.joins = Some(Arc::new(move |bytes_max| {
            Box::new(Words::new(&narrow, bytes_max))
        }));
        match job.map_makes_pairs {
            true => job.pair_bytes = Some(self.record_bytes()),
            false => {
                job.format = Format::Fixed(self.record_bytes());
                job.keys = vec![KeyPart::plain(0, WORD_BYTES as u32)];
            }
        }
    }

    /// The mixed key of a record's group, and the words as bytes. `None` if they are none.
    fn halves<'r>(&self, record: &'r [u8]) -> Option<(u64, &'r [[u8; WORD_BYTES]])> {
        let (words, rest) = record.as_chunks();
        let is_one = rest.is_empty() && words.len() == 1 + self.aggregates.len();
        let (key, words) = words.split_first().filter(|_| is_one)?;
        Some((u64::from_be_bytes(*key), words))
    }

    /// The key that was mixed.
    fn key(&self, mixed: u64) -> Value<'static> {
        let key = unmix(mixed);
        match self.kind {
            Type::I64 => Value::I64((key ^ SIGN) as i64),
            Type::Timestamp => Value::Timestamp((key ^ SIGN) as i64),
            _ => Value::U64(key),
        }
    }

    /// Whether the groups are the values of column `at`, which no aggregate looks at.
    #[must_use]
    pub fn is_only_by(&self, at: usize) -> bool {
        let looks = |one: &Computed| one.column() == Some(at);
        self.at == at && self.kind == Type::U64 && !self.aggregates.iter().any(looks)
    }

    /// The words of one record.
    fn words(&self, record: &[Value<'_>]) -> impl Iterator<Item = u64> {
        self.aggregates.iter().map(|one| one.word(record))
    }

    /// Joins words with those of their group. `false` if a sum has no room: then they are as they were.
    #[inline]
    fn join(&self, words: &mut [u64], new: &[u64]) -> bool {
        if self.adds {
            return add(&mut words[0], new[0]);
        }
        let all = || self.aggregates.iter().zip(new);
        let mut joined = all().zip(&*words);
        if !joined.all(|((one, &new), &word)| one.join(word, new).is_some()) {
            return false;
        }
        for ((one, &new), word) in all().zip(words) {
            *word = one.join(*word, new).unwrap_or(*word);
        }
        true
    }

    fn mixed(&self, record: &[Value<'_>]) -> u64 {
        let key = match record[self.at] {
            Value::I64(value) | Value::Timestamp(value) => value as u64 ^ SIGN,
            Value::U64(value) => value,
            other => panic!("{other:?} is no whole number"),
        };
        mix(key)
    }
}

/// Groups that came lately.
pub struct Words {
    narrow: Narrow,
    /// Rows of a mixed key and words: a power of two of places, at most half of them taken, and one behind them.
    rows: Vec<u64>,
    stride: usize,
    places: usize,
    places_max: usize,
    group_count: usize,
    /// Whether the place behind all others is taken.
    has_nobody: bool,
    /// Records since it was empty, and those that are still to pass by.
    records: u64,
    aside: u64,
    /// The words of a record, and a group's as bytes.
    new: Vec<u64>,
    value: Vec<u8>,
}

/// So many keys are looked for together: what the table holds of them is asked for before.
const TOGETHER: usize = 32;

/// So many bytes of records are handed on at once.
const PUSHED_BYTES: usize = 1 << 10;

impl Words {
    /// An empty table of at most `bytes_max` bytes.
    #[must_use]
    pub fn new(narrow: &Narrow, bytes_max: u64) -> Self {
        let stride = 1 + narrow.aggregates.len();
        // While it grows the one before is there too.
        let most = usize::try_from(bytes_max / 3 * 2).unwrap_or(usize::MAX) / (stride * WORD_BYTES);
        let places_max = most.checked_ilog2().map_or(0, |bits| 1 << bits);
        Self {
            rows: vec![NOBODY; (PLACES_MIN + 1) * stride],
            narrow: narrow.clone(),
            stride,
            places: PLACES_MIN,
            places_max: PLACES_MIN.max(places_max),
            group_count: 0,
            has_nobody: false,
            records: 0,
            aside: 0,
            new: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Takes a record.
    pub fn add(&mut self, record: &[Value<'_>], pairs: PairSink<'_>) {
        let mixed = self.narrow.mixed(record);
        let mut new = std::mem::take(&mut self.new);
        self.words_of(record, &mut new);
        self.add_words(mixed, &new, pairs);
        self.new = new;
    }

    /// What a record adds to its group, in place of what is in `words`.
    pub fn words_of(&self, record: &[Value<'_>], words: &mut Vec<u64>) {
        words.clear();
        words.extend(self.narrow.words(record));
    }

    /// Takes a record of each of the groups `numbers`, all of which add the same words; records that come out go to `push`, many back to
    /// back, and are gathered in `out` for that.
    pub fn add_numbers(
        &mut self,
        numbers: &[u64],
        new: &[u64],
        out: &mut Vec<u8>,
        push: &mut dyn FnMut(&[u8]),
    ) {
        out.clear();
        let mut put = |key: &[u8], words: &[u8]| {
            out.extend_from_slice(key);
            out.extend_from_slice(words);
            // All groups of the table may come.
            if out.len() >= PUSHED_BYTES {
                push(out);
                out.clear();
            }
        };
        for numbers in numbers.chunks(TOGETHER) {
            let mut mixed = [0; TOGETHER];
            for (mixed, &number) in mixed.iter_mut().zip(numbers) {
                *mixed = mix(number);
                self.fetch(*mixed);
            }
            for &mixed in &mixed[..numbers.len()] {
                self.add_words(mixed, new, &mut put);
            }
        }
        push(out);
    }

    /// Asks for where a group belongs, which is in the cache while the table stands aside.
    #[inline]
    fn fetch(&self, mixed: u64) {
        if self.aside == 0 {
            let place = mixed as usize & (self.places - 1);
            prefetch_words(&self.rows, place * self.stride, 1);
        }
    }

    /// Takes what a record adds to its group.
    #[inline]
    fn add_words<F>(&mut self, mixed: u64, new: &[u64], pairs: &mut F)
    where
        F: FnMut(&[u8], &[u8]) + ?Sized,
    {
        if self.aside > 0 {
            return self.pass(mixed, new, pairs);
        }
        self.records += 1;
        let (place, is_new) = self.enter(mixed);
        let row = &mut self.rows[place * self.stride..][..self.stride];
        let (key, words) = row.split_at_mut(1);
        key[0] = mixed;
        if is_new {
            set(words, new);
        } else if !self.narrow.join(words, new) {
            // A sum that has no room goes on its way, and another one begins.
            put(mixed, words, &mut self.value, pairs);
            set(words, new);
        }
        if is_new {
            self.group_count += 1;
            if 2 * self.group_count > self.places {
                self.make_room(pairs);
            }
        }
    }

    /// The same while the table stands aside: it is kept where there is one of its group, else in the place of another.
    #[inline]
    fn pass<F>(&mut self, mixed: u64, new: &[u64], pairs: &mut F)
    where
        F: FnMut(&[u8], &[u8]) + ?Sized,
    {
        let place = match mixed {
            NOBODY => self.places,
            _ => mixed as usize & (PLACES_MIN - 1),
        };
        let row = &mut self.rows[place * self.stride..][..self.stride];
        let (key, words) = row.split_at_mut(1);
        if mixed == NOBODY {
            put(mixed, new, &mut self.value, pairs);
        } else if key[0] != mixed || !self.narrow.join(words, new) {
            if key[0] != NOBODY {
                put(key[0], words, &mut self.value, pairs);
            }
            key[0] = mixed;
            set(words, new);
        }
        self.aside -= 1;
        if self.aside == 0 {
            // From now on a group's place is another one.
            self.end(pairs);
        }
    }

    /// The place of a group that is there from now on, and whether it was not before.
    #[inline]
    fn enter(&mut self, mixed: u64) -> (usize, bool) {
        let place = self.find(mixed);
        let is_new = match place == self.places {
            true => !std::mem::replace(&mut self.has_nobody, true),
            false => self.rows[place * self.stride] == NOBODY,
        };
        (place, is_new)
    }

    /// The place of a group, or the one where it belongs.
    #[inline]
    fn find(&self, mixed: u64) -> usize {
        if mixed == NOBODY {
            return self.places;
        }
        let mask = self.places - 1;
        let mut place = mixed as usize & mask;
        loop {
            let found = self.rows[place * self.stride];
            if found == mixed || found == NOBODY {
                return place;
            }
            place = (place + 1) & mask;
        }
    }

    /// Joins records of so many words each with those of their groups, of which `join` joins all but the key. `false` if they are none,
    /// or there is no room for them, or for a sum.
    fn join_all<const WORDS: usize>(
        &mut self,
        records: &[u8],
        join: impl Fn(&Narrow, &mut [u64], &[u64]) -> bool,
    ) -> bool {
        let (words, rest) = records.as_chunks::<WORD_BYTES>();
        let (records, left) = words.as_chunks::<WORDS>();
        if self.stride != WORDS || !rest.is_empty() || !left.is_empty() {
            return false;
        }
        for records in records.chunks(TOGETHER) {
            for record in records {
                self.fetch(u64::from_be_bytes(record[0]));
            }
            for record in records {
                let mixed = u64::from_be_bytes(record[0]);
                let (place, is_new) = self.enter(mixed);
                let new = record.map(u64::from_le_bytes);
                let row = &mut self.rows[place * WORDS..][..WORDS];
                if is_new {
                    row.copy_from_slice(&new);
                    row[0] = mixed;
                    self.group_count += 1;
                    if 2 * self.group_count > self.places && !self.grow() {
                        return false;
                    }
                } else if !join(&self.narrow, &mut row[1..], &new[1..]) {
                    return false;
                }
            }
        }
        true
    }

    /// The same of one record, of any number of words.
    fn join_one(&mut self, record: &[u8]) -> bool {
        let Some((mixed, words)) = self.narrow.halves(record) else {
            return false;
        };
        let mut new = std::mem::take(&mut self.new);
        new.clear();
        new.extend(words.iter().map(|&word| u64::from_le_bytes(word)));
        let (place, is_new) = self.enter(mixed);
        let row = &mut self.rows[place * self.stride..][..self.stride];
        let (key, words) = row.split_at_mut(1);
        let fits = match is_new {
            true => {
                key[0] = mixed;
                set(words, &new);
                self.group_count += 1;
                2 * self.group_count <= self.places || self.grow()
            }
            false => self.narrow.join(words, &new),
        };
        self.new = new;
        fits
    }

    /// Doubles the places, or empties them if there may be no more.
    fn make_room<F>(&mut self, pairs: &mut F)
    where
        F: FnMut(&[u8], &[u8]) + ?Sized,
    {
        if !self.grow() {
            self.end(pairs);
        }
    }

    /// Doubles the places. `false` if there may be no more.
    fn grow(&mut self) -> bool {
        if self.places == self.places_max {
            return false;
        }
        let stride = self.stride;
        let before = self.places;
        self.places = 2 * before;
        let rows = vec![NOBODY; (self.places + 1) * stride];
        let old = std::mem::replace(&mut self.rows, rows);
        for (place, row) in old.chunks_exact(stride).enumerate() {
            let place = match place == before {
                true => self.places,
                false if row[0] == NOBODY => continue,
                false => self.find(row[0]),
            };
            self.rows[place * stride..][..stride].copy_from_slice(row);
        }
        true
    }

    /// Hands on all groups: the table is empty afterwards.
    pub fn end<F>(&mut self, pairs: &mut F)
    where
        F: FnMut(&[u8], &[u8]) + ?Sized,
    {
        for (place, row) in self.rows.chunks_exact(self.stride).enumerate() {
            let is_taken = match place == self.places {
                true => self.has_nobody,
                false => row[0] != NOBODY,
            };
            if is_taken {
                put(row[0], &row[1..], &mut self.value, pairs);
            }
        }
        if self.records < WORTH * self.group_count as u64 {
            self.aside = ASIDE * self.records;
        }
        self.rows.fill(NOBODY);
        self.has_nobody = false;
        (self.group_count, self.records) = (0, 0);
    }
}

/// What comes out are records as they go in.
impl Join for Words {
    fn add(&mut self, records: &[u8]) -> bool {
        let bytes = self.narrow.record_bytes() as usize;
        match self.narrow.aggregates.len() {
            0 => self.join_all::<1>(records, |_, _, _| true),
            1 if self.narrow.adds => {
                self.join_all::<2>(records, |_, words, new| add(&mut words[0], new[0]))
            }
            1 => self.join_all::<2>(records, Narrow::join),
            2 => self.join_all::<3>(records, Narrow::join),
            _ => records.chunks(bytes).all(|record| self.join_one(record)),
        }
    }

    fn take(&mut self, into: &mut Vec<u8>) {
        self.end(&mut |key, words| {
            into.extend_from_slice(key);
            into.extend_from_slice(words);
        });
    }
}

/// Adds a word to another, if the sum has room there.
#[inline]
fn add(word: &mut u64, new: u64) -> bool {
    let sum = word.checked_add(new);
    *word = sum.unwrap_or(*word);
    sum.is_some()
}

/// To call for a copy of a single word would take longer.
#[inline]
fn set(words: &mut [u64], new: &[u64]) {
    match (words, new) {
        ([word], [new]) => *word = *new,
        (words, new) => words.copy_from_slice(new),
    }
}

/// Hands on a group.
#[inline]
fn put<F>(mixed: u64, words: &[u64], value: &mut Vec<u8>, pairs: &mut F)
where
    F: FnMut(&[u8], &[u8]) + ?Sized,
{
    let key = mixed.to_be_bytes();
    if let &[word] = words {
        return pairs(&key, &word.to_le_bytes());
    }
    value.clear();
    words
        .iter()
        .for_each(|word| value.extend_from_slice(&word.to_le_bytes()));
    pairs(&key, value);
}

/// Groups again, of records in order: the one that is open.
pub struct Open {
    narrow: Narrow,
    mixed: Option<u64>,
    /// Of its records, those but that the states are of.
    words: Vec<u64>,
    /// Empty until a sum has no room in its word.
    states: Vec<State>,
}

impl Open {
    /// No group is.
    #[must_use]
    pub fn new(narrow: &Narrow) -> Self {
        Self {
            narrow: narrow.clone(),
            mixed: None,
            words: Vec::new(),
            states: Vec::new(),
        }
    }

    /// Takes the next record; a group that ends with the one before goes to `sink`, its key and what is computed of it.
    ///
    /// # Errors
    /// What `sink` answers, and for a record that is none.
    #[inline]
    pub fn add(&mut self, record: &[u8], sink: Sink<'_>) -> Result<()> {
        let (mixed, words) = self.narrow.halves(record).ok_or_else(corrupt)?;
        let aggregates = &self.narrow.aggregates;
        if self.mixed != Some(mixed) {
            self.end(sink)?;
            self.mixed = Some(mixed);
            self.words.clear();
            self.words
                .extend(words.iter().map(|&word| u64::from_le_bytes(word)));
            return Ok(());
        }
        let joined = |(at, word): (usize, &[u8; WORD_BYTES])| {
            aggregates[at].join(self.words[at], u64::from_le_bytes(*word))
        };
        if words
            .iter()
            .enumerate()
            .map(joined)
            .any(|word| word.is_none())
        {
            self.widen()?;
            self.words.clear();
            self.words
                .extend(words.iter().map(|&word| u64::from_le_bytes(word)));
            return Ok(());
        }
        for (at, word) in words.iter().enumerate() {
            let word = aggregates[at].join(self.words[at], u64::from_le_bytes(*word));
            self.words[at] = word.ok_or_else(corrupt)?;
        }
        Ok(())
    }

    /// Adds the words to the states.
    fn widen(&mut self) -> Result<()> {
        let aggregates = &self.narrow.aggregates;
        if self.states.is_empty() {
            self.states.extend(aggregates.iter().map(Computed::begin));
        }
        let mut all = aggregates.iter().zip(&mut self.states).zip(&self.words);
        let merged = all.try_for_each(|((one, state), &word)| one.merge_word(state, word));
        merged.ok_or_else(corrupt)
    }

    /// Ends the group that is open, if one is.
    ///
    /// # Errors
    /// What `sink` answers, and for a sum that its type does not hold.
    pub fn end(&mut self, sink: Sink<'_>) -> Result<()> {
        let Some(mixed) = self.mixed.take() else {
            return Ok(());
        };
        if !self.states.is_empty() {
            self.widen()?;
        }
        let (narrow, words, states) = (&self.narrow, &self.words, &self.states);
        let get = |number: usize| match number.checked_sub(1) {
            None => Ok(narrow.key(mixed)),
            Some(at) if states.is_empty() => Ok(narrow.aggregates[at].of_word(words[at])),
            Some(at) => narrow.aggregates[at]
                .value(&states[at])
                .map_err(|error| in_group(error, [narrow.key(mixed)])),
        };
        let done = row(1 + words.len(), get, sink);
        self.states.clear();
        done
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{Aggregate, count, max, sum};
    use super::*;

    /// Adds records of a key and a number to a table of `bytes_max` bytes. What comes out, merged, must be what a map
    /// of them holds. Answers how many pairs came out.
    fn check(records: &[(i64, i64)], bytes_max: u64) -> usize {
        let columns = [Column::new("key", Type::I64), Column::new("n", Type::I64)];
        let asked: [Aggregate; 3] = [count(), sum("n"), max("n")];
        let computed = asked.map(|one| one.find(&columns).unwrap().0);
        let narrow = Narrow::new(&columns, &[0], &computed).unwrap();
        let mut words = Words::new(&narrow, bytes_max);
        let mut pairs = Vec::new();
        let mut take = |mixed: &[u8], value: &[u8]| pairs.push([mixed, value].concat());
        for &(key, n) in records {
            words.add(&[Value::I64(key), Value::I64(n)], &mut take);
            let bytes = words.rows.len() * WORD_BYTES;
            assert!(words.places == PLACES_MIN || bytes as u64 <= bytes_max);
        }
        words.end(&mut take);
        words.end(&mut |_, _| panic!("it was empty"));
        let mut wanted: BTreeMap<i64, (u64, i128, i64)> = BTreeMap::new();
        for &(key, n) in records {
            let one = wanted.entry(key).or_insert((0, 0, n));
            *one = (one.0 + 1, one.1 + i128::from(n), one.2.max(n));
        }
        let count = pairs.len();
        if let Some(joined) = joined(&narrow, records, bytes_max) {
            // What was combined may be joined, and what is joined is of one record to a key.
            assert_eq!(joined.len(), wanted.len());
            pairs = joined;
        }
        pairs.sort();
        let (mut open, mut found) = (Open::new(&narrow), BTreeMap::new());
        let mut take = |group: &[Value<'_>]| {
            let &[
                Value::I64(key),
                Value::U64(count),
                Value::I64(sum),
                Value::I64(max),
            ] = group
            else {
                panic!("{group:?}");
            };
            assert!(found.insert(key, (count, i128::from(sum), max)).is_none());
            Ok(())
        };
        let mut add = |record: &Vec<u8>| open.add(record, &mut take);
        let mut done = pairs.iter().try_for_each(&mut add);
        if done.is_ok() {
            done = open.end(&mut take);
        }
        match wanted.values().all(|one| i64::try_from(one.1).is_ok()) {
            true => assert!(done.is_ok() && found == wanted),
            false => assert!(done.unwrap_err().cause.contains("beyond what i64 holds")),
        }
        count
    }

    /// The same records, each as it goes to a partition by itself, joined there. `None` if there was no room for a group or a sum.
    fn joined(narrow: &Narrow, records: &[(i64, i64)], bytes_max: u64) -> Option<Vec<Vec<u8>>> {
        let mut words = Words::new(narrow, bytes_max);
        let mut bytes = Vec::new();
        // What did not fit is gone when the next ones come.
        for _ in 0..2 {
            let fits = records.iter().all(|&(key, n)| {
                let record = [Value::I64(key), Value::I64(n)];
                let (mixed, mut value) = (narrow.mixed(&record), Vec::new());
                let mut one = Vec::new();
                let each: Vec<u64> = narrow.words(&record).collect();
                put(mixed, &each, &mut value, &mut |key: &[u8], value: &[u8]| {
                    one = [key, value].concat();
                });
                Join::add(&mut words, &one)
            });
            bytes.clear();
            words.take(&mut bytes);
            if !fits {
                return None;
            }
        }
        assert!(!Join::add(&mut words, b"no record"));
        let size = narrow.record_bytes() as usize;
        Some(bytes.chunks_exact(size).map(<[u8]>::to_vec).collect())
    }

    #[test]
    fn groups_are_combined() {
        assert_eq!(check(&[], 1 << 20), 0);
        let few: Vec<_> = (0..20_000).map(|n| (n % 100 - 50, n - 3000)).collect();
        assert_eq!(check(&few, 1 << 20), 100);
        // More groups than there is room for.
        let many: Vec<_> = (0..20_000).map(|n| (n * 7 % 5000, -n)).collect();
        assert!(check(&many, 32 << 10) > 5000);
        assert_eq!(check(&many, 1 << 20), 5000);
        // Nothing repeats, so most pass by.
        let alone: Vec<_> = (0..20_000).map(|n| (n, 1)).collect();
        assert_eq!(check(&alone, 16 << 10), 20_000);
    }

    #[test]
    fn a_key_that_looks_like_none_and_sums_without_room() {
        let nobody = (unmix(NOBODY) ^ 1 << 63) as i64;
        let mut records = vec![(nobody, 3), (nobody, 4), (0, 1), (nobody, 5)];
        records.extend((0..200).map(|n| (n, n)));
        records.push((nobody, -1));
        assert_eq!(check(&records, 1 << 20), 201);
        let wide = [i64::MAX, i64::MAX, 5, i64::MIN, i64::MIN, -7];
        check(&wide.map(|n| (9, n)), 1 << 20);
        check(&[i64::MAX, 1].map(|n| (9, n)), 1 << 20);
    }

    #[test]
    fn numbers_at_once_are_as_those_of_one_record_each() {
        let columns = ["to", "n"].map(|name| Column::new(name, Type::U64));
        let mut state = 20_261_127_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for asked in [
            vec![],
            vec![count()],
            vec![sum("n")],
            vec![max("n"), sum("n")],
        ] {
            let find = |one: &Aggregate| one.find(&columns).unwrap().0;
            let computed: Vec<Computed> = asked.iter().map(find).collect();
            let narrow = Narrow::new(&columns, &[0], &computed).unwrap();
            assert!(narrow.is_only_by(0));
            assert!(!narrow.is_only_by(1));
            for (bytes_max, groups) in [(0, 3000), (64 << 10, 20_000), (1 << 20, 300)] {
                let mut both = [0, 1].map(|_| Words::new(&narrow, bytes_max));
                let mut out = [Vec::new(), Vec::new()];
                let mut new = Vec::new();
                for n in 0..2000 {
                    let (count, of) = (random(90), 1 + random(groups));
                    let mut numbers: Vec<u64> = (0..count).map(|_| random(of)).collect();
                    numbers.extend((n % 100 == 0).then(|| unmix(NOBODY)));
                    // Some sums have no room.
                    let n = u64::MAX >> random(64);
                    let [one, many] = &mut both;
                    for &number in &numbers {
                        let record = [Value::U64(number), Value::U64(n)];
                        one.add(&record, &mut |key, words| {
                            out[0].extend_from_slice(key);
                            out[0].extend_from_slice(words);
                        });
                    }
                    many.words_of(&[Value::Null, Value::U64(n)], &mut new);
                    let mut push = |records: &[u8]| {
                        assert!(records.len() < PUSHED_BYTES + 24);
                        out[1].extend_from_slice(records);
                    };
                    many.add_numbers(&numbers, &new, &mut Vec::new(), &mut push);
                }
                for (words, out) in both.iter_mut().zip(&mut out) {
                    words.take(out);
                }
                assert!(out[0] == out[1], "{bytes_max} {groups}");
                assert!(out[0].len() > 100 * narrow.record_bytes() as usize);
            }
        }
    }

    #[test]
    fn groups_that_are_not_narrow() {
        let columns = [
            Column::new("key", Type::U64),
            Column::new("text", Type::String),
            Column::new("share", Type::F64),
        ];
        let narrow = |by: &[usize], asked: Aggregate| {
            let computed = asked.find(&columns).unwrap().0;
            Narrow::new(&columns, by, &[computed]).is_some()
        };
        assert!(narrow(&[0], count()) && narrow(&[0], max("share")));
        assert!(!narrow(&[0], sum("share")) && !narrow(&[0], max("text")));
        assert!(!narrow(&[1], count()) && !narrow(&[2], count()) && !narrow(&[0, 1], count()));
    }
}
