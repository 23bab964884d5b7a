//! What was decided: the only place where a default becomes a number. Pure; no I/O.
//!
//! Memory is one budget with named holders, one commented line each, and their sum never exceeds the
//! limit. The partition's size is chosen so that several fit in memory at once, the block so that the
//! open blocks of all partitions take a small part of it.

use serde::{Deserialize, Serialize};
use sortmill_io::os::Machine;

use crate::chunks::Extent;
use crate::error::{Error, ErrorKind, Result};
use crate::job::Job;
use crate::order::{Format, Order};
use crate::text;

/// Memory named after what it is for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Holder {
    /// Who holds it.
    pub name: String,
    /// At most so many bytes.
    pub bytes: u64,
}

/// The budget: a limit and what of it has been promised to whom.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Budget {
    /// The most bytes all holders may have together.
    pub limit_bytes: u64,
    /// Who has how much.
    pub holders: Vec<Holder>,
}

impl Budget {
    fn new(limit_bytes: u64) -> Self {
        Self {
            limit_bytes,
            holders: Vec::new(),
        }
    }

    /// Bytes that nobody holds yet.
    #[must_use]
    pub fn left_bytes(&self) -> u64 {
        let held: u64 = self.holders.iter().map(|holder| holder.bytes).sum();
        self.limit_bytes.saturating_sub(held)
    }

    fn hold(&mut self, name: &str, bytes: u64) {
        assert!(bytes <= self.left_bytes(), "{name} overdraws the budget");
        self.holders.push(Holder {
            name: name.to_owned(),
            bytes,
        });
    }
}

/// What is known of the inputs before the start.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Inputs {
    /// How long each one is.
    pub extents: Vec<Extent>,
    /// Mean bytes of a record in a small part of them; `None` where it was not looked at.
    pub record_bytes_mean: Option<f64>,
}

impl Inputs {
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

/// The numbers of a job. Serialises whole: other nodes will get it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Format and key.
    pub order: Order,
    /// Bytes of the input, if known.
    pub input_bytes: Option<u64>,
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
    /// Reads and writes in flight on each device.
    pub io_depth: usize,
    /// The most records of a batch.
    pub batch_records_max: usize,
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
    /// Places of the input that are sampled.
    pub sample_count: usize,
    /// Bytes read at each.
    pub sample_bytes: usize,
    /// Bytes of temporary files, as far as can be foreseen.
    pub temp_bytes: Option<u64>,
    /// How often a record goes to a device and back: 1, 2, or 3 where partitions must be merged.
    pub passes: u32,
    /// Keep equal keys in one partition.
    pub equal_keys_meet: bool,
    /// Read the output again before it gets its name.
    pub verify: bool,
}

const MIB: u64 = 1 << 20;
/// Chunks are cut at multiples of this in every run: it decides places, so it does not depend on memory.
const CHUNK_BYTES: usize = 4 << 20;
const HEADROOM_BYTES: usize = 64 << 10;
const IO_DEPTH: usize = 8;
const BATCH_RECORDS_MAX: usize = 1 << 16;
/// Below this, open blocks and those on their way would leave none to hold records.
const BLOCK_COUNT_MIN: usize = 24;
const BLOCK_BYTES_MIN: u64 = 64 << 10;
const BLOCK_BYTES_MAX: u64 = 1 << 20;
/// Near this size a partition is sorted mostly within the processor's caches.
const PARTITION_BYTES_MAX: u64 = 32 << 20;
/// Streams are planned as if they were this many times the memory; longer ones are divided and merged.
const STREAM_TIMES_MEMORY: u64 = 16;
/// Bytes of a sort entry: word, ordinal, location.
pub const ENTRY_BYTES: usize = 16;
/// A record's location within a partition in memory is 32 bits.
const UNIT_BYTES_MAX: u64 = 1 << 32;
/// Bytes of a batch's scratch space for each record: offset, slot, index.
const SCRATCH_BYTES: usize = 3 * size_of::<u32>();

impl Plan {
    /// Decides every number of `job` over `inputs` on `machine`.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a key that does not suit the format, [`ErrorKind::Memory`] for less
    /// memory than the smallest plan needs, with that number.
    pub fn new(job: &Job, inputs: &Inputs, machine: &Machine) -> Result<Self> {
        let order = Order::new(job.format, &job.keys)?;
        let limit = job
            .memory_bytes
            .unwrap_or(machine.memory_bytes_available / 2);
        let within = |limit| Self::within(limit, order.clone(), job, inputs, machine);
        within(limit).ok_or_else(|| {
            let mut sizes = (1..1024).chain((10..40).map(|power| 1 << power));
            let least = sizes.find(|&mib| within(mib * MIB).is_some());
            too_little(limit, least.unwrap_or(1 << 40) * MIB)
        })
    }

    /// The plan for `limit` bytes of memory, if they are enough for one.
    fn within(
        limit: u64,
        order: Order,
        job: &Job,
        inputs: &Inputs,
        machine: &Machine,
    ) -> Option<Self> {
        let tuning = &job.tuning;
        let chunk_bytes = tuning.chunk_bytes.unwrap_or(CHUNK_BYTES);
        let headroom_bytes = if tuning.chunk_bytes.is_some() {
            4096
        } else {
            HEADROOM_BYTES
        };
        let chunk_buffer = (headroom_bytes + chunk_bytes + sortmill_io::ALIGN_BYTES) as u64;

        let asked = job.threads.unwrap_or(machine.cores).max(1);
        // Two chunks on their way and one in each worker's hands; fewer workers where memory is short.
        let affordable = (limit / 2 / chunk_buffer).saturating_sub(2) as usize;
        let worker_count = asked.min(affordable);
        if worker_count == 0 {
            return None;
        }
        let mut budget = Budget::new(limit);

        // Raw bytes on their way in while distributing, output on its way out while sorting.
        let chunk_count = ((limit / 8 / chunk_buffer) as usize)
            .clamp(worker_count + 2, IO_DEPTH + 2 * worker_count + 2);
        budget.hold(
            "chunk and output buffers",
            chunk_count as u64 * chunk_buffer,
        );

        // Offsets, slots and indexes of the batch each worker has in hand.
        let scratch = (BATCH_RECORDS_MAX.min(chunk_bytes) * SCRATCH_BYTES) as u64;
        let batch_records_max = BATCH_RECORDS_MAX
            .min(chunk_bytes)
            .min((limit / 16 / worker_count as u64 / SCRATCH_BYTES as u64).max(64) as usize);
        let scratch = scratch.min((batch_records_max * SCRATCH_BYTES) as u64);
        budget.hold("batch scratch", worker_count as u64 * scratch);

        // What the user's map function makes out of one batch.
        if job.map.is_some() {
            budget.hold(
                "mapped batches",
                (limit / 16).min(8 * chunk_bytes as u64 * worker_count as u64),
            );
        }

        // A record that is longer than a chunk, while it is put together.
        let record_bytes_max = ((limit / 64) as usize).max(chunk_bytes);
        budget.hold("long record", record_bytes_max as u64);
        let data_bytes = inputs
            .bytes()
            .unwrap_or(limit.saturating_mul(STREAM_TIMES_MEMORY));
        // Four times what a partition of the wished size should have, for skew.
        let target = job
            .tuning
            .partition_bytes
            .unwrap_or((limit / 16).min(PARTITION_BYTES_MAX));
        let record_bytes = Self::record_bytes(job, inputs);
        let entry_bytes = (target as f64 / record_bytes) as u64 * 4 * ENTRY_BYTES as u64;
        let entry_bytes = entry_bytes
            .max(1 << 20)
            .min(limit / 8 / worker_count as u64);
        let entry_count = (entry_bytes as usize / ENTRY_BYTES).max(64);
        budget.hold(
            "sort entries",
            (worker_count * entry_count * ENTRY_BYTES) as u64,
        );

        let blocks_bytes = budget.left_bytes();
        let records = (data_bytes as f64 / record_bytes) as u64;
        let by_size = data_bytes.div_ceil(target.max(1));
        let by_entries = (2 * records).div_ceil(entry_count as u64);
        let wished = by_size.max(by_entries).clamp(1, 1 << 16) as usize;
        let wished = tuning.partition_count.unwrap_or(wished).max(1);
        let block_bytes = tuning.block_bytes.map_or_else(
            || {
                let share = blocks_bytes / (8 * wished as u64);
                let power = share.checked_ilog2().map_or(0, |bits| 1u64 << bits);
                power.clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX) as usize
            },
            |bytes| bytes,
        );
        let block_count = (blocks_bytes / block_bytes as u64) as usize;
        if block_count < BLOCK_COUNT_MIN {
            return None;
        }
        budget.hold("partitions in memory", (block_count * block_bytes) as u64);

        let partition_count = wished.min(block_count / 4).max(1);
        let partition_bytes = data_bytes / partition_count as u64;
        let unit_blocks_max =
            (block_count / 2).min((UNIT_BYTES_MAX / block_bytes as u64) as usize - 1);
        let passes = Self::passes(
            inputs,
            blocks_bytes,
            partition_bytes,
            unit_blocks_max,
            block_bytes,
        );
        let block_low_water =
            (32 * MIB / block_bytes as u64).clamp(6, (block_count as u64 / 8).max(6)) as usize;
        let in_memory =
            (block_count - block_low_water - partition_count / 2) as u64 * block_bytes as u64;
        let sample_count = tuning
            .sample_count
            .unwrap_or((data_bytes / (64 << 10)).clamp(1, 1024) as usize);
        Some(Self {
            input_bytes: inputs.bytes(),
            worker_count,
            chunk_bytes,
            headroom_bytes,
            chunk_count,
            io_depth: IO_DEPTH,
            batch_records_max,
            block_bytes,
            block_records_max: entry_count / 2,
            block_count,
            block_low_water,
            partition_count,
            partition_count_max: (block_count / 3).max(partition_count),
            divide_bytes: (2 * partition_bytes).max(2 * block_bytes as u64),
            divide_records: (entry_count / 2) as u64,
            entry_count,
            unit_blocks_max,
            record_bytes_max,
            sample_count,
            sample_bytes: Self::sample_bytes(order.format()),
            temp_bytes: inputs.bytes().map(|bytes| bytes.saturating_sub(in_memory)),
            passes,
            equal_keys_meet: job.equal_keys_meet,
            verify: job.verify.unwrap_or(false),
            budget,
            order,
        })
    }

    /// Bytes of a buffer for a chunk: the room in front of it, the chunk, and room for the newline that an
    /// input may lack.
    #[must_use]
    pub fn chunk_buffer_bytes(&self) -> usize {
        self.headroom_bytes + self.chunk_bytes + sortmill_io::ALIGN_BYTES
    }

    /// Bytes of a record, as far as they are known: what was looked at, or a guess.
    fn record_bytes(job: &Job, inputs: &Inputs) -> f64 {
        match job.format {
            Format::Fixed(bytes) => f64::from(bytes),
            Format::Lines => inputs.record_bytes_mean.unwrap_or(32.0).max(1.0),
        }
    }

    /// One pass if all fits in memory, two if each partition does, three if partitions must be merged.
    fn passes(
        inputs: &Inputs,
        blocks_bytes: u64,
        partition_bytes: u64,
        unit_blocks_max: usize,
        block_bytes: usize,
    ) -> u32 {
        match inputs.bytes() {
            Some(bytes) if bytes <= blocks_bytes / 8 * 7 => 1,
            _ if partition_bytes > (unit_blocks_max * block_bytes) as u64 => 3,
            _ => 2,
        }
    }

    /// A few records at each sampled place.
    fn sample_bytes(format: Format) -> usize {
        let wished = match format {
            Format::Lines => 8192,
            Format::Fixed(bytes) => (2 * bytes as usize).max(4096),
        };
        wished.next_multiple_of(sortmill_io::ALIGN_BYTES)
    }

    /// The bytes that any sort of this input within this memory must move, in and out of devices: the
    /// input once, the output once, and what does not fit in memory twice more (Aggarwal and Vitter 1988;
    /// CD 1.1.2 calls a system that does just that 2-IO).
    #[must_use]
    pub fn lower_bound_bytes(&self, input_bytes: u64, output_bytes: u64) -> u64 {
        let beyond = input_bytes.saturating_sub(self.budget.limit_bytes);
        input_bytes + output_bytes + 2 * beyond
    }
}

fn too_little(have: u64, need: u64) -> Error {
    Error::new(
        ErrorKind::Memory,
        "planning the job",
        format!(
            "{} of memory is too little: this job needs at least {}",
            text::bytes(have),
            text::bytes(need)
        ),
    )
    .hint("Give it more with --memory.")
}
