//! `sortmill merge`, as its users meet it: against `sort -m` of coreutils.

mod columns;
mod header;
mod packed;

use std::ffi::OsStr;
use std::io::Write;
use std::process::Command;

use crate::sort::space::Small;
use crate::sort::{
    LITTLE_MEMORY, caught, finish, make_fifo, names_with, run_badly, run_on_pipe, run_well, signal,
    sorted, spawn_on_pipe, stderr, text, until_spilled, was_stopped_by, words,
};
use crate::{PROGRAM, Scratch};

/// `sortmill merge` with these words, all output caught, no input.
fn merge<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("merge").args(words);
    command.env_remove("TMPDIR");
    caught(command)
}

/// Sorted files of about `bytes` bytes, their names in order.
fn files(scratch: &Scratch, count: usize, bytes: usize) -> Vec<String> {
    let name = |number: usize| format!("in{number:03}");
    for number in 0..count {
        let input = sorted(&text(bytes, 1 + number as u64));
        std::fs::write(scratch.path(&name(number)), input).unwrap();
    }
    (0..count).map(name).collect()
}

/// What coreutils makes of them.
fn coreutils(scratch: &Scratch, names: &[String]) -> Vec<u8> {
    let mut command = Command::new("sort");
    command.args(["-m", "-s"]).env("LC_ALL", "C");
    command.args(names.iter().map(|name| scratch.path(name)));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    output.stdout
}

fn with_files(mut command: Command, scratch: &Scratch, names: &[String]) -> Command {
    command.args(names.iter().map(|name| scratch.path(name)));
    command
}

/// Records of fixed size have ties that tell which file they come from; lines that are equal are equal.
#[test]
fn what_comes_out_is_what_comes_from_coreutils() {
    let scratch = Scratch::new("merge-coreutils");
    let mut names = files(&scratch, 40, 100_000);
    std::fs::write(scratch.path("empty"), b"").unwrap();
    std::fs::write(scratch.path("zeros"), b"\0\n\0\0\na\0b\nb").unwrap();
    std::fs::write(scratch.path("one"), b"no newline").unwrap();
    names.extend(["empty", "zeros", "one", "in003", "empty"].map(String::from));
    for names in [
        &names[..],
        &names[..1],
        &names[..2],
        &names[40..43],
        &names[40..41],
    ] {
        let wanted = coreutils(&scratch, names);
        for flags in ["", "--io posix", "--no-direct", LITTLE_MEMORY] {
            let command = merge(words(&scratch, flags));
            let output = run_well(with_files(command, &scratch, names));
            assert!(output.stdout == wanted, "{} files {flags}", names.len());
            let said = stderr(&output);
            assert!(
                said.contains("merged ") && said.contains("proven"),
                "{said}"
            );
            let command = merge(words(&scratch, &format!("-q {flags} -o {{}}out")));
            let output = run_well(with_files(command, &scratch, names));
            assert_eq!(stderr(&output), "");
            assert!(std::fs::read(scratch.path("out")).unwrap() == wanted);
        }
    }
}

#[test]
fn equal_keys_come_in_the_order_of_the_files() {
    let scratch = Scratch::new("merge-ties");
    let mut wanted = Vec::new();
    for file in 0..3u8 {
        let records: Vec<u8> = (0..5000u32)
            .flat_map(|number| [(number / 1700) as u8, file, 0, 0])
            .collect();
        std::fs::write(scratch.path(&format!("in{file}")), &records).unwrap();
        wanted.extend(records.chunks(4).map(<[u8]>::to_vec));
    }
    wanted.sort_by_key(|record| record[0]);
    let line = "--format fixed:4 --key 0:1 {}in0 {}in1 {}in2";
    assert!(run_well(merge(words(&scratch, line))).stdout == wanted.concat());
}

#[test]
fn pipes_among_files() {
    let scratch = Scratch::new("merge-pipes");
    let names = files(&scratch, 3, 3_000_000);
    let input = sorted(&text(2_000_000, 77));
    std::fs::write(scratch.path("piped"), &input).unwrap();
    let all = ["in000", "piped", "in001", "in002", "piped"].map(String::from);
    let wanted = coreutils(&scratch, &all);
    make_fifo(&scratch.path("pipe"));
    let (pipe, fed) = (scratch.path("pipe"), input.clone());
    let feeder = std::thread::spawn(move || {
        let mut pipe = std::fs::File::options().write(true).open(pipe).unwrap();
        pipe.write_all(&fed).unwrap();
    });
    let line = "{}in000 - {}in001 {}in002 {}pipe";
    let output = run_on_pipe(merge(words(&scratch, line)), &input);
    feeder.join().unwrap();
    assert!(output.stdout == wanted, "{}", stderr(&output));
    // Standard input alone, where no file is named.
    let output = run_on_pipe(merge(words(&scratch, "")), &input);
    assert!(output.stdout == input, "{}", stderr(&output));
    run_badly(
        merge(words(&scratch, "- {}in000 -")),
        &["standard input can be merged once"],
    );
    run_badly(
        merge(words(&scratch, "{}in000 - /dev/stdin")),
        &["a stream can be merged once"],
    );
    assert_eq!(names.len(), 3);
}

/// A file that is standard input and named beside it is opened twice, and of an empty device nobody takes anything: both were
/// refused as if two readers shared a stream.
#[test]
fn what_is_named_twice_and_shares_nothing() {
    let scratch = Scratch::new("merge-twice");
    let names = files(&scratch, 1, 20_000_000);
    let twice = [names[0].clone(), names[0].clone()];
    for line in ["{}in000 -", "- {}in000"] {
        let mut command = merge(words(&scratch, &format!("{line} -o {{}}out")));
        command.stdin(std::fs::File::open(scratch.path("in000")).unwrap());
        run_well(command);
        assert!(std::fs::read(scratch.path("out")).unwrap() == coreutils(&scratch, &twice));
    }
    run_well(merge(words(
        &scratch,
        "/dev/null {}in000 /dev/null -o {}out",
    )));
    assert!(std::fs::read(scratch.path("out")).unwrap() == coreutils(&scratch, &names));
}

/// The trap of `-m -o` onto an input: what is there stays until the output is complete.
#[test]
fn onto_an_input() {
    let scratch = Scratch::new("merge-onto");
    let names = files(&scratch, 5, 2_000_000);
    let wanted = coreutils(&scratch, &names);
    let kept: Vec<Vec<u8>> = names
        .iter()
        .map(|name| std::fs::read(scratch.path(name)).unwrap())
        .collect();
    for (name, before) in names.iter().zip(&kept) {
        let command = merge(words(&scratch, &format!("-o {{}}{name}")));
        let output = run_well(with_files(command, &scratch, &names));
        assert!(
            std::fs::read(scratch.path(name)).unwrap() == wanted,
            "{name}"
        );
        let said = stderr(&output);
        assert!(said.contains("read again from the device"), "{said}");
        std::fs::write(scratch.path(name), before).unwrap();
    }
    // One that fails leaves it.
    std::fs::write(scratch.path("bad"), b"b\na\n").unwrap();
    run_badly(
        merge(words(&scratch, "-o {}in000 {}in000 {}bad")),
        &["not in order", "line 2,", "bad", "at byte 2:"],
    );
    assert!(std::fs::read(scratch.path("in000")).unwrap() == kept[0]);
    assert_eq!(scratch.names().len(), 6);
}

#[test]
fn an_input_that_is_not_in_order_is_named() {
    let scratch = Scratch::new("merge-unsorted");
    let mut names = files(&scratch, 3, 1_000_000);
    let mut bad = sorted(&text(5_000_000, 9));
    let offset = bad.len();
    bad.extend(b"\nnot last\n");
    std::fs::write(scratch.path("bad"), &bad).unwrap();
    std::fs::write(scratch.path("out"), b"old").unwrap();
    names.insert(1, "bad".to_owned());
    let command = merge(words(&scratch, "-o {}out"));
    let path = scratch.path("bad").display().to_string();
    let said = run_badly(
        with_files(command, &scratch, &names),
        &[
            "merging the inputs",
            &path,
            &format!("at byte {offset}:"),
            "sortmill sort",
        ],
    );
    println!("{said}");
    assert_eq!(std::fs::read(scratch.path("out")).unwrap(), b"old");
    assert_eq!(scratch.names().len(), 5);
    // In another order they are.
    let bytes = bad.len() / 100 * 100;
    std::fs::write(scratch.path("fixed"), vec![7; bytes]).unwrap();
    run_well(merge(words(
        &scratch,
        "--format fixed:100 -o {}out {}fixed {}fixed",
    )));
    assert_eq!(std::fs::read(scratch.path("out")).unwrap().len(), 2 * bytes);
}

/// The options of `sort`, on files that are sorted by them, and what is refused.
#[test]
fn the_options_of_sort() {
    let scratch = Scratch::new("merge-options");
    for (name, seed) in [("in0", 1), ("in1", 2), ("in2", 3)] {
        let mut numbers = text(40_000, seed);
        numbers.retain(|byte| *byte != b'x');
        std::fs::write(scratch.path(name), numbers).unwrap();
    }
    let here = scratch.path.display().to_string();
    for options in [
        "-n",
        "-rn",
        "-k2,2",
        "-k1.2,1.4n -k2r",
        "-t1 -k2,2n",
        "-f -u",
        "-u",
        "-s -k1.1,1.1",
        "-z",
        "-V",
        "-h -r",
        "-su -k1.1,1.2",
        "-g --reverse",
        "-zu -k1.3",
    ] {
        let made = Command::new("bash")
            .args(["-c", &format!(
                "cd {here}; export LC_ALL=C; for n in 0 1 2; do sort {options} -o sorted$n in$n; done; \
                 sort -m {options} sorted0 sorted1 sorted2 sorted0"
            )])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", stderr(&made));
        for line in [
            format!("{options} {{}}sorted0 {{}}sorted1 {{}}sorted2 {{}}sorted0"),
            format!("{{}}sorted0 {{}}sorted1 -q {{}}sorted2 {{}}sorted0 {options} --batch-size 16"),
        ] {
            let output = run_well(merge(words(&scratch, &line)));
            assert!(output.stdout == made.stdout, "{line}");
        }
    }
    let lines = "a 2\na 1\n";
    std::fs::write(scratch.path("ties"), lines).unwrap();
    run_badly(
        merge(words(&scratch, "-k1,1 {}ties")),
        &["not in order", "line 2,", "--stable"],
    );
    let output = run_well(merge(words(&scratch, "-s -k1,1 {}ties")));
    assert_eq!(output.stdout, lines.as_bytes());
    for (line, wanted) in [
        ("-c {}in0", "`sort -c`"),
        ("--parts {}parts {}in0", "not parts"),
        ("--until sort {}in0", "runs to its end"),
        ("--skip-bad 1 {}in0", "leaves no record out"),
        ("--boundaries uniform {}in0", "no partitions"),
        ("--nonsense {}in0", "sortmill merge --help"),
        ("-o {}a -o {}b {}in0", "one output"),
        ("--format fixed:4 -n {}in0", "about lines"),
    ] {
        run_badly(merge(words(&scratch, line)), &[wanted]);
    }
    let help = String::from_utf8(run_well(merge(["--help"])).stdout).unwrap();
    assert!(
        help.contains("Usage: sortmill merge") && help.contains("--numeric-sort"),
        "{help}"
    );
    assert!(
        !help.contains("--parts") && !help.contains("--until"),
        "{help}"
    );
}

/// Lines that do not fit the room in front of a chunk when the output is read again, of which no beginning is the key.
#[test]
fn long_lines_ordered_by_a_field_are_verified() {
    let scratch = Scratch::new("merge-long-fields");
    let mut all = Vec::new();
    for (name, first) in [("one", 0), ("two", 1)] {
        let line = |number: usize| {
            let (before, behind) = ((97 * number) % 1000, "x".repeat(400_000 + 21_000 * number));
            format!("{before},{number:03},{behind}\n").into_bytes()
        };
        let lines: Vec<Vec<u8>> = (0..14).map(|at| line(2 * at + first)).collect();
        std::fs::write(scratch.path(name), lines.concat()).unwrap();
        all.extend(lines.into_iter().zip((first..).step_by(2)));
    }
    all.sort_by_key(|(_, number)| *number);
    let wanted: Vec<u8> = all.into_iter().flat_map(|(line, _)| line).collect();
    for by in ["-t, -k2,2", "--format csv --no-header --by 2"] {
        for memory in ["128MiB", "1GiB"] {
            let line = format!("{by} --verify --memory {memory} -o {{}}out {{}}one {{}}two");
            run_well(merge(words(&scratch, &line)));
            assert!(
                std::fs::read(scratch.path("out")).unwrap() == wanted,
                "{line}"
            );
        }
    }
}

/// Names from a file, and `sort -m` of the same, which takes what is in no order, too.
#[test]
fn names_from_a_file() {
    let scratch = Scratch::new("merge-names");
    let names = files(&scratch, 40, 3000);
    let wanted = coreutils(&scratch, &names);
    let list = names
        .iter()
        .map(|name| format!("{}\0", scratch.path(name).display()));
    std::fs::write(scratch.path("list"), list.collect::<String>()).unwrap();
    let output = run_well(merge(words(&scratch, "--files0-from={}list")));
    assert!(output.stdout == wanted);
    let output = run_well(crate::sort::sort(words(
        &scratch,
        "-m --files0-from={}list -o {}in003",
    )));
    assert!(std::fs::read(scratch.path("in003")).unwrap() == wanted);
    let said = stderr(&output);
    assert!(said.contains("40 inputs, merged at once"), "{said}");
    std::fs::write(scratch.path("bad"), "b\na\n").unwrap();
    let output = run_well(crate::sort::sort(words(&scratch, "-m {}bad {}bad")));
    assert_eq!(output.stdout, b"b\na\nb\na\n");
    let said = stderr(&output);
    assert!(said.contains("not in order at 2 places"), "{said}");
}

#[test]
fn three_hundred_files() {
    let scratch = Scratch::new("merge-300");
    let names = files(&scratch, 300, 20_000);
    let wanted = coreutils(&scratch, &names);
    // In little memory by way of runs, which the report tells of.
    for (flags, runs) in [("", false), ("--memory 26MiB", true)] {
        let line = format!("{flags} -T {{}} --report {{}}report -o {{}}out");
        let output = run_well(with_files(merge(words(&scratch, &line)), &scratch, &names));
        let said = stderr(&output);
        assert!(
            std::fs::read(scratch.path("out")).unwrap() == wanted,
            "{flags}"
        );
        let words = if runs {
            "merged at once, with"
        } else {
            "300 inputs, merged at once"
        };
        assert!(said.contains(words), "{said}");
        let report = std::fs::read_to_string(scratch.path("report")).unwrap();
        assert_eq!(report.contains("\"merge_extra\": 0,"), !runs, "{report}");
        let shown = Command::new(PROGRAM)
            .arg("report")
            .arg(scratch.path("report"))
            .output();
        assert!(stderr(&shown.unwrap()).is_empty());
    }
    for name in &names {
        std::fs::write(scratch.path(name), b"").unwrap();
    }
    let output = run_well(with_files(merge(words(&scratch, "")), &scratch, &names));
    assert_eq!(output.stdout, b"");
    let left = names_with(&scratch.path, "sortmill-");
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn the_plan_of_a_merge() {
    let scratch = Scratch::new("merge-plan");
    let names = files(&scratch, 100, 1000);
    for (flags, wanted) in [
        (
            "--memory 1GiB",
            vec![
                "inputs           100",
                "passes           1",
                "reads of 4.0 MiB in flight",
            ],
        ),
        (
            "--memory 26MiB",
            vec![
                "runs             ",
                "passes           2",
                "the run that is written",
            ],
        ),
    ] {
        let line = format!("--dry-run {flags} -o {{}}out");
        let output = run_well(with_files(merge(words(&scratch, &line)), &scratch, &names));
        let plan = String::from_utf8(output.stdout).unwrap();
        for words in wanted {
            assert!(plan.contains(words), "{plan}\nsays nothing of {words:?}");
        }
    }
    run_badly(
        merge(words(&scratch, "--memory 1MiB {}in000")),
        &["needs at least"],
    );
    assert!(names_with(&scratch.path, "out").is_empty());
}

#[test]
fn progress_knows_of_the_merge() {
    let scratch = Scratch::new("merge-progress");
    let names = files(&scratch, 4, 1_000_000);
    let command = merge(words(&scratch, "-q --progress json -o {}out"));
    let said = stderr(&run_well(with_files(command, &scratch, &names)));
    let last = said.lines().last().unwrap();
    assert!(
        last.contains("\"phase\":\"done\"") && last.contains("\"merge\""),
        "{said}"
    );
}

/// Stopped, it leaves nothing; killed, the next job takes away what it left.
#[test]
fn stopped_and_killed() {
    let scratch = Scratch::new("merge-killed");
    std::fs::create_dir(scratch.path("temp")).unwrap();
    let names = files(&scratch, 120, 100_000);
    std::fs::write(scratch.path("out"), b"old").unwrap();
    // The last row is a stream that does not end: runs are made of others first.
    let line = "--memory 26MiB -T {}temp -o {}out";
    for signal_name in ["INT", "TERM", "KILL"] {
        let mut command = with_files(merge(words(&scratch, line)), &scratch, &names);
        command.arg("-");
        let mut child = spawn_on_pipe(command);
        let pipe = child.stdin.take().unwrap();
        until_spilled(&scratch.path("temp"));
        signal(child.id(), signal_name);
        let output = finish(child);
        drop(pipe);
        assert_eq!(std::fs::read(scratch.path("out")).unwrap(), b"old");
        let left = || {
            names_with(&scratch.path("temp"), "").len() + names_with(&scratch.path, ".out.").len()
        };
        if signal_name == "KILL" {
            assert_eq!(left(), 2);
            run_well(merge(words(
                &scratch,
                "-T {}temp -o {}other {}in000 {}in001",
            )));
        } else {
            was_stopped_by(&output, signal_name);
        }
        assert_eq!(left(), 0, "{signal_name}");
    }
}

#[test]
fn a_disk_that_is_full() {
    for kind in ["tmpfs", "ext4"] {
        let Some(small) = Small::new("full-merge", kind, 32) else {
            continue;
        };
        let names = files(&small.scratch, 120, 600_000);
        std::fs::write(small.folder.join("out"), b"old").unwrap();
        // Known before the start.
        let known = merge(words(&small.scratch, "-o {}small/out"));
        run_badly(
            with_files(known, &small.scratch, &names),
            &["output need", "are free"],
        );
        // Known only when it is full: of the output, and of runs.
        for line in ["-T {} -o {}small/out", "--memory 26MiB -T {}small -o {}out"] {
            let mut command =
                with_files(merge(words(&small.scratch, line)), &small.scratch, &names);
            command.arg("-");
            let output = run_on_pipe(command, b"a\nb\n");
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{kind} {line}: {said}");
            assert!(said.contains("No space left"), "{kind} {line}: {said}");
            assert_eq!(small.names(), ["out"], "{kind} {line}");
        }
        assert_eq!(std::fs::read(small.folder.join("out")).unwrap(), b"old");
        let left = names_with(&small.scratch.path, "sortmill-");
        assert_eq!(left, Vec::<String>::new());
        assert!(names_with(&small.scratch.path, "out").is_empty());
    }
}
