//! The group that is open where groups stand together and the different values of a column are counted: a small one is made whole
//! here and is one pair, where each of its values would be one.

use crate::pipeline::aggregate::{Computed, State};
use crate::pipeline::column::Value;
use crate::short::text_hash;

/// A group, what is known of it so far, and its different values that have come.
pub(super) struct Near {
    /// What tells the group in its key.
    head: Vec<u8>,
    stands: Stands,
    pub states: Vec<State>,
    /// Values as they are in keys, back to back, and of each its hash and where it lies.
    text: Vec<u8>,
    lie: Vec<(u64, u32, u32)>,
    /// A power of two of places, each with the number of a value, from 1, where its hash says or the next one that is free. One that has
    /// been taken for another group, which the upper half says, is free.
    places: Vec<u64>,
    group: u32,
    bytes_max: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stands {
    /// No group is open.
    Closed,
    /// All of its records are here.
    Whole,
    /// It was too large for that: what came was handed on, and what comes goes on.
    TooLarge,
}

/// What a value takes at most beside its bytes: where it lies, and up to four places.
const VALUE_BYTES: usize = size_of::<(u64, u32, u32)>() + 4 * size_of::<u64>();
/// So many places there are at first, a power of two.
const PLACES_MIN: usize = 64;

impl Near {
    /// That of a feed, of at most about `bytes_max` bytes of values.
    pub fn new(bytes_max: u64) -> Self {
        Self {
            head: Vec::new(),
            stands: Stands::Closed,
            states: Vec::new(),
            text: Vec::new(),
            lie: Vec::new(),
            places: vec![0; PLACES_MIN],
            group: 0,
            bytes_max: bytes_max.min(1 << 30) as usize,
        }
    }

    /// Whether a group is open that `head` tells.
    pub fn is_of(&self, head: &[u8]) -> bool {
        self.stands != Stands::Closed && self.head == head
    }

    /// What tells the group that is open, if all of it is here.
    pub fn whole(&self) -> Option<&[u8]> {
        (self.stands == Stands::Whole).then_some(&self.head)
    }

    /// Opens the group that `head` tells.
    pub fn open(&mut self, head: &[u8], aggregates: &[Computed]) {
        self.head.clear();
        self.head.extend_from_slice(head);
        self.stands = Stands::Whole;
        self.states.clear();
        self.states.extend(aggregates.iter().map(Computed::begin));
        self.text.clear();
        self.lie.clear();
        self.group = self.group.wrapping_add(1);
        if self.group == 0 {
            self.places.fill(0);
            self.group = 1;
        }
    }

    /// Closes the one that is open.
    pub fn close(&mut self) {
        self.stands = Stands::Closed;
    }

    /// All of it is handed on, and what comes is to go on as well.
    pub fn pass_by(&mut self) {
        self.stands = Stands::TooLarge;
    }

    /// Takes a record of it, whose value is `value` in keys. Whether there is room for more.
    pub fn add(&mut self, aggregates: &[Computed], record: &[Value<'_>], value: &[u8]) -> bool {
        for (aggregate, state) in aggregates.iter().zip(&mut self.states) {
            aggregate.add(state, record);
        }
        let hash = text_hash(value);
        let place = self.find(hash, value);
        if self.number(place) != 0 {
            return true;
        }
        let from = self.text.len() as u32;
        self.text.extend_from_slice(value);
        self.lie.push((hash, from, self.text.len() as u32));
        self.take(place, self.lie.len());
        if 2 * self.lie.len() > self.places.len() {
            self.grow();
        }
        self.text.len() + VALUE_BYTES * self.lie.len() <= self.bytes_max
    }

    /// Its different values.
    pub fn values(&self) -> impl Iterator<Item = &[u8]> {
        let lie = self.lie.iter();
        lie.map(|&(_, from, to)| &self.text[from as usize..to as usize])
    }

    /// The number of the value at a place, 0 of none.
    fn number(&self, place: usize) -> usize {
        let taken = self.places[place];
        match (taken >> 32) as u32 == self.group {
            true => taken as u32 as usize,
            false => 0,
        }
    }

    fn take(&mut self, place: usize, number: usize) {
        self.places[place] = u64::from(self.group) << 32 | number as u64;
    }

    /// The place of a value, or the free one where it belongs.
    fn find(&self, hash: u64, value: &[u8]) -> usize {
        let mask = self.places.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let number = self.number(place);
            let Some(&(other, from, to)) = self.lie.get(number.wrapping_sub(1)) else {
                return place;
            };
            if other == hash && &self.text[from as usize..to as usize] == value {
                return place;
            }
            place = (place + 1) & mask;
        }
    }

    /// Doubles the places.
    fn grow(&mut self) {
        self.places = vec![0; 2 * self.places.len()];
        let mask = self.places.len() - 1;
        for number in 1..=self.lie.len() {
            let mut place = self.lie[number - 1].0 as usize & mask;
            while self.number(place) != 0 {
                place = (place + 1) & mask;
            }
            self.take(place, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_apart_until_there_are_too_many() {
        let mut near = Near::new(4000);
        assert!(near.whole().is_none() && !near.is_of(b""));
        // Few that come again and again have room, group after group; some begin alike, and one is the beginning of another.
        for group in 0..100_000u32 {
            near.open(&group.to_be_bytes(), &[]);
            let count = group % 20 + 1;
            for number in (0..count).chain(0..count) {
                let value = format!("value {number:02}");
                assert!(near.add(&[], &[], value.as_bytes()));
                assert!(near.add(&[], &[], &value.as_bytes()[..7]));
            }
            let mut found: Vec<&[u8]> = near.values().collect();
            found.sort_unstable();
            let mut wanted: Vec<String> = (0..count).map(|one| format!("value {one:02}")).collect();
            wanted.extend((0..count.div_ceil(10)).map(|one| format!("value {one}")));
            wanted.sort_unstable();
            assert!(
                found.iter().eq(wanted
                    .iter()
                    .map(String::as_bytes)
                    .collect::<Vec<_>>()
                    .iter())
            );
            assert_eq!(near.whole(), Some(&group.to_be_bytes()[..]));
            // As after four billion groups.
            if group == 1000 {
                near.group = u32::MAX - 1000;
            }
        }
        // Many have none, and all that came are there.
        near.open(b"b", &[]);
        let mut count = 0u32;
        while near.add(&[], &[], &count.to_be_bytes()) {
            count += 1;
        }
        assert!((60..=200).contains(&count), "{count}");
        let values: std::collections::BTreeSet<&[u8]> = near.values().collect();
        assert_eq!(values.len() as u32, count + 1);
        near.pass_by();
        assert!(near.whole().is_none() && near.is_of(b"b") && !near.is_of(b"a"));
        near.close();
        assert!(!near.is_of(b"b"));
    }
}
