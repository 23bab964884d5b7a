//! Proof that no record was lost, doubled or altered: a keyed, order-independent sum.
//!
//! Each record adds its 64-bit hash (XXH3, keyed by the job's random number, so that no input can be made
//! to collide on purpose) to a 128-bit sum, its length to a byte count, and one to a record count. What
//! goes into a hop and what comes out of it must have the same fingerprint; fingerprints of parts add up.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Count, bytes and keyed sum of a set of records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Fingerprint {
    /// How many records.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The sum of their hashes.
    #[serde(with = "hex")]
    pub sum: u128,
}

impl Fingerprint {
    /// Adds one record under the job's `key`.
    #[inline]
    pub fn add(&mut self, record: &[u8], key: u64) {
        self.add_hashed(record.len() as u64, xxh3_64_with_seed(record, key));
    }

    /// Adds records of `size` bytes each that lie back to back.
    pub fn add_all(&mut self, records: &[u8], size: usize, key: u64) {
        match size {
            // Of so few bytes the hash is a few instructions, where their number is known beforehand.
            8 => self.add_sized::<8>(records, key),
            16 => self.add_sized::<16>(records, key),
            24 => self.add_sized::<24>(records, key),
            _ => records
                .chunks_exact(size)
                .for_each(|record| self.add(record, key)),
        }
    }

    fn add_sized<const SIZE: usize>(&mut self, records: &[u8], key: u64) {
        let (records, _) = records.as_chunks::<SIZE>();
        records.iter().for_each(|record| self.add(record, key));
    }

    /// Adds one record of `bytes` bytes, whose hash under the job's key is `hash`.
    #[inline]
    pub fn add_hashed(&mut self, bytes: u64, hash: u64) {
        self.records += 1;
        self.bytes += bytes;
        self.sum = self.sum.wrapping_add(u128::from(hash));
    }

    /// Adds `count` times a record of `bytes` bytes, whose hash under the job's key is `hash`.
    pub fn add_times(&mut self, bytes: u64, hash: u64, count: u64) {
        self.records += count;
        self.bytes += bytes * count;
        let sum = u128::from(hash).wrapping_mul(u128::from(count));
        self.sum = self.sum.wrapping_add(sum);
    }

    /// Adds all the records of another set.
    pub fn merge(&mut self, other: &Self) {
        self.records += other.records;
        self.bytes += other.bytes;
        self.sum = self.sum.wrapping_add(other.sum);
    }

    /// This set without the records of another that is a part of it.
    ///
    /// # Panics
    /// When the other set is larger: our own bug.
    #[must_use]
    pub fn without(&self, part: &Self) -> Self {
        let less = |all: u64, part: u64| all.checked_sub(part).expect("a part of the set");
        Self {
            records: less(self.records, part.records),
            bytes: less(self.bytes, part.bytes),
            sum: self.sum.wrapping_sub(part.sum),
        }
    }

    /// The same for numbers from outside: `None` if they are beyond 64 bits together.
    #[must_use]
    pub fn checked_merge(&mut self, other: &Self) -> Option<()> {
        self.records = self.records.checked_add(other.records)?;
        self.bytes = self.bytes.checked_add(other.bytes)?;
        self.sum = self.sum.wrapping_add(other.sum);
        Some(())
    }
}

/// 128-bit numbers as hexadecimal text: JSON readers lose digits of large numbers.
mod hex {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(value: &u128, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{value:032x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u128, D::Error> {
        let text = String::deserialize(from)?;
        u128::from_str_radix(&text, 16).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_one_size_add_up_as_each_by_itself() {
        let bytes: Vec<u8> = (0..4800_u32).map(|at| ((at * at) >> 5) as u8).collect();
        for size in [1, 7, 8, 16, 24, 32, 100] {
            let records = &bytes[..bytes.len() / size * size];
            let (mut each, mut all) = (Fingerprint::default(), Fingerprint::default());
            records.chunks(size).for_each(|record| each.add(record, 7));
            all.add_all(records, size, 7);
            assert_eq!(all, each, "{size}");
        }
    }
}
