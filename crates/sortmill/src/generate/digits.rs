//! Decimal digits, drawn and written.

use super::data::{Draws, scaled};

const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < pairs.len() {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Four digits each.
static FOURS: [[u8; 4]; 10_000] = {
    let mut fours = [[0; 4]; 10_000];
    let mut number = 0;
    while number < fours.len() {
        let ([a, b], [c, d]) = (PAIRS[number / 100], PAIRS[number % 100]);
        fours[number] = [a, b, c, d];
        number += 1;
    }
    fours
};

/// How many digits `value` has; 1 for 0.
pub fn count(value: u64) -> usize {
    value.checked_ilog10().unwrap_or(0) as usize + 1
}

/// Fills `out` with random digits, of which the first `digits` are a number: 0 to 9 if it is but one, else
/// it does not begin with 0. There is no loop that ends with the number, which no processor could foresee.
#[inline]
pub fn scatter<const BYTES: usize>(digits: usize, draws: &mut Draws, out: &mut [u8; BYTES]) {
    for eight in out.as_chunks_mut::<8>().0 {
        let word = draws.word();
        *eight = (u64::from(four(word)) | u64::from(four(word >> 32)) << 32).to_le_bytes();
    }
    out[0] = first(digits, draws.word());
}

/// The first digit of a number that has so many, which follows from a word: 0 to 9 if it is the only one, else not 0.
#[inline]
pub fn first(digits: usize, word: u64) -> u8 {
    let least = u64::from(digits > 1);
    b'0' + (least + scaled(word, 10 - least)) as u8
}

/// Four digits that follow from the lower half of a word, the first in the lowest byte, all equally likely but for one part
/// in 400,000.
#[inline]
pub fn four(word: u64) -> u32 {
    let place = (u64::from(word as u32) * 10_000) >> 32;
    u32::from_le_bytes(FOURS[place as usize])
}

/// The digits of `value`, below 10^8, the first in the lowest byte.
#[inline]
fn eight_digits(value: u64) -> u64 {
    let four = |place: u64| u64::from(u32::from_le_bytes(FOURS[place as usize]));
    let first = value / 10_000;
    four(first) | four(value - first * 10_000) << 32
}

/// Fills `out` with the lowest digits of `value`, zeros before them.
#[inline]
pub fn write(value: u64, out: &mut [u8]) {
    let mut rest = value;
    let (first, pairs) = out.as_rchunks_mut::<2>();
    for pair in pairs.iter_mut().rev() {
        *pair = PAIRS[(rest % 100) as usize];
        rest /= 100;
    }
    if let [first] = first {
        *first = b'0' + (rest % 10) as u8;
    }
}

/// Writes the lowest `digits` digits of `value`, zeros before them, to the beginning of `out`. Where there are
/// fewer than [`STORED_BYTES`] of them, those behind are changed as well.
#[inline]
pub fn store(value: u64, digits: usize, out: &mut [u8]) {
    const HALF: u64 = 100_000_000;
    match digits {
        1..=8 => {
            let stored = eight_digits(value) >> (8 * (8 - digits));
            out[..8].copy_from_slice(&stored.to_le_bytes());
        }
        9..=16 => {
            let first = eight_digits(value / HALF) >> (8 * (16 - digits));
            out[..8].copy_from_slice(&first.to_le_bytes());
            out[digits - 8..digits].copy_from_slice(&eight_digits(value % HALF).to_le_bytes());
        }
        _ => write(value, &mut out[..digits]),
    }
}

/// The fewest bytes that [`store`] changes.
pub const STORED_BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_number() {
        for value in (0..100_000_000).step_by(9_973).chain([99_999_999]) {
            let expected = format!("{value:08}");
            assert_eq!(eight_digits(value).to_le_bytes(), expected.as_bytes());
            let mut written = [0; 8];
            write(value, &mut written);
            assert_eq!(written, expected.as_bytes());
        }
        for (value, expected) in [(0, 1), (9, 1), (10, 2), (u64::MAX, 20)] {
            assert_eq!(count(value), expected);
        }
        for digits in 1..=20 {
            for value in [0, 9, 10_u64.pow(digits - 1), 1234567890123456789] {
                let value = value % 10_u64.checked_pow(digits).unwrap_or(u64::MAX);
                let mut stored = [b'x'; 24];
                store(value, digits as usize, &mut stored);
                let expected = format!("{value:0width$}", width = digits as usize);
                assert!(stored.starts_with(expected.as_bytes()), "{expected}");
                let kept = STORED_BYTES.max(digits as usize);
                assert!(stored[kept..].iter().all(|byte| *byte == b'x'));
            }
        }
        let mut odd = [0; 3];
        write(4_567, &mut odd);
        assert_eq!(odd, *b"567");
    }
}
