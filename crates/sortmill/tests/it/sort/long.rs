//! Records up to half the memory: right, stable, and in the memory they were promised, whatever way they take.

use std::sync::Arc;

use sortmill::error::ErrorKind;
use sortmill::job::{MapFn, ReduceFn, Reducer, Tuning, each};
use sortmill::order::{Format, KeyPart};

use super::inputs::{Random, fixed, seed};
use super::kv::pair;
use super::{Case, MACHINES, Machine, SMALL};

/// Blocks are of 4 KiB here, so a record from about that on is long, and 1 KiB of its key stands for all of it.
const BLOCK: usize = 4096;
const HEAD: usize = 1024;

/// A key of `length` bytes, many of them zeros, that often begins as others do.
fn key(random: &mut Random, length: usize) -> Vec<u8> {
    let mut key = vec![[0, b'a', b'b'][random.below(3)]; length];
    for _ in 0..random.below(4) {
        if length > 0 {
            let at = random.below(length);
            key[at] = [0, 1, b'c', 255][random.below(4)];
        }
    }
    key
}

/// Lengths around everything that bounds something, up to `longest`.
fn length(random: &mut Random, longest: usize) -> usize {
    match random.below(8) {
        0 => random.below(3),
        1 => random.below(100),
        2 => HEAD - 2 + random.below(4),
        3 => BLOCK - 120 + random.below(140),
        4 => 2 * BLOCK - 140 + random.below(160),
        5 => random.below(5 * BLOCK),
        6 => random.below(longest / 8),
        _ => random.below(60),
    }
}

/// Lines with one of exactly `longest` bytes, its newline among them, and no newline at the end.
fn lines(random: &mut Random, bytes: usize, longest: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut is_planted = false;
    while out.len() < bytes {
        if out.len() >= bytes / 3 && !is_planted {
            is_planted = true;
            out.extend(key(random, longest - 1));
            out.push(b'\n');
        }
        let length = length(random, longest);
        out.extend(key(random, length));
        out.push(b'\n');
    }
    let length = length(random, longest);
    out.extend(key(random, length));
    out
}

#[test]
fn lines_of_nothing_to_half_the_memory() {
    let mut random = Random::new(seed("lines_of_nothing_to_half_the_memory"));
    for threads in 1..=4 {
        for stream in [None, Some(0)] {
            for machine in [Machine::Sim, MACHINES[random.below(3)]] {
                let memory_bytes = 2 << 20;
                let input = lines(&mut random, 5_000_000, memory_bytes / 2);
                let case = Case {
                    memory_bytes: memory_bytes as u64,
                    threads,
                    stream,
                    temp_apart: random.below(2) == 0,
                    ..Case::lines(vec![input, b"last\0one".to_vec()])
                };
                let report = case.check(machine, "long lines");
                assert!(report.partitions.long_records > 20);
                assert!(report.bytes.temp_written > 2_000_000);
            }
        }
    }
}

/// All in memory: bodies never leave it.
#[test]
fn long_lines_that_fit_in_memory_move_once() {
    let mut random = Random::new(seed("long_lines_that_fit_in_memory_move_once"));
    for machine in MACHINES {
        let case = Case {
            memory_bytes: 8 << 20,
            ..Case::lines(vec![lines(&mut random, 3_000_000, 1 << 20)])
        };
        let report = case.check(machine, "long lines in memory");
        assert!(report.partitions.long_records > 20);
        assert_eq!(report.bytes.temp_written, 0);
    }
}

#[test]
fn a_line_longer_than_half_the_memory_is_refused() {
    for stream in [None, Some(0)] {
        for over in [1, 3_000_000] {
            let mut input = b"some\nlines\n".to_vec();
            input.extend(vec![b'x'; (1 << 20) - 1 + over]);
            input.extend(b"\nmore\n");
            let case = Case {
                memory_bytes: 2 << 20,
                stream,
                ..Case::lines(vec![input])
            };
            let error = case.try_run(Machine::Sim).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Input);
            assert_eq!(error.offset, Some(11));
            let text = error.to_string();
            for words in ["longer than 1.0 MiB", "it has 1.0 MiB or more"] {
                assert!(text.contains(words), "{text}\nsays nothing of {words:?}");
            }
            let name = if stream.is_some() { "-" } else { "/in0" };
            assert_eq!(error.path.as_ref().unwrap(), std::path::Path::new(name));
        }
    }
}

/// Pairs whose keys begin alike for longer than a stub can tell, and are equal in the end, or not: the values tell
/// whether the order of the input was kept.
fn alike(random: &mut Random, bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut number = 0u32;
    while out.len() < bytes {
        let same = [HEAD - 1, HEAD, HEAD + 1, 3000, 5000, 9000][random.below(6)];
        let mut key = vec![b'k'; same];
        key.extend(&random.bytes(2)[..random.below(3)]);
        let mut value = number.to_le_bytes().to_vec();
        value.resize(4 + [0, 10, BLOCK][random.below(3)], b'v');
        out.extend(pair(&key, &value));
        number += 1;
    }
    out
}

#[test]
fn keys_that_begin_alike_are_told_apart_by_all_of_them() {
    let mut random = Random::new(seed("keys_that_begin_alike_are_told_apart_by_all_of_them"));
    for stream in [None, Some(0)] {
        for machine in [Machine::Sim, Machine::Uring] {
            let case = Case {
                stream,
                ..Case::new(Format::Kv, vec![alike(&mut random, 1_500_000)])
            };
            let report = case.check(machine, "keys alike");
            assert!(report.partitions.long_records > 20);
        }
    }
}

#[test]
fn long_records_are_merged_too() {
    let mut random = Random::new(seed("long_records_are_merged_too"));
    for machine in [Machine::Sim, Machine::Posix] {
        let mut input = alike(&mut random, 2_000_000);
        for _ in 0..40_000 {
            let key = random.bytes(10);
            input.extend(pair(&key, b""));
        }
        input.extend(alike(&mut random, 2_000_000));
        let case = Case {
            equal_keys_meet: true,
            tuning: Tuning {
                partition_count: Some(1),
                ..SMALL
            },
            ..Case::new(Format::Kv, vec![input])
        };
        let report = case.check(machine, "long records and short ones");
        assert!(report.partitions.merged > 0);
        assert!(report.partitions.long_records > 20);
    }
}

#[test]
fn a_long_key_or_a_long_value() {
    let mut random = Random::new(seed("a_long_key_or_a_long_value"));
    for machine in [Machine::Sim, Machine::Uring] {
        for threads in [1, 3] {
            let half = 1 << 20;
            let mut input = alike(&mut random, 500_000);
            input.extend(pair(&vec![b'k'; half - 8 - 3], b"end"));
            input.extend(alike(&mut random, 1_500_000));
            input.extend(pair(b"kk", &random.bytes(half - 8 - 2)));
            input.extend(pair(&vec![b'k'; half - 8], b""));
            let case = Case {
                memory_bytes: 2 * half as u64,
                threads,
                ..Case::new(Format::Kv, vec![input])
            };
            case.check(machine, "half the memory");
        }
    }
}

/// Records of a fixed size are long all of them or none; their keys lie anywhere.
#[test]
fn fixed_records_longer_than_a_block() {
    let mut random = Random::new(seed("fixed_records_longer_than_a_block"));
    let mut alike = fixed(6000, &mut random, 400);
    for record in alike.chunks_mut(6000) {
        record[..5900].fill(7);
        record[5950..].fill(0);
        record[5900] %= 3;
    }
    let reversed = KeyPart {
        reversed: true,
        ..KeyPart::plain(100, 5850)
    };
    for keys in [
        vec![],
        vec![KeyPart::plain(10, 5891)],
        vec![reversed],
        vec![KeyPart::plain(5900, 1), KeyPart::plain(0, 9)],
    ] {
        for partition_count in [None, Some(1)] {
            let case = Case {
                memory_bytes: 1 << 20,
                tuning: Tuning {
                    partition_count,
                    ..SMALL
                },
                ..Case::fixed(6000, &keys, vec![alike.clone()])
            };
            case.check(Machine::Sim, &format!("{keys:?}"));
        }
    }
}

fn same_map() -> MapFn {
    each(|line, made| made.push(line))
}

fn same_reduce() -> ReduceFn {
    Arc::new(|| -> Reducer {
        Box::new(|record, out| {
            if let Some(record) = record {
                out.put(record);
            }
        })
    })
}

/// What is asked to see records whole sees them whole, up to the limit of before.
#[test]
fn functions_see_long_records_whole() {
    let mut random = Random::new(seed("functions_see_long_records_whole"));
    let mut input = Vec::new();
    while input.len() < 3_000_000 {
        let length = random.below(18_000);
        input.extend(key(&mut random, length));
        input.push(b'\n');
    }
    let case = Case {
        memory_bytes: 2 << 20,
        map: Some(same_map()),
        reduce: Some(same_reduce()),
        ..Case::lines(vec![input.clone()])
    };
    for machine in [Machine::Sim, Machine::Uring] {
        let report = case.check(machine, "through functions");
        assert!(report.partitions.long_records > 20);
        assert!(!report.plan.takes_parts);
    }
    let mut too_long = case;
    too_long.inputs[0].extend(vec![b'x'; 100_000]);
    let error = too_long.try_run(Machine::Sim).unwrap_err();
    assert!(error.to_string().contains("record is longer"), "{error}");
}

/// Lines that no sampled place holds whole: partitions come out even, so nothing is merged and hardly a byte moves
/// that need not. Places are sampled at random: one job in some thirty gets a partition of twice its share, which is
/// divided, and blocks are moved out of its way; that is not what is asked here.
#[test]
fn lines_longer_than_a_sampled_place_are_sampled() {
    let mut random = Random::new(seed("lines_longer_than_a_sampled_place_are_sampled"));
    // Lines of 100 KiB are longer than the blocks here, and leave a quarter of them empty.
    for (kib, most) in [(20, 1.1), (100, 1.2)] {
        let mut input = Vec::new();
        while input.len() < 400_000_000 {
            let line = format!("{:016x} ", random.next());
            input.extend(line.bytes());
            input.resize(input.len() + kib * 1024 - random.below(3000), b'.');
            input.push(b'\n');
        }
        let case = Case {
            memory_bytes: 48 << 20,
            tuning: Tuning::default(),
            ..Case::lines(vec![input])
        };
        let report = case.check(Machine::Uring, "lines of one length");
        assert_eq!(report.partitions.merged, 0);
        let bytes = &report.bytes;
        let moved = bytes.input_read
            + bytes.sample_read
            + bytes.temp_written
            + bytes.temp_read
            + bytes.output_written
            - 2 * bytes.moved;
        let ratio = moved as f64 / bytes.lower_bound as f64;
        println!(
            "{kib} KiB: {ratio:.3} of the lower bound, {:?}",
            report.partitions
        );
        assert!(ratio < most, "{ratio}: {bytes:?}");
    }
}
