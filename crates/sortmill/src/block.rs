//! Filling a block: segments of records behind a header that is written last.

use std::ops::Range;

use sortmill_io::frame::{HEADER_BYTES, Header, Packed, SEGMENT_HEADER_BYTES_MAX, Segment};
use sortmill_io::{Buffer, align_up};

use crate::batch::Batch;
use crate::key_span::KeySpan;
use crate::long::Stub;
use crate::order::Order;
use crate::spread::Spot;

/// Bytes in a file of a block with this header that is not compressed: all of it, rounded up to the alignment.
#[must_use]
pub fn disk_bytes(header: &Header) -> usize {
    stored_bytes(header, None)
}

/// The same of one that is compressed as `packed` says.
#[must_use]
pub fn stored_bytes(header: &Header, packed: Option<Packed>) -> usize {
    let payload_bytes = packed.map_or(header.payload_bytes, |packed| packed.bytes);
    align_up((HEADER_BYTES + payload_bytes as usize) as u64) as usize
}

/// A block among the temporary data on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stored {
    /// Where it lies.
    pub spot: Spot,
    /// How it is compressed, if it is.
    pub packed: Option<Packed>,
}

impl Stored {
    /// Bytes that the block with this header takes there.
    #[must_use]
    pub fn disk_bytes(&self, header: &Header) -> usize {
        stored_bytes(header, self.packed)
    }
}

/// The longest record that fits into one block of `block_bytes`; of a longer one only a stub is put.
#[must_use]
pub fn record_bytes_max(block_bytes: usize) -> usize {
    block_bytes - HEADER_BYTES - SEGMENT_HEADER_BYTES_MAX
}

/// A block that is being filled. Owns its memory until it is full.
pub struct Open {
    buffer: Buffer,
    used: usize,
    records: u32,
    chunks: Range<u64>,
    keys: Option<KeySpan>,
}

impl Open {
    /// An empty block in `buffer`.
    #[must_use]
    pub fn new(buffer: Buffer) -> Self {
        Self {
            buffer,
            used: HEADER_BYTES,
            records: 0,
            chunks: 0..0,
            keys: None,
        }
    }

    /// Puts as many of `rows` as fit into a segment of their own and says how many. With an `order` it is known what their
    /// keys lie between; of a block it is if it is of all that was put.
    pub fn put(&mut self, batch: &Batch<'_>, rows: &[u32], order: Option<&Order>) -> usize {
        let room = (self.buffer.len() - self.used).saturating_sub(SEGMENT_HEADER_BYTES_MAX);
        let (count, bytes) = batch.fit(rows, room);
        if count == 0 {
            return 0;
        }
        let before = (!self.is_empty()).then(|| self.keys.take());
        let keys = |order| KeySpan::of(order, batch, &rows[..count]);
        let keys = match before {
            None => order.map(keys),
            Some(before) => before
                .zip(order)
                .map(|(before, order)| before.joined(keys(order))),
        };
        self.put_header(Segment {
            chunk: batch.chunk,
            record_count: count as u32,
            bytes: bytes as u32,
        });
        let (from, to) = (self.used, self.used + bytes);
        crate::stage::kernel::copy_rows(batch, &rows[..count], &mut self.buffer[from..to]);
        self.used = to;
        self.records += count as u32;
        self.keys = keys;
        count
    }

    /// Puts records of one chunk that lie back to back, if they fit. Says whether they did.
    pub fn put_bytes(&mut self, chunk: u64, record_count: u32, bytes: &[u8]) -> bool {
        if self.used + SEGMENT_HEADER_BYTES_MAX + bytes.len() > self.buffer.len() {
            return false;
        }
        self.put_header(Segment {
            chunk,
            record_count,
            bytes: bytes.len() as u32,
        });
        self.buffer[self.used..self.used + bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
        self.records += record_count;
        true
    }

    /// Begins a segment, of whose keys nothing is known.
    fn put_header(&mut self, segment: Segment) {
        self.keys = None;
        let (first, behind) = (segment.chunk, segment.chunk.saturating_add(1));
        self.chunks = match self.is_empty() {
            true => first..behind,
            false => self.chunks.start.min(first)..self.chunks.end.max(behind),
        };
        self.used += segment.put(&mut self.buffer[self.used..]);
    }

    /// Whether nothing has been put yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used == HEADER_BYTES
    }

    /// Records in it so far.
    #[must_use]
    pub fn records(&self) -> u32 {
        self.records
    }

    /// What the chunks of its records lie between, if there are any.
    #[must_use]
    pub fn chunks(&self) -> Range<u64> {
        self.chunks.clone()
    }

    /// What the keys of its records lie between, if that is known.
    #[must_use]
    pub fn keys(&self) -> Option<&KeySpan> {
        self.keys.as_ref()
    }

    /// Bytes of segments in it so far.
    #[must_use]
    pub fn payload_bytes(&self) -> u32 {
        u32::try_from(self.used - HEADER_BYTES).expect("a block is below 4 GiB")
    }

    /// The memory, to be sealed and written.
    #[must_use]
    pub fn into_buffer(self) -> Buffer {
        self.buffer
    }

    /// Puts a part of a record that is longer than a frame into this, as yet empty, frame.
    pub fn put_fragment(&mut self, chunk: u64, fragment: &[u8], last: bool) {
        self.put_header(Segment {
            chunk,
            record_count: u32::from(last),
            bytes: u32::try_from(fragment.len()).expect("a fragment is shorter than a frame"),
        });
        self.buffer[self.used..self.used + fragment.len()].copy_from_slice(fragment);
        self.used += fragment.len();
        self.records += u32::from(last);
    }

    /// Puts the stub of a long record of `chunk`, if it fits. Says whether it did.
    pub fn put_stub(&mut self, chunk: u64, stub: &Stub<'_>) -> bool {
        let bytes = stub.put_bytes();
        if self.used + SEGMENT_HEADER_BYTES_MAX + bytes > self.buffer.len() {
            return false;
        }
        self.put_header(Segment {
            chunk,
            record_count: 0,
            bytes: bytes as u32,
        });
        self.used += stub.put(&mut self.buffer[self.used..]);
        self.records += 1;
        true
    }
}
