//! Keys that a worker has seen, so that repeats are dropped before they take space in a partition.
//!
//! Only where of equal keys the first record comes out: then one with the key of an earlier one need not go any
//! further. The sorters drop every repeat that passes here. Keys are kept with the chunk they came from until there is no
//! room, and then until few of those that come are among them; where few repeat, few are looked for. The memory is a holder
//! of the plan's.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::error::{Error, ErrorKind, Result};
use crate::kept::{Found, KEY_BYTES_MAX, Kept, NUMBER_MAX, Worth};
use crate::order::Order;
use crate::plan::SeenKeys;

/// What one worker has seen.
pub struct Repeats {
    kept: Kept,
    worth: Worth,
    /// Bytes of memory, of which no key may take much.
    bytes: usize,
    /// A key that does not lie in its record as it is.
    key: Vec<u8>,
}

impl Repeats {
    /// Nothing has been seen.
    ///
    /// # Errors
    /// When there is no memory to map.
    pub fn new(plan: SeenKeys) -> Result<Self> {
        let wrong = || Error::new(ErrorKind::Memory, "mapping memory", "there is none");
        Ok(Self {
            kept: Kept::new(plan.bytes, plan.key_bytes).ok_or_else(wrong)?,
            worth: Worth::default(),
            bytes: plan.bytes,
            key: Vec::new(),
        })
    }

    /// Whether a record of chunk `chunk` has the key of one that lies before it in the input; else its key is
    /// remembered, if there is room. The hash is seeded with `seed`.
    #[inline]
    pub fn is_repeat(&mut self, order: &Order, record: &[u8], chunk: u64, seed: u64) -> bool {
        // A longer record would have the scratch space grow.
        if record.len() > KEY_BYTES_MAX.min(self.bytes) / 4 || chunk > NUMBER_MAX {
            return false;
        }
        let mut made = std::mem::take(&mut self.key);
        made.clear();
        let key = match order.key_from() {
            Some(_) => order.plain_key(record),
            None => {
                order.key_into(record, &mut made);
                &made
            }
        };
        let is_short = key.len() <= KEY_BYTES_MAX.min(self.bytes);
        let is_repeat = is_short && self.look(key, chunk, xxh3_64_with_seed(key, seed));
        self.key = made;
        is_repeat
    }

    fn look(&mut self, key: &[u8], chunk: u64, hash: u64) -> bool {
        if !self.worth.wants(hash) {
            return false;
        }
        let found = self.kept.find(hash, key, chunk);
        let is_repeat = match found {
            // A later chunk's may have come first, and this one is the first of the input.
            Found::There(at) if self.kept.number(at) > chunk => {
                self.kept.set_number(at, chunk);
                false
            }
            Found::There(_) => true,
            Found::Begun | Found::NoRoom => false,
        };
        if self.worth.note(hash, &found, self.kept.len()) {
            self.kept.clear();
        }
        is_repeat
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::chunks::STREAM_CHUNKS_MAX;

    /// Whatever is dropped has been seen before, at an earlier place, byte for byte; in a ring that is written over
    /// again and again, with hashes of few slots.
    #[test]
    fn only_what_was_seen_at_an_earlier_place_is_a_repeat() {
        let mut state = 1_u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) % bound
        };
        let mut repeats = Repeats::new(SeenKeys {
            bytes: 3 * 4096,
            key_bytes: 4,
        })
        .unwrap();
        let mut earliest = std::collections::HashMap::new();
        let (mut found, mut later_first) = (0, 0);
        for _ in 0..200_000 {
            // A record may lie within another one, or across two.
            let digits = "01".repeat(1 + below(40) as usize);
            let record = &[&digits.as_bytes()[below(2) as usize..], b"\n"].concat();
            // Numbers as streams have them, side by side.
            let chunk = below(50) + below(3) * STREAM_CHUNKS_MAX;
            let before = earliest.get(record).copied();
            if repeats.is_repeat(&Order::lines(), record, chunk, 7) {
                assert!(before.is_some_and(|before| before <= chunk));
                found += 1;
            } else {
                later_first += u64::from(before.is_some_and(|before| before > chunk));
                let first = earliest.entry(record.to_vec()).or_insert(chunk);
                *first = chunk.min(*first);
            }
        }
        assert!(found > 50_000 && later_first > 10, "{found} {later_first}");
    }
}
