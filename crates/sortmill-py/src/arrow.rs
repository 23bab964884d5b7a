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

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::types::{
    BinaryViewType, ByteArrayType, ByteViewType, Date32Type, Date64Type, Decimal128Type,
    Float16Type, Float32Type, Float64Type, GenericBinaryType, GenericStringType, Int8Type,
    Int16Type, Int32Type, Int64Type, StringViewType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, GenericByteArray, GenericByteViewArray, RecordBatch,
    RecordBatchReader, StructArray,
};
use arrow_buffer::{ArrowNativeType, Buffer};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use sortmill::io::shared::{Mapped, Shared};
use sortmill::pipeline::{Column, Gather, Gathered, Present, TIMESTAMPS, Type};

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// A value takes at most so many bytes together with all others of its column.
pub const COLUMN_BYTES_MAX: usize = 1 << 30;

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

/// The records of a batch that has these columns, in any order, and no others.
pub fn gathered(made: &[Column], batch: &RecordBatch) -> Result<Gathered, String> {
    let values = |column: &Column| values_of(column, column_of(made, batch, column)?);
    let both: Vec<(Gather, Present)> = made.iter().map(values).collect::<Result<_, _>>()?;
    let (columns, present): (Vec<_>, Vec<_>) = both.into_iter().unzip();
    Ok(Gathered::of(columns, 0).with_present(present))
}

/// That of a batch which is called like `column`; an error if the batch has others than those that are `made`.
pub fn column_of<'b>(
    made: &[Column],
    batch: &'b RecordBatch,
    column: &Column,
) -> Result<&'b ArrayRef, String> {
    let fields = batch.schema_ref().fields();
    let known = |field: &&Arc<Field>| made.iter().any(|column| column.name == *field.name());
    if let Some(other) = fields.iter().find(|field| !known(field)) {
        return Err(format!("there is a column {} too many", other.name()));
    }
    let mut called = (0..fields.len()).filter(|&at| *fields[at].name() == column.name);
    let found = called.next();
    if called.next().is_some() {
        return Err(format!("there are two columns {}", column.name));
    }
    let at = found.ok_or_else(|| format!("there is no column {}", column.name))?;
    Ok(batch.column(at))
}

/// The values of an array, and which of them are there.
pub fn values_of(column: &Column, array: &ArrayRef) -> Result<(Gather, Present), String> {
    let present = present_of(column, array)?;
    let values = all_values_of(column, array)?;
    if let (Type::Timestamp, Gather::Words(micros)) = (column.kind, &values) {
        let is_there = |at: usize| present.as_ref().is_none_or(|present| present[at] != 0);
        let is_wrong = |at: &usize| !TIMESTAMPS.contains(&(micros[*at] as i64)) && is_there(*at);
        if let Some(at) = (0..micros.len()).find(is_wrong) {
            return Err(format!(
                "column {} has a time that is not in the years 1 to 9999, in row {at} of the batch",
                column.name
            ));
        }
    }
    Ok((values, present))
}

/// Which values of an array are there.
pub fn present_of(column: &Column, array: &ArrayRef) -> Result<Present, String> {
    let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
    if let (Some(nulls), false) = (&nulls, column.nullable) {
        let at = nulls.iter().position(|is_there| !is_there).unwrap_or(0);
        return Err(format!(
            "column {} has a null, in row {at} of the batch",
            column.name
        ));
    }
    Ok(nulls.map(|nulls| nulls.iter().map(u8::from).collect()))
}

fn all_values_of(column: &Column, array: &ArrayRef) -> Result<Gather, String> {
    let name = &column.name;
    if array.is_empty() {
        return Ok(Gather::new(column.kind));
    }
    if array.data_type() == &DataType::Null {
        return Ok(Gather::of_nothing(column.kind, array.len()));
    }
    let made = match (column.kind, array.data_type()) {
        (_, DataType::Dictionary(..)) => decoded(column, array)?,
        (Type::I64 | Type::U64, DataType::Decimal128(_, 0)) => Some(decimals(column, array)?),
        (Type::F64, DataType::Float16) => {
            words::<Float16Type>(array, |value| value.to_f64().to_bits())
        }
        (Type::String, DataType::Utf8) => bytes(array.as_bytes::<GenericStringType<i32>>()),
        (Type::String, DataType::LargeUtf8) => bytes(array.as_bytes::<GenericStringType<i64>>()),
        (Type::String, DataType::Utf8View) => views(array.as_byte_view::<StringViewType>()),
        (Type::Binary, DataType::Binary) => bytes(array.as_bytes::<GenericBinaryType<i32>>()),
        (Type::Binary, DataType::LargeBinary) => bytes(array.as_bytes::<GenericBinaryType<i64>>()),
        (Type::Binary, DataType::BinaryView) => views(array.as_byte_view::<BinaryViewType>()),
        (Type::Binary, DataType::FixedSizeBinary(_)) => {
            let array = array.as_fixed_size_binary();
            joined((0..array.len()).map(|at| array.value(at)))
        }
        (Type::I64, DataType::Int64) => words::<Int64Type>(array, |value| value as u64),
        (Type::I64, DataType::Int32) => words::<Int32Type>(array, |value| i64::from(value) as u64),
        (Type::I64, DataType::Int16) => words::<Int16Type>(array, |value| i64::from(value) as u64),
        (Type::I64, DataType::Int8) => words::<Int8Type>(array, |value| i64::from(value) as u64),
        (Type::I64 | Type::U64, DataType::UInt32) => words::<UInt32Type>(array, u64::from),
        (Type::I64 | Type::U64, DataType::UInt16) => words::<UInt16Type>(array, u64::from),
        (Type::I64 | Type::U64, DataType::UInt8) => words::<UInt8Type>(array, u64::from),
        (Type::U64, DataType::UInt64) => words::<UInt64Type>(array, |value| value),
        (Type::F64, DataType::Float64) => words::<Float64Type>(array, f64::to_bits),
        (Type::F64, DataType::Float32) => {
            words::<Float32Type>(array, |value| f64::from(value).to_bits())
        }
        (Type::Timestamp, DataType::Timestamp(unit, _)) => {
            // What is beyond i64 is beyond the years that there are, and told so.
            let times = |many: i64| move |value: i64| value.saturating_mul(many) as u64;
            match unit {
                TimeUnit::Second => words::<TimestampSecondType>(array, times(1_000_000)),
                TimeUnit::Millisecond => words::<TimestampMillisecondType>(array, times(1000)),
                TimeUnit::Microsecond => words::<TimestampMicrosecondType>(array, times(1)),
                TimeUnit::Nanosecond => {
                    words::<TimestampNanosecondType>(array, |value| value.div_euclid(1000) as u64)
                }
            }
        }
        (Type::Timestamp, DataType::Date32) => words::<Date32Type>(array, |days| {
            i64::from(days).saturating_mul(86_400_000_000) as u64
        }),
        (Type::Timestamp, DataType::Date64) => {
            words::<Date64Type>(array, |millis| millis.saturating_mul(1000) as u64)
        }
        (Type::Bool, DataType::Boolean) => {
            let array = array.as_boolean();
            Some(Gather::Bools(array.values().iter().map(u8::from).collect()))
        }
        (wanted, found) => {
            let wanted = wanted.name();
            return Err(format!(
                "column {name} is of type {found}, which is no {wanted}"
            ));
        }
    };
    made.ok_or_else(|| format!("column {name} has more than 1 GiB in one batch"))
}

/// The values that the keys of a dictionary mean.
fn decoded(column: &Column, array: &ArrayRef) -> Result<Option<Gather>, String> {
    let array = array.as_any_dictionary();
    if array.values().is_empty() {
        return Ok(Some(Gather::of_nothing(column.kind, array.len())));
    }
    let (values, keys) = (
        all_values_of(column, array.values())?,
        array.normalized_keys(),
    );
    Ok(match values {
        Gather::Bytes { ends, bytes } => {
            let value = |&key: &usize| &bytes[ends[key] as usize..ends[key + 1] as usize];
            joined(keys.iter().map(value))
        }
        Gather::Words(words) => Some(Gather::Words(keys.iter().map(|&key| words[key]).collect())),
        Gather::Bools(bools) => Some(Gather::Bools(keys.iter().map(|&key| bools[key]).collect())),
    })
}

/// Decimal numbers without a fraction, if a whole number of 64 bits can be each.
fn decimals(column: &Column, array: &ArrayRef) -> Result<Gather, String> {
    let array = array.as_primitive::<Decimal128Type>();
    let word = |at: usize| {
        let value = match array.is_null(at) {
            true => 0,
            false => array.value(at),
        };
        let word = match column.kind {
            Type::U64 => u64::try_from(value).ok(),
            _ => i64::try_from(value).ok().map(|value| value as u64),
        };
        word.ok_or_else(|| {
            let (name, kind) = (&column.name, column.kind.name());
            format!("column {name} has {value}, in row {at} of the batch, which is no {kind}")
        })
    };
    let words: Result<Vec<u64>, String> = (0..array.len()).map(word).collect();
    Ok(Gather::Words(words?))
}

fn words<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    word: impl Fn(T::Native) -> u64,
) -> Option<Gather> {
    let values = array.as_primitive::<T>().values().iter();
    Some(Gather::Words(values.map(|&value| word(value)).collect()))
}

fn bytes<T: ByteArrayType>(array: &GenericByteArray<T>) -> Option<Gather> {
    let offsets = array.value_offsets();
    let (first, last) = (offsets[0].as_usize(), offsets[array.len()].as_usize());
    if last - first > COLUMN_BYTES_MAX {
        return None;
    }
    let ends = offsets.iter().map(|end| (end.as_usize() - first) as i32);
    Some(Gather::Bytes {
        ends: ends.collect(),
        bytes: array.value_data()[first..last].to_vec(),
    })
}

fn views<T: ByteViewType>(array: &GenericByteViewArray<T>) -> Option<Gather> {
    let value = |at: usize| -> &[u8] { array.value(at).as_ref() };
    joined((0..array.len()).map(value))
}

fn joined<'a>(values: impl Iterator<Item = &'a [u8]>) -> Option<Gather> {
    let (mut ends, mut bytes) = (vec![0], Vec::new());
    for value in values {
        bytes.extend_from_slice(value);
        if bytes.len() > COLUMN_BYTES_MAX {
            return None;
        }
        ends.push(bytes.len() as i32);
    }
    Some(Gather::Bytes { ends, bytes })
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
