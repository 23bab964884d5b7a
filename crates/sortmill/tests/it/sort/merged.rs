//! Inputs that are in order already, merged: against the same stable sort in memory.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use sortmill::error::ErrorKind;
use sortmill::io::codec::Codec;
use sortmill::io::sim::{Fault, FaultKind, Sim};
use sortmill::job::{Boundaries, Disorder, Input, Job, Output, each};
use sortmill::order::{Format, KeyPart, Number};
use sortmill::queue::Stop;
use sortmill::run;

use super::inputs::{ALL_LINES, Lines, Random, fixed, lines, seed};
use super::{Case, MACHINES, Machine, compare, oracle, report};

/// The case that merges what `case` sorts: each input in order by itself.
pub fn merging(mut case: Case) -> Case {
    for input in &mut case.inputs {
        let one = std::slice::from_ref(&*input);
        *input = oracle::sorted(case.format, &case.keys, one).concat();
    }
    case.merge = Some(Disorder::Refused);
    case
}

/// A pair of a key of few letters and a value that tells which it is.
fn pair(random: &mut Random, number: usize) -> Vec<u8> {
    let length = random.below(40);
    let key: Vec<u8> = (0..length).map(|_| b'a' + random.below(2) as u8).collect();
    let value = format!("{number}");
    let lengths = [key.len() as u32, value.len() as u32].map(u32::to_le_bytes);
    [&lengths.concat(), &key[..], value.as_bytes()].concat()
}

/// As many inputs as that, of up to `bytes_max` bytes, some of them empty.
fn inputs(
    random: &mut Random,
    count: usize,
    mut make: impl FnMut(&mut Random) -> Vec<u8>,
) -> Vec<Vec<u8>> {
    let mut input = |_| match random.below(6) {
        0 => Vec::new(),
        _ => make(random),
    };
    (0..count).map(&mut input).collect()
}

/// Any format, as many inputs as that.
pub fn some_case(random: &mut Random, count: usize) -> Case {
    let bytes_max = 1 + 1_500_000 / (count + 1);
    match random.below(3) {
        0 => {
            let kinds: Vec<Lines> = ALL_LINES
                .into_iter()
                .filter(|kind| *kind != Lines::Long)
                .collect();
            let kind = kinds[random.below(kinds.len())];
            let mut inputs = inputs(random, count, |random| {
                let bytes = random.below(bytes_max);
                lines(kind, random, bytes)
            });
            // The last line of one lacks its newline.
            if let Some(last) = inputs.last_mut() {
                last.pop_if(|byte| *byte == b'\n');
            }
            Case::lines(inputs)
        }
        1 => {
            let size = [1, 7, 16, 100, 1000, 4096][random.below(6)];
            let keys = match random.below(3) {
                0 => vec![],
                1 => vec![KeyPart::plain(0, size.min(5) as u32)],
                _ => vec![KeyPart {
                    number: Number::Signed,
                    reversed: true,
                    little_endian: true,
                    ..KeyPart::plain(0, size.min(8) as u32)
                }],
            };
            let inputs = inputs(random, count, |random| {
                let records = random.below(1 + bytes_max / size);
                fixed(size, random, records)
            });
            Case::fixed(size as u32, &keys, inputs)
        }
        _ => Case::new(
            Format::Kv,
            inputs(random, count, |random| {
                let records = random.below(1 + bytes_max / 30);
                (0..records)
                    .flat_map(|number| pair(random, number))
                    .collect()
            }),
        ),
    }
}

/// All back ends, every format, none to many inputs, one of them as a stream.
#[test]
fn merged_inputs_are_what_a_stable_sort_makes_of_them() {
    let mut random = Random::new(seed("merged"));
    for round in 0..90 {
        let count = [0, 1, 2, 3, 7, 16, 20, 40, 100][round % 9];
        let mut case = merging(some_case(&mut random, count));
        // Last of all, so that a newline that the last input lacks is added there.
        case.stream = (random.below(2) == 0 && count > 0).then(|| random.below(count));
        let machine = MACHINES[random.below(MACHINES.len())];
        case.check(machine, &format!("{count} inputs, {:?}", case.format));
    }
}

/// More than memory has buffers for: runs are made of some, their bytes are told, and ties keep their order.
#[test]
fn more_inputs_than_there_are_buffers_for() {
    let mut random = Random::new(seed("merged-runs"));
    for machine in MACHINES {
        for format in [Format::Lines, Format::Fixed(24)] {
            let inputs: Vec<Vec<u8>> = (0..120)
                .map(|_| {
                    let bytes = random.below(9_000);
                    match format {
                        Format::Lines => lines(Lines::FewDistinct, &mut random, bytes),
                        _ => fixed(24, &mut random, bytes / 24),
                    }
                })
                .collect();
            let key = [KeyPart::plain(0, 1)];
            let keys = if format == Format::Lines {
                &[][..]
            } else {
                &key
            };
            let mut case = merging(Case::new(format, inputs));
            case.keys = keys.to_vec();
            let case = merging(case);
            let report = case.check(machine, "120 inputs");
            let merged = report.merged.unwrap();
            assert!(merged.runs > 1 && merged.passes > 1, "{merged:?}");
            assert_eq!(merged.passes, report.plan.passes);
            let bytes = &report.bytes;
            assert!(bytes.temp_written > 0 && bytes.temp_read == bytes.temp_written);
            assert_eq!(bytes.merge_extra, bytes.temp_written + bytes.temp_read);
            // As many as were foreseen, with headers and padding.
            let foreseen = report.plan.temp_bytes.unwrap();
            assert!(bytes.temp_written >= foreseen);
            assert!(
                bytes.temp_written < 2 * foreseen + 400_000,
                "{foreseen} {bytes:?}"
            );
        }
    }
}

#[test]
fn three_hundred_empty_inputs_and_one_line() {
    for machine in [Machine::Uring, Machine::Sim] {
        let mut inputs = vec![Vec::new(); 300];
        merging(Case::lines(inputs.clone())).check(machine, "empty");
        inputs[77] = b"the only one".to_vec();
        let report = merging(Case::lines(inputs)).check(machine, "nearly empty");
        assert_eq!(report.merged.unwrap().inputs, 1);
    }
}

/// Where one input ends before the next one begins, and where all advance together.
#[test]
fn rows_that_follow_one_another() {
    let mut random = Random::new(seed("merged-follow"));
    let all = oracle::sorted(
        Format::Lines,
        &[],
        &[lines(Lines::Uniform, &mut random, 900_000)],
    );
    let apart: Vec<Vec<u8>> = all
        .chunks(all.len().div_ceil(15))
        .map(<[Vec<u8>]>::concat)
        .collect();
    let mut dealt = vec![Vec::new(); 15];
    for (number, line) in all.iter().enumerate() {
        dealt[number % 15].extend_from_slice(line);
    }
    for machine in MACHINES {
        let mut backwards = apart.clone();
        backwards.reverse();
        for inputs in [apart.clone(), backwards, dealt.clone()] {
            merging(Case::lines(inputs)).check(machine, "15 inputs");
        }
    }
}

/// Any record that comes too late is found and named, wherever reads begin and end.
#[test]
fn an_input_that_is_not_in_order() {
    let mut random = Random::new(seed("merged-unsorted"));
    for round in 0..60 {
        let count = 1 + random.below(30);
        let mut case = merging(Case::lines(
            (0..count)
                .map(|_| {
                    let bytes = 10 + random.below(60_000);
                    lines(Lines::Uniform, &mut random, bytes)
                })
                .collect(),
        ));
        let bad = random.below(count);
        let mut records = oracle::records(Format::Lines, &case.inputs[bad]);
        let at = random.below(records.len());
        // The greatest line there, so that the one behind it comes too late, or a least one at the end.
        let at = match at + 1 == records.len() {
            true => {
                records.push(b"\n".to_vec());
                records.insert(0, b"a\n".to_vec());
                records.sort_by(|one, other| one[..one.len() - 1].cmp(&other[..other.len() - 1]));
                records.push(b"\n".to_vec());
                records.len() - 1
            }
            false => {
                records.insert(at, [&[0xff; 70][..], b"\n"].concat());
                at + 1
            }
        };
        case.inputs[bad] = records.concat();
        let offset: usize = records[..at].iter().map(Vec::len).sum();
        let machine = MACHINES[round % 4];
        let error = case.try_run(machine).expect_err("it is not in order");
        let told = format!("{machine:?} {count} {bad} {at}: {error}");
        assert_eq!(error.kind, ErrorKind::Input, "{told}");
        assert_eq!(error.offset, Some(offset as u64), "{told}");
        let number = format!("line {},", at + 1);
        assert!(error.cause.contains(&number), "{told}");
        assert!(
            error.path.as_ref().unwrap().ends_with(format!("in{bad}")),
            "{told}"
        );
    }
}

/// What comes of inputs as they are: always the least of the records they go on with, of equal ones the first input's.
fn as_they_are(case: &Case) -> Vec<Vec<u8>> {
    let compare = |a: &Vec<u8>, b: &Vec<u8>| oracle::compare(case.format, &case.keys, a, b);
    let rows = case.inputs.iter();
    let mut rows: Vec<VecDeque<Vec<u8>>> = rows
        .map(|input| oracle::records(case.format, input).into())
        .collect();
    let mut out: Vec<Vec<u8>> = Vec::new();
    loop {
        let heads = rows.iter_mut().filter(|row| !row.is_empty());
        let Some(least) = heads.min_by(|a, b| compare(&a[0], &b[0])) else {
            return out;
        };
        let record = least.pop_front().unwrap();
        let is_repeat = out
            .last()
            .is_some_and(|last| compare(last, &record).is_eq());
        if !(case.unique && is_repeat) {
            out.push(record);
        }
    }
}

/// Inputs that are in no order, or in one that ends somewhere: nothing is lost, and what comes out is the same whatever
/// the memory and however many are merged at once.
#[test]
fn inputs_that_are_not_in_order_are_merged_as_they_are() {
    let mut random = Random::new(seed("merged-as-they-are"));
    let (mut breaks, mut runs, mut dropped) = (0, 0, 0);
    for round in 0..60 {
        let count = [1, 2, 3, 7, 16, 17, 40, 120][round % 8];
        let mut case = some_case(&mut random, count);
        if round % 3 == 0 {
            // In order but for some records.
            case = merging(case);
            for input in &mut case.inputs {
                let mut records = oracle::records(case.format, input);
                if records.len() > 1 {
                    let (from, to) = (random.below(records.len()), random.below(records.len()));
                    let record = records.remove(from);
                    records.insert(to, record);
                }
                *input = records.concat();
            }
        }
        case.merge = Some(Disorder::Kept);
        case.unique = random.below(2) == 0;
        case.stream = (random.below(3) == 0).then(|| random.below(count));
        let machine = MACHINES[random.below(MACHINES.len())];
        let what = format!("{count} inputs, {:?} on {machine:?}", case.format);
        let (output, report) = case.try_run(machine).unwrap();
        let wanted = as_they_are(&case);
        compare(&output, &wanted.concat(), &what);
        report::check(&case, &report, &output, wanted.len() as u64);
        let merged = report.merged.unwrap();
        let falls = wanted
            .windows(2)
            .filter(|two| oracle::compare(case.format, &case.keys, &two[0], &two[1]).is_gt());
        assert_eq!(merged.breaks, falls.count() as u64, "{what}");
        breaks += merged.breaks;
        runs += merged.runs;
        dropped += report.fingerprints.dropped.records;
    }
    assert!(
        breaks > 1000 && runs > 10 && dropped > 100,
        "{breaks} {runs} {dropped}"
    );
}

/// Of records with equal keys only the first comes out, that of the first input, also where they meet in runs.
#[test]
fn repeats_are_dropped_where_they_meet() {
    let mut random = Random::new(seed("merged-unique"));
    let (mut runs, mut dropped) = (0, 0);
    for round in 0..40 {
        let count = [1, 2, 5, 30, 120][round % 5];
        let mut case = merging(some_case(&mut random, count));
        case.unique = true;
        case.stream = (random.below(3) == 0).then(|| random.below(count));
        let machine = MACHINES[random.below(MACHINES.len())];
        let report = case.check(machine, &format!("{count} inputs, {:?}", case.format));
        runs += report.merged.unwrap().runs;
        dropped += report.fingerprints.dropped.records;
    }
    assert!(runs > 10 && dropped > 100, "{runs} {dropped}");
}

/// The output is an input that was not in order: it is read again, and is as it was written.
#[test]
fn an_output_that_is_not_in_order_is_verified() {
    let sim = Sim::new(9);
    sim.put("/a", b"2\n1\n2\n");
    sim.put("/b", b"1\n3\n0\n");
    let mut job = onto(&sim, &["/a", "/b"], "/a");
    job.merge = Some(Disorder::Kept);
    let report = run::sort(&job, &sim, &Stop::new()).unwrap();
    assert!(report.verified);
    assert_eq!(sim.get("/a").unwrap(), b"1\n2\n1\n2\n3\n0\n");
    assert_eq!(report.merged.unwrap().breaks, 2);
}

/// Lines in front of records, of any length, wherever reads begin and end: those of the first input that has any stay.
#[test]
fn first_lines_are_no_records() {
    let mut random = Random::new(seed("merged-header"));
    for round in 0..60 {
        let count = [1, 2, 3, 17, 40, 120][round % 6];
        let mut case = merging(Case::lines(inputs(&mut random, count, |random| {
            let bytes = random.below(20_000);
            lines(Lines::Uniform, random, bytes)
        })));
        case.header_lines = 1 + random.below(3) as u64;
        case.stream = (random.below(3) == 0).then(|| random.below(count));
        if random.below(3) == 0 {
            case.packed = (0..count)
                .map(|_| (random.below(2) == 0).then_some(Codec::Gzip))
                .collect();
            case.memory_bytes = [6 << 20, 200 << 20][random.below(2)];
        }
        let mut bodies = case.inputs.clone();
        let mut top = None;
        for (input, body) in case.inputs.iter_mut().zip(&mut bodies) {
            if random.below(7) == 0 {
                // Nothing at all, or not all of its first lines.
                body.clear();
                *input = match random.below(2) {
                    0 => Vec::new(),
                    _ => b"no more".to_vec(),
                };
                if !input.is_empty() {
                    top.get_or_insert_with(|| b"no more\n".to_vec());
                }
                continue;
            }
            let line = |random: &mut Random| {
                let long = [10, 5000, 16_383, 16_384, 40_000][random.below(5)];
                [vec![b'~'; random.below(long)], vec![b'\n']].concat()
            };
            let lines: Vec<u8> = (0..case.header_lines)
                .flat_map(|_| line(&mut random))
                .collect();
            *input = [&lines[..], input].concat();
            top.get_or_insert(lines);
        }
        let machine = MACHINES[random.below(MACHINES.len())];
        let (output, report) = case.try_run(machine).unwrap();
        let wanted = oracle::sorted(case.format, &case.keys, &bodies);
        let wanted = [top.unwrap_or_default(), wanted.concat()].concat();
        compare(&output, &wanted, &format!("{count} inputs on {machine:?}"));
        let written = report.fingerprints.written.bytes;
        assert_eq!(report.bytes.header + written, output.len() as u64);
    }
}

/// The longest record is as long as the plan says, wherever it lies; one byte more is an error that names it.
#[test]
fn the_longest_record() {
    let limit = 4096;
    for before in [0, 1, 12_200, 12_300, 16_383, 16_384, 20_000] {
        for (length, fits) in [
            (limit, true),
            (limit + 1, false),
            (3 * limit, false),
            (9 * limit, false),
        ] {
            let short = b"a\n".repeat(before / 2);
            let long = [vec![b'b'; length - 1], b"\n".to_vec()].concat();
            let input = [&short[..], &long, b"c\n"].concat();
            let case = merging(Case::lines(vec![input.clone(), b"b\n".to_vec()]));
            for machine in [Machine::Posix, Machine::Sim] {
                if fits {
                    let report = case.check(machine, "long");
                    assert_eq!(report.plan.record_bytes_max, limit);
                    continue;
                }
                let error = case.try_run(machine).expect_err("it is too long");
                assert_eq!(error.kind, ErrorKind::Input, "{error}");
                assert_eq!(
                    error.offset,
                    Some(short.len() as u64),
                    "{before} {length}: {error}"
                );
                assert!(error.to_string().contains("longer than 4.0 KiB"), "{error}");
            }
            let key = vec![b'k'; length - 8];
            let lengths = [key.len() as u32, 0].map(u32::to_le_bytes).concat();
            let pairs = [&[0; 8].repeat(before / 8)[..], &lengths[..], &key[..]].concat();
            let case = merging(Case::new(Format::Kv, vec![pairs]));
            assert_eq!(
                case.try_run(Machine::Sim).is_ok(),
                fits,
                "{before} {length}"
            );
        }
    }
}

#[test]
fn records_that_are_cut_off() {
    let cut = vec![7; 995];
    let case = Case {
        merge: Some(Disorder::Refused),
        ..Case::fixed(10, &[], vec![vec![7; 50], cut])
    };
    let error = case.try_run(Machine::Sim).expect_err("cut off");
    assert_eq!((error.kind, error.offset), (ErrorKind::Input, Some(990)));
    let pair = [&[3, 0, 0, 0, 2, 0, 0, 0][..], b"abcde"].concat();
    for length in 1..13 {
        let input = [&pair[..], &pair[..length]].concat();
        let case = Case {
            merge: Some(Disorder::Refused),
            ..Case::new(Format::Kv, vec![input])
        };
        let error = case.try_run(Machine::Sim).expect_err("cut off");
        assert_eq!(
            (error.kind, error.offset),
            (ErrorKind::Input, Some(13)),
            "{error}"
        );
    }
}

/// The job that merges these files of a simulated machine into one of them.
fn onto(sim: &Sim, inputs: &[&str], output: &str) -> Job {
    sim.put_dir("/temp");
    let inputs = inputs
        .iter()
        .map(|name| Input::Path(PathBuf::from(name)))
        .collect();
    let mut job = Job::new(inputs, Output::Path(output.into()), Format::Lines);
    job.merge = Some(Disorder::Refused);
    job.memory_bytes = Some(40 << 20);
    job.temps = vec!["/temp".into()];
    job
}

#[test]
fn the_output_may_be_an_input_and_an_input_may_come_twice() {
    for output in ["/a", "/b"] {
        let sim = Sim::new(3);
        sim.put("/a", b"1\n3\n");
        sim.put("/b", b"2\n");
        let job = onto(&sim, &["/a", "/b", "/a"], output);
        let report = run::sort(&job, &sim, &Stop::new()).unwrap();
        assert!(report.verified);
        assert_eq!(sim.get(output).unwrap(), b"1\n1\n2\n3\n3\n");
        // Not in order: what was there stays.
        sim.put("/c", b"2\n1\n");
        let job = onto(&sim, &["/c", output], output);
        run::sort(&job, &sim, &Stop::new()).unwrap_err();
        assert_eq!(sim.get(output).unwrap(), b"1\n1\n2\n3\n3\n");
    }
}

#[test]
fn what_does_not_go_with_merging_is_refused() {
    type Ask = fn(&mut Job);
    let asks: [(Ask, &str); 5] = [
        (|job| job.skip_bad = 1, "leaves no record out"),
        (
            |job| job.until = Some(sortmill::metrics::Stage::Read),
            "runs to its end",
        ),
        (|job| job.boundaries = Boundaries::Uniform, "no partitions"),
        (
            |job| job.inputs = vec![Input::Stdin, Input::Stdin],
            "standard input can be merged once",
        ),
        (
            |job| job.map = Some(each(|_, _| {})),
            "functions go with sorting",
        ),
    ];
    for (ask, wanted) in asks {
        let sim = Sim::new(4);
        sim.put("/a", b"1\n");
        let mut job = onto(&sim, &["/a"], "/out");
        ask(&mut job);
        let error = run::sort(&job, &sim, &Stop::new()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage);
        assert!(error.to_string().contains(wanted), "{error}");
        assert!(sim.get(Path::new("/out")).is_none());
    }
}

/// Another, longer file takes an input's name before any operation on it: what comes out is the one or the other, or
/// nothing. It was a part of the other, taken for an input that has grown.
#[test]
fn an_input_that_is_replaced_is_not_cut() {
    let line = |number: u32| format!("{number:07}\n");
    let one: Vec<u8> = (0..300_000).map(line).collect::<String>().into_bytes();
    let other = [&one[one.len() / 2..], &one].concat();
    let (mut refused, mut taken) = (0, 0);
    for at in 0.. {
        let sim = Sim::new(at);
        sim.put("/in", &one);
        sim.set_fault(Some(Fault {
            at,
            for_good: false,
            kind: FaultKind::Replaced,
        }));
        let input = vec![Input::Path("/in".into())];
        let mut job = Job::new(input, Output::Path("/out".into()), Format::Lines);
        job.merge = Some(Disorder::Kept);
        job.as_of_start = true;
        job.memory_bytes = Some(64 << 20);
        let result = run::sort(&job, &sim, &Stop::new());
        let Some(struck) = sim.struck() else {
            println!("refused {refused}, taken {taken} of {at}");
            assert!(refused > 0 && taken > 0);
            return;
        };
        match result {
            _ if struck.path != Path::new("/in") => {}
            Ok(_) => {
                let out = sim.get("/out").unwrap();
                assert!(
                    out == one || out == other,
                    "{struck:?}: {} bytes",
                    out.len()
                );
                taken += 1;
            }
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Changed, "{struck:?}: {error}");
                assert_eq!(error.path.as_deref(), Some(Path::new("/in")));
                refused += 1;
            }
        }
    }
}
