//! Threads, locks and condition variables: the standard ones, or shuttle's under the feature `shuttle`,
//! so that whole jobs run under a seeded scheduler in tests. No other file names `std::thread` or a lock.

/// Why a thread could not be started: what a thread that needed it unwinds with, and whoever began the job tells in words.
pub struct NoThread(pub std::io::Error);

#[cfg(not(feature = "shuttle"))]
mod chosen {
    pub use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock, atomic};
    pub use std::thread::{JoinHandle, Scope, ScopedJoinHandle, scope};

    /// Starts a named thread inside `scope`.
    ///
    /// # Panics
    /// With a [`super::NoThread`] when the system has no thread left to give.
    pub fn spawn<'scope, T: Send + 'scope>(
        scope: &'scope Scope<'scope, '_>,
        name: &str,
        work: impl FnOnce() -> T + Send + 'scope,
    ) -> ScopedJoinHandle<'scope, T> {
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn_scoped(scope, work)
            .unwrap_or_else(|error| std::panic::resume_unwind(Box::new(super::NoThread(error))))
    }

    /// Starts a named thread that outlives the caller's scope; its owner joins it.
    ///
    /// # Panics
    /// With a [`super::NoThread`] when the system has no thread left to give.
    pub fn spawn_owned<T: Send + 'static>(
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(work)
            .unwrap_or_else(|error| std::panic::resume_unwind(Box::new(super::NoThread(error))))
    }
}

#[cfg(feature = "shuttle")]
mod chosen {
    pub use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock, atomic};
    pub use shuttle::thread::{JoinHandle, Scope, ScopedJoinHandle, scope};

    /// Starts a thread inside `scope`, under shuttle's scheduler.
    pub fn spawn<'scope, T: Send + 'scope>(
        scope: &'scope Scope<'scope, '_>,
        _name: &str,
        work: impl FnOnce() -> T + Send + 'scope,
    ) -> ScopedJoinHandle<'scope, T> {
        scope.spawn(work)
    }

    /// Starts a thread that its owner joins, under shuttle's scheduler.
    pub fn spawn_owned<T: Send + 'static>(
        _name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        shuttle::thread::spawn(work)
    }
}

pub use chosen::*;

/// Locks `mutex`. A thread that panicked while holding it ends the whole job at its join, so what it
/// left behind is never used for a result and the poison carries no news.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

/// Waits on `condvar`, with the same view of poison as [`lock`].
pub fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar
        .wait(guard)
        .unwrap_or_else(|poison| poison.into_inner())
}

/// Processors this process may run on.
#[must_use]
pub fn core_count() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
