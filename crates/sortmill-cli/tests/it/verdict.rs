//! Jobs that are bound by one thing on purpose, and what their verdict says of it.
//!
//! Disks are made slow by the kernel: a file system in a file, behind a loop device, for which a cgroup
//! allows so many bytes a second. That takes root; elsewhere those tests say so and do nothing.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sortmill::metrics::Stage;
use sortmill::report::Report;
use sortmill::verdict::{BoundBy, Verdict, longest};

use crate::sort::{
    caught, finish, is_root, run_badly, run_well, signal, sort, stderr, until, words,
};
use crate::{PROGRAM, Scratch};

/// What a slow disk or stream gets through: far less than the slowest processor sorts.
const SLOW_BYTES_PER_S: u64 = 16 << 20;
/// Enough memory for few records, so that most of the input is spilled.
const LITTLE: &str = "--format fixed:100 --key 0:10 --memory 40MiB --threads 1";

/// A file system that a process in its group reads or writes slowly; gone when dropped.
struct SlowDisk {
    /// Where it is mounted.
    folder: PathBuf,
    device: String,
    group: PathBuf,
}

impl SlowDisk {
    /// Mounts it as `slow` in the scratch folder, with these directions slow: `read`, `write`. `None`, with
    /// the reason printed, where that cannot be.
    fn new(scratch: &Scratch, mib: u64, directions: &[&str]) -> Option<Self> {
        if !is_root() {
            println!("skipped: only root can make a slow disk");
            return None;
        }
        let image = scratch.path("image");
        let file = std::fs::File::create(&image).unwrap();
        file.set_len(mib << 20).unwrap();
        let folder = scratch.path("slow");
        std::fs::create_dir(&folder).unwrap();
        let path = |path: &Path| path.display().to_string();
        tool(&["mkfs.ext4", "-q", "-m", "0", &path(&image)])?;
        let device = tool(&["losetup", "--find", "--show", &path(&image)])?;
        let mut disk = Self {
            folder,
            device,
            group: PathBuf::new(),
        };
        tool(&["mount", &disk.device, &path(&disk.folder)])?;
        match disk.slow_down(directions) {
            Ok(()) => Some(disk),
            Err(why) => {
                println!("skipped: no cgroup that slows a disk down: {why}");
                None
            }
        }
    }

    /// Makes the group, of version 1 or 2.
    fn slow_down(&mut self, directions: &[&str]) -> std::io::Result<()> {
        let name = Path::new(&self.device).file_name().unwrap();
        let numbers = std::fs::read_to_string(Path::new("/sys/block").join(name).join("dev"))?;
        let numbers = numbers.trim();
        let group = format!(
            "sortmill-slow-{}-{}",
            std::process::id(),
            name.to_string_lossy()
        );
        let first = Path::new("/sys/fs/cgroup/blkio");
        if first.is_dir() {
            self.group = first.join(group);
            std::fs::create_dir(&self.group)?;
            for direction in directions {
                let limit = format!("blkio.throttle.{direction}_bps_device");
                let value = format!("{numbers} {SLOW_BYTES_PER_S}");
                std::fs::write(self.group.join(limit), value)?;
            }
            return Ok(());
        }
        let second = Path::new("/sys/fs/cgroup");
        std::fs::write(second.join("cgroup.subtree_control"), "+io")?;
        self.group = second.join(group);
        std::fs::create_dir(&self.group)?;
        let limits: Vec<String> = directions
            .iter()
            .map(|direction| format!("{}bps={SLOW_BYTES_PER_S}", &direction[..1]))
            .collect();
        std::fs::write(
            self.group.join("io.max"),
            format!("{numbers} {}", limits.join(" ")),
        )
    }

    /// `sortmill sort` with these words, in the group.
    fn sort(&self, words: &[String]) -> Command {
        let mut shell = Command::new("bash");
        let enter = format!(
            "echo $$ > {}/cgroup.procs && exec \"$@\"",
            self.group.display()
        );
        shell
            .args(["-c", &enter, "bash", PROGRAM, "sort"])
            .args(words);
        shell.env_remove("TMPDIR");
        caught(shell)
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.folder).output();
        let _ = Command::new("losetup").args(["-d", &self.device]).output();
        let _ = std::fs::remove_dir(&self.group);
    }
}

/// Runs a program; its output, or `None` with the reason printed.
fn tool(words: &[&str]) -> Option<String> {
    let output = Command::new(words[0]).args(&words[1..]).output();
    match output {
        Ok(output) if output.status.success() => {
            Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Ok(output) => {
            println!("skipped: {}: {}", words[0], stderr(&output));
            None
        }
        Err(error) => {
            println!("skipped: {}: {error}", words[0]);
            None
        }
    }
}

/// Has a file's bytes on its device and out of the page cache.
fn uncache(file: &Path) {
    let file = file.display();
    tool(&["sync", &file.to_string()]).unwrap();
    tool(&["dd", &format!("if={file}"), "iflag=nocache", "count=0"]).unwrap();
}

/// Fixed records of 100 bytes in no order.
fn records(count: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(count * 100);
    let mut state = 7u64;
    while out.len() < count * 100 {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        out.extend_from_slice(&(state >> 8).to_le_bytes()[..5]);
    }
    out
}

/// Waits for a job that must succeed; what it said, and its report.
fn ended(child: Child, scratch: &Scratch) -> (String, Report) {
    let output = finish(child);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let text = std::fs::read_to_string(scratch.path("report")).unwrap();
    let report: Report = serde_json::from_str(&text).unwrap();
    println!("{}", report.details());
    (said, report)
}

fn verdict<'a>(report: &'a Report, phase: &str) -> &'a Verdict {
    let found = report.verdicts.iter().find(|one| one.phase == phase);
    found.unwrap_or_else(|| panic!("no verdict on {phase}: {:?}", report.verdicts))
}

/// The verdict on `phase` is this one, is the one that is told, and begins so.
fn check(said: &str, report: &Report, phase: &str, expected: &BoundBy, beginning: &str) {
    let verdict = verdict(report, phase);
    assert_eq!(verdict.bound_by, *expected, "{}", report.details());
    assert!(
        verdict.sentence.starts_with(beginning),
        "{:?}",
        verdict.sentence
    );
    assert_eq!(longest(&report.verdicts).unwrap().phase, phase);
    assert!(said.contains(&verdict.sentence), "{said}");
}

/// What was measured in the job and what was measured alone were both held to the same pace.
fn check_share(verdict: &Verdict) {
    let percent = verdict.share_percent.expect("it was probed");
    assert!((50..=150).contains(&percent), "{verdict:?}");
    let told = format!(", {percent} % of what it does alone now");
    assert!(verdict.sentence.ends_with(&told), "{}", verdict.sentence);
}

#[test]
fn a_slow_temporary_disk() {
    let scratch = Scratch::new("verdict-temp");
    let Some(disk) = SlowDisk::new(&scratch, 200, &["write"]) else {
        return;
    };
    std::fs::write(scratch.path("in"), records(1_000_000)).unwrap();
    let line = format!("{LITTLE} --probe -T {{}}slow -o {{}}out --report {{}}report {{}}in");
    let child = disk.sort(&words(&scratch, &line)).spawn().unwrap();
    let (said, report) = ended(child, &scratch);
    let path = disk.folder.display().to_string();
    let beginning = format!("distribute was bound by writes to {path}: ");
    let expected = BoundBy::Write { path };
    check(&said, &report, "distribute", &expected, &beginning);
    check_share(verdict(&report, "distribute"));
    assert!(report.probe_ns > 0);
}

#[test]
fn a_signal_ends_the_probe_and_not_the_job() {
    // The output is there, and whoever called is told of the signal all the same: for a while a loop of a shell went on with the next file.
    let scratch = Scratch::new("verdict-signal");
    let Some(disk) = SlowDisk::new(&scratch, 200, &["write"]) else {
        return;
    };
    std::fs::write(scratch.path("in"), records(500_000)).unwrap();
    let line = format!("{LITTLE} --probe -T {{}}slow -o {{}}out --report {{}}report {{}}in");
    let child = disk.sort(&words(&scratch, &line)).spawn().unwrap();
    until("the output's name", || {
        scratch.path("out").exists().then_some(())
    });
    signal(child.id(), "INT");
    let output = finish(child);
    assert_eq!(output.status.signal(), Some(2), "{}", stderr(&output));
    let text = std::fs::read_to_string(scratch.path("report")).unwrap();
    let report: Report = serde_json::from_str(&text).unwrap();
    assert_eq!(verdict(&report, "distribute").share_percent, None);
    assert_eq!(
        std::fs::metadata(scratch.path("out")).unwrap().len(),
        50_000_000
    );
    assert!(crate::sort::names_with(&disk.folder, "sortmill-").is_empty());
}

/// Threads that would wait for the disk compress what waits for it. It is still what the job waits for, of fewer bytes.
#[test]
fn a_slow_temporary_disk_gets_compressed_blocks() {
    let scratch = Scratch::new("verdict-packed");
    let Some(disk) = SlowDisk::new(&scratch, 200, &["read", "write"]) else {
        return;
    };
    let mut input = records(800_000);
    for record in input.chunks_mut(100) {
        record[20..].fill(b'.');
    }
    std::fs::write(scratch.path("in"), input).unwrap();
    let line = |how: &str| {
        let line = format!(
            "{LITTLE} --compress-temp {how} -T {{}}slow -o {{}}out --report {{}}report {{}}in"
        );
        words(&scratch, &line)
    };
    let (_, plain) = ended(disk.sort(&line("none")).spawn().unwrap(), &scratch);
    let (said, packed) = ended(disk.sort(&line("auto")).spawn().unwrap(), &scratch);
    let spilled = packed.temp_packed.unwrap().spilled;
    assert!(spilled.packed_blocks * 2 > spilled.blocks, "{said}");
    let (before, after) = (plain.wall_ns as f64, packed.wall_ns as f64);
    assert!(after * 1.15 < before, "{before} and then {after}");
    let path = disk.folder.display().to_string();
    let verdict = verdict(&packed, "distribute");
    assert_eq!(verdict.bound_by, BoundBy::Write { path }, "{said}");
}

#[test]
fn a_slow_output_disk() {
    let scratch = Scratch::new("verdict-output");
    let Some(disk) = SlowDisk::new(&scratch, 300, &["write"]) else {
        return;
    };
    std::fs::write(scratch.path("in"), records(800_000)).unwrap();
    let line = format!("{LITTLE} --probe -T {{}} -o {{}}slow/out --report {{}}report {{}}in");
    let child = disk.sort(&words(&scratch, &line)).spawn().unwrap();
    let (said, report) = ended(child, &scratch);
    let path = disk.folder.join("out").display().to_string();
    let beginning = format!("sort was bound by writes to {path}: ");
    let expected = BoundBy::Write { path };
    check(&said, &report, "sort", &expected, &beginning);
    check_share(verdict(&report, "sort"));
    let mut left = crate::sort::names_with(&disk.folder, "");
    left.retain(|name| name != "lost+found");
    assert_eq!(left, ["out"], "the probe's file is gone");
}

#[test]
fn a_slow_input_disk() {
    let scratch = Scratch::new("verdict-input");
    let Some(disk) = SlowDisk::new(&scratch, 200, &["read"]) else {
        return;
    };
    // Large enough to be read past the page cache, and not in it.
    let input = disk.folder.join("in");
    std::fs::write(&input, records(700_000)).unwrap();
    uncache(&input);
    let line = format!("{LITTLE} --probe -T {{}} -o {{}}out --report {{}}report {{}}slow/in");
    let child = disk.sort(&words(&scratch, &line)).spawn().unwrap();
    let (said, report) = ended(child, &scratch);
    let path = input.display().to_string();
    let beginning = format!("distribute was bound by reads of {path}: ");
    let expected = BoundBy::Read { path };
    check(&said, &report, "distribute", &expected, &beginning);
    check_share(verdict(&report, "distribute"));
}

#[test]
fn a_slow_disk_for_everything() {
    let scratch = Scratch::new("verdict-both");
    let Some(disk) = SlowDisk::new(&scratch, 600, &["read", "write"]) else {
        return;
    };
    let input = disk.folder.join("in");
    // So many that most of them are spilled: writes are in flight for well over half of the phase.
    std::fs::write(&input, records(1_600_000)).unwrap();
    uncache(&input);
    let line =
        format!("{LITTLE} --probe -T {{}}slow -o {{}}slow/out --report {{}}report {{}}slow/in");
    let child = disk.sort(&words(&scratch, &line)).spawn().unwrap();
    let (_, report) = ended(child, &scratch);
    let folder = disk.folder.display().to_string();
    let verdict = verdict(&report, "distribute");
    let expected = BoundBy::ReadAndWrite {
        read_path: input.display().to_string(),
        write_path: folder,
    };
    assert_eq!(verdict.bound_by, expected, "{}", report.details());
    check_share(verdict);
}

#[test]
fn a_slow_program_before_it() {
    let scratch = Scratch::new("verdict-stdin");
    let line = format!("{LITTLE} -T {{}} -o {{}}out --report {{}}report");
    let mut command = sort(words(&scratch, &line));
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || {
        at_pace(records(400_000).chunks(64 << 10), |piece| {
            pipe.write_all(piece).unwrap();
            piece.len()
        });
    });
    let (said, report) = ended(child, &scratch);
    feeder.join().unwrap();
    let expected = BoundBy::InputStream {
        name: "standard input".to_owned(),
    };
    let beginning = "distribute was bound by the program that feeds standard input: ";
    check(&said, &report, "distribute", &expected, beginning);
}

#[test]
fn a_slow_program_behind_it() {
    let scratch = Scratch::new("verdict-stdout");
    std::fs::write(scratch.path("in"), records(600_000)).unwrap();
    let line = format!("{LITTLE} -T {{}} --report {{}}report {{}}in");
    let mut child = sort(words(&scratch, &line)).spawn().unwrap();
    let mut pipe = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut piece = vec![0; 64 << 10];
        at_pace(std::iter::repeat(()), |()| pipe.read(&mut piece).unwrap())
    });
    let (said, report) = ended(child, &scratch);
    assert_eq!(reader.join().unwrap(), 60_000_000);
    let expected = BoundBy::OutputStream {
        name: "standard output".to_owned(),
    };
    let beginning = "sort was bound by whoever reads standard output: ";
    check(&said, &report, "sort", &expected, beginning);
}

#[test]
fn keys_that_are_long_and_alike() {
    const PREFIX_BYTES: usize = 2000;
    let scratch = Scratch::new("verdict-keys");
    let mut input = Vec::new();
    for rest in records(100_000).chunks(100) {
        input.extend_from_slice(&[b'k'; PREFIX_BYTES]);
        input.extend_from_slice(&rest[..100]);
    }
    std::fs::write(scratch.path("in"), &input).unwrap();
    // One thread, and an output that costs no disk anything: two threads may well be faster than a disk is written.
    let flags = "--format fixed:2100 --key 0:2100 --memory 512MiB --threads 1";
    let line = format!("{flags} -T {{}} -o /dev/null --report {{}}report {{}}in");
    let child = sort(words(&scratch, &line)).spawn().unwrap();
    let (said, report) = ended(child, &scratch);
    let told = longest(&report.verdicts).unwrap();
    assert!(
        matches!(told.bound_by, BoundBy::Cpu { .. }),
        "{}",
        report.details()
    );
    assert!(said.contains("was bound by the processor: "), "{said}");
    // By the counts that the verdict is made of: those who compute did so most of the time, of which comparing such keys took its part.
    let phase = report.phases.iter().find(|phase| phase.name == told.phase);
    let computing = phase.unwrap().stages.iter().filter(|stage| {
        let who = [Stage::Cut, Stage::Partition, Stage::Sort, Stage::Reduce];
        who.contains(&stage.stage)
    });
    let (work, all) = computing.fold((0, 0), |(work, all), stage| {
        (work + stage.metrics.work_ns, all + stage.metrics.all_ns())
    });
    assert!(2 * work > all, "{}", report.details());
}

#[test]
fn memory_that_came_new_and_the_systems_time_are_told() {
    let scratch = Scratch::new("verdict-memory");
    std::fs::write(scratch.path("in"), records(600_000)).unwrap();
    let flags = "--format fixed:100 --key 0:10 --memory 200MiB -T {} -o {}out --report {}report";
    run_well(sort(words(&scratch, &format!("{flags} {{}}in"))));
    let report: Report =
        serde_json::from_slice(&std::fs::read(scratch.path("report")).unwrap()).unwrap();
    let [distribute, sort] = &report.phases[..] else {
        panic!("{:?}", report.phases);
    };
    // All records lie in memory when they are distributed; from then on it is used again. The kernel counts pages roughly.
    let all = 30_000_000..=report.memory.resident_bytes_peak;
    assert!(all.contains(&distribute.memory_new_bytes), "{distribute:?}");
    assert!(sort.memory_new_bytes < 30_000_000, "{sort:?}");
    // It tells the system's part from the other by its ticks, of the whole life of a process.
    let kernel_ns = distribute.kernel_ns + sort.kernel_ns;
    assert!((1..=report.cpu_ns).contains(&kernel_ns), "{report:?}");
}

#[test]
fn two_reports_tell_what_changed() {
    let scratch = Scratch::new("verdict-two");
    std::fs::write(scratch.path("in"), records(600_000)).unwrap();
    let flags = "--format fixed:100 --key 0:10 --threads 1 --no-probe -T {} -o {}out";
    for (memory, report) in [("40MiB", "little"), ("200MiB", "much")] {
        let line = format!("{flags} --memory {memory} --report {{}}{report} {{}}in");
        run_well(sort(words(&scratch, &line)));
    }
    let report = |names: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.arg("report");
        command.args(names.iter().map(|name| scratch.path(name)));
        let output = run_well(caught(command));
        String::from_utf8(output.stdout).unwrap()
    };
    let told = report(&["little", "much"]);
    println!("{told}");
    let line = |told: &str, name: &str| -> Vec<String> {
        let found = told
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        let found = found.unwrap_or_else(|| panic!("no line on {name}"));
        found.split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(
        line(&told, "memory limit")[2..],
        ["40.0", "MiB", "200.0", "MiB"]
    );
    let written = line(&told, "temporary written");
    assert_eq!(
        written[written.len() - 3..],
        ["0", "B", "0.00"],
        "{written:?}"
    );
    assert!(told.contains("first: sorted 57.2 MiB in "), "{told}");
    // The other way round, and with itself.
    let back = report(&["much", "little"]);
    assert_eq!(
        line(&back, "memory limit")[2..],
        ["200.0", "MiB", "40.0", "MiB"]
    );
    assert_eq!(line(&back, "temporary written").last().unwrap(), "-");
    let same = report(&["much", "much"]);
    assert!(same.ends_with(
        "\n0 more numbers changed by less than 1 % of the longer time or the larger bytes\n"
    ));
    assert!(
        !same.contains("most first") && !same.contains("set up"),
        "{same}"
    );
    // Jobs that ended before anything was written were said to have sorted 0 bytes.
    let line = format!("{flags} --until cut --report {{}}cut {{}}in").replace("-o {}out", "");
    run_well(sort(words(&scratch, &line)));
    let told = report(&["cut", "much"]);
    assert!(told.contains("first: took 57.2 MiB to cut in "), "{told}");
    let until = told.lines().find(|line| line.starts_with("  until "));
    assert!(until.unwrap().ends_with("its end"), "{told}");
    let mut command = Command::new(PROGRAM);
    command
        .arg("report")
        .args([scratch.path("much"), scratch.path("none")]);
    run_badly(caught(command), &["none: reading the report: No such file"]);
}

/// Moves pieces no faster than a slow disk, until one is empty or there are no more. Answers their bytes.
fn at_pace<T>(pieces: impl IntoIterator<Item = T>, mut moved: impl FnMut(T) -> usize) -> u64 {
    let began = Instant::now();
    let mut bytes = 0;
    for piece in pieces {
        match moved(piece) {
            0 => break,
            more => bytes += more as u64,
        }
        let due = Duration::from_secs_f64(bytes as f64 / SLOW_BYTES_PER_S as f64);
        while let Some(early) = due.checked_sub(began.elapsed()) {
            std::thread::park_timeout(early);
            if early.is_zero() {
                break;
            }
        }
    }
    bytes
}
