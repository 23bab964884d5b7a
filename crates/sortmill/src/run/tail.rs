//! From sorted records to the output: as they are, through a reduce function, as runs, or the first few of them.
//!
//! What runs and the first few need to know of the units before is handed on from unit to unit, which take turns then:
//! the **tail**, which the phase keeps.

use super::Shared;
use super::ahead::Ahead;
use super::long::put_item;
use super::made_parts::MadeParts;
use super::sorting::{Done, Span};
use crate::bodies::BodyReader;
use crate::emit::{Emitted, Emitter};
use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::job::{Job, Reducer};
use crate::long::Item;
use crate::metrics::{Meter, Stage};
use crate::order::Order;
use crate::plan::Plan;
use crate::runs::Counter;
use crate::stage::write::Sink;
use crate::yields::Yield;

/// What units hand on to each other.
#[derive(Default)]
pub enum Tail {
    /// Nothing.
    #[default]
    None,
    /// The run that is open.
    Runs(Box<Counter>),
    /// How many records are still to come out.
    Left(u64),
    /// The file that is being filled.
    Parts(Box<MadeParts>),
}

impl Tail {
    /// Before the first unit. `key` is the fingerprints'.
    pub fn new(job: &Job, plan: &Plan, key: u64, span: &Span<'_>) -> Self {
        if let Some(cut) = span.made_parts {
            return Self::Parts(Box::new(MadeParts::new(cut, span.header, key)));
        }
        let delimiter = || job.map_makes_pairs.then(|| plan.input_order().delimiter());
        match job.yields {
            Yield::All | Yield::Shuffled(_) => Self::None,
            Yield::Runs(runs) => Self::Runs(Box::new(Counter::new(runs, delimiter(), key))),
            Yield::First(count) => Self::Left(count),
        }
    }

    /// Behind the last unit: puts out the run that is still open.
    pub fn end(&mut self, sink: &mut Sink<'_>, meter: &mut Meter<'_>) -> Result<()> {
        match self {
            Self::None | Self::Left(_) | Self::Parts(_) => Ok(()),
            Self::Runs(counter) => counter.end(|line| sink.put(line, meter)),
        }
    }

    /// What was gathered came out in part: the rest is what was dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] when runs do not add up to what was gathered.
    pub fn settle(self, done: &mut Done) -> Result<()> {
        let Self::Runs(counter) = self else {
            return Ok(());
        };
        done.written = counter.written;
        if counter.is_of_pairs() {
            // They are counted against what was read, once all of it is known.
            done.counter = Some(counter);
            return Ok(());
        }
        counter.prove(&done.gathered)?;
        done.dropped.merge(&done.gathered.without(&counter.kept));
        done.gathered = counter.kept;
        Ok(())
    }
}

/// What becomes of records.
pub enum Makes<'w> {
    /// They come out as they are.
    Same,
    /// What a function makes of them.
    Reduced(Reducer),
    /// What units hand on to each other decides.
    ByTail(&'w mut Tail),
}

/// Where what comes out goes.
pub enum Out<'w, 'a> {
    /// To the place of the unit in the output, or, of units that take turns, behind what came before.
    Sink(&'w mut Sink<'a>),
    /// There when its turn has come.
    Ahead(Ahead<'w, 'a>),
}

impl Out<'_, '_> {
    #[inline]
    fn put(&mut self, record: &[u8], meter: &mut Meter<'_>) -> Result<()> {
        match self {
            Self::Sink(sink) => sink.put(record, meter),
            Self::Ahead(ahead) => ahead.put_all(record, 1, meter),
        }
    }

    /// Puts what a function made of `count` records.
    fn put_all_made(&mut self, made: &[u8], count: u64, meter: &mut Meter<'_>) -> Result<()> {
        match self {
            Self::Sink(sink) => sink.put_all_made(made, count, meter),
            Self::Ahead(ahead) => ahead.put_all(made, count, meter),
        }
    }
}

/// From sorted records to the output.
pub struct WayOut<'w, 'a> {
    pub shared: &'w Shared<'w>,
    pub order: &'w Order,
    pub makes: Makes<'w>,
    /// What came out of the sorters.
    pub gathered: Fingerprint,
    /// What of it did not come out, because enough had.
    pub dropped: Fingerprint,
    /// What a reduce function made that has not come out yet.
    emitted: Emitted,
    pub made: MadeOut<'w, 'a>,
}

impl<'w, 'a> WayOut<'w, 'a> {
    /// Nothing has come. What a function makes goes to `parts` if there are some.
    pub fn new(
        (shared, order): (&'w Shared<'w>, &'w Order),
        makes: Makes<'w>,
        out: Out<'w, 'a>,
        parts: Option<&'w mut MadeParts>,
    ) -> Self {
        Self {
            shared,
            order,
            makes,
            gathered: Fingerprint::default(),
            dropped: Fingerprint::default(),
            emitted: Emitted::default(),
            made: MadeOut {
                shared,
                out,
                parts,
                reduced: Fingerprint::default(),
            },
        }
    }

    #[inline]
    pub fn put(&mut self, record: &[u8], meter: &mut Meter<'_>) -> Result<()> {
        match self.makes {
            Makes::Same => self.made.out.put(record, meter),
            Makes::Reduced(_) => self.reduce(Some(record), meter),
            Makes::ByTail(_) => self.put_to_tail(record, meter),
        }
    }

    #[inline]
    fn put_to_tail(&mut self, record: &[u8], meter: &mut Meter<'_>) -> Result<()> {
        let out = &mut self.made.out;
        let Makes::ByTail(tail) = &mut self.makes else {
            unreachable!("it was just seen");
        };
        match tail {
            Tail::None | Tail::Parts(_) => out.put(record, meter),
            Tail::Runs(counter) => counter.next(record, |line| out.put(line, meter)),
            Tail::Left(0) => {
                self.dropped.add(record, self.shared.number);
                Ok(())
            }
            Tail::Left(left) => {
                *left -= 1;
                out.put(record, meter)
            }
        }
    }

    /// Takes a record, long or not, and counts it as gathered.
    pub fn put_item(
        &mut self,
        item: &Item<'_>,
        bodies: &mut BodyReader<'_>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let key = self.shared.number;
        if let (Makes::Same, Out::Sink(sink)) = (&self.makes, &mut self.made.out) {
            return put_item(sink, &mut self.gathered, key, item, bodies, meter);
        }
        let whole;
        let record = match item {
            Item::Record(record) => record,
            Item::Stub(stub) => {
                whole = bodies.take_whole(stub, Stage::Reduce, meter)?;
                &whole[..]
            }
        };
        self.gathered.add(record, key);
        self.put(record, meter)
    }

    /// Hands the next record to the reduce function, if there is one, or tells it that there is none: then all that it made goes on.
    pub fn reduce(&mut self, record: Option<&[u8]>, meter: &mut Meter<'_>) -> Result<()> {
        let Makes::Reduced(reducer) = &mut self.makes else {
            return Ok(());
        };
        let (made, mut result) = (&mut self.made, Ok(()));
        let mut go_on = |emitted: &mut Emitted| {
            if result.is_ok() {
                result = made.put(emitted, meter);
            }
            emitted.clear();
        };
        reducer(record, &mut Emitter::new(&mut self.emitted, &mut go_on));
        match record {
            Some(_) => result,
            None => result.and_then(|()| self.end_reduced(meter)),
        }
    }

    /// Puts out all that the reduce function made.
    pub fn end_reduced(&mut self, meter: &mut Meter<'_>) -> Result<()> {
        self.made.put(&self.emitted, meter)?;
        self.emitted.clear();
        Ok(())
    }
}

/// Where records go, and what of them a reduce function made.
pub struct MadeOut<'w, 'a> {
    shared: &'w Shared<'w>,
    pub out: Out<'w, 'a>,
    /// Which of several files.
    parts: Option<&'w mut MadeParts>,
    /// What has come out.
    pub reduced: Fingerprint,
}

impl MadeOut<'_, '_> {
    /// Puts out what was made.
    fn put(&mut self, emitted: &Emitted, meter: &mut Meter<'_>) -> Result<()> {
        let (plan, key) = (self.shared.plan, self.shared.number);
        if self.shared.job.reduce_makes_bytes.is_none() {
            let is_right = |record: &[u8]| {
                plan.order.is_record(record) && record.len() <= plan.record_bytes_max
            };
            if let Some(wrong) = emitted.records().find(|record| !is_right(record)) {
                return Err(Error::new(
                    ErrorKind::Usage,
                    "calling the reduce function",
                    format!(
                        "it made {} bytes that are not one record of the job's format",
                        wrong.len()
                    ),
                ));
            }
        }
        if let (Some(parts), Out::Sink(sink)) = (&mut self.parts, &mut self.out) {
            for made in emitted.records() {
                let record = parts.put(made, sink, meter)?;
                self.reduced.add(record, key);
            }
            return Ok(());
        }
        for record in emitted.records() {
            self.reduced.add(record, key);
        }
        let count = emitted.count() as u64;
        self.out.put_all_made(emitted.bytes(), count, meter)
    }
}
