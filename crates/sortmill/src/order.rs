//! What a record is and how two of them compare: formats, keys, order-preserving words.
//!
//! A key is a function of the record into bytes whose plain comparison is the order asked for. The
//! engine asks for it a **word** at a time: a `u64` that compares as the next few bytes do. Word 0 goes
//! into the sort entry; later words are fetched only where earlier ones are equal. Nothing is stored
//! beside the record: words are computed again wherever they are needed.
//!
//! A fixed key gives 8 bytes a word. A line gives 7 bytes and, in the lowest byte, how many bytes were
//! left (8 for more than 7), so that short lines are told apart by one word and `ab` sorts before `ab\0`.
//! The key of a pair does the same, and so do lines of which fields decide (`order/keys.rs`) and records of columns
//! (`order/columns.rs`).

mod columns;
mod encoded;
mod exact;
pub mod fields;
mod general;
mod human;
pub(crate) mod json;
mod keys;
mod month;
mod near;
mod number;
#[cfg(feature = "tamper")]
mod planted;
pub(crate) mod quoted;
mod random;
mod separated;
mod text;
mod version;
mod window;
mod words;
mod wrong;

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::columns::Columns;
use crate::error::{Error, ErrorKind, Result};
use crate::line_keys::LineOrder;
use crate::stage::kernel::find_end;

use columns::ColumnKeys;
use encoded::Encoded;
use keys::Keys;

#[cfg(feature = "tamper")]
pub use planted::Fault;
pub use separated::Separated;
pub use wrong::Wrong;

/// How records lie in the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Records end in a newline, or the byte that the order says; one that is missing at the end of an input is
    /// added.
    Lines,
    /// Records of so many bytes.
    Fixed(u32),
    /// Pairs: the key's length and the value's, each a little-endian `u32`, then the key, then the value.
    Kv,
    /// Records end in a newline that stands between no two of these bytes; one that is missing at the end of an input
    /// is added. They are made of columns ([`Columns`]).
    Quoted(u8),
}

impl Format {
    /// Whether records end in a byte that says so.
    #[must_use]
    pub fn has_delimiter(self) -> bool {
        match self {
            Self::Lines | Self::Quoted(_) => true,
            Self::Fixed(_) | Self::Kv => false,
        }
    }
}

/// Bytes in front of a pair's key: the two lengths.
pub const KV_HEADER_BYTES: usize = 8;

/// Bytes of the pair that begins with `bytes`; `None` if these do not hold its lengths. What they say comes
/// from outside: it may be more than there is.
#[inline]
#[must_use]
pub fn kv_bytes(bytes: &[u8]) -> Option<u64> {
    let [key, value] = kv_lengths(bytes.get(..KV_HEADER_BYTES)?);
    Some(KV_HEADER_BYTES as u64 + u64::from(key) + u64::from(value))
}

#[inline]
fn kv_lengths(header: &[u8]) -> [u32; 2] {
    [0, 4].map(|at| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes")))
}

#[inline]
fn kv_key(record: &[u8]) -> &[u8] {
    let [key, _] = kv_lengths(record);
    &record[KV_HEADER_BYTES..KV_HEADER_BYTES + key as usize]
}

/// A record of which a part has been seen: how much, and the first bytes of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Begun {
    head: [u8; KV_HEADER_BYTES],
    /// Bytes seen so far.
    pub bytes: u64,
    /// Whether a quote among them is open.
    #[serde(default)]
    is_quoted: bool,
}

impl Begun {
    /// A record of which `bytes` came before, whatever they were: enough for lines and fixed records.
    #[must_use]
    pub fn with(bytes: u64) -> Self {
        Self {
            bytes,
            ..Self::default()
        }
    }

    /// Has seen the next `part` of the record. Of quotes [`Order::see`] knows.
    pub fn see(&mut self, part: &[u8]) {
        if let Some(room) = self.head.get_mut(self.bytes as usize..) {
            let count = room.len().min(part.len());
            room[..count].copy_from_slice(&part[..count]);
        }
        self.bytes += part.len() as u64;
    }

    /// Bytes of the pair, once its lengths have been seen.
    #[must_use]
    pub fn kv_bytes(&self) -> Option<u64> {
        kv_bytes(&self.head[..self.head.len().min(self.bytes as usize)])
    }
}

/// How the bytes of a key part are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Number {
    /// As bytes.
    Bytes,
    /// An unsigned integer.
    Unsigned,
    /// A two's complement integer.
    Signed,
    /// An IEEE 754 number of 4 or 8 bytes, in the order of its `totalOrder`: -NaN, -inf, ..., -0, +0, ...,
    /// inf, NaN.
    Float,
}

/// One part of a fixed record's key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeyPart {
    /// First byte in the record.
    pub offset: u32,
    /// How many bytes.
    pub bytes: u32,
    /// What they mean.
    pub number: Number,
    /// Whether the lowest byte comes first; only for numbers.
    pub little_endian: bool,
    /// Whether larger comes first.
    pub reversed: bool,
}

impl KeyPart {
    /// Plain bytes in ascending order.
    #[must_use]
    pub fn plain(offset: u32, bytes: u32) -> Self {
        Self {
            offset,
            bytes,
            number: Number::Bytes,
            little_endian: false,
            reversed: false,
        }
    }

    fn range(&self) -> std::ops::Range<usize> {
        self.offset as usize..(self.offset + self.bytes) as usize
    }

    /// Byte `at` of the part's order-preserving form.
    fn byte(&self, field: &[u8], at: usize) -> u8 {
        let raw = |at: usize| {
            let at = if self.little_endian {
                field.len() - 1 - at
            } else {
                at
            };
            field[at]
        };
        let byte = match self.number {
            Number::Bytes | Number::Unsigned => raw(at),
            Number::Signed if at == 0 => raw(0) ^ 0x80,
            Number::Signed => raw(at),
            // Of a negative number every bit is turned, of any other the sign.
            Number::Float if raw(0) >= 0x80 => !raw(at),
            Number::Float if at == 0 => raw(0) ^ 0x80,
            Number::Float => raw(at),
        };
        if self.reversed { !byte } else { byte }
    }
}

/// Format and key of a job, ready to be asked. One per job, shared by all its threads.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Order {
    format: Format,
    /// What ends a line.
    #[serde(default = "newline")]
    delimiter: u8,
    /// Whether of records with equal keys only the first comes out.
    #[serde(default)]
    unique: bool,
    shape: Shape,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Shape {
    /// The whole line without its newline.
    Line,
    /// The key of a pair.
    Pair,
    /// One run of plain bytes.
    Slice { offset: usize, bytes: usize },
    /// Several parts, or parts that need a transformation.
    Parts { parts: Vec<KeyPart>, bytes: usize },
    /// Fields and bytes of a line.
    Keys(Keys),
    /// Columns of a record.
    Columns(ColumnKeys),
    /// None: the place decides.
    Place,
}

fn newline() -> u8 {
    b'\n'
}

impl Order {
    /// Checks that `parts` suit `format`. No part means the whole record.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] that names the part and the limit it breaks.
    pub fn new(format: Format, parts: &[KeyPart]) -> Result<Self> {
        let wrong =
            |cause: String| Err(Error::new(ErrorKind::Usage, "understanding the key", cause));
        let size = match format {
            Format::Lines if parts.is_empty() => return Ok(Self::lines()),
            Format::Lines => {
                return wrong(
                    "lines are compared whole; a key of bytes needs --format fixed:SIZE".into(),
                );
            }
            Format::Kv if parts.is_empty() => return Ok(Self::shaped(format, Shape::Pair)),
            Format::Kv => {
                return wrong(
                    "kv records have a key of their own; another needs --format fixed:SIZE".into(),
                );
            }
            Format::Quoted(_) => return wrong("records with quotes are ordered by columns".into()),
            Format::Fixed(0) => return wrong("a record of 0 bytes cannot be sorted".into()),
            Format::Fixed(bytes) => bytes,
        };
        for part in parts {
            let KeyPart {
                offset,
                bytes,
                number,
                ..
            } = *part;
            if bytes == 0 {
                return wrong(format!("the key {offset}:{bytes} is empty"));
            }
            if u64::from(offset) + u64::from(bytes) > u64::from(size) {
                return wrong(format!(
                    "the key {offset}:{bytes} ends at byte {}, behind the record's {size} bytes",
                    u64::from(offset) + u64::from(bytes)
                ));
            }
            if number == Number::Float && bytes != 4 && bytes != 8 {
                return wrong(format!(
                    "the key {offset}:{bytes} is a float, which has 4 or 8 bytes"
                ));
            }
        }
        let plain = |part: &KeyPart| {
            matches!(part.number, Number::Bytes | Number::Unsigned)
                && !part.reversed
                && !part.little_endian
        };
        let shape = match parts {
            [] => Shape::Slice {
                offset: 0,
                bytes: size as usize,
            },
            [part] if plain(part) => Shape::Slice {
                offset: part.offset as usize,
                bytes: part.bytes as usize,
            },
            parts => Shape::Parts {
                parts: parts.to_vec(),
                bytes: parts.iter().map(|part| part.bytes as usize).sum(),
            },
        };
        Ok(Self::shaped(format, shape))
    }

    fn shaped(format: Format, shape: Shape) -> Self {
        Self {
            format,
            delimiter: newline(),
            unique: false,
            shape,
        }
    }

    /// The order of whole lines.
    #[must_use]
    pub fn lines() -> Self {
        Self::shaped(Format::Lines, Shape::Line)
    }

    /// The order that fields and bytes of lines make.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a field or byte 0, which are counted from 1.
    pub fn of_lines(order: &LineOrder) -> Result<Self> {
        let keys = Keys::new(order)?;
        let shape = match keys.are_the_line() {
            true => Shape::Line,
            false => Shape::Keys(keys),
        };
        Ok(Self {
            delimiter: order.delimiter,
            unique: order.unique,
            ..Self::shaped(Format::Lines, shape)
        })
    }

    /// The order that columns make, of records that lie as they say.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for columns that cannot be told.
    pub fn of_columns(columns: &Columns) -> Result<Self> {
        let keys = ColumnKeys::new(columns)?;
        Ok(Self::shaped(columns.format(), Shape::Columns(keys)))
    }

    /// Whether not every record has a key: then [`Order::check`] is to be asked about each that is cut out of an input.
    #[must_use]
    pub fn has_columns(&self) -> bool {
        matches!(self.shape, Shape::Columns(_))
    }

    /// Whether records, whole and back to back, surely pass [`Order::check`], told of many at once.
    #[must_use]
    pub fn are_good(&self, records: &[u8]) -> bool {
        match &self.shape {
            Shape::Columns(keys) => keys.are_good(records),
            _ => true,
        }
    }

    /// Looks whether a record is made of the columns that the order asks for. Others all are.
    ///
    /// # Errors
    /// What is wrong with it, and where in it.
    pub fn check(&self, record: &[u8]) -> std::result::Result<(), Wrong> {
        match &self.shape {
            Shape::Columns(keys) => keys.check(record),
            _ => Ok(()),
        }
    }

    /// The same order, in which of records with equal keys only the first comes out, if `unique`.
    #[must_use]
    pub fn with_unique(self, unique: bool) -> Self {
        Self {
            unique: self.unique || unique,
            ..self
        }
    }

    /// The same records without keys: they are all equal.
    #[must_use]
    pub fn by_place(self) -> Self {
        Self {
            shape: Shape::Place,
            ..self
        }
    }

    /// Whether of records with equal keys only the first comes out.
    #[must_use]
    pub fn is_unique(&self) -> bool {
        self.unique
    }

    /// Has a mistake happen from now on, in an order of fields and bytes of lines; `false` for any other.
    #[cfg(feature = "tamper")]
    pub fn plant(&mut self, fault: Fault) -> bool {
        match &mut self.shape {
            Shape::Keys(keys) => {
                keys.plant(fault);
                true
            }
            _ => false,
        }
    }

    /// What ends a line.
    #[must_use]
    pub fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// Where in a record its key begins, if it lies there in one piece as it is; `None` if it may lie anywhere in it.
    #[must_use]
    pub fn key_from(&self) -> Option<usize> {
        match &self.shape {
            Shape::Line => Some(0),
            Shape::Pair => Some(KV_HEADER_BYTES),
            Shape::Slice { .. } | Shape::Parts { .. } | Shape::Keys(_) | Shape::Columns(_) => None,
            // Nothing, of which the record is behind: where other keys of the format are.
            Shape::Place => match self.format {
                Format::Lines => Some(0),
                Format::Kv => Some(KV_HEADER_BYTES),
                _ => None,
            },
        }
    }

    /// Whether `bytes` are one whole record.
    #[must_use]
    pub fn is_record(&self, bytes: &[u8]) -> bool {
        match self.format {
            Format::Lines => {
                let end = memchr::memchr(self.delimiter, bytes);
                end.is_some_and(|at| at + 1 == bytes.len())
            }
            Format::Fixed(size) => bytes.len() == size as usize,
            Format::Kv => kv_bytes(bytes) == Some(bytes.len() as u64),
            Format::Quoted(quote) => separated::first_end(bytes, quote, false) == Some(bytes.len()),
        }
    }

    /// How records lie in the input.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// `begun`, of whose record the next `part` has come.
    pub fn see(&self, begun: &mut Begun, part: &[u8]) {
        begun.see(part);
        if let Format::Quoted(quote) = self.format {
            begun.is_quoted ^= separated::is_odd(part, quote);
        }
    }

    /// Where the record that has `begun` ends in the `bytes` that follow, `None` if it goes on behind them.
    #[must_use]
    pub fn first_end(&self, bytes: &[u8], begun: &Begun) -> Option<usize> {
        let record_bytes = match self.format {
            Format::Lines => return memchr::memchr(self.delimiter, bytes).map(|at| at + 1),
            Format::Quoted(quote) => return separated::first_end(bytes, quote, begun.is_quoted),
            Format::Fixed(size) => u64::from(size),
            Format::Kv => {
                let mut seen = *begun;
                seen.see(&bytes[..bytes.len().min(KV_HEADER_BYTES)]);
                seen.kv_bytes()?
            }
        };
        let end = record_bytes - begun.bytes;
        (end <= bytes.len() as u64).then_some(end as usize)
    }

    /// Where the last whole record of `bytes` ends, 0 if none does. The first one has `begun` before them.
    #[must_use]
    pub fn last_end(&self, bytes: &[u8], begun: &Begun) -> usize {
        match self.format {
            Format::Lines => memchr::memrchr(self.delimiter, bytes).map_or(0, |at| at + 1),
            Format::Quoted(quote) => separated::last_end(bytes, quote, begun.is_quoted),
            Format::Fixed(size) => {
                let beyond = (begun.bytes + bytes.len() as u64) % u64::from(size);
                bytes.len().saturating_sub(beyond as usize)
            }
            Format::Kv => {
                let Some(mut end) = self.first_end(bytes, begun) else {
                    return 0;
                };
                // From header to header: only they tell where a pair begins.
                while let Some(next) = kv_bytes(&bytes[end..]) {
                    if next > (bytes.len() - end) as u64 {
                        break;
                    }
                    end += next as usize;
                }
                end
            }
        }
    }

    /// Bytes of the record at the start of `bytes`, which hold all of it.
    #[inline]
    #[must_use]
    pub fn record_bytes(&self, bytes: &[u8]) -> usize {
        match self.format {
            Format::Lines => find_end(self.delimiter, bytes).map_or(bytes.len(), |at| at + 1),
            Format::Quoted(quote) => {
                separated::first_end(bytes, quote, false).unwrap_or(bytes.len())
            }
            Format::Fixed(size) => size as usize,
            Format::Kv => kv_bytes(bytes).map_or(bytes.len(), |length| length as usize),
        }
    }

    /// How many records `bytes` hold, if they hold whole ones only.
    #[must_use]
    pub fn whole_records(&self, bytes: &[u8]) -> Option<u64> {
        match self.format {
            Format::Lines => {
                let is_whole = bytes.last().is_none_or(|&byte| byte == self.delimiter);
                is_whole.then(|| memchr::memchr_iter(self.delimiter, bytes).count() as u64)
            }
            Format::Fixed(size) => {
                let (count, rest) = (bytes.len() / size as usize, bytes.len() % size as usize);
                (rest == 0).then_some(count as u64)
            }
            Format::Kv | Format::Quoted(_) => {
                let (mut at, mut count) = (0, 0);
                while at < bytes.len() {
                    at += self.first_end(&bytes[at..], &Begun::default())?;
                    count += 1;
                }
                Some(count)
            }
        }
    }

    /// Compares the keys of two records.
    #[must_use]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match &self.shape {
            Shape::Line => a[..a.len() - 1].cmp(&b[..b.len() - 1]),
            Shape::Pair => kv_key(a).cmp(kv_key(b)),
            Shape::Slice { offset, bytes } => {
                let range = *offset..*offset + *bytes;
                a[range.clone()].cmp(&b[range])
            }
            Shape::Parts { parts, .. } => {
                for part in parts {
                    let (x, y) = (&a[part.range()], &b[part.range()]);
                    for at in 0..part.bytes as usize {
                        let order = part.byte(x, at).cmp(&part.byte(y, at));
                        if order.is_ne() {
                            return order;
                        }
                    }
                }
                Ordering::Equal
            }
            Shape::Keys(keys) => keys.compare(a, b),
            Shape::Columns(keys) => keys.compare_heads(a, b, usize::MAX),
            Shape::Place => Ordering::Equal,
        }
    }

    /// Compares the keys of two records as far as their first `bytes_max` bytes tell.
    #[must_use]
    pub fn compare_heads(&self, a: &[u8], b: &[u8], bytes_max: usize) -> Ordering {
        match &self.shape {
            Shape::Keys(keys) => keys.compare_heads(a, b, bytes_max),
            Shape::Columns(keys) => keys.compare_heads(a, b, bytes_max),
            _ => {
                let [a, b] = [a, b].map(|record| {
                    let key = self.plain_key(record);
                    &key[..key.len().min(bytes_max)]
                });
                a.cmp(b)
            }
        }
    }

    /// Whether the record's key has `bytes` bytes or more.
    #[must_use]
    pub fn key_reaches(&self, record: &[u8], bytes: usize) -> bool {
        match &self.shape {
            Shape::Keys(keys) => keys.reaches(record, bytes),
            Shape::Columns(keys) => keys.reaches(record, bytes),
            _ => self.plain_key(record).len() >= bytes,
        }
    }

    /// Compares a record's key with one that [`Order::key_into`] made, or with any other bytes: a
    /// boundary need not be the key of a record.
    #[must_use]
    pub fn compare_with_key(&self, record: &[u8], key: &[u8]) -> Ordering {
        match &self.shape {
            Shape::Line => record[..record.len() - 1].cmp(key),
            Shape::Pair => kv_key(record).cmp(key),
            Shape::Slice { offset, bytes } => record[*offset..*offset + *bytes].cmp(key),
            Shape::Parts { parts, .. } => {
                let bytes = parts.iter().flat_map(|part| {
                    let field = &record[part.range()];
                    (0..part.bytes as usize).map(|at| part.byte(field, at))
                });
                bytes.cmp(key.iter().copied())
            }
            Shape::Keys(keys) => keys.compare_with_key(record, key),
            Shape::Columns(keys) => keys.compare_with_key(record, key),
            Shape::Place => b""[..].cmp(key),
        }
    }

    /// The key of a line or a pair, as it lies in the record.
    ///
    /// # Panics
    /// Where keys may lie in pieces ([`Order::key_from`]): our own bug.
    #[must_use]
    pub fn plain_key<'r>(&self, record: &'r [u8]) -> &'r [u8] {
        match &self.shape {
            Shape::Line => &record[..record.len() - 1],
            Shape::Pair => kv_key(record),
            Shape::Place => &[],
            Shape::Slice { .. } | Shape::Parts { .. } | Shape::Keys(_) | Shape::Columns(_) => {
                unreachable!("a key that may lie in pieces")
            }
        }
    }

    /// Appends the record's key, in its order-preserving form, to `key`.
    pub fn key_into(&self, record: &[u8], key: &mut Vec<u8>) {
        self.key_head_into(record, usize::MAX, key);
    }

    /// The record's key, in its order-preserving form, cut to `bytes_max` bytes.
    #[must_use]
    pub fn key_head(&self, record: &[u8], bytes_max: usize) -> Vec<u8> {
        let mut key = Vec::with_capacity(16);
        self.key_head_into(record, bytes_max, &mut key);
        key.shrink_to_fit();
        key
    }

    /// The same into `key`, which was empty if it is cut.
    pub fn key_head_into(&self, record: &[u8], bytes_max: usize, key: &mut Vec<u8>) {
        match &self.shape {
            Shape::Line | Shape::Pair | Shape::Place => {
                let whole = self.plain_key(record);
                key.extend_from_slice(&whole[..whole.len().min(bytes_max)]);
            }
            Shape::Slice { offset, bytes } => {
                let bytes = (*bytes).min(bytes_max);
                key.extend_from_slice(&record[*offset..*offset + bytes]);
            }
            Shape::Parts { parts, .. } => {
                for part in parts {
                    let field = &record[part.range()];
                    let bytes = (part.bytes as usize).min(bytes_max - key.len());
                    key.extend((0..bytes).map(|at| part.byte(field, at)));
                }
            }
            Shape::Keys(keys) => keys.key_into(record, key, bytes_max),
            Shape::Columns(keys) => keys.key_into(record, key, bytes_max),
        }
        key.truncate(bytes_max);
    }

    /// What stands for a long line, or record of columns, whose key may lie anywhere in it: a record that compares as it
    /// does as far as the first `bytes_max` bytes of the key tell, and is none of the format. With it the bytes of the key, or that there are
    /// more.
    ///
    /// # Panics
    /// For any other order: our own bug.
    #[must_use]
    pub fn short_of_line(&self, record: &[u8], bytes_max: usize) -> (Vec<u8>, u64) {
        match &self.shape {
            Shape::Keys(keys) => keys.short(record, bytes_max),
            Shape::Columns(keys) => keys.short(record, bytes_max),
            _ => unreachable!("a key that lies in one piece, or a record of a fixed size"),
        }
    }
}
