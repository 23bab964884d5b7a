//! `sortmill sort`

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use sortmill::cluster::{NODE_COUNT_MAX, On};
use sortmill::disk::Known;
use sortmill::error::{Error, Result};
use sortmill::io::Os;
use sortmill::job::{Boundaries, Job, Output, UNTIL_STAGES};
use sortmill::metrics::Stage;
use sortmill::parts::{PartCut, PartName, Parts};
use sortmill::report::{plan_lines, temp_lines};
use sortmill::run;

use crate::common::{Machine, Shape, inputs, print, say, stop_on_signals};
use crate::disks;
use crate::progress;
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

    /// Write several files to the folder DIR, one for each partition, and a manifest. DIR appears whole or not at
    /// all; it may be empty. The files one after the other are what -o would write
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    parts: Option<PathBuf>,

    /// As few even files as keep each of them within SIZE and one record
    #[arg(long, value_name = "SIZE", value_parser = size::parse_bytes, requires = "parts",
        conflicts_with_all = ["part_count", "output"])]
    part_size: Option<u64>,

    /// Just N even files, the same whatever the memory, threads and back end; with uniform boundaries, N even
    /// stretches of the key space
    #[arg(long, value_name = "N", requires = "parts", conflicts_with = "output")]
    part_count: Option<u64>,

    /// What the files are called: {} is their number, {:05} with at least five digits
    #[arg(
        long,
        value_name = "NAME",
        requires = "parts",
        conflicts_with = "output",
        default_value_t
    )]
    part_name: PartName,

    /// DIR may hold the files of an earlier run, and nothing else: they are replaced when the new ones are complete
    #[arg(long, requires = "parts", conflicts_with = "output")]
    overwrite: bool,

    /// Where partitions are cut: `sample` (as the input's keys lie), `uniform` (the key space evenly), or the
    /// manifest of an earlier run, whose keys then cut the files of --parts too
    #[arg(long, value_name = "sample|uniform|FILE", default_value = "sample", value_parser = parse_boundaries)]
    boundaries: Boundaries,

    /// Use at most so much memory: 2GiB, 2G (the same), 2GB (2,000,000,000 bytes), 25%. Default: half of
    /// what the machine or the cgroup has left
    #[arg(short = 'S', long, value_name = "SIZE", value_parser = size::parse)]
    memory: Option<Size>,

    /// Folder for temporary files. Several, each with a --temp of its own, are used at once: temporary data are spread
    /// over them by speed and free space. Default: $TMPDIR unless that is in memory, else the output's folder
    #[arg(short = 'T', long, value_name = "DIR")]
    temp: Vec<PathBuf>,

    /// Keep temporary data in a file of their own. Default: with one folder on the output's file system they lie in
    /// the output's space, which is written over them
    #[arg(long)]
    temp_apart: bool,

    /// Share the work between N processes on this machine, which send each other their records; memory and threads
    /// are divided among them, and the output is the same. Reads files and writes one (-o)
    #[arg(long, value_name = "local:N", value_parser = parse_on,
        conflicts_with_all = ["parts", "until", "trace", "probe"])]
    on: Option<u32>,

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

    /// Leave out up to N bad records (cut off, or longer than half the memory) and count them
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip_bad: u64,

    /// Run to the end of STAGE and throw away what comes out of it, to see what each costs: read, cut,
    /// partition, spill, load, sort, reduce (gathering included). No output is opened
    #[arg(long, value_name = "STAGE", value_parser = parse_until)]
    until: Option<Stage>,

    /// Print the plan and stop: sizes, partitions, memory, temporary space, passes
    #[arg(long)]
    dry_run: bool,

    /// Print the plan before, and the whole report after
    #[arg(short, long)]
    verbose: bool,

    /// No report on stderr, and no progress unless --progress asks for it
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,

    #[command(flatten)]
    progress: progress::Flag,

    /// Write to FILE what each thread did when, as a trace that Perfetto (ui.perfetto.dev) opens
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Write the report to FILE as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Once the output has its name, measure for two seconds what the device that bound the job does alone,
    /// so that the verdict can tell its share. Default: with -v, and after jobs of a minute or more
    #[arg(long, overrides_with = "no_probe")]
    probe: bool,

    /// Do not
    #[arg(long)]
    no_probe: bool,
}

impl Sort {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode> {
        let os = self.machine.open()?;
        let mut job = self.job(&os);
        let stop = stop_on_signals();
        let temps = run::folders(&job, &os)?.temps;
        let known: Vec<Option<Known>> = temps.iter().map(|temp| disks::known(&os, temp)).collect();
        job.disks = known.iter().map(disks::figures).collect();
        let prepared = run::prepare(&job, &os)?;
        let mut plan = plan_lines(&prepared.plan) + &temp_lines(&prepared.temps);
        for (known, temp) in known.iter().zip(&temps) {
            plan += &disks::advice(known.as_ref(), &os, temp);
        }
        if self.dry_run {
            print(&plan)?;
            return Ok(ExitCode::SUCCESS);
        }
        if self.verbose {
            say(&plan);
        }
        // A report that cannot be written shows before the work, not after the output has its name.
        let report_file = SideFile::open(self.report.as_deref(), "writing the report")?;
        let trace_file = SideFile::open(self.trace.as_deref(), "writing the trace")?;
        let shown = self.shown(&job);
        job.progress = shown.as_ref().map(|_| Arc::default());
        let sort = || run::sort_prepared(&job, prepared, &os, &stop);
        let report = progress::show(shown, job.progress.as_ref(), &os, &stop, sort)?;
        if let Some(file) = report_file {
            file.write(|out| out.write_all(report.to_json().as_bytes()))?;
        }
        if let (Some(file), Some(trace)) = (trace_file, &job.trace) {
            file.write(|out| trace.write(out))?;
        }
        if self.verbose {
            say(&report.details());
        } else if !self.quiet {
            say(&report.summary());
        }
        Ok(ExitCode::SUCCESS)
    }

    fn shown(&self, job: &Job) -> Option<progress::Shown> {
        let output = job.until.is_none().then_some(&job.output);
        self.progress.shown(self.quiet, &job.inputs, output)
    }

    fn job(&self, os: &dyn Os) -> Job {
        let total = os.machine().memory_bytes_total;
        let output = match (&self.output, &self.parts) {
            (Some(path), _) if path.as_os_str() != "-" => Output::Path(path.clone()),
            (_, Some(folder)) => Output::Parts(Parts {
                folder: folder.clone(),
                cut: match (self.part_size, self.part_count) {
                    (Some(size), _) => PartCut::Bytes(size),
                    (_, Some(count)) => PartCut::Count(count),
                    _ => PartCut::Partitions,
                },
                name: self.part_name.clone(),
                overwrite: self.overwrite,
            }),
            _ => Output::Stdout,
        };
        let mut job = Job::new(inputs(&self.files), output, self.shape.format);
        job.keys.clone_from(&self.shape.keys);
        job.boundaries.clone_from(&self.boundaries);
        job.memory_bytes = self.memory.map(|size| size.of(total));
        job.temps.clone_from(&self.temp);
        job.temp_apart = self.temp_apart;
        job.on = self.on.map(|node_count| On {
            node_count,
            // This very program, even if another one has its name by now.
            program: "/proc/self/exe".into(),
            words: self.machine.node_words(),
        });
        job.threads = self.threads.map(usize::from);
        job.verify = match (self.verify, self.no_verify) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        };
        job.as_of_start = self.as_of_start;
        job.skip_bad = self.skip_bad;
        job.until = self.until;
        job.trace = self.trace.as_ref().map(|_| Arc::default());
        job.probe = match (self.probe || self.verbose, self.no_probe) {
            (_, true) => Some(false),
            (true, _) => Some(true),
            _ => None,
        };
        job
    }
}

/// Any path may be a manifest's, also one called as a word is: `./uniform`.
fn parse_boundaries(text: &str) -> std::result::Result<Boundaries, String> {
    Ok(match text {
        "sample" => Boundaries::Sample,
        "uniform" => Boundaries::Uniform,
        path => Boundaries::Manifest(path.into()),
    })
}

fn parse_on(text: &str) -> std::result::Result<u32, String> {
    let count = text
        .strip_prefix("local:")
        .ok_or("nodes run on this machine: local:N, N of them")?;
    match count.parse() {
        Ok(count @ 1..=NODE_COUNT_MAX) => Ok(count),
        _ => Err(format!(
            "{count:?} is no number of nodes from 1 to {NODE_COUNT_MAX}"
        )),
    }
}

fn parse_until(text: &str) -> std::result::Result<Stage, String> {
    let named = UNTIL_STAGES.into_iter().find(|stage| stage.name() == text);
    named.ok_or_else(|| {
        let names = UNTIL_STAGES.map(Stage::name).join(", ");
        format!("the stages to end after are {names}")
    })
}

/// A file that tells about the job: open before it begins, filled when it has ended well.
struct SideFile {
    file: File,
    path: PathBuf,
    doing: &'static str,
}

impl SideFile {
    fn open(path: Option<&Path>, doing: &'static str) -> Result<Option<Self>> {
        let Some(path) = path else { return Ok(None) };
        let opened = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let file = opened.map_err(|error| Error::io(doing, path, &error))?;
        let path = path.to_owned();
        Ok(Some(Self { file, path, doing }))
    }

    fn write(&self, put: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let is_file = self.file.metadata().is_ok_and(|meta| meta.is_file());
        let write = || {
            if is_file {
                self.file.set_len(0)?;
            }
            let mut out = BufWriter::new(&self.file);
            put(&mut out)?;
            out.flush()
        };
        write().map_err(|error| Error::io(self.doing, &self.path, &error))
    }
}
