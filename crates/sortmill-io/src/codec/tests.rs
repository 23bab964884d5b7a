//! What goes in comes out, and what is wrong with it is seen wherever it is.

use std::io::{self, Read};

use super::{CODECS, Codec, Decoder, Encoder, Wrong, bound_bytes, sniff};

const FRAME_BYTES: usize = 1 << 20;
const PLENTY: u64 = 64 << 20;

/// Splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Bytes that can be compressed a little, or not at all.
    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mask = if self.below(3) == 0 { 0xff } else { 0x0f };
        (0..count).map(|_| self.next() as u8 & mask).collect()
    }
}

fn seed(test: &str) -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let given = std::env::var("SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let seed = given.unwrap_or(now.unwrap().as_nanos() as u64 % 1_000_000_007);
    println!("{test}: SEED={seed}");
    seed
}

/// The codecs of this build.
fn codecs() -> impl Iterator<Item = Codec> {
    CODECS.into_iter().filter(|codec| codec.is_built())
}

/// `parts` as members of their own, one after the other.
fn packed(codec: Codec, parts: &[&[u8]]) -> Vec<u8> {
    let level = codec.levels().map_or(0, |(least, _, _)| least);
    let mut encoder = Encoder::new(codec, level, FRAME_BYTES).unwrap();
    let (mut all, mut one) = (Vec::new(), Vec::new());
    for part in parts {
        encoder.encode(part, &mut one).unwrap();
        assert!(one.len() <= bound_bytes(FRAME_BYTES));
        all.extend_from_slice(&one);
    }
    all
}

/// Gives so many bytes at a time.
struct Pieces<'a>(&'a [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.1.min(self.0.len()).min(into.len());
        let (now, later) = self.0.split_at(count);
        into[..count].copy_from_slice(now);
        self.0 = later;
        Ok(count)
    }
}

/// Everything that `bytes` were, and where the decoder came to.
fn unpacked(
    codec: Codec,
    bytes: &[u8],
    limit: u64,
    steps: (usize, usize),
) -> (Result<Vec<u8>, Wrong>, u64) {
    let mut decoder = match Decoder::new(codec, Pieces(bytes, steps.0), limit) {
        Ok(decoder) => decoder,
        Err(wrong) => return (Err(wrong), 0),
    };
    let (mut out, mut room) = (Vec::new(), vec![0; steps.1]);
    loop {
        match decoder.read(&mut room) {
            Ok(0) => return (Ok(out), decoder.position()),
            Ok(made) => out.extend_from_slice(&room[..made]),
            Err(wrong) => return (Err(wrong), decoder.position()),
        }
    }
}

fn unpacked_at_once(codec: Codec, bytes: &[u8]) -> Result<Vec<u8>, Wrong> {
    unpacked(codec, bytes, PLENTY, (usize::MAX, 1 << 16)).0
}

#[test]
fn members_of_any_length_come_back() {
    let mut random = Random(seed("members_of_any_length_come_back"));
    for codec in codecs() {
        for lengths in [
            &[0][..],
            &[1],
            &[0, 5, 0, 0],
            &[70_000, 0, 1],
            &[FRAME_BYTES, 300_000, 3],
        ] {
            let parts: Vec<Vec<u8>> = lengths.iter().map(|&count| random.bytes(count)).collect();
            let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            let bytes = packed(codec, &slices);
            let found = sniff(&bytes).expect("it is recognised");
            assert_eq!(found.codec, codec);
            let steps = (1 + random.below(9000), 1 + random.below(200_000));
            let (out, at) = unpacked(codec, &bytes, PLENTY, steps);
            assert_eq!(
                out.unwrap(),
                parts.concat(),
                "{codec:?} {lengths:?} {steps:?}"
            );
            assert_eq!(at, bytes.len() as u64, "{codec:?} {lengths:?}");
        }
    }
}

/// Bytes that no codec can compress, and for which the fixed code of gzip's lowest level has 9 bits each: a frame of
/// them is longer than it was, and no longer than was set apart.
#[test]
fn what_grows_by_being_compressed_fits_too() {
    let mut random = Random(seed("what_grows_by_being_compressed_fits_too"));
    let frame: Vec<u8> = (0..FRAME_BYTES)
        .map(|_| 144 + random.below(112) as u8)
        .collect();
    for codec in codecs() {
        let (least, usual, most) = codec.levels().unwrap_or_default();
        for level in [least, usual, most] {
            let mut encoder = Encoder::new(codec, level, FRAME_BYTES).unwrap();
            let mut out = Vec::new();
            encoder.encode(&frame, &mut out).unwrap();
            assert!(out.len() <= bound_bytes(FRAME_BYTES));
            assert!(unpacked_at_once(codec, &out).unwrap() == frame);
        }
    }
}

#[test]
fn what_is_cut_off_is_seen_at_every_byte() {
    let mut random = Random(seed("what_is_cut_off_is_seen_at_every_byte"));
    for codec in codecs() {
        let (one, two) = (random.bytes(700), random.bytes(300));
        let first = packed(codec, &[&one]).len();
        let bytes = packed(codec, &[&one, &two]);
        for cut in 1..bytes.len() {
            let what = format!("{codec:?} cut at {cut} of {first} and {}", bytes.len());
            for steps in [(usize::MAX, 1 << 16), (1, 7)] {
                let (out, at) = unpacked(codec, &bytes[..cut], PLENTY, steps);
                match out {
                    Ok(out) => assert!(cut == first && out == one, "{what}"),
                    Err(Wrong::CutOff) => assert!(at <= cut as u64, "{what}: at {at}"),
                    // So few bytes are left that they begin nothing.
                    Err(Wrong::Trailing) => {
                        assert!(at == 0 || at == first as u64, "{what}: at {at}")
                    }
                    Err(wrong) => panic!("{what}: {wrong:?}"),
                }
            }
        }
    }
}

#[test]
fn no_turned_bit_changes_what_comes_out() {
    let mut random = Random(seed("no_turned_bit_changes_what_comes_out"));
    for codec in codecs() {
        let (one, two) = (random.bytes(400), random.bytes(200));
        let bytes = packed(codec, &[&one, &two]);
        let (mut errors, whole) = (0, [one, two].concat());
        for bit in 0..8 * bytes.len() {
            let mut turned = bytes.clone();
            turned[bit / 8] ^= 1 << (bit % 8);
            match unpacked_at_once(codec, &turned) {
                Err(_) => errors += 1,
                // The time or the system in a header, a flag that says nothing of the bytes.
                Ok(out) => assert_eq!(out, whole, "{codec:?}, bit {bit}"),
            }
        }
        assert!(
            errors > 7 * bytes.len(),
            "{codec:?}: {errors} of {} bits",
            8 * bytes.len()
        );
    }
}

#[test]
fn what_may_stand_between_members() {
    let (one, two) = (b"one\n".as_slice(), b"two\n".as_slice());
    for codec in codecs() {
        let (first, second) = (packed(codec, &[one]), packed(codec, &[two]));
        let with =
            |between: &[u8]| unpacked_at_once(codec, &[&first[..], between, &second].concat());
        let behind = |end: &[u8]| unpacked_at_once(codec, &[&first[..], end].concat());
        let both = [one, two].concat();
        assert_eq!(with(b"").unwrap(), both);
        assert!(matches!(with(b"x"), Err(Wrong::Trailing)), "{codec:?}");
        assert!(
            matches!(behind(b"what is that?"), Err(Wrong::Trailing)),
            "{codec:?}"
        );
        match codec {
            Codec::Gzip => {
                assert_eq!(behind(&[0; 513]).unwrap(), one);
                assert!(matches!(with(&[0; 8]), Err(Wrong::Trailing)));
            }
            Codec::Xz => {
                assert_eq!(with(&[0; 8]).unwrap(), both);
                assert_eq!(behind(&[0; 4]).unwrap(), one);
                assert!(matches!(behind(&[0; 5]), Err(Wrong::Trailing)));
            }
            Codec::Zstd | Codec::Lz4 => {
                let skipped = [&[0x5e, 0x2a, 0x4d, 0x18, 100, 0, 0, 0][..], &[7; 100]].concat();
                assert_eq!(with(&skipped).unwrap(), both);
                assert_eq!(behind(&skipped).unwrap(), one);
                assert!(matches!(behind(&skipped[..60]), Err(Wrong::CutOff)));
                // As parallel programs begin their files.
                let begins = [&skipped[..], &first].concat();
                assert_eq!(sniff(&begins).map(|found| found.codec), Some(codec));
                assert_eq!(unpacked_at_once(codec, &begins).unwrap(), one);
            }
            Codec::Bzip2 => assert!(matches!(with(&[0; 8]), Err(Wrong::Trailing))),
        }
    }
}

#[test]
fn what_only_looks_like_it_is_left_alone() {
    for start in [
        &b""[..],
        b"BZh9 is how it begins",
        b"BZh",
        b"\x1f\x8b\x07",
        b"\x1f\x8b\x08\xff",
        b"\x28\xb5\x2f",
        b"\x50\x2a\x4d\x18\x05\0\0\0abcde and then nothing of the kind",
        b"\x50\x2a\x4d\x18\xff\xff\xff\xff",
        b"7zXZ",
    ] {
        assert_eq!(sniff(start), None, "{}", start.escape_ascii());
    }
}

#[cfg(feature = "zstd")]
#[test]
fn a_zstd_frame_of_a_large_window_is_refused_before_it_is_read() {
    let with_window = |bits: u32| {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(bits).unwrap();
        io::Write::write_all(&mut encoder, &[b'a'; 100_000]).unwrap();
        encoder.finish().unwrap()
    };
    for bits in [17, 20, 24, 27] {
        let bytes = with_window(bits);
        let found = sniff(&bytes).unwrap();
        assert!(
            (1 << bits..(1 << bits) + (1 << 20)).contains(&found.memory_bytes),
            "{found:?}"
        );
        let (limit, steps) = (found.memory_bytes, (usize::MAX, 999));
        assert_eq!(
            unpacked(Codec::Zstd, &bytes, limit, steps).0.unwrap().len(),
            100_000
        );
        // As a later frame too.
        let bytes = [packed(Codec::Zstd, &[b"first"]), bytes].concat();
        let (out, at) = unpacked(Codec::Zstd, &bytes, limit - 1, steps);
        assert!(
            matches!(out, Err(Wrong::Memory(Some(wanted))) if wanted == limit),
            "{out:?}"
        );
        assert_eq!(at, packed(Codec::Zstd, &[b"first"]).len() as u64);
    }
}

#[cfg(feature = "xz")]
#[test]
fn an_xz_stream_of_a_large_dictionary_is_refused() {
    use liblzma::stream::{Action, Check, Filters, LzmaOptions, Stream};
    let with_dictionary = |bytes: u32| {
        let mut filters = Filters::new();
        filters.lzma2(LzmaOptions::new_preset(0).unwrap().dict_size(bytes));
        let mut out = Vec::with_capacity(1 << 16);
        let mut xz = Stream::new_stream_encoder(&filters, Check::Crc32).unwrap();
        xz.process_vec(&[b'a'; 10_000], &mut out, Action::Finish)
            .unwrap();
        out
    };
    for dictionary in [1 << 16, 3 << 20, 8 << 20, 64 << 20] {
        let bytes = with_dictionary(dictionary);
        let found = sniff(&bytes).unwrap();
        let wanted = u64::from(dictionary)..u64::from(dictionary) + (1 << 20);
        assert!(
            wanted.contains(&found.memory_bytes),
            "{dictionary} {found:?}"
        );
        let (out, _) = unpacked(Codec::Xz, &bytes, found.memory_bytes, (77, 999));
        assert_eq!(out.unwrap().len(), 10_000);
        let (out, _) = unpacked(Codec::Xz, &bytes, u64::from(dictionary) / 2, (77, 999));
        assert!(matches!(out, Err(Wrong::Memory(_))), "{out:?}");
    }
}

#[test]
fn an_lz4_frame_of_large_blocks_is_refused() {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    for (size, mode, wanted) in [
        (BlockSize::Max64KB, BlockMode::Independent, 2 * 65_536),
        (BlockSize::Max4MB, BlockMode::Linked, (12 << 20) + 65_536),
    ] {
        let info = FrameInfo::new().block_size(size).block_mode(mode);
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        io::Write::write_all(&mut encoder, &[b'a'; 10_000]).unwrap();
        let bytes = encoder.finish().unwrap();
        let found = sniff(&bytes).unwrap();
        assert_eq!(found.memory_bytes, wanted + (512 << 10));
        let (out, _) = unpacked(Codec::Lz4, &bytes, found.memory_bytes, (77, 999));
        assert_eq!(out.unwrap().len(), 10_000);
        let (out, at) = unpacked(Codec::Lz4, &bytes, found.memory_bytes - 1, (77, 999));
        assert!(
            matches!(out, Err(Wrong::Memory(Some(_)))) && at == 0,
            "{out:?}"
        );
    }
}

/// A reader that fails is not taken for one that has ended.
#[test]
fn an_unreadable_input_is_no_short_one() {
    struct Broken<'a>(Pieces<'a>);
    impl Read for Broken<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            match self.0.read(into)? {
                0 => Err(io::Error::other("the device is gone")),
                moved => Ok(moved),
            }
        }
    }
    for codec in codecs() {
        let bytes = packed(codec, &[&[b'a'; 5000]]);
        for cut in [10, bytes.len() - 5, bytes.len()] {
            let broken = Broken(Pieces(&bytes[..cut], 3));
            let mut decoder = Decoder::new(codec, broken, PLENTY).unwrap();
            let mut room = [0; 999];
            let wrong = loop {
                match decoder.read(&mut room) {
                    Ok(made) => assert_ne!(made, 0, "{codec:?} cut at {cut}"),
                    Err(wrong) => break wrong,
                }
            };
            assert!(
                matches!(wrong, Wrong::Read(_)),
                "{codec:?} cut at {cut}: {wrong:?}"
            );
        }
    }
}
