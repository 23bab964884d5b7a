//! The ring over threads with `pread` and `pwrite`: for kernels and containers without io_uring.
//!
//! The same results as [`crate::uring`], at the price of a few more threads. Where the files lie on several
//! devices there are as many more, and one file keeps no more of them busy than it would alone, so that a slow
//! device does not keep a fast one waiting.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use crate::os::{Done, File, Handle, Next, Op, OpKind, Ring, after_transfer};
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
    /// The file of each transfer that a thread is at.
    busy: Vec<Arc<File>>,
    finished: VecDeque<Done>,
    closed: bool,
}

impl State {
    /// The first transfer whose file does not keep its threads busy already.
    fn next(&mut self) -> Option<Op> {
        let has_room = |op: &Op| {
            let same = self.busy.iter().filter(|file| Arc::ptr_eq(file, &op.file));
            same.count() < THREAD_COUNT_MAX
        };
        let at = self.asked.iter().position(has_room)?;
        let op = self.asked.remove(at)?;
        self.busy.push(Arc::clone(&op.file));
        Some(op)
    }

    fn ended(&mut self, done: Done) {
        let same = |file: &Arc<File>| Arc::ptr_eq(file, &done.op.file);
        let at = self.busy.iter().position(same);
        self.busy.swap_remove(at.expect("it was begun"));
        self.finished.push_back(done);
    }
}

/// More threads than this have not made any device faster.
const THREAD_COUNT_MAX: usize = 4;

impl PosixRing {
    pub fn new(depth: usize, device_count: usize) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::new(State::default()),
            asked: Condvar::new(),
            finished: Condvar::new(),
        });
        let mut ring = Self {
            shared,
            threads: Vec::new(),
            in_flight: 0,
        };
        // Where one cannot be started, dropping the ring ends the others.
        for number in 0..depth.clamp(1, THREAD_COUNT_MAX * device_count) {
            let shared = Arc::clone(&ring.shared);
            let thread = spawn_owned(&format!("posix-io-{number}"), move || serve(&shared));
            ring.threads.push(thread);
        }
        ring
    }
}

fn serve(shared: &Shared) {
    loop {
        let mut state = lock(&shared.state);
        let op = loop {
            if let Some(op) = state.next() {
                break op;
            }
            if state.closed {
                return;
            }
            state = wait(&shared.asked, state);
        };
        drop(state);
        let done = transfer(op);
        lock(&shared.state).ended(done);
        shared.finished.notify_one();
    }
}

/// Moves all the bytes of `op`, in as many calls as it takes.
fn transfer(mut op: Op) -> Done {
    let mut before = 0;
    let parked = match op.file.unpark() {
        Ok(parked) => parked,
        Err(error) => {
            return Done {
                op,
                result: Err(error),
            };
        }
    };
    loop {
        let result = transfer_once(&mut op, parked.as_deref(), before);
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

/// `parked` is the descriptor of a file that has none of its own.
fn transfer_once(op: &mut Op, parked: Option<&OwnedFd>, before: usize) -> io::Result<usize> {
    let fd = match (&op.file.handle, parked) {
        (Handle::Fd(fd), _) | (_, Some(fd)) => fd,
        _ => unreachable!("a simulated file is never given to the kernel"),
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
