//! The way that a job takes from its inputs to its output: two phases, one after the other, or, where the input is
//! in order, in turns.

use super::distribute::{Distributed, distribute};
use super::merge_inputs::merge_inputs;
use super::notice::{Noticed, notice};
use super::ordered;
use super::parts::cuts;
use super::pass::pass;
use super::sampling::Drawn;
use super::sorting::{self, Sorted, Span};
use super::{Shared, made_parts, top};
use crate::error::Result;
use crate::metrics::{Metrics, Stage};
use crate::plan::Plan;
use crate::report::{Merged, Order, Phase};
use crate::stage::read::Source;
use crate::stage::write::{Seams, Target};
use crate::trace::Begun;

/// What was done, and what it took.
pub struct Way {
    pub distributed: Distributed,
    pub sorted: Sorted,
    pub distribute: Took,
    pub sort: Took,
    /// The order that was found, if it was.
    pub order: Option<Order>,
    /// What was copied as it came, because it was in order in one piece: that may be all of it.
    pub copied: Option<(Took, Metrics)>,
    /// Of sorted inputs, how they were merged: that is all the way there is.
    pub merged: Option<Merged>,
    /// What was mapped passed on to the output at once, and was not sorted: one phase.
    pub passed: bool,
}

/// What a phase took.
#[derive(Clone, Copy, Default)]
pub struct Took {
    wall_ns: u64,
    cpu_ns: u64,
}

impl Took {
    /// The clocks, to measure from.
    pub fn now(shared: &Shared<'_>) -> Self {
        Self {
            wall_ns: shared.os.now_ns(),
            cpu_ns: shared.os.usage().cpu_ns,
        }
    }

    /// Adds what has passed since `before`.
    pub fn add_since(&mut self, before: &Self, shared: &Shared<'_>) {
        let now = Self::now(shared);
        self.wall_ns += now.wall_ns - before.wall_ns;
        self.cpu_ns += now.cpu_ns - before.cpu_ns;
    }
}

impl Shared<'_> {
    /// Has a part of the job drawn that begins now and lasts until the answer is dropped.
    pub fn begun(&self, name: &'static str) -> Begun<'_> {
        Begun::now(name, self.job.trace.as_ref(), self.os)
    }
}

impl Way {
    /// The phases, for the report.
    pub fn phases(&self) -> Vec<Phase> {
        let phase =
            |name, took: &Took, metrics| Phase::new(name, took.wall_ns, took.cpu_ns, metrics);
        if self.merged.is_some() {
            return vec![phase("merge", &self.sort, &self.sorted.metrics)];
        }
        if self.passed {
            return vec![phase("pass", &self.distribute, &self.distributed.metrics)];
        }
        let both = [
            phase("distribute", &self.distribute, &self.distributed.metrics),
            phase("sort", &self.sort, &self.sorted.metrics),
        ];
        let Some((took, metrics)) = &self.copied else {
            return both.into();
        };
        let copied = phase("copy", took, metrics);
        let is_all = self.distribute.wall_ns == 0;
        let rest = both.into_iter().filter(|_| !is_all);
        [copied].into_iter().chain(rest).collect()
    }

    /// The bytes that any sort of this input within this memory must move: of one in order, each once.
    pub fn lower_bound_bytes(&self, plan: &Plan, output_bytes: u64) -> u64 {
        let read = &self.distributed.read;
        let is_one_pass = self.order.is_some_and(|order| order.is_one_pass);
        // What cannot be among the first need not be kept anywhere.
        let keeps_few = plan.yields.first().is_some();
        if self.merged.is_some() {
            return read.stored_bytes() + output_bytes;
        }
        if is_one_pass || self.passed || keeps_few {
            return read.bytes + output_bytes;
        }
        // What was compressed is read so, and spilled as what it was.
        let mapped_bytes = match plan.is_mapped() {
            true => self.distributed.fingerprint.bytes,
            false => read.bytes,
        };
        let bound = plan.lower_bound_bytes(read.bytes, mapped_bytes, output_bytes);
        bound - read.bytes + read.stored_bytes()
    }
}

/// Distributes and sorts. `distributed_bytes` is told what the output will hold, once that is known and was not before.
pub fn go(
    shared: &Shared<'_>,
    sources: &[Source],
    target: Option<&Target>,
    distributed_bytes: &mut Option<u64>,
) -> Result<Way> {
    if shared.job.merge.is_some() {
        let way = merge_inputs(shared, sources, target)?;
        *distributed_bytes = Some(way.distributed.fingerprint.bytes);
        return Ok(way);
    }
    if shared.passing.is_some() {
        return pass(shared, sources, target);
    }
    let looks = shared.plan.looks_for_order;
    let sampling = looks.then(|| shared.begun("sample"));
    let noticed = notice(shared, sources)?;
    drop(sampling);
    let drawn = match (noticed, target) {
        (Noticed::Order(found), Some(target)) => {
            return ordered::sort(shared, sources, target, found);
        }
        (Noticed::Disorder(drawn), _) => Some(drawn),
        (Noticed::Nothing | Noticed::Order(_), _) => None,
    };
    one_after_the_other(shared, sources, target, drawn, distributed_bytes)
}

fn one_after_the_other(
    shared: &Shared<'_>,
    sources: &[Source],
    target: Option<&Target>,
    drawn: Option<Drawn>,
    distributed_bytes: &mut Option<u64>,
) -> Result<Way> {
    let job = shared.job;
    let (mut distribute_took, mut sort_took) = (Took::default(), Took::default());
    let (before, begun) = (Took::now(shared), shared.begun("distribute"));
    let mut distributed = distribute(shared, sources, drawn, None)?;
    distribute_took.add_since(&before, shared);
    begun.end();
    let bytes = distributed.fingerprint.bytes;
    *distributed_bytes = Some(bytes);
    let mut units = std::mem::take(&mut distributed.units);
    let cuts = cuts(job, shared.cut_keys.cloned(), bytes, &units)?;
    if let Some(count) = job.yields.first() {
        let (needed, left) = top::needed(shared, units, count);
        units = needed;
        distributed.dropped.merge(&left);
    }
    let mut sorted = Sorted::nothing(&units);
    if job.reaches(Stage::Load) {
        let (before, _begun) = (Took::now(shared), shared.begun("sort"));
        let header = match &job.reduce_makes_bytes {
            Some(heading) => heading.clone(),
            None => std::mem::take(&mut distributed.read.header.bytes),
        };
        let header_bytes = header.len() as u64;
        let made_parts = made_parts(job, distributed.fingerprint.records)?;
        let span = Span {
            base: header_bytes,
            header: &header,
            bytes,
            total: (cuts.is_none()
                && made_parts.is_none()
                && !job.is_unique()
                && job.yields.keeps_records())
            .then_some(header_bytes + bytes),
            made_parts,
            seams: &Seams::default(),
            is_all: true,
        };
        let units = (units, &*distributed.bodies);
        sorted = sorting::sort(shared, units, &span, target, cuts, None)?;
        sorted.header = header;
        sort_took.add_since(&before, shared);
    }
    Ok(Way {
        distributed,
        sorted,
        distribute: distribute_took,
        sort: sort_took,
        order: None,
        copied: None,
        merged: None,
        passed: false,
    })
}
