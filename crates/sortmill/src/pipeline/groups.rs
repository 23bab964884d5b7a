//! Functions of whole groups, record by record, and those that are built in.
//!
//! A group's records come one after the other, in the order of the input or in one that was asked for, which the engine
//! sorts by: columns behind those of the group in the key. So a group may be larger than memory, and no function has to sort
//! (CD 1.7.2, secondary keys).

use sortmill_io::sync::Arc;

use super::aggregate::{Aggregate, first};
use super::column::{Column, Type, Value};
use super::key::OrderColumn;
use super::order::Order;
use super::reduce::streamed;
use super::shuffle::Shuffle;
use super::verbs::Sink;
use super::{By, Groups, Table, find, wrong};
use crate::error::{Error, ErrorKind, Result};

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
        let find = |order: &Order<'_>| order.find(&self.table.columns);
        let key: Vec<OrderColumn> = order.iter().map(find).collect::<Result<_>>()?;
        let mut shuffle = Shuffle::apply(&self.table.columns, &self.by, &key, make, &made);
        if self.is_sorted {
            if !key.is_empty() {
                let cause = "groups whose records are in an order come in none of their own: sort what comes out";
                return Err(wrong(cause.to_owned()));
            }
            shuffle = shuffle.sorted();
        }
        let name = match order {
            [] => self.name(),
            order => format!("{}, sorted by {}", self.name(), super::by_words(order)),
        };
        self.table.bring(name, shuffle, made)
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

    /// The records of each group in the order of `time`, a column of integers or timestamps, with a further column, a u64, called
    /// `name`: the number of the session in its group, from 0. A record begins another one when it comes more than `gap`, of
    /// timestamps in microseconds, after the one before it.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a column that is not there or of another type, and for a name that is taken.
    pub fn sessions(&self, time: &str, gap: u64, name: &str) -> Result<Table> {
        let at = find(&self.table.columns, time)?;
        let kind = self.table.columns[at].kind;
        if !matches!(kind, Type::I64 | Type::U64 | Type::Timestamp) {
            return Err(wrong(format!(
                "{time} is of type {}, and neither an integer nor a timestamp",
                kind.name()
            )));
        }
        let mut made = self.table.columns.clone();
        made.push(Column::new(name, Type::U64));
        let order = [(time, false)];
        let time = time.to_owned();
        let make: MakeStreamFn = Arc::new(move || {
            let time = time.clone();
            let mut open: Option<(i128, u64)> = None;
            Box::new(move |event, out| {
                let Event::Record(record) = event else {
                    open = None;
                    return Ok(());
                };
                let now = match record[at] {
                    Value::I64(now) | Value::Timestamp(now) => i128::from(now),
                    Value::U64(now) => i128::from(now),
                    Value::Null => return Err(no_time(&time)),
                    _ => return Err(not_an_integer()),
                };
                let session = open.map_or(0, |(before, session)| {
                    session + u64::from(now - before > i128::from(gap))
                });
                open = Some((now, session));
                let get = |number: usize| match record.get(number) {
                    Some(&value) => Ok(value),
                    None => Ok(Value::U64(session)),
                };
                super::column::row(record.len() + 1, get, out)
            })
        });
        self.stream(&order, made, make)
    }
}

fn no_time(name: &str) -> Error {
    let cause = format!("column {name} is null, and a record of a session has its time");
    Error::new(ErrorKind::Input, "cutting groups into sessions", cause)
}

fn not_an_integer() -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "cutting groups into sessions",
        "a time is no integer",
    )
}
