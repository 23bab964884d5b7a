//! What bound each phase: one sentence, from what its threads did.
//!
//! In come a report's phases and what lay at the ends of the job, out goes a [`Verdict`] for each phase long
//! enough to be judged. Pure; no I/O. All phases have the same shape, and who waited for whom decides,
//! never the largest number:
//!
//! ```text
//!              input              memory
//!   source <----------- workers -----------> drain         ---> waits for
//!   read                cut, map, partition  spill
//!   load, merge         sort, reduce         write
//!   read, cut           merge                write          where sorted inputs are merged
//! ```
//!
//! Where workers compress blocks while they would wait for the drain (`pack`), that counts as waiting for it.
//!
//! Workers that hardly wait are the bound themselves. Where they wait, it is for the source or for the
//! drain, and that thread's own time says whether it waited for a device, worked itself, or waited for
//! memory that nobody was about to give back. A phase's device that is read and written all the time is
//! the bound both ways: neither direction is the cause alone.

mod follow;

use serde::{Deserialize, Serialize};

use crate::metrics::{Stage, per_second};
use crate::report::Phase;
use crate::text;

/// What bound one phase.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// `distribute`, `sort`, `merge` or `commit`.
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
    /// Giving the output its name, which deletes what had that before.
    Name {
        /// What is named.
        path: String,
    },
    /// Checking the output as it is read again, which one thread does.
    Check {
        /// What is checked.
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
        /// What part of its processor time went to the system.
        #[serde(default)]
        kernel_percent: u64,
        /// Memory that the process was given meanwhile for the first time, in bytes.
        #[serde(default)]
        memory_new_bytes: u64,
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
    /// The disk it lies on, or the file system over several, if it is one.
    pub device: Option<u64>,
}

/// Phases shorter than this are over before their pipeline is full.
pub const JUDGED_NS_MIN: u64 = 100_000_000;
/// Less of the processor time than this is what any job's system takes.
const KERNEL_PERCENT_TOLD: u64 = 30;
/// Less new memory than this costs nothing that counts.
const MEMORY_NEW_BYTES_TOLD: u64 = 64 << 20;

/// Judges each of `phases` that took long enough. `sample_ns` is the time the sample took.
#[must_use]
pub fn judge(phases: &[Phase], ends: &Ends, sample_ns: u64) -> Vec<Verdict> {
    let long = phases.iter().filter(|phase| phase.wall_ns >= JUDGED_NS_MIN);
    long.map(|phase| match phase.name.as_str() {
        "distribute" => {
            let shape = follow::Shape {
                source: &[Stage::Read, Stage::Decompress],
                workers: &[Stage::Cut, Stage::Map, Stage::Partition],
                meanwhile: &[Stage::Pack],
                drain: &[Stage::Spill],
                from: &ends.input,
                to: &ends.temp,
                temp: &ends.temp,
                core_count: ends.core_count,
                sample_ns,
            };
            shape.judge(phase)
        }
        "pass" | "copy" => {
            let shape = follow::Shape {
                source: &[Stage::Read, Stage::Decompress],
                workers: &[Stage::Cut, Stage::Map, Stage::Partition, Stage::Reduce],
                meanwhile: &[],
                drain: &[Stage::Write, Stage::Compress],
                from: &ends.input,
                to: &ends.output,
                temp: &ends.temp,
                core_count: ends.core_count,
                sample_ns: 0,
            };
            shape.judge(phase)
        }
        "merge" => {
            let shape = follow::Shape {
                source: &[Stage::Read, Stage::Decompress, Stage::Cut],
                workers: &[Stage::Merge],
                meanwhile: &[],
                drain: &[Stage::Write, Stage::Compress],
                from: &ends.input,
                to: &ends.output,
                temp: &ends.temp,
                core_count: ends.core_count,
                sample_ns: 0,
            };
            shape.judge(phase)
        }
        _ => {
            let shape = follow::Shape {
                source: &[Stage::Load, Stage::Merge],
                workers: &[Stage::Unpack, Stage::Sort, Stage::Reduce],
                meanwhile: &[],
                drain: &[Stage::Write, Stage::Compress],
                from: &ends.temp,
                to: &ends.output,
                temp: &ends.temp,
                core_count: ends.core_count,
                sample_ns: 0,
            };
            shape.judge(phase)
        }
    })
    .collect()
}

/// How long each part of what comes after sorting took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Commit {
    /// Cutting the output to its length and syncing it.
    pub sync_ns: u64,
    /// Reading it again, where it was verified.
    pub verify_ns: u64,
    /// The processor's part of that.
    pub verify_cpu_ns: u64,
    /// Giving it its name, which deletes what had that before.
    pub name_ns: u64,
}

impl Commit {
    /// All of it.
    #[must_use]
    pub fn all_ns(self) -> u64 {
        self.sync_ns + self.verify_ns + self.name_ns
    }
}

/// Judges what comes after sorting, by what took longest of it.
#[must_use]
pub fn judge_commit(commit: Commit, output_bytes: u64, output: &End) -> Option<Verdict> {
    let commit_ns = commit.all_ns();
    if commit_ns < JUDGED_NS_MIN || output.is_stream {
        return None;
    }
    let path = output.name.clone();
    let Commit {
        sync_ns,
        verify_ns,
        verify_cpu_ns,
        name_ns,
    } = commit;
    // The one thread that reads and checks hardly ever waited.
    let checks = verify_cpu_ns >= verify_ns / 10 * 8;
    let (bound_by, rates) = if verify_ns >= sync_ns.max(name_ns) && checks {
        (BoundBy::Check { path }, Rates::default())
    } else if verify_ns >= sync_ns.max(name_ns) {
        let rates = Rates {
            read_bytes_per_s: per_second(output_bytes, verify_ns),
            write_bytes_per_s: 0,
        };
        (BoundBy::Read { path }, rates)
    } else if sync_ns >= name_ns {
        (BoundBy::Sync { path }, Rates::default())
    } else {
        (BoundBy::Name { path }, Rates::default())
    };
    let parts = [
        (sync_ns, "syncing the output"),
        (verify_ns, "reading it again"),
        (name_ns, "its name, and deleting what had it before"),
    ];
    let took = parts.iter().filter(|(ns, _)| *ns * 100 >= commit_ns);
    let told: Vec<String> = took
        .map(|(ns, what)| format!("{what} took {}", text::seconds(*ns)))
        .collect();
    let mut verdict = Verdict {
        phase: "commit".to_owned(),
        wall_ns: commit_ns,
        bound_by,
        rates,
        probe: None,
        share_percent: None,
        evidence: vec![told.join(", ")],
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
                "reads of {read_path} and writes to {write_path} together, on one disk{}",
                told(&[read, write])
            ),
            BoundBy::Sample { path } => format!("the small reads of the sample of {path}"),
            BoundBy::Sync { path } => format!("syncing {path}"),
            BoundBy::Name { path } => format!("the output getting its name, {path}"),
            BoundBy::Check { path } => {
                format!("the processor, of which one thread checked {path} as it was read again")
            }
            BoundBy::Cpu {
                stage,
                worker_count,
                core_count,
                core_percent,
                kernel_percent,
                memory_new_bytes,
                work_ns_per_gb,
            } => {
                let kernel = match (kernel_percent, memory_new_bytes) {
                    (KERNEL_PERCENT_TOLD.., MEMORY_NEW_BYTES_TOLD..) => format!(
                        "; {kernel_percent} % of the processor time went to the system, which gave the process {} of memory \
                         it had not had before (sortmill doctor tells what that costs here)",
                        text::bytes(*memory_new_bytes)
                    ),
                    (KERNEL_PERCENT_TOLD.., _) => {
                        format!("; {kernel_percent} % of the processor time went to the system")
                    }
                    _ => String::new(),
                };
                let withheld = match core_percent {
                    0..70 => format!("; they had a core for only {core_percent} % of their work"),
                    _ => String::new(),
                };
                let each = work_ns_per_gb.map_or_else(String::new, |ns| {
                    format!(", {} of a core for each GB", text::seconds(ns))
                });
                format!(
                    "the processor: {} on {}, mostly in {}{each}{kernel}{withheld}",
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

impl BoundBy {
    /// Whether reads, and whether writes, are what it is about.
    fn directions(&self) -> (bool, bool) {
        match self {
            Self::Read { .. } | Self::InputStream { .. } => (true, false),
            Self::Write { .. } | Self::OutputStream { .. } => (false, true),
            Self::ReadAndWrite { .. } => (true, true),
            Self::Sample { .. }
            | Self::Sync { .. }
            | Self::Name { .. }
            | Self::Check { .. }
            | Self::Cpu { .. }
            | Self::Memory { .. }
            | Self::Turns => (false, false),
        }
    }
}

fn name(stage: Stage) -> String {
    format!("{stage:?}").to_lowercase()
}

fn plural(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn what_took_longest_of_the_commit_is_told() {
        let output = End {
            name: "out".to_owned(),
            is_stream: false,
            device: Some(1),
        };
        let checked = |sync_ns, verify_ns, verify_cpu_ns, name_ns| {
            let [sync_ns, verify_ns, verify_cpu_ns, name_ns] =
                [sync_ns, verify_ns, verify_cpu_ns, name_ns]
                    .map(|tenths: u64| tenths * 100_000_000);
            let commit = Commit {
                sync_ns,
                verify_ns,
                verify_cpu_ns,
                name_ns,
            };
            let verdict = judge_commit(commit, 3_000_000_000, &output).unwrap();
            format!("{}; {}", verdict.sentence, verdict.evidence.join(", "))
        };
        let said =
            |sync_ns, verify_ns, name_ns| checked(sync_ns, verify_ns, verify_ns / 2, name_ns);
        assert_eq!(
            said(20, 0, 0),
            "commit was bound by syncing out; syncing the output took 2.0 s"
        );
        assert_eq!(
            said(5, 20, 1),
            "commit was bound by reads of out: 1500 MB/s; syncing the output took 0.5 s, reading it again took 2.0 s, \
             its name, and deleting what had it before took 0.1 s"
        );
        assert_eq!(
            said(5, 0, 20),
            "commit was bound by the output getting its name, out; syncing the output took 0.5 s, \
             its name, and deleting what had it before took 2.0 s"
        );
        // Keys that cost much to compare, or an output that one thread decompresses.
        assert_eq!(
            checked(5, 20, 19, 1),
            "commit was bound by the processor, of which one thread checked out as it was read again; syncing the output took \
             0.5 s, reading it again took 2.0 s, its name, and deleting what had it before took 0.1 s"
        );
        assert_eq!(judge_commit(Commit::default(), 1, &output), None);
    }
}
