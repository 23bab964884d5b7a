//! Columns that are computed of others, record by record: expressions (`express.rs`), among them values that text says, times,
//! hashes, and whether a regular expression is found. Of no value there is none.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::column::{Column, Type, Value, row};
use super::express::{Expr, Function, Said, col};
use super::reckon::{Reckoned, one_nan};
use super::texts::Texts;
use super::verbs::Sink;
use crate::error::Result;

/// The value of type `kind` that the text of `column` says; a text that says none is bad input.
pub fn parse(column: impl Into<String>, kind: Type) -> Expr {
    col(column).parse(kind)
}

/// The point in time that the text of `column` says, a timestamp: a date, or date and time, as in RFC 3339
/// (`2026-11-23T01:30:00.25+01:00`), with a space or a `T` between; without a zone it is UTC. Of the seconds six digits
/// behind the point count. Any other text is bad input. The same as [`parse`] with [`Type::Timestamp`].
pub fn timestamp(column: impl Into<String>) -> Expr {
    parse(column, Type::Timestamp)
}

/// The timestamp in `column` as a number, an i64: microseconds since 1970-01-01 in UTC.
pub fn micros(column: impl Into<String>) -> Expr {
    col(column).micros()
}

/// A hash of the value of `column`, a u64: XXH3 with `seed` of its bytes, of numbers of their 8 bytes, little-endian. What is one value
/// as a key has one: -0 that of 0, and floats that are no numbers the same.
pub fn hash(column: impl Into<String>, seed: u64) -> Expr {
    col(column).hash(seed)
}

impl Expr {
    /// [`parse`] of any expression.
    #[must_use]
    pub fn parse(self, kind: Type) -> Self {
        self.function(Function::Parse {
            kind,
            or_null: false,
            format: None,
        })
    }

    /// Of [`parse`], [`timestamp`] and [`Expr::parse_time`] the same, where an empty text says that there is no value; that is so anyway of what may lack
    /// values. Of anything else it changes nothing.
    #[must_use]
    pub fn or_null(mut self) -> Self {
        if let Said::Function(Function::Parse { or_null, .. }, _) = &mut self.0 {
            *or_null = true;
        }
        self
    }

    /// [`micros`] of any expression.
    #[must_use]
    pub fn micros(self) -> Self {
        self.function(Function::Micros)
    }

    /// [`hash`] of any expression.
    #[must_use]
    pub fn hash(self, seed: u64) -> Self {
        self.function(Function::Hash(seed))
    }

    /// Whether the regular expression `pattern` is found in it, which is text or bytes: what [`super::matches`] asks of a column.
    #[must_use]
    pub fn matches(self, pattern: impl Into<String>) -> Self {
        self.function(Function::Matches(pattern.into()))
    }
}

/// The columns of a record that has more, or other ones, than the one that comes in.
#[derive(Clone)]
pub(super) struct With(Vec<From>);

#[derive(Clone)]
enum From {
    Column(usize),
    Reckoned(Reckoned, String),
}

impl With {
    /// What has the columns of `table`, and behind them, or in the place of those that are called so, those in `computed`.
    ///
    /// # Errors
    /// As [`Reckoned::new`].
    pub fn new(table: &[Column], computed: &[(&str, Expr)]) -> Result<(Self, Vec<Column>)> {
        let mut from: Vec<From> = (0..table.len()).map(From::Column).collect();
        let mut columns = table.to_vec();
        for (name, expr) in computed {
            let reckoned = Reckoned::new(expr, table)?;
            let made = Column::new(*name, reckoned.kind).or_null_if(reckoned.nullable);
            let computed = From::Reckoned(reckoned, (*name).to_owned());
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

    /// Where column `at` is in it, if its values are there as they were.
    pub fn keeps(&self, at: usize) -> Option<usize> {
        let mut from = self.0.iter();
        from.position(|from| matches!(from, From::Column(column) if *column == at))
    }

    /// Hands the record that `record` becomes to `next`.
    pub fn go(&self, record: &[Value<'_>], next: Sink<'_>) -> Result<()> {
        let texts = Texts::default();
        let get = |number: usize| match &self.0[number] {
            From::Column(at) => Ok(record[*at]),
            From::Reckoned(reckoned, name) => {
                reckoned.value(record, &texts).map_err(|mut error| {
                    error.cause = format!("column {name}: {}", error.cause);
                    error
                })
            }
        };
        row(self.0.len(), get, next)
    }
}

/// The hash of a value that is there.
pub(super) fn hash_of(value: Value<'_>, seed: u64) -> u64 {
    match value {
        Value::Null => unreachable!("of no value there is none"),
        Value::Bytes(bytes) => xxh3_64_with_seed(bytes, seed),
        Value::I64(value) | Value::Timestamp(value) => {
            xxh3_64_with_seed(&value.to_le_bytes(), seed)
        }
        Value::U64(value) => xxh3_64_with_seed(&value.to_le_bytes(), seed),
        Value::F64(0.0) => xxh3_64_with_seed(&0.0_f64.to_le_bytes(), seed),
        Value::F64(value) => xxh3_64_with_seed(&one_nan(value).to_le_bytes(), seed),
        Value::Bool(value) => xxh3_64_with_seed(&[u8::from(value)], seed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

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
        let day = Value::Timestamp(86_400_000_000);
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
        let error = error.unwrap_err();
        let cause = &error.cause;
        assert!(cause.contains("column q: \"\" is no value"), "{cause}");
        let table = [
            Column::new("n", Type::I64),
            Column::new("t", Type::Timestamp).or_null(),
        ];
        for formula in [timestamp("n"), micros("n"), parse("t", Type::I64)] {
            let error = With::new(&table, &[("x", formula)]).err().unwrap();
            assert_eq!(error.kind, ErrorKind::Usage);
        }
        let (with, columns) = With::new(&table, &[("t", micros("t"))]).unwrap();
        assert_eq!(columns[1].type_name(), "i64?");
        for (value, wanted) in [(none, none), (Value::Timestamp(-5), Value::I64(-5))] {
            let mut see = |made: &[Value<'_>]| {
                assert_eq!(made[1], wanted);
                Ok(())
            };
            with.go(&[Value::I64(0), value], &mut see).unwrap();
        }
    }
}
