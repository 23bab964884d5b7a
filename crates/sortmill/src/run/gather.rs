//! The records of sorted entries, taken from where they lie, in their order: each is fetched several entries ahead.
//!
//! In come a unit's slab and entries, out go records to the output, which copies them; their order is proven on the way,
//! and they are summed up for the proof that they are those that came in.

use super::border;
use super::tail::WayOut;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::metrics::Meter;
use crate::order::Format;
use crate::stage::kernel::{self, Entry, LOOKED_BYTES};
use crate::stage::reduce::Gather;
use crate::stage::sort::Slab;

/// So many entries ahead.
const AHEAD: usize = 16;
/// And where each begins, so many: to find its page takes as long as to fetch it.
const FAR_AHEAD: usize = 2 * AHEAD;

/// Hands out the records of entries, of about `record_bytes`.
pub fn gather<'b>(
    slab: &'b Slab<'_>,
    entries: &[Entry],
    record_bytes: usize,
    proof: &mut Gather<'b>,
    way: &mut WayOut<'_, '_>,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let order = &way.order;
    // The end of a line is looked for in so many bytes at once, the last of which may lie in a line of the cache behind its own.
    let fetched_bytes = match order.format() {
        Format::Lines => record_bytes.next_multiple_of(LOOKED_BYTES),
        _ => record_bytes,
    };
    let records = entries.iter().enumerate().map(|(index, &entry)| {
        if let Some(&far) = entries.get(index + FAR_AHEAD) {
            slab.prefetch_first(kernel::location(far));
        }
        if let Some(&later) = entries.get(index + AHEAD) {
            slab.prefetch(kernel::location(later), fetched_bytes);
        }
        let record = slab.record(order, kernel::location(entry));
        (kernel::ordinal(entry).into(), record)
    });
    for (ordinal, record) in border::sorted(way.shared.job, records) {
        proof.next(record, ordinal)?;
        way.put(record, meter)?;
    }
    way.gathered.merge(&std::mem::take(&mut proof.fingerprint));
    Ok(())
}

/// The same of entries whose order is drawn. Sorting has proven it: no record tells whether this one is it.
pub fn gather_drawn(
    slab: &Slab<'_>,
    entries: &[Entry],
    way: &mut WayOut<'_, '_>,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let key = way.shared.number;
    let mut gathered = Fingerprint::default();
    let records = entries.iter().enumerate().map(|(index, &entry)| {
        if let Some(&far) = entries.get(index + FAR_AHEAD) {
            slab.prefetch_first(kernel::location(far));
        }
        if let Some(&later) = entries.get(index + AHEAD) {
            slab.prefetch_drawn(later);
        }
        (index as u64, slab.drawn_record(entry))
    });
    for (_, record) in border::sorted(way.shared.job, records) {
        gathered.add(record, key);
        way.put(record, meter)?;
    }
    way.gathered.merge(&gathered);
    Ok(())
}
