//! What comes out of a job where that is not all of its records in the order of their keys: all of them in an order that
//! is drawn, what `uniq` makes of them, or the first few.
//!
//! Plain values, in the job and in the plan. `shuffle.rs` draws, `runs.rs` counts runs, `best.rs` keeps what may
//! be among the first; `run/tail.rs` is where runs and the first few leave the sorted records.

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::job::{Boundaries, Job, Output};
use crate::line_keys::LineOrder;
use crate::order::Format;
use crate::parts::{PartCut, Parts};
use crate::shuffle::Shuffle;

/// What comes out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Yield {
    /// All records, in order.
    #[default]
    All,
    /// All records, in an order that is drawn from this seed and from where they lie in the inputs: each order is as
    /// likely as any other. Keys mean nothing then.
    Shuffled(u64),
    /// What `uniq` makes of the sorted lines; if a map function makes pairs of them, of lines and how often they came
    /// ([`crate::counts`]).
    Runs(Runs),
    /// So many records, the first in order.
    First(u64),
}

/// What becomes of a run of equal lines: as GNU `uniq` has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Runs {
    /// Put in front of each line how many there are of it (`-c`).
    pub counted: bool,
    /// Leave out lines of which there is one only (`-d`).
    pub repeated_only: bool,
    /// Leave out lines of which there are several (`-u`).
    pub single_only: bool,
    /// Small letters count as capitals (`-i`).
    pub fold: bool,
    /// So many lines, and no more; `None` is all.
    pub first: Option<u64>,
}

impl Yield {
    /// Whether the records come out as they are, all of them and nothing else.
    #[must_use]
    pub fn keeps_records(&self) -> bool {
        matches!(self, Self::All | Self::Shuffled(_))
    }

    /// What draws the order, if one is drawn.
    #[must_use]
    pub fn shuffle(&self) -> Option<Shuffle> {
        match *self {
            Self::Shuffled(seed) => Some(Shuffle::new(seed)),
            _ => None,
        }
    }

    /// How many records come out at most, the first ones in order.
    #[must_use]
    pub fn first(&self) -> Option<u64> {
        match *self {
            Self::First(count) => Some(count),
            _ => None,
        }
    }

    /// Whether what comes out are lines with counts in front of them, which have an order of their own.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        matches!(self, Self::Runs(Runs { counted: true, .. }))
    }
}

/// Sees to it that a job asks for nothing that does not go with what is to come out.
///
/// # Errors
/// [`ErrorKind::Usage`].
pub fn check(job: &Job) -> Result<()> {
    let is_shuffled = matches!(job.yields, Yield::Shuffled(_)) && job.format == Format::Lines;
    let wrong = match job.yields {
        _ if job.drops_returns && !is_shuffled => Some("only lines that are shuffled end anew"),
        Yield::All => None,
        Yield::Shuffled(_) if job.columns.is_some() => Some("what is shuffled has no columns"),
        Yield::Shuffled(_) if job.unique => Some("repeats are found by sorting"),
        Yield::Shuffled(_)
            if !job.keys.is_empty() || job.line_order.as_ref().is_some_and(decides) =>
        {
            Some("what is shuffled has no keys")
        }
        Yield::Runs(_) if job.format != Format::Lines => {
            Some("runs are of equal lines, and the records are none")
        }
        Yield::Runs(_) if job.is_unique() => {
            Some("where repeats are dropped before, every run is of one line")
        }
        Yield::Runs(runs) if runs.fold && job.map_makes_pairs => {
            Some("lines that are counted early are the same byte for byte")
        }
        Yield::First(_) if job.is_unique() => {
            Some("how many records are left without repeats is known too late to stop at a number")
        }
        _ => not_with_any(job),
    };
    match wrong {
        None => Ok(()),
        Some(cause) => Err(Error::new(ErrorKind::Usage, "planning the job", cause)),
    }
}

/// Whether lines in this order are told apart by more than what ends them.
fn decides(order: &LineOrder) -> bool {
    !order.keys.is_empty() || order.unique
}

/// Whether functions make something else of the records, and not pairs of lines that are counted early.
fn is_changed(job: &Job) -> bool {
    let is_counted = matches!(job.yields, Yield::Runs(_)) && job.map_makes_pairs;
    job.reduce.is_some() || (job.map.is_some() && !is_counted)
}

/// Whether it goes to such parts: what is shuffled, to so many that have as many records as any other or one more.
fn goes_to(job: &Job, parts: &Parts) -> bool {
    matches!(job.yields, Yield::Shuffled(_))
        && matches!(parts.cut, PartCut::Count(_))
        && job.header_lines == 0
}

/// What goes with none of them.
fn not_with_any(job: &Job) -> Option<&'static str> {
    Some(if job.merge.is_some() {
        "a merge puts out all records, in order"
    } else if job.on.is_some() {
        "--on puts out all records, in order"
    } else if is_changed(job) {
        "map and reduce functions make of records what they will"
    } else if job.until.is_some() {
        "a job that ends early puts out nothing"
    } else if matches!(&job.output, Output::Parts(parts) if !goes_to(job, parts)) {
        "it goes to one file or a stream, not to parts; what is shuffled, also to so many of equal counts"
    } else if job.boundaries != Boundaries::Sample {
        "boundaries are of the order of all records"
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::PartName;

    /// Why it is refused, if it is.
    fn refused(yields: Yield, change: impl FnOnce(&mut Job)) -> Option<String> {
        let mut job = Job::new(Vec::new(), Output::Stdout, Format::Lines);
        job.yields = yields;
        change(&mut job);
        check(&job).err().map(|error| error.cause.clone())
    }

    #[test]
    fn only_shuffled_lines_end_anew_and_go_to_parts_of_equal_counts() {
        let shuffled = Yield::Shuffled(1);
        let (ends, parts) = ("only lines that are shuffled", "not to parts");
        let to = |cut: PartCut| {
            move |job: &mut Job| {
                job.output = Output::Parts(Parts {
                    folder: "out".into(),
                    cut,
                    name: PartName::default(),
                    overwrite: false,
                });
            }
        };
        assert_eq!(refused(shuffled, |job| job.drops_returns = true), None);
        assert_eq!(refused(shuffled, to(PartCut::Count(3))), None);
        for (found, wanted) in [
            (refused(Yield::All, |job| job.drops_returns = true), ends),
            (
                refused(shuffled, |job| {
                    (job.drops_returns, job.format) = (true, Format::Fixed(8));
                }),
                ends,
            ),
            (refused(shuffled, to(PartCut::Bytes(3))), parts),
            (refused(shuffled, to(PartCut::Partitions)), parts),
            (refused(Yield::First(1), to(PartCut::Count(3))), parts),
            (
                refused(shuffled, |job| {
                    to(PartCut::Count(3))(job);
                    job.header_lines = 1;
                }),
                parts,
            ),
        ] {
            assert!(
                found.as_ref().is_some_and(|cause| cause.contains(wanted)),
                "{found:?}"
            );
        }
    }
}
