//! Temporary files in several folders, and inputs on several disks.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sortmill::disk::{Figures, Rates};
use sortmill::error::{Error, ErrorKind};
use sortmill::io::sim::Sim;
use sortmill::job::{Input, Tuning, each};
use sortmill::order::{Format, KeyPart};
use sortmill::report::Report;

use super::inputs::{Lines, Random, fixed, lines, seed};
use super::{Case, MACHINES, Machine, SMALL, compare, oracle, report, sort_or_panic};

/// Whatever is given, what comes out is right: spilled, divided and merged over any number of folders.
#[test]
fn over_several_folders_comes_out_the_same() {
    let mut random = Random::new(seed("over_several_folders_comes_out_the_same"));
    let input = fixed(40, &mut random, 60_000);
    let stream = input.clone();
    for (number, machine) in MACHINES.into_iter().chain([Machine::Sim; 8]).enumerate() {
        let merges = number % 3 == 0;
        let case = Case {
            memory_bytes: 700_000 + 100_000 * random.below(10) as u64,
            threads: 1 + number % 3,
            temp_count: 2 + random.below(3),
            stream: (number % 4 == 3).then_some(0),
            tuning: Tuning {
                partition_count: merges.then_some(1),
                ..SMALL
            },
            ..Case::fixed(40, &[KeyPart::plain(0, 4)], vec![stream.clone()])
        };
        let report = case.check(machine, &format!("{} folders", case.temp_count));
        assert!(
            !merges || report.partitions.merged > 0,
            "{:?}",
            report.partitions
        );
        let got: Vec<u64> = report
            .temp_folders
            .iter()
            .map(|folder| folder.bytes)
            .collect();
        assert!(got.iter().all(|&bytes| bytes > 0), "{got:?}");
    }
}

/// A machine with disks of these sizes for temporary files, and a job that needs some 1.5 MB of them.
struct Disks {
    sim: Sim,
    case: Case,
    temps: Vec<PathBuf>,
    input: PathBuf,
}

impl Disks {
    fn new(space_bytes: &[u64], stream: bool) -> Self {
        let sim = Sim::new(3);
        let input = fixed(40, &mut Random::new(5), 60_000);
        let path = |number: usize| PathBuf::from(format!("/disk{number}"));
        let temps: Vec<PathBuf> = (0..space_bytes.len()).map(path).collect();
        for (temp, &bytes) in temps.iter().zip(space_bytes) {
            sim.put_disk(temp, bytes);
        }
        let case = Case {
            stream: stream.then_some(0),
            temp_count: temps.len(),
            memory_bytes: 1_500_000,
            ..Case::fixed(40, &[KeyPart::plain(0, 4)], vec![input])
        };
        Self {
            sim,
            case,
            temps,
            input: "/in".into(),
        }
    }

    fn run(&self, disks: Vec<Option<Figures>>) -> Result<Report, Error> {
        let bytes = &self.case.inputs[0];
        let input = match self.case.stream {
            Some(_) => {
                self.sim.put_stdin(bytes);
                Input::Stdin
            }
            None => {
                self.sim.put(&self.input, bytes);
                Input::Path(self.input.clone())
            }
        };
        let mut job = self
            .case
            .job(vec![input], "/out".into(), self.temps.clone());
        job.disks = disks;
        let known = self.sim.names();
        let result = sort_or_panic(job, self.sim.clone());
        let mut left = self.sim.names();
        left.retain(|name| !known.contains(name) && name != Path::new("/out"));
        assert_eq!(left, Vec::<PathBuf>::new(), "left behind");
        result
    }

    /// Runs well. Answers what each disk got.
    fn check(&self, disks: Vec<Option<Figures>>) -> Vec<u64> {
        let done = self.run(disks).unwrap_or_else(|error| panic!("{error}"));
        let wanted = oracle::sorted(self.case.format, &self.case.keys, &self.case.inputs);
        let output = self.sim.get("/out").unwrap();
        compare(&output, &wanted.concat(), "over disks");
        report::check(&self.case, &done, &output, wanted.len() as u64);
        done.temp_folders
            .iter()
            .map(|folder| folder.bytes)
            .collect()
    }
}

fn figures(rate: u64) -> Option<Figures> {
    Some(Figures {
        block_bytes_max: 4096,
        in_flight_bytes: 32 << 10,
        measured_on: "2026-11-22".into(),
        stale: false,
        rates: Some(Rates {
            read_alone: rate,
            write_alone: rate,
            read_mixed: rate / 2,
            write_mixed: rate / 2,
        }),
    })
}

/// Whether the first got so many times what the second did, within 5 %.
fn is_near(got: &[u64], times: f64) {
    let have = got[0] as f64 / got[1] as f64;
    assert!(
        (have / times - 1.0).abs() < 0.05,
        "{got:?}: {have} and not {times}"
    );
}

const PLENTY: u64 = 1 << 40;

#[test]
fn disks_that_were_measured_get_by_their_speed() {
    let disks = Disks::new(&[PLENTY, PLENTY], false);
    is_near(
        &disks.check(vec![figures(300 << 20), figures(100 << 20)]),
        3.0,
    );
    is_near(
        &disks.check(vec![figures(100 << 20), figures(100 << 20)]),
        1.0,
    );
    let disks = Disks::new(&[PLENTY, PLENTY], true);
    is_near(
        &disks.check(vec![figures(100 << 20), figures(300 << 20)]),
        1.0 / 3.0,
    );
    // Of one nothing is known, so both count alike, but for what their own writes tell.
    assert!(
        disks
            .check(vec![figures(100 << 20), None])
            .iter()
            .all(|&bytes| bytes > 0)
    );
}

#[test]
fn disks_that_would_be_full_get_by_their_room() {
    let disks = Disks::new(&[500_000, 1_500_000], false);
    is_near(&disks.check(vec![None, None]), 1.0 / 3.0);
    // Whatever was measured.
    is_near(
        &disks.check(vec![figures(300 << 20), figures(100 << 20)]),
        1.0 / 3.0,
    );
}

#[test]
fn a_disk_that_is_full_leaves_the_rest_to_the_others() {
    // Nobody knows beforehand how long a stream is.
    let got = Disks::new(&[400_000, PLENTY], true).check(vec![None, None]);
    assert!(got[0] <= 400_000 && got[0] > 350_000, "{got:?}");
    assert!(got[1] > 2 * got[0], "{got:?}");
}

#[test]
fn disks_that_are_all_full_are_all_named() {
    // Known before the start.
    let error = Disks::new(&[400_000, 500_000], false)
        .run(vec![None, None])
        .unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind, ErrorKind::Space, "{text}");
    for words in [
        "temporary files need",
        "/disk0",
        "/disk1",
        "390.6 KiB",
        "488.3 KiB",
    ] {
        assert!(text.contains(words), "{text}");
    }
    // Known when they are full.
    let error = Disks::new(&[400_000, 500_000], true)
        .run(vec![None, None])
        .unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind, ErrorKind::Space, "{text}");
    for words in [
        "writing temporary data",
        "No space left",
        "/disk0",
        "/disk1",
        "--temp",
    ] {
        assert!(text.contains(words), "{text}");
    }
}

/// Of the folders that are named, those on other disks than input and output are the better ones.
#[test]
fn other_disks_than_those_of_input_and_output_come_first() {
    let mut disks = Disks::new(&[PLENTY, PLENTY], false);
    let equal = vec![figures(100 << 20); 2];
    disks.input = "/disk0/in".into();
    let got = disks.check(equal);
    // Each byte of the input is read once, and each temporary one written and read.
    let ahead = got[1] - got[0];
    assert!(ahead.abs_diff(2_400_000 / 2) <= 2 * 4096, "{got:?}");
}

/// Two file systems on one disk have its speed once, and the room of both.
#[test]
fn partitions_of_one_disk_share_its_speed() {
    let mut disks = Disks::new(&[PLENTY], false);
    disks
        .sim
        .put_partition("/part", PLENTY, Path::new("/disk0"));
    disks.sim.put_disk("/other", PLENTY);
    disks.temps.extend(["/part".into(), "/other".into()]);
    disks.case.temp_count = 3;
    let equal = vec![figures(100 << 20); 3];
    let got = disks.check(equal.clone());
    is_near(&[got[0] + got[1], got[2]], 1.0);
    is_near(&[got[0], got[1]], 1.0);
    // The input keeps its disk busy, on whichever of its partitions it lies.
    disks.input = "/part/in".into();
    let got = disks.check(equal);
    let ahead = got[2] - (got[0] + got[1]);
    assert!(ahead.abs_diff(2_400_000 / 2) <= 3 * 4096, "{got:?}");
    // But room has each its own.
    let small = Disks::new(&[400_000], false);
    small
        .sim
        .put_partition("/part", 1_600_000, Path::new("/disk0"));
    let temps = vec!["/disk0".into(), "/part".into()];
    let small = Disks {
        temps,
        case: Case {
            temp_count: 2,
            ..small.case
        },
        ..small
    };
    is_near(&small.check(vec![None, None]), 1.0 / 4.0);
}

/// Inputs on several disks are read side by side, and what comes out is the same: places follow the order of the
/// inputs. Among them are lines longer than chunks, of which one at a time is put together.
#[test]
fn inputs_on_several_disks() {
    let mut random = Random::new(seed("inputs_on_several_disks"));
    for round in 0..30 {
        let disk_count = 1 + random.below(4);
        let count = 1 + random.below(9);
        let kind = [Lines::FewDistinct, Lines::Long, Lines::Tiny][round % 3];
        let inputs: Vec<Vec<u8>> = (0..count)
            .map(|_| {
                let bytes = random.below(200_000);
                lines(kind, &mut random, bytes)
            })
            .collect();
        let case = Case {
            // Enough for the longest lines.
            memory_bytes: match kind {
                Lines::Long => 6 << 20,
                _ => 900_000 + 100_000 * random.below(20) as u64,
            },
            threads: 1 + random.below(3),
            ..Case::lines(inputs)
        };
        let sim = Sim::new(round as u64);
        sim.put_dir("/temp");
        let disks: Vec<PathBuf> = (0..disk_count)
            .map(|disk| format!("/disk{disk}").into())
            .collect();
        disks.iter().for_each(|disk| sim.put_disk(disk, PLENTY));
        let mut named = Vec::new();
        for (number, bytes) in case.inputs.iter().enumerate() {
            let path = disks[random.below(disk_count)].join(format!("in{number}"));
            sim.put(&path, bytes);
            named.push(Input::Path(path));
        }
        let job = case.job(named, "/out".into(), vec!["/temp".into()]);
        let what = format!("round {round}: {count} {kind:?} inputs on {disk_count} disks");
        let done =
            sort_or_panic(job, sim.clone()).unwrap_or_else(|error| panic!("{what}: {error}"));
        let wanted = oracle::sorted(Format::Lines, &[], &case.inputs);
        let output = sim.get("/out").unwrap();
        compare(&output, &wanted.concat(), &what);
        report::check(&case, &done, &output, wanted.len() as u64);
    }
}

/// Equal keys on three disks: a record's place is the one it has when inputs are read one after the other.
#[test]
fn equal_keys_keep_the_order_of_inputs_on_several_disks() {
    let sim = Sim::new(1);
    sim.put_dir("/temp");
    let inputs: Vec<Vec<u8>> = (0..6u8)
        .map(|number| {
            let record =
                |at: u32| [vec![at as u8 % 2], vec![number], at.to_le_bytes().to_vec()].concat();
            (0..20_000).flat_map(record).collect()
        })
        .collect();
    let case = Case {
        memory_bytes: 2_000_000,
        ..Case::fixed(6, &[KeyPart::plain(0, 1)], inputs)
    };
    let mut named = Vec::new();
    for (number, bytes) in case.inputs.iter().enumerate() {
        let disk = PathBuf::from(format!("/disk{}", number % 3));
        if number < 3 {
            sim.put_disk(&disk, PLENTY);
        }
        let path = disk.join(format!("in{number}"));
        sim.put(&path, bytes);
        named.push(Input::Path(path));
    }
    let mut job = case.job(named, "/out".into(), vec!["/temp".into()]);
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&order);
    job.map = Some(each(move |record, out| {
        // The sample is mapped too, by another thread.
        let thread = std::thread::current();
        if thread
            .name()
            .is_some_and(|name| name.starts_with("partition"))
        {
            seen.lock().unwrap().push(record[1]);
        }
        out.push(record);
    }));
    sort_or_panic(job, sim.clone()).unwrap();
    let wanted = oracle::sorted(case.format, &case.keys, &case.inputs);
    compare(&sim.get("/out").unwrap(), &wanted.concat(), "three disks");
    // The second disk's input was begun before the first one's was done.
    let order = order.lock().unwrap();
    let first_end = order.iter().rposition(|&input| input == 0).unwrap();
    assert!(order[..first_end].contains(&1) && order[..first_end].contains(&2));
}
