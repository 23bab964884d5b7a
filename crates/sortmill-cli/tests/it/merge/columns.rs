//! `sortmill merge --format csv|tsv|jsonl --by ...`, held against a Python program that knows each record's values because it
//! made them, and against `sort` of the same files.

use std::fs;
use std::process::Command;

use sortmill::io::codec::{CODECS, Codec};

use super::merge;
use crate::sort::gnu::random::Random;
use crate::sort::packed::{packed, unpacked};
use crate::sort::{caught, run_badly, run_on_pipe, run_well, sort, stderr, words};
use crate::{PROGRAM, Scratch};

/// Writes sorted files `in000` and so on, some of them empty or of a header alone, and what is to come of them, with its
/// repeats and without. Of a record the price decides, falling, then the text.
const MAKE: &str = r#"
import random, sys
from fractions import Fraction
folder, seed, count, records, nulls = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
rnd = random.Random(seed)
texts = ["plain", "a, b", "\"x\"\r\ny", "z\n\n", "", "a", "ab", "B", "\"", "\u00e4" * 9, "long " * 99]
def value(text):
    if any(c in text for c in ",\"\r\n") or rnd.random() < 0.2:
        return "\"" + text.replace("\"", "\"\"") + "\""
    return text
def record(number):
    small, large = rnd.randrange(30), rnd.randrange(10**25)
    price = rnd.choice(["", str(small), f"{small}e-1", f"-{small}.{small:02}00", f"+{large}", f" {small}"])
    text = rnd.choice(texts)
    raw = f"{value(str(number))},{value(text)},{value(price)}".encode() + rnd.choice(ends)
    null = 0 if nulls == "first" else 2
    by_price = (1, -Fraction(price.strip())) if price else (null, 0)
    return (by_price, (1, text.encode()) if text else (null, b"")), raw
def put(name, data):
    with open(f"{folder}/{name}", "wb") as file:
        file.write(data)
key = lambda one: one[0]
header, everything = b"", []
for number in range(count):
    ends = rnd.choice([[b"\n"], [b"\r\n"], [b"\n", b"\r\n"]])
    first = rnd.choice([b"", b"\xef\xbb\xbf"]) + b"id,\"the\n\"\"name\"\"\",price" + ends[0]
    wanted = rnd.choice([0, records // 2, records, records])
    mine = sorted((record(n) for n in range(wanted)), key=key)
    data = first + b"".join(raw for _, raw in mine)
    if number % 9 == 4:
        first, data, mine = b"", b"", []
    elif rnd.random() < 0.3:
        data = data[:-1]
        if not mine:
            first = first[:-1] + b"\n"
        else:
            mine[-1] = (mine[-1][0], mine[-1][1].removesuffix(b"\n") + b"\n")
    put(f"in{number:03}", data)
    header = header or first
    everything += mine
everything.sort(key=key)
put("wanted", header + b"".join(raw for _, raw in everything))
firsts = [raw for n, (by, raw) in enumerate(everything) if n == 0 or everything[n - 1][0] != by]
put("wanted-unique", header + b"".join(firsts))
"#;

/// How the files are in order.
const BY: [&str; 4] = ["--format", "csv", "--by", "-price:num,the\n\"name\""];

/// Makes `count` files of up to `records` records. Answers their paths, and what is to come of them.
fn made(
    scratch: &Scratch,
    random: &mut Random,
    (count, records): (usize, usize),
    nulls: &str,
) -> (Vec<String>, [Vec<u8>; 2]) {
    let seed = random.below(1 << 30);
    println!("{count} files of up to {records} records, seed {seed}, nulls {nulls}");
    let mut command = Command::new("python3");
    command.args(["-c", MAKE]).arg(&scratch.path);
    command.args([
        &seed.to_string(),
        &count.to_string(),
        &records.to_string(),
        nulls,
    ]);
    run_well(caught(command));
    let path = |number| {
        scratch
            .path(&format!("in{number:03}"))
            .display()
            .to_string()
    };
    let wanted = ["wanted", "wanted-unique"].map(|name| fs::read(scratch.path(name)).unwrap());
    ((0..count).map(path).collect(), wanted)
}

/// The command with the columns, these flags, and the files.
fn with(mut command: Command, flags: &[String], files: &[String]) -> Command {
    command.args(BY).args(flags).args(files);
    command
}

fn merge_with(flags: &[String], files: &[String]) -> Command {
    with(merge([""; 0]), flags, files)
}

#[test]
fn sorted_files_come_out_as_python_merges_them() {
    let scratch = Scratch::new("merge-columns");
    let mut random = Random::new();
    for (files, nulls) in [
        ((5, 4000), "first"),
        ((1, 900), "last"),
        ((14, 2000), "last"),
    ] {
        let (names, [wanted, unique]) = made(&scratch, &mut random, files, nulls);
        for flags in [
            "",
            "--io posix --no-direct",
            "--memory 32MiB",
            "-s --verify --memory 32MiB",
            "--memory 26MiB --verify --io posix",
        ] {
            let line = format!("-q -T {{}} --nulls {nulls} -o {{}}out {flags}");
            run_well(merge_with(&words(&scratch, &line), &names));
            let have = fs::read(scratch.path("out")).unwrap();
            assert!(have == wanted, "{flags}");
            fs::remove_file(scratch.path("out")).unwrap();
        }
        let flags = |line: &str| words(&scratch, &format!("-q --nulls {nulls} {line}"));
        // As `sort` has it, with the header once, and `sort -m`.
        for line in ["", "-u", "-m", "-m -u"] {
            let sorted = run_well(with(sort([""; 0]), &flags(line), &names)).stdout;
            assert!(
                sorted
                    == if line.contains("-u") {
                        &*unique
                    } else {
                        &*wanted
                    },
                "{line}"
            );
        }
        let output = run_well(merge_with(&flags("-u"), &names));
        assert!(output.stdout == unique);
        // The first as standard input, and as a pipe beside others.
        let first = fs::read(&names[0]).unwrap();
        let others = [&["-".to_owned()], &names[1..]].concat();
        for input in [first.clone(), packed(Codec::Zstd, &first, 70_000)] {
            let output = run_on_pipe(merge_with(&flags("--memory 64MiB"), &others), &input);
            assert!(output.stdout == wanted, "{}", stderr(&output));
        }
        // Into a compressed file, and into one of the inputs.
        run_well(merge_with(&flags("-o {}out.zst"), &names));
        let zst = fs::read(scratch.path("out.zst")).unwrap();
        assert!(unpacked(Codec::Zstd, &zst) == wanted);
        run_well(merge_with(&flags("-o {}in000"), &names));
        assert!(fs::read(&names[0]).unwrap() == wanted);
    }
}

/// More than memory has buffers for: runs are made of some first.
#[test]
fn many_files_in_little_memory() {
    let scratch = Scratch::new("merge-columns-many");
    let mut random = Random::new();
    let (names, [wanted, unique]) = made(&scratch, &mut random, (300, 120), "first");
    for (flags, wanted) in [
        ("--memory 26MiB", &wanted),
        ("--memory 32MiB --batch-size 7 -u --verify", &unique),
        ("--memory 32MiB --io posix --verify", &wanted),
    ] {
        let line = format!("{flags} -T {{}} --report {{}}report -o {{}}out");
        run_well(merge_with(&words(&scratch, &line), &names));
        assert!(
            fs::read(scratch.path("out")).unwrap() == **wanted,
            "{flags}"
        );
        let report = fs::read_to_string(scratch.path("report")).unwrap();
        assert!(!report.contains("\"merge_extra\": 0,"), "{report}");
    }
    let plan = run_well(merge_with(
        &words(&scratch, "--dry-run --memory 26MiB"),
        &names,
    ));
    let plan = String::from_utf8(plan.stdout).unwrap();
    assert!(plan.contains("passes           2"), "{plan}");
}

#[test]
fn compressed_files() {
    let scratch = Scratch::new("merge-columns-packed");
    let mut random = Random::new();
    let (names, [wanted, _]) = made(&scratch, &mut random, (40, 700), "last");
    for (name, codec) in names.iter().zip(CODECS.into_iter().cycle()) {
        let bytes = fs::read(name).unwrap();
        let member_bytes = 1 + random.below(90_000) as usize;
        fs::write(name, packed(codec, &bytes, member_bytes)).unwrap();
    }
    for (flags, out) in [
        ("--memory 500MiB", "out"),
        ("--memory 60MiB --verify", "out.gz"),
        ("--memory 32MiB", "out"),
    ] {
        let line = format!("-q {flags} -T {{}} --nulls last -o {{}}{out}");
        run_well(merge_with(&words(&scratch, &line), &names));
        let have = fs::read(scratch.path(out)).unwrap();
        let have = if out == "out" {
            have
        } else {
            unpacked(Codec::Gzip, &have)
        };
        assert!(have == wanted, "{flags}");
    }
}

/// Inputs that are empty, end within their header or behind it, and lack their last newline: what `sort` makes of them.
#[test]
fn short_files() {
    let scratch = Scratch::new("merge-columns-short");
    for (name, text) in [
        ("none", ""),
        ("head", "k,v\n"),
        ("cut", "k,v"),
        ("dos", "\u{feff}k,v\r\na,0\r\nc,1\r\n"),
        ("one", "k,v\nb,2\nc,3"),
        ("two", "k,v\n,4\n\"c\",\"5\n\""),
        ("plain", "b,2\nc,3"),
    ] {
        fs::write(scratch.path(name), text).unwrap();
    }
    for (line, wanted) in [
        ("{}none {}none", ""),
        ("{}head", "k,v\n"),
        ("{}cut {}none {}head", "k,v\n"),
        ("{}none {}cut {}one", "k,v\nb,2\nc,3\n"),
        ("{}one {}dos", "k,v\na,0\r\nb,2\nc,3\nc,1\r\n"),
        ("{}dos {}one", "\u{feff}k,v\r\na,0\r\nb,2\nc,1\r\nc,3\n"),
        (
            "{}one {}two {}dos",
            "k,v\n,4\na,0\r\nb,2\nc,3\n\"c\",\"5\n\"\nc,1\r\n",
        ),
        ("-u {}two {}one", "k,v\n,4\nb,2\n\"c\",\"5\n\"\n"),
        ("--nulls last {}head", "k,v\n"),
        ("- {}one", "k,v\nb,in\nb,2\nc,3\n"),
        ("{}one -", "k,v\nb,2\nb,in\nc,3\n"),
        ("{}cut", "k,v\n"),
        ("<", "k,v\nb,in\n"),
    ] {
        for more in ["", "--verify -o {}out", "--compress-output gz"] {
            let all = format!("-q --format csv --by k {more} {line}");
            let all = words(&scratch, all.trim_end_matches('<'));
            let mut made = ["merge", "sort"].map(|name| {
                let command = match name {
                    "merge" => merge(&all),
                    _ => sort(&all),
                };
                let output = run_on_pipe(command, b"k,v\nb,in\n");
                assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
                match more {
                    "" => output.stdout,
                    "--compress-output gz" => unpacked(Codec::Gzip, &output.stdout),
                    _ => fs::read(scratch.path("out")).unwrap(),
                }
            });
            made.iter_mut().for_each(|made| {
                let made = String::from_utf8(std::mem::take(made)).unwrap();
                assert_eq!(made, wanted, "{line} {more}");
            });
        }
    }
    // Columns by their numbers, other delimiters and quotes, lines in front, JSON.
    fs::write(scratch.path("a.tsv"), "top\nz\t1\n\"\t2\n").unwrap();
    fs::write(scratch.path("b.tsv"), "other\nx\t1\ny\t10").unwrap();
    fs::write(scratch.path("a.odd"), "'b;\n''';1\r\na;2").unwrap();
    fs::write(scratch.path("b.odd"), "c;0\n").unwrap();
    fs::write(scratch.path("a.jsonl"), "{\"k\":[3]}\n{\"k\":[1]}\n{}").unwrap();
    fs::write(scratch.path("b.jsonl"), "{\"k\":[\"2\"]}\n").unwrap();
    for (line, wanted) in [
        (
            "--format tsv --no-header --header 1 --by 2:num {}a.tsv {}b.tsv",
            "top\nz\t1\nx\t1\n\"\t2\ny\t10\n",
        ),
        (
            "--format csv --no-header --delimiter ; --quote ' --by 2 {}a.odd {}b.odd",
            "c;0\n'b;\n''';1\r\na;2\n",
        ),
        (
            "--format jsonl --by -k.0:num --nulls last {}a.jsonl {}b.jsonl",
            "{\"k\":[3]}\n{\"k\":[\"2\"]}\n{\"k\":[1]}\n{}\n",
        ),
    ] {
        let output = run_well(merge(words(&scratch, &format!("-q {line}"))));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), wanted, "{line}");
    }
    // Pipes, each with its header.
    let line = "exec \"$0\" merge -q --format csv --by k <(cat one) <(gzip -c dos) <(cat head) two";
    let mut command = Command::new("bash");
    command
        .current_dir(&scratch.path)
        .args(["-c", line, PROGRAM]);
    let output = run_well(caught(command));
    assert_eq!(
        output.stdout,
        b"k,v\n,4\na,0\r\nb,2\nc,3\nc,1\r\n\"c\",\"5\n\"\n"
    );
}

/// With file, byte, line and cause, as `sort` has them; what is not in order by its place, too. No output comes of it.
#[test]
fn what_is_wrong_is_told_with_its_place() {
    let scratch = Scratch::new("merge-columns-wrong");
    fs::write(scratch.path("good"), "n,t\n1,\"a\n\"\n3,b\n").unwrap();
    let line = "--format csv --by n:num -o {}out {}good {}bad";
    for (text, wanted) in [
        (
            "n,t\n1,a\n2,b \"c\"\n",
            ["at byte 12: ", "line 3: a quote stands within a value"],
        ),
        (
            "n,t\n1,a\n2,\"b\nc\"d\n",
            ["at byte 14: ", "line 4: behind a closing quote"],
        ),
        (
            "n,t\n1,a\n2,\"b\n3,c\n",
            ["at byte 10: ", "line 3: the quote that opens here is never"],
        ),
        (
            "n,t\n1,a\n2,\"b\n3,c",
            ["at byte 10: ", "line 3: the quote that opens here is never"],
        ),
        (
            "n,t\n1,a\n\n2,b\n",
            [
                "at byte 8: ",
                "line 3: it has 1 column, and the header has 2",
            ],
        ),
        (
            "n,t\n1,a\n2,b,c",
            [
                "at byte 8: ",
                "line 3: it has 3 columns, and the header has 2",
            ],
        ),
        (
            "n,t\n1,a\ntwo,b\n",
            ["at byte 8: ", "line 3: column 1 is no number: \"two\""],
        ),
        (
            "t,n\n1,a\n",
            ["at byte 0: ", "its header is not that of the first input"],
        ),
        (
            "n,t,u\n1,a,b\n",
            ["at byte 0: ", "its header is not that of the first input"],
        ),
        (
            "n,\"t\n1,a\n",
            ["at byte 0: ", "its header is not that of the first input"],
        ),
        (
            "n",
            ["at byte 0: ", "its header is not that of the first input"],
        ),
        (
            "n,t\n2,\"a\nb\"\n3,\"\n\n\"\n1,c\n",
            [
                "at byte 19: ",
                "it is not in order: the record at line 7, which begins there",
            ],
        ),
    ] {
        fs::write(scratch.path("bad"), text).unwrap();
        let told = run_badly(merge(words(&scratch, line)), &wanted);
        assert!(told.contains("/bad: at byte"), "{told}");
        assert!(
            !told.contains("--stable") && !told.contains("--skip-bad"),
            "{told}"
        );
        assert_eq!(scratch.names(), ["bad", "good"]);
        // `sort` says the same, but of what is in no order, which it puts in order, as `sort -m` leaves it.
        let sorts = sort(words(&scratch, line));
        match text.ends_with("1,c\n") {
            false => drop(run_badly(sorts, &wanted)),
            true => {
                let line = line.replace("-o {}out", "-q -m");
                let output = run_well(sort(words(&scratch, &line)));
                let wanted = "n,t\n1,\"a\n\"\n2,\"a\nb\"\n3,b\n3,\"\n\n\"\n1,c\n";
                assert_eq!(String::from_utf8(output.stdout).unwrap(), wanted);
            }
        }
    }
    for (text, wanted) in [
        (
            "n,t\n1,a\n2\n",
            ["at byte 8: ", "in the decompressed bytes"],
        ),
        (
            "n,t\n2,a\n1,a\n",
            ["at byte 8: ", "in the decompressed bytes"],
        ),
    ] {
        fs::write(scratch.path("bad"), packed(Codec::Gzip, text.as_bytes(), 5)).unwrap();
        run_badly(merge(words(&scratch, line)), &wanted);
    }
    fs::write(scratch.path("bad"), "m,t\n").unwrap();
    let line = "--format csv --by n -o {}out {}bad {}good";
    run_badly(
        merge(words(&scratch, line)),
        &["bad", "there is no column \"n\": there are m, t"],
    );
    // Far behind what is read at once, in a file that goes on; its quote swallows what a record may have.
    let many = "1,\"a\n\"\n".repeat(200_000);
    fs::write(
        scratch.path("bad"),
        format!("n,t\n{many}2,\"b\n{}", "3,b\n".repeat(900_000)),
    )
    .unwrap();
    let line = "--format csv --by n:num --memory 32MiB -o {}out {}good {}bad";
    run_badly(
        merge(words(&scratch, line)),
        &["bad: at byte 1400004: ", "or a quote in it is never closed"],
    );
    fs::write(
        scratch.path("bad"),
        format!("n,t\n{many}2,\"b\nc\n{}", "\"d\n".repeat(2)),
    )
    .unwrap();
    run_badly(
        merge(words(&scratch, line)),
        &[
            "bad: at byte 1400011: ",
            "line 400004: behind a closing quote",
        ],
    );
    assert_eq!(scratch.names(), ["bad", "good"]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let scratch = Scratch::new("merge-columns-refused");
    fs::write(scratch.path("in"), "a,b\n1,2\n").unwrap();
    for (line, wanted) in [
        ("--format csv {}in", "Name the columns that decide"),
        ("--by a {}in", "--by is about --format csv, tsv and jsonl"),
        (
            "--format csv --by a -r {}in",
            "Of columns, --by says what decides",
        ),
        ("--format csv --by a -k2 {}in", "-k is of other formats"),
        ("--format csv --by a -t, {}in", "-t is about lines"),
        (
            "--format csv --by a --header 1 {}in",
            "the first record names the columns",
        ),
        (
            "--format tsv --quote ' --by a {}in",
            "--quote is about --format csv",
        ),
        (
            "--format csv --by a --delimiter \" {}in",
            "both part values and quote them",
        ),
        (
            "--format csv --by a --skip-bad 1 {}in",
            "no record is left out",
        ),
        ("--format csv --by a --parts {}parts {}in", "not parts"),
        (
            "--format csv --by a {}in - -",
            "standard input can be merged once",
        ),
    ] {
        run_badly(merge(words(&scratch, line)), &[wanted]);
        assert_eq!(scratch.names(), ["in"]);
    }
}

/// What `merge --help` names, as an option or in the words about one, is an option that it lists.
#[test]
fn the_help_names_what_there_is() {
    let help = String::from_utf8(run_well(merge(["--help"])).stdout).unwrap();
    let listed: Vec<&str> = help
        .lines()
        .map(str::trim_start)
        .filter(|line| line.starts_with('-') || line.starts_with("[alias"))
        .flat_map(|line| {
            line.split([' ', ',', ']'])
                .filter(|word| word.starts_with("--"))
        })
        .collect();
    for option in ["--by", "--no-header", "--delimiter", "--quote", "--nulls"] {
        assert!(listed.contains(&option), "{option}: {help}");
    }
    let letters = |c: char| !c.is_ascii_alphanumeric() && c != '-';
    for word in help.split(letters).filter(|word| word.starts_with("--")) {
        assert!(word == "--" || listed.contains(&word), "{word}: {help}");
    }
}
