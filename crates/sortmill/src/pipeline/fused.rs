//! The last steps of a mapper and what keeps its groups, as one loop: calls that are known beforehand take far less time than
//! those of any step and any record.
//!
//! In comes a record behind all other steps, and the feed that it would have gone to; into that go its keys. Text is cut where it
//! lies, or in scratch space of the worker's own.

use super::cells::without_end;
use super::column::{Column, Value};
use super::combine::PairSink;
use super::letters::WordFinder;
use super::line_rows::{each_field, ends_no_line};
use super::long_text::WordsLeft;
use super::ngrams::Ngrams;
use super::parts::{How, Parts};
use super::shuffle::Feed;
use super::verbs::{Step, each_part};
use crate::error::{Error, Result};

/// Steps that make one column of text out of column `at`, of which every value is a key.
pub(super) struct Fused {
    at: usize,
    parts: Parts,
    made: Made,
    /// Words of a long text for which there was no room.
    left: WordsLeft,
}

enum Made {
    Words {
        lower: bool,
        finder: WordFinder,
    },
    Ngrams {
        rows: Ngrams,
        finder: WordFinder,
    },
    /// The field with this number.
    Field {
        by: Vec<u8>,
        number: usize,
    },
}

impl Fused {
    /// The last of `steps`, if they are such, and the steps in front of them.
    pub fn of(steps: &[Step]) -> (Option<Self>, &[Step]) {
        let is_text = |column: &Column| column.kind.is_bytes() && !column.nullable;
        let (front, at, parts, made) = match steps {
            [front @ .., Step::Parts { at, parts }] => match parts.how {
                How::Words { lower } => {
                    let finder = WordFinder::default();
                    (front, at, parts, Made::Words { lower, finder })
                }
                How::Ngrams { count, lower } => {
                    let (rows, finder) = (Ngrams::new(count, lower), WordFinder::default());
                    (front, at, parts, Made::Ngrams { rows, finder })
                }
                _ => return (None, steps),
            },
            [front @ .., Step::Parts { at, parts }, Step::Select(of)] => {
                match (&parts.how, &of[..]) {
                    (How::Fields { by }, &[number]) if parts.made.iter().all(is_text) => {
                        let by = by.clone();
                        (front, at, parts, Made::Field { by, number })
                    }
                    _ => return (None, steps),
                }
            }
            _ => return (None, steps),
        };
        let fused = Self {
            at: *at,
            parts: parts.clone(),
            made,
            left: WordsLeft::default(),
        };
        (Some(fused), front)
    }

    /// Feeds each key of `lines`, which lie back to back and are the column, to `feed`; of a long line until `is_full`.
    ///
    /// # Errors
    /// Those of the steps, with where the line begins that they are about.
    pub fn feed_lines(
        &mut self,
        lines: &[u8],
        feed: &mut Feed,
        is_full: &dyn Fn() -> bool,
        pairs: PairSink<'_>,
    ) -> std::result::Result<(), (usize, Error)> {
        let waits = self.waits((lines, true), feed, is_full, pairs);
        if waits.map_err(|error| (0, error))? {
            return Ok(());
        }
        match &mut self.made {
            // No word goes over the end of a line.
            Made::Words { lower, finder } => {
                if let Some(text) = finder.ascii(lines, *lower) {
                    let each = text.each_word(|word| {
                        feed.add_word(text.bytes(), word, pairs);
                        Ok(())
                    });
                    return each.map_err(|error| (0, error));
                }
            }
            Made::Ngrams { .. } => {
                let fed = self.feed_text(lines, feed, pairs);
                return fed.map_err(|error| (0, error));
            }
            Made::Field { by, number } => {
                if ends_no_line(by) {
                    let (parts, mut field) = (&self.parts, 0..0);
                    return each_field(lines, by[0], |line, at, range, is_last| {
                        if at == *number {
                            field = range;
                        }
                        if is_last {
                            parts.check_count(at + 1).map_err(|error| (line, error))?;
                            feed.add_word(lines, field.clone(), pairs);
                        }
                        Ok(())
                    });
                }
            }
        }
        let mut from = 0;
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            self.feed_text(without_end(line), feed, pairs)
                .map_err(|error| (from, error))?;
            from += line.len();
        }
        Ok(())
    }

    /// Feeds each key of `record` to `feed`, which takes keys as such ([`super::shuffle::Shuffle::takes_keys`]); of a long text
    /// until `is_full`.
    ///
    /// # Errors
    /// Those of the steps.
    pub fn feed(
        &mut self,
        record: &[Value<'_>],
        feed: &mut Feed,
        is_full: &dyn Fn() -> bool,
        pairs: PairSink<'_>,
    ) -> Result<()> {
        let text = match record[self.at] {
            Value::Null => return self.parts.of_null(),
            value => value.bytes(),
        };
        if self.waits((text, false), feed, is_full, pairs)? {
            return Ok(());
        }
        self.feed_text(text, feed, pairs)
    }

    /// Has `text` begin, which are texts of a line each where that is said. Whether it is of so many words that they are fed as there is
    /// room: then they are.
    fn waits(
        &mut self,
        (text, by_lines): (&[u8], bool),
        feed: &mut Feed,
        is_full: &dyn Fn() -> bool,
        pairs: PairSink<'_>,
    ) -> Result<bool> {
        // The text in front was so long that it cannot wait.
        self.go_on(feed, &|| false, pairs)?;
        if let Made::Ngrams { rows, .. } = &mut self.made {
            rows.begin(by_lines);
        }
        let words_each = self.parts.words_each();
        let Some(left) = words_each.and_then(|words_each| WordsLeft::of(text, words_each)) else {
            return Ok(false);
        };
        self.left = left;
        self.go_on(feed, is_full, pairs)?;
        Ok(true)
    }

    /// Feeds words for which there was no room until `is_full`.
    ///
    /// # Errors
    /// As [`Fused::feed`].
    pub fn go_on(
        &mut self,
        feed: &mut Feed,
        is_full: &dyn Fn() -> bool,
        pairs: PairSink<'_>,
    ) -> Result<()> {
        if self.left.is_empty() {
            return Ok(());
        }
        let mut left = std::mem::take(&mut self.left);
        let fed = left.go_on(is_full, |piece| self.feed_text(piece, feed, pairs));
        self.left = left;
        fed
    }

    /// Whether some words wait.
    pub fn is_held(&self) -> bool {
        !self.left.is_empty()
    }

    /// Feeds those of a text, or of a piece of it that begins and ends between words.
    fn feed_text(&mut self, text: &[u8], feed: &mut Feed, pairs: PairSink<'_>) -> Result<()> {
        match &mut self.made {
            Made::Words { lower, finder } => match finder.ascii(text, *lower) {
                Some(text) => text.each_word(|word| {
                    feed.add_word(text.bytes(), word, pairs);
                    Ok(())
                }),
                None => finder.each_of_any(text, *lower, |word| {
                    feed.add(&[Value::Bytes(word)], pairs);
                    Ok(())
                }),
            },
            Made::Ngrams { rows, finder } => rows.each(text, finder, |row| {
                feed.add(&[Value::Bytes(row)], pairs);
                Ok(())
            }),
            Made::Field { by, number } => {
                let (mut field, mut count) = (&text[..0], 0);
                each_part(text, by, |part| {
                    if count == *number {
                        field = part;
                    }
                    count += 1;
                    Ok(())
                })?;
                self.parts.check_count(count)?;
                feed.add(&[Value::Bytes(field)], pairs);
                Ok(())
            }
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use std::collections::BTreeMap;

    use sortmill_io::sync::Arc;
    use sortmill_io::sync::atomic::AtomicBool;

    use super::*;
    use crate::pipeline::column::Type;
    use crate::pipeline::count_bytes::take_count;
    use crate::pipeline::shuffle::Shuffle;
    use crate::pipeline::{count, fields, ngrams, words};

    /// Lines of a few letters, tabs, spaces and bytes that are no ASCII; some end in `\r\n`, and the last may have no end.
    fn text(seed: u64) -> Vec<u8> {
        let mut state = seed;
        let mut next = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let is_ascii = next(2) == 0;
        let mut text = Vec::new();
        for _ in 0..next(60) {
            for number in 0..3 {
                if number > 0 {
                    text.push(b'\t');
                }
                for _ in 0..next(if seed.is_multiple_of(7) { 90 } else { 12 }) {
                    match next(40) {
                        0 if !is_ascii => text.extend_from_slice("é".as_bytes()),
                        1 => text.push(b' '),
                        2 => text.push(b'\r'),
                        letter => text.push(b'A' + letter as u8 % 26),
                    }
                }
            }
            text.extend_from_slice(if next(5) == 0 { b"\r\n" } else { b"\n" });
        }
        if next(2) == 0 {
            text.pop();
        }
        text
    }

    /// How often each key comes, of all lines at once or one by one, and where one is wrong.
    fn counted(
        parts: &Parts,
        select: &[Step],
        lines: &[u8],
        at_once: bool,
    ) -> std::result::Result<BTreeMap<Vec<u8>, u64>, (usize, String)> {
        let columns = [Column::new("key", Type::String)];
        let (aggregate, _) = count().find(&columns).unwrap();
        let shuffle = Arc::new(Shuffle::group(&columns, &[0], vec![aggregate]));
        assert!(shuffle.takes_keys());
        let mut feed = Feed::of_mapper(&shuffle, 16 << 20, &Arc::new(AtomicBool::new(false)));
        let step = Step::Parts {
            at: 0,
            parts: parts.clone(),
        };
        let steps = [&[step], select].concat();
        let (fused, before) = Fused::of(&steps);
        let mut fused = fused.unwrap();
        assert!(before.is_empty());
        let mut found = BTreeMap::new();
        let mut pairs = |key: &[u8], value: &[u8]| {
            let count = take_count(&mut &value[..]).unwrap();
            *found.entry(key[8..].to_vec()).or_insert(0) += count;
        };
        let told = |(at, error): (usize, Error)| (at, error.cause.clone());
        if at_once {
            // There is room for one piece of a long text at a time.
            let fed = fused.feed_lines(lines, &mut feed, &|| true, &mut pairs);
            fed.map_err(told)?;
            while fused.is_held() {
                fused.go_on(&mut feed, &|| true, &mut pairs).unwrap();
            }
        } else {
            let mut from = 0;
            for line in lines.split_inclusive(|&byte| byte == b'\n') {
                let record = [Value::Bytes(without_end(line))];
                let fed = fused.feed(&record, &mut feed, &|| false, &mut pairs);
                fed.map_err(|error| told((from, error)))?;
                from += line.len();
            }
        }
        feed.end_some(&mut pairs);
        Ok(found)
    }

    /// How often each row of `count` words comes, by a plain model: rows of ASCII and of any other letters.
    fn rows_of(lines: &[u8], count: usize, lower: bool) -> BTreeMap<Vec<u8>, u64> {
        let mut wanted = BTreeMap::new();
        for line in std::str::from_utf8(lines).unwrap().split('\n') {
            let words = line.split(|letter: char| !letter.is_alphanumeric());
            let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
            for row in words.windows(count) {
                let row = row.join(" ");
                let row = if lower { row.to_lowercase() } else { row };
                *wanted.entry(row.into_bytes()).or_insert(0) += 1;
            }
        }
        wanted
    }

    /// Of one line the last words may stand at the border of a piece, with nothing but its end behind them.
    #[test]
    fn rows_of_words_end_with_their_lines() {
        let check = |lines: &[u8], number: usize, lower: bool, told: &str| {
            let rows = match lower {
                true => ngrams("key", number).lower(),
                false => ngrams("key", number),
            };
            let wanted = rows_of(lines, number, lower);
            for at_once in [true, false] {
                let found = counted(&rows, &[], lines, at_once).unwrap();
                assert!(found == wanted, "{told}, {number} words, {at_once}");
            }
            wanted.len()
        };
        for seed in 0..400 {
            let lines = text(seed);
            for (number, lower) in [(1, false), (2, true), (3, false), (7, true)] {
                check(&lines, number, lower, &format!("seed {seed}"));
            }
        }
        // So long that they are fed piece by piece, with many ends of lines in a piece and few.
        for between in [" ", "é ", ",\r\n", "\n\n", " \n "] {
            let mut lines = String::new();
            for word in 0..120_000_u64 {
                lines += &format!("w{}", word * word % 1009);
                lines += match word * word % 67 {
                    0 | 1 | 4 => between,
                    9 => "\n",
                    _ => " ",
                };
            }
            let rows = check(lines.as_bytes(), 3, false, &format!("{between:?}"));
            assert!(rows > 1000, "{rows}");
        }
        // Rows of so many words that each piece makes few of them.
        let long = format!("{}\n", "a bc ".repeat(1000)).repeat(3) + &"d ".repeat(1001);
        assert_eq!(check(long.as_bytes(), 900, false, "long rows"), 3);
        assert_eq!(check(long.as_bytes(), 3000, false, "too long rows"), 0);
    }

    #[test]
    fn several_lines_at_once_are_the_same_as_one_by_one() {
        let names = ["a", "b", "c"].map(|name| Column::new(name, Type::String));
        for seed in 0..400 {
            let lines = text(seed);
            for lower in [false, true] {
                let words = match lower {
                    true => words("key").lower(),
                    false => words("key"),
                };
                let all = [true, false].map(|at_once| counted(&words, &[], &lines, at_once));
                assert_eq!(all[0], all[1], "seed {seed}");
            }
            for (by, wanted) in [("\t", 3), ("\t", 2), (" ", 3), ("\r", 1), ("\t\t", 1)] {
                let fields = fields("key", by, names[..wanted].to_vec());
                for number in 0..wanted {
                    let select = [Step::Select(vec![number])];
                    let all =
                        [true, false].map(|at_once| counted(&fields, &select, &lines, at_once));
                    assert_eq!(all[0], all[1], "seed {seed}, {by:?}, field {number}");
                }
            }
        }
    }
}
