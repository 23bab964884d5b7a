//! The engine at work while the interpreter is free, and its end: done, an error, a signal.

use std::time::Duration;

use pyo3::prelude::*;
use sortmill::error::{Error, ErrorKind};
use sortmill::io::sync::{Condvar, Mutex, lock, scope, spawn};
use sortmill::queue::{Stop, with_threads};

use crate::errors::raised;

/// So often signals are looked for.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// What functions of the user's raised.
#[derive(Default)]
pub struct Raised {
    /// The first exceptions, one of which is named as the cause of what is raised.
    exceptions: Mutex<Vec<PyErr>>,
    /// Python's numbers of the threads that are in a function now.
    calling: Mutex<Vec<u64>>,
}

/// So many exceptions are kept: whatever the engine reports was raised by one of its threads, and each raises one.
const EXCEPTIONS_MAX: usize = 1024;

impl Raised {
    /// Keeps an exception.
    pub fn push(&self, exception: PyErr) {
        let mut exceptions = lock(&self.exceptions);
        if exceptions.len() < EXCEPTIONS_MAX {
            exceptions.push(exception);
        }
    }

    /// Whether there was any: then nobody wants what functions make any more.
    pub fn is_any(&self) -> bool {
        !lock(&self.exceptions).is_empty()
    }

    /// The exception that `error` tells of, or the first one.
    fn cause_of(&self, py: Python<'_>, error: &Error) -> Option<PyErr> {
        let mut exceptions = std::mem::take(&mut *lock(&self.exceptions));
        // In front of it may stand which record raised it, and behind it in which group, and in which records.
        let is_told = |exception: &PyErr| {
            let said = words(py, exception);
            error
                .cause
                .split_once(&*said)
                .is_some_and(|(front, behind)| {
                    (front.is_empty() || front.ends_with(": "))
                        && (behind.is_empty() || behind.starts_with(", "))
                })
        };
        let told = exceptions.iter().position(is_told);
        (!exceptions.is_empty()).then(|| exceptions.swap_remove(told.unwrap_or(0)))
    }

    /// Does `call`, which a signal may end: it raises the exception that the signal made where it is.
    pub fn calling<T>(&self, py: Python<'_>, call: impl FnOnce() -> T) -> T {
        let number = || -> PyResult<u64> {
            let number = py.import("threading")?.call_method0("get_ident")?;
            number.extract()
        };
        let number = number().unwrap_or(0);
        lock(&self.calling).push(number);
        let _called = Called(self, number);
        call()
    }

    /// Raises `exception` in all functions at work: at their next step in Python, so one that waits in the system is waited for.
    fn interrupt(&self, py: Python<'_>, exception: &PyErr) {
        let calling = lock(&self.calling).clone();
        let interrupt = || -> PyResult<()> {
            let functions = py.import("sortmill._functions")?;
            functions.call_method1("interrupt", (calling, exception.get_type(py)))?;
            Ok(())
        };
        if let Err(error) = interrupt() {
            error.write_unraisable(py, None);
        }
    }
}

/// A call; when it is over, however it ends, nobody is interrupted for it.
struct Called<'r>(&'r Raised, u64);

impl Drop for Called<'_> {
    fn drop(&mut self) {
        let mut calling = lock(&self.0.calling);
        if let Some(at) = calling.iter().position(|&other| other == self.1) {
            calling.swap_remove(at);
        }
    }
}

/// An exception as an error tells of it.
pub fn words(py: Python<'_>, exception: &PyErr) -> String {
    match exception.value(py).str() {
        Ok(text) => {
            let name = exception.get_type(py).name();
            let name = name.map_or_else(|_| "an exception".to_owned(), |name| name.to_string());
            format!("{name}: {text}")
        }
        Err(_) => exception.to_string(),
    }
}

/// Does `what` in a thread of its own. A signal that Python makes an exception of (Ctrl-C) ends it cleanly and is raised
/// once it has ended.
pub fn work<T: Send>(
    py: Python<'_>,
    functions: &Raised,
    what: impl FnOnce(&Stop) -> Result<T, Error> + Send,
) -> PyResult<T> {
    work_watched(py, functions, |_| Ok(()), what)
}

/// The same, and calls `look` many times a second meanwhile; an exception there ends it as a signal does.
pub fn work_watched<T: Send>(
    py: Python<'_>,
    functions: &Raised,
    look: impl Fn(Python<'_>) -> PyResult<()> + Sync,
    what: impl FnOnce(&Stop) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let stop = Stop::new();
    let (has_ended, ended) = (Mutex::new(false), Condvar::new());
    let job = || {
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
                        functions.push(signal.clone_ref(py));
                        functions.interrupt(py, &signal);
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
    };
    let (done, signal) = py
        .detach(|| with_threads(|| Ok(job())))
        .unwrap_or_else(|error| (Err(error), None));
    // Whoever asked for the end gets it, even where the job came first.
    if let Some(signal) = signal {
        return Err(signal);
    }
    done.map_err(|error| {
        let Some(cause) = functions.cause_of(py, &error) else {
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
