//! In no order, but equal ones together (`-R`): the MD5 of 16 random bytes and the key, then the key.
//!
//! MD5 because GNU sort uses it: with the same random bytes the order is the same.

use md5::{Digest, Md5};

use super::text::{self, Counting};
use super::window::Window;

/// The digest of what counts of `part`, and that itself.
pub fn encode(random: &[u8; 16], counting: Counting, part: &[u8], window: &mut Window<'_>) {
    let mut digest = Md5::new_with_prefix(random);
    match counting.is_plain() {
        true => digest.update(part),
        false => {
            let mut some = [0; 64];
            let mut bytes = counting.bytes(part);
            loop {
                let mut count = 0;
                for (to, byte) in some.iter_mut().zip(&mut bytes) {
                    *to = byte;
                    count += 1;
                }
                digest.update(&some[..count]);
                if count < some.len() {
                    break;
                }
            }
        }
    }
    window.push_all(&digest.finalize());
    if !window.is_full() {
        text::encode(counting, part, window);
    }
}
