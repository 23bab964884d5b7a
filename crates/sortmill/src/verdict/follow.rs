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
        let (read, written) = (self.reads(phase), self.writes(phase));
        let all = Rates {
            read_bytes_per_s: per_second(read_bytes, streams(self.from, reading_ns(&read))),
            write_bytes_per_s: per_second(
                written.bytes_out,
                streams(self.to, writing_ns(&written)),
            ),
        };
        // Of runs that were merged it is not told how fast they were read and written: a stage's bytes are others.
        let (reads, writes) = match &bound_by {
            BoundBy::ReadAndWrite {
                read_path,
                write_path,
            } if phase.name == "sort" && read_path == write_path => (false, false),
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
        let drain_ns = drain.wait_device_ns + drain.work_ns;
        let drains = share(drain_ns, phase.wall_ns) > IN_FLIGHT_SHARE_MIN;
        let ended_ns = if drains { workers.finished_ns } else { 0 };
        let for_drain_ns = workers.wait_memory_ns + ended_ns;
        // What is compressed meanwhile is what the drain has less to do, so it is as if they had waited for it.
        let packed_ns = sum(phase, self.meanwhile).work_ns;
        let for_drain_ns = for_drain_ns + packed_ns;
        // Who waits for the turn of another worker waits for what that one waits for.
        let own_ns = workers.work_ns + workers.wait_input_ns + for_drain_ns;
        let for_source = share(workers.wait_input_ns, own_ns);
        let for_drain = share(for_drain_ns, own_ns);
        if for_source + for_drain < WAIT_SHARE_MIN {
            return self.cpu(phase, self.workers);
        }
        let followed = if for_source >= for_drain {
            self.behind_source(phase, source, workers)
        } else {
            self.behind_drain(phase, source, drain, (for_drain_ns, packed_ns))
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
        if !explains(source.wait_device_ns + work_ns, per_worker_ns) {
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
        source: &StageMetrics,
        drain: &StageMetrics,
        (waited_ns, packed_ns): (u64, u64),
    ) -> Option<BoundBy> {
        let per_worker_ns = waited_ns / sum(phase, self.workers).worker_count.max(1);
        if !explains(drain.wait_device_ns + drain.work_ns, per_worker_ns) {
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
        if drain.wait_device_ns < drain.work_ns {
            return Some(self.cpu(phase, self.drain));
        }
        if self.to.is_stream {
            let name = self.to.name.clone();
            return Some(BoundBy::OutputStream { name });
        }
        let read = self.reads(phase);
        let reads = source.bytes_in > 0 && is_busy(reading_ns(&read), phase);
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

    /// What its source did, without those that decompress for it.
    fn reads(&self, phase: &Phase) -> StageMetrics {
        without(phase, self.source, Stage::Decompress)
    }

    /// What its drain did, without those that compress for it.
    fn writes(&self, phase: &Phase) -> StageMetrics {
        without(phase, self.drain, Stage::Compress)
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

/// Whether a thread was busy for about as long as others waited for it. Whatever it did in the rest of the
/// phase is no matter: a job spills nothing before its memory is full.
fn explains(busy_ns: u64, waited_ns: u64) -> bool {
    busy_ns >= waited_ns / 10 * 8
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

/// What these stages did together, all but one of them.
fn without(phase: &Phase, stages: &[Stage], left_out: Stage) -> StageMetrics {
    let stages: Vec<Stage> = (stages.iter().copied())
        .filter(|&stage| stage != left_out)
        .collect();
    sum(phase, &stages)
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
mod tests {
    use super::super::{Ends, judge};
    use super::*;
    use crate::metrics::Metrics;
    use crate::report::{StageReport, Took};

    /// Percents of a phase that a thread worked, waited for input, output, memory and a device, and was done.
    type Shares = [u64; 6];

    const GB: u64 = 1_000_000_000;

    fn phase(name: &str, source: Shares, workers: Shares, drain: Shares) -> Phase {
        let stages = match name {
            "distribute" => [Stage::Read, Stage::Partition, Stage::Spill],
            _ => [Stage::Load, Stage::Sort, Stage::Write],
        };
        let mut metrics = Metrics::default();
        for (stage, (shares, count)) in
            stages
                .into_iter()
                .zip([(source, 1), (workers, 2), (drain, 1)])
        {
            let [work, input, output, memory, device, finished] =
                shares.map(|percent| count * percent * GB / 10);
            *metrics.stage_mut(stage) = StageMetrics {
                worker_count: count,
                bytes_in: 5 * GB,
                bytes_out: 5 * GB,
                work_ns: work,
                wait_input_ns: input,
                wait_output_ns: output,
                wait_memory_ns: memory,
                wait_device_ns: device,
                finished_ns: finished,
                ..StageMetrics::default()
            };
        }
        let took = Took {
            wall_ns: 10 * GB,
            cpu_ns: 15 * GB,
            kernel_ns: GB,
            memory_new_bytes: GB,
        };
        Phase::new(name, took, &metrics)
    }

    /// A job's three ends, all files, each on the device of this number.
    fn ends(devices: [u64; 3]) -> Ends {
        let [input, temp, output] =
            [("in", 0), ("temp", 1), ("out", 2)].map(|(name, number)| End {
                name: name.to_owned(),
                is_stream: false,
                device: Some(devices[number]),
            });
        Ends {
            input,
            temp,
            output,
            core_count: 2,
        }
    }

    fn check(phase: &Phase, ends: &Ends, sample_ns: u64, expected: &str) {
        let verdicts = judge(std::slice::from_ref(phase), ends, sample_ns);
        assert_eq!(verdicts[0].sentence, expected, "{:#?}", verdicts[0]);
    }

    #[test]
    fn one_disk_for_all() {
        let ends = ends([1, 1, 1]);
        // Three phases of the main benchmark (bench/runs): nothing is spilled before memory is full.
        let distribute = phase(
            "distribute",
            [1, 0, 0, 29, 70, 0],
            [57, 10, 0, 33, 0, 0],
            [14, 39, 0, 0, 47, 0],
        );
        check(
            &distribute,
            &ends,
            0,
            "distribute was bound by reads of in and writes to temp together, on one file system: \
             704 MB/s and 820 MB/s",
        );
        let reading = phase(
            "sort",
            [2, 0, 0, 0, 98, 0],
            [35, 65, 0, 0, 0, 0],
            [1, 38, 0, 0, 61, 0],
        );
        check(
            &reading,
            &ends,
            0,
            "sort was bound by reads of temp and writes to out together, on one file system: \
             500 MB/s and 806 MB/s",
        );
        let sorting = phase(
            "sort",
            [4, 0, 0, 0, 94, 2],
            [93, 2, 2, 3, 0, 0],
            [2, 18, 0, 0, 80, 0],
        );
        check(
            &sorting,
            &ends,
            0,
            "sort was bound by the processor: 2 threads on 2 cores, mostly in sort, 3.7 s of a core \
             for each GB",
        );
    }

    #[test]
    fn what_the_system_took_is_told() {
        let mut distribute = phase(
            "distribute",
            [2, 0, 0, 68, 30, 0],
            [99, 1, 0, 0, 0, 0],
            [0, 100, 0, 0, 0, 0],
        );
        let known = "distribute was bound by the processor: 2 threads on 2 cores, mostly in partition, 4.0 s of a core \
                     for each GB";
        check(&distribute, &ends([1, 1, 1]), 0, known);
        // 10 GB in 16 GB of memory, on a virtual machine whose host had taken back what was free.
        distribute.kernel_ns = 9 * GB;
        distribute.memory_new_bytes = 9 << 30;
        let with_memory = format!(
            "{known}; 60 % of the processor time went to the system, which gave the process 9.0 GiB of memory it had not had before \
             (sortmill doctor tells what that costs here)"
        );
        check(&distribute, &ends([1, 1, 1]), 0, &with_memory);
        distribute.memory_new_bytes = 0;
        let without = format!("{known}; 60 % of the processor time went to the system");
        check(&distribute, &ends([1, 1, 1]), 0, &without);
    }

    /// A phase in which workers compressed what waited for the drain, for so many percents of their time.
    fn packed(mut phase: Phase, percent: u64) -> Phase {
        let metrics = StageMetrics {
            worker_count: 2,
            bytes_in: 5 * GB,
            bytes_out: 2 * GB,
            work_ns: 2 * percent * GB / 10,
            ..StageMetrics::default()
        };
        let stage = Stage::Pack;
        phase.stages.push(StageReport { stage, metrics });
        phase
    }

    #[test]
    fn who_compresses_while_the_disk_is_busy_waits_for_it() {
        let distribute = phase(
            "distribute",
            [1, 0, 0, 89, 10, 0],
            [20, 5, 0, 15, 0, 0],
            [3, 4, 0, 0, 93, 0],
        );
        check(
            &packed(distribute, 60),
            &ends([1, 2, 3]),
            0,
            "distribute was bound by writes to temp: 521 MB/s",
        );
        // Hardly anything was left for the disk.
        let distribute = phase(
            "distribute",
            [1, 0, 0, 89, 10, 0],
            [20, 5, 0, 5, 0, 0],
            [3, 70, 0, 0, 27, 0],
        );
        check(
            &packed(distribute, 70),
            &ends([1, 2, 3]),
            0,
            "distribute was bound by the processor: 2 threads on 2 cores, mostly in pack, 2.8 s of a \
             core for each GB",
        );
    }

    /// The same phase with two threads more, which helped its source or its drain.
    fn helped(mut phase: Phase, stage: Stage, shares: Shares) -> Phase {
        let [work, input, output, memory, device, _] = shares.map(|percent| percent * GB / 5);
        let metrics = StageMetrics {
            worker_count: 2,
            bytes_in: 5 * GB,
            bytes_out: GB,
            work_ns: work,
            wait_input_ns: input,
            wait_output_ns: output,
            wait_memory_ns: memory,
            wait_device_ns: device,
            ..StageMetrics::default()
        };
        phase.stages.push(StageReport { stage, metrics });
        phase
    }

    #[test]
    fn whoever_decompresses_or_compresses_is_the_bound() {
        let distribute = phase(
            "distribute",
            [2, 98, 0, 0, 0, 0],
            [10, 90, 0, 0, 0, 0],
            [0, 100, 0, 0, 0, 0],
        );
        check(
            &helped(distribute, Stage::Decompress, [70, 0, 0, 0, 30, 0]),
            &ends([1, 1, 1]),
            0,
            "distribute was bound by the processor: 2 threads on 2 cores, mostly in decompress, \
             2.8 s of a core for each GB",
        );
        let sort = phase(
            "sort",
            [1, 0, 90, 0, 9, 0],
            [5, 0, 50, 45, 0, 0],
            [1, 94, 0, 0, 5, 0],
        );
        check(
            &helped(sort, Stage::Compress, [70, 10, 20, 0, 0, 0]),
            &ends([1, 1, 1]),
            0,
            "sort was bound by the processor: 2 threads on 2 cores, mostly in compress, 2.8 s of a \
             core for each GB",
        );
    }

    #[test]
    fn each_end_on_its_own_disk() {
        let ends = ends([1, 2, 3]);
        let writing = phase(
            "distribute",
            [1, 0, 0, 29, 70, 0],
            [57, 10, 0, 33, 0, 0],
            [14, 39, 0, 0, 47, 0],
        );
        check(
            &writing,
            &ends,
            0,
            "distribute was bound by writes to temp: 820 MB/s",
        );
        let reading = phase(
            "sort",
            [2, 0, 0, 0, 98, 0],
            [35, 65, 0, 0, 0, 0],
            [1, 38, 0, 0, 61, 0],
        );
        check(
            &reading,
            &ends,
            0,
            "sort was bound by reads of temp: 500 MB/s",
        );
    }

    #[test]
    fn waits_at_different_times_explain_nothing() {
        let ends = ends([1, 1, 1]);
        // Workers waited at the start for the first chunk, the reader later for chunks to come back.
        let working = phase(
            "distribute",
            [20, 0, 0, 60, 0, 20],
            [78, 22, 0, 0, 0, 0],
            [2, 98, 0, 0, 0, 0],
        );
        check(
            &working,
            &ends,
            GB,
            "distribute was bound by the processor: 2 threads on 2 cores, mostly in partition, \
             3.1 s of a core for each GB",
        );
        let starving = phase(
            "sort",
            [5, 0, 0, 90, 5, 0],
            [20, 80, 0, 0, 0, 0],
            [2, 80, 0, 0, 18, 0],
        );
        check(
            &starving,
            &ends,
            0,
            "sort was bound by memory: load had no free buffer while the others waited for it",
        );
        let turns = phase(
            "distribute",
            [15, 0, 0, 55, 30, 0],
            [20, 50, 0, 30, 0, 0],
            [5, 90, 0, 0, 5, 0],
        );
        check(
            &turns,
            &ends,
            9 * GB,
            "distribute was bound by the small reads of the sample of in",
        );
    }

    /// On a machine that was busy with others, one of two workers ended long before the other, while the
    /// device wrote what it was given without delay: for a while that was told as bound by the device.
    #[test]
    fn a_worker_that_ends_early_waits_for_its_fellow() {
        let uneven = phase(
            "sort",
            [0, 0, 0, 0, 0, 100],
            [87, 0, 1, 0, 0, 12],
            [1, 72, 0, 0, 27, 0],
        );
        check(
            &uneven,
            &ends([1, 1, 1]),
            0,
            "sort was bound by the processor: 2 threads on 2 cores, mostly in sort, 3.5 s of a core \
             for each GB",
        );
        let draining = phase(
            "sort",
            [0, 0, 0, 0, 0, 100],
            [30, 0, 0, 10, 0, 60],
            [1, 20, 0, 0, 79, 0],
        );
        check(
            &draining,
            &ends([1, 2, 3]),
            0,
            "sort was bound by writes to out: 625 MB/s",
        );
    }

    #[test]
    fn somebody_elses_pace() {
        let mut ends = ends([1, 2, 3]);
        ends.input.is_stream = true;
        ends.output.is_stream = true;
        let fed = phase(
            "distribute",
            [1, 0, 1, 0, 98, 0],
            [5, 95, 0, 0, 0, 0],
            [2, 95, 0, 0, 3, 0],
        );
        check(
            &fed,
            &ends,
            0,
            "distribute was bound by the program that feeds in: 500 MB/s",
        );
        // One worker has the turn and waits for a buffer, the other waits for its turn.
        let read = phase(
            "sort",
            [1, 0, 0, 40, 1, 58],
            [4, 0, 48, 40, 0, 8],
            [1, 1, 0, 0, 98, 0],
        );
        check(
            &read,
            &ends,
            0,
            "sort was bound by whoever reads out: 500 MB/s",
        );
        // The one that has the turn works: the waits of the others are not for the output.
        let working = phase(
            "sort",
            [1, 0, 0, 40, 1, 58],
            [50, 2, 46, 1, 0, 1],
            [20, 75, 0, 0, 5, 0],
        );
        check(
            &working,
            &ends,
            0,
            "sort was bound by the processor: 2 threads on 2 cores, mostly in sort, 2.0 s of a core \
             for each GB",
        );
    }

    /// What merging read and wrote is counted elsewhere, so no rate is told, and nothing is compared with what the disk does.
    #[test]
    fn runs_that_were_merged_have_no_rates() {
        let mut merged = phase(
            "sort",
            [0, 0, 0, 0, 0, 0],
            [5, 95, 0, 0, 0, 0],
            [1, 98, 0, 0, 1, 0],
        );
        let metrics = StageMetrics {
            worker_count: 1,
            work_ns: GB,
            wait_device_ns: 9 * GB,
            ..StageMetrics::default()
        };
        let stage = Stage::Merge;
        merged.stages.push(StageReport { stage, metrics });
        check(
            &merged,
            &ends([1, 1, 1]),
            0,
            "sort was bound by reads and writes of temp together",
        );
    }

    #[test]
    fn a_probe_gives_the_share() {
        let ends = ends([1, 2, 3]);
        let writing = phase(
            "distribute",
            [1, 0, 0, 89, 10, 0],
            [5, 0, 0, 95, 0, 0],
            [2, 0, 0, 0, 98, 0],
        );
        let mut verdict = judge(&[writing], &ends, 0).remove(0);
        verdict.add_probe(Rates {
            read_bytes_per_s: 0,
            write_bytes_per_s: GB * 52 / 100,
        });
        assert_eq!(
            verdict.sentence,
            "distribute was bound by writes to temp: 500 MB/s, 96 % of what it does alone now"
        );
    }
}
