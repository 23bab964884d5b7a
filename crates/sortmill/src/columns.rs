//! What decides the order of records that are made of columns: which columns, and how each is compared.
//!
//! Two kinds: values parted by a delimiter (CSV as RFC 4180 has it, and without quotes TSV), and lines that are JSON. What
//! is asked for by the names of a header is looked up in it before anything is planned ([`crate::run::look_up_columns`]);
//! only what has been looked up makes an order.

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::order::Format;

/// How records are made of columns, and which decide their order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Columns {
    /// How a record is made of columns.
    pub form: Form,
    /// The columns that decide, the most significant first. Where all are equal, records stay as the input has them. None of
    /// a job whose map function makes pairs of the records.
    pub by: Vec<Column>,
    /// Where a record comes that has nothing in a column, whichever way that one is sorted.
    pub nulls: Nulls,
}

/// How a record is made of columns.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Values with a delimiter between two. An empty one is null.
    Separated {
        /// What parts values.
        delimiter: u8,
        /// What a value stands between that has a delimiter, a newline or one of these in it, then twice. `None`: all
        /// bytes are what they are.
        quote: Option<u8>,
        /// Whether a record in front of the others names the columns.
        header: Header,
    },
    /// A line is a JSON value.
    Json,
}

/// What names the columns of separated values.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Header {
    /// Nothing: they have numbers.
    None,
    /// The first record of each input, which nobody has read yet.
    First,
    /// The same record of each input, with neither byte order mark nor the end of its line. Every other record has as
    /// many columns. Of inputs that are all empty, nothing.
    Found {
        /// The record.
        record: Vec<u8>,
        /// Its columns.
        count: u64,
    },
}

/// A column that decides.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Column {
    /// Which one.
    pub name: Name,
    /// How its values are compared.
    pub compare: Compare,
    /// Whether larger comes first.
    pub reversed: bool,
}

/// Which column of a record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Name {
    /// The one that the header calls so.
    Named(String),
    /// The one of this number, from 1.
    Number(u64),
    /// What these steps lead to in a JSON value: names of members, or numbers of elements, from 0.
    Path(Vec<String>),
}

/// The steps of a path to a value in JSON, at least one: what stands between dots. A backslash has what stands behind it be part
/// of a step.
#[must_use]
pub fn steps(path: &str) -> Vec<String> {
    let (mut steps, mut last) = (Vec::new(), String::new());
    let mut characters = path.chars();
    while let Some(character) = characters.next() {
        match character {
            '.' => steps.push(std::mem::take(&mut last)),
            '\\' => last.push(characters.next().unwrap_or('\\')),
            other => last.push(other),
        }
    }
    steps.push(last);
    steps
}

/// How the values of a column are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// As what they are: in JSON false, true, numbers as numbers, strings as text; separated values as text.
    Value,
    /// As text: the bytes of the value without quotes, or of a JSON string without escapes.
    Text,
    /// As numbers, exactly. A value that is none is an error.
    Number,
}

/// Where records come that have nothing in a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Nulls {
    /// Before all others.
    #[default]
    First,
    /// Behind all others.
    Last,
}

impl Columns {
    /// How such records lie in an input.
    #[must_use]
    pub fn format(&self) -> Format {
        match self.form {
            Form::Separated {
                quote: Some(quote), ..
            } => Format::Quoted(quote),
            Form::Separated { quote: None, .. } | Form::Json => Format::Lines,
        }
    }

    /// Whether the first record of each input names the columns.
    #[must_use]
    pub fn has_header(&self) -> bool {
        match &self.form {
            Form::Separated { header, .. } => *header != Header::None,
            Form::Json => false,
        }
    }

    /// Refuses bytes that cannot tell values apart.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] that says what they are needed for.
    pub fn check_bytes(&self) -> Result<()> {
        let Form::Separated {
            delimiter, quote, ..
        } = self.form
        else {
            return Ok(());
        };
        match wrong_bytes(delimiter, quote) {
            None => Ok(()),
            Some(cause) => Err(Error::new(
                ErrorKind::Usage,
                "understanding the columns",
                cause,
            )),
        }
    }

    /// How many records in front of the others are none: its header, or as many as were `asked` for.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] where both are there.
    pub fn header_records(&self, asked: u64) -> Result<u64> {
        match (self.has_header(), asked) {
            (false, asked) => Ok(asked),
            (true, 0) => Ok(1),
            (true, _) => {
                let cause =
                    "the first record names the columns, so no other lines may be in front of it";
                Err(Error::new(ErrorKind::Usage, "reading the header", cause))
            }
        }
    }

    /// What the first record of each input must be, once it is known.
    #[must_use]
    pub fn header(&self) -> Option<&[u8]> {
        match &self.form {
            Form::Separated {
                header: Header::Found { record, .. },
                ..
            } => Some(record),
            _ => None,
        }
    }
}

/// Why these cannot tell values apart, if they cannot.
pub(crate) fn wrong_bytes(delimiter: u8, quote: Option<u8>) -> Option<&'static str> {
    let ends_lines = |byte: u8| matches!(byte, b'\n' | b'\r');
    if ends_lines(delimiter) || quote.is_some_and(ends_lines) {
        Some("what ends lines can neither part values nor quote them")
    } else if quote == Some(delimiter) {
        Some("one byte cannot both part values and quote them")
    } else {
        None
    }
}

/// The header record with neither byte order mark nor the end of its line.
#[must_use]
pub fn bare_header(record: &[u8]) -> &[u8] {
    let record = record.strip_prefix(BYTE_ORDER_MARK).unwrap_or(record);
    let record = record.strip_suffix(b"\n").unwrap_or(record);
    record.strip_suffix(b"\r").unwrap_or(record)
}

/// That of UTF-8, which some programs put in front of a file.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The most bytes that [`bare_header`] takes off.
pub const HEADER_ENDS_BYTES: usize = BYTE_ORDER_MARK.len() + 2;
