//! Files of groups side by side: what `paste` does for lines, by the group that each record is of.
//!
//! ```text
//! one      | group, a, b |        in the order in which groups come: of a hash of the group
//! another  | group, c    |
//!          -> group, a, b, c      of each group that any of them has
//! ```
//!
//! Groups of one kind come in the same order whatever was computed of them and of which records (`mix.rs`), so files that
//! pipelines made of them are joined by reading each once, and nothing is brought together again. So a graph stays where it
//! is while what changes from one round to the next is moved. A file in another order is refused when that shows.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use sortmill_io::Os;
use sortmill_io::sync::Arc;

use super::column::{Column, Type, Value, row};
use super::key::{self, KeyColumn, OrderColumn};
use super::mix::group_hash;
use super::rows::{HandRows, MakeHandRows, RowFile};
use super::verbs::Sink;
use super::{Table, from_rows, wrong};
use crate::error::{Error, ErrorKind, Result};

/// Bytes of records that are handed over before the job is asked whether it has room.
const BYTES_AT_ONCE: usize = 64 << 10;

/// Files that are pasted, at most.
const FILES_MAX: usize = 16;

/// The records of several files that pipelines wrote as [`super::Form::Rows`] directly behind a
/// [`group_by`](Table::group_by), side by side: of each file its path and its columns, of which the first is the group. A
/// record comes out for each group that is in any of them, in the order of groups: the group, then the other columns of each
/// file. Where a file has no record of it they are 0 (of timestamps 1970), false or empty text. Names of columns must differ but for the group's,
/// which is called as in the first file.
///
/// The files are read when the table is, as often as it is.
///
/// # Errors
/// [`ErrorKind::Usage`] for files without columns, groups of several types, and two columns of one name. When it is read:
/// [`ErrorKind::Input`] for a file that is not in the order of groups, or has one twice.
pub fn paste(os: Arc<dyn Os>, files: &[(&Path, &[Column])]) -> Result<Table> {
    if files.is_empty() || files.len() > FILES_MAX {
        return Err(wrong(format!("one file to {FILES_MAX} are pasted")));
    }
    let mut columns: Vec<Column> = Vec::new();
    let mut sides = Vec::new();
    for (path, of) in files {
        let Some((group, others)) = of.split_first() else {
            return Err(wrong(format!("{} has no columns", path.display())));
        };
        match columns.first() {
            Some(first) if first.type_name() != group.type_name() => {
                let (one, other) = (first.type_name(), group.type_name());
                return Err(wrong(format!(
                    "groups are of type {one} and of type {other}"
                )));
            }
            Some(_) => {}
            None => columns.push(group.clone()),
        }
        columns.extend_from_slice(others);
        sides.push((path.to_path_buf(), of.to_vec()));
    }
    let group = key::key_columns(&columns, &[OrderColumn::up(0)]);
    let make: MakeHandRows = Arc::new(move || pasting(&os, &sides, &group));
    from_rows("files side by side", columns, make)
}

fn pasting(
    os: &Arc<dyn Os>,
    sides: &[(PathBuf, Vec<Column>)],
    group: &[KeyColumn],
) -> Result<HandRows> {
    let os = Arc::clone(os);
    let mut pasting = Pasting::open(&*os, sides, group)?;
    Ok(Box::new(move |sink| {
        let mut bytes = 0;
        while bytes < BYTES_AT_ONCE {
            match pasting.next(&*os, sink)? {
                0 => return Ok(false),
                more => bytes += more,
            }
        }
        Ok(true)
    }))
}

/// Files that are being pasted.
struct Pasting {
    sides: Vec<Side>,
    /// The columns of what comes out, but for the group, and the number of the file that each is of.
    others: Vec<(usize, Column)>,
}

impl Pasting {
    fn open(os: &dyn Os, sides: &[(PathBuf, Vec<Column>)], group: &[KeyColumn]) -> Result<Self> {
        let others = sides.iter().enumerate().flat_map(|(file, (_, columns))| {
            let others = columns[1..].iter();
            others.map(move |column| (file, column.clone()))
        });
        let others = others.collect();
        let open = |(path, columns): &(PathBuf, Vec<Column>)| Side::open(os, path, columns, group);
        Ok(Self {
            sides: sides.iter().map(open).collect::<Result<_>>()?,
            others,
        })
    }

    /// Hands over the next group, if there is one. Answers how many bytes it has in all files, 0 if there is none.
    fn next(&mut self, os: &dyn Os, sink: Sink<'_>) -> Result<usize> {
        let Self { sides, others } = self;
        let Some(mut least) = sides.iter().position(Side::has_record) else {
            return Ok(0);
        };
        let mut are_least = [false; FILES_MAX];
        are_least[least] = true;
        for at in least + 1..sides.len() {
            if !sides[at].has_record() {
                continue;
            }
            match sides[at].compare(&sides[least]) {
                Ordering::Less => {
                    are_least[..at].fill(false);
                    least = at;
                    are_least[at] = true;
                }
                Ordering::Equal => are_least[at] = true,
                Ordering::Greater => {}
            }
        }
        // Where in its record each file is.
        let mut rests: [&[u8]; FILES_MAX] = [&[]; FILES_MAX];
        for ((rest, side), is_least) in rests.iter_mut().zip(&*sides).zip(are_least) {
            if is_least {
                *rest = side.others();
            }
        }
        let group = sides[least].group()?;
        row(
            1 + others.len(),
            |number| {
                let Some(number) = number.checked_sub(1) else {
                    return Ok(group);
                };
                let (file, ref column) = others[number];
                match are_least[file] {
                    false => Ok(nothing(column)),
                    true => {
                        (column.take(&mut rests[file])).ok_or_else(|| sides[file].file.damaged())
                    }
                }
            },
            sink,
        )?;
        let mut bytes = 0;
        for (side, is_least) in sides.iter_mut().zip(are_least) {
            if is_least {
                bytes += side.pass(os)?;
            }
        }
        Ok(bytes)
    }
}

/// What stands where a file has no record of a group.
fn nothing(column: &Column) -> Value<'static> {
    match column.kind {
        _ if column.nullable => Value::Null,
        Type::Binary | Type::String => Value::Bytes(b""),
        Type::I64 => Value::I64(0),
        Type::U64 => Value::U64(0),
        Type::F64 => Value::F64(0.0),
        Type::Bool => Value::Bool(false),
        Type::Timestamp => Value::Timestamp(0),
    }
}

/// One of the files, and the record that it is at.
struct Side {
    file: RowFile,
    /// Its first column, which is the group.
    column: Column,
    key: Vec<KeyColumn>,
    /// Bytes of the record, none behind the last one, and of its group; the group's hash and key, and those of the one before.
    bytes: Option<usize>,
    group_bytes: usize,
    at: (u64, Vec<u8>),
    before: Option<(u64, Vec<u8>)>,
}

impl Side {
    fn open(os: &dyn Os, path: &Path, columns: &[Column], group: &[KeyColumn]) -> Result<Self> {
        let mut side = Self {
            file: RowFile::open(os, path, columns)?,
            column: columns[0].clone(),
            key: group.to_vec(),
            bytes: None,
            group_bytes: 0,
            at: (0, Vec::new()),
            before: None,
        };
        side.load(os)?;
        Ok(side)
    }

    fn has_record(&self) -> bool {
        self.bytes.is_some()
    }

    fn values(&self) -> &[u8] {
        self.bytes.map_or(&[], |bytes| self.file.loaded(bytes))
    }

    /// The group of its record.
    fn group(&self) -> Result<Value<'_>> {
        let group = self.column.take(&mut self.values());
        group.ok_or_else(|| self.file.damaged())
    }

    /// The other columns of its record.
    fn others(&self) -> &[u8] {
        &self.values()[self.group_bytes..]
    }

    fn compare(&self, other: &Self) -> Ordering {
        self.at.cmp(&other.at)
    }

    fn load(&mut self, os: &dyn Os) -> Result<()> {
        self.bytes = self.file.load(os)?;
        let Some(bytes) = self.bytes else {
            return Ok(());
        };
        let values = self.file.loaded(bytes);
        let mut rest = values;
        let group = self.column.take(&mut rest);
        let group = group.ok_or_else(|| self.file.damaged())?;
        self.group_bytes = values.len() - rest.len();
        let (hash, key) = &mut self.at;
        key.clear();
        key::write(&self.key, &[group], key);
        *hash = group_hash(key);
        if self
            .before
            .as_ref()
            .is_some_and(|before| *before >= self.at)
        {
            let cause = "it is not in the order in which groups come: \
                         files are pasted as a group_by wrote them, with nothing behind it that brings records together";
            let (path, offset) = self.file.place();
            let error = Error::new(ErrorKind::Input, "reading files side by side", cause);
            return Err(error.at(path).offset(offset));
        }
        Ok(())
    }

    /// Goes on to the next record. Answers how many bytes it leaves behind.
    fn pass(&mut self, os: &dyn Os) -> Result<usize> {
        let bytes = self.bytes.take().unwrap_or(0);
        self.file.pass(bytes);
        let before = self.before.get_or_insert_default();
        std::mem::swap(before, &mut self.at);
        self.load(os)?;
        Ok(bytes)
    }
}
