//! Kinds of records by their keys: each is what it claims.

use std::collections::{HashMap, HashSet};
use std::process::Command;

use super::{output, program, refused, words};
use crate::{PROGRAM, Scratch};

/// The keys of what a command generates, all records being of 100 bytes and numbered from 0 on.
fn keys(line: &str) -> Vec<Vec<u8>> {
    let records = output(line);
    assert_eq!(records.len() % 100, 0, "{line}");
    for (number, record) in records.chunks(100).enumerate() {
        let written = u64::from_le_bytes(record[10..18].try_into().unwrap());
        assert_eq!(written, number as u64, "{line}");
    }
    records
        .chunks(100)
        .map(|record| record[..10].to_vec())
        .collect()
}

/// How often each key occurs, most frequent first.
fn counts(keys: &[Vec<u8>]) -> Vec<u64> {
    let mut counts: HashMap<&[u8], u64> = HashMap::new();
    for key in keys {
        *counts.entry(key).or_default() += 1;
    }
    let mut counts: Vec<u64> = counts.into_values().collect();
    counts.sort_unstable_by(|one, other| other.cmp(one));
    counts
}

/// A key's place in the range of all keys, 0 to 1.
fn place(key: &[u8]) -> f64 {
    u64::from_be_bytes(key[..8].try_into().unwrap()) as f64 / 2f64.powi(64)
}

fn near(found: u64, expected: f64) -> bool {
    (found as f64 - expected).abs() <= 5.0 * expected.sqrt() + 1.0
}

fn is_ascending(keys: &[Vec<u8>]) -> bool {
    keys.is_sorted_by(|one, next| one < next)
}

fn is_descending(keys: &[Vec<u8>]) -> bool {
    keys.is_sorted_by(|one, next| one > next)
}

#[test]
fn zipfs_law_is_kept() {
    for exponent in [0.5, 1.0, 1.5, 2.0] {
        let keys = keys(&format!(
            "zipf --exponent {exponent} --distinct 1000 200_000 -"
        ));
        let counts = counts(&keys);
        let weight = |k: usize| (k as f64).powf(-exponent);
        let all: f64 = (1..=1000).map(weight).sum();
        let expected = |k: usize| 200_000.0 * weight(k) / all;
        for (index, &count) in counts.iter().take(20).enumerate() {
            assert!(
                near(count, expected(index + 1)),
                "{exponent}: {index} {count}"
            );
        }
        // And of the tail, which single counts say little about: those behind the hundredth together. At
        // small counts their order is not that of the law, which adds a little to the ones before.
        let tail: u64 = counts.iter().skip(100).sum();
        let law: f64 = (101..=1000).map(expected).sum();
        assert!(
            (tail as f64 / law - 1.0).abs() < 0.1,
            "{exponent}: {tail}, {law}"
        );
        assert!(counts.len() <= 1000);
    }
}

#[test]
fn few_keys_are_so_many() {
    for (line, distinct) in [
        ("distinct 20000 -", 100),
        ("distinct --distinct 7 20000 -", 7),
        ("two 20000 -", 2),
        ("one 20000 -", 1),
    ] {
        let counts = counts(&keys(line));
        assert_eq!(counts.len(), distinct, "{line}");
        let each = 20_000.0 / distinct as f64;
        assert!(
            counts.iter().all(|&count| near(count, each)),
            "{line}: {counts:?}"
        );
    }
    // Keys of one byte are told apart by it.
    let records = output("distinct --distinct 256 --key-bytes 1 --record-bytes 9 20000 -");
    let firsts: HashSet<u8> = records.chunks(9).map(|record| record[0]).collect();
    assert_eq!(firsts.len(), 256);
}

#[test]
fn one_key_is_hot() {
    for (line, share) in [("hot 100000 -", 0.99), ("hot --share 30 100000 -", 0.3)] {
        let counts = counts(&keys(line));
        assert!(near(counts[0], 100_000.0 * share), "{line}: {}", counts[0]);
        assert!(
            near(100_000 - counts[0], 100_000.0 * (1.0 - share)),
            "{line}"
        );
        assert_eq!(counts[1], 1, "{line}");
    }
}

#[test]
fn orders_are_what_they_are_called() {
    assert!(is_ascending(&keys("sorted 30000 -")));
    assert!(is_descending(&keys("reversed 30000 -")));
    for count in [1_usize, 2, 9, 30_000] {
        let keys = keys(&format!("organ-pipe {count} -"));
        let (up, down) = keys.split_at(count.div_ceil(2));
        assert!(is_ascending(up) && is_descending(down), "{count}");
        assert_eq!(counts(&keys).len(), count);
    }
    let blocks = keys("blocks --block 700 30000 -");
    for block in blocks.chunks(700) {
        assert!(is_ascending(block));
        assert!(place(&block[0]) < 0.01);
    }
    assert!(!is_ascending(&blocks[600..800]));
    let almost = keys("sorted-but-last 30000 -");
    let (last, others) = almost.split_last().unwrap();
    assert!(is_ascending(others) && *last < others[0]);
}

#[test]
fn the_distribution_drifts() {
    let keys = keys("drift 30000 -");
    for (number, key) in keys.iter().enumerate() {
        let from = number as f64 / 30_000.0 * 7.0 / 8.0;
        let window = from - 1e-9..from + 0.125_1;
        assert!(window.contains(&place(key)), "{number}");
    }
    assert!(!is_ascending(&keys[..100]) && !is_ascending(&keys[29_900..]));
}

#[test]
fn prefixes_are_common() {
    for (line, record_bytes, prefix_bytes) in [
        ("prefix 20000 -", 150, 50),
        ("prefix --prefix 1000 20000 -", 1100, 1000),
    ] {
        let records = output(line);
        assert_eq!(records.len(), 20_000 * record_bytes);
        let mut places = 0.0;
        let mut keys = HashSet::new();
        for record in records.chunks(record_bytes) {
            assert_eq!(record[..prefix_bytes], records[..prefix_bytes], "{line}");
            places += place(&record[prefix_bytes..]);
            keys.insert(&record[prefix_bytes..prefix_bytes + 10]);
        }
        assert_eq!(keys.len(), 20_000, "{line}");
        assert!((places / 20_000.0 - 0.5).abs() < 0.02, "{line}: {places}");
    }
    let keys = keys("last-byte 100000 -");
    assert!(keys.iter().all(|key| key[..9] == keys[0][..9]));
    let counts = counts(&keys);
    assert_eq!(counts.len(), 256);
    assert!(counts.iter().all(|&count| near(count, 100_000.0 / 256.0)));
}

#[test]
fn the_hot_key_comes_late() {
    for (line, before) in [
        ("sample-killer 30000 -", 15_000),
        ("sample-killer --bytes 3MB -", 15_000),
        ("sample-killer --after 2MB 30000 -", 20_000),
    ] {
        let keys = keys(line);
        assert_eq!(keys.len(), 30_000);
        let (uniform, hot) = keys.split_at(before);
        assert_eq!(counts(uniform).len(), before, "{line}");
        assert!(uniform.iter().all(|key| *key != hot[0]), "{line}");
        assert_eq!(counts(hot).len(), 1, "{line}");
    }
}

/// Records that lie across two buffers are in the sum once.
#[test]
fn checksums_are_those_of_check() {
    let scratch = Scratch::new("gen-checksums");
    let path = scratch.path("out");
    for (record_bytes, count) in [(100, 90_000), (1001, 9_000), (700_003, 13), (7, 3)] {
        let line = format!("hot --checksum --record-bytes {record_bytes} --key-bytes 5 {count}");
        let made = program(&line).arg(&path).output().unwrap();
        assert!(made.status.success(), "{}", words(&made));
        let checked = Command::new(PROGRAM)
            .args(["check", "--format", &format!("fixed:{record_bytes}")])
            .arg(&path)
            .output()
            .unwrap();
        let told = String::from_utf8(checked.stdout).unwrap();
        let expected = format!("checksum: {}", words(&made));
        assert!(told.contains(&expected), "{expected} in {told}");
    }
}

#[test]
fn lengths_that_do_not_fit_are_refused() {
    for (line, expected) in [
        (
            "two --key-bytes 11 --record-bytes 10 5 -",
            "does not fit into a record of 10",
        ),
        (
            "distinct --distinct 257 --key-bytes 1 5 -",
            "no 257 distinct keys of 1 bytes",
        ),
        ("zipf --exponent 0 5 -", "not above 0"),
        ("hot --share 101 5 -", "not between 0 and 100"),
        (
            "one --record-bytes 0 5 -",
            "not between 1 and 1048576 bytes",
        ),
        ("sorted --bytes 5MB 5 -", "cannot be used with"),
        ("sorted -", "required"),
        ("sorted --seed x 5 -", "not a decimal number"),
    ] {
        refused(line, expected);
    }
}
