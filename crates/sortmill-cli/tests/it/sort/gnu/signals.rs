//! Signals, as whoever starts programs sees them: in the status, and in those that it has ignored.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};

use super::super::{
    caught, finish, signal, sort, spawn_on_pipe, stderr, until, was_stopped_by, words,
};
use super::readers::status;
use crate::{PROGRAM, Scratch};

/// A child that waits for its input with signals noted, after `trap` in a shell that becomes it.
fn waiting(trap: &str, line: &str) -> Child {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("{trap} exec {PROGRAM} {line}")]);
    let child = spawn_on_pipe(caught(command));
    until("the program to wait for its input", || {
        let caught = u64::from_str_radix(&status(child.id(), "SigCgt:")?, 16).ok()?;
        // Of all that are noted the last one.
        (caught & 1 << (29 - 1) != 0).then_some(())
    });
    child
}

/// A shell that runs a program in a loop ends the loop when the program died of Ctrl-C, and goes on when it exited.
#[test]
fn every_command_ends_by_the_signal_that_ended_its_job() {
    for line in [
        "sort",
        "sort -q",
        "sort -c",
        "sort --debug",
        "uniq",
        "count",
        "count --by-count",
        "top 3",
        "shuffle",
        "merge",
        "check",
    ] {
        for name in ["INT", "TERM", "HUP"] {
            let child = waiting("", line);
            signal(child.id(), name);
            was_stopped_by(&finish(child), name);
        }
    }
}

#[test]
fn what_the_caller_ignores_stays_ignored() {
    let names = ["INT", "TERM", "HUP", "QUIT", "PIPE", "ALRM"];
    for line in ["sort -q", "sort --memory 64MiB"] {
        let mut child = waiting(&format!("trap '' {};", names.join(" ")), line);
        for name in names {
            signal(child.id(), name);
        }
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(b"b\na\n").unwrap();
        drop(pipe);
        let output = finish(child);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(output.stdout, b"a\nb\n");
    }
}

/// What waits for its reader and hears nothing is ended by a signal that comes later than the first.
#[test]
fn a_later_signal_ends_what_does_not_hear_the_first() {
    let scratch = Scratch::new("gnu-later-signal");
    let lines: Vec<u8> = (0..200_000)
        .flat_map(|number| format!("{number}\n").into_bytes())
        .collect();
    std::fs::write(scratch.path("in"), lines).unwrap();
    let mut child = sort(words(&scratch, "--debug {}in")).spawn().unwrap();
    let mut pipe = child.stdout.take().unwrap();
    pipe.read_exact(&mut [0]).unwrap();
    signal(child.id(), "TERM");
    until("the end by another signal", || {
        signal(child.id(), "INT");
        status(child.id(), "State:")?.starts_with('Z').then_some(())
    });
    let output = finish(child);
    assert_eq!(output.status.signal(), Some(2), "{}", stderr(&output));
    drop(pipe);
}
