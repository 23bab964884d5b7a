//! `sortmill sort`, as its users meet it.

mod changing;
mod columns;
mod errors;
pub mod gnu;
mod header;
mod killed;
mod kv;
mod local;
mod many;
mod order;
pub mod packed;
mod parts;
mod places;
mod planned;
mod progress;
mod right;
mod side;
pub mod space;
mod temp_packed;
mod temps;
mod trace;
mod until;
mod users;

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::{PROGRAM, Scratch};

/// A program that takes longer than this waits for something that will not come.
const PATIENCE: Duration = Duration::from_secs(120);

/// `sortmill sort` with these words, all output caught, no input.
pub fn sort<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("sort").args(words);
    command.env_remove("TMPDIR");
    caught(command)
}

/// The same command with its output caught and no input. It plans without the figures that were kept of this machine's disks, unless it
/// has a cache of its own.
pub fn caught(mut command: Command) -> Command {
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if command.get_envs().all(|(name, _)| name != "XDG_CACHE_HOME") {
        command.env(
            "XDG_CACHE_HOME",
            concat!(env!("CARGO_TARGET_TMPDIR"), "/no-cache"),
        );
    }
    command
}

/// The words of a line, with `{}` for a path in the scratch folder: `-o {}out {}in`.
pub fn words(scratch: &Scratch, line: &str) -> Vec<String> {
    let folder = format!("{}/", scratch.path.display());
    line.split_whitespace()
        .map(|word| word.replace("{}", &folder))
        .collect()
}

/// Waits for a program, but not for ever.
pub fn finish(child: Child) -> Output {
    let pid = child.id();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    match receiver.recv_timeout(PATIENCE) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            signal(pid, "KILL");
            panic!("the program waits for ever");
        }
    }
}

/// Runs a command to its end.
pub fn run(mut command: Command) -> Output {
    finish(command.spawn().unwrap())
}

/// Runs a command that must succeed.
pub fn run_well(command: Command) -> Output {
    let described = format!("{command:?}");
    let output = run(command);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{described}: {}",
        stderr(&output)
    );
    output
}

/// Runs a command that must fail with exit code 2, nothing on standard output and these words.
pub fn run_badly(command: Command, wanted: &[&str]) -> String {
    let described = format!("{command:?}");
    let output = run(command);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{described}: {text}");
    assert!(output.stdout.is_empty(), "{described}");
    for words in wanted {
        assert!(
            text.contains(words),
            "{described}: {text}\nsays nothing of {words:?}"
        );
    }
    assert!(!text.contains("panicked"), "{described}: {text}");
    text
}

/// Runs a command that reads `input` from a pipe.
pub fn run_on_pipe(command: Command, input: &[u8]) -> Output {
    let mut child = spawn_on_pipe(command);
    let mut pipe = child.stdin.take().unwrap();
    let input = input.to_vec();
    let feeder = std::thread::spawn(move || {
        // A job that fails does not read to the end.
        let _ = pipe.write_all(&input);
    });
    let output = finish(child);
    feeder.join().unwrap();
    output
}

/// Starts a command whose standard input is a pipe.
pub fn spawn_on_pipe(mut command: Command) -> Child {
    command.stdin(Stdio::piped()).spawn().unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Sends a signal.
pub fn signal(pid: u32, name: &str) {
    assert!(signal_if_there(pid, name), "kill -{name} {pid}");
}

/// A program said that it was told to stop, and ended by the signal that told it.
#[track_caller]
pub fn was_stopped_by(output: &Output, name: &str) {
    let said = stderr(output);
    assert_eq!(output.status.signal(), Some(signal_number(name)), "{said}");
    assert!(said.contains("told to stop"), "{name}: {said}");
}

/// What a signal came upon was done, its output in its place: it told its report, and ended well, or, where the signal came
/// before its end, by that signal, so that a shell's loop hears of it too.
pub fn was_done_before(output: &Output, name: &str) {
    let said = stderr(output);
    let by_it = output.status.signal() == Some(signal_number(name));
    assert!(output.status.success() || by_it, "{said}");
    assert!(said.contains("\nproven: "), "{said}");
}

/// The number of a signal (signal(7)).
pub fn signal_number(name: &str) -> i32 {
    let numbers = [
        ("HUP", 1),
        ("INT", 2),
        ("QUIT", 3),
        ("USR1", 10),
        ("USR2", 12),
        ("PIPE", 13),
        ("ALRM", 14),
        ("TERM", 15),
        ("XCPU", 24),
        ("XFSZ", 25),
        ("VTALRM", 26),
        ("PROF", 27),
        ("IO", 29),
    ];
    let found = numbers.iter().find(|(known, _)| *known == name);
    found.unwrap().1
}

/// Sends a signal; `false` where there is no such process any more.
pub fn signal_if_there(pid: u32, name: &str) -> bool {
    let sent = Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .status();
    sent.unwrap().success()
}

/// Waits until `seen` answers something.
pub fn until<T>(what: &str, mut seen: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(value) = seen() {
            return value;
        }
        assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// The names in a folder that begin so.
pub fn names_with(folder: &Path, beginning: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.starts_with(beginning)).collect()
}

/// Waits until a job has a temporary folder here with records in it.
pub fn until_spilled(folder: &Path) -> String {
    until("a spill file", || {
        names_with(folder, "sortmill-").into_iter().find(|name| {
            let spill = std::fs::metadata(folder.join(name).join("spill"));
            spill.is_ok_and(|meta| meta.len() > 0)
        })
    })
}

/// Makes a pipe with a name.
pub fn make_fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success(), "mkfifo");
}

pub fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().unwrap();
    output.stdout.trim_ascii() == b"0"
}

/// About `bytes` bytes of lines whose order is not that of their making.
pub fn text(bytes: usize, seed: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes + 64);
    let mut state = seed;
    while out.len() < bytes {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        let value = state >> 20;
        match value % 16 {
            0 => out.push(b'\n'),
            1 => out.extend(format!("{}\n", value % 100).bytes()),
            2 => out.extend(b"the same line\n"),
            _ => out.extend(format!("{value:x} {}\n", "x".repeat((value % 50) as usize)).bytes()),
        }
    }
    out
}

/// The lines of `input` in order.
pub fn sorted(input: &[u8]) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = input.split_inclusive(|&byte| byte == b'\n').collect();
    lines.sort_by_key(|line| line.strip_suffix(b"\n").unwrap_or(line));
    let mut out = Vec::with_capacity(input.len() + 1);
    for line in lines {
        out.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            out.push(b'\n');
        }
    }
    out
}

/// The same without a word on threads.
pub const LITTLE_MEMORY: &str = "--memory 40MiB";
/// The least memory in which one thread sorts lines, with some to spare.
pub const LITTLE: &str = "--memory 40MiB --threads 1";
