//! Last steps of a mapper and what keeps its groups, as one loop: calls that are known beforehand take far less time than those of any
//! step and any record.

use super::column::{Column, Value};
use super::combine::PairSink;
use super::letters::Cutter;
use super::shuffle::Feed;
use super::verbs::{How, Parts, Step};
use crate::error::Result;

/// Steps that make keys of a column and nothing else.
pub(super) enum Keys {
    /// Words of column `at` are.
    Words {
        at: usize,
        lower: bool,
        cutter: Cutter,
    },
    /// The field of column `at` with this number is.
    Field {
        at: usize,
        by: u8,
        number: usize,
        parts: Parts,
    },
}

impl Keys {
    /// What the last of `steps` are, if they are such, and the steps in front of them.
    pub fn split(steps: &[Step]) -> (Option<Self>, &[Step]) {
        match steps {
            [
                front @ ..,
                Step::Parts {
                    at,
                    parts:
                        Parts {
                            how: How::Words { lower },
                            ..
                        },
                },
            ] => {
                let words = Self::Words {
                    at: *at,
                    lower: *lower,
                    cutter: Cutter::default(),
                };
                (Some(words), front)
            }
            [front @ .., Step::Parts { at, parts }, Step::Select(of)] => {
                let is_text = |column: &Column| column.kind.is_bytes() && !column.nullable;
                match (&parts.how, &of[..]) {
                    (How::Fields { by }, &[number])
                        if by.len() == 1 && parts.made.iter().all(is_text) =>
                    {
                        let field = Self::Field {
                            at: *at,
                            by: by[0],
                            number,
                            parts: parts.clone(),
                        };
                        (Some(field), front)
                    }
                    _ => (None, steps),
                }
            }
            _ => (None, steps),
        }
    }

    /// Feeds each key of `record`.
    pub fn feed(
        &mut self,
        record: &[Value<'_>],
        feed: &mut Feed,
        pairs: PairSink<'_>,
    ) -> Result<()> {
        match self {
            Self::Words { at, lower, cutter } => {
                let text = match record[*at] {
                    Value::Null => return Ok(()),
                    value => value.bytes(),
                };
                match cutter.ascii(text, *lower) {
                    Some(text) => text.each_word(|word| {
                        feed.add_word(text, word, pairs);
                        Ok(())
                    }),
                    None => cutter.each(text, *lower, |word| {
                        feed.add(&[Value::Bytes(word)], pairs);
                        Ok(())
                    }),
                }
            }
            Self::Field {
                at,
                by,
                number,
                parts,
            } => {
                let text = match record[*at] {
                    Value::Null => return parts.of_null(),
                    value => value.bytes(),
                };
                let (mut field, mut count, mut from) = (&text[..0], 0, 0);
                for end in memchr::memchr_iter(*by, text).chain([text.len()]) {
                    if count == *number {
                        field = &text[from..end];
                    }
                    (count, from) = (count + 1, end + 1);
                }
                parts.check_count(count)?;
                feed.add(&[Value::Bytes(field)], pairs);
                Ok(())
            }
        }
    }
}
