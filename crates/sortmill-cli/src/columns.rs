//! `--format csv|tsv|jsonl` and what goes with them: which columns decide, as words and as the engine has them.
//!
//! `--by ts,-id:num` names columns with commas between two, a minus in front of one where larger comes first, a type
//! behind a colon. A backslash has the next character stand for itself, so that any name can be told.

use clap::{Args, ValueEnum};
use sortmill::columns::{Column, Columns, Compare, Form, Header, Name, Nulls, steps};
use sortmill::error::Result;
use sortmill::order::Format;

use crate::sort::keys::refused;

/// How records are made, as `--format` has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Of no columns.
    Plain(Format),
    /// Values with commas between two, in quotes where they must be.
    Csv,
    /// Values with tabs between two.
    Tsv,
    /// Lines of JSON.
    Json,
}

impl Kind {
    /// Whether records are lines and nothing more.
    pub fn is_lines(self) -> bool {
        self == Self::Plain(Format::Lines)
    }
}

/// The flags of records that are made of columns.
#[derive(Args, Default, Debug)]
#[command(next_help_heading = "Columns: --format csv, tsv and jsonl")]
pub struct By {
    /// The columns that decide the order, the most significant first: `ts,-id:num`. A minus has larger come first; :num
    /// compares as numbers, and what is none is an error; :str compares bytes, as is usual but in JSON, where each value
    /// is compared as what it is. In JSON `a.b.0` is a path. A backslash has `,`, `:`, `-`, `.` and itself be part of a
    /// name. Equal records stay as they are
    #[arg(long, value_name = "COLUMNS", allow_hyphen_values = true)]
    pub by: Vec<String>,

    /// There is no header: columns are numbers, from 1. Else the first record of each input names them, must be the
    /// same in all inputs, and stays at the top
    #[arg(long)]
    pub no_header: bool,

    /// What parts the values of csv and tsv: one byte, \t is a tab. Default: a comma; a tab
    #[arg(long, value_name = "C", value_parser = parse_byte)]
    pub delimiter: Option<u8>,

    /// What the values of csv may stand between: one byte, or `none`. Default: "
    #[arg(long, value_name = "C", value_parser = parse_quote)]
    pub quote: Option<Quote>,

    /// Where records come with nothing in a column (an empty value; in JSON null or no value), either way it is sorted.
    /// Default: first
    #[arg(long, value_name = "WHERE", value_enum)]
    pub nulls: Option<Where>,
}

/// What `--quote` takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quote {
    /// Quotes are bytes as any other.
    None,
    /// This byte.
    Byte(u8),
}

/// What `--nulls` takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Where {
    /// Before all others
    First,
    /// Behind all others
    Last,
}

impl By {
    /// The columns of records of `kind`; `None` where there are none.
    ///
    /// # Errors
    /// Flags that mean nothing for this kind, and columns that cannot be read, or of which there are none.
    pub fn columns(&self, kind: Kind) -> Result<Option<Columns>> {
        self.refuse_useless(kind)?;
        let (delimiter, quote) = match kind {
            Kind::Plain(_) => return Ok(None),
            Kind::Csv => (b',', Some(b'"')),
            Kind::Tsv => (b'\t', None),
            Kind::Json => (0, None),
        };
        let form = match kind {
            Kind::Json => Form::Json,
            _ => Form::Separated {
                delimiter: self.delimiter.unwrap_or(delimiter),
                quote: match self.quote {
                    None => quote,
                    Some(Quote::None) => None,
                    Some(Quote::Byte(byte)) => Some(byte),
                },
                header: match self.no_header {
                    true => Header::None,
                    false => Header::First,
                },
            },
        };
        let mut by = Vec::new();
        for text in &self.by {
            for word in split(text, ',') {
                let column = self.column(&word, kind);
                by.push(column.map_err(|cause| refused(format!("--by {text}: {cause}")))?);
            }
        }
        if by.is_empty() {
            return Err(refused("records of columns have no order by themselves")
                .hint("Name the columns that decide: --by NAME,-OTHER:num."));
        }
        let nulls = match self.nulls {
            Some(Where::Last) => Nulls::Last,
            Some(Where::First) | None => Nulls::First,
        };
        Ok(Some(Columns { form, by, nulls }))
    }

    /// Flags that say nothing about records of `kind`.
    fn refuse_useless(&self, kind: Kind) -> Result<()> {
        let is_separated = matches!(kind, Kind::Csv | Kind::Tsv);
        let is_any = !matches!(kind, Kind::Plain(_));
        for (given, flag, has_meaning, of) in [
            (!self.by.is_empty(), "--by", is_any, "csv, tsv and jsonl"),
            (
                self.nulls.is_some(),
                "--nulls",
                is_any,
                "csv, tsv and jsonl",
            ),
            (self.no_header, "--no-header", is_separated, "csv and tsv"),
            (
                self.delimiter.is_some(),
                "--delimiter",
                is_separated,
                "csv and tsv",
            ),
            (self.quote.is_some(), "--quote", kind == Kind::Csv, "csv"),
        ] {
            if given && !has_meaning {
                return Err(refused(format!("{flag} is about --format {of}")));
            }
        }
        Ok(())
    }

    /// One column: `-NAME:TYPE`.
    fn column(&self, word: &str, kind: Kind) -> std::result::Result<Column, String> {
        let (reversed, word) = match word.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, word),
        };
        let mut parts = split(word, ':').into_iter();
        let name = parts.next().unwrap_or_default();
        let compare = match (parts.next().as_deref(), parts.next()) {
            (None, _) => Compare::Value,
            (Some("str"), None) => Compare::Text,
            (Some("num"), None) => Compare::Number,
            (Some(other), None) => return Err(format!("{other:?} is no type: str and num are")),
            (Some(_), Some(_)) => return Err("a column has one type".into()),
        };
        let name = match kind {
            Kind::Json => Name::Path(steps(&name)),
            _ if self.no_header => {
                let number = plain(&name).parse().ok().filter(|&number| number > 0);
                let number = number.ok_or_else(|| {
                    format!(
                        "{name:?} is no number of a column, from 1: there is no header to name it"
                    )
                })?;
                Name::Number(number)
            }
            _ => Name::Named(plain(&name)),
        };
        Ok(Column {
            name,
            compare,
            reversed,
        })
    }
}

/// What stands between bytes `at`, but for those behind a backslash, which stays.
fn split(text: &str, at: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == at {
            parts.push(String::new());
            continue;
        }
        let last = parts.last_mut().expect("there is one at least");
        last.push(character);
        if character == '\\' {
            last.extend(characters.next());
        }
    }
    parts
}

/// The text without backslashes, but for those behind one.
fn plain(text: &str) -> String {
    let mut characters = text.chars();
    let next = || match characters.next() {
        Some('\\') => characters.next().or(Some('\\')),
        other => other,
    };
    std::iter::from_fn(next).collect()
}

fn parse_byte(text: &str) -> std::result::Result<u8, String> {
    match (text, text.as_bytes()) {
        ("\\t", _) => Ok(b'\t'),
        (_, &[byte]) => Ok(byte),
        _ => Err("it is one byte".into()),
    }
}

fn parse_quote(text: &str) -> std::result::Result<Quote, String> {
    match text {
        "none" => Ok(Quote::None),
        _ => parse_byte(text).map(Quote::Byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(text: &str, no_header: bool, kind: Kind) -> std::result::Result<Vec<Column>, String> {
        let by = By {
            by: vec![text.to_owned()],
            no_header,
            delimiter: None,
            quote: None,
            nulls: None,
        };
        let columns = by.columns(kind).map_err(|error| error.cause.clone())?;
        Ok(columns.unwrap().by)
    }

    fn named(name: &str, compare: Compare, reversed: bool) -> Column {
        Column {
            name: Name::Named(name.to_owned()),
            compare,
            reversed,
        }
    }

    #[test]
    fn columns_are_read() {
        use Compare::{Number, Text, Value};
        let csv = |text| by(text, false, Kind::Csv).unwrap();
        assert_eq!(csv("ts"), [named("ts", Value, false)]);
        let two = [named("ts", Text, true), named("id", Number, false)];
        assert_eq!(csv("-ts:str,id:num"), two);
        let odd = [
            named("-a,b", Number, true),
            named("c:d\\", Value, false),
            named("", Value, false),
        ];
        assert_eq!(csv(r"-\-a\,b:num,c\:d\\,"), odd);
        let number = Column {
            name: Name::Number(3),
            ..named("", Number, true)
        };
        assert_eq!(by("-3:num", true, Kind::Tsv).unwrap(), [number]);
        let path = Column {
            name: Name::Path(vec!["a".into(), "b.c".into(), "0".into()]),
            ..named("", Value, false)
        };
        assert_eq!(by(r"a.b\.c.0", false, Kind::Json).unwrap(), [path]);
    }

    #[test]
    fn columns_that_cannot_be_read_are_refused() {
        for (text, no_header, kind, cause) in [
            ("a:int", false, Kind::Csv, "is no type"),
            ("a:num:str", false, Kind::Csv, "has one type"),
            ("a", true, Kind::Csv, "no number of a column"),
            ("0", true, Kind::Tsv, "no number of a column"),
            ("a", false, Kind::Plain(Format::Lines), "--by is about"),
            ("a", true, Kind::Json, "--no-header is about"),
        ] {
            let told = by(text, no_header, kind).unwrap_err();
            assert!(told.contains(cause), "{text}: {told}");
        }
    }
}
