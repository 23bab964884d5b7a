//! Records between Python and a table, one after the other: an iterator of Python's as an input, and rows of an output as
//! dictionaries.
//!
//! The interpreter is taken for some hundred records at a time, by the thread that reads the job's input, and only when it
//! has room for them.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PyTuple};
use sortmill::error::{Error, ErrorKind, Result};
use sortmill::io::Host;
use sortmill::io::sync::atomic::{AtomicBool, Ordering};
use sortmill::io::sync::{Arc, Mutex, lock};
use sortmill::pipeline::{self, Column, MakeRows, Owned, RowFile, Rows};

use crate::errors::raised;
use crate::function::{record_dict, typed};
use crate::host;
use crate::table::{Table, columns};
use crate::work::Raised;

/// So many records are asked for at once, or as many as have so many bytes.
const AHEAD_COUNT: usize = 256;
const AHEAD_BYTES: usize = 1 << 20;
/// Or as many as come in so much time, so that a job that is to end need not wait for a slow one.
const AHEAD_TIME: Duration = Duration::from_millis(20);

/// The records that an iterable has.
#[pyfunction]
pub fn from_iter(
    py: Python<'_>,
    iterable: Py<PyAny>,
    columns_asked: Vec<(String, String)>,
) -> PyResult<Table> {
    let columns = columns(columns_asked)?;
    let source = Arc::new(Source {
        iterable,
        columns: columns.clone(),
        is_used: AtomicBool::new(false),
    });
    let table = Table::of_python(move |running| {
        let (source, raised) = (Arc::clone(&source), Arc::clone(&running.raised));
        let make: MakeRows = Arc::new(move || source.begin(&raised));
        pipeline::from_iter(columns.clone(), make)
    });
    table.map_err(|error| raised(py, &error))
}

/// Where records come from.
struct Source {
    iterable: Py<PyAny>,
    columns: Vec<Column>,
    /// An iterator has been asked once.
    is_used: AtomicBool,
}

impl Source {
    fn begin(self: &Arc<Self>, raised: &Arc<Raised>) -> Result<Rows> {
        Python::attach(|py| {
            let iterable = self.iterable.bind(py);
            let iterator = iterable
                .try_iter()
                .map_err(|error| failed(raised, py, error))?;
            if iterator.is(iterable) && self.is_used.swap(true, Ordering::SeqCst) {
                let cause = "an iterator can be read once, and it has been; give a list, or something whose \
                             __iter__ begins again";
                return Err(Error::new(ErrorKind::Usage, DOING, cause));
            }
            Ok(Box::new(Iteration {
                source: Arc::clone(self),
                raised: Arc::clone(raised),
                iterator: iterator.unbind(),
                count: 0,
                ready: VecDeque::new(),
                end: None,
            }) as Rows)
        })
    }
}

/// Keeps the exception, and tells of it.
fn failed(raised: &Raised, py: Python<'_>, error: PyErr) -> Error {
    let cause = error.to_string();
    raised.push(error.clone_ref(py));
    Error::new(ErrorKind::Function, DOING, cause)
}

const DOING: &str = "reading an iterator";

/// An iterator in the midst of it.
struct Iteration {
    source: Arc<Source>,
    raised: Arc<Raised>,
    iterator: Py<PyIterator>,
    /// How many records it has answered.
    count: u64,
    ready: VecDeque<Vec<Owned>>,
    /// Why it has ended, if it has.
    end: Option<Result<()>>,
}

impl Iterator for Iteration {
    type Item = Result<Vec<Owned>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty() && self.end.is_none() {
            Python::attach(|py| self.pull(py));
        }
        match (self.ready.pop_front(), &mut self.end) {
            (Some(row), _) => Some(Ok(row)),
            (None, end) => end.replace(Ok(())).and_then(Result::err).map(Err),
        }
    }
}

impl Iteration {
    /// Asks for some records.
    fn pull(&mut self, py: Python<'_>) {
        let mut bytes = 0;
        let mut iterator = self.iterator.bind(py).clone();
        let began = Instant::now();
        while self.ready.len() < AHEAD_COUNT && bytes < AHEAD_BYTES {
            if !self.ready.is_empty() && began.elapsed() > AHEAD_TIME {
                return;
            }
            let Some(item) = iterator.next() else {
                self.end = Some(Ok(()));
                return;
            };
            let read = item.and_then(|item| row(&self.source.columns, &item));
            match read {
                Ok(row) => {
                    let values = row.iter().map(|owned| 16 + owned.value().bytes().len());
                    bytes += values.sum::<usize>();
                    self.ready.push_back(row);
                    self.count += 1;
                }
                Err(error) => {
                    let mut error = failed(&self.raised, py, error);
                    error.cause = format!("record {}: {}", self.count + 1, error.cause);
                    self.end = Some(Err(error));
                    return;
                }
            }
        }
    }
}

/// The values of a record, which is a dictionary, a tuple or a list, or of one column the value alone.
fn row(columns: &[Column], item: &Bound<'_, PyAny>) -> PyResult<Vec<Owned>> {
    if let Ok(dict) = item.cast::<PyDict>() {
        let one = |column: &Column| match dict.get_item(&column.name)? {
            Some(found) => typed(column, &found),
            None => Err(PyKeyError::new_err(format!("it has no {:?}", column.name))),
        };
        return columns.iter().map(one).collect();
    }
    if item.is_instance_of::<PyTuple>() || item.is_instance_of::<PyList>() {
        let count = item.len()?;
        if count != columns.len() {
            let wanted = columns.len();
            let cause = format!("it has {count} values where {wanted} are expected");
            return Err(PyTypeError::new_err(cause));
        }
        let one = |(number, column): (usize, &Column)| typed(column, &item.get_item(number)?);
        return columns.iter().enumerate().map(one).collect();
    }
    match columns {
        [only] => Ok(vec![typed(only, item)?]),
        _ => Err(PyTypeError::new_err(
            "it is neither a dictionary nor a tuple",
        )),
    }
}

/// The rows that a job wrote, some at a time.
#[pyclass(frozen, module = "sortmill._sortmill")]
pub struct RowReader {
    host: Host,
    file: Mutex<RowFile>,
    columns: Vec<Column>,
}

impl RowReader {
    /// Those in the file `path`, which may go then.
    pub fn open(path: &Path, columns: &[Column]) -> Result<Self> {
        let host = host()?;
        Ok(Self {
            file: Mutex::new(RowFile::open(&host, path, columns)?),
            host,
            columns: columns.to_vec(),
        })
    }
}

#[pymethods]
impl RowReader {
    /// The next ones, at most so many; none at the end.
    fn read<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let mut records = Vec::new();
        let mut file = lock(&self.file);
        while records.len() < count {
            let more = file.next(&self.host, |values| {
                records.push(record_dict(py, &self.columns, values)?);
                Ok(())
            });
            if !more.map_err(|error| raised(py, &error))? {
                break;
            }
        }
        Ok(records)
    }
}
