//! Bad records, of those that are made of columns: where one stands, and which of several is told.
//!
//! Whoever cuts a chunk asks about each record. Chunks are cut side by side, and a quote out of place makes everything
//! behind it look wrong: so the first bad record of the input is the one to tell, whoever comes upon one first. A worker
//! that has found one waits for nobody; it leaves it here, and whoever ends the last chunk before it ends the job.

use sortmill_io::sync::{Mutex, lock};

use crate::batch::{Batch, Chunk};
use crate::error::{Error, ErrorKind, Result};
use crate::long::Long;
use crate::order::{Order, Wrong};
use crate::queue::Queue;

const DOING: &str = "reading the input";

/// The first bad record of a batch whose records lie in `bytes[from..]`, which stand at `zero` where the chunk's offset is.
/// The path is the caller's to add.
#[must_use]
pub fn in_batch(
    order: &Order,
    batch: &Batch<'_>,
    chunk: &Chunk,
    (from, zero): (usize, usize),
) -> Option<Error> {
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
        true => " (line and offset are those in the decompressed bytes)",
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
