//! Numbers of columns: decimal, of any length, with an exponent, compared exactly.
//!
//! What GNU's `-n` leaves out (a plus, exponents) is here, and so is what its `-g` rounds away: two numbers are equal only
//! if they are. A text is a number as a whole or not at all: a sign, digits with a point among or beside them, `e` and a
//! power of ten; or `inf`, `infinity` and `nan`, in letters of either size. Blanks around it do not count.
//!
//! ```text
//! 00 01                        minus infinity
//! 01 .. fe ...                 as `number.rs` has it
//! ff 01, ff 02                 infinity, not a number
//! ```
//!
//! So 00 00 and ff ff are free for what has no number at all.

use super::number::{Number, digit_count, encode_number};
use super::window::Window;

/// What a text says.
pub enum Exact<'t> {
    /// A number; `None` is zero.
    Finite(Option<Number<'t>>),
    Infinite {
        is_negative: bool,
    },
    Nan,
}

/// Powers of ten beyond this all count as this one; no text is so long that its digits matter beside it.
const POWER_MAX: i64 = 1 << 60;

impl<'t> Exact<'t> {
    /// The number that all of `text` is, if it is one.
    #[inline]
    pub fn read(text: &'t [u8]) -> Option<Self> {
        let text = without_blanks_around(text);
        let (is_negative, rest) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        let (whole, rest) = rest.split_at(digit_count(rest));
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => rest.split_at(digit_count(rest)),
            _ => (&[][..], rest),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Self::word(is_negative, text);
        }
        let power = match rest {
            [] => 0,
            [b'e' | b'E', rest @ ..] => power(rest)?,
            _ => return None,
        };
        let number = Number::of(is_negative, (whole, false), fraction, power);
        Some(Self::Finite(number))
    }

    #[cold]
    fn word(is_negative: bool, text: &[u8]) -> Option<Self> {
        let is = |word: &[u8]| {
            let letters = text.strip_prefix(b"-").or(text.strip_prefix(b"+"));
            letters.unwrap_or(text).eq_ignore_ascii_case(word)
        };
        if is(b"inf") || is(b"infinity") {
            return Some(Self::Infinite { is_negative });
        }
        is(b"nan").then_some(Self::Nan)
    }

    /// Pushes what compares as the number does: not a number comes behind all others.
    #[inline]
    pub fn encode(&self, window: &mut Window<'_>) {
        match self {
            Self::Finite(number) => encode_number(number.as_ref(), window),
            Self::Infinite { is_negative: true } => window.push_all(&[0, 1]),
            Self::Infinite { is_negative: false } => window.push_all(&[0xff, 1]),
            Self::Nan => window.push_all(&[0xff, 2]),
        }
    }
}

/// The power of ten that all of `rest` is.
fn power(rest: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match rest {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, rest),
    };
    if digits.is_empty() || digit_count(digits) < digits.len() {
        return None;
    }
    let add = |sum: i64, digit: &u8| {
        let sum = sum
            .saturating_mul(10)
            .saturating_add(i64::from(digit - b'0'));
        sum.min(POWER_MAX)
    };
    let power = digits.iter().fold(0, add);
    Some(if is_negative { -power } else { power })
}

fn without_blanks_around(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(text: &str) -> Option<Vec<u8>> {
        let mut bytes = [0; 64];
        let mut window = Window::new(0, &mut bytes);
        Exact::read(text.as_bytes())?.encode(&mut window);
        let filled = window.filled();
        Some(bytes[..filled].to_vec())
    }

    #[test]
    fn numbers_compare_as_numbers_do_and_exactly() {
        let rising = [
            &["-inf", "-INFINITY"][..],
            &["-1e400"],
            &["-18446744073709551617.0000001"],
            &["-18446744073709551617", "-1.8446744073709551617e19"],
            &["-10", "-1e1", " -10.0\t"],
            &["-9.99"],
            &["-.5", "-5e-1"],
            &["-1e-999999999999999999"],
            &["-1e-9223372036854775808", "-1e-99999999999999999999"],
            &["0", "-0", "+0.00", "0e5", "0."],
            &["1e-9223372036854775809", "1e-99999999999999999999"],
            &["1e-999999999999999999"],
            &["1e-400"],
            &["0.1", "1E-1", "00.10"],
            &["0.1000000000000000000000000001"],
            &["7", "+7", "7.", "0.7e+1", "700e-2"],
            &["123456789012345678901234567890"],
            &["123456789012345678901234567891"],
            &["1e31"],
            &["1e400"],
            &["1e999999999999999999"],
            &["1e9223372036854775808", "1e18446744073709551616"],
            &["inf", "+Inf"],
            &["nan", "NaN", "-nan"],
        ];
        let mut before = Vec::new();
        for equal in rising {
            let first = encoded(equal[0]).unwrap();
            assert!(before < first, "{equal:?}");
            assert!(![&[0, 0][..], &[0xff, 0xff]].contains(&&first[..]));
            for other in equal {
                assert_eq!(encoded(other), Some(first.clone()), "{other}");
            }
            before = first;
        }
    }

    #[test]
    fn what_is_not_a_number_as_a_whole_is_none() {
        for text in [
            "", " ", "-", "+", ".", "e5", "1e", "1e+", "1 2", "1,000", "0x1f", "1_000", "--1",
            "1e5.", "1.2.3", "infinit", "nano", "12abc", "\n1",
        ] {
            assert!(encoded(text).is_none(), "{text:?}");
        }
    }
}
