//! Where a byte lies that is probably near: what ends a field, or must be escaped in it.
//!
//! Fields are short, and calling a search by vectors takes longer than passing over one: eight bytes are looked at
//! together, as a number, before anything is called. (Mycroft's test for a byte of zero, whose lowest mark is exact.)

const ONES: u64 = u64::MAX / 0xff;
const HIGHEST: u64 = ONES << 7;
/// What is not found so near is far.
const NEAR_BYTES: usize = 32;

/// The first place of `byte`.
#[inline]
pub fn find(byte: u8, bytes: &[u8]) -> Option<usize> {
    let sought = ONES * u64::from(byte);
    let marks = |eight: u64| (eight ^ sought).wrapping_sub(ONES) & !(eight ^ sought) & HIGHEST;
    first(
        bytes,
        marks,
        |&other| other == byte,
        |far| memchr::memchr(byte, far),
    )
}

/// The first place of 0 or 1.
#[inline]
pub fn find_0_or_1(bytes: &[u8]) -> Option<usize> {
    let marks = |eight: u64| eight.wrapping_sub(2 * ONES) & !eight & HIGHEST;
    first(
        bytes,
        marks,
        |&byte| byte <= 1,
        |far| memchr::memchr2(0, 1, far),
    )
}

/// The first place that `is_it`: `marks` sets the highest bit of the first such byte of eight, lowest first, and none
/// below it.
#[inline]
fn first(
    bytes: &[u8],
    marks: impl Fn(u64) -> u64,
    is_it: impl Fn(&u8) -> bool,
    search: impl Fn(&[u8]) -> Option<usize>,
) -> Option<usize> {
    let mut at = 0;
    while let Some(eight) = bytes[at..].first_chunk() {
        let found = marks(u64::from_le_bytes(*eight));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += eight.len();
        if at == NEAR_BYTES {
            return search(&bytes[at..]).map(|found| at + found);
        }
    }
    bytes[at..].iter().position(is_it).map(|found| at + found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_a_search_byte_by_byte_finds() {
        for length in 0..50 {
            for at in 0..=length {
                for (one, rest) in [
                    (0, 0xff),
                    (1, 0x80),
                    (1, 2),
                    (b',', b'-'),
                    (b',', b'+'),
                    (0x80, 0),
                    (0xff, 0x7f),
                ] {
                    let mut bytes = vec![rest; length];
                    bytes
                        .iter_mut()
                        .skip(at)
                        .step_by(3)
                        .for_each(|byte| *byte = one);
                    let place = bytes.iter().position(|&byte| byte == one);
                    assert_eq!(find(one, &bytes), place, "{bytes:?}");
                    let place = bytes.iter().position(|&byte| byte < 2);
                    assert_eq!(find_0_or_1(&bytes), place, "{bytes:?}");
                }
            }
        }
    }
}
