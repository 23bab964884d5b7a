//! Temporary data in the space of the output: nothing is written over before it was loaded, whatever the sample
//! foretold.

use sortmill::job::Tuning;
use sortmill::order::{Format, KeyPart};

use super::inputs::{Random, fixed, seed};
use super::{Case, MACHINES, Machine, SMALL};

/// Records of 40 bytes whose keys all begin with `first`.
fn narrow(random: &mut Random, first: u8, count: usize) -> Vec<u8> {
    let mut bytes = fixed(40, random, count);
    bytes.chunks_mut(40).for_each(|record| record[0] = first);
    bytes
}

#[test]
fn in_the_output_and_apart_come_out_the_same() {
    let mut random = Random::new(seed("in_the_output_and_apart_come_out_the_same"));
    let input = fixed(40, &mut random, 100_000);
    for (number, machine) in MACHINES.into_iter().chain([Machine::Sim; 6]).enumerate() {
        for temp_apart in [false, true] {
            let case = Case {
                memory_bytes: 700_000 + 100_000 * random.below(20) as u64,
                threads: 1 + number % 3,
                temp_apart,
                ..Case::fixed(40, &[KeyPart::plain(0, 4)], vec![input.clone()])
            };
            let report = case.check(machine, &format!("apart {temp_apart}"));
            assert!(report.bytes.temp_written > 0, "it fits in memory");
            assert_eq!(report.plan.shared_bytes.is_some(), !temp_apart);
        }
    }
}

/// Two places that are sampled tell little: partitions are larger and smaller than their shares, so that blocks lie
/// behind the output, are loaded well before they are needed, or are moved out of the way.
#[test]
fn a_sample_that_misleads() {
    let mut random = Random::new(seed("a_sample_that_misleads"));
    let (mut moved, mut rounds) = (0, 0);
    while moved == 0 || rounds < 12 {
        // Keys all over, and then many in a narrow range: mostly the lowest.
        let everywhere = fixed(40, &mut random, 30_000 + rounds % 40_000);
        let count = 20_000 + random.below(100_000);
        let narrow = narrow(&mut random, (rounds % 2 * rounds) as u8, count);
        let case = Case {
            memory_bytes: 700_000 + 50_000 * random.below(12) as u64,
            threads: 1 + random.below(3),
            equal_keys_meet: random.below(2) == 0,
            tuning: Tuning {
                sample_count: Some(1 + random.below(2)),
                partition_count: Some(4 + random.below(30)),
                ..SMALL
            },
            ..Case::fixed(40, &[KeyPart::plain(0, 3)], vec![everywhere, narrow])
        };
        let report = case.check(Machine::Sim, &format!("round {rounds}"));
        moved += u64::from(report.bytes.moved > 0);
        rounds += 1;
        assert!(rounds < 60, "never was anything moved");
    }
    println!("moved in {moved} of {rounds} rounds");
}

/// Lines: the last one of each input gets a newline, and the output is that much longer than the input.
#[test]
fn newlines_that_are_added() {
    let mut random = Random::new(seed("newlines_that_are_added"));
    let inputs: Vec<Vec<u8>> = (0..300)
        .map(|_| {
            let count = random.below(20_000);
            let mut bytes = random.bytes(count);
            bytes.iter_mut().for_each(|byte| *byte %= 64);
            bytes
        })
        .collect();
    let case = Case {
        format: Format::Lines,
        memory_bytes: 1_300_000,
        ..Case::lines(inputs)
    };
    let report = case.check(Machine::Sim, "many inputs");
    assert!(report.bytes.temp_written > 0);
}
