//! A partition whose order is drawn: what its records are sorted by is known before any of them is looked at.
//!
//! So an entry tells no ordinal, but how long its record is: whoever gathers looks at a record once, to copy it, and
//! does not search for its end in memory that has yet to come. Two records that drew the same 64 bits, of which there are a
//! few in 10^9 partitions, come out by place, as ever: their places are looked up.
//!
//! ```text
//! word 64: what was drawn | length 32 | location 32
//! ```

use sortmill_io::frame::Damage;

use super::{Load, Place, Slab};
use crate::order::{Begun, Format, Order};
use crate::shuffle::Draws;
use crate::stage::kernel::{self, Entry, LOOKED_BYTES};

impl Slab<'_> {
    /// Makes the entries of one segment, whose records `draws` orders. `ends` is scratch space.
    pub(super) fn enter_drawn(
        &self,
        order: &Order,
        (place, draws): (&Place, Draws),
        ends: &mut Vec<u32>,
        entries: &mut [Entry],
        load: &mut Load,
    ) -> Result<(), Damage> {
        let from = load.records as usize;
        let entries = entries
            .get_mut(from..from + place.records as usize)
            .ok_or(Damage::Segments)?;
        let before = u64::from(place.before);
        load.records += u64::from(place.records);
        if let Some(stub) = self.stub(place.location) {
            entries[0] = kernel::entry(draws.number(before), 0, place.location);
            load.bytes += stub.bytes;
            return Ok(());
        }
        let bytes = &self.from(place.location)[..place.bytes as usize];
        ends.clear();
        find_ends(order, bytes, place.records as usize, ends);
        if ends.len() != entries.len() || ends.last() != Some(&place.bytes) {
            return Err(Damage::Segments);
        }
        let mut begin = 0;
        for ((entry, &mut end), index) in entries.iter_mut().zip(ends).zip(before..) {
            *entry = kernel::entry(draws.number(index), end - begin, place.location + begin);
            begin = end;
        }
        load.bytes += u64::from(place.bytes);
        Ok(())
    }

    /// Whether the order of its records is drawn.
    #[must_use]
    pub fn is_drawn(&self) -> bool {
        self.drawn.is_some()
    }

    /// Sorts entries by what was drawn and, where that is the same, by place; faster with as many entries of `scratch`.
    /// Whether they are in order then, as no record tells.
    #[must_use]
    pub fn sort_drawn(&self, entries: &mut [Entry], scratch: &mut [Entry]) -> bool {
        kernel::sort_entries(entries, scratch);
        let (mut is_sorted, mut is_tied) = (true, false);
        for pair in entries.windows(2) {
            let [word, next] = [pair[0], pair[1]].map(kernel::word);
            is_sorted &= word <= next;
            is_tied |= word == next;
        }
        if is_tied {
            for tied in entries.chunk_by_mut(|&a, &b| kernel::word(a) == kernel::word(b)) {
                tied.sort_by_key(|&entry| self.place(kernel::location(entry)));
            }
        }
        is_sorted
    }

    /// What the records of a unit that is drawn come in the order of.
    fn place(&self, location: u32) -> (u32, u32) {
        let starts = self.places.iter();
        let begun = starts.filter(|place| place.location <= location);
        let place = begun.max_by_key(|place| place.location);
        (place.map_or(0, |place| place.ordinal), location)
    }

    /// The record of an entry of a unit that is drawn. No long one.
    #[inline]
    #[must_use]
    pub fn drawn_record(&self, entry: Entry) -> &[u8] {
        &self.from(kernel::location(entry))[..drawn_bytes(entry)]
    }

    /// Fetches it into the cache.
    #[inline]
    pub fn prefetch_drawn(&self, entry: Entry) {
        self.prefetch(kernel::location(entry), drawn_bytes(entry));
    }
}

/// How long the record of an entry of a unit that is drawn is.
#[inline]
fn drawn_bytes(entry: Entry) -> usize {
    kernel::ordinal(entry) as usize
}

/// Finds where records end, `count` of them, in `bytes`, as far as they are whole.
fn find_ends(order: &Order, bytes: &[u8], count: usize, ends: &mut Vec<u32>) {
    if order.format() == Format::Lines {
        // Within that many of the most that it may find, it looks for one after the other.
        return kernel::find_ends(order.delimiter(), bytes, 0, count + LOOKED_BYTES, ends);
    }
    let mut end = 0;
    while ends.len() < count
        && let Some(length) = order.first_end(&bytes[end..], &Begun::default())
    {
        end += length;
        ends.push(end as u32);
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::super::tests::{BLOCK_BYTES, blocks};
    use super::super::{Drawing, Framed, Keys};
    use super::*;
    use crate::shuffle::Shuffle;

    const PARTITION: u32 = 3;

    /// The records of those blocks in the order that comes out where `word` is what a record is sorted by: what was drawn
    /// for it goes in.
    fn sorted(word: impl Fn(u64) -> u64) -> Vec<[u8; 2]> {
        let order = Order::new(Format::Fixed(2), &[]).unwrap().by_place();
        let blocks = blocks();
        let framed = blocks.iter().map(|(header, bytes)| Framed {
            header: *header,
            bytes,
            unchecked: true,
        });
        let framed: Vec<Framed<'_>> = framed.collect();
        let drawing = Some(Drawing {
            shuffle: Shuffle::new(7),
            partition: PARTITION,
            seen: None,
        });
        let mut entries = vec![0; 30];
        let keys = Keys::default();
        let laid = Slab::lay_out(&order, &framed, BLOCK_BYTES, keys, drawing, &mut entries);
        let (slab, load) = laid.unwrap_or_else(|wrong| panic!("{:?}", wrong.why));
        assert_eq!((load.records, load.bytes), (30, 60));
        for entry in &mut entries {
            let (bytes, location) = (kernel::ordinal(*entry), kernel::location(*entry));
            *entry = kernel::entry(word(kernel::word(*entry)), bytes, location);
        }
        assert!(slab.sort_drawn(&mut entries, &mut vec![0; 30]));
        let records = entries.iter().map(|&entry| slab.drawn_record(entry));
        records.map(|record| record.try_into().unwrap()).collect()
    }

    /// The same by the definition.
    fn expected(word: impl Fn(u64) -> u64) -> Vec<[u8; 2]> {
        let places = (0..6).flat_map(|chunk| (0..5).map(move |index| [chunk, index]));
        let mut records: Vec<[u8; 2]> = places.collect();
        let draws = |chunk: u8| Shuffle::new(7).ordering(PARTITION, chunk.into());
        records.sort_by_key(|&[chunk, index]| word(draws(chunk).number(index.into())));
        records
    }

    #[test]
    fn records_come_in_the_order_of_their_draws_and_ties_by_place() {
        for words in [u64::MAX, 4, 1, 0] {
            let word = |drawn: u64| drawn % words.max(1);
            assert_eq!(sorted(word), expected(word), "{words} words");
        }
    }
}
