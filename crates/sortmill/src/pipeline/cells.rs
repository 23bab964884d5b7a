//! Where in a record the values of its columns lie: of a line, of CSV, of JSON, of a fixed size, of a pair.
//!
//! Values are found where they lie; only one with a doubled quote or an escape in it is copied, without that, into scratch
//! space that is kept. Whoever cut the record has looked whether it is one. Of a sample nobody did, so that any bytes are
//! answered with values or an error.

use std::ops::Range;

use super::column::{Column, Type, Value};
use crate::columns::steps;
use crate::error::{Error, ErrorKind, Result};
use crate::order::quoted::Ends;
use crate::order::{KV_HEADER_BYTES, Separated, json};

const DOING: &str = "reading a record";
/// What to do about a value that is not there.
const MAY_BE_MISSING: &str =
    "Where values may be missing the column's type says so: Column::or_null, in Python int | None.";

/// How a record is made of values.
pub enum Shape {
    /// A line is one.
    Line,
    /// Values with delimiters between.
    Separated {
        separated: Separated,
        /// Which of the columns, if any, a value of the record is, up to the last that is one.
        wanted: Vec<Option<usize>>,
        /// How many values a record has, where nobody else looks.
        count: Option<usize>,
        /// Whether that is one, so that an empty line is an empty value.
        is_one: bool,
        /// Values that say that there is none, in columns where one may be missing.
        nulls: Vec<Vec<u8>>,
    },
    /// An object. Of which columns the names may be paths, too.
    Json { paths: Vec<Path> },
    /// A key, and what is in front of it and behind it.
    Fixed { key: Range<usize> },
    /// A key and a value.
    Pair,
    /// A row of values, which are read one after the other.
    Row,
}

impl Shape {
    /// Of separated values that are the columns of these numbers, from 0, of records of `header_count` columns; without a
    /// header a record has these and no others. `nulls`: see [`is_missing`].
    pub fn separated(
        separated: Separated,
        numbers: Vec<usize>,
        header_count: Option<u64>,
        nulls: Vec<Vec<u8>>,
    ) -> Self {
        let mut wanted = vec![None; numbers.iter().max().map_or(0, |last| last + 1)];
        for (column, number) in numbers.iter().enumerate() {
            wanted[*number] = Some(column);
        }
        Self::Separated {
            separated,
            wanted,
            count: header_count.is_none().then_some(numbers.len()),
            is_one: header_count.unwrap_or(numbers.len() as u64) == 1,
            nulls,
        }
    }

    /// Of objects, whose members `columns` are, or lie in them where a name has dots.
    pub fn json(columns: &[Column]) -> Self {
        let with_dots = columns.iter().enumerate();
        let with_dots = with_dots.filter(|(_, column)| column.name.contains('.'));
        let path = |(number, column): (usize, &Column)| {
            let mut steps = steps(&column.name).into_iter();
            Path {
                column: number,
                member: steps.next().expect("there is one at least"),
                steps: steps.map(|step| json::Step::new(&step)).collect(),
            }
        };
        Self::Json {
            paths: with_dots.map(path).collect(),
        }
    }

    /// Whether `record` is a line of nothing that holds no record: neither an object nor values with delimiters between.
    pub fn is_nothing(&self, record: &[u8]) -> bool {
        match self {
            Self::Separated { is_one, .. } => !is_one && without_end(record).is_empty(),
            Self::Json { .. } => record.trim_ascii().is_empty(),
            _ => false,
        }
    }
}

/// A column that lies within a member of an object, unless there is a member that is called just as the column is.
pub struct Path {
    column: usize,
    /// The name of the member.
    member: String,
    /// From its value on.
    steps: Vec<json::Step>,
}

/// Where a value lies.
#[derive(Clone, Copy)]
enum Cell {
    /// The record has no such value.
    Missing,
    /// It says that there is none.
    Null,
    Record(usize, usize),
    /// In the scratch space.
    Text(usize, usize),
}

/// Where the values of one record lie.
#[derive(Default)]
pub struct Cells {
    cells: Vec<Cell>,
    text: Vec<u8>,
    /// What lies at each path, if anything does.
    nested: Vec<Option<(usize, usize)>>,
}

impl Cells {
    /// Finds the values of `columns` in `record`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for one that is not there, or not as it should be.
    pub fn find(&mut self, shape: &Shape, columns: &[Column], record: &[u8]) -> Result<()> {
        self.text.clear();
        self.cells.clear();
        self.cells.resize(columns.len(), Cell::Missing);
        match shape {
            Shape::Line => {
                self.cells[0] = Cell::Record(0, without_end(record).len());
                Ok(())
            }
            Shape::Separated {
                separated,
                wanted,
                count,
                nulls,
                ..
            } => {
                let line = without_end(record);
                self.find_separated(*separated, wanted, (columns, nulls), line);
                let Some(count) = count else {
                    return Ok(());
                };
                match separated.values(line).count() {
                    have if have == *count => Ok(()),
                    have => Err(bad(format!(
                        "it has {have} columns where {count} are expected"
                    ))),
                }
            }
            Shape::Json { paths } => self.find_json(columns, paths, record),
            Shape::Fixed { key } => {
                self.cells[0] = Cell::Record(key.start, key.end);
                self.cells[1] = match (key.start, record.len() - key.end) {
                    (0, _) => Cell::Record(key.end, record.len()),
                    (_, 0) => Cell::Record(0, key.start),
                    _ => {
                        self.text.extend_from_slice(&record[..key.start]);
                        self.text.extend_from_slice(&record[key.end..]);
                        Cell::Text(0, self.text.len())
                    }
                };
                Ok(())
            }
            Shape::Row => unreachable!("nobody looks for its values"),
            Shape::Pair => {
                let length = record.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
                let end = KV_HEADER_BYTES + length.unwrap_or(0) as usize;
                if end > record.len() {
                    return Err(bad("it is no pair".to_owned()));
                }
                self.cells[0] = Cell::Record(KV_HEADER_BYTES, end);
                self.cells[1] = Cell::Record(end, record.len());
                Ok(())
            }
        }
    }

    /// Takes the values of `columns` from where `found` has them, of one of `records`, in which they lie then. Whether that is all that
    /// there is to it: if not, or where something is wrong, [`Cells::find`] is to look at that record.
    #[inline]
    pub fn take_found(
        &mut self,
        shape: &Shape,
        columns: &[Column],
        records: &[u8],
        found: &Ends<'_>,
    ) -> bool {
        let Shape::Separated {
            separated,
            wanted,
            count,
            nulls,
            ..
        } = shape
        else {
            return false;
        };
        let ends = found.values;
        let is_nothing = ends.len() == 1 && ends[0] as usize == found.record.start;
        if is_nothing || ends.len() < wanted.len() || count.is_some_and(|count| count != ends.len())
        {
            return false;
        }
        self.cells.resize(columns.len(), Cell::Missing);
        let mut from = found.record.start;
        for (&end, wanted) in ends.iter().zip(wanted) {
            let to = end as usize;
            if let Some(column) = *wanted {
                let mut inner = from..to;
                let mut is_quoted = false;
                if found.has_quotes && records[from..to].first() == separated.quote.as_ref() {
                    is_quoted = true;
                    inner = from + 1..to - 1;
                    let text = records.get(inner.clone());
                    let quote = records[from];
                    if text.is_none_or(|text| memchr::memchr(quote, text).is_some()) {
                        return false;
                    }
                }
                let value = &records[inner.clone()];
                self.cells[column] = match is_missing(&columns[column], nulls, value, || is_quoted)
                {
                    true => Cell::Null,
                    false => Cell::Record(inner.start, inner.end),
                };
            }
            from = to + 1;
        }
        true
    }

    /// The value of column `number` of the record that was looked through last.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for one that is missing, or none of the column's type.
    #[inline]
    pub fn value<'a>(
        &'a self,
        record: &'a [u8],
        number: usize,
        column: &Column,
    ) -> Result<Value<'a>> {
        let bytes = match self.cells[number] {
            Cell::Record(from, to) => &record[from..to],
            Cell::Text(from, to) => &self.text[from..to],
            Cell::Null => return Ok(Value::Null),
            Cell::Missing => return Err(bad(format!("it has no column {}", column.name))),
        };
        column.kind.parse(bytes).map_err(|mut error| {
            error.cause = format!("column {}: {}", column.name, error.cause);
            match bytes.trim_ascii().is_empty() {
                true => error.hint(MAY_BE_MISSING),
                false => error,
            }
        })
    }

    fn find_separated(
        &mut self,
        separated: Separated,
        wanted: &[Option<usize>],
        (columns, nulls): (&[Column], &[Vec<u8>]),
        line: &[u8],
    ) {
        // Most records have none, and nothing is looked for in their values.
        let has_one = |quote: &u8| memchr::memchr(*quote, line).is_some();
        let separated = Separated {
            quote: separated.quote.filter(has_one),
            ..separated
        };
        for (value, wanted) in separated.values(line).zip(wanted) {
            let Some(column) = *wanted else { continue };
            let has_quote = |quote| memchr::memchr(quote, value).is_some();
            let is_quoted = || {
                // A quote in front of a value is no part of it; in front of any other is a delimiter.
                let before = offset_in(line, value).checked_sub(1);
                separated.quote.is_some() && before.map(|at| line[at]) == separated.quote
            };
            self.cells[column] = match separated.quote {
                _ if is_missing(&columns[column], nulls, value, is_quoted) => Cell::Null,
                Some(quote) if has_quote(quote) => {
                    let from = self.text.len();
                    let mut is_first = false;
                    self.text.extend(value.iter().filter(|&&byte| {
                        is_first = byte == quote && !is_first;
                        byte != quote || is_first
                    }));
                    Cell::Text(from, self.text.len())
                }
                _ => {
                    let from = offset_in(line, value);
                    Cell::Record(from, from + value.len())
                }
            };
        }
    }

    fn find_json(&mut self, columns: &[Column], paths: &[Path], record: &[u8]) -> Result<()> {
        // Objects mostly have their members in one order: the next is looked for behind the one before.
        let (mut next, mut wrong): (_, Vec<(usize, Error)>) = (0, Vec::new());
        let is_object = json::each_member(record, |name, value| {
            let count = columns.len();
            let is_it = |&at: &usize| json::is_called(name, &columns[at].name);
            let Some(at) = (next..count).chain(0..next).find(is_it) else {
                return;
            };
            next = (at + 1) % count;
            // Of members of one name the last one counts.
            wrong.retain(|(column, _)| *column != at);
            match self.json_cell(&columns[at], record, value) {
                Ok(cell) => self.cells[at] = cell,
                Err(error) => wrong.push((at, error)),
            }
        });
        match (is_object, wrong.into_iter().next()) {
            (false, _) => Err(bad("it is no JSON object".to_owned())),
            (true, Some((_, error))) => Err(error),
            (true, None) => {
                let is_missing = |path: &Path| matches!(self.cells[path.column], Cell::Missing);
                if paths.iter().any(is_missing) {
                    self.find_nested(columns, paths, record)?;
                }
                for (cell, column) in self.cells.iter_mut().zip(columns) {
                    if column.nullable && matches!(cell, Cell::Missing) {
                        *cell = Cell::Null;
                    }
                }
                Ok(())
            }
        }
    }

    /// Finds the values that lie at `paths`, of columns that no member is called as.
    fn find_nested(&mut self, columns: &[Column], paths: &[Path], record: &[u8]) -> Result<()> {
        self.nested.clear();
        self.nested.resize(paths.len(), None);
        json::each_member(record, |name, value| {
            for (path, lies) in paths.iter().zip(&mut self.nested) {
                // Of members of one name the last one counts, here too.
                if json::is_called(name, &path.member) {
                    let found = json::within(value, &path.steps);
                    *lies = found.map(|found| (offset_in(record, found), found.len()));
                }
            }
        });
        for (number, path) in paths.iter().enumerate() {
            if let (Cell::Missing, Some((from, length))) =
                (self.cells[path.column], self.nested[number])
            {
                let value = &record[from..from + length];
                self.cells[path.column] = self.json_cell(&columns[path.column], record, value)?;
            }
        }
        Ok(())
    }

    /// Where the value of a member lies, if it is one of its column's type; as text an object or an array is as it stands there.
    fn json_cell(&mut self, column: &Column, record: &[u8], value: &[u8]) -> Result<Cell> {
        let is_bool = column.kind == Type::Bool;
        let is_text = column.kind.is_bytes() || column.kind == Type::Timestamp;
        let what = match value.first() {
            Some(b'"') if is_text => {
                let inner = json::inner(value);
                if memchr::memchr(b'\\', inner).is_none() {
                    let from = offset_in(record, inner);
                    return Ok(Cell::Record(from, from + inner.len()));
                }
                let from = self.text.len();
                self.text.extend(json::unescaped(inner));
                return Ok(Cell::Text(from, self.text.len()));
            }
            Some(b'-' | b'0'..=b'9') if column.kind.is_number() => None,
            Some(b't' | b'f') if is_bool => None,
            Some(b'{' | b'[') if column.kind.is_bytes() => None,
            Some(b'"') => Some("a string"),
            Some(b'-' | b'0'..=b'9') => Some("a number"),
            Some(b't' | b'f') => Some("true or false"),
            Some(b'{') => Some("an object"),
            Some(b'[') => Some("an array"),
            _ if column.nullable => return Ok(Cell::Null),
            _ => Some("null"),
        };
        match what {
            None => {
                let from = offset_in(record, value);
                Ok(Cell::Record(from, from + value.len()))
            }
            Some(what) => {
                let (name, kind) = (&column.name, column.kind.name());
                Err(bad(format!(
                    "column {name} is {what}, and not of type {kind}"
                )))
            }
        }
    }
}

/// Whether a value of CSV says that there is none, where one may be missing. An empty one does, unless the column's are texts;
/// and so does one of `nulls`. Between quotes a text is what it is, so that any text can be written.
fn is_missing(
    column: &Column,
    nulls: &[Vec<u8>],
    value: &[u8],
    is_quoted: impl FnOnce() -> bool,
) -> bool {
    if !column.nullable {
        return false;
    }
    let is_null = column.is_null(value) || nulls.iter().any(|null| null == value);
    is_null && !(column.kind.is_bytes() && is_quoted())
}

/// A line without its end.
pub fn without_end(record: &[u8]) -> &[u8] {
    let record = record.strip_suffix(b"\n").unwrap_or(record);
    record.strip_suffix(b"\r").unwrap_or(record)
}

/// Where `part` begins in `record`, of which it is one.
fn offset_in(record: &[u8], part: &[u8]) -> usize {
    part.as_ptr().addr() - record.as_ptr().addr()
}

fn bad(cause: String) -> Error {
    Error::new(ErrorKind::Input, DOING, cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(kinds: &[Type]) -> Vec<Column> {
        let column = |(name, kind): (&str, &Type)| Column::new(name, *kind);
        ["a", "b", "c"].into_iter().zip(kinds).map(column).collect()
    }

    /// The values of a record, or what is wrong with it.
    fn values(shape: &Shape, kinds: &[Type], record: &[u8]) -> std::result::Result<String, String> {
        values_of(shape, columns(kinds), record)
    }

    fn values_of(
        shape: &Shape,
        columns: Vec<Column>,
        record: &[u8],
    ) -> std::result::Result<String, String> {
        let mut cells = Cells::default();
        let mut read = || {
            cells.find(shape, &columns, record)?;
            let value = |number: usize| match cells.value(record, number, &columns[number])? {
                Value::Bytes(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
                other => Ok(format!("{other:?}")),
            };
            (0..columns.len()).map(value).collect::<Result<Vec<_>>>()
        };
        read()
            .map(|all| all.join("|"))
            .map_err(|error| error.cause.clone())
    }

    #[test]
    fn separated_values() {
        let csv = Separated {
            delimiter: b',',
            quote: Some(b'"'),
        };
        let some = Shape::separated(csv, vec![3, 0], Some(4), Vec::new());
        let kinds = [Type::String, Type::I64];
        let read = |record: &str| values(&some, &kinds, record.as_bytes());
        assert_eq!(read("1,x,y,z\r\n"), Ok("z|I64(1)".into()));
        let quoted = "\"-2\",\"a\nb\",,\"say \"\"so\"\", \"\"\"\n";
        assert_eq!(read(quoted), Ok("say \"so\", \"|I64(-2)".into()));
        assert_eq!(read("3,,,\n"), Ok("|I64(3)".into()));
        assert!(
            read(",,,\n")
                .unwrap_err()
                .contains("column b: \"\" is no value")
        );
        assert!(read("3,\n").unwrap_err().contains("it has no column a"));
        let all = Shape::separated(csv, vec![0, 1], None, Vec::new());
        assert_eq!(values(&all, &kinds, b"x,1\n"), Ok("x|I64(1)".into()));
        let cause = values(&all, &kinds, b"x,1,\n").unwrap_err();
        assert!(cause.contains("3 columns where 2 are expected"), "{cause}");
    }

    #[test]
    fn missing_values() {
        let csv = Separated {
            delimiter: b',',
            quote: Some(b'"'),
        };
        let kinds = [Type::String, Type::I64, Type::Bool];
        let nullable = || {
            let columns = columns(&kinds).into_iter();
            columns.map(Column::or_null).collect::<Vec<_>>()
        };
        let read = |nulls: &[&str], record: &str| {
            let nulls = nulls.iter().map(|null| null.as_bytes().to_vec());
            let shape = Shape::separated(csv, vec![0, 1, 2], None, nulls.collect());
            values_of(&shape, nullable(), record.as_bytes())
        };
        // An empty text is one, unless that is said; an empty number is none.
        assert_eq!(read(&[], ",,\n"), Ok("|Null|Null".into()));
        assert_eq!(read(&[], "NA, ,true"), Ok("NA|Null|Bool(true)".into()));
        assert_eq!(read(&[], "\"x\",\"\",\"\""), Ok("x|Null|Null".into()));
        let both = ["", "NA"];
        assert_eq!(read(&both, ",NA,\"NA\""), Ok("Null|Null|Null".into()));
        assert_eq!(
            read(&both, "NA,1,true"),
            Ok("Null|I64(1)|Bool(true)".into())
        );
        assert_eq!(read(&both, "\"\",,"), Ok("|Null|Null".into()));
        assert_eq!(read(&both, "\"NA\",2,"), Ok("NA|I64(2)|Null".into()));
        assert_eq!(
            read(&["\"\""], "\"\"\"\"\"\",2,"),
            Ok("\"\"|I64(2)|Null".into())
        );
        let cause = read(&[], "x,NA,").unwrap_err();
        assert!(cause.contains("column b: \"NA\" is no value"), "{cause}");
        // A record that is too short has no value that could be missing.
        assert!(read(&[], "x,1").unwrap_err().contains("column"));

        let read = |record: &str| values_of(&Shape::json(&[]), nullable(), record.as_bytes());
        assert_eq!(read("{}"), Ok("Null|Null|Null".into()));
        let line = r#"{"b":null,"a":"","c":true}"#;
        assert_eq!(read(line), Ok("|Null|Bool(true)".into()));
        let twice = r#"{"a":"x","b":1,"a":null,"b":null,"b":2}"#;
        assert_eq!(read(twice), Ok("Null|I64(2)|Null".into()));
        let cause = read(r#"{"a":"","b":"1"}"#).unwrap_err();
        assert!(cause.contains("column b is a string"), "{cause}");
    }

    #[test]
    fn json_values() {
        let kinds = [Type::String, Type::F64, Type::Bool];
        let read = |record: &str| values(&Shape::json(&[]), &kinds, record.as_bytes());
        let line = r#" {"c" : true, "x":{"a":1}, "b":-1.5e3 ,"\u0061":"x\n\"\u00e4"} "#;
        assert_eq!(read(line), Ok("x\n\"ä|F64(-1500.0)|Bool(true)".into()));
        let twice = r#"{"a":"1","a":"2","b":2,"c":false}"#;
        assert_eq!(read(twice), Ok("2|F64(2.0)|Bool(false)".into()));
        for (line, wanted) in [
            (r#"{"a":"","b":1}"#, "it has no column c"),
            (r#"{"a":1,"b":1,"c":true}"#, "column a is a number"),
            (r#"{"a":"","b":"1","c":true}"#, "column b is a string"),
            (r#"{"a":"","b":null,"c":true}"#, "column b is null"),
            (r#"{"a":"","b":1,"c":[true]}"#, "column c is an array"),
            ("[1]", "no JSON object"),
        ] {
            let cause = read(line).unwrap_err();
            assert!(cause.contains(wanted), "{line}: {cause}");
        }
        let json = Shape::json(&[]);
        let time = |record: &str| values(&json, &[Type::Timestamp], record.as_bytes());
        let wanted = Ok("Timestamp(86400000000)".to_owned());
        assert_eq!(time(r#"{"a":"1970-01-02"}"#), wanted);
        assert_eq!(time(r#"{"a":"1970-01-02T00:00:00\u005a"}"#), wanted);
        for (line, wanted) in [
            (r#"{"a":86400}"#, "column a is a number"),
            (r#"{"a":true}"#, "column a is true or false"),
            (
                r#"{"a":""}"#,
                r#"column a: "" is no value of type timestamp"#,
            ),
        ] {
            let cause = time(line).unwrap_err();
            assert!(cause.contains(wanted), "{line}: {cause}");
        }
        let whole = values(&json, &[Type::I64], br#"{"a":1.0}"#).unwrap_err();
        assert!(whole.contains("\"1.0\" is no value of type i64"), "{whole}");
    }

    #[test]
    fn json_values_at_paths() {
        let named = |names: [&str; 3]| -> Vec<Column> {
            let kinds = [Type::String, Type::I64, Type::Bool];
            let columns = names.into_iter().zip(kinds);
            columns
                .map(|(name, kind)| Column::new(name, kind))
                .collect()
        };
        let read = |names: [&str; 3], record: &str| {
            let columns = named(names);
            values_of(&Shape::json(&columns), columns, record.as_bytes())
        };
        let names = ["a.b", "a.n.1", "t"];
        let found = Ok("x\"|I64(7)|Bool(true)".to_owned());
        for line in [
            r#"{"t":true,"a":{"n":[6,7],"b":"x\""}}"#,
            // What is called just so goes before what lies there, whichever comes first, and the last one counts.
            r#"{"a.b":1,"a":{"n":[6,7],"b":"y"},"t":true,"a.b":"x\""}"#,
            r#"{"a":{"b":"y","b":{}},"\u0061":{"n":{"1":7},"b":"x\""},"t":true}"#,
        ] {
            assert_eq!(read(names, line), found, "{line}");
        }
        let texts = ["a", "a.b.c", "a.t"];
        let line = r#"{"a" : {"b": {"c":3 }, "t":false}}"#;
        let found = Ok(r#"{"b": {"c":3 }, "t":false}|I64(3)|Bool(false)"#.to_owned());
        assert_eq!(read(texts, line), found);
        // A backslash has a dot be part of a name; an array is text as it stands.
        let escaped = [r"a\.b", r"a.b\.c", "a.t"];
        let line = r#"{"a.b":[1, {}],"a":{"b.c":3,"t":false}}"#;
        assert_eq!(
            read(escaped, line),
            Ok("[1, {}]|I64(3)|Bool(false)".to_owned())
        );
        for (line, wanted) in [
            (r#"{"t":true,"a":{"n":[6,7]}}"#, "it has no column a.b"),
            (
                r#"{"t":true,"a":{"b":"","n":[6]}}"#,
                "it has no column a.n.1",
            ),
            (r#"{"t":true,"a":7}"#, "it has no column a.b"),
            (
                r#"{"t":true,"a":{"b":"","n":[6,7]},"a":7}"#,
                "it has no column a.b",
            ),
            (
                r#"{"t":true,"a":{"b":7,"n":[6,7]}}"#,
                "column a.b is a number",
            ),
            (
                r#"{"t":true,"a.b":null,"a":{"b":"","n":[6,7]}}"#,
                "column a.b is null",
            ),
            (
                r#"{"t":true,"a":{"b":null,"n":[6,7]}}"#,
                "column a.b is null",
            ),
            (
                r#"{"t":true,"a":{"b":"","n":[6,"7"]}}"#,
                "column a.n.1 is a string",
            ),
        ] {
            let cause = read(names, line).unwrap_err();
            assert!(cause.contains(wanted), "{line}: {cause}");
        }
        let nullable = named(names).into_iter().map(Column::or_null);
        let nullable: Vec<Column> = nullable.collect();
        let shape = Shape::json(&nullable);
        for (line, wanted) in [
            (r#"{"a":{"b":null,"n":[]}}"#, "Null|Null|Null"),
            (r#"{"a":null,"t":true}"#, "Null|Null|Bool(true)"),
            (
                r#"{"a.b":null,"a":{"b":"x","n":[0,1]}}"#,
                "Null|I64(1)|Null",
            ),
        ] {
            let found = values_of(&shape, nullable.clone(), line.as_bytes());
            assert_eq!(found, Ok(wanted.to_owned()), "{line}");
        }
    }

    /// Of a sample nobody has looked whether its lines are JSON.
    #[test]
    fn any_bytes_are_answered_at_paths() {
        let columns = ["a.b.1.c", "d.0", "a"].map(|name| Column::new(name, Type::String).or_null());
        let shape = Shape::json(&columns);
        let whole = br#"{"a":{"b":[1,{"c":"]}\"x\ud834\udd1e"},[ ],null]},"d":["\\"]}"#;
        for at in 0..whole.len() {
            for byte in *b"\"\\{}[],: \xff" {
                let mut line = whole.to_vec();
                line[at] = byte;
                for line in [&line[..], &line[..at], &line[at..]] {
                    let _ = values_of(&shape, columns.to_vec(), line);
                }
            }
        }
    }

    #[test]
    fn fixed_records_and_pairs() {
        let kinds = [Type::Binary, Type::Binary];
        let read = |key: Range<usize>| values(&Shape::Fixed { key }, &kinds, b"abcdef").unwrap();
        assert_eq!(read(0..2), "ab|cdef");
        assert_eq!(read(4..6), "ef|abcd");
        assert_eq!(read(1..3), "bc|adef");
        assert_eq!(read(0..6), "abcdef|");
        let pair = b"\x02\0\0\0\x03\0\0\0abcde";
        assert_eq!(values(&Shape::Pair, &kinds, pair), Ok("ab|cde".into()));
        assert!(values(&Shape::Pair, &kinds, b"\x02\0").is_err());
    }
}
