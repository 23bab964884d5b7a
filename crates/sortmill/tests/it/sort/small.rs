//! Small jobs to standard output, in one thread: what comes out is what the long way makes, and whatever is larger or
//! wrong is handed to that with nothing lost.

use std::path::Path;

use sortmill::error::{Error, ErrorKind};
use sortmill::io::Os;
use sortmill::io::codec::{CODECS, Codec};
use sortmill::io::sim::{Fault, FaultKind, Sim};
use sortmill::job::{Compress, Disorder, Input, Job, Output};
use sortmill::order::{Format, KeyPart};
use sortmill::queue::Stop;
use sortmill::run::{self, Small};

use super::inputs::{ALL_LINES, Lines, Random, lines, seed};
use super::packed::packed;
use super::{compare, oracle};

/// A job of files, and of standard input as the last.
fn job(sim: &Sim, format: Format, keys: &[KeyPart], inputs: &[Vec<u8>]) -> Job {
    let (stream, files) = inputs.split_last().unwrap();
    sim.put_stdin(stream);
    let mut named = Vec::new();
    for (number, bytes) in files.iter().enumerate() {
        let path = format!("/in{number}");
        sim.put(&path, bytes);
        named.push(Input::Path(path.into()));
    }
    named.push(Input::Stdin);
    let mut job = Job::new(named, Output::Stdout, format);
    job.keys = keys.to_vec();
    job.memory_bytes = Some(512 << 20);
    job.threads = Some(1);
    job
}

/// Tries the short way, then the long one. Whether the short one was enough.
fn sort(job: &Job, os: &dyn Os) -> Result<bool, Error> {
    let stop = Stop::new();
    let sources = run::open(job, os)?;
    match run::sort_small(job, sources, os, &stop)? {
        Small::Done(_) => Ok(true),
        Small::Larger(sources) => {
            let prepared = run::prepare_opened(job, sources, os)?;
            run::sort_prepared(job, prepared, os, &stop).map(|_| false)
        }
    }
}

#[track_caller]
fn check(format: Format, keys: &[KeyPart], inputs: &[Vec<u8>], is_small: bool, what: &str) {
    let sim = Sim::new(inputs.len() as u64);
    let job = job(&sim, format, keys, inputs);
    let was_small = sort(&job, &sim).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(was_small, is_small, "{what}");
    let wanted = oracle::sorted(format, keys, inputs).concat();
    compare(&sim.get_stdout(), &wanted, what);
}

#[test]
fn small_jobs_of_every_kind() {
    let mut random = Random::new(seed("small_jobs_of_every_kind"));
    for kind in ALL_LINES {
        for bytes in [0, 1, 100, 30_000] {
            let mut inputs: Vec<_> = (0..3).map(|_| lines(kind, &mut random, bytes)).collect();
            if random.below(2) == 0 {
                inputs[random.below(3)].pop();
            }
            check(
                Format::Lines,
                &[],
                &inputs,
                true,
                &format!("{kind:?}, {bytes}"),
            );
        }
    }
    let keys = [KeyPart::plain(3, 2), KeyPart::plain(0, 1)];
    let inputs: Vec<_> = (0..3)
        .map(|_| {
            let count = random.below(3000);
            random.bytes(7 * count)
        })
        .collect();
    check(Format::Fixed(7), &keys, &inputs, true, "fixed records");
    let pairs = |random: &mut Random| {
        let mut bytes = Vec::new();
        for _ in 0..random.below(500) {
            let lengths = [random.below(9), random.below(40)];
            bytes.extend(lengths.map(|length| (length as u32).to_le_bytes()).concat());
            bytes.extend(random.bytes(lengths[0] + lengths[1]));
        }
        bytes
    };
    let inputs: Vec<_> = (0..3).map(|_| pairs(&mut random)).collect();
    check(Format::Kv, &[], &inputs, true, "pairs");
}

/// A merge of inputs that are in order is small; of any other, and of several streams, it is not. What comes out is the
/// same.
#[test]
fn small_merges() {
    let mut random = Random::new(seed("small_merges"));
    for round in 0..60 {
        let kind = ALL_LINES[random.below(ALL_LINES.len())];
        let mut inputs: Vec<_> = (0..4)
            .map(|_| {
                let bytes = random.below(2) * random.below(20_000);
                let input = lines(kind, &mut random, bytes);
                oracle::sorted(Format::Lines, &[], &[input]).concat()
            })
            .collect();
        if random.below(2) == 0 {
            inputs[random.below(4)].pop();
        }
        let disorder = [Disorder::Refused, Disorder::Kept][round % 2];
        let is_bad = round % 4 > 1;
        if is_bad {
            inputs[random.below(4)] = b"b\nc\na".to_vec();
        }
        let sim = Sim::new(round as u64);
        let mut job = job(&sim, Format::Lines, &[], &inputs);
        job.merge = Some(disorder);
        job.unique = random.below(2) == 0;
        let mut wanted = oracle::sorted(Format::Lines, &[], &inputs);
        if job.unique {
            oracle::without_repeats(Format::Lines, &[], &mut wanted);
        }
        match (sort(&job, &sim), is_bad, disorder) {
            (Ok(was_small), false, _) => {
                assert!(was_small || kind == Lines::Long, "{kind:?}");
                compare(&sim.get_stdout(), &wanted.concat(), "merged");
            }
            (Ok(was_small), true, Disorder::Kept) => assert!(!was_small),
            (Err(error), true, Disorder::Refused) => {
                assert!(error.cause.contains("line 3,"), "{error}");
                assert!(sim.get_stdout().is_empty());
            }
            (other, ..) => panic!("{round}: {:?}", other.map_err(|error| error.to_string())),
        }
    }
}

#[test]
fn larger_ones_take_the_long_way_with_what_was_read() {
    let mut random = Random::new(seed("larger_ones_take_the_long_way_with_what_was_read"));
    let large = lines(ALL_LINES[0], &mut random, 17 << 20);
    let few = lines(ALL_LINES[1], &mut random, 10_000);
    // By the stream, by the files, by the number of records.
    check(
        Format::Lines,
        &[],
        &[few.clone(), large.clone()],
        false,
        "a stream",
    );
    check(Format::Lines, &[], &[large, few.clone()], false, "a file");
    let many = vec![b'\n'; 6 << 20];
    check(Format::Lines, &[], &[few, many], false, "many records");
}

/// Of a stream more is read before that shows than fits into a chunk.
#[test]
fn compressed_inputs_take_the_long_way_with_what_was_read() {
    let mut random = Random::new(seed(
        "compressed_inputs_take_the_long_way_with_what_was_read",
    ));
    let mut incompressible = random.bytes(6 << 20);
    incompressible.push(b'\n');
    let few = lines(ALL_LINES[1], &mut random, 10_000);
    for codec in CODECS {
        for (file, stream) in [
            (packed(codec, &few), incompressible.clone()),
            (few.clone(), packed(codec, &incompressible)),
            (packed(codec, &few), packed(codec, &incompressible)),
        ] {
            let sim = Sim::new(5);
            let mut job = job(&sim, Format::Lines, &[], &[file, stream]);
            job.decompress = true;
            assert!(!sort(&job, &sim).unwrap(), "{codec:?}");
            let inputs = [few.clone(), incompressible.clone()];
            let wanted = oracle::sorted(Format::Lines, &[], &inputs).concat();
            compare(&sim.get_stdout(), &wanted, &format!("{codec:?}"));
        }
    }
}

/// What only the long way has is left to it.
#[test]
fn headers_and_compressed_outputs_take_the_long_way() {
    let with = |alter: fn(&mut Job)| {
        let sim = Sim::new(6);
        let mut job = job(&sim, Format::Lines, &[], &[b"x\nb\na\n".to_vec()]);
        alter(&mut job);
        assert!(!sort(&job, &sim).unwrap());
        sim.get_stdout()
    };
    assert_eq!(with(|job| job.header_lines = 1), b"x\na\nb\n");
    let out = with(|job| {
        job.compress = Some(Compress {
            codec: Codec::Gzip,
            level: None,
        });
    });
    assert_eq!(super::packed::unpacked(Codec::Gzip, &out), b"a\nb\nx\n");
}

#[test]
fn bad_input_is_told_as_it_always_is() {
    let cut_off = [
        (Format::Fixed(10), vec![7; 25]),
        (
            Format::Kv,
            [3u32.to_le_bytes(), 9u32.to_le_bytes()].concat(),
        ),
        (Format::Kv, vec![1, 0]),
    ];
    for (format, bytes) in cut_off {
        let sim = Sim::new(7);
        let job = job(&sim, format, &[], &[bytes]);
        let error = sort(&job, &sim).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Input, "{error}");
        assert_eq!(error.path.as_deref(), Some(Path::new("-")));
        assert!(error.offset.is_some());
        assert!(sim.get_stdout().is_empty());
    }
}

#[test]
fn a_fault_at_every_operation() {
    let inputs = [b"b\na".to_vec(), b"d\nc\n".to_vec(), b"\nz\nb\n".to_vec()];
    let wanted = oracle::sorted(Format::Lines, &[], &inputs).concat();
    let run = |fault: Option<Fault>| {
        let sim = Sim::new(3);
        let job = job(&sim, Format::Lines, &[], &inputs);
        let before = sim.operation_count();
        sim.set_fault(fault);
        let result = sort(&job, &sim);
        (sim.operation_count() - before, result, sim.get_stdout())
    };
    let (operations, result, output) = run(None);
    assert!(result.unwrap() && output == wanted);
    assert!(operations > 8);
    for at in 0..operations {
        for for_good in [false, true] {
            let kind = FaultKind::Error(5);
            let (_, result, output) = run(Some(Fault { at, for_good, kind }));
            match result {
                Ok(_) => assert_eq!(output, wanted, "operation {at}"),
                // Nothing is written before it is proven, so all is there or nothing.
                Err(_) => assert!(output.is_empty() || output == wanted, "operation {at}"),
            }
        }
    }
}
