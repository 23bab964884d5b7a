//! How a worker distributes a job of which only the first records come out: most are dropped at once.
//!
//! Records go to its store ([`crate::best`]) as long as as many as are wanted fit there, and from there to partitions at
//! the end. Once they do not, they go to partitions at once, if they are not behind the bar; and what belongs to a slot
//! below which there are enough records already is dropped.

use crate::batch::{Batch, Offsets};
use crate::best::Best;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::metrics::Meter;
use crate::partitions::Partitions;
use crate::run::Shared;
use crate::stage::partition::{Scratch, partition};
use crate::table::Table;

/// Where the records of such a job go.
pub struct ToFirst<'w, 'a> {
    pub shared: &'w Shared<'w>,
    pub partitions: &'w Partitions<'w>,
    pub best: &'w mut Best<'a>,
    pub scratch: &'w mut Scratch,
}

impl ToFirst<'_, '_> {
    /// Takes a batch, and answers what was dropped: of it, or of what was kept before.
    pub fn take(
        &mut self,
        table: &Table,
        batch: &Batch<'_>,
        meter: &mut Meter<'_>,
    ) -> Result<Fingerprint> {
        let mut dropped = Fingerprint::default();
        let mut taken = 0;
        if self.best.begin() {
            let (best, chunk) = (&mut *self.best, batch.chunk);
            let mut records = batch.records();
            let refused = records.position(|record| !best.offer(record, chunk, &mut dropped));
            match refused {
                None => return Ok(dropped),
                Some(at) => taken = at,
            }
        }
        self.empty_store(table, &mut dropped, meter)?;
        let rest = batch.rest(taken);
        let (best, key) = (&*self.best, self.shared.number);
        let order = &self.shared.plan.order;
        partition(order, table, &rest, self.scratch, |record| {
            let is_out = best.is_out(record, rest.chunk);
            if is_out {
                dropped.add(record, key);
            }
            !is_out
        });
        self.append(table, &rest, &mut dropped, meter)?;
        Ok(dropped)
    }

    /// The last chunk has been distributed: what is kept goes to partitions. Answers what was dropped.
    pub fn end(&mut self, table: &Table, meter: &mut Meter<'_>) -> Result<Fingerprint> {
        let mut dropped = Fingerprint::default();
        self.empty_store(table, &mut dropped, meter)?;
        self.shared.bar.add_appended(&self.best.appended);
        Ok(dropped)
    }

    /// Puts what is kept into partitions, in the order of places.
    fn empty_store(
        &mut self,
        table: &Table,
        dropped: &mut Fingerprint,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let Some(store) = self.best.take(dropped) else {
            return Ok(());
        };
        let plan = self.shared.plan;
        let (mut at, mut offsets) = (0, Vec::new());
        while let Some((chunk, next)) =
            store.next_of_chunk(at, plan.batch_records_max, &mut offsets)
        {
            let batch = Batch {
                chunk,
                bytes: store.bytes(),
                offsets: Offsets::Each(&offsets),
                fingerprint: Fingerprint::default(),
            };
            partition(&plan.order, table, &batch, self.scratch, |_| true);
            self.append(table, &batch, dropped, meter)?;
            at = next;
        }
        Ok(())
    }

    /// Appends each slot's records to its partition, but for those that enough records lie below.
    fn append(
        &mut self,
        table: &Table,
        batch: &Batch<'_>,
        dropped: &mut Fingerprint,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let (order, key) = (&self.shared.plan.order, self.shared.number);
        let needed = self.partitions.slots_with(table, self.best.count());
        for slot in 0..table.slot_count() {
            let range = self.scratch.rows_of(slot);
            if range.is_empty() {
                continue;
            }
            let (rows, spare) = self.scratch.rows_and_spare();
            let rows = &rows[range];
            let mut sum = Fingerprint::default();
            let records = rows.iter().map(|&row| batch.record(row as usize));
            records.for_each(|record| sum.add(record, key));
            if slot >= needed {
                dropped.merge(&sum);
                continue;
            }
            let owner = table.owner(slot);
            self.best.note(owner, &sum);
            if self.partitions.append(owner, batch, rows, spare, meter)? {
                self.partitions.divide(order, owner, batch, rows);
            }
        }
        Ok(())
    }
}
