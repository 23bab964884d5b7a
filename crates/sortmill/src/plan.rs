//! What was decided: the only place where a default becomes a number. Pure; no I/O.
//!
//! Memory is one budget with named holders, one commented line each, and what they hold at one time never exceeds the
//! limit: what a phase alone needs, the other one has given back. The partition's size is chosen so that several fit in memory at once, the block so that the
//! open blocks of all partitions take a small part of it.

mod ahead;
mod budget;
mod chunk_buffers;
mod codecs;
mod entries;
mod fit;
mod foreseen;
mod holding;
mod keeping;
mod merging;
mod partitioning;
mod temp_packing;
mod wish;

use serde::{Deserialize, Serialize};
use sortmill_io::align_up;
use sortmill_io::os::Machine;

use crate::block::record_bytes_max;
use crate::chunks::Extent;
use crate::cluster::On;
use crate::disk::Figures;
use crate::error::Result;
use crate::job::Job;
use crate::long::{HEAD_BYTES_MAX, WHOLE_COUNT};
use crate::metrics::Stage;
use crate::order::{Format, KV_HEADER_BYTES, Order};
use crate::shuffle::Shuffle;
use crate::space;
use crate::yields::Yield;

pub use budget::{Budget, During, Holder};
use chunk_buffers::ChunkBuffers;
pub use codecs::{Decoders, Encoders, PackedInputs};
pub use foreseen::Doubt;
use holding::Holding;
pub use keeping::{Candidates, SeenKeys};
pub use merging::{Merging, RUN_BUFFERS, STREAM_BUFFERS, Step};
pub use temp_packing::TempPacking;

/// What a map function makes of a small part of the inputs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mapped {
    /// Bytes that come out for each that goes in.
    pub ratio: f64,
    /// Mean bytes of a record that comes out.
    pub record_bytes_mean: f64,
}

/// What is known of the inputs before the start.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Inputs {
    /// How long each one is.
    pub extents: Vec<Extent>,
    /// Mean bytes of a record in a small part of them; `None` where it was not looked at.
    pub record_bytes_mean: Option<f64>,
    /// What a map function made of a small part of them; `None` where there is none, or nothing to look at.
    pub mapped: Option<Mapped>,
    /// How many devices they are read from side by side; 0 counts as one.
    pub device_count: usize,
    /// Those that are compressed. Their extents are those of streams.
    pub packed: PackedInputs,
    /// Bytes of streams that were read before anything was planned, and are held until the job ends.
    pub ahead_bytes: u64,
}

impl Inputs {
    /// What `bytes` of them become, as far as that is known.
    #[must_use]
    pub fn mapped(&self, bytes: u64) -> u64 {
        self.mapped
            .map_or(bytes, |mapped| (bytes as f64 * mapped.ratio) as u64)
    }

    /// Bytes of all files together; `None` if any input is a stream.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        self.extents
            .iter()
            .map(|extent| match extent {
                Extent::File(bytes) => Some(*bytes),
                Extent::Stream => None,
            })
            .sum()
    }
}

/// One of the processes that share a job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Nodes {
    /// How many there are.
    pub count: u32,
    /// Whose plan this is, from 0.
    pub number: u32,
    /// Bytes of a frame, in which records go from node to node.
    pub frame_bytes: usize,
    /// Frames to each other node, filled or on their way; one more is for what comes from it.
    pub frame_count: usize,
}

/// The numbers of a job. Serialises whole: other nodes will get it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Format and key of what is sorted.
    pub order: Order,
    /// Those of the inputs' records, where a map function makes pairs of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_order: Option<Order>,
    /// Bytes of the input, if known.
    pub input_bytes: Option<u64>,
    /// What they may be, of compressed inputs: a guess from the beginnings of some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guessed_bytes: Option<u64>,
    /// Bytes of the inputs as they lie there, where some are compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_bytes: Option<u64>,
    /// Threads that compute.
    pub worker_count: usize,
    /// Memory by holder.
    pub budget: Budget,
    /// Bytes of a chunk.
    pub chunk_bytes: usize,
    /// Room in front of a chunk for the beginning of its first record.
    pub headroom_bytes: usize,
    /// Buffers for chunks while distributing, for output while sorting.
    pub chunk_count: usize,
    /// So many of them sorting does without.
    #[serde(default)]
    pub chunks_aside: usize,
    /// Chunks of the input on their way in, from each device, and of the output on their way out.
    pub chunk_depth: usize,
    /// Blocks on their way to and from the temporary files on each device.
    pub block_depth: usize,
    /// The most records of a batch.
    pub batch_records_max: usize,
    /// The most bytes that a map function may make before they are distributed; 0 where there is none.
    pub mapped_bytes_max: usize,
    /// Bytes of what each worker's map function may keep between records.
    #[serde(default)]
    pub map_state_bytes: u64,
    /// Bytes of a block.
    pub block_bytes: usize,
    /// The most records of a block: one that is merged is sorted in pieces of whole blocks.
    pub block_records_max: usize,
    /// Blocks in memory.
    pub block_count: usize,
    /// Free blocks, those being written among them, below which a partition is evicted.
    pub block_low_water: usize,
    /// Partitions to begin with.
    pub partition_count: usize,
    /// The most partitions there may be after dividing.
    pub partition_count_max: usize,
    /// A partition of more bytes than this is divided.
    pub divide_bytes: u64,
    /// A partition of more records than this is divided.
    pub divide_records: u64,
    /// Sort entries of each worker.
    pub entry_count: usize,
    /// The most blocks of one partition in memory while it is sorted; a larger one is merged.
    pub unit_blocks_max: usize,
    /// The longest record.
    pub record_bytes_max: usize,
    /// Whether a record that is longer than a chunk is taken in parts and never whole: of whole lines and pairs, whose
    /// keys lie in one piece, without a function that wants to see it.
    pub takes_parts: bool,
    /// Bytes of the key that stand for all of it where a record longer than a block is sorted.
    pub head_bytes: usize,
    /// Blocks into which each thread reads such records back.
    pub body_depth: usize,
    /// Places of the input that are sampled.
    pub sample_count: usize,
    /// Bytes read at each.
    pub sample_bytes: usize,
    /// Bytes of a record on average, as far as that can be foreseen.
    #[serde(default)]
    pub record_bytes_mean: u64,
    /// Bytes of what is sorted, as far as can be foreseen: of the input, or of what a map function makes of it.
    #[serde(default)]
    pub mapped_bytes: Option<u64>,
    /// Bytes of temporary data, as far as can be foreseen.
    pub temp_bytes: Option<u64>,
    /// Bytes read and written in all, as far as can be foreseen.
    #[serde(default)]
    pub moved_bytes: Option<u64>,
    /// The largest resident set of the process, as far as can be foreseen.
    #[serde(default)]
    pub resident_bytes: Option<u64>,
    /// Why what is foreseen may not come true.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
    /// Bytes to set apart for output and temporary data together, where these lie in the output's space.
    #[serde(default)]
    pub shared_bytes: Option<u64>,
    /// How often a record goes to a device and back: 1, 2, or 3 where partitions must be merged.
    pub passes: u32,
    /// What was measured of the disks of the temporary folders, if it was of all: how large a block may be and how
    /// many bytes are in flight come from it.
    pub disk: Option<Figures>,
    /// How many files the output has, as far as that can be foreseen; absent where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_count: Option<u64>,
    /// The nodes that share the job; absent where one process does all of it. All other numbers are one node's, but
    /// for the input's bytes and the places that are sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Nodes>,
    /// Look whether the input is in order already: then one pass is enough.
    #[serde(default)]
    pub looks_for_order: bool,
    /// How inputs that are sorted already are merged; absent of a job that sorts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merging: Option<Merging>,
    /// Who decompresses inputs, of a job that may have to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoders: Option<Decoders>,
    /// Who compresses the output, of a job that does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoders: Option<Encoders>,
    /// How temporary data are compressed, of a job that may do so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temp_packing: Option<TempPacking>,
    /// Keep equal keys in one partition.
    pub equal_keys_meet: bool,
    /// A partition may be divided between such keys all the same: the function that reduces the one part goes on with the other.
    #[serde(default)]
    pub groups_go_on: bool,
    /// What each worker, and the loader, may reduce of a partition before its turn, in bytes.
    #[serde(default)]
    pub ahead_bytes: usize,
    /// Partitions besides that may lie reduced until their turns come.
    #[serde(default)]
    pub ahead_units: usize,
    /// What each worker keeps of the keys it has seen, where of equal keys only the first record comes out.
    #[serde(default)]
    pub seen: Option<SeenKeys>,
    /// What comes out, where that is not all records in order.
    #[serde(default)]
    pub yields: Yield,
    /// Lines end anew ([`Job::drops_returns`]): by the seed alone nobody gets the same again.
    #[serde(default)]
    pub drops_returns: bool,
    /// What each worker keeps, where only the first records come out and as many as are wanted fit.
    #[serde(default)]
    pub candidates: Option<Candidates>,
    /// What each worker may join records in before they are sorted, in bytes; 0 where that is not done.
    #[serde(default)]
    pub joined_bytes: u64,
    /// Read the output again before it gets its name.
    pub verify: bool,
}

const MIB: u64 = 1 << 20;
/// Chunks are cut at multiples of this in every run: it decides places, so it does not depend on memory.
pub(crate) const CHUNK_BYTES: usize = 4 << 20;
const HEADROOM_BYTES: usize = 64 << 10;
/// Bytes in flight each way, of a disk that nobody measured. A disk that reads and writes at once divides
/// itself by them, so they are the same for chunks and for blocks, if as much is written as is read. Half as many keep
/// most disks busy; the rest bridges moments in which the processors, or the host of a virtual machine, do something else.
/// A measurement may ask for as many and no more: in flight they hold no partition.
pub(crate) const IN_FLIGHT_BYTES: u64 = 64 << 20;
const BATCH_RECORDS_MAX: usize = 1 << 16;
const BLOCK_BYTES_MIN: u64 = 64 << 10;
/// The largest block on a disk that nobody measured. Half a block of each partition is empty when sorting
/// begins, and what it could have held was spilled.
pub(crate) const BLOCK_BYTES_MAX: u64 = 512 << 10;
/// The largest that a measurement may ask for.
const BLOCK_BYTES_MEASURED_MAX: u64 = 16 << 20;
/// Short of it, headers and system calls would show; beyond, nothing is gained on the loopback.
const FRAME_BYTES_MIN: usize = 64 << 10;
const FRAME_BYTES_MAX: usize = 512 << 10;
/// To each other node: one that is filled, one that is sent, and some that wait.
const FRAME_COUNT: usize = 4;
/// Near this size a partition is sorted mostly within the processor's caches.
const PARTITION_BYTES_MAX: u64 = 32 << 20;
/// What one worker's map function makes out of a batch, at most: the longest records are half as long.
const MAPPED_BYTES_MAX: usize = 1 << 30;
/// Partitions that are asked for; some are divided later.
const PARTITION_COUNT_MAX: u64 = 1 << 16;
/// Streams are planned as if they were this many times the memory; longer ones are divided and merged.
const STREAM_TIMES_MEMORY: u64 = 16;
/// Bytes of a sort entry: word, ordinal, location.
pub const ENTRY_BYTES: usize = 16;
/// A partition aims at a third of the records that there are entries for.
const ENTRIES_OVER_RECORDS: u64 = 3;
/// The places of whole records in what a worker has in hand are 32 bits.
const WHOLE_BYTES_MAX: u64 = 1 << 31;
/// A record's location within a partition in memory is 32 bits.
const UNIT_BYTES_MAX: u64 = 1 << 32;
/// Bytes of a batch's scratch space for each record: offset, slot, index.
const SCRATCH_BYTES: usize = 3 * size_of::<u32>();

impl Plan {
    /// Decides every number of `job` over `inputs` on `machine`.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Usage`] for a key that does not suit the format, [`crate::error::ErrorKind::Memory`]
    /// for less memory than the smallest plan needs, with that number.
    pub fn new(job: &Job, inputs: &Inputs, machine: &Machine) -> Result<Self> {
        let order = job.order()?;
        let available = machine.memory_bytes_available;
        let limit = wish::limit(job, &order, inputs, available);
        let within = |job: &Job, limit| match job.merge {
            Some(_) => merging::within(limit, order.clone(), job, inputs, machine),
            None => Self::within(limit, order.clone(), job, inputs, machine),
        };
        let mut plan = fit::within(job, machine, limit, within)?;
        if job.map_makes_pairs {
            plan.input_order = Some(job.input_order()?);
        }
        if plan.merging.is_none() {
            plan.foresee(job, inputs);
        }
        Ok(plan)
    }

    /// The plan for `limit` bytes of memory, if they are enough for one.
    fn within(
        limit: u64,
        order: Order,
        job: &Job,
        inputs: &Inputs,
        machine: &Machine,
    ) -> Option<Self> {
        let mut budget = Budget::new(limit / node_count(job));
        // What looked like a small job and turned out to be none.
        if inputs.ahead_bytes > 0 {
            budget.hold("read ahead of streams", inputs.ahead_bytes)?;
        }
        let reading = Reading::new(job, inputs, machine.cores, &mut budget)?;
        let threads = (reading.worker_count, reading.chunk_count);
        let mut decoders = Decoders::new(job, inputs, threads, &mut budget)?;
        let encoders = Encoders::new(job, reading.worker_count, &mut budget)?;
        let (ahead_bytes, ahead_units) = keeping::ahead(job, &reading, &mut budget)?;
        let joined_bytes = keeping::joined(job, &reading, &mut budget)?;
        let sorting = Sorting::new(job, &order, inputs, &reading, &mut budget)?;
        let more = match job.passes_on {
            true => 0,
            false => reading.chunk_count_more,
        };
        let more = chunk_buffers::hold_more(more, reading.chunk_buffer_bytes(), &mut budget)?;
        let held = (&reading, &sorting);
        let holding = ahead::holding(job, inputs, held, &mut decoders, &mut budget)?;
        let ahead_count = decoders.as_ref().map_or(0, |all| all.ahead_count);
        let input_bytes = inputs.bytes();
        let partition_bytes = sorting.data_bytes / holding.partition_count as u64;
        let block = holding.block_bytes as u64;
        // Each stub of a long record, of 8 bytes or more, takes a location beside those of the blocks.
        let locations = (UNIT_BYTES_MAX / block * 7 / 8) as usize;
        let unit_blocks_max = (holding.block_count / 2).min(locations - 1);
        let sample_bytes = sample_bytes(order.format(), inputs.record_bytes_mean);
        // A small part of the input, however long its records are.
        let stretch = match sample_bytes {
            ..=8192 => 64 << 10,
            longer => 16 * longer as u64,
        };
        let sample_count = (sorting.data_bytes * node_count(job) / stretch).clamp(1, 1024) as usize;
        Some(Self {
            input_bytes,
            guessed_bytes: inputs.packed.guessed_bytes,
            stored_bytes: inputs.packed.stored_bytes,
            worker_count: reading.worker_count,
            chunk_bytes: reading.chunk_bytes,
            headroom_bytes: reading.headroom_bytes,
            chunk_count: reading.chunk_count + ahead_count + more,
            chunks_aside: more,
            chunk_depth: reading.chunk_depth,
            block_depth: holding.block_depth,
            batch_records_max: reading.batch_records_max,
            mapped_bytes_max: reading.mapped_bytes_max,
            map_state_bytes: reading.map_state_bytes,
            block_bytes: holding.block_bytes,
            block_records_max: sorting.entry_count / 2,
            block_count: holding.block_count,
            block_low_water: holding.block_low_water,
            partition_count: holding.partition_count,
            partition_count_max: holding.partition_count_max,
            divide_bytes: (2 * partition_bytes).max(2 * block),
            divide_records: (sorting.entry_count / 2) as u64,
            entry_count: sorting.entry_count,
            unit_blocks_max,
            record_bytes_max: sorting.record_bytes_max,
            takes_parts: sorting.takes_parts,
            head_bytes: HEAD_BYTES_MAX.min(holding.block_bytes / 4),
            body_depth: holding.body_depth,
            sample_count: match job.yields {
                Yield::Shuffled(_) => 0,
                _ => job.tuning.sample_count.unwrap_or(sample_count),
            },
            sample_bytes,
            record_bytes_mean: sorting.record_bytes as u64,
            mapped_bytes: None,
            temp_bytes: Some(0).filter(|_| !job.reaches(Stage::Spill) || job.passes_on),
            moved_bytes: None,
            resident_bytes: None,
            doubts: Vec::new(),
            shared_bytes: None,
            passes: match partition_bytes > unit_blocks_max as u64 * block {
                _ if job.passes_on => 1,
                true => 3,
                false => 2,
            },
            disk: Figures::together(&job.disks),
            part_count: None,
            nodes: reading.nodes,
            looks_for_order: false,
            merging: None,
            decoders,
            encoders,
            temp_packing: holding.temp_packing,
            equal_keys_meet: job.equal_keys_meet || job.is_unique(),
            groups_go_on: job.equal_keys_meet && job.reduce.is_some() && !job.is_unique(),
            ahead_bytes,
            ahead_units,
            seen: sorting.seen,
            yields: job.yields,
            drops_returns: job.drops_returns,
            candidates: sorting.candidates,
            joined_bytes,
            verify: job.verify.unwrap_or(false),
            budget,
            order,
            input_order: None,
        })
    }

    /// Whether a function makes other records of those of the inputs.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        self.mapped_bytes_max > 0
    }

    /// Format and key of the inputs' records.
    #[must_use]
    pub fn input_order(&self) -> &Order {
        self.input_order.as_ref().unwrap_or(&self.order)
    }

    /// Blocks that are evicted in one go, so that they are written in long stretches: an eighth of all.
    #[must_use]
    pub fn spill_blocks(&self) -> usize {
        self.block_count / 8
    }

    /// The order in which records are sorted: theirs, or, of fixed ones that are longer than a block, that of the
    /// lines that stand for them.
    #[must_use]
    pub fn short_order(&self) -> Order {
        match self.order.format() {
            Format::Fixed(bytes) if bytes as usize > record_bytes_max(self.block_bytes) => {
                Order::lines().with_unique(self.order.is_unique())
            }
            _ => self.order.clone(),
        }
    }

    /// Puts temporary data into the output's space, if the size of the output is known.
    pub fn lie_in_output(&mut self) {
        self.shared_bytes = match (self.input_bytes, self.temp_bytes) {
            (Some(bytes), Some(0)) => Some(bytes),
            (Some(bytes), Some(_)) => Some(space::reserve_bytes(bytes, self.block_bytes)),
            _ => None,
        };
    }

    /// Threads of a job in all, about: two phases in so many rounds, each with its workers and one for each direction; who relocates,
    /// who reads the output again; of a merge those of each step, and one for each input that is a stream or compressed.
    #[must_use]
    pub fn thread_count(&self, rounds: usize) -> usize {
        let of_merge = self.merging.as_ref().map_or(0, |merging| {
            let are_files = self.decoders.is_none() && self.input_bytes.is_some();
            let rows = if are_files { 0 } else { merging.row_count };
            rows + 4 * (merging.steps.len() + 1)
        });
        2 * (self.worker_count + 2) * rounds + 2 + of_merge
    }

    /// The processes that share the job: 1 where this one does all of it.
    #[must_use]
    pub fn node_count(&self) -> u32 {
        self.nodes.as_ref().map_or(1, |nodes| nodes.count)
    }

    /// The number of this one.
    #[must_use]
    pub fn node(&self) -> u32 {
        self.nodes.as_ref().map_or(0, |nodes| nodes.number)
    }

    /// Bytes of a buffer for a chunk: the room in front of it, the chunk, and room for the newline that an
    /// input may lack.
    #[must_use]
    pub fn chunk_buffer_bytes(&self) -> usize {
        self.headroom_bytes + self.chunk_bytes + sortmill_io::ALIGN_BYTES
    }

    /// The bytes that any sort of this input within this memory must move, in and out of devices: the
    /// input once, the output once, and what of it, or of what was made of it, does not fit in memory twice more (Aggarwal and Vitter 1988;
    /// CD 1.1.2 calls a system that does just that 2-IO).
    #[must_use]
    pub fn lower_bound_bytes(&self, input_bytes: u64, mapped_bytes: u64, output_bytes: u64) -> u64 {
        let limit_bytes = self.budget.limit_bytes * u64::from(self.node_count());
        let beyond = mapped_bytes.saturating_sub(limit_bytes);
        input_bytes + output_bytes + 2 * beyond
    }
}

/// How the input comes into memory.
struct Reading {
    worker_count: usize,
    chunk_bytes: usize,
    headroom_bytes: usize,
    chunk_count: usize,
    chunk_count_more: usize,
    chunk_depth: usize,
    batch_records_max: usize,
    mapped_bytes_max: usize,
    map_state_bytes: u64,
    nodes: Option<Nodes>,
    /// Threads that take records from other nodes, and distribute them as workers do.
    receiver_count: usize,
}

/// Of a job that reduces, what keeps state has no part in so much of the memory.
const REDUCED_BYTES_MIN: u64 = 32 << 20;

impl Reading {
    fn chunk_buffer_bytes(&self) -> u64 {
        (self.headroom_bytes + self.chunk_bytes + sortmill_io::ALIGN_BYTES) as u64
    }

    fn new(job: &Job, inputs: &Inputs, cores: usize, budget: &mut Budget) -> Option<Self> {
        let limit = budget.limit_bytes;
        let ChunkBuffers {
            worker_count,
            chunk_bytes,
            headroom_bytes,
            count: chunk_count,
            more: chunk_count_more,
            depth: chunk_depth,
        } = ChunkBuffers::new(job, inputs, cores, budget)?;
        let workers = worker_count as u64;

        // Frames to and from each other node.
        let receiver_count = node_count(job) as usize - 1;
        let nodes = job
            .on
            .as_ref()
            .map(|on| Nodes::new(on, limit, receiver_count));
        if let Some(nodes) = nodes.as_ref().filter(|_| receiver_count > 0) {
            let each = (nodes.frame_count + 1) * nodes.frame_bytes;
            budget.hold("frames between nodes", (receiver_count * each) as u64)?;
        }

        // Offsets, slots and indexes of the batch each worker, and each receiver, has in hand.
        let distributing = workers + receiver_count as u64;
        let share = (limit / 16 / distributing) as usize / SCRATCH_BYTES;
        let batch_records_max = BATCH_RECORDS_MAX.min(chunk_bytes).min(share.max(64));
        let scratch = (batch_records_max * SCRATCH_BYTES) as u64;
        budget.hold("batch scratch", distributing * scratch)?;

        // Where nothing is brought together, nothing of this has been given back when the output begins.
        let distributing_only = (!job.passes_on).then_some(During::Distribute);
        // What the user's map function makes out of one batch.
        let share = (limit / 8 / workers) as usize;
        let mut mapped_bytes_max = 0;
        if job.map.is_some() {
            // Two of the longest records that a chunk may hold, as pairs.
            let two = 2 * (headroom_bytes + chunk_bytes + KV_HEADER_BYTES);
            // More than eight chunks only for the sake of long records, which may have half of it.
            let most = (share / 4).min(MAPPED_BYTES_MAX).max(8 * chunk_bytes);
            mapped_bytes_max = share.min(most).max(two);
            let bytes = workers * mapped_bytes_max as u64;
            budget.hold_during(distributing_only, "mapped batches", bytes)?;
        }
        if job.map_gathers_bytes > 0 {
            budget.hold("gathered records", workers * job.map_gathers_bytes)?;
        }
        if job.reduce_gathers_bytes > 0 {
            // Each worker may be at a partition, and so may the loader, as those that do not wait for their turn (`keeping.rs`).
            let is_one = job.reduces_in_turn || workers == 1;
            let at_once = if is_one { 1 } else { workers + 1 };
            let bytes = at_once * job.reduce_gathers_bytes;
            budget.hold_during(Some(During::Sort), "gathered to be reduced", bytes)?;
        }
        if let Some(framing) = &job.reduce_framing {
            budget.hold("pieces of the output", framing.held_bytes)?;
        }
        // What it keeps between records.
        let mut map_state_bytes = 0;
        if job.map.is_some() && job.map_keeps_state {
            map_state_bytes = limit / 8 / workers;
            // If not in pieces, all of it may be handed on at once.
            let at_once = mapped_bytes_max as u64 / 4;
            if !job.map_ends_in_pieces {
                map_state_bytes = map_state_bytes.min(at_once);
            } else if job.reduce.is_some() {
                // A reducer, and what it makes, need memory that lines alone do not: only what is beyond so much is given away.
                let beyond = limit.saturating_sub(REDUCED_BYTES_MIN) / 8 / workers;
                map_state_bytes = map_state_bytes.min(at_once.max(beyond));
            }
            let bytes = workers * map_state_bytes;
            budget.hold_during(distributing_only, "state of the map function", bytes)?;
        }
        Some(Self {
            worker_count,
            chunk_bytes,
            headroom_bytes,
            chunk_count,
            chunk_count_more,
            chunk_depth,
            batch_records_max,
            mapped_bytes_max,
            map_state_bytes,
            nodes,
            receiver_count,
        })
    }
}

impl Nodes {
    fn new(on: &On, limit: u64, other_count: usize) -> Self {
        let share = limit / 128 / other_count.max(1) as u64;
        let power = share.checked_ilog2().map_or(0, |bits| 1u64 << bits);
        Self {
            count: on.node_count,
            number: 0,
            frame_bytes: (power as usize).clamp(FRAME_BYTES_MIN, FRAME_BYTES_MAX),
            frame_count: FRAME_COUNT,
        }
    }
}

/// The processes that share a job.
fn node_count(job: &Job) -> u64 {
    job.on.as_ref().map_or(1, |on| u64::from(on.node_count))
}

/// How large partitions should be, and what sorting one takes.
struct Sorting {
    /// Bytes of the input, or a guess.
    data_bytes: u64,
    /// Bytes of a record, or a guess at their mean.
    record_bytes: f64,
    /// Partitions that would be of the best size.
    partitions_wished: usize,
    entry_count: usize,
    record_bytes_max: usize,
    takes_parts: bool,
    seen: Option<SeenKeys>,
    candidates: Option<Candidates>,
}

impl Sorting {
    fn new(
        job: &Job,
        order: &Order,
        inputs: &Inputs,
        reading: &Reading,
        budget: &mut Budget,
    ) -> Option<Self> {
        let limit = budget.limit_bytes;
        // Records that are longer than a chunk, where they must be whole, while they are put together and
        // distributed. Any record that fits a chunk is allowed.
        let in_chunk = reading.headroom_bytes + reading.chunk_bytes;
        let takes_parts = order.key_from().is_some() && !job.wants_whole_records();
        let share = match takes_parts {
            true => limit / 2,
            false => (limit / 64).min(WHOLE_BYTES_MAX),
        };
        // Lines that are counted become pairs as long as they are.
        let mapped = match job.map_ends_in_pieces && job.reduce.is_none() {
            true => (reading.mapped_bytes_max / 2).saturating_sub(KV_HEADER_BYTES),
            false => usize::MAX,
        };
        let wished = wish::record_bytes(job, inputs, takes_parts);
        let record_bytes_longest = (share as usize).min(mapped).max(in_chunk).max(wished);
        let longs = match job.format {
            _ if takes_parts => 0,
            Format::Fixed(bytes) if bytes as usize <= reading.headroom_bytes => 0,
            _ => WHOLE_COUNT as u64 * align_up(record_bytes_longest as u64),
        };
        // One from each other node while it is put together, where one may be longer than a frame.
        let from_nodes = match (&reading.nodes, job.format) {
            (Some(nodes), Format::Fixed(bytes))
                if bytes as usize <= record_bytes_max(nodes.frame_bytes) =>
            {
                0
            }
            _ => reading.receiver_count as u64 * align_up(record_bytes_longest as u64),
        };
        if longs + from_nodes > 0 {
            budget.hold("long records", longs + from_nodes)?;
        }
        let record_bytes = match (job.format, job.pair_bytes, inputs.mapped) {
            (Format::Fixed(bytes), ..) if bytes as usize > record_bytes_longest => return None,
            (_, Some(bytes), _) => f64::from(bytes),
            (.., Some(mapped)) => mapped.record_bytes_mean.max(1.0),
            (Format::Fixed(bytes), None, None) => f64::from(bytes),
            (Format::Lines | Format::Quoted(_) | Format::Kv, None, None) => {
                inputs.record_bytes_mean.unwrap_or(32.0).max(1.0)
            }
        };
        // Keys that each worker has seen.
        let workers = reading.worker_count as u64;
        let keys_seen = || SeenKeys::new(limit / 8 / workers, record_bytes);
        let seen = job.is_unique().then(keys_seen);
        if let Some(seen) = seen {
            let during = Some(During::Distribute);
            budget.hold_during(during, "keys seen", workers * seen.bytes())?;
        }
        let candidates = Candidates::new(job, workers, record_bytes, budget)?;
        let stream_bytes = limit.saturating_mul(STREAM_TIMES_MEMORY);
        let share = |bytes: u64| bytes.div_ceil(node_count(job));
        let known = inputs.bytes().or(inputs.packed.guessed_bytes);
        let data_bytes = inputs.mapped(known.map_or(stream_bytes, share));
        let best = partitioning::best_bytes(job, limit, data_bytes, record_bytes);

        // In each worker's hands, and in those of the loader, which sorts what must be merged.
        let tables = workers + 1;
        let partitions_most = (limit / (4 * BLOCK_BYTES_MIN)).clamp(1, PARTITION_COUNT_MAX);
        // How many partitions records are dealt to is not for memory to choose.
        let dealt_to = job.yields.shuffle().map(|_| {
            let usual = Shuffle::partition_count(inputs.bytes());
            job.tuning.partition_count.unwrap_or(usual)
        });
        let partition_bytes = match dealt_to {
            Some(count) => data_bytes / count as u64,
            None => best.max(data_bytes / partitions_most),
        };
        let sizes = (data_bytes, partition_bytes, record_bytes);
        let entry_count = entries::count(job, limit, tables, sizes);
        let entries_bytes = tables * (entry_count * ENTRY_BYTES) as u64;
        budget.hold_during(Some(During::Sort), "sort entries", entries_bytes)?;

        let data = (data_bytes, record_bytes);
        let partitions = dealt_to
            .or(job.tuning.partition_count)
            .unwrap_or_else(|| partitioning::count(job, limit, data, best, entry_count));
        Some(Self {
            data_bytes,
            record_bytes,
            partitions_wished: partitions.max(1),
            entry_count,
            record_bytes_max: record_bytes_longest,
            takes_parts,
            seen,
            candidates,
        })
    }
}

/// Bytes in flight each way.
fn in_flight_bytes(job: &Job) -> u64 {
    Figures::together(&job.disks).map_or(IN_FLIGHT_BYTES, |disk| {
        disk.in_flight_bytes.min(IN_FLIGHT_BYTES)
    })
}

/// The largest block: a power of two, as blocks are.
fn block_bytes_max(job: &Job) -> u64 {
    let measured = Figures::together(&job.disks);
    let measured = measured.and_then(|disk| disk.block_bytes_max.checked_ilog2());
    measured.map_or(BLOCK_BYTES_MAX, |bits| {
        (1 << bits).clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MEASURED_MAX)
    })
}

/// A few records at each sampled place, or of long lines enough to see where one begins.
fn sample_bytes(format: Format, record_bytes_mean: Option<f64>) -> usize {
    let wished = match format {
        Format::Lines | Format::Quoted(_) => {
            (2.0 * record_bytes_mean.unwrap_or(0.0)).clamp(8192.0, 65_536.0) as usize
        }
        Format::Kv => 8192,
        Format::Fixed(bytes) => (2 * bytes as usize).max(4096),
    };
    wished.next_multiple_of(sortmill_io::ALIGN_BYTES)
}
