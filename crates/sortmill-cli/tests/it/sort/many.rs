//! Thousands of inputs, partitions and parts, with as few descriptors as 64.

use std::path::Path;
use std::process::{Command, Output};

use sortmill::io::codec::{CODECS, Codec};

use super::packed::{packed, unpacked};
use super::{finish, run_badly, run_well, sort, sorted, stderr, text, words};
use crate::{PROGRAM, Scratch};

/// So many descriptors, for a shell and what it runs.
const DESCRIPTORS: &str = "64";

/// `sortmill` with these words in a shell that may open few files. `$IN` are all files of the folder `in`, in order.
fn with_few(scratch: &Scratch, line: &str) -> Output {
    let words = words(scratch, line).join(" ");
    let folder = scratch.path("in").display().to_string();
    let script = format!("ulimit -n {DESCRIPTORS}; IN=$(echo {folder}/*); exec {PROGRAM} {words}");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).env_remove("TMPDIR");
    let output = finish(super::caught(command).spawn().unwrap());
    assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
    output
}

/// `count` files of a few lines, and all of them together.
fn many_files(scratch: &Scratch, count: usize) -> Vec<u8> {
    std::fs::create_dir(scratch.path("in")).unwrap();
    let mut all = Vec::new();
    for number in 0..count {
        let lines = text(300 + number % 700, number as u64);
        std::fs::write(scratch.path("in").join(format!("{number:05}")), &lines).unwrap();
        all.extend(lines);
    }
    all
}

#[test]
fn thousands_of_inputs_and_parts_with_64_descriptors() {
    let scratch = Scratch::new("sort-many");
    let all = many_files(&scratch, 3000);
    for temp in ["one", "two", "three"] {
        std::fs::create_dir(scratch.path(temp)).unwrap();
    }
    let wanted = sorted(&all);
    let temps = "-T {}one -T {}two -T {}three";
    for io in ["auto", "posix"] {
        with_few(
            &scratch,
            &format!("sort --io {io} --verify -o {{}}out {temps} $IN"),
        );
        assert!(
            std::fs::read(scratch.path("out")).unwrap() == wanted,
            "{io}"
        );
        // Standard output, and in place of one of the inputs.
        let output = with_few(&scratch, &format!("sort --io {io} {temps} $IN"));
        assert!(output.stdout == wanted, "{io}");
        // Where nobody asks how it went, as under the name `sort`.
        let output = with_few(&scratch, &format!("sort -q --io {io} {temps} $IN"));
        assert!(output.stdout == wanted, "{io}");
        let flags = "--part-count 2000 --overwrite --verify --parts {}parts";
        with_few(&scratch, &format!("sort --io {io} {flags} {temps} $IN"));
        assert!(parts(&scratch.path("parts"), 2000) == wanted, "{io}");
    }
    with_few(&scratch, "check {}out");
    with_few(&scratch, "check --parts {}parts");
    with_few(&scratch, "sort --on local:2 -o {}out $IN");
    assert!(std::fs::read(scratch.path("out")).unwrap() == wanted);
}

/// All parts, one after the other.
fn parts(folder: &Path, count: usize) -> Vec<u8> {
    let manifest = std::fs::read(folder.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let parts = manifest["parts"].as_array().unwrap();
    assert_eq!(parts.len(), count);
    let read = |part: &serde_json::Value| {
        std::fs::read(folder.join(part["name"].as_str().unwrap())).unwrap()
    };
    parts.iter().flat_map(read).collect()
}

/// More data than memory in many inputs, so that all of spilling, partitions by the hundred and many readers meet.
#[test]
fn many_inputs_that_spill_with_64_descriptors() {
    let scratch = Scratch::new("sort-many-spill");
    std::fs::create_dir(scratch.path("in")).unwrap();
    let mut all = Vec::new();
    for number in 0..200 {
        let lines = text(500_000, number);
        std::fs::write(scratch.path("in").join(format!("{number:05}")), &lines).unwrap();
        all.extend(lines);
    }
    let line = "sort -S 40MiB --threads 1 --part-count 300 -T {} --temp-apart --report {}report --parts {}parts $IN";
    with_few(&scratch, line);
    assert!(parts(&scratch.path("parts"), 300) == sorted(&all));
    let report = std::fs::read(scratch.path("report")).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    assert!(report["bytes"]["temp_written"].as_u64().unwrap() > 0);
}

/// Few lines in many files: the short way to standard output; and merges, at once and by way of runs.
#[test]
fn small_jobs_and_merges_with_64_descriptors() {
    let scratch = Scratch::new("sort-many-small");
    let all = many_files(&scratch, 1000);
    let wanted = sorted(&all);
    assert!(with_few(&scratch, "sort -q $IN").stdout == wanted);
    for number in 0..1000 {
        let path = scratch.path("in").join(format!("{number:05}"));
        std::fs::write(&path, sorted(&std::fs::read(&path).unwrap())).unwrap();
    }
    for command in ["merge", "sort -m"] {
        for flags in [
            "-q",
            "--io posix",
            "--memory 64MiB",
            "--io posix --memory 26MiB -T {}",
        ] {
            let output = with_few(&scratch, &format!("{command} {flags} $IN"));
            assert!(output.stdout == wanted, "{command} {flags}");
            with_few(&scratch, &format!("{command} {flags} -o {{}}out $IN"));
            assert!(
                std::fs::read(scratch.path("out")).unwrap() == wanted,
                "{command} {flags}"
            );
        }
    }
}

/// Compressed files have a descriptor only while they are read, as others do.
#[test]
fn hundreds_of_compressed_inputs_with_64_descriptors() {
    let scratch = Scratch::new("sort-many-packed");
    std::fs::create_dir(scratch.path("in")).unwrap();
    let mut all = Vec::new();
    for number in 0..400 {
        let lines = text(3000 + number, number as u64);
        let codec = CODECS[number % CODECS.len()];
        let bytes = packed(codec, &lines, 1000);
        std::fs::write(scratch.path("in").join(format!("{number:05}")), bytes).unwrap();
        all.extend(lines);
    }
    for io in ["auto", "posix"] {
        let output = with_few(&scratch, &format!("sort --io {io} --threads 4 -q $IN"));
        assert!(output.stdout == sorted(&all), "{io}");
        let line = "sort --threads 4 --verify -o {}out.zst $IN";
        with_few(&scratch, &format!("{line} --io {io}"));
        let output = std::fs::read(scratch.path("out.zst")).unwrap();
        assert!(unpacked(Codec::Zstd, &output) == sorted(&all), "{io}");
        with_few(&scratch, "check {}out.zst");
    }
}

/// Files that follow each other in order, far more than are kept open: one pass, and few descriptors.
#[test]
fn many_files_that_are_in_order() {
    let scratch = Scratch::new("sort-many-order");
    std::fs::create_dir(scratch.path("in")).unwrap();
    let mut all = Vec::new();
    for number in 0..400u32 {
        let records = (0..2000u32).flat_map(|record| {
            let mut bytes = [0; 100];
            bytes[..4].copy_from_slice(&(number * 2000 + record).to_be_bytes());
            bytes
        });
        let records: Vec<u8> = records.collect();
        std::fs::write(scratch.path("in").join(format!("{number:05}")), &records).unwrap();
        all.extend(records);
    }
    let flags = "--format fixed:100 --key 0:4 -S 48MiB --threads 1";
    with_few(
        &scratch,
        &format!("sort {flags} --report {{}}report -o {{}}out $IN"),
    );
    assert!(std::fs::read(scratch.path("out")).unwrap() == all);
}

/// An input that is another one by the time it is read is noticed, whether it was kept open or not.
#[test]
fn an_input_that_is_replaced_meanwhile() {
    let scratch = Scratch::new("sort-many-replaced");
    many_files(&scratch, 100);
    let pipe = scratch.path("pipe");
    super::make_fifo(&pipe);
    // The pipe is the first input, so that the files behind it wait until it ends.
    let line = "-o {}out {}pipe";
    let mut command = sort(words(&scratch, line));
    command.args((0..100).map(|number| scratch.path("in").join(format!("{number:05}"))));
    let child = command.spawn().unwrap();
    // By then all inputs have been looked at.
    super::until("the job's beginning", || {
        super::names_with(&scratch.path, ".out.sortmill-").pop()
    });
    let other = scratch.path("other");
    let old = scratch.path("in").join("00050");
    std::fs::write(&other, std::fs::read(&old).unwrap()).unwrap();
    std::fs::rename(&other, &old).unwrap();
    std::fs::write(&pipe, b"one\n").unwrap();
    let output = finish(child);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("00050") && said.contains("another file"),
        "{said}"
    );
    assert!(!scratch.path("out").exists());
}

/// What is not enough says what is.
#[test]
fn too_few_descriptors_are_an_error_with_a_way_out() {
    let scratch = Scratch::new("sort-many-few");
    std::fs::write(scratch.path("in"), text(1000, 1)).unwrap();
    let line = words(&scratch, "-o {}out {}in").join(" ");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n 5; exec {PROGRAM} sort {line}")]);
    run_badly(super::caught(command), &["ulimit -n"]);
    run_well(sort(words(&scratch, "-o {}out {}in")));
}
