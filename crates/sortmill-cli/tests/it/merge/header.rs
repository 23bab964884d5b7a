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

/// A run of inputs that hold nothing but their header has no records: the merge waited for its first one, for ever.
#[test]
fn many_inputs_of_a_header_alone() {
    let scratch = Scratch::new("merge-header-alone");
    for number in 0..200 {
        let body = if number % 50 == 49 { "b\n" } else { "" };
        std::fs::write(
            scratch.path(&format!("in{number:03}")),
            format!("z\n{body}"),
        )
        .unwrap();
    }
    let names: Vec<String> = (0..200).map(|number| format!("in{number:03}")).collect();
    let inputs = paths(&scratch, &names);
    let line = format!("--header 1 --memory 26MiB -T {{}} --report {{}}report {inputs}");
    let output = run_well(merge(words(&scratch, &line)));
    assert_eq!(output.stdout, b"z\nb\nb\nb\nb\n");
    let report = std::fs::read_to_string(scratch.path("report")).unwrap();
    assert!(report.contains("\"runs\": "), "{report}");
    assert!(!report.contains("\"runs\": 0,"), "{report}");
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

/// Only the first header has to be kept, whichever input is read first: here a later one is, in a run that is made first. It
/// failed or not by which thread came first, and without an offset.
#[test]
fn a_header_that_is_too_long_is_that_of_the_first_input() {
    let scratch = Scratch::new("merge-header-long");
    let long = [&vec![b'z'; 1_200_000][..], b"\nb\n"].concat();
    for number in 0..120 {
        let text: &[u8] = if number % 10 == 0 { &long } else { b"z\nb\n" };
        std::fs::write(scratch.path(&format!("in{number:03}")), text).unwrap();
    }
    // The first one is by far the largest, so that it is none of those that are merged first.
    let first = [&b"z first\n"[..], &b"a\n".repeat(2_000_000)].concat();
    std::fs::write(scratch.path("first"), first).unwrap();
    let names: Vec<String> = (0..120).map(|number| format!("in{number:03}")).collect();
    let flags = "-q --header 1 --memory 26MiB -T {} -o {}out";
    let line = format!("{flags} {{}}first {}", paths(&scratch, &names));
    run_well(merge(words(&scratch, &line)));
    let made = std::fs::read(scratch.path("out")).unwrap();
    assert!(made.starts_with(b"z first\na\n") && made.ends_with(b"b\n"));
    assert_eq!(made.len(), 8 + 2 * 2_000_000 + 2 * 120);
    std::fs::write(scratch.path("first"), "").unwrap();
    let line = format!("{flags} {{}}first {{}}in070 {}", paths(&scratch, &names));
    let wanted = [
        "in070: at byte 0: ",
        "stay at the top are longer than 1.0 MiB",
    ];
    run_badly(merge(words(&scratch, &line)), &wanted);
    // Of a stream nobody knows before whether it has any.
    let line = format!("{flags} - {{}}in070 {{}}in000");
    let output = run_on_pipe(merge(words(&scratch, &line)), b"z in\n");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let made = std::fs::read(scratch.path("out")).unwrap();
    assert_eq!(made, b"z in\nb\nb\n");
    let output = run_on_pipe(merge(words(&scratch, &line)), b"");
    assert_eq!(output.status.code(), Some(2));
    let told = stderr(&output);
    assert!(wanted.iter().all(|words| told.contains(words)), "{told}");
}
