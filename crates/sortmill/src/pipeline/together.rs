//! Groups whose records come one after the other as they are: nothing is brought together for them once more.
//!
//! Behind [`sessions`](super::Groups::sessions) the records of a group stand together, those of each of its sessions one behind
//! the other, in the order of their times. So the groups of such a table by the same columns, and by those and the session's
//! number, need no partitions and no sort: what is made of them is made as records pass, in the reducer that numbers sessions
//! (an interesting order that is there already: P. G. Selinger et al., Access Path Selection, SIGMOD 1979, section 4).
//!
//! ```text
//! group by user, sessions --> filter, select --> group by user, session --> group by user
//! \_ one job _____________________________________________________________________________/
//! ```

use sortmill_io::sync::Arc;

use super::aggregate::{Computed, State, in_group};
use super::column::{Column, Value, corrupt, row};
use super::groups::{Event, MakeStreamFn, StreamFn};
use super::key::{self, KeyColumn, OrderColumn, Values, key_columns};
use super::shuffle::Shuffle;
use super::verbs::{Sink, Step, check_values};
use super::{Node, NodeKind};
use crate::error::Result;

/// In what way the records of a table stand, by the numbers of its columns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Standing {
    /// Records that are equal here stand one behind the other, and one reducer takes all of them.
    pub by: Vec<usize>,
    /// Among those the same is true of each value of this column.
    pub then: Option<usize>,
    /// They stand in the order of these columns, each upwards or, if so said, downwards, and none is without a value there.
    pub order: Vec<(usize, bool)>,
    /// Groups come in the order of `by`, upwards, those without a value last.
    pub is_sorted: bool,
}

impl Standing {
    /// That of the table which `nodes` make; `None` if nothing is known.
    pub fn of(nodes: &[Node]) -> Option<Self> {
        let is_shuffle = |node: &Node| matches!(node.kind, NodeKind::Shuffle(_));
        let last = nodes.iter().rposition(is_shuffle)?;
        let NodeKind::Shuffle(shuffle) = &nodes[last].kind else {
            return None;
        };
        let mut standing = shuffle.standing()?;
        for node in &nodes[last + 1..] {
            let NodeKind::Step(step) = &node.kind else {
                return None;
            };
            standing = standing.behind(step)?;
        }
        Some(standing)
    }

    /// What is known of it behind `step`.
    fn behind(&self, step: &Step) -> Option<Self> {
        let by = self.by.iter().map(|&at| step.keeps(at));
        let to = |&(at, descending): &(usize, bool)| Some((step.keeps(at)?, descending));
        Some(Self {
            by: by.collect::<Option<_>>()?,
            then: self.then.and_then(|at| step.keeps(at)),
            order: self.order.iter().map_while(to).collect(),
            is_sorted: self.is_sorted,
        })
    }

    /// Whether records that are equal in `columns` stand together, in the order `order`, and if so asked come sorted by `columns`.
    pub fn groups(&self, columns: &[usize], order: &[OrderColumn], sorted: bool) -> bool {
        let is_told = |at: &usize| self.by.contains(at) || self.then == Some(*at);
        let by: Vec<OrderColumn> = columns.iter().map(|&at| OrderColumn::up(at)).collect();
        let is_sorted = self.is_sorted && self.would_sort(&by, |_| false);
        (is_sorted || !sorted)
            && self.by.iter().all(|at| columns.contains(at))
            && columns.iter().all(is_told)
            && self.orders(order)
    }

    /// Whether records of a group are in the order `order`.
    fn orders(&self, order: &[OrderColumn]) -> bool {
        let is_own =
            |(part, own): (&OrderColumn, &(usize, bool))| (part.at, part.descending) == *own;
        order.len() <= self.order.len() && order.iter().zip(&self.order).all(is_own)
    }

    /// Whether records are in the order `key` if groups are in theirs. Which columns may be without a value matters there.
    fn would_sort(&self, key: &[OrderColumn], may_lack: impl Fn(usize) -> bool) -> bool {
        let Some((of_group, within)) = key.split_at_checked(self.by.len()) else {
            return false;
        };
        let is_up =
            |part: &OrderColumn| !part.descending && (part.nulls_last || !may_lack(part.at));
        let within = match within {
            [then, rest @ ..] if Some(then.at) == self.then && is_up(then) => rest,
            all => all,
        };
        let mut of_group = of_group.iter().zip(&self.by);
        of_group.all(|(part, &at)| part.at == at && is_up(part)) && self.orders(within)
    }
}

/// Verbs that make the table of `nodes` with its records in the order `key`, which `name` names, without bringing them together once
/// more, if that can be: groups of it stand together, so they need only come in their order.
pub(super) fn in_order(
    nodes: &[Node],
    columns: &[Column],
    key: &[OrderColumn],
    name: &str,
) -> Option<Vec<Node>> {
    let standing = Standing::of(nodes)?;
    if !standing.would_sort(key, |at| columns[at].nullable) {
        return None;
    }
    let mut nodes = nodes.to_vec();
    let brings = |node: &&mut Node| matches!(node.kind, NodeKind::Shuffle(_));
    let last = nodes.iter_mut().rev().find(brings)?;
    if let (NodeKind::Shuffle(shuffle), false) = (&last.kind, standing.is_sorted) {
        let sorted = Shuffle::clone(shuffle).sorted();
        last.name = format!("{}, for {name}", last.name);
        last.kind = NodeKind::Shuffle(Arc::new(sorted));
    }
    Some(nodes)
}

/// What is made of groups whose records stand together.
#[derive(Clone)]
pub(super) struct Together {
    by: Vec<usize>,
    key: Vec<KeyColumn>,
    how: How,
}

#[derive(Clone)]
enum How {
    Agg(Vec<Computed>),
    Apply(MakeStreamFn, Vec<Column>),
}

/// The group that is open, in one reducer.
pub(super) struct Open {
    /// Its key, if one is open, and that of the record in hand.
    last: Option<Vec<u8>>,
    key: Vec<u8>,
    values: Values,
    states: Vec<State>,
    function: Option<StreamFn>,
}

impl Together {
    /// A record for each group by the columns `by` of `table`: these, then what `aggregates` make of it, none of which takes values in
    /// their order.
    pub fn agg(table: &[Column], by: &[usize], aggregates: Vec<Computed>) -> Self {
        Self::new(table, by, How::Agg(aggregates))
    }

    /// What functions make of them, of the columns `made`.
    pub fn apply(table: &[Column], by: &[usize], make: MakeStreamFn, made: Vec<Column>) -> Self {
        Self::new(table, by, How::Apply(make, made))
    }

    fn new(table: &[Column], by: &[usize], how: How) -> Self {
        let order: Vec<OrderColumn> = by.iter().map(|&at| OrderColumn::up(at)).collect();
        Self {
            by: by.to_vec(),
            key: key_columns(table, &order),
            how,
        }
    }

    /// That of a reducer, in which none is open.
    pub fn begin(&self) -> Open {
        Open {
            last: None,
            key: Vec::new(),
            values: Values::default(),
            states: Vec::new(),
            function: match &self.how {
                How::Agg(_) => None,
                How::Apply(make, _) => Some(make()),
            },
        }
    }

    /// Where column `at` is in what comes out, if its values are there as they were.
    pub fn keeps(&self, at: usize) -> Option<usize> {
        match self.how {
            How::Agg(_) => self.by.iter().position(|&by| by == at),
            How::Apply(..) => None,
        }
    }

    /// Takes the next record.
    pub fn go(&self, open: &mut Open, record: &[Value<'_>], next: Sink<'_>) -> Result<()> {
        open.key.clear();
        key::write(&self.key, record, &mut open.key);
        if open.last.as_ref() != Some(&open.key) {
            self.end_group(open, next)?;
            let mut last = open.last.take().unwrap_or_default();
            last.clone_from(&open.key);
            open.last = Some(last);
            if let How::Agg(aggregates) = &self.how {
                open.states.clear();
                open.states.extend(aggregates.iter().map(Computed::begin));
            }
        }
        if let How::Agg(aggregates) = &self.how {
            for (aggregate, state) in aggregates.iter().zip(&mut open.states) {
                aggregate.add(state, record);
            }
        }
        self.tell(open, Event::Record(record), next)
    }

    /// Behind the last record of a partition.
    pub fn end(&self, open: &mut Open, next: Sink<'_>) -> Result<()> {
        self.end_group(open, next)?;
        open.last = None;
        self.tell(open, Event::End, next)
    }

    fn end_group(&self, open: &mut Open, next: Sink<'_>) -> Result<()> {
        let Some(last) = &open.last else {
            return Ok(());
        };
        match &self.how {
            How::Agg(aggregates) => {
                let (keys, states) = (self.key.len(), &open.states);
                let values = &mut open.values;
                values.read(&self.key, last).ok_or_else(corrupt)?;
                let get = |number: usize| match number.checked_sub(keys) {
                    None => Ok(values.get(number)),
                    Some(number) => aggregates[number]
                        .value(&states[number])
                        .map_err(|error| in_group(error, (0..keys).map(|at| values.get(at)))),
                };
                row(keys + aggregates.len(), get, next)
            }
            How::Apply(..) => self.tell(open, Event::GroupEnd, next),
        }
    }

    /// Tells the function of groups what comes, if there is one.
    fn tell(&self, open: &mut Open, event: Event<'_>, next: Sink<'_>) -> Result<()> {
        match (&self.how, &mut open.function) {
            (How::Apply(_, made), Some(function)) => function(event, &mut |values| {
                check_values(values, made)?;
                next(values)
            }),
            _ => Ok(()),
        }
    }
}
