//! Whether a value is one of several: a look into a set, however many there are.

use std::collections::HashSet;

use super::column::{Type, Value};
use super::key::float_bits;
use super::wrong;
use crate::error::Result;

/// Values of one type.
#[derive(Clone, Debug)]
pub(super) enum Set {
    Texts(HashSet<Vec<u8>>),
    /// Whole numbers with and without a sign.
    Whole(HashSet<i128>),
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
        let refused = |value: &Value<'_>| {
            let (kind, value) = (kind.name(), super::reckon::shown(*value));
            wrong(format!(
                "is_in takes values of one type, and {value} is not of type {kind}"
            ))
        };
        let all = values.iter();
        Ok(match kind {
            Type::Binary | Type::String => Self::Texts(
                all.map(|value| match value {
                    Value::Bytes(bytes) => Ok(bytes.to_vec()),
                    other => Err(refused(other)),
                })
                .collect::<Result<_>>()?,
            ),
            Type::I64 | Type::U64 => Self::Whole(
                all.filter_map(|value| match *value {
                    Value::I64(number) => Some(Ok(number.into())),
                    Value::U64(number) => Some(Ok(number.into())),
                    // No whole number is any other.
                    Value::F64(number) if number.fract() != 0.0 || number.abs() >= 1e38 => None,
                    Value::F64(number) => Some(Ok(number as i128)),
                    ref other => Some(Err(refused(other))),
                })
                .collect::<Result<_>>()?,
            ),
            Type::F64 => Self::Floats(
                all.filter_map(|value| match *value {
                    Value::F64(number) if number.is_nan() => None,
                    Value::F64(number) => Some(Ok(float_bits(number))),
                    Value::I64(number) => Some(Ok(float_bits(number as f64))),
                    Value::U64(number) => Some(Ok(float_bits(number as f64))),
                    ref other => Some(Err(refused(other))),
                })
                .collect::<Result<_>>()?,
            ),
            Type::Timestamp => Self::Times(
                all.map(|value| match *value {
                    Value::Timestamp(micros) => Ok(micros),
                    ref other => Err(refused(other)),
                })
                .collect::<Result<_>>()?,
            ),
            Type::Bool => Self::Bools(
                all.map(|value| match *value {
                    Value::Bool(value) => Ok(value),
                    ref other => Err(refused(other)),
                })
                .collect::<Result<_>>()?,
            ),
        })
    }

    /// Whether it has `value`, which is of its type.
    pub fn has(&self, value: Value<'_>) -> bool {
        match (self, value) {
            (Self::Texts(all), Value::Bytes(bytes)) => all.contains(bytes),
            (Self::Whole(all), Value::I64(number)) => all.contains(&number.into()),
            (Self::Whole(all), Value::U64(number)) => all.contains(&number.into()),
            (Self::Floats(all), Value::F64(number)) => {
                !number.is_nan() && all.contains(&float_bits(number))
            }
            (Self::Times(all), Value::Timestamp(micros)) => all.contains(&micros),
            (Self::Bools(all), Value::Bool(value)) => all.contains(&value),
            _ => false,
        }
    }
}
