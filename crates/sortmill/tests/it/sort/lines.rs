//! Whole jobs whose lines are ordered by fields, held against the installed `sort`: through small memory, so that
//! partitions are evicted, divided and merged, with lines longer than a block, and without repeats.

use std::collections::BTreeSet;

use sortmill::check::{Check, check, check_parts};
use sortmill::error::ErrorKind;
use sortmill::io::sim::Sim;
use sortmill::job::{Boundaries, Input, Job, Output, Tuning};
use sortmill::line_keys::{Compare, Ignore, KeyEnd, KeyStart, LastResort, LineKey, LineOrder};
use sortmill::order::{Format, KeyPart};
use sortmill::parts::{PartCut, PartName, Parts};
use sortmill::queue::Stop;
use sortmill::report::Report;
use sortmill::run;

use super::gnu::{Asked, split};
use super::inputs::{Random, seed};
use super::{Case, MACHINES, Machine, SMALL, compare, report};

/// Key `field`, compared as `how`.
fn key(field: u64, how: Compare) -> LineKey {
    LineKey {
        start: KeyStart {
            field,
            byte: 1,
            skip_blanks: false,
        },
        end: Some(KeyEnd {
            field,
            byte: 0,
            skip_blanks: false,
        }),
        compare: how,
        ignore: Ignore::None,
        fold: false,
        reversed: false,
    }
}

/// What `sort -t, -k...` with `args` means, said in both ways.
fn asked(args: &[&str], keys: &[LineKey], last_resort: LastResort, unique: bool) -> Asked {
    let order = LineOrder {
        delimiter: b'\n',
        separator: Some(b','),
        keys: keys.to_vec(),
        last_resort,
        unique,
    };
    Asked::of(&[&["-t,"], args].concat(), order)
}

/// Sorts as a job and as the installed `sort` does.
fn check_job(asked: &Asked, case: &Case, machine: Machine, what: &str) -> Report {
    let what = format!("{what}: sort {:?}", asked.args);
    let case = Case {
        line_order: Some(asked.order.clone()),
        ..case.clone()
    };
    let (output, report) = case
        .try_run(machine)
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    // Each input ends its last line by itself.
    let lines = case.inputs.iter();
    let lines = lines.flat_map(|input| split(asked.order.delimiter, input));
    let wanted = asked.sorted(&lines.collect::<Vec<_>>().concat());
    compare(&output, &wanted, &what);
    let count = split(asked.order.delimiter, &wanted).len() as u64;
    report::check(&case, &report, &output, count);
    report
}

#[test]
fn jobs_with_any_options_do_what_the_installed_sort_does() {
    let mut random = Random::new(seed("jobs_with_any_options"));
    let (mut divided, mut dropped, mut evicted) = (0, 0, 0);
    for number in 0..60 {
        let asked = Asked::random(&mut random);
        let mut has_nan = false;
        let inputs: Vec<Vec<u8>> = (0..1 + random.below(2))
            .map(|_| {
                let count = 1 + random.below(12_000);
                asked.lines(&mut random, count, &mut has_nan)
            })
            .collect();
        let case = Case {
            stream: (random.below(4) == 0).then_some(0),
            threads: 1 + random.below(3),
            memory_bytes: (1 << 20) + random.below(1 << 20) as u64,
            tuning: Tuning {
                sample_count: (random.below(3) == 0).then_some(1),
                ..SMALL
            },
            temp_apart: random.below(3) == 0,
            ..Case::lines(inputs)
        };
        let report = check_job(&asked, &case, Machine::Sim, &format!("job {number}"));
        divided += report.partitions.divided;
        evicted += report.partitions.evicted;
        dropped += report.fingerprints.dropped.records;
    }
    println!("{divided} divided, {evicted} evicted, {dropped} dropped");
    assert!(divided > 0 && dropped > 0);
}

/// `name,number,text` with a number of repeats in each.
fn table(random: &mut Random, count: usize, distinct: usize) -> Vec<u8> {
    let mut input = Vec::new();
    for _ in 0..count {
        let (name, number) = (random.below(distinct), random.below(distinct));
        let text = random.below(1 << 30);
        input.extend(format!("name{name},{number},{text:x}\n").bytes());
    }
    input
}

#[test]
fn every_machine_sorts_by_fields() {
    let mut random = Random::new(seed("every_machine_sorts_by_fields"));
    let mut name = key(1, Compare::Bytes);
    name.reversed = true;
    let by = [key(2, Compare::Number), name];
    let asked = asked(&["-k2,2n", "-k1,1r"], &by, LastResort::Line, false);
    for machine in MACHINES {
        let case = Case::lines(vec![table(&mut random, 150_000, 300)]);
        let report = check_job(&asked, &case, machine, &format!("{machine:?}"));
        assert!(report.partitions.evicted > 0, "{:?}", report.partitions);
    }
}

/// So many different keys that nobody looks for repeats any longer, and then three keys: nothing is dropped before it is
/// sorted, partitions cannot be divided, and some are larger than memory.
#[test]
fn of_few_keys_larger_than_memory_the_first_lines_come_out() {
    const DIFFERENT: u64 = 70_000;
    let mut random = Random::new(seed("of_few_keys_the_first_lines"));
    let mut input = Vec::new();
    for number in 0..DIFFERENT {
        input.extend(format!("other{number},{},\n", number + 10).bytes());
    }
    for _ in 0..200_000 {
        let (name, number, text) = (random.below(3), random.below(3), random.below(1 << 30));
        input.extend(format!("name{name},{number},{text:0120x}\n").bytes());
    }
    for (args, order) in [
        (["-u", "-k1,1"], [key(1, Compare::Bytes)]),
        (["-u", "-k2,2n"], [key(2, Compare::Number)]),
    ] {
        let asked = asked(&args, &order, LastResort::Place, true);
        for machine in [Machine::Sim, Machine::Uring] {
            let case = Case {
                threads: 1,
                ..Case::lines(vec![input.clone()])
            };
            let report = check_job(&asked, &case, machine, "few keys");
            assert!(report.partitions.merged > 0, "{:?}", report.partitions);
            assert_eq!(report.fingerprints.written.records, DIFFERENT + 3);
            assert_eq!(report.fingerprints.dropped.records, 199_997);
        }
    }
}

/// Lines of few kinds, or keys, are dropped before they are put into partitions, so that nothing is spilled.
#[test]
fn repeats_take_no_room() {
    let mut random = Random::new(seed("repeats_take_no_room"));
    let lines: Vec<String> = (0..500)
        .map(|_| format!("{:x}\n", random.below(1 << 40)))
        .collect();
    let mut input = Vec::new();
    for _ in 0..400_000 {
        input.extend(lines[random.below(500)].bytes());
    }
    let asked = Asked::of(
        &["-u"],
        LineOrder {
            delimiter: b'\n',
            separator: None,
            keys: Vec::new(),
            last_resort: LastResort::Place,
            unique: true,
        },
    );
    for machine in MACHINES {
        let report = check_job(
            &asked,
            &Case::lines(vec![input.clone()]),
            machine,
            "repeats",
        );
        assert_eq!(report.bytes.temp_written, 0);
        assert_eq!(report.fingerprints.written.records, 500);
    }
    let by_number = self::asked(
        &["-u", "-k2,2n"],
        &[key(2, Compare::Number)],
        LastResort::Place,
        true,
    );
    let case = Case::lines(vec![table(&mut random, 200_000, 400)]);
    let report = check_job(&by_number, &case, Machine::Sim, "keys");
    assert_eq!(report.bytes.temp_written, 0);
}

#[test]
fn other_records_have_no_repeats_either_if_that_is_asked() {
    let mut random = Random::new(seed("other_records_have_no_repeats"));
    for number in 0..6 {
        let fixed: Vec<u8> = (0..30_000)
            .flat_map(|_| {
                [
                    random.below(250) as u8,
                    random.below(4) as u8,
                    7,
                    random.below(3) as u8,
                ]
            })
            .collect();
        let case = Case {
            unique: true,
            ..Case::fixed(4, &[KeyPart::plain(0, 2)], vec![fixed])
        };
        let report = case.check(Machine::Sim, &format!("fixed {number}"));
        assert!(report.fingerprints.dropped.records > 28_000);
        let pairs: Vec<u8> = (0..20_000)
            .flat_map(|_| {
                let key = format!("{}", random.below(900));
                super::kv::pair(key.as_bytes(), &[random.below(256) as u8])
            })
            .collect();
        let case = Case {
            unique: true,
            ..Case::new(Format::Kv, vec![pairs])
        };
        let report = case.check(Machine::Sim, &format!("pairs {number}"));
        assert!(report.fingerprints.dropped.records > 19_000);
        // Records longer than a block, of which the whole key decides, far behind what stands for them.
        let mut long = Vec::new();
        let mut different = BTreeSet::new();
        for _ in 0..60 {
            let mut record = vec![b'x'; 6000];
            record[5990] = random.below(12) as u8;
            different.insert(record[5990]);
            long.extend(record);
        }
        let case = Case {
            unique: true,
            ..Case::fixed(6000, &[], vec![long])
        };
        let report = case.check(Machine::Sim, &format!("long {number}"));
        assert_eq!(report.fingerprints.written.records, different.len() as u64);
    }
}

/// Fields anywhere in lines that are longer than a block, and keys that are longer than what stands for them.
#[test]
fn long_lines_are_sorted_by_their_fields() {
    let mut random = Random::new(seed("long_lines_are_sorted_by_their_fields"));
    let mut last = key(3, Compare::Bytes);
    last.end = None;
    last.fold = true;
    let orders = [
        asked(
            &["-k2,2n"],
            &[key(2, Compare::Number)],
            LastResort::Line,
            false,
        ),
        asked(
            &["-s", "-k2,2g"],
            &[key(2, Compare::General)],
            LastResort::Place,
            false,
        ),
        asked(&["-f", "-k3"], &[last], LastResort::Line, false),
        asked(
            &["-u", "-k3,3V"],
            &[key(3, Compare::Version)],
            LastResort::Place,
            true,
        ),
        asked(
            &["-r", "-k1,1n"],
            &[key(1, Compare::Number)],
            LastResort::LineReversed,
            false,
        ),
    ];
    for (number, asked) in orders.iter().enumerate() {
        let mut input = Vec::new();
        for _ in 0..700 {
            let long = [0, 10, 300, 4000, 9000, 15_000][random.below(6)];
            input.extend(
                b"0123456789"[random.below(10)..][..1].repeat(long / (1 + random.below(2))),
            );
            input.extend(format!(",{},", random.below(40)).bytes());
            input.extend(b"aAbB"[random.below(4)..][..1].repeat(long.min(4000)));
            input.extend(format!("{}\n", random.below(3)).bytes());
        }
        for machine in [Machine::Sim, Machine::Posix] {
            let report = check_job(
                asked,
                &Case::lines(vec![input.clone()]),
                machine,
                &format!("order {number}"),
            );
            // Of equal keys most are dropped before they get there.
            let least = if number == 3 { 20 } else { 100 };
            assert!(
                report.partitions.long_records > least,
                "{:?}",
                report.partitions
            );
        }
    }
}

/// A line of which fields decide must be whole in memory: one that is longer than that allows is told, not cut.
#[test]
fn a_line_too_long_for_its_fields_is_told_or_left_out() {
    let asked = asked(
        &["-k2,2n"],
        &[key(2, Compare::Number)],
        LastResort::Line,
        false,
    );
    let long = [b"a,1,".to_vec(), vec![b'x'; 50_000], b"\n".to_vec()].concat();
    let input = [b"b,2\n".to_vec(), long, b"c,0\n".to_vec()].concat();
    let case = Case {
        line_order: Some(asked.order.clone()),
        ..Case::lines(vec![input])
    };
    let error = case.try_run(Machine::Sim).unwrap_err();
    assert_eq!((error.kind, error.offset), (ErrorKind::Input, Some(4)));
    assert!(
        error.to_string().contains("longer than 20.0 KiB"),
        "{error}"
    );
}

fn sim_job(sim: &Sim, asked: &Asked, input: &[u8], output: Output) -> Job {
    sim.put_dir("/temp");
    sim.put_dir("/o");
    sim.put("/in", input);
    let mut job = Job::new(vec![Input::Path("/in".into())], output, Format::Lines);
    job.line_order = Some(asked.order.clone());
    job.memory_bytes = Some(1 << 20);
    job.temps = vec!["/temp".into()];
    job.tuning = SMALL;
    job
}

fn in_parts(folder: &str, cut: PartCut) -> Output {
    Output::Parts(Parts {
        folder: folder.into(),
        cut,
        name: PartName::default(),
        overwrite: false,
    })
}

fn checked(sim: &Sim, asked: &Asked, path: &str) -> (u64, Option<u64>) {
    let job = Check {
        line_order: Some(asked.order.clone()),
        chunk_bytes: Some(4096),
        ..Check::new(vec![Input::Path(path.into())], Format::Lines)
    };
    let found = check(&job, sim, &Stop::new()).unwrap();
    (
        found.unordered,
        found.first_unordered.map(|first| first.record),
    )
}

#[test]
fn what_was_sorted_by_fields_is_found_in_order_and_anything_else_is_not() {
    let mut random = Random::new(seed("what_was_sorted_by_fields"));
    let by = [key(2, Compare::Number)];
    let sim = Sim::new(1);
    for (args, unique) in [(&["-k2,2n"][..], false), (&["-u", "-k2,2n"][..], true)] {
        let last_resort = if unique {
            LastResort::Place
        } else {
            LastResort::Line
        };
        let asked = asked(args, &by, last_resort, unique);
        let mut job = sim_job(
            &sim,
            &asked,
            &table(&mut random, 20_000, 500),
            Output::Path("/o/out".into()),
        );
        job.verify = Some(true);
        let report = run::sort(&job, &sim, &Stop::new()).unwrap();
        assert!(report.verified);
        assert_eq!(checked(&sim, &asked, "/o/out"), (0, None));
        assert!(checked(&sim, &asked, "/in").0 > 1000);
        let mut lines = split(b'\n', &sim.get("/o/out").unwrap());
        lines.insert(300, lines[299].clone());
        sim.put("/doubled", &lines.concat());
        let wanted = if unique { (1, Some(300)) } else { (0, None) };
        assert_eq!(checked(&sim, &asked, "/doubled"), wanted);
    }
}

#[test]
fn parts_of_an_order_by_fields_know_it() {
    let mut random = Random::new(seed("parts_of_an_order_by_fields"));
    let by = [key(2, Compare::General), key(1, Compare::Version)];
    let asked = asked(&["-k2,2g", "-k1,1V"], &by, LastResort::Line, false);
    let sim = Sim::new(1);
    let job = sim_job(
        &sim,
        &asked,
        &table(&mut random, 30_000, 700),
        in_parts("/o/parts", PartCut::Count(7)),
    );
    run::sort(&job, &sim, &Stop::new()).unwrap();
    let found = check_parts("/o/parts".as_ref(), Some(2), None, &sim, &Stop::new()).unwrap();
    assert_eq!((found.part_count, found.faults), (7, Vec::<String>::new()));
    // Other lines are cut at the same keys; those of another order are not.
    let other = table(&mut random, 30_000, 700);
    let cut_alike = |order: &Asked, folder: &str| {
        let mut job = sim_job(&sim, order, &other, in_parts(folder, PartCut::Partitions));
        job.boundaries = Boundaries::Manifest("/o/parts/manifest.json".into());
        run::sort(&job, &sim, &Stop::new())
    };
    cut_alike(&asked, "/o/other").unwrap();
    let found = check_parts("/o/other".as_ref(), Some(2), None, &sim, &Stop::new()).unwrap();
    assert_eq!((found.part_count, found.faults), (7, Vec::<String>::new()));
    let unlike = Asked::of(
        &[],
        LineOrder {
            keys: by[..1].to_vec(),
            ..asked.order.clone()
        },
    );
    let error = cut_alike(&unlike, "/o/unlike").unwrap_err();
    assert!(
        error.to_string().contains("another format or key"),
        "{error}"
    );
}

#[test]
fn what_goes_with_no_other_is_refused() {
    let asked = asked(
        &["-k2,2n"],
        &[key(2, Compare::Number)],
        LastResort::Line,
        false,
    );
    let sim = Sim::new(1);
    let refused = |change: &dyn Fn(&mut Job)| {
        let mut job = sim_job(&sim, &asked, b"a,1\n", Output::Path("/o/out".into()));
        change(&mut job);
        let error = run::sort(&job, &sim, &Stop::new()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage);
        error.to_string()
    };
    let other_format = refused(&|job| job.format = Format::Fixed(4));
    assert!(
        other_format.contains("fields are of lines"),
        "{other_format}"
    );
    let even_parts = refused(&|job| {
        job.unique = true;
        job.output = in_parts("/o/parts", PartCut::Count(3));
    });
    assert!(
        even_parts.contains("where repeats are dropped"),
        "{even_parts}"
    );
}
