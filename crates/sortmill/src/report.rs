//! What was done, as data (`docs/report.md` explains each field) and as a few lines for people.

mod foreseen;
mod grown;
mod merged;
mod packing;
mod planned;
mod temp_packed;
mod yielded;

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::fingerprint::Fingerprint;
use crate::manifest::Part;
use crate::metrics::{Metrics, STAGES, Stage, StageMetrics};
use crate::plan::{During, Plan};
use crate::text;
use crate::verdict::{self, Verdict};

pub use foreseen::DryRun;
use foreseen::foreseen_words;
pub use grown::Grown;
pub use merged::Merged;
pub use planned::{plan_lines, temp_lines};
pub use temp_packed::TempPacked;

/// The report of one job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The version of this form.
    pub version: u32,
    /// The stage after which the job ended early, if it did: then there is no output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Stage>,
    /// `io_uring`, `posix` or `sim`.
    pub back_end: String,
    /// Where direct I/O was used.
    pub direct_io: DirectIo,
    /// From start to end.
    pub wall_ns: u64,
    /// Processor time of all threads.
    pub cpu_ns: u64,
    /// The phases in order.
    pub phases: Vec<Phase>,
    /// Time to draw the sample, while reading had begun.
    pub sample_ns: u64,
    /// Time to sync, verify and name the output.
    pub commit_ns: u64,
    /// Bytes by purpose.
    pub bytes: Bytes,
    /// What of the temporary data lay in which folder; empty where they lay in the output's space.
    #[serde(default)]
    pub temp_folders: Vec<TempBytes>,
    /// What compressing temporary data did, of a job that may do so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temp_packed: Option<TempPacked>,
    /// Memory by holder.
    pub memory: Memory,
    /// The partitions that were sorted.
    pub partitions: Partitions,
    /// The files of the output, if it has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<PartSizes>,
    /// What each node did, of a job that several share: all else adds them up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeReport>,
    /// The order that the input was found in, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// Of a job that merged sorted inputs, how; then there are no partitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<Merged>,
    /// The proof.
    pub fingerprints: Fingerprints,
    /// Bad records that were left out.
    pub skipped_records: u64,
    /// The first hundred of them, with place and cause.
    pub skipped_first: Vec<String>,
    /// Inputs that have grown since the job began, which sorted what there was then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grown: Vec<Grown>,
    /// Whether the output was read again before it got its name.
    pub verified: bool,
    /// The plan.
    pub plan: Plan,
    /// What bound each phase.
    #[serde(default)]
    pub verdicts: Vec<Verdict>,
    /// Time spent, beside `wall_ns`, to measure what the device that bound the job does alone.
    #[serde(default)]
    pub probe_ns: u64,
    /// The job whose output this one read, where the two were asked for as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Box<Report>>,
}

/// What one node of several did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeReport {
    /// Which, from 0.
    pub node: u32,
    /// Its back end.
    pub back_end: String,
    /// Where it used direct I/O.
    pub direct_io: DirectIo,
    /// Processor time of its process.
    pub cpu_ns: u64,
    /// Its phases.
    pub phases: Vec<Phase>,
    /// Bytes by purpose.
    pub bytes: Bytes,
    /// Bytes it wrote to each folder for temporary files.
    pub temp_folders: Vec<TempBytes>,
    /// What compressing temporary data did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temp_packed: Option<TempPacked>,
    /// Its memory.
    pub memory: Memory,
    /// Its partitions.
    pub partitions: Partitions,
}

impl NodeReport {
    /// Bytes that went through one of its stages.
    fn bytes_of(&self, stage: Stage) -> u64 {
        let stages = self.phases.iter().flat_map(|phase| &phase.stages);
        let of_stage = stages.filter(|report| report.stage == stage);
        of_stage.map(|report| report.metrics.bytes_in).sum()
    }
}

/// `1 node`, `2 nodes`.
fn nodes_words(count: usize) -> String {
    format!("{count} node{}", if count == 1 { "" } else { "s" })
}

/// Where direct I/O was used.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct DirectIo {
    /// For every input.
    pub input: bool,
    /// For the output.
    pub output: bool,
}

/// One phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Phase {
    /// `distribute` or `sort`; of a job that merges sorted inputs `merge`.
    pub name: String,
    /// How long it took.
    pub wall_ns: u64,
    /// Processor time of all threads.
    pub cpu_ns: u64,
    /// The system's part of that.
    #[serde(default)]
    pub kernel_ns: u64,
    /// By how much the largest resident set grew: memory that the process was given for the first time, in bytes.
    #[serde(default)]
    pub memory_new_bytes: u64,
    /// Its stages in order.
    pub stages: Vec<StageReport>,
}

/// What a phase took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Took {
    /// [`Phase::wall_ns`]
    pub wall_ns: u64,
    /// [`Phase::cpu_ns`]
    pub cpu_ns: u64,
    /// [`Phase::kernel_ns`]
    pub kernel_ns: u64,
    /// [`Phase::memory_new_bytes`]
    pub memory_new_bytes: u64,
}

/// One stage of a phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StageReport {
    /// Which stage.
    pub stage: Stage,
    /// What it did.
    #[serde(flatten)]
    pub metrics: StageMetrics,
}

impl Phase {
    /// A phase from what its workers counted.
    #[must_use]
    pub fn new(name: &str, took: Took, metrics: &Metrics) -> Self {
        let stages = STAGES
            .iter()
            .filter(|stage| metrics.stage(**stage).worker_count > 0)
            .map(|stage| StageReport {
                stage: *stage,
                metrics: *metrics.stage(*stage),
            })
            .collect();
        Self {
            name: name.to_owned(),
            wall_ns: took.wall_ns,
            cpu_ns: took.cpu_ns,
            kernel_ns: took.kernel_ns,
            memory_new_bytes: took.memory_new_bytes,
            stages,
        }
    }
}

/// How people read a phase: what each stage did and how fast, then where its time went.
impl Phase {
    fn rates(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "\n{}: {}, {} cpu",
            self.name,
            text::seconds(self.wall_ns),
            text::seconds(self.cpu_ns)
        );
        let _ = writeln!(
            out,
            "  {:<10} {:>7} {:>10} {:>10} {:>14} {:>9} {:>10} {:>12} {:>11}",
            "stage", "workers", "in", "out", "records", "per MB", "per record", "each", "together"
        );
        for StageReport { stage, metrics } in &self.stages {
            let _ = writeln!(
                out,
                "  {:<10} {:>7} {:>10} {:>10} {:>14} {:>9} {:>10} {:>12} {:>11}",
                stage.name(),
                metrics.worker_count,
                text::bytes(metrics.bytes_in),
                text::bytes(metrics.bytes_out),
                text::count(metrics.records_out),
                text::time_each(metrics.work_ns, metrics.bytes_in as f64 / 1e6),
                text::time_each(metrics.work_ns, metrics.records_in as f64),
                text::rate(metrics.bytes_in, metrics.work_ns),
                text::rate(metrics.bytes_in, self.wall_ns),
            );
        }
    }

    fn times(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "  {:<10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
            "", "work", "input", "output", "memory", "device", "done"
        );
        for StageReport { stage, metrics } in &self.stages {
            let _ = writeln!(
                out,
                "  {:<10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
                stage.name(),
                text::seconds(metrics.work_ns),
                text::seconds(metrics.wait_input_ns),
                text::seconds(metrics.wait_output_ns),
                text::seconds(metrics.wait_memory_ns),
                text::seconds(metrics.wait_device_ns),
                text::seconds(metrics.finished_ns),
            );
        }
    }
}

/// Bytes by purpose.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Bytes {
    /// Of the inputs; of compressed ones, of what they were.
    pub input: u64,
    /// Of the inputs as they lie there, compressed or not.
    #[serde(default)]
    pub input_stored: u64,
    /// Of the first lines, which stay at the top of the output; of `output`, and not of its records.
    #[serde(default)]
    pub header: u64,
    /// Read to distribute them, alignment included.
    pub input_read: u64,
    /// Read to draw the sample.
    pub sample_read: u64,
    /// Written to temporary files.
    pub temp_written: u64,
    /// Read back from them.
    pub temp_read: u64,
    /// Of these two, because partitions had to be merged.
    pub merge_extra: u64,
    /// Of each of these two, because blocks lay in the output's way.
    #[serde(default)]
    pub moved: u64,
    /// Written to the output, padding included.
    pub output_written: u64,
    /// Of the output as it lies there, compressed or not.
    pub output: u64,
    /// What any sort of this input within this memory must move.
    pub lower_bound: u64,
    /// Read from devices by this process, as the kernel counted.
    pub kernel_read: u64,
    /// Written to devices by this process, as the kernel counted.
    pub kernel_written: u64,
}

/// Temporary data in one folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TempBytes {
    /// Its name, as far as that is text.
    pub path: String,
    /// What was written there, each byte at a place of its own.
    pub bytes: u64,
}

impl Bytes {
    /// All bytes moved, by our own counts.
    #[must_use]
    pub fn moved(&self) -> u64 {
        self.input_read
            + self.sample_read
            + self.temp_written
            + self.temp_read
            + self.output_written
    }

    /// All bytes moved over the lower bound.
    #[must_use]
    pub fn over_lower_bound(&self) -> f64 {
        self.moved() as f64 / self.lower_bound.max(1) as f64
    }
}

/// Memory against the limit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Memory {
    /// The limit that was given.
    pub limit_bytes: u64,
    /// The process's largest resident set, as the kernel counted.
    pub resident_bytes_peak: u64,
    /// By holder.
    pub holders: Vec<HolderPeak>,
}

/// One holder of memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HolderPeak {
    /// Who.
    pub name: String,
    /// The most it may hold.
    pub limit_bytes: u64,
    /// The most it held; its limit where that is not counted.
    pub peak_bytes: u64,
    /// The phase that it held them in; absent where that is all of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub during: Option<During>,
}

/// The partitions that were sorted.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Partitions {
    /// How many.
    pub count: u64,
    /// The smallest.
    pub bytes_min: u64,
    /// The one in the middle.
    pub bytes_median: u64,
    /// The largest.
    pub bytes_max: u64,
    /// How many did not stay in memory.
    pub evicted: u64,
    /// How many were divided.
    pub divided: u64,
    /// How many were merged.
    pub merged: u64,
    /// Of how many records of the same keys were joined before they were sorted.
    #[serde(default)]
    pub joined: u64,
    /// Records longer than a block, whose bytes were kept beside their partitions.
    #[serde(default)]
    pub long_records: u64,
}

impl Partitions {
    fn words(&self) -> String {
        format!(
            "{} partitions, {} evicted, {} divided, {} merged{}",
            self.count,
            self.evicted,
            self.divided,
            self.merged,
            match self.joined {
                0 => String::new(),
                joined => format!(", {joined} joined"),
            }
        )
    }
}

/// The order that an input was found in, and what came of it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Order {
    /// In how many pieces it seemed to rise or fall.
    pub pieces: u64,
    /// How often a part of it was read and then sorted.
    pub rounds: u64,
    /// Whether it was in order to the end, so that one pass was enough.
    pub is_one_pass: bool,
    /// Bytes of the output that were copied as they came, or turned round, and neither partitioned nor sorted.
    #[serde(default)]
    pub copied_bytes: u64,
    /// Bytes of the output that were written before all was read, in rounds before the last, what was copied among them.
    pub early_bytes: u64,
    /// Bytes of records that belong among those.
    pub late_bytes: u64,
    /// Bytes of the output that were written again because of them, or that were copied behind the first disorder.
    pub again_bytes: u64,
    /// Bytes of input and output that were read again for that; of `input_read`.
    pub again_read_bytes: u64,
}

impl Order {
    fn words(&self) -> String {
        let pieces = match self.pieces {
            1 => "1 piece".to_owned(),
            count => format!("{} pieces", text::count(count)),
        };
        if self.is_one_pass && self.copied_bytes > 0 {
            return format!("the input was in order, in {pieces}: one pass, copied");
        }
        if self.is_one_pass {
            return format!("the input was in order, in {pieces}: one pass");
        }
        let early = text::bytes(self.early_bytes);
        let mut words =
            format!("the input seemed to be in order, in {pieces}: {early} were written early");
        if self.late_bytes > 0 {
            let (late, again) = (text::bytes(self.late_bytes), text::bytes(self.again_bytes));
            let _ = write!(
                words,
                ", then {late} belonged among them, and {again} were written again"
            );
        }
        words
    }
}

/// The files of an output that has several.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PartSizes {
    /// How many.
    pub count: u64,
    /// The smallest.
    pub bytes_min: u64,
    /// The largest.
    pub bytes_max: u64,
}

impl PartSizes {
    /// Those of `parts`.
    #[must_use]
    pub fn of(parts: &[Part]) -> Self {
        let bytes = || {
            let of = |part: &Part| part.stored_bytes.unwrap_or(part.fingerprint.bytes);
            parts.iter().map(of)
        };
        Self {
            count: parts.len() as u64,
            bytes_min: bytes().min().unwrap_or(0),
            bytes_max: bytes().max().unwrap_or(0),
        }
    }

    fn words(self) -> String {
        format!(
            ", in {} parts of {} to {}",
            text::count(self.count),
            text::bytes(self.bytes_min),
            text::bytes(self.bytes_max)
        )
    }
}

/// The proof that no record was lost or doubled, hop by hop.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Fingerprints {
    /// Cut out of the input.
    pub input: Fingerprint,
    /// Put into partitions, after the map function.
    pub distributed: Fingerprint,
    /// Taken out of partitions: equal to what was put in, without what was dropped.
    pub gathered: Fingerprint,
    /// What is not in the output, where that has not all records: repeats, lines that `uniq` leaves out, what is behind
    /// the first.
    #[serde(default)]
    pub dropped: Fingerprint,
    /// Handed to the writer, after the reduce function.
    pub written: Fingerprint,
}

/// How many times the least possible a job moved is told from this on.
const TOLD_BYTES_MIN: u64 = 1 << 20;

impl Report {
    /// The report as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report is text")
    }

    /// The few lines a user wants after each job; of one that ended early, its rates too.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut out = self.headline();
        if self.until.is_some() {
            for phase in &self.phases {
                phase.rates(&mut out);
            }
            out.push('\n');
        }
        self.outcome(&mut out);
        out
    }

    fn headline(&self) -> String {
        let bytes = &self.bytes;
        let (wall, cpu) = (text::seconds(self.wall_ns), text::seconds(self.cpu_ns));
        let rate = text::rate(bytes.input, self.wall_ns);
        let mut out = String::new();
        let _ = match self.until {
            None => writeln!(
                out,
                "{}, {}{}{}, in {wall} ({rate}, {cpu} cpu)",
                yielded::done_words(self),
                packing::output_words(self),
                self.parts.map_or_else(String::new, PartSizes::words),
                match self.nodes.len() {
                    0 => String::new(),
                    count => format!(", on {}", nodes_words(count)),
                },
            ),
            Some(last) => writeln!(
                out,
                "ended after {}, no output: {} in {wall} ({rate}, {cpu} cpu, {:.2} s cpu per GB)",
                last.name(),
                text::bytes(bytes.input),
                match bytes.input {
                    0 => 0.0,
                    input => self.cpu_ns as f64 / input as f64,
                },
            ),
        };
        out
    }

    fn outcome(&self, out: &mut String) {
        let bytes = &self.bytes;
        if self.until.is_none() {
            // Of little, what fills up the last block is most.
            let times = match bytes.lower_bound < TOLD_BYTES_MIN {
                true => String::new(),
                false => format!(
                    ": {:.3} times the least possible within this memory",
                    bytes.over_lower_bound()
                ),
            };
            let _ = writeln!(
                out,
                "moved {}{times}; {} spilled{}",
                text::bytes(bytes.moved()),
                text::bytes(bytes.temp_written),
                foreseen_words(bytes.temp_written, self.foreseen_temp_bytes()),
            );
        }
        if let Some(words) = temp_packed::words(self) {
            let _ = writeln!(out, "{words}");
        }
        if let Some(order) = &self.order {
            let _ = writeln!(out, "{}", order.words());
        }
        let pieces = match &self.merged {
            Some(merged) => merged.words(),
            None => self.partitions.words(),
        };
        let _ = writeln!(
            out,
            "memory {} of {}{}; {pieces}; {}",
            text::bytes(self.memory.resident_bytes_peak),
            text::bytes(self.memory.limit_bytes),
            foreseen_words(
                self.memory.resident_bytes_peak,
                self.foreseen_resident_bytes()
            ),
            self.back_end,
        );
        if self.skipped_records > 0 {
            let _ = writeln!(
                out,
                "left out {} bad records",
                text::count(self.skipped_records)
            );
            for told in &self.skipped_first {
                let _ = writeln!(out, "  {told}");
            }
        }
        for grown in &self.grown {
            let _ = writeln!(out, "{}", grown.words());
        }
        if self.fingerprints.dropped.records > 0 {
            let _ = writeln!(out, "{}", yielded::dropped_words(self));
        }
        if let Some(words) = yielded::seed_words(&self.plan) {
            let _ = writeln!(out, "{words}");
        }
        let _ = writeln!(out, "{}", self.proof());
        if let Some(verdict) = verdict::longest(&self.verdicts) {
            let _ = writeln!(out, "{}", verdict.sentence);
        }
    }

    /// What was found to hold.
    fn proof(&self) -> String {
        let prints = &self.fingerprints;
        let records = text::count(prints.distributed.records);
        match self.until {
            None => format!(
                "proven: {} is what was read (fingerprint {:016x}){}",
                yielded::proof_words(self),
                prints.written.sum as u64,
                if self.verified {
                    ", read again from the device"
                } else {
                    ""
                },
            ),
            Some(Stage::Read) => "checked: every byte of the input was handed on".to_owned(),
            Some(Stage::Cut) => format!(
                "checked: every byte of the input lies in one of {} records (fingerprint {:016x})",
                text::count(prints.input.records),
                prints.input.sum as u64
            ),
            Some(Stage::Sort) => {
                format!("checked: {records} records were cut out and as many were sorted")
            }
            Some(Stage::Reduce) => format!(
                "checked: what came out of the sorters is what was read, {records} records \
                 (fingerprint {:016x})",
                prints.gathered.sum as u64
            ),
            Some(_) => {
                format!("checked: {records} records were cut out and as many are in partitions")
            }
        }
    }

    /// What each node of several did.
    fn each_node(&self, out: &mut String) {
        if self.nodes.is_empty() {
            return;
        }
        let _ = writeln!(
            out,
            "\n  {:<6} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9}",
            "node", "read", "sent", "received", "spilled", "written", "memory", "cpu"
        );
        for node in &self.nodes {
            let _ = writeln!(
                out,
                "  {:<6} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>9}",
                node.node,
                text::bytes(node.bytes.input),
                text::bytes(node.bytes_of(Stage::Send)),
                text::bytes(node.bytes_of(Stage::Receive)),
                text::bytes(node.bytes.temp_written),
                text::bytes(node.bytes.output),
                text::bytes(node.memory.resident_bytes_peak),
                text::seconds(node.cpu_ns),
            );
        }
    }

    /// What each phase's verdict was concluded from.
    fn evidence(&self) -> String {
        let mut out = String::new();
        for verdict in &self.verdicts {
            let _ = writeln!(out, "\n{}", verdict.sentence);
            for told in &verdict.evidence {
                let _ = writeln!(out, "  {told}");
            }
        }
        if self.probe_ns > 0 {
            let took = text::seconds(self.probe_ns);
            let _ = writeln!(out, "\nmeasuring what a device does alone took {took} more");
        }
        out
    }

    /// Everything, for `sortmill report`.
    #[must_use]
    pub fn details(&self) -> String {
        let mut out = self.headline();
        self.outcome(&mut out);
        for phase in &self.phases {
            phase.rates(&mut out);
            phase.times(&mut out);
        }
        let _ = writeln!(
            out,
            "\nsample {}, {}; sync and name {}",
            text::seconds(self.sample_ns),
            match self.nodes.is_empty() && !self.plan.looks_for_order {
                true => "while reading",
                false => "before reading",
            },
            text::seconds(self.commit_ns)
        );
        let bytes = &self.bytes;
        for (name, count) in [
            ("input read", bytes.input_read),
            ("sample read", bytes.sample_read),
            ("temporary written", bytes.temp_written),
            ("temporary read", bytes.temp_read),
            ("output written", bytes.output_written),
            ("all by our count", bytes.moved()),
            ("lower bound", bytes.lower_bound),
            ("kernel read", bytes.kernel_read),
            ("kernel written", bytes.kernel_written),
        ] {
            let _ = writeln!(
                out,
                "  {name:<18} {:>10}  {:>18}",
                text::bytes(count),
                text::count(count)
            );
        }
        let in_folders: u64 = self.temp_folders.iter().map(|folder| folder.bytes).sum();
        for TempBytes { path, bytes } in self.temp_folders.iter().filter(|_| in_folders > 0) {
            let share = text::percent(*bytes as f64 / in_folders as f64);
            let _ = writeln!(
                out,
                "  temporary files in {path}: {}, {share}",
                text::bytes(*bytes)
            );
        }
        self.beside_foreseen(&mut out);
        let _ = writeln!(out, "\nmemory");
        for holder in &self.memory.holders {
            let _ = writeln!(
                out,
                "  {:<26} {:>10} of {:>10}{}",
                holder.name,
                text::bytes(holder.peak_bytes),
                text::bytes(holder.limit_bytes),
                planned::when(holder.during)
            );
        }
        self.each_node(&mut out);
        let partitions = &self.partitions;
        if self.merged.is_none() {
            let _ = writeln!(
                out,
                "\npartitions: {} of {} to {}, median {}",
                partitions.count,
                text::bytes(partitions.bytes_min),
                text::bytes(partitions.bytes_max),
                text::bytes(partitions.bytes_median)
            );
        }
        out + &self.evidence()
    }
}
