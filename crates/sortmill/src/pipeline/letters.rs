//! Where words of a text begin and end, and how they look in lower case.

use std::ops::Range;

use crate::error::Result;
use crate::stage::kernel::{LOOKED_BYTES, alphanumerics};

/// Text with zeros behind it, so that many bytes can be read at once from wherever a word begins.
#[derive(Default)]
pub struct Padded {
    bytes: Vec<u8>,
}

impl Padded {
    /// Has it be `text`, with letters of ASCII in lower case if that is asked for. Answers whether there is nothing but ASCII.
    pub fn set(&mut self, text: &[u8], lower: bool) -> bool {
        self.bytes.clear();
        self.bytes.reserve(text.len() + LOOKED_BYTES);
        self.bytes.extend_from_slice(text);
        // Behind the last byte is one more that ends a word, and what fills the part that it lies in.
        self.bytes.resize(text.len() + LOOKED_BYTES, 0);
        let (parts, _) = self.bytes.as_chunks_mut::<LOOKED_BYTES>();
        let mut all = 0;
        for part in parts {
            // Many at a time, as there are always as many.
            part.iter().for_each(|byte| all |= byte);
            if lower {
                part.make_ascii_lowercase();
            }
        }
        all.is_ascii()
    }

    /// The bytes of a word.
    pub fn word(&self, word: Range<usize>) -> &[u8] {
        &self.bytes[word]
    }

    /// It, and zeros behind it.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Hands to `see` where each word of a text of ASCII lies: borders of words are found for 64 bytes at once, without a
    /// branch for each byte (as in G. Langdale and D. Lemire, "Parsing Gigabytes of JSON per Second", 2019, section 3.1.1).
    #[inline]
    pub fn each_word(&self, mut see: impl FnMut(Range<usize>) -> Result<()>) -> Result<()> {
        // Borders in turn of a beginning and an end; the first one may be left over from the part before.
        let mut borders = [0; LOOKED_BYTES + 2];
        let (mut count, mut last) = (0, 0);
        let (parts, _) = self.bytes.as_chunks();
        for (number, part) in parts.iter().enumerate() {
            let bits = alphanumerics(part);
            let mut changes = bits ^ (bits << 1 | last);
            last = bits >> (LOOKED_BYTES - 1);
            while changes != 0 {
                borders[count] = LOOKED_BYTES * number + changes.trailing_zeros() as usize;
                count += 1;
                changes &= changes - 1;
            }
            let (words, rest) = borders[..count].as_chunks();
            for &[from, to] in words {
                see(from..to)?;
            }
            let left = rest.first().copied();
            count = rest.len();
            if let Some(left) = left {
                borders[0] = left;
            }
        }
        Ok(())
    }
}

/// Finds the words of one text after the other.
#[derive(Default)]
pub struct WordFinder {
    padded: Padded,
    lowered: Vec<u8>,
}

impl WordFinder {
    /// Hands each word of `text` to `see`, in lower case if that is asked for.
    pub fn each(
        &mut self,
        text: &[u8],
        lower: bool,
        mut see: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        match self.ascii(text, lower) {
            Some(text) => text.each_word(|word| see(text.word(word))),
            None => self.each_of_any(text, lower, see),
        }
    }

    /// `text`, in lower case if that is asked for, as one in which words are found sooner, if it is of ASCII.
    pub fn ascii(&mut self, text: &[u8], lower: bool) -> Option<&Padded> {
        self.padded.set(text, lower).then_some(&self.padded)
    }

    /// Hands each word of a text that is not of ASCII, or may not be, to `see`.
    pub fn each_of_any(
        &mut self,
        text: &[u8],
        lower: bool,
        mut see: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        each_word(text, |word| see(lowered(word, lower, &mut self.lowered)))
    }
}

/// Hands each word to `see`.
fn each_word<'a>(text: &'a [u8], mut see: impl FnMut(&'a [u8]) -> Result<()>) -> Result<()> {
    let (mut from, mut at) = (0, 0);
    while at < text.len() {
        let byte = text[at];
        let (is_part, length) = match byte < 0x80 {
            true => (byte.is_ascii_alphanumeric(), 1),
            false => match first_char(&text[at..]) {
                Some(char) => (char.is_alphanumeric(), char.len_utf8()),
                None => (false, 1),
            },
        };
        if !is_part {
            if from < at {
                see(&text[from..at])?;
            }
            from = at + length;
        }
        at += length;
    }
    match from < text.len() {
        true => see(&text[from..]),
        false => Ok(()),
    }
}

/// The character that `bytes` begin with, if they do with one.
fn first_char(bytes: &[u8]) -> Option<char> {
    let head = &bytes[..bytes.len().min(4)];
    let chunk = head.utf8_chunks().next()?;
    chunk.valid().chars().next()
}

/// The word in lower case, if that is asked for.
fn lowered<'t>(word: &'t [u8], lower: bool, text: &'t mut Vec<u8>) -> &'t [u8] {
    if !lower {
        return word;
    }
    text.clear();
    let other = (!word.is_ascii()).then(|| std::str::from_utf8(word));
    if let Some(Ok(letters)) = other {
        text.extend_from_slice(letters.to_lowercase().as_bytes());
    } else {
        text.extend_from_slice(word);
        text.make_ascii_lowercase();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::short::{short, short_within};

    /// Against the plain way, byte by byte: words on both sides of what is looked at together, of every length and byte.
    #[test]
    fn words_of_ascii_are_found_many_bytes_at_once() {
        let mut state = 20_261_123u64;
        for count in 0..400 {
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005);
                state = state.wrapping_add(1_442_695_040_888_963_407);
                (state >> 40) as u8
            };
            let rare = if count < 300 { 5 } else { 90 };
            let text: Vec<u8> = (0..count % 200)
                .map(|_| match next() % rare {
                    0 => b' ',
                    1 if count % 2 == 0 => next() % 0x80,
                    _ => b'a' + next() % 26,
                })
                .collect();
            let (mut found, mut wanted) = (Vec::new(), Vec::new());
            let mut finder = WordFinder::default();
            let padded = finder.ascii(&text, false).unwrap();
            let see = |word: Range<usize>| {
                let bytes = padded.word(word.clone());
                let head = short_within(padded.bytes(), word.start, word.len());
                assert_eq!(head, short(bytes));
                found.push(bytes.to_vec());
                Ok(())
            };
            padded.each_word(see).unwrap();
            each_word(&text, |word| {
                wanted.push(word.to_vec());
                Ok(())
            })
            .unwrap();
            assert_eq!(found, wanted, "{text:?}");
        }
    }
}
