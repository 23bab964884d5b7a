//! Keys as GNU writes them, `F[.C][OPTS][,F[.C][OPTS]]`, and the facts that the engine sorts lines by.
//!
//! In come the options for all keys and the text of each; out goes a [`LineOrder`] in which nothing refers to anything
//! else: a key without options of its own has those for all, and without a key the whole line is one. Options that say
//! more than one thing about how a key is compared are refused here, because only here it is known which a key has.
//!
//! GNU coreutils manual, "sort invocation"; POSIX sort(1). Options are looked at in the order in which GNU looks:
//! of `-R` and `-V` together the first counts, of `-d` and `-i` the first.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use sortmill::error::{Error, ErrorKind, Result};
use sortmill::line_keys::{Compare, Ignore, KeyEnd, KeyStart, LastResort, LineKey, LineOrder};

use super::options::{Gnu, SortWord};

/// What may be said of one key, or of all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    numeric: bool,
    general: bool,
    human: bool,
    month: bool,
    version: bool,
    random: bool,
    dictionary: bool,
    printable: bool,
    fold: bool,
    skip_start: bool,
    skip_end: bool,
    reversed: bool,
}

/// One key as it was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// Field and byte where it begins, from 1.
    pub start: (u64, u64),
    /// Field, from 1, and byte, 0 for the field's last, where it ends; `None` is the line's end.
    pub end: Option<(u64, u64)>,
    /// What is said of it.
    pub options: Options,
}

/// The order of lines, and what it was made from.
pub struct Keys {
    /// For the engine.
    pub order: LineOrder,
    /// As they were written; none where the whole line is the key.
    pub written: Vec<Key>,
    /// What was said of all keys.
    pub global: Options,
}

/// Which end of a key letters stand behind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Start,
    End,
}

impl Options {
    /// What the options for all keys say.
    pub fn of_all(gnu: &Gnu) -> Self {
        Self {
            numeric: gnu.sorts_by(SortWord::Numeric),
            general: gnu.sorts_by(SortWord::GeneralNumeric),
            human: gnu.sorts_by(SortWord::HumanNumeric),
            month: gnu.sorts_by(SortWord::Month),
            version: gnu.sorts_by(SortWord::Version),
            random: gnu.sorts_by(SortWord::Random),
            dictionary: gnu.dictionary_order,
            printable: gnu.ignore_nonprinting,
            fold: gnu.ignore_case,
            skip_start: gnu.ignore_leading_blanks,
            skip_end: gnu.ignore_leading_blanks,
            reversed: gnu.reverse,
        }
    }

    /// Whether nothing is said, but perhaps in which direction.
    pub fn say_nothing(self) -> bool {
        let direction = Self {
            reversed: self.reversed,
            ..Self::default()
        };
        self == direction
    }

    /// Whether the key is a number, and ends where that ends.
    pub fn is_number(self) -> bool {
        self.numeric || self.general || self.human
    }

    /// Whether the key counts only as far as it was understood.
    pub fn is_understood(self) -> bool {
        self.is_number() || self.month
    }

    /// Whether leading blanks are skipped at the start, or at both ends.
    pub fn skips_blanks(self) -> (bool, bool) {
        (self.skip_start, self.skip_end)
    }

    /// The letters for what is said, as the manual orders them.
    pub fn letters(self) -> String {
        let known = [
            (self.skip_start || self.skip_end, 'b'),
            (self.dictionary, 'd'),
            (self.fold, 'f'),
            (self.general, 'g'),
            (self.human, 'h'),
            (self.printable && !self.dictionary, 'i'),
            (self.month, 'M'),
            (self.numeric, 'n'),
            (self.random, 'R'),
            (self.reversed, 'r'),
            (self.version, 'V'),
        ];
        let given = known.into_iter().filter(|(given, _)| *given);
        given.map(|(_, letter)| letter).collect()
    }

    /// Takes what is known of `letters`, which stand at one end of a key. What is left begins with an unknown one.
    fn take<'a>(&mut self, letters: &'a [u8], side: Side) -> &'a [u8] {
        for (at, letter) in letters.iter().enumerate() {
            match letter {
                b'b' if side == Side::Start => self.skip_start = true,
                b'b' => self.skip_end = true,
                b'd' => self.dictionary = true,
                b'f' => self.fold = true,
                b'g' => self.general = true,
                b'h' => self.human = true,
                b'i' => self.printable = true,
                b'M' => self.month = true,
                b'n' => self.numeric = true,
                b'R' => self.random = true,
                b'r' => self.reversed = true,
                b'V' => self.version = true,
                _ => return &letters[at..],
            }
        }
        &[]
    }

    /// How a key with these is compared.
    ///
    /// # Errors
    /// They say more than one thing.
    fn compare(self) -> Result<Compare> {
        let numbers = [self.numeric, self.general, self.human, self.month];
        let others = self.version || self.random || self.dictionary || self.printable;
        let said = numbers.iter().filter(|said| **said).count() + usize::from(others);
        if said > 1 {
            let mut letters = self.letters();
            letters.retain(|letter| !"bfr".contains(letter));
            return Err(refused(format!(
                "-{letters}: these options are incompatible"
            )));
        }
        Ok(match self {
            _ if self.numeric => Compare::Number,
            _ if self.general => Compare::General,
            _ if self.human => Compare::Human,
            _ if self.month => Compare::Month,
            // Seeded when all keys are known.
            _ if self.random => Compare::Random([0; SEED_BYTES]),
            _ if self.version => Compare::Version,
            _ => Compare::Bytes,
        })
    }

    fn ignore(self) -> Ignore {
        match self {
            _ if self.dictionary => Ignore::NotDictionary,
            _ if self.printable => Ignore::Unprintable,
            _ => Ignore::None,
        }
    }
}

impl Key {
    /// The whole line.
    fn of_line(options: Options) -> Self {
        Self {
            start: (1, 1),
            end: None,
            options,
        }
    }

    /// Reads `F[.C][OPTS][,F[.C][OPTS]]`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &[u8]) -> std::result::Result<Self, String> {
        let (field, mut rest) = count(text).ok_or("it begins with no number of a field")?;
        if field == 0 {
            return Err("its field is 0, and the first is 1".into());
        }
        let mut byte = 1;
        if let Some(behind) = rest.strip_prefix(b".") {
            (byte, rest) = count(behind).ok_or("no number follows the point")?;
            if byte == 0 {
                return Err("its character is 0, and the first is 1".into());
            }
        }
        let mut options = Options::default();
        rest = options.take(rest, Side::Start);
        let mut end = None;
        if let Some(behind) = rest.strip_prefix(b",") {
            let (field, mut behind) = count(behind).ok_or("no number follows the comma")?;
            if field == 0 {
                return Err("its last field is 0, and the first is 1".into());
            }
            let mut byte = 0;
            if let Some(more) = behind.strip_prefix(b".") {
                (byte, behind) = count(more).ok_or("no number follows the point")?;
            }
            end = Some((field, byte));
            rest = options.take(behind, Side::End);
        }
        if !rest.is_empty() {
            let rest = String::from_utf8_lossy(rest);
            return Err(format!("{rest:?} in it means nothing"));
        }
        Ok(Self {
            start: (field, byte),
            end,
            options,
        })
    }

    /// Whether it has no options of its own, not even `r`.
    pub fn inherits(&self) -> bool {
        self.options.say_nothing() && !self.options.reversed
    }

    fn resolved(&self, global: Options) -> Result<LineKey> {
        let options = match self.inherits() {
            true => global,
            false => self.options,
        };
        Ok(LineKey {
            start: KeyStart {
                field: self.start.0,
                byte: self.start.1,
                skip_blanks: options.skip_start,
            },
            end: self.end.map(|(field, byte)| KeyEnd {
                field,
                byte,
                skip_blanks: options.skip_end,
            }),
            compare: options.compare()?,
            ignore: options.ignore(),
            fold: options.fold,
            reversed: options.reversed,
        })
    }
}

/// Bytes that `-R` is seeded with.
pub const SEED_BYTES: usize = 16;

/// The order that `gnu` and the texts of keys ask for; keys in no order wait for their [`Keys::seeds`].
///
/// # Errors
/// A key that cannot be read, and options that do not go together.
pub fn line_order(gnu: &Gnu, keys: &[OsString]) -> Result<Keys> {
    let global = Options::of_all(gnu);
    let mut written = Vec::with_capacity(keys.len());
    for text in keys {
        let key = Key::parse(text.as_bytes()).map_err(|cause| {
            let told = refused(format!("key {:?}: {cause}", text.to_string_lossy()));
            match text.as_bytes().contains(&b':') {
                true => told.hint("OFFSET:LENGTH, a key of bytes needs --format fixed:SIZE."),
                false => told,
            }
        })?;
        written.push(key);
    }
    let whole = Key::of_line(global);
    let resolve = |key: &Key| key.resolved(global);
    let says_more = written.is_empty() && global != Options::default();
    let resolved = match says_more {
        true => vec![resolve(&whole)?],
        false => written.iter().map(resolve).collect::<Result<_>>()?,
    };
    let order = LineOrder {
        delimiter: if gnu.zero_terminated { 0 } else { b'\n' },
        separator: separator(&gnu.field_separator)?,
        keys: resolved,
        last_resort: match () {
            () if gnu.stable || gnu.unique => LastResort::Place,
            // Lines that are equal as a whole are the same wherever they stand.
            () if written.is_empty() && global.say_nothing() => LastResort::Place,
            () if global.reversed => LastResort::LineReversed,
            () => LastResort::Line,
        },
        unique: gnu.unique,
    };
    Ok(Keys {
        order,
        written,
        global,
    })
}

impl Keys {
    /// The seeds that keys in no order want; empty where there is no such key.
    pub fn seeds(&mut self) -> impl Iterator<Item = &mut [u8; SEED_BYTES]> {
        let keys = self.order.keys.iter_mut();
        keys.filter_map(|key| match &mut key.compare {
            Compare::Random(seed) => Some(seed),
            _ => None,
        })
    }
}

/// Whether lines in this order are what the engine sorts anyway: whole, as bytes, ended by newlines, all of them.
pub fn is_plain(order: &LineOrder) -> bool {
    order.keys.is_empty() && order.delimiter == b'\n' && !order.unique
}

fn separator(given: &[OsString]) -> Result<Option<u8>> {
    let mut found = None;
    for text in given {
        let byte = match *text.as_bytes() {
            [] => return Err(refused("-t: the separator of fields is empty")),
            [byte] => byte,
            [b'\\', b'0'] => 0,
            _ => {
                let shown = text.to_string_lossy();
                return Err(refused(format!("-t {shown}: a separator is one byte")));
            }
        };
        if found.is_some_and(|other| other != byte) {
            return Err(refused("-t: fields have one separator, and two were given"));
        }
        found = Some(byte);
    }
    Ok(found)
}

/// What `-k` has for the beginning of an old key, `A[.B][OPTS]` behind a plus; `None` if it is none.
pub fn old_start(text: &[u8]) -> Option<String> {
    let (field, mut rest) = count(text)?;
    let mut byte = 0;
    if let Some(behind) = rest.strip_prefix(b".") {
        (byte, rest) = count(behind)?;
    }
    let letters = rest;
    if !Options::default().take(rest, Side::Start).is_empty() {
        return None;
    }
    let letters = String::from_utf8_lossy(letters);
    let field = field.saturating_add(1);
    Some(match byte {
        0 => format!("{field}{letters}"),
        _ => format!("{field}.{}{letters}", byte.saturating_add(1)),
    })
}

/// What `-k` has for the end of an old key, `A[.B][OPTS]` behind a minus: the first byte that is no more of it, counted
/// from 0, where `-k` counts the last one from 1.
///
/// # Errors
/// What is wrong with it.
pub fn old_end(text: &[u8]) -> std::result::Result<String, String> {
    let (field, mut rest) = count(text).ok_or("it begins with no number of a field")?;
    let mut byte = 0;
    if let Some(behind) = rest.strip_prefix(b".") {
        (byte, rest) = count(behind).ok_or("no number follows the point")?;
    }
    let left = Options::default().take(rest, Side::End);
    if !left.is_empty() {
        let left = String::from_utf8_lossy(left);
        return Err(format!("{left:?} in it means nothing"));
    }
    let letters = String::from_utf8_lossy(rest);
    Ok(match byte {
        0 => format!("{}{letters}", field.max(1)),
        _ => format!("{}.{byte}{letters}", field.saturating_add(1)),
    })
}

/// The number that `text` begins with, blanks and a plus before it allowed as strtoumax(3) has it, and what follows.
/// More than can be counted is as far as can be counted: no line has so many fields.
fn count(text: &[u8]) -> Option<(u64, &[u8])> {
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let blanks = text.iter().take_while(|byte| is_space(byte)).count();
    let text = &text[blanks..];
    let text = text.strip_prefix(b"+").unwrap_or(text);
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(digits);
    if digits.is_empty() {
        return None;
    }
    let number = digits.iter().fold(0u64, |number, digit| {
        let ten = number.saturating_mul(10);
        ten.saturating_add(u64::from(digit - b'0'))
    });
    Some((number, rest))
}

/// An error of the command line.
pub fn refused(cause: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, "reading the options", cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, start: (u64, u64), end: Option<(u64, u64)>, letters: &str) {
        let key = Key::parse(text.as_bytes()).expect(text);
        assert_eq!((key.start, key.end), (start, end), "{text}");
        assert_eq!(key.options.letters(), letters, "{text}");
    }

    #[test]
    fn keys_as_they_are_written() {
        check("1", (1, 1), None, "");
        check("2,2", (2, 1), Some((2, 0)), "");
        check("2.3nr,4.5b", (2, 3), Some((4, 5)), "bnr");
        check(" 2, +3", (2, 1), Some((3, 0)), "");
        check("1,1.0", (1, 1), Some((1, 0)), "");
        let most = u64::MAX;
        check("99999999999999999999", (most, 1), None, "");
        check("1.99999999999999999999,2", (1, most), Some((2, 0)), "");
        for text in [
            "", "x", "0", "1.0", "1.", "-1", "1,", "1,0", "1,1.", "1x", "1n,2x", "1,2,3", "1 2",
            "1.2.3",
        ] {
            assert!(Key::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_key_has_its_own_options_or_those_of_all() {
        let gnu = Gnu {
            numeric_sort: true,
            reverse: true,
            ..Gnu::default()
        };
        let keys = ["2", "3b", "4r"].map(OsString::from);
        let order = line_order(&gnu, &keys).unwrap().order;
        let of = |key: &LineKey| (key.compare, key.start.skip_blanks, key.reversed);
        assert_eq!(
            order.keys.iter().map(of).collect::<Vec<_>>(),
            [
                (Compare::Number, false, true),
                (Compare::Bytes, true, false),
                (Compare::Bytes, false, true),
            ]
        );
        assert_eq!(order.last_resort, LastResort::LineReversed);
    }

    #[test]
    fn without_keys_the_line_is_one_if_anything_is_said_of_it() {
        let plain = line_order(&Gnu::default(), &[]).unwrap().order;
        assert!(is_plain(&plain));
        let gnu = Gnu {
            reverse: true,
            ..Gnu::default()
        };
        let order = line_order(&gnu, &[]).unwrap().order;
        assert!(order.keys[0].reversed && order.keys[0].end.is_none());
        assert!(!is_plain(&order));
    }
}
