//! `sortmill check`: flags in, a [`Check`] or a merge of summaries out, and the result on standard output.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use sortmill::check::{
    Checked, THREADS_MAX, Unordered, check, check_parts, is_the_benchmarks, merge, write_summary,
};
use sortmill::error::{Error, ErrorKind, Result};
use sortmill::io::Os;
use sortmill::job::Input;
use sortmill::order::Order;
use sortmill::queue::Stop;
use sortmill::summary::Summary;

use crate::common::{Machine, Shape, inputs, note, print};
use crate::place::Place;
use crate::progress;
use crate::signals::stop_on_signals;

/// Check that records are in order, and sum them up
///
/// Reads the files once, as if they were one, and prints how many records there are, the sum of their CRC-32
/// in hexadecimal (it is the same before and after sorting), how many have the same key as the one before,
/// and whether they are in order. If not: how many have a lesser key than the one before, and which is the
/// first of those, counted from 0 over all files.
///
/// Exit status: 0 in order, 1 out of order, or not as a manifest says, 2 trouble. No record at all is in order, but makes no summary:
/// with --summary or --merge the status is then 1.
#[derive(clap::Args)]
pub struct Check {
    /// Files to check, in order; `-` or none is standard input
    files: Vec<PathBuf>,

    #[command(flatten)]
    shape: Shape,

    /// Check inputs as they are, even if they begin as .gz, .zst, .lz4, .bz2 and .xz files do. Default: such files, and
    /// standard input, are decompressed, and offsets are those of what they were
    #[arg(long)]
    no_decompress: bool,

    /// The first N lines of each input are no records
    #[arg(long, value_name = "N", default_value_t = 0)]
    header: u64,

    /// Write the benchmark's summary of 280 bytes to OUT; needs --format fixed:100 --key 0:10
    #[arg(long, value_name = "OUT")]
    summary: Option<PathBuf>,

    /// The files are not records but summaries, one or more in each, in order: print what they add up to
    #[arg(long, conflicts_with_all = ["format", "keys", "by", "no_header", "delimiter", "quote", "nulls", "header",
        "no_decompress", "threads", "progress"])]
    merge: bool,

    /// Check the parts that `sort --parts` made against the manifest in DIR: nothing missing, added, altered or out of
    /// order. The manifest says what format and key they have
    #[arg(long, value_name = "DIR", conflicts_with_all = ["files", "format", "keys", "by", "no_header", "delimiter", "quote",
        "nulls", "header", "no_decompress", "summary", "merge"])]
    parts: Option<PathBuf>,

    /// Threads that look at records, at most 64. Default: one per core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=THREADS_MAX as i64))]
    threads: Option<u16>,

    #[command(flatten)]
    machine: Machine,

    /// Print no result; the exit status tells it. No progress unless --progress asks for it
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    progress: progress::Flag,
}

/// What is printed.
struct Outcome {
    records: u128,
    checksum: u128,
    duplicates: u128,
    unordered: u128,
    /// The number of the first unordered record, if there is one.
    first: u128,
    /// Where it is, if that is known.
    place: Option<Unordered>,
    /// The summary, if there can be one.
    summary: Option<Summary>,
}

impl Check {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode> {
        let os = self.machine.open()?;
        let stop = stop_on_signals();
        if let Some(folder) = &self.parts {
            return self.run_parts(folder, &os, &stop);
        }
        if let Some(out) = &self.summary {
            self.refuse_useless_summary(&os, out)?;
        }
        let outcome = self.outcome(&os, &stop)?;
        let summary_wanted = self.merge || self.summary.is_some();
        let no_summary = summary_wanted && outcome.records == 0;
        if let (Some(out), Some(summary), false) = (&self.summary, &outcome.summary, no_summary) {
            write_summary(summary, out, &os, &stop)?;
        }
        if !self.quiet {
            print(&outcome.lines(no_summary))?;
        }
        if no_summary {
            note("there is no record, so there is no summary");
        }
        Ok(ExitCode::from(u8::from(
            outcome.unordered > 0 || no_summary,
        )))
    }

    fn run_parts(&self, folder: &Path, os: &dyn Os, stop: &Stop) -> Result<ExitCode> {
        let shown = self.progress.shown(self.quiet, &[], None);
        let progress = shown.as_ref().map(|_| Arc::default());
        let threads = self.threads.map(usize::from);
        let check = || check_parts(folder, threads, progress.as_deref(), os, stop);
        let checked = progress::show(shown, progress.as_ref(), os, stop, check)?;
        let agrees = checked.faults.is_empty();
        if !self.quiet {
            let mut lines = format!(
                "parts: {}\nrecords: {}\nchecksum: {:x}\n",
                checked.part_count, checked.fingerprint.records, checked.checksum,
            );
            if !checked.shuffled {
                lines += &format!("duplicate keys: {}\n", checked.duplicates);
            }
            for fault in &checked.faults {
                lines += fault;
                lines += "\n";
            }
            if agrees {
                lines += match checked.shuffled {
                    true => "shuffled, and as the manifest says\n",
                    false => "in order, and as the manifest says\n",
                };
            }
            print(&lines)?;
        }
        Ok(ExitCode::from(u8::from(!agrees)))
    }

    fn outcome(&self, os: &dyn Os, stop: &Stop) -> Result<Outcome> {
        let inputs = inputs(&self.files);
        if self.merge {
            return merge(&inputs, os, stop).map(Outcome::of_summary);
        }
        let shown = self.progress.shown(self.quiet, &inputs, None);
        let job = sortmill::check::Check {
            keys: self.shape.parts()?,
            line_order: self.shape.line_order()?,
            columns: self.shape.columns()?,
            decompress: !self.no_decompress,
            header_lines: self.header,
            threads: self.threads.map(usize::from),
            fingerprint_key: os.random(),
            progress: shown.as_ref().map(|_| Arc::default()),
            ..sortmill::check::Check::new(inputs, self.shape.records()?)
        };
        let check = || check(&job, os, stop);
        let checked = progress::show(shown, job.progress.as_ref(), os, stop, check);
        checked.map(Outcome::of_records)
    }

    /// Refuses a summary that could not be written, or that would take the place of what it is about, before
    /// hours are spent on it.
    fn refuse_useless_summary(&self, os: &dyn Os, out: &Path) -> Result<()> {
        let refuse = |cause: &str, hint: &str| {
            let error = Error::new(ErrorKind::Usage, "reading the flags", cause);
            Err(if hint.is_empty() {
                error
            } else {
                error.hint(hint)
            })
        };
        let is_wanted = self.shape.columns()?.is_none() && {
            let order = Order::new(self.shape.records()?, &self.shape.parts()?)?;
            is_the_benchmarks(&order)
        };
        if !self.merge && !is_wanted {
            let cause = "--summary is about records of 100 bytes with a key of 10";
            return refuse(cause, "Give --format fixed:100 --key 0:10.");
        }
        if out == Path::new("-") {
            let cause = "the summary cannot go to standard output, where the result goes";
            return refuse(cause, "Name a file for it.");
        }
        let place = Place::of(out);
        let reads = |input: &Input| match input {
            Input::Stdin => place.is(&Place::of_open(std::io::stdin().as_fd())),
            Input::Path(file) => place.is(&Place::of(file)),
            Input::Made(_) => false,
        };
        if inputs(&self.files).iter().any(reads) {
            return refuse("the summary would replace a file that is read", "");
        }
        sortmill::commit::Target::find(os, out).map(drop)
    }
}

impl Outcome {
    fn of_records(checked: Checked) -> Self {
        let first = checked.first_unordered.as_ref();
        Self {
            records: checked.fingerprint.records.into(),
            checksum: checked.checksum,
            duplicates: checked.duplicates.into(),
            unordered: checked.unordered.into(),
            first: first.map_or(0, |place| place.record.into()),
            place: checked.first_unordered,
            summary: checked.summary,
        }
    }

    fn of_summary(summary: Summary) -> Self {
        Self {
            records: summary.record_count,
            checksum: summary.checksum,
            duplicates: summary.duplicate_count,
            unordered: summary.unordered_count,
            first: summary.first_unordered,
            place: None,
            summary: Some(summary),
        }
    }

    /// The result, for standard output. That no record is in order is not said where one was needed.
    fn lines(&self, no_summary: bool) -> String {
        let mut lines = format!(
            "records: {}\nchecksum: {:x}\nduplicate keys: {}\n",
            self.records, self.checksum, self.duplicates
        );
        if self.unordered == 0 {
            let order = if no_summary { "" } else { "in order\n" };
            return lines + order;
        }
        lines += &format!(
            "out of order: {}, the first is record {}",
            self.unordered, self.first
        );
        if let Some(place) = &self.place {
            let file = if place.path == Path::new("-") {
                "standard input".into()
            } else {
                place.path.display().to_string()
            };
            lines += &format!(", at byte {} of {file}", place.offset);
        }
        lines + "\n"
    }
}
