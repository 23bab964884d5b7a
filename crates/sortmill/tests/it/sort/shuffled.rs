//! Orders that are drawn: every one as likely as any other, the same for a seed, whatever the memory, threads and machine,
//! and of all the records.

use sortmill::error::ErrorKind;
use sortmill::job::Tuning;
use sortmill::order::Format;
use sortmill::yields::Yield;

use super::inputs::{ALL_LINES, Lines, Random, fixed, lines, seed};
use super::{Case, MACHINES, Machine, SMALL, oracle, report};

/// `count` lines of 200 bytes that begin with their numbers: a chunk of the tests holds twenty.
fn numbered(count: usize) -> Vec<u8> {
    let line = |number: usize| format!("{number:04} {}\n", "x".repeat(194)).into_bytes();
    (0..count).flat_map(line).collect()
}

/// The numbers of the lines that come out where `count` of them are shuffled by `seed`.
fn order(count: usize, partition_count: usize, seed: u64) -> Vec<usize> {
    let case = Case {
        yields: Yield::Shuffled(seed),
        tuning: Tuning {
            chunk_bytes: Some(4096),
            partition_count: Some(partition_count),
            ..SMALL
        },
        ..Case::lines(vec![numbered(count)])
    };
    let (output, _) = case.try_run(Machine::Sim).unwrap();
    let lines = output.split_inclusive(|&byte| byte == b'\n');
    let number = |line: &[u8]| String::from_utf8_lossy(&line[..4]).parse().unwrap();
    lines.map(number).collect()
}

/// Pearson's sum over cells that are expected to have `expected` each.
fn chi_squared(cells: &[u32], expected: f64) -> f64 {
    let off = |&cell: &u32| (f64::from(cell) - expected).powi(2) / expected;
    cells.iter().map(off).sum()
}

/// The bound is exceeded once in a million times: 24 cells, 23 degrees of freedom.
#[test]
fn every_permutation_of_four_is_as_likely() {
    const ROUNDS: u64 = 720;
    let first = seed("every_permutation_of_four_is_as_likely");
    let mut cells = [0; 256];
    for round in 0..ROUNDS {
        let order = order(4, 2, first.wrapping_mul(1_000_003).wrapping_add(round));
        let code = order.iter().fold(0, |code, &number| code * 4 + number);
        cells[code] += 1;
    }
    let cells: Vec<u32> = cells.into_iter().filter(|&cell| cell > 0).collect();
    assert_eq!(cells.len(), 24, "{cells:?}");
    let sum = chi_squared(&cells, ROUNDS as f64 / 24.0);
    println!("chi squared {sum:.1}");
    assert!(sum < 73.0, "{cells:?}");
}

/// Sixty lines in three chunks, dealt to five partitions: where each comes out, over many seeds. 3,481 degrees of freedom;
/// six standard deviations.
#[test]
fn every_record_is_as_likely_anywhere() {
    const COUNT: usize = 60;
    const ROUNDS: u64 = 600;
    let first = seed("every_record_is_as_likely_anywhere");
    let mut cells = vec![0; COUNT * COUNT];
    for round in 0..ROUNDS {
        let order = order(COUNT, 5, first.wrapping_mul(1_000_003).wrapping_add(round));
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..COUNT), "seed {round}: {order:?}");
        for (place, number) in order.into_iter().enumerate() {
            cells[place * COUNT + number] += 1;
        }
    }
    let sum = chi_squared(&cells, ROUNDS as f64 / COUNT as f64);
    let free = ((COUNT - 1) * (COUNT - 1)) as f64;
    println!("chi squared {sum:.1} of {free}");
    assert!((sum - free).abs() < 6.0 * (2.0 * free).sqrt());
}

/// After two passes: a record follows the one it followed before once in as many times as there are records, and is a
/// third of them away from its place on average.
#[test]
fn neighbours_are_parted_in_two_passes() {
    let drawn = seed("neighbours_are_parted_in_two_passes");
    let count = 60_000;
    let input: Vec<u8> = (0..count)
        .flat_map(|number| format!("{number:08} {}\n", "y".repeat(40)).into_bytes())
        .collect();
    let case = Case {
        yields: Yield::Shuffled(drawn),
        tuning: Tuning {
            partition_count: Some(24),
            ..SMALL
        },
        ..Case::lines(vec![input])
    };
    let (output, report) = case.try_run(Machine::Posix).unwrap();
    assert!(report.bytes.temp_written > 1_000_000, "{:?}", report.bytes);
    assert_eq!(report.passes(), 2);
    let lines = output.split_inclusive(|&byte| byte == b'\n');
    let number = |line: &[u8]| String::from_utf8_lossy(&line[..8]).parse().unwrap();
    let order: Vec<i64> = lines.map(number).collect();
    let followed = order
        .windows(2)
        .filter(|pair| pair[0] + 1 == pair[1])
        .count();
    let places = order.iter().enumerate();
    let away: i64 = places
        .map(|(place, number)| (place as i64 - number).abs())
        .sum();
    let away = away as f64 / f64::from(count) / f64::from(count);
    println!("{followed} still follow each other; {away:.4} of all away");
    // One is expected, and more than 14 once in 10^12 times.
    assert!(followed <= 14, "{followed}");
    assert!((away - 1.0 / 3.0).abs() < 0.006, "{away}");
}

/// The same bytes in plenty of memory, in so little that partitions are spilled, and in so little that they are merged.
#[test]
fn the_order_is_that_of_the_seed_whatever_the_memory() {
    let mut random = Random::new(seed("the_order_is_that_of_the_seed_whatever_the_memory"));
    for kind in ALL_LINES {
        let inputs: Vec<Vec<u8>> = (0..2).map(|_| lines(kind, &mut random, 350_000)).collect();
        let drawn = random.next();
        let stream = (random.below(2) == 0).then_some(1);
        let (mut first, mut spilled, mut merged) = (None, 0, 0);
        for (memory_bytes, threads) in [(64 << 20, 1), (2 << 20, 3), (600 << 10, 2)] {
            let case = Case {
                yields: Yield::Shuffled(drawn),
                stream,
                memory_bytes,
                threads,
                temp_apart: random.below(2) == 0,
                tuning: Tuning {
                    partition_count: Some(3),
                    ..SMALL
                },
                ..Case::lines(inputs.clone())
            };
            let machine = MACHINES[random.below(MACHINES.len())];
            let told = format!("{kind:?} in {memory_bytes} on {machine:?}");
            let (output, report) = case
                .try_run(machine)
                .unwrap_or_else(|error| panic!("{told}: {error}"));
            let mut records = oracle::records(Format::Lines, &output);
            report::check(&case, &report, &output, records.len() as u64);
            records.sort();
            assert!(records.concat() == sorted(&inputs), "{told}: other records");
            assert!(
                *first.get_or_insert_with(|| output.clone()) == output,
                "{told}: another order"
            );
            spilled += u64::from(report.bytes.temp_written > 0);
            merged += report.partitions.merged;
        }
        assert!(spilled > 0, "{kind:?}");
        assert!(merged > 0 || kind == Lines::Long, "{kind:?}");
    }
}

/// The whole lines as bytes, each with its end: not the order of keys, but an order.
fn sorted(inputs: &[Vec<u8>]) -> Vec<u8> {
    let records = inputs
        .iter()
        .flat_map(|input| oracle::records(Format::Lines, input));
    let mut records: Vec<Vec<u8>> = records.collect();
    records.sort();
    records.concat()
}

#[test]
fn another_seed_is_another_order() {
    assert_ne!(order(50, 3, 1), order(50, 3, 2));
    assert_eq!(order(50, 3, 1), order(50, 3, 1));
}

#[test]
fn records_of_any_format_are_shuffled() {
    let mut random = Random::new(seed("records_of_any_format_are_shuffled"));
    let pairs: Vec<u8> = (0..30_000u32)
        .flat_map(|number| {
            let (key, value) = (
                random.below(30),
                random.below(9000 * usize::from(number % 500 == 0) + 1),
            );
            let lengths = [key as u32, value as u32].map(u32::to_le_bytes).concat();
            [lengths, random.bytes(key), vec![number as u8; value]].concat()
        })
        .collect();
    for (format, input) in [
        (Format::Kv, pairs),
        (Format::Fixed(30), fixed(30, &mut random, 60_000)),
        (Format::Fixed(9_000), fixed(9_000, &mut random, 200)),
    ] {
        let mut first = None;
        for memory_bytes in [64 << 20, 1200 << 10] {
            let case = Case {
                yields: Yield::Shuffled(7),
                memory_bytes,
                tuning: Tuning {
                    partition_count: Some(6),
                    ..SMALL
                },
                ..Case::new(format, vec![input.clone()])
            };
            let told = format!("{format:?} in {memory_bytes}");
            let (output, done) = case
                .try_run(Machine::Sim)
                .unwrap_or_else(|error| panic!("{told}: {error}"));
            let [mut have, mut want] =
                [&output, &input].map(|bytes| oracle::records(format, bytes));
            assert!(have != want, "{told}: it is as it was");
            report::check(&case, &done, &output, have.len() as u64);
            have.sort();
            want.sort();
            assert!(have == want, "{told}: other records");
            assert!(
                *first.get_or_insert_with(|| output.clone()) == output,
                "{told}: another order"
            );
        }
    }
}

/// How many partitions there are is for the seed's order, so too little memory for them is an error with the number.
#[test]
fn too_little_memory_for_all_partitions_is_said() {
    let case = Case {
        yields: Yield::Shuffled(1),
        tuning: Tuning {
            partition_count: Some(5000),
            ..SMALL
        },
        ..Case::lines(vec![b"a\n".repeat(100)])
    };
    let error = case.try_run(Machine::Sim).expect_err("too little");
    assert_eq!(error.kind, ErrorKind::Memory, "{error}");
    assert!(error.to_string().contains("needs at least"), "{error}");
}
