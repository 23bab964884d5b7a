//! Who reads what: the input as a row of numbered chunks, handed out one by one. No I/O.
//!
//! Chunks are cut at fixed offsets of each input and numbered in input order before anything is read,
//! never by memory, threads or arrival, so that a record's place, (chunk, index), is the same in every
//! run. A stream is cut by its own count as it comes.

use std::ops::Range;

/// What is known of one input before it is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// A file of so many bytes.
    File(u64),
    /// A stream: as long as it is.
    Stream,
}

/// One chunk to be read from a file, or a stream to be read to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Assignment {
    /// The chunk's number; a stream's first.
    pub chunk: u64,
    /// Which input, from 0.
    pub input: usize,
    /// Where it starts in the input, in bytes.
    pub offset: u64,
    /// How long it is; 0 for a stream.
    pub bytes: u64,
    /// Whether it is the last of its input.
    pub last: bool,
}

/// Hands out the chunks of a row of inputs in order.
#[derive(Clone)]
pub struct Chunks {
    extents: Vec<Extent>,
    chunk_bytes: u64,
    next: u64,
    input: usize,
    offset: u64,
    /// The chunk before which it ends, where it hands out a share.
    end: u64,
}

impl Chunks {
    /// The chunks of `extents`, each of at most `chunk_bytes`.
    #[must_use]
    pub fn new(extents: Vec<Extent>, chunk_bytes: u64) -> Self {
        assert!(chunk_bytes > 0);
        Self {
            extents,
            chunk_bytes,
            next: 0,
            input: 0,
            offset: 0,
            end: u64::MAX,
        }
    }

    /// Chunks `share` of them: of files, whose chunks are known before they are read.
    #[must_use]
    pub fn share(extents: Vec<Extent>, chunk_bytes: u64, share: Range<u64>) -> Self {
        let mut chunks = Self::new(extents, chunk_bytes);
        while chunks.next < share.start && chunks.assign().is_some() {}
        chunks.end = share.end;
        chunks
    }

    /// Whether no chunk is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.next >= self.end || self.position().is_none()
    }

    /// The number of the next chunk.
    #[must_use]
    pub fn next_chunk(&self) -> u64 {
        self.next
    }

    /// Where the next chunk begins, handed out here or not: input and offset. `None` behind the last one.
    #[must_use]
    pub fn position(&self) -> Option<(usize, u64)> {
        let mut all = self.clone();
        all.end = u64::MAX;
        all.assign().map(|next| (next.input, next.offset))
    }

    /// How many chunks files of these lengths have.
    #[must_use]
    pub fn count(extents: &[Extent], chunk_bytes: u64) -> u64 {
        let bytes = extents.iter().map(|extent| match extent {
            Extent::File(bytes) => *bytes,
            Extent::Stream => 0,
        });
        bytes.map(|bytes| bytes.div_ceil(chunk_bytes)).sum()
    }

    /// The number of the first chunk of each file when no stream comes before it.
    #[must_use]
    pub fn first_chunks(extents: &[Extent], chunk_bytes: u64) -> Vec<u64> {
        let mut next = 0;
        extents
            .iter()
            .map(|extent| {
                let first = next;
                if let Extent::File(bytes) = extent {
                    next += bytes.div_ceil(chunk_bytes);
                }
                first
            })
            .collect()
    }

    /// The next chunk in order; a whole stream counts as one until [`Chunks::stream_ended`].
    pub fn assign(&mut self) -> Option<Assignment> {
        if self.next >= self.end {
            return None;
        }
        loop {
            match *self.extents.get(self.input)? {
                Extent::Stream => {
                    let assignment = Assignment {
                        chunk: self.next,
                        input: self.input,
                        offset: 0,
                        bytes: 0,
                        last: true,
                    };
                    self.input += 1;
                    return Some(assignment);
                }
                Extent::File(bytes) if self.offset < bytes => {
                    let length = self.chunk_bytes.min(bytes - self.offset);
                    let assignment = Assignment {
                        chunk: self.next,
                        input: self.input,
                        offset: self.offset,
                        bytes: length,
                        last: self.offset + length == bytes,
                    };
                    self.next += 1;
                    self.offset += length;
                    return Some(assignment);
                }
                Extent::File(_) => {
                    self.input += 1;
                    self.offset = 0;
                }
            }
        }
    }

    /// The stream handed out last made `chunk_count` chunks: what follows is numbered behind them.
    pub fn stream_ended(&mut self, chunk_count: u64) {
        self.next += chunk_count;
    }

    /// Whether the next assignment is a stream.
    #[must_use]
    pub fn stream_is_next(&self) -> bool {
        let mut rest = self.extents[self.input.min(self.extents.len())..].iter();
        let mut offset = self.offset;
        loop {
            match rest.next() {
                Some(Extent::Stream) => return true,
                Some(Extent::File(bytes)) if offset >= *bytes => offset = 0,
                _ => return false,
            }
        }
    }
}
