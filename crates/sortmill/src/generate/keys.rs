//! Records of one size by what their keys are like: how often they repeat, and in what order they come.
//!
//! ```text
//!  key_bytes                              record_bytes - key_bytes
//! | prefix 'p' ... | value, noise ...   | number, 8 bytes le | noise ...      |
//! ```
//!
//! The value is a word of 64 bits, big-endian, that a [`Shape`] gives to each record number; a key with less
//! room has only its first bytes. What follows it in the key is made of the value alone, so that equal
//! values are equal keys. The record's number behind the key tells whether equal keys kept their order.

use super::data::{Data, Draws};
use super::zipf::Zipf;
use crate::error::{Error, ErrorKind, Result};

/// Which keys.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// All equally likely, hardly any twice.
    Uniform,
    /// `distinct` keys, the `k`-th most frequent in proportion to `1 / k^exponent`.
    Zipf {
        /// How many, at least one.
        distinct: u64,
        /// Above 0.
        exponent: f64,
    },
    /// So many keys, at least one, all equally likely.
    Distinct(u64),
    /// One key on this share of the records, 0 to 1; the others uniform.
    Hot(f64),
    /// In order.
    Sorted,
    /// In reversed order.
    Reversed,
    /// Up in the first half, down in the second.
    OrganPipe,
    /// In order within each so many records, at least one.
    Blocks(u64),
    /// In order, but for the last record, which is the first of all.
    SortedButLast,
    /// Uniform within an eighth of the range, which goes from its bottom to its top along the file.
    Drift,
    /// Uniform in so many records, and then one key.
    HotFrom(u64),
}

/// How long records and keys are, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    /// Of a record, 1 to [`RECORD_BYTES_MAX`].
    pub record_bytes: usize,
    /// Of its key, with which it begins.
    pub key_bytes: usize,
    /// Of the beginning that all keys have in common; less than the key.
    pub prefix_bytes: usize,
}

/// Records with such keys.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    shape: Shape,
    seed: u64,
    count: u64,
    lengths: Lengths,
    /// Read by the shape `Zipf` only.
    zipf: Zipf,
}

/// The most bytes of a record.
pub const RECORD_BYTES_MAX: usize = 1 << 20;

impl Keys {
    /// Records with keys of this shape, of which there will be `count`.
    ///
    /// # Errors
    /// A usage error for lengths that do not fit into each other, or too short for so many distinct keys.
    pub fn new(shape: Shape, seed: u64, count: u64, lengths: Lengths) -> Result<Self> {
        let Lengths {
            record_bytes,
            key_bytes,
            prefix_bytes,
        } = lengths;
        let refuse = |cause: String| Err(Error::new(ErrorKind::Usage, "generating records", cause));
        if !(1..=RECORD_BYTES_MAX).contains(&record_bytes) {
            let range = format!("1 to {RECORD_BYTES_MAX} bytes");
            return refuse(format!("a record can have {range}, not {record_bytes}"));
        }
        if key_bytes > record_bytes {
            return refuse(format!(
                "a key of {key_bytes} bytes does not fit into a record of {record_bytes}"
            ));
        }
        if prefix_bytes >= key_bytes {
            return refuse(format!(
                "a key of {key_bytes} bytes has no byte left behind {prefix_bytes} that are the same in all"
            ));
        }
        let own_bytes = key_bytes - prefix_bytes;
        let (distinct, exponent) = match shape {
            Shape::Zipf { distinct, exponent } => (distinct, exponent),
            Shape::Distinct(distinct) => (distinct, 1.0),
            _ => (1, 1.0),
        };
        if distinct == 0 || own_bytes < 8 && distinct > 1 << (8 * own_bytes) {
            return refuse(format!(
                "there are no {distinct} distinct keys of {own_bytes} bytes"
            ));
        }
        Ok(Self {
            shape,
            seed,
            count,
            lengths,
            zipf: Zipf::new(distinct, exponent),
        })
    }

    /// The word that makes the key of record `number`.
    fn value(&self, number: u64, draws: &mut Draws) -> u64 {
        let last = self.count.saturating_sub(1);
        match self.shape {
            Shape::Uniform => draws.word(),
            Shape::Zipf { .. } => self.spread(self.zipf.draw(draws)),
            Shape::Distinct(distinct) => self.spread(draws.below(distinct)),
            Shape::Hot(share) if draws.fraction() < share => self.spread(0),
            Shape::Hot(_) => draws.word(),
            Shape::Sorted => nth(number, self.count, draws),
            Shape::Reversed => nth(last - number, self.count, draws),
            Shape::OrganPipe if number < self.count.div_ceil(2) => {
                nth(2 * number, self.count, draws)
            }
            Shape::OrganPipe => nth(2 * (last - number) + 1, self.count, draws),
            Shape::Blocks(records) => nth(number % records, records, draws),
            Shape::SortedButLast if number == last => 0,
            Shape::SortedButLast => nth(number, self.count, draws),
            Shape::Drift => (nth(number, self.count, draws) / 8 * 7) + draws.word() / 8,
            Shape::HotFrom(records) if number >= records => self.spread(0),
            Shape::HotFrom(_) => draws.word(),
        }
    }

    /// The value of the `rank`-th of some distinct keys. Ranks lie far from each other, and the fewer there
    /// are the fewer of the first bits tell them apart.
    fn spread(&self, rank: u64) -> u64 {
        rank.reverse_bits() ^ Draws::of(self.seed, u64::MAX).word()
    }
}

/// A value in the `number`-th of `count` equal parts of the range.
fn nth(number: u64, count: u64, draws: &mut Draws) -> u64 {
    let start = |number: u64| (u128::from(number) << 64) / u128::from(count);
    let bytes = start(number + 1) - start(number);
    let within = (u128::from(draws.word()) * bytes) >> 64;
    (start(number) + within) as u64
}

impl Data for Keys {
    fn record_bytes_fixed(&self) -> Option<u64> {
        Some(self.lengths.record_bytes as u64)
    }

    fn record_bytes_max(&self) -> usize {
        self.lengths.record_bytes
    }

    fn record_bytes(&self, _number: u64) -> u64 {
        self.lengths.record_bytes as u64
    }

    fn write(&self, number: u64, out: &mut [u8]) -> usize {
        let mut draws = Draws::of(self.seed, number);
        let value = self.value(number, &mut draws);
        let record = &mut out[..self.lengths.record_bytes];
        let (key, payload) = record.split_at_mut(self.lengths.key_bytes);
        let (prefix, own) = key.split_at_mut(self.lengths.prefix_bytes);
        prefix.fill(b'p');
        match own.split_first_chunk_mut::<8>() {
            Some((word, rest)) => {
                *word = value.to_be_bytes();
                Draws::of(self.seed, value).noise(0, rest);
            }
            None => own.copy_from_slice(&value.to_be_bytes()[..own.len()]),
        }
        match payload.split_first_chunk_mut::<8>() {
            Some((word, rest)) => {
                *word = number.to_le_bytes();
                draws.noise(0, rest);
            }
            None => payload.copy_from_slice(&number.to_le_bytes()[..payload.len()]),
        }
        self.lengths.record_bytes
    }
}
