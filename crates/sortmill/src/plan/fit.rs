//! A plan that memory is enough for: with as many workers as there may be, or with fewer. If there is none, how much would do.

use std::iter::{once, successors};

use sortmill_io::os::Machine;

use super::{MIB, Plan, node_count};
use crate::error::{Error, ErrorKind, Result};
use crate::job::Job;
use crate::text;

/// A wish is raised to as much, whatever the machine says that it has: it may not know.
const WISH_BYTES_MIN: u64 = 512 << 20;

/// What `within` plans of the job for `limit` bytes; where memory is a wish, or nobody's, for more of what the `machine` has, if it takes that.
///
/// # Errors
/// [`ErrorKind::Memory`] if that is less than any plan needs, with the least that is enough.
pub fn within(
    job: &Job,
    machine: &Machine,
    limit: u64,
    within: impl Fn(&Job, u64) -> Option<Plan>,
) -> Result<Plan> {
    if let Some(plan) = within(job, limit) {
        return Ok(plan);
    }
    let fewer = with_fewer_workers(job, machine.cores);
    let wish_max = match (job.memory_is_wish, job.memory_bytes) {
        (true, _) => machine
            .memory_bytes_available
            .max(limit)
            .max(WISH_BYTES_MIN),
        // Nobody has said how much. The program itself needs some, too.
        (false, None) => (machine.memory_bytes_available / 4 * 3).max(limit),
        (false, Some(_)) => limit,
    };
    if let Some(plan) = fewer.iter().find_map(|job| within(job, limit)) {
        return Ok(plan);
    }
    let plan = |mib| {
        let mut jobs = once(job).chain(&fewer);
        Some((mib * MIB, jobs.find_map(|job| within(job, mib * MIB))?))
    };
    // More memory may be shared by more workers, or in larger blocks, and then be too little: less is enough.
    let below = (1..=(limit / MIB).min(1024)).rev().find_map(plan);
    let mut above = (1..1024).chain((10..40).map(|power| 1 << power));
    match below.or_else(|| above.find_map(plan)) {
        Some((bytes, plan)) if bytes <= wish_max => Ok(plan),
        Some((bytes, _)) => Err(too_little(limit, bytes)),
        None => Err(too_little(limit, (1 << 40) * MIB)),
    }
}

/// The job with half as many workers, and half of these, down to one on each node.
fn with_fewer_workers(job: &Job, cores: usize) -> Vec<Job> {
    let nodes = node_count(job) as usize;
    let halved = |&count: &usize| (count > nodes).then_some((count / 2).max(nodes));
    let counts = successors(Some(job.threads.unwrap_or(cores)), halved).skip(1);
    let with = |threads| Job {
        threads: Some(threads),
        ..job.clone()
    };
    counts.map(with).collect()
}

fn too_little(have: u64, need: u64) -> Error {
    Error::new(
        ErrorKind::Memory,
        "planning the job",
        format!(
            "{} of memory is too little: this job needs at least {}",
            text::bytes(have),
            text::bytes(need)
        ),
    )
    .hint("Give it more with --memory.")
}
