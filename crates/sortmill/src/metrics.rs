//! Where the time went: for each stage, bytes and records in and out, time working and time waiting.
//!
//! A worker may run several stages in a row, so it attributes its time in laps: whatever passed since the
//! last lap belongs to the stage and the state named now. The laps of a worker add up to its life.

use serde::{Deserialize, Serialize};
use sortmill_io::Os;

use crate::progress::Progress;
use crate::trace::Track;

/// The steps of a phase, in the order of a record's way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Compressed bytes to chunk of what they were.
    Decompress,
    /// Range to chunk of bytes.
    Read,
    /// Chunk to batch of whole records.
    Cut,
    /// Batch to batch, by the user's function.
    Map,
    /// Batch to one batch per partition.
    Partition,
    /// Batch to another node.
    Send,
    /// Batch from another node.
    Receive,
    /// Block to compressed block.
    Pack,
    /// Batch to temporary file.
    Spill,
    /// Temporary blocks out of the way of the output, to behind it.
    Relocate,
    /// Partition to memory.
    Load,
    /// Compressed block to block.
    Unpack,
    /// Partition to sorted partition.
    Sort,
    /// Runs of a partition larger than memory to one.
    Merge,
    /// Sorted batch to batch, by the user's function.
    Reduce,
    /// Output to compressed output.
    Compress,
    /// Batch to output.
    Write,
}

/// All stages, in order.
pub const STAGES: [Stage; 17] = [
    Stage::Decompress,
    Stage::Read,
    Stage::Cut,
    Stage::Map,
    Stage::Partition,
    Stage::Send,
    Stage::Receive,
    Stage::Pack,
    Stage::Spill,
    Stage::Relocate,
    Stage::Load,
    Stage::Unpack,
    Stage::Sort,
    Stage::Merge,
    Stage::Reduce,
    Stage::Compress,
    Stage::Write,
];

impl Stage {
    /// Its name as people write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Decompress => "decompress",
            Self::Cut => "cut",
            Self::Map => "map",
            Self::Partition => "partition",
            Self::Send => "send",
            Self::Receive => "receive",
            Self::Pack => "pack",
            Self::Spill => "spill",
            Self::Relocate => "relocate",
            Self::Load => "load",
            Self::Unpack => "unpack",
            Self::Sort => "sort",
            Self::Merge => "merge",
            Self::Reduce => "reduce",
            Self::Compress => "compress",
            Self::Write => "write",
        }
    }

    /// Whether it is work that threads compute and that a job asks of them: neither moving bytes, nor compressing blocks
    /// while they would wait.
    #[must_use]
    pub fn computes(self) -> bool {
        match self {
            Self::Cut | Self::Map | Self::Partition => true,
            Self::Sort | Self::Merge | Self::Reduce => true,
            Self::Decompress | Self::Compress | Self::Unpack => true,
            Self::Read | Self::Send | Self::Receive | Self::Pack | Self::Spill => false,
            Self::Relocate | Self::Load | Self::Write => false,
        }
    }
}

/// What a worker did with a stretch of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Worked.
    Work,
    /// Waited for something to work on.
    Input,
    /// Waited for room behind it.
    Output,
    /// Waited for a buffer.
    Memory,
    /// Waited for a device.
    Device,
    /// Had finished before its phase did.
    Finished,
}

/// All states, in order.
pub const STATES: [State; 6] = [
    State::Work,
    State::Input,
    State::Output,
    State::Memory,
    State::Device,
    State::Finished,
];

impl State {
    /// Its name as people write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Input => "input",
            Self::Output => "output",
            Self::Memory => "memory",
            Self::Device => "device",
            Self::Finished => "done",
        }
    }
}

/// What one stage did, all its workers together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StageMetrics {
    /// Threads that ran it.
    pub worker_count: u64,
    /// Bytes that came in.
    pub bytes_in: u64,
    /// Bytes that went out.
    pub bytes_out: u64,
    /// Records that came in; 0 where records are not yet told apart.
    pub records_in: u64,
    /// Records that went out.
    pub records_out: u64,
    /// Nanoseconds of work.
    pub work_ns: u64,
    /// Nanoseconds waited for input.
    pub wait_input_ns: u64,
    /// Nanoseconds waited for room behind it.
    pub wait_output_ns: u64,
    /// Nanoseconds waited for memory.
    pub wait_memory_ns: u64,
    /// Nanoseconds waited for a device.
    pub wait_device_ns: u64,
    /// Nanoseconds between its end and the end of its phase.
    pub finished_ns: u64,
}

impl StageMetrics {
    fn slot(&mut self, state: State) -> &mut u64 {
        match state {
            State::Work => &mut self.work_ns,
            State::Input => &mut self.wait_input_ns,
            State::Output => &mut self.wait_output_ns,
            State::Memory => &mut self.wait_memory_ns,
            State::Device => &mut self.wait_device_ns,
            State::Finished => &mut self.finished_ns,
        }
    }

    /// All its time.
    #[must_use]
    pub fn all_ns(&self) -> u64 {
        self.work_ns
            + self.wait_input_ns
            + self.wait_output_ns
            + self.wait_memory_ns
            + self.wait_device_ns
            + self.finished_ns
    }

    /// Adds what others did.
    pub fn merge(&mut self, other: &Self) {
        self.worker_count += other.worker_count;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.records_in += other.records_in;
        self.records_out += other.records_out;
        self.work_ns += other.work_ns;
        self.wait_input_ns += other.wait_input_ns;
        self.wait_output_ns += other.wait_output_ns;
        self.wait_memory_ns += other.wait_memory_ns;
        self.wait_device_ns += other.wait_device_ns;
        self.finished_ns += other.finished_ns;
    }
}

/// The metrics of all stages; those of several workers add up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Metrics {
    stages: [StageMetrics; STAGES.len()],
}

impl Metrics {
    /// The metrics of one stage.
    #[must_use]
    pub fn stage(&self, stage: Stage) -> &StageMetrics {
        &self.stages[stage as usize]
    }

    /// The metrics of one stage, to be counted in.
    pub fn stage_mut(&mut self, stage: Stage) -> &mut StageMetrics {
        &mut self.stages[stage as usize]
    }

    /// Adds another worker's.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.stages.iter_mut().zip(&other.stages) {
            mine.merge(theirs);
        }
    }

    /// Adds what as many workers did in a later round of the same phase.
    pub fn then(&mut self, later: &Self) {
        for (mine, theirs) in self.stages.iter_mut().zip(&later.stages) {
            let worker_count = mine.worker_count.max(theirs.worker_count);
            mine.merge(theirs);
            mine.worker_count = worker_count;
        }
    }
}

/// One worker's stopwatch and counters.
pub struct Meter<'a> {
    os: &'a dyn Os,
    lap_ns: u64,
    /// What was counted so far.
    pub metrics: Metrics,
    /// Where laps are drawn, if somebody wants to see them.
    track: Option<Track>,
    /// Who is told of bytes that were moved, if somebody waits for the job.
    progress: Option<&'a Progress>,
    /// Work that was not told yet.
    untold_work_ns: u64,
}

impl<'a> Meter<'a> {
    /// Starts the watch of a worker that runs `stages`.
    #[must_use]
    pub fn start(os: &'a dyn Os, stages: &[Stage]) -> Self {
        Self::start_at(os, stages, os.now_ns())
    }

    /// Starts the watch as of `began_ns`, when the phase began: what it took until the worker ran counts.
    #[must_use]
    pub fn start_at(os: &'a dyn Os, stages: &[Stage], began_ns: u64) -> Self {
        let mut metrics = Metrics::default();
        for stage in stages {
            metrics.stage_mut(*stage).worker_count = 1;
        }
        Self {
            os,
            lap_ns: began_ns,
            metrics,
            track: None,
            progress: None,
            untold_work_ns: 0,
        }
    }

    /// Draws what it sees on `track` too.
    #[must_use]
    pub fn drawn_on(mut self, track: Option<Track>) -> Self {
        self.track = track;
        self
    }

    /// Tells `progress` of the bytes that are moved.
    #[must_use]
    pub fn telling(mut self, progress: Option<&'a Progress>) -> Self {
        self.progress = progress;
        self
    }

    /// The watch of a thread that helps this one with `stage`, and is told of and drawn as this one is.
    #[must_use]
    pub fn beside(&self, name: &str, stage: Stage) -> Self {
        Self::start(self.os, &[stage])
            .drawn_on(self.track.as_ref().map(|track| track.beside(name)))
            .telling(self.progress)
    }

    /// Attributes the time since the last lap. Answers how many nanoseconds that was.
    pub fn lap(&mut self, stage: Stage, state: State) -> u64 {
        let now = self.os.now_ns();
        let lap_ns = now - self.lap_ns;
        *self.metrics.stage_mut(stage).slot(state) += lap_ns;
        if let Some(progress) = self.progress {
            match state {
                State::Work if stage.computes() => self.untold_work_ns += lap_ns,
                // One call for each chunk or unit.
                _ if self.untold_work_ns > 0 => {
                    progress.worked(std::mem::take(&mut self.untold_work_ns));
                }
                _ => {}
            }
        }
        if let Some(track) = &mut self.track {
            track.lap(stage, state, self.lap_ns, now);
        }
        self.lap_ns = now;
        lap_ns
    }

    /// When the last lap ended, by the clock of the machine.
    #[must_use]
    pub fn lapped_ns(&self) -> u64 {
        self.lap_ns
    }

    /// A read or write of `bytes` was handed to the kernel.
    pub fn submitted(&mut self, bytes: usize) {
        if let Some(track) = &mut self.track {
            track.submitted(self.os.now_ns(), bytes);
        }
    }

    /// The kernel gave it back, just before the last lap ended.
    pub fn completed(&mut self, bytes: usize) {
        if let Some(track) = &mut self.track {
            track.completed(self.lap_ns, bytes);
        }
    }

    /// Bytes came in from a file or stream.
    pub fn read(&self, bytes: u64) {
        if let Some(progress) = self.progress {
            progress.read(bytes);
        }
    }

    /// Bytes went out to a file or stream.
    pub fn wrote(&self, bytes: u64) {
        if let Some(progress) = self.progress {
            progress.wrote(bytes);
        }
    }

    /// Bytes that were to be spilled and loaded will not be: they were compressed away.
    pub fn spared(&self, bytes: u64) {
        if let Some(progress) = self.progress {
            progress.spared(bytes);
        }
    }

    /// The counters of one stage.
    pub fn stage(&mut self, stage: Stage) -> &mut StageMetrics {
        self.metrics.stage_mut(stage)
    }

    /// Ends the watch: what it counted, and when it ended.
    #[must_use]
    pub fn finish(mut self, stage: Stage) -> Finished {
        Finished {
            metrics: self.metrics,
            stage,
            end_ns: self.lap_ns,
            track: self.track.take(),
        }
    }
}

impl Drop for Meter<'_> {
    /// A thread that failed or panicked was doing something.
    fn drop(&mut self) {
        if let Some(track) = &mut self.track {
            track.cut_short(self.lap_ns, self.os.now_ns());
        }
    }
}

/// A worker's counts, with the moment it ended.
pub struct Finished {
    metrics: Metrics,
    stage: Stage,
    end_ns: u64,
    track: Option<Track>,
}

impl Finished {
    /// The counts, with the time up to the end of the phase attributed to having finished.
    #[must_use]
    pub fn until(mut self, phase_end_ns: u64) -> Metrics {
        let end_ns = phase_end_ns.max(self.end_ns);
        self.metrics.stage_mut(self.stage).finished_ns += end_ns - self.end_ns;
        if let Some(mut track) = self.track {
            track.lap(self.stage, State::Finished, self.end_ns, end_ns);
        }
        self.metrics
    }
}

/// Bytes a second, of what took so long.
#[must_use]
pub fn per_second(bytes: u64, ns: u64) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / u128::from(ns.max(1))) as u64
}
