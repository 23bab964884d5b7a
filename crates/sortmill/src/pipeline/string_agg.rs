//! The texts of a group one behind the other, in order, with something between each two: what SQL calls `string_agg` or `LISTAGG`.
//!
//! Texts come in the order of their bytes, as values do that are counted, so all that is kept of a group is what comes out of it. Its
//! length is bounded: each reducer has its part of the memory (`go.rs`, `text_room`).

use sortmill_io::sync::Arc;

use super::column::Value;
use crate::error::{Error, ErrorKind, Result};

/// A text has room for so many parts of itself besides.
const GROWTH: usize = 8;

/// The text of a group so far.
#[derive(Clone, Debug)]
pub struct Joined {
    text: Vec<u8>,
    /// Whether a text has come: one may be empty.
    is_begun: bool,
    separator: Arc<[u8]>,
    /// Each different text once, or as often as it is there.
    is_distinct: bool,
    /// The one that is coming, if it is to come more than once.
    value: Vec<u8>,
    bytes_max: usize,
    is_too_long: bool,
}

impl Joined {
    /// None so far; between each two texts `separator` will stand.
    #[must_use]
    pub fn new(separator: &Arc<[u8]>, is_distinct: bool) -> Self {
        Self {
            text: Vec::new(),
            is_begun: false,
            separator: Arc::clone(separator),
            is_distinct,
            value: Vec::new(),
            bytes_max: 0,
            is_too_long: false,
        }
    }

    /// At most so many bytes may come out.
    pub fn within(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// The next text in order comes.
    pub fn next(&mut self, value: &Value<'_>) {
        self.value.clear();
        match (value, self.is_distinct) {
            (Value::Bytes(text), true) => self.append(text),
            (Value::Bytes(text), false) => self.value.extend_from_slice(text),
            _ => {}
        }
    }

    /// It is there so often, or so often more.
    pub fn pass(&mut self, count: u64) {
        if self.is_distinct {
            return;
        }
        let value = std::mem::take(&mut self.value);
        for _ in 0..count {
            self.append(&value);
            if self.is_too_long {
                break;
            }
        }
        self.value = value;
    }

    fn append(&mut self, text: &[u8]) {
        let between: &[u8] = match self.is_begun {
            true => &self.separator,
            false => &[],
        };
        self.is_begun = true;
        let bytes = self.text.len() + between.len() + text.len();
        if self.is_too_long || bytes > self.bytes_max {
            self.is_too_long = true;
            self.text = Vec::new();
            return;
        }
        if bytes > self.text.capacity() {
            // Not twice as much as there is: that is bounded.
            let more = (bytes / GROWTH).max(64);
            self.text
                .reserve_exact(bytes.saturating_add(more).min(self.bytes_max) - self.text.len());
        }
        self.text.extend_from_slice(between);
        self.text.extend_from_slice(text);
    }

    /// What comes out of the texts of column `name`; nothing of none.
    ///
    /// # Errors
    /// [`ErrorKind::Memory`] where it is too long.
    pub fn value(&self, name: &str) -> Result<Value<'_>> {
        if self.is_too_long {
            let cause = format!(
                "the texts of column {name} have more than {} bytes together",
                self.bytes_max
            );
            return Err(Error::new(ErrorKind::Memory, "joining texts", cause).hint(
                "Give the job more memory, or fewer threads, of which each has its part of it. A function of groups (apply, with sort=) takes texts one after the other, however many.",
            ));
        }
        Ok(match self.is_begun {
            true => Value::Bytes(&self.text),
            false => Value::Null,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(is_distinct: bool, bytes_max: usize, texts: &[(&str, u64)]) -> Joined {
        let mut one = Joined::new(&b", "[..].into(), is_distinct);
        one.within(bytes_max);
        for (text, count) in texts {
            one.next(&Value::Bytes(text.as_bytes()));
            one.pass(count / 2);
            one.pass(count - count / 2);
        }
        one
    }

    #[test]
    fn texts_come_as_often_as_they_are_there_or_once() {
        let texts = [("", 2), ("a", 3), ("bc", 1)];
        for (is_distinct, wanted) in [(false, ", , a, a, a, bc"), (true, ", a, bc")] {
            let one = joined(is_distinct, wanted.len(), &texts);
            assert_eq!(one.value("x").unwrap(), Value::Bytes(wanted.as_bytes()));
            let error = joined(is_distinct, wanted.len() - 1, &texts);
            let error = error.value("x").unwrap_err();
            assert_eq!(error.kind, ErrorKind::Memory);
            assert!(error.cause.contains("more than") && error.cause.contains("column x"));
        }
        let often = joined(false, 100, &[("a", u64::MAX)]);
        assert!(often.value("x").is_err());
        let mut none = joined(false, 100, &[]);
        assert_eq!(none.value("x").unwrap(), Value::Null);
        none.next(&Value::Null);
        none.pass(0);
        assert_eq!(none.value("x").unwrap(), Value::Null);
        let empty = joined(false, 0, &[("", 1)]);
        assert_eq!(empty.value("x").unwrap(), Value::Bytes(b""));
    }
}
