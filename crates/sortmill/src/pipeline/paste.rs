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

use super::column::{Column, Type, Value, corrupt, row};
use super::key::{self, KeyColumn, OrderColumn};
use super::mix::group_hash;
use super::rows::{HandRows, MakeHandRows, RowFile};
use super::verbs::Sink;
use super::{Table, from_rows, wrong};
use crate::error::{Error, ErrorKind, Result};

/// Records that are handed over before the job is asked whether it has room.
const RECORDS_AT_ONCE: usize = 256;

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
    let open = |(path, columns): &(PathBuf, Vec<Column>)| Side::open(&*os, path, columns, group);
    let mut sides = sides.iter().map(open).collect::<Result<Vec<Side>>>()?;
    Ok(Box::new(move |sink| {
        for _ in 0..RECORDS_AT_ONCE {
            if !next(&*os, &mut sides, sink)? {
                return Ok(false);
            }
        }
        Ok(true)
    }))
}

/// Hands over the next group, if there is one.
fn next(os: &dyn Os, sides: &mut [Side], sink: Sink<'_>) -> Result<bool> {
    let Some(mut least) = sides.iter().position(Side::has_record) else {
        return Ok(false);
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
    for ((rest, side), _) in rests
        .iter_mut()
        .zip(&*sides)
        .zip(are_least)
        .filter(|one| one.1)
    {
        *rest = side.values();
    }
    let columns = sides.iter().enumerate().flat_map(|(file, side)| {
        let others = side.columns.iter().enumerate();
        others.map(move |(number, column)| (file, number, column))
    });
    // The group of each file but that of the one it is taken from is passed over.
    let mut wanted = columns.clone();
    let mut told = Some(least);
    let count = columns.filter(|&(_, number, _)| number > 0).count() + 1;
    row(
        count,
        |_| {
            if let Some(least) = told.take() {
                let side = &sides[least];
                return (side.columns[0].take(&mut { rests[least] }))
                    .ok_or_else(|| side.file.damaged());
            }
            loop {
                let (file, number, column) = wanted.next().ok_or_else(corrupt)?;
                if !are_least[file] {
                    match number {
                        0 => continue,
                        _ => return Ok(nothing(column)),
                    }
                }
                let value = column.take(&mut rests[file]);
                let value = value.ok_or_else(|| sides[file].file.damaged())?;
                if number > 0 {
                    return Ok(value);
                }
            }
        },
        sink,
    )?;
    for (side, is_least) in sides.iter_mut().zip(are_least) {
        if is_least {
            side.pass(os)?;
        }
    }
    Ok(true)
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
    columns: Vec<Column>,
    group: Vec<KeyColumn>,
    /// Bytes of the record, none behind the last one; its group's hash and key, and those of the one before.
    bytes: Option<usize>,
    at: (u64, Vec<u8>),
    before: Option<(u64, Vec<u8>)>,
}

impl Side {
    fn open(os: &dyn Os, path: &Path, columns: &[Column], group: &[KeyColumn]) -> Result<Self> {
        let mut side = Self {
            file: RowFile::open(os, path, columns)?,
            columns: columns.to_vec(),
            group: group.to_vec(),
            bytes: None,
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

    fn compare(&self, other: &Self) -> Ordering {
        self.at.cmp(&other.at)
    }

    fn load(&mut self, os: &dyn Os) -> Result<()> {
        self.bytes = self.file.load(os)?;
        let Some(bytes) = self.bytes else {
            return Ok(());
        };
        let mut rest = self.file.loaded(bytes);
        let value = self.columns[0].take(&mut rest);
        let value = value.ok_or_else(|| self.file.damaged())?;
        let (hash, key) = &mut self.at;
        key.clear();
        key::write(&self.group, &[value], key);
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

    /// Goes on to the next record.
    fn pass(&mut self, os: &dyn Os) -> Result<()> {
        self.file.pass(self.bytes.take().unwrap_or(0));
        let before = self.before.get_or_insert_default();
        std::mem::swap(before, &mut self.at);
        self.load(os)
    }
}
