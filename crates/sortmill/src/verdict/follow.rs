//! Follows the waits of one phase, from the workers to whom they waited for. Pure; no I/O.

use super::{BoundBy, End, Rates, Verdict, name};
use crate::metrics::{Stage, StageMetrics, per_second};
use crate::report::Phase;
use crate::text;

/// Workers that wait less than this are the bound themselves.
const WAIT_SHARE_MIN: f64 = 0.10;
/// A direction that is in flight for so much of the phase loads the device it shares.
const IN_FLIGHT_SHARE_MIN: f64 = 0.5;
/// Workers that wait for less than this, for what nobody explains, are the bound all the same.
const UNEXPLAINED_SHARE_MAX: f64 = 0.4;

/// Who does what in a phase.
pub struct Shape<'a> {
    pub source: &'a [Stage],
    pub workers: &'a [Stage],
    /// What workers do where they would wait for the drain.
    pub meanwhile: &'a [Stage],
    pub drain: &'a [Stage],
    pub from: &'a End,
    pub to: &'a End,
    /// Where workers themselves read and write, if they do.
    pub temp: &'a End,
    pub core_count: u64,
    pub sample_ns: u64,
}

impl Shape<'_> {
    pub fn judge(&self, phase: &Phase) -> Verdict {
        let source = sum(phase, self.source);
        let workers = sum(phase, self.workers);
        let drain = sum(phase, self.drain);
        let bound_by = self.bound_by(phase, &source, &workers, &drain);
        let wall = phase.wall_ns;
        let streams = |end: &End, in_flight_ns: u64| match end.is_stream {
            true => wall,
            false => in_flight_ns,
        };
        let read_bytes = sum(phase, &self.source[..1]).bytes_in;
        let written = self.writes(phase);
        let all = Rates {
            read_bytes_per_s: per_second(read_bytes, streams(self.from, self.reading_ns(phase))),
            write_bytes_per_s: per_second(
                written.bytes_out,
                streams(self.to, writing_ns(&written)),
            ),
        };
        // Of what workers read and write themselves, and of runs that were merged, it is not told how fast: a stage's bytes are others.
        let (reads, writes) = match &bound_by {
            BoundBy::ReadAndWrite {
                read_path,
                write_path,
            } if read_path == write_path => (false, false),
            bound_by => bound_by.directions(),
        };
        let mut verdict = Verdict {
            phase: phase.name.clone(),
            wall_ns: wall,
            rates: Rates {
                read_bytes_per_s: if reads { all.read_bytes_per_s } else { 0 },
                write_bytes_per_s: if writes { all.write_bytes_per_s } else { 0 },
            },
            bound_by,
            probe: None,
            share_percent: None,
            evidence: self.evidence(phase),
            sentence: String::new(),
        };
        verdict.sentence = verdict.words();
        verdict
    }

    /// Follows the waits, from the workers to whom they waited for.
    fn bound_by(
        &self,
        phase: &Phase,
        source: &StageMetrics,
        workers: &StageMetrics,
        drain: &StageMetrics,
    ) -> BoundBy {
        // A worker that has ended waits for the drain if that is busy most of the time, else for its fellows.
        let drain_ns = Busy::of(phase, self.drain, Stage::Compress).all_ns;
        let drains = share(drain_ns, phase.wall_ns) > IN_FLIGHT_SHARE_MIN;
        let ended_ns = if drains { workers.finished_ns } else { 0 };
        let for_drain_ns = workers.wait_memory_ns + ended_ns;
        // What is compressed meanwhile is what the drain has less to do, so it is as if they had waited for it.
        let packed_ns = sum(phase, self.meanwhile).work_ns;
        let for_drain_ns = for_drain_ns + packed_ns;
        // Who waits for the turn of another worker waits for what that one waits for.
        let own_ns =
            workers.work_ns + workers.wait_input_ns + for_drain_ns + workers.wait_device_ns;
        let for_source = share(workers.wait_input_ns, own_ns);
        let for_drain = share(for_drain_ns, own_ns);
        let for_device = share(workers.wait_device_ns, own_ns);
        if for_device > for_source.max(for_drain).max(WAIT_SHARE_MIN) {
            // Runs that one thread writes and merges, records that are read again to be compared.
            let path = &self.temp.name;
            return BoundBy::ReadAndWrite {
                read_path: path.clone(),
                write_path: path.clone(),
            };
        }
        if for_source + for_drain < WAIT_SHARE_MIN {
            return self.cpu(phase, self.workers);
        }
        let followed = if for_source >= for_drain {
            self.behind_source(phase, source, workers)
        } else {
            self.behind_drain(phase, workers, (source, drain), (for_drain_ns, packed_ns))
        };
        let waits = for_source + for_drain;
        followed.unwrap_or_else(|| match waits < UNEXPLAINED_SHARE_MAX {
            true => self.cpu(phase, self.workers),
            false => BoundBy::Turns,
        })
    }

    /// The workers waited for input. None where the source cannot have been the cause.
    fn behind_source(
        &self,
        phase: &Phase,
        source: &StageMetrics,
        workers: &StageMetrics,
    ) -> Option<BoundBy> {
        // A unit that the loader merges is counted under the workers' stages while it is written.
        let elsewhere_ns = phase.wall_ns.saturating_sub(source.all_ns());
        let work_ns = source.work_ns + elsewhere_ns;
        let busy = Busy::of(phase, self.source, Stage::Decompress);
        let per_worker_ns = workers.wait_input_ns / workers.worker_count.max(1);
        if source.wait_memory_ns > source.wait_device_ns.max(work_ns) {
            if 2 * self.sample_ns > phase.wall_ns {
                let path = self.from.name.clone();
                return Some(BoundBy::Sample { path });
            }
            // Only where both waits do not fit beside each other did they wait at the same time.
            let both_ns = (source.wait_memory_ns + per_worker_ns).saturating_sub(phase.wall_ns);
            let stage = costliest(phase, self.source, |stage| stage.wait_memory_ns);
            return (share(both_ns, phase.wall_ns) > WAIT_SHARE_MIN)
                .then_some(BoundBy::Memory { stage });
        }
        let busy_ns = busy.all_ns + elsewhere_ns;
        if !explains(busy_ns, per_worker_ns) || !outweighs(busy_ns, workers, phase) {
            return None;
        }
        if busy.device_ns < busy.work_ns + elsewhere_ns {
            return Some(self.cpu(phase, self.source));
        }
        if self.from.is_stream {
            let name = self.from.name.clone();
            return Some(BoundBy::InputStream { name });
        }
        if costliest(phase, self.source, |stage| stage.wait_device_ns) == Stage::Merge {
            return Some(BoundBy::ReadAndWrite {
                read_path: self.from.name.clone(),
                write_path: self.from.name.clone(),
            });
        }
        Some(
            match self.share_a_device() && is_busy(writing_ns(&self.writes(phase)), phase) {
                true => self.both(),
                false => BoundBy::Read {
                    path: self.from.name.clone(),
                },
            },
        )
    }

    /// The workers waited `waited_ns` together for memory that the drain had, or for its end; `packed_ns` of that they
    /// spent on having it do less. None as above.
    fn behind_drain(
        &self,
        phase: &Phase,
        workers: &StageMetrics,
        (source, drain): (&StageMetrics, &StageMetrics),
        (waited_ns, packed_ns): (u64, u64),
    ) -> Option<BoundBy> {
        let per_worker_ns = waited_ns / workers.worker_count.max(1);
        let busy = Busy::of(phase, self.drain, Stage::Compress);
        if !explains(busy.all_ns, per_worker_ns) {
            if 2 * packed_ns > waited_ns {
                // The drain waited for them.
                let stages = [self.workers, self.meanwhile].concat();
                return Some(self.cpu(phase, &stages));
            }
            let both_ns = (drain.wait_input_ns + per_worker_ns).saturating_sub(phase.wall_ns);
            let stage = costliest(phase, self.workers, |stage| stage.wait_memory_ns);
            return (share(both_ns, phase.wall_ns) > WAIT_SHARE_MIN)
                .then_some(BoundBy::Memory { stage });
        }
        if !outweighs(busy.all_ns, workers, phase) {
            return None;
        }
        if busy.device_ns < busy.work_ns {
            return Some(self.cpu(phase, self.drain));
        }
        if self.to.is_stream {
            let name = self.to.name.clone();
            return Some(BoundBy::OutputStream { name });
        }
        let reads = source.bytes_in > 0 && is_busy(self.reading_ns(phase), phase);
        Some(match self.share_a_device() && reads {
            true => self.both(),
            false => BoundBy::Write {
                path: self.to.name.clone(),
            },
        })
    }

    fn cpu(&self, phase: &Phase, stages: &[Stage]) -> BoundBy {
        let stage = costliest(phase, stages, |stage| stage.work_ns);
        let totals = sum(phase, &[stage]);
        BoundBy::Cpu {
            stage,
            worker_count: totals.worker_count,
            core_count: self.core_count,
            core_percent: percent(phase.cpu_ns, work_ns(phase)).min(100),
            kernel_percent: percent(phase.kernel_ns, phase.cpu_ns).min(100),
            memory_new_bytes: phase.memory_new_bytes,
            work_ns_per_gb: (totals.bytes_in > 0)
                .then(|| per_second(totals.work_ns, totals.bytes_in)),
        }
    }

    /// How long its source had reads in flight, a thread of it in the mean: it waits for memory only when it has none. Not those
    /// that decompress for it.
    fn reading_ns(&self, phase: &Phase) -> u64 {
        let stages = self.source.iter();
        let each = stages
            .filter(|&&stage| stage != Stage::Decompress)
            .map(|&stage| {
                let source = sum(phase, &[stage]);
                let in_flight_ns = source.all_ns() - source.wait_memory_ns - source.finished_ns;
                in_flight_ns / source.worker_count.max(1)
            });
        each.sum()
    }

    /// What its drain did, without those that compress for it.
    fn writes(&self, phase: &Phase) -> StageMetrics {
        let stages = self.drain.iter().copied();
        let stages: Vec<Stage> = stages.filter(|&stage| stage != Stage::Compress).collect();
        sum(phase, &stages)
    }

    fn share_a_device(&self) -> bool {
        let (from, to) = (self.from, self.to);
        !from.is_stream && !to.is_stream && from.device.is_some() && from.device == to.device
    }

    fn both(&self) -> BoundBy {
        BoundBy::ReadAndWrite {
            read_path: self.from.name.clone(),
            write_path: self.to.name.clone(),
        }
    }

    fn evidence(&self, phase: &Phase) -> Vec<String> {
        let mut out = Vec::new();
        let workers = [self.workers, self.meanwhile].concat();
        for stages in [self.source, &workers[..], self.drain] {
            let totals = sum(phase, stages);
            let all_ns = totals.all_ns();
            if all_ns == 0 {
                continue;
            }
            let names: Vec<String> = stages
                .iter()
                .filter(|stage| sum(phase, &[**stage]).all_ns() > 0)
                .map(|stage| name(*stage))
                .collect();
            let states = [
                (totals.work_ns, "working"),
                (totals.wait_input_ns, "waiting for input"),
                (totals.wait_output_ns, "waiting for its place in the output"),
                (totals.wait_memory_ns, "waiting for memory"),
                (totals.wait_device_ns, "waiting for its file or stream"),
                (totals.finished_ns, "done before the others"),
            ];
            let told: Vec<String> = states
                .iter()
                .filter(|(ns, _)| ns * 100 >= all_ns)
                .map(|(ns, what)| format!("{} {what}", text::percent(share(*ns, all_ns))))
                .collect();
            out.push(format!("{}: {}", names.join(", "), told.join(", ")));
        }
        out.push(format!(
            "processors: {:.1} of {} used by this process, {:.1} of it by the system, whose threads worked for {:.1}",
            share(phase.cpu_ns, phase.wall_ns),
            self.core_count,
            share(phase.kernel_ns, phase.wall_ns),
            share(work_ns(phase), phase.wall_ns),
        ));
        out
    }
}

/// The work of all threads of a phase.
fn work_ns(phase: &Phase) -> u64 {
    phase.stages.iter().map(|stage| stage.metrics.work_ns).sum()
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

fn percent(part: u64, whole: u64) -> u64 {
    (share(part, whole) * 100.0).round() as u64
}

/// How long a thread at one side of a phase was busy, in the mean.
struct Busy {
    /// Waiting for its device.
    device_ns: u64,
    /// Working.
    work_ns: u64,
    /// Either.
    all_ns: u64,
}

impl Busy {
    /// Of these stages; of `helpers` and all others whoever was busier. One thread that writes waits all the time where many that
    /// compress for it work a little each.
    fn of(phase: &Phase, stages: &[Stage], helpers: Stage) -> Self {
        let mut busy = Self {
            device_ns: 0,
            work_ns: 0,
            all_ns: 0,
        };
        let mut helping = (0, 0);
        for &stage in stages {
            let metrics = sum(phase, &[stage]);
            let count = metrics.worker_count.max(1);
            let (device_ns, work_ns) = (metrics.wait_device_ns / count, metrics.work_ns / count);
            busy.device_ns = busy.device_ns.max(device_ns);
            match stage == helpers {
                true => helping = (work_ns, device_ns + work_ns),
                false => {
                    busy.work_ns += work_ns;
                    busy.all_ns += device_ns + work_ns;
                }
            }
        }
        busy.work_ns = busy.work_ns.max(helping.0);
        busy.all_ns = busy.all_ns.max(helping.1);
        busy
    }
}

/// Whether a thread that was busy for so long is more of a bound than the workers: for most of the phase, or for longer than they
/// worked. What they waited a little for, while they worked all the rest, would hardly make them faster.
fn outweighs(busy_ns: u64, workers: &StageMetrics, phase: &Phase) -> bool {
    is_busy(busy_ns, phase) || busy_ns >= workers.work_ns / workers.worker_count.max(1)
}

/// Whether a thread was busy for about as long as others waited for it. Whatever it did in the rest of the
/// phase is no matter: a job spills nothing before its memory is full.
fn explains(busy_ns: u64, waited_ns: u64) -> bool {
    busy_ns >= waited_ns / 10 * 8
}

/// Whether something was in flight for most of the phase.
fn is_busy(in_flight_ns: u64, phase: &Phase) -> bool {
    share(in_flight_ns, phase.wall_ns) >= IN_FLIGHT_SHARE_MIN
}

/// How long a drain had writes in flight: it waits for input only when it has none.
fn writing_ns(drain: &StageMetrics) -> u64 {
    drain.all_ns() - drain.wait_input_ns - drain.finished_ns
}

fn costliest(phase: &Phase, stages: &[Stage], cost: impl Fn(&StageMetrics) -> u64) -> Stage {
    let most = stages
        .iter()
        .max_by_key(|stage| cost(&sum(phase, &[**stage])));
    *most.expect("a thread runs at least one stage")
}

/// What these stages did together; workers of several stages are the same threads.
fn sum(phase: &Phase, stages: &[Stage]) -> StageMetrics {
    let mut totals = StageMetrics::default();
    for report in &phase.stages {
        if !stages.contains(&report.stage) {
            continue;
        }
        let worker_count = totals.worker_count.max(report.metrics.worker_count);
        totals.merge(&report.metrics);
        totals.worker_count = worker_count;
    }
    totals
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
