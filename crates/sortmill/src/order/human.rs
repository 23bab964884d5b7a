//! Sizes as people write them (`-h`): the order of the suffix decides before the number does, as GNU sort has it, so
//! 1023K comes before 1M and 1025K too.
//!
//! One byte for the suffix, then the number as `-n` has it. A zero has no suffix, and that of a negative number counts
//! downwards.

use super::fields::without_blanks;
use super::number::{self, digit_count};
use super::window::Window;

/// The order of a number without suffix.
const NONE: i8 = 16;

/// The size that `part` begins with; small letters are capitals if `fold`.
#[inline]
pub fn encode(part: &[u8], fold: bool, window: &mut Window<'_>) {
    window.push((NONE + suffix_order(part, fold)) as u8);
    number::encode(part, window);
}

fn suffix_order(part: &[u8], fold: bool) -> i8 {
    let rest = without_blanks(part);
    let is_negative = rest.first() == Some(&b'-');
    let rest = &rest[usize::from(is_negative)..];
    let (whole, mut rest) = rest.split_at(digit_count(rest));
    let mut fraction: &[u8] = &[];
    if let Some(behind) = rest.strip_prefix(b".") {
        (fraction, rest) = behind.split_at(digit_count(behind));
    }
    if whole.iter().chain(fraction).all(|&digit| digit == b'0') {
        return 0;
    }
    let order = match rest.first() {
        Some(&letter) if fold => order_of(letter.to_ascii_uppercase()),
        Some(&letter) => order_of(letter),
        None => 0,
    };
    if is_negative { -order } else { order }
}

fn order_of(letter: u8) -> i8 {
    match letter {
        b'k' | b'K' => 1,
        b'M' => 2,
        b'G' => 3,
        b'T' => 4,
        b'P' => 5,
        b'E' => 6,
        b'Z' => 7,
        b'Y' => 8,
        _ => 0,
    }
}
