//! Pairs, from the command line.

use std::fs;

use super::{run, run_badly, run_on_pipe, run_well, sort, words};
use crate::{PROGRAM, Scratch};

fn pair(key: &[u8], value: &[u8]) -> Vec<u8> {
    let lengths = [key.len() as u32, value.len() as u32].map(u32::to_le_bytes);
    [&lengths.concat(), key, value].concat()
}

fn check(scratch: &Scratch, name: &str) -> std::process::Output {
    let mut command = std::process::Command::new(PROGRAM);
    command.args(["check", "--format", "kv"]);
    command.arg(scratch.path(name));
    run(super::caught(command))
}

#[test]
fn pairs_are_sorted_checked_and_verified() {
    let scratch = Scratch::new("kv");
    let number = |at: u32| at.wrapping_mul(2_654_435_761) % 5000;
    let key = |at: u32| vec![b'k'; 1 + (number(at) % 40) as usize];
    let value = |at: u32| at.to_string().into_bytes();
    let all: Vec<(Vec<u8>, Vec<u8>)> = (0..20_000).map(|at| (key(at), value(at))).collect();
    let bytes = |all: &[(Vec<u8>, Vec<u8>)]| -> Vec<u8> {
        all.iter()
            .flat_map(|(key, value)| pair(key, value))
            .collect()
    };
    let input = bytes(&all);
    let mut wanted = all.clone();
    wanted.sort_by(|a, b| a.0.cmp(&b.0));
    let wanted = bytes(&wanted);

    fs::write(scratch.path("in"), &input).unwrap();
    assert_eq!(check(&scratch, "in").status.code(), Some(1));
    run_well(sort(words(
        &scratch,
        "--format kv --verify -T {} -o {}out {}in",
    )));
    assert!(fs::read(scratch.path("out")).unwrap() == wanted);
    let checked = check(&scratch, "out");
    assert_eq!(checked.status.code(), Some(0));
    let text = String::from_utf8(checked.stdout).unwrap();
    assert!(
        text.starts_with("records: 20000\n") && text.ends_with("in order\n"),
        "{text}"
    );
    let piped = run_on_pipe(sort(words(&scratch, "--format kv -q")), &input);
    assert!(piped.stdout == wanted);
}

#[test]
fn nothing_is_sorted_to_nothing() {
    let scratch = Scratch::new("kv-empty");
    fs::write(scratch.path("in"), b"").unwrap();
    run_well(sort(words(
        &scratch,
        "--format kv -q -T {} -o {}out {}in {}in",
    )));
    assert_eq!(fs::read(scratch.path("out")).unwrap(), b"");
    assert_eq!(run_on_pipe(sort(["--format", "kv", "-q"]), b"").stdout, b"");
}

#[test]
fn a_pair_that_is_cut_off_is_told_with_file_and_offset() {
    let scratch = Scratch::new("kv-bad");
    let good = [pair(b"b", b"2"), pair(b"a", b"1")].concat();
    let bad = &pair(b"cut", b"off")[..13];
    fs::write(scratch.path("in"), [&good, bad].concat()).unwrap();
    run_badly(
        sort(words(&scratch, "--format kv -o {}out {}in")),
        &[
            "/in",
            "byte 20",
            "cut off: it has 13 of 14 bytes",
            "--skip-bad",
        ],
    );
    run_well(sort(words(
        &scratch,
        "--format kv --skip-bad 1 -o {}out {}in",
    )));
    let wanted = [pair(b"a", b"1"), pair(b"b", b"2")].concat();
    assert_eq!(fs::read(scratch.path("out")).unwrap(), wanted);
}

#[test]
fn a_key_of_bytes_is_refused() {
    run_badly(
        sort(["--format", "kv", "--key", "0:4"]),
        &["kv records have a key of their own"],
    );
}

/// Of a pair longer than a block only the first bytes of its key are looked at while sorting: next to a shorter one with the same
/// long key both came out.
#[test]
fn of_long_keys_that_are_equal_one_is_kept() {
    let scratch = Scratch::new("kv-unique");
    let key = |end: usize| [&[b'h'; 8192][..], format!("{end:02}").as_bytes()].concat();
    let mut input = Vec::new();
    for end in 0..12 {
        input.extend(pair(&key(end), b"short"));
    }
    input.extend(pair(&key(1), &vec![b'v'; 300_000]));
    fs::write(scratch.path("in"), &input).unwrap();
    let flags = "--format kv -u --verify --memory 25M -q";
    run_well(sort(words(&scratch, &format!("{flags} -o {{}}out {{}}in"))));
    let wanted = (0..12).flat_map(|end| pair(&key(end), b"short"));
    assert!(fs::read(scratch.path("out")).unwrap() == wanted.collect::<Vec<u8>>());
}

/// What is read again is compared by the first MiB of a key, which does not tell that longer ones are the same.
#[test]
fn long_keys_that_begin_alike_are_verified() {
    let scratch = Scratch::new("kv-verified");
    let line = |end: &str| [&vec![b'l'; 5_000_000][..], end.as_bytes(), b"\n"].concat();
    let wanted = [b"a\n".to_vec(), line("x"), line("y")].concat();
    let input = [line("y"), line("x"), b"a\n".to_vec(), line("x")].concat();
    fs::write(scratch.path("in"), &input).unwrap();
    let flags = "-u --verify --memory 100M -q";
    run_well(sort(words(&scratch, &format!("{flags} -o {{}}out {{}}in"))));
    assert!(fs::read(scratch.path("out")).unwrap() == wanted);
}
