//! Full blocks of evicted partitions to the temporary files.
//!
//! One thread owns the ring. A block gets its place and is sealed (header and checksum) here, just before it leaves; its
//! memory is free again when the device has it. Those that cannot leave yet wait in their queue, where other threads may
//! compress them meanwhile. Each folder has a lane of its own of blocks that have a place there, and so many
//! writes in flight, so that a slow disk keeps no other waiting.

use std::collections::VecDeque;

use sortmill_io::frame::{HEADER_BYTES, Header};
use sortmill_io::sync::Arc;
use sortmill_io::{Done, File, Op, OpKind, Os, Ring};

use crate::block::{Stored, disk_bytes, stored_bytes};
use crate::error::{Error, Result};
use crate::metrics::{Meter, Stage, State};
use crate::queue::Stop;
use crate::spills::{SpillBlock, Spilled, Spills};
use crate::temps::Temps;

/// Compresses a block in its place.
pub type PackNow<'a> = &'a dyn Fn(&mut SpillBlock, &mut Meter<'_>) -> Result<()>;

/// What the spiller works with.
pub struct Spiller<'a> {
    /// All I/O.
    pub os: &'a dyn Os,
    /// Where blocks go.
    pub temps: &'a Temps<'a>,
    /// What is to be written.
    pub blocks: &'a Spills,
    /// Compresses what nobody else had time to compress, if that is to be; `None` where nothing is compressed.
    pub pack: Option<PackNow<'a>>,
    /// Told of each block where it will lie, by its header.
    pub placed: &'a dyn Fn(&Header, Stored),
    /// Told of each block whose memory is about to be free again.
    pub written: &'a dyn Fn(),
    /// Ends the job.
    pub stop: &'a Stop,
}

/// Writes blocks until the queue is closed and empty. Answers what became of them.
///
/// # Errors
/// The first write that failed; a full disk as [`crate::error::ErrorKind::Space`].
pub fn spill(spiller: &Spiller<'_>, meter: &mut Meter<'_>) -> Result<Spilled> {
    let Some(first) = wait_for_block(spiller, meter)? else {
        return Ok(Spilled::default());
    };
    let mut disks = Disks::new(spiller)?;
    disks.place(first, meter)?;
    loop {
        while disks.have_room()
            && let Some(block) = spiller.blocks.try_pop()
        {
            disks.place(block, meter)?;
        }
        disks.submit(meter)?;
        if disks.ring.in_flight() > 0 {
            disks.land(meter)?;
            spiller.stop.check()?;
            continue;
        }
        match wait_for_block(spiller, meter)? {
            Some(block) => disks.place(block, meter)?,
            None => return Ok(disks.spilled),
        }
    }
}

/// The next block; `None` when there will be no more.
fn wait_for_block(spiller: &Spiller<'_>, meter: &mut Meter<'_>) -> Result<Option<SpillBlock>> {
    meter.lap(Stage::Spill, State::Work);
    let block = spiller.blocks.pop();
    meter.lap(Stage::Spill, State::Input);
    spiller.stop.check()?;
    Ok(block)
}

/// All folders' disks, and what is on its way to them.
struct Disks<'a> {
    spiller: &'a Spiller<'a>,
    ring: Box<dyn Ring>,
    lanes: Vec<Lane>,
    spilled: Spilled,
}

/// One folder's.
struct Lane {
    waiting: VecDeque<(SpillBlock, Stored)>,
    /// The folder's file, from its first block on.
    file: Option<Arc<File>>,
    depth: usize,
    in_flight: usize,
    /// Since when writes have been in flight that were not counted yet.
    counted_ns: u64,
}

impl<'a> Disks<'a> {
    fn new(spiller: &'a Spiller<'a>) -> Result<Self> {
        let depths = spiller.temps.depths();
        let path = spiller.temps.path(0);
        let ring = spiller
            .os
            .ring_over(depths.iter().sum(), depths.len())
            .map_err(|error| Error::io("starting to write", &path, &error))?;
        let lane = |depth| Lane {
            waiting: VecDeque::new(),
            file: None,
            depth,
            in_flight: 0,
            counted_ns: 0,
        };
        Ok(Self {
            spiller,
            ring,
            lanes: depths.into_iter().map(lane).collect(),
            spilled: Spilled::default(),
        })
    }

    /// Whether a disk could take one more block now.
    fn have_room(&self) -> bool {
        let has_room = |lane: &Lane| lane.in_flight + lane.waiting.len() < lane.depth;
        self.lanes.iter().any(has_room)
    }

    /// Gives a block its place, and puts it into the lane of its folder.
    fn place(&mut self, mut block: SpillBlock, meter: &mut Meter<'_>) -> Result<()> {
        if let Some(pack) = self.spiller.pack
            && !block.is_ready
        {
            // The disks work meanwhile, and what they have written is free.
            self.submit(meter)?;
            self.ring.start();
            while let Some(done) = self.ring.complete(false) {
                self.landed(done, meter)?;
            }
            pack(&mut block, meter)?;
        }
        let bytes = stored_bytes(&block.header, block.packed);
        let spot = self.spiller.temps.allocate(bytes as u64, block.region)?;
        let stored = Stored {
            spot,
            packed: block.packed,
        };
        (self.spiller.placed)(&block.header, stored);
        let plain_bytes = disk_bytes(&block.header);
        self.spilled.merge(&Spilled {
            blocks: 1,
            packed_blocks: u64::from(block.packed.is_some()),
            plain_bytes: plain_bytes as u64,
            stored_bytes: bytes as u64,
        });
        if bytes < plain_bytes {
            meter.spared((plain_bytes - bytes) as u64);
        }
        self.lanes[spot.folder].waiting.push_back((block, stored));
        Ok(())
    }

    /// Lines up as many writes as may be in flight.
    fn submit(&mut self, meter: &mut Meter<'_>) -> Result<()> {
        let Spiller { os, temps, .. } = *self.spiller;
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            while lane.in_flight < lane.depth
                && let Some((block, stored)) = lane.waiting.pop_front()
            {
                let file = match &lane.file {
                    Some(file) => Arc::clone(file),
                    None => Arc::clone(lane.file.insert(temps.file(number)?)),
                };
                let op = seal(block, stored, file, meter);
                let bytes = op.range.len();
                self.ring.line_up(op);
                meter.submitted(bytes);
                if lane.in_flight == 0 {
                    lane.counted_ns = os.now_ns();
                }
                lane.in_flight += 1;
            }
        }
        Ok(())
    }

    /// Waits for a write, and takes all that have ended by then: those that went to the device as one request end at once,
    /// and as many that follow each other can begin as one.
    fn land(&mut self, meter: &mut Meter<'_>) -> Result<()> {
        meter.lap(Stage::Spill, State::Work);
        let first = self.ring.complete(true).expect("a write is in flight");
        meter.lap(Stage::Spill, State::Device);
        self.landed(first, meter)?;
        while let Some(done) = self.ring.complete(false) {
            self.landed(done, meter)?;
        }
        Ok(())
    }

    /// Gives the memory of a write back.
    fn landed(&mut self, done: Done, meter: &mut Meter<'_>) -> Result<()> {
        meter.completed(done.op.range.len());
        let written = done.op.range.len() as u64;
        let (path, offset) = (done.op.file.path.clone(), done.op.offset);
        let number = done.op.tag as usize;
        // In this order no block is ever counted twice.
        (self.spiller.written)();
        drop(done.op.buffer);
        done.result
            .map_err(|error| Error::io("writing temporary data", &path, &error).offset(offset))?;
        meter.wrote(written);
        let lane = &mut self.lanes[number];
        let now_ns = self.spiller.os.now_ns();
        let writing_ns = now_ns - std::mem::replace(&mut lane.counted_ns, now_ns);
        lane.in_flight -= 1;
        self.spiller.temps.wrote(number, written, writing_ns);
        Ok(())
    }
}

/// The write of a block, whole: header, checksum, padding.
fn seal(block: SpillBlock, stored: Stored, file: Arc<File>, meter: &mut Meter<'_>) -> Op {
    let SpillBlock {
        mut buffer, header, ..
    } = block;
    let Stored { spot, packed } = stored;
    header.seal_packed(&mut buffer, packed);
    let length = stored.disk_bytes(&header);
    let payload_bytes = packed.map_or(header.payload_bytes, |packed| packed.bytes);
    // What an earlier owner left in the buffer does not go to disk.
    buffer[HEADER_BYTES + payload_bytes as usize..length].fill(0);
    let totals = meter.stage(Stage::Spill);
    totals.bytes_in += u64::from(payload_bytes);
    totals.bytes_out += length as u64;
    totals.records_in += u64::from(header.record_count);
    totals.records_out += u64::from(header.record_count);
    Op {
        kind: OpKind::Write,
        file,
        offset: spot.offset,
        buffer,
        range: 0..length,
        tag: spot.folder as u64,
    }
}
