//! On this machine, with either ring.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use sortmill::error::ErrorKind;
use sortmill::gen_records::{Alphabet, Records, RecordsFrom, checksum};
use sortmill::generate::{Generate, Out, generate};
use sortmill::queue::Stop;
use sortmill_io::{Host, RingKind};

use super::{BINARY, Scratch, bytes, job};

fn hosts() -> Vec<Host> {
    let uring =
        Host::new(RingKind::Uring, true).inspect_err(|error| println!("no io_uring here: {error}"));
    let posix = Host::new(RingKind::Posix, true).unwrap();
    let cached = Host::new(RingKind::Auto, false).unwrap();
    uring.into_iter().chain([posix, cached]).collect()
}

fn host() -> Host {
    Host::new(RingKind::Auto, true).unwrap()
}

fn parts(folder: &Path, files: u64) -> Vec<PathBuf> {
    (0..files)
        .map(|number| folder.join(format!("part-{number:05}")))
        .collect()
}

#[test]
fn checksums_are_the_references() {
    let scratch = Scratch::new("checksums");
    let path = scratch.path("out");
    for (alphabet, skew, sums) in [
        (
            Alphabet::Binary,
            false,
            [
                0x9ea593a0,
                0x55fea8a1a,
                0x1ea6370b955,
                0xc3068574c6ff,
                0x7a0e0d4868cd4,
            ],
        ),
        (
            Alphabet::Ascii,
            false,
            [
                0x3fcaea0a,
                0x469302dca,
                0x1f5dfb3631a,
                0xc34e19c81885,
                0x7a19cff467438,
            ],
        ),
        (
            Alphabet::Binary,
            true,
            [
                0x9ea593a0,
                0x5d95519b3,
                0x1e96301166b,
                0xc3480c053dda,
                0x79f9a7e6de673,
            ],
        ),
        (
            Alphabet::Ascii,
            true,
            [
                0x3fcaea0a,
                0x46073c01c,
                0x1eef17d1cac,
                0xc30e6c1fe3e5,
                0x7a135fbce6df2,
            ],
        ),
    ] {
        for (count, sum) in [1, 10, 1_000, 100_000, 1_000_000].into_iter().zip(sums) {
            for os in hosts() {
                let records = Records { alphabet, skew };
                let data = RecordsFrom { records, start: 0 };
                let job = Generate {
                    data: &data,
                    checksum: true,
                    ..job(count, Out::File(path.clone()))
                };
                let report = generate(&job, &os, &Stop::new()).unwrap();
                assert_eq!((report.records, report.bytes), (count, count * 100));
                assert_eq!(report.checksum, Some(sum), "{records:?}, {count} records");
                let written = fs::read(&path).unwrap();
                assert_eq!(written.len() as u64, report.bytes);
                assert_eq!(checksum(&written), sum, "{records:?}, {count} records");
            }
        }
    }
    assert_eq!(scratch.names(), ["out"]);
}

/// A count that ends inside a buffer, at its end, and nowhere.
#[test]
fn every_length_is_whole() {
    let scratch = Scratch::new("lengths");
    let path = scratch.path("out");
    for count in [0, 1, 41, 40_959, 40_960, 40_961, 81_920, 100_001] {
        for os in hosts() {
            for threads in [1, 2, 7] {
                let job = Generate {
                    threads,
                    ..job(count, Out::File(path.clone()))
                };
                generate(&job, &os, &Stop::new()).unwrap();
                assert!(
                    fs::read(&path).unwrap() == bytes(BINARY, 0, count as usize),
                    "{count} records"
                );
            }
        }
    }
}

#[test]
fn files_are_one_file_in_parts() {
    let scratch = Scratch::new("files");
    let folder = scratch.path("set");
    for (count, files) in [
        (0, 1),
        (0, 3),
        (2, 5),
        (100_001, 1),
        (100_001, 2),
        (245_767, 3),
        (100_003, 97),
    ] {
        for os in hosts() {
            let job = job(
                count,
                Out::Directory {
                    path: folder.clone(),
                    files,
                },
            );
            generate(&job, &os, &Stop::new()).unwrap();
            let parts: Vec<Vec<u8>> = parts(&folder, files)
                .iter()
                .map(|part| fs::read(part).unwrap())
                .collect();
            assert!(
                parts.concat() == bytes(BINARY, 0, count as usize),
                "{count} in {files} files"
            );
            let lengths: Vec<u64> = parts.iter().map(|part| part.len() as u64 / 100).collect();
            assert!(lengths.is_sorted_by(|one, next| one >= next));
            assert!(lengths[0] - lengths[lengths.len() - 1] <= 1);
            assert_eq!(fs::read_dir(&folder).unwrap().count() as u64, files);
            fs::remove_dir_all(&folder).unwrap();
        }
    }
}

#[test]
fn a_set_is_not_mixed_with_an_older_one() {
    let scratch = Scratch::new("older");
    let folder = scratch.path("set");
    let set = |files| {
        job(
            1_000,
            Out::Directory {
                path: folder.clone(),
                files,
            },
        )
    };
    generate(&set(4), &host(), &Stop::new()).unwrap();
    let error = generate(&set(3), &host(), &Stop::new()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Usage);
    assert!(error.cause.contains("part-00003"), "{error}");
    generate(&set(5), &host(), &Stop::new()).unwrap();
    let written = parts(&folder, 5)
        .iter()
        .map(|part| fs::read(part).unwrap())
        .collect::<Vec<_>>();
    assert!(written.concat() == bytes(BINARY, 0, 1_000));
}

#[test]
fn starts_fit_together() {
    let scratch = Scratch::new("starts");
    let path = scratch.path("out");
    for start in [0, 12_345, (1 << 64) - 20_000, u128::MAX - 19_999] {
        let mut whole = Vec::new();
        for (before, count) in [(0, 45_000), (45_000, 1), (45_001, 54_999)] {
            let start = start.wrapping_add(before);
            let data = RecordsFrom {
                records: BINARY,
                start,
            };
            let job = Generate {
                data: &data,
                ..job(count, Out::File(path.clone()))
            };
            generate(&job, &host(), &Stop::new()).unwrap();
            whole.extend(fs::read(&path).unwrap());
        }
        assert!(whole == bytes(BINARY, start, 100_000), "from {start}");
    }
}

#[test]
fn devices_and_pipes_are_written_in_place_and_in_order() {
    let scratch = Scratch::new("devices");
    let report = generate(
        &job(100_000, Out::File("/dev/null".into())),
        &host(),
        &Stop::new(),
    )
    .unwrap();
    assert_eq!(report.bytes, 10_000_000);
    assert!(
        fs::metadata("/dev/null")
            .unwrap()
            .file_type()
            .is_char_device()
    );

    let error = generate(
        &job(10, Out::File("/dev/full".into())),
        &host(),
        &Stop::new(),
    )
    .unwrap_err();
    assert_eq!((error.kind, error.offset), (ErrorKind::Space, Some(0)));

    let pipe = scratch.path("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    std::thread::scope(|scope| {
        let read = scope.spawn(|| fs::read(&pipe).unwrap());
        let job = Generate {
            threads: 8,
            ..job(400_000, Out::File(pipe.clone()))
        };
        generate(&job, &host(), &Stop::new()).unwrap();
        assert!(read.join().unwrap() == bytes(BINARY, 0, 400_000));
    });
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
}

#[test]
fn a_job_that_is_stopped_ends_without_a_trace() {
    let scratch = Scratch::new("stopped");
    let stop = Stop::new();
    stop.interrupt();
    fs::write(scratch.path("out"), "old").unwrap();
    let error = generate(
        &job(100_000, Out::File(scratch.path("out"))),
        &host(),
        &stop,
    )
    .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Interrupted);
    assert_eq!(fs::read(scratch.path("out")).unwrap(), b"old");
    assert_eq!(scratch.names(), ["out"]);

    // A reader that never reads: the writer is waiting when the word to stop comes.
    let pipe = scratch.path("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    std::thread::scope(|scope| {
        let stop = Stop::new();
        let running = scope.spawn({
            let (stop, pipe) = (stop.clone(), pipe.clone());
            move || generate(&job(1_000_000, Out::File(pipe)), &host(), &stop)
        });
        let mut reader = fs::File::open(&pipe).unwrap();
        std::io::Read::read_exact(&mut reader, &mut [0; 100]).unwrap();
        stop.interrupt();
        assert_eq!(
            running.join().unwrap().unwrap_err().kind,
            ErrorKind::Interrupted
        );
    });
}

#[test]
fn symlinks_are_followed() {
    let scratch = Scratch::new("symlinks");
    fs::create_dir(scratch.path("elsewhere")).unwrap();
    fs::write(scratch.path("elsewhere/old"), "old").unwrap();
    for (link, target) in [("to-old", "elsewhere/old"), ("to-new", "elsewhere/new")] {
        symlink(target, scratch.path(link)).unwrap();
        generate(
            &job(500, Out::File(scratch.path(link))),
            &host(),
            &Stop::new(),
        )
        .unwrap();
        assert!(
            fs::symlink_metadata(scratch.path(link))
                .unwrap()
                .is_symlink()
        );
        assert!(fs::read(scratch.path(target)).unwrap() == bytes(BINARY, 0, 500));
    }
    assert_eq!(scratch.names(), ["elsewhere", "to-new", "to-old"]);
    assert_eq!(fs::read_dir(scratch.path("elsewhere")).unwrap().count(), 2);
}

#[test]
fn mode_and_owner_are_kept() {
    let scratch = Scratch::new("modes");
    let path = scratch.path("out");
    let run = || generate(&job(500, Out::File(path.clone())), &host(), &Stop::new()).unwrap();
    run();
    fs::write(scratch.path("ordinary"), "").unwrap();
    let ordinary = fs::metadata(scratch.path("ordinary")).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode(), ordinary.mode());

    fs::set_permissions(&path, fs::Permissions::from_mode(0o604)).unwrap();
    // Only root may give the file to another user; anybody else finds the owner unchanged.
    let given = std::os::unix::fs::chown(&path, Some(1234), Some(4321)).is_ok();
    run();
    let meta = fs::metadata(&path).unwrap();
    assert_eq!(meta.mode() & 0o7777, 0o604);
    if given {
        assert_eq!((meta.uid(), meta.gid()), (1234, 4321));
    }
}

#[test]
fn the_longest_name_is_a_name() {
    let scratch = Scratch::new("names");
    let path = scratch.path(&"n".repeat(255));
    generate(&job(5, Out::File(path.clone())), &host(), &Stop::new()).unwrap();
    assert!(fs::read(path).unwrap() == bytes(BINARY, 0, 5));
}

#[test]
fn what_cannot_be_done_is_refused() {
    let scratch = Scratch::new("refused");
    fs::write(scratch.path("file"), "old").unwrap();
    fs::create_dir_all(scratch.path("set/part-00001")).unwrap();
    let file = || Out::File(scratch.path("out"));
    let folder = |name: &str, files| Out::Directory {
        path: scratch.path(name),
        files,
    };
    let check = |job: Generate<'_>, kind: ErrorKind, words: &str| {
        let error = generate(&job, &host(), &Stop::new()).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    };
    check(
        job(5, Out::File(scratch.path(""))),
        ErrorKind::Usage,
        "folder",
    );
    check(job(5, folder("file", 2)), ErrorKind::Usage, "it is a file");
    check(job(5, folder("set", 2)), ErrorKind::Usage, "folder");
    check(
        job(5, folder("none", 0)),
        ErrorKind::Usage,
        "1 to 100000 files",
    );
    check(
        Generate {
            threads: 0,
            ..job(5, file())
        },
        ErrorKind::Usage,
        "threads",
    );
    check(job(u64::MAX, file()), ErrorKind::Usage, "at most");
    check(
        job(5, Out::File(scratch.path("none/out"))),
        ErrorKind::Usage,
        "there is no folder",
    );
    // More than any disk holds: 7.8 EiB.
    check(
        job(90_000_000_000_000_000, file()),
        ErrorKind::Space,
        "7.8 EiB",
    );
    assert_eq!(scratch.names(), ["file", "set"]);
}
