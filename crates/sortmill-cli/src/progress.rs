//! How far a job is, on standard error: a line that is redrawn, lines for a log, or JSON for a program.
//!
//! In comes a job's [`Progress`], which a thread of its own looks at now and then; it ends with the job, at the
//! first error, or when somebody stops it, and has wiped its line by then. What is shown never goes where
//! data go: no line is drawn on a terminal on which records may appear or on which they are typed.

use std::collections::VecDeque;
use std::io::{IsTerminal, stderr, stdin};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::json;
use sortmill::io::Os;
use sortmill::job::{Input, Output};
use sortmill::progress::{Phase, Progress, Snapshot};
use sortmill::queue::Stop;
use sortmill::text;

use crate::common::{note, say};

/// The flag that several commands have.
#[derive(Args, Clone, Copy, Default, Debug)]
pub struct Flag {
    /// Show how far the job is, on stderr: `auto` redraws a line on a terminal and shows nothing elsewhere,
    /// `plain` writes a line now and then, `json` one object a line. Default: auto; none where -q is given
    #[arg(long, value_name = "HOW", value_enum)]
    progress: Option<How>,
}

/// How people or programs want to see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum How {
    /// A line on a terminal, else nothing
    Auto,
    /// A line every two seconds, then less often
    Plain,
    /// One JSON object a line, twice a second
    Json,
    /// Nothing
    None,
}

impl Flag {
    /// What is shown of a job that reads `inputs` and, unless it has none, writes records to `output`.
    pub fn shown(&self, quiet: bool, inputs: &[Input], output: Option<&Output>) -> Option<Shown> {
        match self.progress {
            None if quiet => None,
            None | Some(How::Auto) => {
                let is_drawn = Line::is_possible() && !types(inputs) && !shows_records(output);
                is_drawn.then(|| Shown::Line(Line::default()))
            }
            Some(How::Plain) => Some(Shown::Plain),
            Some(How::Json) => Some(Shown::Json { goes_on: false }),
            Some(How::None) => None,
        }
    }
}

/// Whether records are typed on a terminal.
fn types(inputs: &[Input]) -> bool {
    inputs.contains(&Input::Stdin) && stdin().is_terminal()
}

/// Whether records may appear on the terminal. Whoever reads a pipe may well write to it.
fn shows_records(output: Option<&Output>) -> bool {
    match output {
        Some(Output::Stdout) => {
            std::fs::metadata("/proc/self/fd/1").is_ok_and(|meta| !meta.is_file())
        }
        Some(Output::Path(path)) => is_our_terminal(path),
        Some(Output::Parts(_)) | None => false,
    }
}

/// Whether `path` is the terminal that standard error goes to.
fn is_our_terminal(path: &Path) -> bool {
    /// `/dev/tty`, whichever terminal that is.
    const TTY: u64 = 0x500;
    let Ok(meta) = std::fs::metadata(path) else {
        return false;
    };
    let ours = rustix::fs::fstat(stderr()).is_ok_and(|stat| stat.st_rdev == meta.rdev());
    meta.file_type().is_char_device() && (ours || meta.rdev() == TTY)
}

/// What is shown.
pub enum Shown {
    /// A line that is redrawn.
    Line(Line),
    /// Lines for a log.
    Plain,
    /// Lines for a program, and whether another job follows, so that the end of this one is none.
    Json { goes_on: bool },
}

impl Shown {
    /// The same for the first of two jobs.
    pub fn of_first(self) -> Self {
        match self {
            Self::Json { .. } => Self::Json { goes_on: true },
            other => other,
        }
    }
}

/// Does `work` and shows meanwhile how far `progress` says it is; nothing without both.
pub fn show<T>(
    shown: Option<Shown>,
    progress: Option<&Arc<Progress>>,
    os: &dyn Os,
    stop: &Stop,
    work: impl FnOnce() -> T,
) -> T {
    let (Some(shown), Some(progress)) = (shown, progress) else {
        return work();
    };
    let end = Arc::new(End::default());
    stop.on_stop({
        let end = Arc::clone(&end);
        move || end.come()
    });
    std::thread::scope(|threads| {
        let _ended = Ended(&end);
        // Where no thread is left, the job is done without words.
        let _ = std::thread::Builder::new().spawn_scoped(threads, || {
            Teller::new(shown, &say).tell_until(&end, || progress.now(os));
        });
        work()
    })
}

/// The end of a job, for whom waits for it.
#[derive(Default)]
struct End {
    has_come: Mutex<bool>,
    comes: Condvar,
}

impl End {
    fn come(&self) {
        *self
            .has_come
            .lock()
            .unwrap_or_else(|poison| poison.into_inner()) = true;
        self.comes.notify_all();
    }

    /// Waits for it, but not longer than `time`. Whether it has come.
    fn wait(&self, time: Duration) -> bool {
        let has_come = self
            .has_come
            .lock()
            .unwrap_or_else(|poison| poison.into_inner());
        let waited = self
            .comes
            .wait_timeout_while(has_come, time, |has_come| !*has_come);
        *waited.unwrap_or_else(|poison| poison.into_inner()).0
    }
}

/// Brings the end when the job is over, be it by a panic.
struct Ended<'a>(&'a End);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.come();
    }
}

/// A line is drawn from then on: nobody waits for shorter jobs.
const LINE_FROM_NS: u64 = 1_000_000_000;
/// How often it is drawn.
const LINE_EVERY: Duration = Duration::from_millis(200);
/// How often a program is told.
const JSON_EVERY: Duration = Duration::from_millis(500);
/// How often a log is told, at first and at least: else each tenth of the time that has passed.
const PLAIN_EVERY_NS: (u64, u64) = (2_000_000_000, 60_000_000_000);
/// Rates are those of so much time.
const RATES_NS: u64 = 3_000_000_000;

struct Teller<'s> {
    shown: Shown,
    /// What takes a program's lines.
    say: &'s dyn Fn(&str),
    /// What was seen in the last seconds, of one phase.
    seen: VecDeque<Snapshot>,
    /// When a log was told last.
    told_ns: u64,
}

impl<'s> Teller<'s> {
    fn new(shown: Shown, say: &'s dyn Fn(&str)) -> Self {
        Self {
            shown,
            say,
            seen: VecDeque::new(),
            told_ns: 0,
        }
    }

    fn tell_until(&mut self, end: &End, mut now: impl FnMut() -> Snapshot) {
        let every = match self.shown {
            Shown::Line(_) | Shown::Plain => LINE_EVERY,
            Shown::Json { .. } => JSON_EVERY,
        };
        let mut snapshot = now();
        loop {
            // The end is told once and below, also where the job is over before this thread first looks.
            if snapshot.phase != Phase::Done {
                self.tell(&snapshot);
            }
            let has_ended = end.wait(every);
            snapshot = now();
            if has_ended {
                break;
            }
        }
        match &mut self.shown {
            Shown::Line(line) => line.wipe(),
            Shown::Json { goes_on: false } if snapshot.phase == Phase::Done => self.tell(&snapshot),
            Shown::Plain | Shown::Json { .. } => {}
        }
    }

    fn tell(&mut self, snapshot: &Snapshot) {
        let rates = self.rates(snapshot);
        let elapsed_ns = snapshot.elapsed_ns;
        match &mut self.shown {
            Shown::Line(line) => {
                if elapsed_ns >= LINE_FROM_NS {
                    line.draw(&pieces(snapshot, &rates));
                }
            }
            Shown::Plain => {
                let (least, most) = PLAIN_EVERY_NS;
                if elapsed_ns - self.told_ns >= (elapsed_ns / 10).clamp(least, most) {
                    self.told_ns = elapsed_ns;
                    note(&pieces(snapshot, &rates).join(", "));
                }
            }
            Shown::Json { .. } => (self.say)(&json_line(snapshot, &rates)),
        }
    }

    /// The rates of the last seconds.
    fn rates(&mut self, snapshot: &Snapshot) -> Rates {
        let is_over = |seen: &Snapshot| seen.phase != snapshot.phase;
        if self.seen.back().is_some_and(is_over) {
            let last = self.seen.pop_back();
            self.seen.clear();
            self.seen.extend(last);
        }
        while self
            .seen
            .get(1)
            .is_some_and(|seen| seen.elapsed_ns + RATES_NS <= snapshot.elapsed_ns)
        {
            self.seen.pop_front();
        }
        let (read_bytes, written_bytes, ns) = match self.seen.front() {
            Some(earlier) => snapshot.since(earlier),
            None => (0, 0, 0),
        };
        self.seen.push_back(snapshot.clone());
        let needed_s = snapshot
            .disk
            .map(|disk| disk.needed_s(read_bytes, written_bytes));
        Rates {
            read_bytes,
            written_bytes,
            ns,
            disk_share: needed_s
                .filter(|_| ns > 0)
                .map(|needed_s| needed_s / (ns as f64 / 1e9)),
        }
    }
}

/// Bytes moved in a stretch of time.
struct Rates {
    read_bytes: u64,
    written_bytes: u64,
    ns: u64,
    /// The part of the time in which the disk, as it was measured, could have done the same.
    disk_share: Option<f64>,
}

/// What there is to say, most important first.
fn pieces(snapshot: &Snapshot, rates: &Rates) -> Vec<String> {
    let mut pieces = Vec::new();
    let phase = snapshot.phase.name();
    match snapshot.share {
        // All is there only when it has its name.
        Some(share) => pieces.push(format!("{phase} {}", text::percent(share.min(0.99)))),
        None => {
            let read: u64 = snapshot.parts.iter().map(|part| part.read_bytes).sum();
            pieces.push(format!("{phase} {}", text::bytes(read)));
        }
    }
    if let Some(left_ns) = snapshot.left_ns() {
        pieces.push(format!("{} left", text::about(left_ns)));
    }
    if rates.ns > 0 {
        if snapshot.phase != Phase::Generate {
            pieces.push(format!("read {}", text::rate(rates.read_bytes, rates.ns)));
        }
        pieces.push(format!(
            "written {}",
            text::rate(rates.written_bytes, rates.ns)
        ));
    }
    if let Some(share) = rates.disk_share {
        pieces.push(format!("{} of what the disk gives", text::percent(share)));
    }
    pieces
}

/// One object, as docs/progress.md describes it.
fn json_line(snapshot: &Snapshot, rates: &Rates) -> String {
    let per_s = |bytes: u64| match rates.ns {
        0 => None,
        ns => Some((bytes as f64 * 1e9 / ns as f64) as u64),
    };
    let object = json!({
        "phase": snapshot.phase,
        "elapsed_ns": snapshot.elapsed_ns,
        "left_ns": snapshot.left_ns(),
        "share": snapshot.share,
        "read_bytes_per_s": per_s(rates.read_bytes),
        "written_bytes_per_s": per_s(rates.written_bytes),
        "disk_share": rates.disk_share,
        "phases": snapshot.parts,
    });
    format!("{object}\n")
}

/// A line at the bottom of the terminal that standard error goes to. Without colour.
#[derive(Default)]
pub struct Line {
    is_drawn: bool,
}

impl Line {
    /// Whether a line can be redrawn on standard error.
    pub fn is_possible() -> bool {
        let terminal = std::env::var_os("TERM").unwrap_or_default();
        stderr().is_terminal() && !terminal.is_empty() && terminal != "dumb"
    }

    /// Draws as many of `pieces`, from the first on, as the terminal is wide.
    pub fn draw(&mut self, pieces: &[String]) {
        if !is_in_foreground() {
            return;
        }
        let size = rustix::termios::tcgetwinsize(stderr());
        let columns = size.map_or(0, |size| usize::from(size.ws_col));
        // A character in the last column would begin a new line on some.
        let room = if columns == 0 { 79 } else { columns - 1 };
        self.is_drawn = true;
        say(&format!("\r{}\x1b[K", fitting(pieces, room)));
    }

    /// Leaves the terminal as it was.
    pub fn wipe(&mut self) {
        if std::mem::take(&mut self.is_drawn) && is_in_foreground() {
            say("\r\x1b[K");
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.wipe();
    }
}

/// Whether the terminal is this process's to write to now; one that controls nobody is.
fn is_in_foreground() -> bool {
    let group = rustix::termios::tcgetpgrp(stderr());
    group.is_ok_and(|group| group == rustix::process::getpgrp()) || group.is_err()
}

/// The first of `pieces` that fit into `room` characters, all of them ASCII.
fn fitting(pieces: &[String], room: usize) -> String {
    let mut line = String::new();
    for piece in pieces {
        let comma = if line.is_empty() { "" } else { ", " };
        if line.len() + comma.len() + piece.len() > room {
            break;
        }
        line += comma;
        line += piece;
    }
    line
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn what_is_less_important_is_left_out() {
        let pieces = ["sort 42 %", "12 s left", "read 640 MB/s"].map(String::from);
        for (room, expected) in [
            (80, "sort 42 %, 12 s left, read 640 MB/s"),
            (35, "sort 42 %, 12 s left, read 640 MB/s"),
            (34, "sort 42 %, 12 s left"),
            (20, "sort 42 %, 12 s left"),
            (19, "sort 42 %"),
            (8, ""),
            (0, ""),
        ] {
            assert_eq!(fitting(&pieces, room), expected, "{room}");
        }
    }

    /// A short job is over before the thread that tells of it first looks, and its end was told twice then.
    #[test]
    fn the_end_is_told_once_however_soon_it_comes() {
        let snapshot = |phase: Phase| Snapshot {
            elapsed_ns: 1,
            phase,
            parts: Vec::new(),
            share: None,
            disk: None,
            work: None,
        };
        let told = |goes_on: bool, phases: &[Phase]| -> Vec<String> {
            let (end, told) = (End::default(), RefCell::new(Vec::new()));
            let mut looks = phases.iter();
            let say = |line: &str| {
                let object: serde_json::Value = serde_json::from_str(line).unwrap();
                let phase = object["phase"].as_str().unwrap().to_owned();
                told.borrow_mut().push(phase);
            };
            Teller::new(Shown::Json { goes_on }, &say).tell_until(&end, || {
                end.come();
                snapshot(*looks.next().unwrap())
            });
            told.into_inner()
        };
        let (sort, done) = (Phase::Sort, Phase::Done);
        assert_eq!(told(false, &[done, done]), ["done"]);
        assert_eq!(told(false, &[sort, done]), ["sort", "done"]);
        assert_eq!(told(true, &[done, done]), [""; 0]);
        assert_eq!(told(true, &[sort, done]), ["sort"]);
        // It failed.
        assert_eq!(told(false, &[sort, sort]), ["sort"]);
    }
}
