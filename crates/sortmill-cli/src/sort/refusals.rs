//! Options of GNU's that do not go together, refused as GNU refuses them, and those of ours that mean nothing beside
//! them. What one option says by itself is refused where it is read.

use std::path::{Path, PathBuf};

use sortmill::error::Result;

use crate::columns::Kind;

use super::keys::{Options, refused};
use super::options::CheckWord;
use super::{Called, Sort, made};

/// Looks at what was asked as a whole.
///
/// # Errors
/// The first that does not go with another.
pub fn look(sort: &Sort) -> Result<()> {
    said_once(sort)?;
    made::look(sort)?;
    if let Some(kind) = sort.gnu.checks() {
        if sort.called == Called::SortmillMerge {
            let cause = "a merge looks at the order of what it merges; -c alone is `sort -c`";
            return Err(refused(cause));
        }
        without_output(sort, kind)?;
    }
    if sort.gnu.files0_from.is_some() && !sort.files.is_empty() {
        let cause = "files are named by --files0-from or on the command line, not both";
        return Err(refused(cause));
    }
    if sort.gnu.debug {
        debugging(sort)?;
    }
    match sort.shape.format.is_lines() {
        true => Ok(()),
        false => without_lines(sort),
    }
}

/// What may be said several times, if it is the same each time.
fn said_once(sort: &Sort) -> Result<()> {
    let gnu = &sort.gnu;
    let is_one = |paths: &[PathBuf]| paths.iter().all(|path| *path == paths[0]);
    if !is_one(&sort.output) {
        return Err(refused("-o: there is one output, and two were named"));
    }
    if !is_one(&gnu.random_source) {
        return Err(refused("--random-source: two files were named"));
    }
    let programs = &gnu.compress_program;
    if programs.iter().any(|program| *program != programs[0]) {
        return Err(refused("--compress-program: two programs were named"));
    }
    let quiet = gnu.check_quietly || gnu.check.contains(&CheckWord::Quiet);
    if quiet && gnu.check.contains(&CheckWord::DiagnoseFirst) {
        let cause = "-c tells where the order ends, -C does not; one of them, please";
        return Err(refused(cause));
    }
    Ok(())
}

/// A check reads one input and writes nothing.
fn without_output(sort: &Sort, kind: CheckWord) -> Result<()> {
    let flag = match kind {
        CheckWord::DiagnoseFirst => "-c",
        CheckWord::Quiet => "-C",
    };
    let not_with = |other: &str| {
        let cause = format!("{flag} writes nothing, so {other} means nothing beside it");
        Err(refused(cause))
    };
    if let [_, second, ..] = &sort.files[..] {
        let second = second.display();
        return Err(refused(format!(
            "{flag} looks at one input; {second} is another"
        )));
    }
    for (given, other) in [
        (!sort.output.is_empty(), "-o"),
        (sort.parts.is_some(), "--parts"),
        (sort.on.is_some(), "--on"),
        (sort.until.is_some(), "--until"),
        (sort.dry_run, "--dry-run"),
        (sort.report.is_some(), "--report"),
        (sort.trace.is_some(), "--trace"),
        (sort.gnu.debug, "--debug"),
        (sort.compress_output.is_some(), "--compress-output"),
        (sort.compress_level.is_some(), "--compress-level"),
        (sort.compress_temp.is_some(), "--compress-temp"),
    ] {
        if given {
            return not_with(other);
        }
    }
    Ok(())
}

/// Lines under lines are for people, and so for standard output.
fn debugging(sort: &Sort) -> Result<()> {
    for (given, other) in [
        (!sort.output.is_empty(), "-o"),
        (sort.parts.is_some(), "--parts"),
        (sort.on.is_some(), "--on"),
        (sort.until.is_some(), "--until"),
        (sort.compress_output.is_some(), "--compress-output"),
        (sort.header > 0, "--header"),
    ] {
        if given {
            let cause =
                format!("--debug writes to standard output for people to read, not {other}");
            return Err(refused(cause));
        }
    }
    Ok(())
}

/// Options about lines mean nothing for records of other kinds. `-s` is how those are sorted anyway.
fn without_lines(sort: &Sort) -> Result<()> {
    let gnu = &sort.gnu;
    let letters = Options::of_all(gnu).letters();
    let hint = match sort.shape.format {
        Kind::Plain(_) => {
            "Of fixed records and pairs, --key says what decides: OFFSET:LENGTH, then :r, :signed and so on."
        }
        Kind::Csv | Kind::Tsv | Kind::Json => {
            "Of columns, --by says what decides: NAME, -NAME, NAME:num."
        }
    };
    let about_lines = |flag: &str| {
        let cause = format!("{flag} is about lines, and --format says otherwise");
        Err(refused(cause).hint(hint))
    };
    if let Some(letter) = letters.chars().next() {
        return about_lines(&format!("-{letter}"));
    }
    for (given, flag) in [
        (!gnu.field_separator.is_empty(), "-t"),
        (gnu.zero_terminated, "-z"),
        (gnu.debug, "--debug"),
    ] {
        if given {
            return about_lines(flag);
        }
    }
    Ok(())
}

/// The output, if it is a file: `-` too is the name of one, as GNU has it.
pub fn output(sort: &Sort) -> Option<PathBuf> {
    let path = sort.output.first()?;
    Some(match path.as_os_str() == "-" {
        true => Path::new(".").join(path),
        false => path.clone(),
    })
}
