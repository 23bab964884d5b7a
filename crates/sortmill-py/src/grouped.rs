//! Groups on their way from the engine to a function of the user's, in this process or in one of a pool.
//!
//! The engine hands records out one after the other. They are gathered with a mark in front of each, and one behind each
//! group, until there are enough for a handover or no more come; a group that is longer is handed over in several. What the
//! function made comes out in between, in the order of the groups.
//!
//! A process that dies takes the group along that was open. So the records of that group are kept here, as long as they are
//! few, and of a pure function they are given to another process with those of the batch, from the group's first record on;
//! what it had made of them before comes again and is passed by. What groups counted is told with the last piece that was
//! made of a batch, of those that have ended, so it counts once.

use std::sync::Arc;

use sortmill::error::Result;
use sortmill::pipeline::{Column, Event, MakeStreamFn, Sink};

use crate::batched::Definition;
use crate::groups::{GROUP_END, RECORD, Stream, Turned};
use crate::pool::{ATTEMPTS, Bond, Broken, Pool, died, failure};
use crate::running::Running;
use crate::wire::{Ask, Request, no_batch};

/// Bytes of records that are handed over at once.
const HANDOVER_BYTES: usize = 64 << 10;
/// The same where they go to another process.
const BATCH_BYTES: usize = 256 << 10;
/// So many bytes of a group's records are kept in case its process dies.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Calls function `number` with all groups of a partition.
pub fn groups(definition: &Arc<Definition>, number: usize, running: &Arc<Running>) -> MakeStreamFn {
    let (definition, running) = (Arc::clone(definition), Arc::clone(running));
    Arc::new(move || {
        let (definition, running) = (Arc::clone(&definition), Arc::clone(&running));
        let mut gathering: Option<Gathering> = None;
        Box::new(move |event, out| {
            if let (None, Event::End) = (&gathering, event) {
                return Ok(());
            }
            let begin = || Gathering::new(&definition, number, &running);
            gathering.get_or_insert_with(begin).take(event, out)
        })
    })
}

/// Where the function is.
enum To {
    Here(Stream),
    There(Box<Pooled>),
}

/// The group that goes on behind a batch.
#[derive(Clone, Copy)]
enum Open {
    /// There is none.
    None,
    /// It begins there in the batch; or in one before.
    From(Option<usize>),
}

/// Records that are gathered for a handover.
struct Gathering {
    to: To,
    records: Vec<u8>,
    count: usize,
    /// Where in them the last group begins, if it does so there.
    open_from: Option<usize>,
    full_bytes: usize,
    definition: Arc<Definition>,
    number: usize,
    running: Arc<Running>,
}

impl Gathering {
    fn new(definition: &Arc<Definition>, number: usize, running: &Arc<Running>) -> Self {
        let (to, full_bytes) = match running.pool() {
            None => {
                let stream = Stream::start(definition, &running.raised);
                (To::Here(stream), HANDOVER_BYTES)
            }
            Some(pool) => {
                let pooled = Pooled::new(definition, number, (running, pool));
                (To::There(Box::new(pooled)), BATCH_BYTES)
            }
        };
        Self {
            to,
            records: Vec::new(),
            count: 0,
            open_from: Some(0),
            full_bytes,
            definition: Arc::clone(definition),
            number,
            running: Arc::clone(running),
        }
    }

    fn take(&mut self, event: Event<'_>, out: Sink<'_>) -> Result<()> {
        match event {
            Event::Record(record) => {
                self.records.push(RECORD);
                for (column, value) in self.definition.columns.iter().zip(record) {
                    column.put(value, &mut self.records);
                }
                self.count += 1;
            }
            Event::GroupEnd => {
                self.records.push(GROUP_END);
                self.open_from = Some(self.records.len());
            }
            Event::End => return self.hand_over(true, out),
        }
        match self.records.len() >= self.full_bytes {
            true => self.hand_over(false, out),
            false => Ok(()),
        }
    }

    /// Has the function work through what was gathered, and hands on what it makes.
    fn hand_over(&mut self, is_last: bool, out: Sink<'_>) -> Result<()> {
        let mut of = std::mem::take(&mut self.count);
        // Where the group begins that goes on behind these records, if one does.
        let goes_on = self.open_from != Some(self.records.len());
        let open = match goes_on {
            true => Open::From(self.open_from),
            false => Open::None,
        };
        loop {
            let began = std::time::Instant::now();
            let (turned, busy_ns) = match &mut self.to {
                To::Here(stream) => {
                    let turned = stream.turn(&mut self.records, is_last, 0);
                    (turned, began.elapsed().as_nanos() as u64)
                }
                To::There(pooled) => {
                    let turned = pooled.turn(&self.records, open, is_last)?;
                    (turned, pooled.busy_ns)
                }
            };
            self.running
                .tally(self.number, std::mem::take(&mut of), turned.count, busy_ns);
            self.running.count(self.number, &turned.said);
            if let Some(failure) = turned.failure {
                if let Some(raised) = failure.raised {
                    self.running.raise(raised, false);
                }
                return Err(*failure.error);
            }
            let mut rest = &turned.made[..];
            while !rest.is_empty() {
                let value = |column: &Column| column.take(&mut rest);
                let values: Option<Vec<_>> = self.definition.made.iter().map(value).collect();
                out(&values.ok_or_else(no_batch)?)?;
            }
            if turned.is_through {
                self.records.clear();
                self.open_from = (!goes_on).then_some(0);
                return Ok(());
            }
        }
    }
}

/// A function that is called in a process of a pool.
struct Pooled {
    definition: Arc<Definition>,
    number: usize,
    running: Arc<Running>,
    bond: Bond,
    /// The records of the group that is open, of batches that the function is through with, and those of the batch in hand
    /// behind them.
    sent: Vec<u8>,
    /// Where in it the batch in hand begins, if one is in hand.
    batch_from: Option<usize>,
    /// A group is open.
    is_open: bool,
    /// Too much of it came before to be kept.
    is_cut: bool,
    /// How many records have come of those in `sent`.
    received: usize,
    /// An answer.
    piece: Vec<u8>,
    /// How long the function worked for it.
    pub busy_ns: u64,
}

impl Pooled {
    fn new(
        definition: &Arc<Definition>,
        number: usize,
        (running, pool): (&Arc<Running>, &Arc<Pool>),
    ) -> Self {
        Self {
            definition: Arc::clone(definition),
            number,
            running: Arc::clone(running),
            bond: Bond::new(pool),
            sent: Vec::new(),
            batch_from: None,
            is_open: false,
            is_cut: false,
            received: 0,
            piece: Vec::new(),
            busy_ns: 0,
        }
    }

    /// What the function makes next of `records`: of the same ones until it is through. `open` is what goes on behind them.
    fn turn(&mut self, records: &[u8], open: Open, is_last: bool) -> Result<Turned> {
        let (mut from, mut goes_on) = match self.batch_from {
            // The next piece: nothing is sent.
            Some(_) => (None, true),
            None => {
                self.batch_from = Some(self.sent.len());
                self.sent.extend_from_slice(records);
                (self.batch_from, self.is_open)
            }
        };
        let (mut attempt, mut again) = (1, 0);
        let turned = loop {
            match self.ask((from, goes_on), is_last) {
                // All of this piece has come before.
                Ok(turned) if self.received <= again && !turned.is_through => {
                    (from, goes_on) = (None, true);
                }
                Ok(turned) => break self.behind(turned, again)?,
                Err(Broken::Job(error)) => return Err(*error),
                Err(Broken::Died(how)) => {
                    let is_lost = self.definition.keeps_state;
                    if !self.definition.is_pure || is_lost || self.is_cut || attempt == ATTEMPTS {
                        let why = match (is_lost, self.is_cut) {
                            (true, _) => "what its object kept is lost".to_owned(),
                            (_, true) => "more came of its group before than is kept".to_owned(),
                            _ => format!("this happened {attempt} times with the same records"),
                        };
                        return Err(died(&self.definition, &how, &why));
                    }
                    attempt += 1;
                    again = again.max(self.received);
                    (self.received, from, goes_on) = (0, Some(0), false);
                }
            }
        };
        if turned.is_through {
            self.keep(open, turned.of_open);
        }
        Ok(turned)
    }

    /// The function is through with the batch in hand: keeps the group that is open.
    fn keep(&mut self, open: Open, of_open: usize) {
        let batch_from = self.batch_from.take().unwrap_or(0);
        self.received = of_open;
        self.is_open = matches!(open, Open::From(_));
        match open {
            Open::From(Some(from)) => {
                self.sent.drain(..batch_from + from);
                self.is_cut = false;
            }
            Open::From(None) => {}
            Open::None => {
                self.sent.clear();
                self.is_cut = false;
            }
        }
        self.is_cut |= self.sent.len() > KEPT_BYTES_MAX;
        if self.is_cut || !self.definition.is_pure {
            self.sent = Vec::new();
        }
    }

    /// Has it work through `sent` from there on, or go on with that; it `goes_on` in the same process with what was before.
    fn ask(
        &mut self,
        (from, goes_on): (Option<usize>, bool),
        is_last: bool,
    ) -> std::result::Result<Turned, Broken> {
        let ask = match (from, is_last) {
            (None, _) => Ask::More,
            (Some(_), false) => Ask::Groups,
            (Some(_), true) => Ask::LastGroups,
        };
        let request = Request {
            function: self.number,
            ..Request::new(ask)
        };
        let sent = from.map_or(&[][..], |from| &self.sent[from..]);
        let needs_the_same = goes_on || self.definition.keeps_state && self.bond.has_begun();
        let answer = self
            .bond
            .ask(request, sent, needs_the_same, &mut self.piece)?;
        let (made, said) = self.piece.split_at(answer.bytes);
        if answer.is_failure {
            let error = failure(&self.running, made, false);
            return Err(Broken::Job(Box::new(error)));
        }
        self.busy_ns = answer.busy_ns;
        self.received += answer.count;
        Ok(Turned {
            made: made.to_vec(),
            count: answer.count,
            of_open: answer.at,
            said: said.to_vec(),
            is_through: !answer.has_more,
            failure: None,
        })
    }

    /// Without what came before, which is all but the last of what has come if `again` records did.
    fn behind(&self, mut turned: Turned, again: usize) -> Result<Turned> {
        let behind = self.received.saturating_sub(again).min(turned.count);
        let mut rest = &turned.made[..];
        for _ in behind..turned.count {
            for column in &self.definition.made {
                column.take(&mut rest).ok_or_else(no_batch)?;
            }
        }
        let from = turned.made.len() - rest.len();
        turned.made.drain(..from);
        turned.count = behind;
        Ok(turned)
    }
}
