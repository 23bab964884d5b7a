//! Lines of one number each: half of them signed integers, half signed decimals.
//!
//! How many digits there are is drawn before the digits, so that numbers of every size are equally common
//! and a line's length is known without its number.

use super::data::{Data, Draws};
use super::digits;

/// Lines of numbers.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    seed: u64,
}

/// Of a number before its point.
const DIGITS_MAX: u64 = 18;
/// And behind it.
const FRACTION_DIGITS_MAX: u64 = 6;

/// All digits are stored at once, more than there are; the next line overwrites the excess.
const STORED_BYTES: usize = (1 + DIGITS_MAX + 1) as usize + 8;

struct Form {
    negative: bool,
    digits: usize,
    /// 0 for an integer.
    fraction_digits: usize,
    draws: Draws,
}

impl Numbers {
    /// Numbers with 1 to 18 digits, decimals with 1 to 6 more behind a point.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    fn form(&self, number: u64) -> Form {
        let mut draws = Draws::of(self.seed, number);
        let word = draws.word();
        let decimal = (word >> 1 & 1) as usize;
        Form {
            negative: word & 1 == 1,
            digits: 1 + ((u64::from((word >> 8) as u32) * DIGITS_MAX) >> 32) as usize,
            // Multiplied, since no processor foresees a branch that chance takes.
            fraction_digits: decimal * (1 + (((word >> 40) * FRACTION_DIGITS_MAX) >> 24) as usize),
            draws,
        }
    }
}

impl Form {
    fn bytes(&self) -> usize {
        let fraction = self.fraction_digits + usize::from(self.fraction_digits > 0);
        usize::from(self.negative) + self.digits + fraction + 1
    }
}

impl Data for Numbers {
    fn record_bytes_fixed(&self) -> Option<u64> {
        None
    }

    fn record_bytes_max(&self) -> usize {
        STORED_BYTES
    }

    #[inline]
    fn record_bytes(&self, number: u64) -> u64 {
        self.form(number).bytes() as u64
    }

    #[inline]
    fn write(&self, number: u64, out: &mut [u8]) -> usize {
        let form = self.form(number);
        let bytes = form.bytes();
        let line = &mut out[..STORED_BYTES];
        line[0] = b'-';
        let start = usize::from(form.negative);
        let (count, mut draws) = (form.digits, form.draws);
        let [first, second, third, last] = std::array::from_fn(|_| draws.word());
        // Eighteen digits, and two that the point or the next line overwrites.
        for (number, word) in [first, first >> 32, second, second >> 32, third]
            .into_iter()
            .enumerate()
        {
            let at = start + 4 * number;
            line[at..at + 4].copy_from_slice(&digits::four(word).to_le_bytes());
        }
        line[start] = digits::first(count, last);
        let point = start + count;
        line[point] = b'.';
        let fraction = [third >> 32, last];
        for (number, word) in fraction.into_iter().enumerate() {
            let at = point + 1 + 4 * number;
            line[at..at + 4].copy_from_slice(&digits::four(word).to_le_bytes());
        }
        line[bytes - 1] = b'\n';
        bytes
    }
}
