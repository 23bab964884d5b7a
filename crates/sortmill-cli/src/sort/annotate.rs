//! `sort --debug`: under each line, what its keys are.
//!
//! In come sorted lines from a pipe that the job writes to; out go, on standard output, the same lines with `>` for
//! tabs and, under each, one line of underscores for each key as far as it was understood, then one for the whole
//! line if that decides between equal keys. The same bytes as `LC_ALL=C sort --debug` of GNU coreutils 9.1 writes.
//!
//! A pipe rather than a function inside the job: what is written for people has no place in the engine.

use std::io::{self, BufRead, BufReader, BufWriter, PipeReader, Write};

use sortmill::line_keys::{Compare, LastResort, LineKey, LineOrder};
use sortmill::order::fields;

use crate::common::stdout;

/// Annotates all lines that come through `lines`.
///
/// # Errors
/// The system's, of either side.
pub fn annotate(lines: PipeReader, order: &LineOrder) -> io::Result<()> {
    let mut lines = BufReader::with_capacity(1 << 16, lines);
    let mut out = BufWriter::new(stdout()?);
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.read_until(order.delimiter, &mut line)? == 0 {
            return out.flush();
        }
        if line.last() == Some(&order.delimiter) {
            line.pop();
        }
        put(&mut out, &line, order)?;
    }
}

fn put(out: &mut impl Write, line: &[u8], order: &LineOrder) -> io::Result<()> {
    for part in line.split_inclusive(|&byte| byte == b'\t') {
        match part.strip_suffix(b"\t") {
            Some(before) => {
                out.write_all(before)?;
                out.write_all(b">")?;
            }
            None => out.write_all(part)?,
        }
    }
    out.write_all(b"\n")?;
    for key in &order.keys {
        let (from, to) = fields::bounds(order.separator, key, line);
        // One that ends before it begins has no bytes, but stands behind the blanks there if it is one of those that skip some.
        let (from, (skipped, bytes)) = match line.get(from..to) {
            Some(part) => (from, understood(key, part)),
            // Of a key that begins with the line GNU's skips blanks no further than to the key's end.
            None if (key.start.field, key.start.byte) == (1, 1) => (to, (0, 0)),
            None => (from, (understood(key, &line[from..]).0, 0)),
        };
        let from = from + skipped;
        underline(out, &line[..from], &line[from..from + bytes])?;
    }
    if order.keys.is_empty() || order.last_resort != LastResort::Place {
        underline(out, b"", line)?;
    }
    Ok(())
}

fn underline(out: &mut impl Write, before: &[u8], key: &[u8]) -> io::Result<()> {
    fill(out, b' ', width(before))?;
    match width(key) {
        0 => out.write_all(b"^ no match for key\n"),
        width => {
            fill(out, b'_', width)?;
            out.write_all(b"\n")
        }
    }
}

/// Writes `byte` so many times; a width that is formatted may not be beyond 65,535.
fn fill(out: &mut impl Write, byte: u8, mut count: usize) -> io::Result<()> {
    let some = [byte; 64];
    while count > 0 {
        let now = count.min(some.len());
        out.write_all(&some[..now])?;
        count -= now;
    }
    Ok(())
}

/// Columns that `bytes` take where a byte is a character and control characters but tabs take none.
fn width(bytes: &[u8]) -> usize {
    let is_shown = |byte: &&u8| !byte.is_ascii_control() || **byte == b'\t';
    bytes.iter().filter(is_shown).count()
}

/// Which bytes of `part` count for `key`: how many in front do not, and how many follow that do.
fn understood(key: &LineKey, part: &[u8]) -> (usize, usize) {
    let skipped = match key.compare {
        Compare::Number | Compare::General | Compare::Human | Compare::Month => {
            part.len() - fields::without_blanks(part).len()
        }
        Compare::Bytes | Compare::Version | Compare::Random(_) => return (0, part.len()),
    };
    let part = &part[skipped..];
    let bytes = match key.compare {
        Compare::Month => month(part),
        Compare::General => general(part),
        _ => number(part, key.compare == Compare::Human),
    };
    (skipped, bytes)
}

/// Bytes of the month that `part` begins with.
fn month(part: &[u8]) -> usize {
    let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let is_month = |month: &&str| {
        let letters = part.get(..month.len());
        letters.is_some_and(|letters| letters.eq_ignore_ascii_case(month.as_bytes()))
    };
    months
        .iter()
        .find(|month| is_month(month))
        .map_or(0, |month| month.len())
}

/// Bytes of the decimal number that `part` begins with, and, if it is `human`, of its unit.
fn number(part: &[u8], human: bool) -> usize {
    let sign = usize::from(part.first() == Some(&b'-'));
    let whole = digits(&part[sign..]);
    let mut bytes = sign + whole;
    let mut count = whole;
    if part.get(bytes) == Some(&b'.') {
        let behind = digits(&part[bytes + 1..]);
        count += behind;
        bytes += 1 + behind;
    }
    if count == 0 {
        return 0;
    }
    let unit = part
        .get(bytes)
        .is_some_and(|byte| b"KMGTPEZYk".contains(byte));
    bytes + usize::from(human && unit)
}

fn digits(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count()
}

/// Bytes of the number that strtold(3) finds at the beginning of `part`.
fn general(part: &[u8]) -> usize {
    let spaces = part
        .iter()
        .take_while(|byte| matches!(byte, b' ' | 9..=13))
        .count();
    let rest = &part[spaces..];
    let sign = usize::from(matches!(rest.first(), Some(b'-' | b'+')));
    let rest = &rest[sign..];
    let begins = |word: &str| {
        let letters = rest.get(..word.len());
        letters.is_some_and(|letters| letters.eq_ignore_ascii_case(word.as_bytes()))
    };
    let bytes = match () {
        () if begins("infinity") => 8,
        () if begins("inf") => 3,
        () if begins("nan") => 3 + in_parentheses(&rest[3..]),
        () if begins("0x") => match float(&rest[2..], 16, b'p') {
            0 => 1,
            bytes => 2 + bytes,
        },
        () => float(rest, 10, b'e'),
    };
    match bytes {
        0 => 0,
        bytes => spaces + sign + bytes,
    }
}

/// Bytes of what follows `nan`, parentheses included, if that belongs to it.
fn in_parentheses(rest: &[u8]) -> usize {
    let Some(inner) = rest.strip_prefix(b"(") else {
        return 0;
    };
    let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    let count = inner.iter().take_while(is_word).count();
    match inner.get(count) {
        Some(b')') => count + 2,
        _ => 0,
    }
}

/// Bytes of digits, perhaps with a point, and of the exponent behind them if it has digits.
fn float(text: &[u8], radix: u32, letter: u8) -> usize {
    let of = |text: &[u8]| {
        let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
        text.iter().take_while(is_digit).count()
    };
    let whole = of(text);
    let mut bytes = whole;
    if text.get(whole) == Some(&b'.') {
        let behind = of(&text[whole + 1..]);
        bytes += match whole + behind {
            0 => return 0,
            _ => 1 + behind,
        };
    }
    if bytes == 0 {
        return 0;
    }
    if text
        .get(bytes)
        .is_some_and(|byte| byte.eq_ignore_ascii_case(&letter))
    {
        let sign = usize::from(matches!(text.get(bytes + 1), Some(b'-' | b'+')));
        let exponent = digits(&text[bytes + 1 + sign..]);
        if exponent > 0 {
            bytes += 1 + sign + exponent;
        }
    }
    bytes
}
