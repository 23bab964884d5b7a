//! Bad records, of those that are made of columns: where one stands, and which of several is told.
//!
//! Whoever cuts a chunk asks about its records. Chunks are cut side by side, and a quote out of place makes everything
//! behind it look wrong: so the first bad record of the input is the one to tell, whoever comes upon one first. A worker
//! that has found one waits for nobody; it leaves it here, and whoever ends the last chunk before it ends the job.
//!
//! Where some may be left out ([`Allowed`]) nobody waits: a map function looks at each record instead, and tells of those
//! that are bad.

use sortmill_io::sync::{Mutex, lock};

use crate::batch::{Batch, Chunk};
use crate::error::{Error, ErrorKind, Result};
use crate::job::{Input, Job};
use crate::long::Long;
use crate::order::{Order, Wrong};
use crate::queue::Queue;
use crate::text;

const DOING: &str = "reading the input";
/// What helps against bad records.
pub const SKIP_HINT: &str = "To leave out bad records and count them, give --skip-bad N.";
/// Of which bytes a place is told, where an input was compressed.
pub const OF_UNPACKED: &str = " (line and offset are those in the decompressed bytes)";

/// How many bad records may still be left out, by all threads of a job together.
pub struct Allowed {
    most: u64,
    left: Mutex<u64>,
    /// Whoever asked for the job can say how many.
    can_be_said: bool,
}

impl Allowed {
    /// So many, as somebody said.
    #[must_use]
    pub fn new(most: u64) -> Self {
        Self {
            most,
            left: Mutex::new(most),
            can_be_said: true,
        }
    }

    /// As many as `job` says. What a function makes of columns is made of good ones; what functions or other jobs made is good.
    #[must_use]
    pub fn of(job: &Job) -> Self {
        let is_made = |input: &Input| matches!(input, Input::Made(_));
        let is_ours = job.expects.is_some() || job.inputs.iter().any(is_made);
        let may_be_said = job.columns.is_none() || job.map_makes_pairs;
        Self {
            can_be_said: may_be_said && !is_ours,
            ..Self::new(job.skip_bad)
        }
    }

    /// Whether none may be left out.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.most == 0
    }

    /// Leaves out what counts as `count` bad records, and answers what is to be told of it.
    ///
    /// # Errors
    /// The same, with a hint, if that is more than may be.
    pub fn leave_out(&self, count: u64, error: Error) -> Result<Error> {
        let mut left = lock(&self.left);
        match left.checked_sub(count) {
            Some(less) => {
                *left = less;
                Ok(error.without_hint())
            }
            None => Err(self.hinted(error)),
        }
    }

    /// The error of a bad record that ends the job, with how to leave such out, too.
    #[must_use]
    pub fn hinted(&self, error: Error) -> Error {
        let told = match self.most {
            _ if !self.can_be_said => return error,
            0 => SKIP_HINT.to_owned(),
            most => format!(
                "With it there are more bad records than the {} that may be left out: --skip-bad N says how many may.",
                text::count(most)
            ),
        };
        match error.hint.clone() {
            Some(hint) => error.hint(format!("{hint} {told}")),
            None => error.hint(told),
        }
    }
}

/// The first bad record of a batch whose records lie in `bytes[from..]`, which stand at `zero` where the chunk's offset is.
/// The path is the caller's to add.
#[must_use]
pub fn in_batch(
    order: &Order,
    batch: &Batch<'_>,
    chunk: &Chunk,
    (from, zero): (usize, usize),
) -> Option<Error> {
    let records = batch.offsets.range(0).start..batch.offsets.end();
    if order.are_good(&batch.bytes[records]) {
        return None;
    }
    let index = (0..batch.len()).find(|&index| order.check(batch.record(index)).is_err())?;
    let wrong = order.check(batch.record(index)).err()?;
    let at = batch.offsets.range(index).start;
    Some(told(chunk, batch.bytes, (from, zero), at, wrong))
}

/// The first bad record of a chunk, the long one in front of it included.
#[must_use]
pub fn in_chunk(order: &Order, chunk: &Chunk) -> Option<Error> {
    let long: &[u8] = match &chunk.long {
        Some(Long::Whole(long)) => long,
        _ => &[],
    };
    let start = chunk.records.start;
    let records = &chunk.buffer[..chunk.records.end];
    for (bytes, from, zero) in [(long, 0, long.len()), (records, start, start)] {
        let mut at = from;
        while at < bytes.len() {
            let end = at + order.record_bytes(&bytes[at..]);
            if let Err(wrong) = order.check(&bytes[at..end]) {
                return Some(told(chunk, bytes, (from, zero), at, wrong));
            }
            at = end;
        }
    }
    None
}

/// The error of what is wrong with the record that begins at `bytes[at]`.
fn told(
    chunk: &Chunk,
    bytes: &[u8],
    (from, zero): (usize, usize),
    at: usize,
    wrong: Wrong,
) -> Error {
    let at = at + wrong.at;
    let line = line_at(chunk, bytes, (from, zero), at);
    let offset = chunk.offset + at as u64 - zero as u64;
    error(wrong, (line, offset), chunk.is_unpacked)
}

/// The error of what is `wrong` at a line and an offset, of decompressed bytes if the input `is_unpacked`. The path is the
/// caller's to add.
#[must_use]
pub fn error(wrong: Wrong, (line, offset): (u64, u64), is_unpacked: bool) -> Error {
    let unpacked = match is_unpacked {
        true => OF_UNPACKED,
        false => "",
    };
    let cause = format!("line {line}: {}{unpacked}", wrong.cause);
    let error = Error::new(ErrorKind::Input, DOING, cause).offset(offset);
    match wrong.hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// The line of `bytes[at]`, of a chunk whose lines were counted. What was cut lies in `bytes[from..]`, which stand at `zero`
/// where the chunk's offset is.
#[must_use]
pub fn line_at(chunk: &Chunk, bytes: &[u8], (from, zero): (usize, usize), at: usize) -> u64 {
    let before = match &chunk.long {
        Some(Long::Whole(long)) if from == zero => newlines(long),
        _ => 0,
    };
    chunk.line + before + newlines(&bytes[from..at])
}

/// How many lines end in `bytes`.
#[must_use]
pub fn newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Chunks that workers have in hand, and the first bad record that any of them has found.
#[derive(Default)]
pub struct InHand {
    /// The turn of the chunk that is taken next. Locked while one is taken, so that turns are in the order of chunks.
    next: Mutex<u64>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The turns of the chunks in hand.
    begun: Vec<u64>,
    /// The bad record of the earliest turn.
    bad: Option<(u64, Error)>,
}

impl InHand {
    /// Takes the next chunk, with its turn; `None` when there are no more.
    #[must_use]
    pub fn take(&self, chunks: &Queue<Chunk>) -> Option<(u64, Chunk)> {
        let mut next = lock(&self.next);
        let chunk = chunks.pop()?;
        let turn = *next;
        *next += 1;
        lock(&self.state).begun.push(turn);
        Some((turn, chunk))
    }

    /// Whether the job will come to no chunk of this turn, because a bad record lies before it.
    #[must_use]
    pub fn is_over(&self, turn: u64) -> bool {
        let state = lock(&self.state);
        state.bad.as_ref().is_some_and(|(first, _)| *first < turn)
    }

    /// The chunk of this turn has been looked at, and was given back; `bad` is the first bad record in it.
    ///
    /// # Errors
    /// The first bad record of all, once no chunk before it is in hand.
    pub fn done(&self, turn: u64, bad: Option<Error>) -> Result<()> {
        let mut state = lock(&self.state);
        state.begun.retain(|&begun| begun != turn);
        if let Some(bad) = bad
            && state.bad.as_ref().is_none_or(|(first, _)| turn < *first)
        {
            state.bad = Some((turn, bad));
        }
        match &state.bad {
            Some((first, bad)) if state.begun.iter().all(|begun| begun > first) => Err(bad.clone()),
            _ => Ok(()),
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    fn bad(number: u64) -> Option<Error> {
        Some(Error::new(ErrorKind::Input, DOING, "bad").offset(number))
    }

    fn in_hand(turns: u64) -> InHand {
        let in_hand = InHand::default();
        lock(&in_hand.state).begun.extend(0..turns);
        in_hand
    }

    #[test]
    fn the_first_bad_record_is_told_when_all_before_it_are_done() {
        let chunks = in_hand(4);
        assert!(chunks.done(2, bad(2)).is_ok());
        assert!(chunks.is_over(3) && !chunks.is_over(1) && !chunks.is_over(2));
        assert!(chunks.done(3, bad(3)).is_ok());
        assert!(chunks.done(0, None).is_ok());
        assert_eq!(chunks.done(1, None).unwrap_err().offset, Some(2));

        let chunks = in_hand(3);
        assert!(chunks.done(2, bad(2)).is_ok());
        assert!(chunks.done(1, bad(1)).is_ok());
        assert_eq!(chunks.done(0, bad(0)).unwrap_err().offset, Some(0));

        let chunks = in_hand(2);
        assert!(chunks.done(0, None).is_ok());
        assert_eq!(chunks.done(1, bad(1)).unwrap_err().offset, Some(1));
    }
}
