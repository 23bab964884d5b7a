//! `sortmill shuffle`: the table of `sort` without what says in which order records are, and a seed.

use std::process::ExitCode;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use sortmill::error::Result;

use crate::sort::Sort;
use crate::sort::made::{Made, OF_COLUMNS, OF_ORDER, OF_SORT, without};

/// What was asked of `shuffle`.
pub struct Shuffle(pub Sort);

// No comment of documentation: it would be the command's.
#[derive(Args)]
struct Own {
    /// Draw the order by N: the same seed and the same inputs give the same order, whatever the memory and threads.
    /// Default: one drawn anew, which is told
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl Shuffle {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode> {
        self.0.run()
    }
}

const ABOUT: &str = "Put records in random order";

const LONG_ABOUT: &str = "Put records in random order

Every order is equally likely. Data larger than memory are read and written twice, as in sorting: records are dealt to \
partitions at random, and each of these is put in random order in memory. With --seed the order can be had again: it \
depends on the seed, on the records' places in the inputs, and on how long the inputs are together, which nobody knows \
of pipes and compressed files: such have an order of their own.";

const FILES: &str = "Files to shuffle, all of them together; `-` or none is standard input";

const PARTS: &str = "Write --part-count files to the folder DIR, and a manifest. DIR appears whole or not at all; it may be \
empty. The files one after the other are what -o would write";

const PART_COUNT: &str = "Just N files, each of as many records as any other, or one more";

impl Args for Shuffle {
    fn augment_args(command: Command) -> Command {
        let table = Sort::augment_args(Own::augment_args(command))
            .about(ABOUT)
            .long_about(LONG_ABOUT)
            .mut_arg("files", |files| files.help(FILES))
            .mut_arg("parts", |parts| parts.help(PARTS))
            .mut_arg("part_count", |count| count.help(PART_COUNT));
        without(without(without(table, &OF_SORT), &OF_ORDER), &OF_COLUMNS)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Shuffle {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, Error> {
        let own = Own::from_arg_matches(matches)?;
        let sort = Sort::from_arg_matches(matches)?;
        Ok(Self(sort.making(Made::Shuffled(own.seed))))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
