//! Where words of a text begin and end, and how they look in lower case.

use crate::error::Result;

/// Hands each word of a text of ASCII to `see`: where words begin and end is found for 64 bytes at once, without a branch for each.
pub fn each_ascii_word<'a>(
    text: &'a [u8],
    mut see: impl FnMut(&'a [u8]) -> Result<()>,
) -> Result<()> {
    // Where the word begins that is open, and the bit of the last byte.
    let (mut open, mut last) = (None, 0);
    for (number, part) in text.chunks(64).enumerate() {
        let bits = alphanumerics(part);
        let mut borders = bits ^ (bits << 1 | last);
        last = bits >> 63;
        while borders != 0 {
            let at = 64 * number + borders.trailing_zeros() as usize;
            borders &= borders - 1;
            match open.take() {
                None => open = Some(at),
                Some(from) => see(&text[from..at])?,
            }
        }
    }
    match open {
        Some(from) => see(&text[from..]),
        None => Ok(()),
    }
}

/// A bit for each of up to 64 bytes of ASCII, the lowest for the first: whether it is a letter or a digit.
fn alphanumerics(part: &[u8]) -> u64 {
    let (words, rest) = part.as_chunks();
    let mut tail = [0; 8];
    tail[..rest.len()].copy_from_slice(rest);
    let mut bits = 0;
    for (number, &word) in words.iter().chain([&tail]).enumerate().take(8) {
        bits |= alphanumerics_of_word(u64::from_le_bytes(word)) << (8 * number);
    }
    bits
}

/// The same of eight bytes. Below 128 no sum of bytes carries into the next one, and its highest bit tells whether a bound is
/// reached (H. Warren, Hacker's Delight, 2nd edition, 6-1).
fn alphanumerics_of_word(word: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let from = |least: u8| word + EACH * u64::from(0x80 - least);
    let within = |least: u8, most: u8| from(least) & !from(most + 1);
    // Letters are 0x20 apart by case.
    let lower = word | (EACH * 0x20);
    let letters =
        (lower + EACH * u64::from(0x80 - b'a')) & !(lower + EACH * u64::from(0x7f - b'z'));
    let highest = (letters | within(b'0', b'9')) & (EACH * 0x80);
    // Gathers the highest bits in one byte.
    (highest >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Hands each word to `see`.
pub fn each_word<'a>(text: &'a [u8], mut see: impl FnMut(&'a [u8]) -> Result<()>) -> Result<()> {
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
pub fn lowered<'t>(word: &'t [u8], lower: bool, text: &'t mut Vec<u8>) -> &'t [u8] {
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
            let text: Vec<u8> = (0..count % 200)
                .map(|_| match next() % 5 {
                    0 => b' ',
                    1 if count % 2 == 0 => next() % 0x80,
                    _ => b'a' + next() % 26,
                })
                .collect();
            let (mut found, mut wanted) = (Vec::new(), Vec::new());
            each_ascii_word(&text, |word| {
                found.push(word);
                Ok(())
            })
            .unwrap();
            each_word(&text, |word| {
                wanted.push(word);
                Ok(())
            })
            .unwrap();
            assert_eq!(found, wanted, "{text:?}");
        }
        for byte in 0..0x80u8 {
            let bits = alphanumerics(&[b' ', byte, b' ']);
            assert_eq!(bits, u64::from(byte.is_ascii_alphanumeric()) << 1, "{byte}");
        }
    }
}
