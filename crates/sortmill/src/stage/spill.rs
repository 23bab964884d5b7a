//! Full blocks of evicted partitions to the temporary file.
//!
//! One thread owns the ring. A block is sealed (header and checksum) here, just before it leaves; its
//! memory is free again when the device has it.

use sortmill_io::sync::Arc;
use sortmill_io::{File, Op, OpKind, Os, Ring};

use crate::block::disk_bytes;
use crate::error::{Error, Result};
use crate::metrics::{Meter, Stage, State};
use crate::partitions::SpillBlock;
use crate::queue::{Queue, Stop};

/// What the spiller works with.
pub struct Spiller<'a> {
    /// All I/O.
    pub os: &'a dyn Os,
    /// Makes the temporary file when the first block comes.
    pub open: &'a dyn Fn() -> Result<Arc<File>>,
    /// What is to be written.
    pub blocks: &'a Queue<SpillBlock>,
    /// Told of each block whose memory is about to be free again.
    pub written: &'a dyn Fn(),
    /// Writes in flight.
    pub depth: usize,
    /// Ends the job.
    pub stop: &'a Stop,
}

/// Writes blocks until the queue is closed and empty. Answers the bytes written.
///
/// # Errors
/// The first write that failed; a full disk as [`crate::error::ErrorKind::Space`].
pub fn spill(spiller: &Spiller<'_>, meter: &mut Meter<'_>) -> Result<u64> {
    let mut file: Option<Arc<File>> = None;
    let mut ring: Option<Box<dyn Ring>> = None;
    let mut bytes = 0;
    loop {
        let in_flight = ring.as_ref().map_or(0, |ring| ring.in_flight());
        let block = if in_flight == 0 {
            meter.lap(Stage::Spill, State::Work);
            let block = spiller.blocks.pop();
            meter.lap(Stage::Spill, State::Input);
            spiller.stop.check()?;
            block
        } else if in_flight < spiller.depth {
            spiller.blocks.try_pop()
        } else {
            None
        };
        match (block, &mut ring) {
            (Some(block), Some(ring)) => {
                bytes += submit(
                    block,
                    file.as_ref().expect("opened with the ring"),
                    &mut **ring,
                    meter,
                );
            }
            (Some(block), None) => {
                let opened = (spiller.open)()?;
                let mut made = spiller
                    .os
                    .ring(spiller.depth)
                    .map_err(|error| Error::io("starting to write", &opened.path, &error))?;
                bytes += submit(block, &opened, &mut *made, meter);
                file = Some(opened);
                ring = Some(made);
            }
            (None, Some(ring)) if ring.in_flight() > 0 => {
                meter.lap(Stage::Spill, State::Work);
                let done = ring.complete(true).expect("a write is in flight");
                meter.lap(Stage::Spill, State::Device);
                meter.completed(done.op.range.len());
                let result = done.result;
                let written = done.op.range.len() as u64;
                let (path, offset) = (done.op.file.path.clone(), done.op.offset);
                // In this order no block is ever counted twice.
                (spiller.written)();
                drop(done.op.buffer);
                result.map_err(|error| {
                    Error::io("writing temporary data", &path, &error).offset(offset)
                })?;
                meter.wrote(written);
            }
            (None, _) => return Ok(bytes),
        }
    }
}

fn submit(block: SpillBlock, file: &Arc<File>, ring: &mut dyn Ring, meter: &mut Meter<'_>) -> u64 {
    let SpillBlock {
        mut buffer,
        header,
        offset,
    } = block;
    header.seal(&mut buffer);
    let length = disk_bytes(&header);
    let used = sortmill_io::frame::HEADER_BYTES + header.payload_bytes as usize;
    // What an earlier owner left in the buffer does not go to disk.
    buffer[used..length].fill(0);
    let totals = meter.stage(Stage::Spill);
    totals.bytes_in += u64::from(header.payload_bytes);
    totals.bytes_out += length as u64;
    totals.records_in += u64::from(header.record_count);
    totals.records_out += u64::from(header.record_count);
    ring.submit(Op {
        kind: OpKind::Write,
        file: Arc::clone(file),
        offset,
        buffer,
        range: 0..length,
        tag: offset,
    });
    meter.submitted(length);
    length as u64
}
