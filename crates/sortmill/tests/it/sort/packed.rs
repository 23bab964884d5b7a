//! Compressed inputs and outputs: the same records at the same places as of plain ones.

use sortmill::error::ErrorKind;
use sortmill::io::codec::{CODECS, Codec, Decoder, Encoder};
use sortmill::job::Compress;
use sortmill::order::KeyPart;

use super::inputs::{ALL_LINES, Lines, Random, fixed, lines, seed};
use super::{Case, MACHINES, Machine, compare, oracle};

/// `bytes` in a few members, some of them empty.
pub fn packed(codec: Codec, bytes: &[u8]) -> Vec<u8> {
    const MEMBER_BYTES_MAX: usize = 100_000;
    let level = codec.levels().map_or(0, |(least, _, _)| least);
    let mut encoder = Encoder::new(codec, level, MEMBER_BYTES_MAX).unwrap();
    // The same members for the same bytes, whoever asks.
    let mut random = Random::new(bytes.len() as u64);
    let (mut all, mut one, mut rest) = (Vec::new(), Vec::new(), bytes);
    while all.is_empty() || !rest.is_empty() {
        let wished = match random.below(4) {
            0 => 0,
            1 => 1 + random.below(500),
            _ => 1 + random.below(MEMBER_BYTES_MAX),
        };
        let (member, after) = rest.split_at(wished.min(rest.len()));
        encoder.encode(member, &mut one).unwrap();
        all.extend_from_slice(&one);
        rest = after;
    }
    all
}

/// What `bytes` were.
pub fn unpacked(codec: Codec, bytes: &[u8]) -> Vec<u8> {
    let mut decoder = Decoder::new(codec, bytes, u64::MAX).unwrap();
    let (mut out, mut room) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match decoder.read(&mut room).unwrap() {
            0 => return out,
            made => out.extend_from_slice(&room[..made]),
        }
    }
}

/// More memory than the least, so that there is some for codecs.
const MEMORY_BYTES: u64 = 96 << 20;

/// Each codec, alone and beside plain files and a stream, on every machine. The keys are few, so that it shows whether
/// records lie where they would if all inputs were read one after the other.
#[test]
fn compressed_inputs_are_what_they_were() {
    let mut random = Random::new(seed("compressed_inputs_are_what_they_were"));
    for machine in MACHINES {
        for codec in CODECS {
            let counts = [9000, 0, 20_000, 1, 5000];
            let inputs: Vec<Vec<u8>> = counts.map(|count| fixed(40, &mut random, count)).into();
            let mut packed = vec![Some(codec); inputs.len()];
            packed[4] = None;
            for threads in [1, 2, 4] {
                let case = Case {
                    packed: packed.clone(),
                    threads,
                    memory_bytes: MEMORY_BYTES,
                    stream: [None, Some(2), Some(4)][random.below(3)],
                    ..Case::fixed(40, &[KeyPart::plain(0, 1)], inputs.clone())
                };
                let what = format!("{codec:?}, {threads} threads, stream {:?}", case.stream);
                let report = case.check(machine, &what);
                let decoders = report
                    .plan
                    .decoders
                    .expect("there was something to decompress");
                assert!(threads == 1 || decoders.count > 1, "{decoders:?}");
            }
        }
    }
}

#[test]
fn mixtures_of_codecs_and_lines_of_every_kind() {
    let mut random = Random::new(seed("mixtures_of_codecs_and_lines_of_every_kind"));
    for kind in ALL_LINES {
        let inputs: Vec<Vec<u8>> = (0..7)
            .map(|number| {
                let bytes = random.below(200_000);
                let mut input = lines(kind, &mut random, bytes);
                if number % 3 == 0 {
                    // The last line of an input may lack its newline.
                    input.pop();
                }
                input
            })
            .collect();
        let packed = (0..7)
            .map(|_| CODECS.get(random.below(6)).copied())
            .collect();
        let case = Case {
            packed,
            memory_bytes: MEMORY_BYTES,
            threads: 1 + random.below(4),
            stream: (random.below(2) == 0).then_some(3),
            ..Case::lines(inputs)
        };
        let machine = MACHINES[random.below(4)];
        case.check(machine, &format!("{kind:?}, {:?}", case.packed));
    }
}

/// A stream is decompressed alone, so it may take what is set apart for all: of files four have a share of it.
#[test]
fn a_stream_may_take_what_files_would_share() {
    let mut random = Random::new(seed("a_stream_may_take_what_files_would_share"));
    let mut inputs = vec![lines(Lines::Uniform, &mut random, 20_000); 6];
    inputs.push(lines(Lines::Uniform, &mut random, 300_000));
    for codec in CODECS {
        let mut files = vec![Some(Codec::Zstd); inputs.len()];
        files[6] = Some(codec);
        let case = Case {
            packed: files,
            memory_bytes: MEMORY_BYTES,
            threads: 4,
            stream: Some(6),
            ..Case::lines(inputs.clone())
        };
        let report = case.check(Machine::Posix, &format!("{codec:?}"));
        let decoders = report.plan.decoders.expect("there is a stream");
        assert!(decoders.count > 1, "{decoders:?}");
    }
}

/// What memory cannot hold is spilled as of a plain input, by blocks and as long records.
#[test]
fn more_than_fits_into_memory() {
    let mut random = Random::new(seed("more_than_fits_into_memory"));
    let inputs: Vec<Vec<u8>> = (0..3)
        .map(|_| lines(Lines::Long, &mut random, 3_000_000))
        .collect();
    let case = Case {
        packed: vec![Some(Codec::Gzip), None, Some(Codec::Gzip)],
        memory_bytes: 2 << 20,
        ..Case::lines(inputs)
    };
    for machine in [Machine::Posix, Machine::Sim] {
        let report = case.check(machine, "gzip in 2 MiB");
        assert!(report.bytes.temp_written > 1_000_000, "{:?}", report.bytes);
        assert!(report.partitions.long_records > 0);
    }
}

#[test]
fn nothing_is_decompressed_unasked() {
    let case = Case::lines(vec![packed(Codec::Gzip, b"b\na\n")]);
    let report = case.check(Machine::Sim, "as it is");
    assert!(report.plan.decoders.is_none());
}

/// The same bytes whatever the memory, the threads and the machine; and what comes out of them is the plain output.
#[test]
fn a_compressed_output_is_the_same_whatever_carries_it_there() {
    let mut random = Random::new(seed(
        "a_compressed_output_is_the_same_whatever_carries_it_there",
    ));
    for codec in CODECS {
        let inputs = vec![fixed(40, &mut random, 30_000)];
        let keys = [KeyPart::plain(0, 2)];
        let wanted = oracle::sorted(sortmill::order::Format::Fixed(40), &keys, &inputs).concat();
        let mut first = None;
        for (memory_bytes, threads) in
            [(48 << 20, 1), (160 << 20, 2), (256 << 20, 4), (64 << 20, 3)]
        {
            for machine in [Machine::Uring, Machine::Posix, Machine::Sim] {
                let mut case = Case::fixed(40, &keys, inputs.clone());
                case.memory_bytes = memory_bytes;
                case.threads = threads;
                case.tuning.partition_count = Some(1 + random.below(30));
                case.compress = Some(Compress { codec, level: None });
                let what =
                    format!("{codec:?}, {memory_bytes} bytes, {threads} threads on {machine:?}");
                let (output, report) = case
                    .try_run(machine)
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                assert!(report.plan.encoders.is_some());
                compare(&unpacked(codec, &output), &wanted, &what);
                assert_eq!(report.bytes.output, output.len() as u64, "{what}");
                let first = first.get_or_insert_with(|| output.clone());
                compare(&output, first, &what);
            }
        }
    }
}

#[test]
fn an_output_without_a_record_is_a_whole_compressed_one() {
    for codec in CODECS {
        let mut case = Case::lines(vec![Vec::new(), Vec::new()]);
        case.memory_bytes = 64 << 20;
        case.compress = Some(Compress { codec, level: None });
        for machine in [Machine::Posix, Machine::Sim] {
            let (output, _) = case.try_run(machine).unwrap();
            assert!(!output.is_empty(), "{codec:?}");
            assert_eq!(unpacked(codec, &output), b"", "{codec:?}");
            case.check(machine, "nothing");
        }
    }
}

/// An input that is cut off or damaged anywhere ends the job, which names it, the place in it and the cause.
#[test]
fn a_damaged_input_ends_the_job() {
    let mut random = Random::new(seed("a_damaged_input_ends_the_job"));
    for codec in CODECS {
        let good = lines(Lines::Uniform, &mut random, 60_000);
        let whole = packed(codec, &good);
        for step in 0..40 {
            let (mut bytes, at) = (whole.clone(), 20 + random.below(whole.len() - 20));
            match step % 2 {
                0 => bytes.truncate(at),
                _ => bytes[at] ^= 1 << random.below(8),
            }
            let mut case = Case::lines(vec![good.clone(), bytes, good.clone()]);
            case.packed = vec![Some(codec), None, Some(codec)];
            case.memory_bytes = MEMORY_BYTES;
            let what = format!("{codec:?}, step {step}, byte {at} of {}", whole.len());
            match case.try_run(Machine::Sim) {
                Ok((output, _)) => {
                    // It was cut off between members, or what was turned says nothing of the bytes.
                    let left = unpacked(codec, &case.inputs[1]);
                    let inputs = vec![good.clone(), left, good.clone()];
                    let wanted = oracle::sorted(case.format, &[], &inputs).concat();
                    compare(&output, &wanted, &what);
                }
                Err(error) => {
                    let kinds = [ErrorKind::Input, ErrorKind::Memory];
                    assert!(kinds.contains(&error.kind), "{what}: {error}");
                    assert_eq!(
                        error.path.as_deref(),
                        Some("/in1".as_ref()),
                        "{what}: {error}"
                    );
                    assert!(
                        error
                            .offset
                            .is_some_and(|offset| offset <= whole.len() as u64),
                        "{what}: {error}"
                    );
                }
            }
        }
    }
}

/// A frame that wants more memory than there is says so before anything is read, a later one when it comes.
#[test]
fn a_window_larger_than_the_memory_is_refused() {
    // A frame header that asks for 2 GiB, and nothing behind it.
    let header = [0x28, 0xb5, 0x2f, 0xfd, 0, 0xa8];
    let case = |input: Vec<u8>| Case {
        packed: vec![None],
        memory_bytes: 256 << 20,
        tuning: sortmill::job::Tuning::default(),
        ..Case::lines(vec![input])
    };
    let error = case(header.to_vec()).try_run(Machine::Sim).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Memory, "{error}");
    assert!(error.cause.contains("at least"), "{error}");
    let later = [packed(Codec::Zstd, b"b\na\n"), header.to_vec()].concat();
    let place = (later.len() - header.len()) as u64;
    let error = case(later).try_run(Machine::Sim).unwrap_err();
    assert_eq!(
        (error.kind, error.offset),
        (ErrorKind::Memory, Some(place)),
        "{error}"
    );
    assert!(error.cause.contains("2.0 GiB"), "{error}");
}
