//! Faults in jobs that shuffle, count runs, or put out the first records.

use std::sync::Arc;

use sortmill::io::sim::{Fault, FaultKind};
use sortmill::yields::{Runs, Yield};

use super::{Case, judge, seed, sorted, sweep};

#[test]
fn faults_in_a_job_that_shuffles() {
    let mut case = Case::new(seed(), 400_000);
    case.yields = Yield::Shuffled(seed());
    let healthy = case.run(seed(), None);
    let report = healthy.result.unwrap();
    assert!(report.partitions.evicted >= 2, "{:?}", report.partitions);
    assert_eq!(sorted(&healthy.output), **case.expected);
    assert_ne!(healthy.output, **case.input);
    // The order is that of the seed, whatever the schedule.
    case.expected = Arc::new(healthy.output);
    sweep(&case, FaultKind::Error(5), false, 4);
    case.tuning.partition_count = Some(1);
    let healthy = case.run(seed() + 1, None);
    assert!(healthy.result.unwrap().partitions.merged > 0);
    case.expected = Arc::new(healthy.output);
    sweep(&case, FaultKind::Error(28), true, 6);
}

#[test]
fn faults_in_a_job_that_counts() {
    let mut case = Case::new(seed(), 300_000);
    let once: Vec<&[u8]> = case.input.split_inclusive(|&byte| byte == b'\n').collect();
    let twice = [&once[..], &once[..once.len() / 2]].concat();
    case.input = Arc::new(twice.concat());
    case.yields = Yield::Runs(Runs {
        counted: true,
        ..Runs::default()
    });
    let all = sorted(&case.input);
    let lines: Vec<&[u8]> = all.split_inclusive(|&byte| byte == b'\n').collect();
    let runs = lines.chunk_by(|one, other| one == other);
    let counted = runs.map(|run| [format!("{:>7} ", run.len()).as_bytes(), run[0]].concat());
    case.expected = Arc::new(counted.collect::<Vec<_>>().concat());
    case.verify = true;
    for early in [false, true] {
        case.early = early;
        judge(&case, &case.run(seed(), None), false);
        sweep(&case, FaultKind::Error(5), false, 4);
    }
}

#[test]
fn faults_in_a_job_that_wants_the_first() {
    let mut case = Case::new(seed(), 300_000);
    let lines = case.expected.split_inclusive(|&byte| byte == b'\n').count();
    let all = Arc::clone(&case.expected);
    let mut want = |count: usize| {
        let first = all.split_inclusive(|&byte| byte == b'\n').take(count);
        case.expected = Arc::new(first.collect::<Vec<_>>().concat());
        case.yields = Yield::First(count as u64);
        judge(&case, &case.run(seed(), None), false);
        case.clone()
    };
    sweep(&want(lines / 3), FaultKind::Error(5), false, 4);
    // So few are kept in memory, and the folder for temporary files may fail to be made.
    let case = want(20);
    for at in (0..case.run(seed(), None).operations).step_by(2) {
        let fault = Fault {
            at,
            for_good: false,
            kind: FaultKind::Error(5),
        };
        judge(&case, &case.run(seed() + at, Some(fault)), false);
    }
}
