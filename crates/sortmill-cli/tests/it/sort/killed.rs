//! Jobs that are stopped or killed: what they leave, and who takes it away.

use std::io::Write;
use std::path::Path;
use std::process::Child;

use super::{
    LITTLE, finish, names_with, run_well, signal, signal_if_there, sort, sorted, spawn_on_pipe,
    stderr, text, until, until_spilled, was_done_before, was_stopped_by, words,
};
use crate::Scratch;

/// Starts a job that has spilled and waits for more input: the child, its input, its folder's name.
fn begin(scratch: &Scratch, input: &[u8]) -> (Child, std::process::ChildStdin, String) {
    let line = format!("{LITTLE} -T {{}}temp -o {{}}out");
    let mut child = spawn_on_pipe(sort(words(scratch, &line)));
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(input).unwrap();
    let folder = until_spilled(&scratch.path("temp"));
    (child, pipe, folder)
}

fn scratch(test: &str) -> Scratch {
    let scratch = Scratch::new(test);
    std::fs::create_dir(scratch.path("temp")).unwrap();
    std::fs::write(scratch.path("out"), b"old").unwrap();
    std::fs::write(scratch.path("small"), b"b\na\n").unwrap();
    scratch
}

#[test]
fn a_stopped_job_leaves_nothing_and_the_old_output() {
    let scratch = scratch("sort-stopped");
    let input = text(60_000_000, 13);
    for name in [
        "INT", "TERM", "HUP", "QUIT", "PIPE", "ALRM", "XCPU", "XFSZ", "VTALRM", "PROF", "IO",
        "USR1", "USR2",
    ] {
        let (child, pipe, _) = begin(&scratch, &input);
        // As a shell whose terminal is closed, and `timeout`, send it.
        let twice = [(); 2].map(|()| signal_if_there(child.id(), name));
        assert!(twice[0]);
        let output = finish(child);
        drop(pipe);
        was_stopped_by(&output, name);
        assert_eq!(scratch.names(), ["out", "small", "temp"]);
        assert_eq!(
            names_with(&scratch.path("temp"), ""),
            Vec::<String>::new(),
            "{name}"
        );
        assert_eq!(std::fs::read(scratch.path("out")).unwrap(), b"old");
    }
}

/// At any moment: distributing, sorting, writing, syncing, naming.
#[test]
fn a_job_may_be_stopped_at_any_moment() {
    let scratch = scratch("sort-stopped-any");
    let input = text(60_000_000, 14);
    let wanted = sorted(&input);
    std::fs::write(scratch.path("in"), &input).unwrap();
    let mut stopped = 0;
    for round in 0..10 {
        std::fs::write(scratch.path("out"), b"old").unwrap();
        let line = format!("{LITTLE} -T {{}}temp -o {{}}out {{}}in");
        let child = sort(words(&scratch, &line)).spawn().unwrap();
        until("the job's beginning", || {
            names_with(&scratch.path, ".out.sortmill-").pop()
        });
        // Not a wait for anything: the moment is what is varied.
        std::thread::park_timeout(std::time::Duration::from_millis(round * 70));
        if std::path::Path::new(&format!("/proc/{}/stat", child.id())).exists() {
            signal(child.id(), "INT");
        }
        let output = finish(child);
        let out = std::fs::read(scratch.path("out")).unwrap();
        if out == b"old" {
            stopped += 1;
            was_stopped_by(&output, "INT");
        } else {
            assert!(out == wanted);
            was_done_before(&output, "INT");
        }
        assert_eq!(scratch.names(), ["in", "out", "small", "temp"]);
        assert_eq!(names_with(&scratch.path("temp"), ""), Vec::<String>::new());
    }
    println!("stopped {stopped} of 10");
    assert!(stopped > 1);
}

#[test]
fn what_a_killed_job_leaves_goes_with_the_next() {
    let scratch = scratch("sort-killed");
    let (child, pipe, folder) = begin(&scratch, &text(60_000_000, 15));
    signal(child.id(), "KILL");
    assert_eq!(finish(child).status.code(), None);
    drop(pipe);
    assert_eq!(names_with(&scratch.path("temp"), ""), [folder]);
    assert_eq!(names_with(&scratch.path, ".out.sortmill-").len(), 1);
    run_well(sort(words(&scratch, "-T {}temp -o {}other {}small")));
    assert_eq!(names_with(&scratch.path("temp"), ""), Vec::<String>::new());
    assert_eq!(scratch.names(), ["other", "out", "small", "temp"]);
    assert_eq!(std::fs::read(scratch.path("out")).unwrap(), b"old");
}

/// The same of a job that needed no temporary files: its output has a temporary name too.
#[test]
fn the_output_of_a_killed_job_in_memory_goes_with_the_next() {
    let scratch = scratch("sort-killed-in-memory");
    std::fs::write(scratch.path("in"), text(60_000_000, 16)).unwrap();
    let line = "--memory 1GiB -T {}temp -o {}out {}in";
    let plan = run_well(sort(words(&scratch, &format!("--dry-run {line}")))).stdout;
    let plan = String::from_utf8(plan).unwrap();
    assert!(plan.contains("temporary space  0 B"), "{plan}");
    let child = sort(words(&scratch, line)).spawn().unwrap();
    until("the job's beginning", || {
        names_with(&scratch.path, ".out.sortmill-").pop()
    });
    signal(child.id(), "KILL");
    assert_eq!(finish(child).status.code(), None, "it was too fast");
    assert_eq!(names_with(&scratch.path, ".out.sortmill-").len(), 1);
    run_well(sort(words(&scratch, "-T {}temp -o {}other {}small")));
    assert_eq!(scratch.names(), ["in", "other", "out", "small", "temp"]);
    assert_eq!(names_with(&scratch.path("temp"), ""), Vec::<String>::new());
}

#[test]
fn the_folder_of_a_living_job_is_left_alone() {
    let scratch = scratch("sort-living");
    let input = text(60_000_000, 17);
    let (child, pipe, folder) = begin(&scratch, &input);
    run_well(sort(words(&scratch, "-T {}temp -o {}other {}small")));
    assert_eq!(names_with(&scratch.path("temp"), ""), [folder]);
    assert_eq!(names_with(&scratch.path, ".out.sortmill-").len(), 1);
    drop(pipe);
    let output = finish(child);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(std::fs::read(scratch.path("out")).unwrap() == sorted(&input));
    assert_eq!(scratch.names(), ["other", "out", "small", "temp"]);
}

/// What is not ours is not touched, whatever its name says.
#[test]
fn other_folders_with_such_names_are_left_alone() {
    let scratch = scratch("sort-foreign");
    let temp = scratch.path("temp");
    std::fs::create_dir(temp.join("sortmill-0123456789abcdef")).unwrap();
    std::fs::write(temp.join("sortmill-0123456789abcdef/mine"), b"dear").unwrap();
    std::fs::create_dir(temp.join("sortmill-fedcba9876543210")).unwrap();
    let lie = format!(
        "{{\"version\":1,\"output\":{:?}}}",
        scratch.path("out").display().to_string()
    );
    std::fs::write(temp.join("sortmill-fedcba9876543210/owner"), lie).unwrap();
    std::fs::write(temp.join("sortmill-fedcba9876543210/mine"), b"dear").unwrap();
    std::fs::write(temp.join("sortmill-notes"), b"dear").unwrap();
    run_well(sort(words(&scratch, "-T {}temp -o {}other {}small")));
    for name in [
        "sortmill-0123456789abcdef/mine",
        "sortmill-fedcba9876543210/mine",
        "sortmill-notes",
    ] {
        assert_eq!(std::fs::read(temp.join(name)).unwrap(), b"dear", "{name}");
    }
    assert_eq!(std::fs::read(scratch.path("out")).unwrap(), b"old");
}

/// Others may write to the folder for temporary files: what they put there has nothing of ours removed, and nobody wait. A link
/// under the name of an unfinished output used to be followed, and a pipe under that of an owner to be waited for.
#[test]
fn what_others_left_there_leads_nowhere() {
    let scratch = scratch("sort-hostile");
    let (temp, dear) = (scratch.path("temp"), scratch.path("dear"));
    std::fs::create_dir(&dear).unwrap();
    for name in ["1", "2", "manifest.json", "owner", "spill"] {
        std::fs::write(dear.join(name), b"dear").unwrap();
    }
    let link = scratch.path(".x.sortmill-0123456789abcdef");
    let symlink = |to: &Path, at: &Path| std::os::unix::fs::symlink(to, at).unwrap();
    symlink(&dear, &link);
    for (number, end) in ["/", "", "/."].into_iter().enumerate() {
        let folder = temp.join(format!("sortmill-{number:016}"));
        std::fs::create_dir(&folder).unwrap();
        let output = format!("{}{end}", link.display());
        let owner = format!(
            "{{\"version\":1,\"output\":{:?},\"parts\":\"{{}}\"}}",
            output.as_bytes()
        );
        std::fs::write(folder.join("owner"), owner).unwrap();
    }
    symlink(&dear, &temp.join("sortmill-00000000000000aa"));
    let pipe = temp.join("sortmill-00000000000000bb");
    std::fs::create_dir(&pipe).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(pipe.join("owner"))
        .status()
        .unwrap();
    assert!(made.success());
    // Owners that could be believed: a link to one, and, where files can be given away, one of another user's.
    let unfinished = scratch.path(".y.sortmill-0123456789abcdef");
    std::fs::write(&unfinished, b"dear").unwrap();
    let told = format!(
        "{{\"version\":1,\"output\":{:?}}}",
        unfinished.as_os_str().as_encoded_bytes()
    );
    std::fs::write(scratch.path("told"), &told).unwrap();
    let [linked, given] =
        ["cc", "dd"].map(|end| temp.join(format!("sortmill-00000000000000{end}")));
    std::fs::create_dir(&linked).unwrap();
    symlink(&scratch.path("told"), &linked.join("owner"));
    std::fs::create_dir(&given).unwrap();
    std::fs::write(given.join("owner"), &told).unwrap();
    if std::os::unix::fs::chown(given.join("owner"), Some(65_534), None).is_err() {
        std::fs::remove_dir_all(&given).unwrap();
    }
    run_well(sort(words(&scratch, "-T {}temp -o {}other {}small")));
    for name in ["1", "2", "manifest.json", "owner", "spill"] {
        assert_eq!(std::fs::read(dear.join(name)).unwrap(), b"dear", "{name}");
    }
    assert_eq!(std::fs::read(&unfinished).unwrap(), b"dear");
    // What is one's own goes.
    std::fs::remove_file(linked.join("owner")).unwrap();
    std::fs::write(linked.join("owner"), &told).unwrap();
    run_well(sort(words(&scratch, "-T {}temp -o {}other {}small")));
    assert!(!unfinished.exists() && !linked.exists());
}

/// Jobs that begin and end in one folder at the same time do not take each other for dead.
#[test]
fn many_jobs_share_a_folder() {
    let scratch = scratch("sort-many");
    let input = text(20_000, 18);
    let wanted = sorted(&input);
    std::thread::scope(|threads| {
        for worker in 0..4 {
            let (scratch, input, wanted) = (&scratch, &input, &wanted);
            threads.spawn(move || {
                for _ in 0..15 {
                    let line = format!("-T {{}}temp -o {{}}out{worker}");
                    let output = super::run_on_pipe(sort(words(scratch, &line)), input);
                    assert!(output.status.success(), "{}", stderr(&output));
                    let out = std::fs::read(scratch.path(&format!("out{worker}"))).unwrap();
                    assert!(out == *wanted);
                }
            });
        }
    });
    assert_eq!(names_with(&scratch.path("temp"), ""), Vec::<String>::new());
}
