//! What the keys of some records lie between: kept of blocks that may be read for several ranges, so that they are read
//! only for those that they can hold something of.

use crate::batch::Batch;
use crate::order::Order;
use crate::stage::kernel::prefetch_line;
use crate::table::Boundary;

/// The least and the greatest key, as far as the first [`HEAD_BYTES`] of each tell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeySpan {
    least: Vec<u8>,
    most: Vec<u8>,
}

/// So many records ahead memory is asked for: they lie anywhere in their batch.
const AHEAD: usize = 12;
/// Keys that are alike so far are one to a span.
const HEAD_BYTES: usize = 128;

impl KeySpan {
    /// That of the records `rows` of `batch`, at least one, none of them long.
    #[must_use]
    pub fn of(order: &Order, batch: &Batch<'_>, rows: &[u32]) -> Self {
        let record = |row: u32| batch.record(row as usize);
        let with_word = |row: u32| (order.word(record(row), 0), record(row));
        let (mut least, mut most) = (with_word(rows[0]), with_word(rows[0]));
        for (at, &row) in rows.iter().enumerate().skip(1) {
            if let Some(&later) = rows.get(at + AHEAD) {
                prefetch_line(batch.bytes, batch.offsets.range(later as usize).start);
            }
            let one = with_word(row);
            let compare = |other: &(u64, &[u8])| {
                one.0
                    .cmp(&other.0)
                    .then_with(|| order.compare(one.1, other.1))
            };
            if compare(&least).is_lt() {
                least = one;
            } else if compare(&most).is_gt() {
                most = one;
            }
        }
        let [least, most] = [least, most].map(|(_, record)| {
            let mut key = Vec::new();
            order.key_head_into(record, HEAD_BYTES, &mut key);
            key
        });
        Self { least, most }
    }

    /// That of these records and others.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        Self {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }

    /// Bytes of memory that it takes, about.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        // What the allocator takes besides for each of the three.
        let beside = size_of::<Self>() + 3 * 16;
        (self.least.len() + self.most.len() + beside) as u64
    }

    /// Whether some of these records may lie between two boundaries.
    #[must_use]
    pub fn meets(&self, from: Option<&Boundary>, to: Option<&Boundary>) -> bool {
        let is_below = |from: &Boundary| {
            // A key that goes on behind its head may still reach a boundary that begins with it.
            self.most[..] < from.key[..from.key.len().min(HEAD_BYTES)]
        };
        let is_above =
            |to: &Boundary| self.least > to.key || (self.least == to.key && to.chunk == 0);
        !from.is_some_and(is_below) && !to.is_some_and(is_above)
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    fn span(least: &[u8], most: &[u8]) -> KeySpan {
        let [least, most] = [least, most].map(|key| key[..key.len().min(HEAD_BYTES)].to_vec());
        KeySpan { least, most }
    }

    fn boundary(key: &[u8], chunk: u64) -> Option<Boundary> {
        let key = key.to_vec();
        Some(Boundary { key, chunk })
    }

    #[test]
    fn what_may_lie_between_is_met() {
        let meets = |span: &KeySpan, from: Option<Boundary>, to: Option<Boundary>| {
            span.meets(from.as_ref(), to.as_ref())
        };
        let some = span(b"c", b"f");
        assert!(meets(&some, None, None));
        assert!(meets(&some, boundary(b"f", 9), None));
        assert!(!meets(&some, boundary(b"fa", 0), None));
        assert!(meets(&some, None, boundary(b"c", 1)));
        assert!(!meets(&some, None, boundary(b"c", 0)));
        assert!(!meets(&some, None, boundary(b"b", 5)));
        assert!(meets(&some, boundary(b"d", 0), boundary(b"e", 0)));
        // Of keys that are longer than what is kept nobody knows how they go on.
        let alike = [b'x'; HEAD_BYTES + 10];
        let long = span(&alike, &alike);
        let mut behind = alike.to_vec();
        behind.push(b'y');
        assert!(meets(&long, boundary(&behind, 0), None));
        assert!(meets(&long, None, boundary(&alike, 0)));
        assert!(!meets(&long, boundary(b"y", 0), None));
    }
}
