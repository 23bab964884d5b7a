//! A job whose inputs are in order already: read, cut, merge, write, in one pass.
//!
//! ```text
//!              pieces                       blocks
//!  [read]    ==========>  [merge]         ==========>  [write]
//!  [stream-n]  a queue     tree of losers               ring of 8 writes
//!  [decompress-n] a row      |                            |
//!   forecast,                |       [compress-n] between both, where that is asked for
//!   cut <------ input pool --+           chunk pool <-----+
//! ```
//!
//! One thread reads all files, and one each stream; compressed files are read by one, too, and decompressed by a thread
//! each. All cut what they read into whole records and sum these up. One
//! merges: it looks at each record against the one before it in its row, which proves the row's order, and sums up
//! what comes out. More rows than memory has buffers for are merged into runs first, neighbours so that ties keep
//! their order, the smallest so that few bytes go to disk twice; a run then stands in their place.

use std::path::Path;

use sortmill_io::Pool;
use sortmill_io::codec::Codec;
use sortmill_io::os::Kind;
use sortmill_io::sync::atomic::AtomicU32;
use sortmill_io::sync::{Arc, Mutex, ScopedJoinHandle, lock, spawn};

use super::compress::{Frames, Packed};
use super::distribute::{Distributed, guarded, join};
use super::proof::compare_bytes;
use super::sorting::Sorted;
use super::way::{Since, Way};
use super::{Shared, border};
use crate::bodies::{Bodies, BodyReader, Means};
use crate::chunks::Extent;
use crate::columns::Columns;
use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::job::{Boundaries, CompressTemp, Disorder, Input, Job, Output as JobOutput};
use crate::long::Item;
use crate::metrics::{Finished, Meter, Metrics, Stage};
use crate::order::{Format, Order};
use crate::partitions::Counts;
use crate::plan::{Merging, Plan, RUN_BUFFERS};
use crate::queue::{Queue, Stop, job_scope};
use crate::report::{Merged, Took};
use crate::rows::{RowQueues, Run};
use crate::stage::merge::{Device, Follows, Late, RowMerge, RunWriter, merge_rows};
use crate::stage::read::{
    Fetches, Headings, NOTHING, RowOrigin, RowsRead, SortedReader, Source, fetch, read_packed_row,
    read_rows, read_stream_row,
};
use crate::stage::reduce::Stream;
use crate::stage::write::{OutBlock, Output, Seams, Sink, Target, write};
use crate::text;

/// Sees to it that a job that merges asks for nothing else.
///
/// # Errors
/// [`ErrorKind::Usage`] for what does not go with merging, and a stream that is named twice.
pub fn check(job: &Job, sources: &[Source]) -> Result<()> {
    check_asked(job)?;
    for (number, source) in sources.iter().enumerate() {
        // A file that is named beside is read where it is opened, and of an empty device nobody takes anything.
        let is_taken = |one: &Source| {
            let is_stream = one.meta.kind == Kind::Stream && !one.begins_anew;
            is_stream && one.file.path != Path::new(NOTHING)
        };
        let is_same =
            |other: &Source| is_taken(other) && other.meta.identity == source.meta.identity;
        if is_taken(source) && sources[..number].iter().any(is_same) {
            let cause = "a stream can be merged once: two readers would take parts of its records from each other";
            return Err(Error::new(ErrorKind::Usage, DOING, cause).at(&source.file.path));
        }
    }
    Ok(())
}

const DOING: &str = "planning the merge";

fn check_asked(job: &Job) -> Result<()> {
    let wrong = if matches!(job.output, JobOutput::Parts(_)) {
        "it writes one file or a stream, not parts"
    } else if job.map.is_some() || job.reduce.is_some() {
        "map and reduce functions go with sorting"
    } else if job.on.is_some() {
        "it runs in one process"
    } else if job.until.is_some() {
        "it runs to its end"
    } else if job.skip_bad > 0 {
        "it leaves no record out"
    } else if job.compress_temp != CompressTemp::None {
        "its temporary runs are written as they are"
    } else if job.boundaries != Boundaries::Sample {
        "it has no partitions, and so no boundaries"
    } else if job
        .inputs
        .iter()
        .filter(|input| **input == Input::Stdin)
        .count()
        > 1
    {
        "standard input can be merged once"
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::Usage, DOING, wrong))
}

/// A row that is to be merged.
enum Row<'a> {
    File(&'a Source),
    /// A compressed file.
    Packed(&'a Source, Codec),
    Stream(&'a Source),
    Run(Run),
}

/// Merges `sources` into `target`.
///
/// # Errors
/// The first of any thread; an input that is not in order.
pub fn merge_inputs(
    shared: &Shared<'_>,
    sources: &[Source],
    target: Option<&Target>,
) -> Result<Way> {
    let before = Since::now(shared.os);
    let _begun = shared.begun("merge");
    let merging = shared.plan.merging.as_ref().expect("the plan of a merge");
    let target = target.expect("a merge writes");
    let headings = Headings {
        lines: shared.job.header_lines,
        expected: shared.job.columns.as_ref().and_then(Columns::header),
        sources,
        kept: Mutex::default(),
    };
    let mut rows: Vec<Row<'_>> = sources.iter().filter_map(row_of).collect();
    let mut done = Done::default();
    let run_count = AtomicU32::new(0);
    for step in &merging.steps {
        let some = rows
            .splice(step.first..step.first + step.count, [])
            .collect();
        let run = make_run(shared, (&headings, some), &run_count, &mut done)?;
        rows.insert(step.first, Row::Run(run));
    }
    let gathered = write_output(shared, (&headings, rows), target, &mut done)?;
    for source in sources {
        source.check_unchanged(shared.os, shared.job.as_of_start)?;
    }
    let took = before.took(shared.os);
    Ok(done.way(shared.plan, merging, gathered, took))
}

fn row_of(source: &Source) -> Option<Row<'_>> {
    match (source.extent(), source.codec) {
        (Extent::File(0), _) => None,
        (Extent::File(_), _) => Some(Row::File(source)),
        (Extent::Stream, Some(sniffed)) => Some(Row::Packed(source, sniffed.codec)),
        (Extent::Stream, None) => Some(Row::Stream(source)),
    }
}

/// What all passes have done.
#[derive(Default)]
struct Done {
    read: RowsRead,
    run_written_bytes: u64,
    written_bytes: u64,
    /// Bytes of the compressed output.
    packed_bytes: Option<u64>,
    /// Repeats that did not come out.
    dropped: Fingerprint,
    /// What stands in front of all records.
    header: Vec<u8>,
    /// Records that came out behind one that belongs behind them.
    breaks: u64,
    metrics: Metrics,
}

impl Done {
    /// The way as a report has it: what was cut is what was distributed, what came out of the merge was written.
    fn way(self, plan: &Plan, merging: &Merging, gathered: Fingerprint, sort: Took) -> Way {
        let input = self.read.fingerprint;
        let mut sorted = Sorted::default();
        sorted.gathered = gathered;
        sorted.dropped = self.dropped;
        sorted.written = gathered;
        sorted.written_bytes = self.written_bytes;
        sorted.packed_bytes = self.packed_bytes;
        sorted.header = self.header;
        sorted.merge_written_bytes = self.run_written_bytes;
        sorted.merge_read_bytes = self.read.run_bytes;
        sorted.metrics = self.metrics;
        let counts = Counts {
            records: input.records,
            bytes: input.bytes,
            ..Counts::default()
        };
        Way {
            distributed: Distributed {
                units: Vec::new(),
                bodies: Arc::new(Bodies::default()),
                read: self.read.totals,
                sample_bytes: 0,
                sample_ns: 0,
                input,
                fingerprint: input,
                dropped: Fingerprint::default(),
                counts,
                metrics: Metrics::default(),
            },
            sorted,
            distribute: Took::default(),
            sort,
            order: None,
            copied: None,
            passed: false,
            merged: Some(Merged {
                inputs: merging.row_count as u64,
                fan_in: merging.fan_in as u64,
                runs: merging.steps.len() as u64,
                passes: plan.passes,
                breaks: self.breaks,
            }),
        }
    }
}

/// Merges some rows into a run.
fn make_run(
    shared: &Shared<'_>,
    rows: (&Headings<'_>, Vec<Row<'_>>),
    run_count: &AtomicU32,
    done: &mut Done,
) -> Result<Run> {
    let Shared { plan, os, stop, .. } = *shared;
    let wrong =
        |error: std::io::Error| Error::new(ErrorKind::Memory, "mapping memory", error.to_string());
    let pool = Pool::new(RUN_BUFFERS, plan.block_bytes).map_err(wrong)?;
    stop.on_stop(pool.closer());
    let (run, written_bytes, dropped) = pass(shared, rows, None, done, |merge, meter| {
        let doing = "starting to write a run";
        let ring = os.ring(1);
        let mut ring = ring.map_err(|error| Error::new(ErrorKind::Io, doing, error.to_string()))?;
        let bodies = Bodies::default();
        let mut device = Device {
            ring: &mut *ring,
            temps: shared.temps,
            pool: &pool,
            bodies: BodyReader::new(Means {
                os,
                bodies: &bodies,
                temps: shared.temps,
                packers: None,
                order: &plan.order,
                short_order: &plan.order,
                head_bytes: plan.head_bytes,
                block_bytes: plan.block_bytes,
                depth: plan.body_depth,
            }),
            stop,
            job: shared.number,
            node: plan.node(),
            run_count,
            written_bytes: 0,
            read_bytes: 0,
        };
        let mut run = RunWriter::new(device.next_run(), plan.block_bytes);
        let mut repeats = Repeats::new(plan, shared.number);
        merge_rows(merge, meter, |record, follows, meter| {
            match repeats.drops(record, follows)? {
                true => Ok(()),
                false => run.put(0, &Item::Record(record), &mut device, meter),
            }
        })?;
        let run = run.finish(&mut device, meter)?;
        Ok((run, device.written_bytes, repeats.dropped))
    })?;
    done.dropped.merge(&dropped);
    done.run_written_bytes += written_bytes;
    Ok(run)
}

/// Merges the rows that are left into the output. Answers what came out.
fn write_output(
    shared: &Shared<'_>,
    (headings, rows): (&Headings<'_>, Vec<Row<'_>>),
    target: &Target,
    done: &mut Done,
) -> Result<Fingerprint> {
    let Shared {
        job,
        plan,
        stop,
        number,
        ..
    } = *shared;
    let blocks: Queue<OutBlock> = Queue::new(plan.chunk_count);
    let aborted = blocks.clone();
    stop.on_stop(move || aborted.abort());
    let seams = Seams::default();
    let frames = Frames::new(shared)?;
    let writes = Output {
        pool: &shared.chunk_pool,
        blocks: &blocks,
        seams: &seams,
        total: None,
        ends_exactly: false,
        stage: match frames {
            Some(_) => Stage::Compress,
            None => Stage::Merge,
        },
        stop,
    };
    let packed = Mutex::new(Packed::default());
    let to_frames = frames.as_ref().map(|all| all.output(&writes, Stage::Merge));
    let output = to_frames.as_ref().unwrap_or(&writes);
    let to = To {
        target,
        frames: frames.as_ref(),
        writes: &writes,
        packed: &packed,
    };
    let padded = to.is_file() && frames.is_none();
    let from = (headings, rows);
    let mut header = None;
    let (gathered, put_bytes, dropped, breaks) =
        pass(shared, from, Some(&to), done, |merge, meter| {
            let mut sink = Sink::new(output, 0);
            // Whole when the first record comes, because by then all rows have been begun.
            let mut put_header = |sink: &mut Sink<'_>, meter: &mut Meter<'_>| {
                let kept = std::mem::take(&mut *lock(&headings.kept));
                kept.check()?;
                let kept = kept.bytes;
                sink.put_part(&kept, meter)?;
                header = Some(kept);
                Ok(())
            };
            let mut has_begun = false;
            let mut proof = Stream::new(&plan.order, plan.head_bytes);
            let mut gathered = Fingerprint::default();
            let mut repeats = Repeats::new(plan, number);
            let mut breaks = 0;
            merge_rows(merge, meter, |record, follows, meter| {
                if repeats.drops(record, follows)? {
                    return Ok(());
                }
                if !std::mem::replace(&mut has_begun, true) {
                    put_header(&mut sink, meter)?;
                }
                if follows == Follows::Break {
                    breaks += 1;
                    // From here on it is in order again.
                    proof = Stream::new(&plan.order, plan.head_bytes);
                }
                border::merged(job, record, |record| {
                    proof.next(&Item::Record(record))?;
                    gathered.add(record, number);
                    sink.put(record, meter)
                })
            })?;
            if !has_begun {
                put_header(&mut sink, meter)?;
            }
            let put_bytes = sink.bytes;
            let totals = meter.stage(Stage::Merge);
            totals.bytes_in += gathered.bytes;
            totals.records_in += gathered.records;
            totals.bytes_out += put_bytes;
            totals.records_out += sink.records;
            sink.finish_all(padded, meter)?;
            Ok((gathered, put_bytes, repeats.dropped, breaks))
        })?;
    done.header = header.unwrap_or_default();
    compare_bytes(done.header.len() as u64 + gathered.bytes, put_bytes)?;
    done.dropped.merge(&dropped);
    done.breaks = breaks;
    Ok(gathered)
}

/// Where what comes out of a merge goes.
struct To<'a> {
    target: &'a Target,
    /// Who compresses it on its way, if that is asked for.
    frames: Option<&'a Frames>,
    /// What the writer takes it from.
    writes: &'a Output<'a>,
    packed: &'a Mutex<Packed<'a>>,
}

impl To<'_> {
    fn is_file(&self) -> bool {
        !matches!(self.target, Target::Stream(_))
    }
}

/// Which records do not come out, where of those with equal keys only the first does.
struct Repeats<'a> {
    order: &'a Order,
    key: u64,
    /// The last one that came out.
    first: Vec<u8>,
    dropped: Fingerprint,
}

impl<'a> Repeats<'a> {
    fn new(plan: &'a Plan, key: u64) -> Self {
        Self {
            order: &plan.order,
            key,
            first: Vec::new(),
            dropped: Fingerprint::default(),
        }
    }

    /// Whether `record` is dropped. That it may be is not left to the tree's word: its key is compared.
    fn drops(&mut self, record: &[u8], follows: Follows) -> Result<bool> {
        if !self.order.is_unique() {
            return Ok(false);
        }
        if follows != Follows::Repeat {
            self.first.clear();
            self.first.extend_from_slice(record);
            return Ok(false);
        }
        if self.order.compare(&self.first, record).is_ne() {
            let (doing, cause) = ("dropping repeats", "a record was taken for one and is none");
            return Err(Error::new(ErrorKind::Lost, doing, cause).hint(
                "This is a fault of sortmill or of this machine's memory. No output was made.",
            ));
        }
        self.dropped.add(record, self.key);
        Ok(true)
    }
}

/// What a thread that reads does.
const READING: [Stage; 2] = [Stage::Read, Stage::Cut];
/// And one that decompresses what another one reads.
const UNPACKING: [Stage; 2] = [Stage::Decompress, Stage::Cut];

/// Reads `rows` and merges them as `merge` says, in a thread of its own; with an output, what that one puts into its
/// queue is compressed, if that is asked for, and written. All threads have ended when it returns.
fn pass<'t, T: Send>(
    shared: &Shared<'_>,
    (headings, rows): (&Headings<'_>, Vec<Row<'_>>),
    output: Option<&'t To<'t>>,
    done: &mut Done,
    merge: impl FnOnce(&RowMerge<'_>, &mut Meter<'_>) -> Result<T> + Send,
) -> Result<T> {
    let Shared { plan, os, stop, .. } = *shared;
    let began_ns = os.now_ns();
    let queues = RowQueues::new(rows.len(), plan.block_count.max(2), stop);
    let reader = SortedReader {
        os,
        plan,
        merging: plan.merging.as_ref().expect("the plan of a merge"),
        temps: shared.temps,
        pool: &shared.block_pool,
        queues: &queues,
        stop,
        key: shared.number,
        headings,
    };
    let rows = Sorts::of(rows);
    let fetches = rows.fetches(plan, stop)?;
    let (read_ends, merge_end, packed_end, write_end) = job_scope(stop, |threads| {
        let mut readers: Vec<ScopedJoinHandle<'_, Option<(RowsRead, Finished)>>> = Vec::new();
        if !rows.files.is_empty() {
            let files = rows.files;
            let reader = &reader;
            readers.push(spawn(threads, "read", move || {
                let mut meter = shared.meter("read", &READING, began_ns);
                let read = guarded(stop, || read_rows(reader, files, &mut meter));
                read.map(|read| (read, meter.finish(Stage::Read)))
            }));
        }
        for &(row, source) in &rows.streams {
            let (reader, name) = (&reader, format!("stream-{row}"));
            readers.push(spawn(threads, &name.clone(), move || {
                let mut meter = shared.meter(&name, &READING, began_ns);
                let read = guarded(stop, || read_stream_row(reader, row, source, &mut meter));
                read.map(|read| (read, meter.finish(Stage::Read)))
            }));
        }
        if let Some(fetches) = &fetches {
            let packed = &rows.packed;
            readers.push(spawn(threads, "fetch", move || {
                let mut meter = shared.meter("fetch", &[Stage::Read], began_ns);
                let read = guarded(stop, || fetch(os, packed, fetches, stop, &mut meter));
                read.map(|()| (RowsRead::default(), meter.finish(Stage::Read)))
            }));
            for (&(row, source), &codec) in rows.packed.iter().zip(&rows.codecs) {
                let (reader, name) = (&reader, format!("decompress-{row}"));
                readers.push(spawn(threads, &name.clone(), move || {
                    let mut meter = shared.meter(&name, &UNPACKING, began_ns);
                    let row = (row, source, codec);
                    let read = guarded(stop, || read_packed_row(reader, row, fetches, &mut meter));
                    read.map(|read| (read, meter.finish(Stage::Decompress)))
                }));
            }
        }
        let merger = spawn(threads, "merge", || {
            let mut meter = shared.meter("merge", &[Stage::Merge], began_ns);
            let lines_before = headings.lines;
            let unsorted = |late: Late| {
                let name = rows.names[late.row];
                unsorted(name, late, &plan.order, lines_before)
            };
            let is_refused = shared.job.merge == Some(Disorder::Refused);
            let rows = RowMerge {
                order: &plan.order,
                queues: &queues,
                stop,
                unsorted: is_refused.then_some(&unsorted),
            };
            let merged = guarded(stop, || merge(&rows, &mut meter));
            merged.map(|merged| (merged, meter.finish(Stage::Merge)))
        });
        let writer = output.map(|to| {
            spawn(threads, "write", move || {
                let mut meter = shared.meter("write", &[Stage::Write], began_ns);
                let blocks = to.writes.blocks;
                let written = guarded(stop, || write(os, to.target, blocks, stop, &mut meter));
                written.map(|bytes| (bytes, meter.finish(Stage::Write)))
            })
        });
        let compressing = output.and_then(|to| Some((to, to.frames?)));
        let encodings = compressing.map(|(to, frames)| {
            let all = frames.start(threads, shared, (to.writes, to.packed), began_ns);
            (to, frames, all)
        });
        let read_ends: Vec<_> = readers.into_iter().map(join).collect();
        let merge_end = join(merger);
        let end = |(to, frames, all): (&To<'t>, &Frames, _)| {
            let (into, kind) = ((to.writes, to.packed), (to.is_file(), false));
            frames.end(all, into, kind, stop, &mut Meter::start(os, &[]))
        };
        let packed_end = encodings.map(end).unwrap_or_default();
        if let Some(to) = output {
            to.writes.blocks.close();
        }
        (read_ends, merge_end, packed_end, writer.map(join))
    });
    stop.check()?;

    let end_ns = os.now_ns();
    let mut metrics = Metrics::default();
    for end in read_ends {
        let (read, meter) = end.expect("no error was seen");
        metrics.merge(&meter.until(end_ns));
        done.read.merge(&read);
    }
    let (merged, meter) = merge_end.expect("no error was seen");
    metrics.merge(&meter.until(end_ns));
    let (packed, encoders) = packed_end;
    done.packed_bytes = packed.map(|packed| packed.all);
    for meter in encoders {
        metrics.merge(&meter.expect("no error was seen").until(end_ns));
    }
    if let Some(end) = write_end {
        let (bytes, meter) = end.expect("no error was seen");
        metrics.merge(&meter.until(end_ns));
        done.written_bytes += bytes;
    }
    done.metrics.then(&metrics);
    Ok(merged)
}

/// Rows by who reads them, each with its number.
struct Sorts<'a> {
    files: Vec<(usize, RowOrigin<'a>)>,
    packed: Vec<(usize, &'a Source)>,
    /// Those of the packed ones.
    codecs: Vec<Codec>,
    streams: Vec<(usize, &'a Source)>,
    /// Of all rows those of inputs.
    names: Vec<Option<&'a Path>>,
}

impl<'a> Sorts<'a> {
    fn of(rows: Vec<Row<'a>>) -> Self {
        let mut sorts = Self {
            files: Vec::new(),
            packed: Vec::new(),
            codecs: Vec::new(),
            streams: Vec::new(),
            names: Vec::new(),
        };
        for (number, row) in rows.into_iter().enumerate() {
            sorts.names.push(match row {
                Row::File(source) | Row::Packed(source, _) | Row::Stream(source) => {
                    Some(&*source.file.path)
                }
                Row::Run(_) => None,
            });
            match row {
                Row::File(source) => sorts.files.push((number, RowOrigin::File(source))),
                Row::Run(run) => sorts.files.push((number, RowOrigin::Run(run))),
                Row::Stream(source) => sorts.streams.push((number, source)),
                Row::Packed(source, codec) => {
                    sorts.packed.push((number, source));
                    sorts.codecs.push(codec);
                }
            }
        }
        sorts
    }

    /// What lies between who reads compressed files and those who decompress them, if there are any.
    fn fetches(&self, plan: &Plan, stop: &Stop) -> Result<Option<Fetches>> {
        if self.packed.is_empty() {
            return Ok(None);
        }
        let decoders = (plan.decoders.as_ref()).expect("compressed inputs are planned for");
        let counts = (self.names.len(), self.packed.len());
        Fetches::new(counts, decoders.read_bytes, stop).map(Some)
    }
}

/// The error of a row, an input of this name or a run, in which a record comes too late; the first `lines_before` of an
/// input are no records.
fn unsorted(name: Option<&Path>, late: Late, order: &Order, lines_before: u64) -> Error {
    let Some(path) = name else {
        let cause = "two records of a run are out of order";
        return Error::new(ErrorKind::Lost, "merging runs", cause)
            .hint("This is a fault of sortmill or of this machine's memory. No output was made.");
    };
    let number = lines_before + late.number;
    let which = match order.format() {
        _ if order.has_columns() => format!("the record at line {}", late.line),
        Format::Lines => format!("line {number}"),
        Format::Fixed(_) | Format::Kv | Format::Quoted(_) => format!("record {number}"),
    };
    let of_unpacked = match late.is_unpacked {
        true => text::OF_UNPACKED,
        false => "",
    };
    let cause = format!(
        "it is not in order: {which}, which begins there, belongs before the one in front of it{of_unpacked}"
    );
    let ties = match order.has_columns() {
        true => "",
        false => " Where lines with equal keys may stay as they are, give --stable;",
    };
    Error::new(ErrorKind::Input, "merging the inputs", cause)
        .at(path)
        .offset(late.offset)
        .hint(format!(
            "Sort it first, with the same format and keys, or sort all inputs together: `sortmill sort`.{ties} `sort \
             -m` merges any input as it is."
        ))
}
