//! Pairs of a key and a value: any lengths, cut by chunks anywhere, and lengths that lie.

use sortmill::error::{Error, ErrorKind};
use sortmill::io::sim::Sim;
use sortmill::job::{Input, Job, Output, Tuning};
use sortmill::order::{Format, KeyPart, Order};
use sortmill::queue::Stop;
use sortmill::report::Report;
use sortmill::run;

use super::inputs::{Random, seed};
use super::{Case, MACHINES, Machine, SMALL, compare, oracle};

const CHUNK: usize = 16 << 10;

/// A pair.
pub fn pair(key: &[u8], value: &[u8]) -> Vec<u8> {
    let lengths = [key.len() as u32, value.len() as u32].map(u32::to_le_bytes);
    [&lengths.concat(), key, value].concat()
}

/// Keys of few letters, so that many are equal and many are prefixes of others; values of any length.
pub fn pairs(random: &mut Random, bytes: usize, key_max: usize, value_max: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes + key_max + value_max);
    while out.len() < bytes {
        let letters = [1, 2, 256][random.below(3)];
        let most = 1 + random.below(key_max + 1);
        let length = random.below(most);
        let key: Vec<u8> = (0..length).map(|_| random.below(letters) as u8).collect();
        let length = random.below(value_max + 1);
        out.extend(pair(&key, &random.bytes(length)));
    }
    out
}

fn kv(inputs: Vec<Vec<u8>>) -> Case {
    Case::new(Format::Kv, inputs)
}

#[test]
fn pairs_of_every_length_are_sorted() {
    let mut random = Random::new(seed("pairs_of_every_length_are_sorted"));
    let kinds = [
        (0, 0),
        (3, 0),
        (0, 20),
        (12, 40),
        (300, 300),
        (40, 3000),
        (4000, 4000),
    ];
    for (number, (key_max, value_max)) in kinds.into_iter().enumerate() {
        for stream in [None, Some(0)] {
            let bytes = if key_max + value_max < 4 {
                300_000
            } else {
                3_000_000
            };
            let case = Case {
                stream,
                memory_bytes: if key_max < 4000 { 1 << 20 } else { 4 << 20 },
                threads: 1 + random.below(3),
                ..kv(vec![pairs(&mut random, bytes, key_max, value_max)])
            };
            for machine in [MACHINES[number % 3], Machine::Sim] {
                case.check(
                    machine,
                    &format!("keys to {key_max}, values to {value_max}"),
                );
            }
        }
    }
}

/// A chunk may end anywhere in a pair: in its lengths, in its key, at its end.
#[test]
fn a_chunk_ends_anywhere_in_a_pair() {
    let last = |bytes: usize| pair(b"last", &vec![b'v'; bytes]);
    for before in CHUNK - 30..CHUNK + 3 {
        for value in [0, 1, 3 * CHUNK / 2] {
            let first = pair(b"m", &vec![b'x'; before - 9]);
            let input = [first, pair(b"key", &vec![b'y'; value]), last(4)].concat();
            let case = Case {
                memory_bytes: 4 << 20,
                ..kv(vec![input.clone(), vec![], input])
            };
            case.check(
                Machine::Sim,
                &format!("{before} bytes before, {value} of value"),
            );
        }
    }
}

#[test]
fn small_inputs_of_pairs() {
    for inputs in [
        vec![],
        vec![vec![]],
        vec![vec![], vec![]],
        vec![pair(b"", b"")],
        vec![pair(b"", b"").repeat(3)],
        vec![
            pair(b"b", b"1"),
            vec![],
            [pair(b"a", b""), pair(b"b", b"2")].concat(),
        ],
        vec![[pair(b"a\0", b""), pair(b"a", b"\0"), pair(b"", b"a")].concat()],
    ] {
        for machine in MACHINES {
            kv(inputs.clone()).check(machine, &format!("{inputs:?}"));
        }
    }
}

#[test]
fn long_pairs_are_sorted_and_merged() {
    let mut random = Random::new(seed("long_pairs_are_sorted_and_merged"));
    for partition_count in [None, Some(1)] {
        for machine in [Machine::Uring, Machine::Sim] {
            let mut input = Vec::new();
            while input.len() < 6_000_000 {
                input.extend(pairs(&mut random, 20_000, 20, 100));
                let long = random.below(60_000);
                let (key, value) = if random.below(2) == 0 {
                    (long, 9)
                } else {
                    (2, long)
                };
                let key = vec![b'a' + random.below(2) as u8; key];
                input.extend(pair(&key, &random.bytes(value)));
            }
            let case = Case {
                memory_bytes: 4 << 20,
                equal_keys_meet: partition_count.is_some(),
                tuning: Tuning {
                    partition_count,
                    ..SMALL
                },
                ..kv(vec![input])
            };
            case.check(machine, "long pairs");
        }
    }
}

/// Reads of a file fill the memory for chunks at once, and what is in them is the sample: it was taken before any of
/// them had ended, so that all pairs of a file began in one partition.
#[test]
fn pairs_of_a_file_are_sampled() {
    let mut random = Random::new(seed("pairs_of_a_file_are_sampled"));
    let mut input = Vec::new();
    while input.len() < 3_000_000 {
        input.extend(pair(&random.bytes(8), &random.bytes(20)));
    }
    for machine in MACHINES {
        let report = kv(vec![input.clone()]).check(machine, "a file of pairs");
        let partitions = &report.partitions;
        assert!(4 * partitions.divided < partitions.count, "{partitions:?}");
    }
}

/// Sorts `input` on the simulated machine, with so many bad records left out.
fn sort_bad(input: &[u8], stream: bool, skip_bad: u64) -> Result<(Vec<u8>, Report), Error> {
    let sim = Sim::new(1);
    sim.put_dir("/temp");
    let named = if stream {
        sim.put_stdin(input);
        Input::Stdin
    } else {
        sim.put("/in", input);
        Input::Path("/in".into())
    };
    let mut job = Job::new(vec![named], Output::Path("/out".into()), Format::Kv);
    job.memory_bytes = Some(1 << 20);
    job.temps = vec!["/temp".into()];
    job.tuning = SMALL;
    job.skip_bad = skip_bad;
    let report = run::sort(&job, &sim, &Stop::new())?;
    Ok((sim.get("/out").unwrap(), report))
}

/// What is wrong with an input that ends in `bad`, and that without it the rest is sorted.
fn check_bad(good: &[u8], bad: &[u8], after: &[u8], words: &[&str]) {
    let input = [good, bad, after].concat();
    for stream in [false, true] {
        let error = sort_bad(&input, stream, 0).map(|_| ()).unwrap_err();
        let text = error.to_string();
        assert_eq!(error.kind, ErrorKind::Input, "{text}");
        assert_eq!(error.offset, Some(good.len() as u64), "{text}");
        for words in words {
            assert!(text.contains(words), "{text}\nsays nothing of {words:?}");
        }
        let (output, report) = sort_bad(&input, stream, 1).unwrap();
        let wanted = oracle::sorted(Format::Kv, &[], &[[good, after].concat()]).concat();
        compare(&output, &wanted, "what was left");
        assert_eq!(report.skipped_records, 1);
        assert_eq!(report.skipped_first.len(), 1);
    }
}

#[test]
fn a_last_pair_that_is_cut_off_is_bad() {
    let mut random = Random::new(seed("a_last_pair_that_is_cut_off_is_bad"));
    for _ in 0..20 {
        let bytes = random.below(3 * CHUNK);
        let good = pairs(&mut random, bytes, 20, 400);
        let length = 1 + random.below(CHUNK);
        let last = pair(b"the last", &random.bytes(length));
        for cut in [1, 4, 7, 8, 9, 16, last.len() - 1, 8 + random.below(length)] {
            let told = if cut < 8 { 8 } else { last.len() };
            let words = format!("cut off: it has {cut} of {told} bytes");
            check_bad(&good, &last[..cut], &[], &[&words, "--skip-bad"]);
        }
    }
}

/// Lengths that lie lead to no wild read and no wild allocation.
#[test]
fn lengths_that_lie_are_bad_input() {
    let mut random = Random::new(seed("lengths_that_lie_are_bad_input"));
    for _ in 0..10 {
        let bytes = random.below(3 * CHUNK);
        let mut good = pairs(&mut random, bytes, 20, 400);
        if good.len() % CHUNK > CHUNK - 11 {
            // Then it would be known before the end how long the last pair is.
            good.extend(pair(b"more", b"and more"));
        }
        for lengths in [
            [u32::MAX, u32::MAX],
            [u32::MAX, 0],
            [0, u32::MAX],
            [3, 1 << 30],
        ] {
            let lie = lengths.map(u32::to_le_bytes).concat();
            // At the end of the input, and with more behind it.
            check_bad(
                &good,
                &[&lie, b"abc".as_slice()].concat(),
                &[],
                &["cut off: it has 11 of"],
            );
            let more = [lie, random.bytes(3 * CHUNK)].concat();
            check_bad(&good, &more, &[], &["record is longer than"]);
        }
    }
}

/// A pair that is too long is passed over as far as its lengths say, and the next one is found.
#[test]
fn a_pair_too_long_for_the_memory_is_passed_over() {
    let mut random = Random::new(seed("a_pair_too_long_for_the_memory_is_passed_over"));
    for _ in 0..10 {
        let bytes = random.below(3 * CHUNK);
        let good = pairs(&mut random, bytes, 20, 400);
        let long = pair(b"too long", &random.bytes((1 << 20) + CHUNK));
        let after = pairs(&mut random, 2 * CHUNK, 20, 400);
        check_bad(
            &good,
            &long,
            &after,
            &["record is longer than", "by its lengths it has 1.0 MiB"],
        );
    }
}

/// Any bytes at all: an output or an error about the input, never a fault.
#[test]
fn garbage_is_sorted_or_refused() {
    let mut random = Random::new(seed("garbage_is_sorted_or_refused"));
    for _ in 0..300 {
        let length = random.below(100_000);
        let mut bytes = random.bytes(length);
        if random.below(2) == 0 {
            let sparse = |byte: &u8| byte.is_multiple_of(8);
            bytes
                .iter_mut()
                .filter(|byte| !sparse(byte))
                .for_each(|byte| *byte = 0);
        }
        match sort_bad(&bytes, random.below(2) == 0, [0, 3][random.below(2)]) {
            Ok((output, report)) => {
                assert_eq!(output.len() as u64, report.fingerprints.written.bytes);
                oracle::sorted(Format::Kv, &[], &[output]);
            }
            Err(error) => assert_eq!(error.kind, ErrorKind::Input, "{error}"),
        }
    }
}

#[test]
fn a_key_of_bytes_does_not_suit_pairs() {
    let error = Order::new(Format::Kv, &[KeyPart::plain(0, 4)]).unwrap_err();
    assert!(error.to_string().contains("--format fixed:SIZE"), "{error}");
}
