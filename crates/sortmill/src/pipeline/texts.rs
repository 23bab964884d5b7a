//! Texts that are made of other values of a record while what is computed of it is on its way: values borrow them from here, and all go with
//! the record.
//!
//! They stand in a tree, numbered as in a heap, because none may move once it is lent. Where no text is made there is one empty place.

use std::cell::{Cell, OnceCell};

use super::column::Value;
use super::write::write_plain;

/// The texts of one record.
#[derive(Default)]
pub(super) struct Texts {
    count: Cell<usize>,
    first: OnceCell<Box<Text>>,
}

#[derive(Default)]
struct Text {
    bytes: OnceCell<Vec<u8>>,
    below: [OnceCell<Box<Text>>; 2],
}

impl Texts {
    /// A value as text, as CSV has it; one that is bytes as it is.
    pub fn of<'t>(&'t self, value: Value<'t>) -> Value<'t> {
        match value {
            Value::Null | Value::Bytes(_) => value,
            value => {
                let mut bytes = Vec::new();
                write_plain(&value, &mut bytes);
                Value::Bytes(self.keep(bytes))
            }
        }
    }

    fn keep(&self, bytes: Vec<u8>) -> &[u8] {
        let number = self.count.get() + 1;
        self.count.set(number);
        let mut at = self.first.get_or_init(Box::default);
        for bit in (0..number.ilog2()).rev() {
            at = at.below[number >> bit & 1].get_or_init(Box::default);
        }
        at.bytes.get_or_init(|| bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stay_as_they_were_lent() {
        let texts = Texts::default();
        let lent: Vec<Value<'_>> = (0..1000).map(|n| texts.of(Value::U64(n))).collect();
        for (number, value) in lent.iter().enumerate() {
            assert_eq!(*value, Value::Bytes(number.to_string().as_bytes()));
        }
        for (value, wanted) in [
            (Value::F64(2.0), "2.0"),
            (Value::F64(f64::INFINITY), "inf"),
            (Value::Bool(true), "true"),
            (Value::Timestamp(-1), "1969-12-31T23:59:59.999999Z"),
            (Value::I64(-7), "-7"),
            (Value::Bytes(b"as it is"), "as it is"),
        ] {
            assert_eq!(texts.of(value), Value::Bytes(wanted.as_bytes()));
        }
        assert_eq!(texts.of(Value::Null), Value::Null);
    }
}
