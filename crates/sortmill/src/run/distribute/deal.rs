//! From a worker's batch to partitions: by keys, by draws, past what it has seen, to the first records alone, or to
//! other nodes.
//!
//! In come a batch and what a worker has in hand from batch to batch; records are copied into the partitions' blocks.

use super::super::exchange::Exchange;
use super::super::origins::Origins;
use super::super::{Shared, border};
use super::top::ToFirst;
use super::{Seen, count};
use crate::batch::{Batch, Chunk, Goes};
use crate::best::Best;
use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::metrics::{Meter, Stage, State};
use crate::partitions::Partitions;
use crate::repeats::Repeats;
use crate::shuffle::Shuffle;
use crate::stage::partition::{Scratch, deal, partition};
use crate::table::{Table, node_of};
use crate::tamper::Border;

/// What a worker has in hand while it distributes.
pub struct Hands<'a> {
    pub scratch: Scratch,
    /// The keys it has seen, where repeats are dropped.
    repeats: Option<Repeats>,
    /// What deals records, where their order is drawn, and how many of the chunk it has dealt.
    pub shuffle: Option<Shuffle>,
    pub passed: u64,
    /// What may be among the first, where only those come out.
    pub best: Option<Best<'a>>,
    /// The turn of its chunk, where what is made of it passes on to the output; once it has had one.
    pub turn: u64,
    pub has_turn: bool,
    /// What it has seen.
    pub seen: Seen,
}

impl<'a> Hands<'a> {
    /// Nothing yet.
    ///
    /// # Errors
    /// When there is no memory to map.
    pub fn new(shared: &'a Shared<'_>) -> Result<Self> {
        let plan = shared.plan;
        let best = |count| {
            let (bar, key) = (&shared.bar, shared.number);
            Best::new(bar, &plan.order, key, count, plan.candidates)
        };
        Ok(Self {
            scratch: Scratch::default(),
            repeats: plan.seen.map(Repeats::new).transpose()?,
            shuffle: shared.job.yields.shuffle(),
            passed: 0,
            best: shared.job.yields.first().map(best).transpose()?,
            turn: 0,
            has_turn: false,
            seen: Seen::default(),
        })
    }

    /// Where records go, if only the first come out.
    fn first_only<'w>(
        &'w mut self,
        shared: &'w Shared<'w>,
        partitions: &'w Partitions<'w>,
    ) -> Option<ToFirst<'w, 'a>> {
        Some(ToFirst {
            shared,
            partitions,
            best: self.best.as_mut()?,
            scratch: &mut self.scratch,
        })
    }

    /// Distributes what was kept of the first records, when no more come.
    ///
    /// # Errors
    /// The job's, when it is ending.
    pub fn end(
        &mut self,
        shared: &Shared<'_>,
        partitions: &Partitions<'_>,
        table: &Table,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let Some(mut to) = self.first_only(shared, partitions) else {
            return Ok(());
        };
        let dropped = to.end(table, meter)?;
        partitions.passed(dropped.bytes);
        self.seen.dropped.merge(&dropped);
        meter.lap(Stage::Partition, State::Work);
        Ok(())
    }
}

/// Where the records of one chunk go.
pub struct To<'a> {
    pub shared: &'a Shared<'a>,
    pub partitions: &'a Partitions<'a>,
    pub origins: Option<&'a Origins>,
    pub exchange: Option<&'a Exchange<'a>>,
    pub table: &'a Table,
    /// Where this process read it, and the index in the batch of what stands at its offset.
    pub chunk: Option<(&'a Chunk, usize)>,
    pub goes: Goes,
}

impl To<'_> {
    /// Partitions a batch and appends its records, but for those that are dropped: repeats, where they are, and what
    /// cannot be among the first, where only those come out.
    pub fn distribute(
        &self,
        batch: &Batch<'_>,
        hands: &mut Hands<'_>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        hands.seen.mapped.merge(&batch.fingerprint);
        let passing = Batch { ..*batch };
        let batch = &border::batch(self.shared.job, Border::Partition, passing);
        if let Some(passing) = &self.shared.passing {
            let bytes = match batch.is_empty() {
                true => &[],
                false => &batch.bytes[batch.offsets.range(0).start..batch.offsets.end()],
            };
            let was_put = passing.put(hands.turn, bytes);
            meter.lap(Stage::Partition, State::Output);
            return was_put
                .then_some(())
                .ok_or_else(|| self.shared.stop.error());
        }
        let mut dropped = Fingerprint::default();
        match self.goes {
            Goes::AllToSlot(slot) => {
                append_all(self.partitions, slot, batch, &mut hands.scratch, meter)?;
            }
            Goes::OnlySlot(_) | Goes::ByKey => {
                if let Some(mut to) = hands.first_only(self.shared, self.partitions) {
                    dropped = to.take(self.table, batch, meter)?;
                } else {
                    self.partition(batch, hands, &mut dropped);
                    self.append(batch, &mut hands.scratch, meter)?;
                }
            }
        }
        hands.passed += batch.len() as u64;
        self.partitions.passed(dropped.bytes);
        hands.seen.dropped.merge(&dropped);
        // Not the batch's without those: a planted fault may have altered these.
        let mut kept = batch.fingerprint;
        kept.records = kept.records.saturating_sub(dropped.records);
        kept.bytes = kept.bytes.saturating_sub(dropped.bytes);
        count(meter, Stage::Partition, &batch.fingerprint, &kept);
        meter.lap(Stage::Partition, State::Work);
        Ok(())
    }

    /// Finds each record's slot: by its key, or, where the order is drawn, by a draw.
    fn partition(&self, batch: &Batch<'_>, hands: &mut Hands<'_>, dropped: &mut Fingerprint) {
        let (order, key) = (&self.shared.plan.order, self.shared.number);
        let (table, scratch, number) = (self.table, &mut hands.scratch, batch.chunk);
        match (&mut hands.repeats, hands.shuffle) {
            (None, None) => partition(order, table, batch, scratch, |_| true),
            (_, Some(shuffle)) => {
                let (draws, count) = (shuffle.dealing(number), table.slot_count());
                let passed = hands.passed;
                deal(batch, count, scratch, |index| {
                    draws.below(passed + index as u64, count)
                });
            }
            (Some(repeats), None) => partition(order, table, batch, scratch, |record| {
                let is_repeat = repeats.is_repeat(order, record, number, key);
                if is_repeat {
                    dropped.add(record, key);
                }
                !is_repeat
            }),
        }
    }

    /// Appends each slot's records to the partition that owns it; workers begin at different slots, so that
    /// they seldom meet.
    fn append(
        &self,
        batch: &Batch<'_>,
        scratch: &mut Scratch,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let count = self.table.slot_count();
        let first = (batch.chunk as usize).wrapping_mul(7919) % count;
        for slot in (first..count).chain(0..first) {
            let range = scratch.rows_of(slot);
            let is_wanted = match self.goes {
                Goes::OnlySlot(only) => slot == only,
                Goes::ByKey | Goes::AllToSlot(_) => true,
            };
            if range.is_empty() || !is_wanted {
                continue;
            }
            let owner = self.table.owner(slot);
            let (rows, spare) = scratch.rows_and_spare();
            let rows = &rows[range];
            if let Some(node) = node_of(owner) {
                let exchange = self.exchange.ok_or_else(|| strayed(node))?;
                exchange.put(node, self.shared, batch, rows, meter)?;
                continue;
            }
            if let (Some(origins), Some((chunk, zero))) = (self.origins, self.chunk) {
                let [first, last] = [rows[0], rows[rows.len() - 1]];
                let [first, last] = [first, last].map(|row| batch.offsets.range(row as usize));
                // What a chunk begins with may lie before `zero`.
                let place = |at: usize| chunk.offset + at as u64 - zero as u64;
                origins.note(slot, chunk, place(first.start)..place(last.end));
            }
            let too_large = self.partitions.append(owner, batch, rows, spare, meter)?;
            if too_large {
                let order = &self.shared.plan.order;
                self.partitions.divide(order, owner, batch, rows);
            }
        }
        Ok(())
    }
}

/// The error of records that another node sent here and that are node `node`'s.
fn strayed(node: u32) -> Error {
    let cause = format!("records came that belong to node {node}");
    Error::new(ErrorKind::Corrupt, "receiving records", cause)
}

/// Appends all records to the partition of one slot.
fn append_all(
    partitions: &Partitions<'_>,
    slot: usize,
    batch: &Batch<'_>,
    scratch: &mut Scratch,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let rows: Vec<u32> = (0..batch.len() as u32).collect();
    let id = u32::try_from(slot).expect("few partitions");
    partitions.append(id, batch, &rows, &mut scratch.spare, meter)?;
    Ok(())
}
