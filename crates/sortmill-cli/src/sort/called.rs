//! The names that words may stand behind, and the table of options for each: that of `sort`, and what the others make of
//! it.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

use super::Sort;
use crate::count::Count;
use crate::merge::Merge;
use crate::shuffle::Shuffle;
use crate::top::Top;
use crate::uniq::Uniq;

/// The name that the words stand behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Called {
    /// The program itself is called `sort`.
    Sort,
    /// `sortmill sort`.
    #[default]
    SortmillSort,
    /// `sortmill merge`.
    SortmillMerge,
    /// `sortmill shuffle`.
    Shuffle,
    /// `sortmill uniq`.
    Uniq,
    /// `sortmill count`.
    Count,
    /// `sortmill top`.
    Top,
}

impl Called {
    /// What the first word behind the program's name says; `None` is another command.
    pub fn of_word(word: &str) -> Option<Self> {
        Some(match word {
            "sort" => Self::SortmillSort,
            "merge" => Self::SortmillMerge,
            "shuffle" => Self::Shuffle,
            "uniq" => Self::Uniq,
            "count" => Self::Count,
            "top" => Self::Top,
            _ => return None,
        })
    }

    /// As it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sort => "sort",
            Self::SortmillSort => "sortmill sort",
            Self::SortmillMerge => "sortmill merge",
            Self::Shuffle => "sortmill shuffle",
            Self::Uniq => "sortmill uniq",
            Self::Count => "sortmill count",
            Self::Top => "sortmill top",
        }
    }

    /// The options and operands, as parser, help, completions and man page have them.
    pub fn table(self) -> Command {
        let named = |name| Command::new(name).bin_name(self.name()).max_term_width(100);
        let mut table = match self {
            Self::Sort | Self::SortmillSort => Sort::augment_args(named("sort")),
            Self::SortmillMerge => Merge::augment_args(named("merge")),
            Self::Shuffle => Shuffle::augment_args(named("shuffle")),
            Self::Uniq => Uniq::augment_args(named("uniq")),
            Self::Count => Count::augment_args(named("count")),
            Self::Top => Top::augment_args(named("top")),
        };
        table.build();
        table
    }

    /// What was asked, by words that the table has read.
    pub fn read(self, matches: &ArgMatches) -> Result<Sort, Error> {
        match self {
            Self::Sort | Self::SortmillSort | Self::SortmillMerge => {
                let sort = Sort::from_arg_matches(matches)?;
                Ok(sort.called(self))
            }
            Self::Shuffle => Ok(Shuffle::from_arg_matches(matches)?.0),
            Self::Uniq => Ok(Uniq::from_arg_matches(matches)?.0),
            Self::Count => Ok(Count::from_arg_matches(matches)?.0),
            Self::Top => Ok(Top::from_arg_matches(matches)?.0),
        }
    }
}
