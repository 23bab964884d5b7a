//! What is wrong is named, with file and place, and nothing is changed.

use std::os::unix::fs::PermissionsExt;

use super::{LITTLE, is_root, run_badly, run_on_pipe, run_well, sort, stderr, words};
use crate::Scratch;

#[test]
fn words_that_make_no_sense() {
    let scratch = Scratch::new("sort-words");
    std::fs::write(scratch.path("in"), [7; 100]).unwrap();
    for (line, wanted) in [
        ("--key 0:4 {}in", "a key of bytes needs --format fixed:SIZE"),
        ("--format fixed:10 --key 8:4 {}in", "ends at byte 12"),
        ("--format fixed:10 --key 8:0 {}in", "8:0 is empty"),
        ("--format fixed:10 --key 0:3:float {}in", "4 or 8 bytes"),
        (
            "--format fixed:10 --key 4294967295:4294967295 {}in",
            "behind the record's 10 bytes",
        ),
        ("--format fixed:10 --key x:4 {}in", "no offset"),
        ("--format fixed:10 --key 4 {}in", "no length"),
        ("--format fixed:10 --key 0:4:le {}in", "a byte order needs"),
        ("--format fixed:10 --key 0:4:up {}in", "is not one of"),
        ("--format fixed:0 {}in", "no record size"),
        ("--format fixed:x {}in", "no record size"),
        ("--format fixed:-1 {}in", "no record size"),
        (
            "--format xml {}in",
            "the formats are lines, fixed:SIZE, kv, csv, tsv and jsonl",
        ),
        ("--memory 2X {}in", "no unit of size"),
        ("--memory= {}in", "--memory"),
        ("--memory 0% {}in", "between 0% and 100%"),
        ("--threads 0 {}in", "--threads"),
        ("--io fast {}in", "--io"),
        ("--nonsense {}in", "--nonsense"),
        ("--memory 0 {}in", "needs at least"),
        ("--memory 1MiB {}in", "needs at least"),
        ("--skip-bad=-1 {}in", "--skip-bad"),
    ] {
        run_badly(sort(words(&scratch, line)), &[wanted]);
    }
    assert_eq!(scratch.names(), ["in"]);
}

#[test]
fn inputs_that_cannot_be_read() {
    let scratch = Scratch::new("sort-unreadable");
    std::fs::write(scratch.path("in"), b"b\na\n").unwrap();
    std::fs::write(scratch.path("out"), b"old").unwrap();
    std::fs::create_dir(scratch.path("folder")).unwrap();
    std::os::unix::fs::symlink("nowhere", scratch.path("dangling")).unwrap();
    for (name, wanted) in [
        ("missing", "No such file"),
        ("in/in", "Not a directory"),
        ("folder", "directory"),
        ("dangling", "No such file"),
    ] {
        let line = format!("-o {{}}out {{}}in {{}}{name}");
        let path = scratch.path(name).display().to_string();
        run_badly(sort(words(&scratch, &line)), &[wanted, &path]);
        assert_eq!(std::fs::read(scratch.path("out")).unwrap(), b"old");
    }
    assert_eq!(scratch.names(), ["dangling", "folder", "in", "out"]);
}

#[test]
fn outputs_and_folders_that_cannot_be_written() {
    let scratch = Scratch::new("sort-unwritable");
    std::fs::write(scratch.path("in"), b"b\na\n").unwrap();
    std::fs::create_dir(scratch.path("folder")).unwrap();
    for (line, wanted) in [
        ("-o {}folder {}in", "folder"),
        ("-o {}missing/out {}in", "there is no folder"),
        ("-o {}in/out {}in", "Not a directory"),
        ("-o /dev/full {}in", "No space left"),
        ("-o /proc/nothing {}in", "/proc"),
    ] {
        run_badly(sort(words(&scratch, line)), &[wanted]);
    }
    // Where temporary files are needed, their folder must be there.
    let output = run_on_pipe(sort(words(&scratch, "-T {}missing -o {}out")), b"b\na\n");
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(
        said.contains("missing") && said.contains("--temp"),
        "{said}"
    );
    let output = run_on_pipe(sort(words(&scratch, "-T {}in -o {}out")), b"b\na\n");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert_eq!(scratch.names(), ["folder", "in"]);
}

/// Once the job was done, and the output replaced, before the report turned out to have no place.
#[test]
fn a_report_that_cannot_be_written_shows_before_the_work() {
    let scratch = Scratch::new("sort-report-unwritable");
    std::fs::write(scratch.path("in"), b"b\na\n").unwrap();
    std::fs::write(scratch.path("out"), b"old").unwrap();
    let line = "--report {}missing/report -o {}out {}in";
    run_badly(
        sort(words(&scratch, line)),
        &["missing/report", "No such file"],
    );
    assert_eq!(std::fs::read(scratch.path("out")).unwrap(), b"old");
}

#[test]
fn a_cut_off_record_is_named_by_file_and_offset() {
    let scratch = Scratch::new("sort-cut-off");
    let whole: Vec<u8> = (0..10_000u32).flat_map(u32::to_be_bytes).collect();
    std::fs::write(scratch.path("whole"), &whole).unwrap();
    std::fs::write(scratch.path("cut"), &whole[..whole.len() - 13]).unwrap();
    std::fs::write(scratch.path("out"), b"old").unwrap();
    let path = scratch.path("cut").display().to_string();
    let line = "--format fixed:20 -o {}out {}whole {}cut {}whole";
    let offset = format!("{}", (whole.len() - 13) / 20 * 20);
    run_badly(
        sort(words(&scratch, line)),
        &[&path, &offset, "7 of 20 bytes", "--skip-bad"],
    );
    assert_eq!(std::fs::read(scratch.path("out")).unwrap(), b"old");

    let output = run_well(sort(words(&scratch, &format!("--skip-bad 1 {line}"))));
    let said = stderr(&output);
    assert!(said.contains("left out 1 bad record"), "{said}");
    let bytes = std::fs::read(scratch.path("out")).unwrap();
    assert_eq!(bytes.len(), 2 * whole.len() + (whole.len() - 13) / 20 * 20);

    let piped = run_on_pipe(
        sort(words(&scratch, "--format fixed:20")),
        &whole[..whole.len() - 13],
    );
    let said = stderr(&piped);
    assert_eq!(piped.status.code(), Some(2));
    assert!(
        said.contains(&offset) && said.contains("7 of 20 bytes"),
        "{said}"
    );
    assert!(piped.stdout.is_empty());
}

/// A line that does not fit in memory stops the job, or is left out when that is asked for.
#[test]
fn a_line_too_long_for_the_memory() {
    let scratch = Scratch::new("sort-too-long");
    let long = vec![b'm'; 22_000_000];
    for (name, input, begins) in [
        (
            "middle",
            [b"z\n", long.as_slice(), b"\na\n".as_slice()].concat(),
            2,
        ),
        ("first", [long.as_slice(), b"\nz\na\n"].concat(), 0),
        ("last", [b"z\na\n", long.as_slice()].concat(), 4),
    ] {
        std::fs::write(scratch.path(name), &input).unwrap();
        let offset = format!("at byte {begins}:");
        let line = format!("{LITTLE} {{}}{name}");
        let path = scratch.path(name).display().to_string();
        run_badly(
            sort(words(&scratch, &line)),
            &[
                "a record is longer than 20.0 MiB",
                "or more",
                &path,
                &offset,
                "--skip-bad",
            ],
        );
        let skipping = format!("{LITTLE} --skip-bad 1");
        let output = run_well(sort(words(&scratch, &format!("{skipping} {{}}{name}"))));
        assert_eq!(output.stdout, b"a\nz\n", "{name}");
        assert!(stderr(&output).contains("left out 1 bad record"));
        let output = run_on_pipe(sort(words(&scratch, &skipping)), &input);
        assert_eq!(output.stdout, b"a\nz\n", "{name} from a pipe");
    }
    let two = [long.as_slice(), b"\nb\n", long.as_slice(), b"\na\n"].concat();
    let output = run_on_pipe(
        sort(words(&scratch, &format!("{LITTLE} --skip-bad 1"))),
        &two,
    );
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("at byte 22000003:"), "{said}");
    let output = run_on_pipe(
        sort(words(&scratch, &format!("{LITTLE} --skip-bad 2"))),
        &two,
    );
    assert_eq!(output.stdout, b"a\nb\n");
}

/// Records that never fit are a plan that cannot be made, not bad records that may be left out.
#[test]
fn fixed_records_too_long_for_the_memory() {
    let scratch = Scratch::new("sort-fixed-too-long");
    std::fs::write(scratch.path("in"), vec![b'r'; 30_000_000]).unwrap();
    let line = format!("{LITTLE} --format fixed:10000000 --skip-bad 10 {{}}in");
    run_badly(sort(words(&scratch, &line)), &["needs at least"]);
    let line = "--memory 1GiB --threads 1 --format fixed:10000000 {}in";
    let output = run_well(sort(words(&scratch, line)));
    assert_eq!(output.stdout.len(), 30_000_000);
}

#[test]
fn an_unreadable_file_for_an_ordinary_user() {
    let Some(user) = super::users::Ordinary::new("unreadable") else {
        return;
    };
    assert!(is_root());
    user.write("in", b"b\na\n");
    let path = user.folder.path("in");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    let shown = path.display().to_string();
    run_badly(user.sort("{}in"), &["Permission denied", &shown]);
    // A folder in which nothing may be made.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let closed = user.folder.path("closed");
    std::fs::create_dir(&closed).unwrap();
    run_badly(
        user.sort("-o {}closed/out {}in"),
        &["Permission denied", "closed/out"],
    );
}
