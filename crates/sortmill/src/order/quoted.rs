//! Separated values looked at 64 bytes at a time: which bytes part values, which end records, and which stand between quotes.
//!
//! A quote turns "between quotes" on and off, so whether a byte is between two is the parity of the quotes up to it: of all bits of
//! a word at once, the exclusive or of each with all below it (Langdale and Lemire, "Parsing gigabytes of JSON per second",
//! VLDB Journal 28, 2019, section 3.1.1).

use super::separated::Separated;
use crate::stage::kernel::{LOOKED_BYTES, equals, prefetch_line};

/// So far ahead memory is asked for.
const AHEAD_BYTES: usize = 1024;

/// What stands in 64 bytes, or fewer at the end: a bit for each, the lowest for the first.
#[derive(Clone, Copy)]
pub struct Looked {
    /// Delimiters that part values.
    pub delimiters: u64,
    /// Newlines that end records.
    pub newlines: u64,
    /// Quotes that open a value, or what a closed one goes on with.
    pub opening: u64,
    /// All other quotes.
    pub closing: u64,
}

/// Hands over what stands in each 64 bytes of whole records, with where these begin, until `see` has seen enough; whether it saw all,
/// and no quote is open at their end.
#[inline(always)]
pub fn look(
    separated: Separated,
    bytes: &[u8],
    mut see: impl FnMut(usize, Looked) -> bool,
) -> bool {
    let mut is_open = 0;
    let mut look = |begin: usize, part: &[u8; LOOKED_BYTES], bits: u64| {
        let quotes = match separated.quote {
            Some(quote) => equals(part, quote) & bits,
            None => 0,
        };
        let between = match quotes {
            0 => is_open,
            _ => parities(quotes) ^ is_open,
        };
        // All bits are as the highest is.
        is_open = ((between as i64) >> 63) as u64;
        let looked = Looked {
            delimiters: equals(part, separated.delimiter) & bits & !between,
            newlines: equals(part, b'\n') & bits & !between,
            opening: quotes & between,
            closing: quotes & !between,
        };
        see(begin, looked)
    };
    let (parts, rest) = bytes.as_chunks::<LOOKED_BYTES>();
    for (number, part) in parts.iter().enumerate() {
        prefetch_line(part, AHEAD_BYTES);
        if !look(number * LOOKED_BYTES, part, u64::MAX) {
            return false;
        }
    }
    if !rest.is_empty() {
        let mut part = [0; LOOKED_BYTES];
        part[..rest.len()].copy_from_slice(rest);
        let bits = u64::MAX >> (LOOKED_BYTES - rest.len());
        if !look(bytes.len() - rest.len(), &part, bits) {
            return false;
        }
        return is_open & 1 << (rest.len() - 1) == 0;
    }
    is_open == 0
}

/// Of each bit whether those up to it that are set are odd.
#[inline(always)]
fn parities(bits: u64) -> u64 {
    let mut parities = bits;
    for shift in [1, 2, 4, 8, 16, 32] {
        parities ^= parities << shift;
    }
    parities
}

/// Whether records, whole and back to back, surely are as they should be, of `count` columns each if that is known: their quotes
/// stand where they may, and where `may_be_nothing` a line of nothing is one, too. Of some that are, it is not sure:
/// whoever asks looks at each of them then.
pub fn are_good(
    separated: Separated,
    bytes: &[u8],
    count: Option<u64>,
    may_be_nothing: bool,
) -> bool {
    // What stood in front of the next 64 bytes: something that a value may begin behind, and a closing quote, and that with `\r`.
    let (mut begins, mut was_closed, mut was_returned) = (1, 0, 0);
    let (mut delimiters, mut record) = (0, 0);
    let is_good = look(separated, bytes, |begin, looked| {
        let Looked {
            delimiters: parts,
            newlines,
            opening,
            closing,
        } = looked;
        let ends = parts | newlines;
        if (opening | closing | was_closed | was_returned) != 0 {
            let behind = (closing << 1) | was_closed;
            let returns = behind & !(ends | opening | closing);
            let before = (ends | closing) << 1 | begins;
            let after_return = (returns << 1) | was_returned;
            let are_returns = || {
                let mut left = returns;
                std::iter::from_fn(|| {
                    let at = (left != 0).then(|| left.trailing_zeros() as usize)?;
                    left &= left - 1;
                    Some(at)
                })
                .all(|at| bytes.get(begin + at).is_none_or(|&byte| byte == b'\r'))
            };
            if opening & !before != 0 || after_return & !newlines != 0 || !are_returns() {
                return false;
            }
            was_closed = closing >> 63;
            was_returned = returns >> 63;
        }
        begins = (ends | closing) >> 63;
        let Some(count) = count else { return true };
        let mut left = newlines;
        let mut counted = 0;
        while left != 0 {
            let below = left ^ (left - 1);
            let up_to_here = (parts & below).count_ones();
            let end = begin + left.trailing_zeros() as usize;
            let have = delimiters + u64::from(up_to_here - counted);
            let is_nothing = || may_be_nothing && matches!(&bytes[record..end], b"" | b"\r");
            if have + 1 != count && !is_nothing() {
                return false;
            }
            (delimiters, counted, record) = (0, up_to_here, end + 1);
            left &= left - 1;
        }
        delimiters += u64::from(parts.count_ones() - counted);
        true
    });
    // A last record without its end is looked at by itself.
    is_good && bytes.last().is_none_or(|&last| last == b'\n')
}

/// Appends where records end, as offsets into `bytes`, of those that begin at `from`; at most `count_max` of them. What a quote
/// that is never closed leaves at the end, or lacks a newline, is none of them.
pub fn find_ends(
    separated: Separated,
    bytes: &[u8],
    from: usize,
    count_max: usize,
    ends: &mut Vec<u32>,
) {
    let ends_max = ends.len() + count_max;
    look(separated, &bytes[from..], |begin, looked| {
        let mut left = looked.newlines;
        while left != 0 && ends.len() < ends_max {
            let at = left.trailing_zeros() as usize;
            ends.push((from + begin + at + 1) as u32);
            left &= left - 1;
        }
        ends.len() < ends_max
    });
}

/// Where the values of one record end, which lie behind one another.
pub struct Ends<'e> {
    /// Where the record begins, and where it ends with its newline.
    pub record: std::ops::Range<usize>,
    /// Of each value, or as many as are asked for; of the last one in front of the end of the line.
    pub values: &'e [u32],
    /// Whether there is a quote in it.
    pub has_quotes: bool,
}

/// Hands over where the values of each of `records` end, which lie back to back, until `see` has seen enough. What lacks a newline
/// at the end is a record, too. Only of the first `values_max` values it is told where they end; `values` is scratch space for them.
#[inline(always)]
pub fn each_record(
    separated: Separated,
    records: &[u8],
    values_max: usize,
    values: &mut Vec<u32>,
    mut see: impl FnMut(Ends<'_>) -> bool,
) {
    values.clear();
    let (mut from, mut has_quotes, mut goes_on) = (0, false, true);
    let end_of_line = |from: usize, end: usize| {
        let has_return = end > from && records[end - 1] == b'\r';
        (end - usize::from(has_return)) as u32
    };
    look(separated, records, |begin, looked| {
        let quotes = looked.opening | looked.closing;
        let mut left = looked.delimiters | looked.newlines;
        // Quotes from here on are the next record's.
        let mut later = u64::MAX;
        while left != 0 {
            let bit = left & left.wrapping_neg();
            let at = begin + left.trailing_zeros() as usize;
            left &= left - 1;
            let is_wanted = values.len() < values_max;
            if looked.delimiters & bit != 0 {
                if is_wanted {
                    values.push(at as u32);
                }
                continue;
            }
            if is_wanted {
                values.push(end_of_line(from, at));
            }
            has_quotes |= quotes & later & (bit - 1) != 0;
            goes_on = see(Ends {
                record: from..at + 1,
                values,
                has_quotes,
            });
            if !goes_on {
                return false;
            }
            values.clear();
            (from, has_quotes, later) = (at + 1, false, !(bit - 1));
        }
        has_quotes |= quotes & later != 0;
        true
    });
    if goes_on && from < records.len() {
        if values.len() < values_max {
            values.push(end_of_line(from, records.len()));
        }
        see(Ends {
            record: from..records.len(),
            values,
            has_quotes,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::separated::{first_end, without_return};

    const CSV: Separated = Separated {
        delimiter: b',',
        quote: Some(b'"'),
    };
    const TSV: Separated = Separated {
        delimiter: b'\t',
        quote: None,
    };

    /// Records, most of them good ones, of values with all that may stand in them.
    fn records(seed: u64, separated: Separated) -> Vec<u8> {
        let mut state = seed;
        let mut next = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let is_wild = next(3) == 0;
        let count = 1 + next(4);
        let mut bytes = Vec::new();
        for _ in 0..next(40) {
            for number in 0..count {
                if number > 0 {
                    bytes.push(separated.delimiter);
                }
                let length = if next(9) == 0 { next(150) } else { next(9) };
                let is_quoted = next(3) == 0 && separated.quote.is_some();
                if is_quoted {
                    bytes.push(b'"');
                }
                for _ in 0..length {
                    match next(if is_quoted { 12 } else { 40 }) {
                        0 if is_quoted => bytes.extend_from_slice(b"\"\""),
                        1 if is_quoted => bytes.push(b'\n'),
                        2 if is_quoted => bytes.push(b','),
                        3 if is_wild => bytes.push(b'"'),
                        4 if is_wild => bytes.push(b'\r'),
                        5 if is_wild => bytes.push(separated.delimiter),
                        _ => bytes.push(b'a'),
                    }
                }
                if is_quoted {
                    bytes.push(b'"');
                }
            }
            bytes.extend_from_slice(if next(6) == 0 { b"\r\n" } else { b"\n" });
            if next(20) == 0 {
                bytes.push(b'\n');
            }
        }
        if next(4) == 0 {
            bytes.pop();
        }
        bytes
    }

    /// The records that a walk from the beginning finds.
    fn walked(separated: Separated, mut rest: &[u8]) -> Vec<&[u8]> {
        let mut found = Vec::new();
        while !rest.is_empty() {
            let end = match separated.quote {
                Some(quote) => first_end(rest, quote, false),
                None => rest.iter().position(|&byte| byte == b'\n').map(|at| at + 1),
            };
            let (record, behind) = rest.split_at(end.unwrap_or(rest.len()));
            found.push(record);
            rest = behind;
        }
        found
    }

    fn bare(record: &[u8]) -> &[u8] {
        without_return(record.strip_suffix(b"\n").unwrap_or(record))
    }

    #[test]
    fn what_is_said_to_be_good_is_and_most_of_what_is_is_said_to_be() {
        let (mut sure, mut good) = (0, 0);
        for seed in 0..6000 {
            let separated = [CSV, TSV][seed as usize % 2];
            let bytes = records(seed, separated);
            let records = walked(separated, &bytes);
            let counts: Vec<_> = records
                .iter()
                .map(|one| separated.check(bare(one)))
                .collect();
            let first = counts.iter().flatten().next().copied();
            for (count, may_be_nothing) in [
                (None, false),
                (first, true),
                (first, false),
                (Some(1), false),
            ] {
                let is_good = |(record, found): (&&[u8], &Result<u64, _>)| {
                    let is_nothing = may_be_nothing && bare(record).is_empty();
                    let has = |found: &u64| count.is_none_or(|count| count == *found);
                    is_nothing || found.as_ref().is_ok_and(has)
                };
                let are = records.iter().zip(&counts).all(is_good);
                let said = are_good(separated, &bytes, count, may_be_nothing);
                assert!(are || !said, "seed {seed}: {}", bytes.escape_ascii());
                good += u32::from(are);
                sure += u32::from(said);
                // Of whole lines it is sure.
                let is_whole = bytes.last().is_none_or(|&last| last == b'\n');
                assert!(
                    said || !are || !is_whole,
                    "seed {seed}: {}",
                    bytes.escape_ascii()
                );
            }
        }
        assert!(sure > 5000 && good > sure, "{sure} of {good}");
    }

    #[test]
    fn quotes_out_of_place_are_not_good() {
        for record in [
            "a\"b",
            "a, \"b\"",
            "\"a\"b",
            "x,\"a\" ,b",
            "\"",
            "\"a\"\r,b",
            "\"a\"\rb",
        ] {
            for front in 0..70 {
                let bytes = format!("{}\n{record}\n", "x".repeat(front));
                assert!(!are_good(CSV, bytes.as_bytes(), None, false), "{record}");
            }
        }
    }

    #[test]
    fn records_end_where_a_walk_has_them() {
        for seed in 0..4000 {
            let separated = [CSV, TSV][seed as usize % 2];
            let bytes = records(seed, separated);
            let mut ends = Vec::new();
            find_ends(separated, &bytes, 0, usize::MAX, &mut ends);
            let most = seed as usize % 7;
            let mut some = Vec::new();
            find_ends(separated, &bytes, 0, most, &mut some);
            assert_eq!(some, ends[..most.min(ends.len())], "seed {seed}");
            if ends.last().map_or(0, |&end| end as usize) < bytes.len() {
                ends.push(bytes.len() as u32);
            }
            let starts = std::iter::once(&0).chain(&ends);
            let found = starts
                .zip(&ends)
                .map(|(&from, &to)| &bytes[from as usize..to as usize]);
            assert_eq!(
                found.collect::<Vec<_>>(),
                walked(separated, &bytes),
                "seed {seed}"
            );
        }
    }

    #[test]
    fn values_end_where_a_walk_has_them() {
        for seed in 0..4000 {
            let separated = [CSV, TSV][seed as usize % 2];
            let bytes = records(seed, separated);
            let mut expected = walked(separated, &bytes).into_iter();
            let (mut ends, most) = (Vec::new(), [usize::MAX, 2, 1][seed as usize % 3]);
            each_record(separated, &bytes, most, &mut ends, |found| {
                let whole = &bytes[found.record.clone()];
                assert_eq!(Some(whole), expected.next(), "seed {seed}");
                let has_quotes = separated.quote.is_some_and(|quote| whole.contains(&quote));
                assert_eq!(found.has_quotes, has_quotes);
                if separated.check(bare(whole)).is_err() {
                    return true;
                }
                let mut from = found.record.start;
                let cut = found.values.iter().map(|&end| {
                    let value =
                        &bytes[std::mem::replace(&mut from, end as usize + 1)..end as usize];
                    match value {
                        [b'"', inner @ .., b'"'] if separated.quote.is_some() => inner,
                        _ => value,
                    }
                });
                let values = separated.values(bare(whole)).take(most);
                assert!(cut.eq(values), "seed {seed}");
                true
            });
            assert_eq!(expected.next(), None, "seed {seed}");
        }
    }

    #[test]
    fn who_has_seen_enough_sees_no_more() {
        let bytes = b"a\nb\n\"\n\"\nc";
        for most in 1..6 {
            let mut seen = 0;
            each_record(CSV, bytes, 1, &mut Vec::new(), |_| {
                seen += 1;
                seen < most
            });
            assert_eq!(seen, most.min(4));
        }
    }
}
