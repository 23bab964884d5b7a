//! Records of whatever batches of Arrow's others make, if they have the columns and types that are wanted.
//!
//! Each type of Arrow's that holds no more than one of ours is taken: text and binary in any layout, whole numbers of any width,
//! floats, times of any unit and dates, decimal numbers without a fraction, dictionaries of these.

use sortmill_io::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    BinaryViewType, ByteArrayType, ByteViewType, Date32Type, Date64Type, Decimal128Type,
    Float16Type, Float32Type, Float64Type, GenericBinaryType, GenericStringType, Int8Type,
    Int16Type, Int32Type, Int64Type, StringViewType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, GenericByteArray, GenericByteViewArray, RecordBatch,
};
use arrow_buffer::ArrowNativeType;
use arrow_schema::{DataType, Field, TimeUnit};

use crate::pipeline::{Column, Gather, Gathered, Present, TIMESTAMPS, Type};

/// A value takes at most so many bytes together with all others of its column.
pub const COLUMN_BYTES_MAX: usize = 1 << 30;

/// The records of a batch that has these columns, in any order, and no others.
///
/// # Errors
/// What is wrong with its columns or with one of them.
pub fn gathered(made: &[Column], batch: &RecordBatch) -> Result<Gathered, String> {
    let values = |column: &Column| values_of(column, column_of(made, batch, column)?);
    let both: Vec<(Gather, Present)> = made.iter().map(values).collect::<Result<_, _>>()?;
    let (columns, present): (Vec<_>, Vec<_>) = both.into_iter().unzip();
    Ok(Gathered::of(columns, 0).with_present(present))
}

/// That of a batch which is called like `column`; an error if the batch has others than those that are `made`.
///
/// # Errors
/// What is wrong: there is none or another one so called, or a column too many.
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
///
/// # Errors
/// What is wrong: another type, a null where none may be, a time out of range, more than 1 GiB.
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
///
/// # Errors
/// That one is missing where none may be.
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
