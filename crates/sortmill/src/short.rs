//! Texts of at most sixteen bytes as two words: to look at one or to compare two takes a few steps, and no call.

/// Bytes of a text that is short, at most.
pub const SHORT_BYTES: usize = 16;

/// The bytes of a text that is short, with zeros behind them, and the first ones of any other: of parts that overlap, so that
/// nothing is copied byte by byte.
#[inline(always)]
#[must_use]
pub fn short(text: &[u8]) -> [u64; 2] {
    let word = |at: usize| u64::from_le_bytes(text[at..at + 8].try_into().expect("eight bytes"));
    let half = |at: usize| u32::from_le_bytes(text[at..at + 4].try_into().expect("four bytes"));
    match text.len() {
        0 => [0, 0],
        count @ 1..=3 => {
            let byte = |at: usize| u64::from(text[at]) << (8 * at);
            [byte(0) | byte(count / 2) | byte(count - 1), 0]
        }
        count @ 4..=7 => {
            let half = |at: usize| u64::from(half(at)) << (8 * at);
            [half(0) | half(count - 4), 0]
        }
        8 => [word(0), 0],
        count @ 9..=SHORT_BYTES => [word(0), word(count - 8) >> (8 * (SHORT_BYTES - count))],
        _ => [word(0), word(8)],
    }
}

/// The text of `count` bytes that [`short`] made words of.
#[inline]
pub fn unshort([first, second]: [u64; 2], count: usize, bytes: &mut [u8; SHORT_BYTES]) -> &[u8] {
    *bytes = (u128::from(second) << 64 | u128::from(first)).to_le_bytes();
    &bytes[..count]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_keys_come_back() {
        let text = b"abcdefghijklmnop";
        for count in 0..=SHORT_BYTES {
            assert_eq!(
                unshort(short(&text[..count]), count, &mut [9; SHORT_BYTES]),
                &text[..count]
            );
            // Any other byte makes other words.
            for at in 0..count {
                let mut other = text[..count].to_vec();
                other[at] = 0;
                assert_ne!(short(&other), short(&text[..count]));
            }
        }
    }
}
