//! Order that the input has already: in how many pieces it rises or falls, and in what order to read it then.
//!
//! In come keys at known places of the input, out go **stretches**, each with the lowest place that a record in it has
//! if the input is as it seems. Read by rising places, each stretch of however many pieces comes when its keys are
//! due, and what lies below all stretches to come is complete. Nothing is lost where it is not as it seems: a record
//! below what was thought complete is late, and `run/ordered.rs` mends that.
//!
//! ```text
//! keys      /\          three pieces: up, down, up             read:  3 1 2 . .
//!          /  \   /                                                   | | |
//!         /    \ /                                            stretches by rising lowest keys, of all pieces
//! places  1 2  3 4  .                                         where a piece begins or ends: first of all
//! ```
//!
//! Pure: no I/O.

use std::cmp::Ordering;

use crate::table::Boundary;

/// A key, if a record was found at the place.
pub type Key = Option<Vec<u8>>;

/// Neighbouring chunks of one input, read one after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// Which input, from 0.
    pub input: usize,
    /// The number of the first chunk.
    pub chunk: u64,
    /// Where it begins in the input, in bytes.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
    /// No record in it lies below, if order is as it seems; `None` where a piece begins or ends in it.
    pub lowest: Option<Boundary>,
}

/// In how many pieces `keys` rise or fall; equal keys do both. Of random keys a piece has about three.
pub fn count_pieces<'a>(keys: impl IntoIterator<Item = &'a Key>) -> usize {
    let mut keys = keys.into_iter().flatten();
    let Some(mut before) = keys.next() else {
        return 0;
    };
    let mut count = 1;
    let mut direction = Ordering::Equal;
    for key in keys {
        let next = before.cmp(key);
        if next != direction && next != Ordering::Equal {
            if direction == Ordering::Equal {
                direction = next;
            } else {
                count += 1;
                direction = Ordering::Equal;
            }
        }
        before = key;
    }
    count
}

/// An input, and how it is cut into stretches.
#[derive(Clone, Copy, Debug)]
pub struct Extents {
    /// The number of its first chunk.
    pub first_chunk: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// Bytes of a stretch: whole chunks.
    pub stretch_bytes: u64,
}

impl Extents {
    /// How many stretches it has.
    #[must_use]
    pub fn stretch_count(&self) -> u64 {
        self.bytes.div_ceil(self.stretch_bytes)
    }
}

/// The stretches of `input`, of which `keys` are those at the beginning of each stretch and the last one of all.
#[must_use]
pub fn stretches(input: usize, extents: &Extents, keys: &[Key]) -> Vec<Stretch> {
    let chunks = extents.stretch_bytes / extents.chunk_bytes;
    (0..extents.stretch_count())
        .map(|number| {
            let offset = number * extents.stretch_bytes;
            let chunk = extents.first_chunk + number * chunks;
            let lowest = lowest(keys, number as usize);
            Stretch {
                input,
                chunk,
                offset,
                bytes: extents.stretch_bytes.min(extents.bytes - offset),
                lowest: lowest.map(|key| Boundary { key, chunk }),
            }
        })
        .collect()
}

/// The lowest key of stretch `number`, if the keys around it rise or fall: a stretch further to either side is taken
/// for its own, so that a record may stand a little out of order, and one that began in the stretch before belongs.
fn lowest(keys: &[Key], number: usize) -> Key {
    let around = &keys[number.saturating_sub(1)..keys.len().min(number + 3)];
    let known: Option<Vec<&Vec<u8>>> = around.iter().map(Option::as_ref).collect();
    let known = known?;
    let (rises, falls) = (known.is_sorted(), known.is_sorted_by(|a, b| a >= b));
    let lowest = match (rises, falls) {
        (true, _) => known.first(),
        (false, true) => known.last(),
        (false, false) => None,
    };
    lowest.map(|key| (*key).clone())
}

/// Puts stretches into the order in which to read them: those of which nothing is known first.
pub fn by_lowest(stretches: &mut [Stretch]) {
    stretches.sort_by(|a, b| (&a.lowest, a.chunk).cmp(&(&b.lowest, b.chunk)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<Key> {
        let key = |letter: char| (letter != '?').then(|| vec![letter as u8]);
        text.chars().map(key).collect()
    }

    #[test]
    fn pieces_are_counted() {
        for (text, count) in [
            ("", 0),
            ("a", 1),
            ("abcdef", 1),
            ("fedcba", 1),
            ("aaaa", 1),
            ("aabbbc", 1),
            ("abcba", 2),
            ("abcabc", 2),
            ("cbacba", 2),
            ("abcdabcdabcd", 3),
            ("ab?cd", 1),
        ] {
            assert_eq!(count_pieces(&keys(text)), count, "{text}");
        }
    }

    #[test]
    fn random_keys_are_many_pieces() {
        let mut state = 7_u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            Some((state >> 33).to_be_bytes().to_vec())
        };
        let keys: Vec<Key> = (0..1000).map(|_| random()).collect();
        assert!(count_pieces(&keys) > 250);
    }

    fn lowest_of(text: &str) -> String {
        let extents = Extents {
            first_chunk: 5,
            bytes: 40 * (text.len() as u64 - 1) - 3,
            chunk_bytes: 10,
            stretch_bytes: 40,
        };
        let stretches = stretches(0, &extents, &keys(text));
        assert_eq!(stretches.len(), text.len() - 1);
        for (number, stretch) in stretches.iter().enumerate() {
            assert_eq!(stretch.chunk, 5 + 4 * number as u64);
            assert_eq!(stretch.offset, 40 * number as u64);
        }
        let letter =
            |stretch: &Stretch| stretch.lowest.as_ref().map_or('?', |at| at.key[0] as char);
        stretches.iter().map(letter).collect()
    }

    #[test]
    fn a_stretch_lies_above_its_neighbours_lowest() {
        assert_eq!(lowest_of("abcdefg"), "aabcde");
        assert_eq!(lowest_of("gfedcba"), "edcbaa");
        assert_eq!(lowest_of("ab"), "a");
        assert_eq!(lowest_of("ba"), "a");
        // Where a piece ends in it, or next to it, nothing is known.
        assert_eq!(lowest_of("abcdcba"), "aa??aa");
        assert_eq!(lowest_of("abcdeabcdef"), "aab???abcd");
        assert_eq!(lowest_of("abc?efg"), "a????e");
    }

    #[test]
    fn what_nothing_is_known_of_comes_first() {
        let extents = Extents {
            first_chunk: 0,
            bytes: 60,
            chunk_bytes: 10,
            stretch_bytes: 10,
        };
        let mut all = stretches(0, &extents, &keys("abcdcba"));
        by_lowest(&mut all);
        let order: Vec<u64> = all.iter().map(|stretch| stretch.chunk).collect();
        assert_eq!(order, [2, 3, 0, 1, 4, 5]);
    }
}
