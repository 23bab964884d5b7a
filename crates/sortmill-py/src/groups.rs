//! A function of the user's that gets whole groups, each as an iterator of dictionaries.
//!
//! Records come in batches; the function asks for one after the other. So it has a thread of its own, and the two take
//! turns: whoever has records hands them over and waits while the function works through them, over the ends of groups too,
//! until it wants more or has made enough.
//!
//! ```text
//! gathers ......... takes what was made, gathers ......... takes
//!        \         /                             \        /
//! function work ..                                work ..
//! ```
//!
//! So a group may be larger than memory, and nothing is handed over record by record. Who gathers is the engine
//! (`grouped.rs`), in this process or, for a worker process, in another one; the code here is the same in both.

use std::sync::Arc;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sortmill::error::{Error, ErrorKind, Result};
use sortmill::io::sync::{Condvar, JoinHandle, Mutex, MutexGuard, lock, spawn_owned, wait};
use sortmill::pipeline::Column;

use crate::batched::{Definition, Failure};
use crate::errors::raised;
use crate::function::{answered, record, record_dict};
use crate::wire::counted;
use crate::work::Raised;

/// The function gives its turn away when it has made so many bytes.
const MADE_BYTES: usize = 64 << 10;
/// In front of each record.
pub const RECORD: u8 = 1;
/// Behind the last one of a group.
pub const GROUP_END: u8 = 0;

/// What a function is told that asks for more.
const ENDED: &str = "the job has ended";

/// What comes of calls of a function.
type Called<T> = std::result::Result<T, Failure>;

/// Whose turn it is.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Turn {
    #[default]
    Gather,
    Function,
    /// The function's thread has ended.
    Done,
    /// The job has ended.
    Over,
}

/// What was made in a turn, or in several.
#[derive(Default)]
pub struct Turned {
    /// Records, their values one behind the other ([`Column::put`]), and how many.
    pub made: Vec<u8>,
    pub count: usize,
    /// How many records the group that is open has made so far, in turns before too.
    pub of_open: usize,
    /// What groups that have ended counted, a line of JSON each.
    pub said: Vec<u8>,
    /// The function is through with the records it has been handed.
    pub is_through: bool,
    /// What went wrong with it.
    pub failure: Option<Failure>,
}

/// What lies between the two.
#[derive(Default)]
struct Between {
    turn: Turn,
    /// Records on their way to the function, and whether none come behind them.
    records: Vec<u8>,
    is_last: bool,
    /// What it made.
    turned: Turned,
}

/// What both share.
#[derive(Default)]
struct Link {
    between: Mutex<Between>,
    changed: Condvar,
}

impl Link {
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

/// A function at work on groups, one after the other.
pub struct Stream {
    link: Arc<Link>,
    thread: Option<JoinHandle<()>>,
}

impl Stream {
    /// Its thread waits for the first records. Once something was `raised` what it makes is not wanted any more.
    pub fn start(definition: &Arc<Definition>, raised: &Arc<Raised>) -> Self {
        let link = Arc::new(Link::default());
        let calls = Calls {
            link: Arc::clone(&link),
            definition: Arc::clone(definition),
            raised: Arc::clone(raised),
        };
        Self {
            link,
            thread: Some(spawn_owned("function", move || calls.work())),
        }
    }

    /// Has the function work through `records`, each behind its mark, behind which none come if they are the last; until it
    /// has made so many bytes at least, is through or has failed. What it did not come to is there the next time. Nobody who
    /// calls this keeps the interpreter.
    pub fn turn(&mut self, records: &mut Vec<u8>, is_last: bool, bytes_max: usize) -> Turned {
        let mut all = Turned::default();
        loop {
            self.link.change(|between| {
                between.records.append(records);
                between.is_last = is_last;
                if between.turn == Turn::Gather {
                    between.turn = Turn::Function;
                }
            });
            let turned = self.link.after(Turn::Function, |between| {
                let is_done = between.turn == Turn::Done;
                between.turned.is_through |= is_done;
                std::mem::take(&mut between.turned)
            });
            all.made.extend_from_slice(&turned.made);
            all.count += turned.count;
            all.said.extend_from_slice(&turned.said);
            (all.of_open, all.is_through) = (turned.of_open, turned.is_through);
            all.failure = turned.failure;
            if all.is_through || all.failure.is_some() || all.made.len() >= bytes_max {
                return all;
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.link.change(|between| between.turn = Turn::Over);
        // Its end has been told in `Between`, whatever it was.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// The function's end.
struct Calls {
    link: Arc<Link>,
    definition: Arc<Definition>,
    raised: Arc<Raised>,
}

/// What the function has in hand.
struct Hand {
    link: Arc<Link>,
    definition: Arc<Definition>,
    raised: Arc<Raised>,
    records: Vec<u8>,
    at: usize,
    is_last: bool,
    /// The number of the group, and whether it has records still.
    group: u64,
    is_open: bool,
    turned: Turned,
    /// What is wrong with the records, not with the function.
    error: Option<(Error, PyErr)>,
}

/// Tells, whatever happens, that the function's thread has ended.
struct TellsEnd<'c>(&'c Link, Option<Failure>);

impl Drop for TellsEnd<'_> {
    fn drop(&mut self) {
        let failure = self.1.take();
        self.0.change(|between| {
            between.turned.failure = failure;
            between.turn = Turn::Done;
        });
    }
}

impl Calls {
    /// All groups, one after the other.
    fn work(&self) {
        let cause = "its thread ended before its work";
        let doing = "calling a Python function";
        let unfinished = Error::new(ErrorKind::Function, doing, cause);
        let mut end = TellsEnd(&self.link, Some(Failure::plain(0, unfinished)));
        // The first records come before the interpreter is needed.
        self.link.after(Turn::Gather, |_| ());
        end.1 = Python::attach(|py| self.raised.calling(py, || self.all(py))).err();
    }

    fn all(&self, py: Python<'_>) -> Called<()> {
        let hand = Arc::new(Mutex::new(Hand {
            link: Arc::clone(&self.link),
            definition: Arc::clone(&self.definition),
            raised: Arc::clone(&self.raised),
            records: Vec::new(),
            at: 0,
            is_last: false,
            group: 0,
            is_open: false,
            turned: Turned::default(),
            error: None,
        }));
        let failed = |error| Failure::raised(py, 0, error);
        alone(&hand).map_err(failed)?.refill();
        let (function, _) = self.definition.begin(py).map_err(failed)?;
        let function = function.bind(py);
        loop {
            let begun = alone(&hand).map_err(failed)?.begin(py)?;
            let Some(first) = begun else {
                let turned = std::mem::take(&mut alone(&hand).map_err(failed)?.turned);
                self.link.change(|between| between.turned = turned);
                return Ok(());
            };
            let key = self.key(py, &first).map_err(failed)?;
            let called = self.group(function, &hand, key.clone());
            let mut hand = alone(&hand).map_err(failed)?;
            if let Err(error) = called {
                // What the function caught and raised another exception for is not what ended it.
                let is_same = |told: &PyErr| told.value(py).is(error.value(py));
                return Err(match hand.error.take() {
                    Some((own, told)) if is_same(&told) => Failure::plain(0, own),
                    _ => failed(error).of_group(&key),
                });
            }
            hand.error = None;
            hand.pass_rest(py).map_err(failed)?;
            hand.turned.of_open = 0;
            let said = counted(py).map_err(failed)?;
            if !said.is_empty() {
                hand.turned.said.extend_from_slice(&said);
                hand.turned.said.push(b'\n');
            }
        }
    }

    /// The key of a group of which `first` is the first record.
    fn key<'py>(&self, py: Python<'py>, first: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
        let by = self.definition.by.iter();
        let values: PyResult<Vec<_>> = by.map(|name| first.as_any().get_item(name)).collect();
        let values = values?;
        Ok(match &values[..] {
            [only] => only.clone(),
            _ => PyTuple::new(py, values)?.into_any(),
        })
    }

    /// Calls the function for one group and keeps what it makes.
    fn group<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        hand: &Arc<Mutex<Hand>>,
        key: Bound<'py, PyAny>,
    ) -> PyResult<()> {
        let (definition, py) = (&*self.definition, function.py());
        let records = Records {
            hand: Arc::clone(hand),
            group: alone(hand)?.group,
        };
        let answer = function.call1((key, records))?;
        if answer.is_none() {
            return Ok(());
        }
        for one in answered(&definition.made, &answer)? {
            let values = record(&definition.made, &one?)?;
            let mut hand = alone(hand)?;
            let turned = &mut hand.turned;
            let made = &mut turned.made;
            for (column, value) in definition.made.iter().zip(&values) {
                column.put(&value.value(), made);
            }
            turned.count += 1;
            turned.of_open += 1;
            if turned.made.len() >= MADE_BYTES {
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
        let of_open = self.turned.of_open;
        let (link, mut turned) = (Arc::clone(&self.link), std::mem::take(&mut self.turned));
        self.turned.of_open = of_open;
        turned.is_through = wants_more;
        let is_over = py.detach(|| {
            link.change(|between| {
                between.turned = turned;
                if between.turn == Turn::Function {
                    between.turn = Turn::Gather;
                }
            });
            link.after(Turn::Gather, |between| between.turn == Turn::Over)
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
        if self.raised.is_any() {
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
    fn begin<'py>(&mut self, py: Python<'py>) -> Called<Option<Bound<'py, PyDict>>> {
        let mark = self.mark(py);
        let mark = mark.map_err(|error| Failure::raised(py, 0, error))?;
        if mark.is_none() {
            return Ok(None);
        }
        self.group += 1;
        self.is_open = true;
        let at = self.at;
        let first = self.record(py);
        let first = first.map_err(|error| Failure::plain(0, error))?;
        self.at = at;
        Ok(Some(first))
    }

    /// The record behind the mark that is next.
    fn record<'py>(&mut self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let mut rest = &self.records[self.at + 1..];
        let read = |column: &Column| column.take(&mut rest);
        let columns = &self.definition.columns;
        let values: Option<Vec<_>> = columns.iter().map(read).collect();
        let dict = record_dict(py, columns, &values.expect("they were written so"))?;
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
                    self.error = Some((error, exception.clone_ref(py)));
                    Err(exception)
                }
            };
        }
        self.at += 1;
        self.is_open = false;
        Ok(None)
    }

    /// Passes by the records of the group that the function did not ask for.
    fn pass_rest(&mut self, py: Python<'_>) -> PyResult<()> {
        while self.is_open {
            if self.mark(py)? == Some(RECORD) {
                let mut rest = &self.records[self.at + 1..];
                for column in &self.definition.columns {
                    column.take(&mut rest).expect("they were written so");
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
