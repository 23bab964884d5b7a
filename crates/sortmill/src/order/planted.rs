//! Mistakes planted in the order of lines, for tests only: the cases that run in `make test` must find each of them.
//!
//! A mistake alters what is asked for, once, or the bytes of a key, each time.

use std::borrow::Cow;

use super::fields;
use super::keys::Keys;
use crate::line_keys::{Compare, Ignore, LastResort, LineKey};

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A mistake that somebody might make.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Fault { $($(#[$doc])* $name,)* }

        impl Fault {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }
    };
}

faults! {
    /// Keys that are equal leave lines in input order.
    NoLastResort,
    /// The last resort is never reversed.
    LastResortForward,
    /// Larger never comes first.
    NeverReversed,
    /// Only the first key counts.
    OneKey,
    /// A key goes on to the end of the line.
    NoEnd,
    /// A key ends a field later.
    EndFieldLate,
    /// A key ends a byte later.
    EndByteLate,
    /// A key begins a byte later.
    StartByteLate,
    /// Leading blanks never belong to a field.
    BlanksDropped,
    /// Leading blanks are never skipped.
    BlanksKept,
    /// Separators in a row count as one.
    SeparatorsInARow,
    /// A tab parts no fields.
    TabIsText,
    /// Beyond the last field lies the whole line.
    BeyondIsAll,
    /// NUL ends the text.
    NulEnds,
    /// A carriage return at the end does not count.
    ReturnDropped,
    /// Bytes beyond ASCII are below it.
    BytesSigned,
    /// Small letters are never capitals.
    NeverFolded,
    /// Capitals count as small letters.
    FoldedDown,
    /// `-d` is as `-i`, and the reverse.
    IgnoreExchanged,
    /// A minus does not count.
    MinusDropped,
    /// Behind the point nothing counts.
    FractionDropped,
    /// Leading zeros are digits.
    ZerosCount,
    /// A plus may stand before a number.
    PlusAllowed,
    /// Commas within numbers do not count.
    CommasDropped,
    /// `-n` knows exponents.
    NumberIsGeneral,
    /// `-g` does not.
    GeneralIsNumber,
    /// NaN is no number.
    NanIsNone,
    /// Numbers have 53 bits or so.
    GeneralShort,
    /// Nothing is hexadecimal.
    NoHexadecimal,
    /// Suffixes do not count.
    NoSuffix,
    /// `k` is no suffix.
    SmallIsNoSuffix,
    /// Months have capitals only.
    MonthIsCapital,
    /// Blanks before a month make it none.
    MonthBlanks,
    /// Versions are text.
    VersionIsText,
    /// `~` is a byte as any other.
    NoTilde,
    /// Suffixes belong to the name.
    SuffixKept,
    /// A leading point is a byte as any other.
    NoHidden,
    /// The random bytes do not count.
    NotRandom,
}

impl Keys {
    /// Has `fault` happen from now on.
    pub fn plant(&mut self, fault: Fault) {
        self.fault = Some(fault);
        match fault {
            Fault::NoLastResort => self.last_resort = LastResort::Place,
            Fault::LastResortForward if self.last_resort == LastResort::LineReversed => {
                self.last_resort = LastResort::Line;
            }
            Fault::OneKey => self.keys.truncate(1),
            _ => self.keys.iter_mut().for_each(|key| fault.alter(key)),
        }
    }
}

impl Fault {
    fn alter(self, key: &mut LineKey) {
        match self {
            Self::NeverReversed => key.reversed = false,
            Self::NoEnd => key.end = None,
            Self::EndFieldLate => key.end.iter_mut().for_each(|end| end.field += 1),
            Self::EndByteLate => {
                let end = key.end.iter_mut().filter(|end| end.byte > 0);
                end.for_each(|end| end.byte += 1);
            }
            Self::StartByteLate => key.start.byte += 1,
            Self::BlanksDropped => key.start.skip_blanks = true,
            Self::BlanksKept => {
                key.start.skip_blanks = false;
                key.end.iter_mut().for_each(|end| end.skip_blanks = false);
            }
            Self::NeverFolded => key.fold = false,
            Self::IgnoreExchanged => {
                key.ignore = match key.ignore {
                    Ignore::None => Ignore::None,
                    Ignore::NotDictionary => Ignore::Unprintable,
                    Ignore::Unprintable => Ignore::NotDictionary,
                }
            }
            _ => {}
        }
        key.compare = match (self, key.compare) {
            (Self::NumberIsGeneral, Compare::Number) => Compare::General,
            (Self::GeneralIsNumber, Compare::General) => Compare::Number,
            (Self::NoSuffix, Compare::Human) => Compare::Number,
            (Self::VersionIsText, Compare::Version) => Compare::Bytes,
            (Self::NotRandom, Compare::Random(_)) => Compare::Random([0; 16]),
            (_, compare) => compare,
        };
    }

    /// The bytes of `line` that this mistake takes for `key`.
    pub fn part<'l>(self, separator: Option<u8>, key: &LineKey, line: &'l [u8]) -> Cow<'l, [u8]> {
        match (self, separator) {
            (Self::SeparatorsInARow, Some(separator)) => {
                let mut line = line.to_vec();
                line.dedup_by(|a, b| (*a, *b) == (separator, separator));
                return fields::part(Some(separator), key, &line).to_vec().into();
            }
            (Self::TabIsText, None) => {
                let text = |&byte: &u8| if byte == b'\t' { b'-' } else { byte };
                let line: Vec<u8> = line.iter().map(text).collect();
                return fields::part(None, key, &line).to_vec().into();
            }
            _ => {}
        }
        let part = fields::part(separator, key, line);
        if self == Self::BeyondIsAll && part.is_empty() && key.start.field > 1 {
            return line.into();
        }
        self.twist(key, part)
    }

    fn twist<'l>(self, key: &LineKey, part: &'l [u8]) -> Cow<'l, [u8]> {
        let number = matches!(key.compare, Compare::Number | Compare::Human);
        let up_to = |byte: u8| {
            part.split(|&other| other == byte)
                .next()
                .unwrap_or_default()
        };
        let without = |dropped: u8| -> Cow<'l, [u8]> {
            let bytes = part.iter().copied().filter(|&byte| byte != dropped);
            bytes.collect::<Vec<u8>>().into()
        };
        let mapped = |map: &dyn Fn(u8) -> u8| -> Cow<'l, [u8]> {
            part.iter()
                .map(|&byte| map(byte))
                .collect::<Vec<u8>>()
                .into()
        };
        let behind = |prefix: &[u8]| -> Cow<'l, [u8]> { [prefix, part].concat().into() };
        let blanks = part.iter().take_while(|&&byte| fields::is_blank(byte));
        let first = part.get(blanks.count());
        match (self, key.compare) {
            (Self::NulEnds, Compare::Bytes) => up_to(0).into(),
            (Self::ReturnDropped, Compare::Bytes) => {
                part.strip_suffix(b"\r").unwrap_or(part).into()
            }
            (Self::BytesSigned, Compare::Bytes) => mapped(&|byte| byte ^ 0x80),
            (Self::FoldedDown, Compare::Bytes) if key.fold => mapped(&|byte| match byte {
                b'['..=b'`' => byte - 0x20,
                _ => byte,
            }),
            (Self::MinusDropped, _) if number => without(b'-'),
            (Self::FractionDropped, _) if number => up_to(b'.').into(),
            (Self::ZerosCount, _) if number && first == Some(&b'0') => {
                mapped(&|byte| if byte == b'0' { b'1' } else { byte })
            }
            (Self::PlusAllowed, _) if number => without(b'+'),
            (Self::CommasDropped, _) if number => without(b','),
            (Self::NanIsNone, Compare::General) => mapped(&|byte| {
                if matches!(byte, b'n' | b'N') {
                    b'x'
                } else {
                    byte
                }
            }),
            (Self::GeneralShort, Compare::General) => part[..part.len().min(17)].into(),
            (Self::NoHexadecimal, Compare::General) => up_to(b'x').into(),
            (Self::SmallIsNoSuffix, Compare::Human) => up_to(b'k').into(),
            (Self::MonthIsCapital, Compare::Month) => mapped(&|byte| {
                if byte.is_ascii_lowercase() {
                    b'x'
                } else {
                    byte
                }
            }),
            (Self::MonthBlanks, Compare::Month) => match part.first() {
                Some(&byte) if fields::is_blank(byte) => behind(b"x"),
                _ => part.into(),
            },
            (Self::NoTilde, Compare::Version) => {
                mapped(&|byte| if byte == b'~' { b'!' } else { byte })
            }
            (Self::SuffixKept, Compare::Version) if !part.is_empty() => {
                [part, b"!"].concat().into()
            }
            (Self::NoHidden, Compare::Version) => behind(b"a"),
            _ => part.into(),
        }
    }
}
