//! Who reads what: the input as a row of numbered chunks, handed out one by one. No I/O.
//!
//! Chunks are cut at fixed offsets of each input and numbered in input order before anything is read,
//! never by memory, threads or arrival, so that a record's place, (chunk, index), is the same in every
//! run. A stream is cut by its own count as it comes, and has more numbers set apart for it than it can need, so that
//! what comes behind it is numbered before it ends. Files on several devices make several lanes, which are read
//! side by side, and compressed inputs one of their own; the numbers are the same.

use std::ops::Range;

/// What is known of one input before it is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// A file of so many bytes.
    File(u64),
    /// A stream, or a compressed file: as long as it is.
    Stream,
}

/// The most chunks of a stream: at 4 MiB, a PiB. Thousands of streams can be numbered in 40 bits, which is what
/// [`crate::repeats`] keeps of a number.
pub const STREAM_CHUNKS_MAX: u64 = 1 << 28;

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

/// Hands out the chunks of a lane of inputs in order.
#[derive(Clone)]
pub struct Chunks {
    inputs: Vec<LaneInput>,
    chunk_bytes: u64,
    next: u64,
    /// Which of `inputs` the next chunk is of, and where it begins there.
    at: usize,
    offset: u64,
    /// The chunk before which it ends, where it hands out a share.
    end: u64,
}

/// An input of a lane.
#[derive(Clone)]
struct LaneInput {
    /// Its number among all inputs.
    number: usize,
    extent: Extent,
    /// The number of its first chunk.
    first_chunk: u64,
}

impl Chunks {
    /// The chunks of `extents`, each of at most `chunk_bytes`.
    #[must_use]
    pub fn new(extents: &[Extent], chunk_bytes: u64) -> Self {
        let lanes = vec![0; extents.len()];
        let one = Self::side_by_side(extents, &lanes, chunk_bytes).pop();
        one.unwrap_or_else(|| Self::lane(Vec::new(), chunk_bytes))
    }

    /// The chunks of inputs in several lanes: `lanes` tells in which each of `extents` is. Together they have the
    /// chunks of the one lane that [`Chunks::new`] makes.
    #[must_use]
    pub fn side_by_side(extents: &[Extent], lanes: &[usize], chunk_bytes: u64) -> Vec<Self> {
        let firsts = Self::first_chunks(extents, chunk_bytes);
        let count = lanes.iter().max().map_or(0, |last| last + 1);
        let lane = |wanted: usize| {
            let inputs = (0..extents.len()).filter(|&number| lanes[number] == wanted);
            let inputs = inputs.map(|number| LaneInput {
                number,
                extent: extents[number],
                first_chunk: firsts[number],
            });
            Self::lane(inputs.collect(), chunk_bytes)
        };
        (0..count).map(lane).collect()
    }

    fn lane(inputs: Vec<LaneInput>, chunk_bytes: u64) -> Self {
        assert!(chunk_bytes > 0);
        Self {
            inputs,
            chunk_bytes,
            next: 0,
            at: 0,
            offset: 0,
            end: u64::MAX,
        }
    }

    /// Chunks `share` of them: of files, whose chunks are known before they are read.
    #[must_use]
    pub fn share(extents: &[Extent], chunk_bytes: u64, share: Range<u64>) -> Self {
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

    /// The number of the first chunk of each input.
    #[must_use]
    pub fn first_chunks(extents: &[Extent], chunk_bytes: u64) -> Vec<u64> {
        let mut next = 0;
        extents
            .iter()
            .map(|extent| {
                let first = next;
                next += match extent {
                    Extent::File(bytes) => bytes.div_ceil(chunk_bytes),
                    Extent::Stream => STREAM_CHUNKS_MAX,
                };
                first
            })
            .collect()
    }

    /// The next chunk in order; a whole stream counts as one, its first.
    pub fn assign(&mut self) -> Option<Assignment> {
        if self.next >= self.end {
            return None;
        }
        loop {
            let input = self.inputs.get(self.at)?;
            if self.offset == 0 {
                self.next = input.first_chunk;
            }
            match input.extent {
                Extent::Stream => {
                    let assignment = Assignment {
                        chunk: self.next,
                        input: input.number,
                        offset: 0,
                        bytes: 0,
                        last: true,
                    };
                    self.at += 1;
                    return Some(assignment);
                }
                Extent::File(bytes) if self.offset < bytes => {
                    let length = self.chunk_bytes.min(bytes - self.offset);
                    let assignment = Assignment {
                        chunk: self.next,
                        input: input.number,
                        offset: self.offset,
                        bytes: length,
                        last: self.offset + length == bytes,
                    };
                    self.next += 1;
                    self.offset += length;
                    return Some(assignment);
                }
                Extent::File(_) => {
                    self.at += 1;
                    self.offset = 0;
                }
            }
        }
    }

    /// Whether the next assignment is a stream.
    #[must_use]
    pub fn stream_is_next(&self) -> bool {
        self.next_stream().is_some()
    }

    /// The number of the input that the next assignment is, if that is a stream.
    #[must_use]
    pub fn next_stream(&self) -> Option<usize> {
        let mut rest = self.inputs[self.at.min(self.inputs.len())..].iter();
        let mut offset = self.offset;
        loop {
            let input = rest.next()?;
            match input.extent {
                Extent::Stream => return Some(input.number),
                Extent::File(bytes) if offset >= bytes => offset = 0,
                Extent::File(_) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_have_the_chunks_of_one_row_of_inputs() {
        const CHUNK_BYTES: u64 = 10;
        let mut state = 1u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) % bound
        };
        for _ in 0..500 {
            let count = below(8) as usize;
            let mut extent = || match below(5) {
                0 => Extent::Stream,
                _ => Extent::File(below(45)),
            };
            let extents: Vec<Extent> = (0..count).map(|_| extent()).collect();
            let lanes: Vec<usize> = (0..count).map(|_| below(3) as usize).collect();
            let all = |mut chunks: Chunks| std::iter::from_fn(move || chunks.assign());
            let one: Vec<Assignment> = all(Chunks::new(&extents, CHUNK_BYTES)).collect();
            let mut several = Vec::new();
            for lane in Chunks::side_by_side(&extents, &lanes, CHUNK_BYTES) {
                let chunks: Vec<Assignment> = all(lane).collect();
                assert!(chunks.is_sorted_by_key(|assignment| assignment.chunk));
                several.extend(chunks);
            }
            several.sort_by_key(|assignment| assignment.chunk);
            assert_eq!(several, one, "{extents:?} {lanes:?}");
            // A stream that is as long as one may be still comes before what is behind it.
            let ends = one.iter().map(|assignment| match assignment.bytes {
                0 => assignment.chunk + STREAM_CHUNKS_MAX,
                _ => assignment.chunk + 1,
            });
            assert!(
                ends.zip(one.iter().skip(1))
                    .all(|(end, next)| end <= next.chunk)
            );
        }
    }
}
