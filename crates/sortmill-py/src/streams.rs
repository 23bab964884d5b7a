//! Arrow streams that go into a pipeline, and a pipeline's records as an Arrow stream.
//!
//! What goes in is asked for by the thread that reads the job's input, a batch at a time when it has room. What comes out lies in a file that has no
//! name any more; each stream of it reads it once from the beginning, a batch at a time, and it goes with the last of them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use sortmill::error::{Error, ErrorKind};
use sortmill::io::sync::{Mutex, lock};
use sortmill::pipeline::arrow::{batch_of, gathered, schema};
use sortmill::pipeline::{
    self, BATCH_BYTES, Column, Gathered, HandRows, MakeHandRows, Sink, Type, read_row, rows_heading,
};

use crate::arrow::{columns_of, stream, stream_capsule};
use crate::batched::kinds_of;
use crate::errors::{misused, raised};
use crate::table::Table;

/// Bytes in front of a record: the lengths of its key, of which there is none, and its values.
const LENGTHS_BYTES: usize = 8;

/// So many rows of a batch are copied at once, however large it is.
const PART_ROWS: usize = 4096;

/// About so many bytes of records are handed over at once.
const HAND_BYTES: usize = BATCH_BYTES / 4;

const DOING: &str = "reading an Arrow stream";

/// What has an Arrow stream, and what is in it.
struct Source {
    from: Py<PyAny>,
    columns: Vec<Column>,
    /// It is a reader, which has but one stream.
    is_reader: bool,
    /// The stream that told the columns.
    first: Mutex<Option<RecordBatchStreamReader>>,
}

/// The records of whatever has `__arrow_c_stream__`.
#[pyfunction]
pub fn from_arrow(from: Bound<'_, PyAny>) -> PyResult<Table> {
    let py = from.py();
    let first = stream(&from).map_err(|error| match error.is_instance_of::<PyTypeError>(py) {
        true => misused(py, error.value(py).to_string()),
        false => error,
    })?;
    let columns = columns_of(&first.schema()).map_err(|cause| misused(py, cause))?;
    let source = Arc::new(Source {
        is_reader: from.hasattr("__next__")?,
        from: from.unbind(),
        columns: columns.clone(),
        first: Mutex::new(Some(first)),
    });
    let make: MakeHandRows = Arc::new(move || Source::begin(&source));
    let table = pipeline::from_rows("an Arrow stream", columns, make);
    table.map(Table::new).map_err(|error| raised(py, &error))
}

fn failed(cause: impl ToString) -> Error {
    Error::new(ErrorKind::Input, DOING, cause.to_string())
}

impl Source {
    fn begin(self: &Arc<Self>) -> Result<HandRows, Error> {
        let first = lock(&self.first).take();
        let reader = match first {
            Some(reader) => reader,
            None if self.is_reader => {
                let cause = "a reader of Arrow can be read once, and it has been; give a table";
                return Err(Error::new(ErrorKind::Usage, DOING, cause));
            }
            None => Python::attach(|py| stream(self.from.bind(py))).map_err(failed)?,
        };
        let kinds = kinds_of(&self.columns);
        let mut handing = Handing {
            source: Arc::clone(self),
            given: RecordBatch::new_empty(reader.schema()),
            reader,
            batch: Gathered::new(&kinds),
            kinds,
            next: 0,
            before: 0,
        };
        Ok(Box::new(move |sink| handing.hand(sink)))
    }
}

/// A stream in the midst of it.
struct Handing {
    source: Arc<Source>,
    reader: RecordBatchStreamReader,
    kinds: Vec<Type>,
    /// What is left of the batch that it gave.
    given: RecordBatch,
    /// The part of it in hand, and which of its records is next.
    batch: Gathered,
    next: usize,
    /// How many records came in front of it.
    before: usize,
}

impl Handing {
    /// Hands over the next records. Answers whether there may be more.
    fn hand(&mut self, sink: Sink<'_>) -> Result<bool, Error> {
        while self.next == self.batch.len() {
            if self.given.num_rows() == 0 {
                let Some(given) = self.reader.next() else {
                    return Ok(false);
                };
                self.given = given.map_err(failed)?;
            }
            let count = self.given.num_rows().min(PART_ROWS);
            let part = self.given.slice(0, count);
            self.given = self.given.slice(count, self.given.num_rows() - count);
            self.before += self.batch.len();
            let begins = |cause| failed(format!("{cause}, which begins with row {}", self.before));
            self.batch = gathered(&self.source.columns, &part).map_err(begins)?;
            self.next = 0;
        }
        let count = self.batch.fitting(self.next, HAND_BYTES);
        for at in self.next..self.next + count {
            self.batch.with(&self.kinds, at, &mut *sink)?;
        }
        self.next += count;
        Ok(true)
    }
}

/// Where a file lies for whoever reads it, until it is taken away.
type Slot = Arc<Mutex<Option<Arc<File>>>>;

/// The records of a table, proven, in a file that goes with this.
#[pyclass(frozen, module = "sortmill._sortmill")]
pub struct Rows {
    /// `None` once a stream has been read that was the only one.
    file: Slot,
    columns: Vec<Column>,
}

impl Rows {
    /// Those in the file `path`, which may go then.
    pub fn open(path: &Path, columns: Vec<Column>) -> Result<Self, Error> {
        let file = File::open(path);
        let file = file.map_err(|error| Error::io("opening the result", path, &error))?;
        Ok(Self {
            file: Arc::new(Mutex::new(Some(Arc::new(file)))),
            columns,
        })
    }

    /// A stream of all records in `file`; what it `empties` when the first of them are asked for.
    fn stream<'py>(
        &self,
        py: Python<'py>,
        file: Arc<File>,
        empties: Option<Slot>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let reader = Reader {
            file,
            empties,
            kinds: kinds_of(&self.columns),
            schema: Arc::new(schema(&self.columns)),
            columns: self.columns.clone(),
            offset: rows_heading(&self.columns).len() as u64,
            bytes: Vec::new(),
            batch: Gathered::new(&kinds_of(&self.columns)),
        };
        stream_capsule(py, Box::new(reader))
    }
}

#[pymethods]
impl Rows {
    /// A capsule with a stream of all records.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let file = lock(&self.file).clone();
        let read = || PyValueError::new_err("these records have been read and are gone");
        self.stream(py, file.ok_or_else(read)?, None)
    }

    /// The same, of records that are gone when one has been read: until then who only looks at the schema can ask again. `None`
    /// if they are gone.
    fn stream_once<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyCapsule>>> {
        let Some(file) = lock(&self.file).clone() else {
            return Ok(None);
        };
        self.stream(py, file, Some(Arc::clone(&self.file)))
            .map(Some)
    }
}

/// One way through a file of records.
struct Reader {
    file: Arc<File>,
    /// Where it lies for those that read after this one, until this one begins.
    empties: Option<Slot>,
    columns: Vec<Column>,
    kinds: Vec<Type>,
    schema: SchemaRef,
    /// Where in the file `bytes` begin.
    offset: u64,
    bytes: Vec<u8>,
    batch: Gathered,
}

impl Reader {
    /// The next records; none at the end.
    fn fill(&mut self) -> Result<(), String> {
        if let Some(empties) = self.empties.take() {
            *lock(&empties) = None;
        }
        self.batch.clear();
        let mut wanted = BATCH_BYTES;
        loop {
            self.bytes.resize(wanted, 0);
            let mut have = 0;
            while have < wanted {
                let to = &mut self.bytes[have..];
                match self.file.read_at(to, self.offset + have as u64) {
                    Ok(0) => break,
                    Ok(moved) => have += moved,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error.to_string()),
                }
            }
            let taken = self.take(have)?;
            self.offset += taken as u64;
            match (self.batch.is_empty(), have < wanted) {
                (false, _) => return Ok(()),
                (true, true) if have == 0 => return Ok(()),
                (true, true) => return Err("the result ends within a record".to_owned()),
                // A record that is longer than what was read.
                (true, false) => wanted *= 2,
            }
        }
    }

    /// Adds the whole records of the first `have` bytes to the batch; answers how many bytes they have.
    fn take(&mut self, have: usize) -> Result<usize, String> {
        let mut at = 0;
        while let Some(lengths) = self.bytes[..have].get(at..at + LENGTHS_BYTES) {
            let length = u32::from_le_bytes(lengths[4..].try_into().expect("four bytes")) as usize;
            let from = at + LENGTHS_BYTES;
            let Some(row) = self.bytes[..have].get(from..from + length) else {
                break;
            };
            let batch = &mut self.batch;
            let read = read_row(&self.columns, row, |values| batch.push(0, values));
            read.map_err(|error| error.to_string())?;
            at = from + length;
        }
        Ok(at)
    }
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let made = self.fill().and_then(|()| {
            let batch = std::mem::replace(&mut self.batch, Gathered::new(&self.kinds));
            let batch = batch_of(&self.columns, &self.schema, batch);
            batch.map_err(|(_, error)| error.to_string())
        });
        match made {
            Ok(batch) if batch.num_rows() == 0 => None,
            Ok(batch) => Some(Ok(batch)),
            Err(cause) => Some(Err(ArrowError::ExternalError(cause.into()))),
        }
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> Arc<Schema> {
        Arc::clone(&self.schema)
    }
}
