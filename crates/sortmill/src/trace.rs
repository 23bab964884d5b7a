//! What each thread did when, as a picture: Chrome's trace-event JSON, which Perfetto (ui.perfetto.dev) opens.
//!
//! In come the laps and the reads and writes that a thread's meter sees; out goes one track for each thread.
//! A track's memory is set aside when its thread starts and bounded: where laps are shorter than the
//! track's resolution, those of one kind are gathered into one slice until together they are as long; where
//! the memory is full, the resolution is doubled and what was drawn is gathered again. So nothing is ever
//! left out, times add up, and a longer job has a coarser picture.
//!
//! A track becomes part of the picture when it is dropped, however its thread ended, and so does a phase. So the
//! picture of a job that failed, was stopped or panicked shows everything up to there.

use std::io::{self, Write};
use std::sync::Arc;

use sortmill_io::Os;
use sortmill_io::sync::{Mutex, lock};

use crate::error::Error;
use crate::metrics::{STAGES, STATES, Stage, State};
use crate::text;

/// The picture of one job: put it into [`crate::job::Job::trace`], run the job, then [`Trace::write`] it.
#[derive(Default)]
pub struct Trace {
    tracks: Mutex<Vec<Track>>,
    /// What the job as a whole did: name, begin, end.
    phases: Mutex<Vec<(&'static str, u64, u64)>>,
    /// When the job failed, if it did, and why.
    failed: Mutex<Option<(u64, String)>>,
}

/// All tracks of a job together hold no more.
pub const TRACE_BYTES_MAX: usize = 16 << 20;

impl Trace {
    /// The job has failed because of `error`.
    pub fn fail(&self, error: &Error, os: &dyn Os) {
        *lock(&self.failed) = Some((os.now_ns(), error.to_string()));
    }

    /// A track for a thread, one of `count` of this job.
    #[must_use]
    pub fn track(self: &Arc<Self>, name: &str, count: usize) -> Track {
        let bytes = TRACE_BYTES_MAX / count.max(1);
        let slices_max = (bytes * 3 / 4 / size_of::<Slice>()).clamp(256, 1 << 16);
        let samples_max = (bytes / 4 / size_of::<Sample>()).clamp(256, 1 << 14);
        Track::new(Arc::clone(self), name, (slices_max, samples_max))
    }

    /// Writes the picture of a job that has ended. Microseconds count from its start.
    ///
    /// # Errors
    /// What `out` answers.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut phases = lock(&self.phases).clone();
        // What lies within another behind it.
        phases.sort_by_key(|&(_, from, to)| (from, u64::MAX - to));
        let tracks = lock(&self.tracks);
        let failed = lock(&self.failed);
        let began_ns = phases.iter().map(|phase| phase.1).min().unwrap_or(0);
        let micros = |ns: u64| format!("{}.{:03}", ns / 1000, ns % 1000);
        let at = |ns: u64| micros(ns.saturating_sub(began_ns));
        write!(out, "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{")?;
        for (index, track) in tracks.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let each = text::time_each(track.resolution_ns, 1.0);
            write!(
                out,
                "{comma}\"{}: laps are gathered below\":\"{each}\"",
                track.name
            )?;
        }
        writeln!(out, "}},\"traceEvents\":[")?;
        write!(
            out,
            "{{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{{\"name\":\"sortmill\"}}}}"
        )?;
        let names = ["the job"]
            .into_iter()
            .chain(tracks.iter().map(|track| &*track.name));
        for (tid, name) in names.enumerate() {
            write!(
                out,
                ",\n{{\"ph\":\"M\",\"pid\":1,\"tid\":{tid},\"name\":\"thread_name\",\"args\":{{\"name\":\"{name}\"}}}}\
                 ,\n{{\"ph\":\"M\",\"pid\":1,\"tid\":{tid},\"name\":\"thread_sort_index\",\"args\":{{\"sort_index\":{tid}}}}}"
            )?;
        }
        for &(name, from, to) in &phases {
            write!(
                out,
                ",\n{{\"ph\":\"X\",\"pid\":1,\"tid\":0,\"ts\":{},\"dur\":{},\"name\":\"{name}\"}}",
                at(from),
                micros(to - from)
            )?;
        }
        if let Some((at_ns, why)) = &*failed {
            let why = serde_json::to_string(why).expect("text is text");
            write!(
                out,
                ",\n{{\"ph\":\"i\",\"s\":\"g\",\"pid\":1,\"tid\":0,\"ts\":{},\"name\":\"failed\",\
                 \"args\":{{\"error\":{why}}}}}",
                at(*at_ns)
            )?;
        }
        for (index, track) in tracks.iter().enumerate() {
            let tid = index + 1;
            for slice in &track.slices {
                let (stage, state) = slice.kind.names();
                write!(
                    out,
                    ",\n{{\"ph\":\"X\",\"pid\":1,\"tid\":{tid},\"ts\":{},\"dur\":{},\"name\":\"{stage}: {state}\",\
                     \"cat\":\"{state}\"}}",
                    at(slice.begin_ns),
                    micros(slice.end_ns - slice.begin_ns)
                )?;
            }
            if let Some((from, to)) = track.cut_short {
                write!(
                    out,
                    ",\n{{\"ph\":\"X\",\"pid\":1,\"tid\":{tid},\"ts\":{},\"dur\":{},\"name\":\"cut short\"}}",
                    at(from),
                    micros(to - from)
                )?;
            }
            for sample in &track.samples {
                write!(
                    out,
                    ",\n{{\"ph\":\"C\",\"pid\":1,\"ts\":{},\"name\":\"{}: in flight\",\
                     \"args\":{{\"operations\":{}}}}}\
                     ,\n{{\"ph\":\"C\",\"pid\":1,\"ts\":{0},\"name\":\"{1}: bytes\",\
                     \"args\":{{\"in flight\":{},\"moved\":{}}}}}",
                    at(sample.at_ns),
                    track.name,
                    sample.operations,
                    sample.bytes,
                    sample.moved_bytes
                )?;
            }
        }
        writeln!(out, "\n]}}")
    }
}

/// What one thread did. The thread owns it; dropped, it becomes part of the picture.
#[derive(Default)]
pub struct Track {
    /// The picture, until this is a part of it.
    trace: Option<Arc<Trace>>,
    name: String,
    slices: Vec<Slice>,
    resolution_ns: u64,
    /// Laps after the last slice that are too short for one each.
    gathered: Gathered,
    samples: Vec<Sample>,
    sample_resolution_ns: u64,
    now: Sample,
    /// From when to when the thread did what the end of the job, or its own, kept it from naming.
    cut_short: Option<(u64, u64)>,
}

/// Shorter laps are gathered to begin with.
const RESOLUTION_NS: u64 = 100_000;

impl Track {
    fn new(trace: Arc<Trace>, name: &str, (slices_max, samples_max): (usize, usize)) -> Self {
        Self {
            trace: Some(trace),
            name: name.to_owned(),
            slices: Vec::with_capacity(slices_max),
            resolution_ns: RESOLUTION_NS,
            gathered: Gathered::default(),
            samples: Vec::with_capacity(samples_max),
            sample_resolution_ns: RESOLUTION_NS,
            now: Sample::default(),
            cut_short: None,
        }
    }

    /// A track for a thread that helps this one, with less room: it does one thing.
    #[must_use]
    pub fn beside(&self, name: &str) -> Self {
        let trace = self.trace.as_ref().expect("its thread still has it");
        let share = |capacity: usize| (capacity / 8).max(256);
        let room = (
            share(self.slices.capacity()),
            share(self.samples.capacity()),
        );
        Self::new(Arc::clone(trace), name, room)
    }

    /// Draws a lap, which begins where the last one ended.
    pub fn lap(&mut self, stage: Stage, state: State, begin_ns: u64, end_ns: u64) {
        if self.slices.len() + KIND_COUNT > self.slices.capacity() {
            self.coarsen();
        }
        let slice = Slice {
            begin_ns,
            end_ns,
            kind: Kind::new(stage, state),
        };
        let slices = &mut self.slices;
        self.gathered.draw(
            slice,
            self.resolution_ns,
            &mut |slice| match slices.last_mut() {
                Some(last) if last.goes_on_in(&slice) => last.end_ns = slice.end_ns,
                Some(_) | None => slices.push(slice),
            },
        );
    }

    /// Doubles the resolution until half of the memory is free. What is drawn again takes no more room than
    /// it had: each slice that is gathered is one of its kind at least.
    fn coarsen(&mut self) {
        while self.slices.len() > self.slices.capacity() / 2 {
            self.resolution_ns *= 2;
            let mut gathered = Gathered::default();
            let mut kept = 0;
            for index in 0..self.slices.len() {
                let (slice, slices) = (self.slices[index], &mut self.slices);
                let mut put = |slice| keep(slices, &mut kept, slice);
                gathered.draw(slice, self.resolution_ns, &mut put);
            }
            let slices = &mut self.slices;
            gathered.flush(&mut |slice| keep(slices, &mut kept, slice));
            self.slices.truncate(kept);
        }
    }

    /// An operation of so many bytes was handed to the kernel.
    pub fn submitted(&mut self, at_ns: u64, bytes: usize) {
        self.now.operations += 1;
        self.now.bytes += bytes as u64;
        self.sample(at_ns);
    }

    /// The kernel gave it back.
    pub fn completed(&mut self, at_ns: u64, bytes: usize) {
        self.now.operations -= 1;
        self.now.bytes -= bytes as u64;
        self.now.moved_bytes += bytes as u64;
        self.sample(at_ns);
    }

    /// Keeps the last count of each stretch as long as the resolution.
    fn sample(&mut self, at_ns: u64) {
        self.now.at_ns = at_ns;
        while self.samples.len() == self.samples.capacity() {
            self.sample_resolution_ns *= 2;
            let mut kept = 0;
            for index in 0..self.samples.len() {
                let sample = self.samples[index];
                if kept > 0 && self.samples[kept - 1].is_near(&sample, self.sample_resolution_ns) {
                    let at_ns = self.samples[kept - 1].at_ns;
                    self.samples[kept - 1] = Sample { at_ns, ..sample };
                } else {
                    self.samples[kept] = sample;
                    kept += 1;
                }
            }
            self.samples.truncate(kept);
        }
        match self.samples.last_mut() {
            Some(last) if last.is_near(&self.now, self.sample_resolution_ns) => {
                *last = Sample {
                    at_ns: last.at_ns,
                    ..self.now
                };
            }
            Some(_) | None => self.samples.push(self.now),
        }
    }

    /// The thread ends in the midst of something that it began at `from_ns`.
    pub fn cut_short(&mut self, from_ns: u64, to_ns: u64) {
        self.cut_short = Some((from_ns, to_ns)).filter(|_| to_ns > from_ns);
    }
}

impl Drop for Track {
    /// The thread has ended, well or not: its track becomes part of the picture.
    fn drop(&mut self) {
        if let Some(trace) = self.trace.take() {
            let slices = &mut self.slices;
            self.gathered.flush(&mut |slice| slices.push(slice));
            lock(&trace.tracks).push(std::mem::take(self));
        }
    }
}

/// A part of the job as a whole that has begun. Dropped, it becomes part of the picture, if there is one.
pub struct Begun<'a> {
    trace: Option<&'a Trace>,
    os: &'a dyn Os,
    name: &'static str,
    from_ns: u64,
}

impl<'a> Begun<'a> {
    /// The part `name` begins now.
    #[must_use]
    pub fn now(name: &'static str, trace: Option<&'a Arc<Trace>>, os: &'a dyn Os) -> Self {
        Self {
            trace: trace.map(|trace| &**trace),
            os,
            name,
            from_ns: os.now_ns(),
        }
    }

    /// It has ended.
    pub fn end(self) {}
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if let Some(trace) = self.trace {
            let to_ns = self.os.now_ns();
            lock(&trace.phases).push((self.name, self.from_ns, to_ns));
        }
    }
}

/// Puts a slice behind the first `kept` of `slices`, or makes the last of them longer.
fn keep(slices: &mut [Slice], kept: &mut usize, slice: Slice) {
    if *kept > 0 && slices[*kept - 1].goes_on_in(&slice) {
        slices[*kept - 1].end_ns = slice.end_ns;
    } else {
        slices[*kept] = slice;
        *kept += 1;
    }
}

/// A stretch of a thread's time.
#[derive(Clone, Copy)]
struct Slice {
    begin_ns: u64,
    end_ns: u64,
    kind: Kind,
}

impl Slice {
    fn goes_on_in(&self, next: &Self) -> bool {
        self.kind == next.kind && self.end_ns == next.begin_ns
    }
}

/// A stage and a state.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind(u8);

const KIND_COUNT: usize = STAGES.len() * STATES.len();

impl Kind {
    fn new(stage: Stage, state: State) -> Self {
        Self((stage as usize * STATES.len() + state as usize) as u8)
    }

    fn names(self) -> (&'static str, &'static str) {
        let kind = usize::from(self.0);
        let state = STATES[kind % STATES.len()];
        (STAGES[kind / STATES.len()].name(), state.name())
    }
}

/// Laps that are shorter than the resolution, summed up by kind.
struct Gathered {
    begin_ns: u64,
    sum_ns: u64,
    each_ns: [u64; KIND_COUNT],
}

impl Default for Gathered {
    fn default() -> Self {
        Self {
            begin_ns: 0,
            sum_ns: 0,
            each_ns: [0; KIND_COUNT],
        }
    }
}

impl Gathered {
    /// Gathers a short slice; hands a long one to `put`, after what was gathered before it.
    fn draw(&mut self, slice: Slice, resolution_ns: u64, put: &mut impl FnMut(Slice)) {
        let ns = slice.end_ns - slice.begin_ns;
        if ns >= resolution_ns {
            self.flush(put);
            put(slice);
            return;
        }
        if self.sum_ns == 0 {
            self.begin_ns = slice.begin_ns;
        }
        self.sum_ns += ns;
        self.each_ns[usize::from(slice.kind.0)] += ns;
        if self.sum_ns >= resolution_ns {
            self.flush(put);
        }
    }

    /// Draws what was gathered, one slice for each kind, back to back.
    fn flush(&mut self, put: &mut impl FnMut(Slice)) {
        if self.sum_ns == 0 {
            return;
        }
        let mut at_ns = self.begin_ns;
        for (kind, ns) in self.each_ns.iter_mut().enumerate() {
            let ns = std::mem::take(ns);
            if ns > 0 {
                put(Slice {
                    begin_ns: at_ns,
                    end_ns: at_ns + ns,
                    kind: Kind(kind as u8),
                });
                at_ns += ns;
            }
        }
        self.sum_ns = 0;
    }
}

/// Reads and writes of one thread at one moment.
#[derive(Clone, Copy, Default)]
struct Sample {
    at_ns: u64,
    /// In flight.
    operations: u64,
    /// Of those in flight.
    bytes: u64,
    /// Of all that are complete.
    moved_bytes: u64,
}

impl Sample {
    fn is_near(&self, next: &Self, resolution_ns: u64) -> bool {
        next.at_ns.saturating_sub(self.at_ns) < resolution_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws laps of these lengths, of two kinds in turn: times add up by kind, nothing overlaps, nothing is
    /// longer than the memory.
    fn check(laps_ns: impl Iterator<Item = u64>) -> Track {
        let trace = Arc::new(Trace::default());
        let mut track = trace.track("a", usize::MAX);
        let capacity = track.slices.capacity();
        let states = [State::Work, State::Device];
        let mut wanted = [0; 2];
        let mut at_ns = 0;
        for (index, ns) in laps_ns.enumerate() {
            track.lap(Stage::Read, states[index % 2], at_ns, at_ns + ns);
            track.submitted(at_ns, 10);
            track.completed(at_ns + ns, 10);
            wanted[index % 2] += ns;
            at_ns += ns;
        }
        drop(track);
        let track = lock(&trace.tracks).pop().unwrap();
        assert_eq!(Arc::strong_count(&trace), 1, "nothing keeps itself alive");
        assert_eq!(
            track.slices.capacity(),
            capacity,
            "no memory beyond the first"
        );
        let mut end_ns = 0;
        let mut have = [0; 2];
        for slice in &track.slices {
            assert_eq!(slice.begin_ns, end_ns, "slices lie back to back");
            end_ns = slice.end_ns;
            have[usize::from(slice.kind != Kind::new(Stage::Read, State::Work))] +=
                slice.end_ns - slice.begin_ns;
        }
        assert_eq!(have, wanted);
        assert!(track.samples.is_sorted_by_key(|sample| sample.at_ns));
        assert_eq!(track.samples.last().unwrap().operations, 0);
        track
    }

    #[test]
    fn long_laps_are_drawn_as_they_are() {
        let track = check([200_000, 300_000, 150_000].into_iter());
        assert_eq!(track.slices.len(), 3);
    }

    #[test]
    fn short_laps_are_gathered_by_kind() {
        let track = check([10_000, 20_000].into_iter().cycle().take(100));
        assert!(track.slices.len() < 50, "{}", track.slices.len());
        assert_eq!(track.resolution_ns, RESOLUTION_NS);
    }

    #[test]
    fn a_long_job_has_a_coarser_picture() {
        let laps = (0..100_000u64).map(|index| 1000 + index * 7919 % 300_000);
        let track = check(laps);
        assert!(track.resolution_ns > RESOLUTION_NS);
        assert!(track.sample_resolution_ns > RESOLUTION_NS);
        assert!(track.slices.len() > 50, "{}", track.slices.len());
    }
}
