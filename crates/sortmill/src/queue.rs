//! What passes between threads: bounded queues, and the one switch that ends them all.
//!
//! The first error wins. [`Stop::fail`] keeps it and closes every queue and pool that was registered, so
//! that each thread finds its wait ended and returns; nothing waits for ever (promise 13).

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use sortmill_io::sync::atomic::{AtomicBool, Ordering};
use sortmill_io::sync::{Arc, Condvar, Mutex, NoThread, Scope, lock, scope, wait};

use crate::error::{Error, ErrorKind, Result};

/// A bounded queue of any number of senders and receivers. Cloning shares it.
pub struct Queue<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    room_or_item: Condvar,
}

struct State<T> {
    items: VecDeque<T>,
    room: usize,
    closed: bool,
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T> Queue<T> {
    /// A queue for at most `room` items.
    #[must_use]
    pub fn new(room: usize) -> Self {
        Self::with_items(room, VecDeque::with_capacity(room))
    }

    /// The same where it will hardly ever be full: memory for its items is taken as they come.
    #[must_use]
    pub fn growing(room: usize) -> Self {
        Self::with_items(room, VecDeque::new())
    }

    fn with_items(room: usize, items: VecDeque<T>) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    items,
                    room: room.max(1),
                    closed: false,
                }),
                room_or_item: Condvar::new(),
            }),
        }
    }

    /// Waits for room and appends `item`. Gives it back if the queue is closed.
    ///
    /// # Errors
    /// The item, when nobody will take it any more.
    pub fn push(&self, item: T) -> std::result::Result<(), T> {
        let mut state = lock(&self.shared.state);
        while !state.closed && state.items.len() == state.room {
            state = wait(&self.shared.room_or_item, state);
        }
        if state.closed {
            return Err(item);
        }
        state.items.push_back(item);
        drop(state);
        self.shared.room_or_item.notify_all();
        Ok(())
    }

    /// Waits for an item. `None` once the queue is closed and empty.
    #[must_use]
    pub fn pop(&self) -> Option<T> {
        let mut state = lock(&self.shared.state);
        loop {
            if let Some(item) = state.items.pop_front() {
                drop(state);
                self.shared.room_or_item.notify_all();
                return Some(item);
            }
            if state.closed {
                return None;
            }
            state = wait(&self.shared.room_or_item, state);
        }
    }

    /// An item if there is one now.
    #[must_use]
    pub fn try_pop(&self) -> Option<T> {
        let item = lock(&self.shared.state).items.pop_front()?;
        self.shared.room_or_item.notify_all();
        Some(item)
    }

    /// How many items there are now.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.shared.state).items.len()
    }

    /// Whether there is none now.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// No more items will come; those inside can still be taken.
    pub fn close(&self) {
        lock(&self.shared.state).closed = true;
        self.shared.room_or_item.notify_all();
    }

    /// Items come again, unless the job is ending.
    pub fn reopen(&self, stop: &Stop) {
        lock(&self.shared.state).closed = false;
        // Whoever ends the job from now on closes it again.
        if stop.is_stopped() {
            self.abort();
        }
    }

    /// No more items will come or go: what is inside is dropped.
    pub fn abort(&self) {
        let mut state = lock(&self.shared.state);
        state.closed = true;
        let dropped = std::mem::take(&mut state.items);
        drop(state);
        self.shared.room_or_item.notify_all();
        drop(dropped);
    }
}

/// The switch that ends a job: holds the first error. Cloning shares it.
#[derive(Clone, Default)]
pub struct Stop {
    shared: Arc<StopShared>,
}

#[derive(Default)]
struct StopShared {
    stopped: AtomicBool,
    told: Option<Told>,
    state: Mutex<StopState>,
}

/// Whether somebody wants the job to end.
type Told = Box<dyn Fn() -> bool + Send + Sync>;

#[derive(Default)]
struct StopState {
    error: Option<Error>,
    closers: Vec<Box<dyn Fn() + Send>>,
}

impl Stop {
    /// A switch that is not yet thrown.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One that is thrown as well when it is asked and `told` says so: for who cannot call [`Stop::interrupt`], as what
    /// handles a signal cannot. Until somebody asks, nothing that waits hears of it.
    #[must_use]
    pub fn told_by(told: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        let shared = StopShared {
            told: Some(Box::new(told)),
            ..StopShared::default()
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Whether the job is ending.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.is_thrown() || self.is_told()
    }

    fn is_thrown(&self) -> bool {
        self.shared.stopped.load(Ordering::SeqCst)
    }

    /// Asks who may want the job to end, and throws the switch if so.
    fn is_told(&self) -> bool {
        let is_told = self.shared.told.as_ref().is_some_and(|told| told());
        if is_told {
            self.interrupt();
        }
        is_told
    }

    /// Ends the job because of `error`, unless it is ending already.
    pub fn fail(&self, error: Error) {
        let mut state = lock(&self.shared.state);
        state.error.get_or_insert(error);
        self.shared.stopped.store(true, Ordering::SeqCst);
        for close in &state.closers {
            close();
        }
    }

    /// Ends the job because somebody asked for it, as a signal does.
    pub fn interrupt(&self) {
        self.fail(Error::interrupted());
    }

    /// Calls `close` when the job ends early, at once if it has.
    pub fn on_stop(&self, close: impl Fn() + Send + 'static) {
        let mut state = lock(&self.shared.state);
        // Throwing the switch takes the lock.
        if self.is_thrown() {
            close();
        }
        state.closers.push(Box::new(close));
    }

    /// Forgets what there is to close: the job that had it is over and another one follows. What only waited to be
    /// closed, the memory of that job above all, is free then.
    pub fn forget(&self) {
        let over = std::mem::take(&mut lock(&self.shared.state).closers);
        drop(over);
    }

    /// The first error, if the job is ending because of one.
    ///
    /// # Errors
    /// That error.
    pub fn check(&self) -> Result<()> {
        if !self.is_stopped() {
            return Ok(());
        }
        match &lock(&self.shared.state).error {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// The error that ended a wait: for callers that found a queue or pool closed.
    #[must_use]
    pub fn error(&self) -> Error {
        self.check().err().unwrap_or_else(Error::interrupted)
    }
}

/// A value that one thread makes and others wait for. Cloning shares it.
pub struct Promise<T> {
    shared: Arc<PromiseShared<T>>,
}

struct PromiseShared<T> {
    state: Mutex<(Option<T>, bool)>,
    kept: Condvar,
}

impl<T> Clone for Promise<T> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T: Clone> Default for Promise<T> {
    fn default() -> Self {
        Self {
            shared: Arc::new(PromiseShared {
                state: Mutex::new((None, false)),
                kept: Condvar::new(),
            }),
        }
    }
}

impl<T: Clone> Promise<T> {
    /// Keeps the promise, or keeps it anew.
    pub fn keep(&self, value: T) {
        lock(&self.shared.state).0 = Some(value);
        self.shared.kept.notify_all();
    }

    /// The value if it is there.
    #[must_use]
    pub fn now(&self) -> Option<T> {
        lock(&self.shared.state).0.clone()
    }

    /// Waits for the value. `None` once it will not come.
    #[must_use]
    pub fn get(&self) -> Option<T> {
        let mut state = lock(&self.shared.state);
        loop {
            if state.1 {
                return None;
            }
            if let Some(value) = &state.0 {
                return Some(value.clone());
            }
            state = wait(&self.shared.kept, state);
        }
    }

    /// Ends every wait, now and later.
    pub fn abort(&self) {
        lock(&self.shared.state).1 = true;
        self.shared.kept.notify_all();
    }
}

/// Does `work`, which starts threads.
///
/// # Errors
/// Those of `work`, and [`ErrorKind::Io`] where the system has no thread left to give.
pub fn with_threads<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done,
        Err(panic) => match panic.downcast::<NoThread>() {
            Ok(short) => {
                let error = Error::new(ErrorKind::Io, "starting a thread", short.0.to_string());
                Err(error.hint("Raise the limit of processes (ulimit -u, or that of the container), or give fewer --threads."))
            }
            Err(panic) => resume_unwind(panic),
        },
    }
}

/// A scope of threads of the job of `stop`. Where one cannot be started, or the scope's own thread unwinds, those that were
/// started wait for nothing more.
pub fn job_scope<'env, T>(
    stop: &'env Stop,
    work: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
) -> T {
    scope(|threads| {
        let guard = StopOnPanic::new(stop);
        let done = work(threads);
        guard.disarm();
        done
    })
}

/// Ends the job if its thread unwinds, so that no other waits for what will never come. The panic itself
/// is told by the join.
pub struct StopOnPanic<'a> {
    stop: Option<&'a Stop>,
}

impl<'a> StopOnPanic<'a> {
    /// Watches over the rest of the caller's scope.
    #[must_use]
    pub fn new(stop: &'a Stop) -> Self {
        Self { stop: Some(stop) }
    }

    /// The thread ended as it should.
    pub fn disarm(mut self) {
        self.stop = None;
    }
}

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if let Some(stop) = self.stop {
            stop.fail(Error::new(
                ErrorKind::Lost,
                "running the job",
                "a thread panicked",
            ));
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    /// Two jobs with one switch held memory for each other, because it kept the first one's pools to close them.
    #[test]
    fn a_switch_lets_go_of_what_is_over() {
        let stop = Stop::new();
        let held = Arc::new(());
        let kept = Arc::clone(&held);
        stop.on_stop(move || drop(Arc::clone(&kept)));
        assert_eq!(Arc::strong_count(&held), 2);
        stop.forget();
        assert_eq!(Arc::strong_count(&held), 1);
        // What comes later is closed as ever.
        let closed = Queue::<u8>::new(1);
        let queue = closed.clone();
        stop.on_stop(move || queue.abort());
        stop.interrupt();
        assert!(closed.push(1).is_err());
    }

    #[test]
    fn a_switch_that_is_told_is_thrown_when_it_is_asked() {
        let told = Arc::new(AtomicBool::new(false));
        let stop = Stop::told_by({
            let told = Arc::clone(&told);
            move || told.load(Ordering::SeqCst)
        });
        let closed = Queue::<u8>::new(1);
        let queue = closed.clone();
        stop.on_stop(move || queue.abort());
        assert!(!stop.is_stopped());
        stop.check().unwrap();
        told.store(true, Ordering::SeqCst);
        // Whoever only has something to close throws nothing, and is called when it is thrown.
        stop.on_stop(|| ());
        closed.push(1).unwrap();
        assert_eq!(stop.check().unwrap_err().kind, ErrorKind::Interrupted);
        assert!(closed.pop().is_none());
        // Once thrown, it stays so.
        told.store(false, Ordering::SeqCst);
        assert!(stop.is_stopped());
    }
}
