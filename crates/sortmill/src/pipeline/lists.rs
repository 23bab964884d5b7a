//! Lists of whole numbers as bytes: what `pack` makes of a group, and `unpack` records of again.
//!
//! ```text
//! 7, 300, 300, 1000  ->  07 | A5 02 | 00 | BC 05      the differences in rising order, 7 bits a byte (LEB128), the low ones first
//! ```
//!
//! So a list of neighbours in a graph of 20 million vertices takes some three bytes for each.

use sortmill_io::sync::Arc;

use super::aggregate::{Owned, in_group};
use super::column::{Column, Type, Value};
use super::groups::{Event, MakeStreamFn};
use super::verbs::{Sink, Step};
use super::{Groups, NodeKind, Table, find, wrong};
use crate::error::{Error, ErrorKind, Result};

/// A list with more bytes is refused: it must be in memory.
const LIST_BYTES_MAX: usize = 16 << 20;

impl Groups {
    /// A record for each group: its columns, and as `name`, a binary column, all values of `column`, of type u64, in rising
    /// order, which [`unpack`] tells. The engine puts them in order. Where there is no value none is in the list.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a column that is not there or of another type, and for a name that is taken. When it runs,
    /// [`ErrorKind::Input`] for a group whose list has more than 16 MiB.
    pub fn pack(&self, column: &str, name: &str) -> Result<Table> {
        let at = find(&self.table.columns, column)?;
        let kind = self.table.columns[at].kind;
        if kind != Type::U64 {
            return Err(wrong(format!(
                "{column} is of type {}, and not u64",
                kind.name()
            )));
        }
        let mut made = self.columns();
        made.push(Column::new(name, Type::Binary));
        let by = self.by.clone();
        let make: MakeStreamFn = Arc::new(move || {
            let by = by.clone();
            let (mut key, mut list, mut last): (Vec<Owned>, _, _) = (Vec::new(), Vec::new(), 0);
            Box::new(move |event, out| match event {
                Event::Record(record) => {
                    if key.is_empty() {
                        key.extend(by.iter().map(|&at| Owned::of_key(record[at])));
                        last = 0;
                    }
                    let Value::U64(number) = record[at] else {
                        return Ok(());
                    };
                    write_number(number - last, &mut list);
                    last = number;
                    match list.len() > LIST_BYTES_MAX {
                        true => Err(too_long(record, &by)),
                        false => Ok(()),
                    }
                }
                Event::GroupEnd => {
                    let mut values: Vec<Value<'_>> = key.iter().map(Owned::value).collect();
                    values.push(Value::Bytes(&list));
                    out(&values)?;
                    key.clear();
                    list.clear();
                    Ok(())
                }
                Event::End => Ok(()),
            })
        });
        self.stream(&[(column, false)], made, make)
    }
}

fn too_long(record: &[Value<'_>], by: &[usize]) -> Error {
    let cause = format!("its list has more than {LIST_BYTES_MAX} bytes");
    let error = Error::new(ErrorKind::Input, "packing a list", cause);
    in_group(error, by.iter().map(|&at| record[at]))
}

fn write_number(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

impl Table {
    /// For each record one for each number of the list in `column`, which [`Groups::pack`] made: the number stands in its place, a
    /// u64 called `name`, and the other columns are as they were. Of an empty list and of none there are none. A list
    /// of any length is handed over as there is room for it.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a column that is not there or is not binary, and for a name that is taken. When it runs,
    /// [`ErrorKind::Input`] for bytes that are no list.
    pub fn unpack(&self, column: &str, name: &str) -> Result<Self> {
        let at = find(&self.columns, column)?;
        let kind = self.columns[at].kind;
        if kind != Type::Binary {
            return Err(wrong(format!(
                "{column} is of type {}, and lists are binary",
                kind.name()
            )));
        }
        let mut columns = self.columns.clone();
        columns[at] = Column::new(name, Type::U64);
        let step = Step::Unpack(Unpack {
            at,
            column: column.to_owned(),
        });
        self.then(format!("unpack {column}"), NodeKind::Step(step), columns)
    }
}

/// Makes a record for each number of a list.
#[derive(Clone, Debug)]
pub(super) struct Unpack {
    at: usize,
    column: String,
}

/// A list of which some numbers have not been handed over yet.
pub(super) struct Unpacking {
    record: Vec<Owned>,
    /// Where the record begins that it is of.
    pub place: u32,
    from: Onward,
}

/// The byte of a list where the next number begins, and the number in front of it.
pub(super) type Onward = (usize, u64);

impl Unpack {
    /// Which column is unpacked.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Puts the next numbers of `list` into `numbers`, as many as it has room for; how many there were.
    ///
    /// # Errors
    /// When the bytes are no list.
    #[inline]
    pub fn some(&self, list: &[u8], (at, last): &mut Onward, numbers: &mut [u64]) -> Result<usize> {
        let mut count = 0;
        while *at < list.len() && count < numbers.len() {
            let step = read_number(list, at);
            let number = step.and_then(|step| last.checked_add(step));
            *last = number.ok_or_else(|| self.no_list())?;
            numbers[count] = *last;
            count += 1;
        }
        Ok(count)
    }

    /// Hands over the numbers of `record`, which begins at `place`, until `is_full`; what is left then, if anything is.
    pub fn go<'v>(
        &self,
        place: u32,
        record: &[Value<'v>],
        is_full: &dyn Fn() -> bool,
        next: Sink<'_>,
    ) -> Result<Option<Box<Unpacking>>> {
        /// So many columns need no memory of their own.
        const FEW: usize = 16;
        let mut few: [Value<'v>; FEW] = [Value::Null; FEW];
        let mut many = Vec::new();
        let values = match few.get_mut(..record.len()) {
            Some(few) => few,
            None => {
                many.resize(record.len(), Value::Null);
                &mut many[..]
            }
        };
        values.copy_from_slice(record);
        let list = record[self.at].bytes();
        let left = self.numbers(values, list, (0, 0), is_full, next)?;
        Ok(left.map(|from| {
            Box::new(Unpacking {
                record: record.iter().map(|&value| Owned::new(value)).collect(),
                place,
                from,
            })
        }))
    }

    /// The same of what was left.
    pub fn go_on(
        &self,
        mut left: Box<Unpacking>,
        is_full: &dyn Fn() -> bool,
        next: Sink<'_>,
    ) -> Result<Option<Box<Unpacking>>> {
        let mut values: Vec<Value<'_>> = left.record.iter().map(Owned::value).collect();
        let list = values[self.at].bytes();
        let from = self.numbers(&mut values, list, left.from, is_full, next)?;
        drop(values);
        Ok(from.map(|from| {
            left.from = from;
            left
        }))
    }

    /// Hands over the numbers of `list` from `from` on; where to go on, if it is full before they end.
    #[inline]
    fn numbers<'v>(
        &self,
        values: &mut [Value<'v>],
        list: &'v [u8],
        (mut at, mut last): Onward,
        is_full: &dyn Fn() -> bool,
        next: Sink<'_>,
    ) -> Result<Option<Onward>> {
        /// So many go over before it is asked again whether there is room.
        const AT_ONCE: usize = 16;
        while at < list.len() {
            for _ in 0..AT_ONCE {
                if at == list.len() {
                    break;
                }
                let step = read_number(list, &mut at);
                let number = step.and_then(|step| last.checked_add(step));
                last = number.ok_or_else(|| self.no_list())?;
                values[self.at] = Value::U64(last);
                next(values)?;
            }
            if at < list.len() && is_full() {
                return Ok(Some((at, last)));
            }
        }
        Ok(None)
    }

    fn no_list(&self) -> Error {
        let cause = format!("the bytes of column {} are no list of numbers", self.column);
        Error::new(ErrorKind::Input, "unpacking a list", cause)
    }
}

/// The number that begins at byte `at` of a list, and moves `at` behind it. `None` if none does.
#[inline]
fn read_number(list: &[u8], at: &mut usize) -> Option<u64> {
    if let Some(eight) = list.get(*at..).and_then(<[u8]>::first_chunk)
        && let Some((number, bytes)) = number_within(u64::from_le_bytes(*eight))
    {
        *at += bytes;
        return Some(number);
    }
    read_long_number(list, at)
}

/// The number that eight bytes of a list begin with, and how many of them it takes: which of several lengths it has nobody can foresee,
/// and so nothing here depends on it. `None` if it takes more.
#[inline]
fn number_within(eight: u64) -> Option<(u64, usize)> {
    const HIGHEST: u64 = 0x8080_8080_8080_8080;
    let ends = !eight & HIGHEST;
    if ends == 0 {
        return None;
    }
    let bits = ends.trailing_zeros() + 1;
    let sevens = eight & !HIGHEST & u64::MAX >> (u64::BITS - bits);
    // Two neighbours at a time become one.
    let pairs = sevens & 0x007f_007f_007f_007f | (sevens & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = pairs & 0x3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    let number = fours & 0x0fff_ffff | (fours & 0x0fff_ffff_0000_0000) >> 4;
    Some((number, bits as usize / 8))
}

fn read_long_number(list: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *list.get(*at)?;
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            // Of the tenth byte one bit is left.
            return (shift < 63 || byte < 2).then_some(number);
        }
    }
    None
}

/// How many numbers a list has: each ends in a byte below 128. Counted in bytes, of so many that a byte holds, many at once.
pub(super) fn list_length(list: &[u8]) -> u64 {
    let ends = |part: &[u8]| part.iter().map(|&byte| u8::from(byte < 0x80)).sum::<u8>();
    list.chunks(u8::MAX.into())
        .map(|part| u64::from(ends(part)))
        .sum()
}

/// The numbers of a list that [`Groups::pack`] made, in rising order. Of other bytes any numbers.
#[must_use]
pub fn unpack(list: &[u8]) -> Unpacked<'_> {
    Unpacked { list, last: 0 }
}

/// The numbers of a list, one after the other.
#[derive(Clone, Debug)]
pub struct Unpacked<'l> {
    list: &'l [u8],
    last: u64,
}

impl Iterator for Unpacked<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0u64, 0u32);
        for (at, &byte) in self.list.iter().enumerate() {
            number |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift += 7;
            if byte < 0x80 {
                self.list = &self.list[at + 1..];
                self.last = self.last.wrapping_add(number);
                return Some(self.last);
            }
        }
        self.list = &[];
        None
    }

    fn count(self) -> usize {
        list_length(self.list) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Unpacks a list beside another column, with room for so many numbers at a time.
    fn check_unpack(list: &[u8], numbers: &[u64], room: usize) {
        let unpack = Unpack {
            at: 1,
            column: "list".to_owned(),
        };
        let found = Cell::new(Vec::new());
        let take = |values: &[Value<'_>]| {
            let mut all = found.take();
            all.push(format!("{values:?}"));
            found.set(all);
            Ok(())
        };
        let is_full = || {
            let all = found.take();
            let count = all.len();
            found.set(all);
            count >= room
        };
        let record = [Value::Bool(true), Value::Bytes(list)];
        let mut left = unpack.go(7, &record, &is_full, &mut { take }).unwrap();
        if room + 15 < numbers.len() {
            assert!(left.is_some());
        }
        while let Some(more) = left {
            assert_eq!(more.place, 7);
            left = unpack.go_on(more, &|| true, &mut { take }).unwrap();
        }
        let wanted = numbers
            .iter()
            .map(|&number| format!("{:?}", [Value::Bool(true), Value::U64(number)]));
        assert!(found.take().into_iter().eq(wanted));
    }

    #[test]
    fn bytes_that_are_no_list() {
        let unpack = Unpack {
            at: 0,
            column: "x".to_owned(),
        };
        let longest = [0xff; 9];
        for (bytes, is_list) in [
            (vec![0x80], false),
            (vec![1, 2, 0xff], false),
            ([&longest[..], &[1]].concat(), true),
            ([&longest[..], &[2]].concat(), false),
            ([&longest[..], &[0xff, 0]].concat(), false),
            // One more than there is.
            ([&longest[..], &[1, 1]].concat(), false),
        ] {
            let record = [Value::Bytes(&bytes)];
            let done = unpack.go(0, &record, &|| false, &mut |_| Ok(()));
            match done {
                Ok(left) => assert!(is_list && left.is_none(), "{bytes:?}"),
                Err(error) => {
                    assert!(!is_list && error.kind == ErrorKind::Input, "{bytes:?}");
                    assert!(error.cause.contains("column x"), "{error}");
                }
            }
        }
    }

    #[test]
    fn numbers_come_back() {
        let many: Vec<u64> = (0..50).map(|number| number * number * 37).collect();
        for numbers in [
            &[][..],
            &[0],
            &[7, 300, 300, 1000],
            &[0, 127, 255, 1 << 35, u64::MAX - 1, u64::MAX],
            &many,
        ] {
            let (mut list, mut last) = (Vec::new(), 0);
            for &number in numbers {
                write_number(number - last, &mut list);
                last = number;
            }
            assert!(unpack(&list).eq(numbers.iter().copied()));
            assert_eq!(unpack(&list).count(), numbers.len());
            for room in 0..2 * numbers.len() {
                check_unpack(&list, numbers, room);
            }
        }
        let mut list = Vec::new();
        [7, 293, 0, 700]
            .iter()
            .for_each(|&step| write_number(step, &mut list));
        assert_eq!(list, [0x07, 0xa5, 0x02, 0x00, 0xbc, 0x05]);
        // Bytes that are no list end somewhere.
        assert_eq!(unpack(&[0xff; 30]).count(), 0);
        for length in [1, 254, 255, 256, 700] {
            assert_eq!(unpack(&vec![1; length]).count(), length);
        }
        assert!(unpack(&[0xff; 30]).next().is_none());
    }

    #[test]
    fn eight_bytes_at_once_tell_what_they_tell_one_by_one() {
        let mut state = 20_261_127_u64;
        for _ in 0..100_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            // Numbers of any length: bytes that go on, and behind them anything.
            let goes_on = 0x8080_8080_8080_8080 & !(u64::MAX << (state >> 58));
            let eight = (state ^ state >> 31) | goes_on;
            let mut at = 0;
            let number = read_long_number(&eight.to_le_bytes(), &mut at);
            let wanted = number.map(|number| (number, at));
            assert_eq!(number_within(eight), wanted, "{eight:x}");
        }
        assert_eq!(number_within(u64::MAX), None);
    }
}
