//! Rows that are in order to pieces: sorted files, streams and runs, all at once.
//!
//! One thread reads all files and runs. It owns a buffer until the piece that it makes of it is in its row's queue.
//! Which row a free buffer is for is **forecast** (Knuth, The Art of Computer Programming 3, 5.4.9): the row whose
//! last key in memory is the least runs out first. A row with reads in flight is thought to go on as it did: each
//! takes its keys as far on as the last piece did. So rows of like keys are read in turn, and of rows that follow
//! one another each with as many reads in flight as there are. Only the first words of keys are compared for that;
//! where they tell nothing, rows get buffers in turn. A row that the merge waits for goes first whatever was forecast
//! ([`crate::rows`]), once all rows have given something.
//!
//! ```text
//!  row 0   |.. merged ..|-- in memory --|k                       k, the least of the last keys: row 0 is next
//!  row 1   |.. merged ..|-- in memory --|-- in memory --|s
//!  row 2   |.. merged ..|-- in memory --|q   = in flight =|      thought to end at q and as much again as its last piece
//! ```
//!
//! A stream is read by a thread of its own, into buffers of its own, because nobody can say when it will have what, and so
//! is a compressed file (`alone`).

mod alone;
mod cut;

use std::collections::{BTreeSet, VecDeque};

use sortmill_io::frame::Header;
use sortmill_io::sync::{Arc, Mutex};
use sortmill_io::{Access, Buffer, File, Op, OpKind, Os, Pool, Ring, align_up};

use super::{DOING, Kept, ReadTotals, Source};
use crate::block::disk_bytes;
use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::metrics::{Meter, Stage, State};
use crate::order::Order;
use crate::partitions::damaged;
use crate::plan::{Merging, Plan};
use crate::queue::Stop;
use crate::rows::{Piece, RowQueues, Run};
use crate::spread::Spot;
use crate::temps::Temps;
use cut::{Cutter, unpack};

pub use alone::{read_packed_row, read_stream_row};

/// What the reader of rows works with.
#[derive(Clone, Copy)]
pub struct SortedReader<'a> {
    /// All I/O.
    pub os: &'a dyn Os,
    /// Sizes.
    pub plan: &'a Plan,
    /// How rows are merged; the plan's.
    pub merging: &'a Merging,
    /// Where runs lie.
    pub temps: &'a Temps<'a>,
    /// Memory for what is read ahead: a buffer for each row that is read here, and at least one beside.
    pub pool: &'a Pool,
    /// Where pieces go.
    pub queues: &'a RowQueues,
    /// Ends the job.
    pub stop: &'a Stop,
    /// The fingerprint's.
    pub key: u64,
    /// The first lines of inputs.
    pub headings: &'a Headings<'a>,
}

/// The first lines of inputs, which are no records.
pub struct Headings<'a> {
    /// How many there are of each.
    pub lines: u64,
    /// What those of each must be, if that is known.
    pub expected: Option<&'a [u8]>,
    /// All inputs: which of them comes first.
    pub sources: &'a [Source],
    /// Those of the first one that has any, once every row has been begun.
    pub kept: Mutex<Kept>,
}

impl Headings<'_> {
    /// The number of the input that `source` is.
    fn input(&self, source: &Source) -> usize {
        let mut sources = self.sources.iter();
        let position = sources.position(|one| std::ptr::eq(one, source));
        position.expect("it is one of the inputs")
    }
}

/// Where a row comes from.
pub enum RowOrigin<'a> {
    /// A file that is not empty.
    File(&'a Source),
    /// A run.
    Run(Run),
}

/// What was read of some rows.
#[derive(Default)]
pub struct RowsRead {
    /// Of inputs.
    pub totals: ReadTotals,
    /// Of the records of inputs.
    pub fingerprint: Fingerprint,
    /// Bytes read of runs.
    pub run_bytes: u64,
}

impl RowsRead {
    /// Adds what was read of others.
    pub fn merge(&mut self, other: &Self) {
        self.totals.bytes += other.totals.bytes;
        self.totals.device_bytes += other.totals.device_bytes;
        self.totals.packed_bytes += other.totals.packed_bytes;
        self.totals.unpacked_bytes += other.totals.unpacked_bytes;
        self.totals.record_bytes += other.totals.record_bytes;
        self.totals.added_bytes += other.totals.added_bytes;
        self.totals.header_bytes += other.totals.header_bytes;
        self.fingerprint.merge(&other.fingerprint);
        self.run_bytes += other.run_bytes;
    }
}

/// Reads files and runs, each under its row's number, to their ends.
///
/// # Errors
/// The first that is unreadable, changed, damaged, or not what its format says.
pub fn read_rows<'a>(
    reader: &SortedReader<'a>,
    rows: Vec<(usize, RowOrigin<'a>)>,
    meter: &mut Meter<'_>,
) -> Result<RowsRead> {
    let depth = reader.merging.read_depth;
    let ring = reader
        .os
        .ring_over(depth, device_count(&rows))
        .map_err(|error| Error::new(ErrorKind::Io, "starting to read", error.to_string()))?;
    let lanes = rows
        .into_iter()
        .map(|(row, from)| Lane::new(reader, row, from));
    let mut run = Reads {
        reader,
        ring,
        lanes: lanes.collect(),
        read: RowsRead::default(),
        meter,
    };
    // A run of inputs that held nothing but their first lines has no block whose end would be that of its row.
    for lane in run.lanes.iter().filter(|lane| lane.is_all_begun()) {
        reader.queues.end(lane.row);
    }
    loop {
        reader.stop.check()?;
        run.submit(depth)?;
        if run.ring.in_flight() == 0 {
            break;
        }
        run.land_one()?;
    }
    for lane in run.lanes {
        if let Some(cutter) = lane.cutter {
            run.read.merge(&cutter.read);
        }
    }
    Ok(run.read)
}

/// The devices that files lie on; runs are thought to lie on one of their own.
fn device_count(rows: &[(usize, RowOrigin<'_>)]) -> usize {
    let device = |(_, from): &(usize, RowOrigin<'_>)| match from {
        RowOrigin::File(source) => Some(source.meta.identity.0),
        RowOrigin::Run(_) => None,
    };
    let devices: BTreeSet<Option<u64>> = rows.iter().map(device).collect();
    devices.len()
}

/// Hands on a piece, if there is one.
fn put(
    reader: &SortedReader<'_>,
    row: usize,
    piece: Option<Piece>,
    meter: &mut Meter<'_>,
) -> Result<()> {
    meter.lap(Stage::Cut, State::Work);
    let Some(piece) = piece else {
        return Ok(());
    };
    let bytes = piece.records.len() as u64;
    let totals = meter.stage(Stage::Cut);
    totals.bytes_in += bytes;
    totals.bytes_out += bytes;
    reader
        .queues
        .put(row, piece)
        .map_err(|_| reader.stop.error())
}

/// Counts bytes that were read.
fn count_in(meter: &mut Meter<'_>, bytes: usize) {
    let totals = meter.stage(Stage::Read);
    totals.bytes_in += bytes as u64;
    totals.bytes_out += bytes as u64;
}

/// The first words of a key, as a number that a forecast can go on from.
type Forecast = [u64; 4];

/// One row that is read.
struct Lane<'a> {
    row: usize,
    from: Place<'a>,
    /// Of inputs.
    cutter: Option<Cutter<'a>>,
    /// Reads that were begun, and of those the buffers that have landed, in order.
    begun: VecDeque<(Read, Option<Buffer>)>,
    /// How many there were.
    read_count: u32,
    in_flight: usize,
    /// The keys with which the last piece began and ended, once there is one.
    span: Option<(Forecast, Forecast)>,
}

/// What is still to be read.
enum Place<'a> {
    File { source: &'a Source, offset: u64 },
    Run(std::vec::IntoIter<(Header, Spot)>),
}

/// A read.
#[derive(Clone, Copy)]
struct Read {
    /// Which of the job's.
    tag: u64,
    offset: u64,
    bytes: usize,
    /// Of a run.
    block: Option<(Header, Spot)>,
    is_last: bool,
}

impl Read {
    fn doing(&self) -> &'static str {
        match self.block {
            None => DOING,
            Some(_) => "reading back temporary data",
        }
    }
}

impl<'a> Lane<'a> {
    fn new(reader: &SortedReader<'a>, row: usize, from: RowOrigin<'a>) -> Self {
        let (from, cutter) = match from {
            RowOrigin::File(source) => {
                let cutter = Cutter::new(reader, source);
                (Place::File { source, offset: 0 }, Some(cutter))
            }
            RowOrigin::Run(run) => (Place::Run(run.blocks.into_iter()), None),
        };
        Self {
            row,
            from,
            cutter,
            begun: VecDeque::new(),
            read_count: 0,
            in_flight: 0,
            span: None,
        }
    }

    fn is_all_begun(&self) -> bool {
        match &self.from {
            Place::File { source, offset } => *offset == source.meta.bytes,
            Place::Run(blocks) => blocks.len() == 0,
        }
    }

    /// The next read, its file, and where in a buffer it goes.
    fn next(&mut self, reader: &SortedReader<'_>, tag: u64) -> Result<(Read, Arc<File>, usize)> {
        match &mut self.from {
            Place::File { source, offset } => {
                let left = source.meta.bytes - *offset;
                let bytes = left.min(reader.merging.read_bytes as u64);
                let read = Read {
                    tag,
                    offset: *offset,
                    bytes: bytes as usize,
                    block: None,
                    is_last: bytes == left,
                };
                *offset += bytes;
                Ok((
                    read,
                    Arc::clone(&source.file),
                    reader.merging.headroom_bytes,
                ))
            }
            Place::Run(blocks) => {
                let (header, spot) = blocks.next().expect("there is another block");
                let read = Read {
                    tag,
                    offset: spot.offset,
                    bytes: disk_bytes(&header),
                    block: Some((header, spot)),
                    is_last: blocks.len() == 0,
                };
                Ok((read, reader.temps.file(spot.folder)?, 0))
            }
        }
    }

    /// The key with which what has been read or is being read will end. `None` before the first record: nothing comes
    /// out before every row has been begun, and there is a buffer for each. One that held no more than first lines, which
    /// are no records, goes to its row again: were it another's, the merge would wait for this row and nobody give one back.
    fn forecast(&self) -> Option<Forecast> {
        match self.span {
            Some((first, last)) => Some(go_on(first, last, self.in_flight as u64)),
            None if self.begun.is_empty() => None,
            None => Some([u64::MAX; 4]),
        }
    }
}

/// The first words of the key of the record that `bytes` begin with.
fn words(order: &Order, bytes: &[u8]) -> Forecast {
    let record = &bytes[..order.record_bytes(bytes)];
    std::array::from_fn(|depth| order.word(record, depth))
}

/// `times` as far again as from `first` to `last`.
fn go_on(first: Forecast, mut last: Forecast, times: u64) -> Forecast {
    let differs = (0..last.len()).find(|&at| first[at] != last[at]);
    if let (Some(at), 1..) = (differs, times) {
        let span = last[at].saturating_sub(first[at]);
        last[at] = last[at].saturating_add(span.saturating_mul(times));
        last[at + 1..].fill(u64::MAX);
    }
    last
}

struct Reads<'r, 'a, 'm, 'o> {
    reader: &'r SortedReader<'a>,
    ring: Box<dyn Ring>,
    lanes: Vec<Lane<'a>>,
    read: RowsRead,
    meter: &'m mut Meter<'o>,
}

impl Reads<'_, '_, '_, '_> {
    /// Starts reads while there are buffers, depth and rows that go on.
    fn submit(&mut self, depth: usize) -> Result<()> {
        while self.ring.in_flight() < depth && self.lanes.iter().any(|lane| !lane.is_all_begun()) {
            // First the buffer, then the row: so a row that gave its last one back is seen to be waited for.
            let Some(buffer) = self.take_buffer()? else {
                return Ok(());
            };
            let number = self.choose();
            let lane = &mut self.lanes[number];
            let tag = (number as u64) << 32 | u64::from(lane.read_count);
            let (read, file, at) = lane.next(self.reader, tag)?;
            let asked = match file.access {
                Access::Direct => align_up(read.bytes as u64) as usize,
                Access::Cached => read.bytes,
            };
            self.ring.submit(Op {
                kind: OpKind::Read,
                offset: read.offset,
                file,
                buffer,
                range: at..at + asked,
                tag,
            });
            self.meter.submitted(asked);
            lane.read_count += 1;
            lane.in_flight += 1;
            lane.begun.push_back((read, None));
        }
        Ok(())
    }

    /// Waits for a read, and hands on what has landed of its row.
    fn land_one(&mut self) -> Result<()> {
        self.meter.lap(Stage::Read, State::Work);
        let done = self.ring.complete(true).expect("a read is in flight");
        self.meter.lap(Stage::Read, State::Device);
        let asked = done.op.range.len();
        self.meter.completed(asked);
        let number = (done.op.tag >> 32) as usize;
        let lane = &mut self.lanes[number];
        lane.in_flight -= 1;
        let begun = lane
            .begun
            .iter_mut()
            .find(|(read, _)| read.tag == done.op.tag);
        let (read, landed) = begun.expect("every read in flight is known");
        let path = &done.op.file.path;
        let moved = done
            .result
            .map_err(|error| Error::io(read.doing(), path, &error).offset(read.offset))?;
        let mut buffer = done.op.buffer;
        match &lane.from {
            Place::File { source, .. } if moved < read.bytes => {
                return Err(source.shortened(read.offset + moved as u64));
            }
            Place::File { .. } => self.read.totals.device_bytes += moved as u64,
            Place::Run(_) => {
                self.read.run_bytes += asked as u64;
                // A file that is shorter than it was shows as a block that does not open.
                buffer[done.op.range.start + moved..done.op.range.end].fill(0);
            }
        }
        self.meter.read(read.bytes as u64);
        count_in(self.meter, read.bytes);
        *landed = Some(buffer);
        self.hand_on(number)
    }

    /// Makes pieces of what has landed of a row, as far as nothing before it is still in flight.
    fn hand_on(&mut self, number: usize) -> Result<()> {
        let reader = self.reader;
        let lane = &mut self.lanes[number];
        while let Some((_, Some(_))) = lane.begun.front() {
            let (read, buffer) = lane.begun.pop_front().expect("it was there");
            let buffer = buffer.expect("it has landed");
            let order = &reader.plan.order;
            let piece = match (&mut lane.cutter, read.block) {
                (Some(cutter), _) => cutter.cut(buffer, read.bytes, read.offset, read.is_last)?,
                (None, Some((header, spot))) => {
                    let piece = unpack(buffer, &header, order);
                    Some(piece.map_err(|why| damaged(reader.temps, spot, why))?)
                }
                (None, None) => unreachable!("a run is read in blocks"),
            };
            if let Some((piece, last)) = &piece {
                let forecast = |from: usize| words(order, &piece.buffer[from..piece.records.end]);
                lane.span = Some((forecast(piece.records.start), forecast(*last)));
            }
            put(reader, lane.row, piece.map(|(piece, _)| piece), self.meter)?;
            if read.is_last {
                reader.queues.end(lane.row);
            }
        }
        Ok(())
    }

    /// A free buffer; waits for one only if nothing is in flight.
    fn take_buffer(&mut self) -> Result<Option<Buffer>> {
        let SortedReader { pool, stop, .. } = *self.reader;
        if let Some(buffer) = pool.try_take() {
            return Ok(Some(buffer));
        }
        if self.ring.in_flight() > 0 {
            return Ok(None);
        }
        self.meter.lap(Stage::Read, State::Work);
        let buffer = pool.take();
        self.meter.lap(Stage::Read, State::Memory);
        buffer.map(Some).ok_or_else(|| stop.error())
    }

    /// The lane whose row is read next, of those that go on: one of which nothing has come, then the one that is waited for, then
    /// the one that will run out first.
    fn choose(&self) -> usize {
        let queues = self.reader.queues;
        let wanted = queues.wanted();
        // It may still be told of a row whose piece the merge has just taken. As long as rows have nothing, no buffer comes back
        // for what that row would take: it would be one of theirs.
        let rank = |lane: &Lane<'_>| {
            let ahead = lane.begun.len() + queues.waiting(lane.row);
            let is_wanted = wanted == Some(lane.row) && ahead == 0;
            let forecast = lane.forecast();
            (forecast.is_some(), !is_wanted, forecast, ahead)
        };
        let lanes = self.lanes.iter().enumerate();
        let going_on = lanes.filter(|(_, lane)| !lane.is_all_begun());
        let first = going_on.min_by_key(|(_, lane)| rank(lane));
        first.expect("a lane goes on").0
    }
}
