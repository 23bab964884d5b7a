//! How many chunk buffers there are, and how large: out of job, inputs, cores and budget. Pure; no I/O.
//!
//! A job that sorts and one that merges both have them, and the budget holds them under one name.

use super::{Budget, CHUNK_BYTES, HEADROOM_BYTES, Inputs, in_flight_bytes, node_count};
use crate::job::Job;

/// What the budget calls their holder.
pub const NAME: &str = "chunk and output buffers";

/// Raw bytes on their way in while distributing, output on its way out while sorting.
pub struct ChunkBuffers {
    pub worker_count: usize,
    pub chunk_bytes: usize,
    pub headroom_bytes: usize,
    pub count: usize,
    pub depth: usize,
}

impl ChunkBuffers {
    /// Their sizes; `None` if there is not even memory for one worker.
    pub fn new(job: &Job, inputs: &Inputs, cores: usize, budget: &mut Budget) -> Option<Self> {
        let limit = budget.limit_bytes;
        let tuned = job.tuning.chunk_bytes;
        let chunk_bytes = tuned.unwrap_or(CHUNK_BYTES);
        let headroom_bytes = tuned.map_or(HEADROOM_BYTES, |_| sortmill_io::ALIGN_BYTES);
        let buffer = (headroom_bytes + chunk_bytes + sortmill_io::ALIGN_BYTES) as u64;

        // Two chunks on their way and one in each worker's hands; fewer workers where memory is short.
        let affordable = (limit / 2 / buffer).saturating_sub(2) as usize;
        let threads = job.threads.unwrap_or(cores) / node_count(job) as usize;
        let worker_count = threads.max(1).min(affordable);
        if worker_count == 0 {
            return None;
        }
        let depth = in_flight_bytes(job) / chunk_bytes.max(CHUNK_BYTES) as u64;
        let depth = depth.max(2) as usize;
        let in_flight = depth * inputs.device_count.max(1);
        let count = ((limit / 8 / buffer) as usize)
            .clamp(worker_count + 2, in_flight + 2 * worker_count + 2);
        budget.hold(NAME, count as u64 * buffer)?;
        Some(Self {
            worker_count,
            chunk_bytes,
            headroom_bytes,
            count,
            depth,
        })
    }
}
