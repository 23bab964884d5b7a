//! Aggregates of all records that pass by, told when the pipeline has run: what there is in all, without another pass.
//!
//! Spark's `Dataset.observe` is the model. Each worker, and each partition that is reduced, adds up for itself; when its records
//! have ended the states are merged, exactly and in any order (`aggregate.rs`), so what is told does not depend on threads.
//! Records that are only looked at to plan the job do not count.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use sortmill_io::sync::{Arc, Mutex, lock};

use super::aggregate::{Aggregate, Computed, Owned, State};
use super::column::{Value, corrupt};
use super::time;
use super::verbs::Step;
use super::{NodeKind, Table, wrong};
use crate::error::Result;

/// What a pipeline observed, by the names of the aggregates, in the order of its verbs.
#[derive(Clone, Debug, Default)]
pub struct Observed(Vec<(String, Owned)>);

impl Observed {
    /// What is called `name`: [`Value::Null`] for the least of no values, and the like. `None` if nothing is called so.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value<'_>> {
        let found = self.0.iter().find(|one| one.0 == name);
        found.map(|one| one.1.value())
    }

    /// The number that is called `name`, as a float.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Usage`] if nothing is called so, or it is no number.
    pub fn number(&self, name: &str) -> Result<f64> {
        match self.get(name) {
            Some(Value::I64(value)) => Ok(value as f64),
            Some(Value::U64(value)) => Ok(value as f64),
            Some(Value::F64(value)) => Ok(value),
            _ => Err(wrong(format!("no number was observed as {name}"))),
        }
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Value<'_>)> {
        self.0.iter().map(|(name, value)| (&**name, value.value()))
    }

    /// Whether nothing was to be observed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What steps observed that have run.
    pub(super) fn add(&mut self, steps: &[Step]) {
        for step in steps {
            if let Step::Observe(observe) = step {
                observe.tell(&mut self.0);
            }
        }
    }
}

/// An object; a float that is no number is null there, a time is text (RFC 3339).
impl Serialize for Observed {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in self.iter() {
            map.serialize_key(name)?;
            match value {
                Value::Null => map.serialize_value(&()),
                Value::Bytes(bytes) => map.serialize_value(&String::from_utf8_lossy(bytes)),
                Value::I64(value) => map.serialize_value(&value),
                Value::U64(value) => map.serialize_value(&value),
                Value::F64(value) => map.serialize_value(&value),
                Value::Bool(value) => map.serialize_value(&value),
                Value::Timestamp(micros) => {
                    let mut text = Vec::new();
                    time::write(micros, &mut text);
                    map.serialize_value(&String::from_utf8_lossy(&text))
                }
            }?;
        }
        map.end()
    }
}

/// Aggregates of what passes by, in one run.
#[derive(Clone)]
pub(super) struct Observe {
    names: Vec<String>,
    aggregates: Vec<Computed>,
    /// Of all who have ended; none yet if nobody has.
    all: Arc<Mutex<Vec<State>>>,
}

impl Observe {
    /// The same for a run of its own.
    pub fn begun(&self) -> Self {
        Self {
            all: Arc::new(Mutex::new(self.begin())),
            ..self.clone()
        }
    }

    fn begin(&self) -> Vec<State> {
        self.aggregates.iter().map(Computed::begin).collect()
    }

    /// Adds a record to what one worker has seen.
    #[inline]
    pub fn add(&self, seen: &mut Vec<State>, record: &[Value<'_>]) {
        if seen.is_empty() {
            *seen = self.begin();
        }
        for (aggregate, state) in self.aggregates.iter().zip(seen) {
            aggregate.add(state, record);
        }
    }

    /// Takes what a worker has seen, whose records have ended.
    pub fn end(&self, seen: &mut Vec<State>) -> Result<()> {
        let seen = std::mem::take(seen);
        let mut bytes = Vec::new();
        let mut all = lock(&self.all);
        for ((aggregate, state), all) in self.aggregates.iter().zip(&seen).zip(&mut *all) {
            // Nothing is merged of no values: there is no least of them that could be written.
            if let State::Value(None) = state {
                continue;
            }
            bytes.clear();
            aggregate.write(state, &mut bytes);
            let merged = aggregate.merge(all, &mut &bytes[..], &mut false);
            merged.ok_or_else(corrupt)?;
        }
        Ok(())
    }

    fn tell(&self, to: &mut Vec<(String, Owned)>) {
        let all = lock(&self.all);
        for ((aggregate, state), name) in self.aggregates.iter().zip(&*all).zip(&self.names) {
            let value = match (aggregate.value(state), state) {
                (Ok(value), _) => Owned::new(value),
                // The output is complete by now: a sum that its type does not hold is told as nearly as can be.
                (Err(_), State::Whole(sum, _)) => Owned::from(*sum as f64),
                (Err(_), _) => Owned::new(Value::Null),
            };
            to.push((name.clone(), value));
        }
    }
}

impl Step {
    /// The same for a run of its own.
    pub fn begun(&self) -> Self {
        match self {
            Self::Observe(observe) => Self::Observe(observe.begun()),
            step => step.clone(),
        }
    }
}

impl Table {
    /// The same records; what `aggregates` make of all of them stands in the report when the pipeline has run
    /// ([`super::PipelineReport::observed`]). They are those that need no order: counts, sums, means, least and greatest
    /// numbers, and what is approximate. A sum that its type does not hold is told as a float.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Usage`] for a column that is not there, no number where one is needed, another aggregate, and
    /// for a name that something observed has already.
    pub fn observe(&self, aggregates: &[Aggregate]) -> Result<Self> {
        let mut names: Vec<&str> = Vec::new();
        for node in &self.nodes {
            if let NodeKind::Step(Step::Observe(before)) = &node.kind {
                names.extend(before.names.iter().map(String::as_str));
            }
        }
        let before = names.len();
        let mut computed = Vec::new();
        for aggregate in aggregates {
            let name = &*aggregate.name;
            if names.contains(&name) {
                return Err(wrong(format!("two things observed are called {name}")));
            }
            names.push(name);
            let (one, _) = aggregate.find(&self.columns)?;
            if one.text_held().is_some() && !one.follows_input() {
                let cause = format!(
                    "{name} is text, and of least and greatest values only numbers, truths and times are observed"
                );
                return Err(wrong(cause));
            }
            if one.follows_input() || one.ordered_by().is_some() {
                let cause = format!("{name} needs records in order, and they are observed in any");
                return Err(wrong(cause));
            }
            computed.push(one);
        }
        let names: Vec<String> = names[before..]
            .iter()
            .map(|&name| name.to_owned())
            .collect();
        let name = format!("observe {}", names.join(", "));
        let observe = Observe {
            names,
            all: Arc::new(Mutex::new(Vec::new())),
            aggregates: computed,
        };
        let step = NodeKind::Step(Step::Observe(observe));
        self.then(name, step, self.columns.clone())
    }
}
