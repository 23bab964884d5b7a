//! Which bytes a job will read and write, for whoever watches it ([`crate::progress`]): from the plan at first,
//! and once all records have been distributed, from what lies where.
//!
//! Numbers only; nothing of the job depends on them.

use sortmill_io::os::Kind;
use sortmill_io::{Os, align_up};

use super::room::device;
use super::sorting::is_too_large;
use super::{Shared, Where};
use crate::disk::Rates;
use crate::job::Job;
use crate::metrics::Stage;
use crate::partitions::{Block, Unit};
use crate::plan::Plan;
use crate::progress::{Phase, Work};
use crate::spread::TempFolder;
use crate::stage::read::Source;
use crate::stage::write::Target;

/// The job goes on with `phase`.
pub fn enter(job: &Job, phase: Phase, os: &dyn Os) {
    if let Some(progress) = &job.progress {
        progress.enter(phase, os);
    }
}

/// The job begins to read what it works on.
pub fn first_phase(job: &Job, os: &dyn Os) {
    let phase = match job.merge {
        Some(_) => Phase::Merge,
        None => Phase::Distribute,
    };
    enter(job, phase, os);
}

/// Begins the progress of a job with what its plan foresees.
pub fn before(
    job: &Job,
    plan: &Plan,
    os: &dyn Os,
    sources: &[Source],
    output: &Where,
    temps: &[TempFolder],
) {
    let Some(progress) = &job.progress else {
        return;
    };
    progress.lies_on(disk(job, os, sources, output, temps));
    if plan.merging.is_some() {
        let with_runs = |bytes: Option<u64>| Some(bytes? + plan.temp_bytes?);
        let output_bytes = plan.input_bytes.filter(|_| job.keeps_records());
        let written = with_runs(output_bytes.map(align_up));
        let input = plan.input_bytes.or(plan.stored_bytes);
        progress.expect(Phase::Merge, with_runs(input), written);
        if plan.verify {
            progress.expect(Phase::Verify, plan.input_bytes, Some(0));
        }
        progress.enter(Phase::Prepare, os);
        return;
    }
    // What functions and codecs cost nobody knows, and nodes tell of no work.
    let is_plain = job.compress.is_none() && plan.stored_bytes.is_none();
    let is_known = is_plain && job.map.is_none() && job.reduce.is_none() && job.on.is_none();
    let record_bytes = plan.record_bytes_mean.max(1) as f64;
    let work = is_known.then(|| Work::new(plan.worker_count as u64, record_bytes));
    progress.works(work);
    // What a function makes of the records is not known before.
    let mapped = |bytes: Option<u64>| bytes.filter(|_| job.map.is_none());
    let reduced = |bytes: Option<u64>| bytes.filter(|_| job.keeps_records());
    let nodes = u64::from(plan.node_count());
    let spilled = mapped(plan.temp_bytes).map(|bytes| bytes * nodes);
    let input = plan.input_bytes.or(plan.stored_bytes);
    progress.expect(Phase::Distribute, input, spilled);
    if job.reaches(Stage::Load) {
        let written = match output {
            Where::NewFile(_) => reduced(plan.input_bytes).map(align_up),
            Where::InPlace(_) | Where::Stdout | Where::Parts(_) => reduced(plan.input_bytes),
            Where::Nowhere => Some(0),
        };
        progress.expect(Phase::Sort, spilled, written);
    }
    if plan.verify {
        progress.expect(Phase::Verify, reduced(plan.input_bytes), Some(0));
    }
    progress.enter(Phase::Prepare, os);
}

/// The rates of the disk, if all that the job reads and writes lies on the one that was measured.
fn disk(
    job: &Job,
    os: &dyn Os,
    sources: &[Source],
    output: &Where,
    temps: &[TempFolder],
) -> Option<Rates> {
    let ([temp], [figures]) = (temps, &*job.disks) else {
        return None;
    };
    let rates = figures.as_ref()?.rates?;
    let measured = device(os, &temp.path)?;
    let is_there =
        |source: &Source| source.meta.kind == Kind::Regular && source.meta.identity.0 == measured;
    let output_is_there = match output {
        Where::NewFile(_) | Where::Parts(_) => {
            let folder = output.folder();
            folder.and_then(|folder| device(os, folder)) == Some(measured)
        }
        Where::InPlace(_) | Where::Stdout => false,
        Where::Nowhere => true,
    };
    (sources.iter().all(is_there) && output_is_there).then_some(rates)
}

/// Begins the phase `sort`, in which long records and what is moved are `read` beside units: what is read back is known now, and but for what a reduce function makes, so is
/// what will be written.
pub fn sort(
    shared: &Shared<'_>,
    units: &[Unit],
    bytes: u64,
    (mut read, moved_bytes): (u64, u64),
    target: Option<&Target>,
) {
    let Some(progress) = &shared.job.progress else {
        return;
    };
    let mut runs = 0;
    for unit in units {
        let on_disk = |block: &&Block| block.on_disk().is_some();
        read += disk_bytes(unit.blocks().filter(on_disk));
        if is_too_large(shared, unit) {
            runs += disk_bytes(unit.blocks());
        }
    }
    let merges = shared.job.reaches(Stage::Merge);
    let written = match target {
        Some(_) if shared.job.reduce.is_some() || shared.job.is_unique() => None,
        Some(_) if shared.job.compress.is_some() || !shared.job.yields.keeps_records() => None,
        Some(Target::File(..)) => Some(align_up(bytes)),
        // Each part is padded to whole blocks, which hardly counts.
        Some(Target::Stream(_) | Target::Parts(_)) => Some(bytes),
        None => Some(0),
    };
    progress.expect(
        Phase::Sort,
        Some(read + if merges { runs } else { 0 }),
        written.map(|written| {
            written
                + moved_bytes
                + if shared.job.reaches(Stage::Sort) {
                    runs
                } else {
                    0
                }
        }),
    );
    if shared.plan.verify {
        progress.expect(Phase::Verify, written, Some(0));
    }
    progress.enter(Phase::Sort, shared.os);
}

/// Begins the phase `sort` of several nodes, which together spilled and have so many bytes.
pub fn on_nodes(job: &Job, os: &dyn Os, spilled_bytes: u64, bytes: u64, verifies: bool) {
    let Some(progress) = &job.progress else {
        return;
    };
    progress.expect(Phase::Sort, Some(spilled_bytes), Some(align_up(bytes)));
    if verifies {
        progress.expect(Phase::Verify, Some(bytes), Some(0));
    }
    progress.enter(Phase::Sort, os);
}

/// Begins a job that reads and writes in turns, if all goes well each byte once. All of it counts as `sort`.
pub fn in_order(shared: &Shared<'_>, bytes: u64) {
    if let Some(progress) = &shared.job.progress {
        progress.expect(Phase::Distribute, Some(0), Some(0));
        progress.expect(Phase::Sort, Some(bytes), Some(align_up(bytes)));
        progress.enter(Phase::Sort, shared.os);
    }
}

/// It goes on in two passes from `written` bytes on, and what has been written may have to be once more.
pub fn out_of_order(shared: &Shared<'_>, bytes: u64, written: u64) {
    if let Some(progress) = &shared.job.progress {
        let twice = shared
            .plan
            .temp_bytes
            .unwrap_or(0)
            .min(bytes - written.min(bytes));
        let all = Some(bytes + twice + written);
        progress.expect(Phase::Sort, all, all);
    }
}

fn disk_bytes<'a>(blocks: impl Iterator<Item = &'a Block>) -> u64 {
    blocks.map(|block| block.disk_bytes() as u64).sum()
}

/// Begins to read the output again, of so many bytes.
pub fn verify(job: &Job, os: &dyn Os, bytes: u64) {
    if let Some(progress) = &job.progress {
        progress.expect(Phase::Verify, Some(bytes), Some(0));
        progress.enter(Phase::Verify, os);
    }
}
