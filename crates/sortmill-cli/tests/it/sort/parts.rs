//! `sort --parts` and `check --parts`: a folder of files that appears whole or not at all.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use super::{
    LITTLE, caught, finish, names_with, run, run_badly, run_on_pipe, run_well, signal, sort,
    sorted, stderr, text, until, was_done_before, was_stopped_by, words,
};
use crate::{PROGRAM, Scratch};

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let mut names = names_with(folder, "");
    names.sort();
    names
}

/// The parts of a folder one after the other, in the order of their names.
fn joined(folder: &Path) -> Vec<u8> {
    let parts = names(folder)
        .into_iter()
        .filter(|name| name != "manifest.json");
    parts
        .flat_map(|name| std::fs::read(folder.join(name)).unwrap())
        .collect()
}

/// `sortmill check --parts` of a folder: exit code and what it prints.
fn check(folder: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(PROGRAM);
    command.args(["check", "--parts"]).arg(folder);
    let output = run(caught(command));
    let told = String::from_utf8(output.stdout.clone()).unwrap();
    (output.status.code(), told + &stderr(&output))
}

fn check_well(folder: &Path) -> String {
    let (code, told) = check(folder);
    assert_eq!(code, Some(0), "{told}");
    assert!(
        told.ends_with("in order, and as the manifest says\n"),
        "{told}"
    );
    told
}

#[test]
fn parts_one_after_the_other_are_what_one_file_would_be() {
    let scratch = Scratch::new("parts-joined");
    let input = text(60_000_000, 31);
    let wanted = sorted(&input);
    std::fs::write(scratch.path("in"), &input).unwrap();
    let mut counted = Vec::new();
    for (flags, count) in [
        ("", None),
        ("--part-size 7MB", Some(9)),
        ("--part-count 100", Some(100)),
        (
            "--part-count 100 --memory 1GiB --threads 2 --io posix",
            Some(100),
        ),
        ("--part-count 100 --no-direct --verify", Some(100)),
        ("--part-count 3 --boundaries uniform", Some(3)),
        ("--part-name x{:03}.txt --part-count 1000", Some(1000)),
    ] {
        let little = if flags.contains("1GiB") { "" } else { LITTLE };
        let line = format!("{little} {flags} -T {{}} --parts {{}}out {{}}in");
        let said = stderr(&run_well(sort(words(&scratch, &line))));
        let out = scratch.path("out");
        assert!(joined(&out) == wanted, "{flags}");
        let made = names(&out);
        let report = format!(", in {} parts of ", made.len() - 1);
        assert!(
            said.contains(&report) || made.len() > 1000,
            "{flags}: {said}"
        );
        assert_eq!(made[0], "manifest.json", "{flags}");
        if let Some(count) = count {
            assert_eq!(made.len(), count + 1, "{flags}");
        }
        if flags.starts_with("--part-count 100") {
            let bytes = made[1..]
                .iter()
                .map(|name| std::fs::read(out.join(name)).unwrap());
            counted.push(bytes.collect::<Vec<_>>());
        }
        check_well(&out);
        assert_eq!(scratch.names(), ["in", "out"]);
        std::fs::remove_dir_all(out).unwrap();
    }
    assert!(counted.len() == 3 && counted.iter().all(|parts| *parts == counted[0]));
    // From a pipe, whose length nobody knows before.
    let line = format!("{LITTLE} --part-count 100 -T {{}} --parts {{}}out");
    let output = run_on_pipe(sort(words(&scratch, &line)), &input);
    assert!(output.status.success(), "{}", stderr(&output));
    let parts = names(&scratch.path("out"));
    for (name, part) in parts[1..].iter().zip(&counted[0]) {
        assert!(
            std::fs::read(scratch.path("out").join(name)).unwrap() == *part,
            "{name}"
        );
    }
}

/// Thousands of parts, and as few descriptors as some systems give.
#[test]
fn thousands_of_parts_with_few_open_files() {
    let scratch = Scratch::new("parts-many");
    let input = text(20_000_000, 32);
    std::fs::write(scratch.path("in"), &input).unwrap();
    for io in ["--io auto", "--io posix"] {
        let line =
            format!("{io} --threads 4 --verify --part-count 4000 -T {{}} --parts {{}}out {{}}in");
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n 64; exec \"$0\" sort \"$@\""]);
        command.arg(PROGRAM).args(words(&scratch, &line));
        run_well(caught(command));
        assert_eq!(names(&scratch.path("out")).len(), 4001);
        assert!(joined(&scratch.path("out")) == sorted(&input));
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n 64; exec \"$0\" check --parts \"$1\""]);
        command.arg(PROGRAM).arg(scratch.path("out"));
        run_well(caught(command));
        std::fs::remove_dir_all(scratch.path("out")).unwrap();
    }
}

#[test]
fn words_that_make_no_sense() {
    let scratch = Scratch::new("parts-words");
    std::fs::write(scratch.path("in"), b"b\na\n").unwrap();
    std::fs::create_dir(scratch.path("full")).unwrap();
    std::fs::write(scratch.path("full/mine"), b"dear").unwrap();
    std::fs::write(scratch.path("lines"), b"no manifest").unwrap();
    run_well(sort(words(
        &scratch,
        "--format fixed:2 --parts {}fixed {}in",
    )));
    for (line, wanted) in [
        ("--parts {}out -o {}file {}in", "cannot be used with"),
        ("--part-count 3 {}in", "--parts"),
        ("--part-size 3M {}in", "--parts"),
        ("--part-name {} {}in", "--parts"),
        ("--overwrite {}in", "--parts"),
        ("--overwrite -o {}file {}in", "cannot be used with"),
        ("--part-count 3 -o {}file {}in", "cannot be used with"),
        (
            "--parts {}out --part-count 3 --part-size 3M {}in",
            "cannot be used with",
        ),
        ("--parts {}out --part-count 0 {}in", "1 to 100000 parts"),
        ("--parts {}out --part-size 0 {}in", "at least one byte"),
        ("--parts {}out --part-size 10% {}in", "no size here"),
        (
            "--parts {}out --part-name part {}in",
            "all parts would be called",
        ),
        ("--parts {}out --part-name a/{:05} {}in", "have no /"),
        (
            "--parts {}out --part-name {:05}{:05} {}in",
            "one {} for the number",
        ),
        (
            "--parts {}out --boundaries uniform --part-size 3M {}in",
            "say how many",
        ),
        (
            "--parts {}out --boundaries {}missing {}in",
            "it is not there",
        ),
        (
            "--parts {}out --boundaries {}lines {}in",
            "reading the manifest",
        ),
        (
            "--parts {}out --boundaries {}fixed/manifest.json {}in",
            "another format or key",
        ),
        (
            "--parts {}out --boundaries {}fixed/manifest.json --part-count 3 --format fixed:2 {}in",
            "says itself how many",
        ),
        ("--parts {}in {}in", "it is no folder"),
        ("--parts {}full {}in", "it is not empty"),
        (
            "--parts {}full --overwrite {}in",
            "holds no output of sort --parts",
        ),
        ("--parts {}no/such {}in", "No such file"),
    ] {
        // `{}` in a name stays as it is.
        let folder = format!("{}/", scratch.path.display());
        let words: Vec<String> = line
            .split_whitespace()
            .map(|word| match word.starts_with("{}") && word.len() > 2 {
                true => word.replacen("{}", &folder, 1),
                false => word.to_owned(),
            })
            .collect();
        run_badly(sort(words), &[wanted]);
        assert_eq!(scratch.names(), ["fixed", "full", "in", "lines"], "{line}");
        assert_eq!(names(&scratch.path("full")), ["mine"]);
    }
}

#[test]
fn what_is_there_stays_until_it_is_replaced() {
    let scratch = Scratch::new("parts-there");
    std::fs::write(scratch.path("in"), b"b\na\nc\n").unwrap();
    std::fs::create_dir(scratch.path("far")).unwrap();
    let line = "--part-count 2 --parts {}far {}in";
    let mode = |name: &str| std::fs::metadata(scratch.path(name)).unwrap().mode() & 0o777;
    // An empty folder keeps its mode.
    std::fs::set_permissions(scratch.path("far"), PermissionsExt::from_mode(0o750)).unwrap();
    run_well(sort(words(&scratch, line)));
    assert_eq!(joined(&scratch.path("far")), b"a\nb\nc\n");
    assert_eq!(mode("far"), 0o750);
    // One that is not empty stays, and so does what is not ours.
    run_badly(
        sort(words(&scratch, line)),
        &["it is not empty", "--overwrite"],
    );
    std::fs::write(scratch.path("far/mine"), b"dear").unwrap();
    let over = format!("--overwrite {line}");
    run_badly(
        sort(words(&scratch, &over)),
        &["\"mine\"", "Nothing was changed"],
    );
    assert_eq!(
        names(&scratch.path("far")),
        ["manifest.json", "mine", "part-00000", "part-00001"]
    );
    std::fs::remove_file(scratch.path("far/mine")).unwrap();
    // What replaces private files is private; a link is followed, and its name stays.
    for name in names(&scratch.path("far")) {
        let path = scratch.path("far").join(name);
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o640)).unwrap();
    }
    std::os::unix::fs::symlink("far", scratch.path("link")).unwrap();
    std::fs::write(scratch.path("in"), b"z\nx\ny\nw\n").unwrap();
    run_well(sort(words(
        &scratch,
        "--overwrite --part-name p{:01} --parts {}link {}in",
    )));
    assert_eq!(names(&scratch.path("far")), ["manifest.json", "p0"]);
    assert_eq!(joined(&scratch.path("far")), b"w\nx\ny\nz\n");
    assert_eq!(
        (mode("far"), mode("far/p0"), mode("far/manifest.json")),
        (0o750, 0o640, 0o640)
    );
    assert!(
        std::fs::symlink_metadata(scratch.path("link"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(scratch.names(), ["far", "in", "link"]);
}

/// Parts may be sorted onto themselves: they are inputs until the new ones are complete, and those are verified.
#[test]
fn parts_may_be_inputs() {
    let scratch = Scratch::new("parts-onto");
    let input = text(3_000_000, 33);
    std::fs::write(scratch.path("in"), &input).unwrap();
    run_well(sort(words(&scratch, "--part-count 5 --parts {}out {}in")));
    let line = "--overwrite --part-count 3 --report {}report --parts {}out";
    let mut command = sort(words(&scratch, line));
    command.args((0..5).map(|number| scratch.path("out").join(format!("part-{number:05}"))));
    run_well(command);
    assert!(joined(&scratch.path("out")) == sorted(&input));
    assert_eq!(names(&scratch.path("out")).len(), 4);
    let report = std::fs::read_to_string(scratch.path("report")).unwrap();
    assert!(report.contains("\"verified\": true"), "{report}");
}

#[test]
fn check_tells_what_is_not_as_the_manifest_says() {
    let scratch = Scratch::new("parts-check");
    std::fs::write(scratch.path("in"), text(2_000_000, 34)).unwrap();
    let out = scratch.path("out");
    let line = "--part-count 40 --parts {}out {}in";
    let part = |number: u32| out.join(format!("part-{number:05}"));
    type Deed<'a> = (&'a str, &'a dyn Fn());
    let alter = |number: u32, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = std::fs::read(part(number)).unwrap();
        change(&mut bytes);
        std::fs::write(part(number), bytes).unwrap();
    };
    let deeds: [Deed<'_>; 9] = [
        ("part-00001: the key that it begins from", &|| {
            let manifest = std::fs::read_to_string(out.join("manifest.json")).unwrap();
            let mut manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
            manifest["parts"][1]["from_key"] = "00".into();
            std::fs::write(out.join("manifest.json"), manifest.to_string()).unwrap();
        }),
        ("part-00017: it is missing", &|| {
            std::fs::remove_file(part(17)).unwrap()
        }),
        ("part-00000: it has", &|| {
            alter(0, &|bytes| bytes.truncate(7))
        }),
        ("part-00039: it has", &|| {
            alter(39, &|bytes| bytes.push(b'x'))
        }),
        ("part-00040: the manifest knows of no such part", &|| {
            std::fs::write(part(40), b"").unwrap();
        }),
        ("part-00020: ", &|| alter(20, &|bytes| bytes[1000] ^= 1)),
        ("part-00005: ", &|| {
            alter(5, &|bytes| {
                // The records of the part, the other way round.
                let mut lines: Vec<Vec<u8>> = bytes
                    .split_inclusive(|&byte| byte == b'\n')
                    .map(<[u8]>::to_vec)
                    .collect();
                lines.reverse();
                *bytes = lines.concat();
            })
        }),
        ("part-00031: out of order at byte 0", &|| {
            // Two parts that changed places, of the same length for once.
            let (one, other) = (
                std::fs::read(part(31)).unwrap(),
                std::fs::read(part(30)).unwrap(),
            );
            let manifest = std::fs::read_to_string(out.join("manifest.json")).unwrap();
            let mut manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
            let parts = manifest["parts"].as_array_mut().unwrap();
            for field in ["fingerprint", "first_key", "last_key"] {
                let kept = parts[31][field].take();
                parts[31][field] = parts[30][field].take();
                parts[30][field] = kept;
            }
            std::fs::write(out.join("manifest.json"), manifest.to_string()).unwrap();
            std::fs::write(part(30), one).unwrap();
            std::fs::write(part(31), other).unwrap();
        }),
        ("part-00012: it is no file", &|| {
            std::fs::remove_file(part(12)).unwrap();
            super::make_fifo(&part(12));
        }),
    ];
    for (wanted, deed) in deeds {
        run_well(sort(words(&scratch, line)));
        let told = check_well(&out);
        assert!(told.starts_with("parts: 40\nrecords: "), "{told}");
        deed();
        let (code, told) = check(&out);
        assert_eq!(code, Some(1), "{wanted}: {told}");
        assert!(told.contains(wanted), "{wanted}: {told}");
        assert!(!told.contains("as the manifest says"), "{told}");
        std::fs::remove_dir_all(&out).unwrap();
    }
    // A folder without a manifest, or with one that lies, is trouble.
    run_well(sort(words(&scratch, line)));
    let manifest = std::fs::read_to_string(out.join("manifest.json")).unwrap();
    for (from, to) in [
        ("\"version\": 1", "\"version\": 2"),
        ("part-00007", "../part-00007"),
        ("part-00008", "part-00007"),
        ("\"records\": ", "\"records\": 1"),
        ("\"parts\": [", "\"parts\": [], \"old\": ["),
        ("\"from_key\": \"", "\"from_key\": \"ff"),
        ("\"from_key\": \"", "\"from_key\": \"x"),
        ("\"lines\"", "{\"fixed\": 0}"),
        ("part-{:05}", "part"),
    ] {
        assert!(manifest.contains(from), "{from}");
        std::fs::write(out.join("manifest.json"), manifest.replacen(from, to, 1)).unwrap();
        let (code, told) = check(&out);
        assert_eq!(code, Some(2), "{from}: {told}");
        assert!(told.contains("sortmill: "), "{told}");
    }
    std::fs::remove_file(out.join("manifest.json")).unwrap();
    let (code, told) = check(&out);
    assert_eq!(code, Some(2));
    assert!(
        told.contains("it is not there") && told.contains("unfinished"),
        "{told}"
    );
}

/// Other data cut at the keys of an earlier run: what belongs together has one number.
#[test]
fn boundaries_of_an_earlier_run() {
    let scratch = Scratch::new("parts-earlier");
    for (name, seed) in [("one", 35), ("other", 36)] {
        std::fs::write(scratch.path(name), text(4_000_000, seed)).unwrap();
    }
    run_well(sort(words(&scratch, "--part-count 9 --parts {}a {}one")));
    run_well(sort(words(
        &scratch,
        "--boundaries {}a/manifest.json --parts {}b {}other",
    )));
    assert!(joined(&scratch.path("b")) == sorted(&std::fs::read(scratch.path("other")).unwrap()));
    let manifest = |name: &str| -> serde_json::Value {
        let text = std::fs::read(scratch.path(name).join("manifest.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    };
    let (a, b) = (manifest("a"), manifest("b"));
    for number in 0..9 {
        let (a, b) = (&a["parts"][number], &b["parts"][number]);
        assert_eq!(a["from_key"], b["from_key"]);
        assert!(b["first_key"].as_str() >= a["from_key"].as_str());
        if number > 0 {
            let line = std::fs::read(scratch.path("b").join(format!("part-{number:05}"))).unwrap();
            let first = line.split(|&byte| byte == b'\n').next().unwrap();
            let first: String = first.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(b["first_key"], first);
        }
    }
    assert_eq!(b["parts"].as_array().unwrap().len(), 9);
    check_well(&scratch.path("b"));
}

#[test]
fn a_dry_run_tells_of_parts_and_makes_none() {
    let scratch = Scratch::new("parts-dry");
    std::fs::write(scratch.path("in"), vec![b'\n'; 1 << 20]).unwrap();
    for (flags, wanted) in [
        (
            "--part-count 128",
            "parts            128, 8.0 KiB on average\n",
        ),
        (
            "--part-size 100KiB",
            "parts            11, 93.1 KiB on average\n",
        ),
        ("", "parts            1, 1.0 MiB on average\n"),
    ] {
        let line = format!("--dry-run {flags} --parts {{}}out {{}}in");
        let output = run_well(sort(words(&scratch, &line)));
        let plan = String::from_utf8(output.stdout).unwrap();
        assert!(plan.contains(wanted), "{plan}");
        assert_eq!(scratch.names(), ["in"]);
    }
    // A job that ends early makes none either.
    run_well(sort(words(
        &scratch,
        "--until reduce --part-count 9 --parts {}out {}in",
    )));
    assert_eq!(scratch.names(), ["in"]);
}

/// At any moment: distributing, writing parts, cutting, syncing, naming, removing the old ones.
#[test]
fn a_job_may_be_stopped_at_any_moment() {
    let scratch = Scratch::new("parts-stopped");
    std::fs::create_dir(scratch.path("temp")).unwrap();
    std::fs::write(scratch.path("small"), b"b\na\n").unwrap();
    let input = text(40_000_000, 37);
    let wanted = sorted(&input);
    std::fs::write(scratch.path("in"), &input).unwrap();
    let (mut stopped, mut killed) = (0, 0);
    for round in 0..14 {
        let _ = std::fs::remove_dir_all(scratch.path("out"));
        run_well(sort(words(&scratch, "--parts {}out {}small")));
        let line =
            format!("{LITTLE} --overwrite --part-count 300 -T {{}}temp --parts {{}}out {{}}in");
        let child = sort(words(&scratch, &line)).spawn().unwrap();
        until("the job's beginning", || {
            names_with(&scratch.path, ".out.sortmill-").pop()
        });
        // Not a wait for anything: the moment is what is varied.
        std::thread::park_timeout(std::time::Duration::from_millis(round / 2 * 90));
        let name = if round % 2 == 0 { "INT" } else { "KILL" };
        if Path::new(&format!("/proc/{}/stat", child.id())).exists() {
            signal(child.id(), name);
        }
        let output = finish(child);
        let out = joined(&scratch.path("out"));
        assert!(out == b"a\nb\n" || out == wanted);
        if name == "INT" && out == wanted {
            was_done_before(&output, name);
        } else if name == "INT" {
            stopped += 1;
            was_stopped_by(&output, name);
        } else if !output.status.success() {
            assert_eq!(output.status.code(), None);
            killed += 1;
            // What it leaves goes with the next.
            run_well(sort(words(&scratch, "-T {}temp -o {}other {}small")));
            std::fs::remove_file(scratch.path("other")).unwrap();
        } else {
            assert!(out == wanted);
        }
        check_well(&scratch.path("out"));
        assert_eq!(scratch.names(), ["in", "out", "small", "temp"]);
        assert_eq!(names(&scratch.path("temp")), Vec::<String>::new());
    }
    println!("stopped {stopped}, killed {killed} of 14");
    assert!(stopped > 1 && killed > 1);
}
