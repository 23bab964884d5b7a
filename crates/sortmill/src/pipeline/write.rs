//! Records as the bytes of an output: lines, CSV, JSON lines, records of a fixed size, pairs.
//!
//! Floats are written with the fewest digits that read back as the same. A value that is missing is nothing in text and CSV, and
//! null in JSON; of CSV an empty text stands between quotes where it could be taken for one, if there are any.

use std::io::Write as _;

use super::column::{Column, Type, Value, cast_to_bytes};
use super::read::{Csv, key_range};
use super::time;
use crate::columns::wrong_bytes;
use crate::error::{Error, ErrorKind, Result};
use crate::job::Framing;
use crate::short::{push_number, push_text};
use crate::stage::kernel::holds_any;

/// How records are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// The values of a record with tabs between them, and a newline. Text is written as it is; a value with a newline, or with a tab
    /// in front of the last one, is an error, because nobody could tell where it ends.
    Text,
    /// CSV (RFC 4180, but lines end in a newline), with the columns' names in the first line if there is a header. What has a
    /// delimiter, a quote, or what ends a line in it is quoted; without quotes it is an error, and an empty text is what a missing one is.
    Csv(Csv),
    /// An object for each record, and a newline. Text that is not UTF-8 is an error; a float that is no number is null.
    JsonLines,
    /// Records of a fixed size, of two columns of bytes, key and value, or of one that is all of it. One of another size is an
    /// error.
    Fixed {
        /// Bytes of a record.
        record_bytes: u32,
        /// Where in it the first of two columns lies: offset and bytes. The second is what is in front of it and behind it.
        key: (u32, u32),
    },
    /// Pairs ([`crate::order::Format::Kv`]) of two columns of bytes.
    Kv,
    /// A stream of Arrow batches (IPC streaming format), where this is built with the feature `arrow`. Text that is not UTF-8 is
    /// an error.
    Arrow,
    /// The values of each record as this library reads them again ([`super::RowFile`]).
    Rows,
}

impl Form {
    /// CSV with commas and double quotes, and the columns' names in the first line if `header`.
    #[must_use]
    pub const fn csv(header: bool) -> Self {
        Self::Csv(Csv::commas(header))
    }

    /// Its name, for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Csv(_) => "CSV",
            Self::JsonLines => "JSON lines",
            Self::Fixed { .. } => "records of a fixed size",
            Self::Kv => "pairs",
            Self::Arrow => "Arrow",
            Self::Rows => "rows",
        }
    }

    /// What names of such files end in.
    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::Text => "txt",
            Self::Csv(_) => "csv",
            Self::JsonLines => "jsonl",
            Self::Fixed { .. } => "bin",
            Self::Kv => "kv",
            Self::Arrow => "arrows",
            Self::Rows => "rows",
        }
    }

    /// What comes before all records.
    #[must_use]
    pub fn heading(self, columns: &[Column]) -> Vec<u8> {
        let mut text = Vec::new();
        if self == Self::Rows {
            text = super::rows::heading(columns);
        }
        #[cfg(feature = "arrow")]
        if self == Self::Arrow {
            text = super::arrow::heading(columns);
        }
        if let Self::Csv(csv) = self
            && csv.header
        {
            for (number, column) in columns.iter().enumerate() {
                if number > 0 {
                    text.push(csv.delimiter);
                }
                let name = column.name.as_bytes();
                match csv.quote {
                    Some(quote) => {
                        write_csv(name, (csv.delimiter, quote), columns.len() == 1, &mut text);
                    }
                    None => text.extend_from_slice(name),
                }
            }
            text.push(b'\n');
        }
        text
    }

    /// What gathers records that were appended into what comes out, where that holds many in each piece.
    pub(super) fn framing(self, columns: &[Column]) -> Option<Framing> {
        #[cfg(feature = "arrow")]
        if self == Self::Arrow {
            return Some(super::arrow::framing(columns));
        }
        let _ = columns;
        None
    }

    /// Appends a record, or what [`Form::framing`] gathers of one.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for text that the form cannot hold.
    pub fn write(self, columns: &[Column], record: &[Value<'_>], to: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Fixed { .. } | Self::Kv if record.iter().any(Value::is_null) => {
                let mut both = columns.iter().zip(record);
                let missing = both.find(|(_, value)| value.is_null());
                let name = missing.map_or("", |(column, _)| &*column.name);
                let cause = format!("column {name} is null, and {} hold bytes", self.name());
                return Err(Error::new(ErrorKind::Input, "writing a record", cause));
            }
            Self::Fixed { record_bytes, key } => return write_fixed(record_bytes, key, record, to),
            Self::Kv => return write_pair(record, to),
            Self::Rows | Self::Arrow => {
                super::rows::write(columns, record, to);
                return Ok(());
            }
            Self::Csv(csv) => {
                // Those that most files have the compiler should know.
                return match (csv.delimiter, csv.quote) {
                    (b',', Some(b'"')) => write_csv_record((b',', Some(b'"')), columns, record, to),
                    marks => write_csv_record(marks, columns, record, to),
                };
            }
            Self::Text | Self::JsonLines => {}
        }
        for (number, (column, value)) in columns.iter().zip(record).enumerate() {
            match self {
                Self::Text => {
                    if number > 0 {
                        to.push(b'\t');
                    }
                    if let Value::Bytes(bytes) = value {
                        look_for_ends(bytes, number + 1 == record.len(), &column.name)?;
                    }
                    write_plain(value, to);
                }
                Self::JsonLines => {
                    to.push(if number == 0 { b'{' } else { b',' });
                    write_json(column.name.as_bytes(), "a column's name", to)?;
                    to.push(b':');
                    match value {
                        Value::Bytes(bytes) => write_json(bytes, &column.name, to)?,
                        Value::Null => to.extend_from_slice(b"null"),
                        Value::F64(value) if !value.is_finite() => to.extend_from_slice(b"null"),
                        Value::Timestamp(_) => {
                            to.push(b'"');
                            write_plain(value, to);
                            to.push(b'"');
                        }
                        value => write_plain(value, to),
                    }
                }
                _ => unreachable!("they have been written"),
            }
        }
        to.extend_from_slice(if self == Self::JsonLines {
            b"}\n"
        } else {
            b"\n"
        });
        Ok(())
    }

    /// Why columns of these types cannot be written so, if they cannot.
    pub(super) fn wrong(self, columns: &[Column]) -> Option<String> {
        let binary = columns.iter().find(|column| column.kind == Type::Binary);
        let other = columns.iter().find(|column| !column.kind.is_bytes());
        let is = |column: &Column| format!("column {} is {}", column.name, column.kind.name());
        match (self, columns.len()) {
            (Self::Text | Self::Rows, _) => None,
            (Self::Csv(csv), _) => wrong_csv(csv, columns),
            (Self::Arrow, _) => match cfg!(feature = "arrow") {
                true => None,
                false => Some("this sortmill was built without Arrow".to_owned()),
            },
            (Self::JsonLines, _) => Some(format!("{}, and JSON holds text", is(binary?))),
            (Self::Fixed { .. }, 1) | (Self::Kv | Self::Fixed { .. }, 2) => {
                if let Self::Fixed { record_bytes, key } = self
                    && let (2, Err(error)) = (columns.len(), key_range(record_bytes, key))
                {
                    return Some(error.cause.clone());
                }
                Some(format!("{}, and they hold bytes or text", is(other?)))
            }
            (Self::Kv, count) => Some(format!("pairs have two columns, not {count}")),
            (Self::Fixed { .. }, count) => Some(format!(
                "records of a fixed size are made of two columns or one, not {count}"
            )),
        }
    }
}

/// Refuses a value of text that would be taken for several. The last one ends where its line does.
fn look_for_ends(bytes: &[u8], is_last: bool, name: &str) -> Result<()> {
    let found = match is_last {
        true => memchr::memchr(b'\n', bytes),
        false => memchr::memchr2(b'\n', b'\t', bytes),
    };
    let Some(at) = found else {
        return Ok(());
    };
    let (what, ends) = match bytes[at] {
        b'\n' => ("a newline", "records"),
        _ => ("a tab", "values"),
    };
    Err(ended(bytes, name, (what, ends), "text").hint("CSV and JSON lines hold such values."))
}

/// The error of a value with something in it that ends values or records where they are written so.
fn ended(bytes: &[u8], name: &str, (what, ends): (&str, &str), form: &str) -> Error {
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]);
    let cause = format!("column {name} has {what} in {shown:?}, which ends {ends} in {form}");
    Error::new(ErrorKind::Input, format!("writing {form}"), cause)
}

/// A record of a fixed size.
fn write_fixed(
    record_bytes: u32,
    (offset, key_bytes): (u32, u32),
    record: &[Value<'_>],
    to: &mut Vec<u8>,
) -> Result<()> {
    let size = |what: &str, have: usize, wanted: u32| match have == wanted as usize {
        true => Ok(()),
        false => {
            let cause = format!("{what} has {have} bytes where {wanted} are its place");
            Err(Error::new(
                ErrorKind::Input,
                "writing a record of a fixed size",
                cause,
            ))
        }
    };
    match record {
        [whole] => {
            size("a record", whole.bytes().len(), record_bytes)?;
            to.extend_from_slice(whole.bytes());
        }
        [key, value, ..] => {
            size("a key", key.bytes().len(), key_bytes)?;
            size("a value", value.bytes().len(), record_bytes - key_bytes)?;
            let (before, behind) = value.bytes().split_at(offset as usize);
            for part in [before, key.bytes(), behind] {
                to.extend_from_slice(part);
            }
        }
        [] => unreachable!("a record has a column"),
    }
    Ok(())
}

/// A pair.
fn write_pair(record: &[Value<'_>], to: &mut Vec<u8>) -> Result<()> {
    for value in record {
        let length = u32::try_from(value.bytes().len()).map_err(|_| {
            let cause = "a key or value has 4 GiB or more, which no pair holds";
            Error::new(ErrorKind::Input, "writing a pair", cause)
        })?;
        to.extend_from_slice(&length.to_le_bytes());
    }
    record
        .iter()
        .for_each(|value| to.extend_from_slice(value.bytes()));
    Ok(())
}

pub(super) fn write_plain(value: &Value<'_>, to: &mut Vec<u8>) {
    let written = match value {
        Value::Null => Ok(()),
        Value::Bytes(bytes) => to.write_all(bytes),
        Value::I64(value) => {
            if *value < 0 {
                to.push(b'-');
            }
            push_number(value.unsigned_abs(), to);
            Ok(())
        }
        Value::U64(value) => {
            push_number(*value, to);
            Ok(())
        }
        Value::F64(value) => write_float(*value, to),
        Value::Bool(value) => write!(to, "{value}"),
        Value::Timestamp(micros) => {
            time::write(*micros, to);
            Ok(())
        }
    };
    written.expect("memory takes all");
}

/// Appends a float with the fewest digits that read back as the same, as the standard library writes it. Where that has no exponent
/// another one does it sooner; of two last digits that are as near it takes the even one.
fn write_float(value: f64, to: &mut Vec<u8>) -> std::io::Result<()> {
    match value.abs() {
        0.0 | 1e-4..1e16 => to.write_all(zmij::Buffer::new().format_finite(value).as_bytes()),
        _ => write!(to, "{value:?}"),
    }
}

/// Why CSV cannot be written so, if it cannot.
fn wrong_csv(csv: Csv, columns: &[Column]) -> Option<String> {
    if let Some(cause) = wrong_bytes(csv.delimiter, csv.quote) {
        return Some(cause.to_owned());
    }
    let mut bare = columns.iter().filter(|_| csv.header && csv.quote.is_none());
    let wrong = bare.find(|column| marks_in(column.name.as_bytes(), csv.delimiter).is_some())?;
    let name = &wrong.name;
    Some(format!(
        "the header would have {name:?} in it, which nobody could tell from several names without quotes"
    ))
}

/// A record with these between its values and around them.
#[inline(always)]
fn write_csv_record(
    (delimiter, quote): (u8, Option<u8>),
    columns: &[Column],
    record: &[Value<'_>],
    to: &mut Vec<u8>,
) -> Result<()> {
    let is_single = record.len() == 1;
    let is_of_numbers = |mark: u8| mark.is_ascii_alphanumeric() || b"+-.:".contains(&mark);
    let looks_at_all = is_of_numbers(delimiter) || quote.is_some_and(is_of_numbers);
    for (number, (column, value)) in columns.iter().zip(record).enumerate() {
        if number > 0 {
            to.push(delimiter);
        }
        match (value, quote) {
            (Value::Bytes(bytes), Some(quote)) => {
                let empty_is_quoted = is_single || column.nullable;
                write_csv(bytes, (delimiter, quote), empty_is_quoted, to);
            }
            (Value::Bytes(bytes), None) => {
                look_for_marks(bytes, delimiter, &column.name)?;
                push_text(bytes, to);
            }
            (value, quote) => {
                let from = to.len();
                write_plain(value, to);
                if looks_at_all {
                    match quote {
                        Some(quote) => quote_end(to, from, (delimiter, quote)),
                        None => look_for_marks(&to[from..], delimiter, &column.name)?,
                    }
                }
            }
        }
    }
    to.push(b'\n');
    Ok(())
}

/// An only value that is empty would be an empty line, which some readers pass over, and where values may be missing an empty
/// one is one that is: there `empty_is_quoted`.
#[inline(always)]
fn write_csv(bytes: &[u8], (delimiter, quote): (u8, u8), empty_is_quoted: bool, to: &mut Vec<u8>) {
    let is_quoted =
        holds_any(bytes, [delimiter, quote, b'\n', b'\r']) || empty_is_quoted && bytes.is_empty();
    if !is_quoted {
        return push_text(bytes, to);
    }
    to.push(quote);
    for &byte in bytes {
        if byte == quote {
            to.push(quote);
        }
        to.push(byte);
    }
    to.push(quote);
}

/// Quotes what `to` has from `from` on, which is short, if it has to be: a time where colons stand between values, say.
fn quote_end(to: &mut Vec<u8>, from: usize, (delimiter, quote): (u8, u8)) {
    if !holds_any(&to[from..], [delimiter, quote, b'\n', b'\r']) {
        return;
    }
    let mut at = from;
    while at < to.len() {
        if to[at] == quote {
            to.insert(at, quote);
            at += 1;
        }
        at += 1;
    }
    to.insert(from, quote);
    to.push(quote);
}

/// Where what ends a value or a line is in it.
fn marks_in(bytes: &[u8], delimiter: u8) -> Option<usize> {
    memchr::memchr3(delimiter, b'\n', b'\r', bytes)
}

/// Refuses a value that would be taken for several where nothing is quoted.
fn look_for_marks(bytes: &[u8], delimiter: u8, name: &str) -> Result<()> {
    let Some(at) = marks_in(bytes, delimiter) else {
        return Ok(());
    };
    let what = match bytes[at] {
        b'\n' => ("a newline", "records"),
        b'\r' => ("a carriage return", "records"),
        _ => ("a delimiter", "values"),
    };
    let error = ended(bytes, name, what, "CSV without quotes");
    Err(error.hint("Quotes (quote=) hold such values, and so do JSON lines."))
}

fn write_json(bytes: &[u8], name: &str, to: &mut Vec<u8>) -> Result<()> {
    let text = std::str::from_utf8(bytes).map_err(|_| {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]);
        let cause = format!("{name} has {shown:?}, which is not UTF-8");
        let cast = cast_to_bytes(name);
        Error::new(ErrorKind::Input, "writing JSON", cause).hint(format!(
            "Text and CSV hold any bytes. For JSON a function makes text of them, as bytes.decode does: {cast} in front of it."
        ))
    })?;
    serde_json::to_writer(to, text).expect("memory takes all");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(form: Form, record: &[Value<'_>], wanted: &str) {
        let kind = |value: &Value<'_>| match value {
            Value::Bytes(_) | Value::Null => Type::String,
            Value::I64(_) => Type::I64,
            Value::U64(_) => Type::U64,
            Value::F64(_) => Type::F64,
            Value::Bool(_) => Type::Bool,
            Value::Timestamp(_) => Type::Timestamp,
        };
        let names = ["a", "b,\"", "c"].iter();
        let columns: Vec<Column> = names
            .zip(record)
            .map(|(&name, value)| Column::new(name, kind(value)))
            .collect();
        let mut text = form.heading(&columns);
        form.write(&columns, record, &mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), wanted);
    }

    #[test]
    fn floats_are_written_as_the_standard_library_does() {
        let check = |value: f64| {
            let mut text = Vec::new();
            write_float(value, &mut text).unwrap();
            let (text, wanted) = (String::from_utf8(text).unwrap(), format!("{value:?}"));
            // Where two are as near the last digit may be another.
            let is_as_near = text.len() == wanted.len()
                && text.parse::<f64>().unwrap().to_bits() == value.to_bits();
            assert!(text == wanted || is_as_near, "{text} {wanted}");
        };
        let mut state = 7_u64;
        for step in 0..200_000_u64 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(step);
            check(f64::from_bits(state));
            check((state >> 11) as f64 / f64::from(1 << (step % 30)));
            check((state >> 40) as f64 / 10_f64.powi((step % 25) as i32));
        }
        for exponent in -8..20 {
            let ten = 10_f64.powi(exponent);
            [ten.next_down(), ten, ten.next_up(), -ten]
                .into_iter()
                .for_each(check);
        }
        let odd = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        odd.into_iter().for_each(check);
        [f64::MAX, f64::MIN_POSITIVE, 5e-324]
            .into_iter()
            .for_each(check);
    }

    #[test]
    fn each_form() {
        let text = Value::Bytes;
        let csv = Form::csv(true);
        let bare = Form::csv(false);
        check(
            csv,
            &[text(b"x, \"y\""), Value::I64(-3)],
            "a,\"b,\"\"\"\n\"x, \"\"y\"\"\",-3\n",
        );
        check(bare, &[text(b"")], "\"\"\n");
        check(bare, &[text(b""), text(b"1\r")], ",\"1\r\"\n");
        let csv = |delimiter, quote| {
            Form::Csv(Csv {
                header: true,
                delimiter,
                quote,
            })
        };
        let time = Value::Timestamp(-1_000_000);
        for (form, record, wanted) in [
            (
                csv(b'\t', Some(b'"')),
                [text(b"x\ty"), text(b",")],
                "a\t\"b,\"\"\"\n\"x\ty\"\t,\n",
            ),
            (
                csv(b';', Some(b'\'')),
                [text(b"it's; \""), Value::F64(-0.5)],
                "a;b,\"\n'it''s; \"';-0.5\n",
            ),
            // Numbers and times may have them, too.
            (
                csv(b':', Some(b'1')),
                [time, Value::I64(-211)],
                "a:b,\"\n111969-112-311T23:59:59Z1:1-211111\n",
            ),
            (
                csv(b'-', Some(b'"')),
                [Value::I64(-3), Value::F64(1e-7)],
                "a-\"b,\"\"\"\n\"-3\"-\"1e-7\"\n",
            ),
            (
                csv(b'|', None),
                [text(b"\"x, y"), Value::Bool(true)],
                "a|b,\"\n\"x, y|true\n",
            ),
        ] {
            check(form, &record, wanted);
        }
        let columns = [
            Column::new("a", Type::String),
            Column::new("t", Type::Timestamp),
        ];
        for (delimiter, first, cause) in [
            (b';', text(b"x;y"), "column a has a delimiter in \"x;y\""),
            (b';', text(b"x\ny"), "column a has a newline in \"x\\ny\""),
            (b';', text(b"x\r"), "column a has a carriage return"),
            (b':', text(b"x"), "column t has a delimiter in \"1969-12-"),
        ] {
            let form = csv(delimiter, None);
            let error = form.write(&columns, &[first, time], &mut Vec::new());
            let error = error.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Input);
            assert!(error.cause.starts_with(cause), "{error}");
            assert!(error.hint.is_some());
        }
        check(
            Form::Text,
            &[text(b"x y"), Value::F64(0.1), Value::Bool(true)],
            "x y\t0.1\ttrue\n",
        );
        check(
            Form::JsonLines,
            &[text(b"\"\n\xc3\xa4"), Value::F64(f64::NAN)],
            "{\"a\":\"\\\"\\n\u{e4}\",\"b,\\\"\":null}\n",
        );
        let time = Value::Timestamp(1_500_000);
        check(
            Form::Text,
            &[time, time],
            "1970-01-01T00:00:01.500000Z\t1970-01-01T00:00:01.500000Z\n",
        );
        check(
            bare,
            &[Value::Timestamp(-1_000_000)],
            "1969-12-31T23:59:59Z\n",
        );
        check(
            Form::JsonLines,
            &[time, Value::I64(1)],
            "{\"a\":\"1970-01-01T00:00:01.500000Z\",\"b,\\\"\":1}\n",
        );
        check(
            Form::JsonLines,
            &[Value::U64(7), Value::F64(1e300)],
            "{\"a\":7,\"b,\\\"\":1e300}\n",
        );
        let columns = [Column::new("a", Type::String)];
        let error = Form::JsonLines.write(&columns, &[text(b"\xff")], &mut Vec::new());
        assert_eq!(error.unwrap_err().kind, ErrorKind::Input);

        let texts = [
            Column::new("a", Type::String),
            Column::new("b", Type::Binary),
        ];
        for (record, cause) in [
            (
                &[text(b"x"), text(b"c\nd")][..],
                "column b has a newline in \"c\\nd\"",
            ),
            (
                &[text(b"a\tb"), text(b"x")],
                "column a has a tab in \"a\\tb\"",
            ),
            (&[text(b"a\tb\n")], "column a has a newline"),
        ] {
            let error = Form::Text.write(&texts, record, &mut Vec::new());
            let error = error.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Input);
            assert!(error.cause.starts_with(cause), "{error}");
        }
        check(Form::Text, &[text(b"a\tb")], "a\tb\n");
        check(Form::Text, &[text(b"a"), text(b"b\tc")], "a\tb\tc\n");

        let pair = [text(b"ab"), text(b"xyz")];
        check(Form::Kv, &pair, "\x02\0\0\0\x03\0\0\0abxyz");
        let fixed = |record_bytes, key| Form::Fixed { record_bytes, key };
        check(fixed(5, (0, 2)), &pair, "abxyz");
        check(fixed(5, (1, 2)), &pair, "xabyz");
        check(fixed(2, (0, 2)), &pair[..1], "ab");
        for (form, record, cause) in [
            (fixed(6, (0, 2)), &pair[..], "a value has 3 bytes where 4"),
            (fixed(5, (0, 3)), &pair, "a key has 2 bytes where 3"),
            (fixed(5, (0, 3)), &pair[..1], "a record has 2 bytes where 5"),
        ] {
            let error = form.write(&columns, record, &mut Vec::new()).unwrap_err();
            assert!(error.cause.contains(cause), "{error}");
        }
    }

    #[test]
    fn missing_values() {
        let names = [("a", Type::String), ("b", Type::F64), ("c", Type::String)];
        let columns = names.map(|(name, kind)| Column::new(name, kind).or_null());
        let null = Value::Null;
        let records = [
            [Value::Bytes(b"x"), null, Value::Bytes(b"")],
            [null, Value::F64(1.0), null],
        ];
        let written = |form: Form| {
            let mut text = Vec::new();
            for record in &records {
                form.write(&columns, record, &mut text).unwrap();
            }
            String::from_utf8(text).unwrap()
        };
        assert_eq!(written(Form::Text), "x\t\t\n\t1.0\t\n");
        assert_eq!(written(Form::csv(false)), "x,,\"\"\n,1.0,\n");
        assert_eq!(
            written(Form::JsonLines),
            "{\"a\":\"x\",\"b\":null,\"c\":\"\"}\n{\"a\":null,\"b\":1.0,\"c\":null}\n"
        );
        let fixed = Form::Fixed {
            record_bytes: 2,
            key: (0, 1),
        };
        for form in [Form::Kv, fixed] {
            let pair = [columns[0].clone(), columns[2].clone()];
            assert_eq!(form.wrong(&pair), None);
            let record = [Value::Bytes(b"x"), null];
            let error = form.write(&pair, &record, &mut Vec::new()).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Input);
            assert!(error.cause.starts_with("column c is null"), "{error}");
        }
    }

    #[test]
    fn columns_that_a_form_cannot_hold() {
        let columns = |kinds: &[Type]| {
            let names = ["a", "b", "c"].into_iter();
            let made = names
                .zip(kinds)
                .map(|(name, &kind)| Column::new(name, kind));
            made.collect::<Vec<_>>()
        };
        use Type::{Binary, I64, String};
        let fixed = |key| Form::Fixed {
            record_bytes: 8,
            key,
        };
        let csv = |header, delimiter, quote| {
            Form::Csv(Csv {
                header,
                delimiter,
                quote,
            })
        };
        for (form, kinds, cause) in [
            (Form::Text, &[Binary, I64][..], None),
            (Form::JsonLines, &[String, I64], None),
            (csv(true, b'a', Some(b'b')), &[Binary, I64], None),
            (csv(false, b'a', None), &[Binary, I64], None),
            (
                csv(true, b'a', None),
                &[I64],
                Some("the header would have \"a\""),
            ),
            (csv(true, b'\n', None), &[I64], Some("what ends lines")),
            (csv(true, b';', Some(b';')), &[I64], Some("one byte cannot")),
            (Form::JsonLines, &[I64, Binary], Some("column b is binary")),
            (Form::Kv, &[Binary, String], None),
            (Form::Kv, &[Binary, I64], Some("column b is i64")),
            (Form::Kv, &[Binary], Some("two columns, not 1")),
            (fixed((6, 2)), &[Binary, Binary], None),
            (
                fixed((7, 2)),
                &[Binary, Binary],
                Some("no part of a record"),
            ),
            (fixed((7, 2)), &[String], None),
            (
                fixed((0, 2)),
                &[Binary; 3],
                Some("two columns or one, not 3"),
            ),
        ] {
            let wrong = form.wrong(&columns(kinds));
            match (&wrong, cause) {
                (None, None) => {}
                (Some(wrong), Some(cause)) => assert!(wrong.contains(cause), "{wrong}"),
                _ => panic!("{form:?} {kinds:?}: {wrong:?}"),
            }
        }
    }
}
