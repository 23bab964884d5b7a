//! `sortmill merge --header N`: lines in front of records, which no input's order counts.

use sortmill::io::codec::{CODECS, Codec};

use super::merge;
use crate::Scratch;
use crate::sort::packed::{packed, unpacked};
use crate::sort::{run_badly, run_on_pipe, run_well, sort, sorted, stderr, text, words};

/// Files of two lines that are no records, which would come last, and sorted ones; what is to come of them.
fn files(scratch: &Scratch, count: usize, bytes: usize) -> (Vec<String>, Vec<u8>) {
    let mut all = Vec::new();
    let mut names = Vec::new();
    for number in 0..count {
        let body = sorted(&text(bytes, 40 + number as u64));
        let name = format!("in{number:03}");
        let mut input = format!("zz header of {number}\n~~~\n").into_bytes();
        input.extend_from_slice(&body);
        // Some lack their last newline.
        if number % 3 == 1 {
            input.pop();
        }
        std::fs::write(scratch.path(&name), input).unwrap();
        names.push(name);
        all.extend(body);
    }
    let wanted = [b"zz header of 0\n~~~\n".to_vec(), sorted(&all)].concat();
    (names, wanted)
}

fn paths(scratch: &Scratch, names: &[String]) -> String {
    let path = |name: &String| scratch.path(name).display().to_string();
    names.iter().map(path).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_first_lines_stay_at_the_top() {
    let scratch = Scratch::new("merge-header");
    let (names, wanted) = files(&scratch, 40, 60_000);
    let inputs = paths(&scratch, &names);
    for flags in [
        "",
        "--io posix",
        "--memory 26MiB",
        "--verify --no-direct",
        "--memory 26MiB --verify",
    ] {
        let line = format!("-q --header 2 {flags} -T {{}} -o {{}}out {inputs}");
        run_well(merge(words(&scratch, &line)));
        let made = std::fs::read(scratch.path("out")).unwrap();
        assert!(made == wanted, "{flags}");
        let line = format!("-q -m --header 2 {flags} -T {{}} {inputs}");
        let output = run_well(sort(words(&scratch, &line)));
        assert!(output.stdout == wanted, "{flags}");
    }
    // The same compressed, in and out.
    for (name, codec) in names.iter().zip(CODECS.into_iter().cycle()) {
        let bytes = std::fs::read(scratch.path(name)).unwrap();
        std::fs::write(scratch.path(name), packed(codec, &bytes, 7000)).unwrap();
    }
    for flags in ["--memory 500MiB", "--memory 60MiB --verify"] {
        let line = format!("-q --header 2 {flags} -T {{}} -o {{}}out.gz {inputs}");
        run_well(merge(words(&scratch, &line)));
        let made = std::fs::read(scratch.path("out.gz")).unwrap();
        assert!(unpacked(Codec::Gzip, &made) == wanted, "{flags}");
    }
}

/// Empty inputs, some that end within their header or behind it, a header without its newline, pipes, and none at all.
#[test]
fn short_inputs() {
    let scratch = Scratch::new("merge-header-short");
    for (name, bytes) in [
        ("none", ""),
        ("one", "z one"),
        ("two", "z two\nz\n"),
        ("some", "z some\nz\na\nc\n"),
        ("last", "z last\nz\nb\nd"),
    ] {
        std::fs::write(scratch.path(name), bytes).unwrap();
    }
    for (line, wanted) in [
        ("{}none {}none", ""),
        ("{}one {}none", "z one\n"),
        ("{}none {}one {}some", "z one\na\nc\n"),
        ("{}two {}two", "z two\nz\n"),
        ("{}none {}two {}some {}last", "z two\nz\na\nb\nc\nd\n"),
        ("{}last {}some {}one", "z last\nz\na\nb\nc\nd\n"),
        ("-u {}some {}some {}last", "z some\nz\na\nb\nc\nd\n"),
        ("- {}some", "z in\nz\na\na\nb\nc\n"),
        ("{}some -", "z some\nz\na\na\nb\nc\n"),
        ("{}some <", "z some\nz\na\na\nb\nc\n"),
    ] {
        for more in ["", "--verify -o {}out", "--compress-output gz"] {
            let line = format!("-q --header 2 {more} {line}");
            let input: &[u8] = b"z in\nz\na\nb\n";
            let output = match line.strip_suffix('<') {
                // A compressed stream.
                Some(line) => {
                    let command = merge(words(&scratch, &format!("{line} -")));
                    run_on_pipe(command, &packed(Codec::Gzip, input, 4))
                }
                None => run_on_pipe(merge(words(&scratch, &line)), input),
            };
            assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
            let made = match more {
                "" => output.stdout,
                "--compress-output gz" => unpacked(Codec::Gzip, &output.stdout),
                _ => std::fs::read(scratch.path("out")).unwrap(),
            };
            assert_eq!(String::from_utf8(made).unwrap(), wanted, "{line}");
        }
    }
}

/// A line out of order is told by its number in the file, and a header that is too long to be kept by its file.
#[test]
fn what_is_wrong_behind_a_header() {
    let scratch = Scratch::new("merge-header-wrong");
    std::fs::write(scratch.path("good"), "z\nb\nc\n").unwrap();
    std::fs::write(scratch.path("bad"), "z\nb\na\n").unwrap();
    run_badly(
        merge(words(&scratch, "--header 1 -o {}out {}good {}bad")),
        &["bad: at byte 4: ", "not in order: line 3,"],
    );
    std::fs::write(scratch.path("long"), vec![b'a'; 3 << 20]).unwrap();
    run_badly(
        merge(words(&scratch, "--header 1 -o {}out {}long {}good")),
        &["long: ", "stay at the top are longer than 1.0 MiB"],
    );
    run_badly(
        merge(words(&scratch, "--format kv --header 1 -o {}out {}good")),
        &["have no lines in front of them"],
    );
    assert_eq!(scratch.names().len(), 3);
}
