//! The innermost loops: copying scattered records, sorting entries, telling bytes apart and finding ends, fetching ahead.
//!
//! This is the one file of the crate where code particular to a processor stands.

use crate::batch::{Batch, Offsets};
use crate::short::{bytes_of, short};

/// How many records ahead of the copy memory is asked for.
const AHEAD: usize = 12;
/// Bytes of a cache line.
const LINE_BYTES: usize = 64;
/// So far behind a record memory is asked for that will be looked at in sequence.
const BEHIND_BYTES: usize = 2048;

/// Asks for the cache lines of `bytes[at..at + count]` that a later copy will read; of many, the first
/// ones: the processor sees by itself where a long copy goes.
#[inline(always)]
pub fn prefetch(bytes: &[u8], at: usize, count: usize) {
    let last = count.min(LINE_BYTES * 3).saturating_sub(1);
    prefetch_line(bytes, at);
    prefetch_line(bytes, at + last.min(LINE_BYTES));
    prefetch_line(bytes, at + last);
}

/// Asks for what lies some way behind a record, where records are looked at one behind the other: in a virtual machine whose host
/// gives it small pages the processor sees no further than to the end of each.
#[inline(always)]
pub fn prefetch_behind(record: &[u8]) {
    prefetch_line(record, BEHIND_BYTES);
    if record.len() > LINE_BYTES {
        prefetch_line(record, BEHIND_BYTES + LINE_BYTES);
    }
}

/// Asks for the cache line of `bytes[at]`, which may lie anywhere.
#[inline(always)]
pub fn prefetch_line(bytes: &[u8], at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch of any address, valid or not, has no effect but on the caches.
        unsafe { _mm_prefetch(bytes.as_ptr().wrapping_add(at).cast(), _MM_HINT_T0) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, at);
}

/// Asks for the cache lines of the words `words[at..at + count]`, of two lines at most.
#[inline(always)]
pub fn prefetch_words(words: &[u64], at: usize, count: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let from = words.as_ptr().wrapping_add(at);
        // SAFETY: a prefetch of any address, valid or not, has no effect but on the caches.
        unsafe {
            _mm_prefetch(from.cast(), _MM_HINT_T0);
            _mm_prefetch(
                from.wrapping_add(count.saturating_sub(1)).cast(),
                _MM_HINT_T0,
            );
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (words, at, count);
}

/// So many bytes are looked at together.
pub const LOOKED_BYTES: usize = 64;

/// A bit for each byte, the lowest for the first: whether it is a letter or a digit of ASCII.
#[inline]
#[must_use]
pub fn alphanumerics(bytes: &[u8; LOOKED_BYTES]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_and_si128, _mm_cmpgt_epi8, _mm_or_si128, _mm_set1_epi8};
        // SAFETY: every x86-64 processor has what it takes (SSE2).
        bits(bytes, |part| unsafe {
            // Bytes of other texts are below zero, and within nothing.
            let within = |bytes, least: u8, most: u8| {
                let below = _mm_set1_epi8(least as i8 - 1);
                let above = _mm_set1_epi8(most as i8 + 1);
                _mm_and_si128(_mm_cmpgt_epi8(bytes, below), _mm_cmpgt_epi8(above, bytes))
            };
            // Letters are 0x20 apart by case.
            let lower = _mm_or_si128(part, _mm_set1_epi8(0x20));
            _mm_or_si128(within(lower, b'a', b'z'), within(part, b'0', b'9'))
        })
    }
    #[cfg(not(target_arch = "x86_64"))]
    bits(bytes, |byte| byte.is_ascii_alphanumeric())
}

/// A bit for each byte, the lowest for the first: whether it is `byte`.
#[inline]
#[must_use]
pub fn equals(bytes: &[u8; LOOKED_BYTES], byte: u8) -> u64 {
    let (parts, _) = bytes.as_chunks();
    let mut found = 0;
    for (number, part) in parts.iter().enumerate() {
        found |= sixteen_equal(part, byte) << (16 * number);
    }
    found
}

/// The same of a text of at most [`LOOKED_BYTES`] bytes; `None` if it is longer.
#[inline(always)]
#[must_use]
pub fn marks(text: &[u8], byte: u8) -> Option<u64> {
    if text.len() > LOOKED_BYTES {
        return None;
    }
    let Some(last) = text.last_chunk() else {
        let found = sixteen_equal(&bytes_of(short(text)), byte);
        return Some(found & !(u64::MAX << text.len()));
    };
    let mut found = sixteen_equal(last, byte) << (text.len() - last.len());
    let (parts, _) = text.as_chunks();
    for (number, part) in parts.iter().enumerate() {
        found |= sixteen_equal(part, byte) << (16 * number);
    }
    Some(found)
}

#[inline(always)]
fn sixteen_equal(bytes: &[u8; 16], byte: u8) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{
            _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8,
        };
        // SAFETY: it reads the sixteen bytes; every x86-64 processor has what it takes (SSE2).
        let found = unsafe {
            let bytes = _mm_loadu_si128(bytes.as_ptr().cast());
            _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte as i8)))
        };
        u64::from(found as u16)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let bit = |(at, &other): (usize, &u8)| u64::from(other == byte) << at;
        bytes.iter().enumerate().map(bit).sum()
    }
}

/// Whether any of these bytes is in a text.
#[inline(always)]
#[must_use]
pub fn holds_any(text: &[u8], of: [u8; 4]) -> bool {
    let any = |part: &[u8; 16]| {
        of.iter()
            .fold(0, |any, &byte| any | sixteen_equal(part, byte))
    };
    let Some(last) = text.last_chunk() else {
        return any(&bytes_of(short(text))) & !(u64::MAX << text.len()) != 0;
    };
    let (parts, _) = text.as_chunks();
    parts
        .iter()
        .fold(any(last), |found, part| found | any(part))
        != 0
}

/// The highest bit of each byte that `tell` makes of sixteen.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn bits(
    bytes: &[u8; LOOKED_BYTES],
    tell: impl Fn(std::arch::x86_64::__m128i) -> std::arch::x86_64::__m128i,
) -> u64 {
    use std::arch::x86_64::{_mm_loadu_si128, _mm_movemask_epi8};
    let (parts, _) = bytes.as_chunks::<16>();
    let mut bits = 0;
    for (number, part) in parts.iter().enumerate() {
        // SAFETY: it reads the sixteen bytes of `part`; every x86-64 processor has what it takes (SSE2).
        let told = unsafe { _mm_movemask_epi8(tell(_mm_loadu_si128(part.as_ptr().cast()))) };
        bits |= u64::from(told as u16) << (16 * number);
    }
    bits
}

#[cfg(not(target_arch = "x86_64"))]
fn bits(bytes: &[u8; LOOKED_BYTES], tell: impl Fn(u8) -> bool) -> u64 {
    let bit = |(at, &byte): (usize, &u8)| u64::from(tell(byte)) << at;
    bytes.iter().enumerate().map(bit).sum()
}

/// The first place of `byte`, which ends a line: looked for where the call stands, as to call a search takes longer than to find
/// the end of most lines. These are tens of bytes long; what ends a field is nearer (`order/near.rs`).
#[inline(always)]
#[must_use]
pub fn find_end(byte: u8, bytes: &[u8]) -> Option<usize> {
    const NEAR_BYTES: usize = 2 * LOOKED_BYTES;
    let mut at = 0;
    while at < NEAR_BYTES
        && let Some(part) = bytes[at..].first_chunk()
    {
        let found = equals(part, byte);
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize);
        }
        at += LOOKED_BYTES;
    }
    memchr::memchr(byte, &bytes[at..]).map(|found| at + found)
}

/// Appends where records end that each end in `delimiter`, as offsets into `bytes`, of those that begin at `from`; at most
/// `count_max` of them.
pub fn find_ends(delimiter: u8, bytes: &[u8], from: usize, count_max: usize, ends: &mut Vec<u32>) {
    let ends_max = ends.len() + count_max;
    let (parts, _) = bytes[from..].as_chunks();
    let mut begin = from;
    for part in parts {
        if ends_max - ends.len() < LOOKED_BYTES {
            break;
        }
        prefetch_line(part, BEHIND_BYTES);
        let mut found = equals(part, delimiter);
        while found != 0 {
            ends.push((begin + found.trailing_zeros() as usize + 1) as u32);
            found &= found - 1;
        }
        begin += LOOKED_BYTES;
    }
    let left = memchr::memchr_iter(delimiter, &bytes[begin..]).take(ends_max - ends.len());
    ends.extend(left.map(|at| (begin + at + 1) as u32));
}

/// Copies the records `rows` of `batch` back to back into `into`, which is just as long.
pub fn copy_rows(batch: &Batch<'_>, rows: &[u32], into: &mut [u8]) {
    if let Offsets::Every { from, bytes, .. } = batch.offsets {
        let records = &batch.bytes[from as usize..];
        match bytes {
            // As many bytes as a few instructions copy; to call for that would take longer.
            8 => return copy_sized::<8>(records, rows, into),
            16 => return copy_sized::<16>(records, rows, into),
            24 => return copy_sized::<24>(records, rows, into),
            _ => {}
        }
    }
    let mut at = 0;
    for (index, &row) in rows.iter().enumerate() {
        if let Some(&later) = rows.get(index + AHEAD) {
            let later = batch.offsets.range(later as usize);
            prefetch(batch.bytes, later.start, later.len());
        }
        let record = batch.record(row as usize);
        into[at..at + record.len()].copy_from_slice(record);
        at += record.len();
    }
}

fn copy_sized<const SIZE: usize>(records: &[u8], rows: &[u32], into: &mut [u8]) {
    let (records, _) = records.as_chunks::<SIZE>();
    let (places, _) = into.as_chunks_mut::<SIZE>();
    for (index, (place, &row)) in places.iter_mut().zip(rows).enumerate() {
        if let Some(&later) = rows.get(index + AHEAD) {
            prefetch_line(records.as_flattened(), later as usize * SIZE);
        }
        *place = records[row as usize];
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
/// Where no part has more entries than this, all of them are finished by one insertion sort.
const INSERT_COUNT_MAX: u32 = 16;

/// Sorts entries by word and place: most-significant-digit steps over the bits in which the words differ,
/// until almost every entry has a part to itself, then insertion. That takes `scratch` of at least as many
/// entries; with less they are sorted by comparison, which takes twice the time.
pub fn sort_entries(entries: &mut [Entry], scratch: &mut [Entry]) {
    sort_by_words(entries, scratch, &|_| true);
}

/// The same, but entries of one word need be in the order of their places only where it is `last`: others will be sorted by more.
pub fn sort_by_words(entries: &mut [Entry], scratch: &mut [Entry], last: &dyn Fn(u64) -> bool) {
    if entries.is_sorted() {
        return;
    }
    match scratch.get_mut(..entries.len()) {
        Some(scratch) => scatter_sort(entries, scratch, false, last),
        None => entries.sort_unstable(),
    }
}

/// Sorts what lies in `from`; the result goes to `to` if `moves`, else it stays.
fn scatter_sort(from: &mut [Entry], to: &mut [Entry], moves: bool, last: &dyn Fn(u64) -> bool) {
    match from.len() {
        0..RADIX_COUNT_MIN => compare_sort(from, to, moves),
        // One step: about a part for each entry.
        RADIX_COUNT_MIN..256 => scatter_step::<256>(from, to, moves, last),
        256..512 => scatter_step::<512>(from, to, moves, last),
        512..1024 => scatter_step::<1024>(from, to, moves, last),
        1024..8192 => scatter_step::<2048>(from, to, moves, last),
        // Two: the fewer parts are written to at once, the nearer are their ends.
        8192..65_536 => scatter_step::<256>(from, to, moves, last),
        65_536..163_840 => scatter_step::<512>(from, to, moves, last),
        _ => scatter_step::<1024>(from, to, moves, last),
    }
}

fn compare_sort(from: &mut [Entry], to: &mut [Entry], moves: bool) {
    from.sort_unstable();
    if moves {
        to.copy_from_slice(from);
    }
}

/// One step into `PARTS` parts: scatters by the highest bits in which the words differ, then sorts each part, or, where all
/// are small, the whole, which is then nearly in order.
fn scatter_step<const PARTS: usize>(
    from: &mut [Entry],
    to: &mut [Entry],
    moves: bool,
    last: &dyn Fn(u64) -> bool,
) {
    let digits = Digits::<PARTS>::of(from);
    if digits.width == 0 {
        match (last(digits.min), moves) {
            (true, _) => sort_by_place(from, to, moves),
            (false, true) => to.copy_from_slice(from),
            (false, false) => {}
        }
        return;
    }
    let mut ends = [0u32; PARTS];
    for &entry in from.iter() {
        ends[digits.part(entry)] += 1;
    }
    let (mut sum, mut count_max) = (0, 0);
    for end in &mut ends {
        count_max = count_max.max(*end);
        // For now where the part starts; when its entries have come, where it ends.
        (*end, sum) = (sum, sum + *end);
    }
    for &entry in from.iter() {
        let next = &mut ends[digits.part(entry)];
        to[*next as usize] = entry;
        *next += 1;
    }
    if count_max <= INSERT_COUNT_MAX {
        insertion_sort(to);
        if !moves {
            from.copy_from_slice(to);
        }
        return;
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
            scatter_sort(&mut to[part.clone()], &mut from[part], !moves, last);
        }
    }
}

/// Sorts entries with equal words, as one step would if their places were the words.
fn sort_by_place(from: &mut [Entry], to: &mut [Entry], moves: bool) {
    let swap_halves = |entries: &mut [Entry]| {
        for entry in entries {
            *entry = entry.rotate_left(64);
        }
    };
    let first = from[0];
    if from.iter().all(|&entry| entry == first) {
        return compare_sort(from, to, moves);
    }
    swap_halves(from);
    scatter_sort(from, to, moves, &|_| true);
    swap_halves(if moves { to } else { from });
}

/// Sorts entries of which none is far from its place.
fn insertion_sort(entries: &mut [Entry]) {
    for at in 1..entries.len() {
        let entry = entries[at];
        let mut hole = at;
        while hole > 0 && entries[hole - 1] > entry {
            entries[hole] = entries[hole - 1];
            hole -= 1;
        }
        entries[hole] = entry;
    }
}

/// The highest bits in which the words of some entries differ, as many as tell `PARTS` parts apart.
struct Digits<const PARTS: usize> {
    min: u64,
    width: u32,
    shift: u32,
}

impl<const PARTS: usize> Digits<PARTS> {
    fn of(entries: &[Entry]) -> Self {
        let (mut min, mut max) = (u64::MAX, 0);
        for &entry in entries {
            min = min.min(word(entry));
            max = max.max(word(entry));
        }
        let width = 64 - (max - min).leading_zeros();
        Self {
            min,
            width,
            shift: width.saturating_sub(PARTS.ilog2()),
        }
    }

    #[inline(always)]
    fn part(&self, entry: Entry) -> usize {
        // The remainder is the number itself, and spares the check of a bound.
        ((word(entry) - self.min) >> self.shift) as usize % PARTS
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
        // Where more follows, each word's entries are together, in any order.
        let mut by_words = entries.clone();
        sort_by_words(&mut by_words, &mut scratch, &|word| word % 2 == 0);
        for (of_word, wanted) in by_words
            .chunk_by_mut(|&one, &other| word(one) == word(other))
            .zip(expected.chunk_by(|&one, &other| word(one) == word(other)))
        {
            if word(wanted[0]) % 2 == 1 {
                of_word.sort_unstable();
            }
            assert!(of_word == wanted);
        }
        sort_entries(&mut entries, &mut scratch);
        assert!(entries == expected);
    }

    #[test]
    fn letters_and_digits_are_told_from_all_other_bytes() {
        for byte in 0..=u8::MAX {
            let mut bytes = [b' '; LOOKED_BYTES];
            let at = usize::from(byte) % LOOKED_BYTES;
            bytes[at] = byte;
            let wanted = u64::from(byte.is_ascii_alphanumeric()) << at;
            assert_eq!(alphanumerics(&bytes), wanted, "{byte}");
            let wanted = if byte == b' ' { u64::MAX } else { 1 << at };
            assert_eq!(equals(&bytes, byte), wanted, "{byte}");
        }
    }

    #[test]
    fn bytes_are_found_in_texts_of_any_length() {
        let mut seed = 11;
        for count in 0..=LOOKED_BYTES + 1 {
            for sought in [0, b'\t'] {
                let mut byte = || b"ab\t\0"[random(&mut seed) as usize % 4];
                let text: Vec<u8> = (0..count).map(|_| byte()).collect();
                let all = text.iter().enumerate();
                let found = all.filter(|&(_, &byte)| byte == sought);
                let wanted =
                    (count <= LOOKED_BYTES).then(|| found.map(|(at, _)| 1 << at).sum::<u64>());
                assert_eq!(marks(&text, sought), wanted, "{text:?}");
                for of in [[sought; 4], [b'x', 0, b'y', b'\t']] {
                    let holds = text.iter().any(|byte| of.contains(byte));
                    assert_eq!(holds_any(&text, of), holds, "{text:?}");
                }
            }
        }
    }

    #[test]
    fn ends_are_found_up_to_a_count() {
        let mut seed = 9;
        for count in 0..300 {
            let mut byte = || b"ab\n\xff"[random(&mut seed) as usize % 4];
            let bytes: Vec<u8> = (0..count).map(|_| byte()).collect();
            let from = random(&mut seed) as usize % (count + 1);
            // One that seldom comes, too.
            for sought in [b'\n', b'\xff', 0] {
                let place = bytes[from..].iter().position(|&byte| byte == sought);
                assert_eq!(find_end(sought, &bytes[from..]), place, "{bytes:?}");
                let far = [&vec![b'.'; count][..], &[sought]].concat();
                assert_eq!(find_end(sought, &far), Some(count));
            }
            for count_max in [0, 1, 5, 64, 1000] {
                let mut found = vec![from as u32];
                find_ends(b'\n', &bytes, from, count_max, &mut found);
                let ends = (from..count).filter(|&at| bytes[at] == b'\n');
                let ends = ends.map(|at| at as u32 + 1).take(count_max);
                let wanted: Vec<u32> = std::iter::once(from as u32).chain(ends).collect();
                assert_eq!(found, wanted, "{bytes:?}");
            }
        }
    }

    #[test]
    fn sorts_as_the_standard_library_does() {
        let mut seed = 7;
        let counts = [
            0,
            1,
            2,
            RADIX_COUNT_MIN,
            255,
            256,
            511,
            512,
            1_023,
            1_024,
            5_000,
            50_000,
            80_000,
            170_000,
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
    fn sorts_words_that_crowd_at_one_end() {
        let mut seed = 8;
        for count in [100, 1_000, 20_000] {
            check(
                (0..count)
                    .map(|at| {
                        let word = random(&mut seed) >> (random(&mut seed) % 64);
                        entry(word, at, random(&mut seed) as u32)
                    })
                    .collect(),
            );
        }
    }

    #[test]
    fn sorts_many_equal_words_among_few_others() {
        let mut seed = 9;
        for count in [100, 1_000, 20_000] {
            check(
                (0..count)
                    .map(|at| {
                        let word = random(&mut seed);
                        let is_other = word.is_multiple_of(16);
                        // Ordinals fall, so that equal words are out of place too.
                        entry(if is_other { word } else { 1 << 40 }, count - at, at)
                    })
                    .collect(),
            );
        }
    }

    #[test]
    fn sorts_what_is_sorted_already_or_upside_down() {
        check((0..10_000).map(|at| entry(at, at as u32, 0)).collect());
        check((0..10_000).map(|at| entry(!at, at as u32, 0)).collect());
    }
}
