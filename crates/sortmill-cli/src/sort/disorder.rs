//! `sort -c` and `-C`: is it in order?
//!
//! One reading, through the engine's own check, which ends at the first record that is out of order. Exit 0 if there
//! is none, 1 if there is, with its line on stderr as GNU words it; 2 for trouble.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use sortmill::check::{Check, THREADS_MAX, Unordered, check};
use sortmill::error::Result;
use sortmill::io::Os;
use sortmill::job::Job;
use sortmill::order::Format;
use sortmill::queue::Stop;

use super::keys::refused;
use super::options::CheckWord;

/// Looks whether the one input of `job` is in the job's order.
///
/// # Errors
/// More than one input, and those of [`check`].
pub fn look(job: &Job, how: CheckWord, os: &dyn Os, stop: &Stop) -> Result<ExitCode> {
    if job.inputs.len() > 1 {
        return Err(refused(
            "one input is checked at a time, and several were named",
        ));
    }
    let threads = job.threads.map(|threads| threads.min(THREADS_MAX));
    let wanted = Check {
        keys: job.keys.clone(),
        line_order: job.line_order.clone(),
        columns: job.columns.clone(),
        unique: job.unique,
        decompress: job.decompress,
        header_lines: job.header_lines,
        threads,
        as_of_start: job.as_of_start,
        first_only: true,
        ..Check::new(job.inputs.clone(), job.format)
    };
    let Some(found) = check(&wanted, os, stop)?.first_unordered else {
        return Ok(ExitCode::SUCCESS);
    };
    if how == CheckWord::DiagnoseFirst {
        tell(job, &found);
    }
    Ok(ExitCode::from(1))
}

/// `sort: FILE:LINE: disorder: TEXT`, the text as it is, whatever bytes it has.
fn tell(job: &Job, found: &Unordered) {
    let name = job.inputs[0].path();
    let number = found.record + 1 + job.header_lines;
    let mut words = b"sort: ".to_vec();
    words.extend(name.as_os_str().as_bytes());
    match job.format {
        Format::Lines if job.columns.is_none() => {
            words.extend(format!(":{number}: disorder: ").bytes());
            words.extend(&found.text);
        }
        // Bytes that no terminal should be sent, or records that are not a line each.
        _ => {
            words.extend(format!(":{number}: disorder at byte {}\n", found.offset).bytes());
        }
    }
    // The exit status tells it too.
    let _ = std::io::stderr().write_all(&words);
}
