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
        let decimal = word >> 1 & 1 == 1;
        Form {
            negative: word & 1 == 1,
            digits: 1 + (word >> 8) as usize % DIGITS_MAX as usize,
            fraction_digits: match decimal {
                true => 1 + (word >> 40) as usize % FRACTION_DIGITS_MAX as usize,
                false => 0,
            },
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
        let mut form = self.form(number);
        let bytes = form.bytes();
        let line = &mut out[..STORED_BYTES];
        line[0] = b'-';
        let start = usize::from(form.negative);
        let (whole, _) = line[start..]
            .split_first_chunk_mut::<24>()
            .expect("a line has room");
        digits::scatter(form.digits, &mut form.draws, whole);
        let point = start + form.digits;
        line[point] = b'.';
        let (fraction, _) = line[point + 1..]
            .split_first_chunk_mut::<8>()
            .expect("a line has room");
        digits::scatter(1, &mut form.draws, fraction);
        line[bytes - 1] = b'\n';
        bytes
    }
}
