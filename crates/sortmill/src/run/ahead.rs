//! Units that are reduced before their turn.
//!
//! How long the output of a reduce function is nobody knows before, so units take turns at the output. A unit whose turn
//! has not come is reduced all the same, into memory of the plan's (`Plan::ahead_bytes`); when that is full it waits for its turn,
//! puts out what is there, and goes on straight to the output. One that ends before its turn is left to who has the turn before it,
//! and its worker takes the next unit, as long as not too many are left so (`Plan::ahead_units`). So all cores reduce, also beside
//! a group that takes one of them long, and the output is in the order of units.
//!
//! Where a partition was divided within a group, the function that reduced the unit in front goes on with this one, in its turn.
//!
//! ```text
//! unit 3, its turn     records -> function -----------------------------> sink
//! unit 4               records -> function -> memory ... its turn comes -> sink
//! unit 5               records -> function -> memory, left, and put out behind unit 4
//! ```

use std::collections::BTreeMap;

use sortmill_io::sync::{Mutex, MutexGuard, lock};

use super::sorting::{Done, Phase};
use super::tail::{Out, WayOut};
use crate::error::Result;
use crate::metrics::{Meter, Stage, State};
use crate::stage::write::Sink;

/// What lies between workers.
pub struct Spares {
    lying: Mutex<Lying>,
}

struct Lying {
    /// Memory that was used for a unit and waits for the next one.
    empty: Vec<Vec<u8>>,
    /// What units made whose turns have not come, and of how many records; by their numbers.
    ended: BTreeMap<usize, (Vec<u8>, u64)>,
    ended_max: usize,
}

impl Spares {
    /// Nothing; so many units may be left until their turns come.
    #[must_use]
    pub fn new(ended_max: usize) -> Self {
        let lying = Lying {
            empty: Vec::new(),
            ended: BTreeMap::new(),
            ended_max,
        };
        Self {
            lying: Mutex::new(lying),
        }
    }
}

/// What one unit's function makes, before its turn and in it.
pub struct Ahead<'p, 'a> {
    phase: &'p Phase<'a>,
    number: usize,
    /// What was made before the turn, and of how many records.
    bytes: Vec<u8>,
    bytes_max: usize,
    records: u64,
    /// Once it has come.
    turn: Option<Turn<'p, 'a>>,
}

/// The output in the hands of one unit.
struct Turn<'p, 'a> {
    sink: MutexGuard<'p, Option<Sink<'a>>>,
    /// Bytes and records of the units before.
    before: (u64, u64),
}

impl<'a> Turn<'_, 'a> {
    fn sink(&mut self) -> &mut Sink<'a> {
        self.sink.as_mut().expect("it was put there")
    }
}

impl<'p, 'a> Ahead<'p, 'a> {
    fn new(phase: &'p Phase<'a>, number: usize) -> Self {
        let bytes_max = phase.shared.plan.ahead_bytes;
        let spare = lock(&phase.spares.lying).empty.pop();
        Self {
            phase,
            number,
            bytes: spare.unwrap_or_else(|| Vec::with_capacity(bytes_max)),
            bytes_max,
            records: 0,
            turn: None,
        }
    }

    /// Takes `count` records, back to back.
    ///
    /// # Errors
    /// The job's, when it is ending.
    pub fn put_all(&mut self, records: &[u8], count: u64, meter: &mut Meter<'_>) -> Result<()> {
        if self.turn.is_none() {
            if self.bytes.len() + records.len() <= self.bytes_max {
                self.bytes.extend_from_slice(records);
                self.records += count;
                return Ok(());
            }
            self.take_turn(meter)?;
        }
        match &mut self.turn {
            Some(turn) => turn.sink().put_all_made(records, count, meter),
            None => unreachable!("it was just taken"),
        }
    }

    /// Waits for the turn, if it has not come yet, and puts out what was made before.
    fn take_turn(&mut self, meter: &mut Meter<'_>) -> Result<()> {
        if self.turn.is_some() {
            return Ok(());
        }
        meter.lap(Stage::Reduce, State::Work);
        let its_turn = self.phase.places.wait_turn(self.number);
        meter.lap(Stage::Reduce, State::Output);
        if !its_turn {
            return Err(self.phase.shared.stop.error());
        }
        let mut kept = lock(&self.phase.sink);
        let sink = kept.get_or_insert_with(|| Sink::new(self.phase.output, 0));
        let before = (sink.bytes, sink.records);
        sink.put_all_made(&self.bytes, self.records, meter)?;
        self.bytes.clear();
        self.turn = Some(Turn { sink: kept, before });
        Ok(())
    }

    /// Behind the last record: everything is in the output, or left to who has the turn before. Answers how many bytes and records
    /// the unit made, and whether it had its turn, which is to be passed on.
    fn finish(mut self, meter: &mut Meter<'_>) -> Result<((u64, u64), bool)> {
        if self.turn.is_none() {
            let out = (self.bytes.len() as u64, self.records);
            if self.leave() {
                return Ok((out, false));
            }
            self.take_turn(meter)?;
        }
        lock(&self.phase.spares.lying)
            .empty
            .push(std::mem::take(&mut self.bytes));
        let mut turn = self.turn.take().expect("it was just taken");
        let (bytes, records) = turn.before;
        let sink = turn.sink();
        Ok(((sink.bytes - bytes, sink.records - records), true))
    }

    /// Leaves what was made to who has the turn before, unless its turn has come meanwhile or enough is left so.
    fn leave(&mut self) -> bool {
        // Who passes a turn on looks for the next unit under this lock, after that: either finds the other.
        let mut lying = lock(&self.phase.spares.lying);
        let is_left =
            lying.ended.len() < lying.ended_max && !self.phase.places.has_turn(self.number);
        if is_left {
            let made = (std::mem::take(&mut self.bytes), self.records);
            lying.ended.insert(self.number, made);
        }
        is_left
    }
}

impl<'a> Phase<'a> {
    /// Whether units are reduced before their turn.
    pub fn reduces_ahead(&self) -> bool {
        let job = self.shared.job;
        self.shared.plan.ahead_bytes > 0 && job.reduce.is_some() && job.yields.keeps_records()
    }

    /// Puts what a function makes of one unit's records, which `give` hands out, behind that of the units before.
    pub fn put_ahead(
        &self,
        number: usize,
        meter: &mut Meter<'_>,
        done: &mut Done,
        give: impl FnOnce(&mut WayOut<'_, 'a>, &mut Meter<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut ahead = Ahead::new(self, number);
        if self.goes_on(number) {
            // Not before the function is through with the unit in front.
            ahead.take_turn(meter)?;
        }
        let (shared, makes) = ((self.shared, &self.order), self.makes(Some(number)));
        let mut way = WayOut::new(shared, makes, Out::Ahead(ahead), None);
        give(&mut way, meter)?;
        let goes_on = self.goes_on(number + 1);
        if goes_on && let Out::Ahead(ahead) = &mut way.made.out {
            ahead.take_turn(meter)?;
        }
        self.end_groups(goes_on, &mut way, meter)?;
        let (gathered, reduced) = (way.gathered, way.made.reduced);
        let Out::Ahead(ahead) = way.made.out else {
            unreachable!("it was put there");
        };
        let (out, had_turn) = ahead.finish(meter)?;
        self.count_out((&gathered, &reduced), out, meter, done);
        done.units.push((number, gathered));
        match had_turn {
            true => self.pass_turn_on(number, meter),
            false => Ok(()),
        }
    }

    /// Ends the turn of unit `number`, and those of the units behind it that have ended already.
    fn pass_turn_on(&self, number: usize, meter: &mut Meter<'_>) -> Result<()> {
        for next in number + 1.. {
            self.places.end_turn();
            let ended = lock(&self.spares.lying).ended.remove(&next);
            let Some((mut bytes, records)) = ended else {
                break;
            };
            let mut kept = lock(&self.sink);
            let sink = kept.get_or_insert_with(|| Sink::new(self.output, 0));
            sink.put_all_made(&bytes, records, meter)?;
            drop(kept);
            bytes.clear();
            lock(&self.spares.lying).empty.push(bytes);
        }
        Ok(())
    }
}
