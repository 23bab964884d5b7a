//! `sortmill check`: the result on standard output, the exit status, and words about trouble.

use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use sortmill::gen_records::{Alphabet, Records};

use crate::{PROGRAM, Scratch};

const BENCHMARK: &str = "--format fixed:100 --key 0:10";

/// Runs `check` with `flags` in the folder `scratch` and `stdin`.
fn check(scratch: &Scratch, flags: &str, stdin: &[u8]) -> Output {
    let mut child = Command::new(PROGRAM)
        .current_dir(scratch.path(""))
        .arg("check")
        .args(flags.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = child.stdin.take().unwrap();
    // One that does not read it closes it.
    let _ = to.write_all(stdin);
    drop(to);
    child.wait_with_output().unwrap()
}

/// Checks the exit status, the whole of standard output, and what standard error holds.
fn expect(output: &Output, status: i32, stdout: &str, stderr: &str) {
    let words = str::from_utf8(&output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(status), "{words}");
    assert_eq!(str::from_utf8(&output.stdout).unwrap(), stdout);
    match stderr {
        "" => assert_eq!(words, ""),
        part => assert!(words.contains(part), "{words}"),
    }
}

/// The benchmark's first 1000 records, in order.
fn sorted() -> Vec<u8> {
    let records = Records {
        alphabet: Alphabet::Binary,
        skew: false,
    };
    let mut bytes = vec![0; 100_000];
    records.fill(0, &mut bytes);
    let mut rows: Vec<&[u8]> = bytes.chunks(100).collect();
    rows.sort_unstable();
    rows.concat()
}

const SUMS: &str = "records: 1000\nchecksum: 1ea6370b955\nduplicate keys: 0\n";

#[test]
fn in_order_is_0_and_out_of_order_is_1() {
    let scratch = Scratch::new("check-order");
    let good = sorted();
    fs::write(scratch.path("good"), &good).unwrap();
    let mut bad = good.clone();
    bad[50_000..50_200].rotate_left(100);
    fs::write(scratch.path("bad"), &bad).unwrap();

    let in_order = format!("{SUMS}in order\n");
    for io in ["", "--io posix", "--no-direct", "--threads 1"] {
        let good = check(&scratch, &format!("{BENCHMARK} {io} good"), b"");
        expect(&good, 0, &in_order, "");
        let bad = check(&scratch, &format!("{BENCHMARK} {io} bad"), b"");
        let place = "out of order: 1, the first is record 501, at byte 50100 of bad\n";
        expect(&bad, 1, &format!("{SUMS}{place}"), "");
    }
    let quiet = |flags: &str, status| {
        let output = check(&scratch, &format!("{BENCHMARK} -q {flags}"), b"");
        expect(&output, status, "", "");
    };
    quiet("good", 0);
    quiet("bad", 1);
}

#[test]
fn files_are_one_row_and_the_place_is_in_its_file() {
    let scratch = Scratch::new("check-files");
    fs::write(scratch.path("one"), "a\nb\n").unwrap();
    fs::write(scratch.path("empty"), "").unwrap();
    fs::write(scratch.path("two"), "b\nc\na").unwrap();
    let sums = |records, sum, duplicates, rest: &str| {
        format!("records: {records}\nchecksum: {sum:x}\nduplicate keys: {duplicates}\n{rest}")
    };
    // zlib.crc32 of a, b and c, each with its newline.
    let (a, b, c) = (0xddea_a107_u64, 0xf6c7_f2c4, 0xefdc_c385_u64);
    let output = check(&scratch, "one empty two", b"");
    let place = "out of order: 1, the first is record 4, at byte 4 of two\n";
    expect(&output, 1, &sums(5, 2 * a + 2 * b + c, 1, place), "");
    let output = check(&scratch, "one - empty", b"a\n");
    let place = "out of order: 1, the first is record 2, at byte 0 of standard input\n";
    expect(&output, 1, &sums(3, 2 * a + b, 0, place), "");
    let output = check(&scratch, "", b"a\nb\nc");
    expect(&output, 0, &sums(3, a + b + c, 0, "in order\n"), "");
}

#[test]
fn an_empty_input_is_in_order_but_makes_no_summary() {
    let scratch = Scratch::new("check-empty");
    let nothing = "records: 0\nchecksum: 0\nduplicate keys: 0\n";
    let output = check(&scratch, "", b"");
    expect(&output, 0, &format!("{nothing}in order\n"), "");
    let output = check(&scratch, &format!("{BENCHMARK} --summary out"), b"");
    expect(&output, 1, nothing, "there is no record");
    expect(
        &check(&scratch, "--merge", b""),
        1,
        nothing,
        "there is no record",
    );
    assert_eq!(scratch.names(), [""; 0]);
}

#[test]
fn summaries_are_written_and_merged() {
    let scratch = Scratch::new("check-summaries");
    let all = sorted();
    for (name, range) in [("a", 0..400), ("b", 400..401), ("c", 401..1000)] {
        fs::write(scratch.path(name), &all[range.start * 100..range.end * 100]).unwrap();
        let flags = format!("{BENCHMARK} -q {name} --summary {name}.sum");
        expect(&check(&scratch, &flags, b""), 0, "", "");
        assert_eq!(
            fs::read(scratch.path(name).with_extension("sum"))
                .unwrap()
                .len(),
            280
        );
    }
    let in_order = format!("{SUMS}in order\n");
    let output = check(&scratch, "--merge a.sum b.sum c.sum --summary all.sum", b"");
    expect(&output, 0, &in_order, "");
    let output = check(
        &scratch,
        &format!("{BENCHMARK} a b c --summary whole.sum"),
        b"",
    );
    expect(&output, 0, &in_order, "");
    let [all, whole] = ["all.sum", "whole.sum"].map(|name| fs::read(scratch.path(name)).unwrap());
    assert_eq!(all, whole);
    expect(&check(&scratch, "--merge", &all), 0, &in_order, "");

    let output = check(&scratch, "--merge a.sum c.sum b.sum", b"");
    let place = "out of order: 1, the first is record 999\n";
    expect(&output, 1, &format!("{SUMS}{place}"), "");
    let output = check(&scratch, "--merge a", b"");
    expect(&output, 2, "", "no summary");
}

#[test]
fn trouble_is_2_with_words() {
    let scratch = Scratch::new("check-trouble");
    fs::write(scratch.path("in"), [b'x'; 250]).unwrap();
    fs::create_dir(scratch.path("folder")).unwrap();
    for (flags, words) in [
        ("missing", "missing: opening the input: No such file"),
        ("folder", "folder: opening the input: it is a directory"),
        (
            "--format fixed:100 in",
            "in: at byte 200: reading the input: the last record is cut off",
        ),
        ("--format fixed:100 --key 95:10 in", "ends at byte 105"),
        ("--key 0:10 in", "a key of bytes needs --format fixed:SIZE"),
        ("--summary out in", "Give --format fixed:100 --key 0:10"),
        (
            "--format fixed:100 --key 0:10:r --summary out in",
            "Give --format",
        ),
        (
            "--format fixed:100 --key 0:10 --summary in in",
            "would replace a file that is read",
        ),
        (
            "--format fixed:100 --key 0:10 --summary - in",
            "Name a file",
        ),
        (
            "--format fixed:100 --key 0:10 --summary folder in",
            "it is a folder",
        ),
        ("--merge --key 0:10 in", "cannot be used with"),
        ("--merge in", "250 of 280"),
        ("--threads 0 in", "invalid value"),
    ] {
        let output = check(&scratch, flags, b"");
        expect(&output, 2, "", words);
    }
    // Standard input that is a file is read, too: the summary took its place once.
    fs::write(scratch.path("hundreds"), sorted()).unwrap();
    for flags in [
        "--format fixed:100 --key 0:10 --summary hundreds",
        "--format fixed:100 --key 0:10 --summary hundreds -",
    ] {
        let mut command = Command::new(PROGRAM);
        command.current_dir(scratch.path("")).arg("check");
        command.args(flags.split_whitespace());
        command.stdin(fs::File::open(scratch.path("hundreds")).unwrap());
        let words = "would replace a file that is read";
        expect(&command.output().unwrap(), 2, "", words);
    }
    assert_eq!(fs::read(scratch.path("hundreds")).unwrap(), sorted());
    for flags in [
        "--parts folder --header 1",
        "--parts folder --no-decompress",
        "--merge --delimiter ; in",
        "--merge --progress json in",
    ] {
        expect(&check(&scratch, flags, b""), 2, "", "cannot be used with");
    }
    assert_eq!(scratch.names(), ["folder", "hundreds", "in"]);
    assert_eq!(fs::read(scratch.path("in")).unwrap(), [b'x'; 250]);
}

/// What sorting makes is in order, and its checksum is that of what went in.
#[test]
fn sorting_passes_its_own_check() {
    let scratch = Scratch::new("check-sort");
    let program = |line: &str| {
        let mut command = Command::new(PROGRAM);
        command.current_dir(scratch.path("")).args(line.split(' '));
        command.output().unwrap()
    };
    assert!(program("gen records 100000 in --skew").status.success());
    let sorted = program("sort -q --format fixed:100 --key 0:10 --verify -o out in");
    assert!(sorted.status.success(), "{sorted:?}");
    let output = check(&scratch, &format!("{BENCHMARK} out"), b"");
    let result = str::from_utf8(&output.stdout).unwrap();
    assert!(result.contains("checksum: c3480c053dda\n"), "{result}");
    assert!(result.ends_with("in order\n"), "{result}");
}
