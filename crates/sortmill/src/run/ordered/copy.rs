//! Input that rises or falls all through: each record is held against the one before it and copied, with neither
//! partitions nor sorting between reading and writing, and no more memory than what is in flight.
//!
//! ```text
//! rising    read c0 c1 c2 ...   each begins no lower than the one before ends; as they are
//! falling   read c9 c8 c7 ...   each ends above where the one behind it begins; turned round, records of one key together
//! ```
//!
//! Workers take chunks in turn, so each knows where in the output its own begins, and check and copy side by side. The
//! first chunk that is not in order ends it. Of what is in the output by then the partitions that are complete count as
//! written early, like those of any round, and the rest of the input, from the first record of the next partition on, goes
//! the way of rounds: a part of one partition is read and written again.

use std::ops::Range;

use sortmill_io::sync::atomic::{AtomicBool, Ordering as Atomic};
use sortmill_io::sync::{Arc, Mutex, lock, spawn};

use super::{Part, Rounds};
use crate::batch::Chunk;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::long::PassedLongs;
use crate::metrics::{Finished, Meter, Metrics, Stage, State};
use crate::order::{Begun, Order};
use crate::pieces::{NUMBERS_PER_CHUNK, Stretch};
use crate::plan::Plan;
use crate::queue::{Queue, job_scope};
use crate::run::distribute::{count, guarded, join};
use crate::run::origins::Origin;
use crate::run::way::Since;
use crate::run::{Shared, mapped};
use crate::stage::cut::{cut, cut_out};
use crate::stage::read::{ApartReader, ReadTotals, Source, read_apart};
use crate::stage::reduce::Gather;
use crate::stage::write::{Output, Seams, Sink, write};
use crate::table::Table;

/// Neighbouring records of one chunk in one slot, which are in order.
struct Piece {
    slot: usize,
    /// Where they lie in the input.
    origin: Origin,
    /// What was cut out of the input, and what was copied.
    input: Fingerprint,
    copied: Fingerprint,
}

/// What was copied.
struct Copied {
    /// All of it up to the first disorder, in the order of the output.
    pieces: Vec<Piece>,
    /// There was no disorder.
    is_all: bool,
    /// What was read for that.
    read: ReadTotals,
    written_bytes: u64,
    metrics: Metrics,
}

impl Rounds<'_> {
    /// Copies the input for as long as it rises, or falls, and has the rest read as always.
    pub(super) fn copy(&mut self, falls: bool) -> Result<()> {
        let shared = self.shared;
        let Some(count) = buffer_count(shared.plan, falls) else {
            return Ok(());
        };
        let (before, begun) = (Since::now(shared.os), shared.begun("copy"));
        let seams = Seams::default();
        let buffers = mapped(count, shared.plan.chunk_bytes)?;
        // Their memory is wanted for partitions afterwards, so nothing may hold it that lasts as long as the job.
        let closed = Arc::new(Mutex::new(Some(buffers.clone())));
        let blocks = Queue::new(count);
        {
            let (closed, blocks) = (Arc::clone(&closed), blocks.clone());
            shared.stop.on_stop(move || {
                lock(&closed).as_ref().inspect(|pool| pool.close());
                blocks.abort();
            });
        }
        let output = Output {
            pool: &buffers,
            blocks: &blocks,
            seams: &seams,
            total: None,
            ends_exactly: false,
            stage: Stage::Reduce,
            stop: shared.stop,
        };
        let copying = Copying {
            shared,
            sources: self.sources,
            chunks: &self.queues.chunks,
            table: &self.table,
            output: &output,
            falls,
            turn: Mutex::default(),
            enough: AtomicBool::new(false),
        };
        let copied = copying.run(self)?;
        *lock(&closed) = None;
        drop(buffers);
        begun.end();
        let took = before.took(shared.os);
        self.way.sorted.written_bytes += copied.written_bytes;
        self.way.distributed.read.device_bytes += copied.read.device_bytes;
        self.keep(&copied, falls, &seams)?;
        self.way.copied = Some((took, copied.metrics));
        Ok(())
    }

    /// All of the input in the order in which it is copied: rising as it comes, falling a chunk at a time from the end.
    fn parts_to_copy(&self, falls: bool) -> Vec<Part> {
        if !falls {
            return self.parts(&self.stretches);
        }
        let chunk_bytes = self.shared.plan.chunk_bytes as u64;
        let chunks = self.stretches.iter().flat_map(|stretch| {
            let count = stretch.bytes.div_ceil(chunk_bytes);
            (0..count).map(|number| {
                let before = number * chunk_bytes;
                Stretch {
                    chunk: stretch.chunk + number * NUMBERS_PER_CHUNK,
                    offset: stretch.offset + before,
                    bytes: chunk_bytes.min(stretch.bytes - before),
                    ..stretch.clone()
                }
            })
        });
        let mut chunks: Vec<Stretch> = chunks.collect();
        chunks.sort_unstable_by_key(|stretch| std::cmp::Reverse(stretch.chunk));
        let each = chunks.iter().map(std::slice::from_ref);
        each.flat_map(|stretch| self.parts(stretch)).collect()
    }

    /// Counts what was copied as written, as far as slots are complete, and leaves the rest to be read.
    fn keep(&mut self, copied: &Copied, falls: bool, seams: &Seams) -> Result<()> {
        let slots = match (copied.is_all, copied.pieces.last()) {
            (true, _) => self.table.slot_count(),
            (false, Some(last)) => last.slot,
            (false, None) => 0,
        };
        self.written = vec![Fingerprint::default(); slots];
        let kept = copied.pieces.partition_point(|piece| piece.slot < slots);
        for piece in &copied.pieces[..kept] {
            let Origin {
                input, from, to, ..
            } = piece.origin;
            self.written[piece.slot].merge(&piece.copied);
            self.origins.put(piece.slot, piece.origin);
            let distributed = &mut self.way.distributed;
            distributed.input.merge(&piece.input);
            distributed.fingerprint.merge(&piece.input);
            // A newline that was added is not in the file.
            let end = to.min(self.sources[input].meta.bytes);
            distributed.read.bytes += end - from;
            distributed.read.added_bytes += to - end;
            distributed.read.record_bytes += to - from;
        }
        let kept_bytes = self.way.distributed.read.bytes;
        self.order().again_read_bytes += copied.read.bytes - kept_bytes;
        self.origins.written = slots;
        self.base = self.written.iter().map(|unit| unit.bytes).sum();
        let base = self.base;
        self.order().copied_bytes = base;
        self.order().early_bytes = base;
        self.order().again_bytes += copied.written_bytes.saturating_sub(base);
        self.take_over(seams)?;
        if copied.is_all {
            self.stretches.clear();
            self.order().is_one_pass = true;
        } else if let Some(last) = copied.pieces[..kept].last() {
            self.leave_rest(&last.origin, falls);
        }
        Ok(())
    }

    /// Makes what was written of the last block that is kept the beginning of what will be written next.
    fn take_over(&mut self, seams: &Seams) -> Result<()> {
        let block = sortmill_io::align_down(self.base);
        let before = (self.base - block) as usize;
        if before == 0 {
            return Ok(());
        }
        let bytes = match seams.unfinished(self.base) {
            Some(bytes) => bytes.into_vec(),
            None => self.read_block(block)?,
        };
        self.seams.begin(block, &bytes[..before], None)
    }

    /// Leaves of the stretches what lies behind `last`, or, where the input falls, in front of it.
    fn leave_rest(&mut self, last: &Origin, falls: bool) {
        let chunk_bytes = self.shared.plan.chunk_bytes as u64;
        let input = last.input;
        let at = match falls {
            true => last.from,
            false => last.to.min(self.sources[input].meta.bytes),
        };
        self.borders.saw(input, at, at);
        let rest = self.stretches.drain(..).filter_map(|mut stretch| {
            let end = stretch.offset + stretch.bytes;
            if falls {
                let is_left = (stretch.input, stretch.offset) < (input, at);
                if stretch.input == input && end > at {
                    stretch.bytes = at.saturating_sub(stretch.offset);
                }
                return is_left.then_some(stretch);
            }
            let is_left = (input, at) < (stretch.input, end);
            if stretch.input == input && stretch.offset < at {
                let chunks = at / chunk_bytes - stretch.offset / chunk_bytes;
                stretch.chunk += chunks * NUMBERS_PER_CHUNK;
                stretch.bytes = end.saturating_sub(at);
                stretch.offset = at;
            }
            is_left.then_some(stretch)
        });
        self.stretches = rest.collect();
    }
}

/// How many buffers of a chunk's size the output gets, from the memory for partitions, of which there are none yet: a worker
/// that waits for one has a chunk in its hands, so chunks' own will not do. Nothing where memory is too little.
fn buffer_count(plan: &Plan, falls: bool) -> Option<usize> {
    let all = plan.block_count * plan.block_bytes / plan.chunk_bytes;
    // What is turned round lies in memory of each worker's.
    let turned = if falls { plan.worker_count } else { 0 };
    let count = (plan.chunk_depth + plan.worker_count).min(all.saturating_sub(turned));
    (count >= plan.worker_count + 2).then_some(count)
}

/// What all threads that copy share.
struct Copying<'a> {
    shared: &'a Shared<'a>,
    sources: &'a [Source],
    chunks: &'a Queue<Chunk>,
    table: &'a Table,
    output: &'a Output<'a>,
    falls: bool,
    /// Locked while a chunk is taken, so that they are taken in their order.
    turn: Mutex<Turn>,
    /// No more need be read.
    enough: AtomicBool,
}

/// What is known of the chunk that is taken next.
#[derive(Default)]
struct Turn {
    number: usize,
    /// Where in the output it goes.
    offset: u64,
    /// The record that it must not lie below: the last one so far; where the input falls, the highest so far.
    edge: Vec<u8>,
    /// In which input, from 0, and where it begins; where the input falls, where it ends. Nothing once all has come.
    next: Option<(usize, u64)>,
    is_over: bool,
}

/// A chunk, and where it goes.
struct Taken {
    number: usize,
    offset: u64,
    chunk: Chunk,
}

/// What one worker has done: pieces by the turns of their chunks, and turns that were out of order.
#[derive(Default)]
struct Done {
    pieces: Vec<(usize, Vec<Piece>)>,
    disorder: Option<usize>,
}

/// What a worker has for itself.
#[derive(Default)]
struct Scratch {
    offsets: Vec<u32>,
    key: Vec<u8>,
    turned: Vec<u8>,
}

impl Copying<'_> {
    fn run(&self, rounds: &Rounds<'_>) -> Result<Copied> {
        let Shared { plan, os, stop, .. } = *self.shared;
        let began_ns = os.now_ns();
        let parts = rounds.parts_to_copy(self.falls);
        lock(&self.turn).next = match self.falls {
            true => self.next_from((self.sources.len(), 0)),
            false => self.next_from((0, 0)),
        };
        let (read_end, worker_ends, write_end) = job_scope(stop, |threads| {
            let reader = spawn(threads, "read", || {
                let mut meter = self.shared.meter("read", &[Stage::Read], began_ns);
                // One ends it.
                let mut longs = PassedLongs::new(&plan.order, plan.head_bytes, self.shared.number);
                let reader = ApartReader {
                    os,
                    plan,
                    pool: &self.shared.chunk_pool,
                    chunks: self.chunks,
                    stop,
                    longs: &mut longs,
                    borders: &rounds.borders,
                    enough: Some(&self.enough),
                };
                let result = guarded(stop, || read_apart(reader, &parts, &mut meter));
                result.map(|totals| (totals, meter.finish(Stage::Read)))
            });
            let workers: Vec<_> = (0..plan.worker_count)
                .map(|number| {
                    let name = format!("copy-{number}");
                    spawn(threads, &name.clone(), move || {
                        let stages = [Stage::Cut, Stage::Reduce];
                        let mut meter = self.shared.meter(&name, &stages, began_ns);
                        let result = guarded(stop, || self.work(&mut meter));
                        result.map(|done| (done, meter.finish(Stage::Cut)))
                    })
                })
                .collect();
            let writer = spawn(threads, "write", || {
                let mut meter = self.shared.meter("write", &[Stage::Write], began_ns);
                let blocks = self.output.blocks;
                let result = guarded(stop, || write(os, rounds.target, blocks, stop, &mut meter));
                result.map(|bytes| (bytes, meter.finish(Stage::Write)))
            });
            let read_end = join(reader);
            let worker_ends: Vec<_> = workers.into_iter().map(join).collect();
            self.output.blocks.close();
            (read_end, worker_ends, join(writer))
        });
        stop.check()?;

        let end_ns = os.now_ns();
        let mut metrics = Metrics::default();
        let mut merge = |meter: Finished| metrics.merge(&meter.until(end_ns));
        let (read, meter): (ReadTotals, _) = read_end.expect("no error was seen");
        merge(meter);
        let (written_bytes, meter) = write_end.expect("no error was seen");
        merge(meter);
        let mut pieces = Vec::new();
        let turn = lock(&self.turn);
        let mut disorder = turn.is_over.then_some(turn.number);
        for end in worker_ends {
            let (done, meter): (Done, _) = end.expect("no error was seen");
            merge(meter);
            pieces.extend(done.pieces);
            disorder = disorder.into_iter().chain(done.disorder).min();
        }
        self.chunks.reopen(stop);
        pieces.retain(|&(number, _)| disorder.is_none_or(|first| number < first));
        pieces.sort_unstable_by_key(|&(number, _)| number);
        Ok(Copied {
            pieces: pieces.into_iter().flat_map(|(_, pieces)| pieces).collect(),
            is_all: disorder.is_none() && turn.next.is_none(),
            read,
            written_bytes,
            metrics,
        })
    }

    /// A worker: chunks to the output, until there are no more or one is out of order.
    fn work(&self, meter: &mut Meter<'_>) -> Result<Done> {
        let mut done = Done::default();
        let mut scratch = Scratch::default();
        while let Some(taken) = self.take(meter) {
            let number = taken.number;
            let pieces = self.copy(&taken, &mut scratch, meter)?;
            // Whoever waits for a chunk in its turn waits for this one's memory.
            drop(taken);
            match pieces {
                Some(pieces) => done.pieces.push((number, pieces)),
                None => {
                    done.disorder = done.disorder.into_iter().chain([number]).min();
                    self.enough.store(true, Atomic::SeqCst);
                    lock(&self.turn).is_over = true;
                }
            }
        }
        self.shared.stop.check()?;
        Ok(done)
    }

    /// The next chunk, if it is in order beside those before it. None is any more once one is not.
    fn take(&self, meter: &mut Meter<'_>) -> Option<Taken> {
        let mut turn = lock(&self.turn);
        loop {
            let chunk = self.chunks.pop();
            meter.lap(Stage::Cut, State::Input);
            let chunk = chunk?;
            if !turn.is_over && !self.follows(&turn, &chunk) {
                turn.is_over = true;
                self.enough.store(true, Atomic::SeqCst);
            }
            if turn.is_over {
                continue;
            }
            let records = &chunk.buffer[chunk.records.clone()];
            let [first, last] = ends(&self.shared.plan.order, records);
            turn.edge.clear();
            turn.edge.extend_from_slice(match self.falls {
                true => first,
                false => last,
            });
            turn.next = self.next_from(match self.falls {
                true => (chunk.input, chunk.offset),
                false => (chunk.input, self.end(&chunk)),
            });
            let taken = Taken {
                number: turn.number,
                offset: turn.offset,
                chunk,
            };
            turn.number += 1;
            turn.offset += taken.chunk.records.len() as u64;
            return Some(taken);
        }
    }

    /// Whether `chunk` is the next one, and all its records may come behind the edge, if they are in order among
    /// themselves. It is not the next one if a record lies between: a long one, or where the input falls one that goes on
    /// behind the chunk that it begins in, which is read when the others of that chunk have been.
    fn follows(&self, turn: &Turn, chunk: &Chunk) -> bool {
        let order = &self.shared.plan.order;
        let from = match self.falls {
            true => self.end(chunk),
            false => chunk.offset,
        };
        if chunk.long.is_some() || turn.next != Some((chunk.input, from)) {
            return false;
        }
        let [first, last] = ends(order, &chunk.buffer[chunk.records.clone()]);
        match self.falls {
            _ if turn.edge.is_empty() => true,
            // Of records with equal keys that which is read first belongs behind the others.
            true => order.compare(&turn.edge, last).is_lt(),
            false => order.compare(&turn.edge, first).is_le(),
        }
    }

    /// Where the records of a chunk end in its input: a newline that was added is not there.
    fn end(&self, chunk: &Chunk) -> u64 {
        let end = chunk.offset + chunk.records.len() as u64;
        end.min(self.sources[chunk.input].meta.bytes)
    }

    /// The place itself, if there is more of its input that way, else where the next input begins, or ends, that is not
    /// empty.
    fn next_from(&self, (input, at): (usize, u64)) -> Option<(usize, u64)> {
        let bytes = |input: usize| self.sources[input].meta.bytes;
        let has_some = |input: &usize| bytes(*input) > 0;
        match self.falls {
            true if at > 0 => Some((input, at)),
            true => {
                let before = (0..input).rev().find(has_some)?;
                Some((before, bytes(before)))
            }
            false if at < bytes(input) => Some((input, at)),
            false => {
                let behind = (input + 1..self.sources.len()).find(has_some)?;
                Some((behind, 0))
            }
        }
    }

    /// Puts the records of a chunk into the output, and says what they are; nothing if they are not in order.
    fn copy(
        &self,
        taken: &Taken,
        scratch: &mut Scratch,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Vec<Piece>>> {
        let chunk = &taken.chunk;
        let records = &chunk.buffer[chunk.records.clone()];
        let mut turned = std::mem::take(&mut scratch.turned);
        if self.falls {
            self.turn_round(records, &mut turned, &mut scratch.offsets);
        }
        let to_copy = if self.falls { &turned[..] } else { records };
        let pieces = self.pieces(to_copy, chunk, scratch);
        if let Some(pieces) = &pieces {
            let mut sum = Fingerprint::default();
            pieces.iter().for_each(|piece| sum.merge(&piece.input));
            count(meter, Stage::Cut, &sum, &sum);
            count(meter, Stage::Reduce, &sum, &sum);
            meter.lap(Stage::Cut, State::Work);
            let mut sink = Sink::new(self.output, taken.offset);
            sink.put_part(to_copy, meter)?;
            sink.finish(meter)?;
        }
        meter.lap(Stage::Reduce, State::Work);
        scratch.turned = turned;
        Ok(pieces)
    }

    /// Puts records that lie back to back into `turned` from the last to the first, those with equal keys as they are.
    fn turn_round(&self, records: &[u8], turned: &mut Vec<u8>, offsets: &mut Vec<u32>) {
        let plan = self.shared.plan;
        let order = &plan.order;
        turned.resize(records.len(), 0);
        let mut to = records.len();
        let mut put = |group: &[u8]| {
            turned[to - group.len()..to].copy_from_slice(group);
            to -= group.len();
        };
        let mut previous: Option<&[u8]> = None;
        let (mut group, mut at) = (0, 0);
        while at < records.len() {
            let batch = cut_out(order, records, at, 0, offsets, plan.batch_records_max);
            for index in 0..batch.len() {
                let record = &records[batch.offsets.range(index)];
                let is_same = previous.is_some_and(|before| order.compare(before, record).is_eq());
                if !is_same {
                    put(&records[group..at]);
                    group = at;
                }
                previous = Some(record);
                at += record.len();
            }
        }
        put(&records[group..]);
    }

    /// What `to_copy` consists of, which are the records of `chunk`; nothing if they are not in order.
    fn pieces(&self, to_copy: &[u8], chunk: &Chunk, scratch: &mut Scratch) -> Option<Vec<Piece>> {
        let Shared { plan, number, .. } = *self.shared;
        let order = &plan.order;
        let Scratch { offsets, key, .. } = scratch;
        let mut proof = Gather::new(order, number);
        let mut ranges: Vec<(usize, Range<usize>, Fingerprint)> = Vec::new();
        let (mut at, mut ordinal) = (0, 0);
        while at < to_copy.len() {
            let batch = cut_out(order, to_copy, at, 0, offsets, plan.batch_records_max);
            let record = |index: usize| &to_copy[batch.offsets.range(index)];
            let mut slot_of = |index: usize| {
                let record = record(index);
                let word = order.word(record, 0);
                self.table.slot(order, record, word, chunk.number, key)
            };
            let last = slot_of(batch.len() - 1);
            let mut from = 0;
            while from < batch.len() {
                let slot = slot_of(from);
                let to = match slot == last {
                    true => batch.len(),
                    false => (from..batch.len()).find(|&index| slot_of(index) != slot)?,
                };
                for index in from..to {
                    proof.next(record(index), ordinal).ok()?;
                    ordinal += 1;
                }
                let range = batch.offsets.range(from).start..batch.offsets.range(to - 1).end;
                let copied = std::mem::take(&mut proof.fingerprint);
                from = to;
                at = range.end;
                match ranges.last_mut() {
                    Some((before, grown, sum)) if *before == slot => {
                        grown.end = range.end;
                        sum.merge(&copied);
                    }
                    _ => ranges.push((slot, range, copied)),
                }
            }
        }
        let start = chunk.records.start;
        let each = ranges.into_iter().map(|(slot, range, copied)| {
            let range = match self.falls {
                true => to_copy.len() - range.end..to_copy.len() - range.start,
                false => range,
            };
            let records = &chunk.buffer[start + range.start..start + range.end];
            Piece {
                slot,
                origin: Origin {
                    input: chunk.input,
                    chunk: chunk.number,
                    from: chunk.offset + range.start as u64,
                    to: chunk.offset + range.end as u64,
                },
                input: self.sum(records, offsets),
                copied,
            }
        });
        Some(each.collect())
    }

    /// What records that lie back to back add up to.
    fn sum(&self, records: &[u8], offsets: &mut Vec<u32>) -> Fingerprint {
        let Shared { plan, number, .. } = *self.shared;
        let (mut sum, mut at) = (Fingerprint::default(), 0);
        while at < records.len() {
            let count = plan.batch_records_max;
            let batch = cut(&plan.order, records, at, 0, offsets, count, number);
            sum.merge(&batch.fingerprint);
            at = batch.offsets.end();
        }
        sum
    }
}

/// The first and the last of records that lie back to back.
fn ends<'r>(order: &Order, records: &'r [u8]) -> [&'r [u8]; 2] {
    let nothing = Begun::default();
    let first = order.first_end(records, &nothing).unwrap_or(records.len());
    let last = order.last_end(&records[..records.len().saturating_sub(1)], &nothing);
    [&records[..first], &records[last..]]
}
