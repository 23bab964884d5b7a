//! Values parted by a delimiter: where each lies in a record, within its quotes, and whether quotes stand where they
//! may.
//!
//! Two quotes within a value stand for one, and stay two for whoever compares values. Doubling a byte wherever it is
//! found changes no order: up to the first byte in which two values differ they are doubled alike, that byte is
//! followed by itself at most, and where one value ends there the other goes on as it did. As a value with a quote in
//! it cannot be written in another way, equal values are written alike, too. Only who shows a value, as a column's
//! name, wants one quote.
//!
//! RFC 4180, strictly: a value stands between quotes as a whole or has none in it, and between quotes two of them are one.
//! So a record ends at a newline with an even number of quotes before it, and nobody has to know more to cut records. Only
//! [`Separated::check`] refuses anything; the others answer something for any bytes.

use super::near;
use super::wrong::Wrong;

/// How values are parted.
#[derive(Clone, Copy, Debug)]
pub struct Separated {
    /// What stands between two values.
    pub delimiter: u8,
    /// What a value may stand between.
    pub quote: Option<u8>,
}

/// The record without a carriage return at its end, which belongs to the end of the line.
#[inline]
pub fn without_return(record: &[u8]) -> &[u8] {
    record.strip_suffix(b"\r").unwrap_or(record)
}

impl Separated {
    /// Value `number` of a record, from 0; `None` if it has fewer.
    #[inline]
    pub fn value(self, record: &[u8], number: usize) -> Option<&[u8]> {
        let mut rest = record;
        for _ in 0..number {
            let end = self.end(rest);
            // Behind the last value there is no delimiter.
            rest = rest.get(end + 1..)?;
        }
        Some(self.unquoted(&rest[..self.end(rest)]))
    }

    /// Where the first record of `bytes` ends, behind its newline; `None` if it goes on behind them.
    #[must_use]
    pub fn first_end(self, bytes: &[u8]) -> Option<usize> {
        match self.quote {
            Some(quote) => first_end(bytes, quote, false),
            None => memchr::memchr(b'\n', bytes).map(|at| at + 1),
        }
    }

    /// What the values of a record without its end say: two quotes are one.
    ///
    /// # Errors
    /// As [`Separated::check`].
    pub fn texts(self, record: &[u8]) -> Result<Vec<Vec<u8>>, Wrong> {
        self.check(record)?;
        let text = |value: &[u8]| {
            let mut is_first = false;
            let says = value.iter().copied().filter(|&byte| {
                is_first = Some(byte) == self.quote && !is_first;
                Some(byte) != self.quote || is_first
            });
            says.collect()
        };
        Ok(self.values(record).map(text).collect())
    }

    /// The values of a record.
    pub fn values(self, record: &[u8]) -> impl Iterator<Item = &[u8]> {
        let mut rest = Some(record);
        std::iter::from_fn(move || {
            let all = rest?;
            let end = self.end(all);
            rest = all.get(end + 1..);
            Some(self.unquoted(&all[..end]))
        })
    }

    /// Where the value ends that `rest` begins with.
    #[inline]
    fn end(self, rest: &[u8]) -> usize {
        let from = match self.quote {
            Some(quote) if rest.first() == Some(&quote) => {
                closed(rest, quote).unwrap_or(rest.len())
            }
            _ => 0,
        };
        near::find(self.delimiter, &rest[from..]).map_or(rest.len(), |at| from + at)
    }

    #[inline]
    fn unquoted(self, value: &[u8]) -> &[u8] {
        match (self.quote, value) {
            (Some(quote), [first, inner @ ..]) if *first == quote => {
                inner.strip_suffix(&[quote]).unwrap_or(inner)
            }
            _ => value,
        }
    }

    /// How many columns a record has.
    ///
    /// # Errors
    /// The first quote that stands where none may, or that is never closed.
    pub fn check(self, record: &[u8]) -> Result<u64, Wrong> {
        let quote = self
            .quote
            .filter(|&quote| memchr::memchr(quote, record).is_some());
        let Some(quote) = quote else {
            return Ok(1 + memchr::memchr_iter(self.delimiter, record).count() as u64);
        };
        let (mut at, mut count) = (0, 1);
        loop {
            let rest = &record[at..];
            let end = match rest.first() {
                Some(&first) if first == quote => {
                    let closed = closed(rest, quote).ok_or_else(|| {
                        Wrong::new(at, "the quote that opens here is never closed")
                    })?;
                    if rest.get(closed).is_some_and(|&byte| byte != self.delimiter) {
                        let cause = "behind a closing quote comes neither a delimiter nor the end of the record";
                        return Err(Wrong::new(at + closed - 1, cause).hint(HINT));
                    }
                    closed
                }
                _ => {
                    let end = memchr::memchr2(self.delimiter, quote, rest).unwrap_or(rest.len());
                    if rest.get(end) == Some(&quote) {
                        let cause = "a quote stands within a value that does not begin with one";
                        return Err(Wrong::new(at + end, cause).hint(HINT));
                    }
                    end
                }
            };
            at += end + 1;
            if at > record.len() {
                return Ok(count);
            }
            count += 1;
        }
    }
}

const HINT: &str = "A value with a quote in it stands between quotes as a whole, and that quote twice. Where quotes are \
                    bytes as any other, say --quote none.";

/// Where the quoted value ends that `rest` begins with, behind its closing quote; `None` if it has none.
#[inline]
fn closed(rest: &[u8], quote: u8) -> Option<usize> {
    let mut at = 1;
    loop {
        at += memchr::memchr(quote, &rest[at..])? + 1;
        if rest.get(at) != Some(&quote) {
            return Some(at);
        }
        at += 1;
    }
}

/// Where the first record ends in `bytes`, if `quote`s are around newlines within one; `None` if it goes on behind them.
/// `is_quoted`: it began before, and `bytes` begin between two quotes.
#[inline]
pub fn first_end(bytes: &[u8], quote: u8, mut is_quoted: bool) -> Option<usize> {
    for at in memchr::memchr2_iter(quote, b'\n', bytes) {
        if bytes[at] == quote {
            is_quoted = !is_quoted;
        } else if !is_quoted {
            return Some(at + 1);
        }
    }
    None
}

/// Where the last whole record of `bytes` ends, 0 if none does. Quotes are counted once, and then looked at from the end
/// on until a newline is outside.
pub fn last_end(bytes: &[u8], quote: u8, is_quoted: bool) -> usize {
    let mut is_quoted = is_quoted != is_odd(bytes, quote);
    for at in memchr::memrchr2_iter(quote, b'\n', bytes) {
        if bytes[at] == quote {
            is_quoted = !is_quoted;
        } else if !is_quoted {
            return at + 1;
        }
    }
    0
}

/// Whether there is an odd number of `quote`s in `bytes`.
pub fn is_odd(bytes: &[u8], quote: u8) -> bool {
    memchr::memchr_iter(quote, bytes).count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: Separated = Separated {
        delimiter: b',',
        quote: Some(b'"'),
    };

    fn values(separated: Separated, record: &str) -> Vec<&str> {
        let text = |value| str::from_utf8(value).unwrap();
        let all: Vec<&str> = separated.values(record.as_bytes()).map(text).collect();
        for (number, value) in all.iter().enumerate() {
            let one = separated.value(record.as_bytes(), number);
            assert_eq!(one.map(text), Some(*value), "{record}");
        }
        assert!(separated.value(record.as_bytes(), all.len()).is_none());
        all
    }

    /// The values say what is `expected`, and lie in the record as that with quotes doubled.
    #[track_caller]
    fn check(record: &str, expected: &[&str]) {
        let doubled: Vec<String> = expected
            .iter()
            .map(|text| text.replace('"', "\"\""))
            .collect();
        assert_eq!(values(CSV, record), doubled, "{record}");
        let texts = CSV.texts(record.as_bytes()).unwrap();
        let expected: Vec<&[u8]> = expected.iter().map(|text| text.as_bytes()).collect();
        assert_eq!(texts, expected, "{record}");
        let count = CSV.check(record.as_bytes());
        assert_eq!(count.unwrap(), expected.len() as u64, "{record}");
    }

    /// All values of up to four bytes, from beside the quote and from where texts are escaped.
    #[test]
    fn a_doubled_quote_keeps_the_order() {
        let letters = *b"\0\x01!\"#";
        let mut all: Vec<Vec<u8>> = vec![Vec::new()];
        let mut from = 0;
        for _ in 0..4 {
            let to = all.len();
            for at in from..to {
                all.extend(letters.map(|letter| [&all[at][..], &[letter]].concat()));
            }
            from = to;
        }
        let lies = |text: &Vec<u8>| {
            let doubled = text
                .iter()
                .flat_map(|&byte| vec![byte; 1 + usize::from(byte == b'"')]);
            let record: Vec<u8> = [b'"'].into_iter().chain(doubled).chain([b'"']).collect();
            assert_eq!(CSV.texts(&record).unwrap(), [&text[..]]);
            CSV.value(&record, 0).unwrap().to_vec()
        };
        all.sort();
        let mut lying: Vec<Vec<u8>> = all.iter().map(lies).collect();
        lying.dedup();
        assert_eq!(lying.len(), 1 + 5 + 25 + 125 + 625);
        assert!(lying.is_sorted());
    }

    #[test]
    fn values_are_parted_and_unquoted() {
        check("", &[""]);
        check(",", &["", ""]);
        check("a,b", &["a", "b"]);
        check("a,\"b,c\",d", &["a", "b,c", "d"]);
        check("\"\",\"\"\"\"", &["", "\""]);
        check("\"a\"\"b\nc\"", &["a\"b\nc"]);
        check("\"\"\"\"\"\",x", &["\"\"", "x"]);
        check("x,\"\"", &["x", ""]);
        check("x,\"a,\"\",b\",", &["x", "a,\",b", ""]);
        let plain = Separated {
            delimiter: b'\t',
            quote: None,
        };
        assert_eq!(values(plain, "\"a\tb\"\t"), ["\"a", "b\"", ""]);
        assert_eq!(plain.check(b"\"a\tb\"\t").unwrap(), 3);
    }

    #[test]
    fn quotes_out_of_place_are_found() {
        for (record, at, word) in [
            ("a\"b", 1, "within a value"),
            ("a, \"b\"", 3, "within a value"),
            ("\"a\"b", 2, "behind a closing quote"),
            ("x,\"a\" ,b", 4, "behind a closing quote"),
            ("\"", 0, "never closed"),
            ("x,y,\"a\n\"\"", 4, "never closed"),
        ] {
            let wrong = CSV.check(record.as_bytes()).unwrap_err();
            assert_eq!(wrong.at, at, "{record}");
            assert!(wrong.cause.contains(word), "{record}: {}", wrong.cause);
            // And nothing else fails.
            let _ = values(CSV, record);
        }
    }

    /// Wherever bytes are cut in two, the first and the last end are where a walk from the beginning finds them.
    #[test]
    fn records_end_where_a_walk_from_the_beginning_has_them() {
        let text = b"a,b\n\"x\n\"\"\n\",c\n\n\"\"\"\n\"\nq\n\"y\n";
        let mut ends = Vec::new();
        let mut is_quoted = [false; 64];
        for (at, byte) in text.iter().enumerate() {
            is_quoted[at + 1] = is_quoted[at] != (*byte == b'"');
            if *byte == b'\n' && !is_quoted[at + 1] {
                ends.push(at + 1);
            }
        }
        for from in 0..=text.len() {
            for to in from..=text.len() {
                let part = &text[from..to];
                let inside = || ends.iter().filter(|&&end| from < end && end <= to);
                let first = inside().next().map(|end| end - from);
                let last = inside().next_back().map_or(0, |end| end - from);
                assert_eq!(first_end(part, b'"', is_quoted[from]), first);
                assert_eq!(last_end(part, b'"', is_quoted[from]), last);
            }
        }
    }
}
