//! Numbers as C's `strtold` reads them (`-g`): decimal or hexadecimal, with an exponent, infinite, or not a number.
//!
//! What is no number comes first, then NaN, the negative one before the other, then numbers. (Before coreutils 9.2 GNU
//! sort compared NaN by whatever lay beside them in memory, so with several of them nobody can do what it did.) They count as the processor's 80-bit numbers
//! have them, correctly rounded, because that is what GNU sort compares on x86: two that differ behind the 64th bit are
//! equal. So the order is the same on every machine here.
//!
//! ```text
//! 0 0 0                         no number
//! 0 0 1, 0 0 2                  negative NaN, NaN
//! 0 0 3                         minus infinity
//! exponent (2), mantissa (8)    any other: all bits of a negative one turned, else the first
//! ```

use super::window::Window;

mod decimal;

use decimal::Decimal;

/// Of the 80 bits: those of the mantissa, its highest bit shown, and the exponent with its bias.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Extended {
    exponent: u16,
    mantissa: u64,
}

impl Extended {
    const ZERO: Self = Self {
        exponent: 0,
        mantissa: 0,
    };
    const INFINITE: Self = Self {
        exponent: 0x7fff,
        mantissa: 1 << 63,
    };
}

/// What a key begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Value {
    NoNumber,
    Nan { is_negative: bool },
    Number { is_negative: bool, of: Extended },
}

/// The number that `part` begins with.
#[inline]
pub fn encode(part: &[u8], window: &mut Window<'_>) {
    match Value::of(part) {
        Value::NoNumber => window.push_all(&[0, 0, 0]),
        Value::Nan { is_negative: true } => window.push_all(&[0, 0, 1]),
        Value::Nan { is_negative: false } => window.push_all(&[0, 0, 2]),
        Value::Number {
            is_negative: true,
            of: Extended::INFINITE,
        } => window.push_all(&[0, 0, 3]),
        Value::Number { is_negative, of } => {
            let is_negative = is_negative && of.mantissa != 0;
            window.turn(is_negative);
            window.push_all(&(0x8000 | of.exponent).to_be_bytes());
            window.push_all(&of.mantissa.to_be_bytes());
            window.turn(is_negative);
        }
    }
}

impl Value {
    fn of(part: &[u8]) -> Self {
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
        let spaces = part.iter().take_while(|byte| is_space(byte)).count();
        let rest = &part[spaces..];
        let is_negative = rest.first() == Some(&b'-');
        let is_signed = is_negative || rest.first() == Some(&b'+');
        let rest = &rest[usize::from(is_signed)..];
        if let Some(of) = hexadecimal(rest).or_else(|| Decimal::read(rest).map(|read| read.round()))
        {
            return Self::Number { is_negative, of };
        }
        let begins = |word: &[u8]| {
            let letters = rest.get(..word.len());
            letters.is_some_and(|letters| letters.eq_ignore_ascii_case(word))
        };
        if begins(b"inf") {
            let of = Extended::INFINITE;
            return Self::Number { is_negative, of };
        }
        match begins(b"nan") {
            true => Self::Nan { is_negative },
            false => Self::NoNumber,
        }
    }
}

/// The exponent that `rest` begins with, `e` or `p` and digits, 0 if it is none. No number is as long as the largest
/// that comes of it.
fn exponent(rest: &[u8], letter: u8) -> i64 {
    let Some((first, rest)) = rest.split_first() else {
        return 0;
    };
    if first.to_ascii_lowercase() != letter {
        return 0;
    }
    let is_negative = rest.first() == Some(&b'-');
    let is_signed = is_negative || rest.first() == Some(&b'+');
    let mut number = 0_i64;
    for digit in &rest[usize::from(is_signed)..] {
        if !digit.is_ascii_digit() {
            break;
        }
        number = (10 * number + i64::from(digit - b'0')).min(1 << 48);
    }
    if is_negative { -number } else { number }
}

/// The hexadecimal number that `rest` begins with.
fn hexadecimal(rest: &[u8]) -> Option<Extended> {
    let [b'0', b'x' | b'X', rest @ ..] = rest else {
        return None;
    };
    let (mut sum, mut power, mut is_more) = (0_u128, 0_i64, false);
    let (mut has_digit, mut behind_point) = (false, false);
    let mut at = 0;
    while let Some(&byte) = rest.get(at) {
        match char::from(byte).to_digit(16) {
            Some(digit) => {
                has_digit = true;
                if sum >> 124 == 0 {
                    sum = sum << 4 | u128::from(digit);
                    power -= if behind_point { 4 } else { 0 };
                } else {
                    is_more |= digit != 0;
                    power += if behind_point { 0 } else { 4 };
                }
            }
            None if byte == b'.' && !behind_point => behind_point = true,
            None => break,
        }
        at += 1;
    }
    if !has_digit {
        return None;
    }
    if sum == 0 {
        return Some(Extended::ZERO);
    }
    let shift = sum.leading_zeros();
    let power = power + exponent(&rest[at..], b'p') - i64::from(shift);
    let number = Binary {
        mantissa: sum << shift | u128::from(is_more),
        power: power.clamp(-(1 << 20), 1 << 20) as i32,
    };
    Some(match number.round(0) {
        Rounded::To(extended) => extended,
        Rounded::Unclear { .. } => unreachable!("nothing is left out of it"),
    })
}

/// `mantissa` x 2^`power`, the highest bit of the mantissa set.
#[derive(Clone, Copy)]
struct Binary {
    mantissa: u128,
    power: i32,
}

/// What a number is in 80 bits.
enum Rounded {
    To(Extended),
    /// It is so near the middle between this one and the next that more must be known of it. The middle is `half` x
    /// 2^`power`.
    Unclear {
        below: Extended,
        half: u128,
        power: i32,
    },
}

/// What the exponent of a mantissa of 1 would be.
const BIAS: i32 = 16_383 + 63;

impl Binary {
    /// Rounds to the nearest, and in the middle to the even one. The mantissa is right to within `slack`; with none it
    /// is exact, but for its last bit, which may stand for more behind it.
    fn round(self, slack: u128) -> Rounded {
        let normal = self.power + 64 + BIAS;
        if normal >= 0x7fff {
            return Rounded::To(Extended::INFINITE);
        }
        // The smallest numbers have fewer bits.
        let dropped = 64 + (1 - normal).max(0) as u32;
        if dropped > 129 {
            return Rounded::To(Extended::ZERO);
        }
        let kept = self.mantissa.checked_shr(dropped).unwrap_or(0);
        let below = Extended {
            exponent: normal.max(0) as u16,
            mantissa: kept as u64,
        };
        // In halves of the last bit that is kept.
        let half = 2 * kept + 1;
        let middle = (dropped <= 128).then(|| 1_u128 << (dropped - 1));
        let left = match dropped {
            128.. => self.mantissa,
            _ => self.mantissa & ((1 << dropped) - 1),
        };
        let power = self.power + dropped as i32 - 1;
        let (distance, is_above) = match middle {
            Some(middle) => (left.abs_diff(middle), left > middle),
            // The middle is 2^128.
            None => (left.wrapping_neg(), false),
        };
        if slack > 0 && distance <= slack {
            return Rounded::Unclear { below, half, power };
        }
        let is_even = kept & 1 == 0;
        let up = is_above || (distance == 0 && !is_even);
        Rounded::To(if up { below.next() } else { below.as_it_is() })
    }
}

impl Extended {
    /// The next larger one.
    fn next(self) -> Self {
        match self.mantissa.checked_add(1) {
            Some(mantissa) => Self { mantissa, ..self }.as_it_is(),
            None if self.exponent == 0x7ffe => Self::INFINITE,
            None => Self {
                exponent: self.exponent + 1,
                mantissa: 1 << 63,
            },
        }
    }

    /// With the exponent that belongs to the mantissa: 0 where its highest bit is not set.
    fn as_it_is(self) -> Self {
        let is_normal = self.mantissa >> 63 == 1;
        Self {
            exponent: if is_normal { self.exponent.max(1) } else { 0 },
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, exponent: u16, mantissa: u64) {
        let of = Extended { exponent, mantissa };
        let is_negative = text.starts_with('-');
        let value = Value::of(text.as_bytes());
        assert_eq!(value, Value::Number { is_negative, of }, "{text}");
    }

    /// The installed `sort` may be one that has no order of several NaN.
    #[test]
    fn what_is_no_number_comes_before_nan_and_that_before_numbers() {
        let rising = [
            "x",
            "-nan",
            "nan",
            "-inf",
            "-1",
            "-0x1p-16445",
            "0",
            "1e-4950",
            "1",
            "inf",
        ];
        let encoded = rising.map(|text| {
            let mut bytes = [0; 16];
            let mut window = Window::new(0, &mut bytes);
            encode(text.as_bytes(), &mut window);
            bytes
        });
        assert!(encoded.is_sorted_by(|a, b| a < b));
        assert_eq!(Value::of(b"-NaN(12)"), Value::Nan { is_negative: true });
    }

    #[test]
    fn numbers_are_rounded_as_the_processor_has_them() {
        check("1", 16_383, 1 << 63);
        check("-1", 16_383, 1 << 63);
        check("0.1", 16_379, 0xcccc_cccc_cccc_cccd);
        check("1e4933", 0x7fff, 1 << 63);
        // The middle between two: to the even one, and upwards as soon as there is more.
        check("18446744073709551617", 16_447, 1 << 63);
        check("18446744073709551619", 16_447, (1 << 63) + 2);
        check(
            "18446744073709551617.0000000000000000000000000001",
            16_447,
            (1 << 63) + 1,
        );
        check("0x10000000000000001", 16_447, 1 << 63);
        check(
            "0x10000000000000001.00000000000000000000000001",
            16_447,
            (1 << 63) + 1,
        );
        // The smallest, half of it, and a little more than that.
        check("3.6451995318824746025e-4951", 0, 1);
        check("0x1p-16445", 0, 1);
        check("0x1p-16446", 0, 0);
        check("0x1.0000000000000000000000000000001p-16446", 0, 1);
        check("1e-5000", 0, 0);
        check("0x0.8p-16381", 1, 1 << 63);
        check("0x0.ffffffffffffffffp-16382", 1, 1 << 63);
        check("0x0.fffffffffffffffep-16382", 0, (1 << 63) - 1);
    }
}
