//! What expressions come to: their columns found and their types known once, then one record after the other.
//!
//! Whole numbers are reckoned with in 128 bits and must fit their type in the end, so no order of operations matters but where
//! it says so; floats in 64 bits, as IEEE 754 has it.

use std::cmp::Ordering;

use super::aggregate::Owned;
use super::column::{Column, Type, Value};
use super::compute::hash_of;
use super::express::{Binary, EXPR_COUNT_MAX, EXPR_DEPTH_MAX, Expr, Function, Said, Unary};
use super::floats::Floats;
use super::is_in::Set;
use super::lists::list_length;
use super::patterns::Pattern;
use super::texts::Texts;
use super::time;
use super::time_format::TimeFormat;
use super::timed::{Every, Timed};
use super::{find, wrong};
use crate::error::{Error, ErrorKind, Result};

/// An expression of the columns of a table.
#[derive(Clone, Debug)]
pub(super) struct Reckoned {
    node: Node,
    /// What comes out, and whether it may be missing.
    pub kind: Type,
    pub nullable: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    Column(usize),
    Literal(Owned),
    Minus(Box<Node>),
    Abs(Box<Node>),
    Sqrt(Box<Node>),
    Not(Box<Node>),
    IsNull(Box<Node>),
    ListLength(Box<Node>),
    Whole(Binary, Type, Box<[Node; 2]>),
    Float(Binary, Box<[Node; 2]>),
    /// The same where no value may be missing.
    Floats(Floats),
    Compare(Binary, Box<[Node; 2]>),
    /// Whether all are true, or whether one is.
    Logic(bool, Box<[Node; 2]>),
    FillNull(Box<[Node; 2]>),
    IfElse(Box<[Node; 3]>),
    Cast(Type, Box<Node>),
    /// What text says, and whether an empty one says that there is no value.
    Parse(Type, bool, Box<Node>),
    /// What is a time, likewise.
    Timed(Timed, bool, Box<Node>),
    Micros(Box<Node>),
    Hash(u64, Box<Node>),
    Matches(Pattern, Box<Node>),
    IsIn(Set, Box<Node>),
}

impl Reckoned {
    /// That of an expression of the columns of `table`.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a column that is not there, or is not of a type that can be reckoned with so.
    pub fn new(expr: &Expr, table: &[Column]) -> Result<Self> {
        if expr.part_count() > EXPR_COUNT_MAX {
            return Err(wrong(format!(
                "an expression is made of at most {EXPR_COUNT_MAX} others, and this one of {}; with_columns gives one of them a name, \
                 which is computed once",
                expr.part_count()
            )));
        }
        Self::below(EXPR_DEPTH_MAX, expr, table)
    }

    /// The same, of an expression of at most so many others in each other.
    fn below(depth: usize, expr: &Expr, table: &[Column]) -> Result<Self> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(wrong(format!(
                "an expression is made of at most {EXPR_DEPTH_MAX} others in each other; with_columns gives one of them a name"
            )));
        };
        let below = |expr: &Expr| Self::below(depth, expr, table);
        match &expr.0 {
            Said::Column(name) => {
                let at = find(table, name)?;
                Ok(Self {
                    node: Node::Column(at),
                    kind: table[at].kind,
                    nullable: table[at].nullable,
                })
            }
            Said::Literal(value) => {
                let kind = match value.value() {
                    Value::Null => {
                        let cause = "a missing value has no type of its own: it stands beside another one in if_else";
                        return Err(wrong(cause.to_owned()));
                    }
                    Value::Bytes(bytes) if std::str::from_utf8(bytes).is_ok() => Type::String,
                    Value::Bytes(_) => Type::Binary,
                    Value::I64(_) => Type::I64,
                    Value::U64(_) => Type::U64,
                    Value::F64(_) => Type::F64,
                    Value::Bool(_) => Type::Bool,
                    Value::Timestamp(_) => Type::Timestamp,
                };
                Ok(Self {
                    node: Node::Literal(value.clone()),
                    kind,
                    nullable: false,
                })
            }
            Said::Unary(what, of) => below(of)?.unary(*what),
            Said::Binary(what, of) => {
                let [one, other] = &**of;
                below(one)?.binary(*what, below(other)?)
            }
            Said::IfElse(of) => {
                let [condition, then, otherwise] = &**of;
                let condition = below(condition)?.asked_of("if_else", Type::Bool)?;
                let (then, otherwise) = match (then.is_nothing(), otherwise.is_nothing()) {
                    (true, false) => {
                        let otherwise = below(otherwise)?;
                        (otherwise.nothing(), otherwise)
                    }
                    (false, true) => {
                        let then = below(then)?;
                        let otherwise = then.nothing();
                        (then, otherwise)
                    }
                    _ => (below(then)?, below(otherwise)?),
                };
                let nullable = then.nullable || otherwise.nullable;
                let (kind, [then, otherwise]) = then.alike("if_else", otherwise)?;
                Ok(Self {
                    node: Node::IfElse(Box::new([condition.node, then, otherwise])),
                    kind,
                    nullable,
                })
            }
            Said::Cast(kind, of) => below(of)?.cast(*kind),
            Said::Function(function, of) => {
                let name = match &of.0 {
                    Said::Column(name) => Some(&**name),
                    _ => None,
                };
                below(of)?.function(function, name)
            }
            Said::IsIn(of, values) => below(of)?.among(values),
        }
    }

    /// No value, of the type of this one.
    fn nothing(&self) -> Self {
        Self {
            node: Node::Literal(Owned::Plain(Value::Null)),
            kind: self.kind,
            nullable: true,
        }
    }

    /// What a function makes of it, which is a column of this name, or something else.
    fn function(self, function: &Function, name: Option<&str>) -> Result<Self> {
        let (is_fit, wanted) = match function {
            Function::Parse { .. } | Function::Matches(_) => (self.kind.is_bytes(), "text"),
            Function::Micros | Function::Truncate(_) | Function::OffsetBy(_) => {
                (self.kind == Type::Timestamp, "timestamp")
            }
            Function::FromEpoch(_) => (self.is_whole(), "whole number"),
            Function::Hash(_) => (true, "anything"),
        };
        if !is_fit {
            let kind = self.kind.name();
            let of = name.map_or_else(|| format!("what {} takes", function.name()), str::to_owned);
            return Err(wrong(format!("{of} is of type {kind}, and no {wanted}")));
        }
        let mut nullable = self.nullable;
        let of = Box::new(self.node);
        let timed = |timed, of| (Node::Timed(timed, false, of), Type::Timestamp);
        let (node, kind) = match function {
            Function::Parse {
                kind,
                or_null,
                format,
            } => {
                nullable |= or_null;
                let empty_is_null = nullable && !kind.is_bytes();
                let node = match format {
                    Some(format) => {
                        Node::Timed(Timed::Said(TimeFormat::new(format)?), empty_is_null, of)
                    }
                    None => Node::Parse(*kind, empty_is_null, of),
                };
                (node, *kind)
            }
            Function::Micros => (Node::Micros(of), Type::I64),
            Function::FromEpoch(unit) => timed(Timed::FromEpoch(*unit), of),
            Function::Truncate(every) => timed(Timed::Truncate(Every::new(every)?), of),
            Function::OffsetBy(micros) => timed(Timed::OffsetBy(*micros), of),
            Function::Hash(seed) => (Node::Hash(*seed, of), Type::U64),
            Function::Matches(text) => (Node::Matches(Pattern::new(text)?, of), Type::Bool),
        };
        Ok(Self {
            node,
            kind,
            nullable,
        })
    }

    /// Whether it is one of `values`, which are written down.
    fn among(self, values: &[Expr]) -> Result<Self> {
        let value = |one: &'_ Expr| match &one.0 {
            Said::Literal(value) => Some(value.clone()),
            Said::Cast(Type::Binary, of) => match &of.0 {
                Said::Literal(value) => Some(value.clone()),
                _ => None,
            },
            _ => None,
        };
        let values: Option<Vec<Owned>> = values.iter().map(value).collect();
        let values = values.ok_or_else(|| {
            wrong(
                "is_in takes values, and no expressions of columns: | joins conditions".to_owned(),
            )
        })?;
        let values: Vec<Value<'_>> = values.iter().map(Owned::value).collect();
        Ok(Self {
            node: Node::IsIn(Set::new(self.kind, &values)?, Box::new(self.node)),
            kind: Type::Bool,
            nullable: self.nullable,
        })
    }

    fn unary(self, what: Unary) -> Result<Self> {
        let (is_fit, wanted) = match what {
            Unary::Minus | Unary::Abs | Unary::Sqrt => (self.kind.is_number(), "a number"),
            Unary::Not => (self.kind == Type::Bool, "a condition"),
            Unary::IsNull => (true, "anything"),
            Unary::ListLength => (self.kind == Type::Binary, "a list, which is binary"),
        };
        if !is_fit {
            return Err(self.refused(what.symbol(), wanted));
        }
        let one = match what {
            Unary::Sqrt => self.cast(Type::F64)?,
            _ => self,
        };
        let is_float = one.kind == Type::F64 && !one.nullable;
        if is_float && matches!(what, Unary::Minus | Unary::Abs | Unary::Sqrt) {
            return Ok(Self {
                node: Node::Floats(Floats::of_one(what, one.node)),
                ..one
            });
        }
        let of = Box::new(one.node);
        let (node, kind) = match (what, one.kind) {
            (Unary::Minus, Type::F64) => (Node::Minus(of), Type::F64),
            (Unary::Minus, _) => (Node::Minus(of), Type::I64),
            (Unary::Abs, kind) => (Node::Abs(of), kind),
            (Unary::Sqrt, kind) => (Node::Sqrt(of), kind),
            (Unary::Not, _) => (Node::Not(of), Type::Bool),
            (Unary::IsNull, _) => (Node::IsNull(of), Type::Bool),
            (Unary::ListLength, _) => (Node::ListLength(of), Type::U64),
        };
        Ok(Self {
            node,
            kind,
            nullable: one.nullable && what != Unary::IsNull,
        })
    }

    fn binary(self, what: Binary, other: Self) -> Result<Self> {
        let nullable = self.nullable || other.nullable;
        let symbol = what.symbol();
        let (node, kind, nullable) = match what {
            Binary::And | Binary::Or => {
                let one = self.asked_of(symbol, Type::Bool)?;
                let other = other.asked_of(symbol, Type::Bool)?;
                let both = Box::new([one.node, other.node]);
                (Node::Logic(what == Binary::And, both), Type::Bool, nullable)
            }
            Binary::FillNull => {
                let nullable = other.nullable;
                let (kind, both) = self.alike(symbol, other)?;
                (Node::FillNull(Box::new(both)), kind, nullable)
            }
            Binary::Equal
            | Binary::Unequal
            | Binary::Less
            | Binary::AtMost
            | Binary::Greater
            | Binary::AtLeast => {
                let both = self.comparable(symbol, other)?;
                (Node::Compare(what, Box::new(both)), Type::Bool, nullable)
            }
            Binary::Subtract if [self.kind, other.kind] == [Type::Timestamp; 2] => {
                let both = [self, other].map(|time| Node::Micros(Box::new(time.node)));
                (
                    Node::Whole(what, Type::I64, Box::new(both)),
                    Type::I64,
                    nullable,
                )
            }
            Binary::Add
            | Binary::Subtract
            | Binary::Multiply
            | Binary::Divide
            | Binary::FloorDivide
            | Binary::Remainder => {
                if let Some(wrong) = [&self, &other].iter().find(|one| !one.kind.is_number()) {
                    let error = wrong.refused(symbol, "numbers");
                    return Err(match wrong.kind {
                        Type::Timestamp => error.hint("A time is moved by a timedelta (in Rust offset_by), and micros makes a number of it."),
                        _ => error,
                    });
                }
                let (kind, both) = match what {
                    // A quotient is a float of any two numbers, also where neither's type holds both.
                    Binary::Divide => {
                        let both = [self.cast(Type::F64)?.node, other.cast(Type::F64)?.node];
                        (Type::F64, both)
                    }
                    // Between them there may be numbers that their own types do not hold.
                    _ if self.is_whole() && other.is_whole() => self.whole(other),
                    _ => self.alike(symbol, other)?,
                };
                match kind {
                    Type::F64 if !nullable => {
                        let floats = Floats::of_both(what, both);
                        (Node::Floats(floats), Type::F64, nullable)
                    }
                    Type::F64 => (Node::Float(what, Box::new(both)), Type::F64, nullable),
                    _ => (Node::Whole(what, kind, Box::new(both)), kind, nullable),
                }
            }
        };
        Ok(Self {
            node,
            kind,
            nullable,
        })
    }

    fn cast(self, kind: Type) -> Result<Self> {
        let can_be = match kind {
            Type::I64 | Type::U64 | Type::F64 => self.kind.is_number() || self.kind == Type::Bool,
            Type::Binary => self.kind.is_bytes(),
            Type::String => true,
            Type::Bool | Type::Timestamp => self.kind == kind,
        };
        if !can_be {
            let (from, to) = (self.kind.name(), kind.name());
            let instead = match (self.kind, kind) {
                (Type::String | Type::Binary, _) => "what text says tells parse",
                (Type::Timestamp, _) => "micros makes a number of a time",
                (Type::I64 | Type::U64, Type::Timestamp) => "from_epoch makes one",
                (_, Type::Bool) => "a condition, as x != 0, makes one",
                _ => "what text says tells parse",
            };
            let cause = format!("a value of type {from} cannot be one of type {to}; {instead}");
            return Err(wrong(cause));
        }
        Ok(Self {
            node: match kind == self.kind {
                true => self.node,
                false => Node::Cast(kind, Box::new(self.node)),
            },
            kind,
            nullable: self.nullable,
        })
    }

    /// Both as values of one type, and which that is.
    fn alike(mut self, symbol: &str, mut other: Self) -> Result<(Type, [Node; 2])> {
        self.suit(&other);
        other.suit(&self);
        let kind = match (self.kind, other.kind) {
            (one, other) if one == other => one,
            (one, other) if one.is_bytes() && other.is_bytes() => Type::Binary,
            (one, other) if !one.is_number() || !other.is_number() => {
                let (one, other) = (one.name(), other.name());
                return Err(wrong(format!(
                    "{symbol} takes values of one type, and not {one} and {other}"
                )));
            }
            (Type::F64, _) | (_, Type::F64) => Type::F64,
            _ => Type::I64,
        };
        Ok((kind, [self.cast(kind)?.node, other.cast(kind)?.node]))
    }

    fn is_whole(&self) -> bool {
        matches!(self.kind, Type::I64 | Type::U64)
    }

    /// Both of two whole numbers as they are, and the type of what is reckoned with them.
    fn whole(mut self, mut other: Self) -> (Type, [Node; 2]) {
        self.suit(&other);
        other.suit(&self);
        let kind = match self.kind == other.kind {
            true => self.kind,
            false => Type::I64,
        };
        (kind, [self.node, other.node])
    }

    /// Both so that they can be compared: whole numbers with and without a sign are, as they are.
    fn comparable(self, symbol: &str, other: Self) -> Result<[Node; 2]> {
        match self.is_whole() && other.is_whole() {
            true => Ok([self.node, other.node]),
            false => Ok(self.alike(symbol, other)?.1),
        }
    }

    /// Makes of a whole number that was written down one of the type that `other` is of, if that holds it.
    fn suit(&mut self, other: &Self) {
        let Node::Literal(literal) = &self.node else {
            return;
        };
        let suited = match (literal.value(), other.kind) {
            (Value::I64(value), Type::U64) => u64::try_from(value).ok().map(Owned::from),
            (Value::U64(value), Type::I64) => i64::try_from(value).ok().map(Owned::from),
            _ => None,
        };
        if let Some(suited) = suited {
            (self.node, self.kind) = (Node::Literal(suited), other.kind);
        }
    }

    fn asked_of(self, symbol: &str, kind: Type) -> Result<Self> {
        match self.kind == kind {
            true => Ok(self),
            false => Err(self.refused(symbol, "conditions")),
        }
    }

    fn refused(&self, symbol: &str, wanted: &str) -> Error {
        let kind = self.kind.name();
        wrong(format!("{symbol} takes {wanted}, and not type {kind}"))
    }

    /// What it comes to, which borrows from the record, and from `texts` if it is a text that is made.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a number that its type does not hold.
    #[inline]
    pub fn value<'v>(&'v self, record: &[Value<'v>], texts: &'v Texts) -> Result<Value<'v>> {
        self.node.value(record, texts)
    }

    /// Whether it is true.
    ///
    /// # Errors
    /// As [`Reckoned::value`].
    pub fn is_true(&self, record: &[Value<'_>]) -> Result<bool> {
        Ok(self.node.value(record, &Texts::default())? == Value::Bool(true))
    }
}

impl Node {
    pub(super) fn value<'v>(&'v self, record: &[Value<'v>], texts: &'v Texts) -> Result<Value<'v>> {
        Ok(match self {
            Self::Column(at) => record[*at],
            Self::Literal(value) => value.value(),
            Self::Minus(of) => match of.value(record, texts)? {
                Value::F64(value) => Value::F64(one_nan(-value)),
                Value::Null => Value::Null,
                value => fit(Type::I64, whole(value).map(|whole| -whole), || {
                    format!("-({})", shown(value))
                })?,
            },
            Self::Abs(of) => match of.value(record, texts)? {
                Value::F64(value) => Value::F64(value.abs()),
                Value::I64(value) => fit(Type::I64, Some(i128::from(value).abs()), || {
                    format!("abs({value})")
                })?,
                value => value,
            },
            Self::Sqrt(of) => match of.value(record, texts)? {
                Value::F64(value) => Value::F64(one_nan(value.sqrt())),
                _ => Value::Null,
            },
            Self::Not(of) => match of.value(record, texts)? {
                Value::Bool(value) => Value::Bool(!value),
                _ => Value::Null,
            },
            Self::IsNull(of) => Value::Bool(of.value(record, texts)?.is_null()),
            Self::ListLength(of) => match of.value(record, texts)? {
                Value::Null => Value::Null,
                list => Value::U64(list_length(list.bytes())),
            },
            Self::Whole(what, kind, both) => {
                let [one, other] = both_of(both, record, texts)?;
                match (whole(one), whole(other)) {
                    (Some(a), Some(b)) => fit(*kind, of_whole(*what, a, b), || {
                        format!("{} {} {}", shown(one), what.symbol(), shown(other))
                    })?,
                    _ => Value::Null,
                }
            }
            Self::Float(..) => self.float(record)?.map_or(Value::Null, Value::F64),
            Self::Floats(floats) => Value::F64(floats.value(record)?),
            Self::Compare(what, both) => {
                let [one, other] = both_of(both, record, texts)?;
                match one.is_null() || other.is_null() {
                    true => Value::Null,
                    false => Value::Bool(holds(*what, compared(one, other))),
                }
            }
            Self::Logic(all, both) => {
                let decides = Value::Bool(!all);
                let one = both[0].value(record, texts)?;
                if one == decides {
                    return Ok(decides);
                }
                match both[1].value(record, texts)? {
                    other if other == decides || !one.is_null() => other,
                    _ => Value::Null,
                }
            }
            Self::FillNull(both) => match both[0].value(record, texts)? {
                Value::Null => both[1].value(record, texts)?,
                value => value,
            },
            Self::IfElse(of) => match of[0].value(record, texts)? {
                Value::Bool(true) => of[1].value(record, texts)?,
                _ => of[2].value(record, texts)?,
            },
            Self::Cast(Type::String, of) => texts.of(of.value(record, texts)?),
            Self::Cast(kind, of) => cast(*kind, of.value(record, texts)?)?,
            Self::Parse(kind, empty_is_null, of) => match of.value(record, texts)? {
                Value::Null => Value::Null,
                text if *empty_is_null && text.bytes().trim_ascii().is_empty() => Value::Null,
                text => kind.parse(text.bytes())?,
            },
            Self::Timed(timed, empty_is_null, of) => match of.value(record, texts)? {
                Value::Null => Value::Null,
                text if *empty_is_null && text.bytes().trim_ascii().is_empty() => Value::Null,
                value => timed.value(value)?,
            },
            Self::Micros(of) => match of.value(record, texts)? {
                Value::Timestamp(micros) => Value::I64(micros),
                _ => Value::Null,
            },
            Self::Hash(seed, of) => match of.value(record, texts)? {
                Value::Null => Value::Null,
                value => Value::U64(hash_of(value, *seed)),
            },
            Self::Matches(pattern, of) => match of.value(record, texts)? {
                Value::Null => Value::Null,
                text => Value::Bool(pattern.is_in(text.bytes())),
            },
            Self::IsIn(set, of) => match of.value(record, texts)? {
                Value::Null => Value::Null,
                value => Value::Bool(set.has(value)),
            },
        })
    }
}

impl Node {
    /// Its value as a float, without a detour where floats are all there is.
    fn float<'v>(&'v self, record: &[Value<'v>]) -> Result<Option<f64>> {
        match self {
            Self::Column(at) => Ok(float(record[*at])),
            Self::Literal(Owned::Plain(value)) => Ok(float(*value)),
            Self::Cast(Type::F64, of) => of.float(record),
            Self::Floats(floats) => floats.value(record).map(Some),
            Self::Float(what, both) => match (both[0].float(record)?, both[1].float(record)?) {
                (Some(a), Some(b)) => Ok(Some(one_nan(of_floats(*what, a, b)))),
                _ => Ok(None),
            },
            other => Ok(float(other.value(record, &Texts::default())?)),
        }
    }
}

#[inline]
fn both_of<'v>(
    both: &'v [Node; 2],
    record: &[Value<'v>],
    texts: &'v Texts,
) -> Result<[Value<'v>; 2]> {
    Ok([both[0].value(record, texts)?, both[1].value(record, texts)?])
}

fn whole(value: Value<'_>) -> Option<i128> {
    match value {
        Value::I64(value) => Some(value.into()),
        Value::U64(value) => Some(value.into()),
        Value::Bool(value) => Some(value.into()),
        _ => None,
    }
}

#[inline]
pub(super) fn float(value: Value<'_>) -> Option<f64> {
    match value {
        Value::F64(value) => Some(value),
        Value::I64(value) => Some(value as f64),
        Value::U64(value) => Some(value as f64),
        Value::Bool(value) => Some(f64::from(u8::from(value))),
        _ => None,
    }
}

/// A value in words that are not too many.
pub(super) fn shown(value: Value<'_>) -> String {
    match (whole(value), value) {
        (_, Value::Bool(value)) => value.to_string(),
        (Some(whole), _) => whole.to_string(),
        (None, Value::Bytes(text)) => {
            const SHOWN_BYTES: usize = 60;
            let some = &text[..text.len().min(SHOWN_BYTES)];
            format!("{:?}", String::from_utf8_lossy(some))
        }
        (None, Value::F64(value)) => value.to_string(),
        (None, Value::Timestamp(micros)) => {
            let mut text = Vec::new();
            time::write(micros, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        }
        (None, value) => format!("{value:?}"),
    }
}

/// A whole number as a value of type `kind`.
fn fit(kind: Type, number: Option<i128>, what: impl Fn() -> String) -> Result<Value<'static>> {
    let fitting = match kind {
        Type::I64 => number.and_then(|number| i64::try_from(number).ok().map(Value::I64)),
        _ => number.and_then(|number| u64::try_from(number).ok().map(Value::U64)),
    };
    fitting.ok_or_else(|| {
        let cause = format!("{} is no value of type {}", what(), kind.name());
        Error::new(ErrorKind::Input, "computing a column", cause)
    })
}

fn of_whole(what: Binary, one: i128, other: i128) -> Option<i128> {
    match what {
        Binary::Add => one.checked_add(other),
        Binary::Subtract => one.checked_sub(other),
        Binary::Multiply => one.checked_mul(other),
        Binary::FloorDivide | Binary::Remainder if other == 0 => None,
        _ => {
            let (quotient, rest) = (one / other, one % other);
            let is_above = rest != 0 && (rest < 0) != (other < 0);
            Some(match (what, is_above) {
                (Binary::FloorDivide, true) => quotient - 1,
                (Binary::FloorDivide, false) => quotient,
                (_, true) => rest + other,
                (_, false) => rest,
            })
        }
    }
}

/// A float as it is, of all that are no numbers the same one: their bits differ between processors.
pub(super) fn one_nan(value: f64) -> f64 {
    const INFINITY_BITS: u64 = 0x7ff0 << 48;
    const NAN_BITS: u64 = 0x7ff8 << 48;
    // By its bits: where floats are compared, a compiler takes any that is no number, as a root of one below zero, for this one.
    let bits = value.to_bits();
    f64::from_bits(match bits & u64::MAX >> 1 > INFINITY_BITS {
        true => NAN_BITS,
        false => bits,
    })
}

/// Of what is no number any such: [`one_nan`] is still to be asked.
#[inline]
pub(super) fn of_floats(what: Binary, one: f64, other: f64) -> f64 {
    match what {
        Binary::Add => one + other,
        Binary::Subtract => one - other,
        Binary::Multiply => one * other,
        Binary::FloorDivide => divided(one, other).0,
        Binary::Remainder => divided(one, other).1,
        _ => one / other,
    }
}

/// Quotient, rounded down, and remainder, as CPython's `divmod` has them (Objects/floatobject.c): what is left fits the quotient,
/// where the rounded `one / other` may be one too many.
fn divided(one: f64, other: f64) -> (f64, f64) {
    if other == 0.0 {
        return ((one / other).floor(), one % other);
    }
    let (mut rest, mut quotient) = (one % other, (one - one % other) / other);
    if rest == 0.0 {
        rest = 0.0_f64.copysign(other);
    } else if (rest < 0.0) != (other < 0.0) {
        rest += other;
        quotient -= 1.0;
    }
    let whole = quotient.floor();
    let whole = match quotient {
        0.0 => 0.0_f64.copysign(one / other),
        _ if quotient - whole > 0.5 => whole + 1.0,
        _ => whole,
    };
    (whole, rest)
}

/// `None` where one is no number.
fn compared(one: Value<'_>, other: Value<'_>) -> Option<Ordering> {
    match (one, other) {
        (Value::Bytes(one), Value::Bytes(other)) => Some(one.cmp(other)),
        (Value::F64(one), Value::F64(other)) => one.partial_cmp(&other),
        (Value::Timestamp(one), Value::Timestamp(other)) => Some(one.cmp(&other)),
        (Value::U64(one), Value::U64(other)) => Some(one.cmp(&other)),
        (one, other) => whole(one).partial_cmp(&whole(other)),
    }
}

fn holds(what: Binary, compared: Option<Ordering>) -> bool {
    let Some(order) = compared else {
        return what == Binary::Unequal;
    };
    match what {
        Binary::Equal => order.is_eq(),
        Binary::Unequal => order.is_ne(),
        Binary::Less => order.is_lt(),
        Binary::AtMost => order.is_le(),
        Binary::Greater => order.is_gt(),
        _ => order.is_ge(),
    }
}

/// The least float above all numbers of 64 bits.
const U64_END: f64 = (1u128 << 64) as f64;

fn cast(kind: Type, value: Value<'_>) -> Result<Value<'_>> {
    match (kind, value) {
        (_, Value::Null | Value::Bytes(_)) => Ok(value),
        (Type::F64, value) => Ok(float(value).map_or(Value::Null, Value::F64)),
        (Type::U64, Value::F64(number)) if number > -1.0 && number < U64_END => {
            Ok(Value::U64(number as u64))
        }
        (_, Value::F64(number)) => {
            // Beyond 128 bits it stays at their end, which no type here holds.
            let whole = number.is_finite().then_some(number as i128);
            fit(kind, whole, || number.to_string())
        }
        (_, value) => fit(kind, whole(value), || shown(value)),
    }
}

#[cfg(test)]
mod tests;
