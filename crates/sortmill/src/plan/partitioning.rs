//! How many partitions there are to be, and of which size. Pure; no I/O.

use super::{ENTRIES_OVER_RECORDS, MIB, PARTITION_BYTES_MAX, PARTITION_COUNT_MAX, Plan};
use crate::job::Job;

/// With as many records the entries of a partition, which are sorted before the records move, are near the caches too.
const PARTITION_RECORDS_MAX: f64 = 350_000.0;
/// So many partitions cost no more than a few, as long as nothing is spilled; smaller ones are sorted and gathered in less time,
/// down to this size.
const NEAR_COUNT: u64 = 256;
const NEAR_BYTES_MIN: u64 = 4 * MIB;

/// Bytes of a partition of the best size, for so many bytes of data, and of a record, in a memory of `limit` bytes.
pub(super) fn best_bytes(job: &Job, limit: u64, data_bytes: u64, record_bytes: f64) -> u64 {
    let best = (limit / 16).min(PARTITION_BYTES_MAX);
    // Where nothing is spilled, more of them cost nothing.
    let best = match data_bytes <= limit {
        true => best.min(((PARTITION_RECORDS_MAX * record_bytes) as u64).max(NEAR_BYTES_MIN)),
        false => best,
    };
    job.tuning.partition_bytes.unwrap_or(best).max(1)
}

/// How many partitions of at most `best` bytes there are to be, each of which finds room in a third of a table of entries: small
/// enough to be sorted near the caches, and for its entries to fit three times. With half of them one is divided, and
/// what is divided is read twice, so one that is a little larger than others must not be. Data that fit a memory of
/// `limit` bytes make [`NEAR_COUNT`] or more, unless these were too small.
pub(super) fn count(
    job: &Job,
    limit: u64,
    (data_bytes, record_bytes): (u64, f64),
    best: u64,
    entry_count: usize,
) -> usize {
    let best = match job.tuning.partition_bytes {
        None if data_bytes <= limit => best.min((data_bytes / NEAR_COUNT).max(NEAR_BYTES_MIN)),
        _ => best,
    };
    let records = (data_bytes as f64 / record_bytes) as u64;
    let by_bytes = data_bytes.div_ceil(best);
    let by_entries = (ENTRIES_OVER_RECORDS * records).div_ceil(entry_count as u64);
    by_bytes.max(by_entries).clamp(1, PARTITION_COUNT_MAX) as usize
}

impl Plan {
    /// How many partitions are enough for a stream that has shown to be of `bytes` bytes in records of `record_bytes` in the mean,
    /// all of them in memory; it was planned for when nobody knew. Each partition begins with a block of its own.
    #[must_use]
    pub fn partitions_of(&self, job: &Job, bytes: u64, record_bytes: f64) -> usize {
        let record_bytes = record_bytes.max(1.0);
        let best = best_bytes(job, self.budget.limit_bytes, bytes, record_bytes);
        let limit = self.budget.limit_bytes;
        let enough = || count(job, limit, (bytes, record_bytes), best, self.entry_count);
        let planned = self.partition_count;
        (job.tuning.partition_count.unwrap_or_else(enough)).min(planned)
    }
}
