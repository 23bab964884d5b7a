//! Keys that wait, one behind the other in bounded memory.

use sortmill_io::Buffer;

use crate::short::{SHORT_BYTES, short_within};

/// In front of a key: its length.
const HEAD_BYTES: usize = 2;
/// Of a short key as much is written as of the longest, because that takes no call.
const SHORT_ROW_BYTES: usize = HEAD_BYTES + SHORT_BYTES;

/// Keys in the order in which they came.
pub struct Waiting {
    rows: Buffer,
    /// Where the first key begins, and the last one ends.
    from: usize,
    end: usize,
}

impl Waiting {
    /// None, in a buffer that is touched as they come.
    #[must_use]
    pub fn new(rows: Buffer) -> Self {
        Self {
            rows,
            from: 0,
            end: 0,
        }
    }

    /// Bytes in which a key of `key_bytes`, at most 65,535, can wait.
    #[must_use]
    pub const fn bytes_of(key_bytes: usize) -> usize {
        match key_bytes {
            0..=SHORT_BYTES => SHORT_ROW_BYTES,
            _ => HEAD_BYTES + key_bytes,
        }
    }

    /// Bytes of memory that it has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rows.len()
    }

    /// Whether none wait.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.from == self.end
    }

    /// Whether all keys are there that have come since there were none.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.from == 0
    }

    /// Whether there is room for one more key of so many bytes.
    #[inline]
    #[must_use]
    pub fn has_room(&self, key_bytes: usize) -> bool {
        self.end + Self::bytes_of(key_bytes) <= self.rows.len()
    }

    /// Puts a key for which there is [room](Waiting::has_room) behind the others.
    #[inline]
    pub fn push(&mut self, key: &[u8]) {
        let row = &mut self.rows[self.end..][..HEAD_BYTES + key.len()];
        row[..HEAD_BYTES].copy_from_slice(&(key.len() as u16).to_le_bytes());
        row[HEAD_BYTES..].copy_from_slice(key);
        self.end += HEAD_BYTES + key.len();
    }

    /// The same of one of `length` bytes that is two [words](crate::short::short).
    #[inline(always)]
    pub fn push_short(&mut self, [first, second]: [u64; 2], length: usize) {
        let row = &mut self.rows[self.end..][..SHORT_ROW_BYTES];
        row[..HEAD_BYTES].copy_from_slice(&(length as u16).to_le_bytes());
        row[HEAD_BYTES..][..8].copy_from_slice(&first.to_le_bytes());
        row[HEAD_BYTES + 8..].copy_from_slice(&second.to_le_bytes());
        self.end += HEAD_BYTES + length;
    }

    /// How many bytes keys have in the mean; 0 if there are none.
    #[must_use]
    pub fn mean_bytes(&self) -> usize {
        let (mut at, mut count) = (self.from, 0);
        while let Some(head) = self.rows[at..self.end].first_chunk() {
            at += HEAD_BYTES + usize::from(u16::from_le_bytes(*head));
            count += 1;
        }
        (self.end - self.from)
            .checked_div(count)
            .map_or(0, |row| row - HEAD_BYTES)
    }

    /// The keys in their order, which stay; of short ones the [words](crate::short::short), too.
    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], [u64; 2])> {
        let mut from = self.from;
        std::iter::from_fn(move || {
            let (key, words) = self.at(from)?;
            from += HEAD_BYTES + key.len();
            Some((key, words))
        })
    }

    /// The key that begins at `from`, if one does.
    #[inline(always)]
    fn at(&self, from: usize) -> Option<(&[u8], [u64; 2])> {
        let (head, rest) = self.rows[from..self.end].split_first_chunk()?;
        let key = &rest[..usize::from(u16::from_le_bytes(*head))];
        // There was room for the longest short one.
        Some((key, short_within(&self.rows, from + HEAD_BYTES, key.len())))
    }

    /// The first key; nothing if none waits.
    #[must_use]
    pub fn first(&self) -> &[u8] {
        self.at(self.from).map_or(&[], |(key, _)| key)
    }

    /// Takes the first key, which has so many bytes.
    #[inline(always)]
    pub fn pass(&mut self, key_bytes: usize) {
        self.from += HEAD_BYTES + key_bytes;
        if self.from == self.end {
            (self.from, self.end) = (0, 0);
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use std::collections::VecDeque;

    use sortmill_io::Pool;

    use super::*;
    use crate::short::short;

    /// Takes the first key, which must be `wanted`.
    fn take(waiting: &mut Waiting, wanted: Option<Vec<u8>>) {
        let found = waiting.iter().next().expect("one waits");
        assert!(found.0.len() > SHORT_BYTES || found.1 == short(found.0));
        assert_eq!(Some(found.0), wanted.as_deref());
        assert_eq!(Some(waiting.first()), wanted.as_deref());
        waiting.pass(waiting.first().len());
    }

    #[test]
    fn keys_wait_in_their_order() {
        let mut waiting = Waiting::new(Pool::new(1, 4096).unwrap().take().unwrap());
        assert!(waiting.iter().next().is_none() && waiting.mean_bytes() == 0);
        assert!(waiting.has_room(4094) && !waiting.has_room(4095));
        let mut wanted = VecDeque::new();
        for at in 0..2000_usize {
            let key = vec![at as u8; at % 40];
            while !waiting.has_room(key.len()) {
                take(&mut waiting, wanted.pop_front());
            }
            match key.len() {
                0..=SHORT_BYTES => waiting.push_short(short(&key), key.len()),
                _ => waiting.push(&key),
            }
            wanted.push_back(key);
            let bytes: usize = wanted.iter().map(Vec::len).sum();
            assert_eq!(waiting.mean_bytes(), bytes / wanted.len());
            assert!(waiting.iter().map(|(key, _)| key).eq(wanted.iter()));
        }
        while !waiting.is_empty() {
            take(&mut waiting, wanted.pop_front());
        }
        assert!(wanted.is_empty() && waiting.has_room(4094));
    }
}
