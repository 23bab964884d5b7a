//! Which part of a file is read apart, in what pieces, and where they come to lie in memory. No I/O.
//!
//! A piece is what of a part lies in one chunk of the file, so that a record's chunk is the same as in any other job.
//! Only what is left at the end and is shorter than a block of the device comes along with the last one.

use sortmill_io::sync::Arc;
use sortmill_io::{ALIGN_BYTES, File, align_down, align_up};

use super::DOING;
use crate::batch::Goes;
use crate::pieces::NUMBERS_PER_CHUNK;
use crate::plan::Plan;

/// A part of a file: the records that begin in it are wanted.
#[derive(Clone)]
pub struct Part {
    /// The file, which holds nothing but records.
    pub file: Arc<File>,
    /// How long it is; what was appended since is not looked at.
    pub file_bytes: u64,
    /// Which input it is, from 0.
    pub input: usize,
    /// Where it begins: anywhere if a record does there, else where a chunk does.
    pub from: u64,
    /// Where it ends: where a chunk or the file does, or a record that is its last.
    pub to: u64,
    /// Whether a record begins where it does.
    pub begins: bool,
    /// Where its last record ends, at `to` or behind it, if that is known.
    pub end: Option<u64>,
    /// The number of the chunk that `from` lies in.
    pub chunk: u64,
    /// All its records are of that chunk, wherever they lie.
    pub is_of_one_chunk: bool,
    /// It counts as so many bytes, wherever its records begin and end.
    pub bytes: u64,
    /// Where its records go.
    pub goes: Goes,
}

/// What is read behind the end of a part in any case: most lines end in there.
const BEHIND_BYTES: u64 = ALIGN_BYTES as u64 - 1;

impl Part {
    /// Whether it is of an output that is read again.
    pub(super) fn is_output(&self) -> bool {
        matches!(self.goes, Goes::AllToSlot(_))
    }

    pub(super) fn doing(&self) -> &'static str {
        match self.is_output() {
            true => "reading what was written of the output",
            false => DOING,
        }
    }

    /// Where reading ends, if that is known. Where it is not known whether a record begins in the part at all, reading
    /// goes no further than its end until that has shown.
    pub(super) fn known_end(&self) -> Option<u64> {
        self.end.filter(|_| self.begins)
    }

    /// The piece that begins at `from`; none behind the end.
    pub(super) fn piece(&self, number: usize, from: u64, chunk_bytes: u64) -> Option<Piece> {
        let end = self.known_end().unwrap_or(self.to);
        if from >= end || self.from >= self.to {
            return None;
        }
        let mut to = end.min((from / chunk_bytes + 1) * chunk_bytes);
        // A little more than a chunk fits into its buffer.
        if end - to <= BEHIND_BYTES {
            to = end;
        }
        Some(Piece {
            part: number,
            from,
            to,
            chunk: self.number_at(from, chunk_bytes),
            is_first: from == self.from,
            is_last: to == end,
        })
    }

    /// The number of the chunk at byte `at`; of what lies behind the part, a number between the chunks at its end.
    pub(super) fn number_at(&self, at: u64, chunk_bytes: u64) -> u64 {
        if self.is_of_one_chunk {
            return self.chunk;
        }
        let chunks = at.min(self.to) / chunk_bytes - self.from / chunk_bytes;
        let number = self.chunk + chunks * NUMBERS_PER_CHUNK;
        number - u64::from(at >= self.to)
    }

    /// How far beyond its end the reader looks for that of its last record.
    fn behind(&self) -> u64 {
        // A record begins where the part ends, whether one begins in it or not.
        let ends_there = self.end == Some(self.to);
        match self.known_end() {
            None if !ends_there => BEHIND_BYTES.min(self.file_bytes - self.to),
            _ => 0,
        }
    }
}

/// What of a part comes into one buffer: a chunk of the file, or what there is of it.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    /// Which part it is of, from 0.
    pub part: usize,
    pub from: u64,
    pub to: u64,
    /// The number of the chunk.
    pub chunk: u64,
    pub is_first: bool,
    pub is_last: bool,
}

/// Where in a buffer bytes of a file lie.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    /// The first byte that is read, at an aligned place, and where it comes to lie.
    pub from: u64,
    pub at: usize,
    /// Behind the last byte that is looked at, and behind the last that is read.
    pub looked_to: u64,
    pub to: u64,
}

impl Spot {
    pub(super) fn of(plan: &Plan, part: &Part, piece: &Piece) -> Self {
        let headroom = plan.headroom_bytes;
        // Whether a record begins there shows in the byte before.
        let before = match piece.is_first && !part.begins {
            true => ALIGN_BYTES,
            false => 0,
        };
        let behind = if piece.is_last { part.behind() } else { 0 };
        let looked_to = piece.to + behind;
        Self {
            from: align_down(piece.from) - before as u64,
            at: headroom - before,
            looked_to,
            to: align_up(looked_to),
        }
    }

    /// Where the byte at `offset` of the file lies in the buffer.
    pub(super) fn index(&self, offset: u64) -> usize {
        self.at + (offset - self.from) as usize
    }

    /// Where the byte at `index` of the buffer lies in the file.
    pub(super) fn offset(&self, index: usize) -> u64 {
        self.from + (index - self.at) as u64
    }

    pub(super) fn bytes(&self) -> usize {
        (self.to - self.from) as usize
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use std::path::Path;

    use sortmill_io::os::Access;
    use sortmill_io::sim::Sim;

    use super::*;

    const CHUNK_BYTES: u64 = 16_384;
    const FILE_BYTES: u64 = 9 * CHUNK_BYTES + 100;

    fn part(from: u64, to: u64, begins: bool, end: Option<u64>) -> Part {
        let sim = Sim::new(1);
        sim.put("/in", b"");
        let file = sortmill_io::Os::open(&sim, Path::new("/in"), Access::Direct).unwrap();
        Part {
            file: Arc::new(file),
            file_bytes: FILE_BYTES,
            input: 0,
            from,
            to,
            begins,
            end,
            chunk: 100 + from / CHUNK_BYTES * NUMBERS_PER_CHUNK,
            is_of_one_chunk: false,
            bytes: to.saturating_sub(from),
            goes: Goes::ByKey,
        }
    }

    /// Where the pieces of a part begin and end, in chunks, and their numbers.
    fn check(part: &Part, expected: &[(u64, u64, u64)]) {
        let mut pieces = Vec::new();
        let mut at = part.from;
        while let Some(piece) = part.piece(7, at, CHUNK_BYTES) {
            assert_eq!((piece.part, piece.from), (7, at));
            assert_eq!(piece.is_first, pieces.is_empty());
            pieces.push((piece.from, piece.to, piece.chunk));
            at = piece.to;
            assert_eq!(piece.is_last, part.piece(7, at, CHUNK_BYTES).is_none());
        }
        assert_eq!(pieces, expected);
    }

    #[test]
    fn a_part_is_read_by_chunks_and_a_little_more() {
        const C: u64 = CHUNK_BYTES;
        check(&part(0, 2 * C, true, None), &[(0, C, 100), (C, 2 * C, 102)]);
        // Where it is known to end a little further, that comes along.
        check(
            &part(10, 2 * C, true, Some(2 * C + 4095)),
            &[(10, C, 100), (C, 2 * C + 4095, 102)],
        );
        // What lies further behind it has a number between those of the chunks there.
        check(
            &part(2 * C - 1, 2 * C, true, Some(4 * C + 1)),
            &[
                (2 * C - 1, 2 * C, 102),
                (2 * C, 3 * C, 103),
                (3 * C, 4 * C + 1, 103),
            ],
        );
        // Nobody knows whether a record begins in it that ends there.
        check(&part(C, 2 * C, false, Some(4 * C + 1)), &[(C, 2 * C, 102)]);
        // The end of the file comes along too.
        check(
            &part(8 * C, FILE_BYTES, false, Some(FILE_BYTES)),
            &[(8 * C, FILE_BYTES, 116)],
        );
        // All of it lies in a record of the part before.
        check(&part(3 * C, 2 * C, true, None), &[]);
        check(&part(2 * C, 2 * C, true, Some(3 * C)), &[]);
        // Where a record is known to begin a little behind a chunk, that is as far as is read.
        let cut = part(C, 2 * C + 4095, false, Some(2 * C + 4095));
        check(&cut, &[(C, 2 * C + 4095, 102)]);
        assert_eq!(
            (cut.behind(), part(C, 2 * C, false, None).behind()),
            (0, 4095)
        );
        let one = Part {
            is_of_one_chunk: true,
            chunk: 9,
            ..part(C + 3, 3 * C + 5, true, Some(3 * C + 5))
        };
        check(&one, &[(C + 3, 2 * C, 9), (2 * C, 3 * C + 5, 9)]);
    }
}
