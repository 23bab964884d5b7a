//! `--compress-program`: programs that are really run, as GNU sort runs them. Ours runs them for each block of temporary
//! data, and believes nothing that they do.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Output};

use serde_json::Value;

use super::super::{caught, finish, names_with, run, signal, sorted, stderr, text, until};
use super::Both;
use crate::sort::was_stopped_by;
use crate::{PROGRAM, Scratch};

/// More than the memory that `FLAGS` allow, on either side.
const INPUT_BYTES: usize = 45_000_000;
const FLAGS: &str = "-S 40M --parallel 1 -T .";

/// Programs, in the folder of each side. They read all before they fail: a program that does not, or cannot be run, ends GNU
/// sort by SIGPIPE, in silence, unless that is ignored.
const MAKE: &str = r#"
make() { printf '#!/bin/sh\n%s\n' "$2" > $1; chmod +x $1; }
make ok 'if [ "$1" = -d ]; then exec gzip -dc; else exec gzip -1c; fi'
make slow 'if [ "$1" = -d ]; then cat; else head -c 70000; sleep 0.01; cat; fi'
make fails 'cat > /dev/null; exit 3'
make fails_back 'if [ "$1" = -d ]; then exit 3; else exec gzip -1c; fi'
make killed 'cat > /dev/null; kill -9 $$'
printf 'no program' > plain
"#;

#[test]
fn programs_are_run_as_gnu_sort_runs_them() {
    let input = text(INPUT_BYTES, 73);
    let both = Both::new(
        "gnu-programs",
        &[("in", &input), ("out", b"old\n"), ("few", b"b\na\n")],
    );
    for (program, line) in [
        ("./ok", "-o out in"),
        ("./slow", "-o out in"),
        ("bzip2", "-r in > out"),
        ("./fails", "-o out in"),
        // GNU sort has emptied the output by then, ours has not touched it.
        ("./fails_back", "in > /dev/null"),
        ("./killed", "-o out in"),
        ("./plain", "-o out in"),
        ("/nowhere", "-o out in"),
        ("no-such-program", "-o out in"),
        // One that is not needed is not looked for.
        ("/nowhere", "-o out few"),
        ("/nowhere", "few"),
    ] {
        both.agree(&format!(
            "{MAKE} trap '' PIPE; sort {FLAGS} --compress-program={program} {line}"
        ));
    }
    // Of a caller that ignores how its children end, the system would not tell this one how its own did.
    both.agree(&format!(
        "{MAKE} env --ignore-signal=CHLD sort {FLAGS} --compress-program=./ok -o out in"
    ));
}

/// A folder with the input, programs, and `./sort`.
fn scratch(name: &str) -> (Scratch, Vec<u8>) {
    let scratch = Scratch::new(&format!("programs-{name}"));
    let input = text(INPUT_BYTES, 74);
    std::fs::write(scratch.path("in"), &input).unwrap();
    std::fs::write(scratch.path("out"), b"old\n").unwrap();
    symlink(PROGRAM, scratch.path("sort")).unwrap();
    (scratch, input)
}

fn bash(scratch: &Scratch, line: &str) -> Command {
    let mut bash = Command::new("bash");
    bash.args(["-c", line]).current_dir(&scratch.path);
    bash.env("LC_ALL", "C").env_remove("TMPDIR");
    caught(bash)
}

fn make(scratch: &Scratch, name: &str, script: &str) {
    std::fs::write(scratch.path(name), format!("#!/bin/sh\n{script}\n")).unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(scratch.path(name), mode).unwrap();
}

#[track_caller]
fn refused(scratch: &Scratch, output: &Output, wanted: &str) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(wanted), "{wanted:?}: {said}");
    assert!(!said.contains("panicked"), "{said}");
    assert_eq!(std::fs::read(scratch.path("out")).unwrap(), b"old\n");
    assert_eq!(names_with(&scratch.path, "sortmill-").len(), 0);
}

/// GNU sort loses lines to such programs, or writes others, and tells nobody.
#[test]
fn what_a_program_loses_is_found() {
    let (scratch, _) = scratch("lies");
    for (name, script, wanted) in [
        (
            "nothing",
            "cat > /dev/null",
            "does not decompress to what it was",
        ),
        (
            "garbage",
            "if [ \"$1\" = -d ]; then tr a-y b-z; else exec gzip -1c; fi",
            "does not decompress",
        ),
        (
            "other",
            "if [ \"$1\" = -d ]; then gzip -dc | tr a-y b-z; else exec gzip -1c; fi",
            "give the same bytes back",
        ),
        (
            "cut",
            "if [ \"$1\" = -d ]; then gzip -dc | head -c 9000; else exec gzip -1c; fi",
            "does not decompress",
        ),
        (
            "more",
            "if [ \"$1\" = -d ]; then gzip -dc; cat $0 $0; else exec gzip -1c; fi",
            "does not decompress",
        ),
        (
            "endless",
            "if [ \"$1\" = -d ]; then exec yes; else exec gzip -1c; fi",
            "does not decompress",
        ),
        (
            "unread",
            "if [ \"$1\" = -d ]; then exec cat; else exec echo x; fi",
            "does not decompress",
        ),
        (
            "loud",
            "echo what a mess >&2; exit 7",
            "terminated abnormally (exit status 7): what a mess",
        ),
        ("absent", "", ""),
    ] {
        if name == "absent" {
            let line = format!("./sort {FLAGS} --compress-program=./absent -o out in");
            let wanted = "couldn't execute compress program: No such file or directory";
            refused(&scratch, &run(bash(&scratch, &line)), wanted);
            continue;
        }
        make(&scratch, name, script);
        let line = format!("./sort {FLAGS} --compress-program=./{name} -o out in");
        refused(&scratch, &run(bash(&scratch, &line)), wanted);
    }
}

/// The memory that was asked for is kept, and what was done is told.
#[test]
fn what_programs_make_is_stored() {
    let (scratch, input) = scratch("stored");
    let wanted = sorted(&input);
    make(&scratch, "ok", "exec gzip -1c \"$@\"");
    for flags in [
        "-S 40M --parallel 1 -T . --temp-apart",
        "--memory 96MiB --threads 2 -T . --on local:2",
    ] {
        let line = format!("./sort {flags} --compress-program=./ok --report report -o sorted in");
        let output = run(bash(&scratch, &line));
        assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
        assert_eq!(stderr(&output), "", "{line}");
        assert!(
            std::fs::read(scratch.path("sorted")).unwrap() == wanted,
            "{line}"
        );
        let report: Value =
            serde_json::from_slice(&std::fs::read(scratch.path("report")).unwrap()).unwrap();
        let packed = &report["temp_packed"];
        assert_eq!(packed["how"], "program", "{line}");
        let of = |name: &str| packed[name].as_u64().unwrap();
        assert!(
            of("packed_blocks") * 10 >= of("blocks") * 9 && of("blocks") > 0,
            "{packed}"
        );
        assert!(of("stored_bytes") * 10 < of("plain_bytes") * 9, "{packed}");
    }
}

/// A program that hangs does not hold up who wants the job to end, and does not outlive it.
#[test]
fn a_program_that_hangs_ends_with_the_job() {
    let (scratch, _) = scratch("hangs");
    make(&scratch, "hangs", "echo $$ >> pids; exec sleep 1000");
    let line = format!("exec ./sort {FLAGS} --compress-program=./hangs -o out in");
    let child = bash(&scratch, &line).spawn().unwrap();
    let pids = until("a program", || {
        let pids = std::fs::read_to_string(scratch.path("pids")).ok()?;
        (!pids.is_empty()).then_some(pids)
    });
    signal(child.id(), "TERM");
    let output = finish(child);
    was_stopped_by(&output, "TERM");
    assert_eq!(std::fs::read(scratch.path("out")).unwrap(), b"old\n");
    assert_eq!(names_with(&scratch.path, "sortmill-").len(), 0);
    for pid in pids.lines() {
        until("its end", || {
            (!std::path::Path::new(&format!("/proc/{pid}/cmdline")).exists()).then_some(())
        });
    }
}
