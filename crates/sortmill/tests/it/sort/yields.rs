//! Jobs that put out runs of equal lines, or the first records, held against the obvious model.

use sortmill::error::ErrorKind;
use sortmill::job::{Disorder, Tuning};
use sortmill::order::{Format, KeyPart};
use sortmill::yields::{Runs, Yield};

use super::inputs::{ALL_LINES, Lines, Random, fixed, lines, seed};
use super::{Case, MACHINES, Machine, SMALL, oracle};

/// All that may be said of runs, but for how many.
fn all_runs() -> impl Iterator<Item = Runs> {
    (0..16).map(|bits| Runs {
        counted: bits & 1 > 0,
        repeated_only: bits & 2 > 0,
        single_only: bits & 4 > 0,
        fold: bits & 8 > 0,
        first: None,
    })
}

#[test]
fn runs_of_every_kind_of_lines() {
    let mut random = Random::new(seed("runs_of_every_kind_of_lines"));
    for kind in ALL_LINES {
        let inputs: Vec<Vec<u8>> = (0..2).map(|_| lines(kind, &mut random, 120_000)).collect();
        for runs in all_runs() {
            if random.below(3) > 0 {
                continue;
            }
            // Lines that are compared must be whole: a 64th of the memory.
            let memories = match kind {
                Lines::Long => [8 << 20; 2],
                _ => [600 << 10, 8 << 20],
            };
            let case = Case {
                yields: Yield::Runs(Runs {
                    first: (random.below(4) == 0).then(|| random.below(3000) as u64),
                    ..runs
                }),
                early: !runs.fold && random.below(2) == 0,
                stream: (random.below(4) == 0).then_some(0),
                temp_apart: random.below(2) == 0,
                memory_bytes: memories[random.below(2)],
                ..Case::lines(inputs.clone())
            };
            let machine = MACHINES[random.below(MACHINES.len())];
            let what = format!("{kind:?} {:?} {}", case.yields, case.early);
            case.check(machine, &what);
        }
    }
}

/// Letters of either case, so that runs that ignore it go from unit to unit and through units that are merged.
#[test]
fn runs_go_on_from_unit_to_unit() {
    let mut random = Random::new(seed("runs_go_on_from_unit_to_unit"));
    let mut input = Vec::new();
    while input.len() < 600_000 {
        let letters = (0..1 + random.below(4)).map(|_| b"aAbB"[random.below(4)]);
        input.extend(letters);
        input.push(b'\n');
    }
    // So many words that a table holds few of them.
    let mut words = Vec::new();
    while words.len() < 1_000_000 {
        words.extend((0..2 + random.below(3)).map(|_| b'a' + random.below(26) as u8));
        words.push(b'\n');
    }
    for (partition_count, merges, early) in [
        (40, false, false),
        (1, true, false),
        (40, false, true),
        (1, true, true),
    ] {
        for runs in all_runs().filter(|runs| runs.counted && !(early && runs.fold)) {
            let input = if early { &words } else { &input };
            let case = Case {
                yields: Yield::Runs(runs),
                early,
                memory_bytes: 600 << 10,
                tuning: Tuning {
                    partition_count: Some(partition_count),
                    ..SMALL
                },
                ..Case::lines(vec![input.clone()])
            };
            let report = case.check(Machine::Sim, &format!("{partition_count} {runs:?}"));
            assert!(report.bytes.temp_written > 0, "{:?}", report.bytes);
            assert!(
                !merges || report.partitions.merged > 0,
                "{:?}",
                report.partitions
            );
        }
    }
}

/// The first few of far more than memory holds: nothing goes to disk, whatever order they come in.
#[test]
fn the_first_of_many_need_no_disk() {
    let mut random = Random::new(seed("the_first_of_many_need_no_disk"));
    for kind in [
        Lines::Uniform,
        Lines::Sorted,
        Lines::Reversed,
        Lines::Dominated,
        Lines::OneKey,
    ] {
        let input = lines(kind, &mut random, 2_500_000);
        for count in [0, 1, 10, 300] {
            let case = Case {
                yields: Yield::First(count),
                stream: (random.below(2) == 0).then_some(0),
                ..Case::lines(vec![input.clone()])
            };
            let machine = MACHINES[random.below(MACHINES.len())];
            let told = format!("{count} of {kind:?}, {:?} on {machine:?}", case.stream);
            let report = case.check(machine, &told);
            assert!(report.plan.candidates.is_some(), "{told}");
            assert_eq!(report.bytes.temp_written, 0, "{told}");
            assert_eq!(report.partitions.merged, 0, "{told}");
            let dropped = report.fingerprints.dropped.records;
            assert_eq!(dropped + count, report.fingerprints.input.records);
        }
    }
}

/// As many as do not fit, up to all of them and more: what may be among them is sorted, in two passes and in three.
#[test]
fn the_first_of_as_many_as_do_not_fit() {
    let mut random = Random::new(seed("the_first_of_as_many_as_do_not_fit"));
    for kind in [
        Lines::Uniform,
        Lines::Reversed,
        Lines::Long,
        Lines::Dominated,
        Lines::Tiny,
    ] {
        let inputs: Vec<Vec<u8>> = (0..3).map(|_| lines(kind, &mut random, 250_000)).collect();
        let count_in = |input: &Vec<u8>| oracle::records(Format::Lines, input).len();
        let all: usize = inputs.iter().map(count_in).sum();
        for part in [20, 3, 1] {
            let count = all / part + random.below(7);
            let case = Case {
                yields: Yield::First(count as u64),
                stream: (random.below(3) == 0).then_some(1),
                tuning: Tuning {
                    partition_count: [None, Some(1), Some(30)][random.below(3)],
                    ..SMALL
                },
                memory_bytes: if kind == Lines::Long {
                    5 << 20
                } else {
                    600 << 10
                },
                ..Case::lines(inputs.clone())
            };
            let machine = MACHINES[random.below(MACHINES.len())];
            let what = format!("{count} of {all} {kind:?}, {:?}", case.tuning);
            let report = case.check(machine, &what);
            // A few hundred long ones may fit, as far as anybody knows before.
            let may_fit = part > 1 || kind == Lines::Long;
            assert!(report.plan.candidates.is_none() || may_fit, "{what}");
        }
    }
}

/// What is behind the first is not read back: of a tenth, most of what was spilled.
#[test]
fn what_is_behind_the_first_is_not_read_back() {
    let mut random = Random::new(seed("what_is_behind_the_first_is_not_read_back"));
    let input = random.bytes(6_000_000);
    let case = Case {
        yields: Yield::First(4_500),
        ..Case::fixed(400, &[KeyPart::plain(0, 10)], vec![input])
    };
    let report = case.check(Machine::Sim, "a third");
    let bytes = report.bytes;
    assert_eq!(report.partitions.merged, 0, "{:?}", report.partitions);
    println!(
        "{} of {} spilled were read back",
        bytes.temp_read, bytes.temp_written
    );
    assert!(
        bytes.temp_written > 2_000_000 && bytes.temp_written < 6_000_000,
        "{bytes:?}"
    );
    assert!(bytes.temp_read < bytes.temp_written * 3 / 4, "{bytes:?}");
}

/// Ties come out in the order of the input: records whose tails tell them apart.
#[test]
fn the_first_of_equal_ones_are_those_of_the_input() {
    let mut random = Random::new(seed("the_first_of_equal_ones_are_those_of_the_input"));
    for _ in 0..20 {
        let input = fixed(24, &mut random, 40_000);
        let case = Case {
            yields: Yield::First([1, 50, 2_000, 30_000][random.below(4)]),
            ..Case::fixed(24, &[KeyPart::plain(0, 3)], vec![input])
        };
        case.check(
            MACHINES[random.below(MACHINES.len())],
            &format!("{:?}", case.yields),
        );
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    let runs = Yield::Runs(Runs::default());
    let lines = || Case::lines(vec![b"b\na\n".to_vec()]);
    let fixed = || Case::fixed(2, &[], vec![b"b\na\n".to_vec()]);
    let with = |yields: Yield, case: Case| Case { yields, ..case };
    let unique = |case: Case| Case {
        unique: true,
        ..case
    };
    let merge = |case: Case| Case {
        merge: Some(Disorder::Refused),
        ..case
    };
    for (case, wanted) in [
        (with(runs, fixed()), "equal lines"),
        (with(runs, unique(lines())), "every run is of one line"),
        (with(Yield::First(1), unique(lines())), "without repeats"),
        (with(Yield::Shuffled(1), unique(lines())), "repeats"),
        (with(Yield::First(1), merge(lines())), "a merge"),
        (
            with(
                Yield::Shuffled(1),
                Case {
                    keys: vec![KeyPart::plain(0, 1)],
                    ..fixed()
                },
            ),
            "no keys",
        ),
    ] {
        let error = case.try_run(Machine::Sim).expect_err(wanted);
        assert_eq!(error.kind, ErrorKind::Usage, "{error}");
        assert!(error.to_string().contains(wanted), "{error}");
    }
}
