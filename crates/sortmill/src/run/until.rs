//! Where a job ends early, to show what each stage costs ([`Job::until`]): what comes out of its last stage is
//! taken and dropped, so that everything before it runs as it always does. Nothing is written to an output.

use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::job::{Job, UNTIL_STAGES};
use crate::metrics::{Meter, Stage, State};
use crate::partitions::Unit;
use crate::queue::Stop;
use crate::report::Phase;

use super::proof::compare;

/// Refuses a stage after which no job can end, and to verify the output that such a job does not make.
///
/// # Errors
/// [`ErrorKind::Usage`], with the stages that can be named.
pub fn check_stage(job: &Job) -> Result<()> {
    match job.until {
        Some(stage) if !UNTIL_STAGES.contains(&stage) => {
            let names = UNTIL_STAGES.map(Stage::name).join(", ");
            let cause = format!("{} is not one of {names}", stage.name());
            Err(Error::new(ErrorKind::Usage, "ending the job early", cause))
        }
        Some(_) if job.verify == Some(true) => {
            let cause = "a job that ends early makes no output that could be verified";
            let error = Error::new(ErrorKind::Usage, "ending the job early", cause);
            Err(error.hint("Give either --until or --verify."))
        }
        Some(_) | None => Ok(()),
    }
}

/// Takes all that `pop` gives until there is no more, and hands it to `drop_it`. The time is counted under `stage`,
/// which the report of such a job leaves out.
///
/// # Errors
/// The job's, when it is ending.
pub fn discard<T>(
    pop: impl Fn() -> Option<T>,
    stop: &Stop,
    stage: Stage,
    meter: &mut Meter<'_>,
    mut drop_it: impl FnMut(T),
) -> Result<()> {
    loop {
        let item = pop();
        meter.lap(stage, State::Input);
        let Some(item) = item else {
            return stop.check();
        };
        drop_it(item);
        meter.lap(stage, State::Work);
    }
}

/// What is known of a unit's size before it is laid out: the bytes its own partition received, without what
/// the partitions that were divided had before.
pub fn received_bytes(unit: &Unit) -> u64 {
    unit.contents.last().map_or(0, |own| own.bytes)
}

/// The proof of a job that ends before its records come out of the sorters: as many records, of as many
/// bytes, as were distributed are in the partitions, and in the units that were sorted.
///
/// # Errors
/// [`ErrorKind::Lost`] if not.
pub fn check_counts(
    job: &Job,
    distributed: &Fingerprint,
    in_partitions: (u64, u64),
    in_units: (u64, u64),
) -> Result<()> {
    let compare_counts = |(records, bytes)| {
        let counted = Fingerprint {
            records,
            bytes,
            ..*distributed
        };
        compare(distributed, &counted)
    };
    if job.reaches(Stage::Partition) {
        compare_counts(in_partitions)?;
    }
    if job.reaches(Stage::Sort) {
        compare_counts(in_units)?;
    }
    Ok(())
}

/// Leaves out of the report what the job did not reach: threads of later stages only waited, or dropped what
/// came.
pub fn keep_reached(job: &Job, phases: &mut Vec<Phase>) {
    for phase in phases.iter_mut() {
        phase.stages.retain(|stage| job.reaches(stage.stage));
    }
    phases.retain(|phase| !phase.stages.is_empty());
}
