//! Keys: values of columns as bytes whose plain comparison is the order asked for, and back.
//!
//! | type | bytes |
//! |---|---|
//! | binary, string | themselves, 0 as `00 FF`, ended by `00 00`; the last column upwards themselves, with no end |
//! | i64, u64, timestamp | 8, the highest first; of i64 and timestamps the sign turned |
//! | f64 | 8: of negative numbers every bit turned, of others the sign; -0 is 0, NaN is one value above all |
//! | bool | 1 |
//!
//! Downwards every byte is turned. A float does not come back as it was if it is -0 or a NaN.
//!
//! Where a value may be missing one byte more stands in front, and is never turned: 1 if there is one, and if there is none 0 or
//! 2, as that comes first or last, and nothing behind it.

use super::column::{Column, Type, Value, take};
use super::mix::group_hash;
use crate::short::push_text;
use crate::stage::kernel::marks;

/// By which column of a table records are ordered, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderColumn {
    /// Its number.
    pub at: usize,
    /// Whether larger values come first.
    pub descending: bool,
    /// Whether records without a value come behind all others, and not in front of them; in either direction.
    pub nulls_last: bool,
}

impl OrderColumn {
    /// Upwards, records without a value last.
    #[must_use]
    pub fn up(at: usize) -> Self {
        Self {
            at,
            descending: false,
            nulls_last: true,
        }
    }
}

/// In place of what stands in front of the last value of a key: it comes in front of all of its values.
pub const IN_FRONT: u8 = 0;

/// In front of a value that may be missing.
const PRESENT: u8 = 1;
/// In place of one that is.
const NULL_FIRST: u8 = 0;
const NULL_LAST: u8 = 2;

/// A part of a key: a column of the table and its direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyColumn {
    /// Which column of the record.
    pub at: usize,
    /// What its values are.
    pub kind: Type,
    /// Whether larger values come first.
    pub descending: bool,
    /// What stands in place of a value that is missing, if one may be.
    null: Option<u8>,
    /// Whether floats are told apart by all their bits.
    is_exact: bool,
    /// Whether it is the last of the key.
    is_last: bool,
}

impl KeyColumn {
    /// By what each of its bytes is turned.
    fn turn(&self) -> u8 {
        if self.descending { 0xff } else { 0 }
    }

    /// Has a byte in front of each value, also where none is missing, so that [`IN_FRONT`] has its place. Its own come last.
    pub fn leave_room(&mut self) {
        self.null = Some(NULL_LAST);
    }

    /// Whether its value is there, of which `bytes` are the key; they begin behind what says so then. `None` if they are no key.
    fn is_there(&self, bytes: &mut &[u8]) -> Option<bool> {
        let Some(null) = self.null else {
            return Some(true);
        };
        match take(bytes, 1)?[0] {
            PRESENT => Some(true),
            mark if mark == null => Some(false),
            _ => None,
        }
    }
}

/// Whether a value in a key that has [room](KeyColumn::leave_room) is missing.
pub fn is_null(value: &[u8]) -> bool {
    value.first() == Some(&NULL_LAST)
}

/// The parts of the key that `columns` make, which are some of `table`.
#[must_use]
pub fn key_columns(table: &[Column], columns: &[OrderColumn]) -> Vec<KeyColumn> {
    let part = |(number, by): (usize, &OrderColumn)| {
        let null = if by.nulls_last { NULL_LAST } else { NULL_FIRST };
        KeyColumn {
            at: by.at,
            kind: table[by.at].kind,
            descending: by.descending,
            null: table[by.at].nullable.then_some(null),
            is_exact: false,
            is_last: number + 1 == columns.len(),
        }
    };
    columns.iter().enumerate().map(part).collect()
}

/// Has a key of all columns end with the bits of floats: so records that differ only in the sign of a zero have an order, too.
pub fn tell_floats_apart(key: &mut Vec<KeyColumn>, table: &[Column]) {
    let floats = key.iter().filter(|part| part.kind == Type::F64);
    let exact = floats.map(|part| KeyColumn {
        descending: false,
        null: table[part.at].nullable.then_some(NULL_LAST),
        is_exact: true,
        is_last: false,
        ..*part
    });
    let exact: Vec<KeyColumn> = exact.collect();
    if !exact.is_empty() {
        key.iter_mut().for_each(|part| part.is_last = false);
    }
    key.extend(exact);
}

/// Whether a key alone tells all of its columns' values.
#[must_use]
pub fn tells(part: &KeyColumn) -> bool {
    part.kind != Type::F64
}

/// The column whose bytes are the key as they are, if there is one.
#[must_use]
pub fn is_value(key: &[KeyColumn]) -> Option<usize> {
    match key {
        [only] if only.kind.is_bytes() && !only.descending && only.null.is_none() => Some(only.at),
        _ => None,
    }
}

/// Appends the key of a record.
pub fn write(key: &[KeyColumn], record: &[Value<'_>], to: &mut Vec<u8>) {
    for part in key {
        match (part.null, record[part.at]) {
            (None, _) => {}
            (Some(null), Value::Null) => {
                to.push(null);
                continue;
            }
            (Some(_), _) => to.push(PRESENT),
        }
        let from = to.len();
        match record[part.at] {
            Value::Null => unreachable!("the column holds a value in each record"),
            Value::Bytes(bytes) if part.is_last && !part.descending => push_text(bytes, to),
            Value::Bytes(bytes) => write_bytes(bytes, to),
            Value::I64(value) | Value::Timestamp(value) => {
                to.extend_from_slice(&(value ^ i64::MIN).to_be_bytes());
            }
            Value::U64(value) => to.extend_from_slice(&value.to_be_bytes()),
            Value::F64(value) if part.is_exact => {
                to.extend_from_slice(&turned(value.to_bits()).to_be_bytes());
            }
            Value::F64(value) => to.extend_from_slice(&float_bits(value).to_be_bytes()),
            Value::Bool(value) => to.push(u8::from(value)),
        }
        if part.descending {
            to[from..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }
}

/// Whether a zero is to be marked; to call a search takes longer than to look at a short text.
fn holds_zero(text: &[u8]) -> bool {
    let find = || memchr::memchr(0, text).is_some();
    marks(text, 0).map_or_else(find, |marks| marks != 0)
}

fn write_bytes(bytes: &[u8], to: &mut Vec<u8>) {
    let mut rest = bytes;
    if !holds_zero(bytes) {
        push_text(bytes, to);
        return to.extend_from_slice(&[0, 0]);
    }
    while let Some(zero) = memchr::memchr(0, rest) {
        to.extend_from_slice(&rest[..zero]);
        to.extend_from_slice(&[0, 0xff]);
        rest = &rest[zero + 1..];
    }
    to.extend_from_slice(rest);
    to.extend_from_slice(&[0, 0]);
}

/// A float as a number that compares as floats do in keys.
pub fn float_bits(value: f64) -> u64 {
    let value = match value {
        _ if value.is_nan() => f64::from_bits(0x7ff8 << 48),
        _ if value == 0.0 => 0.0,
        _ => value,
    };
    turned(value.to_bits())
}

/// The bits of a float as a number that compares as it does.
fn turned(bits: u64) -> u64 {
    match bits >> 63 {
        0 => bits ^ 1 << 63,
        _ => !bits,
    }
}

/// The float that [`float_bits`] made `bits` of.
pub fn float(bits: u64) -> f64 {
    f64::from_bits(match bits >> 63 {
        1 => bits ^ 1 << 63,
        _ => !bits,
    })
}

/// How many bytes the first `parts` of a key take of `bytes`. `None` if it is none.
#[must_use]
pub fn head_bytes(parts: &[KeyColumn], bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    for part in parts {
        if !part.is_there(&mut rest)? {
            continue;
        }
        match part.kind {
            Type::Binary | Type::String if part.is_last && !part.descending => rest = &[],
            Type::Binary | Type::String => pass_bytes(&mut rest, part.turn())?,
            Type::Bool => _ = take(&mut rest, 1)?,
            Type::I64 | Type::U64 | Type::F64 | Type::Timestamp => _ = take(&mut rest, 8)?,
        }
    }
    Some(bytes.len() - rest.len())
}

/// What a key of `parts` alone would be hashed to, of which `head` is what they are in front of others: there the last part
/// has an end, and so its zeros are marked. So groups come in the same order whatever orders their records.
#[must_use]
pub fn hash_head(parts: &[KeyColumn], head: &[u8]) -> u64 {
    let Some((last, others)) = parts.split_last() else {
        return group_hash(head);
    };
    if !last.kind.is_bytes() || last.descending {
        return group_hash(head);
    }
    let mut from = head_bytes(others, head).expect("it was just written");
    if last.null.is_some() {
        if head[from] != PRESENT {
            return group_hash(head);
        }
        from += 1;
    }
    let unended = &head[..head.len() - 2];
    if !holds_zero(&unended[from..]) {
        return group_hash(unended);
    }
    let mut alone = head[..from].to_vec();
    read_bytes(&mut &head[from..], 0, &mut alone).expect("it was just written");
    group_hash(&alone)
}

/// Passes by what [`write_bytes`] wrote, each byte of it turned by `turn`.
fn pass_bytes(bytes: &mut &[u8], turn: u8) -> Option<()> {
    loop {
        let zero = memchr::memchr(turn, bytes)?;
        let mark = *bytes.get(zero + 1)? ^ turn;
        *bytes = &bytes[zero + 2..];
        if mark == 0 {
            return Some(());
        }
    }
}

/// The values that make up a key, in the order of its parts, those that are bytes one after the other in `text`, which
/// `ends` cuts. Scratch space that is kept.
#[derive(Default)]
pub struct Values {
    text: Vec<u8>,
    plain: Vec<Plain>,
}

#[derive(Clone, Copy)]
enum Plain {
    Text(usize, usize),
    Value(Value<'static>),
}

impl Values {
    /// Takes the values out of the key in `bytes`. `None` if it is none.
    pub fn read(&mut self, key: &[KeyColumn], bytes: &[u8]) -> Option<()> {
        self.read_behind(0, key, bytes)
    }

    /// The same where the first `kept` values are as they were, and `key` and `bytes` begin behind them.
    pub fn read_behind(&mut self, kept: usize, key: &[KeyColumn], mut bytes: &[u8]) -> Option<()> {
        self.plain.truncate(kept);
        let text = self.plain.iter().rev().find_map(|plain| match plain {
            Plain::Text(_, to) => Some(*to),
            Plain::Value(_) => None,
        });
        self.text.truncate(text.unwrap_or(0));
        for part in key {
            let turn = part.turn();
            if !part.is_there(&mut bytes)? {
                self.plain.push(Plain::Value(Value::Null));
                continue;
            }
            let value = match part.kind {
                Type::Binary | Type::String => {
                    let from = self.text.len();
                    if part.is_last && !part.descending {
                        self.text.extend_from_slice(std::mem::take(&mut bytes));
                    } else {
                        read_bytes(&mut bytes, turn, &mut self.text)?;
                    }
                    Plain::Text(from, self.text.len())
                }
                Type::Bool => Plain::Value(Value::Bool(take(&mut bytes, 1)?[0] ^ turn != 0)),
                Type::I64 | Type::U64 | Type::F64 | Type::Timestamp => {
                    let bits = take(&mut bytes, 8)?.try_into().expect("eight bytes");
                    let bits = u64::from_be_bytes(bits) ^ u64::from_ne_bytes([turn; 8]);
                    Plain::Value(match part.kind {
                        Type::I64 => Value::I64(bits as i64 ^ i64::MIN),
                        Type::Timestamp => Value::Timestamp(bits as i64 ^ i64::MIN),
                        Type::U64 => Value::U64(bits),
                        _ => Value::F64(float(bits)),
                    })
                }
            };
            self.plain.push(value);
        }
        bytes.is_empty().then_some(())
    }

    /// The value of part `number`.
    #[must_use]
    pub fn get(&self, number: usize) -> Value<'_> {
        match self.plain[number] {
            Plain::Text(from, to) => Value::Bytes(&self.text[from..to]),
            Plain::Value(value) => value,
        }
    }
}

/// Takes what [`write_bytes`] wrote, each byte of it turned by `turn`.
fn read_bytes(bytes: &mut &[u8], turn: u8, to: &mut Vec<u8>) -> Option<()> {
    loop {
        let zero = memchr::memchr(turn, bytes)?;
        match turn {
            0 => to.extend_from_slice(&bytes[..zero]),
            _ => to.extend(bytes[..zero].iter().map(|byte| byte ^ turn)),
        }
        let mark = *bytes.get(zero + 1)? ^ turn;
        *bytes = &bytes[zero + 2..];
        match mark {
            0 => return Some(()),
            0xff => to.push(0),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;

    fn compare(a: &Value<'_>, b: &Value<'_>) -> Ordering {
        match (a, b) {
            (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
            (Value::I64(a), Value::I64(b)) => a.cmp(b),
            (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(b),
            (Value::U64(a), Value::U64(b)) => a.cmp(b),
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::F64(a), Value::F64(b)) => match (a.is_nan(), b.is_nan()) {
                (false, false) => a.partial_cmp(b).unwrap(),
                (a, b) => a.cmp(&b),
            },
            _ => unreachable!("one type"),
        }
    }

    /// All pairs of all records that the values of some types make, upwards and downwards.
    #[test]
    fn bytes_compare_as_the_values_do_and_come_back() {
        let texts: [&[u8]; 7] = [b"", b"\0", b"\0\0", b"a", b"a\0", b"a\0b", b"\xff\xff"];
        let texts = texts.map(Value::Bytes).to_vec();
        let floats = [
            f64::NEG_INFINITY,
            -1.5,
            -0.0,
            0.0,
            5e-324,
            2.0,
            f64::NAN,
            -f64::NAN,
        ];
        let kinds = [
            (Type::String, texts),
            (
                Type::I64,
                [i64::MIN, -1, 0, 1, i64::MAX].map(Value::I64).to_vec(),
            ),
            (Type::U64, [0, 1, u64::MAX].map(Value::U64).to_vec()),
            (Type::F64, floats.map(Value::F64).to_vec()),
            (Type::Bool, [false, true].map(Value::Bool).to_vec()),
            (
                Type::Timestamp,
                [-62_135_596_800_000_000, -1, 0, 1]
                    .map(Value::Timestamp)
                    .to_vec(),
            ),
        ];
        for (kind, values) in &kinds {
            for (other, others) in &kinds {
                for (down, other_down) in
                    [(false, false), (true, false), (false, true), (true, true)]
                {
                    let table = [Column::new("a", *kind), Column::new("b", *other)];
                    let by = |at, descending| OrderColumn {
                        descending,
                        ..OrderColumn::up(at)
                    };
                    let key = key_columns(&table, &[by(0, down), by(1, other_down)]);
                    let mut all = Vec::new();
                    for &a in values {
                        for &b in others {
                            let mut bytes = Vec::new();
                            write(&key, &[a, b], &mut bytes);
                            all.push(([a, b], bytes));
                        }
                    }
                    let turned =
                        |order: Ordering, down: bool| if down { order.reverse() } else { order };
                    for (one, bytes) in &all {
                        for (two, others) in &all {
                            let wanted = turned(compare(&one[0], &two[0]), down)
                                .then(turned(compare(&one[1], &two[1]), other_down));
                            assert_eq!(
                                bytes.cmp(others),
                                wanted,
                                "{one:?} {two:?} {down} {other_down}"
                            );
                        }
                        let mut back = Values::default();
                        back.read(&key, bytes).unwrap();
                        let mut head = Vec::new();
                        write(&key[..1], one, &mut head);
                        assert_eq!(head_bytes(&key[..1], bytes), Some(head.len()));
                        assert_eq!(head_bytes(&key, bytes), Some(bytes.len()));
                        let alone = key_columns(&table, &[by(0, down)]);
                        let mut hashed = Vec::new();
                        write(&alone, one, &mut hashed);
                        assert!(down || hash_head(&key[..1], &head) == group_hash(&hashed));
                        for (number, value) in one.iter().enumerate() {
                            assert_eq!(compare(&back.get(number), value), Ordering::Equal);
                        }
                    }
                }
            }
        }
    }

    /// All pairs of all records of two columns that may lack values, which come first or last, upwards and downwards.
    #[test]
    fn missing_values_come_where_they_are_asked() {
        let texts: [&[u8]; 5] = [b"", b"\0", b"\x01", b"a\0b", b"\xff"];
        let mut texts = texts.map(Value::Bytes).to_vec();
        let mut numbers = [i64::MIN, 0, 7].map(Value::I64).to_vec();
        texts.push(Value::Null);
        numbers.push(Value::Null);
        let table = [
            Column::new("a", Type::String).or_null(),
            Column::new("b", Type::I64).or_null(),
        ];
        let wanted = |one: &Value<'_>, other: &Value<'_>, by: &OrderColumn| {
            let last = |order: Ordering| {
                if by.nulls_last {
                    order
                } else {
                    order.reverse()
                }
            };
            match (one.is_null(), other.is_null()) {
                (false, false) if by.descending => compare(other, one),
                (false, false) => compare(one, other),
                (a, b) => last(a.cmp(&b)),
            }
        };
        // Also with the text behind the number, where it has no end.
        for (first, second) in [(0, 1), (1, 0)] {
            for directions in 0..16 {
                let bit = |at: usize| directions >> at & 1 == 1;
                let by = [(first, 0), (second, 2)].map(|(at, from)| OrderColumn {
                    at,
                    descending: bit(from),
                    nulls_last: bit(from + 1),
                });
                let key = key_columns(&table, &by);
                assert_eq!(is_value(&key), None);
                let mut all = Vec::new();
                for &text in &texts {
                    for &number in &numbers {
                        let mut bytes = Vec::new();
                        write(&key, &[text, number], &mut bytes);
                        all.push(([text, number], bytes));
                    }
                }
                for (one, bytes) in &all {
                    for (two, others) in &all {
                        let order = |by: &OrderColumn| wanted(&one[by.at], &two[by.at], by);
                        let wanted = order(&by[0]).then(order(&by[1]));
                        assert_eq!(bytes.cmp(others), wanted, "{one:?} {two:?} {by:?}");
                    }
                    let mut back = Values::default();
                    back.read(&key, bytes).unwrap();
                    assert_eq!([back.get(0), back.get(1)], [one[first], one[second]]);
                    let mut head = Vec::new();
                    write(&key[..1], one, &mut head);
                    assert_eq!(head_bytes(&key[..1], bytes), Some(head.len()));
                    assert_eq!(head_bytes(&key, bytes), Some(bytes.len()));
                    let mut alone = Vec::new();
                    write(&key_columns(&table, &by[..1]), one, &mut alone);
                    assert_eq!(hash_head(&key[..1], &head), group_hash(&alone));
                }
            }
        }
        let sure = [Column::new("a", Type::String)];
        assert_eq!(
            is_value(&key_columns(&sure, &[OrderColumn::up(0)])),
            Some(0)
        );
    }
}
