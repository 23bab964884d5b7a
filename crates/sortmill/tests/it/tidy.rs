//! The source tree keeps the house rules: each rule of STYLE.md that a program can see is a test here.
//!
//! In comes every source file of the workspace, read once per test; out go the places that break a rule, as
//! `file:line: rule: what was found`. A rule is a plain function over one file, so that its own
//! test can show it a planted violation and a rule that cannot fail does not survive (`planted.rs`).
//!
//! `text.rs` reads the files without parsing them: enough for rules about names, and no more. What a macro
//! builds, or a glob brings in, is not seen.

mod planted;
mod text;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use text::{
    attributes, begins_with_any, calls, code, count, line_of, name_parts, paths,
    split_toml_comment, without_tests, words,
};

/// The stages of DESIGN: none of them may know another.
const STAGES: [&str; 12] = [
    "read",
    "cut",
    "map",
    "partition",
    "send",
    "receive",
    "spill",
    "load",
    "sort",
    "merge",
    "reduce",
    "write",
];

/// Files beside the stages that a stage may use: the sort kernel.
const STAGE_PARTS: [&str; 1] = ["kernel"];

/// Where `unsafe` may stand: structures of Arrow's come through capsules, and the last is what was tried for the kernel
/// and did not help.
const UNSAFE_HOMES: [&str; 4] = [
    "crates/sortmill-io/",
    "crates/sortmill/src/stage/kernel.rs",
    "crates/sortmill-py/src/arrow.rs",
    "crates/sortmill/benches/kernels/streaming.rs",
];

/// Names that say nothing, or that name a thing which has another name here (STYLE.md, Words).
const FORBIDDEN_WORDS: [&str; 9] = [
    "manager", "helper", "util", "utils", "page", "morsel", "bucket", "shard", "tuple",
];

/// The operating system's own words, in which `page` is the right one.
const ALLOWED_PAIRS: [(&str, &str); 3] = [("huge", "page"), ("page", "cache"), ("page", "aligned")];

const FILE_LINES_MAX: usize = 800;

/// One file: its path from the root of the checkout, with `/`, and its text.
struct Source {
    path: String,
    text: String,
}

/// A rule: the lines (from 1) of one file that break it, and what stands there.
type Rule = fn(&Source) -> Vec<(usize, String)>;

// -------------------------------------------------------------------------------------------------
// The rules

/// `unsafe` is for the crate that talks to the kernel, and for the sort kernel.
fn unsafe_outside_its_homes(source: &Source) -> Vec<(usize, String)> {
    if !is_rust(source)
        || UNSAFE_HOMES
            .iter()
            .any(|home| source.path.starts_with(home))
    {
        return Vec::new();
    }
    let code = code(&source.text);
    words(&code)
        .into_iter()
        .filter(|(_, word)| word == "unsafe")
        .map(|(line, _)| {
            (
                line,
                format!("`unsafe`: it may stand in {UNSAFE_HOMES:?} only"),
            )
        })
        .collect()
}

/// Threads and locks come from `sortmill_io::sync`, or shuttle could not schedule them. The command line runs
/// no engine and tests run under their own harness: both may use the standard ones.
fn threads_outside_sync(source: &Source) -> Vec<(usize, String)> {
    if !is_crate_source(source)
        || source.path == "crates/sortmill-io/src/sync.rs"
        || source.path.starts_with("crates/sortmill-cli/")
    {
        return Vec::new();
    }
    let forbidden = [
        "std::thread",
        "std::sync::Mutex",
        "std::sync::Condvar",
        "std::sync::RwLock",
        "std::sync::Barrier",
        "std::sync::mpsc",
    ];
    paths(&without_tests(&code(&source.text)))
        .into_iter()
        // A whole module under its own name, or a glob, would hide what is taken from it.
        .filter(|(_, path)| {
            begins_with_any(path, &forbidden) || path == "std::sync" || path == "std::sync::*"
        })
        .map(|(line, path)| (line, format!("`{path}`: take it from sortmill_io::sync")))
        .collect()
}

/// A stage is a function that knows what comes in and what goes out, never its neighbours.
fn stage_names_another_stage(source: &Source) -> Vec<(usize, String)> {
    let Some(own) = stage_of(&source.path) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if !STAGES.contains(&own) && !STAGE_PARTS.contains(&own) {
        found.push((
            1,
            format!("`{own}` is in neither STAGES nor STAGE_PARTS of tidy.rs"),
        ));
    }
    for (line, path) in paths(&code(&source.text)) {
        let named = stage_in(&path)
            .or_else(|| path.strip_prefix("super::").and_then(first_stage))
            .filter(|named| *named != own);
        if let Some(named) = named {
            found.push((
                line,
                format!("`{path}`: the stage `{own}` names the stage `{named}`"),
            ));
        }
    }
    found
}

/// `run` wires the stages; whoever else names two of them has begun to wire as well.
fn two_stages_outside_run(source: &Source) -> Vec<(usize, String)> {
    let Some(file) = source.path.strip_prefix("crates/sortmill/src/") else {
        return Vec::new();
    };
    let is_run = file == "run.rs" || file.starts_with("run/");
    if !is_rust(source) || is_run || file == "stage.rs" || file.starts_with("stage/") {
        return Vec::new();
    }
    let mut first: Option<&str> = None;
    let mut found = Vec::new();
    for (line, path) in paths(&code(&source.text)) {
        let Some(named) = stage_in(&path) else {
            continue;
        };
        match first {
            None => first = Some(named),
            Some(one) if one == named => {}
            Some(one) => found.push((
                line,
                format!("names the stages `{one}` and `{named}`; only run does"),
            )),
        }
    }
    found
}

/// The engine reaches files, sockets and the kernel through `sortmill_io` alone, or faults could not be injected.
fn system_calls_in_the_engine(source: &Source) -> Vec<(usize, String)> {
    if !is_rust(source) || !source.path.starts_with("crates/sortmill/src/") {
        return Vec::new();
    }
    let forbidden = [
        "std::fs",
        "std::net",
        "std::os::unix::fs",
        "std::os::unix::net",
        "rustix",
        "libc",
        "io_uring",
    ];
    paths(&code(&source.text))
        .into_iter()
        .filter(|(_, path)| begins_with_any(path, &forbidden))
        .map(|(line, path)| (line, format!("`{path}`: go through sortmill_io::Os")))
        .collect()
}

/// A file opens by saying what comes in, what goes out and why this way.
fn file_without_opening(source: &Source) -> Vec<(usize, String)> {
    if !is_crate_source(source) || source.text.starts_with("//!") {
        return Vec::new();
    }
    vec![(1, "the file does not open with `//!`".to_owned())]
}

/// A longer file holds two things.
fn file_too_long(source: &Source) -> Vec<(usize, String)> {
    let line_count = source.text.lines().count();
    if !is_rust(source) || line_count <= FILE_LINES_MAX {
        return Vec::new();
    }
    vec![(
        line_count,
        format!("{line_count} lines, {FILE_LINES_MAX} are the most"),
    )]
}

/// A lint is silenced by `expect` with a reason, which also tells when it is no longer needed.
fn lint_silenced_for_good(source: &Source) -> Vec<(usize, String)> {
    if !is_rust(source) {
        return Vec::new();
    }
    let code = code(&source.text);
    let mut found = Vec::new();
    for (start, end) in attributes(&code) {
        let attribute = &code[start..end];
        let line = line_of(&code, start);
        if calls(attribute, "allow") {
            found.push((
                line,
                "`allow(` in an attribute: write #[expect(..., reason = \"...\")]".to_owned(),
            ));
        }
        if calls(attribute, "expect") && !words(attribute).iter().any(|(_, word)| word == "reason")
        {
            found.push((
                line,
                "`expect(` in an attribute without a reason".to_owned(),
            ));
        }
    }
    found
}

/// Each dependency says in one line what it is for, behind it or above it. Our own crates need not.
fn dependency_without_reason(source: &Source) -> Vec<(usize, String)> {
    if !source.path.ends_with("Cargo.toml") {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut inside = false;
    let mut above = "";
    // An entry may go on over several lines, until its brackets close.
    let mut entry: Option<(usize, String, bool)> = None;
    let mut depth = 0;
    for (index, line) in source.text.lines().enumerate() {
        let (value, comment) = split_toml_comment(line);
        let trimmed = value.trim();
        if depth == 0 && trimmed.starts_with('[') {
            let table = trimmed.trim_matches(['[', ']']);
            inside = table.ends_with("dependencies");
            if table.contains("dependencies.")
                && comment.is_none()
                && !above.trim_start().starts_with('#')
            {
                found.push((index + 1, format!("[{table}] has no `#` reason")));
            }
        } else if inside && !trimmed.is_empty() {
            let (_, text, has_reason) = entry.get_or_insert_with(|| {
                (
                    index + 1,
                    String::new(),
                    above.trim_start().starts_with('#'),
                )
            });
            text.push_str(trimmed);
            *has_reason |= comment.is_some();
            depth += count(trimmed, &['{', '[']) - count(trimmed, &['}', ']']);
        }
        if depth == 0
            && let Some((line, text, has_reason)) = entry.take()
        {
            let is_ours = text.contains("path =") || text.contains("workspace = true");
            if !has_reason && !is_ours {
                let name = text.split('=').next().unwrap_or("").trim();
                found.push((line, format!("the dependency `{name}` has no `#` reason")));
            }
        }
        above = line;
    }
    found
}

/// Nothing is left half done: what is missing stands in an issue.
fn left_undone(source: &Source) -> Vec<(usize, String)> {
    // Spelled in halves, so that this file keeps its own rule.
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
    ];
    let macros = [concat!("to", "do"), concat!("unimple", "mented")];
    let mut found = Vec::new();
    for (line, word) in words(&source.text) {
        if marks.contains(&word.as_str()) {
            found.push((line, format!("`{word}`: finish it, or open an issue")));
        }
    }
    if is_rust(source) {
        for (index, line) in code(&source.text).lines().enumerate() {
            for name in macros {
                if line.contains(&format!("{name}!(")) {
                    found.push((
                        index + 1,
                        format!("`{name}!(`: finish it, or open an issue"),
                    ));
                }
            }
        }
    }
    found
}

/// One word per thing, and none that says nothing: looked for in the names that the engine declares.
fn forbidden_name(source: &Source) -> Vec<(usize, String)> {
    if !is_rust(source) || !source.path.starts_with("crates/sortmill/src/") {
        return Vec::new();
    }
    let code = code(&source.text);
    let words = words(&code);
    let mut found = Vec::new();
    for (index, (_, keyword)) in words.iter().enumerate() {
        if ![
            "struct", "enum", "trait", "type", "fn", "mod", "let", "const", "static",
        ]
        .contains(&keyword.as_str())
        {
            continue;
        }
        let Some((line, name)) = words[index + 1..].iter().find(|(_, word)| word != "mut") else {
            continue;
        };
        let parts = name_parts(name);
        for (at, part) in parts.iter().enumerate() {
            let before = at
                .checked_sub(1)
                .map_or("", |before| parts[before].as_str());
            let after = parts.get(at + 1).map_or("", String::as_str);
            let is_allowed =
                ALLOWED_PAIRS.contains(&(before, part)) || ALLOWED_PAIRS.contains(&(part, after));
            if FORBIDDEN_WORDS.contains(&part.as_str()) && !is_allowed {
                found.push((
                    *line,
                    format!("`{name}`: `{part}` is no word of this house (STYLE.md, Words)"),
                ));
            }
        }
    }
    found
}

// -------------------------------------------------------------------------------------------------
// The rules over the tree

macro_rules! rule_tests {
    ($($name:ident: $rule:expr;)+) => {
        /// Each rule over the whole tree.
        mod tree {
            use super::*;
            $(
                #[test]
                fn $name() {
                    keeps(stringify!($name), $rule);
                }
            )+
        }
    };
}

rule_tests! {
    unsafe_stays_in_its_homes: unsafe_outside_its_homes;
    threads_come_from_sync: threads_outside_sync;
    stages_do_not_know_each_other: stage_names_another_stage;
    only_run_names_two_stages: two_stages_outside_run;
    the_engine_makes_no_system_calls: system_calls_in_the_engine;
    every_file_opens_with_a_comment: file_without_opening;
    no_file_is_too_long: file_too_long;
    lints_are_silenced_with_a_reason: lint_silenced_for_good;
    dependencies_have_a_reason: dependency_without_reason;
    nothing_is_left_undone: left_undone;
    names_are_words_of_this_house: forbidden_name;
}

#[test]
fn the_tree_is_seen() {
    let sources = tree();
    for path in [
        "Cargo.toml",
        "crates/sortmill-io/src/sync.rs",
        "crates/sortmill/src/lib.rs",
        "crates/sortmill/tests/it/tidy.rs",
        "crates/sortmill-cli/Cargo.toml",
    ] {
        assert!(
            sources.iter().any(|source| source.path == path),
            "{path} is not among the files read"
        );
    }
}

fn keeps(name: &str, rule: Rule) {
    let mut places = String::new();
    for source in tree() {
        for (line, what) in rule(&source) {
            writeln!(places, "{}:{line}: {name}: {what}", source.path).expect("a String takes it");
        }
    }
    assert!(
        places.is_empty(),
        "the house rule `{name}` is broken (STYLE.md says why it is one):\n{places}"
    );
}

/// Every file the rules look at: Rust, Cargo.toml and the scripts beside them.
fn tree() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut sources = Vec::new();
    for path in files_under(&root) {
        let relative = path.strip_prefix(&root).expect("found under the root");
        let text =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        sources.push(Source {
            path: relative.to_string_lossy().replace('\\', "/"),
            text,
        });
    }
    sources
}

fn files_under(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let entry = entry.expect("a folder can be listed to its end");
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type().expect("a listed file has a type");
        // Hidden folders, what cargo builds, and what the benchmarks leave are not our source.
        if kind.is_dir() && !name.starts_with('.') && name != "target" && name != "large" {
            found.extend(files_under(&entry.path()));
        } else if kind.is_file()
            && [".rs", ".toml", ".py", ".sh"]
                .iter()
                .any(|end| name.ends_with(end))
        {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

// -------------------------------------------------------------------------------------------------
// Where a file stands

fn is_rust(source: &Source) -> bool {
    source.path.ends_with(".rs")
}

/// Whether it is a file of `crates/*/src`.
fn is_crate_source(source: &Source) -> bool {
    let mut parts = source.path.split('/');
    is_rust(source) && parts.next() == Some("crates") && parts.nth(1) == Some("src")
}

/// The stage a file belongs to: `stage/sort.rs` and `stage/sort/gather.rs` to `sort`, `stage/mod.rs` to none.
fn stage_of(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("crates/sortmill/src/stage/")?;
    let name = inside.split('/').next()?;
    let name = name.strip_suffix(".rs").unwrap_or(name);
    (name != "mod").then_some(name)
}

/// The stage that a path names through the module `stage`.
fn stage_in(path: &str) -> Option<&'static str> {
    let mut rest = path;
    for root in ["crate::", "sortmill::", "self::"] {
        rest = rest.strip_prefix(root).unwrap_or(rest);
    }
    while let Some(upper) = rest.strip_prefix("super::") {
        rest = upper;
    }
    rest.strip_prefix("stage::").and_then(first_stage)
}

fn first_stage(path: &str) -> Option<&'static str> {
    let first = path.split("::").next()?;
    STAGES.into_iter().find(|stage| *stage == first)
}
