//! Lines that are JSON (RFC 8259): whether a line is, what lies at a path in it, and a string without its escapes.
//!
//! Whether a line is JSON is left to `serde_json`, which passes over it without making anything of it. Finding a value is
//! our own: it passes over what is not wanted and trusts that the line was looked at before, but answers something for
//! any bytes. Of members with the same name the last one counts, as nearly all readers have it.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::wrong::Wrong;

/// A step from a value to one within it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The name of a member.
    name: String,
    /// The number of an element, if the name is one.
    index: Option<u64>,
}

impl Step {
    pub fn new(name: &str) -> Self {
        let is_number = name == "0" || !name.starts_with(['0', '+']);
        Self {
            index: name.parse().ok().filter(|_| is_number),
            name: name.to_owned(),
        }
    }
}

/// Looks whether all of `line` is one JSON value.
pub fn check(line: &[u8]) -> Result<(), Wrong> {
    let mut reader = serde_json::Deserializer::from_slice(line);
    let passed = IgnoredAny::deserialize(&mut reader).and_then(|_| reader.end());
    passed.map_err(|error| {
        // Lines are counted within what was given, which is one.
        let told = error.to_string();
        let what = told.split(" at line ").next().unwrap_or_default();
        let at = error.column().saturating_sub(1).min(line.len());
        Wrong::new(at, format!("this is no JSON ({what})"))
    })
}

/// The text of the value at `path`, if there is one.
#[inline]
pub fn find<'l>(line: &'l [u8], path: &[Step]) -> Option<&'l [u8]> {
    within(Scan { bytes: line, at: 0 }.value(), path)
}

/// The same within a value, of which all is given and nothing else.
#[inline]
pub fn within<'l>(mut value: &'l [u8], path: &[Step]) -> Option<&'l [u8]> {
    for step in path {
        let mut inner = Scan {
            bytes: value,
            at: 1,
        };
        value = match value.first() {
            Some(b'{') => inner.member(&step.name)?,
            Some(b'[') => inner.element(step.index?)?,
            _ => return None,
        };
    }
    Some(value)
}

/// Calls `see` with the name of each member of the object in `line`, as it lies there with its quotes, and the text of its
/// value. `false` if there is no object.
pub fn each_member<'l>(line: &'l [u8], mut see: impl FnMut(&'l [u8], &'l [u8])) -> bool {
    let mut scan = Scan { bytes: line, at: 0 };
    if scan.next_byte() != Some(b'{') {
        return false;
    }
    scan.at += 1;
    scan.members(&mut see);
    true
}

/// Goes through the text of a value.
struct Scan<'l> {
    bytes: &'l [u8],
    at: usize,
}

impl<'l> Scan<'l> {
    /// The last member of an object that is called `name`.
    fn member(&mut self, name: &str) -> Option<&'l [u8]> {
        let mut found = None;
        self.members(&mut |called, value| {
            if is_called(called, name) {
                found = Some(value);
            }
        });
        found
    }

    /// The members of an object, behind its brace.
    #[inline]
    fn members(&mut self, see: &mut impl FnMut(&'l [u8], &'l [u8])) {
        while self.next_byte() == Some(b'"') {
            let called = self.value();
            if self.next_byte() != Some(b':') {
                break;
            }
            self.at += 1;
            see(called, self.value());
            if self.next_byte() != Some(b',') {
                break;
            }
            self.at += 1;
        }
    }

    /// Element `index` of an array, from 0.
    fn element(&mut self, index: u64) -> Option<&'l [u8]> {
        for _ in 0..index {
            self.value();
            if self.next_byte() != Some(b',') {
                return None;
            }
            self.at += 1;
        }
        Some(self.value()).filter(|value| !value.is_empty())
    }

    /// What comes next but blanks.
    #[inline]
    fn next_byte(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// Passes over a value. Its text.
    #[inline]
    fn value(&mut self) -> &'l [u8] {
        let first = self.next_byte();
        let from = self.at;
        match first {
            Some(b'"') => self.pass_string(),
            Some(b'{' | b'[') => self.pass_nested(),
            _ => self.pass_word(),
        }
        &self.bytes[from..self.at]
    }

    #[inline]
    fn pass_string(&mut self) {
        self.at += 1;
        while let Some(found) = memchr::memchr2(b'"', b'\\', &self.bytes[self.at..]) {
            self.at += found + 1;
            if self.bytes[self.at - 1] == b'"' {
                return;
            }
            self.at = (self.at + 1).min(self.bytes.len());
        }
        self.at = self.bytes.len();
    }

    fn pass_nested(&mut self) {
        let mut depth = 0_u64;
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'"' => {
                    self.pass_string();
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }

    /// A number, or a name without quotes.
    #[inline]
    fn pass_word(&mut self) {
        let ends = |byte: &u8| {
            matches!(
                byte,
                b',' | b':' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n'
            )
        };
        let rest = &self.bytes[self.at..];
        self.at += rest.iter().position(ends).unwrap_or(rest.len());
    }
}

/// Whether the string `text`, as it lies there, says `name`.
#[inline]
pub fn is_called(text: &[u8], name: &str) -> bool {
    let inner = inner(text);
    match memchr::memchr(b'\\', inner) {
        None => inner == name.as_bytes(),
        Some(_) => unescaped(inner).eq(name.bytes()),
    }
}

/// The text of a string without its quotes.
#[inline]
pub fn inner(text: &[u8]) -> &[u8] {
    let text = text.strip_prefix(b"\"").unwrap_or(text);
    text.strip_suffix(b"\"").unwrap_or(text)
}

/// The bytes that a string without its quotes stands for: UTF-8, in which half of a pair of surrogates, which is no
/// character, takes three bytes.
pub fn unescaped(inner: &[u8]) -> Unescaped<'_> {
    Unescaped {
        rest: inner,
        made: [0; 4],
        left: 0,
    }
}

/// Goes through the bytes of a string.
#[derive(Clone)]
pub struct Unescaped<'s> {
    rest: &'s [u8],
    /// Bytes of a character, of which the last `left` are still to come.
    made: [u8; 4],
    left: usize,
}

impl Unescaped<'_> {
    /// Takes what stands behind a backslash.
    fn escape(&mut self) -> u8 {
        let Some((&letter, rest)) = self.rest.split_first() else {
            return b'\\';
        };
        self.rest = rest;
        match letter {
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let unit = self.unit(0).unwrap_or(0);
                self.rest = self.rest.get(4..).unwrap_or_default();
                let low = match (unit, self.rest) {
                    (0xd800..0xdc00, [b'\\', b'u', ..]) => self.unit(2),
                    _ => None,
                };
                match low {
                    Some(low @ 0xdc00..0xe000) => {
                        self.rest = &self.rest[6..];
                        self.make(0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00))
                    }
                    _ => self.make(unit),
                }
            }
            other => other,
        }
    }

    /// The four digits at `at` of what is left.
    fn unit(&self, at: usize) -> Option<u32> {
        let digits = self.rest.get(at..at + 4)?;
        let digit = |&byte: &u8| char::from(byte).to_digit(16);
        digits
            .iter()
            .map(digit)
            .try_fold(0, |sum, digit| Some(sum << 4 | digit?))
    }

    /// Makes the bytes of a character. The first of them.
    fn make(&mut self, code: u32) -> u8 {
        let low = |shift: u32| 0x80 | (code >> shift) as u8 & 0x3f;
        let (bytes, left) = match code {
            ..0x80 => return code as u8,
            0x80..0x800 => ([0, 0, 0xc0 | (code >> 6) as u8, low(0)], 1),
            0x800..0x1_0000 => ([0, 0xe0 | (code >> 12) as u8, low(6), low(0)], 2),
            _ => ([0xf0 | (code >> 18) as u8, low(12), low(6), low(0)], 3),
        };
        (self.made, self.left) = (bytes, left);
        bytes[3 - left]
    }
}

impl Iterator for Unescaped<'_> {
    type Item = u8;

    #[inline]
    fn next(&mut self) -> Option<u8> {
        if self.left > 0 {
            self.left -= 1;
            return Some(self.made[3 - self.left]);
        }
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(match byte {
            b'\\' => self.escape(),
            byte => byte,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn path(text: &str) -> Vec<Step> {
        text.split('.').map(Step::new).collect()
    }

    #[track_caller]
    fn check_find(line: &str, at: &str, expected: Option<&str>) {
        check(line.as_bytes()).unwrap();
        let found = find(line.as_bytes(), &path(at));
        let found = found.map(|found| std::str::from_utf8(found).unwrap());
        assert_eq!(found, expected, "{at} in {line}");
    }

    #[test]
    fn values_are_found_at_paths() {
        let line = r#" {"a" : {"b":[1,{"c":"]}\"x"},[ ], null ]} , "a.b":2,"\u0061\/":[],"0":{"1":true}, "":7} "#;
        check_find(line, "a.b.0", Some("1"));
        check_find(line, "a.b.1.c", Some(r#""]}\"x""#));
        check_find(line, "a.b.1", Some(r#"{"c":"]}\"x"}"#));
        check_find(line, "a.b.2", Some("[ ]"));
        check_find(line, "a.b.2.0", None);
        check_find(line, "a.b.3", Some("null"));
        check_find(line, "a.b.4", None);
        check_find(line, "a.b.00", None);
        check_find(line, "a.b.c", None);
        check_find(line, "a.b.0.d", None);
        check_find(line, "a/", Some("[]"));
        check_find(line, "0.1", Some("true"));
        check_find(line, "", Some("7"));
        check_find(line, "b", None);
        check_find(r#"{"a":1,"b":2,"a":{"x":3}}"#, "a.x", Some("3"));
        check_find(r#"{"a":{"x":3},"a":1}"#, "a.x", None);
        check_find("[[3,4]]", "0.1", Some("4"));
        check_find("[]", "0", None);
        check_find("{}", "0", None);
        check_find("12", "0", None);
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place() {
        for (line, at) in [
            ("", 0),
            (" ", 1),
            (r#"{"a":1"#, 6),
            (r#"{"a":01}"#, 6),
            (r#"{"a":"\x"}"#, 7),
            (r#"{"a":1} {}"#, 8),
            (r#"{'a':1}"#, 1),
            ("nul", 3),
        ] {
            let wrong = check(line.as_bytes()).unwrap_err();
            assert!(wrong.at.abs_diff(at) <= 1, "{line}: {wrong:?}");
            assert!(wrong.cause.starts_with("this is no JSON ("), "{wrong:?}");
            assert!(!wrong.cause.contains("line 1"), "{wrong:?}");
        }
    }

    #[test]
    fn strings_are_what_their_escapes_say() {
        for text in [
            r#""""#,
            r#""plain""#,
            r#""\"\\\/\b\f\n\r\t""#,
            r#""\u0000\u007f\u0080\u07ff\u0800\uffff\uD7FF""#,
            r#""\ud834\udd1e \udbff\udfff\ud800\udc00""#,
            r#""ä\u00e4€\u20AC""#,
        ] {
            let Value::String(expected) = serde_json::from_str(text).unwrap() else {
                panic!("a string");
            };
            let have: Vec<u8> = unescaped(inner(text.as_bytes())).collect();
            assert_eq!(have, expected.as_bytes(), "{text}");
        }
        // Halves of pairs, in an order of their own and not lost.
        let halves = |text: &str| unescaped(text.as_bytes()).collect::<Vec<u8>>();
        assert_eq!(halves(r"\ud800x"), b"\xed\xa0\x80x");
        assert_eq!(halves(r"\udc00\ud800"), b"\xed\xb0\x80\xed\xa0\x80");
        assert_eq!(halves(r"\ud800\u0041"), b"\xed\xa0\x80A");
    }

    /// Whatever the bytes are, something is answered.
    #[test]
    fn any_bytes_are_passed_over() {
        let whole = br#"{"a":{"b":[1,{"c":"]}\"x\ud834\udd1e"},[ ],null]},"d":"\\"}"#;
        for at in 0..whole.len() {
            for byte in *b"\"\\{}[],: \xff" {
                let mut line = whole.to_vec();
                line[at] = byte;
                for line in [&line[..], &line[..at], &line[at..]] {
                    for at in ["a.b.1.c", "d", "0", "a.b.3"] {
                        if let Some(found) = find(line, &path(at)) {
                            let _ = unescaped(inner(found)).count();
                        }
                    }
                }
            }
        }
    }
}
