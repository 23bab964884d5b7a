//! As GNU's `sort`: each command line is run twice in a shell, once with the system's `sort` and once with a `sort` in
//! front of it that is our program, each in a folder of its own with the same files. Standard output, exit status,
//! whether anything is said on standard error, and the files that are there afterwards must be the same.

mod annotated;
mod closed;
mod files;
mod kernel;
mod long;
mod merged;
mod orders;
mod pipelines;
mod programs;
pub mod random;
mod readers;
mod refusals;
mod signals;
mod words;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub use readers::status;

use super::{caught, run, stderr};
use crate::{PROGRAM, Scratch};

/// The two sides, and the files that both begin with.
pub struct Both {
    scratch: Scratch,
    data: BTreeMap<PathBuf, Vec<u8>>,
}

/// What is seen of one run.
#[derive(PartialEq, Eq)]
struct Seen {
    status: Option<i32>,
    stdout: Vec<u8>,
    is_told: bool,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Both {
    /// Both begin with `data`, files by their names in the folder.
    pub fn new(test: &str, data: &[(&str, &[u8])]) -> Self {
        let version = run(caught(command(
            Path::new("/nowhere"),
            Path::new("."),
            "sort --version",
        )));
        let version = String::from_utf8_lossy(&version.stdout).into_owned();
        assert!(
            version.contains("GNU coreutils"),
            "these tests need GNU sort: {version}"
        );
        let scratch = Scratch::new(test);
        std::fs::create_dir(scratch.path("bin")).unwrap();
        std::os::unix::fs::symlink(PROGRAM, scratch.path("bin/sort")).unwrap();
        let data = data
            .iter()
            .map(|(name, bytes)| (PathBuf::from(name), bytes.to_vec()));
        Self {
            data: data.collect(),
            scratch,
        }
    }

    /// Runs `script` on both sides, which must agree.
    #[track_caller]
    pub fn agree(&self, script: &str) {
        let [(theirs, their_words), (ours, our_words)] =
            ["theirs", "ours"].map(|side| self.see(side, script));
        if theirs == ours {
            return;
        }
        let show = |seen: &Seen| {
            let stdout = String::from_utf8_lossy(&seen.stdout[..seen.stdout.len().min(2000)]);
            let files: Vec<_> = seen
                .files
                .iter()
                .map(|(name, bytes)| (name, bytes.len()))
                .collect();
            format!("exit {:?}, files {files:?}, output:\n{stdout}", seen.status)
        };
        panic!(
            "{script}\n--- GNU sort: {}\n{their_words}\n--- ours: {}\n{our_words}",
            show(&theirs),
            show(&ours)
        );
    }

    /// Runs `script` on our side alone.
    pub fn ours(&self, script: &str) -> Output {
        let folder = self.fresh("ours");
        run(caught(command(&self.scratch.path("bin"), &folder, script)))
    }

    fn see(&self, side: &str, script: &str) -> (Seen, String) {
        let folder = self.fresh(side);
        let first = match side {
            "ours" => self.scratch.path("bin"),
            _ => PathBuf::from("/nowhere"),
        };
        let output = run(caught(command(&first, &folder, script)));
        let words = stderr(&output);
        let seen = Seen {
            status: output.status.code(),
            stdout: output.stdout,
            is_told: !words.is_empty(),
            files: files_in(&folder),
        };
        (seen, words)
    }

    fn fresh(&self, side: &str) -> PathBuf {
        let folder = self.scratch.path(side);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        for (name, bytes) in &self.data {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        folder
    }
}

/// A shell in `folder` that runs `script` and finds programs in `first` first.
fn command(first: &Path, folder: &Path, script: &str) -> Command {
    let path = std::env::var("PATH").unwrap();
    let mut command = Command::new("bash");
    command.args(["-c", &format!("set -o pipefail\n{script}")]);
    command.env("PATH", format!("{}:{path}", first.display()));
    command.env("LC_ALL", "C").current_dir(folder);
    for name in ["TMPDIR", "POSIXLY_CORRECT", "_POSIX2_VERSION"] {
        command.env_remove(name);
    }
    command
}

fn files_in(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.strip_prefix(folder).unwrap().to_owned();
                    files.insert(name, std::fs::read(path).unwrap());
                }
            }
        }
    }
    files
}

/// Files in which the traps of sorting lie.
pub const DATA: &[(&str, &[u8])] = &[
    ("words", b"banana\nApple\n  cherry\napple\n\tdate\nBanana\n\nzebra-1\nzebra 2\nzebra_3\n~tilde\nbanana\n"),
    ("numbers", b"10\n9\n-1\n-10\n+5\n007\n7\n0.5\n.5\n-0\n0\n1,000\n1e3\n0x1F\ninf\n-inf\nnan\n\nabc\n 3\n3 \n\
        1.50\n1.5\n99999999999999999999999\n"),
    ("table", b"carol\t30\tx\nalice\t4\ty\nbob\t30\ta\nalice\t30\tz\n\t\t\ndave\n bob\t5\tq\n"),
    ("colons", b"root:x:0:0::/root\nsync:x:4:65534::/bin\nbin:x:2:2::\ngames:x:5:60:games:/usr/games\n::::::\n"),
    ("human", b"1K\n2M\n900\n1.5G\n3k\n0\n-2K\n10K\n1023M\n1T\n5E\nx\n4 K\n"),
    ("months", b"Mar 3\n jan 1\nDEC 31\nfoo\nJune\nFeb\nsep\nSepX\n\nMAY 2\n"),
    ("versions", b"a-1.10\na-1.9\na-1.9~rc1\n1.0.0\n1.0\n.hidden\nfile10.txt\nfile9.txt\nfile9.tar.gz\n..\n.\n\n\
        1.2b\n1.2a\n"),
    ("nul", b"b\nx\0a\0\0c\0a\0last"),
    ("crlf", b"b\r\na\r\n\r\na b\r\n"),
    ("unended", b"c\nb\na"),
    ("empty", b""),
    ("newlines", b"\n\n\n"),
    ("bytes", b"\xff\n\x80a\n\x7f\n\x01\nz\n\xc3\xa4\n\xc3\x84\na\0b\na\0a\n"),
    ("fields", b"a b c\n  a b c\na  b c\na b  c\nb a 1\nb a 10\nb a 9\n"),
    ("sorted", b"a\nb\nb\nc\n"),
    ("strict", b"a\nb\nc\n"),
    ("falling", b"3\n2\n1\n"),
];
