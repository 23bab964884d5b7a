//! A fault at every few operations of a pipeline of two phases: right output or a clean error, and nothing left, also of
//! what lies between the phases.

use std::collections::BTreeMap;
use std::sync::Arc;

use sortmill::error::{Error, ErrorKind};
use sortmill::io::codec::{Codec, Encoder};
use sortmill::io::sim::{Fault, FaultKind, Sim, Struck};
use sortmill::pipeline::{Form, Pipeline, Settings, count, read_text, words};
use sortmill::queue::Stop;

use super::{Case, OLD, harmless, input, leftovers, seed, under_schedule};

/// Words and how often they come, by word.
fn pipeline() -> Pipeline {
    let table = read_text(["/in"], 0)
        .flat_map(&words("line").lower())
        .unwrap();
    let counts = table.group_by(&["word"]).unwrap();
    let counts = counts.agg(&[count().named("n")]).unwrap();
    let sorted = counts.sort(&[("word", true)]).unwrap();
    sorted.write("/out", Form::csv(true)).unwrap()
}

fn wanted(input: &[u8]) -> String {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for word in std::str::from_utf8(input).unwrap().split_whitespace() {
        *counts.entry(word.to_owned()).or_default() += 1;
    }
    let lines = counts.iter().rev().map(|(word, n)| format!("{word},{n}\n"));
    "word,n\n".to_owned() + &lines.collect::<String>()
}

struct Outcome {
    result: Result<(), Error>,
    output: Vec<u8>,
    left: usize,
    struck: Option<Struck>,
    operations: u64,
    temp_written: u64,
    /// Chunks that may be decompressed ahead of their turn.
    ahead_count: usize,
}

/// Lines that have a letter, in their order: nothing is brought together.
fn passing() -> Pipeline {
    let table = read_text(["/in"], 0).filter(["line"], |[line]| Ok(has_letter(line.bytes())));
    table.unwrap().write("/out", Form::Text).unwrap()
}

/// Lines of three compressed inputs that have a letter.
fn packed_passing() -> Pipeline {
    let table = read_text(PACKED, 0).filter(["line"], |[line]| Ok(has_letter(line.bytes())));
    table.unwrap().write("/out", Form::Text).unwrap()
}

const PACKED: [&str; 3] = ["/one", "/two", "/three"];

fn has_letter(line: &[u8]) -> bool {
    line.iter().any(|byte| b"aeiou".contains(byte))
}

fn run(
    pipeline: fn() -> Pipeline,
    input: &Arc<Vec<u8>>,
    seed: u64,
    fault: Option<Fault>,
) -> Outcome {
    let inputs = Arc::new(vec![("/in", input.to_vec())]);
    run_over(pipeline, (&inputs, 400 << 10), seed, fault)
}

/// Paths and what lies there.
type Inputs = Arc<Vec<(&'static str, Vec<u8>)>>;

fn run_over(
    pipeline: fn() -> Pipeline,
    (inputs, memory_bytes): (&Inputs, u64),
    seed: u64,
    fault: Option<Fault>,
) -> Outcome {
    let inputs = Arc::clone(inputs);
    under_schedule(seed, move || {
        let sim = Sim::new(seed);
        sim.put_dir("/temp");
        sim.put("/out", OLD);
        for (path, bytes) in &*inputs {
            sim.put(path, bytes);
        }
        sim.set_fault(fault);
        let settings = Settings {
            memory_bytes: Some(memory_bytes),
            temps: vec!["/temp".into()],
            threads: Some(2),
            tuning: Case::new(seed, 100).tuning,
            ..Settings::default()
        };
        let result = pipeline().run(&settings, &sim, &Stop::new());
        let written = |report: &sortmill::pipeline::PipelineReport| {
            let phases = report.phases.iter();
            phases.map(|phase| phase.report.bytes.temp_written).sum()
        };
        let ahead = |report: &sortmill::pipeline::PipelineReport| {
            let plans = report.phases.iter().map(|phase| &phase.report.plan);
            let decoders = plans.filter_map(|plan| plan.decoders.as_ref());
            decoders.map(|decoders| decoders.ahead_count).sum()
        };
        Outcome {
            ahead_count: result.as_ref().map_or(0, ahead),
            temp_written: result.as_ref().map_or(0, written),
            result: result.map(|_| ()),
            output: sim.get("/out").unwrap_or_default(),
            left: leftovers(&sim).len(),
            struck: sim.struck(),
            operations: sim.operation_count(),
        }
    })
}

/// The outcome with one fault after the other, `step` operations apart.
fn sweep(kind: FaultKind, step: usize, mut see: impl FnMut(&Outcome)) {
    let seed = seed();
    println!("SEED={seed}");
    let input = Arc::new(input(seed, 250_000));
    let wanted = wanted(&input);
    let healthy = run(pipeline, &input, seed, None);
    assert!(healthy.result.is_ok(), "{:?}", healthy.result);
    assert!(healthy.temp_written > 20_000, "{}", healthy.temp_written);
    for at in (0..healthy.operations).step_by(step) {
        let fault = Fault {
            at,
            for_good: false,
            kind,
        };
        let outcome = run(
            pipeline,
            &input,
            seed.wrapping_mul(1_000_003) + at,
            Some(fault),
        );
        let told = format!("{:?} {:?}", outcome.struck, outcome.result);
        let operation = outcome
            .struck
            .as_ref()
            .map_or("none", |struck| struck.operation);
        match &outcome.result {
            // What a device says of the input, or of the output, is believed.
            Ok(()) if kind == FaultKind::Flip && !is_temporary(&outcome) => {}
            Ok(()) => assert!(outcome.output == wanted.as_bytes(), "wrong output: {told}"),
            Err(_) if operation == "sync_dir" => {}
            Err(_) => assert!(outcome.output == OLD, "old output gone: {told}"),
        }
        if !operation.starts_with("remove") {
            assert_eq!(outcome.left, 0, "something left: {told}");
        }
        see(&outcome);
    }
}

#[test]
fn faults_in_a_pipeline() {
    sweep(FaultKind::Error(5), 3, |outcome| {
        if let (Ok(()), Some(place)) = (&outcome.result, &outcome.struck) {
            // The jobs of a pipeline look at its folder as they look at those of killed jobs.
            let harmless = harmless(place) || place.path.ends_with("owner");
            assert!(harmless, "{place:?} passed unnoticed");
        }
    });
}

/// Workers hand what they make over in turn, and none waits for ever, whatever fails and whoever is first.
#[test]
fn faults_where_nothing_is_brought_together() {
    let seed = seed();
    println!("SEED={seed}");
    let input = Arc::new(input(seed, 60_000));
    let lines = input.split_inclusive(|&byte| byte == b'\n');
    let mut wanted = lines
        .filter(|line| has_letter(line))
        .collect::<Vec<_>>()
        .concat();
    if wanted.last().is_some_and(|&byte| byte != b'\n') {
        wanted.push(b'\n');
    }
    let run = |seed, fault| run(passing, &input, seed, fault);
    assert_eq!(sweep_over(seed, &wanted, 1, run), 0);
}

/// Lines in an order that is drawn, which go through the engine as they are.
fn shuffling() -> Pipeline {
    let table = read_text(["/in"], 0).shuffle(7, 0).unwrap();
    table.write("/out", Form::Text).unwrap()
}

/// What is taken off the ends of lines is not taken for lost, and what is lost is seen.
#[test]
fn faults_where_lines_are_shuffled() {
    let seed = seed();
    println!("SEED={seed}");
    let mut input = input(seed, 250_000);
    input.extend_from_slice(b"\nand the last\r\n");
    let input = String::from_utf8(input).unwrap().replace("a\n", "a\r\n");
    let mut wanted: Vec<&str> = input.lines().collect();
    wanted.sort_unstable();
    let input = Arc::new(input.clone().into_bytes());
    let run = |seed, fault| run(shuffling, &input, seed, fault);
    let healthy = run(seed, None);
    assert!(healthy.result.is_ok(), "{:?}", healthy.result);
    let output = String::from_utf8(healthy.output.clone()).unwrap();
    let mut found: Vec<&str> = output.split_terminator('\n').collect();
    found.sort_unstable();
    assert!(found == wanted);
    assert!(sweep_over(seed, &healthy.output, 3, run) > 20_000);
}

/// Compressed inputs that are decompressed ahead of their turn wait for it, one longer than there is memory for too, and none
/// waits for ever.
#[test]
fn faults_where_compressed_inputs_wait_for_their_turn() {
    let seed = seed();
    println!("SEED={seed}");
    let (mut inputs, mut wanted) = (Vec::new(), Vec::new());
    for (path, bytes) in PACKED.into_iter().zip([600_000, 600_000, 25_000]) {
        let mut input = input(seed, bytes);
        if input.last().is_some_and(|&byte| byte != b'\n') {
            input.push(b'\n');
        }
        let lines = input.split_inclusive(|&byte| byte == b'\n');
        wanted.extend(lines.filter(|line| has_letter(line)).flatten());
        let mut encoder = Encoder::new(Codec::Gzip, 1, input.len()).unwrap();
        let mut member = Vec::new();
        encoder.encode(&input, &mut member).unwrap();
        inputs.push((path, member));
    }
    let inputs = Arc::new(inputs);
    // Each of two decoders takes half a MiB.
    let run = |seed, fault| run_over(packed_passing, (&inputs, 4_500 << 10), seed, fault);
    let healthy = run(seed, None);
    let chunks = healthy.ahead_count;
    assert!((1..130).contains(&chunks), "{chunks} {:?}", healthy.result);
    assert_eq!(sweep_over(seed, &wanted, 7, run), 0);
}

/// Runs without a fault, and then with one after the other, `step` operations apart. Answers how many bytes of temporary data the first
/// run wrote.
fn sweep_over(
    seed: u64,
    wanted: &[u8],
    step: usize,
    run: impl Fn(u64, Option<Fault>) -> Outcome,
) -> u64 {
    let healthy = run(seed, None);
    assert!(healthy.result.is_ok(), "{:?}", healthy.result);
    assert!(healthy.output == wanted);
    for at in (0..healthy.operations).step_by(step) {
        let fault = Fault {
            at,
            for_good: at % 2 == 0,
            kind: FaultKind::Error(5),
        };
        let outcome = run(seed.wrapping_mul(1_000_003) + at, Some(fault));
        let told = format!("{:?} {:?}", outcome.struck, outcome.result);
        match &outcome.result {
            Ok(()) => assert!(outcome.output == wanted, "wrong output: {told}"),
            Err(_) => {
                let struck = outcome.struck.as_ref();
                let is_late = struck.is_some_and(|struck| struck.operation == "sync_dir");
                assert!(is_late || outcome.output == OLD, "old output gone: {told}");
            }
        }
    }
    healthy.temp_written
}

/// Whether it struck what lies in the temporary folder.
fn is_temporary(outcome: &Outcome) -> bool {
    let struck = outcome.struck.as_ref();
    struck.is_some_and(|struck| struck.path.starts_with("/temp"))
}

/// A bit that turns over in temporary data, between two phases too, is found before the output has its name.
#[test]
fn faults_that_alter_what_lies_between_phases() {
    let mut found = 0;
    sweep(FaultKind::Flip, 2, |outcome| {
        if let (Err(error), true) = (&outcome.result, is_temporary(outcome)) {
            let kinds = [ErrorKind::Corrupt, ErrorKind::Input, ErrorKind::Lost];
            assert!(kinds.contains(&error.kind), "{error}");
            let path = outcome
                .struck
                .as_ref()
                .map(|struck| struck.path.display().to_string());
            found += u32::from(path.is_some_and(|path| path.contains("between-")));
        }
    });
    assert!(found > 5, "{found} found");
}
