//! Whoever reads the standard output of a command leaves, as `head` does: the command ends as others do, by SIGPIPE and in silence,
//! or with an error where the caller has that signal ignored.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output};

use crate::{PROGRAM, Scratch};

/// What ends a process that writes to a pipe nobody reads.
pub const SIGPIPE: i32 = 13;

/// A shell runs the program with these words, its output read by nobody.
fn unread(before: &str, words: &str) -> Output {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    Command::new("sh")
        .args(["-c", &format!("{before} exec {PROGRAM} {words}")])
        .stdout(writer)
        .output()
        .unwrap()
}

#[test]
fn every_command_ends_with_its_reader() {
    let scratch = Scratch::new("readers");
    std::fs::write(scratch.path("in"), "a\nb\n").unwrap();
    let file = scratch.path("in");
    let file = file.display();
    let report = scratch.path("report");
    let report = report.display();
    let sorted = Command::new(PROGRAM)
        .args([
            "sort",
            "--report",
            &report.to_string(),
            "-o",
            "/dev/null",
            &file.to_string(),
        ])
        .output()
        .unwrap();
    assert!(sorted.status.success());
    for words in [
        "--help".to_owned(),
        "sort --help".to_owned(),
        "--version".to_owned(),
        "completions bash".to_owned(),
        "doctor".to_owned(),
        "gen records 100000 -".to_owned(),
        format!("report {report}"),
        format!("check {file}"),
        format!("sort {file}"),
        format!("sort --dry-run -o {file}.out {file}"),
        format!("merge {file}"),
        format!("merge {file} {file}"),
        format!("shuffle {file}"),
        format!("uniq -c {file}"),
        format!("count --by-count {file}"),
        format!("top 1 {file}"),
    ] {
        let ended = unread("", &words);
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.signal(), Some(SIGPIPE), "{words}: {told}");
        assert_eq!(told, "", "{words}");
        let ended = unread("trap '' PIPE;", &words);
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{words}: {told}");
        assert!(told.contains("Broken pipe"), "{words}: {told}");
    }
    assert_eq!(scratch.names(), ["in", "report"]);
}
