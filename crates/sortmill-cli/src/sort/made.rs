//! What `shuffle`, `uniq`, `count` and `top` make of records: what of the table of `sort` means nothing to them, and what
//! they ask of the engine.

use clap::Command;
use sortmill::counts::{count_early, may_count_early};
use sortmill::error::Result;
use sortmill::io::Os;
use sortmill::job::{Boundaries, Job};
use sortmill::line_keys::{Compare, Ignore, LastResort, LineOrder};
use sortmill::order::Format;
use sortmill::yields::{Runs, Yield};

use super::keys::{Options, refused};
use super::{Called, Sort};
use crate::columns::Kind;

/// What is made of the records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Made {
    /// They are sorted, or merged.
    #[default]
    Sorted,
    /// They are put in an order that this seed draws, or any.
    Shuffled(Option<u64>),
    /// What `uniq` makes of sorted lines.
    Uniq(Runs),
    /// Each line once, with how many there are of it: the most frequent first, if so, and only so many.
    Counted { by_count: bool, first: Option<u64> },
    /// So many, the first in order.
    Top(u64),
}

/// Options of `sort` about several files, of which only `shuffle` makes any.
pub const OF_PARTS: [&str; 4] = ["parts", "part_count", "part_name", "overwrite"];

/// Options of `sort` that mean nothing to any of the four.
pub const OF_SORT: [&str; 8] = [
    "part_size",
    "boundaries",
    "on",
    "until",
    "debug",
    "check",
    "check_quietly",
    "merge",
];

/// Those that say in which order lines are.
pub const OF_ORDER: [&str; 17] = [
    "keys",
    "ignore_leading_blanks",
    "dictionary_order",
    "ignore_case",
    "general_numeric_sort",
    "ignore_nonprinting",
    "month_sort",
    "human_numeric_sort",
    "numeric_sort",
    "random_sort",
    "random_source",
    "reverse",
    "sort",
    "version_sort",
    "field_separator",
    "stable",
    "unique",
];

/// Those about records of columns, which only `top` takes.
pub const OF_COLUMNS: [&str; 5] = ["by", "no_header", "delimiter", "quote", "nulls"];

/// The table without these in its help. They are refused where they are given.
pub fn without(table: Command, names: &[&'static str]) -> Command {
    let hide = |table: Command, name: &&'static str| table.mut_arg(*name, |arg| arg.hide(true));
    names.iter().fold(table, hide)
}

impl Sort {
    /// The same, called so.
    pub fn called(self, called: Called) -> Self {
        Self { called, ..self }
    }

    /// The same, and this is made of the records.
    pub fn making(self, made: Made) -> Self {
        let called = match made {
            Made::Sorted => self.called,
            Made::Shuffled(_) => Called::Shuffle,
            Made::Uniq(_) => Called::Uniq,
            Made::Counted { .. } => Called::Count,
            Made::Top(_) => Called::Top,
        };
        Self {
            called,
            made,
            ..self
        }
    }

    /// The same as `uniq` has it: `-u` is about lines that are alone, and where small letters count as capitals, they do
    /// so in sorting too.
    pub fn uniq(mut self, counted: bool, repeated_only: bool, fold: bool) -> Self {
        let single_only = std::mem::take(&mut self.gnu.unique);
        self.gnu.ignore_case |= fold;
        self.making(Made::Uniq(Runs {
            counted,
            repeated_only,
            single_only,
            fold,
            first: None,
        }))
    }

    /// Asks the engine for it, as the last thing that is asked.
    pub(super) fn ask(&self, job: &mut Job, os: &dyn Os) {
        let runs = Runs {
            counted: true,
            ..Runs::default()
        };
        job.yields = match self.made {
            Made::Sorted => Yield::All,
            // As many bits as any program keeps of a number in JSON.
            Made::Shuffled(seed) => Yield::Shuffled(seed.unwrap_or_else(|| os.random() >> 11)),
            // Of equal lines any one is as good, and those that come later need not be kept at all.
            Made::Uniq(asked) if asked == Runs::default() && is_of_lines(job) => {
                job.unique = true;
                Yield::All
            }
            Made::Uniq(asked) => Yield::Runs(asked),
            Made::Counted {
                by_count: false,
                first,
            } => Yield::Runs(Runs { first, ..runs }),
            Made::Counted { by_count: true, .. } => Yield::Runs(runs),
            Made::Top(count) => Yield::First(count),
        };
        let is_exact = matches!(job.yields, Yield::Runs(runs) if !runs.fold);
        let is_early = is_exact && is_of_lines(job) && !is_reversed(job);
        if is_early && may_count_early(job, &os.machine()) {
            count_early(job);
        }
    }
}

/// Whether lines with equal keys are the same, byte for byte.
fn is_of_lines(job: &Job) -> bool {
    let is_of = |order: &LineOrder| match &order.keys[..] {
        [] => true,
        [key] => {
            let start = (key.start.field, key.start.byte, key.start.skip_blanks);
            let is_whole = start == (1, 1, false) && key.end.is_none();
            let is_plain = key.compare == Compare::Bytes && key.ignore == Ignore::None;
            is_whole && is_plain && !key.fold
        }
        _ => false,
    };
    job.format == Format::Lines && job.line_order.as_ref().is_none_or(is_of)
}

/// Whether lines come out from the last to the first.
fn is_reversed(job: &Job) -> bool {
    let is_reversed = |order: &LineOrder| {
        let by_keys = order.keys.iter().any(|key| key.reversed);
        by_keys || order.last_resort == LastResort::LineReversed
    };
    job.line_order.as_ref().is_some_and(is_reversed)
}

/// Looks at what was asked as a whole.
///
/// # Errors
/// The first option that means nothing here.
pub fn look(sort: &Sort) -> Result<()> {
    let name = match sort.made {
        Made::Sorted => return Ok(()),
        Made::Shuffled(_) => "shuffle",
        Made::Uniq(_) => "uniq",
        Made::Counted { .. } => "count",
        Made::Top(_) => "top",
    };
    let gnu = &sort.gnu;
    let not_here = |option: &str| {
        let cause = format!("{option} is an option of sort, and means nothing to {name}");
        Err(refused(cause))
    };
    let is_shuffled = matches!(sort.made, Made::Shuffled(_));
    for (given, option) in [
        (gnu.checks().is_some(), "--check"),
        (gnu.merge, "--merge"),
        (gnu.debug, "--debug"),
        (sort.parts.is_some() && !is_shuffled, "--parts"),
        (sort.part_size.is_some(), "--part-size"),
        (sort.boundaries != Boundaries::Sample, "--boundaries"),
        (sort.on.is_some(), "--on"),
        (sort.until.is_some(), "--until"),
    ] {
        if given {
            return not_here(option);
        }
    }
    match sort.made {
        Made::Sorted | Made::Top(_) => {}
        Made::Uniq(_) => return only_lines(sort, name),
        Made::Shuffled(_) => {
            if !matches!(sort.shape.format, Kind::Plain(_)) {
                let cause = "shuffle takes lines, fixed and kv records, not columns";
                let hint = "If every record is one line, shuffle lines: --header 1 keeps the first where it is.";
                return Err(refused(cause).hint(hint));
            }
            if sort.parts.is_some() && sort.part_count.is_none() {
                let cause = "shuffle has as many records in each of its parts, or one more";
                return Err(refused(cause).hint("Say how many parts with --part-count."));
            }
            if sort.parts.is_some() && sort.header > 0 {
                let cause = "in which of several parts header lines should stay is not settled yet";
                return Err(refused(cause));
            }
            return without_order(sort, "shuffle puts records in no order");
        }
        Made::Counted { by_count, .. } => {
            only_lines(sort, name)?;
            without_order(
                sort,
                "count orders whole lines by their bytes, or by their counts",
            )?;
            if by_count && sort.trace.is_some() {
                return Err(refused("--by-count takes two sorts, and --trace draws one"));
            }
        }
    }
    if gnu.unique {
        let cause =
            "top does not leave out repeats: how many records are left without them shows too late";
        return Err(refused(cause).hint("Sort with -u, and take the first lines of that."));
    }
    Ok(())
}

fn only_lines(sort: &Sort, name: &str) -> Result<()> {
    match sort.shape.format.is_lines() {
        true => Ok(()),
        false => Err(refused(format!(
            "{name} is about lines, and --format says otherwise"
        ))),
    }
}

fn without_order(sort: &Sort, cause: &str) -> Result<()> {
    let gnu = &sort.gnu;
    let letters = Options::of_all(gnu).letters();
    let given = [
        (letters.chars().next().map(|letter| format!("-{letter}"))),
        (!sort.shape.keys.is_empty()).then(|| "-k".to_owned()),
        (!gnu.field_separator.is_empty()).then(|| "-t".to_owned()),
        gnu.stable.then(|| "-s".to_owned()),
        gnu.unique.then(|| "-u".to_owned()),
        (!gnu.random_source.is_empty()).then(|| "--random-source".to_owned()),
    ];
    match given.into_iter().flatten().next() {
        None => Ok(()),
        Some(option) => Err(refused(format!("{cause}: {option} means nothing here"))),
    }
}
