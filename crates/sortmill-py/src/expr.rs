//! Expressions of columns, as Python's operators build them (`python/sortmill/_express.py`).

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sortmill::pipeline::{self, Binary, Type, Unary};

use crate::table::{kind, or_null};
use crate::time::micros;

/// What is computed of the values of a record.
#[pyclass(frozen, module = "sortmill._sortmill")]
pub struct Expr(pipeline::Expr);

/// A value that is written down.
#[derive(FromPyObject)]
enum Literal {
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
}

#[pymethods]
impl Expr {
    #[staticmethod]
    fn column(name: &str) -> Self {
        Self(pipeline::col(name))
    }

    #[staticmethod]
    fn literal(value: Literal) -> Self {
        Self(match value {
            Literal::Bool(value) => pipeline::lit(value),
            Literal::Signed(value) => pipeline::lit(value),
            Literal::Unsigned(value) => pipeline::lit(value),
            Literal::Float(value) => pipeline::lit(value),
            Literal::Text(value) => pipeline::lit(value),
            // What looks like text is none all the same.
            Literal::Bytes(value) => pipeline::lit(value).cast(Type::Binary),
        })
    }

    /// No value.
    #[staticmethod]
    fn null() -> Self {
        Self(pipeline::null())
    }

    /// The point in time of a `datetime`.
    #[staticmethod]
    fn time(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let time = pipeline::Owned::timestamp(micros(value)?);
        Ok(Self(pipeline::lit(time)))
    }

    #[staticmethod]
    fn if_else(condition: &Self, then: &Self, otherwise: &Self) -> Self {
        let [condition, then, otherwise] = [condition, then, otherwise].map(|one| one.0.clone());
        Self(pipeline::if_else(condition, then, otherwise))
    }

    /// What is made of it, by its symbol.
    fn unary(&self, symbol: &str) -> PyResult<Self> {
        let what = Unary::of(symbol).ok_or_else(|| unknown(symbol))?;
        Ok(Self(self.0.clone().unary(what)))
    }

    /// What is made of it and another.
    fn binary(&self, symbol: &str, other: &Self) -> PyResult<Self> {
        let what = Binary::of(symbol).ok_or_else(|| unknown(symbol))?;
        Ok(Self(self.0.clone().binary(what, other.0.clone())))
    }

    /// What a function makes of it, by its name: `of` is a type or a pattern.
    fn function(&self, name: &str, of: &str, seed: u64) -> PyResult<Self> {
        let expr = self.0.clone();
        Ok(Self(match name {
            "parse" => match or_null(of) {
                (of, true) => expr.parse(kind(of)?).or_null(),
                (of, false) => expr.parse(kind(of)?),
            },
            "micros" => expr.micros(),
            "hash" => expr.hash(seed),
            "matches" => expr.matches(of),
            _ => return Err(unknown(name)),
        }))
    }

    /// The same as a value of another type.
    fn cast(&self, name: &str) -> PyResult<Self> {
        Ok(Self(self.0.clone().cast(kind(name)?)))
    }
}

impl Expr {
    /// The same for the engine.
    pub fn expr(&self) -> pipeline::Expr {
        self.0.clone()
    }
}

fn unknown(symbol: &str) -> PyErr {
    PyValueError::new_err(format!("nothing is written {symbol:?}"))
}
