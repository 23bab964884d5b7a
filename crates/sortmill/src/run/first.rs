//! Where repeats are dropped: of sorted records with equal keys the first comes out, and the others are counted.
//!
//! In come the sorted entries of a unit, whose records lie in its slab; those that are kept come to lie in front. Keys
//! of long records are read from their bodies, so nothing is allocated.

use super::sorting::{Done, Phase};
use crate::bodies::BodyReader;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::long::Item;
use crate::metrics::{Meter, Stage};
use crate::stage::kernel::Entry;
use crate::stage::sort::{self, Load, Slab};

impl Phase<'_> {
    /// Of sorted entries with equal keys keeps the first only, where that is asked: those are in front then. Answers
    /// what is kept of what was laid out.
    pub fn keep_first(
        &self,
        slab: &Slab<'_>,
        entries: &mut [Entry],
        load: Load,
        bodies: &mut BodyReader<'_>,
        meter: &mut Meter<'_>,
        done: &mut Done,
    ) -> Result<Load> {
        if !self.order.is_unique() {
            return Ok(load);
        }
        let mut dropped = Fingerprint::default();
        let records = sort::keep_first(&self.order, slab, entries, |first, item| {
            self.is_repeat(first, item, bodies, meter, &mut dropped)
        })?;
        done.dropped.merge(&dropped);
        Ok(Load {
            records: records as u64,
            bytes: load.bytes - dropped.bytes,
        })
    }

    /// Whether a record's key is that of the `first` one; if so, it is counted as dropped.
    pub fn is_repeat(
        &self,
        first: &Item<'_>,
        item: &Item<'_>,
        bodies: &mut BodyReader<'_>,
        meter: &mut Meter<'_>,
        dropped: &mut Fingerprint,
    ) -> Result<bool> {
        let compared = match (first, item) {
            (Item::Record(first), Item::Record(record)) => self.order.compare(first, record),
            _ => bodies.compare(first, item, Stage::Sort, meter)?,
        };
        if compared.is_ne() {
            return Ok(false);
        }
        let key = self.shared.number;
        match item {
            Item::Record(record) => dropped.add(record, key),
            Item::Stub(stub) => {
                let (bytes, hash) = bodies.hash(stub, key, Stage::Sort, meter)?;
                dropped.add_hashed(bytes, hash);
            }
        }
        Ok(true)
    }
}
