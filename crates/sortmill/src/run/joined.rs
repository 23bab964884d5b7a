//! Records of a partition joined before they are sorted, where few keys come often: what is sorted, gathered and reduced then
//! is one record of each key. Of a function that combines what it reduces ([`crate::job::Job::joins`]).
//!
//! ```text
//! entries, as records lie --> table in the processor's cache --> one record of each key --> sorted, proven, reduced
//!          `-- fingerprint of each record, as gathered
//! ```
//!
//! A partition whose keys do not fit in the table is sorted as ever; so are some that follow it. The same comes out: who joins
//! is who combines what the map function makes (the combiner of MapReduce, Dean and Ghemawat 2004, section 4.3, beside the reducer).

use super::border;
use super::tail::WayOut;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::job::{Job, Join};
use crate::metrics::Meter;
use crate::order::{Format, Order};
use crate::plan::Plan;
use crate::stage::kernel::{self, Entry};
use crate::stage::reduce::out_of_order;
use crate::stage::sort::Slab;

/// So many records are handed over at once.
const AT_ONCE: usize = 64;
/// After a partition that was not worth it so many are sorted as ever.
const ASIDE: u32 = 15;
/// It was worth it if there are at least so many records to a key.
const RECORDS_PER_KEY: usize = 2;

/// What one worker joins records with.
pub struct Joining {
    join: Box<dyn Join>,
    record_bytes: usize,
    /// What a partition was joined to.
    made: Vec<u8>,
    /// So many partitions are not tried.
    aside: u32,
}

impl Joining {
    /// Where it is done at all.
    pub fn new(job: &Job, plan: &Plan, order: &Order) -> Option<Self> {
        let make = job.joins.as_ref().filter(|_| plan.joined_bytes > 0)?;
        let Format::Fixed(bytes) = order.format() else {
            return None;
        };
        Some(Self {
            join: make(plan.joined_bytes),
            record_bytes: bytes as usize,
            made: Vec::new(),
            aside: 0,
        })
    }

    /// Joins the records that entries tell of, as they were laid out, under the fingerprints' `key`. Answers what they add up to,
    /// and how many are left, of which entries tell now; `None` if they are to be sorted as they are.
    pub fn join(
        &mut self,
        (job, order, key): (&Job, &Order, u64),
        slab: &Slab<'_>,
        entries: &mut [Entry],
    ) -> Option<(Fingerprint, usize)> {
        if self.aside > 0 || slab.has_stubs() || slab.is_drawn() || !slab.begins_with_keys() {
            self.aside = self.aside.saturating_sub(1);
            return None;
        }
        let mut fingerprint = Fingerprint::default();
        let fits = {
            let records = entries.iter().map(|&entry| {
                let record = slab.record(order, kernel::location(entry));
                (kernel::ordinal(entry).into(), record)
            });
            let mut records = border::sorted(job, records).map(|(_, record)| record);
            let mut some = Vec::with_capacity(AT_ONCE);
            loop {
                some.clear();
                some.extend(records.by_ref().take(AT_ONCE));
                some.iter().for_each(|record| fingerprint.add(record, key));
                if some.is_empty() || !self.join.add(&some) {
                    break some.is_empty();
                }
            }
        };
        self.made.clear();
        self.join.take(&mut self.made);
        let count = self.made.len() / self.record_bytes;
        if !fits || count * RECORDS_PER_KEY > entries.len() {
            self.aside = ASIDE;
            return None;
        }
        for (at, record) in self.made.chunks_exact(self.record_bytes).enumerate() {
            entries[at] = kernel::entry(order.word(record, 0), at as u32, at as u32);
        }
        Some((fingerprint, count))
    }

    /// The record that one of the entries tells of that are left.
    pub fn record(&self, entry: Entry) -> &[u8] {
        let at = kernel::location(entry) as usize * self.record_bytes;
        &self.made[at..at + self.record_bytes]
    }

    /// Hands out the records that are left in the order of `entries`, and proves that it is theirs: no key comes twice.
    pub fn gather(
        &self,
        entries: &[Entry],
        way: &mut WayOut<'_, '_>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let mut last = None;
        for &entry in entries {
            let record = self.record(entry);
            let word = way.order.word(record, 0);
            if last.replace(word).is_some_and(|last| last >= word) {
                return Err(out_of_order());
            }
            way.put(record, meter)?;
        }
        Ok(())
    }
}
