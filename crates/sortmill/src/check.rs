//! Is it in order, and what does it add up to: reads inputs, or the output just written, once again.
//!
//! In come inputs of any format and key that sorting knows, out goes a [`Checked`]. The engine's own reader
//! cuts them into chunks. Each worker looks at one chunk by itself, then waits for its turn to join what it
//! saw to what came before:
//!
//! ```text
//! reader (the calling thread) ──> queue ──> worker 0: look at chunk 7, wait for turn 7, join
//!        ^                            └───> worker 1: look at chunk 8, wait for turn 8, join
//!        └───────────── pool <──────────────────┘
//! ```
//!
//! A worker keeps its chunk until its turn, so results never lie in a list and only the last key of the row
//! is ever copied. Chunks are of one size, so a worker waits for the difference between two of them at most,
//! while the reader goes on. All memory is the pool's, and what a record longer than a chunk takes.

mod parts;
mod row;
mod summaries;
mod verify;

use std::path::PathBuf;
use std::sync::Arc;

use sortmill_io::sync::{Mutex, lock, spawn};
use sortmill_io::{Kind, Os, Pool};

use crate::bad;
use crate::batch::Chunk;
use crate::columns::Columns;
use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::gen_records::{KEY_BYTES, RECORD_BYTES};
use crate::job::{Input, Job, Output, Tuning};
use crate::line_keys::LineOrder;
use crate::long::{Longs, PassedLongs, WholeLongs};
use crate::metrics::{Meter, Stage};
use crate::order::{Format, KeyPart, Order};
use crate::places::Places;
use crate::plan::{Decoders, Inputs, Plan};
use crate::progress::{Phase, Progress};
use crate::queue::{Queue, Stop, StopOnPanic, job_scope};
use crate::run::{look_up_names, open_inputs};
use crate::stage::read::{Reader, Source, read};
use crate::summary::Summary;

use row::{Row, Seen};

pub use parts::{CheckedParts, check_parts, verify_parts};
pub use summaries::{merge, write_summary};
pub use verify::verify;

/// What is to be checked. Only `inputs` and `format` have no sensible default.
#[derive(Clone, Debug)]
pub struct Check {
    /// What is read, in order, as if it were one.
    pub inputs: Vec<Input>,
    /// How records lie in them.
    pub format: Format,
    /// The key, most significant part first; none means the whole record.
    pub keys: Vec<KeyPart>,
    /// How lines lie in them and what decides their order; `None` for whole lines, and for any other format.
    pub line_order: Option<LineOrder>,
    /// How records are made of columns and which decide, as in a job; `None` for any other key.
    pub columns: Option<Columns>,
    /// A record with the same key as the one before is out of order. What a line order says of that is asked too.
    pub unique: bool,
    /// Read inputs whose first bytes say that they are compressed as what they were before.
    pub decompress: bool,
    /// How many lines of each input are no records: its first ones.
    pub header_lines: u64,
    /// Threads that look at records, at most [`THREADS_MAX`]; `None` is one per core.
    pub threads: Option<usize>,
    /// What the fingerprint is keyed by.
    pub fingerprint_key: u64,
    /// Bytes of a chunk, a multiple of 4 KiB, for tests; `None` is 4 MiB.
    pub chunk_bytes: Option<usize>,
    /// Where the check tells how far it is.
    pub progress: Option<Arc<Progress>>,
    /// Ignore what is appended to an input after the start.
    pub as_of_start: bool,
    /// End at the first record that is out of order: what is told of the records is then of those up to it, and of
    /// some behind it.
    pub first_only: bool,
}

impl Check {
    /// Checks whether `inputs` are in the order of their whole records, with defaults for all else.
    #[must_use]
    pub fn new(inputs: Vec<Input>, format: Format) -> Self {
        Self {
            inputs,
            format,
            keys: Vec::new(),
            line_order: None,
            columns: None,
            unique: false,
            decompress: false,
            header_lines: 0,
            threads: None,
            fingerprint_key: 0,
            chunk_bytes: None,
            progress: None,
            as_of_start: false,
            first_only: false,
        }
    }

    /// The same with columns whose names have been looked up.
    fn with_columns(&self, columns: Columns) -> Result<Self> {
        let header_lines = columns.header_records(self.header_lines)?;
        Ok(Self {
            columns: Some(columns),
            header_lines,
            ..self.clone()
        })
    }
}

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked {
    /// How many records, how many bytes they have (with the newline that the last line may lack), and
    /// their keyed sum.
    pub fingerprint: Fingerprint,
    /// The sum modulo 2^128 of the CRC-32 (zlib) of each whole record, which does not depend on order.
    pub checksum: u128,
    /// Records with the same key as the one before.
    pub duplicates: u64,
    /// Records with a lesser key than the one before, or with the same one where there may be one only.
    pub unordered: u64,
    /// The first of those.
    pub first_unordered: Option<Unordered>,
    /// The same as the benchmark's validator tells it, if the records have its format and key.
    pub summary: Option<Summary>,
}

/// Where the order breaks: a record whose key is less than that of the record before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unordered {
    /// Its number over all inputs, from 0.
    pub record: u64,
    /// The input it lies in; `-` is standard input.
    pub path: PathBuf,
    /// Where it begins there, in bytes; of a compressed input, in the bytes that it was made of.
    pub offset: u64,
    /// The whole record, with what ends it.
    pub text: Vec<u8>,
}

/// The most threads: each holds two buffers, and fewer keep up with any device.
pub const THREADS_MAX: usize = 64;

/// Chunks between the device and the workers.
const CHUNKS_AHEAD: usize = 8;
/// The longest record may take this part of the memory that is free: it is held up to four times, while it
/// is put together (twice, as a vector grows), as a record, and as the key before the next.
const RECORD_SHARE: u64 = 16;
/// For [`Plan::new`], which chooses sizes that checking does not use: enough that it never refuses.
const PLAN_BYTES: u64 = 16 << 30;

/// Reads all inputs once and says whether they are in order and what they add up to.
///
/// Inputs without a record are in order. Uses `8 + 2 * threads` buffers of 4 MiB; a record may take a
/// sixteenth of the machine's free memory. `stop` ends the check early and belongs to it alone.
///
/// # Errors
/// Those of sorting the same inputs: [`ErrorKind::Input`] for one that is missing, unreadable or ends in
/// the middle of a record, [`ErrorKind::Changed`], [`ErrorKind::Usage`] for a key that does not suit.
/// Records out of order are no error.
pub fn check(job: &Check, os: &dyn Os, stop: &Stop) -> Result<Checked> {
    if job.header_lines > 0 && !job.format.has_delimiter() {
        let cause = "records of this format have no lines in front of them";
        return Err(Error::new(
            ErrorKind::Usage,
            "passing over header lines",
            cause,
        ));
    }
    let mut sources = open_inputs(os, &job.inputs, job.decompress)?;
    let found = look_up_names(job.columns.as_ref(), job.decompress, &mut sources, os, stop)?;
    let found = found.map(|columns| job.with_columns(columns)).transpose()?;
    let job = found.as_ref().unwrap_or(job);
    let plan = plan(job, os)?;
    let pool = Pool::new(plan.chunk_count, plan.chunk_buffer_bytes())
        .map_err(|error| Error::new(ErrorKind::Memory, "mapping buffers", error.to_string()))?;
    stop.on_stop({
        let pool = pool.clone();
        move || pool.close()
    });
    let progress = job.progress.as_deref();
    if let Some(progress) = progress {
        let bytes = |source: &Source| match source.meta.kind {
            Kind::Regular => Some(source.meta.bytes),
            Kind::Directory | Kind::Stream => None,
        };
        progress.expect(Phase::Check, sources.iter().map(bytes).sum(), Some(0));
        progress.enter(Phase::Check, os);
    }
    let row = Walk {
        os,
        stop,
        plan: &plan,
        sources: &sources,
        pool: &pool,
        fingerprint_key: job.fingerprint_key,
        checksum: !job.first_only,
        first_only: job.first_only,
        as_of_start: job.as_of_start,
        // The way out that sorting offers is not one of this command's.
        told: &Error::without_hint,
        head_bytes: None,
        header_lines: job.header_lines,
        header: job.columns.as_ref().and_then(Columns::header),
    }
    .run(
        Row::new(is_the_benchmarks(&plan.order)),
        &mut Meter::start(os, &[Stage::Read]).telling(progress),
    )?;
    if let Some(progress) = progress {
        progress.enter(Phase::Done, os);
    }
    Ok(Checked {
        fingerprint: row.fingerprint,
        checksum: row.checksum,
        duplicates: row.duplicates,
        unordered: row.unordered,
        first_unordered: row.first_unordered.map(|found| Unordered {
            record: found.record,
            path: sources[found.input].file.path.clone(),
            offset: found.offset,
            text: found.text,
        }),
        summary: row.summary,
    })
}

/// Whether `order` is that of the sort benchmark: records of 100 bytes, the first 10 of which are the key.
#[must_use]
pub fn is_the_benchmarks(order: &Order) -> bool {
    let key = [KeyPart::plain(0, KEY_BYTES as u32)];
    Order::new(Format::Fixed(RECORD_BYTES as u32), &key).is_ok_and(|benchmark| &benchmark == order)
}

/// The numbers of a check: those that the reader asks a sort's plan for.
fn plan(check: &Check, os: &dyn Os) -> Result<Plan> {
    let mut machine = os.machine();
    machine.cores = machine.cores.min(THREADS_MAX);
    let mut job = Job::new(check.inputs.clone(), Output::Stdout, check.format);
    job.keys.clone_from(&check.keys);
    job.line_order.clone_from(&check.line_order);
    job.columns.clone_from(&check.columns);
    job.unique = check.unique;
    job.threads = check.threads.map(|threads| threads.clamp(1, THREADS_MAX));
    job.memory_bytes = Some(PLAN_BYTES);
    job.tuning = Tuning {
        chunk_bytes: check.chunk_bytes,
        ..Tuning::default()
    };
    let mut plan = Plan::new(&job, &Inputs::default(), &machine)?;
    // Each worker has one chunk in hand and one on its way while the device has its fill.
    plan.chunk_count = CHUNKS_AHEAD + 2 * plan.worker_count;
    let record_bytes_max = machine.memory_bytes_available / RECORD_SHARE;
    plan.record_bytes_max = plan.chunk_bytes.max(record_bytes_max as usize);
    // One input after the other, and of each what a record may take.
    plan.decoders = check.decompress.then_some(Decoders {
        count: 1,
        read_bytes: 1 << 20,
        memory_bytes: record_bytes_max,
        of_streams: true,
        ahead_count: 0,
    });
    Ok(plan)
}

/// One reading of a row of inputs.
struct Walk<'a> {
    os: &'a dyn Os,
    stop: &'a Stop,
    plan: &'a Plan,
    sources: &'a [Source],
    pool: &'a Pool,
    fingerprint_key: u64,
    /// Whether the CRC-32 are wanted.
    checksum: bool,
    /// Whether nothing matters behind the first record that is out of order.
    first_only: bool,
    /// Whether inputs may grow meanwhile.
    as_of_start: bool,
    /// Puts the reader's errors into the words of this reading.
    told: &'a (dyn Fn(Error) -> Error + Sync),
    /// Bytes of a long record's key that are compared, where records need not be whole.
    head_bytes: Option<usize>,
    /// Lines of each input that are no records.
    header_lines: u64,
    /// What they must be, if that is known.
    header: Option<&'a [u8]>,
}

/// What the workers of one reading share.
struct Work<'a> {
    plan: &'a Plan,
    sources: &'a [Source],
    stop: &'a Stop,
    told: &'a (dyn Fn(Error) -> Error + Sync),
    fingerprint_key: u64,
    checksum: bool,
    /// Stopped by the first record that is out of order, if nothing matters behind it.
    stop_at_first: Option<&'a Stop>,
    chunks: Queue<Chunk>,
    /// How many chunks were taken out. Locked while one is taken, so that turns are in the order of chunks.
    taken: Mutex<usize>,
    turns: Places,
    row: Mutex<Row>,
}

impl Walk<'_> {
    /// Reads everything, which comes behind what is in `row`, by the watch of `meter`. All threads have ended when it
    /// returns.
    fn run(&self, row: Row, meter: &mut Meter<'_>) -> Result<Row> {
        let Self { os, stop, plan, .. } = *self;
        let mut longs: Box<dyn Longs> = match self.head_bytes {
            None => Box::new(WholeLongs::new(plan.record_bytes_max, stop)?),
            Some(head_bytes) => {
                let key = self.fingerprint_key;
                Box::new(PassedLongs::new(&plan.order, head_bytes, key))
            }
        };
        let work = Work {
            plan,
            sources: self.sources,
            stop,
            told: self.told,
            fingerprint_key: self.fingerprint_key,
            checksum: self.checksum,
            stop_at_first: self.first_only.then_some(stop),
            chunks: Queue::new(plan.chunk_count),
            taken: Mutex::new(0),
            turns: Places::new(0, 0, Vec::new()),
            row: Mutex::new(row),
        };
        stop.on_stop({
            let (chunks, turns) = (work.chunks.clone(), work.turns.clone());
            move || {
                chunks.abort();
                turns.abort();
            }
        });
        job_scope(stop, |threads| {
            let workers: Vec<_> = (0..plan.worker_count)
                .map(|number| {
                    let work = &work;
                    spawn(threads, &format!("check-{number}"), move || {
                        let guard = StopOnPanic::new(stop);
                        work.run();
                        guard.disarm();
                    })
                })
                .collect();
            let reader = Reader {
                share: None,
                os,
                plan,
                sources: self.sources,
                pool: self.pool,
                chunks: &work.chunks,
                stop,
                side_by_side: false,
                as_of_start: self.as_of_start,
                allowed: &bad::Allowed::new(0),
                header_lines: self.header_lines,
                header: self.header,
                counts_lines: self.plan.order.has_columns(),
                watcher: None,
                longs: &mut *longs,
            };
            match read(reader, meter) {
                Ok(totals) => lock(&work.row).header = totals.header.bytes,
                Err(error) => stop.fail((self.told)(error)),
            }
            for worker in workers {
                if let Err(panic) = worker.join() {
                    std::panic::resume_unwind(panic);
                }
            }
        });
        let row = std::mem::take(&mut *lock(&work.row));
        if !(self.first_only && row.first_unordered.is_some()) {
            stop.check()?;
        }
        Ok(row)
    }
}

impl Work<'_> {
    /// A worker, until there are no more chunks or the job ends.
    fn run(&self) {
        while let Some((turn, chunk)) = self.take() {
            let order = &self.plan.order;
            let bad = match order.has_columns() {
                true => bad::in_chunk(order, &chunk),
                false => None,
            };
            if let Some(bad) = bad {
                // What lies before it has been looked at by then.
                if self.turns.wait_turn(turn) {
                    let path = &self.sources[chunk.input].file.path;
                    self.stop.fail((self.told)(bad.at(path)));
                }
                return;
            }
            let seen = Seen::look(order, &chunk, self.fingerprint_key, self.checksum);
            if !self.turns.wait_turn(turn) {
                return;
            }
            let mut row = lock(&self.row);
            row.then(order, chunk.input, &seen);
            let found = row.first_unordered.is_some();
            drop(row);
            if let (Some(stop), true) = (self.stop_at_first, found) {
                stop.interrupt();
                return;
            }
            self.turns.end_turn();
        }
    }

    /// The next chunk and its turn. Chunk numbers would not do: those in the middle of a long record come
    /// with a later one.
    fn take(&self) -> Option<(usize, Chunk)> {
        let mut taken = lock(&self.taken);
        let chunk = self.chunks.pop()?;
        let turn = *taken;
        *taken += 1;
        Some((turn, chunk))
    }
}
