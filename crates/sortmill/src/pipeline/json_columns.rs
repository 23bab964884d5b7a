//! Which columns JSON lines have, and of which types, from the first objects of the first file.

use std::fmt;
use std::path::PathBuf;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value as Json;
use sortmill_io::Os;
use sortmill_io::os::Kind;

use super::column::{Column, Type};
use super::{paths, wrong};
use crate::bad::Allowed;
use crate::columns::BYTE_ORDER_MARK;
use crate::error::{Error, ErrorKind, Result};
use crate::job::Input;
use crate::run;
use crate::stage::read::beginning;

const DOING: &str = "looking for columns";
/// So much is looked at.
const LOOK_BYTES: usize = 1 << 20;

/// The members that objects have in the first mebibyte of the first file that has any, in the order in which they come first: text,
/// truth values, whole numbers (`u64` if one is too large for a sign and none is below 0), and else floats. Any of them may be missing or null, in
/// what is not looked at too. Lists and objects within are left out, and so is what is null everywhere. Up to `skip_bad` lines that are
/// no objects are passed over.
///
/// # Errors
/// [`ErrorKind::Input`] for files that cannot be read, for what is no object, and if all are empty; [`ErrorKind::Usage`] for a pipe, whose
/// beginning can be read only once, and for a member of different types.
pub fn jsonl_columns(os: &dyn Os, patterns: &[PathBuf], skip_bad: u64) -> Result<Vec<Column>> {
    let allowed = Allowed::new(skip_bad);
    for path in paths::expand(os, patterns)? {
        let sources = run::open_inputs(os, &[Input::Path(path.clone())], true)?;
        let source = &sources[0];
        if source.meta.kind != Kind::Regular {
            let cause = "a pipe can be read only once, so say which columns there are";
            return Err(Error::new(ErrorKind::Usage, DOING, cause).at(&path));
        }
        let (bytes, _) = beginning(os, source, LOOK_BYTES)
            .map_err(|error| Error::io(DOING, &path, &error).kind(ErrorKind::Input))?;
        let mut found = Found::default();
        let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
        let mut at = (bytes.len() - text.len()) as u64;
        for (number, line) in (1..).zip(text.split_inclusive(|&byte| byte == b'\n')) {
            let is_cut = !line.ends_with(b"\n") && bytes.len() == LOOK_BYTES;
            if !is_cut && !line.trim_ascii().is_empty() {
                let told = |why: String| {
                    // Of each line it says that it is the first.
                    let cause = format!(
                        "line {number}: {}",
                        why.replace(" at line 1 column", " at byte")
                    );
                    let error = Error::new(ErrorKind::Input, DOING, cause).at(&path);
                    match source.codec {
                        None => error.offset(at),
                        Some(_) => error,
                    }
                };
                if let Err(why) = found.look(line) {
                    allowed.leave_out(1, told(why))?;
                }
            }
            at += line.len() as u64;
        }
        if !found.0.is_empty() {
            return found.columns();
        }
    }
    let cause = "no object names a column";
    let first = patterns.first().cloned().unwrap_or_default();
    Err(Error::new(ErrorKind::Input, DOING, cause).at(&first))
}

/// Members by their names, and what their values are.
#[derive(Default)]
struct Found(Vec<(String, Seen)>);

/// What values of a member are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Nothing,
    Bool,
    Text,
    /// Whole numbers; whether one is below 0, and one too large for those with a sign.
    Whole {
        negative: bool,
        large: bool,
    },
    Float,
    Nested,
    /// Of these types.
    Different(Type, Type),
}

impl Found {
    fn look(&mut self, line: &[u8]) -> std::result::Result<(), String> {
        let object: Object = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        for (name, value) in object.0 {
            let seen = Seen::of(&value);
            match self.0.iter_mut().find(|(known, _)| *known == name) {
                Some((_, before)) => *before = before.and(seen),
                None => self.0.push((name, seen)),
            }
        }
        Ok(())
    }

    fn columns(self) -> Result<Vec<Column>> {
        let mut columns = Vec::new();
        for (name, seen) in self.0 {
            if let Seen::Different(one, other) = seen {
                let (one, other) = (one.name(), other.name());
                return Err(wrong(format!(
                    "member {name} is of type {one} in some objects and {other} in others: say which columns to read"
                )));
            }
            let Some(kind) = seen.kind() else { continue };
            columns.push(Column::new(&name, kind).or_null());
        }
        match columns.is_empty() {
            true => Err(wrong(
                "no member of the first objects is a value: say which columns to read".to_owned(),
            )),
            false => Ok(columns),
        }
    }
}

impl Seen {
    fn of(value: &Json) -> Self {
        match value {
            Json::Null => Self::Nothing,
            Json::Bool(_) => Self::Bool,
            Json::Number(number) if number.is_f64() => Self::Float,
            Json::Number(number) => Self::Whole {
                negative: number.as_i64().is_some_and(|number| number < 0),
                large: !number.is_i64(),
            },
            Json::String(_) => Self::Text,
            Json::Array(_) | Json::Object(_) => Self::Nested,
        }
    }

    /// The type of a column of them, if one can have them.
    fn kind(self) -> Option<Type> {
        match self {
            Self::Nothing | Self::Nested | Self::Different(..) => None,
            Self::Bool => Some(Type::Bool),
            Self::Text => Some(Type::String),
            Self::Whole { large: false, .. } => Some(Type::I64),
            Self::Whole {
                negative: false, ..
            } => Some(Type::U64),
            Self::Whole { .. } | Self::Float => Some(Type::F64),
        }
    }

    /// What values are that are these and those.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, one) | (one, Self::Nothing) => one,
            (one, same) if one == same => one,
            (Self::Nested, _) | (_, Self::Nested) => Self::Nested,
            (Self::Different(..), _) => self,
            (_, Self::Different(..)) => other,
            (
                Self::Whole { negative, large },
                Self::Whole {
                    negative: also_negative,
                    large: also_large,
                },
            ) => Self::Whole {
                negative: negative || also_negative,
                large: large || also_large,
            },
            (Self::Float, Self::Whole { .. }) | (Self::Whole { .. }, Self::Float) => Self::Float,
            _ => {
                let kind = |seen: Self| seen.kind().expect("it is of one type");
                Self::Different(kind(self), kind(other))
            }
        }
    }
}

/// The members of an object, in order.
struct Object(Vec<(String, Json)>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Object, A::Error> {
                let mut members = Vec::new();
                while let Some(name) = map.next_key()? {
                    members.push((name, map.next_value()?));
                }
                Ok(Object(members))
            }
        }
        from.deserialize_map(Members)
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    fn found(lines: &str) -> Result<Vec<String>> {
        let mut found = Found::default();
        lines
            .lines()
            .for_each(|line| found.look(line.as_bytes()).unwrap());
        let told = |column: &Column| format!("{} {}", column.name, column.type_name());
        Ok(found.columns()?.iter().map(told).collect())
    }

    #[test]
    fn types_are_those_that_all_values_have() {
        let lines = r#"{"z":1,"a":"x","t":true,"n":null,"l":[1],"big":1,"mixed":-1,"f":1}
            {"z":-2,"late":1.5,"big":18446744073709551615,"mixed":18446744073709551615,"f":1e3,"l":null}"#;
        let wanted = [
            "z i64?",
            "a string?",
            "t bool?",
            "big u64?",
            "mixed f64?",
            "f f64?",
            "late f64?",
        ];
        assert_eq!(found(lines).unwrap(), wanted);
        let error = found("{\"a\":1}\n{\"a\":\"1\"}").unwrap_err();
        assert!(
            error
                .cause
                .contains("a is of type i64 in some objects and string in others"),
            "{error}"
        );
        assert!(found("{\"a\":[1]}\n{\"a\":2}\n{\"b\":null}").is_err());
        assert!(
            Found::default()
                .look(b"[1]")
                .unwrap_err()
                .contains("a JSON object")
        );
        assert!(Found::default().look(b"{\"a\":1} x").is_err());
    }
}
