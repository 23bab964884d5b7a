//! `sortmill doctor` on the machine that the tests run on: what is printed, where, and the exit status.

use std::process::{Command, Output};

use serde_json::Value;

use crate::{PROGRAM, Scratch};

/// Runs `doctor` with `flags` in the folder `scratch`, with its own temporary folder there.
fn doctor(scratch: &Scratch, flags: &str) -> Output {
    let line = format!("exec {PROGRAM} doctor {flags}");
    shell(scratch, &line)
}

fn shell(scratch: &Scratch, line: &str) -> Output {
    let mut command = Command::new("sh");
    command.current_dir(scratch.path("")).args(["-c", line]);
    command.env("TMPDIR", "").output().unwrap()
}

fn stdout(output: &Output) -> &str {
    str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}

fn sections(output: &Output) -> Vec<Value> {
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["version"], 1);
    json["sections"].as_array().unwrap().clone()
}

fn findings(section: &Value) -> &Vec<Value> {
    section["findings"].as_array().unwrap()
}

#[test]
fn people_read_sections_and_programs_json() {
    let scratch = Scratch::new("doctor");
    std::fs::create_dir(scratch.path("data")).unwrap();
    let words = doctor(&scratch, "-T . data");
    let json = doctor(&scratch, "-T . --json data");
    let here = std::fs::canonicalize(scratch.path("")).unwrap();
    let here = here.to_str().unwrap();

    let text = stdout(&words);
    assert!(text.starts_with("machine\n"), "{text}");
    assert!(text.contains("\nmemory\n"), "{text}");
    let temp = format!("\nfolder {here} (temporary files)\n");
    assert!(text.contains(&temp), "{text}");
    assert!(text.contains(&format!("\nfolder {here}/data\n")), "{text}");
    assert!(text.contains("direct I/O: "), "{text}");

    let sections = sections(&json);
    let names: Vec<&str> = sections
        .iter()
        .map(|section| section["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["machine", "memory", "folder", "folder"]);
    assert_eq!(sections[2]["path"], here);
    assert_eq!(sections[2]["uses"], serde_json::json!(["temporary files"]));
    for finding in sections.iter().flat_map(findings) {
        let found = finding["found"].as_str().unwrap();
        assert!(!found.is_empty(), "{finding}");
    }
    // What is bad here depends on the machine; that it is told does not.
    let bad = sections
        .iter()
        .flat_map(findings)
        .any(|finding| finding["level"] == "bad");
    assert_eq!(json.status.code(), Some(if bad { 2 } else { 0 }));
    assert_eq!(stderr(&json).is_empty(), !bad, "{}", stderr(&json));
    assert_eq!(scratch.names(), ["data"]);
}

#[test]
fn the_folders_of_a_job_are_looked_at_once_each() {
    let scratch = Scratch::new("doctor-folders");
    for name in ["out", "temp"] {
        std::fs::create_dir(scratch.path(name)).unwrap();
    }
    let uses = |flags: &str| -> Vec<(String, String)> {
        let output = doctor(&scratch, &format!("--json {flags}"));
        let sections = sections(&output);
        let folders = sections
            .iter()
            .filter(|section| section["name"] == "folder");
        let name = |section: &Value| {
            let path = section["path"].as_str().unwrap();
            path.rsplit('/').next().unwrap().to_owned()
        };
        folders
            .map(|section| (name(section), section["uses"].to_string()))
            .collect()
    };
    let pair = |name: &str, uses: &str| (name.to_owned(), uses.to_owned());
    let (temp, output) = (r#"["temporary files"]"#, r#"["output"]"#);
    let both = r#"["temporary files","output"]"#;
    // Without --temp and $TMPDIR temporary files go beside the output, without an output to /var/tmp.
    assert_eq!(
        uses("-o out/file ."),
        [pair("out", both), pair("doctor-folders", "[]")]
    );
    assert_eq!(uses("."), [pair("tmp", temp), pair("doctor-folders", "[]")]);
    assert_eq!(uses(""), [pair("tmp", temp), pair("doctor-folders", "[]")]);
    assert_eq!(
        uses("-T temp -o out/file out temp ./temp/../out"),
        [pair("temp", temp), pair("out", output)]
    );
    // Something is said of two folders on one disk.
    let shared = doctor(&scratch, "-T temp -o out/file out");
    assert!(stdout(&shared).contains("temporary files and output: "));
}

#[test]
fn what_is_bad_is_2_with_words() {
    let scratch = Scratch::new("doctor-bad");
    let missing = doctor(&scratch, "-T . missing");
    assert_eq!(missing.status.code(), Some(2));
    assert!(stdout(&missing).contains("BAD"), "{}", stdout(&missing));
    assert!(
        stdout(&missing).contains("$ mkdir -p missing\n"),
        "{}",
        stdout(&missing)
    );
    assert!(
        stderr(&missing).contains("folder of missing"),
        "{}",
        stderr(&missing)
    );

    let few = shell(
        &scratch,
        &format!("ulimit -n 40; exec {PROGRAM} doctor -T ."),
    );
    assert_eq!(few.status.code(), Some(2));
    assert!(
        stdout(&few).contains("open files: at most 40"),
        "{}",
        stdout(&few)
    );
    assert!(stderr(&few).contains("open files"), "{}", stderr(&few));

    let nowhere = doctor(&scratch, "-o missing/out");
    assert_eq!(nowhere.status.code(), Some(2));
    assert_eq!(stdout(&nowhere), "");
    assert!(
        stderr(&nowhere).contains("finding the output"),
        "{}",
        stderr(&nowhere)
    );
    assert_eq!(scratch.names(), [""; 0]);
}

/// Where the machine has a file system in memory, temporary files there are bad, and an output is not.
#[test]
fn memory_is_no_place_for_temporary_files() {
    let scratch = Scratch::new("doctor-memory");
    let shm = std::path::Path::new("/dev/shm");
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let is_there = mounts.lines().any(|line| line.contains(" /dev/shm tmpfs "));
    if !shm.is_dir() || !is_there {
        return;
    }
    let level = |flags: &str| {
        let output = doctor(&scratch, &format!("--json {flags}"));
        let sections = sections(&output);
        let folder = sections
            .iter()
            .find(|section| section["path"] == "/dev/shm");
        let mut all = findings(folder.unwrap()).clone().into_iter();
        let system = all
            .find(|finding| finding["about"] == "file system")
            .unwrap();
        (
            output.status.code(),
            system["level"].as_str().unwrap().to_owned(),
        )
    };
    assert_eq!(level("-T /dev/shm"), (Some(2), "bad".to_owned()));
    assert_eq!(level("-T . -o /dev/shm/out").1, "could_be_better");
}

/// Names need not be text; JSON does.
#[test]
fn a_folder_whose_name_is_no_text() {
    let scratch = Scratch::new("doctor-bytes");
    let output = shell(
        &scratch,
        &format!("d=$(printf 'T\\377'); mkdir \"$d\"; exec {PROGRAM} doctor --json -T \"$d\""),
    );
    let sections = sections(&output);
    let paths: Vec<_> = sections
        .iter()
        .filter_map(|section| section["path"].as_str())
        .collect();
    assert!(
        paths[0].ends_with("/T\u{fffd}"),
        "{paths:?} {}",
        stderr(&output)
    );
}
