//! Blocks out of memory: to the queue of those that wait for the disk, compressed there by who would wait, and what their
//! partition knows of them afterwards.
//!
//! The place on disk is given away when a block is about to be written, because only then is it known how long it is.
//! Until then its partition, or body, knows that it is leaving; nobody asks for more before the distribution, or its
//! round, has ended.

use sortmill_io::codec::BlockCodec;
use sortmill_io::frame::Header;
use sortmill_io::sync::atomic::Ordering;
use sortmill_io::sync::lock;

use super::Partitions;
use crate::block::{Stored, disk_bytes, stored_bytes};
use crate::bodies::Bodies;
use crate::error::Result;
use crate::metrics::{Meter, Stage, State};
use crate::packing::Packers;
use crate::spills::SpillBlock;

impl Partitions<'_> {
    /// Queues blocks that have left memory.
    pub(super) fn send(&self, full: Vec<SpillBlock>) -> Result<()> {
        let bytes: usize = full.iter().map(|block| disk_bytes(&block.header)).sum();
        self.left_bytes.fetch_add(bytes as u64, Ordering::SeqCst);
        self.spilling.fetch_add(full.len(), Ordering::SeqCst);
        match self.spills.push(full) {
            true => Ok(()),
            false => Err(self.stop.error()),
        }
    }

    /// Bytes that the blocks have, not compressed, that have left memory so far.
    #[must_use]
    pub fn left_bytes(&self) -> u64 {
        self.left_bytes.load(Ordering::SeqCst)
    }

    /// The block with this header, which is about to be written, has got its place on disk.
    pub fn placed(&self, header: &Header, stored: Stored) {
        if let Some(body) = Bodies::number_of(header) {
            self.bodies.placed(body, header.sequence, stored);
            return;
        }
        let partition = self.partition(header.partition);
        lock(&partition.state).blocks[header.sequence as usize].placed(stored);
    }

    /// A block was written, or will not be, and its memory is about to be free.
    pub fn spilled(&self) {
        self.spilling.fetch_sub(1, Ordering::SeqCst);
    }

    /// Compresses a block that waits for the disk, if that is worth while now: for a thread that would wait otherwise.
    /// What it did up to now was `stage`. Says whether it did: then look again whether there is something to wait for.
    ///
    /// # Errors
    /// The library's, when it gets no memory.
    pub fn pack_one(&self, stage: Stage, meter: &mut Meter<'_>) -> Result<bool> {
        let Some(packers) = self.packers else {
            return Ok(false);
        };
        meter.lap(stage, State::Work);
        let Some(mut taken) = self.spills.take_to_pack(meter.lapped_ns()) else {
            return Ok(false);
        };
        let packed = pack(packers, taken.codec, &mut taken.block, meter);
        let worked_ns = meter.lap(Stage::Pack, State::Work);
        self.spills.put_back(taken, meter.lapped_ns(), worked_ns);
        packed?;
        Ok(true)
    }

    /// Compresses a block that nobody had time for and that is written next, where that is to be.
    ///
    /// # Errors
    /// As [`Partitions::pack_one`].
    pub fn pack_now(&self, block: &mut SpillBlock, meter: &mut Meter<'_>) -> Result<()> {
        let Some(packers) = self.packers else {
            return Ok(());
        };
        meter.lap(Stage::Spill, State::Work);
        if let Some(codec) = self.spills.codec_before_writing(meter.lapped_ns()) {
            pack(packers, codec, block, meter)?;
            self.spills.tried(block.packed.is_some());
            meter.lap(Stage::Pack, State::Work);
        }
        Ok(())
    }

    /// A thread that had nothing to do has waited for `waited_ns`, while blocks waited for the disk.
    pub fn waited(&self, waited_ns: u64, meter: &Meter<'_>) {
        self.spills.waited(meter.lapped_ns(), waited_ns);
    }

    /// Whether blocks wait for the disk.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.spills.is_behind()
    }
}

fn pack(
    packers: &Packers,
    codec: BlockCodec,
    block: &mut SpillBlock,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let header = block.header;
    block.packed = packers.pack(codec, &header, &mut block.buffer)?;
    block.is_ready = true;
    let totals = meter.stage(Stage::Pack);
    totals.bytes_in += disk_bytes(&header) as u64;
    totals.bytes_out += stored_bytes(&header, block.packed) as u64;
    totals.records_in += u64::from(header.record_count);
    totals.records_out += u64::from(header.record_count);
    Ok(())
}
