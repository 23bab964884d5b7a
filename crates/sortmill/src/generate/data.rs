//! What a data set is to whoever writes it, and where its randomness comes from.
//!
//! A record follows from the seed and its number alone. So any number of threads may write any parts of a
//! data set in any order, and a file is the same bytes however it was cut.

use std::ops::Range;

/// Records in the order of their numbers, from 0 on.
pub trait Data: Sync {
    /// The bytes of every record, if all are of one size.
    fn record_bytes_fixed(&self) -> Option<u64>;

    /// The most bytes of a record.
    fn record_bytes_max(&self) -> usize;

    /// The bytes of record `number`, at least one.
    fn record_bytes(&self, number: u64) -> u64;

    /// Writes record `number` to the beginning of `out`, which has room for the longest record and is
    /// changed behind it as well. Returns the record's bytes.
    fn write(&self, number: u64, out: &mut [u8]) -> usize;

    /// The bytes of all these records.
    fn bytes_of(&self, numbers: Range<u64>) -> u64 {
        numbers.map(|number| self.record_bytes(number)).sum()
    }

    /// Writes records from `first` on while there is room for the longest. Returns how many they were, and
    /// their bytes.
    fn fill(&self, first: u64, out: &mut [u8]) -> (u64, usize) {
        let (mut count, mut at) = (0, 0);
        while out.len() - at >= self.record_bytes_max() {
            at += self.write(first + count, &mut out[at..]);
            count += 1;
        }
        (count, at)
    }

    /// Writes record `number` from its byte `from` on, as far as `out` has room. Returns the bytes written.
    fn part(&self, number: u64, from: u64, out: &mut [u8]) -> usize {
        let mut whole = vec![0; self.record_bytes_max()];
        let record_bytes = self.write(number, &mut whole);
        let rest = &whole[from as usize..record_bytes];
        let bytes = rest.len().min(out.len());
        out[..bytes].copy_from_slice(&rest[..bytes]);
        bytes
    }
}

/// A row of random words.
///
/// Source: wyrand of W. Yi's wyhash; states are told apart by the mixer of splitmix64 (Steele, Lea and
/// Flood 2014).
#[derive(Clone, Copy)]
pub struct Draws(u64);

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
const STRIDE: u64 = 0xA076_1D64_78BD_642F;

impl Draws {
    /// Those of number `number` among the rows of `seed`.
    #[inline]
    pub fn of(seed: u64, number: u64) -> Self {
        let row = mix(seed).wrapping_add(number.wrapping_mul(GOLDEN));
        Self(mix(row))
    }

    /// The next word.
    #[inline]
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STRIDE);
        let product = u128::from(self.0) * u128::from(self.0 ^ 0xE703_7ED1_A0B4_28DB);
        product as u64 ^ (product >> 64) as u64
    }

    /// The word that comes so many behind the next one.
    #[inline]
    pub fn at(self, number: u64) -> u64 {
        Self(self.0.wrapping_add(number.wrapping_mul(STRIDE))).word()
    }

    /// A number below `limit`, all equally likely but for one part in 2^64 / `limit`.
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        scaled(self.word(), limit)
    }

    /// A number between 0 and 1, neither of them.
    #[inline]
    pub fn fraction(&mut self) -> f64 {
        ((self.word() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// Another row, told apart by the next word.
    #[inline]
    pub fn other(&mut self) -> Self {
        Self(self.word())
    }

    /// Writes the bytes of the words that follow, from byte `from` on.
    pub fn noise(self, from: u64, out: &mut [u8]) {
        let mut draws = Self(self.0.wrapping_add((from / 8).wrapping_mul(STRIDE)));
        let within = (from % 8) as usize;
        let mut out = out;
        if within > 0 {
            let head = (8 - within).min(out.len());
            let word = draws.word().to_le_bytes();
            out[..head].copy_from_slice(&word[within..within + head]);
            out = &mut out[head..];
        }
        let (words, tail) = out.as_chunks_mut::<8>();
        for word in words {
            *word = draws.word().to_le_bytes();
        }
        let word = draws.word().to_le_bytes();
        tail.copy_from_slice(&word[..tail.len()]);
    }
}

/// Where below `limit` a word lies when all words are spread over these numbers.
#[inline]
pub fn scaled(word: u64, limit: u64) -> u64 {
    ((u128::from(word) * u128::from(limit)) >> 64) as u64
}

#[inline]
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(GOLDEN);
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}
