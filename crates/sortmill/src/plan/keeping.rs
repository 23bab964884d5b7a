//! What workers keep beside the records on their way: keys seen and what may be among the first, while they
//! distribute; what they have reduced before its turn, while they sort. Pure; no I/O.

use serde::{Deserialize, Serialize};

use super::entries::SPARE_BYTES_MIN;
use super::{Budget, During, PARTITION_BYTES_MAX, Reading};
use crate::best::KEPT_BYTES;
use crate::job::{Job, Output};

/// So many chunks are for what a job cannot do without.
const CHUNKS_FIRST: u64 = 24;

/// More partitions do not wait for their turns.
const AHEAD_UNITS_MAX: u64 = 16;

/// What each worker, and the loader, may reduce of a partition before its turn, in bytes: with much memory one of the best
/// size comes out in no more, as a rule; with little it is nothing. 0 also where nothing is reduced, or in turn, or nobody
/// else works meanwhile. And how many partitions besides may lie there until their turns come: groups that come whole may
/// take one worker so long that the others would wait.
pub(super) fn ahead(job: &Job, reading: &Reading, budget: &mut Budget) -> Option<(usize, usize)> {
    let in_turn = job.reduces_in_turn || matches!(job.output, Output::Parts(_));
    if job.reduce.is_none() || job.passes_on || in_turn || reading.worker_count == 1 {
        return Some((0, 0));
    }
    let holders = reading.worker_count as u64 + 1;
    let first = CHUNKS_FIRST * reading.chunk_bytes as u64;
    let share = budget.limit_bytes.saturating_sub(first) / 8;
    let each = (share / holders).min(PARTITION_BYTES_MAX);
    if each == 0 {
        return Some((0, 0));
    }
    let beside = match job.gives_groups_whole && budget.limit_bytes >= SPARE_BYTES_MIN {
        true => (share / each).min(AHEAD_UNITS_MAX),
        false => 0,
    };
    let bytes = (holders + beside) * each;
    budget.hold_during(Some(During::Sort), "reduced before its turn", bytes)?;
    Some((each as usize, beside as usize))
}

/// More are not joined: they would lie beyond the processor's caches, where to find a group takes longer than to sort by it.
const JOINED_BYTES_MAX: u64 = 4 << 20;

/// What each worker may join records in before they are sorted, in bytes.
pub(super) fn joined(job: &Job, reading: &Reading, budget: &mut Budget) -> Option<u64> {
    if job.joins.is_none() || job.reduce.is_none() || job.passes_on {
        return Some(0);
    }
    let workers = reading.worker_count as u64;
    let each = (budget.limit_bytes / 32 / workers).min(JOINED_BYTES_MAX);
    let during = Some(During::Sort);
    budget.hold_during(during, "joined before they are sorted", workers * each)?;
    Some(each)
}

/// Keys that a worker has seen, where repeats are dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SeenKeys {
    /// What they may take.
    pub bytes: usize,
    /// Bytes of one, more or less.
    pub key_bytes: usize,
}

impl SeenKeys {
    /// In `bytes`, of records of `record_bytes` in the mean.
    pub(super) fn new(bytes: u64, record_bytes: f64) -> Self {
        let least = 32 * sortmill_io::ALIGN_BYTES as u64;
        Self {
            bytes: sortmill_io::align_down(bytes).max(least) as usize,
            key_bytes: record_bytes as usize,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes as u64
    }
}

/// Records that a worker keeps because they may be among the first, where only those come out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Candidates {
    /// Bytes of the slab they lie in; there are two.
    pub slab_bytes: usize,
    /// How many there may be.
    pub count_max: usize,
}

/// Beyond this a record's place in a slab would not be 32 bits.
const SLAB_BYTES_MAX: u64 = 1 << 31;

impl Candidates {
    /// For each of `worker_count` workers, out of an eighth of the budget; `Ok(None)` where so many of the `job`'s records,
    /// of `record_bytes` in the mean, would not fit twice, or where all records come out.
    pub(super) fn new(
        job: &Job,
        worker_count: u64,
        record_bytes: f64,
        budget: &mut Budget,
    ) -> Option<Option<Self>> {
        let Some(first) = job.yields.first() else {
            return Some(None);
        };
        let each = budget.limit_bytes / 8 / worker_count;
        let count_max = (each as f64 / (2.0 * record_bytes + KEPT_BYTES as f64)) as u64;
        let slab_bytes = each.saturating_sub(count_max * KEPT_BYTES as u64) / 2;
        let slab_bytes = sortmill_io::align_down(slab_bytes.min(SLAB_BYTES_MAX));
        if slab_bytes == 0 || first.saturating_mul(2) > count_max {
            return Some(None);
        }
        let held = 2 * slab_bytes + count_max * KEPT_BYTES as u64;
        budget.hold("candidates for the first", worker_count * held)?;
        Some(Some(Self {
            slab_bytes: slab_bytes as usize,
            count_max: count_max as usize,
        }))
    }
}
