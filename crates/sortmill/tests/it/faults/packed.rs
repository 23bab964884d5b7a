//! Faults in jobs whose input and output are compressed.

use std::sync::Arc;

use sortmill::io::codec::{Codec, Decoder, Encoder};
use sortmill::io::sim::FaultKind;

use super::{Case, judge, seed, sweep};

/// What `bytes` were; nothing, which no test expects, if they are damaged.
pub fn unpacked(codec: Codec, bytes: &[u8]) -> Vec<u8> {
    let mut decoder = Decoder::new(codec, bytes, u64::MAX).unwrap();
    let (mut out, mut room) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match decoder.read(&mut room) {
            Ok(0) => return out,
            Ok(made) => out.extend_from_slice(&room[..made]),
            Err(_) => return Vec::new(),
        }
    }
}

/// A compressed input of two header lines and `bytes` bytes of records, in members.
fn case(codec: Codec, bytes: usize) -> Case {
    let mut case = Case::new(seed(), bytes);
    case.header_lines = 2;
    let header = b"~ header\n\n";
    let mut encoder = Encoder::new(codec, 1, 9000).unwrap();
    let (mut all, mut one) = (Vec::new(), Vec::new());
    for member in [&header[..], &case.input].concat().chunks(9000) {
        encoder.encode(member, &mut one).unwrap();
        all.extend_from_slice(&one);
    }
    case.expected = Arc::new([&header[..], &case.expected].concat());
    case.input = Arc::new(all);
    case.packed = Some(codec);
    case.memory_bytes = 2 << 20;
    case
}

#[test]
fn the_job_with_compressed_ends_goes_the_whole_way() {
    // A codec of lz4 wants its blocks several times.
    for (codec, memory_bytes, bytes) in [
        (Codec::Gzip, 2 << 20, 2_500_000),
        (Codec::Lz4, 6 << 20, 7_000_000),
    ] {
        let mut case = case(codec, bytes);
        case.memory_bytes = memory_bytes;
        let outcome = case.run(seed(), None);
        judge(&case, &outcome, false);
        let report = outcome.result.unwrap();
        assert!(report.partitions.evicted >= 2, "{:?}", report.partitions);
        assert!(report.plan.encoders.is_some() && report.plan.decoders.is_some());
    }
}

#[test]
fn faults_where_both_ends_are_compressed() {
    let mut case = case(Codec::Gzip, 1_000_000);
    case.verify = true;
    sweep(&case, FaultKind::Error(5), false, 5);
    sweep(&case, FaultKind::Error(28), true, 5);
}

#[test]
fn faults_in_a_compressed_stream() {
    let mut case = case(Codec::Lz4, 800_000);
    case.stream = true;
    sweep(&case, FaultKind::Error(5), false, 5);
}
