//! `sortmill sort`, the commands that share its table (`merge`, `shuffle`, `uniq`, `count`, `top`), and the program itself
//! where it is called `sort`.
//!
//! Words are read in GNU's way ([`words`]), then by clap, whose table holds GNU's options ([`options`]) and our own; the
//! simplest without it ([`letters`]). [`refusals`] looks at them as a whole, [`keys`] makes an order of lines out of them.
//! What comes out is a [`Job`] for the engine, or a check of one input ([`disorder`]).

mod annotate;
mod called;
mod counted;
mod disorder;
mod doubts;
mod files_from;
pub mod keys;
mod letters;
mod locale;
pub mod made;
pub mod options;
mod refusals;
mod side;
pub mod silent;
mod words;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{ArgAction, Args};
use sortmill::cluster::{NODE_COUNT_MAX, On};
use sortmill::disk::Known;
use sortmill::error::{Error, ErrorKind, Result};
use sortmill::io::codec::{BlockCodec, CODECS, Codec};
use sortmill::io::{Host, Os, sync};
use sortmill::job::{
    Boundaries, Compress, CompressTemp, Disorder, Input, Job, Output, UNTIL_STAGES,
};
use sortmill::line_keys::LineOrder;
use sortmill::metrics::Stage;
use sortmill::parts::{PartCut, PartName, Parts};
use sortmill::queue::Stop;
use sortmill::report::{DryRun, Report, plan_lines, temp_lines};
use sortmill::run::{self, Prepared, Small};
use sortmill::stage::read::Source;

use crate::common::{self, Machine, Shape, end_with, inputs, node_program, note, print, say};
use crate::disks;
use crate::progress;
use crate::signals::Signals;
use crate::size::{self, Size};

use self::called::Called;
use self::keys::SEED_BYTES;
use self::made::Made;
use self::options::Gnu;
use self::side::{SideFile, Sides};
use self::words::{OldKey, Way};

/// Sort records of files or standard input
///
/// Takes the options of GNU sort and writes the same bytes as `LC_ALL=C sort`, and has some of its own. As in GNU sort,
/// options may follow files, letters may stand together, and GNU's long names may be cut short; our own may not.
#[derive(Args, Debug)]
#[command(args_override_self = true, disable_help_flag = true, disable_version_flag = true, version = VERSION)]
pub struct Sort {
    /// Files to sort, in the order in which equal records come out; `-` or none is standard input
    files: Vec<PathBuf>,

    #[command(flatten)]
    shape: Shape,

    #[command(flatten)]
    gnu: Gnu,

    /// Write to FILE instead of standard output; may be an input. It appears whole or not at all
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,

    /// Compress the output with CODEC: zst, gz, lz4, bz2 or xz. `auto` does what the end of FILE's name says, `none`
    /// never does. The bytes depend neither on memory nor on threads. Default: auto; called as `sort`, none
    #[arg(long, value_name = "CODEC", value_parser = parse_packing)]
    compress_output: Option<Packing>,

    /// How hard to compress: zst 1 to 22 (default 3), gz 1 to 9 (6), bz2 1 to 9 (9), xz 0 to 9 (6)
    #[arg(long, value_name = "N")]
    compress_level: Option<u32>,

    /// Sort what inputs were before they were compressed, if they begin as .gz, .zst, .lz4, .bz2 and .xz files do,
    /// standard input too. Default, unless called as `sort`
    #[arg(long, overrides_with = "no_decompress")]
    decompress: bool,

    /// Sort them as the bytes they are
    #[arg(long)]
    no_decompress: bool,

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
        default_value = PART_NAME
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
    /// what the machine or the cgroup has left, more where a job needs that at least
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    memory: Option<Size>,

    /// Folder for temporary files. Several, each with a --temp of its own, are used at once: temporary data are spread
    /// over them by speed and free space. Default: $TMPDIR if it is there and not in memory, else the output's folder, or /var/tmp
    /// where the output is a stream
    #[arg(short = 'T', long, value_name = "DIR", visible_alias = "temporary-directory",
        value_parser = OsStringValueParser::new().map(PathBuf::from))]
    temp: Vec<PathBuf>,

    /// Keep temporary data in a file of their own. Default: with one folder on the output's file system they lie in
    /// the output's space, which is written over them
    #[arg(long)]
    temp_apart: bool,

    /// Compress temporary data by lz4 or zstd, or `auto`: by what threads have time for while they would only wait for the
    /// disk. Runs of merges are not compressed. Default: none
    #[arg(long, value_name = "HOW", value_parser = parse_compress_temp)]
    compress_temp: Option<CompressTemp>,

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

    /// Ignore what is appended to an input after the start. Default for lines
    #[arg(long, overrides_with = "unchanging")]
    as_of_start: bool,

    /// End with an error if an input grows meanwhile. Default for all but lines
    #[arg(long, overrides_with = "as_of_start")]
    unchanging: bool,

    /// Leave out up to N bad records (cut off, or longer than is allowed) and count them
    #[arg(long, value_name = "N", default_value = "0")]
    skip_bad: u64,

    /// The first N lines of each input are no records. Those of the first input that has any stay at the top of the
    /// output, those of the others are left out
    #[arg(long, value_name = "N", default_value = "0")]
    header: u64,

    /// Run to the end of STAGE and throw away what comes out of it, to see what each costs: read, cut,
    /// partition, spill, load, sort, reduce (gathering included). No output is opened
    #[arg(long, value_name = "STAGE", value_parser = parse_until)]
    until: Option<Stage>,

    /// Print the plan and stop: sizes, partitions, memory, temporary space, bytes moved, passes. With --report it is
    /// written to that file as JSON too. Exit code 2 if the job cannot fit
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

    /// Do not mention on stderr that a locale other than C does not matter
    #[arg(long, value_name = "C", value_parser = ["C", "POSIX"])]
    locale: Option<String>,

    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,

    /// Print version
    #[arg(long, action = ArgAction::Version)]
    version: Option<bool>,

    /// What it was called as.
    #[arg(skip)]
    called: Called,

    /// What is made of the records.
    #[arg(skip)]
    made: Made,

    /// Keys in the old form.
    #[arg(skip)]
    old_keys: Vec<OldKey>,
}

/// What the files of `--parts` are called where nobody says.
const PART_NAME: &str = "part-{:05}";

const VERSION: &str = concat!("(Sortmill) ", env!("CARGO_PKG_VERSION"));

/// What was asked of `sort`, if it is `sort` that this process is called as, or its first word, or that is `merge`,
/// `shuffle`, `uniq`, `count` or `top`. Words that cannot be read, and requests for help, end the process.
pub fn asked(mut words: impl Iterator<Item = OsString>) -> Option<Sort> {
    let program = words.next().unwrap_or_default();
    let as_sort = Path::new(&program)
        .file_name()
        .is_some_and(|name| name == "sort");
    let called = match as_sort {
        true => Called::Sort,
        false => Called::of_word(words.next()?.to_str()?)?,
    };
    if called == Called::Sort {
        common::called(called.name());
    }
    let (words, way) = (words.collect::<Vec<_>>(), Way::of_environment());
    if let Called::Sort | Called::SortmillSort = called
        && let Some(sort) = letters::read(&words, way)
    {
        return Some(sort.called(called));
    }
    let mut table = called.table();
    let read = words::read(words, &table, way).unwrap_or_else(|refusal| {
        let (cause, name) = (refusal.cause, called.name());
        note(&format!("{cause}\n\nTry `{name} --help`."));
        std::process::exit(refusal.code.into());
    });
    let words = std::iter::once("sort".into()).chain(read.words);
    let matches = table.try_get_matches_from_mut(words);
    let matches = matches.unwrap_or_else(|told| end_with(&told));
    let mut sort = called.read(&matches).unwrap_or_else(|told| end_with(&told));
    sort.old_keys = read.old_keys;
    // Many small pieces, which the end of the process gives back all at once.
    std::mem::forget((table, matches));
    Some(sort)
}

impl Sort {
    /// The same as `sortmill merge`.
    pub fn called_merge(self) -> Self {
        self.called(Called::SortmillMerge)
    }

    /// Whether compressed inputs are read as what they were. GNU sort does no such thing.
    fn unpacks(&self) -> bool {
        self.decompress || !self.no_decompress && self.called != Called::Sort
    }

    /// How the output is compressed: a job that ends early makes none.
    fn compress(&self, output: &Output) -> Option<Compress> {
        let usual = match self.called == Called::Sort {
            true => Packing::Never,
            false => Packing::Auto,
        };
        let codec = match (self.compress_output.unwrap_or(usual), output) {
            (Packing::With(codec), _) => Some(codec),
            (Packing::Auto, Output::Path(path)) => Codec::of_name(path),
            _ => None,
        };
        let codec = codec.filter(|_| self.until.is_none())?;
        Some(Compress {
            codec,
            level: self.compress_level,
        })
    }

    /// How temporary data are compressed: as asked, or by the program that GNU's option names, or the codec that stands for
    /// it. What merges write are runs, which GNU's option is accepted for.
    fn compress_temp(&self, merges: bool) -> CompressTemp {
        let program = self.gnu.compress_program.first().filter(|_| !merges);
        let named = || {
            let name = Path::new(program?).file_name().unwrap_or_default();
            Some(match name.to_str() {
                Some("lz4") => CompressTemp::Lz4,
                Some("zstd" | "gzip") if Codec::Zstd.is_built() => CompressTemp::Zstd,
                Some("gzip") => CompressTemp::Lz4,
                _ => CompressTemp::Program,
            })
        };
        self.compress_temp.or_else(named).unwrap_or_default()
    }

    /// Runs the command.
    pub fn run(mut self) -> Result<ExitCode> {
        refusals::look(&self)?;
        if let Some(from) = &self.gnu.files0_from {
            self.files = files_from::names(from)?;
        }
        side::look(&self)?;
        // Whoever calls `sort` expects its bytes and no words.
        self.quiet |= self.called == Called::Sort && !self.verbose;
        let is_ordered = !matches!(self.made, Made::Shuffled(_));
        if is_ordered && self.shape.format.is_lines() && self.locale.is_none() {
            locale::mention();
        }
        let os = self.machine.open()?;
        let job = self.job(&os)?;
        self.level_has_use(&job)?;
        let signals = Signals::note();
        match (self.gnu.checks(), self.made) {
            (Some(how), _) => disorder::look(&job, how, &os, signals.watched()),
            (None, _) if self.gnu.debug => self.sort_annotated(job, &os, &signals),
            (
                None,
                Made::Counted {
                    by_count: true,
                    first,
                },
            ) => self.rank(&job, first, &os, &signals),
            (None, _) => self.sort(job, &os, &signals),
        }
    }

    /// Refuses a level of compression where nothing is compressed.
    fn level_has_use(&self, job: &Job) -> Result<()> {
        if self.compress_level.is_none() || job.compress.is_some() {
            return Ok(());
        }
        let cause = "there is a level, and the output is not compressed";
        let error = Error::new(ErrorKind::Usage, "compressing the output", cause);
        let hint = "Say how with --compress-output, or by the end of the output's name.";
        Err(error.hint(hint))
    }

    /// Sorts, and underlines the keys in what comes out.
    fn sort_annotated(&self, mut job: Job, os: &Host, signals: &Signals) -> Result<ExitCode> {
        let keys = keys::line_order(&self.gnu, &self.shape.keys)?;
        say(&doubts::doubts(&keys, &self.old_keys));
        let failed = |error| Error::writing("annotating lines", Path::new("-"), &error);
        let (lines, to) = io::pipe().map_err(failed)?;
        // By name, so that the engine opens an end of its own.
        job.output = Output::Path(format!("/proc/self/fd/{}", to.as_raw_fd()).into());
        std::thread::scope(|threads| {
            let annotate = || annotate::annotate(lines, &keys.order);
            let annotated = sync::spawn(threads, "annotate", annotate);
            let sorted = self.sort(job, os, signals);
            drop(to);
            let annotated = annotated.join();
            let annotated = annotated.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            match annotated {
                Err(error) => Err(failed(error)),
                Ok(()) => sorted,
            }
        })
    }

    fn sort(&self, mut job: Job, os: &Host, signals: &Signals) -> Result<ExitCode> {
        let stop = signals.noted();
        let mut sources = run::open(&job, os)?;
        if let Some(found) = run::look_up_columns(&job, &mut sources, os, stop)? {
            job = found;
        }
        if self.tells_nothing(&job) {
            sources = match run::sort_small(&job, sources, os, stop)? {
                Small::Done(_) => return Ok(ExitCode::SUCCESS),
                Small::Larger(sources) => sources,
            };
        }
        let stop = signals.watched();
        let (prepared, plan) = self.prepare(&mut job, sources, os)?;
        if self.dry_run {
            return self.tell_plan(&prepared, &plan, os);
        }
        self.sort_planned(job, prepared, &plan, os, stop)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Does what was planned, and tells of it where that was asked for. Answers the report.
    fn sort_planned(
        &self,
        mut job: Job,
        prepared: Prepared,
        plan: &str,
        os: &Host,
        stop: &Stop,
    ) -> Result<Report> {
        if self.verbose {
            say(plan);
        }
        let sides = Sides::open(self, &job)?;
        let shown = self.shown(&job);
        let report = self.work_on(&mut job, prepared, shown, os, stop)?;
        sides.write(&report)?;
        self.tell(&report);
        Ok(report)
    }

    /// Plans a job whose inputs have been opened, with what is known of the disks. Answers the plan in words too.
    fn prepare(
        &self,
        job: &mut Job,
        sources: Vec<Source>,
        os: &Host,
    ) -> Result<(Prepared, String)> {
        let temps = run::folders(job, os)?.temps;
        let known: Vec<Option<Known>> = temps.iter().map(|temp| disks::known(os, temp)).collect();
        job.disks = known.iter().map(disks::figures).collect();
        let prepared = run::prepare_opened(job, sources, os)?;
        let mut plan = plan_lines(&prepared.plan) + &temp_lines(&prepared.temps);
        for (known, temp) in known.iter().zip(&temps) {
            plan += &disks::advice(known.as_ref(), os, temp);
        }
        Ok((prepared, plan))
    }

    /// Runs a job, and shows how far it is.
    fn work_on(
        &self,
        job: &mut Job,
        prepared: Prepared,
        shown: Option<progress::Shown>,
        os: &Host,
        stop: &Stop,
    ) -> Result<Report> {
        job.progress = shown.as_ref().map(|_| Arc::default());
        let sort = || run::sort_prepared(job, prepared, os, stop);
        progress::show(shown, job.progress.as_ref(), os, stop, sort)
    }

    /// Tells what was done, as much of it as was asked for.
    fn tell(&self, report: &Report) {
        if self.verbose {
            say(&report.details());
        } else if !self.quiet {
            say(&report.summary());
        }
    }

    /// Whether nobody asks how the job goes or went.
    fn tells_nothing(&self, job: &Job) -> bool {
        self.quiet
            && !self.dry_run
            && self.report.is_none()
            && self.trace.is_none()
            && self.shown(job).is_none()
    }

    /// Tells what the job would do, and whether there is room for it.
    fn tell_plan(&self, prepared: &Prepared, lines: &str, os: &dyn Os) -> Result<ExitCode> {
        print(lines)?;
        if let Some(file) = SideFile::open(self.report.as_deref(), "writing the plan")? {
            let plan = DryRun::new(&prepared.plan, &prepared.temps).to_json();
            file.write(|out| out.write_all(plan.as_bytes()))?;
        }
        prepared.check_space(os)?;
        Ok(ExitCode::SUCCESS)
    }

    fn shown(&self, job: &Job) -> Option<progress::Shown> {
        let output = job.until.is_none().then_some(&job.output);
        self.progress.shown(self.quiet, &job.inputs, output)
    }

    fn job(&self, os: &dyn Os) -> Result<Job> {
        let output = match (refusals::output(self), &self.parts) {
            (Some(path), _) => Output::Path(path),
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
        let mut job = Job::new(inputs(&self.files), output, self.shape.records()?);
        job.columns = self.shape.columns()?;
        job.keys = self.shape.parts()?;
        job.line_order = self.line_order(os)?;
        job.unique = self.gnu.unique;
        job.merge = match self.called {
            Called::SortmillMerge => Some(Disorder::Refused),
            _ => self.gnu.merge.then_some(Disorder::Kept),
        };
        if job.merge == Some(Disorder::Kept) {
            // Who reads it first leaves nothing to the others, which are empty.
            let mut has_come = false;
            job.inputs
                .retain(|input| input != &Input::Stdin || !std::mem::replace(&mut has_come, true));
        }
        job.decompress = self.unpacks();
        job.compress = self.compress(&job.output);
        job.boundaries.clone_from(&self.boundaries);
        let bytes = |size: &Size| size.of(os.machine().memory_bytes_total);
        job.memory_bytes = self.memory.as_ref().map(bytes);
        if self.memory.is_none() {
            job.memory_bytes = self.gnu.buffer_size.iter().map(bytes).max();
            job.memory_is_wish = job.memory_bytes.is_some();
        }
        // An empty one is what a script makes of a variable that is not set.
        let temps = self.temp.iter().filter(|temp| !temp.as_os_str().is_empty());
        job.temps = temps.cloned().collect();
        job.temp_apart = self.temp_apart;
        job.compress_temp = self.compress_temp(job.merge.is_some());
        let program = self.gnu.compress_program.first().map(PathBuf::from);
        job.temp_program = program.filter(|_| job.compress_temp == CompressTemp::Program);
        job.on = self.on.map(|node_count| On {
            node_count,
            program: node_program().0,
            words: [node_program().1, self.machine.node_words()].concat(),
        });
        let parallel = self.gnu.parallel.map(|count| count.min(os.machine().cores));
        job.threads = self.threads.map(usize::from).or(parallel);
        job.verify = match (self.verify, self.no_verify) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        };
        let is_lines = self.shape.format.is_lines();
        job.as_of_start = self.as_of_start || is_lines && !self.unchanging;
        job.skip_bad = self.skip_bad;
        job.header_lines = self.header;
        job.until = self.until;
        job.trace = self.trace.as_ref().map(|_| Arc::default());
        job.probe = match (self.probe || self.verbose, self.no_probe) {
            (_, true) => Some(false),
            (true, _) => Some(true),
            _ => None,
        };
        self.ask(&mut job, os);
        Ok(job)
    }

    /// The order of lines, unless it is that in which the engine sorts them anyway.
    fn line_order(&self, os: &dyn Os) -> Result<Option<LineOrder>> {
        if !self.shape.format.is_lines() {
            return Ok(None);
        }
        let mut keys = keys::line_order(&self.gnu, &self.shape.keys)?;
        let mut drawn = None;
        for seed in keys.seeds() {
            *seed = match drawn {
                Some(drawn) => drawn,
                None => *drawn.insert(self.seed(os)?),
            };
        }
        Ok((!keys::is_plain(&keys.order)).then_some(keys.order))
    }

    /// What decides the order of -R.
    fn seed(&self, os: &dyn Os) -> Result<[u8; SEED_BYTES]> {
        let mut seed = [0; SEED_BYTES];
        let Some(path) = self.gnu.random_source.first() else {
            for half in seed.chunks_exact_mut(8) {
                half.copy_from_slice(&os.random().to_le_bytes());
            }
            return Ok(seed);
        };
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut seed));
        read.map_err(|error| {
            let mut told = Error::io("reading random bytes", path, &error).kind(ErrorKind::Input);
            if error.kind() == io::ErrorKind::UnexpectedEof {
                told.cause = format!("it has fewer than the {SEED_BYTES} that decide");
            }
            told
        })?;
        Ok(seed)
    }
}

/// How the output is to be compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Packing {
    /// As its name says.
    Auto,
    Never,
    With(Codec),
}

fn parse_packing(text: &str) -> std::result::Result<Packing, String> {
    let named = |codec: &Codec| text == codec.extension() || text == codec.name();
    match (text, CODECS.into_iter().find(|codec| named(codec))) {
        ("auto", _) => Ok(Packing::Auto),
        ("none", _) => Ok(Packing::Never),
        (_, Some(codec)) => Ok(Packing::With(codec)),
        (_, None) => Err("an output is compressed by zst, gz, lz4, bz2 or xz, auto or none".into()),
    }
}

fn parse_compress_temp(text: &str) -> std::result::Result<CompressTemp, String> {
    let how = match text {
        "none" => CompressTemp::None,
        "auto" => CompressTemp::Auto,
        "lz4" => CompressTemp::Lz4,
        "zstd" | "zst" => CompressTemp::Zstd,
        _ => return Err("temporary data are compressed by lz4 or zstd, auto or none".into()),
    };
    match how.codec().is_none_or(BlockCodec::is_built) {
        true => Ok(how),
        false => Err(format!("this sortmill was built without {text}")),
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
