//! `sort` for another program in this process: in come the words of its command line, out goes a report or an error,
//! and nothing is said or shown but with `--verbose` and `--progress`, or ended. Python's `sort` is this.

use std::ffi::OsString;

use clap::FromArgMatches;
use sortmill::error::{Error, ErrorKind, Result};
use sortmill::queue::Stop;
use sortmill::report::Report;
use sortmill::run;

use super::keys::refused;
use super::side;
use super::words::{self, Way};
use super::{Called, Sort, files_from, refusals};

/// The long names of its options, and what each takes: `nothing`, a `value`, or `either`.
pub fn sort_options() -> impl Iterator<Item = (String, &'static str)> {
    let table = Called::SortmillSort.table();
    let mut all = Vec::new();
    for arg in table.get_arguments() {
        let takes = match (arg.get_action().takes_values(), arg.is_require_equals_set()) {
            (false, _) => "nothing",
            (true, false) => "value",
            (true, true) => "either",
        };
        let aliases = arg.get_all_aliases().unwrap_or_default();
        let names = arg.get_long().into_iter().chain(aliases);
        all.extend(names.map(|name| (name.to_owned(), takes)));
    }
    all.into_iter()
}

/// Sorts as `sortmill sort` with these words behind it would, and answers its report. `stop` ends it early.
///
/// # Errors
/// [`ErrorKind::Usage`] for words that cannot be read, and for what is no sorting (`-c`, `--debug`, `--dry-run`); those of
/// the job.
pub fn sort_as_asked(words: Vec<OsString>, stop: &Stop) -> Result<Report> {
    let unread = |cause: String| Error::new(ErrorKind::Usage, "reading the options", cause);
    let mut table = Called::SortmillSort.table();
    let read = words::read(
        words,
        &table,
        Way {
            options_first: false,
            old_keys: false,
        },
    );
    let read = read.map_err(|refusal| unread(refusal.cause))?;
    let words = std::iter::once("sort".into()).chain(read.words);
    let told = |error: clap::Error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        unread(first.trim_start_matches("error: ").to_owned())
    };
    let matches = table.try_get_matches_from_mut(words).map_err(told)?;
    let mut sort = Sort::from_arg_matches(&matches).map_err(told)?;
    sort.called = Called::SortmillSort;
    sort.old_keys = read.old_keys;
    sort.quiet = !sort.verbose;
    refusals::look(&sort)?;
    if sort.gnu.checks().is_some() || sort.gnu.debug || sort.dry_run {
        return Err(refused(
            "-c, --debug and --dry-run are of the command line only",
        ));
    }
    if let Some(from) = &sort.gnu.files0_from {
        sort.files = files_from::names(from)?;
    }
    side::look(&sort)?;
    let os = sort.machine.open()?;
    let mut job = sort.job(&os)?;
    sort.level_has_use(&job)?;
    let mut sources = run::open(&job, &os)?;
    if let Some(found) = run::look_up_columns(&job, &mut sources, &os, stop)? {
        job = found;
    }
    let (prepared, plan) = sort.prepare(&mut job, sources, &os)?;
    sort.sort_planned(job, prepared, &plan, &os, stop)
}
