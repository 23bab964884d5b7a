//! A fault at every operation of a job, through the shipped `run`, under a seeded scheduler.
//!
//! The job evicts, divides and, in one case, merges partitions on a simulated machine. Whatever operation
//! fails, once or from then on, it must end with the right output or a clean error, the old output in
//! place and nothing left behind. `SEED=n` repeats a failure.

mod columns;
mod merge;
mod order;
mod packed;
mod parts;
mod pipeline;
mod pipeline_parts;
mod probe;
mod temp_packed;
mod trace;
mod yields;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use shuttle::scheduler::RandomScheduler;
use sortmill::columns::Columns;
use sortmill::counts::count_early;
use sortmill::error::{Error, ErrorKind};
use sortmill::io::codec::Codec;
use sortmill::io::sim::{Fault, FaultKind, Sim, Struck};
use sortmill::job::{Compress, CompressTemp, Input, Job, Output, Tuning};
use sortmill::order::Format;
use sortmill::queue::Stop;
use sortmill::report::Report;
use sortmill::run;
use sortmill::trace::Trace;
use sortmill::yields::Yield;

const OLD: &[u8] = b"what was there before\n";

fn seed() -> u64 {
    let seed = std::env::var("SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    seed.unwrap_or(1)
}

/// How far apart faults are that could be `step` operations apart: `FAULT_STEP` times as far, where there is less time.
fn apart(step: usize) -> usize {
    let times = std::env::var("FAULT_STEP").ok();
    step * times.and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// Splitmix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Lines of which the later half has keys in a narrow range, so that the sample misleads.
fn input(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed;
    let mut input = Vec::with_capacity(bytes + 100);
    while input.len() < bytes {
        let narrow = input.len() > bytes / 2;
        let range = if narrow { 1 << 40 } else { u64::MAX };
        let key = random(&mut state) % range;
        let tail = random(&mut state) % 60;
        input.extend(format!("{key:016x} {:width$}\n", "", width = tail as usize).bytes());
    }
    input
}

fn sorted(input: &[u8]) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = input.split_inclusive(|&byte| byte == b'\n').collect();
    lines.sort();
    lines.concat()
}

/// What a job is and what it is to make.
#[derive(Clone)]
struct Case {
    format: Format,
    columns: Option<Columns>,
    input: Arc<Vec<u8>>,
    expected: Arc<Vec<u8>>,
    tuning: Tuning,
    memory_bytes: u64,
    verify: bool,
    traced: bool,
    probed: bool,
    stream: bool,
    /// The input is compressed, and so is the output: `expected` is what both were.
    packed: Option<Codec>,
    header_lines: u64,
    temp_apart: bool,
    compress_temp: CompressTemp,
    /// Bytes a second that the disks give; 0 for no time at all.
    pace: u64,
    yields: Yield,
    /// Lines are counted on their way into partitions.
    early: bool,
    /// Several folders, each a disk of its own.
    temps: Vec<PathBuf>,
}

impl Case {
    fn new(seed: u64, bytes: usize) -> Self {
        let input = input(seed, bytes);
        Self {
            format: Format::Lines,
            columns: None,
            expected: Arc::new(sorted(&input)),
            input: Arc::new(input),
            tuning: Tuning {
                chunk_bytes: Some(4096),
                block_bytes: Some(4096),
                partition_count: Some(12),
                partition_bytes: None,
                sample_count: Some(40),
            },
            memory_bytes: 400 << 10,
            verify: false,
            traced: false,
            probed: false,
            stream: false,
            packed: None,
            header_lines: 0,
            temp_apart: false,
            compress_temp: CompressTemp::None,
            pace: 0,
            yields: Yield::All,
            early: false,
            temps: vec!["/temp".into()],
        }
    }

    fn job(&self) -> Job {
        let input = if self.stream {
            Input::Stdin
        } else {
            Input::Path("/in".into())
        };
        let mut job = Job::new(vec![input], Output::Path("/out".into()), self.format);
        job.columns.clone_from(&self.columns);
        job.memory_bytes = Some(self.memory_bytes);
        job.temps.clone_from(&self.temps);
        job.threads = Some(2);
        job.tuning = self.tuning;
        job.temp_apart = self.temp_apart;
        job.compress_temp = self.compress_temp;
        job.yields = self.yields;
        if self.early {
            count_early(&mut job);
        }
        job.verify = Some(self.verify);
        job.header_lines = self.header_lines;
        job.decompress = self.packed.is_some();
        job.compress = self.packed.map(|codec| Compress { codec, level: None });
        job
    }

    fn is_right(&self, output: &[u8]) -> bool {
        match self.packed {
            None => output == &**self.expected,
            Some(codec) => packed::unpacked(codec, output) == **self.expected,
        }
    }

    /// Runs the job with a fault under one schedule and hands what came of it to `judge`.
    fn run(&self, seed: u64, fault: Option<Fault>) -> Outcome {
        let case = self.clone();
        under_schedule(seed, move || {
            let sim = Sim::new(seed);
            sim.put_dir("/temp");
            for disk in case.temps.iter().filter(|temp| !temp.ends_with("temp")) {
                sim.put_disk(disk, u64::MAX / 4);
            }
            sim.put("/out", OLD);
            if case.stream {
                sim.put_stdin(&case.input);
            } else {
                sim.put("/in", &case.input);
            }
            if case.pace > 0 {
                // Others get on while a transfer takes its time.
                let yields = |_: &Sim| (0..60).for_each(|_| shuttle::thread::yield_now());
                sim.set_pace(case.pace, yields);
            }
            sim.set_fault(fault);
            let mut job = case.job();
            job.trace = case.traced.then(Arc::default);
            job.probe = Some(case.probed);
            let result = run::sort(&job, &sim, &Stop::new());
            let mut trace = Vec::new();
            job.trace
                .iter()
                .for_each(|drawn: &Arc<Trace>| drawn.write(&mut trace).unwrap());
            Outcome {
                trace,
                output: sim.get("/out").unwrap_or_default(),
                input: sim.get("/in"),
                struck: sim.struck(),
                operations: sim.operation_count(),
                leftovers: leftovers(&sim),
                result,
            }
        })
    }
}

/// Does `work` under one schedule of its threads, that of `seed`, and hands on what comes of it.
fn under_schedule<T: Send + 'static>(seed: u64, work: impl Fn() -> T + Send + Sync + 'static) -> T {
    let kept = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&kept);
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 20;
    config.max_steps = shuttle::MaxSteps::FailAfter(50_000_000);
    config.failure_persistence = shuttle::FailurePersistence::None;
    let scheduler = RandomScheduler::new_from_seed(seed, 1);
    shuttle::Runner::new(scheduler, config).run(move || {
        let came = work();
        *keep.lock().unwrap() = Some(came);
    });
    let mut kept = kept.lock().unwrap();
    kept.take().expect("the work ended")
}

struct Outcome {
    result: Result<Report, Error>,
    output: Vec<u8>,
    input: Option<Vec<u8>>,
    struck: Option<Struck>,
    operations: u64,
    leftovers: Vec<PathBuf>,
    /// Of a job that draws one.
    trace: Vec<u8>,
}

fn leftovers(sim: &Sim) -> Vec<PathBuf> {
    let known = ["/in", "/out", "/temp", "/disk1", "/disk2"];
    let mut names = sim.names();
    names.retain(|name| !known.iter().any(|known| name.as_os_str() == *known));
    names
}

/// Right output or a clean error; nothing in between.
fn judge(case: &Case, outcome: &Outcome, for_good: bool) {
    let told = format!("{:?} {:?}", outcome.struck, outcome.result.as_ref().err());
    if !case.stream {
        assert_eq!(
            outcome.input.as_ref(),
            Some(&*case.input),
            "input altered: {told}"
        );
    }
    let operation = outcome
        .struck
        .as_ref()
        .map_or("none", |struck| struck.operation);
    match &outcome.result {
        Ok(_) => assert!(case.is_right(&outcome.output), "wrong output: {told}"),
        // The name is given and only its safety against a power failure is in doubt.
        Err(_) if operation == "sync_dir" => {
            assert!(case.is_right(&outcome.output), "wrong output: {told}");
        }
        Err(_) => assert!(outcome.output == OLD, "old output gone: {told}"),
    }
    let removal_failed = operation.starts_with("remove");
    if !for_good && !removal_failed {
        assert!(
            outcome.leftovers.is_empty(),
            "{:?} left: {told}",
            outcome.leftovers
        );
    }
}

/// One fault after the other, `step` operations apart, until the job is over before the fault.
fn sweep(case: &Case, kind: FaultKind, for_good: bool, step: usize) {
    let step = apart(step);
    let seed = seed();
    println!("SEED={seed}");
    let healthy = case.run(seed, None);
    judge(case, &healthy, false);
    let mut struck = 0;
    // Schedules differ, and with them the number of operations: a little further than this one went, and most of it must
    // have been reached.
    const FEW: u64 = 20;
    for at in (0..healthy.operations + FEW).step_by(step) {
        let fault = Fault { at, for_good, kind };
        let outcome = case.run(seed.wrapping_mul(1_000_003) + at, Some(fault));
        judge(case, &outcome, for_good);
        struck += u64::from(outcome.struck.is_some());
        if let (FaultKind::Error(_), Some(place)) = (kind, &outcome.struck) {
            let harmless = harmless(place);
            assert!(
                outcome.result.is_err() || harmless,
                "{place:?} passed unnoticed"
            );
        }
    }
    let reached = struck * step as u64 + FEW;
    assert!(
        struck > 0 && reached >= healthy.operations * 3 / 4,
        "{struck} faults struck of {} operations",
        healthy.operations
    );
}

impl Case {
    /// Lines of up to half the memory among short ones, some of which begin alike for longer than a stub can tell.
    fn with_long_lines(seed: u64, bytes: usize) -> Self {
        let mut case = Self::new(seed, bytes / 3);
        let mut state = seed;
        let mut input = case.input.to_vec();
        while input.len() < bytes {
            let first = [b'0', b'x', b'f'][(random(&mut state) % 3) as usize];
            let longest =
                [6_000, 20_000, case.memory_bytes / 2 - 10][(random(&mut state) % 3) as usize];
            let length = 4_000 + random(&mut state) % (longest - 4_000);
            input.resize(input.len() + length as usize, first);
            input.extend(format!("{}\n", random(&mut state) % 100).bytes());
            let key = random(&mut state);
            input.extend(format!("{key:016x}\n").bytes());
        }
        case.expected = Arc::new(sorted(&input));
        case.input = Arc::new(input);
        case
    }
}

#[test]
fn faults_in_a_job_with_long_lines() {
    let case = Case::with_long_lines(seed(), 1_200_000);
    let report = case.run(seed(), None).result.unwrap();
    assert!(
        report.partitions.long_records > 10,
        "{:?}",
        report.partitions
    );
    assert!(report.bytes.temp_written > 500_000, "{:?}", report.bytes);
    sweep(&case, FaultKind::Error(5), false, 4);
    sweep(&case, FaultKind::Error(28), true, 4);
}

#[test]
fn faults_in_a_stream_of_long_lines() {
    let mut case = Case::with_long_lines(seed(), 800_000);
    case.stream = true;
    sweep(&case, FaultKind::Error(5), false, 4);
}

#[test]
fn faults_in_a_job_that_merges_long_lines() {
    let mut case = Case::with_long_lines(seed(), 1_200_000);
    case.tuning.partition_count = Some(1);
    case.verify = true;
    let report = case.run(seed(), None).result.unwrap();
    assert!(report.partitions.merged > 0, "{:?}", report.partitions);
    sweep(&case, FaultKind::Error(5), false, 6);
}

/// A bit that turns over in a long record, on its way out or back, is found.
#[test]
fn faults_that_alter_long_lines() {
    let mut case = Case::with_long_lines(seed(), 800_000);
    case.temp_apart = true;
    for kind in [FaultKind::Flip, FaultKind::Lie] {
        let mut found = 0;
        alter(
            &case,
            kind,
            2,
            |path| path.ends_with("spill"),
            |error| {
                assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
                assert!(error.offset.is_some(), "{error}");
                found += 1;
            },
        );
        assert!(found > 20, "{found} found");
    }
}

/// Operations a job can do without: cleaning up, and looking for what others left.
fn harmless(place: &Struck) -> bool {
    place.operation.starts_with("remove")
        || place.operation == "list_dir"
        || (place.operation == "meta_at" || place.operation == "space_free")
}

#[test]
fn the_job_of_the_fault_sweep_goes_the_whole_way() {
    let case = Case::new(seed(), 600_000);
    let outcome = case.run(seed(), None);
    judge(&case, &outcome, false);
    let report = outcome.result.unwrap();
    assert!(
        outcome.operations >= 300,
        "{} operations",
        outcome.operations
    );
    assert!(report.partitions.evicted >= 4, "{:?}", report.partitions);
    assert!(report.partitions.divided >= 1, "{:?}", report.partitions);
}

#[test]
fn faults_once() {
    sweep(&Case::new(seed(), 600_000), FaultKind::Error(5), false, 1);
}

#[test]
fn faults_for_good() {
    sweep(&Case::new(seed(), 600_000), FaultKind::Error(28), true, 1);
}

#[test]
fn faults_in_a_job_that_merges() {
    let mut case = Case::new(seed(), 500_000);
    case.tuning.partition_count = Some(1);
    let report = case.run(seed(), None).result.unwrap();
    assert!(report.partitions.merged > 0, "{:?}", report.partitions);
    sweep(&case, FaultKind::Error(5), false, 3);
}

/// Two disks for temporary files, both in use. One that is full once leaves the rest to the other.
#[test]
fn faults_with_temporary_files_on_two_disks() {
    let mut case = Case::new(seed(), 300_000);
    case.temps = vec!["/disk1".into(), "/disk2".into()];
    let report = case.run(seed(), None).result.unwrap();
    let got: Vec<u64> = report
        .temp_folders
        .iter()
        .map(|folder| folder.bytes)
        .collect();
    assert!(got.iter().all(|&bytes| bytes > 20 << 10), "{got:?}");
    sweep(&case, FaultKind::Error(5), false, 2);
    sweep(&case, FaultKind::Error(28), true, 3);
    case.stream = true;
    sweep(&case, FaultKind::Error(5), false, 3);
}

#[test]
fn faults_in_a_stream() {
    let mut case = Case::new(seed(), 300_000);
    case.stream = true;
    sweep(&case, FaultKind::Error(5), false, 3);
}

/// Alters bytes at every `step`th operation in turn, and hands `found` each error of a job that had one altered in a
/// file that `concerns` it.
fn alter(
    case: &Case,
    kind: FaultKind,
    step: usize,
    concerns: impl Fn(&Path) -> bool,
    mut found: impl FnMut(Error),
) {
    let seed = seed();
    println!("SEED={seed}");
    for at in (0..case.run(seed, None).operations).step_by(step) {
        let fault = Fault {
            at,
            for_good: false,
            kind,
        };
        let outcome = case.run(seed.wrapping_mul(1_000_003) + at, Some(fault));
        let struck = outcome.struck.as_ref();
        if !struck.is_some_and(|struck| concerns(&struck.path)) {
            continue;
        }
        judge(case, &outcome, false);
        if let Err(error) = outcome.result {
            found(error);
        }
    }
}

/// A bit that turns over in temporary data, on its way out or back, is found (promise 5).
#[test]
fn faults_that_alter_temporary_data() {
    let mut case = Case::new(seed(), 300_000);
    case.temp_apart = true;
    for kind in [FaultKind::Flip, FaultKind::Lie] {
        let mut found = 0;
        let is_spill = |path: &Path| path.ends_with("spill");
        alter(&case, kind, 1, is_spill, |error| {
            assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
            assert!(error.offset.is_some(), "{error}");
            found += 1;
        });
        // Some strike padding that nobody reads.
        assert!(found > 20, "{found} found");
    }
}

/// The same where temporary data lie in the output's space, and one file holds both: found when they are loaded, or
/// when the output is read again.
#[test]
fn faults_that_alter_what_lies_in_the_output() {
    let mut case = Case::new(seed(), 300_000);
    case.verify = true;
    for kind in [FaultKind::Flip, FaultKind::Lie] {
        let (mut in_blocks, mut in_output) = (0, 0);
        let is_output = |path: &Path| path.to_string_lossy().contains(".out.");
        alter(&case, kind, 2, is_output, |error| {
            let lost = matches!(error.kind, ErrorKind::Corrupt | ErrorKind::Lost);
            assert!(lost, "{error}");
            match error.to_string().contains("temporary data") {
                true => in_blocks += 1,
                false => in_output += 1,
            }
        });
        println!("{kind:?}: {in_blocks} in blocks, {in_output} in the output");
        assert!(in_blocks > 10 && in_output > 10);
    }
}

#[test]
fn faults_in_a_job_that_verifies() {
    let mut case = Case::new(seed(), 300_000);
    case.verify = true;
    sweep(&case, FaultKind::Error(5), false, 2);
}

/// An output that does not come back from the device as it was written is found, and not given its name.
#[test]
fn faults_that_alter_the_output() {
    let mut case = Case::new(seed(), 150_000);
    case.verify = true;
    let seed = seed();
    println!("SEED={seed}");
    let operations = case.run(seed, None).operations;
    for kind in [FaultKind::Flip, FaultKind::Lie] {
        let mut found = 0;
        for at in 0..operations {
            let fault = Fault {
                at,
                for_good: false,
                kind,
            };
            let outcome = case.run(seed.wrapping_mul(1_000_003) + at, Some(fault));
            let about_output = |struck: &Struck| sortmill::commit::is_temporary(&struck.path);
            if !outcome.struck.as_ref().is_some_and(about_output) {
                continue;
            }
            judge(&case, &outcome, false);
            if let Err(error) = outcome.result {
                assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
                found += 1;
            }
        }
        assert!(found > 3, "{found} found");
    }
}

/// A header lies where temporary data of the first partition do, in the output's space. It was written before they were read, and
/// then the job said that the device had lost them.
#[test]
fn a_long_header_waits_for_what_lies_there() {
    let seed = seed();
    println!("SEED={seed}");
    let mut case = Case::new(seed, 1_500_000);
    let header = [vec![b'h'; 100_000], b"\n".to_vec()].concat();
    case.input = Arc::new([&header[..], &case.input].concat());
    case.expected = Arc::new([&header[..], &case.expected].concat());
    case.header_lines = 1;
    case.tuning.partition_count = Some(3);
    for round in 0..40 {
        let outcome = case.run(seed.wrapping_add(round), None);
        judge(&case, &outcome, false);
        let report = outcome.result.unwrap();
        assert!(report.bytes.temp_written > 0 && report.plan.shared_bytes.is_some());
    }
}
