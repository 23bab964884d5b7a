//! Each rule of `tidy` on planted files: in comes a text that breaks it, out go the lines it must name. A rule
//! that found nothing here could not fail over the tree either.

use super::*;

/// Asserts that `rule` finds the lines `expected` in a file with this path and text, and no other.
#[track_caller]
fn check(rule: Rule, path: &str, text: &str, expected: &[usize]) {
    let source = Source {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    let found = rule(&source);
    let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, expected, "in {path}:\n{text}\nfound {found:?}");
}

#[test]
fn finds_unsafe() {
    let text = "// unsafe in a comment\nconst A: &str = \"unsafe\";\nfn f() { unsafe { g() } }\n";
    check(
        unsafe_outside_its_homes,
        "crates/sortmill/src/run.rs",
        text,
        &[3],
    );
    check(
        unsafe_outside_its_homes,
        "crates/sortmill/src/stage/sort.rs",
        text,
        &[3],
    );
    check(
        unsafe_outside_its_homes,
        "crates/sortmill/tests/it/sort.rs",
        text,
        &[3],
    );
    check(
        unsafe_outside_its_homes,
        "crates/sortmill/src/stage/kernel.rs",
        text,
        &[],
    );
    check(
        unsafe_outside_its_homes,
        "crates/sortmill-io/src/uring.rs",
        text,
        &[],
    );
    check(
        unsafe_outside_its_homes,
        "crates/sortmill/src/lib.rs",
        "#![forbid(unsafe_code)]",
        &[],
    );
}

#[test]
fn finds_threads_and_locks() {
    let text = "use std::{fmt, sync::{Arc, Mutex}};\nuse std::thread;\nfn f() { std::sync::mpsc::channel(); }\n\
                use std::sync;\nuse sortmill_io::sync::Mutex as M;\nuse std::sync::atomic::AtomicU64;\n";
    check(
        threads_outside_sync,
        "crates/sortmill/src/queue.rs",
        text,
        &[1, 2, 3, 4],
    );
    check(
        threads_outside_sync,
        "crates/sortmill-io/src/posix.rs",
        text,
        &[1, 2, 3, 4],
    );
    check(
        threads_outside_sync,
        "crates/sortmill-io/src/sync.rs",
        text,
        &[],
    );
    check(
        threads_outside_sync,
        "crates/sortmill-cli/src/progress.rs",
        text,
        &[],
    );
    check(
        threads_outside_sync,
        "crates/sortmill/tests/it/limits.rs",
        text,
        &[],
    );
    let tested = "#[cfg(test)]\nmod tests {\n    use std::thread;\n}\nuse std::sync::RwLock;\n";
    check(
        threads_outside_sync,
        "crates/sortmill/src/queue.rs",
        tested,
        &[5],
    );
    let untested = "#[cfg(not(test))]\nuse std::thread;\n";
    check(
        threads_outside_sync,
        "crates/sortmill/src/queue.rs",
        untested,
        &[2],
    );
}

#[test]
fn finds_a_stage_that_names_another() {
    let text = "use crate::stage::{kernel, load::Loaded};\nuse super::sort::sort;\nuse super::kernel;\n\
                use crate::{order, stage::write};\nuse super::super::order;\n// crate::stage::cut\n";
    check(
        stage_names_another_stage,
        "crates/sortmill/src/stage/sort.rs",
        text,
        &[1, 4],
    );
    check(
        stage_names_another_stage,
        "crates/sortmill/src/stage/kernel.rs",
        text,
        &[1, 2, 4],
    );
    check(
        stage_names_another_stage,
        "crates/sortmill/src/run.rs",
        text,
        &[],
    );
    check(
        stage_names_another_stage,
        "crates/sortmill/src/stage/mod.rs",
        "pub mod cut;",
        &[],
    );
    check(
        stage_names_another_stage,
        "crates/sortmill/src/stage/gather.rs",
        "//! x",
        &[1],
    );
}

#[test]
fn finds_a_second_place_that_wires_stages() {
    let text = "use crate::stage::load;\nfn f() { crate::stage::load::load(); super::stage::write::open(); }\n";
    check(
        two_stages_outside_run,
        "crates/sortmill/src/plan.rs",
        text,
        &[2],
    );
    check(
        two_stages_outside_run,
        "crates/sortmill/src/run.rs",
        text,
        &[],
    );
    check(
        two_stages_outside_run,
        "crates/sortmill/src/run/sort.rs",
        text,
        &[],
    );
    let one = "use crate::stage::load::{self, Loaded};\n";
    check(
        two_stages_outside_run,
        "crates/sortmill/src/plan.rs",
        one,
        &[],
    );
}

#[test]
fn finds_system_calls() {
    let text = "use std::{io, fs::File};\nuse rustix::fs::open;\nfn f() { libc::getpid(); }\n\
                use std::net::TcpStream;\nlet libc = 1;\nuse io_uring;\nuse std::fmt;\n";
    check(
        system_calls_in_the_engine,
        "crates/sortmill/src/manifest.rs",
        text,
        &[1, 2, 3, 4, 6],
    );
    check(
        system_calls_in_the_engine,
        "crates/sortmill-io/src/posix.rs",
        text,
        &[],
    );
    check(
        system_calls_in_the_engine,
        "crates/sortmill/tests/it/sort.rs",
        text,
        &[],
    );
}

#[test]
fn finds_a_file_without_opening() {
    check(
        file_without_opening,
        "crates/sortmill/src/a.rs",
        "use std::fmt;\n//! late\n",
        &[1],
    );
    check(
        file_without_opening,
        "crates/sortmill/src/a.rs",
        "//! What comes in.\n",
        &[],
    );
    check(
        file_without_opening,
        "crates/sortmill/Cargo.toml",
        "[package]\n",
        &[],
    );
}

#[test]
fn finds_a_long_file() {
    check(
        file_too_long,
        "crates/sortmill/src/a.rs",
        &"\n".repeat(FILE_LINES_MAX),
        &[],
    );
    check(
        file_too_long,
        "crates/sortmill/src/a.rs",
        &"\n".repeat(FILE_LINES_MAX + 1),
        &[801],
    );
}

#[test]
fn finds_a_silenced_lint() {
    let text = "#[allow(dead_code)]\n#![cfg_attr(test, allow(unused))]\n#[expect(dead_code)]\n\
                #[expect(dead_code, reason = \"a test uses it\")]\n// #[allow(x)]\nfn f() { allow(1); }\n";
    check(
        lint_silenced_for_good,
        "crates/sortmill/src/a.rs",
        text,
        &[1, 2, 3],
    );
}

#[test]
fn finds_a_dependency_without_reason() {
    let text = "[package]\nname = \"a\"\n[dependencies]\na = \"1\"\nb = { version = \"1#2\" }\nc = \"1\" # why\n\
                # why\nd = \"1\"\nsortmill = { path = \"../sortmill\" }\ne = { workspace = true }\n\
                f = { version = \"1\", features = [\n  \"x\",\n] } # why\ng = { version = \"1\", features = [\n\
                \"x\"] }\n[dev-dependencies]\nh = \"1\"\n[target.'cfg(unix)'.dependencies]\ni = \"1\"\n\
                [dependencies.j]\nversion = \"1\"\n[features]\nk = []\n";
    check(
        dependency_without_reason,
        "crates/a/Cargo.toml",
        text,
        &[4, 5, 14, 17, 19, 20],
    );
}

#[test]
fn finds_what_is_left_undone() {
    let text = concat!(
        "// TO",
        "DO later\n// FIX",
        "ME\nfn f() { to",
        "do!() }\nunimple",
        "mented!(\"x\");\n",
        "// XX",
        "X\nlet template = \"XXXXXX\"; // todo, in lower case, is a word\n",
    );
    check(
        left_undone,
        "crates/sortmill/src/a.rs",
        text,
        &[1, 2, 5, 3, 4],
    );
    check(
        left_undone,
        "bench/compare.py",
        concat!("# TO", "DO\n"),
        &[1],
    );
}

#[test]
fn finds_forbidden_names() {
    let text = "struct BufferManager;\nmod utils;\nlet mut page_bytes = 1;\nfn bucket_of() {}\nenum Tuple {}\n\
                fn ask_for_huge_pages() {}\nlet is_in_page_cache = page;\n// a page, a shard\ntrait Morsels {}\n\
                struct HugePage;\nlet helpers = 1;\n";
    check(
        forbidden_name,
        "crates/sortmill/src/a.rs",
        text,
        &[1, 2, 3, 4, 5, 9, 11],
    );
    check(forbidden_name, "crates/sortmill-io/src/a.rs", text, &[]);
}
