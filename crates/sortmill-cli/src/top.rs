//! `sortmill top`: the first records in order. The table of `sort`, behind a number.

use std::process::ExitCode;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use sortmill::error::Result;

use crate::sort::Sort;
use crate::sort::made::{Made, OF_PARTS, OF_SORT, without};

/// What was asked of `top`.
pub struct Top(pub Sort);

// No comment of documentation: it would be the command's.
#[derive(Args)]
struct Own {
    /// How many records
    #[arg(value_name = "N")]
    wanted: u64,
}

impl Top {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode> {
        self.0.run()
    }
}

const ABOUT: &str = "Write the first N records in order";

const LONG_ABOUT: &str = "Write the first N records in order

The same as `sort ... | head -n N`, with the options of sort. Where N records fit four times into each thread's share of an \
eighth of the memory, the data are read once, however large they are, and nothing goes to disk. Where they do not, what may still be among the first is sorted, \
and what is not among them is neither read back nor written.";

impl Args for Top {
    fn augment_args(command: Command) -> Command {
        let table = Sort::augment_args(Own::augment_args(command))
            .about(ABOUT)
            .long_about(LONG_ABOUT);
        without(without(without(table, &OF_SORT), &OF_PARTS), &["unique"])
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Top {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, Error> {
        let own = Own::from_arg_matches(matches)?;
        let sort = Sort::from_arg_matches(matches)?;
        Ok(Self(sort.making(Made::Top(own.wanted))))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
