//! Keys that a worker has seen lately, so that repeats are dropped before they take space in a partition.
//!
//! Only where of equal keys the first record comes out: then one with the key of an earlier one need not go any
//! further. The sorters drop every repeat that passes here. A slot tells of the last key whose hash chose it: chunk,
//! length, where its bytes lie in a ring of them, and more of the hash. Where few records are repeats it is seldom
//! looked at. The memory is a holder of the plan's.

use sortmill_io::{Buffer, Pool, Table};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::error::{Error, ErrorKind, Result};
use crate::order::Order;
use crate::plan::Lately;

/// After so many records it is judged whether looking pays.
const JUDGED_COUNT: u32 = 1 << 16;
/// It does if one in so many is a repeat; else as many times that count pass without a look.
const WORTH_ONE_IN: u32 = 16;
/// Longer keys are not kept here.
const KEY_BYTES_MAX: usize = u16::MAX as usize;

/// A hash chooses so many slots, which are one line of the cache.
pub const ROW_SLOTS: usize = 4;

/// What one worker has seen.
pub struct Repeats {
    slots: Table<u128>,
    ring: Buffer,
    /// A key that does not lie in its record as it is.
    key: Vec<u8>,
    /// Bytes that have been put into the ring, those that were written over among them.
    put: u64,
    looked: u32,
    found: u32,
    passing: u32,
}

/// A slot, unpacked: 26 bits of the hash, chunk (40), length (16), place in the ring (46).
#[derive(Clone, Copy)]
struct Slot {
    tag: u32,
    chunk: u64,
    bytes: u16,
    from: u64,
}

/// Bits of a chunk's number, and of a place in the ring.
const CHUNK_BITS: u32 = 40;
const FROM_BITS: u32 = 46;
const TAG_BITS: u32 = 128 - 16 - CHUNK_BITS - FROM_BITS;

impl Slot {
    fn unpack(packed: u128) -> Self {
        Self {
            tag: (packed >> (128 - TAG_BITS)) as u32,
            chunk: (packed >> (FROM_BITS + 16)) as u64 & ((1 << CHUNK_BITS) - 1),
            bytes: (packed >> FROM_BITS) as u16,
            from: packed as u64 & ((1 << FROM_BITS) - 1),
        }
    }

    fn pack(self) -> u128 {
        let tag = u128::from(self.tag) << (128 - TAG_BITS);
        let chunk = u128::from(self.chunk) << (FROM_BITS + 16);
        tag | chunk | u128::from(self.bytes) << FROM_BITS | u128::from(self.from)
    }
}

impl Repeats {
    /// Nothing has been seen.
    ///
    /// # Errors
    /// When there is no memory to map.
    pub fn new(plan: Lately) -> Result<Self> {
        let wrong = |error: std::io::Error| {
            Error::new(ErrorKind::Memory, "mapping memory", error.to_string())
        };
        let pool = Pool::new(1, plan.ring_bytes).map_err(wrong)?;
        Ok(Self {
            slots: Table::new(plan.slot_count).map_err(wrong)?,
            ring: pool.take().expect("a buffer of its own"),
            key: Vec::new(),
            // A slot that is all zeros tells of no key.
            put: 1,
            looked: 0,
            found: 0,
            passing: 0,
        })
    }

    /// Whether a record of chunk `chunk` has the key of one that lies before it in the input; else its key is
    /// remembered. The hash is seeded with `seed`.
    #[inline]
    pub fn is_repeat(&mut self, order: &Order, record: &[u8], chunk: u64, seed: u64) -> bool {
        if self.passing > 0 {
            self.passing -= 1;
            return false;
        }
        // A longer record would have the scratch space grow.
        if record.len() > KEY_BYTES_MAX.min(self.ring.len()) / 4 || chunk >> CHUNK_BITS > 0 {
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
        let is_repeat = key.len() <= KEY_BYTES_MAX.min(self.ring.len())
            && self.look(key, chunk, xxh3_64_with_seed(key, seed));
        self.key = made;
        self.looked += 1;
        self.found += u32::from(is_repeat);
        if self.looked == JUDGED_COUNT {
            if self.found < JUDGED_COUNT / WORTH_ONE_IN {
                self.passing = WORTH_ONE_IN * JUDGED_COUNT;
            }
            (self.looked, self.found) = (0, 0);
        }
        is_repeat
    }

    fn look(&mut self, key: &[u8], chunk: u64, hash: u64) -> bool {
        let row = hash as u32 as usize % (self.slots.len() / ROW_SLOTS) * ROW_SLOTS;
        let tag = (hash >> (64 - TAG_BITS)) as u32;
        for at in row..row + ROW_SLOTS {
            let slot = Slot::unpack(self.slots[at]);
            if slot.tag == tag && self.bytes(slot) == Some(key) {
                // A later chunk's may have come first, and this one is the first of the input.
                if slot.chunk > chunk {
                    self.slots[at] = Slot { chunk, ..slot }.pack();
                    return false;
                }
                return true;
            }
        }
        // In whose place it comes is as good as drawn.
        let at = row + self.put as usize % ROW_SLOTS;
        // In one piece: what is left at the end of the ring stays empty.
        let room = self.ring.len() as u64 - self.put % self.ring.len() as u64;
        if room < key.len() as u64 {
            self.put += room;
        }
        let from = self.put;
        let begin = (from % self.ring.len() as u64) as usize;
        self.ring[begin..begin + key.len()].copy_from_slice(key);
        self.put += key.len() as u64;
        if self.put < 1 << FROM_BITS {
            self.slots[at] = Slot {
                tag,
                chunk,
                bytes: key.len() as u16,
                from,
            }
            .pack();
        }
        false
    }

    /// The bytes of the key that a slot tells of, unless others have been written over them.
    fn bytes(&self, slot: Slot) -> Option<&[u8]> {
        let ring_bytes = self.ring.len() as u64;
        if slot.from == 0 || self.put - slot.from > ring_bytes {
            return None;
        }
        let begin = (slot.from % ring_bytes) as usize;
        Some(&self.ring[begin..begin + slot.bytes as usize])
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
        let (slot_count, ring_bytes) = (64, 4096);
        let mut repeats = Repeats::new(Lately {
            slot_count,
            ring_bytes,
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
