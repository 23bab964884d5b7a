//! How far a job is and how long it will still take, for whoever waits for it.
//!
//! In come the bytes that its threads have moved, as each transfer ends, and what is known of those to come;
//! out goes a [`Snapshot`], to any thread at any time. The job measures nothing for it: one lock is taken for
//! each transfer, and one that nobody watches pays a branch.
//!
//! The time left follows from the bytes left. A phase is thought to go on at the pace it went so far, which is
//! the time it took over the least that a disk needs for the bytes it moved. One that has not begun is guessed from the
//! one before: by the disk, at that one's pace; by processors, from the work they had with it; and the longer counts.
//! Where the disk was not measured, a byte is a byte, read or written.

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
    /// Sorted inputs are read, merged and written: the one phase of that.
    Merge,
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
pub const PHASES: [Phase; 10] = [
    Phase::Prepare,
    Phase::Generate,
    Phase::Distribute,
    Phase::Sort,
    Phase::Merge,
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
            Self::Merge => "merge",
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
    /// Nanoseconds that its threads that compute have worked so far, all together, as far as they have told.
    pub work_ns: u64,
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
    /// What is known of processors; `None` where nothing is, as with a user's functions.
    pub work: Option<Work>,
}

/// What sorting asks of processors.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Work {
    /// Threads that compute.
    pub worker_count: u64,
    /// Work of the phase `sort` over that of `distribute`.
    pub sort_over_distribute: f64,
}

impl Work {
    /// With `worker_count` threads, on records of so many bytes.
    #[must_use]
    pub fn new(worker_count: u64, record_bytes: f64) -> Self {
        // Nanoseconds a record, and for each of its bytes, as measured with 24 and 100 bytes (docs/progress.md). Only
        // the ratio counts, which is much the same on any processor.
        let distribute = 33.0 + 0.42 * record_bytes;
        let sort = 74.0 + 0.21 * record_bytes;
        Self {
            worker_count: worker_count.max(1),
            sort_over_distribute: sort / distribute,
        }
    }
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
    work: Option<Work>,
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
            work_ns: 0,
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
            work: state.work,
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

    /// So many bytes fewer than was expected are written to temporary files, and read back.
    pub(crate) fn spared(&self, bytes: u64) {
        for part in &mut lock(&self.state).parts {
            let expected = match part.phase {
                Phase::Distribute => &mut part.written_bytes_expected,
                Phase::Sort => &mut part.read_bytes_expected,
                _ => continue,
            };
            *expected = expected.map(|expected| expected.saturating_sub(bytes));
        }
    }

    /// Everything lies on a disk that was measured.
    pub(crate) fn lies_on(&self, disk: Option<Rates>) {
        lock(&self.state).disk = disk;
    }

    /// What is known of processors.
    pub(crate) fn works(&self, work: Option<Work>) {
        lock(&self.state).work = work;
    }

    /// A thread has worked so long.
    pub(crate) fn worked(&self, ns: u64) {
        let mut state = lock(&self.state);
        let phase = state.phase;
        // A phase that moves no bytes has no part in what is foreseen.
        if let Some(part) = state
            .parts
            .iter_mut()
            .find(|part| Some(part.phase) == phase)
        {
            part.work_ns += ns;
        }
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

/// For so much of a phase, what was guessed of it counts as if it had been seen: the beginning of a phase, in which one
/// way is used alone, tells little of the rest.
const TRUSTED_SHARE: f64 = 0.5;
/// Where it waits for processors what it did so far tells more: a record costs them much the same early and late.
const TRUSTED_SHARE_BUSY: f64 = 0.15;
/// What the disk takes for a byte in the phase `sort`, of what it takes in `distribute`. Where that was measured, with
/// the disk as the bound and output over temporary data, it was 0.76 to 0.95 (docs/progress.md); of a disk that writes
/// over what is there as fast as to new space it is 1.
const SORT_PACE: f64 = 0.9;

/// Threads that work for more of their time than this are what a phase waits for.
const BUSY_SHARE: f64 = 0.9;

/// What is thought of a phase.
#[derive(Clone, Copy)]
struct Course<'a> {
    part: &'a Part,
    /// What the disk needs for all its bytes.
    needed_s: f64,
    /// What it will have taken.
    whole_ns: f64,
}

impl Snapshot {
    /// Nanoseconds that the job will still take, as far as can be foreseen: `None` while it is not known how
    /// many bytes are to come, or none have been moved. What no bytes are moved for does not count.
    #[must_use]
    pub fn left_ns(&self) -> Option<u64> {
        if self.phase == Phase::Done {
            return Some(0);
        }
        let mut left_ns = 0.0;
        let mut before: Option<Course<'_>> = None;
        for part in &self.parts {
            let done_s = self.needed_s([part.read_bytes, part.written_bytes]);
            let needed_s = done_s + self.needed_s(part.left()?);
            if needed_s == 0.0 {
                continue;
            }
            let done = self.share_of(part, done_s / needed_s);
            let wall_ns = match part.phase <= self.phase {
                true => part.wall_ns as f64,
                false => 0.0,
            };
            let whole_ns = match &before {
                None if done > 0.0 => wall_ns / done,
                None => return None,
                Some(before) => {
                    let guess_ns = self.guess_ns(before, part.phase, needed_s);
                    let trusted = match self.is_busy(part) {
                        true => TRUSTED_SHARE_BUSY,
                        false => TRUSTED_SHARE,
                    };
                    (wall_ns + trusted * guess_ns) / (done + trusted)
                }
            };
            left_ns += whole_ns * (1.0 - done);
            before = Some(Course {
                part,
                needed_s,
                whole_ns,
            });
        }
        Some(left_ns as u64)
    }

    /// What part of a phase is done: of all its bytes `moved`, or, where processors are what it waits for, of those that
    /// every record is among.
    fn share_of(&self, part: &Part, moved: f64) -> f64 {
        let (done, all) = match part.phase {
            Phase::Sort => (part.written_bytes, part.written_bytes_expected),
            _ => (part.read_bytes, part.read_bytes_expected),
        };
        match all {
            Some(all) if done < all && self.is_busy(part) => done as f64 / all as f64,
            _ => moved,
        }
    }

    /// Whether a phase has waited for processors so far.
    fn is_busy(&self, part: &Part) -> bool {
        self.work.as_ref().is_some_and(|work| {
            let most_ns = (work.worker_count * part.wall_ns) as f64;
            part.work_ns as f64 > BUSY_SHARE * most_ns
        })
    }

    /// What a phase that the disk needs `needed_s` for will take, guessed from the one before it.
    fn guess_ns(&self, before: &Course<'_>, phase: Phase, needed_s: f64) -> f64 {
        let by_pace = before.whole_ns * needed_s / before.needed_s;
        if (before.part.phase, phase) != (Phase::Distribute, Phase::Sort) {
            return by_pace;
        }
        let by_disk = SORT_PACE * by_pace;
        let Some(work) = self.work.as_ref().filter(|_| before.part.wall_ns > 0) else {
            return by_disk;
        };
        // As much of their time as so far.
        let work_ns = before.part.work_ns as f64 * before.whole_ns / before.part.wall_ns as f64;
        let by_work = work_ns * work.sort_over_distribute / work.worker_count as f64;
        match self.is_busy(before.part) {
            // The disk would have needed less, but nobody knows how much.
            true => by_work.max((by_work + by_disk) / 2.0),
            false => by_work.max(by_disk),
        }
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
