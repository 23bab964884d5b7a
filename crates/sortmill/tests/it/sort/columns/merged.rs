//! Inputs that are in order by columns, merged: against the same model that tells what sorting makes of them, of inputs that
//! something is wrong with, too.

use std::path::Path;

use sortmill::columns::{Column, Columns, Compare, Form, Header, Name, Nulls};
use sortmill::error::{Error, ErrorKind};
use sortmill::io::codec::Codec;
use sortmill::io::sim::Sim;
use sortmill::job::{Disorder, Input, Job, Output, Tuning};
use sortmill::queue::Stop;
use sortmill::run;

use super::super::inputs::{Random, seed};
use super::model::{self, Bad};
use super::{Case, Drawn, MACHINES, SMALL, any_columns, assert_told, case, check_job, compare};
use super::{header_end, json_line, table};

/// `input` with its records in order, the last one perhaps without its newline.
fn in_order(random: &mut Random, columns: &Columns, input: Vec<u8>) -> Vec<u8> {
    let (header, records) = model::sorted(columns, &[input], false).unwrap();
    let mut sorted = [&header[..], &records.concat()].concat();
    if random.below(4) == 0 {
        sorted.pop_if(|byte| *byte == b'\n');
    }
    sorted
}

/// Any separated values, from one to many inputs, plain, compressed and as a stream; some empty, some of a header alone.
#[test]
fn sorted_inputs_of_columns_are_merged() {
    let mut random = Random::new(seed("sorted_inputs_of_columns_are_merged"));
    let (mut runs, mut dropped, mut headers) = (0, 0, 0);
    for round in 0..72 {
        let input_count = [1, 2, 3, 7, 16, 40, 100, 5][round % 8];
        let count = 1 + random.below(5);
        let (columns, numbers) = any_columns(&mut random, count);
        // A record takes a quarter of a read at most.
        let drawn = Drawn {
            long_max: [20, 2200 / count][random.below(2)],
            any_numbers: true,
        };
        let bytes_max = 1 + 600_000 / input_count;
        let inputs = (0..input_count).map(|_| {
            if random.below(8) == 0 {
                return Vec::new();
            }
            let bytes = [0, 1 + random.below(bytes_max)][random.below(6).min(1)];
            let input = table(&mut random, &columns, count, &numbers, bytes, drawn);
            in_order(&mut random, &columns, input)
        });
        let inputs: Vec<Vec<u8>> = inputs.collect();
        let mut case = Case {
            merge: Some([Disorder::Refused, Disorder::Kept][random.below(2)]),
            unique: random.below(3) == 0,
            stream: (random.below(3) == 0).then(|| random.below(input_count)),
            ..case(&columns, inputs)
        };
        if random.below(4) == 0 {
            case.packed = (0..input_count)
                .map(|_| [None, Some(Codec::Gzip)][random.below(2)])
                .collect();
            // Each has a codec of its own.
            case.memory_bytes = 8 << 20;
        }
        let machine = MACHINES[random.below(MACHINES.len())];
        let made = check_job(&case, machine, &format!("round {round}"));
        let merged = made.merged.unwrap();
        assert_eq!(merged.breaks, 0, "round {round}");
        runs += merged.runs;
        dropped += made.fingerprints.dropped.records;
        headers += usize::from(made.bytes.header > 0);
    }
    println!("{runs} runs, {dropped} dropped, {headers} with headers");
    assert!(runs > 10 && dropped > 100 && headers > 10);
}

#[test]
fn sorted_lines_of_json_are_merged() {
    let mut random = Random::new(seed("sorted_lines_of_json_are_merged"));
    let by = |path: &str, compare, reversed| Column {
        name: Name::Path(path.split('.').map(str::to_owned).collect()),
        compare,
        reversed,
    };
    for round in 0..12 {
        let columns = Columns {
            form: Form::Json,
            by: vec![
                by(["k", "o.list.0"][round % 2], Compare::Value, round % 3 == 0),
                by("o.n", Compare::Number, round % 5 == 0),
            ],
            nulls: [Nulls::First, Nulls::Last][random.below(2)],
        };
        let input_count = [3, 30, 60][round % 3];
        let inputs = (0..input_count).map(|_| {
            let mut input = String::new();
            for _ in 0..random.below(6000 / input_count) {
                input += &json_line(&mut random, 200);
                input += ["\n", "\r\n", " \n"][random.below(3)];
            }
            in_order(&mut random, &columns, input.into_bytes())
        });
        let inputs: Vec<Vec<u8>> = inputs.collect();
        let case = Case {
            merge: Some(Disorder::Refused),
            unique: round % 4 == 0,
            ..case(&columns, inputs)
        };
        let machine = MACHINES[round % MACHINES.len()];
        check_job(&case, machine, &format!("round {round}"));
    }
}

/// What the engine makes of inputs on a simulated machine that reads 4 KiB at a time.
fn merged(columns: &Columns, inputs: &[Vec<u8>], seed: u64) -> Result<Vec<u8>, Error> {
    let sim = Sim::new(seed);
    sim.put_dir("/temp");
    let mut named = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        let path = format!("/in{number}");
        sim.put(&path, input);
        named.push(Input::Path(path.into()));
    }
    let mut job = Job::new(named, Output::Path("/out".into()), columns.format());
    job.columns = Some(columns.clone());
    job.merge = Some(Disorder::Refused);
    job.memory_bytes = Some(1 << 20);
    job.temps = vec!["/temp".into()];
    job.tuning = Tuning {
        chunk_bytes: Some(4096),
        ..SMALL
    };
    let merged = run::sort(&job, &sim, &Stop::new());
    if merged.is_err() {
        assert_eq!(sim.get("/out"), None, "no output of a bad input");
    }
    merged.map(|_| sim.get("/out").unwrap())
}

/// The first record of `input` that belongs before the one in front of it: where it begins, and at which line.
fn late(columns: &Columns, input: &[u8]) -> Option<(u64, u64)> {
    let (header, records) = model::keyed(columns, input).unwrap();
    let mut at = header.len();
    for two in records.windows(2) {
        at += two[0].0.len();
        if model::compare(columns, &two[0].1, &two[1].1).is_gt() {
            let line = 1 + input[..at].iter().filter(|&&byte| byte == b'\n').count();
            return Some((at as u64, line as u64));
        }
    }
    None
}

/// A few bytes of one of some sorted inputs altered, behind its header: a bad record is told as sorting tells it,
/// and one that is out of order with its place. Of an input that has both, either may be found first.
#[test]
fn what_is_wrong_with_one_of_several_inputs_is_told() {
    let seed = seed("what_is_wrong_with_one_of_several_inputs_is_told");
    let mut random = Random::new(seed);
    let drawn = Drawn {
        long_max: 100,
        any_numbers: false,
    };
    let mut found = std::collections::BTreeMap::<&str, u32>::new();
    for round in 0..400 {
        let count = 1 + random.below(4);
        let (columns, numbers) = any_columns(&mut random, count);
        let input_of = |random: &mut Random| {
            let bytes = random.below(14_000);
            let input = table(random, &columns, count, &numbers, bytes, drawn);
            in_order(random, &columns, input)
        };
        let input_count = 1 + random.below(8);
        let mut inputs: Vec<Vec<u8>> = (0..input_count).map(|_| input_of(&mut random)).collect();
        let altered = random.below(input_count);
        let input = &mut inputs[altered];
        let header_end = header_end(&columns, input);
        // Near the end, so that no quote makes a record that is too long.
        let from = header_end.unwrap_or(input.len());
        let from = from.max(input.len().saturating_sub(3000));
        let Form::Separated {
            delimiter, quote, ..
        } = columns.form
        else {
            unreachable!()
        };
        for _ in 0..random.below(4) * usize::from(from < input.len()) {
            let at = from + random.below(input.len() + 1 - from);
            let byte = [delimiter, quote.unwrap_or(b'"'), b'\n', b'x', b'\r'][random.below(5)];
            match random.below(3) {
                0 if at < input.len() => drop(input.remove(at)),
                1 if at < input.len() => input[at] = byte,
                _ => input.insert(at, byte),
            }
        }
        if from < input.len() && random.below(6) == 0 {
            input.truncate(from + random.below(input.len() - from));
        }
        let what = format!("SEED={seed}, round {round}, input {altered}, {columns:?}");
        let input = &inputs[altered];
        let bad = model::keyed(&columns, input).err();
        let good = bad.as_ref().map_or(input.len(), |bad| bad.record_at);
        let late = late(&columns, &input[..good]);
        let error = match (
            merged(&columns, &inputs, round),
            bad.is_none() && late.is_none(),
        ) {
            (Ok(output), true) => {
                let (header, records) = model::sorted(&columns, &inputs, false).unwrap();
                compare(&output, &[&header[..], &records.concat()].concat(), &what);
                *found.entry("good").or_default() += 1;
                continue;
            }
            (Err(error), false) => error,
            (merged, _) => panic!("{what}: {:?}, and not {bad:?} or {late:?}", merged.err()),
        };
        if let (Some((offset, line)), true) = (late, error.cause.contains("not in order")) {
            let path = format!("/in{altered}");
            assert_eq!(
                error.path.as_deref(),
                Some(Path::new(&path)),
                "{what}: {error}"
            );
            assert_eq!(error.offset, Some(offset), "{what}: {error}");
            assert!(
                error.cause.contains(&format!("at line {line},")),
                "{what}: {error}, and not line {line}"
            );
            *found.entry("late").or_default() += 1;
        } else {
            let bad = bad.unwrap_or_else(|| panic!("{what}: {error}, and not {late:?}"));
            assert_told(&error, &bad, altered, &what);
            *found.entry(bad.what).or_default() += 1;
        }
    }
    println!("{found:?}");
    assert!(found.len() >= 7, "{found:?}");
}

fn by_first(header: Header) -> Columns {
    Columns {
        form: Form::Separated {
            delimiter: b',',
            quote: Some(b'"'),
            header,
        },
        by: vec![Column {
            name: Name::Number(1),
            compare: Compare::Value,
            reversed: false,
        }],
        nulls: Nulls::First,
    }
}

/// As in a sort, though a record is too long much earlier where many inputs are merged.
#[test]
fn a_quote_that_swallows_the_rest_of_an_input_is_told() {
    let mut input = b"a,b\n".repeat(3000);
    let at = input.len();
    input.extend(b"c,\"d\n");
    for rest in [0, 200, 50_000] {
        let input = [&input[..], &b"e,f\n".repeat(rest)].concat();
        let inputs = [b"a,b\nz,z\n".to_vec(), input];
        let error = merged(&by_first(Header::None), &inputs, 1).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Input, "{error}");
        if rest <= 200 {
            let bad = Bad {
                at: at + 2,
                record_at: at,
                line: 3001,
                what: "never closed",
            };
            assert_told(&error, &bad, 1, "the input ends soon");
        } else {
            assert_eq!(error.offset, Some(at as u64), "{error}");
            assert!(
                error.cause.contains("or a quote in it is never closed"),
                "{error}"
            );
        }
    }
}

/// A header with line ends in it goes over many reads, and must be the same to its last byte in each input.
#[test]
fn headers_are_held_against_the_first_ones() {
    let header = |last: &str| format!("\"{}\",\"b\n{last}\"", "a \n".repeat(5000));
    let input = |header: &str, records: &str| format!("{header}{records}").into_bytes();
    let columns = by_first(Header::First);
    let first = input(&header("c"), "\n1,1\n3,3\n");
    let same = [
        input(&format!("\u{feff}{}", header("c")), "\r\n0,0\n2,2"),
        input(&header("c"), ""),
        Vec::new(),
    ];
    let inputs = [&[Vec::new(), first.clone()][..], &same].concat();
    let output = merged(&columns, &inputs, 1).unwrap();
    let wanted = input(&header("c"), "\n0,0\n1,1\n2,2\n3,3\n");
    compare(&output, &wanted, "the same headers");
    for other in [
        input(&header("d"), "\n0,0\n"),
        input(&header("c\n"), "\n0,0\n"),
        input(&header("c"), ",d\n0,0,0\n"),
        input("x", ""),
        b"\n".to_vec(),
        header("c").as_bytes()[..9000].to_vec(),
    ] {
        let inputs = [first.clone(), same[0].clone(), other.clone()];
        let error = merged(&columns, &inputs, 1).unwrap_err();
        let told = format!("{error}");
        assert_eq!(error.kind, ErrorKind::Input, "{told}");
        assert_eq!(error.path.as_deref(), Some(Path::new("/in2")), "{told}");
        assert_eq!(error.offset, Some(0), "{told}");
        assert!(
            told.contains("its header is not that of the first"),
            "{told}"
        );
    }
}
