//! Columns that are computed of others, record by record: values that text says, times, hashes, and what arithmetic makes
//! (`express.rs`). Of no value there is none.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::column::{Column, Type, Value, row};
use super::express::Expr;
use super::reckon::Reckoned;
use super::verbs::Sink;
use super::{find, wrong};
use crate::error::{Error, ErrorKind, Result};

/// What a column is computed of, and how: of one by a function, or of any by an [`Expr`].
#[derive(Clone, Debug)]
pub struct Formula(Of);

#[derive(Clone, Debug)]
enum Of {
    Column {
        column: String,
        how: How,
        /// An empty text says that there is no value.
        or_null: bool,
    },
    Expr(Expr),
}

impl Formula {
    fn new(column: impl Into<String>, how: How) -> Self {
        Self(Of::Column {
            column: column.into(),
            how,
            or_null: false,
        })
    }

    /// That of an expression.
    pub(super) fn of(expr: Expr) -> Self {
        Self(Of::Expr(expr))
    }

    /// The same, where an empty text says that there is no value. That is so anyway of a column that may lack values.
    #[must_use]
    pub fn or_null(mut self) -> Self {
        if let Of::Column { or_null, .. } = &mut self.0 {
            *or_null = true;
        }
        self
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    Parse(Type),
    Timestamp,
    Hash(u64),
}

/// The value of type `kind` that the text of `column` says; a text that says none is bad input.
pub fn parse(column: impl Into<String>, kind: Type) -> Formula {
    Formula::new(column, How::Parse(kind))
}

/// The time that the text of `column` says, as microseconds since 1970-01-01 in UTC, an i64: a date, or date and time, as in
/// RFC 3339 (`2026-11-23T01:30:00.25+01:00`), with a space or a `T` between; without a zone it is UTC. Of the seconds six digits
/// behind the point count. Any other text is bad input.
pub fn timestamp(column: impl Into<String>) -> Formula {
    Formula::new(column, How::Timestamp)
}

/// A hash of the value of `column`, a u64: XXH3 with `seed` of its bytes, of numbers of their 8 bytes, little-endian.
pub fn hash(column: impl Into<String>, seed: u64) -> Formula {
    Formula::new(column, How::Hash(seed))
}

/// The columns of a record that has more, or other ones, than the one that comes in.
#[derive(Clone)]
pub(super) struct With(Vec<From>);

#[derive(Clone)]
enum From {
    Column(usize),
    Computed(usize, How, Column),
    Reckoned(Reckoned, String),
}

impl With {
    /// What has the columns of `table`, and behind them, or in the place of those that are called so, those in `computed`.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a column that is not there, or is no text where text is needed.
    pub fn new(table: &[Column], computed: &[(&str, Formula)]) -> Result<(Self, Vec<Column>)> {
        let mut from: Vec<From> = (0..table.len()).map(From::Column).collect();
        let mut columns = table.to_vec();
        for (name, formula) in computed {
            let (computed, made) = From::new(table, name, &formula.0)?;
            match columns.iter().position(|column| column.name == *name) {
                Some(place) => (from[place], columns[place]) = (computed, made),
                None => {
                    from.push(computed);
                    columns.push(made);
                }
            }
        }
        Ok((Self(from), columns))
    }

    /// Hands the record that `record` becomes to `next`.
    pub fn go(&self, record: &[Value<'_>], next: Sink<'_>) -> Result<()> {
        let get = |number: usize| match &self.0[number] {
            From::Column(at) => Ok(record[*at]),
            From::Computed(at, ..) if record[*at].is_null() => Ok(Value::Null),
            From::Computed(at, How::Parse(_), column) => column.read(record[*at].bytes()),
            From::Computed(at, How::Timestamp, column) => {
                let text = record[*at].bytes();
                if column.is_null(text) {
                    return Ok(Value::Null);
                }
                let micros = micros(text).ok_or_else(|| no_time(column, text))?;
                Ok(Value::I64(micros))
            }
            From::Computed(at, How::Hash(seed), _) => Ok(Value::U64(hash_of(&record[*at], *seed))),
            From::Reckoned(reckoned, name) => reckoned.value(record).map_err(|mut error| {
                error.cause = format!("column {name}: {}", error.cause);
                error
            }),
        };
        row(self.0.len(), get, next)
    }
}

impl From {
    /// What is computed of the columns of `table` as `name`, and the column that comes out.
    fn new(table: &[Column], name: &str, of: &Of) -> Result<(Self, Column)> {
        let (column, how, or_null) = match of {
            Of::Column {
                column,
                how,
                or_null,
            } => (column, *how, *or_null),
            Of::Expr(expr) => {
                let reckoned = Reckoned::new(expr, table)?;
                let made = Column::new(name, reckoned.kind).or_null_if(reckoned.nullable);
                return Ok((Self::Reckoned(reckoned, name.to_owned()), made));
            }
        };
        let at = find(table, column)?;
        let of = table[at].kind;
        let made = match how {
            How::Hash(_) => Type::U64,
            _ if !of.is_bytes() => {
                let cause = format!("{column} is of type {}, and no text", of.name());
                return Err(wrong(cause));
            }
            How::Parse(kind) => kind,
            How::Timestamp => Type::I64,
        };
        let made = Column::new(name, made).or_null_if(table[at].nullable || or_null);
        Ok((Self::Computed(at, how, made.clone()), made))
    }
}

fn no_time(column: &Column, text: &[u8]) -> Error {
    let shown = String::from_utf8_lossy(&text[..text.len().min(60)]);
    let cause = format!("column {}: {shown:?} is no time", column.name);
    Error::new(ErrorKind::Input, "reading a time", cause)
}

fn hash_of(value: &Value<'_>, seed: u64) -> u64 {
    match *value {
        Value::Null => unreachable!("of no value there is none"),
        Value::Bytes(bytes) => xxh3_64_with_seed(bytes, seed),
        Value::I64(value) => xxh3_64_with_seed(&value.to_le_bytes(), seed),
        Value::U64(value) => xxh3_64_with_seed(&value.to_le_bytes(), seed),
        Value::F64(value) => xxh3_64_with_seed(&value.to_le_bytes(), seed),
        Value::Bool(value) => xxh3_64_with_seed(&[u8::from(value)], seed),
    }
}

/// Microseconds since 1970 of a time as RFC 3339 writes it, or with less of it. `None` if it is none.
fn micros(text: &[u8]) -> Option<i64> {
    let mut rest = text.trim_ascii();
    let year = digits(&mut rest, 4)?;
    let month = behind(&mut rest, b'-', 1..=12)?;
    let day = behind(&mut rest, b'-', 1..=days_of(year, month))?;
    let days = days_since_1970(year, month, day);
    let mut seconds = days * 86_400;
    let mut micros = 0;
    if let Some((b'T' | b't' | b' ', time)) = rest.split_first() {
        rest = time;
        let hour = digits(&mut rest, 2).filter(|hour| *hour < 24)?;
        let minute = behind(&mut rest, b':', 0..=59)?;
        let second = behind(&mut rest, b':', 0..=59)?;
        seconds += hour * 3600 + minute * 60 + second;
        if let Some((b'.', fraction)) = rest.split_first() {
            let count = fraction
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            let (fraction, behind) = fraction.split_at(count);
            rest = behind;
            fraction.first()?;
            let digit = |at: usize| i64::from(fraction.get(at).map_or(0, |byte| byte - b'0'));
            micros = (0..6).fold(0, |sum, at| 10 * sum + digit(at));
        }
        seconds -= zone(&mut rest)?;
    }
    rest.is_empty().then_some(seconds * 1_000_000 + micros)
}

/// Seconds that a zone is ahead of UTC: `Z`, `+01:00`, `-0130`, or nothing.
fn zone(rest: &mut &[u8]) -> Option<i64> {
    let Some((&sign, behind_sign)) = rest.split_first() else {
        return Some(0);
    };
    *rest = behind_sign;
    let sign = match sign {
        b'Z' | b'z' => return Some(0),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = digits(rest, 2).filter(|hours| *hours < 24)?;
    *rest = rest.strip_prefix(b":").unwrap_or(rest);
    let minutes = digits(rest, 2).filter(|minutes| *minutes < 60)?;
    Some(sign * (hours * 3600 + minutes * 60))
}

/// The number that just `count` digits make.
fn digits(rest: &mut &[u8], count: usize) -> Option<i64> {
    let (number, behind) = rest.split_at_checked(count)?;
    *rest = behind;
    number.iter().try_fold(0, |sum, byte| {
        byte.is_ascii_digit()
            .then(|| 10 * sum + i64::from(byte - b'0'))
    })
}

/// The number of two digits behind `mark`, if it is one of `allowed`.
fn behind(rest: &mut &[u8], mark: u8, allowed: std::ops::RangeInclusive<i64>) -> Option<i64> {
    *rest = rest.strip_prefix(&[mark])?;
    digits(rest, 2).filter(|number| allowed.contains(number))
}

fn days_of(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 on, by counting years from March (H. Hinnant, chrono-compatible low-level date algorithms).
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `date -u -d ... +%s` says of them, times a million.
    #[test]
    fn times_are_microseconds_since_1970() {
        for (text, wanted) in [
            ("1970-01-01", 0),
            ("1969-12-31T23:59:59Z", -1_000_000),
            ("2000-02-29 12:00:00", 951_825_600_000_000),
            ("2026-11-23T01:30:00.25+01:00", 1_795_393_800_250_000),
            ("2026-11-23T01:30:00.1234567-0030", 1_795_399_200_123_456),
            (" 0001-01-01t00:00:00z ", -62_135_596_800_000_000),
            ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999),
        ] {
            assert_eq!(micros(text.as_bytes()), Some(wanted), "{text}");
        }
        for text in [
            "",
            "2026",
            "2026-13-01",
            "2026-02-29",
            "2026-1-01",
            "2026-01-01T",
            "2026-01-01T24:00:00",
            "2026-01-01T00:60:00",
            "2026-01-01T00:00",
            "2026-01-01T00:00:00.",
            "2026-01-01T00:00:00+1",
            "2026-01-01T00:00:00 x",
            "2026-01-01x",
        ] {
            assert_eq!(micros(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn each_day_follows_the_one_before() {
        let mut days = days_since_1970(1899, 12, 31);
        for year in 1900..2101 {
            for month in 1..=12 {
                for day in 1..=days_of(year, month) {
                    days += 1;
                    assert_eq!(days_since_1970(year, month, day), days);
                }
            }
        }
        assert_eq!(days, 47_846);
    }

    #[test]
    fn columns_are_added_and_replaced() {
        let table = [Column::new("a", Type::String), Column::new("n", Type::I64)];
        let formulas = [
            ("a", parse("a", Type::F64)),
            ("h", hash("a", 3)),
            ("m", hash("n", 3)),
        ];
        let (with, columns) = With::new(&table, &formulas).unwrap();
        let names: Vec<_> = columns.iter().map(|one| (&*one.name, one.kind)).collect();
        let wanted = [
            ("a", Type::F64),
            ("n", Type::I64),
            ("h", Type::U64),
            ("m", Type::U64),
        ];
        assert_eq!(names, wanted);
        let record = [Value::Bytes(b"2.5"), Value::I64(7)];
        let mut seen = 0;
        let mut see = |made: &[Value<'_>]| {
            seen += 1;
            assert_eq!(made[..2], [Value::F64(2.5), Value::I64(7)]);
            assert_eq!(made[2], Value::U64(xxh3_64_with_seed(b"2.5", 3)));
            assert_eq!(
                made[3],
                Value::U64(xxh3_64_with_seed(&7i64.to_le_bytes(), 3))
            );
            Ok(())
        };
        with.go(&record, &mut see).unwrap();
        assert_eq!(seen, 1);
        let table = [
            Column::new("a", Type::String).or_null(),
            Column::new("b", Type::String),
        ];
        let formulas = [
            ("p", parse("a", Type::F64)),
            ("h", hash("a", 3)),
            ("t", timestamp("b").or_null()),
        ];
        let (with, columns) = With::new(&table, &formulas).unwrap();
        let nullable: Vec<_> = columns.iter().map(|one| one.nullable).collect();
        assert_eq!(nullable, [true, false, true, true, true]);
        let none = Value::Null;
        let day = Value::I64(86_400_000_000);
        let hash = Value::U64(xxh3_64_with_seed(b" ", 3));
        for (a, b, wanted) in [
            (none, Value::Bytes(b"1970-01-02"), [none, none, day]),
            (Value::Bytes(b" "), Value::Bytes(b""), [none, hash, none]),
        ] {
            let mut seen = Vec::new();
            let mut see = |made: &[Value<'_>]| {
                seen.push(format!("{:?}", &made[2..]));
                Ok(())
            };
            with.go(&[a, b], &mut see).unwrap();
            assert_eq!(seen, [format!("{wanted:?}")]);
        }
        let strict = [("q", parse("b", Type::I64))];
        let (with, _) = With::new(&table, &strict).unwrap();
        let error = with.go(&[none, Value::Bytes(b"")], &mut |_| Ok(()));
        let cause = error.unwrap_err().cause;
        assert!(cause.contains("column q: \"\" is no value"), "{cause}");
        let table = [Column::new("n", Type::I64)];
        let error = With::new(&table, &[("x", timestamp("n"))]).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Usage);
    }
}
