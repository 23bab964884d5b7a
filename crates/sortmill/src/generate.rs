//! Makes test data, into a file, several files or a stream, at the speed of the device.
//!
//! In comes a [`Generate`], out come files with whole names or nothing, and a [`GenReport`]. The data set
//! is cut into numbered pieces of one buffer each ([`layout`]); a piece's records and place follow from its
//! number, so workers fill pieces in any order and the writer alone touches files:
//!
//! ```text
//! worker 0 ─┐  take a buffer, then the next number; fill; sum up
//! worker 1 ─┼──> queue ──> writer (the calling thread) ──> ring, DEPTH writes in flight  (files)
//! worker n ─┘                                         └──> in the order of numbers       (streams)
//!     ^                                                     │
//!     └───────────────────────── pool <─────────────────────┘
//! ```
//!
//! All memory but the layout's is the pool's. A buffer is whole in 4 KiB, so that every direct write but the
//! last of a file is aligned by itself, and in records of 100 bytes, so that those never lie across two
//! buffers; others may, and each of the two workers writes its part.
//!
//! What the records are is said by a [`Data`](data::Data), of which there is one for each kind.

pub mod clicks;
pub mod csv;
pub mod data;
mod digits;
pub mod graph;
pub mod json;
pub mod keys;
pub mod kv;
mod layout;
pub mod numbers;
mod permutation;
mod times;
pub mod words;
pub mod zipf;

use std::path::{Path, PathBuf};

use sortmill_io::sync::atomic::{AtomicU64, Ordering};
use sortmill_io::sync::{self, Arc};
use sortmill_io::{Buffer, Done, File, Op, OpKind, Os, Pool, Ring, align_up};

use crate::commit::{Target, Uncommitted, check_space};
use crate::error::{Error, ErrorKind, Result};
use crate::gen_records::RECORD_BYTES;
use crate::progress::{Phase, Progress};
use crate::queue::{Queue, Stop, StopOnPanic, job_scope};
use data::Data;
use layout::{Layout, Piece, Sizes};

/// What is to be generated, and where to.
#[derive(Clone)]
pub struct Generate<'a> {
    /// What the records are.
    pub data: &'a dyn Data,
    /// How much of them, at most 2^63 bytes in all.
    pub amount: Amount,
    /// How many threads fill buffers, 1 to [`THREADS_MAX`].
    pub threads: usize,
    /// Where the records go.
    pub out: Out,
    /// Whether to sum up the records' CRC-32. They must all be of one size.
    pub checksum: bool,
    /// Where it is told how far this is.
    pub progress: Option<std::sync::Arc<Progress>>,
}

/// How much is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many records.
    Records(u64),
    /// As many whole records, from the first on, as so many bytes have room for.
    Bytes(u64),
}

/// Where records go.
#[derive(Clone, Debug)]
pub enum Out {
    /// A file, which appears whole or not at all; or a device or pipe, which is written in place.
    File(PathBuf),
    /// Standard output.
    Stdout,
    /// The files `part-00000` and on in a folder, which is made if it is missing. Their concatenation is
    /// what one file would be, and their numbers of records differ by at most one.
    Directory {
        /// The folder.
        path: PathBuf,
        /// How many files, 1 to [`FILES_MAX`].
        files: u64,
    },
}

/// What was generated.
#[derive(Clone, Copy, Debug)]
pub struct GenReport {
    /// Records written.
    pub records: u64,
    /// Bytes written.
    pub bytes: u64,
    /// The sum of the records' CRC-32, if it was asked for.
    pub checksum: Option<u128>,
    /// Time from the start until the output had its name, in nanoseconds.
    pub wall_ns: u64,
}

/// The most threads: each holds two buffers, and fewer fill any device.
pub const THREADS_MAX: usize = 64;

/// The most files: their names have five digits.
pub const FILES_MAX: u64 = 100_000;

/// The smallest number of records of 100 bytes that are whole in 4 KiB, 102,400 bytes.
const RECORDS_PER_ALIGNED: usize = 1024;
/// Small under a test's scheduler, so that a few records fill more buffers than the pool has.
const BUFFER_RECORDS: usize = if cfg!(feature = "shuttle") { 1 } else { 40 } * RECORDS_PER_ALIGNED;
const BUFFER_BYTES: usize = BUFFER_RECORDS * RECORD_BYTES;

/// Writes in flight. Eight of 4 MB were 10 % faster than sixteen of 1 MB.
const DEPTH: usize = 8;

/// Generates the records that `job` describes.
///
/// A file gets its name when all is on the device; until then what was there before stays, and after an
/// error nothing new is left. Several files get their names one after another at the end. Uses
/// `8 + 2 * threads` buffers of 4,096,000 bytes, and 8 bytes for each 1,024 records whose sizes differ.
/// `stop` ends the job early and belongs to this job alone.
///
/// # Errors
/// The first that occurs, after all threads have ended: a request that makes no sense, too little space
/// (checked before the start), or the system's. A pipe without a reader is [`ErrorKind::Io`].
pub fn generate(job: &Generate<'_>, os: &dyn Os, stop: &Stop) -> Result<GenReport> {
    let started_ns = os.now_ns();
    check_numbers(job)?;
    job.enter(Phase::Prepare, os);
    let done = match &job.out {
        Out::Stdout => {
            let file = os
                .stdout()
                .map_err(|error| writing(Path::new("-"), &error))?;
            to_stream(job, os, stop, &file)?
        }
        Out::File(path) => match Target::find(os, path)? {
            Some(target) => to_files(job, os, stop, Uncommitted::new(os, os.random()), &[target])?,
            None => {
                let file = os
                    .open_stream_for_write(path, &|| stop.is_stopped())
                    .map_err(|error| writing(path, &error))?;
                to_stream(job, os, stop, &file)?
            }
        },
        Out::Directory { path, files } => {
            let mut output = Uncommitted::new(os, os.random());
            let targets = part_targets(os, &output.folder(path)?, *files)?;
            to_files(job, os, stop, output, &targets)?
        }
    };
    job.enter(Phase::Done, os);
    Ok(GenReport {
        records: done.records,
        bytes: done.bytes,
        checksum: job.checksum.then_some(done.checksum),
        wall_ns: os.now_ns() - started_ns,
    })
}

/// What was written.
struct Written {
    records: u64,
    bytes: u64,
    /// 0 if it is not wanted.
    checksum: u128,
}

fn check_numbers(job: &Generate<'_>) -> Result<()> {
    let refuse = |cause: String| Err(Error::new(ErrorKind::Usage, "generating records", cause));
    if !(1..=THREADS_MAX).contains(&job.threads) {
        return refuse(format!(
            "there can be 1 to {THREADS_MAX} threads, not {}",
            job.threads
        ));
    }
    if job.checksum && job.data.record_bytes_fixed().is_none() {
        return refuse("a checksum is taken of records of one size".into());
    }
    match job.out {
        Out::Directory { files, .. } if !(1..=FILES_MAX).contains(&files) => {
            refuse(format!("there can be 1 to {FILES_MAX} files, not {files}"))
        }
        _ => Ok(()),
    }
}

/// The files of a set in the folder `path`. A set with fewer files than one that is already there would
/// look like part of it, so that is refused.
fn part_targets(os: &dyn Os, path: &Path, file_count: u64) -> Result<Vec<Target>> {
    let names = os
        .list_dir(path)
        .map_err(|error| Error::io("listing the output folder", path, &error))?;
    for name in names {
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix("part-"))
            .and_then(|digits| digits.parse::<u64>().ok());
        if number.is_some_and(|number| number >= file_count) {
            let cause = format!(
                "it holds {}, which is not among the {file_count} files to be made",
                name.display()
            );
            return Err(Error::new(ErrorKind::Usage, "making a set of files", cause)
                .at(path)
                .hint("Remove the older set, or choose another folder."));
        }
    }
    (0..file_count)
        .map(|number| {
            let path = path.join(format!("part-{number:05}"));
            let not_regular = || {
                Error::new(
                    ErrorKind::Usage,
                    "making a set of files",
                    "it is no regular file",
                )
            };
            Target::find(os, &path)?.ok_or_else(|| not_regular().at(&path))
        })
        .collect()
}

fn writing(path: &Path, error: &std::io::Error) -> Error {
    Error::writing("writing the output", path, error)
}

impl Generate<'_> {
    /// Tells whoever watches what comes next.
    fn enter(&self, phase: Phase, os: &dyn Os) {
        if let Some(progress) = &self.progress {
            progress.enter(phase, os);
        }
    }

    /// Tells of so many bytes written.
    fn wrote(&self, bytes: usize) {
        if let Some(progress) = &self.progress {
            progress.wrote(bytes as u64);
        }
    }

    /// What the output takes at least.
    fn bytes_least(&self) -> u64 {
        match self.amount {
            Amount::Records(count) => count,
            Amount::Bytes(bytes) => bytes.saturating_sub(self.data.record_bytes_max() as u64),
        }
    }
}

fn layout<'a>(job: &Generate<'a>, file_count: u64, stop: &Stop) -> Result<Layout<'a>> {
    let sizes = Sizes::measure(job.data, job.amount, job.threads, stop)?;
    Ok(Layout::new(sizes, file_count, BUFFER_BYTES))
}

// Filling buffers.

/// A filled piece on its way to the writer, zeroed from its last byte to the next 4 KiB.
struct Filled {
    number: u64,
    piece: Piece,
    buffer: Buffer,
}

/// Runs the workers around `write`, which takes each piece of `layout` from the queue once. Returns the
/// checksum, or 0 if it is not wanted.
fn with_workers(
    job: &Generate<'_>,
    os: &dyn Os,
    stop: &Stop,
    layout: &Layout<'_>,
    write: impl FnOnce(&Queue<Filled>) -> Result<()>,
) -> Result<Written> {
    stop.check()?;
    if let Some(progress) = &job.progress {
        progress.expect(Phase::Generate, Some(0), Some(layout.bytes()));
    }
    job.enter(Phase::Generate, os);
    let piece_count = layout.piece_count();
    let threads = job
        .threads
        .min(usize::try_from(piece_count).unwrap_or(usize::MAX));
    // Each worker has one buffer in hand and one on its way while the device has its fill.
    let pool = Pool::new(DEPTH + 2 * threads, BUFFER_BYTES)
        .map_err(|error| Error::new(ErrorKind::Memory, "mapping buffers", error.to_string()))?;
    // With room for every buffer there is, a push never waits.
    let queue = Queue::new(pool.buffer_count());
    stop.on_stop({
        let (pool, queue) = (pool.clone(), queue.clone());
        move || {
            pool.close();
            queue.abort();
        }
    });
    let next = AtomicU64::new(0);
    let checksum = job_scope(stop, |scope| {
        let workers: Vec<_> = (0..threads)
            .map(|number| {
                let (pool, queue, next) = (&pool, &queue, &next);
                sync::spawn(scope, &format!("generate-{number}"), move || {
                    let guard = StopOnPanic::new(stop);
                    let checksum = fill_pieces(job, layout, pool, queue, next);
                    guard.disarm();
                    checksum
                })
            })
            .collect();
        if let Err(error) = write(&queue) {
            stop.fail(error);
        }
        let join = |worker: sync::ScopedJoinHandle<'_, u128>| match worker.join() {
            Ok(checksum) => checksum,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        workers.into_iter().map(join).sum()
    });
    stop.check()?;
    Ok(Written {
        records: layout.count(),
        bytes: layout.bytes(),
        checksum,
    })
}

/// What each worker does until no piece is left. Returns the checksum of what it filled.
fn fill_pieces(
    job: &Generate<'_>,
    layout: &Layout<'_>,
    pool: &Pool,
    queue: &Queue<Filled>,
    next: &AtomicU64,
) -> u128 {
    let mut sum = 0;
    // The buffer comes before the number. A stream's writer holds later pieces until the next one comes,
    // so whoever has that number must not be waiting for one of the buffers that are held.
    while let Some(mut buffer) = pool.take() {
        let number = next.fetch_add(1, Ordering::SeqCst);
        if number >= layout.piece_count() {
            break;
        }
        let piece = layout.piece(number);
        fill(job.data, &piece, &mut buffer[..piece.bytes]);
        buffer[piece.bytes..align_up(piece.bytes as u64) as usize].fill(0);
        if job.checksum {
            sum += sum_up(job.data, &piece, &buffer[..piece.bytes]);
        }
        if queue
            .push(Filled {
                number,
                piece,
                buffer,
            })
            .is_err()
        {
            break;
        }
    }
    sum
}

/// Fills `out` with what lies at `piece`: the rest of a record, whole ones, and the beginning of one.
fn fill(data: &dyn Data, piece: &Piece, out: &mut [u8]) {
    let (mut number, mut at) = (piece.first, 0);
    if piece.skip > 0 {
        at = data.part(number, piece.skip, out);
        number += 1;
    }
    let (count, bytes) = data.fill(number, &mut out[at..]);
    number += count;
    at += bytes;
    while at < out.len() {
        at += data.part(number, 0, &mut out[at..]);
        number += 1;
    }
}

/// The checksum of the records, all of one size, that end in `piece`, whose bytes are `filled`.
fn sum_up(data: &dyn Data, piece: &Piece, filled: &[u8]) -> u128 {
    let record_bytes = data.record_bytes(piece.first) as usize;
    let sum = |records: &[u8]| -> u128 {
        let records = records.chunks_exact(record_bytes);
        records
            .map(|record| u128::from(crc32fast::hash(record)))
            .sum()
    };
    if piece.skip == 0 {
        return sum(filled);
    }
    let Some(others) = filled.get(record_bytes - piece.skip as usize..) else {
        return 0;
    };
    let mut first = vec![0; data.record_bytes_max()];
    data.write(piece.first, &mut first);
    sum(&first[..record_bytes]) + sum(others)
}

// Writing streams.

fn to_stream(job: &Generate<'_>, os: &dyn Os, stop: &Stop, file: &File) -> Result<Written> {
    let layout = layout(job, 1, stop)?;
    with_workers(job, os, stop, &layout, |queue| {
        let mut early: Vec<Filled> = Vec::with_capacity(DEPTH);
        for number in 0..layout.piece_count() {
            let filled = loop {
                if let Some(index) = early.iter().position(|filled| filled.number == number) {
                    break early.swap_remove(index);
                }
                early.push(queue.pop().ok_or_else(|| stop.error())?);
            };
            os.write_stream(file, &filled.buffer[..filled.piece.bytes], &|| {
                stop.is_stopped()
            })
            .map_err(|error| writing(&file.path, &error).offset(filled.piece.offset))?;
            job.wrote(filled.piece.bytes);
        }
        Ok(())
    })
}

// Writing files.

fn to_files(
    job: &Generate<'_>,
    os: &dyn Os,
    stop: &Stop,
    mut output: Uncommitted<'_>,
    targets: &[Target],
) -> Result<Written> {
    if job.data.record_bytes_fixed().is_none() {
        // What no disk holds is told at once rather than when it has been summed up.
        check_space(os, targets[0].folder(), job.bytes_least())?;
    }
    let layout = layout(job, targets.len() as u64, stop)?;
    let disk_bytes = layout.disk_bytes();
    check_space(os, targets[0].folder(), disk_bytes)?;
    let ring = os.ring(DEPTH).map_err(|error| {
        Error::new(
            ErrorKind::Io,
            "starting a ring for the output",
            error.to_string(),
        )
    })?;
    let written = with_workers(job, os, stop, &layout, |queue| {
        let mut writer = FileWriter {
            job,
            layout: &layout,
            targets,
            output: &mut output,
            ring,
            in_flight: 0,
            open: Vec::new(),
        };
        writer.write(queue, stop).map_err(|error| match error.kind {
            ErrorKind::Space => error.hint(format!(
                "The output takes {}.",
                crate::text::bytes(disk_bytes)
            )),
            _ => error,
        })
    })?;
    job.enter(Phase::Sync, os);
    output.commit(stop)?;
    Ok(written)
}

/// Writes pieces wherever they belong. Files are open from their first piece to their last, so that their
/// number is bounded by the buffers and not by the set.
struct FileWriter<'a, 'os> {
    job: &'a Generate<'a>,
    layout: &'a Layout<'a>,
    targets: &'a [Target],
    output: &'a mut Uncommitted<'os>,
    ring: Box<dyn Ring>,
    in_flight: usize,
    open: Vec<OpenFile>,
}

struct OpenFile {
    number: u64,
    file: Arc<File>,
    pieces_left: u64,
}

impl FileWriter<'_, '_> {
    fn write(&mut self, queue: &Queue<Filled>, stop: &Stop) -> Result<()> {
        let mut pieces_left = self.layout.piece_count();
        while pieces_left > 0 {
            let filled = match self.in_flight {
                0 => Some(queue.pop().ok_or_else(|| stop.error())?),
                DEPTH => None,
                _ => queue.try_pop(),
            };
            if let Some(filled) = filled {
                self.start(filled)?;
            } else {
                let done = self.ring.complete(true).expect("a write is in flight");
                self.in_flight -= 1;
                self.end(done)?;
                pieces_left -= 1;
            }
        }
        Ok(())
    }

    /// Hands a piece to the ring, padded to whole 4 KiB. That of an empty file goes too, as a write of
    /// nothing.
    fn start(&mut self, Filled { piece, buffer, .. }: Filled) -> Result<()> {
        let file = self.file(piece.file)?;
        let bytes = align_up(piece.bytes as u64) as usize;
        self.ring.submit(Op {
            kind: OpKind::Write,
            file,
            offset: piece.offset,
            buffer,
            range: 0..bytes,
            tag: piece.file,
        });
        self.in_flight += 1;
        Ok(())
    }

    /// The open file of this number, made with its first piece.
    fn file(&mut self, number: u64) -> Result<Arc<File>> {
        if let Some(open) = self.open.iter().find(|open| open.number == number) {
            return Ok(Arc::clone(&open.file));
        }
        let target = &self.targets[number as usize];
        let file = Arc::new(self.output.create(target, self.layout.bytes_of(number))?);
        let pieces_left = self.layout.pieces_of(number);
        self.open.push(OpenFile {
            number,
            file: Arc::clone(&file),
            pieces_left,
        });
        Ok(file)
    }

    /// Counts a written piece, and finishes its file if that was the last one.
    fn end(&mut self, Done { op, result }: Done) -> Result<()> {
        let number = op.tag;
        let target = &self.targets[number as usize];
        result.map_err(|error| writing(&target.path, &error).offset(op.offset))?;
        // The worker that waits for it need not wait for the device to sync.
        drop(op.buffer);
        let end = op.offset + op.range.len() as u64;
        let padding = end.saturating_sub(self.layout.bytes_of(number));
        self.job.wrote(op.range.len() - padding as usize);
        let index = self.open.iter().position(|open| open.number == number);
        let index = index.expect("a file is open until its last piece is written");
        self.open[index].pieces_left -= 1;
        if self.open[index].pieces_left == 0 {
            let open = self.open.swap_remove(index);
            self.output
                .finish(target, &open.file, self.layout.bytes_of(number))?;
        }
        Ok(())
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::gen_records::{Alphabet, Records, RecordsFrom};

    #[test]
    fn a_writer_that_panics_ends_the_job() {
        let records = RecordsFrom {
            records: Records {
                alphabet: Alphabet::Binary,
                skew: false,
            },
            start: 0,
        };
        let job = Generate {
            data: &records,
            amount: Amount::Records(1_000_000),
            threads: 2,
            out: Out::Stdout,
            checksum: false,
            progress: None,
        };
        let os = sortmill_io::sim::Sim::new(1);
        let stop = Stop::new();
        let layout = layout(&job, 1, &stop).unwrap();
        let panicking = std::panic::AssertUnwindSafe(|| {
            with_workers(&job, &os, &stop, &layout, |_| panic!("as this test wants"))
        });
        assert!(std::panic::catch_unwind(panicking).is_err());
        assert_eq!(stop.error().kind, ErrorKind::Lost);
    }
}
