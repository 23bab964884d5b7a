//! At each border between two stages a record is dropped, doubled, exchanged with its neighbour or altered.
//! The job must find it before the output gets its name.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sortmill::error::ErrorKind;
use sortmill::io::sim::Sim;
use sortmill::job::{Disorder, Input, Job, Output, Tuning};
use sortmill::metrics::Stage;
use sortmill::order::{Format, KeyPart};
use sortmill::parts::{PartCut, PartName, Parts};
use sortmill::queue::Stop;
use sortmill::report::Report;
use sortmill::run;
use sortmill::tamper::Border;
use sortmill::yields::Yield;

const OLD: &[u8] = b"what was there before\n";
const RECORD_BYTES: usize = 20;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Deed {
    Drop,
    Double,
    Swap,
    Alter,
}

/// Records whose keys are all different.
fn input() -> Vec<u8> {
    (0..20_000u64)
        .flat_map(|number| {
            let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut record = [0x55; RECORD_BYTES];
            record[..8].copy_from_slice(&key.to_be_bytes());
            record
        })
        .collect()
}

fn commit(deed: Deed, records: &mut Vec<Vec<u8>>) {
    let at = records.len() / 2;
    match deed {
        Deed::Drop => {
            records.remove(at);
        }
        Deed::Double => records.insert(at, records[at].clone()),
        Deed::Swap => records.swap(at - 1, at),
        // Behind the key, so that only the fingerprint can tell.
        Deed::Alter => records[at][12] ^= 1,
    }
}

/// Runs a job in which the deed is committed once, at the `when`-th time records pass the border.
///
/// Halves of a divided partition read the blocks of the whole, each its own records of them. So what becomes there of
/// those of the other half is nobody's loss, if threads happen to have the first block be such a one: that job is run
/// again.
fn run_with(
    until: Option<Stage>,
    yields: Yield,
    border: Border,
    deed: Deed,
    when: u64,
) -> (Sim, Result<(), sortmill::error::Error>, bool) {
    let mut tries = 0;
    loop {
        let (sim, result, committed) = run_once(until, yields, border, deed, when);
        tries += 1;
        match result {
            Ok(report) if deed != Deed::Swap && report.partitions.divided > 0 && tries < 10 => {}
            result => return (sim, result.map(drop), committed),
        }
    }
}

fn run_once(
    until: Option<Stage>,
    yields: Yield,
    border: Border,
    deed: Deed,
    when: u64,
) -> (Sim, Result<Report, sortmill::error::Error>, bool) {
    let sim = Sim::new(1);
    sim.put_dir("/temp");
    sim.put("/in", &input());
    sim.put("/out", OLD);
    let format = Format::Fixed(RECORD_BYTES as u32);
    let mut job = Job::new(
        vec![Input::Path("/in".into())],
        Output::Path("/out".into()),
        format,
    );
    job.keys = vec![KeyPart::plain(0, 8)];
    job.memory_bytes = Some(600 << 10);
    job.temps = vec!["/temp".into()];
    job.until = until;
    job.yields = yields;
    if let Yield::Shuffled(_) = yields {
        job.keys.clear();
    }
    job.threads = Some(2);
    job.tuning = Tuning {
        chunk_bytes: Some(4096),
        block_bytes: Some(4096),
        partition_count: Some(24),
        ..Tuning::default()
    };
    let passed = AtomicU64::new(0);
    let done = Arc::new(AtomicU64::new(0));
    let committed = Arc::clone(&done);
    job.tamper = Some(Arc::new(move |here, records| {
        if here == border && records.len() > 1 && passed.fetch_add(1, Ordering::SeqCst) == when {
            commit(deed, records);
            committed.fetch_add(1, Ordering::SeqCst);
        }
    }));
    let result = run::sort(&job, &sim, &Stop::new());
    let committed = done.load(Ordering::SeqCst) == 1;
    (sim, result, committed)
}

#[test]
fn what_happens_to_a_record_between_stages_is_found() {
    let mut expected: Vec<[u8; RECORD_BYTES]> = input()
        .chunks_exact(RECORD_BYTES)
        .map(|record| record.try_into().unwrap())
        .collect();
    expected.sort_unstable();
    for border in [Border::Map, Border::Partition, Border::Sort, Border::Reduce] {
        for deed in [Deed::Drop, Deed::Double, Deed::Swap, Deed::Alter] {
            for when in [0, 3] {
                let (sim, result, committed) = run_with(None, Yield::All, border, deed, when);
                let told = format!("{border:?} {deed:?} {when}: {result:?}");
                assert!(committed, "{told}");
                let output = sim.get("/out").unwrap();
                // Before they are sorted, the order of records with different keys means nothing.
                if deed == Deed::Swap && border != Border::Reduce {
                    assert!(result.is_ok() && output == expected.concat(), "{told}");
                    continue;
                }
                let error = result.expect_err(&told);
                assert_eq!(error.kind, ErrorKind::Lost, "{told}");
                assert_eq!(output, OLD, "{told}");
                assert_eq!(sim.names().len(), 3, "{told}: {:?}", sim.names());
            }
        }
    }
}

#[test]
fn a_job_that_ends_early_finds_what_it_can() {
    let distributing = &[Border::Map, Border::Partition][..];
    let sorting = &[Border::Map, Border::Partition, Border::Sort][..];
    let all = &[Border::Map, Border::Partition, Border::Sort, Border::Reduce][..];
    // Before records are gathered nothing is hashed a second time, so only their number and bytes tell.
    let (counts, prints) = (
        &[Deed::Drop, Deed::Double][..],
        &[Deed::Drop, Deed::Double, Deed::Alter][..],
    );
    for (until, borders, deeds) in [
        (Stage::Partition, distributing, counts),
        (Stage::Spill, distributing, counts),
        (Stage::Load, distributing, counts),
        (Stage::Sort, sorting, counts),
        (Stage::Reduce, all, prints),
    ] {
        for &border in borders {
            for &deed in deeds {
                let (sim, result, committed) = run_with(Some(until), Yield::All, border, deed, 1);
                let told = format!("{until:?} {border:?} {deed:?}: {result:?}");
                assert!(committed, "{told}");
                assert_eq!(result.expect_err(&told).kind, ErrorKind::Lost, "{told}");
                assert_eq!(sim.get("/out").unwrap(), OLD, "{told}");
                assert_eq!(sim.names().len(), 3, "{told}: {:?}", sim.names());
            }
        }
    }
}

/// The same where records are shuffled, and where only the first come out, few enough to be kept and more.
#[test]
fn what_happens_to_a_record_on_its_way_to_another_yield_is_found() {
    for yields in [Yield::Shuffled(1), Yield::First(100), Yield::First(9_000)] {
        for border in [Border::Map, Border::Partition, Border::Sort, Border::Reduce] {
            for deed in [Deed::Drop, Deed::Double, Deed::Alter] {
                let (sim, result, committed) = run_with(None, yields, border, deed, 0);
                let told = format!("{yields:?} {border:?} {deed:?}: {result:?}");
                assert!(committed, "{told}");
                assert_eq!(result.expect_err(&told).kind, ErrorKind::Lost, "{told}");
                assert_eq!(sim.get("/out").unwrap(), OLD, "{told}");
                assert_eq!(sim.names().len(), 3, "{told}: {:?}", sim.names());
            }
        }
    }
}

/// The same where sorted inputs are merged: what comes out of the merge is held against what was cut out of the inputs.
#[test]
fn what_happens_to_a_record_that_is_merged_is_found() {
    for deed in [Deed::Drop, Deed::Double, Deed::Alter] {
        for when in [0, 7_000, 19_999] {
            let sim = Sim::new(1);
            sim.put_dir("/temp");
            sim.put("/out", OLD);
            let mut records: Vec<Vec<u8>> =
                input().chunks(RECORD_BYTES).map(<[u8]>::to_vec).collect();
            records.sort();
            let mut inputs = vec![Vec::new(); 3];
            for (number, record) in records.iter().enumerate() {
                inputs[number % 3].extend_from_slice(record);
            }
            let mut named = Vec::new();
            for (number, bytes) in inputs.iter().enumerate() {
                let path = format!("/in{number}");
                sim.put(&path, bytes);
                named.push(Input::Path(path.into()));
            }
            let format = Format::Fixed(RECORD_BYTES as u32);
            let mut job = Job::new(named, Output::Path("/out".into()), format);
            job.keys = vec![KeyPart::plain(0, 8)];
            job.merge = Some(Disorder::Refused);
            job.memory_bytes = Some(40 << 20);
            job.temps = vec!["/temp".into()];
            let passed = AtomicU64::new(0);
            job.tamper = Some(Arc::new(move |here, records| {
                if here == Border::Reduce && passed.fetch_add(1, Ordering::SeqCst) == when {
                    commit(deed, records);
                }
            }));
            let result = run::sort(&job, &sim, &Stop::new()).map(drop);
            let error = result.expect_err("it was tampered with");
            assert_eq!(error.kind, ErrorKind::Lost, "{deed:?} {when}: {error}");
            assert_eq!(sim.get("/out").unwrap(), OLD);
        }
    }
}

/// Two records of different partitions change places: number, bytes and fingerprint are what they were, and each partition is in
/// order. Whether units fit in memory, are merged, or go into parts.
#[test]
fn records_that_change_places_between_partitions_are_found() {
    let mut records: Vec<Vec<u8>> = input().chunks(RECORD_BYTES).map(<[u8]>::to_vec).collect();
    records.sort();
    let largest = records.last().unwrap().clone();
    for (partition_count, parts) in [(24, false), (24, true), (2, false), (2, true)] {
        for memory_bytes in [600 << 10, 8 << 20] {
            let sim = Sim::new(1);
            sim.put_dir("/temp");
            sim.put("/in", &input());
            let output = match parts {
                true => Output::Parts(Parts {
                    folder: "/out".into(),
                    cut: PartCut::Partitions,
                    name: PartName::default(),
                    overwrite: false,
                }),
                false => Output::Path("/out".into()),
            };
            let format = Format::Fixed(RECORD_BYTES as u32);
            let mut job = Job::new(vec![Input::Path("/in".into())], output, format);
            job.keys = vec![KeyPart::plain(0, 8)];
            job.memory_bytes = Some(memory_bytes);
            job.temps = vec!["/temp".into()];
            job.threads = Some(2);
            job.tuning = Tuning {
                chunk_bytes: Some(4096),
                block_bytes: Some(4096),
                partition_count: Some(partition_count),
                ..Tuning::default()
            };
            let taken = std::sync::Mutex::new(None);
            let begun = Arc::new(AtomicU64::new(0));
            let (count, last) = (Arc::clone(&begun), largest.clone());
            job.tamper = Some(Arc::new(move |here, records| {
                let mut taken = taken.lock().unwrap();
                let is_last = records.contains(&last);
                if here != Border::Sort || records.is_empty() {
                    return;
                }
                if count.load(Ordering::SeqCst) == 0 && !is_last && records[0][0] < 0x40 {
                    let record = std::mem::replace(&mut records[0], last.clone());
                    *taken = Some(record);
                    count.fetch_add(1, Ordering::SeqCst);
                } else if is_last && let Some(record) = taken.take() {
                    let at = records.iter().position(|one| *one == last).unwrap();
                    records[at] = record;
                }
            }));
            let result = run::sort(&job, &sim, &Stop::new());
            let told = format!("{partition_count} {parts} {memory_bytes}: {result:?}");
            assert_eq!(begun.load(Ordering::SeqCst), 1, "{told}");
            let error = result.expect_err(&told);
            assert_eq!(error.kind, ErrorKind::Lost, "{told}");
            // A partition that was divided has no place for it. Else it may be found before the second has come: no sum is taken then.
            let is_divided = memory_bytes < 1 << 20 && partition_count == 2;
            let is_order = error.to_string().contains("are out of order");
            assert!(is_order || is_divided, "{told}");
            assert!(sim.get("/out").is_none(), "{told}");
        }
    }
}
