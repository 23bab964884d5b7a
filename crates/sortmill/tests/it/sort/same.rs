//! The same input and options give the same bytes, whatever carries them there.

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
