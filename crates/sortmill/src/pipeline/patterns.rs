//! Regular expressions over text: records that match, and parts of them as columns.
//!
//! Expressions are those of the crate `regex`, which takes time in proportion to the text whatever the expression, over bytes:
//! text need not be UTF-8. Each worker has a copy of its own, because copies share no scratch space.

use std::ops::Range;

use regex::bytes::{CaptureLocations, Regex};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{
    Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Repetition,
};

use super::column::{Column, Value};
use super::verbs::Sink;
use super::wrong;
use crate::error::{Error, ErrorKind, Result};

/// A regular expression that can be read.
#[derive(Clone, Debug)]
pub(super) struct Pattern(Regex);

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for Pattern {}

impl Pattern {
    /// # Errors
    /// [`ErrorKind::Usage`] with what is wrong with it.
    pub fn new(text: &str) -> Result<Self> {
        let read = Regex::new(text);
        read.map(Self).map_err(|error| wrong(error.to_string()))
    }

    /// How many parts of it are in parentheses.
    pub fn group_count(&self) -> usize {
        self.0.captures_len() - 1
    }

    /// Whether it is found in `text`.
    pub fn is_in(&self, text: &[u8]) -> bool {
        self.0.is_match(text)
    }

    /// The same for many lines at once, if it is found wherever its text stands, whatever stands around it: what it finds takes in no
    /// end of a line.
    pub fn of_many_lines(&self) -> Option<Self> {
        let mut parser = ParserBuilder::new().utf8(false).build();
        let read = parser.parse(self.0.as_str()).ok()?;
        if !read.properties().look_set().is_empty() {
            return None;
        }
        let read = Regex::new(&within_a_line(&read).to_string());
        read.ok().map(Self)
    }

    /// Where the first of the lines from `from` on lies, its end included, in which a match begins.
    pub fn line_with(&self, lines: &[u8], from: usize) -> Option<Range<usize>> {
        let start = from + self.0.find(&lines[from..])?.start();
        let begin = memchr::memrchr(b'\n', &lines[from..start]).map_or(from, |end| from + end + 1);
        Some(begin..line_end(lines, start))
    }

    /// Hands one record to `next` of the parts in parentheses where it is first found in `text`, each read as what its column
    /// says; none where it is not found. A part that took no part is empty, or no value where that may be.
    pub fn extract(
        &self,
        text: &[u8],
        made: &[Column],
        found: &mut Option<CaptureLocations>,
        next: Sink<'_>,
    ) -> Result<()> {
        let found = found.get_or_insert_with(|| self.0.capture_locations());
        if self.0.captures_read(found, text).is_none() {
            return Ok(());
        }
        let part = |number: usize| -> Result<Value<'_>> {
            match found.get(number + 1) {
                Some((from, to)) => made[number].read(&text[from..to]),
                None if made[number].nullable => Ok(Value::Null),
                None => made[number].read(&[]),
            }
        };
        super::column::row(made.len(), part, next)
    }
}

/// Where the line ends, its end included, that `from` lies in.
pub(super) fn line_end(lines: &[u8], from: usize) -> usize {
    let end = memchr::memchr(b'\n', &lines[from..]);
    end.map_or(lines.len(), |end| from + end + 1)
}

/// The same expression that matches no newline.
fn within_a_line(of: &Hir) -> Hir {
    let all = |parts: &[Hir]| parts.iter().map(within_a_line).collect();
    match of.kind() {
        HirKind::Empty | HirKind::Look(_) => of.clone(),
        HirKind::Literal(text) if text.0.contains(&b'\n') => Hir::fail(),
        HirKind::Literal(_) => of.clone(),
        HirKind::Class(Class::Unicode(class)) => {
            let mut class = class.clone();
            class.difference(&ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]));
            Hir::class(Class::Unicode(class))
        }
        HirKind::Class(Class::Bytes(class)) => {
            let mut class = class.clone();
            class.difference(&ClassBytes::new([ClassBytesRange::new(b'\n', b'\n')]));
            Hir::class(Class::Bytes(class))
        }
        HirKind::Repetition(repeated) => Hir::repetition(Repetition {
            sub: Box::new(within_a_line(&repeated.sub)),
            ..repeated.clone()
        }),
        HirKind::Capture(group) => within_a_line(&group.sub),
        HirKind::Concat(parts) => Hir::concat(all(parts)),
        HirKind::Alternation(parts) => Hir::alternation(all(parts)),
    }
}

/// Records by whether a column has text that matches.
#[derive(Clone, Debug)]
pub struct Matches {
    /// The column.
    pub column: String,
    /// The regular expression.
    pub pattern: String,
    /// Whether records are wanted that do not match.
    pub is_inverted: bool,
}

/// The records in whose `column` the regular expression `pattern` is found. Those that have no value there are neither these
/// nor the others ([`Matches::inverted`]).
pub fn matches(column: impl Into<String>, pattern: impl Into<String>) -> Matches {
    Matches {
        column: column.into(),
        pattern: pattern.into(),
        is_inverted: false,
    }
}

impl Matches {
    /// All other records.
    #[must_use]
    pub fn inverted(self) -> Self {
        Self {
            is_inverted: !self.is_inverted,
            ..self
        }
    }
}

impl Column {
    /// The value of the column that `text` says; an empty one says that there is none, where that may be and it is no text.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] when it is none of its type.
    pub(super) fn read<'t>(&self, text: &'t [u8]) -> Result<Value<'t>> {
        if self.is_null(text) {
            return Ok(Value::Null);
        }
        self.kind.parse(text).map_err(|error| {
            let cause = format!("column {}: {}", self.name, error.cause);
            Error::new(ErrorKind::Input, "reading a value", cause)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::Type;

    #[test]
    fn parts_in_parentheses_become_columns() {
        let pattern = Pattern::new(r"(\w+)=(\d+)(!)?").unwrap();
        let made = [("a", Type::String), ("b", Type::I64), ("c", Type::String)];
        let made = made.map(|(name, kind)| Column::new(name, kind));
        assert_eq!(pattern.group_count(), made.len());
        let mut scratch = None;
        let mut check = |text: &[u8], wanted: &[&str]| {
            let mut found = Vec::new();
            let mut see = |record: &[Value<'_>]| {
                found.push(format!("{record:?}"));
                Ok(())
            };
            pattern
                .extract(text, &made, &mut scratch, &mut see)
                .unwrap();
            assert_eq!(found, wanted);
        };
        let wanted = format!(
            "{:?}",
            [Value::Bytes(b"x"), Value::I64(12), Value::Bytes(b"")]
        );
        check(b"\xff x=12 y=3!", &[&wanted]);
        let wanted = format!(
            "{:?}",
            [Value::Bytes(b"y"), Value::I64(3), Value::Bytes(b"!")]
        );
        check(b"y=3!", &[&wanted]);
        check(b"nothing", &[]);
        let may_lack = made.clone().map(Column::or_null);
        let mut see = |record: &[Value<'_>]| {
            assert_eq!(record[1..], [Value::I64(12), Value::Null]);
            Ok(())
        };
        pattern
            .extract(b"x=12", &may_lack, &mut scratch, &mut see)
            .unwrap();
        let huge = b"x=99999999999999999999";
        let error = pattern.extract(huge, &made, &mut scratch, &mut |_| Ok(()));
        let error = error.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Input);
        assert!(error.cause.starts_with("column b: "), "{error}");
        assert_eq!(Pattern::new("(").unwrap_err().kind, ErrorKind::Usage);
    }
}
