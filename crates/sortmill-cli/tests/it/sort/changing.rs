//! Inputs that change while they are read.
//!
//! The first input is a pipe with a name, so that the job has begun, and knows how long the second one
//! is, before any of it is read.

use std::io::{Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use super::gnu::status;
use super::{caught, finish, make_fifo, names_with, sorted, stderr, text, until, words};
use crate::{PROGRAM, Scratch};

/// Sorts a pipe and then the file `in`, which `change` changes once the job has begun.
fn change_while(scratch: &Scratch, flags: &str, change: impl FnOnce()) -> Output {
    change_while_it_runs(scratch, &format!("sort {flags}"), change)
}

/// The same of another command.
fn change_while_it_runs(scratch: &Scratch, command: &str, change: impl FnOnce()) -> Output {
    let _ = std::fs::remove_file(scratch.path("pipe"));
    make_fifo(&scratch.path("pipe"));
    let line = format!("{command} -T {{}} -o {{}}out {{}}pipe {{}}in");
    let mut command = Command::new(PROGRAM);
    command.args(words(scratch, &line)).env_remove("TMPDIR");
    let child = caught(command).spawn().unwrap();
    let mut pipe = std::fs::File::options()
        .write(true)
        .open(scratch.path("pipe"))
        .unwrap();
    until("the job's beginning", || {
        names_with(&scratch.path, ".out.sortmill-").pop()
    });
    change();
    pipe.write_all(b"from the pipe\n").unwrap();
    drop(pipe);
    let output = finish(child);
    std::fs::remove_file(scratch.path("pipe")).unwrap();
    output
}

fn append(scratch: &Scratch, bytes: &[u8]) {
    let mut file = std::fs::File::options()
        .append(true)
        .open(scratch.path("in"))
        .unwrap();
    file.write_all(bytes).unwrap();
}

#[test]
fn an_input_that_grows_and_must_not() {
    let scratch = Scratch::new("sort-grows-not");
    for flags in [
        "--unchanging",
        "--as-of-start --unchanging",
        "--unchanging -m",
    ] {
        let input = text(100, 11);
        std::fs::write(scratch.path("in"), &input).unwrap();
        std::fs::write(scratch.path("out"), b"old").unwrap();
        let output = change_while(&scratch, flags, || append(&scratch, b"later\n"));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let path = scratch.path("in").display().to_string();
        for word in [
            &path,
            "bytes at the start",
            "--as-of-start",
            &(input.len() + 6).to_string(),
        ] {
            assert!(said.contains(word), "{word}: {said}");
        }
        assert_eq!(std::fs::read(scratch.path("out")).unwrap(), b"old");
    }
    // Records of other formats may be rewritten in place.
    std::fs::write(scratch.path("in"), b"bbaa").unwrap();
    let grows = || append(&scratch, b"cc");
    let output = change_while(&scratch, "--format fixed:2", grows);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert_eq!(scratch.names(), ["in", "out"]);
}

/// A log that others write to, as GNU sort takes it.
#[test]
fn an_input_that_grows_is_taken_as_it_was_at_the_start() {
    let scratch = Scratch::new("sort-grows");
    for bytes in [100, 1_000_000, 70_000_000] {
        let input = text(bytes, 11);
        let wanted = sorted(&[b"from the pipe\n", input.as_slice()].concat());
        for flags in ["--report {}report", "--unchanging --as-of-start -q", "-q"] {
            std::fs::write(scratch.path("in"), &input).unwrap();
            let output = change_while(&scratch, flags, || append(&scratch, b"later\n"));
            let said = stderr(&output);
            assert!(output.status.success(), "{said}");
            assert!(std::fs::read(scratch.path("out")).unwrap() == wanted);
            let is_told = said.matches("in grew by 6 B meanwhile").count();
            assert_eq!(is_told, usize::from(!flags.contains("-q")), "{said}");
        }
        let report = std::fs::read(scratch.path("report")).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        let told = &report["grown"][0];
        assert_eq!(told["bytes"], input.len(), "{told}");
        assert_eq!(told["grown_bytes"], 6, "{told}");
        assert_eq!(scratch.names(), ["in", "out", "report"]);
    }
}

/// What lay there of a line is a line, as the last one of any input is.
#[test]
fn a_line_half_written_at_the_start_is_taken_as_far_as_it_was() {
    let scratch = Scratch::new("sort-grows-half");
    std::fs::write(scratch.path("in"), b"c\na half").unwrap();
    let output = change_while(&scratch, "", || append(&scratch, b" and the rest\nb\n"));
    assert!(output.status.success(), "{}", stderr(&output));
    let out = std::fs::read(scratch.path("out")).unwrap();
    assert_eq!(out, b"a half\nc\nfrom the pipe\n");
}

#[test]
fn every_command_takes_lines_as_they_were_at_the_start() {
    let scratch = Scratch::new("lines-grow");
    for (command, wanted) in [
        ("sort -m", "a\nb\nfrom the pipe\n"),
        ("merge", "a\nb\nfrom the pipe\n"),
        ("sort -r", "from the pipe\nb\na\n"),
        ("uniq", "a\nb\nfrom the pipe\n"),
        ("count", "      1 a\n      1 b\n      1 from the pipe\n"),
        (
            "count --by-count",
            "      1 a\n      1 b\n      1 from the pipe\n",
        ),
        ("top 2", "a\nb\n"),
    ] {
        std::fs::write(scratch.path("in"), b"a\nb\n").unwrap();
        let grows = || append(&scratch, b"later\n");
        let output = change_while_it_runs(&scratch, command, grows);
        assert!(output.status.success(), "{command}: {}", stderr(&output));
        let out = std::fs::read_to_string(scratch.path("out")).unwrap();
        assert_eq!(out, wanted, "{command}");
    }
}

/// Called as `sort`, small and with its output in memory, without a word.
#[test]
fn gnu_sort_says_nothing_of_what_grows() {
    let scratch = Scratch::new("gnu-grows");
    make_fifo(&scratch.path("pipe"));
    std::fs::write(scratch.path("in"), b"b\na\n").unwrap();
    for flags in ["", "-r", "-S 64M", "-m"] {
        let mut command = Command::new(PROGRAM);
        let line = format!("{flags} {{}}pipe {{}}in");
        command.arg0("sort").args(words(&scratch, &line));
        command.env("LC_ALL", "C");
        let child = caught(command).spawn().unwrap();
        let mut looks = 0;
        until("a program that waits for its input", || {
            let sleeps = status(child.id(), "State:")?.starts_with('S');
            looks = if sleeps { looks + 1 } else { 0 };
            (looks > 20).then_some(())
        });
        let mut pipe = std::fs::File::options()
            .write(true)
            .open(scratch.path("pipe"))
            .unwrap();
        append(&scratch, b"later\n");
        pipe.write_all(b"c\n").unwrap();
        drop(pipe);
        let output = finish(child);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(stderr(&output), "", "{flags}");
        let lines = output.stdout.split_inclusive(|&byte| byte == b'\n');
        assert_eq!(lines.count(), 3, "{flags}");
        std::fs::write(scratch.path("in"), b"b\na\n").unwrap();
    }
}

#[test]
fn an_input_that_shrinks_or_is_written_to() {
    let scratch = Scratch::new("sort-shrinks");
    let input = text(1_000_000, 12);
    let path = scratch.path("in").display().to_string();
    let file = || {
        std::fs::File::options()
            .write(true)
            .open(scratch.path("in"))
            .unwrap()
    };
    let cut = || file().set_len(500_000).unwrap();
    let empty = || file().set_len(0).unwrap();
    let overwrite = || {
        let mut file = file();
        file.seek(std::io::SeekFrom::Start(700_000)).unwrap();
        file.write_all(b"something else\n").unwrap();
    };
    let changes: [(&dyn Fn(), &str); 3] = [
        (&cut, "500000"),
        (&empty, "the file ends here now"),
        (&overwrite, "written to while it was read"),
    ];
    for (change, wanted) in changes {
        for flags in ["", "--unchanging"] {
            std::fs::write(scratch.path("in"), &input).unwrap();
            std::fs::write(scratch.path("out"), b"old").unwrap();
            let output = change_while(&scratch, flags, change);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{wanted} {flags}: {said}");
            assert!(said.contains(wanted) && said.contains(&path), "{said}");
            assert_eq!(std::fs::read(scratch.path("out")).unwrap(), b"old");
        }
    }
    assert_eq!(scratch.names(), ["in", "out"]);
}

/// A file that is replaced by another of its name is still the one that was opened.
#[test]
fn an_input_that_is_replaced_is_read_as_it_was() {
    let scratch = Scratch::new("sort-replaced");
    std::fs::write(scratch.path("in"), b"b\na\n").unwrap();
    let output = change_while(&scratch, "", || {
        std::fs::write(scratch.path("new"), b"x\n").unwrap();
        std::fs::rename(scratch.path("new"), scratch.path("in")).unwrap();
    });
    assert!(output.status.success(), "{}", stderr(&output));
    let out = std::fs::read(scratch.path("out")).unwrap();
    assert_eq!(out, b"a\nb\nfrom the pipe\n");
}
