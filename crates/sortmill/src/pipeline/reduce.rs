//! A reduce of the user's own: a function that makes one record of two, over whole groups.
//!
//! It is associative, so parts of a group may be reduced before they meet the others: in front of the first verb that brings
//! records together those of one group that lie near each other are one record already when they are sorted. So less is
//! spilled, and of a group with a large part of all records each batch of the input sends one (the combiner function of J. Dean
//! and S. Ghemawat, MapReduce, OSDI 2004, section 4.3; that a small one does best is CD 1.7.2).
//!
//! ```text
//! records --> batch --> those that are alone in their group ------------------\
//!                   \-> groups of several, one after the other --> function --> in the order of the first ones
//! ```
//!
//! Records keep the order of the input: what a part of a group became stands where its first record stood. Which records are in
//! a batch follows from the input alone, so the same bytes come out whatever the memory and threads, of a function too that is
//! associative only nearly, as sums of floats are.

use sortmill_io::sync::Arc;

use super::aggregate::Owned;
use super::column::{Column, Type, Value};
use super::gather::{BatchFn, Gathered, MakeBatchFn, Refused, RowSink, hand_over};
use super::groups::{Event, GroupFn, MakeGroupFn, MakeStreamFn};
use super::key::{self, KeyColumn, OrderColumn, key_columns};
use super::mix::group_hash;
use super::verbs::check_values;
use super::{Groups, Table};
use crate::error::{Error, ErrorKind, Result};

/// The most records that are looked at together.
const RECORDS_MAX: usize = 1 << 15;
/// So many tell whether it is worth looking at the others of a batch, and one in so many has to have come before for that.
const LOOKED_AT: usize = 1024;
const WORTH: usize = 32;

impl Groups {
    /// A record for each group: its first one, to which `function` has added all others. It must be associative: to add the
    /// second record and then the third is to add what the third added to the second makes. The order of the input is kept, so
    /// it need not be commutative. The values that it changes must stay of their columns' types; those of the columns that groups
    /// are made by are the first record's, whatever it makes of them.
    ///
    /// # Errors
    /// As [`Groups::agg`].
    pub fn reduce(
        &self,
        function: impl Fn(&mut [Owned], &[Value<'_>]) -> Result<()> + Send + Sync + 'static,
    ) -> Result<Table> {
        let make = one_by_one(Arc::new(function), &self.by);
        self.combined(streamed(Arc::clone(&make)))?.apply_sorted(
            &[],
            self.table.columns.clone(),
            make,
        )
    }

    /// The same of a function that need not be associative: records are added one after the other, in the order of the input.
    ///
    /// # Errors
    /// As [`Groups::agg`].
    pub fn fold(
        &self,
        function: impl Fn(&mut [Owned], &[Value<'_>]) -> Result<()> + Send + Sync + 'static,
    ) -> Result<Table> {
        let make = one_by_one(Arc::new(function), &self.by);
        self.apply_sorted(&[], self.table.columns.clone(), make)
    }

    /// The same groups, in which `make`'s function has made one record of those that lie near each other in the input, if no
    /// verb in front of this one brings records together. Of each group it makes one record of the same columns.
    ///
    /// # Errors
    /// None that [`Table::group_by`] has not told.
    pub fn combined(&self, make: MakeStreamFn) -> Result<Self> {
        if self.table.brings_together() {
            return Ok(self.clone());
        }
        let columns = &self.table.columns;
        let by: Vec<OrderColumn> = self.by.iter().map(|&at| OrderColumn::up(at)).collect();
        let key = key_columns(columns, &by);
        let kinds: Vec<Type> = columns.iter().map(|column| column.kind).collect();
        let made_columns = columns.clone();
        let make: MakeBatchFn = Arc::new(move || -> Box<dyn BatchFn> {
            Box::new(Combiner {
                key: key.clone(),
                columns: made_columns.clone(),
                kinds: kinds.clone(),
                make: Arc::clone(&make),
                found: Found::default(),
                made: Gathered::new(&kinds),
                next: 0,
            })
        });
        let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
        let grouped: Vec<&str> = self.by.iter().map(|&at| names[at]).collect();
        let name = format!("combine what is near by {}", grouped.join(", "));
        let made = columns.clone();
        Ok(Self {
            table: self.table.batches(&name, &names, made, RECORDS_MAX, make)?,
            ..self.clone()
        })
    }
}

type ReduceFn = Arc<dyn Fn(&mut [Owned], &[Value<'_>]) -> Result<()> + Send + Sync>;

/// What makes functions of groups, made by the columns `by`, of one that adds a record to what came before it.
fn one_by_one(function: ReduceFn, by: &[usize]) -> MakeGroupFn {
    let by = by.to_vec();
    Arc::new(move || -> GroupFn {
        let (function, by) = (Arc::clone(&function), by.clone());
        let (mut sum, mut key) = (Vec::new(), Vec::new());
        Box::new(move |record, out| match record {
            Some(record) if sum.is_empty() => {
                sum.extend(record.iter().map(|&value| Owned::new(value)));
                key.extend(by.iter().map(|&at| Owned::new(record[at])));
                Ok(())
            }
            Some(record) => function(&mut sum, record),
            None => {
                let mut sum = std::mem::take(&mut sum);
                for (&at, value) in by.iter().zip(key.drain(..)) {
                    sum[at] = value;
                }
                out(&sum.iter().map(Owned::value).collect::<Vec<_>>())
            }
        })
    })
}

/// The same as functions of all groups of a partition.
pub(super) fn streamed(make: MakeGroupFn) -> MakeStreamFn {
    Arc::new(move || {
        let mut function = make();
        Box::new(move |event, out| match event {
            Event::Record(record) => function(Some(record), out),
            Event::GroupEnd => function(None, out),
            Event::End => Ok(()),
        })
    })
}

/// Makes one record of those of a batch that are of one group.
struct Combiner {
    key: Vec<KeyColumn>,
    columns: Vec<Column>,
    kinds: Vec<Type>,
    make: MakeStreamFn,
    found: Found,
    made: Gathered,
    next: usize,
}

/// The groups of several records in a batch.
#[derive(Default)]
struct Found {
    /// The hash of each record's group and its number, in order.
    order: Vec<(u64, u32)>,
    /// Where in `order` each of them begins and ends; as their first records come.
    groups: Vec<(u32, u32)>,
    /// Of each record whether it is the first of a group, another one of it, or alone.
    roles: Vec<Role>,
    keys: [Vec<u8>; 2],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Alone,
    First,
    Other,
}

impl Found {
    fn look(&mut self, batch: &Gathered, kinds: &[Type], key: &[KeyColumn]) -> Result<()> {
        self.order.clear();
        self.groups.clear();
        self.roles.clear();
        self.roles.resize(batch.len(), Role::Alone);
        for at in 0..batch.len() {
            if at == LOOKED_AT && !self.is_worth() {
                return Ok(());
            }
            write_key(batch, at, kinds, key, &mut self.keys[0])?;
            self.order.push((group_hash(&self.keys[0]), at as u32));
        }
        self.order.sort_unstable();
        let mut from = 0;
        for alike in self.order.chunk_by(|one, other| one.0 == other.0) {
            let range = (from, from + alike.len() as u32);
            from = range.1;
            if alike.len() > 1 && Self::are_one(alike, batch, kinds, key, &mut self.keys)? {
                self.groups.push(range);
                self.roles[alike[0].1 as usize] = Role::First;
                for &(_, other) in &alike[1..] {
                    self.roles[other as usize] = Role::Other;
                }
            }
        }
        let order = &self.order;
        self.groups
            .sort_unstable_by_key(|&(from, _)| order[from as usize].1);
        Ok(())
    }

    /// Whether enough of the first records came before. They are in order then, which does no harm.
    fn is_worth(&mut self) -> bool {
        self.order.sort_unstable();
        let again = self.order.windows(2).filter(|two| two[0].0 == two[1].0);
        again.count() * WORTH >= LOOKED_AT
    }

    /// Whether records whose groups have one hash are of one group. Where they are not, each goes its own way.
    fn are_one(
        alike: &[(u64, u32)],
        batch: &Gathered,
        kinds: &[Type],
        key: &[KeyColumn],
        [first, other]: &mut [Vec<u8>; 2],
    ) -> Result<bool> {
        for (number, &(_, at)) in alike.iter().enumerate() {
            let to = if number == 0 {
                &mut *first
            } else {
                &mut *other
            };
            write_key(batch, at as usize, kinds, key, to)?;
            if number > 0 && *first != *other {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The key of record `at`, in place of what was in `to`.
fn write_key(
    batch: &Gathered,
    at: usize,
    kinds: &[Type],
    key: &[KeyColumn],
    to: &mut Vec<u8>,
) -> Result<()> {
    to.clear();
    batch.with(kinds, at, |values| {
        key::write(key, values, to);
        Ok(())
    })
}

impl Combiner {
    /// What the function makes of all groups of several, one record of each.
    fn reduce(&self, batch: &Gathered) -> Result<Gathered> {
        let (kinds, found) = (&self.kinds, &self.found);
        let mut function = (self.make)();
        let mut made = Gathered::new(kinds);
        let columns = &self.columns;
        let mut out = |values: &[Value<'_>]| {
            check_values(values, columns)?;
            made.push(0, values)
        };
        for &(from, to) in &found.groups {
            for &(_, at) in &found.order[from as usize..to as usize] {
                batch.with(kinds, at as usize, |values| {
                    function(Event::Record(values), &mut out)
                })?;
            }
            function(Event::GroupEnd, &mut out)?;
        }
        function(Event::End, &mut out)?;
        drop(function);
        match made.len() == found.groups.len() {
            true => Ok(made),
            false => Err(Error::new(
                ErrorKind::Function,
                "reducing groups",
                "a reduce makes one record of each group",
            )),
        }
    }
}

impl BatchFn for Combiner {
    fn call(&mut self, batch: &Gathered, is_sample: bool) -> std::result::Result<(), Refused> {
        let whole = |error: Error| (0, Box::new(error));
        self.found
            .look(batch, &self.kinds, &self.key)
            .map_err(whole)?;
        // How large what it makes is the first records tell well enough: nothing is called to plan a job.
        let reduced = match is_sample || self.found.groups.is_empty() {
            true => None,
            false => Some(self.reduce(batch).map_err(|mut error| {
                let (from, _) = self.found.groups[0];
                let first = self.found.order[from as usize].1 as usize;
                error.cause += &format!(", in the {} records from there on", batch.len() - first);
                (first, Box::new(error))
            })?),
        };
        self.made.clear();
        self.next = 0;
        let mut groups = 0;
        for (at, &role) in self.found.roles.iter().enumerate() {
            let made = &mut self.made;
            let push = |values: &[Value<'_>]| made.push(at as u32, values);
            match (role, &reduced) {
                (Role::Other, _) => Ok(()),
                (Role::First, Some(reduced)) => {
                    groups += 1;
                    reduced.with(&self.kinds, groups - 1, push)
                }
                (Role::First, None) | (Role::Alone, _) => batch.with(&self.kinds, at, push),
            }
            .map_err(whole)?;
        }
        Ok(())
    }

    fn rows(&mut self, sink: RowSink<'_>, is_full: &dyn Fn() -> bool) -> Result<bool> {
        hand_over(&self.made, &self.kinds, &mut self.next, sink, is_full)
    }

    fn finish(&mut self, _: bool) -> Result<()> {
        self.made.clear();
        self.next = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes tell groups apart until they do not.
    #[test]
    fn records_of_one_hash_and_two_groups_go_their_own_ways() {
        let columns = [Column::new("key", Type::String)];
        let (key, kinds) = (key_columns(&columns, &[OrderColumn::up(0)]), [Type::String]);
        let mut batch = Gathered::new(&kinds);
        for text in ["one", "other", "one"] {
            batch.push(0, &[Value::Bytes(text.as_bytes())]).unwrap();
        }
        let are_one = |of: &[u32]| {
            let alike: Vec<(u64, u32)> = of.iter().map(|&at| (7, at)).collect();
            Found::are_one(&alike, &batch, &kinds, &key, &mut Default::default()).unwrap()
        };
        assert!(are_one(&[0, 2]));
        assert!(!are_one(&[0, 1]) && !are_one(&[0, 2, 1]));
        let mut found = Found::default();
        found.look(&batch, &kinds, &key).unwrap();
        assert_eq!(found.roles, [Role::First, Role::Alone, Role::Other]);
    }
}
