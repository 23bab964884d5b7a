//! What lies between those who read sorted rows and the one who merges them: a queue of pieces for each row.
//!
//! A **row** is an input that is in order already, or a run that was made of several. It comes in pieces: buffers of
//! whole records, in order. Whoever reads owns a piece until it is in its row's queue, whoever merges from there on;
//! its memory is free when the last of its records has gone.
//!
//! The merge can go on only while every row has a record. So it says which row it waits for before it gives back that
//! row's last buffer: whoever takes a free buffer and then looks finds the row that needs it, and however the others
//! were filled, there is one buffer for it. What is said holds until the merge has taken a piece and a little longer, so it
//! counts for nothing as long as there are rows without any: each has a buffer of its own, and none comes back before.

use std::ops::Range;

use sortmill_io::Buffer;
use sortmill_io::frame::Header;
use sortmill_io::sync::atomic::{AtomicUsize, Ordering};

use crate::queue::{Queue, Stop};
use crate::spread::Spot;

/// A sorted file of records among the temporary data: its blocks, in order.
pub struct Run {
    /// What each block says of itself, and where it lies.
    pub blocks: Vec<(Header, Spot)>,
}

/// Whole records of a row, in memory.
pub struct Piece {
    /// The memory.
    pub buffer: Buffer,
    /// Where in it the records lie, back to back; at least one.
    pub records: Range<usize>,
    /// Where in its input the first of them begins; of a run that means nothing.
    pub offset: u64,
    /// And at which line of it, from 1; only of records of columns.
    pub line: u64,
    /// That input was compressed: the offset is one of the decompressed bytes.
    pub is_unpacked: bool,
}

/// A queue for each row.
pub struct RowQueues {
    pieces: Vec<Queue<Piece>>,
    /// The row that is waited for; its count where there is none.
    wanted: AtomicUsize,
}

impl RowQueues {
    /// Queues for `row_count` rows, each for at most `piece_count` pieces. They are closed when the job ends early.
    #[must_use]
    pub fn new(row_count: usize, piece_count: usize, stop: &Stop) -> Self {
        let queues = (0..row_count).map(|_| Queue::growing(piece_count));
        let pieces: Vec<Queue<Piece>> = queues.collect();
        let closed = pieces.clone();
        stop.on_stop(move || closed.iter().for_each(Queue::abort));
        Self {
            pieces,
            wanted: AtomicUsize::new(row_count),
        }
    }

    /// How many rows there are.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.pieces.len()
    }

    /// Puts the next piece of `row`.
    ///
    /// # Errors
    /// The piece, when the job is ending.
    pub fn put(&self, row: usize, piece: Piece) -> std::result::Result<(), Piece> {
        self.pieces[row].push(piece)
    }

    /// The last piece of `row` has been put.
    pub fn end(&self, row: usize) {
        self.pieces[row].close();
    }

    /// Pieces of `row` that wait to be merged.
    #[must_use]
    pub fn waiting(&self, row: usize) -> usize {
        self.pieces[row].len()
    }

    /// The row that is waited for, or was until now.
    #[must_use]
    pub fn wanted(&self) -> Option<usize> {
        let row = self.wanted.load(Ordering::SeqCst);
        (row < self.pieces.len()).then_some(row)
    }

    /// Gives back the memory of the piece of `row` that is `done` and waits for the next one. `None` at the row's
    /// end, and when the job is ending.
    #[must_use]
    pub fn next(&self, row: usize, done: Option<Piece>) -> Option<Piece> {
        self.wanted.store(row, Ordering::SeqCst);
        drop(done);
        let piece = self.pieces[row].pop();
        self.wanted.store(self.pieces.len(), Ordering::SeqCst);
        piece
    }
}
