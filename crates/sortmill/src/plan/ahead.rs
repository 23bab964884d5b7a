//! Chunk buffers for what is decompressed ahead of its turn, where nothing is brought together and so chunks must come in the
//! order of the inputs. Pure; no I/O.
//!
//! Partitions need no memory in such a job: only output on its way lies in their blocks. What is in the buffers when its turn
//! comes was decompressed beside what came before it; of files that are larger the rest comes at the speed of one thread.

use super::chunk_buffers::NAME;
use super::{Budget, Decoders, Holding, Inputs, MIB, Reading, Sorting};
use crate::job::Job;

/// For each input that is decompressed beside the one whose turn it is at most so much: beyond, other programs have more use
/// for the memory.
const AHEAD_BYTES_MAX: u64 = 512 * MIB;

/// What partitions hold, and before that `decoders` get half of what is left, where that is worth it and enough remains.
pub(super) fn holding(
    job: &Job,
    inputs: &Inputs,
    (reading, sorting): (&Reading, &Sorting),
    decoders: &mut Option<Decoders>,
    budget: &mut Budget,
) -> Option<Holding> {
    let beside = decoders.as_ref().map_or(0, |decoders| decoders.count - 1) as u64;
    if let (Some(decoders), true, 1..) = (decoders, job.passes_on, beside) {
        let buffer = reading.chunk_buffer_bytes();
        let least = inputs.packed.guessed_bytes.unwrap_or(u64::MAX);
        let most = (budget.left_bytes() / 2).min(beside * AHEAD_BYTES_MAX);
        let count = (most / buffer).min(least.div_ceil(reading.chunk_bytes as u64));
        let mut less = budget.clone();
        let held = less.hold(NAME, count * buffer);
        if let Some(holding) = held.and_then(|()| Holding::new(job, reading, sorting, &mut less)) {
            decoders.ahead_count = count as usize;
            *budget = less;
            return Some(holding);
        }
    }
    Holding::new(job, reading, sorting, budget)
}

#[cfg(test)]
mod tests {
    use sortmill_io::os::Machine;

    use super::super::{PackedInputs, Plan};
    use super::*;
    use crate::chunks::Extent;
    use crate::job::{Input, Output};
    use crate::order::Format;

    fn plan(
        memory_bytes: u64,
        passes_on: bool,
        count: usize,
        guessed_bytes: Option<u64>,
    ) -> Option<Plan> {
        let mut job = Job::new(vec![Input::Stdin], Output::Stdout, Format::Lines);
        job.memory_bytes = Some(memory_bytes);
        job.passes_on = passes_on;
        let inputs = Inputs {
            extents: vec![Extent::Stream; count],
            packed: PackedInputs {
                count,
                memory_bytes: 100 << 10,
                guessed_bytes,
                ..PackedInputs::default()
            },
            ..Inputs::default()
        };
        let machine = Machine {
            cores: 4,
            memory_bytes_available: 1 << 40,
            memory_bytes_total: 1 << 40,
        };
        Plan::new(&job, &inputs, &machine).ok()
    }

    fn check(plan: &Plan, guessed_bytes: Option<u64>) -> u64 {
        let held = plan.budget.held_bytes();
        assert!(held <= plan.budget.limit_bytes, "{:?}", plan.budget);
        let mut named = plan
            .budget
            .holders
            .iter()
            .filter(|holder| holder.name == NAME);
        let chunks = plan.chunk_count - plan.chunks_aside;
        let chunks = (chunks * plan.chunk_buffer_bytes()) as u64;
        assert_eq!(named.next().map(|holder| holder.bytes), Some(chunks));
        assert!(named.next().is_none());
        let ahead = plan
            .decoders
            .as_ref()
            .map_or(0, |decoders| decoders.ahead_count);
        let ahead = (ahead * plan.chunk_bytes) as u64;
        let beside = plan
            .decoders
            .as_ref()
            .map_or(0, |decoders| decoders.count - 1) as u64;
        assert!(ahead <= beside * AHEAD_BYTES_MAX);
        assert!(guessed_bytes.is_none_or(|guessed| ahead < guessed + plan.chunk_bytes as u64));
        ahead
    }

    #[test]
    fn memory_is_kept_and_only_what_is_left_is_given() {
        for memory in (20..80)
            .chain([100, 256, 1024, 4096, 65_536])
            .map(|mib| mib * MIB)
        {
            for guessed in [None, Some(1000), Some(30 * MIB)] {
                let (one, several) = (
                    plan(memory, true, 1, guessed),
                    plan(memory, true, 5, guessed),
                );
                assert!(several.is_some() || plan(memory, false, 5, guessed).is_none());
                assert!(one.is_none_or(|plan| check(&plan, guessed) == 0));
                let ahead = several.map_or(0, |plan| check(&plan, guessed));
                if memory >= 256 * MIB {
                    let least = guessed.unwrap_or(memory / 8).min(memory / 8);
                    assert!(ahead >= least.min(AHEAD_BYTES_MAX), "{memory} {ahead}");
                }
                // Where records are sorted any order of chunks will do.
                assert!(
                    plan(memory, false, 5, guessed).is_none_or(|plan| check(&plan, guessed) == 0)
                );
            }
        }
    }
}
