//! Records as Python has them.
//!
//! A record comes as a dictionary. A function answers a record, as a dictionary or, of one column, the value alone; `None`
//! is no record.

use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use sortmill::error::{Error, ErrorKind, Result};
use sortmill::pipeline::{Column, Owned, Type, Value};

use crate::time::{datetime, micros};

const DOING: &str = "making a record of Python's";

/// A record as a dictionary.
pub fn record_dict<'py>(
    py: Python<'py>,
    columns: &[Column],
    values: &[Value<'_>],
) -> Result<Bound<'py, PyDict>> {
    let record = PyDict::new(py);
    for (column, value) in columns.iter().zip(values) {
        let set = match *value {
            Value::Null => record.set_item(&column.name, py.None()),
            Value::Bytes(bytes) if column.kind == Type::String => {
                let text = std::str::from_utf8(bytes).map_err(|_| not_text(&column.name))?;
                record.set_item(&column.name, PyString::new(py, text))
            }
            Value::Bytes(bytes) => record.set_item(&column.name, PyBytes::new(py, bytes)),
            Value::I64(value) => record.set_item(&column.name, value),
            Value::U64(value) => record.set_item(&column.name, value),
            Value::F64(value) => record.set_item(&column.name, value),
            Value::Bool(value) => record.set_item(&column.name, value),
            Value::Timestamp(micros) => {
                datetime(py, micros).and_then(|time| record.set_item(&column.name, time))
            }
        };
        set.map_err(|error| Error::new(ErrorKind::Function, DOING, error.to_string()))?;
    }
    Ok(record)
}

fn not_text(column: &str) -> Error {
    let cause = format!("{column} is not UTF-8, and a str in Python is");
    Error::new(ErrorKind::Input, DOING, cause)
}

/// The record that a function answered.
pub fn record(made: &[Column], answer: &Bound<'_, PyAny>) -> PyResult<Vec<Owned>> {
    if let Ok(dict) = answer.cast::<PyDict>() {
        let value = |column: &Column| {
            let found = dict.get_item(&column.name)?;
            let missing = || PyKeyError::new_err(format!("the function made no {:?}", column.name));
            value(column, &found.ok_or_else(missing)?)
        };
        return made.iter().map(value).collect();
    }
    match made {
        [only] => Ok(vec![value(only, answer)?]),
        _ => Err(PyTypeError::new_err("the function made no dictionary")),
    }
}

/// A value of the column's type, or none, which is `None`.
pub fn value(column: &Column, from: &Bound<'_, PyAny>) -> PyResult<Owned> {
    if column.nullable && from.is_none() {
        return Ok(Owned::Plain(Value::Null));
    }
    let plain = match column.kind {
        Type::String => return Ok(Owned::Bytes(from.extract::<String>()?.into_bytes())),
        Type::Binary => return Ok(Owned::Bytes(from.extract::<Vec<u8>>()?)),
        Type::I64 => Value::I64(from.extract()?),
        Type::U64 => Value::U64(from.extract()?),
        Type::F64 => Value::F64(from.extract()?),
        Type::Bool => Value::Bool(from.extract()?),
        Type::Timestamp => Value::Timestamp(micros(from)?),
    };
    Ok(Owned::Plain(plain))
}
