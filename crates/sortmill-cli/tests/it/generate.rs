//! `sortmill gen records`

use std::io::Read;
use std::process::{Command, Output, Stdio};

use sortmill::gen_records::{Alphabet, Records};

use crate::{PROGRAM, Scratch};

const BINARY: Records = Records {
    alphabet: Alphabet::Binary,
    skew: false,
};

fn bytes(records: Records, start: u128, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count * 100];
    records.fill(start, &mut bytes);
    bytes
}

fn program(line: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["gen", "records"]).args(line.split(' '));
    command
}

fn words(output: &Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}

#[test]
fn standard_output_is_the_records_and_standard_error_the_words() {
    for io in ["uring", "posix"] {
        let output = program(&format!("100_000 - --checksum --io {io}"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", words(&output));
        assert!(output.stdout == bytes(BINARY, 0, 100_000));
        assert_eq!(words(&output), "c3068574c6ff\n");
    }
    let output = program("10 - -v").output().unwrap();
    assert!(
        words(&output).starts_with("10 records, 1000 B in "),
        "{}",
        words(&output)
    );
    assert_eq!(words(&program("10 -").output().unwrap()), "");
}

#[test]
fn standard_output_may_be_a_file() {
    let scratch = Scratch::new("redirected");
    let file = std::fs::File::create(scratch.path("out")).unwrap();
    assert!(program("100000 -").stdout(file).status().unwrap().success());
    assert!(std::fs::read(scratch.path("out")).unwrap() == bytes(BINARY, 0, 100_000));
}

#[test]
fn a_reader_that_leaves_is_told_of() {
    let mut child = program("1_000_000_000 - --threads 8")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut beginning = vec![0; 5_000_000];
    child
        .stdout
        .take()
        .unwrap()
        .read_exact(&mut beginning)
        .unwrap();
    assert!(beginning == bytes(BINARY, 0, 50_000));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        words(&output).contains("writing the output: Broken pipe"),
        "{}",
        words(&output)
    );
}
