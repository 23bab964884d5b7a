//! Verbs with functions of a Rust program: `map`, `flat_map`, `filter` on records, `apply` on whole groups.
//!
//! A function names the columns that it wants and gets their values as an array, so a closure takes them apart where it
//! begins; the columns that come out are named beside it:
//!
//! ```
//! use sortmill::pipeline::{Form, Type, each, read_text, sum};
//!
//! # fn main() -> sortmill::error::Result<()> {
//! // Lines of an item and its price: what items that cost something bring in, by their first letter.
//! let items = read_text(["shop.txt"], 0).map(
//!     ["line"],
//!     [("letter", Type::String), ("price", Type::I64)],
//!     |[line]| {
//!         let (item, price) = line.text()?.split_once('\t').unwrap_or(("?", "0"));
//!         Ok([item.chars().take(1).collect::<String>().into(), price.parse().unwrap_or(0i64).into()])
//!     },
//! )?;
//! let sold = items.filter(["price"], |[price]| Ok(price.i64()? > 0))?;
//! let pipeline = sold
//!     .group_by(&["letter"])?
//!     .agg(&[sum("price")])?
//!     .write("letters.csv", Form::csv(true))?;
//! # let _ = pipeline;
//! # Ok(())
//! # }
//! ```
//!
//! The functions run in the engine's threads, several at once, on records as they come; what they keep they share.

use sortmill_io::sync::Arc;

use super::aggregate::Owned;
use super::column::{Column, Type, Value};
use super::parts::Parts;
use super::reckon::shown;
use super::verbs::{EachFn, FilterFn, Sink};
use super::{NodeKind, Step, Table};
use crate::error::{Error, ErrorKind, Result};

/// What makes any number of records of one: a built-in verb, or a function ([`each`]).
pub struct FlatMap(Kind);

enum Kind {
    Parts(Parts),
    Each {
        columns: Vec<String>,
        made: Vec<Column>,
        function: EachFn,
    },
}

impl From<&Parts> for FlatMap {
    fn from(parts: &Parts) -> Self {
        Self(Kind::Parts(parts.clone()))
    }
}

/// The records that `function` makes of the values of `columns`: it hands each, of the columns `made`, to its second
/// argument. An error that it answers ends the job, told with the record's place.
pub fn each<const N: usize, const M: usize>(
    columns: [&str; N],
    made: [(&str, Type); M],
    function: impl Fn([Value<'_>; N], Sink<'_>) -> Result<()> + Send + Sync + 'static,
) -> FlatMap {
    FlatMap(Kind::Each {
        columns: columns.map(str::to_owned).to_vec(),
        made: columns_of(made),
        function: Arc::new(move |values, out| function(array(values), out)),
    })
}

impl Table {
    /// For each record those that `function` makes of it, a built-in verb like [`words`](super::words) or one of the
    /// program's own ([`each`]); their columns take the place of all others.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a column that is not there, or no text where a verb cuts text.
    pub fn flat_map(&self, function: impl Into<FlatMap>) -> Result<Self> {
        match function.into().0 {
            Kind::Parts(parts) => self.cut(&parts),
            Kind::Each {
                columns,
                made,
                function,
            } => {
                let names: Vec<&str> = columns.iter().map(String::as_str).collect();
                self.each(&names, made, function)
            }
        }
    }

    /// For each record the one that `function` makes of the values of `columns`, of the columns `made`, which take the place
    /// of all others.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a column that is not there.
    pub fn map<const N: usize, const M: usize>(
        &self,
        columns: [&str; N],
        made: [(&str, Type); M],
        function: impl Fn([Value<'_>; N]) -> Result<[Owned; M]> + Send + Sync + 'static,
    ) -> Result<Self> {
        let each: EachFn = Arc::new(move |values, out| {
            let made = function(array(values))?;
            out(&made.each_ref().map(Owned::value))
        });
        self.each(&columns, columns_of(made), each)
    }

    /// The records for which `function` answers true, of the values of `columns`.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a column that is not there.
    pub fn filter<const N: usize>(
        &self,
        columns: [&str; N],
        function: impl Fn([Value<'_>; N]) -> Result<bool> + Send + Sync + 'static,
    ) -> Result<Self> {
        let at = self.find_all(&columns)?;
        let function: FilterFn = Arc::new(move |values| function(array(values)));
        let step = Step::Filter { at, function };
        self.then("filter".into(), NodeKind::Step(step), self.columns.clone())
    }
}

/// Columns with these names and types.
#[must_use]
pub fn columns_of<const M: usize>(columns: [(&str, Type); M]) -> Vec<Column> {
    columns.map(|(name, kind)| Column::new(name, kind)).to_vec()
}

/// The values of as many columns as were asked for.
#[inline]
fn array<'v, const N: usize>(values: &[Value<'v>]) -> [Value<'v>; N] {
    values.try_into().expect("as many as were asked for")
}

impl<'v> Value<'v> {
    /// The text of a string or of binary that is UTF-8.
    ///
    /// # Errors
    /// [`ErrorKind::Function`] for anything else.
    pub fn text(&self) -> Result<&'v str> {
        match *self {
            Self::Bytes(bytes) => {
                std::str::from_utf8(bytes).map_err(|_| self.is_no("text in UTF-8"))
            }
            _ => Err(self.is_no("text")),
        }
    }

    /// The number of a column of type i64.
    ///
    /// # Errors
    /// [`ErrorKind::Function`] for anything else.
    pub fn i64(&self) -> Result<i64> {
        match *self {
            Self::I64(value) => Ok(value),
            _ => Err(self.is_no("i64")),
        }
    }

    /// The number of a column of type u64.
    ///
    /// # Errors
    /// [`ErrorKind::Function`] for anything else.
    pub fn u64(&self) -> Result<u64> {
        match *self {
            Self::U64(value) => Ok(value),
            _ => Err(self.is_no("u64")),
        }
    }

    /// The number of a column of type f64.
    ///
    /// # Errors
    /// [`ErrorKind::Function`] for anything else.
    pub fn f64(&self) -> Result<f64> {
        match *self {
            Self::F64(value) => Ok(value),
            _ => Err(self.is_no("f64")),
        }
    }

    /// What a column of type bool says.
    ///
    /// # Errors
    /// [`ErrorKind::Function`] for anything else.
    pub fn bool(&self) -> Result<bool> {
        match *self {
            Self::Bool(value) => Ok(value),
            _ => Err(self.is_no("bool")),
        }
    }

    /// The microseconds since 1970 of a column of type timestamp.
    ///
    /// # Errors
    /// [`ErrorKind::Function`] for anything else.
    pub fn timestamp(&self) -> Result<i64> {
        match *self {
            Self::Timestamp(micros) => Ok(micros),
            _ => Err(self.is_no("timestamp")),
        }
    }

    fn is_no(&self, kind: &str) -> Error {
        let cause = format!("{} is no {kind}", told(*self));
        Error::new(ErrorKind::Function, "calling a function", cause)
    }
}

/// A value and of which type it is, in words that are not too many.
pub(super) fn told(value: Value<'_>) -> String {
    let kind = match value {
        Value::Null => return "null".to_owned(),
        Value::Bytes(_) => return shown(value),
        Value::I64(_) => Type::I64,
        Value::U64(_) => Type::U64,
        Value::F64(_) => Type::F64,
        Value::Bool(_) => Type::Bool,
        Value::Timestamp(micros) => return format!("timestamp {micros}"),
    };
    format!("{} {}", kind.name(), shown(value))
}

impl From<&str> for Owned {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}

impl From<String> for Owned {
    fn from(text: String) -> Self {
        Self::Bytes(text.into_bytes())
    }
}

impl From<Vec<u8>> for Owned {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<i64> for Owned {
    fn from(value: i64) -> Self {
        Self::Plain(Value::I64(value))
    }
}

impl From<u64> for Owned {
    fn from(value: u64) -> Self {
        Self::Plain(Value::U64(value))
    }
}

impl From<f64> for Owned {
    fn from(value: f64) -> Self {
        Self::Plain(Value::F64(value))
    }
}

impl Owned {
    /// A point in time, so many microseconds after 1970 began in UTC.
    #[must_use]
    pub fn timestamp(micros: i64) -> Self {
        Self::Plain(Value::Timestamp(micros))
    }
}

impl From<bool> for Owned {
    fn from(value: bool) -> Self {
        Self::Plain(Value::Bool(value))
    }
}
