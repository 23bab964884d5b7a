//! Counts as they lie in pairs: in as few bytes as they take. Most are small, and what is brought together often has little more than
//! a key.

use sortmill_io::frame::{VARINT_BYTES_MAX, get_varint, put_varint};

/// No count takes more bytes.
pub const COUNT_BYTES_MAX: usize = VARINT_BYTES_MAX;

/// Those of `count`, in `bytes`.
#[inline]
pub fn count_bytes(count: u64, bytes: &mut [u8; COUNT_BYTES_MAX]) -> &[u8] {
    let end = put_varint(count, bytes);
    &bytes[..end]
}

/// The count that `from` begins with; what is behind it stays. `None` if it is cut off, or more than there can be.
#[inline]
pub fn take_count(from: &mut &[u8]) -> Option<u64> {
    let (count, bytes) = get_varint(from)?;
    *from = &from[bytes..];
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_come_back() {
        let near = |bit: u32| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1];
        for count in (0..64).flat_map(near).chain([u64::MAX]) {
            let mut bytes = [0; COUNT_BYTES_MAX];
            let mut lies = count_bytes(count, &mut bytes).to_vec();
            assert_eq!(
                lies.len(),
                (64 - count.leading_zeros()).div_ceil(7).max(1) as usize
            );
            for short in 0..lies.len() {
                assert_eq!(take_count(&mut &lies[..short]), None);
            }
            lies.push(7);
            let mut from = &lies[..];
            assert_eq!((take_count(&mut from), from), (Some(count), &[7][..]));
        }
        // More than a word holds, and one that does not end.
        assert_eq!(take_count(&mut &[&[0xff; 9][..], &[2]].concat()[..]), None);
        assert_eq!(take_count(&mut &[0x80; 11][..]), None);
    }
}
