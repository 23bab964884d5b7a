//! What a job will take, before it begins: bytes that leave memory, and how large its process will be.
//!
//! In come the numbers of a plan and how long its records are, out go bytes. Which partition leaves memory when is
//! known ([`crate::partitions`]), so it is played here, with full blocks in place of records:
//!
//! ```text
//!  the partition whose block is full next   opens another   too few are free?   the highest leave memory
//!        a heap, by bytes of input               |                  |                      |
//!        +------------------ its next block <----+------------------+----------------------+
//! ```
//!
//! Some 100 ns a block. A formula would do for what is evicted in all; what is in memory at the end depends on how
//! full open blocks are by then, and on whole partitions, which shows where the data are about as large as the memory.
//! Records are thought to come to all partitions evenly, but for what a sample leaves uncertain of their shares.
//!
//! Pure: numbers only, no I/O, no randomness: the same plan foretells the same.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sortmill_io::align_up;
use sortmill_io::frame::{HEADER_BYTES, SEGMENT_HEADER_BYTES_MAX};

use crate::order::Format;
use crate::partitions::{LOW_WATER_LEAST, SPARE_BLOCKS};
use crate::plan::{Holder, Plan};
use crate::sample::{KEYS_PER_CHUNK, KEYS_PER_PLACE};

/// What one node of a job is expected to take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Forecast {
    /// Bytes written to temporary files, the runs of merges among them; as many are read back.
    pub temp_bytes: u64,
    /// Whether partitions are too large for memory and are merged.
    pub merges: bool,
    /// The process's largest resident set.
    pub resident_bytes: u64,
}

/// Foretells a job of `plan` over `data_bytes` bytes of records that have `record_bytes` each, on average.
#[must_use]
pub fn foretell(plan: &Plan, data_bytes: u64, record_bytes: f64) -> Forecast {
    let block = FullBlock::new(plan, data_bytes, record_bytes);
    let shares = shares(plan, data_bytes, record_bytes);
    let mut play = Play::new(plan, &block, data_bytes, &shares);
    play.distribute();
    play.make_room();
    let merged_bytes = merged_bytes(plan, &block, data_bytes, record_bytes, &shares);
    let largest = shares.iter().copied().fold(0.0, f64::max) * data_bytes as f64;
    let held_blocks = match play.spilled_bytes {
        0 => play.used_most,
        // What leaves memory is there until it has been written, and what is loaded takes what is free.
        _ => plan.block_count,
    };
    Forecast {
        temp_bytes: play.spilled_bytes + merged_bytes,
        merges: merged_bytes > 0,
        resident_bytes: resident_bytes(
            plan,
            data_bytes,
            held_blocks,
            entry_bytes(plan, largest / record_bytes, merged_bytes > 0),
        ),
    }
}

/// What fits into a block.
struct FullBlock {
    /// Bytes of records.
    holds: f64,
    /// Bytes it takes in a file.
    disk_bytes: u64,
}

impl FullBlock {
    fn new(plan: &Plan, data_bytes: u64, record_bytes: f64) -> Self {
        let room = (plan.block_bytes - HEADER_BYTES) as f64;
        let (segment_bytes, header_bytes) = segment(plan, data_bytes, record_bytes);
        // One is cut in two where the block begins.
        let headers = header_bytes * (room / (segment_bytes + header_bytes) + 1.0);
        // A segment is begun only where its header may be the longest.
        let left = room - headers - (SEGMENT_HEADER_BYTES_MAX as f64 - header_bytes);
        let holds = match plan.order.format() {
            // Of a record that is longer than a block, the rest follows in the next one.
            _ if record_bytes >= left => room,
            // As many as fit, whatever the headers turn out to be.
            Format::Fixed(_) => {
                let of = |eighth: i32| {
                    let spread = header_bytes * f64::from(eighth - 4) / 8.0;
                    ((left + spread) / record_bytes).floor() * record_bytes
                };
                (0..=8).map(of).sum::<f64>() / 9.0
            }
            // Where the next one does not fit any more, half of it would have, on average.
            Format::Lines | Format::Quoted(_) | Format::Kv => left - record_bytes / 2.0,
        };
        let holds = holds.max(1.0);
        Self {
            holds,
            disk_bytes: align_up((HEADER_BYTES as f64 + headers + holds) as u64)
                .min(plan.block_bytes as u64),
        }
    }
}

/// Bytes of the records that a batch has for one partition, if any, and those of their segment's header.
fn segment(plan: &Plan, data_bytes: u64, record_bytes: f64) -> (f64, f64) {
    let batch_bytes = (plan.batch_records_max as f64 * record_bytes).min(plan.chunk_bytes as f64);
    let mean = (batch_bytes / plan.partition_count as f64).max(1.0);
    // Of few records, by chance some partitions get none.
    let some = 1.0 - (-mean / record_bytes).exp();
    let segment_bytes = mean / some;
    let chunks = data_bytes as f64 / plan.chunk_bytes as f64;
    let varints = [chunks / 2.0, segment_bytes / record_bytes, segment_bytes];
    (segment_bytes, varints.map(varint_bytes).iter().sum())
}

/// Bytes of a number in groups of seven bits.
fn varint_bytes(value: f64) -> f64 {
    f64::from((value.max(1.0) as u64).ilog2() / 7 + 1)
}

/// The part of all records that each partition gets. Boundaries come from a sample: the fewer keys it has of each
/// partition, the less even these are. Spread over the ranges by the golden ratio, as evenly as chance would.
fn shares(plan: &Plan, data_bytes: u64, record_bytes: f64) -> Vec<f64> {
    let records = (data_bytes as f64 / record_bytes).max(1.0);
    let keys = match plan.order.format() {
        // Dealt, not cut.
        _ if plan.yields.shuffle().is_some() => f64::INFINITY,
        Format::Kv => {
            let each = (plan.chunk_bytes as f64 / record_bytes).clamp(1.0, KEYS_PER_CHUNK as f64);
            plan.chunk_count as f64 * each
        }
        Format::Lines | Format::Quoted(_) | Format::Fixed(_) => {
            let each = (plan.sample_bytes as f64 / record_bytes).clamp(1.0, KEYS_PER_PLACE as f64);
            plan.sample_count as f64 * each
        }
    };
    let count = plan.partition_count;
    let deviation = (count as f64 / keys.min(records)).sqrt().min(1.0);
    let share = |number: usize| {
        let even = (number as f64 * 0.618_033_988_749_895).fract();
        // Over a stretch that deviates so much.
        (1.0 + deviation * 3f64.sqrt() * (2.0 * even - 1.0)).max(0.1)
    };
    let sum: f64 = (0..count).map(share).sum();
    (0..count).map(|number| share(number) / sum).collect()
}

/// A longer input is played to this many blocks, or to four times the memory if that is more: by then it repeats
/// itself, and what comes besides leaves memory.
const BLOCKS_PLAYED_MAX: u64 = 1 << 18;

/// All partitions of a node while records are distributed.
struct Play<'a> {
    plan: &'a Plan,
    block: &'a FullBlock,
    /// Bytes of records that are played, from the end of the input.
    bytes: u64,
    filling: Vec<Filling>,
    /// Blocks that hold something, the spare ones of threads among them.
    used: usize,
    used_most: usize,
    spilled_bytes: u64,
}

/// A partition that fills.
struct Filling {
    share: f64,
    /// At which byte of the input its open block was begun.
    opened: Option<u64>,
    /// Full blocks in memory, and on disk.
    in_memory: usize,
    on_disk: usize,
}

impl<'a> Play<'a> {
    fn new(plan: &'a Plan, block: &'a FullBlock, data_bytes: u64, shares: &[f64]) -> Self {
        let blocks = BLOCKS_PLAYED_MAX.max((plan.block_count as u64).saturating_mul(4));
        let bytes = data_bytes.min((blocks as f64 * block.holds) as u64);
        let not_played = (data_bytes - bytes) as f64 / block.holds;
        let filling = |&share: &f64| Filling {
            share,
            opened: None,
            in_memory: 0,
            on_disk: 0,
        };
        Self {
            plan,
            block,
            bytes,
            filling: shares.iter().map(filling).collect(),
            used: spare_count(plan),
            used_most: 0,
            spilled_bytes: not_played as u64 * block.disk_bytes,
        }
    }

    fn distribute(&mut self) {
        if self.plan.block_count as u64 > BLOCKS_PLAYED_MAX {
            return self.distribute_at_once();
        }
        let count = self.filling.len();
        let mut next: BinaryHeap<_> = (0..count).map(|number| Reverse((0, number))).collect();
        while let Some(Reverse((at, number))) = next.pop() {
            if at >= self.bytes {
                break;
            }
            self.open_block(at, number);
            let filled = self.block.holds / self.filling[number].share;
            next.push(Reverse((at + filled.max(1.0) as u64, number)));
        }
        self.used -= spare_count(self.plan);
    }

    /// So much memory would take long to play, and of so many blocks those that are open do not count.
    fn distribute_at_once(&mut self) {
        let all = (self.bytes as f64 / self.block.holds).ceil() as u64;
        let spilled = all.saturating_sub(self.plan.block_count as u64);
        self.spilled_bytes += spilled * self.block.disk_bytes;
        self.used = (all - spilled) as usize;
        self.used_most = self.used;
    }

    /// A partition begins a block at byte `at` of the input; the one before is full.
    fn open_block(&mut self, at: u64, number: usize) {
        let filling = &mut self.filling[number];
        if filling.opened.replace(at).is_some() {
            filling.in_memory += 1;
        }
        self.used += 1;
        if self.free() < self.needed(self.plan.block_low_water, at) {
            self.evict(at);
        }
        self.used_most = self.used_most.max(self.used);
    }

    fn free(&self) -> usize {
        self.plan.block_count.saturating_sub(self.used)
    }

    /// So many blocks, but near the end no more than for what is to come: as [`crate::partitions::Partitions`] does.
    fn needed(&self, blocks: usize, at: u64) -> usize {
        let to_come = (self.bytes - at) / self.plan.block_bytes as u64;
        blocks.min((to_come + LOW_WATER_LEAST) as usize)
    }

    /// The highest partitions leave memory.
    fn evict(&mut self, at: u64) {
        let wanted = self.plan.block_low_water + self.plan.spill_blocks();
        let wanted = self.needed(wanted, at);
        for number in (0..self.filling.len()).rev() {
            if self.free() >= wanted {
                return;
            }
            self.leave(number);
        }
    }

    fn leave(&mut self, number: usize) {
        let filling = &mut self.filling[number];
        let blocks = std::mem::take(&mut filling.in_memory);
        filling.on_disk += blocks;
        self.used -= blocks;
        self.spilled_bytes += blocks as u64 * self.block.disk_bytes;
    }

    /// When all have been distributed, the highest leave memory until each unit can be loaded beside what those above
    /// it keep there.
    fn make_room(&mut self) {
        if self.spilled_bytes == 0 {
            return;
        }
        for highest in (0..self.filling.len()).rev() {
            let (mut above, mut most) = (0, 0);
            for filling in self.filling.iter().rev() {
                let in_memory = filling.in_memory + usize::from(filling.opened.is_some());
                let all = in_memory + filling.on_disk;
                let unit = all.min(in_memory + self.plan.unit_blocks_max);
                most = most.max(unit + above);
                above += in_memory;
            }
            if most + SPARE_BLOCKS <= self.plan.block_count {
                return;
            }
            self.leave(highest);
            let bytes = self.bytes;
            let filling = &mut self.filling[highest];
            if let Some(opened) = filling.opened.take() {
                filling.on_disk += 1;
                let held = (bytes - opened) as f64 * filling.share;
                self.spilled_bytes += align_up(HEADER_BYTES as u64 + held as u64);
            }
        }
    }
}

/// A block in each hand that distributes, before it knows for which partition.
fn spare_count(plan: &Plan) -> usize {
    plan.worker_count + plan.node_count() as usize - 1
}

/// Bytes that are written as runs, because partitions have more blocks or records than fit into memory.
fn merged_bytes(
    plan: &Plan,
    block: &FullBlock,
    data_bytes: u64,
    record_bytes: f64,
    shares: &[f64],
) -> u64 {
    let blocks = |share: &f64| (data_bytes as f64 * share / block.holds).ceil();
    let is_merged = |share: &&f64| {
        let records = data_bytes as f64 * **share / record_bytes;
        blocks(share) > plan.unit_blocks_max as f64 || records > plan.entry_count as f64
    };
    let merged = shares.iter().filter(is_merged);
    merged
        .map(|share| blocks(share) as u64 * block.disk_bytes)
        .sum()
}

/// Program, stacks and what is allocated whatever the job, as measured.
const PROGRAM_BYTES: u64 = 6 << 20;
/// What is known of each block, as measured: its entry in the index, and in lists that are made of it.
const BYTES_PER_BLOCK: u64 = 150;
/// A key of the sample, with what the allocator takes.
const BYTES_PER_KEY: u64 = 64;
/// Memory is mapped in pieces of this size where it can be.
const HUGE_PAGE_BYTES: u64 = 2 << 20;

/// What is touched of the memory in the budget, and beside it, if so many bytes of entries are.
fn resident_bytes(plan: &Plan, data_bytes: u64, held_blocks: usize, entry_bytes: u64) -> u64 {
    let block = plan.block_bytes as u64;
    let buffer = plan.chunk_buffer_bytes() as u64;
    // A buffer is not touched beyond what is read, and a short input fills few.
    let chunks = (data_bytes.div_ceil(plan.chunk_bytes as u64) * buffer)
        .min(plan.chunk_count as u64 * buffer)
        .min(2 * data_bytes + (1 << 20));
    let always = (plan.chunk_count - plan.chunks_aside) as u64 * buffer;
    let touched = |holder: &Holder| match holder.name.as_str() {
        "chunk and output buffers" => chunks.min(always),
        "more chunk buffers" => chunks.saturating_sub(always),
        "partitions in memory" => held_blocks as u64 * block,
        "sort entries" => entry_bytes,
        "long records" | "long records read back" => 0,
        _ => holder.bytes,
    };
    let held = plan.budget.most_at_once(touched);
    let blocks = data_bytes.div_ceil(block).max(held_blocks as u64);
    let keys = (plan.sample_count * KEYS_PER_PLACE) as u64;
    held + PROGRAM_BYTES + blocks * BYTES_PER_BLOCK + (keys * BYTES_PER_KEY).min(data_bytes)
}

/// What sorters touch of their tables when the largest unit has so many records: its entries, and as many again. The loader has
/// a table for merges.
fn entry_bytes(plan: &Plan, records: f64, merges: bool) -> u64 {
    let entry = crate::plan::ENTRY_BYTES as u64;
    let table = (2 * records as u64).min(plan.entry_count as u64) * entry;
    let loader = if merges {
        plan.entry_count as u64 * entry
    } else {
        0
    };
    plan.worker_count as u64 * table.next_multiple_of(HUGE_PAGE_BYTES) + loader
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunks::Extent;
    use crate::job::{Job, Output};
    use crate::plan::Inputs;
    use sortmill_io::os::Machine;

    fn plan(data_bytes: u64, memory_bytes: u64) -> Plan {
        let mut job = Job::new(Vec::new(), Output::Stdout, Format::Fixed(100));
        job.memory_bytes = Some(memory_bytes);
        let inputs = Inputs {
            extents: vec![Extent::File(data_bytes)],
            ..Inputs::default()
        };
        let machine = Machine {
            cores: 2,
            memory_bytes_available: 1 << 36,
            memory_bytes_total: 1 << 36,
        };
        Plan::new(&job, &inputs, &machine).unwrap()
    }

    /// What jobs of 10 GB took that were measured: spilled bytes `bench/runs/2026-11-22-fd68b8b-*.reports.jsonl`, memory, since
    /// there are more chunk buffers while distributing, `bench/runs/2026-11-27-00c99ec-memory-sweep.reports.jsonl`.
    #[test]
    fn what_was_measured_is_foretold() {
        const MEASURED: [(u64, u64, u64); 6] = [
            (1_000_000_000, 9_181_069_312, 981_500_000),
            (2_000_000_000, 8_223_981_568, 1_978_600_000),
            (4_000_000_000, 6_223_822_848, 3_979_000_000),
            (8_000_000_000, 2_181_300_224, 7_982_600_000),
            (10_000_000_000, 161_742_848, 9_991_200_000),
            (11_000_000_000, 0, 10_192_700_000),
        ];
        for (memory_bytes, spilled, resident) in MEASURED {
            let forecast = foretell(&plan(10_000_000_000, memory_bytes), 10_000_000_000, 100.0);
            let off = |have: u64, want: u64| (have as f64 - want as f64) / want.max(1) as f64;
            let spill = off(forecast.temp_bytes, spilled);
            let memory = off(forecast.resident_bytes, resident);
            println!("{memory_bytes}: spilled {spill:+.4}, resident {memory:+.4}");
            assert!(spill.abs() < 0.03 && memory.abs() < 0.01);
        }
    }

    /// A longer input spills all that it is longer, once, with headers, whether it is played to its end or not; less
    /// memory never spills less.
    #[test]
    fn longer_inputs_and_less_memory_spill_more() {
        let foretold = |data_bytes, memory_bytes| {
            foretell(&plan(data_bytes, memory_bytes), data_bytes, 100.0).temp_bytes as f64
        };
        let (short, long) = (foretold(500 << 30, 4 << 30), foretold(2000 << 30, 4 << 30));
        let longer = (1500u64 << 30) as f64;
        let more = (long - short) / longer;
        assert!((1.0..1.03).contains(&more), "{short} {long}");
        let memories = [16, 8, 4, 2, 1].map(|gib| foretold(10 << 30, gib << 30));
        assert!(memories.is_sorted(), "{memories:?}");
        assert_eq!(memories[0], 0.0);
    }
}
