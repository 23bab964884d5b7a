//! Outputs in several files: the right records in each, whatever carries them there, and a manifest that is true.
//!
//! What is right is said by a stable sort in memory, cut as the documentation says and not as the engine does.

use std::path::{Path, PathBuf};

use serde_json::Value;
use sortmill::check::check_parts;
use sortmill::error::{Error, ErrorKind};
use sortmill::io::sim::Sim;
use sortmill::io::{Host, Os};
use sortmill::job::{Boundaries, Input, Job, Output, Tuning};
use sortmill::order::{Format, KeyPart};
use sortmill::parts::{PartCut, PartName, Parts};
use sortmill::queue::Stop;
use sortmill::report::Report;

use super::inputs::{ALL_LINES, Lines, Random, fixed, lines, seed};
use super::{Case, MACHINES, Machine, SMALL, oracle, sort_or_panic};
use crate::Scratch;

/// Little memory, but enough for the longest lines.
fn memory_bytes(shape: Lines) -> u64 {
    if shape == Lines::Long {
        6 << 20
    } else {
        1 << 20
    }
}

/// A case, and how its output is cut.
struct InParts {
    case: Case,
    cut: PartCut,
    boundaries: Boundaries,
    verify: bool,
}

/// The files of an output: manifest, then parts in its order.
struct Made {
    manifest: Value,
    parts: Vec<Vec<u8>>,
    report: Report,
}

impl InParts {
    fn new(case: Case, cut: PartCut) -> Self {
        Self {
            case,
            cut,
            boundaries: Boundaries::Sample,
            verify: false,
        }
    }

    fn job(&self, inputs: Vec<Input>, folder: PathBuf, temp: &Path) -> Job {
        let mut job = self.case.job(inputs, folder.clone(), vec![temp.to_owned()]);
        job.output = Output::Parts(Parts {
            folder,
            cut: self.cut,
            name: PartName::default(),
            overwrite: false,
        });
        job.boundaries = self.boundaries.clone();
        job.verify = Some(self.verify);
        job
    }

    fn try_run(&self, machine: Machine) -> Result<Made, Error> {
        let made = match machine.host() {
            None => self.run_on_sim(),
            Some(host) => self.run_on_host(host),
        }?;
        // A manifest names every file, and parts are called by their numbers.
        for (number, part) in made.manifest["parts"]
            .as_array()
            .unwrap()
            .iter()
            .enumerate()
        {
            assert_eq!(part["name"], format!("part-{number:05}"));
        }
        Ok(made)
    }

    fn run_on_sim(&self) -> Result<Made, Error> {
        let sim = Sim::new(self.case.memory_bytes + self.case.threads as u64);
        sim.put_dir("/temp");
        let mut named = Vec::new();
        for (number, bytes) in self.case.inputs.iter().enumerate() {
            if self.case.stream == Some(number) {
                sim.put_stdin(bytes);
                named.push(Input::Stdin);
            } else {
                sim.put(format!("/in{number}"), bytes);
                named.push(Input::Path(format!("/in{number}").into()));
            }
        }
        if let Boundaries::Manifest(path) = &self.boundaries {
            sim.put("/boundaries", &std::fs::read(path).unwrap());
        }
        let mut job = self.job(named, "/out".into(), Path::new("/temp"));
        if let Boundaries::Manifest(path) = &mut job.boundaries {
            *path = "/boundaries".into();
        }
        let before = sim.names();
        let result = sort_or_panic(job, sim.clone());
        let mut left = sim.names();
        left.retain(|name| !before.contains(name) && !name.starts_with("/out"));
        assert_eq!(left, Vec::<PathBuf>::new(), "left behind");
        let report = result?;
        let files = |name: &str| sim.get(Path::new("/out").join(name));
        let within = |name: &&PathBuf| name.parent() == Some(Path::new("/out"));
        let count = sim.names().iter().filter(within).count();
        checked(&sim, Path::new("/out"));
        Ok(Made::new(files, count, report))
    }

    fn run_on_host(&self, host: Host) -> Result<Made, Error> {
        let scratch = Scratch::new(&format!("parts-{}-{}", std::process::id(), host.random()));
        std::fs::create_dir(scratch.path("temp")).unwrap();
        let mut named = Vec::new();
        for (number, bytes) in self.case.inputs.iter().enumerate() {
            let path = scratch.path(&format!("in{number}"));
            if self.case.stream == Some(number) {
                super::make_fifo(&path, bytes.clone());
            } else {
                std::fs::write(&path, bytes).unwrap();
            }
            named.push(Input::Path(path));
        }
        let folder = scratch.path("out");
        let job = self.job(named, folder.clone(), &scratch.path("temp"));
        let report = sort_or_panic(job, host)?;
        let mut left = scratch.names();
        left.retain(|name| !name.starts_with("in") && name != "out" && name != "temp");
        left.extend(names(&scratch.path("temp")));
        assert_eq!(left, Vec::<String>::new(), "left behind");
        checked(
            &Host::new(sortmill::io::RingKind::Posix, true).unwrap(),
            &folder,
        );
        let files = |name: &str| std::fs::read(folder.join(name)).ok();
        Ok(Made::new(files, names(&folder).len(), report))
    }
}

/// Checks a folder as `sortmill check --parts` does.
fn checked(os: &dyn Os, folder: &Path) {
    let checked = check_parts(folder, Some(2), None, os, &Stop::new()).unwrap();
    assert_eq!(checked.faults, Vec::<String>::new());
    assert_eq!(checked.unordered, 0);
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

impl Made {
    fn new(file: impl Fn(&str) -> Option<Vec<u8>>, file_count: usize, report: Report) -> Self {
        let manifest = file("manifest.json").expect("a manifest");
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        let named = manifest["parts"].as_array().unwrap().iter();
        let parts: Vec<Vec<u8>> = named
            .map(|part| file(part["name"].as_str().unwrap()).expect("a part"))
            .collect();
        assert_eq!(file_count, parts.len() + 1, "the manifest and its parts");
        Self {
            manifest,
            parts,
            report,
        }
    }

    /// The parts are `wanted`, and the manifest tells the truth of each.
    fn check(&self, case: &Case, wanted: &[Vec<Vec<u8>>], what: &str) {
        let have: Vec<usize> = self.parts.iter().map(Vec::len).collect();
        let want: Vec<usize> = wanted.iter().map(|part| part.concat().len()).collect();
        assert_eq!(have, want, "{what}: bytes of parts");
        let mut records_sum = 0;
        for ((part, told), wanted) in self
            .parts
            .iter()
            .zip(self.manifest["parts"].as_array().unwrap())
            .zip(wanted)
        {
            super::compare(part, &wanted.concat(), what);
            assert_eq!(told["fingerprint"]["bytes"], part.len(), "{what}");
            assert_eq!(told["fingerprint"]["records"], wanted.len(), "{what}");
            for (key, record) in [("first_key", wanted.first()), ("last_key", wanted.last())] {
                let expected = record.map(|record| hex(&key_of(case, record)));
                assert_eq!(told[key].as_str(), expected.as_deref(), "{what}: {key}");
            }
            records_sum += wanted.len();
        }
        assert_eq!(self.manifest["whole"]["records"], records_sum, "{what}");
        let sizes = self.report.parts.expect("the report tells of parts");
        assert_eq!(sizes.count, wanted.len() as u64);
        assert_eq!(sizes.bytes_max, *want.iter().max().unwrap() as u64);
        assert_eq!(sizes.bytes_min, *want.iter().min().unwrap() as u64);
    }

    /// The key from which on records belong to a part.
    fn lower_keys(&self) -> Vec<Option<String>> {
        let parts = self.manifest["parts"].as_array().unwrap().iter();
        parts
            .map(|part| part["from_key"].as_str().map(str::to_owned))
            .collect()
    }
}

/// Plain keys only: a slice, or a line without its newline.
fn key_of<'a>(case: &Case, record: &'a [u8]) -> Vec<u8> {
    let key: &'a [u8] = match (case.format, &case.keys[..]) {
        (Format::Lines, _) => &record[..record.len() - 1],
        (_, []) => record,
        (_, keys) => {
            return keys
                .iter()
                .flat_map(|key| &record[key.offset as usize..][..key.bytes as usize])
                .copied()
                .take(256)
                .collect();
        }
    };
    key[..key.len().min(256)].to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `records` cut as the documentation says: a record that begins at byte b of B goes into part b * count / B.
fn cut_evenly(records: &[Vec<u8>], count: u64) -> Vec<Vec<Vec<u8>>> {
    let total: usize = records.iter().map(Vec::len).sum();
    let mut parts = vec![Vec::new(); count as usize];
    let mut at = 0;
    for record in records {
        parts[at * count as usize / total].push(record.clone());
        at += record.len();
    }
    parts
}

/// `records` cut at keys, given as hexadecimal text; no key, nothing beyond.
fn cut_by_keys(case: &Case, records: &[Vec<u8>], keys: &[Option<String>]) -> Vec<Vec<Vec<u8>>> {
    let mut parts = vec![Vec::new(); keys.len()];
    for record in records {
        let key = hex(&key_of(case, record));
        let below = keys[1..]
            .iter()
            .take_while(|from| from.as_ref().is_some_and(|from| *from <= key));
        parts[below.count()].push(record.clone());
    }
    parts
}

fn wanted(case: &Case) -> Vec<Vec<u8>> {
    oracle::sorted(case.format, &case.keys, &case.inputs)
}

#[test]
fn even_parts_of_every_shape() {
    let mut random = Random::new(seed("even_parts_of_every_shape"));
    let mut merged = 0;
    let mut divided = 0;
    for shape in ALL_LINES {
        let inputs = vec![
            lines(shape, &mut random, 700_000),
            lines(shape, &mut random, 90_000),
        ];
        let case = Case {
            threads: 1 + random.below(4),
            stream: (random.below(3) == 0).then_some(0),
            tuning: Tuning {
                partition_count: (random.below(2) == 0).then(|| 1 + random.below(40)),
                ..SMALL
            },
            memory_bytes: memory_bytes(shape),
            ..Case::lines(inputs)
        };
        let records = wanted(&case);
        let total: usize = records.iter().map(Vec::len).sum();
        for count in [1, 2, 7, 1 + random.below(300) as u64] {
            let what = format!("{shape:?} in {count}");
            let job = InParts::new(case.clone(), PartCut::Count(count));
            let made = job
                .try_run(Machine::Sim)
                .unwrap_or_else(|e| panic!("{what}: {e}"));
            made.check(&case, &cut_evenly(&records, count), &what);
            merged += made.report.partitions.merged;
            divided += made.report.partitions.divided;
        }
        let part_bytes = 1 + random.below(total) as u64 / 3;
        let count = (total as u64).div_ceil(part_bytes);
        if count < 2_000 {
            let what = format!("{shape:?} of {part_bytes}");
            let job = InParts::new(case.clone(), PartCut::Bytes(part_bytes));
            let made = job
                .try_run(Machine::Sim)
                .unwrap_or_else(|e| panic!("{what}: {e}"));
            made.check(&case, &cut_evenly(&records, count), &what);
        }
    }
    assert!(
        merged > 0 && divided > 0,
        "{merged} merged, {divided} divided"
    );
}

#[test]
fn even_parts_of_fixed_records() {
    let mut random = Random::new(seed("even_parts_of_fixed_records"));
    for _ in 0..20 {
        let size = 1 + random.below(300);
        let keys = [KeyPart::plain(0, 1 + random.below(size) as u32)];
        let record_count = random.below(900_000 / size);
        let input = fixed(size, &mut random, record_count);
        let case = Case {
            threads: 1 + random.below(4),
            stream: (random.below(3) == 0).then_some(0),
            ..Case::fixed(size as u32, &keys, vec![input])
        };
        let records = wanted(&case);
        let count = 1 + random.below(500) as u64;
        let what = format!("{record_count} records of {size} bytes, key {keys:?}, in {count}");
        let job = InParts::new(case.clone(), PartCut::Count(count));
        let made = job
            .try_run(Machine::Sim)
            .unwrap_or_else(|e| panic!("{what}: {e}"));
        made.check(&case, &cut_evenly(&records, count), &what);
    }
}

/// The same parts for any memory, threads, back end, and way in: promise 9.
#[test]
fn counted_parts_are_the_same_whatever_carries_them() {
    let mut random = Random::new(seed("counted_parts_are_the_same_whatever_carries_them"));
    let input = lines(Lines::Dominated, &mut random, 1_500_000);
    let base = Case::lines(vec![input]);
    let wanted = cut_evenly(&wanted(&base), 37);
    for machine in MACHINES {
        for (number, memory_bytes) in [1 << 20, 2 << 20, 16 << 20].into_iter().enumerate() {
            for threads in [1, 3] {
                let case = Case {
                    memory_bytes,
                    threads,
                    stream: (number % 2 == 0).then_some(0),
                    ..base.clone()
                };
                let what = format!("{memory_bytes} bytes, {threads} threads, {machine:?}");
                let mut job = InParts::new(case.clone(), PartCut::Count(37));
                job.verify = number == 1;
                let made = job
                    .try_run(machine)
                    .unwrap_or_else(|e| panic!("{what}: {e}"));
                made.check(&case, &wanted, &what);
                assert_eq!(made.report.verified, job.verify);
            }
        }
    }
}

/// A part for each partition: as many as there are, none empty, one after the other what one file would be.
#[test]
fn a_part_for_each_partition() {
    let mut random = Random::new(seed("a_part_for_each_partition"));
    for shape in ALL_LINES {
        let case = Case {
            tuning: Tuning {
                partition_count: Some(1 + random.below(30)),
                ..SMALL
            },
            memory_bytes: memory_bytes(shape),
            ..Case::lines(vec![lines(shape, &mut random, 600_000)])
        };
        let what = format!("{shape:?}");
        let job = InParts::new(case.clone(), PartCut::Partitions);
        let made = job
            .try_run(Machine::Sim)
            .unwrap_or_else(|e| panic!("{what}: {e}"));
        super::compare(&made.parts.concat(), &wanted(&case).concat(), &what);
        let sizes = made.report.partitions;
        assert!(made.parts.len() as u64 <= sizes.count, "{what}");
        assert!(made.parts.iter().all(|part| !part.is_empty()), "{what}");
        assert_eq!(
            made.parts.iter().map(Vec::len).max().unwrap() as u64,
            sizes.bytes_max
        );
    }
}

/// Lines of just half the memory, and somewhat less: each lies whole in one part, whatever that part was to hold.
#[test]
fn parts_with_lines_of_half_the_memory() {
    const MEMORY: usize = 2 << 20;
    let mut random = Random::new(seed("parts_with_lines_of_half_the_memory"));
    for (number, machine) in MACHINES.into_iter().enumerate() {
        let mut input = Vec::new();
        for bytes in [MEMORY / 2, MEMORY / 2 - 5000] {
            input.extend(lines(Lines::Uniform, &mut random, 1_000_000));
            let first = b'a' + random.below(26) as u8;
            input.extend([vec![b'\n', first], vec![b'.'; bytes - 2], vec![b'\n']].concat());
        }
        let case = Case {
            memory_bytes: MEMORY as u64,
            threads: 1 + random.below(3),
            stream: (number % 2 == 1).then_some(0),
            ..Case::lines(vec![input])
        };
        let records = wanted(&case);
        let total: usize = records.iter().map(Vec::len).sum();
        let cut = [
            PartCut::Count(9),
            PartCut::Bytes(100_000),
            PartCut::Partitions,
        ][number % 3];
        let what = format!("{cut:?} on {machine:?}");
        let mut job = InParts::new(case.clone(), cut);
        job.verify = number % 2 == 0;
        let made = job
            .try_run(machine)
            .unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(made.report.partitions.long_records >= 2, "{what}");
        match cut {
            PartCut::Partitions => {
                super::compare(&made.parts.concat(), &records.concat(), &what);
                let newlines = made.parts.iter().map(|part| part.last());
                assert!(newlines.into_iter().all(|last| last == Some(&b'\n')));
            }
            PartCut::Count(count) => made.check(&case, &cut_evenly(&records, count), &what),
            PartCut::Bytes(bytes) => {
                let count = (total as u64).div_ceil(bytes);
                made.check(&case, &cut_evenly(&records, count), &what);
            }
        }
    }
}

#[test]
fn nothing_makes_empty_parts() {
    for (format, inputs) in [
        (Format::Lines, vec![]),
        (Format::Lines, vec![Vec::new(), Vec::new()]),
        (Format::Fixed(10), vec![Vec::new()]),
    ] {
        for (cut, count) in [
            (PartCut::Partitions, 1),
            (PartCut::Bytes(1000), 1),
            (PartCut::Count(5), 5),
        ] {
            let case = Case::new(format, inputs.clone());
            let made = InParts::new(case, cut).try_run(Machine::Posix).unwrap();
            assert_eq!(made.parts, vec![Vec::<u8>::new(); count], "{cut:?}");
        }
    }
}

/// Keys of 64 bits that are spread evenly: N even stretches of the key space, whatever the data.
#[test]
fn uniform_parts_divide_the_key_space() {
    let mut random = Random::new(seed("uniform_parts_divide_the_key_space"));
    for record_count in [0, 3, 20_000] {
        let case = Case::fixed(
            20,
            &[KeyPart::plain(0, 8)],
            vec![random.bytes(20 * record_count)],
        );
        let count = 2 + random.below(60) as u64;
        let mut job = InParts::new(case.clone(), PartCut::Count(count));
        job.boundaries = Boundaries::Uniform;
        let made = job.try_run(Machine::Sim).unwrap();
        let mut parts = vec![Vec::new(); count as usize];
        for record in wanted(&case) {
            let key = u64::from_be_bytes(record[..8].try_into().unwrap());
            // Part i begins at i * 2^64 / count, rounded down.
            let part = (0..count)
                .rev()
                .find(|part| ((u128::from(*part) << 64) / u128::from(count)) as u64 <= key);
            parts[part.unwrap() as usize].push(record);
        }
        made.check(&case, &parts, &format!("{record_count} records in {count}"));
        assert_eq!(made.report.bytes.sample_read, 0);
    }
}

/// The boundaries of an earlier manifest cut other data at the same keys, also where they are more than there can
/// be partitions, and where keys are equal, missing, or of more bytes than a manifest keeps.
#[test]
fn boundaries_of_an_earlier_manifest() {
    let mut random = Random::new(seed("boundaries_of_an_earlier_manifest"));
    let scratch = Scratch::new("parts-boundaries");
    for shape in ALL_LINES {
        for count in [1, 3, 400] {
            let mut earlier = Case::lines(vec![lines(shape, &mut random, 300_000)]);
            earlier.memory_bytes = memory_bytes(shape);
            let made = InParts::new(earlier, PartCut::Count(count))
                .try_run(Machine::Sim)
                .unwrap();
            let file = scratch.path("manifest");
            std::fs::write(&file, made.manifest.to_string()).unwrap();
            let keys = made.lower_keys();
            for (number, shape) in [shape, ALL_LINES[random.below(ALL_LINES.len())]]
                .into_iter()
                .enumerate()
            {
                let what = format!("{shape:?} at {count}");
                let case = Case {
                    stream: (number == 1).then_some(0),
                    memory_bytes: memory_bytes(shape),
                    ..Case::lines(vec![lines(shape, &mut random, 400_000)])
                };
                let mut job = InParts::new(case.clone(), PartCut::Partitions);
                job.boundaries = Boundaries::Manifest(file.clone());
                let made = job
                    .try_run(Machine::Sim)
                    .unwrap_or_else(|e| panic!("{what}: {e}"));
                let records = wanted(&case);
                // Keys beyond what a manifest keeps are cut in `key_of` too, so they fall where the engine puts them
                // unless a boundary lies within the cut: then whole keys decide.
                let long = |key: &Option<String>| key.as_ref().is_some_and(|key| key.len() == 512);
                if keys.iter().any(long) {
                    super::compare(&made.parts.concat(), &records.concat(), &what);
                } else {
                    made.check(&case, &cut_by_keys(&case, &records, &keys), &what);
                }
                assert_eq!(made.lower_keys(), keys, "{what}: the same boundaries again");
            }
        }
    }
}

/// Boundaries change where the work is done, and never the bytes of one output file.
#[test]
fn boundaries_do_not_change_one_file() {
    let mut random = Random::new(seed("boundaries_do_not_change_one_file"));
    let scratch = Scratch::new("parts-one-file");
    for shape in ALL_LINES {
        let mut case = Case::lines(vec![lines(shape, &mut random, 500_000)]);
        case.memory_bytes = memory_bytes(shape);
        let made = InParts::new(case.clone(), PartCut::Count(50))
            .try_run(Machine::Sim)
            .unwrap();
        std::fs::write(scratch.path("manifest"), made.manifest.to_string()).unwrap();
        std::fs::write(scratch.path("in"), &case.inputs[0]).unwrap();
        let wanted = wanted(&case).concat();
        for boundaries in [
            Boundaries::Uniform,
            Boundaries::Manifest(scratch.path("manifest")),
        ] {
            let mut job = case.job(
                vec![Input::Path(scratch.path("in"))],
                scratch.path("out"),
                vec![scratch.path.clone()],
            );
            job.boundaries = boundaries;
            sort_or_panic(job, Machine::Posix.host().unwrap()).unwrap();
            let have = std::fs::read(scratch.path("out")).unwrap();
            super::compare(&have, &wanted, &format!("{shape:?}"));
        }
    }
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let case = Case::lines(vec![b"b\na\n".to_vec()]);
    let mut reduced = InParts::new(case.clone(), PartCut::Count(2));
    reduced.case.reduce = Some(std::sync::Arc::new(|| {
        Box::new(|record, out| {
            if let Some(record) = record {
                out.put(record);
            }
        })
    }));
    let mut uniform = InParts::new(case.clone(), PartCut::Bytes(100));
    uniform.boundaries = Boundaries::Uniform;
    for (job, wanted) in [
        (reduced, "a reduce function"),
        (uniform, "say how many"),
        (
            InParts::new(case.clone(), PartCut::Count(0)),
            "1 to 100000 parts, not 0",
        ),
        (
            InParts::new(case.clone(), PartCut::Count(100_001)),
            "not 100001",
        ),
        (InParts::new(case, PartCut::Bytes(0)), "at least one byte"),
    ] {
        let error = job.try_run(Machine::Posix).err().expect("it is refused");
        assert_eq!(error.kind, ErrorKind::Usage, "{error}");
        assert!(error.to_string().contains(wanted), "{error}");
    }
}

#[test]
fn names_have_one_number() {
    for (text, number, name) in [
        ("part-{:05}", 7, "part-00007"),
        ("{}", 0, "0"),
        ("a{:03}.bin", 12_345, "a12345.bin"),
        ("{:020}é", 3, "00000000000000000003é"),
    ] {
        let parsed: PartName = text.parse().unwrap();
        assert_eq!(parsed.to_string(), text);
        assert_eq!(parsed.of(number), name);
        assert_eq!(parsed.number(name), Some(number));
        for other in [
            "",
            "part",
            "part-",
            "part-7",
            "part-000007",
            "a012.bi",
            "+7",
            "a+12.bin",
        ] {
            assert_eq!(parsed.number(other), None, "{text} {other}");
        }
    }
    for text in [
        "", "part", "part-{", "part-}{", "{}{}", "{}-{:05}", "{:5}", "{:0}", "{:021}", "{x}",
        "a/{}", "{}/b", "{}\0", "{:0x}", "{:-05}", "{:+05}",
    ] {
        let error = text.parse::<PartName>().expect_err(text);
        assert!(!error.is_empty());
    }
    let long = "x".repeat(250);
    assert!(format!("{long}{{}}").parse::<PartName>().is_err());
}
