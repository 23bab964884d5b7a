//! A Rust function of whole groups, each an iterator of records.
//!
//! The engine hands records out one after the other; the function asks for one after the other. So it has a thread of its
//! own for each partition that is reduced, and the two take turns, so that never more than [`HANDOVER_BYTES`] and a record
//! lie between them each way: a group may be larger than memory. Whoever can do with a record at a time does better with
//! [`Groups::apply_sorted`], which needs no thread.
//!
//! ```text
//! engine    gather ......... take what was made, gather ......... take
//!                   \       /                           \       /
//! function           work ..                             work ..
//! ```

use sortmill_io::sync::{Arc, Condvar, JoinHandle, Mutex, lock, spawn_owned, wait};

use super::aggregate::Owned;
use super::closures::columns_of;
use super::column::{Column, Type, Value};
use super::groups::{Event, MakeStreamFn};
use super::verbs::{Sink, check_values};
use super::{By, Groups, Table};
use crate::error::{Error, ErrorKind, Result};

/// Bytes of records that go over at once.
const HANDOVER_BYTES: usize = 64 << 10;
/// In front of each record.
const RECORD: u8 = 1;
/// Behind the last one of a group.
const GROUP_END: u8 = 0;

type GroupsFn = Arc<dyn Fn(&mut Group<'_>, Sink<'_>) -> Result<()> + Send + Sync>;

impl Groups {
    /// What `function` makes of each group, of the columns `made`: it gets the group's records as an iterator, in the order
    /// of the columns `order`, and those that are equal there in that of the input. What it does not take is passed over.
    ///
    /// # Errors
    /// As [`Groups::apply_sorted`].
    pub fn apply<const M: usize>(
        &self,
        order: &[By<'_>],
        made: [(&str, Type); M],
        function: impl Fn(&mut Group<'_>, Sink<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> Result<Table> {
        let function: GroupsFn = Arc::new(function);
        let columns: Arc<[Column]> = self.table.columns.as_slice().into();
        let made = columns_of(made);
        let made_columns: Arc<[Column]> = made.as_slice().into();
        let make: MakeStreamFn = Arc::new(move || {
            let mut engine: Option<Engine> = None;
            let work = (
                Arc::clone(&function),
                Arc::clone(&columns),
                Arc::clone(&made_columns),
            );
            Box::new(move |event, out| {
                if let (None, Event::End) = (&engine, event) {
                    return Ok(());
                }
                engine
                    .get_or_insert_with(|| Engine::start(&work))
                    .take(event, out)
            })
        });
        self.stream(order, made, make)
    }
}

/// The records of one group that have not been taken yet, each the values of the table's columns.
pub struct Group<'g>(&'g mut Hand);

impl Iterator for Group<'_> {
    type Item = Vec<Owned>;

    fn next(&mut self) -> Option<Vec<Owned>> {
        self.0.next()
    }
}

/// Whose turn it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Engine,
    Function,
    /// The function's thread has ended.
    Done,
    /// The job has ended.
    Over,
}

/// What lies between the two.
struct Between {
    turn: Turn,
    /// Records on their way to the function, and whether none come behind them.
    records: Vec<u8>,
    is_last: bool,
    /// What it made, and whether it gave its turn away because it wants more records.
    made: Vec<u8>,
    wants_more: bool,
    error: Option<Error>,
}

struct Link {
    between: Mutex<Between>,
    changed: Condvar,
}

impl Link {
    /// Waits as long as it is the turn of `other`, and does `what` then.
    fn after<T>(&self, other: Turn, what: impl FnOnce(&mut Between) -> T) -> T {
        let mut between = lock(&self.between);
        while between.turn == other {
            between = wait(&self.changed, between);
        }
        what(&mut between)
    }

    fn change(&self, what: impl FnOnce(&mut Between)) {
        what(&mut lock(&self.between));
        self.changed.notify_all();
    }
}

/// The engine's end.
struct Engine {
    link: Arc<Link>,
    thread: Option<JoinHandle<()>>,
    records: Vec<u8>,
    columns: Arc<[Column]>,
    made_columns: Arc<[Column]>,
}

impl Engine {
    fn start((function, columns, made_columns): &(GroupsFn, Arc<[Column]>, Arc<[Column]>)) -> Self {
        let link = Arc::new(Link {
            between: Mutex::new(Between {
                turn: Turn::Engine,
                records: Vec::new(),
                is_last: false,
                made: Vec::new(),
                wants_more: false,
                error: None,
            }),
            changed: Condvar::new(),
        });
        let hand = Hand {
            link: Arc::clone(&link),
            columns: Arc::clone(columns),
            made_columns: Arc::clone(made_columns),
            records: Vec::new(),
            at: 0,
            is_last: false,
            is_over: false,
            is_open: false,
            made: Vec::new(),
        };
        let function = Arc::clone(function);
        Self {
            link,
            thread: Some(spawn_owned("function", move || hand.work(&function))),
            records: Vec::new(),
            columns: Arc::clone(columns),
            made_columns: Arc::clone(made_columns),
        }
    }

    fn take(&mut self, event: Event<'_>, out: Sink<'_>) -> Result<()> {
        match event {
            Event::Record(record) => {
                self.records.push(RECORD);
                let records = &mut self.records;
                for (column, value) in self.columns.iter().zip(record) {
                    column.put(value, records);
                }
            }
            Event::GroupEnd => self.records.push(GROUP_END),
            Event::End => return self.hand_over(true, out),
        }
        match self.records.len() >= HANDOVER_BYTES {
            true => self.hand_over(false, out),
            false => Ok(()),
        }
    }

    /// Has the function work through what was gathered, and hands on what it makes.
    fn hand_over(&mut self, is_last: bool, out: Sink<'_>) -> Result<()> {
        loop {
            self.link.change(|between| {
                between.records.append(&mut self.records);
                between.is_last = is_last;
                if between.turn == Turn::Engine {
                    between.turn = Turn::Function;
                }
            });
            let (made, has_enough, error) = self.link.after(Turn::Function, |between| {
                let made = std::mem::take(&mut between.made);
                let has_enough = between.turn == Turn::Done || between.wants_more;
                (made, has_enough, between.error.take())
            });
            let mut rest = &made[..];
            while !rest.is_empty() {
                let get = |at: usize| {
                    let value = self.made_columns[at].take(&mut rest);
                    Ok(value.expect("it was written here"))
                };
                super::column::row(self.made_columns.len(), get, &mut *out)?;
            }
            match (error, has_enough) {
                (Some(error), _) => return Err(error),
                (None, true) => return Ok(()),
                (None, false) => {}
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.link.change(|between| between.turn = Turn::Over);
        // Its end has been told in `Between`, whatever it was.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// What the function has in hand.
struct Hand {
    link: Arc<Link>,
    columns: Arc<[Column]>,
    made_columns: Arc<[Column]>,
    records: Vec<u8>,
    at: usize,
    is_last: bool,
    is_over: bool,
    /// The group has records still.
    is_open: bool,
    made: Vec<u8>,
}

/// Tells, whatever happens, that the function's thread has ended.
struct TellsEnd(Arc<Link>, Vec<u8>, Option<Error>);

impl Drop for TellsEnd {
    fn drop(&mut self) {
        let (made, error) = (std::mem::take(&mut self.1), self.2.take());
        self.0.change(|between| {
            between.made = made;
            between.error = error;
            if between.turn != Turn::Over {
                between.turn = Turn::Done;
            }
        });
    }
}

impl Hand {
    /// All groups of a partition, one after the other.
    fn work(mut self, function: &GroupsFn) {
        let cause = "its thread ended before its work";
        let unfinished = Error::new(ErrorKind::Function, "calling a function of groups", cause);
        let mut end = TellsEnd(Arc::clone(&self.link), Vec::new(), Some(unfinished));
        self.refill();
        end.2 = self.groups(function).err();
        end.1 = std::mem::take(&mut self.made);
    }

    fn groups(&mut self, function: &GroupsFn) -> Result<()> {
        while self.has_more() {
            self.is_open = true;
            let mut made = std::mem::take(&mut self.made);
            let columns = Arc::clone(&self.made_columns);
            let link = Arc::clone(&self.link);
            let mut out = |values: &[Value<'_>]| {
                check_values(values, &columns)?;
                for (column, value) in columns.iter().zip(values) {
                    column.put(value, &mut made);
                }
                match made.len() >= HANDOVER_BYTES && give(&link, &mut made, false) {
                    true => Err(ended()),
                    false => Ok(()),
                }
            };
            let called = function(&mut Group(self), &mut out);
            self.made = made;
            called?;
            while self.next().is_some() {}
        }
        match self.is_over {
            true => Err(ended()),
            false => Ok(()),
        }
    }

    /// The next record of the group.
    fn next(&mut self) -> Option<Vec<Owned>> {
        if !self.is_open {
            return None;
        }
        let has_record = self.has_more() && self.records[self.at] == RECORD;
        self.is_open = has_record;
        // Behind the mark; and behind the last record when the job has ended.
        self.at = (self.at + 1).min(self.records.len());
        if !has_record {
            return None;
        }
        let mut rest = &self.records[self.at..];
        let mut value = |column: &Column| {
            let value = column.take(&mut rest);
            Owned::new(value.expect("the engine wrote it"))
        };
        let record = self.columns.iter().map(&mut value).collect();
        self.at = self.records.len() - rest.len();
        Some(record)
    }

    /// Whether a mark comes next; waits until that is known.
    fn has_more(&mut self) -> bool {
        while self.at == self.records.len() && !self.is_last && !self.is_over {
            self.is_over = give(&self.link, &mut self.made, true);
            self.refill();
        }
        self.at < self.records.len() && !self.is_over
    }

    /// Waits for records and takes them.
    fn refill(&mut self) {
        let (records, is_last, is_over) = self.link.after(Turn::Engine, |between| {
            let records = std::mem::take(&mut between.records);
            (records, between.is_last, between.turn == Turn::Over)
        });
        (self.records, self.at) = (records, 0);
        self.is_last |= is_last;
        self.is_over |= is_over;
    }
}

fn ended() -> Error {
    Error::new(
        ErrorKind::Function,
        "calling a function of groups",
        "the job has ended",
    )
}

/// Hands over what was made and gives the turn away; has it back when this returns. Answers whether the job has ended.
fn give(link: &Link, made: &mut Vec<u8>, wants_more: bool) -> bool {
    link.change(|between| {
        between.made.append(made);
        between.wants_more = wants_more;
        if between.turn == Turn::Function {
            between.turn = Turn::Engine;
        }
    });
    link.after(Turn::Engine, |between| between.turn == Turn::Over)
}
