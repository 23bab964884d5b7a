//! Chunk to batches of whole records, with the fingerprint of what is in them.
//!
//! Nothing is copied: a batch is a row of offsets into the chunk. The fingerprint taken here is what the
//! output is held against at the end.

use crate::batch::Batch;
use crate::fingerprint::Fingerprint;
use crate::order::{Format, Order};

/// Cuts the records at the start of `bytes[from..]` into a batch of at most `records_max`. `offsets` is
/// scratch space of the caller's, the batch borrows it. `bytes[from..]` holds whole records only.
#[must_use]
pub fn cut<'a>(
    order: &Order,
    bytes: &'a [u8],
    from: usize,
    chunk: u64,
    offsets: &'a mut Vec<u32>,
    records_max: usize,
    key: u64,
) -> Batch<'a> {
    offsets.clear();
    offsets.push(from as u32);
    match order.format() {
        Format::Fixed(size) => {
            let count = ((bytes.len() - from) / size as usize).min(records_max);
            let first = from as u32 + size;
            offsets.extend((0..count as u32).map(|index| first + index * size));
        }
        Format::Lines => {
            let ends = memchr::memchr_iter(b'\n', &bytes[from..]).take(records_max);
            offsets.extend(ends.map(|end| (from + end + 1) as u32));
        }
        Format::Kv => {
            let mut at = from;
            while at < bytes.len() && offsets.len() <= records_max {
                at += order.record_bytes(&bytes[at..]);
                offsets.push(at as u32);
            }
        }
    }
    let mut batch = Batch {
        chunk,
        bytes,
        offsets,
        fingerprint: Fingerprint::default(),
    };
    let mut fingerprint = Fingerprint::default();
    for record in batch.records() {
        fingerprint.add(record, key);
    }
    batch.fingerprint = fingerprint;
    batch
}
