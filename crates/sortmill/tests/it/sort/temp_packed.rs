//! Temporary data that are compressed: what comes out is the same, whatever the data and whoever compressed them.

use sortmill::error::ErrorKind;
use sortmill::io::codec::Codec;
use sortmill::job::{CompressTemp, Disorder, Tuning};
use sortmill::metrics::{Stage, StageMetrics};
use sortmill::order::{Format, KeyPart};
use sortmill::report::Report;

use super::inputs::{Lines, Random, fixed, lines, seed};
use super::kv::pair;
use super::{Case, MACHINES, Machine, SMALL};

/// Blocks that can become smaller by whole aligned ones.
const BLOCKS: Tuning = Tuning {
    block_bytes: Some(16 << 10),
    ..SMALL
};

const ALL: [CompressTemp; 3] = [CompressTemp::Auto, CompressTemp::Lz4, CompressTemp::Zstd];

fn case(format: Format, inputs: Vec<Vec<u8>>, how: CompressTemp) -> Case {
    Case {
        tuning: BLOCKS,
        // zstd's tables take more than such blocks do.
        memory_bytes: match how {
            CompressTemp::Zstd => 2_200_000,
            _ => 1_500_000,
        },
        compress_temp: how,
        ..Case::new(format, inputs)
    }
}

/// About `bytes` bytes of lines of words, each with a number.
fn words(random: &mut Random, bytes: usize) -> Vec<u8> {
    const WORDS: [&str; 8] = [
        "order",
        "of",
        "the",
        "records",
        "between",
        "partitions",
        "and",
        "temporary",
    ];
    let mut out = Vec::with_capacity(bytes + 100);
    while out.len() < bytes {
        let count = 1 + random.below(8);
        let line: Vec<&str> = (0..count).map(|_| WORDS[random.below(8)]).collect();
        out.extend(format!("{} {}\n", line.join(" "), random.below(100_000)).bytes());
    }
    out
}

/// About `bytes` bytes of pairs, whose values are noise or one byte again and again.
fn pairs(random: &mut Random, bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while out.len() < bytes {
        let key = random.below(5000).to_string();
        let length = random.below(90);
        let value = match random.below(3) {
            0 => random.bytes(length),
            _ => vec![b'v'; length],
        };
        out.extend(pair(key.as_bytes(), &value));
    }
    out
}

fn stage(report: &Report, wanted: Stage) -> StageMetrics {
    let stages = report.phases.iter().flat_map(|phase| &phase.stages);
    let found = stages.filter(|one| one.stage == wanted);
    found.map(|one| one.metrics).next().unwrap_or_default()
}

/// Noise, text, one record again and again, keys with few values; in every format, on every machine, in the output's
/// space, apart and over several folders, as a file and as a stream.
#[test]
fn whatever_is_compressed_comes_out_the_same() {
    let mut random = Random::new(seed("whatever_is_compressed_comes_out_the_same"));
    const BYTES: usize = 2_500_000;
    let machines = MACHINES.into_iter().chain([Machine::Sim; 2]);
    for (number, machine) in machines.enumerate() {
        let (format, keys, input) = match number % 6 {
            0 => (Format::Lines, vec![], words(&mut random, BYTES)),
            1 => {
                let noise = random.bytes(BYTES / 40 * 40);
                (Format::Fixed(40), vec![KeyPart::plain(0, 4)], noise)
            }
            2 => (Format::Kv, vec![], pairs(&mut random, BYTES)),
            3 => {
                let same = lines(Lines::OneKey, &mut random, BYTES);
                (Format::Lines, vec![], same)
            }
            4 => {
                let records = fixed(24, &mut random, BYTES / 24);
                (Format::Fixed(24), vec![KeyPart::plain(0, 8)], records)
            }
            _ => (
                Format::Lines,
                vec![],
                lines(Lines::Uniform, &mut random, BYTES),
            ),
        };
        for how in ALL {
            let how_many = random.below(3);
            let case = Case {
                keys: keys.clone(),
                threads: 1 + random.below(3),
                memory_bytes: match how {
                    CompressTemp::Zstd => 2_100_000,
                    _ => 1_200_000 + 100_000 * random.below(10) as u64,
                },
                temp_apart: how_many == 1,
                temp_count: [1, 1, 3][how_many],
                // As a file, one line again and again is in order, and takes one pass.
                stream: (random.below(4) == 0 || number % 6 == 3).then_some(0),
                pace: 2_000_000 * random.below(2) as u64,
                ..case(format, vec![input.clone()], how)
            };
            let report = case.check(machine, &format!("{how:?} of data number {}", number % 6));
            let packed = report.temp_packed.unwrap().spilled;
            println!("{machine:?}, {how:?}, data {}: {packed:?}", number % 6);
            assert!(packed.blocks > 0);
            match (how, number % 6) {
                // Noise: nothing is gained, and nothing lost.
                (_, 1) => assert_eq!(packed.stored_bytes, packed.plain_bytes),
                (CompressTemp::Auto, _) => {}
                (_, 0 | 2 | 3) => {
                    assert!(packed.packed_blocks * 10 >= packed.blocks * 8, "{packed:?}");
                    assert!(
                        packed.stored_bytes * 4 < packed.plain_bytes * 3,
                        "{packed:?}"
                    );
                }
                _ => {}
            }
        }
    }
}

/// The stage tables, the totals and what is told agree.
#[test]
fn the_report_says_what_was_compressed() {
    let mut random = Random::new(seed("the_report_says_what_was_compressed"));
    let input = words(&mut random, 3_000_000);
    for how in [CompressTemp::Lz4, CompressTemp::Zstd] {
        let report = case(Format::Lines, vec![input.clone()], how).check(Machine::Sim, "report");
        let packed = report.temp_packed.unwrap();
        assert_eq!(packed.how, how);
        let packed = packed.spilled;
        let [pack, spill, unpack] =
            [Stage::Pack, Stage::Spill, Stage::Unpack].map(|one| stage(&report, one));
        assert_eq!(pack.bytes_in, packed.plain_bytes);
        assert_eq!(pack.bytes_out, packed.stored_bytes);
        assert_eq!(spill.bytes_out, packed.stored_bytes);
        assert!(pack.work_ns > 0 && unpack.work_ns > 0);
        assert!(unpack.bytes_out > 2 * unpack.bytes_in, "{unpack:?}");
        let summary = report.summary();
        let name = how.codec().unwrap().name();
        let percent = format!("of the blocks compressed by {name}; ");
        assert!(summary.contains("temporary data: "), "{summary}");
        assert!(summary.contains(&percent), "{summary}");
        let plan = sortmill::report::plan_lines(&report.plan);
        let count = report.plan.temp_packing.unwrap().packer_count;
        let told = format!("compress temp    by {name}, {count} blocks at once");
        assert!(plan.contains(&told), "{plan}");
        assert!(plan.contains("at most so much"), "{plan}");
        assert!(plan.contains("compressing temporary data"), "{plan}");
    }
}

/// Partitions that are divided are read by each of their descendants, merged ones by the loader, long records by whoever
/// writes them.
#[test]
fn divided_merged_and_long_ones_are_decompressed() {
    let mut random = Random::new(seed("divided_merged_and_long_ones_are_decompressed"));
    let (mut divided, mut long) = (0, 0);
    for how in [CompressTemp::Lz4, CompressTemp::Zstd] {
        // The later half has keys in a narrow range, which the sample hardly saw.
        let mut narrow = words(&mut random, 1_500_000);
        for line in 0..40_000 {
            narrow.extend(format!("{line:06} {}\n", random.next()).bytes());
        }
        let case_of = |input: &[u8]| Case {
            memory_bytes: 2 << 20,
            ..case(Format::Lines, vec![input.to_vec()], how)
        };
        let misled = Case {
            tuning: Tuning {
                sample_count: Some(2),
                partition_count: Some(10),
                ..BLOCKS
            },
            ..case_of(&narrow)
        };
        divided += misled.check(Machine::Sim, "divided").partitions.divided;
        let merged = Case {
            tuning: Tuning {
                partition_count: Some(1),
                ..BLOCKS
            },
            equal_keys_meet: true,
            ..case_of(&lines(Lines::OneKey, &mut random, 4_000_000))
        };
        let report = merged.check(Machine::Sim, "merged");
        assert!(report.partitions.merged > 0, "{:?}", report.partitions);
        assert!(report.temp_packed.unwrap().spilled.packed_blocks > 0);
        let mut text = lines(Lines::Long, &mut random, 3_000_000);
        for _ in 0..20 {
            text.extend(vec![
                b'a' + random.below(3) as u8;
                100_000 + random.below(200_000)
            ]);
            text.push(b'\n');
        }
        let case = Case {
            memory_bytes: 3 << 20,
            ..case_of(&text)
        };
        let report = case.check(Machine::Sim, "long");
        long += report.partitions.long_records;
        assert!(report.temp_packed.unwrap().spilled.packed_blocks > 0);
    }
    assert!(divided > 0 && long > 0, "{divided} divided, {long} long");
}

/// Where of equal lines only the first comes out, and where a little more comes than fits.
#[test]
fn repeats_and_data_a_little_larger_than_memory() {
    let mut random = Random::new(seed("repeats_and_data_a_little_larger_than_memory"));
    for how in ALL {
        for bytes in [900_000, 1_100_000, 1_300_000, 1_600_000, 2_500_000] {
            for unique in [false, true] {
                let case = Case {
                    unique,
                    ..case(Format::Lines, vec![words(&mut random, bytes)], how)
                };
                case.check(Machine::Sim, &format!("{how:?}, {bytes} bytes, {unique}"));
            }
        }
    }
}

/// Jobs that end early compress what they spill, and say so up to where they came.
#[test]
fn jobs_that_end_early() {
    let mut random = Random::new(seed("jobs_that_end_early"));
    let input = words(&mut random, 3_000_000);
    for until in [Stage::Partition, Stage::Spill, Stage::Load, Stage::Sort] {
        let case = Case {
            until: Some(until),
            ..case(Format::Lines, vec![input.clone()], CompressTemp::Lz4)
        };
        let (_, report) = case.try_run(Machine::Sim).unwrap();
        let packs = until >= Stage::Spill;
        assert_eq!(report.temp_packed.is_some(), packs, "{until:?}");
        assert_eq!(stage(&report, Stage::Pack).bytes_in > 0, packs);
        assert_eq!(
            stage(&report, Stage::Unpack).bytes_in > 0,
            until >= Stage::Sort
        );
    }
}

/// Input in order that turns out not to be: rounds of the first phase, and blocks that leave memory in one and are loaded
/// after another.
#[test]
fn input_that_was_in_order_for_a_while() {
    let mut random = Random::new(seed("input_that_was_in_order_for_a_while"));
    let line = |number: usize| format!("{number:08} the same for all of them, or nearly\n");
    let mut input: Vec<u8> = (0..90_000)
        .flat_map(|at| line(at * 10).into_bytes())
        .collect();
    for _ in 0..9_000 {
        input.extend(line(400_000 + random.below(500_000)).bytes());
    }
    for how in [CompressTemp::Lz4, CompressTemp::Auto] {
        for pace in [0, 1_000_000] {
            let case = Case {
                pace,
                tuning: Tuning {
                    sample_count: Some(60),
                    ..BLOCKS
                },
                ..case(Format::Lines, vec![input.clone()], how)
            };
            case.check(Machine::Sim, &format!("{how:?} in order, {pace}"));
        }
    }
}

/// Of a job that merges sorted inputs the runs are written as they are.
#[test]
fn a_merge_refuses_what_it_does_not_do() {
    let case = Case {
        merge: Some(Disorder::Refused),
        ..case(Format::Lines, vec![b"a\n".to_vec()], CompressTemp::Lz4)
    };
    let error = case.try_run(Machine::Sim).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Usage, "{error}");
    assert!(
        error.to_string().contains("runs are written as they are"),
        "{error}"
    );
}

/// What compressing takes of the memory is a sum in the plan, smaller where there is little.
#[test]
fn packers_are_part_of_the_budget() {
    let mut random = Random::new(seed("packers_are_part_of_the_budget"));
    let input = words(&mut random, 100_000);
    for (how, memory_bytes) in [
        (CompressTemp::Lz4, 1_000_000),
        (CompressTemp::Zstd, 2_200_000),
        (CompressTemp::Zstd, 64 << 20),
    ] {
        let case = Case {
            memory_bytes,
            tuning: BLOCKS,
            ..case(Format::Lines, vec![input.clone()], how)
        };
        let report = case.check(Machine::Sim, "budget");
        let packing = report.plan.temp_packing.unwrap();
        let holders = &report.plan.budget.holders;
        let holder = holders
            .iter()
            .find(|one| one.name == "compressing temporary data");
        let bytes = holder.unwrap().bytes;
        assert!(packing.packer_count == 1 || bytes <= memory_bytes / 8);
        assert!(packing.packer_count <= 3);
        assert!(Codec::Lz4.is_built() && bytes > 16 << 10, "{bytes}");
    }
}
