//! Where the records of each slot came from, of units that are written before all records have come: should more come
//! late, such a unit is made again from the input.
//!
//! Of each slot and chunk the range of the input is kept in which the slot's records lie. Where the input is in order
//! there is little else in it.

use std::ops::Range;

use sortmill_io::sync::{Mutex, lock};

use crate::batch::Chunk;

/// A range of an input that holds records of a slot, from the beginning of one record to the end of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// Which input, from 0.
    pub input: usize,
    /// The chunk that its records belong to.
    pub chunk: u64,
    /// Its first byte in the input.
    pub from: u64,
    /// Behind its last one.
    pub to: u64,
}

/// The origins of all slots' records.
pub struct Origins {
    slots: Vec<Mutex<Vec<Origin>>>,
    /// Slots below this one have been written, and what comes is late.
    pub written: usize,
}

/// The same chunk is looked for among so many origins of a slot: those that other workers noted meanwhile.
const NEAR: usize = 64;

impl Origins {
    /// Of `slot_count` slots without records.
    pub fn new(slot_count: usize) -> Self {
        Self {
            slots: (0..slot_count).map(|_| Mutex::default()).collect(),
            written: 0,
        }
    }

    /// Records in `range` of the input of `chunk` go to `slot`, and perhaps others.
    pub fn note(&self, slot: usize, chunk: &Chunk, range: Range<u64>) {
        if slot < self.written {
            return;
        }
        let Range {
            start: from,
            end: to,
        } = range;
        let mut origins = lock(&self.slots[slot]);
        let mut near = origins.iter_mut().rev().take(NEAR);
        if let Some(origin) = near.find(|origin| origin.chunk == chunk.number) {
            origin.from = origin.from.min(from);
            origin.to = origin.to.max(to);
            return;
        }
        origins.push(Origin {
            input: chunk.input,
            chunk: chunk.number,
            from,
            to,
        });
    }

    /// Records of `slot` came from there, and others from elsewhere.
    pub fn put(&self, slot: usize, origin: Origin) {
        lock(&self.slots[slot]).push(origin);
    }

    /// Bytes to be read to make the slot's unit again.
    pub fn bytes(&self, slot: usize) -> u64 {
        let origins = lock(&self.slots[slot]);
        origins.iter().map(|origin| origin.to - origin.from).sum()
    }

    /// Where the slot's records came from, one range of each chunk.
    pub fn of(&self, slot: usize) -> Vec<Origin> {
        let mut origins = lock(&self.slots[slot]).clone();
        origins.sort_unstable_by_key(|origin| (origin.chunk, origin.from));
        origins.dedup_by(|later, earlier| {
            let is_same = later.chunk == earlier.chunk;
            if is_same {
                earlier.to = earlier.to.max(later.to);
            }
            is_same
        });
        origins
    }
}
