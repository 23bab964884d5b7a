//! Bad records that are left out: of a worker's, those that its map function could not read.
//!
//! They were cut and summed up before anybody knew, and are taken out of both again: the proof is of all others, and what was
//! left out counts as what the reader has left out. Only the first are kept, with place and cause.

use super::super::Shared;
use crate::bad;
use crate::batch::{Chunk, Unread};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::stage::read::{ReadTotals, SKIPPED_TOLD_MAX};

/// What was left out.
#[derive(Default)]
pub struct LeftOut {
    /// The records that were cut, and as how many bad ones they count.
    cut: Fingerprint,
    count: u64,
    /// The first of them.
    first: Vec<Error>,
}

impl LeftOut {
    /// Leaves out `record`, which begins at byte `at` of what was cut out of `bytes[from..]`, if so many may be.
    ///
    /// # Errors
    /// What is wrong with it, if not.
    pub fn take(
        &mut self,
        shared: &Shared<'_>,
        unread: Unread,
        (record, at): (&[u8], usize),
        chunk: Option<(&Chunk, usize)>,
        (bytes, from): (&[u8], usize),
    ) -> Result<()> {
        let Unread { count, mut error } = unread;
        if let Some((chunk, zero)) = chunk {
            let at = at + error.offset.map_or(0, |within| within as usize);
            error = placed(error, shared, (chunk, zero), (bytes, from), at);
            if chunk.is_unpacked {
                error.cause += bad::OF_UNPACKED;
            }
        }
        let error = shared.allowed.leave_out(count, error)?;
        self.cut.add(record, shared.number);
        self.count += count;
        if self.first.len() < SKIPPED_TOLD_MAX {
            self.first.push(error);
        }
        Ok(())
    }

    /// Adds what another worker left out.
    pub fn merge(&mut self, other: Self) {
        self.cut.merge(&other.cut);
        self.count += other.count;
        self.first.extend(other.first);
    }

    /// Takes it out of what was `read` and cut, to what the reader left out.
    pub fn take_out(&mut self, read: &mut ReadTotals, input: &mut Fingerprint) {
        let Self { cut, count, first } = std::mem::take(self);
        if count == 0 {
            return;
        }
        *input = input.without(&cut);
        read.record_bytes -= cut.bytes;
        read.skipped_bytes += cut.bytes;
        read.skipped += count;
        read.skipped_first.extend(first);
        let place = |error: &Error| (error.path.clone(), error.offset);
        read.skipped_first.sort_by_cached_key(place);
        read.skipped_first.truncate(SKIPPED_TOLD_MAX);
    }
}

impl Shared<'_> {
    /// Whether somebody looks at each record that is cut, and the first bad one ends the job.
    pub fn looks_for_bad(&self) -> bool {
        self.plan.input_order().has_columns() && self.allowed.is_none()
    }
}

/// What went wrong in a map function, told with the place of the record that it had, at byte `at` of what was cut out of
/// `bytes[from..]`.
pub fn placed(
    mut error: Error,
    shared: &Shared<'_>,
    (chunk, zero): (&Chunk, usize),
    (bytes, from): (&[u8], usize),
    at: usize,
) -> Error {
    if error.path.is_some() {
        return error;
    }
    if shared.counts_lines() {
        let line = bad::line_at(chunk, bytes, (from, zero), at);
        error.cause = format!("line {line}: {}", error.cause);
    }
    let offset = chunk.offset + at as u64 - zero as u64;
    let path = shared.job.inputs[chunk.input].path();
    error.at(path).offset(offset)
}
