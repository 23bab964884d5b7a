//! Lists of whole numbers as bytes: what `pack` makes of a group, and what is made of a list again.
//!
//! ```text
//! 7, 300, 300, 1000  ->  07 | A5 02 | 00 | BC 05      the differences in rising order, 7 bits a byte (LEB128), the low ones first
//! ```
//!
//! So a list of neighbours in a graph of 20 million vertices takes some three bytes for each.

use sortmill_io::sync::Arc;

use super::column::{Column, Type, Value};
use super::groups::{Event, MakeStreamFn};
use super::{Groups, Table, find, wrong};
use crate::error::{Error, ErrorKind, Result};

/// A list with more bytes is refused: it must be in memory.
const LIST_BYTES_MAX: usize = 16 << 20;

impl Groups {
    /// A record for each group: its columns, and as `name`, a binary column, all values of `column`, of type u64, in rising
    /// order, which [`unpack`] tells. The engine puts them in order.
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
            let (mut key, mut list, mut last): (Vec<super::Owned>, _, _) =
                (Vec::new(), Vec::new(), 0);
            Box::new(move |event, out| match event {
                Event::Record(record) => {
                    let Value::U64(number) = record[at] else {
                        unreachable!("the column is of type u64");
                    };
                    if key.is_empty() {
                        key.extend(by.iter().map(|&at| super::Owned::new(record[at])));
                        last = 0;
                    }
                    write_number(number - last, &mut list);
                    last = number;
                    match list.len() > LIST_BYTES_MAX {
                        true => Err(too_long(record, &by)),
                        false => Ok(()),
                    }
                }
                Event::GroupEnd => {
                    let mut values: Vec<Value<'_>> = key.iter().map(super::Owned::value).collect();
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
    let group: Vec<&Value<'_>> = by.iter().map(|&at| &record[at]).collect();
    let cause = format!("the list of group {group:?} has more than {LIST_BYTES_MAX} bytes");
    Error::new(ErrorKind::Input, "packing a list", cause)
}

fn write_number(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
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

    /// Each number ends in a byte below 128.
    fn count(self) -> usize {
        self.list.iter().filter(|&&byte| byte < 0x80).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for numbers in [
            &[][..],
            &[0],
            &[7, 300, 300, 1000],
            &[0, 127, 255, 1 << 35, u64::MAX - 1, u64::MAX],
        ] {
            let (mut list, mut last) = (Vec::new(), 0);
            for &number in numbers {
                write_number(number - last, &mut list);
                last = number;
            }
            assert!(unpack(&list).eq(numbers.iter().copied()));
            assert_eq!(unpack(&list).count(), numbers.len());
        }
        let mut list = Vec::new();
        [7, 293, 0, 700]
            .iter()
            .for_each(|&step| write_number(step, &mut list));
        assert_eq!(list, [0x07, 0xa5, 0x02, 0x00, 0xbc, 0x05]);
        // Bytes that are no list end somewhere.
        assert_eq!(unpack(&[0xff; 30]).count(), 0);
        assert!(unpack(&[0xff; 30]).next().is_none());
    }
}
