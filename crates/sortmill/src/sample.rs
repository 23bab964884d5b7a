//! Boundaries from a sample drawn from all over the input.
//!
//! Samples merge, so that several readers, or nodes, can each draw their part. With `s` keys for each of
//! `P` partitions the largest is about `1 + sqrt(2 ln P / s)` times the mean (DeWitt, Naughton and
//! Schneider 1991).

use crate::job::HeadFn;
use crate::order::Order;
use crate::table::Boundary;

/// A key longer than this is cut in the sample: a boundary need not be the key of a record.
pub const SAMPLE_KEY_BYTES_MAX: usize = 256;
/// The most keys drawn at one place of the input.
pub const KEYS_PER_PLACE: usize = 64;
/// The most keys drawn from one chunk, where chunks are looked at as they come.
pub const KEYS_PER_CHUNK: usize = 4096;

/// Keys with the chunks they came from.
#[derive(Default)]
pub struct Sample {
    keys: Vec<Boundary>,
}

impl Sample {
    /// Adds the key of a record of chunk `chunk`.
    pub fn add(&mut self, order: &Order, record: &[u8], chunk: u64) {
        let key = order.key_head(record, SAMPLE_KEY_BYTES_MAX);
        self.keys.push(Boundary { key, chunk });
    }

    /// Adds a key, cut as others are, if one was found.
    pub fn add_key(&mut self, key: Option<Boundary>) {
        self.keys.extend(key);
    }

    /// Adds another sample of the same input.
    pub fn merge(&mut self, other: Self) {
        self.keys.extend(other.keys);
    }

    /// How many keys it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether it holds no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// At most `partition_count - 1` boundaries that divide the sample evenly. With `equal_keys_meet`
    /// no boundary falls between records of equal keys.
    #[must_use]
    pub fn boundaries(&mut self, partition_count: usize, equal_keys_meet: bool) -> Vec<Boundary> {
        if equal_keys_meet {
            for key in &mut self.keys {
                key.chunk = 0;
            }
        }
        self.keys.sort_unstable();
        let count = self.keys.len();
        let mut boundaries: Vec<Boundary> = (1..partition_count)
            .filter_map(|cut| self.keys.get(cut * count / partition_count).cloned())
            .collect();
        boundaries.dedup();
        // A boundary at the smallest key of all would leave nothing below it.
        if boundaries.first() == self.keys.first() {
            boundaries.drain(..boundaries.len().min(1));
        }
        boundaries
    }

    /// The same of keys of which `head` tells the groups: none falls between records of one group, unless that has several partitions for
    /// itself and, if so said, it `goes_on` from one to the next. With each whether its group is such a one.
    #[must_use]
    pub fn boundaries_of_groups(
        &mut self,
        partition_count: usize,
        head: &HeadFn,
        goes_on: bool,
    ) -> Vec<(Boundary, bool)> {
        let mut found: Vec<(Boundary, bool)> = Vec::new();
        let mut group: Vec<u8> = Vec::new();
        for Boundary { key, .. } in self.boundaries(partition_count, true) {
            let told = &key[..head(&key)];
            let key = match found.last_mut() {
                Some((_, is_large)) if group == told => {
                    if !goes_on || key.len() == told.len() {
                        continue;
                    }
                    *is_large = true;
                    key
                }
                _ => {
                    group = told.to_vec();
                    group.clone()
                }
            };
            let is_large = key.len() > group.len();
            found.push((Boundary { key, chunk: 0 }, is_large));
        }
        // In front of all keys is nothing.
        let least = self.keys.first();
        if found.first().map(|(first, _)| first) <= least {
            found.drain(..found.len().min(1));
        }
        found
    }

    /// How many of its keys each slot between `boundaries` has.
    #[must_use]
    pub fn shares(&self, boundaries: &[Boundary]) -> Vec<u64> {
        let mut shares = vec![0; boundaries.len() + 1];
        for key in &self.keys {
            shares[boundaries.partition_point(|boundary| boundary <= key)] += 1;
        }
        shares
    }
}
