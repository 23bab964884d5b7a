//! `--trace FILE`: what each thread did when.

use std::collections::BTreeMap;

use serde_json::Value;

use super::space::Small;
use super::{
    LITTLE, finish, run_badly, run_on_pipe, run_well, signal, sort, spawn_on_pipe, stderr, text,
    until_spilled, was_stopped_by, words,
};
use crate::Scratch;

fn read(scratch: &Scratch, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(scratch.path(name)).unwrap()).unwrap()
}

/// Nanoseconds of a field in microseconds.
fn ns(event: &Value, field: &str) -> u64 {
    (event[field].as_f64().unwrap() * 1e3).round() as u64
}

/// Begin, end and name of each slice, by thread.
fn slices(trace: &Value) -> BTreeMap<String, Vec<(u64, u64, String)>> {
    let events = trace["traceEvents"].as_array().unwrap();
    let mut names = BTreeMap::new();
    for event in events.iter().filter(|event| event["name"] == "thread_name") {
        let name = event["args"]["name"].as_str().unwrap().to_owned();
        names.insert(event["tid"].as_u64().unwrap(), name);
    }
    let mut found: BTreeMap<String, Vec<(u64, u64, String)>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let begin = ns(event, "ts");
        let name = event["name"].as_str().unwrap().to_owned();
        let thread = &names[&event["tid"].as_u64().unwrap()];
        let slice = (begin, begin + ns(event, "dur"), name);
        found.entry(thread.clone()).or_default().push(slice);
    }
    found
}

#[test]
fn a_trace_shows_every_stage_and_all_of_the_time() {
    let scratch = Scratch::new("sort-trace");
    std::fs::write(scratch.path("in"), text(60_000_000, 23)).unwrap();
    let line = format!("{LITTLE} --verify --trace {{}}trace --report {{}}report -o {{}}out {{}}in");
    run_well(sort(words(&scratch, &line)));
    assert_eq!(scratch.names(), ["in", "out", "report", "trace"]);
    let (trace, report) = (read(&scratch, "trace"), read(&scratch, "report"));
    let threads = slices(&trace);
    let phases = report["phases"].as_array().unwrap();
    for (phase, names) in phases.iter().zip([
        ["read", "partition-0", "spill"],
        ["load", "sort-0", "write"],
    ]) {
        let wall = phase["wall_ns"].as_u64().unwrap() as f64;
        for name in names {
            let slices = &threads[name];
            let overlap = slices.windows(2).find(|pair| pair[1].0 < pair[0].1);
            assert_eq!(overlap, None, "{name}");
            let sum: u64 = slices.iter().map(|slice| slice.1 - slice.0).sum();
            let off = sum as f64 / wall - 1.0;
            assert!(off.abs() < 0.05, "{name}: {sum} of {wall} ns");
        }
        // What is drawn of a stage is what the report says of it.
        for stage in phase["stages"].as_array().unwrap() {
            let stage_name = stage["stage"].as_str().unwrap();
            for (state, field) in [
                ("work", "work_ns"),
                ("input", "wait_input_ns"),
                ("output", "wait_output_ns"),
                ("memory", "wait_memory_ns"),
                ("device", "wait_device_ns"),
                ("done", "finished_ns"),
            ] {
                let name = format!("{stage_name}: {state}");
                let of_kind = names.iter().flat_map(|name| &threads[*name]);
                let drawn: u64 = of_kind
                    .filter(|slice| slice.2 == name)
                    .map(|slice| slice.1 - slice.0)
                    .sum();
                assert_eq!(drawn, stage[field].as_u64().unwrap(), "{name}");
            }
        }
    }
    let job: Vec<&str> = threads["the job"].iter().map(|slice| &*slice.2).collect();
    let wanted = [
        "prepare",
        "sample",
        "distribute",
        "sort",
        "commit",
        "verify",
    ];
    assert_eq!(job, wanted);
    assert!(
        threads["verify"]
            .iter()
            .any(|slice| slice.2 == "read: work")
    );
    check_counters(&trace, &report);
}

/// What the counters say was moved is what the report says, and in the end nothing is in flight.
fn check_counters(trace: &Value, report: &Value) {
    let events = trace["traceEvents"].as_array().unwrap();
    for (thread, field) in [
        ("read", "input_read"),
        ("spill", "temp_written"),
        ("load", "temp_read"),
        ("write", "output_written"),
        ("verify", "output"),
    ] {
        let last = |name: String, arg: &str| {
            let mut of_name = events.iter().filter(|event| event["name"] == name);
            of_name.next_back().unwrap()["args"][arg].clone()
        };
        let moved = last(format!("{thread}: bytes"), "moved");
        if ["read", "verify"].contains(&thread) {
            // A direct read asks for whole blocks, and the file ends within one.
            let bytes = report["bytes"][field].as_u64().unwrap();
            assert!(moved.as_u64().unwrap() - bytes < 4096, "{moved} {bytes}");
        } else {
            assert_eq!(moved, report["bytes"][field], "{thread}");
        }
        assert_eq!(last(format!("{thread}: bytes"), "in flight"), 0);
        assert_eq!(last(format!("{thread}: in flight"), "operations"), 0);
    }
}

/// The parts of the job as a whole of a job that failed, and why that was.
fn failed(scratch: &Scratch, threads: &[&str]) -> (Vec<String>, String) {
    let trace = read(scratch, "trace");
    let slices = slices(&trace);
    for thread in threads {
        assert!(slices.contains_key(*thread), "nothing of {thread}");
    }
    let events = trace["traceEvents"].as_array().unwrap();
    let failed = events.iter().find(|event| event["name"] == "failed");
    let why = failed.unwrap()["args"]["error"].as_str().unwrap();
    let job = slices["the job"].iter().map(|slice| slice.2.clone());
    (job.collect(), why.to_owned())
}

const DISTRIBUTING: [&str; 3] = ["read", "partition-0", "spill"];

#[test]
fn the_trace_of_a_full_disk_shows_what_came_before() {
    let Some(small) = Small::new("trace-full", "tmpfs", 8) else {
        return;
    };
    let line = format!("{LITTLE} --trace {{}}trace -T {{}}small -o {{}}out");
    let output = run_on_pipe(sort(words(&small.scratch, &line)), &text(60_000_000, 24));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let (job, why) = failed(&small.scratch, &DISTRIBUTING);
    assert_eq!(job, ["prepare", "distribute"]);
    assert!(why.contains("No space left"), "{why}");
    assert!(stderr(&output).contains(&why), "{}", stderr(&output));
}

#[test]
fn a_job_that_was_stopped_has_a_trace() {
    let scratch = Scratch::new("sort-trace-stopped");
    std::fs::write(scratch.path("trace"), "of another job, and longer").unwrap();
    let line = format!("{LITTLE} --trace {{}}trace -T {{}} -o {{}}out");
    let mut child = spawn_on_pipe(sort(words(&scratch, &line)));
    let mut pipe = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut pipe, &text(60_000_000, 25)).unwrap();
    until_spilled(&scratch.path);
    signal(child.id(), "INT");
    was_stopped_by(&finish(child), "INT");
    drop(pipe);
    assert_eq!(scratch.names(), ["trace"]);
    let (job, why) = failed(&scratch, &DISTRIBUTING);
    assert_eq!(job, ["prepare", "distribute"]);
    assert!(why.contains("told to stop"), "{why}");
}

#[test]
fn a_trace_that_cannot_be_written_shows_before_the_work() {
    let scratch = Scratch::new("sort-trace-nowhere");
    std::fs::write(scratch.path("in"), b"b\na\n").unwrap();
    let line = "--trace {}missing/trace -o {}out {}in";
    run_badly(
        sort(words(&scratch, line)),
        &["writing the trace", "missing/trace"],
    );
    assert_eq!(scratch.names(), ["in"]);
}
