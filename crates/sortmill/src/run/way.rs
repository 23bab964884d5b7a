//! The way that a job takes from its inputs to its output: two phases, one after the other, or, where the input is
//! in order, in turns.

use sortmill_io::os::{Os, Usage};

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
use crate::report::{Merged, Order, Phase, Took};
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

/// The clocks when something began.
#[derive(Clone, Copy)]
pub struct Since {
    began_ns: u64,
    usage: Usage,
}

impl Since {
    /// What they tell now.
    pub fn now(os: &dyn Os) -> Self {
        Self {
            began_ns: os.now_ns(),
            usage: os.usage(),
        }
    }

    /// What has passed since.
    pub fn took(&self, os: &dyn Os) -> Took {
        let now = Self::now(os);
        let (usage, before) = (now.usage, self.usage);
        Took {
            wall_ns: now.began_ns - self.began_ns,
            cpu_ns: usage.cpu_ns - before.cpu_ns,
            kernel_ns: usage.kernel_ns - before.kernel_ns,
            // Read from a file of the kernel's, which may be refused where too many are open.
            memory_new_bytes: usage
                .resident_bytes_peak
                .saturating_sub(before.resident_bytes_peak),
        }
    }
}

impl Took {
    /// Adds what has passed since `before`.
    pub fn add_since(&mut self, before: &Since, os: &dyn Os) {
        let took = before.took(os);
        self.wall_ns += took.wall_ns;
        self.cpu_ns += took.cpu_ns;
        self.kernel_ns += took.kernel_ns;
        self.memory_new_bytes += took.memory_new_bytes;
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
        let phase = |name, took: &Took, metrics| Phase::new(name, *took, metrics);
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
        if is_one_pass || self.passed || keeps_few || self.merged.is_some() {
            return read.stored_bytes() + output_bytes;
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
    let (before, begun) = (Since::now(shared.os), shared.begun("distribute"));
    let mut distributed = distribute(shared, sources, drawn, None)?;
    distribute_took.add_since(&before, shared.os);
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
        let (before, _begun) = (Since::now(shared.os), shared.begun("sort"));
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
        sort_took.add_since(&before, shared.os);
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
