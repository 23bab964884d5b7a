//! The bound on memory, kept whatever the data: measured from outside, in a cgroup that allows no more.
//!
//! The group has the limit plus 5 % plus 64 MiB, and what the program takes beyond that gets it killed.
//! Only root can make groups; where that is not so, the largest resident set is looked at instead. What the
//! group holds of the page cache is no matter: the kernel gives it back.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sortmill::io::codec::Codec;

use crate::sort::packed::packed;
use crate::sort::{is_root, make_fifo, stderr};
use crate::{PROGRAM, Scratch};

const MIB: u64 = 1 << 20;
const FILE: &str = "file";
const PIPE: &str = "pipe";

/// The optimised program, where there is one: it is the one that people run, and the quicker one.
fn program() -> PathBuf {
    let release = Path::new(PROGRAM).ancestors().nth(2).unwrap();
    let release = release.join("release/sortmill");
    let age = |path: &Path| std::fs::metadata(path).and_then(|meta| meta.modified());
    match (age(&release), age(Path::new(PROGRAM))) {
        (Ok(optimised), Ok(tested)) if optimised >= tested => release,
        _ => PROGRAM.into(),
    }
}

/// A memory cgroup, version 1 or 2, gone when dropped.
struct Group {
    folder: PathBuf,
    peak_name: &'static str,
}

impl Group {
    fn new(name: &str, bytes: u64) -> Result<Self, String> {
        if !is_root() {
            return Err("only root makes cgroups".into());
        }
        let versions = [
            (
                "/sys/fs/cgroup/memory",
                "memory.limit_in_bytes",
                "memory.max_usage_in_bytes",
            ),
            ("/sys/fs/cgroup", "memory.max", "memory.peak"),
        ];
        let mut reasons = String::new();
        for (root, limit_name, peak_name) in versions {
            let folder = Path::new(root).join(format!("sortmill-{name}-{}", std::process::id()));
            let made = std::fs::create_dir(&folder)
                .and_then(|()| std::fs::write(folder.join(limit_name), bytes.to_string()));
            match made {
                Ok(()) => return Ok(Self { folder, peak_name }),
                Err(error) => {
                    let _ = std::fs::remove_dir(&folder);
                    reasons += &format!("{}: {error}. ", folder.display());
                }
            }
        }
        Err(reasons)
    }

    /// A shell's words that move it into the group.
    fn enter(&self) -> String {
        format!("echo $$ > {}/cgroup.procs; ", self.folder.display())
    }

    fn peak_bytes(&self) -> Option<u64> {
        let text = std::fs::read_to_string(self.folder.join(self.peak_name)).ok()?;
        text.trim().parse().ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.folder);
    }
}

/// Sorts `input` within `limit` bytes, in a group that allows 5 % and 64 MiB more.
fn check(name: &str, limit: u64, flags: &str, ways: &[&str], input: impl Fn(&mut dyn Write)) {
    check_right(name, limit, flags, ways, input, |scratch| {
        let bytes = |name: &str| std::fs::metadata(scratch.path(name)).unwrap().len();
        assert_eq!(bytes("out"), bytes("in"));
    });
}

/// The same, and `judge` looks at `out`, which was made of `in`.
fn check_right(
    name: &str,
    limit: u64,
    flags: &str,
    ways: &[&str],
    input: impl Fn(&mut dyn Write),
    judge: impl Fn(&Scratch),
) {
    let scratch = Scratch::new(&format!("memory-{name}"));
    let mut file = BufWriter::new(std::fs::File::create(scratch.path("in")).unwrap());
    input(&mut file);
    file.flush().unwrap();
    drop(file);
    let allowed = limit + limit / 20 + 64 * MIB;
    let here = scratch.path.display().to_string();
    for &way in ways {
        let group = Group::new(&format!("{name}-{way}"), allowed);
        let enter = match &group {
            Ok(group) => group.enter(),
            Err(why) => {
                println!("{name}: no cgroup, so only the resident set is measured: {why}");
                String::new()
            }
        };
        let from = if way == FILE { "in" } else { "pipe" };
        if way == PIPE {
            make_fifo(&scratch.path("pipe"));
        }
        let line = format!(
            "{enter}exec {} sort {flags} --memory {limit} -T {here} -o {here}/out \
             --report {here}/report {here}/{from}",
            program().display()
        );
        let child = Command::new("bash")
            .args(["-c", &line])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        if way == PIPE {
            let (input, pipe) = (scratch.path("in"), scratch.path("pipe"));
            std::thread::spawn(move || {
                let mut input = std::fs::File::open(input).unwrap();
                let mut pipe = std::fs::File::options().write(true).open(pipe).unwrap();
                let _ = std::io::copy(&mut input, &mut pipe);
            });
        }
        let output = child.wait_with_output().unwrap();
        let said = stderr(&output);
        let report = std::fs::read_to_string(scratch.path("report")).unwrap_or_default();
        let resident = number(&report, "resident_bytes_peak");
        let group_peak = group.ok().and_then(|group| group.peak_bytes());
        println!(
            "{name} from a {way}: limit {} MiB, allowed {} MiB, resident {} MiB, group's peak {:?} MiB, \
             {}",
            limit / MIB,
            allowed / MIB,
            resident.unwrap_or(0) / MIB,
            group_peak.map(|bytes| bytes / MIB),
            program().display(),
        );
        println!("{said}");
        assert_eq!(output.status.code(), Some(0), "{name}, {way}: {said}");
        assert!(
            resident.unwrap() <= allowed,
            "{name}, {way}: {resident:?} bytes were resident"
        );
        judge(&scratch);
        let _ = std::fs::remove_file(scratch.path("pipe"));
    }
}

/// The number behind `"name":` in a report.
fn number(report: &str, name: &str) -> Option<u64> {
    let (_, rest) = report.split_once(&format!("\"{name}\":"))?;
    let rest = rest.trim_start();
    let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
    rest[..end].parse().ok()
}

/// Pseudorandom bytes.
fn random(state: &mut u64, into: &mut [u8]) {
    for eight in into.chunks_mut(8) {
        *state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        let value = (*state >> 8).to_le_bytes();
        eight.copy_from_slice(&value[..eight.len()]);
    }
}

#[test]
fn two_gigabytes_in_128_mib() {
    check(
        "large",
        128 * MIB,
        "--format fixed:100 --key 0:10",
        &[FILE, PIPE],
        |file| {
            let (mut state, mut record) = (1, [0; 100]);
            for _ in 0..20_000_000 {
                random(&mut state, &mut record);
                file.write_all(&record).unwrap();
            }
        },
    );
}

#[test]
fn one_key_dominates() {
    check(
        "one-key",
        64 * MIB,
        "--format fixed:50 --key 0:8",
        &[FILE, PIPE],
        |file| {
            let (mut state, mut record) = (2, [0; 50]);
            for number in 0..2_000_000 {
                random(&mut state, &mut record);
                if number % 10 > 0 {
                    record[..8].fill(b'k');
                }
                file.write_all(&record).unwrap();
            }
        },
    );
}

#[test]
fn lines_of_two_bytes() {
    check("tiny", 64 * MIB, "", &[FILE], |file| {
        let (mut state, mut letters) = (3, vec![0; 1 << 20]);
        for _ in 0..25 {
            random(&mut state, &mut letters);
            let lines = letters
                .iter()
                .flat_map(|letter| [b'a' + letter % 26, b'\n']);
            file.write_all(&lines.collect::<Vec<u8>>()).unwrap();
        }
    });
}

/// 200 MB of zeros that compress to next to nothing.
#[test]
fn much_out_of_some_kilobytes() {
    for (codec, ways) in [(Codec::Zstd, [FILE]), (Codec::Bzip2, [PIPE])] {
        let name = format!("bomb-{}", codec.name());
        let input = |file: &mut dyn Write| {
            let mut line = [b'0'; 1000];
            line[999] = b'\n';
            let bytes = packed(codec, &line.repeat(1000), 1_000_000);
            println!("{codec:?}: 200 MB in {} bytes", 200 * bytes.len());
            for _ in 0..200 {
                file.write_all(&bytes).unwrap();
            }
        };
        check_right(&name, 64 * MIB, "", &ways, input, |scratch| {
            let bytes = std::fs::metadata(scratch.path("out")).unwrap().len();
            assert_eq!(bytes, 200_000_000);
        });
    }
}

/// What compressing takes is part of the limit: libraries, tables, and each block as it becomes.
#[test]
fn compressed_temporary_data() {
    let flags = "--compress-temp zstd --threads 4";
    check("temp-packed", 64 * MIB, flags, &[FILE, PIPE], |file| {
        let (mut state, mut number) = (9, [0; 8]);
        for _ in 0..3_000_000 {
            random(&mut state, &mut number);
            let number = u64::from_le_bytes(number);
            let word = ["some", "words", "again"][(number % 3) as usize];
            writeln!(
                file,
                "{:x} {word} and more of {word}, with {word}",
                number >> 20
            )
            .unwrap();
        }
    });
}

/// What the beginning of a file says of its lines is not true of the rest.
#[test]
fn long_lines_and_then_empty_ones() {
    check("turning", 64 * MIB, "", &[PIPE], |file| {
        let (mut state, mut line) = (5, vec![0; 2000]);
        for _ in 0..1000 {
            random(&mut state, &mut line);
            line.iter_mut().for_each(|byte| *byte = b'a' + *byte % 26);
            file.write_all(&line).unwrap();
            file.write_all(b"\n").unwrap();
        }
        file.write_all(&vec![b'\n'; 10_000_000]).unwrap();
    });
}

#[test]
fn few_huge_lines() {
    check("huge", 128 * MIB, "", &[FILE], |file| {
        let (mut state, mut line) = (4, vec![0; 3_900_000]);
        for number in 0..150 {
            random(&mut state, &mut line);
            line.iter_mut().for_each(|byte| *byte = b'a' + *byte % 26);
            let bytes = line.len() - number * 10_000;
            file.write_all(&line[..bytes]).unwrap();
            file.write_all(b"\n").unwrap();
        }
    });
}

/// Input in order goes through memory in rounds: two rising pieces, some of whose lines are of megabytes.
#[test]
fn input_in_order() {
    let input = |file: &mut dyn Write| {
        let (mut state, mut rest) = (7, vec![0; 3_000_000]);
        random(&mut state, &mut rest);
        rest.iter_mut().for_each(|byte| *byte = b'a' + *byte % 26);
        for number in 0..1_500_000_u64 {
            let bytes = match number % 50_000 {
                0 => 1_000_000 + number as usize,
                _ => 20 + (number % 160) as usize,
            };
            let key = number % 750_000 * 2 + number / 750_000;
            write!(file, "{key:08} ").unwrap();
            file.write_all(&rest[..bytes]).unwrap();
            file.write_all(b"\n").unwrap();
        }
    };
    check_right("order", 64 * MIB, "--verify", &[FILE], input, |scratch| {
        let report = std::fs::read_to_string(scratch.path("report")).unwrap();
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        println!("{} {}", report["order"], report["bytes"]);
        assert_eq!(report["order"]["pieces"], 2);
        assert_eq!(report["order"]["is_one_pass"], true);
        let folder = scratch.path.display();
        let line = format!("LC_ALL=C sort -S 100M -T {folder} {folder}/in | cmp - {folder}/out");
        let output = Command::new("bash").args(["-c", &line]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    });
}

/// Bytes of any value, zeros among them, but no newline: one pseudorandom MiB again and again.
fn letters(state: &mut u64) -> Vec<u8> {
    let mut letters = vec![0; 1 << 20];
    random(state, &mut letters);
    for (at, byte) in letters.iter_mut().enumerate() {
        if at % 5 == 0 || *byte == b'\n' {
            *byte = 0;
        }
    }
    letters
}

/// Lines of nothing to 100 MB, two of these alike but for their ends, and no newline at the end of the last.
fn lines_to_100_mb(file: &mut dyn Write) {
    let mut state = 6;
    let letters = letters(&mut state);
    let mut line = |bytes: usize, first: u8, end: &[u8]| {
        let mut left = bytes - 1 - end.len().min(bytes - 1);
        file.write_all(&[first]).unwrap();
        while left > 0 {
            let count = left.min(letters.len());
            file.write_all(&letters[..count]).unwrap();
            left -= count;
        }
        file.write_all(end).unwrap();
    };
    for number in 0..3000_usize {
        line(1 + number * 7919 % 5000, b'a' + (number % 26) as u8, b"\n");
        line(1, b'\n', b"");
        match number {
            500 | 2500 => line(100_000_000, b'm', format!("{}\n", 9999 - number).as_bytes()),
            1000 => line(60_000_000, b'm', b"\n"),
            _ if number % 30 == 0 => line(number * 700 + 2, b'm', b"\n"),
            _ => {}
        }
    }
    line(30_000_000, b'b', b"the end");
}

#[test]
fn lines_of_nothing_to_100_mb() {
    let flags = "--verify";
    check_right(
        "lines",
        256 * MIB,
        flags,
        &[FILE, PIPE],
        lines_to_100_mb,
        |scratch| {
            let folder = scratch.path.display();
            let line = format!(
                "set -o pipefail; LC_ALL=C sort -s -S 200M -T {folder} {folder}/in | cmp - {folder}/out"
            );
            let output = Command::new("bash").args(["-c", &line]).output().unwrap();
            assert!(output.status.success(), "{}", stderr(&output));
        },
    );
}

/// Where each pair ends, its key, and where that lies.
fn pairs(bytes: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut pairs = Vec::new();
    let mut rest = bytes;
    while let Some(header) = rest.get(..8) {
        let [key, value] =
            [0, 4].map(|at| u32::from_le_bytes(header[at..at + 4].try_into().unwrap()) as usize);
        let (pair, after) = rest.split_at(8 + key + value);
        pairs.push((&pair[8..8 + key], pair));
        rest = after;
    }
    pairs
}

/// A key and a value of nearly half the memory among others of Pareto's lengths, against a model in memory.
#[test]
fn paretos_pairs_in_little_memory() {
    let generate = |file: &mut dyn Write| {
        let line = [
            "gen",
            "pareto",
            "--largest",
            "30MB",
            "--bytes",
            "200MB",
            "-",
        ];
        let output = Command::new(program()).args(line).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        file.write_all(&output.stdout).unwrap();
    };
    let flags = "--format kv --verify";
    check_right(
        "pareto",
        64 * MIB,
        flags,
        &[FILE, PIPE],
        generate,
        |scratch| {
            let input = std::fs::read(scratch.path("in")).unwrap();
            let output = std::fs::read(scratch.path("out")).unwrap();
            let mut wanted = pairs(&input);
            assert!(wanted.iter().any(|(key, _)| key.len() == 30_000_000));
            wanted.sort_by_key(|&(key, _)| key);
            let mut rest = &output[..];
            for (_, pair) in wanted {
                rest = rest
                    .strip_prefix(pair)
                    .expect("the same pair at the same place");
            }
            assert!(rest.is_empty());
        },
    );
}

/// Many sorted files, some of whose lines are as long as the plan allows, and one as a stream: at once, and by way of
/// runs where memory is short; as they are, and compressed, each with a codec of its own.
#[test]
fn sorted_files_are_merged_within_the_limit() {
    let scratch = Scratch::new("memory-merge");
    let here = scratch.path.display().to_string();
    let count = 150;
    for number in 0..count {
        let (mut state, mut lines) = (number, Vec::new());
        for at in 0..4000_u64 {
            let mut line = vec![
                0;
                if at % 400 == number % 400 {
                    15_000
                } else {
                    150
                }
            ];
            random(&mut state, &mut line);
            line.iter_mut().for_each(|byte| *byte = b'a' + *byte % 26);
            line.push(b'\n');
            lines.push(line);
        }
        lines.sort();
        std::fs::write(scratch.path(&format!("in{number}")), lines.concat()).unwrap();
    }
    let wanted = Command::new("bash")
        .args(["-c", &format!("LC_ALL=C sort -m {here}/in* | sha256sum")])
        .output()
        .unwrap();
    // The same lines are records of one column.
    let csv = "--format csv --no-header --by 1";
    for (limit, end, runs, by) in [
        (30 * MIB, "", true, ""),
        (30 * MIB, "", true, csv),
        (256 * MIB, "", false, ""),
        (60 * MIB, ".zst", true, ""),
        (60 * MIB, ".zst", true, csv),
        (600 * MIB, ".zst", false, ""),
    ] {
        if end == ".zst" && !scratch.path("in0.zst").exists() {
            for number in 0..count {
                let name = format!("in{number}");
                let packed = packed(
                    Codec::Zstd,
                    &std::fs::read(scratch.path(&name)).unwrap(),
                    4 << 20,
                );
                std::fs::write(scratch.path(&format!("{name}.zst")), packed).unwrap();
                std::fs::remove_file(scratch.path(&name)).unwrap();
            }
        }
        let allowed = limit + limit / 20 + 64 * MIB;
        let group = Group::new(&format!("merge-{limit}"), allowed);
        let enter = group.as_ref().map_or_else(|_| String::new(), Group::enter);
        let line = format!(
            "{enter}exec {} merge --memory {limit} -T {here} -o {here}/out --verify --report {here}/report \
             {by} {here}/in[1-9]*{end} - < <(cat {here}/in0{end})",
            program().display()
        );
        let output = Command::new("bash").args(["-c", &line]).output().unwrap();
        let said = stderr(&output);
        println!("{said}");
        assert_eq!(output.status.code(), Some(0), "{limit}: {said}");
        let report = std::fs::read_to_string(scratch.path("report")).unwrap();
        assert_eq!(
            number(&report, "merge_extra").unwrap() > 0,
            runs,
            "{limit}: {said}"
        );
        let resident = number(&report, "resident_bytes_peak").unwrap();
        assert!(
            resident <= allowed,
            "{limit}: {resident} bytes were resident"
        );
        let sum = Command::new("bash")
            .args(["-c", &format!("cat {here}/out | sha256sum")])
            .output()
            .unwrap();
        assert_eq!(sum.stdout, wanted.stdout, "{limit}");
    }
}
