//! `sortmill merge`: what `sort` takes, but for what has no meaning where nothing is sorted.
//!
//! The table of options is that of [`Sort`], which also reads and runs it; here is what differs in its help.

use std::process::ExitCode;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use sortmill::error::Result;

use crate::sort::Sort;

/// What was asked of `merge`.
pub struct Merge(Sort);

impl Merge {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode> {
        self.0.called_merge().run()
    }
}

const ABOUT: &str = "Merge files that are in order already";

const LONG_ABOUT: &str = "Merge files that are in order already

Reads each of them once and writes one output in order. That each is in order is checked on the way: one that is not is \
an error with file, line and offset, and the output stays as it was (`sort -m` merges any input as it is). Lines with \
equal keys come out in the order of the files. Of CSV and TSV the header, which must be the same in all files, stays at \
the top once. Of more files than memory has buffers for some are merged into temporary \
files first. Takes the options of GNU sort; options may follow files, and GNU's long names may be cut short.";

const FILES: &str =
    "Files to merge, each in order; pipes and devices too. `-` or none is standard input";

const THREADS: &str = "Threads that compress the output. Default: one per core";

const PROGRAM: &str = "Accepted: temporary runs are written as they are";

/// Options of `sort` that mean nothing here. They are refused where they are given, but for what changes nothing.
const OF_SORTING: [&str; 15] = [
    "parts",
    "part_size",
    "part_count",
    "part_name",
    "overwrite",
    "boundaries",
    "temp_apart",
    "compress_temp",
    "on",
    "skip_bad",
    "until",
    "check",
    "check_quietly",
    "merge",
    "parallel",
];

impl Args for Merge {
    fn augment_args(command: Command) -> Command {
        let mut table = Sort::augment_args(command)
            .about(ABOUT)
            .long_about(LONG_ABOUT)
            .mut_arg("files", |files| files.help(FILES))
            .mut_arg("compress_program", |program| program.help(PROGRAM))
            .mut_arg("threads", |threads| threads.help(THREADS));
        for name in OF_SORTING {
            table = table.mut_arg(name, |arg| arg.hide(true));
        }
        table
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Merge {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, Error> {
        Sort::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}
