//! Map functions alone: what they make goes to the output in the order of the input, in one pass over the disk.
//!
//! ```text
//! read -> cut, map (workers) -> Passing, in the order of chunks -> reduce, write
//! ```
//!
//! Nothing is partitioned, spilled or sorted, so the two phases are one: what distributes runs beside what writes, and what
//! lies between them ([`Passing`]) is bounded. Output buffers are the blocks that partitions would have, because
//! workers that wait for a buffer of the output must not wait for chunks that wait for workers. Inputs are read one after
//! the other, so that chunks come in their order. The proof is that of any job: what was mapped is what came to the writer.

use sortmill_io::Pool;
use sortmill_io::sync::{Arc, lock, spawn};

use super::Shared;
use super::distribute::{Distributed, distribute, guarded, join};
use super::sorting::{self, Done, Phase, Span};
use super::way::{Since, Way};
use crate::bodies::Bodies;
use crate::error::{Error, ErrorKind, Result};
use crate::job::{Job, Output};
use crate::metrics::{Finished, Meter, Stage, State};
use crate::passing::{Passing, first_pair};
use crate::plan::Plan;
use crate::queue::{Stop, job_scope};
use crate::report::Took;
use crate::stage::read::Source;
use crate::stage::write::{Seams, Sink, Target};

/// What waits for the output may take so much of the memory for partitions, of which there are none.
const SHARE: usize = 4;
/// And no more, in bytes.
const BYTES_MAX: usize = 64 << 20;

/// Refuses what does not go with it.
///
/// # Errors
/// [`ErrorKind::Usage`].
pub fn check(job: &Job) -> Result<()> {
    let is_plain = job.until.is_none() && job.on.is_none() && job.yields.keeps_records();
    let makes_pairs = job.map_makes_pairs && job.pair_bytes.is_none();
    let has_functions = job.map.is_some() && makes_pairs && job.reduce_makes_bytes.is_some();
    let is_one_file = !matches!(job.output, Output::Parts(_));
    if !job.passes_on || (is_plain && has_functions && is_one_file) {
        return Ok(());
    }
    let cause = "pairs that a map function makes pass on to one file or stream, as bytes that a reduce function makes of each";
    Err(Error::new(ErrorKind::Usage, "planning the job", cause))
}

/// What lies between mapping and writing, of a job that does nothing else.
pub fn passing(job: &Job, plan: &Plan, stop: &Stop) -> Option<Arc<Passing>> {
    let bytes_max = (plan.block_count * plan.block_bytes / SHARE).min(BYTES_MAX);
    let passing = Arc::new(Passing::new(plan.worker_count, bytes_max));
    let ended = Arc::clone(&passing);
    stop.on_stop(move || ended.abort());
    job.passes_on.then_some(passing)
}

impl Shared<'_> {
    /// Memory for output.
    pub fn output_pool(&self) -> &Pool {
        match self.passing {
            Some(_) => &self.block_pool,
            None => &self.chunk_pool,
        }
    }
}

/// Maps and writes.
///
/// # Errors
/// The first of any thread.
pub fn pass(shared: &Shared<'_>, sources: &[Source], target: Option<&Target>) -> Result<Way> {
    let (before, _begun) = (Since::now(shared.os), shared.begun("pass"));
    let header = shared.job.reduce_makes_bytes.clone().unwrap_or_default();
    let span = Span {
        base: header.len() as u64,
        header: &header,
        bytes: 0,
        total: None,
        seams: &Seams::default(),
        made_parts: None,
        is_all: false,
    };
    // Each in a thread: under shuttle whoever opened a scope may not wait for others meanwhile.
    let bodies = Bodies::default();
    let (distributed, sorted) = job_scope(shared.stop, |threads| {
        let distributing = spawn(threads, "distribute", || {
            guarded(shared.stop, || distribute(shared, sources, None, None))
        });
        let writing = spawn(threads, "output", || {
            guarded(shared.stop, || {
                sorting::sort(shared, (Vec::new(), &bodies), &span, target, None, None)
            })
        });
        (join(distributing), join(writing))
    });
    shared.stop.check()?;
    let mut distributed: Distributed = distributed.expect("no error was seen");
    let mut sorted = sorted.expect("no error was seen");
    distributed.metrics.merge(&sorted.metrics);
    sorted.header = header;
    let took = before.took(shared.os);
    Ok(Way {
        distributed,
        sorted,
        distribute: took,
        sort: Took::default(),
        order: None,
        copied: None,
        merged: None,
        passed: true,
    })
}

impl<'a> Phase<'a> {
    /// Puts everything that passes behind what is in the output.
    pub fn put_passing(&self, passing: &Passing, began_ns: u64) -> Option<(Done, Finished)> {
        let shared = self.shared;
        let mut meter = shared.meter("pass", &[Stage::Reduce], began_ns);
        let done = guarded(shared.stop, || self.put_all(passing, &mut meter));
        done.map(|done| (done, meter.finish(Stage::Reduce)))
    }

    fn put_all(&self, passing: &Passing, meter: &mut Meter<'_>) -> Result<Done> {
        let mut done = Done::default();
        let mut kept = lock(&self.sink);
        let sink = kept.get_or_insert_with(|| Sink::new(self.output, 0));
        self.put_records(sink, meter, &mut done, |way, meter| {
            loop {
                meter.lap(Stage::Reduce, State::Work);
                let batch = passing.next();
                meter.lap(Stage::Reduce, State::Input);
                let Some(batch) = batch else { break };
                let mut rest = &batch[..];
                while !rest.is_empty() {
                    let (record, behind) = first_pair(rest)?;
                    way.gathered.add(record, way.shared.number);
                    way.put(record, meter)?;
                    rest = behind;
                }
                passing.spare(batch);
            }
            way.shared.stop.check()
        })?;
        Ok(done)
    }
}
