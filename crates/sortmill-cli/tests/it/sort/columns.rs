//! `--format csv|tsv|jsonl --by ...`, from the command line, held against Python's csv and json.

use std::fs;
use std::process::{Command, Output};

use sortmill::io::codec::Codec;

use super::packed::packed;
use super::{caught, run, run_badly, run_on_pipe, run_well, sort, stderr, words};
use crate::{PROGRAM, Scratch};

const MEMORY: &str = "--memory 64MiB --threads 2 -q";

fn check(scratch: &Scratch, line: &str) -> Output {
    let mut command = Command::new(PROGRAM);
    command.arg("check").args(words(scratch, line));
    run(caught(command))
}

/// What a Python program prints, given the files of the scratch folder `names`.
fn python(scratch: &Scratch, program: &str, names: &[&str]) -> Vec<u8> {
    let mut command = Command::new("python3");
    command.args(["-c", program]);
    command.args(names.iter().map(|name| scratch.path(name)));
    run_well(caught(command)).stdout
}

/// Two files of records with quotes, delimiters and line breaks within values, and some values empty.
fn write_csv(scratch: &Scratch) {
    let mut state = 7_u64;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 33) % bound
    };
    for name in ["one.csv", "two.csv"] {
        let mut text = String::from("id,\"the, name\",price\r\n");
        for _ in 0..4000 {
            let id = below(50);
            let price = match below(6) {
                0 => String::new(),
                1 => format!("{}e1", below(40)),
                _ => format!("-{}.{}", below(90), below(100)),
            };
            let what =
                ["plain", "\"a, b\"", "\"\"\"x\"\"\r\ny\"", "\"z\n\n\"", ""][below(5) as usize];
            text += &format!("{id},{what},{price}\r\n");
        }
        fs::write(scratch.path(name), text).unwrap();
    }
}

const SORT_CSV: &str = r#"
import csv, io, sys
rows = []
for path in sys.argv[1:]:
    with open(path, newline="") as file:
        header, *records = csv.reader(file)
        rows += records
rows.sort(key=lambda row: (row[1] != "", row[1].encode()))
rows.sort(key=lambda row: (row[2] != "", -float(row[2] or 0)))
for row in [header] + rows:
    sys.stdout.write(repr(row) + "\n")
"#;

const SHOW_CSV: &str = r#"
import csv, sys
with open(sys.argv[1], newline="") as file:
    for row in csv.reader(file):
        sys.stdout.write(repr(row) + "\n")
"#;

#[test]
fn csv_comes_out_as_python_sorts_it() {
    let scratch = Scratch::new("columns-csv");
    write_csv(&scratch);
    let wanted = python(&scratch, SORT_CSV, &["one.csv", "two.csv"]);
    let by = r"--format csv --by -price:num,the\,_name";
    for name in ["one.csv", "two.csv"] {
        let text = fs::read_to_string(scratch.path(name)).unwrap();
        // Words stand between blanks here.
        fs::write(scratch.path(name), text.replace("the, name", "the,_name")).unwrap();
        let gz = packed(Codec::Gzip, &fs::read(scratch.path(name)).unwrap(), 20_000);
        fs::write(scratch.path(&format!("{name}.gz")), gz).unwrap();
    }
    let wanted = String::from_utf8(wanted)
        .unwrap()
        .replace("the, name", "the,_name");
    for (flags, inputs) in [
        ("--verify -o {}out.csv", "{}one.csv {}two.csv"),
        ("-o {}out.csv", "{}one.csv.gz {}two.csv.gz"),
        ("-o {}out.csv --temp-apart", "{}one.csv - {}two.csv"),
    ] {
        let line = format!("{MEMORY} {by} {flags} {inputs}");
        run_on_pipe(sort(words(&scratch, &line)), b"");
        let have = python(&scratch, SHOW_CSV, &["out.csv"]);
        assert!(String::from_utf8(have).unwrap() == wanted, "{line}");
        let checked = check(&scratch, &format!("{by} {{}}out.csv"));
        assert_eq!(checked.status.code(), Some(0), "{}", stderr(&checked));
        let text = String::from_utf8(checked.stdout).unwrap();
        assert!(
            text.starts_with("records: 8000\n") && text.ends_with("in order\n"),
            "{text}"
        );
        fs::remove_file(scratch.path("out.csv")).unwrap();
    }
    // What is not in order is told, and `sort -c` says the same.
    let line = format!("{by} {{}}one.csv");
    assert_eq!(check(&scratch, &line).status.code(), Some(1));
    assert_eq!(
        run(sort(words(&scratch, &format!("-c {line}"))))
            .status
            .code(),
        Some(1)
    );

    // All at once through pipes, and both compressed: `sort -c` and `check` read pipes too.
    let one = fs::read(scratch.path("one.csv")).unwrap();
    let line = format!("{MEMORY} {by} {{}}one.csv");
    let wanted = run_well(sort(words(&scratch, &line))).stdout;
    for input in [
        one.clone(),
        packed(Codec::Zstd, &one, 5000),
        packed(Codec::Bzip2, &one, 900_000),
    ] {
        let output = run_on_pipe(sort(words(&scratch, &format!("{MEMORY} {by}"))), &input);
        assert!(output.stdout == wanted, "{}", stderr(&output));
    }
    let output = run_on_pipe(sort(words(&scratch, &format!("-c {by}"))), &wanted);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

/// Some programs put a byte order mark in front of what they write. It is no part of the first record, and is left out.
#[test]
fn jsonl_may_begin_with_a_byte_order_mark() {
    let scratch = Scratch::new("columns-jsonl-mark");
    let mark = "\u{feff}";
    let put = |name: &str, text: String| fs::write(scratch.path(name), text).unwrap();
    put("one", format!("{mark}{{\"a\":1}}\n{{\"a\":3}}\n"));
    put("two", format!("{mark}{{\"a\":2}}"));
    put("none", "{\"a\":4}\n".into());
    put("within", format!("{{\"a\":4}}\n{mark}{{\"a\":5}}\n"));
    let stored = packed(
        Codec::Gzip,
        &fs::read(scratch.path("one")).unwrap(),
        1 << 20,
    );
    fs::write(scratch.path("one.gz"), stored).unwrap();
    let wanted = "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\":4}\n";
    let by = "--format jsonl --by a:num -q";
    for files in ["{}two {}none {}one", "{}none {}one.gz {}two"] {
        for line in ["sort --verify", "merge", "sort -m"] {
            let line = format!("{line} {by} -o {{}}out {files}");
            let mut command = Command::new(PROGRAM);
            command.args(words(&scratch, &line));
            run_well(caught(command));
            let out = fs::read_to_string(scratch.path("out")).unwrap();
            assert_eq!(out, wanted, "{line}");
        }
    }
    let one = fs::read(scratch.path("one")).unwrap();
    let output = run_on_pipe(
        sort(words(&scratch, &format!("{by} - {{}}two {{}}none"))),
        &one,
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        wanted,
        "{}",
        stderr(&output)
    );
    let output = check(&scratch, "--format jsonl --by a:num {}one");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // Places are those of the file, mark and all; and within a file it is none.
    put("bad", format!("{mark}{{\"a\":1}}\n{{\"a\":x}}\n"));
    run_badly(
        sort(words(&scratch, &format!("{by} {{}}bad"))),
        &["byte 16", "this is no JSON"],
    );
    run_badly(
        sort(words(&scratch, &format!("{by} {{}}within"))),
        &["byte 8", "this is no JSON"],
    );
}

#[test]
fn jsonl_comes_out_as_python_sorts_it() {
    let scratch = Scratch::new("columns-jsonl");
    let mut text = String::new();
    for number in 0..6000_u64 {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let name = ["\"b\\u00e4\"", "\"\"", "\"a\\n\"", "null", "\"~\""][(mixed % 5) as usize];
        text += &format!(
            "{{\"in\": {{\"list\": [0, {name}]}}, \"n\": {}.5}}\n",
            mixed % 99
        );
    }
    fs::write(scratch.path("in.jsonl"), text).unwrap();
    let program = r#"
import json, sys
lines = open(sys.argv[1], newline="").readlines()
def name(line):
    value = json.loads(line)["in"]["list"][1]
    return (value is None, value or "")
lines.sort(key=lambda line: -json.loads(line)["n"])
lines.sort(key=name)
sys.stdout.write("".join(lines))
"#;
    let wanted = python(&scratch, program, &["in.jsonl"]);
    let by = "--format jsonl --by in.list.1,-n:num --nulls last";
    let output = run_well(sort(words(
        &scratch,
        &format!("{MEMORY} {by} {{}}in.jsonl"),
    )));
    assert!(output.stdout == wanted);
    // The first of equal keys; what is told adds up.
    let line = format!("{by} -u -o {{}}out {{}}in.jsonl");
    run_well(sort(words(&scratch, &line)));
    let mut seen = std::collections::HashSet::new();
    let unique: Vec<&[u8]> = wanted
        .split_inclusive(|&byte| byte == b'\n')
        .filter(|line| seen.insert(*line))
        .collect();
    assert!(unique.len() > 100);
    assert!(fs::read(scratch.path("out")).unwrap() == unique.concat());
}

#[test]
fn columns_go_by_numbers_where_there_is_no_header() {
    let scratch = Scratch::new("columns-numbers");
    fs::write(scratch.path("in"), "b\t10\nc\t9\na\t\"\nd\t").unwrap();
    let sorted = |flags: &str| {
        let line = format!("{MEMORY} --format tsv --no-header {flags} {{}}in");
        String::from_utf8(run_well(sort(words(&scratch, &line))).stdout).unwrap()
    };
    assert_eq!(sorted("--by 2"), "d\t\na\t\"\nb\t10\nc\t9\n");
    assert_eq!(sorted("--by=-2 --nulls last"), "c\t9\nb\t10\na\t\"\nd\t\n");
    assert_eq!(sorted("--by -1"), "d\t\nc\t9\nb\t10\na\t\"\n");
    let line = "--format csv --no-header --delimiter ; --quote ' --by 1 {}in";
    fs::write(scratch.path("in"), "'b;\n''';1\r\na;2").unwrap();
    let output = run_well(sort(words(&scratch, line)));
    assert_eq!(output.stdout, b"a;2\n'b;\n''';1\r\n");
    let parts = "--format csv --no-header --quote none --delimiter ; --by 2:num --part-count 2 --parts {}parts {}in";
    fs::write(scratch.path("in"), "a;2\n\";1\n").unwrap();
    run_well(sort(words(&scratch, parts)));
    assert_eq!(check(&scratch, "--parts {}parts").status.code(), Some(0));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let scratch = Scratch::new("columns-wrong");
    let csv = |text: &str| fs::write(scratch.path("in.csv"), text).unwrap();
    let line = "--format csv --by n:num -o {}out {}in.csv";
    for (text, wanted) in [
        (
            "n,t\n1,a\n2,b \"c\"\n",
            ["at byte 12", "line 3: a quote stands within a value"],
        ),
        (
            "n,t\n1,a\n2,\"b\nc\"d\n",
            ["at byte 14", "line 4: behind a closing quote"],
        ),
        (
            "n,t\n1,a\n2,\"b\n3,c\n",
            [
                "at byte 10",
                "line 3: the quote that opens here is never closed",
            ],
        ),
        (
            "n,t\n1,a\n\n2,b\n",
            ["at byte 8", "line 3: it has 1 column, and the header has 2"],
        ),
        (
            "n,t\n1,a\n2,b,c\n",
            [
                "at byte 8",
                "line 3: it has 3 columns, and the header has 2",
            ],
        ),
        (
            "n,t\n1,a\ntwo,b\n",
            ["at byte 8", "line 3: column 1 is no number: \"two\""],
        ),
        ("n,\"t\n1,a\n", ["at byte 2", "never closed"]),
        (
            "\u{feff}n,t\"\r\n1,a\r\n",
            ["at byte 6", "a quote stands within a value"],
        ),
        (
            "m,t\n1,a\n",
            ["in.csv", "there is no column \"n\": there are m, t"],
        ),
        ("n,n\n1,2\n", ["in.csv", "2 columns are called \"n\""]),
    ] {
        csv(text);
        run_badly(sort(words(&scratch, line)), &wanted);
        assert_eq!(scratch.names(), ["in.csv"]);
        let checked = check(&scratch, "--format csv --by n:num {}in.csv");
        assert_eq!(checked.status.code(), Some(2), "{text}");
        assert!(
            stderr(&checked).contains(wanted[1]),
            "{text}: {}",
            stderr(&checked)
        );
    }
    // Another header, which the byte order mark and the line's end do not make another one.
    csv("n,t\n2,b\n");
    fs::write(scratch.path("same.csv"), "\u{feff}n,t\r\n1,a\r\n").unwrap();
    fs::write(scratch.path("other.csv"), "t,n\n1,a\n").unwrap();
    let output = run_well(sort(words(
        &scratch,
        "-q --format csv --by n {}in.csv {}same.csv",
    )));
    assert_eq!(output.stdout, b"n,t\n1,a\r\n2,b\n");
    let line = "--format csv --by n -o {}out {}in.csv {}other.csv";
    run_badly(
        sort(words(&scratch, line)),
        &["other.csv", "its header is not that of the first input"],
    );
    let gz = packed(Codec::Gzip, b"n,t\n1,a\n2\n", 100);
    fs::write(scratch.path("in.csv.gz"), gz).unwrap();
    let line = "--format csv --by n {}in.csv.gz";
    run_badly(
        sort(words(&scratch, line)),
        &["in.csv.gz", "at byte 8", "in the decompressed bytes"],
    );
}

#[test]
fn what_makes_no_sense_is_refused() {
    let scratch = Scratch::new("columns-refused");
    fs::write(scratch.path("in"), "a,b\n1,2\n").unwrap();
    for (line, wanted) in [
        ("--format csv {}in", "Name the columns that decide"),
        ("--by a {}in", "--by is about --format csv, tsv and jsonl"),
        (
            "--format tsv --quote ' --by a {}in",
            "--quote is about --format csv",
        ),
        (
            "--format jsonl --no-header --by a {}in",
            "--no-header is about",
        ),
        ("--format csv --by a --delimiter ab {}in", "it is one byte"),
        (
            "--format csv --by a --delimiter \" {}in",
            "both part values and quote them",
        ),
        (
            "--format csv --by a:int {}in",
            "is no type: str and num are",
        ),
        ("--format csv --by a -k2 {}in", "-k is of other formats"),
        ("--format csv --by a -n {}in", "-n is about lines"),
        (
            "--format csv --by a -r {}in",
            "Of columns, --by says what decides",
        ),
        (
            "--format csv --by a --header 1 {}in",
            "the first record names the columns",
        ),
        (
            "--format csv --by a --skip-bad 1 {}in",
            "no record is left out",
        ),
        (
            "--format csv --by a --parts {}parts {}in",
            "keeping the header lines",
        ),
        (
            "--format csv --by a --on local:2 -o {}out {}in",
            "--on does not know of columns yet",
        ),
    ] {
        run_badly(sort(words(&scratch, line)), &[wanted]);
    }
    assert_eq!(scratch.names(), ["in"]);
    // Of nothing there is nothing to sort, whatever the columns are called.
    let empty = run_on_pipe(sort(words(&scratch, "-q --format csv --by x")), b"");
    assert_eq!(
        (empty.status.code(), &empty.stdout[..]),
        (Some(0), &b""[..])
    );
    // The plan knows; under the name of GNU's program it is the same.
    let line = "--dry-run --format csv --by a {}in";
    let plan = run_well(sort(words(&scratch, line))).stdout;
    assert!(
        String::from_utf8(plan)
            .unwrap()
            .contains("passes           1")
    );
    std::os::unix::fs::symlink(PROGRAM, scratch.path("sort")).unwrap();
    let mut called = Command::new(scratch.path("sort"));
    called.args(words(&scratch, "--format csv --by b {}in"));
    assert_eq!(run_well(caught(called)).stdout, b"a,b\n1,2\n");
}
