//! Bytes to a compressed frame that stands on its own, so that frames can be made side by side and simply follow each
//! other.
//!
//! The caller owns both the bytes and the vector that they go to, whose room [`bound_bytes`] says. What comes out
//! depends on the bytes, the codec and the level, and on nothing else; each frame carries a checksum of its content.

use std::io;

use super::Codec;

/// Compresses frames of up to so many bytes, one after the other.
pub struct Encoder {
    inner: Inner,
    frame_bytes_max: usize,
}

enum Inner {
    Gzip(flate2::Compress),
    Lz4,
    Bzip2(u32),
    #[cfg(feature = "zstd")]
    Zstd(zstd::bulk::Compressor<'static>),
    #[cfg(feature = "xz")]
    Xz(liblzma::stream::Filters),
}

/// The most bytes that a frame of `frame_bytes` takes when it is compressed.
#[must_use]
pub fn bound_bytes(frame_bytes: usize) -> usize {
    // Each codec stores what it cannot compress, with a few bytes for each block, and bzip2 adds 1 %; but the lowest
    // level of gzip has one code for all, 9 bits for the bytes from 144 on (RFC 1951, 3.2.6).
    frame_bytes + frame_bytes / 8 + 4096
}

/// Bytes of memory that an encoder takes, its output not among them.
#[must_use]
pub fn encoder_bytes(codec: Codec, level: u32, frame_bytes: usize) -> u64 {
    let frame = frame_bytes as u64;
    match codec {
        // A window and lists of fixed size.
        Codec::Gzip => 512 << 10,
        // A block as it comes and as it goes, and a table.
        Codec::Lz4 => 2 * frame + (256 << 10),
        // 400 kB, and 8 bytes for each byte of a block of 900 kB.
        Codec::Bzip2 => 8 << 20,
        // Tables no larger than the frame makes sense of; the highest levels have the most.
        Codec::Zstd if level <= 9 => 4 * frame + (8 << 20),
        Codec::Zstd => 8 * frame + (40 << 20),
        // A hash and a tree of the dictionary, which is no larger than the frame.
        Codec::Xz => 12 * frame + (6 << 20),
    }
}

impl Encoder {
    /// An encoder of frames of at most `frame_bytes_max` bytes. `level` is one of [`Codec::levels`].
    ///
    /// # Errors
    /// `Unsupported` where this build has no library for the codec; `OutOfMemory`.
    pub fn new(codec: Codec, level: u32, frame_bytes_max: usize) -> io::Result<Self> {
        let inner = match codec {
            Codec::Gzip => {
                let level = flate2::Compression::new(level);
                Inner::Gzip(flate2::Compress::new_gzip(level, 15))
            }
            Codec::Lz4 => Inner::Lz4,
            Codec::Bzip2 => Inner::Bzip2(level),
            #[cfg(feature = "zstd")]
            Codec::Zstd => {
                let level = i32::try_from(level).map_err(io::Error::other)?;
                let mut zstd = zstd::bulk::Compressor::new(level)?;
                zstd.set_parameter(zstd::stream::raw::CParameter::ChecksumFlag(true))?;
                Inner::Zstd(zstd)
            }
            #[cfg(feature = "xz")]
            Codec::Xz => {
                const DICTIONARY_BYTES_MIN: usize = 4096;
                let bytes = frame_bytes_max.max(DICTIONARY_BYTES_MIN);
                let mut options = liblzma::stream::LzmaOptions::new_preset(level)?;
                options.dict_size(u32::try_from(bytes).map_err(io::Error::other)?);
                let mut filters = liblzma::stream::Filters::new();
                filters.lzma2(&options);
                Inner::Xz(filters)
            }
            #[cfg(not(all(feature = "zstd", feature = "xz")))]
            _ => return Err(io::ErrorKind::Unsupported.into()),
        };
        Ok(Self {
            inner,
            frame_bytes_max,
        })
    }

    /// Compresses `frame` into `out`, whose contents go.
    ///
    /// # Errors
    /// The library's; none that the bytes can cause.
    pub fn encode(&mut self, frame: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        assert!(frame.len() <= self.frame_bytes_max);
        out.clear();
        out.reserve(bound_bytes(self.frame_bytes_max));
        let is_whole = match &mut self.inner {
            Inner::Gzip(gzip) => {
                gzip.reset();
                let status = gzip.compress_vec(frame, out, flate2::FlushCompress::Finish)?;
                status == flate2::Status::StreamEnd
            }
            Inner::Lz4 => {
                encode_lz4(frame, out)?;
                true
            }
            Inner::Bzip2(level) => {
                let mut bzip2 = bzip2::Compress::new(bzip2::Compression::new(*level), 0);
                let status = bzip2
                    .compress_vec(frame, out, bzip2::Action::Finish)
                    .map_err(io::Error::other)?;
                status == bzip2::Status::StreamEnd
            }
            #[cfg(feature = "zstd")]
            Inner::Zstd(zstd) => {
                zstd.compress_to_buffer(frame, out)?;
                true
            }
            #[cfg(feature = "xz")]
            Inner::Xz(filters) => {
                use liblzma::stream::{Action, Check, Status, Stream};
                let mut xz = Stream::new_stream_encoder(filters, Check::Crc64)?;
                xz.process_vec(frame, out, Action::Finish)? == Status::StreamEnd
            }
        };
        match is_whole {
            true => Ok(()),
            false => Err(io::Error::other(
                "a compressed frame is longer than it can be",
            )),
        }
    }
}

fn encode_lz4(frame: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    use lz4_flex::frame::{BlockSize, FrameEncoder, FrameInfo};
    let info = FrameInfo::new()
        .block_size(BlockSize::Max1MB)
        .content_size(Some(frame.len() as u64))
        .content_checksum(true);
    let mut encoder = FrameEncoder::with_frame_info(info, out);
    io::Write::write_all(&mut encoder, frame)?;
    encoder.finish()?;
    Ok(())
}

#[cfg(all(test, feature = "zstd"))]
mod tests {
    use super::{Codec, Encoder, Inner, encoder_bytes};

    #[test]
    fn zstd_takes_no_more_than_is_set_apart_for_it() {
        let frame: Vec<u8> = (0..1u32 << 18)
            .flat_map(|at| (at.wrapping_mul(at) >> 7).to_le_bytes())
            .collect();
        for level in 1..=22 {
            let mut encoder = Encoder::new(Codec::Zstd, level, frame.len()).unwrap();
            encoder.encode(&frame, &mut Vec::new()).unwrap();
            let Inner::Zstd(zstd) = &mut encoder.inner else {
                unreachable!("it was asked for")
            };
            let (have, said) = (
                zstd.context_mut().sizeof() as u64,
                encoder_bytes(Codec::Zstd, level, frame.len()),
            );
            assert!(have <= said, "level {level}: {have} and not {said}");
        }
    }
}
