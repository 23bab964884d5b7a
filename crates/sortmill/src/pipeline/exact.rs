//! Sums of floats that do not depend on the order in which they are added.
//!
//! In come 64-bit floats, out goes the float nearest to their exact sum. The sum is kept as one long fixed-point number of
//! 32-bit digits in 64-bit places, whose bit 0 is worth 2^-1074, the least that a float can be: adding touches three
//! digits and leaves carries for later (R. M. Neal, Fast exact summation using small and large superaccumulators, 2015).
//!
//! Numbers of about one size touch few digits, and most sums are of such: only those in a window are kept until others come.

/// Bits from 2^-1074 to 2^1023, 63 more for 2^63 summands, and a sign.
const DIGIT_COUNT: usize = 70;
/// Digits in a window: a number touches three, so there is room for some 2^64 times larger ones and 2^32 times smaller ones.
const WINDOW: usize = 6;
/// A window's carries go into so many digits above it.
const CARRIED: usize = 2;
/// So often a digit below 2^32 can be added to one before its place overflows.
const ADDS_MAX: u32 = 1 << 30;
const MASK: i64 = 0xffff_ffff;

const NAN: u8 = 1;
const INFINITE: u8 = 2;
const NEGATIVE_INFINITE: u8 = 4;
const NEGATIVE: u8 = 8;

/// An exact sum.
#[derive(Clone, Debug, Default)]
pub struct ExactSum {
    window: [i64; WINDOW],
    /// All digits, where a window would be too small: that is of no use then.
    wide: Option<Box<[i64; DIGIT_COUNT]>>,
    /// How many summands that are not 0, since carries were made last; 0 where there was none.
    adds: u32,
    /// Which digit the window begins with.
    first: u8,
    /// Which values that are no numbers were among the summands.
    special: u8,
}

/// Where in a sum a float lies that is not 0: the first of three digits, and what they are together.
fn parts(value: f64) -> (usize, u128) {
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as usize;
    let fraction = bits & ((1 << 52) - 1);
    let (whole, shift) = match exponent {
        0 => (fraction, 0),
        _ => (fraction | 1 << 52, exponent - 1),
    };
    (shift / 32, u128::from(whole) << (shift % 32))
}

/// Brings all digits but the highest, which has the sign, between 0 and 2^32.
fn carry(digits: &mut [i64]) {
    let mut carried = 0;
    if let Some((last, others)) = digits.split_last_mut() {
        for digit in others {
            let sum = *digit + carried;
            carried = sum >> 32;
            *digit = sum & MASK;
        }
        *last += carried;
    }
}

/// What a sum is without its sign: its digits from the first that is not 0 to the last, none of 0; which the first is; and whether
/// the sum is negative.
fn magnitude(digits: &mut [i64], first: usize) -> (&[i64], usize, bool) {
    carry(digits);
    let is_negative = digits.last().is_some_and(|&last| last < 0);
    if is_negative {
        digits.iter_mut().for_each(|digit| *digit = -*digit);
        carry(digits);
    }
    let is_some = |digit: &i64| *digit != 0;
    let from = digits.iter().position(is_some).unwrap_or(digits.len());
    let end = digits
        .iter()
        .rposition(is_some)
        .map_or(from, |last| last + 1);
    (&digits[from..end], first + from, is_negative)
}

impl ExactSum {
    /// Bytes that one takes besides itself when it [is wide](ExactSum::is_wide).
    pub(super) const WIDE_BYTES: usize = size_of::<[i64; DIGIT_COUNT]>();

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
        if value == 0.0 {
            return;
        }
        let (at, wide) = parts(value);
        for (place, digit) in self.room(at, 3).iter_mut().enumerate() {
            let part = (wide >> (32 * place)) as i64 & MASK;
            *digit += if value.is_sign_negative() {
                -part
            } else {
                part
            };
        }
        self.added();
    }

    /// Whether it is not wide, and is when `value` has been added.
    #[inline]
    pub(super) fn widens(&self, value: f64) -> bool {
        self.wide.is_none()
            && self.adds > 0
            && value.is_finite()
            && value != 0.0
            && self.in_window(parts(value).0, 3).is_none()
    }

    /// Whether its window was too small, or so many summands came that one would overflow.
    pub(super) fn is_wide(&self) -> bool {
        self.wide.is_some()
    }

    /// Where in the window `count` digits from `at` on lie.
    fn in_window(&self, at: usize, count: usize) -> Option<usize> {
        let from = at.checked_sub(usize::from(self.first))?;
        (from + count <= WINDOW).then_some(from)
    }

    /// The digits from `at` on, `count` of them.
    fn room(&mut self, at: usize, count: usize) -> &mut [i64] {
        if self.wide.is_none() && self.adds == 0 {
            let below = WINDOW.saturating_sub(count) / 3;
            let first = at.saturating_sub(below);
            self.first = first.min(DIGIT_COUNT - WINDOW - CARRIED) as u8;
        }
        let from = self.in_window(at, count);
        match (&mut self.wide, from) {
            (None, Some(from)) => &mut self.window[from..from + count],
            (wide, _) => {
                let (window, first) = (&self.window, usize::from(self.first));
                let wide = wide.get_or_insert_with(|| {
                    let mut wide = Box::new([0; DIGIT_COUNT]);
                    wide[first..first + WINDOW].copy_from_slice(window);
                    wide
                });
                &mut wide[at..at + count]
            }
        }
    }

    /// Counts an addition, and carries before places can overflow.
    fn added(&mut self) {
        self.adds += 1;
        if self.adds == ADDS_MAX {
            carry(self.room(0, DIGIT_COUNT));
            self.adds = 1;
        }
    }

    /// Answers what `see` makes of its [`magnitude`].
    fn with_magnitude<T>(&self, see: impl FnOnce(&[i64], usize, bool) -> T) -> T {
        let (mut few, mut all);
        let (digits, first) = match &self.wide {
            Some(wide) => {
                all = **wide;
                (&mut all[..], 0)
            }
            None => {
                few = [0; WINDOW + CARRIED];
                few[..WINDOW].copy_from_slice(&self.window);
                (&mut few[..], usize::from(self.first))
            }
        };
        let (digits, first, is_negative) = magnitude(digits, first);
        see(digits, first, is_negative)
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
        self.with_magnitude(|digits, first, is_negative| {
            if digits.is_empty() {
                return 0.0;
            }
            // Three digits of the quotient have more bits than a float. The last one that may be of use is one below the least
            // that a float can be.
            let (mut quotient, mut found, mut left) = (0u128, 0, 0u128);
            let mut lowest = (first + digits.len()) as i32;
            while found < 3 && lowest >= 0 {
                lowest -= 1;
                let at = usize::try_from(lowest - first as i32).ok();
                let digit = at.map_or(0, |at| digits[at]);
                let (more, rest) = divided(left << 32 | digit as u128, count);
                (quotient, left) = (quotient << 32 | more, rest);
                found += usize::from(quotient != 0);
            }
            let is_more = left != 0 || (first as i32) < lowest;
            nearest((quotient, 32 * lowest, is_more), is_negative)
        })
    }

    /// Appends what [`ExactSum::merge`] reads: what was no number and the sign (a byte), the first digit that is not 0 and
    /// how many there are (a byte each), the digits (4 bytes each, the lowest first).
    pub fn write(&self, to: &mut Vec<u8>) {
        self.with_magnitude(|digits, first, is_negative| {
            let sign = if is_negative { NEGATIVE } else { 0 };
            let first = if digits.is_empty() { 0 } else { first as u8 };
            to.extend([self.special | sign, first, digits.len() as u8]);
            for &digit in digits {
                to.extend((digit as u32).to_le_bytes());
            }
        });
    }

    /// Adds a sum that [`ExactSum::write`] wrote, and moves `from` behind it. `None` if there is none.
    pub fn merge(&mut self, from: &mut &[u8]) -> Option<()> {
        let (head, rest) = from.split_at_checked(3)?;
        let [special, first, count] = head.try_into().expect("three bytes");
        let (first, count) = (usize::from(first), usize::from(count));
        let (bytes, rest) = rest.split_at_checked(4 * count)?;
        if first + count > DIGIT_COUNT {
            return None;
        }
        if count > 0 {
            let digits = self.room(first, count);
            for (digit, bytes) in digits.iter_mut().zip(bytes.chunks_exact(4)) {
                let part = i64::from(u32::from_le_bytes(bytes.try_into().expect("four bytes")));
                *digit += if special & NEGATIVE != 0 { -part } else { part };
            }
            self.added();
        }
        self.special |= special & !NEGATIVE;
        *from = rest;
        Some(())
    }
}

/// The quotient and what is left.
#[inline]
fn divided(whole: u128, count: u64) -> (u128, u128) {
    match u64::try_from(whole) {
        Ok(whole) => (u128::from(whole / count), u128::from(whole % count)),
        Err(_) => (whole / u128::from(count), whole % u128::from(count)),
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

/// The float nearest to a number, of two the even one: that whose bit 0 is worth 2^(`base` - 1074), and more than it, if that `is_more`,
/// by less than this bit. It has 65 bits or more, or bit 0 is below the least that a float can be.
fn nearest((number, base, is_more): (u128, i32, bool), is_negative: bool) -> f64 {
    let sign = u64::from(is_negative) << 63;
    let Some(bits) = number.checked_ilog2() else {
        return f64::from_bits(sign);
    };
    let lowest = (base + bits as i32 - 52).max(0);
    // At least 12: more bits are there than a float has.
    let below = (lowest - base) as u32;
    let mut whole = number.checked_shr(below).unwrap_or(0) as u64;
    let mut shift = lowest;
    if number >> (below - 1) & 1 == 1 {
        let is_more = is_more || number & ((1 << (below - 1)) - 1) != 0;
        if is_more || whole & 1 == 1 {
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
    f64::from_bits(bits | sign)
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

    /// Numbers of about one size need a window alone, wherever that lies, and then others come.
    #[test]
    fn sums_in_a_window_and_beyond() {
        let mut state = 20_261_128u64;
        let mut next = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for round in 0..400 {
            let size = next(2046);
            let mut values: Vec<f64> = (0..1 + next(30))
                .map(|_| {
                    let exponent = (size + next(20)).min(2046) << 52;
                    let fraction = next(1 << 31) << 21 | next(1 << 21);
                    let sign = next(2) << 63;
                    let is_zero = next(9) == 0;
                    f64::from_bits(sign | if is_zero { 0 } else { exponent | fraction })
                })
                .collect();
            // What comes and goes leaves nothing, or little.
            let half: Vec<f64> = values.iter().map(|value| -value).collect();
            values.extend(&half[..next(half.len() as u64 + 1) as usize]);
            let mut sum = ExactSum::default();
            for &value in &values {
                assert!(!sum.widens(value), "{round}: {values:?}");
                sum.add(value);
            }
            assert!(!sum.is_wide());
            check(&values);
            for far in [f64::MAX, 5e-324, -1e-300, 1e300] {
                let expected = sum.widens(far);
                let mut other = sum.clone();
                other.add(far);
                assert_eq!(other.is_wide(), expected);
            }
            values.extend([f64::MIN_POSITIVE, -1e300]);
            check(&values);
        }
        let mut none = ExactSum::default();
        none.add(-0.0);
        assert_eq!(none.value().to_bits(), 0);
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
