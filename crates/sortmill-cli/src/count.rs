//! `sortmill count`: how many there are of each line. The table of `sort` without what says in which order lines are.

use std::process::ExitCode;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use sortmill::error::Result;

use crate::sort::Sort;
use crate::sort::made::{Made, OF_COLUMNS, OF_ORDER, OF_PARTS, OF_SORT, without};

/// What was asked of `count`.
pub struct Count(pub Sort);

// No comment of documentation: it would be the command's.
#[derive(Args)]
struct Own {
    /// The most frequent lines first, and of equally frequent ones in the order of their bytes
    #[arg(long)]
    by_count: bool,

    /// Only N lines: the first ones in order, or the most frequent
    #[arg(short = 'n', long, value_name = "N")]
    first: Option<u64>,
}

impl Count {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode> {
        self.0.run()
    }
}

const ABOUT: &str = "Count how often each line comes";

const LONG_ABOUT: &str = "Count how often each line comes

Writes each line once, behind its count: the bytes of `LC_ALL=C sort | uniq -c`, and with --by-count those of `LC_ALL=C sort \
| uniq -c | LC_ALL=C sort -k1,1nr -k2`. The counts are sorted in a second job, which has all the memory; they lie in the \
folder for temporary files meanwhile.";

impl Args for Count {
    fn augment_args(command: Command) -> Command {
        let table = Sort::augment_args(Own::augment_args(command))
            .about(ABOUT)
            .long_about(LONG_ABOUT)
            .mut_arg("numeric_sort", |arg| arg.short(None::<char>));
        let table = without(without(table, &OF_SORT), &OF_PARTS);
        without(without(table, &OF_ORDER), &OF_COLUMNS)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Count {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, Error> {
        let own = Own::from_arg_matches(matches)?;
        let sort = Sort::from_arg_matches(matches)?;
        Ok(Self(sort.making(Made::Counted {
            by_count: own.by_count,
            first: own.first,
        })))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
