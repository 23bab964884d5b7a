//! The right answer, by whatever way: against coreutils and against itself.

use std::process::Command;

use super::{LITTLE, caught, run_on_pipe, run_well, sort, sorted, stderr, text, words};
use crate::Scratch;

/// What coreutils makes of a file.
fn coreutils(scratch: &Scratch, names: &[&str]) -> Option<Vec<u8>> {
    let mut command = Command::new("sort");
    command.arg("-s").env("LC_ALL", "C");
    command.args(names.iter().map(|name| scratch.path(name)));
    match command.output() {
        Ok(output) => Some(output.stdout),
        Err(error) => {
            println!("skipped: no coreutils sort: {error}");
            None
        }
    }
}

#[test]
fn text_comes_out_as_from_coreutils() {
    let scratch = Scratch::new("sort-coreutils");
    let mut no_newline = text(300_000, 2);
    no_newline.extend(b"the end without a newline");
    std::fs::write(scratch.path("a"), text(2_000_000, 1)).unwrap();
    std::fs::write(scratch.path("b"), &no_newline).unwrap();
    std::fs::write(scratch.path("empty"), b"").unwrap();
    let binary: Vec<u8> = std::fs::read(crate::PROGRAM).unwrap()[..3_000_000].to_vec();
    std::fs::write(scratch.path("binary"), binary).unwrap();
    for names in [
        vec!["a"],
        vec!["b"],
        vec!["empty"],
        vec!["b", "empty", "a", "b"],
        vec!["binary"],
    ] {
        let Some(wanted) = coreutils(&scratch, &names) else {
            return;
        };
        let files: Vec<_> = names.iter().map(|name| scratch.path(name)).collect();
        for flags in ["", "--io posix", "--no-direct", LITTLE] {
            let mut command = sort(flags.split_whitespace());
            command.args(&files);
            assert!(
                run_well(command).stdout == wanted,
                "{names:?} {flags} to stdout"
            );
            let mut command = sort(words(&scratch, &format!("{flags} -o {{}}out")));
            command.args(&files);
            run_well(command);
            let out = std::fs::read(scratch.path("out")).unwrap();
            assert!(out == wanted, "{names:?} {flags} to a file");
        }
        if let [name] = names[..] {
            let input = std::fs::read(scratch.path(name)).unwrap();
            for line in ["", "-", "-q -"] {
                let output = run_on_pipe(sort(words(&scratch, line)), &input);
                assert!(output.stdout == wanted, "{name} from a pipe");
            }
        }
    }
}

#[test]
fn data_larger_than_memory_from_files_and_pipes() {
    let scratch = Scratch::new("sort-larger");
    let input = text(90_000_000, 3);
    let wanted = sorted(&input);
    std::fs::write(scratch.path("in"), &input).unwrap();
    for flags in ["--io uring", "--io posix", "--no-direct"] {
        let line = format!("{LITTLE} {flags} -T {{}} -o {{}}out {{}}in");
        if flags.contains("uring") && !uring_works() {
            println!("skipped --io uring: the kernel refuses it");
            continue;
        }
        let output = run_well(sort(words(&scratch, &line)));
        let said = stderr(&output);
        assert!(
            !said.contains(" 0 B spilled") && said.contains("proven"),
            "{said}"
        );
        assert!(std::fs::read(scratch.path("out")).unwrap() == wanted);
    }
    let output = run_on_pipe(
        sort(words(&scratch, &format!("{LITTLE} -q -T {{}}"))),
        &input,
    );
    assert!(output.stdout == wanted);
    assert_eq!(stderr(&output), "", "-q says nothing");
    assert_eq!(scratch.names(), ["in", "out"]);
}

pub fn uring_works() -> bool {
    let output = run_on_pipe(sort(["--io", "uring"]), b"a\n");
    output.status.success()
}

#[test]
fn fixed_records_by_keys() {
    let scratch = Scratch::new("sort-fixed");
    let mut records: Vec<[u8; 12]> = Vec::new();
    for number in 0..50_000u32 {
        let mut record = [0; 12];
        record[..4].copy_from_slice(&(number.wrapping_mul(2_654_435_761)).to_le_bytes());
        record[4] = (number % 7) as u8;
        record[8..].copy_from_slice(&number.to_be_bytes());
        records.push(record);
    }
    std::fs::write(scratch.path("in"), records.concat()).unwrap();
    let signed = |record: &[u8; 12]| i32::from_le_bytes(record[..4].try_into().unwrap());
    type Model<'a> = &'a dyn Fn(&mut Vec<[u8; 12]>);
    let cases: [(&str, Model); 5] = [
        ("", &|all| all.sort()),
        ("--key 4:1", &|all| all.sort_by_key(|record| record[4])),
        ("--key 4:1:r", &|all| {
            all.sort_by_key(|record| std::cmp::Reverse(record[4]));
        }),
        ("--key 0:4:signed:le", &|all| all.sort_by_key(signed)),
        ("--key 4:1:r --key 0:4:s:le:r", &|all| {
            all.sort_by_key(|record| std::cmp::Reverse((record[4], signed(record))));
        }),
    ];
    for (keys, model) in cases {
        let mut wanted = records.clone();
        model(&mut wanted);
        let line = format!("--format fixed:12 {keys} {{}}in");
        let output = run_well(sort(words(&scratch, &line)));
        assert!(output.stdout == wanted.concat(), "{keys}");
    }
}

/// A shell may have read a part of standard input: only the rest is ours, as with every other program.
#[test]
fn standard_input_begins_where_it_stands() {
    let scratch = Scratch::new("sort-position");
    std::fs::write(scratch.path("in"), b"header\nc\nb\na\n").unwrap();
    let line = format!(
        "{{ read -r first; {} sort -q; }} < {}",
        crate::PROGRAM,
        scratch.path("in").display()
    );
    let mut command = Command::new("bash");
    command.args(["-c", &line]);
    let output = run_well(caught(command));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a\nb\nc\n");
}

#[test]
fn standard_input_is_read_once() {
    let scratch = Scratch::new("sort-stdin-twice");
    std::fs::write(scratch.path("in"), b"b\na\n").unwrap();
    std::fs::write(scratch.path("other"), b"x\n").unwrap();
    let mut command = sort(words(&scratch, "- {}other -"));
    command.stdin(std::fs::File::open(scratch.path("in")).unwrap());
    assert_eq!(
        String::from_utf8_lossy(&run_well(command).stdout),
        "a\nb\nx\n"
    );
}

#[test]
fn a_file_may_be_named_twice() {
    let scratch = Scratch::new("sort-twice");
    std::fs::write(scratch.path("in"), b"b\na").unwrap();
    let output = run_well(sort(words(&scratch, "{}in {}in")));
    assert_eq!(output.stdout, b"a\na\nb\nb\n");
}

#[test]
fn the_report_file_tells_the_same_as_the_words() {
    let scratch = Scratch::new("sort-report");
    std::fs::write(scratch.path("in"), text(1_000_000, 5)).unwrap();
    let line = "-v --report {}report -o {}out {}in";
    let said = stderr(&run_well(sort(words(&scratch, line))));
    let mut command = Command::new(crate::PROGRAM);
    command.arg("report").arg(scratch.path("report"));
    let again = run_well(caught(command)).stdout;
    let again = String::from_utf8(again).unwrap();
    assert!(said.ends_with(&again), "{said}\n---\n{again}");
    assert!(said.contains("partitions in memory") && said.contains("temporary folder"));
}

#[test]
fn a_dry_run_plans_and_writes_nothing() {
    let scratch = Scratch::new("sort-dry");
    std::fs::write(scratch.path("in"), text(100_000, 4)).unwrap();
    std::fs::write(scratch.path("out"), b"old").unwrap();
    let plan = |flags: &str| {
        let line = format!("--dry-run {flags} -T {{}} -o {{}}out {{}}in");
        let output = run_well(sort(words(&scratch, &line)));
        assert_eq!(stderr(&output), "");
        assert_eq!(scratch.names(), ["in", "out"]);
        assert_eq!(std::fs::read(scratch.path("out")).unwrap(), b"old");
        String::from_utf8(output.stdout).unwrap()
    };
    let memory = |flags: &str| {
        let plan = plan(flags);
        let line = plan.lines().find(|line| line.starts_with("memory "));
        line.unwrap().trim_start_matches("memory").trim().to_owned()
    };
    assert_eq!(memory("--memory 2GiB"), "2.0 GiB");
    assert_eq!(memory("-S 2G"), "2.0 GiB");
    assert_eq!(memory("-S 2GB"), "1.9 GiB");
    assert_eq!(memory("--memory=300m"), "300.0 MiB");
    assert_eq!(memory("--memory=300000000"), "286.1 MiB");
    let plan = plan("--memory 64MiB --threads 1");
    for word in [
        "input            97.",
        "passes           1",
        "temporary space  0 B",
        "partitions ",
        "1 to compute",
        "temporary folder",
    ] {
        assert!(plan.contains(word), "{word}: {plan}");
    }
}
