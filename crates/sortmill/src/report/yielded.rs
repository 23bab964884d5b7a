//! What is told of a job whose output is not all of its records in order.

use super::Report;
use crate::plan::Plan;
use crate::text;
use crate::yields::{Runs, Yield};

/// What was done with how many records: `sorted 1,000 records`.
pub fn done_words(report: &Report) -> String {
    let prints = &report.fingerprints;
    let written = text::count(prints.written.records);
    let verb = match (report.plan.yields, report.merged.is_some()) {
        (Yield::All, true) => "merged",
        (Yield::All, false) => "sorted",
        (Yield::Shuffled(_), _) => "shuffled",
        (Yield::Runs(_) | Yield::First(_), _) => {
            let read = text::count(prints.input.records);
            return format!("wrote {written} of {read} records");
        }
    };
    format!("{verb} {written} records")
}

/// What those are that were dropped: `1,000 repeats, 4.0 KiB`.
pub fn dropped_words(report: &Report) -> String {
    let dropped = &report.fingerprints.dropped;
    let (records, bytes) = (text::count(dropped.records), text::bytes(dropped.bytes));
    match report.plan.yields {
        Yield::All | Yield::Shuffled(_) => format!("dropped {records} repeats, {bytes}"),
        Yield::Runs(_) => format!("left out {records} lines, {bytes}"),
        Yield::First(_) => format!("left out {records} records behind those, {bytes}"),
    }
}

/// What was written and dropped, of what was read: `what was written is`.
pub fn proof_words(report: &Report) -> &'static str {
    match (report.plan.yields, report.fingerprints.dropped.records) {
        (Yield::Runs(Runs { counted: true, .. }), _) => "what was counted",
        (_, 0) => "what was written",
        (_, _) => "what was written and dropped",
    }
}

/// The seed by which an order was drawn, as it is given again.
pub fn seed_words(plan: &Plan) -> Option<String> {
    match plan.yields {
        Yield::Shuffled(_) if plan.drops_returns => None,
        Yield::Shuffled(seed) => Some(format!("--seed {seed} draws the same order again")),
        Yield::All | Yield::Runs(_) | Yield::First(_) => None,
    }
}

/// The line of a plan that says what comes out, where that is not all records in order.
pub fn plan_line(plan: &Plan) -> Option<String> {
    let what = match plan.yields {
        Yield::All => return None,
        Yield::Shuffled(_) if plan.drops_returns => "all lines, in an order that is drawn".into(),
        Yield::Shuffled(seed) => format!("all records, in the order that --seed {seed} draws"),
        Yield::First(count) => format!(
            "the first {} records{}",
            text::count(count),
            match plan.candidates {
                Some(_) => ", which memory keeps",
                None => ", which may not fit in memory: what is not among them may be spilled",
            }
        ),
        Yield::Runs(runs) => {
            let lines = match (runs.repeated_only, runs.single_only) {
                (false, false) => "one of each run of equal lines",
                (true, false) => "one of each run of several equal lines",
                (false, true) => "lines that have no equal beside them",
                (true, true) => "nothing: no line has equals and has none",
            };
            let counts = if runs.counted { ", with counts" } else { "" };
            let case = if runs.fold { ", case ignored" } else { "" };
            let first = runs.first.map_or_else(String::new, |count| {
                format!(", the first {}", text::count(count))
            });
            let early = match plan.map_state_bytes {
                0 => String::new(),
                bytes => format!(
                    ", counted as they come in {} per thread",
                    text::bytes(bytes)
                ),
            };
            format!("{lines}{counts}{case}{first}{early}")
        }
    };
    Some(format!("comes out        {what}\n"))
}
