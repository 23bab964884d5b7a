//! Keys and values of any length, each behind two lengths (docs/generators.md).
//!
//! ```text
//! | key bytes, u32 le | value bytes, u32 le | key: noise | value: number, 8 bytes le | noise |
//! ```
//!
//! Lengths are drawn from the record's number without its bytes, and any part of a record can be written by
//! itself: one of a gigabyte lies across hundreds of buffers, and nobody ever holds it whole. Where a value
//! is too short for the record's number, it has the first bytes of it.

use super::Amount;
use super::data::{Data, Draws};
use super::layout::Sizes;
use crate::error::{Error, ErrorKind, Result};
use crate::queue::Stop;

const HEAD_BYTES: usize = 8;

/// How long keys and values are.
#[derive(Clone, Copy, Debug)]
enum Lengths {
    /// By Pareto's law, and two planted ones.
    Pareto(Pareto),
    /// Often none at all.
    Empty,
}

#[derive(Clone, Copy, Debug)]
struct Pareto {
    largest: u64,
    /// Which record has the largest key, and which the largest value.
    planted: Option<(u64, u64)>,
    /// The share of all lengths that the law would make larger than `largest`.
    beyond: f64,
}

/// Records of keys and values.
#[derive(Clone, Copy, Debug)]
pub struct Kv {
    seed: u64,
    lengths: Lengths,
}

/// The shortest key and value by Pareto's law, in bytes.
pub const PARETO_SMALLEST: u64 = 100;
/// The longest key and value that can be asked for, in bytes.
pub const PARETO_LARGEST_MAX: u64 = 1 << 30;
/// The exponent of Pareto's law: a mean of three times the smallest, a variance without bound.
pub const PARETO_ALPHA: f64 = 1.5;

const EMPTY_KEY_BYTES_MAX: u64 = 32;
const EMPTY_VALUE_BYTES_MAX: u64 = 64;

impl Kv {
    /// Keys and values from 100 to below `largest` bytes by Pareto's law, but for one key and one value of
    /// exactly `largest`, at two places drawn from the seed. Returns them and their number: of `amount`,
    /// bytes are not quite used up, as the two need room wherever they come to lie.
    ///
    /// # Errors
    /// A usage error for a `largest` out of range, or more than `amount` has room for; that of `stop`.
    pub fn pareto(
        seed: u64,
        largest: u64,
        amount: Amount,
        threads: usize,
        stop: &Stop,
    ) -> Result<(Self, u64)> {
        let refuse = |cause: String| Err(Error::new(ErrorKind::Usage, "generating records", cause));
        if !(PARETO_SMALLEST + 1..=PARETO_LARGEST_MAX).contains(&largest) {
            return refuse(format!(
                "the largest key and value can have {} to {PARETO_LARGEST_MAX} bytes, not {largest}",
                PARETO_SMALLEST + 1
            ));
        }
        let mut pareto = Pareto {
            largest,
            planted: None,
            beyond: (largest as f64 / PARETO_SMALLEST as f64).powf(-PARETO_ALPHA),
        };
        let unplanted = Self {
            seed,
            lengths: Lengths::Pareto(pareto),
        };
        let count = match amount {
            Amount::Records(count) => count,
            Amount::Bytes(bytes) => {
                let rest = Amount::Bytes(bytes.saturating_sub(2 * largest));
                let count = Sizes::measure(&unplanted, rest, threads, stop)?.count();
                if count == 0 {
                    return refuse(format!(
                        "{bytes} bytes have no room for a key and a value of {largest} and a few others"
                    ));
                }
                count
            }
        };
        let mut places = Draws::of(seed, u64::MAX);
        if count > 0 {
            let key = places.below(count);
            // Another record, if there is one.
            let value = (key + 1 + places.below(count - 1)) % count;
            pareto.planted = Some((key, value));
        }
        let planted = Self {
            seed,
            lengths: Lengths::Pareto(pareto),
        };
        Ok((planted, count))
    }

    /// Records of which a quarter has neither key nor value, a quarter no key, a quarter no value, and the
    /// others keys and values of a few bytes.
    pub fn empty(seed: u64) -> Self {
        Self {
            seed,
            lengths: Lengths::Empty,
        }
    }

    /// The bytes of key and value, and what both are made of.
    fn lengths(&self, number: u64) -> (u64, u64, Draws) {
        let mut draws = Draws::of(self.seed, number);
        let (key, value) = match &self.lengths {
            Lengths::Pareto(pareto) => {
                let (mut key, mut value) = (pareto.draw(&mut draws), pareto.draw(&mut draws));
                if let Some((key_at, value_at)) = pareto.planted {
                    key = if number == key_at {
                        pareto.largest
                    } else {
                        key
                    };
                    value = if number == value_at {
                        pareto.largest
                    } else {
                        value
                    };
                }
                (key, value)
            }
            Lengths::Empty => {
                let word = draws.word();
                let key = 1 + (word >> 8) % EMPTY_KEY_BYTES_MAX;
                let value = 1 + (word >> 32) % EMPTY_VALUE_BYTES_MAX;
                (key * (word & 1), value * (word >> 1 & 1))
            }
        };
        (key, value, draws)
    }
}

impl Pareto {
    /// A length from the smallest to one less than the largest, by the inverse of the law's distribution
    /// between them.
    #[inline]
    fn draw(&self, draws: &mut Draws) -> u64 {
        let beyond = self.beyond + draws.fraction() * (1.0 - self.beyond);
        // The power -2/3, at half the price of `powf`.
        let length = PARETO_SMALLEST as f64 / (beyond * beyond).cbrt();
        (length as u64).clamp(PARETO_SMALLEST, self.largest - 1)
    }
}

impl Data for Kv {
    fn record_bytes_fixed(&self) -> Option<u64> {
        None
    }

    fn record_bytes_max(&self) -> usize {
        let longest = match &self.lengths {
            Lengths::Pareto(pareto) => 2 * pareto.largest,
            Lengths::Empty => EMPTY_KEY_BYTES_MAX + EMPTY_VALUE_BYTES_MAX,
        };
        HEAD_BYTES + longest as usize
    }

    fn record_bytes(&self, number: u64) -> u64 {
        let (key, value, _) = self.lengths(number);
        HEAD_BYTES as u64 + key + value
    }

    fn write(&self, number: u64, out: &mut [u8]) -> usize {
        self.part(number, 0, out)
    }

    fn fill(&self, _first: u64, _out: &mut [u8]) -> (u64, usize) {
        // Room for the longest there hardly ever is, and parts cost no more than wholes.
        (0, 0)
    }

    fn part(&self, number: u64, from: u64, out: &mut [u8]) -> usize {
        let (key_bytes, value_bytes, mut draws) = self.lengths(number);
        let mut head = [0; HEAD_BYTES];
        head[..4].copy_from_slice(&(key_bytes as u32).to_le_bytes());
        head[4..].copy_from_slice(&(value_bytes as u32).to_le_bytes());
        let (key, value) = (draws.other(), draws.other());
        let number = number.to_le_bytes();
        let number_bytes = value_bytes.min(8);

        let mut at = 0;
        let mut from = from;
        let mut section = |bytes: u64, write: &dyn Fn(u64, &mut [u8])| {
            let skipped = from.min(bytes);
            from -= skipped;
            let length = (bytes - skipped).min((out.len() - at) as u64) as usize;
            write(skipped, &mut out[at..at + length]);
            at += length;
        };
        let plain = |bytes: [u8; 8]| {
            move |from: u64, out: &mut [u8]| {
                out.copy_from_slice(&bytes[from as usize..from as usize + out.len()]);
            }
        };
        section(HEAD_BYTES as u64, &plain(head));
        section(key_bytes, &|from, out| key.noise(from, out));
        section(number_bytes, &plain(number));
        section(value_bytes - number_bytes, &|from, out| {
            value.noise(from, out)
        });
        at
    }
}
