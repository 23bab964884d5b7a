//! Sorted inputs that are compressed, merged into outputs that may be: what plain ones become, and no more memory than
//! there is.

use sortmill::error::ErrorKind;
use sortmill::io::codec::{CODECS, Codec, Encoder};
use sortmill::job::{Compress, Disorder};

use super::inputs::{Lines, Random, fixed, lines, seed};
use super::{Case, MACHINES, Machine, merged, oracle};

/// A sixth of it, which 20 streams would share, is enough for each codec: 4.5 MiB for one of bzip2.
const MEMORY_BYTES: u64 = 600 << 20;

fn any_codec(random: &mut Random) -> Option<Codec> {
    let codecs = CODECS.len() + 2;
    CODECS.get(random.below(codecs)).copied()
}

/// A case of [`merged`], its inputs compressed in any way, or as they are.
fn some_case(random: &mut Random, count: usize) -> Case {
    let mut case = merged::merging(merged::some_case(random, count));
    case.packed = (0..count).map(|_| any_codec(random)).collect();
    case.stream = (random.below(2) == 0 && count > 0).then(|| random.below(count));
    case.compress = any_codec(random).map(|codec| Compress { codec, level: None });
    case.memory_bytes = MEMORY_BYTES;
    case
}

/// All back ends, codecs and formats, none to many inputs, one of them as a stream, compressed or not.
#[test]
fn compressed_inputs_are_merged_as_what_they_were() {
    let mut random = Random::new(seed("merged-packed"));
    for round in 0..60 {
        let count = [0, 1, 2, 3, 7, 16, 20][round % 7];
        let mut case = some_case(&mut random, count);
        case.unique = random.below(4) == 0;
        let machine = MACHINES[random.below(MACHINES.len())];
        let what = format!("{count} inputs, {:?}, {:?}", case.packed, case.compress);
        case.check(machine, &what);
    }
}

/// More than memory has codecs for: some become runs first, which are as they are, and nothing takes more than there is.
#[test]
fn more_compressed_inputs_than_there_is_memory_for() {
    let mut random = Random::new(seed("merged-packed-runs"));
    for (codec, memory_bytes) in [
        (Codec::Gzip, 6 << 20),
        (Codec::Bzip2, 24 << 20),
        (Codec::Zstd, 14 << 20),
        (Codec::Xz, 24 << 20),
    ] {
        for unique in [false, true] {
            let inputs = (0..40).map(|number| match number % 9 {
                8 => Vec::new(),
                _ => {
                    let bytes = random.below(9000);
                    lines(Lines::FewDistinct, &mut random, bytes)
                }
            });
            let mut case = merged::merging(Case::lines(inputs.collect()));
            // A few are as they are, and an empty one is a file that is not.
            case.packed = (0..40)
                .map(|number| (number % 7 != 3).then_some(codec))
                .collect();
            case.unique = unique;
            case.memory_bytes = memory_bytes;
            for machine in [Machine::Uring, Machine::Sim] {
                let report = case.check(machine, &format!("40 inputs of {codec:?}"));
                let merged = report.merged.unwrap();
                assert!(merged.runs > 0 && merged.passes > 1, "{merged:?}");
                let decoders = report.plan.decoders.unwrap();
                assert!(decoders.count <= merged.fan_in as usize, "{decoders:?}");
            }
        }
    }
}

/// Too little memory even for two is said before anything is read, with what is needed, and with that it works.
#[test]
fn memory_for_two_at_least() {
    let mut random = Random::new(seed("merged-packed-least"));
    let inputs = (0..5).map(|_| fixed(16, &mut random, 500)).collect();
    let mut case = merged::merging(Case::fixed(16, &[], inputs));
    case.packed = vec![Some(Codec::Bzip2); 5];
    case.memory_bytes = 2 << 20;
    let error = case.try_run(Machine::Sim).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Memory, "{error}");
    let (_, needed) = error.cause.split_once("at least ").unwrap();
    let mebibytes: f64 = needed.split(' ').next().unwrap().parse().unwrap();
    assert!(needed.ends_with("MiB"), "{error}");
    case.memory_bytes = (mebibytes * f64::from(1 << 20)) as u64;
    let report = case.check(Machine::Sim, "the least memory");
    assert!(report.merged.unwrap().fan_in >= 2);
}

/// Wherever one is cut off or altered, the error names it and a byte of it, of files and streams.
#[test]
fn damaged_inputs() {
    let mut random = Random::new(seed("merged-packed-damage"));
    for round in 0..60 {
        let codec = CODECS[round % CODECS.len()];
        let mut case = merged::merging(Case::lines(
            (0..3)
                .map(|_| lines(Lines::Uniform, &mut random, 60_000))
                .collect(),
        ));
        // One member, so that all of it is under a checksum.
        let level = codec.levels().map_or(0, |(least, _, _)| least);
        let mut encoder = Encoder::new(codec, level, case.inputs[1].len()).unwrap();
        let mut stored = Vec::new();
        encoder.encode(&case.inputs[1], &mut stored).unwrap();
        let (bytes, wanted) = match random.below(3) {
            0 => {
                let at = stored.len() - 1 - random.below(stored.len() / 2);
                (stored[..at].to_vec(), "cut off")
            }
            1 => ([&stored[..], b"and more"].concat(), "follows something"),
            _ => {
                let mut turned = stored.clone();
                // In the second half: not in the header, which may be that of anything.
                let at = stored.len() / 2 + random.below(stored.len() / 4);
                turned[at] ^= 1 << random.below(8);
                (turned, "")
            }
        };
        // As it lies there, and not compressed once more.
        case.inputs[1] = bytes.clone();
        case.packed = vec![Some(codec), None, None];
        case.stream = (random.below(2) == 0).then_some(1);
        case.memory_bytes = MEMORY_BYTES;
        let told = format!("{codec:?} {wanted}");
        let error = case.try_run(MACHINES[round % 4]).expect_err(&told);
        let told = format!("{told}: {error}");
        assert!(error.cause.contains(wanted), "{told}");
        assert!(
            matches!(error.kind, ErrorKind::Input | ErrorKind::Memory),
            "{told}"
        );
        assert!(error.offset.unwrap() <= bytes.len() as u64, "{told}");
        let path = error.path.as_ref().unwrap();
        assert!(path.ends_with("in1") || case.stream.is_some(), "{told}");
    }
}

/// A line that comes too late is named by its number, and by where it was before it was compressed.
#[test]
fn a_compressed_input_that_is_not_in_order() {
    let mut random = Random::new(seed("merged-packed-unsorted"));
    for (round, codec) in CODECS.into_iter().enumerate() {
        for stream in [None, Some(1)] {
            let mut case = merged::merging(Case::lines(
                (0..3)
                    .map(|_| lines(Lines::Uniform, &mut random, 90_000))
                    .collect(),
            ));
            let mut records = oracle::records(case.format, &case.inputs[1]);
            records.push(b"\n".to_vec());
            let offset = case.inputs[1].len() as u64;
            case.inputs[1] = records.concat();
            case.packed = vec![Some(codec); 3];
            case.stream = stream;
            case.memory_bytes = MEMORY_BYTES;
            let error = case.try_run(MACHINES[round % 4]).expect_err("unsorted");
            assert_eq!(error.kind, ErrorKind::Input, "{error}");
            assert_eq!(error.offset, Some(offset), "{error}");
            let number = format!("line {},", records.len());
            assert!(error.cause.contains(&number), "{error}");
            assert!(error.cause.contains("decompressed bytes"), "{error}");
            // As it is, it is merged as it is.
            case.merge = Some(Disorder::Kept);
            let (_, report) = case.try_run(MACHINES[round % 4]).unwrap();
            assert_eq!(report.merged.unwrap().breaks, 1);
        }
    }
}

/// One input named twice is read twice; records that a piece's end cuts through are whole, and the longest is as long as
/// the plan says.
#[test]
fn the_longest_record_of_a_compressed_input() {
    for before in [0, 1, 12_200, 16_383, 16_384, 20_000] {
        for (length, fits) in [(4096, true), (4097, false), (40_000, false)] {
            let short = b"a\n".repeat(before / 2);
            let long = [vec![b'b'; length - 1], b"\n".to_vec()].concat();
            let input = [&short[..], &long, b"c\n"].concat();
            let mut case = merged::merging(Case::lines(vec![input, b"b\n".to_vec()]));
            case.packed = vec![Some(Codec::Gzip); 2];
            case.memory_bytes = 8 << 20;
            if fits {
                case.check(Machine::Sim, "long");
                continue;
            }
            let error = case.try_run(Machine::Sim).expect_err("it is too long");
            let place = Some(short.len() as u64);
            assert_eq!(
                (error.kind, error.offset),
                (ErrorKind::Input, place),
                "{error}"
            );
            assert!(error.cause.contains("decompressed bytes"), "{error}");
        }
    }
}
