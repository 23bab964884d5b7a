//! What a plan foresees: bytes that leave memory and that are moved, the process's size, passes, and what makes it doubt.
//!
//! In come job, inputs and the decided numbers, out go fields of the plan that nothing is decided from.

use serde::{Deserialize, Serialize};

use super::{Inputs, Plan, node_count};
use crate::forecast::{Forecast, foretell};
use crate::job::Job;
use crate::metrics::Stage;
use crate::order::Format;

/// Why what a plan foresees may not come true.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// An input is a stream or compressed, and nobody knows how long it is.
    Stream,
    /// A function makes of records what it will.
    Function,
    /// How long records are is known from a small part of the input.
    RecordLength,
    /// Some partitions will be too large for memory, and may be divided before they are merged.
    Merge,
    /// Fewer records come out than go in, and how many nobody knows.
    Fewer,
}

impl Plan {
    /// Foresees what the job will take.
    pub(super) fn foresee(&mut self, job: &Job, inputs: &Inputs) {
        let record_bytes = match (job.format, inputs.mapped) {
            (Format::Fixed(bytes), None) => f64::from(bytes),
            (_, Some(_)) | (Format::Lines | Format::Quoted(_) | Format::Kv, None) => {
                self.record_bytes_mean as f64
            }
        };
        if !matches!(job.format, Format::Fixed(_)) {
            self.doubts.push(Doubt::RecordLength);
        }
        if job.map.is_some() || job.reduce.is_some() {
            self.doubts.push(Doubt::Function);
        }
        if !job.yields.keeps_records() || job.is_unique() {
            self.doubts.push(Doubt::Fewer);
        }
        let guessed = inputs.bytes().or(inputs.packed.guessed_bytes);
        self.mapped_bytes = guessed.map(|bytes| inputs.mapped(bytes));
        let Some(input_bytes) = inputs.bytes() else {
            self.doubts.push(Doubt::Stream);
            return;
        };
        let Forecast {
            temp_bytes,
            merges,
            resident_bytes,
        } = foretell(
            self,
            inputs.mapped(input_bytes.div_ceil(node_count(job))),
            record_bytes,
        );
        let (spills, loads) = (job.reaches(Stage::Spill), job.reaches(Stage::Load));
        // What may be among the first stays in memory.
        let temp_bytes = match self.candidates {
            None if spills && !job.passes_on => temp_bytes,
            _ => 0,
        };
        let merges = merges && self.candidates.is_none() && !job.passes_on;
        self.temp_bytes = Some(temp_bytes);
        // Of partitions that stay empty nobody knows how much is touched.
        self.resident_bytes = Some(resident_bytes).filter(|_| !job.passes_on);
        self.passes = match temp_bytes {
            0 => 1,
            _ if merges => 3,
            _ => 2,
        };
        if merges {
            self.doubts.push(Doubt::Merge);
        }
        let sampled = match job.format {
            Format::Kv => 0,
            // Where there is one partition no boundary is looked for.
            _ if self.partition_count == 1 => 0,
            Format::Lines | Format::Quoted(_) | Format::Fixed(_) => {
                (self.sample_count * self.sample_bytes) as u64
            }
        };
        let share = |bytes: u64| bytes / node_count(job);
        let back = if loads { temp_bytes } else { 0 };
        let output = if job.until.is_none() { input_bytes } else { 0 };
        let moved = share(input_bytes + sampled.min(input_bytes) + output) + temp_bytes + back;
        // What compressing leaves of the output is not known either.
        let is_fewer =
            self.doubts.contains(&Doubt::Function) || self.doubts.contains(&Doubt::Fewer);
        let is_known = !is_fewer && job.compress.is_none();
        self.moved_bytes = Some(moved).filter(|_| is_known);
    }
}
