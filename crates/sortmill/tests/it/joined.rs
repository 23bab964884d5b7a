//! Records that are joined before they are sorted, held against a plain map of what they hold.

use std::collections::BTreeMap;
use std::sync::Arc;
#[cfg(feature = "tamper")]
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(feature = "tamper")]
use sortmill::error::ErrorKind;
use sortmill::error::Result;
use sortmill::io::sim::Sim;
use sortmill::job::{Input, Job, Join, Output, Reducer, Tuning};
use sortmill::order::{Format, KeyPart};
use sortmill::queue::Stop;
use sortmill::report::Report;
use sortmill::run;
#[cfg(feature = "tamper")]
use sortmill::tamper::Border;

use crate::sort::inputs::{Random, seed};

/// A key and a number, 8 bytes each, the highest first.
const RECORD_BYTES: usize = 16;

fn halves(record: &[u8]) -> (u64, u64) {
    let half = |at: usize| u64::from_be_bytes(record[at..at + 8].try_into().unwrap());
    (half(0), half(8))
}

fn record(key: u64, number: u64) -> Vec<u8> {
    [key, number].map(u64::to_be_bytes).concat()
}

/// Sums, of so many keys at most.
struct Sums(BTreeMap<u64, u64>, usize);

impl Join for Sums {
    fn add(&mut self, records: &[u8]) -> bool {
        for record in records.chunks_exact(RECORD_BYTES) {
            let (key, number) = halves(record);
            *self.0.entry(key).or_default() += number;
        }
        self.0.len() <= self.1
    }

    fn take(&mut self, into: &mut Vec<u8>) {
        // Their order is nobody's business.
        for (key, number) in std::mem::take(&mut self.0).into_iter().rev() {
            into.extend(record(key, number));
        }
    }
}

/// One record of those with the same key.
fn sums() -> Reducer {
    let mut open: Option<(u64, u64)> = None;
    Box::new(move |next, out| {
        let next = next.map(halves);
        match (&mut open, next) {
            (Some((key, sum)), Some((same, number))) if *key == same => *sum += number,
            _ => {
                if let Some((key, sum)) = std::mem::replace(&mut open, next) {
                    out.put(&record(key, sum));
                }
            }
        }
    })
}

fn records(test: &str, key_count: usize) -> Vec<(u64, u64)> {
    let mut random = Random::new(seed(test));
    let mut key = || random.below(key_count) as u64;
    (0..30_000)
        .map(|number| (key().wrapping_mul(0x9e37_79b9_7f4a_7c15), number))
        .collect()
}

/// Sums of the `records`, of at most so many keys of a partition before they are sorted.
fn reduced(
    records: &[(u64, u64)],
    most: usize,
    change: impl FnOnce(&mut Job),
) -> (Sim, Result<Report>) {
    let sim = Sim::new(1);
    sim.put_dir("/temp");
    let input: Vec<Vec<u8>> = records
        .iter()
        .map(|&(key, number)| record(key, number))
        .collect();
    sim.put("/in", &input.concat());
    sim.put("/out", b"old");
    let mut job = Job::new(
        vec![Input::Path("/in".into())],
        Output::Path("/out".into()),
        Format::Fixed(RECORD_BYTES as u32),
    );
    job.keys = vec![KeyPart::plain(0, 8)];
    job.memory_bytes = Some(600 << 10);
    job.temps = vec!["/temp".into()];
    job.threads = Some(2);
    job.tuning = Tuning {
        chunk_bytes: Some(4096),
        block_bytes: Some(4096),
        partition_count: Some(24),
        ..Tuning::default()
    };
    job.equal_keys_meet = true;
    job.reduce = Some(Arc::new(sums));
    job.joins = Some(Arc::new(move |bytes| {
        assert!(bytes > 0);
        Box::new(Sums(BTreeMap::new(), most))
    }));
    change(&mut job);
    let report = run::sort(&job, &sim, &Stop::new());
    (sim, report)
}

#[test]
fn the_same_comes_out_whether_records_are_joined_or_not() {
    for (key_count, most, joins) in [
        // Few keys to a partition,
        (500, 1_000, true),
        // more than there is room for,
        (5_000, 20, false),
        // and hardly two records of any.
        (60_000, 100_000, false),
    ] {
        let records = records(
            "the_same_comes_out_whether_records_are_joined_or_not",
            key_count,
        );
        let mut wanted: BTreeMap<u64, u64> = BTreeMap::new();
        for &(key, number) in &records {
            *wanted.entry(key).or_default() += number;
        }
        let wanted: Vec<Vec<u8>> = wanted.iter().map(|(&key, &sum)| record(key, sum)).collect();
        let (sim, report) = reduced(&records, most, |_| {});
        let report = report.unwrap();
        assert_eq!(
            sim.get("/out").unwrap(),
            wanted.concat(),
            "{key_count} {most}"
        );
        let partitions = &report.partitions;
        assert_eq!(partitions.joined > 0, joins, "{partitions:?}");
        assert_eq!(report.fingerprints.gathered.records, records.len() as u64);
    }
}

/// What is joined is what came out of the partitions, or there is no output.
#[cfg(feature = "tamper")]
#[test]
fn a_record_that_is_lost_before_it_is_joined_is_found() {
    let all = records("a_record_that_is_lost_before_it_is_joined_is_found", 500);
    for deed in ["drop", "double", "alter"] {
        let once = AtomicBool::new(false);
        let (sim, result) = reduced(&all, 1_000, |job| {
            job.tamper = Some(Arc::new(move |border, records| {
                if border != Border::Reduce
                    || records.len() < 2
                    || once.swap(true, Ordering::SeqCst)
                {
                    return;
                }
                match deed {
                    "drop" => drop(records.pop()),
                    "double" => records.push(records[0].clone()),
                    _ => records[1][15] ^= 1,
                }
            }));
        });
        assert_eq!(result.expect_err(deed).kind, ErrorKind::Lost, "{deed}");
        assert_eq!(sim.get("/out").unwrap(), b"old", "{deed}");
    }
}
