//! Sessions: the records of a group, in the order of their times, cut where a pause is long.
//!
//! Each record comes out as it is, with the number of its session behind it, so there is no function to call for it.

use super::column::{Column, Type, Value};
use super::order::Order;
use super::shuffle::Applied;
use super::{Groups, Table, find, wrong};
use crate::error::{Error, ErrorKind, Result};

/// How groups are cut.
#[derive(Clone)]
pub(super) struct Sessions {
    /// The column of times.
    time: String,
    /// The longest pause within a session.
    gap: u64,
}

/// The session that is open: the time of its last record, in bits, and its number.
pub(super) type Open = Option<(u64, u64)>;

impl Groups {
    /// The records of each group in the order of `time`, a column of integers or timestamps, with a further column, a u64, called
    /// `name`: the number of the session in its group, from 0. A record begins another one when it comes more than `gap`, of
    /// timestamps in microseconds, after the one before it.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a column that is not there or of another type, and for a name that is taken.
    pub fn sessions(&self, time: &str, gap: u64, name: &str) -> Result<Table> {
        let kind = self.table.columns[find(&self.table.columns, time)?].kind;
        if !matches!(kind, Type::I64 | Type::U64 | Type::Timestamp) {
            return Err(wrong(format!(
                "{time} is of type {}, and neither an integer nor a timestamp",
                kind.name()
            )));
        }
        let mut made = self.table.columns.clone();
        made.push(Column::new(name, Type::U64));
        let sessions = Sessions {
            time: time.to_owned(),
            gap,
        };
        let order = [Order::from((time, false))];
        self.applied(&order, made, Applied::Sessions(sessions))
    }
}

impl Sessions {
    /// The number of the session of a group's next record, whose time is `now`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a record without a time.
    #[inline]
    pub fn number(&self, open: &mut Open, now: Value<'_>) -> Result<u64> {
        let now = match now {
            Value::I64(now) | Value::Timestamp(now) => now as u64,
            Value::U64(now) => now,
            Value::Null => return Err(self.no_time()),
            _ => return Err(not_an_integer()),
        };
        // It is no less than the one before, so their difference is right whether or not there is a sign.
        let number = open.map_or(0, |(before, number)| {
            number + u64::from(now.wrapping_sub(before) > self.gap)
        });
        *open = Some((now, number));
        Ok(number)
    }

    fn no_time(&self) -> Error {
        let cause = format!(
            "column {} is null, and a record of a session has its time",
            self.time
        );
        Error::new(ErrorKind::Input, DOING, cause)
    }
}

fn not_an_integer() -> Error {
    Error::new(ErrorKind::Corrupt, DOING, "a time is no integer")
}

const DOING: &str = "cutting groups into sessions";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_where_a_pause_is_longer_than_that() {
        let check = |gap: u64, times: &[Value<'_>], wanted: &[u64]| {
            let sessions = Sessions {
                time: "t".to_owned(),
                gap,
            };
            let mut open = None;
            let numbers = times
                .iter()
                .map(|&now| sessions.number(&mut open, now).unwrap());
            assert_eq!(numbers.collect::<Vec<_>>(), wanted);
        };
        let times = [0, 10, 20, 31, 31, 100].map(Value::I64);
        check(10, &times, &[0, 0, 0, 1, 1, 2]);
        check(0, &[5, 5, 6].map(Value::U64), &[0, 0, 1]);
        // From the least to the greatest there is.
        let ends = [i64::MIN, i64::MAX].map(Value::I64);
        check(u64::MAX, &ends, &[0, 0]);
        check(u64::MAX - 1, &ends, &[0, 1]);
        let far = [0, 1 << 63, u64::MAX].map(Value::U64);
        check(1 << 63, &far, &[0, 0, 0]);
        check(9, &[-20, -10, -1].map(Value::Timestamp), &[0, 1, 1]);
    }
}
