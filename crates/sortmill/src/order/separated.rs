//! Values parted by a delimiter: where each lies in a record, what it is without quotes, and whether quotes stand where
//! they may.
//!
//! RFC 4180, strictly: a value stands between quotes as a whole or has none in it, and between quotes two of them are one.
//! So a record ends at a newline with an even number of quotes before it, and nobody has to know more to cut records. Only
//! [`Separated::check`] refuses anything; the others answer something for any bytes.

use super::wrong::Wrong;

/// How values are parted.
#[derive(Clone, Copy, Debug)]
pub struct Separated {
    /// What stands between two values.
    pub delimiter: u8,
    /// What a value may stand between.
    pub quote: Option<u8>,
}

/// A value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Text<'r> {
    /// These bytes.
    Plain(&'r [u8]),
    /// These, of which two quotes are one.
    Doubled(&'r [u8], u8),
}

impl Text<'_> {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Plain([]))
    }
}

/// The bytes of a value in which two of `quote` are one.
pub fn undoubled(bytes: &[u8], quote: u8) -> impl Iterator<Item = u8> {
    let mut is_first = false;
    bytes.iter().copied().filter(move |&byte| {
        is_first = byte == quote && !is_first;
        byte != quote || is_first
    })
}

/// The record without a carriage return at its end, which belongs to the end of the line.
#[inline]
pub fn without_return(record: &[u8]) -> &[u8] {
    record.strip_suffix(b"\r").unwrap_or(record)
}

impl Separated {
    /// Value `number` of a record, from 0; `None` if it has fewer.
    #[inline]
    pub fn value<'r>(self, record: &'r [u8], number: usize) -> Option<Text<'r>> {
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

    /// The values of a record without its end, without their quotes.
    ///
    /// # Errors
    /// As [`Separated::check`].
    pub fn texts(self, record: &[u8]) -> Result<Vec<Vec<u8>>, Wrong> {
        self.check(record)?;
        let text = |value| match value {
            Text::Plain(bytes) => bytes.to_vec(),
            Text::Doubled(bytes, quote) => undoubled(bytes, quote).collect(),
        };
        Ok(self.values(record).map(text).collect())
    }

    /// The values of a record.
    pub fn values<'r>(self, record: &'r [u8]) -> impl Iterator<Item = Text<'r>> {
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
        memchr::memchr(self.delimiter, &rest[from..]).map_or(rest.len(), |at| from + at)
    }

    #[inline]
    fn unquoted(self, value: &[u8]) -> Text<'_> {
        let (Some(quote), Some((first, inner))) = (self.quote, value.split_first()) else {
            return Text::Plain(value);
        };
        if *first != quote {
            return Text::Plain(value);
        }
        let inner = inner.strip_suffix(&[quote]).unwrap_or(inner);
        match memchr::memchr(quote, inner) {
            None => Text::Plain(inner),
            Some(_) => Text::Doubled(inner, quote),
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

    fn values(separated: Separated, record: &str) -> Vec<String> {
        let text = |value: Text<'_>| {
            let bytes: Vec<u8> = match value {
                Text::Plain(bytes) => bytes.to_vec(),
                Text::Doubled(bytes, quote) => undoubled(bytes, quote).collect(),
            };
            String::from_utf8(bytes).unwrap()
        };
        let all: Vec<String> = separated.values(record.as_bytes()).map(text).collect();
        for (number, value) in all.iter().enumerate() {
            let one = separated.value(record.as_bytes(), number);
            assert_eq!(one.map(text).as_ref(), Some(value), "{record}");
        }
        assert!(separated.value(record.as_bytes(), all.len()).is_none());
        all
    }

    #[track_caller]
    fn check(record: &str, expected: &[&str]) {
        assert_eq!(values(CSV, record), expected, "{record}");
        let count = CSV.check(record.as_bytes());
        assert_eq!(count.unwrap(), expected.len() as u64, "{record}");
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
