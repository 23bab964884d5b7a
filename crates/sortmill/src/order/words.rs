//! Keys as words: numbers that compare as the bytes do which a key has from some place on.
//!
//! | keys | bytes of a word | its last byte |
//! |---|---|---|
//! | of one size | 8 | is one of them |
//! | of any size | 7 | how many bytes are left, 8 for more than 7: what ends comes in front of what goes on |

use super::encoded::Encoded as _;
use super::{KeyPart, Order, Shape, kv_key};

const LINE_WORD_BYTES: usize = 7;
const FIXED_WORD_BYTES: usize = 8;

impl Order {
    /// Word `depth` of the record's key: words compare as the keys do, the first unequal one decides.
    #[inline]
    #[must_use]
    pub fn word(&self, record: &[u8], depth: usize) -> u64 {
        self.word_from(record, depth * self.word_bytes())
    }

    /// How many bytes of a key a word tells.
    #[inline]
    #[must_use]
    pub fn word_bytes(&self) -> usize {
        match self.is_fixed() {
            true => FIXED_WORD_BYTES,
            false => LINE_WORD_BYTES,
        }
    }

    /// Whether all keys have the same number of bytes, which words then do not tell.
    #[inline]
    fn is_fixed(&self) -> bool {
        matches!(self.shape, Shape::Slice { .. } | Shape::Parts { .. })
    }

    /// The word of a record's key that begins at byte `from`, which is no further than its end: keys that are alike in front of
    /// that compare as the words do, as long as these differ.
    #[inline(always)]
    #[must_use]
    pub fn word_from(&self, record: &[u8], from: usize) -> u64 {
        // Where one key of a fixed size decides, a call for each record would take longer than the word.
        match &self.shape {
            Shape::Slice { offset, bytes } => slice_word(&record[*offset..*offset + *bytes], from),
            _ => self.word_of_any(record, from),
        }
    }

    #[inline]
    fn word_of_any(&self, record: &[u8], from: usize) -> u64 {
        match &self.shape {
            Shape::Line => line_word(&record[..record.len() - 1], from),
            Shape::Pair => line_word(kv_key(record), from),
            Shape::Slice { offset, bytes } => slice_word(&record[*offset..*offset + *bytes], from),
            Shape::Parts { parts, .. } => parts_word(parts, record, from),
            Shape::Keys(keys) => {
                let mut eight = [0; 8];
                let left = keys.fill(record, from, &mut eight);
                line_word_of(eight, left)
            }
            Shape::Columns(keys) => {
                let mut eight = [0; 8];
                let left = keys.fill(record, from, &mut eight);
                line_word_of(eight, left)
            }
            Shape::Place => 0,
        }
    }

    /// Word `depth` of a key that [`Order::key_into`] made.
    #[must_use]
    pub fn word_of_key(&self, key: &[u8], depth: usize) -> u64 {
        match self.shape {
            Shape::Line | Shape::Pair | Shape::Keys(_) | Shape::Columns(_) => {
                line_word(key, depth * LINE_WORD_BYTES)
            }
            Shape::Slice { .. } | Shape::Parts { .. } => slice_word(key, depth * FIXED_WORD_BYTES),
            Shape::Place => 0,
        }
    }

    /// Whether keys that are equal up to word `depth`, which was `word`, are equal altogether.
    #[inline]
    #[must_use]
    pub fn ends_with(&self, word: u64, depth: usize) -> bool {
        self.ends_from(word, depth * self.word_bytes())
    }

    /// Whether keys that are equal up to the word that begins at byte `from`, which was `word`, are equal altogether.
    #[inline]
    #[must_use]
    pub fn ends_from(&self, word: u64, from: usize) -> bool {
        match self.shape {
            Shape::Line | Shape::Pair | Shape::Keys(_) | Shape::Columns(_) => {
                word & 0xff <= LINE_WORD_BYTES as u64
            }
            Shape::Slice { bytes, .. } | Shape::Parts { bytes, .. } => {
                from + FIXED_WORD_BYTES >= bytes
            }
            Shape::Place => true,
        }
    }

    /// Whether a key ends with word `depth`, so that no key with the same words differs from it.
    #[inline]
    #[must_use]
    pub fn is_all_of_key(&self, word: u64, depth: usize) -> bool {
        !self.is_fixed() && self.ends_with(word, depth)
    }

    /// Whether a key is made anew, with some work, each time that somebody looks at it.
    #[inline]
    #[must_use]
    pub fn is_encoded(&self) -> bool {
        matches!(self.shape, Shape::Keys(_) | Shape::Columns(_))
    }

    /// Up to which byte, `until` at most, the keys of two records are alike that are so up to byte `from`; or where a word begins
    /// that ends both, if they are equal.
    #[inline]
    #[must_use]
    pub fn alike_until(&self, one: &[u8], other: &[u8], from: usize, until: usize) -> usize {
        if let Shape::Pair = self.shape {
            return bytes_alike(kv_key(one), kv_key(other), from, until);
        }
        let mut at = from;
        while at < until {
            let word = self.word_from(one, at);
            let difference = word ^ self.word_from(other, at);
            if difference != 0 {
                return until.min(at + self.bytes_alike(word, difference));
            }
            if self.ends_from(word, at) {
                return at;
            }
            at += self.word_bytes();
        }
        until
    }

    /// How many bytes of their keys two words tell to be alike, of which one is `word`.
    fn bytes_alike(&self, word: u64, difference: u64) -> usize {
        let alike = difference.leading_zeros() as usize / 8;
        match self.is_fixed() {
            true => alike,
            // Behind the end of a key zeros are none of it.
            false => {
                let left = |word: u64| (word & 0xff) as usize;
                alike.min(left(word)).min(left(word ^ difference))
            }
        }
    }
}

/// Up to which byte, `until` at most, two texts are alike that are so up to byte `from`.
#[inline]
fn bytes_alike(one: &[u8], other: &[u8], from: usize, until: usize) -> usize {
    let end = until.min(one.len()).min(other.len());
    let mut at = from;
    while let (Some(a), Some(b)) = (one.get(at..at + 8), other.get(at..at + 8))
        && at < end
    {
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let difference = word(a) ^ word(b);
        if difference != 0 {
            return end.min(at + difference.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    while at < end && one[at] == other[at] {
        at += 1;
    }
    at.min(end)
}

#[inline]
fn line_word(line: &[u8], from: usize) -> u64 {
    let left = line.len().saturating_sub(from);
    let word = match left > LINE_WORD_BYTES {
        true => u64::from_be_bytes(line[from..from + 8].try_into().expect("eight bytes")),
        false => last_bytes(line, left),
    };
    counted(word, left)
}

/// The word of the next bytes of a key, of which `left` are left; behind them there are zeros.
#[inline]
fn line_word_of(eight: [u8; 8], left: usize) -> u64 {
    counted(u64::from_be_bytes(eight), left)
}

#[inline]
fn counted(word: u64, left: usize) -> u64 {
    (word & !0xff) | left.min(LINE_WORD_BYTES + 1) as u64
}

/// The last `count` bytes of a key, at most 8, and zeros behind them.
#[inline]
fn last_bytes(key: &[u8], count: usize) -> u64 {
    if let Some(&last) = key.last_chunk() {
        let unwanted = 8 * (8 - count as u32);
        return u64::from_be_bytes(last).checked_shl(unwanted).unwrap_or(0);
    }
    let mut eight = [0; 8];
    eight[..count].copy_from_slice(&key[key.len() - count..]);
    u64::from_be_bytes(eight)
}

#[inline]
fn slice_word(key: &[u8], from: usize) -> u64 {
    match key.get(from..from + 8) {
        Some(eight) => u64::from_be_bytes(eight.try_into().expect("eight bytes")),
        None => last_bytes(key, key.len().saturating_sub(from)),
    }
}

fn parts_word(parts: &[KeyPart], record: &[u8], from: usize) -> u64 {
    let mut skip = from;
    let mut eight = [0; 8];
    let mut filled = 0;
    for part in parts {
        let bytes = part.bytes as usize;
        if skip >= bytes {
            skip -= bytes;
            continue;
        }
        let field = &record[part.range()];
        for at in skip..bytes {
            if filled == eight.len() {
                return u64::from_be_bytes(eight);
            }
            eight[filled] = part.byte(field, at);
            filled += 1;
        }
        skip = 0;
    }
    u64::from_be_bytes(eight)
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::super::{Format, Order};
    use crate::generate::data::Draws;

    /// Keys that are alike for long, differ by zeros at their ends, or not at all: from every byte up to which two are alike their
    /// words compare as they do.
    #[test]
    fn words_from_any_byte_compare_as_keys_do() {
        let pair = |key: &[u8]| {
            let lengths = [key.len() as u32, 1].map(u32::to_le_bytes);
            [&lengths.concat(), key, b"v"].concat()
        };
        let line = |key: &[u8]| [key, b"\n"].concat();
        let mut draws = Draws::of(5, 0);
        let mut below = |limit: usize| draws.below(limit as u64) as usize;
        for bytes in 0..40 {
            let fixed = (bytes > 0).then(|| Order::new(Format::Fixed(bytes as u32), &[]).unwrap());
            for _ in 0..60 {
                let common = (0..below(bytes + 1)).map(|_| b"ab\0"[below(3)]);
                let common: Vec<u8> = common.collect();
                let mut key = |size: usize| {
                    let mut key = common.clone();
                    key.resize_with(size.max(common.len()), || b"\0\0a"[below(3)]);
                    key
                };
                let keys = [key(bytes), key(bytes)];
                if let Some(order) = &fixed {
                    check(order, &keys, &keys);
                }
                let keys = [
                    keys[0].clone(),
                    keys[0][..bytes.min(common.len() + 2)].to_vec(),
                ];
                check(&Order::lines(), &keys, &[line(&keys[0]), line(&keys[1])]);
                let order = Order::new(Format::Kv, &[]).unwrap();
                check(&order, &keys, &[pair(&keys[0]), pair(&keys[1])]);
            }
        }
    }

    fn check(order: &Order, [one, other]: &[Vec<u8>; 2], records: &[Vec<u8>; 2]) {
        let alike = one.iter().zip(other).take_while(|(a, b)| a == b).count();
        for from in 0..=alike {
            let until = order.alike_until(&records[0], &records[1], from, usize::MAX);
            assert!((from..=alike).contains(&until), "{one:?} {other:?}");
            assert_eq!(
                order.alike_until(&records[0], &records[1], from, from),
                from
            );
            let words = [0, 1].map(|at| order.word_from(&records[at], until));
            let compared = words[0].cmp(&words[1]);
            assert_eq!(compared, one.cmp(other), "{one:?} {other:?} from {until}");
            let are_alike = compared == Ordering::Equal;
            assert!(!are_alike || order.ends_from(words[0], until));
        }
    }
}
