//! Whole jobs through `run::sort`, held against a stable sort in memory.
//!
//! Sizes are tuned down so that a megabyte goes the whole way: partitions are evicted, divided and merged.
//! Every run is also asked whether its report adds up and whether it left anything behind.

mod columns;
mod foreseen;
mod functions;
mod gnu;
pub(crate) mod inputs;
mod kv;
mod lines;
mod long;
mod merged;
mod merged_packed;
mod oracle;
mod order;
pub(crate) mod packed;
mod parts;
mod progress;
mod report;
mod same;
mod shapes;
mod shuffled;
mod small;
mod space;
mod tables;
mod temp_packed;
mod temps;
mod trace;
mod until;
mod yields;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use sortmill::columns::Columns;
use sortmill::counts::count_early;
use sortmill::disk::Figures;
use sortmill::error::Error;
use sortmill::io::codec::Codec;
use sortmill::io::sim::Sim;
use sortmill::io::{Host, Os, RingKind};
use sortmill::job::{
    Compress, CompressTemp, Disorder, Input, Job, MapFn, Output, ReduceFn, Tuning,
};
use sortmill::line_keys::LineOrder;
use sortmill::metrics::Stage;
use sortmill::order::{Format, KeyPart};
use sortmill::queue::Stop;
use sortmill::report::Report;
use sortmill::run;
use sortmill::trace::Trace;
use sortmill::yields::Yield;

use crate::Scratch;

/// A machine to run on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Machine {
    /// The real one with io_uring and direct I/O.
    Uring,
    /// The real one with threads and direct I/O.
    Posix,
    /// The real one through the page cache.
    Cached,
    /// The simulated one.
    Sim,
}

const MACHINES: [Machine; 4] = [
    Machine::Uring,
    Machine::Posix,
    Machine::Cached,
    Machine::Sim,
];

impl Machine {
    fn host(self) -> Option<Host> {
        let made = match self {
            Self::Uring => Host::new(RingKind::Uring, true),
            Self::Posix => Host::new(RingKind::Posix, true),
            Self::Cached => Host::new(RingKind::Auto, false),
            Self::Sim => return None,
        };
        match made {
            Ok(host) => Some(host),
            Err(error) => {
                println!("skipped io_uring, posix in its place: {error}");
                Some(Host::new(RingKind::Posix, true).unwrap())
            }
        }
    }
}

/// A job and what it sorts.
#[derive(Clone)]
struct Case {
    format: Format,
    keys: Vec<KeyPart>,
    line_order: Option<LineOrder>,
    columns: Option<Columns>,
    unique: bool,
    yields: Yield,
    /// Lines are counted on their way into partitions.
    early: bool,
    inputs: Vec<Vec<u8>>,
    /// The number of the input that comes as a stream.
    stream: Option<usize>,
    /// How each input is compressed, as far as they are.
    packed: Vec<Option<Codec>>,
    compress: Option<Compress>,
    header_lines: u64,
    memory_bytes: u64,
    threads: usize,
    tuning: Tuning,
    temp_apart: bool,
    compress_temp: CompressTemp,
    /// Bytes a second that the disks of the simulated machine give; 0 for no time at all.
    pace: u64,
    /// How many folders for temporary files there are.
    temp_count: usize,
    disk: Option<Figures>,
    equal_keys_meet: bool,
    /// Its inputs are in order already.
    merge: Option<Disorder>,
    map: Option<MapFn>,
    reduce: Option<ReduceFn>,
    until: Option<Stage>,
    trace: Option<Arc<Trace>>,
}

/// Sizes with which a megabyte of memory is a small machine.
const SMALL: Tuning = Tuning {
    chunk_bytes: Some(16 << 10),
    block_bytes: Some(4096),
    partition_bytes: None,
    partition_count: None,
    sample_count: None,
};

impl Case {
    fn new(format: Format, inputs: Vec<Vec<u8>>) -> Self {
        Self {
            format,
            keys: Vec::new(),
            line_order: None,
            columns: None,
            unique: false,
            yields: Yield::All,
            early: false,
            inputs,
            stream: None,
            packed: Vec::new(),
            compress: None,
            header_lines: 0,
            memory_bytes: 1 << 20,
            threads: 2,
            tuning: SMALL,
            temp_apart: false,
            compress_temp: CompressTemp::None,
            pace: 0,
            temp_count: 1,
            disk: None,
            equal_keys_meet: false,
            merge: None,
            map: None,
            reduce: None,
            until: None,
            trace: None,
        }
    }

    fn lines(inputs: Vec<Vec<u8>>) -> Self {
        Self::new(Format::Lines, inputs)
    }

    fn fixed(size: u32, keys: &[KeyPart], inputs: Vec<Vec<u8>>) -> Self {
        Self {
            keys: keys.to_vec(),
            ..Self::new(Format::Fixed(size), inputs)
        }
    }

    fn job(&self, inputs: Vec<Input>, output: PathBuf, temps: Vec<PathBuf>) -> Job {
        let mut job = Job::new(inputs, Output::Path(output), self.format);
        job.keys.clone_from(&self.keys);
        job.line_order.clone_from(&self.line_order);
        job.columns.clone_from(&self.columns);
        job.unique = self.unique;
        job.yields = self.yields;
        job.memory_bytes = Some(self.memory_bytes);
        job.threads = Some(self.threads);
        job.disks = vec![self.disk.clone(); temps.len()];
        job.temps = temps;
        job.temp_apart = self.temp_apart;
        job.compress_temp = self.compress_temp;
        job.tuning = self.tuning;
        job.equal_keys_meet = self.equal_keys_meet;
        job.merge = self.merge;
        job.map.clone_from(&self.map);
        job.reduce.clone_from(&self.reduce);
        if self.early {
            count_early(&mut job);
        }
        job.until = self.until;
        job.trace.clone_from(&self.trace);
        job.decompress = !self.packed.is_empty();
        job.compress = self.compress;
        job.header_lines = self.header_lines;
        job
    }

    /// Input `number` as it lies there.
    fn stored(&self, number: usize) -> Vec<u8> {
        let bytes = &self.inputs[number];
        match self.packed.get(number).copied().flatten() {
            None => bytes.clone(),
            Some(codec) => packed::packed(codec, bytes),
        }
    }

    /// Sorts on `machine`.
    fn try_run(&self, machine: Machine) -> Result<(Vec<u8>, Report), Error> {
        match machine.host() {
            None => self.run_on_sim(),
            Some(host) => self.run_on_host(host),
        }
    }

    fn run_on_sim(&self) -> Result<(Vec<u8>, Report), Error> {
        let sim = Sim::new(self.memory_bytes + self.threads as u64);
        let temps = temps(Path::new("/"), self.temp_count);
        temps.iter().for_each(|temp| sim.put_dir(temp));
        let mut named = Vec::new();
        for number in 0..self.inputs.len() {
            let bytes = self.stored(number);
            if self.stream == Some(number) {
                sim.put_stdin(&bytes);
                named.push(Input::Stdin);
            } else {
                let path = PathBuf::from(format!("/in{number}"));
                sim.put(&path, &bytes);
                named.push(Input::Path(path));
            }
        }
        let before = sim.names();
        if self.pace > 0 {
            sim.set_pace(self.pace, |_| {});
        }
        let job = self.job(named, "/out".into(), temps);
        let result = sort_or_panic(job, sim.clone());
        let mut left = sim.names();
        left.retain(|name| !before.contains(name) && name != Path::new("/out"));
        assert_eq!(left, Vec::<PathBuf>::new(), "left behind");
        Ok((sim.get("/out").unwrap_or_default(), result?))
    }

    fn run_on_host(&self, host: Host) -> Result<(Vec<u8>, Report), Error> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let scratch = Scratch::new(&format!("sort-{}-{number}", std::process::id()));
        let temps = temps(&scratch.path, self.temp_count);
        temps
            .iter()
            .for_each(|temp| std::fs::create_dir(temp).unwrap());
        let mut named = Vec::new();
        for number in 0..self.inputs.len() {
            let bytes = self.stored(number);
            let path = scratch.path(&format!("in{number}"));
            if self.stream == Some(number) {
                make_fifo(&path, bytes);
            } else {
                std::fs::write(&path, bytes).unwrap();
            }
            named.push(Input::Path(path));
        }
        let output = scratch.path("out");
        let job = self.job(named, output.clone(), temps.clone());
        let result = sort_or_panic(job, host);
        let mut left = scratch.names();
        left.retain(|name| {
            !["in", "out", "temp"]
                .iter()
                .any(|known| name.starts_with(known))
        });
        for temp in temps {
            left.extend(
                std::fs::read_dir(temp)
                    .unwrap()
                    .map(|entry| entry.unwrap().file_name().into_string().unwrap()),
            );
        }
        assert_eq!(left, Vec::<String>::new(), "left behind");
        let report = result?;
        Ok((std::fs::read(output).unwrap(), report))
    }

    /// Sorts on `machine`: what comes out is what a stable sort makes of it, and the report adds up.
    fn check(&self, machine: Machine, what: &str) -> Report {
        let (output, report) = self
            .try_run(machine)
            .unwrap_or_else(|error| panic!("{what} on {machine:?}: {error}"));
        let mut wanted = oracle::sorted(self.format, &self.keys, &self.inputs);
        if self.unique {
            oracle::without_repeats(self.format, &self.keys, &mut wanted);
        }
        let wanted = oracle::yielded(self.yields, wanted);
        let unpacked = match self.compress {
            None => output.clone(),
            Some(compress) => packed::unpacked(compress.codec, &output),
        };
        compare(
            &unpacked,
            &wanted.concat(),
            &format!("{what} on {machine:?}"),
        );
        report::check(self, &report, &output, wanted.len() as u64);
        report
    }
}

/// The folders for temporary files in `folder`: `temp`, `temp1`, `temp2`.
fn temps(folder: &Path, count: usize) -> Vec<PathBuf> {
    let name = |number: usize| match number {
        0 => folder.join("temp"),
        _ => folder.join(format!("temp{number}")),
    };
    (0..count).map(name).collect()
}

/// Fails with the first place where two outputs differ.
fn compare(have: &[u8], want: &[u8], what: &str) {
    if have == want {
        return;
    }
    let at = have.iter().zip(want).take_while(|(a, b)| a == b).count();
    let near = |bytes: &[u8]| {
        let from = at.saturating_sub(20).min(bytes.len());
        bytes[from..(at + 20).min(bytes.len())]
            .escape_ascii()
            .to_string()
    };
    panic!(
        "{what}: {} bytes and not {}, different from byte {at} on: {:?} and not {:?}",
        have.len(),
        want.len(),
        near(have),
        near(want)
    );
}

/// A job that takes longer than this waits for something that will not come.
const PATIENCE: Duration = Duration::from_secs(120);

/// Sorts in a thread of its own, so that a job that waits for ever fails its test instead of stopping it.
fn sort_or_panic(mut job: Job, os: impl Os + 'static) -> Result<Report, Error> {
    let (sender, receiver) = mpsc::channel();
    let os: Arc<dyn Os> = Arc::new(os);
    let watched = progress::Watched::new(&mut job, Arc::clone(&os));
    let stop = Stop::new();
    let thread = {
        let stop = stop.clone();
        std::thread::spawn(move || sender.send(Box::new(run::sort(&job, &*os, &stop))).is_ok())
    };
    match watched.receive(&receiver) {
        Ok(result) => {
            watched.ended(&result);
            *result
        }
        Err(mpsc::RecvTimeoutError::Timeout) => {
            stop.interrupt();
            let after = receiver.recv_timeout(PATIENCE);
            let heard = if after.is_ok() { "" } else { " not" };
            panic!("the job waits for ever; told to stop, it did{heard}");
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(thread.join().expect_err("it sent nothing"))
        }
    }
}

/// Makes a pipe with a name, and a thread that writes `bytes` into it.
fn make_fifo(path: &Path, bytes: Vec<u8>) {
    use std::io::Write;
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success(), "mkfifo");
    let path = path.to_owned();
    std::thread::spawn(move || {
        let mut pipe = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        // A job that fails does not read to the end.
        let _ = pipe.write_all(&bytes);
    });
}
