//! Disks that are full: the old output stays, and the error says how much was needed.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{
    LITTLE, is_root, names_with, run_badly, run_on_pipe, run_well, sort, stderr, text, words,
};
use crate::Scratch;

/// A small file system, mounted in the scratch folder as `small`, unmounted when dropped.
pub struct Small {
    pub scratch: Scratch,
    pub folder: PathBuf,
}

impl Small {
    /// Of `mib` MiB: in memory, or ext4 in a file. `None`, with the reason printed, where that cannot be.
    pub fn new(test: &str, kind: &str, mib: u64) -> Option<Self> {
        if !is_root() {
            println!("skipped: only root can mount a small file system");
            return None;
        }
        let scratch = Scratch::new(&format!("sort-{test}-{kind}"));
        let folder = scratch.path("small");
        std::fs::create_dir(&folder).unwrap();
        let image = scratch.path("image");
        let mounted = if kind == "tmpfs" {
            let size = format!("size={mib}m");
            tool("mount", &["-t", "tmpfs", "-o", &size, "none"], &folder)
        } else {
            let file = std::fs::File::create(&image).unwrap();
            file.set_len(mib << 20).unwrap();
            tool("mkfs.ext4", &["-q", "-m", "0"], &image)
                .and_then(|()| tool("mount", &["-o", "loop", image.to_str().unwrap()], &folder))
        };
        let small = Self { scratch, folder };
        match mounted {
            Ok(()) => Some(small),
            Err(why) => {
                println!("skipped: no small {kind}: {why}");
                None
            }
        }
    }

    /// What lies in it, but for ext4's own folder.
    pub fn names(&self) -> Vec<String> {
        let mut names = names_with(&self.folder, "");
        names.retain(|name| name != "lost+found");
        names.sort();
        names
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // The scratch folder goes next, so nothing may be mounted in it.
        let _ = Command::new("umount").arg(&self.folder).output();
    }
}

fn tool(name: &str, arguments: &[&str], last: &Path) -> Result<(), String> {
    let output = Command::new(name).args(arguments).arg(last).output();
    let output = output.map_err(|error| format!("{name}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(stderr(&output)),
    }
}

const KINDS: [&str; 2] = ["tmpfs", "ext4"];

#[test]
fn no_room_for_the_output() {
    for kind in KINDS {
        let Some(small) = Small::new("full-output", kind, 32) else {
            continue;
        };
        let input = text(60_000_000, 19);
        std::fs::write(small.scratch.path("in"), &input).unwrap();
        std::fs::write(small.folder.join("out"), b"old").unwrap();
        // Known before the start.
        let line = format!("{LITTLE} -T {{}} -o {{}}small/out {{}}in");
        let said = run_badly(
            sort(words(&small.scratch, &line)),
            &["the output needs", "57.2 MiB"],
        );
        println!("{kind}: {said}");
        assert_eq!(small.names(), ["out"]);
        // Known only when it is full.
        let line = format!("{LITTLE} -T {{}} -o {{}}small/out");
        let output = run_on_pipe(sort(words(&small.scratch, &line)), &input);
        let said = stderr(&output);
        println!("{kind}: {said}");
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("No space left"), "{said}");
        assert!(
            said.contains("57.2 MiB"),
            "says nothing of what was needed: {said}"
        );
        assert_eq!(small.names(), ["out"]);
        assert_eq!(std::fs::read(small.folder.join("out")).unwrap(), b"old");
        assert_eq!(
            names_with(&small.scratch.path, "sortmill-"),
            Vec::<String>::new()
        );
    }
}

/// The same of a folder of parts, new or in the place of others.
#[test]
fn no_room_for_parts() {
    for kind in KINDS {
        let Some(small) = Small::new("full-parts", kind, 32) else {
            continue;
        };
        let input = text(60_000_000, 22);
        std::fs::write(small.scratch.path("in"), &input).unwrap();
        std::fs::write(small.scratch.path("few"), b"b\na\n").unwrap();
        run_well(sort(words(&small.scratch, "--parts {}small/old {}few")));
        let old = || names_with(&small.folder.join("old"), "").len();
        for folder in ["old", "new"] {
            let flags = format!("{LITTLE} --overwrite --part-count 500 --parts {{}}small/{folder}");
            // Known before the start.
            let line = format!("-T {{}} {flags} {{}}in");
            run_badly(
                sort(words(&small.scratch, &line)),
                &["the output needs", "58.2 MiB"],
            );
            // Known only when it is full.
            let line = format!("-T {{}} {flags}");
            let output = run_on_pipe(sort(words(&small.scratch, &line)), &input);
            let said = stderr(&output);
            println!("{kind}: {said}");
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(said.contains("No space left"), "{said}");
            assert!(
                said.contains("57.2 MiB"),
                "says nothing of what was needed: {said}"
            );
            assert_eq!((small.names(), old()), (vec!["old".to_owned()], 2));
        }
        let left = names_with(&small.scratch.path, "sortmill-");
        assert_eq!(left, Vec::<String>::new());
    }
}

/// How much `-u` leaves nobody knows before, so the whole input was asked for: few different lines were refused.
#[test]
fn few_different_lines_need_little_room() {
    let Some(small) = Small::new("few-lines", "tmpfs", 32) else {
        return;
    };
    let line = b"one line of few, and a long one\n";
    std::fs::write(small.scratch.path("in"), line.repeat(2_000_000)).unwrap();
    for flags in ["", "-m"] {
        let line_of_words = format!("{LITTLE} -u {flags} -T {{}} -o {{}}small/out {{}}in {{}}in");
        run_well(sort(words(&small.scratch, &line_of_words)));
        assert_eq!(std::fs::read(small.folder.join("out")).unwrap(), line);
    }
}

/// A whole file system cannot be exchanged for another folder.
#[test]
fn parts_do_not_replace_a_file_system() {
    let Some(small) = Small::new("parts-mount", "tmpfs", 8) else {
        return;
    };
    std::fs::write(small.scratch.path("in"), b"b\na\n").unwrap();
    run_badly(
        sort(words(&small.scratch, "--parts {}small {}in")),
        &["a whole file system", "Name a folder in it"],
    );
    run_well(sort(words(&small.scratch, "--parts {}small/out {}in")));
    assert_eq!(small.names(), ["out"]);
}

#[test]
fn no_room_for_temporary_files() {
    for kind in KINDS {
        let Some(small) = Small::new("full-temp", kind, 32) else {
            continue;
        };
        let input = text(100_000_000, 20);
        std::fs::write(small.scratch.path("in"), &input).unwrap();
        std::fs::write(small.scratch.path("out"), b"old").unwrap();
        let line = format!("{LITTLE} -T {{}}small -o {{}}out {{}}in");
        let said = run_badly(
            sort(words(&small.scratch, &line)),
            &["temporary files need", "are free"],
        );
        println!("{kind}: {said}");
        assert_eq!(small.names(), Vec::<String>::new());
        let line = format!("{LITTLE} -T {{}}small -o {{}}out");
        let output = run_on_pipe(sort(words(&small.scratch, &line)), &input);
        let said = stderr(&output);
        println!("{kind}: {said}");
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("No space left"), "{said}");
        assert!(
            said.contains("MiB") && said.contains("--temp"),
            "says nothing of what was needed: {said}"
        );
        assert_eq!(small.names(), Vec::<String>::new());
        assert_eq!(std::fs::read(small.scratch.path("out")).unwrap(), b"old");
        let left = names_with(&small.scratch.path, ".out");
        assert_eq!(left, Vec::<String>::new());
    }
}

/// Temporary data lie in the output's space, so that there need not be room for both.
#[test]
fn room_for_the_output_only() {
    for kind in KINDS {
        let Some(small) = Small::new("one-space", kind, 160) else {
            continue;
        };
        let input = text(100_000_000, 22);
        std::fs::write(small.scratch.path("in"), &input).unwrap();
        let line = format!("{LITTLE} -T {{}}small -o {{}}small/out {{}}in");
        let apart = sort(words(&small.scratch, &format!("--temp-apart {line}")));
        run_badly(apart, &["temporary data and output need", "are free"]);
        assert_eq!(small.names(), Vec::<String>::new());
        run_well(sort(words(&small.scratch, &line)));
        assert_eq!(small.names(), ["out"]);
        let output = std::fs::read(small.folder.join("out")).unwrap();
        assert!(output == super::sorted(&input), "{kind}: not sorted");
    }
}

/// A file system that fills up while the job runs, by somebody else's hand.
#[test]
fn room_that_goes_away() {
    let Some(small) = Small::new("full-later", "tmpfs", 200) else {
        return;
    };
    let input = text(100_000_000, 21);
    std::fs::write(small.folder.join("out"), b"old").unwrap();
    let line = format!("{LITTLE} -T {{}}small -o {{}}small/out");
    let mut child = super::spawn_on_pipe(sort(words(&small.scratch, &line)));
    let mut pipe = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut pipe, &input).unwrap();
    super::until_spilled(&small.folder);
    let filler = std::fs::write(small.folder.join("filler"), vec![1; 200 << 20]);
    assert!(filler.is_err(), "it is full now");
    drop(pipe);
    let output = super::finish(child);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("No space left"),
        "{}",
        stderr(&output)
    );
    assert_eq!(small.names(), ["filler", "out"]);
    assert_eq!(std::fs::read(small.folder.join("out")).unwrap(), b"old");
}
