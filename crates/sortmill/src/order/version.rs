//! Versions (`-V`), in the order of gnulib's `filevercmp`, whose words follow Debian's policy for versions and add file
//! names to it: empty comes first, then `.`, `..`, other names with a leading point, all others; then the name without
//! its suffixes (`.tar.gz`) decides, then the whole name.
//!
//! Within either, runs of other bytes and runs of digits take turns. A run of digits counts by its value, so that a
//! name that ends where another has zeros is its equal. Of other bytes `~` comes before the end of the name, that
//! before digits, then letters, then all others. As bytes:
//!
//! ```text
//! 0            ~
//! 1            behind a number: the end
//! 1 .. 8       behind other bytes: a number of 0 to 7 digits; 9: of as many as the next 8 bytes say; two to a byte
//! 10 .. 61     letters
//! 62 .. 254    all others
//! ```
//!
//! A name that ends behind other bytes has the number 0 there. The whole name is encoded from where its prefix ends; a
//! last number 0 of the prefix, which may be there or not, is encoded again, because it decides now.

use super::window::Window;

const END: u8 = 1;
const NUMBER: u8 = 1;
/// Numbers of as many digits, or more, have their count in bytes of its own.
const DIGITS_MANY: usize = 8;
const LETTERS: u8 = 10;
const OTHERS: u8 = LETTERS + 52;

/// The version that the bytes of a key are.
#[inline]
pub fn encode(bytes: impl Iterator<Item = u8> + Clone, window: &mut Window<'_>) {
    let mut first = bytes.clone();
    match [first.next(), first.next(), first.next()] {
        [None, ..] => return window.push(0),
        [Some(b'.'), None, _] => return window.push(1),
        [Some(b'.'), Some(b'.'), None] => return window.push(2),
        [Some(b'.'), ..] => window.push(3),
        _ => window.push(4),
    }
    let cut = Cut::of(bytes.clone());
    encode_from(bytes.clone().take(cut.prefix), false, window);
    encode_from(bytes.skip(cut.again), cut.is_behind_number, window);
}

/// Where the suffixes begin.
struct Cut {
    prefix: usize,
    /// From where on the name is encoded again.
    again: usize,
    is_behind_number: bool,
}

impl Cut {
    /// The longest row of suffixes at the end is cut off, a point, a letter or `~`, letters, digits and `~` each; it may
    /// be all of the name.
    fn of(bytes: impl Iterator<Item = u8> + Clone) -> Self {
        enum Now {
            Outside,
            Point,
            Inside,
        }
        let mut now = Now::Outside;
        let mut prefix = 0;
        let mut count = 0;
        for (at, byte) in bytes.clone().enumerate() {
            count = at + 1;
            let may_begin = byte.is_ascii_alphabetic() || byte == b'~';
            now = match now {
                Now::Point if may_begin => Now::Inside,
                Now::Inside if may_begin || byte.is_ascii_digit() => Now::Inside,
                // The row of suffixes goes on, or does not, as the next byte says.
                Now::Inside if byte == b'.' => Now::Point,
                _ if byte == b'.' => {
                    prefix = at;
                    Now::Point
                }
                _ => {
                    prefix = at + 1;
                    Now::Outside
                }
            };
        }
        if !matches!(now, Now::Inside) {
            prefix = count;
        }
        let mut digits_from = None;
        let mut is_zero = true;
        for (at, byte) in bytes.take(prefix).enumerate() {
            match byte.is_ascii_digit() {
                true if digits_from.is_none() => (digits_from, is_zero) = (Some(at), byte == b'0'),
                true => is_zero &= byte == b'0',
                false => digits_from = None,
            }
        }
        Self {
            prefix,
            again: digits_from.filter(|_| is_zero).unwrap_or(prefix),
            is_behind_number: digits_from.is_some() && !is_zero,
        }
    }
}

/// Encodes bytes of which the first ones are `behind_number`.
fn encode_from(
    mut bytes: impl Iterator<Item = u8> + Clone,
    mut behind_number: bool,
    window: &mut Window<'_>,
) {
    while !window.is_full() {
        let here = bytes.clone();
        match bytes.next() {
            None => {
                if !behind_number {
                    window.push(NUMBER);
                }
                return window.push(END);
            }
            Some(byte) if byte.is_ascii_digit() => {
                bytes = encode_number(here, window);
                behind_number = true;
            }
            Some(byte) => {
                window.push(symbol(byte));
                behind_number = false;
            }
        }
    }
}

/// Encodes the digits that `bytes` begin with; answers what is behind them.
fn encode_number<I: Iterator<Item = u8> + Clone>(mut bytes: I, window: &mut Window<'_>) -> I {
    let all = bytes.clone().take_while(u8::is_ascii_digit);
    let all_count = all.clone().count();
    let mut digits = all.skip_while(|&digit| digit == b'0');
    let count = digits.clone().count();
    if count < DIGITS_MANY {
        window.push(NUMBER + count as u8);
    } else {
        window.push(NUMBER + DIGITS_MANY as u8);
        window.push_all(&(count as u64).to_be_bytes());
    }
    while let (false, Some(digit)) = (window.is_full(), digits.next()) {
        let next = digits.next().unwrap_or(b'0');
        window.push(10 * (digit - b'0') + (next - b'0'));
    }
    for _ in 0..all_count {
        bytes.next();
    }
    bytes
}

/// A byte that is no digit.
#[inline]
fn symbol(byte: u8) -> u8 {
    match byte {
        b'~' => 0,
        b'A'..=b'Z' => LETTERS + (byte - b'A'),
        b'a'..=b'z' => LETTERS + 26 + (byte - b'a'),
        // So many before it are no others.
        ..b'0' => OTHERS + byte,
        b':'..b'A' => OTHERS + (byte - 10),
        b'['..b'a' => OTHERS + (byte - 36),
        b'{'..b'~' => OTHERS + (byte - 62),
        // Digits do not come here.
        b'0'..=b'9' | 0x7f.. => OTHERS + (byte - 63),
    }
}
