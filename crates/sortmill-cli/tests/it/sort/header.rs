//! Lines that stay at the top.

use std::process::Command;

use sortmill::io::codec::Codec;

use super::packed::packed;
use super::{caught, run, run_badly, run_on_pipe, run_well, sort, sorted, text, words};
use crate::{PROGRAM, Scratch};

const MEMORY: &str = "--memory 64MiB --threads 2";

/// The first `count` lines, and the rest.
fn cut(input: &[u8], count: usize) -> (&[u8], &[u8]) {
    let ends = input.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let end = ends.map(|(at, _)| at + 1).nth(count.wrapping_sub(1));
    input.split_at(if count == 0 {
        0
    } else {
        end.unwrap_or(input.len())
    })
}

/// What is to come out: the header of the first input that has one, and all records in order.
fn expected(inputs: &[&[u8]], count: usize) -> Vec<u8> {
    let headers = inputs.iter().map(|input| cut(input, count).0);
    let mut out = headers
        .into_iter()
        .find(|header| !header.is_empty())
        .unwrap_or_default()
        .to_vec();
    if !out.is_empty() && !out.ends_with(b"\n") {
        out.push(b'\n');
    }
    let records: Vec<Vec<u8>> = inputs
        .iter()
        .map(|input| {
            let mut records = cut(input, count).1.to_vec();
            if !records.is_empty() && !records.ends_with(b"\n") {
                records.push(b'\n');
            }
            records
        })
        .collect();
    out.extend(sorted(&records.concat()));
    out
}

/// Sorts `inputs` with `count` header lines in every way there is.
fn check(name: &str, inputs: &[&[u8]], count: usize) {
    let scratch = Scratch::new(&format!("header-{name}"));
    let wanted = expected(inputs, count);
    let (mut plain, mut compressed) = (String::new(), String::new());
    for (number, input) in inputs.iter().enumerate() {
        std::fs::write(scratch.path(&format!("in{number}")), input).unwrap();
        let gz = packed(Codec::Gzip, input, 70_000);
        std::fs::write(scratch.path(&format!("in{number}.gz")), gz).unwrap();
        plain += &format!(" {{}}in{number}");
        // An input of nothing has no member, and is no .gz.
        compressed += &format!(
            " {{}}in{number}{}",
            if number % 2 == 0 { ".gz" } else { "" }
        );
    }
    for (output, flags) in [
        ("-o {}out", ""),
        ("-o {}out", "--verify"),
        ("-o {}out", "--temp-apart"),
        ("-o {}out.zst", "--verify"),
        ("", ""),
    ] {
        for inputs in [&plain, &compressed] {
            let line = format!("{MEMORY} -q --header {count} {flags} {output} {inputs}");
            let ran = run_well(sort(words(&scratch, &line)));
            let have = match output {
                "" => ran.stdout,
                "-o {}out" => std::fs::read(scratch.path("out")).unwrap(),
                _ => run_well(caught(unpack(&scratch))).stdout,
            };
            assert!(
                have == wanted,
                "{line}: {} bytes and not {}",
                have.len(),
                wanted.len()
            );
        }
    }
    let line = format!("--header {count} {{}}out");
    let mut command = Command::new(PROGRAM);
    command.arg("check").args(words(&scratch, &line));
    run_well(caught(command));
}

/// The plain bytes of `out.zst`, by our own program: one thread, nothing in order.
fn unpack(scratch: &Scratch) -> Command {
    let bytes = std::fs::read(scratch.path("out.zst")).unwrap();
    let mut decoder = sortmill::io::codec::Decoder::new(Codec::Zstd, &bytes[..], u64::MAX).unwrap();
    let (mut out, mut room) = (Vec::new(), vec![0; 1 << 16]);
    while let Ok(made @ 1..) = decoder.read(&mut room) {
        out.extend_from_slice(&room[..made]);
    }
    std::fs::write(scratch.path("plain"), out).unwrap();
    let mut command = Command::new("cat");
    command.arg(scratch.path("plain"));
    command
}

#[test]
fn one_line_at_the_top() {
    check(
        "one",
        &[&[b"~ a header\n".as_slice(), &text(700_000, 1)].concat()],
        1,
    );
}

#[test]
fn each_inputs_header_is_its_own() {
    let with = |header: &[u8], seed| [header, &text(300_000, seed)].concat();
    let (one, two, three) = (
        with(b"~ one\n\n", 2),
        with(b"two\nmore\n", 3),
        with(b"\n\n", 4),
    );
    check("several", &[&one, &two, &three], 2);
}

#[test]
fn inputs_that_are_shorter_than_their_headers() {
    let cases: [[&[u8]; 2]; 5] = [
        [b"", b"h\n2\n1\n"],
        [b"only", b"h\n2\n1"],
        [b"", b""],
        [b"h\nx", b""],
        [b"\n", b"\n\nb\na"],
    ];
    for (number, inputs) in cases.into_iter().enumerate() {
        for count in [1, 2, 5] {
            check(&format!("short-{number}-{count}"), &inputs, count);
        }
    }
}

#[test]
fn a_header_longer_than_a_chunk_is_passed_over_and_a_kept_one_has_a_limit() {
    let scratch = Scratch::new("header-long");
    let long = [vec![b'h'; 9 << 20], b"\nb\na\n".to_vec()].concat();
    std::fs::write(scratch.path("short"), "h\nc\n").unwrap();
    std::fs::write(scratch.path("long"), &long).unwrap();
    let line = format!("{MEMORY} -q --header 1 {{}}short {{}}long");
    assert_eq!(
        run_well(sort(words(&scratch, &line))).stdout,
        b"h\na\nb\nc\n"
    );
    // Nor where it is read first, as plain files are before compressed ones.
    let gz = packed(Codec::Gzip, b"h\na\n", 100);
    std::fs::write(scratch.path("short.gz"), gz).unwrap();
    let line = format!("{MEMORY} -q --header 1 {{}}short.gz {{}}long");
    let output = run_well(sort(words(&scratch, &line)));
    assert!(output.stdout.starts_with(b"h\na\n"));
    let gz = packed(Codec::Gzip, b"", 100);
    std::fs::write(scratch.path("none.gz"), gz).unwrap();
    for inputs in ["{}long {}short", "{}none.gz {}long {}short"] {
        let line = format!("{MEMORY} -q --header 1 -o {{}}out {inputs}");
        run_badly(
            sort(words(&scratch, &line)),
            &["long: at byte 0: ", "longer than 1.0 MiB"],
        );
    }
    assert_eq!(scratch.names(), ["long", "none.gz", "short", "short.gz"]);
}

#[test]
fn a_header_in_a_pipe() {
    let scratch = Scratch::new("header-pipe");
    let input = [b"~\n".as_slice(), &text(5_000_000, 5)].concat();
    let wanted = expected(&[&input], 1);
    for bytes in [input.clone(), packed(Codec::Lz4, &input, 100_000)] {
        let line = format!("{MEMORY} -q --header 1");
        let output = run_on_pipe(sort(words(&scratch, &line)), &bytes);
        assert!(output.stdout == wanted);
    }
}

/// Of lines that end with NUL so do those at the top.
#[test]
fn a_header_that_ends_with_nul() {
    let scratch = Scratch::new("header-nul");
    std::fs::write(scratch.path("one"), "~\none\0b\0a").unwrap();
    std::fs::write(scratch.path("two"), "~\ntwo").unwrap();
    let line = format!("{MEMORY} -q -z --header 1 {{}}one {{}}two");
    let wanted = b"~\none\0a\0b\0";
    assert_eq!(run_well(sort(words(&scratch, &line))).stdout, wanted);
    for (flags, inputs) in [
        ("--verify", "{}one {}two"),
        ("--header 1", "{}two {}one"),
        ("--header 3 --verify", "{}one"),
    ] {
        let line = format!("{MEMORY} -q -z --header 1 {flags} -o {{}}out {inputs}");
        run_well(sort(words(&scratch, &line)));
        let wanted: &[u8] = match inputs {
            "{}one" => b"~\none\0b\0a\0",
            "{}one {}two" => wanted,
            _ => b"~\ntwo\0a\0b\0",
        };
        assert_eq!(
            std::fs::read(scratch.path("out")).unwrap(),
            wanted,
            "{flags}"
        );
    }
}

#[test]
fn where_headers_make_no_sense() {
    let scratch = Scratch::new("header-refused");
    std::fs::write(scratch.path("in"), "h\nb\na\n").unwrap();
    for line in [
        "--header 1 --format fixed:2 -o {}out {}in",
        "--header 1 --format kv -o {}out {}in",
        "--header 1 --parts {}parts {}in",
        "--header 1 --on local:2 -o {}out {}in",
    ] {
        run_badly(sort(words(&scratch, line)), &["keeping the header lines"]);
    }
    let mut command = Command::new(PROGRAM);
    command
        .arg("check")
        .args(words(&scratch, "--header 1 --format fixed:2 {}in"));
    run_badly(caught(command), &["no lines in front of them"]);
    // Without its header the input is not in order.
    let mut command = Command::new(PROGRAM);
    command
        .arg("check")
        .args(words(&scratch, "--header 2 {}in"));
    assert_eq!(run(caught(command)).status.code(), Some(0));
    let mut command = Command::new(PROGRAM);
    command
        .arg("check")
        .args(words(&scratch, "--header 1 {}in"));
    assert_eq!(run(caught(command)).status.code(), Some(1));
}
