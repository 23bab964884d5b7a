//! Records of a partition joined before they are sorted, where few keys come often: what is sorted, gathered and reduced then
//! is one record of each key. Of a function that combines what it reduces ([`crate::job::Job::joins`]).
//!
//! ```text
//! blocks, checked --> table in the processor's cache --> one record of each key --> entries, sorted, proven, reduced
//!         `-- fingerprint of each record, as gathered
//! ```
//!
//! A partition whose keys do not fit in the table is sorted as ever; so are some that follow it. The same comes out: who joins
//! is who combines what the map function makes (the combiner of MapReduce, Dean and Ghemawat 2004, section 4.3, beside the reducer).

use sortmill_io::frame::{HEADER_BYTES, Segment};

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
use crate::stage::sort::{Framed, Load};

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

    /// Joins the records of a unit's blocks under the fingerprints' `key`. Answers what was there and what that adds up to, and how
    /// many records are left, of which entries tell now; `None` if they are to be sorted as they are, or a block is not what was
    /// written: who lays them out says where.
    pub fn join(
        &mut self,
        (job, order, key): (&Job, &Order, u64),
        blocks: &[Framed<'_>],
        entries: &mut [Entry],
    ) -> Option<(Load, Fingerprint, usize)> {
        if self.aside > 0 {
            self.aside -= 1;
            return None;
        }
        let (mut load, mut gathered) = (Load::default(), Fingerprint::default());
        let mut blocks = blocks.iter();
        let all =
            blocks.try_for_each(|block| self.join_block(job, block, key, &mut load, &mut gathered));
        self.made.clear();
        self.join.take(&mut self.made);
        let count = self.made.len() / self.record_bytes;
        if all.is_none() || (count * RECORDS_PER_KEY) as u64 > load.records {
            self.aside = ASIDE;
            return None;
        }
        for (at, record) in self.made.chunks_exact(self.record_bytes).enumerate() {
            *entries.get_mut(at)? = kernel::entry(order.word(record, 0), at as u32, at as u32);
        }
        Some((load, gathered, count))
    }

    /// The same of one block. `None` if there is no room, or it has stubs of long records, or is not what was written.
    fn join_block(
        &mut self,
        job: &Job,
        block: &Framed<'_>,
        key: u64,
        load: &mut Load,
        gathered: &mut Fingerprint,
    ) -> Option<()> {
        block.check().ok()?;
        let before = load.records;
        let mut rest = block.bytes.get(HEADER_BYTES..)?;
        rest = rest.get(..block.header.payload_bytes as usize)?;
        while !rest.is_empty() {
            let (segment, header_bytes) = Segment::get(rest).ok()?;
            let (records, behind) =
                rest[header_bytes..].split_at_checked(segment.bytes as usize)?;
            rest = behind;
            if records.len() != segment.record_count as usize * self.record_bytes {
                return None;
            }
            load.records += u64::from(segment.record_count);
            load.bytes += u64::from(segment.bytes);
            let records = border::joined(job, records, self.record_bytes);
            gathered.add_all(records, self.record_bytes, key);
            if !self.join.add(records) {
                return None;
            }
        }
        (load.records - before == u64::from(block.header.record_count)).then_some(())
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
