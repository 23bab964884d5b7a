//! The same input and options give the same bytes, whatever carries them there.

use sortmill::disk::Figures;
use sortmill::job::Tuning;
use sortmill::order::{Format, KeyPart};

use super::inputs::{Lines, Random, fixed, lines, seed};
use super::{Case, MACHINES, Machine, oracle};

/// Every machine, 1, 2 and 4 threads, five memory sizes, file and stream, with and without meeting keys.
fn check_sameness(format: Format, keys: &[KeyPart], input: &[u8]) {
    let inputs = vec![input.to_vec()];
    let wanted = oracle::sorted(format, keys, &inputs).concat();
    for machine in MACHINES {
        for (number, memory_bytes) in [1 << 20, 1_300_000, 2 << 20, 4 << 20, 16 << 20]
            .into_iter()
            .enumerate()
        {
            for threads in [1, 2, 4] {
                // Every second combination is enough for the two that change nothing else.
                let stream = ((number + threads / 2) % 2 == 0).then_some(0);
                if machine == Machine::Cached && threads != 2 {
                    continue;
                }
                let equal_keys_meet = number % 2 == 0;
                let case = Case {
                    keys: keys.to_vec(),
                    memory_bytes,
                    threads,
                    stream,
                    equal_keys_meet,
                    ..Case::new(format, inputs.clone())
                };
                let what = format!(
                    "{memory_bytes} bytes, {threads} threads, stream {stream:?}, \
                     equal_keys_meet {equal_keys_meet}, {machine:?}"
                );
                let (output, _) = case
                    .try_run(machine)
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                super::compare(&output, &wanted, &what);
            }
        }
    }
}

#[test]
fn fixed_records_come_out_the_same() {
    let mut random = Random::new(seed("fixed_records_come_out_the_same"));
    let input = fixed(40, &mut random, 60_000);
    check_sameness(Format::Fixed(40), &[KeyPart::plain(0, 2)], &input);
}

#[test]
fn lines_come_out_the_same() {
    let mut random = Random::new(seed("lines_come_out_the_same"));
    let input = lines(Lines::Dominated, &mut random, 2_000_000);
    check_sameness(Format::Lines, &[], &input);
}

/// Blocks and requests follow from what was measured of a disk, places do not.
#[test]
fn disks_change_the_plan_and_not_the_output() {
    let mut random = Random::new(seed("disks_change_the_plan_and_not_the_output"));
    let keys = [KeyPart::plain(0, 2)];
    let inputs = vec![fixed(100, &mut random, 1_000_000)];
    let wanted = oracle::sorted(Format::Fixed(100), &keys, &inputs).concat();
    let mut plans = Vec::new();
    for (block_bytes_max, in_flight_bytes) in [
        (1, 1),
        (64 << 10, 8 << 20),
        (1 << 20, 16 << 20),
        (16 << 20, 64 << 20),
        (u64::MAX, u64::MAX),
    ] {
        let case = Case {
            memory_bytes: 80 << 20,
            tuning: Tuning {
                partition_count: Some(1),
                ..Tuning::default()
            },
            disk: Some(Figures {
                block_bytes_max,
                in_flight_bytes,
                measured_on: "2026-11-22".to_owned(),
                stale: false,
                rates: None,
            }),
            ..Case::fixed(100, &keys, inputs.clone())
        };
        let what = format!("{block_bytes_max} bytes a block, {in_flight_bytes} in flight");
        let (output, report) = case
            .try_run(Machine::Posix)
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        super::compare(&output, &wanted, &what);
        assert!(report.bytes.temp_written > 0, "{what}");
        plans.push((report.plan.block_bytes, report.plan.chunk_depth));
    }
    println!("block and chunks in flight: {plans:?}");
    assert_eq!(plans[0], (64 << 10, 2));
    assert!(plans[3].0 > 1 << 20 && plans[3].1 == 16, "{plans:?}");
}
