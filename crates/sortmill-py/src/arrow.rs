//! Batches as Arrow's, through its C data interface: columns are copied as a whole, or not at all.
//!
//! ```text
//! Gathered --> RecordBatch --> capsules --> pyarrow, Polars, DuckDB, ...
//! Gathered <-- RecordBatch <-- capsules <-- whatever has `__arrow_c_array__` or `__arrow_c_stream__`
//! ```
//!
//! The interface (Arrow PyCapsule Interface, Arrow C Data Interface) hands structures of pointers through capsules, and
//! columns lie in shared memory (`columns.rs`): this is the one file of the binding with `unsafe`. Whoever takes a structure out of a capsule owns it and leaves it marked as
//! released; a capsule that nobody took from releases it when it goes.

use std::ffi::CStr;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array, RecordBatch, RecordBatchReader, StructArray};
use arrow_buffer::Buffer;
use arrow_schema::{DataType, Field, Schema};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use sortmill::io::shared::{Mapped, Shared};
use sortmill::pipeline::{Column, Type};

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// A batch that Python's libraries take as it is.
#[pyclass(frozen, module = "sortmill._sortmill")]
pub struct Batch {
    batch: RecordBatch,
}

impl Batch {
    pub fn new(batch: RecordBatch) -> Self {
        Self { batch }
    }
}

#[pymethods]
impl Batch {
    /// Capsules of its schema and of its columns. A schema that is asked for instead is not looked at, as the interface
    /// allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        drop(requested_schema);
        let all = StructArray::from(self.batch.clone());
        let (array, schema) = to_ffi(&all.to_data()).map_err(wrong)?;
        let schema = PyCapsule::new_with_value(py, schema, SCHEMA)?;
        let array = PyCapsule::new_with_value(py, array, ARRAY)?;
        PyTuple::new(py, [schema, array])
    }
}

fn wrong(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A capsule with the stream of `reader`.
pub fn stream_capsule<'py>(
    py: Python<'py>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
}

/// The batches of whatever has `__arrow_c_stream__` or `__arrow_c_array__`.
pub fn batches(from: &Bound<'_, PyAny>) -> PyResult<Vec<RecordBatch>> {
    if from.hasattr("__arrow_c_array__")? {
        return Ok(vec![one_batch(from)?]);
    }
    stream(from)?.collect::<Result<_, _>>().map_err(wrong)
}

/// The batches of whatever has `__arrow_c_stream__`, one after the other.
pub fn stream(from: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    if !from.hasattr("__arrow_c_stream__")? {
        let of = from.get_type().name()?;
        let text = format!("{of} is no Arrow data: it has no __arrow_c_stream__");
        return Err(PyTypeError::new_err(text));
    }
    let capsule = from.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(STREAM))?;
    // SAFETY: a capsule of this name holds a stream (PyCapsule Interface), which lives as long as the capsule; `from_raw`
    // takes it out and leaves one that is released.
    let reader = unsafe { RecordBatchStreamReader::from_raw(pointer.cast().as_ptr()) };
    reader.map_err(wrong)
}

fn one_batch(from: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let capsules = from.call_method0("__arrow_c_array__")?;
    let capsules = capsules.cast::<PyTuple>()?;
    let (schema, array) = (capsules.get_item(0)?, capsules.get_item(1)?);
    let schema = schema.cast::<PyCapsule>()?.pointer_checked(Some(SCHEMA))?;
    let array = array.cast::<PyCapsule>()?.pointer_checked(Some(ARRAY))?;
    // SAFETY: capsules of these names hold a schema and an array (PyCapsule Interface), which live as long as the capsules;
    // `from_raw` takes the array out and leaves one that is released; the schema is only read.
    let data = unsafe {
        let array = FFI_ArrowArray::from_raw(array.cast().as_ptr());
        from_ffi(array, schema.cast::<FFI_ArrowSchema>().as_ref())
    };
    let data = data.map_err(wrong)?;
    if !matches!(data.data_type(), DataType::Struct(_)) || data.null_count() > 0 {
        let text = format!("{} is no batch of columns", data.data_type());
        return Err(PyTypeError::new_err(text));
    }
    Ok(RecordBatch::from(StructArray::from(data)))
}

/// Names and types of the columns of Arrow data that can be read.
pub fn columns_of(schema: &Schema) -> Result<Vec<Column>, String> {
    let column = |field: &Arc<Field>| {
        let (name, of) = (field.name(), field.data_type());
        let refused = || {
            format!(
                "column {name} is of type {of}, which there is none for: make it text, bytes, a number, a bool or a timestamp"
            )
        };
        let column = Column::new(name, type_of(of).ok_or_else(refused)?);
        Ok(match field.is_nullable() || of == &DataType::Null {
            true => column.or_null(),
            false => column,
        })
    };
    schema.fields().iter().map(column).collect()
}

/// The type that holds all values of one of Arrow's exactly; of decimal numbers it is seen when they come.
fn type_of(of: &DataType) -> Option<Type> {
    Some(match of {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Type::String,
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => Type::Binary,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => Type::I64,
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => Type::I64,
        DataType::Decimal128(_, 0) => Type::I64,
        DataType::UInt64 => Type::U64,
        DataType::Float16 | DataType::Float32 | DataType::Float64 => Type::F64,
        DataType::Boolean => Type::Bool,
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => Type::Timestamp,
        DataType::Dictionary(_, values) => type_of(values)?,
        // All of its values are missing.
        DataType::Null => Type::String,
        _ => return None,
    })
}

/// What lies in shared memory, at least so many bytes of it, to be read where it is.
pub fn mapped(shared: &Shared, bytes: usize) -> std::io::Result<Mapped> {
    // SAFETY: who asks writes there before it asks, and not again before it has the answer; until then whoever serves has
    // seen to it that what is referred to is kept (`serve.rs`).
    unsafe { shared.map(bytes) }
}

/// A part of what is mapped, as Arrow has memory: it stays mapped as long as somebody refers to it.
///
/// # Panics
/// When it is no part.
pub fn buffer_of(mapped: &Arc<Mapped>, range: Range<usize>) -> Buffer {
    assert!(range.start <= range.end && range.end <= mapped.length());
    let owner = Arc::clone(mapped);
    // SAFETY: the range lies within what is mapped as long as its owner is there, and nobody writes it, as `mapped` says.
    unsafe {
        let start = mapped.start().add(range.start);
        Buffer::from_custom_allocation(start, range.len(), owner)
    }
}
