//! A function of the user's that gets whole groups, each as an iterator of dictionaries.
//!
//! The engine hands records out one after the other; the function asks for one after the other. So it has a thread of its
//! own, and the two take turns: the engine gathers records until there are enough for a handover, or no more come; then it
//! waits while the function works through them, over the ends of groups too, until it wants more or has made enough.
//!
//! ```text
//! engine    gather ......... take what was made, gather ......... take
//!                   \       /                           \       /
//! function           work ..                             work ..
//! ```
//!
//! Never more than [`HANDOVER_BYTES`] and a record lie there each way, so a group may be larger than memory, and nothing is
//! handed over record by record.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sortmill::error::{Error, ErrorKind, Result};
use sortmill::io::sync::{Arc, Condvar, JoinHandle, Mutex, MutexGuard, lock, spawn_owned, wait};
use sortmill::pipeline::{Column, Event, MakeStreamFn, Sink};

use crate::errors::raised;
use crate::function::{Function, record};

/// Bytes of records that go over at once.
const HANDOVER_BYTES: usize = 64 << 10;
/// In front of each record.
const RECORD: u8 = 1;
/// Behind the last one of a group.
const GROUP_END: u8 = 0;

/// What a function is told that asks for more.
const ENDED: &str = "the job has ended";

/// Whose turn it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Engine,
    Function,
    /// The function's thread has ended.
    Done,
    /// The job has ended.
    Over,
}

/// What lies between the two.
struct Between {
    turn: Turn,
    /// Records on their way to the function, and whether none come behind them.
    records: Vec<u8>,
    is_last: bool,
    /// What it made, and whether it gave its turn away because it wants more records.
    made: Vec<u8>,
    wants_more: bool,
    /// What went wrong with it.
    error: Option<Error>,
}

/// What both share.
struct Link {
    between: Mutex<Between>,
    changed: Condvar,
}

impl Link {
    fn new() -> Self {
        Self {
            between: Mutex::new(Between {
                turn: Turn::Engine,
                records: Vec::new(),
                is_last: false,
                made: Vec::new(),
                wants_more: false,
                error: None,
            }),
            changed: Condvar::new(),
        }
    }

    /// Waits as long as it is the turn of `other`, and does `what` then.
    fn after<T>(&self, other: Turn, what: impl FnOnce(&mut Between) -> T) -> T {
        let mut between = lock(&self.between);
        while between.turn == other {
            between = wait(&self.changed, between);
        }
        what(&mut between)
    }

    fn change(&self, what: impl FnOnce(&mut Between)) {
        what(&mut lock(&self.between));
        self.changed.notify_all();
    }
}

impl Function {
    /// Makes any number of records of each group: of its key, the columns `by`, and an iterator of its records.
    pub fn groups(self, by: Vec<String>, made: Vec<Column>) -> MakeStreamFn {
        let function = Arc::new(self);
        Arc::new(move || {
            let mut engine: Option<Engine> = None;
            let (function, by, made) = (Arc::clone(&function), by.clone(), made.clone());
            Box::new(move |event, out| {
                if let (None, Event::End) = (&engine, event) {
                    return Ok(());
                }
                let start = || Engine::start(&function, &by, &made);
                engine.get_or_insert_with(start).take(event, out)
            })
        })
    }
}

/// The engine's end.
struct Engine {
    link: Arc<Link>,
    thread: Option<JoinHandle<()>>,
    records: Vec<u8>,
    columns: Vec<Column>,
    made: Vec<Column>,
}

impl Engine {
    fn start(function: &Arc<Function>, by: &[String], made: &[Column]) -> Self {
        let link = Arc::new(Link::new());
        let calls = Calls {
            link: Arc::clone(&link),
            function: Arc::clone(function),
            by: by.to_vec(),
            made: made.to_vec(),
        };
        Self {
            link,
            thread: Some(spawn_owned("function", move || calls.work())),
            records: Vec::new(),
            columns: function.columns.clone(),
            made: made.to_vec(),
        }
    }

    fn take(&mut self, event: Event<'_>, out: Sink<'_>) -> Result<()> {
        match event {
            Event::Record(record) => {
                self.records.push(RECORD);
                for (column, value) in self.columns.iter().zip(record) {
                    column.put(value, &mut self.records);
                }
            }
            Event::GroupEnd => self.records.push(GROUP_END),
            Event::End => return self.hand_over(true, out),
        }
        match self.records.len() >= HANDOVER_BYTES {
            true => self.hand_over(false, out),
            false => Ok(()),
        }
    }

    /// Has the function work through what was gathered, and hands on what it makes.
    fn hand_over(&mut self, is_last: bool, out: Sink<'_>) -> Result<()> {
        loop {
            self.link.change(|between| {
                between.records.append(&mut self.records);
                between.is_last = is_last;
                if between.turn == Turn::Engine {
                    between.turn = Turn::Function;
                }
            });
            let (made, has_enough, error) = self.link.after(Turn::Function, |between| {
                let made = std::mem::take(&mut between.made);
                let has_enough = between.turn == Turn::Done || between.wants_more;
                (made, has_enough, between.error.take())
            });
            let mut rest = &made[..];
            while !rest.is_empty() {
                let value = |column: &Column| column.take(&mut rest);
                let values: Option<Vec<_>> = self.made.iter().map(value).collect();
                out(&values.expect("it was written here"))?;
            }
            match (error, has_enough) {
                (Some(error), _) => return Err(error),
                (None, true) => return Ok(()),
                (None, false) => {}
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.link.change(|between| between.turn = Turn::Over);
        // Its end has been told in `Between`, whatever it was.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// The function's end.
struct Calls {
    link: Arc<Link>,
    function: Arc<Function>,
    by: Vec<String>,
    made: Vec<Column>,
}

/// What the function has in hand.
struct Hand {
    link: Arc<Link>,
    function: Arc<Function>,
    records: Vec<u8>,
    at: usize,
    is_last: bool,
    /// The number of the group, and whether it has records still.
    group: u64,
    is_open: bool,
    made: Vec<u8>,
    /// What is wrong with the records, not with the function.
    error: Option<Error>,
}

/// Tells, whatever happens, that the function's thread has ended.
struct TellsEnd<'c>(&'c Link, Option<Error>);

impl Drop for TellsEnd<'_> {
    fn drop(&mut self) {
        let error = self.1.take();
        self.0.change(|between| {
            between.error = error;
            between.turn = Turn::Done;
        });
    }
}

impl Calls {
    /// All groups of a partition, one after the other.
    fn work(&self) {
        let cause = "its thread ended before its work";
        let doing = "calling a Python function";
        let unfinished = Error::new(ErrorKind::Function, doing, cause);
        let mut end = TellsEnd(&self.link, Some(unfinished));
        // The first records come before the interpreter is needed.
        self.link.after(Turn::Engine, |_| ());
        end.1 = Python::attach(|py| self.all(py)).err();
    }

    fn all(&self, py: Python<'_>) -> Result<()> {
        let hand = Arc::new(Mutex::new(Hand {
            link: Arc::clone(&self.link),
            function: Arc::clone(&self.function),
            records: Vec::new(),
            at: 0,
            is_last: false,
            group: 0,
            is_open: false,
            made: Vec::new(),
            error: None,
        }));
        let failed = |error| self.function.failed(py, error);
        alone(&hand).map_err(failed)?.refill();
        loop {
            let begun = alone(&hand).map_err(failed)?.begin(py)?;
            let Some(first) = begun else {
                let made = std::mem::take(&mut alone(&hand).map_err(failed)?.made);
                self.link.change(|between| between.made = made);
                return Ok(());
            };
            let called = self.group(py, &hand, &first);
            let mut hand = alone(&hand).map_err(failed)?;
            if let Err(error) = called {
                return Err(hand.error.take().unwrap_or_else(|| failed(error)));
            }
            hand.pass_rest(py)?;
        }
    }

    /// Calls the function for one group, of which `first` is the first record, and keeps what it makes.
    fn group(
        &self,
        py: Python<'_>,
        hand: &Arc<Mutex<Hand>>,
        first: &Bound<'_, PyDict>,
    ) -> PyResult<()> {
        let values: Vec<Bound<'_, PyAny>> = self
            .by
            .iter()
            .map(|name| first.as_any().get_item(name))
            .collect::<PyResult<_>>()?;
        let key = match &values[..] {
            [only] => only.clone(),
            _ => PyTuple::new(py, values)?.into_any(),
        };
        let records = Records {
            hand: Arc::clone(hand),
            group: alone(hand)?.group,
        };
        let answer = self.function.function.bind(py).call1((key, records))?;
        if answer.is_none() {
            return Ok(());
        }
        for one in answer.try_iter()? {
            let values = record(&self.made, &one?)?;
            let mut hand = alone(hand)?;
            let made = &mut hand.made;
            for (column, value) in self.made.iter().zip(&values) {
                column.put(&value.value(), made);
            }
            if made.len() >= HANDOVER_BYTES {
                hand.exchange(py, false)?;
            }
        }
        Ok(())
    }
}

/// What the function has in hand, unless another thread of the user's has it: who waited for that would keep the interpreter
/// from it.
fn alone(hand: &Mutex<Hand>) -> PyResult<MutexGuard<'_, Hand>> {
    let refused = || PyRuntimeError::new_err("the records of a group are for one thread");
    hand.try_lock().map_err(|_| refused())
}

impl Hand {
    /// Hands over what was made and gives the turn away; has new records when it comes back, if it `wants_more`.
    fn exchange(&mut self, py: Python<'_>, wants_more: bool) -> PyResult<()> {
        let (link, made) = (Arc::clone(&self.link), std::mem::take(&mut self.made));
        let is_over = py.detach(|| {
            link.change(|between| {
                between.made = made;
                between.wants_more = wants_more;
                if between.turn == Turn::Function {
                    between.turn = Turn::Engine;
                }
            });
            link.after(Turn::Engine, |between| between.turn == Turn::Over)
        });
        if is_over {
            return Err(PyRuntimeError::new_err(ENDED));
        }
        if wants_more {
            self.refill();
        }
        Ok(())
    }

    /// Takes the records that lie there.
    fn refill(&mut self) {
        self.records.clear();
        self.at = 0;
        let (records, is_last) = (&mut self.records, &mut self.is_last);
        self.link.change(|between| {
            std::mem::swap(records, &mut between.records);
            *is_last = between.is_last;
        });
    }

    /// The mark that comes next. `None` behind the last group.
    fn mark(&mut self, py: Python<'_>) -> PyResult<Option<u8>> {
        // A signal has come, or another function has failed: however much lies here, nobody wants it any more.
        if lock(&self.function.raised).is_some() {
            return Err(PyRuntimeError::new_err(ENDED));
        }
        while self.at == self.records.len() {
            if self.is_last {
                return Ok(None);
            }
            self.exchange(py, true)?;
        }
        Ok(Some(self.records[self.at]))
    }

    /// Begins the next group, if there is one: its first record, which is still to come.
    fn begin<'py>(&mut self, py: Python<'py>) -> Result<Option<Bound<'py, PyDict>>> {
        let mark = self
            .mark(py)
            .map_err(|error| self.function.failed(py, error))?;
        if mark.is_none() {
            return Ok(None);
        }
        self.group += 1;
        self.is_open = true;
        let at = self.at;
        let first = self.record(py)?;
        self.at = at;
        Ok(Some(first))
    }

    /// The record behind the mark that is next.
    fn record<'py>(&mut self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let mut rest = &self.records[self.at + 1..];
        let read = |column: &Column| column.take(&mut rest);
        let values: Option<Vec<_>> = self.function.columns.iter().map(read).collect();
        let dict = self
            .function
            .record(py, &values.expect("it was written here"))?;
        self.at = self.records.len() - rest.len();
        Ok(dict)
    }

    /// The next record of the group that is open, if there is one.
    fn next<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        if self.mark(py)? == Some(RECORD) {
            return match self.record(py) {
                Ok(record) => Ok(Some(record)),
                Err(error) => {
                    let exception = raised(py, &error);
                    self.error = Some(error);
                    Err(exception)
                }
            };
        }
        self.at += 1;
        self.is_open = false;
        Ok(None)
    }

    /// Passes by the records of the group that the function did not ask for.
    fn pass_rest(&mut self, py: Python<'_>) -> Result<()> {
        while self.is_open {
            let mark = self
                .mark(py)
                .map_err(|error| self.function.failed(py, error))?;
            if mark == Some(RECORD) {
                let mut rest = &self.records[self.at + 1..];
                for column in &self.function.columns {
                    column.take(&mut rest).expect("it was written here");
                }
                self.at = self.records.len() - rest.len();
            } else {
                self.at += 1;
                self.is_open = false;
            }
        }
        Ok(())
    }
}

/// The records of one group, one after the other, as dictionaries.
#[pyclass(frozen, module = "sortmill._sortmill")]
struct Records {
    hand: Arc<Mutex<Hand>>,
    group: u64,
}

#[pymethods]
impl Records {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let mut hand = alone(&self.hand)?;
        match hand.group == self.group && hand.is_open {
            true => hand.next(py),
            false => Ok(None),
        }
    }
}
