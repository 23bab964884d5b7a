//! Pieces of files of fixed records to chunks, each on its own, in any order.
//!
//! [`super::read`] carries the beginning of a record that a chunk's end cut through over to the next chunk. Here that
//! one may have been read long before, or be read much later, so each piece is read with the bytes in front of it:
//! as many as a record takes. As there, a record belongs to the piece that it ends in, and no record is copied whole.

use std::collections::HashMap;

use sortmill_io::sync::Arc;
use sortmill_io::{Buffer, File, Op, OpKind, Os, Pool, Ring, align_down, align_up};

use super::{DOING, ReadTotals};
use crate::batch::{Chunk, Goes};
use crate::error::{Error, ErrorKind, Result};
use crate::metrics::{Meter, Stage, State};
use crate::order::{Begun, Format};
use crate::plan::Plan;
use crate::queue::{Queue, Stop};

/// A piece of a file: the records that end in it are wanted.
#[derive(Clone)]
pub struct Part {
    /// The file, which holds nothing but records.
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
    /// Where chunks go.
    pub chunks: &'a Queue<Chunk>,
    /// Ends the job.
    pub stop: &'a Stop,
}

/// Reads all `parts` and closes the queue.
///
/// # Errors
/// The first that is unreadable or shorter than it was.
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
        let front = align_up(record_bytes(plan));
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
        let Some(chunk) = self.cut(&part, spot, done.op.buffer) else {
            return Ok(());
        };
        let record_bytes = chunk.records.len() as u64;
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
    fn cut(&self, part: &Part, spot: Spot, buffer: Buffer) -> Option<Chunk> {
        let plan = self.reader.plan;
        let (at, to) = (
            spot.index(part.offset),
            spot.index(part.offset + part.bytes),
        );
        let start = match part.begins {
            true => at,
            false => at - (part.offset % record_bytes(plan)) as usize,
        };
        let end = start + plan.order.last_end(&buffer[start..to], &Begun::default());
        (end > start).then(|| Chunk {
            number: part.chunk,
            input: part.input,
            offset: (spot.from + start as u64) - spot.at as u64,
            buffer,
            records: start..end,
            long: None,
            goes: part.goes,
        })
    }
}

fn record_bytes(plan: &Plan) -> u64 {
    match plan.order.format() {
        Format::Fixed(size) => u64::from(size),
        Format::Lines | Format::Kv => unreachable!("order is looked for among fixed records"),
    }
}
