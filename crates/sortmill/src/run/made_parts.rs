//! What a reduce function makes, in several files: so many of one after the other that all parts have as many, or one more.
//!
//! ```text
//! made      0 1 2 3 4 5 6 7 8 9         10 of them, known before: as many as were distributed
//! part 0   |0 1 2|                      part p begins with number p * 10 / 3, rounded down
//! part 1         |3 4 5|                each file begins with the heading, which is nobody's record
//! part 2               |6 7 8 9|
//! ```
//!
//! Nobody knows how long what a function makes will be, so units take turns and one sink goes from file to file. How many
//! there will be is known only of a function that makes one of each record; another number is its fault, and no output.

use super::pieces::Pieces;
use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::job::Framing;
use crate::manifest::Part;
use crate::metrics::Meter;
use crate::parts::Even;
use crate::stage::write::{Output, Sink};

/// Where parts end.
pub struct MadeParts {
    even: Even,
    heading: Vec<u8>,
    /// What fingerprints are keyed by.
    key: u64,
    /// What gathers records, if they come out so.
    pieces: Option<Pieces>,
    /// How many have come.
    count: u64,
    /// Those of the part that is being filled.
    open: Fingerprint,
    /// The parts that are full.
    parts: Vec<Part>,
}

impl MadeParts {
    /// None has come. Each part begins with `heading`, and has its records in pieces if there is a `framing`.
    pub fn new(even: Even, heading: &[u8], key: u64, framing: Option<&Framing>) -> Self {
        Self {
            even,
            heading: heading.to_vec(),
            key,
            pieces: framing.map(Pieces::new),
            count: 0,
            open: Fingerprint::default(),
            parts: Vec::new(),
        }
    }

    /// Takes what was made of the next record into `sink`, which goes on with the next file where one begins.
    ///
    /// # Errors
    /// [`ErrorKind::Function`] for more than there should be; the job's, when it is ending.
    pub fn put(&mut self, made: &[u8], sink: &mut Sink<'_>, meter: &mut Meter<'_>) -> Result<()> {
        if self.count == self.even.records {
            return Err(self.other_count("more than that"));
        }
        while self.count == self.even.begin(self.parts.len() as u64 + 1) {
            self.end_part(sink, meter)?;
            sink.next_part();
            sink.put_part(&self.heading, meter)?;
        }
        self.count += 1;
        self.open.add(made, self.key);
        match &mut self.pieces {
            None => sink.put(made, meter),
            Some(pieces) => {
                sink.records += 1;
                pieces.put(Some(made), |piece| sink.put_part(piece, meter))
            }
        }
    }

    /// No more comes: ends the last parts, of which none may have got anything. Without any record there is no `sink` yet.
    /// Answers the bytes of all.
    ///
    /// # Errors
    /// [`ErrorKind::Function`] for fewer than there should be; the job's, when it is ending.
    pub fn end<'a>(
        &mut self,
        output: &'a Output<'a>,
        sink: Option<Sink<'a>>,
        meter: &mut Meter<'_>,
    ) -> Result<u64> {
        if self.count < self.even.records {
            return Err(self.other_count(&self.count.to_string()));
        }
        let mut sink = match sink {
            Some(sink) => sink,
            None => Sink::new(output, 0),
        };
        self.end_part(&mut sink, meter)?;
        while (self.parts.len() as u64) < self.even.count {
            sink.next_part();
            sink.put_part(&self.heading, meter)?;
            self.end_part(&mut sink, meter)?;
        }
        Ok(sink.bytes)
    }

    /// The parts, whose names are still to be given; `stored` are the bytes of each where they are compressed.
    pub fn parts(mut self, stored: Option<&[u64]>) -> Vec<Part> {
        for (number, part) in self.parts.iter_mut().enumerate() {
            if let Some(stored) = stored {
                part.stored_bytes = Some(stored[number]);
            }
        }
        // Nothing of a record tells to which part it belongs.
        if let Some(first) = self.parts.first_mut() {
            first.from_key = Some(Vec::new());
        }
        self.parts
    }

    fn end_part(&mut self, sink: &mut Sink<'_>, meter: &mut Meter<'_>) -> Result<()> {
        if let Some(pieces) = &mut self.pieces {
            pieces.end(|piece| sink.put_part(piece, meter))?;
        }
        self.parts.push(Part {
            fingerprint: std::mem::take(&mut self.open),
            stored_bytes: self.pieces.as_ref().map(|_| sink.part_bytes()),
            ..Part::default()
        });
        sink.end_part(meter)
    }

    fn other_count(&self, have: &str) -> Error {
        let records = self.even.records;
        let cause = format!("it should make one of each of {records} records, and made {have}");
        Error::new(ErrorKind::Function, "cutting the output", cause)
    }
}
