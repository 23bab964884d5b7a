//! Text: bytes as they are, without those that do not count, small letters as capitals where that is asked.
//!
//! Something may come behind it, so it must tell where it ends: 0 ends it, and the bytes 0 and 1 become 1 1 and 1 2.
//! Then the shorter of two that begin alike comes first, whatever follows.

use super::near;
use super::window::Window;
use crate::line_keys::{Ignore, LineKey};

const END: u8 = 0;
const ESCAPE: u8 = 1;

/// Which bytes of a key count, and as what.
#[derive(Clone, Copy)]
pub struct Counting {
    ignore: Ignore,
    fold: bool,
}

impl Counting {
    /// All bytes, as what they are.
    pub const ALL: Self = Self {
        ignore: Ignore::None,
        fold: false,
    };

    /// What `key` says.
    #[inline]
    pub fn of(key: &LineKey) -> Self {
        Self {
            ignore: key.ignore,
            fold: key.fold,
        }
    }

    /// Whether all bytes count as what they are.
    #[inline]
    pub fn is_plain(self) -> bool {
        self.ignore == Ignore::None && !self.fold
    }

    /// The bytes that count.
    #[inline]
    pub fn bytes(self, part: &[u8]) -> impl Iterator<Item = u8> + Clone {
        let counts = move |byte: &u8| match self.ignore {
            Ignore::None => true,
            Ignore::NotDictionary => byte.is_ascii_alphanumeric() || super::fields::is_blank(*byte),
            Ignore::Unprintable => matches!(byte, b' '..=b'~'),
        };
        let fold = self.fold;
        let as_what = move |byte: u8| match fold {
            true => byte.to_ascii_uppercase(),
            false => byte,
        };
        part.iter().copied().filter(counts).map(as_what)
    }
}

/// The bytes of `part` that count, and their end.
#[inline]
pub fn encode(counting: Counting, part: &[u8], window: &mut Window<'_>) {
    match counting.is_plain() {
        true => encode_plain(part, window),
        false => encode_bytes(counting.bytes(part), window),
    }
}

fn encode_plain(part: &[u8], window: &mut Window<'_>) {
    // Each byte becomes one or two.
    let mut rest = &part[..part.len().min(window.wanted())];
    while let Some(at) = near::find_0_or_1(rest) {
        window.push_all(&rest[..at]);
        window.push(ESCAPE);
        window.push(rest[at] + 1);
        rest = &rest[at + 1..];
    }
    window.push_all(rest);
    window.push(END);
}

/// These bytes, and their end.
pub fn encode_bytes(bytes: impl Iterator<Item = u8>, window: &mut Window<'_>) {
    for byte in bytes {
        if window.is_full() {
            return;
        }
        if byte <= ESCAPE {
            window.push(ESCAPE);
            window.push(byte + 1);
        } else {
            window.push(byte);
        }
    }
    window.push(END);
}
