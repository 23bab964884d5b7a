//! The ring over threads with `pread` and `pwrite`: for kernels and containers without io_uring.
//!
//! The same results as [`crate::uring`], at the price of a few more threads.

use std::collections::VecDeque;
use std::io;

use crate::os::{Done, Handle, Next, Op, OpKind, Ring, after_transfer};
use crate::sync::{Arc, Condvar, JoinHandle, Mutex, lock, spawn_owned, wait};

pub struct PosixRing {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    in_flight: usize,
}

struct Shared {
    state: Mutex<State>,
    asked: Condvar,
    finished: Condvar,
}

#[derive(Default)]
struct State {
    asked: VecDeque<Op>,
    finished: VecDeque<Done>,
    closed: bool,
}

/// More threads than this have not made any device faster.
const THREAD_COUNT_MAX: usize = 4;

impl PosixRing {
    pub fn new(depth: usize) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::new(State::default()),
            asked: Condvar::new(),
            finished: Condvar::new(),
        });
        let threads = (0..depth.clamp(1, THREAD_COUNT_MAX))
            .map(|number| {
                let shared = Arc::clone(&shared);
                spawn_owned(&format!("posix-io-{number}"), move || serve(&shared))
            })
            .collect();
        Self {
            shared,
            threads,
            in_flight: 0,
        }
    }
}

fn serve(shared: &Shared) {
    loop {
        let mut state = lock(&shared.state);
        let op = loop {
            if let Some(op) = state.asked.pop_front() {
                break op;
            }
            if state.closed {
                return;
            }
            state = wait(&shared.asked, state);
        };
        drop(state);
        let done = transfer(op);
        lock(&shared.state).finished.push_back(done);
        shared.finished.notify_one();
    }
}

/// Moves all the bytes of `op`, in as many calls as it takes.
fn transfer(mut op: Op) -> Done {
    let mut before = 0;
    loop {
        let result = transfer_once(&mut op, before);
        let moved = result.as_ref().map_or(0, |moved| *moved);
        match after_transfer(&op, before, result) {
            Next::Rest => before += moved,
            Next::Done(bytes) => {
                return Done {
                    op,
                    result: Ok(bytes),
                };
            }
            Next::Fail(error) => {
                return Done {
                    op,
                    result: Err(error),
                };
            }
        }
    }
}

fn transfer_once(op: &mut Op, before: usize) -> io::Result<usize> {
    let Handle::Fd(fd) = &op.file.handle else {
        unreachable!("a simulated file is never given to the kernel");
    };
    let range = op.range.start + before..op.range.end;
    let offset = op.offset + before as u64;
    let moved = match op.kind {
        OpKind::Read => rustix::io::pread(fd, &mut op.buffer[range], offset)?,
        OpKind::Write => rustix::io::pwrite(fd, &op.buffer[range], offset)?,
    };
    Ok(moved)
}

impl Ring for PosixRing {
    fn submit(&mut self, op: Op) {
        lock(&self.shared.state).asked.push_back(op);
        self.in_flight += 1;
        self.shared.asked.notify_one();
    }

    fn complete(&mut self, wait_for_one: bool) -> Option<Done> {
        let mut state = lock(&self.shared.state);
        loop {
            if let Some(done) = state.finished.pop_front() {
                self.in_flight -= 1;
                return Some(done);
            }
            if !wait_for_one || self.in_flight == 0 {
                return None;
            }
            state = wait(&self.shared.finished, state);
        }
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }
}

impl Drop for PosixRing {
    fn drop(&mut self) {
        lock(&self.shared.state).closed = true;
        self.shared.asked.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
