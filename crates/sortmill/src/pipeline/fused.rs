//! The last steps of a mapper and what keeps its groups, as one loop: calls that are known beforehand take far less time than
//! those of any step and any record.
//!
//! In comes a record behind all other steps, and the feed that it would have gone to; into that go its keys. Text is cut where it
//! lies, or in scratch space of the worker's own.

use super::column::{Column, Value};
use super::combine::PairSink;
use super::letters::WordFinder;
use super::shuffle::Feed;
use super::verbs::{How, Parts, Step, each_part};
use crate::error::Result;

/// Steps that make one column of text out of column `at`, of which every value is a key.
pub(super) struct Fused {
    at: usize,
    parts: Parts,
    made: Made,
}

enum Made {
    Words {
        lower: bool,
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
        };
        (Some(fused), front)
    }

    /// Feeds each key of `record` to `feed`, which takes keys as such ([`Feed::takes_keys`]).
    ///
    /// # Errors
    /// Those of the steps.
    pub fn feed(
        &mut self,
        record: &[Value<'_>],
        feed: &mut Feed,
        pairs: PairSink<'_>,
    ) -> Result<()> {
        let text = match record[self.at] {
            Value::Null => return self.parts.of_null(),
            value => value.bytes(),
        };
        match &mut self.made {
            Made::Words { lower, finder } => match finder.ascii(text, *lower) {
                Some(text) => text.each_word(|word| {
                    feed.add_word(text, word, pairs);
                    Ok(())
                }),
                None => finder.each_of_any(text, *lower, |word| {
                    feed.add(&[Value::Bytes(word)], pairs);
                    Ok(())
                }),
            },
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
