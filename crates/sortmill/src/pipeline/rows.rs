//! Records as rows of values: from an iterator of this process into a pipeline, and out of a pipeline to whoever asks for
//! them one after the other.
//!
//! Both ways a record is a pair with an empty key, whose value is the values one behind the other ([`Column::put`]). An
//! iterator is asked only while the job has room for what it answers ([`crate::made`]), so it is never ahead by more than a
//! chunk; rows that come out lie in a file, of which a part is in memory.

use std::path::Path;

use sortmill_io::os::Kind;
use sortmill_io::sync::Arc;
use sortmill_io::{Access, File, Os};

use super::aggregate::Owned;
use super::column::{Column, Value, corrupt, row};
use super::verbs::{Sink, check_values};
use crate::error::{Error, ErrorKind, Result};
use crate::job::Input;
use crate::made::{Made, Make};
use crate::order::{KV_HEADER_BYTES, kv_bytes};

/// Records, one after the other.
pub type Rows = Box<dyn Iterator<Item = Result<Vec<Owned>>> + Send>;

/// Begins to make records, each time that a table of them is read.
pub type MakeRows = Arc<dyn Fn() -> Result<Rows> + Send + Sync>;

/// Hands some of the next records over. Answers whether there may be more.
pub type HandRows = Box<dyn FnMut(Sink<'_>) -> Result<bool> + Send>;

/// Begins to hand records over, each time that a table of them is read.
pub type MakeHandRows = Arc<dyn Fn() -> Result<HandRows> + Send + Sync>;

/// Hands over a record at a time, so that a job that is to end need not wait for more of them.
pub(super) fn handing(make: MakeRows) -> MakeHandRows {
    Arc::new(move || {
        let mut rows = make()?;
        Ok(Box::new(move |sink: Sink<'_>| {
            let Some(row) = rows.next().transpose()? else {
                return Ok(false);
            };
            sink(&row.iter().map(Owned::value).collect::<Vec<_>>())?;
            Ok(true)
        }))
    })
}

/// The input of a job that is what `make` makes, records of `columns`, called `name` in messages.
pub(super) fn input(name: &str, columns: &[Column], make: &MakeHandRows) -> Input {
    let columns = columns.to_vec();
    let make = Arc::clone(make);
    let (mut rows, mut has_ended) = (None, false);
    // What has been made, and how much of it has been read.
    let (mut pairs, mut read) = (Vec::new(), 0);
    let fill: Make = Box::new(move |into| {
        let rows = match &mut rows {
            Some(rows) => rows,
            None => rows.insert(make()?),
        };
        while read == pairs.len() && !has_ended {
            pairs.clear();
            read = 0;
            has_ended = !rows(&mut |values| {
                check_values(values, &columns)?;
                write(&columns, values, &mut pairs);
                Ok(())
            })?;
        }
        let count = (pairs.len() - read).min(into.len());
        into[..count].copy_from_slice(&pairs[read..read + count]);
        read += count;
        Ok(count)
    });
    Input::Made(Made::new(name, fill))
}

/// The key of the pair that a file of rows begins with.
const MAGIC: &[u8] = concat!("sortmill rows of ", env!("CARGO_PKG_VERSION")).as_bytes();

/// What is in front of all records of a file: a pair whose value is the names and types of the columns, as JSON.
#[must_use]
pub fn heading(columns: &[Column]) -> Vec<u8> {
    let told: Vec<(&str, String)> = columns
        .iter()
        .map(|column| (&*column.name, column.type_name()))
        .collect();
    let told = serde_json::to_vec(&told).expect("names are text");
    let mut pair = Vec::new();
    pair.extend_from_slice(&(MAGIC.len() as u32).to_le_bytes());
    pair.extend_from_slice(&(told.len() as u32).to_le_bytes());
    pair.extend_from_slice(MAGIC);
    pair.extend_from_slice(&told);
    pair
}

/// Why what a file was written with, as its heading tells it, cannot be read as `columns`. They may have other names, but not those
/// of others.
fn differs(told: &[(String, String)], columns: &[Column]) -> Option<String> {
    let words = |names: &[(String, String)]| {
        let words: Vec<String> = names
            .iter()
            .map(|(name, kind)| format!("{name} {kind}"))
            .collect();
        words.join(", ")
    };
    let asked: Vec<(String, String)> = columns
        .iter()
        .map(|column| (column.name.clone(), column.type_name()))
        .collect();
    let is_moved = |(at, (name, _)): (usize, &(String, String))| {
        told[at].0 != *name && told.iter().any(|(other, _)| other == name)
    };
    let kinds = |of: &[(String, String)]| of.iter().map(|(_, kind)| kind.clone()).collect();
    let (have, want): (Vec<String>, Vec<String>) = (kinds(told), kinds(&asked));
    (have != want || asked.iter().enumerate().any(is_moved)).then(|| {
        let (have, want) = (words(told), words(&asked));
        format!("it was written with the columns {have}, and {want} are asked for")
    })
}

/// Appends a record of `columns`.
pub(super) fn write(columns: &[Column], values: &[Value<'_>], to: &mut Vec<u8>) {
    let from = to.len();
    to.extend_from_slice(&[0; KV_HEADER_BYTES]);
    for (column, value) in columns.iter().zip(values) {
        column.put(value, to);
    }
    let length = (to.len() - from - KV_HEADER_BYTES) as u32;
    to[from + 4..from + KV_HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
}

/// Calls `see` with the values of a record of `columns`, as they lie behind the header of the pair that [`write`] has made.
///
/// # Errors
/// What `see` answers, and [`crate::error::ErrorKind::Corrupt`] for what is no such record.
pub(super) fn read<T>(
    columns: &[Column],
    values: &[u8],
    see: impl FnOnce(&[Value<'_>]) -> Result<T>,
) -> Result<T> {
    let mut rest = values;
    let value = |at: usize| {
        let value = columns[at].take(&mut rest).ok_or_else(corrupt)?;
        let is_whole = at + 1 < columns.len() || rest.is_empty();
        is_whole.then_some(value).ok_or_else(corrupt)
    };
    row(columns.len(), value, see)
}

/// Key and value of a pair.
pub(super) fn halves(pair: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = u32::from_le_bytes(pair.get(..4)?.try_into().expect("four bytes"));
    pair.get(KV_HEADER_BYTES..)?
        .split_at_checked(length as usize)
}

/// The records of a file that [`super::Form::Rows`] is the form of, one after the other.
pub struct RowFile {
    file: File,
    /// How long it is, if it is a file and no pipe.
    file_bytes: Option<u64>,
    columns: Vec<Column>,
    bytes: Vec<u8>,
    /// Where in these the next record begins, and at which byte of the file they do.
    at: usize,
    offset: u64,
}

impl RowFile {
    /// That at `path`, of a table of `columns`, which may be called otherwise now.
    ///
    /// # Errors
    /// The system's; [`ErrorKind::Usage`] for other columns than it was written with, [`ErrorKind::Input`] for a file that was not
    /// written so, or by another version.
    pub fn open(os: &dyn Os, path: &Path, columns: &[Column]) -> Result<Self> {
        let failed = |error: std::io::Error| Error::io(DOING, path, &error);
        let file = os.open(path, Access::Cached).map_err(failed)?;
        let meta = os.meta(&file).map_err(failed)?;
        let mut made = Self {
            file,
            file_bytes: (meta.kind == Kind::Regular).then_some(meta.bytes),
            columns: columns.to_vec(),
            bytes: Vec::new(),
            at: 0,
            offset: 0,
        };
        let wrong = |kind: ErrorKind, cause: &str| Error::new(kind, DOING, cause).at(path);
        let other = || {
            let cause = "it holds no rows as this version writes them (write_rows)";
            wrong(ErrorKind::Input, cause)
        };
        let not_whole = |error: Error| match error.kind {
            ErrorKind::Input => other(),
            _ => error,
        };
        // Before any length in it is believed: another file's may say anything.
        let begins = made.have(os, KV_HEADER_BYTES + MAGIC.len());
        begins.map_err(not_whole)?.ok_or_else(other)?;
        let (header, rest) = made.bytes.split_at(KV_HEADER_BYTES);
        if header[..4] != (MAGIC.len() as u32).to_le_bytes() || !rest.starts_with(MAGIC) {
            return Err(other());
        }
        let length = made.load(os).map_err(not_whole)?.ok_or_else(other)?;
        let pair = &made.bytes[made.at..made.at + length];
        let told = pair[KV_HEADER_BYTES..].strip_prefix(MAGIC);
        let told: Vec<(String, String)> = told
            .and_then(|told| serde_json::from_slice(told).ok())
            .ok_or_else(other)?;
        if let Some(cause) = differs(&told, columns) {
            return Err(wrong(ErrorKind::Usage, &cause));
        }
        made.pass(length);
        Ok(made)
    }

    /// Hands the next record to `see`, if there is one. Answers whether there was.
    ///
    /// # Errors
    /// The system's, that of `see`, and [`ErrorKind::Input`], with its place, for what is no such record.
    pub fn next(
        &mut self,
        os: &dyn Os,
        see: impl FnOnce(&[Value<'_>]) -> Result<()>,
    ) -> Result<bool> {
        let Some(bytes) = self.load(os)? else {
            return Ok(false);
        };
        let mut is_read = false;
        let read = read(&self.columns, self.loaded(bytes), |values| {
            is_read = true;
            see(values)
        });
        read.map_err(|error| match is_read {
            true => error,
            false => self.damaged(),
        })?;
        self.pass(bytes);
        Ok(true)
    }

    /// Has the next record in memory, if there is one. Answers how many bytes it has there.
    pub(super) fn load(&mut self, os: &dyn Os) -> Result<Option<usize>> {
        let Some(length) = self.have(os, KV_HEADER_BYTES)? else {
            return Ok(None);
        };
        let bytes = usize::try_from(length).map_err(|_| self.damaged())?;
        // A damaged length may tell of more than there is.
        let left =
            (self.file_bytes).map(|bytes| bytes.saturating_sub(self.offset + self.at as u64));
        if left.is_some_and(|left| length > left) {
            return Err(self.damaged());
        }
        self.have(os, bytes)?.ok_or_else(|| self.damaged())?;
        Ok(Some(bytes))
    }

    /// The values of the record that was loaded, which has `bytes` bytes.
    pub(super) fn loaded(&self, bytes: usize) -> &[u8] {
        &self.bytes[self.at + KV_HEADER_BYTES..self.at + bytes]
    }

    /// Goes on behind that.
    pub(super) fn pass(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// What it is, and where the record lies that was loaded.
    pub(super) fn place(&self) -> (&Path, u64) {
        (&self.file.path, self.offset + self.at as u64)
    }

    /// The error of a record that is none, at its place.
    pub(super) fn damaged(&self) -> Error {
        let cause = "the file ends within a record, or is not as it was written";
        let (path, offset) = self.place();
        Error::new(ErrorKind::Input, DOING, cause)
            .at(path)
            .offset(offset)
    }

    /// Reads on until `wanted` bytes of the next record are there. Answers how many it has; `None` at the end.
    fn have(&mut self, os: &dyn Os, wanted: usize) -> Result<Option<u64>> {
        const READ_BYTES: usize = 256 << 10;
        while self.bytes.len() - self.at < wanted {
            self.offset += self.at as u64;
            self.bytes.drain(..std::mem::take(&mut self.at));
            let before = self.bytes.len();
            self.bytes.resize(before + READ_BYTES, 0);
            let moved = os.read_stream(&self.file, &mut self.bytes[before..], &|| false);
            let moved = moved.map_err(|error| {
                let offset = self.offset + before as u64;
                Error::io(DOING, &self.file.path, &error).offset(offset)
            })?;
            self.bytes.truncate(before + moved);
            match (moved, before) {
                (0, 0) => return Ok(None),
                (0, _) => return Err(self.damaged()),
                _ => {}
            }
        }
        Ok(kv_bytes(&self.bytes[self.at..]))
    }
}

const DOING: &str = "reading records";
