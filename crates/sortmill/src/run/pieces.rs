//! What a reduce function makes, gathered into pieces of the output that hold many records each.

use crate::error::Result;
use crate::job::{Framer, Framing};

/// What gathers, and a piece on its way out.
pub struct Pieces {
    framer: Framer,
    tail: Vec<u8>,
    piece: Vec<u8>,
}

impl Pieces {
    /// Nothing gathered yet.
    pub fn new(framing: &Framing) -> Self {
        Self {
            framer: (framing.make)(),
            tail: framing.tail.clone(),
            piece: Vec::new(),
        }
    }

    /// Takes a record, or `None` behind the last of a partition or file, and hands a piece to `out` if one is complete.
    ///
    /// # Errors
    /// Those of who gathers, and that of `out`.
    pub fn put(
        &mut self,
        record: Option<&[u8]>,
        out: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.piece.clear();
        (self.framer)(record, &mut self.piece)?;
        match self.piece.is_empty() {
            true => Ok(()),
            false => out(&self.piece),
        }
    }

    /// Hands the last piece of a file to `out`, and what comes behind it.
    ///
    /// # Errors
    /// As of [`Pieces::put`].
    pub fn end(&mut self, mut out: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.put(None, &mut out)?;
        out(&self.tail)
    }
}
