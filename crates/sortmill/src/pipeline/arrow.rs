//! Records as batches of Arrow's, and as a stream of them in a file (Arrow Columnar Format 1.5, IPC streaming format).
//!
//! ```text
//! schema | batch | batch | ... | end       a batch has 256 KiB and one record at most
//! ```
//!
//! A column is copied as a whole where it has Arrow's layout already ([`Gather`]). Which records are in one batch follows from
//! the records of the file alone ([`crate::framing`]).

use sortmill_io::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, UInt64Array,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema, TimeUnit};

mod command;
mod taken;

pub use taken::{COLUMN_BYTES_MAX, column_of, gathered, present_of, values_of};

use super::column::{Column, Type};
use super::gather::{Gather, Gathered, Present, Refused};
use super::rows;
use crate::error::{Error, ErrorKind};
use crate::job::{Framer, Framing};
use crate::order::KV_HEADER_BYTES;

/// What Arrow calls the zone that all timestamps are in.
const UTC: &str = "UTC";

const DOING: &str = "writing Arrow";

/// A batch with so many bytes goes out.
const FRAME_BYTES: usize = 256 << 10;

/// What a stream has behind all batches: that no message follows (its length is 0).
const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// What comes before all batches.
pub(super) fn heading(columns: &[Column]) -> Vec<u8> {
    writer(&schema(columns)).get_ref().clone()
}

/// What gathers records as [`super::Form::Rows`] has them into batches.
pub(super) fn framing(columns: &[Column]) -> Framing {
    let columns = columns.to_vec();
    Framing {
        make: Arc::new(move || framer(&columns)),
        tail: END.to_vec(),
        // The records, their columns as Arrow has them, the message, and the same on its way out.
        held_bytes: 4 * FRAME_BYTES as u64,
    }
}

/// No memory helps a value that is longer than a batch may be.
fn too_long(mut error: Error) -> Error {
    if error.kind == ErrorKind::Memory {
        error.kind = ErrorKind::Input;
        DOING.clone_into(&mut error.doing);
    }
    error
}

fn framer(columns: &[Column]) -> Framer {
    let columns = columns.to_vec();
    let kinds: Vec<Type> = columns.iter().map(|column| column.kind).collect();
    let schema = std::sync::Arc::new(schema(&columns));
    let mut messages = writer(&schema);
    messages.get_mut().clear();
    let (mut batch, mut bytes) = (Gathered::new(&kinds), 0);
    Box::new(move |record, out| {
        if let Some(record) = record {
            let pushed = rows::read(&columns, &record[KV_HEADER_BYTES..], |values| {
                batch.push(0, values)
            });
            pushed.map_err(too_long)?;
            bytes += record.len();
        }
        if batch.is_empty() || record.is_some() && bytes < FRAME_BYTES {
            return Ok(0);
        }
        let full = std::mem::replace(&mut batch, Gathered::new(&kinds));
        bytes = 0;
        let full = batch_of(&columns, &schema, full).map_err(|(_, error)| *error)?;
        messages.write(&full).map_err(wrong)?;
        // What is empty comes back for the next one.
        std::mem::swap(messages.get_mut(), out);
        Ok(full.num_rows() as u64)
    })
}

/// Writes messages into memory, of which the schema is there.
fn writer(schema: &Schema) -> StreamWriter<Vec<u8>> {
    StreamWriter::try_new(Vec::new(), schema).expect("memory takes all")
}

fn wrong(error: arrow_schema::ArrowError) -> Error {
    Error::new(ErrorKind::Memory, DOING, error.to_string())
}

/// What records of these columns are in Arrow.
#[must_use]
pub fn schema(columns: &[Column]) -> Schema {
    let field = |column: &Column| {
        let kind = match column.kind {
            Type::Binary => DataType::Binary,
            Type::String => DataType::Utf8,
            Type::I64 => DataType::Int64,
            Type::U64 => DataType::UInt64,
            Type::F64 => DataType::Float64,
            Type::Bool => DataType::Boolean,
            Type::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        };
        // Where there are no nulls a schema that says so is another one to most libraries.
        Field::new(&column.name, kind, true)
    };
    Schema::new(columns.iter().map(field).collect::<Vec<_>>())
}

/// The records as Arrow has them.
///
/// # Errors
/// The number of a record that has text that is none, and what is wrong.
///
/// # Panics
/// When `columns`, `schema` and records are not of the same table.
pub fn batch_of(
    columns: &[Column],
    schema: &Arc<Schema>,
    from: Gathered,
) -> Result<RecordBatch, Refused> {
    let nulls: Vec<Option<NullBuffer>> = from.present().iter().map(nulls_of).collect();
    let arrays = columns.iter().zip(from.into_columns()).zip(nulls);
    let arrays: Result<Vec<ArrayRef>, _> = arrays
        .map(|((column, values), nulls)| array_of(column, values, nulls))
        .collect();
    let batch = RecordBatch::try_new(Arc::clone(schema), arrays?);
    Ok(batch.expect("columns are as their schema says"))
}

fn nulls_of(present: &Present) -> Option<NullBuffer> {
    let bits = |present: &Vec<u8>| present.iter().map(|&is| is != 0).collect::<Vec<_>>();
    present
        .as_ref()
        .map(|present| NullBuffer::from(bits(present)))
}

fn array_of(
    column: &Column,
    values: Gather,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, Refused> {
    Ok(match (column.kind, values) {
        (kind, Gather::Bytes { ends, bytes }) => {
            let ends = OffsetBuffer::new(ScalarBuffer::from(ends));
            let bytes = Buffer::from_vec(bytes);
            if kind != Type::String {
                return Ok(Arc::new(BinaryArray::new(ends, bytes, nulls)));
            }
            text_of(column, (ends, bytes), nulls)?
        }
        (Type::I64, Gather::Words(words)) => {
            let whole: Vec<i64> = words.iter().map(|&word| word as i64).collect();
            Arc::new(Int64Array::new(whole.into(), nulls))
        }
        (Type::F64, Gather::Words(words)) => {
            let floats: Vec<f64> = words.iter().map(|&word| f64::from_bits(word)).collect();
            Arc::new(Float64Array::new(floats.into(), nulls))
        }
        (Type::Timestamp, Gather::Words(words)) => {
            let micros: Vec<i64> = words.iter().map(|&word| word as i64).collect();
            times_of(micros.into(), nulls)
        }
        (_, Gather::Words(words)) => Arc::new(UInt64Array::new(words.into(), nulls)),
        (_, Gather::Bools(bools)) => {
            let bools: Vec<bool> = bools.iter().map(|&value| value != 0).collect();
            Arc::new(BooleanArray::new(bools.into(), nulls))
        }
    })
}

/// A column of microseconds since 1970, in UTC.
#[must_use]
pub fn times_of(micros: ScalarBuffer<i64>, nulls: Option<NullBuffer>) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::new(micros, nulls).with_timezone(UTC))
}

/// A column of text.
///
/// # Errors
/// The number of one that is none, and what is wrong.
pub fn text_of(
    column: &Column,
    (ends, bytes): (OffsetBuffer<i32>, Buffer),
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, Refused> {
    let array = StringArray::try_new(ends.clone(), bytes.clone(), nulls);
    Ok(Arc::new(array.map_err(|_| {
        const SHOWN_BYTES: usize = 60;
        let at = first_wrong(&ends, &bytes);
        let value = &bytes[ends[at] as usize..ends[at + 1] as usize];
        let shown = String::from_utf8_lossy(&value[..value.len().min(SHOWN_BYTES)]);
        let name = &column.name;
        let cause = format!("column {name} has {shown:?}, which is not UTF-8, as text in Arrow is");
        let error = Error::new(ErrorKind::Input, DOING, cause);
        (at, Box::new(error.hint(column.as_bytes_hint())))
    })?))
}

fn first_wrong(ends: &[i32], bytes: &[u8]) -> usize {
    let is_wrong =
        |of: &[i32]| std::str::from_utf8(&bytes[of[0] as usize..of[1] as usize]).is_err();
    ends.windows(2).position(is_wrong).unwrap_or(0)
}
