//! Columns that are computed of others, record by record: values that text says, times, hashes, and what arithmetic makes
//! (`express.rs`). Of no value there is none.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::column::{Column, Type, Value, row};
use super::express::Expr;
use super::reckon::Reckoned;
use super::verbs::Sink;
use super::{find, wrong};
use crate::error::Result;

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
    Micros,
    Hash(u64),
}

/// The value of type `kind` that the text of `column` says; a text that says none is bad input.
pub fn parse(column: impl Into<String>, kind: Type) -> Formula {
    Formula::new(column, How::Parse(kind))
}

/// The point in time that the text of `column` says, a timestamp: a date, or date and time, as in RFC 3339
/// (`2026-11-23T01:30:00.25+01:00`), with a space or a `T` between; without a zone it is UTC. Of the seconds six digits
/// behind the point count. Any other text is bad input. The same as [`parse`] with [`Type::Timestamp`].
pub fn timestamp(column: impl Into<String>) -> Formula {
    parse(column, Type::Timestamp)
}

/// The timestamp in `column` as a number, an i64: microseconds since 1970-01-01 in UTC.
pub fn micros(column: impl Into<String>) -> Formula {
    Formula::new(column, How::Micros)
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
            From::Computed(at, How::Micros, _) => Ok(Value::I64(match record[*at] {
                Value::Timestamp(micros) => micros,
                other => unreachable!("{other:?} is no timestamp"),
            })),
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
            How::Parse(kind) if of.is_bytes() => kind,
            How::Micros if of == Type::Timestamp => Type::I64,
            How::Parse(_) | How::Micros => {
                let wanted = match how {
                    How::Micros => "timestamp",
                    _ => "text",
                };
                let of = of.name();
                return Err(wrong(format!("{column} is of type {of}, and no {wanted}")));
            }
        };
        let made = Column::new(name, made).or_null_if(table[at].nullable || or_null);
        Ok((Self::Computed(at, how, made.clone()), made))
    }
}

fn hash_of(value: &Value<'_>, seed: u64) -> u64 {
    match *value {
        Value::Null => unreachable!("of no value there is none"),
        Value::Bytes(bytes) => xxh3_64_with_seed(bytes, seed),
        Value::I64(value) | Value::Timestamp(value) => {
            xxh3_64_with_seed(&value.to_le_bytes(), seed)
        }
        Value::U64(value) => xxh3_64_with_seed(&value.to_le_bytes(), seed),
        Value::F64(value) => xxh3_64_with_seed(&value.to_le_bytes(), seed),
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
