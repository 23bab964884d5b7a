//! Built-in functions from one column to a record for each part of it, as they are said: words, n-grams, parts, fields, what an
//! expression finds. `verbs.rs` does it.

use super::column::{Column, Type};
use super::ngrams::Ngrams;
use super::patterns::Pattern;
use crate::error::{Error, ErrorKind, Result};

/// A built-in function from one column to a record for each part of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parts {
    /// The column that is cut.
    pub column: String,
    /// What the columns are called that come out.
    pub made: Vec<Column>,
    /// Columns that stay, in front of those.
    pub kept: Vec<String>,
    pub(super) how: How,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum How {
    Words { lower: bool },
    Ngrams { count: usize, lower: bool },
    Split { by: Vec<u8> },
    Fields { by: Vec<u8> },
    Extract { pattern: Pattern },
}

fn parts(column: impl Into<String>, made: &str, how: How) -> Parts {
    Parts {
        column: column.into(),
        made: vec![Column::new(made, Type::String)],
        kept: Vec::new(),
        how,
    }
}

/// Each word of `column`, as the column `word`: letters and digits of any script (Unicode: alphabetic or numeric), as many
/// as stand together. Whatever is no UTF-8 stands between words.
pub fn words(column: impl Into<String>) -> Parts {
    parts(column, "word", How::Words { lower: false })
}

/// Each row of `count` words of `column` that follow one another, with spaces between, as the column `ngram`.
pub fn ngrams(column: impl Into<String>, count: usize) -> Parts {
    parts(
        column,
        "ngram",
        How::Ngrams {
            count,
            lower: false,
        },
    )
}

/// What stands between the places where `by` is in `column`, as the column `part`; empty parts too.
pub fn split(column: impl Into<String>, by: impl Into<Vec<u8>>) -> Parts {
    parts(column, "part", How::Split { by: by.into() })
}

/// One record of what stands between the places where `by` is in `column`: as many columns as `made`, each read as what
/// its type says. A record with more or fewer parts, or one that is no such value, is bad input.
pub fn fields(column: impl Into<String>, by: impl Into<Vec<u8>>, made: Vec<Column>) -> Parts {
    Parts {
        column: column.into(),
        made,
        kept: Vec::new(),
        how: How::Fields { by: by.into() },
    }
}

/// One record of the parts in parentheses of the regular expression `pattern` where it is first found in `column`: as many
/// columns as `made`, each read as what its type says. Records where it is not found are left out, and a part of it that took
/// no part is empty text, or no value where that may be.
///
/// # Errors
/// [`ErrorKind::Usage`] for an expression that cannot be read, or has another number of parts in parentheses.
pub fn extract(column: impl Into<String>, pattern: &str, made: Vec<Column>) -> Result<Parts> {
    let pattern = Pattern::new(pattern)?;
    if pattern.group_count() != made.len() {
        let (parts, columns) = (pattern.group_count(), made.len());
        let cause = format!("{parts} parts in parentheses and {columns} columns");
        return Err(super::wrong(cause));
    }
    Ok(Parts {
        column: column.into(),
        made,
        kept: Vec::new(),
        how: How::Extract { pattern },
    })
}

impl Parts {
    /// With words in lower case (Unicode, of each word by itself); of others the same.
    #[must_use]
    pub fn lower(mut self) -> Self {
        if let How::Words { lower } | How::Ngrams { lower, .. } = &mut self.how {
            *lower = true;
        }
        self
    }

    /// With another name for the one column that comes out.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        if let [only] = &mut self.made[..] {
            name.clone_into(&mut only.name);
        }
        self
    }

    /// With `columns` of the record in front of those that are made of it, in each record that comes out.
    #[must_use]
    pub fn keeping(mut self, columns: &[&str]) -> Self {
        self.kept = columns.iter().map(|&name| name.to_owned()).collect();
        self
    }

    /// Why it cannot be done, if it cannot.
    pub(super) fn wrong(&self) -> Option<&'static str> {
        match &self.how {
            How::Ngrams { count: 0, .. } => Some("an n-gram has at least one word"),
            How::Split { by } | How::Fields { by } if by.is_empty() => {
                Some("what parts are cut at has at least one byte")
            }
            _ if self.made.is_empty() => Some("at least one column comes out"),
            _ => None,
        }
    }

    /// Of no text at all no records are made; where each text makes one, that is bad input.
    pub(super) fn of_null(&self) -> Result<()> {
        match self.how {
            How::Fields { .. } => {
                let cause = format!("column {} is null, and has no fields", self.column);
                Err(Error::new(ErrorKind::Input, "reading fields", cause))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a record with `found` fields if that is not as many as there should be.
    pub(super) fn check_count(&self, found: usize) -> Result<()> {
        let wanted = self.made.len();
        if found == wanted {
            return Ok(());
        }
        let cause = format!("it has {found} fields where {wanted} are expected");
        Err(Error::new(ErrorKind::Input, "reading fields", cause))
    }

    /// Of how many words each part is made, where a text may become many parts.
    pub(super) fn words_each(&self) -> Option<usize> {
        match self.how {
            How::Words { .. } | How::Split { .. } => Some(1),
            How::Ngrams { count, .. } => Some(count),
            How::Fields { .. } | How::Extract { .. } => None,
        }
    }

    /// What makes its rows of words, if it is that.
    pub(super) fn rows_of_words(&self) -> Option<Ngrams> {
        match self.how {
            How::Ngrams { count, lower } => Some(Ngrams::new(count, lower)),
            _ => None,
        }
    }

    /// Its name, for people.
    pub(super) fn name(&self) -> String {
        let name = match &self.how {
            How::Words { .. } => "words".to_owned(),
            How::Ngrams { count, .. } => format!("{count}-grams"),
            How::Split { .. } => "split".to_owned(),
            How::Fields { .. } => "fields".to_owned(),
            How::Extract { .. } => "parts of a pattern".to_owned(),
        };
        format!("{name} of {}", self.column)
    }
}
