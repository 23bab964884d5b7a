//! What partitions hold in memory: how many blocks, of how many bytes, and how many partitions share them.

use super::{
    BLOCK_BYTES_MIN, Budget, Reading, Sorting, TempPacking, block_bytes_max, in_flight_bytes,
};
use crate::block::record_bytes_max;
use crate::job::Job;
use crate::order::Format;
use crate::yields::Yield;

/// What partitions hold in memory: the rest of it.
pub(super) struct Holding {
    pub block_bytes: usize,
    pub block_count: usize,
    pub block_low_water: usize,
    pub block_depth: usize,
    pub body_depth: usize,
    pub partition_count: usize,
    pub partition_count_max: usize,
    pub temp_packing: Option<TempPacking>,
}

/// Fewer blocks leave no room for open ones, spare ones and those on their way.
const BLOCK_COUNT_MIN: u64 = 24;
/// Bytes of long records in each reader's hands, and blocks.
const BODY_READ_BYTES: u64 = 1 << 20;
const BODY_DEPTH_MAX: u64 = 16;
/// Blocks beside those, so that work goes on.
const BLOCKS_SPARE: usize = 4;

impl Holding {
    pub fn new(
        job: &Job,
        reading: &Reading,
        sorting: &Sorting,
        budget: &mut Budget,
    ) -> Option<Self> {
        let left = budget.left_bytes();
        // So that open blocks, half full on average, take a sixteenth; of few partitions, small enough
        // that there are more than the fewest.
        let share = left / (8 * sorting.partitions_wished as u64).max(BLOCK_COUNT_MIN);
        let power = share.checked_ilog2().map_or(0, |bits| 1u64 << bits);
        let block_bytes_max = block_bytes_max(job).min(block_bytes_where_it_fits(sorting, left));
        let block_bytes = power.clamp(BLOCK_BYTES_MIN, block_bytes_max);
        let block_bytes = job
            .tuning
            .block_bytes
            .map_or(block_bytes, |bytes| bytes as u64);
        // Records longer than a block, read back by each worker and by the loader, each a few blocks ahead.
        let readers = reading.worker_count as u64 + 1;
        let body_bytes = BODY_READ_BYTES.min(budget.limit_bytes / 32 / readers);
        let body_depth = (body_bytes / block_bytes).clamp(2, BODY_DEPTH_MAX);
        let is_short = matches!(job.format, Format::Fixed(bytes) if bytes as usize <= record_bytes_max(block_bytes as usize));
        if !is_short || job.map_makes_pairs {
            budget.hold("long records read back", readers * body_depth * block_bytes)?;
        }
        let temp_packing = TempPacking::new(job, reading.worker_count, block_bytes, budget)?;
        let block_count = budget.left_bytes() / block_bytes;
        if block_count < BLOCK_COUNT_MIN {
            return None;
        }
        budget.hold("partitions in memory", block_count * block_bytes)?;
        // What cannot be evicted, all at once: an open block of each partition, a spare one and that of a long
        // record of each worker and receiver, that of the reader, and one beside each chunk for a record that fits it just so.
        let fits = sorting.takes_parts && block_bytes as usize > reading.headroom_bytes;
        let chunks = reading.chunk_count + reading.chunk_count_more;
        let beside = if fits { chunks } else { 0 };
        let distributing = reading.worker_count + reading.receiver_count;
        let fixed = beside + 1 + 2 * distributing + BLOCKS_SPARE;
        let partition_count_max = (block_count as usize)
            .checked_sub(fixed)?
            .min(block_count as usize / 3);
        if partition_count_max == 0 {
            return None;
        }
        let fitting = partition_count_max.min(block_count as usize / 4);
        let partition_count = match job.yields {
            // The order that is drawn depends on how many there are, so less memory must not have fewer.
            Yield::Shuffled(_) if sorting.partitions_wished > partition_count_max => return None,
            Yield::Shuffled(_) => sorting.partitions_wished,
            _ => sorting.partitions_wished.min(fitting),
        };
        // Half of the blocks below the mark are on their way to the folders' disks, the other half waits for them
        // or is free.
        let folders = job.temps.len().max(1) as u64;
        let wished = 2 * spilled_in_flight_bytes(job, sorting, left) * folders / block_bytes;
        let low_water = wished.clamp(6, (block_count / 8).max(6));
        let block_depth = (low_water / 2 / folders).clamp(6u64.div_ceil(folders), 256);
        Some(Self {
            block_bytes: block_bytes as usize,
            block_count: block_count as usize,
            block_low_water: low_water as usize,
            block_depth: block_depth as usize,
            body_depth: body_depth as usize,
            partition_count,
            partition_count_max,
            temp_packing,
        })
    }
}

/// Bytes of blocks in flight: as much less than of chunks as less is spilled than is read, down to a quarter, since both take
/// as long.
fn spilled_in_flight_bytes(job: &Job, sorting: &Sorting, left: u64) -> u64 {
    let (data, spilled) = (sorting.data_bytes, sorting.data_bytes.saturating_sub(left));
    let part = spilled as f64 / data.max(1) as f64;
    (in_flight_bytes(job) as f64 * part.max(0.25)) as u64
}

/// The largest block where the data are about as large as the memory that is `left`: of each partition half a block
/// is empty, and what all of them could have held should not be most of what is spilled; nor much of it where they
/// must spill.
fn block_bytes_where_it_fits(sorting: &Sorting, left: u64) -> u64 {
    let part = if sorting.data_bytes > left { 16 } else { 4 };
    let differ = sorting.data_bytes.abs_diff(left) / (part * sorting.partitions_wished as u64);
    let power = differ.checked_ilog2().map_or(0, |bits| 1u64 << bits);
    power.max(2 * BLOCK_BYTES_MIN)
}
