//! Two reports side by side: what changed, most first.
//!
//! Times are weighed against the longer job, bytes against the larger, so that one order holds for all.

use std::fmt::Write;

use crate::metrics::{Stage, StageMetrics};
use crate::report::Report;
use crate::text;

/// Less than this, of the longer job's time or the larger one's bytes, is not told.
const WEIGHT_MIN: f64 = 0.01;

/// What changed from `first` to `second`, as lines for people.
#[must_use]
pub fn compare(first: &Report, second: &Report) -> String {
    let mut out = String::new();
    for (which, report) in [("first", first), ("second", second)] {
        let reached = report.until.map_or_else(
            || format!("sorted {}", text::bytes(report.bytes.input)),
            |stage| {
                format!(
                    "took {} to {}",
                    text::bytes(report.bytes.input),
                    lower(stage)
                )
            },
        );
        let _ = writeln!(
            out,
            "{which}: {reached} in {} ({})",
            text::seconds(report.wall_ns),
            text::rate(report.bytes.input, report.wall_ns),
        );
        for verdict in &report.verdicts {
            let _ = writeln!(out, "  {}", verdict.sentence);
        }
    }
    let (settings_first, settings_second) = (settings(first), settings(second));
    let differing: Vec<_> = settings_first
        .iter()
        .zip(&settings_second)
        .filter(|(one, other)| one != other)
        .collect();
    if !differing.is_empty() {
        let _ = writeln!(out, "\n{:<46} {:>14} {:>14}", "set up", "first", "second");
    }
    for ((name, one), (_, other)) in differing {
        let _ = writeln!(out, "  {name:<44} {one:>14} {other:>14}");
    }
    let changes = changes(first, second);
    let told = changes.partition_point(|change| change.weight >= WEIGHT_MIN);
    if told > 0 {
        let _ = writeln!(
            out,
            "\n{:<46} {:>14} {:>14} {:>8}",
            "changed, most first", "first", "second", "ratio"
        );
    }
    for change in &changes[..told] {
        let ratio = match change.first {
            0 => "-".to_owned(),
            first => format!("{:.2}", change.second as f64 / first as f64),
        };
        let (one, other) = ((change.show)(change.first), (change.show)(change.second));
        let _ = writeln!(
            out,
            "  {:<44} {one:>14} {other:>14} {ratio:>8}",
            change.name
        );
    }
    let _ = writeln!(
        out,
        "\n{} more numbers changed by less than {} of the longer time or the larger bytes",
        text::count((changes.len() - told) as u64),
        text::percent(WEIGHT_MIN),
    );
    out
}

/// A number of both reports.
struct Change {
    name: String,
    first: u64,
    second: u64,
    weight: f64,
    show: fn(u64) -> String,
}

fn changes(first: &Report, second: &Report) -> Vec<Change> {
    let mut out = Vec::new();
    let mut add = |values: [Vec<(String, u64)>; 2], whole: u64, show: fn(u64) -> String| {
        let [firsts, mut seconds] = values;
        let mut put = |name: String, first: u64, second: u64| {
            let weight = first.abs_diff(second) as f64 / whole.max(1) as f64;
            out.push(Change {
                name,
                first,
                second,
                weight,
                show,
            });
        };
        for (name, value) in firsts {
            let same = seconds.iter().position(|(other, _)| *other == name);
            put(name, value, same.map_or(0, |at| seconds.swap_remove(at).1));
        }
        for (name, value) in seconds {
            put(name, 0, value);
        }
    };
    let both = |of: fn(&Report) -> Vec<(String, u64)>| [of(first), of(second)];
    let wall_ns = first.wall_ns.max(second.wall_ns);
    add(both(times), wall_ns, text::seconds);
    let moved = first.bytes.moved().max(second.bytes.moved());
    add(both(bytes), moved, text::bytes);
    let limit = first.memory.limit_bytes.max(second.memory.limit_bytes);
    add(both(memory), limit, text::bytes);
    out.retain(|change| change.first != change.second);
    out.sort_by(|one, other| other.weight.total_cmp(&one.weight));
    out
}

fn times(report: &Report) -> Vec<(String, u64)> {
    let mut out = vec![
        ("wall".to_owned(), report.wall_ns),
        ("processor".to_owned(), report.cpu_ns),
        ("sample".to_owned(), report.sample_ns),
        ("commit".to_owned(), report.commit_ns),
    ];
    for phase in &report.phases {
        let name = &phase.name;
        out.push((name.clone(), phase.wall_ns));
        out.push((format!("{name}: processor"), phase.cpu_ns));
        out.push((
            format!("{name}: processor, the system's part"),
            phase.kernel_ns,
        ));
        for stage in &phase.stages {
            for (what, ns) in states(&stage.metrics) {
                out.push((format!("{name}: {} {what}", lower(stage.stage)), ns));
            }
        }
    }
    out
}

fn states(metrics: &StageMetrics) -> [(&'static str, u64); 6] {
    [
        ("working", metrics.work_ns),
        ("waiting for input", metrics.wait_input_ns),
        ("waiting for its place", metrics.wait_output_ns),
        ("waiting for memory", metrics.wait_memory_ns),
        ("waiting for its file or stream", metrics.wait_device_ns),
        ("done before the others", metrics.finished_ns),
    ]
}

fn bytes(report: &Report) -> Vec<(String, u64)> {
    let bytes = &report.bytes;
    let named = [
        ("all bytes moved", bytes.moved()),
        ("input read", bytes.input_read),
        ("sample read", bytes.sample_read),
        ("temporary written", bytes.temp_written),
        ("temporary read", bytes.temp_read),
        ("of these, for merging", bytes.merge_extra),
        ("of each, out of the way", bytes.moved),
        ("output written", bytes.output_written),
        ("kernel read", bytes.kernel_read),
        ("kernel written", bytes.kernel_written),
    ];
    named.map(|(name, count)| (name.to_owned(), count)).to_vec()
}

fn memory(report: &Report) -> Vec<(String, u64)> {
    let memory = &report.memory;
    let peak = ("memory: the process".to_owned(), memory.resident_bytes_peak);
    let holders = memory.holders.iter();
    holders
        .map(|holder| (format!("memory: {}", holder.name), holder.peak_bytes))
        .chain([peak])
        .collect()
}

/// What the job was given or decided before it began, and how its partitions came out.
fn settings(report: &Report) -> Vec<(&'static str, String)> {
    let (plan, partitions) = (&report.plan, &report.partitions);
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let size = |bytes: usize| text::bytes(bytes as u64);
    let count = |value: usize| text::count(value as u64);
    vec![
        (
            "until",
            report.until.map_or_else(|| "its end".to_owned(), lower),
        ),
        ("input", text::bytes(report.bytes.input)),
        ("records", text::count(report.fingerprints.input.records)),
        ("memory limit", text::bytes(report.memory.limit_bytes)),
        ("back end", report.back_end.clone()),
        ("input past the page cache", yes(report.direct_io.input)),
        ("output past the page cache", yes(report.direct_io.output)),
        ("threads to compute", count(plan.worker_count)),
        ("passes", plan.passes.to_string()),
        ("chunk", size(plan.chunk_bytes)),
        ("chunks", count(plan.chunk_count)),
        ("chunks in flight", count(plan.chunk_depth)),
        ("block", size(plan.block_bytes)),
        ("blocks", count(plan.block_count)),
        ("blocks in flight", count(plan.block_depth)),
        ("temporary data", temporary(report)),
        ("it is compressed", packing(report)),
        ("partitions planned", count(plan.partition_count)),
        ("partitions sorted", text::count(partitions.count)),
        ("partitions evicted", text::count(partitions.evicted)),
        ("partitions divided", text::count(partitions.divided)),
        ("partitions merged", text::count(partitions.merged)),
        ("output read again", yes(report.verified)),
    ]
}

/// Where temporary data lay.
fn temporary(report: &Report) -> String {
    let folders: Vec<&str> = report
        .temp_folders
        .iter()
        .map(|folder| &*folder.path)
        .collect();
    match report.plan.shared_bytes {
        Some(_) => "in the output's space".to_owned(),
        None if folders.is_empty() => "none".to_owned(),
        None => folders.join(", "),
    }
}

/// By what temporary data were compressed.
fn packing(report: &Report) -> String {
    let packing = report.plan.temp_packing;
    packing.map_or_else(
        || "no".to_owned(),
        |packing| format!("{:?}", packing.how).to_lowercase(),
    )
}

fn lower(stage: Stage) -> String {
    format!("{stage:?}").to_lowercase()
}
