//! The innermost loops: copying scattered records, sorting entries, fetching ahead.
//!
//! This is the one file of the crate where code particular to a processor stands.

use crate::batch::Batch;

/// How many records ahead of the copy memory is asked for.
const AHEAD: usize = 12;

/// Asks for the cache lines of `bytes[at..at + 128]` that a later copy will read.
#[inline(always)]
pub fn prefetch(bytes: &[u8], at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let from = bytes.as_ptr().wrapping_add(at).cast();
        // SAFETY: a prefetch of any address, valid or not, has no effect but on the caches.
        unsafe {
            _mm_prefetch(from, _MM_HINT_T0);
            _mm_prefetch(from.wrapping_add(64), _MM_HINT_T0);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, at);
}

/// Copies the records `rows` of `batch` back to back into `into`, which is just as long.
pub fn copy_rows(batch: &Batch<'_>, rows: &[u32], into: &mut [u8]) {
    let mut at = 0;
    for (index, &row) in rows.iter().enumerate() {
        if let Some(&later) = rows.get(index + AHEAD) {
            prefetch(batch.bytes, batch.offsets[later as usize] as usize);
        }
        let record = batch.record(row as usize);
        into[at..at + record.len()].copy_from_slice(record);
        at += record.len();
    }
}

/// A sort entry: word, then the record's ordinal in place order, then its location. As one number it
/// compares by word and then by place.
pub type Entry = u128;

/// Packs an entry.
#[inline(always)]
#[must_use]
pub fn entry(word: u64, ordinal: u32, location: u32) -> Entry {
    (Entry::from(word) << 64) | (Entry::from(ordinal) << 32) | Entry::from(location)
}

/// The word of an entry.
#[inline(always)]
#[must_use]
pub fn word(entry: Entry) -> u64 {
    (entry >> 64) as u64
}

/// The ordinal of an entry.
#[inline(always)]
#[must_use]
pub fn ordinal(entry: Entry) -> u32 {
    (entry >> 32) as u32
}

/// The location of an entry.
#[inline(always)]
#[must_use]
pub fn location(entry: Entry) -> u32 {
    entry as u32
}

/// Fewer entries than this are sorted by comparison at once.
const RADIX_COUNT_MIN: usize = 1 << 12;
/// Bits of the radix step: enough that each of its parts is sorted within the first-level cache.
const RADIX_BITS: u32 = 10;

/// Sorts entries by word and place, in place: one most-significant-digit step over the bits in which the
/// words differ, then comparison within each part.
pub fn sort_entries(entries: &mut [Entry]) {
    if entries.len() < RADIX_COUNT_MIN {
        entries.sort_unstable();
        return;
    }
    let (mut min, mut max) = (u64::MAX, 0);
    for &entry in entries.iter() {
        min = min.min(word(entry));
        max = max.max(word(entry));
    }
    let shift = (64 - (max - min).leading_zeros()).saturating_sub(RADIX_BITS);
    let digit = |entry: Entry| ((word(entry) - min) >> shift) as usize;

    let mut ends = [0usize; 1 << RADIX_BITS];
    for &entry in entries.iter() {
        ends[digit(entry)] += 1;
    }
    let mut starts = [0usize; 1 << RADIX_BITS];
    let mut sum = 0;
    for (start, end) in starts.iter_mut().zip(&mut ends) {
        *start = sum;
        sum += *end;
        *end = sum;
    }
    // American flag sort (McIlroy, Bostic and McIlroy 1993): each swap puts one entry into its part.
    let mut heads = starts;
    for part in 0..heads.len() {
        while heads[part] < ends[part] {
            let home = digit(entries[heads[part]]);
            if home == part {
                heads[part] += 1;
            } else {
                entries.swap(heads[part], heads[home]);
                heads[home] += 1;
            }
        }
    }
    for (&start, &end) in starts.iter().zip(&ends) {
        entries[start..end].sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splitmix64.
    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn check(mut entries: Vec<Entry>) {
        let mut expected = entries.clone();
        expected.sort_unstable();
        sort_entries(&mut entries);
        assert!(entries == expected);
    }

    #[test]
    fn sorts_as_the_standard_library_does() {
        let mut seed = 7;
        for count in [0, 1, 2, RADIX_COUNT_MIN - 1, RADIX_COUNT_MIN, 50_000] {
            for mask in [
                u64::MAX,
                0,
                1,
                0xff,
                0xff00_0000_0000_0000,
                0x0000_ffff_0000_0000,
            ] {
                check(
                    (0..count)
                        .map(|at| {
                            entry(
                                random(&mut seed) & mask,
                                at as u32,
                                random(&mut seed) as u32,
                            )
                        })
                        .collect(),
                );
            }
        }
    }

    #[test]
    fn sorts_what_is_sorted_already_or_upside_down() {
        check((0..10_000).map(|at| entry(at, at as u32, 0)).collect());
        check((0..10_000).map(|at| entry(!at, at as u32, 0)).collect());
    }
}
