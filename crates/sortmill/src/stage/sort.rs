//! Partition to sorted partition: entries of (word, ordinal, location), sorted; the records stay where
//! they are.
//!
//! Segments are put in the order of their chunks first, so that an entry's ordinal is its record's place
//! and ties come out in input order whatever way the blocks took. Entries are sorted by their first word;
//! where words are equal but keys may differ, the next word takes its place and the run is sorted again.

use sortmill_io::frame::{Damage, HEADER_BYTES, Header, Segment};

use crate::order::{Format, Order};
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

/// The range a unit's records lie in; `None` where its blocks hold no others.
pub type Range<'a> = Option<(Option<&'a Boundary>, Option<&'a Boundary>)>;

/// The records of a unit in memory, by location.
pub struct Slab<'a> {
    bases: Vec<&'a [u8]>,
    shift: u32,
    longs: Vec<Box<[u8]>>,
    blocks: usize,
    /// The first ordinal of each chunk's records, in order.
    chunks: Vec<(u32, u64)>,
}

/// Where a segment's records lie.
struct Place {
    chunk: u64,
    location: u32,
    bytes: u32,
    records: u32,
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
    /// Checks the blocks and makes an entry of each record in `range`, in place order. `entries` holds
    /// at least as many as the blocks have records. `block_bytes` is a power of two.
    ///
    /// # Errors
    /// The first block that is not what was written.
    pub fn lay_out(
        order: &Order,
        blocks: &[Framed<'a>],
        block_bytes: usize,
        range: Range<'_>,
        entries: &mut [Entry],
    ) -> Result<(Self, Load), Damaged> {
        let mut slab = Self {
            bases: blocks.iter().map(|block| block.bytes).collect(),
            shift: block_bytes.trailing_zeros(),
            longs: Vec::new(),
            blocks: blocks.len(),
            chunks: Vec::new(),
        };
        let mut places = Vec::with_capacity(blocks.len() * 8);
        for index in 0..blocks.len() {
            slab.open_block(blocks, index, &mut places)
                .map_err(|why| Damaged { block: index, why })?;
        }
        // A stable sort: of one chunk, what came first stays first.
        places.sort_by_key(|place| place.chunk);
        let mut load = Load::default();
        for place in &places {
            slab.chunks.push((load.records as u32, place.chunk));
            slab.enter(order, place, range, entries, &mut load)
                .map_err(|why| Damaged {
                    block: ((place.location >> slab.shift) as usize).min(blocks.len() - 1),
                    why,
                })?;
        }
        Ok((slab, load))
    }

    /// Checks a block and notes its segments; fragments are put together when their last one comes.
    fn open_block(
        &mut self,
        blocks: &[Framed<'a>],
        index: usize,
        places: &mut Vec<Place>,
    ) -> Result<(), Damage> {
        let block = &blocks[index];
        if block.unchecked {
            Header::open(block.bytes, &block.header)?;
        }
        let end = HEADER_BYTES + block.header.payload_bytes as usize;
        let mut at = HEADER_BYTES;
        let mut records = 0;
        while at < end {
            let (segment, header_bytes) = Segment::get(&block.bytes[at..end])?;
            at += header_bytes;
            if segment.record_count > 0 {
                let location = match at == HEADER_BYTES + header_bytes {
                    true => self.end_of_chain(blocks, index, &segment)?,
                    false => None,
                };
                places.push(match location {
                    Some((location, bytes)) => Place {
                        chunk: segment.chunk,
                        location,
                        bytes,
                        records: 1,
                    },
                    None => Place {
                        chunk: segment.chunk,
                        location: (index << self.shift) as u32 + at as u32,
                        bytes: segment.bytes,
                        records: segment.record_count,
                    },
                });
            }
            records += segment.record_count;
            at += segment.bytes as usize;
        }
        if records == block.header.record_count {
            Ok(())
        } else {
            Err(Damage::Segments)
        }
    }

    /// If the blocks before `index` end in fragments of the record whose last part is `segment`, the
    /// first of block `index`: puts the record together and says where it is and how long.
    fn end_of_chain(
        &mut self,
        blocks: &[Framed<'a>],
        index: usize,
        segment: &Segment,
    ) -> Result<Option<(u32, u32)>, Damage> {
        // A block that ends a chain's middle has no whole record.
        let partition = blocks[index].header.partition;
        let fragments = blocks[..index]
            .iter()
            .rev()
            .take_while(|block| {
                block.header.record_count == 0 && block.header.partition == partition
            })
            .count();
        if fragments == 0 {
            return Ok(None);
        }
        let mut long = Vec::new();
        for block in &blocks[index - fragments..=index] {
            let (part, header_bytes) = Segment::get(&block.bytes[HEADER_BYTES..])?;
            if part.chunk != segment.chunk {
                return Err(Damage::Segments);
            }
            let from = HEADER_BYTES + header_bytes;
            long.extend_from_slice(&block.bytes[from..from + part.bytes as usize]);
        }
        let location = ((self.blocks + self.longs.len()) << self.shift) as u32;
        let bytes = long.len() as u32;
        self.longs.push(long.into_boxed_slice());
        Ok(Some((location, bytes)))
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
        let bytes = &self.from(place.location)[..place.bytes as usize];
        let mut at = 0;
        for _ in 0..place.records {
            let left = &bytes[at..];
            let length = match order.format() {
                Format::Lines => memchr::memchr(b'\n', left).ok_or(Damage::Segments)? + 1,
                Format::Fixed(size) if left.len() >= size as usize => size as usize,
                Format::Fixed(_) => return Err(Damage::Segments),
            };
            let record = &left[..length];
            if range.is_none_or(|range| is_inside(order, record, place.chunk, range)) {
                let ordinal = load.records as u32;
                let entry = entries.get_mut(ordinal as usize).ok_or(Damage::Segments)?;
                *entry = kernel::entry(order.word(record, 0), ordinal, place.location + at as u32);
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
            None => &self.longs[base - self.blocks][within..],
        }
    }

    /// The record at `location`.
    #[inline]
    #[must_use]
    pub fn record(&self, order: &Order, location: u32) -> &[u8] {
        let bytes = self.from(location);
        &bytes[..order.record_bytes(bytes)]
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

/// After this many words that did not tell records apart, whole keys are compared.
const DEPTH_MAX: usize = 6;

/// Sorts entries by key and place, faster with as many entries of `scratch`.
pub fn sort(order: &Order, slab: &Slab<'_>, entries: &mut [Entry], scratch: &mut [Entry]) {
    kernel::sort_entries(entries, scratch);
    refine(order, slab, entries, scratch, 0);
}

/// Sorts anew each run of entries whose words are equal up to `depth` while their keys may differ.
fn refine(
    order: &Order,
    slab: &Slab<'_>,
    entries: &mut [Entry],
    scratch: &mut [Entry],
    depth: usize,
) {
    let mut from = 0;
    while from < entries.len() {
        let word = kernel::word(entries[from]);
        let count = entries[from..]
            .iter()
            .take_while(|&&entry| kernel::word(entry) == word)
            .count();
        let run = &mut entries[from..from + count];
        from += count;
        if count == 1 || order.ends_with(word, depth) {
            continue;
        }
        let record = |entry: Entry| slab.record(order, kernel::location(entry));
        if depth == DEPTH_MAX || count < 8 {
            run.sort_unstable_by(|&a, &b| {
                let order = order.compare(record(a), record(b));
                order.then(kernel::ordinal(a).cmp(&kernel::ordinal(b)))
            });
            continue;
        }
        for entry in run.iter_mut() {
            let next = order.word(record(*entry), depth + 1);
            *entry = kernel::entry(next, kernel::ordinal(*entry), kernel::location(*entry));
        }
        kernel::sort_entries(run, scratch);
        refine(order, slab, run, scratch, depth + 1);
    }
}
