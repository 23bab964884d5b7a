//! Partition to sorted partition: entries of (word, ordinal, location), sorted; the records stay where
//! they are.
//!
//! Segments are put in the order of their chunks first, so that an entry's ordinal is its record's place
//! and ties come out in input order whatever way the blocks took. Entries are sorted by the first word that may differ;
//! where words are equal but keys may differ, the next word takes its place and the run is sorted again.
//! Long records are sorted by the short ones that stand for them, and [`settle`] does what these do not tell.

mod drawn;

use std::cmp::Ordering;
use std::collections::HashMap;

use sortmill_io::frame::{Damage, HEADER_BYTES, Header, Segment};

use crate::by_words::{self, Records};
use crate::error::Result as JobResult;
use crate::long::{Item, Stub};
use crate::order::{Begun, Format, Order, kv_bytes};
use crate::shuffle::{Draws, Shuffle};
use crate::stage::kernel::{self, Entry};
use crate::table::Boundary;

/// A block as the sorter sees it.
pub struct Framed<'a> {
    /// What its header must say.
    pub header: Header,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Whether header and checksum are still to be checked, because it comes from a disk.
    pub unchecked: bool,
}

impl Framed<'_> {
    /// Compares a block from a disk with its header and checksum.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), Damage> {
        match self.unchecked {
            true => Header::open(self.bytes, &self.header),
            false => Ok(()),
        }
    }
}

/// The range a unit's records lie in; `None` where its blocks hold no others.
pub type Range<'a> = Option<(Option<&'a Boundary>, Option<&'a Boundary>)>;

/// What is known of the keys of a unit before they are looked at.
#[derive(Clone, Copy, Default)]
pub struct Keys<'a> {
    /// Where they lie.
    pub range: Range<'a>,
    /// Words that all of them begin with, so that sorting begins with the next one.
    pub words_alike: usize,
}

/// The records of a unit in memory, by location.
pub struct Slab<'a> {
    bases: Vec<&'a [u8]>,
    shift: u32,
    /// Stubs of long records, whose locations follow those of the blocks.
    stubs: Vec<Stub<'a>>,
    /// The first ordinal of each chunk's records, in order.
    chunks: Vec<(u32, u64)>,
    /// What draws the order, and the partition that is laid out.
    drawn: Option<(Shuffle, u32)>,
    /// Where segments lie, if so.
    places: Vec<Place>,
    /// At which byte of the key the word of an entry begins.
    begin: usize,
}

/// What orders the records of a partition whose order is drawn.
pub struct Drawing<'d> {
    /// Draws it.
    pub shuffle: Shuffle,
    /// The partition.
    pub partition: u32,
    /// How many records of each chunk were laid out before, of a partition that is laid out in pieces.
    pub seen: Option<&'d mut HashMap<u64, u32>>,
}

/// Where a segment's records lie.
struct Place {
    chunk: u64,
    /// Records of that chunk before these, in the partition.
    before: u32,
    /// The block in which they end, an index among the unit's.
    block: u32,
    location: u32,
    bytes: u32,
    records: u32,
    /// The first one's.
    ordinal: u32,
}

/// A damaged block: which one, and what is wrong with it.
pub struct Damaged {
    /// Its index among the unit's blocks.
    pub block: usize,
    /// What is wrong.
    pub why: Damage,
}

/// What lies in a unit's range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Records.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl<'a> Slab<'a> {
    /// Checks the blocks and makes an entry of each record in the range of `keys`, in the order in which they lie; their
    /// ordinals are in place order. `entries` holds at least as many as the blocks have records.
    /// `block_bytes` is a power of two. Where the order is drawn, entries are those of [`drawn`], in no range.
    ///
    /// Ordinals need every segment's header, so headers are read first, and believed as far as their block
    /// holds them. Then each block's checksum is compared and, while the block is in the cache, its entries
    /// are made. Nothing that came of a header is used unless all the blocks are sound.
    ///
    /// # Errors
    /// The first block that is not what was written.
    pub fn lay_out(
        order: &Order,
        blocks: &[Framed<'a>],
        block_bytes: usize,
        keys: Keys<'_>,
        drawing: Option<Drawing<'_>>,
        entries: &mut [Entry],
    ) -> Result<(Self, Load), Damaged> {
        let mut slab = Self {
            drawn: (drawing.as_ref()).map(|drawing| (drawing.shuffle, drawing.partition)),
            bases: blocks.iter().map(|block| block.bytes).collect(),
            shift: block_bytes.trailing_zeros(),
            stubs: Vec::new(),
            chunks: Vec::new(),
            places: Vec::new(),
            begin: keys.words_alike * order.word_bytes(),
        };
        let mut places = Vec::with_capacity(blocks.len() * 8);
        for index in 0..blocks.len() {
            slab.find_segments(blocks, index, &mut places)
                .map_err(|why| {
                    first_damaged(&blocks[..=index]).unwrap_or(Damaged { block: index, why })
                })?;
        }
        slab.number(&mut places, drawing.and_then(|drawing| drawing.seen));
        let mut load = Load::default();
        let mut ends = Vec::new();
        let mut left = places.iter().peekable();
        for (index, block) in blocks.iter().enumerate() {
            let damaged = |why| Damaged { block: index, why };
            block.check().map_err(damaged)?;
            while let Some(place) = left.next_if(|place| place.block as usize == index) {
                let entered = match slab.draws(place) {
                    None => slab.enter(order, place, keys.range, entries, &mut load),
                    Some(draws) => {
                        slab.enter_drawn(order, (place, draws), &mut ends, entries, &mut load)
                    }
                };
                entered.map_err(damaged)?;
            }
        }
        if slab.is_drawn() {
            slab.places = places;
        }
        Ok((slab, load))
    }

    /// Notes a block's segments.
    fn find_segments(
        &mut self,
        blocks: &[Framed<'a>],
        index: usize,
        places: &mut Vec<Place>,
    ) -> Result<(), Damage> {
        let block = &blocks[index];
        let end = HEADER_BYTES + block.header.payload_bytes as usize;
        let mut at = HEADER_BYTES;
        let mut records = 0_u32;
        while at < end {
            let (segment, header_bytes) = Segment::get(&block.bytes[at..end])?;
            at += header_bytes;
            let mut place = Place {
                chunk: segment.chunk,
                before: 0,
                block: index as u32,
                location: (index << self.shift) as u32 + at as u32,
                bytes: segment.bytes,
                records: segment.record_count,
                ordinal: 0,
            };
            if segment.record_count == 0 {
                let bytes = &block.bytes[at..at + segment.bytes as usize];
                place.location = self.stubs_from() + self.stubs.len() as u32;
                place.records = 1;
                self.stubs.push(Stub::get(bytes).ok_or(Damage::Segments)?);
            }
            records = records.checked_add(place.records).ok_or(Damage::Segments)?;
            places.push(place);
            at += segment.bytes as usize;
        }
        if records == block.header.record_count {
            Ok(())
        } else {
            Err(Damage::Segments)
        }
    }

    /// Numbers all records in the order of their places, and those of each chunk; some of them may have been `seen`
    /// before.
    fn number(&mut self, places: &mut [Place], mut seen: Option<&mut HashMap<u64, u32>>) {
        let mut by_chunk: Vec<u32> = (0..places.len() as u32).collect();
        // A stable sort: of one chunk, what came first stays first.
        by_chunk.sort_by_key(|&at| places[at as usize].chunk);
        let mut ordinal = 0;
        let (mut chunk, mut before) = (None, 0);
        for at in by_chunk {
            let place = &mut places[at as usize];
            place.ordinal = ordinal;
            if chunk != Some(place.chunk) {
                chunk = Some(place.chunk);
                let seen = seen.as_ref().and_then(|seen| seen.get(&place.chunk));
                before = seen.copied().unwrap_or(0);
            }
            place.before = before;
            self.chunks.push((ordinal, place.chunk));
            ordinal = ordinal.wrapping_add(place.records);
            before = before.wrapping_add(place.records);
            if let Some(seen) = &mut seen {
                seen.insert(place.chunk, before);
            }
        }
    }

    /// What orders the records of a segment, if their order is drawn.
    fn draws(&self, place: &Place) -> Option<Draws> {
        let (shuffle, partition) = self.drawn?;
        Some(shuffle.ordering(partition, place.chunk))
    }

    /// Makes the entries of one segment.
    fn enter(
        &self,
        order: &Order,
        place: &Place,
        range: Range<'_>,
        entries: &mut [Entry],
        load: &mut Load,
    ) -> Result<(), Damage> {
        if let Some(stub) = self.stub(place.location) {
            let word = order.word_from(stub.short, self.begin);
            return enter_stub(order, place, (stub, word), range, entries, load);
        }
        let bytes = &self.from(place.location)[..place.bytes as usize];
        let word = |record: &[u8]| order.word_from(record, self.begin);
        if range.is_none() {
            return match order.format() {
                Format::Fixed(size) => {
                    let records = bytes.chunks_exact(size as usize);
                    enter_all(word, place, records, entries, load)
                }
                Format::Lines => {
                    let (mut rest, delimiter) = (bytes, order.delimiter());
                    let lines = std::iter::from_fn(|| {
                        let end = kernel::find_end(delimiter, rest)? + 1;
                        let (line, after) = rest.split_at(end);
                        rest = after;
                        Some(line)
                    });
                    enter_all(word, place, lines, entries, load)
                }
                Format::Quoted(_) => {
                    let mut rest = bytes;
                    let records = std::iter::from_fn(|| {
                        let end = order.first_end(rest, &Begun::default())?;
                        let (record, after) = rest.split_at(end);
                        rest = after;
                        Some(record)
                    });
                    enter_all(word, place, records, entries, load)
                }
                Format::Kv => {
                    let mut rest = bytes;
                    let pairs = std::iter::from_fn(|| {
                        let (pair, after) = rest.split_at_checked(kv_bytes(rest)? as usize)?;
                        rest = after;
                        Some(pair)
                    });
                    enter_all(word, place, pairs, entries, load)
                }
            };
        }
        let mut at = 0;
        for index in 0..place.records {
            let left = &bytes[at..];
            let length = order.first_end(left, &Begun::default());
            let length = length.ok_or(Damage::Segments)?;
            let record = &left[..length];
            if range.is_none_or(|range| is_inside(order, record, place.chunk, range)) {
                let next = load.records as usize;
                let entry = entries.get_mut(next).ok_or(Damage::Segments)?;
                let ordinal = place.ordinal.wrapping_add(index);
                *entry = kernel::entry(word(record), ordinal, place.location + at as u32);
                load.records += 1;
                load.bytes += length as u64;
            }
            at += length;
        }
        if at == bytes.len() {
            Ok(())
        } else {
            Err(Damage::Segments)
        }
    }

    #[inline]
    fn from(&self, location: u32) -> &[u8] {
        let base = (location >> self.shift) as usize;
        let within = location as usize & ((1 << self.shift) - 1);
        match self.bases.get(base) {
            Some(bytes) => &bytes[within..],
            None => self.stubs[(location - self.stubs_from()) as usize].short,
        }
    }

    /// The location of the first stub.
    fn stubs_from(&self) -> u32 {
        (self.bases.len() << self.shift) as u32
    }

    fn stub(&self, location: u32) -> Option<&Stub<'a>> {
        let number = location.checked_sub(self.stubs_from())?;
        self.stubs.get(number as usize)
    }

    /// Whether any of its records are long.
    #[must_use]
    pub fn has_stubs(&self) -> bool {
        !self.stubs.is_empty()
    }

    /// The record at `location`, or the short one that stands for it.
    #[inline]
    #[must_use]
    pub fn record(&self, order: &Order, location: u32) -> &[u8] {
        let base = (location >> self.shift) as usize;
        let within = location as usize & ((1 << self.shift) - 1);
        match self.bases.get(base) {
            Some(bytes) => &bytes[within..within + order.record_bytes(&bytes[within..])],
            None => self.stubs[(location - self.stubs_from()) as usize].short,
        }
    }

    /// The record at `location`, long or not.
    #[must_use]
    pub fn item(&self, order: &Order, location: u32) -> Item<'_> {
        match self.stub(location) {
            Some(stub) => Item::Stub(*stub),
            None => Item::Record(self.record(order, location)),
        }
    }

    /// The chunk of the record whose ordinal is `ordinal`.
    #[must_use]
    pub fn chunk(&self, ordinal: u32) -> u64 {
        let after = self.chunks.partition_point(|&(first, _)| first <= ordinal);
        self.chunks[after - 1].1
    }

    /// Fetches the record at `location`, probably of `bytes` bytes, into the cache.
    #[inline]
    pub fn prefetch(&self, location: u32, bytes: usize) {
        kernel::prefetch(self.from(location), 0, bytes);
    }

    /// Fetches where the record at `location` begins.
    #[inline]
    pub fn prefetch_first(&self, location: u32) {
        kernel::prefetch_line(self.from(location), 0);
    }
}

/// Makes the entries of a segment whose `records` are all wanted, as those of most jobs are.
#[inline]
fn enter_all<'r>(
    word: impl Fn(&[u8]) -> u64,
    place: &Place,
    records: impl Iterator<Item = &'r [u8]>,
    entries: &mut [Entry],
    load: &mut Load,
) -> Result<(), Damage> {
    let from = load.records as usize;
    let entries = entries
        .get_mut(from..from + place.records as usize)
        .ok_or(Damage::Segments)?;
    let (mut count, mut bytes) = (0, 0);
    for (entry, record) in entries.iter_mut().zip(records) {
        let ordinal = place.ordinal.wrapping_add(count);
        kernel::prefetch_behind(record);
        *entry = kernel::entry(word(record), ordinal, place.location + bytes);
        count += 1;
        bytes += record.len() as u32;
    }
    if (count, bytes) != (place.records, place.bytes) {
        return Err(Damage::Segments);
    }
    load.records += u64::from(count);
    load.bytes += u64::from(bytes);
    Ok(())
}

/// Makes the entry of a long record, with this word, if it is wanted.
fn enter_stub(
    order: &Order,
    place: &Place,
    (stub, word): (&Stub<'_>, u64),
    range: Range<'_>,
    entries: &mut [Entry],
    load: &mut Load,
) -> Result<(), Damage> {
    if range.is_some_and(|range| !is_inside(order, stub.short, place.chunk, range)) {
        return Ok(());
    }
    let entry = entries.get_mut(load.records as usize);
    *entry.ok_or(Damage::Segments)? = kernel::entry(word, place.ordinal, place.location);
    load.records += 1;
    load.bytes += stub.bytes;
    Ok(())
}

/// The first of `blocks` that is not what was written, if that is why its segments make no sense.
fn first_damaged(blocks: &[Framed<'_>]) -> Option<Damaged> {
    let damage = |(block, framed): (usize, &Framed<'_>)| {
        Some(Damaged {
            block,
            why: framed.check().err()?,
        })
    };
    blocks.iter().enumerate().find_map(damage)
}

fn is_inside(
    order: &Order,
    record: &[u8],
    chunk: u64,
    (from, to): (Option<&Boundary>, Option<&Boundary>),
) -> bool {
    let is_below = |boundary: &Boundary| {
        order
            .compare_with_key(record, &boundary.key)
            .then(chunk.cmp(&boundary.chunk))
            .is_lt()
    };
    !from.is_some_and(is_below) && to.is_none_or(is_below)
}

impl Records for Slab<'_> {
    #[inline]
    fn record(&self, order: &Order, location: u32) -> &[u8] {
        Slab::record(self, order, location)
    }

    #[inline]
    fn prefetch(&self, location: u32, bytes: usize) {
        Slab::prefetch(self, location, bytes);
    }
}

/// Sorts entries by key and place, faster with as many entries of `scratch`.
pub fn sort(order: &Order, slab: &Slab<'_>, entries: &mut [Entry], scratch: &mut [Entry]) {
    by_words::sort(order, slab, slab.begin, entries, scratch);
}

/// Puts sorted entries right where the heads of long keys do not tell which comes first: `compare` does, by the
/// whole keys. Heads have `head_bytes`.
///
/// # Errors
/// What `compare` answers.
pub fn settle(
    order: &Order,
    slab: &Slab<'_>,
    entries: &mut [Entry],
    head_bytes: usize,
    mut compare: impl FnMut(&Item<'_>, &Item<'_>) -> JobResult<Ordering>,
) -> JobResult<()> {
    let item = |entry: Entry| slab.item(order, kernel::location(entry));
    let short = |entry: Entry| slab.record(order, kernel::location(entry));
    let mut from = 0;
    while from < entries.len() {
        let first = short(entries[from]);
        let begins_alike =
            |&&entry: &&Entry| order.compare_heads(short(entry), first, head_bytes).is_eq();
        let count = match order.key_reaches(first, head_bytes) {
            true => entries[from..].iter().take_while(begins_alike).count(),
            false => 1,
        };
        let run = &mut entries[from..from + count];
        from += count;
        if count > 1
            && run
                .iter()
                .any(|&entry| matches!(item(entry), Item::Stub(_)))
        {
            merge_sort(run, &mut |a, b| {
                let compared = compare(&item(a), &item(b))?;
                Ok(compared.then(kernel::ordinal(a).cmp(&kernel::ordinal(b))))
            })?;
        }
    }
    Ok(())
}

/// Keeps of sorted entries with equal keys the first only: those that are kept come to the front. Of two records whose
/// words do not tell `is_repeat` says whether the second has the first one's key, and is not kept. Answers how many are.
///
/// # Errors
/// What `is_repeat` answers.
pub fn keep_first(
    order: &Order,
    slab: &Slab<'_>,
    entries: &mut [Entry],
    mut is_repeat: impl FnMut(&Item<'_>, &Item<'_>) -> JobResult<bool>,
) -> JobResult<usize> {
    let item = |entry: Entry| slab.item(order, kernel::location(entry));
    let mut kept = 0_usize;
    for at in 0..entries.len() {
        let entry = entries[at];
        // Sorting has left the word that decided: equal keys have equal ones, though others may have too. But of a long record
        // only the head of its key was looked at.
        let is_long = |entry: Entry| slab.stub(kernel::location(entry)).is_some();
        let may_be = |last: Entry| {
            kernel::word(last) == kernel::word(entry)
                || (slab.has_stubs() && (is_long(last) || is_long(entry)))
        };
        let is_dropped = match kept.checked_sub(1).map(|last| entries[last]) {
            Some(last) if may_be(last) => is_repeat(&item(last), &item(entry))?,
            _ => false,
        };
        if !is_dropped {
            entries[kept] = entry;
            kept += 1;
        }
    }
    Ok(kept)
}

/// Sorts with a comparison that may fail.
fn merge_sort(
    entries: &mut [Entry],
    compare: &mut impl FnMut(Entry, Entry) -> JobResult<Ordering>,
) -> JobResult<()> {
    if entries.len() < 2 {
        return Ok(());
    }
    let (low, high) = entries.split_at_mut(entries.len() / 2);
    merge_sort(low, compare)?;
    merge_sort(high, compare)?;
    let low = low.to_vec();
    let (mut low_at, mut high_at) = (0, low.len());
    for at in 0..entries.len() {
        let Some(&next) = low.get(low_at) else {
            return Ok(());
        };
        match entries.get(high_at) {
            Some(&other) if compare(next, other)?.is_gt() => {
                entries[at] = other;
                high_at += 1;
            }
            _ => {
                entries[at] = next;
                low_at += 1;
            }
        }
    }
    Ok(())
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::batch::{Batch, Offsets};
    use crate::block::Open;
    use crate::fingerprint::Fingerprint;
    use crate::order::KeyPart;

    pub(super) const BLOCK_BYTES: usize = 4096;

    /// Three blocks of records `chunk, index`, the chunks from the last to the first.
    pub(super) fn blocks() -> Vec<(Header, Vec<u8>)> {
        let pool = sortmill_io::Pool::new(3, BLOCK_BYTES).unwrap();
        (0..3)
            .map(|sequence| {
                let mut open = Open::new(pool.take().unwrap());
                for chunk in [2 * (2 - sequence) + 1, 2 * (2 - sequence)] {
                    let bytes: Vec<u8> = (0..5).flat_map(|index| [chunk as u8, index]).collect();
                    let batch = Batch {
                        chunk,
                        bytes: &bytes,
                        offsets: Offsets::Each(&[0, 2, 4, 6, 8, 10]),
                        fingerprint: Fingerprint::default(),
                    };
                    assert_eq!(open.put(&batch, &[0, 1, 2, 3, 4], None), 5);
                }
                let header = Header {
                    sequence: sequence as u32,
                    record_count: open.records(),
                    payload_bytes: open.payload_bytes(),
                    ..Header::default()
                };
                let mut buffer = open.into_buffer();
                header.seal(&mut buffer);
                (header, buffer.to_vec())
            })
            .collect()
    }

    fn lay_out(
        blocks: &[(Header, Vec<u8>)],
        range: Range<'_>,
    ) -> Result<Vec<(u32, Vec<u8>)>, Damaged> {
        let order = Order::new(Format::Fixed(2), &[KeyPart::plain(1, 1)]).unwrap();
        let framed: Vec<Framed<'_>> = blocks
            .iter()
            .map(|(header, bytes)| Framed {
                header: *header,
                bytes,
                unchecked: true,
            })
            .collect();
        let mut entries = [0; 30];
        let keys = Keys {
            range,
            words_alike: 0,
        };
        let (slab, load) = Slab::lay_out(&order, &framed, BLOCK_BYTES, keys, None, &mut entries)?;
        let mut found: Vec<(u32, Vec<u8>)> = entries[..load.records as usize]
            .iter()
            .map(|&entry| {
                let record = slab.record(&order, kernel::location(entry));
                assert_eq!(slab.chunk(kernel::ordinal(entry)), u64::from(record[0]));
                (kernel::ordinal(entry), record.to_vec())
            })
            .collect();
        found.sort_unstable();
        Ok(found)
    }

    #[test]
    fn ordinals_follow_places_whatever_way_blocks_took() {
        let Ok(found) = lay_out(&blocks(), None) else {
            panic!("the blocks are sound");
        };
        let places = (0..6).flat_map(|chunk| (0..5).map(move |index| vec![chunk, index]));
        let expected: Vec<(u32, Vec<u8>)> = (0..).zip(places).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn of_a_range_the_ordinals_still_follow_places() {
        let boundary = |key| Boundary {
            key: vec![key],
            chunk: 0,
        };
        let (from, to) = (boundary(1), boundary(3));
        let Ok(found) = lay_out(&blocks(), Some((Some(&from), Some(&to)))) else {
            panic!("the blocks are sound");
        };
        let records: Vec<Vec<u8>> = found.into_iter().map(|(_, record)| record).collect();
        let expected: Vec<Vec<u8>> = (0..6)
            .flat_map(|chunk| [vec![chunk, 1], vec![chunk, 2]])
            .collect();
        assert_eq!(records, expected);
    }

    /// Segments are found before checksums are compared, so whatever damage does to them must not hide
    /// which block it is and why.
    #[test]
    fn damage_is_told_as_such_even_where_it_hits_a_segments_header() {
        let sound = blocks();
        for block in 0..sound.len() {
            let bytes = HEADER_BYTES + sound[block].0.payload_bytes as usize;
            for bit in 0..bytes * 8 {
                let mut altered = sound.clone();
                altered[block].1[bit / 8] ^= 1 << (bit % 8);
                let Err(damaged) = lay_out(&altered, None) else {
                    panic!("bit {bit} of block {block} was not missed");
                };
                assert_eq!(damaged.block, block, "bit {bit}");
                assert_ne!(damaged.why, Damage::Segments, "bit {bit}");
            }
        }
    }
}
