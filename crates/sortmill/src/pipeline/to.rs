//! Where a table goes: one file, or several, of equal counts or as a column tells; and whether what is there may be replaced.

use std::path::PathBuf;

use sortmill_io::Os;
use sortmill_io::codec::Codec;
use sortmill_io::os::Kind;

use super::column::{Column, Type, Value, row};
use super::write::{Form, write_plain};
use super::{NodeKind, Pipeline, Table, find};
use crate::error::{Error, ErrorKind, Result};
use crate::job::{Compress, Output};
use crate::parts::{PARTS_MAX, PartCut, Parts};

/// Where a table goes.
#[derive(Clone)]
pub(super) struct To {
    path: PathBuf,
    pub form: Form,
    /// How many files in a folder; `None` is one file, and no folder.
    files: Option<u64>,
    /// The column that tells the file of each record, and is not written.
    told: Option<usize>,
    /// How it is compressed, if that was said.
    compress: Option<Option<Compress>>,
    /// What is there may not be replaced.
    is_new: bool,
}

impl Table {
    /// The pipeline that writes the table to `count` files in `folder`, each record to the one whose number is in `column`, whole
    /// numbers from 0, which is not written: a partition function of one's own is what makes that column. Files may have any number
    /// of records, in the order of the table. The rest is as [`Pipeline::in_files`] has it. A table that was sorted by that column
    /// first, and by others behind it, takes no phase more.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a column that is not there, is not of whole numbers or is the only one, for columns that the form
    /// cannot hold, and for no files, or more than 100,000.
    pub fn write_told(
        &self,
        folder: impl Into<PathBuf>,
        form: Form,
        count: u64,
        column: &str,
    ) -> Result<Pipeline> {
        let at = find(&self.columns, column)?;
        if !matches!(self.columns[at].kind, Type::I64 | Type::U64) {
            let kind = self.columns[at].kind.name();
            let cause = format!("column {column} is {kind}, and files have whole numbers");
            return Err(super::wrong(cause));
        }
        if self.columns.len() == 1 {
            let cause =
                format!("{column} tells the file and is not written, and there is no other column");
            return Err(super::wrong(cause));
        }
        let table = match self.is_sorted_first_by(at) {
            true => self.clone(),
            false => self.sort(&[(column, false)])?,
        };
        let mut to = To::new(folder.into(), form);
        to.told = Some(at);
        if let Some(cause) = form.wrong(&to.writes(&self.columns).columns) {
            return Err(super::wrong(cause));
        }
        Pipeline { table, to }.of_files(count)
    }

    /// Whether the last verb has put records in the order of column `at`, upwards, and of others behind it.
    fn is_sorted_first_by(&self, at: usize) -> bool {
        match self.nodes.last().map(|node| &node.kind) {
            Some(NodeKind::Shuffle(shuffle)) => shuffle.sorts_first_by(at),
            _ => false,
        }
    }
}

impl Pipeline {
    /// The same in `count` files of a folder that has the path said, `part-00000.csv` and so on, and a manifest: in the order
    /// of the table, each with as many records as any other or one more. Names begin all of them, if they begin one. The
    /// folder appears whole or not at all; if it is there, it is empty or what an earlier run made. Such files are compressed, each
    /// by itself, if [`Pipeline::compressed`] says so. If the last verb leaves out records or makes others, one phase more counts
    /// them.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for no files, or more than 100,000, and where a column tells the file ([`Table::write_told`]).
    pub fn in_files(self, count: u64) -> Result<Self> {
        if self.to.told.is_some() {
            let cause = "how many files there are was said with the column that tells them";
            return Err(super::wrong(cause.to_owned()));
        }
        self.of_files(count)
    }

    fn of_files(mut self, count: u64) -> Result<Self> {
        if !(1..=PARTS_MAX).contains(&count) {
            let cause = format!("there can be 1 to {PARTS_MAX} files, not {count}");
            return Err(super::wrong(cause));
        }
        self.to.files = Some(count);
        Ok(self)
    }

    /// The same, compressed so whatever the end of its name says, or not at all. Files of a folder have the end that says how
    /// in their names.
    #[must_use]
    pub fn compressed(mut self, compress: Option<Compress>) -> Self {
        self.to.compress = Some(compress);
        self
    }

    /// The same, refused where something has the output's name already. Without this that is replaced once the output is
    /// complete.
    #[must_use]
    pub fn only_new(mut self) -> Self {
        self.to.is_new = true;
        self
    }

    /// Looks whether [`Pipeline::only_new`] refuses it now, as [`Pipeline::run`] does before it begins.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] with the path.
    pub fn check(&self, os: &dyn Os) -> Result<()> {
        self.to.check(os)
    }

    /// The pipes that it reads: who reads one again finds nothing.
    ///
    /// # Errors
    /// As [`super::expand`].
    pub fn pipes(&self, os: &dyn Os) -> Result<Vec<PathBuf>> {
        self.table.inputs.pipes(os)
    }
}

/// How records are written.
#[derive(Clone)]
pub(super) struct Writes {
    pub form: Form,
    /// Those that are written.
    pub columns: Vec<Column>,
    /// Which column tells the file, what it is called, and how many files there are.
    told: Option<(usize, String, u64)>,
}

impl Writes {
    /// Whether one column tells the file of each record ([`Job::reduce_tells_part`]).
    pub fn tells_part(&self) -> bool {
        self.told.is_some()
    }

    /// Appends a record, behind the number of its file if a column tells that.
    ///
    /// # Errors
    /// Those of [`Form::write`], and [`ErrorKind::Input`] for a file that there is not.
    #[inline]
    pub fn write(&self, record: &[Value<'_>], to: &mut Vec<u8>) -> Result<()> {
        match &self.told {
            None => self.form.write(&self.columns, record, to),
            Some(told) => self.write_told(told, record, to),
        }
    }

    fn write_told(
        &self,
        (told, name, count): &(usize, String, u64),
        record: &[Value<'_>],
        to: &mut Vec<u8>,
    ) -> Result<()> {
        let number = match record[*told] {
            Value::I64(number) => u64::try_from(number).ok(),
            Value::U64(number) => Some(number),
            _ => None,
        };
        let Some(number) = number.filter(|number| number < count) else {
            let mut value = Vec::new();
            write_plain(&record[*told], &mut value);
            let value = match value.is_empty() {
                true => "no number".into(),
                false => String::from_utf8_lossy(&value),
            };
            let last = count - 1;
            let cause = format!("column {name} has {value}, where files are 0 to {last}");
            return Err(Error::new(ErrorKind::Input, "choosing the file", cause));
        };
        to.extend_from_slice(&number.to_le_bytes());
        let value = |at: usize| Ok(record[at + usize::from(at >= *told)]);
        row(self.columns.len(), value, |values| {
            self.form.write(&self.columns, values, to)
        })
    }
}

impl To {
    /// One file, which may be replaced.
    pub fn new(path: PathBuf, form: Form) -> Self {
        Self {
            path,
            form,
            files: None,
            told: None,
            compress: None,
            is_new: false,
        }
    }

    /// Whether the records must be counted before they are written.
    pub fn is_counted(&self) -> bool {
        self.files.is_some() && self.told.is_none()
    }

    /// Whether each record is a line, none tells where it goes, and the engine writes them as they are or compressed to one file.
    pub fn are_lines(&self) -> bool {
        let is_written = self.files.is_none() || self.compress().is_none();
        self.form == Form::Text && self.told.is_none() && is_written
    }

    /// How records of `columns` are written.
    pub fn writes(&self, columns: &[Column]) -> Writes {
        let told = (self.told).map(|at| (at, columns[at].name.clone(), self.files.unwrap_or(1)));
        let is_written = |&(at, _): &(usize, &Column)| self.told != Some(at);
        let written = columns.iter().enumerate().filter(is_written);
        Writes {
            form: self.form,
            columns: written.map(|(_, column)| column.clone()).collect(),
            told,
        }
    }

    /// What is written where, in words.
    pub fn words(&self) -> String {
        let (form, path) = (self.form.name(), self.path.display());
        let packed = self.compress();
        let packed = packed.map_or_else(String::new, |how| format!(", by {}", how.codec.name()));
        match self.files {
            None => format!("{form} to {path}{packed}"),
            Some(count) if self.told.is_some() => {
                format!("{form} to {count} files in {path}{packed}, of which a column tells")
            }
            Some(count) => format!("{form} to {count} files of equal counts in {path}{packed}"),
        }
    }

    /// Refuses to replace what is there, if that is asked.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] with the path.
    pub fn check(&self, os: &dyn Os) -> Result<()> {
        let there = |path| os.meta_at(path).is_ok_and(|meta| meta.kind != Kind::Stream);
        if !self.is_new || !there(&self.path) {
            return Ok(());
        }
        let cause = "something has this name already";
        let error = Error::new(ErrorKind::Usage, "finding the output", cause).at(&self.path);
        Err(error.hint("Remove it, choose another name, or have it replaced (mode=\"overwrite\")."))
    }

    /// What a job is to write to.
    pub fn output(&self) -> Output {
        let Some(count) = self.files else {
            return Output::Path(self.path.clone());
        };
        let mut name = format!("part-{{:05}}.{}", self.form.extension());
        if let Some(Compress { codec, .. }) = self.compress() {
            name += &format!(".{}", codec.extension());
        }
        Output::Parts(Parts {
            folder: self.path.clone(),
            cut: PartCut::Count(count),
            name: name.parse().expect("it has a number in it"),
            overwrite: !self.is_new,
        })
    }

    /// How it is compressed: as was said, or else, of one file, as the end of its name says.
    pub fn compress(&self) -> Option<Compress> {
        self.compress.unwrap_or_else(|| {
            let codec = Codec::of_name(&self.path).filter(|_| self.files.is_none());
            codec.map(|codec| Compress { codec, level: None })
        })
    }
}
