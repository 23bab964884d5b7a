//! Records as the text of an output: lines, CSV, JSON lines.
//!
//! Floats are written with the fewest digits that read back as the same.

use std::io::Write as _;

use super::column::{Column, Type, Value};
use crate::error::{Error, ErrorKind, Result};

/// How records are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// The values of a record with tabs between them, and a newline. Text is written as it is.
    Text,
    /// CSV (RFC 4180, but lines end in a newline), with the columns' names in the first line if `header`.
    Csv {
        /// Whether names come first.
        header: bool,
    },
    /// An object for each record, and a newline. Text that is not UTF-8 is an error; a float that is no number is null.
    JsonLines,
    /// Records as [`super::write_row`] has them, for a process that reads them back.
    Rows,
}

impl Form {
    /// Its name, for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Csv { .. } => "CSV",
            Self::JsonLines => "JSON lines",
            Self::Rows => "records",
        }
    }

    /// What comes before all records.
    #[must_use]
    pub fn heading(self, columns: &[Column]) -> Vec<u8> {
        let mut text = Vec::new();
        if let Self::Csv { header: true } = self {
            for (number, column) in columns.iter().enumerate() {
                if number > 0 {
                    text.push(b',');
                }
                write_csv(column.name.as_bytes(), columns.len() == 1, &mut text);
            }
            text.push(b'\n');
        }
        text
    }

    /// Appends a record.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for text that the form cannot hold.
    pub fn write(self, columns: &[Column], record: &[Value<'_>], to: &mut Vec<u8>) -> Result<()> {
        if self == Self::Rows {
            super::write_row(record, to);
            return Ok(());
        }
        let is_single = record.len() == 1;
        for (number, (column, value)) in columns.iter().zip(record).enumerate() {
            match self {
                Self::Rows | Self::Text => {
                    if number > 0 {
                        to.push(b'\t');
                    }
                    write_plain(value, to);
                }
                Self::Csv { .. } => {
                    if number > 0 {
                        to.push(b',');
                    }
                    match value {
                        Value::Bytes(bytes) => write_csv(bytes, is_single, to),
                        value => write_plain(value, to),
                    }
                }
                Self::JsonLines => {
                    to.push(if number == 0 { b'{' } else { b',' });
                    write_json(column.name.as_bytes(), "a column's name", to)?;
                    to.push(b':');
                    match value {
                        Value::Bytes(bytes) => write_json(bytes, &column.name, to)?,
                        Value::F64(value) if !value.is_finite() => to.extend_from_slice(b"null"),
                        value => write_plain(value, to),
                    }
                }
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
        let binary = columns.iter().find(|column| column.kind == Type::Binary)?;
        (self == Self::JsonLines).then(|| {
            let name = &binary.name;
            format!("column {name} is binary, and JSON holds text")
        })
    }
}

fn write_plain(value: &Value<'_>, to: &mut Vec<u8>) {
    let written = match value {
        Value::Bytes(bytes) => to.write_all(bytes),
        Value::I64(value) => write!(to, "{value}"),
        Value::U64(value) => write!(to, "{value}"),
        Value::F64(value) => write!(to, "{value:?}"),
        Value::Bool(value) => write!(to, "{value}"),
    };
    written.expect("memory takes all");
}

/// An only value that is empty would be an empty line, which some readers pass over.
fn write_csv(bytes: &[u8], is_single: bool, to: &mut Vec<u8>) {
    let special = |byte: &u8| matches!(byte, b',' | b'"' | b'\n' | b'\r');
    let is_quoted = bytes.iter().any(special) || is_single && bytes.is_empty();
    if !is_quoted {
        return to.extend_from_slice(bytes);
    }
    to.push(b'"');
    for &byte in bytes {
        if byte == b'"' {
            to.push(b'"');
        }
        to.push(byte);
    }
    to.push(b'"');
}

fn write_json(bytes: &[u8], name: &str, to: &mut Vec<u8>) -> Result<()> {
    let text = std::str::from_utf8(bytes).map_err(|_| {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]);
        let cause = format!("{name} has {shown:?}, which is not UTF-8");
        Error::new(ErrorKind::Input, "writing JSON", cause)
    })?;
    serde_json::to_writer(to, text).expect("memory takes all");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(form: Form, record: &[Value<'_>], wanted: &str) {
        let kind = |value: &Value<'_>| match value {
            Value::Bytes(_) => Type::String,
            Value::I64(_) => Type::I64,
            Value::U64(_) => Type::U64,
            Value::F64(_) => Type::F64,
            Value::Bool(_) => Type::Bool,
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
    fn each_form() {
        let text = Value::Bytes;
        let csv = Form::Csv { header: true };
        let bare = Form::Csv { header: false };
        check(
            csv,
            &[text(b"x, \"y\""), Value::I64(-3)],
            "a,\"b,\"\"\"\n\"x, \"\"y\"\"\",-3\n",
        );
        check(bare, &[text(b"")], "\"\"\n");
        check(bare, &[text(b""), text(b"1\r")], ",\"1\r\"\n");
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
        check(
            Form::JsonLines,
            &[Value::U64(7), Value::F64(1e300)],
            "{\"a\":7,\"b,\\\"\":1e300}\n",
        );
        let columns = [Column::new("a", Type::String)];
        let error = Form::JsonLines.write(&columns, &[text(b"\xff")], &mut Vec::new());
        assert_eq!(error.unwrap_err().kind, ErrorKind::Input);
    }
}
