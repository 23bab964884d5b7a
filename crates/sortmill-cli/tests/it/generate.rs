//! `sortmill gen`: the records of the benchmark, then all other kinds.

mod clicks;
mod graphs;
mod json;
mod keys;
mod lines;
mod pairs;

use std::io::Read;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output, Stdio};

use sortmill::gen_records::{Alphabet, Records};

use crate::readers::SIGPIPE;
use crate::{PROGRAM, Scratch};

const BINARY: Records = Records {
    alphabet: Alphabet::Binary,
    skew: false,
};

fn bytes(records: Records, start: u128, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count * 100];
    records.fill(start, &mut bytes);
    bytes
}

fn program(line: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("gen").args(line.split(' '));
    command
}

/// What a command writes to standard output.
fn output(line: &str) -> Vec<u8> {
    let output = program(line).output().unwrap();
    assert!(output.status.success(), "{line}: {}", words(&output));
    output.stdout
}

/// A command that ends with 2 and says why.
fn refused(line: &str, expected: &str) {
    let output = program(line).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{line}");
    assert!(
        words(&output).contains(expected),
        "{line}: {}",
        words(&output)
    );
    assert!(output.stdout.is_empty(), "{line}");
}

fn words(output: &Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}

#[test]
fn standard_output_is_the_records_and_standard_error_the_words() {
    for io in ["uring", "posix"] {
        let output = program(&format!("records 100_000 - --checksum --io {io}"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", words(&output));
        assert!(output.stdout == bytes(BINARY, 0, 100_000));
        assert_eq!(words(&output), "c3068574c6ff\n");
    }
    let output = program("records 10 - -v").output().unwrap();
    assert!(
        words(&output).starts_with("10 records, 1000 B in "),
        "{}",
        words(&output)
    );
    assert_eq!(words(&program("records 10 -").output().unwrap()), "");
}

#[test]
fn standard_output_may_be_a_file() {
    let scratch = Scratch::new("redirected");
    let file = std::fs::File::create(scratch.path("out")).unwrap();
    assert!(
        program("records 100000 -")
            .stdout(file)
            .status()
            .unwrap()
            .success()
    );
    assert!(std::fs::read(scratch.path("out")).unwrap() == bytes(BINARY, 0, 100_000));
}

#[test]
fn a_reader_that_leaves_ends_it() {
    let mut child = program("records 1_000_000_000 - --threads 8")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut beginning = vec![0; 5_000_000];
    child
        .stdout
        .take()
        .unwrap()
        .read_exact(&mut beginning)
        .unwrap();
    assert!(beginning == bytes(BINARY, 0, 50_000));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(SIGPIPE));
    assert_eq!(words(&output), "");
}

#[test]
fn flags_stand_anywhere() {
    let expected = output("numbers --seed 2 --threads 3 500 -");
    for line in [
        "numbers 500 --seed 2 --threads 3 -",
        "numbers 500 - --seed 2 --threads=3",
        "numbers --seed 2 500 --threads 3 -",
        "numbers --seed=2 500 -v -",
    ] {
        assert!(output(line) == expected, "{line}");
    }
    let bytes = expected.len();
    assert!(output(&format!("numbers --seed 2 - --bytes {bytes}")) == expected);
}

const KINDS: [&str; 24] = [
    "records",
    "zipf",
    "distinct",
    "two",
    "one",
    "hot",
    "sorted",
    "reversed",
    "organ-pipe",
    "blocks",
    "sorted-but-last",
    "drift",
    "prefix",
    "last-byte",
    "sample-killer",
    "pareto --largest 1MB",
    "empty",
    "text",
    "numbers",
    "csv",
    "json",
    "clicks --rate 3",
    "graph",
    "graph --kind power-law --format fixed",
];

/// More than one buffer of each kind, of which some records lie across two.
#[test]
fn the_same_flags_give_the_same_bytes() {
    let scratch = Scratch::new("gen-same");
    for kind in KINDS {
        let whole = output(&format!("{kind} --bytes 5MB - --threads 1"));
        assert!((4_000_000..=5_000_000).contains(&whole.len()), "{kind}");
        assert!(
            output(&format!("{kind} --bytes 5MB - --threads 5")) == whole,
            "{kind}"
        );

        let made = program(&format!("{kind} --bytes 5MB --files 3 --threads 2"))
            .arg(scratch.path("set"))
            .output()
            .unwrap();
        assert!(made.status.success(), "{kind}: {}", words(&made));
        let parts = ["part-00000", "part-00001", "part-00002"]
            .map(|name| std::fs::read(scratch.path("set").join(name)).unwrap());
        assert!(parts.iter().all(|part| part.len() > 100_000), "{kind}");
        assert!(parts.concat() == whole, "{kind}");
        std::fs::remove_dir_all(scratch.path("set")).unwrap();

        if kind != "records" {
            let other = output(&format!("{kind} --bytes 5MB - --seed 2"));
            assert!(other != whole, "{kind}");
        }
    }
}

/// As many records as there is room for: one more would be too many.
#[test]
fn bytes_are_used_up() {
    for kind in ["text", "numbers", "empty", "two", "csv", "json", "clicks"] {
        for bytes in [0, 7, 100, 6_789, 100_000] {
            let fitting = program(&format!("{kind} --bytes {bytes} - -v"))
                .output()
                .unwrap();
            let count = words(&fitting).split(' ').next().unwrap();
            let Ok(count) = count.parse::<u64>() else {
                panic!("{}", words(&fitting))
            };
            assert!(fitting.stdout.len() <= bytes, "{kind} {bytes}");
            // The header of csv is a record there, and not counted here.
            let more = if kind == "csv" { count } else { count + 1 };
            let longer = output(&format!("{kind} {more} -"));
            assert!(longer.len() > bytes, "{kind} {bytes}: {count}");
            assert!(longer.starts_with(&fitting.stdout), "{kind} {bytes}");
        }
    }
}

#[test]
fn what_no_disk_holds_is_refused_at_once() {
    let scratch = Scratch::new("gen-space");
    for kind in ["sorted", "text"] {
        let output = program(&format!("{kind} --bytes 4EiB"))
            .arg(scratch.path("out"))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{kind}");
        assert!(
            words(&output).contains("are needed"),
            "{kind}: {}",
            words(&output)
        );
    }
    assert!(scratch.names().is_empty());
}

#[test]
fn help_names_every_kind() {
    let help = String::from_utf8(output("--help")).unwrap();
    for kind in KINDS {
        let name = kind.split(' ').next().unwrap();
        assert!(
            help.lines().any(|line| line.trim_start().starts_with(name)),
            "{name}"
        );
        let own = String::from_utf8(output(&format!("{name} --help"))).unwrap();
        assert!(own.contains("[COUNT] <OUT>"), "{own}");
    }
}
