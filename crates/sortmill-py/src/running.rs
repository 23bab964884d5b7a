//! What functions did while a pipeline ran: calls, time, what they counted, what they raised.

use std::collections::BTreeMap;
use std::sync::Arc;

use pyo3::prelude::*;
use serde_json::{Value, json};
use sortmill::io::sync::{Mutex, lock};
use sortmill::queue::Stop;

use crate::batched::Definition;
use crate::pool::Pool;
use crate::runs::Place;
use crate::work::Raised;

/// One run: what is shared between the functions of its table, and where they are called.
#[derive(Default)]
pub struct Running {
    pub raised: Arc<Raised>,
    pool: Option<Arc<Pool>>,
    /// What functions raise ends it, though it only looks at a few records.
    is_look: bool,
    tallies: Mutex<BTreeMap<usize, Tally>>,
    /// What each function counted.
    counts: Mutex<BTreeMap<usize, Counts>>,
    /// What ends the run.
    stop: Mutex<Stop>,
}

/// Sums by their names.
type Counts = BTreeMap<String, i64>;

fn add(sums: &mut Counts, counted: &Counts) {
    for (name, &count) in counted {
        let sum = sums.entry(name.clone()).or_default();
        *sum = sum.saturating_add(count);
    }
}

/// What one function did.
#[derive(Clone, Copy, Default)]
struct Tally {
    calls: u64,
    records_in: u64,
    records_out: u64,
    busy_ns: u64,
}

impl Running {
    /// One in the processes of `pool` or in this one.
    pub fn new(pool: Option<Arc<Pool>>) -> Self {
        Self {
            pool,
            ..Self::default()
        }
    }

    /// One in this process that only looks at a few records.
    pub fn of_look() -> Self {
        Self {
            is_look: true,
            ..Self::default()
        }
    }

    /// The run ends with `stop`.
    pub fn ends_with(&self, stop: &Stop) {
        *lock(&self.stop) = stop.clone();
    }

    /// Whether the run is ending.
    pub fn is_stopped(&self) -> bool {
        lock(&self.stop).is_stopped()
    }

    /// The processes that functions run in, if they run in any.
    pub fn pool(&self) -> Option<&Arc<Pool>> {
        self.pool.as_ref()
    }

    /// Function `number` made `out` records of `of` in `busy_ns`.
    pub fn tally(&self, number: usize, of: usize, out: usize, busy_ns: u64) {
        let mut tallies = lock(&self.tallies);
        let tally = tallies.entry(number).or_default();
        tally.calls += u64::from(of > 0);
        tally.records_in += of as u64;
        tally.records_out += out as u64;
        tally.busy_ns += busy_ns;
    }

    /// Adds what function `number` counted, as lines of JSON, to its sums.
    pub fn count(&self, number: usize, said: &[u8]) {
        let lines = said.split(|&byte| byte == b'\n');
        for line in lines.filter(|line| !line.is_empty()) {
            let said: Counts = serde_json::from_slice(line).unwrap_or_default();
            add(lock(&self.counts).entry(number).or_default(), &said);
        }
    }

    /// Whether something was raised, by a function or a signal: then nobody wants what functions make any more.
    pub fn has_raised(&self) -> bool {
        self.raised.is_any()
    }

    /// Keeps what a function raised; not if it was called to plan the job, with what need not be a record at all: when the same
    /// records come again, it raises again.
    pub fn raise(&self, raised: PyErr, is_sample: bool) {
        if !is_sample || self.is_look {
            self.raised.push(raised);
        }
    }

    /// All of it, as data: `functions`, `counters`, `processes`.
    pub fn told(&self, functions: &[Arc<Definition>], place: Place) -> Value {
        let (tallies, counts) = (lock(&self.tallies), lock(&self.counts));
        let nothing = Counts::new();
        let function = |(number, definition): (usize, &Arc<Definition>)| {
            let tally = tallies.get(&number).copied().unwrap_or_default();
            json!({
                "id": definition.id,
                "verb": definition.kind.name(),
                "name": definition.name,
                "calls": tally.calls,
                "records_in": tally.records_in,
                "records_out": tally.records_out,
                "busy_ns": tally.busy_ns,
                "counters": counts.get(&number).unwrap_or(&nothing),
            })
        };
        let functions: Vec<Value> = functions.iter().enumerate().map(function).collect();
        let mut counters = Counts::new();
        for of_one in counts.values() {
            add(&mut counters, of_one);
        }
        let processes = match (place, &self.pool) {
            (_, Some(pool)) => pool.told(),
            (Place::Here(threads), None) => json!({"count": 0, "threads": threads}),
            (Place::Processes(_), None) => json!({"count": 0}),
        };
        json!({
            "functions": functions,
            "counters": counters,
            "processes": processes,
        })
    }
}
