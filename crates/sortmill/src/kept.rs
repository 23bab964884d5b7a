//! Keys in bounded memory, each with a number: what a worker keeps of what it distributes, to count it or to know it
//! again.
//!
//! Entries lie back to back; slots tell where, by the upper half of a hash. Nothing is replaced: when there is no room,
//! other keys are not kept, until all of it is cleared.

use sortmill_io::{ALIGN_BYTES, Buffer, Pool};

use crate::short::{SHORT_BYTES, short, short_within, unshort};
use crate::stage::kernel::{prefetch, prefetch_line};

/// In front of a key: its length, and above that its number.
const HEAD_BYTES: usize = 8;
const LENGTH_BITS: u32 = 16;
/// Longer keys are not kept.
pub const KEY_BYTES_MAX: usize = (1 << LENGTH_BITS) - 1;
/// Greater numbers are none.
pub const NUMBER_MAX: u64 = (1 << (64 - LENGTH_BITS)) - 1;
/// Entries begin at multiples of it, so that a slot tells of 32 GiB of them.
const UNIT_BYTES: usize = 8;
const SLOT_BYTES: usize = 8;
/// Few keys have few slots, so that these lie close together: of memory of which a copy is no matter.
const SLOTS_MIN: usize = ALIGN_BYTES / SLOT_BYTES;
const GROWN_BYTES_MAX: usize = 2 << 20;
const GROWS_TIMES: usize = 2;

/// Keys with a number each.
pub struct Kept {
    /// The upper half of a hash and, one more, in which unit an entry begins. Some are always empty.
    slots: Buffer,
    /// So many of them for now.
    slot_count: usize,
    entries: Buffer,
    /// Bytes of entries, and how many those are.
    used: usize,
    count: usize,
}

/// The slot at which to begin to look for a key, of so many. In front of it none tells of the key, and with time no other
/// comes to: nothing is taken away but all of it at once.
#[derive(Clone, Copy, Default)]
pub struct Start {
    slot: usize,
    slot_count: usize,
}

/// What became of a key that was looked for.
pub enum Found {
    /// It is there; here its entry begins.
    There(usize),
    /// It was not there, and is now.
    Begun,
    /// It is not there, and there is no room for it.
    NoRoom,
}

/// Bytes of an entry.
fn entry_bytes(key_bytes: usize) -> usize {
    (HEAD_BYTES + key_bytes).next_multiple_of(UNIT_BYTES)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

impl Kept {
    /// Nothing, in at most `bytes` bytes, and room for keys of about `key_bytes`. `None` where that is too little, or
    /// there is no memory to map.
    #[must_use]
    pub fn new(bytes: usize, key_bytes: usize) -> Option<Self> {
        Self::several(1, bytes, key_bytes)?.pop()
    }

    /// So many that are like this, in `bytes` bytes each.
    #[must_use]
    pub fn several(count: usize, bytes: usize, key_bytes: usize) -> Option<Vec<Self>> {
        // Three of four slots are taken at most.
        let slot = SLOT_BYTES + SLOT_BYTES / 2;
        let entry = entry_bytes(key_bytes);
        let part = |bytes: usize| bytes / ALIGN_BYTES * ALIGN_BYTES;
        let wished = bytes as u128 * slot as u128 / (slot + entry) as u128;
        let slot_bytes = part(wished as usize).max(ALIGN_BYTES);
        let map = |bytes: usize| match bytes {
            0 => None,
            _ => Pool::new(count, bytes).ok(),
        };
        let slots = map(slot_bytes)?;
        let entries = map(part(bytes.saturating_sub(slot_bytes)))?;
        let kept = || {
            Some(Self {
                slots: slots.take()?,
                slot_count: match slot_bytes {
                    ..GROWN_BYTES_MAX => SLOTS_MIN,
                    _ => slot_bytes / SLOT_BYTES,
                },
                entries: entries.take()?,
                used: 0,
                count: 0,
            })
        };
        (0..count).map(|_| kept()).collect()
    }

    /// Bytes in which so many keys, of `key_bytes` in the mean, are kept for sure.
    #[must_use]
    pub fn bytes_of(count: usize, key_bytes: usize) -> usize {
        2 * count * (SLOT_BYTES + SLOT_BYTES / 2 + entry_bytes(key_bytes)) + 4 * ALIGN_BYTES
    }

    /// How many keys are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The number of the entry that begins at `at`.
    #[must_use]
    pub fn number(&self, at: usize) -> u64 {
        word(&self.entries, at) >> LENGTH_BITS
    }

    /// Gives it another one, at most [`NUMBER_MAX`].
    pub fn set_number(&mut self, at: usize, number: u64) {
        let length = word(&self.entries, at) & KEY_BYTES_MAX as u64;
        let head = number << LENGTH_BITS | length;
        self.entries[at..at + HEAD_BYTES].copy_from_slice(&head.to_le_bytes());
    }

    /// Adds to its number, where the sum is at most [`NUMBER_MAX`].
    #[inline]
    pub fn add_number(&mut self, at: usize, number: u64) {
        let head = word(&self.entries, at).wrapping_add(number << LENGTH_BITS);
        self.entries[at..at + HEAD_BYTES].copy_from_slice(&head.to_le_bytes());
    }

    /// Number and key of the entry that begins at `at`, which is 0 or where another one ends, and where it ends; `None`
    /// behind the last one.
    #[must_use]
    pub fn entry(&self, at: usize) -> Option<(u64, &[u8], usize)> {
        if at >= self.used {
            return None;
        }
        let length = word(&self.entries, at) as usize & KEY_BYTES_MAX;
        let key = &self.entries[at + HEAD_BYTES..][..length];
        Some((self.number(at), key, at + entry_bytes(length)))
    }

    /// The slot that a hash chooses, by what slots tell of it.
    #[inline]
    fn slot(&self, hash: u64) -> usize {
        (((hash >> 32) * self.slot_count as u64) >> 32) as usize
    }

    /// Where the entry begins that a slot tells of, if it tells of this hash; `None` if it is empty.
    #[inline]
    fn told(&self, slot: usize, hash: u64) -> Option<Option<usize>> {
        match word(&self.slots, slot * SLOT_BYTES) {
            0 => None,
            told if told >> 32 == hash >> 32 => Some(Some((told as u32 as usize - 1) * UNIT_BYTES)),
            _ => Some(None),
        }
    }

    /// Fetches all of it into the cache, whatever that holds.
    pub fn fetch(&self) {
        for (part, bytes) in [
            (&self.slots, self.slot_count * SLOT_BYTES),
            (&self.entries, self.used),
        ] {
            (0..bytes).step_by(64).for_each(|at| prefetch(part, at, 1));
        }
    }

    /// Asks for the slot that a hash chooses.
    #[inline(always)]
    pub fn ask_slot(&self, hash: u64) {
        prefetch_line(&self.slots, self.slot(hash) * SLOT_BYTES);
    }

    /// Asks for the entry of which a slot tells this hash, if one does. Answers where to look for the key.
    #[inline(always)]
    pub fn ask_entry(&self, hash: u64) -> Start {
        let mut slot = self.slot(hash);
        while let Some(told) = self.told(slot, hash) {
            if let Some(at) = told {
                prefetch_line(&self.entries, at);
                break;
            }
            slot = self.next(slot);
        }
        Start {
            slot,
            slot_count: self.slot_count,
        }
    }

    /// Looks for a key of at most [`KEY_BYTES_MAX`] bytes; one that is not there is kept with `number`, if there is room.
    #[inline]
    pub fn find(&mut self, hash: u64, key: &[u8], number: u64) -> Found {
        self.find_from(self.start(hash), hash, key, number)
    }

    /// The same from where [`ask_entry`](Kept::ask_entry) has answered to look.
    #[inline]
    pub fn find_from(&mut self, start: Start, hash: u64, key: &[u8], number: u64) -> Found {
        // Many are short, and a call for each takes longer than to look.
        if key.len() <= SHORT_BYTES {
            return self.find_short_from(start, hash, short(key), key.len(), number);
        }
        let found = self.look(start, hash, key.len(), |entries, at| {
            entries[at..][..key.len()] == *key
        });
        found.map_or_else(|slot| self.keep(slot, hash, key, number), Found::There)
    }

    /// The same of a [short](crate::short::short) key of `length` bytes.
    #[inline(always)]
    pub fn find_short_from(
        &mut self,
        start: Start,
        hash: u64,
        words: [u64; 2],
        length: usize,
        number: u64,
    ) -> Found {
        let found = self.look(start, hash, length, |entries, at| {
            let found = match at + SHORT_BYTES <= entries.len() {
                true => short_within(entries, at, length),
                false => short(&entries[at..][..length]),
            };
            found == words
        });
        found.map_or_else(
            |slot| {
                let mut bytes = [0; SHORT_BYTES];
                self.keep(slot, hash, unshort(words, length, &mut bytes), number)
            },
            Found::There,
        )
    }

    /// Where a key of this hash is looked for.
    #[inline(always)]
    fn start(&self, hash: u64) -> Start {
        Start {
            slot: self.slot(hash),
            slot_count: self.slot_count,
        }
    }

    /// Where the entry begins of a key of `length` bytes of which `is_same` says that it lies at a place among all entries, or the
    /// slot where it belongs.
    #[inline(always)]
    fn look(
        &self,
        start: Start,
        hash: u64,
        length: usize,
        is_same: impl Fn(&[u8], usize) -> bool,
    ) -> std::result::Result<usize, usize> {
        // With more slots keys have others.
        let mut slot = match start.slot_count == self.slot_count {
            true => start.slot,
            false => self.slot(hash),
        };
        while let Some(told) = self.told(slot, hash) {
            if let Some(at) = told
                && word(&self.entries, at) as usize & KEY_BYTES_MAX == length
                && is_same(&self.entries, at + HEAD_BYTES)
            {
                return Ok(at);
            }
            slot = self.next(slot);
        }
        Err(slot)
    }

    /// Keeps a key that is not there, if there is room, whose slot is the empty one `slot`.
    #[inline(never)]
    fn keep(&mut self, mut slot: usize, hash: u64, key: &[u8], number: u64) -> Found {
        let (at, end) = (self.used, self.used + entry_bytes(key.len()));
        if end > self.entries.len() || at / UNIT_BYTES >= u32::MAX as usize {
            return Found::NoRoom;
        }
        let slots_max = self.slots.len() / SLOT_BYTES;
        if 2 * (self.count + 1) > self.slot_count && self.slot_count < slots_max {
            self.grow();
            slot = self.empty(hash);
        }
        if 4 * (self.count + 1) > 3 * self.slot_count {
            return Found::NoRoom;
        }
        let head = number << LENGTH_BITS | key.len() as u64;
        self.entries[at..at + HEAD_BYTES].copy_from_slice(&head.to_le_bytes());
        self.entries[at + HEAD_BYTES..][..key.len()].copy_from_slice(key);
        let told = hash >> 32 << 32 | (at / UNIT_BYTES + 1) as u64;
        self.slots[slot * SLOT_BYTES..][..SLOT_BYTES].copy_from_slice(&told.to_le_bytes());
        self.used = end;
        self.count += 1;
        Found::Begun
    }

    /// The slot behind one.
    #[inline]
    fn next(&self, slot: usize) -> usize {
        if slot + 1 == self.slot_count {
            0
        } else {
            slot + 1
        }
    }

    /// The empty slot that is the first for a hash.
    fn empty(&self, hash: u64) -> usize {
        let mut slot = self.slot(hash);
        while self.told(slot, hash).is_some() {
            slot = self.next(slot);
        }
        slot
    }

    /// Spreads entries over more slots, as far as there are some.
    fn grow(&mut self) {
        let (few, _) = self.slots[..self.slot_count * SLOT_BYTES].as_chunks_mut();
        let taken: Vec<[u8; SLOT_BYTES]> = few
            .iter()
            .copied()
            .filter(|slot| *slot != [0; SLOT_BYTES])
            .collect();
        few.fill([0; SLOT_BYTES]);
        self.slot_count = (GROWS_TIMES * self.slot_count).min(self.slots.len() / SLOT_BYTES);
        for told in taken {
            let slot = self.empty(u64::from_le_bytes(told));
            self.slots[slot * SLOT_BYTES..][..SLOT_BYTES].copy_from_slice(&told);
        }
    }

    /// Keeps nothing any more.
    pub fn clear(&mut self) {
        self.slots[..self.slot_count * SLOT_BYTES].fill(0);
        (self.used, self.count) = (0, 0);
    }
}

/// How many of the keys that were looked for were found, and what follows from it.
#[derive(Default)]
pub struct Worth {
    /// Keys that came, all of them.
    passed: u64,
    all: Share,
    /// Keys of which some come always, and some are drawn.
    sample: Share,
    is_full: bool,
    /// Only the sample is looked for.
    is_sparse: bool,
}

/// How many were looked for, and found.
#[derive(Default)]
struct Share {
    looked: u64,
    found: u64,
}

/// After so many keys it is judged whether looking is worth while,
const JUDGED_COUNT: u64 = 1 << 14;
/// or so many of the sample. Only that is looked for if fewer than one in so many of it is found.
const SAMPLE_COUNT: u64 = 1 << 9;
const WORTH_ONE_IN: u64 = 16;
/// Keys the lower half of whose hashes begins with so many zeros are in it, so that what repeats after a long time shows,
const SAMPLE_BITS: u32 = 6;
/// and one in so many that come, so that what comes often shows.
const DRAWN_ONE_IN: u64 = 256;
/// When there is no room, it is judged after so many times as many keys as are kept: what repeats after as many still shows.
const JUDGED_TIMES: u64 = 4;
/// All should be cleared then if fewer than one in so many is there.
const KEPT_ONE_IN: u64 = 4;

impl Share {
    fn add(&mut self, is_found: bool) {
        self.looked += 1;
        self.found += u64::from(is_found);
    }

    fn is_below(&self, one_in: u64) -> bool {
        self.found < self.looked / one_in
    }
}

impl Worth {
    /// Whether the next key, of this hash, should be looked for.
    #[inline]
    #[must_use]
    pub fn wants(&mut self, hash: u64) -> bool {
        self.pass();
        self.wants_all() || self.is_sampled(hash)
    }

    /// Whether all keys should be, and there is no need to ask for each: one that was not asked for has to [pass](Worth::pass).
    #[inline(always)]
    #[must_use]
    pub fn wants_all(&self) -> bool {
        !self.is_sparse
    }

    /// Takes note of a key that came.
    #[inline(always)]
    pub fn pass(&mut self) {
        self.passed += 1;
    }

    #[inline]
    fn is_sampled(&self, hash: u64) -> bool {
        hash as u32 >> (u32::BITS - SAMPLE_BITS) == 0 || self.passed.is_multiple_of(DRAWN_ONE_IN)
    }

    /// Takes note of what became of a key, where `kept` are. Answers whether those are of little use, because there is no room, and few
    /// of the keys that come are there: then all should be cleared.
    #[inline]
    pub fn note(&mut self, hash: u64, found: &Found, kept: usize) -> bool {
        let is_found = matches!(found, Found::There(_));
        self.is_full |= matches!(found, Found::NoRoom);
        self.all.add(is_found);
        if self.is_sparse || self.is_sampled(hash) {
            self.sample.add(is_found);
            if self.sample.looked == SAMPLE_COUNT {
                // What finds no room cannot be found later.
                self.is_sparse = !self.is_full && self.sample.is_below(WORTH_ONE_IN);
                self.sample = Share::default();
            }
        }
        self.all.looked.is_multiple_of(JUDGED_COUNT) && self.judge(kept)
    }

    fn judge(&mut self, kept: usize) -> bool {
        if self.is_full && self.all.looked < JUDGED_TIMES * kept as u64 {
            return false;
        }
        let is_useless = self.is_full && self.all.is_below(KEPT_ONE_IN);
        (self.all, self.is_full) = (Share::default(), false);
        if is_useless {
            self.sample = Share::default();
        }
        is_useless
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    /// Looks for numbers, and clears all when that is said. Answers how many of them were there.
    fn found(numbers: impl Iterator<Item = u64>, bytes: usize) -> usize {
        let mut kept = Kept::new(bytes, 8).unwrap();
        let mut worth = Worth::default();
        let mut count = 0;
        for number in numbers {
            let key = number.to_string();
            let hash = xxh3_64(key.as_bytes());
            if !worth.wants(hash) {
                continue;
            }
            let found = kept.find(hash, key.as_bytes(), number);
            if let Found::There(at) = found {
                assert_eq!(kept.number(at), number);
                count += 1;
            }
            if worth.note(hash, &found, kept.len()) {
                kept.clear();
                assert!(kept.is_empty() && kept.entry(0).is_none());
            }
        }
        count
    }

    #[test]
    fn what_repeats_after_a_long_time_is_found() {
        // Few are looked for in the first turn of four, all of them soon after it.
        let count = found((0..4 * 200_000).map(|at| at % 200_000), 8 << 20);
        assert!(count > 380_000, "{count}");
        // Half of them fit.
        let count = found((0..10 * 50_000).map(|at| at % 50_000), 700 << 10);
        assert!((150_000..400_000).contains(&count), "{count}");
    }

    #[test]
    fn what_comes_no_more_makes_room() {
        let count = found((0..3_000_000).map(|at| at / 100), 64 << 10);
        assert!(count > 1_500_000, "{count}");
    }

    /// Where to look may have been answered before others came, and before there were more slots.
    #[test]
    fn many_are_looked_for_together() {
        for bytes in [16 << 10, 8 << 20] {
            let mut kept = Kept::new(bytes, 8).unwrap();
            let mut seen = std::collections::BTreeSet::new();
            let keys: Vec<String> = (0..60_000_u64)
                .map(|at| format!("{}{}", at * at % 9_001, "long".repeat(at as usize % 5)))
                .collect();
            for (number, together) in keys.chunks(700).enumerate() {
                let hashes: Vec<u64> = together.iter().map(|key| xxh3_64(key.as_bytes())).collect();
                hashes.iter().for_each(|&hash| kept.ask_slot(hash));
                let starts: Vec<Start> = hashes.iter().map(|&hash| kept.ask_entry(hash)).collect();
                for ((key, &hash), &start) in together.iter().zip(&hashes).zip(&starts) {
                    match kept.find_from(start, hash, key.as_bytes(), number as u64) {
                        Found::There(at) => {
                            assert!(seen.contains(key));
                            assert_eq!(kept.entry(at).unwrap().1, key.as_bytes());
                        }
                        Found::Begun => assert!(seen.insert(key)),
                        Found::NoRoom => assert!(!seen.contains(key)),
                    }
                }
            }
            assert_eq!(kept.len(), seen.len());
            let all: std::collections::BTreeSet<&String> = keys.iter().collect();
            assert_eq!(seen.len() == all.len(), bytes > 1 << 20);
        }
    }

    #[test]
    fn entries_follow_each_other() {
        let mut kept = Kept::new(1 << 20, 8).unwrap();
        let keys: Vec<String> = (0..60).map(|at| "x".repeat(at * at % 61)).collect();
        for (number, key) in (1..).zip(&keys) {
            if let Found::There(at) = kept.find(xxh3_64(key.as_bytes()), key.as_bytes(), number) {
                kept.set_number(at, number + NUMBER_MAX / 2);
            }
        }
        let (mut at, mut left) = (0, keys.clone());
        while let Some((number, key, end)) = kept.entry(at) {
            let last = keys.iter().rposition(|one| one.as_bytes() == key).unwrap() as u64 + 1;
            let first = keys.iter().position(|one| one.as_bytes() == key).unwrap() as u64 + 1;
            let wanted = if first == last {
                first
            } else {
                last + NUMBER_MAX / 2
            };
            assert_eq!(number, wanted);
            left.retain(|one| one.as_bytes() != key);
            at = end;
        }
        assert!(left.is_empty() && kept.len() < keys.len());
    }
}
