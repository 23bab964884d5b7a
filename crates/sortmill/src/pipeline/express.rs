//! Columns computed of others by arithmetic: what a program says, as a tree. `reckon.rs` finds the columns and does it.
//!
//! ```
//! use sortmill::pipeline::{Type, col, if_else, read_csv, Column, Csv};
//!
//! # fn main() -> sortmill::error::Result<()> {
//! let columns = vec![Column::new("price", Type::F64), Column::new("count", Type::U64)];
//! let sales = read_csv(["sales.csv"], Csv::default(), columns)?.keep_if(col("count").gt(0))?;
//! let total = col("price") * col("count") * 1.2;
//! let sales = sales.with_columns(&[
//!     ("total", total.clone()),
//!     ("cents", (total * 100).cast(Type::U64)),
//!     ("discount", if_else(col("count").ge(10), 0.1, 0.0)),
//! ])?;
//! # let _ = sales;
//! # Ok(())
//! # }
//! ```

use std::ops;

use sortmill_io::sync::Arc;

use super::aggregate::Owned;
use super::column::{Type, Value};
use super::reckon::Reckoned;
use super::verbs::Step;
use super::{NodeKind, Table, wrong};
use crate::error::Result;

/// What is computed of the values of a record: columns ([`col`]), values ([`lit`]), and what operators and the functions here
/// make of them.
///
/// Whole numbers stay whole and are exact: what a u64, or with an i64 in it an i64, cannot hold is bad input, as is a remainder
/// by 0. Beside a float all are floats, and a quotient (`/`) is always one; floats are reckoned with as IEEE 754 has it, so the
/// same records give the same bytes on every machine. Of no value there is none.
///
/// One that others are made of is theirs and its own: nothing is copied, however often it is used.
#[derive(Clone, Debug)]
pub struct Expr(pub(super) Said, usize);

#[derive(Clone, Debug)]
pub(super) enum Said {
    Column(String),
    Literal(Owned),
    Unary(Unary, Arc<Expr>),
    Binary(Binary, Arc<[Expr; 2]>),
    IfElse(Arc<[Expr; 3]>),
    Cast(Type, Arc<Expr>),
    Function(Function, Arc<Expr>),
    IsIn(Arc<Expr>, Vec<Expr>),
}

/// So many expressions are in each other at most: each takes some of a thread's stack.
pub const EXPR_DEPTH_MAX: usize = 500;

/// An expression is made of so many others at most: one that a loop uses twice each time is twice as many each time.
pub const EXPR_COUNT_MAX: usize = 100_000;

/// What functions make of a value (`compute.rs`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Function {
    /// What text says, of times perhaps in a format of their own; an empty one that there is no value, if `or_null`.
    Parse {
        kind: Type,
        or_null: bool,
        format: Option<String>,
    },
    /// A time as a number.
    Micros,
    /// A number of so many microseconds each as a time.
    FromEpoch(u64),
    /// The beginning of the stretch of this length that a time is in.
    Truncate(String),
    /// So many microseconds later.
    OffsetBy(i64),
    /// Under a seed.
    Hash(u64),
    /// Whether a regular expression is found in it.
    Matches(String),
}

impl Function {
    /// How it is called.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Parse { .. } => "parse",
            Self::Micros => "micros",
            Self::FromEpoch(_) => "from_epoch",
            Self::Truncate(_) => "truncate",
            Self::OffsetBy(_) => "a length of time",
            Self::Hash(_) => "hash",
            Self::Matches(_) => "matches",
        }
    }
}

/// What is made of one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unary {
    /// A number below zero of one above, and the other way round.
    Minus,
    /// A number without its sign.
    Abs,
    /// The square root of a number, a float; of one below zero what is no number.
    Sqrt,
    /// True of false, false of true.
    Not,
    /// Whether there is no value.
    IsNull,
    /// How many numbers a list has that [`super::Groups::pack`] made.
    ListLength,
}

/// What is made of two values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binary {
    /// The sum.
    Add,
    /// The difference; of two times in microseconds, an i64.
    Subtract,
    /// The product.
    Multiply,
    /// The quotient, a float.
    Divide,
    /// The greatest whole number that is not above the quotient.
    FloorDivide,
    /// What is left then, with the sign of the second.
    Remainder,
    /// Whether they are equal.
    Equal,
    /// Whether they are not.
    Unequal,
    /// Whether the first is less; text by its bytes.
    Less,
    /// Whether it is not greater.
    AtMost,
    /// Whether it is greater.
    Greater,
    /// Whether it is not less.
    AtLeast,
    /// Whether both are true: not where one is false, unknown where it depends on one that is missing.
    And,
    /// Whether one is true, likewise.
    Or,
    /// The second where the first is missing.
    FillNull,
}

impl Unary {
    const ALL: [(&'static str, Self); 6] = [
        ("-", Self::Minus),
        ("abs", Self::Abs),
        ("sqrt", Self::Sqrt),
        ("not", Self::Not),
        ("is_null", Self::IsNull),
        ("list_length", Self::ListLength),
    ];

    /// How it is written.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        let found = Self::ALL.into_iter().find(|one| one.1 == self);
        found.map_or("", |one| one.0)
    }

    /// What is written so.
    #[must_use]
    pub fn of(symbol: &str) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|one| one.0 == symbol);
        found.map(|one| one.1)
    }
}

impl Binary {
    const ALL: [(&'static str, Self); 15] = [
        ("+", Self::Add),
        ("-", Self::Subtract),
        ("*", Self::Multiply),
        ("/", Self::Divide),
        ("//", Self::FloorDivide),
        ("%", Self::Remainder),
        ("==", Self::Equal),
        ("!=", Self::Unequal),
        ("<", Self::Less),
        ("<=", Self::AtMost),
        (">", Self::Greater),
        (">=", Self::AtLeast),
        ("and", Self::And),
        ("or", Self::Or),
        ("fill_null", Self::FillNull),
    ];

    /// How it is written.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        let found = Self::ALL.into_iter().find(|two| two.1 == self);
        found.map_or("", |two| two.0)
    }

    /// What is written so.
    #[must_use]
    pub fn of(symbol: &str) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|two| two.0 == symbol);
        found.map(|two| two.1)
    }
}

/// The value of a column.
pub fn col(name: impl Into<String>) -> Expr {
    Expr(Said::Column(name.into()), 1)
}

/// A value, the same in each record. A whole number that is not negative is of type u64 beside others of it, and else i64.
pub fn lit(value: impl Into<Owned>) -> Expr {
    Expr(Said::Literal(value.into()), 1)
}

/// No value, which [`if_else`] takes in place of one of its two: it is of the type of the other.
#[must_use]
pub fn null() -> Expr {
    Expr(Said::Literal(Owned::Plain(Value::Null)), 1)
}

/// The one where `condition` is true, and else, also where that is missing, the other. Only that one is computed.
pub fn if_else(
    condition: impl Into<Expr>,
    then: impl Into<Expr>,
    otherwise: impl Into<Expr>,
) -> Expr {
    let of = [condition.into(), then.into(), otherwise.into()];
    let count = counted(&of);
    Expr(Said::IfElse(Arc::new(of)), count)
}

/// How many numbers the list in `column` has, a u64: one that [`super::Groups::pack`] made.
pub fn list_length(column: impl Into<String>) -> Expr {
    col(column).unary(Unary::ListLength)
}

/// Of how many others one is made of these, itself among them.
fn counted(of: &[Expr]) -> usize {
    of.iter().fold(1, |sum, one| sum.saturating_add(one.1))
}

impl Expr {
    /// Of how many columns, values, operators and functions it is made, each as often as it is used; values of [`Expr::is_in`] are
    /// none. More than [`EXPR_COUNT_MAX`] are refused by what takes it.
    #[must_use]
    pub fn part_count(&self) -> usize {
        self.1
    }

    /// What is made of it alone.
    fn made(self, said: impl FnOnce(Arc<Self>) -> Said) -> Self {
        let count = self.1.saturating_add(1);
        Self(said(Arc::new(self)), count)
    }

    /// What `what` makes of it.
    #[must_use]
    pub fn unary(self, what: Unary) -> Self {
        self.made(|of| Said::Unary(what, of))
    }

    /// What `what` makes of it and another.
    #[must_use]
    pub fn binary(self, what: Binary, other: impl Into<Self>) -> Self {
        let of = [self, other.into()];
        let count = counted(&of);
        Self(Said::Binary(what, Arc::new(of)), count)
    }

    /// Whether it is [`null`].
    pub(super) fn is_nothing(&self) -> bool {
        matches!(self.0, Said::Literal(Owned::Plain(Value::Null)))
    }

    /// What `function` makes of it.
    pub(super) fn function(self, function: Function) -> Self {
        self.made(|of| Said::Function(function, of))
    }

    /// The same as a value of type `kind`: of floats the whole part, of false and true 0 and 1, of anything the text that CSV has. A
    /// number that the type does not hold is bad input. What text says tells [`super::parse`].
    #[must_use]
    pub fn cast(self, kind: Type) -> Self {
        self.made(|of| Said::Cast(kind, of))
    }

    /// [`Unary::Abs`].
    #[must_use]
    pub fn abs(self) -> Self {
        self.unary(Unary::Abs)
    }

    /// [`Unary::Sqrt`].
    #[must_use]
    pub fn sqrt(self) -> Self {
        self.unary(Unary::Sqrt)
    }

    /// [`Unary::IsNull`].
    #[must_use]
    pub fn is_null(self) -> Self {
        self.unary(Unary::IsNull)
    }

    /// [`Binary::FillNull`].
    #[must_use]
    pub fn fill_null(self, other: impl Into<Self>) -> Self {
        self.binary(Binary::FillNull, other)
    }

    /// Whether it is one of `values`, as `==` has it. To look among many takes no longer than among few.
    #[must_use]
    pub fn is_in<E: Into<Self>>(self, values: impl IntoIterator<Item = E>) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        self.made(|of| Said::IsIn(of, values))
    }

    /// [`Binary::FloorDivide`].
    #[must_use]
    pub fn floor_div(self, other: impl Into<Self>) -> Self {
        self.binary(Binary::FloorDivide, other)
    }

    /// [`Binary::Equal`].
    #[must_use]
    pub fn eq(self, other: impl Into<Self>) -> Self {
        self.binary(Binary::Equal, other)
    }

    /// [`Binary::Unequal`].
    #[must_use]
    pub fn ne(self, other: impl Into<Self>) -> Self {
        self.binary(Binary::Unequal, other)
    }

    /// [`Binary::Less`].
    #[must_use]
    pub fn lt(self, other: impl Into<Self>) -> Self {
        self.binary(Binary::Less, other)
    }

    /// [`Binary::AtMost`].
    #[must_use]
    pub fn le(self, other: impl Into<Self>) -> Self {
        self.binary(Binary::AtMost, other)
    }

    /// [`Binary::Greater`].
    #[must_use]
    pub fn gt(self, other: impl Into<Self>) -> Self {
        self.binary(Binary::Greater, other)
    }

    /// [`Binary::AtLeast`].
    #[must_use]
    pub fn ge(self, other: impl Into<Self>) -> Self {
        self.binary(Binary::AtLeast, other)
    }
}

impl ops::Neg for Expr {
    type Output = Self;

    fn neg(self) -> Self {
        self.unary(Unary::Minus)
    }
}

impl ops::Not for Expr {
    type Output = Self;

    fn not(self) -> Self {
        self.unary(Unary::Not)
    }
}

/// Operators with an expression on the left, which may be borrowed, and with a number there.
macro_rules! operators {
    ($($operator:ident $method:ident $binary:ident: $($number:ty)*;)*) => {$(
        impl<E: Into<Expr>> ops::$operator<E> for Expr {
            type Output = Expr;

            fn $method(self, other: E) -> Expr {
                self.binary(Binary::$binary, other)
            }
        }

        impl<E: Into<Expr>> ops::$operator<E> for &Expr {
            type Output = Expr;

            fn $method(self, other: E) -> Expr {
                self.clone().binary(Binary::$binary, other)
            }
        }

        $(impl ops::$operator<Expr> for $number {
            type Output = Expr;

            fn $method(self, other: Expr) -> Expr {
                Expr::from(self).binary(Binary::$binary, other)
            }
        })*
    )*};
}

operators! {
    Add add Add: f64 i64;
    Sub sub Subtract: f64 i64;
    Mul mul Multiply: f64 i64;
    Div div Divide: f64 i64;
    Rem rem Remainder: f64 i64;
    BitAnd bitand And:;
    BitOr bitor Or:;
}

/// Values that are what an expression is of.
macro_rules! literals {
    ($($kind:ty)*) => {$(
        impl From<$kind> for Expr {
            fn from(value: $kind) -> Self {
                lit(value)
            }
        }
    )*};
}

literals!(f64 i64 u64 bool &str String Vec<u8>);

impl From<&Expr> for Expr {
    fn from(expr: &Expr) -> Self {
        expr.clone()
    }
}

impl From<i32> for Expr {
    fn from(value: i32) -> Self {
        lit(i64::from(value))
    }
}

impl Table {
    /// The records for which `condition` is true; not those for which it is missing.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Usage`] for a column that is not there, and what is no condition.
    pub fn keep_if(&self, condition: Expr) -> Result<Self> {
        let condition = Reckoned::new(&condition, &self.columns)?;
        if condition.kind != Type::Bool {
            let cause = format!("it is of type {}, and no condition", condition.kind.name());
            return Err(wrong(cause));
        }
        let step = NodeKind::Step(Step::KeepIf(condition));
        self.then("keep if".into(), step, self.columns.clone())
    }
}
