//! By what records are put in order: a column, its direction, and where those stand that have no value there.

use super::column::Column;
use super::find;
use super::key::OrderColumn;
use crate::error::Result;

/// By what records are ordered: a column's name, and whether larger values come first. Those without a value come in front.
pub type By<'b> = (&'b str, bool);

/// The same, and where those without a value come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Order<'b> {
    /// The column's name.
    pub column: &'b str,
    /// Whether larger values come first.
    pub descending: bool,
    /// Whether records without a value come behind all others, and not in front of them; in either direction.
    pub nulls_last: bool,
}

impl<'b> From<By<'b>> for Order<'b> {
    fn from((column, descending): By<'b>) -> Self {
        Self {
            column,
            descending,
            nulls_last: false,
        }
    }
}

impl Order<'_> {
    /// Which column of `table` it is.
    pub(super) fn find(&self, table: &[Column]) -> Result<OrderColumn> {
        Ok(OrderColumn {
            at: find(table, self.column)?,
            descending: self.descending,
            nulls_last: self.nulls_last,
        })
    }
}

/// In words, one behind the other.
pub(super) fn by_words(by: &[Order<'_>]) -> String {
    let word = |by: &Order<'_>| {
        let direction = if by.descending { " downwards" } else { "" };
        let nulls = if by.nulls_last { ", nulls last" } else { "" };
        format!("{}{direction}{nulls}", by.column)
    };
    by.iter().map(word).collect::<Vec<_>>().join(", ")
}
