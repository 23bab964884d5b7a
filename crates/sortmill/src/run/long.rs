//! Sorted records to the output where some of them are long: these come out of their bodies piece by piece.

use std::cmp::Ordering;
use std::ops::Range;

use xxhash_rust::xxh3::Xxh3;

use super::sorting::Phase;
use super::tail::WayOut;
use crate::bodies::BodyReader;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::long::Item;
use crate::metrics::{Meter, Stage};
use crate::stage::kernel::{self, Entry};
use crate::stage::reduce::out_of_order;
use crate::stage::sort::Slab;
use crate::stage::write::Sink;

/// Hands out the records of some of a unit's sorted entries, proving their order as far as the heads of long keys tell.
pub fn gather_long(
    phase: &Phase<'_>,
    slab: &Slab<'_>,
    entries: &[Entry],
    range: Range<usize>,
    bodies: &mut BodyReader<'_>,
    way: &mut WayOut<'_, '_>,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let head_bytes = phase.shared.plan.head_bytes;
    let item = |at: usize| slab.item(&phase.order, kernel::location(entries[at]));
    let is_drawn = phase.shared.job.yields.shuffle().is_some();
    let ordinal = |at: usize| match is_drawn {
        true => at as u32,
        false => kernel::ordinal(entries[at]),
    };
    for at in range {
        let record = item(at);
        if at > 0 {
            let compared = item(at - 1).compare_heads(&phase.order, head_bytes, &record);
            let by_place = match phase.order.is_unique() {
                true => Ordering::Equal,
                false => ordinal(at - 1).cmp(&ordinal(at)),
            };
            let compared = compared.map(|told| told.then(by_place));
            if !compared.is_none_or(Ordering::is_lt) {
                return Err(out_of_order());
            }
        }
        way.put_item(&record, bodies, meter)?;
    }
    Ok(())
}

/// Puts a record into a sink and adds it to a fingerprint under `key`.
pub fn put_item(
    sink: &mut Sink<'_>,
    fingerprint: &mut Fingerprint,
    key: u64,
    item: &Item<'_>,
    bodies: &mut BodyReader<'_>,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let stub = match item {
        Item::Record(record) => {
            fingerprint.add(record, key);
            return sink.put(record, meter);
        }
        Item::Stub(stub) => stub,
    };
    let (mut hash, mut bytes) = (Xxh3::with_seed(key), 0);
    bodies.give(stub, Stage::Reduce, meter, |piece, meter| {
        hash.update(piece);
        bytes += piece.len() as u64;
        sink.put_part(piece, meter)
    })?;
    fingerprint.add_hashed(bytes, hash.digest());
    sink.records += 1;
    Ok(())
}
