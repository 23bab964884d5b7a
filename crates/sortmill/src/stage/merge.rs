//! A partition larger than memory: sorted pieces of it as runs in the temporary file, then one merge.
//!
//! The fallback for skew that neither sampling nor dividing caught; the extra bytes are reported. A run is
//! framed as blocks are, a segment for each change of chunk, so that ties can be broken by place: equal
//! keys by chunk, and within a chunk by run, because pieces follow the order in which blocks were filled.
//! A tree of losers holds the runs ([`crate::losers`]).

mod rows;

use std::cmp::Ordering;
use std::ops::Range;

use sortmill_io::frame::{Damage, HEADER_BYTES, Header, Segment};
use sortmill_io::sync::atomic::{AtomicU32, Ordering as Memory};
use sortmill_io::{Buffer, Op, OpKind, Pool, Ring};

use crate::block::{Open, Stored, disk_bytes, record_bytes_max};
use crate::bodies::BodyReader;
use crate::error::{Error, ErrorKind, Result};
use crate::long::{Item, Stub};
use crate::losers::{Code, Losers, Rows};
use crate::metrics::{Meter, Stage, State};
use crate::order::Order;
use crate::partitions::damaged;
use crate::queue::Stop;
use crate::rows::Run;
use crate::spread::Spot;
use crate::temps::Temps;

pub use rows::{Follows, Late, RowMerge, merge_rows};

/// The partition number that marks a block as part of a run; the run's own number is added.
const RUN: u32 = 1 << 31;

/// What run writing and merging work with. Everything is done by one thread, an operation at a time.
pub struct Device<'a> {
    /// One read or write at a time.
    pub ring: &'a mut dyn Ring,
    /// The temporary files.
    pub temps: &'a Temps<'a>,
    /// Memory for blocks.
    pub pool: &'a Pool,
    /// Reads long records where their heads do not tell.
    pub bodies: BodyReader<'a>,
    /// Ends the job.
    pub stop: &'a Stop,
    /// The job's number, for headers.
    pub job: u64,
    /// This node's.
    pub node: u32,
    /// How many runs the job has written, over all its partitions.
    pub run_count: &'a AtomicU32,
    /// Bytes written and read, for the report.
    pub written_bytes: u64,
    /// Bytes read.
    pub read_bytes: u64,
}

impl Device<'_> {
    /// A number for a new run, one that no other run of the job has.
    #[must_use]
    pub fn next_run(&self) -> u32 {
        self.run_count.fetch_add(1, Memory::SeqCst)
    }

    fn transfer(&mut self, op: Op, doing: &str, meter: &mut Meter<'_>) -> Result<Buffer> {
        let asked = op.range.len();
        self.ring.submit(op);
        meter.submitted(asked);
        meter.lap(Stage::Merge, State::Work);
        let done = self.ring.complete(true).expect("an operation is in flight");
        meter.lap(Stage::Merge, State::Device);
        meter.completed(asked);
        let moved = done
            .result
            .map_err(|error| Error::io(doing, &done.op.file.path, &error).offset(done.op.offset))?;
        match done.op.kind {
            OpKind::Read => meter.read(asked as u64),
            OpKind::Write => meter.wrote(asked as u64),
        }
        let mut buffer = done.op.buffer;
        buffer[moved..asked].fill(0);
        Ok(buffer)
    }

    /// A free block.
    ///
    /// # Errors
    /// The job's, when it is ending.
    pub fn take_block(&mut self, meter: &mut Meter<'_>) -> Result<Buffer> {
        meter.lap(Stage::Merge, State::Work);
        let buffer = self.pool.take();
        meter.lap(Stage::Merge, State::Memory);
        buffer.ok_or_else(|| self.stop.error())
    }

    /// Reads the block with `header` that lies as `stored` says, without looking into it.
    ///
    /// # Errors
    /// A read that failed.
    pub fn read(
        &mut self,
        header: &Header,
        stored: Stored,
        meter: &mut Meter<'_>,
    ) -> Result<Buffer> {
        let buffer = self.take_block(meter)?;
        let (bytes, spot) = (stored.disk_bytes(header), stored.spot);
        self.read_bytes += bytes as u64;
        let op = Op {
            kind: OpKind::Read,
            file: self.temps.file(spot.folder)?,
            offset: spot.offset,
            buffer,
            range: 0..bytes,
            tag: 0,
        };
        self.transfer(op, "reading back temporary data", meter)
    }

    fn write(&mut self, header: Header, mut buffer: Buffer, meter: &mut Meter<'_>) -> Result<Spot> {
        header.seal(&mut buffer);
        let bytes = disk_bytes(&header);
        buffer[HEADER_BYTES + header.payload_bytes as usize..bytes].fill(0);
        let spot = self.temps.allocate(bytes as u64, None)?;
        self.written_bytes += bytes as u64;
        let op = Op {
            kind: OpKind::Write,
            file: self.temps.file(spot.folder)?,
            offset: spot.offset,
            buffer,
            range: 0..bytes,
            tag: 0,
        };
        self.transfer(op, "writing temporary data", meter)?;
        Ok(spot)
    }
}

/// Takes sorted records, each with its chunk, and writes them as one run.
pub struct RunWriter {
    number: u32,
    run: Run,
    open: Option<Open>,
    /// The longest record.
    record_bytes_max: usize,
    /// Neighbours of one chunk, which will share a segment.
    chunk: u64,
    count: u32,
    same: Vec<u8>,
}

impl RunWriter {
    /// Begins run number `number`; it has at most one block in hand.
    #[must_use]
    pub fn new(number: u32, block_bytes: usize) -> Self {
        let record_bytes_max = record_bytes_max(block_bytes);
        Self {
            number,
            run: Run { blocks: Vec::new() },
            open: None,
            record_bytes_max,
            chunk: 0,
            count: 0,
            same: Vec::with_capacity(record_bytes_max),
        }
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// A write that failed.
    pub fn put(
        &mut self,
        chunk: u64,
        item: &Item<'_>,
        device: &mut Device<'_>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let record = match item {
            Item::Record(record) => record,
            Item::Stub(stub) => return self.put_stub(chunk, stub, device, meter),
        };
        let grown = self.same.len() + record.len();
        if self.count > 0 && (chunk != self.chunk || grown > self.record_bytes_max / 8) {
            self.put_same(device, meter)?;
        }
        self.chunk = chunk;
        self.same.extend_from_slice(record);
        self.count += 1;
        Ok(())
    }

    fn put_stub(
        &mut self,
        chunk: u64,
        stub: &Stub<'_>,
        device: &mut Device<'_>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        if self.count > 0 {
            self.put_same(device, meter)?;
        }
        if !self.open(device, meter)?.put_stub(chunk, stub) {
            self.close(device, meter)?;
            let fits = self.open(device, meter)?.put_stub(chunk, stub);
            assert!(fits, "it fits an empty block");
        }
        Ok(())
    }

    /// The last record has been put.
    ///
    /// # Errors
    /// A write that failed.
    pub fn finish(mut self, device: &mut Device<'_>, meter: &mut Meter<'_>) -> Result<Run> {
        if self.count > 0 {
            self.put_same(device, meter)?;
        }
        self.close(device, meter)?;
        Ok(self.run)
    }

    fn put_same(&mut self, device: &mut Device<'_>, meter: &mut Meter<'_>) -> Result<()> {
        let (chunk, count) = (self.chunk, self.count);
        let same = std::mem::take(&mut self.same);
        if !self.open(device, meter)?.put_bytes(chunk, count, &same) {
            self.close(device, meter)?;
            let fits = self.open(device, meter)?.put_bytes(chunk, count, &same);
            assert!(fits, "it fits an empty block");
        }
        self.same = same;
        self.same.clear();
        self.count = 0;
        Ok(())
    }

    fn open(&mut self, device: &mut Device<'_>, meter: &mut Meter<'_>) -> Result<&mut Open> {
        if self.open.is_none() {
            self.open = Some(Open::new(device.take_block(meter)?));
        }
        Ok(self.open.as_mut().expect("just made"))
    }

    fn close(&mut self, device: &mut Device<'_>, meter: &mut Meter<'_>) -> Result<()> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        let header = Header {
            job: device.job,
            attempt: 0,
            node: device.node,
            partition: RUN + self.number,
            sequence: self.run.blocks.len() as u32,
            record_count: open.records(),
            payload_bytes: open.payload_bytes(),
        };
        let spot = device.write(header, open.into_buffer(), meter)?;
        self.run.blocks.push((header, spot));
        Ok(())
    }
}

/// Where the merge stands in one run.
struct Cursor {
    blocks: std::vec::IntoIter<(Header, Spot)>,
    block: Option<(Header, Buffer)>,
    /// Where that came from.
    spot: Spot,
    /// The next segment's header in the block.
    at: usize,
    chunk: u64,
    /// Records left in the segment, the current one among them, and where that is; nothing before the first.
    left: u32,
    record: Range<usize>,
    /// Whether the current record is a stub.
    is_stub: bool,
}

impl Cursor {
    /// Before the first record of `run`.
    fn new(run: Run) -> Self {
        Self {
            blocks: run.blocks.into_iter(),
            block: None,
            spot: Spot::default(),
            at: 0,
            chunk: 0,
            left: 0,
            record: 0..0,
            is_stub: false,
        }
    }

    fn item(&self) -> Item<'_> {
        let (_, buffer) = self.block.as_ref().expect("a record is current");
        item(&buffer[self.record.clone()], self.is_stub)
    }

    /// Goes on to the next record. Its code is relative to the one before, which `last` keeps where that one's block
    /// goes away.
    fn advance(
        &mut self,
        keys: &Keys<'_>,
        last: &mut Vec<u8>,
        device: &mut Device<'_>,
        meter: &mut Meter<'_>,
    ) -> Result<Code> {
        let (before, was_stub) = (self.record.clone(), self.is_stub);
        let mut is_gone = false;
        if self.left > 1 {
            self.left -= 1;
            self.set(keys.order, before.end);
        } else if !self.next_segment(keys.order, device, meter, |block| {
            if !std::mem::replace(&mut is_gone, true) {
                last.clear();
                last.extend_from_slice(item(&block[before.clone()], was_stub).short());
            }
        })? {
            return Ok(Code::END);
        }
        let short = self.item().short();
        if before.is_empty() {
            return Ok(Code::first(keys.order, short));
        }
        let (_, buffer) = self.block.as_ref().expect("a record is current");
        let before = match is_gone {
            true => &last[..],
            false => item(&buffer[before], was_stub).short(),
        };
        Code::after(keys.order, before, short, keys.words_max).ok_or_else(out_of_order)
    }

    /// Goes on to the first record of the next segment. `false` at the end of the run. `leave` sees a block, with the
    /// record that was current in it, before it goes away.
    fn next_segment(
        &mut self,
        order: &Order,
        device: &mut Device<'_>,
        meter: &mut Meter<'_>,
        mut leave: impl FnMut(&[u8]),
    ) -> Result<bool> {
        self.left = 0;
        loop {
            let end = self.block.as_ref().map_or(0, |(header, _)| {
                HEADER_BYTES + header.payload_bytes as usize
            });
            if self.at < end {
                break;
            }
            if let Some((_, buffer)) = self.block.take() {
                leave(&buffer);
            }
            let Some((header, spot)) = self.blocks.next() else {
                return Ok(false);
            };
            // Runs are not compressed.
            let stored = Stored { spot, packed: None };
            let buffer = device.read(&header, stored, meter)?;
            self.spot = spot;
            Header::open(&buffer, &header).map_err(|why| damaged(device.temps, spot, why))?;
            self.block = Some((header, buffer));
            self.at = HEADER_BYTES;
        }
        let (header, buffer) = self.block.as_ref().expect("a block is open");
        let end = HEADER_BYTES + header.payload_bytes as usize;
        let (segment, header_bytes) = Segment::get(&buffer[self.at..end])
            .map_err(|why| damaged(device.temps, self.spot, why))?;
        let from = self.at + header_bytes;
        self.at = from + segment.bytes as usize;
        self.chunk = segment.chunk;
        self.left = segment.record_count;
        self.is_stub = segment.record_count == 0;
        if self.is_stub {
            Stub::get(&buffer[from..self.at])
                .ok_or_else(|| damaged(device.temps, self.spot, Damage::Segments))?;
            self.record = from..self.at;
        } else {
            self.set(order, from);
        }
        Ok(true)
    }

    fn set(&mut self, order: &Order, from: usize) {
        let (_, buffer) = self.block.as_ref().expect("a block is open");
        self.record = from..from + order.record_bytes(&buffer[from..]);
    }
}

/// A record as it lies in a block of a run.
fn item(bytes: &[u8], is_stub: bool) -> Item<'_> {
    match is_stub {
        true => Item::Stub(Stub::get(bytes).expect("it was looked at before")),
        false => Item::Record(bytes),
    }
}

/// How records are compared.
struct Keys<'a> {
    order: &'a Order,
    /// Words that tell of a stub what they tell of the record: those that lie in the head of a key and do not end it.
    words_max: usize,
}

/// The runs, for one step of the tree.
struct Runs<'r, 'a, 'm> {
    keys: &'r Keys<'r>,
    cursors: &'r [Cursor],
    bodies: &'r mut BodyReader<'a>,
    meter: &'r mut Meter<'m>,
}

impl Rows for Runs<'_, '_, '_> {
    fn order(&self) -> &Order {
        self.keys.order
    }

    fn record(&self, row: usize) -> &[u8] {
        self.cursors[row].item().short()
    }

    fn place(&self, row: usize) -> u64 {
        self.cursors[row].chunk
    }

    fn words_max(&self) -> usize {
        self.keys.words_max
    }

    fn settle(&mut self, one: usize, other: usize) -> Result<Ordering> {
        let cursors = self.cursors;
        let (one, other) = (cursors[one].item(), cursors[other].item());
        self.bodies.compare(&one, &other, Stage::Merge, self.meter)
    }
}

/// Merges `runs` and hands the records, each with its chunk, to `visit` in order. Needs a block for each
/// run. Of long records the first `head_bytes` of the key are in the runs.
///
/// # Errors
/// A read that failed, a damaged block, or what `visit` answers.
pub fn merge(
    order: &Order,
    head_bytes: usize,
    runs: Vec<Run>,
    device: &mut Device<'_>,
    meter: &mut Meter<'_>,
    mut visit: impl FnMut(u64, &Item<'_>, &mut Device<'_>, &mut Meter<'_>) -> Result<()>,
) -> Result<()> {
    let keys = Keys {
        order,
        words_max: (head_bytes - 1) / size_of::<u64>(),
    };
    let mut last = Vec::new();
    let mut cursors: Vec<Cursor> = runs.into_iter().map(Cursor::new).collect();
    let mut codes = Vec::with_capacity(cursors.len());
    for cursor in &mut cursors {
        codes.push(cursor.advance(&keys, &mut last, device, meter)?);
    }
    let mut rows = Runs {
        keys: &keys,
        cursors: &cursors,
        bodies: &mut device.bodies,
        meter: &mut *meter,
    };
    let mut tree = Losers::new(&mut rows, &codes)?;
    while let Some(winner) = tree.winner() {
        let cursor = &mut cursors[winner];
        visit(cursor.chunk, &cursor.item(), device, meter)?;
        let code = cursor.advance(&keys, &mut last, device, meter)?;
        let mut rows = Runs {
            keys: &keys,
            cursors: &cursors,
            bodies: &mut device.bodies,
            meter: &mut *meter,
        };
        tree.replay(&mut rows, code)?;
    }
    Ok(())
}

/// The error of a run that is not sorted.
fn out_of_order() -> Error {
    let cause = "two records of a run are out of order";
    Error::new(ErrorKind::Lost, "merging runs", cause)
        .hint("This is a fault of sortmill or of this machine's memory. No output was made.")
}
