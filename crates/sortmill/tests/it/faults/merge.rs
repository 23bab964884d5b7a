//! Faults in jobs that merge sorted inputs, at once and by way of runs.

use std::path::Path;
use std::sync::Arc;

use sortmill::columns::{Columns, Compare};
use sortmill::error::ErrorKind;
use sortmill::io::codec::{Codec, Encoder};
use sortmill::io::sim::{Fault, FaultKind, Sim};
use sortmill::job::{Compress, Disorder, Input, Job, Output, Tuning};
use sortmill::order::Format;
use sortmill::queue::Stop;
use sortmill::run;

use super::packed::unpacked;
use super::{OLD, Outcome, apart, harmless, leftovers, random, seed, sorted, under_schedule};
use crate::csv_by;

/// Sorted inputs and what they are to become.
#[derive(Clone)]
struct Case {
    inputs: Arc<Vec<Vec<u8>>>,
    expected: Arc<Vec<u8>>,
    memory_bytes: u64,
    verify: bool,
    /// The first input comes as a stream.
    stream: bool,
    /// How inputs and output are compressed.
    packed: Option<Codec>,
    columns: Option<Columns>,
    header_lines: u64,
}

impl Case {
    /// Lines of a few letters behind a long prefix, many of them equal, dealt out to `count` inputs.
    fn new(seed: u64, count: usize, bytes: usize) -> Self {
        let mut state = seed;
        let mut inputs = vec![Vec::new(); count];
        let mut left = bytes;
        while left > 0 {
            let key = random(&mut state) % 3000;
            let width = (random(&mut state) % 60) as usize;
            let line = format!("what all lines begin with {key:05} {:width$}\n", "");
            left = left.saturating_sub(line.len());
            inputs[(random(&mut state) % count as u64) as usize].extend(line.bytes());
        }
        let expected = sorted(&inputs.concat());
        Self {
            inputs: Arc::new(inputs.iter().map(|input| sorted(input)).collect()),
            expected: Arc::new(expected),
            memory_bytes: 400 << 10,
            verify: false,
            stream: false,
            packed: None,
            columns: None,
            header_lines: 0,
        }
    }

    /// The same, each input behind a line of its own of up to so many bytes, of which the first one stays.
    fn with_headers(self, seed: u64, bytes_max: u64) -> Self {
        let mut state = seed;
        let mut header = || {
            let bytes = random(&mut state) % bytes_max;
            [vec![b'~'; bytes as usize], vec![b'\n']].concat()
        };
        let headers: Vec<Vec<u8>> = self.inputs.iter().map(|_| header()).collect();
        let behind = |(header, input): (&Vec<u8>, &Vec<u8>)| [&header[..], input].concat();
        Self {
            inputs: Arc::new(headers.iter().zip(&*self.inputs).map(behind).collect()),
            expected: Arc::new([&headers[0][..], &self.expected].concat()),
            header_lines: 1,
            ..self
        }
    }

    /// The same lines as values of records, each of which goes over two lines, behind a header.
    fn of_columns(self) -> Self {
        let records = |lines: &Vec<u8>| -> Vec<u8> {
            let lines = std::str::from_utf8(lines).unwrap().lines();
            let records = lines.map(|line| format!("1,\"{line}\nx\"\r\n"));
            let header = "number,\"te\nxt\"\n".to_owned();
            [header]
                .into_iter()
                .chain(records)
                .collect::<String>()
                .into_bytes()
        };
        let columns = csv_by("te\nxt", Compare::Text, false);
        Self {
            inputs: Arc::new(self.inputs.iter().map(records).collect()),
            expected: Arc::new(records(&self.expected)),
            columns: Some(columns),
            ..self
        }
    }

    /// The same with compressed ends.
    fn packed(self, codec: Codec) -> Self {
        let mut encoder = Encoder::new(codec, 1, 9000).unwrap();
        let mut packed = |input: &Vec<u8>| {
            let (mut all, mut one) = (Vec::new(), Vec::new());
            for member in input.chunks(9000) {
                encoder.encode(member, &mut one).unwrap();
                all.extend_from_slice(&one);
            }
            all
        };
        Self {
            inputs: Arc::new(self.inputs.iter().map(&mut packed).collect()),
            packed: Some(codec),
            memory_bytes: 5 << 20,
            ..self
        }
    }

    fn job(&self) -> Job {
        let named = (0..self.inputs.len()).map(|number| match (number, self.stream) {
            (0, true) => Input::Stdin,
            _ => Input::Path(format!("/in{number}").into()),
        });
        let columns = self.columns.as_ref();
        let format = columns.map_or(Format::Lines, Columns::format);
        let mut job = Job::new(named.collect(), Output::Path("/out".into()), format);
        job.columns = columns.cloned();
        job.merge = Some(Disorder::Refused);
        job.memory_bytes = Some(self.memory_bytes);
        job.temps = vec!["/temp".into()];
        job.threads = Some(1);
        job.verify = Some(self.verify);
        job.header_lines = self.header_lines;
        job.decompress = self.packed.is_some();
        job.compress = self.packed.map(|codec| Compress { codec, level: None });
        job.tuning = Tuning {
            chunk_bytes: Some(8192),
            ..Tuning::default()
        };
        job
    }

    fn run(&self, seed: u64, fault: Option<Fault>) -> Outcome {
        let case = self.clone();
        under_schedule(seed, move || {
            let sim = Sim::new(seed);
            sim.put_dir("/temp");
            sim.put("/out", OLD);
            for (number, input) in case.inputs.iter().enumerate() {
                match (number, case.stream) {
                    (0, true) => sim.put_stdin(input),
                    _ => sim.put(format!("/in{number}"), input),
                }
            }
            sim.set_fault(fault);
            let result = run::sort(&case.job(), &sim, &Stop::new());
            let mut left = leftovers(&sim);
            left.retain(|path| !path.to_string_lossy().starts_with("/in"));
            Outcome {
                trace: Vec::new(),
                output: sim.get("/out").unwrap_or_default(),
                input: sim.get("/in1"),
                struck: sim.struck(),
                operations: sim.operation_count(),
                leftovers: left,
                result,
            }
        })
    }

    /// Right output or a clean error; nothing in between.
    fn judge(&self, outcome: &Outcome, for_good: bool) {
        let told = format!("{:?} {:?}", outcome.struck, outcome.result.as_ref().err());
        assert_eq!(
            outcome.input.as_ref(),
            self.inputs.get(1),
            "input altered: {told}"
        );
        let struck = outcome.struck.as_ref();
        let operation = struck.map_or("none", |struck| struck.operation);
        let is_done = outcome.result.is_ok() || operation == "sync_dir";
        match is_done {
            true => {
                let output = match self.packed {
                    Some(codec) => unpacked(codec, &outcome.output),
                    None => outcome.output.clone(),
                };
                assert!(output == *self.expected, "wrong output: {told}");
            }
            false => assert!(outcome.output == OLD, "old output gone: {told}"),
        }
        if !for_good && !operation.starts_with("remove") {
            assert!(
                outcome.leftovers.is_empty(),
                "{:?} left: {told}",
                outcome.leftovers
            );
        }
    }

    /// One fault after the other, `step` operations apart.
    fn sweep(&self, kind: FaultKind, for_good: bool, step: usize) {
        let step = apart(step);
        let seed = seed();
        println!("SEED={seed}");
        let healthy = self.run(seed, None);
        self.judge(&healthy, false);
        let report = healthy.result.as_ref().expect("nothing struck");
        // The folder is there for whoever cleans up after a killed job; without runs nothing goes to it.
        let has_runs = report.merged.is_some_and(|merged| merged.runs > 0);
        let mut struck = 0;
        for at in (0..healthy.operations + 20).step_by(step) {
            let fault = Fault { at, for_good, kind };
            let outcome = self.run(seed.wrapping_mul(1_000_003) + at, Some(fault));
            self.judge(&outcome, for_good);
            struck += u64::from(outcome.struck.is_some());
            if let Some(place) = &outcome.struck {
                let is_folder = !has_runs && place.path.starts_with("/temp");
                let is_harmless = harmless(place) || is_folder;
                assert!(
                    outcome.result.is_err() || is_harmless,
                    "{place:?} passed unnoticed"
                );
            }
        }
        // How many there are differs by a few from run to run, and the last one may have been just missed.
        let wanted = healthy.operations * 9 / 10;
        assert!(
            (struck + 1) * step as u64 >= wanted,
            "{struck} faults struck, {step} apart, of {}",
            healthy.operations
        );
    }
}

/// Two inputs of several reads each and some of one.
fn at_once() -> Case {
    Case::new(seed(), 9, 300_000)
}

/// More inputs than there are buffers for.
fn by_runs() -> Case {
    Case::new(seed(), 60, 200_000)
}

#[test]
fn the_jobs_go_the_whole_way() {
    let report = at_once().run(seed(), None).result.unwrap();
    assert_eq!(report.merged.unwrap().runs, 0);
    let report = by_runs().run(seed(), None).result.unwrap();
    let merged = report.merged.unwrap();
    assert!(merged.runs > 1 && merged.passes > 1, "{merged:?}");
}

/// A row of which nothing has come yet, all of whose first read was its header, used to lose its buffer to one whose piece the
/// merge had just taken: the merge waited for the row, and the row for a buffer, for ever.
#[test]
fn every_row_gets_a_buffer() {
    let seed = seed();
    println!("SEED={seed}");
    for round in 0..400 {
        let seed = seed.wrapping_mul(1_000_003) + round;
        let mut case = Case::new(seed, 20 + round as usize % 8, 300_000);
        if round % 4 > 0 {
            case = case.with_headers(seed, 20_000);
        }
        let outcome = case.run(seed, None);
        case.judge(&outcome, false);
        assert!(outcome.result.is_ok(), "{:?}", outcome.result.err());
    }
}

#[test]
fn faults_once() {
    at_once().sweep(FaultKind::Error(5), false, 1);
    by_runs().sweep(FaultKind::Error(5), false, 2);
}

#[test]
fn faults_for_good() {
    at_once().sweep(FaultKind::Error(28), true, 2);
    by_runs().sweep(FaultKind::Error(28), true, 3);
}

#[test]
fn faults_with_a_stream_and_verified() {
    for mut case in [at_once(), by_runs()] {
        case.stream = true;
        case.verify = true;
        case.sweep(FaultKind::Error(5), false, 3);
    }
}

#[test]
fn faults_in_merges_of_columns() {
    for mut case in [at_once().of_columns(), by_runs().of_columns()] {
        case.sweep(FaultKind::Error(5), false, 3);
        case.stream = true;
        case.verify = true;
        case.sweep(FaultKind::Error(28), true, 7);
    }
}

#[test]
fn faults_where_both_ends_are_compressed() {
    for mut case in [
        Case::new(seed(), 5, 100_000).packed(Codec::Gzip),
        Case::new(seed(), 12, 100_000).packed(Codec::Gzip),
    ] {
        let report = case.run(seed(), None).result.unwrap();
        let runs = report.merged.unwrap().runs;
        assert_eq!(runs > 0, case.inputs.len() > 5, "{:?}", report.merged);
        case.sweep(FaultKind::Error(5), false, 3);
        case.stream = true;
        case.verify = true;
        case.sweep(FaultKind::Error(28), true, 5);
    }
}

/// Whatever the schedule, with just the memory there must be: nothing waits for ever.
#[test]
fn any_schedule_comes_to_an_end() {
    for (count, stream) in [(1, false), (2, true), (9, false), (13, true), (60, true)] {
        let mut case = Case::new(seed() + count as u64, count, 150_000);
        case.stream = stream;
        for round in 0..400 {
            let outcome = case.run(seed().wrapping_mul(77) + round, None);
            case.judge(&outcome, false);
            assert!(outcome.result.is_ok(), "{:?}", outcome.result.err());
        }
    }
    for (count, stream) in [(1, true), (9, false), (60, true)] {
        let mut case = Case::new(seed() + count as u64, count, 100_000).of_columns();
        case.stream = stream;
        for round in 0..20 {
            let outcome = case.run(seed().wrapping_mul(77) + round, None);
            case.judge(&outcome, false);
            assert!(outcome.result.is_ok(), "{:?}", outcome.result.err());
        }
    }
    for (count, stream) in [(1, true), (5, false), (14, true)] {
        let mut case = Case::new(seed() + count as u64, count, 60_000).packed(Codec::Gzip);
        case.stream = stream;
        for round in 0..20 {
            let outcome = case.run(seed().wrapping_mul(77) + round, None);
            case.judge(&outcome, false);
            assert!(outcome.result.is_ok(), "{:?}", outcome.result.err());
        }
    }
}

/// A bit that turns over in a run, on its way out or back, is found (promise 5).
#[test]
fn faults_that_alter_runs() {
    let case = by_runs();
    let seed = seed();
    println!("SEED={seed}");
    for kind in [FaultKind::Flip, FaultKind::Lie] {
        let mut found = 0;
        for at in 0..case.run(seed, None).operations {
            let fault = Fault {
                at,
                for_good: false,
                kind,
            };
            let outcome = case.run(seed.wrapping_mul(1_000_003) + at, Some(fault));
            let is_spill = |path: &Path| path.ends_with("spill");
            if !outcome
                .struck
                .as_ref()
                .is_some_and(|struck| is_spill(&struck.path))
            {
                continue;
            }
            case.judge(&outcome, false);
            if let Err(error) = outcome.result {
                assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
                assert!(error.offset.is_some(), "{error}");
                found += 1;
            }
        }
        assert!(found > 5, "{found} found");
    }
}
