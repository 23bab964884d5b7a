//! Functions of whole groups, record by record, and the first record of each.
//!
//! A group's records come one after the other, in the order of the input or in one that was asked for, which the engine
//! sorts by: columns behind those of the group in the key. So a group may be larger than memory, and no function has to sort
//! (CD 1.7.2, secondary keys).

use sortmill_io::sync::Arc;

use super::aggregate::{Aggregate, first};
use super::column::{Column, Value};
use super::key::OrderColumn;
use super::order::Order;
use super::reduce::streamed;
use super::shuffle::{Applied, Shuffle};
use super::together::Together;
use super::verbs::Sink;
use super::{By, Groups, Table};
use crate::error::Result;

/// Takes the records of one group after the other, `None` after a group's last; hands what comes out to its second
/// argument. It sees the columns of the table in their order.
pub type GroupFn = Box<dyn FnMut(Option<&[Value<'_>]>, Sink<'_>) -> Result<()> + Send>;

/// Makes the function of the groups of one partition.
pub type MakeGroupFn = Arc<dyn Fn() -> GroupFn + Send + Sync>;

/// What comes to a function of all groups of a partition.
#[derive(Clone, Copy, Debug)]
pub enum Event<'r> {
    /// The next record of the group.
    Record(&'r [Value<'r>]),
    /// It has no more.
    GroupEnd,
    /// The partition has no more groups: what was kept must come out.
    End,
}

/// Takes all groups of a partition; hands what comes out to its second argument, now or later.
pub type StreamFn = Box<dyn FnMut(Event<'_>, Sink<'_>) -> Result<()> + Send>;

/// Makes the function of one partition.
pub type MakeStreamFn = Arc<dyn Fn() -> StreamFn + Send + Sync>;

impl Groups {
    /// What `make`'s function makes of each group, of the columns `made`: it sees the group record by record, in the order of
    /// the columns `order`, those that are equal there in that of the input, and those without a value first.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a column that is not there, and for two of one name.
    pub fn apply_sorted(
        &self,
        order: &[By<'_>],
        made: Vec<Column>,
        make: MakeGroupFn,
    ) -> Result<Table> {
        self.stream(order, made, streamed(make))
    }

    /// What `make`'s function makes of all groups of a partition, which it may do when it will: no later than their end.
    ///
    /// # Errors
    /// As [`Groups::apply_sorted`].
    pub fn stream(&self, order: &[By<'_>], made: Vec<Column>, make: MakeStreamFn) -> Result<Table> {
        let order: Vec<Order<'_>> = order.iter().map(|&by| by.into()).collect();
        self.stream_by(&order, made, make)
    }

    /// The same, with a word on where records without a value stand.
    ///
    /// # Errors
    /// As [`Groups::apply_sorted`].
    pub fn stream_by(
        &self,
        order: &[Order<'_>],
        made: Vec<Column>,
        make: MakeStreamFn,
    ) -> Result<Table> {
        let applied = Applied::Function(make, made.clone());
        self.applied(order, made, applied)
    }

    /// What is `applied` to the records of each group, in this order, which makes the columns `made`.
    pub(super) fn applied(
        &self,
        order: &[Order<'_>],
        made: Vec<Column>,
        applied: Applied,
    ) -> Result<Table> {
        let find = |order: &Order<'_>| order.find(&self.table.columns);
        let key: Vec<OrderColumn> = order.iter().map(find).collect::<Result<_>>()?;
        let name = match order {
            [] => self.name(),
            order => format!("{}, sorted by {}", self.name(), super::by_words(order)),
        };
        let is_together = self.stand_together(&key, self.is_sorted);
        if let (Applied::Function(make, of), true) = (&applied, is_together) {
            let (make, of) = (Arc::clone(make), of.clone());
            let together = Together::apply(&self.table.columns, &self.by, make, of);
            return self.table.together(name, together, made);
        }
        let shuffle = Shuffle::apply(&self.table.columns, &self.by, &key, applied);
        self.table
            .bring(name, shuffle.sorted_if(self.is_sorted), made)
    }

    /// The first record of each group, in the order of the input, with all columns of the table. What groups are made by is as keys are:
    /// of -0 it is 0.
    ///
    /// # Errors
    /// None but those of [`Table::group_by`].
    pub fn first_records(&self) -> Result<Table> {
        let columns = &self.table.columns;
        let others = columns.iter().enumerate();
        let others = others.filter(|(at, _)| !self.by.contains(at));
        let firsts: Vec<Aggregate> = others.map(|(_, column)| first(&*column.name)).collect();
        let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
        self.agg(&firsts)?.select(&names)
    }
}
