//! Compressed inputs to chunks of what they were: several are decompressed side by side, by threads of their own.
//!
//! The reader gives each thread empty buffers, and takes them back filled; it alone cuts and hands on, so that
//! a compressed input is a lane as the files of one device are, with chunks at fixed offsets of the decompressed bytes,
//! numbered as if all were read one after the other. The largest input is begun first, so that no thread is left alone
//! with it at the end.
//!
//! ```text
//!            empties (a queue for each thread)
//!   reader ------------------------------------> [decompress-0 .. D-1]   each: reads of its input in flight,
//!     ^                                            |                     a codec with its window
//!     +----- filled (one queue for all) <----------+
//! ```
//!
//! The buffers are the job's chunk buffers; each lane has a share of them, so that a lane in the middle of a long record
//! always gets one. What a thread reads into, and what its codec takes, is a holder of the plan.
//!
//! Where chunks must come in the order of inputs, these are begun in that order, and only the lane goes on whose input's
//! turn it is; the others fill the buffers that they may have, and wait. The plan has more buffers then
//! (`Decoders::ahead_count`), because what is decompressed ahead of its turn is all that can be done side by side.
//!
//! ```text
//! decompress-0   input 0  =======> handed on      input 2  ===........
//! decompress-1   input 1  =======|.............   => handed on            ... waits with what fits the buffers
//! ```

use std::ops::Range;

use sortmill_io::codec::{Codec, Decoder, Wrong};
use sortmill_io::sync::atomic::{AtomicUsize, Ordering};
use sortmill_io::sync::{Mutex, lock, spawn};
use sortmill_io::{Buffer, Os};

use super::packed::{Packed, Reads};
use super::{Lane, Run, Source};
use crate::chunks::{Assignment, Chunks, STREAM_CHUNKS_MAX};
use crate::error::{Error, ErrorKind, Result};
use crate::metrics::{Meter, Metrics, Stage, State};
use crate::queue::{Queue, Stop, StopOnPanic, job_scope};
use crate::text;

pub(super) const DOING: &str = "decompressing the input";
/// Reads of each input in flight.
pub(super) const READ_DEPTH: usize = 2;

/// A compressed input that is to be read.
pub(super) struct Compressed {
    /// Its number.
    pub input: usize,
    /// The number of its first chunk.
    pub first_chunk: u64,
    pub codec: Codec,
    /// What was read of a stream to know that it is one: the buffer, and which part of it.
    pub begun: Option<(Buffer, Range<usize>)>,
}

/// What a thread hands to the reader.
enum Filled {
    /// A chunk: lane, which chunk, and the memory.
    Chunk(usize, Assignment, Buffer),
    /// The thread has no input left.
    Ended(usize),
    Failed(Error),
}

impl Run<'_, '_, '_> {
    /// The compressed file that has just been assigned, and those that come directly behind it, if several may be
    /// decompressed at once.
    pub(super) fn compressed_from(&mut self, first: &Assignment) -> Vec<Compressed> {
        let sources = self.reader.sources;
        let compressed = |assignment: &Assignment| {
            let sniffed = sources[assignment.input].codec;
            Some(Compressed {
                input: assignment.input,
                first_chunk: assignment.chunk,
                codec: sniffed?.codec,
                begun: None,
            })
        };
        let mut all: Vec<Compressed> = compressed(first).into_iter().collect();
        let decoders = self.reader.plan.decoders.as_ref();
        if decoders.is_none_or(|decoders| decoders.count < 2) {
            return all;
        }
        let assigned = &mut self.lanes[0].assigned;
        let is_compressed = |input: usize| sources[input].codec.is_some();
        while assigned.next_stream().is_some_and(is_compressed) {
            let next = assigned.assign().expect("it was seen");
            all.extend(compressed(&next));
        }
        all
    }

    /// Reads compressed inputs to their ends, as many at a time as the plan says.
    pub(super) fn read_compressed(&mut self, mut inputs: Vec<Compressed>) -> Result<()> {
        if inputs.is_empty() {
            return Ok(());
        }
        let plan = self.reader.plan;
        let decoders = (plan.decoders.as_ref()).expect("compressed inputs are planned for");
        let sources = self.reader.sources;
        match self.reader.side_by_side {
            true => inputs.sort_by_key(|one| std::cmp::Reverse(sources[one.input].meta.bytes)),
            false => self.in_turn = inputs.iter().map(|one| one.input).collect(),
        }
        let count = decoders.count.min(inputs.len()).max(1);
        let lanes = Lanes::new(count, plan.chunk_count, self.reader.stop);
        let work = Work {
            os: self.reader.os,
            stop: self.reader.stop,
            sources,
            read_bytes: decoders.read_bytes,
            // Those that are not begun leave their share: a stream, which is read alone, may want more than one has.
            memory_bytes: decoders.memory_bytes * decoders.count as u64 / count as u64,
            chunk_bytes: plan.chunk_bytes,
            headroom_bytes: plan.headroom_bytes,
            next: AtomicUsize::new(0),
            inputs: inputs
                .into_iter()
                .map(|one| Mutex::new(Some(one)))
                .collect(),
        };
        self.unpacking = true;
        let (result, metrics) = job_scope(self.reader.stop, |threads| {
            let spawned: Vec<_> = (0..count)
                .map(|number| {
                    let name = format!("decompress-{number}");
                    let meter = self.meter.beside(&name, Stage::Decompress);
                    let (work, empties, filled) = (&work, &lanes.empties[number], &lanes.filled);
                    spawn(threads, &name, move || {
                        let guard = StopOnPanic::new(work.stop);
                        let meter = work.run(number, meter, empties, filled);
                        guard.disarm();
                        meter.finish(Stage::Decompress)
                    })
                })
                .collect();
            let result = self.take_decompressed(&lanes);
            lanes.close();
            let mut metrics = Metrics::default();
            for thread in spawned {
                let finished = thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                metrics.merge(&finished.until(0));
            }
            (result, metrics)
        });
        let all = metrics.stage(Stage::Decompress);
        self.totals.device_bytes += all.bytes_in;
        self.totals.packed_bytes += all.bytes_in;
        self.totals.unpacked_bytes += all.bytes_out;
        self.decompressed.then(&metrics);
        self.unpacking = false;
        result
    }

    /// Gives buffers out, takes chunks in and hands them on, until all threads have come to the end.
    fn take_decompressed(&mut self, given: &Lanes) -> Result<()> {
        let plan = self.reader.plan;
        let chunk_bytes = plan.chunk_bytes as u64;
        let count = given.empties.len();
        let mut share = ((plan.chunk_count - 1) / count).max(1);
        if !self.in_turn.is_empty() && count > 1 {
            // That whose turn it is goes on with what the workers need; the others may have the rest.
            let needed = 2 * plan.worker_count + READ_DEPTH;
            share = share.max(plan.chunk_count.saturating_sub(needed) / (count - 1));
        }
        let none = || Lane::new(Chunks::new(&[], chunk_bytes), share);
        let files = std::mem::replace(&mut self.lanes, (0..count).map(|_| none()).collect());
        while self.lanes.iter().any(|lane| !lane.ended) {
            self.reader.stop.check()?;
            self.give_empties(given)?;
            self.meter.lap(Stage::Read, State::Work);
            let filled = given.filled.pop();
            self.meter.lap(Stage::Read, State::Input);
            match filled.ok_or_else(|| self.reader.stop.error())? {
                Filled::Failed(error) => return Err(error),
                Filled::Ended(number) => {
                    self.lanes[number].ended = true;
                    self.lanes[number].in_flight = 0;
                    // Those that it was given after it had looked.
                    while given.empties[number].try_pop().is_some() {}
                }
                Filled::Chunk(number, assignment, buffer) => {
                    self.lanes[number].in_flight -= 1;
                    self.lanes[number]
                        .begun
                        .push_back((assignment, Some(buffer)));
                }
            }
            self.hand_on_landed()?;
        }
        self.lanes = files;
        Ok(())
    }

    /// Gives empty buffers to the threads, and waits for one if none of them has any.
    fn give_empties(&mut self, given: &Lanes) -> Result<()> {
        loop {
            let has_room =
                |lane: &Lane| !lane.ended && lane.in_flight + lane.begun.len() < lane.begun_max;
            let lanes = self.lanes.iter().enumerate();
            let lanes = lanes.filter(|(_, lane)| has_room(lane));
            let Some((number, _)) = lanes.min_by_key(|(_, lane)| lane.in_flight) else {
                return Ok(());
            };
            let nobody_has_one = self.lanes.iter().all(|lane| lane.in_flight == 0);
            let Some(buffer) = self.take_buffer(nobody_has_one)? else {
                return Ok(());
            };
            let pushed = given.empties[number].push(buffer);
            pushed.map_err(|_| self.reader.stop.error())?;
            self.lanes[number].in_flight += 1;
        }
    }
}

/// The queues between the reader and the threads.
struct Lanes {
    empties: Vec<Queue<Buffer>>,
    filled: Queue<Filled>,
}

impl Lanes {
    fn new(count: usize, chunk_count: usize, stop: &Stop) -> Self {
        let lanes = Self {
            empties: (0..count).map(|_| Queue::new(chunk_count)).collect(),
            // As many chunks as there are, and the end of each thread.
            filled: Queue::new(chunk_count + count),
        };
        let (empties, filled) = (lanes.empties.clone(), lanes.filled.clone());
        stop.on_stop(move || {
            empties.iter().for_each(Queue::abort);
            filled.abort();
        });
        lanes
    }

    /// Ends every thread, whatever it waits for.
    fn close(&self) {
        self.empties.iter().for_each(Queue::abort);
        self.filled.abort();
    }
}

/// What the threads share.
struct Work<'a> {
    os: &'a dyn Os,
    stop: &'a Stop,
    sources: &'a [Source],
    read_bytes: usize,
    /// The most that each codec may take.
    memory_bytes: u64,
    chunk_bytes: usize,
    headroom_bytes: usize,
    /// The input to be begun next.
    next: AtomicUsize,
    inputs: Vec<Mutex<Option<Compressed>>>,
}

impl Work<'_> {
    /// A thread, until there is no input left or the job ends.
    fn run<'m>(
        &self,
        number: usize,
        mut meter: Meter<'m>,
        empties: &Queue<Buffer>,
        filled: &Queue<Filled>,
    ) -> Meter<'m> {
        let mut reads = match Reads::new(self.read_bytes) {
            Ok(reads) => reads,
            Err(error) => {
                let _ = filled.push(Filled::Failed(error));
                return meter;
            }
        };
        while let Some(input) = self.inputs.get(self.next.fetch_add(1, Ordering::SeqCst)) {
            let one = lock(input).take().expect("each is taken once");
            let ended = self.decompress(number, one, &mut reads, &mut meter, empties, filled);
            match ended {
                Ok(true) => {}
                Ok(false) => return meter,
                Err(error) => {
                    let _ = filled.push(Filled::Failed(error));
                    return meter;
                }
            }
        }
        let _ = filled.push(Filled::Ended(number));
        meter
    }

    /// Decompresses one input; `false` when the job is ending.
    fn decompress(
        &self,
        number: usize,
        one: Compressed,
        reads: &mut Reads,
        meter: &mut Meter<'_>,
        empties: &Queue<Buffer>,
        filled: &Queue<Filled>,
    ) -> Result<bool> {
        let source = &self.sources[one.input];
        let (limit, codec) = (self.memory_bytes, one.codec);
        let mut packed = Packed::new(self.os, source, self.stop, reads, one.begun, meter)?;
        let told = |wrong, at| told(wrong, codec, source, at, limit);
        let mut decoder =
            Decoder::new(codec, &mut packed, limit).map_err(|wrong| told(wrong, 0))?;
        let (mut chunk, mut offset) = (one.first_chunk, 0);
        loop {
            decoder.reader().meter.lap(Stage::Decompress, State::Work);
            let buffer = empties.pop();
            decoder.reader().meter.lap(Stage::Decompress, State::Memory);
            let Some(mut buffer) = buffer else {
                return Ok(false);
            };
            let room = &mut buffer[self.headroom_bytes..self.headroom_bytes + self.chunk_bytes];
            let bytes = fill(&mut decoder, room, told)?;
            let last = bytes < self.chunk_bytes;
            let assignment = Assignment {
                chunk,
                input: one.input,
                offset,
                bytes: bytes as u64,
                last,
            };
            assert!(
                chunk - one.first_chunk < STREAM_CHUNKS_MAX,
                "a stream has that many chunks at most"
            );
            chunk += 1;
            offset += bytes as u64;
            decoder.reader().meter.stage(Stage::Decompress).bytes_out += bytes as u64;
            if filled
                .push(Filled::Chunk(number, assignment, buffer))
                .is_err()
            {
                return Ok(false);
            }
            if last {
                return Ok(true);
            }
        }
    }
}

/// Fills as much of `room` as there is left; less than all only at the end.
///
/// # Errors
/// What failed in reading, else what `told` makes of what is wrong with the byte it is at.
pub(super) fn fill(
    decoder: &mut Decoder<&mut Packed<'_, '_, '_>>,
    room: &mut [u8],
    told: impl Fn(Wrong, u64) -> Error,
) -> Result<usize> {
    let mut filled = 0;
    while filled < room.len() {
        match decoder.read(&mut room[filled..]) {
            Ok(0) => break,
            Ok(made) => filled += made,
            Err(wrong) => {
                let at = decoder.position();
                let failed = decoder.reader().failed.take();
                return Err(failed.unwrap_or_else(|| told(wrong, at)));
            }
        }
    }
    Ok(filled)
}

/// What is wrong with an input, in words.
pub(super) fn told(
    wrong: Wrong,
    codec: Codec,
    source: &Source,
    at: u64,
    limit_bytes: u64,
) -> Error {
    let (name, member) = (codec.name(), codec.member());
    let of = |kind, cause: String| {
        Error::new(kind, DOING, cause)
            .at(&source.file.path)
            .offset(at)
    };
    let input = |cause| of(ErrorKind::Input, cause);
    let as_it_is = "Bytes that only look compressed are read as they are with --no-decompress.";
    match wrong {
        Wrong::Read(error) => Error::io(DOING, &source.file.path, &error).offset(at),
        Wrong::CutOff => input(format!("it is cut off: it ends within a {member}")),
        Wrong::Corrupt(what) => {
            input(format!("it is damaged: this is no {member} ({what})")).hint(as_it_is)
        }
        Wrong::Trailing => {
            input(format!("behind a {member} follows something that is none")).hint(as_it_is)
        }
        Wrong::Memory(needed) => {
            let needed = needed.map_or_else(|| "more memory".to_owned(), text::bytes);
            let have = text::bytes(limit_bytes);
            let cause = format!(
                "this {member} needs {needed} to be decompressed, and {have} are set apart for it"
            );
            of(ErrorKind::Memory, cause).hint(format!(
                "Give it more with --memory, or have it decompressed beforehand: {name} -dc FILE | sortmill sort."
            ))
        }
        Wrong::NotBuilt => of(
            ErrorKind::Usage,
            format!("this sortmill was built without {name}"),
        )
        .hint(format!(
            "Have it decompressed beforehand: {name} -dc FILE | sortmill sort."
        )),
    }
}
