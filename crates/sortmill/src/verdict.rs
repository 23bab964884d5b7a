//! What bound each phase: one sentence, from what its threads did.
//!
//! In come a report's phases and what lay at the ends of the job, out goes a [`Verdict`] for each phase long
//! enough to be judged. Pure; no I/O. Both phases have the same shape, and who waited for whom decides,
//! never the largest number:
//!
//! ```text
//!              input              memory
//!   source <----------- workers -----------> drain         ---> waits for
//!   read                cut, map, partition  spill
//!   load, merge         sort, reduce         write
//! ```
//!
//! Workers that hardly wait are the bound themselves. Where they wait, it is for the source or for the
//! drain, and that thread's own time says whether it waited for a device, worked itself, or waited for
//! memory that nobody was about to give back. A phase's device that is read and written all the time is
//! the bound both ways: neither direction is the cause alone.

use serde::{Deserialize, Serialize};

use crate::metrics::{Stage, StageMetrics};
use crate::report::Phase;
use crate::text;

/// What bound one phase.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// `distribute`, `sort` or `commit`.
    pub phase: String,
    /// How long it took.
    pub wall_ns: u64,
    /// What it waited for.
    pub bound_by: BoundBy,
    /// What moved meanwhile, of what bound it.
    pub rates: Rates,
    /// What the same device did in the same run with nothing else to do, where that was measured.
    pub probe: Option<Rates>,
    /// `rates` over `probe`.
    pub share_percent: Option<u64>,
    /// What it was concluded from.
    pub evidence: Vec<String>,
    /// All of it for people.
    pub sentence: String,
}

/// Bytes a second, 0 where nothing was moved in that direction or it is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Rates {
    /// Read.
    pub read_bytes_per_s: u64,
    /// Written.
    pub write_bytes_per_s: u64,
}

/// What bounds a phase.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum BoundBy {
    /// The device, reading.
    Read {
        /// What is read.
        path: String,
    },
    /// The device, writing.
    Write {
        /// What is written, or the folder it lies in.
        path: String,
    },
    /// One device, reading and writing at once.
    ReadAndWrite {
        /// What is read.
        read_path: String,
        /// What is written.
        write_path: String,
    },
    /// The small reads of the sample, which the workers cannot begin without.
    Sample {
        /// What is sampled.
        path: String,
    },
    /// Syncing what the page cache or the device still held.
    Sync {
        /// What is synced.
        path: String,
    },
    /// The processor.
    Cpu {
        /// The costliest of the stages that were waited for.
        stage: Stage,
        /// Threads that ran it.
        worker_count: u64,
        /// Processors this process may run on.
        core_count: u64,
        /// For how much of the phase's work its threads had a core; the rest went to others on this machine.
        core_percent: u64,
        /// Work over bytes in; none where it had no bytes.
        work_ns_per_gb: Option<u64>,
    },
    /// Whoever feeds the input.
    InputStream {
        /// `standard input`, or the pipe.
        name: String,
    },
    /// Whoever reads the output.
    OutputStream {
        /// `standard output`, or the pipe.
        name: String,
    },
    /// Buffers: a thread that others waited for had none.
    Memory {
        /// The stage that had none.
        stage: Stage,
    },
    /// No one thing: all threads waited for each other in turn, and none was busy most of the time.
    Turns,
}

/// Where a job reads and writes, and on what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ends {
    /// The input.
    pub input: End,
    /// The folder for temporary files.
    pub temp: End,
    /// The output.
    pub output: End,
    /// Processors this process may run on.
    pub core_count: u64,
}

/// One end of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// As it is named to people.
    pub name: String,
    /// Read or written in order, at somebody else's pace.
    pub is_stream: bool,
    /// The file system it lies on, if it is one.
    pub device: Option<u64>,
}

/// Phases shorter than this are over before their pipeline is full.
pub const JUDGED_NS_MIN: u64 = 100_000_000;
/// Workers that wait less than this are the bound themselves.
const WAIT_SHARE_MIN: f64 = 0.10;
/// A direction that is in flight for so much of the phase loads the device it shares.
const IN_FLIGHT_SHARE_MIN: f64 = 0.5;
/// A thread that is idle for more than this bounds nobody.
const IDLE_SHARE_MAX: f64 = 0.4;

/// Judges each of `phases` that took long enough. `sample_ns` is the time the sample took.
#[must_use]
pub fn judge(phases: &[Phase], ends: &Ends, sample_ns: u64) -> Vec<Verdict> {
    let long = phases.iter().filter(|phase| phase.wall_ns >= JUDGED_NS_MIN);
    long.map(|phase| match phase.name.as_str() {
        "distribute" => {
            let shape = Shape {
                source: &[Stage::Read],
                workers: &[Stage::Cut, Stage::Map, Stage::Partition],
                drain: &[Stage::Spill],
                from: &ends.input,
                to: &ends.temp,
                core_count: ends.core_count,
                sample_ns,
            };
            shape.judge(phase)
        }
        _ => {
            let shape = Shape {
                source: &[Stage::Load, Stage::Merge],
                workers: &[Stage::Sort, Stage::Reduce],
                drain: &[Stage::Write],
                from: &ends.temp,
                to: &ends.output,
                core_count: ends.core_count,
                sample_ns: 0,
            };
            shape.judge(phase)
        }
    })
    .collect()
}

/// Judges what comes after sorting: reading the output again where it was verified, else syncing it.
#[must_use]
pub fn judge_commit(
    commit_ns: u64,
    output_bytes: u64,
    verified: bool,
    output: &End,
) -> Option<Verdict> {
    if commit_ns < JUDGED_NS_MIN || output.is_stream {
        return None;
    }
    let path = output.name.clone();
    let (bound_by, rates, told) = match verified {
        true => (
            BoundBy::Read { path },
            Rates {
                read_bytes_per_s: per_second(output_bytes, commit_ns),
                write_bytes_per_s: 0,
            },
            "reading the output again took most of it",
        ),
        false => (
            BoundBy::Sync { path },
            Rates::default(),
            "syncing the output took most of it",
        ),
    };
    let mut verdict = Verdict {
        phase: "commit".to_owned(),
        wall_ns: commit_ns,
        bound_by,
        rates,
        probe: None,
        share_percent: None,
        evidence: vec![told.to_owned()],
        sentence: String::new(),
    };
    verdict.sentence = verdict.words();
    Some(verdict)
}

/// The verdict on the phase that took longest: the one to act on.
#[must_use]
pub fn longest(verdicts: &[Verdict]) -> Option<&Verdict> {
    verdicts.iter().max_by_key(|verdict| verdict.wall_ns)
}

impl Verdict {
    /// Adds what the device did alone.
    pub fn add_probe(&mut self, probe: Rates) {
        let directions = [
            (self.rates.read_bytes_per_s, probe.read_bytes_per_s),
            (self.rates.write_bytes_per_s, probe.write_bytes_per_s),
        ];
        let shares: Vec<f64> = directions
            .iter()
            .filter(|(_, alone)| *alone > 0)
            .map(|(here, alone)| *here as f64 / *alone as f64)
            .collect();
        if shares.is_empty() {
            return;
        }
        // Both directions at once are half a device's work each, whatever their proportion.
        let share = shares.iter().sum::<f64>() / shares.len() as f64;
        self.probe = Some(probe);
        self.share_percent = Some((share * 100.0).round() as u64);
        self.sentence = self.words();
    }

    fn words(&self) -> String {
        let phase = &self.phase;
        let Rates {
            read_bytes_per_s: read,
            write_bytes_per_s: write,
        } = self.rates;
        let share = self.share_percent.map_or_else(String::new, |percent| {
            format!(", {percent} % of what it does alone now")
        });
        let told = |rates: &[u64]| {
            let known: Vec<String> = rates
                .iter()
                .filter(|&&rate| rate > 0)
                .map(|&rate| text::rate(rate, 1_000_000_000))
                .collect();
            match known.is_empty() {
                true => String::new(),
                false => format!(": {}{share}", known.join(" and ")),
            }
        };
        let by = match &self.bound_by {
            BoundBy::Read { path } => format!("reads of {path}{}", told(&[read])),
            BoundBy::Write { path } => format!("writes to {path}{}", told(&[write])),
            BoundBy::ReadAndWrite {
                read_path,
                write_path,
            } if read_path == write_path => {
                format!(
                    "reads and writes of {read_path} together{}",
                    told(&[read, write])
                )
            }
            BoundBy::ReadAndWrite {
                read_path,
                write_path,
            } => format!(
                "reads of {read_path} and writes to {write_path} together, on one file system{}",
                told(&[read, write])
            ),
            BoundBy::Sample { path } => format!("the small reads of the sample of {path}"),
            BoundBy::Sync { path } => format!("syncing {path}"),
            BoundBy::Cpu {
                stage,
                worker_count,
                core_count,
                core_percent,
                work_ns_per_gb,
            } => {
                let withheld = match core_percent {
                    0..70 => format!("; they had a core for only {core_percent} % of their work"),
                    _ => String::new(),
                };
                let each = work_ns_per_gb.map_or_else(String::new, |ns| {
                    format!(", {} of a core for each GB", text::seconds(ns))
                });
                format!(
                    "the processor: {} on {}, mostly in {}{each}{withheld}",
                    plural(*worker_count, "thread"),
                    plural(*core_count, "core"),
                    name(*stage)
                )
            }
            BoundBy::InputStream { name } => {
                format!("the program that feeds {name}{}", told(&[read]))
            }
            BoundBy::OutputStream { name } => format!("whoever reads {name}{}", told(&[write])),
            BoundBy::Memory { stage } => format!(
                "memory: {} had no free buffer while the others waited for it",
                name(*stage)
            ),
            BoundBy::Turns => {
                "no one thing: its threads waited for each other in turn, as where memory is \
                short"
                    .to_owned()
            }
        };
        format!("{phase} was bound by {by}")
    }
}

/// Who does what in a phase.
struct Shape<'a> {
    source: &'a [Stage],
    workers: &'a [Stage],
    drain: &'a [Stage],
    from: &'a End,
    to: &'a End,
    core_count: u64,
    sample_ns: u64,
}

impl Shape<'_> {
    fn judge(&self, phase: &Phase) -> Verdict {
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
        let all = Rates {
            read_bytes_per_s: per_second(read_bytes, streams(self.from, reading_ns(&source))),
            write_bytes_per_s: per_second(drain.bytes_out, streams(self.to, writing_ns(&drain))),
        };
        let (reads, writes) = bound_by.directions();
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
        // Who waits for the turn of another worker waits for what that one waits for.
        let own_ns = workers.all_ns() - workers.wait_output_ns;
        let for_source = share(workers.wait_input_ns, own_ns);
        let for_drain = share(workers.wait_memory_ns + workers.finished_ns, own_ns);
        if for_source + for_drain < WAIT_SHARE_MIN {
            return self.cpu(phase, self.workers);
        }
        let followed = if for_source >= for_drain {
            self.behind_source(phase, source, workers, drain)
        } else {
            self.behind_drain(phase, source, workers, drain)
        };
        followed.unwrap_or_else(
            || match 1.0 - for_source - for_drain > 1.0 - IDLE_SHARE_MAX {
                true => self.cpu(phase, self.workers),
                false => BoundBy::Turns,
            },
        )
    }

    /// The workers waited for input. None where the source cannot have been the cause.
    fn behind_source(
        &self,
        phase: &Phase,
        source: &StageMetrics,
        workers: &StageMetrics,
        drain: &StageMetrics,
    ) -> Option<BoundBy> {
        // A unit that the loader merges is counted under the workers' stages while it is written.
        let elsewhere_ns = phase.wall_ns.saturating_sub(source.all_ns());
        let work_ns = source.work_ns + elsewhere_ns;
        let per_worker_ns = workers.wait_input_ns / workers.worker_count.max(1);
        if source.wait_memory_ns > source.wait_device_ns.max(work_ns) {
            if 2 * self.sample_ns > per_worker_ns {
                let path = self.from.name.clone();
                return Some(BoundBy::Sample { path });
            }
            // Only where both waits do not fit beside each other did they wait at the same time.
            let both_ns = (source.wait_memory_ns + per_worker_ns).saturating_sub(phase.wall_ns);
            let stage = costliest(phase, self.source, |stage| stage.wait_memory_ns);
            return (share(both_ns, phase.wall_ns) > WAIT_SHARE_MIN)
                .then_some(BoundBy::Memory { stage });
        }
        if share(source.wait_device_ns + work_ns, phase.wall_ns) < 1.0 - IDLE_SHARE_MAX {
            return None;
        }
        if source.wait_device_ns < work_ns {
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
            match self.share_a_device() && is_busy(writing_ns(drain), phase) {
                true => self.both(),
                false => BoundBy::Read {
                    path: self.from.name.clone(),
                },
            },
        )
    }

    /// The workers waited for memory that the drain had, or for its end. None as above.
    fn behind_drain(
        &self,
        phase: &Phase,
        source: &StageMetrics,
        workers: &StageMetrics,
        drain: &StageMetrics,
    ) -> Option<BoundBy> {
        if share(drain.wait_device_ns + drain.work_ns, phase.wall_ns) < 1.0 - IDLE_SHARE_MAX {
            // One worker was behind the others, or nobody had a buffer.
            if workers.finished_ns > workers.wait_memory_ns {
                return Some(self.cpu(phase, self.workers));
            }
            return None;
        }
        if drain.wait_device_ns < drain.work_ns {
            return Some(self.cpu(phase, self.drain));
        }
        if self.to.is_stream {
            let name = self.to.name.clone();
            return Some(BoundBy::OutputStream { name });
        }
        let reads = source.bytes_in > 0 && is_busy(reading_ns(source), phase);
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
            work_ns_per_gb: (totals.bytes_in > 0)
                .then(|| per_second(totals.work_ns, totals.bytes_in)),
        }
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
        for stages in [self.source, self.workers, self.drain] {
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
            "processors: {:.1} of {} used by this process, whose threads worked for {:.1}",
            share(phase.cpu_ns, phase.wall_ns),
            self.core_count,
            share(work_ns(phase), phase.wall_ns),
        ));
        out
    }
}

impl BoundBy {
    /// Whether reads, and whether writes, are what it is about.
    fn directions(&self) -> (bool, bool) {
        match self {
            Self::Read { .. } | Self::InputStream { .. } => (true, false),
            Self::Write { .. } | Self::OutputStream { .. } => (false, true),
            Self::ReadAndWrite { .. } => (true, true),
            Self::Sample { .. }
            | Self::Sync { .. }
            | Self::Cpu { .. }
            | Self::Memory { .. }
            | Self::Turns => (false, false),
        }
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

/// Whether something was in flight for most of the phase.
fn is_busy(in_flight_ns: u64, phase: &Phase) -> bool {
    share(in_flight_ns, phase.wall_ns) >= IN_FLIGHT_SHARE_MIN
}

/// How long a source had reads in flight: it waits for memory only when it has none.
fn reading_ns(source: &StageMetrics) -> u64 {
    source.all_ns() - source.wait_memory_ns - source.finished_ns
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

fn name(stage: Stage) -> String {
    format!("{stage:?}").to_lowercase()
}

fn per_second(bytes: u64, ns: u64) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / u128::from(ns.max(1))) as u64
}

fn plural(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}
