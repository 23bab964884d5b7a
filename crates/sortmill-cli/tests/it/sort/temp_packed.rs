//! `sort --compress-temp`: what it takes, what it says, and that nothing else depends on it.

use std::os::unix::fs::symlink;
use std::process::{Command, Output};

use serde_json::Value;
use sortmill::io::codec::Codec;

use super::packed::{packed, unpacked};
use super::{LITTLE, caught, run_badly, run_on_pipe, run_well, sort, sorted, stderr, text, words};
use crate::{PROGRAM, Scratch};

/// A scratch folder with `in`, more of it than `LITTLE` memory holds.
fn scratch(name: &str) -> (Scratch, Vec<u8>) {
    let scratch = Scratch::new(&format!("temp-packed-{name}"));
    let input = text(45_000_000, 71);
    std::fs::write(scratch.path("in"), &input).unwrap();
    (scratch, input)
}

fn report(scratch: &Scratch) -> Value {
    let report = std::fs::read(scratch.path("report")).unwrap();
    serde_json::from_slice(&report).unwrap()
}

/// How many of a hundred blocks were compressed.
fn percent(report: &Value) -> u64 {
    let of = |name: &str| report["temp_packed"][name].as_u64().unwrap();
    let written = report["bytes"]["temp_written"].as_u64().unwrap();
    assert_eq!(of("stored_bytes"), written, "{report}");
    assert!(of("stored_bytes") <= of("plain_bytes"), "{report}");
    100 * of("packed_blocks") / of("blocks")
}

#[test]
fn each_way_comes_out_the_same_and_says_what_it_did() {
    let (scratch, input) = scratch("ways");
    let wanted = sorted(&input);
    for folder in ["one", "two"] {
        std::fs::create_dir(scratch.path(folder)).unwrap();
    }
    for (how, flags) in [
        ("none", "-T {}"),
        ("auto", "-T {}"),
        ("lz4", "-T {} --temp-apart --verify"),
        ("zstd", "-T {}one -T {}two --io posix"),
        ("zstd", "-T {} --no-direct"),
    ] {
        let line =
            format!("{LITTLE} {flags} --compress-temp {how} --report {{}}report -o {{}}out {{}}in");
        let said = stderr(&run_well(sort(words(&scratch, &line))));
        assert!(
            std::fs::read(scratch.path("out")).unwrap() == wanted,
            "{line}"
        );
        let report = report(&scratch);
        match how {
            "none" => assert!(report["temp_packed"].is_null() && !said.contains("temporary data:")),
            "auto" => assert!(percent(&report) <= 100, "{said}"),
            codec => {
                assert!(percent(&report) >= 90, "{said}");
                assert!(said.contains(&format!("compressed by {codec}; ")), "{said}");
            }
        }
        assert_eq!(super::names_with(&scratch.path, "sortmill-").len(), 0);
    }
    let line = format!("{LITTLE} -T {{}} --compress-temp zstd -o {{}}out {{}}in --dry-run");
    let plan = String::from_utf8(run_well(sort(words(&scratch, &line))).stdout).unwrap();
    for words in [
        "compress temp    by zstd, 2 blocks at once; temporary space is foreseen as if nothing were",
        "at most so much",
        "compressing temporary data",
    ] {
        assert!(plan.contains(words), "{plan}");
    }
}

/// Pipes, compressed inputs and outputs, header lines, parts, several nodes.
#[test]
fn it_goes_with_what_else_there_is() {
    let (scratch, input) = scratch("others");
    let wanted = sorted(&input);
    let flags = "--memory 64MiB --threads 1 --compress-temp lz4 --report {}report -T {}";
    let output = run_on_pipe(sort(words(&scratch, flags)), &input);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(output.stdout == wanted);
    assert!(percent(&report(&scratch)) >= 90);

    let header = b"~ a header\n";
    let with_header = [header, &input[..]].concat();
    let stored = packed(Codec::Gzip, &with_header, 1 << 20);
    std::fs::write(scratch.path("in.gz"), stored).unwrap();
    let line = format!("{flags} --header 1 -o {{}}out.lz4 {{}}in.gz");
    run_well(sort(words(&scratch, &line)));
    let out = unpacked(Codec::Lz4, &std::fs::read(scratch.path("out.lz4")).unwrap());
    assert!(out == [header, &wanted[..]].concat());
    assert!(percent(&report(&scratch)) >= 90);

    let line = format!("{flags} --part-count 3 --parts {{}}parts {{}}in");
    run_well(sort(words(&scratch, &line)));
    let parts = (0..3).map(|number| scratch.path(&format!("parts/part-{number:05}")));
    let parts: Vec<u8> = parts
        .flat_map(|path| std::fs::read(path).unwrap())
        .collect();
    assert!(parts == wanted);
    assert!(percent(&report(&scratch)) >= 90);

    let line = "--on local:2 --memory 80MiB --threads 2 --compress-temp zstd --report {}report -T {} -o {}out {}in";
    run_well(sort(words(&scratch, line)));
    assert!(std::fs::read(scratch.path("out")).unwrap() == wanted);
    assert!(percent(&report(&scratch)) >= 90);
}

/// Runs `line` in bash, in the scratch folder, where `sort` is ours.
fn as_sort(scratch: &Scratch, line: &str) -> Output {
    let link = scratch.path("sort");
    if !link.exists() {
        symlink(PROGRAM, &link).unwrap();
    }
    let mut bash = Command::new("bash");
    bash.args(["-c", line]).current_dir(&scratch.path);
    bash.env("LC_ALL", "C").env_remove("TMPDIR");
    run_well(caught(bash))
}

/// GNU's option names a program: those of our codecs mean our codecs.
#[test]
fn programs_that_gnu_sort_would_run() {
    let (scratch, input) = scratch("programs");
    let wanted = sorted(&input);
    for (program, codec) in [
        ("lz4", "lz4"),
        ("/usr/bin/zstd", "zstd"),
        // Its own is slower than disks are, and nobody reads these data but us.
        ("gzip", "zstd"),
        ("/nowhere/gzip", "zstd"),
    ] {
        let line = format!(
            "./sort -S 40M --parallel 1 -T . --compress-program={program} --report report -o out in"
        );
        let said = stderr(&as_sort(&scratch, &line));
        assert!(
            std::fs::read(scratch.path("out")).unwrap() == wanted,
            "{line}"
        );
        let report = report(&scratch);
        assert_eq!(report["temp_packed"]["how"], codec);
        assert!(percent(&report) >= 90);
        assert_eq!(said, "", "{line}");
    }
    // What is asked in our words comes first.
    let line =
        "./sort -S 40M -T . --compress-program=zstd --compress-temp none --report report -o out in";
    as_sort(&scratch, line);
    assert!(report(&scratch)["temp_packed"].is_null());
    // A merge takes the program's name as ever.
    as_sort(
        &scratch,
        "./sort -m --compress-program=zstd out out | cmp - <(cat out out | ./sort)",
    );
}

#[test]
fn what_it_refuses() {
    let scratch = Scratch::new("temp-packed-refused");
    std::fs::write(scratch.path("in"), b"b\na\n").unwrap();
    for (line, wanted) in [
        ("--compress-temp gzip {}in", "by lz4 or zstd, auto or none"),
        ("--compress-temp", "wants a value"),
        (
            "-c --compress-temp lz4 {}in",
            "--compress-temp means nothing beside it",
        ),
        (
            "-m --compress-temp lz4 {}in",
            "runs are written as they are",
        ),
        ("--compress-t lz4 {}in", "there is no option --compress-t"),
    ] {
        run_badly(sort(words(&scratch, line)), &[wanted]);
    }
    let mut merge = Command::new(PROGRAM);
    merge
        .arg("merge")
        .args(words(&scratch, "--compress-temp zstd {}in"));
    run_badly(caught(merge), &["runs are written as they are"]);
}
