//! `--dry-run`: what is foreseen, as data too, beside what came; and jobs that cannot fit, refused with the number that
//! is missing, by the dry run as by the job.

use std::process::Command;

use serde_json::Value;
use sortmill::io::codec::Codec;

use super::packed::packed;
use super::space::Small;
use super::{caught, run_badly, run_on_pipe, run_well, sort, stderr, text, words};
use crate::{PROGRAM, Scratch};

fn json(scratch: &Scratch, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(scratch.path(name)).unwrap()).unwrap()
}

#[test]
fn the_plan_is_data_and_comes_true() {
    let scratch = Scratch::new("sort-planned");
    let mut state = 1u64;
    let record = |_: usize| -> [u8; 100] {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        let mut record = [b'x'; 100];
        record[..8].copy_from_slice(&(state ^ (state >> 31)).to_be_bytes());
        record
    };
    let input: Vec<u8> = (0..1_500_000).flat_map(record).collect();
    std::fs::write(scratch.path("in"), input).unwrap();
    let line = "--format fixed:100 --key 0:8 --memory 128MiB --threads 2 -T {} -o {}out {}in";
    let dry = format!("{line} --dry-run --report {{}}plan");
    let output = run_well(sort(words(&scratch, &dry)));
    let told = String::from_utf8(output.stdout).unwrap();
    for words in ["temporary space  ", "moved ", "process ", "to within 3 %"] {
        assert!(told.contains(words), "{words:?} is not in\n{told}");
    }
    assert_eq!(scratch.names(), ["in", "plan"]);
    let plan = json(&scratch, "plan");
    assert_eq!(
        (&plan["version"], &plan["dry_run"]),
        (&1.into(), &true.into())
    );
    assert_eq!(plan["temp_folders"].as_array().unwrap().len(), 1);

    let said = stderr(&run_well(sort(words(
        &scratch,
        &format!("{line} --report {{}}report"),
    ))));
    assert_eq!(said.matches("(foreseen: ").count(), 2, "{said}");
    let report = json(&scratch, "report");
    assert_eq!(
        report["plan"], plan["plan"],
        "the job is planned as the dry run was"
    );
    let (plan, bytes) = (&plan["plan"], &report["bytes"]);
    let near = |what: &str, within: f64, foreseen: &Value, was: &Value| {
        let off = foreseen.as_f64().unwrap() / was.as_f64().unwrap() - 1.0;
        println!("{what}: {off:+.4}");
        assert!(off.abs() <= within, "{what}: {foreseen} and not {was}");
    };
    // On a machine that does much else, writers and readers lag by other amounts.
    near(
        "temporary data",
        0.1,
        &plan["temp_bytes"],
        &bytes["temp_written"],
    );
    near(
        "memory",
        0.1,
        &plan["resident_bytes"],
        &report["memory"]["resident_bytes_peak"],
    );
    assert_eq!(plan["passes"], 2);

    // `report` prints either.
    let print = |name: &str| {
        let mut command = std::process::Command::new(crate::PROGRAM);
        command.arg("report").arg(scratch.path(name));
        String::from_utf8(run_well(super::caught(command)).stdout).unwrap()
    };
    assert!(print("plan").starts_with("input "), "{}", print("plan"));
    let printed = print("report");
    let line = printed
        .lines()
        .find(|line| line.contains("foreseen") && line.contains("was"));
    assert!(line.is_some(), "{printed}");
}

/// `60.0 MiB` in bytes.
fn bytes(words: &str) -> f64 {
    let mut words = words.split_whitespace();
    let number: f64 = words.next().unwrap().parse().unwrap();
    let unit = match words.next().unwrap().trim_end_matches([',', ':', ';', '.']) {
        "B" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        other => panic!("{other}"),
    };
    number * unit
}

/// What is needed, less what is there, is what is missing.
fn adds_up(said: &str) {
    let after = |words: &str| {
        let at = said.find(words).unwrap_or_else(|| panic!("{said}")) + words.len();
        &said[at..]
    };
    let need = bytes(
        after(" need")
            .trim_start_matches('s')
            .trim_start_matches(' '),
    );
    let have = bytes(after(", and "));
    let missing = bytes(after(" are free: "));
    assert!((need - have - missing).abs() <= 0.02 * need, "{said}");
}

/// Each place that can be too small, on a file system of 64 MiB, with 100 MB of lines: dry runs end as jobs do.
#[test]
fn what_does_not_fit_is_refused_with_what_is_missing() {
    let Some(small) = Small::new("planned", "ext4", 64) else {
        return;
    };
    let scratch = &small.scratch;
    std::fs::write(scratch.path("in"), text(100_000_000, 51)).unwrap();
    std::fs::write(small.folder.join("out"), b"old").unwrap();
    for (line, wanted) in [
        // The output alone, over an old one.
        (
            "--memory 1GiB -T {} -o {}small/out {}in",
            "the output needs",
        ),
        // In the space of the output, and apart on the same disk.
        (
            "--memory 40MiB --threads 1 -T {}small -o {}small/out {}in",
            "temporary data and output need",
        ),
        (
            "--memory 40MiB --threads 1 --temp-apart -T {}small -o {}small/out {}in",
            "temporary data and output need",
        ),
        // Temporary data alone, for an output elsewhere, on standard output, in parts.
        (
            "--memory 40MiB --threads 1 -T {}small -o {}out {}in",
            "temporary files need",
        ),
        (
            "--memory 40MiB --threads 1 -T {}small {}in",
            "temporary files need",
        ),
        (
            "--memory 40MiB --threads 1 -T {}small --part-count 10 --parts {}parts {}in",
            "temporary files need",
        ),
        // Parts alone.
        (
            "--memory 1GiB -T {} --part-count 10 --parts {}small/parts {}in",
            "the output needs",
        ),
        // Two folders of one file system have its room once.
        (
            "--memory 40MiB --threads 1 -T {}small -T {}small/lost+found -o {}out {}in",
            "temporary files need",
        ),
    ] {
        let said = run_badly(sort(words(scratch, line)), &[wanted, "are missing"]);
        println!("{line}\n  {said}");
        adds_up(&said);
        let dry = super::run(sort(words(scratch, &format!("--dry-run {line}"))));
        assert_eq!(dry.status.code(), Some(2), "{line}");
        assert_eq!(stderr(&dry), said, "{line}");
        assert!(!dry.stdout.is_empty(), "the plan is told all the same");
        assert_eq!(small.names(), ["out"], "{line}");
    }
    assert_eq!(std::fs::read(small.folder.join("out")).unwrap(), b"old");
    // How small an output will be that is compressed nobody knows: it had all of the input's bytes kept free where temporary data
    // lie in several folders, and in one folder none.
    for temps in ["-T {}small", "-T {}small -T {}small/lost+found"] {
        let line =
            format!("--dry-run --memory 120MiB --threads 1 {temps} -o {{}}small/out.zst {{}}in");
        run_well(sort(words(scratch, &line)));
    }
}

/// More memory was shared by more workers, or in larger blocks, and was too little again.
#[test]
fn more_memory_than_is_enough_is_enough() {
    let scratch = Scratch::new("sort-enough-memory");
    std::fs::write(scratch.path("in"), "b\na\n").unwrap();
    for mib in (25..48).chain([55, 64]) {
        let line = format!("--dry-run --threads 4 --memory {mib}MiB -o {{}}out {{}}in");
        let plan = run_well(sort(words(&scratch, &line)));
        assert!(!plan.stdout.is_empty());
    }
}

/// Memory that is too little says how much is not: with that much the job runs.
#[test]
fn too_little_memory_says_how_much_is_enough() {
    let scratch = Scratch::new("sort-planned-memory");
    std::fs::write(scratch.path("in"), vec![b'a'; 1 << 20]).unwrap();
    for format in ["lines", "kv", "fixed:64", "fixed:1048576"] {
        let line = |memory: &str| {
            format!(
                "--format {format} --skip-bad 9 --memory {memory} --threads 1 --dry-run -o {{}}out {{}}in"
            )
        };
        let said = run_badly(
            sort(words(&scratch, &line("3MiB"))),
            &["is too little", "--memory"],
        );
        let at = said.find("at least ").unwrap() + "at least ".len();
        let least = bytes(&said[at..]) as u64;
        run_well(sort(words(&scratch, &line(&least.to_string()))));
        run_badly(
            sort(words(&scratch, &line(&(least - (1 << 20)).to_string()))),
            &["is too little"],
        );
    }
}

/// A stream is planned as if it were many times the memory. One that has ended before it must be decided how many partitions there
/// are gets those of a file of its length: 2,000 lines took 266 MiB.
#[test]
fn a_short_stream_is_divided_as_a_file_is() {
    let scratch = Scratch::new("planned-streams");
    let partitions = || -> u64 {
        let report = std::fs::read(scratch.path("report")).unwrap();
        let report: Value = serde_json::from_slice(&report).unwrap();
        report["partitions"]["count"].as_u64().unwrap()
    };
    for bytes in [9_000, 30_000_000] {
        let input = text(bytes, 91);
        std::fs::write(scratch.path("in"), &input).unwrap();
        let gz = packed(Codec::Gzip, &input, 1 << 30);
        for verb in ["sort", "uniq -c", "count"] {
            let line = format!("{verb} -q --memory 4GiB --report {{}}report -o {{}}");
            let of = |line: String| {
                let mut command = Command::new(PROGRAM);
                command.args(words(&scratch, &line)).env_remove("TMPDIR");
                caught(command)
            };
            run_well(of(format!("{line}of-file {{}}in")));
            let few = partitions();
            for stream in [&input, &gz] {
                assert!(
                    run_on_pipe(of(format!("{line}of-stream")), stream)
                        .status
                        .success()
                );
                let [file, stream] =
                    ["of-file", "of-stream"].map(|name| std::fs::read(scratch.path(name)).unwrap());
                assert!(file == stream);
                assert!(
                    partitions() <= 2 * few,
                    "{verb}: {} and {few}",
                    partitions()
                );
            }
        }
    }
}

/// How long records are is what was seen of them: taken for lines of 32 bytes, these were merged and spilled.
#[test]
fn a_short_stream_of_tiny_lines_stays_in_memory() {
    let scratch = Scratch::new("planned-tiny");
    let letter = |at: u32| b'!' + (at.wrapping_mul(2_654_435_761) >> 24) as u8 % 90;
    let input: Vec<u8> = (0..450_000).flat_map(|at| [letter(at), b'\n']).collect();
    for memory in ["32MiB", "64MiB"] {
        let line = format!("-q --memory {memory} --threads 2 --report {{}}report -o {{}}out");
        let output = run_on_pipe(sort(words(&scratch, &line)), &input);
        assert!(output.status.success(), "{}", stderr(&output));
        let report = json(&scratch, "report");
        let partitions = &report["partitions"];
        for what in ["merged", "evicted"] {
            assert_eq!(partitions[what], 0, "{memory}: {partitions}");
        }
        assert_eq!(report["bytes"]["temp_written"], 0, "{memory}");
    }
}

/// What the report counts at the ends of a job is what came in and went out.
#[test]
fn stages_count_all_that_passes_them() {
    let scratch = Scratch::new("planned-counts");
    let input = text(1_000_000, 92);
    for (name, bytes) in [
        ("in", input.clone()),
        ("in.gz", packed(Codec::Gzip, &input, 1 << 30)),
    ] {
        std::fs::write(scratch.path(name), bytes).unwrap();
        for verb in ["sort", "count", "uniq -c", "uniq -d"] {
            let line =
                format!("{verb} -q --memory 64MiB --report {{}}report -o {{}}out {{}}{name}");
            let mut command = Command::new(PROGRAM);
            command.args(words(&scratch, &line)).env_remove("TMPDIR");
            run_well(caught(command));
            let report = std::fs::read(scratch.path("report")).unwrap();
            let report: Value = serde_json::from_slice(&report).unwrap();
            let stage = |name: &str| -> Value {
                let phases = report["phases"].as_array().unwrap().iter();
                let mut stages = phases.flat_map(|phase| phase["stages"].as_array().unwrap());
                stages.find(|stage| stage["stage"] == name).unwrap().clone()
            };
            let what = format!("{verb} {name}");
            assert_eq!(
                stage("read")["bytes_in"],
                report["bytes"]["input_read"],
                "{what}"
            );
            let (reduced, written) = (stage("reduce"), &report["fingerprints"]["written"]);
            assert_eq!(reduced["records_out"], written["records"], "{what}");
            assert_eq!(reduced["bytes_out"], written["bytes"], "{what}");
        }
    }
}

/// It is two jobs, and who waits for the end waits for that of the second.
#[test]
fn counts_in_order_end_once() {
    let scratch = Scratch::new("planned-ends");
    std::fs::write(scratch.path("in"), b"b\na\nb\n").unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(words(&scratch, "count --by-count --progress json -q {}in"));
    let output = run_well(caught(command));
    let phases: Vec<Value> = stderr(&output)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["phase"].clone())
        .collect();
    let ends = phases.iter().filter(|phase| *phase == "done").count();
    assert_eq!(ends, 1, "{phases:?}");
    assert_eq!(phases.last().unwrap(), "done");
}
