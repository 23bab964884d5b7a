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
//! Nothing is kept of it: whoever wants a word of it, or a piece, has just that made, in memory of his own. In the
//! place of a line that is longer than a block stands its key, as far as it is kept, and a byte that ends no line.

use std::cmp::Ordering;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

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

/// Bytes of keys that are compared at a time: few at first, because most differ early.
const FIRST_BYTES: usize = 32;
const PIECE_BYTES: usize = 1024;

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

    /// Puts the bytes of the record's key from byte `skip` on into `out` and says how many there are.
    #[inline]
    pub fn fill(&self, record: &[u8], skip: usize, out: &mut [u8]) -> usize {
        let mut window = Window::new(skip, out);
        match self.line(record) {
            Ok(line) => self.encode(line, &mut window),
            Err(key) => window.push_all(key),
        }
        window.filled()
    }

    /// The line without its end, or the key that stands for one.
    #[inline]
    fn line<'r>(&self, record: &'r [u8]) -> std::result::Result<&'r [u8], &'r [u8]> {
        let (&end, bytes) = record.split_last().expect("a record has an end");
        match end == self.delimiter {
            true => Ok(bytes),
            false => Err(bytes),
        }
    }

    /// What stands for the record: no more than `bytes_max` of its key. Says too how many bytes the key has, or that
    /// it has more.
    pub fn short(&self, record: &[u8], bytes_max: usize) -> (Vec<u8>, u64) {
        let mut short = vec![0; bytes_max + 1];
        let filled = self.fill(record, 0, &mut short);
        short.truncate(filled.min(bytes_max));
        short.push(!self.delimiter);
        (short, filled as u64)
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
        let (Ok(x), Ok(y)) = (self.line(a), self.line(b)) else {
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

    /// Compares the first `bytes_max` bytes of the keys of two records.
    pub fn compare_heads(&self, a: &[u8], b: &[u8], bytes_max: usize) -> Ordering {
        compare_pieces(
            |skip, out| self.fill(a, skip, out),
            |skip, out| self.fill(b, skip, out),
            bytes_max,
        )
    }

    /// Compares the record's key with a key.
    pub fn compare_with_key(&self, record: &[u8], key: &[u8]) -> Ordering {
        compare_pieces(
            |skip, out| self.fill(record, skip, out),
            |skip, out| {
                let rest = key.get(skip..).unwrap_or_default();
                let count = rest.len().min(out.len());
                out[..count].copy_from_slice(&rest[..count]);
                count
            },
            usize::MAX,
        )
    }

    /// Appends the record's key to `key`, no more than `bytes_max` of it.
    pub fn key_into(&self, record: &[u8], key: &mut Vec<u8>, bytes_max: usize) {
        let from = key.len();
        let mut step = FIRST_BYTES.max(record.len());
        loop {
            let have = key.len() - from;
            let wanted = step.min(bytes_max - have);
            key.resize(from + have + wanted, 0);
            let filled = self.fill(record, have, &mut key[from + have..]);
            key.truncate(from + have + filled);
            if filled < wanted || have + filled == bytes_max {
                return;
            }
            step *= 2;
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

/// Whether the key is the whole line as bytes.
fn is_the_line(key: &LineKey) -> bool {
    let start = key.start;
    (start.field, start.byte, start.skip_blanks) == (1, 1, false)
        && key.end.is_none()
        && key.compare == Compare::Bytes
        && Counting::of(key).is_plain()
}

/// Compares two keys that come in pieces, as far as `bytes_max` bytes: each puts the bytes from a given one on into
/// memory and says how many there are.
fn compare_pieces(
    a: impl Fn(usize, &mut [u8]) -> usize,
    b: impl Fn(usize, &mut [u8]) -> usize,
    bytes_max: usize,
) -> Ordering {
    if let Some(told) = compare_piece::<FIRST_BYTES>(&a, &b, 0, bytes_max) {
        return told;
    }
    let mut at = FIRST_BYTES;
    loop {
        if let Some(told) = compare_piece::<PIECE_BYTES>(&a, &b, at, bytes_max) {
            return told;
        }
        // Pieces are made anew from the beginning of the key on, so there should be few.
        at += PIECE_BYTES;
    }
}

/// The same of one piece; `None` if the next one has to tell.
#[inline]
fn compare_piece<const BYTES: usize>(
    a: &impl Fn(usize, &mut [u8]) -> usize,
    b: &impl Fn(usize, &mut [u8]) -> usize,
    at: usize,
    bytes_max: usize,
) -> Option<Ordering> {
    let (mut x, mut y) = ([0; BYTES], [0; BYTES]);
    let wanted = BYTES.min(bytes_max - at);
    let counts = (a(at, &mut x[..wanted]), b(at, &mut y[..wanted]));
    let order = x[..counts.0].cmp(&y[..counts.1]);
    let is_told = order.is_ne() || counts.0 < wanted || at + wanted == bytes_max;
    is_told.then_some(order)
}
