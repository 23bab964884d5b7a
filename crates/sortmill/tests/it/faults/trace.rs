//! What a job that failed shows of itself: its trace is whole, and holds everything up to there.

use serde_json::Value;
use sortmill::io::sim::{Fault, FaultKind};

use super::{Case, Outcome, judge, seed};

/// The names of the threads, and those of the parts of the job as a whole, in order.
fn names(events: &[Value]) -> (Vec<&str>, Vec<&str>) {
    let threads = events.iter().filter(|event| event["name"] == "thread_name");
    let of_job = |event: &&Value| event["ph"] == "X" && event["tid"] == 0;
    (
        threads
            .filter_map(|event| event["args"]["name"].as_str())
            .collect(),
        events
            .iter()
            .filter(of_job)
            .filter_map(|event| event["name"].as_str())
            .collect(),
    )
}

/// Holds the trace of a job against what came of it. Answers whether the job failed as it spilled, and as it loaded.
fn check(outcome: &Outcome) -> (bool, bool) {
    let trace: Value = serde_json::from_slice(&outcome.trace).expect("it is JSON");
    let events = trace["traceEvents"].as_array().unwrap();
    let failed: Vec<&Value> = events
        .iter()
        .filter(|event| event["name"] == "failed")
        .collect();
    let (threads, phases) = names(events);
    let Err(error) = &outcome.result else {
        assert!(failed.is_empty(), "{failed:?}");
        assert_eq!(phases.last(), Some(&"verify"), "{phases:?}");
        return (false, false);
    };
    let told = format!("{:?} {error}: {threads:?} {phases:?}", outcome.struck);
    if phases.is_empty() {
        // It had not begun.
        assert!(outcome.operations < 20 && threads == ["the job"], "{told}");
        return (false, false);
    }
    assert_eq!(failed.len(), 1, "{told}");
    assert_eq!(failed[0]["args"]["error"], error.to_string(), "{told}");
    let end = failed[0]["ts"].as_f64().unwrap();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let event_end = event["ts"].as_f64().unwrap() + event["dur"].as_f64().unwrap();
        assert!(event_end < end + 0.002, "{event} goes on: {told}");
    }
    let struck = outcome.struck.as_ref().unwrap();
    let of_spill = |operation| struck.operation == operation && struck.path.ends_with("spill");
    if of_spill("write") {
        let wanted = ["read", "partition-0", "partition-1", "spill"];
        assert!(wanted.iter().all(|name| threads.contains(name)), "{told}");
        assert_eq!(phases, ["prepare", "sample", "distribute"], "{told}");
    }
    if of_spill("read") {
        let wanted = ["read", "spill", "load", "sort-0", "sort-1", "write"];
        assert!(wanted.iter().all(|name| threads.contains(name)), "{told}");
        assert_eq!(
            phases,
            ["prepare", "sample", "distribute", "sort"],
            "{told}"
        );
    }
    (of_spill("write"), of_spill("read"))
}

#[test]
fn faults_leave_a_trace() {
    let seed = seed();
    println!("SEED={seed}");
    let (mut spills, mut loads) = (0, 0);
    // Some draw little that has to leave memory.
    for case_seed in seed..seed + 8 {
        let mut case = Case::new(case_seed, 200_000);
        (case.traced, case.verify, case.temp_apart) = (true, true, true);
        let healthy = case.run(case_seed, None);
        check(&healthy);
        for at in 0..healthy.operations {
            let fault = Fault {
                at,
                for_good: false,
                kind: FaultKind::Error(28),
            };
            let outcome = case.run(case_seed.wrapping_mul(1_000_003) + at, Some(fault));
            judge(&case, &outcome, false);
            let (spilling, loading) = check(&outcome);
            spills += usize::from(spilling);
            loads += usize::from(loading);
        }
        if spills > 3 && loads > 3 {
            return;
        }
    }
    panic!("too few faults struck what left memory: {spills} {loads}");
}
