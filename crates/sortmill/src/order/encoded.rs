//! Keys that do not lie in their records as they are: each is encoded anew for whoever wants a word of it, or a piece.
//!
//! An encoder knows how to push all of a key; what is asked of keys (words, comparisons, heads, what stands for a long
//! record) follows from that. Nothing is kept: whoever asks brings the memory. In the place of a record that is longer
//! than a block stands its key, as far as it is kept, and a byte that ends no record.

use std::cmp::Ordering;

use super::window::Window;

/// Bytes of keys that are compared at a time: few at first, because most differ early.
const FIRST_BYTES: usize = 32;
const PIECE_BYTES: usize = 1024;

/// What encodes the keys of records that end in a delimiter.
pub trait Encoded {
    /// What ends a record.
    fn delimiter(&self) -> u8;

    /// Pushes the key of a record, which comes without its end.
    fn encode(&self, record: &[u8], window: &mut Window<'_>);

    /// Puts the bytes of the record's key from byte `skip` on into `out` and says how many there are.
    #[inline]
    fn fill(&self, record: &[u8], skip: usize, out: &mut [u8]) -> usize {
        let mut window = Window::new(skip, out);
        match self.content(record) {
            Ok(content) => self.encode(content, &mut window),
            Err(key) => window.push_all(key),
        }
        window.filled()
    }

    /// The record without its end, or the key that stands for one.
    #[inline]
    fn content<'r>(&self, record: &'r [u8]) -> Result<&'r [u8], &'r [u8]> {
        let (&end, bytes) = record.split_last().expect("a record has an end");
        match end == self.delimiter() {
            true => Ok(bytes),
            false => Err(bytes),
        }
    }

    /// What stands for the record: no more than `bytes_max` of its key. Says too how many bytes the key has, or that
    /// it has more.
    fn short(&self, record: &[u8], bytes_max: usize) -> (Vec<u8>, u64) {
        let mut short = vec![0; bytes_max + 1];
        let filled = self.fill(record, 0, &mut short);
        short.truncate(filled.min(bytes_max));
        short.push(!self.delimiter());
        (short, filled as u64)
    }

    /// Compares the first `bytes_max` bytes of the keys of two records.
    fn compare_heads(&self, a: &[u8], b: &[u8], bytes_max: usize) -> Ordering {
        compare_pieces(
            |skip, out| self.fill(a, skip, out),
            |skip, out| self.fill(b, skip, out),
            bytes_max,
        )
    }

    /// Compares the record's key with a key.
    fn compare_with_key(&self, record: &[u8], key: &[u8]) -> Ordering {
        compare_pieces(
            |skip, out| self.fill(record, skip, out),
            |skip, out| {
                let rest = key.get(skip..).unwrap_or_default();
                let count = rest.len().min(out.len());
                out[..count].copy_from_slice(&rest[..count]);
                count
            },
            usize::MAX,
        )
    }

    /// Whether the record's key has `bytes` bytes or more.
    fn reaches(&self, record: &[u8], bytes: usize) -> bool {
        bytes == 0 || self.fill(record, bytes - 1, &mut [0]) == 1
    }

    /// Appends the record's key to `key`, no more than `bytes_max` of it.
    fn key_into(&self, record: &[u8], key: &mut Vec<u8>, bytes_max: usize) {
        let from = key.len();
        let mut step = FIRST_BYTES.max(record.len());
        loop {
            let have = key.len() - from;
            let wanted = step.min(bytes_max - have);
            key.resize(from + have + wanted, 0);
            let filled = self.fill(record, have, &mut key[from + have..]);
            key.truncate(from + have + filled);
            if filled < wanted || have + filled == bytes_max {
                return;
            }
            step *= 2;
        }
    }
}

/// Compares two keys that come in pieces, as far as `bytes_max` bytes: each puts the bytes from a given one on into
/// memory and says how many there are.
pub fn compare_pieces(
    a: impl Fn(usize, &mut [u8]) -> usize,
    b: impl Fn(usize, &mut [u8]) -> usize,
    bytes_max: usize,
) -> Ordering {
    if let Some(told) = compare_piece::<FIRST_BYTES>(&a, &b, 0, bytes_max) {
        return told;
    }
    let mut at = FIRST_BYTES;
    loop {
        if let Some(told) = compare_piece::<PIECE_BYTES>(&a, &b, at, bytes_max) {
            return told;
        }
        // Pieces are made anew from the beginning of the key on, so there should be few.
        at += PIECE_BYTES;
    }
}

/// The same of one piece; `None` if the next one has to tell.
#[inline]
fn compare_piece<const BYTES: usize>(
    a: &impl Fn(usize, &mut [u8]) -> usize,
    b: &impl Fn(usize, &mut [u8]) -> usize,
    at: usize,
    bytes_max: usize,
) -> Option<Ordering> {
    let (mut x, mut y) = ([0; BYTES], [0; BYTES]);
    let wanted = BYTES.min(bytes_max - at);
    let counts = (a(at, &mut x[..wanted]), b(at, &mut y[..wanted]));
    let order = x[..counts.0].cmp(&y[..counts.1]);
    let is_told = order.is_ne() || counts.0 < wanted || at + wanted == bytes_max;
    is_told.then_some(order)
}
