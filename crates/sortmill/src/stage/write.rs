//! Sorted records to the output: aligned buffers at offsets, or a stream in order.
//!
//! Each 4 KiB block of the output has one writer. A unit's output begins and ends anywhere; the blocks it
//! shares with its neighbours are kept in memory, and whoever brings the last missing byte of one writes
//! it. The end of the file is padded to whole blocks and cut off when everything has been written. An output
//! in several files is several of these; `write/parts.rs` keeps few of them open.

mod parts;

use std::collections::HashMap;
use std::ops::Range;

use sortmill_io::sync::{Arc, Mutex, lock};
use sortmill_io::{ALIGN_BYTES, Buffer, File, Op, OpKind, Os, Pool, Ring, align_down, align_up};

use crate::error::{Error, ErrorKind, Result};
use crate::framing::Framed;
use crate::metrics::{Meter, Stage, State};
use crate::passing::first_pair;
use crate::queue::{Queue, Stop};

pub use parts::PartFiles;

/// A piece of the output on its way to the device.
pub struct OutBlock {
    /// The memory.
    pub buffer: Buffer,
    /// Which part of it.
    pub range: std::ops::Range<usize>,
    /// The file, where there are several.
    pub part: u64,
    /// Where in the file; for a stream, what was written before.
    pub offset: u64,
    /// Bytes that the file will have at least; 0 where nobody knows.
    pub reserve_bytes: u64,
}

/// Blocks of the output that more than one unit writes to.
#[derive(Default)]
pub struct Seams {
    /// By the file and the offset of the block in it.
    blocks: Mutex<HashMap<(u64, u64), Seam>>,
}

struct Seam {
    bytes: Box<[u8]>,
    filled: usize,
    /// How many bytes of it belong to the file.
    wanted: usize,
}

impl Seams {
    /// Puts `bytes` at `offset`, all within one block, of a file of `total` bytes if that is known. Answers
    /// the block if that completes it.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] for more bytes than the file should have.
    fn put(
        &self,
        part: u64,
        offset: u64,
        bytes: &[u8],
        total: Option<u64>,
    ) -> Result<Option<Box<[u8]>>> {
        let start = align_down(offset);
        self.change(part, start, |seam| {
            let at = (offset - start) as usize;
            seam.bytes[at..at + bytes.len()].copy_from_slice(bytes);
            seam.filled += bytes.len();
            if let Some(total) = total {
                seam.wanted = total.saturating_sub(start).min(ALIGN_BYTES as u64) as usize;
            }
        })
    }

    /// Puts what was written before into the block at `offset` of the one file, of `total` bytes if that is known:
    /// `bytes`, from its beginning.
    ///
    /// # Errors
    /// As [`Seams::put`].
    pub fn begin(&self, offset: u64, bytes: &[u8], total: Option<u64>) -> Result<()> {
        let completed = self.put(0, offset, bytes, total)?;
        assert!(completed.is_none(), "there is more to come");
        Ok(())
    }

    /// The bytes of the one unfinished block of the one file, from the block's beginning on, if there is one: they
    /// come from the units of earlier rounds.
    pub fn unfinished(&self, offset: u64) -> Option<Box<[u8]>> {
        let seam = lock(&self.blocks).remove(&(0, align_down(offset)))?;
        Some(seam.bytes)
    }

    /// Says that file `part` has `total` bytes. Answers its last block if that completes it.
    ///
    /// # Errors
    /// As [`Seams::put`].
    fn end(&self, part: u64, total: u64) -> Result<Option<Box<[u8]>>> {
        let start = align_down(total);
        match (total - start) as usize {
            0 => Ok(None),
            wanted => self.change(part, start, |seam| seam.wanted = wanted),
        }
    }

    /// Takes what this process, which wrote `range` of the one file, put into blocks that others write to as well:
    /// the pieces, and where they belong.
    #[must_use]
    pub fn take_edges(&self, range: &Range<u64>) -> Vec<(u64, Vec<u8>)> {
        let left = std::mem::take(&mut *lock(&self.blocks)).into_iter();
        let mut edges: Vec<_> = left
            .map(|((_, start), seam)| {
                let from = start.max(range.start);
                let to = (start + ALIGN_BYTES as u64).min(range.end);
                let piece = (from - start) as usize..(to - start) as usize;
                assert_eq!(seam.filled, piece.len(), "a seam between units was left");
                (from, seam.bytes[piece].to_vec())
            })
            .collect();
        edges.sort_unstable();
        edges
    }

    fn change(
        &self,
        part: u64,
        start: u64,
        change: impl FnOnce(&mut Seam),
    ) -> Result<Option<Box<[u8]>>> {
        let mut blocks = lock(&self.blocks);
        let seam = blocks.entry((part, start)).or_insert_with(|| Seam {
            bytes: vec![0; ALIGN_BYTES].into_boxed_slice(),
            filled: 0,
            wanted: ALIGN_BYTES,
        });
        change(seam);
        if seam.filled > seam.wanted {
            let cause = "more bytes came out of the partitions than went in";
            return Err(Error::new(ErrorKind::Lost, DOING, cause));
        }
        if seam.filled < seam.wanted {
            return Ok(None);
        }
        Ok(blocks.remove(&(part, start)).map(|seam| seam.bytes))
    }
}

/// What all sinks of a job share.
pub struct Output<'a> {
    /// Memory for output.
    pub pool: &'a Pool,
    /// Where full buffers go.
    pub blocks: &'a Queue<OutBlock>,
    /// Blocks between units.
    pub seams: &'a Seams,
    /// Bytes of the whole output, where they are known before it is written and it is one file.
    pub total: Option<u64>,
    /// Files end where their bytes do, and each of several has a buffer of its own at least: what comes here is still to be
    /// compressed. Otherwise the end of a file is padded to a whole block.
    pub ends_exactly: bool,
    /// Who fills buffers: what is waited for counts as that stage's.
    pub stage: Stage,
    /// Ends the job.
    pub stop: &'a Stop,
}

impl Output<'_> {
    /// Says that file `part` of several has `total` bytes, all of which have been given to a sink or will be.
    ///
    /// # Errors
    /// The job's, when it is ending.
    pub fn end_part(&self, part: u64, total: u64, meter: &mut Meter<'_>) -> Result<()> {
        match self.seams.end(part, total)? {
            Some(block) => self.send_seam(&block, part, align_down(total), meter),
            None => Ok(()),
        }
    }

    fn take_buffer(&self, meter: &mut Meter<'_>) -> Result<Buffer> {
        if let Some(buffer) = self.pool.try_take() {
            return Ok(buffer);
        }
        meter.lap(self.stage, State::Work);
        let buffer = self.pool.take();
        meter.lap(self.stage, State::Memory);
        buffer.ok_or_else(|| self.stop.error())
    }

    fn send_seam(&self, block: &[u8], part: u64, offset: u64, meter: &mut Meter<'_>) -> Result<()> {
        let mut buffer = self.take_buffer(meter)?;
        buffer[..ALIGN_BYTES].copy_from_slice(block);
        let block = OutBlock {
            buffer,
            range: 0..ALIGN_BYTES,
            part,
            offset,
            reserve_bytes: 0,
        };
        self.send(block, meter)
    }

    /// Hands a block to the writer.
    fn send(&self, block: OutBlock, meter: &mut Meter<'_>) -> Result<()> {
        meter.lap(self.stage, State::Work);
        let sent = self.blocks.push(block);
        meter.lap(self.stage, State::Output);
        sent.map_err(|_| self.stop.error())
    }
}

/// Takes the output of one unit, or of all of them one after the other, from a given offset of a file on.
pub struct Sink<'a> {
    output: &'a Output<'a>,
    part: u64,
    reserve_bytes: u64,
    /// The buffer being filled; its first byte belongs at an aligned offset.
    buffer: Option<Buffer>,
    /// Where that first byte belongs.
    start: u64,
    /// Where this sink's bytes begin and end in the buffer.
    begin: usize,
    end: usize,
    /// What gathers records into pieces, if they come out so.
    framed: Option<Box<Framed>>,
    /// Bytes taken before its file began.
    bytes_before: u64,
    /// Bytes taken.
    pub bytes: u64,
    /// Records taken.
    pub records: u64,
}

impl<'a> Sink<'a> {
    /// A sink whose first byte belongs at `offset`.
    #[must_use]
    pub fn new(output: &'a Output<'a>, offset: u64) -> Self {
        Self::in_part(output, 0, offset, 0)
    }

    /// A sink whose first byte belongs at `offset` of file `part`, which will have at least `reserve_bytes`.
    #[must_use]
    pub fn in_part(output: &'a Output<'a>, part: u64, offset: u64, reserve_bytes: u64) -> Self {
        let begin = (offset - align_down(offset)) as usize;
        Self {
            output,
            part,
            reserve_bytes,
            buffer: None,
            start: align_down(offset),
            begin,
            end: begin,
            framed: None,
            bytes_before: 0,
            bytes: 0,
            records: 0,
        }
    }

    /// Of a file that this sink alone fills, from its beginning: that was all of it.
    ///
    /// # Errors
    /// The job's, when it is ending.
    pub fn end_part(&mut self, meter: &mut Meter<'_>) -> Result<()> {
        if !self.output.ends_exactly {
            self.flush(meter)?;
            return self.output.end_part(self.part, self.part_bytes(), meter);
        }
        let (buffer, end) = match self.buffer.take() {
            Some(buffer) => (buffer, self.end),
            None if self.start > 0 => return Ok(()),
            None => (self.output.take_buffer(meter)?, 0),
        };
        self.output.send(
            OutBlock {
                buffer,
                range: 0..end,
                part: self.part,
                offset: self.start,
                reserve_bytes: 0,
            },
            meter,
        )
    }

    /// The file it fills.
    #[must_use]
    pub fn part(&self) -> u64 {
        self.part
    }

    /// Bytes of that it has taken.
    #[must_use]
    pub fn part_bytes(&self) -> u64 {
        self.bytes - self.bytes_before
    }

    /// Goes on with the next file, from its beginning.
    pub fn next_part(&mut self) {
        *self = Self {
            framed: self.framed.take(),
            bytes_before: self.bytes,
            bytes: self.bytes,
            records: self.records,
            ..Self::in_part(self.output, self.part + 1, 0, 0)
        };
    }

    /// The same, which gathers what it is made into pieces ([`Sink::put_made`]).
    #[must_use]
    pub fn gathering(self, framed: Option<Framed>) -> Self {
        Self {
            framed: framed.map(Box::new),
            ..self
        }
    }

    /// Takes what was made of one record, and gathers it if it comes out in pieces.
    ///
    /// # Errors
    /// The job's, when it is ending, and those of who gathers.
    #[inline]
    pub fn put_made(&mut self, made: &[u8], meter: &mut Meter<'_>) -> Result<()> {
        match self.framed.take() {
            None => self.put(made, meter),
            Some(mut framed) => {
                self.records += 1;
                let put = framed.put(made, |piece| self.put_part(piece, meter));
                self.framed = Some(framed);
                put
            }
        }
    }

    /// The same of `count` that lie one behind the other.
    ///
    /// # Errors
    /// As [`Sink::put_made`]; [`ErrorKind::Lost`] for what is no pair where pairs are gathered.
    pub fn put_all_made(&mut self, made: &[u8], count: u64, meter: &mut Meter<'_>) -> Result<()> {
        if self.framed.is_none() {
            self.records += count;
            return self.put_part(made, meter);
        }
        let mut rest = made;
        while !rest.is_empty() {
            let (pair, behind) = first_pair(rest)?;
            self.put_made(pair, meter)?;
            rest = behind;
        }
        Ok(())
    }

    /// Of what is gathered nothing more comes in this file.
    ///
    /// # Errors
    /// As [`Sink::put_made`].
    pub fn end_pieces(&mut self, meter: &mut Meter<'_>) -> Result<()> {
        let Some(mut framed) = self.framed.take() else {
            return Ok(());
        };
        let ended = framed.end(|piece| self.put_part(piece, meter));
        self.framed = Some(framed);
        ended
    }

    /// Whether it gathers.
    #[must_use]
    pub fn gathers(&self) -> bool {
        self.framed.is_some()
    }

    /// Takes one record.
    ///
    /// # Errors
    /// The job's, when it is ending.
    #[inline]
    pub fn put(&mut self, record: &[u8], meter: &mut Meter<'_>) -> Result<()> {
        self.records += 1;
        self.put_part(record, meter)
    }

    /// Takes a part of a record, which the caller counts.
    ///
    /// # Errors
    /// As [`Sink::put`].
    #[inline]
    pub fn put_part(&mut self, part: &[u8], meter: &mut Meter<'_>) -> Result<()> {
        self.bytes += part.len() as u64;
        let mut rest = part;
        loop {
            if let Some(buffer) = &mut self.buffer {
                let room = buffer.len() - self.end;
                if rest.len() <= room {
                    buffer[self.end..self.end + rest.len()].copy_from_slice(rest);
                    self.end += rest.len();
                    return Ok(());
                }
                buffer[self.end..].copy_from_slice(&rest[..room]);
                self.end += room;
                rest = &rest[room..];
                self.flush(meter)?;
            }
            self.buffer = Some(self.output.take_buffer(meter)?);
        }
    }

    /// Sends the whole blocks of the full buffer off and goes on behind it.
    fn flush(&mut self, meter: &mut Meter<'_>) -> Result<()> {
        let Some(buffer) = self.buffer.take() else {
            return Ok(());
        };
        let (begin, end) = (self.begin, self.end);
        let whole = align_up(begin as u64) as usize..align_down(end as u64) as usize;
        if whole.start > whole.end {
            // All of it lies within one block.
            self.seam(&buffer, begin..end, meter)?;
        } else {
            self.seam(&buffer, begin..whole.start, meter)?;
            self.seam(&buffer, whole.end..end, meter)?;
            self.send(buffer, whole, self.start, meter)?;
        }
        self.start += align_down(end as u64);
        self.begin = end - align_down(end as u64) as usize;
        self.end = self.begin;
        Ok(())
    }

    /// Puts a part of a block where its other parts will come.
    fn seam(
        &self,
        from: &Buffer,
        range: std::ops::Range<usize>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let output = self.output;
        let offset = self.start + range.start as u64;
        let completed = output
            .seams
            .put(self.part, offset, &from[range], output.total)?;
        match completed {
            Some(block) => output.send_seam(&block, self.part, align_down(offset), meter),
            None => Ok(()),
        }
    }

    /// Hands a range of a buffer, whose first byte belongs at `start`, to the writer.
    fn send(
        &self,
        buffer: Buffer,
        range: std::ops::Range<usize>,
        start: u64,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let block = OutBlock {
            part: self.part,
            offset: start + range.start as u64,
            reserve_bytes: self.reserve_bytes,
            buffer,
            range,
        };
        self.output.send(block, meter)
    }

    /// The unit's last byte has been taken: what is left goes to the seams.
    ///
    /// # Errors
    /// The job's, when it is ending.
    pub fn finish(mut self, meter: &mut Meter<'_>) -> Result<()> {
        self.flush(meter)
    }

    /// The output's last byte has been taken by this, its only sink: what is left is sent as it is, padded
    /// to whole blocks if the output is a file.
    ///
    /// # Errors
    /// The job's, when it is ending.
    pub fn finish_all(mut self, padded: bool, meter: &mut Meter<'_>) -> Result<()> {
        let Some(mut buffer) = self.buffer.take() else {
            return Ok(());
        };
        let mut end = self.end;
        if padded {
            end = align_up(end as u64) as usize;
            buffer[self.end..end].fill(0);
        }
        self.send(buffer, 0..end, self.start, meter)
    }
}

/// Where the output goes.
pub enum Target {
    /// A file, at offsets, with so many writes in flight.
    File(Arc<File>, usize),
    /// A stream, in order.
    Stream(Arc<File>),
    /// Files of a folder, at offsets.
    Parts(PartFiles),
}

/// Writes blocks until the queue is closed and empty. Answers the bytes written.
///
/// # Errors
/// The first write that failed.
pub fn write(
    os: &dyn Os,
    target: &Target,
    blocks: &Queue<OutBlock>,
    stop: &Stop,
    meter: &mut Meter<'_>,
) -> Result<u64> {
    match target {
        Target::File(file, depth) => {
            let file_of = |_: &OutBlock| Ok(Arc::clone(file));
            write_at_offsets(os, file_of, *depth, blocks, stop, meter)
        }
        Target::Stream(file) => write_stream(os, file, blocks, stop, meter),
        Target::Parts(files) => {
            let mut open = files.open(os);
            write_at_offsets(
                os,
                |block| open.file(block),
                files.depth,
                blocks,
                stop,
                meter,
            )
        }
    }
}

const DOING: &str = "writing the output";

/// Writes each block to the file that `file_of` answers, with `depth` writes in flight.
fn write_at_offsets(
    os: &dyn Os,
    mut file_of: impl FnMut(&OutBlock) -> Result<Arc<File>>,
    depth: usize,
    blocks: &Queue<OutBlock>,
    stop: &Stop,
    meter: &mut Meter<'_>,
) -> Result<u64> {
    let mut ring = os
        .ring(depth)
        .map_err(|error| Error::new(ErrorKind::Io, "starting to write", error.to_string()))?;
    let mut bytes = 0;
    loop {
        let block = if ring.in_flight() == 0 {
            meter.lap(Stage::Write, State::Work);
            let block = blocks.pop();
            meter.lap(Stage::Write, State::Input);
            stop.check()?;
            block
        } else if ring.in_flight() < depth {
            blocks.try_pop()
        } else {
            None
        };
        if let Some(block) = block {
            bytes += block.range.len() as u64;
            let totals = meter.stage(Stage::Write);
            totals.bytes_in += block.range.len() as u64;
            totals.bytes_out += block.range.len() as u64;
            meter.submitted(block.range.len());
            ring.submit(Op {
                kind: OpKind::Write,
                file: file_of(&block)?,
                offset: block.offset,
                buffer: block.buffer,
                range: block.range,
                tag: 0,
            });
        } else if ring.in_flight() == 0 {
            return Ok(bytes);
        } else {
            complete_one(&mut *ring, meter)?;
        }
    }
}

fn complete_one(ring: &mut dyn Ring, meter: &mut Meter<'_>) -> Result<()> {
    meter.lap(Stage::Write, State::Work);
    let done = ring.complete(true).expect("a write is in flight");
    meter.lap(Stage::Write, State::Device);
    meter.completed(done.op.range.len());
    done.result
        .map(|_| meter.wrote(done.op.range.len() as u64))
        .map_err(|error| Error::io(DOING, &done.op.file.path, &error).offset(done.op.offset))
}

fn write_stream(
    os: &dyn Os,
    file: &File,
    blocks: &Queue<OutBlock>,
    stop: &Stop,
    meter: &mut Meter<'_>,
) -> Result<u64> {
    let mut bytes = 0;
    loop {
        meter.lap(Stage::Write, State::Work);
        let block = blocks.pop();
        meter.lap(Stage::Write, State::Input);
        stop.check()?;
        let Some(block) = block else {
            return Ok(bytes);
        };
        let part = &block.buffer[block.range.clone()];
        to_stream(os, file, part, bytes, stop)?;
        meter.lap(Stage::Write, State::Device);
        meter.wrote(part.len() as u64);
        bytes += part.len() as u64;
        let totals = meter.stage(Stage::Write);
        totals.bytes_in += part.len() as u64;
        totals.bytes_out += part.len() as u64;
    }
}

/// Writes all of `bytes` to a stream to which `offset` bytes went before. How many there were.
///
/// # Errors
/// The system's; [`ErrorKind::Reader`] if nobody reads any more.
pub fn to_stream(os: &dyn Os, file: &File, bytes: &[u8], offset: u64, stop: &Stop) -> Result<u64> {
    let written = os.write_stream(file, bytes, &|| stop.is_stopped());
    written.map_err(|error| Error::writing(DOING, &file.path, &error).offset(offset))?;
    Ok(bytes.len() as u64)
}
