//! Files that tell about a job beside its output: `--report` and `--trace`.
//!
//! They are opened before the work, so that one that cannot be written shows then, and filled behind it. What is opened so
//! loses what it held, but what this process has for standard output or standard error: as `/dev/stderr`, say, it is written
//! on where that has come to. That none of them is what the job reads or writes is looked at before anything is done.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sortmill::error::{Error, Result};
use sortmill::job::{Boundaries, Job};
use sortmill::report::Report;
use sortmill::trace::Trace;

use super::keys::refused;
use super::{Sort, refusals};
use crate::common::tell;
use crate::place::Place;

/// Refuses a report or a trace that is a file which the job reads or writes: one of both would be lost.
///
/// # Errors
/// Both in words.
pub fn look(sort: &Sort) -> Result<()> {
    let sides = [("--report", &sort.report), ("--trace", &sort.trace)];
    let sides = sides.map(|(flag, path)| path.as_ref().map(|path| (flag, Place::of(path), path)));
    if let [Some((_, report, path)), Some((_, trace, _))] = &sides
        && report.is(trace)
    {
        return Err(same("--report and --trace", path));
    }
    for (flag, side, path) in sides.iter().flatten() {
        for (what, other) in others(sort) {
            if side.is(&other) {
                return Err(same(&format!("{flag} and {what}"), path));
            }
        }
    }
    Ok(())
}

fn same(both: &str, path: &Path) -> Error {
    let cause = format!("{both} are one file, which would be overwritten");
    refused(cause).at(path).hint("Give each a name of its own.")
}

/// What the job reads and writes beside.
fn others(sort: &Sort) -> Vec<(&'static str, Place)> {
    let mut others = Vec::new();
    let mut add = |what, path: &Path| others.push((what, Place::of(path)));
    for file in &sort.files {
        if file.as_os_str() != "-" {
            add("an input", file);
        }
    }
    match (refusals::output(sort), &sort.parts) {
        (Some(output), _) => add("the output", &output),
        (None, Some(folder)) => add("the output", folder),
        (None, None) => {}
    }
    for source in &sort.gnu.random_source {
        add("--random-source", source);
    }
    if let Boundaries::Manifest(manifest) = &sort.boundaries {
        add("--boundaries", manifest);
    }
    if let Some(from) = &sort.gnu.files0_from {
        others.push(match from.as_os_str() == "-" {
            true => ("--files0-from", Place::of_open(io::stdin().as_fd())),
            false => ("--files0-from", Place::of(from)),
        });
    }
    let reads_stdin =
        sort.files.is_empty() || sort.files.iter().any(|file| file.as_os_str() == "-");
    if reads_stdin {
        others.push(("standard input", Place::of_open(io::stdin().as_fd())));
    }
    if sort.output.is_empty() && sort.parts.is_none() && sort.until.is_none() {
        others.push(("standard output", Place::of_open(io::stdout().as_fd())));
    }
    others
}

/// Where a job's report and its trace go.
pub struct Sides {
    report: Option<SideFile>,
    traced: Traced,
}

impl Sides {
    /// Opens them: one that cannot be written shows before the work, not after the output has its name.
    pub fn open(sort: &Sort, job: &Job) -> Result<Self> {
        let report = SideFile::open(sort.report.as_deref(), "writing the report")?;
        let trace = SideFile::open(sort.trace.as_deref(), "writing the trace")?;
        let traced = Traced(trace.zip(job.trace.clone()));
        Ok(Self { report, traced })
    }

    pub fn write(mut self, report: &Report) -> Result<()> {
        if let Some(file) = &self.report {
            file.write(|out| out.write_all(report.to_json().as_bytes()))?;
        }
        self.traced.write()
    }
}

/// Where a trace goes. Dropped before it was written, as of a job that failed or panicked, it is written as far as
/// that came.
struct Traced(Option<(SideFile, Arc<Trace>)>);

impl Traced {
    fn write(&mut self) -> Result<()> {
        let Some((file, trace)) = self.0.take() else {
            return Ok(());
        };
        file.write(|out| trace.write(out))
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        // Why the job failed is told by others.
        if let Err(error) = self.write() {
            tell(&error);
        }
    }
}

/// A file that tells about the job: open before it begins, filled when it has ended.
pub struct SideFile {
    file: File,
    /// It loses what it held.
    is_new: bool,
    path: PathBuf,
    doing: &'static str,
}

impl SideFile {
    pub fn open(path: Option<&Path>, doing: &'static str) -> Result<Option<Self>> {
        let Some(path) = path else { return Ok(None) };
        let opened = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let wrong = |error| Error::io(doing, path, &error);
        let (mut file, mut is_new) = (opened.map_err(wrong)?, true);
        let place = Place::of_open(file.as_fd());
        let (out, err) = (io::stdout(), io::stderr());
        let mut streams = [out.as_fd(), err.as_fd()].into_iter();
        if let Some(stream) = streams.find(|&stream| place.is(&Place::of_open(stream))) {
            file = stream.try_clone_to_owned().map_err(wrong)?.into();
            is_new = false;
        }
        Ok(Some(Self {
            file,
            is_new,
            path: path.to_owned(),
            doing,
        }))
    }

    pub fn write(&self, put: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let is_file = self.file.metadata().is_ok_and(|meta| meta.is_file());
        let write = || {
            if is_file && self.is_new {
                self.file.set_len(0)?;
            }
            let mut out = BufWriter::new(&self.file);
            put(&mut out)?;
            out.flush()
        };
        write().map_err(|error| Error::io(self.doing, &self.path, &error))
    }
}
