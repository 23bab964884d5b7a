//! Several folders for temporary files: small file systems in loop devices, spread by speed and room, full, stopped.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::space::Small;
use super::{
    LITTLE, finish, names_with, run_badly, run_on_pipe, run_well, signal, sort, sorted,
    spawn_on_pipe, stderr, text, until_spilled, words,
};
use crate::{PROGRAM, Scratch};

/// Two file systems of these sizes, and a scratch folder with the rest.
struct Two {
    scratch: Scratch,
    small: [Small; 2],
    /// `-T` with each.
    flags: String,
}

impl Two {
    /// `None`, with the reason printed, where they cannot be.
    fn new(test: &str, mib: [u64; 2]) -> Option<Self> {
        let one = Small::new(&format!("{test}-one"), "ext4", mib[0])?;
        let other = Small::new(&format!("{test}-other"), "ext4", mib[1])?;
        let flags = format!("-T {} -T {}", one.folder.display(), other.folder.display());
        Some(Self {
            scratch: Scratch::new(&format!("sort-{test}")),
            small: [one, other],
            flags,
        })
    }

    fn sort(&self, line: &str) -> Command {
        let mut command = sort(words(&self.scratch, &format!("{} {line}", self.flags)));
        command.env("XDG_CACHE_HOME", self.scratch.path("cache"));
        command
    }

    fn is_empty(&self) {
        for small in &self.small {
            assert_eq!(small.names(), Vec::<String>::new());
        }
        let left = names_with(&self.scratch.path, ".out");
        assert_eq!(left, Vec::<String>::new());
    }

    /// What each got, by the report.
    fn got(&self) -> [f64; 2] {
        let report = std::fs::read(self.scratch.path("report")).unwrap();
        let report: Value = serde_json::from_slice(&report).unwrap();
        let folders = report["temp_folders"].as_array().unwrap();
        assert_eq!(folders.len(), 2, "{folders:?}");
        let paths = folders
            .iter()
            .map(|folder| folder["path"].as_str().unwrap());
        let named = self
            .small
            .iter()
            .map(|small| small.folder.to_str().unwrap());
        assert!(paths.eq(named), "{folders:?}");
        let bytes = |number: usize| folders[number]["bytes"].as_f64().unwrap();
        [bytes(0), bytes(1)]
    }
}

fn free_bytes(folder: &Path) -> f64 {
    let output = Command::new("stat")
        .args(["-f", "-c", "%a %S"])
        .arg(folder)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace()
        .map(|word| word.parse::<f64>().unwrap())
        .product()
}

fn is_near(have: f64, want: f64) {
    assert!((have / want - 1.0).abs() < 0.05, "{have} and not {want}");
}

#[test]
fn room_of_one_to_three() {
    let Some(two) = Two::new("temps-room", [64, 192]) else {
        return;
    };
    let input = text(200_000_000, 31);
    std::fs::write(two.scratch.path("in"), &input).unwrap();
    let free: Vec<f64> = two
        .small
        .iter()
        .map(|small| free_bytes(&small.folder))
        .collect();
    let line = format!("{LITTLE} --report {{}}report -o {{}}out {{}}in");
    let plan = run_well(two.sort(&format!("{line} --dry-run"))).stdout;
    let plan = String::from_utf8(plan).unwrap();
    for small in &two.small {
        let told = format!("temporary folder {}: about ", small.folder.display());
        assert!(plan.contains(&told), "{plan}");
    }
    let told = stderr(&run_well(two.sort(&format!("{line} -v"))));
    for small in &two.small {
        let named = format!("temporary files in {}: ", small.folder.display());
        assert!(told.contains(&named), "{told}");
    }
    assert!(std::fs::read(two.scratch.path("out")).unwrap() == sorted(&input));
    let got = two.got();
    is_near(got[1] / got[0], free[1] / free[0]);
    two.is_empty();
    // One more than fits is refused, with what each has.
    std::fs::write(two.scratch.path("in"), text(300_000_000, 32)).unwrap();
    let folders = two
        .small
        .each_ref()
        .map(|small| small.folder.to_str().unwrap());
    let wanted = ["temporary files need", "are free", folders[0], folders[1]];
    run_badly(two.sort(&line), &wanted);
    two.is_empty();
}

/// Speeds that were kept, one three times the other.
#[test]
fn speeds_of_one_to_three() {
    let Some(two) = Two::new("temps-speed", [160, 160]) else {
        return;
    };
    for (small, rate) in two.small.iter().zip([100_000_000, 300_000_000]) {
        keep_rate(&two.scratch, &small.folder, rate);
    }
    let input = text(100_000_000, 33);
    std::fs::write(two.scratch.path("in"), &input).unwrap();
    let line = format!("{LITTLE} --report {{}}report -o {{}}out {{}}in");
    run_well(two.sort(&line));
    assert!(std::fs::read(two.scratch.path("out")).unwrap() == sorted(&input));
    let got = two.got();
    is_near(got[1] / got[0], 3.0);
    two.is_empty();
}

/// Keeps of a file system that it reads and writes at `rate`, as `bench disk` would.
fn keep_rate(scratch: &Scratch, folder: &Path, rate: u64) {
    let flags = "--seconds 0.01 --rounds 1 --json --bytes 32MiB --block 4MiB --depth 8";
    let mut bench = Command::new(PROGRAM);
    bench
        .args(["bench", "disk"])
        .arg(folder)
        .args(flags.split(' '));
    let output = run_well(super::caught(bench));
    let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for row in report["rows"].as_array_mut().unwrap() {
        for way in ["read_bytes_per_s", "write_bytes_per_s"] {
            row[way] = json!({"least": rate, "median": rate, "most": rate});
        }
    }
    let kept = scratch.path("cache/sortmill/disks");
    std::fs::create_dir_all(&kept).unwrap();
    let name = report["folders"][0]["file_system"].as_str().unwrap();
    std::fs::write(kept.join(format!("{name}.json")), report.to_string()).unwrap();
}

/// A stream, of which nobody knows beforehand how long it is: one is filled, the other takes the rest; then both are
/// full.
#[test]
fn one_full_and_then_the_other() {
    let Some(two) = Two::new("temps-full", [32, 128]) else {
        return;
    };
    std::fs::write(two.scratch.path("out"), b"old").unwrap();
    let line = format!("{LITTLE} --report {{}}report -o {{}}out");
    let output = run_on_pipe(two.sort(&line), &text(200_000_000, 34));
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for small in &two.small {
        assert!(said.contains(small.folder.to_str().unwrap()), "{said}");
    }
    assert!(
        said.contains("No space left") && said.contains("--temp"),
        "{said}"
    );
    assert_eq!(std::fs::read(two.scratch.path("out")).unwrap(), b"old");
    two.is_empty();
    let input = text(120_000_000, 35);
    let output = run_on_pipe(two.sort(&line), &input);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(std::fs::read(two.scratch.path("out")).unwrap() == sorted(&input));
    let got = two.got();
    assert!(
        got[0] < f64::from(32 << 20) && got[1] > 2.0 * got[0],
        "{got:?}"
    );
    two.is_empty();
}

/// Two folders on one disk, which need no root: both are used, and nothing is left in either, however a job ends.
#[test]
fn nothing_is_left_in_either() {
    let scratch = Scratch::new("sort-temps-left");
    for name in ["one", "two"] {
        std::fs::create_dir(scratch.path(name)).unwrap();
    }
    std::fs::write(scratch.path("out"), b"old").unwrap();
    std::fs::write(scratch.path("small"), b"b\na\n").unwrap();
    let line = format!("{LITTLE} -T {{}}one --temp {{}}two -o {{}}out");
    let both_hold = |count: usize| {
        for name in ["one", "two"] {
            assert_eq!(names_with(&scratch.path(name), "").len(), count, "{name}");
        }
    };
    let input = text(60_000_000, 36);
    for name in ["INT", "TERM", "KILL"] {
        let mut child = spawn_on_pipe(sort(words(&scratch, &line)));
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(&input).unwrap();
        until_spilled(&scratch.path("one"));
        until_spilled(&scratch.path("two"));
        signal(child.id(), name);
        let output = finish(child);
        drop(pipe);
        assert!(!output.status.success());
        assert_eq!(std::fs::read(scratch.path("out")).unwrap(), b"old");
        both_hold(usize::from(name == "KILL"));
    }
    // What the killed one left goes with the next that uses them.
    run_well(sort(words(
        &scratch,
        "-T {}one -T {}two -o {}other {}small",
    )));
    both_hold(0);
    assert_eq!(scratch.names(), ["one", "other", "out", "small", "two"]);
    let output = run_on_pipe(sort(words(&scratch, &line)), &input);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(std::fs::read(scratch.path("out")).unwrap() == sorted(&input));
    both_hold(0);
    // One that is named twice is used once.
    let line = format!("-T {{}}one -T {{}}two/../one -v {LITTLE} -o {{}}out");
    let output = run_on_pipe(sort(words(&scratch, &line)), &input);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output).matches("\ntemporary folder ").count(), 1);
    // One that is not there.
    run_badly(
        sort(words(&scratch, "-T {}one -T {}missing -o {}out {}small")),
        &["missing", "No such file"],
    );
}
