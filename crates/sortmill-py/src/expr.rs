//! Expressions of columns, as Python's operators build them (`python/sortmill/_express.py`).

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sortmill::pipeline::{self, Binary, EXPR_COUNT_MAX, EXPR_DEPTH_MAX, Type, Unary};

use crate::errors::misused;
use crate::table::{kind, or_null};
use crate::time::micros;

/// What is computed of the values of a record, and of how many others in each other.
#[pyclass(frozen, module = "sortmill._sortmill")]
pub struct Expr(pipeline::Expr, usize);

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
        Self(pipeline::col(name), 1)
    }

    #[staticmethod]
    fn literal(value: Literal) -> Self {
        let literal = match value {
            Literal::Bool(value) => pipeline::lit(value),
            Literal::Signed(value) => pipeline::lit(value),
            Literal::Unsigned(value) => pipeline::lit(value),
            Literal::Float(value) => pipeline::lit(value),
            Literal::Text(value) => pipeline::lit(value),
            // What looks like text is none all the same.
            Literal::Bytes(value) => pipeline::lit(value).cast(Type::Binary),
        };
        Self(literal, 1)
    }

    /// No value.
    #[staticmethod]
    fn null() -> Self {
        Self(pipeline::null(), 1)
    }

    /// The point in time of a `datetime`.
    #[staticmethod]
    fn time(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let time = pipeline::Owned::timestamp(micros(value)?);
        Ok(Self(pipeline::lit(time), 1))
    }

    #[staticmethod]
    fn if_else(py: Python<'_>, condition: &Self, then: &Self, otherwise: &Self) -> PyResult<Self> {
        made_of(
            py,
            [condition, then, otherwise],
            |[condition, then, otherwise]| Ok(pipeline::if_else(condition, then, otherwise)),
        )
    }

    /// What is made of it, by its symbol.
    fn unary(&self, py: Python<'_>, symbol: &str) -> PyResult<Self> {
        let what = Unary::of(symbol).ok_or_else(|| unknown(symbol))?;
        made_of(py, [self], |[one]| Ok(one.unary(what)))
    }

    /// What is made of it and another.
    fn binary(&self, py: Python<'_>, symbol: &str, other: &Self) -> PyResult<Self> {
        let what = Binary::of(symbol).ok_or_else(|| unknown(symbol))?;
        made_of(
            py,
            [self, other],
            |[one, other]| Ok(one.binary(what, other)),
        )
    }

    /// What a function makes of it, by its name: `of` is a type, a pattern, a format or a length of time, `number` a seed or a unit.
    fn function(&self, py: Python<'_>, name: &str, of: &str, number: u64) -> PyResult<Self> {
        made_of(py, [self], |[expr]| {
            Ok(match name {
                "parse" => match or_null(of) {
                    (of, true) => expr.parse(kind(of)?).or_null(),
                    (of, false) => expr.parse(kind(of)?),
                },
                "parse_time" => expr.parse_time(of),
                "micros" => expr.micros(),
                "from_epoch" => expr.from_epoch(number),
                "truncate" => expr.truncate(of),
                "hash" => expr.hash(number),
                "matches" => expr.matches(of),
                _ => return Err(unknown(name)),
            })
        })
    }

    /// What text says, and of an empty one that there is no value.
    fn or_null(&self) -> Self {
        Self(self.0.clone().or_null(), self.1)
    }

    /// So many microseconds later.
    fn offset_by(&self, py: Python<'_>, micros: i64) -> PyResult<Self> {
        made_of(py, [self], |[expr]| Ok(expr.offset_by(micros)))
    }

    /// Whether it is one of several values.
    fn is_in(&self, py: Python<'_>, values: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let values = values.iter().map(|value| value.0.clone());
        made_of(py, [self], |[expr]| Ok(expr.is_in(values)))
    }

    /// The same as a value of another type.
    fn cast(&self, py: Python<'_>, name: &str) -> PyResult<Self> {
        let kind = kind(name)?;
        made_of(py, [self], |[expr]| Ok(expr.cast(kind)))
    }
}

/// What is made of some expressions. Too many in each other are refused while they are built, because what looks into one calls itself
/// once for each; and so is one of too many, since what computes it has each of them as often as it is used.
fn made_of<const N: usize>(
    py: Python<'_>,
    of: [&Expr; N],
    make: impl FnOnce([pipeline::Expr; N]) -> PyResult<pipeline::Expr>,
) -> PyResult<Expr> {
    let depth = 1 + of.iter().map(|one| one.1).max().unwrap_or(0);
    if depth > EXPR_DEPTH_MAX {
        let cause = format!(
            "an expression is made of at most {EXPR_DEPTH_MAX} others in each other; with_columns gives one of them a name, and \
             is_in asks for one of many values"
        );
        return Err(misused(py, cause));
    }
    let made = make(of.map(|one| one.0.clone()))?;
    if made.part_count() > EXPR_COUNT_MAX {
        let cause = format!(
            "an expression is made of at most {EXPR_COUNT_MAX} others, and this one of {}, as one of them is used again and again; \
             with_columns gives that a name, and it is computed once: table = table.with_columns(y=...), and sm.col('y') behind it",
            made.part_count()
        );
        return Err(misused(py, cause));
    }
    Ok(Expr(made, depth))
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
