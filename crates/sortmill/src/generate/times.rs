//! Times of the years 2000 to 2031, to the second.

use super::digits;

/// What a time takes.
pub const TIME_BYTES: usize = TEMPLATE.len();

const TEMPLATE: &[u8; 20] = b"2013-04-27T18:02:51Z";

/// Writes the time that a random word makes into the first 20 bytes of `out`. No month has more than 28 days.
#[inline]
pub fn write(word: u64, out: &mut [u8]) {
    let part = |shift: u32, limit: u64| ((word >> shift & 0xFF) * limit) >> 8;
    let (time, _) = out
        .split_first_chunk_mut::<TIME_BYTES>()
        .expect("a line has room");
    *time = *TEMPLATE;
    digits::write(2000 + part(0, 32), &mut time[..4]);
    digits::write(1 + part(8, 12), &mut time[5..7]);
    digits::write(1 + part(16, 28), &mut time[8..10]);
    digits::write(part(24, 24), &mut time[11..13]);
    digits::write(part(32, 60), &mut time[14..16]);
    digits::write(part(40, 60), &mut time[17..19]);
}
