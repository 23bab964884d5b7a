//! The output once again, before it gets its name: did it come back from the device as it was written?
//!
//! In come the file under its temporary name and the fingerprint of what was written to it, out goes nothing
//! or an error. The bytes take the way of a check, past the page cache, through the job's own buffers.

use std::path::Path;

use sortmill_io::Access;
use sortmill_io::codec::Sniffed;
use sortmill_io::sync::Arc;

use super::Walk;
use super::row::Row;
use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::job::{Job, Output};
use crate::metrics::Stage;
use crate::plan::Plan;
use crate::run::Shared;
use crate::stage::read::Source;
use crate::text;
use crate::yields::Yield;

const DOING: &str = "reading the output again";

/// Reads the written and synced output at `path` again, from the device where direct I/O is possible, and
/// holds it against what was written. Its memory is the job's chunk buffers, which must all be free. Answers the processor
/// time that it took, of one thread.
///
/// Of keys of more than 1 MiB that begin alike the order is not compared again; the fingerprint covers all bytes.
/// A reduce function's records and lines with counts have an order of their own, so of them only the fingerprint is
/// compared, and of an order that was drawn, of which no record tells. `breaks` is how
/// many records were written that sort before the one before them: none, but where inputs are merged that are not in
/// order.
///
/// # Errors
/// [`ErrorKind::Corrupt`] that names the output, and the place if its order is broken, when it did not come
/// back as `written`, behind `header`; else the system's.
pub fn verify(
    job: &Job,
    shared: &Shared<'_>,
    path: &Path,
    (header, written): (&[u8], &Fingerprint),
    breaks: u64,
) -> Result<u64> {
    let Shared { os, plan, .. } = *shared;
    let before = os.usage();
    let plan = &of_output(job, plan);
    // The temporary name goes with the error, so it is told under the one that was asked for.
    let name = match &job.output {
        Output::Path(name) => name,
        Output::Stdout | Output::Parts(_) => path,
    };
    let failed = |error: std::io::Error| Error::io(DOING, name, &error);
    let file = os.open(path, Access::Direct).map_err(failed)?;
    let meta = os.meta(&file).map_err(failed)?;
    let _begun = shared.begun("verify");
    let mut meter = shared.meter("verify", &[Stage::Read], os.now_ns());
    let sources = [Source {
        begins_anew: false,
        file: Arc::new(file),
        meta,
        codec: job.compress.map(|compress| Sniffed::of(compress.codec)),
        ahead: Vec::new(),
        made: None,
    }];
    let row = Walk {
        os,
        stop: shared.stop,
        plan,
        sources: &sources,
        pool: &shared.chunk_pool,
        fingerprint_key: shared.number,
        checksum: false,
        first_only: false,
        as_of_start: false,
        told: &|error| told_of_output(error, name),
        head_bytes: verified_head_bytes(plan),
        // An input that ended within its heading left less of it.
        header_lines: plan.order.whole_records(header).unwrap_or(0),
        header: None,
    }
    .run(Row::default(), &mut meter)?;
    drop(meter.finish(Stage::Read));
    if row.header != header {
        return Err(came_back_wrong("its first lines differ", name).offset(0));
    }
    let is_ordered = job.reduce.is_none() && !job.yields.is_counted();
    match (row.first_unordered, is_ordered) {
        (Some(found), true) if breaks == 0 => {
            let what = format!("record {} sorts before the one before it", found.record);
            return Err(came_back_wrong(&what, name).offset(found.offset));
        }
        (_, true) if row.unordered != breaks => {
            let what = format!(
                "{} records sort before the one before them, and {breaks} did",
                row.unordered
            );
            return Err(came_back_wrong(&what, name));
        }
        _ => {}
    }
    if row.fingerprint == *written {
        return Ok(os.usage().cpu_ns - before.cpu_ns);
    }
    Err(came_back_wrong(
        &difference(written, &row.fingerprint),
        name,
    ))
}

/// The plan, but its inputs hold what the output of `job` holds: of pairs, those or lines that were counted.
fn of_output(job: &Job, plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    if let (Some(order), Yield::Runs(_)) = (plan.input_order.take(), job.yields) {
        plan.order = order;
    }
    plan
}

/// Bytes of a long record's key that are compared with its neighbours': what is beyond them only the fingerprint
/// proves, so that two of half the memory need not be in it. `None` where records are taken whole.
pub(super) fn verified_head_bytes(plan: &Plan) -> Option<usize> {
    const HEAD_BYTES: usize = 1 << 20;
    plan.takes_parts.then_some(HEAD_BYTES)
}

/// In what the records that came back differ from those that were written.
pub(super) fn difference(written: &Fingerprint, back: &Fingerprint) -> String {
    let of = |sum: &Fingerprint| {
        let (records, bytes) = (text::count(sum.records), text::count(sum.bytes));
        format!("{records} records of {bytes} bytes")
    };
    format!(
        "{} were written and {} came back, or some were altered",
        of(written),
        of(back)
    )
}

/// What the reader found wrong with an input, if that input is the output.
pub(super) fn told_of_output(error: Error, name: &Path) -> Error {
    let offset = error.offset;
    let mut told = match error.kind {
        ErrorKind::Input | ErrorKind::Changed => came_back_wrong(&error.cause, name),
        ErrorKind::Io => {
            let mut error = error.at(name);
            error.doing = DOING.into();
            error
        }
        _ => return error,
    };
    told.offset = offset;
    told
}

pub(super) fn came_back_wrong(what: &str, name: &Path) -> Error {
    let cause = format!(
        "it did not come back from the device as it was written ({what}), and was not given its name"
    );
    Error::new(ErrorKind::Corrupt, DOING, cause).at(name).hint(
        "What had this name before is still there. The device, or what lies between it and this \
             machine, is at fault: write to another one.",
    )
}
