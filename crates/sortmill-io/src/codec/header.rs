//! What the first bytes of a compressed file say: the codec, and the memory that decompressing takes.
//!
//! Nothing is trusted but for sizes to ask for: a length from outside that is absurd makes a request that is refused.

use super::{Codec, legacy};

/// So many bytes of a file suffice to know its codec, and mostly its memory.
pub const HEADER_BYTES_MAX: usize = 4096;

/// What was seen at the beginning of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sniffed {
    /// The codec.
    pub codec: Codec,
    /// Bytes that a [`super::Decoder`] of its first member takes.
    pub memory_bytes: u64,
    /// Whether a later member may want more.
    pub may_grow: bool,
}

impl Sniffed {
    /// What is known of a member of `codec` without having seen it.
    #[must_use]
    pub fn of(codec: Codec) -> Self {
        Self {
            codec,
            memory_bytes: codec.memory_bytes(&[]),
            may_grow: codec.may_grow(),
        }
    }
}

/// What every decoder takes beside a window: its buffer, tables, and what the heap adds.
const BESIDE_BYTES: u64 = 512 << 10;
/// bzip2 of the highest level: 900 kB in words of 4 bytes, and lists.
const BZIP2_BYTES: u64 = 4 << 20;

const GZIP: &[u8] = &[0x1f, 0x8b, 8];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const LZ4: &[u8] = &[0x04, 0x22, 0x4d, 0x18];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
/// What follows `BZh` and a level: pi in the first block, its square root where there is none.
const BZIP2_BLOCKS: [&[u8]; 2] = [
    &[0x31, 0x41, 0x59, 0x26, 0x53, 0x59],
    &[0x17, 0x72, 0x45, 0x38, 0x50, 0x90],
];

/// The codec of what begins with `start`, by its magic bytes; `None` for anything else.
///
/// Frames that zstd and lz4 skip do not tell which of both it is, so what lies behind them must be seen.
#[must_use]
pub fn sniff(start: &[u8]) -> Option<Sniffed> {
    let at = usize::try_from(skipped_bytes(start)).ok()?;
    let start = start.get(at..)?;
    let found = |codec: Codec| codec.begins(start).then_some(codec);
    let codec = super::CODECS.into_iter().find_map(found)?;
    if at > 0 && !matches!(codec, Codec::Zstd | Codec::Lz4) {
        return None;
    }
    let memory_bytes = codec.memory_bytes(start);
    Some(Sniffed {
        codec,
        memory_bytes,
        may_grow: codec.may_grow(),
    })
}

/// Bytes of the frames at the start that zstd and lz4 skip, as far as they can be told: they may reach beyond what is there, and
/// then it takes more to know the codec.
#[must_use]
pub fn skipped_bytes(start: &[u8]) -> u64 {
    let mut at = 0;
    while let Some(bytes) = usize::try_from(at)
        .ok()
        .and_then(|at| skippable_bytes(start.get(at..)?))
    {
        at += bytes;
    }
    at
}

/// Bytes of the frame that `start` begins with, if it is one that zstd and lz4 skip: header and content.
pub(super) fn skippable_bytes(start: &[u8]) -> Option<u64> {
    let head = start.get(..8)?;
    let magic = u32::from_le_bytes(head[..4].try_into().expect("four bytes"));
    let bytes = u32::from_le_bytes(head[4..].try_into().expect("four bytes"));
    (magic & 0xffff_fff0 == 0x184d_2a50).then_some(8 + u64::from(bytes))
}

/// Whether a legacy frame of lz4 begins so.
pub(super) fn begins_legacy(start: &[u8]) -> bool {
    // An empty one has no block, and another frame may follow.
    let begins_another = |rest: &[u8]| {
        rest.starts_with(LZ4) || rest.starts_with(legacy::MAGIC) || skippable_bytes(rest).is_some()
    };
    let rest = start.strip_prefix(legacy::MAGIC);
    rest.is_some_and(|rest| legacy::may_be_block(rest) || begins_another(rest))
}

/// Whether a file that begins so may be one of the .lzma format, which has no magic number: its first bytes are
/// what xz takes for such (`lzma_alone`): properties, a dictionary of a usual size, and a size that is not known or below
/// 256 GiB.
#[must_use]
pub fn is_lzma(start: &[u8]) -> bool {
    let Some(head) = start.first_chunk::<13>() else {
        return false;
    };
    let dictionary = u32::from_le_bytes(head[1..5].try_into().expect("four bytes"));
    let bytes = u64::from_le_bytes(head[5..].try_into().expect("eight bytes"));
    let is_usual = dictionary == u32::MAX
        || dictionary.is_power_of_two()
        || (dictionary.is_multiple_of(3) && (dictionary / 3).is_power_of_two());
    head[0] < 9 * 5 * 5 && is_usual && (bytes == u64::MAX || bytes < 1 << 38)
}

impl Codec {
    /// Whether a member of it begins so.
    pub(super) fn begins(self, start: &[u8]) -> bool {
        match self {
            // Of the flags three bits are reserved, and a program that meets one set must give up.
            Self::Gzip => start.starts_with(GZIP) && start.get(3).is_none_or(|&f| f & 0xe0 == 0),
            Self::Zstd => start.starts_with(ZSTD),
            Self::Lz4 => start.starts_with(LZ4) || begins_legacy(start),
            Self::Bzip2 => {
                let level = start
                    .get(3)
                    .is_some_and(|level| (b'1'..=b'9').contains(level));
                let block = start.get(4..).unwrap_or_default();
                // Text may well begin with `BZh9`: only both magic numbers tell.
                start.starts_with(b"BZh")
                    && level
                    && BZIP2_BLOCKS.iter().any(|magic| block.starts_with(magic))
            }
            Self::Xz => start.starts_with(XZ),
        }
    }

    fn may_grow(self) -> bool {
        matches!(self, Self::Zstd | Self::Lz4 | Self::Xz)
    }

    /// Bytes that a decoder takes for the member that begins so.
    pub(super) fn memory_bytes(self, start: &[u8]) -> u64 {
        let beyond = match self {
            Self::Gzip => 0,
            Self::Bzip2 => BZIP2_BYTES,
            Self::Zstd => zstd_window_bytes(start).unwrap_or(8 << 20),
            Self::Lz4 => lz4_bytes(start).unwrap_or(13 << 20),
            Self::Xz => xz_dictionary_bytes(start).unwrap_or(8 << 20),
        };
        BESIDE_BYTES.saturating_add(beyond)
    }
}

/// The window of a zstd frame (RFC 8878, 3.1.1.1).
fn zstd_window_bytes(start: &[u8]) -> Option<u64> {
    let descriptor = *start.get(4)?;
    if descriptor & 0x20 == 0 {
        let window = *start.get(5)?;
        let base = 1u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    // The content is the window: its size follows the number of a dictionary.
    let at = 5 + [0, 1, 2, 4][usize::from(descriptor & 3)];
    let (bytes, more) = [(1, 0), (2, 256), (4, 0), (8, 0)][usize::from(descriptor >> 6)];
    let mut size = [0; 8];
    size[..bytes].copy_from_slice(start.get(at..at + bytes)?);
    Some(u64::from_le_bytes(size).saturating_add(more))
}

/// A block as it comes, and as it goes with what it may refer to (the LZ4 frame format, BD byte).
fn lz4_bytes(start: &[u8]) -> Option<u64> {
    if begins_legacy(start) {
        return Some(legacy::MEMORY_BYTES);
    }
    let (flags, sizes) = (*start.get(4)?, *start.get(5)?);
    let block = match (sizes >> 4) & 7 {
        4 => 64 << 10,
        5 => 256 << 10,
        6 => 1 << 20,
        _ => 4 << 20,
    };
    let is_linked = flags & 0x20 == 0;
    Some(match is_linked {
        true => 3 * block + (64 << 10),
        false => 2 * block,
    })
}

/// The dictionary of the first block of an xz stream (the .xz file format, 3.1 and 5.3.1).
fn xz_dictionary_bytes(start: &[u8]) -> Option<u64> {
    const STREAM_HEADER_BYTES: usize = 12;
    const LZMA2: u64 = 0x21;
    let block = start.get(STREAM_HEADER_BYTES..)?;
    let header_bytes = match *block.first()? {
        // An index: there is no block.
        0 => return Some(0),
        words => (usize::from(words) + 1) * 4,
    };
    let header = block.get(..header_bytes)?;
    let flags = header[1];
    let mut at = 2;
    for size_is_there in [flags & 0x40 != 0, flags & 0x80 != 0] {
        if size_is_there {
            number(header, &mut at)?;
        }
    }
    for _ in 0..=(flags & 3) {
        let filter = number(header, &mut at)?;
        let bytes = usize::try_from(number(header, &mut at)?).ok()?;
        if filter == LZMA2 {
            let bits = u32::from(*header.get(at)?);
            return match bits {
                0..40 => Some((2 | u64::from(bits & 1)) << (bits / 2 + 11)),
                _ => Some(u64::from(u32::MAX)),
            };
        }
        at = at.checked_add(bytes)?;
    }
    None
}

/// A number of up to 9 bytes, 7 bits in each, the lowest first.
fn number(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut out = 0;
    for shift in (0..63).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        out |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(out);
        }
    }
    None
}
