//! A decimal number to 80 bits, correctly rounded.
//!
//! Its first 38 digits and a power of ten of 128 bits make a product that is right to about 118 bits. That says how to
//! round to 64 but for one in 2^50 and those that somebody made on purpose; these are compared with the middle between
//! the two candidates by numbers of any length, and only they take memory (cf. Lemire, "Number parsing at a gigabyte
//! per second", 2021).

use std::cmp::Ordering;

use num_bigint::BigUint;

use super::{Binary, Extended, Rounded, exponent};
use crate::order::number::digit_count;

/// Digits that fit into 128 bits.
const DIGITS_MAX: usize = 38;
/// No middle between two numbers has more digits: what is behind them can only be more.
const DIGITS_EXACT: usize = 20_000;
/// Beyond these powers of ten nothing but infinity and zero is.
const MAGNITUDE_MAX: i64 = 4_934;
const MAGNITUDE_MIN: i64 = -4_970;
/// By how much a product may be off, in its last places: a table of 157 steps, and digits that were left out.
const SLACK: u128 = 1 << 10;

/// `whole`.`fraction` x 10^`power`, without zeros at the beginning.
pub struct Decimal<'k> {
    whole: &'k [u8],
    fraction: &'k [u8],
    /// Zeros at the beginning of the fraction that were left out.
    zero_count: usize,
    power: i64,
}

impl<'k> Decimal<'k> {
    /// The number that `rest` begins with.
    #[inline]
    pub fn read(rest: &'k [u8]) -> Option<Self> {
        let (whole, rest) = rest.split_at(digit_count(rest));
        let (fraction, rest) = match rest.strip_prefix(b".") {
            Some(behind) => behind.split_at(digit_count(behind)),
            None => (&[][..], rest),
        };
        if whole.len() + fraction.len() == 0 {
            return None;
        }
        let zeros = |digits: &[u8]| digits.iter().take_while(|&&digit| digit == b'0').count();
        let whole = &whole[zeros(whole)..];
        let zero_count = if whole.is_empty() { zeros(fraction) } else { 0 };
        Some(Self {
            whole,
            fraction: &fraction[zero_count..],
            zero_count,
            power: exponent(rest, b'e'),
        })
    }

    fn digits(&self) -> impl Iterator<Item = u8> + '_ {
        let digits = self.whole.iter().chain(self.fraction);
        digits.map(|digit| digit - b'0')
    }

    /// The power of ten that goes with the first `count` digits as a whole number.
    fn power_of(&self, count: usize) -> i64 {
        self.power + self.whole.len() as i64 - self.zero_count as i64 - count as i64
    }

    /// It as a number of 80 bits.
    pub fn round(&self) -> Extended {
        let all = self.whole.len() + self.fraction.len();
        let count = all.min(DIGITS_MAX);
        let digits = self.digits().take(count);
        let number = digits.fold(0_u128, |sum, digit| 10 * sum + u128::from(digit));
        if number == 0 {
            return Extended::ZERO;
        }
        let magnitude = self.power_of(0);
        if magnitude > MAGNITUDE_MAX {
            return Extended::INFINITE;
        }
        if magnitude < MAGNITUDE_MIN {
            return Extended::ZERO;
        }
        let power = self.power_of(count) as i32;
        let product = Binary::from(number).times(power_of_ten(power));
        match product.round(SLACK) {
            Rounded::To(extended) => extended,
            Rounded::Unclear { below, half, power } => match self.compare(half, power) {
                Ordering::Less => below.as_it_is(),
                Ordering::Equal if below.mantissa & 1 == 0 => below.as_it_is(),
                _ => below.next(),
            },
        }
    }

    /// Compares it with `half` x 2^`power`, exactly.
    fn compare(&self, half: u128, power: i32) -> Ordering {
        let all = self.whole.len() + self.fraction.len();
        let count = all.min(DIGITS_EXACT);
        let mut digits: Vec<u8> = self.digits().take(count).collect();
        let is_more = self.digits().skip(count).any(|digit| digit != 0);
        digits.push(u8::from(is_more));
        let mut own = BigUint::from_radix_be(&digits, 10).expect("digits");
        let mut other = BigUint::from(half);
        let tens = self.power_of(count) - 1;
        let fives = BigUint::from(5_u32).pow(tens.unsigned_abs() as u32);
        match tens < 0 {
            true => other *= fives,
            false => own *= fives,
        }
        let twos = i64::from(power) - tens;
        match twos < 0 {
            true => own <<= twos.unsigned_abs(),
            false => other <<= twos.unsigned_abs(),
        }
        own.cmp(&other)
    }
}

impl Binary {
    const fn from(number: u128) -> Self {
        let shift = number.leading_zeros();
        Self {
            mantissa: number << shift,
            power: -(shift as i32),
        }
    }

    /// The product, without what is beyond 128 bits.
    const fn times(self, other: Self) -> Self {
        let (high, low) = product(self.mantissa, other.mantissa);
        let power = self.power + other.power + 128;
        match high >> 127 {
            0 => Self {
                mantissa: high << 1 | low >> 127,
                power: power - 1,
            },
            _ => Self {
                mantissa: high,
                power,
            },
        }
    }
}

/// The two halves of a product.
const fn product(a: u128, b: u128) -> (u128, u128) {
    const LOW: u128 = u64::MAX as u128;
    let (a1, a0, b1, b0) = (a >> 64, a & LOW, b >> 64, b & LOW);
    let low = a0 * b0;
    let (cross, other) = (a1 * b0, a0 * b1);
    let middle = (low >> 64) + (cross & LOW) + (other & LOW);
    let high = a1 * b1 + (cross >> 64) + (other >> 64) + (middle >> 64);
    (high, middle << 64 | low & LOW)
}

/// Powers of ten: of the steps, which `STEP` says how far they are apart, those from `STEP_MIN` steps on.
const STEP: i32 = 32;
const STEP_MIN: i32 = -157;
const STEP_COUNT: usize = 312;
static STEPS: [Binary; STEP_COUNT] = steps();

fn power_of_ten(power: i32) -> Binary {
    let step = power.div_euclid(STEP);
    let rest = Binary::from(10_u128.pow(power.rem_euclid(STEP) as u32));
    STEPS[(step - STEP_MIN) as usize].times(rest)
}

const fn steps() -> [Binary; STEP_COUNT] {
    let one = Binary::from(1);
    let up = Binary::from(10_u128.pow(16)).times(Binary::from(10_u128.pow(16)));
    let down = inverse(up);
    let mut steps = [one; STEP_COUNT];
    let zero = (-STEP_MIN) as usize;
    let mut at = zero + 1;
    while at < STEP_COUNT {
        steps[at] = steps[at - 1].times(up);
        at += 1;
    }
    let mut at = zero;
    while at > 0 {
        at -= 1;
        steps[at] = steps[at + 1].times(down);
    }
    steps
}

/// 1 over a number, rounded down.
const fn inverse(of: Binary) -> Binary {
    // 2^255 over the mantissa, which is no power of two, bit by bit.
    let mut rest = 1_u128 << 127;
    let mut quotient = 0_u128;
    let mut bit = 0;
    while bit < 128 {
        let is_over = rest >> 127 == 1;
        rest <<= 1;
        quotient <<= 1;
        if is_over || rest >= of.mantissa {
            rest = rest.wrapping_sub(of.mantissa);
            quotient |= 1;
        }
        bit += 1;
    }
    Binary {
        mantissa: quotient,
        power: -255 - of.power,
    }
}
