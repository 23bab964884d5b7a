//! Inputs that change while they are read.
//!
//! The first input is a pipe with a name, so that the job has begun, and knows how long the second one
//! is, before any of it is read.

use std::io::{Seek, Write};
use std::process::Output;

use super::{finish, make_fifo, names_with, sort, sorted, stderr, text, until, words};
use crate::Scratch;

/// Sorts a pipe and then the file `in`, which `change` changes once the job has begun.
fn change_while(scratch: &Scratch, flags: &str, change: impl FnOnce()) -> Output {
    let _ = std::fs::remove_file(scratch.path("pipe"));
    make_fifo(&scratch.path("pipe"));
    let line = format!("{flags} -T {{}} -o {{}}out {{}}pipe {{}}in");
    let child = sort(words(scratch, &line)).spawn().unwrap();
    let mut pipe = std::fs::File::options()
        .write(true)
        .open(scratch.path("pipe"))
        .unwrap();
    until("the job's beginning", || {
        names_with(&scratch.path, ".out.sortmill-").pop()
    });
    change();
    pipe.write_all(b"from the pipe\n").unwrap();
    drop(pipe);
    let output = finish(child);
    std::fs::remove_file(scratch.path("pipe")).unwrap();
    output
}

fn append(scratch: &Scratch, bytes: &[u8]) {
    let mut file = std::fs::File::options()
        .append(true)
        .open(scratch.path("in"))
        .unwrap();
    file.write_all(bytes).unwrap();
}

#[test]
fn an_input_that_grows() {
    let scratch = Scratch::new("sort-grows");
    for bytes in [100, 1_000_000, 70_000_000] {
        let input = text(bytes, 11);
        std::fs::write(scratch.path("in"), &input).unwrap();
        std::fs::write(scratch.path("out"), b"old").unwrap();
        let output = change_while(&scratch, "", || append(&scratch, b"later\n"));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let path = scratch.path("in").display().to_string();
        for word in [
            &path,
            "bytes at the start",
            "--as-of-start",
            &(input.len() + 6).to_string(),
        ] {
            assert!(said.contains(word), "{word}: {said}");
        }
        assert_eq!(std::fs::read(scratch.path("out")).unwrap(), b"old");

        std::fs::write(scratch.path("in"), &input).unwrap();
        let output = change_while(&scratch, "--as-of-start", || append(&scratch, b"later\n"));
        assert!(output.status.success(), "{}", stderr(&output));
        let wanted = sorted(&[b"from the pipe\n", input.as_slice()].concat());
        assert!(std::fs::read(scratch.path("out")).unwrap() == wanted);
        assert_eq!(scratch.names(), ["in", "out"]);
    }
}

#[test]
fn an_input_that_shrinks_or_is_written_to() {
    let scratch = Scratch::new("sort-shrinks");
    let input = text(1_000_000, 12);
    let path = scratch.path("in").display().to_string();
    let file = || {
        std::fs::File::options()
            .write(true)
            .open(scratch.path("in"))
            .unwrap()
    };
    let cut = || file().set_len(500_000).unwrap();
    let empty = || file().set_len(0).unwrap();
    let overwrite = || {
        let mut file = file();
        file.seek(std::io::SeekFrom::Start(700_000)).unwrap();
        file.write_all(b"something else\n").unwrap();
    };
    let changes: [(&dyn Fn(), &str); 3] = [
        (&cut, "500000"),
        (&empty, "the file ends here now"),
        (&overwrite, "written to while it was read"),
    ];
    for (number, (change, wanted)) in changes.into_iter().enumerate() {
        for flags in ["", "--as-of-start"] {
            if number == 2 && !flags.is_empty() {
                // What was written cannot be told from what was appended and read again.
                continue;
            }
            std::fs::write(scratch.path("in"), &input).unwrap();
            std::fs::write(scratch.path("out"), b"old").unwrap();
            let output = change_while(&scratch, flags, change);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{wanted} {flags}: {said}");
            assert!(said.contains(wanted) && said.contains(&path), "{said}");
            assert_eq!(std::fs::read(scratch.path("out")).unwrap(), b"old");
        }
    }
    assert_eq!(scratch.names(), ["in", "out"]);
}

/// A file that is replaced by another of its name is still the one that was opened.
#[test]
fn an_input_that_is_replaced_is_read_as_it_was() {
    let scratch = Scratch::new("sort-replaced");
    std::fs::write(scratch.path("in"), b"b\na\n").unwrap();
    let output = change_while(&scratch, "", || {
        std::fs::write(scratch.path("new"), b"x\n").unwrap();
        std::fs::rename(scratch.path("new"), scratch.path("in")).unwrap();
    });
    assert!(output.status.success(), "{}", stderr(&output));
    let out = std::fs::read(scratch.path("out")).unwrap();
    assert_eq!(out, b"a\nb\nfrom the pipe\n");
}
