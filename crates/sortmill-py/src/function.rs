//! Records as Python has them.
//!
//! A record comes as a dictionary. A function answers a record, as a dictionary or, of one column, the value alone; `None`
//! is no record.

use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyIterator, PyString};
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
                let text = std::str::from_utf8(bytes).map_err(|_| not_text(column))?;
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

fn not_text(column: &Column) -> Error {
    let cause = format!("{} is not UTF-8, and a str in Python is", column.name);
    Error::new(ErrorKind::Input, DOING, cause).hint(column.as_bytes_hint())
}

/// The records that a function answered which makes any number of them.
pub fn answered<'py>(
    made: &[Column],
    answer: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyIterator>> {
    let found = answer.get_type().name()?.to_string();
    // These would be iterated over, too: by their keys and letters.
    let is_one = answer.is_instance_of::<PyDict>()
        || answer.is_instance_of::<PyString>()
        || answer.is_instance_of::<PyBytes>();
    match answer.try_iter() {
        Ok(iterator) if !is_one => Ok(iterator),
        Err(error) if !error.is_instance_of::<PyTypeError>(answer.py()) => Err(error),
        _ => Err(expected(made, &found)),
    }
}

fn expected(made: &[Column], found: &str) -> PyErr {
    let wanted = match made {
        [only] => format!("dictionaries or values of column {}", only.name),
        _ => "dictionaries".to_owned(),
    };
    PyTypeError::new_err(format!(
        "the function made a {found}, and any number of records is expected: a list of {wanted}, or what yields them"
    ))
}

/// The record that a function answered.
pub fn record(made: &[Column], answer: &Bound<'_, PyAny>) -> PyResult<Vec<Owned>> {
    if let Ok(dict) = answer.cast::<PyDict>() {
        let value = |column: &Column| {
            let found = dict.get_item(&column.name)?;
            let missing = || PyKeyError::new_err(format!("the function made no {:?}", column.name));
            typed(column, &found.ok_or_else(missing)?)
        };
        let values = made.iter().map(value).collect::<PyResult<Vec<Owned>>>()?;
        if dict.len() > made.len() {
            return Err(too_many(made, dict));
        }
        return Ok(values);
    }
    match made {
        [only] => Ok(vec![typed(only, answer)?]),
        _ => {
            let (found, names) = (answer.get_type().name()?, names(made));
            Err(PyTypeError::new_err(format!(
                "the function made a {found}, and a record of several columns is a dictionary of {names}"
            )))
        }
    }
}

/// A dictionary has all columns that are made, and others.
fn too_many(made: &[Column], dict: &Bound<'_, PyDict>) -> PyErr {
    let is_known = |name: &Bound<'_, PyAny>| {
        let name = name.extract::<String>();
        name.is_ok_and(|name| made.iter().any(|column| column.name == name))
    };
    let other = dict.keys().iter().find(|name| !is_known(name));
    let name = other.map_or_else(String::new, |name| name.to_string());
    PyKeyError::new_err(format!(
        "the function made a column {name} too many: those that come out are {}",
        names(made)
    ))
}

fn names(of: &[Column]) -> String {
    let names: Vec<&str> = of.iter().map(|column| &*column.name).collect();
    names.join(", ")
}

/// A value of a column's type, or an exception that names the column.
pub fn typed(column: &Column, from: &Bound<'_, PyAny>) -> PyResult<Owned> {
    value(column, from).map_err(|error| {
        let (name, kind) = (&column.name, column.type_name());
        let missing = match from.is_none() {
            true => "; where values may be missing the type says so, as int | None",
            false => "",
        };
        let told =
            PyTypeError::new_err(format!("column {name} is of type {kind}: {error}{missing}"));
        told.set_cause(from.py(), Some(error));
        told
    })
}

/// A value of the column's type, or none, which is `None`.
fn value(column: &Column, from: &Bound<'_, PyAny>) -> PyResult<Owned> {
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
