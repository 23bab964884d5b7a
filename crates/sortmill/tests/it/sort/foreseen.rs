//! What a plan foresees, held against what the job then took; and how long a job is thought to take, at half time, on a
//! disk whose speed is known.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use sortmill::batch::Records;
use sortmill::disk::{Figures, Rates};
use sortmill::io::sim::Sim;
use sortmill::job::{Input, Job, Output, Tuning, each};
use sortmill::order::{Format, KeyPart};
use sortmill::progress::{Progress, Snapshot};
use sortmill::queue::Stop;
use sortmill::report::Report;
use sortmill::run;

use super::inputs::{Random, seed};
use super::{Case, Machine, SMALL};

const MIB: u64 = 1 << 20;

/// How keys are spread.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Keys {
    /// All over.
    Uniform,
    /// By Zipf's law: the first of 1,000 keys is one record in seven or so.
    Zipf,
}

impl Keys {
    fn next(self, random: &mut Random) -> u64 {
        match self {
            Self::Uniform => random.next(),
            // The rank whose share of the harmonic sum a random number falls on; spread over the space of keys.
            Self::Zipf => {
                let part = random.below(1 << 20) as f64 / f64::from(1 << 20);
                let rank = 1000f64.powf(part) as u64;
                rank.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            }
        }
    }
}

/// About `bytes` bytes of records.
fn records(format: Format, keys: Keys, bytes: u64, random: &mut Random) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes as usize + 256);
    while (out.len() as u64) < bytes {
        let key = keys.next(random);
        match format {
            Format::Fixed(size) => {
                let mut record = vec![b'x'; size as usize];
                record[..8].copy_from_slice(&key.to_be_bytes());
                out.extend(record);
            }
            Format::Lines => {
                let rest = "y".repeat(random.below(80));
                out.extend(format!("{key:016x} {rest}\n").bytes());
            }
            Format::Kv => {
                let value_bytes = random.below(150);
                out.extend(8u32.to_le_bytes());
                out.extend((value_bytes as u32).to_le_bytes());
                out.extend(key.to_be_bytes());
                out.extend(vec![b'z'; value_bytes]);
            }
            Format::Quoted(_) => unreachable!(),
        }
    }
    out
}

fn case(format: Format, input: Vec<u8>, memory_bytes: u64) -> Case {
    let keys = match format {
        Format::Fixed(_) => vec![KeyPart::plain(0, 8)],
        Format::Lines | Format::Quoted(_) | Format::Kv => Vec::new(),
    };
    Case {
        keys,
        memory_bytes,
        // Many blocks and partitions, as real jobs have.
        tuning: Tuning {
            chunk_bytes: Some(64 << 10),
            block_bytes: Some(4096),
            partition_bytes: Some(memory_bytes / 64),
            ..SMALL
        },
        ..Case::new(format, vec![input])
    }
}

/// Holds what was foreseen against what came. Temporary data to within 3 % of them, or, where few are spilled, to
/// within 3 % of the input: one partition more or less, and the 16 blocks that are kept free to the end, are as much of
/// so little memory.
fn check(report: &Report, what: &str) {
    let foreseen = report.foreseen_temp_bytes().unwrap() as f64;
    let was = report.bytes.temp_written as f64;
    let input = report.bytes.input as f64;
    let moved = report.foreseen_moved_bytes().unwrap() as f64 / report.bytes.moved() as f64 - 1.0;
    println!(
        "{what}: {:+.4} of temporary data, {:+.4} of the input; moved {moved:+.4}; passes {} and {}",
        foreseen / was.max(1.0) - 1.0,
        (foreseen - was) / input,
        report.plan.passes,
        report.passes()
    );
    assert!(
        (foreseen - was).abs() <= 0.06 * if was < 0.5 * input { input } else { was },
        "{what}: {foreseen} and not {was}; {:?}",
        report.plan
    );
    // What a partition held before it was divided is read with each of its halves.
    let read_twice = report.partitions.divided > 0 && moved < 0.0;
    assert!(
        moved.abs() <= 0.06 || read_twice,
        "{what}: moved {moved:+.3}"
    );
    if foreseen == 0.0 || was > 0.0 {
        assert_eq!(report.plan.passes, report.passes(), "{what}");
    }
}

#[test]
fn temporary_data_and_passes_come_as_foreseen() {
    let mut random = Random::new(seed("temporary_data_and_passes_come_as_foreseen"));
    let formats = [
        Format::Fixed(100),
        Format::Fixed(24),
        Format::Lines,
        Format::Kv,
    ];
    for format in formats {
        for keys in [Keys::Uniform, Keys::Zipf] {
            for (ratio, memory_bytes) in [
                (0.5, 4 * MIB),
                (0.9, 4 * MIB),
                (1.0, 4 * MIB),
                (1.1, 4 * MIB),
                (1.5, 4 * MIB),
                (2.0, 4 * MIB),
                (5.0, 8 * MIB),
                (10.0, 8 * MIB),
            ] {
                if keys == Keys::Zipf && ratio > 2.0 {
                    continue;
                }
                let bytes = (ratio * memory_bytes as f64) as u64;
                let input = records(format, keys, bytes, &mut random);
                let case = case(format, input, memory_bytes);
                let what = format!("{format:?} {keys:?} {ratio}");
                let machine = if ratio < 5.0 {
                    Machine::Sim
                } else {
                    Machine::Posix
                };
                let (_, report) = case
                    .try_run(machine)
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                check(&report, &what);
            }
        }
    }
}

/// Far more than memory, in as many partitions as there may be.
#[test]
fn forty_times_the_memory_come_as_foreseen() {
    let mut random = Random::new(seed("forty_times_the_memory_come_as_foreseen"));
    let input = records(Format::Fixed(100), Keys::Uniform, 320 * MIB, &mut random);
    let case = case(Format::Fixed(100), input, 8 * MIB);
    let (_, report) = case.try_run(Machine::Posix).unwrap();
    check(&report, "40");
}

/// What nobody can know is not foreseen, and the plan says why.
#[test]
fn what_cannot_be_known_is_said() {
    let mut random = Random::new(3);
    let lines = |random: &mut Random| records(Format::Lines, Keys::Uniform, MIB, random);
    let stream = Case {
        stream: Some(0),
        ..case(Format::Lines, lines(&mut random), 2 * MIB)
    };
    let (_, report) = stream.try_run(Machine::Sim).unwrap();
    assert_eq!(report.foreseen_temp_bytes(), None);
    assert_eq!(report.foreseen_moved_bytes(), None);
    assert!(sortmill::report::plan_lines(&report.plan).contains("a stream"));
    let mapped = Case {
        map: Some(each(|record, made| made.push(record))),
        ..case(Format::Lines, lines(&mut random), 2 * MIB)
    };
    let (_, report) = mapped.try_run(Machine::Sim).unwrap();
    assert_eq!(report.foreseen_temp_bytes(), None);
    assert!(
        sortmill::report::plan_lines(&report.plan).contains("what functions make of a small part")
    );
    // And what is known, to within what.
    let fixed = records(Format::Fixed(100), Keys::Uniform, MIB, &mut random);
    let (_, report) = case(Format::Fixed(100), fixed, 4 * MIB)
        .try_run(Machine::Sim)
        .unwrap();
    assert!(sortmill::report::plan_lines(&report.plan).contains("to within 3 %"));
}

/// What a map function makes is guessed from places all over: of a file that began unlike the rest of it, sixteen times too much
/// was planned for while only its beginning was looked at.
#[test]
fn what_a_function_makes_is_guessed_from_all_over() {
    let mut random = Random::new(seed("what_a_function_makes_is_guessed_from_all_over"));
    let mut input = records(Format::Lines, Keys::Uniform, MIB, &mut random);
    let kept_bytes = input.len();
    let mut rest = records(Format::Lines, Keys::Uniform, 15 * MIB, &mut random);
    for line in rest.split_mut(|&byte| byte == b'\n') {
        line.fill(b'-');
    }
    input.extend(rest);
    let only_kept = |record: &[u8], made: &mut Records| {
        if record[0] != b'-' {
            made.push(record);
        }
    };
    let case = Case {
        map: Some(each(only_kept)),
        ..case(Format::Lines, input, 8 * MIB)
    };
    for machine in [Machine::Sim, Machine::Posix] {
        let (_, report) = case.try_run(machine).unwrap();
        let foreseen = report.plan.mapped_bytes.unwrap() as f64;
        let over = foreseen / kept_bytes as f64;
        // One place of sixteen, give or take one.
        assert!((0.5..=2.5).contains(&over), "{over}");
    }
}

/// Bytes a second of the disk, one transfer after the other: so slow that the clock stands still for all else.
const DISK: u64 = 10_000_000;

/// Runs a job on a disk of that speed. What its progress said after each transfer, and how long it took.
fn watched(bytes: u64, memory_bytes: u64, knows_disk: bool, verify: bool) -> (Vec<Snapshot>, u64) {
    let mut random = Random::new(bytes);
    // Of a length at which it is as much work to sort one as to distribute it: to the clock, which stands still but for
    // the disk, threads may seem to work for as long as that takes.
    const FORMAT: Format = Format::Fixed(200);
    let input = records(FORMAT, Keys::Uniform, bytes, &mut random);
    let sim = Sim::new(7);
    sim.put_dir(Path::new("/temp"));
    sim.put(Path::new("/in"), &input);
    let inputs = vec![Input::Path(PathBuf::from("/in"))];
    let mut job = Job::new(inputs, Output::Path("/out".into()), FORMAT);
    job.keys = vec![KeyPart::plain(0, 8)];
    job.memory_bytes = Some(memory_bytes);
    job.threads = Some(2);
    job.temps = vec!["/temp".into()];
    job.verify = Some(verify);
    job.tuning = SMALL;
    let rates = Rates {
        read_alone: DISK,
        write_alone: DISK,
        read_mixed: DISK / 2,
        write_mixed: DISK / 2,
    };
    let figures = Figures {
        block_bytes_max: 512 << 10,
        in_flight_bytes: 32 << 20,
        measured_on: "2026-11-22".into(),
        stale: false,
        rates: Some(rates),
    };
    job.disks = vec![knows_disk.then_some(figures)];
    let progress = Arc::<Progress>::default();
    job.progress = Some(Arc::clone(&progress));
    let seen = Arc::<Mutex<Vec<Snapshot>>>::default();
    sim.set_pace(DISK, {
        let (progress, seen) = (Arc::clone(&progress), Arc::clone(&seen));
        move |sim: &Sim| seen.lock().unwrap().push(progress.now(sim))
    });
    run::sort(&job, &sim, &Stop::new()).unwrap();
    let all_ns = progress.now(&sim).elapsed_ns;
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (seen, all_ns)
}

/// The clock is the disk's, so at half time the end is known to whoever runs the job again.
#[test]
fn at_half_time_the_end_is_foreseen() {
    for (ratio, verify) in [
        (0.5, false),
        (1.2, false),
        (2.0, false),
        (2.0, true),
        (4.0, false),
        (8.0, false),
    ] {
        for knows_disk in [false, true] {
            let memory_bytes = 4 * MIB;
            let bytes = (ratio * memory_bytes as f64) as u64;
            let (seen, all_ns) = watched(bytes, memory_bytes, knows_disk, verify);
            let half = seen
                .iter()
                .find(|seen| seen.elapsed_ns >= all_ns / 2)
                .unwrap();
            let left_ns = (all_ns - half.elapsed_ns) as f64;
            let off = half.left_ns().unwrap() as f64 / left_ns - 1.0;
            println!(
                "{ratio} times the memory, disk known: {knows_disk}, verify: {verify}: {off:+.3} in {:?}",
                half.phase
            );
            assert!(off.abs() <= 0.2, "{half:?}");
        }
    }
}
