//! Readers that leave, and how fast a small input is there.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use super::super::{finish, signal, sort, spawn_on_pipe, was_stopped_by};
use super::{Both, DATA};

#[test]
fn a_reader_that_leaves_is_no_word_worth() {
    let both = Both::new("gnu-reader", DATA);
    both.agree("seq 300000 | sort -r | head -1; echo ${PIPESTATUS[@]:1}");
    both.agree("seq 300000 > n; sort n | head -2; echo ${PIPESTATUS[@]}; rm n");
    both.agree("seq 300000 > n; sort --debug n | head -2; echo ${PIPESTATUS[@]}; rm n");
}

#[test]
fn a_job_without_a_reader_ends_by_the_signal_that_says_so() {
    let mut child = spawn_on_pipe(sort(["-q"]));
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"b\na\n").unwrap();
    drop(input);
    let output = finish(child);
    assert_eq!(output.status.signal(), Some(13));
    assert!(output.stderr.is_empty());
}

/// What the kernel says of a process, behind `name`.
pub fn status(pid: u32, name: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().to_owned())
}

#[test]
fn a_check_is_interrupted_like_a_small_sort() {
    for flag in ["-c", "-q"] {
        let mut command = sort([flag]);
        command.stdout(Stdio::null());
        let child = spawn_on_pipe(command);
        let pid = child.id();
        super::super::until("the program to wait for its input", || {
            let caught = u64::from_str_radix(&status(pid, "SigCgt:")?, 16).ok()?;
            (caught & 1 << 14 != 0).then_some(())
        });
        signal(pid, "TERM");
        let output = finish(child);
        was_stopped_by(&output, "TERM");
    }
}

#[test]
fn what_has_become_too_large_to_be_small_is_interrupted() {
    let mut child = spawn_on_pipe(sort(["-q", "--memory", "64MiB"]));
    let pid = child.id();
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, &b"line\n".repeat(2_000_000)).unwrap();
    super::super::until("threads", || {
        let count: u32 = status(pid, "Threads:")?.parse().ok()?;
        (count > 1).then_some(())
    });
    signal(pid, "TERM");
    let output = finish(child);
    drop(input);
    was_stopped_by(&output, "TERM");
}
