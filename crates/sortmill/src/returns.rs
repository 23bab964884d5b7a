//! Lines that end in `\r\n`, of a job that wants them to end in a newline alone ([`crate::job::Job::drops_returns`]): what is too much
//! is taken out of a chunk where it lies, before records are cut.

use crate::batch::Chunk;
use crate::long::Long;

impl Chunk {
    /// Ends all of its lines in a newline alone; answers how many bytes that took off them.
    pub fn drop_returns(&mut self) -> u64 {
        let mut bytes = 0;
        let mut shorten = |lines: &mut [u8]| {
            let left = drop_returns(lines);
            bytes += (lines.len() - left) as u64;
            left
        };
        if let Some(Long::Whole(line)) = &mut self.long {
            line.rewrite(&mut shorten);
        }
        let (start, end) = (self.records.start, self.records.end);
        self.records.end = start + shorten(&mut self.buffer[start..end]);
        bytes
    }
}

/// Takes the `\r` of each line that ends in `\r\n` out of `lines`, whole ones, and answers how many bytes are left in front.
fn drop_returns(lines: &mut [u8]) -> usize {
    // What was looked at, what of it begins the next stretch, and where that goes.
    let (mut at, mut from, mut left) = (0, 0, 0);
    while let Some(found) = memchr::memchr(b'\r', &lines[at..]) {
        let until = at + found;
        at = until + 1;
        if lines.get(at) == Some(&b'\n') {
            lines.copy_within(from..until, left);
            (left, from) = (left + until - from, at);
        }
    }
    lines.copy_within(from.., left);
    left + lines.len() - from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_returns_in_front_of_newlines_are_dropped() {
        for text in [
            "",
            "\n",
            "\r\n",
            "a\r\nb\n\r\n\rc\r\r\nd\r",
            "a\nb\n",
            "\r\n\r\n",
        ] {
            let mut lines = text.as_bytes().to_vec();
            let left = drop_returns(&mut lines);
            assert_eq!(lines[..left], *text.replace("\r\n", "\n").as_bytes());
        }
    }
}
