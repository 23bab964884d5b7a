//! From a pipeline to jobs of the engine, one after the other.
//!
//! ```text
//! text --> [map: steps, feed] ==job 1==> [reduce: drain, steps, feed] --> pairs in a temporary folder
//!      --> ==job 2==> [reduce: drain, steps, write] --> the output
//! ```
//!
//! All jobs of a pipeline key their fingerprints alike, so what one wrote can be compared with what the next one read. What
//! lies between them is in a job's folder for temporary files and goes as that does, on success, on errors and with the
//! next job after a kill.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sortmill_io::Os;
use sortmill_io::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sortmill_io::sync::{Arc, core_count};

use super::column::{Value, corrupt};
use super::draw::Draw;
use super::fused::Fused;
use super::fused_lists::FusedLists;
use super::gather::HELD_BYTES;
use super::held::temp_base;
use super::line_rows::LineRows;
use super::needed::{Needed, needed};
use super::observe::Observed;
use super::read::{Bound, Inputs, Reader};
use super::rows::halves;
use super::shuffle::{Drain, Feed, Shuffle};
use super::sieve::Sieve;
use super::to::Writes;
use super::verbs::{Going, Step, Steps};
use super::write::write_plain;
use super::{Node, NodeKind, Pipeline, Settings};
use crate::batch::{Pause, Records, Unread};
use crate::emit::Emitter;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::job::{Boundaries, Input, Job, MapFn, Output, ReduceFn};
use crate::order::quoted::{Ends, each_record};
use crate::order::{Format, Separated};
use crate::queue::Stop;
use crate::report::Report;
use crate::run;
use crate::short::push_text;
use crate::stage::read::Source;
use crate::temp::{BETWEEN, Temp};
use crate::text;
use crate::yields::Yield;

/// What the feeds of reducers may keep, of which one for each thread is at work at a time: within what comes on top of the
/// plan.
const REDUCER_STATE_BYTES: u64 = 2 << 20;
/// A text that is joined lies in its group, which has an eighth more than that, and in what is written: it may have so much less than is set
/// apart for it.
const TEXT_SHARE: (u64, u64) = (2, 5);
/// No text that is joined is longer.
const TEXT_BYTES_MAX: u64 = 1 << 30;

/// What was done, phase by phase.
#[derive(Clone, Debug, Serialize)]
pub struct PipelineReport {
    /// The phases in order.
    pub phases: Vec<PhaseReport>,
    /// What was observed ([`Table::observe`]).
    #[serde(skip_serializing_if = "Observed::is_empty")]
    pub observed: Observed,
}

/// One phase: a job of the engine.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseReport {
    /// The verb that it is for.
    pub name: String,
    /// What the job did.
    pub report: Report,
}

impl PipelineReport {
    /// A few lines for people.
    #[must_use]
    pub fn summary(&self) -> String {
        let phases = self.phases.iter().map(|PhaseReport { name, report }| {
            let Fingerprint { records, .. } = report.fingerprints.input;
            let came = report.fingerprints.distributed.records;
            let went = report.fingerprints.written.records;
            format!(
                "{name}: {} records in, {} brought together, {} out\n{}",
                text::count(records),
                text::count(came),
                text::count(went),
                report.summary()
            )
        });
        let observed = self.observed.iter().map(|(name, value)| {
            let mut line = format!("observed {name}: ").into_bytes();
            write_plain(&value, &mut line);
            String::from_utf8_lossy(&line).into_owned() + "\n"
        });
        phases.chain(observed).collect()
    }

    /// The reports of all phases as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report is plain data")
    }

    /// Records of the first input, and of the output.
    #[must_use]
    pub fn records(&self) -> (u64, u64) {
        let first = self.phases.first().map(|phase| &phase.report.fingerprints);
        let last = self.phases.last().map(|phase| &phase.report.fingerprints);
        let count = |of: Option<&Fingerprint>| of.map_or(0, |of| of.records);
        (
            count(first.map(|of| &of.input)),
            count(last.map(|of| &of.written)),
        )
    }
}

/// A phase that is to be run.
#[derive(Clone)]
pub(super) struct Phase {
    pub name: String,
    /// What is done to the records of the text, of the first phase.
    before: Vec<Step>,
    shuffle: Arc<Shuffle>,
    after: Vec<Step>,
    /// Nothing is brought together: records are written as they are mapped.
    passes_on: bool,
    /// What is done, for people.
    pub words: Vec<String>,
}

impl Pipeline {
    /// Does it. The output has its name when this returns.
    ///
    /// # Errors
    /// Anything but a proven, complete output. What was at its name before is still there.
    pub fn run(&self, settings: &Settings, os: &dyn Os, stop: &Stop) -> Result<PipelineReport> {
        self.to.check(os)?;
        let phases = self.phases();
        let number = os.random();
        let mut means = Means {
            number,
            ..Means::default()
        };
        let temp;
        if phases.len() > 1 {
            let base = temp_base(&self.folders_of(settings, os)?, os)?;
            crate::temp::clean_up(os, &base);
            temp = Temp::new(os, &base, os.random(), None, 0);
            temp.make()?;
            let folder = temp.spill_path();
            means.between = folder.parent().map(Path::to_owned);
        }
        let mut report = PipelineReport {
            phases: Vec::new(),
            observed: Observed::default(),
        };
        for (at, phase) in phases.iter().enumerate() {
            means.stop = Some(stop.clone());
            let mut job = self.job(&phases, at, settings, os, &means)?;
            let before = report.phases.last().map(|before| &before.report);
            let watched = settings.watched.as_ref();
            job.progress = watched.map(|watched| watched.begin(&phase.name, at, phases.len()));
            job.expects = before.map(|before| before.fingerprints.written);
            let done = match at {
                0 => {
                    let (job, sources) = self.open((job.clone(), true), phase, os, stop)?;
                    let prepared = run::prepare_opened(&job, sources, os);
                    let prepared = prepared.inspect_err(|_| {
                        // But for a header nothing has been read.
                        if job.columns.is_none() {
                            self.table.inputs.fill_again();
                        }
                    })?;
                    run::sort_prepared(&job, prepared, os, stop)?
                }
                _ => run::sort(&job, os, stop)?,
            };
            if at > 0 {
                // If it cannot be removed now, it goes with its folder, or with the next job.
                let _ = os.remove_file(job.inputs[0].path());
            }
            report.phases.push(PhaseReport {
                name: phase.name.clone(),
                report: done,
            });
            report.observed.add(&phase.before);
            report.observed.add(&phase.after);
        }
        Ok(report)
    }

    /// A job that has its output and temporary files where the pipeline has them.
    pub(super) fn folders_of(&self, settings: &Settings, os: &dyn Os) -> Result<Job> {
        self.job(&self.phases(), 0, settings, os, &Means::default())
    }

    pub(super) fn phases(&self) -> Vec<Phase> {
        let mut phases: Vec<Phase> = Vec::new();
        let (mut before, mut words) = (Vec::new(), Vec::new());
        for Needed { node, left_out } in needed(&self.table.nodes) {
            let Node { name, kind } = node;
            match (kind, phases.last_mut()) {
                (NodeKind::Step(step), None) => {
                    before.push(step.begun());
                    words.push(format!("maps: {name}"));
                }
                (NodeKind::Step(step), Some(last)) => {
                    last.after.push(step.begun());
                    last.words.push(format!("reduces: {name}"));
                }
                (NodeKind::Shuffle(shuffle), _) => {
                    let mut words = std::mem::take(&mut words);
                    let left_out = left_out.iter().map(|name| format!("leaves out: {name}"));
                    words.extend(left_out.chain(brought(name, shuffle, phases.is_empty())));
                    if self.shuffles_lines().is_some() {
                        words.push("lines go as they are, in no pairs".to_owned());
                    }
                    phases.push(Phase {
                        name: name.clone(),
                        before: std::mem::take(&mut before),
                        shuffle: Arc::clone(shuffle),
                        after: Vec::new(),
                        passes_on: false,
                        words,
                    });
                }
            }
        }
        if phases.is_empty() {
            let passes_on = !self.to.is_counted();
            words.push(match passes_on {
                true => "keeps the order of the input: one pass".to_owned(),
                false => "keeps the order of the input".to_owned(),
            });
            phases.push(Phase {
                name: "keep".to_owned(),
                before,
                shuffle: Arc::new(Shuffle::keep(&self.table.columns)),
                after: Vec::new(),
                passes_on,
                words,
            });
        }
        let last = phases.last().expect("there is one");
        if self.to.is_counted() && !(last.shuffle.keeps_count() && last.after.is_empty()) {
            phases.push(Phase {
                name: "part".to_owned(),
                before: Vec::new(),
                shuffle: Arc::new(Shuffle::keep(&self.table.columns)),
                after: Vec::new(),
                passes_on: false,
                words: vec!["keeps the order, now that records are counted".to_owned()],
            });
        }
        phases
    }

    /// The job that phase `at` is.
    pub(super) fn job(
        &self,
        phases: &[Phase],
        at: usize,
        settings: &Settings,
        os: &dyn Os,
        means: &Means,
    ) -> Result<Job> {
        let phase = &phases[at];
        let next = phases.get(at + 1);
        let between = |at: usize| {
            let folder = means.between.clone().unwrap_or_default();
            folder.join(BETWEEN[at % BETWEEN.len()])
        };
        let output = match next {
            None => self.to.output(),
            Some(_) => Output::Path(between(at)),
        };
        let mut job = Job::new(Vec::new(), output, Format::Kv);
        job.memory_bytes = settings.memory_bytes;
        job.temps.clone_from(&settings.temps);
        job.threads = settings.threads;
        job.tuning = settings.tuning;
        job.number = Some(means.number);
        job.probe = Some(false);
        if let Some(draw) = self.shuffles_lines() {
            self.table.inputs.ask(&mut job, os)?;
            job.yields = Yield::Shuffled(draw.seed());
            job.drops_returns = true;
            job.compress = self.to.compress();
            return Ok(job);
        }
        if at > 0 {
            job.inputs = vec![Input::Path(between(at - 1))];
        } else {
            self.table.inputs.ask(&mut job, os)?;
            job.map_around.clone_from(&settings.around);
            job.map_makes_pairs = true;
            job.map_keeps_state = phase.shuffle.combines(true);
            job.map_ends_in_pieces = phase.shuffle.ends_in_pieces();
            job.map_gathers_bytes = gathered_bytes(&phase.before);
        }
        if let Some(narrow) = phase.shuffle.narrow() {
            narrow.ask(&mut job);
        }
        if at > 0
            && let Some(draw) = phase.shuffle.draw()
        {
            job.map = Some(drawing(draw));
            job.map_makes_pairs = true;
        }
        job.reduces_in_turn = settings.reduces_in_turn || phase.shuffle.takes_turns();
        let at_once = settings.threads.unwrap_or_else(core_count).max(1) as u64;
        let next = next.map(|next| (next, REDUCER_STATE_BYTES / at_once));
        job.passes_on = phase.passes_on;
        job.reduce_gathers_bytes = gathered_bytes(&phase.after);
        let text_bytes = match phase.shuffle.texts_joined() {
            0 => 0,
            count => {
                let room = text_room(settings, at_once, os);
                job.reduce_gathers_bytes += room;
                (room * TEXT_SHARE.0 / TEXT_SHARE.1).min(TEXT_BYTES_MAX) / count
            }
        };
        job.reduce = Some(match phase.passes_on {
            true => passing(),
            false => reducer(phase, next, (self, text_bytes), means.stop.as_ref()),
        });
        // Between phases nothing comes first, not even the header of the text.
        job.reduce_makes_bytes = Some(Vec::new());
        if at + 1 == phases.len() {
            let writes = self.to.writes(&self.table.columns);
            job.reduce_makes_bytes = Some(writes.form.heading(&writes.columns));
            job.reduce_framing = writes.form.framing(&writes.columns);
            job.reduce_tells_part = writes.tells_part();
            job.compress = self.to.compress();
        }
        if phase.shuffle.groups() {
            job.equal_keys_meet = true;
            job.equal_heads_meet = phase.shuffle.head();
            job.gives_groups_whole = phase.shuffle.gives_groups_whole();
        }
        if phase.shuffle.hashes() || phase.shuffle.draw().is_some() || phase.passes_on {
            job.boundaries = Boundaries::Uniform;
        }
        Ok(job)
    }

    /// What draws the order of lines, if nothing is done but that: they go through the engine as they are then, and not in pairs.
    fn shuffles_lines(&self) -> Option<Draw> {
        let [node] = &self.table.nodes[..] else {
            return None;
        };
        match &node.kind {
            NodeKind::Shuffle(shuffle) if self.table.inputs.are_lines() && self.to.are_lines() => {
                shuffle.draw()
            }
            _ => None,
        }
    }
}

impl Pipeline {
    /// The first job with its inputs opened and what it maps them with, which needs to know their columns. Whether it `is_run`, and
    /// not only planned: nobody may look into a pipe but who reads all of it.
    pub(super) fn open(
        &self,
        (mut job, is_run): (Job, bool),
        phase: &Phase,
        os: &dyn Os,
        stop: &Stop,
    ) -> Result<(Job, Vec<Source>)> {
        let mut sources = run::open(&job, os)?;
        if is_run {
            self.table.inputs.drain(&sources)?;
        } else if sources.iter().any(Source::is_pipe) {
            // Files tell what columns there are, if there is anything in them.
            sources.sort_by_key(|source| (source.is_pipe(), source.meta.bytes == 0));
            if sources[0].is_pipe() || sources[0].meta.bytes == 0 {
                Inputs::number(&mut job);
            }
        }
        if self.shuffles_lines().is_some() {
            return Ok((job, sources));
        }
        let found = run::look_up_columns(&job, &mut sources, os, stop)?;
        let mut job = found.unwrap_or(job);
        let bound = Arc::new(self.table.inputs.bind(&mut job)?);
        let (map, takes_several) = mapper(phase, &bound, self);
        job.map_takes_several = takes_several;
        job.map = Some(map);
        Ok((job, sources))
    }
}

/// What the jobs of one run share.
#[derive(Default)]
pub(super) struct Means {
    number: u64,
    /// The folder for what lies between phases.
    between: Option<PathBuf>,
    stop: Option<Stop>,
}

/// How many bytes are set apart for the texts of a group that one of `at_once` reducers joins, and one that loads: a quarter of the
/// memory for all.
fn text_room(settings: &Settings, at_once: u64, os: &dyn Os) -> u64 {
    let memory = settings.memory_bytes;
    let memory = memory.unwrap_or_else(|| os.machine().memory_bytes_available / 2);
    memory / 4 / (at_once + 1)
}

/// What functions of batches among `steps` hold.
fn gathered_bytes(steps: &[Step]) -> u64 {
    let takes_batches = |step: &&Step| matches!(step, Step::Batches(_));
    steps.iter().filter(takes_batches).count() as u64 * HELD_BYTES
}

fn brought(name: &str, shuffle: &Shuffle, in_mapper: bool) -> Vec<String> {
    let mut words = Vec::new();
    if shuffle.combines(in_mapper) {
        words.push("combines what comes lately".to_owned());
    }
    let within = shuffle.head().is_some();
    words.push(match (shuffle.groups(), shuffle.hashes()) {
        (true, false) if within => format!("brings together: {name}, groups in order"),
        (true, false) => format!("brings together: {name}, in order"),
        (true, true) if within => format!("brings together: {name}, groups in the order of a hash"),
        (true, true) => format!("brings together: {name}, in the order of a hash"),
        (false, _) => format!("brings together: {name}"),
    });
    words
}

/// What makes pairs of several lines at once.
enum OfLines {
    /// Where nothing stands between them and their keys.
    Keys(Fused),
    /// Where none of their records are combined.
    Rows(LineRows),
}

impl OfLines {
    /// It, if nothing else is to be done to what `bound` reads.
    fn new(phase: &Phase, bound: &Arc<Bound>) -> Option<Self> {
        if phase.passes_on || !Reader::new(bound).reads_lines() {
            return None;
        }
        match (phase.shuffle.takes_keys(), Fused::of(&phase.before)) {
            (true, (fused, [])) => fused.map(Self::Keys),
            (true, _) => None,
            (false, _) if phase.shuffle.combines(true) => None,
            (false, _) => LineRows::of(&phase.before).map(Self::Rows),
        }
    }
}

/// What was read becomes records, which go through the steps and are fed to the shuffle, or written where they pass on. Where lines
/// are all there is ([`OfLines`]), or an expression is looked for in them ([`Sieve`]), and of CSV ([`Reader::separated`]), several come
/// at once: whether they do.
fn mapper(phase: &Phase, bound: &Arc<Bound>, of: &Pipeline) -> (MapFn, bool) {
    if OfLines::new(phase, bound).is_some() {
        return (line_mapper(phase, bound), true);
    }
    let separated = Reader::new(bound).separated();
    let mapper = record_mapper(phase, bound, separated, of);
    match Sieve::of(&phase.before, bound) {
        Some(sieve) => (sieve.before(mapper), true),
        None => (mapper, separated.is_some()),
    }
}

fn line_mapper(phase: &Phase, bound: &Arc<Bound>) -> MapFn {
    let (phase, bound) = (phase.clone(), Arc::clone(bound));
    Arc::new(move |state_bytes| {
        let is_full = Arc::new(AtomicBool::new(false));
        let mut feed = Feed::of_mapper(&phase.shuffle, state_bytes, &is_full);
        let mut of_lines = OfLines::new(&phase, &bound).expect("it was before");
        Box::new(move |lines, made| {
            is_full.store(false, Ordering::Relaxed);
            let (at, place) = (made.at(), made.place);
            let is_end = lines.is_none() && made.pause() == Pause::End;
            let mut pairs = |key: &[u8], value: &[u8]| {
                made.push_pair(key, value);
                is_full.store(made.is_full(), Ordering::Relaxed);
            };
            let is_full = || is_full.load(Ordering::Relaxed);
            let fed = match (lines, &mut of_lines) {
                (Some(lines), OfLines::Keys(fused)) => {
                    fused.feed_lines(lines, &mut feed, &is_full, &mut pairs)
                }
                (Some(lines), OfLines::Rows(rows)) => {
                    rows.feed(lines, place, &mut feed, &mut pairs)
                }
                (None, OfLines::Keys(fused)) => fused
                    .go_on(&mut feed, &is_full, &mut pairs)
                    .map_err(|error| (0, error)),
                (None, OfLines::Rows(_)) => Ok(()),
            };
            let is_held = matches!(&of_lines, OfLines::Keys(fused) if fused.is_held());
            if is_end && !is_held {
                feed.end_some(&mut pairs);
            }
            if is_held {
                made.hold_back();
            }
            if let Err((line, error)) = fed {
                made.refuse_at(error, at + line);
            }
        })
    })
}

/// What makes of the number of an input one that is behind all of them; several workers end at several places.
const BEHIND_ALL: u64 = 1 << 63;

/// Where `separated` says how ([`Reader::separated`]), several records come at once.
fn record_mapper(
    phase: &Phase,
    bound: &Arc<Bound>,
    separated: Option<(Separated, usize)>,
    of: &Pipeline,
) -> MapFn {
    let (before, shuffle) = (phase.before.clone(), Arc::clone(&phase.shuffle));
    let writes = phase.passes_on.then(|| of.to.writes(&of.table.columns));
    let bound = Arc::clone(bound);
    Arc::new(move |state_bytes| {
        let mut reader = Reader::new(&bound);
        let is_full = Arc::new(AtomicBool::new(false));
        let mut feed = Feed::of_mapper(&shuffle, state_bytes, &is_full);
        let (mut fused, before) = match shuffle.takes_keys() {
            true => Fused::of(&before),
            false => (None, &before[..]),
        };
        let (mut lists, before) = FusedLists::of(before, &shuffle);
        let mut steps = Steps::new(before);
        let (writes, mut text) = (writes.clone(), Vec::new());
        let mut has_ended = false;
        let mut one = move |record: Option<Lies<'_>>, made: &mut Records| {
            is_full.store(false, Ordering::Relaxed);
            let at = made.at();
            let (sunk, blamed) = (Cell::new(at as u32), Cell::new(None));
            has_ended |= record.is_none() && made.pause() == Pause::End;
            // What functions make at their end is made of no record, and comes behind all of them.
            let (input, offset) = match has_ended {
                true => (made.place.0 | BEHIND_ALL, made.place.1),
                false => made.place,
            };
            let going = Going {
                slab: (input, offset.wrapping_sub(at as u64)),
                place: at as u32,
                sunk: &sunk,
                is_sample: made.is_sample(),
                is_full: &|| is_full.load(Ordering::Relaxed),
                blamed: &blamed,
            };
            let (pause, origin) = (made.pause(), made.origin);
            let made = RefCell::new(made);
            let mut pairs = |key: &[u8], value: &[u8]| {
                let mut made = made.borrow_mut();
                made.push_pair(key, value);
                is_full.store(made.is_full(), Ordering::Relaxed);
            };
            let mut all = |records: &[u8]| {
                let mut made = made.borrow_mut();
                made.push_all(records);
                is_full.store(made.is_full(), Ordering::Relaxed);
            };
            let mut left = Ok(());
            if let (None, Some(lists)) = (record, &mut lists) {
                left = lists.go_on(&mut feed, going.is_full, &mut all);
            }
            if let (None, Some(fused)) = (record, &mut fused) {
                left = fused.go_on(&mut feed, going.is_full, &mut pairs);
            }
            let is_held = |lists: &Option<FusedLists>, fused: &Option<Fused>| {
                let holds_list = lists.as_ref().is_some_and(FusedLists::is_held);
                holds_list || fused.as_ref().is_some_and(Fused::is_held)
            };
            // What comes from the steps in front would have to go over at once.
            let waits = is_held(&lists, &fused) || left.is_err();
            let mut sink = |record: &[Value<'_>]| {
                if let Some(lists) = &mut lists {
                    return lists.feed(record, &mut feed, going.is_full, &mut all);
                }
                if let Some(writes) = &writes {
                    text.clear();
                    writes.write(record, &mut text)?;
                    pairs(&[], &text);
                    return Ok(());
                }
                if let Some(fused) = &mut fused {
                    return fused.feed(record, &mut feed, going.is_full, &mut pairs);
                }
                feed.at(going.lies(sunk.get()));
                feed.add(record, &mut pairs);
                Ok(())
            };
            let done = match record {
                Some(lies) => {
                    let mut values = |record: &[Value<'_>]| steps.go(going, record, &mut sink);
                    match lies.found {
                        None => reader.read(lies.bytes, origin, &mut values),
                        Some(found) => reader.read_found(lies.bytes, found, origin, &mut values),
                    }
                }
                None if waits => left,
                None => steps.pause(pause, going, &mut sink),
            };
            let is_held = steps.is_held() || is_held(&lists, &fused);
            if record.is_none() && pause == Pause::End && done.is_ok() && !is_held {
                feed.end_some(&mut pairs);
            }
            let mut made = made.borrow_mut();
            if is_held {
                made.hold_back();
            }
            let Err(error) = done else { return };
            let bad_count = record.and_then(|lies| reader.bad_count(lies.record(), &error));
            match (bad_count, blamed.get()) {
                (Some(count), _) => made.leave_out(Unread { count, error }),
                (None, Some(place)) => made.refuse_at(error, place as usize),
                (None, None) => made.refuse(error),
            }
        };
        let mut ends = Vec::new();
        Box::new(move |record, made| {
            let (Some((separated, most)), Some(records)) = (separated, record) else {
                let lies = |bytes| Lies { bytes, found: None };
                return one(record.map(lies), made);
            };
            let ((input, offset), at) = (made.place, made.at());
            each_record(separated, records, most, &mut ends, |found| {
                let begin = found.record.start;
                made.give((input, offset.wrapping_add(begin as u64)), at + begin);
                let lies = Lies {
                    bytes: records,
                    found: Some(&found),
                };
                one(Some(lies), made);
                made.passed(&records[found.record]);
                !(made.is_full() || made.is_held())
            });
        })
    })
}

/// A record: alone, or one of several, with where its values lie.
#[derive(Clone, Copy)]
struct Lies<'r> {
    bytes: &'r [u8],
    found: Option<&'r Ends<'r>>,
}

impl<'r> Lies<'r> {
    fn record(self) -> &'r [u8] {
        match self.found {
            None => self.bytes,
            Some(found) => &self.bytes[found.record.clone()],
        }
    }
}

/// Bytes that the mapper has written, as the value of a pair, come out as they are.
fn passing() -> ReduceFn {
    Arc::new(|| {
        Box::new(|pair, out| {
            if let Some((_, bytes)) = pair.and_then(halves) {
                out.put(bytes);
            }
        })
    })
}

/// Pairs of the phase before get the keys that are drawn for them.
fn drawing(draw: Draw) -> MapFn {
    crate::job::each(move |pair, made| {
        let key = draw.number(made.place, 0).to_be_bytes();
        match halves(pair) {
            Some((_, value)) => made.push_pair(&key, value),
            None => made.refuse(corrupt()),
        }
    })
}

/// Where the records of a reducer go.
enum End {
    /// To the shuffle of the next phase.
    Feed(Box<Feed>),
    /// To the output.
    Write(Writes),
}

impl End {
    #[inline]
    fn put(&mut self, record: &[Value<'_>], out: &mut Emitter<'_>) -> Result<()> {
        match self {
            Self::Feed(feed) => {
                let has_lengths = feed.makes_pairs();
                feed.add(record, &mut |key, value| {
                    put_pair(key, value, has_lengths, out);
                });
                Ok(())
            }
            Self::Write(writes) => out.put_with(|text| writes.write(record, text)),
        }
    }

    fn end(&mut self, out: &mut Emitter<'_>) {
        if let Self::Feed(feed) = self {
            let has_lengths = feed.makes_pairs();
            feed.end(&mut |key, value| put_pair(key, value, has_lengths, out));
        }
    }
}

fn put_pair(key: &[u8], value: &[u8], has_lengths: bool, out: &mut Emitter<'_>) {
    let write = |pair: &mut Vec<u8>| {
        if has_lengths {
            pair.extend_from_slice(&(key.len() as u32).to_le_bytes());
            pair.extend_from_slice(&(value.len() as u32).to_le_bytes());
        }
        push_text(key, pair);
        push_text(value, pair);
        Ok::<_, Infallible>(())
    };
    match out.put_with(write) {
        Ok(()) => {}
    }
}

/// Sorted pairs become records, go through the steps, and to the next phase or the output. What goes wrong ends the job.
fn reducer(
    phase: &Phase,
    next: Option<(&Phase, u64)>,
    (of, text_bytes): (&Pipeline, u64),
    stop: Option<&Stop>,
) -> ReduceFn {
    let (shuffle, after) = (Arc::clone(&phase.shuffle), phase.after.clone());
    let next = next.map(|(next, state_bytes)| (Arc::clone(&next.shuffle), state_bytes));
    let writes = of.to.writes(&of.table.columns);
    let left = Arc::new(AtomicU64::new(Drain::wanted(&shuffle)));
    let stop = stop.cloned();
    Arc::new(move || {
        let mut drain = Drain::new(&shuffle, &left, text_bytes as usize);
        let mut steps = Steps::new(&after);
        let mut end = match &next {
            Some((next, state_bytes)) => End::Feed(Box::new(Feed::new(next, *state_bytes))),
            None => End::Write(writes.clone()),
        };
        let stop = stop.clone();
        let mut has_failed = false;
        Box::new(move |pair, out| {
            if has_failed {
                return;
            }
            let (sunk, blamed) = (Cell::new(0), Cell::new(None));
            // Whatever a partition makes goes out at once, and has no place.
            let going = Going::of_no_place(&sunk, &blamed);
            let mut put = |record: &[Value<'_>]| end.put(record, out);
            let has_steps = !steps.is_empty();
            let mut sink = |record: &[Value<'_>]| steps.go(going, record, &mut put);
            let mut done = match pair {
                Some(pair) if has_steps => drain.add(pair, &mut sink),
                Some(pair) => drain.add(pair, &mut put),
                None => drain.finish(&mut sink),
            };
            if pair.is_none() && done.is_ok() {
                done = steps.pause(Pause::End, going, &mut put);
            }
            match (done, pair) {
                (Ok(()), None) => end.end(out),
                (Ok(()), Some(_)) => {}
                (Err(error), _) => {
                    has_failed = true;
                    if let Some(stop) = &stop {
                        stop.fail(error);
                    }
                }
            }
        })
    })
}
