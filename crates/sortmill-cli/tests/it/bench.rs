//! `sortmill bench disk`, as its users meet it.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use crate::sort::space::Small;
use crate::sort::{
    caught, finish, names_with, run_badly, run_well, signal, stderr, until, was_stopped_by, words,
};
use crate::{PROGRAM, Scratch};

/// `sortmill` with these words, whose cache is in the scratch folder.
fn sortmill(scratch: &Scratch, line: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(words(scratch, line));
    command.env_remove("TMPDIR");
    command.env("XDG_CACHE_HOME", scratch.path("cache"));
    caught(command)
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn scratch(test: &str) -> Scratch {
    let scratch = Scratch::new(test);
    for name in ["one", "two"] {
        std::fs::create_dir(scratch.path(name)).unwrap();
    }
    std::fs::write(scratch.path("in"), b"b\na\n").unwrap();
    scratch
}

fn nothing_in(folder: &Path) {
    assert_eq!(names_with(folder, ""), Vec::<String>::new());
}

/// The least that measures anything.
const BRIEFLY: &str = "--seconds 0.01 --rounds 1";

#[test]
fn a_table_names_every_setting() {
    let scratch = scratch("bench-table");
    let flags = "--bytes 8MiB --block 64KiB --block 1MiB --depth 2 --depth 4";
    let line = format!("bench disk {{}}one {BRIEFLY} {flags}");
    let output = run_well(sortmill(&scratch, &line));
    let table = stdout(&output);
    for setting in [
        " 64.0 KiB      2",
        " 64.0 KiB      4",
        "  1.0 MiB      2",
        "  1.0 MiB      4",
    ] {
        assert_eq!(table.matches(setting).count(), 3, "{setting:?}: {table}");
    }
    // Before the rates, what both files took until they were safe.
    let folder = table.lines().find(|line| line.starts_with("1  "));
    assert!(folder.unwrap().ends_with(" written and synced"), "{table}");
    // Nothing on a pipe that only a terminal should see.
    assert_eq!(stderr(&output), "");
    nothing_in(&scratch.path("one"));
    // What is measured with settings of one's own says nothing of the best.
    assert!(!scratch.path("cache").exists());
}

#[test]
fn several_folders_are_also_measured_together() {
    let scratch = scratch("bench-json");
    let line =
        format!("bench disk {{}}one {{}}two {BRIEFLY} --json --bytes 8MiB --block 1MiB --depth 2");
    let output = run_well(sortmill(&scratch, &line));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let ways: Vec<String> = rows
        .iter()
        .map(|row| format!("{} {}", row["reading"], row["writing"]))
        .collect();
    let wanted = [
        "[0] []",
        "[] [0]",
        "[0] [0]",
        "[1] []",
        "[] [1]",
        "[1] [1]",
        "[0] [1]",
        "[1] [0]",
        "[0,1] []",
        "[] [0,1]",
        "[0,1] [0,1]",
    ];
    assert_eq!(ways, wanted);
    assert_eq!(report["file_bytes"], 8 << 20);
    for name in ["one", "two"] {
        nothing_in(&scratch.path(name));
    }
}

/// Kept of the file system, found again by a sort whose temporary files go there, and doubted in time.
#[test]
fn a_sort_plans_with_what_was_measured() {
    let scratch = scratch("bench-kept");
    let plan = || {
        let line = "sort --dry-run --memory 1GiB -T {}one -o {}out {}in";
        stdout(&run_well(sortmill(&scratch, line)))
    };
    let unknown = plan();
    assert!(unknown.contains("not measured"), "{unknown}");
    assert!(unknown.contains("`sortmill bench disk "), "{unknown}");

    let line = format!("bench disk {{}}one {BRIEFLY} --bytes 64MiB --json");
    let output = run_well(sortmill(&scratch, &line));
    nothing_in(&scratch.path("one"));
    // What is kept has the form of what is printed, and so short a run is not kept by itself.
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let folder = scratch.path("cache/sortmill/disks");
    std::fs::create_dir_all(&folder).unwrap();
    let number = printed["folders"][0]["file_system"].as_str().unwrap();
    let file = folder.join(format!("{number}.json"));
    std::fs::write(&file, &output.stdout).unwrap();
    let kept: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let put = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut changed = kept.clone();
        change(&mut changed);
        std::fs::write(&file, changed.to_string()).unwrap();
        plan()
    };

    let known = plan();
    assert!(
        known.contains("in flight each way, as measured on 20"),
        "{known}"
    );
    assert!(!known.contains("bench disk"), "{known}");
    // What was found is what is planned: here that what is usual is as good as any.
    let even = |kept: &mut serde_json::Value| {
        for row in kept["rows"].as_array_mut().unwrap() {
            row["read_bytes_per_s"]["median"] = 1000.into();
            row["write_bytes_per_s"]["median"] = 1000.into();
        }
    };
    let slow = put(&even);
    assert!(
        slow.contains("blocks of up to 512.0 KiB, 64.0 MiB in flight"),
        "{slow}"
    );
    assert!(
        slow.contains(" x 4.0 MiB, 16 reads or writes in flight"),
        "{slow}"
    );
    assert!(slow.contains(" x 512.0 KiB, "), "{slow}");

    let old = put(&|kept| kept["measured_s"] = 1_000_000_000.into());
    assert!(
        old.contains("as measured on 2001-09-09, over 30 days ago"),
        "{old}"
    );
    assert!(
        old.contains("measures the temporary folder's disk again"),
        "{old}"
    );
    let other = put(&|kept| kept["folders"][0]["device"] = "another".into());
    assert!(other.contains("not measured"), "{other}");
    assert!(other.contains("stale and not used"), "{other}");
    let later = put(&|kept| kept["measured_s"] = 4_000_000_000_u64.into());
    assert!(later.contains("not measured"), "{later}");
    assert!(
        later.contains("figures of 2096-10-02 are not used"),
        "{later}"
    );
    for (text, why) in [
        ("{", "EOF while parsing"),
        ("{}", "missing field"),
        (
            &kept.to_string().replace(number, "0"),
            "tells nothing of this",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let torn = plan();
        for words in [
            "not measured",
            "figures are not used",
            &format!("{number}.json"),
            why,
        ] {
            assert!(torn.contains(words), "{words:?}: {torn}");
        }
        assert_eq!(torn.matches("are not used").count(), 1, "{torn}");
    }

    // And a job with such a plan is a job.
    put(&even);
    run_well(sortmill(&scratch, "sort -T {}one -o {}out {}in"));
    assert_eq!(std::fs::read(scratch.path("out")).unwrap(), b"a\nb\n");
}

/// What is too short tells of caches and accidents, and no plan is made of it.
#[test]
fn a_run_that_tells_too_little_is_not_kept() {
    let scratch = scratch("bench-brief");
    let line = "bench disk {}one --seconds 0.01 --rounds 2 --bytes 64MiB";
    let said = stderr(&run_well(sortmill(&scratch, line)));
    if said.contains("memory's as much as a disk's") {
        println!("skipped: no direct I/O here");
        return;
    }
    let why = "are not kept, because 10.0 ms shows what a cache gives";
    assert!(said.contains(why), "{said}");
    assert!(!scratch.path("cache").exists());
    nothing_in(&scratch.path("one"));
}

#[test]
fn a_stopped_measurement_leaves_nothing() {
    let scratch = scratch("bench-stopped");
    for name in ["INT", "TERM"] {
        let line = "bench disk {}one --seconds 600 --bytes 8MiB --block 1MiB --depth 2";
        let child = sortmill(&scratch, line).spawn().unwrap();
        until("the second file", || {
            (names_with(&scratch.path("one"), "sortmill-").len() == 2).then_some(())
        });
        signal(child.id(), name);
        let output = finish(child);
        was_stopped_by(&output, name);
        nothing_in(&scratch.path("one"));
    }
}

/// The room for the next file goes to somebody else.
#[test]
fn a_disk_that_fills_up_ends_it() {
    let Some(small) = Small::new("bench-full", "tmpfs", 32) else {
        return;
    };
    let flags = "--seconds 0.02 --rounds 1000 --bytes 8MiB --block 1MiB --depth 2";
    let line = format!("bench disk {{}}small {flags}");
    let mut child = sortmill(&small.scratch, &line).spawn().unwrap();
    until("the second file", || {
        (small.names().len() == 2).then_some(())
    });
    let mut filler = std::fs::File::create(small.folder.join("filler")).unwrap();
    until("the end", || {
        while filler.write(&[1; 1 << 16]).is_ok() {}
        child.try_wait().unwrap()
    });
    let output = finish(child);
    let said = stderr(&output);
    println!("{said}");
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    assert!(said.contains("room for two files of 8.0 MiB"), "{said}");
    assert_eq!(small.names(), ["filler"]);
}

#[test]
fn what_cannot_be_measured_is_told() {
    let scratch = scratch("bench-errors");
    for (line, wanted) in [
        ("{}one --bytes 1EB", "are needed here"),
        ("{}one --bytes 1MiB", "in flight at once, 64.0 MiB"),
        ("{}one --block 1000", "a multiple of 4.0 KiB"),
        ("{}one --block 0 --rounds 1", "a multiple of 4.0 KiB"),
        ("{}one --block 1GiB", "a multiple of 4.0 KiB"),
        ("{}one --block 1MiB --depth 0", "--depth"),
        ("{}one --rounds 0", "--rounds"),
        ("{}one --bytes 0", "the smallest that can be measured"),
        ("{}none", "No such file or directory"),
        ("{}in --bytes 64MiB", "Not a directory"),
        ("{}one --seconds 0", "seconds between"),
        ("{}one --seconds NaN", "seconds between"),
        ("{}one --bytes 25%", "no size here"),
    ] {
        run_badly(sortmill(&scratch, &format!("bench disk {line}")), &[wanted]);
        nothing_in(&scratch.path("one"));
    }
}
