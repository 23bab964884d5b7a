//! When a partition is divided for later arrivals, and where.
//!
//! Half of the newest records are to go to either side. A group whose records a function takes one after the other may be larger
//! than memory: where such a function can go on from unit to unit ([`Plan::groups_go_on`]), a partition is divided within the group
//! too. What it holds by then is read with both of its parts and all of theirs, so one that gets most of its records of one group
//! is divided early, unless a sample of all of them has shown where large groups are.
//!
//! ```text
//! groups a b h c d, most of them h     a b h c d | in front of h | behind h | by what orders the records of h ...
//! ```

use sortmill_io::sync::atomic::Ordering;
use sortmill_io::sync::{Arc, lock};

use super::{Partition, Partitions, State, new_partition};
use crate::batch::Batch;
use crate::order::Order;
use crate::table::Boundary;

/// Partitions are not divided at longer keys: every table and every unit beside it would hold them.
const BOUNDARY_KEY_BYTES_MAX: usize = 4096;
/// A partition that seems to be of one group is divided when it has one part of so many of what it may have.
const GROUP_PARTS: u64 = 8;
/// That is told by no fewer of its newest records.
const TELLING_COUNT: usize = 16;

impl Partitions<'_> {
    /// Whether it is time to divide a partition, one of `count`, or to look whether it is.
    pub(super) fn is_too_large(&self, partition: &Partition, state: &State, count: usize) -> bool {
        // What is read again with each of its parts is small where a stream goes on and on, as long as there may be many.
        let is_early = self.plan.input_bytes.is_none() && partition.may_swell;
        let parts = match 2 * count < self.plan.partition_count_max {
            true if self.divides_early() && !state.is_mixed => GROUP_PARTS,
            true if is_early => 2,
            _ => 1,
        };
        let large = self.is_large(state, parts);
        large && !state.divided && state.held_bytes >= state.divide_from
    }

    /// Whether it is to be known of the blocks of a partition what their keys lie between: of one that may be divided soon,
    /// or whose parts may be, as long as there may be more partitions.
    pub(super) fn keeps_keys(&self, partition: &Partition, count: usize) -> bool {
        let parts = if self.divides_early() { GROUP_PARTS } else { 1 };
        let is_suspect =
            || partition.may_swell || self.is_large(&lock(&partition.state), 2 * parts);
        self.divides && count + 2 <= self.plan.partition_count_max && is_suspect()
    }

    fn divides_early(&self) -> bool {
        self.divides_early.load(Ordering::Relaxed)
    }

    /// Whether a partition is larger than one part of so many of what it may be, if it may be divided.
    fn is_large(&self, state: &State, parts: u64) -> bool {
        let bytes_max = self.plan.divide_bytes / parts;
        let records_max = self.plan.divide_records / parts;
        self.divides && (state.held_bytes > bytes_max || state.records > records_max)
    }

    /// Divides a partition that outgrew its share: `rows` of `batch` are its newest records, and their
    /// median is the best guess at the middle of what is still to come.
    pub fn divide(&self, order: &Order, id: u32, batch: &Batch<'_>, rows: &[u32]) {
        let _one_at_a_time = lock(&self.dividing);
        let table = self.table.now().expect("records have been distributed");
        let parent = self.partition(id);
        let mut rows = rows.to_vec();
        let record = |row: &u32| batch.record(*row as usize);
        rows.sort_unstable_by(|a, b| order.compare(record(a), record(b)));
        if self.divides_early() && !self.are_of_one_group(order, batch, &rows) {
            let mut state = lock(&parent.state);
            state.is_mixed = true;
            if !self.is_large(&state, 1) {
                return;
            }
        }
        let slot = (0..table.slot_count()).find(|&slot| table.owner(slot) == id);
        let count = u32::try_from(self.count()).expect("few partitions");
        let next = slot
            .filter(|_| (count as usize) + 2 <= self.plan.partition_count_max)
            .and_then(|slot| {
                let at = |boundary| table.divide(order, slot, boundary, (count, count + 1));
                self.middle(order, batch, &rows)?.into_iter().find_map(at)
            });
        let mut state = lock(&parent.state);
        let Some(next) = next else {
            state.divide_from = 2 * state.held_bytes;
            return;
        };
        state.divided = true;
        if state.open.is_some() {
            // Little will come any more, and what is full can be evicted.
            self.close_open(&parent, &mut state);
        }
        drop(state);
        let mut ancestors = parent.ancestors.clone();
        ancestors.push(id);
        let mut list = self.list.write().expect("no thread panicked");
        list.push(new_partition(count, parent.region, ancestors.clone(), true));
        list.push(new_partition(count + 1, parent.region, ancestors, true));
        drop(list);
        let mut by_range = lock(&self.by_range);
        let at = by_range
            .iter()
            .position(|&other| other == id)
            .expect("it is listed");
        by_range.splice(at + 1..at + 1, [count, count + 1]);
        drop(by_range);
        self.divided.fetch_add(1, Ordering::SeqCst);
        self.table.keep(Arc::new(next));
    }

    /// Boundaries in the middle of the sorted records `rows`, the best first: at a key, or, where half of them have the
    /// smallest key, behind that key, so that its partition has no other, and at the place where that key is now.
    /// Before these one below the keys that are least like the median, if they are less so than the smallest: among the
    /// lines of a log, say, there are some without a time, and blocks would seem to have something of all that is to come.
    fn middle(&self, order: &Order, batch: &Batch<'_>, rows: &[u32]) -> Option<Vec<Boundary>> {
        let key = |row: &u32| key_of(order, batch, *row);
        let (least, median) = (key(rows.first()?), key(&rows[rows.len() / 2]));
        let alike = |other: &[u8]| {
            let pairs = median.iter().zip(other);
            pairs.take_while(|(a, b)| a == b).count()
        };
        // Of a long record no more than the head of its key can be compared with a boundary.
        let bytes_max = BOUNDARY_KEY_BYTES_MAX.min(self.plan.head_bytes - 1);
        let mut boundaries = Vec::new();
        // At the first `bytes` of a key. Records of one group may have to stay together.
        let mut at = |key: &[u8], bytes: usize, chunk| {
            let bytes_max = match self.heads {
                Some(head) if !self.plan.groups_go_on => bytes_max.min(head(key)),
                _ => bytes_max,
            };
            if bytes <= bytes_max {
                let key = key[..bytes].to_vec();
                boundaries.push(Boundary { key, chunk });
            }
        };
        let low = alike(&least);
        if least < median {
            let high = alike(&key(rows.last()?));
            if high < low {
                let above = &rows[rows.len() / 2..];
                let first = above.partition_point(|row| alike(&key(row)) > high);
                at(&key(&above[first]), high + 1, 0);
            }
            // No longer than it takes to tell the two apart.
            at(&median, low + 1, 0);
        } else if !self.plan.equal_keys_meet || self.plan.groups_go_on {
            for chunk in [u64::MAX, batch.chunk + 1] {
                at(&median, median.len(), chunk);
            }
        }
        Some(boundaries)
    }

    /// Whether half of the sorted records `rows` or more are of one group.
    fn are_of_one_group(&self, order: &Order, batch: &Batch<'_>, rows: &[u32]) -> bool {
        let record = |row: &u32| batch.record(*row as usize);
        let is_one = |a: &u32, b: &u32| {
            let Some(head) = self.heads else {
                return order.compare(record(a), record(b)).is_eq();
            };
            let [a, b] = [a, b].map(|row| key_of(order, batch, *row));
            a[..head(&a)] == b[..head(&b)]
        };
        let groups = rows.chunk_by(is_one);
        let most = groups.map(<[u32]>::len).max().unwrap_or(0);
        rows.len() >= TELLING_COUNT && 2 * most >= rows.len()
    }

    /// Whether records of one group may lie on both sides of a boundary.
    pub(super) fn is_within_group(&self, boundary: &Boundary) -> bool {
        let is_within = match self.heads {
            // In front of a key that is all head it is not.
            Some(head) => match head(&boundary.key) {
                bytes if bytes == boundary.key.len() => boundary.chunk != 0,
                _ => true,
            },
            // In front of a key, and behind all of its records, it is not.
            None => !matches!(boundary.chunk, 0 | u64::MAX),
        };
        self.plan.groups_go_on && is_within
    }
}

/// The key of a record.
fn key_of(order: &Order, batch: &Batch<'_>, row: u32) -> Vec<u8> {
    let mut key = Vec::new();
    order.key_into(batch.record(row as usize), &mut key);
    key
}
