//! The first lines of each input, which are no records: those of the first input that has any are kept, and the others'
//! passed over.

use super::{DOING, Run};
use crate::bad::newlines;
use crate::chunks::Assignment;
use crate::columns::{HEADER_ENDS_BYTES, bare_header};
use crate::error::{Error, ErrorKind, Result};
use crate::order::Begun;
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
}

impl Run<'_, '_, '_> {
    /// Takes what `bytes`, which are next of the chunk, have of their input's heading. Answers how many those are.
    pub(super) fn take_heading(&mut self, bytes: &[u8], assignment: &Assignment) -> Result<usize> {
        let order = self.reader.plan.input_order();
        let heading = &mut self.heading;
        let was_over = heading.lines_left == 0;
        let mut end = 0;
        while heading.lines_left > 0 && end < bytes.len() {
            let rest = &bytes[end..];
            match order.first_end(rest, &heading.begun) {
                Some(length) => {
                    end += length;
                    heading.lines_left -= 1;
                    heading.begun = Begun::default();
                }
                None => {
                    order.see(&mut heading.begun, rest);
                    end = bytes.len();
                }
            }
        }
        if self.reader.counts_lines {
            heading.line += newlines(&bytes[..end]);
        }
        self.totals.header_bytes += end as u64;
        if !was_over {
            self.compare_heading(&bytes[..end], assignment)?;
        }
        self.keep_heading(&bytes[..end], assignment)?;
        Ok(end)
    }

    /// Holds the heading of an input, of which `part` has come, against the one that it must be.
    fn compare_heading(&mut self, part: &[u8], assignment: &Assignment) -> Result<()> {
        let Some(expected) = self.reader.header else {
            return Ok(());
        };
        let heading = &mut self.heading;
        // One byte more than there may be shows that it is another one.
        let room = expected.len() + HEADER_ENDS_BYTES + 1 - heading.seen.len();
        heading
            .seen
            .extend_from_slice(&part[..part.len().min(room)]);
        let is_over = heading.lines_left == 0 || assignment.last || part.len() >= room;
        if !is_over || heading.seen.is_empty() || bare_header(&heading.seen) == expected {
            return Ok(());
        }
        let path = &self.reader.sources[assignment.input].file.path;
        let cause = "its header is not that of the first input";
        let error = Error::new(ErrorKind::Input, DOING, cause)
            .at(path)
            .offset(0);
        Err(error.hint("Files that are sorted together have the same columns in the same order."))
    }

    fn keep_heading(&mut self, part: &[u8], assignment: &Assignment) -> Result<()> {
        let delimiter = self.reader.plan.input_order().delimiter();
        let kept = &mut self.totals.header;
        let is_earlier = kept.is_empty() || assignment.input < self.totals.header_input;
        if !part.is_empty() && is_earlier {
            kept.clear();
            self.totals.header_input = assignment.input;
        }
        if assignment.input != self.totals.header_input {
            return Ok(());
        }
        if kept.len() + part.len() > KEPT_BYTES_MAX {
            let most = text::bytes(KEPT_BYTES_MAX as u64);
            let cause = format!("the lines that are to stay at the top are longer than {most}");
            let path = &self.reader.sources[assignment.input].file.path;
            return Err(Error::new(ErrorKind::Input, DOING, cause).at(path));
        }
        kept.extend_from_slice(part);
        // An input that ends in the middle of its heading, where the chunk before held the last of its bytes.
        if assignment.last
            && self.heading.lines_left > 0
            && kept.last().is_some_and(|&byte| byte != delimiter)
        {
            kept.push(delimiter);
        }
        Ok(())
    }
}
