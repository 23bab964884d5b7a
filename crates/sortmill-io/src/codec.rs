//! Compressed bytes: which codec they are of, and the way back and forth.
//!
//! In come the first bytes of a file, out goes a [`Sniffed`]; in comes a reader of compressed bytes, out of a
//! [`Decoder`] come the bytes that were compressed; in comes a frame of bytes, out of an [`Encoder`] comes that frame
//! compressed, on its own. A [`BlockCoder`] does both to blocks that have nothing around them. The libraries do the work;
//! this module gives them one shape, one view of several members
//! one after the other, and a limit on memory that holds whatever the bytes say.
//!
//! Memory is the libraries' own, from the heap. How much one of them takes is said before it begins, so that a plan
//! can set it apart: by the headers of what it reads, or by level and frame of what it writes.

mod block;
mod decode;
mod encode;
mod header;
mod legacy;

use std::path::Path;

pub use block::{BLOCK_CODECS, BlockCodec, BlockCoder, block_coder_bytes, packed_bytes_max};
pub use decode::{Decoder, Wrong};
pub use encode::{Encoder, bound_bytes, encoder_bytes};
pub use header::{HEADER_BYTES_MAX, Sniffed, is_lzma, skipped_bytes, sniff};

/// A way of compressing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Codec {
    /// RFC 1952; members.
    Gzip,
    /// RFC 8878; frames.
    Zstd,
    /// The LZ4 frame format; its legacy frames are read, and never written.
    Lz4,
    /// bzip2; streams.
    Bzip2,
    /// The .xz format; streams.
    Xz,
}

/// All of them.
pub const CODECS: [Codec; 5] = [
    Codec::Gzip,
    Codec::Zstd,
    Codec::Lz4,
    Codec::Bzip2,
    Codec::Xz,
];

impl Codec {
    /// Its program's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Lz4 => "lz4",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
        }
    }

    /// What the names of its files end in, without the dot.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::Gzip => "gz",
            Self::Zstd => "zst",
            Self::Lz4 => "lz4",
            Self::Bzip2 => "bz2",
            Self::Xz => "xz",
        }
    }

    /// The codec whose files are called as `path` is.
    #[must_use]
    pub fn of_name(path: &Path) -> Option<Self> {
        let extension = path.extension()?;
        CODECS
            .into_iter()
            .find(|codec| extension.eq_ignore_ascii_case(codec.extension()))
    }

    /// The lowest, usual and highest level; `None` where there is one way only.
    #[must_use]
    pub fn levels(self) -> Option<(u32, u32, u32)> {
        match self {
            Self::Gzip => Some((1, 6, 9)),
            Self::Zstd => Some((1, 3, 22)),
            Self::Lz4 => None,
            Self::Bzip2 => Some((1, 9, 9)),
            Self::Xz => Some((0, 6, 9)),
        }
    }

    /// Whether this build knows it: zstd and xz are C libraries, and may be left out.
    #[must_use]
    pub fn is_built(self) -> bool {
        match self {
            Self::Gzip | Self::Lz4 | Self::Bzip2 => true,
            Self::Zstd => cfg!(feature = "zstd"),
            Self::Xz => cfg!(feature = "xz"),
        }
    }

    /// What one of its parts is called, of which several may follow each other.
    #[must_use]
    pub fn member(self) -> &'static str {
        match self {
            Self::Gzip => "gzip member",
            Self::Zstd => "zstd frame",
            Self::Lz4 => "lz4 frame",
            Self::Bzip2 => "bzip2 stream",
            Self::Xz => "xz stream",
        }
    }
}

#[cfg(test)]
mod tests;
