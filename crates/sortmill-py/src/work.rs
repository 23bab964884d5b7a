//! The engine at work while the interpreter is free, and its end: done, an error, a signal.

use std::time::Duration;

use pyo3::prelude::*;
use sortmill::error::{Error, ErrorKind};
use sortmill::io::sync::{Arc, Condvar, Mutex, lock, scope, spawn};
use sortmill::queue::Stop;

use crate::errors::raised;

/// So often signals are looked for.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// The first exception of a function of the user's, to be named as the cause of what is raised.
pub type Raised = Arc<Mutex<Option<PyErr>>>;

/// Does `what` in a thread of its own. A signal that Python makes an exception of (Ctrl-C) ends it cleanly and is raised
/// once it has ended.
pub fn work<T: Send>(
    py: Python<'_>,
    function_raised: &Raised,
    what: impl FnOnce(&Stop) -> Result<T, Error> + Send,
) -> PyResult<T> {
    work_watched(py, function_raised, |_| Ok(()), what)
}

/// The same, and calls `look` many times a second meanwhile; an exception there ends it as a signal does.
pub fn work_watched<T: Send>(
    py: Python<'_>,
    function_raised: &Raised,
    look: impl Fn(Python<'_>) -> PyResult<()> + Sync,
    what: impl FnOnce(&Stop) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let stop = Stop::new();
    let (has_ended, ended) = (Mutex::new(false), Condvar::new());
    *lock(function_raised) = None;
    let (done, signal) = py.detach(|| {
        scope(|threads| {
            let worker = spawn(threads, "job", || {
                let done = what(&stop);
                *lock(&has_ended) = true;
                ended.notify_all();
                done
            });
            let mut signal = None;
            while !worker.is_finished() && signal.is_none() {
                let waits = lock(&has_ended);
                if !*waits {
                    drop(ended.wait_timeout(waits, SIGNALS_EVERY));
                    signal = Python::attach(|py| {
                        let looked = py.check_signals().and_then(|()| look(py));
                        let signal = looked.err()?;
                        // So that functions at work see that it ends.
                        lock(function_raised).get_or_insert_with(|| signal.clone_ref(py));
                        Some(signal)
                    });
                } else {
                    break;
                }
            }
            if signal.is_some() {
                stop.interrupt();
            }
            let done = worker.join();
            (
                done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                signal,
            )
        })
    });
    if let (Some(signal), Err(_)) = (signal, &done) {
        return Err(signal);
    }
    done.map_err(|error| {
        let Some(cause) = lock(function_raised).take() else {
            return raised(py, &error);
        };
        // A function that was told to stop because another one failed may be heard first.
        let exception = match error.kind {
            ErrorKind::Interrupted => {
                let doing = "calling a Python function";
                raised(
                    py,
                    &Error::new(ErrorKind::Function, doing, cause.to_string()),
                )
            }
            _ => raised(py, &error),
        };
        exception.set_cause(py, Some(cause));
        exception
    })
}
