//! Arrow streams that go into a pipeline, and a pipeline's records as an Arrow stream.
//!
//! What goes in passes through a pipe, a batch at a time as the engine takes it. What comes out lies in a file that has no
//! name any more; each stream of it reads it once from the beginning, a batch at a time, and it goes with the last of them.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use sortmill::error::{Error, ErrorKind};
use sortmill::io::sync::{Mutex, lock, scope, spawn};
use sortmill::pipeline::{BATCH_BYTES, Column, Gathered, Type, Value, read_row, write_row};
use sortmill::queue::Stop;

use crate::arrow::{self, batch_of, columns_of, gathered, stream, stream_capsule};
use crate::batched::kinds_of;
use crate::table::Table;

/// Bytes in front of a record: the lengths of its key, of which there is none, and its values.
const LENGTHS_BYTES: usize = 8;

/// What has an Arrow stream, and what is in it.
pub struct Source {
    from: Py<PyAny>,
    columns: Vec<Column>,
    /// The stream that told the columns: some things have but one.
    first: Mutex<Option<RecordBatchStreamReader>>,
}

/// The records of whatever has `__arrow_c_stream__`.
#[pyfunction]
pub fn from_arrow(from: Bound<'_, PyAny>) -> PyResult<Table> {
    let first = stream(&from)?;
    let columns = columns_of(&first.schema()).map_err(PyValueError::new_err)?;
    let source = Source {
        from: from.unbind(),
        columns: columns.clone(),
        first: Mutex::new(Some(first)),
    };
    Ok(Table::of_rows(columns, source))
}

impl Source {
    /// Does `what` while the records go into a pipe, whose path is told to `opened`.
    pub fn feed<T: Send>(
        &self,
        stop: &Stop,
        opened: impl FnOnce(PathBuf),
        what: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let failed = |cause: String| Error::new(ErrorKind::Input, "reading an Arrow stream", cause);
        let first = lock(&self.first).take();
        let reader = match first {
            Some(reader) => Ok(reader),
            None => Python::attach(|py| stream(self.from.bind(py))),
        };
        let mut reader = reader.map_err(|error| failed(error.to_string()))?;
        let pipe = std::io::pipe().map_err(|error| failed(error.to_string()))?;
        let (ours, mut to) = pipe;
        opened(PathBuf::from(format!("/proc/self/fd/{}", ours.as_raw_fd())));
        scope(|threads| {
            let feeder = spawn(threads, "feed", move || {
                if let Err(cause) = self.write_all(&mut reader, &mut to, stop) {
                    stop.fail(failed(cause));
                }
            });
            let done = what();
            // Nobody reads any more: a feeder that waits to write is told so.
            drop(ours);
            feeder
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            done
        })
    }

    fn write_all(
        &self,
        reader: &mut impl Iterator<Item = Result<RecordBatch, ArrowError>>,
        to: &mut impl Write,
        stop: &Stop,
    ) -> Result<(), String> {
        let kinds = kinds_of(&self.columns);
        let mut bytes = Vec::new();
        let mut before = 0;
        for batch in reader {
            let batch = batch.map_err(|error| error.to_string())?;
            let batch = gathered(&self.columns, &batch)
                .map_err(|cause| format!("{cause}, which begins with row {before}"))?;
            before += batch.len();
            for at in 0..batch.len() {
                let row = |values: &[Value<'_>]| {
                    write_row(values, &mut bytes);
                    Ok(())
                };
                batch
                    .with(&kinds, at, row)
                    .map_err(|error| error.to_string())?;
                if bytes.len() >= BATCH_BYTES / 4 {
                    if stop.is_stopped() || to.write_all(&bytes).is_err() {
                        // The job has ended, and says itself why.
                        return Ok(());
                    }
                    bytes.clear();
                }
            }
        }
        // As above.
        let _ = to.write_all(&bytes);
        Ok(())
    }
}

/// The records of a table, proven, in a file that goes with this.
#[pyclass(frozen, module = "sortmill._sortmill")]
pub struct Rows {
    file: Arc<File>,
    columns: Vec<Column>,
}

impl Rows {
    /// Those in the file `path`, which may go then.
    pub fn open(path: &Path, columns: Vec<Column>) -> Result<Self, Error> {
        let file = File::open(path);
        let file = file.map_err(|error| Error::io("opening the result", path, &error))?;
        Ok(Self {
            file: Arc::new(file),
            columns,
        })
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
        let reader = Reader {
            file: Arc::clone(&self.file),
            kinds: kinds_of(&self.columns),
            schema: Arc::new(arrow::schema(&self.columns)),
            columns: self.columns.clone(),
            offset: 0,
            bytes: Vec::new(),
            batch: Gathered::new(&kinds_of(&self.columns)),
        };
        stream_capsule(py, Box::new(reader))
    }
}

/// One way through a file of records.
struct Reader {
    file: Arc<File>,
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
            let read = read_row(&self.kinds, row, |values| batch.push(0, values));
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
            batch.map_err(|(_, cause)| cause)
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
