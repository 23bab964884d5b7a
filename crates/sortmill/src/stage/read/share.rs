//! A share of the input: some chunks in a row, of which others read those before and behind.
//!
//! A record belongs to the chunk it ends in. So whoever reads a share begins with the record that goes on in its first
//! chunk, reads again what came before of it, and leaves out the one that goes on behind its last. Where that record
//! begins is arithmetic for fixed records, and the last newline before the share for lines. Of pairs nothing but all
//! pairs before tells it, so there the readers follow each other: each says where it has come to.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use sortmill_io::sync::Arc;
use sortmill_io::{Buffer, Op, OpKind, align_down, align_up};

use super::{DOING, Run};
use crate::chunks::Assignment;
use crate::error::{Error, Result};
use crate::order::{Begun, Format};

/// Which chunks to read, and whom to ask and to tell where pairs stand.
#[derive(Clone)]
pub struct Share<'a> {
    /// The chunks, by their numbers.
    pub chunks: Range<u64>,
    /// Waits for what the reader of the chunks before has left.
    pub before: &'a (dyn Fn() -> Result<Left> + Sync),
    /// Tells the reader of the chunks behind.
    pub after: &'a (dyn Fn(Left) -> Result<()> + Sync),
}

/// The record that goes on where a share ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Left {
    /// How much there is of it.
    pub begun: Begun,
    /// It is too long, and has been counted as such.
    pub skipping: bool,
}

/// Newlines are looked for in stretches of so many bytes, backwards.
const LOOK_BYTES: u64 = 64 << 10;

impl Run<'_, '_, '_> {
    /// Takes up the record that goes on in the first chunk of the share.
    pub(super) fn begin_share(&mut self) -> Result<()> {
        let Some(share) = &self.reader.share else {
            return Ok(());
        };
        let Some((input, offset)) = self.lanes[0]
            .assigned
            .position()
            .filter(|(_, offset)| *offset > 0)
        else {
            return Ok(());
        };
        let left = match self.reader.plan.order.format() {
            Format::Kv => (share.before)()?,
            // An empty share has no record to begin with.
            _ if share.chunks.is_empty() => return Ok(()),
            Format::Fixed(size) => Left {
                begun: Begun::with(offset % u64::from(size)),
                skipping: false,
            },
            Format::Lines => self.look_back(input, offset)?,
            Format::Quoted(_) => unreachable!("records of columns are read by one process"),
        };
        if left.skipping || self.lanes[0].assigned.is_empty() {
            self.lanes[0].joint.begun = left.begun;
            self.lanes[0].joint.skipping = left.skipping;
            return Ok(());
        }
        self.read_again(input, offset - left.begun.bytes, offset)
    }

    /// Tells the reader of the chunks behind where this one has come to.
    pub(super) fn end_share(&mut self) -> Result<()> {
        let left = Left {
            begun: self.lanes[0].joint.begun,
            skipping: self.lanes[0].joint.skipping,
        };
        match (&self.reader.share, self.reader.plan.order.format()) {
            (Some(share), Format::Kv) => (share.after)(left),
            _ => Ok(()),
        }
    }

    /// Looks for the last newline before `offset`, no further than the longest record goes.
    fn look_back(&mut self, input: usize, offset: u64) -> Result<Left> {
        let most = self.reader.plan.record_bytes_max as u64;
        let stretch = LOOK_BYTES.min(self.reader.plan.chunk_bytes as u64);
        let begun = |bytes: u64| Left {
            begun: Begun::with(bytes),
            skipping: bytes > most,
        };
        let delimiter = self.reader.plan.order.delimiter();
        let mut to = offset;
        while to > 0 && offset - to <= most {
            let from = to.saturating_sub(stretch);
            let buffer = self.read_part(input, from, to)?;
            let part = self.part(&buffer, from, to);
            if let Some(at) = memchr::memrchr(delimiter, part) {
                return Ok(begun(offset - (from + at as u64 + 1)));
            }
            to = from;
        }
        Ok(begun(offset - to))
    }

    /// Takes up the record that begins at `from`, as far as it goes before `to`.
    fn read_again(&mut self, input: usize, mut from: u64, to: u64) -> Result<()> {
        while from < to {
            let end = (align_down(from) + self.reader.plan.chunk_bytes as u64).min(to);
            let buffer = self.read_part(input, from, end)?;
            let before = Assignment {
                chunk: self.lanes[0].assigned.next_chunk().saturating_sub(1),
                input,
                offset: from,
                bytes: end - from,
                last: false,
            };
            let part = self.part(&buffer, from, end);
            // As when a chunk of the lane is handed on.
            std::mem::swap(&mut self.joint, &mut self.lanes[0].joint);
            let result = self.lengthen(part, &before);
            std::mem::swap(&mut self.joint, &mut self.lanes[0].joint);
            result?;
            from = end;
        }
        Ok(())
    }

    /// Reads bytes `from..to` of an input, which fit into a chunk.
    fn read_part(&mut self, input: usize, from: u64, to: u64) -> Result<Buffer> {
        let buffer = self.take_buffer(true)?.expect("waited until there was one");
        let file = Arc::clone(&self.reader.sources[input].file);
        let room = self.reader.plan.headroom_bytes;
        // Aligned at both ends: the file may be read directly.
        let (start, end) = (align_down(from), align_up(to));
        self.ring.submit(Op {
            kind: OpKind::Read,
            file,
            offset: start,
            buffer,
            range: room..room + (end - start) as usize,
            tag: 0,
        });
        let done = self.ring.complete(true).expect("a read is in flight");
        let path = &done.op.file.path;
        let moved = done
            .result
            .map_err(|error| Error::io(DOING, path, &error).offset(start))?;
        self.totals.device_bytes += moved as u64;
        if start + (moved as u64) < to {
            return Err(self.reader.sources[input].shortened(start + moved as u64));
        }
        Ok(done.op.buffer)
    }

    /// Those bytes in the buffer that [`Run::read_part`] answered.
    fn part<'b>(&self, buffer: &'b Buffer, from: u64, to: u64) -> &'b [u8] {
        let at = self.reader.plan.headroom_bytes + (from - align_down(from)) as usize;
        &buffer[at..at + (to - from) as usize]
    }
}
