//! Jobs on several nodes (`--on local:N`): the same bytes as one process, whatever the data and the number of nodes.

mod ended;
mod wire;

use std::fs;

use super::{run_badly, run_well, sort, sorted, stderr, text, words};
use crate::Scratch;

const COUNTS: [usize; 4] = [1, 2, 3, 5];

/// Sorts `in` on each number of nodes, and compares with `wanted`.
fn check(scratch: &Scratch, flags: &str, inputs: &str, wanted: &[u8]) {
    for count in COUNTS {
        let line = format!("--on local:{count} {flags} -T {{}} -o {{}}out {inputs}");
        let output = run_well(sort(words(scratch, &line)));
        let out = fs::read(scratch.path("out")).unwrap();
        assert!(out == wanted, "{count} nodes: {}", stderr(&output));
        fs::remove_file(scratch.path("out")).unwrap();
        let names = scratch.names();
        let left = names.iter().filter(|name| name.contains("sortmill"));
        assert_eq!(left.count(), 0, "{count} nodes left {names:?}");
    }
}

/// A generator of numbers that tests of this file share.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        self.0 >> 24
    }
}

/// Records of 24 bytes: a key of 8 with `key_count` values, then their number, so that ties show.
fn fixed(count: u64, key_count: u64, seed: u64) -> Vec<u8> {
    let mut numbers = Numbers(seed);
    let record = |at: u64| {
        let key = (numbers.next() % key_count).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        [key.to_be_bytes(), at.to_be_bytes(), [7; 8]].concat()
    };
    (0..count).flat_map(record).collect()
}

fn fixed_sorted(input: &[u8]) -> Vec<u8> {
    let mut records: Vec<&[u8]> = input.chunks(24).collect();
    records.sort_by_key(|record| &record[..8]);
    records.concat()
}

fn pair(key: &[u8], value: &[u8]) -> Vec<u8> {
    let lengths = [key.len() as u32, value.len() as u32].map(u32::to_le_bytes);
    [&lengths.concat(), key, value].concat()
}

/// Pairs in input order and by their keys. Some keys and values are long, many keys are the same.
fn pairs(bytes: usize, seed: u64) -> (Vec<u8>, Vec<u8>) {
    let mut numbers = Numbers(seed);
    let mut all = Vec::new();
    let mut have = 0;
    while have < bytes {
        let key = match numbers.next() % 1000 {
            0 => vec![b'7'; (numbers.next() % 100_000) as usize],
            _ => (numbers.next() % 3000).to_string().into_bytes(),
        };
        let mut value = all.len().to_string().into_bytes();
        if numbers.next().is_multiple_of(2000) {
            value.resize((numbers.next() % 2_000_000) as usize, b'v');
        }
        have += 8 + key.len() + value.len();
        all.push((key, value));
    }
    let bytes = |all: &[(Vec<u8>, Vec<u8>)]| -> Vec<u8> {
        all.iter()
            .flat_map(|(key, value)| pair(key, value))
            .collect()
    };
    let input = bytes(&all);
    all.sort_by(|one, other| one.0.cmp(&other.0));
    (input, bytes(&all))
}

#[test]
fn lines_of_several_files_some_of_them_empty() {
    let scratch = Scratch::new("local-lines");
    let mut one = text(9_000_000, 31);
    one.extend(b"a last line without its newline");
    let other = text(6_000_000, 32);
    fs::write(scratch.path("one"), &one).unwrap();
    fs::write(scratch.path("empty"), b"").unwrap();
    fs::write(scratch.path("other"), &other).unwrap();
    let all = [&one, b"\n".as_slice(), &other].concat();
    let inputs = "{}empty {}one {}empty {}other {}empty";
    check(&scratch, "-S 400MiB", inputs, &sorted(&all));
}

/// Records whose size divides nothing, so that every share begins in the middle of one.
#[test]
fn records_with_equal_keys_keep_their_order() {
    let scratch = Scratch::new("local-fixed");
    let key = "--format fixed:24 --key 0:8";
    for key_count in [1, 2, 100, u64::MAX] {
        let input = fixed(700_000, key_count, 33);
        fs::write(scratch.path("in"), &input).unwrap();
        let flags = format!("{key} -S 400MiB");
        check(&scratch, &flags, "{}in", &fixed_sorted(&input));
    }
}

#[test]
fn pairs_with_equal_keys_keep_their_order() {
    let scratch = Scratch::new("local-kv");
    let (input, wanted) = pairs(18_000_000, 34);
    fs::write(scratch.path("in"), &input).unwrap();
    fs::write(scratch.path("none"), b"").unwrap();
    check(
        &scratch,
        "--format kv -S 400MiB",
        "{}none {}in {}none",
        &wanted,
    );
    check(
        &scratch,
        "--format kv -S 400MiB --io posix --no-direct",
        "{}in",
        &wanted,
    );
}

#[test]
fn next_to_nothing() {
    let scratch = Scratch::new("local-little");
    let cases: [(&[u8], &[u8]); 5] = [
        (b"", b""),
        (b"x", b"x\n"),
        (b"\n", b"\n"),
        (b"b\na", b"a\nb\n"),
        (b"c\nb\na\n", b"a\nb\nc\n"),
    ];
    for (input, wanted) in cases {
        fs::write(scratch.path("in"), input).unwrap();
        check(&scratch, "-S 400MiB", "{}in", wanted);
    }
    fs::write(scratch.path("in"), b"").unwrap();
    check(&scratch, "--format kv -S 400MiB", "{}in {}in", b"");
    let one = fixed(1, 9, 1);
    fs::write(scratch.path("in"), &one).unwrap();
    check(&scratch, "--format fixed:24 -S 400MiB", "{}in", &one);
}

/// Lines that end in another share than they begin in, some of which are longer than a chunk.
#[test]
fn long_lines_go_on_from_share_to_share() {
    let scratch = Scratch::new("local-long");
    let mut numbers = Numbers(35);
    let mut input = Vec::new();
    while input.len() < 45_000_000 {
        let bytes = numbers.next() % 3_900_000;
        let letter = b'a' + (numbers.next() % 26) as u8;
        input.extend(format!("{} ", numbers.next() % 1000).bytes());
        input.resize(input.len() + bytes as usize, letter);
        input.push(b'\n');
        input.extend(text(20_000, bytes));
    }
    fs::write(scratch.path("in"), &input).unwrap();
    check(&scratch, "-S 1000MiB", "{}in", &sorted(&input));
}

/// Each is counted once, by the node in whose share it turns out to be too long.
#[test]
fn lines_too_long_are_counted_once() {
    let scratch = Scratch::new("local-too-long");
    let mut input = Vec::new();
    let mut good = Vec::new();
    for round in 0..4u8 {
        let some = text(2_500_000, u64::from(round));
        input.extend(&some);
        good.extend(&some);
        input.resize(input.len() + 9_000_000, b'm');
        input.push(b'\n');
    }
    // And one that is cut off: the last.
    input.extend(b"z\n");
    good.extend(b"z\n");
    fs::write(scratch.path("in"), &input).unwrap();
    check(
        &scratch,
        "--memory 300MiB --threads 1 --skip-bad 4",
        "{}in",
        &sorted(&good),
    );
    for count in COUNTS {
        let line = format!("--memory 300MiB --threads 1 --on local:{count} -o {{}}out {{}}in");
        let line = format!("--skip-bad 3 {line}");
        run_badly(
            sort(words(&scratch, &line)),
            &["a record is longer than", "/in", "at byte"],
        );
        assert_eq!(scratch.names(), ["in"]);
    }
}

#[test]
fn a_record_that_is_cut_off_is_told_with_file_and_offset() {
    let scratch = Scratch::new("local-cut-off");
    let input = fixed(500_000, 9, 36);
    fs::write(scratch.path("in"), &input[..input.len() - 11]).unwrap();
    let offset = format!("at byte {}", input.len() - 24);
    for count in COUNTS {
        let line = format!("--on local:{count} -S 400MiB --format fixed:24 -o {{}}out {{}}in");
        let wanted = ["/in", &offset, "13 of 24 bytes", "--skip-bad", "on node"];
        run_badly(sort(words(&scratch, &line)), &wanted);
        assert_eq!(scratch.names(), ["in"]);
    }
}

/// Data larger than the memory: nodes spill, divide and merge; the report adds up what they did.
#[test]
fn data_larger_than_the_memory() {
    let scratch = Scratch::new("local-spills");
    let input = text(140_000_000, 37);
    fs::write(scratch.path("in"), &input).unwrap();
    let wanted = sorted(&input);
    for (count, memory) in [(2, 110), (3, 165)] {
        let line = format!(
            "--on local:{count} -S {memory}MiB --threads 1 -T {{}} --report {{}}report -o {{}}out {{}}in"
        );
        run_well(sort(words(&scratch, &line)));
        assert!(fs::read(scratch.path("out")).unwrap() == wanted);
        let report = fs::read(scratch.path("report")).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        let number = |value: &serde_json::Value| value.as_u64().unwrap();
        let nodes = report["nodes"].as_array().unwrap();
        assert_eq!(nodes.len(), count);
        let sum = |of: &str| -> u64 { nodes.iter().map(|node| number(&node["bytes"][of])).sum() };
        assert_eq!(sum("input"), input.len() as u64);
        assert_eq!(sum("output"), wanted.len() as u64);
        assert!(sum("temp_written") > 10_000_000, "{}", report["bytes"]);
        assert_eq!(
            number(&report["bytes"]["temp_written"]),
            sum("temp_written")
        );
        let stage = |phase: usize, name: &str, of: &str| {
            let stages = report["phases"][phase]["stages"].as_array().unwrap();
            let found = stages.iter().find(|stage| stage["stage"] == name);
            number(&found.unwrap()[of])
        };
        // What is sent is received, and nothing comes to the sorters but what was cut out of the input.
        let (sent, received) = (
            stage(0, "send", "records_in"),
            stage(0, "receive", "records_out"),
        );
        assert!(sent > 0);
        assert_eq!(sent, received);
        assert_eq!(
            stage(0, "cut", "records_out"),
            stage(1, "reduce", "records_in")
        );
        fs::remove_file(scratch.path("out")).unwrap();
        assert_eq!(scratch.names(), ["in", "report"]);
    }
}

/// Ranges that a sample of the beginning gets all wrong: nearly all records go to one node.
#[test]
fn one_node_gets_nearly_everything() {
    let scratch = Scratch::new("local-skew");
    let input: Vec<u8> = (0..900_000u32)
        .flat_map(|at| pair(format!("{at:09}").as_bytes(), &[b'v'; 20]))
        .collect();
    fs::write(scratch.path("in"), &input).unwrap();
    check(
        &scratch,
        "--format kv -S 300MiB --threads 1",
        "{}in",
        &input,
    );
}

#[test]
fn the_output_may_be_an_input_and_is_verified() {
    let scratch = Scratch::new("local-in-place");
    let input = text(8_000_000, 38);
    fs::write(scratch.path("in"), &input).unwrap();
    let output = run_well(sort(words(&scratch, "--on local:2 -S 400MiB -o {}in {}in")));
    assert!(fs::read(scratch.path("in")).unwrap() == sorted(&input));
    let said = stderr(&output);
    assert!(said.contains("read again from the device"), "{said}");
    assert!(said.contains("on 2 nodes"), "{said}");
    assert_eq!(scratch.names(), ["in"]);
}

#[test]
fn what_nodes_cannot_do_is_refused() {
    let scratch = Scratch::new("local-refused");
    fs::write(scratch.path("in"), b"b\na\n").unwrap();
    super::make_fifo(&scratch.path("pipe"));
    for (line, wanted) in [
        ("--on local:2 {}in", ["--on", "-o"]),
        ("--on local:2 -o {}out", ["--on", "stream"]),
        ("--on local:2 -o {}out -", ["--on", "stream"]),
        ("--on local:2 -o {}out {}pipe", ["--on", "/pipe"]),
        ("--on local:2 -o {}pipe {}in", ["--on", "/pipe"]),
        ("--on local:2 --parts {}parts {}in", ["--on", "--parts"]),
        ("--on local:2 --until cut {}in", ["--on", "--until"]),
        (
            "--on local:2 --trace {}trace -o {}out {}in",
            ["--on", "--trace"],
        ),
        ("--on local:2 --probe -o {}out {}in", ["--on", "--probe"]),
        (
            "--on local:2 --boundaries uniform -o {}out {}in",
            ["--on", "--boundaries"],
        ),
        ("--on local:0 -o {}out {}in", ["--on", "1 to 64"]),
        ("--on local:65 -o {}out {}in", ["--on", "1 to 64"]),
        ("--on local: -o {}out {}in", ["--on", "1 to 64"]),
        ("--on local:two -o {}out {}in", ["--on", "1 to 64"]),
        ("--on elsewhere:2 -o {}out {}in", ["--on", "local:N"]),
        (
            "--on local:64 -S 64MiB -o {}out {}in",
            ["--memory", "needs at least"],
        ),
        (
            "--on local:2 -o {}out {}missing",
            ["/missing", "No such file"],
        ),
    ] {
        run_badly(sort(words(&scratch, line)), &wanted);
        assert_eq!(scratch.names(), ["in", "pipe"], "{line}");
    }
    // Too few descriptors: the number that is enough counts the nodes.
    let mut command = std::process::Command::new("prlimit");
    command.args(["--nofile=64", crate::PROGRAM, "sort"]);
    command.args(words(&scratch, "--on local:30 -S 8G -o {}out {}in"));
    run_badly(
        super::caught(command),
        &["starting a node", "ulimit -n 124"],
    );
    assert_eq!(scratch.names(), ["in", "pipe"]);
}

#[test]
fn the_plan_tells_of_nodes() {
    let scratch = Scratch::new("local-plan");
    fs::write(scratch.path("in"), text(5_000_000, 39)).unwrap();
    let line = "--on local:3 -S 600MiB --dry-run -o {}out {}in";
    let output = run_well(sort(words(&scratch, line)));
    let plan = String::from_utf8(output.stdout).unwrap();
    for words in [
        "nodes            3,",
        "memory           200.0 MiB",
        "frames between nodes",
    ] {
        assert!(plan.contains(words), "{words:?} is not in\n{plan}");
    }
    assert_eq!(scratch.names(), ["in"]);
}

/// Told by the nodes, added up: as much as was read and written.
#[test]
fn progress_adds_up_what_nodes_do() {
    let scratch = Scratch::new("local-progress");
    let input = text(60_000_000, 40);
    fs::write(scratch.path("in"), &input).unwrap();
    let line = "--on local:2 -S 400MiB --progress json -o {}out {}in";
    let output = run_well(sort(words(&scratch, line)));
    let said = stderr(&output);
    let last = said.lines().rfind(|line| line.starts_with('{'));
    let last: serde_json::Value =
        serde_json::from_str(last.unwrap_or_else(|| panic!("{said}"))).unwrap();
    assert_eq!(last["phase"], "done", "{last}");
    let phases = last["phases"].as_array().unwrap();
    let of = |phase: &str| phases.iter().find(|one| one["phase"] == phase).unwrap();
    let read = of("distribute")["read_bytes"].as_u64().unwrap();
    assert!(read >= input.len() as u64, "{last}");
    let written = of("sort")["written_bytes"].as_u64().unwrap();
    // But for the blocks that two nodes share.
    assert!(written + 8192 >= input.len() as u64, "{last}");
}
