//! An order that is drawn: numbers out of a seed and the places of records.
//!
//! Deal the records to heaps at random, then put each heap in random order: all permutations are equally likely (Rao,
//! Generation of random permutation of given number of elements using random sampling numbers, Sankhya A 23, 1961;
//! Sandelius, A simple randomization procedure, Journal of the Royal Statistical Society B 24, 1962). The heaps are the
//! job's partitions:
//!
//! ```text
//! (chunk, index in it)                        -- dealing  --> the partition            while distributing
//! (partition, chunk, index of those in both)  -- ordering --> 64 bits, sorted by       while sorting
//! ```
//!
//! Nothing is stored beside a record: chunks are numbered in its segment's header anyway, and segments keep the order of
//! the input. So temporary data are those of sorting. And the number of partitions follows from the bytes of the input
//! alone: neither memory nor threads have a part in any of the numbers, so they have none in the output.
//!
//! The numbers are those of SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators, OOPSLA
//! 2014), whose n-th one takes no others to be known; a stream of them begins where XXH3 of seed and place says.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// So many bytes of the input, times the number of partitions, are a partition: as it grows, both do.
const SQUARE_BYTES: u64 = 64 << 10;
/// Partitions of an input whose length nobody knows.
const STREAM_PARTITION_COUNT: usize = 64;
/// Partitions at most.
const PARTITION_COUNT_MAX: u64 = 1 << 16;
/// The distance between the states of SplitMix64.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Draws the order of a job's records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shuffle {
    seed: u64,
}

/// A row of random numbers, each known by its index.
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    state: u64,
}

impl Shuffle {
    /// Draws by `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// How many partitions an input of so many bytes is dealt to; `None` is a stream.
    #[must_use]
    pub fn partition_count(input_bytes: Option<u64>) -> usize {
        let count = |bytes: u64| (bytes / SQUARE_BYTES).isqrt().clamp(1, PARTITION_COUNT_MAX);
        input_bytes.map_or(STREAM_PARTITION_COUNT, |bytes| count(bytes) as usize)
    }

    /// What deals the records of `chunk` to partitions, by their indexes in it.
    #[must_use]
    pub fn dealing(&self, chunk: u64) -> Draws {
        self.draws(0, chunk)
    }

    /// What orders the records of `chunk` that are in `partition`, by their indexes among those.
    #[must_use]
    pub fn ordering(&self, partition: u32, chunk: u64) -> Draws {
        self.draws(1 + u64::from(partition), chunk)
    }

    fn draws(&self, heap: u64, chunk: u64) -> Draws {
        let mut place = [0; 16];
        place[..8].copy_from_slice(&heap.to_le_bytes());
        place[8..].copy_from_slice(&chunk.to_le_bytes());
        Draws {
            state: xxh3_64_with_seed(&place, self.seed),
        }
    }
}

impl Draws {
    /// Number `index`.
    #[inline]
    #[must_use]
    pub fn number(self, index: u64) -> u64 {
        let steps = index.wrapping_add(1).wrapping_mul(GAMMA);
        let mut bits = self.state.wrapping_add(steps);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// The same, cut down to a number below `count`. None is likelier than another by more than one part in 2^64 /
    /// `count`.
    #[inline]
    #[must_use]
    pub fn below(self, index: u64, count: usize) -> usize {
        ((u128::from(self.number(index)) * count as u128) >> 64) as usize
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    /// The numbers are those of SplitMix64 from state 1234567 on, as its reference implementation prints them.
    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        let draws = Draws { state: 1_234_567 };
        let numbers: Vec<u64> = (0..5).map(|index| draws.number(index)).collect();
        assert_eq!(
            numbers,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821,
            ]
        );
    }

    #[test]
    fn partitions_grow_as_the_root_of_the_input() {
        for (bytes, count) in [
            (Some(0), 1),
            (Some(65_535), 1),
            (Some(16 << 20), 16),
            (Some(10_000_000_000), 390),
            (Some(u64::MAX), 65_536),
            (None, 64),
        ] {
            assert_eq!(Shuffle::partition_count(bytes), count, "{bytes:?}");
        }
    }
}
