//! Texts of at most sixteen bytes as two words: to look at one or to compare two takes a few steps, and no call.

use xxhash_rust::xxh3::xxh3_64;

/// Bytes of a text that is short, at most.
pub const SHORT_BYTES: usize = 16;

/// The bytes of a text that is short, with zeros behind them, and the first ones of any other: of parts that overlap, so that
/// nothing is copied byte by byte.
#[inline(always)]
#[must_use]
pub fn short(text: &[u8]) -> [u64; 2] {
    let word = |at: usize| u64::from_le_bytes(text[at..at + 8].try_into().expect("eight bytes"));
    let half = |at: usize| u32::from_le_bytes(text[at..at + 4].try_into().expect("four bytes"));
    match text.len() {
        0 => [0, 0],
        count @ 1..=3 => {
            let byte = |at: usize| u64::from(text[at]) << (8 * at);
            [byte(0) | byte(count / 2) | byte(count - 1), 0]
        }
        count @ 4..=7 => {
            let half = |at: usize| u64::from(half(at)) << (8 * at);
            [half(0) | half(count - 4), 0]
        }
        8 => [word(0), 0],
        count @ 9..=SHORT_BYTES => [word(0), word(count - 8) >> (8 * (SHORT_BYTES - count))],
        _ => [word(0), word(8)],
    }
}

/// What [`short`] makes of `text[from..]` where that has [`SHORT_BYTES`] bytes at least and the first `count` of them, or all if
/// these are fewer, are the text: without a branch by its length, which no processor foresees.
#[inline(always)]
#[must_use]
pub fn short_within(text: &[u8], from: usize, count: usize) -> [u64; 2] {
    /// Which bits are a text's own, by its length.
    const MASKS: [u128; SHORT_BYTES + 1] = {
        let mut masks = [u128::MAX; SHORT_BYTES + 1];
        let mut count = 0;
        while count < SHORT_BYTES {
            masks[count] = (1 << (8 * count)) - 1;
            count += 1;
        }
        masks
    };
    let bytes = &text[from..from + SHORT_BYTES];
    let both = u128::from_le_bytes(bytes.try_into().expect("sixteen bytes"));
    let own = both & MASKS[count.min(SHORT_BYTES)];
    [own as u64, (own >> 64) as u64]
}

/// The bytes that [`short`] made words of, with zeros behind them.
#[inline(always)]
#[must_use]
pub fn bytes_of([first, second]: [u64; 2]) -> [u8; SHORT_BYTES] {
    (u128::from(second) << 64 | u128::from(first)).to_le_bytes()
}

/// The text of `count` bytes that [`short`] made words of.
#[inline]
pub fn unshort(words: [u64; 2], count: usize, bytes: &mut [u8; SHORT_BYTES]) -> &[u8] {
    *bytes = bytes_of(words);
    &bytes[..count]
}

/// Appends a text: one of few bytes by parts that overlap, as to call what copies any number of bytes takes longer.
#[inline(always)]
pub fn push_text(text: &[u8], to: &mut Vec<u8>) {
    match text.len() {
        // Room for the longest that is short there has to be, for a moment.
        0..=SHORT_BYTES if to.capacity() - to.len() >= SHORT_BYTES => {
            let end = to.len() + text.len();
            to.extend_from_slice(&bytes_of(short(text)));
            to.truncate(end);
        }
        17..=32 => push_ends::<16>(text, to),
        33..=64 => push_ends::<32>(text, to),
        _ => to.extend_from_slice(text),
    }
}

/// Appends a text of `PART` to twice as many bytes.
#[inline(always)]
fn push_ends<const PART: usize>(text: &[u8], to: &mut Vec<u8>) {
    let ends = text.first_chunk::<PART>().zip(text.last_chunk::<PART>());
    let (first, last) = ends.expect("it is no shorter");
    let end = to.len() + text.len();
    to.extend_from_slice(first);
    to.truncate(end - PART);
    to.extend_from_slice(last);
}

/// Appends a whole number, eight digits at a time.
#[inline]
pub fn push_number(number: u64, to: &mut Vec<u8>) {
    const EIGHT: u64 = 100_000_000;
    // As most counts are.
    if number < 10 {
        return to.push(b'0' + number as u8);
    }
    let (front, last) = (number / EIGHT, number % EIGHT);
    match front {
        0 => return push_first(last, to),
        1..EIGHT => push_first(front, to),
        _ => {
            push_first(front / EIGHT, to);
            to.extend_from_slice(&(digits(front % EIGHT) | ZEROS).to_le_bytes());
        }
    }
    to.extend_from_slice(&(digits(last) | ZEROS).to_le_bytes());
}

/// Appends a number of at most eight digits, without zeros in front of it.
#[inline(always)]
fn push_first(number: u64, to: &mut Vec<u8>) {
    const LAST: u64 = 1 << 56;
    let digits = digits(number);
    let zeros = (digits | LAST).trailing_zeros() / 8;
    let end = to.len() + 8 - zeros as usize;
    to.extend_from_slice(&((digits | ZEROS) >> (8 * zeros)).to_le_bytes());
    to.truncate(end);
}

/// The eight digits of a number, the first of them in the lowest byte: it becomes two of four digits side by side, those four of
/// two, those eight (P. Khuong, "How to print integers really fast", 2017).
#[inline(always)]
fn digits(number: u64) -> u64 {
    const HUNDREDS: u64 = 0x0000_007f_0000_007f;
    const TENS: u64 = 0x000f_000f_000f_000f;
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    // A product and a shift are the quotient of any number of so few digits.
    let hundreds = (fours * 10_486) >> 20 & HUNDREDS;
    let twos = hundreds | (fours - 100 * hundreds) << 16;
    let tens = (twos * 103) >> 10 & TENS;
    tens | (twos - 10 * tens) << 8
}

/// The number that 1 to 16 digits and nothing else are.
#[inline(always)]
#[must_use]
pub fn short_number(text: &[u8]) -> Option<u64> {
    match text.len() {
        count @ 1..=8 => eight_digits(padded(text, count)),
        count @ 9..=SHORT_BYTES => {
            let (first, last) = text.split_at(count - 8);
            let last = u64::from_le_bytes(last.try_into().expect("eight bytes"));
            let first = eight_digits(padded(first, count - 8))?;
            Some(first * 100_000_000 + eight_digits(last)?)
        }
        _ => None,
    }
}

/// At most eight digits with zeros in front of them.
#[inline(always)]
fn padded(text: &[u8], count: usize) -> u64 {
    let missing = 8 * (8 - count as u32);
    let zeros = ZEROS.checked_shr(8 * count as u32).unwrap_or(0);
    short(text)[0] << missing | zeros
}

const ZEROS: u64 = u64::from_le_bytes(*b"00000000");

/// The number that eight digits are, the first of them in the lowest byte: two, then four, then all of them become one number
/// (D. Lemire, "Quickly parsing eight digits", 2018).
#[inline(always)]
fn eight_digits(text: u64) -> Option<u64> {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let digits = text ^ ZEROS;
    // Of a digit neither that nor what is 118 more has the highest bit.
    if (digits | digits.wrapping_add(HIGH - 0x0a0a_0a0a_0a0a_0a0a)) & HIGH != 0 {
        return None;
    }
    const FOURTH: u64 = 0x0000_00ff_0000_00ff;
    let twos = digits * 10 + (digits >> 8);
    let first = (twos & FOURTH).wrapping_mul(100 + (1_000_000 << 32));
    let second = (twos >> 16 & FOURTH).wrapping_mul(1 + (10_000 << 32));
    Some(first.wrapping_add(second) >> 32)
}

/// A hash of a short text, by few steps and no branches: both halves of a product of 128 bits together depend on every bit of it
/// (Wang Yi's wyhash, 2019).
#[inline(always)]
#[must_use]
pub fn short_hash([first, second]: [u64; 2], count: usize) -> u64 {
    const TURNS: [u64; 2] = [0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db];
    let (one, other) = (first ^ TURNS[0], second ^ TURNS[1] ^ count as u64);
    let product = u128::from(one) * u128::from(other);
    let both = (product >> 64) as u64 ^ product as u64;
    // Some texts differ little in the lower bits alone.
    both ^ both >> 32
}

/// A hash of any text, which is [`short_hash`] of one that is short.
#[inline]
#[must_use]
pub fn text_hash(text: &[u8]) -> u64 {
    match text.len() {
        count @ 0..=SHORT_BYTES => short_hash(short(text), count),
        _ => xxh3_64(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_any_length_are_appended() {
        let text: Vec<u8> = (0..80).collect();
        for count in 0..=text.len() {
            let mut all = b"ab".to_vec();
            push_text(&text[..count], &mut all);
            push_text(b"c", &mut all);
            assert_eq!(all, [b"ab", &text[..count], b"c"].concat());
        }
    }

    #[test]
    fn numbers_are_what_the_standard_library_reads() {
        let mut number = 7_u64;
        for step in 0..20_000_u64 {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(step);
            let count = 1 + step as usize % 17;
            let mut text = format!("{number:020}").into_bytes().split_off(20 - count);
            let wanted =
                (count <= 16).then(|| std::str::from_utf8(&text).unwrap().parse().unwrap());
            assert_eq!(short_number(&text), wanted);
            // Any other byte at any place.
            let at = (number >> 40) as usize % count;
            text[at] = (number >> 32) as u8;
            let is_digit = text[at].is_ascii_digit() && count <= 16;
            assert_eq!(short_number(&text).is_some(), is_digit, "{text:?}");
        }
        assert_eq!(short_number(b""), None);
    }

    #[test]
    fn numbers_are_written_as_the_standard_library_does() {
        let check = |number: u64| {
            let mut text = b"x".to_vec();
            push_number(number, &mut text);
            assert_eq!(text, format!("x{number}").into_bytes());
        };
        // All of the first four digits, and every length with digits that differ, or nines, or zeros.
        (0..10_000).for_each(check);
        (0..10_000).for_each(|last| check(last * 10_000 + 9_999 - last));
        let mut number = 7_u64;
        for step in 0..20_000_u64 {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(step);
            check(number >> (step % 64));
        }
        let tens = (0..20).map(|power| 10_u64.pow(power));
        tens.for_each(|ten| [ten - 1, ten, ten + 1].into_iter().for_each(check));
        check(u64::MAX);
    }

    #[test]
    fn short_keys_come_back() {
        let text = b"abcdefghijklmnop";
        for count in 0..=SHORT_BYTES {
            assert_eq!(
                unshort(short(&text[..count]), count, &mut [9; SHORT_BYTES]),
                &text[..count]
            );
            let within = [&b"##"[..], text, b"##"].concat();
            assert_eq!(short_within(&within, 2, count), short(&text[..count]));
            // Any other byte makes other words.
            for at in 0..count {
                let mut other = text[..count].to_vec();
                other[at] = 0;
                assert_ne!(short(&other), short(&text[..count]));
            }
        }
    }
}
