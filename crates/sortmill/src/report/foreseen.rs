//! What a plan foresees, as data; and, in the report of a job that has ended, beside what came of it.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::planned::plan_lines;
use super::{Report, TempBytes};
use crate::plan::{Doubt, Plan};
use crate::spread::TempFolder;
use crate::text;

/// The plan of a job that was not run: what `sort --dry-run --report FILE` writes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DryRun {
    /// The version of this form.
    pub version: u32,
    /// Always true: it tells this form from a report.
    pub dry_run: bool,
    /// The plan.
    pub plan: Plan,
    /// What each folder for temporary files is expected to get; of one, all of it.
    pub temp_folders: Vec<TempBytes>,
}

impl DryRun {
    /// Of a job that was planned so, with these folders for temporary files.
    #[must_use]
    pub fn new(plan: &Plan, folders: &[TempFolder]) -> Self {
        let expected = |folder: &TempFolder| TempBytes {
            path: folder.path.display().to_string(),
            bytes: folder.expected_bytes.unwrap_or(0),
        };
        Self {
            version: 1,
            dry_run: true,
            plan: plan.clone(),
            temp_folders: folders.iter().map(expected).collect(),
        }
    }

    /// As JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a plan is text")
    }

    /// For people: the plan, and the folders.
    #[must_use]
    pub fn lines(&self) -> String {
        let mut out = plan_lines(&self.plan);
        for folder in &self.temp_folders {
            let _ = writeln!(
                out,
                "temporary folder {}: about {}",
                folder.path,
                text::bytes(folder.bytes)
            );
        }
        out
    }
}

impl Report {
    /// How often records went to a device and back: 1, 2 where some were spilled, 3 where partitions were merged; where
    /// inputs were, how often a record was read at most.
    #[must_use]
    pub fn passes(&self) -> u32 {
        if let Some(merged) = &self.merged {
            return merged.passes;
        }
        match self.bytes.temp_written {
            0 => 1,
            _ if self.partitions.merged > 0 => 3,
            _ => 2,
        }
    }

    /// Of all nodes together, what the plan foresees of each; nothing where it could not know: of what a function
    /// makes, of input that was in order, or how soon it shows what is not among the first records.
    fn foreseen(&self, bytes: Option<u64>) -> Option<u64> {
        let is_plain = self.order.is_none() && self.plan.yields.first().is_none();
        let is_told = is_plain && !self.plan.doubts.contains(&Doubt::Function);
        bytes
            .filter(|_| is_told)
            .map(|bytes| bytes * u64::from(self.plan.node_count()))
    }

    /// Bytes of temporary data that were foreseen.
    #[must_use]
    pub fn foreseen_temp_bytes(&self) -> Option<u64> {
        self.foreseen(self.plan.temp_bytes)
    }

    /// The largest resident set that was foreseen, of all processes together.
    #[must_use]
    pub fn foreseen_resident_bytes(&self) -> Option<u64> {
        self.foreseen(self.plan.resident_bytes)
    }

    /// Bytes to be moved that were foreseen.
    #[must_use]
    pub fn foreseen_moved_bytes(&self) -> Option<u64> {
        self.foreseen(self.plan.moved_bytes)
    }

    /// What was foreseen, beside what came.
    pub(super) fn beside_foreseen(&self, out: &mut String) {
        let bytes = &self.bytes;
        let rows = [
            (
                "temporary data",
                bytes.temp_written,
                self.foreseen_temp_bytes(),
            ),
            ("moved", bytes.moved(), self.foreseen_moved_bytes()),
            (
                "memory",
                self.memory.resident_bytes_peak,
                self.foreseen_resident_bytes(),
            ),
        ];
        if rows.iter().all(|(_, _, foreseen)| foreseen.is_none()) {
            return;
        }
        let _ = writeln!(out, "\n  {:<18} {:>10} {:>10}", "", "was", "foreseen");
        let _ = writeln!(
            out,
            "  {:<18} {:>10} {:>10}",
            "passes",
            self.passes(),
            self.plan.passes
        );
        for (name, was, foreseen) in rows {
            let foreseen = foreseen.map_or_else(|| "-".to_owned(), text::bytes);
            let _ = writeln!(out, "  {name:<18} {:>10} {foreseen:>10}", text::bytes(was));
        }
    }
}

/// What was foreseen, behind what there `was`.
pub(super) fn foreseen_words(was: u64, foreseen: Option<u64>) -> String {
    match foreseen {
        None => String::new(),
        Some(0) if was == 0 => String::new(),
        Some(bytes) => format!(" (foreseen: {})", text::bytes(bytes)),
    }
}
