//! Columns one below the other: what SQL's UNPIVOT and a data frame's `melt` do.

use super::column::{Column, Value, row};
use super::verbs::{Sink, Step};
use super::{NodeKind, Table, find, wrong};
use crate::error::Result;

/// Which columns become one.
#[derive(Clone, Debug)]
pub(super) struct Unpivot {
    at: Vec<usize>,
    others: Vec<usize>,
}

impl Unpivot {
    /// Hands over a record for each of the columns.
    pub fn go(&self, record: &[Value<'_>], next: Sink<'_>) -> Result<()> {
        for &at in &self.at {
            let get = |number: usize| Ok(record[self.others.get(number).copied().unwrap_or(at)]);
            row(self.others.len() + 1, get, &mut *next)?;
        }
        Ok(())
    }
}

impl Table {
    /// For each record one for each of `columns`, in this order: its value is that of the column `name`, behind all other columns, which
    /// are as they were. The values must be of one type.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Usage`] for a column that is not there, types that differ, and a name that is taken.
    pub fn unpivot(&self, columns: &[&str], name: &str) -> Result<Self> {
        let mut at = Vec::new();
        for column in columns {
            at.push(find(&self.columns, column)?);
        }
        let Some(&first) = at.first() else {
            return Err(wrong("no column is named".to_owned()));
        };
        let kind = self.columns[first].kind;
        let mut made = Column::new(name, kind);
        for &at in &at {
            let column = &self.columns[at];
            if column.kind != kind {
                let (one, other) = (kind.name(), column.kind.name());
                return Err(wrong(format!(
                    "columns of types {one} and {other} cannot become one"
                )));
            }
            made = made.or_null_if(column.nullable);
        }
        let others: Vec<usize> = (0..self.columns.len())
            .filter(|other| !at.contains(other))
            .collect();
        let all = others.iter().map(|&at| self.columns[at].clone());
        let all = all.chain([made]).collect();
        let step = NodeKind::Step(Step::Unpivot(Unpivot { at, others }));
        self.then(format!("unpivot {}", columns.join(", ")), step, all)
    }
}
