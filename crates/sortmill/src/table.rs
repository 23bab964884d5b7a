//! The partition table, as data: which slot a record falls into, and which partition owns the slot.
//!
//! A range table is a sorted row of boundaries; slot i holds what is not below boundary i - 1 and below
//! boundary i. A boundary is a key and a chunk: of records with just that key, those from earlier chunks
//! lie below it, so that one key on half of all records still makes several partitions, and the output
//! is the same for any boundaries. Where equal keys must meet, every boundary's chunk is 0. A hash table
//! stands beside it for jobs that want groups, not order. Slots and partition numbers are apart, because
//! a slot that outgrows its share is divided while records arrive.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::order::Order;

/// Where one slot ends and the next begins.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Boundary {
    /// Key bytes, as `Order::key_into` makes them; any bytes will do.
    pub key: Vec<u8>,
    /// Records with this key from chunks below this one lie below the boundary.
    pub chunk: u64,
}

/// The keys that cut the key space into `count` even stretches, whatever the keys are: of 64 bits, without the
/// zeros at their ends.
#[must_use]
pub fn uniform_keys(count: u64) -> Vec<Vec<u8>> {
    let keys = (1..count).map(|cut| {
        let key = (u128::from(cut) << 64) / u128::from(count);
        let mut key = (key as u64).to_be_bytes().to_vec();
        let zeros = key.iter().rev().take_while(|&&byte| byte == 0).count();
        key.truncate(key.len() - zeros);
        key
    });
    keys.collect()
}

/// Boundaries and owners. Immutable: a change makes a new table.
#[derive(Clone, Debug)]
pub struct Table {
    kind: Kind,
    owners: Vec<u32>,
}

/// An owner with this bit is another node, whatever it makes of the slot.
const FAR: u32 = 1 << 31;

/// The node that an owner is, if it is no partition of this one.
#[must_use]
pub fn node_of(owner: u32) -> Option<u32> {
    (owner & FAR != 0).then_some(owner & !FAR)
}

#[derive(Clone, Debug)]
enum Kind {
    Range {
        boundaries: Vec<Boundary>,
        /// How many slots there are if boundaries are those of [`uniform_keys`], whose place in a row is reckoned and not looked for.
        uniform: Option<u64>,
        /// Words with which all boundaries begin, and no key is over: what begins otherwise lies below or above all of them.
        alike: Vec<u64>,
        /// The next word of each boundary.
        words: Vec<u64>,
        /// For each part of the words from the first to the last, of which there are as many as bits of a word are told apart, how
        /// many boundaries lie below it.
        below: Vec<u32>,
        /// By which a word is shifted behind the first one to tell its part.
        shift: u32,
        /// For each boundary, behind which one the boundaries with its key end: of a hot key there are many.
        same_until: Vec<u32>,
        /// Bytes of the longest boundary.
        key_bytes_max: usize,
    },
    Hash {
        seed: u64,
    },
    /// Slots are not of keys at all.
    Dealt,
}

/// Of so many bits of a word a look into a row tells its boundaries to within a few.
const TOP_BITS: u32 = 12;

/// Whether they cut the key space into even stretches, by the first word of keys alone: of a record whose word is that of a boundary
/// none is below it.
fn is_uniform(order: &Order, boundaries: &[Boundary], words: &[u64]) -> bool {
    let count = boundaries.len() as u64 + 1;
    let word = |key: &[u8]| order.word_of_key(key, 0);
    let is_plain = |boundary: &Boundary| {
        boundary.chunk == 0 && boundary.key.len() <= size_of::<u64>() && !order.is_encoded()
    };
    let uniform = (1..count).map(|cut| ((u128::from(cut) << 64) / u128::from(count)) as u64);
    boundaries.iter().all(is_plain)
        && uniform.eq(words.iter().copied())
        && boundaries
            .iter()
            .zip(words)
            .all(|(boundary, &own)| word(&boundary.key) == own)
}

/// The words with which both of two boundaries begin, and so all keys between them; none with which a key is over.
fn alike(order: &Order, first: &Boundary, last: &Boundary) -> Vec<u64> {
    let alike = (0..).map_while(|depth| {
        let [one, other] = [first, last].map(|boundary| order.word_of_key(&boundary.key, depth));
        (one == other && !order.ends_with(one, depth)).then_some(one)
    });
    alike.collect()
}

/// How many of the boundaries that are `tied` do not lie above a record of `chunk` whose key `by_key` compares with
/// theirs: with all of them at once, where they `are_one_key`.
#[inline]
fn below_in(
    tied: &[Boundary],
    are_one_key: bool,
    chunk: u64,
    by_key: impl Fn(&[u8]) -> Ordering,
) -> usize {
    let by_chunk = |boundary: &Boundary| chunk.cmp(&boundary.chunk);
    if !are_one_key {
        return tied
            .partition_point(|boundary| by_key(&boundary.key).then(by_chunk(boundary)).is_ge());
    }
    match by_key(&tied[0].key) {
        Ordering::Less => 0,
        Ordering::Equal => tied.partition_point(|boundary| by_chunk(boundary).is_ge()),
        Ordering::Greater => tied.len(),
    }
}

impl Table {
    /// A range table over sorted, distinct boundaries; partition i owns slot i.
    ///
    /// # Panics
    /// When the boundaries are not in order: our own bug.
    #[must_use]
    pub fn range(order: &Order, boundaries: Vec<Boundary>) -> Self {
        let owners = (0..=u32::try_from(boundaries.len()).expect("few boundaries")).collect();
        Self::with_owners(order, boundaries, owners)
    }

    /// The table of node `node`: `between` are the boundaries between nodes, `inside` those between its own
    /// partitions. Every other node owns one slot, whatever it makes of it; a node that `between` leaves nothing
    /// owns none.
    ///
    /// # Panics
    /// When the boundaries are not in order: our own bug.
    #[must_use]
    pub fn of_node(order: &Order, node: u32, between: &[Boundary], inside: Vec<Boundary>) -> Self {
        let node_count = u32::try_from(between.len() + 1).expect("few nodes");
        let mut boundaries = between.to_vec();
        let mut owners: Vec<u32> = (0..node_count).map(|other| FAR | other).collect();
        if node < node_count {
            let own = 0..=u32::try_from(inside.len()).expect("few boundaries");
            owners.splice(node as usize..=node as usize, own);
            boundaries.splice(node as usize..node as usize, inside);
        }
        Self::with_owners(order, boundaries, owners)
    }

    /// A hash table with `count` slots; partition i owns slot i.
    #[must_use]
    pub fn hash(count: u32, seed: u64) -> Self {
        assert!(count > 0);
        Self {
            kind: Kind::Hash { seed },
            owners: (0..count).collect(),
        }
    }

    /// A table of `count` slots to which records are dealt by where they lie; partition i owns slot i.
    #[must_use]
    pub fn dealt(count: u32) -> Self {
        assert!(count > 0);
        Self {
            kind: Kind::Dealt,
            owners: (0..count).collect(),
        }
    }

    fn with_owners(order: &Order, boundaries: Vec<Boundary>, owners: Vec<u32>) -> Self {
        assert!(boundaries.is_sorted_by(|a, b| a < b), "boundaries in order");
        let alike = match (boundaries.first(), boundaries.last()) {
            // Of keys that are made anew for each word that is looked at, none.
            (Some(first), Some(last)) if !order.is_encoded() => alike(order, first, last),
            _ => Vec::new(),
        };
        let words: Vec<u64> = boundaries
            .iter()
            .map(|boundary| order.word_of_key(&boundary.key, alike.len()))
            .collect();
        // Words of text are alike in many of their top bits, and those of numbers and times in most.
        let (first, last) = (words.first().copied(), words.last().copied());
        let (first, last) = (first.unwrap_or(0), last.unwrap_or(0));
        let shift = (u64::BITS - (last - first).leading_zeros()).saturating_sub(TOP_BITS);
        let below = (0..=1u64 << TOP_BITS)
            .map(|top| {
                let smaller = words.partition_point(|word| (word - first) >> shift < top);
                u32::try_from(smaller).expect("few boundaries")
            })
            .collect();
        let mut same_until = Vec::with_capacity(boundaries.len());
        for same in boundaries.chunk_by(|a, b| a.key == b.key) {
            let end = same_until.len() + same.len();
            same_until.resize(end, u32::try_from(end).expect("few boundaries"));
        }
        let key_bytes_max = boundaries.iter().map(|boundary| boundary.key.len()).max();
        Self {
            kind: Kind::Range {
                uniform: is_uniform(order, &boundaries, &words).then_some(owners.len() as u64),
                boundaries,
                alike,
                words,
                below,
                shift,
                same_until,
                key_bytes_max: key_bytes_max.unwrap_or(0),
            },
            owners,
        }
    }

    /// How many slots there are.
    #[must_use]
    pub fn slot_count(&self) -> usize {
        self.owners.len()
    }

    /// How many slots belong to partitions of this node.
    #[must_use]
    pub fn partition_count(&self) -> usize {
        let owners = self.owners.iter();
        owners.filter(|owner| node_of(**owner).is_none()).count()
    }

    /// The partition that owns `slot`, or, by [`node_of`], the node.
    #[must_use]
    pub fn owner(&self, slot: usize) -> u32 {
        self.owners[slot]
    }

    /// The slot of a record of chunk `chunk` whose word 0 is `word`. `key` is scratch space.
    #[inline(always)]
    #[must_use]
    pub fn slot(
        &self,
        order: &Order,
        record: &[u8],
        word: u64,
        chunk: u64,
        key: &mut Vec<u8>,
    ) -> usize {
        // Where keys are even, a call for each record would take longer than this.
        if let &Kind::Range {
            uniform: Some(count),
            ref words,
            ..
        } = &self.kind
        {
            let product = u128::from(word) * u128::from(count);
            let (slot, behind) = ((product >> 64) as usize, product as u64);
            // Boundaries are rounded down: one may be as near as that.
            let is_near = behind > u64::MAX - count;
            let is_beyond = is_near && words.get(slot).is_some_and(|&bound| bound <= word);
            return slot + usize::from(is_beyond);
        }
        self.slot_between(order, record, word, chunk, key)
    }

    #[inline]
    fn slot_between(
        &self,
        order: &Order,
        record: &[u8],
        word: u64,
        chunk: u64,
        key: &mut Vec<u8>,
    ) -> usize {
        match &self.kind {
            Kind::Range {
                boundaries,
                uniform: _,
                alike,
                words,
                below,
                shift,
                same_until,
                key_bytes_max,
            } => {
                let mut word = word;
                for (depth, alike) in alike.iter().enumerate() {
                    match word.cmp(alike) {
                        Ordering::Less => return 0,
                        Ordering::Equal => word = order.word(record, depth + 1),
                        Ordering::Greater => return boundaries.len(),
                    }
                }
                let Some(behind) = words.first().and_then(|&first| word.checked_sub(first)) else {
                    return 0;
                };
                let top = (behind >> shift).min((1 << TOP_BITS) - 1) as usize;
                let (from, to) = (below[top] as usize, below[top + 1] as usize);
                let near = &words[from..to];
                let lower = from + near.partition_point(|&bound| bound < word);
                if words.get(lower) != Some(&word) {
                    return lower;
                }
                let equal = words[lower..].partition_point(|&bound| bound == word);
                let tied = &boundaries[lower..lower + equal];
                let are_one_key = same_until[lower] as usize >= lower + equal;
                lower
                    + if order.is_all_of_key(word, alike.len()) {
                        below_in(tied, true, chunk, |_| Ordering::Equal)
                    } else if order.is_encoded() {
                        // Once, not for each boundary that it is compared with.
                        key.clear();
                        order.key_head_into(record, key_bytes_max + 1, key);
                        below_in(tied, are_one_key, chunk, |bound| key[..].cmp(bound))
                    } else {
                        let by_key = |bound: &[u8]| order.compare_with_key(record, bound);
                        below_in(tied, are_one_key, chunk, by_key)
                    }
            }
            Kind::Hash { seed } => {
                key.clear();
                order.key_into(record, key);
                let hash = xxh3_64_with_seed(key, *seed);
                ((u128::from(hash) * self.owners.len() as u128) >> 64) as usize
            }
            Kind::Dealt => unreachable!("a record's slot follows from where it lies"),
        }
    }

    /// The boundaries around `slot`: records in it are not below the first and below the second. `None`
    /// stands for no boundary, and for tables whose slots are not ranges.
    #[must_use]
    pub fn around(&self, slot: usize) -> (Option<&Boundary>, Option<&Boundary>) {
        match &self.kind {
            Kind::Range { boundaries, .. } => (
                slot.checked_sub(1).map(|before| &boundaries[before]),
                boundaries.get(slot),
            ),
            Kind::Hash { .. } | Kind::Dealt => (None, None),
        }
    }

    /// How many words all keys of `slot` are known to begin with, none of which is a key's last one.
    #[must_use]
    pub fn words_alike(&self, order: &Order, slot: usize) -> usize {
        match self.around(slot) {
            (Some(from), Some(to)) => alike(order, from, to).len(),
            _ => 0,
        }
    }

    /// The same table with `slot` divided at `boundary`; the halves belong to `lower` and `upper`.
    /// `None` when the boundary does not lie inside the slot, or slots are not ranges.
    #[must_use]
    pub fn divide(
        &self,
        order: &Order,
        slot: usize,
        boundary: Boundary,
        (lower, upper): (u32, u32),
    ) -> Option<Self> {
        let Kind::Range { boundaries, .. } = &self.kind else {
            return None;
        };
        let (from, to) = self.around(slot);
        if from.is_some_and(|from| *from >= boundary) || to.is_some_and(|to| *to <= boundary) {
            return None;
        }
        let mut boundaries = boundaries.clone();
        boundaries.insert(slot, boundary);
        let mut owners = self.owners.clone();
        owners[slot] = lower;
        owners.insert(slot + 1, upper);
        Some(Self::with_owners(order, boundaries, owners))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{Format, KeyPart};

    /// Records whose keys are boundaries of even stretches, or next to them, or shorter or longer, lie where boundaries are that are
    /// compared one by one.
    #[test]
    fn even_stretches_are_reckoned() {
        let fixed = Order::new(Format::Fixed(9), &[KeyPart::plain(0, 8)]).unwrap();
        let pairs = Order::new(Format::Kv, &[]).unwrap();
        for order in [&fixed, &pairs] {
            for count in [1, 2, 3, 7, 64, 100, 577, 1000, 4099] {
                let keys = uniform_keys(count);
                let boundaries = keys.iter().map(|key| Boundary {
                    key: key.clone(),
                    chunk: 0,
                });
                let table = Table::range(order, boundaries.collect());
                let is_uniform = matches!(
                    table.kind,
                    Kind::Range {
                        uniform: Some(_),
                        ..
                    }
                );
                // Words of pairs tell how long keys are as well.
                assert_eq!(is_uniform, order.format() != Format::Kv || count == 1);
                let mut words = vec![0, 1, u64::MAX];
                for key in &keys {
                    let mut eight = [0; 8];
                    eight[..key.len()].copy_from_slice(key);
                    let word = u64::from_be_bytes(eight);
                    words.extend([word.wrapping_sub(1), word, word.wrapping_add(1)]);
                }
                for (at, word) in words.into_iter().enumerate() {
                    let mut key = word.to_be_bytes().to_vec();
                    let record = match order.format() {
                        Format::Kv => {
                            if at % 3 == 1 {
                                key.push(0);
                            }
                            while at % 3 == 2 && key.last() == Some(&0) {
                                key.pop();
                            }
                            let lengths = [key.len() as u32, 0].map(u32::to_le_bytes);
                            [&lengths.concat()[..], &key].concat()
                        }
                        _ => [&key[..], b"x"].concat(),
                    };
                    let wanted = keys.partition_point(|bound| *bound <= key);
                    let word = order.word(&record, 0);
                    let found = table.slot(order, &record, word, 5, &mut Vec::new());
                    assert_eq!(found, wanted, "{count} {key:?}");
                }
            }
        }
    }
}
