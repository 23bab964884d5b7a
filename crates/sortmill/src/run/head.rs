//! The first records of some inputs, for who wants to look at them: nothing is planned, sorted or written.

use sortmill_io::os::Kind;
use sortmill_io::{Access, Os};

use crate::bad::{Allowed, newlines};
use crate::batch::Origin;
use crate::error::{Error, ErrorKind, Result};
use crate::job::Job;
use crate::order::{Begun, Order};
use crate::queue::Stop;
use crate::stage::read::{Source, unpacked};

const DOING: &str = "reading the input";
/// So much of an input is read at first, and then always more, up to the most.
const LOOK_BYTES: usize = 64 << 10;
/// Of a compressed input so much is read, whatever comes out of it.
const PACKED_BYTES_MAX: usize = 32 << 20;
/// Of each input of a sample at least so much is looked at.
const LEAST_BYTES: usize = 4 << 10;

/// How much of some inputs is looked at.
#[derive(Clone, Copy, Debug)]
pub enum Look {
    /// The first records there are: of each input so many bytes at most, and of the next one nothing unless that was all.
    First(usize),
    /// So many bytes of all inputs together, of each its beginning; of so many inputs that little is left for each, the first ones.
    Sample(usize),
}

/// Hands the first records of `sources`, the inputs of `job`, to `see` with where they lie, until that answers that it has enough.
/// Answers whether it has, or has seen all there are. Of an input that is no file nothing is looked at. Where bad records are
/// `allowed` it is `see` that looks whether one is made of the columns that the job asks for.
///
/// # Errors
/// The job's, when it is ending. Inputs that cannot be read, with the place of a record that is none; that of `see`, which is
/// told the record's place unless it knows one.
pub fn first_records(
    job: &Job,
    sources: &[Source],
    (how, allowed): (Look, &Allowed),
    (os, stop): (&dyn Os, &Stop),
    mut see: impl FnMut(&[u8], Origin, u64) -> Result<bool>,
) -> Result<bool> {
    let order = job.input_order()?;
    let (mut has_all, mut left) = (true, 0);
    if let Look::Sample(bytes) = how {
        left = bytes.max(LEAST_BYTES);
    }
    for (input, source) in sources.iter().enumerate() {
        if source.meta.kind != Kind::Regular {
            return Ok(false);
        }
        let look_bytes_max = match how {
            Look::First(bytes) => bytes,
            Look::Sample(_) if left == 0 => return Ok(false),
            // What a short one leaves is for those behind it.
            Look::Sample(_) => (left / (sources.len() - input)).max(LEAST_BYTES),
        };
        let mut walk = Walk {
            order: &order,
            source,
            allowed,
            origin: Origin { input, line: 1 },
            header_left: job.header_lines,
            at: 0,
        };
        let mut look_bytes = LOOK_BYTES.min(look_bytes_max);
        let is_seen = loop {
            stop.check()?;
            let read = beginning(os, source, look_bytes, stop);
            let (bytes, is_all) = read.map_err(|error| {
                Error::io(DOING, &source.file.path, &error).kind(ErrorKind::Input)
            })?;
            // It is damaged, or little of much: the job itself knows what to do.
            let is_short = !is_all && bytes.len() < look_bytes;
            if is_short && matches!(how, Look::First(_)) {
                return Ok(false);
            }
            if walk.go(bytes, is_all, stop, &mut see)? {
                return Ok(true);
            }
            if is_all || is_short || look_bytes == look_bytes_max {
                break is_all;
            }
            look_bytes = (look_bytes * 8).min(look_bytes_max);
        };
        left = left.saturating_sub(walk.at);
        has_all &= is_seen;
        if !is_seen && matches!(how, Look::First(_)) {
            return Ok(false);
        }
    }
    Ok(has_all)
}

/// The first bytes of a file, or of what a compressed one was: at most `bytes`, and whether that is all of them.
fn beginning(
    os: &dyn Os,
    source: &Source,
    bytes: usize,
    stop: &Stop,
) -> std::io::Result<(Vec<u8>, bool)> {
    let file = os.open(&source.file.path, Access::Cached)?;
    let wanted = match source.codec {
        None => bytes,
        Some(_) => PACKED_BYTES_MAX,
    };
    let mut raw = vec![0; wanted.min(source.meta.bytes as usize + 1)];
    let mut filled = 0;
    while filled < raw.len() {
        match os.read_stream(&file, &mut raw[filled..], &|| stop.is_stopped())? {
            0 => break,
            moved => filled += moved,
        }
    }
    let is_all = filled < wanted && filled as u64 >= source.meta.bytes;
    raw.truncate(filled);
    Ok(match source.codec {
        None => (raw, is_all),
        Some(sniffed) => {
            let (text, has_ended) = unpacked(sniffed.codec, &raw, bytes);
            (text, has_ended && is_all)
        }
    })
}

/// Goes through the records of one input.
struct Walk<'a> {
    order: &'a Order,
    source: &'a Source,
    allowed: &'a Allowed,
    origin: Origin,
    header_left: u64,
    /// Where the next record begins.
    at: usize,
}

impl Walk<'_> {
    /// Goes on through the whole records of `bytes`, from the input's beginning, which are all of it if `is_all`. Answers
    /// whether `see` has enough.
    fn go(
        &mut self,
        mut bytes: Vec<u8>,
        is_all: bool,
        stop: &Stop,
        see: &mut impl FnMut(&[u8], Origin, u64) -> Result<bool>,
    ) -> Result<bool> {
        let delimiter = self.order.delimiter();
        let has_delimiter = self.order.format().has_delimiter();
        if is_all && has_delimiter && bytes.last().is_some_and(|&last| last != delimiter) {
            bytes.push(delimiter);
        }
        while self.at < bytes.len() {
            let rest = &bytes[self.at..];
            let end = self.order.first_end(rest, &Begun::default());
            let length = match (end, is_all) {
                (Some(length), _) => length,
                (None, false) => return Ok(false),
                // A quote that is never closed, which is told; or too few bytes.
                (None, true) if has_delimiter => rest.len(),
                (None, true) => {
                    let error = self.wrong(0, "the last record is cut off");
                    self.allowed.leave_out(1, error)?;
                    return Ok(false);
                }
            };
            let record = &rest[..length];
            if self.header_left > 0 {
                self.header_left -= 1;
            } else {
                let checked = match self.allowed.is_none() {
                    true => self.order.check(record),
                    false => Ok(()),
                };
                checked.map_err(|wrong| {
                    self.origin.line += newlines(&record[..wrong.at]);
                    self.allowed.hinted(self.wrong(wrong.at, &wrong.cause))
                })?;
                stop.check()?;
                let seen = see(record, self.origin, self.at as u64);
                if seen.map_err(|mut error| {
                    if error.path.is_some() {
                        return error;
                    }
                    let within = error.offset.unwrap_or(0) as usize;
                    self.origin.line += newlines(record.get(..within).unwrap_or_default());
                    error.cause = self.told(&error.cause);
                    let offset = (self.at + within) as u64;
                    error.at(&self.source.file.path).offset(offset)
                })? {
                    return Ok(true);
                }
            }
            self.origin.line += newlines(record);
            self.at += length;
        }
        Ok(false)
    }

    /// What is wrong at byte `at` of the next record.
    fn wrong(&self, at: usize, cause: &str) -> Error {
        let error = Error::new(ErrorKind::Input, DOING, self.told(cause));
        let error = error.at(&self.source.file.path);
        error.offset((self.at + at) as u64)
    }

    fn told(&self, cause: &str) -> String {
        match self.order.has_columns() {
            true => format!("line {}: {cause}", self.origin.line),
            false => cause.to_owned(),
        }
    }
}
