//! Numbers in a random order, of which any place is found without the others.
//!
//! A number is cut into a left and a right half, and each half in turn is changed by what the other one says:
//!
//! ```text
//! left   0 .. left_count - 1    + word(right), around                 + word(right), around
//! right  right_bits                                    ^ word(left)
//! ```
//!
//! Each step can be undone, so numbers stay different from each other. There are hardly more pairs of halves
//! than numbers; who ends among the few beyond goes on from there until that is not so.
//!
//! Source: J. Black and P. Rogaway, "Ciphers with arbitrary finite domains", 2002 (generalized Feistel networks
//! and cycle walking); M. Luby and C. Rackoff, "How to construct pseudorandom permutations from pseudorandom
//! functions", 1988 (three rounds are enough). With a fast hash it is no cipher, and test data need none.

use super::data::{Draws, scaled};

/// The numbers below a count in random orders, one for each turn.
pub struct Permutation {
    count: u64,
    left_count: u64,
    right_bits: u32,
    rows: [Draws; ROUNDS],
}

const ROUNDS: usize = 3;

impl Permutation {
    /// Of the numbers 0 to `count - 1`, below 2^63, drawn from `draws`.
    pub fn new(mut draws: Draws, count: u64) -> Self {
        let right_bits = (64 - count.leading_zeros()) / 2;
        Self {
            count,
            left_count: count.div_ceil(1 << right_bits),
            right_bits,
            rows: std::array::from_fn(|_| draws.other()),
        }
    }

    /// The number at `place`, which is below the count, in the order of `turn`.
    #[inline]
    pub fn number(&self, turn: u64, place: u64) -> u64 {
        debug_assert!(place < self.count);
        let mut number = place;
        loop {
            number = self.rounds(turn, number);
            if number < self.count {
                return number;
            }
        }
    }

    #[inline]
    fn rounds(&self, turn: u64, number: u64) -> u64 {
        let right_mask = (1 << self.right_bits) - 1;
        let (mut left, mut right) = (number >> self.right_bits, number & right_mask);
        for (round, row) in self.rows.into_iter().enumerate() {
            // Halves have at most 32 bits.
            let word = |half: u64| row.at(turn << 32 | half);
            if round % 2 == 0 {
                left += scaled(word(right), self.left_count);
                left -= if left >= self.left_count {
                    self.left_count
                } else {
                    0
                };
            } else {
                right ^= word(left) & right_mask;
            }
        }
        left << self.right_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once() {
        let counts = (1..=70).chain([255, 256, 257, 1_000, 4_095, 4_096, 10_007]);
        for count in counts {
            let permutation = Permutation::new(Draws::of(count, 0), count);
            for turn in [0, 1, u64::MAX] {
                let mut numbers: Vec<u64> = (0..count)
                    .map(|place| permutation.number(turn, place))
                    .collect();
                assert!(
                    count < 20 || !numbers.is_sorted(),
                    "{count} numbers, turn {turn}"
                );
                numbers.sort_unstable();
                assert!(numbers.into_iter().eq(0..count), "{count}, turn {turn}");
            }
        }
        let most = Permutation::new(Draws::of(1, 0), u64::MAX >> 1);
        assert!(most.number(0, (u64::MAX >> 1) - 1) < u64::MAX >> 1);
    }

    /// Where a number goes, and how far from its neighbour, says nothing about where it stood: over seeds, and
    /// over turns, all tenths of the range are equally likely.
    #[test]
    fn places_are_equally_likely() {
        const COUNT: u64 = 1_000;
        let mut cells = [[0_u32; 10]; 4];
        for number in 0..10_000 {
            let by_seed = Permutation::new(Draws::of(number, 0), COUNT);
            let by_turn = Permutation::new(Draws::of(7, 0), COUNT);
            let [first, next] = [0, 1].map(|place| by_seed.number(0, place));
            let [turn_first, turn_next] = [0, 1].map(|place| by_turn.number(number, place));
            let apart = |one: u64, other: u64| (one + COUNT - other) % COUNT;
            for (cells, value) in cells.iter_mut().zip([
                first,
                apart(next, first),
                turn_first,
                apart(turn_next, turn_first),
            ]) {
                cells[(value / 100) as usize] += 1;
            }
        }
        // 1,000 in each, five deviations of 30.
        let even = |count: &u32| (850..=1_150).contains(count);
        assert!(cells.as_flattened().iter().all(even), "{cells:?}");
    }
}
