//! Range to chunk: numbered pieces of the input, each with the records that end in it.
//!
//! One thread reads all inputs. It keeps several reads in flight, hands chunks on in order, and puts the
//! beginning of a record that a chunk's end cut through in front of the next chunk's bytes, so that every
//! record is contiguous and only these fragments are copied (CD 2.2.1). A record's chunk is the one it
//! ends in. The chunk's memory belongs to whoever takes it from the queue.
//!
//! Files on several devices are read side by side, each device's in order, so that all devices are busy, and so are
//! compressed inputs, so that all cores are. Chunks are numbered as if they were read one after the other. Where they must
//! come in that order, too, compressed inputs that follow one another are still decompressed side by side, as far ahead of
//! their turn as there is memory.

mod apart;
mod decompress;
mod fetch;
mod heading;
mod many;
mod packed;
mod part;
mod share;
mod sorted;
mod source;

use std::collections::VecDeque;

use sortmill_io::os::Access;
use sortmill_io::sync::Arc;
use sortmill_io::{Buffer, Op, OpKind, Os, Pool, Ring, align_up};

use crate::bad::{Allowed, newlines};
use crate::batch::{Chunk, Goes};
use crate::chunks::{Assignment, Chunks, Extent};
use crate::error::{Error, ErrorKind, Result};
use crate::long::{Long, Longs};
use crate::metrics::{Meter, Metrics, Stage, State};
use crate::order::{Begun, Format, KV_HEADER_BYTES, Order};
use crate::plan::Plan;
use crate::queue::{Queue, Stop};

use decompress::Compressed;
use heading::Heading;

pub use apart::{ApartReader, read_apart};
pub use fetch::{Fetches, fetch};
pub use heading::Kept;
pub use many::OPEN_MAX;
pub use packed::{beginning, codec_of, unpacked};
pub use part::Part;
pub use share::{Left, Share};
pub use sorted::{
    Headings, RowOrigin, RowsRead, SortedReader, read_packed_row, read_rows, read_stream_row,
};
pub use source::{DIRECT_BYTES_MIN, NOTHING, Source, devices, replaced};

const DOING: &str = "reading the input";

/// Looks at each chunk before it is handed on: how a stream is sampled.
pub trait Watcher: Send {
    /// Sees a chunk's records.
    fn see(&mut self, chunk: &Chunk);
    /// The reader is about to wait for memory, or has come to the end of so many bytes in all.
    fn must_decide(&mut self, bytes: Option<u64>);
}

/// What the reader works with.
pub struct Reader<'a> {
    /// All I/O.
    pub os: &'a dyn Os,
    /// Sizes.
    pub plan: &'a Plan,
    /// Opened inputs, in order.
    pub sources: &'a [Source],
    /// Memory for chunks.
    pub pool: &'a Pool,
    /// Where chunks go.
    pub chunks: &'a Queue<Chunk>,
    /// Ends the job.
    pub stop: &'a Stop,
    /// Read files on several devices at once, and compressed ones in any order: so do chunks come then.
    pub side_by_side: bool,
    /// Ignore what is appended after the start.
    pub as_of_start: bool,
    /// How many bad records may be skipped.
    pub allowed: &'a Allowed,
    /// How many lines of each input are no records: the first ones. Of records with quotes, how many of these.
    pub header_lines: u64,
    /// What they must be in each input that has any, but for byte order mark and the end of the line; `None` is anything.
    pub header: Option<&'a [u8]>,
    /// Count lines, so that each chunk knows at which it begins.
    pub counts_lines: bool,
    /// Read these chunks only; `None` is all of them.
    pub share: Option<Share<'a>>,
    /// Who looks at chunks on their way.
    pub watcher: Option<&'a mut dyn Watcher>,
    /// Where records go that outgrow the room in front of a chunk.
    pub longs: &'a mut dyn Longs,
}

/// What was read.
#[derive(Clone, Debug, Default)]
pub struct ReadTotals {
    /// Bytes of the inputs.
    pub bytes: u64,
    /// Bytes read from devices or the page cache, alignment included.
    pub device_bytes: u64,
    /// Bytes of those inputs that were compressed.
    pub packed_bytes: u64,
    /// What they became, of `bytes`.
    pub unpacked_bytes: u64,
    /// Bytes of the records in chunks: those of the inputs, with the newlines that were added, without what
    /// was skipped.
    pub record_bytes: u64,
    /// Bad records that were skipped.
    pub skipped: u64,
    /// Bytes that were skipped with them.
    pub skipped_bytes: u64,
    /// Newlines that were added.
    pub added_bytes: u64,
    /// Bytes that were taken off the ends of lines afterwards ([`crate::job::Job::drops_returns`]).
    pub returns_bytes: u64,
    /// Bytes of the first lines of inputs, which are no records, newlines that were added among them.
    pub header_bytes: u64,
    /// Those of the first input that has any.
    pub header: Kept,
    /// Bytes passed over because their record began before, of parts that are read apart: read again with that.
    pub passed_bytes: u64,
    /// The first of the skipped records, with place and cause.
    pub skipped_first: Vec<Error>,
}

impl ReadTotals {
    /// Bytes of the inputs as they lie on their devices.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        self.bytes - self.unpacked_bytes + self.packed_bytes
    }
}

/// So many skipped records are told one by one.
pub const SKIPPED_TOLD_MAX: usize = 100;

/// Reads everything and closes the queue.
///
/// # Errors
/// The first input that is unreadable, changed, or not what its format says.
pub fn read(reader: Reader<'_>, meter: &mut Meter<'_>) -> Result<ReadTotals> {
    let together = decompressed_together(&reader);
    let lanes = lanes(&reader, &together);
    let ring = reader
        .os
        .ring_over(lanes.len() * reader.plan.chunk_depth, lanes.len())
        .map_err(|error| Error::new(ErrorKind::Io, "starting to read", error.to_string()))?;
    let mut run = Run {
        ring,
        lanes,
        joint: Joint::default(),
        heading: Heading::default(),
        totals: ReadTotals::default(),
        unpacking: false,
        in_turn: VecDeque::new(),
        decompressed: Metrics::default(),
        reader,
        meter,
    };
    run.begin_share()?;
    run.read_all()?;
    run.read_compressed(together)?;
    run.end_share()?;
    run.meter.stage(Stage::Read).bytes_in = run.totals.device_bytes;
    run.meter.metrics.merge(&run.decompressed);
    for source in run.reader.sources {
        source.check_unchanged(run.reader.os, run.reader.as_of_start)?;
    }
    run.totals.header.check()?;
    if let Some(watcher) = &mut run.reader.watcher {
        watcher.must_decide(Some(run.totals.bytes));
    }
    run.reader.chunks.close();
    Ok(run.totals)
}

/// A lane for each device, if files are to be read side by side and there is memory for it; else one for all.
fn lanes(reader: &Reader<'_>, together: &[Compressed]) -> Vec<Lane> {
    let plan = reader.plan;
    let extents: Vec<Extent> = reader.sources.iter().map(Source::extent).collect();
    if !together.is_empty() {
        let lane_of: Vec<usize> = (reader.sources.iter())
            .map(|source| usize::from(source.codec.is_some()))
            .collect();
        let mut lanes = Chunks::side_by_side(&extents, &lane_of, plan.chunk_bytes as u64);
        return vec![Lane::new(lanes.swap_remove(0), plan.chunk_count)];
    }
    if let Some(share) = &reader.share {
        let share = Chunks::share(&extents, plan.chunk_bytes as u64, share.chunks.clone());
        return vec![Lane::new(share, plan.chunk_count)];
    }
    let devices = match reader.side_by_side {
        true => devices(reader.sources),
        false => Vec::new(),
    };
    // Two chunks of each, and one for the lane that goes on with a long record.
    let count = devices.len().min((plan.chunk_count - 1) / 2);
    if count <= 1 {
        let all = Chunks::new(&extents, plan.chunk_bytes as u64);
        return vec![Lane::new(all, plan.chunk_count)];
    }
    let lane_of = |source: &Source| {
        let device = devices
            .iter()
            .position(|&device| device == source.meta.identity.0);
        device.expect("every device is known") % count
    };
    let lane_of: Vec<usize> = reader.sources.iter().map(lane_of).collect();
    let lanes = Chunks::side_by_side(&extents, &lane_of, plan.chunk_bytes as u64).into_iter();
    lanes
        .map(|chunks| Lane::new(chunks, (plan.chunk_count - 1) / count))
        .collect()
}

/// The compressed inputs, if several are to be decompressed at once: they come behind all others.
fn decompressed_together(reader: &Reader<'_>) -> Vec<Compressed> {
    let Some(decoders) = &reader.plan.decoders else {
        return Vec::new();
    };
    if !reader.side_by_side || decoders.count < 2 {
        return Vec::new();
    }
    let extents: Vec<Extent> = reader.sources.iter().map(Source::extent).collect();
    let firsts = Chunks::first_chunks(&extents, reader.plan.chunk_bytes as u64);
    let compressed = reader.sources.iter().enumerate().zip(firsts);
    compressed
        .filter_map(|((input, source), first_chunk)| {
            Some(Compressed {
                input,
                first_chunk,
                codec: source.codec?.codec,
                begun: None,
            })
        })
        .collect()
}

/// Inputs that are read one after the other: those on one device, or all.
struct Lane {
    assigned: Chunks,
    /// All chunks have been assigned.
    ended: bool,
    /// Chunks that are being read or have been, and were not handed on, in order.
    begun: VecDeque<(Assignment, Option<Buffer>)>,
    /// The most of them, so that every lane always has memory to go on.
    begun_max: usize,
    in_flight: usize,
    joint: Joint,
    heading: Heading,
}

impl Lane {
    fn new(assigned: Chunks, begun_max: usize) -> Self {
        Self {
            assigned,
            ended: false,
            begun: VecDeque::new(),
            begun_max,
            in_flight: 0,
            joint: Joint::default(),
            heading: Heading::default(),
        }
    }
}

struct Run<'a, 'm, 'o> {
    reader: Reader<'a>,
    meter: &'m mut Meter<'o>,
    ring: Box<dyn Ring>,
    lanes: Vec<Lane>,
    /// That of the lane whose chunk is being handed on.
    joint: Joint,
    heading: Heading,
    totals: ReadTotals,
    /// What is read now is compressed: offsets are those of what it was.
    unpacking: bool,
    /// Compressed inputs whose chunks go on in this order, those that are not through; none where any order will do.
    in_turn: VecDeque<usize>,
    decompressed: Metrics,
}

/// The beginning of a record that goes on in the next chunk.
#[derive(Default)]
struct Joint {
    /// How much there is of it.
    begun: Begun,
    /// As long as it fits the room in front of a chunk.
    bytes: Vec<u8>,
    /// When it is longer, it goes to [`Reader::longs`].
    is_long: bool,
    /// The record is too long and what is left of it is passed over.
    skipping: bool,
}

impl Run<'_, '_, '_> {
    fn read_all(&mut self) -> Result<()> {
        loop {
            self.reader.stop.check()?;
            self.submit_reads()?;
            if self.ring.in_flight() > 0 {
                self.land_one()?;
                self.hand_on_landed()?;
            } else if self.lanes[0].assigned.stream_is_next() {
                self.read_stream()?;
            } else if self.lanes.iter().all(|lane| lane.ended) {
                return Ok(());
            }
        }
    }

    /// Starts reads while there are buffers, depth and chunks of files left.
    fn submit_reads(&mut self) -> Result<()> {
        while let Some(number) = self.idlest_lane() {
            let nothing_to_wait_for = self.ring.in_flight() == 0;
            let Some(buffer) = self.take_buffer(nothing_to_wait_for)? else {
                return Ok(());
            };
            let lane = &mut self.lanes[number];
            let Some(assignment) = lane.assigned.assign() else {
                lane.ended = true;
                continue;
            };
            let from = self.reader.plan.headroom_bytes;
            let file = Arc::clone(&self.reader.sources[assignment.input].file);
            let asked = match file.access {
                Access::Direct => align_up(assignment.bytes),
                Access::Cached => assignment.bytes,
            };
            self.ring.submit(Op {
                kind: OpKind::Read,
                file,
                offset: assignment.offset,
                buffer,
                range: from..from + asked as usize,
                tag: assignment.chunk,
            });
            self.meter.submitted(asked as usize);
            lane.in_flight += 1;
            lane.begun.push_back((assignment, None));
        }
        Ok(())
    }

    /// The lane with the fewest reads in flight of those that may have one more.
    fn idlest_lane(&self) -> Option<usize> {
        let depth = self.reader.plan.chunk_depth;
        let may = |lane: &Lane| {
            let has_room = lane.in_flight < depth && lane.begun.len() < lane.begun_max;
            has_room && !lane.ended && !lane.assigned.stream_is_next()
        };
        let lanes = self.lanes.iter().enumerate().filter(|(_, lane)| may(lane));
        lanes
            .min_by_key(|(_, lane)| lane.in_flight)
            .map(|(number, _)| number)
    }

    /// A free buffer for a chunk; waits for one only if told to.
    fn take_buffer(&mut self, wait: bool) -> Result<Option<Buffer>> {
        if let Some(buffer) = self.reader.pool.try_take() {
            return Ok(Some(buffer));
        }
        if !wait {
            return Ok(None);
        }
        self.must_decide();
        self.meter.lap(Stage::Read, State::Work);
        let buffer = self.reader.pool.take();
        self.meter.lap(Stage::Read, State::Memory);
        buffer.map(Some).ok_or_else(|| self.reader.stop.error())
    }

    /// The reader is about to wait for memory: nobody gives any back before it is decided where records go.
    fn must_decide(&mut self) {
        if let Some(watcher) = &mut self.reader.watcher {
            watcher.must_decide(None);
        }
    }

    fn land_one(&mut self) -> Result<()> {
        self.meter.lap(Stage::Read, State::Work);
        let done = self.ring.complete(true).expect("a read is in flight");
        self.meter.lap(Stage::Read, State::Device);
        self.meter.completed(done.op.range.len());
        let is_it = |begun: &(Assignment, Option<Buffer>)| begun.0.chunk == done.op.tag;
        let mut lanes = self.lanes.iter_mut();
        let lane = lanes.find(|lane| lane.begun.iter().any(is_it));
        let lane = lane.expect("every read in flight is known");
        lane.in_flight -= 1;
        let begun = lane.begun.iter_mut().find(|begun| is_it(begun));
        let (assignment, landed) = begun.expect("it was just found");
        let path = &done.op.file.path;
        let moved = done
            .result
            .map_err(|error| Error::io(DOING, path, &error).offset(assignment.offset))?;
        let assignment = *assignment;
        *landed = Some(done.op.buffer);
        if (moved as u64) < assignment.bytes {
            let end = assignment.offset + moved as u64;
            return Err(self.reader.sources[assignment.input].shortened(end));
        }
        self.totals.device_bytes += moved as u64;
        self.meter.read(assignment.bytes);
        Ok(())
    }

    fn hand_on_landed(&mut self) -> Result<()> {
        while let Some(number) = self.next_lane() {
            let (assignment, buffer) = self.lanes[number].begun.pop_front().expect("it is there");
            self.hand_on_of(number, &assignment, buffer.expect("it has landed"))?;
            if assignment.last {
                self.in_turn.pop_front();
            }
        }
        Ok(())
    }

    /// A lane whose next chunk has been read. One that is in the middle of a long record goes on with that before any
    /// other begins one: there is memory for one of them.
    fn next_lane(&self) -> Option<usize> {
        let is_ready = |lane: &Lane| {
            lane.begun
                .front()
                .is_some_and(|(_, buffer)| buffer.is_some())
        };
        let mut lanes = self.lanes.iter();
        if let Some(next) = self.in_turn.front() {
            return lanes.position(|lane| is_ready(lane) && lane.begun[0].0.input == *next);
        }
        match lanes.position(|lane| lane.joint.is_long) {
            Some(number) => Some(number).filter(|&number| is_ready(&self.lanes[number])),
            None => self.lanes.iter().position(is_ready),
        }
    }

    /// Hands on the next chunk of a lane.
    fn hand_on_of(&mut self, number: usize, assignment: &Assignment, buffer: Buffer) -> Result<()> {
        std::mem::swap(&mut self.joint, &mut self.lanes[number].joint);
        std::mem::swap(&mut self.heading, &mut self.lanes[number].heading);
        let result = self.hand_on(assignment, buffer);
        std::mem::swap(&mut self.joint, &mut self.lanes[number].joint);
        std::mem::swap(&mut self.heading, &mut self.lanes[number].heading);
        result
    }

    /// Reads one stream to its end, a chunk at a time.
    fn read_stream(&mut self) -> Result<()> {
        let stream = self.lanes[0].assigned.assign().expect("a stream is next");
        let source = &self.reader.sources[stream.input];
        let compressed = |codec, begun| Compressed {
            input: stream.input,
            first_chunk: stream.chunk,
            codec,
            begun,
        };
        if source.codec.is_some() {
            let together = self.compressed_from(&stream);
            return self.read_compressed(together);
        }
        let decoders = self.reader.plan.decoders.as_ref();
        let may_be_packed = source.made.is_none();
        let looks = may_be_packed && decoders.is_some_and(|decoders| decoders.of_streams);
        let mut offset = 0;
        let mut count = 0;
        loop {
            let mut buffer = self.take_buffer(true)?.expect("waited until there was one");
            let bytes = self.fill_from_stream(source, &mut buffer, offset)?;
            let from = self.reader.plan.headroom_bytes;
            let start = &buffer[from..from + bytes];
            if let (true, Some(codec)) = (looks && count == 0, codec_of(start)) {
                self.totals.device_bytes += bytes as u64;
                self.totals.packed_bytes += bytes as u64;
                let begun = Some((buffer, from..from + bytes));
                return self.read_compressed(vec![compressed(codec, begun)]);
            }
            let last = bytes < self.reader.plan.chunk_bytes;
            let assignment = Assignment {
                chunk: stream.chunk + count,
                offset,
                bytes: bytes as u64,
                last,
                ..stream
            };
            count += 1;
            offset += bytes as u64;
            self.totals.device_bytes += bytes as u64;
            self.hand_on_of(0, &assignment, buffer)?;
            if last {
                return Ok(());
            }
        }
    }

    fn fill_from_stream(
        &mut self,
        source: &Source,
        buffer: &mut Buffer,
        offset: u64,
    ) -> Result<usize> {
        let Reader { os, stop, plan, .. } = &self.reader;
        let from = plan.headroom_bytes;
        let into = &mut buffer[from..from + plan.chunk_bytes];
        fill(*os, source, into, offset, stop, self.meter)
    }

    /// Makes a chunk of what was read and hands it on.
    fn hand_on(&mut self, assignment: &Assignment, mut buffer: Buffer) -> Result<()> {
        let order = self.reader.plan.input_order();
        let mut from = self.reader.plan.headroom_bytes;
        let mut to = from + assignment.bytes as usize;
        let headroom_offset = assignment.offset;
        self.totals.bytes += assignment.bytes;
        from += self.pass_mark(&buffer[from..to], assignment);
        if assignment.last && order.format().has_delimiter() {
            to = self.end_lines(&mut buffer, from, to);
        }
        if assignment.offset == 0 {
            self.heading = Heading::new(self.reader.header_lines);
        }
        if self.reader.header_lines > 0 {
            from += self.take_heading(&buffer[from..to], assignment)?;
        }
        if self.joint.skipping {
            let end = order.first_end(&buffer[from..to], &self.joint.begun);
            let passed = end.unwrap_or(to - from);
            self.totals.skipped_bytes += passed as u64;
            order.see(&mut self.joint.begun, &buffer[from..from + passed]);
            if end.is_some() || assignment.last {
                self.joint = Joint::default();
            }
            if end.is_none() {
                return Ok(());
            }
            from += passed;
        }
        if self.joint.is_long {
            let end = order.first_end(&buffer[from..to], &self.joint.begun);
            let Some(end) = end.or(self.unclosed_end(to - from, assignment)) else {
                return self.go_on(&buffer[from..to], assignment);
            };
            self.lengthen(&buffer[from..from + end], assignment)?;
            // If that made it too long, its end has been passed over too.
            self.joint.skipping = false;
            from += end;
        }
        let is_long = std::mem::take(&mut self.joint.is_long);
        let long = is_long.then(|| self.reader.longs.end());
        if long.is_some() || self.joint.bytes.is_empty() {
            self.joint.begun = Begun::default();
        }
        let have = self.joint.bytes.len();
        let end = match self.unclosed_end(to - from, assignment) {
            Some(end) => end,
            None => order.last_end(&buffer[from..to], &self.joint.begun),
        };
        if end == 0 && long.is_none() {
            return self.go_on(&buffer[from..to], assignment);
        }
        let tail = from + end..to;
        let records = from - have..from + end;
        buffer[from - have..from].copy_from_slice(&self.joint.bytes);
        self.joint.bytes.clear();
        self.joint.begun = Begun::default();
        self.go_on(&buffer[tail], assignment)?;
        let records_offset = (headroom_offset + records.start as u64)
            .saturating_sub(self.reader.plan.headroom_bytes as u64);
        let line = self.heading.line;
        if self.reader.counts_lines {
            self.heading.line += newlines(&buffer[records.clone()]);
            if let Some(Long::Whole(long)) = &long {
                self.heading.line += newlines(long);
            }
        }
        self.send(Chunk {
            number: assignment.chunk,
            input: assignment.input,
            offset: records_offset,
            line,
            is_unpacked: self.unpacking,
            buffer,
            records,
            long,
            goes: Goes::ByKey,
        })
    }

    /// Where the last record of an input ends in what is left of it, `bytes` bytes, if a quote in it may never be closed:
    /// it is handed on as it is, and told with what else is bad, the first of all.
    fn unclosed_end(&self, bytes: usize, assignment: &Assignment) -> Option<usize> {
        let may_be_unclosed = matches!(self.reader.plan.input_order().format(), Format::Quoted(_));
        (may_be_unclosed && assignment.last).then_some(bytes)
    }

    fn send(&mut self, chunk: Chunk) -> Result<()> {
        let long_bytes = chunk.long.as_ref().map_or(0, Long::bytes);
        let record_bytes = chunk.records.len() as u64 + long_bytes;
        self.totals.record_bytes += record_bytes;
        if let Some(watcher) = &mut self.reader.watcher {
            watcher.see(&chunk);
        }
        self.meter.lap(Stage::Read, State::Work);
        let sent = self.reader.chunks.push(chunk);
        self.meter.lap(Stage::Read, State::Output);
        let totals = self.meter.stage(Stage::Read);
        totals.bytes_in = self.totals.device_bytes;
        totals.bytes_out += record_bytes;
        sent.map_err(|_| self.reader.stop.error())
    }

    /// What is left of a chunk behind its whole records: a part of one that goes on in the next chunk. If there
    /// is none, the input is cut off.
    fn go_on(&mut self, part: &[u8], assignment: &Assignment) -> Result<()> {
        if !assignment.last {
            return self.lengthen(part, assignment);
        }
        let joint = std::mem::take(&mut self.joint);
        if joint.is_long {
            self.reader.longs.forget();
        }
        let mut begun = joint.begun;
        self.reader.plan.input_order().see(&mut begun, part);
        if begun.bytes == 0 {
            return Ok(());
        }
        self.totals.skipped_bytes += begun.bytes;
        let offset = assignment.offset + assignment.bytes - begun.bytes;
        let wanted = match self.reader.plan.input_order().format() {
            Format::Fixed(size) => u64::from(size),
            _ => begun.kv_bytes().unwrap_or(KV_HEADER_BYTES as u64),
        };
        self.skip(assignment, offset, || {
            let have = begun.bytes;
            format!("the last record is cut off: it has {have} of {wanted} bytes")
        })
    }

    /// Adds to a record that goes on: beside the chunks where it outgrows the room in front of one.
    fn lengthen(&mut self, part: &[u8], assignment: &Assignment) -> Result<()> {
        let joint = &mut self.joint;
        let begun = joint.begun.bytes;
        self.reader.plan.input_order().see(&mut joint.begun, part);
        let grown = joint.begun.bytes as usize;
        // Of a pair it is known from the first bytes how long it is.
        let told = match self.reader.plan.input_order().format() {
            Format::Kv => joint.begun.kv_bytes(),
            Format::Lines | Format::Quoted(_) | Format::Fixed(_) => None,
        };
        let needed = told.unwrap_or(grown as u64);
        let fits = needed <= self.reader.plan.record_bytes_max as u64;
        if fits && !joint.is_long && grown <= self.reader.plan.headroom_bytes {
            joint.bytes.extend_from_slice(part);
            return Ok(());
        }
        if fits {
            if !std::mem::replace(&mut joint.is_long, true) {
                if !self.reader.longs.has_room() {
                    self.must_decide();
                }
                self.reader.longs.append(&self.joint.bytes, self.meter)?;
                self.joint.bytes.clear();
            }
            return self.reader.longs.append(part, self.meter);
        }
        joint.bytes.clear();
        if std::mem::take(&mut joint.is_long) {
            self.reader.longs.forget();
        }
        joint.skipping = true;
        self.totals.skipped_bytes += grown as u64;
        let end = assignment.offset + assignment.bytes;
        let offset = match begun {
            0 => end - part.len() as u64,
            _ => assignment.offset.saturating_sub(begun),
        };
        let plan = self.reader.plan;
        self.skip(assignment, offset, || too_long(plan, told, grown as u64))
    }

    /// The end of an input of lines: one that lacks its newline gets it. Answers where the input's bytes end
    /// in the buffer.
    fn end_lines(&mut self, buffer: &mut Buffer, from: usize, to: usize) -> usize {
        let delimiter = self.reader.plan.input_order().delimiter();
        let missing = match buffer[from..to].last() {
            Some(&byte) => byte != delimiter,
            None => self.joint.begun.bytes > 0,
        };
        if missing {
            buffer[to] = delimiter;
            self.totals.added_bytes += 1;
        }
        to + usize::from(missing)
    }

    /// Counts a bad record, or fails because of it.
    fn skip(
        &mut self,
        assignment: &Assignment,
        offset: u64,
        cause: impl FnOnce() -> String,
    ) -> Result<()> {
        let path = &self.reader.sources[assignment.input].file.path;
        let mut cause = cause();
        if self.unpacking {
            cause += crate::text::OF_UNPACKED;
        }
        let error = Error::new(ErrorKind::Input, DOING, cause)
            .at(path)
            .offset(offset);
        if matches!(self.reader.plan.input_order().format(), Format::Quoted(_)) {
            // Most likely a quote is out of place, and what is left of the file looks like one record.
            return Err(error);
        }
        let error = self.reader.allowed.leave_out(1, error)?;
        self.totals.skipped += 1;
        if self.totals.skipped_first.len() < SKIPPED_TOLD_MAX {
            self.totals.skipped_first.push(error);
        }
        Ok(())
    }
}

/// Fills `into` from a stream of which `offset` bytes have come before, first from what has been read of it already.
/// Answers how many bytes there were: fewer only at its end.
fn fill(
    os: &dyn Os,
    source: &Source,
    into: &mut [u8],
    offset: u64,
    stop: &Stop,
    meter: &mut Meter<'_>,
) -> Result<usize> {
    let mut filled = 0;
    meter.lap(Stage::Read, State::Work);
    while filled < into.len() {
        let at = offset + filled as u64;
        let rest = &mut into[filled..];
        let moved = match source.ahead_into(at as usize, rest) {
            0 => source.read_stream(os, rest, at, stop)?,
            count => count,
        };
        if moved == 0 {
            break;
        }
        filled += moved;
        meter.read(moved as u64);
    }
    meter.lap(Stage::Read, State::Device);
    Ok(filled)
}

/// What is wrong with a record of which there are `grown` bytes, and which has as many as it `told`, if it did.
fn too_long(plan: &Plan, told: Option<u64>, grown: u64) -> String {
    let most = crate::text::bytes(plan.record_bytes_max as u64);
    let mut has = match told {
        Some(bytes) => format!("by its lengths it has {}", crate::text::bytes(bytes)),
        None => format!("it has {} or more", crate::text::bytes(grown)),
    };
    if let Format::Quoted(_) = plan.input_order().format() {
        has += ", or a quote in it is never closed";
    }
    format!("a record is longer than {most}, the most this memory allows: {has}")
}

/// Calls `visit` with some records of `bytes`, spread evenly, the first of which has `begun` before them:
/// how samples are drawn. At most `count_max` records, only whole ones.
pub fn sample_records(
    order: &Order,
    bytes: &[u8],
    begun: &Begun,
    count_max: usize,
    mut visit: impl FnMut(&[u8]),
) {
    let mut at = if begun.bytes == 0 {
        0
    } else {
        match order.first_end(bytes, begun) {
            Some(end) => end,
            None => return,
        }
    };
    let stride = bytes.len().div_ceil(count_max.max(1));
    let mut wanted = at;
    while let Some(length) = order.first_end(&bytes[at..], &Begun::default()) {
        if at >= wanted {
            visit(&bytes[at..at + length]);
            wanted = at + stride;
        }
        at += length;
    }
}
