//! `--until STAGE`: the job itself, to the end of a stage, and no output.

use serde_json::Value;

use super::{
    LITTLE, make_fifo, names_with, run_badly, run_on_pipe, run_well, sort, stderr, text, words,
};
use crate::Scratch;

const STAGES: [&str; 7] = [
    "read",
    "cut",
    "partition",
    "spill",
    "load",
    "sort",
    "reduce",
];
/// The stages that a whole job of this kind runs, in order; `map` and `merge` go with their neighbours.
const ORDER: [&str; 9] = [
    "read",
    "cut",
    "map",
    "partition",
    "spill",
    "load",
    "sort",
    "merge",
    "reduce",
];

fn report(scratch: &Scratch) -> Value {
    let text = std::fs::read(scratch.path("report")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn stage<'a>(report: &'a Value, name: &str) -> Option<&'a Value> {
    let phases = report["phases"].as_array().unwrap().iter();
    let mut stages = phases.flat_map(|phase| phase["stages"].as_array().unwrap());
    stages.find(|stage| stage["stage"] == name)
}

/// A job that spills, ended after `last`: nothing is left, the output is what it was, and the counts are those
/// of the input, as far as the job came.
fn check(scratch: &Scratch, last: &str, input: &[u8]) {
    let line = format!("{LITTLE} --until {last} -T {{}} --report {{}}report -o {{}}out {{}}in");
    let output = run_well(sort(words(scratch, &line)));
    assert!(output.stdout.is_empty());
    let said = stderr(&output);
    assert!(
        said.starts_with(&format!("ended after {last}, no output: ")),
        "{said}"
    );
    assert!(said.contains("checked: "), "{said}");
    assert!(!said.contains("proven"), "{said}");
    assert_eq!(scratch.names(), ["in", "out", "report"], "{last}");
    assert_eq!(std::fs::read(scratch.path("out")).unwrap(), b"before\n");

    let report = report(scratch);
    assert_eq!(report["until"], last);
    let reached = ORDER.iter().position(|name| *name == last).unwrap();
    for (at, name) in ORDER.into_iter().enumerate() {
        assert_eq!(
            stage(&report, name).is_some(),
            at <= reached,
            "{last}: {name}"
        );
        if at <= reached {
            assert!(said.contains(&format!("\n  {name} ")), "{name}: {said}");
        }
    }
    assert!(stage(&report, "write").is_none());

    let (bytes, records) = (
        input.len() as u64,
        input.split(|&byte| byte == b'\n').count() as u64 - 1,
    );
    let is = |value: &Value, count: u64| assert_eq!(value, count, "{last}: {report:#}");
    is(&report["bytes"]["input"], bytes);
    is(&report["bytes"]["output"], 0);
    is(&report["bytes"]["output_written"], 0);
    for name in ["cut", "partition", "sort", "reduce"] {
        let Some(found) = stage(&report, name) else {
            continue;
        };
        is(&found["records_in"], records);
        is(&found["bytes_in"], bytes);
    }
    let written = report["bytes"]["temp_written"].as_u64().unwrap();
    let read = report["bytes"]["temp_read"].as_u64().unwrap();
    let at = |name| ORDER.iter().position(|other| *other == name).unwrap();
    assert_eq!(written > 0, reached >= at("spill"), "{last}: {report:#}");
    match reached >= at("load") {
        // Blocks of a divided partition are read for each of its parts.
        true => assert!(read >= written, "{last}: {report:#}"),
        false => is(&report["bytes"]["temp_read"], 0),
    }
}

#[test]
fn a_job_ends_after_any_stage_and_leaves_all_as_it_was() {
    let scratch = Scratch::new("sort-until");
    let mut input = text(60_000_000, 21);
    input.truncate(input.iter().rposition(|&byte| byte == b'\n').unwrap() + 1);
    std::fs::write(scratch.path("in"), &input).unwrap();
    std::fs::write(scratch.path("out"), b"before\n").unwrap();
    for last in STAGES {
        check(&scratch, last, &input);
    }
}

#[test]
fn a_job_that_ends_early_opens_no_output_and_reads_streams_too() {
    let scratch = Scratch::new("sort-until-stream");
    make_fifo(&scratch.path("to"));
    let input = text(50_000_000, 22);
    for last in STAGES {
        // Nobody reads this pipe, so a job that opened it would wait for ever.
        let line = format!("{LITTLE} --until {last} -T {{}} -o {{}}to");
        let output = run_on_pipe(sort(words(&scratch, &line)), &input);
        assert_eq!(output.status.code(), Some(0), "{last}: {}", stderr(&output));
        let line = format!("{LITTLE} --until {last} -T {{}}");
        let output = run_on_pipe(sort(words(&scratch, &line)), &input);
        assert_eq!(output.status.code(), Some(0), "{last}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{last}");
    }
    assert_eq!(scratch.names(), ["to"]);
}

#[test]
fn a_job_of_one_key_ends_early_where_partitions_would_be_merged() {
    let scratch = Scratch::new("sort-until-merge");
    // One chunk of one beginning, which cannot be divided, of more records than a worker has entries.
    let mut input = b"x\n".repeat(1_500_000);
    input.extend(std::iter::repeat_n(b'x', 500_000));
    std::fs::write(scratch.path("in"), &input).unwrap();
    for last in STAGES {
        let line = format!("{LITTLE} --until {last} -T {{}} --report {{}}report {{}}in");
        run_well(sort(words(&scratch, &line)));
        let report = report(&scratch);
        let merged = report["partitions"]["merged"].as_u64().unwrap();
        let reaches_load = ["load", "sort", "reduce"].contains(&last);
        assert_eq!(merged > 0, reaches_load, "{last}: {report:#}");
    }
    assert!(names_with(&scratch.path, "sortmill-").is_empty());
}

#[test]
fn stages_that_no_job_ends_after_are_told() {
    let names = STAGES.join(", ");
    for stage in ["write", "merge", "reading", ""] {
        run_badly(sort(["--until", stage, "/dev/null"]), &[&names]);
    }
}

#[test]
fn an_output_that_is_not_made_is_not_verified() {
    let scratch = Scratch::new("sort-until-verify");
    std::fs::write(scratch.path("in"), b"b\na\n").unwrap();
    for last in STAGES {
        let line = format!("--verify --until {last} -o {{}}out {{}}in");
        run_badly(sort(words(&scratch, &line)), &["verified", "--until"]);
    }
    run_well(sort(words(
        &scratch,
        "--no-verify --until sort -o {}in {}in",
    )));
    assert_eq!(scratch.names(), ["in"]);
}

#[test]
fn bad_input_fails_whatever_the_stage() {
    let scratch = Scratch::new("sort-until-bad");
    std::fs::write(scratch.path("in"), [b'x'; 150]).unwrap();
    for last in STAGES {
        let line = format!("--format fixed:100 --until {last} {{}}in");
        run_badly(sort(words(&scratch, &line)), &["cut off"]);
    }
    assert_eq!(scratch.names(), ["in"]);
}
