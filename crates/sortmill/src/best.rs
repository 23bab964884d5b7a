//! The records that may be among the first so many: kept in memory, so that of an input far larger than it nothing goes
//! to disk.
//!
//! Each worker has a store of its own. Where that holds twice as many as are wanted, or is full, all that cannot be among
//! the first any more leave it, and the last of those that stay becomes the **bar**: whatever lies behind it need not be
//! looked at further, by any worker. So of records in random order few get into a store, and of those in the worst order
//! each is moved twice on average (a selection takes as many steps as there are records: Hoare, Find, 1961).
//!
//! ```text
//! batch -- behind the bar: dropped
//!     \--> store: slab of records, (word, chunk, where in the slab) of each
//!             | twice as many as are wanted: select, the others are dropped, the bar is lowered
//!             | as many as are wanted do not fit, or the input ends: to partitions, in the order of places
//! ```
//!
//! Places are (chunk, where in the slab): a worker has a chunk to itself, and what comes later lies further behind.
//! The memory is a holder of the plan's.

use std::cmp::Ordering;
use std::ops::Range;

use sortmill_io::sync::atomic::{AtomicBool, AtomicU64, Ordering as Memory};
use sortmill_io::sync::{Mutex, lock};
use sortmill_io::{Buffer, Pool};

use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::order::Order;
use crate::plan::Candidates;

/// Fewer records are not worth a selection.
const SELECT_MIN: usize = 1024;

/// A record that has as many as are wanted before it, itself among them.
#[derive(Clone)]
struct Mark {
    word: u64,
    record: Vec<u8>,
    chunk: u64,
}

impl Mark {
    /// Whether a record lies before it, behind it, or neither as far as the chunk tells.
    #[inline]
    fn compare(&self, order: &Order, word: u64, record: &[u8], chunk: u64) -> Ordering {
        let by_word = word.cmp(&self.word);
        let by_key = by_word.then_with(|| order.compare(record, &self.record));
        by_key.then(chunk.cmp(&self.chunk))
    }
}

/// What all workers of a job know of the first so many.
pub struct Bar {
    mark: Mutex<Option<Mark>>,
    /// How often it was lowered.
    lowered: AtomicU64,
    /// Somebody's store could not hold them.
    is_full: AtomicBool,
    /// What was put into each partition, by its number.
    appended: Mutex<Vec<Fingerprint>>,
}

impl Default for Bar {
    fn default() -> Self {
        Self {
            mark: Mutex::new(None),
            lowered: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
            appended: Mutex::new(Vec::new()),
        }
    }
}

impl Bar {
    /// Has nothing pass that lies behind this record.
    fn lower(&self, order: &Order, word: u64, record: &[u8], chunk: u64) {
        let mut mark = lock(&self.mark);
        let is_lower = |mark: &Mark| mark.compare(order, word, record, chunk).is_lt();
        if mark.as_ref().is_none_or(is_lower) {
            *mark = Some(Mark {
                word,
                record: record.to_vec(),
                chunk,
            });
            self.lowered.fetch_add(1, Memory::SeqCst);
        }
    }

    /// Adds what one worker put into partitions.
    pub fn add_appended(&self, by_partition: &[Fingerprint]) {
        let mut appended = lock(&self.appended);
        if appended.len() < by_partition.len() {
            appended.resize(by_partition.len(), Fingerprint::default());
        }
        for (sum, one) in appended.iter_mut().zip(by_partition) {
            sum.merge(one);
        }
    }

    /// What was put into partition `id`, once all workers have told.
    #[must_use]
    pub fn appended(&self, id: u32) -> Fingerprint {
        let appended = lock(&self.appended);
        appended.get(id as usize).copied().unwrap_or_default()
    }
}

/// What one worker keeps.
pub struct Best<'a> {
    bar: &'a Bar,
    order: &'a Order,
    /// What fingerprints are keyed by.
    key: u64,
    /// How many records are wanted.
    count: u64,
    /// The bar as it was when last looked at, and how often it had been lowered by then.
    mark: Option<Mark>,
    lowered: u64,
    store: Option<Store>,
    /// What it put into each partition.
    pub appended: Vec<Fingerprint>,
}

/// Records in memory.
pub struct Store {
    /// The first holds them, the second is where they move to.
    slabs: [Buffer; 2],
    used: usize,
    kept: Vec<Kept>,
    count_max: usize,
}

#[derive(Clone, Copy)]
struct Kept {
    word: u64,
    chunk: u64,
    at: u32,
    bytes: u32,
}

impl<'a> Best<'a> {
    /// Nothing has come. `plan` is the memory for it, if there is enough for `count` records.
    ///
    /// # Errors
    /// When there is no memory to map.
    pub fn new(
        bar: &'a Bar,
        order: &'a Order,
        key: u64,
        count: u64,
        plan: Option<Candidates>,
    ) -> Result<Self> {
        Ok(Self {
            bar,
            order,
            key,
            count,
            mark: None,
            lowered: 0,
            store: plan.map(Store::new).transpose()?,
            appended: Vec::new(),
        })
    }

    /// How many records are wanted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Looks at the bar as it is now. Whether records still go to the store.
    pub fn begin(&mut self) -> bool {
        self.look();
        self.store.is_some() && !self.bar.is_full.load(Memory::SeqCst)
    }

    fn look(&mut self) {
        let lowered = self.bar.lowered.load(Memory::SeqCst);
        if lowered != self.lowered {
            self.mark.clone_from(&lock(&self.bar.mark));
            self.lowered = lowered;
        }
    }

    /// Whether a record cannot be among the first any more.
    #[inline]
    #[must_use]
    pub fn is_out(&self, record: &[u8], chunk: u64) -> bool {
        self.count == 0 || self.is_behind(self.order.word(record, 0), record, chunk)
    }

    #[inline]
    fn is_behind(&self, word: u64, record: &[u8], chunk: u64) -> bool {
        let is_behind = |mark: &Mark| mark.compare(self.order, word, record, chunk).is_gt();
        self.mark.as_ref().is_some_and(is_behind)
    }

    /// Takes a record, or drops it. `false` if there is no room for as many as are wanted: it was neither taken nor
    /// dropped, and what is kept is to be [taken out](Self::take).
    #[inline]
    pub fn offer(&mut self, record: &[u8], chunk: u64, dropped: &mut Fingerprint) -> bool {
        let word = self.order.word(record, 0);
        if self.count == 0 || self.is_behind(word, record, chunk) {
            dropped.add(record, self.key);
            return true;
        }
        let store = self.store.as_mut().expect("records still go there");
        if store.put(word, record, chunk) {
            let enough = self.count.saturating_mul(2).max(SELECT_MIN as u64);
            if store.kept.len() as u64 >= enough {
                self.select(dropped);
            }
            return true;
        }
        self.select(dropped);
        let store = self.store.as_mut().expect("it was there a moment ago");
        let is_full =
            store.kept.len() > store.count_max / 2 || store.used > store.slabs[0].len() / 2;
        if !is_full && store.put(word, record, chunk) {
            return true;
        }
        self.bar.is_full.store(true, Memory::SeqCst);
        false
    }

    /// Drops what cannot be among the first any more, and lowers the bar. What stays lies in the order of places.
    fn select(&mut self, dropped: &mut Fingerprint) {
        let Some(mut store) = self.store.take() else {
            return;
        };
        let (order, key) = (self.order, self.key);
        let Store { slabs, kept, .. } = &mut store;
        let [from, to] = slabs;
        let record = |kept: &Kept| &from[kept.range()];
        let wanted = usize::try_from(self.count).unwrap_or(usize::MAX);
        if wanted > 0 && wanted <= kept.len() {
            let (_, last, behind) = kept.select_nth_unstable_by(wanted - 1, |a, b| {
                let by_word = a.word.cmp(&b.word);
                let by_key = by_word.then_with(|| order.compare(record(a), record(b)));
                by_key.then((a.chunk, a.at).cmp(&(b.chunk, b.at)))
            });
            behind
                .iter()
                .for_each(|kept| dropped.add(record(kept), key));
            self.bar.lower(order, last.word, record(last), last.chunk);
            kept.truncate(wanted);
        }
        self.look();
        kept.retain(|kept| {
            let is_behind = self.is_behind(kept.word, record(kept), kept.chunk);
            if is_behind {
                dropped.add(record(kept), key);
            }
            !is_behind
        });
        kept.sort_unstable_by_key(|kept| (kept.chunk, kept.at));
        let mut used = 0;
        for kept in kept.iter_mut() {
            let range = kept.range();
            kept.at = used as u32;
            to[used..used + range.len()].copy_from_slice(&from[range]);
            used += kept.bytes as usize;
        }
        slabs.swap(0, 1);
        store.used = used;
        self.store = Some(store);
    }

    /// Takes out what is kept, if there is a store: from then on nothing goes there. What cannot be among the first any
    /// more is dropped before.
    pub fn take(&mut self, dropped: &mut Fingerprint) -> Option<Store> {
        self.select(dropped);
        self.store.take()
    }

    /// Notes that a partition got records that add up to `sum`.
    pub fn note(&mut self, id: u32, sum: &Fingerprint) {
        let id = id as usize;
        if self.appended.len() <= id {
            self.appended.resize(id + 1, Fingerprint::default());
        }
        self.appended[id].merge(sum);
    }
}

impl Kept {
    fn range(&self) -> Range<usize> {
        self.at as usize..(self.at + self.bytes) as usize
    }
}

impl Store {
    fn new(plan: Candidates) -> Result<Self> {
        let wrong = |error: std::io::Error| {
            Error::new(ErrorKind::Memory, "mapping memory", error.to_string())
        };
        let pool = Pool::new(2, plan.slab_bytes).map_err(wrong)?;
        let slab = || pool.take().expect("two buffers of its own");
        Ok(Self {
            slabs: [slab(), slab()],
            used: 0,
            kept: Vec::new(),
            count_max: plan.count_max,
        })
    }

    /// Puts a record, if there is room.
    #[inline]
    fn put(&mut self, word: u64, record: &[u8], chunk: u64) -> bool {
        let Some(room) = self.slabs[0].get_mut(self.used..self.used + record.len()) else {
            return false;
        };
        if self.kept.len() == self.count_max {
            return false;
        }
        room.copy_from_slice(record);
        if self.kept.len() == self.kept.capacity() {
            // As it is needed, and never beyond what the plan set apart.
            let more = self
                .kept
                .len()
                .max(SELECT_MIN)
                .min(self.count_max - self.kept.len());
            self.kept.reserve_exact(more);
        }
        self.kept.push(Kept {
            word,
            chunk,
            at: self.used as u32,
            bytes: record.len() as u32,
        });
        self.used += record.len();
        true
    }

    /// The records, back to back in the order of places.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.slabs[0][..self.used]
    }

    /// The next records of one chunk, of those from `from` on: the chunk and, in `offsets`, where each begins and the last
    /// one ends, at most `count_max` records. `None` behind the last one. Answers with them where to go on.
    #[must_use]
    pub fn next_of_chunk(
        &self,
        from: usize,
        count_max: usize,
        offsets: &mut Vec<u32>,
    ) -> Option<(u64, usize)> {
        let chunk = self.kept.get(from)?.chunk;
        let rest = self.kept[from..].iter().take(count_max);
        let of_chunk = rest.take_while(|kept| kept.chunk == chunk);
        offsets.clear();
        let mut end = self.kept[from].at;
        offsets.push(end);
        for kept in of_chunk {
            end += kept.bytes;
            offsets.push(end);
        }
        Some((chunk, from + offsets.len() - 1))
    }
}

/// Bytes that a record takes beside its own.
pub const KEPT_BYTES: usize = size_of::<Kept>();

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    /// Two workers, records in the worst order and in none: what they keep holds the first so many of all, in the order
    /// of places; what they drop and what they keep is what came.
    #[test]
    fn the_first_are_kept_whatever_comes() {
        let plan = Candidates {
            slab_bytes: 64 << 10,
            count_max: 4096,
        };
        let mut state = 3_u64;
        let mut random = move || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            state >> 33
        };
        for wanted in [0, 1, 10, 700] {
            for falling in [false, true] {
                let (bar, order) = (Bar::default(), Order::lines());
                let mut workers = [(); 2].map(|()| {
                    let best = Best::new(&bar, &order, 5, wanted, Some(plan)).unwrap();
                    (best, Fingerprint::default())
                });
                let mut all = Vec::new();
                let mut came = Fingerprint::default();
                for chunk in 0..60_u64 {
                    let (best, dropped) = &mut workers[(chunk % 2) as usize];
                    assert!(best.begin());
                    for index in 0..200 {
                        let number = match falling {
                            true => 50_000 - chunk * 200 - index,
                            false => random() % 3000,
                        };
                        let line = format!("{number:08}\n").into_bytes();
                        came.add(&line, 5);
                        assert!(best.offer(&line, chunk, dropped));
                        all.push((line, chunk, index));
                    }
                }
                let mut kept = Vec::new();
                let mut sum = Fingerprint::default();
                for (best, dropped) in &mut workers {
                    let store = best.take(dropped).unwrap();
                    sum.merge(dropped);
                    let (mut at, mut offsets, mut before) = (0, Vec::new(), None);
                    while let Some((chunk, next)) = store.next_of_chunk(at, 50, &mut offsets) {
                        assert!(before.is_none_or(|before| before <= chunk));
                        before = Some(chunk);
                        for pair in offsets.windows(2) {
                            let line = &store.bytes()[pair[0] as usize..pair[1] as usize];
                            sum.add(line, 5);
                            kept.push((line.to_vec(), chunk));
                        }
                        at = next;
                    }
                }
                assert_eq!(sum, came);
                all.sort();
                all.truncate(wanted as usize);
                // Stable: of one chunk's equal lines the first ones come first.
                kept.sort();
                kept.truncate(wanted as usize);
                let all: Vec<(Vec<u8>, u64)> = all
                    .into_iter()
                    .map(|(line, chunk, _)| (line, chunk))
                    .collect();
                assert!(kept == all, "{wanted} of lines, falling: {falling}");
            }
        }
    }

    #[test]
    fn a_store_that_is_too_small_says_so() {
        let (bar, order) = (Bar::default(), Order::lines());
        let plan = Candidates {
            slab_bytes: 4096,
            count_max: 1 << 20,
        };
        let mut best = Best::new(&bar, &order, 5, 300, Some(plan)).unwrap();
        let mut dropped = Fingerprint::default();
        let lines = (0..1000).map(|number| format!("{number:012}\n"));
        let taken = lines.take_while(|line| best.offer(line.as_bytes(), 0, &mut dropped));
        let count = taken.count();
        assert!((250..1000).contains(&count), "{count}");
        assert!(!best.begin());
        let store = best.take(&mut dropped).unwrap();
        assert_eq!(store.kept.len() as u64 + dropped.records, count as u64);
    }
}
