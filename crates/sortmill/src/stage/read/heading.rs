//! The first lines of each input, which are no records: those of the first input that has any are kept, and the others'
//! passed over.

use super::{DOING, Run};
use crate::chunks::Assignment;
use crate::error::{Error, ErrorKind, Result};
use crate::text;

/// What is kept may be so long: it is held in memory until it is written.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// How much of an input's heading is still to come.
#[derive(Default)]
pub(super) struct Heading {
    lines_left: u64,
}

impl Run<'_, '_, '_> {
    /// Takes what `bytes`, which are next of the chunk, have of their input's heading. Answers how many those are.
    pub(super) fn take_heading(&mut self, bytes: &[u8], assignment: &Assignment) -> Result<usize> {
        if assignment.offset == 0 {
            self.heading.lines_left = self.reader.header_lines;
        }
        let delimiter = self.reader.plan.order.delimiter();
        let mut end = 0;
        while self.heading.lines_left > 0 && end < bytes.len() {
            match memchr::memchr(delimiter, &bytes[end..]) {
                Some(at) => {
                    end += at + 1;
                    self.heading.lines_left -= 1;
                }
                None => end = bytes.len(),
            }
        }
        self.totals.header_bytes += end as u64;
        self.keep_heading(&bytes[..end], assignment)?;
        Ok(end)
    }

    fn keep_heading(&mut self, part: &[u8], assignment: &Assignment) -> Result<()> {
        let delimiter = self.reader.plan.order.delimiter();
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
