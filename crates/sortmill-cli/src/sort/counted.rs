//! `count --by-count`: lines are counted by one job, and their counts are sorted by another.
//!
//! The first one writes lines with counts, in the order of the lines, to a file among the temporary ones; the second sorts
//! those by count alone and keeps the order of equal ones. So each has all the memory, and none waits for the other.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::ExitCode;

use sortmill::between::Between;
use sortmill::error::{Error, Result};
use sortmill::io::Host;
use sortmill::job::{Input, Job, Output};
use sortmill::line_keys::{Compare, Ignore, KeyEnd, KeyStart, LastResort, LineKey, LineOrder};
use sortmill::order::Format;
use sortmill::queue::Stop;
use sortmill::report::Report;
use sortmill::run;
use sortmill::yields::Yield;

use super::Sort;
use super::side::SideFile;
use crate::common::{print, say};
use crate::progress::Shown;
use crate::signals::Signals;

impl Sort {
    /// Counts the lines of `job`, which writes counts, and puts the most frequent first, at most `first` of them.
    pub(super) fn rank(
        &self,
        job: &Job,
        first: Option<u64>,
        os: &Host,
        signals: &Signals,
    ) -> Result<ExitCode> {
        let folders = run::folders(job, os)?;
        let folder = &folders.temps[0];
        if self.dry_run {
            let mut counting = job.clone();
            counting.output = Output::Path(folder.join(".counts"));
            counting.compress = None;
            self.sort(counting, os, signals)?;
            print("then the counts, of which nobody knows how many there will be, are sorted\n")?;
            return Ok(ExitCode::SUCCESS);
        }
        let stop = signals.watched();
        let between = Between::new(os, folder)?;
        let report_file = SideFile::open(self.report.as_deref(), "writing the report")?;
        let mut counting = job.clone();
        counting.output = Output::Path(between.path.clone());
        counting.compress = None;
        // Nobody's file is replaced, and it is compared when it is read.
        counting.verify = Some(false);
        counting.number = Some(between.number);
        let shown = self.shown(&counting).map(Shown::of_first);
        let counted = self.work(counting, shown, os, stop)?;
        // Or the two would hold memory for each other.
        stop.forget();
        let mut ordering = ordering(job, first, &between);
        // Of inputs that have no more lines it is shorter than was asked for.
        ordering.header_lines = lines_of(&between.path, counted.bytes.header, job)?;
        let shown = self.shown(&ordering);
        let mut ordered = self.work(ordering, shown, os, stop)?;
        between.prove(&counted, &ordered)?;
        ordered.before = Some(Box::new(counted));
        if let Some(file) = report_file {
            file.write(|out| out.write_all(ordered.to_json().as_bytes()))?;
        }
        if let Some(counted) = &ordered.before {
            self.tell(counted);
        }
        self.tell(&ordered);
        Ok(ExitCode::SUCCESS)
    }

    /// Runs one of several jobs that were asked for as one.
    fn work(&self, mut job: Job, shown: Option<Shown>, os: &Host, stop: &Stop) -> Result<Report> {
        let sources = run::open(&job, os)?;
        let (prepared, plan) = self.prepare(&mut job, sources, os)?;
        if self.verbose {
            say(&plan);
        }
        self.work_on(&mut job, prepared, shown, os, stop)
    }
}

/// The job that sorts what was counted to where it is wanted.
fn ordering(job: &Job, first: Option<u64>, between: &Between<'_>) -> Job {
    let input = Input::Path(between.path.clone());
    let output = job.output.clone();
    Job {
        inputs: vec![input],
        output,
        decompress: false,
        format: Format::Lines,
        line_order: Some(by_count(job)),
        yields: first.map_or(Yield::All, Yield::First),
        number: Some(between.number),
        map: None,
        map_makes_pairs: false,
        map_keeps_state: false,
        map_ends_in_pieces: false,
        as_of_start: false,
        skip_bad: 0,
        ..job.clone()
    }
}

/// How many lines the first `bytes` bytes of a file are.
fn lines_of(path: &Path, bytes: u64, job: &Job) -> Result<u64> {
    let wrong = |error: std::io::Error| Error::io("reading the header again", path, &error);
    let file = std::fs::File::open(path).map_err(wrong)?;
    let lines = BufReader::new(file.take(bytes)).split(delimiter(job));
    let count = lines
        .map(|line| line.map(|_| 1))
        .sum::<std::io::Result<u64>>();
    count.map_err(wrong)
}

/// What ends a line.
fn delimiter(job: &Job) -> u8 {
    let order = job.line_order.as_ref();
    order.map_or(b'\n', |order| order.delimiter)
}

/// By the number that a line begins with, the greatest first; equal ones stay as they are.
fn by_count(job: &Job) -> LineOrder {
    LineOrder {
        delimiter: delimiter(job),
        separator: None,
        keys: vec![LineKey {
            start: KeyStart {
                field: 1,
                byte: 1,
                skip_blanks: false,
            },
            end: Some(KeyEnd {
                field: 1,
                byte: 0,
                skip_blanks: false,
            }),
            compare: Compare::Number,
            ignore: Ignore::None,
            fold: false,
            reversed: true,
        }],
        last_resort: LastResort::Place,
        unique: false,
    }
}
