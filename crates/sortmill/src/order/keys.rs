//! The key of a line: fields and bytes of it, each encoded to bytes that compare as it does, one behind the other.
//!
//! Each encoded key tells where it ends, so that a shorter one never spills over into the next. Of one where larger
//! comes first all bits are turned. Behind them comes the whole line, if that decides between lines whose keys are all
//! equal. The order is GNU sort's in the C locale (coreutils 9.1), and the installed `sort` is what tests ask.
//!
//! ```text
//! -k3,3 -k1,1nr       | field 3, its end | exponent and digits of field 1, turned | line |
//! ```
//!
//! What follows from that, for anybody who wants a word of a key or compares two, is in `encoded.rs`.

use std::cmp::Ordering;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

use super::encoded::{Encoded, compare_pieces};
use super::text::Counting;
use super::window::Window;
use super::{fields, general, human, month, number, random, text, version};
use crate::error::{Error, ErrorKind, Result};
use crate::line_keys::{Compare, LastResort, LineKey, LineOrder};

#[cfg(feature = "tamper")]
use super::planted::Fault;

/// What decides the order of lines, checked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Keys {
    delimiter: u8,
    separator: Option<u8>,
    pub(super) keys: Vec<LineKey>,
    pub(super) last_resort: LastResort,
    /// A mistake that tests must find.
    #[cfg(feature = "tamper")]
    #[serde(skip)]
    pub(super) fault: Option<Fault>,
}

impl Keys {
    /// What `order` says. With `unique`, or without a last resort, keys alone decide.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a field or byte 0.
    pub fn new(order: &LineOrder) -> Result<Self> {
        for (number, key) in order.keys.iter().enumerate() {
            let end_field = key.end.map_or(1, |end| end.field);
            if key.start.field == 0 || key.start.byte == 0 || end_field == 0 {
                let cause = format!(
                    "key {} has a field or byte 0: they are counted from 1",
                    number + 1
                );
                return Err(Error::new(ErrorKind::Usage, "understanding the key", cause));
            }
        }
        let last_resort = match order.last_resort {
            LastResort::Place if order.keys.is_empty() => LastResort::Line,
            _ if order.unique && !order.keys.is_empty() => LastResort::Place,
            asked => asked,
        };
        Ok(Self {
            delimiter: order.delimiter,
            separator: order.separator,
            keys: order.keys.clone(),
            last_resort,
            #[cfg(feature = "tamper")]
            fault: None,
        })
    }

    /// Whether the order is that of whole lines as bytes, in which everything is simpler.
    pub fn are_the_line(&self) -> bool {
        match &*self.keys {
            [] => self.last_resort == LastResort::Line,
            [key] => {
                is_the_line(key) && !key.reversed && self.last_resort != LastResort::LineReversed
            }
            _ => false,
        }
    }

    #[inline]
    fn encode_part(&self, number: usize, part: &[u8], window: &mut Window<'_>) {
        let key = &self.keys[number];
        match &key.compare {
            Compare::Bytes => text::encode(Counting::of(key), part, window),
            Compare::Number => number::encode(part, window),
            Compare::General => general::encode(part, window),
            Compare::Human => human::encode(part, key.fold, window),
            Compare::Month => month::encode(part, window),
            Compare::Version if Counting::of(key).is_plain() => {
                version::encode(part.iter().copied(), window);
            }
            Compare::Version => version::encode(Counting::of(key).bytes(part), window),
            Compare::Random(bytes) => random::encode(bytes, Counting::of(key), part, window),
        }
    }

    /// Compares the keys of two records.
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let (Ok(x), Ok(y)) = (self.content(a), self.content(b)) else {
            return self.compare_heads(a, b, usize::MAX);
        };
        for (number, key) in self.keys.iter().enumerate() {
            let order = self.compare_parts(number, &self.part(number, x), &self.part(number, y));
            if order.is_ne() {
                return if key.reversed { order.reverse() } else { order };
            }
        }
        match self.last_resort {
            LastResort::Place => Ordering::Equal,
            LastResort::Line => x.cmp(y),
            LastResort::LineReversed => y.cmp(x),
        }
    }

    /// Compares two parts as key `number`, not reversed. Text is compared where it lies.
    fn compare_parts(&self, number: usize, x: &[u8], y: &[u8]) -> Ordering {
        let key = &self.keys[number];
        match &key.compare {
            Compare::Bytes if Counting::of(key).is_plain() => x.cmp(y),
            Compare::Bytes => {
                let counting = Counting::of(key);
                counting.bytes(x).cmp(counting.bytes(y))
            }
            _ if x == y => Ordering::Equal,
            _ => {
                let encode = |part: &[u8], skip, out: &mut [u8]| {
                    let mut window = Window::new(skip, out);
                    self.encode_part(number, part, &mut window);
                    window.filled()
                };
                compare_pieces(
                    |skip, out| encode(x, skip, out),
                    |skip, out| encode(y, skip, out),
                    usize::MAX,
                )
            }
        }
    }

    #[cfg(not(feature = "tamper"))]
    #[inline]
    fn part<'l>(&self, number: usize, line: &'l [u8]) -> impl Deref<Target = [u8]> + use<'l> {
        fields::part(self.separator, &self.keys[number], line)
    }

    #[cfg(feature = "tamper")]
    fn part<'l>(&self, number: usize, line: &'l [u8]) -> impl Deref<Target = [u8]> + use<'l> {
        let key = &self.keys[number];
        match self.fault {
            None => std::borrow::Cow::from(fields::part(self.separator, key, line)),
            Some(fault) => fault.part(self.separator, key, line),
        }
    }
}

impl Encoded for Keys {
    #[inline]
    fn delimiter(&self) -> u8 {
        self.delimiter
    }

    #[inline]
    fn encode(&self, line: &[u8], window: &mut Window<'_>) {
        for (number, key) in self.keys.iter().enumerate() {
            let part = self.part(number, line);
            window.turn(key.reversed);
            self.encode_part(number, &part, window);
            window.turn(key.reversed);
            if window.is_full() {
                return;
            }
        }
        match self.last_resort {
            LastResort::Place => {}
            LastResort::Line => window.push_all(line),
            LastResort::LineReversed => {
                window.turn(true);
                text::encode(Counting::ALL, line, window);
                window.turn(true);
            }
        }
    }
}

/// Whether the key is the whole line as bytes.
fn is_the_line(key: &LineKey) -> bool {
    let start = key.start;
    (start.field, start.byte, start.skip_blanks) == (1, 1, false)
        && key.end.is_none()
        && key.compare == Compare::Bytes
        && Counting::of(key).is_plain()
}
