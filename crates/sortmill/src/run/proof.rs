//! The proof that no record was lost or doubled: what came out of each hop is what went in.

use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::job::Job;
use crate::metrics::Stage;
use crate::stage::read::ReadTotals;
use crate::text;

/// The error of records that are not where they should be.
pub fn lost(cause: String) -> Error {
    Error::new(ErrorKind::Lost, "proving that no record was lost", cause)
}

/// Every byte of the inputs lies in a record that was cut out, but for newlines added, what was skipped, headers, and ends of lines.
/// Of a job that ends before records are cut, in a chunk.
pub fn check_input(job: &Job, read: &ReadTotals, cut: &Fingerprint) -> Result<()> {
    let expected = read.bytes + read.added_bytes - read.skipped_bytes - read.header_bytes;
    let cut_bytes = match job.reaches(Stage::Cut) {
        true => cut.bytes + read.returns_bytes,
        false => read.record_bytes,
    };
    if expected == cut_bytes && read.record_bytes == cut_bytes {
        return Ok(());
    }
    let cause = format!(
        "{} bytes were read and {} bytes of records were cut out of them",
        text::count(expected),
        text::count(cut_bytes)
    );
    Err(lost(cause))
}

/// What is read in parts is read once, all of it: that parts which were forgotten lack on both sides of all other proofs.
pub fn check_all_read(input_bytes: u64, read_bytes: u64) -> Result<()> {
    if input_bytes == read_bytes {
        return Ok(());
    }
    let cause = format!(
        "the inputs have {} bytes and {} of them came to the partitions",
        text::count(input_bytes),
        text::count(read_bytes)
    );
    Err(lost(cause))
}

/// What was made of the output was put into its buffers, all of it.
pub fn compare_bytes(made: u64, put: u64) -> Result<()> {
    if made == put {
        return Ok(());
    }
    let cause = format!(
        "{} bytes of the output were made and {} were handed to the writer",
        text::count(made),
        text::count(put)
    );
    Err(lost(cause))
}

/// The proof: what came out of a hop is what went in.
pub fn compare(before: &Fingerprint, after: &Fingerprint) -> Result<()> {
    if before == after {
        return Ok(());
    }
    let cause = format!(
        "{} records of {} bytes went in and {} of {} came out, or some were altered",
        text::count(before.records),
        text::count(before.bytes),
        text::count(after.records),
        text::count(after.bytes),
    );
    let hint = "This is a fault of sortmill or of this machine's memory. No output was made.";
    Err(lost(cause).hint(hint))
}

/// Fails if the inputs do not hold what another job wrote.
pub fn check_expected(job: &Job, input: &Fingerprint) -> Result<()> {
    let Some(wanted) = job.expects.filter(|wanted| wanted != input) else {
        return Ok(());
    };
    let cause = format!(
        "{} records of {} bytes were written, and {} of {} came back, or others",
        wanted.records, wanted.bytes, input.records, input.bytes
    );
    let doing = "comparing what a job read with what the one before it wrote";
    let error = Error::new(ErrorKind::Corrupt, doing, cause);
    Err(match job.inputs.first() {
        Some(input) => error.at(input.path()),
        None => error,
    })
}
