//! What a function of batches is given and what it answers in a worker process: columns that nobody copies.
//!
//! ```text
//! shared memory --batch_in--> RecordBatch --> the function --> RecordBatch --Held--> pieces --> shared memory
//!                (mapped)                                      (as it lies there)     (one copy)
//! ```
//!
//! What is given lies in memory that the other process writes the next batch to, so whoever serves sees to it that what is
//! referred to for longer becomes a copy (`serve.rs`).

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float64Type, GenericBinaryType, GenericStringType, Int64Type, TimestampMicrosecondType,
    UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, RecordBatch, UInt64Array,
};
use arrow_buffer::{
    ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer,
};
use arrow_schema::{DataType, Schema, TimeUnit};
use sortmill::io::shared::Mapped;
use sortmill::pipeline::arrow::{
    COLUMN_BYTES_MAX, column_of, present_of, text_of, times_of, values_of,
};
use sortmill::pipeline::{
    Column, Gather, Laid, LaidColumn, Laying, Present, Refused, Type, most_within,
};

use crate::arrow::buffer_of;

/// The records that lie in `mapped` as `laid` says; or the number of one that has text that is none, and what is wrong.
///
/// # Panics
/// When `laid` was found in other bytes.
pub fn batch_in(
    columns: &[Column],
    schema: &Arc<Schema>,
    (mapped, laid): (&Arc<Mapped>, &Laid),
) -> Result<RecordBatch, Refused> {
    let arrays = columns.iter().zip(laid.columns()).zip(laid.present());
    let arrays: Result<Vec<ArrayRef>, _> = arrays
        .map(|((column, lies), present)| {
            let nulls = present.clone().map(|present| bits_in(mapped, present));
            let nulls = nulls.map(NullBuffer::new);
            array_in(column, (mapped, nulls), (lies, laid.len()))
        })
        .collect();
    let batch = RecordBatch::try_new(Arc::clone(schema), arrays?);
    Ok(batch.expect("columns are as their schema says"))
}

/// A bit for each byte.
fn bits_in(mapped: &Mapped, range: Range<usize>) -> BooleanBuffer {
    let bytes = &mapped.bytes(range.end)[range];
    BooleanBuffer::collect_bool(bytes.len(), |at| bytes[at] != 0)
}

fn array_in(
    column: &Column,
    (mapped, nulls): (&Arc<Mapped>, Option<NullBuffer>),
    (lies, count): (&LaidColumn, usize),
) -> Result<ArrayRef, Refused> {
    Ok(match lies {
        LaidColumn::Bytes { ends, bytes } => {
            let ends = ScalarBuffer::<i32>::new(buffer_of(mapped, ends.clone()), 0, count + 1);
            assert_eq!(ends[0], 0, "all of a batch is given at once");
            let (ends, bytes) = (OffsetBuffer::new(ends), buffer_of(mapped, bytes.clone()));
            match column.kind {
                Type::String => text_of(column, (ends, bytes), nulls)?,
                _ => Arc::new(BinaryArray::new(ends, bytes, nulls)),
            }
        }
        LaidColumn::Words(words) => {
            let words = buffer_of(mapped, words.clone());
            match column.kind {
                Type::I64 => Arc::new(Int64Array::new(ScalarBuffer::new(words, 0, count), nulls)),
                Type::Timestamp => times_of(ScalarBuffer::new(words, 0, count), nulls),
                Type::F64 => Arc::new(Float64Array::new(ScalarBuffer::new(words, 0, count), nulls)),
                _ => Arc::new(UInt64Array::new(ScalarBuffer::new(words, 0, count), nulls)),
            }
        }
        LaidColumn::Bools(bools) => {
            Arc::new(BooleanArray::new(bits_in(mapped, bools.clone()), nulls))
        }
    })
}

/// The records of a batch that a function answered, where they lie.
pub struct Held {
    count: usize,
    columns: Vec<(HeldColumn, Present)>,
}

enum HeldColumn {
    Bytes {
        ends: ScalarBuffer<i32>,
        bytes: Buffer,
    },
    Words(Buffer),
    Bools(Vec<u8>),
}

impl Held {
    /// Those of a batch that has these columns, in any order, and no others; or what is wrong.
    pub fn of(made: &[Column], batch: &RecordBatch) -> Result<Self, String> {
        let one = |column: &Column| {
            let array = column_of(made, batch, column)?;
            Ok((held(column, array)?, present_of(column, array)?))
        };
        let columns = made.iter().map(one);
        Ok(Self {
            columns: columns.collect::<Result<_, String>>()?,
            count: batch.num_rows(),
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// How many records from number `from` on have about `bytes_max` bytes together; at least one, if there is one.
    pub fn fitting(&self, from: usize, bytes_max: usize) -> usize {
        let bytes = |count: usize| -> usize {
            let of = |(column, present): &(HeldColumn, Present)| {
                column.bytes(from..from + count) + present.as_ref().map_or(0, |_| count)
            };
            self.columns.iter().map(of).sum()
        };
        most_within(self.count - from, bytes_max, bytes)
    }

    /// The records `range`, to be laid out.
    pub fn lay(&self, range: &Range<usize>) -> Laying<'_> {
        let are_missing = self.columns.iter().map(|(_, present)| present.is_some());
        let mut laying = Laying::new(None, are_missing);
        for (column, present) in &self.columns {
            if let Some(present) = present {
                laying.part(Cow::Borrowed(&present[range.clone()]));
            }
            match column {
                HeldColumn::Bytes { ends, bytes } => {
                    let those = 4 * range.start..4 * (range.end + 1);
                    laying.part(Cow::Borrowed(&ends.inner()[those]));
                    let within = ends[range.start].as_usize()..ends[range.end].as_usize();
                    laying.part(Cow::Borrowed(&bytes[within]));
                }
                HeldColumn::Words(words) => {
                    laying.part(Cow::Borrowed(&words[8 * range.start..8 * range.end]));
                }
                HeldColumn::Bools(bools) => laying.part(Cow::Borrowed(&bools[range.clone()])),
            }
        }
        laying
    }
}

impl HeldColumn {
    /// Bytes of the values `range`.
    fn bytes(&self, range: Range<usize>) -> usize {
        match self {
            Self::Bytes { ends, .. } => {
                (ends[range.end] - ends[range.start]).as_usize() + 4 * range.len()
            }
            Self::Words(_) => 8 * range.len(),
            Self::Bools(_) => range.len(),
        }
    }
}

fn held(column: &Column, array: &ArrayRef) -> Result<HeldColumn, String> {
    let is_there = !array.is_empty();
    let text = |ends: &OffsetBuffer<i32>, bytes: &Buffer| HeldColumn::Bytes {
        ends: ends.inner().clone(),
        bytes: bytes.clone(),
    };
    let made = match (column.kind, array.data_type()) {
        (Type::String, DataType::Utf8) if is_there => {
            let array = array.as_bytes::<GenericStringType<i32>>();
            text(array.offsets(), array.values())
        }
        (Type::Binary, DataType::Binary) if is_there => {
            let array = array.as_bytes::<GenericBinaryType<i32>>();
            text(array.offsets(), array.values())
        }
        (Type::I64, DataType::Int64) if is_there => {
            HeldColumn::Words(array.as_primitive::<Int64Type>().values().inner().clone())
        }
        (Type::Timestamp, DataType::Timestamp(TimeUnit::Microsecond, _)) if is_there => {
            let array = array.as_primitive::<TimestampMicrosecondType>();
            HeldColumn::Words(array.values().inner().clone())
        }
        (Type::U64, DataType::UInt64) if is_there => {
            HeldColumn::Words(array.as_primitive::<UInt64Type>().values().inner().clone())
        }
        (Type::F64, DataType::Float64) if is_there => {
            HeldColumn::Words(array.as_primitive::<Float64Type>().values().inner().clone())
        }
        // Of another type, which is made one of these, or wrong.
        _ => match values_of(column, array)?.0 {
            Gather::Bytes { ends, bytes } => HeldColumn::Bytes {
                ends: ScalarBuffer::from(ends),
                bytes: Buffer::from_vec(bytes),
            },
            Gather::Words(words) => HeldColumn::Words(Buffer::from_vec(words)),
            Gather::Bools(bools) => HeldColumn::Bools(bools),
        },
    };
    if let HeldColumn::Bytes { ends, .. } = &made
        && ends
            .last()
            .zip(ends.first())
            .is_some_and(|(last, first)| last - first > COLUMN_BYTES_MAX as i32)
    {
        return Err(format!(
            "column {} has more than 1 GiB in one batch",
            column.name
        ));
    }
    Ok(made)
}
