//! Sums of floats that do not depend on the order in which they are added.
//!
//! In come 64-bit floats, out goes the float nearest to their exact sum. The sum is kept as one long fixed-point number of
//! 32-bit digits in 64-bit places, whose bit 0 is worth 2^-1074, the least that a float can be: adding touches three
//! digits and leaves carries for later (R. M. Neal, Fast exact summation using small and large superaccumulators, 2015).

/// Bits from 2^-1074 to 2^1023, 63 more for 2^63 summands, and a sign.
const DIGIT_COUNT: usize = 70;
/// So often a digit below 2^32 can be added to one before its place overflows.
const ADDS_MAX: u32 = 1 << 30;
const MASK: i64 = 0xffff_ffff;

const NAN: u8 = 1;
const INFINITE: u8 = 2;
const NEGATIVE_INFINITE: u8 = 4;
const NEGATIVE: u8 = 8;

/// An exact sum.
#[derive(Clone, Debug)]
pub struct ExactSum {
    digits: [i64; DIGIT_COUNT],
    adds: u32,
    /// Which values that are no numbers were among the summands.
    special: u8,
}

impl Default for ExactSum {
    fn default() -> Self {
        Self {
            digits: [0; DIGIT_COUNT],
            adds: 0,
            special: 0,
        }
    }
}

impl ExactSum {
    /// Adds one float.
    pub fn add(&mut self, value: f64) {
        if !value.is_finite() {
            self.special |= match (value.is_nan(), value > 0.0) {
                (true, _) => NAN,
                (_, true) => INFINITE,
                (_, false) => NEGATIVE_INFINITE,
            };
            return;
        }
        let bits = value.to_bits();
        let exponent = (bits >> 52 & 0x7ff) as usize;
        let fraction = bits & ((1 << 52) - 1);
        let (whole, shift) = match exponent {
            0 => (fraction, 0),
            _ => (fraction | 1 << 52, exponent - 1),
        };
        let wide = u128::from(whole) << (shift % 32);
        let digits = &mut self.digits[shift / 32..shift / 32 + 3];
        for (place, digit) in digits.iter_mut().enumerate() {
            let part = (wide >> (32 * place)) as i64 & MASK;
            *digit += if value.is_sign_negative() {
                -part
            } else {
                part
            };
        }
        self.added();
    }

    /// Counts an addition, and carries before places can overflow.
    fn added(&mut self) {
        self.adds += 1;
        if self.adds == ADDS_MAX {
            self.carry();
        }
    }

    /// Brings all digits but the highest, which has the sign, between 0 and 2^32.
    fn carry(&mut self) {
        let mut carried = 0;
        for digit in &mut self.digits[..DIGIT_COUNT - 1] {
            let sum = *digit + carried;
            carried = sum >> 32;
            *digit = sum & MASK;
        }
        self.digits[DIGIT_COUNT - 1] += carried;
        self.adds = 0;
    }

    /// The digits of what the sum is without its sign, and whether that is negative.
    fn magnitude(&self) -> ([i64; DIGIT_COUNT], bool) {
        let mut sum = self.clone();
        sum.carry();
        let is_negative = sum.digits[DIGIT_COUNT - 1] < 0;
        if is_negative {
            sum.digits.iter_mut().for_each(|digit| *digit = -*digit);
            sum.carry();
        }
        (sum.digits, is_negative)
    }

    /// The float that is nearest to the sum, of two the even one. Infinities of both signs make a NaN. A sum of nothing
    /// but zeros is 0.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.mean(1)
    }

    /// The float that is nearest to the sum over `count`, a NaN of none; otherwise as [`ExactSum::value`].
    #[must_use]
    pub fn mean(&self, count: u64) -> f64 {
        match self.special & (NAN | INFINITE | NEGATIVE_INFINITE) {
            0 if count == 0 => return f64::NAN,
            0 => {}
            INFINITE => return f64::INFINITY,
            NEGATIVE_INFINITE => return f64::NEG_INFINITY,
            _ => return f64::NAN,
        }
        let (digits, is_negative) = self.magnitude();
        // One digit more, below the least that a float can be, and in it whether anything is left behind that.
        let (mut quotient, mut left) = ([0u64; DIGIT_COUNT + 1], 0u128);
        let count = u128::from(count);
        for (digit, quotient) in digits.iter().zip(&mut quotient[1..]).rev() {
            let whole = left << 32 | *digit as u128;
            match whole {
                0 => {}
                _ if count == 1 => *quotient = whole as u64,
                _ => (*quotient, left) = ((whole / count) as u64, whole % count),
            }
        }
        let behind = left << 32;
        quotient[0] = (behind / count) as u64 | u64::from(!behind.is_multiple_of(count));
        nearest(&quotient, 32, is_negative)
    }

    /// Appends what [`ExactSum::merge`] reads: what was no number and the sign (a byte), the first digit that is not 0 and
    /// how many there are (a byte each), the digits (4 bytes each, the lowest first).
    pub fn write(&self, to: &mut Vec<u8>) {
        let (digits, is_negative) = self.magnitude();
        let first = digits.iter().position(|&digit| digit != 0).unwrap_or(0);
        let end = digits.iter().rposition(|&digit| digit != 0);
        let used = &digits[first..end.map_or(first, |last| last + 1)];
        let sign = if is_negative { NEGATIVE } else { 0 };
        to.extend([self.special | sign, first as u8, used.len() as u8]);
        for &digit in used {
            to.extend((digit as u32).to_le_bytes());
        }
    }

    /// Adds a sum that [`ExactSum::write`] wrote, and moves `from` behind it. `None` if there is none.
    pub fn merge(&mut self, from: &mut &[u8]) -> Option<()> {
        let (head, rest) = from.split_at_checked(3)?;
        let [special, first, count] = head.try_into().expect("three bytes");
        let (bytes, rest) = rest.split_at_checked(4 * usize::from(count))?;
        let first = usize::from(first);
        let digits = self.digits.get_mut(first..first + usize::from(count))?;
        for (digit, bytes) in digits.iter_mut().zip(bytes.chunks_exact(4)) {
            let part = i64::from(u32::from_le_bytes(bytes.try_into().expect("four bytes")));
            *digit += if special & NEGATIVE != 0 { -part } else { part };
        }
        self.special |= special & !NEGATIVE;
        self.added();
        *from = rest;
        Some(())
    }
}

/// The float nearest to `sum` over `count`; a NaN of none.
pub fn mean_of_whole(sum: i128, count: u64) -> f64 {
    if count == 0 {
        return f64::NAN;
    }
    let (whole, count) = (sum.unsigned_abs(), u128::from(count));
    let bits = |of: u128| u128::BITS - of.leading_zeros();
    // More bits of the quotient than a float has, and one that tells whether anything is left.
    let shift = (56 + bits(count)).saturating_sub(bits(whole));
    let shifted = whole << shift;
    let quotient = (shifted / count) << 1 | u128::from(!shifted.is_multiple_of(count));
    let mean = quotient as f64 / (2.0f64).powi(shift as i32 + 1);
    if sum < 0 { -mean } else { mean }
}

/// The float nearest to a number of 32-bit digits, of which bit `least` is worth 2^-1074; of two the even one.
fn nearest(digits: &[u64], least: usize, is_negative: bool) -> f64 {
    let Some(top) = digits.iter().rposition(|&digit| digit != 0) else {
        return 0.0;
    };
    let bit = |at: usize| digits[at / 32] >> (at % 32) & 1;
    let highest = 32 * top + digits[top].ilog2() as usize;
    let lowest = highest.saturating_sub(52).max(least);
    let mut whole = (lowest..=highest)
        .rev()
        .fold(0, |sum, at| sum << 1 | bit(at));
    let mut shift = lowest - least;
    if lowest > 0 && bit(lowest - 1) == 1 {
        let below = (0..lowest - 1).any(|at| bit(at) == 1);
        if below || whole & 1 == 1 {
            whole += 1;
        }
        if whole == 1 << 53 {
            (whole, shift) = (whole >> 1, shift + 1);
        }
    }
    // Of the least numbers bit 52 is not set, and they are their own bits.
    let bits = match whole >> 52 {
        0 => whole,
        _ if shift + 1 >= 0x7ff => f64::INFINITY.to_bits(),
        _ => (shift as u64 + 1) << 52 | whole & ((1 << 52) - 1),
    };
    f64::from_bits(bits | u64::from(is_negative) << 63)
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigInt;

    /// What the sum over `count` is by whole numbers of 2^-1074.
    fn nearest(values: &[f64], count: u64) -> f64 {
        let mut sum = BigInt::default();
        for value in values {
            let bits = value.to_bits();
            let (exponent, fraction) = (bits >> 52 & 0x7ff, bits & ((1 << 52) - 1));
            let whole = match exponent {
                0 => BigInt::from(fraction),
                _ => BigInt::from(fraction | 1 << 52) << (exponent - 1) as usize,
            };
            sum += if value.is_sign_negative() {
                -whole
            } else {
                whole
            };
        }
        // sum / 2^1074 = sum * 5^1074 / 10^1074.
        over(&(sum * BigInt::from(5).pow(1074)), 1074, count)
    }

    /// `sum / 10^places` over `count`, by decimal digits, which the standard library reads exactly: 40 more than those of the sum,
    /// and a last one that tells whether the quotient goes on.
    fn over(sum: &BigInt, places: usize, count: u64) -> f64 {
        let scaled = sum * BigInt::from(10).pow(40);
        let (quotient, left) = (&scaled / count, &scaled % count);
        let last = u8::from(left != BigInt::default());
        format!("{quotient}{last}e-{}", places + 41)
            .parse()
            .unwrap()
    }

    fn check(values: &[f64]) {
        let wanted = nearest(values, 1);
        let mut one = ExactSum::default();
        values.iter().for_each(|&value| one.add(value));
        assert_eq!(one.value() + 0.0, wanted + 0.0, "{values:?}");
        for count in [values.len().max(1) as u64, 3, 10, 1 << 40, u64::MAX] {
            let wanted = nearest(values, count);
            assert_eq!(one.mean(count) + 0.0, wanted + 0.0, "{values:?} {count}");
        }
        let mut backwards = ExactSum::default();
        for part in values.rchunks(3) {
            let mut some = ExactSum::default();
            part.iter().for_each(|&value| some.add(value));
            let mut bytes = Vec::new();
            some.write(&mut bytes);
            bytes.push(7);
            let mut rest = &bytes[..];
            backwards.merge(&mut rest).unwrap();
            assert_eq!(rest, [7]);
        }
        assert_eq!(
            backwards.value().to_bits(),
            one.value().to_bits(),
            "{values:?}"
        );
    }

    #[test]
    fn the_float_nearest_to_the_exact_sum() {
        check(&[]);
        check(&[0.1; 10]);
        check(&[1e308, 1e308, -1e308, -1e308, 5e-324]);
        check(&[f64::MAX, f64::MAX]);
        check(&[-f64::MAX, -f64::MAX]);
        check(&[1.0, 2f64.powi(-53)]);
        check(&[1.0, 2f64.powi(-53), 5e-324]);
        check(&[1.0 + f64::EPSILON, 2f64.powi(-53)]);
        check(&[2f64.powi(53) - 1.0, 0.5]);
        check(&[-5e-324; 3]);
        check(&[5e-324; 5]);
        check(&[1e308; 3]);
        check(&[f64::MAX; 7]);
        check(&[2.2e-308, -1.1e-308]);
        let mut state = 20_261_122u64;
        for _ in 0..300 {
            let mut values = Vec::new();
            for _ in 0..state % 40 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let value = f64::from_bits(state ^ state >> 32);
                if value.is_finite() {
                    values.push(value);
                }
            }
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1)
                >> 1;
            check(&values);
        }
    }

    #[test]
    fn what_is_no_number() {
        let sum = |values: &[f64]| {
            let mut sum = ExactSum::default();
            values.iter().for_each(|&value| sum.add(value));
            sum.value()
        };
        assert_eq!(sum(&[1.0, f64::INFINITY]), f64::INFINITY);
        assert_eq!(sum(&[f64::NEG_INFINITY, 1.0]), f64::NEG_INFINITY);
        assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
        assert!(sum(&[f64::NAN, 1.0]).is_nan());
    }

    #[test]
    fn cut_off_bytes_are_no_sum() {
        let mut bytes = Vec::new();
        let mut sum = ExactSum::default();
        sum.add(1.5);
        sum.write(&mut bytes);
        for end in 0..bytes.len() {
            assert!(ExactSum::default().merge(&mut &bytes[..end]).is_none());
        }
        assert!(
            ExactSum::default()
                .merge(&mut &[0, 70, 1, 0, 0, 0, 0][..])
                .is_none()
        );
    }

    /// Held against decimal digits, which the standard library reads exactly.
    #[test]
    fn the_float_nearest_to_the_mean_of_whole_numbers() {
        let mut state = 20_261_126u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state ^ state >> 29
        };
        for round in 0..20_000 {
            let count = (random() >> (random() % 64)).max(1);
            let sum = (i128::from(random() as i64) * i128::from(random() >> 1)) >> (random() % 127);
            let wanted = over(&BigInt::from(sum), 0, count);
            assert_eq!(
                mean_of_whole(sum, count),
                wanted,
                "{round}: {sum} / {count}"
            );
        }
        assert_eq!(
            mean_of_whole(3 * ((1 << 53) + 1), 3),
            9_007_199_254_740_992.0
        );
        assert_eq!(
            mean_of_whole(i128::MIN, u64::MAX),
            -9_223_372_036_854_775_808.0
        );
    }
}
