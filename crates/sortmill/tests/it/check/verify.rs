//! Outputs that are read again before they get their names, on devices that lie and on this machine's.

use std::path::Path;
use std::sync::Arc;

use sortmill::error::{Error, ErrorKind};
use sortmill::job::{Input, Job, Output, Reducer, Tuning};
use sortmill::queue::Stop;
use sortmill::run::sort;
use sortmill_io::sim::{Fault, FaultKind, Sim};

use super::{Data, Kind, Random, benchmark, hosts, lines};
use crate::Scratch;

/// Runs `job` into `/out`, where something old is, with a write that lies at each operation in turn. Calls
/// `check` with the result of those in which one did, and answers how many there were.
fn with_lies(job: &Job, input: &[u8], mut check: impl FnMut(&Sim, Result<(), Error>)) -> usize {
    let mut lies = 0;
    for at in 0.. {
        let sim = Sim::new(at);
        sim.put("/in", input);
        sim.put("/out", b"old");
        sim.set_fault(Some(Fault {
            at,
            for_good: false,
            kind: FaultKind::Lie,
        }));
        let result = sort(job, &sim, &Stop::new()).map(drop);
        if sim.fault_hit() {
            lies += 1;
            check(&sim, result);
        } else {
            result.unwrap();
        }
        if at > sim.operation_count() {
            break;
        }
    }
    lies
}

fn sort_job(kind: &Kind, verify: bool) -> Job {
    let input = Input::Path("/in".into());
    let mut job = Job::new(vec![input], Output::Path("/out".into()), kind.format);
    job.keys.clone_from(&kind.keys);
    job.threads = Some(2);
    job.verify = Some(verify);
    // Several writes for an output of some 100 KB.
    job.tuning.chunk_bytes = Some(16 << 10);
    job.tuning.partition_count = Some(3);
    job
}

#[test]
fn a_device_that_lies_is_found_out_by_verify_alone() {
    let mut random = Random::new("a_device_that_lies_is_found_out_by_verify_alone");
    for kind in [benchmark(), lines()] {
        let data = Data::new(&kind, &mut random, 120_000, 1 << 40);
        let mut shuffled = data.records.clone();
        for place in (1..shuffled.len()).rev() {
            shuffled.swap(place, random.below(place + 1));
        }
        let (input, sorted) = (shuffled.concat(), data.bytes(0));

        let mut places = 0;
        let lies = with_lies(&sort_job(&kind, true), &input, |sim, result| {
            let error = result.unwrap_err();
            println!("{error}");
            assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
            assert_eq!(error.path.as_deref(), Some(Path::new("/out")));
            assert!(error.to_string().contains("not given its name"));
            assert_eq!(sim.get("/out").unwrap(), b"old");
            assert_eq!(sim.names().len(), 2, "{:?}", sim.names());
            if let Some(offset) = error.offset {
                places += 1;
                assert!(offset < sorted.len() as u64);
            }
        });
        assert!(lies > 3 && places > 0, "{lies} lies, {places} places");

        // What cannot be promised without it.
        let lies = with_lies(&sort_job(&kind, false), &input, |sim, result| {
            result.unwrap();
            let found = sim.get("/out").unwrap();
            assert!(found.len() == sorted.len() && found != sorted);
        });
        assert!(lies > 3);
    }
}

#[test]
fn an_output_that_comes_back_gets_its_name() {
    let mut random = Random::new("an_output_that_comes_back_gets_its_name");
    let scratch = Scratch::new("verify");
    for kind in [benchmark(), lines()] {
        let data = Data::new(&kind, &mut random, 9_000_000, 1 << 40);
        let mut shuffled = data.records.clone();
        shuffled.reverse();
        std::fs::write(scratch.path("in"), shuffled.concat()).unwrap();
        for host in hosts() {
            let mut job = sort_job(&kind, true);
            job.inputs = vec![Input::Path(scratch.path("in"))];
            job.output = Output::Path(scratch.path("out"));
            job.memory_bytes = Some(64 << 20);
            job.tuning = Tuning::default();
            let report = sort(&job, &host, &Stop::new()).unwrap();
            assert!(report.verified);
            assert!(std::fs::read(scratch.path("out")).unwrap() == data.bytes(0));
        }
    }
}

/// A reduce function may make records in any order: they are written as it made them.
#[test]
fn reduced_records_need_no_order() {
    let mut random = Random::new("reduced_records_need_no_order");
    let kind = benchmark();
    let data = Data::new(&kind, &mut random, 120_000, 1 << 40);
    let backwards = || -> Reducer {
        Box::new(|record, out| {
            if let Some(record) = record {
                let turned: Vec<u8> = record.iter().map(|byte| !byte).collect();
                out.put(&turned);
            }
        })
    };
    let mut job = sort_job(&kind, true);
    job.reduce = Some(Arc::new(backwards));
    let expected: Vec<u8> = data.bytes(0).iter().map(|byte| !byte).collect();

    let sim = Sim::new(random.next());
    sim.put("/in", &data.bytes(0));
    sort(&job, &sim, &Stop::new()).unwrap();
    assert!(sim.get("/out").unwrap() == expected);

    let lies = with_lies(&job, &data.bytes(0), |sim, result| {
        assert_eq!(result.unwrap_err().kind, ErrorKind::Corrupt);
        assert_eq!(sim.get("/out").unwrap(), b"old");
    });
    assert!(lies > 3);
}
