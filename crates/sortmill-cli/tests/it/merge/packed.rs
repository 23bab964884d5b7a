//! `sortmill merge` of compressed files, and into such, as its users meet it.

use std::process::Command;

use sortmill::io::codec::{CODECS, Codec};

use super::{coreutils, files, merge, with_files};
use crate::sort::packed::{packed, unpacked};
use crate::sort::{caught, run_badly, run_on_pipe, run_well, sort, stderr, words};
use crate::{PROGRAM, Scratch};

/// The files of [`files`], each compressed with the codec that comes next, with the end of its name.
fn compress(scratch: &Scratch, names: &[String], member_bytes: usize) -> Vec<String> {
    let one = |(name, codec): (&String, Codec)| {
        let bytes = std::fs::read(scratch.path(name)).unwrap();
        let new = format!("{name}.{}", codec.extension());
        std::fs::write(scratch.path(&new), packed(codec, &bytes, member_bytes)).unwrap();
        new
    };
    names
        .iter()
        .zip(CODECS.into_iter().cycle())
        .map(one)
        .collect()
}

/// Files are open while they are read: plain ones many at a time, and compressed ones beside them.
#[test]
fn plain_and_compressed_files_are_merged_with_64_descriptors() {
    let scratch = Scratch::new("merge-packed-few");
    let names = files(&scratch, 80, 400_000);
    let wanted = coreutils(&scratch, &names);
    let inputs = [&names[..40], &compress(&scratch, &names[40..], 90_000)[..]].concat();
    let inputs: Vec<String> = (inputs.iter())
        .map(|name| scratch.path(name).display().to_string())
        .collect();
    for flags in ["--memory 128MiB", "--memory 256MiB", "--memory 64MiB"] {
        let line = words(&scratch, &format!("{flags} -T {{}} -o {{}}out")).join(" ");
        let all = inputs.join(" ");
        let script = format!("ulimit -n 64; exec {PROGRAM} merge {line} {all}");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).env_remove("TMPDIR");
        run_well(caught(command));
        let made = std::fs::read(scratch.path("out")).unwrap();
        assert!(made == wanted, "{flags}");
    }
}

/// What compressing takes was not kept from what rows have: with less buffers than rows each waited for the others, for ever.
#[test]
fn plain_files_are_merged_into_a_compressed_one_in_little_memory() {
    let scratch = Scratch::new("merge-packed-output");
    let names = files(&scratch, 100, 20_000);
    let wanted = coreutils(&scratch, &names);
    for (name, memory) in [
        ("out.gz", "26MiB"),
        ("out.gz", "30MiB"),
        ("out.lz4", "40MiB"),
        ("out.bz2", "45MiB"),
        ("out.zst", "45MiB"),
    ] {
        let line = format!("--memory {memory} -T {{}} -o {{}}{name}");
        let command = merge(words(&scratch, &line));
        run_well(with_files(command, &scratch, &names));
        let codec = Codec::of_name(name.as_ref()).unwrap();
        let made = unpacked(codec, &std::fs::read(scratch.path(name)).unwrap());
        assert!(made == wanted, "{name} {memory}");
    }
}

#[test]
fn compressed_files_are_merged_as_what_they_were() {
    let scratch = Scratch::new("merge-packed");
    let names = files(&scratch, 12, 400_000);
    let wanted = coreutils(&scratch, &names);
    let mut inputs = compress(&scratch, &names, 90_000);
    // Two stay as they are.
    inputs[3] = names[3].clone();
    inputs[7] = names[7].clone();
    for flags in [
        "",
        "--io posix",
        "--no-direct --verify",
        "--memory 256MiB",
        // Some become runs first.
        "--memory 64MiB",
    ] {
        for name in ["out", "out.gz", "out.zst", "out.lz4", "out.bz2", "out.xz"] {
            let line = format!("{flags} -T {{}} -o {{}}{name}");
            let command = merge(words(&scratch, &line));
            let output = run_well(with_files(command, &scratch, &inputs));
            let made = std::fs::read(scratch.path(name)).unwrap();
            let made = match Codec::of_name(name.as_ref()) {
                None => made,
                Some(codec) => unpacked(codec, &made),
            };
            assert!(made == wanted, "{name} {flags}: {}", stderr(&output));
        }
    }
    // To a pipe, from pipes, and as one says.
    let command = merge(words(&scratch, "-q --compress-output gz"));
    let output = run_well(with_files(command, &scratch, &inputs));
    assert!(unpacked(Codec::Gzip, &output.stdout) == wanted);
    for (number, codec) in CODECS.into_iter().enumerate() {
        let piped = std::fs::read(scratch.path(&names[number])).unwrap();
        let mut others = inputs.clone();
        others.remove(number);
        let mut command = with_files(merge(["-q"]), &scratch, &others[..number]);
        command.arg("-");
        let command = with_files(command, &scratch, &others[number..]);
        let output = run_on_pipe(command, &packed(codec, &piped, 90_000));
        assert!(output.stdout == wanted, "{codec:?}: {}", stderr(&output));
    }
}

/// The bytes do not depend on memory, and `sort -m` makes the same ones.
#[test]
fn the_same_bytes_whatever_the_memory() {
    let scratch = Scratch::new("merge-packed-same");
    let names = files(&scratch, 30, 200_000);
    let inputs = compress(&scratch, &names, 1 << 20);
    let mut outputs = Vec::new();
    for flags in ["--memory 60MiB", "--memory 500MiB --io posix"] {
        let line = format!("-q {flags} -T {{}} -o {{}}out.zst");
        run_well(with_files(merge(words(&scratch, &line)), &scratch, &inputs));
        outputs.push(std::fs::read(scratch.path("out.zst")).unwrap());
        let command = sort(words(&scratch, &format!("-m {line}")));
        run_well(with_files(command, &scratch, &inputs));
        outputs.push(std::fs::read(scratch.path("out.zst")).unwrap());
    }
    assert!(outputs.iter().all(|output| *output == outputs[0]));
    assert!(unpacked(Codec::Zstd, &outputs[0]) == coreutils(&scratch, &names));
}

/// As bytes where that is asked for, and under the name of GNU sort, which knows of no compressed files.
#[test]
fn bytes_as_they_are() {
    let scratch = Scratch::new("merge-packed-bytes");
    std::fs::write(scratch.path("gz"), packed(Codec::Gzip, b"a\nb\n", 100)).unwrap();
    let plain = std::fs::read(scratch.path("gz")).unwrap();
    std::os::unix::fs::symlink(PROGRAM, scratch.path("sort")).unwrap();
    let as_sort = |line: &str| {
        let mut command = Command::new(scratch.path("sort"));
        command.args(words(&scratch, line));
        run_well(caught(command))
    };
    let mut line = plain.clone();
    if line.last() != Some(&b'\n') {
        line.push(b'\n');
    }
    assert_eq!(as_sort("-m {}gz").stdout, line);
    assert_eq!(as_sort("-m --decompress {}gz").stdout, b"a\nb\n");
    as_sort("-m --decompress -o {}out.gz {}gz");
    assert_eq!(std::fs::read(scratch.path("out.gz")).unwrap(), b"a\nb\n");
    let output = run_well(sort(words(&scratch, "-m --no-decompress {}gz")));
    assert_eq!(output.stdout, line);
    let output = run_well(merge(words(&scratch, "-q {}gz {}gz")));
    assert_eq!(output.stdout, b"a\na\nb\nb\n");
}

/// Damage and disorder are told with their places, and leave what was there.
#[test]
fn what_is_wrong_with_compressed_files() {
    let scratch = Scratch::new("merge-packed-wrong");
    let names = files(&scratch, 3, 300_000);
    let good = compress(&scratch, &names[..2], 50_000);
    let bytes = std::fs::read(scratch.path(&names[2])).unwrap();
    std::fs::write(scratch.path("out"), "old").unwrap();
    for codec in CODECS {
        let whole = packed(codec, &bytes, 1 << 20);
        let mut turned = whole.clone();
        turned[whole.len() / 2] ^= 0x10;
        let late = packed(codec, &[&bytes[..], b"\n"].concat(), 1 << 20);
        let (at, line) = (bytes.len(), bytes.split(|byte| *byte == b'\n').count());
        for (bytes, wanted) in [
            (turned, vec!["bad: at byte ", "damaged", codec.name()]),
            (
                whole[..whole.len() - 3].to_vec(),
                vec!["bad: at byte ", "it is cut off"],
            ),
            (
                late,
                vec![
                    &*format!("bad: at byte {at}: "),
                    &*format!("line {line},"),
                    "in the decompressed bytes",
                ],
            ),
        ] {
            std::fs::write(scratch.path("bad"), bytes).unwrap();
            let command = merge(words(&scratch, "-T {} -o {}out {}bad"));
            run_badly(with_files(command, &scratch, &good), &wanted);
            assert_eq!(std::fs::read(scratch.path("out")).unwrap(), b"old");
        }
    }
    assert_eq!(scratch.names().len(), 7);
}

/// An input that is replaced by what it is merged to; the report, and the plan, tell of codecs.
#[test]
fn onto_a_compressed_input() {
    let scratch = Scratch::new("merge-packed-onto");
    let names = files(&scratch, 5, 500_000);
    let wanted = coreutils(&scratch, &names);
    let inputs = compress(&scratch, &names, 1 << 20);
    let zst = inputs.iter().find(|name| name.ends_with(".zst")).unwrap();
    let flags = "--memory 200MiB";
    let line = format!("{flags} --dry-run -o {{}}{zst}");
    let output = run_well(with_files(merge(words(&scratch, &line)), &scratch, &inputs));
    let plan = String::from_utf8(output.stdout).unwrap();
    for wanted in [
        "decompressed perhaps 2.",
        "decompress       5 at once",
        "compress         zstd, level 3",
        "  decompressing  ",
    ] {
        assert!(plan.contains(wanted), "{plan}\nsays nothing of {wanted:?}");
    }
    let line = format!("{flags} --report {{}}report -o {{}}{zst}");
    let output = run_well(with_files(merge(words(&scratch, &line)), &scratch, &inputs));
    let said = stderr(&output);
    assert!(said.contains("read again from the device"), "{said}");
    let made = std::fs::read(scratch.path(zst)).unwrap();
    assert!(unpacked(Codec::Zstd, &made) == wanted);
    let mut command = Command::new(PROGRAM);
    command.arg("report").arg(scratch.path("report"));
    let shown = run_well(caught(command));
    println!("{}", String::from_utf8_lossy(&shown.stdout));
}
