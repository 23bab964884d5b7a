//! Input that is in order, through the program: coreutils' bytes, and what it says of it.

use std::process::Command;

use super::{caught, run_well, sort, stderr, words};
use crate::Scratch;

/// Made by `sortmill gen`, sorted by coreutils and by us in less memory than it would fill.
#[test]
fn generated_orders_come_out_as_from_coreutils() {
    let scratch = Scratch::new("sort-order");
    for (kind, is_in_order) in [
        ("sorted", true),
        ("reversed", true),
        ("sorted-but-last", true),
        ("records --ascii", false),
    ] {
        let mut make = Command::new(crate::PROGRAM);
        make.args(words(&scratch, &format!("gen {kind} 1500000 {{}}in")));
        run_well(caught(make));
        let line = "--format fixed:100 --key 0:10 -S 96MiB -T {} -o {}out {}in";
        let said = stderr(&run_well(sort(words(&scratch, line))));
        let was = said.contains("the input was in order, in ") && said.contains(": one pass");
        assert_eq!(was, is_in_order, "{kind}: {said}");
        let mut check = Command::new(crate::PROGRAM);
        check.args(words(&scratch, "check --format fixed:100 --key 0:10 {}out"));
        run_well(caught(check));
        if kind == "sorted" {
            let same = std::fs::read(scratch.path("in")).unwrap()
                == std::fs::read(scratch.path("out")).unwrap();
            assert!(same, "what is sorted stays as it is");
        }
    }
}

#[test]
fn sorted_records_and_almost_sorted_ones_are_coreutils_own() {
    let scratch = Scratch::new("sort-order-records");
    // Of one length, so that they are lines for coreutils and records for us.
    let mut records: Vec<String> = (0..1_500_000_u64)
        .map(|number| format!("{number:012} {:0>86}\n", number % 60))
        .collect();
    for (name, is_one_pass) in [("sorted", true), ("stray", false)] {
        if name == "stray" {
            let stray = records.remove(40_001);
            records.insert(900_003, stray);
        }
        std::fs::write(scratch.path("in"), records.concat()).unwrap();
        let mut oracle = Command::new("sort");
        oracle.arg("-s").arg(scratch.path("in")).env("LC_ALL", "C");
        let Ok(wanted) = oracle.output() else {
            println!("skipped: no coreutils sort");
            return;
        };
        let format = "--format fixed:100 --key 0:99 -S 96MiB -T {}";
        for flags in ["--io posix", "--no-direct --threads 1", "--verify"] {
            let line = format!("{flags} {format} -o {{}}out {{}}in");
            let said = stderr(&run_well(sort(words(&scratch, &line))));
            assert_eq!(said.contains(": one pass"), is_one_pass, "{flags}: {said}");
            let again = said.contains("were written again");
            assert_eq!(again, !is_one_pass, "{flags}: {said}");
            let out = std::fs::read(scratch.path("out")).unwrap();
            assert!(out == wanted.stdout, "{name} {flags}");
        }
        // To a stream nothing is written early.
        let stdout = run_well(sort(words(&scratch, &format!("{format} {{}}in"))));
        assert!(stdout.stdout == wanted.stdout, "{name} to stdout");
    }
}

/// Lines of any length, one of 4 MB, empty ones, zeros and carriage returns among them.
#[test]
fn sorted_lines_and_almost_sorted_ones_are_coreutils_own() {
    let scratch = Scratch::new("sort-order-lines");
    let mut lines: Vec<String> = (0..2_500_000_u64)
        .map(|number| match number {
            ..1_000 => "\n".to_owned(),
            900_000 => format!("{number:012}{}\n", " ".repeat(4_000_000)),
            _ if number % 1_000 == 0 => format!("{number:012}\0\r\n"),
            _ => format!("{number:012} {:0>1$}\n", "", number as usize % 60),
        })
        .collect();
    for (name, is_one_pass) in [("sorted", true), ("reversed", true), ("stray", false)] {
        match name {
            "reversed" => lines.reverse(),
            "stray" => {
                lines.reverse();
                let stray = lines.remove(40_001);
                lines.insert(1_900_003, stray);
            }
            _ => {}
        }
        let bytes = lines.concat();
        std::fs::write(scratch.path("in"), bytes.strip_suffix('\n').unwrap()).unwrap();
        let mut oracle = Command::new("sort");
        oracle.arg("-s").arg(scratch.path("in")).env("LC_ALL", "C");
        let Ok(wanted) = oracle.output() else {
            println!("skipped: no coreutils sort");
            return;
        };
        for flags in ["--io posix", "--no-direct --threads 1", "--verify"] {
            let line = format!("{flags} -S 96MiB -T {{}} -o {{}}out {{}}in");
            let said = stderr(&run_well(sort(words(&scratch, &line))));
            assert_eq!(said.contains(": one pass"), is_one_pass, "{flags}: {said}");
            let again = said.contains("were written again");
            assert_eq!(again, !is_one_pass, "{flags}: {said}");
            let out = std::fs::read(scratch.path("out")).unwrap();
            assert!(out == wanted.stdout, "{name} {flags}");
        }
        // To a stream nothing is written early.
        let stdout = run_well(sort(words(&scratch, "-S 96MiB -T {} {}in")));
        assert!(stdout.stdout == wanted.stdout, "{name} to stdout");
    }
}

#[test]
fn the_plan_says_that_order_would_help() {
    let scratch = Scratch::new("sort-order-plan");
    std::fs::write(scratch.path("in"), vec![b'\n'; 60_000_000]).unwrap();
    let said = |line: &str| run_well(sort(words(&scratch, line))).stdout;
    let hint = "or 1 if the input is found in order";
    for format in ["lines", "fixed:4"] {
        let line = format!("--format {format} -S 48MiB --dry-run -o {{}}out {{}}in");
        let to_file = said(&line);
        assert!(String::from_utf8_lossy(&to_file).contains(hint), "{format}");
    }
    let to_stdout = said("--format fixed:4 -S 48MiB --dry-run {}in");
    assert!(!String::from_utf8_lossy(&to_stdout).contains(hint));
}
