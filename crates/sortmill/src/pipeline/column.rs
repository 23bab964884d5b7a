//! Columns: what a record of a table is made of, and how its values lie in bytes where nobody compares them.
//!
//! Text comes as bytes: a value of type [`Type::String`] should be UTF-8, but is not looked at until somebody needs that.
//! A value may be missing, [`Value::Null`], only in a column that says so ([`Column::or_null`]); there a byte in front of each
//! value tells, and nothing is spent on others.

use super::time::{self, TIMESTAMPS};
use crate::error::{Error, ErrorKind, Result};
use crate::short::{push_text, short_number};
use crate::stage::kernel::marks;

/// What the values of a column are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// Any bytes.
    Binary,
    /// Text.
    String,
    /// A signed integer.
    I64,
    /// An unsigned integer.
    U64,
    /// A float. As a key, -0 is 0, and NaN is one value, above all others.
    F64,
    /// False or true.
    Bool,
    /// A point in time of the years 1 to 9999 ([`TIMESTAMPS`](super::TIMESTAMPS)), in microseconds since 1970 in UTC.
    Timestamp,
}

impl Type {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::String => "string",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::F64 => "f64",
            Self::Bool => "bool",
            Self::Timestamp => "timestamp",
        }
    }

    /// Whether values are bytes.
    #[must_use]
    pub fn is_bytes(self) -> bool {
        matches!(self, Self::Binary | Self::String)
    }

    /// Whether values can be added up.
    #[must_use]
    pub fn is_number(self) -> bool {
        matches!(self, Self::I64 | Self::U64 | Self::F64)
    }

    /// The value that `text` says.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] when it is none of this type.
    pub fn parse(self, text: &[u8]) -> Result<Value<'_>> {
        let word = || std::str::from_utf8(text).unwrap_or_default().trim_ascii();
        let value = match self {
            Self::Binary | Self::String => return Ok(Value::Bytes(text)),
            Self::I64 => short_integer(text)
                .or_else(|| word().parse().ok())
                .map(Value::I64),
            Self::U64 => short_number(text)
                .or_else(|| word().parse().ok())
                .map(Value::U64),
            Self::F64 => short_float(text)
                .or_else(|| word().parse().ok())
                .map(Value::F64),
            Self::Bool => match word() {
                "true" | "True" | "TRUE" => Some(Value::Bool(true)),
                "false" | "False" | "FALSE" => Some(Value::Bool(false)),
                _ => None,
            },
            Self::Timestamp => time::read(text).map(Value::Timestamp),
        };
        value.ok_or_else(|| {
            let shown = String::from_utf8_lossy(&text[..text.len().min(60)]);
            let such = match self {
                Self::Timestamp => ", as 2026-11-23 and 2026-11-23T01:30:00.25+01:00 are",
                _ => "",
            };
            let cause = format!("{shown:?} is no value of type {}{such}", self.name());
            Error::new(ErrorKind::Input, "reading a value", cause)
        })
    }
}

/// The number that few digits are, with `-` in front or not, and nothing else.
#[inline(always)]
fn short_integer(text: &[u8]) -> Option<i64> {
    match text {
        [b'-', digits @ ..] => short_number(digits).map(|number| -(number as i64)),
        _ => short_number(text).map(|number| number as i64),
    }
}

/// The float that few digits are, with a point between them or not, `-` in front or not, and nothing else. Digits of which a float
/// holds every number, over a power of ten that one is, too, make the nearest float in one division (W. D. Clinger, "How to read
/// floating point numbers accurately", PLDI 1990, section 3).
#[inline(always)]
fn short_float(text: &[u8]) -> Option<f64> {
    const DIGITS_MAX: usize = 15;
    const TENS: [f64; DIGITS_MAX] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14,
    ];
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        _ => (false, text),
    };
    if digits.len() > DIGITS_MAX + 1 {
        return None;
    }
    let value = match marks(digits, b'.')? {
        0 => short_number(digits).filter(|_| digits.len() <= DIGITS_MAX)? as f64,
        point => {
            let (whole, part) = digits.split_at(point.trailing_zeros() as usize);
            let part = &part[1..];
            let ten = *TENS.get(part.len())?;
            // Of integers that a float holds exactly, up to 2^53, sums and products are exact.
            (short_number(whole)? as f64 * ten + short_number(part)? as f64) / ten
        }
    };
    Some(if is_negative { -value } else { value })
}

/// A column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// What it is called.
    pub name: String,
    /// What its values are.
    pub kind: Type,
    /// Whether values may be missing.
    pub nullable: bool,
}

/// In front of a value of a column whose values may be missing: that it is, or is not.
const MISSING: u8 = 0;
const PRESENT: u8 = 1;

impl Column {
    /// The column `name` of values of type `kind`, all of which are there.
    pub fn new(name: impl Into<String>, kind: Type) -> Self {
        Self {
            name: name.into(),
            kind,
            nullable: false,
        }
    }

    /// The same of values that may be missing.
    #[must_use]
    pub fn or_null(self) -> Self {
        self.or_null_if(true)
    }

    /// The same of values that may be missing if `nullable`, and else only if they might before.
    #[must_use]
    pub(super) fn or_null_if(self, nullable: bool) -> Self {
        Self {
            nullable: self.nullable || nullable,
            ..self
        }
    }

    /// The name of its type, with a `?` behind it if values may be missing.
    #[must_use]
    pub fn type_name(&self) -> String {
        let mark = if self.nullable { "?" } else { "" };
        format!("{}{mark}", self.kind.name())
    }

    /// Whether `value` is one of its values.
    #[must_use]
    pub fn holds(&self, value: &Value<'_>) -> bool {
        match value {
            Value::Null => self.nullable,
            value => value.is(self.kind),
        }
    }

    /// What to do about text of it that is not UTF-8, where only text is taken that is.
    #[must_use]
    pub fn as_bytes_hint(&self) -> String {
        let cast = cast_to_bytes(&self.name);
        format!("As bytes it is taken as it is: {cast} in front.")
    }

    /// Whether `text` says that there is no value: it is empty or blank, values may be missing, and they are no texts.
    #[must_use]
    pub(super) fn is_null(&self, text: &[u8]) -> bool {
        self.nullable && !self.kind.is_bytes() && text.trim_ascii().is_empty()
    }

    /// Appends a value that the column holds: [`Value::write`], behind a byte that says whether there is one if it may be
    /// missing.
    pub fn put(&self, value: &Value<'_>, to: &mut Vec<u8>) {
        match (self.nullable, value) {
            (false, value) => value.write(to),
            (true, Value::Null) => to.push(MISSING),
            (true, value) => {
                to.push(PRESENT);
                value.write(to);
            }
        }
    }

    /// The value that [`Column::put`] wrote, and moves `from` behind it. `None` if there is none.
    #[must_use]
    pub fn take<'a>(&self, from: &mut &'a [u8]) -> Option<Value<'a>> {
        if self.nullable {
            match take(from, 1)?[0] {
                MISSING => return Some(Value::Null),
                PRESENT => {}
                _ => return None,
            }
        }
        Value::read(self.kind, from)
    }
}

/// How a program says that the column `name` has bytes and no text.
pub(super) fn cast_to_bytes(name: &str) -> String {
    let is_word = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let named = match is_word && name.starts_with(|first: char| !first.is_ascii_digit()) {
        true => format!("{name}=sm.col({name:?}).cast(bytes)"),
        false => format!("**{{{name:?}: sm.col({name:?}).cast(bytes)}}"),
    };
    format!("with_columns({named}), in Rust col({name:?}).cast(Type::Binary),")
}

/// A value of a record. Text is bytes that are borrowed.
#[derive(Clone, Copy, PartialEq, Debug)]
#[repr(u64)]
pub enum Value<'a> {
    /// There is none.
    Null,
    /// Of [`Type::Binary`] or [`Type::String`].
    Bytes(&'a [u8]),
    /// Of [`Type::I64`].
    I64(i64),
    /// Of [`Type::U64`].
    U64(u64),
    /// Of [`Type::F64`].
    F64(f64),
    /// Of [`Type::Bool`].
    Bool(bool),
    /// Of [`Type::Timestamp`].
    Timestamp(i64),
}

impl<'a> Value<'a> {
    /// Whether it is one of `kind`; none is of no type.
    #[must_use]
    pub fn is(&self, kind: Type) -> bool {
        match self {
            Self::Null => false,
            Self::Bytes(_) => kind.is_bytes(),
            Self::I64(_) => kind == Type::I64,
            Self::U64(_) => kind == Type::U64,
            Self::F64(_) => kind == Type::F64,
            Self::Bool(_) => kind == Type::Bool,
            Self::Timestamp(micros) => kind == Type::Timestamp && TIMESTAMPS.contains(micros),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Its bytes, of a binary or a string; of others none.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        match *self {
            Self::Bytes(bytes) => bytes,
            _ => &[],
        }
    }

    /// Appends it: a length (varint) and bytes, 8 bytes little-endian, or one byte.
    ///
    /// # Panics
    /// If there is none: [`Column::put`] says so in a byte of its own.
    pub fn write(&self, to: &mut Vec<u8>) {
        match *self {
            Self::Null => panic!("a value is missing in a column that holds one in each record"),
            Self::Bytes(bytes) => {
                write_length(bytes.len() as u64, to);
                push_text(bytes, to);
            }
            Self::I64(value) | Self::Timestamp(value) => {
                to.extend_from_slice(&value.to_le_bytes());
            }
            Self::U64(value) => to.extend_from_slice(&value.to_le_bytes()),
            Self::F64(value) => to.extend_from_slice(&value.to_bits().to_le_bytes()),
            Self::Bool(value) => to.push(u8::from(value)),
        }
    }

    /// The value of type `kind` that [`Value::write`] wrote, and moves `from` behind it. `None` if there is none.
    #[must_use]
    pub fn read(kind: Type, from: &mut &'a [u8]) -> Option<Self> {
        let value = match kind {
            Type::Binary | Type::String => {
                let length = read_length(from)?;
                return take(from, usize::try_from(length).ok()?).map(Self::Bytes);
            }
            Type::Bool => Self::Bool(take(from, 1)?[0] != 0),
            Type::I64 | Type::U64 | Type::F64 | Type::Timestamp => {
                let bits = u64::from_le_bytes(take(from, 8)?.try_into().expect("eight bytes"));
                match kind {
                    Type::I64 => Self::I64(bits as i64),
                    Type::Timestamp => Self::Timestamp(bits as i64),
                    Type::U64 => Self::U64(bits),
                    _ => Self::F64(f64::from_bits(bits)),
                }
            }
        };
        Some(value)
    }
}

fn write_length(mut length: u64, to: &mut Vec<u8>) {
    while length >= 0x80 {
        to.push(length as u8 | 0x80);
        length >>= 7;
    }
    to.push(length as u8);
}

fn read_length(from: &mut &[u8]) -> Option<u64> {
    let mut length = 0;
    for shift in (0..63).step_by(7) {
        let byte = take(from, 1)?[0];
        length |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(length);
        }
    }
    None
}

/// The first `count` bytes, which `from` then begins behind.
pub(super) fn take<'a>(from: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(count)?;
    *from = rest;
    Some(taken)
}

/// Calls `with` with `count` values that `get` tells by their numbers: without an allocation, unless they are many.
pub(super) fn row<'a, T>(
    count: usize,
    mut get: impl FnMut(usize) -> Result<Value<'a>>,
    with: impl FnOnce(&[Value<'a>]) -> Result<T>,
) -> Result<T> {
    // Most records are of few columns, and to make room for many takes longer than to fill it.
    match count {
        1 => with(&[get(0)?]),
        2 => with(&[get(0)?, get(1)?]),
        3 => with(&[get(0)?, get(1)?, get(2)?]),
        4 => with(&[get(0)?, get(1)?, get(2)?, get(3)?]),
        5 => with(&[get(0)?, get(1)?, get(2)?, get(3)?, get(4)?]),
        0 | 6..=8 => few::<8, T>(count, get, with),
        9..=16 => few::<16, T>(count, get, with),
        _ => with(&(0..count).map(get).collect::<Result<Vec<_>>>()?),
    }
}

/// The same of at most `MOST`.
#[inline(always)]
fn few<'a, const MOST: usize, T>(
    count: usize,
    mut get: impl FnMut(usize) -> Result<Value<'a>>,
    with: impl FnOnce(&[Value<'a>]) -> Result<T>,
) -> Result<T> {
    let mut few = [Value::Null; MOST];
    for (at, place) in few[..count].iter_mut().enumerate() {
        *place = get(at)?;
    }
    with(&few[..count])
}

/// The error of a record between two phases that is not what was written.
pub(super) fn corrupt() -> Error {
    let cause = "a record did not come back as it was written";
    Error::new(ErrorKind::Corrupt, "reading records between phases", cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of what is short and what is not the float comes that the standard library reads, bit by bit.
    #[test]
    fn floats_are_read() {
        let mut state = 7_u64;
        let mut next = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let read = |text: &str| match Type::F64.parse(text.as_bytes()) {
            Ok(Value::F64(value)) => Some(value.to_bits()),
            Ok(other) => panic!("{other:?}"),
            Err(_) => None,
        };
        let mut numbers = 0;
        for _ in 0..200_000 {
            let digits = |count: u64, next: &mut dyn FnMut(u64) -> u64| -> String {
                let digit = |_| char::from(b'0' + next(10) as u8);
                (0..count).map(digit).collect()
            };
            let (whole, part) = (next(11), next(11));
            let mut text = if next(2) == 0 { "-" } else { "" }.to_owned();
            text += &digits(whole, &mut next);
            if next(4) > 0 {
                text += ".";
                text += &digits(part, &mut next);
            }
            if next(50) == 0 {
                text += ["e5", ".", "-", "e-300", " "][next(5) as usize];
            }
            let wanted = text.trim().parse::<f64>().ok().map(f64::to_bits);
            assert_eq!(read(&text), wanted, "{text}");
            numbers += u32::from(wanted.is_some());
        }
        assert!(numbers > 100_000, "{numbers}");
        for text in [
            "-0",
            "-0.0",
            "0.1",
            "999999999999999",
            "9999999999999999",
            "9.99999999999999",
            "99999999999999.9",
            "0.30000000000000004",
            "1e999",
            "NaN",
            "-inf",
        ] {
            let wanted = text.parse::<f64>().unwrap().to_bits();
            assert_eq!(read(text), Some(wanted), "{text}");
        }
        for text in [
            "", "-", ".", "-.", "1..2", "1.2.3", "--1", "1,5", "1.-5", "0x1",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn whole_numbers_are_read() {
        for text in [
            "0",
            "007",
            "999999999999999999",
            "18446744073709551615",
            "+5",
            " 12 ",
        ] {
            let wanted = Value::U64(text.trim().parse().unwrap());
            assert_eq!(Type::U64.parse(text.as_bytes()).unwrap(), wanted);
        }
        for text in [
            "-9223372036854775808",
            "9223372036854775807",
            "-9999999999999999",
            "-24109",
            "-0",
            "4",
        ] {
            let wanted = Value::I64(text.parse().unwrap());
            assert_eq!(Type::I64.parse(text.as_bytes()).unwrap(), wanted);
        }
        for text in [
            "",
            "-",
            "1 2",
            "1:",
            "0x1",
            "9223372036854775808",
            "5/",
            "\u{663}",
        ] {
            assert!(Type::I64.parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn values_come_back() {
        let long = vec![b'x'; 300];
        let cases = [
            (Type::Binary, Value::Bytes(b"a\0\xff")),
            (Type::String, Value::Bytes(&long)),
            (Type::I64, Value::I64(i64::MIN)),
            (Type::U64, Value::U64(u64::MAX)),
            (Type::F64, Value::F64(-0.0)),
            (Type::Bool, Value::Bool(true)),
            (Type::Timestamp, Value::Timestamp(-1)),
        ];
        let mut bytes = Vec::new();
        cases.iter().for_each(|(_, value)| value.write(&mut bytes));
        let mut rest = &bytes[..];
        for (kind, value) in cases {
            assert!(value.is(kind));
            assert_eq!(Value::read(kind, &mut rest), Some(value));
        }
        assert!(rest.is_empty());
        for (kind, value) in cases {
            let mut bytes = Vec::new();
            value.write(&mut bytes);
            for end in 0..bytes.len() {
                assert_eq!(Value::read(kind, &mut &bytes[..end]), None);
            }
        }
    }

    #[test]
    fn times_are_those_of_the_years_1_to_9999() {
        let column = Column::new("t", Type::Timestamp);
        let (first, last) = (*TIMESTAMPS.start(), *TIMESTAMPS.end());
        for (micros, is_one) in [
            (first, true),
            (first - 1, false),
            (last, true),
            (last + 1, false),
        ] {
            assert_eq!(column.holds(&Value::Timestamp(micros)), is_one);
        }
        assert!(!column.holds(&Value::I64(0)) && column.kind.parse(b"12:30").is_err());
        let parsed = column.kind.parse(b"1970-01-02").unwrap();
        assert_eq!(parsed, Value::Timestamp(86_400_000_000));
    }

    #[test]
    fn missing_values_come_back() {
        let sure = Column::new("a", Type::I64);
        let column = sure.clone().or_null();
        assert_eq!([sure.type_name(), column.type_name()], ["i64", "i64?"]);
        assert!(column.holds(&Value::Null) && !sure.holds(&Value::Null));
        assert!(column.holds(&Value::I64(1)) && !column.holds(&Value::U64(1)));
        let mut bytes = Vec::new();
        for value in [Value::Null, Value::I64(-1), Value::Null] {
            column.put(&value, &mut bytes);
        }
        assert_eq!(bytes.len(), 1 + 9 + 1);
        let mut rest = &bytes[..];
        let back = [(); 4].map(|()| column.take(&mut rest));
        let missing = Some(Value::Null);
        assert_eq!(back, [missing, Some(Value::I64(-1)), missing, None]);
        assert_eq!(column.take(&mut &[2, 0, 0, 0, 0, 0, 0, 0, 0][..]), None);
        // Where none may be missing nothing is spent on it.
        bytes.clear();
        sure.put(&Value::I64(-1), &mut bytes);
        assert_eq!(bytes.len(), 8);
    }
}
