//! What is computed of a group: count, sum, least, greatest, mean, first, how many different values, quantiles, texts joined.
//!
//! Values that are missing take no part, as in SQL, but in the number of records and in what is first; of none at all there is
//! no sum, nor anything else but a count.
//!
//! A state takes records, is written, and takes what others wrote, in any order with the same result; what is first is told by
//! where its record came from, and where nobody knows that, by which comes first. Sums are exact: of integers in 128 bits, of
//! floats as [`ExactSum`].

use std::cmp::Ordering;

use sortmill_io::sync::Arc;

use super::column::{Column, Type, Value, corrupt, take};
use super::count_bytes::{COUNT_BYTES_MAX, count_bytes, take_count};
use super::exact::{ExactSum, mean_of_whole};
use super::quantile::Quantile;
use super::reckon::{one_nan, shown};
use super::sketch::Sketch;
use super::steps::Steps;
use super::string_agg::Joined;
use crate::error::{Error, ErrorKind, Result};

mod in_rows;

pub(super) use in_rows::Beside;

/// An aggregate and the name of the column that it makes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Aggregate {
    /// What the column that comes out is called.
    pub name: String,
    kind: Kind,
    column: Option<String>,
    /// What stands between texts that are joined.
    separator: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Count,
    CountValues,
    Sum,
    Min,
    Max,
    Mean,
    First,
    CountDistinct,
    ApproxCountDistinct,
    /// The bits of the fraction.
    Quantile(u64),
    /// The same.
    ApproxQuantile(u64),
    StringAgg {
        is_distinct: bool,
    },
}

fn of(kind: Kind, column: impl Into<String>) -> Aggregate {
    let column = column.into();
    Aggregate {
        name: column.clone(),
        kind,
        column: Some(column),
        separator: String::new(),
    }
}

/// How many records there are, as `count`, a u64.
#[must_use]
pub fn count() -> Aggregate {
    Aggregate {
        name: "count".to_owned(),
        kind: Kind::Count,
        column: None,
        separator: String::new(),
    }
}

/// How many values a column has that are not missing, a u64.
pub fn count_values(column: impl Into<String>) -> Aggregate {
    of(Kind::CountValues, column)
}

/// The sum of a column of numbers, of its type. One that does not fit there is an error.
pub fn sum(column: impl Into<String>) -> Aggregate {
    of(Kind::Sum, column)
}

/// The least value of a column.
pub fn min(column: impl Into<String>) -> Aggregate {
    of(Kind::Min, column)
}

/// The greatest value of a column.
pub fn max(column: impl Into<String>) -> Aggregate {
    of(Kind::Max, column)
}

/// The exact sum of a column of numbers, as a float, over their count.
pub fn mean(column: impl Into<String>) -> Aggregate {
    of(Kind::Mean, column)
}

/// The value that a column has in the first record, in the order of the input, or none where that has none.
pub fn first(column: impl Into<String>) -> Aggregate {
    of(Kind::First, column)
}

/// How many different values a column has, exactly, as a u64. As in keys, floats that are no numbers are one value, and so
/// are 0 and -0. It puts each group in the order of its column; where there are several such columns in an
/// [`agg`](super::Groups::agg), or [`first`] beside one, each record is brought together once for each (`several.rs`).
pub fn count_distinct(column: impl Into<String>) -> Aggregate {
    of(Kind::CountDistinct, column)
}

/// About how many different values a column has, as a u64: with a standard error of 1.6 %, and 4 KiB for each group
/// however many there are. The same for any order of the records (`sketch.rs`).
pub fn approx_count_distinct(column: impl Into<String>) -> Aggregate {
    of(Kind::ApproxCountDistinct, column)
}

/// The value that `fraction` (0 to 1) of a column's numbers lie below, exactly, as an f64; between two numbers, on the line from
/// one to the other. It puts each group in the order of its column, as [`count_distinct`] does; several of one column cost no
/// more than one.
pub fn quantile(column: impl Into<String>, fraction: f64) -> Aggregate {
    of(Kind::Quantile(fraction.to_bits()), column)
}

/// About the value that `fraction` (0 to 1) of a column's numbers lie below, as an f64: to 0.8 % of the number that is nearest in
/// order, where the greatest number is at most a billion times the least and both have one sign, to 1.6 % up to 10^18; just as
/// [`quantile`] where at most 2048 numbers differ. At most 64 KiB for each group, however many there are; the same for any order of the records (`steps.rs`), and combined while they are mapped.
pub fn approx_quantile(column: impl Into<String>, fraction: f64) -> Aggregate {
    of(Kind::ApproxQuantile(fraction.to_bits()), column)
}

/// The texts of a column in the order of their bytes, as often as they are there, with `separator` between each two. It puts each
/// group in that order, as [`count_distinct`] does, so the result does not depend on that of the input. All texts of a group together
/// may have a tenth of the memory over one more than the threads, and a GiB at most, and where several are joined each its part of that; for more there are functions of groups ([`apply_sorted`](super::Groups::apply_sorted)).
pub fn string_agg(column: impl Into<String>, separator: impl Into<String>) -> Aggregate {
    Aggregate {
        separator: separator.into(),
        ..of(Kind::StringAgg { is_distinct: false }, column)
    }
}

/// The same of the different texts, each once.
pub fn string_agg_distinct(column: impl Into<String>, separator: impl Into<String>) -> Aggregate {
    Aggregate {
        kind: Kind::StringAgg { is_distinct: true },
        ..string_agg(column, separator)
    }
}

impl Aggregate {
    /// With another name for the column that comes out.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// What to compute of the records of a table, and the column that comes out.
    pub(super) fn find(&self, table: &[Column]) -> Result<(Computed, Column)> {
        let wrong = |cause: String| Err(Error::new(ErrorKind::Usage, "aggregating", cause));
        let Some(name) = &self.column else {
            let made = Column::new(&*self.name, Type::U64);
            let computed = Computed {
                kind: Kind::Count,
                at: 0,
                name: "".into(),
                of: Type::U64,
                nullable: false,
                leads: false,
                separator: None,
            };
            return Ok((computed, made));
        };
        let at = super::find(table, name)?;
        let (of, nullable) = (table[at].kind, table[at].nullable);
        let of_numbers = matches!(
            self.kind,
            Kind::Sum | Kind::Mean | Kind::Quantile(_) | Kind::ApproxQuantile(_)
        );
        if of_numbers && !of.is_number() {
            let (kind, cause) = (of.name(), "and no number");
            let error = Error::new(
                ErrorKind::Usage,
                "aggregating",
                format!("{name} is of type {kind}, {cause}"),
            );
            return Err(error.hint(match of {
                Type::Bool => "A cast makes 0 and 1 of false and true: with_columns(x=sm.col('x').cast(int)).",
                Type::Timestamp => "micros makes a number of a time, in with_columns.",
                _ => "Say of which type a column is where it is read, or parse says what its text is.",
            }));
        }
        if matches!(self.kind, Kind::StringAgg { .. }) && !of.is_bytes() {
            return wrong(format!("{name} is of type {}, and no text", of.name())).map_err(
                |error| {
                    error.hint("A cast makes text of it: with_columns(x=sm.col('x').cast(str)).")
                },
            );
        }
        let (made, is_count) = match self.kind {
            Kind::Quantile(bits) | Kind::ApproxQuantile(bits) => {
                let fraction = f64::from_bits(bits);
                if !(0.0..=1.0).contains(&fraction) {
                    return wrong(format!("{fraction} is not from 0 to 1"));
                }
                (Type::F64, false)
            }
            Kind::Mean => (Type::F64, false),
            Kind::CountDistinct | Kind::ApproxCountDistinct => (Type::U64, true),
            Kind::Count | Kind::CountValues => (Type::U64, true),
            Kind::Sum | Kind::Min | Kind::Max | Kind::First | Kind::StringAgg { .. } => (of, false),
        };
        let computed = Computed {
            // Where none is missing there are as many as records.
            kind: match self.kind {
                Kind::CountValues if !nullable => Kind::Count,
                kind => kind,
            },
            at,
            name: name.as_str().into(),
            of,
            nullable,
            leads: false,
            separator: matches!(self.kind, Kind::StringAgg { .. })
                .then(|| self.separator.as_bytes().into()),
        };
        let made = Column::new(&*self.name, made).or_null_if(nullable && !is_count);
        Ok((computed, made))
    }
}

/// An aggregate of one column of a table.
#[derive(Clone, Debug)]
pub(super) struct Computed {
    kind: Kind,
    at: usize,
    /// What its column is called.
    name: Arc<str>,
    of: Type,
    /// Whether values may be missing.
    nullable: bool,
    /// Of those that follow the order of the input the first one, whose state says where the record came from: the others'
    /// follow it.
    leads: bool,
    /// What stands between texts that are joined.
    separator: Option<Arc<[u8]>>,
}

impl Computed {
    /// Whether it is how many records there are.
    pub fn is_count(&self) -> bool {
        self.kind == Kind::Count
    }

    /// The column whose values it takes as they come in order.
    pub fn ordered_by(&self) -> Option<usize> {
        let is_ordered = matches!(
            self.kind,
            Kind::CountDistinct | Kind::Quantile(_) | Kind::StringAgg { .. }
        );
        is_ordered.then_some(self.at)
    }

    /// The column that it is of; none of how many records there are.
    pub fn column(&self) -> Option<usize> {
        (self.kind != Kind::Count).then_some(self.at)
    }

    /// The same of values that lie in another column.
    pub fn moved_to(&self, at: usize) -> Self {
        Self { at, ..self.clone() }
    }

    /// Whether it must know how many values there are before they come.
    pub fn needs_counts(&self) -> bool {
        matches!(self.kind, Kind::Quantile(_))
    }

    /// How many of `all` join texts, which may be long.
    pub fn texts_joined(all: &[Self]) -> u64 {
        all.iter().filter(|one| one.separator.is_some()).count() as u64
    }

    /// Whether it follows the order of the input.
    pub fn follows_input(&self) -> bool {
        self.kind == Kind::First
    }

    /// Makes the first of `all` that follow the order of the input lead the others.
    pub fn lead(all: &mut [Self]) {
        if let Some(one) = all.iter_mut().find(|one| one.follows_input()) {
            one.leads = true;
        }
    }

    /// How many values its column has.
    pub fn values_counted(&self) -> Self {
        let kind = match self.nullable {
            true => Kind::CountValues,
            false => Kind::Count,
        };
        Self {
            kind,
            ..self.clone()
        }
    }

    /// The state of no records.
    pub fn begin(&self) -> State {
        match (self.kind, self.of) {
            (Kind::Count | Kind::CountValues, _) => State::Count(0),
            (Kind::Sum | Kind::Mean, Type::F64) => State::Float(Box::default(), 0),
            (Kind::Sum | Kind::Mean, _) => State::Whole(0, 0),
            (Kind::Min | Kind::Max, _) => State::Value(None),
            (Kind::First, _) => State::First(None),
            (Kind::CountDistinct, _) => State::Distinct(0),
            (Kind::ApproxCountDistinct, _) => State::Sketch(Box::default()),
            (Kind::Quantile(bits), _) => {
                State::Quantile(Box::new(Quantile::new(f64::from_bits(bits))))
            }
            (Kind::ApproxQuantile(_), _) => State::Steps(Box::default()),
            (Kind::StringAgg { is_distinct }, _) => {
                let separator = self.separator.as_ref().expect("it has one");
                State::Joined(Box::new(Joined::new(separator, is_distinct)))
            }
        }
    }

    /// The same where texts that are joined may have so many bytes.
    pub fn begin_within(&self, text_bytes: usize) -> State {
        let mut state = self.begin();
        if let State::Joined(joined) = &mut state {
            joined.within(text_bytes);
        }
        state
    }

    /// Whether the value of its column takes no part, because it is missing.
    fn passes_by(&self, record: &[Value<'_>]) -> bool {
        self.nullable
            && record[self.at].is_null()
            && !matches!(self.kind, Kind::Count | Kind::First)
    }

    /// Takes a record.
    pub fn add(&self, state: &mut State, record: &[Value<'_>]) {
        if self.passes_by(record) {
            return;
        }
        match state {
            State::Count(count) => *count += 1,
            State::Whole(sum, count) => {
                *sum += match record[self.at] {
                    Value::I64(value) => i128::from(value),
                    Value::U64(value) => i128::from(value),
                    _ => 0,
                };
                *count += 1;
            }
            State::Float(sum, count) => {
                if let Value::F64(value) = record[self.at] {
                    sum.add(value);
                }
                *count += 1;
            }
            State::Value(held) => self.hold(held, record[self.at]),
            // Records come in the order of the input where there is no table.
            State::First(held @ None) => {
                *held = Some((Spot::default(), Owned::new(record[self.at])));
            }
            State::First(Some(_)) => {}
            // Told when records come in order.
            State::Distinct(_) => {}
            State::Sketch(sketch) => sketch.add(&record[self.at]),
            State::Steps(steps) => steps.add(&record[self.at]),
            State::Quantile(quantile) => {
                quantile.pass(1).expect("it is the only one");
            }
            State::Joined(joined) => joined.pass(1),
        }
    }

    fn hold(&self, held: &mut Option<Owned>, value: Value<'_>) {
        let before = held.as_ref().map_or(Value::Null, Owned::value);
        if self.is_better(&value, &before) {
            *held = Some(Owned::new(value));
        }
    }

    /// Whether a value is to take the place of the least or greatest one so far, if there is one.
    fn is_better(&self, value: &Value<'_>, held: &Value<'_>) -> bool {
        held.is_null()
            || match self.kind {
                Kind::Min => compare(value, held).is_lt(),
                _ => compare(value, held).is_gt(),
            }
    }

    /// Appends what [`Computed::merge`] reads.
    pub fn write(&self, state: &State, to: &mut Vec<u8>) {
        match state {
            State::Count(count) => {
                to.extend_from_slice(count_bytes(*count, &mut [0; COUNT_BYTES_MAX]))
            }
            State::Whole(sum, count) => {
                to.extend(sum.to_le_bytes());
                to.extend(count.to_le_bytes());
            }
            State::Float(sum, count) => {
                sum.write(to);
                to.extend(count.to_le_bytes());
            }
            State::Value(held) => {
                let held = held.as_ref().map_or(Value::Null, Owned::value);
                put_held(self.nullable, &held, to);
            }
            State::First(_) | State::Joined(_) => {
                unreachable!("it is written from a row of a table alone")
            }
            State::Distinct(_) => {}
            State::Sketch(sketch) => sketch.write(to),
            State::Quantile(quantile) => to.extend(quantile.seen().to_le_bytes()),
            State::Steps(steps) => steps.write(to),
        }
    }

    /// Takes what [`Computed::write`] wrote of other records. `None` if that is none. Whether they came before those that it has the
    /// state of is in `is_earlier`, once the one that leads has been here.
    pub fn merge(&self, state: &mut State, from: &mut &[u8], is_earlier: &mut bool) -> Option<()> {
        let number = |from: &mut &[u8]| {
            let bytes = take(from, 8)?.try_into().expect("eight bytes");
            Some(u64::from_le_bytes(bytes))
        };
        match state {
            State::Count(count) => *count = count.checked_add(take_count(from)?)?,
            State::Whole(sum, count) => {
                let bytes = take(from, 16)?.try_into().expect("sixteen bytes");
                *sum = sum.checked_add(i128::from_le_bytes(bytes))?;
                *count = count.checked_add(number(from)?)?;
            }
            State::Float(sum, count) => {
                sum.merge(from)?;
                *count = count.checked_add(number(from)?)?;
            }
            State::Value(held) => {
                let value = self.take_held(from)?;
                if !value.is_null() {
                    self.hold(held, value);
                }
            }
            State::First(held) => {
                let mut spot = Spot::default();
                if self.leads {
                    for part in &mut spot {
                        *part = take_count(from)?;
                    }
                    // Of those whose place nobody knows the one that comes first.
                    *is_earlier = held.as_ref().is_none_or(|(before, _)| spot < *before);
                }
                let value = self.take_held(from)?;
                if *is_earlier {
                    *held = Some((spot, Owned::new(value)));
                }
            }
            State::Distinct(_) => {}
            State::Sketch(sketch) => sketch.merge(from)?,
            State::Quantile(quantile) => quantile.pass(number(from)?)?,
            State::Steps(steps) => steps.merge(from)?,
            State::Joined(joined) => match self.kind {
                Kind::StringAgg { is_distinct: true } => {}
                _ => joined.pass(take_count(from)?),
            },
        }
        Some(())
    }

    /// What [`put_held`] wrote.
    fn take_held<'f>(&self, from: &mut &'f [u8]) -> Option<Value<'f>> {
        match self.nullable && take(from, 1)?[0] == 0 {
            true => Some(Value::Null),
            false => Value::read(self.of, from),
        }
    }

    /// What comes out.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a sum that is no number of its column's type, [`ErrorKind::Memory`] for a text that is too long.
    pub fn value<'s>(&self, state: &'s State) -> Result<Value<'s>> {
        Ok(as_one_nan(match state {
            State::Whole(_, 0) | State::Float(_, 0) if self.nullable => Value::Null,
            State::Count(count) | State::Distinct(count) => Value::U64(*count),
            State::Quantile(quantile) => quantile.value().ok_or_else(corrupt)?,
            State::Steps(steps) => match self.kind {
                Kind::ApproxQuantile(bits) => steps.value(f64::from_bits(bits)),
                _ => return Err(corrupt()),
            },
            State::Sketch(sketch) => Value::U64(sketch.estimate()),
            State::Joined(joined) => joined.value(&self.name)?,
            State::Whole(sum, count) if self.kind == Kind::Mean => {
                Value::F64(mean_of_whole(*sum, *count))
            }
            State::Float(sum, count) if self.kind == Kind::Mean => Value::F64(sum.mean(*count)),
            State::Float(sum, _) => Value::F64(sum.value()),
            State::Whole(sum, _) => {
                let fitting = match self.of {
                    Type::I64 => i64::try_from(*sum).ok().map(Value::I64),
                    _ => u64::try_from(*sum).ok().map(Value::U64),
                };
                fitting.ok_or_else(|| {
                    let (name, of) = (&self.name, self.of.name());
                    let cause = format!("the sum {sum} of column {name} is beyond what {of} holds");
                    Error::new(ErrorKind::Input, "adding up a column", cause)
                })?
            }
            State::Value(held) => held.as_ref().map_or(Value::Null, Owned::value),
            State::First(held) => held
                .as_ref()
                .map_or(Value::Null, |(_, value)| value.value()),
        }))
    }
}

/// A value as it is, of what is no number the same one always: which of two was there first depends on who was faster.
fn as_one_nan(value: Value<'_>) -> Value<'_> {
    match value {
        Value::F64(value) => Value::F64(one_nan(value)),
        value => value,
    }
}

/// An error of the group with these values, which it tells as well.
pub(super) fn in_group<'v>(mut error: Error, group: impl IntoIterator<Item = Value<'v>>) -> Error {
    let values: Vec<String> = group.into_iter().map(shown).collect();
    // All records may be one group, which has no name.
    if !values.is_empty() {
        error.cause += &format!(", in the group {}", values.join(", "));
    }
    error
}

/// What is known so far of a group.
#[derive(Clone, Debug)]
pub(super) enum State {
    Count(u64),
    /// A sum of integers, and how many.
    Whole(i128, u64),
    /// A sum of floats, and how many.
    Float(Box<ExactSum>, u64),
    /// The least or the greatest of the values.
    Value(Option<Owned>),
    /// The value of the first record, and where that came from.
    First(Option<(Spot, Owned)>),
    /// How many values have come that the one before was not.
    Distinct(u64),
    /// What is known of all values.
    Sketch(Box<Sketch>),
    /// What is known of values that come in order.
    Quantile(Box<Quantile>),
    /// How many values lie where.
    Steps(Box<Steps>),
    /// Texts that come in order, one behind the other.
    Joined(Box<Joined>),
}

impl State {
    /// In a group whose records are in the order of the column that such aggregates are of: another value of it comes.
    pub fn next_value(&mut self, value: &Value<'_>) {
        match self {
            Self::Distinct(count) if !value.is_null() => *count += 1,
            Self::Quantile(quantile) => quantile.next(value),
            Self::Joined(joined) => joined.next(value),
            _ => {}
        }
    }

    /// There: so many different values have been counted before.
    pub fn count_values(&mut self, count: u64) {
        if let Self::Distinct(all) = self {
            *all += count;
        }
    }

    /// There: so many values more are to come. `None` if that is too many.
    pub fn expect(&mut self, count: u64) -> Option<()> {
        match self {
            Self::Quantile(quantile) => quantile.expect(count),
            _ => Some(()),
        }
    }
}

/// Where a record came from: its input, the byte there at which what it was made of begins, and how many records were made of
/// that before. In the order of the input; nothing but zeros where nobody knows.
pub(super) type Spot = [u64; 3];

fn put_spot(spot: &[u64], to: &mut Vec<u8>) {
    for &part in spot {
        to.extend_from_slice(count_bytes(part, &mut [0; COUNT_BYTES_MAX]));
    }
}

/// Appends a value that is held, behind a byte that says whether there is one if it may be missing.
fn put_held(nullable: bool, value: &Value<'_>, to: &mut Vec<u8>) {
    if nullable {
        to.push(u8::from(!value.is_null()));
    }
    if !(nullable && value.is_null()) {
        value.write(to);
    }
}

/// A value that is kept.
#[derive(Clone, Debug)]
pub enum Owned {
    /// Bytes of its own.
    Bytes(Vec<u8>),
    /// One that borrows nothing.
    Plain(Value<'static>),
}

impl Owned {
    /// The same value, kept.
    #[must_use]
    pub fn new(value: Value<'_>) -> Self {
        match value {
            Value::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
            Value::Null => Self::Plain(Value::Null),
            Value::I64(value) => Self::Plain(Value::I64(value)),
            Value::U64(value) => Self::Plain(Value::U64(value)),
            Value::F64(value) => Self::Plain(Value::F64(value)),
            Value::Bool(value) => Self::Plain(Value::Bool(value)),
            Value::Timestamp(value) => Self::Plain(Value::Timestamp(value)),
        }
    }

    /// The same of one that tells a group, which knows only one zero.
    #[must_use]
    pub fn of_key(value: Value<'_>) -> Self {
        match value {
            Value::F64(0.0) => Self::Plain(Value::F64(0.0)),
            value => Self::new(value),
        }
    }

    /// The value.
    #[must_use]
    pub fn value(&self) -> Value<'_> {
        match self {
            Self::Bytes(bytes) => Value::Bytes(bytes),
            Self::Plain(value) => *value,
        }
    }
}

/// In the order of keys; of values of one type.
pub(super) fn compare(one: &Value<'_>, other: &Value<'_>) -> Ordering {
    match (*one, *other) {
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Value::I64(a), Value::I64(b)) | (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(&b),
        (Value::U64(a), Value::U64(b)) => a.cmp(&b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(&b),
        // NaN is above all others, and -0 and 0 are told apart, so that it does not matter which came first.
        (Value::F64(a), Value::F64(b)) => match (a.is_nan(), b.is_nan()) {
            (false, false) => a.total_cmp(&b),
            (true, true) => Ordering::Equal,
            (a, b) => a.cmp(&b),
        },
        _ => unreachable!("values of one column are of one type"),
    }
}

/// Aggregates that are one word of any number of records, as they are of one (`words.rs`).
impl Computed {
    /// Whether it is one of those.
    pub fn is_word(&self) -> bool {
        match self.kind {
            _ if self.nullable => false,
            Kind::Count => true,
            Kind::Sum => matches!(self.of, Type::I64 | Type::U64),
            Kind::Min | Kind::Max => !self.of.is_bytes(),
            Kind::CountValues
            | Kind::Mean
            | Kind::First
            | Kind::CountDistinct
            | Kind::ApproxCountDistinct
            | Kind::Quantile(_)
            | Kind::ApproxQuantile(_)
            | Kind::StringAgg { .. } => false,
        }
    }

    /// Whether words are joined by adding them up as numbers without a sign.
    pub fn adds_words(&self) -> bool {
        matches!(
            (&self.kind, self.of),
            (Kind::Count, _) | (Kind::Sum, Type::U64)
        )
    }

    /// The word of one record.
    #[inline]
    pub fn word(&self, record: &[Value<'_>]) -> u64 {
        match self.kind {
            Kind::Count => 1,
            _ => bits(&record[self.at]),
        }
    }

    fn of_bits(&self, bits: u64) -> Value<'static> {
        match self.of {
            Type::I64 => Value::I64(bits as i64),
            Type::U64 => Value::U64(bits),
            Type::F64 => Value::F64(f64::from_bits(bits)),
            Type::Bool => Value::Bool(bits != 0),
            Type::Timestamp => Value::Timestamp(bits as i64),
            Type::Binary | Type::String => unreachable!("text is not kept in words"),
        }
    }

    /// What comes out of all records that a word is of.
    #[inline]
    pub fn of_word(&self, word: u64) -> Value<'static> {
        match self.kind {
            Kind::Count => Value::U64(word),
            _ => as_one_nan(self.of_bits(word)),
        }
    }

    /// The word of all records that two words are of. `None` for a sum that does not fit.
    #[inline]
    pub fn join(&self, one: u64, other: u64) -> Option<u64> {
        match (self.kind, self.of) {
            (Kind::Min | Kind::Max, _) => {
                let order = compare(&self.of_bits(one), &self.of_bits(other));
                Some(match (self.kind == Kind::Min) == order.is_lt() {
                    true => one,
                    false => other,
                })
            }
            (Kind::Sum, Type::I64) => (one as i64).checked_add(other as i64).map(|sum| sum as u64),
            _ => one.checked_add(other),
        }
    }

    /// Adds a word to a state. `None` if that cannot be.
    pub fn merge_word(&self, state: &mut State, word: u64) -> Option<()> {
        match state {
            State::Count(count) => *count = count.checked_add(word)?,
            State::Whole(sum, _) => {
                *sum += match self.of {
                    Type::I64 => i128::from(word as i64),
                    _ => i128::from(word),
                };
            }
            State::Value(held) => self.hold(held, self.of_bits(word)),
            State::Float(..)
            | State::First(_)
            | State::Distinct(_)
            | State::Sketch(_)
            | State::Quantile(_)
            | State::Steps(_)
            | State::Joined(_) => return None,
        }
        Some(())
    }
}

fn bits(value: &Value<'_>) -> u64 {
    match *value {
        Value::I64(value) | Value::Timestamp(value) => value as u64,
        Value::U64(value) => value,
        Value::F64(value) => value.to_bits(),
        Value::Bool(value) => u64::from(value),
        Value::Bytes(_) | Value::Null => unreachable!("text is not kept in words, nor nothing"),
    }
}
