//! Sorted lines to runs of equal ones: what `uniq` makes of them; or sorted pairs of lines and how often they came.
//!
//! Lines come in order, from one unit after the other, so a run may go on from unit to unit: the first line of the one
//! that is open is kept here, and how many came. Lines are compared whole, whatever decided their order. Each run is put
//! out when the next one begins, or when all is over.
//!
//! GNU coreutils manual, "uniq invocation"; POSIX uniq(1).

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::counts::counted;
use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::yields::Runs;

/// Counts runs. Owns a copy of the open one's first line.
#[derive(Default)]
pub struct Counter {
    asked: Runs,
    /// What comes are pairs, and lines end in this.
    delimiter: Option<u8>,
    /// What fingerprints are keyed by.
    key: u64,
    first: Vec<u8>,
    count: u64,
    /// Lines still to be put out, where that is bounded.
    left: Option<u64>,
    /// A line with its count.
    made: Vec<u8>,
    /// What the counts say has come: of each run its first line, as often as it was counted.
    pub counted: Fingerprint,
    /// The first line of each run that was put out.
    pub kept: Fingerprint,
    /// What was put out.
    pub written: Fingerprint,
}

impl Counter {
    /// Nothing has come. `key` is the fingerprints'. With a `delimiter`, pairs come ([`crate::counts`]) of lines that
    /// end in it.
    #[must_use]
    pub fn new(asked: Runs, delimiter: Option<u8>, key: u64) -> Self {
        Self {
            asked,
            delimiter,
            key,
            left: asked.first,
            ..Self::default()
        }
    }

    /// The next line, with what ends it, or pair. `put` takes what is put out, a line at a time.
    ///
    /// # Errors
    /// What `put` answers; [`ErrorKind::Lost`] for a pair that is none.
    #[inline]
    pub fn next(&mut self, record: &[u8], put: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        match self.delimiter {
            None => self.next_line(record, put),
            Some(delimiter) => self.next_pair(record, delimiter, put),
        }
    }

    fn next_pair(
        &mut self,
        pair: &[u8],
        delimiter: u8,
        put: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some((line, count)) = counted(pair) else {
            return Err(wrong("a pair of a line and its count is none"));
        };
        if self.count > 0 && self.first[..self.first.len() - 1] == *line {
            self.count += count;
            return Ok(());
        }
        self.end(put)?;
        self.first.clear();
        self.first.extend_from_slice(line);
        self.first.push(delimiter);
        self.count = count;
        Ok(())
    }

    #[inline]
    fn next_line(&mut self, line: &[u8], put: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if self.count > 0 && self.is_equal(line) {
            self.count += 1;
            return Ok(());
        }
        self.end(put)?;
        self.first.clear();
        self.first.extend_from_slice(line);
        self.count = 1;
        Ok(())
    }

    #[inline]
    fn is_equal(&self, line: &[u8]) -> bool {
        match self.asked.fold {
            false => self.first == line,
            true => self.first.eq_ignore_ascii_case(line),
        }
    }

    /// The open run is over: another line comes, or none.
    ///
    /// # Errors
    /// What `put` answers.
    pub fn end(&mut self, mut put: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let count = std::mem::take(&mut self.count);
        if count == 0 {
            return Ok(());
        }
        let line = &self.first;
        let hash = xxh3_64_with_seed(line, self.key);
        self.counted.add_times(line.len() as u64, hash, count);
        let is_left_out = match count {
            1 => self.asked.repeated_only,
            _ => self.asked.single_only,
        };
        if is_left_out || self.left == Some(0) {
            return Ok(());
        }
        if let Some(left) = &mut self.left {
            *left -= 1;
        }
        self.kept.add_hashed(line.len() as u64, hash);
        if !self.asked.counted {
            self.written.add_hashed(line.len() as u64, hash);
            return put(line);
        }
        self.made.clear();
        put_count(count, &mut self.made);
        self.made.extend_from_slice(line);
        self.written.add(&self.made, self.key);
        put(&self.made)
    }

    /// Whether pairs came.
    #[must_use]
    pub fn is_of_pairs(&self) -> bool {
        self.delimiter.is_some()
    }

    /// Compares what was counted with the lines that came, once all runs are over.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] when a run was counted wrong.
    pub fn prove(&self, came: &Fingerprint) -> Result<()> {
        let mut counted = self.counted;
        if self.asked.fold {
            // Lines that differ by case are as long, and are not the same.
            counted.sum = came.sum;
        }
        if counted == *came {
            return Ok(());
        }
        Err(wrong("the counts do not add up to the lines that came"))
    }
}

/// A count as `uniq -c` has it: of seven places or more, and a blank behind it.
fn put_count(mut count: u64, to: &mut Vec<u8>) {
    let mut text = [b' '; 21];
    let mut from = text.len() - 1;
    loop {
        from -= 1;
        text[from] = b'0' + (count % 10) as u8;
        count /= 10;
        if count == 0 {
            break;
        }
    }
    to.extend_from_slice(&text[from.min(text.len() - 8)..]);
}

fn wrong(cause: &str) -> Error {
    Error::new(ErrorKind::Lost, "counting runs", cause)
        .hint("This is a fault of sortmill or of this machine's memory. No output was made.")
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    fn lines(asked: Runs, lines: &[&[u8]]) -> (Vec<u8>, Counter) {
        let mut out = Vec::new();
        let mut counter = Counter::new(asked, None, 7);
        let mut put = |line: &[u8]| {
            out.extend_from_slice(line);
            Ok(())
        };
        for line in lines {
            counter.next(line, &mut put).unwrap();
        }
        counter.end(&mut put).unwrap();
        let mut came = Fingerprint::default();
        lines.iter().for_each(|line| came.add(line, 7));
        counter.prove(&came).unwrap();
        (out, counter)
    }

    #[test]
    fn runs_as_uniq_has_them() {
        let given: [&[u8]; 6] = [b"\n", b"a\n", b"a\n", b"A\n", b"ab\n", b"ab\n"];
        let all = Runs::default();
        for (asked, wanted) in [
            (all, "\na\nA\nab\n"),
            (
                Runs {
                    counted: true,
                    ..all
                },
                "      1 \n      2 a\n      1 A\n      2 ab\n",
            ),
            (
                Runs {
                    counted: true,
                    fold: true,
                    ..all
                },
                "      1 \n      3 a\n      2 ab\n",
            ),
            (
                Runs {
                    repeated_only: true,
                    ..all
                },
                "a\nab\n",
            ),
            (
                Runs {
                    single_only: true,
                    first: Some(1),
                    ..all
                },
                "\n",
            ),
            (
                Runs {
                    single_only: true,
                    repeated_only: true,
                    ..all
                },
                "",
            ),
        ] {
            let (out, counter) = lines(asked, &given);
            assert_eq!(String::from_utf8_lossy(&out), wanted, "{asked:?}");
            assert_eq!(counter.written.bytes, out.len() as u64);
        }
    }

    #[test]
    fn counts_of_any_size() {
        for count in (0..20)
            .flat_map(|digits| [10_u64.pow(digits), 10_u64.pow(digits) - 1])
            .chain([u64::MAX])
        {
            let mut text = Vec::new();
            put_count(count, &mut text);
            assert_eq!(String::from_utf8(text).unwrap(), format!("{count:7} "));
        }
    }

    #[test]
    fn a_wrong_count_does_not_pass() {
        let (_, mut counter) = lines(Runs::default(), &[b"a\n", b"b\n"]);
        let mut came = counter.counted;
        counter.prove(&came).unwrap();
        came.add(b"b\n", 7);
        counter.prove(&came).unwrap_err();
        // As many lines of as many bytes, but others.
        counter.counted.add(b"a\n", 7);
        counter.prove(&came).unwrap_err();
    }
}
