//! Where input comes from and output goes to: files, links, pipes, devices, memory.

use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;

use super::{
    LITTLE, finish, make_fifo, names_with, run_on_pipe, run_well, signal, signal_number, sort,
    sorted, spawn_on_pipe, stderr, text, until, words,
};
use crate::Scratch;
use crate::readers::SIGPIPE;

#[test]
fn the_output_may_be_an_input() {
    let scratch = Scratch::new("sort-onto");
    for bytes in [0, 5, 100_000, 60_000_000] {
        let input = text(bytes, 6);
        std::fs::write(scratch.path("a"), &input).unwrap();
        std::fs::write(scratch.path("b"), b"the other\n").unwrap();
        let line = format!("{LITTLE} -o {{}}a {{}}a {{}}b");
        run_well(sort(words(&scratch, &line)));
        let wanted = sorted(&[&input, b"the other\n".as_slice()].concat());
        assert!(std::fs::read(scratch.path("a")).unwrap() == wanted);
        assert_eq!(scratch.names(), ["a", "b"]);
    }
}

#[test]
fn a_link_is_followed_and_mode_and_owner_kept() {
    let scratch = Scratch::new("sort-link");
    std::fs::create_dir(scratch.path("far")).unwrap();
    std::fs::write(scratch.path("far/real"), b"b\na\n").unwrap();
    let mode = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(scratch.path("far/real"), mode).unwrap();
    if super::is_root() {
        std::os::unix::fs::chown(scratch.path("far/real"), Some(12345), Some(54321)).unwrap();
    }
    let before = std::fs::metadata(scratch.path("far/real")).unwrap();
    std::os::unix::fs::symlink("far/real", scratch.path("link")).unwrap();
    std::os::unix::fs::symlink("link", scratch.path("link to link")).unwrap();
    let mut command = sort(["-o"]);
    command.arg(scratch.path("link to link"));
    command.arg(scratch.path("link"));
    run_well(command);
    assert_eq!(std::fs::read(scratch.path("far/real")).unwrap(), b"a\nb\n");
    let after = std::fs::metadata(scratch.path("far/real")).unwrap();
    let of = |meta: &std::fs::Metadata| (meta.mode(), meta.uid(), meta.gid());
    assert_eq!(of(&after), of(&before));
    for link in ["link", "link to link"] {
        assert!(
            std::fs::symlink_metadata(scratch.path(link))
                .unwrap()
                .is_symlink()
        );
    }
    // One that leads nowhere yet makes what it leads to.
    std::os::unix::fs::symlink("far/new", scratch.path("dangling")).unwrap();
    run_well(sort(words(&scratch, "-o {}dangling {}far/real")));
    assert_eq!(std::fs::read(scratch.path("far/new")).unwrap(), b"a\nb\n");
    assert_eq!(scratch.names(), ["dangling", "far", "link", "link to link"]);
}

#[test]
fn standard_output_may_be_a_file_that_is_appended_to() {
    let scratch = Scratch::new("sort-append");
    std::fs::write(scratch.path("in"), b"b\na\n").unwrap();
    std::fs::write(scratch.path("out"), b"before\n").unwrap();
    let file = std::fs::File::options()
        .append(true)
        .open(scratch.path("out"))
        .unwrap();
    let mut command = sort(words(&scratch, "{}in"));
    command.stdout(file);
    run_well(command);
    let out = std::fs::read(scratch.path("out")).unwrap();
    assert_eq!(out, b"before\na\nb\n");
}

#[test]
fn a_reader_that_leaves_ends_the_job_and_nothing_is_left() {
    let scratch = Scratch::new("sort-broken-pipe");
    std::fs::write(scratch.path("in"), text(60_000_000, 7)).unwrap();
    let line = format!("{LITTLE} -T {{}} {{}}in");
    let mut child = sort(words(&scratch, &line)).spawn().unwrap();
    let mut beginning = [0; 1000];
    let mut pipe = child.stdout.take().unwrap();
    pipe.read_exact(&mut beginning).unwrap();
    drop(pipe);
    let output = finish(child);
    assert_eq!(output.status.signal(), Some(SIGPIPE));
    assert_eq!(stderr(&output), "");
    assert_eq!(scratch.names(), ["in"]);
}

#[test]
fn pipes_with_names_and_devices() {
    let scratch = Scratch::new("sort-fifo");
    let input = text(3_000_000, 8);
    make_fifo(&scratch.path("from"));
    make_fifo(&scratch.path("to"));
    let child = sort(words(&scratch, "-o {}to {}from")).spawn().unwrap();
    let (from, to) = (scratch.path("from"), scratch.path("to"));
    let feeder = {
        let input = input.clone();
        std::thread::spawn(move || std::fs::write(from, input).unwrap())
    };
    let reader = std::thread::spawn(move || std::fs::read(to).unwrap());
    let output = finish(child);
    assert!(output.status.success(), "{}", stderr(&output));
    feeder.join().unwrap();
    assert!(reader.join().unwrap() == sorted(&input));

    let output = run_on_pipe(sort(["-o", "/dev/null"]), &input);
    assert!(output.status.success(), "{}", stderr(&output));
    let output = run_on_pipe(sort(["-o", "/dev/stdout", "/dev/stdin"]), &input);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(output.stdout == sorted(&input));
    assert_eq!(scratch.names(), ["from", "to"]);
}

#[test]
fn a_pipe_without_the_other_end_can_be_interrupted() {
    let scratch = Scratch::new("sort-fifo-alone");
    make_fifo(&scratch.path("pipe"));
    std::fs::write(scratch.path("in"), b"b\na\n").unwrap();
    for line in ["-o {}pipe {}in", "-o {}out {}pipe"] {
        for name in ["TERM", "INT"] {
            let child = sort(words(&scratch, line)).spawn().unwrap();
            until_it_sleeps(child.id());
            signal(child.id(), name);
            let output = finish(child);
            let ended_by = output.status.signal();
            assert_eq!(ended_by, Some(signal_number(name)), "{line}");
            let said = stderr(&output);
            assert!(
                said.contains("told to stop") || said.contains("nterrupted"),
                "{said}"
            );
            assert_eq!(scratch.names(), ["in", "pipe"], "{line}");
        }
    }
}

/// Waits until all threads of a process wait for something, several looks in a row.
pub fn until_it_sleeps(pid: u32) {
    let mut looks = 0;
    until("a process that waits", || {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        let states: Vec<String> = tasks
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok())
            .filter_map(|stat| Some(stat.rsplit_once(") ")?.1[..1].to_owned()))
            .collect();
        // The thread that waits for signals is there once they are caught.
        let caught = states.len() > 1;
        looks = if caught && states.iter().all(|state| state == "S") {
            looks + 1
        } else {
            0
        };
        (looks > 20).then_some(())
    });
}

/// A reader that stops in the middle must not keep a job from hearing signals.
#[test]
fn a_reader_that_stalls_does_not_keep_signals_out() {
    let scratch = Scratch::new("sort-stalled");
    std::fs::write(scratch.path("in"), text(5_000_000, 9)).unwrap();
    for bytes in [0, 1, 5000, 70_000] {
        let mut child = sort(words(&scratch, "{}in")).spawn().unwrap();
        let mut pipe = child.stdout.take().unwrap();
        let mut beginning = vec![0; bytes];
        pipe.read_exact(&mut beginning).unwrap();
        until_it_sleeps(child.id());
        signal(child.id(), "TERM");
        let output = finish(child);
        assert_eq!(output.status.signal(), Some(15), "after {bytes} bytes");
        drop(pipe);
    }
}

#[test]
fn files_in_memory() {
    let folder = std::path::Path::new("/dev/shm");
    if !folder.is_dir() {
        println!("skipped: no /dev/shm");
        return;
    }
    let scratch = Scratch {
        path: folder.join(format!("sortmill-it-{}", std::process::id())),
    };
    std::fs::create_dir(&scratch.path).unwrap();
    let input = text(70_000_000, 10);
    let wanted = sorted(&input);
    std::fs::write(scratch.path("in"), &input).unwrap();
    for flags in ["", "--io posix", "--no-direct"] {
        let line = format!("{LITTLE} {flags} -T {{}} -o {{}}out {{}}in");
        run_well(sort(words(&scratch, &line)));
        assert!(std::fs::read(scratch.path("out")).unwrap() == wanted);
        assert_eq!(scratch.names(), ["in", "out"]);
    }
}

#[test]
fn the_temporary_folder_is_chosen_well() {
    let scratch = Scratch::new("sort-tmpdir");
    std::fs::create_dir(scratch.path("tmp")).unwrap();
    std::fs::write(scratch.path("in"), b"a\n").unwrap();
    let chosen = |line: &str, tmpdir: Option<&str>| {
        let mut command = sort(words(&scratch, &format!("--dry-run {line} {{}}in")));
        if let Some(folder) = tmpdir {
            command.env("TMPDIR", folder);
        }
        let plan = String::from_utf8(run_well(command).stdout).unwrap();
        let line = plan
            .lines()
            .find_map(|line| line.strip_prefix("temporary folder "));
        line.unwrap().to_owned()
    };
    let tmp = scratch.path("tmp").display().to_string();
    let here = scratch.path.display().to_string();
    assert_eq!(chosen("-o {}out", Some(&tmp)), tmp);
    assert_eq!(chosen("-o {}out", None), here);
    assert_eq!(chosen("-o {}out", Some("")), here);
    // One that is not there ended jobs that had no use for it.
    let missing = format!("{tmp}/missing");
    assert_eq!(chosen("-o {}out", Some(&missing)), here);
    assert_eq!(chosen("", Some(&missing)), "/var/tmp");
    assert_eq!(chosen("-T {}tmp -o {}out", Some("/var/tmp")), tmp);
    assert_eq!(chosen("", None), "/var/tmp");
    if std::path::Path::new("/dev/shm").is_dir() {
        assert_eq!(chosen("-o {}out", Some("/dev/shm")), here);
        assert_eq!(chosen("", Some("/dev/shm")), "/var/tmp");
    }
}

/// What is written is under another name until it is whole.
#[test]
fn the_old_output_is_there_until_the_new_one_is_whole() {
    let scratch = Scratch::new("sort-old");
    std::fs::write(scratch.path("out"), b"old").unwrap();
    let mut child = spawn_on_pipe(sort(words(&scratch, "-T {} -o {}out")));
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(b"b\na\n").unwrap();
    until("an output under a temporary name", || {
        names_with(&scratch.path, ".out.sortmill-").pop()
    });
    assert_eq!(std::fs::read(scratch.path("out")).unwrap(), b"old");
    let mode = |name: &str| std::fs::metadata(scratch.path(name)).unwrap().mode() & 0o777;
    let temporary = names_with(&scratch.path, ".out.sortmill-").pop().unwrap();
    assert_eq!(mode(&temporary), 0o600, "as private as can be until then");
    drop(pipe);
    let output = finish(child);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(std::fs::read(scratch.path("out")).unwrap(), b"a\nb\n");
    assert_eq!(scratch.names(), ["out"]);
}

/// What the process has open is written on where that has come to: its name was given to another file once, and of one without a
/// name the output was lost.
#[test]
fn an_open_file_is_written_to_and_not_replaced() {
    let scratch = Scratch::new("sort-open");
    std::fs::write(scratch.path("in"), b"b\na\n").unwrap();
    let line = "sort() { \"$SORTMILL\" sort -q \"$@\"; }; ";
    for (name, redirected) in [
        ("/dev/stdout", ""),
        ("/dev/fd/1", ""),
        ("/proc/self/fd/3", "3>&1"),
    ] {
        for unlinked in ["", "rm log; "] {
            let line = format!(
                "{line} exec 4> log 5< log; {unlinked}{{ echo 1; sort -o {name} in {redirected}; echo 2; }} >&4; cat <&5"
            );
            let mut bash = std::process::Command::new("bash");
            bash.args(["-c", &line]).current_dir(&scratch.path);
            bash.env("SORTMILL", crate::PROGRAM);
            let output = run_well(super::caught(bash));
            assert_eq!(output.stdout, b"1\na\nb\n2\n", "{name} {unlinked}");
        }
    }
    assert_eq!(scratch.names(), ["in"]);
}

/// A socket, as a pipe without a reader, cannot be opened, and was waited for like one.
#[test]
fn a_socket_is_no_output() {
    let scratch = Scratch::new("sort-socket");
    std::fs::write(scratch.path("in"), b"b\na\n").unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(scratch.path("socket")).unwrap();
    let command = sort(words(&scratch, "-q -o {}socket {}in"));
    super::run_badly(command, &["socket: opening the output"]);
}
