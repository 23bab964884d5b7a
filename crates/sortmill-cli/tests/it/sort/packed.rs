//! Compressed files as people have them: made by our crates, read by the programs where there are any, and the other
//! way round.

use std::path::Path;
use std::process::{Command, Stdio};

use sortmill::io::codec::{CODECS, Codec, Decoder, Encoder};

use super::{LITTLE, run, run_badly, run_on_pipe, run_well, sort, sorted, stderr, text, words};
use crate::{PROGRAM, Scratch};

/// `bytes` in members of up to `member_bytes`.
pub fn packed(codec: Codec, bytes: &[u8], member_bytes: usize) -> Vec<u8> {
    let (_, level, _) = codec.levels().unwrap_or_default();
    let mut encoder = Encoder::new(codec, level, member_bytes).unwrap();
    let (mut all, mut one) = (Vec::new(), Vec::new());
    for member in bytes.chunks(member_bytes) {
        encoder.encode(member, &mut one).unwrap();
        all.extend_from_slice(&one);
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

/// What a program of the codec's name makes of a file with these flags, or the news that it is not installed: then only
/// our own crates have been held against each other.
fn program(codec: Codec, flags: &[&str], file: &Path) -> Option<Vec<u8>> {
    let mut command = Command::new(codec.name());
    command.args(flags).arg(file).stdin(Stdio::null());
    match command.output() {
        Ok(output) => {
            assert!(output.status.success(), "{command:?}: {}", stderr(&output));
            Some(output.stdout)
        }
        Err(error) => {
            println!("NOT TESTED against the program {}: {error}", codec.name());
            None
        }
    }
}

/// Enough that a job spills, and little for who is to see it.
const MEMORY: &str = "--memory 64MiB --threads 2";

/// `lz4 -l` writes frames of another kind, which have no end but that of the file.
#[test]
fn legacy_files_of_lz4() {
    let scratch = Scratch::new("packed-lz4-legacy");
    let input = text(20_000_000, 5);
    std::fs::write(scratch.path("plain"), &input).unwrap();
    // Bytes that cannot be compressed: their block is longer than what it was.
    let mut state = 9_u64;
    let mut noise: Vec<u8> = (0..9_000_000)
        .map(|_| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 56) as u8
        })
        .collect();
    noise.push(b'\n');
    std::fs::write(scratch.path("noise"), &noise).unwrap();
    let mut legacy = Vec::new();
    for (name, plain) in [("plain", &input), ("noise", &noise)] {
        let Some(bytes) = program(Codec::Lz4, &["-lc"], &scratch.path(name)) else {
            return;
        };
        assert!(bytes.starts_with(&[0x02, 0x21, 0x4c, 0x18]));
        assert!(unpacked(Codec::Lz4, &bytes) == *plain, "{name}");
        legacy.push(bytes);
    }
    let usual = packed(Codec::Lz4, &input, 1 << 20);
    let all = [&legacy[0][..], &usual, &legacy[0]].concat();
    let wanted = sorted(&[&input[..], &input, &input].concat());
    std::fs::write(scratch.path("in"), &all).unwrap();
    for memory in ["--memory 200MiB", MEMORY] {
        run_well(sort(words(
            &scratch,
            &format!("{memory} -q -o {{}}out {{}}in"),
        )));
        assert!(
            std::fs::read(scratch.path("out")).unwrap() == wanted,
            "{memory}"
        );
    }
    let output = run_on_pipe(sort(words(&scratch, "--memory 200MiB -q")), &all);
    assert!(output.stdout == wanted, "{}", stderr(&output));
    // Of a stream nobody knows beforehand what it wants.
    let output = run_on_pipe(sort(words(&scratch, MEMORY)), &all);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("needs 16.5 MiB to be decompressed"));
    std::fs::write(scratch.path("noisy"), &legacy[1]).unwrap();
    run_well(sort(words(&scratch, "--memory 200MiB -q -o {}out {}noisy")));
    assert!(std::fs::read(scratch.path("out")).unwrap() == sorted(&noise));
    // Empty ones among others: the first two were taken for text, and what followed the third for damage.
    std::fs::write(scratch.path("nothing"), b"").unwrap();
    let empty = program(Codec::Lz4, &["-lc"], &scratch.path("nothing")).unwrap();
    for all in [
        [&empty[..], &legacy[0]].concat(),
        [&empty[..], &usual].concat(),
        [&legacy[0][..], &empty, &empty].concat(),
    ] {
        std::fs::write(scratch.path("in"), &all).unwrap();
        run_well(sort(words(&scratch, "--memory 200MiB -q -o {}out {}in")));
        assert!(std::fs::read(scratch.path("out")).unwrap() == sorted(&input));
    }
    // Cut off within a block, altered, or followed by something else.
    let cut = &legacy[0][..legacy[0].len() - 3];
    let mut altered = legacy[0].clone();
    altered[8..200].fill(0xff);
    for (bytes, wanted) in [
        (cut.to_vec(), "within"),
        (altered, "lz4"),
        ([&legacy[0][..], &[0xff; 9]].concat(), "lz4 frame"),
    ] {
        std::fs::write(scratch.path("in"), bytes).unwrap();
        run_badly(sort(words(&scratch, "-q {}in")), &[wanted]);
    }
}

/// There is nothing that reads them, and sorting compressed bytes as text helps nobody.
#[test]
fn lzma_files_are_refused() {
    let scratch = Scratch::new("packed-lzma");
    std::fs::write(scratch.path("plain"), b"b\na\n").unwrap();
    let Some(bytes) = program(Codec::Xz, &["--format=lzma", "-c"], &scratch.path("plain")) else {
        return;
    };
    std::fs::write(scratch.path("in.lzma"), &bytes).unwrap();
    std::fs::write(scratch.path("text.lzma"), b"b\na\nand more than a header\n").unwrap();
    run_badly(
        sort(words(&scratch, "{}in.lzma")),
        &["compressed as .lzma", "--no-decompress"],
    );
    run_well(sort(words(&scratch, "--no-decompress {}in.lzma")));
    run_well(sort(words(&scratch, "{}text.lzma")));
}

/// What lies behind frames that are skipped tells the codec, as far in as a MiB; they were sorted as text.
#[test]
fn what_lies_behind_long_skipped_frames() {
    let scratch = Scratch::new("packed-skipped");
    let skipped = |bytes: usize| {
        let head = [0x184d_2a50_u32, bytes as u32].map(u32::to_le_bytes);
        [&head.concat()[..], &vec![b's'; bytes]].concat()
    };
    let packed = packed(Codec::Zstd, b"b\na\n", 4);
    for (name, bytes) in [
        ("long", [skipped(5000), packed.clone()].concat()),
        ("many", [skipped(10).repeat(400), packed.clone()].concat()),
    ] {
        std::fs::write(scratch.path(name), &bytes).unwrap();
        for line in ["-q {}in", "-q --memory 64MiB {}in"] {
            let output = run_well(sort(words(&scratch, &line.replace("in", name))));
            assert_eq!(output.stdout, b"a\nb\n");
        }
        assert_eq!(run_on_pipe(sort(["-q"]), &bytes).stdout, b"a\nb\n");
    }
    for (name, bytes) in [
        ("longer", [skipped(2 << 20), packed].concat()),
        ("only", skipped(50)),
    ] {
        std::fs::write(scratch.path(name), &bytes).unwrap();
        let command = sort(words(&scratch, &format!("{{}}{name}")));
        run_badly(command, &["zstd and lz4 skip", "--no-decompress"]);
    }
}

#[test]
fn files_that_programs_made() {
    let scratch = Scratch::new("packed-programs");
    let input = text(3_000_000, 1);
    std::fs::write(scratch.path("plain"), &input).unwrap();
    for codec in CODECS {
        let flags: &[&[&str]] = match codec {
            Codec::Zstd => &[
                &["-cq"],
                &["-cq", "-19", "--long=24"],
                &["-cq", "--fast=5", "--no-check"],
            ],
            Codec::Lz4 => &[
                &["-cq"],
                &["-cq", "-9", "-B4"],
                &["-cq", "-BD", "-BX"],
                &["-cq", "--no-frame-crc"],
            ],
            Codec::Xz => &[
                &["-c"],
                &["-c", "-0"],
                &["-c", "--block-size=100000", "-T2"],
                &["-c", "--x86", "--lzma2"],
            ],
            Codec::Gzip | Codec::Bzip2 => &[&["-c"], &["-c", "-1"]],
        };
        for flags in flags {
            let Some(bytes) = program(codec, flags, &scratch.path("plain")) else {
                break;
            };
            // Several, as logs are put together.
            std::fs::write(scratch.path("in"), [&bytes[..], &bytes[..]].concat()).unwrap();
            run_well(sort(words(
                &scratch,
                &format!("{MEMORY} -q -o {{}}out {{}}in"),
            )));
            let output = std::fs::read(scratch.path("out")).unwrap();
            assert!(
                output == sorted(&[&input[..], &input[..]].concat()),
                "{codec:?} {flags:?}"
            );
        }
    }
}

#[test]
fn outputs_that_programs_read() {
    let scratch = Scratch::new("packed-outputs");
    let input = text(5_000_000, 2);
    std::fs::write(scratch.path("in"), &input).unwrap();
    let wanted = sorted(&input);
    for codec in CODECS {
        let name = format!("out.{}", codec.extension());
        let mut first = None;
        for flags in [
            MEMORY,
            "--memory 100MiB --threads 1",
            "--memory 300MiB --threads 3 --verify --io posix",
        ] {
            let line = format!("{flags} -q -o {{}}{name} {{}}in");
            run_well(sort(words(&scratch, &line)));
            let output = std::fs::read(scratch.path(&name)).unwrap();
            let first = first.get_or_insert_with(|| output.clone());
            assert!(output == *first, "{codec:?} {flags}: other bytes");
        }
        let output = first.unwrap();
        assert!(
            output.len() < input.len() / 2,
            "{codec:?}: {} bytes",
            output.len()
        );
        assert!(unpacked(codec, &output) == wanted, "{codec:?}");
        if let Some(read) = program(codec, &["-dc"], &scratch.path(&name)) {
            assert!(read == wanted, "{codec:?}");
        }
        let checked = run_well(super::caught(check(&scratch, &format!("{{}}{name}"))));
        assert!(String::from_utf8_lossy(&checked.stdout).contains("in order"));
    }
}

fn check(scratch: &Scratch, line: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("check").args(words(scratch, line));
    command
}

#[test]
fn how_an_output_is_compressed() {
    let scratch = Scratch::new("packed-names");
    std::fs::write(scratch.path("in"), "b\na\n").unwrap();
    let made = |line: &str, name: &str| {
        run_well(sort(words(
            &scratch,
            &format!("--memory 64MiB {line} -q {{}}in"),
        )));
        std::fs::read(scratch.path(name)).unwrap()
    };
    assert_eq!(
        made("-o {}plain.gz --compress-output none", "plain.gz"),
        b"a\nb\n"
    );
    assert_eq!(
        unpacked(Codec::Gzip, &made("-o {}OUT.GZ", "OUT.GZ")),
        b"a\nb\n"
    );
    assert_eq!(
        unpacked(Codec::Lz4, &made("-o {}x.gz --compress-output lz4", "x.gz")),
        b"a\nb\n"
    );
    assert_eq!(
        unpacked(
            Codec::Xz,
            &made("-o {}x --compress-output xz --compress-level 0", "x")
        ),
        b"a\nb\n"
    );
    assert_eq!(made("-o {}out.gzip", "out.gzip"), b"a\nb\n");
    let output = run_well(sort(words(
        &scratch,
        "--memory 64MiB --compress-output zst -q {}in",
    )));
    assert_eq!(unpacked(Codec::Zstd, &output.stdout), b"a\nb\n");
    for (line, wanted) in [
        ("--compress-output zip -o {}out", "zst, gz, lz4, bz2 or xz"),
        (
            "--compress-output gz --compress-level 10 -o {}out",
            "they are 1 to 9",
        ),
        (
            "--compress-output lz4 --compress-level 1 -o {}out",
            "no levels",
        ),
        ("--compress-level 1 -o {}out", "not compressed"),
        ("--compress-output zst --parts {}parts", "--parts"),
        ("--on local:2 -o {}out.zst", "--compress-output none"),
    ] {
        run_badly(sort(words(&scratch, &format!("{line} {{}}in"))), &[wanted]);
    }
}

/// Standard input, redirected and from a pipe; mixtures; as it is.
#[test]
fn how_inputs_come() {
    let scratch = Scratch::new("packed-inputs");
    let (one, two, three) = (text(400_000, 3), text(300_000, 4), text(200_000, 5));
    let wanted = sorted(&[&one[..], &two[..], &three[..]].concat());
    std::fs::write(scratch.path("one"), packed(Codec::Gzip, &one, 50_000)).unwrap();
    std::fs::write(scratch.path("two"), &two).unwrap();
    for codec in CODECS {
        let line = format!("{MEMORY} -q {{}}one {{}}two -");
        let piped = packed(codec, &three, 70_000);
        let output = run_on_pipe(sort(words(&scratch, &line)), &piped);
        assert!(output.stdout == wanted, "{codec:?}: {}", stderr(&output));
        std::fs::write(scratch.path("three"), &piped).unwrap();
        let mut command = sort(words(&scratch, &line));
        command.stdin(std::fs::File::open(scratch.path("three")).unwrap());
        let output = run(command);
        assert!(
            output.stdout == wanted,
            "{codec:?}, redirected: {}",
            stderr(&output)
        );
    }
    let plain = std::fs::read(scratch.path("one")).unwrap();
    let output = run_well(sort(words(
        &scratch,
        "--memory 64MiB -q --no-decompress {}one",
    )));
    assert!(output.stdout == sorted(&plain));
    let output = run_on_pipe(
        sort(words(&scratch, "--memory 64MiB -q --no-decompress")),
        &plain,
    );
    assert!(output.stdout == sorted(&plain));
    run_badly(
        sort(words(&scratch, "--on local:2 -o {}out {}one")),
        &["one", "this one is compressed"],
    );
}

/// An output over its own compressed input, read again before it gets its name.
#[test]
fn an_input_is_replaced_by_its_own_order() {
    let scratch = Scratch::new("packed-replaced");
    let input = text(2_000_000, 6);
    std::fs::write(
        scratch.path("log.zst"),
        packed(Codec::Zstd, &input, 1 << 20),
    )
    .unwrap();
    let output = run_well(sort(words(
        &scratch,
        &format!("{MEMORY} -o {{}}log.zst {{}}log.zst"),
    )));
    assert!(
        stderr(&output).contains("read again from the device"),
        "{}",
        stderr(&output)
    );
    let bytes = std::fs::read(scratch.path("log.zst")).unwrap();
    assert!(unpacked(Codec::Zstd, &bytes) == sorted(&input));
    assert_eq!(scratch.names(), ["log.zst"]);
}

#[test]
fn damage_is_told_with_its_place_and_leaves_what_was_there() {
    let scratch = Scratch::new("packed-damage");
    let input = text(500_000, 7);
    std::fs::write(scratch.path("out"), "old").unwrap();
    for codec in CODECS {
        let whole = packed(codec, &input, 100_000);
        let mut turned = whole.clone();
        let middle = whole.len() / 2;
        turned[middle] ^= 0x10;
        let cut = whole[..whole.len() - 3].to_vec();
        let behind = [&whole[..], b"and more"].concat();
        for (bytes, wanted) in [
            (turned, "damaged"),
            (cut, "it is cut off"),
            (behind, "follows something"),
        ] {
            std::fs::write(scratch.path("in"), &bytes).unwrap();
            let line = format!("{MEMORY} -o {{}}out {{}}in");
            let said = run_badly(
                sort(words(&scratch, &line)),
                &["in: at byte ", wanted, codec.name()],
            );
            let (_, rest) = said.split_once("at byte ").unwrap();
            let place: usize = rest.split(':').next().unwrap().parse().unwrap();
            assert!(place <= whole.len(), "{said}");
            assert_eq!(
                std::fs::read(scratch.path("out")).unwrap(),
                b"old",
                "{said}"
            );
            assert_eq!(scratch.names(), ["in", "out"], "{said}");
            let output = run_on_pipe(
                sort(words(&scratch, &format!("{MEMORY} -o {{}}out"))),
                &bytes,
            );
            assert_eq!(
                output.status.code(),
                Some(2),
                "{codec:?}: {}",
                stderr(&output)
            );
            assert!(
                stderr(&output).contains(wanted),
                "{codec:?}: {}",
                stderr(&output)
            );
        }
    }
    let checked = super::caught(check(&scratch, "{}in"));
    run_badly(checked, &["in: at byte ", "follows something"]);
}

/// What is wrong with a record is told with its place among the decompressed bytes, and that it is one there.
#[test]
fn places_of_bad_records_are_those_of_the_decompressed_bytes() {
    let scratch = Scratch::new("packed-places");
    std::fs::write(scratch.path("in"), packed(Codec::Gzip, &[7; 1005], 100)).unwrap();
    let line = "--memory 64MiB --format fixed:100 -o {}out {}in";
    run_badly(
        sort(words(&scratch, line)),
        &["at byte 1000: ", "in the decompressed bytes"],
    );
    std::fs::write(scratch.path("in"), packed(Codec::Gzip, b"a\nc\nb\n", 2)).unwrap();
    let output = run(super::caught(check(&scratch, "{}in")));
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("at byte 4 of "));
}

#[test]
fn the_plan_says_what_it_guesses() {
    let scratch = Scratch::new("packed-plan");
    let input = text(8_000_000, 8);
    std::fs::write(scratch.path("a.gz"), packed(Codec::Gzip, &input, 1 << 20)).unwrap();
    std::fs::write(scratch.path("b.xz"), packed(Codec::Xz, &input, 1 << 20)).unwrap();
    let line = "--memory 256MiB --threads 2 --dry-run -o {}out.zst {}a.gz {}b.xz";
    let said = run_well(sort(words(&scratch, line))).stdout;
    let said = String::from_utf8(said).unwrap();
    for wanted in [
        "decompressed perhaps 15.",
        "a guess",
        "decompress       2 at once",
        "compress         zstd, level 3",
    ] {
        assert!(said.contains(wanted), "{said}\nsays nothing of {wanted:?}");
    }
}

/// A job that is in the middle of decompressing ends when it is told to.
#[test]
fn a_signal_ends_who_waits_for_a_compressed_pipe() {
    let scratch = Scratch::new("packed-signal");
    let input = packed(Codec::Gzip, &text(900_000, 9), 100_000);
    let mut child = super::spawn_on_pipe(sort(words(&scratch, &format!("{LITTLE} -q -o {{}}out"))));
    let mut pipe = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut pipe, &input[..input.len() / 2]).unwrap();
    super::signal(child.id(), "TERM");
    let output = super::finish(child);
    drop(pipe);
    super::was_stopped_by(&output, "TERM");
    assert_eq!(scratch.names(), Vec::<String>::new());
}

/// Whatever else is asked for, compressed inputs come out as plain ones do, short ones too, which need no threads when
/// they are plain.
#[test]
fn every_way_of_asking_sees_what_they_were() {
    let scratch = Scratch::new("packed-ways");
    let (one, two) = (text(40_000, 10), text(30_000, 11));
    let ordered = sorted(&[&one[..], &two[..]].concat());
    for codec in CODECS {
        let end = format!(".{}", codec.extension());
        let mut names = [Vec::new(), Vec::new()];
        for (name, bytes) in [("one", &one), ("two", &two), ("ordered", &ordered)] {
            std::fs::write(scratch.path(name), bytes).unwrap();
            let with_end = scratch.path(&format!("{name}{end}"));
            std::fs::write(&with_end, packed(codec, bytes, 9000)).unwrap();
            for (names, path) in names.iter_mut().zip([scratch.path(name), with_end]) {
                names.extend([path.as_os_str().as_encoded_bytes(), b"\0"].concat());
            }
        }
        std::fs::write(scratch.path("names"), &names[0]).unwrap();
        std::fs::write(scratch.path(&format!("names{end}")), &names[1]).unwrap();
        for line in [
            "{}one@ {}two@",
            "-u {}one@ {}one@ {}two@",
            "-r -k1.3 {}one@ {}two@",
            "-s -k1.1,1.1 {}two@ {}one@",
            "-z {}one@",
            "--header 3 {}one@ {}two@",
            "--files0-from {}names@",
            "--debug -k1.2 {}one@",
            "--until sort {}one@",
            "-c {}ordered@",
            "-C {}one@",
            "-c {}one@",
            "-c --header 1 {}one@",
            "-cu {}ordered@",
            "--dry-run --skip-bad 1 {}one@ --until read",
        ] {
            let line = format!("-q --memory 64MiB {line}");
            let [plain, unpacked] =
                ["", &end].map(|end| run(sort(words(&scratch, &line.replace('@', end)))));
            let told = stderr(&unpacked).replace(&end, "");
            assert_eq!(unpacked.status, plain.status, "{line}, {end}: {told}");
            assert_eq!(told, stderr(&plain), "{line}, {end}");
            assert!(
                unpacked.stdout == plain.stdout || line.contains("--dry-run"),
                "{line}, {end}"
            );
        }
        let parts = |end: &str| {
            let line = "-q --overwrite --part-count 3 --parts {}parts {}one@ {}two@";
            run_well(sort(words(&scratch, &line.replace('@', end))));
            let part = |name: String| std::fs::read(scratch.path("parts").join(name)).unwrap();
            super::names_with(&scratch.path("parts"), "part")
                .into_iter()
                .map(part)
                .collect::<Vec<_>>()
        };
        let (plain, unpacked) = (parts(""), parts(&end));
        assert!(plain.len() == 3 && plain == unpacked, "{end}");
    }
}

/// The first bytes decide, not the name; a file without a byte is an input without a record.
#[test]
fn names_say_nothing_of_inputs_and_nothing_is_nothing() {
    let scratch = Scratch::new("packed-wrong-names");
    std::fs::write(scratch.path("empty"), "").unwrap();
    for (codec, other) in CODECS.into_iter().zip(CODECS.into_iter().cycle().skip(1)) {
        let end = codec.extension();
        let put = |name: &str, bytes: &[u8]| {
            std::fs::write(scratch.path(&format!("{name}.{end}")), bytes).unwrap();
        };
        put("plain", b"d\nb\n");
        put("empty", b"");
        put("other", &packed(other, b"c\na\n", 2));
        put(
            "nothing",
            &program(codec, &["-c"], &scratch.path("empty")).unwrap_or_default(),
        );
        let names = ["plain", "empty", "other", "nothing"].map(|name| format!("{{}}{name}.{end}"));
        for flags in ["-q", "-q --memory 64MiB -o {}out", "-o {}out"] {
            let line = format!("{flags} {}", names.join(" "));
            let output = run_well(sort(words(&scratch, &line)));
            let have = match flags.contains("-o") {
                true => std::fs::read(scratch.path("out")).unwrap(),
                false => output.stdout,
            };
            assert_eq!(have, b"a\nb\nc\nd\n", "{codec:?} {flags}");
        }
        let line = format!("-q {} {}", names[1], names[3]);
        assert_eq!(
            run_well(sort(words(&scratch, &line))).stdout,
            b"",
            "{codec:?}"
        );
        run_well(sort(words(&scratch, &format!("{line} -o {{}}none.{end}"))));
        let none = std::fs::read(scratch.path(&format!("none.{end}"))).unwrap();
        assert!(
            !none.is_empty() && unpacked(codec, &none).is_empty(),
            "{codec:?}"
        );
        // Cut off where even its header is not whole.
        put("short", &packed(codec, b"a\n", 2)[..11]);
        run_badly(
            sort(words(&scratch, &format!("-o {{}}new {{}}short.{end}"))),
            &["short", "at byte", "it is cut off"],
        );
        assert!(!scratch.path("new").exists());
    }
}

/// A short job to standard output that turns out to be compressed when much of it has been read.
#[test]
fn a_compressed_pipe_that_looked_like_a_short_job() {
    let scratch = Scratch::new("packed-ahead");
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let byte = (state >> 56) as u8;
        if byte < 4 { b'\n' } else { byte }
    };
    let mut input: Vec<u8> = (0..12 << 20).map(|_| next()).collect();
    input.push(b'\n');
    let bytes = packed(Codec::Lz4, &input, 1 << 20);
    // A sixteenth of it is read before the long way begins: more than a chunk.
    assert!(bytes.len() > 10 << 20);
    let output = run_on_pipe(sort(words(&scratch, "-q --memory 160MiB")), &bytes);
    assert!(output.stdout == sorted(&input), "{}", stderr(&output));
}

/// What means nothing beside something else is refused.
#[test]
fn what_does_not_go_together() {
    let scratch = Scratch::new("packed-refused");
    std::fs::write(scratch.path("in"), "b\na\n").unwrap();
    for (line, wanted) in [
        ("-c --compress-output gz", "--compress-output"),
        ("-C --compress-level 1", "--compress-level"),
        ("--debug --compress-output gz", "--compress-output"),
        ("--debug --header 1", "--header"),
    ] {
        run_badly(sort(words(&scratch, &format!("{line} {{}}in"))), &[wanted]);
    }
    // The last word counts.
    std::fs::write(scratch.path("gz"), packed(Codec::Gzip, b"b\na\n", 100)).unwrap();
    let line = "-q --no-decompress --decompress {}gz";
    assert_eq!(run_well(sort(words(&scratch, line))).stdout, b"a\nb\n");
    let line = "-q --decompress --no-decompress {}gz";
    assert_ne!(run_well(sort(words(&scratch, line))).stdout, b"a\nb\n");
}
