//! Where pipelines write: one file or several, and what is there already.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value as Json;
use sortmill::error::{Error, ErrorKind};
use sortmill::io::codec::Codec;
use sortmill::io::{Host, RingKind};
use sortmill::job::{Compress, Tuning};
use sortmill::pipeline::{
    Form, Pipeline, PipelineReport, Settings, Table, Value, count, read_text, words,
};
use sortmill::queue::Stop;

use crate::Scratch;
use crate::sort::inputs::{Random, seed};

const CSV: Form = Form::csv(true);

fn small() -> Settings {
    Settings {
        memory_bytes: Some(6 << 20),
        threads: Some(2),
        tuning: Tuning {
            chunk_bytes: Some(16 << 10),
            block_bytes: Some(4096),
            ..Tuning::default()
        },
        ..Settings::default()
    }
}

fn run(pipeline: &Pipeline) -> Result<PipelineReport, Error> {
    let host = Host::new(RingKind::Posix, false).unwrap();
    pipeline.run(&small(), &host, &Stop::new())
}

/// Some lines of a file, and the table of them.
fn input(scratch: &Scratch, random: &mut Random, count: usize) -> (Vec<String>, Table) {
    let line = |_| {
        let below = 1 + random.below(2_000);
        let length_max = if random.below(50) == 0 { 3_000 } else { 120 };
        let length = random.below(length_max);
        format!("w{} {}", random.below(below), "x".repeat(length))
    };
    let lines: Vec<String> = (0..count).map(line).collect();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(scratch.path("in"), text).unwrap();
    let table = read_text([scratch.path("in")], 0);
    (lines, table)
}

/// The files of a folder, without `heading`, held against its manifest and against how many there should be.
fn parts(folder: &Path, names: &str, heading: &str, count: usize) -> Vec<String> {
    let manifest = std::fs::read(folder.join("manifest.json")).unwrap();
    let manifest: Json = serde_json::from_slice(&manifest).unwrap();
    let told = manifest["parts"].as_array().unwrap();
    assert_eq!(told.len(), count);
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), count + 1);
    let part = |(number, told): (usize, &Json)| {
        let name = names.replace("{}", &format!("{number:05}"));
        assert_eq!(told["name"], name);
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let rest = text.strip_prefix(heading).unwrap();
        assert_eq!(told["fingerprint"]["records"], rest.lines().count());
        assert_eq!(told["fingerprint"]["bytes"], rest.len());
        rest.to_owned()
    };
    let all: Vec<String> = told.iter().enumerate().map(part).collect();
    let counts: Vec<usize> = all.iter().map(|part| part.lines().count()).collect();
    let sum: usize = counts.iter().sum();
    let wanted = (0..count).map(|part| (part + 1) * sum / count - part * sum / count);
    assert_eq!(counts, wanted.collect::<Vec<_>>());
    all
}

#[test]
fn files_of_equal_counts() {
    let mut random = Random::new(seed("files_of_equal_counts"));
    let scratch = Scratch::new("files_of_equal_counts");
    let (lines, table) = input(&scratch, &mut random, 40_000);
    let mut sorted = lines.clone();
    sorted.sort_unstable();
    let wanted: String = sorted.iter().map(|line| format!("{line}\n")).collect();
    let table = table.sort(&[("line", false)]).unwrap();
    for count in [1, 2, 7, 500] {
        let pipeline = table.write(scratch.path("out"), CSV).unwrap();
        let pipeline = pipeline.in_files(count).unwrap();
        let report = run(&pipeline).unwrap();
        assert_eq!(report.phases.len(), 1);
        assert_eq!(report.records(), (40_000, 40_000));
        let found = parts(
            &scratch.path("out"),
            "part-{}.csv",
            "line\n",
            count as usize,
        );
        assert!(found.concat() == wanted, "{count}");
        let report = &report.phases[0].report;
        let bytes = wanted.len() as u64 + 5 * count;
        assert_eq!(report.bytes.output, bytes);
        assert!(report.bytes.temp_written > 100_000);
        assert_eq!(scratch.names(), ["in", "out"]);
    }
    let told = table
        .write(scratch.path("out"), CSV)
        .unwrap()
        .in_files(7)
        .unwrap();
    let host = Host::new(RingKind::Posix, false).unwrap();
    let told = told.explain(&small(), &host).unwrap();
    assert!(
        told.contains("writes CSV to 7 files of equal counts in "),
        "{told}"
    );
}

/// Each is compressed by itself, one of more than a frame as well as one without a record, and all are read back.
#[test]
fn compressed_files_of_equal_counts() {
    let mut random = Random::new(seed("compressed_files_of_equal_counts"));
    let scratch = Scratch::new("compressed_files_of_equal_counts");
    let (mut lines, table) = input(&scratch, &mut random, 40_000);
    lines.sort_unstable();
    let host = Host::new(RingKind::Posix, false).unwrap();
    let settings = Settings {
        memory_bytes: Some(32 << 20),
        ..small()
    };
    let table = table.sort(&[("line", false)]).unwrap();
    let top = table.top(2, &[("line", false)]).unwrap();
    for (table, count, wanted) in [(&table, 2, &lines[..]), (&top, 3, &lines[..2])] {
        for codec in [Codec::Zstd, Codec::Gzip, Codec::Lz4] {
            let compress = Compress { codec, level: None };
            let pipeline = table.write(scratch.path("out"), CSV).unwrap();
            let pipeline = pipeline.in_files(count).unwrap().compressed(Some(compress));
            let told = pipeline.explain(&settings, &host).unwrap();
            assert!(told.contains(&format!(", by {}", codec.name())), "{told}");
            let report = pipeline.run(&settings, &host, &Stop::new()).unwrap();
            let manifest = std::fs::read(scratch.path("out/manifest.json")).unwrap();
            let manifest: Json = serde_json::from_slice(&manifest).unwrap();
            assert_eq!(manifest["codec"], codec.name());
            let (mut found, mut stored) = (Vec::new(), 0);
            for (number, part) in manifest["parts"].as_array().unwrap().iter().enumerate() {
                let name = format!("part-{number:05}.csv.{}", codec.extension());
                assert_eq!(part["name"], name);
                let path = scratch.path("out").join(name);
                let bytes = std::fs::metadata(&path).unwrap().len();
                assert_eq!(part["stored_bytes"], bytes);
                stored += bytes;
                let back = read_text([&path], 0);
                let back = back.write(scratch.path("back"), Form::Text).unwrap();
                back.run(&small(), &host, &Stop::new()).unwrap();
                let text = std::fs::read_to_string(scratch.path("back")).unwrap();
                let rest: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
                assert!(text.starts_with("line\n"));
                assert_eq!(part["fingerprint"]["records"], rest.len());
                found.extend(rest);
            }
            assert!(found == wanted, "{codec:?}");
            assert_eq!(report.phases.last().unwrap().report.bytes.output, stored);
            std::fs::remove_file(scratch.path("back")).unwrap();
            assert_eq!(scratch.names(), ["in", "out"]);
        }
    }
}

/// How many come out is known only when they have: one phase more.
#[test]
fn files_of_what_verbs_make() {
    let mut random = Random::new(seed("files_of_what_verbs_make"));
    let scratch = Scratch::new("files_of_what_verbs_make");
    let (lines, table) = input(&scratch, &mut random, 6_000);
    let mut model: BTreeMap<&str, u64> = BTreeMap::new();
    let all = lines.iter().flat_map(|line| line.split(' '));
    all.filter(|word| !word.is_empty())
        .for_each(|word| *model.entry(word).or_default() += 1);
    let line = |(word, n): (&&str, &u64)| format!("{{\"word\":\"{word}\",\"count\":{n}}}\n");
    let mut wanted: Vec<String> = model.iter().map(line).collect();
    let table = table.flat_map(&words("line")).unwrap();
    let counts = table.group_by(&["word"]).unwrap().agg(&[count()]).unwrap();
    let pipeline = counts.write(scratch.path("out"), Form::JsonLines).unwrap();
    let report = run(&pipeline.in_files(5).unwrap()).unwrap();
    let names: Vec<&str> = report.phases.iter().map(|phase| &*phase.name).collect();
    assert_eq!(names, ["group by word", "part"]);
    let found = parts(&scratch.path("out"), "part-{}.jsonl", "", 5).concat();
    let mut found: Vec<&str> = found.split_inclusive('\n').collect();
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted);

    let few = counts.top(9, &[("count", false)]).unwrap();
    let none = few.filter(["count"], |[count]| Ok(count.u64()? != 1));
    for (table, many) in [(few.clone(), 9), (none.unwrap(), 0)] {
        let rare = model.values().filter(|&&n| n == 1).count();
        assert!(rare >= 9);
        let pipeline = table.write(scratch.path("out"), CSV).unwrap();
        run(&pipeline.in_files(16).unwrap()).unwrap();
        let found = parts(&scratch.path("out"), "part-{}.csv", "word,count\n", 16);
        assert_eq!(found.concat().lines().count(), many);
    }
    assert_eq!(scratch.names(), ["in", "out"]);
}

#[test]
fn what_is_there_is_replaced_or_refused() {
    let mut random = Random::new(seed("what_is_there_is_replaced_or_refused"));
    let scratch = Scratch::new("what_is_there_is_replaced_or_refused");
    let (lines, table) = input(&scratch, &mut random, 100);
    let wanted: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let pipeline = || table.write(scratch.path("out"), Form::Text).unwrap();
    let refused = |pipeline: &Pipeline, wanted: &str| {
        let error = run(pipeline).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage, "{error}");
        assert!(error.to_string().contains(wanted), "{error}");
        assert_eq!(error.path.clone().unwrap(), scratch.path("out"));
    };
    run(&pipeline().only_new()).unwrap();
    std::fs::write(scratch.path("out"), "old").unwrap();
    refused(&pipeline().only_new(), "something has this name already");
    refused(&pipeline().in_files(2).unwrap(), "it is no folder");
    assert_eq!(std::fs::read(scratch.path("out")).unwrap(), b"old");
    run(&pipeline()).unwrap();
    assert!(std::fs::read_to_string(scratch.path("out")).unwrap() == wanted);
    std::fs::remove_file(scratch.path("out")).unwrap();

    run(&pipeline().in_files(4).unwrap().only_new()).unwrap();
    refused(
        &pipeline().in_files(3).unwrap().only_new(),
        "has this name already",
    );
    assert_eq!(
        parts(&scratch.path("out"), "part-{}.txt", "", 4).concat(),
        wanted
    );
    run(&pipeline().in_files(3).unwrap()).unwrap();
    assert_eq!(
        parts(&scratch.path("out"), "part-{}.txt", "", 3).concat(),
        wanted
    );
    // A failure in the midst of it leaves what was there.
    let fails = |[line]: [Value<'_>; 1]| match line.bytes().starts_with(b"w9") {
        true => Err(Error::new(ErrorKind::Function, "asking", "no answer")),
        false => Ok(true),
    };
    let sorted = table.sort(&[("line", false)]).unwrap();
    let failing = sorted.filter(["line"], fails).unwrap();
    let failing = failing.write(scratch.path("out"), CSV).unwrap();
    if lines.iter().any(|line| line.starts_with("w9")) {
        let error = run(&failing.in_files(3).unwrap()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Function, "{error}");
    }
    std::fs::write(scratch.path("out/mine"), "").unwrap();
    refused(
        &pipeline().in_files(3).unwrap(),
        "\"mine\", which is no part",
    );
    std::fs::remove_file(scratch.path("out/mine")).unwrap();
    assert_eq!(
        parts(&scratch.path("out"), "part-{}.txt", "", 3).concat(),
        wanted
    );
    assert_eq!(scratch.names(), ["in", "out"]);

    // Nothing tells of such parts whether they are in order.
    let host = Host::new(RingKind::Posix, false).unwrap();
    let checked =
        sortmill::check::check_parts(&scratch.path("out"), None, None, &host, &Stop::new());
    assert!(
        checked
            .err()
            .unwrap()
            .to_string()
            .contains("in no order that they tell")
    );
    for count in [0, 100_001] {
        let error = pipeline().in_files(count).err().unwrap();
        assert!(error.to_string().contains("1 to 100000 files"), "{error}");
    }
}
