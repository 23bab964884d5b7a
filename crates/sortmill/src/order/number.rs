//! Decimal numbers of any length (`-n`): a sign, an exponent, pairs of digits.
//!
//! A number is what stands at the beginning behind blanks: a minus, digits, a point, digits; anything else, or nothing,
//! is 0, as is -0. Where there is no separator of thousands, as in the C locale, GNU sort takes the byte 0x80 for it,
//! which therefore does not count before the point. The number is brought to the form 0.ddd x 10^e without zeros at either end, so that equal numbers are equal
//! bytes:
//!
//! ```text
//! 0x80              zero
//! 0x82 .. 0xfd      e from -30 to 93; 0x81 and 0xfe: e in 8 bytes more
//! 2 x dd + more     a pair of digits, and whether another one follows
//! ```
//!
//! and of a negative number all bits are turned.

use super::fields::without_blanks;
use super::window::Window;

const ZERO: u8 = 0x80;
const TINY: u8 = 0x81;
const EXPONENT_ZERO: u8 = 0xa0;
const HUGE: u8 = 0xfe;
const EXPONENT_MIN: i64 = (TINY + 1) as i64 - EXPONENT_ZERO as i64;
const EXPONENT_MAX: i64 = (HUGE - 1) as i64 - EXPONENT_ZERO as i64;

/// What does not count before the point.
const SEPARATOR: u8 = 0x80;

/// A number that is not 0: 0.`whole``fraction` x 10^`exponent`.
pub struct Number<'k> {
    is_negative: bool,
    exponent: i64,
    /// Digits, and separators if there are any.
    whole: &'k [u8],
    is_separated: bool,
    fraction: &'k [u8],
}

/// The number that `part` begins with.
#[inline]
pub fn encode(part: &[u8], window: &mut Window<'_>) {
    encode_number(Number::find(part).as_ref(), window);
}

/// A number, `None` for zero. Its first byte is neither 0 nor 0xff.
#[inline]
pub fn encode_number(number: Option<&Number<'_>>, window: &mut Window<'_>) {
    let Some(number) = number else {
        return window.push(ZERO);
    };
    window.turn(number.is_negative);
    number.encode(window);
    window.turn(number.is_negative);
}

/// How many digits `bytes` begin with.
#[inline]
pub fn digit_count(bytes: &[u8]) -> usize {
    let is_other = |byte: &u8| !byte.is_ascii_digit();
    bytes.iter().position(is_other).unwrap_or(bytes.len())
}

impl<'k> Number<'k> {
    #[inline]
    fn find(part: &'k [u8]) -> Option<Self> {
        let rest = without_blanks(part);
        let (is_negative, rest) = match rest.strip_prefix(b"-") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let mut whole_bytes = digit_count(rest);
        let is_separated = rest.get(whole_bytes) == Some(&SEPARATOR);
        if is_separated {
            let counts = |byte: &&u8| byte.is_ascii_digit() || **byte == SEPARATOR;
            whole_bytes = rest.iter().take_while(counts).count();
        }
        let (whole, rest) = rest.split_at(whole_bytes);
        let fraction = rest.strip_prefix(b".").unwrap_or_default();
        let fraction = &fraction[..digit_count(fraction)];
        Self::of(is_negative, (whole, is_separated), fraction, 0)
    }

    /// The number `whole`.`fraction` x 10^`power`, where `whole` has separators in it if `is_separated`; `None` is zero.
    #[inline]
    pub fn of(
        is_negative: bool,
        (whole, is_separated): (&'k [u8], bool),
        fraction: &'k [u8],
        power: i64,
    ) -> Option<Self> {
        let mut whole = without_leading_zeros(whole);
        let mut fraction = without_trailing_zeros(fraction);
        let mut exponent = match is_separated {
            false => whole.len() as i64,
            true => whole.iter().filter(|&&byte| byte != SEPARATOR).count() as i64,
        };
        if whole.is_empty() {
            let all = fraction.len();
            fraction = without_leading_zeros(fraction);
            exponent = fraction.len() as i64 - all as i64;
        } else if fraction.is_empty() {
            whole = without_trailing_zeros(whole);
        }
        (whole.len() + fraction.len() > 0).then_some(Self {
            is_negative,
            exponent: exponent + power,
            whole,
            is_separated,
            fraction,
        })
    }

    #[inline]
    fn encode(&self, window: &mut Window<'_>) {
        match self.exponent {
            EXPONENT_MIN..=EXPONENT_MAX => {
                window.push(EXPONENT_ZERO.wrapping_add(self.exponent as u8))
            }
            far => {
                window.push(if far < 0 { TINY } else { HUGE });
                window.push_signed(far);
            }
        }
        let digits = self.whole.iter().chain(self.fraction).copied();
        match self.is_separated {
            false => encode_digits(digits, window),
            true => encode_digits(digits.filter(|&byte| byte != SEPARATOR), window),
        }
    }
}

/// Two to a byte, and whether more follow.
#[inline]
fn encode_digits(digits: impl Iterator<Item = u8>, window: &mut Window<'_>) {
    let mut digits = digits.map(|digit| digit - b'0');
    let mut next = digits.next();
    while let (Some(digit), false) = (next, window.is_full()) {
        let pair = 10 * digit + digits.next().unwrap_or(0);
        next = digits.next();
        window.push(2 * pair + u8::from(next.is_some()));
    }
}

impl Window<'_> {
    /// Eight bytes that compare as the numbers do.
    fn push_signed(&mut self, number: i64) {
        for byte in ((number as u64) ^ (1 << 63)).to_be_bytes() {
            self.push(byte);
        }
    }
}

fn without_leading_zeros(digits: &[u8]) -> &[u8] {
    let counts = |&byte: &u8| byte != b'0' && byte != SEPARATOR;
    &digits[digits.iter().position(counts).unwrap_or(digits.len())..]
}

fn without_trailing_zeros(digits: &[u8]) -> &[u8] {
    let counts = |&byte: &u8| byte != b'0' && byte != SEPARATOR;
    &digits[..digits.iter().rposition(counts).map_or(0, |last| last + 1)]
}
