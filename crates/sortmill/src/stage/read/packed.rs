//! The bytes of a compressed input as it lies there: in order, a file's read ahead into buffers of their own.

use std::collections::VecDeque;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use sortmill_io::codec::{Codec, Decoder, sniff};
use sortmill_io::sync::Arc;
use sortmill_io::{Access, Buffer, File, Op, OpKind, Os, Pool, Ring, align_up};

use super::Source;
use super::decompress::{DOING, READ_DEPTH};
use super::fetch::Fetches;
use crate::error::{Error, ErrorKind, Result};
use crate::metrics::{Meter, Stage, State};
use crate::queue::Stop;

/// What a thread reads compressed files with, one after the other.
pub(super) struct Reads {
    pool: Pool,
    /// Made when the first file comes.
    ring: Option<Box<dyn Ring>>,
}

impl Reads {
    /// Buffers of `bytes` for each read in flight.
    pub(super) fn new(bytes: usize) -> Result<Self> {
        let pool = Pool::new(READ_DEPTH, bytes)
            .map_err(|error| Error::new(ErrorKind::Memory, "mapping buffers", error.to_string()))?;
        Ok(Self { pool, ring: None })
    }

    /// A file from its beginning.
    fn ahead(&mut self, os: &dyn Os) -> Result<Ahead<'_>> {
        let Self { pool, ring } = self;
        if ring.is_none() {
            *ring = Some(os.ring(READ_DEPTH).map_err(|error| {
                Error::new(ErrorKind::Io, "starting to read", error.to_string())
            })?);
        }
        Ok(Ahead {
            ring: ring.as_mut().expect("it was just made"),
            pool,
            next: 0,
            begun: VecDeque::new(),
            used: 0,
        })
    }
}

/// The bytes of a compressed input, in order.
pub(super) struct Packed<'a, 'm, 'o> {
    os: &'a dyn Os,
    source: &'a Source,
    stop: &'a Stop,
    pub meter: &'m mut Meter<'o>,
    way: Way<'m>,
    /// Why it could not be read.
    pub failed: Option<Error>,
}

enum Way<'a> {
    File(Ahead<'a>),
    /// A file that another thread reads for this row: what is left of what came last, and from where on.
    Fetched {
        fetches: &'a Fetches,
        row: usize,
        buffer: Option<(Buffer, Range<usize>)>,
    },
    Stream {
        /// What the reader took of it to know that it is compressed.
        begun: Option<(Buffer, Range<usize>)>,
        /// How much of the stream has been taken.
        at: usize,
    },
}

impl Way<'_> {
    /// A stream of which `begun` has come, or nothing.
    fn stream(begun: Option<(Buffer, Range<usize>)>) -> Self {
        Self::Stream {
            at: begun.as_ref().map_or(0, |(_, range)| range.len()),
            begun,
        }
    }
}

/// A file that is read ahead.
struct Ahead<'a> {
    ring: &'a mut Box<dyn Ring>,
    pool: &'a Pool,
    /// Where the next read begins.
    next: u64,
    /// Reads in their order: where each begins, and what has come of it.
    begun: VecDeque<(u64, Option<Buffer>)>,
    /// How much of the first one has been used.
    used: usize,
}

impl<'a, 'm, 'o> Packed<'a, 'm, 'o> {
    pub(super) fn new(
        os: &'a dyn Os,
        source: &'a Source,
        stop: &'a Stop,
        reads: &'m mut Reads,
        begun: Option<(Buffer, Range<usize>)>,
        meter: &'m mut Meter<'o>,
    ) -> Result<Self> {
        let way = match source.codec {
            Some(_) => Way::File(reads.ahead(os)?),
            None => Way::stream(begun),
        };
        Ok(Self::by(way, os, source, stop, meter))
    }

    /// The bytes of a file that another thread reads for `row`.
    pub(super) fn fetched(
        os: &'a dyn Os,
        source: &'a Source,
        stop: &'a Stop,
        (fetches, row): (&'m Fetches, usize),
        meter: &'m mut Meter<'o>,
    ) -> Self {
        let way = Way::Fetched {
            fetches,
            row,
            buffer: None,
        };
        Self::by(way, os, source, stop, meter)
    }

    /// Those of a stream of which `begun` has come.
    pub(super) fn of_stream(
        os: &'a dyn Os,
        source: &'a Source,
        stop: &'a Stop,
        begun: (Buffer, Range<usize>),
        meter: &'m mut Meter<'o>,
    ) -> Self {
        Self::by(Way::stream(Some(begun)), os, source, stop, meter)
    }

    fn by(
        way: Way<'m>,
        os: &'a dyn Os,
        source: &'a Source,
        stop: &'a Stop,
        meter: &'m mut Meter<'o>,
    ) -> Self {
        Self {
            os,
            source,
            stop,
            meter,
            way,
            failed: None,
        }
    }

    fn fetch(&mut self, into: &mut [u8]) -> Result<usize> {
        self.stop.check()?;
        let moved = match &mut self.way {
            Way::File(ahead) => ahead.fetch(self.source, self.meter, into)?,
            Way::Fetched {
                fetches,
                row,
                buffer,
            } => {
                if buffer.is_none() {
                    self.meter.lap(Stage::Decompress, State::Work);
                    let next = fetches.next(*row);
                    self.meter.lap(Stage::Decompress, State::Input);
                    self.stop.check()?;
                    *buffer = next.map(|(buffer, bytes)| (buffer, 0..bytes));
                }
                buffer.as_mut().map_or(0, |(bytes, range)| {
                    let moved = range.len().min(into.len());
                    into[..moved].copy_from_slice(&bytes[range.start..range.start + moved]);
                    range.start += moved;
                    moved
                })
            }
            Way::Stream { begun, at } => {
                if let Some((buffer, range)) = begun {
                    let moved = range.len().min(into.len());
                    into[..moved].copy_from_slice(&buffer[range.start..range.start + moved]);
                    range.start += moved;
                    if range.start == range.end {
                        *begun = None;
                    }
                    // They were counted when they came.
                    return Ok(moved);
                }
                let moved = match self.source.ahead_into(*at, into) {
                    0 => {
                        self.meter.lap(Stage::Decompress, State::Work);
                        let (file, stop) = (&self.source.file, self.stop);
                        let moved = self.os.read_stream(file, into, &|| stop.is_stopped());
                        self.meter.lap(Stage::Decompress, State::Device);
                        moved.map_err(|error| Error::io(DOING, &file.path, &error))?
                    }
                    moved => moved,
                };
                *at += moved;
                moved
            }
        };
        if let Way::Fetched { buffer, .. } = &mut self.way {
            // Gone before the next one is asked for.
            buffer.take_if(|(_, range)| range.start == range.end);
        }
        self.meter.read(moved as u64);
        self.meter.stage(Stage::Decompress).bytes_in += moved as u64;
        Ok(moved)
    }
}

impl Read for Packed<'_, '_, '_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.fetch(into).map_err(|error| {
            self.failed = Some(error);
            // Not `Interrupted`, after which libraries would try again.
            std::io::Error::other("the compressed bytes cannot be read")
        })
    }
}

impl Ahead<'_> {
    fn fetch(&mut self, source: &Source, meter: &mut Meter<'_>, into: &mut [u8]) -> Result<usize> {
        self.submit(source);
        let Some((from, _)) = self.begun.front() else {
            return Ok(0);
        };
        let length = self.read_bytes(source, *from);
        while self.begun[0].1.is_none() {
            self.land(source, meter)?;
        }
        let buffer = self.begun[0].1.as_ref().expect("it has landed");
        let moved = into.len().min(length - self.used);
        into[..moved].copy_from_slice(&buffer[self.used..self.used + moved]);
        self.used += moved;
        if self.used == length {
            self.begun.pop_front();
            self.used = 0;
        }
        Ok(moved)
    }

    fn submit(&mut self, source: &Source) {
        while self.begun.len() < READ_DEPTH && self.next < source.meta.bytes {
            let buffer = self.pool.take().expect("as many buffers as reads");
            let length = self.read_bytes(source, self.next);
            let asked = match source.file.access {
                Access::Direct => align_up(length as u64) as usize,
                Access::Cached => length,
            };
            self.ring.submit(Op {
                kind: OpKind::Read,
                file: Arc::clone(&source.file),
                offset: self.next,
                buffer,
                range: 0..asked,
                tag: self.next,
            });
            self.begun.push_back((self.next, None));
            self.next += length as u64;
        }
    }

    /// Bytes of the input that a read from `offset` on is for.
    fn read_bytes(&self, source: &Source, offset: u64) -> usize {
        let most = self.pool.buffer_bytes() as u64;
        most.min(source.meta.bytes - offset) as usize
    }

    fn land(&mut self, source: &Source, meter: &mut Meter<'_>) -> Result<()> {
        meter.lap(Stage::Decompress, State::Work);
        let done = self.ring.complete(true).expect("a read is in flight");
        meter.lap(Stage::Decompress, State::Device);
        let path = &source.file.path;
        let moved = done
            .result
            .map_err(|error| Error::io(DOING, path, &error).offset(done.op.offset))?;
        let wanted = self.read_bytes(source, done.op.offset);
        if moved < wanted {
            return Err(source.shortened(done.op.offset + moved as u64));
        }
        let mut begun = self.begun.iter_mut();
        let begun = begun.find(|begun| begun.0 == done.op.tag);
        begun.expect("every read in flight is known").1 = Some(done.op.buffer);
        Ok(())
    }
}

/// What a codec may take for no more than a look at the beginning.
const LOOK_BYTES_MAX: u64 = 160 << 20;

/// So much of a compressed input is looked at, at most: blocks may have 4 MiB, and nothing comes of one that is not whole.
const PACKED_BYTES_MAX: usize = 8 << 20;

/// The first bytes of an input as it lies there, decompressed where it is: up to `bytes` of them, and of how many they were made. Less where what it holds is damaged, which reading it all will tell.
pub fn beginning(os: &dyn Os, source: &Source, bytes: usize) -> std::io::Result<(Vec<u8>, u64)> {
    let file = os.open(&source.file.path, Access::Cached)?;
    let mut from = Beginning {
        os,
        file: &file,
        left: bytes.max(PACKED_BYTES_MAX),
        failed: None,
    };
    let mut out = vec![0; bytes];
    let (filled, used) = match source.codec {
        None => {
            let moved = os.read_stream(&file, &mut out, &|| false)?;
            (moved, moved as u64)
        }
        Some(sniffed) => {
            let most = sniffed.memory_bytes.min(LOOK_BYTES_MAX);
            let (mut filled, mut used) = (0, 0);
            if let Ok(mut decoder) = Decoder::new(sniffed.codec, &mut from, most) {
                while let Ok(made @ 1..) = decoder.read(&mut out[filled..]) {
                    filled += made;
                }
                used = decoder.position();
            }
            (filled, used)
        }
    };
    out.truncate(filled);
    match from.failed {
        Some(error) => Err(error),
        None => Ok((out, used)),
    }
}

/// What the beginning `raw` of a compressed input becomes, up to `bytes` of it, and whether that was all of it.
#[must_use]
pub fn unpacked(codec: Codec, raw: &[u8], bytes: usize) -> (Vec<u8>, bool) {
    let mut out = vec![0; bytes];
    let (mut filled, mut is_all) = (0, false);
    if let Ok(mut decoder) = Decoder::new(codec, raw, LOOK_BYTES_MAX) {
        while filled < bytes && !is_all {
            match decoder.read(&mut out[filled..]) {
                Ok(0) => is_all = true,
                Ok(made) => filled += made,
                Err(_) => break,
            }
        }
    }
    out.truncate(filled);
    (out, is_all)
}

/// A file, up to some byte.
struct Beginning<'a> {
    os: &'a dyn Os,
    file: &'a File,
    left: usize,
    /// Why it could not be read on.
    failed: Option<std::io::Error>,
}

impl Read for Beginning<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let asked = into.len().min(self.left);
        if asked == 0 {
            return Ok(0);
        }
        let moved = self
            .os
            .read_stream(self.file, &mut into[..asked], &|| false);
        let moved = moved.inspect_err(|error| {
            let same = error.raw_os_error().map(std::io::Error::from_raw_os_error);
            self.failed = Some(same.unwrap_or_else(|| error.kind().into()));
        })?;
        self.left -= moved;
        Ok(moved)
    }
}

/// The first bytes of a file, `bytes` of them where there are so many.
pub(super) fn first_bytes(os: &dyn Os, path: &Path, bytes: usize) -> std::io::Result<Vec<u8>> {
    let file = os.open(path, Access::Cached)?;
    let mut start = vec![0; bytes];
    let mut have = 0;
    while have < bytes {
        match os.read_stream(&file, &mut start[have..], &|| false)? {
            0 => break,
            moved => have += moved,
        }
    }
    start.truncate(have);
    Ok(start)
}

/// The codec that the first bytes of a stream are of.
pub fn codec_of(start: &[u8]) -> Option<Codec> {
    sniff(start).map(|sniffed| sniffed.codec)
}
