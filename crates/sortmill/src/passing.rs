//! What map functions make, on its way to the output in the order of the input: a state machine without I/O.
//!
//! Workers take chunks in their order, each with a turn, and put what they make of one under its turn; one thread takes it
//! out, the earliest turn first. What is made of later chunks meanwhile waits here, up to a bound; beyond that who made it
//! waits until its turn comes. The earliest turn never waits for another, so nobody waits for ever.
//!
//! ```text
//! worker 1   turn 6  ----put---->  | 6: batch                 |
//! worker 2   turn 7  ----put---->  | 7: batch, batch          |  --next--> output      6 is at the output
//!                       waits      | as much as may be held   |
//! ```
//!
//! Behind the last chunk each worker has a turn more, for what its function says at the end.

use std::collections::{BTreeMap, VecDeque};

use sortmill_io::sync::{Condvar, Mutex, lock, wait};

use crate::error::{Error, ErrorKind, Result};
use crate::order::{Format, kv_bytes};

/// Batches of the turn that is at the output which may wait there, whatever else does.
const BATCHES_AHEAD: usize = 1;

/// What waits for the output.
pub struct Passing {
    /// The turn of the chunk that is taken next. Locked while one is taken, so that turns are in the order of chunks.
    taking: Mutex<u64>,
    state: Mutex<State>,
    changed: Condvar,
    bytes_max: usize,
    spares_max: usize,
}

#[derive(Default)]
struct State {
    /// The turn that is at the output.
    turn: u64,
    waiting: BTreeMap<u64, Made>,
    /// Bytes of all that waits.
    bytes: usize,
    /// Workers that have not taken their last turn yet.
    workers: usize,
    /// The turn behind all others, once each worker has taken its last one.
    end: u64,
    /// Memory that was used for a batch and waits for the next one.
    spares: Vec<Vec<u8>>,
    aborted: bool,
}

/// What was made under one turn.
#[derive(Default)]
struct Made {
    batches: VecDeque<Vec<u8>>,
    /// No more comes.
    is_done: bool,
}

impl Passing {
    /// Nothing, for so many workers, of which later turns hold at most `bytes_max` bytes.
    #[must_use]
    pub fn new(worker_count: usize, bytes_max: usize) -> Self {
        Self {
            taking: Mutex::new(0),
            state: Mutex::new(State {
                workers: worker_count,
                ..State::default()
            }),
            changed: Condvar::new(),
            bytes_max,
            spares_max: worker_count + 1,
        }
    }

    /// Has `pop` take the next chunk, and answers it with its turn; behind the last chunk the last turn of this worker.
    ///
    /// # Errors
    /// That of `pop`.
    pub fn take<T>(&self, pop: impl FnOnce() -> Result<Option<T>>) -> Result<(u64, Option<T>)> {
        let mut next = lock(&self.taking);
        let chunk = pop()?;
        let turn = *next;
        *next += 1;
        if chunk.is_none() {
            let mut state = lock(&self.state);
            state.workers -= 1;
            state.end = turn + 1;
            drop(state);
            self.changed.notify_all();
        }
        Ok((turn, chunk))
    }

    /// Puts a batch under `turn`, when there is room for it. `false` when the job is ending.
    #[must_use]
    pub fn put(&self, turn: u64, batch: &[u8]) -> bool {
        if batch.is_empty() {
            return true;
        }
        let mut state = lock(&self.state);
        loop {
            if state.aborted {
                return false;
            }
            let of_turn = state
                .waiting
                .get(&turn)
                .map_or(0, |made| made.batches.len());
            let has_room = match turn == state.turn {
                true => of_turn <= BATCHES_AHEAD,
                false => state.bytes + batch.len() <= self.bytes_max,
            };
            if has_room {
                break;
            }
            state = wait(&self.changed, state);
        }
        state.bytes += batch.len();
        let mut bytes = state.spares.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(batch);
        let made = state.waiting.entry(turn).or_default();
        made.batches.push_back(bytes);
        drop(state);
        self.changed.notify_all();
        true
    }

    /// Says that no more comes under `turn`.
    pub fn end(&self, turn: u64) {
        lock(&self.state).waiting.entry(turn).or_default().is_done = true;
        self.changed.notify_all();
    }

    /// The next batch in the order of turns; `None` when there are no more, or the job is ending.
    #[must_use]
    pub fn next(&self) -> Option<Vec<u8>> {
        let mut state = lock(&self.state);
        loop {
            if state.aborted {
                return None;
            }
            let turn = state.turn;
            let made = state.waiting.get_mut(&turn);
            let is_done = made.as_ref().is_some_and(|made| made.is_done);
            if let Some(batch) = made.and_then(|made| made.batches.pop_front()) {
                state.bytes -= batch.len();
                drop(state);
                self.changed.notify_all();
                return Some(batch);
            }
            if is_done {
                state.waiting.remove(&turn);
                state.turn += 1;
                self.changed.notify_all();
                continue;
            }
            if state.workers == 0 && turn == state.end {
                return None;
            }
            state = wait(&self.changed, state);
        }
    }

    /// Gives the memory of a batch back.
    pub fn spare(&self, batch: Vec<u8>) {
        let mut state = lock(&self.state);
        if state.spares.len() < self.spares_max && batch.capacity() <= self.bytes_max {
            state.spares.push(batch);
        }
    }

    /// Ends every wait, now and later.
    pub fn abort(&self) {
        lock(&self.state).aborted = true;
        self.changed.notify_all();
    }
}

/// The pair that `bytes` begin with, and what is behind it.
///
/// # Errors
/// [`ErrorKind::Lost`] when they begin with no whole pair, where pairs have been put one behind the other.
pub fn first_pair(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let pair_bytes = kv_bytes(bytes).and_then(|bytes| usize::try_from(bytes).ok());
    let halves = pair_bytes.and_then(|pair_bytes| bytes.split_at_checked(pair_bytes));
    halves.ok_or_else(|| {
        let cause = format!("what was made did not come back as {:?}", Format::Kv);
        Error::new(ErrorKind::Lost, "passing on what was made", cause)
    })
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    fn passing(bytes_max: usize) -> Passing {
        Passing::new(1, bytes_max)
    }

    #[test]
    fn what_was_put_comes_out_in_the_order_of_turns() {
        let passing = passing(100);
        assert!(passing.put(1, b"later") && passing.put(0, b"first") && passing.put(0, b"then"));
        passing.end(1);
        assert_eq!(passing.next().unwrap(), b"first");
        assert_eq!(passing.next().unwrap(), b"then");
        passing.end(0);
        assert_eq!(passing.next().unwrap(), b"later");
        // The worker takes its last turn.
        for wanted in [(0, Some(())), (1, Some(())), (2, None)] {
            assert_eq!(passing.take(|| Ok(wanted.1)).unwrap(), wanted);
        }
        assert!(passing.put(2, b"last"));
        passing.end(2);
        assert_eq!(passing.next().unwrap(), b"last");
        assert!(passing.next().is_none());
    }

    /// A later turn that is full waits, the one at the output does not for it, and all end when the job does.
    #[test]
    fn what_waits_is_bounded() {
        let passing = passing(10);
        let has_put = Mutex::new(false);
        std::thread::scope(|threads| {
            assert!(passing.put(1, b"0123456789"));
            threads.spawn(|| {
                assert!(passing.put(1, b"more"));
                *lock(&has_put) = true;
                passing.end(1);
            });
            assert!(passing.put(0, b"a batch longer than all that may wait"));
            assert!(!*lock(&has_put));
            passing.end(0);
            let lengths = [37, 10, 4].map(|_| passing.next().unwrap().len());
            assert_eq!(lengths, [37, 10, 4]);
            threads.spawn(|| assert!(passing.next().is_none()));
            passing.abort();
        });
        assert!(!passing.put(2, b"late"));
    }
}
