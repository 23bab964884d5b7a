//! A look at a table without its job: its first records, or what it would be of a sample of the input.
//!
//! Verbs that make records of one at a time are done right here to the beginnings of the files. What brings records together is a job
//! like any other, of what came out of that: what it answers is right of the sample, and of nothing else.

use std::cell::Cell;

use sortmill_io::Os;
use sortmill_io::os::Kind;
use sortmill_io::sync::Arc;

use super::aggregate::Owned;
use super::column::{Column, Value, corrupt};
use super::read::{self, Reader};
use super::rows::{self, MakeHandRows};
use super::verbs::{Going, Sink, Step, Steps};
use super::{Node, NodeKind, Table};
use crate::bad::Allowed;
use crate::batch::Pause;
use crate::error::{Error, ErrorKind, Result};
use crate::job::{Job, Output};
use crate::order::{Format, KV_HEADER_BYTES, kv_bytes};
use crate::queue::Stop;
use crate::run::{self, Look};
use crate::stage::read::Source;

/// So much of each file is looked at for the first records.
const HEAD_BYTES: usize = 32 << 20;
/// A sample has no more of the input: it is read into memory, beside the budget.
const SAMPLE_BYTES_MAX: usize = 1 << 30;
/// A sample is no larger than that once verbs have made records of it.
const ROWS_BYTES_MAX: usize = 64 << 20;
/// Of a sample so many records are handed over at once.
const HANDED_COUNT: usize = 256;

impl Table {
    /// The first `count` records, if they can be told without a job: where every verb makes records of one at a time, the
    /// beginnings of the files are read, at most 32 MiB of each, and nothing else. With them whether that is so; if not, more might
    /// come of what lies behind. `None` behind verbs that bring records together, and of what is no file.
    ///
    /// # Errors
    /// As [`super::Pipeline::run`].
    pub fn head(
        &self,
        count: usize,
        os: &dyn Os,
        stop: &Stop,
    ) -> Result<Option<(Vec<Vec<Owned>>, bool)>> {
        let Some(mut before) = steps(&self.nodes) else {
            return Ok(None);
        };
        if count == 0 {
            return Ok(Some((Vec::new(), true)));
        }
        for step in &mut before {
            // No more records are given to a function than must be.
            if let Step::Batches(batches) = step {
                batches.size = batches.size.min(count);
            }
        }
        let mut rows: Vec<Vec<Owned>> = Vec::new();
        let has_enough = self.look(&before, Look::First(HEAD_BYTES), (os, stop), |values| {
            if rows.len() < count {
                rows.push(values.iter().map(|&value| Owned::new(value)).collect());
            }
            rows.len() >= count
        })?;
        Ok(has_enough.map(|has_enough| (rows, has_enough)))
    }

    /// What the table would be of a sample of its input: `bytes` bytes of all files together, of each its beginning. With it whether
    /// that is all there is. `None` of what is no file, and where the sample has no whole record.
    ///
    /// Verbs in front of the first one that brings records together are done here, their records are in memory until the answer goes.
    ///
    /// # Errors
    /// As [`super::Pipeline::run`], for what of it is done here. [`ErrorKind::Usage`] for a sample of more than 1 GiB.
    pub fn sampled(&self, bytes: usize, os: &dyn Os, stop: &Stop) -> Result<Option<(Self, bool)>> {
        if bytes > SAMPLE_BYTES_MAX {
            let cause =
                format!("sample is {bytes} bytes, at most 1 GiB; a run gives the table of all");
            return Err(Error::new(ErrorKind::Usage, "taking a sample", cause));
        }
        let is_shuffle = |node: &Node| matches!(node.kind, NodeKind::Shuffle(_));
        let first = self.nodes.iter().position(is_shuffle);
        let (front, behind) = self.nodes.split_at(first.unwrap_or(self.nodes.len()));
        let Some(before) = steps(front) else {
            return Ok(None);
        };
        let columns = match behind.first() {
            Some(Node {
                kind: NodeKind::Shuffle(shuffle),
                ..
            }) => &shuffle.columns,
            _ => &self.columns,
        };
        let mut made = Vec::new();
        let has_all = self.look(&before, Look::Sample(bytes), (os, stop), |values| {
            rows::write(columns, values, &mut made);
            made.len() >= ROWS_BYTES_MAX
        })?;
        let Some(has_all) = has_all else {
            return Ok(None);
        };
        let has_all = has_all && made.len() < ROWS_BYTES_MAX;
        if made.is_empty() && !has_all {
            return Ok(None);
        }
        let mut table = read::from_rows("a sample", columns.to_vec(), handing(columns, made))?;
        table.nodes = behind.to_vec();
        table.columns.clone_from(&self.columns);
        Ok(Some((table, has_all)))
    }

    /// Hands the records that `before` makes of the first ones of the input to `see` until that answers that it has enough. Answers
    /// whether it has, or has seen all; `None` where nothing may be looked at.
    fn look(
        &self,
        before: &[Step],
        how: Look,
        (os, stop): (&dyn Os, &Stop),
        mut see: impl FnMut(&[Value<'_>]) -> bool,
    ) -> Result<Option<bool>> {
        let mut job = Job::new(Vec::new(), Output::Stdout, Format::Kv);
        self.inputs.ask(&mut job, os)?;
        let mut sources = run::open(&job, os)?;
        let is_file = |source: &Source| source.meta.kind == Kind::Regular;
        if !sources.iter().all(is_file) {
            return Ok(None);
        }
        let found = run::look_up_columns(&job, &mut sources, os, stop)?;
        let mut job = found.unwrap_or(job);
        let bound = Arc::new(self.inputs.bind(&mut job)?);
        let allowed = Allowed::new(job.skip_bad);
        let (mut reader, mut steps) = (Reader::new(&bound), Steps::new(before));
        let (sunk, blamed) = (Cell::new(0), Cell::new(None));
        let lies = |input: usize, offset: u64| Going {
            slab: (input as u64, 0),
            place: offset as u32,
            sunk: &sunk,
            // What comes of a sample is told, as is what its functions raise.
            is_sample: matches!(how, Look::First(_)),
            is_full: &|| false,
            blamed: &blamed,
        };
        let blame = |error: Error, input: usize| match blamed.get() {
            Some(offset) if error.path.is_none() => {
                let path = &sources[input].file.path;
                error.at(path).offset(u64::from(offset))
            }
            _ => error,
        };
        let has_enough = Cell::new(false);
        let mut take = |values: &[Value<'_>]| {
            has_enough.set(has_enough.get() || see(values));
            Ok(())
        };
        let mut last = (0, 0);
        let has_seen = run::first_records(
            &job,
            &sources,
            (how, &allowed),
            (os, stop),
            |record, origin, at| {
                if origin.input != last.0 {
                    // Functions of batches get none of two files.
                    let done = steps.pause(Pause::Chunk, lies(last.0, last.1), &mut take);
                    done.map_err(|error| blame(error, last.0))?;
                }
                last = (origin.input, at);
                let going = lies(origin.input, at);
                sunk.set(going.place);
                let done = reader.read(record, origin, &mut |record| {
                    steps.go(going, record, &mut take)
                });
                if let Err(error) = done {
                    match reader.bad_count(record, &error) {
                        Some(count) => allowed.leave_out(count, error)?,
                        None => return Err(blame(error, origin.input)),
                    };
                }
                Ok(has_enough.get())
            },
        )?;
        if !has_enough.get() {
            // What functions of batches have gathered, and no more records come.
            let done = steps.pause(Pause::End, lies(last.0, last.1), &mut take);
            done.map_err(|error| blame(error, last.0))?;
        }
        Ok(Some(has_seen || has_enough.get()))
    }
}

/// The steps that `nodes` are, if they are no other verbs, and can be done to records that come one after the other.
fn steps(nodes: &[Node]) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    for node in nodes {
        match &node.kind {
            NodeKind::Step(step) => steps.push(step.clone()),
            NodeKind::Shuffle(_) => return None,
        }
    }
    Some(steps)
}

/// Hands over the records of `columns` that lie in `made`, one behind the other, each time from the first one on.
fn handing(columns: &[Column], made: Vec<u8>) -> MakeHandRows {
    let (made, columns) = (Arc::new(made), columns.to_vec());
    Arc::new(move || {
        let (made, columns, mut at) = (Arc::clone(&made), columns.clone(), 0);
        Ok(Box::new(move |sink: Sink<'_>| {
            for _ in 0..HANDED_COUNT {
                let Some(bytes) = kv_bytes(&made[at..]) else {
                    return Ok(false);
                };
                let record = made.get(at..at + bytes as usize).ok_or_else(corrupt)?;
                rows::read(&columns, &record[KV_HEADER_BYTES..], |values| sink(values))?;
                at += record.len();
            }
            Ok(true)
        }))
    })
}
