//! What sorting by columns should do, the obvious way: a byte after the other through a state machine, values as vectors,
//! numbers as scaled integers, JSON as trees, a stable sort.
//!
//! Nothing of the engine is used but the words in which it is asked.

use std::cmp::Ordering;

use serde_json::Value;
use sortmill::columns::{Columns, Compare, Form, Header, Name, Nulls};

/// Why an input is bad, and where: the byte that is told, where its record begins, and the line it stands in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bad {
    pub at: usize,
    pub record_at: usize,
    pub line: usize,
    pub what: &'static str,
}

/// A record: its bytes, where it begins, and its values.
pub struct Record {
    pub bytes: Vec<u8>,
    pub at: usize,
    pub values: Vec<Vec<u8>>,
    /// Where each value begins, behind its quote.
    value_at: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// At the beginning of a value.
    Begin,
    Plain,
    Quoted,
    /// Behind a quote that closes, or is the first of two.
    Closed,
}

/// The records of separated values, strictly.
pub fn separated(input: &[u8], delimiter: u8, quote: Option<u8>) -> Result<Vec<Record>, Bad> {
    let mut records = Vec::new();
    let mut record = empty(0);
    let (mut state, mut opened) = (State::Begin, 0);
    let bad = |at: usize, record: &Record, what| Bad {
        at,
        record_at: record.at,
        line: 1 + input[..at].iter().filter(|&&byte| byte == b'\n').count(),
        what,
    };
    for (at, &byte) in input.iter().enumerate() {
        let is_quote = Some(byte) == quote;
        let ends_line =
            byte == b'\n' || (byte == b'\r' && matches!(input.get(at + 1), None | Some(b'\n')));
        if state == State::Closed && !is_quote && byte != delimiter && !ends_line {
            return Err(bad(at - 1, &record, "behind a closing quote"));
        }
        let value = record.values.last_mut().unwrap();
        match state {
            State::Begin if is_quote => {
                (state, opened) = (State::Quoted, at);
                *record.value_at.last_mut().unwrap() = at + 1;
            }
            State::Quoted if is_quote => state = State::Closed,
            State::Quoted => value.push(byte),
            State::Closed if is_quote => {
                value.push(byte);
                state = State::Quoted;
            }
            State::Plain if is_quote => return Err(bad(at, &record, "within a value")),
            _ if byte == delimiter => {
                record.values.push(Vec::new());
                record.value_at.push(at + 1);
                state = State::Begin;
            }
            _ if byte == b'\n' => {
                record.bytes = input[record.at..=at].to_vec();
                records.push(std::mem::replace(&mut record, empty(at + 1)));
                state = State::Begin;
            }
            _ if ends_line => {}
            _ => {
                value.push(byte);
                state = State::Plain;
            }
        }
    }
    if state == State::Quoted {
        return Err(bad(opened, &record, "never closed"));
    }
    if record.at < input.len() {
        record.bytes = [&input[record.at..], b"\n"].concat();
        records.push(record);
    }
    Ok(records)
}

fn empty(at: usize) -> Record {
    Record {
        bytes: Vec::new(),
        at,
        values: vec![Vec::new()],
        value_at: vec![at],
    }
}

/// A value that decides.
#[derive(Clone, PartialEq, Debug)]
pub enum Key {
    Null,
    Bool(bool),
    Number(Number),
    Text(Vec<u8>),
}

/// A number, for sizes that tests draw: not a number comes last.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub enum Number {
    NegativeInfinite,
    /// In units of 10^-15.
    Finite(i128),
    Infinite,
    Nan,
}

/// The number that all of `text` is.
pub fn number(text: &str) -> Option<Number> {
    let text = text.trim_matches([' ', '\t']);
    let (sign, rest) = match text.chars().next()? {
        '-' => (-1, &text[1..]),
        '+' => (1, &text[1..]),
        _ => (1, text),
    };
    match &*rest.to_ascii_lowercase() {
        "inf" | "infinity" if sign < 0 => return Some(Number::NegativeInfinite),
        "inf" | "infinity" => return Some(Number::Infinite),
        "nan" => return Some(Number::Nan),
        _ => {}
    }
    let (digits, power) = match rest.split_once(['e', 'E']) {
        Some((digits, power)) => {
            let is_signed = power.starts_with(['-', '+']);
            let only_digits = power[usize::from(is_signed)..]
                .bytes()
                .all(|byte| byte.is_ascii_digit());
            (digits, power.parse::<i32>().ok().filter(|_| only_digits)?)
        }
        None => (rest, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let scale = 15 + power - fraction.len() as i32;
    let value = all.parse::<i128>().unwrap();
    let value = match u32::try_from(scale) {
        Ok(scale) => value.saturating_mul(10_i128.saturating_pow(scale)),
        Err(_) => value / 10_i128.pow(scale.unsigned_abs()),
    };
    Some(Number::Finite(sign * value))
}

/// A record with the values that decide.
type Keyed = (Vec<u8>, Vec<Key>);

/// The records of one input, its header apart.
pub fn keyed(columns: &Columns, input: &[u8]) -> Result<(Vec<u8>, Vec<Keyed>), Bad> {
    match &columns.form {
        Form::Json => Ok((Vec::new(), json(columns, input))),
        Form::Separated {
            delimiter,
            quote,
            header,
        } => {
            // What is bad behind a bad record does not show: records are looked at one by one.
            let records = separated(input, *delimiter, *quote);
            let bad_quote = records.as_ref().err().cloned();
            let until = bad_quote.as_ref().map_or(input.len(), |bad| bad.record_at);
            let mut records = separated(&input[..until], *delimiter, *quote)?.into_iter();
            let first = match header {
                Header::None => None,
                _ => records.next(),
            };
            let mut names = first.as_ref().map(|first| first.values.clone());
            if let Some(name) = names.as_mut().and_then(|names| names.first_mut())
                && name.starts_with(b"\xef\xbb\xbf")
            {
                name.drain(..3);
            }
            let mut out = Vec::new();
            for record in records {
                let bad = |at: usize, what| Bad {
                    at,
                    record_at: record.at,
                    line: 1 + input[..at].iter().filter(|&&byte| byte == b'\n').count(),
                    what,
                };
                if names
                    .as_ref()
                    .is_some_and(|names| names.len() != record.values.len())
                {
                    return Err(bad(record.at, "the header has"));
                }
                let mut keys = Vec::new();
                for column in &columns.by {
                    let number_of = match (&column.name, &names) {
                        (Name::Number(number), _) => *number as usize - 1,
                        (Name::Named(name), Some(names)) => names
                            .iter()
                            .position(|other| other == name.as_bytes())
                            .unwrap(),
                        _ => unreachable!(),
                    };
                    let Some(value) = record.values.get(number_of) else {
                        return Err(bad(record.at, "decides the order"));
                    };
                    keys.push(match column.compare {
                        _ if value.is_empty() => Key::Null,
                        Compare::Value | Compare::Text => Key::Text(value.clone()),
                        Compare::Number => {
                            let read = std::str::from_utf8(value).ok().and_then(number);
                            let wrong = || bad(record.value_at[number_of], "is no number");
                            Key::Number(read.ok_or_else(wrong)?)
                        }
                    });
                }
                out.push((record.bytes, keys));
            }
            match bad_quote {
                Some(bad) => Err(bad),
                None => Ok((first.map(|first| first.bytes).unwrap_or_default(), out)),
            }
        }
    }
}

/// The same of lines that are JSON, all of them good.
fn json(columns: &Columns, input: &[u8]) -> Vec<(Vec<u8>, Vec<Key>)> {
    let lines = input.split_inclusive(|&byte| byte == b'\n');
    let keyed = lines.map(|line| {
        let tree: Value = serde_json::from_slice(line).unwrap();
        let key = |column: &sortmill::columns::Column| {
            let Name::Path(steps) = &column.name else {
                unreachable!()
            };
            let found = steps.iter().try_fold(&tree, |value, step| match value {
                Value::Array(elements) => elements.get(step.parse::<usize>().ok()?),
                value => value.get(step),
            });
            let as_number = |text: &str| Key::Number(number(text).unwrap());
            match (found, column.compare) {
                (None | Some(Value::Null), _) => Key::Null,
                (Some(Value::String(text)), Compare::Number) => as_number(text),
                (Some(Value::String(text)), _) => Key::Text(text.clone().into()),
                (Some(Value::Number(number)), Compare::Text) => {
                    Key::Text(number.to_string().into())
                }
                (Some(Value::Number(number)), _) => as_number(&number.to_string()),
                (Some(Value::Bool(yes)), Compare::Text) => Key::Text(yes.to_string().into()),
                (Some(Value::Bool(yes)), _) => Key::Bool(*yes),
                _ => unreachable!(),
            }
        };
        let mut bytes = line.to_vec();
        if !bytes.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        (bytes, columns.by.iter().map(key).collect())
    });
    keyed.collect()
}

/// What is to come out of `inputs`: their header, and all records in order.
pub fn sorted(
    columns: &Columns,
    inputs: &[Vec<u8>],
    unique: bool,
) -> Result<(Vec<u8>, Vec<Vec<u8>>), Bad> {
    let (mut header, mut all) = (Vec::new(), Vec::new());
    for input in inputs {
        let (own, records) = keyed(columns, input)?;
        if header.is_empty() {
            header = own;
        }
        all.extend(records);
    }
    all.sort_by(|a, b| compare(columns, &a.1, &b.1));
    if unique {
        all.dedup_by(|later, first| compare(columns, &first.1, &later.1).is_eq());
    }
    Ok((header, all.into_iter().map(|(bytes, _)| bytes).collect()))
}

/// How two records compare, by the values that decide.
pub fn compare(columns: &Columns, a: &[Key], b: &[Key]) -> Ordering {
    let pairs = columns.by.iter().zip(a.iter().zip(b));
    let orders = pairs.map(|(column, (a, b))| compare_keys(a, b, columns.nulls, column.reversed));
    orders.fold(Ordering::Equal, Ordering::then)
}

fn compare_keys(a: &Key, b: &Key, nulls: Nulls, reversed: bool) -> Ordering {
    let null_first = match nulls {
        Nulls::First => Ordering::Less,
        Nulls::Last => Ordering::Greater,
    };
    let kind = |key: &Key| match key {
        Key::Null => unreachable!(),
        Key::Bool(_) => 0,
        Key::Number(_) => 1,
        Key::Text(_) => 2,
    };
    let order = match (a, b) {
        (Key::Null, Key::Null) => return Ordering::Equal,
        (Key::Null, _) => return null_first,
        (_, Key::Null) => return null_first.reverse(),
        (Key::Bool(a), Key::Bool(b)) => a.cmp(b),
        (Key::Number(a), Key::Number(b)) => a.partial_cmp(b).unwrap(),
        (Key::Text(a), Key::Text(b)) => a.cmp(b),
        (a, b) => kind(a).cmp(&kind(b)),
    };
    if reversed { order.reverse() } else { order }
}

#[test]
fn the_model_reads_numbers() {
    for (text, units) in [
        ("0", 0),
        ("-1.5", -1_500_000_000_000_000),
        ("+2e-3", 2_000_000_000_000),
        (" 12E1\t", 120_000_000_000_000_000),
        (".5", 500_000_000_000_000),
        ("5.", 5_000_000_000_000_000),
    ] {
        assert_eq!(number(text), Some(Number::Finite(units)), "{text}");
    }
    assert_eq!(number("-Inf"), Some(Number::NegativeInfinite));
    assert!(
        ["", "x", "1e", "1.2.3", "1 2", "--1", "e5", "."]
            .iter()
            .all(|text| number(text).is_none())
    );
}
