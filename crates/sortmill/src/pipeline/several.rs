//! Aggregates that take a group's values in order, of several columns, or beside those that follow the order of the input.
//!
//! A group has one order. So each record is spread: into one with what all other aggregates need, and one for each column
//! whose values have to come in order, with that value alone (what SQL engines do of several DISTINCT). A group's records come
//! by their turn, then by that value:
//!
//! ```text
//! turn 0   as they were, in the order of the input: first, sum; how many values there are is counted
//! turn 1   the values of one such column, in order
//! turn 2   those of another one
//! ```

use sortmill_io::sync::Arc;

use super::aggregate::{Computed, Owned, State, compare, in_group};
use super::column::{Column, Type, Value, corrupt, row};
use super::groups::{Event, StreamFn};
use super::key::OrderColumn;
use super::shuffle::{Applied, Shuffle};
use super::verbs::{Sink, Step};
use super::{Groups, NodeKind, Table};
use crate::error::Result;

/// What records become: columns that go along each time, those of turn 0 alone, then the values of each other turn and the turn.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    /// Columns that a group is told by, then others that are needed as they are.
    along: Vec<usize>,
    plain: Vec<usize>,
    /// Those whose values are to come in order.
    ordered: Vec<usize>,
}

impl Spread {
    fn width(&self) -> usize {
        self.along.len() + self.plain.len() + self.ordered.len() + 1
    }

    /// Where the value of the ordered column with this number lies.
    fn value_at(&self, number: usize) -> usize {
        self.along.len() + self.plain.len() + number
    }

    fn turn_at(&self) -> usize {
        self.width() - 1
    }

    /// Hands over the record and, behind it, each value that is to come in order, if there is one.
    pub fn go(&self, record: &[Value<'_>], next: Sink<'_>) -> Result<()> {
        let beside = self.along.len() + self.plain.len();
        for turn in 0..=self.ordered.len() {
            let value = match turn {
                0 => Value::Null,
                turn => record[self.ordered[turn - 1]],
            };
            if turn > 0 && value.is_null() {
                continue;
            }
            let get = |at: usize| {
                Ok(match at {
                    at if at < self.along.len() => record[self.along[at]],
                    at if at < beside && turn == 0 => record[self.plain[at - self.along.len()]],
                    at if at == self.turn_at() => Value::U64(turn as u64),
                    at if at + 1 == beside + turn && turn > 0 => value,
                    _ => Value::Null,
                })
            };
            row(self.width(), get, &mut *next)?;
        }
        Ok(())
    }

    /// The columns of what records of `table` become.
    fn columns(&self, table: &[Column]) -> Vec<Column> {
        let mut columns: Vec<Column> = self.along.iter().map(|&at| table[at].clone()).collect();
        for &at in self.plain.iter().chain(&self.ordered) {
            let name = free_name(&table[at].name, &columns);
            columns.push(Column::new(name, table[at].kind).or_null_if(true));
        }
        columns.push(Column::new(free_name("turn", &columns), Type::U64));
        columns
    }
}

/// Which of `columns` this one is.
fn place(columns: &[usize], column: usize) -> usize {
    let found = columns.iter().position(|&other| other == column);
    found.expect("it is one of them")
}

/// `name`, or one like it that no column has.
fn free_name(name: &str, columns: &[Column]) -> String {
    let mut name = name.to_owned();
    while columns.iter().any(|column| column.name == name) {
        name.push('\'');
    }
    name
}

impl Groups {
    /// A record for each group of what `aggregates` make of it, those of each of the columns `ordered` in the order of its values.
    pub(super) fn agg_in_turns(
        &self,
        aggregates: &[Computed],
        ordered: Vec<usize>,
        made: Vec<Column>,
    ) -> Result<Table> {
        let table = &self.table.columns;
        // What those of turn 0 are of, and what tells how many values will come.
        let mut plain = Vec::new();
        let of_input = aggregates.iter().filter(|one| one.ordered_by().is_none());
        for at in of_input.filter_map(Computed::column).chain(ordered.clone()) {
            if !plain.contains(&at) {
                plain.push(at);
            }
        }
        let spread = Spread {
            along: self.by.clone(),
            plain,
            ordered,
        };
        let plain_at = |at| spread.along.len() + place(&spread.plain, at);
        let turned = |one: &Computed| match one.ordered_by() {
            Some(at) => {
                let number = place(&spread.ordered, at);
                (1 + number, one.moved_to(spread.value_at(number)))
            }
            None => (0, one.moved_to(one.column().map_or(0, plain_at))),
        };
        let turned: Vec<_> = aggregates.iter().map(turned).collect();
        let texts_joined = Computed::texts_joined(aggregates);
        let counted = spread.ordered.iter().map(|&at| plain_at(at));
        let plan = Arc::new(Plan {
            aggregates: turned,
            counted: counted.collect(),
            spread: spread.clone(),
        });
        let order = [spread.turn_at()].into_iter();
        let order = order.chain((0..spread.ordered.len()).map(|number| spread.value_at(number)));
        let order: Vec<OrderColumn> = order.map(OrderColumn::up).collect();
        let names = spread
            .ordered
            .iter()
            .map(|&at| table[at].name.as_str())
            .collect::<Vec<_>>()
            .join(", ");
        let by: Vec<usize> = (0..spread.along.len()).collect();
        let columns = spread.columns(table);
        let step = NodeKind::Step(Step::Spread(spread));
        let spread = self
            .table
            .then(format!("spread values of {names}"), step, columns)?;
        let make: MakeTurnsFn = Arc::new(move |text_bytes| {
            let mut open = Open::new(&plan, text_bytes);
            Box::new(move |event, out| open.take(event, out))
        });
        let applied = Applied::Turns(make, made.clone(), texts_joined);
        let shuffle = Shuffle::apply(&spread.columns, &by, &order, applied);
        spread.bring(self.name(), shuffle.sorted_if(self.is_sorted), made)
    }
}

/// Makes the function of one partition, in which texts that are joined may have so many bytes.
pub(super) type MakeTurnsFn = Arc<dyn Fn(usize) -> StreamFn + Send + Sync>;

struct Plan {
    /// Each with its turn.
    aggregates: Vec<(usize, Computed)>,
    /// Where in turn 0 the values lie that come in order later.
    counted: Vec<usize>,
    spread: Spread,
}

/// A group in the midst of its records.
struct Open {
    plan: Arc<Plan>,
    keys: Vec<Owned>,
    states: Vec<State>,
    /// How many values each ordered column has.
    counts: Vec<u64>,
    /// The turn, and the value that came last in it.
    turn: usize,
    last: Option<Owned>,
    is_begun: bool,
    text_bytes: usize,
}

impl Open {
    fn new(plan: &Arc<Plan>, text_bytes: usize) -> Self {
        Self {
            plan: Arc::clone(plan),
            text_bytes,
            keys: Vec::new(),
            states: Vec::new(),
            counts: Vec::new(),
            turn: 0,
            last: None,
            is_begun: false,
        }
    }

    fn take(&mut self, event: Event<'_>, out: Sink<'_>) -> Result<()> {
        match event {
            Event::Record(record) => self.add(record),
            Event::GroupEnd => self.end(out),
            Event::End => Ok(()),
        }
    }

    fn add(&mut self, record: &[Value<'_>]) -> Result<()> {
        let plan = Arc::clone(&self.plan);
        if !self.is_begun {
            self.begin(record);
        }
        let Value::U64(turn) = record[plan.spread.turn_at()] else {
            return Err(corrupt());
        };
        let turn = turn as usize;
        if turn == 0 {
            for (count, &at) in self.counts.iter_mut().zip(&plan.counted) {
                *count += u64::from(!record[at].is_null());
            }
        }
        let of_turn = plan.aggregates.iter().zip(&mut self.states);
        let of_turn = of_turn.filter(|((other, _), _)| *other == turn);
        if turn == 0 {
            of_turn.for_each(|((_, one), state)| one.add(state, record));
            return Ok(());
        }
        let number = turn - 1;
        let value = plain(
            *record
                .get(plan.spread.value_at(number))
                .ok_or_else(corrupt)?,
        );
        let is_first = self.turn != turn;
        let is_new = match &self.last {
            Some(last) if !is_first => compare(&last.value(), &value).is_ne(),
            _ => true,
        };
        for ((_, one), state) in of_turn {
            if is_first {
                state.expect(self.counts[number]).ok_or_else(corrupt)?;
            }
            if is_new {
                state.next_value(&value);
            }
            one.add(state, record);
        }
        if is_new {
            self.last = Some(Owned::new(value));
        }
        self.turn = turn;
        Ok(())
    }

    fn begin(&mut self, record: &[Value<'_>]) {
        let along = &record[..self.plan.spread.along.len()];
        self.keys.clear();
        self.keys
            .extend(along.iter().map(|&value| Owned::of_key(value)));
        self.states.clear();
        let begin = |(_, one): &(usize, Computed)| one.begin_within(self.text_bytes);
        self.states.extend(self.plan.aggregates.iter().map(begin));
        self.counts.clear();
        self.counts.resize(self.plan.counted.len(), 0);
        (self.turn, self.last, self.is_begun) = (0, None, true);
    }

    fn end(&mut self, out: Sink<'_>) -> Result<()> {
        self.is_begun = false;
        let keys = self.keys.len();
        let get = |at: usize| match at.checked_sub(keys) {
            None => Ok(self.keys[at].value()),
            Some(number) => {
                let (_, one) = &self.plan.aggregates[number];
                one.value(&self.states[number])
                    .map_err(|error| in_group(error, self.keys.iter().map(Owned::value)))
            }
        };
        row(keys + self.states.len(), get, out)
    }
}

/// A value as it is told by its key: of numbers that are equal there is one.
fn plain(value: Value<'_>) -> Value<'_> {
    match value {
        Value::F64(value) if value.is_nan() => Value::F64(f64::NAN),
        // -0 becomes 0.
        Value::F64(value) => Value::F64(value + 0.0),
        value => value,
    }
}
