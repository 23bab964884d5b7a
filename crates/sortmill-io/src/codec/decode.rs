//! Compressed bytes to what they were: members one after the other, within a limit of memory.
//!
//! The caller gives a reader of compressed bytes and buffers to fill; a buffer of 64 KiB between both, and the
//! library's own memory, belong to the decoder. Between members it looks for itself what follows: another member, a
//! frame to be skipped, padding, the end, or something that is an error. So all codecs treat these alike, and no
//! library decides that what is cut off has ended.

use std::io::{self, Read};

use super::Codec;
use super::header::{begins_legacy, skippable_bytes};
use super::legacy::{self, Legacy};

/// What is wrong with compressed bytes. [`Decoder::position`] says where.
#[derive(Debug)]
pub enum Wrong {
    /// They cannot be read.
    Read(io::Error),
    /// They end within a member.
    CutOff,
    /// They are not what the codec makes: what it says of them.
    Corrupt(String),
    /// Behind a member follows something else.
    Trailing,
    /// A member wants more memory than the limit: how many bytes, if that is known.
    Memory(Option<u64>),
    /// This build has no library for the codec.
    NotBuilt,
}

/// Decompresses what a reader gives.
pub struct Decoder<R: Read> {
    codec: Codec,
    limit_bytes: u64,
    /// A member has begun and has not ended.
    in_member: bool,
    member_count: u64,
    inner: Inner<R>,
    /// The legacy frame of lz4 that is being read, if it is one.
    legacy: Option<Legacy>,
}

enum Inner<R: Read> {
    /// Those that work from slice to slice.
    Slices(Feed<R>, Slices),
    /// The one that reads by itself. It is kept from frame to frame for its buffers.
    Lz4(lz4_flex::frame::FrameDecoder<Feed<R>>),
}

enum Slices {
    Gzip(flate2::Decompress),
    Bzip2(bzip2::Decompress),
    #[cfg(feature = "zstd")]
    Zstd(zstd::stream::raw::Decoder<'static>),
    #[cfg(feature = "xz")]
    Xz(liblzma::stream::Stream),
}

/// Bytes that may have to be seen to know what follows: the longest header of a zstd frame.
const PEEK_BYTES: usize = 18;

impl<R: Read> Decoder<R> {
    /// A decoder of what `from` gives, which begins with a member of `codec`. No member may take more than
    /// `limit_bytes` of memory.
    ///
    /// # Errors
    /// [`Wrong::NotBuilt`], and [`Wrong::Memory`] where even the first bytes of memory are refused.
    pub fn new(codec: Codec, from: R, limit_bytes: u64) -> Result<Self, Wrong> {
        let feed = Feed::new(from);
        let inner = match codec {
            Codec::Lz4 => Inner::Lz4(lz4_flex::frame::FrameDecoder::new(feed)),
            _ => Inner::Slices(feed, Slices::new(codec, limit_bytes)?),
        };
        Ok(Self {
            codec,
            limit_bytes,
            in_member: false,
            member_count: 0,
            inner,
            legacy: None,
        })
    }

    /// Fills the beginning of `into` and says how many bytes; 0 at the end, where everything has been checked that
    /// the codec checks.
    ///
    /// # Errors
    /// What is wrong. Nothing can be read then any more.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Wrong> {
        loop {
            if into.is_empty() || (!self.in_member && !self.begin_member()?) {
                return Ok(0);
            }
            let (made, ended) = match (&mut self.inner, &mut self.legacy) {
                (Inner::Slices(feed, slices), _) => slices.step(feed, into)?,
                (Inner::Lz4(frames), Some(legacy)) => legacy.read(frames.get_mut(), into)?,
                (Inner::Lz4(frames), None) => read_lz4(frames, into)?,
            };
            self.in_member = !ended;
            if made > 0 {
                return Ok(made);
            }
        }
    }

    /// Bytes of the compressed input that have been used.
    #[must_use]
    pub fn position(&self) -> u64 {
        match &self.inner {
            Inner::Slices(feed, _) => feed.passed,
            Inner::Lz4(frames) => frames.get_ref().passed,
        }
    }

    /// Where the compressed bytes come from.
    pub fn reader(&mut self) -> &mut R {
        &mut self.feed().from
    }

    fn feed(&mut self) -> &mut Feed<R> {
        match &mut self.inner {
            Inner::Slices(feed, _) => feed,
            Inner::Lz4(frames) => frames.get_mut(),
        }
    }

    /// Goes on to the next member; `false` at the end.
    fn begin_member(&mut self) -> Result<bool, Wrong> {
        loop {
            let (codec, is_first) = (self.codec, self.member_count == 0);
            let start = self.feed().peek(PEEK_BYTES).map_err(Wrong::Read)?;
            if codec.begins(start) {
                break;
            }
            if start.is_empty() && !is_first {
                return Ok(false);
            }
            let may_skip = matches!(codec, Codec::Zstd | Codec::Lz4);
            if let (true, Some(bytes)) = (may_skip, skippable_bytes(start)) {
                self.pass_over(bytes)?;
            } else if start.first() == Some(&0) && !is_first {
                self.pass_padding()?;
            } else {
                return Err(Wrong::Trailing);
            }
        }
        let codec = self.codec;
        // What an xz stream wants is told by its blocks; the library looks at each.
        if codec != Codec::Xz {
            let start = self.feed().peek(PEEK_BYTES).map_err(Wrong::Read)?;
            let wanted = codec.memory_bytes(start);
            if wanted > self.limit_bytes {
                return Err(Wrong::Memory(Some(wanted)));
            }
        }
        if self.member_count > 0
            && let Inner::Slices(_, slices) = &mut self.inner
        {
            slices.reset(codec, self.limit_bytes)?;
        }
        self.legacy = None;
        let start = self.feed().peek(PEEK_BYTES).map_err(Wrong::Read)?;
        if codec == Codec::Lz4 && begins_legacy(start) {
            self.feed().consume(legacy::MAGIC.len());
            self.legacy = Some(Legacy::new());
        }
        self.feed().met_end = false;
        self.member_count += 1;
        self.in_member = true;
        Ok(true)
    }

    fn pass_over(&mut self, mut bytes: u64) -> Result<(), Wrong> {
        let feed = self.feed();
        while bytes > 0 {
            let have = feed.fill().map_err(Wrong::Read)?.len() as u64;
            if have == 0 {
                return Err(Wrong::CutOff);
            }
            let passed = have.min(bytes);
            feed.consume(passed as usize);
            bytes -= passed;
        }
        Ok(())
    }

    /// Zeros behind a member: of xz in fours, of gzip up to the end, as tapes and blocks leave them.
    fn pass_padding(&mut self) -> Result<(), Wrong> {
        let codec = self.codec;
        if !matches!(codec, Codec::Gzip | Codec::Xz) {
            return Err(Wrong::Trailing);
        }
        let feed = self.feed();
        let mut count = 0u64;
        loop {
            let have = feed.fill().map_err(Wrong::Read)?;
            let zeros = have.iter().take_while(|&&byte| byte == 0).count();
            let (is_end, is_all) = (have.is_empty(), zeros == have.len());
            feed.consume(zeros);
            count += zeros as u64;
            if is_all && !is_end {
                continue;
            }
            return match codec {
                Codec::Gzip if is_end => Ok(()),
                Codec::Xz if count.is_multiple_of(4) => Ok(()),
                _ => Err(Wrong::Trailing),
            };
        }
    }
}

impl Slices {
    fn new(codec: Codec, limit_bytes: u64) -> Result<Self, Wrong> {
        Ok(match codec {
            Codec::Gzip => Self::Gzip(flate2::Decompress::new_gzip(15)),
            Codec::Bzip2 => Self::Bzip2(bzip2::Decompress::new(false)),
            #[cfg(feature = "zstd")]
            Codec::Zstd => Self::Zstd(zstd_decoder().map_err(|_| Wrong::Memory(None))?),
            #[cfg(feature = "xz")]
            Codec::Xz => {
                let stream = liblzma::stream::Stream::new_stream_decoder(limit_bytes, 0);
                Self::Xz(stream.map_err(|_| Wrong::Memory(None))?)
            }
            _ => {
                let _ = limit_bytes;
                return Err(Wrong::NotBuilt);
            }
        })
    }

    /// Forgets the member before.
    fn reset(&mut self, codec: Codec, limit_bytes: u64) -> Result<(), Wrong> {
        match self {
            // Its header is its own, which `true` keeps.
            Self::Gzip(gzip) => gzip.reset(true),
            #[cfg(feature = "zstd")]
            Self::Zstd(zstd) => {
                use zstd::stream::raw::Operation;
                zstd.reinit().map_err(|error| corrupt(&error))?;
            }
            _ => *self = Self::new(codec, limit_bytes)?,
        }
        Ok(())
    }

    /// Decompresses some bytes of the member: how many came out, and whether it has ended.
    fn step<R: Read>(
        &mut self,
        feed: &mut Feed<R>,
        into: &mut [u8],
    ) -> Result<(usize, bool), Wrong> {
        loop {
            let input = feed.fill().map_err(Wrong::Read)?;
            let is_end = input.is_empty();
            let (taken, made, ended) = self.run(input, into)?;
            feed.consume(taken);
            if ended || made > 0 {
                return Ok((made, ended));
            }
            if taken == 0 {
                return Err(match is_end {
                    true => Wrong::CutOff,
                    false => Wrong::Corrupt("nothing can be made of it".to_owned()),
                });
            }
        }
    }

    /// From slice to slice: bytes taken, bytes made, whether the member has ended.
    fn run(&mut self, input: &[u8], into: &mut [u8]) -> Result<(usize, usize, bool), Wrong> {
        match self {
            Self::Gzip(gzip) => {
                let before = (gzip.total_in(), gzip.total_out());
                let status = gzip
                    .decompress(input, into, flate2::FlushDecompress::None)
                    .map_err(|error| corrupt(&error))?;
                let taken = (gzip.total_in() - before.0) as usize;
                let made = (gzip.total_out() - before.1) as usize;
                Ok((taken, made, status == flate2::Status::StreamEnd))
            }
            Self::Bzip2(bzip2) => {
                let before = (bzip2.total_in(), bzip2.total_out());
                let status = bzip2
                    .decompress(input, into)
                    .map_err(|error| corrupt(&error))?;
                let taken = (bzip2.total_in() - before.0) as usize;
                let made = (bzip2.total_out() - before.1) as usize;
                Ok((taken, made, status == bzip2::Status::StreamEnd))
            }
            #[cfg(feature = "zstd")]
            Self::Zstd(zstd) => {
                use zstd::stream::raw::Operation;
                let status = zstd
                    .run_on_buffers(input, into)
                    .map_err(|error| corrupt(&error))?;
                let ended = status.remaining == 0;
                Ok((status.bytes_read, status.bytes_written, ended))
            }
            #[cfg(feature = "xz")]
            Self::Xz(xz) => {
                use liblzma::stream::{Action, Error, Status};
                let before = (xz.total_in(), xz.total_out());
                let status = xz.process(input, into, Action::Run);
                let status = status.map_err(|error| match error {
                    Error::MemLimit | Error::Mem => Wrong::Memory(None),
                    error => corrupt(&error),
                })?;
                let taken = (xz.total_in() - before.0) as usize;
                let made = (xz.total_out() - before.1) as usize;
                Ok((taken, made, status == Status::StreamEnd))
            }
        }
    }
}

/// zstd's own limit is below what the format allows; ours is compared before a frame begins.
#[cfg(feature = "zstd")]
fn zstd_decoder() -> io::Result<zstd::stream::raw::Decoder<'static>> {
    const WINDOW_BITS_MAX: u32 = if size_of::<usize>() == 4 { 30 } else { 31 };
    let mut decoder = zstd::stream::raw::Decoder::new()?;
    decoder.set_parameter(zstd::stream::raw::DParameter::WindowLogMax(WINDOW_BITS_MAX))?;
    Ok(decoder)
}

fn corrupt(error: &dyn std::error::Error) -> Wrong {
    Wrong::Corrupt(error.to_string())
}

fn read_lz4<R: Read>(
    frames: &mut lz4_flex::frame::FrameDecoder<Feed<R>>,
    into: &mut [u8],
) -> Result<(usize, bool), Wrong> {
    let result = frames.read(into);
    let feed = frames.get_mut();
    if let Some(error) = feed.failed.take() {
        return Err(Wrong::Read(error));
    }
    match result {
        // The library takes the end of its input, where a block should begin, for the end of the frame.
        Ok(0) if feed.met_end => Err(Wrong::CutOff),
        Ok(made) => Ok((made, made == 0)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(Wrong::CutOff),
        Err(error) => Err(corrupt(&error)),
    }
}

const FEED_BYTES: usize = 64 << 10;

/// A buffer of compressed bytes that can be looked at before they are used.
pub(super) struct Feed<R> {
    from: R,
    buffer: Box<[u8]>,
    begin: usize,
    end: usize,
    /// Bytes used.
    passed: u64,
    /// Somebody asked for bytes and there were none left.
    met_end: bool,
    /// What the reader answered to [`Read::read`].
    failed: Option<io::Error>,
}

impl<R: Read> Feed<R> {
    fn new(from: R) -> Self {
        Self {
            from,
            buffer: vec![0; FEED_BYTES].into_boxed_slice(),
            begin: 0,
            end: 0,
            passed: 0,
            met_end: false,
            failed: None,
        }
    }

    /// Bytes that come next; none at the end.
    fn fill(&mut self) -> io::Result<&[u8]> {
        self.peek(1)
    }

    /// At least `count` bytes that come next, or all that are left.
    pub(super) fn peek(&mut self, count: usize) -> io::Result<&[u8]> {
        while self.end - self.begin < count {
            self.buffer.copy_within(self.begin..self.end, 0);
            self.end -= self.begin;
            self.begin = 0;
            let moved = self.from.read(&mut self.buffer[self.end..])?;
            if moved == 0 {
                break;
            }
            self.end += moved;
        }
        Ok(&self.buffer[self.begin..self.end])
    }

    pub(super) fn consume(&mut self, count: usize) {
        assert!(count <= self.end - self.begin);
        self.begin += count;
        self.passed += count as u64;
    }
}

impl<R: Read> Read for Feed<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let moved = match self.fill() {
            Ok(have) => {
                let moved = have.len().min(into.len());
                into[..moved].copy_from_slice(&have[..moved]);
                moved
            }
            Err(error) => {
                self.failed = Some(error);
                return Err(io::Error::other("the input cannot be read"));
            }
        };
        self.met_end |= moved == 0 && !into.is_empty();
        self.consume(moved);
        Ok(moved)
    }
}
