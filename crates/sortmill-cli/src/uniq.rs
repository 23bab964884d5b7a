//! `sortmill uniq`: `sort | uniq` in one job. The table of `sort`, in which some letters are `uniq`'s.

use std::process::ExitCode;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use sortmill::error::Result;

use crate::sort::Sort;
use crate::sort::made::{OF_COLUMNS, OF_PARTS, OF_SORT, without};

/// What was asked of `uniq`.
pub struct Uniq(pub Sort);

// No comment of documentation: it would be the command's.
#[derive(Args)]
struct Own {
    /// Put in front of each line how many there are of it
    #[arg(short, long)]
    count: bool,

    /// Only lines of which there are several, each once
    #[arg(short = 'd', long)]
    repeated: bool,

    /// Small letters count as capitals, in sorting too: as `sort -f | uniq -i` has it
    #[arg(short = 'i', long = "ignore-case")]
    alike: bool,
}

impl Uniq {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode> {
        self.0.run()
    }
}

const ABOUT: &str = "Sort lines and keep one of each, or count them";

const LONG_ABOUT: &str = "Sort lines and keep one of each, or count them

Writes the bytes of `LC_ALL=C sort | uniq` with the same options, in one job. -c, -d, -i and -u are uniq's; all others are \
sort's, whose -d and -i are --dictionary-order and --ignore-nonprinting here. As in uniq, lines are equal if all of their \
bytes are, whatever they are sorted by, and lines beside each other are compared: with -s equal ones may be apart.";

impl Args for Uniq {
    fn augment_args(command: Command) -> Command {
        let table = Sort::augment_args(Own::augment_args(command))
            .about(ABOUT)
            .long_about(LONG_ABOUT)
            .mut_arg("unique", |arg| {
                let arg = arg.help("Only lines of which there is one");
                arg.help_heading(None::<&str>)
            })
            .mut_arg("ignore_case", |arg| arg.long("fold-case"))
            .mut_arg("dictionary_order", |arg| arg.short(None::<char>))
            .mut_arg("ignore_nonprinting", |arg| arg.short(None::<char>))
            .mut_arg("check", |arg| arg.short(None::<char>));
        without(without(without(table, &OF_SORT), &OF_PARTS), &OF_COLUMNS)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Uniq {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, Error> {
        let own = Own::from_arg_matches(matches)?;
        let sort = Sort::from_arg_matches(matches)?;
        Ok(Self(sort.uniq(own.count, own.repeated, own.alike)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
