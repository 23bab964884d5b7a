//! Parts of files to chunks, in any order.
//!
//! [`super::read`] reads inputs from their beginnings and carries the record that a chunk's end cut through over to the
//! next chunk. So it is done here within a part. What a part's own ends cut through may have been read long before, or
//! be read much later, so there a record belongs to the part that it **begins** in: whoever reads that one reads on
//! until it ends, and whoever reads the next one passes it over. [`Borders`] tells both what is known of that.
//!
//! ```text
//! file      |  chunk   |  chunk   |  chunk   |  chunk   |
//! lines      --- ----- --------------------- --- -- ----
//! part      [      its lines   ]~~~~~~~~~~~~>                 reads on until the line ends
//! part                         [ passed over >  its lines ]
//! ```
//!
//! So each byte is read once, and twice at most where a part is read before the one in front of it. No record is looked
//! for backwards, and a long one streams into its body ([`Longs`]), however many parts it goes through. It keeps its
//! place: its number lies between those of the chunks at the border ([`crate::pieces::NUMBERS_PER_CHUNK`]).
//!
//! The memory of a chunk belongs to whoever takes it from the queue. At least one buffer of the pool is never kept
//! here, so that reading on never waits for itself.

use std::collections::VecDeque;

use sortmill_io::sync::Arc;
use sortmill_io::sync::atomic::{AtomicBool, Ordering};
use sortmill_io::{Buffer, Op, OpKind, Os, Pool, Ring, align_up};

use super::part::{Part, Piece, Spot};
use super::{ReadTotals, too_long};
use crate::bad::SKIP_HINT;
use crate::batch::Chunk;
use crate::borders::Borders;
use crate::error::{Error, ErrorKind, Result};
use crate::long::{Long, Longs};
use crate::metrics::{Meter, Stage, State};
use crate::order::{Begun, Format};
use crate::plan::Plan;
use crate::queue::{Queue, Stop};

/// How much is read at first to find the end of a record that goes over the end of a part; then twice as much each time.
const STEP_BYTES: u64 = 64 << 10;

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
    /// Where records go that outgrow the room in front of a chunk.
    pub longs: &'a mut dyn Longs,
    /// Where records begin at the ends of parts of inputs: learnt and used here.
    pub borders: &'a Borders,
    /// Once it is set nothing more is begun to be read, though parts are left.
    pub enough: Option<&'a AtomicBool>,
}

/// Reads all `parts`, or those that are wanted, and closes the queue.
///
/// # Errors
/// The first that is unreadable, shorter than it was or not what it was, and a record that is longer than the memory
/// allows.
pub fn read_apart(
    reader: ApartReader<'_>,
    parts: &[Part],
    meter: &mut Meter<'_>,
) -> Result<ReadTotals> {
    let wrong =
        |error: std::io::Error| Error::new(ErrorKind::Io, "starting to read", error.to_string());
    let ring = reader.os.ring(reader.plan.chunk_depth).map_err(wrong)?;
    let mut run = Run {
        reader,
        parts,
        ring,
        next: None,
        next_part: 0,
        submitted: 0,
        begun: VecDeque::new(),
        joint: Joint::default(),
        passing: false,
        uncounted: 0,
        totals: ReadTotals::default(),
    };
    run.next = run.next_piece(None, meter);
    loop {
        run.reader.stop.check()?;
        run.submit_reads(meter)?;
        if run.begun.is_empty() {
            break;
        }
        run.land_one(meter)?;
        while let Some((_, piece, Some(_))) = run.begun.front() {
            let piece = *piece;
            let (_, _, buffer) = run.begun.pop_front().expect("it is there");
            run.hand_on(&piece, buffer.expect("it has landed"), meter)?;
        }
    }
    run.reader.chunks.close();
    meter.stage(Stage::Read).bytes_in = run.totals.device_bytes;
    Ok(run.totals)
}

/// The beginning of a record that goes on.
#[derive(Default)]
struct Joint {
    begun: Begun,
    /// As long as it fits the room in front of a chunk.
    bytes: Vec<u8>,
    /// When it is longer, it goes to [`ApartReader::longs`].
    is_long: bool,
}

struct Run<'a, 'p> {
    reader: ApartReader<'a>,
    parts: &'p [Part],
    ring: Box<dyn Ring>,
    /// What is read next, and the part behind that.
    next: Option<Piece>,
    next_part: usize,
    submitted: u64,
    /// Pieces that are being read or have been, and were not handed on, in order.
    begun: VecDeque<(u64, Piece, Option<Buffer>)>,
    joint: Joint,
    /// No record of the part has begun yet.
    passing: bool,
    /// Bytes of the part that have not been counted.
    uncounted: u64,
    totals: ReadTotals,
}

impl Run<'_, '_> {
    /// The piece behind `piece`, of its part or of one of the next.
    fn next_piece(&mut self, piece: Option<Piece>, meter: &mut Meter<'_>) -> Option<Piece> {
        let enough = self.reader.enough;
        if enough.is_some_and(|enough| enough.load(Ordering::SeqCst)) {
            return None;
        }
        let chunk_bytes = self.reader.plan.chunk_bytes as u64;
        let mut next =
            piece.and_then(|piece| self.parts[piece.part].piece(piece.part, piece.to, chunk_bytes));
        while next.is_none() {
            let part = self.parts.get(self.next_part)?;
            next = part.piece(self.next_part, part.from, chunk_bytes);
            if next.is_none() {
                // All of it lies in a record that began before.
                self.totals.bytes += part.bytes;
                meter.read(part.bytes);
            }
            self.next_part += 1;
        }
        next
    }

    /// Starts reads while there are buffers, depth and pieces left.
    fn submit_reads(&mut self, meter: &mut Meter<'_>) -> Result<()> {
        let plan = self.reader.plan;
        while let Some(piece) = self.next
            && self.ring.in_flight() < plan.chunk_depth
            && self.begun.len() < plan.chunk_count - 1
        {
            let Some(buffer) = self.take_buffer(self.begun.is_empty(), meter)? else {
                return Ok(());
            };
            let part = &self.parts[piece.part];
            let spot = Spot::of(plan, part, &piece);
            self.ring
                .submit(read_op(part, &spot, buffer, self.submitted));
            meter.submitted(spot.bytes());
            self.begun.push_back((self.submitted, piece, None));
            self.submitted += 1;
            self.next = self.next_piece(self.next, meter);
        }
        Ok(())
    }

    /// A free buffer; waits for one only if told to.
    fn take_buffer(&self, wait: bool, meter: &mut Meter<'_>) -> Result<Option<Buffer>> {
        let pool = self.reader.pool;
        if let Some(buffer) = pool.try_take() {
            return Ok(Some(buffer));
        }
        if !wait {
            return Ok(None);
        }
        meter.lap(Stage::Read, State::Work);
        let buffer = pool.take();
        meter.lap(Stage::Read, State::Memory);
        buffer.map(Some).ok_or_else(|| self.reader.stop.error())
    }

    fn land_one(&mut self, meter: &mut Meter<'_>) -> Result<()> {
        meter.lap(Stage::Read, State::Work);
        let done = self.ring.complete(true).expect("a read is in flight");
        meter.lap(Stage::Read, State::Device);
        meter.completed(done.op.range.len());
        let mut begun = self.begun.iter_mut();
        let landed = begun.find(|(number, ..)| *number == done.op.tag);
        let (_, piece, landed) = landed.expect("every read in flight is known");
        let part = &self.parts[piece.part];
        let spot = Spot::of(self.reader.plan, part, piece);
        let moved = check_read(part, &spot, done.result)?;
        self.totals.device_bytes += moved;
        *landed = Some(done.op.buffer);
        Ok(())
    }

    /// Cuts the records out of a piece, and hands them on as a chunk.
    fn hand_on(&mut self, piece: &Piece, mut buffer: Buffer, meter: &mut Meter<'_>) -> Result<()> {
        let part = &self.parts[piece.part];
        let spot = Spot::of(self.reader.plan, part, piece);
        if piece.is_first {
            assert_eq!(self.joint.begun.bytes, 0, "a part ends where a record does");
            self.passing = !part.begins;
            self.uncounted = part.bytes;
        }
        self.count(piece, meter);
        let mut at = spot.index(piece.from);
        let mut to = spot.index(piece.to);
        if self.passing {
            let passed_to = self.pass(part, piece, &spot, &buffer);
            self.totals.passed_bytes += (passed_to.unwrap_or(to) - at) as u64;
            let Some(begin) = passed_to else {
                if let (true, Some(end)) = (piece.is_last, part.end) {
                    let borders = self.reader.borders;
                    borders.saw(part.input, part.from, end);
                }
                return Ok(());
            };
            at = begin;
        }
        if piece.to == part.file_bytes {
            to = self.end_lines(&mut buffer, at, to);
        } else if piece.is_last && part.known_end().is_none() {
            to = self.look_behind(part, &spot, &buffer, at, to);
        }
        self.put(part, piece.chunk, &spot, buffer, at..to, meter)?;
        if !piece.is_last || self.joint.begun.bytes == 0 {
            return Ok(());
        }
        match part.known_end() {
            None => self.read_on(part, meter),
            Some(end) => Err(altered(part, end)),
        }
    }

    /// Counts what was read: of a part no more and no less than it counts as.
    fn count(&mut self, piece: &Piece, meter: &mut Meter<'_>) {
        let bytes = match piece.is_last {
            true => self.uncounted,
            false => self.uncounted.min(piece.to - piece.from),
        };
        self.uncounted -= bytes;
        self.totals.bytes += bytes;
        meter.read(bytes);
    }

    /// Where in a piece the first record begins of a part that begins in the middle of one.
    fn pass(&mut self, part: &Part, piece: &Piece, spot: &Spot, buffer: &Buffer) -> Option<usize> {
        let (at, to) = (spot.index(piece.from), spot.index(piece.to));
        // What ends just before the part does not go on in it.
        let from = at - usize::from(piece.is_first);
        let order = &self.reader.plan.order;
        let end = order.first_end(&buffer[from..to], &Begun::default())?;
        self.passing = false;
        let begin = from + end;
        let borders = self.reader.borders;
        borders.saw(part.input, part.from, spot.offset(begin));
        Some(begin)
    }

    /// The end of an input of lines: one that lacks its newline gets it. Answers where the input's bytes end
    /// in the buffer.
    fn end_lines(&mut self, buffer: &mut Buffer, at: usize, to: usize) -> usize {
        let order = &self.reader.plan.order;
        let is_line = order.format() == Format::Lines;
        let missing = match buffer[at..to].last() {
            Some(&byte) => byte != order.delimiter(),
            None => self.joint.begun.bytes > 0,
        };
        if !is_line || !missing {
            return to;
        }
        buffer[to] = order.delimiter();
        self.totals.added_bytes += 1;
        to + 1
    }

    /// Looks for the end of the record that goes over the end of the part, in what was read behind it. Answers where
    /// the part's records end in the buffer, as far as they are there.
    fn look_behind(
        &self,
        part: &Part,
        spot: &Spot,
        buffer: &Buffer,
        at: usize,
        to: usize,
    ) -> usize {
        let order = &self.reader.plan.order;
        let goes_on = match at < to {
            true => order.last_end(&buffer[at..to], &self.joint.begun) < to - at,
            false => self.joint.begun.bytes > 0,
        };
        let behind = &buffer[to..spot.index(spot.looked_to)];
        let end = match goes_on {
            true => order.first_end(behind, &Begun::default()),
            false => Some(0),
        };
        let Some(end) = end else { return to };
        let begin = spot.offset(to + end);
        self.reader.borders.saw(part.input, part.to, begin);
        to + end
    }

    /// Reads what is missing of the record that goes over the end of the part.
    fn read_on(&mut self, part: &Part, meter: &mut Meter<'_>) -> Result<()> {
        let plan = self.reader.plan;
        let chunk_bytes = plan.chunk_bytes as u64;
        let chunk = part.number_at(part.to, chunk_bytes);
        let wrong = |error: std::io::Error| Error::io(part.doing(), &part.file.path, &error);
        let mut ring = self.reader.os.ring(1).map_err(wrong)?;
        let mut step_bytes = STEP_BYTES.min(chunk_bytes);
        let mut from = part.to;
        loop {
            self.reader.stop.check()?;
            let end = part.file_bytes.min(from + step_bytes);
            let spot = Spot {
                from,
                at: plan.headroom_bytes,
                looked_to: end,
                to: align_up(end),
            };
            let buffer = self.take_buffer(true, meter)?;
            let buffer = buffer.expect("waited until there was one");
            ring.submit(read_op(part, &spot, buffer, 0));
            meter.lap(Stage::Read, State::Work);
            let done = ring.complete(true).expect("a read is in flight");
            meter.lap(Stage::Read, State::Device);
            self.totals.device_bytes += check_read(part, &spot, done.result)?;
            let mut buffer = done.op.buffer;
            let at = spot.at;
            let mut to = spot.index(end);
            if end == part.file_bytes {
                to = self.end_lines(&mut buffer, at, to);
            }
            let order = &plan.order;
            if let Some(found) = order.first_end(&buffer[at..to], &self.joint.begun) {
                // A newline that was added is not in the file.
                let begin = spot.offset(at + found).min(part.file_bytes);
                self.reader.borders.saw(part.input, part.to, begin);
                return self.put(part, chunk, &spot, buffer, at..at + found, meter);
            }
            self.lengthen(part, &buffer[at..to], from, meter)?;
            from = end;
            step_bytes = chunk_bytes.min(2 * step_bytes);
        }
    }

    /// Hands on the records that end in `range` of a buffer, and keeps the beginning of the one that goes on behind it.
    fn put(
        &mut self,
        part: &Part,
        number: u64,
        spot: &Spot,
        mut buffer: Buffer,
        range: std::ops::Range<usize>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let order = &self.reader.plan.order;
        let (mut at, to) = (range.start, range.end);
        let mut long = None;
        if self.joint.is_long {
            let Some(end) = order.first_end(&buffer[at..to], &self.joint.begun) else {
                return self.lengthen(part, &buffer[at..to], spot.offset(at), meter);
            };
            self.lengthen(part, &buffer[at..at + end], spot.offset(at), meter)?;
            long = Some(self.reader.longs.end());
            self.joint = Joint::default();
            at += end;
        }
        let end = order.last_end(&buffer[at..to], &self.joint.begun);
        if end == 0 && long.is_none() {
            return self.lengthen(part, &buffer[at..to], spot.offset(at), meter);
        }
        let start = at - self.joint.bytes.len();
        buffer[start..at].copy_from_slice(&self.joint.bytes);
        let offset = spot.offset(at) - self.joint.begun.bytes;
        self.joint.bytes.clear();
        self.joint.begun = Begun::default();
        let end = at + end;
        self.lengthen(part, &buffer[end..to], spot.offset(end), meter)?;
        let chunk = Chunk {
            number,
            input: part.input,
            offset,
            line: 0,
            is_unpacked: false,
            buffer,
            records: start..end,
            long,
            goes: part.goes,
        };
        self.send(chunk, meter)
    }

    fn send(&mut self, chunk: Chunk, meter: &mut Meter<'_>) -> Result<()> {
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

    /// Adds what lies at `offset` to a record that goes on: beside the chunks where it outgrows the room in front of
    /// one.
    fn lengthen(
        &mut self,
        part: &Part,
        bytes: &[u8],
        offset: u64,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let plan = self.reader.plan;
        let joint = &mut self.joint;
        let begin = offset - joint.begun.bytes;
        joint.begun.see(bytes);
        let grown = joint.begun.bytes;
        if grown > plan.record_bytes_max as u64 {
            let error = Error::new(ErrorKind::Input, part.doing(), too_long(plan, None, grown));
            let error = error.at(&part.file.path).offset(begin);
            return Err(error.hint(SKIP_HINT));
        }
        if !joint.is_long && grown <= plan.headroom_bytes as u64 {
            joint.bytes.extend_from_slice(bytes);
            return Ok(());
        }
        if !std::mem::replace(&mut joint.is_long, true) {
            self.reader.longs.append(&joint.bytes, meter)?;
            joint.bytes.clear();
        }
        self.reader.longs.append(bytes, meter)
    }
}

fn read_op(part: &Part, spot: &Spot, buffer: Buffer, tag: u64) -> Op {
    Op {
        kind: OpKind::Read,
        file: Arc::clone(&part.file),
        offset: spot.from,
        buffer,
        range: spot.at..spot.at + spot.bytes(),
        tag,
    }
}

/// How many bytes were read: all that are looked at, or it is an error.
fn check_read(part: &Part, spot: &Spot, result: std::io::Result<usize>) -> Result<u64> {
    let path = &part.file.path;
    let moved =
        result.map_err(|error| Error::io(part.doing(), path, &error).offset(spot.from))? as u64;
    let end = spot.from + moved;
    if end < spot.looked_to {
        let cause = "the file ends here now, and was longer at the start";
        let error = Error::new(ErrorKind::Changed, part.doing(), cause);
        return Err(error.at(path).offset(end));
    }
    Ok(moved)
}

/// The error of a file in which a record does not end where it ended when it was read, or written, before.
fn altered(part: &Part, offset: u64) -> Error {
    let kind = match part.is_output() {
        true => ErrorKind::Corrupt,
        false => ErrorKind::Changed,
    };
    let cause = "a record ended here before, and now it does not";
    Error::new(kind, part.doing(), cause)
        .at(&part.file.path)
        .offset(offset)
}
