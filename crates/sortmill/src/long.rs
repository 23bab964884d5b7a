//! Records longer than a block: where the reader puts one that outgrows a chunk, and what stands for it while the
//! others are sorted.
//!
//! A long record is never sorted itself. Its bytes lie in a **body**, blocks of their own ([`crate::bodies`]), and
//! its partition gets a **stub** in its place: the body's number, the lengths of record and key, and a short record
//! that compares as the long one does, as far as the first bytes of the key tell. Where they do not tell, bodies
//! are read.
//!
//! ```text
//! partition   | segment: records ... | segment: stub | segment: records ...
//!                                        | body 7, 93 MB, key of 20 MB, the first 8 KiB of the key |
//! body 7      | block | block | block | ...       in memory or among the temporary data
//! ```

use std::cmp::Ordering;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use sortmill_io::{Buffer, Pool, align_up};
use xxhash_rust::xxh3::Xxh3;

use crate::error::{Error, ErrorKind, Result};
use crate::metrics::{Meter, Stage, State};
use crate::order::{Format, KV_HEADER_BYTES, Order};
use crate::queue::Stop;

/// The most bytes of a key that stand for all of it.
pub const HEAD_BYTES_MAX: usize = 8 << 10;

/// What stands for a long record: in a partition's block, or in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stub<'a> {
    /// Which body holds the record.
    pub body: u32,
    /// Bytes of the record.
    pub bytes: u64,
    /// Bytes of its key.
    pub key_bytes: u64,
    /// A record that begins with the same key and has no more of it than a head.
    pub short: &'a [u8],
}

impl<'a> Stub<'a> {
    /// Bytes in front of the short record: body, bytes and key bytes, little-endian.
    pub const PREFIX_BYTES: usize = 4 + 8 + 8;

    /// The stub that `bytes` hold; `None` if they are too few.
    #[must_use]
    pub fn get(bytes: &'a [u8]) -> Option<Self> {
        let (prefix, short) = bytes.split_at_checked(Self::PREFIX_BYTES)?;
        let number = |at: usize| prefix[at..at + 8].try_into().expect("eight bytes");
        Some(Self {
            body: u32::from_le_bytes(prefix[..4].try_into().expect("four bytes")),
            bytes: u64::from_le_bytes(number(4)),
            key_bytes: u64::from_le_bytes(number(12)),
            short: (!short.is_empty()).then_some(short)?,
        })
    }

    /// Puts it into `out`, which begins where it goes, and says how many bytes it took.
    pub fn put(&self, out: &mut [u8]) -> usize {
        out[..4].copy_from_slice(&self.body.to_le_bytes());
        out[4..12].copy_from_slice(&self.bytes.to_le_bytes());
        out[12..Self::PREFIX_BYTES].copy_from_slice(&self.key_bytes.to_le_bytes());
        out[Self::PREFIX_BYTES..self.put_bytes()].copy_from_slice(self.short);
        self.put_bytes()
    }

    /// Bytes that [`Stub::put`] takes.
    #[must_use]
    pub fn put_bytes(&self) -> usize {
        Self::PREFIX_BYTES + self.short.len()
    }
}

/// A record as the sorters have it.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// Whole.
    Record(&'a [u8]),
    /// In a body.
    Stub(Stub<'a>),
}

impl<'a> Item<'a> {
    /// The record, or the short one that stands for it.
    #[inline]
    #[must_use]
    pub fn short(&self) -> &'a [u8] {
        match self {
            Self::Record(record) => record,
            Self::Stub(stub) => stub.short,
        }
    }

    /// Bytes of the record.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Record(record) => record.len() as u64,
            Self::Stub(stub) => stub.bytes,
        }
    }

    /// Whether only a part of its key is here.
    fn is_cut(&self, head_bytes: usize) -> bool {
        matches!(self, Self::Stub(stub) if stub.key_bytes > head_bytes as u64)
    }

    /// Compares the keys of two, of which heads have `head_bytes`; `None` if the heads do not tell.
    #[must_use]
    pub fn compare_heads(
        &self,
        order: &Order,
        head_bytes: usize,
        other: &Self,
    ) -> Option<Ordering> {
        if !self.is_cut(head_bytes) && !other.is_cut(head_bytes) {
            return Some(order.compare(self.short(), other.short()));
        }
        let compared = order.compare_heads(self.short(), other.short(), head_bytes);
        (compared != Ordering::Equal).then_some(compared)
    }

    /// The first bytes of its key, which lies in the record as it is.
    #[must_use]
    pub fn head(&self, order: &Order, head_bytes: usize) -> &'a [u8] {
        let key = order.plain_key(self.short());
        &key[..key.len().min(head_bytes)]
    }
}

/// An item that outlives its record.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Kept {
    short: Vec<u8>,
    /// The lengths of the record and of its key, if it is a long one.
    long: Option<(u64, u64)>,
}

impl Kept {
    /// Nothing was kept yet: no record is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.short.is_empty()
    }

    /// Takes another's place.
    pub fn keep(&mut self, item: &Item<'_>) {
        self.long = match item {
            Item::Record(_) => None,
            Item::Stub(stub) => Some((stub.bytes, stub.key_bytes)),
        };
        self.short.clear();
        self.short.extend_from_slice(item.short());
    }

    /// It, without its body.
    #[must_use]
    pub fn item(&self) -> Item<'_> {
        match self.long {
            None => Item::Record(&self.short),
            Some((bytes, key_bytes)) => Item::Stub(Stub {
                body: 0,
                bytes,
                key_bytes,
                short: &self.short,
            }),
        }
    }
}

/// The first and the last of some sorted records.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ends([Kept; 2]);

impl Ends {
    /// These.
    #[must_use]
    pub fn of(first: &Item<'_>, last: &Item<'_>) -> Self {
        let mut ends = Self(Default::default());
        ends.0[0].keep(first);
        ends.0[1].keep(last);
        ends
    }

    /// Of these records and those of `behind`.
    #[must_use]
    pub fn until(self, behind: Self) -> Self {
        let ([first, _], [_, last]) = (self.0, behind.0);
        Self([first, last])
    }

    /// The first.
    #[must_use]
    pub fn first(&self) -> Item<'_> {
        self.0[0].item()
    }

    /// The last.
    #[must_use]
    pub fn last(&self) -> Item<'_> {
        self.0[1].item()
    }
}

/// What is known of a record once it has passed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summed {
    /// Its bytes.
    pub bytes: u64,
    /// Bytes of its key.
    pub key_bytes: u64,
    /// A short record with the first bytes of its key.
    pub short: Vec<u8>,
    /// Its hash, as a fingerprint adds it.
    pub hash: u64,
}

impl Summed {
    /// The stub of this record, which lies in `body`.
    #[must_use]
    pub fn stub(&self, body: u32) -> Stub<'_> {
        Stub {
            body,
            bytes: self.bytes,
            key_bytes: self.key_bytes,
            short: &self.short,
        }
    }
}

/// Sums up a record, of lines or of pairs, that comes in parts.
pub struct Summing {
    format: Format,
    delimiter: u8,
    head_bytes: usize,
    first: Vec<u8>,
    bytes: u64,
    hash: Xxh3,
}

impl Summing {
    /// A record of `order`, whose key lies in it in one piece, of which nothing has come; its hash is keyed by `key`.
    #[must_use]
    pub fn new(order: &Order, head_bytes: usize, key: u64) -> Self {
        Self {
            format: order.format(),
            delimiter: order.delimiter(),
            head_bytes,
            first: Vec::new(),
            bytes: 0,
            hash: Xxh3::with_seed(key),
        }
    }

    /// The next part.
    pub fn add(&mut self, part: &[u8]) {
        let room = KV_HEADER_BYTES + self.head_bytes - self.first.len();
        self.first.extend_from_slice(&part[..part.len().min(room)]);
        self.bytes += part.len() as u64;
        self.hash.update(part);
    }

    /// Bytes so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All of it has come.
    #[must_use]
    pub fn end(self) -> Summed {
        let (key_bytes, short) = match self.format {
            Format::Kv => {
                let length = self.first[..4].try_into().expect("four bytes");
                let key_bytes = u32::from_le_bytes(length);
                let count = self.head_bytes.min(key_bytes as usize);
                let mut short = Vec::with_capacity(KV_HEADER_BYTES + count);
                short.extend_from_slice(&(count as u32).to_le_bytes());
                short.extend_from_slice(&0_u32.to_le_bytes());
                short.extend_from_slice(&self.first[KV_HEADER_BYTES..KV_HEADER_BYTES + count]);
                (u64::from(key_bytes), short)
            }
            Format::Lines | Format::Quoted(_) | Format::Fixed(_) => {
                let key_bytes = self.bytes - 1;
                let count = self.head_bytes.min(key_bytes as usize);
                (key_bytes, line_of(&self.first[..count], self.delimiter))
            }
        };
        Summed {
            bytes: self.bytes,
            key_bytes,
            short,
            hash: self.hash.digest(),
        }
    }
}

/// What stands for a long line of which fields decide: its key's first bytes, in a form that the order knows.
#[must_use]
pub fn short_of_line(order: &Order, record: &[u8], head_bytes: usize) -> Summed {
    let (short, key_bytes) = order.short_of_line(record, head_bytes);
    Summed {
        bytes: record.len() as u64,
        key_bytes,
        short,
        hash: 0,
    }
}

/// What stands for a long record of fixed size: a line of its key's first bytes, because in a record of that size
/// they could lie anywhere. All records of such a job are long, so all of them are sorted as lines.
#[must_use]
pub fn short_of_fixed(order: &Order, record: &[u8], head_bytes: usize) -> Summed {
    let mut key = Vec::new();
    order.key_into(record, &mut key);
    let head = &key[..key.len().min(head_bytes)];
    Summed {
        bytes: record.len() as u64,
        key_bytes: key.len() as u64,
        short: line_of(head, b'\n'),
        hash: 0,
    }
}

fn line_of(head: &[u8], delimiter: u8) -> Vec<u8> {
    let mut line = Vec::with_capacity(head.len() + 1);
    line.extend_from_slice(head);
    line.push(delimiter);
    line
}

/// A record that outgrew the room in front of a chunk.
pub enum Long {
    /// Whole, in memory of its own.
    Whole(Whole),
    /// In the body of this number.
    Body(u32, Summed),
    /// Nowhere: it was looked at only.
    Passed(Summed),
}

impl Long {
    /// Bytes of the record.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Whole(whole) => whole.len() as u64,
            Self::Body(_, summed) | Self::Passed(summed) => summed.bytes,
        }
    }

    /// The record, or the short one that stands for it.
    #[must_use]
    pub fn short(&self) -> &[u8] {
        match self {
            Self::Whole(whole) => whole,
            Self::Body(_, summed) | Self::Passed(summed) => &summed.short,
        }
    }
}

/// A record in memory of its own, contiguous.
pub struct Whole {
    buffer: Buffer,
    range: Range<usize>,
}

impl Whole {
    /// The record that lies in `range` of `buffer`.
    #[must_use]
    pub fn new(buffer: Buffer, range: Range<usize>) -> Self {
        Self { buffer, range }
    }

    /// Changes it in place; so many bytes are left as `change` answers.
    pub fn rewrite(&mut self, change: impl FnOnce(&mut [u8]) -> usize) {
        let left = change(&mut self.buffer[self.range.clone()]);
        self.range.end = self.range.start + left;
    }
}

impl std::ops::Deref for Whole {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[self.range.clone()]
    }
}

/// Where the reader puts the parts of a record that outgrows the room in front of a chunk, one record at a time.
pub trait Longs: Send {
    /// Whether a record can begin without waiting for what only workers give back.
    fn has_room(&self) -> bool;
    /// The next part of the record, or the first of a new one.
    ///
    /// # Errors
    /// The job's, when it is ending.
    fn append(&mut self, part: &[u8], meter: &mut Meter<'_>) -> Result<()>;
    /// That was all of it.
    fn end(&mut self) -> Long;
    /// What there is of it is not wanted.
    fn forget(&mut self);
}

/// Long records at once: one that is put together, one that is looked at.
pub const WHOLE_COUNT: usize = 2;

/// Puts records together in memory, each as long as the longest may be.
pub struct WholeLongs<'a> {
    pool: Pool,
    stop: &'a Stop,
    open: Option<(Buffer, usize)>,
}

impl<'a> WholeLongs<'a> {
    /// Of records of at most `record_bytes_max` bytes.
    ///
    /// # Errors
    /// When there is no memory to map.
    pub fn new(record_bytes_max: usize, stop: &'a Stop) -> Result<Self> {
        let pool = Pool::new(WHOLE_COUNT, align_up(record_bytes_max as u64) as usize)
            .map_err(|error| Error::new(ErrorKind::Memory, "mapping memory", error.to_string()))?;
        stop.on_stop({
            let pool = pool.clone();
            move || pool.close()
        });
        Ok(Self {
            pool,
            stop,
            open: None,
        })
    }
}

impl Longs for WholeLongs<'_> {
    fn has_room(&self) -> bool {
        self.pool.free_count() > 0
    }

    fn append(&mut self, part: &[u8], meter: &mut Meter<'_>) -> Result<()> {
        if self.open.is_none() {
            meter.lap(Stage::Read, State::Work);
            let buffer = self.pool.take();
            meter.lap(Stage::Read, State::Memory);
            self.open = Some((buffer.ok_or_else(|| self.stop.error())?, 0));
        }
        let (buffer, used) = self.open.as_mut().expect("it was just made");
        buffer[*used..*used + part.len()].copy_from_slice(part);
        *used += part.len();
        Ok(())
    }

    fn end(&mut self) -> Long {
        let (buffer, used) = self.open.take().expect("a record was begun");
        Long::Whole(Whole::new(buffer, 0..used))
    }

    fn forget(&mut self) {
        self.open = None;
    }
}

/// Looks at records only: sums them up and lets them pass.
pub struct PassedLongs<'a> {
    order: &'a Order,
    head_bytes: usize,
    key: u64,
    summing: Option<Summing>,
}

impl<'a> PassedLongs<'a> {
    /// Of records of `order`, of whose keys `head_bytes` are kept; their hashes are keyed by `key`.
    #[must_use]
    pub fn new(order: &'a Order, head_bytes: usize, key: u64) -> Self {
        Self {
            order,
            head_bytes,
            key,
            summing: None,
        }
    }
}

impl Longs for PassedLongs<'_> {
    fn has_room(&self) -> bool {
        true
    }

    fn append(&mut self, part: &[u8], _: &mut Meter<'_>) -> Result<()> {
        let begin = || Summing::new(self.order, self.head_bytes, self.key);
        self.summing.get_or_insert_with(begin).add(part);
        Ok(())
    }

    fn end(&mut self) -> Long {
        Long::Passed(self.summing.take().expect("a record was begun").end())
    }

    fn forget(&mut self) {
        self.summing = None;
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use xxhash_rust::xxh3::xxh3_64_with_seed;

    use super::*;

    fn pair(key: &[u8], value: &[u8]) -> Vec<u8> {
        let lengths = [key.len() as u32, value.len() as u32].map(u32::to_le_bytes);
        [&lengths.concat(), key, value].concat()
    }

    fn line(line: &[u8]) -> Vec<u8> {
        [line, b"\n"].concat()
    }

    fn summed(format: Format, record: &[u8], part_bytes: usize) -> Summed {
        let order = Order::new(format, &[]).unwrap();
        let mut summing = Summing::new(&order, 4, 7);
        record.chunks(part_bytes).for_each(|part| summing.add(part));
        summing.end()
    }

    #[test]
    fn a_record_is_summed_up_alike_in_any_parts() {
        for (format, record, key_bytes, short) in [
            (Format::Lines, line(b"abcdefgh"), 8, line(b"abcd")),
            (Format::Lines, line(b"abcd"), 4, line(b"abcd")),
            (Format::Lines, line(b"a\0"), 2, line(b"a\0")),
            (Format::Kv, pair(b"abcdefgh", b"12"), 8, pair(b"abcd", b"")),
            (Format::Kv, pair(b"ab", b"12345678"), 2, pair(b"ab", b"")),
            (Format::Kv, pair(b"", b"12345678"), 0, pair(b"", b"")),
        ] {
            let wanted = Summed {
                bytes: record.len() as u64,
                key_bytes,
                short,
                hash: xxh3_64_with_seed(&record, 7),
            };
            for part_bytes in 1..=record.len() {
                assert_eq!(summed(format, &record, part_bytes), wanted);
            }
            let mut bytes = [0; 100];
            let used = wanted.stub(9).put(&mut bytes);
            assert_eq!(Stub::get(&bytes[..used]), Some(wanted.stub(9)));
            assert_eq!(Stub::get(&bytes[..Stub::PREFIX_BYTES]), None);
        }
    }

    /// Of any two keys of few letters, long or not: what heads tell is true, and where they tell nothing both keys
    /// begin with the same head.
    #[test]
    fn heads_tell_the_truth_or_nothing() {
        let order = Order::lines();
        let keys: Vec<Vec<u8>> = (0..3_usize.pow(7))
            .map(|number| {
                let letters = (0..7).map(|place| number / 3_usize.pow(place) % 3);
                letters
                    .take_while(|&letter| letter > 0)
                    .map(|letter| letter as u8)
                    .collect()
            })
            .collect();
        let shorts: Vec<Summed> = keys
            .iter()
            .map(|key| summed(Format::Lines, &line(key), 3))
            .collect();
        let lines: Vec<Vec<u8>> = keys.iter().map(|key| line(key)).collect();
        let mut untold = 0;
        let pairs =
            (0..keys.len()).flat_map(|a| (a % 7..keys.len()).step_by(7).map(move |b| (a, b)));
        for (a, b) in pairs {
            for stubs in 0..4 {
                let item = |at: usize, is_stub: bool| match is_stub {
                    true => Item::Stub(shorts[at].stub(0)),
                    false => Item::Record(&lines[at]),
                };
                let (x, y) = (item(a, stubs & 1 > 0), item(b, stubs & 2 > 0));
                match x.compare_heads(&order, 4, &y) {
                    Some(told) => assert_eq!(told, keys[a].cmp(&keys[b])),
                    None => {
                        assert_eq!(keys[a][..4], keys[b][..4]);
                        untold += 1;
                    }
                }
            }
        }
        assert!(untold > 10, "{untold}");
    }
}
