//! Batch to partitions: which slot of the table each record falls into, and one append for each slot.
//!
//! A counting sort of the records' indexes by slot, then one run of copies per slot: the scattered reads
//! stay within a chunk that is warm in the cache, the writes are sequential (cf. software
//! write-combining, Balkesen et al. 2013).

use sortmill_io::Buffer;

use crate::batch::Batch;
use crate::order::Order;
use crate::stage::kernel;
use crate::table::Table;

/// A worker's scratch space, kept from batch to batch.
#[derive(Default)]
pub struct Scratch {
    /// Each record's slot.
    slots: Vec<u32>,
    /// Where each slot's indexes start.
    starts: Vec<u32>,
    /// Indexes of records, by slot and then in order.
    rows: Vec<u32>,
    /// A key, for tables that need it whole.
    key: Vec<u8>,
    /// A block in reserve, so that nobody waits for memory with a partition locked.
    pub spare: Option<Buffer>,
}

/// Sorts the records of `batch` by slot: afterwards [`Scratch::rows_of`] tells which fell into each. Those that are
/// not `wanted` fall into none.
pub fn partition(
    order: &Order,
    table: &Table,
    batch: &Batch<'_>,
    scratch: &mut Scratch,
    mut wanted: impl FnMut(&[u8]) -> bool,
) {
    let mut key = std::mem::take(&mut scratch.key);
    let records = batch.records();
    let slots = records.map(|record| {
        kernel::prefetch_behind(record);
        match wanted(record) {
            true => table.slot(order, record, order.word(record, 0), batch.chunk, &mut key),
            false => table.slot_count(),
        }
    });
    by_slot(slots, table.slot_count(), scratch);
    scratch.key = key;
}

/// Deals the records of `batch` to `slot_count` slots: `slot_of` says by the index of one to which it goes.
pub fn deal(
    batch: &Batch<'_>,
    slot_count: usize,
    scratch: &mut Scratch,
    slot_of: impl FnMut(usize) -> usize,
) {
    by_slot((0..batch.len()).map(slot_of), slot_count, scratch);
}

/// Sorts records by their slots; that of those that are in none is `slot_count`.
#[inline]
fn by_slot(of_each: impl Iterator<Item = usize>, slot_count: usize, scratch: &mut Scratch) {
    let Scratch {
        slots,
        starts,
        rows,
        ..
    } = scratch;
    slots.clear();
    starts.clear();
    // One more, at the end, is for those that are in none.
    starts.resize(slot_count + 2, 0);
    for slot in of_each {
        starts[slot + 1] += 1;
        slots.push(slot as u32);
    }
    for slot in 1..starts.len() {
        starts[slot] += starts[slot - 1];
    }
    rows.clear();
    rows.resize(slots.len(), 0);
    for (row, &slot) in slots.iter().enumerate() {
        let next = &mut starts[slot as usize];
        rows[*next as usize] = row as u32;
        *next += 1;
    }
    // Each start has moved to its slot's end, which is where the next slot starts.
    starts.rotate_right(1);
    starts[0] = 0;
}

impl Scratch {
    /// The records of the last batch that fell into `slot`, in order.
    #[must_use]
    pub fn rows_of(&self, slot: usize) -> std::ops::Range<usize> {
        self.starts[slot] as usize..self.starts[slot + 1] as usize
    }

    /// Splits the scratch space into the indexes of records and the spare block.
    pub fn rows_and_spare(&mut self) -> (&[u32], &mut Option<Buffer>) {
        (&self.rows, &mut self.spare)
    }
}
