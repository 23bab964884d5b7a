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

use std::cell::Cell;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sortmill_io::Os;
use sortmill_io::codec::Codec;
use sortmill_io::sync::Arc;
use sortmill_io::sync::atomic::AtomicU64;

use super::column::{Column, Type, Value};
use super::shuffle::{Drain, Feed, Shuffle};
use super::verbs::{Going, Step, Steps};
use super::write::Form;
use super::{Node, NodeKind, Pipeline, Settings, gather, held, paths};
use crate::batch::Pause;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::job::{Boundaries, Compress, Input, Job, MapFn, Output, ReduceFn};
use crate::order::{Format, KV_HEADER_BYTES};
use crate::queue::Stop;
use crate::report::{Report, plan_lines};
use crate::run;
use crate::temp::{BETWEEN, Temp};
use crate::text;

/// What a reducer's feed may keep, of which one is at work at a time: within what comes on top of the plan.
const REDUCER_STATE_BYTES: u64 = 2 << 20;

/// What was done, phase by phase.
#[derive(Clone, Debug, Serialize)]
pub struct PipelineReport {
    /// The phases in order.
    pub phases: Vec<PhaseReport>,
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
        let lines = self.phases.iter().map(|PhaseReport { name, report }| {
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
        lines.collect()
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
struct Phase {
    name: String,
    /// What is done to the records of the text, of the first phase.
    before: Vec<Step>,
    shuffle: Arc<Shuffle>,
    after: Vec<Step>,
    /// What is done, for people.
    words: Vec<String>,
}

impl Pipeline {
    /// What would be done: phases and their verbs, and the plan of the first one; those of the others follow from what
    /// comes out of it.
    ///
    /// # Errors
    /// As [`Pipeline::run`], as far as that shows before.
    pub fn explain(&self, settings: &Settings, os: &dyn Os) -> Result<String> {
        let phases = self.phases();
        let mut told = String::new();
        for (number, phase) in phases.iter().enumerate() {
            let from = match number {
                0 if self.table.inputs.rows.is_some() => "a stream of records".to_owned(),
                0 => self.table.inputs.patterns.join(", "),
                _ => "what the phase before made".to_owned(),
            };
            let to = match number + 1 == phases.len() {
                true => format!("{} to {}", self.form.name(), self.path.display()),
                false => "pairs to a temporary folder".to_owned(),
            };
            told += &format!("phase {}\n  reads {from}\n", phase.name);
            for word in &phase.words {
                told += &format!("  {word}\n");
            }
            told += &format!("  writes {to}\n");
        }
        let job = self.job(&phases, 0, settings, os, &Means::default())?;
        let sources = run::open(&job, os)?;
        let plan = run::prepare_opened(&job, sources, os)?.plan;
        told += &format!("plan of the first phase\n{}", plan_lines(&plan));
        Ok(told)
    }

    /// Does it. The output has its name when this returns.
    ///
    /// # Errors
    /// Anything but a proven, complete output. What was at its name before is still there.
    pub fn run(&self, settings: &Settings, os: &dyn Os, stop: &Stop) -> Result<PipelineReport> {
        let phases = self.phases();
        let number = os.random();
        let mut means = Means {
            number,
            ..Means::default()
        };
        let temp;
        if phases.len() > 1 {
            let base = self.temp_base(settings, os)?;
            crate::temp::clean_up(os, &base);
            temp = Temp::new(os, &base, os.random(), None, 0);
            temp.make()?;
            let folder = temp.spill_path();
            means.between = folder.parent().map(Path::to_owned);
        }
        let mut report = PipelineReport { phases: Vec::new() };
        for (at, phase) in phases.iter().enumerate() {
            means.stop = Some(stop.clone());
            let mut job = self.job(&phases, at, settings, os, &means)?;
            let before = report.phases.last().map(|before| &before.report);
            let watched = settings.watched.as_ref();
            job.progress = watched.map(|watched| watched.begin(&phase.name, at, phases.len()));
            job.expects = before.map(|before| before.fingerprints.written);
            let done = run::sort(&job, os, stop)?;
            if at > 0 {
                // If it cannot be removed now, it goes with its folder, or with the next job.
                let _ = os.remove_file(job.inputs[0].path());
            }
            report.phases.push(PhaseReport {
                name: phase.name.clone(),
                report: done,
            });
        }
        Ok(report)
    }

    /// A job that has its output and temporary files where the pipeline has them.
    pub(super) fn folders_of(&self, settings: &Settings, os: &dyn Os) -> Result<Job> {
        self.job(&self.phases(), 0, settings, os, &Means::default())
    }

    /// The types of the records of the input, where they are no lines.
    fn given(&self, are_rows: bool) -> Option<Vec<Type>> {
        are_rows.then(|| {
            self.table
                .inputs
                .columns
                .iter()
                .map(|column| column.kind)
                .collect()
        })
    }

    fn phases(&self) -> Vec<Phase> {
        let mut phases: Vec<Phase> = Vec::new();
        let (mut before, mut words) = (Vec::new(), Vec::new());
        for Node { name, kind } in &self.table.nodes {
            match (kind, phases.last_mut()) {
                (NodeKind::Step(step), None) => {
                    before.push(step.clone());
                    words.push(format!("maps: {name}"));
                }
                (NodeKind::Step(step), Some(last)) => {
                    last.after.push(step.clone());
                    last.words.push(format!("reduces: {name}"));
                }
                (NodeKind::Shuffle(shuffle), _) => {
                    let mut words = std::mem::take(&mut words);
                    words.extend(brought(name, shuffle));
                    phases.push(Phase {
                        name: name.clone(),
                        before: std::mem::take(&mut before),
                        shuffle: Arc::clone(shuffle),
                        after: Vec::new(),
                        words,
                    });
                }
            }
        }
        if phases.is_empty() {
            words.push("keeps the order of the input".to_owned());
            phases.push(Phase {
                name: "keep".to_owned(),
                before,
                shuffle: Arc::new(Shuffle::keep(&self.table.columns)),
                after: Vec::new(),
                words,
            });
        }
        phases
    }

    /// The job that phase `at` is.
    fn job(
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
        let rows = self.table.inputs.rows.as_ref().filter(|_| at == 0);
        let inputs = match (at, rows) {
            (0, Some(path)) => vec![path()],
            (0, None) => paths::expand(os, &self.table.inputs.patterns)?,
            _ => vec![between(at - 1)],
        };
        let output = match next {
            None => self.path.clone(),
            Some(_) => between(at),
        };
        let inputs = inputs.into_iter().map(Input::Path).collect();
        let is_text = at == 0 && rows.is_none();
        let format = if is_text { Format::Lines } else { Format::Kv };
        let mut job = Job::new(inputs, Output::Path(output), format);
        if at == 0 {
            job.decompress = is_text;
            job.header_lines = self.table.inputs.skip_header;
            job.map = Some(mapper(phase, self.given(rows.is_some())));
            job.map_around.clone_from(&settings.around);
            job.map_makes_pairs = true;
            job.map_keeps_state = phase.shuffle.combines();
            let takes_batches = |step: &&Step| matches!(step, Step::Batches(_));
            let batching = phase.before.iter().filter(takes_batches).count();
            job.map_gathers_bytes = batching as u64 * gather::HELD_BYTES;
        }
        job.reduce = Some(reducer(phase, next, self, means.stop.as_ref()));
        // Between phases nothing comes first, not even the header of the text.
        job.reduce_makes_bytes = Some(Vec::new());
        if next.is_none() {
            job.reduce_makes_bytes = Some(self.form.heading(&self.table.columns));
            let codec = Codec::of_name(&self.path);
            job.compress = codec.map(|codec| Compress { codec, level: None });
        }
        if phase.shuffle.groups() {
            job.equal_keys_meet = true;
            job.boundaries = Boundaries::Uniform;
        }
        job.memory_bytes = settings.memory_bytes;
        job.temps.clone_from(&settings.temps);
        job.threads = settings.threads;
        job.tuning = settings.tuning;
        job.number = Some(means.number);
        job.probe = Some(false);
        Ok(job)
    }
}

/// What the jobs of one run share.
#[derive(Default)]
struct Means {
    number: u64,
    /// The folder for what lies between phases.
    between: Option<PathBuf>,
    stop: Option<Stop>,
}

fn brought(name: &str, shuffle: &Shuffle) -> Vec<String> {
    let mut words = Vec::new();
    if shuffle.combines() {
        words.push("combines what comes lately".to_owned());
    }
    words.push(match shuffle.groups() {
        true => format!("brings together: {name}, in the order of a hash"),
        false => format!("brings together: {name}"),
    });
    words
}

/// Lines become records, go through the steps and are fed to the shuffle.
fn mapper(phase: &Phase, given: Option<Vec<Type>>) -> MapFn {
    let (before, shuffle) = (phase.before.clone(), Arc::clone(&phase.shuffle));
    Arc::new(move |state_bytes| {
        let given = given.clone();
        let mut steps = Steps::new(&before);
        let mut feed = Feed::new(&shuffle, state_bytes);
        Box::new(move |line, made| {
            let (is_full, blamed) = (Cell::new(false), Cell::new(None));
            let going = Going {
                place: made.at() as u32,
                is_sample: made.is_sample(),
                is_full: &|| is_full.get(),
                blamed: &blamed,
            };
            let pause = made.pause();
            let mut pairs = |key: &[u8], value: &[u8]| {
                made.push_pair(key, value);
                is_full.set(made.is_full());
            };
            let mut sink = |record: &[Value<'_>]| {
                feed.add(record, &mut pairs);
                Ok(())
            };
            let done = match (line, &given) {
                (Some(pair), Some(kinds)) => {
                    let row = pair.get(KV_HEADER_BYTES..).unwrap_or_default();
                    held::read_row(kinds, row, |record| steps.go(going, record, &mut sink))
                }
                (Some(line), None) => {
                    let line = line.strip_suffix(b"\n").unwrap_or(line);
                    let line = line.strip_suffix(b"\r").unwrap_or(line);
                    steps.go(going, &[Value::Bytes(line)], &mut sink)
                }
                (None, _) => steps.pause(pause, going, &mut sink),
            };
            if line.is_none() && pause == Pause::End && done.is_ok() && !steps.is_held() {
                feed.end(&mut pairs);
            }
            if steps.is_held() {
                made.hold_back();
            }
            match (done, blamed.get()) {
                (Ok(()), _) => {}
                (Err(error), Some(place)) => made.refuse_at(error, place as usize),
                (Err(error), None) => made.refuse(error),
            }
        })
    })
}

/// Where the records of a reducer go.
enum End {
    /// To the shuffle of the next phase.
    Feed(Box<Feed>, Vec<u8>),
    /// To the output.
    Write(Form, Vec<Column>, Vec<u8>),
}

impl End {
    fn put(&mut self, record: &[Value<'_>], out: &mut dyn FnMut(&[u8])) -> Result<()> {
        match self {
            Self::Feed(feed, pair) => {
                feed.add(record, &mut |key, value| put_pair(key, value, pair, out));
            }
            Self::Write(form, columns, text) => {
                text.clear();
                form.write(columns, record, text)?;
                out(text);
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn FnMut(&[u8])) {
        if let Self::Feed(feed, pair) = self {
            feed.end(&mut |key, value| put_pair(key, value, pair, out));
        }
    }
}

fn put_pair(key: &[u8], value: &[u8], pair: &mut Vec<u8>, out: &mut dyn FnMut(&[u8])) {
    pair.clear();
    pair.extend_from_slice(&(key.len() as u32).to_le_bytes());
    pair.extend_from_slice(&(value.len() as u32).to_le_bytes());
    pair.extend_from_slice(key);
    pair.extend_from_slice(value);
    out(pair);
}

/// Sorted pairs become records, go through the steps, and to the next phase or the output. What goes wrong ends the job.
fn reducer(phase: &Phase, next: Option<&Phase>, of: &Pipeline, stop: Option<&Stop>) -> ReduceFn {
    let (shuffle, after) = (Arc::clone(&phase.shuffle), phase.after.clone());
    let next = next.map(|next| Arc::clone(&next.shuffle));
    let (form, columns) = (of.form, of.table.columns.clone());
    let left = Arc::new(AtomicU64::new(Drain::wanted(&shuffle)));
    let stop = stop.cloned();
    Arc::new(move || {
        let mut drain = Drain::new(&shuffle, &left);
        let mut steps = Steps::new(&after);
        let mut end = match &next {
            Some(next) => End::Feed(Box::new(Feed::new(next, REDUCER_STATE_BYTES)), Vec::new()),
            None => End::Write(form, columns.clone(), Vec::new()),
        };
        let stop = stop.clone();
        let mut has_failed = false;
        Box::new(move |pair, out| {
            if has_failed {
                return;
            }
            let blamed = Cell::new(None);
            // Whatever a partition makes goes out at once.
            let going = Going {
                place: 0,
                is_sample: false,
                is_full: &|| false,
                blamed: &blamed,
            };
            let mut put = |record: &[Value<'_>]| end.put(record, out);
            let mut sink = |record: &[Value<'_>]| steps.go(going, record, &mut put);
            let mut done = match pair {
                Some(pair) => drain.add(pair, &mut sink),
                None => drain.end(&mut sink),
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
