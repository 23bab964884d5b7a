//! Lines to pairs, many at once, where nothing stands between them and what brings them together, or nothing but to cut them into
//! fields: one loop, as what keeps groups has it (`fused.rs`).
//!
//! A record borrows the lines; what a feed makes of it goes out at once.

use std::ops::Range;

use super::cells::without_end;
use super::column::{Value, row};
use super::combine::PairSink;
use super::draw::Place;
use super::parts::{How, Parts};
use super::shuffle::Feed;
use super::verbs::Step;
use crate::error::Error;
use crate::stage::kernel::{LOOKED_BYTES, equals, find_end};

/// A line has at most so many fields.
const FIELDS_MAX: usize = 8;

/// What lines become.
pub(super) struct LineRows {
    /// What ends their fields, and what these are; without it a line is a record of one column.
    fields: Option<(u8, Parts)>,
    /// The numbers of those that are wanted; else all of them.
    select: Option<Vec<usize>>,
}

impl LineRows {
    /// What the `steps` of lines make of them, if it is that.
    pub fn of(steps: &[Step]) -> Option<Self> {
        let (parts, select) = match steps {
            [] => {
                return Some(Self {
                    fields: None,
                    select: None,
                });
            }
            [Step::Parts { parts, .. }] => (parts, None),
            [Step::Parts { parts, .. }, Step::Select(of)] => (parts, Some(of.clone())),
            _ => return None,
        };
        match &parts.how {
            How::Fields { by } if parts.made.len() <= FIELDS_MAX && ends_no_line(by) => {
                Some(Self {
                    fields: Some((by[0], parts.clone())),
                    select,
                })
            }
            _ => None,
        }
    }

    /// Feeds `lines`, which lie back to back from `place` on, to `feed`.
    ///
    /// # Errors
    /// Those of the fields, with where the line begins that they are about.
    pub fn feed(
        &self,
        lines: &[u8],
        (input, offset): Place,
        feed: &mut Feed,
        pairs: PairSink<'_>,
    ) -> Result<(), (usize, Error)> {
        let Some((by, parts)) = &self.fields else {
            let mut from = 0;
            while from < lines.len() {
                let end = find_end(b'\n', &lines[from..]);
                let until = end.map_or(lines.len(), |end| from + end + 1);
                feed.at((input, offset.wrapping_add(from as u64)));
                feed.add(&[Value::Bytes(without_end(&lines[from..until]))], pairs);
                from = until;
            }
            return Ok(());
        };
        let mut fields = [Value::Null; FIELDS_MAX];
        each_field(lines, *by, |line, number, range, is_last| {
            if let Some(column) = parts.made.get(number) {
                let text = &lines[range];
                fields[number] = match column.kind.is_bytes() && !column.nullable {
                    true => Value::Bytes(text),
                    false => column.read(text).map_err(|error| (line, error))?,
                };
            }
            if !is_last {
                return Ok(());
            }
            let checked = parts.check_count(number + 1);
            checked.map_err(|error| (line, error))?;
            feed.at((input, offset.wrapping_add(line as u64)));
            let fields = &fields[..=number];
            let mut add = |record: &[Value<'_>]| {
                feed.add(record, pairs);
                Ok(())
            };
            let added = match &self.select {
                None => add(fields),
                Some(of) => row(of.len(), |at| Ok(fields[of[at]]), add),
            };
            added.map_err(|error| (line, error))
        })
    }
}

/// Whether it is one byte that is no part of the end of a line.
pub(super) fn ends_no_line(by: &[u8]) -> bool {
    by.len() == 1 && !matches!(by[0], b'\r' | b'\n')
}

/// Hands each field of `lines` to `see`: where its line begins, the field's number there, where it lies, and whether it is the
/// line's last. Ends of fields and lines are found for 64 bytes at once.
#[inline(always)]
pub(super) fn each_field<E>(
    lines: &[u8],
    by: u8,
    mut see: impl FnMut(usize, usize, Range<usize>, bool) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let (mut line, mut from, mut number) = (0, 0, 0);
    let mut end_field = |at: usize, ends_line: bool| {
        // Of the end of the line `\r` may be a part.
        let is_long = ends_line && at > from && lines[at - 1] == b'\r';
        let seen = see(line, number, from..at - usize::from(is_long), ends_line);
        from = at + 1;
        match ends_line {
            true => (line, number) = (from, 0),
            false => number += 1,
        }
        seen
    };
    let (parts, rest) = lines.as_chunks::<LOOKED_BYTES>();
    for (part, begin) in parts.iter().zip((0..).step_by(LOOKED_BYTES)) {
        let mut ends = equals(part, by) | equals(part, b'\n');
        while ends != 0 {
            let at = begin + ends.trailing_zeros() as usize;
            end_field(at, lines[at] == b'\n')?;
            ends &= ends - 1;
        }
    }
    let begin = lines.len() - rest.len();
    for at in memchr::memchr2_iter(by, b'\n', rest) {
        end_field(begin + at, rest[at] == b'\n')?;
    }
    match lines.last() {
        None | Some(b'\n') => Ok(()),
        Some(_) => end_field(lines.len(), true),
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use std::cell::Cell;

    use sortmill_io::sync::Arc;

    use super::*;
    use crate::pipeline::column::{Column, Type};
    use crate::pipeline::fields;
    use crate::pipeline::key::OrderColumn;
    use crate::pipeline::shuffle::Shuffle;
    use crate::pipeline::verbs::{Going, Steps};

    type Fed = Result<Vec<(Vec<u8>, Vec<u8>)>, (usize, String)>;

    /// The pairs that lines become, all at once or one by one, or where one is wrong.
    fn fed(steps: &[Step], columns: &[Column], lines: &[u8], at_once: bool) -> Fed {
        let by: Vec<OrderColumn> = (0..columns.len().min(2)).map(OrderColumn::up).collect();
        let mut feed = Feed::new(&Arc::new(Shuffle::sort(columns, &by)), 0);
        let mut found = Vec::new();
        let mut pairs = |key: &[u8], value: &[u8]| found.push((key.to_vec(), value.to_vec()));
        let told = |(at, error): (usize, Error)| (at, error.cause.clone());
        if at_once {
            let rows = LineRows::of(steps).unwrap();
            rows.feed(lines, (0, 0), &mut feed, &mut pairs)
                .map_err(told)?;
            return Ok(found);
        }
        let (mut steps, mut from) = (Steps::new(steps), 0);
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            let (sunk, blamed) = (Cell::new(0), Cell::new(None));
            let record = [Value::Bytes(without_end(line))];
            let done = steps.go(Going::of_no_place(&sunk, &blamed), &record, &mut |record| {
                feed.add(record, &mut pairs);
                Ok(())
            });
            done.map_err(|error| told((from, error)))?;
            from += line.len();
        }
        Ok(found)
    }

    #[test]
    fn lines_at_once_become_the_pairs_of_lines_one_by_one() {
        let kinds = [Type::String, Type::I64, Type::String, Type::U64];
        let made = |count: usize| -> Vec<Column> {
            let column = |at: usize| Column::new(format!("c{at}"), kinds[at]).or_null_if(at == 1);
            (0..count).map(column).collect()
        };
        let mut state = 3_u64;
        let mut next = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        let mut wrong = 0;
        for round in 0..600 {
            let count = 1 + round % kinds.len();
            let mut lines = Vec::new();
            for _ in 0..next(20) {
                for (at, kind) in kinds[..count].iter().enumerate() {
                    if at > 0 {
                        lines.push(b'\t');
                    }
                    match kind {
                        Type::String => {
                            let below = if next(9) == 0 { 100 } else { 20 };
                            let length = next(below);
                            lines.extend((0..length).map(|_| b"ab\r\0z"[next(5) as usize]));
                        }
                        Type::I64 if next(4) == 0 => {}
                        _ => {
                            let digits = next(8);
                            lines.extend(next(1 << (4 * digits)).to_string().bytes());
                        }
                    }
                }
                // Now and then there is one field too many.
                lines.extend_from_slice(if next(60) == 0 { b"\t\n" } else { b"\n" });
                if next(4) == 0 {
                    let end = lines.len() - 1;
                    lines.insert(end, b'\r');
                }
            }
            if next(3) == 0 {
                lines.pop();
            }
            let parts = Step::Parts {
                at: 0,
                parts: fields("line", "\t", made(count)),
            };
            let reversed: Vec<usize> = (0..count).rev().collect();
            let columns = made(count);
            let turned: Vec<Column> = reversed.iter().map(|&at| columns[at].clone()).collect();
            let line = [Column::new("line", Type::String)];
            for (steps, columns) in [
                (vec![], &line[..]),
                (vec![parts.clone()], &columns),
                (vec![parts, Step::Select(reversed)], &turned),
            ] {
                let both = [true, false].map(|at_once| fed(&steps, columns, &lines, at_once));
                assert_eq!(both[0], both[1], "round {round}: {lines:?}");
                wrong += usize::from(both[0].is_err());
            }
        }
        assert!(wrong > 10);
    }
}
