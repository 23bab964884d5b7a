//! Inputs of every shape against the oracle, on every machine.

use sortmill::job::Tuning;
use sortmill::order::{KeyPart, Number};

use super::inputs::{ALL_LINES, Lines, Random, fixed, lines, seed};
use super::{Case, MACHINES, Machine, SMALL};

#[test]
fn lines_of_every_kind_are_sorted() {
    let mut random = Random::new(seed("lines_of_every_kind_are_sorted"));
    for (number, kind) in ALL_LINES.into_iter().enumerate() {
        let bytes = match kind {
            Lines::Tiny | Lines::Zeros => 600_000,
            _ => 3_000_000,
        };
        let case = Case {
            threads: 1 + random.below(3),
            memory_bytes: if kind == Lines::Long {
                4 << 20
            } else {
                1 << 20
            },
            ..Case::lines(vec![lines(kind, &mut random, bytes)])
        };
        for machine in [MACHINES[number % 3], Machine::Sim] {
            let report = case.check(machine, &format!("{kind:?}"));
            let spills = kind != Lines::Tiny && kind != Lines::Zeros && kind != Lines::Long;
            let spills = spills && !report.order.is_some_and(|order| order.is_one_pass);
            assert!(
                report.partitions.evicted > 0 || !spills,
                "{kind:?} fits in memory"
            );
        }
    }
}

#[test]
fn small_inputs_with_every_kind_of_end() {
    let mut random = Random::new(seed("small_inputs_with_every_kind_of_end"));
    let no_newline = |mut bytes: Vec<u8>| {
        bytes.pop();
        bytes
    };
    let chunk = 16 << 10;
    let all = [
        vec![],
        vec![vec![]],
        vec![vec![], vec![], vec![]],
        vec![b"\n".to_vec()],
        vec![b"x".to_vec()],
        vec![b"\n\n\n".to_vec()],
        vec![b"b\na".to_vec()],
        vec![b"b".to_vec(), vec![], b"a".to_vec(), vec![], vec![]],
        vec![vec![], b"b\n".to_vec(), b"a\n".to_vec(), b"".to_vec()],
        vec![no_newline(lines(Lines::Uniform, &mut random, 100_000))],
        (0..40)
            .map(|_| no_newline(lines(Lines::Uniform, &mut random, 3000)))
            .collect(),
        // Ends and newlines just at a chunk's border.
        vec![vec![b'x'; chunk]],
        vec![[vec![b'x'; chunk - 1], b"\n".to_vec()].concat()],
        vec![[vec![b'x'; chunk], b"\na".to_vec()].concat()],
        vec![[vec![b'x'; chunk - 1], b"\n\nb\n".to_vec()].concat()],
        vec![vec![b'\n'; 2 * chunk]],
        vec![vec![b'\n'; 2 * chunk - 1]],
        vec![vec![b'z'; chunk + 4096], vec![b'y'; 4096], vec![b'w'; 4097]],
    ];
    for (number, inputs) in all.into_iter().enumerate() {
        for machine in MACHINES {
            let mut case = Case::lines(inputs.clone());
            case.memory_bytes = 2 << 20;
            case.check(machine, &format!("small input {number}"));
            // A real file is synced each time; the simulation goes through all of them.
            let streams = if machine == Machine::Sim { 3 } else { 1 };
            for stream in 0..inputs.len().min(streams) {
                case.stream = Some(stream);
                case.check(
                    machine,
                    &format!("small input {number} with stream {stream}"),
                );
            }
        }
    }
}

#[test]
fn records_longer_than_headroom_block_and_chunk() {
    let mut random = Random::new(seed("records_longer_than_headroom_block_and_chunk"));
    for threads in [1, 2] {
        for stream in [None, Some(0)] {
            let case = Case {
                stream,
                threads,
                memory_bytes: 4 << 20,
                ..Case::lines(vec![lines(Lines::Long, &mut random, 9_000_000)])
            };
            let report = case.check(MACHINES[random.below(4)], "long lines");
            // Partitions, or the bodies of long lines.
            assert!(report.bytes.temp_written > 0);
        }
    }
    for size in [4000, 4096, 5000, 16_384, 20_001, 50_000] {
        let case = Case {
            memory_bytes: 4 << 20,
            ..Case::fixed(
                size,
                &[KeyPart::plain(size / 2, 3)],
                vec![fixed(size as usize, &mut random, 6_000_000 / size as usize)],
            )
        };
        case.check(MACHINES[random.below(4)], &format!("fixed:{size}"));
    }
}

#[test]
fn keys_of_every_kind() {
    let mut random = Random::new(seed("keys_of_every_kind"));
    let numbers = [
        (Number::Bytes, false),
        (Number::Unsigned, false),
        (Number::Unsigned, true),
        (Number::Signed, false),
        (Number::Signed, true),
        (Number::Float, false),
        (Number::Float, true),
    ];
    for (number, little_endian) in numbers {
        for reversed in [false, true] {
            for bytes in [1, 2, 3, 4, 8, 9, 16] {
                if number == Number::Float && bytes != 4 && bytes != 8 {
                    continue;
                }
                let part = KeyPart {
                    offset: random.below(8) as u32,
                    bytes,
                    number,
                    little_endian,
                    reversed,
                };
                let input = fixed(30, &mut random, 2_000);
                let case = Case::fixed(30, &[part], vec![input]);
                case.check(Machine::Sim, &format!("{part:?}"));
            }
        }
    }
}

#[test]
fn keys_of_several_parts_over_data_larger_than_memory() {
    let mut random = Random::new(seed("keys_of_several_parts_over_data_larger_than_memory"));
    let any = |random: &mut Random| {
        let number = [
            Number::Bytes,
            Number::Unsigned,
            Number::Signed,
            Number::Float,
        ][random.below(4)];
        KeyPart {
            offset: random.below(20) as u32,
            bytes: [4, 8][random.below(2)],
            number,
            little_endian: number != Number::Bytes && random.below(2) == 0,
            reversed: random.below(2) == 0,
        }
    };
    for round in 0..12 {
        let keys: Vec<KeyPart> = (0..1 + random.below(3)).map(|_| any(&mut random)).collect();
        let input = fixed(40, &mut random, 60_000);
        let case = Case {
            threads: 1 + random.below(3),
            ..Case::fixed(40, &keys, vec![input])
        };
        let report = case.check(MACHINES[round % 4], &format!("{keys:?}"));
        assert!(report.partitions.evicted > 0);
    }
}

#[test]
fn records_of_every_size() {
    let mut random = Random::new(seed("records_of_every_size"));
    for size in [1u32, 2, 3, 7, 8, 9, 10, 100, 1000, 4051, 4096] {
        let count = (400_000 / size as usize).min(100_000);
        let input = fixed(size as usize, &mut random, count);
        let keys = match size {
            1 => vec![],
            _ => vec![KeyPart::plain(0, size / 2)],
        };
        let case = Case::fixed(size, &keys, vec![input]);
        case.check(MACHINES[random.below(4)], &format!("fixed:{size}"));
    }
}

/// A stream whose beginning says nothing about its rest: what was sampled must be mended by dividing.
#[test]
fn a_stream_that_changes_is_divided() {
    let mut random = Random::new(seed("a_stream_that_changes_is_divided"));
    let mut low = fixed(20, &mut random, 40_000);
    low.chunks_mut(20).for_each(|record| record[0] = 0);
    let mut high = random.bytes(20 * 250_000);
    high.chunks_mut(20).for_each(|record| record[0] = 200);
    let input = [low, high].concat();
    for machine in MACHINES {
        for threads in [1, 2] {
            let case = Case {
                stream: Some(0),
                threads,
                ..Case::fixed(20, &[KeyPart::plain(0, 6)], vec![input.clone()])
            };
            let report = case.check(machine, "a stream that changes");
            assert!(report.partitions.divided > 0);
            assert!(report.partitions.evicted > 0);
        }
    }
}

/// The same with one key in the rest: it is divided at places, unless equal keys must meet.
#[test]
fn a_stream_that_comes_to_one_key() {
    let mut random = Random::new(seed("a_stream_that_comes_to_one_key"));
    let mut input = random.bytes(20 * 40_000);
    let mut same = fixed(20, &mut random, 200_000);
    same.chunks_mut(20)
        .for_each(|record| record[..8].copy_from_slice(b"same key"));
    input.extend(same);
    for machine in MACHINES {
        for equal_keys_meet in [false, true] {
            let case = Case {
                stream: Some(0),
                equal_keys_meet,
                ..Case::fixed(20, &[KeyPart::plain(0, 8)], vec![input.clone()])
            };
            let report = case.check(machine, "a stream that comes to one key");
            let partitions = &report.partitions;
            println!("equal_keys_meet {equal_keys_meet}: {partitions:?}");
            assert!(partitions.divided > 0 || equal_keys_meet);
            assert!(partitions.merged > 0 || !equal_keys_meet);
        }
    }
}

/// A key that comes all the time after the sample was taken is divided again and again. Each part of it used to be read
/// with all that came before it: 30 GB for 1.5 GB of records.
#[test]
fn what_is_divided_at_places_is_read_once() {
    let mut random = Random::new(seed("what_is_divided_at_places_is_read_once"));
    for machine in MACHINES {
        let mut input = random.bytes(20 * 40_000);
        for number in 0..400_000_u32 {
            let mut record = *b"same key............";
            // Not alone: others come with it, below it and above.
            match random.below(20) {
                0 => record[..8].copy_from_slice(&random.bytes(8)),
                _ => record[12..16].copy_from_slice(&number.to_be_bytes()),
            }
            input.extend(record);
        }
        let case = Case {
            memory_bytes: 4 << 20,
            stream: Some(0),
            threads: 1 + random.below(3),
            tuning: Tuning {
                partition_count: Some(16),
                ..SMALL
            },
            ..Case::fixed(20, &[KeyPart::plain(0, 8)], vec![input])
        };
        let report = case.check(machine, "a key that the sample did not have");
        let (partitions, bytes) = (&report.partitions, &report.bytes);
        println!("{partitions:?}, {bytes:?}");
        assert!(partitions.divided > 10);
        assert!(4 * bytes.temp_read < 5 * bytes.temp_written, "{bytes:?}");
    }
}

/// A stream in order, as logs are, or nearly so: its partition at the end is divided again and again. Each part of it used
/// to be read with all that came before it: 147 GB for 3 GB of a log, in six minutes.
#[test]
fn a_stream_in_order_is_read_once() {
    let mut random = Random::new(seed("a_stream_in_order_is_read_once"));
    const COUNT: u32 = 400_000;
    for (round, machine) in MACHINES.into_iter().chain([Machine::Sim]).enumerate() {
        let (falls, late) = (random.below(2) == 0, [1, 5_000][round % 2]);
        let mut input = Vec::new();
        for number in 0..COUNT {
            let time = number + random.below(late) as u32;
            let time = if falls { 2 * COUNT - time } else { time };
            // Some lines have no time, but not where the sample is taken.
            if number > COUNT / 4 && random.below(300) == 0 {
                let [low, high] = ["  File \"a.py\", line 7\n", "Traceback (most recent)\n"];
                input.extend([low, high][random.below(2)].bytes());
            }
            // Keys that begin alike, as times of one day do.
            input.extend(format!("2026-11-23T{time:09} {:07}\n", random.below(1_000_000)).bytes());
        }
        let case = Case {
            memory_bytes: 4 << 20,
            stream: Some(0),
            threads: 1 + random.below(3),
            tuning: Tuning {
                partition_count: Some(16),
                ..SMALL
            },
            ..Case::lines(vec![input])
        };
        let report = case.check(
            machine,
            &format!("a stream in order, falls {falls}, late {late}"),
        );
        let (partitions, bytes) = (&report.partitions, &report.bytes);
        println!("{partitions:?}, {bytes:?}");
        assert!(partitions.divided > 10);
        assert!(bytes.temp_read < 2 * bytes.temp_written, "{bytes:?}");
    }
}

/// A stream whose keys rise and fall again. Parts of what was divided used to hold a little more than is sorted at once, each
/// with what had come before it was divided, and nine tenths of all went through a merge: 33 s for 5 GB, beside 12 s of
/// uniform keys.
#[test]
fn a_stream_that_turns_is_hardly_merged() {
    let mut random = Random::new(seed("a_stream_that_turns_is_hardly_merged"));
    const COUNT: usize = 200_000;
    for machine in MACHINES.into_iter().chain([Machine::Sim]) {
        let mut input = Vec::new();
        for number in 0..COUNT {
            let key = number.min(COUNT - number);
            input.extend((key as u32).to_be_bytes());
            input.extend([number as u8; 36]);
        }
        let case = Case {
            memory_bytes: 4 << 20,
            stream: Some(0),
            threads: 1 + random.below(3),
            tuning: Tuning {
                partition_count: Some(32),
                ..SMALL
            },
            ..Case::fixed(40, &[KeyPart::plain(0, 4)], vec![input])
        };
        let report = case.check(machine, "a stream that turns");
        let partitions = &report.partitions;
        println!("{partitions:?}, {:?}", report.bytes);
        assert!(partitions.divided > 20, "{partitions:?}");
        assert!(
            4 * partitions.merged <= partitions.divided,
            "{partitions:?}"
        );
    }
}

/// One partition, far larger than memory: it is merged from many runs.
#[test]
fn a_partition_larger_than_memory_is_merged() {
    let mut random = Random::new(seed("a_partition_larger_than_memory_is_merged"));
    for machine in MACHINES {
        for (memory_bytes, times) in [(1 << 20, 3), (1 << 20, 12), (3 << 20, 3)] {
            // A merge goes a block at a time, which a busy disk makes slow.
            if times > 3 && machine != Machine::Sim {
                continue;
            }
            let few = random.below(2) == 0;
            let mut input = random.bytes(times * memory_bytes as usize / 20 * 20);
            if few {
                input.chunks_mut(20).for_each(|record| record[0] %= 3);
            }
            let case = Case {
                memory_bytes,
                threads: 1 + random.below(2),
                stream: (random.below(2) == 0).then_some(0),
                equal_keys_meet: true,
                tuning: Tuning {
                    partition_count: Some(1),
                    ..SMALL
                },
                ..Case::fixed(20, &[KeyPart::plain(0, 1)], vec![input])
            };
            let report = case.check(machine, &format!("merge of {times} times {memory_bytes}"));
            assert!(report.partitions.merged > 0);
        }
    }
}

/// Many records in few bytes: all fits in memory but the entries to sort them.
#[test]
fn tiny_records_whose_entries_do_not_fit() {
    let mut random = Random::new(seed("tiny_records_whose_entries_do_not_fit"));
    for machine in [Machine::Uring, Machine::Sim] {
        for bytes in [200_000, 600_000, 2_500_000] {
            let case = Case {
                tuning: Tuning {
                    partition_count: Some(1),
                    ..SMALL
                },
                ..Case::lines(vec![lines(Lines::Tiny, &mut random, bytes)])
            };
            let report = case.check(machine, &format!("{bytes} bytes of tiny lines"));
            assert!(report.partitions.merged + report.partitions.divided > 0);
        }
    }
}

/// Long records in a merge: their fragments stay together on the way through a run.
#[test]
fn long_records_are_merged() {
    let mut random = Random::new(seed("long_records_are_merged"));
    for machine in [Machine::Uring, Machine::Sim] {
        let case = Case {
            memory_bytes: 4 << 20,
            equal_keys_meet: true,
            tuning: Tuning {
                partition_count: Some(1),
                ..SMALL
            },
            ..Case::lines(vec![lines(Lines::Long, &mut random, 6_000_000)])
        };
        case.check(machine, "long records");
    }
}

/// More runs than memory has blocks for: some are merged with each other first.
#[test]
fn more_runs_than_blocks_are_merged_in_turns() {
    let mut random = Random::new(seed("more_runs_than_blocks_are_merged_in_turns"));
    let mut input = random.bytes(40 << 20);
    input.truncate(input.len() / 20 * 20);
    input.chunks_mut(20).for_each(|record| record[0] %= 3);
    let case = Case {
        equal_keys_meet: true,
        tuning: Tuning {
            partition_count: Some(1),
            ..SMALL
        },
        ..Case::fixed(20, &[KeyPart::plain(0, 1)], vec![input.clone()])
    };
    let report = case.check(Machine::Sim, "many runs");
    // Each record went into a run, and some of them into another.
    assert!(report.bytes.merge_extra > 5 * input.len() as u64 / 2);
}

/// Any sizes for which there is a plan, over any lines: the oracle's answer, and no wait without end.
#[test]
fn any_plan_at_all_sorts_any_lines() {
    let mut random = Random::new(seed("any_plan_at_all_sorts_any_lines"));
    let began = std::time::Instant::now();
    let mut counts = [0; 4];
    while began.elapsed().as_secs() < 6 {
        let kind = ALL_LINES[random.below(ALL_LINES.len())];
        let bytes = 1 << (10 + random.below(11));
        let inputs: Vec<Vec<u8>> = (0..1 + random.below(3))
            .map(|_| lines(kind, &mut random, bytes))
            .collect();
        let case = Case {
            memory_bytes: (1 << (18 + random.below(4))) + random.below(1 << 18) as u64,
            threads: 1 + random.below(4),
            stream: [None, Some(0)][random.below(2)],
            equal_keys_meet: random.below(2) == 0,
            tuning: Tuning {
                chunk_bytes: Some(4096 << random.below(4)),
                block_bytes: Some(4096 << random.below(4)),
                partition_bytes: None,
                partition_count: [None, Some(1), Some(2), Some(100)][random.below(4)],
                sample_count: [None, Some(1)][random.below(2)],
            },
            ..Case::lines(inputs)
        };
        let what = format!(
            "{kind:?} {bytes} {} {} {:?} {} {:?}",
            case.memory_bytes, case.threads, case.stream, case.equal_keys_meet, case.tuning
        );
        match case.try_run(Machine::Sim) {
            Ok(_) => {
                let report = case.check([Machine::Sim, Machine::Posix][random.below(2)], &what);
                let partitions = report.partitions;
                for (count, one) in counts.iter_mut().zip([
                    1,
                    partitions.evicted,
                    partitions.divided,
                    partitions.merged,
                ]) {
                    *count += u64::from(one > 0);
                }
            }
            Err(error) => {
                let text = error.to_string();
                let sound = text.contains("needs at least") || text.contains("record is longer");
                assert!(sound, "{what}: {text}");
            }
        }
    }
    println!("[jobs, with evicted, divided, merged partitions]: {counts:?}");
}
