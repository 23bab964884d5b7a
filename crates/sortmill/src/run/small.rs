//! A small job, whole, in the calling thread.
//!
//! A shell's pipelines sort a few lines and wait for the process more than for the sorting: threads, rings and pools of
//! huge pages cost it more than the work. So what is small and goes to standard output is read, cut, sorted, proven and
//! written here, without any of them; the bytes are those that the long way makes. Whatever is larger, or wrong, or
//! compressed, takes the long way from the start: files are read again there, and what was read of streams goes with them.
//!
//! Inputs that are to be merged are looked at first: where each is in order, to sort all records by key and place is to
//! merge them. Where one is not, the long way has the right words, or the right order.
//!
//! ```text
//! inputs -- read --> one text each -- cut --> records -- sort --> entries -- prove, then write --> stdout
//!              \---- more than is small, bad, or compressed: the long way, with what was read of streams
//! ```
//!
//! Memory: the texts, up to 64 bytes for each record, and one buffer for output, at most a quarter of what the job may use.
//! It is given back when the job ends.

use memchr::arch::all::memchr::One;
use sortmill_io::os::Access;
use sortmill_io::sync::Arc;
use sortmill_io::{File, Os};

use crate::by_words;
use crate::chunks::Extent;
use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::job::{Boundaries, Job, Output, Tuning};
use crate::order::{Format, Order, kv_bytes};
use crate::queue::Stop;
use crate::run::proof::compare;
use crate::stage::kernel::{self, Entry};
use crate::stage::read::{OPEN_MAX, Source, codec_of};
use crate::stage::reduce::Gather;
use crate::stage::write::to_stream;
use crate::yields::Yield;

/// Inputs together are small up to this. Beyond, a second core is worth its thread.
const SMALL_BYTES: u64 = 16 << 20;
/// So little may be sorted anywhere: nobody need be asked how much memory there is, nor the processor what it can do.
const TINY_BYTES: u64 = 256 << 10;
/// Bytes that a record takes beside its own: where it lies, in a list that doubles, its entry, and room to sort that.
const RECORD_BYTES: u64 = (2 * size_of::<&[u8]>() + 2 * size_of::<Entry>()) as u64;
/// What is written in one go.
const WRITE_BYTES: usize = 256 << 10;
/// What is asked of a stream in one go.
const READ_BYTES: usize = 64 << 10;

/// How a job that may have been small went.
pub enum Small {
    /// It was: its output is written, and proven to be just this.
    Done(Fingerprint),
    /// It was not, or something is wrong with it: nothing was written. The inputs, for the long way.
    Larger(Vec<Source>),
}

/// Sorts what `sources`, the opened inputs of `job`, hold, if that is small and goes to standard output. Nothing is
/// told of it meanwhile or afterwards but what comes back.
///
/// # Errors
/// Those of the inputs, of standard output, and a proof that failed.
pub fn sort_small(job: &Job, mut sources: Vec<Source>, os: &dyn Os, stop: &Stop) -> Result<Small> {
    if !may_be_small(job, &sources) || !may_be_read_in_turn(job, &sources) {
        return Ok(Small::Larger(sources));
    }
    let order = job.order()?;
    let mut texts = Vec::with_capacity(sources.len());
    let is_small = read(job, &sources, &mut texts, os, stop)?;
    if is_small {
        end_lines(&order, &mut texts);
        if let Some(records) = cut(&order, &texts, most_bytes(job, &texts, os))
            && (job.merge.is_none() || each_in_order(&order, &texts, &records))
        {
            return put_in_order(&order, &records, os, stop).map(Small::Done);
        }
    }
    for (source, text) in sources.iter_mut().zip(texts) {
        if source.extent() == Extent::Stream {
            source.ahead = text;
        }
    }
    Ok(Small::Larger(sources))
}

/// Whether nothing was asked for that only the long way has.
fn may_be_small(job: &Job, sources: &[Source]) -> bool {
    #[cfg(feature = "tamper")]
    if job.tamper.is_some() {
        return false;
    }
    job.output == Output::Stdout
        && job.yields == Yield::All
        && job.on.is_none()
        && job.until.is_none()
        && job.map.is_none()
        && job.reduce.is_none()
        && job.skip_bad == 0
        && job.compress.is_none()
        && job.header_lines == 0
        // Nobody would look whether records are made of columns.
        && job.columns.is_none()
        && job.progress.is_none()
        && job.trace.is_none()
        && job.probe != Some(true)
        && job.boundaries == Boundaries::Sample
        && job.tuning == Tuning::default()
        && sources
            .iter()
            .all(|source| source.codec.is_none() && source.made.is_none())
}

/// Whether inputs may be read one to its end after the other. Whoever writes to several that are merged may wait until
/// the other ones are read, too.
fn may_be_read_in_turn(job: &Job, sources: &[Source]) -> bool {
    let is_stream = |source: &&Source| source.extent() == Extent::Stream;
    job.merge.is_none() || sources.iter().filter(is_stream).count() <= 1
}

/// Reads the inputs, each into a text of its own; `false` as soon as they are not small.
fn read(
    job: &Job,
    sources: &[Source],
    texts: &mut Vec<Vec<u8>>,
    os: &dyn Os,
    stop: &Stop,
) -> Result<bool> {
    let files = sources.iter().map(|source| match source.extent() {
        Extent::File(bytes) => bytes,
        Extent::Stream => 0,
    });
    let limit = job.memory_bytes.map_or(SMALL_BYTES, |bytes| bytes / 16);
    let Some(mut left) = limit.min(SMALL_BYTES).checked_sub(files.sum()) else {
        return Ok(false);
    };
    for source in sources {
        let (mut text, bytes_max) = match source.extent() {
            // A byte more tells of one that has grown.
            Extent::File(bytes) => (Vec::with_capacity(bytes as usize + 1), bytes + 1),
            Extent::Stream => (Vec::new(), left + 1),
        };
        let Some(file) = as_a_stream(source, sources.len(), os)? else {
            return Ok(false);
        };
        let ended = fill(&file, &mut text, bytes_max as usize, os, stop)?;
        let bytes = text.len() as u64;
        texts.push(text);
        let last = texts.last().expect("it was just put there");
        match source.extent() {
            Extent::File(expected) if expected != bytes => return Ok(false),
            Extent::File(_) => source.check_unchanged(os, job.as_of_start)?,
            Extent::Stream if !ended => return Ok(false),
            Extent::Stream if job.decompress && codec_of(last).is_some() => return Ok(false),
            Extent::Stream => left -= bytes,
        }
    }
    Ok(true)
}

/// The file of `source`, one of `count`, to be read from its beginning to its end into any memory: opened once more if
/// it is open for direct I/O, or only while it is read. `None` if another file has its name by now.
fn as_a_stream(source: &Source, count: usize, os: &dyn Os) -> Result<Option<Arc<File>>> {
    let is_file = source.extent() != Extent::Stream;
    if !is_file || (count <= OPEN_MAX && source.file.access == Access::Cached) {
        return Ok(Some(Arc::clone(&source.file)));
    }
    let path = &source.file.path;
    let wrong = |error| Error::io("opening the input", path, &error).kind(ErrorKind::Input);
    let file = os.open(path, Access::Cached).map_err(wrong)?;
    let is_same = os.meta(&file).map_err(wrong)?.identity == source.meta.identity;
    Ok(is_same.then(|| Arc::new(file)))
}

/// Reads on to the end of `file`, or to `bytes_max`. Whether it was the end.
fn fill(
    file: &File,
    text: &mut Vec<u8>,
    bytes_max: usize,
    os: &dyn Os,
    stop: &Stop,
) -> Result<bool> {
    let mut filled = 0;
    loop {
        if filled == bytes_max {
            return Ok(false);
        }
        text.resize((filled + READ_BYTES).max(text.capacity()).min(bytes_max), 0);
        let moved = os.read_stream(file, &mut text[filled..], &|| stop.is_stopped());
        stop.check()?;
        let moved = moved.map_err(|error| {
            Error::io("reading the input", &file.path, &error).offset(filled as u64)
        })?;
        filled += moved;
        if moved == 0 {
            text.truncate(filled);
            return Ok(true);
        }
    }
}

/// Gives each text the end of its last line, if that lacks it.
fn end_lines(order: &Order, texts: &mut [Vec<u8>]) {
    if order.format() != Format::Lines {
        return;
    }
    for text in texts {
        if text.last().is_some_and(|&byte| byte != order.delimiter()) {
            text.push(order.delimiter());
        }
    }
}

/// What texts and records may take together.
fn most_bytes(job: &Job, texts: &[Vec<u8>], os: &dyn Os) -> u64 {
    let bytes: usize = texts.iter().map(Vec::len).sum();
    match job.memory_bytes {
        Some(limit) => limit / 4,
        None if bytes as u64 <= TINY_BYTES => u64::MAX,
        None => os.machine().memory_bytes_available / 8,
    }
}

/// The records of all texts in order; `None` if one of them is none, or if they take more than `bytes_max`.
fn cut<'t>(order: &Order, texts: &'t [Vec<u8>], bytes_max: u64) -> Option<Vec<&'t [u8]>> {
    let bytes: usize = texts.iter().map(Vec::len).sum();
    let held: usize = texts.iter().map(Vec::capacity).sum();
    let count_max = bytes_max.checked_sub(held as u64)? / RECORD_BYTES;
    let count_max = count_max.min(u64::from(u32::MAX)) as usize;
    // A search by vectors begins with questions to the processor, each of which leaves a virtual machine: together they
    // take longer than to look through a tiny text by eights.
    let is_tiny = order.format() == Format::Lines && bytes as u64 <= TINY_BYTES;
    let line_end = is_tiny.then(|| One::new(order.delimiter()));
    let record_bytes = |rest: &[u8]| match &line_end {
        Some(end) => end.find(rest).map_or(rest.len(), |at| at + 1),
        None => order.record_bytes(rest),
    };
    let mut records = Vec::new();
    for text in texts {
        let mut rest = &text[..];
        while !rest.is_empty() {
            let (record, after) = rest.split_at_checked(record_bytes(rest))?;
            let is_whole =
                order.format() != Format::Kv || kv_bytes(record) == Some(record.len() as u64);
            if !is_whole || records.len() == count_max {
                return None;
            }
            records.push(record);
            rest = after;
        }
    }
    Some(records)
}

/// Whether the records of each text are in order by themselves. `records` are those of all texts.
fn each_in_order(order: &Order, texts: &[Vec<u8>], records: &[&[u8]]) -> bool {
    let mut rest = records;
    texts.iter().all(|text| {
        let mut bytes = 0;
        let count = rest.iter().take_while(|record| {
            let is_within = bytes < text.len();
            bytes += record.len();
            is_within
        });
        let (row, after) = rest.split_at(count.count());
        rest = after;
        row.is_sorted_by(|before, record| order.compare(before, record).is_le())
    })
}

/// Sorts records, proves that what comes out, with repeats that are dropped, is what went in, and writes it.
fn put_in_order(order: &Order, records: &[&[u8]], os: &dyn Os, stop: &Stop) -> Result<Fingerprint> {
    let key = os.random();
    let mut before = Fingerprint::default();
    let mut entries: Vec<Entry> = Vec::with_capacity(records.len());
    for (ordinal, record) in (0..).zip(records) {
        before.add(record, key);
        entries.push(kernel::entry(order.word(record, 0), ordinal, ordinal));
    }
    let mut scratch = vec![0; records.len()];
    by_words::sort(order, records, 0, &mut entries, &mut scratch);
    drop(scratch);
    let record = |entry: Entry| records[kernel::location(entry) as usize];
    let mut dropped = Fingerprint::default();
    if order.is_unique() {
        entries.dedup_by(|later, first| {
            // Sorting has left the word that decided: equal keys have equal ones, though others may have too.
            let is_repeat = kernel::word(*later) == kernel::word(*first)
                && order.compare(record(*later), record(*first)).is_eq();
            if is_repeat {
                dropped.add(record(*later), key);
            }
            is_repeat
        });
    }
    let mut gathered = Gather::new(order, key);
    for &entry in &entries {
        gathered.next(record(entry), kernel::ordinal(entry).into())?;
    }
    let written = gathered.fingerprint;
    dropped.merge(&written);
    compare(&before, &dropped)?;
    stop.check()?;
    let out = os.stdout();
    let out = out.map_err(|error| Error::io("opening the output", "-".as_ref(), &error))?;
    let mut buffer = Vec::with_capacity(WRITE_BYTES.min(before.bytes as usize));
    let mut offset = 0;
    for &entry in &entries {
        let record = record(entry);
        if buffer.len() + record.len() > WRITE_BYTES {
            offset += to_stream(os, &out, &buffer, offset, stop)?;
            buffer.clear();
        }
        if record.len() > WRITE_BYTES {
            offset += to_stream(os, &out, record, offset, stop)?;
        } else {
            buffer.extend_from_slice(record);
        }
    }
    to_stream(os, &out, &buffer, offset, stop)?;
    Ok(written)
}
