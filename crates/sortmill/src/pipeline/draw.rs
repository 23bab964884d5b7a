//! Numbers drawn from a seed and from where records lie: for an order at random, and for a part of the records.
//!
//! A place is the input and the byte there at which the record begins that a record was made of; what is made of one such
//! record is told apart by how many came before. Neither memory nor threads nor arrival change a place, so they
//! change no number. Numbers are XXH3 of place and seed.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Where a record lies: the number of its input, and the byte there where it begins.
pub type Place = (u64, u64);

/// Draws numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draw {
    seed: u64,
}

impl Draw {
    /// By `seed`; the numbers of each epoch have nothing to do with those of another.
    pub fn new(seed: u64, epoch: u64) -> Self {
        Self {
            seed: xxh3_64_with_seed(&epoch.to_le_bytes(), seed),
        }
    }

    /// What every number is drawn from.
    pub fn seed(self) -> u64 {
        self.seed
    }

    /// The number of what was made as number `index` of the record at `place`.
    pub fn number(self, (input, offset): Place, index: u64) -> u64 {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&input.to_le_bytes());
        bytes[8..16].copy_from_slice(&offset.to_le_bytes());
        bytes[16..].copy_from_slice(&index.to_le_bytes());
        xxh3_64_with_seed(&bytes, self.seed)
    }
}

/// Keeps a part of the records, each with the same probability.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    draw: Draw,
    /// Of 2^64 numbers so many are those of records that are kept.
    kept: u128,
}

impl Sample {
    /// `None` unless `fraction` is from 0 to 1.
    pub fn new(fraction: f64, seed: u64) -> Option<Self> {
        (0.0..=1.0).contains(&fraction).then(|| Self {
            // What is drawn here is none of what a shuffle of the same seed draws.
            draw: Draw::new(seed, u64::MAX),
            kept: (fraction * 2f64.powi(64)) as u128,
        })
    }

    /// Whether what was made as number `index` of the record at `place` is kept.
    pub fn keeps(self, place: Place, index: u64) -> bool {
        u128::from(self.draw.number(place, index)) < self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_is_kept() {
        for fraction in [0.0, 0.001, 0.25, 1.0] {
            let sample = Sample::new(fraction, 7).unwrap();
            let kept = (0..100_000u64).filter(|&at| sample.keeps((at % 3, at / 3), at % 2));
            let off = kept.count() as f64 - 100_000.0 * fraction;
            // Five standard deviations, and the draws are fixed.
            assert!(off.abs() <= 5.0 * (100_000.0 * fraction * (1.0 - fraction)).sqrt());
        }
        for wrong in [-0.1, 1.1, f64::NAN] {
            assert!(Sample::new(wrong, 7).is_none());
        }
    }

    #[test]
    fn seeds_epochs_places_and_indexes_draw_others() {
        let mut seen = std::collections::BTreeSet::new();
        for (seed, epoch) in [(1, 0), (1, 1), (2, 0), (2, 1)] {
            for place in [(0, 0), (0, 1), (1, 0)] {
                for index in 0..50 {
                    assert!(seen.insert(Draw::new(seed, epoch).number(place, index)));
                }
            }
        }
    }
}
