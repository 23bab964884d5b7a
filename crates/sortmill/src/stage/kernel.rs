//! The innermost loops: copying scattered records, sorting entries, fetching ahead.
//!
//! This is the one file of the crate where code particular to a processor stands.

use crate::batch::Batch;

/// How many records ahead of the copy memory is asked for.
const AHEAD: usize = 12;
/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// Asks for the cache lines of `bytes[at..at + count]` that a later copy will read; of many, the first
/// ones: the processor sees by itself where a long copy goes.
#[inline(always)]
pub fn prefetch(bytes: &[u8], at: usize, count: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let from = bytes.as_ptr().wrapping_add(at);
        let last = count.min(LINE_BYTES * 3).saturating_sub(1);
        // SAFETY: a prefetch of any address, valid or not, has no effect but on the caches.
        unsafe {
            _mm_prefetch(from.cast(), _MM_HINT_T0);
            _mm_prefetch(from.wrapping_add(last.min(LINE_BYTES)).cast(), _MM_HINT_T0);
            _mm_prefetch(from.wrapping_add(last).cast(), _MM_HINT_T0);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, at, count);
}

/// Copies the records `rows` of `batch` back to back into `into`, which is just as long.
pub fn copy_rows(batch: &Batch<'_>, rows: &[u32], into: &mut [u8]) {
    let mut at = 0;
    for (index, &row) in rows.iter().enumerate() {
        if let Some(&later) = rows.get(index + AHEAD) {
            let [from, to] = [0, 1].map(|next| batch.offsets[later as usize + next] as usize);
            prefetch(batch.bytes, from, to - from);
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
const RADIX_COUNT_MIN: usize = 24;
/// From so many entries on, the radix step makes more parts: each is then sorted within the first-level
/// cache.
const WIDE_COUNT_MIN: usize = 1 << 13;
/// Parts of a radix step, of few and of many entries.
const PARTS_NARROW: usize = 1 << 6;
const PARTS_WIDE: usize = 1 << 11;

/// Sorts entries by word and place: most-significant-digit steps over the bits in which the words differ,
/// then comparison within the small parts. With `scratch` of at least as many entries each step scatters
/// them there and the next one back; with less they are moved in place, which takes about twice the time.
pub fn sort_entries(entries: &mut [Entry], scratch: &mut [Entry]) {
    if entries.len() < RADIX_COUNT_MIN {
        entries.sort_unstable();
    } else if let Some(scratch) = scratch.get_mut(..entries.len()) {
        scatter_sort(entries, scratch, false);
    } else {
        sort_in_place(entries);
    }
}

/// Sorts what lies in `from`; the result goes to `to` if `moves`, else it stays.
fn scatter_sort(from: &mut [Entry], to: &mut [Entry], moves: bool) {
    if from.len() < RADIX_COUNT_MIN {
        from.sort_unstable();
        if moves {
            to.copy_from_slice(from);
        }
    } else if from.len() < WIDE_COUNT_MIN {
        scatter_step::<PARTS_NARROW>(from, to, moves);
    } else {
        scatter_step::<PARTS_WIDE>(from, to, moves);
    }
}

/// One step: scatters by the highest bits in which the words differ, then sorts each part.
fn scatter_step<const PARTS: usize>(from: &mut [Entry], to: &mut [Entry], moves: bool) {
    let digits = Digits::of(from, PARTS);
    if digits.width == 0 {
        from.sort_unstable();
        if moves {
            to.copy_from_slice(from);
        }
        return;
    }
    let mut ends = [0u32; PARTS];
    for &entry in from.iter() {
        ends[digits.part(entry)] += 1;
    }
    let mut sum = 0;
    for end in &mut ends {
        // For now where the part starts; when its entries have come, where it ends.
        (*end, sum) = (sum, sum + *end);
    }
    for &entry in from.iter() {
        let next = &mut ends[digits.part(entry)];
        to[*next as usize] = entry;
        *next += 1;
    }
    let mut start = 0;
    for &end in &ends {
        let part = start..end as usize;
        start = part.end;
        if part.len() == 1 {
            if !moves {
                from[part.start] = to[part.start];
            }
        } else if !part.is_empty() {
            scatter_sort(&mut to[part.clone()], &mut from[part], !moves);
        }
    }
}

/// The highest bits in which the words of some entries differ.
struct Digits {
    min: u64,
    width: u32,
    shift: u32,
}

impl Digits {
    fn of(entries: &[Entry], parts: usize) -> Self {
        let (mut min, mut max) = (u64::MAX, 0);
        for &entry in entries {
            min = min.min(word(entry));
            max = max.max(word(entry));
        }
        let width = 64 - (max - min).leading_zeros();
        Self {
            min,
            width,
            shift: width.saturating_sub(parts.ilog2()),
        }
    }

    #[inline(always)]
    fn part(&self, entry: Entry) -> usize {
        ((word(entry) - self.min) >> self.shift) as usize
    }
}

/// American flag sort (McIlroy, Bostic and McIlroy 1993): each swap puts one entry into its part.
fn sort_in_place(entries: &mut [Entry]) {
    if entries.len() < WIDE_COUNT_MIN {
        entries.sort_unstable();
        return;
    }
    let digits = Digits::of(entries, PARTS_WIDE);
    let mut ends = [0usize; PARTS_WIDE];
    for &entry in entries.iter() {
        ends[digits.part(entry)] += 1;
    }
    let mut starts = [0usize; PARTS_WIDE];
    let mut sum = 0;
    for (start, end) in starts.iter_mut().zip(&mut ends) {
        *start = sum;
        sum += *end;
        *end = sum;
    }
    let mut heads = starts;
    for part in 0..heads.len() {
        while heads[part] < ends[part] {
            let home = digits.part(entries[heads[part]]);
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
        let mut in_place = entries.clone();
        sort_entries(&mut in_place, &mut []);
        assert!(in_place == expected);
        let mut scratch = vec![0; entries.len() + 1];
        sort_entries(&mut entries, &mut scratch);
        assert!(entries == expected);
    }

    #[test]
    fn sorts_as_the_standard_library_does() {
        let mut seed = 7;
        let counts = [
            0,
            1,
            2,
            RADIX_COUNT_MIN,
            WIDE_COUNT_MIN - 1,
            WIDE_COUNT_MIN,
            50_000,
        ];
        for count in counts {
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
