//! Where each unit's output begins, and whose turn it is: a state machine without I/O.
//!
//! Where all sizes become known before anything is written, units are written in any order, each at its
//! own offset. Where they do not (a reduce function, or an output that is a stream), units take turns.
//! Where temporary data lie in the output's space, a unit also waits for those to be loaded that lie where it goes.

use sortmill_io::sync::{Arc, Condvar, Mutex, lock, wait};

/// The places of a row of units. Cloning shares it.
#[derive(Clone)]
pub struct Places {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Sizes of units, as far as they are known.
    sizes: Vec<Option<u64>>,
    /// Units whose sizes and those of all below are known, and where the next one begins.
    known: usize,
    sum: u64,
    /// The unit whose turn it is.
    turn: usize,
    /// Units loaded, all in order.
    loaded: usize,
    /// For each unit, the last that must have been loaded before it is written.
    needs: Vec<usize>,
    aborted: bool,
}

impl State {
    /// Whether what lies where unit `number` goes is loaded.
    fn is_free(&self, number: usize) -> bool {
        let last = self.needs.get(number);
        last.is_none_or(|&last| last < self.loaded)
    }
}

impl Places {
    /// `count` units of unknown size, the first of which begins at byte `from` of the output; each waits until unit
    /// `needs` of it is loaded, where that is said.
    #[must_use]
    pub fn new(count: usize, from: u64, needs: Vec<usize>) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    sizes: vec![None; count],
                    known: 0,
                    sum: from,
                    turn: 0,
                    loaded: 0,
                    needs,
                    aborted: false,
                }),
                changed: Condvar::new(),
            }),
        }
    }

    /// Says that unit `number` is in memory, as all below it are.
    pub fn loaded(&self, number: usize) {
        lock(&self.shared.state).loaded = number + 1;
        self.shared.changed.notify_all();
    }

    /// Says how many bytes unit `number` has, and waits until those of all units below it are known, and what
    /// lies where it goes is loaded. Answers where its output begins; `None` when the job is ending.
    #[must_use]
    pub fn begin(&self, number: usize, bytes: u64) -> Option<u64> {
        let mut state = lock(&self.shared.state);
        state.sizes[number] = Some(bytes);
        while let Some(&Some(size)) = state.sizes.get(state.known) {
            state.known += 1;
            state.sum += size;
        }
        self.shared.changed.notify_all();
        loop {
            if state.aborted {
                return None;
            }
            if state.known >= number && state.is_free(number) {
                let above: u64 = state.sizes[number..state.known].iter().flatten().sum();
                return Some(state.sum - above);
            }
            state = wait(&self.shared.changed, state);
        }
    }

    /// Waits until what lies in front of unit `number` and where it goes is loaded. `false` when the job is ending.
    #[must_use]
    pub fn wait_free(&self, number: usize) -> bool {
        let mut state = lock(&self.shared.state);
        while !state.aborted && !state.is_free(number) {
            state = wait(&self.shared.changed, state);
        }
        !state.aborted
    }

    /// Where the units end whose sizes and those of all below are known.
    #[must_use]
    pub fn known_bytes(&self) -> u64 {
        lock(&self.shared.state).sum
    }

    /// Waits until it is unit `number`'s turn. `false` when the job is ending.
    #[must_use]
    pub fn wait_turn(&self, number: usize) -> bool {
        let mut state = lock(&self.shared.state);
        loop {
            if state.aborted {
                return false;
            }
            if state.turn == number {
                return true;
            }
            state = wait(&self.shared.changed, state);
        }
    }

    /// Whether it is unit `number`'s turn.
    #[must_use]
    pub fn has_turn(&self, number: usize) -> bool {
        lock(&self.shared.state).turn == number
    }

    /// Passes the turn on.
    pub fn end_turn(&self) {
        lock(&self.shared.state).turn += 1;
        self.shared.changed.notify_all();
    }

    /// Ends every wait, now and later.
    pub fn abort(&self) {
        lock(&self.shared.state).aborted = true;
        self.shared.changed.notify_all();
    }
}
