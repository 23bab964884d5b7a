//! The probe after a job: whatever fails in it, the job is done, and its verdict says no share.
//!
//! Everything fits in memory, so there is no temporary file, and the probe writes a file of its own beside the output.

use sortmill::io::sim::{Fault, FaultKind};
use sortmill::verdict::BoundBy;

use super::{Case, Outcome, judge, seed};

/// A job whose disks are what it waits for.
fn case() -> Case {
    let mut case = Case::new(seed(), 300_000);
    case.memory_bytes = 1200 << 10;
    case.pace = 1_000_000;
    case.probed = true;
    case
}

/// What the probe does beside transfers.
const PROBING: [&str; 4] = ["ring", "create", "space_free", "reserve"];

/// How many verdicts of a job that ended well have a share.
fn shares(outcome: &Outcome) -> usize {
    let verdicts = &outcome.result.as_ref().unwrap().verdicts;
    let shares = verdicts
        .iter()
        .filter(|verdict| verdict.share_percent.is_some());
    shares.count()
}

#[test]
fn faults_in_the_probe() {
    let case = case();
    let seed = seed();
    println!("SEED={seed}");
    // One schedule, so that all runs are the same up to the fault.
    let healthy = case.run(seed, None);
    judge(&case, &healthy, false);
    let report = healthy.result.as_ref().unwrap();
    let verdicts = &report.verdicts;
    let of_sort = verdicts.iter().find(|one| one.phase == "sort").unwrap();
    let path = "/out".to_owned();
    assert_eq!(of_sort.bound_by, BoundBy::Write { path });
    assert_eq!(report.bytes.temp_written, 0);
    assert!(of_sort.share_percent.is_some(), "{verdicts:?}");
    assert!((1_900_000_000..2_500_000_000).contains(&report.probe_ns));

    let (mut of_transfers, mut before) = (0, 0);
    let mut struck = Vec::new();
    let mut check = |at: u64| {
        let fault = Fault {
            at,
            for_good: false,
            kind: FaultKind::Error(5),
        };
        let outcome = case.run(seed, Some(fault));
        judge(&case, &outcome, false);
        let place = outcome.struck.clone().expect("as many operations");
        let transfers = ["read", "write"].contains(&place.operation);
        if outcome.result.is_err() || place.operation == "sync_dir" {
            // The output had no name yet.
            before += 1;
            return false;
        }
        let lost = shares(&healthy) - shares(&outcome);
        // What is asked of the ends before, and cleaning up behind it, cost no share.
        let is_probing = transfers || PROBING.contains(&place.operation);
        assert!(lost == 1 || !is_probing, "{place:?}");
        of_transfers += usize::from(transfers);
        if !transfers {
            struck.push(place.operation);
        }
        true
    };
    // Where the probe begins: some operations before the first that is struck in it.
    let (mut before_it, mut in_it) = (0, healthy.operations - 1);
    while in_it - before_it > 8 {
        let middle = before_it.midpoint(in_it);
        match check(middle) {
            true => in_it = middle,
            false => before_it = middle,
        }
    }
    for at in (before_it..before_it + 24).chain((in_it + 24..healthy.operations).step_by(150)) {
        check(at);
    }
    println!("{of_transfers} transfers, {before} before, {struck:?}");
    assert!(of_transfers > 5 && before > 0);
    for operation in PROBING {
        assert!(struck.contains(&operation), "{operation}: {struck:?}");
    }
}
