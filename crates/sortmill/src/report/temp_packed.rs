//! What is told of temporary data that were compressed.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::Report;
use crate::job::CompressTemp;
use crate::metrics::Stage;
use crate::plan::{Plan, TempPacking};
use crate::spills::Spilled;
use crate::text;

/// What became of the blocks that left memory, of a job that may compress them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TempPacked {
    /// How they were to be compressed.
    pub how: CompressTemp,
    /// How many there were and were compressed, and their bytes before and after. Runs of merges are none of them.
    #[serde(flatten)]
    pub spilled: Spilled,
}

impl TempPacked {
    /// Of a job of `plan`; `None` of one that compresses nothing.
    #[must_use]
    pub fn of(plan: &Plan, spilled: Spilled) -> Option<Self> {
        let TempPacking { how, .. } = plan.temp_packing?;
        Some(Self { how, spilled })
    }

    /// Of several nodes together.
    #[must_use]
    pub fn sum(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        parts.into_iter().reduce(|mut sum, one| {
            sum.spilled.merge(&one.spilled);
            sum
        })
    }
}

/// What the codec is called, where there is one for all blocks.
fn name(how: CompressTemp) -> Option<&'static str> {
    let codec = how.codec().filter(|_| how.is_forced());
    codec.map(|codec| codec.name())
}

/// Bytes before and after, the part of the blocks that were compressed, and what it cost.
pub fn words(report: &Report) -> Option<String> {
    let TempPacked { how, spilled } = report.temp_packed?;
    if spilled.blocks == 0 {
        return None;
    }
    let mut out = match spilled.packed_blocks {
        0 => "temporary data: no block was compressed".to_owned(),
        _ => format!(
            "temporary data: {} as {}, {} of the blocks compressed{}",
            text::bytes(spilled.plain_bytes),
            text::bytes(spilled.stored_bytes),
            text::percent(spilled.packed_blocks as f64 / spilled.blocks as f64),
            name(how).map_or_else(String::new, |name| format!(" by {name}")),
        ),
    };
    let work_ns = |wanted: Stage| -> u64 {
        let stages = report.phases.iter().flat_map(|phase| &phase.stages);
        let of_stage = stages.filter(|one| one.stage == wanted);
        of_stage.map(|one| one.metrics.work_ns).sum()
    };
    let (pack_ns, unpack_ns) = (work_ns(Stage::Pack), work_ns(Stage::Unpack));
    if pack_ns + unpack_ns > 0 {
        let (pack, unpack) = (text::seconds(pack_ns), text::seconds(unpack_ns));
        let _ = write!(
            out,
            "; {pack} of a core to compress, {unpack} to decompress"
        );
    }
    Some(out)
}

/// What a plan says of it.
pub fn plan_words(plan: &Plan) -> Option<String> {
    let TempPacking {
        how,
        has_zstd,
        packer_count,
    } = plan.temp_packing?;
    let what = match (name(how), has_zstd) {
        (Some(name), _) => format!("by {name}"),
        (None, true) => {
            "while threads wait for the disk, by lz4, or zstd where it is very slow".to_owned()
        }
        (None, false) => "while threads wait for the disk, by lz4".to_owned(),
    };
    Some(format!(
        "{what}, {packer_count} blocks at once; temporary space is foreseen as if nothing were compressed"
    ))
}
