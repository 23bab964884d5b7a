//! `--report` and `--trace` open files of their own: never what the job reads or writes.

use std::os::unix::fs::symlink;
use std::process::Command;

use super::{caught, run, run_badly, stderr};
use crate::{PROGRAM, Scratch};

/// `script` in bash, in the scratch folder, where `$M` is the program and `./sort` a link to it.
fn bash(scratch: &Scratch, script: &str) -> Command {
    let mut bash = Command::new("bash");
    bash.args(["-c", script]).current_dir(&scratch.path);
    bash.env("M", PROGRAM)
        .env("LC_ALL", "C")
        .env_remove("TMPDIR");
    caught(bash)
}

/// `sort --trace in in` made a trace of the input, and the report lay where the output was asked for.
#[test]
fn a_file_of_the_job_is_refused_before_any_work() {
    let scratch = Scratch::new("side-refused");
    std::fs::create_dir(scratch.path("folder")).unwrap();
    let put = |name: &str, bytes: &[u8]| std::fs::write(scratch.path(name), bytes).unwrap();
    put("in", b"b\na\n");
    put("old", b"old");
    put("seed", &[b's'; 64]);
    put("names", b"in\0");
    symlink(PROGRAM, scratch.path("sort")).unwrap();
    symlink("in", scratch.path("link")).unwrap();
    symlink("new", scratch.path("dangling")).unwrap();
    std::fs::hard_link(scratch.path("in"), scratch.path("hard")).unwrap();
    let names = scratch.names();
    for (script, wanted) in [
        ("$M sort --trace in in -q -o out", "--trace and an input"),
        ("$M sort --report in in -q -o out", "--report and an input"),
        ("$M sort --report link in -o out", "--report and an input"),
        ("$M sort --trace hard old in -o out", "--trace and an input"),
        (
            "$M sort --trace ./folder/../in - in < old",
            "--trace and an input",
        ),
        ("./sort --report in in", "--report and an input"),
        (
            "./sort -m --report in in in -o out",
            "--report and an input",
        ),
        ("$M merge --report in in -o out", "--report and an input"),
        ("$M uniq --report in in -o out", "--report and an input"),
        ("$M count --trace in in", "--trace and an input"),
        (
            "$M count --by-count --report in in",
            "--report and an input",
        ),
        ("$M top 1 --trace in in", "--trace and an input"),
        ("$M shuffle --report in in -o out", "--report and an input"),
        ("$M sort --dry-run --report in in", "--report and an input"),
        ("$M sort --report rr --trace rr in", "--report and --trace"),
        (
            "$M sort --report rr --trace ./folder/../rr in",
            "--report and --trace",
        ),
        (
            "$M sort --report new --trace dangling in",
            "--report and --trace",
        ),
        ("$M sort --report out -o out in", "--report and the output"),
        ("$M sort --trace out -o ./out in", "--trace and the output"),
        ("$M sort --report old -o old in", "--report and the output"),
        ("$M sort --report in < in", "--report and standard input"),
        (
            "$M sort --report old in 1<> old",
            "--report and standard output",
        ),
        (
            "$M sort --files0-from names --trace names",
            "--trace and --files0-from",
        ),
        (
            "$M sort --files0-from - --trace names < names",
            "--trace and --files0-from",
        ),
        (
            "$M sort --files0-from names --trace in",
            "--trace and an input",
        ),
        (
            "$M sort -R --random-source seed --report seed in",
            "--report and --random-source",
        ),
        (
            "$M sort --parts parts --report parts in",
            "--report and the output",
        ),
    ] {
        run_badly(bash(&scratch, script), &[wanted, "would be overwritten"]);
        let read = |name: &str| std::fs::read(scratch.path(name)).unwrap();
        assert_eq!(read("in"), b"b\na\n", "{script}");
        assert_eq!(read("old"), b"old", "{script}");
        assert_eq!(read("names"), b"in\0", "{script}");
        assert_eq!(scratch.names(), names, "{script}");
    }
}

/// What several can be written to one after the other, and names that only look alike.
#[test]
fn others_are_taken() {
    let scratch = Scratch::new("side-taken");
    std::fs::write(scratch.path("in"), b"b\na\n").unwrap();
    std::fs::create_dir(scratch.path("folder")).unwrap();
    for script in [
        "$M sort -q --report /dev/null --trace /dev/null -o out in",
        "$M sort -q --report folder/out --trace folder/in -o out in",
        "$M sort -q --report /dev/stderr -o out in",
        "$M sort -q --report /dev/stdout -o out in",
        "$M sort -q --report r1 --trace t1 -o in in && mv in out && cp out in",
    ] {
        let output = run(bash(&scratch, script));
        assert_eq!(
            output.status.code(),
            Some(0),
            "{script}: {}",
            stderr(&output)
        );
        assert_eq!(
            std::fs::read(scratch.path("out")).unwrap(),
            b"a\nb\n",
            "{script}"
        );
    }
}

/// What goes to a standard stream goes behind what is there already: it is a log, perhaps.
#[test]
fn a_log_keeps_what_it_held() {
    let scratch = Scratch::new("side-log");
    std::fs::write(scratch.path("in"), b"b\na\n").unwrap();
    for script in [
        "$M sort --report /dev/stderr -o out in 2>> log",
        "$M sort --report /dev/stdout -o out in >> log",
        "$M sort --report log -o out in 2>> log",
        "(echo begun; $M sort --trace /dev/stderr -o out in; echo done) >> log 2>&1",
    ] {
        std::fs::write(scratch.path("log"), "old\n").unwrap();
        let output = run(bash(&scratch, script));
        assert_eq!(output.status.code(), Some(0), "{script}");
        let log = std::fs::read_to_string(scratch.path("log")).unwrap();
        assert!(log.starts_with("old\n"), "{script}: {log}");
        let json = log[log.find('{').unwrap()..=log.rfind('}').unwrap()].trim_end_matches("done\n");
        serde_json::from_str::<serde_json::Value>(json).unwrap();
    }
}
