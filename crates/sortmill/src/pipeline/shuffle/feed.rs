//! The feed of a shuffle: records become pairs, in a mapper, or in the reducer of the phase before.

use std::collections::BinaryHeap;
use std::ops::Range;

use sortmill_io::sync::Arc;
use sortmill_io::sync::atomic::AtomicBool;

use super::near::Near;
use super::{How, Shuffle};
use crate::pipeline::aggregate::{Computed, State};
use crate::pipeline::column::Value;
use crate::pipeline::combine::{HASH_BYTES, PairSink, Table};
use crate::pipeline::count_bytes::{COUNT_BYTES_MAX, count_bytes};
use crate::pipeline::draw::Place;
use crate::pipeline::key;
use crate::pipeline::mix::group_hash;
use crate::pipeline::tallies::Tallies;
use crate::pipeline::words::Words;

/// Makes pairs of records.
pub(in crate::pipeline) struct Feed {
    shuffle: Arc<Shuffle>,
    key: Vec<u8>,
    whole: Vec<u8>,
    value: Vec<u8>,
    table: Option<Table>,
    /// In its place, those of groups that are only counted or told apart.
    tallies: Option<Tallies>,
    /// How many values groups have that came lately.
    counts: Option<Table>,
    /// Where groups stand together, the one that is open.
    near: Option<Near>,
    pub words: Option<Words>,
    /// Where the record lies that the next ones are made of, and how many have come from there.
    place: Option<Place>,
    from_place: u64,
    follows_input: bool,
    /// The least pairs that have come, the greatest of them first; of how many bytes, and how many there may be.
    least: BinaryHeap<(Vec<u8>, Vec<u8>)>,
    least_bytes: u64,
    state_bytes: u64,
    /// The column whose bytes are the key of the table as they are.
    is_value: Option<usize>,
}

impl Feed {
    /// That of a reducer, whose records come from nowhere that is known. It keeps at most `state_bytes` bytes of records, and hands
    /// them on all at once.
    pub fn new(shuffle: &Arc<Shuffle>, state_bytes: u64) -> Self {
        Self::with(shuffle, state_bytes, false)
    }

    fn with(shuffle: &Arc<Shuffle>, state_bytes: u64, knows_places: bool) -> Self {
        let words = shuffle.narrow.as_ref();
        let words = words.map(|narrow| Words::new(narrow, state_bytes));
        let near = (shuffle.stand_together && !knows_places).then(|| Near::new(state_bytes / 2));
        let tables = 1 + u64::from(shuffle.counted.is_some() || near.is_some());
        let table = match &shuffle.how {
            _ if words.is_some() => None,
            How::Group(aggregates) => {
                Some(Table::new(aggregates, state_bytes / tables, knows_places))
            }
            _ => None,
        };
        let count = |one| Table::new(std::slice::from_ref(one), state_bytes / tables, true);
        let counts = shuffle.counted.as_ref().map(count);
        Self {
            shuffle: Arc::clone(shuffle),
            key: Vec::new(),
            whole: Vec::new(),
            value: Vec::new(),
            table,
            tallies: None,
            counts,
            near,
            words,
            place: None,
            from_place: 0,
            follows_input: shuffle.follows_input(),
            least: BinaryHeap::new(),
            least_bytes: 0,
            state_bytes,
            is_value: shuffle.is_value(),
        }
    }

    /// That of a mapper, which is told of each record where it comes from ([`Feed::at`]). It hands on what it kept in pieces, if the
    /// shuffle allows that ([`Shuffle::ends_in_pieces`]).
    /// `is_full` says, after each pair, whether it had better make no more than it must.
    pub fn of_mapper(shuffle: &Arc<Shuffle>, state_bytes: u64, is_full: &Arc<AtomicBool>) -> Self {
        match &shuffle.how {
            How::Group(aggregates) if shuffle.ends_in_pieces() => {
                let is_hashed = !shuffle.is_sorted;
                Self {
                    tallies: Some(Tallies::new(aggregates, is_hashed, state_bytes, is_full)),
                    table: None,
                    ..Self::with(shuffle, 0, true)
                }
            }
            _ => Self::with(shuffle, state_bytes, true),
        }
    }

    /// Whether pairs come out, and not records of a fixed size.
    pub fn makes_pairs(&self) -> bool {
        self.words.is_none()
    }

    /// What comes next is made of what lies at `place`. What is made of one place comes at a stretch.
    pub fn at(&mut self, place: Place) {
        if self.place.replace(place) != Some(place) {
            self.from_place = 0;
        }
    }

    /// Takes a record.
    #[inline]
    pub fn add(&mut self, record: &[Value<'_>], pairs: PairSink<'_>) {
        match (self.is_value, &mut self.tallies, &mut self.words) {
            (Some(at), Some(tallies), _) => tallies.add(record[at].bytes(), record, pairs),
            (_, _, Some(words)) => words.add(record, pairs),
            _ => self.add_any(record, pairs),
        }
    }

    /// Takes, in a mapper whose shuffle [takes keys](Shuffle::takes_keys), a record that is `text[word]`.
    #[inline(always)]
    pub fn add_word(&mut self, text: &[u8], word: Range<usize>, pairs: PairSink<'_>) {
        let tallies = self.tallies.as_mut();
        tallies.expect("it takes keys").add_word(text, word, pairs);
    }

    fn add_any(&mut self, record: &[Value<'_>], pairs: PairSink<'_>) {
        if self.near.is_some() && self.add_near(record, pairs) {
            return;
        }
        let shuffle = &*self.shuffle;
        if let Some(tallies) = &mut self.tallies {
            self.key.clear();
            key::write(&shuffle.key, record, &mut self.key);
            return tallies.add(&self.key, record, pairs);
        }
        if let (true, Some((input, byte)), Some(table)) =
            (self.follows_input, self.place, &mut self.table)
        {
            table.comes_from([input, byte, self.from_place]);
            self.from_place += 1;
        }
        if let (Some(at), Some(table)) = (self.is_value, &mut self.table) {
            return table.add(record[at].bytes(), record, pairs);
        }
        if let (How::Apply(..), true) = (&shuffle.how, shuffle.hashes()) {
            return self.add_to_group(record, pairs);
        }
        self.key.clear();
        let (of_group, within) = shuffle.key.split_at(shuffle.group_count);
        key::write(of_group, record, &mut self.key);
        if let Some(counts) = &mut self.counts {
            let head = self.key.len();
            self.key.push(key::IN_FRONT);
            let whole = &mut self.whole;
            counts.add(&self.key, record, &mut |key, value| {
                shuffle.put_in_group(key, value, whole, pairs);
            });
            self.key.truncate(head);
        }
        key::write(within, record, &mut self.key);
        if let Some(table) = &mut self.table {
            if within.is_empty() && !shuffle.is_sorted {
                return table.add(&self.key, record, pairs);
            }
            let whole = &mut self.whole;
            return table.add(&self.key, record, &mut |key, value| {
                shuffle.put_in_group(key, value, whole, pairs);
            });
        }
        shuffle.put_rest(record, &mut self.value);
        match shuffle.how {
            How::Top(count) => self.add_least(count, pairs),
            How::Random(draw) => {
                // Where no place is known, who reads the pair draws.
                if let Some(place) = self.place {
                    let number = draw.number(place, self.from_place);
                    self.key.extend_from_slice(&number.to_be_bytes());
                }
                self.from_place += 1;
                pairs(&self.key, &self.value);
            }
            How::Keep | How::Sort | How::Group(_) | How::Apply(..) => {
                pairs(&self.key, &self.value);
            }
        }
    }

    /// Takes a record of a group that stands together, unless that has become too large.
    fn add_near(&mut self, record: &[Value<'_>], pairs: PairSink<'_>) -> bool {
        let (shuffle, key) = (&*self.shuffle, &mut self.key);
        let (How::Group(aggregates), Some(near)) = (&shuffle.how, &mut self.near) else {
            return false;
        };
        let scratch = (&mut self.whole, &mut self.value);
        let (of_group, within) = shuffle.key.split_at(shuffle.group_count);
        key.clear();
        key::write(of_group, record, key);
        if !near.is_of(key) {
            end_near(shuffle, near, (&mut *scratch.0, &mut *scratch.1), pairs);
            near.open(key, aggregates);
        }
        if near.whole().is_none() {
            return false;
        }
        let head = key.len();
        key::write(within, record, key);
        if near.add(aggregates, record, &key[head..]) {
            return true;
        }
        // Its values go on as others do, behind what is known of it, which says that none of them has been counted.
        key.truncate(head);
        let (whole, value) = scratch;
        shuffle.put_whole(key, key, whole);
        put_front(0, aggregates, &near.states, (&mut *whole, value), pairs);
        near.pass_by();
        for value in near.values() {
            key.truncate(head);
            key.extend_from_slice(value);
            shuffle.put_whole(&key[..head], key, whole);
            pairs(whole, &[]);
        }
        true
    }

    /// Takes a record of a group that is handed out whole.
    fn add_to_group(&mut self, record: &[Value<'_>], pairs: PairSink<'_>) {
        let (shuffle, key) = (&*self.shuffle, &mut self.key);
        let (of_group, within) = shuffle.key.split_at(shuffle.group_count);
        key.clear();
        key.extend_from_slice(&[0; HASH_BYTES]);
        key::write(of_group, record, key);
        let head = key.len();
        key::write(within, record, key);
        let hash = match within {
            [] => group_hash(&key[HASH_BYTES..]),
            _ => key::hash_head(of_group, &key[HASH_BYTES..head]),
        };
        key[..HASH_BYTES].copy_from_slice(&hash.to_be_bytes());
        shuffle.put_rest(record, &mut self.value);
        pairs(&self.key, &self.value);
    }

    /// Keeps the pair if it is among the least; the one that it takes the place of comes to no output.
    fn add_least(&mut self, count: u64, pairs: PairSink<'_>) {
        const PAIR_BYTES: u64 = 64;
        let is_full = self.least.len() as u64 >= count;
        if is_full && self.least.peek().is_none_or(|(key, _)| *key <= self.key) {
            return;
        }
        let bytes = |key: &[u8], value: &[u8]| PAIR_BYTES + (key.len() + value.len()) as u64;
        self.least_bytes += bytes(&self.key, &self.value);
        self.least.push((self.key.clone(), self.value.clone()));
        if is_full && let Some((key, value)) = self.least.pop() {
            self.least_bytes -= bytes(&key, &value);
        }
        if self.least_bytes > self.state_bytes / 2 {
            self.end(pairs);
        }
    }

    /// Hands on what it has kept, where it does so in pieces only until there is no room for more: it is to be called again until
    /// nothing comes.
    pub fn end_some(&mut self, pairs: PairSink<'_>) {
        match &mut self.tallies {
            Some(tallies) => tallies.hand_on(pairs),
            None => self.end(pairs),
        }
    }

    /// Hands on what it has kept.
    pub fn end(&mut self, pairs: PairSink<'_>) {
        if let Some(near) = &mut self.near {
            let scratch = (&mut self.whole, &mut self.value);
            end_near(&self.shuffle, near, scratch, pairs);
        }
        if let Some(words) = &mut self.words {
            words.end(pairs);
        }
        if let Some(table) = &mut self.table {
            let (shuffle, whole) = (&*self.shuffle, &mut self.whole);
            match shuffle.orders_within() || shuffle.is_sorted {
                false => table.end(pairs),
                true => table.end(&mut |key, value| shuffle.put_in_group(key, value, whole, pairs)),
            }
            if let Some(counts) = &mut self.counts {
                counts.end(&mut |key, value| shuffle.put_in_group(key, value, whole, pairs));
            }
        }
        for (key, value) in self.least.drain() {
            pairs(&key, &value);
        }
        self.least_bytes = 0;
    }
}

/// Ends the group that stands together and is open: if all of it is here, it is one pair.
fn end_near(
    shuffle: &Shuffle,
    near: &mut Near,
    (whole, value): (&mut Vec<u8>, &mut Vec<u8>),
    pairs: PairSink<'_>,
) {
    if let (How::Group(aggregates), Some(head)) = (&shuffle.how, near.whole()) {
        shuffle.put_whole(head, head, whole);
        let is_value = |value: &&[u8]| !key::is_null(value);
        let count = near.values().filter(is_value).count() as u64;
        put_front(count, aggregates, &near.states, (whole, value), pairs);
    }
    near.close();
}

/// Hands on what is known of a group, in front of its values, so many of which have been counted; `whole` tells the group.
fn put_front(
    count: u64,
    aggregates: &[Computed],
    states: &[State],
    (whole, value): (&mut Vec<u8>, &mut Vec<u8>),
    pairs: PairSink<'_>,
) {
    whole.push(key::IN_FRONT);
    value.clear();
    value.extend_from_slice(count_bytes(count, &mut [0; COUNT_BYTES_MAX]));
    for (aggregate, state) in aggregates.iter().zip(states) {
        aggregate.write(state, value);
    }
    pairs(whole, value);
}
