//! One block of bytes to fewer and back, with nothing around it: whoever stores it keeps codec, both lengths and a
//! checksum of its own.
//!
//! The caller owns both sides. What the libraries take beside them, tables and contexts, is made when it is first
//! needed and kept from block to block; how much that is at most is said before, so that a plan can set it apart.

use std::io;

use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size,
};

/// What compresses blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockCodec {
    /// lz4, without a frame.
    Lz4,
    /// zstd, a frame.
    Zstd,
    /// A program that somebody named. What it makes is its own affair, so whoever runs it keeps a checksum of what it was.
    Program,
}

impl BlockCodec {
    /// What it is called in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
            Self::Program => "a program",
        }
    }

    /// Whether this build knows it: zstd is a C library, and may be left out.
    #[must_use]
    pub fn is_built(self) -> bool {
        match self {
            Self::Lz4 | Self::Program => true,
            Self::Zstd => cfg!(feature = "zstd"),
        }
    }
}

/// Those of libraries, which are faster than disks are.
pub const BLOCK_CODECS: [BlockCodec; 2] = [BlockCodec::Lz4, BlockCodec::Zstd];

/// zstd's level for blocks: its fastest but for the negative ones.
#[cfg(feature = "zstd")]
const ZSTD_LEVEL: i32 = 1;

/// The most bytes that a block of `block_bytes` becomes: room for what is compressed to.
#[must_use]
pub fn packed_bytes_max(block_bytes: usize) -> usize {
    // lz4 asks for a tenth more; zstd for a 256th, and of short blocks for 64 bytes.
    get_maximum_output_size(block_bytes) + 64
}

/// Bytes of memory that a [`BlockCoder`] takes once it has compressed and decompressed blocks of up to `block_bytes`.
#[must_use]
pub fn block_coder_bytes(codec: BlockCodec, block_bytes: usize) -> u64 {
    match codec {
        // Both contexts, and tables that grow with the block up to where level 1 has enough.
        BlockCodec::Zstd => (256 << 10) + (8 * block_bytes as u64).min(640 << 10),
        // Two tables of 16 KiB.
        _ => 64 << 10,
    }
}

/// Compresses and decompresses blocks, one after the other.
#[derive(Default)]
pub struct BlockCoder {
    lz4: CompressTable,
    #[cfg(feature = "zstd")]
    zstd: Option<Zstd>,
}

#[cfg(feature = "zstd")]
struct Zstd {
    compressor: zstd::bulk::Compressor<'static>,
    decompressor: zstd::bulk::Decompressor<'static>,
}

impl BlockCoder {
    /// One that has not made anything yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Compresses `plain` to the beginning of `out`, which has room for [`packed_bytes_max`]. Answers how many bytes
    /// that are: more than there were, of bytes that cannot be compressed.
    ///
    /// # Errors
    /// `Unsupported` for a codec that is none of [`BLOCK_CODECS`] or that this build has no library for; the
    /// library's.
    pub fn pack(&mut self, codec: BlockCodec, plain: &[u8], out: &mut [u8]) -> io::Result<usize> {
        match codec {
            BlockCodec::Lz4 => {
                compress_into_with_table(plain, out, &mut self.lz4).map_err(io::Error::other)
            }
            #[cfg(feature = "zstd")]
            BlockCodec::Zstd => self.zstd()?.compressor.compress_to_buffer(plain, out),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Decompresses `packed` to just the bytes of `plain`.
    ///
    /// # Errors
    /// `InvalidData` for bytes that are not so many compressed ones, whatever they are; else as [`BlockCoder::pack`].
    pub fn unpack(&mut self, codec: BlockCodec, packed: &[u8], plain: &mut [u8]) -> io::Result<()> {
        let damaged = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        let bytes = match codec {
            BlockCodec::Lz4 => {
                decompress_into(packed, plain).map_err(|why| damaged(why.to_string()))?
            }
            #[cfg(feature = "zstd")]
            BlockCodec::Zstd => {
                let decompressor = &mut self.zstd()?.decompressor;
                let done = decompressor.decompress_to_buffer(packed, plain);
                done.map_err(|why| damaged(why.to_string()))?
            }
            _ => return Err(io::ErrorKind::Unsupported.into()),
        };
        match bytes == plain.len() {
            true => Ok(()),
            false => Err(damaged(format!("{bytes} bytes and not {}", plain.len()))),
        }
    }

    #[cfg(feature = "zstd")]
    fn zstd(&mut self) -> io::Result<&mut Zstd> {
        if self.zstd.is_none() {
            self.zstd = Some(Zstd {
                compressor: zstd::bulk::Compressor::new(ZSTD_LEVEL)?,
                decompressor: zstd::bulk::Decompressor::new()?,
            });
        }
        Ok(self.zstd.as_mut().expect("just made"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splitmix64.
    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// `bytes` bytes of which one in `of` is not the same as all others.
    fn some(state: &mut u64, bytes: usize, of: u64) -> Vec<u8> {
        let byte = |_| match random(state) {
            drawn if drawn.is_multiple_of(of) => (drawn >> 32) as u8,
            _ => b'x',
        };
        (0..bytes).map(byte).collect()
    }

    fn codecs() -> impl Iterator<Item = BlockCodec> {
        BLOCK_CODECS.into_iter().filter(|codec| codec.is_built())
    }

    #[test]
    fn any_bytes_come_back() {
        let mut state = 5;
        let mut coder = BlockCoder::new();
        for codec in codecs() {
            for bytes in [0, 1, 13, 63, 4032, 65_000, 65_600, 300_000] {
                for of in [1, 3, 40] {
                    let plain = some(&mut state, bytes, of);
                    let mut out = vec![0; packed_bytes_max(bytes)];
                    let count = coder.pack(codec, &plain, &mut out).unwrap();
                    assert!(of < 40 || bytes < 4000 || count < bytes / 2, "{codec:?}");
                    let mut back = vec![0xa5; bytes];
                    coder.unpack(codec, &out[..count], &mut back).unwrap();
                    assert_eq!(back, plain, "{codec:?}, {bytes} bytes, one in {of}");
                }
            }
        }
    }

    /// Lengths that do not fit, bytes that were altered, cut off, or never were what they are said to be: an error, or
    /// just so many bytes, and no panic.
    #[test]
    fn what_is_no_packed_block_is_refused() {
        let mut state = 6;
        let mut coder = BlockCoder::new();
        for codec in codecs() {
            let plain = some(&mut state, 5000, 20);
            let mut out = vec![0; packed_bytes_max(plain.len())];
            let count = coder.pack(codec, &plain, &mut out).unwrap();
            out.truncate(count);
            for bytes in [0, 1, plain.len() - 1, plain.len() + 1, 2 * plain.len()] {
                let wrong = coder.unpack(codec, &out, &mut vec![0; bytes]).unwrap_err();
                assert_eq!(
                    wrong.kind(),
                    io::ErrorKind::InvalidData,
                    "{codec:?} {bytes}"
                );
            }
            let mut back = vec![0; plain.len()];
            for cut in (0..count).step_by(7) {
                let result = coder.unpack(codec, &out[..cut], &mut back);
                assert!(result.is_err(), "{codec:?}, {cut} of {count} bytes");
            }
            for _ in 0..3000 {
                let mut altered = out.clone();
                let at = random(&mut state) as usize % count;
                altered[at] ^= 1 << (random(&mut state) % 8);
                let _any = coder.unpack(codec, &altered, &mut back);
            }
        }
        let wrong = coder.pack(BlockCodec::Program, b"some bytes", &mut [0; 4096]);
        assert_eq!(wrong.unwrap_err().kind(), io::ErrorKind::Unsupported);
    }

    #[cfg(feature = "zstd")]
    #[test]
    fn zstd_takes_no_more_than_is_set_apart_for_it() {
        let mut state = 7;
        for bits in 12..=24 {
            let bytes = 1 << bits;
            let plain = some(&mut state, bytes, 4);
            let mut coder = BlockCoder::new();
            let mut out = vec![0; packed_bytes_max(bytes)];
            let count = coder.pack(BlockCodec::Zstd, &plain, &mut out).unwrap();
            let mut back = vec![0; bytes];
            coder
                .unpack(BlockCodec::Zstd, &out[..count], &mut back)
                .unwrap();
            let zstd = coder.zstd.as_mut().unwrap();
            let have = zstd.compressor.context_mut().sizeof() as u64 + DECOMPRESSOR_BYTES;
            let said = block_coder_bytes(BlockCodec::Zstd, bytes);
            println!("{bytes}: {have} of {said}");
            assert!(have <= said, "{bytes}: {have} and not {said}");
        }
    }

    /// zstd's manual: a context for decompressing takes some 160 kB where it is given whole frames.
    #[cfg(feature = "zstd")]
    const DECOMPRESSOR_BYTES: u64 = 160 << 10;
}
