//! Pieces of files to chunks, each on its own, in any order.
//!
//! [`super::read`] carries the beginning of a record that a chunk's end cut through over to the next chunk. Here that
//! one may have been read long before, or be read much later, so each piece is read with the bytes in front of it:
//! as many as a fixed record takes, of lines one aligned block, and of a line that is longer than that whatever is
//! missing, piece by piece. As there, a record belongs to the piece that it ends in, and no record is copied whole.

use std::collections::HashMap;

use sortmill_io::sync::Arc;
use sortmill_io::{ALIGN_BYTES, Buffer, File, Op, OpKind, Os, Pool, Ring, align_down, align_up};

use super::{DOING, ReadTotals};
use crate::batch::{Chunk, Goes};
use crate::error::{Error, ErrorKind, Result};
use crate::long::{Long, Whole};
use crate::metrics::{Meter, Stage, State};
use crate::order::{Begun, Format};
use crate::plan::Plan;
use crate::queue::{Queue, Stop};

/// A piece of a file: the records that end in it are wanted.
#[derive(Clone)]
pub struct Part {
    /// The file; of fixed records it holds nothing else.
    pub file: Arc<File>,
    /// Which input it is, from 0.
    pub input: usize,
    /// The number of the chunk that its records belong to.
    pub chunk: u64,
    /// Where it begins: where a record does, or at an aligned place.
    pub offset: u64,
    /// How long it is; it and a record in front of it fit into the buffer of a chunk.
    pub bytes: u64,
    /// Whether a record begins where it does.
    pub begins: bool,
    /// Whether the file ends with it: its last line may lack the newline.
    pub last: bool,
    /// Where its records go.
    pub goes: Goes,
}

impl Part {
    /// Whether it is of an output that is read again.
    fn is_output(&self) -> bool {
        matches!(self.goes, Goes::AllToSlot(_))
    }

    fn doing(&self) -> &'static str {
        match self.is_output() {
            true => "reading what was written of the output",
            false => DOING,
        }
    }
}

/// What is worked with.
pub struct ApartReader<'a> {
    /// All I/O.
    pub os: &'a dyn Os,
    /// Sizes.
    pub plan: &'a Plan,
    /// Memory for chunks.
    pub pool: &'a Pool,
    /// Memory for records longer than the room in front of a chunk, two of them.
    pub longs: &'a Pool,
    /// Where chunks go.
    pub chunks: &'a Queue<Chunk>,
    /// Ends the job.
    pub stop: &'a Stop,
}

/// Reads all `parts` and closes the queue.
///
/// # Errors
/// The first that is unreadable, shorter than it was, or has a record that is longer than the memory allows.
pub fn read_apart(
    reader: &ApartReader<'_>,
    parts: &[Part],
    meter: &mut Meter<'_>,
) -> Result<ReadTotals> {
    let ring = reader
        .os
        .ring(reader.plan.chunk_depth)
        .map_err(|error| Error::new(ErrorKind::Io, "starting to read", error.to_string()))?;
    let mut run = Run {
        reader,
        ring,
        on_their_way: HashMap::new(),
        totals: ReadTotals::default(),
    };
    let mut waiting = (0u64..).zip(parts).peekable();
    loop {
        reader.stop.check()?;
        while run.ring.in_flight() < reader.plan.chunk_depth
            && let Some(&(number, part)) = waiting.peek()
            && let Some(buffer) = run.take_buffer(meter)?
        {
            run.submit(number, part, buffer, meter);
            waiting.next();
        }
        if run.ring.in_flight() == 0 {
            break;
        }
        run.land_one(meter)?;
    }
    reader.chunks.close();
    Ok(run.totals)
}

struct Run<'a, 'r> {
    reader: &'r ApartReader<'a>,
    ring: Box<dyn Ring>,
    on_their_way: HashMap<u64, (Part, Spot)>,
    totals: ReadTotals,
}

/// What of a file is read, and where in the buffer it comes to lie.
#[derive(Clone, Copy)]
struct Spot {
    /// The first byte that is read, at an aligned place.
    from: u64,
    /// Where it comes to lie.
    at: usize,
    /// How many are read.
    bytes: usize,
}

impl Spot {
    fn of(plan: &Plan, part: &Part) -> Self {
        let to = align_up(part.offset + part.bytes);
        if part.begins {
            let from = align_down(part.offset);
            let bytes = (to - from) as usize;
            return Self { from, at: 0, bytes };
        }
        let front = match plan.order.format() {
            Format::Fixed(size) => align_up(u64::from(size)),
            Format::Lines | Format::Kv => ALIGN_BYTES as u64,
        };
        assert!(front <= plan.headroom_bytes as u64 && part.offset == align_down(part.offset));
        let from = part.offset.saturating_sub(front);
        Self {
            from,
            at: plan.headroom_bytes - (part.offset - from) as usize,
            bytes: (to - from) as usize,
        }
    }

    /// Where the byte at `offset` of the file lies in the buffer.
    fn index(&self, offset: u64) -> usize {
        self.at + (offset - self.from) as usize
    }
}

impl Run<'_, '_> {
    /// A free buffer; waits for one only where there is nothing else to do.
    fn take_buffer(&mut self, meter: &mut Meter<'_>) -> Result<Option<Buffer>> {
        let pool = self.reader.pool;
        if let Some(buffer) = pool.try_take() {
            return Ok(Some(buffer));
        }
        if self.ring.in_flight() > 0 {
            return Ok(None);
        }
        meter.lap(Stage::Read, State::Work);
        let buffer = pool.take();
        meter.lap(Stage::Read, State::Memory);
        buffer.map(Some).ok_or_else(|| self.reader.stop.error())
    }

    fn submit(&mut self, number: u64, part: &Part, buffer: Buffer, meter: &mut Meter<'_>) {
        let spot = Spot::of(self.reader.plan, part);
        self.ring.submit(Op {
            kind: OpKind::Read,
            file: Arc::clone(&part.file),
            offset: spot.from,
            buffer,
            range: spot.at..spot.at + spot.bytes,
            tag: number,
        });
        meter.submitted(spot.bytes);
        self.on_their_way.insert(number, (part.clone(), spot));
    }

    fn land_one(&mut self, meter: &mut Meter<'_>) -> Result<()> {
        meter.lap(Stage::Read, State::Work);
        let done = self.ring.complete(true).expect("a read is in flight");
        meter.lap(Stage::Read, State::Device);
        meter.completed(done.op.range.len());
        let (part, spot) = self
            .on_their_way
            .remove(&done.op.tag)
            .expect("every read in flight is known");
        let path = &part.file.path;
        let moved = done
            .result
            .map_err(|error| Error::io(part.doing(), path, &error).offset(part.offset))?;
        let end = spot.from + moved as u64;
        if end < part.offset + part.bytes {
            let cause = "the file ends here now, and was longer at the start";
            let error = Error::new(ErrorKind::Changed, part.doing(), cause);
            return Err(error.at(path).offset(end));
        }
        self.totals.device_bytes += moved as u64;
        self.totals.bytes += part.bytes;
        meter.read(part.bytes);
        let chunk = self.cut(&part, spot, done.op.buffer, meter)?;
        let Some(chunk) = chunk else { return Ok(()) };
        let long_bytes = chunk.long.as_ref().map_or(0, Long::bytes);
        let record_bytes = chunk.records.len() as u64 + long_bytes;
        self.totals.record_bytes += record_bytes;
        meter.lap(Stage::Read, State::Work);
        let sent = self.reader.chunks.push(chunk);
        meter.lap(Stage::Read, State::Output);
        let totals = meter.stage(Stage::Read);
        totals.bytes_in = self.totals.device_bytes;
        totals.bytes_out += record_bytes;
        sent.map_err(|_| self.reader.stop.error())
    }

    /// Makes a chunk of what was read, if a record ends in it.
    fn cut(
        &mut self,
        part: &Part,
        spot: Spot,
        mut buffer: Buffer,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Chunk>> {
        let order = &self.reader.plan.order;
        let (at, mut to) = (
            spot.index(part.offset),
            spot.index(part.offset + part.bytes),
        );
        let mut long = None;
        let mut start = at;
        match order.format() {
            Format::Fixed(size) if !part.begins => {
                start = at - (part.offset % u64::from(size)) as usize;
            }
            Format::Fixed(_) => {}
            Format::Kv => unreachable!("pairs are read one after the other"),
            Format::Lines => {
                if part.last && to > at && buffer[to - 1] != b'\n' {
                    buffer[to] = b'\n';
                    to += 1;
                    self.totals.added_bytes += 1;
                }
                let Some(first_end) = memchr::memchr(b'\n', &buffer[at..to]) else {
                    return Ok(None);
                };
                if !part.begins {
                    let before = memchr::memrchr(b'\n', &buffer[spot.at..at]);
                    start = match before {
                        Some(end) => spot.at + end + 1,
                        None if spot.from == 0 => spot.at,
                        None => {
                            let front = self.read_back(part, spot.from, meter)?;
                            let end = at + first_end + 1;
                            self.put_front(&front, spot.at..end, &mut buffer, &mut long, part)?
                        }
                    };
                }
            }
        }
        let end = start + order.last_end(&buffer[start..to], &Begun::default());
        if end == start && long.is_none() {
            return Ok(None);
        }
        Ok(Some(Chunk {
            number: part.chunk,
            input: part.input,
            offset: (spot.from + start as u64) - spot.at as u64,
            buffer,
            records: start..end,
            long,
            goes: part.goes,
        }))
    }

    /// The beginning of the line that goes on at `end`: what of it lies before.
    fn read_back(&mut self, part: &Part, end: u64, meter: &mut Meter<'_>) -> Result<Vec<u8>> {
        const STEP_BYTES: u64 = 64 << 10;
        let wrong = |error: std::io::Error| Error::io(part.doing(), &part.file.path, &error);
        let pool = Pool::new(1, STEP_BYTES as usize).map_err(wrong)?;
        let mut ring = self.reader.os.ring(1).map_err(wrong)?;
        let mut steps: Vec<Vec<u8>> = Vec::new();
        let (mut from, mut bytes) = (end, 0);
        loop {
            let to = from;
            from = from.saturating_sub(STEP_BYTES);
            ring.submit(Op {
                kind: OpKind::Read,
                file: Arc::clone(&part.file),
                offset: from,
                buffer: pool.take().ok_or_else(|| self.reader.stop.error())?,
                range: 0..(to - from) as usize,
                tag: 0,
            });
            meter.lap(Stage::Read, State::Work);
            let done = ring.complete(true).expect("a read is in flight");
            meter.lap(Stage::Read, State::Device);
            let moved = done.result.map_err(|error| wrong(error).offset(from))?;
            self.totals.device_bytes += moved as u64;
            let step = &done.op.buffer[..moved];
            let begin = memchr::memrchr(b'\n', step).map(|at| at + 1);
            let step = step[begin.unwrap_or(0)..].to_vec();
            bytes += step.len();
            steps.push(step);
            if bytes > self.reader.plan.record_bytes_max {
                return Err(self.too_long(part, end - bytes as u64));
            }
            if begin.is_some() || from == 0 {
                steps.reverse();
                return Ok(steps.concat());
            }
        }
    }

    /// Puts `front` before a line's end at `rest` of the buffer: into the room in front of the chunk, or, with that
    /// end, into a buffer of its own. Answers where the chunk's records begin.
    fn put_front(
        &self,
        front: &[u8],
        rest: std::ops::Range<usize>,
        buffer: &mut Buffer,
        long: &mut Option<Long>,
        part: &Part,
    ) -> Result<usize> {
        if front.len() <= rest.start {
            let start = rest.start - front.len();
            buffer[start..rest.start].copy_from_slice(front);
            return Ok(start);
        }
        let bytes = front.len() + rest.len();
        if bytes > self.reader.plan.record_bytes_max {
            return Err(self.too_long(part, part.offset.saturating_sub(bytes as u64)));
        }
        let room = self.reader.longs.take();
        let mut whole = room.ok_or_else(|| self.reader.stop.error())?;
        whole[..front.len()].copy_from_slice(front);
        whole[front.len()..bytes].copy_from_slice(&buffer[rest.clone()]);
        *long = Some(Long::Whole(Whole::new(whole, 0..bytes)));
        Ok(rest.end)
    }

    fn too_long(&self, part: &Part, offset: u64) -> Error {
        if part.is_output() {
            let cause = "it does not come back from the device as it was written";
            let error = Error::new(ErrorKind::Corrupt, part.doing(), cause);
            return error.at(&part.file.path).offset(offset);
        }
        let most = crate::text::bytes(self.reader.plan.record_bytes_max as u64);
        let cause = format!("a record is longer than {most}, the most this memory allows");
        Error::new(ErrorKind::Input, DOING, cause)
            .at(&part.file.path)
            .offset(offset)
            .hint("To leave out bad records and count them, give --skip-bad N.")
    }
}
