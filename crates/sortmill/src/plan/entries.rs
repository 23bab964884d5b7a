//! How many sort entries a worker has room for. Pure; no I/O.

use super::{BLOCK_BYTES_MIN, ENTRIES_OVER_RECORDS, ENTRY_BYTES, MIB};
use crate::job::Job;

/// With as much memory, some may be spared for groups of any size.
pub(super) const SPARE_BYTES_MIN: u64 = 128 << 20;

/// With less memory tables take none from blocks, of which there must be a few.
const FEWEST_LIMIT_BYTES: u64 = 32 << 20;
/// There are as many partitions as have so much of the memory each, where that is short: some blocks of the least size, and
/// what is not for blocks.
const BYTES_PER_PARTITION: u64 = 8 * BLOCK_BYTES_MIN;

/// Entries in each of `tables` tables, in a memory of `limit` bytes, for so many bytes of data, of a partition, and of a
/// record.
///
/// Four times the entries of a partition of the best size, or of the size that so little memory leaves it, for skew. Groups that
/// come whole may be of any size: where there is memory to spare, larger tables leave fewer of them to be merged. So do they where
/// records are so many and short that as many partitions as there can be hold more of them each.
pub(super) fn count(
    job: &Job,
    limit: u64,
    tables: u64,
    (data_bytes, partition_bytes, record_bytes): (u64, u64, f64),
) -> usize {
    let are_whole = job.gives_groups_whole && limit >= SPARE_BYTES_MIN && data_bytes > limit;
    let of = |bytes: u64| (bytes as f64 / record_bytes) as u64 * ENTRY_BYTES as u64;
    let wished = match are_whole {
        true => of(data_bytes),
        false => 4 * of(partition_bytes),
    };
    let part = match job.yields.shuffle() {
        None if !are_whole => 8,
        _ => 4,
    };
    let most = |part: u64| limit / part / tables;
    let of_fewest = ENTRIES_OVER_RECORDS * of(data_bytes / (limit / BYTES_PER_PARTITION).max(1));
    let bytes = wished.max(MIB).min(most(part));
    let bytes = match limit >= FEWEST_LIMIT_BYTES {
        true => bytes.max(of_fewest.min(most(4))),
        false => bytes,
    } as usize;
    (bytes / ENTRY_BYTES).max(64)
}
