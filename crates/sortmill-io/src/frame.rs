//! What a block looks like in a temporary file and on the wire: a 64-byte header, then segments.
//!
//! `docs/formats.md` draws it. Every block names job, attempt, source node, partition and sequence, and
//! carries a CRC-32C over all that follows it, so that a block that was altered, cut off, moved or left by
//! another job is never taken for data (promise 5). What follows the header may be compressed ([`Packed`]); the CRC is of
//! the bytes as they lie there. Integers are little-endian; no length is believed before it has been checked against the
//! bytes at hand.

use crate::codec::BlockCodec;

/// Bytes of a block's header.
pub const HEADER_BYTES: usize = 64;
const MAGIC: [u8; 4] = *b"SMb2";
/// Where a header has the codec.
const CODEC_AT: usize = 44;

/// What a block says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// The job's random number.
    pub job: u64,
    /// Which attempt at the job wrote it.
    pub attempt: u32,
    /// Which node wrote it.
    pub node: u32,
    /// The partition (or, for a run, the run) it belongs to.
    pub partition: u32,
    /// Its number within the partition, from 0.
    pub sequence: u32,
    /// Records in it, those counted of which it has a stub only.
    pub record_count: u32,
    /// Bytes of segments behind the header, before they were compressed if they are.
    pub payload_bytes: u32,
}

/// How what follows a block's header is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packed {
    /// By what.
    pub codec: BlockCodec,
    /// To how many bytes.
    pub bytes: u32,
}

impl Packed {
    /// What a header has for the codec; 0 is none.
    fn number(codec: BlockCodec) -> u8 {
        match codec {
            BlockCodec::Lz4 => 1,
            BlockCodec::Zstd => 2,
            BlockCodec::Program => 3,
        }
    }

    fn codec_of(number: u8) -> Option<BlockCodec> {
        match number {
            1 => Some(BlockCodec::Lz4),
            2 => Some(BlockCodec::Zstd),
            3 => Some(BlockCodec::Program),
            _ => None,
        }
    }
}

/// Why bytes are not the block that was expected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// The magic number is missing: these bytes were never written, or overwritten.
    NotABlock,
    /// The payload is longer than what was read.
    Length,
    /// The checksum does not match.
    Checksum,
    /// A sound block, but of another job, attempt, node, partition or place.
    Stranger,
    /// The segments do not add up to the payload.
    Segments,
    /// The payload is compressed in another way than is expected, or known.
    Codec,
    /// The payload does not decompress to what it was.
    Packed,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::NotABlock => "no block was found there",
            Self::Length => "the block's length does not fit",
            Self::Checksum => "the block's checksum does not match",
            Self::Stranger => "the block belongs to another place or job",
            Self::Segments => "the block's segments do not add up",
            Self::Codec => "the block is compressed in a way that nobody expects there",
            Self::Packed => "the block does not decompress to what it was",
        })
    }
}

impl Header {
    /// Writes the header into the first [`HEADER_BYTES`] of `block`, whose payload is as it is, and seals it with the
    /// checksum over all that follows the checksum.
    ///
    /// # Panics
    /// When `block` is shorter than header and payload: our own bug.
    pub fn seal(&self, block: &mut [u8]) {
        self.seal_packed(block, None);
    }

    /// The same of a block whose payload is compressed as `packed` says.
    ///
    /// # Panics
    /// When `block` is shorter than header and compressed payload: our own bug.
    pub fn seal_packed(&self, block: &mut [u8], packed: Option<Packed>) {
        let stored_bytes = packed.map_or(self.payload_bytes, |packed| packed.bytes);
        let bytes = HEADER_BYTES + stored_bytes as usize;
        assert!(block.len() >= bytes);
        block[0..4].copy_from_slice(&MAGIC);
        block[8..16].copy_from_slice(&self.job.to_le_bytes());
        for (field, value) in [
            self.attempt,
            self.node,
            self.partition,
            self.sequence,
            self.record_count,
            self.payload_bytes,
            stored_bytes,
        ]
        .into_iter()
        .enumerate()
        {
            let at = 16 + 4 * field;
            block[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        block[CODEC_AT] = packed.map_or(0, |packed| Packed::number(packed.codec));
        block[CODEC_AT + 1..HEADER_BYTES].fill(0);
        let sum = crc32c(&block[8..bytes]);
        block[4..8].copy_from_slice(&sum.to_le_bytes());
    }

    /// Reads and checks the block at the start of `bytes`, and that it is the one `expected`, not compressed.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn open(block: &[u8], expected: &Self) -> Result<(), Damage> {
        Self::open_packed(block, expected, None)
    }

    /// The same of a block that is compressed as `packed` says.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn open_packed(
        block: &[u8],
        expected: &Self,
        packed: Option<Packed>,
    ) -> Result<(), Damage> {
        match Self::read_packed(block)? {
            (header, _) if header != *expected => Err(Damage::Stranger),
            (_, found) if found != packed => Err(Damage::Codec),
            _ => Ok(()),
        }
    }

    /// Bytes of the block that begins with `first`: header and payload, as it says itself. Nothing of that has
    /// been checked but the magic number.
    ///
    /// # Errors
    /// [`Damage::NotABlock`].
    pub fn block_bytes(first: &[u8; HEADER_BYTES]) -> Result<usize, Damage> {
        if first[0..4] != MAGIC {
            return Err(Damage::NotABlock);
        }
        let stored = first[40..44].try_into().expect("four bytes");
        Ok(HEADER_BYTES + u32::from_le_bytes(stored) as usize)
    }

    /// Reads and checks the block at the start of `bytes`, which is not compressed: what it says of itself.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(block: &[u8]) -> Result<Self, Damage> {
        match Self::read_packed(block)? {
            (header, None) => Ok(header),
            (_, Some(_)) => Err(Damage::Codec),
        }
    }

    fn read_packed(block: &[u8]) -> Result<(Self, Option<Packed>), Damage> {
        if block.len() < HEADER_BYTES || block[0..4] != MAGIC {
            return Err(Damage::NotABlock);
        }
        let word =
            |at: usize| u32::from_le_bytes(block[at..at + 4].try_into().expect("four bytes"));
        let found = Self {
            job: u64::from_le_bytes(block[8..16].try_into().expect("eight bytes")),
            attempt: word(16),
            node: word(20),
            partition: word(24),
            sequence: word(28),
            record_count: word(32),
            payload_bytes: word(36),
        };
        let (sum, stored_bytes) = (word(4), word(40));
        let bytes = HEADER_BYTES + stored_bytes as usize;
        if bytes > block.len() {
            return Err(Damage::Length);
        }
        if crc32c(&block[8..bytes]) != sum {
            return Err(Damage::Checksum);
        }
        let number = block[CODEC_AT];
        match (number, Packed::codec_of(number)) {
            (0, _) if stored_bytes == found.payload_bytes => Ok((found, None)),
            (0, _) => Err(Damage::Length),
            (_, None) => Err(Damage::Codec),
            (_, Some(codec)) => {
                let bytes = stored_bytes;
                Ok((found, Some(Packed { codec, bytes })))
            }
        }
    }
}

/// CRC-32C (Castagnoli) of `bytes`.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// The records of one chunk in one block: `varint chunk, varint record count, varint bytes`, then the
/// records. A count of 0 is the stub of one record, whose bytes lie in blocks of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Number of the chunk the records came from.
    pub chunk: u64,
    /// Whole records that end in this segment.
    pub record_count: u32,
    /// Bytes of records behind the segment's header.
    pub bytes: u32,
}

/// The longest a segment's header can be: varints of 64, 32 and 32 bits.
pub const SEGMENT_HEADER_BYTES_MAX: usize = 10 + 5 + 5;

impl Segment {
    /// Writes the segment's header to the start of `out` and says how long it is.
    pub fn put(&self, out: &mut [u8]) -> usize {
        let mut at = put_varint(self.chunk, out);
        at += put_varint(u64::from(self.record_count), &mut out[at..]);
        at + put_varint(u64::from(self.bytes), &mut out[at..])
    }

    /// Reads a segment's header at the start of `bytes`: the segment and the header's length. The
    /// segment's records lie wholly inside `bytes`.
    ///
    /// # Errors
    /// [`Damage::Segments`] when they do not.
    pub fn get(bytes: &[u8]) -> Result<(Self, usize), Damage> {
        let (chunk, a) = get_varint(bytes).ok_or(Damage::Segments)?;
        let (record_count, b) = get_varint(&bytes[a..]).ok_or(Damage::Segments)?;
        let (length, c) = get_varint(&bytes[a + b..]).ok_or(Damage::Segments)?;
        let header_bytes = a + b + c;
        let segment = Self {
            chunk,
            record_count: u32::try_from(record_count).map_err(|_| Damage::Segments)?,
            bytes: u32::try_from(length).map_err(|_| Damage::Segments)?,
        };
        if segment.bytes as usize > bytes.len() - header_bytes {
            return Err(Damage::Segments);
        }
        Ok((segment, header_bytes))
    }
}

/// No number takes more bytes.
pub const VARINT_BYTES_MAX: usize = 10;

/// Puts a number in front: seven bits a byte, lowest first, the top bit set on all but the last (LEB128). Answers how many bytes it
/// takes.
///
/// # Panics
/// If there is no room for it; for any there is in [`VARINT_BYTES_MAX`] bytes.
#[inline]
pub fn put_varint(mut value: u64, out: &mut [u8]) -> usize {
    let mut at = 0;
    while value >= 0x80 {
        out[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    out[at] = value as u8;
    at + 1
}

/// The number that `bytes` begin with, and how many it takes. `None` if it is cut off, or more than there can be.
#[inline]
#[must_use]
pub fn get_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (at, &byte) in bytes.iter().take(VARINT_BYTES_MAX).enumerate() {
        let part = u64::from(byte & 0x7f);
        value |= part.checked_shl(7 * at as u32)?;
        if at == 9 && byte > 1 {
            return None;
        }
        if byte < 0x80 {
            return Some((value, at + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header {
        job: 0x0123_4567_89ab_cdef,
        attempt: 1,
        node: 2,
        partition: 3,
        sequence: 4,
        record_count: 5,
        payload_bytes: 100,
    };

    fn block() -> Vec<u8> {
        let mut block: Vec<u8> = (0..HEADER_BYTES + 100).map(|at| at as u8).collect();
        HEADER.seal(&mut block);
        block
    }

    #[test]
    fn the_published_check_value_of_crc32c() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn a_sealed_block_opens() {
        assert_eq!(Header::open(&block(), &HEADER), Ok(()));
    }

    #[test]
    fn every_altered_bit_is_found() {
        let sound = block();
        for bit in 0..sound.len() * 8 {
            let mut altered = sound.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::open(&altered, &HEADER).is_err(), "bit {bit}");
        }
    }

    const PACKED: Packed = Packed {
        codec: BlockCodec::Zstd,
        bytes: 40,
    };

    /// The same, said to be compressed to fewer bytes.
    fn packed_block() -> Vec<u8> {
        let mut block: Vec<u8> = (0..HEADER_BYTES + 40).map(|at| at as u8).collect();
        HEADER.seal_packed(&mut block, Some(PACKED));
        block
    }

    #[test]
    fn a_packed_block_opens_as_what_it_is_only() {
        let block = packed_block();
        let open = |packed| Header::open_packed(&block, &HEADER, packed);
        assert_eq!(open(Some(PACKED)), Ok(()));
        assert_eq!(open(None), Err(Damage::Codec));
        let codec = BlockCodec::Lz4;
        assert_eq!(open(Some(Packed { codec, ..PACKED })), Err(Damage::Codec));
        let bytes = 39;
        assert_eq!(open(Some(Packed { bytes, ..PACKED })), Err(Damage::Codec));
        assert_eq!(Header::read(&block), Err(Damage::Codec));
        let first = block.first_chunk().unwrap();
        assert_eq!(Header::block_bytes(first), Ok(block.len()));
        for bit in 0..block.len() * 8 {
            let mut altered = block.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            let opened = Header::open_packed(&altered, &HEADER, Some(PACKED));
            assert!(opened.is_err(), "bit {bit}");
        }
        for bytes in 0..block.len() {
            let opened = Header::open_packed(&block[..bytes], &HEADER, Some(PACKED));
            assert!(opened.is_err(), "{bytes} bytes");
        }
    }

    /// Sound checksums over headers that make no sense, as another version might write them.
    #[test]
    fn unknown_codecs_and_two_lengths_of_plain_blocks_are_refused() {
        let resealed = |at: usize, value: u8| {
            let mut block = block();
            block[at] = value;
            let sum = crc32c(&block[8..]);
            block[4..8].copy_from_slice(&sum.to_le_bytes());
            Header::read(&block)
        };
        assert_eq!(resealed(CODEC_AT, 3), Err(Damage::Codec));
        assert_eq!(resealed(36, 99), Err(Damage::Length));
        assert_eq!(resealed(CODEC_AT, 0), Ok(HEADER));
    }

    #[test]
    fn a_sound_block_of_another_place_is_a_stranger() {
        for change in 0..6 {
            let mut other = HEADER;
            match change {
                0 => other.job += 1,
                1 => other.attempt += 1,
                2 => other.node += 1,
                3 => other.partition += 1,
                4 => other.sequence += 1,
                _ => other.record_count += 1,
            }
            assert_eq!(Header::open(&block(), &other), Err(Damage::Stranger));
        }
    }

    #[test]
    fn a_block_that_was_cut_off_does_not_open() {
        let sound = block();
        for bytes in 0..sound.len() {
            assert!(
                Header::open(&sound[..bytes], &HEADER).is_err(),
                "{bytes} bytes"
            );
        }
    }

    #[test]
    fn segments_come_back() {
        for chunk in [0, 1, 127, 128, u64::from(u32::MAX), u64::MAX] {
            for record_count in [0, 1, 300, u32::MAX] {
                let segment = Segment {
                    chunk,
                    record_count,
                    bytes: 9,
                };
                let mut bytes = vec![0; SEGMENT_HEADER_BYTES_MAX + 9];
                let header_bytes = segment.put(&mut bytes);
                bytes.truncate(header_bytes + 9);
                assert_eq!(Segment::get(&bytes), Ok((segment, header_bytes)));
                for cut in 0..bytes.len() {
                    assert_eq!(Segment::get(&bytes[..cut]), Err(Damage::Segments));
                }
            }
        }
    }

    #[test]
    fn a_varint_that_never_ends_or_overflows_is_refused() {
        assert_eq!(get_varint(&[0xff; 11]), None);
        assert_eq!(
            get_varint(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]),
            None
        );
    }
}
