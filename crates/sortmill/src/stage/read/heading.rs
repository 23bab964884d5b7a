//! The first lines of each input, which are no records: those of the first input that has any are kept, and the others'
//! passed over.

use std::path::Path;

use super::{DOING, Run, Source};
use crate::bad::newlines;
use crate::chunks::{Assignment, Extent};
use crate::columns::{BYTE_ORDER_MARK, HEADER_ENDS_BYTES, bare_header};
use crate::error::{Error, ErrorKind, Result};
use crate::order::{Begun, Order};
use crate::text;

/// What is kept may be so long: it is held in memory until it is written.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// How much of an input's heading is still to come, and at which line what follows begins.
#[derive(Default)]
pub(super) struct Heading {
    lines_left: u64,
    /// The one that goes on in the next chunk.
    begun: Begun,
    /// What has come of a heading that has to be a known one.
    seen: Vec<u8>,
    /// The number of the line at which the next record begins, from 1; only where lines are counted.
    pub line: u64,
}

impl Heading {
    /// That of an input of which nothing has come.
    pub fn new(lines: u64) -> Self {
        Self {
            lines_left: lines,
            line: 1,
            ..Self::default()
        }
    }

    /// Whether none of it is to come any more.
    pub fn is_over(&self) -> bool {
        self.lines_left == 0
    }

    /// Takes what `bytes`, which come next, have of it. Answers how many those are.
    pub fn take(&mut self, order: &Order, bytes: &[u8]) -> usize {
        let mut end = 0;
        while self.lines_left > 0 && end < bytes.len() {
            let rest = &bytes[end..];
            match order.first_end(rest, &self.begun) {
                Some(length) => {
                    end += length;
                    self.lines_left -= 1;
                    self.begun = Begun::default();
                }
                None => {
                    order.see(&mut self.begun, rest);
                    end = bytes.len();
                }
            }
        }
        end
    }

    /// Holds what has been taken, of which `part` is the last, against `expected`, what it must be; `is_last`: the input
    /// at `path` ends there.
    pub fn compare(
        &mut self,
        part: &[u8],
        expected: &[u8],
        is_last: bool,
        path: &Path,
    ) -> Result<()> {
        // One byte more than there may be shows that it is another one.
        let room = expected.len() + HEADER_ENDS_BYTES + 1 - self.seen.len();
        self.seen.extend_from_slice(&part[..part.len().min(room)]);
        let is_over = self.is_over() || is_last || part.len() >= room;
        if !is_over || self.seen.is_empty() || bare_header(&self.seen) == expected {
            return Ok(());
        }
        let cause = "its header is not that of the first input";
        let error = Error::new(ErrorKind::Input, DOING, cause)
            .at(path)
            .offset(0);
        Err(error.hint("Files that are sorted together have the same columns in the same order."))
    }
}

/// The heading that stays at the top: that of the first input that has any. In which order inputs are read is not known, so
/// one that is too long is an error when no earlier one can come any more.
#[derive(Clone, Default, Debug)]
pub struct Kept {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Which input that is, of those that were seen.
    input: Option<usize>,
    /// Why it cannot be kept.
    too_long: Option<Error>,
}

impl Kept {
    /// Sees `part` of the heading of input number `input` of `sources`; `lacks_end`: that input ends with it, within its
    /// heading.
    pub(super) fn see(
        &mut self,
        part: &[u8],
        (sources, input): (&[Source], usize),
        lacks_end: bool,
        delimiter: u8,
    ) -> Result<()> {
        let is_earlier = self.input.is_none_or(|kept| input < kept);
        if !part.is_empty() && is_earlier {
            *self = Self {
                input: Some(input),
                ..Self::default()
            };
        }
        if self.input != Some(input) || self.too_long.is_some() {
            return Ok(());
        }
        if self.bytes.len() + part.len() > KEPT_BYTES_MAX {
            let most = text::bytes(KEPT_BYTES_MAX as u64);
            let cause = format!("the lines that are to stay at the top are longer than {most}");
            let error = Error::new(ErrorKind::Input, DOING, cause);
            self.too_long = Some(error.at(&sources[input].file.path).offset(0));
            self.bytes = Vec::new();
            let may_have_any = |source: &Source| source.extent() != Extent::File(0);
            return match sources[..input].iter().any(may_have_any) {
                true => Ok(()),
                false => self.check(),
            };
        }
        self.bytes.extend_from_slice(part);
        // An input that ends in the middle of its heading, where the bytes before held the last of it.
        if lacks_end && self.bytes.last().is_some_and(|&byte| byte != delimiter) {
            self.bytes.push(delimiter);
        }
        Ok(())
    }

    /// Looks whether it could be kept. All inputs have been seen.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] where it is too long.
    pub fn check(&self) -> Result<()> {
        self.too_long.clone().map_or(Ok(()), Err)
    }
}

/// How many bytes of what an input begins with are a byte order mark.
pub(super) fn mark_bytes(bytes: &[u8]) -> usize {
    match bytes.starts_with(BYTE_ORDER_MARK) {
        true => BYTE_ORDER_MARK.len(),
        false => 0,
    }
}

impl Run<'_, '_, '_> {
    /// Passes over the byte order mark that an input of JSON may begin with; one of columns with names goes with its
    /// header. Answers how many bytes that is.
    pub(super) fn pass_mark(&mut self, bytes: &[u8], assignment: &Assignment) -> usize {
        if assignment.offset > 0 || !self.reader.plan.input_order().is_json() {
            return 0;
        }
        let mark = mark_bytes(bytes);
        self.totals.header_bytes += mark as u64;
        mark
    }

    /// Takes what `bytes`, which are next of the chunk, have of their input's heading. Answers how many those are.
    pub(super) fn take_heading(&mut self, bytes: &[u8], assignment: &Assignment) -> Result<usize> {
        let order = self.reader.plan.input_order();
        let heading = &mut self.heading;
        let was_over = heading.is_over();
        let end = heading.take(order, bytes);
        if self.reader.counts_lines {
            heading.line += newlines(&bytes[..end]);
        }
        self.totals.header_bytes += end as u64;
        let part = &bytes[..end];
        let path = &*self.reader.sources[assignment.input].file.path;
        if let (false, Some(expected)) = (was_over, self.reader.header) {
            heading.compare(part, expected, assignment.last, path)?;
        }
        let lacks_end = assignment.last && !heading.is_over();
        let from = (self.reader.sources, assignment.input);
        let kept = &mut self.totals.header;
        kept.see(part, from, lacks_end, order.delimiter())?;
        Ok(end)
    }
}
