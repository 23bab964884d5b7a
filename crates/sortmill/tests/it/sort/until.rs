//! Jobs that end early where the way is not the plain one: units that are merged, and partitions that are
//! divided.

use sortmill::error::ErrorKind;
use sortmill::job::{Tuning, UNTIL_STAGES};
use sortmill::metrics::Stage;
use sortmill::order::KeyPart;
use sortmill::report::Report;

use super::inputs::{Random, seed};
use super::{Case, Machine, SMALL};

/// Ends `case` after each stage: no output, and the counts of each stage that was reached.
fn check(case: &Case, special: impl Fn(&Report) -> bool) {
    let bytes: usize = case.inputs.iter().map(Vec::len).sum();
    for until in UNTIL_STAGES {
        let case = Case {
            until: Some(until),
            ..case.clone()
        };
        let (output, report) = case.try_run(Machine::Sim).unwrap();
        assert!(output.is_empty());
        assert_eq!(report.until, Some(until));
        assert_eq!(report.bytes.input, bytes as u64);
        let prints = &report.fingerprints;
        if until >= Stage::Partition {
            assert_eq!(prints.distributed.bytes, bytes as u64);
        }
        let gathered =
            [Default::default(), prints.distributed][usize::from(until >= Stage::Reduce)];
        assert_eq!(prints.gathered, gathered);
        assert_eq!(report.bytes.temp_written > 0, until >= Stage::Spill);
        assert_eq!(report.bytes.temp_read > 0, until >= Stage::Load);
        if until >= Stage::Load {
            assert!(special(&report), "{until:?}: {:?}", report.partitions);
        }
        let stages = report.phases.iter().flat_map(|phase| &phase.stages);
        assert!(stages.clone().all(|stage| stage.stage <= until));
        assert!(stages.clone().any(|stage| stage.stage == until));
        let text = report.to_json();
        let again: Report = serde_json::from_str(&text).unwrap();
        assert_eq!(again.to_json(), text, "a report survives its file");
    }
}

#[test]
fn merged_units_end_early() {
    let mut random = Random::new(seed("merged_units_end_early"));
    let input = random.bytes(3_000_000);
    let case = Case {
        equal_keys_meet: true,
        tuning: Tuning {
            partition_count: Some(1),
            ..SMALL
        },
        ..Case::fixed(20, &[KeyPart::plain(0, 1)], vec![input])
    };
    check(&case, |report| report.partitions.merged > 0);
}

#[test]
fn divided_partitions_end_early() {
    let mut random = Random::new(seed("divided_partitions_end_early"));
    let mut input = random.bytes(4_000_000);
    // A stream whose later records all lie in a narrow range, which its beginning does not foretell.
    for record in input[1_000_000..].chunks_mut(20) {
        record[..2].fill(7);
    }
    let case = Case {
        stream: Some(0),
        ..Case::fixed(20, &[KeyPart::plain(0, 8)], vec![input])
    };
    check(&case, |report| report.partitions.divided > 0);
}

#[test]
fn no_job_ends_after_map_merge_or_write() {
    for until in [Stage::Map, Stage::Merge, Stage::Write] {
        let case = Case {
            until: Some(until),
            ..Case::lines(vec![b"b\na\n".to_vec()])
        };
        let error = case.try_run(Machine::Sim).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage);
        assert!(error.to_string().contains("read, cut"), "{error}");
    }
}
