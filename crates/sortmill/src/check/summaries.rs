//! The benchmark's summaries in files: read in a row and merged, written whole or not at all.

use std::path::Path;

use sortmill_io::sync::Arc;
use sortmill_io::{Access, File, Op, OpKind, Os, Pool};

use crate::commit::{Target, Uncommitted};
use crate::error::{Error, ErrorKind, Result};
use crate::job::Input;
use crate::queue::Stop;
use crate::summary::{SUMMARY_BYTES, Summary};

const DOING_MERGE: &str = "reading summaries";
const DOING_WRITE: &str = "writing the summary";

/// How many summaries are read at once.
const SUMMARIES_PER_READ: usize = 256;

/// Reads `inputs`, each a row of summaries, in order, and merges them into that of all their records.
///
/// # Errors
/// The system's, and [`ErrorKind::Input`] with the offset of what is cut off or cannot be a summary.
pub fn merge(inputs: &[Input], os: &dyn Os, stop: &Stop) -> Result<Summary> {
    let mut whole = Summary::EMPTY;
    for input in inputs {
        let (path, file) = match input {
            Input::Stdin => (Path::new("-"), os.stdin()),
            Input::Path(path) => (path.as_path(), os.open(path, Access::Cached)),
            Input::Made(made) => {
                let cause = "summaries are read from files and pipes";
                let error = Error::new(ErrorKind::Usage, DOING_MERGE, cause);
                return Err(error.at(made.name()));
            }
        };
        let file =
            file.map_err(|error| Error::io(DOING_MERGE, path, &error).kind(ErrorKind::Input))?;
        merge_file(&file, os, stop, &mut whole)?;
    }
    Ok(whole)
}

fn merge_file(file: &File, os: &dyn Os, stop: &Stop, whole: &mut Summary) -> Result<()> {
    let mut bytes = vec![0; SUMMARIES_PER_READ * SUMMARY_BYTES];
    let mut offset = 0;
    loop {
        let have = fill(file, os, stop, &mut bytes)?;
        let (summaries, rest) = bytes[..have].as_chunks::<SUMMARY_BYTES>();
        let wrong = |index: usize, cause: String| {
            Error::new(ErrorKind::Input, DOING_MERGE, cause)
                .at(&file.path)
                .offset(offset + (index * SUMMARY_BYTES) as u64)
        };
        for (index, summary) in summaries.iter().enumerate() {
            let summary = Summary::from_bytes(summary);
            if !summary.is_consistent() {
                let cause = "these 280 bytes are no summary: their numbers contradict each other";
                return Err(wrong(index, cause.into()));
            }
            whole.then(&summary);
        }
        if !rest.is_empty() {
            let cause = format!(
                "the last summary has {} of {SUMMARY_BYTES} bytes",
                rest.len()
            );
            return Err(wrong(summaries.len(), cause));
        }
        if have < bytes.len() {
            return Ok(());
        }
        offset += have as u64;
    }
}

/// Reads until `into` is full or the file ends.
fn fill(file: &File, os: &dyn Os, stop: &Stop, into: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        let moved = os
            .read_stream(file, &mut into[filled..], &|| stop.is_stopped())
            .map_err(|error| Error::io(DOING_MERGE, &file.path, &error))?;
        if moved == 0 {
            break;
        }
        filled += moved;
    }
    Ok(filled)
}

/// Writes `summary` to `path`: a file appears whole or not at all, a pipe or device is written in place.
///
/// # Errors
/// The system's, [`ErrorKind::Usage`] if `path` is a folder, and that of `stop`.
pub fn write_summary(summary: &Summary, path: &Path, os: &dyn Os, stop: &Stop) -> Result<()> {
    let failed = |error: std::io::Error| Error::io(DOING_WRITE, path, &error);
    let bytes = summary.to_bytes();
    let Some(target) = Target::find(os, path)? else {
        let stopped = || stop.is_stopped();
        let file = os.open_stream_for_write(path, &stopped).map_err(failed)?;
        return os.write_stream(&file, &bytes, &stopped).map_err(failed);
    };
    let mut uncommitted = Uncommitted::new(os, os.random());
    let file = Arc::new(uncommitted.create(&target, bytes.len() as u64)?);
    let pool = Pool::new(1, sortmill_io::ALIGN_BYTES).map_err(failed)?;
    let mut buffer = pool.take().expect("the pool is new");
    buffer[..bytes.len()].copy_from_slice(&bytes);
    let mut ring = os.ring(1).map_err(failed)?;
    ring.submit(Op {
        kind: OpKind::Write,
        file: Arc::clone(&file),
        offset: 0,
        buffer,
        range: 0..sortmill_io::ALIGN_BYTES,
        tag: 0,
    });
    let done = ring.complete(true).expect("a write is in flight");
    done.result.map_err(failed)?;
    uncommitted.finish(&target, &file, bytes.len() as u64)?;
    uncommitted.commit(stop)
}
