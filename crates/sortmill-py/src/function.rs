//! Functions of the user's of a group's records, and records as Python has them.
//!
//! A record comes as a dictionary. A function answers a record, as a dictionary or, of one column, the value alone; `None`
//! is no record. Functions of groups run in this process, on an interpreter with a GIL one at a time; `batched.rs` has all
//! others.

use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use sortmill::error::{Error, ErrorKind, Result};
use sortmill::io::sync::{Arc, lock};
use sortmill::pipeline::{Column, MakeGroupFn, Owned, Type, Value};

use crate::work::Raised;

/// A function and what goes in.
pub struct Function {
    pub function: Py<PyAny>,
    pub columns: Vec<Column>,
    pub raised: Raised,
}

impl Function {
    /// Makes one record of each group: of its first two, of that and the third, and so on.
    pub fn reduce(self) -> MakeGroupFn {
        let function = Arc::new(self);
        Arc::new(move || {
            let function = Arc::clone(&function);
            let mut sum: Option<Py<PyAny>> = None;
            Box::new(move |values, out| {
                Python::attach(|py| {
                    let failed = |error| function.failed(py, error);
                    let Some(values) = values else {
                        let made = sum.take().expect("a group has a record");
                        let made = record(&function.columns, made.bind(py)).map_err(failed)?;
                        return out(&made.iter().map(Owned::value).collect::<Vec<_>>());
                    };
                    let next = function.record(py, values)?;
                    sum = Some(match sum.take() {
                        None => next.into_any().unbind(),
                        Some(sum) => {
                            let made = function.function.bind(py).call1((sum, next));
                            made.map_err(failed)?.unbind()
                        }
                    });
                    Ok(())
                })
            })
        })
    }

    /// The record that a function gets.
    pub fn record<'py>(&self, py: Python<'py>, values: &[Value<'_>]) -> Result<Bound<'py, PyDict>> {
        record_dict(py, &self.columns, values)
    }

    /// Keeps the exception, if it is the first, and tells of it.
    pub fn failed(&self, py: Python<'_>, error: PyErr) -> Error {
        let cause = error.to_string();
        lock(&self.raised).get_or_insert_with(|| error.clone_ref(py));
        Error::new(ErrorKind::Function, "calling a Python function", cause)
    }
}

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
    };
    Ok(Owned::Plain(plain))
}
