//! What a reduce function makes, in several files: so many of one after the other that all parts have as many, or one more.
//!
//! ```text
//! made      0 1 2 3 4 5 6 7 8 9         10 of them, known before: as many as were distributed
//! part 0   |0 1 2|                      part p begins with number p * 10 / 3, rounded down
//! part 1         |3 4 5|                each file begins with the heading, which is nobody's record
//! part 2               |6 7 8 9|
//! ```
//!
//! Or it tells the part of each itself, in rising order.
//!
//! Nobody knows how long what a function makes will be, so units take turns and one sink goes from file to file. How many
//! there will be is known only of a function that makes one of each record; another number is its fault, and no output.

use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::manifest::Part;
use crate::metrics::Meter;
use crate::parts::Even;
use crate::stage::write::{Output, Sink};

/// How many parts there are, and what goes to which.
#[derive(Clone, Copy)]
pub enum MadeCut {
    /// As many records as to any other, or one more.
    Even(Even),
    /// What is made tells it ([`crate::job::Job::reduce_tells_part`]), of so many parts.
    Told(u64),
}

impl MadeCut {
    /// How many parts.
    pub fn count(self) -> u64 {
        match self {
            Self::Even(even) => even.count,
            Self::Told(count) => count,
        }
    }
}

/// Where parts end.
pub struct MadeParts {
    cut: MadeCut,
    heading: Vec<u8>,
    /// What fingerprints are keyed by.
    key: u64,
    /// How many have come.
    count: u64,
    /// Those of the part that is being filled.
    open: Fingerprint,
    /// The parts that are full.
    parts: Vec<Part>,
}

impl MadeParts {
    /// None has come. Each part begins with `heading`.
    pub fn new(cut: MadeCut, heading: &[u8], key: u64) -> Self {
        Self {
            cut,
            heading: heading.to_vec(),
            key,
            count: 0,
            open: Fingerprint::default(),
            parts: Vec::new(),
        }
    }

    /// Takes what was made of the next record into `sink`, which goes on with the next file where one begins. Answers what of
    /// it comes out.
    ///
    /// # Errors
    /// [`ErrorKind::Function`] for more than there should be, and for a part that there is not or that is full; the job's, when it
    /// is ending.
    pub fn put<'m>(
        &mut self,
        made: &'m [u8],
        sink: &mut Sink<'_>,
        meter: &mut Meter<'_>,
    ) -> Result<&'m [u8]> {
        let (part, record) = self.part_of(made)?;
        while (self.parts.len() as u64) < part {
            self.next_part(sink, meter)?;
        }
        self.count += 1;
        self.open.add(record, self.key);
        sink.put_made(record, meter)?;
        Ok(record)
    }

    /// To which part the next goes, and what of it comes out.
    fn part_of<'m>(&self, made: &'m [u8]) -> Result<(u64, &'m [u8])> {
        let open = self.parts.len() as u64;
        match self.cut {
            MadeCut::Even(even) if self.count == even.records => {
                Err(other_count(even.records, "more than that"))
            }
            // Of fewer records than parts some have none.
            MadeCut::Even(even) => {
                let is_beyond = |&part: &u64| self.count < even.begin(part + 1);
                Ok(((open..).find(is_beyond).unwrap_or(open), made))
            }
            MadeCut::Told(count) => match made.split_first_chunk::<8>() {
                Some((part, record)) if (open..count).contains(&u64::from_le_bytes(*part)) => {
                    Ok((u64::from_le_bytes(*part), record))
                }
                _ => {
                    let cause = format!(
                        "what it made belongs to none of the parts from {open} on, of {count}"
                    );
                    Err(Error::new(ErrorKind::Function, DOING, cause))
                }
            },
        }
    }

    fn next_part(&mut self, sink: &mut Sink<'_>, meter: &mut Meter<'_>) -> Result<()> {
        self.end_part(sink, meter)?;
        sink.next_part();
        sink.put_part(&self.heading, meter)
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
        if let MadeCut::Even(even) = self.cut
            && self.count < even.records
        {
            return Err(other_count(even.records, &self.count.to_string()));
        }
        let mut sink = match sink {
            Some(sink) => sink,
            None => Sink::new(output, 0),
        };
        while (self.parts.len() as u64) + 1 < self.cut.count() {
            self.next_part(&mut sink, meter)?;
        }
        self.end_part(&mut sink, meter)?;
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
        sink.end_pieces(meter)?;
        self.parts.push(Part {
            fingerprint: std::mem::take(&mut self.open),
            stored_bytes: sink.gathers().then(|| sink.part_bytes()),
            ..Part::default()
        });
        sink.end_part(meter)
    }
}

const DOING: &str = "cutting the output";

fn other_count(records: u64, have: &str) -> Error {
    let cause = format!("it should make one of each of {records} records, and made {have}");
    Error::new(ErrorKind::Function, DOING, cause)
}
