//! `sortmill sort`

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sortmill::disk::Known;
use sortmill::error::{Error, Result};
use sortmill::io::Os;
use sortmill::job::{Job, Output};
use sortmill::report::plan_lines;
use sortmill::run;

use crate::common::{Machine, Shape, inputs, print, say, stop_on_signals};
use crate::disks;
use crate::size::{self, Size};

/// Sort records of files or standard input
#[derive(Args)]
pub struct Sort {
    /// Files to sort, in the order in which equal records come out; `-` or none is standard input
    files: Vec<PathBuf>,

    #[command(flatten)]
    shape: Shape,

    /// Write to FILE instead of standard output; may be an input. It appears whole or not at all
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Use at most so much memory: 2GiB, 2G (the same), 2GB (2,000,000,000 bytes), 25%. Default: half of
    /// what the machine or the cgroup has left
    #[arg(short = 'S', long, value_name = "SIZE", value_parser = size::parse)]
    memory: Option<Size>,

    /// Folder for temporary files. Default: $TMPDIR unless that is in memory, else the output's folder
    #[arg(short = 'T', long, value_name = "DIR")]
    temp: Option<PathBuf>,

    /// Threads that compute. Default: one per core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    #[command(flatten)]
    machine: Machine,

    /// Read the output again from the device before it gets its name. Default: if it is also an input
    #[arg(long, overrides_with = "no_verify")]
    verify: bool,

    /// Do not, even if it is
    #[arg(long)]
    no_verify: bool,

    /// Ignore what is appended to an input after the start
    #[arg(long)]
    as_of_start: bool,

    /// Leave out up to N bad records (cut off, or too long for the memory) and count them
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip_bad: u64,

    /// Print the plan and stop: sizes, partitions, memory, temporary space, passes
    #[arg(long)]
    dry_run: bool,

    /// Print the plan before, and the whole report after
    #[arg(short, long)]
    verbose: bool,

    /// No report on stderr
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,

    /// Write the report to FILE as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl Sort {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode> {
        let os = self.machine.open()?;
        let mut job = self.job(&os);
        let stop = stop_on_signals();
        let temp = run::temp_folder(&job, &os)?;
        let known = disks::known(&os, &temp);
        if let Some(Known::Figures(figures)) = &known {
            job.disk = Some(figures.clone());
        }
        let prepared = run::prepare(&job, &os)?;
        let plan = format!(
            "{}temporary folder {}\n{}",
            plan_lines(&prepared.plan),
            prepared.temp.display(),
            disks::advice(known.as_ref(), &os, &temp)
        );
        if self.dry_run {
            print(&plan)?;
            return Ok(ExitCode::SUCCESS);
        }
        if self.verbose {
            say(&plan);
        }
        // A report that cannot be written shows before the work, not after the output has its name.
        let report_file = self.report.as_deref().map(open_report).transpose()?;
        let report = run::sort_prepared(&job, prepared, &os, &stop)?;
        if let (Some(mut file), Some(path)) = (report_file, &self.report) {
            let is_file = file.metadata().is_ok_and(|meta| meta.is_file());
            let emptied = if is_file { file.set_len(0) } else { Ok(()) };
            let written = emptied.and_then(|()| file.write_all(report.to_json().as_bytes()));
            written.map_err(|error| report_failed(path, &error))?;
        }
        if self.verbose {
            say(&report.details());
        } else if !self.quiet {
            say(&report.summary());
        }
        Ok(ExitCode::SUCCESS)
    }

    fn job(&self, os: &dyn Os) -> Job {
        let output = match &self.output {
            Some(path) if path.as_os_str() != "-" => Output::Path(path.clone()),
            _ => Output::Stdout,
        };
        let mut job = Job::new(inputs(&self.files), output, self.shape.format);
        job.keys.clone_from(&self.shape.keys);
        let total = os.machine().memory_bytes_total;
        job.memory_bytes = self.memory.map(|size| size.of(total));
        job.temp.clone_from(&self.temp);
        job.threads = self.threads.map(usize::from);
        job.verify = match (self.verify, self.no_verify) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        };
        job.as_of_start = self.as_of_start;
        job.skip_bad = self.skip_bad;
        job
    }
}

fn open_report(path: &Path) -> Result<File> {
    let opened = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path);
    opened.map_err(|error| report_failed(path, &error))
}

fn report_failed(path: &Path, error: &std::io::Error) -> Error {
    Error::io("writing the report", path, error)
}
