//! A fault at every operation of a job whose output is a folder of parts: all of the old output or all of the new
//! one has the name, and nothing is left behind.

use std::collections::BTreeMap;

use sortmill::job::{Boundaries, Tuning};
use sortmill::parts::{PartCut, PartName, Parts};

use super::*;

/// Files of a folder by name.
type Files = BTreeMap<PathBuf, Vec<u8>>;

#[derive(Clone)]
struct InParts {
    case: Case,
    /// Whether an earlier output is replaced.
    over: bool,
}

struct Ended {
    result: Result<Report, sortmill::error::Error>,
    /// What the folder held before, and holds now.
    old: Files,
    new: Files,
    struck: Option<Struck>,
    /// Operations of the job, and of what came before it.
    operations: u64,
    before: u64,
    leftovers: Vec<PathBuf>,
}

fn files(sim: &Sim) -> Files {
    let names = sim
        .names()
        .into_iter()
        .filter(|name| name.starts_with("/out/"));
    names
        .filter_map(|name| Some((name.clone(), sim.get(&name)?)))
        .collect()
}

impl InParts {
    fn new(over: bool, tuning: Tuning) -> Self {
        let mut case = Case::new(seed(), 200_000);
        case.tuning = tuning;
        case.memory_bytes = 300 << 10;
        Self { case, over }
    }

    fn job(&self, count: u64) -> Job {
        let mut job = self.case.job();
        job.output = Output::Parts(Parts {
            folder: "/out".into(),
            cut: PartCut::Count(count),
            name: PartName::default(),
            overwrite: true,
        });
        job.boundaries = Boundaries::Sample;
        job
    }

    fn run(&self, seed: u64, fault: Option<Fault>) -> Ended {
        let parts = self.clone();
        under_schedule(seed, move || {
            let sim = Sim::new(seed);
            sim.put_dir("/temp");
            sim.put("/in", b"an\nearlier\noutput\n");
            if parts.over {
                run::sort(&parts.job(3), &sim, &Stop::new()).expect("the earlier output");
            }
            sim.put("/in", &parts.case.input);
            let (old, before) = (files(&sim), sim.operation_count());
            sim.set_fault(fault.map(|fault| Fault {
                at: before + fault.at,
                ..fault
            }));
            let result = run::sort(&parts.job(9), &sim, &Stop::new());
            let mut leftovers = leftovers(&sim);
            leftovers.retain(|name| !name.starts_with("/out/"));
            Ended {
                result,
                old,
                new: files(&sim),
                struck: sim.struck(),
                operations: sim.operation_count() - before,
                before,
                leftovers,
            }
        })
    }

    /// All of the old output or all of the new one.
    fn judge(&self, ended: &Ended, for_good: bool) {
        let told = format!("{:?} {:?}", ended.struck, ended.result.as_ref().err());
        let operation = ended
            .struck
            .as_ref()
            .map_or("none", |struck| struck.operation);
        let names = ended
            .new
            .iter()
            .filter(|(name, _)| !name.ends_with("manifest.json"));
        let bytes: Vec<u8> = names.flat_map(|(_, bytes)| bytes.clone()).collect();
        let is_new = bytes == *self.case.expected && ended.new.len() == 10;
        match &ended.result {
            Ok(_) => assert!(is_new, "wrong output: {told}"),
            // Only these come after the name was given.
            Err(_)
                if operation == "sync_dir"
                    || operation.starts_with("remove")
                    || operation == "list_dir" =>
            {
                assert!(is_new || ended.new == ended.old, "a mixture: {told}");
            }
            Err(_) => assert!(ended.new == ended.old, "old output gone: {told}"),
        }
        // What was replaced is kept where its successor may lose its name, and where it cannot be listed.
        let kept = operation == "sync_dir" && self.over;
        let removal_failed = kept || operation.starts_with("remove") || operation == "list_dir";
        if !for_good && !removal_failed {
            let left = &ended.leftovers;
            assert!(left.is_empty(), "{left:?} left: {told}");
        }
    }

    fn sweep(&self, kind: FaultKind, for_good: bool, step: usize) {
        let seed = seed();
        println!("SEED={seed}");
        let healthy = self.run(seed, None);
        self.judge(&healthy, false);
        assert_eq!(healthy.before > 0, self.over);
        let mut struck = 0;
        let step = super::apart(step);
        for at in (0..healthy.operations + 20).step_by(step) {
            let fault = Fault { at, for_good, kind };
            let ended = self.run(seed.wrapping_mul(1_000_003) + at, Some(fault));
            self.judge(&ended, for_good);
            struck += u64::from(ended.struck.is_some());
            if let Some(place) = &ended.struck {
                let harmless = harmless(place) || ended.result.is_err();
                assert!(harmless, "{place:?} passed unnoticed");
            }
        }
        let least = healthy.operations * 9 / 10;
        assert!(struck * step as u64 >= least, "{struck} faults struck");
    }
}

const TUNING: Tuning = Tuning {
    chunk_bytes: Some(4096),
    block_bytes: Some(4096),
    partition_count: Some(6),
    partition_bytes: None,
    sample_count: Some(40),
};

#[test]
fn faults_in_new_parts() {
    InParts::new(false, TUNING).sweep(FaultKind::Error(5), false, 1);
}

#[test]
fn faults_in_parts_that_replace_others() {
    InParts::new(true, TUNING).sweep(FaultKind::Error(5), false, 1);
}

#[test]
fn faults_for_good_in_parts_that_replace_others() {
    InParts::new(true, TUNING).sweep(FaultKind::Error(28), true, 2);
}

#[test]
fn faults_in_parts_that_are_merged() {
    let mut parts = InParts::new(false, TUNING);
    parts.case.tuning.partition_count = Some(1);
    let report = parts.run(seed(), None).result.unwrap();
    assert!(report.partitions.merged > 0, "{:?}", report.partitions);
    parts.sweep(FaultKind::Error(5), false, 3);
}

/// Parts that do not come back from the device as they were written are found, and not given their name.
#[test]
fn faults_that_alter_parts() {
    let mut parts = InParts::new(true, TUNING);
    parts.case.verify = true;
    let seed = seed();
    println!("SEED={seed}");
    let operations = parts.run(seed, None).operations;
    for kind in [FaultKind::Flip, FaultKind::Lie] {
        let mut found = 0;
        for at in 0..operations {
            let for_good = false;
            let fault = Fault { at, for_good, kind };
            let ended = parts.run(seed.wrapping_mul(1_000_003) + at, Some(fault));
            let about_parts = |struck: &Struck| {
                let folder = struck.path.parent();
                folder.is_some_and(sortmill::commit::is_temporary)
            };
            if !ended.struck.as_ref().is_some_and(about_parts) {
                continue;
            }
            parts.judge(&ended, false);
            if let Err(error) = ended.result {
                assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
                found += 1;
            }
        }
        assert!(found > 3, "{found} found");
    }
}
