//! The key of a record that is made of columns: the values of some, each encoded to bytes that compare as it does, one
//! behind the other.
//!
//! A value tells where it ends, and of one where larger comes first all bits are turned; what stands for none, null, is
//! never turned. Two quotes within a value stay two, which changes no order ([`super::separated`]). Records whose keys
//! are equal stay as the input has them, so nothing comes behind the last one.
//!
//! | values | null, first or last | otherwise |
//! |---|---|---|
//! | separated, text | nothing but the end of a text, where that comes right; else 00 or 02 | (01 where null is 00 or 02), text, its end |
//! | separated, numbers | 00 00 or ff ff | as `exact.rs` has it |
//! | JSON | 00 or ff | 10 false, 20 true, 30 and a number, 40 and a text |
//!
//! Whoever cuts records out of an input asks [`ColumnKeys::are_good`] about many, or [`ColumnKeys::check`] about each, before anything else
//! does; so what is no number, say, has an encoding here only because a sample is drawn of records that nobody has checked.

use serde::{Deserialize, Serialize};

use super::encoded::Encoded;
use super::exact::Exact;
use super::json::{self, Step};
use super::quoted;
use super::separated::{Separated, without_return};
use super::text::{self, Counting};
use super::window::Window;
use super::wrong::{Wrong, shown};
use crate::columns::{Column, Columns, Compare, Form, Header, Name, Nulls};
use crate::error::{Error, ErrorKind, Result};

/// What decides the order of such records, checked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ColumnKeys {
    values: Values,
    nulls: Nulls,
}

/// Where the values lie that decide.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Values {
    Separated {
        delimiter: u8,
        quote: Option<u8>,
        /// Every record has so many columns, if that is known.
        count: Option<u64>,
        /// Columns from 0.
        keys: Vec<Key<usize>>,
    },
    Json {
        keys: Vec<Key<Vec<Step>>>,
    },
}

/// One value that decides.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Key<P> {
    place: P,
    compare: Compare,
    reversed: bool,
}

const DOING: &str = "understanding the columns";

impl ColumnKeys {
    /// What `columns` say, whose header has been read if they have one.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for column 0, for bytes that cannot part or quote values, and for what
    /// goes by names where there are none.
    pub fn new(columns: &Columns) -> Result<Self> {
        columns.check_bytes()?;
        let values = match &columns.form {
            Form::Separated {
                delimiter,
                quote,
                header,
            } => Values::Separated {
                delimiter: *delimiter,
                quote: *quote,
                count: match header {
                    Header::Found { count, .. } => Some(*count),
                    Header::None | Header::First => None,
                },
                keys: keys(columns, |name| match name {
                    Name::Number(0) => Err(wrong("columns are counted from 1")),
                    Name::Number(number) => Ok(usize::try_from(number - 1).unwrap_or(usize::MAX)),
                    Name::Named(name) => {
                        let cause =
                            format!("no header was read that could tell which column {name:?} is");
                        Err(wrong(&cause))
                    }
                    Name::Path(_) => Err(wrong("separated values have no values in them")),
                })?,
            },
            Form::Json => Values::Json {
                keys: keys(columns, |name| match name {
                    Name::Path(steps) => Ok(steps.iter().map(|step| Step::new(step)).collect()),
                    Name::Number(_) | Name::Named(_) => {
                        Err(wrong("what lies in a JSON value is named by a path"))
                    }
                })?,
            },
        };
        let nulls = columns.nulls;
        Ok(Self { values, nulls })
    }

    /// Whether records, whole and back to back, surely pass [`ColumnKeys::check`], of which the separated ones can be looked at many
    /// at once.
    pub fn are_good(&self, records: &[u8]) -> bool {
        match self.values {
            Values::Separated {
                delimiter,
                quote,
                count,
                ref keys,
            } => {
                let may_be_nothing = keys.is_empty() && count != Some(1);
                let separated = Separated { delimiter, quote };
                keys.iter().all(|key| key.is_in(count))
                    && quoted::are_good(separated, records, count, may_be_nothing)
            }
            Values::Json { .. } => false,
        }
    }

    /// Looks whether a record, which may lack its end, is one whose key can be told. Where none is asked for, a line of
    /// nothing is none of several columns and no JSON, and passes: whoever takes the records apart passes over it.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn check(&self, record: &[u8]) -> std::result::Result<(), Wrong> {
        let record = record.strip_suffix(b"\n").unwrap_or(record);
        match self.values {
            Values::Separated {
                delimiter,
                quote,
                count,
                ref keys,
            } => {
                let record = without_return(record);
                let separated = Separated { delimiter, quote };
                if keys.is_empty() && record.is_empty() && count != Some(1) {
                    return Ok(());
                }
                let have = separated.check(record)?;
                if let Some(wanted) = count.filter(|&wanted| wanted != have) {
                    let have = columns_in_words(have);
                    return Err(Wrong::new(
                        0,
                        format!("it has {have}, and the header has {wanted}"),
                    ));
                }
                keys.iter().try_for_each(|key| key.check(separated, record))
            }
            Values::Json { ref keys } => {
                if keys.is_empty() && record.trim_ascii().is_empty() {
                    return Ok(());
                }
                json::check(record)?;
                keys.iter().try_for_each(|key| key.check(record))
            }
        }
    }
}

impl super::Order {
    /// Whether records are lines of JSON.
    pub fn is_json(&self) -> bool {
        let super::Shape::Columns(keys) = &self.shape else {
            return false;
        };
        matches!(keys.values, Values::Json { .. })
    }
}

impl Encoded for ColumnKeys {
    #[inline]
    fn delimiter(&self) -> u8 {
        b'\n'
    }

    #[inline]
    fn encode(&self, record: &[u8], window: &mut Window<'_>) {
        match self.values {
            Values::Separated {
                delimiter,
                quote,
                ref keys,
                ..
            } => {
                let record = without_return(record);
                let separated = Separated { delimiter, quote };
                for key in keys {
                    let value = separated.value(record, key.place).unwrap_or_default();
                    key.encode(value, self.nulls, window);
                    if window.is_full() {
                        return;
                    }
                }
            }
            Values::Json { ref keys } => {
                for key in keys {
                    key.encode(json::find(record, &key.place), self.nulls, window);
                    if window.is_full() {
                        return;
                    }
                }
            }
        }
    }
}

impl Key<usize> {
    /// Whether each text of records of so many columns has one.
    fn is_in(&self, count: Option<u64>) -> bool {
        let has_it = count.is_some_and(|count| (self.place as u64) < count);
        has_it && self.compare != Compare::Number
    }

    fn check(&self, separated: Separated, record: &[u8]) -> std::result::Result<(), Wrong> {
        let Some(value) = separated.value(record, self.place) else {
            let have = columns_in_words(separated.values(record).count() as u64);
            let cause = format!(
                "it has {have}, and column {} decides the order",
                self.place + 1
            );
            return Err(Wrong::new(0, cause));
        };
        if self.compare != Compare::Number || value.is_empty() {
            return Ok(());
        }
        // Whatever stands for a quote: two of it are no part of a number.
        let has_quote = separated.quote.is_some_and(|quote| value.contains(&quote));
        if !has_quote && Exact::read(value).is_some() {
            return Ok(());
        }
        let at = offset_in(record, value);
        let cause = format!("column {} is no number: {}", self.place + 1, shown(value));
        Err(Wrong::new(at, cause))
    }

    #[inline]
    fn encode(&self, value: &[u8], nulls: Nulls, window: &mut Window<'_>) {
        match self.compare {
            Compare::Value | Compare::Text => self.encode_text(value, nulls, window),
            Compare::Number if value.is_empty() => window.push_all(match nulls {
                Nulls::First => &[0, 0],
                Nulls::Last => &[0xff, 0xff],
            }),
            Compare::Number => {
                window.turn(self.reversed);
                Exact::read(value).unwrap_or(Exact::Nan).encode(window);
                window.turn(self.reversed);
            }
        }
    }

    #[inline]
    fn encode_text(&self, value: &[u8], nulls: Nulls, window: &mut Window<'_>) {
        // An empty text comes before all others, or, turned, behind them.
        let comes_right = (nulls == Nulls::First) != self.reversed;
        match (comes_right, value.is_empty(), nulls) {
            (true, ..) => {}
            (false, false, _) => window.push(1),
            (false, true, Nulls::First) => return window.push(0),
            (false, true, Nulls::Last) => return window.push(2),
        }
        window.turn(self.reversed);
        text::encode(Counting::ALL, value, window);
        window.turn(self.reversed);
    }
}

const FALSE: u8 = 0x10;
const TRUE: u8 = 0x20;
const NUMBER: u8 = 0x30;
const TEXT: u8 = 0x40;
/// What has no place in an order.
const OTHER: u8 = 0x50;

impl Key<Vec<Step>> {
    fn check(&self, line: &[u8]) -> std::result::Result<(), Wrong> {
        let Some(value) = json::find(line, &self.place) else {
            return Ok(());
        };
        let what = match (value.first(), self.compare) {
            (Some(b'{'), _) => "an object",
            (Some(b'['), _) => "an array",
            (Some(b'n'), _) | (_, Compare::Value | Compare::Text) => return Ok(()),
            _ if read_number(value).is_some() => return Ok(()),
            _ => {
                let at = offset_in(line, value);
                return Err(Wrong::new(
                    at,
                    format!("a value is no number: {}", shown(value)),
                ));
            }
        };
        let cause = format!("a value that decides the order is {what}, which has no place in one");
        Err(Wrong::new(offset_in(line, value), cause))
    }

    #[inline]
    fn encode(&self, value: Option<&[u8]>, nulls: Nulls, window: &mut Window<'_>) {
        let Some(value) = value.filter(|value| value.first() != Some(&b'n')) else {
            return window.push(match nulls {
                Nulls::First => 0,
                Nulls::Last => 0xff,
            });
        };
        window.turn(self.reversed);
        encode_value(value, self.compare, window);
        window.turn(self.reversed);
    }
}

#[inline]
fn encode_value(value: &[u8], compare: Compare, window: &mut Window<'_>) {
    match (value.first(), compare) {
        (Some(b'{' | b'[') | None, _) => window.push(OTHER),
        (_, Compare::Number) => encode_number(value, window),
        (Some(b'"'), Compare::Value | Compare::Text) => {
            window.push(TEXT);
            let inner = json::inner(value);
            match memchr::memchr(b'\\', inner) {
                None => text::encode(Counting::ALL, inner, window),
                Some(_) => text::encode_bytes(json::unescaped(inner), window),
            }
        }
        (_, Compare::Text) => {
            window.push(TEXT);
            text::encode(Counting::ALL, value, window);
        }
        (Some(b'f'), Compare::Value) => window.push(FALSE),
        (Some(b't'), Compare::Value) => window.push(TRUE),
        (_, Compare::Value) => encode_number(value, window),
    }
}

#[inline]
fn encode_number(value: &[u8], window: &mut Window<'_>) {
    match read_number(value) {
        Some(number) => {
            window.push(NUMBER);
            number.encode(window);
        }
        None => window.push(OTHER),
    }
}

/// The number that a JSON number is, or what a string without escapes says.
#[inline]
fn read_number(value: &[u8]) -> Option<Exact<'_>> {
    Exact::read(json::inner(value))
}

/// What each of the columns that decide is, by its name.
fn keys<P>(columns: &Columns, place: impl Fn(&Name) -> Result<P>) -> Result<Vec<Key<P>>> {
    let key = |column: &Column| {
        Ok(Key {
            place: place(&column.name)?,
            compare: column.compare,
            reversed: column.reversed,
        })
    };
    columns.by.iter().map(key).collect()
}

fn columns_in_words(count: u64) -> String {
    match count {
        1 => "1 column".to_owned(),
        count => format!("{count} columns"),
    }
}

/// Where `part` begins in `record`, of which it is one.
fn offset_in(record: &[u8], part: &[u8]) -> usize {
    part.as_ptr().addr() - record.as_ptr().addr()
}

fn wrong(cause: &str) -> Error {
    Error::new(ErrorKind::Usage, DOING, cause)
}
