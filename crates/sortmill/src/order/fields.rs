//! Which bytes of a line a key is: fields and bytes are counted, and nothing is copied.
//!
//! Without a separator a field begins with the blanks in front of it, so the first begins the line and the blanks
//! between two belong to the later one. With one, each field lies between two of them, and may be empty. Whatever lies
//! beyond the line is at its end. GNU coreutils manual, "sort: Sort text files", the option `-k`.

use super::near;
use crate::line_keys::LineKey;

/// Whether fields are parted there: blank, tab, and, in lines that NUL ends, newline.
#[inline]
pub fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n')
}

/// The bytes behind the blanks at the beginning of `bytes`.
#[inline]
pub fn without_blanks(bytes: &[u8]) -> &[u8] {
    &bytes[past_blanks(bytes, 0)..]
}

/// The bytes of `line` that are `key`; none if it ends before it begins.
#[inline]
pub fn part<'l>(separator: Option<u8>, key: &LineKey, line: &'l [u8]) -> &'l [u8] {
    let (from, to) = bounds(separator, key, line);
    &line[from..to.max(from)]
}

/// Where in `line` the `key` begins and ends, which may be before it begins.
#[inline]
pub fn bounds(separator: Option<u8>, key: &LineKey, line: &[u8]) -> (usize, usize) {
    let field = skip(separator, line, 0, key.start.field - 1);
    let mut from = field;
    if key.start.skip_blanks {
        from = past_blanks(line, from);
    }
    from = ahead(line, from, key.start.byte - 1);
    let Some(end) = &key.end else {
        return (from, line.len());
    };
    let last = match end.field.checked_sub(key.start.field) {
        Some(more) => skip(separator, line, field, more),
        None => skip(separator, line, 0, end.field - 1),
    };
    let to = match end.byte {
        0 => field_end(separator, line, last),
        bytes if end.skip_blanks => ahead(line, past_blanks(line, last), bytes),
        bytes => ahead(line, last, bytes),
    };
    (from, to)
}

/// Where the field begins that is `count` fields behind the one that begins at `at`.
#[inline]
fn skip(separator: Option<u8>, line: &[u8], mut at: usize, count: u64) -> usize {
    for _ in 0..count {
        if at == line.len() {
            break;
        }
        at = match separator {
            Some(separator) => {
                let found = near::find(separator, &line[at..]);
                found.map_or(line.len(), |before| at + before + 1)
            }
            None => past_word(line, past_blanks(line, at)),
        };
    }
    at
}

/// Where the field ends that begins at `at`.
fn field_end(separator: Option<u8>, line: &[u8], at: usize) -> usize {
    match separator {
        Some(separator) => {
            near::find(separator, &line[at..]).map_or(line.len(), |before| at + before)
        }
        None => past_word(line, past_blanks(line, at)),
    }
}

/// So many bytes ahead, at most the end of the line.
fn ahead(line: &[u8], at: usize, bytes: u64) -> usize {
    let left = line.len() - at;
    at + usize::try_from(bytes).unwrap_or(left).min(left)
}

fn past_blanks(line: &[u8], mut at: usize) -> usize {
    while at < line.len() && is_blank(line[at]) {
        at += 1;
    }
    at
}

fn past_word(line: &[u8], mut at: usize) -> usize {
    while at < line.len() && !is_blank(line[at]) {
        at += 1;
    }
    at
}
