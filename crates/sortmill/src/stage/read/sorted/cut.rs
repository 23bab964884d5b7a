//! What was read of one row to a piece: whole records, back to back.
//!
//! The beginning of a record that a read's end cut through is kept and put into the room in front of the next read's
//! bytes, so that every record is contiguous. Whoever cuts a record of columns looks whether it is one; those of a run have
//! been looked at. Blocks of a run hold whole records, between the headers of segments.

use sortmill_io::Buffer;
use sortmill_io::frame::{Damage, HEADER_BYTES, Header, Segment};
use sortmill_io::sync::lock;

use super::super::heading::{Heading, mark_bytes};
use super::super::{DOING, Source};
use super::{Headings, RowsRead, SortedReader};
use crate::bad::{self, newlines};
use crate::error::{Error, ErrorKind, Result};
use crate::order::{Begun, Format, KV_HEADER_BYTES, Order, kv_bytes};
use crate::rows::Piece;
use crate::text;

/// Cuts one input.
pub struct Cutter<'a> {
    order: &'a Order,
    source: &'a Source,
    headroom_bytes: usize,
    key: u64,
    /// What it cuts was compressed.
    pub is_unpacked: bool,
    headings: &'a Headings<'a>,
    /// What is still to come of the input's first lines, and at which line the next piece begins.
    heading: Heading,
    /// Not everything is a record: each is looked at, and lines are counted.
    has_columns: bool,
    /// The beginning of a record that goes on: at most as much as there is room for in front of a read.
    begun: Vec<u8>,
    /// What has been read and cut.
    pub read: RowsRead,
}

impl<'a> Cutter<'a> {
    /// Nothing has been read of `source`.
    pub fn new(reader: &SortedReader<'a>, source: &'a Source) -> Self {
        Self {
            order: &reader.plan.order,
            source,
            headroom_bytes: reader.merging.headroom_bytes,
            key: reader.key,
            is_unpacked: source.codec.is_some(),
            headings: reader.headings,
            heading: Heading::new(reader.headings.lines),
            has_columns: reader.plan.order.has_columns(),
            begun: Vec::new(),
            read: RowsRead::default(),
        }
    }

    /// Makes a piece of the `bytes` bytes from `offset` of the input on, which lie behind the room in front of a
    /// buffer, and says where its last record begins. `None` if no record ends in them. `is_last`: nothing follows.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for a record that is too long, cut off, or has not the columns that decide, and for first lines
    /// that are not those of the first input, where they must be.
    pub fn cut(
        &mut self,
        mut buffer: Buffer,
        bytes: usize,
        offset: u64,
        is_last: bool,
    ) -> Result<Option<(Piece, usize)>> {
        let mut from = self.headroom_bytes - self.begun.len();
        let mut to = self.headroom_bytes + bytes;
        buffer[from..self.headroom_bytes].copy_from_slice(&self.begun);
        let mut offset = offset - self.begun.len() as u64;
        self.begun.clear();
        self.read.totals.bytes += bytes as u64;
        if offset == 0 && self.order.is_json() {
            let mark = mark_bytes(&buffer[from..to]);
            self.read.totals.header_bytes += mark as u64;
            from += mark;
            offset += mark as u64;
        }
        let delimiter = self.order.delimiter();
        let lacks_delimiter = to > from && buffer[to - 1] != delimiter;
        if is_last && self.order.format().has_delimiter() && lacks_delimiter {
            buffer[to] = delimiter;
            to += 1;
            self.read.totals.added_bytes += 1;
        }
        if !self.heading.is_over() {
            let bytes = self.take_heading(&buffer[from..to], is_last)?;
            from += bytes;
            offset += bytes as u64;
        }
        let (mut at, mut last) = (from, from);
        while let Some(length) = self.first_end(&buffer[at..to], is_last) {
            if length > self.headroom_bytes {
                return Err(self.too_long(offset + (at - from) as u64, length as u64, ""));
            }
            let record = &buffer[at..at + length];
            if self.has_columns {
                self.look(&buffer[from..at], record, offset)?;
            }
            self.read.fingerprint.add(record, self.key);
            last = at;
            at += length;
        }
        let line = self.heading.line;
        if self.has_columns {
            self.heading.line += newlines(&buffer[from..at]);
        }
        self.keep(&buffer[at..to], offset + (at - from) as u64, is_last)?;
        self.read.totals.record_bytes += (at - from) as u64;
        let piece = Piece {
            buffer,
            records: from..at,
            offset,
            line,
            is_unpacked: self.is_unpacked,
        };
        Ok((at > from).then_some((piece, last)))
    }

    /// Takes what `bytes` have of the input's first lines. Answers how many those are.
    fn take_heading(&mut self, bytes: &[u8], is_last: bool) -> Result<usize> {
        let end = self.heading.take(self.order, bytes);
        let part = &bytes[..end];
        self.heading.line += newlines(part);
        self.read.totals.header_bytes += end as u64;
        if let Some(expected) = self.headings.expected {
            let path = &self.source.file.path;
            self.heading.compare(part, expected, is_last, path)?;
        }
        let lacks_end = is_last && !self.heading.is_over();
        let from = (self.headings.sources, self.headings.input(self.source));
        let mut kept = lock(&self.headings.kept);
        kept.see(part, from, lacks_end, self.order.delimiter())?;
        Ok(end)
    }

    /// Where the first record of `bytes` ends, `None` if it goes on behind them. What a quote that is never closed leaves at
    /// the end of the input is taken for a record, so that it is looked at.
    fn first_end(&self, bytes: &[u8], is_last: bool) -> Option<usize> {
        let end = self.order.first_end(bytes, &Begun::default());
        let is_unclosed = is_last && matches!(self.order.format(), Format::Quoted(_));
        end.or((is_unclosed && !bytes.is_empty()).then_some(bytes.len()))
    }

    /// Looks whether `record` is one, which comes behind those that lie `before` it in its piece, which begins at `offset`.
    fn look(&self, before: &[u8], record: &[u8], offset: u64) -> Result<()> {
        let Err(wrong) = self.order.check(record) else {
            return Ok(());
        };
        let line = self.heading.line + newlines(before) + newlines(&record[..wrong.at]);
        let offset = offset + (before.len() + wrong.at) as u64;
        Err(bad::error(wrong, (line, offset), self.is_unpacked).at(&self.source.file.path))
    }

    /// Keeps the beginning of a record, which begins at `offset`.
    fn keep(&mut self, part: &[u8], offset: u64, is_last: bool) -> Result<()> {
        let told = match self.order.format() {
            Format::Kv => kv_bytes(part),
            Format::Lines | Format::Quoted(_) | Format::Fixed(_) => None,
        };
        if let Some(bytes) = told.filter(|&bytes| bytes > self.headroom_bytes as u64) {
            return Err(self.too_long(offset, bytes, ""));
        }
        if part.is_empty() {
            return Ok(());
        }
        if is_last {
            let wanted = match self.order.format() {
                Format::Fixed(size) => u64::from(size),
                _ => told.unwrap_or(KV_HEADER_BYTES as u64),
            };
            let have = part.len();
            let cause = format!("the last record is cut off: it has {have} of {wanted} bytes");
            return Err(self.wrong(offset, cause));
        }
        if part.len() > self.headroom_bytes {
            return Err(self.too_long(offset, part.len() as u64, " or more"));
        }
        self.begun.reserve_exact(part.len());
        self.begun.extend_from_slice(part);
        Ok(())
    }

    fn too_long(&self, offset: u64, bytes: u64, more: &str) -> Error {
        let most = text::bytes(self.headroom_bytes as u64);
        let have = text::bytes(bytes);
        let more = match self.order.format() {
            Format::Quoted(_) => format!("{more}, or a quote in it is never closed"),
            _ => more.to_owned(),
        };
        let cause = format!(
            "a record is longer than {most}, the most this memory allows where so many inputs are merged: it has \
             {have}{more}"
        );
        self.wrong(offset, cause).hint(
            "Give it more with --memory, or sort the inputs together: a sort takes records of up to half the memory.",
        )
    }

    fn wrong(&self, offset: u64, mut cause: String) -> Error {
        if self.is_unpacked {
            cause += text::OF_UNPACKED;
        }
        Error::new(ErrorKind::Input, DOING, cause)
            .at(&self.source.file.path)
            .offset(offset)
    }
}

/// Makes a piece of a block of a run, its records moved together, and says where its last record begins.
///
/// # Errors
/// What is wrong with the block.
pub fn unpack(
    mut buffer: Buffer,
    header: &Header,
    order: &Order,
) -> std::result::Result<(Piece, usize), Damage> {
    Header::open(&buffer, header)?;
    let end = HEADER_BYTES + header.payload_bytes as usize;
    let (mut at, mut to, mut count) = (HEADER_BYTES, HEADER_BYTES, 0);
    let mut last_segment = to;
    while at < end {
        let (segment, header_bytes) = Segment::get(&buffer[at..end])?;
        let from = at + header_bytes;
        at = from + segment.bytes as usize;
        buffer.copy_within(from..at, to);
        last_segment = to;
        to += segment.bytes as usize;
        count += segment.record_count;
    }
    let mut last = last_segment;
    loop {
        let next = last + order.record_bytes(&buffer[last..to]);
        if next >= to {
            break;
        }
        last = next;
    }
    if count != header.record_count || to == HEADER_BYTES {
        return Err(Damage::Segments);
    }
    let piece = Piece {
        buffer,
        records: HEADER_BYTES..to,
        offset: 0,
        line: 0,
        is_unpacked: false,
    };
    Ok((piece, last))
}
