//! The benchmark validator's summary of a row of records: 280 bytes to be merged instead of the data.
//!
//! In come the summaries of the parts of an output, in the order of the parts; out comes the summary of
//! their concatenation, exactly as if it had been read in one go. The bytes are those
//! that valsort 1.5 writes (`-o`) and merges (`-s`). There is no I/O in here; a summary is a plain value.
//!
//! ```text
//! byte   0                16               32             48                64         80       180     280
//!        | first_unordered | unordered_count | record_count | duplicate_count | checksum | first  | last   |
//!          each: high 64 bits, then low 64 bits, both little-endian                        100      100
//! ```
//!
//! **Zero in `first_unordered`.** The format has no separate flag: 0 means that no record is out of order.
//! That is never in doubt in a summary of records, because a record is out of order with regard to the one
//! before it, and record 0 has none: the first index that can occur is 1. It stays so in a merge, where
//! indices only grow: the seam's is the number of records before it, and a part without records is passed
//! over rather than compared by keys it does not have. What the format can express all the same is a
//! contradiction, such as a count of 5 with no first index. A file comes from outside, so its reader asks
//! [`Summary::is_consistent`] before believing it; merging itself goes by `first_unordered` alone, as the
//! reference does.

use crate::gen_records::{KEY_BYTES, RECORD_BYTES};

/// The length of a summary in a file, in bytes. A file may hold several, one after another.
pub const SUMMARY_BYTES: usize = 280;

/// What the validator knows of a row of records. [`Summary::EMPTY`] is that of no records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The 0-based index of the first record whose key is less than that of the record before it; 0 if
    /// there is none (see the top of this file why that is no index).
    pub first_unordered: u128,
    /// How many records have a key less than that of the record before them.
    pub unordered_count: u128,
    /// How many records there are.
    pub record_count: u128,
    /// How many records have the same key as the record before them.
    pub duplicate_count: u128,
    /// The sum modulo 2^128 of the CRC-32 of each record.
    pub checksum: u128,
    /// The first record; zeros if there is none.
    pub first: [u8; RECORD_BYTES],
    /// The last record; zeros if there is none.
    pub last: [u8; RECORD_BYTES],
}

impl Summary {
    /// The summary of no records, which changes nothing that it is merged with.
    pub const EMPTY: Summary = Summary {
        first_unordered: 0,
        unordered_count: 0,
        record_count: 0,
        duplicate_count: 0,
        checksum: 0,
        first: [0; RECORD_BYTES],
        last: [0; RECORD_BYTES],
    };

    /// Returns the summary of the concatenation of `parts`, which are in the order of the data.
    /// Of no parts, that is [`Summary::EMPTY`].
    pub fn merge(parts: &[Summary]) -> Summary {
        let mut whole = Summary::EMPTY;
        for part in parts {
            whole.then(part);
        }
        whole
    }

    /// Makes this the summary of its own records followed by those of `next`.
    ///
    /// Either may be without records; the reference writes no such summary, so passing it over is our rule.
    /// A count that would exceed 128 bits, which only a forged file can bring about, stays at the highest
    /// value: if it wrapped to 0, disorder would look like order.
    ///
    /// Source: valsort 1.5 (`-s`), written anew from a description of its output.
    pub fn then(&mut self, next: &Summary) {
        if next.record_count == 0 {
            return;
        }
        if self.record_count == 0 {
            self.clone_from(next);
            return;
        }
        // The seam comes before what `next` has found inside itself, so its index must be set first.
        match self.last[..KEY_BYTES].cmp(&next.first[..KEY_BYTES]) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => add(&mut self.duplicate_count, 1),
            std::cmp::Ordering::Greater => {
                add(&mut self.unordered_count, 1);
                self.note_first_unordered(self.record_count);
            }
        }
        if next.first_unordered != 0 {
            self.note_first_unordered(self.record_count.saturating_add(next.first_unordered));
        }
        add(&mut self.unordered_count, next.unordered_count);
        add(&mut self.duplicate_count, next.duplicate_count);
        add(&mut self.record_count, next.record_count);
        self.checksum = self.checksum.wrapping_add(next.checksum);
        self.last = next.last;
    }

    fn note_first_unordered(&mut self, index: u128) {
        if self.first_unordered == 0 {
            self.first_unordered = index;
        }
    }

    /// Tells whether the numbers of this summary can go together; those of a merge of such summaries can.
    ///
    /// False means that the file it came from is damaged or is no summary. True is no proof of the contrary:
    /// the format carries no check of its own.
    pub fn is_consistent(&self) -> bool {
        if self.record_count == 0 {
            let numbers = [
                self.first_unordered,
                self.unordered_count,
                self.duplicate_count,
                self.checksum,
            ];
            return numbers == [0; 4];
        }
        // Each record but the first adds to at most one of the counts, and from the first one out of order
        // on there are at least as many records as there are records out of order.
        let seams = self.record_count - 1;
        let counts_fit = (self.unordered_count.checked_add(self.duplicate_count))
            .is_some_and(|sum| sum <= seams);
        let index_fits = match self.first_unordered {
            0 => self.unordered_count == 0,
            index => {
                self.unordered_count > 0
                    && index < self.record_count
                    && self.unordered_count <= self.record_count - index
            }
        };
        counts_fit && index_fits
    }

    /// Returns the summary as it stands in a file.
    pub fn to_bytes(&self) -> [u8; SUMMARY_BYTES] {
        let mut bytes = [0; SUMMARY_BYTES];
        let (numbers, records) = bytes.split_at_mut(NUMBER_BYTES * 5);
        let values = [
            self.first_unordered,
            self.unordered_count,
            self.record_count,
            self.duplicate_count,
            self.checksum,
        ];
        for (number, value) in numbers
            .as_chunks_mut::<NUMBER_BYTES>()
            .0
            .iter_mut()
            .zip(values)
        {
            *number = swap_halves(value).to_le_bytes();
        }
        records[..RECORD_BYTES].copy_from_slice(&self.first);
        records[RECORD_BYTES..].copy_from_slice(&self.last);
        bytes
    }

    /// Reads a summary as it stands in a file. Any bytes make one; whether they can be true is told by
    /// [`Summary::is_consistent`].
    pub fn from_bytes(bytes: &[u8; SUMMARY_BYTES]) -> Summary {
        let number = |index: usize| {
            let at = index * NUMBER_BYTES;
            let number = bytes[at..at + NUMBER_BYTES]
                .try_into()
                .expect("the range is as long as a number");
            swap_halves(u128::from_le_bytes(number))
        };
        let record = |at: usize| {
            bytes[at..at + RECORD_BYTES]
                .try_into()
                .expect("the range is as long as a record")
        };
        Summary {
            first_unordered: number(0),
            unordered_count: number(1),
            record_count: number(2),
            duplicate_count: number(3),
            checksum: number(4),
            first: record(NUMBER_BYTES * 5),
            last: record(NUMBER_BYTES * 5 + RECORD_BYTES),
        }
    }
}

fn add(count: &mut u128, more: u128) {
    *count = count.saturating_add(more);
}

const NUMBER_BYTES: usize = 16;

/// The file has the high half of a number first although either half is little-endian.
fn swap_halves(number: u128) -> u128 {
    number.rotate_left(64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gen_records::checksum;
    use std::hash::{BuildHasher, RandomState};

    /// The rules applied to the records themselves.
    fn summarise(records: &[[u8; RECORD_BYTES]]) -> Summary {
        let (Some(first), Some(last)) = (records.first(), records.last()) else {
            return Summary::EMPTY;
        };
        let key = |index: usize| &records[index][..10];
        let unordered: Vec<usize> = (1..records.len())
            .filter(|&i| key(i) < key(i - 1))
            .collect();
        let duplicate_count = (1..records.len()).filter(|&i| key(i) == key(i - 1)).count();
        Summary {
            first_unordered: unordered.first().map_or(0, |&index| index as u128),
            unordered_count: unordered.len() as u128,
            record_count: records.len() as u128,
            duplicate_count: duplicate_count as u128,
            checksum: checksum(records.as_flattened()),
            first: *first,
            last: *last,
        }
    }

    /// Records whose keys end in these numbers, with bodies that differ and must not be compared.
    fn records(keys: impl IntoIterator<Item = u8>) -> Vec<[u8; RECORD_BYTES]> {
        let mut body: u8 = 0;
        let record = |key| {
            body = body.wrapping_sub(1);
            let mut record = [body; RECORD_BYTES];
            record[..KEY_BYTES].copy_from_slice(&[b'k'; KEY_BYTES]);
            record[KEY_BYTES - 1] = key;
            record
        };
        keys.into_iter().map(record).collect()
    }

    #[test]
    fn bytes_are_laid_out_as_drawn() {
        let mut first = [0x11; RECORD_BYTES];
        let mut last = [0x22; RECORD_BYTES];
        (first[0], last[99]) = (0x1F, 0x2E);
        let summary = Summary {
            first_unordered: 1 << 64 | 2,
            unordered_count: 3 << 64 | 4,
            record_count: 5 << 64 | 6,
            duplicate_count: 7 << 64 | 8,
            checksum: 0x0102_0304_0506_0708_090A_0B0C_0D0E_0F10,
            first,
            last,
        };
        let mut expected = Vec::new();
        for word in [1u64, 2, 3, 4, 5, 6, 7, 8] {
            expected.extend([word as u8, 0, 0, 0, 0, 0, 0, 0]);
        }
        expected.extend([
            8, 7, 6, 5, 4, 3, 2, 1, 0x10, 0x0F, 0x0E, 0x0D, 0x0C, 0x0B, 0x0A, 9,
        ]);
        expected.extend(first);
        expected.extend(last);
        assert_eq!(summary.to_bytes().as_slice(), expected);
        assert_eq!(Summary::from_bytes(&summary.to_bytes()), summary);
    }

    #[test]
    fn bytes_make_the_round_trip() {
        let mut random = Random::new("bytes_make_the_round_trip");
        for _ in 0..100 {
            let bytes: [u8; SUMMARY_BYTES] = std::array::from_fn(|_| random.below(256) as u8);
            assert_eq!(Summary::from_bytes(&bytes).to_bytes(), bytes);
        }
    }

    #[test]
    fn seams_count() {
        let check = |parts: &[&[u8]],
                     first_unordered: u128,
                     unordered_count: u128,
                     duplicate_count: u128| {
            // One row of records, so that bodies do not repeat from part to part.
            let all = records(parts.concat());
            let mut rest = all.as_slice();
            let mut summaries = Vec::new();
            for part in parts {
                let (records, after) = rest.split_at(part.len());
                summaries.push(summarise(records));
                rest = after;
            }
            let whole = Summary::merge(&summaries);
            let found = (
                whole.first_unordered,
                whole.unordered_count,
                whole.duplicate_count,
            );
            assert_eq!(
                found,
                (first_unordered, unordered_count, duplicate_count),
                "{parts:?}"
            );
            assert_eq!(whole, summarise(&all), "{parts:?}");
        };
        check(&[], 0, 0, 0);
        check(&[&[], &[]], 0, 0, 0);
        check(&[&[1, 2], &[3, 4]], 0, 0, 0);
        check(&[&[1, 2], &[2, 2]], 0, 0, 2);
        check(&[&[1, 2], &[1, 4]], 2, 1, 0);
        // The seam comes before disorder inside the next part, and after that inside the part before.
        check(&[&[5, 6], &[3, 2]], 2, 2, 0);
        check(&[&[6, 5], &[3, 2]], 1, 3, 0);
        check(&[&[1, 2], &[3, 4, 4, 2]], 5, 1, 1);
        // Parts without records have no keys and leave no seam.
        check(&[&[], &[3, 2], &[], &[], &[2, 1], &[]], 1, 2, 1);
        check(&[&[7], &[7], &[6], &[], &[6]], 2, 1, 2);
    }

    #[test]
    fn merged_parts_equal_the_whole() {
        let mut random = Random::new("merged_parts_equal_the_whole");
        for round in 0..2_000 {
            // From few keys, so that seams meet duplicates; half of the rounds with little disorder or none.
            let key_count = 1 + random.below(30);
            let mut keys: Vec<u8> = (0..random.below(60))
                .map(|_| random.below(key_count) as u8)
                .collect();
            if round % 2 == 0 {
                keys.sort_unstable();
                for _ in 0..random.below(3).min(keys.len()) {
                    let (a, b) = (random.below(keys.len()), random.below(keys.len()));
                    keys.swap(a, b);
                }
            }
            let all = records(keys.iter().copied());
            let mut rest = all.as_slice();
            let mut parts = Vec::new();
            while !rest.is_empty() {
                let (part, after) = rest.split_at(random.below(12).min(rest.len()));
                parts.push(Summary::from_bytes(&summarise(part).to_bytes()));
                rest = after;
            }
            let whole = summarise(&all);
            assert_eq!(Summary::merge(&parts), whole, "{keys:?}");
            assert!(
                whole.is_consistent() && parts.iter().all(Summary::is_consistent),
                "{keys:?}"
            );

            // Merging may be done in steps: a summary of summaries is one.
            let (left, right) = parts.split_at(random.below(parts.len() + 1));
            let halves = [Summary::merge(left), Summary::merge(right)];
            assert_eq!(Summary::merge(&halves), whole, "{keys:?}");
        }
    }

    #[test]
    fn contradictions_are_seen() {
        let check =
            |expected: bool, first_unordered, unordered_count, record_count, duplicate_count| {
                let numbers = Summary {
                    first_unordered,
                    unordered_count,
                    record_count,
                    duplicate_count,
                    ..Summary::EMPTY
                };
                assert_eq!(numbers.is_consistent(), expected, "{numbers:?}");
            };
        check(true, 0, 0, 0, 0);
        check(true, 0, 0, 1, 0);
        check(true, 0, 0, 10, 9);
        check(true, 1, 9, 10, 0);
        check(true, 9, 1, 10, 8);
        check(false, 0, 5, 10, 0); // disorder that begins nowhere
        check(false, 5, 0, 10, 0); // none that begins somewhere
        check(false, 10, 1, 10, 0); // behind the last record
        check(false, 9, 2, 10, 0); // more than there is room for
        check(false, 1, 1, 10, 9); // one record counted twice
        check(false, 1, u128::MAX, 10, 2);
        check(false, 0, 0, 0, 1);
    }

    #[test]
    fn forged_counts_do_not_wrap_into_order() {
        let mut forged = summarise(&records([2, 1]));
        (
            forged.unordered_count,
            forged.first_unordered,
            forged.record_count,
        ) = (u128::MAX, u128::MAX, u128::MAX);
        let mut whole = summarise(&records([1, 2]));
        whole.then(&forged);
        whole.then(&forged);
        assert_eq!(
            (whole.unordered_count, whole.first_unordered),
            (u128::MAX, u128::MAX)
        );
    }

    #[test]
    fn checksums_wrap() {
        let mut whole = summarise(&records([1]));
        whole.checksum = u128::MAX;
        let mut next = summarise(&records([2]));
        next.checksum = 6;
        whole.then(&next);
        assert_eq!(whole.checksum, 5);
    }

    /// A small source of random numbers (splitmix64) that names its seed; set `SEED` to have a run again.
    struct Random(u64);

    impl Random {
        fn new(test: &str) -> Self {
            let seed = match std::env::var("SEED") {
                Ok(seed) => seed.parse().expect("SEED is a decimal number of 64 bits"),
                Err(_) => RandomState::new().hash_one(0),
            };
            println!("{test}: SEED={seed}");
            Self(seed)
        }

        fn below(&mut self, limit: usize) -> usize {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((mixed ^ (mixed >> 31)) % limit as u64) as usize
        }
    }
}
