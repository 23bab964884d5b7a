//! A function of batches that is called in a process of a pool.

use std::sync::Arc;

use sortmill::error::Error;
use sortmill::pipeline::{BatchFn, Gathered, Laid, Laying, Refused, RowSink, Value};

use crate::batched::Definition;
use crate::pool::{ATTEMPTS, Bond, Broken, Pool, died, failure};
use crate::running::Running;
use crate::wire::{Ask, PIECE_BYTES, Request, no_batch};

/// Such a function, in the hands of one worker.
pub struct Pooled {
    definition: Arc<Definition>,
    number: usize,
    running: Arc<Running>,
    bond: Bond,
    /// The batch, as it was sent.
    sent: Vec<u8>,
    count: usize,
    is_sample: bool,
    /// A piece of the answer, where records lie in it, and how many of these have been handed over.
    piece: Vec<u8>,
    laid: Laid,
    next: usize,
    /// Where in it begins what functions counted, as JSON.
    said: usize,
    has_more: bool,
    /// How many records of the answer lie in front of the piece's end.
    received: usize,
    /// How long the function worked for this piece.
    busy_ns: u64,
}

impl Pooled {
    pub fn new(
        definition: &Arc<Definition>,
        number: usize,
        running: &Arc<Running>,
        pool: &Arc<Pool>,
    ) -> Self {
        Self {
            definition: Arc::clone(definition),
            number,
            running: Arc::clone(running),
            bond: Bond::new(pool),
            sent: Vec::new(),
            count: 0,
            is_sample: false,
            piece: Vec::new(),
            laid: Laid::default(),
            next: 0,
            said: 0,
            has_more: false,
            received: 0,
            busy_ns: 0,
        }
    }

    /// Asks for the next piece.
    fn ask(&mut self, ask: Ask) -> Result<(), Refused> {
        let mut attempt = 1;
        let mut ask_now = ask;
        // How many records of an answer that is asked for again have come before.
        let mut again = 0;
        loop {
            match self.ask_once(ask_now) {
                // All of this piece has come before.
                Ok(()) if self.received <= again && self.has_more => ask_now = Ask::More,
                Ok(()) => {
                    let behind = self.received.saturating_sub(again);
                    self.next = self.laid.len().saturating_sub(behind);
                    if !self.is_sample {
                        let of = if ask == Ask::Call { self.count } else { 0 };
                        let made = self.laid.len() - self.next;
                        self.running.tally(self.number, of, made, self.busy_ns);
                        if again == 0 {
                            self.running.count(self.number, &self.piece[self.said..]);
                        }
                    }
                    return Ok(());
                }
                Err((at, Broken::Job(error))) => return Err((at, error)),
                Err((at, Broken::Died(how))) => {
                    self.next = 0;
                    let is_lost = self.definition.keeps_state;
                    if !self.definition.is_pure || is_lost || attempt == ATTEMPTS {
                        let why = match is_lost {
                            true => "what its object kept is lost".to_owned(),
                            false => format!("this happened {attempt} times with the same records"),
                        };
                        return Err((at, Box::new(died(&self.definition, &how, &why))));
                    }
                    attempt += 1;
                    again = again.max(self.received);
                    self.received = 0;
                    ask_now = if ask == Ask::Finish { ask } else { Ask::Call };
                }
            }
        }
    }

    fn ask_once(&mut self, ask: Ask) -> Result<(), (usize, Broken)> {
        let sent: &[u8] = if ask == Ask::Call { &self.sent } else { &[] };
        let request = Request {
            function: self.number,
            is_sample: self.is_sample,
            count: self.count,
            ..Request::new(ask)
        };
        if self.piece.capacity() > 8 * PIECE_BYTES {
            self.piece = Vec::new();
        }
        let keeps_state = self.definition.keeps_state && self.bond.has_begun();
        let needs_the_same = keeps_state || ask == Ask::More;
        let answer = self
            .bond
            .ask(request, sent, needs_the_same, &mut self.piece);
        let answer = answer.map_err(|broken| (0, broken))?;
        let bytes = &self.piece[..answer.bytes];
        if answer.is_failure {
            let error = failure(&self.running, bytes, self.is_sample);
            return Err((answer.at, Broken::Job(Box::new(error))));
        }
        let laid = Laid::find(&self.definition.made_kinds, answer.count, bytes);
        self.laid = laid.ok_or_else(|| (0, Broken::Job(Box::new(no_batch()))))?;
        self.busy_ns = answer.busy_ns;
        self.said = answer.bytes;
        self.next = 0;
        self.received += answer.count;
        self.has_more = answer.has_more;
        Ok(())
    }
}

impl BatchFn for Pooled {
    fn call(&mut self, batch: &Gathered, is_sample: bool) -> Result<(), Refused> {
        Laying::of(batch, 0..batch.len(), false).write(&mut self.sent);
        (self.count, self.is_sample) = (batch.len(), is_sample);
        (self.received, self.next) = (0, 0);
        self.ask(Ask::Call)
    }

    fn rows(&mut self, sink: RowSink<'_>, is_full: &dyn Fn() -> bool) -> Result<bool, Error> {
        loop {
            let kinds = &self.definition.made_kinds;
            while self.next < self.laid.len() {
                if is_full() {
                    return Ok(false);
                }
                let place = self.laid.place(&self.piece, self.next);
                let put = |values: &[Value<'_>]| sink(place, values);
                self.laid.with(kinds, &self.piece, self.next, put)?;
                self.next += 1;
            }
            if !self.has_more {
                return Ok(true);
            }
            if is_full() {
                return Ok(false);
            }
            self.ask(Ask::More).map_err(|(_, error)| *error)?;
        }
    }

    fn finish(&mut self, is_sample: bool) -> Result<(), Error> {
        self.laid = Laid::default();
        (self.next, self.has_more, self.received) = (0, false, 0);
        if !self.definition.keeps_state || !self.bond.has_begun() {
            return Ok(());
        }
        (self.count, self.is_sample) = (0, is_sample);
        self.ask(Ask::Finish).map_err(|(_, error)| *error)
    }
}
