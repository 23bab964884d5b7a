//! Map and reduce functions, held against the obvious model.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use sortmill::error::ErrorKind;
use sortmill::io::sim::{Fault, FaultKind, Sim};
use sortmill::job::{
    Boundaries, Disorder, Framing, Input, Job, MapFn, Output, ReduceFn, Reducer, Tuning, each,
};
use sortmill::order::{Format, KeyPart};
use sortmill::parts::{PartCut, PartName, Parts};
use sortmill::queue::Stop;
use sortmill::run;

use super::inputs::{Lines, Random, fixed, lines, seed};
use super::{Case, MACHINES, Machine, SMALL, compare, oracle, report};

/// Drops, keeps, doubles and lengthens lines, by their length.
fn change(line: &[u8]) -> Vec<Vec<u8>> {
    match line.len() % 4 {
        0 => vec![],
        1 => vec![line.to_vec()],
        2 => vec![line.to_vec(), line.to_vec()],
        _ => vec![[b"longer: ".as_slice(), line].concat()],
    }
}

fn change_map() -> MapFn {
    each(|line, made| {
        for record in change(line) {
            made.push(&record);
        }
    })
}

/// Counts equal lines.
fn count_lines() -> ReduceFn {
    Arc::new(|| -> Reducer {
        let mut current: Option<(Vec<u8>, u64)> = None;
        Box::new(move |record, out| {
            if let (Some((line, count)), Some(record)) = (&mut current, record)
                && line == record
            {
                *count += 1;
                return;
            }
            if let Some((line, count)) = current.take() {
                out.put(&[format!("{count} ").as_bytes(), &line].concat());
            }
            current = record.map(|record| (record.to_vec(), 1));
        })
    })
}

#[test]
fn a_map_function_may_drop_double_and_lengthen() {
    let mut random = Random::new(seed("a_map_function_may_drop_double_and_lengthen"));
    let input = lines(Lines::Uniform, &mut random, 2_000_000);
    let changed: Vec<u8> = oracle::records(Format::Lines, &input)
        .iter()
        .flat_map(|line| change(line))
        .flatten()
        .collect();
    let wanted = oracle::sorted(Format::Lines, &[], &[changed]).concat();
    for machine in MACHINES {
        for stream in [None, Some(0)] {
            let case = Case {
                map: Some(change_map()),
                stream,
                memory_bytes: 2 << 20,
                ..Case::lines(vec![input.clone()])
            };
            let (output, done) = case.try_run(machine).unwrap();
            compare(&output, &wanted, &format!("{machine:?} {stream:?}"));
            report::check(&case, &done, &output, 0);
        }
    }
}

#[test]
fn a_map_function_that_drops_all() {
    for machine in MACHINES {
        let case = Case {
            map: Some(each(|_, _| {})),
            ..Case::lines(vec![b"a\nb\n".repeat(1000)])
        };
        let (output, _) = case.try_run(machine).unwrap();
        assert!(output.is_empty());
    }
}

#[test]
fn a_map_function_that_breaks_the_format_fails_the_job() {
    for bad in [b"no newline".as_slice(), b"two\nlines\n", b""] {
        let case = Case {
            map: Some(each(move |_, made| made.push(bad))),
            ..Case::lines(vec![b"a\nb\n".repeat(1000)])
        };
        let error = case.try_run(Machine::Sim).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage, "{error}");
        assert!(error.to_string().contains("map function"), "{error}");
    }
}

#[test]
fn a_map_function_changes_keys_of_fixed_records() {
    let mut random = Random::new(seed("a_map_function_changes_keys_of_fixed_records"));
    let input = fixed(20, &mut random, 100_000);
    let turned: Vec<u8> = input
        .chunks(20)
        .flat_map(|record| record.iter().rev().copied().collect::<Vec<u8>>())
        .collect();
    let keys = [KeyPart::plain(0, 3)];
    let wanted = oracle::sorted(Format::Fixed(20), &keys, &[turned]).concat();
    for machine in MACHINES {
        let case = Case {
            map: Some(each(|record, made| {
                let turned: Vec<u8> = record.iter().rev().copied().collect();
                made.push(&turned);
            })),
            ..Case::fixed(20, &keys, vec![input.clone()])
        };
        let (output, _) = case.try_run(machine).unwrap();
        compare(&output, &wanted, &format!("{machine:?}"));
    }
}

#[test]
fn a_reduce_function_counts_equal_lines() {
    let mut random = Random::new(seed("a_reduce_function_counts_equal_lines"));
    for kind in [
        Lines::FewDistinct,
        Lines::Tiny,
        Lines::CommonPrefix,
        Lines::Dominated,
    ] {
        let input = lines(kind, &mut random, 2_000_000);
        let mut model: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        for line in oracle::records(Format::Lines, &input) {
            *model.entry(line[..line.len() - 1].to_vec()).or_default() += 1;
        }
        let wanted: Vec<u8> = model
            .iter()
            .flat_map(|(line, count)| [format!("{count} ").as_bytes(), line, b"\n"].concat())
            .collect();
        for machine in MACHINES {
            let case = Case {
                reduce: Some(count_lines()),
                equal_keys_meet: true,
                stream: (random.below(2) == 0).then_some(0),
                threads: 1 + random.below(3),
                tuning: Tuning {
                    // Once with one partition, so that the groups come out of a merge.
                    partition_count: (machine == Machine::Posix).then_some(1),
                    ..SMALL
                },
                ..Case::lines(vec![input.clone()])
            };
            let what = format!("{kind:?} on {machine:?}, stream {:?}", case.stream);
            let (output, done) = case
                .try_run(machine)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
            compare(&output, &wanted, &what);
            report::check(&case, &done, &output, 0);
        }
    }
}

/// Pairs of any input, of a mapper that keeps what it has seen until its records have ended, and bytes of any form.
#[test]
fn a_mapper_with_state_and_a_reducer_of_bytes() {
    let mut random = Random::new(seed("a_mapper_with_state_and_a_reducer_of_bytes"));
    let input = lines(Lines::FewDistinct, &mut random, 500_000);
    let mut model: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    for line in oracle::records(Format::Lines, &input) {
        *model.entry(line[..line.len() - 1].to_vec()).or_default() += 1;
    }
    let wanted = model
        .iter()
        .flat_map(|(line, count)| [line, format!("={count};").as_bytes()].concat());
    let wanted = [b"counts: ".to_vec(), wanted.collect()].concat();
    let map: MapFn = Arc::new(|_| {
        let mut seen: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        Box::new(move |line, made| match line {
            Some(line) => *seen.entry(line[..line.len() - 1].to_vec()).or_default() += 1,
            // A few at a time: it is asked until nothing comes.
            None => {
                for _ in 0..3 {
                    let Some((line, count)) = seen.pop_first() else {
                        return;
                    };
                    made.push_pair(&line, &count.to_le_bytes());
                }
            }
        })
    });
    let reduce: ReduceFn = Arc::new(|| -> Reducer {
        let mut open: Option<(Vec<u8>, u64)> = None;
        Box::new(move |pair, out| {
            let next = pair.map(|pair| {
                let (line, count) = pair[8..].split_at(pair.len() - 16);
                (line.to_vec(), u64::from_le_bytes(count.try_into().unwrap()))
            });
            match (&mut open, next) {
                (Some((line, count)), Some((next, more))) if *line == next => *count += more,
                (open, next) => {
                    if let Some((line, count)) = std::mem::replace(open, next) {
                        out.put(&[&line, format!("={count};").as_bytes()].concat());
                    }
                }
            }
        })
    });
    for machine in MACHINES {
        let host = machine.host();
        let scratch = crate::Scratch::new(&format!("a_mapper_with_state-{machine:?}"));
        let sim = sortmill::io::sim::Sim::new(1);
        let (from, to) = match &host {
            Some(_) => (scratch.path("in"), scratch.path("out")),
            None => ("/in".into(), "/out".into()),
        };
        match &host {
            Some(_) => std::fs::write(&from, &input).unwrap(),
            None => sim.put(&from, &input),
        }
        let os: &dyn sortmill::io::Os = host.as_ref().map_or(&sim, |host| host);
        let inputs = vec![sortmill::job::Input::Path(from)];
        let output = sortmill::job::Output::Path(to.clone());
        let mut job = sortmill::job::Job::new(inputs, output, Format::Lines);
        job.memory_bytes = Some(1 << 20);
        job.tuning = SMALL;
        job.equal_keys_meet = true;
        job.reduce = Some(Arc::clone(&reduce));
        job.reduce_makes_bytes = Some(b"counts: ".to_vec());
        job.map_makes_pairs = true;
        let stop = sortmill::queue::Stop::new();
        let error = sortmill::run::sort(&job, os, &stop).unwrap_err();
        assert!(error.to_string().contains("has none"), "{error}");
        job.map = Some(Arc::clone(&map));
        job.map_keeps_state = true;
        let report = sortmill::run::sort(&job, os, &sortmill::queue::Stop::new()).unwrap();
        let output = match &host {
            Some(_) => std::fs::read(&to).unwrap(),
            None => sim.get(&to).unwrap(),
        };
        compare(&output, &wanted, &format!("{machine:?}"));
        let state = report
            .plan
            .budget
            .holders
            .iter()
            .find(|one| one.name.starts_with("state"));
        assert!(state.is_some_and(|state| state.bytes > 0));
    }
}

/// One group has most of the records and is several times as large as memory: it comes whole, its records in order, and the function
/// goes on with it from one part of the partition to the next, so that it need not be merged. Where a sample shows it, it has partitions of
/// its own from the beginning; of a stream whose beginning does not show it partitions are divided as it comes.
#[test]
fn a_group_larger_than_memory_goes_from_unit_to_unit() {
    const HEAD_BYTES: usize = 8;
    const GROUP_BYTES: u64 = 210_000 * 38;
    let mut random = Random::new(seed("a_group_larger_than_memory_goes_from_unit_to_unit"));
    let reduce: ReduceFn = Arc::new(|| -> Reducer {
        let (mut open, mut number): (Option<Vec<u8>>, u64) = (None, 0);
        Box::new(move |pair, out| {
            let head = pair.map(|pair| pair[8..8 + HEAD_BYTES].to_vec());
            if open != head {
                if let Some(group) = &open {
                    let group = u64::from_be_bytes(group[..].try_into().unwrap());
                    out.put(format!("{group:016x} has {number}\n").as_bytes());
                }
                (open, number) = (head, 0);
            }
            if let Some(pair) = pair {
                out.put(
                    &[
                        format!("{number} ").as_bytes(),
                        &pair[8 + HEAD_BYTES..],
                        b"\n",
                    ]
                    .concat(),
                );
                number += 1;
            }
        })
    });
    for (in_order, in_turn, threads, is_shown) in [
        (true, false, 1, false),
        (true, false, 3, false),
        (true, true, 2, false),
        (true, false, 1, true),
        (true, true, 3, true),
        (false, false, 1, true),
        (false, true, 2, true),
    ] {
        // A line is the number of its group, what orders it there, and where it stood.
        let mut model: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
        let mut input = Vec::new();
        for line in 0..300_000 {
            let group = match random.below(10) {
                0..7 if is_shown || line > 30_000 => 500,
                _ => random.below(1000),
            };
            let time = if in_order { random.below(100_000) } else { 0 };
            let behind = format!("{time:06}{line:08}").into_bytes();
            // As a hash is.
            let group = (group as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let group = format!("{group:016x}").into_bytes();
            input.extend_from_slice(&[&group[..], &behind, b"\n"].concat());
            model.entry(group).or_default().push(behind);
        }
        let mut wanted = Vec::new();
        for (group, mut lines) in model {
            // Where no time tells them apart they stay as they came.
            lines.sort_by_key(|line| line[..6].to_vec());
            for (number, line) in lines.iter().enumerate() {
                wanted.extend_from_slice(&[format!("{number} ").as_bytes(), line, b"\n"].concat());
            }
            wanted.extend_from_slice(
                &[&group, format!(" has {}\n", lines.len()).as_bytes()].concat(),
            );
        }
        let sim = Sim::new(threads as u64);
        let inputs = match is_shown {
            true => {
                sim.put("/in", &input);
                vec![Input::Path("/in".into())]
            }
            false => {
                sim.put_stdin(&input);
                vec![Input::Stdin]
            }
        };
        let mut job = Job::new(inputs, Output::Path("/out".into()), Format::Lines);
        job.memory_bytes = Some(4 << 20);
        job.boundaries = Boundaries::Uniform;
        job.threads = Some(threads);
        job.tuning = SMALL;
        job.map = Some(each(move |line, made| {
            let (group, behind) = line[..line.len() - 1].split_at(2 * HEAD_BYTES);
            let group = u64::from_str_radix(std::str::from_utf8(group).unwrap(), 16).unwrap();
            // Pairs in no order of their own have the group as their key, and nothing else.
            let (time, rest) = behind.split_at(if in_order { 6 } else { 0 });
            made.push_pair(&[&group.to_be_bytes(), time].concat(), rest);
        }));
        job.map_makes_pairs = true;
        job.equal_keys_meet = true;
        job.equal_heads_meet =
            in_order.then(|| Arc::new(|key: &[u8]| key.len().min(HEAD_BYTES)) as _);
        job.gives_groups_whole = true;
        job.reduces_in_turn = in_turn;
        job.reduce = Some(Arc::clone(&reduce));
        job.reduce_makes_bytes = Some(Vec::new());
        let what =
            format!("in order {in_order}, in turn {in_turn}, {threads} threads, shown {is_shown}");
        let report = run::sort(&job, &sim, &Stop::new());
        let report = report.unwrap_or_else(|error| panic!("{what}: {error}"));
        let partitions = report.partitions;
        compare(&sim.get("/out").unwrap(), &wanted, &what);
        // Where nothing but its place orders a record no sample says where.
        let is_late = !is_shown || !in_order;
        assert_eq!(partitions.divided > 3, is_late, "{what}: {partitions:?}");
        assert!(
            partitions.bytes_max < GROUP_BYTES / 8,
            "{what}: {partitions:?}"
        );
    }
}

/// Tells in front of each line its part, which follows from the number that it is, in so many bytes.
fn tells(part: fn(u64) -> u64, part_bytes: usize) -> ReduceFn {
    Arc::new(move || -> Reducer {
        Box::new(move |record, out| {
            if let Some(line) = record {
                let number = std::str::from_utf8(line).unwrap().trim_end();
                let part = part(number.parse().unwrap()).to_le_bytes();
                out.put(&[&part[..part_bytes], line].concat());
            }
        })
    })
}

/// Pieces of one record each, which tell too many where `lost`.
fn pieces_of_one(lost: bool) -> Framing {
    Framing {
        make: Arc::new(move || {
            Box::new(move |record, out| {
                let Some(record) = record else {
                    return Ok(0);
                };
                out.extend_from_slice(&[b"<", record].concat());
                Ok(if lost { 2 } else { 1 })
            })
        }),
        tail: b"end".to_vec(),
        held_bytes: 0,
    }
}

/// What a function makes goes on many records at a time: what is no record among them is found, wherever it comes, and nothing comes out.
#[test]
fn what_a_function_makes_must_be_records() {
    const COUNT: usize = 20_000;
    let input: String = (0..COUNT).map(|number| format!("{number:05}\n")).collect();
    for wrong_at in [None, Some(0), Some(1), Some(COUNT / 2), Some(COUNT - 1)] {
        for all_at_end in [false, true] {
            for wrong in [&b"no end"[..], b"", b"two\nlines\n"] {
                let reduce = move || -> Reducer {
                    let (mut number, mut kept) = (0, Vec::new());
                    Box::new(move |record, out| {
                        if let Some(record) = record {
                            let is_wrong = wrong_at == Some(number);
                            let made = if is_wrong { wrong } else { record };
                            match all_at_end {
                                true => kept.push(made.to_vec()),
                                false => out.put(made),
                            }
                            number += 1;
                        } else {
                            kept.iter().for_each(|record| out.put(record));
                        }
                    })
                };
                let sim = Sim::new(1);
                sim.put("/in", input.as_bytes());
                let output = Output::Path("/out".into());
                let mut job = Job::new(vec![Input::Path("/in".into())], output, Format::Lines);
                job.memory_bytes = Some(64 << 20);
                job.tuning.partition_count = Some(1);
                job.reduce = Some(Arc::new(reduce));
                let told = format!("{wrong_at:?}, {all_at_end}, {wrong:?}");
                match (run::sort(&job, &sim, &Stop::new()), wrong_at) {
                    (Ok(_), None) => assert!(sim.get("/out").unwrap() == input.as_bytes()),
                    (Err(error), Some(_)) => {
                        assert_eq!(error.kind, ErrorKind::Usage, "{told}");
                        let cause = format!("it made {} bytes that are not one", wrong.len());
                        assert!(error.to_string().contains(&cause), "{told}: {error}");
                        assert_eq!(sim.names(), [Path::new("/in")], "{told}");
                    }
                    (result, _) => panic!("{told}: {:?}", result.map(|_| ())),
                }
            }
        }
    }
}

#[test]
fn parts_that_a_function_tells() {
    let run = |input: &[u8], with: &dyn Fn(&mut Job)| {
        let sim = Sim::new(1);
        sim.put("/in", input);
        let parts = Parts {
            folder: "/out".into(),
            cut: PartCut::Count(4),
            name: PartName::default(),
            overwrite: false,
        };
        let input = vec![Input::Path("/in".into())];
        let mut job = Job::new(input, Output::Parts(parts), Format::Lines);
        job.memory_bytes = Some(64 << 20);
        job.reduce = Some(tells(|number| number, 8));
        job.reduce_makes_bytes = Some(b"head\n".to_vec());
        job.reduce_tells_part = true;
        with(&mut job);
        let result = run::sort(&job, &sim, &Stop::new()).map(|_| {
            let file = |part| sim.get(format!("/out/part-{part:05}")).unwrap();
            [0, 1, 2, 3].map(|part| String::from_utf8(file(part)).unwrap())
        });
        assert!(result.is_ok() || !sim.names().iter().any(|name| name.starts_with("/out")));
        result
    };
    let found = run(b"3\n1\n3\n", &|_| ()).unwrap();
    assert_eq!(found, ["head\n", "head\n1\n", "head\n", "head\n3\n3\n"]);
    let framed = run(b"3\n1\n3\n", &|job| {
        job.reduce_framing = Some(pieces_of_one(false))
    });
    assert_eq!(
        framed.unwrap(),
        [
            "head\nend",
            "head\n<1\nend",
            "head\nend",
            "head\n<3\n<3\nend"
        ]
    );
    type With = fn(&mut Job);
    let refused: [(&[u8], With, ErrorKind, &str); 6] = [
        // As text 10 comes before 2, and there are no 11 parts either.
        (
            b"2\n10\n",
            |_| (),
            ErrorKind::Function,
            "parts from 0 on, of 4",
        ),
        (
            b"1\n3\n",
            |job| job.reduce = Some(tells(|number| 4 - number, 8)),
            ErrorKind::Function,
            "parts from 3 on, of 4",
        ),
        (
            b"1\n",
            |job| job.reduce = Some(tells(|number| number, 3)),
            ErrorKind::Function,
            "parts from 0 on, of 4",
        ),
        (
            b"1\n",
            |job| job.reduce_framing = Some(pieces_of_one(true)),
            ErrorKind::Lost,
            "1 records were gathered, and pieces hold 2",
        ),
        (
            b"1\n",
            |job| job.output = Output::Path("/out".into()),
            ErrorKind::Usage,
            "there is one output",
        ),
        (
            b"1\n",
            |job| job.reduce_makes_bytes = None,
            ErrorKind::Usage,
            "and that is records",
        ),
    ];
    for (input, with, kind, cause) in refused {
        let error = run(input, &with).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.cause.contains(cause), "{error}");
    }
}

/// How much a function makes nobody knows, nor what comes through a pipe that is merged: a full disk was told to need what goes
/// into the function, or nothing at all.
#[test]
fn no_room_is_named_that_nobody_knows() {
    let mut random = Random::new(seed("no_room_is_named"));
    let input = oracle::sorted(
        Format::Lines,
        &[],
        &[lines(Lines::Uniform, &mut random, 300_000)],
    );
    let input = input.concat();
    for is_merge in [false, true] {
        let sort = |sim: &Sim| {
            sim.put_dir("/temp");
            sim.put("/in", &input);
            sim.put_stdin(&input);
            let inputs = match is_merge {
                true => vec![Input::Stdin, Input::Path("/in".into())],
                false => vec![Input::Path("/in".into())],
            };
            let mut job = Job::new(inputs, Output::Path("/out".into()), Format::Lines);
            job.memory_bytes = Some(1 << 20);
            job.tuning = SMALL;
            job.temps = vec!["/temp".into()];
            match is_merge {
                true => job.merge = Some(Disorder::Refused),
                false => job.reduce = Some(count_lines()),
            }
            run::sort(&job, sim, &Stop::new())
        };
        let whole = Sim::new(0);
        sort(&whole).unwrap();
        let output_bytes = whole.get("/out").unwrap().len() as u64;
        let (mut of_output, mut of_temp) = (0, 0);
        for at in (0..400).step_by(3) {
            let sim = Sim::new(at);
            sim.set_fault(Some(Fault {
                at,
                for_good: true,
                kind: FaultKind::Error(28),
            }));
            let Err(error) = sort(&sim) else {
                continue;
            };
            let text = error.to_string();
            let is_written =
                error.doing.starts_with("finishing") || error.doing.starts_with("giving");
            if error.kind == ErrorKind::Space && is_written {
                // Now it is known, and has to be right.
                let needed = error.room.as_ref().map(|room| room.needed_bytes);
                assert!(
                    needed.is_none_or(|needed| needed == output_bytes),
                    "{is_merge} {at}: {text}"
                );
            } else if error.kind == ErrorKind::Space {
                let is_temp = error
                    .path
                    .as_ref()
                    .is_some_and(|path| path.starts_with("/temp"));
                assert!(
                    !text.contains("The output needs"),
                    "{is_merge} {at}: {text}"
                );
                assert!(is_temp || error.room.is_none(), "{is_merge} {at}: {text}");
                of_output += usize::from(!is_temp);
                of_temp += usize::from(is_temp);
            }
        }
        assert!(
            of_output > 0 && (is_merge || of_temp > 0),
            "{of_output} {of_temp}"
        );
    }
}
