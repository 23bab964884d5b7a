//! Folders and their file systems.

use sortmill::doctor::Facts;
use sortmill::doctor::Level::{self, Bad, CouldBeBetter, Good, NotKnown};
use sortmill::doctor::{Folder, examine};
use sortmill::io::facts::{Direct, FolderFacts};
use sortmill::io::survey::Survey;

use super::{Case, GIB, check, facts, findings, nothing, words};
use crate::Scratch;

fn changed(about: &'static str, change: fn(&mut Facts), level: Level, says: &'static str) -> Case {
    Case {
        files: &[],
        change,
        about,
        level,
        says,
    }
}

fn of(facts: &mut Facts) -> &mut FolderFacts {
    &mut facts.folders[0].facts
}

#[test]
fn a_folder_that_is_not_there() {
    let scratch = Scratch::new("doctor-missing");
    let survey = Survey::at(&scratch.path("empty"));
    for (name, why) in [("it's missing", "No such file"), ("file", "not a folder")] {
        std::fs::write(scratch.path("file"), "").unwrap();
        let mut facts = facts(&scratch, &[], nothing);
        facts.folders[0] = Folder {
            facts: survey.folder(&scratch.path(name)),
            is_temp: false,
            is_output: false,
        };
        let examination = examine(&facts);
        let [finding] = &examination.sections[2].findings[..] else {
            panic!("{:#?}", examination.sections[2]);
        };
        assert_eq!((finding.about, finding.level), ("folder", Bad));
        assert!(finding.found.contains(why), "{finding:#?}");
        if name == "it's missing" {
            assert!(words(finding).contains("it'\\''s missing'"), "{finding:#?}");
        }
        std::fs::remove_dir_all(scratch.path("root")).unwrap();
    }
}

#[test]
fn the_trial() {
    check(
        "trial",
        &[
            changed(
                "writing",
                |facts| of(facts).trial = Err("Permission denied".into()),
                Bad,
                "--temp",
            ),
            changed(
                "writing",
                |facts| {
                    of(facts).trial = Err("Permission denied".into());
                    facts.folders[0].is_temp = false;
                },
                CouldBeBetter,
                "good for inputs only",
            ),
            changed(
                "direct I/O",
                |facts| of(facts).trial.as_mut().unwrap().direct = Direct::Refused,
                CouldBeBetter,
                "this file system has none",
            ),
            changed(
                "direct I/O",
                |facts| of(facts).trial.as_mut().unwrap().direct = Direct::Cached,
                CouldBeBetter,
                "data=journal",
            ),
            // A kernel before 6.5 was told as one on which it works.
            changed(
                "direct I/O",
                |facts| of(facts).trial.as_mut().unwrap().direct = Direct::Accepted,
                NotKnown,
                "this kernel does not tell",
            ),
            changed(
                "direct I/O",
                |facts| {
                    of(facts).trial.as_mut().unwrap().direct =
                        Direct::Fails("Invalid argument".into());
                },
                Bad,
                "--no-direct",
            ),
            changed(
                "reserving space",
                |facts| of(facts).trial.as_mut().unwrap().reserves = false,
                CouldBeBetter,
                "this file system cannot",
            ),
        ],
    );
}

/// The trial itself, on the disk that the tests run on, and that it leaves nothing behind.
#[test]
fn the_trial_is_a_real_one() {
    let scratch = Scratch::new("doctor-real");
    let folder = Survey::here().folder(&scratch.path(""));
    let trial = folder.trial.unwrap();
    assert!(!matches!(trial.direct, Direct::Fails(_)), "{trial:?}");
    assert!(folder.space.unwrap().bytes_free > 0);
    assert!(folder.mount.is_ok());
    assert_eq!(scratch.names(), [""; 0]);
    let link = scratch.path("link");
    std::os::unix::fs::symlink(scratch.path(""), &link).unwrap();
    let resolved = std::fs::canonicalize(scratch.path("")).unwrap();
    assert_eq!(Survey::here().folder(&link).resolved.unwrap(), resolved);
}

#[test]
fn free_space() {
    check(
        "space",
        &[
            changed(
                "free space",
                |facts| of(facts).space.as_mut().unwrap().bytes_free = 1 << 20,
                Bad,
                "1.0 MiB of 900.0 GiB",
            ),
            changed(
                "free space",
                |facts| of(facts).space.as_mut().unwrap().bytes_free = 20 * GIB,
                CouldBeBetter,
                "another file system",
            ),
            changed(
                "free space",
                |facts| of(facts).space.as_mut().unwrap().files_free = Some(0),
                Bad,
                "inodes",
            ),
            changed(
                "free space",
                |facts| facts.folders[0].is_output = true,
                Good,
                "some 7 % more than the data",
            ),
        ],
    );
}

#[test]
fn file_systems() {
    for (kind, level, says) in [
        ("ext4", Good, "ext4 (/dev/sda1 on /)"),
        ("xfs", Good, "xfs"),
        ("tmpfs", Bad, "in memory"),
        ("btrfs", CouldBeBetter, "chattr +C"),
        ("bcachefs", CouldBeBetter, "copies on write"),
        ("zfs", CouldBeBetter, "zfs create -o recordsize=1M"),
        ("overlay", CouldBeBetter, "container"),
        ("nfs4", CouldBeBetter, "network"),
        ("cifs", CouldBeBetter, "network"),
        ("9p", CouldBeBetter, "network"),
        ("virtiofs", CouldBeBetter, "network"),
        ("fuse.sshfs", CouldBeBetter, "network"),
        (
            "fuse.mergerfs",
            CouldBeBetter,
            "a process besides the kernel",
        ),
        ("vfat", Bad, "4 GiB"),
        ("ecryptfs", CouldBeBetter, "encrypts"),
        ("ext3", CouldBeBetter, "not made for large files"),
        ("newfs", NotKnown, "nothing is known"),
    ] {
        let line = format!("27 1 8:1 / / rw shared:1 master:2 - {kind} /dev/sda1 rw\n");
        on("doctor-systems-table", &line, "file system", level, says);
    }
    let in_memory = |facts: &mut Facts| {
        of(facts).mount.as_mut().unwrap().kind = "tmpfs".into();
        facts.folders[0].is_temp = false;
    };
    let in_place = |facts: &mut Facts| {
        of(facts).mount.as_mut().unwrap().kind = "btrfs".into();
        of(facts).is_written_in_place = Ok(true);
    };
    check(
        "systems",
        &[
            changed("file system", in_memory, CouldBeBetter, "in memory"),
            changed("file system", in_place, Good, "written in place"),
        ],
    );
}

#[test]
fn mount_options() {
    for (line, about, level, says) in [
        (
            "btrfs /dev/sda1 rw,nodatacow",
            "file system",
            Good,
            "in place",
        ),
        (
            "btrfs /dev/sda1 rw,compress=zstd:3",
            "file system",
            CouldBeBetter,
            "compresses",
        ),
        (
            "ext4 /dev/sda1 rw,data=journal",
            "mount options",
            CouldBeBetter,
            "data=ordered",
        ),
        (
            "ext4 /dev/sda1 rw,sync",
            "mount options",
            CouldBeBetter,
            "remount,async",
        ),
        (
            "ext4 /dev/sda1 ro",
            "mount options",
            CouldBeBetter,
            "see dmesg",
        ),
        (
            "ext4 /dev/sda1 rw,nobarrier",
            "mount options",
            CouldBeBetter,
            "power fails",
        ),
        (
            "ext4 /dev/sda1 rw,discard",
            "TRIM",
            CouldBeBetter,
            "remount,nodiscard /",
        ),
        (
            "btrfs /dev/sda1 rw,discard",
            "TRIM",
            CouldBeBetter,
            "remount,nodiscard /",
        ),
        (
            "btrfs /dev/sda1 rw,discard=async",
            "TRIM",
            Good,
            "the device takes it",
        ),
        (
            "f2fs /dev/sda1 rw,discard",
            "TRIM",
            Good,
            "the device takes it",
        ),
        ("ext4 /dev/sda1 rw", "mount options", Good, "rw,relatime"),
    ] {
        let line = format!("27 1 8:1 / / rw,relatime - {line}\n");
        on("doctor-options", &line, about, level, says);
    }
}

#[test]
fn each_option_that_costs_is_told() {
    let scratch = Scratch::new("doctor-both");
    let line = "27 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw,sync,data=journal\n";
    let facts = facts(&scratch, &[("proc/self/mountinfo", line)], nothing);
    let examination = examine(&facts);
    let found: Vec<&str> = findings(&examination)
        .filter(|finding| finding.about == "mount options")
        .map(|finding| finding.found.as_str())
        .collect();
    assert_eq!(found, ["sync", "data=journal"]);
}

/// The nearest mount counts, of several at one place the last, and names with spaces are read.
#[test]
fn the_mount_is_the_folders_own() {
    let scratch = Scratch::new("doctor-mounts");
    std::fs::create_dir_all(scratch.path("a b/inner")).unwrap();
    let place = std::fs::canonicalize(scratch.path("a b")).unwrap();
    let place = place.to_str().unwrap().replace(' ', "\\040");
    let table = format!(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:1 / {place} rw - xfs /dev/sda1 rw\n\
         3 1 8:1 / {place} rw - f2fs /dev/sda1 rw\n4 1 8:1 / {place}/inn rw - nfs a:/b rw\n\
         5 1 8:1 / / rw - jfs /dev/sda1 rw\n"
    );
    let root = scratch.path("made");
    std::fs::create_dir_all(root.join("proc/self")).unwrap();
    std::fs::write(root.join("proc/self/mountinfo"), table).unwrap();
    let mount = |path: &str| Survey::at(&root).folder(&scratch.path(path)).mount.unwrap();
    assert_eq!(mount("a b/inner").kind, "f2fs");
    assert_eq!(
        mount("a b/inner").folder,
        scratch.path("a b").canonicalize().unwrap()
    );
    assert_eq!(mount("").kind, "jfs");
}

#[test]
fn temporary_files_and_output() {
    const ABOUT: &str = "temporary files and output";
    let scratch = Scratch::new("doctor-shared");
    std::fs::create_dir_all(scratch.path("out")).unwrap();
    let out = std::fs::canonicalize(scratch.path("out")).unwrap();
    for (number, level, says) in [
        ("8:1", CouldBeBetter, "both on sda"),
        ("9:0", CouldBeBetter, "both on sda"),
        ("8:16", Good, "different disks"),
        ("0:99", NotKnown, "nfs has no device of its own"),
        // A container's file system, which holds both.
        ("", CouldBeBetter, "both on /, overlay"),
    ] {
        let table = match number {
            "" => "1 0 0:42 / / rw - overlay overlay rw\n".to_owned(),
            number => format!(
                "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 {number} / {} rw - nfs host:/out rw\n",
                out.display()
            ),
        };
        let files = [
            ("proc/self/mountinfo", table.as_str()),
            ("sys/dev/block/8:16", "-> ../../devices/pci/ata/sdb"),
        ];
        let mut facts = facts(&scratch, &files, nothing);
        facts.folders.push(Folder {
            facts: Survey::at(&scratch.path("root")).folder(&out),
            is_temp: false,
            is_output: true,
        });
        let examination = examine(&facts);
        let found = findings(&examination).find(|finding| finding.about == ABOUT);
        let found = found.expect(number);
        assert_eq!(found.level, level, "{found:#?}");
        assert!(words(found).contains(says), "{found:#?}");
        std::fs::remove_dir_all(scratch.path("root")).unwrap();
    }
}

#[test]
fn several_temporary_folders() {
    const ABOUT: &str = "temporary folders";
    let scratch = Scratch::new("doctor-temps");
    std::fs::create_dir_all(scratch.path("other")).unwrap();
    let other = std::fs::canonicalize(scratch.path("other")).unwrap();
    for (number, level, says) in [
        ("8:1", CouldBeBetter, "another one is on sda too"),
        ("8:16", Good, "different disks"),
        ("0:99", NotKnown, "nfs has no device of its own"),
    ] {
        let table = format!(
            "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 {number} / {} rw - nfs host:/other rw\n",
            other.display()
        );
        let files = [
            ("proc/self/mountinfo", table.as_str()),
            ("sys/dev/block/8:16", "-> ../../devices/pci/ata/sdb"),
        ];
        let mut facts = facts(&scratch, &files, nothing);
        let alone = examine(&facts);
        assert!(findings(&alone).all(|finding| finding.about != ABOUT));
        facts.folders.push(Folder {
            facts: Survey::at(&scratch.path("root")).folder(&other),
            is_temp: true,
            is_output: false,
        });
        let examination = examine(&facts);
        let found: Vec<_> = findings(&examination)
            .filter(|finding| finding.about == ABOUT)
            .collect();
        assert_eq!(found.len(), 2, "{number}: each is told of the other");
        for finding in found {
            assert_eq!(finding.level, level, "{finding:#?}");
            assert!(words(finding).contains(says), "{finding:#?}");
        }
        std::fs::remove_dir_all(scratch.path("root")).unwrap();
    }
}

/// Judges a folder by the line that mounts it.
fn on(test: &str, line: &str, about: &str, level: Level, says: &str) {
    let scratch = Scratch::new(test);
    let facts = facts(&scratch, &[("proc/self/mountinfo", line)], nothing);
    let examination = examine(&facts);
    let found = findings(&examination).find(|finding| finding.about == about);
    let found = found.unwrap_or_else(|| panic!("{line}: nothing about {about}"));
    assert_eq!(found.level, level, "{line}{found:#?}");
    assert!(words(found).contains(says), "{line}{found:#?}");
}
