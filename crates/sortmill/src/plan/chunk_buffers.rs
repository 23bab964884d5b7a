//! How many chunk buffers there are, and how large: out of job, inputs, cores and budget. Pure; no I/O.
//!
//! A job that sorts and one that merges both have them, and the budget holds them under one name. While records are distributed
//! there are more, in the memory that sorting takes for its entries: chunks that wait, so that neither the disk nor the processors
//! stand still when the other one, or the host of a virtual machine, does for some milliseconds.

use super::{
    Budget, CHUNK_BYTES, During, HEADROOM_BYTES, Inputs, MIB, in_flight_bytes, node_count,
};
use crate::job::Job;

/// What the budget calls their holder.
pub const NAME: &str = "chunk and output buffers";
/// And that of those which are there only while distributing.
pub const MORE_NAME: &str = "more chunk buffers";

/// So many bytes of output are on their way out at once, or fewer, and of inputs that are merged on their way in.
pub(super) const KEPT_IN_FLIGHT_BYTES: u64 = 32 * MIB;

/// Raw bytes on their way in while distributing, output on its way out while sorting.
pub struct ChunkBuffers {
    pub worker_count: usize,
    pub chunk_bytes: usize,
    pub headroom_bytes: usize,
    pub count: usize,
    /// More of them that would be of use while distributing.
    pub more: usize,
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
        let affordable = (limit / 8 / buffer) as usize;
        let count = |in_flight: usize| {
            let wished = in_flight * inputs.device_count.max(1) + 2 * worker_count + 2;
            affordable.clamp(worker_count + 2, wished)
        };
        let output_depth = (KEPT_IN_FLIGHT_BYTES / chunk_bytes.max(CHUNK_BYTES) as u64) as usize;
        let (most, count) = (count(depth), count(depth.min(output_depth.max(2))));
        budget.hold(NAME, count as u64 * buffer)?;
        Some(Self {
            worker_count,
            chunk_bytes,
            headroom_bytes,
            count,
            more: most - count,
            depth,
        })
    }
}

/// How many of `more` buffers of `buffer` bytes there may be while distributing, in what only sorting has memory for.
pub fn hold_more(more: usize, buffer: u64, budget: &mut Budget) -> Option<usize> {
    let more = more.min((budget.spare_bytes(During::Distribute) / buffer) as usize);
    if more > 0 {
        budget.hold_during(Some(During::Distribute), MORE_NAME, more as u64 * buffer)?;
    }
    Some(more)
}

#[cfg(test)]
mod tests {
    use sortmill_io::os::Machine;

    use super::super::Plan;
    use super::*;
    use crate::chunks::Extent;
    use crate::job::Output;
    use crate::order::Format;

    fn plan(memory_bytes: u64, passes_on: bool) -> Option<Plan> {
        let mut job = Job::new(Vec::new(), Output::Stdout, Format::Fixed(100));
        job.memory_bytes = Some(memory_bytes);
        job.passes_on = passes_on;
        let inputs = Inputs {
            extents: vec![Extent::File(10_000_000_000)],
            ..Inputs::default()
        };
        let machine = Machine {
            cores: 2,
            memory_bytes_available: 1 << 40,
            memory_bytes_total: 1 << 40,
        };
        Plan::new(&job, &inputs, &machine).ok()
    }

    #[test]
    fn there_are_more_while_distributing_and_they_cost_partitions_nothing() {
        for memory_bytes in (25..80)
            .chain([100, 256, 512, 1024, 4096, 65_536])
            .map(|mib| mib * MIB)
        {
            let Some(plan) = plan(memory_bytes, false) else {
                continue;
            };
            assert!(plan.budget.held_bytes() <= plan.budget.limit_bytes);
            let held = |name: &str| {
                let mut holders = plan.budget.holders.iter();
                holders
                    .find(|holder| holder.name == name)
                    .map_or(0, |holder| holder.bytes)
            };
            let buffer = plan.chunk_buffer_bytes() as u64;
            assert_eq!(held(MORE_NAME), plan.chunks_aside as u64 * buffer);
            let always = plan.chunk_count - plan.chunks_aside;
            assert_eq!(held(NAME), always as u64 * buffer);
            // All that is not for them alone is the partitions'.
            let rest: u64 = ["batch scratch", "sort entries", "partitions in memory"]
                .map(held)
                .iter()
                .sum();
            let left = plan.budget.limit_bytes - held(NAME) - rest;
            assert!(left < plan.block_bytes as u64, "{memory_bytes}: {left}");
            assert!(plan.chunks_aside == 8 || memory_bytes < 1024 * MIB);
            assert!(always <= 14 && plan.chunk_count <= 22);
        }
    }

    /// There nothing of it has been given back when the output begins.
    #[test]
    fn where_nothing_is_brought_together_there_are_no_more() {
        let plan = plan(1024 * MIB, true).unwrap();
        assert_eq!(plan.chunks_aside, 0);
    }
}
