//! Whether a value is one of several: a look into a set, however many there are.

use std::collections::HashSet;
use std::hash::Hash;

use super::column::{Type, Value};
use super::key::float_bits;
use super::wrong;
use crate::error::Result;

/// Values of one type.
#[derive(Clone, Debug)]
pub(super) enum Set {
    Texts(HashSet<Vec<u8>>),
    /// Whole numbers with and without a sign, and floats, which are compared with them as floats.
    Whole(HashSet<i128>, HashSet<u64>),
    /// What [`float_bits`] makes of floats, none of which is no number.
    Floats(HashSet<u64>),
    Times(HashSet<i64>),
    Bools(HashSet<bool>),
}

impl Set {
    /// That of `values`, for values of type `kind`; numbers of other types are as `==` has them.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Usage`] for a value that no value of that type can be compared with.
    pub fn new(kind: Type, values: &[Value<'_>]) -> Result<Self> {
        Ok(match kind {
            Type::Binary | Type::String => Self::Texts(all(kind, values, |value| match value {
                Value::Bytes(bytes) => Some(Some(bytes.to_vec())),
                _ => None,
            })?),
            Type::I64 | Type::U64 => {
                let whole = |value: Value<'_>| match value {
                    Value::I64(number) => Some(Some(number.into())),
                    Value::U64(number) => Some(Some(number.into())),
                    Value::F64(_) => Some(None),
                    _ => None,
                };
                let floats = |value: Value<'_>| match value {
                    Value::F64(number) => Some((!number.is_nan()).then(|| float_bits(number))),
                    _ => Some(None),
                };
                Self::Whole(all(kind, values, whole)?, all(kind, values, floats)?)
            }
            Type::F64 => Self::Floats(all(kind, values, |value| match value {
                Value::F64(number) => Some((!number.is_nan()).then(|| float_bits(number))),
                Value::I64(number) => Some(Some(float_bits(number as f64))),
                Value::U64(number) => Some(Some(float_bits(number as f64))),
                _ => None,
            })?),
            Type::Timestamp => Self::Times(all(kind, values, |value| match value {
                Value::Timestamp(micros) => Some(Some(micros)),
                _ => None,
            })?),
            Type::Bool => Self::Bools(all(kind, values, |value| match value {
                Value::Bool(value) => Some(Some(value)),
                _ => None,
            })?),
        })
    }

    /// Whether it has `value`, which is of its type.
    pub fn has(&self, value: Value<'_>) -> bool {
        match (self, value) {
            (Self::Texts(all), Value::Bytes(bytes)) => all.contains(bytes),
            (Self::Whole(all, floats), Value::I64(number)) => {
                all.contains(&number.into()) || has_float(floats, number as f64)
            }
            (Self::Whole(all, floats), Value::U64(number)) => {
                all.contains(&number.into()) || has_float(floats, number as f64)
            }
            (Self::Floats(all), Value::F64(number)) => has_float(all, number),
            (Self::Times(all), Value::Timestamp(micros)) => all.contains(&micros),
            (Self::Bools(all), Value::Bool(value)) => all.contains(&value),
            _ => false,
        }
    }
}

fn has_float(all: &HashSet<u64>, number: f64) -> bool {
    !all.is_empty() && !number.is_nan() && all.contains(&float_bits(number))
}

/// What `of` makes of all values: some, none of a value that no other equals, and nothing of one that is of another type than `kind`.
fn all<T: Eq + Hash>(
    kind: Type,
    values: &[Value<'_>],
    of: impl Fn(Value<'_>) -> Option<Option<T>>,
) -> Result<HashSet<T>> {
    let one = |&value: &Value<'_>| {
        let refused = || {
            let (kind, value) = (kind.name(), super::reckon::shown(value));
            wrong(format!(
                "is_in takes values of one type, and {value} is not of type {kind}"
            ))
        };
        of(value).ok_or_else(refused).transpose()
    };
    values.iter().filter_map(one).collect()
}
