//! Hashes of groups: what stands in front of their keys and orders them.
//!
//! A key of eight bytes, which that of one number is, is mixed by steps that can be undone (the finalizer of A. Appleby's
//! MurmurHash3, 2011), so that its hash alone tells it and no two have the same one (`words.rs`). Others go through XXH3.

use xxhash_rust::xxh3::xxh3_64;

const FIRST: u64 = 0xff51_afd7_ed55_8ccd;
const SECOND: u64 = 0xc4ce_b9fe_1a85_ec53;

/// The hash of a key.
#[inline]
#[must_use]
pub fn group_hash(key: &[u8]) -> u64 {
    match <[u8; 8]>::try_from(key) {
        Ok(eight) => mix(u64::from_be_bytes(eight)),
        Err(_) => xxh3_64(key),
    }
}

/// A number that any other bit of `number` makes another one.
#[inline]
#[must_use]
pub fn mix(number: u64) -> u64 {
    let mut mixed = number;
    mixed = (mixed ^ mixed >> 33).wrapping_mul(FIRST);
    mixed = (mixed ^ mixed >> 33).wrapping_mul(SECOND);
    mixed ^ mixed >> 33
}

/// The number that `mixed` was made of.
#[inline]
#[must_use]
pub fn unmix(mixed: u64) -> u64 {
    const BACK: [u64; 2] = [inverse(FIRST), inverse(SECOND)];
    // A shift by more than half of the bits undoes itself.
    let mut number = mixed ^ mixed >> 33;
    number = number.wrapping_mul(BACK[1]);
    number = (number ^ number >> 33).wrapping_mul(BACK[0]);
    number ^ number >> 33
}

/// What an odd number is to be multiplied by to make 1, by Newton's steps: each doubles the bits that are right.
const fn inverse(odd: u64) -> u64 {
    let mut found = odd;
    let mut step = 0;
    while step < 6 {
        found = found.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(found)));
        step += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mixed_comes_back() {
        let mut number = 1u64;
        for one in [0, 1, u64::MAX, 1 << 63] {
            assert_eq!(unmix(mix(one)), one);
        }
        for _ in 0..1000 {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            assert_eq!(unmix(mix(number)), number);
            assert_eq!(mix(unmix(number)), number);
            assert_eq!(group_hash(&number.to_be_bytes()), mix(number));
        }
    }

    /// Small numbers one after the other fall evenly into partitions.
    #[test]
    fn what_is_alike_is_spread() {
        let mut counts = [0; 64];
        (0..64_000u64).for_each(|number| counts[(mix(number) >> 58) as usize] += 1);
        assert!(counts.iter().all(|count| (850..1150).contains(count)));
    }
}
