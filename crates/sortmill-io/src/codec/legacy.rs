//! The legacy frames of lz4 (`lz4 -l`; the LZ4 frame format, Legacy frame): compressed bytes in, what they were out.
//!
//! ```text
//!  magic | length | block | length | block | ...
//! ```
//!
//! Blocks become 8 MiB each but for the last; nothing says where the frame ends but the end of the file, or a number that
//! is too large for a length, as another frame's magic is. There is no checksum, and one that was cut off between two
//! blocks shows nothing of it.

use std::io::Read;

use super::decode::{Feed, Wrong};

/// What such a frame begins with.
pub(super) const MAGIC: &[u8] = &[0x02, 0x21, 0x4c, 0x18];

/// What a block becomes at most.
const PLAIN_BYTES: usize = 8 << 20;
/// The longest block: one of bytes that cannot be compressed.
const PACKED_BYTES_MAX: usize = PLAIN_BYTES + PLAIN_BYTES / 255 + 16;
/// Bytes of memory that reading one takes.
pub(super) const MEMORY_BYTES: u64 = (PLAIN_BYTES + PACKED_BYTES_MAX) as u64;

/// Whether what lies behind a magic may be a frame's first block, or is nothing.
pub(super) fn may_be_block(rest: &[u8]) -> bool {
    length(rest).is_none_or(|bytes| (1..=PACKED_BYTES_MAX).contains(&bytes))
}

fn length(bytes: &[u8]) -> Option<usize> {
    let bytes = bytes.first_chunk()?;
    Some(u32::from_le_bytes(*bytes) as usize)
}

/// A frame behind its magic.
pub(super) struct Legacy {
    packed: Vec<u8>,
    plain: Vec<u8>,
    /// What of `plain` has not been given out.
    left: std::ops::Range<usize>,
}

impl Legacy {
    pub(super) fn new() -> Self {
        Self {
            packed: Vec::with_capacity(PACKED_BYTES_MAX),
            plain: vec![0; PLAIN_BYTES],
            left: 0..0,
        }
    }

    /// Fills the beginning of `into`. Answers how many bytes, and whether the frame has ended.
    pub(super) fn read<R: Read>(
        &mut self,
        feed: &mut Feed<R>,
        into: &mut [u8],
    ) -> Result<(usize, bool), Wrong> {
        if self.left.is_empty() {
            let head = feed.peek(4).map_err(Wrong::Read)?;
            let bytes = match (length(head), head.is_empty()) {
                (Some(bytes), _) => bytes,
                (None, true) => return Ok((0, true)),
                (None, false) => return Err(Wrong::CutOff),
            };
            if bytes > PACKED_BYTES_MAX {
                return Ok((0, true));
            }
            feed.consume(4);
            self.decompress(feed, bytes)?;
        }
        let count = self.left.len().min(into.len());
        into[..count].copy_from_slice(&self.plain[self.left.start..][..count]);
        self.left.start += count;
        Ok((count, false))
    }

    /// The next block, of `bytes` bytes.
    fn decompress<R: Read>(&mut self, feed: &mut Feed<R>, bytes: usize) -> Result<(), Wrong> {
        self.packed.clear();
        while self.packed.len() < bytes {
            let have = feed.peek(1).map_err(Wrong::Read)?;
            if have.is_empty() {
                return Err(Wrong::CutOff);
            }
            let count = have.len().min(bytes - self.packed.len());
            self.packed.extend_from_slice(&have[..count]);
            feed.consume(count);
        }
        let made = lz4_flex::block::decompress_into(&self.packed, &mut self.plain);
        self.left = 0..made.map_err(|error| Wrong::Corrupt(error.to_string()))?;
        Ok(())
    }
}
