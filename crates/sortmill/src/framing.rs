//! What a reduce function makes, gathered into pieces of the output that hold many records each.
//!
//! A file's records are gathered in their order, whichever partition they are of, so what is in which piece follows from the
//! records alone. Each piece tells how many it holds: they must be as many as came.

use crate::error::{Error, ErrorKind, Result};
use crate::job::{Framer, Framing};

/// So much memory is kept for the next piece.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// What gathers, and a piece on its way out.
pub struct Framed {
    framer: Framer,
    tail: Vec<u8>,
    piece: Vec<u8>,
    /// How many records have come, and how many went out in pieces.
    came: u64,
    went: u64,
}

impl Framed {
    /// Nothing gathered yet.
    #[must_use]
    pub fn new(framing: &Framing) -> Self {
        Self {
            framer: (framing.make)(),
            tail: framing.tail.clone(),
            piece: Vec::new(),
            came: 0,
            went: 0,
        }
    }

    /// Takes a record, and hands a piece to `out` if one is complete.
    ///
    /// # Errors
    /// Those of who gathers, and that of `out`.
    pub fn put(&mut self, record: &[u8], out: impl FnOnce(&[u8]) -> Result<()>) -> Result<()> {
        self.came += 1;
        self.step(Some(record), out)
    }

    /// Hands the last piece of a file to `out`, and what comes behind it.
    ///
    /// # Errors
    /// As of [`Framed::put`], and [`ErrorKind::Lost`] when pieces hold other than what came.
    pub fn end(&mut self, mut out: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.step(None, &mut out)?;
        if self.went != self.came {
            let (came, went) = (self.came, self.went);
            let cause = format!("{came} records were gathered, and pieces hold {went}");
            return Err(Error::new(ErrorKind::Lost, "gathering records", cause));
        }
        out(&self.tail)
    }

    fn step(&mut self, record: Option<&[u8]>, out: impl FnOnce(&[u8]) -> Result<()>) -> Result<()> {
        let held = (self.framer)(record, &mut self.piece)?;
        if held == 0 {
            return Ok(());
        }
        self.went += held;
        out(&self.piece)?;
        self.piece.clear();
        self.piece.shrink_to(KEPT_BYTES_MAX);
        Ok(())
    }
}
