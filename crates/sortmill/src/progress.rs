//! How far a job is and how long it will still take, for whoever waits for it.
//!
//! In come the bytes that its threads have moved, as each transfer ends, and what is known of those to come;
//! out goes a [`Snapshot`], to any thread at any time. The job measures nothing for it: one lock is taken for
//! each transfer, and one that nobody watches pays a branch.
//!
//! The time left follows from the bytes left. A phase is thought to go on at the pace it went so far, which is
//! the time it took over the least that a disk needs for the bytes it moved; one that has not begun goes at
//! the pace of the one before it. Where the disk was not measured, a byte is a byte, read or written.

use serde::Serialize;
use sortmill_io::Os;
use sortmill_io::sync::{Mutex, lock};

use crate::disk::Rates;

/// What a job does one after the other. Not every job does everything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Folders are looked after and space is reserved.
    Prepare,
    /// Test data are made: the one phase of that.
    Generate,
    /// Records are read, partitioned and spilled.
    Distribute,
    /// Partitions are loaded, sorted and written.
    Sort,
    /// Inputs are checked: the one phase of a check.
    Check,
    /// The output is made to last.
    Sync,
    /// The output is read once more.
    Verify,
    /// What the device does alone is measured.
    Probe,
    /// The job has ended well.
    Done,
}

/// All phases, in order.
pub const PHASES: [Phase; 9] = [
    Phase::Prepare,
    Phase::Generate,
    Phase::Distribute,
    Phase::Sort,
    Phase::Check,
    Phase::Sync,
    Phase::Verify,
    Phase::Probe,
    Phase::Done,
];

impl Phase {
    /// Its name as people write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Generate => "generate",
            Self::Distribute => "distribute",
            Self::Sort => "sort",
            Self::Check => "check",
            Self::Sync => "sync",
            Self::Verify => "verify",
            Self::Probe => "probe",
            Self::Done => "done",
        }
    }
}

/// What one phase has moved, and is expected to move in all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Part {
    /// Which.
    pub phase: Phase,
    /// Nanoseconds it has taken so far; 0 if it has not begun.
    pub wall_ns: u64,
    /// Bytes it has read.
    pub read_bytes: u64,
    /// Bytes it will have read; `None` while that is not known. Of a phase that has ended, what it read.
    pub read_bytes_expected: Option<u64>,
    /// Bytes it has written.
    pub written_bytes: u64,
    /// Bytes it will have written; `None` while that is not known.
    pub written_bytes_expected: Option<u64>,
}

/// How far a job is at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    /// Nanoseconds since the job began.
    pub elapsed_ns: u64,
    /// What it is doing.
    pub phase: Phase,
    /// The phases that move bytes, in order, those to come among them.
    pub parts: Vec<Part>,
    /// What part of all bytes has been moved, from 0 to 1; `None` while it is not known how many there are.
    /// It never falls from one snapshot of a job to the next, and is 1 when the job has ended well.
    pub share: Option<f64>,
    /// What was measured of the disk that everything lies on; `None` if it was not, or if the job's ends lie
    /// on several.
    pub disk: Option<Rates>,
}

/// The progress of one job: put it into [`crate::job::Job::progress`], run the job, and look at it meanwhile.
#[derive(Debug, Default)]
pub struct Progress {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    began_ns: u64,
    entered_ns: u64,
    /// `None` before the job begins.
    phase: Option<Phase>,
    parts: Vec<Part>,
    share: f64,
    disk: Option<Rates>,
}

impl State {
    fn part(&mut self, phase: Phase) -> &mut Part {
        let at = self.parts.partition_point(|part| part.phase < phase);
        if self.parts.get(at).is_none_or(|part| part.phase != phase) {
            self.parts.insert(at, Part::unknown(phase));
        }
        &mut self.parts[at]
    }
}

impl Part {
    fn unknown(phase: Phase) -> Self {
        Self {
            phase,
            wall_ns: 0,
            read_bytes: 0,
            read_bytes_expected: None,
            written_bytes: 0,
            written_bytes_expected: None,
        }
    }
}

impl Progress {
    /// How far the job is now, by the clock of the machine that it runs on.
    #[must_use]
    pub fn now(&self, os: &dyn Os) -> Snapshot {
        let mut state = lock(&self.state);
        let now_ns = os.now_ns();
        let phase = state.phase.unwrap_or(Phase::Prepare);
        let began_ns = state.phase.map_or(now_ns, |_| state.began_ns);
        let mut parts = state.parts.clone();
        if let Some(part) = parts.iter_mut().find(|part| part.phase == phase) {
            part.wall_ns = now_ns.saturating_sub(state.entered_ns);
        }
        let share = match phase {
            Phase::Done => Some(1.0),
            _ => share(&parts),
        };
        state.share = state.share.max(share.unwrap_or(0.0));
        Snapshot {
            elapsed_ns: now_ns.saturating_sub(began_ns),
            phase,
            share: share.map(|_| state.share),
            parts,
            disk: state.disk,
        }
    }

    /// The job begins, or what it did has ended and it goes on with `phase`. A phase that has ended was to
    /// move what it moved.
    pub(crate) fn enter(&self, phase: Phase, os: &dyn Os) {
        let mut state = lock(&self.state);
        let now_ns = os.now_ns();
        let before = state.phase.replace(phase);
        let wall_ns = now_ns.saturating_sub(state.entered_ns);
        state.entered_ns = now_ns;
        if before.is_none() {
            state.began_ns = now_ns;
        }
        let ended = |part: &&mut Part| part.phase < phase;
        for part in state.parts.iter_mut().filter(ended) {
            part.read_bytes_expected = Some(part.read_bytes);
            part.written_bytes_expected = Some(part.written_bytes);
            if Some(part.phase) == before {
                part.wall_ns = wall_ns;
            }
        }
    }

    /// `phase` will read and write so many bytes, as far as is known.
    pub(crate) fn expect(&self, phase: Phase, read_bytes: Option<u64>, written_bytes: Option<u64>) {
        let mut state = lock(&self.state);
        let part = state.part(phase);
        part.read_bytes_expected = read_bytes;
        part.written_bytes_expected = written_bytes;
    }

    /// Everything lies on a disk that was measured.
    pub(crate) fn lies_on(&self, disk: Option<Rates>) {
        lock(&self.state).disk = disk;
    }

    /// Bytes came in.
    pub(crate) fn read(&self, bytes: u64) {
        self.moved(|part| part.read_bytes += bytes);
    }

    /// Bytes went out.
    pub(crate) fn wrote(&self, bytes: u64) {
        self.moved(|part| part.written_bytes += bytes);
    }

    fn moved(&self, count: impl FnOnce(&mut Part)) {
        let mut state = lock(&self.state);
        if let Some(phase) = state.phase {
            count(state.part(phase));
        }
    }
}

/// What part of all bytes has been moved.
fn share(parts: &[Part]) -> Option<f64> {
    let (mut done, mut all) = (0, 0);
    for part in parts {
        for (moved, expected) in part.ways() {
            // More than was expected is what was to be expected.
            all += expected?.max(moved);
            done += moved;
        }
    }
    (all > 0).then(|| done as f64 / all as f64)
}

impl Part {
    fn ways(&self) -> [(u64, Option<u64>); 2] {
        [
            (self.read_bytes, self.read_bytes_expected),
            (self.written_bytes, self.written_bytes_expected),
        ]
    }

    /// Bytes that it has still to read and to write.
    fn left(&self) -> Option<[u64; 2]> {
        let [read, written] = self
            .ways()
            .map(|(moved, expected)| Some(expected?.saturating_sub(moved)));
        Some([read?, written?])
    }
}

/// So much of a phase the pace of the one before it counts as if it were this one's: the beginning of a phase,
/// in which one way is used alone, tells little of the rest.
const TRUSTED_SHARE: f64 = 0.5;

impl Snapshot {
    /// Nanoseconds that the job will still take, as far as can be foreseen: `None` while it is not known how
    /// many bytes are to come, or none have been moved. What no bytes are moved for does not count.
    #[must_use]
    pub fn left_ns(&self) -> Option<u64> {
        if self.phase == Phase::Done {
            return Some(0);
        }
        let mut pace = None;
        let mut left_ns = 0.0;
        for part in &self.parts {
            let left_s = self.needed_s(part.left()?);
            if part.phase <= self.phase {
                let done_s = self.needed_s([part.read_bytes, part.written_bytes]);
                let trusted_s = pace.map_or(0.0, |_| TRUSTED_SHARE * (done_s + left_s));
                let wall_ns = part.wall_ns as f64 + trusted_s * pace.unwrap_or(0.0);
                if done_s + trusted_s > 0.0 {
                    pace = Some(wall_ns / (done_s + trusted_s));
                }
            }
            if left_s > 0.0 {
                left_ns += left_s * pace?;
            }
        }
        Some(left_ns as u64)
    }

    /// The least time for these bytes, in seconds of the disk if it is known, else in bytes.
    fn needed_s(&self, [read_bytes, written_bytes]: [u64; 2]) -> f64 {
        match &self.disk {
            Some(rates) => rates.needed_s(read_bytes, written_bytes),
            None => (read_bytes + written_bytes) as f64,
        }
    }

    /// Bytes that the job has read and written since `earlier`, and in how many nanoseconds.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> (u64, u64, u64) {
        let sum =
            |snapshot: &Self, of: fn(&Part) -> u64| snapshot.parts.iter().map(of).sum::<u64>();
        let read = |part: &Part| part.read_bytes;
        let written = |part: &Part| part.written_bytes;
        (
            sum(self, read) - sum(earlier, read),
            sum(self, written) - sum(earlier, written),
            self.elapsed_ns - earlier.elapsed_ns,
        )
    }
}
