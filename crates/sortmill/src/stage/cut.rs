//! Chunk to batches of whole records, with the fingerprint of what is in them.
//!
//! Nothing is copied: a batch is a row of offsets into the chunk, or, of records of one size, their number. The
//! fingerprint taken here is what the output is held against at the end.

use crate::batch::{Batch, Offsets};
use crate::fingerprint::Fingerprint;
use crate::order::{Format, Order, Separated, quoted};
use crate::stage::kernel::{self, find_ends};

/// Cuts the records at the start of `bytes[from..]` into a batch of at most `records_max`, summed up under `key`.
/// `offsets` is scratch space of the caller's, the batch borrows it. `bytes[from..]` holds whole records only.
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
    let mut batch = cut_out(order, bytes, from, chunk, offsets, records_max);
    let mut fingerprint = Fingerprint::default();
    for record in batch.records() {
        kernel::prefetch_behind(record);
        fingerprint.add(record, key);
    }
    batch.fingerprint = fingerprint;
    batch
}

/// The same batch, which is not summed up.
#[must_use]
pub fn cut_out<'a>(
    order: &Order,
    bytes: &'a [u8],
    from: usize,
    chunk: u64,
    offsets: &'a mut Vec<u32>,
    records_max: usize,
) -> Batch<'a> {
    offsets.clear();
    let offsets = match order.format() {
        Format::Fixed(size) => Offsets::Every {
            from: from as u32,
            bytes: size,
            count: ((bytes.len() - from) / size as usize).min(records_max) as u32,
        },
        Format::Lines => {
            offsets.push(from as u32);
            find_ends(order.delimiter(), bytes, from, records_max, offsets);
            Offsets::Each(offsets)
        }
        Format::Quoted(quote) => {
            offsets.push(from as u32);
            // What parts values ends no record.
            let separated = Separated {
                delimiter: order.delimiter(),
                quote: Some(quote),
            };
            quoted::find_ends(separated, bytes, from, records_max, offsets);
            // The end of an input may stand within quotes: what is told of that record as a bad one.
            let ended = *offsets.last().expect("the first was pushed") as usize;
            if offsets.len() <= records_max && ended < bytes.len() {
                offsets.push(bytes.len() as u32);
            }
            Offsets::Each(offsets)
        }
        Format::Kv => {
            offsets.push(from as u32);
            let mut at = from;
            while at < bytes.len() && offsets.len() <= records_max {
                at += order.record_bytes(&bytes[at..]);
                offsets.push(at as u32);
            }
            Offsets::Each(offsets)
        }
    };
    Batch {
        chunk,
        bytes,
        offsets,
        fingerprint: Fingerprint::default(),
    }
}
