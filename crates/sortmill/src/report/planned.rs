//! What is told of a plan before its job begins.

use std::fmt::Write;

use super::{packing, temp_packed, yielded};
use crate::disk::STALE_AFTER_DAYS;
use crate::plan::{Doubt, During, Merging, Plan};
use crate::spread::TempFolder;
use crate::text;

/// The plan, for `--dry-run` and `-v`.
#[must_use]
pub fn plan_lines(plan: &Plan) -> String {
    let mut out = String::new();
    let unknown = || "unknown until it is read".to_owned();
    let input = packing::input_words(plan)
        .or(plan.input_bytes.map(text::bytes))
        .unwrap_or_else(unknown);
    let nodes = u64::from(plan.node_count());
    let temp = plan.temp_bytes.map(|bytes| bytes * nodes);
    let temp = temp.map_or_else(unknown, text::bytes);
    let _ = writeln!(out, "input            {input}");
    out += &yielded::plan_line(plan).unwrap_or_default();
    let or_one = match plan.looks_for_order {
        true => ", or 1 if the input is found in order",
        false => "",
    };
    let _ = writeln!(out, "passes           {}{or_one}", plan.passes);
    let or_none = match plan.looks_for_order {
        true => ", or none if the input is found in order",
        false => "",
    };
    let _ = write!(out, "temporary space  {temp}");
    let _ = match plan.shared_bytes {
        Some(bytes) if plan.temp_bytes != Some(0) => {
            let bytes = text::bytes(bytes);
            writeln!(out, ", in the output's space: {bytes} for both{or_none}")
        }
        _ => writeln!(out, "{or_none}"),
    };
    if let Some(bytes) = plan.moved_bytes {
        let bytes = text::bytes(bytes * nodes);
        let _ = writeln!(out, "moved            {bytes}, read and written in all");
    }
    if plan.merging.is_none() {
        let _ = writeln!(out, "foreseen         {}", certainty(plan));
    }
    if plan.nodes.is_some() {
        let _ = writeln!(out, "nodes            {nodes}, each with what follows");
    }
    match &plan.merging {
        Some(merging) => merging_lines(plan, merging, &mut out),
        None => sorting_lines(plan, &mut out),
    }
    let _ = writeln!(out, "disk             {}", disk_words(plan));
    let _ = writeln!(
        out,
        "verify           {}",
        if plan.verify {
            "yes: the output is read once more"
        } else {
            "no"
        }
    );
    let _ = writeln!(
        out,
        "memory           {}",
        text::bytes(plan.budget.limit_bytes)
    );
    if let Some(bytes) = plan.resident_bytes {
        let bytes = text::bytes(bytes);
        let _ = writeln!(out, "process          {bytes} at its largest");
    }
    for holder in &plan.budget.holders {
        let _ = writeln!(
            out,
            "  {:<26} {:>10}{}",
            holder.name,
            text::bytes(holder.bytes),
            when(holder.during)
        );
    }
    let _ = writeln!(
        out,
        "  {:<26} {:>10}",
        "left",
        text::bytes(plan.budget.left_bytes())
    );
    out
}

/// Behind what somebody holds in one phase only: in which.
pub(super) fn when(during: Option<During>) -> String {
    during.map_or(String::new(), |during| format!("  {during}"))
}

/// The sizes of a job that sorts.
fn sorting_lines(plan: &Plan, out: &mut String) {
    let _ = writeln!(out, "partitions       {}", plan.partition_count);
    if let Some(count) = plan.part_count {
        let bytes = plan.input_bytes.map(|bytes| text::bytes(bytes / count));
        let bytes = bytes.map_or_else(String::new, |bytes| format!(", {bytes} on average"));
        let _ = writeln!(out, "parts            {}{bytes}", text::count(count));
    }
    let _ = writeln!(
        out,
        "block            {} x {}, {} reads or writes in flight",
        plan.block_count,
        text::bytes(plan.block_bytes as u64),
        plan.block_depth
    );
    let _ = writeln!(
        out,
        "chunk            {} x {}, {} reads or writes in flight",
        plan.chunk_count,
        text::bytes(plan.chunk_bytes as u64),
        plan.chunk_depth
    );
    let _ = writeln!(
        out,
        "longest record   {}",
        text::bytes(plan.record_bytes_max as u64)
    );
    let _ = writeln!(out, "threads          {} to compute", plan.worker_count);
    if let Some(words) = temp_packed::plan_words(plan) {
        let _ = writeln!(out, "compress temp    {words}");
    }
    *out += &packing::plan_lines(plan);
    if plan.sample_count > 0 {
        let each = text::bytes(plan.sample_bytes as u64);
        let _ = writeln!(
            out,
            "sample           {} places of {each}",
            plan.sample_count
        );
    }
}

/// The folders for temporary files, and of several what each is expected to get, for `--dry-run` and `-v`.
#[must_use]
pub fn temp_lines(folders: &[TempFolder]) -> String {
    let expected = |folder: &TempFolder| folder.expected_bytes.unwrap_or(0);
    let all: u64 = folders.iter().map(expected).sum();
    let mut out = String::new();
    for folder in folders {
        let _ = write!(out, "temporary folder {}", folder.path.display());
        let _ = match (folders.len(), all) {
            (1, _) => writeln!(out),
            (_, 0) => writeln!(out, ": by speed and free space"),
            _ => {
                let bytes = expected(folder);
                let share = text::percent(bytes as f64 / all as f64);
                writeln!(out, ": about {}, {share}", text::bytes(bytes))
            }
        };
    }
    out
}

/// How sure the numbers are that were foreseen.
fn certainty(plan: &Plan) -> String {
    let has = |doubt| plan.doubts.contains(&doubt);
    if has(Doubt::Stream) && plan.guessed_bytes.is_some() {
        return "no more: how long compressed inputs become is a guess, and it is planned as that"
            .into();
    }
    if has(Doubt::Stream) {
        return "no more: of a stream nobody knows the length, it is planned as 16 times the memory".into();
    }
    if has(Doubt::Function) && plan.is_mapped() {
        return "as far as what functions make of a small part of the input tells".into();
    }
    if has(Doubt::Function) {
        return "as if functions changed no record".into();
    }
    if plan.temp_packing.is_some() {
        return "at most so much: temporary data as if none of them were compressed".into();
    }
    if has(Doubt::Fewer) && plan.passes == 1 {
        return "what is read; how much comes out shows when it does".into();
    }
    if has(Doubt::Merge) {
        return "at least so much: partitions are too large for memory".into();
    }
    let records = match has(Doubt::RecordLength) {
        true => {
            let bytes = text::bytes(plan.record_bytes_mean);
            format!(", with records of {bytes}, as where the largest input begins")
        }
        false => String::new(),
    };
    format!("to within 3 %{records}; very uneven keys may take more")
}

/// Where the sizes of requests come from.
fn disk_words(plan: &Plan) -> String {
    let Some(disk) = &plan.disk else {
        return "not measured".to_owned();
    };
    let words = format!(
        "blocks of up to {}, {} in flight each way, as measured on {}",
        text::bytes(disk.block_bytes_max),
        text::bytes(disk.in_flight_bytes),
        disk.measured_on
    );
    if !disk.stale {
        return words;
    }
    format!("{words}, over {STALE_AFTER_DAYS} days ago")
}

/// The sizes of a job that merges.
fn merging_lines(plan: &Plan, merging: &Merging, out: &mut String) {
    let _ = writeln!(
        out,
        "inputs           {}",
        text::count(merging.row_count as u64)
    );
    let _ = writeln!(
        out,
        "merged at once   {}",
        text::count(merging.fan_in as u64)
    );
    if !merging.steps.is_empty() {
        let runs = text::count(merging.steps.len() as u64);
        let _ = writeln!(out, "runs             {runs}, of the smallest neighbours");
    }
    let _ = writeln!(
        out,
        "buffer           {} x {}, {} reads of {} in flight",
        plan.block_count,
        text::bytes(plan.block_bytes as u64),
        merging.read_depth,
        text::bytes(merging.read_bytes as u64),
    );
    let _ = writeln!(
        out,
        "output           {} x {}, {} writes in flight",
        plan.chunk_count,
        text::bytes(plan.chunk_bytes as u64),
        plan.chunk_depth
    );
    let _ = writeln!(
        out,
        "longest record   {}",
        text::bytes(plan.record_bytes_max as u64)
    );
    let _ = writeln!(out, "threads          1 to compute, 1 to read and cut");
    *out += &packing::plan_lines(plan);
}
