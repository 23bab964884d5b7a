//! The phase `distribute`: read, cut, map, partition, spill.
//!
//! One thread reads, one per core cuts, maps and partitions a chunk while it is warm in the cache, one
//! writes. Meanwhile this thread draws the sample; the workers begin when boundaries are known.

mod deal;
mod left_out;
mod top;

use sortmill_io::sync::{Arc, spawn};

use super::exchange::Exchange;
use super::origins::Origins;
use super::sampling::{Drawn, StreamSampler, begin, draw};
use super::until::discard;
use super::{Shared, border};
use crate::bad::{self, InHand};
use crate::batch::{Chunk, Goes, Origin, Pause, Records};
use crate::bodies::Bodies;
use crate::chunks::Extent;
use crate::columns::Columns;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::job::Mapper;
use crate::long::{Long, Longs, Summed, WholeLongs};
use crate::metrics::{Finished, Meter, Metrics, Stage, State};
use crate::order::Format;
use crate::partitions::{BodyLongs, Counts, Partitions, Unit};
use crate::queue::{Promise, Queue, Stop, StopOnPanic, job_scope};
use crate::spills::{Spilled, Spills};
use crate::stage::cut::cut;
use crate::stage::map::{Calls, map, rest};
use crate::stage::read::{
    ApartReader, Part, ReadTotals, Reader, Source, Watcher, read, read_apart,
};
use crate::stage::spill::{PackNow, Spiller, spill};
use crate::table::Table;
use crate::tamper::Border;

use deal::{Hands, To};
use left_out::{LeftOut, placed};

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
    /// Repeats among that which were dropped at once.
    pub dropped: Fingerprint,
    /// Evictions and divisions.
    pub counts: Counts,
    pub metrics: Metrics,
}

/// What one worker saw.
#[derive(Default)]
pub struct Seen {
    /// What was cut out of chunks.
    pub input: Fingerprint,
    /// What became of that.
    mapped: Fingerprint,
    /// Repeats among it that were put into no partition.
    dropped: Fingerprint,
    /// Bytes that were taken off the ends of lines before.
    returns_bytes: u64,
    /// Bad records among what was cut out.
    left_out: LeftOut,
}

/// Distributes all inputs, at the boundaries that a sample says: one that was `drawn` before, or one that is drawn
/// meanwhile.
pub fn distribute(
    shared: &Shared<'_>,
    sources: &[Source],
    drawn: Option<Drawn>,
    exchange: Option<&Exchange<'_>>,
) -> Result<Distributed> {
    let queues = Queues::new(shared);
    let is_dealt = shared.job.yields.shuffle().is_some();
    let partitions = match is_dealt {
        true => queues.partitions(shared).undivided(),
        false => queues.partitions(shared),
    };
    // In the middle of a file nobody can tell where a pair begins. The table of a node has been made already, and
    // records that are dealt need no boundaries.
    let sampled_in_passing = exchange.is_none()
        && !is_dealt
        && (shared.plan.input_order().format() == Format::Kv
            || super::extents(sources).contains(&Extent::Stream));
    if let Some(exchange) = exchange {
        partitions.begin(exchange.table(shared));
    }
    // Nobody asks for the table of a job that ends before it partitions.
    let wants_table = shared.job.reaches(Stage::Partition);
    let mut watcher = StreamSampler::new(shared, &partitions);
    let mut longs: Box<dyn Longs> = match shared.plan.takes_parts {
        true => Box::new(BodyLongs::new(&partitions)),
        false => Box::new(WholeLongs::new(shared.plan.record_bytes_max, shared.stop)?),
    };
    let input = Reads::InOrder(Reader {
        os: shared.os,
        plan: shared.plan,
        sources,
        pool: &shared.chunk_pool,
        chunks: &queues.chunks,
        stop: shared.stop,
        as_of_start: shared.job.as_of_start,
        allowed: &shared.allowed,
        header_lines: shared.job.header_lines,
        header: shared.job.columns.as_ref().and_then(Columns::header),
        counts_lines: shared.counts_lines(),
        side_by_side: shared.passing.is_none(),
        share: exchange.map(|exchange| exchange.share.clone()),
        longs: &mut *longs,
        watcher: (sampled_in_passing && wants_table).then_some(&mut watcher as &mut dyn Watcher),
    });
    let mut sampled = (0, 0);
    let meanwhile = || {
        if sampled_in_passing || !wants_table || exchange.is_some() {
            return Ok(());
        }
        let drawn = match drawn {
            Some(drawn) => drawn,
            None => draw(shared, sources)?,
        };
        sampled = (drawn.bytes, drawn.ns);
        begin(shared, &partitions, drawn.sample);
        Ok(())
    };
    let end = || partitions.end_all();
    let ends = (None, exchange);
    let round = round(shared, &queues, &partitions, ends, input, meanwhile, end)?;
    let (units, mut counts) = partitions.units(&shared.plan.order);
    counts.spilled = round.spilled;
    if !shared.job.reaches(Stage::Spill) {
        counts.spilled_bytes = 0;
    }
    Ok(Distributed {
        units,
        bodies: partitions.bodies(),
        read: round.read,
        sample_bytes: sampled.0,
        sample_ns: sampled.1,
        input: round.input,
        fingerprint: round.fingerprint,
        dropped: round.dropped,
        counts,
        metrics: round.metrics,
    })
}

/// What passes between the threads of the phase.
pub struct Queues {
    pub chunks: Queue<Chunk>,
    spills: Spills,
}

impl Queues {
    pub fn new(shared: &Shared<'_>) -> Self {
        let plan = shared.plan;
        let chunks = Queue::new(plan.chunk_count);
        let spills = Spills::new(plan.temp_packing, plan.worker_count);
        let both: (Queue<Chunk>, Spills) = (chunks.clone(), spills.clone());
        shared.stop.on_stop(move || {
            both.0.abort();
            both.1.abort();
        });
        Self { chunks, spills }
    }

    /// No partitions yet, which evict to the queue.
    pub fn partitions<'a>(&self, shared: &'a Shared<'a>) -> Partitions<'a> {
        let partitions = Partitions::new(
            shared.plan,
            shared.number,
            shared.block_pool.clone(),
            (self.spills.clone(), shared.packers.as_ref()),
            shared.stop.clone(),
            shared.temps,
        )
        .by_heads(shared.job.equal_heads_meet.as_ref());
        let table = partitions.table();
        shared.stop.on_stop(move || table.abort());
        partitions
    }
}

/// What is read in one round, and how.
pub enum Reads<'a> {
    /// All inputs, from the beginning.
    InOrder(Reader<'a>),
    /// Parts of files, each on its own.
    Apart(ApartReader<'a>, &'a [Part]),
}

/// What one round of the phase leaves.
pub struct Round<T> {
    pub read: ReadTotals,
    /// What was cut out.
    pub input: Fingerprint,
    /// What was to be put into partitions, and repeats among it that were put into none.
    pub fingerprint: Fingerprint,
    pub dropped: Fingerprint,
    pub metrics: Metrics,
    /// What became of the blocks that left memory.
    pub spilled: Spilled,
    /// What the round was ended with.
    pub ended: T,
}

/// Reads, cuts, maps, partitions and spills what `reads` says. This thread does `meanwhile`, and when all records
/// are in partitions, `end`, whose evictions are still written: when this returns, what left memory is on disk. `origins`
/// notes where records came from, through the `exchange` they go to other nodes and come from them.
pub fn round<T>(
    shared: &Shared<'_>,
    queues: &Queues,
    partitions: &Partitions<'_>,
    (origins, exchange): (Option<&Origins>, Option<&Exchange<'_>>),
    reads: Reads<'_>,
    meanwhile: impl FnOnce() -> Result<()>,
    end: impl FnOnce() -> Result<T>,
) -> Result<Round<T>> {
    let Shared { plan, os, stop, .. } = *shared;
    let began_ns = os.now_ns();
    let Queues { chunks, spills } = queues;
    let in_hand = shared.looks_for_bad().then(InHand::default);
    let in_hand = in_hand.as_ref();
    let (read_end, worker_ends, exchanged, spill_end, ended) = job_scope(stop, |threads| {
        let reader = spawn(threads, "read", || {
            let mut meter = shared.meter("read", &[Stage::Read], began_ns);
            let result = guarded(stop, || match reads {
                Reads::InOrder(reader) => read(reader, &mut meter),
                Reads::Apart(reader, parts) => read_apart(reader, parts, &mut meter),
            });
            result.map(|totals| (totals, meter.finish(Stage::Read)))
        });
        let workers: Vec<_> = (0..plan.worker_count)
            .map(|number| {
                let name = format!("partition-{number}");
                spawn(threads, &name.clone(), move || {
                    let mut stages = vec![Stage::Cut, Stage::Map, Stage::Partition];
                    stages.extend(shared.packers.as_ref().map(|_| Stage::Pack));
                    let mut meter = shared.meter(&name, &stages, began_ns);
                    let result = guarded(stop, || match shared.job.reaches(Stage::Cut) {
                        true => {
                            let to = (partitions, origins, exchange);
                            work(shared, (chunks, in_hand), to, &mut meter)
                        }
                        false => discard(|| chunks.pop(), stop, Stage::Cut, &mut meter, drop)
                            .map(|()| Seen::default()),
                    });
                    result.map(|seen| (seen, meter.finish(Stage::Cut)))
                })
            })
            .collect();
        let spiller = spawn(threads, "spill", || {
            let mut meter = shared.meter("spill", &[Stage::Spill], began_ns);
            let pack: PackNow<'_> = &|block, meter| partitions.pack_now(block, meter);
            let spiller = Spiller {
                os,
                temps: shared.temps,
                blocks: spills,
                pack: shared.packers.as_ref().map(|_| pack),
                placed: &|header, stored| partitions.placed(header, stored),
                written: &|| partitions.spilled(),
                stop,
            };
            let result = guarded(stop, || match shared.job.reaches(Stage::Spill) {
                true => spill(&spiller, &mut meter),
                // Blocks fill memory and are evicted as always, so that partitioning costs what it costs.
                false => discard(
                    || spills.pop(),
                    stop,
                    Stage::Spill,
                    &mut meter,
                    |block| {
                        partitions.spilled();
                        drop(block);
                    },
                )
                .map(|()| Spilled::default()),
            });
            result.map(|spilled| (spilled, meter.finish(Stage::Spill)))
        });
        let senders = exchange.map(|exchange| exchange.spawn_senders(threads, shared, began_ns));
        let receivers = exchange
            .map(|exchange| exchange.spawn_receivers(threads, shared, partitions, began_ns));
        guarded(stop, meanwhile);
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
            end()
        });
        spills.close();
        (read_end, worker_ends, exchanged, join(spiller), ended)
    });
    stop.check()?;

    let end_ns = os.now_ns();
    let mut metrics = Metrics::default();
    let mut seen = Seen::default();
    let (mut read, read_meter) = read_end.expect("no error was seen");
    metrics.merge(&read_meter.until(end_ns));
    for end in worker_ends {
        let (one, meter): (Seen, Finished) = end.expect("no error was seen");
        metrics.merge(&meter.until(end_ns));
        seen.input.merge(&one.input);
        seen.mapped.merge(&one.mapped);
        seen.dropped.merge(&one.dropped);
        read.returns_bytes += one.returns_bytes;
        seen.left_out.merge(one.left_out);
    }
    seen.left_out.take_out(&mut read, &mut seen.input);
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
    let (spilled, spill_meter) = spill_end.expect("no error was seen");
    metrics.merge(&spill_meter.until(end_ns));
    // For the next round, if there is one.
    chunks.reopen(stop);
    spills.reopen(stop);
    Ok(Round {
        read,
        input: seen.input,
        fingerprint,
        dropped: seen.dropped,
        metrics,
        spilled,
        ended: ended.expect("no error was seen"),
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

/// A worker: chunks to partitions, until there are no more. Where records may be bad, `in_hand` knows which chunks are in
/// the hands of workers.
fn work(
    shared: &Shared<'_>,
    (chunks, in_hand): (&Queue<Chunk>, Option<&InHand>),
    (partitions, origins, exchange): (&Partitions<'_>, Option<&Origins>, Option<&Exchange<'_>>),
    meter: &mut Meter<'_>,
) -> Result<Seen> {
    let table = partitions.table();
    let mut worker = Worker::new(shared, partitions, exchange, Stage::Cut)?;
    worker.origins = origins;
    loop {
        let passing = shared.passing.as_ref();
        if let Some(passing) = passing.filter(|_| worker.hands.has_turn) {
            passing.end(worker.hands.turn);
        }
        let mut take = || match in_hand {
            None => Ok(next_chunk(chunks, partitions, meter)?.map(|chunk| (0, chunk))),
            Some(in_hand) => {
                let taken = in_hand.take(chunks);
                meter.lap(Stage::Cut, State::Input);
                Ok(taken)
            }
        };
        let chunk = match passing {
            None => take()?,
            Some(passing) => {
                let (turn, chunk) = passing.take(take)?;
                (worker.hands.turn, worker.hands.has_turn) = (turn, true);
                chunk
            }
        };
        let Some((turn, mut chunk)) = chunk else {
            shared.stop.check()?;
            worker.end(&table, meter)?;
            if let Some(passing) = passing {
                passing.end(worker.hands.turn);
            }
            return Ok(worker.hands.seen);
        };
        if let Some(in_hand) = in_hand
            && in_hand.is_over(turn)
        {
            drop(chunk);
            in_hand.done(turn, None)?;
            continue;
        }
        worker.hands.passed = 0;
        // A chunk keeps to one table, so that its records of one range lie in one partition.
        let table = match shared.job.reaches(Stage::Partition) {
            true => Some(table.get().ok_or_else(|| shared.stop.error())?),
            false => None,
        };
        meter.lap(Stage::Cut, State::Input);
        if shared.job.drops_returns {
            worker.hands.seen.returns_bytes += chunk.drop_returns();
        }
        let number = chunk.number;
        match &chunk.long {
            Some(Long::Whole(record)) => {
                let from = (number, Some((&chunk, record.len())));
                worker.records(table.as_deref(), from, record, 0, meter)?;
            }
            Some(Long::Body(body, summed)) => {
                worker.long(table.as_deref(), &chunk, *body, summed, meter)?;
            }
            Some(Long::Passed(_)) | None => {}
        }
        if worker.bad.is_none() {
            let bytes = &chunk.buffer[..chunk.records.end];
            let at = chunk.records.start;
            let from = (number, Some((&chunk, at)));
            worker.records(table.as_deref(), from, bytes, at, meter)?;
        }
        if let Some(in_hand) = in_hand {
            drop(chunk);
            in_hand.done(turn, worker.bad.take())?;
        }
    }
}

/// The next chunk; while there is none, blocks that wait for the disk are compressed, if that is worth while.
fn next_chunk(
    chunks: &Queue<Chunk>,
    partitions: &Partitions<'_>,
    meter: &mut Meter<'_>,
) -> Result<Option<Chunk>> {
    loop {
        if let Some(chunk) = chunks.try_pop() {
            meter.lap(Stage::Cut, State::Input);
            return Ok(Some(chunk));
        }
        if !partitions.pack_one(Stage::Cut, meter)? {
            break;
        }
    }
    // Reads wait for the disk, too, while it has blocks to write.
    let is_behind = partitions.is_behind();
    let chunk = chunks.pop();
    let waited_ns = meter.lap(Stage::Cut, State::Input);
    if is_behind {
        partitions.waited(waited_ns, meter);
    }
    Ok(chunk)
}

/// Cuts, maps and partitions.
pub struct Worker<'a> {
    shared: &'a Shared<'a>,
    partitions: &'a Partitions<'a>,
    /// Where it is noted where records came from.
    origins: Option<&'a Origins>,
    /// Where records of other nodes go.
    exchange: Option<&'a Exchange<'a>>,
    /// What cutting counts as: what other nodes sent has been counted before.
    cuts: Stage,
    offsets: Vec<u32>,
    mapper: Option<Mapper>,
    made: Records,
    /// The first bad record of the chunk in its hands. What lies behind it there is left alone.
    bad: Option<Error>,
    /// What it has in hand while it distributes, and what it has seen.
    pub hands: Hands<'a>,
}

impl<'a> Worker<'a> {
    /// One that has not seen anything and whose cutting counts as `cuts`. Without an `exchange`, records of other nodes
    /// are an error.
    ///
    /// # Errors
    /// When there is no memory to map.
    pub fn new(
        shared: &'a Shared<'_>,
        partitions: &'a Partitions<'_>,
        exchange: Option<&'a Exchange<'_>>,
        cuts: Stage,
    ) -> Result<Self> {
        let plan = shared.plan;
        Ok(Self {
            shared,
            partitions,
            origins: None,
            exchange,
            cuts,
            offsets: Vec::with_capacity(plan.batch_records_max + 1),
            mapper: (shared.job.map.as_ref()).map(|make| make(plan.map_state_bytes)),
            made: Records::new(
                plan.order.clone(),
                plan.mapped_bytes_max,
                plan.batch_records_max,
            ),
            bad: None,
            hands: Hands::new(shared)?,
        })
    }

    /// Distributes a record that the reader put into a body, the first of a chunk.
    fn long(
        &mut self,
        table: Option<&Table>,
        chunk: &Chunk,
        body: u32,
        summed: &Summed,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let mut one = Fingerprint::default();
        one.add_hashed(summed.bytes, summed.hash);
        let hands = &mut self.hands;
        hands.seen.input.merge(&one);
        count(meter, Stage::Cut, &one, &one);
        let Some(table) = table else {
            return Ok(());
        };
        hands.seen.mapped.merge(&one);
        count(meter, Stage::Map, &one, &one);
        let (order, short) = (&self.shared.plan.order, &summed.short);
        let number = chunk.number;
        let by_key = || table.slot(order, short, order.word(short, 0), number, &mut Vec::new());
        let slot = match (chunk.goes, hands.shuffle) {
            (Goes::AllToSlot(slot), _) => slot,
            (Goes::ByKey | Goes::OnlySlot(_), None) => by_key(),
            (Goes::ByKey | Goes::OnlySlot(_), Some(shuffle)) => {
                let draws = shuffle.dealing(number);
                draws.below(hands.passed, table.slot_count())
            }
        };
        hands.passed += 1;
        if matches!(chunk.goes, Goes::OnlySlot(only) if only != slot) {
            drop(self.partitions.bodies().take(body));
            return Ok(());
        }
        if let Some(origins) = self.origins {
            let from = chunk.offset - summed.bytes;
            origins.note(slot, chunk, from..chunk.offset);
        }
        let (_, spare) = hands.scratch.rows_and_spare();
        let stub = summed.stub(body);
        self.partitions
            .append_stub(table.owner(slot), number, &stub, spare, meter)?;
        count(meter, Stage::Partition, &one, &one);
        meter.lap(Stage::Partition, State::Work);
        Ok(())
    }

    /// Where records go that were cut out of `chunk`, or of one that another process read.
    fn to<'t>(&self, table: &'t Table, chunk: Option<(&'t Chunk, usize)>) -> To<'t>
    where
        'a: 't,
    {
        To {
            shared: self.shared,
            partitions: self.partitions,
            origins: self.origins,
            exchange: self.exchange,
            table,
            chunk,
            goes: chunk.map_or(Goes::ByKey, |(chunk, _)| chunk.goes),
        }
    }

    /// Distributes the records that lie back to back in `bytes[from..]`; without a table, cuts them only. They are of
    /// chunk `number`, which is given where this process read it, with the index in `bytes` of what stands at its offset.
    pub fn records(
        &mut self,
        table: Option<&Table>,
        (number, chunk): (u64, Option<(&Chunk, usize)>),
        bytes: &[u8],
        mut from: usize,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let (shared, key) = (self.shared, self.shared.number);
        let plan = shared.plan;
        let begin = from;
        if let (Some(_), Some((chunk, zero))) = (&self.mapper, chunk) {
            let line = match shared.job.map_knows_lines {
                true => bad::line_at(chunk, bytes, (begin, zero), begin),
                false => 0,
            };
            self.made.origin = Origin {
                input: chunk.input,
                line,
            };
        }
        let to = table.map(|table| self.to(table, chunk));
        while from < bytes.len() {
            let batch = cut(
                plan.input_order(),
                bytes,
                from,
                number,
                &mut self.offsets,
                plan.batch_records_max,
                key,
            );
            from = batch.offsets.end();
            if let (true, Some((chunk, zero))) = (shared.looks_for_bad(), chunk)
                && let Some(bad) = bad::in_batch(plan.input_order(), &batch, chunk, (begin, zero))
            {
                let path = shared.job.inputs[chunk.input].path();
                self.bad = Some(shared.allowed.hinted(bad.at(path)));
                return Ok(());
            }
            let cut_out = batch.fingerprint;
            self.hands.seen.input.merge(&cut_out);
            if self.cuts == Stage::Cut {
                count(meter, Stage::Cut, &cut_out, &cut_out);
            }
            meter.lap(self.cuts, State::Work);
            let Some(to) = &to else { continue };
            let batch = border::batch(shared.job, Border::Map, batch);
            let Some(mapper) = &mut self.mapper else {
                if self.cuts == Stage::Cut {
                    count(meter, Stage::Map, &cut_out, &batch.fingerprint);
                    meter.lap(Stage::Map, State::Work);
                }
                to.distribute(&batch, &mut self.hands, meter)?;
                continue;
            };
            let (mut next, mut before) = (0, cut_out);
            let base = chunk.map_or((0, 0), |(chunk, zero)| {
                (chunk.input as u64, chunk.offset.wrapping_sub(zero as u64))
            });
            while next < batch.len() || self.made.is_held() {
                let calls = Calls {
                    mapper,
                    around: shared.job.map_around.as_ref(),
                    takes_several: shared.job.map_takes_several,
                };
                let (made, unread);
                (made, next, unread) = map(&batch, next, base, calls, &mut self.made, key);
                let last = batch.offsets.range(next - 1).start;
                if let Some(unread) = unread {
                    let (record, left_out) =
                        (batch.record(next - 1), &mut self.hands.seen.left_out);
                    left_out.take(shared, unread, (record, last), chunk, (bytes, begin))?;
                }
                let made = made.map_err(|wrong| match (*wrong, chunk) {
                    ((error, at), Some(chunk)) => {
                        placed(error, shared, chunk, (bytes, begin), at.unwrap_or(last))
                    }
                    ((error, _), None) => error,
                })?;
                count(meter, Stage::Map, &before, &made.fingerprint);
                before = Fingerprint::default();
                meter.lap(Stage::Map, State::Work);
                to.distribute(&made, &mut self.hands, meter)?;
            }
        }
        match (table, shared.job.map_gathers_bytes) {
            (Some(table), 1..) => self.end_chunk(table, (number, chunk), (bytes, begin), meter),
            _ => Ok(()),
        }
    }

    /// Distributes what the map function makes of the records that it gathered of a chunk, which were cut as
    /// [`Worker::records`] has it.
    fn end_chunk(
        &mut self,
        table: &Table,
        (number, chunk): (u64, Option<(&Chunk, usize)>),
        cut_from: (&[u8], usize),
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let shared = self.shared;
        let to = self.to(table, chunk);
        let Some(mapper) = &mut self.mapper else {
            return Ok(());
        };
        loop {
            let made = rest(mapper, Pause::Chunk, &mut self.made, number, shared.number);
            let made = made.map_err(|wrong| match (*wrong, chunk) {
                ((error, Some(at)), Some(chunk)) => placed(error, shared, chunk, cut_from, at),
                ((error, _), _) => error,
            })?;
            let nothing = Fingerprint::default();
            count(meter, Stage::Map, &nothing, &made.fingerprint);
            meter.lap(Stage::Map, State::Work);
            to.distribute(&made, &mut self.hands, meter)?;
            if !self.made.is_held() {
                return Ok(());
            }
        }
    }

    /// Distributes what the map function still has to say when no more records come, or what was kept of the first.
    fn end(&mut self, table: &Promise<Arc<Table>>, meter: &mut Meter<'_>) -> Result<()> {
        let shared = self.shared;
        if self.hands.best.is_some() {
            let table = table.get().ok_or_else(|| shared.stop.error())?;
            return self.hands.end(shared, self.partitions, &table, meter);
        }
        let Some(mapper) = &mut self.mapper else {
            return Ok(());
        };
        if !shared.job.reaches(Stage::Partition) {
            return Ok(());
        }
        let table = table.get().ok_or_else(|| shared.stop.error())?;
        let to = To {
            shared,
            partitions: self.partitions,
            origins: None,
            exchange: None,
            table: &table,
            chunk: None,
            goes: Goes::ByKey,
        };
        loop {
            let made = rest(mapper, Pause::End, &mut self.made, 0, shared.number);
            let made = made.map_err(|wrong| wrong.0)?;
            if made.is_empty() {
                return Ok(());
            }
            count(
                meter,
                Stage::Map,
                &Fingerprint::default(),
                &made.fingerprint,
            );
            meter.lap(Stage::Map, State::Work);
            to.distribute(&made, &mut self.hands, meter)?;
        }
    }
}

/// Counts what went into a stage and what came out.
pub fn count(meter: &mut Meter<'_>, stage: Stage, before: &Fingerprint, after: &Fingerprint) {
    let totals = meter.stage(stage);
    totals.bytes_in += before.bytes;
    totals.records_in += before.records;
    totals.bytes_out += after.bytes;
    totals.records_out += after.records;
}
