//! Records in memory: chunks as they were read, batches of whole records, records a function made.
//!
//! Records live in slabs, contiguous bytes and a row of offsets, never one heap object each.

use sortmill_io::Buffer;

use crate::bad::newlines;
use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::long::Long;
use crate::order::{Format, KV_HEADER_BYTES, Order};
use crate::short::push_text;

/// A chunk with the records that end in it. The beginning of its first record, which came at the end of
/// the chunk before, has been put in front of it, so that every record is contiguous.
pub struct Chunk {
    /// Its number.
    pub number: u64,
    /// Which input it was cut from, from 0.
    pub input: usize,
    /// Where `buffer[records.start]` stands in its input, for messages.
    pub offset: u64,
    /// The number of the line, from 1, at which its first record begins, a long one too; only where lines are
    /// counted.
    pub line: u64,
    /// Whether its input is compressed: then it stands so in the bytes that it was made of.
    pub is_unpacked: bool,
    /// The memory.
    pub buffer: Buffer,
    /// Which part of it holds whole records.
    pub records: std::ops::Range<usize>,
    /// A first record too long for the room in front of the chunk.
    pub long: Option<Long>,
    /// Where its records go.
    pub goes: Goes,
}

/// Where a chunk's records go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Goes {
    /// Each to the partition that its key says.
    ByKey,
    /// Those of one slot to its partition; the others are not wanted.
    OnlySlot(usize),
    /// All to the partition of one slot.
    AllToSlot(usize),
}

/// Whole records, back to back.
pub struct Batch<'a> {
    /// The number of the chunk they came from.
    pub chunk: u64,
    /// The slab.
    pub bytes: &'a [u8],
    /// Where in it they lie.
    pub offsets: Offsets<'a>,
    /// What these records add up to.
    pub fingerprint: Fingerprint,
}

/// Where in a slab the records of a batch lie. Of records of one size nothing is looked up: a table of offsets would be
/// read several times for each record, in another order than it was written.
#[derive(Clone, Copy, Debug)]
pub enum Offsets<'a> {
    /// Record i is `offsets[i]..offsets[i + 1]`.
    Each(&'a [u32]),
    /// So many records of one size.
    Every {
        /// Where the first one starts.
        from: u32,
        /// Bytes of each.
        bytes: u32,
        /// How many.
        count: u32,
    },
}

impl Offsets<'_> {
    /// Where those from number `from` on lie.
    fn rest(&self, from: usize) -> Self {
        match *self {
            Self::Each(offsets) => Self::Each(&offsets[from..]),
            Self::Every {
                from: first,
                bytes,
                count,
            } => Self::Every {
                from: first + from as u32 * bytes,
                bytes,
                count: count - from as u32,
            },
        }
    }

    /// How many records there are.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        match *self {
            Self::Each(offsets) => offsets.len() - 1,
            Self::Every { count, .. } => count as usize,
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where record `index` lies.
    #[inline]
    #[must_use]
    pub fn range(&self, index: usize) -> std::ops::Range<usize> {
        match *self {
            Self::Each(offsets) => offsets[index] as usize..offsets[index + 1] as usize,
            Self::Every { from, bytes, .. } => {
                let start = from as usize + index * bytes as usize;
                start..start + bytes as usize
            }
        }
    }

    /// Where the last record ends.
    #[must_use]
    pub fn end(&self) -> usize {
        match *self {
            Self::Each(offsets) => *offsets.last().expect("a batch has an end") as usize,
            Self::Every { from, bytes, count } => from as usize + bytes as usize * count as usize,
        }
    }
}

impl<'a> Batch<'a> {
    /// How many records there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Record `index`.
    #[inline]
    #[must_use]
    pub fn record(&self, index: usize) -> &'a [u8] {
        &self.bytes[self.offsets.range(index)]
    }

    /// All records in order.
    pub fn records(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        (0..self.len()).map(|index| self.record(index))
    }

    /// Behind which record those from number `from` on, one at least, have about `bytes` bytes.
    #[must_use]
    pub fn until(&self, from: usize, bytes: usize) -> usize {
        let end = self.offsets.range(from).start + bytes;
        let is_within = |&at: &usize| self.offsets.range(at).end <= end;
        (from + 1..self.len())
            .find(|at| !is_within(at))
            .unwrap_or(self.len())
    }

    /// The records from number `from` on, which are not summed up.
    #[must_use]
    pub fn rest(&self, from: usize) -> Self {
        Self {
            chunk: self.chunk,
            bytes: self.bytes,
            offsets: self.offsets.rest(from),
            fingerprint: Fingerprint::default(),
        }
    }

    /// Bytes of the records `rows`.
    #[must_use]
    pub fn bytes_of(&self, rows: &[u32]) -> u64 {
        if let Offsets::Every { bytes, .. } = self.offsets {
            return rows.len() as u64 * u64::from(bytes);
        }
        let bytes = |&row: &u32| self.offsets.range(row as usize).len() as u64;
        rows.iter().map(bytes).sum()
    }

    /// How many of the records `rows`, the first ones, have at most `bytes_max` bytes together, and how many they have.
    #[must_use]
    pub fn fit(&self, rows: &[u32], bytes_max: usize) -> (usize, usize) {
        if let Offsets::Every { bytes, .. } = self.offsets {
            let count = rows.len().min(bytes_max / bytes as usize);
            return (count, count * bytes as usize);
        }
        let (mut count, mut bytes) = (0, 0);
        for &row in rows {
            let grown = bytes + self.offsets.range(row as usize).len();
            if grown > bytes_max {
                break;
            }
            (count, bytes) = (count + 1, grown);
        }
        (count, bytes)
    }
}

/// Where the record lies that a map function has in hand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Origin {
    /// Which of the job's inputs, from 0.
    pub input: usize,
    /// The line at which it begins there, from 1; 0 where the map function does not ask for it.
    pub line: u64,
}

/// Records that a function made, back to back, to be looked at as a [`Batch`].
pub struct Records {
    /// Where the record lies that they are made of.
    pub origin: Origin,
    order: Order,
    bytes_max: usize,
    records_max: usize,
    bytes: Vec<u8>,
    /// From so many bytes on they had better be taken.
    bytes_full: usize,
    /// Where they end, unless all have one size.
    offsets: Vec<u32>,
    every: Option<usize>,
    fault: Option<Error>,
    /// Where the record lies that the function gets: the number of its input, and the byte there where it begins. Neither
    /// memory nor threads change it. While a sample is drawn, other numbers that differ from record to record.
    pub place: (u64, u64),
    /// Where the record that the function has in hand begins in its slab, and the one that the fault is about.
    at: usize,
    blamed: Option<usize>,
    /// The record that the function was called with last is a bad one.
    unread: Option<Unread>,
    /// The function has more to hand over than there was room for.
    is_held: bool,
    pause: Pause,
    is_sample: bool,
    /// Of the records that the function was called with last it has said that it is done with so many bytes.
    passed_bytes: usize,
}

/// A bad record: what a map function could not read, and that is left out if it may be.
#[derive(Debug)]
pub struct Unread {
    /// As how many bad records it counts.
    pub count: u64,
    /// What is wrong; its offset is where in the record.
    pub error: Error,
}

/// Why a map function is called without a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pause {
    /// There is room again for what it held back ([`Records::hold_back`]).
    Room,
    /// The last record of a chunk has been: what was gathered of its records is to be made now. Only of functions that
    /// gather some ([`crate::job::Job::map_gathers_bytes`]).
    Chunk,
    /// The last record of its worker has been.
    #[default]
    End,
}

impl Records {
    /// Room for `bytes_max` bytes of records that lie as `order` says, and best no more than `records_max` of them.
    #[must_use]
    pub fn new(order: Order, bytes_max: usize, records_max: usize) -> Self {
        let every = match order.format() {
            Format::Fixed(bytes) => Some(bytes as usize),
            _ => None,
        };
        let most = every.map_or(usize::MAX, |bytes| bytes.saturating_mul(records_max));
        Self {
            origin: Origin::default(),
            bytes_full: most.min(bytes_max / 2 + 1),
            every,
            order,
            bytes_max,
            records_max,
            bytes: Vec::new(),
            offsets: vec![0],
            fault: None,
            place: (0, 0),
            at: 0,
            blamed: None,
            unread: None,
            is_held: false,
            pause: Pause::End,
            is_sample: false,
            passed_bytes: 0,
        }
    }

    /// The same, where what is made is only looked at.
    #[must_use]
    pub fn of_sample(mut self) -> Self {
        self.is_sample = true;
        self
    }

    /// Whether what is made is only looked at, and the same records come again when it counts.
    #[must_use]
    pub fn is_sample(&self) -> bool {
        self.is_sample
    }

    /// The function is called with the record that lies at `place` and begins at byte `at` of its slab.
    pub fn give(&mut self, place: (u64, u64), at: usize) {
        self.place = place;
        self.at = at;
    }

    /// Where in its slab the record begins that the function was called with, in bytes.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }

    /// The function is called without a record, because of `pause`.
    pub fn pause_for(&mut self, pause: Pause) {
        self.pause = pause;
        self.is_held = false;
    }

    /// Why the function is called without a record.
    #[must_use]
    pub fn pause(&self) -> Pause {
        self.pause
    }

    /// There is not room for all that the function has made: it asks to be called again when there is.
    pub fn hold_back(&mut self) {
        self.is_held = true;
    }

    /// Whether the function has something left to hand over.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    /// Appends a record. One that is not of the job's format, or more than there is room for, makes the
    /// job fail when the function returns.
    pub fn push(&mut self, record: &[u8]) {
        if !self.order.is_record(record) {
            self.fail(format!(
                "it made a record of {} bytes that is not one of the job's format",
                record.len()
            ));
        } else if self.bytes.len() + record.len() > self.bytes_max {
            self.fail_for_room();
        } else {
            self.bytes.extend_from_slice(record);
            if self.every.is_none() {
                self.offsets.push(self.bytes.len() as u32);
            }
        }
    }

    fn len(&self) -> usize {
        match self.every {
            Some(bytes) => self.bytes.len() / bytes,
            None => self.offsets.len() - 1,
        }
    }

    /// Appends a pair, without its being put together before; otherwise as [`Records::push`]. Where records have a fixed
    /// size, it is key and value alone ([`crate::job::Job::pair_bytes`]).
    #[inline]
    pub fn push_pair(&mut self, key: &[u8], value: &[u8]) {
        if let Some(bytes) = self.every
            && key.len() + value.len() == bytes
            && self.bytes.len() + bytes <= self.bytes_max
        {
            self.bytes.extend_from_slice(key);
            self.bytes.extend_from_slice(value);
            return;
        }
        self.push_any_pair(key, value);
    }

    /// Appends records of the job's one size that lie back to back, otherwise as [`Records::push`].
    #[inline]
    pub fn push_all(&mut self, records: &[u8]) {
        match self.every {
            Some(bytes)
                if records.len().is_multiple_of(bytes)
                    && self.bytes.len() + records.len() <= self.bytes_max =>
            {
                self.bytes.extend_from_slice(records);
            }
            Some(bytes) => records.chunks(bytes).for_each(|record| self.push(record)),
            None => self.push(records),
        }
    }

    fn push_any_pair(&mut self, key: &[u8], value: &[u8]) {
        if self.every.is_some() {
            return self.push(&[key, value].concat());
        }
        let bytes = KV_HEADER_BYTES + key.len() + value.len();
        if self.bytes.len() + bytes > self.bytes_max || self.order.format() != Format::Kv {
            let lengths = [key.len() as u32, value.len() as u32].map(u32::to_le_bytes);
            return self.push(&[&lengths.concat(), key, value].concat());
        }
        let lengths = (value.len() as u64) << u32::BITS | key.len() as u64;
        self.bytes.reserve(bytes);
        self.bytes.extend_from_slice(&lengths.to_le_bytes());
        push_text(key, &mut self.bytes);
        push_text(value, &mut self.bytes);
        self.offsets.push(self.bytes.len() as u32);
    }

    fn fail(&mut self, cause: String) {
        self.refuse(Error::new(
            ErrorKind::Usage,
            "calling the map function",
            cause,
        ));
    }

    fn fail_for_room(&mut self) {
        let cause = format!(
            "it made more than {} bytes out of one record",
            self.bytes_max / 2
        );
        let error = Error::new(ErrorKind::Memory, "calling the map function", cause);
        self.refuse(
            error.hint(
                "Give the job more memory, or fewer threads, of which each has its part of it.",
            ),
        );
    }

    /// The function could not do its work: the job fails when it returns.
    pub fn refuse(&mut self, error: Error) {
        self.fault.get_or_insert(error);
    }

    /// The same for a record before the one that it was called with, which begins at byte `at` of the slab.
    pub fn refuse_at(&mut self, error: Error, at: usize) {
        if self.fault.is_none() {
            self.blamed = Some(at);
        }
        self.refuse(error);
    }

    /// The record that the function was called with is a bad one, of which it has made nothing: it is left out, or the job
    /// fails when the function returns. In a sample nobody counts them.
    pub fn leave_out(&mut self, unread: Unread) {
        if !self.is_sample {
            self.unread = Some(unread);
        }
    }

    /// What is wrong with the record that was given last, if it is to be left out. It is told once.
    pub fn take_unread(&mut self) -> Option<Unread> {
        self.unread.take()
    }

    /// Where the record begins that the fault is about, if that is not the last one.
    #[must_use]
    pub fn blamed(&self) -> Option<usize> {
        self.blamed
    }

    /// How many records there are, and their bytes.
    #[must_use]
    pub fn sizes(&self) -> (u64, u64) {
        (self.len() as u64, self.bytes.len() as u64)
    }

    /// For how many more records there is room, and for how many bytes of them.
    #[must_use]
    pub fn room(&self) -> (usize, usize) {
        let records = self.records_max.saturating_sub(self.len());
        (records, self.bytes_max.saturating_sub(self.bytes.len()))
    }

    /// Whether there is so much that it should be taken before more comes, or nothing more is wanted.
    #[must_use]
    #[inline]
    pub fn is_full(&self) -> bool {
        let are_many = self.every.is_none() && self.len() >= self.records_max;
        let has_bad = self.fault.is_some() || self.unread.is_some();
        self.bytes.len() >= self.bytes_full || are_many || has_bad
    }

    /// The function is done with `records`, and the next one lies behind them. One that takes several may say so of some, in their
    /// order; if it says nothing, it is done with all.
    pub fn passed(&mut self, records: &[u8]) {
        self.passed_bytes += records.len();
        if self.origin.line > 0 {
            self.origin.line += newlines(records);
        }
    }

    /// Of how many bytes the function has said that it is done with them, since it was asked last.
    pub fn take_passed(&mut self) -> usize {
        std::mem::take(&mut self.passed_bytes)
    }

    /// Forgets all records.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.offsets.truncate(1);
    }

    /// The records, with their fingerprint under `key`.
    ///
    /// # Errors
    /// What a `push` before found wrong.
    pub fn batch(&self, chunk: u64, key: u64) -> Result<Batch<'_>> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let mut batch = Batch {
            chunk,
            bytes: &self.bytes,
            offsets: match self.every {
                Some(bytes) => Offsets::Every {
                    from: 0,
                    bytes: bytes as u32,
                    count: self.len() as u32,
                },
                None => Offsets::Each(&self.offsets),
            },
            fingerprint: Fingerprint::default(),
        };
        let mut fingerprint = Fingerprint::default();
        match self.every {
            Some(bytes) => fingerprint.add_all(&self.bytes, bytes, key),
            None => batch
                .records()
                .for_each(|record| fingerprint.add(record, key)),
        }
        batch.fingerprint = fingerprint;
        Ok(batch)
    }
}
