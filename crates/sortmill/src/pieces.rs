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

/// In a job that reads by stretches, the numbers of chunks rise by so much from one to the next: the record that goes
/// over the end of what is read at a time belongs between two chunks, and only the order of numbers matters.
pub const NUMBERS_PER_CHUNK: u64 = 2;

/// Neighbouring chunks of one input, read one after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// Which input, from 0.
    pub input: usize,
    /// The number of the first chunk: one of every [`NUMBERS_PER_CHUNK`].
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

/// The longest row of keys that are alike and were cut at `cut_bytes`, so that they do not tell whether those of the
/// records are.
pub fn longest_alike<'a>(keys: impl IntoIterator<Item = &'a Key>, cut_bytes: usize) -> usize {
    let mut before: &[u8] = &[];
    let (mut count, mut longest) = (0, 0);
    for key in keys.into_iter().flatten() {
        let is_alike = key.len() >= cut_bytes && key == before;
        count = if is_alike { count + 1 } else { 1 };
        longest = longest.max(count);
        before = key;
    }
    longest
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

    /// The number of the first chunk of a stretch.
    #[must_use]
    pub fn number(&self, stretch: u64) -> u64 {
        (self.first_chunk + stretch * self.stretch_bytes / self.chunk_bytes) * NUMBERS_PER_CHUNK
    }
}

/// The stretches of `input`, of which `keys` are those at the beginning of each stretch and the last one of all. Where
/// none was found, in the midst of a long line, a stretch is one with that in front of it.
#[must_use]
pub fn stretches(input: usize, extents: &Extents, keys: &[Key]) -> Vec<Stretch> {
    let (of_all, last) = keys.split_at(extents.stretch_count() as usize);
    let begins = |number: &usize| *number == 0 || of_all[*number].is_some();
    let begins: Vec<usize> = (0..of_all.len()).filter(begins).collect();
    let offset = |at: usize| match begins.get(at) {
        Some(&number) => number as u64 * extents.stretch_bytes,
        None => extents.bytes,
    };
    let known: Vec<&Key> = (begins.iter().map(|&number| &keys[number]))
        .chain(last.iter().filter(|key| key.is_some()))
        .collect();
    let each = begins.iter().enumerate();
    each.map(|(at, &number)| {
        let chunk = extents.number(number as u64);
        Stretch {
            input,
            chunk,
            offset: offset(at),
            bytes: offset(at + 1) - offset(at),
            lowest: lowest(&known, at).map(|key| Boundary { key, chunk }),
        }
    })
    .collect()
}

/// The lowest key of stretch `number`, if the keys around it rise or fall: a stretch further to either side is taken
/// for its own, so that a record may stand a little out of order, and one that began in the stretch before belongs.
fn lowest(keys: &[&Key], number: usize) -> Key {
    // Beyond the last key nobody knows how far they fall.
    keys.get(number + 1)?;
    let around = &keys[number.saturating_sub(1)..keys.len().min(number + 3)];
    let known: Option<Vec<&Vec<u8>>> = around.iter().map(|key| key.as_ref()).collect();
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
    fn keys_that_were_cut_and_are_alike_tell_nothing() {
        for (text, longest) in [("", 0), ("abc", 1), ("abbbcc", 3), ("ab?bc", 2), ("aab", 2)] {
            assert_eq!(longest_alike(&keys(text), 1), longest, "{text}");
            let whole = usize::from(!text.is_empty());
            assert_eq!(longest_alike(&keys(text), 2), whole, "{text}");
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

    fn stretches_of(text: &str) -> Vec<Stretch> {
        let extents = Extents {
            first_chunk: 5,
            bytes: 40 * (text.len() as u64 - 1) - 3,
            chunk_bytes: 10,
            stretch_bytes: 40,
        };
        let stretches = stretches(0, &extents, &keys(text));
        let mut offset = 0;
        for stretch in &stretches {
            assert_eq!(stretch.offset, offset);
            assert_eq!(stretch.chunk, (5 + offset / 10) * NUMBERS_PER_CHUNK);
            offset += stretch.bytes;
        }
        assert_eq!(offset, extents.bytes);
        stretches
    }

    fn lowest_of(text: &str) -> String {
        let letter =
            |stretch: &Stretch| stretch.lowest.as_ref().map_or('?', |at| at.key[0] as char);
        stretches_of(text).iter().map(letter).collect()
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
    }

    #[test]
    fn a_stretch_without_a_key_belongs_to_the_one_before() {
        assert_eq!(lowest_of("abc?efg"), "aabce");
        assert_eq!(lowest_of("gfe?cba"), "ecbaa");
        assert_eq!(lowest_of("a???e???i"), "aa");
        let bytes: Vec<u64> = (stretches_of("ab??e?g").iter())
            .map(|stretch| stretch.bytes)
            .collect();
        assert_eq!(bytes, [40, 120, 77]);
        // Nothing is known before the first key, or behind the last.
        assert_eq!(lowest_of("?bcde"), "??bc");
        assert_eq!(lowest_of("abc?"), "aa?");
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
        assert_eq!(order, [4, 6, 0, 2, 8, 10]);
    }
}
