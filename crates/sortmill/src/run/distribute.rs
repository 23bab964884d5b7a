//! The phase `distribute`: read, cut, map, partition, spill.
//!
//! One thread reads, one per core cuts, maps and partitions a chunk while it is warm in the cache, one
//! writes. Meanwhile this thread draws the sample; the workers begin when boundaries are known.

use std::cell::RefCell;

use sortmill_io::sync::{Arc, scope, spawn};
use sortmill_io::{Op, OpKind, Pool};

use super::exchange::Exchange;
use super::until::discard;
use super::{Shared, border};
use crate::batch::{Batch, Chunk, Records};
use crate::bodies::Bodies;
use crate::chunks::{Chunks, Extent};
use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::job::Boundaries;
use crate::long::{Long, Longs, Summed, WholeLongs};
use crate::metrics::{Finished, Meter, Metrics, Stage, State};
use crate::order::{Begun, Format};
use crate::partitions::{BodyLongs, Counts, Partitions, Unit};
use crate::plan::Plan;
use crate::queue::{Queue, Stop, StopOnPanic};
use crate::sample::{SAMPLE_KEY_BYTES_MAX, Sample};
use crate::stage::cut::cut;
use crate::stage::map::map;
use crate::stage::partition::{Scratch, partition};
use crate::stage::read::{ReadTotals, Reader, Source, Watcher, read, sample_records};
use crate::stage::spill::{Spiller, spill};
use crate::table::{Boundary, Table, node_of, uniform_keys};
use crate::tamper::Border;

/// What the phase leaves.
pub struct Distributed {
    /// What is to be sorted, in the order of ranges.
    pub units: Vec<Unit>,
    /// The bodies of the long records among it.
    pub bodies: Arc<Bodies>,
    /// What was read.
    pub read: ReadTotals,
    /// Bytes read to draw the sample, and the time it took.
    pub sample_bytes: u64,
    pub sample_ns: u64,
    /// What was cut out of the input.
    pub input: Fingerprint,
    /// What was put into partitions: the same, unless a map function made other records.
    pub fingerprint: Fingerprint,
    /// Evictions and divisions.
    pub counts: Counts,
    pub metrics: Metrics,
}

/// What one worker saw.
#[derive(Default)]
pub struct Seen {
    /// What it cut.
    pub input: Fingerprint,
    /// What became of that.
    mapped: Fingerprint,
}

/// The most keys drawn at one place of the input.
const KEYS_PER_PLACE: usize = 64;
/// Memory for the reads of the sample, at most.
const SAMPLE_POOL_BYTES: usize = 256 << 10;

/// Distributes the records of `sources` to the partitions of this process, or, with an `exchange`, those of its share
/// to all nodes, and what comes from the others to its partitions.
///
/// # Errors
/// The first of any thread.
pub fn distribute(
    shared: &Shared<'_>,
    sources: &[Source],
    exchange: Option<&Exchange<'_>>,
) -> Result<Distributed> {
    let Shared { plan, os, stop, .. } = *shared;
    let began_ns = os.now_ns();
    let chunks: Queue<Chunk> = Queue::new(plan.chunk_count);
    let spills = Queue::new(plan.block_count);
    let partitions = Partitions::new(
        plan,
        shared.number,
        shared.block_pool.clone(),
        spills.clone(),
        stop.clone(),
        shared.temps,
    );
    let table = partitions.table();
    {
        let (chunks, spills) = (chunks.clone(), spills.clone());
        stop.on_stop(move || {
            chunks.abort();
            spills.abort();
            table.abort();
        });
    }
    // In the middle of a file nobody can tell where a pair begins. The table of a node has been made already.
    let sampled_in_passing = exchange.is_none()
        && (plan.order.format() == Format::Kv || super::extents(sources).contains(&Extent::Stream));
    // Nobody asks for the table of a job that ends before it partitions.
    let wants_table = shared.job.reaches(Stage::Partition);

    if let Some(exchange) = exchange {
        partitions.begin(exchange.table(shared));
    }

    let (read_end, worker_ends, exchanged, spill_end, sampled, ended) = scope(|threads| {
        let reader = spawn(threads, "read", || {
            let mut meter = shared.meter("read", &[Stage::Read], began_ns);
            let mut watcher = StreamSampler::new(shared, &partitions);
            let result = guarded(stop, || {
                let mut longs: Box<dyn Longs> = match plan.takes_parts {
                    true => Box::new(BodyLongs::new(&partitions)),
                    false => Box::new(WholeLongs::new(plan.record_bytes_max, stop)?),
                };
                read(
                    Reader {
                        os,
                        plan,
                        sources,
                        pool: &shared.chunk_pool,
                        chunks: &chunks,
                        stop,
                        side_by_side: true,
                        as_of_start: shared.job.as_of_start,
                        skip_bad: shared.job.skip_bad,
                        share: exchange.map(|exchange| exchange.share.clone()),
                        watcher: (sampled_in_passing && wants_table)
                            .then_some(&mut watcher as &mut dyn Watcher),
                        longs: &mut *longs,
                    },
                    &mut meter,
                )
            });
            result.map(|totals| (totals, meter.finish(Stage::Read)))
        });
        let workers: Vec<_> = (0..plan.worker_count)
            .map(|number| {
                let (chunks, partitions) = (&chunks, &partitions);
                let name = format!("partition-{number}");
                spawn(threads, &name.clone(), move || {
                    let stages = [Stage::Cut, Stage::Map, Stage::Partition];
                    let mut meter = shared.meter(&name, &stages, began_ns);
                    let result = guarded(stop, || match shared.job.reaches(Stage::Cut) {
                        true => work(shared, chunks, partitions, exchange, &mut meter),
                        false => discard(chunks, stop, Stage::Cut, &mut meter, drop)
                            .map(|()| Seen::default()),
                    });
                    result.map(|seen| (seen, meter.finish(Stage::Cut)))
                })
            })
            .collect();
        let spiller = spawn(threads, "spill", || {
            let mut meter = shared.meter("spill", &[Stage::Spill], began_ns);
            let spiller = Spiller {
                os,
                temps: shared.temps,
                blocks: &spills,
                written: &|| partitions.spilled(),
                stop,
            };
            let result = guarded(stop, || match shared.job.reaches(Stage::Spill) {
                true => spill(&spiller, &mut meter),
                // Blocks fill memory and are evicted as always, so that partitioning costs what it costs.
                false => discard(&spills, stop, Stage::Spill, &mut meter, |block| {
                    partitions.spilled();
                    drop(block);
                })
                .map(|()| 0),
            });
            result.map(|_| meter.finish(Stage::Spill))
        });
        let senders = exchange.map(|exchange| exchange.spawn_senders(threads, shared, began_ns));
        let receivers = exchange
            .map(|exchange| exchange.spawn_receivers(threads, shared, &partitions, began_ns));
        let sampled = if sampled_in_passing || !wants_table || exchange.is_some() {
            Some((0, 0))
        } else {
            guarded(stop, || sample_files(shared, sources, &partitions))
        };
        let read_end = join(reader);
        let worker_ends: Vec<_> = workers.into_iter().map(join).collect();
        let exchanged = Exchanged {
            sent: guarded(stop, || {
                stop.check()?;
                exchange.map_or(Ok(Fingerprint::default()), |exchange| exchange.end(shared))
            }),
            senders: senders.into_iter().flatten().map(join).collect(),
            receivers: receivers.into_iter().flatten().map(join).collect(),
        };
        // What has to be evicted to make room for sorting is written by the spiller too.
        let ended = guarded(stop, || {
            stop.check()?;
            partitions.finish()
        });
        spills.close();
        (
            read_end,
            worker_ends,
            exchanged,
            join(spiller),
            sampled,
            ended,
        )
    });
    stop.check()?;

    let end_ns = os.now_ns();
    let mut metrics = Metrics::default();
    let mut seen = Seen::default();
    let (read, read_meter) = read_end.expect("no error was seen");
    metrics.merge(&read_meter.until(end_ns));
    for end in worker_ends {
        let (one, meter): (Seen, Finished) = end.expect("no error was seen");
        metrics.merge(&meter.until(end_ns));
        seen.input.merge(&one.input);
        seen.mapped.merge(&one.mapped);
    }
    // What went to other nodes is theirs, and what came from them is ours.
    let sent = exchanged.sent.expect("no error was seen");
    let mut fingerprint = seen.mapped.without(&sent);
    for end in exchanged.senders {
        let ((), meter) = end.expect("no error was seen");
        metrics.merge(&meter.until(end_ns));
    }
    for end in exchanged.receivers {
        let (one, meter) = end.expect("no error was seen");
        metrics.merge(&meter.until(end_ns));
        fingerprint.merge(&one.input);
    }
    metrics.merge(&spill_end.expect("no error was seen").until(end_ns));
    let (sample_bytes, sample_ns) = sampled.expect("no error was seen");
    let (units, mut counts) = ended.expect("no error was seen");
    if !shared.job.reaches(Stage::Spill) {
        counts.spilled_bytes = 0;
    }
    Ok(Distributed {
        units,
        bodies: partitions.bodies(),
        read,
        sample_bytes,
        sample_ns,
        input: seen.input,
        fingerprint,
        counts,
        metrics,
    })
}

/// How the threads between nodes ended.
struct Exchanged {
    sent: Option<Fingerprint>,
    senders: Vec<Option<((), Finished)>>,
    receivers: Vec<Option<(Seen, Finished)>>,
}

/// Runs a thread's work. Its error, or its panic, ends the whole job, so that every other thread ends too.
pub fn guarded<T>(stop: &Stop, work: impl FnOnce() -> Result<T>) -> Option<T> {
    let guard = StopOnPanic::new(stop);
    let result = work();
    guard.disarm();
    result.map_err(|error| stop.fail(error)).ok()
}

/// Waits for a thread; its panic becomes ours.
pub fn join<T>(thread: sortmill_io::sync::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A worker: chunks to partitions, until there are no more.
fn work(
    shared: &Shared<'_>,
    chunks: &Queue<Chunk>,
    partitions: &Partitions<'_>,
    exchange: Option<&Exchange<'_>>,
    meter: &mut Meter<'_>,
) -> Result<Seen> {
    let table = partitions.table();
    let mut worker = Worker::new(shared, partitions, exchange, Stage::Cut);
    loop {
        let chunk = chunks.pop();
        meter.lap(Stage::Cut, State::Input);
        let Some(chunk) = chunk else {
            shared.stop.check()?;
            return Ok(worker.seen);
        };
        // A chunk keeps to one table, so that its records of one range lie in one partition.
        let table = match shared.job.reaches(Stage::Partition) {
            true => Some(table.get().ok_or_else(|| shared.stop.error())?),
            false => None,
        };
        meter.lap(Stage::Cut, State::Input);
        match &chunk.long {
            Some(Long::Whole(record)) => {
                worker.records(table.as_deref(), chunk.number, record, 0, meter)?;
            }
            Some(Long::Body(body, summed)) => {
                worker.long(table.as_deref(), chunk.number, *body, summed, meter)?;
            }
            Some(Long::Passed(_)) | None => {}
        }
        let bytes = &chunk.buffer[..chunk.records.end];
        let from = chunk.records.start;
        worker.records(table.as_deref(), chunk.number, bytes, from, meter)?;
    }
}

/// Cuts, maps and partitions.
pub struct Worker<'a> {
    shared: &'a Shared<'a>,
    partitions: &'a Partitions<'a>,
    /// Where records of other nodes go.
    exchange: Option<&'a Exchange<'a>>,
    /// What cutting counts as: what other nodes sent has been counted before.
    cuts: Stage,
    offsets: Vec<u32>,
    scratch: Scratch,
    made: Records,
    /// What it has seen.
    pub seen: Seen,
}

impl<'a> Worker<'a> {
    /// One that has not seen anything and whose cutting counts as `cuts`. Without an `exchange`, records of other nodes
    /// are an error.
    pub fn new(
        shared: &'a Shared<'_>,
        partitions: &'a Partitions<'_>,
        exchange: Option<&'a Exchange<'_>>,
        cuts: Stage,
    ) -> Self {
        Self {
            shared,
            partitions,
            exchange,
            cuts,
            offsets: Vec::with_capacity(shared.plan.batch_records_max + 1),
            scratch: Scratch::default(),
            made: Records::new(shared.job.format, shared.plan.mapped_bytes_max),
            seen: Seen::default(),
        }
    }

    /// Distributes a record that the reader put into a body.
    fn long(
        &mut self,
        table: Option<&Table>,
        chunk: u64,
        body: u32,
        summed: &Summed,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let mut one = Fingerprint::default();
        one.add_hashed(summed.bytes, summed.hash);
        self.seen.input.merge(&one);
        count(meter, Stage::Cut, &one, &one);
        let Some(table) = table else {
            return Ok(());
        };
        self.seen.mapped.merge(&one);
        count(meter, Stage::Map, &one, &one);
        let (order, short) = (&self.shared.plan.order, &summed.short);
        let slot = table.slot(order, short, order.word(short, 0), chunk, &mut Vec::new());
        let (_, spare) = self.scratch.rows_and_spare();
        let stub = summed.stub(body);
        self.partitions
            .append_stub(table.owner(slot), chunk, &stub, spare, meter)?;
        count(meter, Stage::Partition, &one, &one);
        meter.lap(Stage::Partition, State::Work);
        Ok(())
    }

    /// Distributes the records that lie back to back in `bytes[from..]`; without a table, cuts them only.
    pub fn records(
        &mut self,
        table: Option<&Table>,
        chunk: u64,
        bytes: &[u8],
        mut from: usize,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let plan = self.shared.plan;
        let key = self.shared.number;
        while from < bytes.len() {
            let batch = cut(
                &plan.order,
                bytes,
                from,
                chunk,
                &mut self.offsets,
                plan.batch_records_max,
                key,
            );
            from = *batch.offsets.last().expect("a batch has an end") as usize;
            let cut_out = batch.fingerprint;
            self.seen.input.merge(&cut_out);
            if self.cuts == Stage::Cut {
                count(meter, Stage::Cut, &cut_out, &cut_out);
            }
            meter.lap(self.cuts, State::Work);
            let Some(table) = table else { continue };
            let batch = border::batch(self.shared.job, Border::Map, batch);
            let batch = map(batch, self.shared.job.map.as_ref(), &mut self.made, key)?;
            self.seen.mapped.merge(&batch.fingerprint);
            if self.cuts == Stage::Cut {
                count(meter, Stage::Map, &cut_out, &batch.fingerprint);
                meter.lap(Stage::Map, State::Work);
            }
            let batch = border::batch(self.shared.job, Border::Partition, batch);
            partition(&plan.order, table, &batch, &mut self.scratch);
            let ends = (self.partitions, self.exchange);
            append(self.shared, ends, table, &batch, &mut self.scratch, meter)?;
            count(
                meter,
                Stage::Partition,
                &batch.fingerprint,
                &batch.fingerprint,
            );
            meter.lap(Stage::Partition, State::Work);
        }
        Ok(())
    }
}

/// Appends each slot's records to the partition, or sends them to the node, that owns it; workers begin at different
/// slots, so that they seldom meet.
fn append(
    shared: &Shared<'_>,
    (partitions, exchange): (&Partitions<'_>, Option<&Exchange<'_>>),
    table: &Table,
    batch: &Batch<'_>,
    scratch: &mut Scratch,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let count = table.slot_count();
    let first = (batch.chunk as usize).wrapping_mul(7919) % count;
    for slot in (first..count).chain(0..first) {
        let range = scratch.rows_of(slot);
        if range.is_empty() {
            continue;
        }
        let owner = table.owner(slot);
        let (rows, spare) = scratch.rows_and_spare();
        let rows = &rows[range];
        if let Some(node) = node_of(owner) {
            let exchange = exchange.ok_or_else(|| strayed(node))?;
            exchange.put(node, shared, batch, rows, meter)?;
        } else if partitions.append(owner, batch, rows, spare, meter)? {
            partitions.divide(&shared.plan.order, owner, batch, rows);
        }
    }
    Ok(())
}

/// The error of records that another node sent here and that are node `node`'s.
fn strayed(node: u32) -> Error {
    let cause = format!("records came that belong to node {node}");
    Error::new(ErrorKind::Corrupt, "receiving records", cause)
}

fn count(meter: &mut Meter<'_>, stage: Stage, before: &Fingerprint, after: &Fingerprint) {
    let totals = meter.stage(stage);
    totals.bytes_in += before.bytes;
    totals.records_in += before.records;
    totals.bytes_out += after.bytes;
    totals.records_out += after.records;
}

/// Samples the files and begins the partitions. Answers the bytes read and the time it took.
fn sample_files(
    shared: &Shared<'_>,
    sources: &[Source],
    partitions: &Partitions<'_>,
) -> Result<(u64, u64)> {
    let began_ns = shared.os.now_ns();
    if !wants_sample(shared) {
        begin(shared, partitions, Sample::default());
        return Ok((0, 0));
    }
    let (sample, bytes) = draw_sample(shared, sources)?;
    begin(shared, partitions, sample);
    Ok((bytes, shared.os.now_ns() - began_ns))
}

/// Draws keys from places all over the files, reads in flight together. Answers the bytes read, too.
///
/// # Errors
/// A read that failed.
pub fn draw_sample(shared: &Shared<'_>, sources: &[Source]) -> Result<(Sample, u64)> {
    let Shared { plan, os, .. } = *shared;
    let Some(first) = sources.first() else {
        return Ok((Sample::default(), 0));
    };
    let wrong = |error: std::io::Error| Error::io("sampling the input", &first.file.path, &error);
    let depth = (SAMPLE_POOL_BYTES / plan.sample_bytes).clamp(1, 32);
    let pool = Pool::new(depth, plan.sample_bytes).map_err(wrong)?;
    let mut ring = os.ring(depth).map_err(wrong)?;
    let first_chunks = Chunks::first_chunks(&super::extents(sources), plan.chunk_bytes as u64);
    let mut places = places(shared, sources).into_iter();
    let mut sample = Sample::default();
    let mut bytes = 0;
    loop {
        while ring.in_flight() < depth {
            let Some((input, offset)) = places.next() else {
                break;
            };
            ring.submit(Op {
                kind: OpKind::Read,
                file: Arc::clone(&sources[input].file),
                offset,
                buffer: pool.take().expect("as many buffers as reads"),
                range: 0..plan.sample_bytes,
                tag: input as u64,
            });
        }
        let Some(done) = ring.complete(true) else {
            break;
        };
        shared.stop.check()?;
        let source = &sources[done.op.tag as usize];
        let moved = done.result.map_err(|error| {
            Error::io("sampling the input", &source.file.path, &error).offset(done.op.offset)
        })?;
        bytes += moved as u64;
        let whole = (moved as u64).min(source.meta.bytes - done.op.offset) as usize;
        add_to_sample(
            shared,
            &mut sample,
            first_chunks[done.op.tag as usize],
            done.op.offset,
            &done.op.buffer[..whole],
        );
    }
    Ok((sample, bytes))
}

/// How many boundaries the sample has to find.
fn sampled_count(shared: &Shared<'_>) -> usize {
    let wanted = shared.plan.partition_count - 1;
    match (&shared.job.boundaries, shared.cut_keys) {
        (Boundaries::Uniform, _) => 0,
        (_, Some(keys)) => wanted.saturating_sub(keys.len()),
        (_, None) => wanted,
    }
}

fn wants_sample(shared: &Shared<'_>) -> bool {
    sampled_count(shared) > 0
}

/// Begins the partitions, at the boundaries that the job asks for and those that a sample adds to them.
fn begin(shared: &Shared<'_>, partitions: &Partitions<'_>, mut sample: Sample) {
    let plan = shared.plan;
    let mut boundaries = sample.boundaries(sampled_count(shared) + 1, plan.equal_keys_meet);
    let asked = match (&shared.job.boundaries, shared.cut_keys) {
        (Boundaries::Uniform, _) => uniform_keys(plan.partition_count as u64),
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
    if shared.temps.lies_in_output() {
        let shares = match sample.is_empty() {
            true => vec![1; boundaries.len() + 1],
            false => sample.shares(&boundaries),
        };
        shared.temps.divide(&shares);
    }
    partitions.begin(Table::range(&plan.order, boundaries));
}

/// One aligned place in each of as many equal stretches of the input as the plan wants samples.
fn places(shared: &Shared<'_>, sources: &[Source]) -> Vec<(usize, u64)> {
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

fn add_to_sample(
    shared: &Shared<'_>,
    sample: &mut Sample,
    first_chunk: u64,
    offset: u64,
    bytes: &[u8],
) {
    let plan = shared.plan;
    let chunk = first_chunk + offset / plan.chunk_bytes as u64;
    let have = match plan.order.format() {
        // Where a line began is not known: the first newline ends a part of one.
        Format::Lines => u64::from(offset > 0),
        Format::Fixed(size) => offset % u64::from(size),
        Format::Kv => unreachable!("pairs are sampled as they come"),
    };
    if shared.job.map.is_none()
        && let Some(line) = cut_line(plan, bytes, have == 0)
    {
        sample.add(&plan.order, line, chunk);
    }
    let mapped = RefCell::new(Records::new(shared.job.format, plan.mapped_bytes_max));
    sample_records(
        &plan.order,
        bytes,
        &Begun::with(have),
        KEYS_PER_PLACE,
        |record| match &shared.job.map {
            None => sample.add(&plan.order, record, chunk),
            Some(function) => {
                let mut made = mapped.borrow_mut();
                made.clear();
                function(record, &mut made);
                if let Ok(batch) = made.batch(chunk, 0) {
                    batch
                        .records()
                        .for_each(|record| sample.add(&plan.order, record, chunk));
                }
            }
        },
    );
}

/// The beginning of the last line of `bytes`, which goes on behind them, if a sample keeps no more of a key anyway; as
/// a line. Long lines are seldom seen whole.
fn cut_line<'b>(plan: &Plan, bytes: &'b [u8], begins: bool) -> Option<&'b [u8]> {
    if plan.order.format() != Format::Lines {
        return None;
    }
    let from = match memchr::memrchr(b'\n', bytes) {
        Some(at) => at + 1,
        None => begins.then_some(0)?,
    };
    bytes.get(from..from + SAMPLE_KEY_BYTES_MAX + 1)
}

/// Samples a stream, or pairs: what has come when memory for chunks is full must do. What it does not tell is mended
/// by dividing.
struct StreamSampler<'a> {
    shared: &'a Shared<'a>,
    partitions: &'a Partitions<'a>,
    sample: Option<Sample>,
}

impl<'a> StreamSampler<'a> {
    fn new(shared: &'a Shared<'a>, partitions: &'a Partitions<'a>) -> Self {
        Self {
            shared,
            partitions,
            sample: Some(Sample::default()),
        }
    }
}

impl Watcher for StreamSampler<'_> {
    fn see(&mut self, chunk: &Chunk) {
        const KEYS_PER_CHUNK: usize = 4096;
        let Some(sample) = &mut self.sample else {
            return;
        };
        let order = &self.shared.plan.order;
        if let Some(long) = &chunk.long {
            sample.add(order, long.short(), chunk.number);
        }
        let bytes = &chunk.buffer[chunk.records.clone()];
        sample_records(order, bytes, &Begun::default(), KEYS_PER_CHUNK, |record| {
            sample.add(order, record, chunk.number);
        });
    }

    fn must_decide(&mut self) {
        let Some(sample) = self.sample.take() else {
            return;
        };
        begin(self.shared, self.partitions, sample);
    }
}
