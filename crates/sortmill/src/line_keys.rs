//! What decides the order of lines: fields and characters of a line, and how each is compared, as GNU sort has it.
//!
//! Words resolved to facts: whoever reads options has handed the global ones down to the keys without any of their
//! own, so that nothing here refers to anything else. GNU coreutils manual, "sort: Sort text files"; POSIX sort(1).

use serde::{Deserialize, Serialize};

/// How lines lie in the input and what decides their order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LineOrder {
    /// What ends a line: a newline, or NUL (`-z`).
    pub delimiter: u8,
    /// What separates fields (`-t`); `None`: a field begins where blanks follow what is no blank, and has them.
    pub separator: Option<u8>,
    /// The keys, the most significant first; none means the whole line as bytes.
    pub keys: Vec<LineKey>,
    /// What decides between lines whose keys are all equal.
    pub last_resort: LastResort,
    /// Whether of lines whose keys are all equal only the first of the input comes out (`-u`).
    pub unique: bool,
}

/// One key: a part of the line, from a place to a place.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LineKey {
    /// Where it begins.
    pub start: KeyStart,
    /// Where it ends; `None` is the end of the line.
    pub end: Option<KeyEnd>,
    /// How it is compared.
    pub compare: Compare,
    /// Which bytes do not count (`-d`, `-i`).
    pub ignore: Ignore,
    /// Whether small letters count as capitals (`-f`).
    pub fold: bool,
    /// Whether larger comes first (`-r`).
    pub reversed: bool,
}

/// Where a key begins. Beyond the field it is at the next one's beginning or later; beyond the line, at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeyStart {
    /// Field, from 1.
    pub field: u64,
    /// Byte in it, from 1.
    pub byte: u64,
    /// Whether the field's leading blanks are skipped before bytes are counted (`b`).
    pub skip_blanks: bool,
}

/// Where a key ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeyEnd {
    /// Field, from 1.
    pub field: u64,
    /// The last byte of it that belongs to the key, from 1; 0 is the field's last.
    pub byte: u64,
    /// Whether the field's leading blanks are skipped before bytes are counted (`b`).
    pub skip_blanks: bool,
}

/// How the bytes of a key are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// As bytes.
    Bytes,
    /// By the decimal number they begin with, of any length (`-n`).
    Number,
    /// As strtold reads them: what is no number first, then NaN, then numbers (`-g`).
    General,
    /// A number with the suffix of its size: none, K or k, M, G, T, P, E, Z, Y (`-h`).
    Human,
    /// By the name of a month, what is none first (`-M`).
    Month,
    /// By the numbers within, as versions are (`-V`).
    Version,
    /// By a digest of the bytes and these (`-R`): in no order, but equal ones together.
    Random([u8; 16]),
}

/// Which bytes of a key do not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ignore {
    /// All count.
    #[default]
    None,
    /// Only blanks, letters and digits count (`-d`).
    NotDictionary,
    /// Only printable bytes count (`-i`).
    Unprintable,
}

/// What decides between lines whose keys are all equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LastResort {
    /// Their place in the input (`-s`, `-u`).
    Place,
    /// The whole lines as bytes.
    #[default]
    Line,
    /// The same, larger first: keys apart, `-r` was given for all.
    LineReversed,
}
