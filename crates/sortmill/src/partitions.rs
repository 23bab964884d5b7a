//! Where distributed records wait to be sorted: blocks in memory, and which of them go to disk.
//!
//! Each partition fills one open block; full blocks stay in memory until the free ones fall below the
//! low-water mark. Then partitions are **evicted**, the highest first, until enough are free for a while: their
//! full blocks are written as they are. So the lowest partitions are in memory when sorting begins, and data
//! that is a little larger than memory spills only a little.
//!
//! A partition that outgrows its share is **divided** for later arrivals: two new partitions take over
//! its range, and what it already holds is read with both of them, each taking the records of its own
//! range. Nothing is written twice (`partitions/dividing.rs`).
//!
//! Of records longer than a block only stubs wait here (`partitions/long.rs`). What leaves memory gets its place on disk
//! when it is about to be written: it may have been compressed by then (`partitions/leave.rs`).
//!
//! Lock order: table, then list, then one partition's state; a thread that waits for memory holds none.

mod dividing;
mod leave;
mod long;
mod room;
mod unit;

use std::ops::Range;

use sortmill_io::frame::Header;
use sortmill_io::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use sortmill_io::sync::{Arc, Mutex, RwLock, lock};
use sortmill_io::{Buffer, Pool};

use crate::batch::Batch;
use crate::block::{Open, Stored, disk_bytes, record_bytes_max};
use crate::bodies::Bodies;
use crate::error::{Error, ErrorKind, Result};
use crate::job::HeadFn;
use crate::key_span::KeySpan;
use crate::metrics::{self, Meter, Stage};
use crate::order::Order;
use crate::packing::Packers;
use crate::plan::Plan;
use crate::queue::{Promise, Stop};
use crate::spills::{SpillBlock, Spilled, Spills};
use crate::spread::Spot;
use crate::table::{Table, node_of};
use crate::temps::Temps;

pub use long::BodyLongs;
pub use unit::{Content, Unit};

/// Where a full block is.
#[derive(Clone)]
pub enum Whereabouts {
    /// In memory.
    Memory(Arc<Buffer>),
    /// On its way to disk, at a place that shows when it is written.
    Leaving,
    /// Among the temporary data on disk.
    Disk(Stored),
}

/// A full block of a partition.
#[derive(Clone)]
pub struct Block {
    /// What its header says, or will say.
    pub header: Header,
    /// Where it is.
    pub whereabouts: Whereabouts,
    /// What the chunks that its records came from lie between.
    pub chunks: Range<u64>,
    /// And their keys, where that is known: of partitions that may be divided soon, or came of dividing.
    pub keys: Option<Box<KeySpan>>,
}

impl Block {
    /// The same, of which nobody will ask what its keys lie between.
    #[must_use]
    pub fn without_keys(&self) -> Self {
        Self {
            header: self.header,
            whereabouts: self.whereabouts.clone(),
            chunks: self.chunks.clone(),
            keys: None,
        }
    }

    /// Its bytes in a file: header and payload, as they lie there or would, rounded up to the alignment.
    #[must_use]
    pub fn disk_bytes(&self) -> usize {
        match self.whereabouts {
            Whereabouts::Disk(stored) => stored.disk_bytes(&self.header),
            Whereabouts::Memory(_) | Whereabouts::Leaving => disk_bytes(&self.header),
        }
    }

    /// Has it leave memory, for `region` of the output's space if temporary data lie there. `None` if it is not there, or
    /// somebody else has a share in it, which nobody has while records arrive.
    pub fn leave(&mut self, region: Option<u32>) -> Option<SpillBlock> {
        let Whereabouts::Memory(buffer) = &mut self.whereabouts else {
            return None;
        };
        Arc::get_mut(buffer)?;
        let Whereabouts::Memory(buffer) =
            std::mem::replace(&mut self.whereabouts, Whereabouts::Leaving)
        else {
            unreachable!("it was in memory a moment ago");
        };
        Some(SpillBlock {
            buffer: Arc::into_inner(buffer).expect("nobody else has a share in it"),
            header: self.header,
            region,
            packed: None,
            is_ready: false,
        })
    }

    /// Where it lies on disk, if it does.
    #[must_use]
    pub fn on_disk(&self) -> Option<Stored> {
        match self.whereabouts {
            Whereabouts::Disk(stored) => Some(stored),
            Whereabouts::Memory(_) | Whereabouts::Leaving => None,
        }
    }

    /// It has got its place on disk.
    pub fn placed(&mut self, stored: Stored) {
        assert!(matches!(self.whereabouts, Whereabouts::Leaving));
        self.whereabouts = Whereabouts::Disk(stored);
    }
}

/// Totals for the report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Partitions that were evicted.
    pub evicted: u64,
    /// Partitions that were divided.
    pub divided: u64,
    /// Bytes written to the temporary file, headers and padding included.
    pub spilled_bytes: u64,
    /// The blocks that left memory, and how many of them were compressed.
    pub spilled: Spilled,
    /// Records that were put into bodies.
    pub long_records: u64,
    /// Records that partitions received.
    pub records: u64,
    /// Bytes of these records.
    pub bytes: u64,
}

struct Partition {
    id: u32,
    /// The slot of the first table in whose range its own lies.
    region: u32,
    ancestors: Vec<u32>,
    /// More may come to it than its share: it is the first or the last of the first table, beyond whose boundaries a stream may
    /// go on, or came of dividing.
    may_swell: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    blocks: Vec<Block>,
    /// How many of them, the first ones, have left memory.
    spilled: usize,
    open: Option<Open>,
    /// What the keys of all full blocks lie between, where it is known of each of them.
    keys: Option<KeySpan>,
    divided: bool,
    /// Not most of its newest records were of one group when that was looked at.
    is_mixed: bool,
    /// Bytes of its records, and of what its blocks hold of them.
    bytes: u64,
    held_bytes: u64,
    records: u64,
    /// The load at which dividing is tried again, after a try that found no boundary.
    divide_from: u64,
}

/// So much may be known of blocks' keys, or one such part of the memory that blocks have, if that is more.
const SPANS_BYTES: u64 = 1 << 20;
const SPANS_PART: u64 = 64;
/// The low-water mark's least: partitions fill their blocks unevenly.
pub const LOW_WATER_LEAST: u64 = 16;
/// Blocks that stay free beside the largest unit: a merge needs one of each run and one to write.
pub const SPARE_BLOCKS: usize = 4;

/// All partitions of a job on one node.
pub struct Partitions<'a> {
    plan: &'a Plan,
    heads: Option<&'a HeadFn>,
    job: u64,
    pool: Pool,
    spills: Spills,
    /// Who compresses blocks, of a job that may.
    packers: Option<&'a Packers>,
    stop: Stop,
    temps: &'a Temps<'a>,
    table: Promise<Arc<Table>>,
    list: RwLock<Vec<Arc<Partition>>>,
    /// Partition numbers in the order of their ranges, a divided one just below its halves.
    by_range: Mutex<Vec<u32>>,
    dividing: Mutex<()>,
    evicting: Mutex<()>,
    bodies: Arc<Bodies>,
    /// Blocks that have left memory and are not written yet, and bytes that all had that have left it.
    spilling: AtomicUsize,
    /// Who waits for a block, or is about to.
    taking: AtomicUsize,
    left_bytes: AtomicU64,
    /// Bytes that partitions received, and those that were dropped before.
    received: AtomicU64,
    evicted: AtomicU64,
    divided: AtomicU64,
    /// Bytes of what is known of blocks' keys.
    span_bytes: AtomicU64,
    /// Whether partitions that outgrow their share are divided.
    divides: bool,
    /// Whether those that seem to be of one group are divided early.
    divides_early: AtomicBool,
}

impl<'a> Partitions<'a> {
    /// No partitions yet: [`Partitions::begin`] makes them. Full blocks of evicted partitions go to
    /// `spills`, where they may be compressed.
    #[must_use]
    pub fn new(
        plan: &'a Plan,
        job: u64,
        pool: Pool,
        (spills, packers): (Spills, Option<&'a Packers>),
        stop: Stop,
        temps: &'a Temps<'a>,
    ) -> Self {
        Self {
            plan,
            heads: None,
            job,
            pool,
            spills,
            packers,
            stop,
            temps,
            table: Promise::default(),
            list: RwLock::new(Vec::new()),
            by_range: Mutex::new(Vec::new()),
            dividing: Mutex::new(()),
            evicting: Mutex::new(()),
            bodies: Arc::default(),
            spilling: AtomicUsize::new(0),
            taking: AtomicUsize::new(0),
            left_bytes: AtomicU64::new(0),
            received: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            divided: AtomicU64::new(0),
            span_bytes: AtomicU64::new(0),
            divides: true,
            divides_early: AtomicBool::new(plan.groups_go_on),
        }
    }

    /// The same of records whose keys begin with what `heads` tells of, if anything, and that meet by it ([`Job::equal_heads_meet`]).
    #[must_use]
    pub fn by_heads(self, heads: Option<&'a HeadFn>) -> Self {
        Self { heads, ..self }
    }

    /// The same, and each slot keeps its partition: some of them are taken before all records have come.
    #[must_use]
    pub fn undivided(self) -> Self {
        Self {
            divides: false,
            ..self
        }
    }

    /// A sample of all that comes has told where large groups are: they have partitions of their own by now.
    pub fn know_groups(&self) {
        self.divides_early.store(false, Ordering::Relaxed);
    }

    /// Where the bodies of long records are.
    #[must_use]
    pub fn bodies(&self) -> Arc<Bodies> {
        Arc::clone(&self.bodies)
    }

    /// The promise of the current table: workers wait for the first one, and look again for each chunk.
    #[must_use]
    pub fn table(&self) -> Promise<Arc<Table>> {
        self.table.clone()
    }

    /// Makes a partition for each slot of `table` that is this node's, and lets the workers begin.
    pub fn begin(&self, table: Table) {
        let count = u32::try_from(table.partition_count()).expect("few partitions");
        let mut list = self.list.write().expect("no thread panicked");
        list.extend((0..count).map(|id| {
            let is_outer = id == 0 || id + 1 == count;
            new_partition(id, id, Vec::new(), is_outer)
        }));
        drop(list);
        *lock(&self.by_range) = (0..count).collect();
        self.table.keep(Arc::new(table));
    }

    /// Appends the records `rows` of `batch` to partition `id`, in order. Says whether the partition has
    /// outgrown its share.
    ///
    /// # Errors
    /// The job's, when it is ending.
    pub fn append(
        &self,
        id: u32,
        batch: &Batch<'_>,
        rows: &[u32],
        spare: &mut Option<Buffer>,
        meter: &mut Meter<'_>,
    ) -> Result<bool> {
        let partition = self.partition(id);
        let count = self.count();
        let order = self.keeps_keys(&partition, count);
        let order = order.then_some(&self.plan.order);
        let mut rest = rows;
        loop {
            if spare.is_none() {
                *spare = Some(self.take_block(Stage::Partition, meter)?);
            }
            let mut state = lock(&partition.state);
            while let Some(&row) = rest.first() {
                if batch.record(row as usize).len() > self.long_from() {
                    break;
                }
                if state.open.is_none() {
                    let Some(buffer) = spare.take() else { break };
                    state.open = Some(Open::new(buffer));
                }
                let open = state.open.as_mut().expect("just made");
                let room = self.plan.block_records_max - open.records() as usize;
                let put = open.put(batch, &rest[..rest.len().min(room)], order);
                if put == 0 {
                    self.close_open(&partition, &mut state);
                }
                let bytes = batch.bytes_of(&rest[..put]);
                self.received.fetch_add(bytes, Ordering::Relaxed);
                state.records += put as u64;
                state.bytes += bytes;
                state.held_bytes += bytes;
                rest = &rest[put..];
            }
            let too_large = self.is_too_large(&partition, &state, count);
            drop(state);
            match rest.first() {
                None => return Ok(too_large),
                Some(&row) if batch.record(row as usize).len() > self.long_from() => {
                    self.append_long(id, batch.chunk, batch.record(row as usize), spare, meter)?;
                    rest = &rest[1..];
                }
                Some(_) => {}
            }
        }
    }

    /// So many bytes of records have come to an end without being put into a partition.
    pub fn passed(&self, bytes: u64) {
        self.received.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Records longer than this are put into bodies, and stubs in their place.
    fn long_from(&self) -> usize {
        record_bytes_max(self.plan.block_bytes)
    }

    fn count(&self) -> usize {
        self.list.read().expect("no thread panicked").len()
    }

    /// Ends the open block of a partition. It stays in memory until the partition is evicted.
    fn close_open(&self, partition: &Partition, state: &mut State) {
        let open = state.open.take().expect("a block is open");
        let header = Header {
            job: self.job,
            attempt: 0,
            node: self.plan.node(),
            partition: partition.id,
            sequence: u32::try_from(state.blocks.len()).expect("fewer than 2^32 blocks"),
            record_count: open.records(),
            payload_bytes: open.payload_bytes(),
        };
        let keys = open.keys();
        state.keys = match (state.blocks.is_empty(), state.keys.take(), keys) {
            (true, _, keys) => keys.cloned(),
            (false, Some(all), Some(keys)) => Some(all.joined(keys.clone())),
            (false, _, _) => None,
        };
        let keys = keys.filter(|keys| self.has_room_for(keys));
        state.blocks.push(Block {
            header,
            chunks: open.chunks(),
            keys: keys.cloned().map(Box::new),
            whereabouts: Whereabouts::Memory(Arc::new(open.into_buffer())),
        });
    }

    /// Whether so much more may be known of single blocks' keys, none of which is in the plan's sum. Without it they may be
    /// whatever their partition has.
    fn has_room_for(&self, keys: &KeySpan) -> bool {
        let held = (self.plan.block_count * self.plan.block_bytes) as u64;
        let most = (held / SPANS_PART).max(SPANS_BYTES);
        let bytes = keys.held_bytes();
        self.span_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= most
    }

    /// Waits for a free block, evicting partitions first when few are left.
    ///
    /// # Errors
    /// The job's, when it is ending.
    fn take_block(&self, stage: Stage, meter: &mut Meter<'_>) -> Result<Buffer> {
        let _taking = Counted::new(&self.taking);
        while self.is_low() && self.evict_if_low()? {}
        loop {
            if let Some(buffer) = self.pool.try_take() {
                return Ok(buffer);
            }
            // None before the disk has taken some of those that wait: time to make these smaller.
            if !self.pack_one(stage, meter)? {
                break;
            }
        }
        meter.lap(stage, metrics::State::Work);
        let buffer = self.pool.take();
        let waited_ns = meter.lap(stage, metrics::State::Memory);
        self.spills.waited(meter.lapped_ns(), waited_ns);
        buffer.ok_or_else(|| self.stop.error())
    }

    fn is_low(&self) -> bool {
        self.free() < self.needed(self.plan.block_low_water)
    }

    /// Blocks that are free, or will be when they have been written.
    fn free(&self) -> usize {
        self.pool.free_count() + self.spilling.load(Ordering::SeqCst)
    }

    /// So many blocks, but near the end of the input no more than for what is still to come: data a little larger
    /// than memory spill no more than they must.
    ///
    /// There is one for each who waits, in any case: those of whom several are promised the same one could all be waiting, and
    /// nobody else evicts.
    fn needed(&self, blocks: usize) -> usize {
        self.foreseen(blocks)
            .max(self.taking.load(Ordering::SeqCst))
    }

    fn foreseen(&self, blocks: usize) -> usize {
        // Of what a function makes nobody knows how much is to come.
        let known = self.plan.input_bytes.filter(|_| !self.plan.is_mapped());
        let Some(input_bytes) = known else {
            return blocks;
        };
        // Of several nodes each gets about its share.
        let own_bytes = input_bytes / u64::from(self.plan.node_count());
        let to_come = own_bytes.saturating_sub(self.received.load(Ordering::Relaxed));
        blocks.min((to_come / self.plan.block_bytes as u64 + LOW_WATER_LEAST) as usize)
    }

    /// Evicts bodies, the oldest first, and then partitions, the highest first, until enough blocks are free for a
    /// while. `false` if none has a full block in memory.
    fn evict_if_low(&self) -> Result<bool> {
        let _one_at_a_time = lock(&self.evicting);
        if !self.is_low() {
            return Ok(true);
        }
        let wanted = self.needed(self.plan.block_low_water + self.plan.spill_blocks());
        self.evict_bodies(wanted.saturating_sub(self.free()))?;
        let by_range = lock(&self.by_range).clone();
        let mut highest = by_range.iter().rev();
        let mut is_enough = self.free() >= wanted;
        while !is_enough {
            let Some(&id) = highest.next() else {
                return Ok(!self.is_low());
            };
            self.evict(&self.partition(id))?;
            is_enough =
                self.free() >= self.needed(self.plan.block_low_water + self.plan.spill_blocks());
        }
        Ok(true)
    }

    /// Sends the partition's blocks in memory to disk. `false` if it has none.
    fn evict(&self, partition: &Partition) -> Result<bool> {
        let mut state = lock(&partition.state);
        let mut full = Vec::new();
        let State {
            blocks, spilled, ..
        } = &mut *state;
        for block in &mut blocks[*spilled..] {
            full.extend(block.leave(Some(partition.region)));
        }
        if full.is_empty() {
            return Ok(false);
        }
        let is_first = state.spilled == 0;
        state.spilled = state.blocks.len();
        if is_first {
            self.evicted.fetch_add(1, Ordering::SeqCst);
        }
        drop(state);
        self.send(full)?;
        Ok(true)
    }

    /// How many slots of `table`, the lowest ones, hold at least `count` records together by now; all of them if that
    /// is not so yet.
    #[must_use]
    pub fn slots_with(&self, table: &Table, count: u64) -> usize {
        let list = self.list.read().expect("no thread panicked");
        let mut have = 0;
        for slot in 0..table.slot_count() {
            if have >= count {
                return slot;
            }
            have += lock(&list[table.owner(slot) as usize].state).records;
        }
        table.slot_count()
    }

    fn partition(&self, id: u32) -> Arc<Partition> {
        let list = self.list.read().expect("no thread panicked");
        Arc::clone(&list[id as usize])
    }

    /// Ends the distribution: nothing will be appended any more. Open blocks stay in memory; where what is in memory
    /// would leave too little room to load a partition that is not, the highest are evicted.
    ///
    /// # Errors
    /// The job's, when it is ending.
    pub fn end_all(&self) -> Result<()> {
        let list = self.list.read().expect("no thread panicked").clone();
        for partition in &list {
            let mut state = lock(&partition.state);
            if state.open.is_some() {
                self.close_open(partition, &mut state);
            }
        }
        self.make_room(&list)
    }

    /// Takes all partitions as units in the order of their ranges, once they have ended and what left memory is on disk.
    #[must_use]
    pub fn units(&self, order: &Order) -> (Vec<Unit>, Counts) {
        let list = self.list.read().expect("no thread panicked").clone();
        let Some(table) = self.table.now() else {
            return (Vec::new(), Counts::default());
        };
        let contents: Vec<Arc<Content>> = list.iter().map(|partition| take(partition)).collect();
        let units = (0..table.slot_count())
            .filter(|&slot| node_of(table.owner(slot)).is_none())
            .map(|slot| {
                let owner = &list[table.owner(slot) as usize];
                let content = |id: &u32| Arc::clone(&contents[*id as usize]);
                let ancestors: Vec<_> = owner.ancestors.iter().map(content).collect();
                let (from, to) = table.around(slot);
                Unit {
                    words_alike: table.words_alike(order, slot),
                    goes_on: from.is_some_and(|from| self.is_within_group(from)),
                    ..Unit::of_slot(&ancestors, content(&owner.id), (from, to))
                }
            })
            .collect();
        let counts = Counts {
            evicted: self.evicted_count(),
            divided: self.divided.load(Ordering::SeqCst),
            spilled_bytes: self.temps.given_bytes(),
            spilled: Spilled::default(),
            long_records: self.bodies.count() as u64,
            records: contents.iter().map(|content| content.records).sum(),
            bytes: contents.iter().map(|content| content.bytes).sum(),
        };
        (units, counts)
    }

    /// Ends a round of the distribution, behind which the partitions of `slots` are taken. Of a job whose partitions are
    /// not divided: a slot's partition has its number. What the partitions below them hold is evicted, and as much above
    /// them as leaves too little room.
    ///
    /// # Errors
    /// The job's, when it is ending.
    pub fn end_round(&self, slots: &std::ops::Range<usize>) -> Result<()> {
        let list = self.list.read().expect("no thread panicked").clone();
        for (slot, partition) in list.iter().enumerate() {
            let mut state = lock(&partition.state);
            assert!(!state.divided, "slots are partitions");
            if state.open.is_some() && slot < slots.end {
                self.close_open(partition, &mut state);
            }
            drop(state);
            if slot < slots.start {
                self.evict(partition)?;
            }
        }
        self.make_room(&list)
    }

    /// Takes what the partitions of `slots` hold as units, in the order of their ranges, once the round has ended and
    /// what left memory is on disk; later records of these slots begin anew.
    #[must_use]
    pub fn take(&self, slots: std::ops::Range<usize>) -> Vec<Unit> {
        let list = self.list.read().expect("no thread panicked");
        let unit = |partition: &Arc<Partition>| Unit {
            contents: vec![take(partition)],
            range: None,
            words_alike: 0,
            goes_on: false,
        };
        list[slots].iter().map(unit).collect()
    }

    /// Bytes of the records that each slot's partition holds, in a job whose partitions are not divided.
    #[must_use]
    pub fn held_bytes(&self) -> Vec<u64> {
        let list = self.list.read().expect("no thread panicked");
        list.iter()
            .map(|partition| lock(&partition.state).bytes)
            .collect()
    }

    /// How many partitions have been evicted so far; one that was taken and evicted again counts again.
    #[must_use]
    pub fn evicted_count(&self) -> u64 {
        self.evicted.load(Ordering::SeqCst)
    }
}

/// Counts one as long as it is there.
struct Counted<'c>(&'c AtomicUsize);

impl<'c> Counted<'c> {
    fn new(count: &'c AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn new_partition(id: u32, region: u32, ancestors: Vec<u32>, may_swell: bool) -> Arc<Partition> {
    Arc::new(Partition {
        id,
        region,
        ancestors,
        may_swell,
        state: Mutex::new(State::default()),
    })
}

fn take(partition: &Partition) -> Arc<Content> {
    let mut state = std::mem::take(&mut *lock(&partition.state));
    if !state.divided {
        // It is read for its own range alone.
        state.blocks.iter_mut().for_each(|block| block.keys = None);
        state.keys = None;
    }
    Arc::new(Content::new(
        partition.id,
        state.blocks,
        state.keys,
        (state.records, state.bytes),
    ))
}

/// The error of a temporary block that did not come back as it was written.
#[must_use]
pub fn damaged(temps: &Temps<'_>, spot: Spot, why: sortmill_io::frame::Damage) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "reading back temporary data",
        why.to_string(),
    )
    .at(&temps.path(spot.folder))
    .offset(spot.offset)
    .hint("The device did not return what was written to it. Nothing of it was used and no output was made; choose another folder with --temp.")
}
