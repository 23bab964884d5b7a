//! Rows that are in order to one row in order: sorted inputs, and runs that were made of some.
//!
//! In come the pieces of all rows, out go their records one by one, in order, equal keys in the order of rows. One
//! thread does it, with the tree of losers: a record is looked at when its row moves on to it, against the one before
//! it, which tells its code and proves the row's order at once.

use std::cmp::Ordering;
use std::ops::Range;

use crate::bad::newlines;
use crate::error::{Error, Result};
use crate::losers::{Code, Losers, Rows};
use crate::metrics::{Meter, Stage, State};
use crate::order::Order;
use crate::queue::Stop;
use crate::rows::{Piece, RowQueues};
use crate::stage::kernel;

/// What the merge works with.
pub struct RowMerge<'a> {
    /// Format and key.
    pub order: &'a Order,
    /// Where pieces come from.
    pub queues: &'a RowQueues,
    /// Ends the job.
    pub stop: &'a Stop,
    /// The error of a row that is not in order; `None` where such rows are merged as they are.
    pub unsorted: Option<&'a dyn Fn(Late) -> Error>,
}

/// A record that belongs before the one in front of it.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    /// Its row.
    pub row: usize,
    /// Where in the row's input it begins.
    pub offset: u64,
    /// Its number in the row, from 1.
    pub number: u64,
    /// The line at which it begins, from 1; only of records of columns, each of which may have several.
    pub line: u64,
    /// The input was compressed.
    pub is_unpacked: bool,
}

/// How a record follows the one that came out before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Follows {
    /// Its key is greater, or it is the first.
    Later,
    /// Its key is the same.
    Repeat,
    /// Its key is less: a row was not in order.
    Break,
}

/// Hands the records of all rows to `visit`: always the least of those that rows go on with, of equal ones that of the
/// first row; in order, where rows are.
///
/// # Errors
/// The first record that is out of order, unless that is allowed; what `visit` answers; the job's, when it is ending.
pub fn merge_rows(
    merge: &RowMerge<'_>,
    meter: &mut Meter<'_>,
    mut visit: impl FnMut(&[u8], Follows, &mut Meter<'_>) -> Result<()>,
) -> Result<()> {
    let order = merge.order;
    let row_count = merge.queues.row_count();
    let mut last = Vec::new();
    let mut cursors = Vec::with_capacity(row_count);
    for row in 0..row_count {
        let mut cursor = Cursor {
            row,
            piece: None,
            record: 0..0,
            number: 0,
        };
        cursor.advance(merge, &mut last, meter)?;
        cursors.push(cursor);
    }
    let mut codes: Vec<Code> = cursors.iter().map(|cursor| cursor.first(order)).collect();
    let mut view = View { order, cursors };
    let mut tree = Losers::new(&mut view, &codes)?;
    let mut follows = Follows::Later;
    while let Some(winner) = tree.winner() {
        let cursor = &mut view.cursors[winner];
        visit(cursor.bytes(), follows, meter)?;
        follows = match cursor.advance(merge, &mut last, meter)? {
            Some(code) => {
                tree.replay(&mut view, code)?;
                match tree.is_repeat() {
                    true => Follows::Repeat,
                    false => Follows::Later,
                }
            }
            None => {
                // All codes are relative to the record that came out last, which this one belongs before.
                codes.clear();
                codes.extend(view.cursors.iter().map(|cursor| cursor.first(order)));
                tree.start(&mut view, &codes)?;
                Follows::Break
            }
        };
    }
    meter.lap(Stage::Merge, State::Work);
    Ok(())
}

/// Where the merge stands in one row.
struct Cursor {
    row: usize,
    piece: Option<Piece>,
    /// The current record in the piece's buffer; nothing before the first.
    record: Range<usize>,
    /// How many records there were up to it.
    number: u64,
}

impl Cursor {
    fn bytes(&self) -> &[u8] {
        let piece = self.piece.as_ref().expect("a record is current");
        &piece.buffer[self.record.clone()]
    }

    /// The current record's code relative to nothing.
    fn first(&self, order: &Order) -> Code {
        match self.piece {
            Some(_) => Code::first(order, self.bytes()),
            None => Code::END,
        }
    }

    /// Goes on to the next record. Its code is relative to the one before, which `last` keeps where that one's piece
    /// goes away; `None` if it belongs before that, and may.
    #[inline]
    fn advance(
        &mut self,
        merge: &RowMerge<'_>,
        last: &mut Vec<u8>,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Code>> {
        let before = self.record.clone();
        let code = match &self.piece {
            Some(piece) if before.end < piece.records.end => {
                let bytes = &piece.buffer[..piece.records.end];
                let end = before.end + merge.order.record_bytes(&bytes[before.end..]);
                // This row's turn comes again when those of others have taken their way through the cache.
                kernel::prefetch(bytes, end, end - before.end);
                self.record = before.end..end;
                Code::after(
                    merge.order,
                    &bytes[before],
                    &bytes[self.record.clone()],
                    usize::MAX,
                )
            }
            _ => self.next_piece(merge, last, meter)?,
        };
        self.number += 1;
        match (code, merge.unsorted) {
            (None, Some(unsorted)) => Err(unsorted(self.late())),
            _ => Ok(code),
        }
    }

    fn next_piece(
        &mut self,
        merge: &RowMerge<'_>,
        last: &mut Vec<u8>,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Code>> {
        let is_first = self.piece.is_none();
        if !is_first {
            last.clear();
            last.extend_from_slice(self.bytes());
        }
        meter.lap(Stage::Merge, State::Work);
        self.piece = merge.queues.next(self.row, self.piece.take());
        meter.lap(Stage::Merge, State::Input);
        merge.stop.check()?;
        let Some(piece) = &self.piece else {
            return Ok(Some(Code::END));
        };
        let from = piece.records.start;
        let bytes = &piece.buffer[..piece.records.end];
        self.record = from..from + merge.order.record_bytes(&bytes[from..]);
        let record = &bytes[self.record.clone()];
        Ok(match is_first {
            true => Some(Code::first(merge.order, record)),
            false => Code::after(merge.order, last, record, usize::MAX),
        })
    }

    #[cold]
    fn late(&self) -> Late {
        let piece = self.piece.as_ref().expect("a record is current");
        let before = &piece.buffer[piece.records.start..self.record.start];
        Late {
            row: self.row,
            offset: piece.offset + before.len() as u64,
            number: self.number,
            line: piece.line + newlines(before),
            is_unpacked: piece.is_unpacked,
        }
    }
}

/// The rows, as the tree sees them.
struct View<'a> {
    order: &'a Order,
    cursors: Vec<Cursor>,
}

impl Rows for View<'_> {
    fn order(&self) -> &Order {
        self.order
    }

    fn record(&self, row: usize) -> &[u8] {
        self.cursors[row].bytes()
    }

    fn place(&self, _row: usize) -> u64 {
        0
    }

    fn words_max(&self) -> usize {
        usize::MAX
    }

    fn settle(&mut self, one: usize, other: usize) -> Result<Ordering> {
        Ok(self.order.compare(self.record(one), self.record(other)))
    }
}
