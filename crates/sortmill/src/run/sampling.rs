//! The sample: keys from places all over the files, or from what comes first of a stream, and the table of boundaries.

use sortmill_io::sync::Arc;
use sortmill_io::{Op, OpKind, Os, Pool};

use super::Shared;
use super::seen::Seen;
use crate::batch::Chunk;
use crate::chunks::Chunks;
use crate::error::{Error, Result};
use crate::job::Boundaries;
use crate::order::{Begun, Format, Order};
use crate::partitions::Partitions;
use crate::pieces::Key;
use crate::plan::Plan;
use crate::queue::Stop;
use crate::sample::{KEYS_PER_CHUNK, KEYS_PER_PLACE, SAMPLE_KEY_BYTES_MAX, Sample};
use crate::stage::read::{OPEN_MAX, Source, Watcher, sample_records};
use crate::table::{Boundary, Table, uniform_keys};

/// Memory for the reads of the sample, at most.
const SAMPLE_POOL_BYTES: usize = 256 << 10;

/// What a map function may keep of the few records of a sample.
const STATE_BYTES: u64 = 64 << 10;

/// What was drawn, and what that took.
#[derive(Default)]
pub struct Drawn {
    pub sample: Sample,
    /// The first key at each place, in the order of places.
    pub firsts: Vec<Key>,
    /// Bytes read.
    pub bytes: u64,
    pub ns: u64,
}

/// Draws keys from places all over the files.
pub fn draw(shared: &Shared<'_>, sources: &[Source]) -> Result<Drawn> {
    if !wants_sample(shared) {
        return Ok(Drawn::default());
    }
    draw_sample(shared, sources)
}

/// The same, even if no boundary of this process' own has to be found.
pub fn draw_sample(shared: &Shared<'_>, sources: &[Source]) -> Result<Drawn> {
    let began_ns = shared.os.now_ns();
    let chunk_bytes = shared.plan.chunk_bytes as u64;
    let first_chunks = Chunks::first_chunks(&super::extents(sources), chunk_bytes);
    let places = places(shared, sources);
    let (mut sample, mut seen) = (Sample::default(), new_seen(shared));
    let mut firsts = vec![None; places.len()];
    let reads = Reads::of_sample(shared);
    let bytes = read_places(&reads, sources, &places, |number, bytes| {
        let (input, offset) = places[number];
        let chunk = first_chunks[input] + offset / chunk_bytes;
        // What is mapped has keys of its own, and lies in the input in another form.
        if shared.job.map.is_none() {
            firsts[number] = first_key(shared, offset, bytes);
        }
        add_to_sample(shared, (&mut sample, &mut seen), chunk, offset, bytes);
    })?;
    let order = &shared.plan.order;
    seen.end(&mut |record, chunk| sample.add(order, record, chunk));
    Ok(Drawn {
        sample,
        firsts,
        bytes,
        ns: shared.os.now_ns() - began_ns,
    })
}

/// How places are read.
pub struct Reads<'a> {
    pub os: &'a dyn Os,
    pub stop: &'a Stop,
    /// Bytes of each place, a multiple of 4 KiB.
    pub bytes: usize,
    /// Whoever sees them may have seen enough before the last one: they come from [`all_over`], and not in order.
    pub jumps: bool,
}

impl<'a> Reads<'a> {
    pub fn of_sample(shared: &Shared<'a>) -> Self {
        Self {
            os: shared.os,
            stop: shared.stop,
            bytes: shared.plan.sample_bytes,
            jumps: shared.job.map.is_some(),
        }
    }
}

/// Reads a few records at each of `places`, an input and an aligned offset in it, with reads in flight together, and
/// has `see` look at them with the number of the place. Answers the bytes read.
pub fn read_places(
    reads: &Reads<'_>,
    sources: &[Source],
    places: &[(usize, u64)],
    mut see: impl FnMut(usize, &[u8]),
) -> Result<u64> {
    let wrong =
        |error: std::io::Error| Error::io("sampling the input", &sources[0].file.path, &error);
    // Of many inputs each takes a descriptor while it is read.
    let depth_max = if sources.len() > OPEN_MAX { 16 } else { 32 };
    let depth = (SAMPLE_POOL_BYTES / reads.bytes).clamp(1, depth_max);
    let pool = Pool::new(depth, reads.bytes).map_err(wrong)?;
    let mut ring = reads.os.ring(depth).map_err(wrong)?;
    let (mut swept, mut jumping) = (0..places.len(), all_over(places.len()));
    let waiting: &mut dyn Iterator<Item = usize> = match reads.jumps {
        true => &mut jumping,
        false => &mut swept,
    };
    let mut bytes = 0;
    loop {
        while ring.in_flight() < depth {
            let Some(number) = waiting.next() else {
                break;
            };
            let (input, offset) = places[number];
            ring.submit(Op {
                kind: OpKind::Read,
                file: Arc::clone(&sources[input].file),
                offset,
                buffer: pool.take().expect("as many buffers as reads"),
                range: 0..reads.bytes,
                tag: number as u64,
            });
        }
        let Some(done) = ring.complete(true) else {
            return Ok(bytes);
        };
        reads.stop.check()?;
        let number = done.op.tag as usize;
        let source = &sources[places[number].0];
        let moved = done.result.map_err(|error| {
            Error::io("sampling the input", &source.file.path, &error).offset(done.op.offset)
        })?;
        bytes += moved as u64;
        let whole = (moved as u64).min(source.meta.bytes - done.op.offset) as usize;
        see(number, &done.op.buffer[..whole]);
    }
}

/// All of so many, those that follow each other far apart: whoever sees only the first ones has seen some of everywhere.
pub fn all_over(count: usize) -> impl Iterator<Item = usize> {
    let shares_none = |step: &usize| {
        let (mut one, mut other) = (count, *step);
        while other > 0 {
            (one, other) = (other, one % other);
        }
        one == 1
    };
    // The golden section leaves gaps of two sizes at most, or three.
    let step = (count * 618 / 1000..).find(shares_none).unwrap_or(1);
    (0..count).map(move |at| at * step % count)
}

/// The key of the first record that begins in what was read at `offset` of a file, cut as in a sample, if all of it or as
/// much as that is there.
pub fn first_key(shared: &Shared<'_>, offset: u64, bytes: &[u8]) -> Key {
    let mut first = None;
    let begun = begun_at(shared, offset);
    sample_records(&shared.plan.order, bytes, &begun, 1, |record| {
        first.get_or_insert_with(|| key(shared, record));
    });
    first.or_else(|| {
        let line = cut_line(shared.plan, bytes, begun.bytes == 0)?;
        Some(key(shared, line))
    })
}

/// How many whole records there are in what was read at `offset` of a file.
pub fn count_records(shared: &Shared<'_>, offset: u64, bytes: &[u8]) -> u64 {
    let mut count = 0;
    let begun = begun_at(shared, offset);
    sample_records(&shared.plan.order, bytes, &begun, bytes.len(), |_| {
        count += 1;
    });
    count
}

/// The key of the last record of what was read at `offset` and reaches to the end of its file.
pub fn last_key(shared: &Shared<'_>, offset: u64, bytes: &[u8]) -> Key {
    let mut last = None;
    let mut bytes = bytes.to_vec();
    let order = &shared.plan.order;
    if order.format() == Format::Lines && bytes.last() != Some(&order.delimiter()) {
        bytes.push(order.delimiter());
    }
    let (begun, all) = (begun_at(shared, offset), bytes.len());
    sample_records(&shared.plan.order, &bytes, &begun, all, |record| {
        last = Some(key(shared, record));
    });
    last
}

fn key(shared: &Shared<'_>, record: &[u8]) -> Vec<u8> {
    shared.plan.order.key_head(record, SAMPLE_KEY_BYTES_MAX)
}

/// How many boundaries the sample has to find.
fn sampled_count(shared: &Shared<'_>) -> usize {
    let wanted = shared.plan.partition_count - 1;
    if shared.job.yields.shuffle().is_some() {
        return 0;
    }
    match (&shared.job.boundaries, shared.cut_keys) {
        (Boundaries::Uniform, _) => 0,
        (_, Some(keys)) => wanted.saturating_sub(keys.len()),
        (_, None) => wanted,
    }
}

fn wants_sample(shared: &Shared<'_>) -> bool {
    sampled_count(shared) > 0 || looks_for_large_groups(shared)
}

/// Whether groups that need several partitions are divided among these from the beginning, where boundaries are found without a sample. Later they would be
/// divided at the price of what they hold by then, which is read with each of their parts.
fn looks_for_large_groups(shared: &Shared<'_>) -> bool {
    let (job, plan) = (shared.job, shared.plan);
    job.equal_heads_meet.is_some()
        && job.map.is_some()
        && plan.groups_go_on
        && plan.partition_count > 1
}

/// Begins the partitions, at the boundaries that the job asks for and those that a sample adds to them.
pub fn begin(shared: &Shared<'_>, partitions: &Partitions<'_>, sample: Sample) {
    if shared.job.equal_heads_meet.is_some() && !sample.is_empty() {
        partitions.know_groups();
    }
    begin_with(shared, partitions, sample, shared.plan.partition_count);
}

/// The same, where no more than `count` partitions are needed, those between boundaries that the job asks for not counted.
fn begin_with(shared: &Shared<'_>, partitions: &Partitions<'_>, mut sample: Sample, count: usize) {
    let plan = shared.plan;
    if shared.job.yields.shuffle().is_some() {
        // Each partition gets about as much as any other.
        shared.temps.divide(&vec![1; plan.partition_count], 0);
        let count = u32::try_from(plan.partition_count).expect("few partitions");
        return partitions.begin(Table::dealt(count));
    }
    let boundaries = boundaries_of(shared, &mut sample, count);
    shared.temps.divide(&shares(&sample, &boundaries), 0);
    partitions.begin(Table::range(&plan.order, boundaries));
}

/// How much of the sample each slot between `boundaries` has.
pub fn shares(sample: &Sample, boundaries: &[Boundary]) -> Vec<u64> {
    match sample.is_empty() {
        true => vec![1; boundaries.len() + 1],
        false => sample.shares(boundaries),
    }
}

/// The boundaries that the job asks for and those that a sample adds to them.
pub fn boundaries(shared: &Shared<'_>, sample: &mut Sample) -> Vec<Boundary> {
    boundaries_of(shared, sample, shared.plan.partition_count)
}

fn boundaries_of(shared: &Shared<'_>, sample: &mut Sample, count: usize) -> Vec<Boundary> {
    let plan = shared.plan;
    let sampled_count = count.min(sampled_count(shared) + 1);
    let is_uniform = matches!(shared.job.boundaries, Boundaries::Uniform);
    let goes_on = plan.groups_go_on;
    let mut boundaries = match &shared.job.equal_heads_meet {
        // Beside a group of one share others have theirs: it needs two of half of one.
        Some(head) if is_uniform => {
            let mut large = |count: usize| -> Vec<Boundary> {
                let all = sample
                    .boundaries_of_groups(count, head, goes_on)
                    .into_iter();
                all.filter_map(|(boundary, is_large)| is_large.then_some(boundary))
                    .collect()
            };
            let halves = large(2 * count);
            match 2 * halves.len() <= count {
                true => halves,
                false => large(count),
            }
        }
        Some(head) => {
            let all = sample
                .boundaries_of_groups(sampled_count, head, goes_on)
                .into_iter();
            all.map(|(boundary, _)| boundary).collect()
        }
        None => sample.boundaries(sampled_count, plan.equal_keys_meet),
    };
    let asked = match (&shared.job.boundaries, shared.cut_keys) {
        (Boundaries::Uniform, _) => uniform_keys(count.saturating_sub(boundaries.len()) as u64),
        (_, Some(keys)) => keys.iter().flatten().cloned().collect(),
        (_, None) => Vec::new(),
    };
    // Fewer will do where memory is short: parts are cut where the output is written.
    let step = asked
        .len()
        .div_ceil((plan.partition_count - 1).max(1))
        .max(1);
    let asked = asked
        .into_iter()
        .step_by(step)
        .take(plan.partition_count - 1);
    let asked = asked.filter(|key| !key.is_empty());
    boundaries.extend(asked.map(|key| Boundary { key, chunk: 0 }));
    boundaries.sort_unstable();
    boundaries.dedup();
    boundaries
}

/// One aligned place in each of as many equal stretches of the input as the plan wants samples.
pub fn places(shared: &Shared<'_>, sources: &[Source]) -> Vec<(usize, u64)> {
    let sizes: Vec<u64> = sources.iter().map(|source| source.meta.bytes).collect();
    let total: u64 = sizes.iter().sum();
    let stretch = (total / shared.plan.sample_count as u64).max(1);
    (0..shared.plan.sample_count as u64)
        .filter_map(|number| {
            let mut at = number * stretch + shared.os.random() % stretch;
            for (input, &size) in sizes.iter().enumerate() {
                if at < size {
                    return Some((input, sortmill_io::align_down(at)));
                }
                at -= size;
            }
            None
        })
        .collect()
}

/// What looks at the records of a sample.
fn new_seen<'a>(shared: &Shared<'a>) -> Seen<'a> {
    let plan = shared.plan;
    let (job, made_bytes) = (shared.job, plan.mapped_bytes_max);
    Seen::new(shared.os, job, &plan.order, made_bytes, STATE_BYTES)
}

/// What of a record lies before `offset` of a file.
pub fn begun_of(order: &Order, offset: u64) -> Begun {
    Begun::with(match order.format() {
        // Where a line began is not known: the first newline ends a part of one. Nor whether it stands between quotes,
        // which it seldom does.
        Format::Lines | Format::Quoted(_) => u64::from(offset > 0),
        Format::Fixed(size) => offset % u64::from(size),
        Format::Kv if offset == 0 => 0,
        Format::Kv => unreachable!("pairs are sampled as they come"),
    })
}

/// The same of the job's inputs.
fn begun_at(shared: &Shared<'_>, offset: u64) -> Begun {
    begun_of(shared.plan.input_order(), offset)
}

fn add_to_sample(
    shared: &Shared<'_>,
    (sample, seen): (&mut Sample, &mut Seen<'_>),
    chunk: u64,
    offset: u64,
    bytes: &[u8],
) {
    let plan = shared.plan;
    let begun = begun_at(shared, offset);
    if shared.job.map.is_none()
        && let Some(line) = cut_line(plan, bytes, begun.bytes == 0)
    {
        sample.add(&plan.order, line, chunk);
    }
    // A header is no record, as far as it lies there.
    let mut header_left = if offset == 0 {
        shared.job.header_lines
    } else {
        0
    };
    sample_records(
        plan.input_order(),
        bytes,
        &begun,
        KEYS_PER_PLACE,
        |record| match header_left {
            0 => seen.add(record, chunk, &mut |record, at| {
                sample.add(&plan.order, record, at);
            }),
            _ => header_left -= 1,
        },
    );
    seen.pause(chunk, &mut |record, at| sample.add(&plan.order, record, at));
}

/// The beginning of the last line of `bytes`, which goes on behind them, if a sample keeps no more of a key anyway; as
/// a line. Long lines are seldom seen whole. Of other keys than the line nothing is known yet.
fn cut_line<'b>(plan: &Plan, bytes: &'b [u8], begins: bool) -> Option<&'b [u8]> {
    if plan.order.format() != Format::Lines || plan.order.key_from().is_none() {
        return None;
    }
    let from = match memchr::memrchr(plan.order.delimiter(), bytes) {
        Some(at) => at + 1,
        None => begins.then_some(0)?,
    };
    bytes.get(from..from + SAMPLE_KEY_BYTES_MAX + 1)
}

/// Samples a stream, or pairs: what has come when memory for chunks is full must do. What it does not tell is mended
/// by dividing.
pub struct StreamSampler<'a> {
    shared: &'a Shared<'a>,
    partitions: &'a Partitions<'a>,
    sample: Option<Sample>,
    /// What looks at records, since the first one.
    seen: Option<Seen<'a>>,
}

impl<'a> StreamSampler<'a> {
    pub fn new(shared: &'a Shared<'a>, partitions: &'a Partitions<'a>) -> Self {
        Self {
            shared,
            partitions,
            sample: Some(Sample::default()),
            seen: None,
        }
    }
}

impl Watcher for StreamSampler<'_> {
    fn see(&mut self, chunk: &Chunk) {
        let Some(sample) = &mut self.sample else {
            return;
        };
        if !wants_sample(self.shared) {
            return;
        }
        let plan = self.shared.plan;
        let mut into = |record: &[u8], chunk| sample.add(&plan.order, record, chunk);
        let seen = self.seen.get_or_insert_with(|| new_seen(self.shared));
        if let Some(long) = &chunk.long {
            seen.add(long.short(), chunk.number, &mut into);
        }
        let bytes = &chunk.buffer[chunk.records.clone()];
        let begun = Begun::default();
        sample_records(
            plan.input_order(),
            bytes,
            &begun,
            KEYS_PER_CHUNK,
            |record| seen.add(record, chunk.number, &mut into),
        );
        seen.pause(chunk.number, &mut into);
    }

    fn must_decide(&mut self, bytes: Option<u64>) {
        let Some(mut sample) = self.sample.take() else {
            return;
        };
        let Shared { plan, job, .. } = *self.shared;
        let mut of_each = (1.0, plan.record_bytes_mean as f64);
        if let Some(mut seen) = self.seen.take() {
            seen.end(&mut |record, chunk| sample.add(&plan.order, record, chunk));
            of_each = seen.of_each().unwrap_or(of_each);
        }
        // A stream is planned to be long. Of one that has come already it is known how long it is.
        let enough = |bytes: u64| {
            let (made, record_bytes) = of_each;
            plan.partitions_of(job, (bytes as f64 * made) as u64, record_bytes)
        };
        let count = bytes.map_or(plan.partition_count, enough);
        begin_with(self.shared, self.partitions, sample, count);
    }
}
