//! `--progress`: what is shown, where nothing is, and that nothing of it stays.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;

use super::{LITTLE, finish, run_well, signal, sort, stderr, text, until, words};
use crate::{PROGRAM, Scratch};

/// A terminal, and what was written to it so far.
struct Terminal {
    seen: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Terminal {
    /// A terminal of so many columns, and the end of it that a program writes to.
    fn new(columns: u16) -> (Self, File) {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
        let theirs = File::options().read(true).write(true).open(name).unwrap();
        let size = Winsize {
            ws_row: 24,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&ours, size).unwrap();
        let seen = Arc::<Mutex<Vec<u8>>>::default();
        let reader = std::thread::spawn({
            let seen = Arc::clone(&seen);
            let mut ours = File::from(ours);
            move || {
                let mut some = [0; 4096];
                // It answers with an error when nobody can write to it any more.
                while let Ok(count @ 1..) = ours.read(&mut some) {
                    seen.lock().unwrap().extend_from_slice(&some[..count]);
                }
            }
        });
        (Self { seen, reader }, theirs)
    }

    fn bytes(&self) -> String {
        String::from_utf8(self.seen.lock().unwrap().clone()).unwrap()
    }

    /// All that was ever written to it, once every program that could write has ended.
    fn end(self) -> String {
        self.reader.join().unwrap();
        String::from_utf8(std::mem::take(&mut *self.seen.lock().unwrap())).unwrap()
    }
}

/// What a terminal shows after `bytes`, line by line. Fails for all but the few things that a line needs.
fn screen(bytes: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut column = 0;
    let mut rest = bytes.chars();
    while let Some(one) = rest.next() {
        let line = lines.last_mut().unwrap();
        match one {
            '\r' => column = 0,
            '\n' => lines.push(String::new()),
            '\x1b' => {
                assert_eq!(
                    (rest.next(), rest.next()),
                    (Some('['), Some('K')),
                    "{bytes:?}"
                );
                line.truncate(column);
            }
            one => {
                assert!(one.is_ascii() && !one.is_ascii_control(), "{bytes:?}");
                line.replace_range(column..line.len().min(column + 1), &one.to_string());
                column += 1;
            }
        }
    }
    lines
}

/// What a line says of a job that has read four bytes. The report speaks of the phase too.
const DRAWN: &str = "distribute 4 B";

/// A job that waits for more input, its standard error a terminal.
struct Slow {
    child: Child,
    pipe: ChildStdin,
    terminal: Terminal,
}

impl Slow {
    fn begin(mut command: Command, columns: u16) -> Self {
        let (terminal, theirs) = Terminal::new(columns);
        command.env("TERM", "xterm").env_remove("NO_COLOR");
        Self::begin_as_is(command, terminal, theirs)
    }

    fn begin_as_is(mut command: Command, terminal: Terminal, theirs: File) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stderr(theirs)
            .spawn()
            .unwrap();
        // It holds the program's end of the terminal.
        drop(command);
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(b"b\na\n").unwrap();
        Self {
            child,
            pipe,
            terminal,
        }
    }

    fn until_drawn(self) -> Self {
        until("a line", || {
            self.terminal.bytes().contains(DRAWN).then_some(())
        });
        self
    }

    /// No more input comes: what the program answers, and what was written to the terminal.
    fn end(self) -> (Output, String) {
        drop(self.pipe);
        (finish(self.child), self.terminal.end())
    }
}

#[test]
fn a_line_is_drawn_and_wiped() {
    let scratch = Scratch::new("progress-line");
    for (color, columns) in [(None, 120), (Some("1"), 120), (None, 24), (None, 0)] {
        let (terminal, theirs) = Terminal::new(columns);
        let mut command = sort(words(&scratch, "-o {}out"));
        command.env("TERM", "xterm").env_remove("NO_COLOR");
        command.envs(color.map(|value| ("NO_COLOR", value)));
        let slow = Slow::begin_as_is(command, terminal, theirs).until_drawn();
        let drawn = screen(&slow.terminal.bytes());
        let line = drawn.last().unwrap();
        assert!(line.starts_with(DRAWN), "{line:?}");
        assert_eq!(line.contains("written 0 MB/s"), columns != 24, "{line:?}");
        assert!(
            columns == 0 || line.len() < usize::from(columns),
            "{line:?}"
        );
        assert!(!line.contains('%') && !line.contains("left"), "{line:?}");
        let (output, bytes) = slow.end();
        assert_eq!(output.status.code(), Some(0), "{bytes}");
        // The report stands where the line stood, and nothing else.
        let shown = screen(&bytes);
        assert!(!shown.iter().any(|line| line.contains(DRAWN)), "{shown:#?}");
        assert!(shown[0].starts_with("sorted "), "{shown:#?}");
        assert_eq!(std::fs::read(scratch.path("out")).unwrap(), b"a\nb\n");
    }
}

#[test]
fn the_line_is_gone_before_an_error_and_after_a_signal() {
    let scratch = Scratch::new("progress-error");
    let line = "--format fixed:100 -o {}out";
    let slow = Slow::begin(sort(words(&scratch, line)), 120).until_drawn();
    let (output, bytes) = slow.end();
    assert_eq!(output.status.code(), Some(2), "{bytes}");
    let shown = screen(&bytes);
    assert!(shown[0].starts_with("sortmill: "), "{shown:#?}");
    assert!(shown.concat().contains("cut off"), "{shown:#?}");
    assert!(!shown.concat().contains(DRAWN), "{shown:#?}");

    let slow = Slow::begin(sort(words(&scratch, "-o {}out")), 120).until_drawn();
    signal(slow.child.id(), "INT");
    let Slow {
        child,
        pipe,
        terminal,
    } = slow;
    assert_eq!(finish(child).status.signal(), Some(2));
    drop(pipe);
    let shown = screen(&terminal.end());
    assert!(shown[0].starts_with("sortmill: "), "{shown:#?}");
    assert!(shown.concat().contains("told to stop"), "{shown:#?}");
    assert_eq!(scratch.names(), Vec::<String>::new());
}

/// Each of these jobs waits as long as one that does draw a line.
#[test]
fn no_line_where_none_belongs() {
    let scratch = Scratch::new("progress-no-line");
    let begin = |line: &str, change: &dyn Fn(&mut Command)| {
        let (terminal, theirs) = Terminal::new(120);
        let mut command = sort(words(&scratch, line));
        command.env("TERM", "xterm").env_remove("NO_COLOR");
        change(&mut command);
        Slow::begin_as_is(command, terminal, theirs)
    };
    let dumb = |command: &mut Command| {
        command.env("TERM", "dumb");
    };
    let bare = |command: &mut Command| {
        command.env_remove("TERM");
    };
    let to_file = |command: &mut Command| {
        command.stdout(File::create(scratch.path("stdout")).unwrap());
    };
    let silent = [
        ("quiet", begin("-q -o {}out1", &|_| {})),
        ("none", begin("--progress none -o {}out2", &|_| {})),
        ("dumb", begin("-o {}out3", &dumb)),
        ("bare", begin("-o {}out4", &bare)),
        // Records go to a pipe, and who reads it may write to the terminal.
        ("pipe", begin("", &|_| {})),
    ];
    let drawn = [
        begin("-o {}out5", &|_| {}),
        begin("-q --progress auto -o {}out6", &|_| {}),
        begin("--until sort", &|_| {}),
        begin("", &to_file),
    ];
    for slow in drawn {
        let (output, bytes) = slow.until_drawn().end();
        assert_eq!(output.status.code(), Some(0), "{bytes}");
    }
    for (what, slow) in silent {
        let (output, bytes) = slow.end();
        assert!(
            !bytes.contains(DRAWN) && !bytes.contains('\x1b'),
            "{what}: {bytes:?}"
        );
        assert_eq!(output.status.code(), Some(0), "{what}: {bytes}");
        if what == "pipe" || what == "standard output" {
            assert_eq!(output.stdout, b"a\nb\n", "{what}");
        }
    }
}

/// A terminal that shows both shows the records as they are.
#[test]
fn records_on_a_terminal_are_not_garbled() {
    let scratch = Scratch::new("progress-records");
    let begin = |line: &str| {
        let (terminal, theirs) = Terminal::new(120);
        let mut command = sort(words(&scratch, line));
        command.env("TERM", "xterm");
        if !line.contains("-o") {
            command.stdout(theirs.try_clone().unwrap());
        }
        Slow::begin_as_is(command, terminal, theirs)
    };
    let jobs = [begin(""), begin("-o /dev/stderr")];
    begin("-o {}out").until_drawn().end();
    for slow in jobs {
        let (output, bytes) = slow.end();
        assert_eq!(output.status.code(), Some(0), "{bytes}");
        let shown = screen(&bytes);
        assert_eq!(shown[..2], ["a", "b"], "{bytes:?}");
        assert!(!bytes.contains('\x1b'), "{bytes:?}");
    }
}

#[test]
fn a_log_gets_whole_lines_and_a_pipe_nothing() {
    let scratch = Scratch::new("progress-plain");
    let begin = |line: &str| {
        let file = scratch.path(&format!("stderr{}", line.len()));
        let mut command = sort(words(&scratch, line));
        command
            .stderr(File::create(&file).unwrap())
            .env("TERM", "xterm");
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(b"b\na\n").unwrap();
        (file, child, pipe)
    };
    let read = |file: &Path| std::fs::read_to_string(file).unwrap();
    let (nothing, nothing_child, nothing_pipe) = begin("-o {}out");
    let (log, log_child, log_pipe) = begin("--progress plain -o {}other");
    until("a line in the log", || {
        (!read(&log).is_empty()).then_some(())
    });
    assert_eq!(read(&nothing), "");
    for (child, pipe) in [(nothing_child, nothing_pipe), (log_child, log_pipe)] {
        drop(pipe);
        assert_eq!(finish(child).status.code(), Some(0));
    }
    let said = read(&log);
    let first = said.lines().next().unwrap();
    assert!(
        first.starts_with("sortmill: distribute 4 B, read 0 MB/s"),
        "{said}"
    );
    assert!(!said.contains(['\r', '\x1b']), "{said:?}");
    assert!(read(&nothing).starts_with("sorted "), "{}", read(&nothing));
}

/// The objects that a program is told.
fn objects(said: &str) -> Vec<Value> {
    let lines = said.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

const PHASES: [&str; 9] = [
    "prepare",
    "generate",
    "distribute",
    "sort",
    "check",
    "sync",
    "verify",
    "probe",
    "done",
];

/// What each object must be beside the one before it, and the last one.
fn check_objects(objects: &[Value]) {
    let place = |object: &Value| {
        PHASES
            .iter()
            .position(|name| object["phase"] == *name)
            .unwrap()
    };
    for pair in objects.windows(2) {
        let grows =
            |value: fn(&Value) -> f64| assert!(value(&pair[0]) <= value(&pair[1]), "{pair:#?}");
        assert!(place(&pair[0]) <= place(&pair[1]), "{pair:#?}");
        grows(|object| object["elapsed_ns"].as_f64().unwrap());
        grows(|object| object["share"].as_f64().unwrap_or(0.0));
        let parts = |object: &Value| object["phases"].as_array().unwrap().clone();
        for (before, after) in parts(&pair[0]).iter().zip(parts(&pair[1])) {
            for field in ["wall_ns", "read_bytes", "written_bytes"] {
                let (before, after) = (before[field].as_u64(), after[field].as_u64());
                assert!(before.unwrap() <= after.unwrap(), "{field}: {pair:#?}");
            }
        }
    }
    for object in objects {
        let share = object["share"].as_f64();
        assert!(
            share.is_none_or(|share| (0.0..=1.0).contains(&share)),
            "{object:#}"
        );
    }
    let last = objects.last().unwrap();
    assert_eq!(last["phase"], "done", "{last:#}");
    assert_eq!(
        (&last["share"], &last["left_ns"]),
        (&1.0.into(), &0.into()),
        "{last:#}"
    );
    for part in last["phases"].as_array().unwrap() {
        assert_eq!(part["read_bytes"], part["read_bytes_expected"], "{last:#}");
        assert_eq!(
            part["written_bytes"], part["written_bytes_expected"],
            "{last:#}"
        );
    }
}

#[test]
fn a_program_follows_a_job_to_its_end() {
    let scratch = Scratch::new("progress-json");
    let input = text(100_000_000, 41);
    std::fs::write(scratch.path("in"), &input).unwrap();
    let line = format!(
        "{LITTLE} -q --progress json --verify -T {{}} --report {{}}report -o {{}}out {{}}in"
    );
    let said = stderr(&run_well(sort(words(&scratch, &line))));
    let objects = objects(&said);
    assert_eq!(objects.len(), said.lines().count(), "{said}");
    assert!(objects.len() > 1, "{said}");
    check_objects(&objects);
    // Every byte the report knows of was told.
    let report = std::fs::read(scratch.path("report")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let last = objects.last().unwrap()["phases"].as_array().unwrap();
    let sum = |field: &str| {
        last.iter()
            .map(|part| part[field].as_u64().unwrap())
            .sum::<u64>()
    };
    let told = |field: &str| report["bytes"][field].as_u64().unwrap();
    let output = std::fs::metadata(scratch.path("out")).unwrap().len();
    assert!(told("temp_written") > 0, "{report:#}");
    assert_eq!(
        sum("read_bytes"),
        told("input") + told("temp_read") + output
    );
    assert_eq!(
        sum("written_bytes"),
        told("temp_written") + told("output_written")
    );
    let names: Vec<_> = last
        .iter()
        .map(|part| part["phase"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["distribute", "sort", "verify"]);
}

/// How much a stream will bring is not known, and nothing is said of it.
#[test]
fn a_stream_has_no_share_before_its_end() {
    let scratch = Scratch::new("progress-stream");
    let mut command = sort(words(&scratch, "--progress json -q -o {}out"));
    let file = scratch.path("stderr");
    command.stderr(File::create(&file).unwrap());
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(b"b\na\n").unwrap();
    let told = || objects(&std::fs::read_to_string(&file).unwrap());
    let read = |object: &Value| object["phases"][0]["read_bytes"].as_u64().unwrap_or(0);
    // Before its end, and long before a chunk is full.
    let first = until("the first bytes", || {
        told().into_iter().find(|object| read(object) == 4)
    });
    assert_eq!(first["phase"], "distribute");
    for field in ["share", "left_ns"] {
        assert!(first[field].is_null(), "{first:#}");
    }
    assert!(
        first["phases"][0]["read_bytes_expected"].is_null(),
        "{first:#}"
    );
    drop(pipe);
    assert_eq!(finish(child).status.code(), Some(0));
    check_objects(&told());
}

#[test]
fn a_program_follows_a_check() {
    let scratch = Scratch::new("progress-check");
    std::fs::write(scratch.path("in"), b"a\nb\nc\n").unwrap();
    let mut command = Command::new(PROGRAM);
    command
        .args(["check", "-q", "--progress", "json"])
        .arg(scratch.path("in"));
    let output = run_well(super::caught(command));
    let objects = objects(&stderr(&output));
    check_objects(&objects);
    let last = objects.last().unwrap();
    assert_eq!(last["phases"][0]["phase"], "check");
    assert_eq!(last["phases"][0]["read_bytes"], 6);
}

/// Test data to one file, whose last block is padded, to several and to a stream: every byte is told, none twice.
#[test]
fn a_program_follows_a_generator() {
    let scratch = Scratch::new("progress-gen");
    for line in [
        "records 123_457 {}out",
        "records --files 5 123_457 {}parts",
        "records 123_457 -",
    ] {
        let mut command = Command::new(PROGRAM);
        command.arg("gen").args(words(&scratch, line));
        command.args(["--progress", "json"]);
        let output = run_well(super::caught(command));
        let objects = objects(&stderr(&output));
        check_objects(&objects);
        let last = objects.last().unwrap();
        let part = &last["phases"][0];
        assert_eq!(part["phase"], "generate", "{last:#}");
        assert_eq!(part["written_bytes"], 12_345_700, "{line}: {last:#}");
        assert_eq!(part["read_bytes"], 0);
    }
    // Nothing is shown where nobody asked, on what is no terminal.
    let mut command = Command::new(PROGRAM);
    command
        .args(["gen"])
        .args(words(&scratch, "records 10 {}out"));
    assert_eq!(stderr(&run_well(super::caught(command))), "");
}

/// A job that fails is never done.
#[test]
fn a_failed_job_does_not_come_to_its_end() {
    let scratch = Scratch::new("progress-failed");
    std::fs::write(scratch.path("in"), [b'x'; 150]).unwrap();
    let line = "--format fixed:100 --progress json -o {}out {}in";
    let said = super::run_badly(sort(words(&scratch, line)), &["cut off"]);
    let objects = objects(&said);
    assert!(!objects.is_empty(), "{said}");
    assert!(
        objects.iter().all(|object| object["phase"] != "done"),
        "{said}"
    );
}
