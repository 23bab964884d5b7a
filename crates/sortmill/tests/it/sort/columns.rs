//! Whole jobs ordered by columns, held against a model that reads a byte after the other: random quoting, newlines between
//! quotes where chunks end, inputs that something is wrong with, memory so small that partitions are evicted, divided and
//! merged.

mod merged;
mod model;
mod quotes;

use std::path::Path;

use sortmill::check::{Check, check};
use sortmill::columns::{Column, Columns, Compare, Form, Header, Name, Nulls};
use sortmill::error::{Error, ErrorKind};
use sortmill::io::codec::Codec;
use sortmill::io::sim::Sim;
use sortmill::job::{Boundaries, Input, Job, Output, Tuning, each};
use sortmill::parts::{PartCut, PartName, Parts};
use sortmill::queue::Stop;
use sortmill::report::Report;
use sortmill::run;

use super::inputs::{Random, seed};
use super::{Case, MACHINES, Machine, SMALL, compare, report};

use crate::csv_by;
use model::Bad;

/// What is drawn of a value.
#[derive(Clone, Copy)]
struct Drawn {
    /// The most bytes of a long one, of which there are a few.
    long_max: usize,
    /// Numbers have exponents, and infinite ones are among them.
    any_numbers: bool,
}

fn text(random: &mut Random, letters: &[u8], bytes_max: usize) -> Vec<u8> {
    let length = random.below(bytes_max + 1);
    (0..length)
        .map(|_| letters[random.below(letters.len())])
        .collect()
}

fn number(random: &mut Random, drawn: Drawn) -> Vec<u8> {
    let most = [10, 1000, 1_000_000][random.below(3)];
    let mut out = ["", "", "-", "+", " "][random.below(5)].to_owned();
    out += &random.below(most).to_string();
    if random.below(3) == 0 {
        out += &format!(".{}", random.below(1000));
    }
    if drawn.any_numbers && random.below(4) == 0 {
        out += ["e2", "E-3", "e+1", " "][random.below(4)];
    }
    if drawn.any_numbers && random.below(40) == 0 {
        out = ["inf", "-Infinity", "NaN", "0e7", "-0"][random.below(5)].to_owned();
    }
    out.into_bytes()
}

/// A value as it lies in a record, quoted where it must be and sometimes where it need not.
fn value(
    random: &mut Random,
    drawn: Drawn,
    is_number: bool,
    delimiter: u8,
    quote: Option<u8>,
) -> Vec<u8> {
    let long = random.below(200) == 0;
    let bytes_max = if long { drawn.long_max } else { 12 };
    let odd = [
        b'a',
        b'b',
        delimiter,
        b'\n',
        b'\r',
        0,
        1,
        0xff,
        quote.unwrap_or(b'"'),
    ];
    let bytes = match random.below(8) {
        0 => Vec::new(),
        _ if is_number => number(random, drawn),
        1 | 2 if quote.is_some() => text(random, &odd, bytes_max),
        3 => text(random, b"\0\x01\xff", 4),
        4 => text(random, b"a", 2),
        _ => text(random, b"abc d.", bytes_max),
    };
    let Some(quote) = quote else { return bytes };
    let must = bytes
        .iter()
        .any(|&byte| byte == delimiter || byte == quote || byte == b'\n' || byte == b'\r');
    if !must && random.below(6) > 0 {
        return bytes;
    }
    let doubled = bytes.iter().flat_map(|&byte| match byte == quote {
        true => vec![byte, byte],
        false => vec![byte],
    });
    std::iter::once(quote)
        .chain(doubled)
        .chain([quote])
        .collect()
}

/// About `bytes` bytes of separated values in columns `c0`, `c1` and so on; of those in `numbers` numbers.
fn table(
    random: &mut Random,
    columns: &Columns,
    count: usize,
    numbers: &[usize],
    bytes: usize,
    drawn: Drawn,
) -> Vec<u8> {
    let Form::Separated {
        delimiter,
        quote,
        header,
    } = columns.form.clone()
    else {
        unreachable!()
    };
    let (lf, crlf): (&[u8], &[u8]) = (b"\n", b"\r\n");
    let ends = &[vec![lf], vec![crlf], vec![lf, crlf]][random.below(3)];
    let mut out = Vec::new();
    if header != Header::None {
        if random.below(4) == 0 {
            out.extend(b"\xef\xbb\xbf");
        }
        let names: Vec<String> = (0..count).map(|number| format!("c{number}")).collect();
        out.extend(names.join(&char::from(delimiter).to_string()).bytes());
        out.extend(ends[0]);
    }
    while out.len() < bytes {
        for number in 0..count {
            if number > 0 {
                out.push(delimiter);
            }
            out.extend(value(
                random,
                drawn,
                numbers.contains(&number),
                delimiter,
                quote,
            ));
        }
        out.extend(ends[random.below(ends.len())]);
    }
    if random.below(3) == 0 {
        while matches!(out.last(), Some(b'\n' | b'\r')) && out.len() > 1 {
            out.pop();
        }
    }
    out
}

/// Any order of any separated values: which of the columns are numbers comes with it.
fn any_columns(random: &mut Random, count: usize) -> (Columns, Vec<usize>) {
    let quote = [Some(b'"'), Some(b'"'), Some(b'\''), None][random.below(4)];
    let delimiter = [b',', b'\t', b';'][random.below(3)];
    let header = [Header::None, Header::First][random.below(2)].clone();
    let mut numbers = Vec::new();
    let mut by = Vec::new();
    for _ in 0..1 + random.below(3) {
        let number = random.below(count);
        let compare = [Compare::Value, Compare::Text, Compare::Number][random.below(3)];
        if compare == Compare::Number {
            numbers.push(number);
        }
        by.push(Column {
            name: match header {
                Header::None => Name::Number(number as u64 + 1),
                _ => Name::Named(format!("c{number}")),
            },
            compare,
            reversed: random.below(3) == 0,
        });
    }
    let nulls = [Nulls::First, Nulls::Last][random.below(2)];
    let form = Form::Separated {
        delimiter,
        quote,
        header,
    };
    (Columns { form, by, nulls }, numbers)
}

fn case(columns: &Columns, inputs: Vec<Vec<u8>>) -> Case {
    Case {
        columns: Some(columns.clone()),
        ..Case::new(columns.format(), inputs)
    }
}

/// Sorts, and holds what comes out against the model.
fn check_job(case: &Case, machine: Machine, what: &str) -> Report {
    let columns = case.columns.as_ref().unwrap();
    let what = format!("{what} on {machine:?}, {columns:?}");
    let (output, made) = case
        .try_run(machine)
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let (header, records) = model::sorted(columns, &case.inputs, case.unique).unwrap();
    compare(&output, &[&header[..], &records.concat()].concat(), &what);
    if header.is_empty() {
        report::check(case, &made, &output, records.len() as u64);
    } else {
        let prints = made.fingerprints;
        assert_eq!(prints.written.records, records.len() as u64, "{what}");
        assert_eq!(
            prints.written.bytes + made.bytes.header,
            output.len() as u64,
            "{what}"
        );
        assert_eq!(made.bytes.header, header.len() as u64, "{what}");
    }
    made
}

#[test]
fn separated_values_are_sorted_by_any_columns() {
    let mut random = Random::new(seed("separated_values_are_sorted_by_any_columns"));
    let (mut evicted, mut divided, mut dropped, mut long, mut doubled) = (0, 0, 0, 0, 0);
    for round in 0..48 {
        let count = 1 + random.below(5);
        let (columns, numbers) = any_columns(&mut random, count);
        // All columns together fit the longest record.
        let long_max = [20, 17_000 / count][random.below(2)];
        let drawn = Drawn {
            long_max,
            any_numbers: true,
        };
        let input_count = 1 + random.below(3);
        let bytes = [0, 3000, 500_000, 900_000][random.below(4)] / input_count;
        let inputs: Vec<Vec<u8>> = (0..input_count)
            .map(|_| table(&mut random, &columns, count, &numbers, bytes, drawn))
            .collect();
        let mut case = Case {
            unique: random.below(4) == 0,
            threads: 1 + random.below(3),
            stream: (random.below(3) == 0).then(|| random.below(input_count)),
            temp_apart: random.below(2) == 0,
            ..case(&columns, inputs)
        };
        if random.below(4) == 0 {
            case.packed = vec![Some(Codec::Gzip); input_count];
            // A codec has its window beside all else.
            case.memory_bytes = 4 << 20;
        }
        let made = check_job(
            &case,
            MACHINES[round % MACHINES.len()],
            &format!("round {round}"),
        );
        evicted += usize::from(made.partitions.evicted > 0);
        divided += usize::from(made.partitions.divided > 0);
        long += made.partitions.long_records;
        dropped += made.fingerprints.dropped.records;
        doubled += usize::from(
            case.inputs
                .iter()
                .any(|input| input.windows(2).any(|two| two == b"\"\"")),
        );
    }
    println!(
        "{evicted} evicted, {divided} divided, {dropped} dropped, {long} long, {doubled} with doubled quotes"
    );
    assert!(evicted > 3 && dropped > 10 && long > 3 && doubled > 3);
}

/// One column of a few values on most records, in one partition: it is divided at places and merged.
#[test]
fn a_partition_of_quoted_records_is_merged() {
    let mut random = Random::new(seed("a_partition_of_quoted_records_is_merged"));
    let column = |number: u64, compare, reversed| Column {
        name: Name::Number(number),
        compare,
        reversed,
    };
    let columns = Columns {
        form: Form::Separated {
            delimiter: b',',
            quote: Some(b'"'),
            header: Header::None,
        },
        by: vec![
            column(2, Compare::Text, true),
            column(1, Compare::Number, false),
        ],
        nulls: Nulls::Last,
    };
    let drawn = Drawn {
        long_max: 40,
        any_numbers: true,
    };
    let input = table(&mut random, &columns, 3, &[0], 1_500_000, drawn);
    for machine in [Machine::Sim, Machine::Cached] {
        let mut case = case(&columns, vec![input.clone()]);
        case.tuning.partition_count = Some(1);
        case.stream = (machine == Machine::Sim).then_some(0);
        let made = check_job(&case, machine, "one partition");
        let partitions = &made.partitions;
        assert!(
            partitions.divided > 0 || partitions.merged > 0,
            "{partitions:?}"
        );
        case.unique = true;
        case.stream = None;
        let made = check_job(&case, machine, "one partition, unique");
        assert!(made.partitions.merged > 0, "{:?}", made.partitions);
    }
}

/// A line of JSON with members that decide in all kinds, at any place of it.
fn json_line(random: &mut Random, long_max: usize) -> String {
    let scalar = |random: &mut Random| match random.below(9) {
        0 => "null".to_owned(),
        1 => ["true", "false"][random.below(2)].to_owned(),
        2 | 3 => (random.below(2000) as i64 - 1000).to_string(),
        4 => format!("{}.25", random.below(50) as i64 - 25),
        5 => "\"\\u00e4\\\"\\n\\ud834\\udd1e\"".to_owned(),
        6 => "\"\"".to_owned(),
        _ => {
            let length = match random.below(150) {
                0 => random.below(long_max),
                _ => random.below(4),
            };
            let letters: String = (0..length)
                .map(|_| ["a", "b", "\\u0061", "ä", "]"][random.below(5)])
                .collect();
            format!("\"{letters}\"")
        }
    };
    let mut members = Vec::new();
    for _ in 0..random.below(3) {
        let name = ["x", "a\\u0062", "o", "{"][random.below(4)];
        members.push(format!("\"{name}\" : {{\"k\":[{}]}}", scalar(random)));
    }
    for _ in 0..1 + random.below(2) {
        members.push(format!("\"k\":{}", scalar(random)));
    }
    if random.below(5) > 0 {
        let (one, two) = (scalar(random), scalar(random));
        members.push(format!(
            "\"o\":{{\"list\":[{one}, {{\"in\":{two}}}],\"\\u006e\":{}}}",
            random.below(99)
        ));
    }
    let at = random.below(members.len());
    members.rotate_left(at);
    format!("{{{}}}", members.join([",", " , "][random.below(2)]))
}

#[test]
fn lines_of_json_are_sorted_by_values_at_paths() {
    let mut random = Random::new(seed("lines_of_json_are_sorted_by_values_at_paths"));
    let paths = [
        ("k", false),
        ("o.list.0", false),
        ("o.list.1.in", false),
        ("o.n", true),
        ("none", true),
    ];
    let (mut evicted, mut dropped) = (0, 0);
    for round in 0..16 {
        let mut by = Vec::new();
        for _ in 0..1 + random.below(3) {
            let (path, is_number) = paths[random.below(paths.len())];
            by.push(Column {
                name: Name::Path(path.split('.').map(str::to_owned).collect()),
                compare: [Compare::Value, Compare::Text, Compare::Number]
                    [random.below(2 + usize::from(is_number))],
                reversed: random.below(3) == 0,
            });
        }
        let nulls = [Nulls::First, Nulls::Last][random.below(2)];
        let columns = Columns {
            form: Form::Json,
            by,
            nulls,
        };
        // Of the largest only every fourth round leaves out repeats, of which there may be many.
        let bytes = [2000, 400_000, 900_000][round % 3];
        let mut input = String::new();
        while input.len() < bytes {
            input += &json_line(&mut random, 3000);
            input += ["\n", "\r\n", " \n"][random.below(3)];
        }
        if random.below(2) == 0 {
            input.truncate(input.trim_end().len());
        }
        let mut case = case(&columns, vec![input.into_bytes()]);
        case.unique = round % 4 == 0;
        let made = check_job(
            &case,
            MACHINES[round % MACHINES.len()],
            &format!("round {round}"),
        );
        evicted += usize::from(made.partitions.evicted > 0);
        dropped += made.fingerprints.dropped.records;
    }
    assert!(evicted > 2, "{evicted} {dropped}");
}

/// What the engine says of inputs on a simulated machine whose chunks are of 4 KiB: a sort, and a check of the same.
fn told(
    columns: &Columns,
    inputs: &[Vec<u8>],
    threads: usize,
    seed: u64,
) -> [Result<Vec<u8>, Error>; 2] {
    let sim = Sim::new(seed);
    sim.put_dir("/temp");
    let mut named = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        let path = format!("/in{number}");
        sim.put(&path, input);
        named.push(Input::Path(path.into()));
    }
    let mut job = Job::new(named.clone(), Output::Path("/out".into()), columns.format());
    job.columns = Some(columns.clone());
    job.memory_bytes = Some(1 << 20);
    job.threads = Some(threads);
    job.temps = vec!["/temp".into()];
    job.tuning = Tuning {
        chunk_bytes: Some(4096),
        ..SMALL
    };
    let sorted = run::sort(&job, &sim, &Stop::new());
    let sorted = sorted.map(|_| sim.get("/out").unwrap());
    let wanted = Check {
        columns: Some(columns.clone()),
        threads: Some(threads),
        chunk_bytes: Some(4096),
        ..Check::new(named, columns.format())
    };
    let checked = check(&wanted, &sim, &Stop::new()).map(|_| Vec::new());
    if sorted.is_err() {
        assert_eq!(sim.get("/out"), None, "no output of a bad input");
    }
    [sorted, checked]
}

fn assert_told(error: &Error, bad: &Bad, input: usize, what: &str) {
    assert_eq!(error.kind, ErrorKind::Input, "{what}: {error}");
    assert_eq!(
        error.path.as_deref(),
        Some(Path::new(&format!("/in{input}"))),
        "{what}: {error}"
    );
    assert_eq!(
        error.offset,
        Some(bad.at as u64),
        "{what}: {error}, and not {bad:?}"
    );
    let line = format!("line {}: ", bad.line);
    assert!(
        error.cause.starts_with(&line),
        "{what}: {error}, and not {bad:?}"
    );
    assert!(
        error.cause.contains(bad.what),
        "{what}: {error}, and not {bad:?}"
    );
}

/// Where the header of `input` ends, which is one line; 0 if it has none, `None` if it has no end.
fn header_end(columns: &Columns, input: &[u8]) -> Option<usize> {
    if !columns.has_header() {
        return Some(0);
    }
    let end = input.iter().position(|&byte| byte == b'\n')?;
    Some(end + 1)
}

/// A few bytes of good inputs altered, anywhere: where the model finds something wrong, so does the engine, at the same
/// byte, whatever chunks the threads come upon first; and where it does not, the output is right.
#[test]
fn the_first_thing_that_is_wrong_is_told() {
    let seed = seed("the_first_thing_that_is_wrong_is_told");
    let mut random = Random::new(seed);
    let drawn = Drawn {
        long_max: 1000,
        any_numbers: false,
    };
    let mut found = std::collections::BTreeMap::<&str, u32>::new();
    for round in 0..400 {
        let count = 1 + random.below(4);
        let (columns, numbers) = any_columns(&mut random, count);
        let bytes = random.below(9000);
        let mut input = table(&mut random, &columns, count, &numbers, bytes, drawn);
        let from = header_end(&columns, &input).unwrap_or(input.len());
        let Form::Separated {
            delimiter, quote, ..
        } = columns.form
        else {
            unreachable!()
        };
        let mistakes = if from < input.len() {
            random.below(4)
        } else {
            0
        };
        for _ in 0..mistakes {
            let at = from + random.below(input.len() + 1 - from);
            let byte = [delimiter, quote.unwrap_or(b'"'), b'\n', b'x', b'\r'][random.below(5)];
            match random.below(3) {
                0 if at < input.len() => drop(input.remove(at)),
                1 if at < input.len() => input[at] = byte,
                _ => input.insert(at, byte),
            }
        }
        if mistakes > 0 && random.below(5) == 0 {
            input.truncate(from + random.below(input.len() + 1 - from));
        }
        let wanted = model::sorted(&columns, &[input.clone()], false);
        let [sorted, checked] = told(&columns, &[input], 1 + random.below(3), round);
        let what = format!("SEED={seed}, round {round}, {columns:?}");
        match (&wanted, &sorted) {
            (Ok((header, records)), Ok(output)) => {
                compare(output, &[&header[..], &records.concat()].concat(), &what);
                assert!(checked.is_ok(), "{what}: {:?}", checked.err());
                *found.entry("good").or_default() += 1;
            }
            (Err(bad), Err(error)) => {
                assert_told(error, bad, 0, &what);
                assert_told(&checked.unwrap_err(), bad, 0, &what);
                *found.entry(bad.what).or_default() += 1;
            }
            _ => panic!("{what}: {:?} and not {:?}", sorted.err(), wanted.err()),
        }
    }
    println!("{found:?}");
    assert!(found.len() >= 6, "{found:?}");
}

/// Many bad records in every chunk, several threads: the first of all is told, each time.
#[test]
fn of_many_bad_records_the_first_is_told() {
    let mut input = Vec::new();
    for number in 0..4000 {
        input.extend(format!("{number},\"a\nb\",{}\n", number % 7).bytes());
    }
    // In the middle of some chunk; from there on every record has one column too few.
    let at = input.windows(6).position(|six| six == b"\n1500,").unwrap() + 1;
    let tail = String::from_utf8(input.split_off(at))
        .unwrap()
        .replace("\",", "\"\n");
    input.extend(tail.bytes());
    let columns = Columns {
        form: Form::Separated {
            delimiter: b',',
            quote: Some(b'"'),
            header: Header::None,
        },
        by: vec![Column {
            name: Name::Number(3),
            compare: Compare::Number,
            reversed: false,
        }],
        nulls: Nulls::First,
    };
    let bad = Bad {
        at,
        record_at: at,
        line: 3001,
        what: "decides the order",
    };
    for threads in [1, 2, 4] {
        for seed in 0..5 {
            for told in told(&columns, &[input.clone()], threads, seed) {
                assert_told(&told.unwrap_err(), &bad, 0, &format!("{threads} threads"));
            }
        }
    }
}

#[test]
fn lines_that_are_no_json_and_values_without_an_order_are_told() {
    let by = |path: &str, compare| Columns {
        form: Form::Json,
        by: vec![Column {
            name: Name::Path(path.split('.').map(str::to_owned).collect()),
            compare,
            reversed: false,
        }],
        nulls: Nulls::First,
    };
    let good = "{\"a\":1}\n".repeat(700);
    for (line, at, compare, what) in [
        ("{\"a\":1", 5, Compare::Value, "this is no JSON (EOF"),
        ("", 0, Compare::Value, "this is no JSON (EOF"),
        ("{\"a\":1}}", 7, Compare::Value, "this is no JSON (trailing"),
        ("{\"a\": [1]}", 6, Compare::Value, "an array"),
        ("{\"a\":{}}", 5, Compare::Text, "an object"),
        (
            "{\"a\":\"1x\"}",
            5,
            Compare::Number,
            "is no number: \"\\\"1x\\\"\"",
        ),
        ("{\"a\":true}", 5, Compare::Number, "is no number"),
    ] {
        let columns = by("a", compare);
        let inputs = [
            good.clone().into_bytes(),
            format!("{good}{line}\n{good}").into_bytes(),
        ];
        let bad = Bad {
            at: good.len() + at,
            record_at: 0,
            line: 701,
            what,
        };
        for told in told(&columns, &inputs, 2, 1) {
            assert_told(&told.unwrap_err(), &bad, 1, line);
        }
    }
}

/// A record that is too long for the memory: its beginning is told, and that a quote may be to blame.
#[test]
fn a_quote_that_swallows_the_rest_of_a_large_input_is_told() {
    let mut input = b"a,b\n".repeat(3000);
    let at = input.len() as u64;
    input.extend(b"c,\"d\n");
    input.extend(b"e,f\n".repeat(50_000));
    let columns = Columns {
        form: Form::Separated {
            delimiter: b',',
            quote: Some(b'"'),
            header: Header::None,
        },
        by: vec![Column {
            name: Name::Number(1),
            compare: Compare::Value,
            reversed: false,
        }],
        nulls: Nulls::First,
    };
    let [sorted, _] = told(&columns, &[input], 2, 1);
    let error = sorted.unwrap_err();
    assert_eq!(
        (error.kind, error.offset),
        (ErrorKind::Input, Some(at)),
        "{error}"
    );
    assert!(
        error.cause.contains("or a quote in it is never closed"),
        "{error}"
    );
    assert_eq!(error.hint, None, "bad records of columns are not skipped");
}

/// Of parts the manifest says what they are ordered by, so that they are checked, and others are cut at the same keys.
#[test]
fn parts_are_checked_by_the_columns_of_their_manifest() {
    let mut random = Random::new(seed("parts_are_checked_by_the_columns_of_their_manifest"));
    let columns = Columns {
        form: Form::Separated {
            delimiter: b',',
            quote: Some(b'"'),
            header: Header::None,
        },
        by: vec![Column {
            name: Name::Number(2),
            compare: Compare::Number,
            reversed: true,
        }],
        nulls: Nulls::Last,
    };
    let drawn = Drawn {
        long_max: 20,
        any_numbers: true,
    };
    let sim = Sim::new(3);
    sim.put_dir("/temp");
    let mut run_parts = |input: &Path, parts: &str, cut, boundaries| {
        let bytes = table(&mut random, &columns, 2, &[1], 200_000, drawn);
        sim.put(input, &bytes);
        let output = Output::Parts(Parts {
            folder: parts.into(),
            cut,
            name: PartName::default(),
            overwrite: false,
        });
        let mut job = Job::new(vec![Input::Path(input.into())], output, columns.format());
        job.columns = Some(columns.clone());
        job.memory_bytes = Some(1 << 20);
        job.boundaries = boundaries;
        job.verify = Some(true);
        job.temps = vec!["/temp".into()];
        job.tuning = SMALL;
        run::sort(&job, &sim, &Stop::new()).unwrap();
        let mut names: Vec<_> = sim
            .names()
            .into_iter()
            .filter(|name| name.starts_with(parts))
            .collect();
        names.retain(|name| {
            name.extension().is_none_or(|end| end != "json") && name != Path::new(parts)
        });
        names.sort();
        let whole: Vec<u8> = names
            .iter()
            .flat_map(|name| sim.get(name).unwrap())
            .collect();
        let (_, records) = model::sorted(&columns, &[bytes], false).unwrap();
        compare(&whole, &records.concat(), parts);
        let checked =
            sortmill::check::check_parts(Path::new(parts), Some(2), None, &sim, &Stop::new());
        assert_eq!(checked.unwrap().faults, Vec::<String>::new());
        names.len()
    };
    let sample = Boundaries::Sample;
    assert_eq!(
        run_parts(Path::new("/one"), "/parts1", PartCut::Count(7), sample),
        7
    );
    let manifest = Boundaries::Manifest("/parts1/manifest.json".into());
    assert_eq!(
        run_parts(Path::new("/two"), "/parts2", PartCut::Partitions, manifest),
        7
    );
}

#[test]
fn what_does_not_go_with_columns_is_refused() {
    let columns = csv_by("a", Compare::Value, false);
    let refused = |alter: &dyn Fn(&mut Job)| {
        let sim = Sim::new(1);
        sim.put("/in", b"a,b\n1,2\n");
        let mut job = Job::new(
            vec![Input::Path("/in".into())],
            Output::Path("/out".into()),
            columns.format(),
        );
        job.columns = Some(columns.clone());
        job.memory_bytes = Some(64 << 20);
        alter(&mut job);
        let error = run::sort(&job, &sim, &Stop::new()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage, "{error}");
        error.to_string()
    };
    let by = |name: Name| refused(&|job| job.columns.as_mut().unwrap().by[0].name = name.clone());
    assert!(by(Name::Named("c".into())).contains("no column \"c\": there are a, b"));
    assert!(by(Name::Number(3)).contains("no column 3: the header has 2"));
    assert!(refused(&|job| job.skip_bad = 1).contains("no record is left out"));
    assert!(refused(&|job| job.map = Some(each(|_, _| {}))).contains("functions"));
    assert!(refused(&|job| job.header_lines = 1).contains("names the columns"));
    assert!(
        refused(&|job| job.columns.as_mut().unwrap().by.clear()).contains("no column is named")
    );
    assert!(refused(&|job| job.columns = None).contains("ordered by columns"));
    let quoted = |delimiter, quote| {
        refused(&|job| {
            let columns = job.columns.as_mut().unwrap();
            columns.form = Form::Separated {
                delimiter,
                quote,
                header: Header::First,
            };
            job.format = columns.format();
        })
    };
    assert!(quoted(b'"', Some(b'"')).contains("both part values and quote them"));
    assert!(quoted(b'\n', None).contains("ends lines"));
}
