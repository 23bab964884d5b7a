//! The numbers of a job that merges inputs that are sorted already. Pure; no I/O.
//!
//! What is merged at once are **rows**: inputs, or runs that were merged before. Each row has the buffer that its
//! next records come from, and beyond those there are some that are read ahead into. Buffers are as large as that
//! allows, because each read of a row is a seek away from that of another. Where even small ones are not enough,
//! neighbouring rows are merged into runs first: the smallest, and no more of them than it takes, so that as few
//! bytes as possible are written and read once more.
//!
//! A stream and a compressed input have buffers of their own, and a codec, which may take far more than those. How many rows
//! may be merged at once is reckoned as if as many of them as there are were such, so any neighbours will do.

use serde::{Deserialize, Serialize};
use sortmill_io::os::Machine;
use sortmill_io::{ALIGN_BYTES, align_down, align_up};

use super::chunk_buffers::KEPT_IN_FLIGHT_BYTES;
use super::codecs::own_bytes;
use super::wish::{self, RECORD_BYTES};
use super::{Budget, ChunkBuffers, Decoders, Doubt, Encoders, Inputs, Plan, in_flight_bytes};
use crate::chunks::Extent;
use crate::disk::Figures;
use crate::job::Job;
use crate::long::{HEAD_BYTES_MAX, WHOLE_COUNT};
use crate::order::{Format, Order};

/// How sorted inputs are merged.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Merging {
    /// Inputs that are merged: streams, and files that are not empty.
    pub row_count: usize,
    /// The most rows that are merged at once.
    pub fan_in: usize,
    /// Bytes of a read.
    pub read_bytes: usize,
    /// Room in front of what is read, for the beginning of its first record: so many bytes may a record have.
    pub headroom_bytes: usize,
    /// Reads in flight.
    pub read_depth: usize,
    /// Neighbouring rows that are merged into runs before all that are left are merged into the output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
}

/// Neighbouring rows become one, a run, which takes their place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The first of them, counted in the rows that there are by then.
    pub first: usize,
    /// How many.
    pub count: usize,
}

/// The largest read.
const READ_BYTES_MAX: usize = 4 << 20;
/// Short of it a disk seeks more than it reads, so rather than that runs are made.
const READ_BYTES_MIN: usize = 256 << 10;
/// Where memory is so short that fewer rows than this would be merged at once, reads may be as small as the least.
const FAN_IN_WISHED: u64 = 16;
const READ_BYTES_LEAST: usize = 64 << 10;
/// Up to this many files are open all the time, of more these at once.
const OPEN_MAX: u64 = crate::stage::read::OPEN_MAX as u64;
const OPEN_AT_ONCE: u64 = 24;
/// Each of them is decompressed by a thread of its own, whose stack nobody counts.
const UNPACKED_AT_ONCE_MAX: u64 = 256;
/// Buffers of a stream, or a compressed input: one that is merged, one that is filled.
pub const STREAM_BUFFERS: usize = 2;
/// Buffers of the run that is written: a block, what is put into it, and one beside.
pub const RUN_BUFFERS: usize = 3;

/// The plan for `limit` bytes of memory, if they are enough for one.
pub fn within(
    limit: u64,
    order: Order,
    job: &Job,
    inputs: &Inputs,
    machine: &Machine,
) -> Option<Plan> {
    let mut budget = Budget::new(limit);
    // What looked like a small job and turned out to be none.
    if inputs.ahead_bytes > 0 {
        budget.hold("read ahead of streams", inputs.ahead_bytes)?;
    }
    // Output on its way out; to verify it, on its way in again.
    let chunks = ChunkBuffers::new(job, inputs, machine.cores, &mut budget)?;
    let takes_parts = order.key_from().is_some();
    if let Format::Fixed(bytes) = job.format
        && bytes as usize > chunks.headroom_bytes
    {
        // One that is put together and one that is looked at while the output is verified.
        budget.hold(
            "long records",
            WHOLE_COUNT as u64 * align_up(u64::from(bytes)),
        )?;
    }
    let encoders = Encoders::new(job, chunks.worker_count, &mut budget)?;
    let planned = planned_rows(inputs);
    // Of those that have no size of their own the longest is as long as the room in front of a read.
    let is_sized = matches!(job.format, Format::Fixed(_));
    let whole_above = (!takes_parts && !is_sized).then_some(chunks.headroom_bytes as u64);
    let rows = Rows::choose(job, inputs, limit, (budget.left_bytes(), whole_above))?;
    if rows.longs() > 0 {
        budget.hold("long records", rows.longs())?;
    }
    let at_once = rows.fan_in;
    let decoders = rows.decoders();
    if let Some(decoders) = &decoders {
        // Reads of compressed inputs, and the window and tables of a codec for each.
        budget.hold("decompressing", decoders.bytes())?;
    }
    // The beginning of a record that goes on in the next buffer of its row.
    budget.hold("beginnings of records", at_once * rows.headroom)?;
    if rows.alone() > 0 {
        // A stream is read by a thread of its own, which waits for nobody else's memory, and so is a compressed input.
        let count = rows.alone().min(at_once) * STREAM_BUFFERS as u64;
        budget.hold("buffers of streams", count * rows.buffer())?;
    }
    let row_count = planned.len();
    let (steps, passes, temp_bytes) = steps(planned, at_once as usize);
    if !steps.is_empty() {
        budget.hold(
            "the run that is written",
            RUN_BUFFERS as u64 * rows.buffer(),
        )?;
    }
    // All files may be double-buffered; beyond that nothing is gained.
    let files = if steps.is_empty() {
        rows.files
    } else {
        at_once
    };
    let wished = files + files.max(2 * rows.extra);
    let block_count = wished.min(budget.left_bytes() / rows.buffer()).max(1);
    // Each file waits for its first piece with the others' in hand.
    if block_count <= files {
        return None;
    }
    budget.hold("buffers of inputs", block_count * rows.buffer())?;
    let block_bytes = rows.buffer() as usize;
    let temp_bytes = match steps[..] {
        [] => Some(0),
        _ => temp_bytes,
    };
    let both_ways = |bytes: Option<u64>| Some(2 * bytes?);
    let mut doubts = Vec::new();
    if inputs.bytes().is_none() {
        doubts.push(Doubt::Stream);
    }
    if job.is_unique() {
        doubts.push(Doubt::Fewer);
    }
    Some(Plan {
        input_bytes: inputs.bytes(),
        guessed_bytes: inputs.packed.guessed_bytes,
        stored_bytes: inputs.packed.stored_bytes,
        worker_count: chunks.worker_count,
        chunk_bytes: chunks.chunk_bytes,
        headroom_bytes: chunks.headroom_bytes,
        chunk_count: chunks.count,
        chunks_aside: 0,
        chunk_depth: chunks.depth,
        block_depth: rows.depth(),
        batch_records_max: 0,
        map_state_bytes: 0,
        input_order: None,
        mapped_bytes_max: 0,
        block_bytes,
        block_records_max: 0,
        block_count: block_count as usize,
        block_low_water: 0,
        partition_count: 0,
        partition_count_max: 0,
        divide_bytes: 0,
        divide_records: 0,
        entry_count: 0,
        unit_blocks_max: 0,
        record_bytes_max: rows.headroom as usize,
        takes_parts,
        head_bytes: HEAD_BYTES_MAX,
        body_depth: 0,
        sample_count: 0,
        sample_bytes: 0,
        record_bytes_mean: 0,
        mapped_bytes: inputs.bytes(),
        temp_bytes,
        moved_bytes: both_ways(inputs.bytes())
            .zip(both_ways(temp_bytes))
            .map(|(once, again)| once + again)
            .filter(|_| !job.is_unique()),
        resident_bytes: None,
        doubts,
        shared_bytes: None,
        passes,
        disk: Figures::together(&job.disks),
        part_count: None,
        nodes: None,
        looks_for_order: false,
        merging: Some(Merging {
            row_count,
            fan_in: at_once as usize,
            read_bytes: rows.read as usize,
            headroom_bytes: rows.headroom as usize,
            read_depth: rows.depth(),
            steps,
        }),
        decoders,
        encoders,
        temp_packing: None,
        equal_keys_meet: false,
        groups_go_on: false,
        ahead_bytes: 0,
        ahead_units: 0,
        seen: None,
        yields: job.yields,
        drops_returns: false,
        candidates: None,
        joined_bytes: 0,
        verify: job.verify.unwrap_or(false),
        budget,
        order,
    })
}

/// The rows: inputs that are not empty, with what is known of their sizes.
fn planned_rows(inputs: &Inputs) -> Vec<Planned> {
    let guess = |input: usize| inputs.packed.guesses.get(input).copied().flatten();
    let rows = inputs.extents.iter().enumerate();
    let rows = rows.filter(|(_, extent)| **extent != Extent::File(0));
    let planned = rows.map(|(input, extent)| match extent {
        Extent::File(bytes) => Planned::new(Some(*bytes), true),
        Extent::Stream => Planned::new(guess(input), false),
    });
    planned.collect()
}

/// How large buffers are, and how many rows have one at once.
struct Rows {
    files: u64,
    streams: u64,
    /// Compressed inputs.
    packed: u64,
    /// Who decompresses them, and streams that are compressed, if all went at once.
    unpacking: Option<Decoders>,
    fan_in: u64,
    read: u64,
    headroom: u64,
    /// A record that is longer must be whole in memory while the output is read again; `None` where that is no matter, or
    /// has been seen to.
    whole_above: Option<u64>,
    /// Buffers that are read ahead into.
    extra: u64,
    in_flight: u64,
}

impl Rows {
    /// `left` bytes are left of `limit`.
    fn choose(
        job: &Job,
        inputs: &Inputs,
        limit: u64,
        (left, whole_above): (u64, Option<u64>),
    ) -> Option<Self> {
        let extents = inputs.extents.iter();
        let files = extents.filter(|extent| matches!(extent, Extent::File(1..)));
        let streams = inputs
            .extents
            .iter()
            .filter(|&&extent| extent == Extent::Stream);
        let packed = inputs.packed.count as u64;
        let streams = (streams.count() as u64).saturating_sub(packed);
        let mut rows = Self {
            files: files.count() as u64,
            streams,
            packed,
            unpacking: Decoders::of_rows(job, inputs, (packed, streams), limit),
            fan_in: 0,
            read: 0,
            headroom: 0,
            whole_above,
            extra: 0,
            in_flight: in_flight_bytes(job).min(KEPT_IN_FLIGHT_BYTES),
        };
        // What a wish was raised by is for long records alone, where that does.
        let wished = job.memory_bytes.filter(|_| job.memory_is_wish);
        let within = wished.and_then(|wished| rows.fit(job, left.min(wished)));
        let within = within.filter(|fitting| fitting.fan_in >= fitting.count());
        let fitting = within.or_else(|| rows.fit(job, left)).or_else(|| {
            // Where memory is that short, streams are rather merged than decompressed.
            let unpacking = rows.unpacking.as_mut()?;
            // Two at least go at once, and together have what the output's takes when it is read again.
            let own = own_bytes(job).div_ceil(2);
            unpacking.memory_bytes = inputs.packed.memory_bytes.max(own);
            rows.fit(job, left)
        })?;
        let is_free = job.tuning.chunk_bytes.is_none() && !matches!(job.format, Format::Fixed(_));
        Some(match is_free {
            true => fitting.with_room(inputs, left),
            false => fitting,
        })
    }

    /// The same with more room for long records in front of each read, where there may be such, and memory that nothing
    /// else wants.
    fn with_room(self, inputs: &Inputs, left: u64) -> Self {
        let most = align_up(wish::longest(inputs).min(RECORD_BYTES));
        if self.fan_in < self.count() || most <= self.headroom {
            return self;
        }
        let ahead = self.files.max(2 * self.extra);
        let buffers = self.files + ahead + STREAM_BUFFERS as u64 * self.alone();
        let reads = buffers * (self.buffer() - self.headroom);
        let codecs = self.decoders().map_or(0, |decoders| decoders.bytes());
        let rooms = buffers + self.count() + WHOLE_COUNT as u64;
        let room = align_down(left.saturating_sub(reads.saturating_add(codecs)) / rooms);
        Self {
            headroom: room.min(most).max(self.headroom),
            ..self
        }
    }

    /// The same with the largest reads that leave memory for many rows at once.
    fn fit(&self, job: &Job, left: u64) -> Option<Self> {
        let sized = |read| self.sized(job, left, read);
        if let Some(read) = job.tuning.chunk_bytes {
            return sized(read);
        }
        let halves = |from: usize, to: usize| {
            std::iter::successors(Some(from), |read| Some(read / 2))
                .take_while(move |&read| read >= to)
        };
        let one_pass = halves(READ_BYTES_MAX, READ_BYTES_MIN)
            .filter_map(sized)
            .find(|rows| rows.fan_in >= rows.count());
        if one_pass.is_some() {
            return one_pass;
        }
        let is_wide = |rows: &Self| rows.fan_in >= FAN_IN_WISHED;
        let several = halves(READ_BYTES_MIN, READ_BYTES_LEAST)
            .filter_map(sized)
            .find(is_wide);
        several.or_else(|| sized(READ_BYTES_LEAST))
    }

    /// With reads of `read` bytes; `None` if not even two rows would have memory.
    fn sized(&self, job: &Job, left: u64, read: usize) -> Option<Self> {
        let record = match job.format {
            Format::Fixed(bytes) => u64::from(bytes),
            Format::Lines | Format::Quoted(_) | Format::Kv => 0,
        };
        let mut rows = Self {
            unpacking: self.unpacking.clone(),
            fan_in: self.count(),
            read: read as u64,
            headroom: align_up((read as u64 / 4).max(record)),
            ..*self
        };
        let left = left.checked_sub(rows.longs())?;
        rows.extra = ((2 * rows.in_flight).min(left / 4) / rows.buffer()).max(2);
        let buffers = rows.files + STREAM_BUFFERS as u64 * rows.alone() + rows.extra;
        let codecs = rows.decoders().map_or(0, |decoders| decoders.bytes());
        let plain = buffers * rows.buffer() + rows.count() * rows.headroom;
        if rows.packed <= UNPACKED_AT_ONCE_MAX && plain.saturating_add(codecs) <= left {
            return Some(rows);
        }
        let beside = (rows.extra + RUN_BUFFERS as u64) * rows.buffer();
        let mut left = left.checked_sub(beside)?;
        if rows.alone() == 0 {
            // What reads a compressed output again.
            left = left.checked_sub(codecs)?;
        }
        // A step may be of streams, and another one of runs.
        let plain = rows.buffer() + rows.headroom;
        let codec = rows.unpacking.as_ref().map_or(0, Decoders::each_bytes);
        let own = (STREAM_BUFFERS as u64 * rows.buffer()).saturating_add(codec);
        let beside_all = left.checked_sub(own.saturating_mul(rows.alone()));
        rows.fan_in = match beside_all.map(|left| left / plain) {
            Some(count) if count >= rows.alone() => count,
            _ => left / plain.saturating_add(own),
        };
        if rows.packed > 0 {
            rows.fan_in = rows.fan_in.min(UNPACKED_AT_ONCE_MAX);
        }
        (rows.fan_in >= 2).then_some(rows)
    }

    fn count(&self) -> u64 {
        self.files + self.alone()
    }

    /// Rows that are read by threads of their own.
    fn alone(&self) -> u64 {
        self.streams + self.packed
    }

    /// Who decompresses, of those rows that are merged at once.
    fn decoders(&self) -> Option<Decoders> {
        let all = self.unpacking.as_ref()?;
        let count = all.count.min(self.fan_in.max(1) as usize);
        Some(Decoders {
            count,
            ..all.clone()
        })
    }

    /// One record that is put together and one that is looked at.
    fn longs(&self) -> u64 {
        let is_long = self.whole_above.is_some_and(|above| self.headroom > above);
        match is_long {
            true => WHOLE_COUNT as u64 * self.headroom,
            false => 0,
        }
    }

    /// Bytes of a buffer: what is read, the room in front of it, and room for the newline that an input may lack.
    fn buffer(&self) -> u64 {
        self.headroom + self.read.next_multiple_of(ALIGN_BYTES as u64) + ALIGN_BYTES as u64
    }

    fn depth(&self) -> usize {
        // Many files are open only while they are read, and a process may have as few as 64 descriptors.
        let most = match self.files {
            ..=OPEN_MAX => 128,
            _ => OPEN_AT_ONCE,
        };
        (self.in_flight / self.read).clamp(2, most).min(self.extra) as usize
    }
}

/// Which rows become runs, one step after the other, until `fan_in` are left; how often a record is read at most; and
/// how many bytes of records runs have together, if that is known.
fn steps(rows: Vec<Planned>, fan_in: usize) -> (Vec<Step>, u32, Option<u64>) {
    let mut merge = Steps {
        rows,
        steps: Vec::new(),
        run_bytes: Some(0),
    };
    while merge.rows.len() > fan_in {
        let over = merge.rows.len() - fan_in;
        match (over - 1) / (fan_in - 1) {
            0 => merge.cheapest(over + 1),
            groups => merge.whole_groups(groups, fan_in),
        }
    }
    let runs = merge.rows.iter().map(|row| row.runs).max();
    (merge.steps, runs.unwrap_or(0) + 1, merge.run_bytes)
}

/// A row as far as it is planned.
#[derive(Clone, Copy)]
struct Planned {
    bytes: u128,
    is_known: bool,
    /// How many runs its records have been in.
    runs: u32,
}

impl Planned {
    /// A row of so many bytes, or perhaps so many.
    fn new(bytes: Option<u64>, is_known: bool) -> Self {
        Self {
            // A stream is rather not read twice.
            bytes: u128::from(bytes.unwrap_or(u64::MAX)),
            is_known,
            runs: 0,
        }
    }
}

struct Steps {
    rows: Vec<Planned>,
    steps: Vec<Step>,
    run_bytes: Option<u64>,
}

impl Steps {
    /// Merges the `count` neighbours that have the fewest bytes.
    fn cheapest(&mut self, count: usize) {
        let mut bytes: u128 = self.rows[..count].iter().map(|row| row.bytes).sum();
        let (mut first, mut least) = (0, bytes);
        for next in 1..=self.rows.len() - count {
            bytes = bytes - self.rows[next - 1].bytes + self.rows[next + count - 1].bytes;
            if bytes < least {
                (first, least) = (next, bytes);
            }
        }
        self.merge(first, count);
    }

    /// Cuts the rows into groups of `size` and merges the `count` cheapest of them, or all: so no run stands in the
    /// way of neighbours that are to become another one.
    fn whole_groups(&mut self, count: usize, size: usize) {
        let bytes = |group: &[Planned]| group.iter().map(|row| row.bytes).sum::<u128>();
        let groups = self.rows.chunks_exact(size).map(bytes).enumerate();
        let mut chosen: Vec<(usize, u128)> = groups.collect();
        chosen.sort_by_key(|&(_, bytes)| bytes);
        chosen.truncate(count);
        chosen.sort_unstable();
        for (before, (group, _)) in chosen.into_iter().enumerate() {
            self.merge(group * size - before * (size - 1), size);
        }
    }

    fn merge(&mut self, first: usize, count: usize) {
        let some = &self.rows[first..first + count];
        let run = Planned {
            bytes: some.iter().map(|row| row.bytes).sum(),
            is_known: some.iter().all(|row| row.is_known),
            runs: some.iter().map(|row| row.runs).max().unwrap_or(0) + 1,
        };
        let known = self.run_bytes.filter(|_| run.is_known);
        self.run_bytes = known.map(|bytes| bytes + run.bytes as u64);
        self.rows.splice(first..first + count, [run]);
        self.steps.push(Step { first, count });
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::job::{Compress, Disorder, Input, Output};
    use sortmill_io::codec::Codec;

    const MIB: u64 = 1 << 20;

    fn plan(format: Format, memory: u64, extents: Vec<Extent>) -> Option<Plan> {
        let mut job = Job::new(vec![Input::Stdin], Output::Stdout, format);
        job.merge = Some(Disorder::Refused);
        job.memory_bytes = Some(memory);
        let inputs = Inputs {
            extents,
            ..Inputs::default()
        };
        let machine = Machine {
            cores: 2,
            memory_bytes_available: 1 << 40,
            memory_bytes_total: 1 << 40,
        };
        Plan::new(&job, &inputs, &machine).ok()
    }

    /// Steps for files and streams.
    fn steps(sizes: &[Option<u64>], fan_in: usize) -> (Vec<Step>, u32, Option<u64>) {
        let rows = sizes
            .iter()
            .map(|size| Planned::new(*size, size.is_some()))
            .collect();
        super::steps(rows, fan_in)
    }

    #[test]
    fn memory_is_kept_and_every_row_has_a_buffer() {
        for memory in [26, 32, 50, 64, 100, 256, 1024, 20_000].map(|mib| mib * MIB) {
            for count in [0, 1, 2, 3, 10, 100, 300, 1000, 5000] {
                for streams in [0, 1, 2, count] {
                    let mut extents = vec![Extent::File(50_000_000); count];
                    let some = extents.iter_mut().take(streams);
                    some.for_each(|extent| *extent = Extent::Stream);
                    let Some(plan) = plan(Format::Lines, memory, extents) else {
                        assert!(memory < 32 * MIB, "{memory} {count} {streams}");
                        continue;
                    };
                    let held = plan.budget.held_bytes();
                    assert!(held <= memory, "{held} of {memory}");
                    let merging = plan.merging.as_ref().unwrap();
                    let is_one_pass = merging.steps.is_empty();
                    assert_eq!(is_one_pass, plan.passes == 1);
                    assert_eq!(is_one_pass, merging.fan_in >= count);
                    let streams = streams.min(count);
                    let files = if is_one_pass {
                        count - streams
                    } else {
                        merging.fan_in
                    };
                    let ahead = usize::from(files > 0);
                    assert!(
                        plan.block_count >= files + ahead,
                        "{memory} {count} {streams}: {plan:?}"
                    );
                    assert!(merging.read_depth >= 1);
                }
            }
        }
    }

    /// However many codecs there are and whatever each of them wants.
    #[test]
    fn memory_is_kept_with_codecs_and_as_many_as_there_is_memory_for_go_at_once() {
        let machine = Machine {
            cores: 2,
            memory_bytes_available: 1 << 40,
            memory_bytes_total: 1 << 40,
        };
        for memory in [26, 30, 36, 40, 46, 64, 256, 1024, 20_000].map(|mib| mib * MIB) {
            for (packed, files, streams) in [
                (1, 0, 0),
                (2, 0, 0),
                (10, 5, 0),
                (100, 0, 3),
                (1000, 10, 1),
                (1, 200, 0),
                (0, 3, 20),
                (0, 20, 0),
                (0, 100, 0),
            ] {
                for (codec_bytes, to) in [
                    (512 << 10, None),
                    (3 << 20, Some(Codec::Gzip)),
                    (129 << 20, Some(Codec::Bzip2)),
                ] {
                    let mut job = Job::new(vec![Input::Stdin], Output::Stdout, Format::Lines);
                    job.merge = Some(Disorder::Refused);
                    job.memory_bytes = Some(memory);
                    job.decompress = true;
                    job.compress = to.map(|codec| Compress { codec, level: None });
                    let mut extents = vec![Extent::Stream; packed + streams];
                    extents.extend(vec![Extent::File(50_000_000); files]);
                    let mut inputs = Inputs {
                        extents,
                        ..Inputs::default()
                    };
                    inputs.packed.count = packed;
                    if packed > 0 {
                        inputs.packed.memory_bytes = codec_bytes;
                        inputs.packed.may_grow = true;
                    }
                    let Ok(plan) = Plan::new(&job, &inputs, &machine) else {
                        assert!(
                            memory < 40 * MIB + 2 * inputs.packed.memory_bytes,
                            "{memory}"
                        );
                        continue;
                    };
                    let held = plan.budget.held_bytes();
                    assert!(held <= memory, "{held} of {memory}");
                    let merging = plan.merging.as_ref().unwrap();
                    let all = packed + files + streams;
                    assert_eq!(merging.steps.is_empty(), merging.fan_in >= all);
                    // Each file waits for its first piece with the others' in hand.
                    let in_turns = !merging.steps.is_empty();
                    let at_once = if in_turns { merging.fan_in } else { files };
                    assert!(plan.block_count > at_once, "{memory} {plan:?}");
                    if packed + streams > 0 {
                        let decoders = plan.decoders.as_ref().unwrap();
                        assert_eq!(decoders.count, (packed + streams).min(merging.fan_in));
                        assert!(decoders.memory_bytes >= inputs.packed.memory_bytes);
                    }
                    assert!(packed == 0 || merging.fan_in <= 256);
                    let is_plenty = memory >= 1024 * MIB && all < 256 && codec_bytes < 4 << 20;
                    assert!(!is_plenty || plan.passes == 1, "{memory} {packed} {plan:?}");
                }
            }
        }
    }

    #[test]
    fn a_hundred_files_in_a_gigabyte_are_read_in_large_pieces() {
        let plan = plan(Format::Lines, 1 << 30, vec![Extent::File(50_000_000); 100]).unwrap();
        let merging = plan.merging.unwrap();
        assert_eq!((merging.read_bytes, plan.passes), (4 << 20, 1));
        assert_eq!(plan.temp_bytes, Some(0));
    }

    /// However sizes lie, a record is in one run at most where one is enough, and nothing is merged that need not be.
    #[test]
    fn no_run_is_merged_into_another_without_need() {
        let mut state = 1u64;
        let mut size = |_| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            Some(1 + (state >> 54))
        };
        for (count, fan_in) in [(100, 25), (300, 24), (26, 25), (625, 25), (40, 7), (9, 3)] {
            let sizes: Vec<Option<u64>> = (0..count).map(&mut size).collect();
            let all: u64 = sizes.iter().flatten().sum();
            let (made, passes, bytes) = steps(&sizes, fan_in);
            assert_eq!(passes, 2, "{count} {fan_in}");
            assert!(bytes.unwrap() <= all, "{count} {fan_in}");
            let merged_away: usize = made.iter().map(|step| step.count - 1).sum();
            assert_eq!(count - merged_away, fan_in);
        }
        let (_, passes, _) = steps(&[Some(1); 626], 25);
        assert_eq!(passes, 3);
    }

    #[test]
    fn runs_are_made_of_the_smallest_neighbours() {
        let (made, passes, bytes) = steps(&[9, 1, 2, 3, 9, 9].map(Some), 4);
        assert_eq!(made, [Step { first: 1, count: 3 }]);
        assert_eq!((passes, bytes), (2, Some(6)));
        let (made, passes, bytes) = steps(&[Some(5), None, Some(5), Some(7)], 3);
        assert_eq!(made, [Step { first: 2, count: 2 }]);
        assert_eq!((passes, bytes), (2, Some(12)));
        let (made, passes, bytes) = steps(&[None; 5], 2);
        assert_eq!(made.len(), 3);
        assert!(passes >= 3);
        assert_eq!(bytes, None);
        assert_eq!(steps(&[Some(1); 7], 7), (Vec::new(), 1, Some(0)));
    }

    /// Room in front of reads is taken of memory that nothing else wants, and no more of it than inputs are long.
    #[test]
    fn long_records_have_room_where_there_is_memory() {
        let room = |limit: u64, files: &[u64]| {
            let extents = files.iter().map(|&bytes| Extent::File(bytes)).collect();
            plan(Format::Lines, limit, extents)
                .unwrap()
                .record_bytes_max
        };
        assert_eq!(room(1 << 30, &[20_000_000; 3]), 16 << 20);
        assert_eq!(room(1 << 30, &[9_000_000; 3]), 9_003_008);
        assert_eq!(room(1 << 30, &[90_000_000; 100]), 1 << 20);
        assert_eq!(room(1 << 30, &[1000; 3]), 1 << 20);
    }

    #[test]
    fn a_fixed_record_fits_the_room_in_front() {
        let record = 3_000_000;
        let plan = plan(
            Format::Fixed(record),
            1 << 30,
            vec![Extent::File(90_000_000); 9],
        )
        .unwrap();
        assert!(plan.record_bytes_max >= record as usize);
    }
}
