//! Inputs of a table: how their records lie, which columns they have, and what a job is to be asked so that it reads them.
//!
//! | inputs | a record | columns |
//! |---|---|---|
//! | text | a line | `line` |
//! | CSV | values with a delimiter between two, quoted as RFC 4180 has it | those asked for, by the header's names or in order |
//! | JSON lines | an object | those asked for, by the names of its members and of what lies in them |
//! | fixed | so many bytes | `key`, some of them, and `value`, the others |
//! | kv | lengths, key, value | `key`, `value` |
//! | an iterator, an Arrow stream | a row of values (`rows.rs`) | its own |
//!
//! The engine cuts records and refuses what is none of them, with file, line and offset ([`crate::columns`]); `cells.rs`
//! finds the values in a record. Names of a CSV header are looked up once the inputs are open, just before the plan is made,
//! so that a table can be built of files that are not there yet.

use std::ops::Range;
use std::path::{Path, PathBuf};

use sortmill_io::Os;
use sortmill_io::os::Kind;
use sortmill_io::sync::Arc;
use sortmill_io::sync::atomic::{AtomicBool, Ordering};

use super::cells::{Cells, Shape, without_end};
use super::column::{Column, Type, Value, corrupt, row};
use super::rows::{self, MakeHandRows, MakeRows};
use super::verbs::Sink;
use super::{Table, paths, wrong};
use crate::bad::newlines;
use crate::batch::Origin;
use crate::columns::{Column as By, Columns, Compare, Form, Header, Name, Nulls};
use crate::error::{Error, ErrorKind, Result};
use crate::job::{Input, Job};
use crate::order::quoted::Ends;
use crate::order::{Format, KV_HEADER_BYTES, Order, Separated, Wrong};
use crate::queue::Stop;
use crate::run;
use crate::stage::read::{NOTHING, Source};

/// How the values of CSV are told apart, where it is read and where it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Csv {
    /// Whether the first record of each file names the columns. It must be the same in all that are read.
    pub header: bool,
    /// What stands between two values.
    pub delimiter: u8,
    /// What a value stands between that has a delimiter, a newline or one of these, then doubled, in it; `None`: all bytes
    /// are what they are.
    pub quote: Option<u8>,
}

impl Default for Csv {
    /// With a header, commas and double quotes.
    fn default() -> Self {
        Self::commas(true)
    }
}

impl Csv {
    /// With commas between values and double quotes around them.
    #[must_use]
    pub const fn commas(header: bool) -> Self {
        Self {
            header,
            delimiter: b',',
            quote: Some(b'"'),
        }
    }

    /// Values with `delimiter` between them and nothing else: no header, and quotes are what any other byte is.
    #[must_use]
    pub fn plain(delimiter: u8) -> Self {
        Self {
            header: false,
            delimiter,
            quote: None,
        }
    }
}

/// The lines of text files, as the column `line`, without their ends (`\n` or `\r\n`). `patterns` are paths or have `*`, `?`
/// and `**`; compressed files are read as what they were. The first `skip_header` lines of each file are passed over.
pub fn read_text(
    patterns: impl IntoIterator<Item = impl Into<PathBuf>>,
    skip_header: u64,
) -> Table {
    let columns = vec![Column::new("line", Type::String)];
    let inputs = Inputs::new(patterns, How::Text { skip_header }, columns);
    inputs.table()
}

/// The records of CSV files, of `patterns` as [`read_text`] has them. With a header `columns` are some of those that it
/// names, in any order; without one all of them. A value is read as its column's type says; an empty one is an empty text,
/// and no number: in a column that may lack values none ([`Column::or_null`], [`Table::with_nulls`]).
///
/// # Errors
/// [`ErrorKind::Usage`] without columns, with two of one name, and for bytes that cannot tell values apart.
pub fn read_csv(
    patterns: impl IntoIterator<Item = impl Into<PathBuf>>,
    csv: Csv,
    columns: Vec<Column>,
) -> Result<Table> {
    check_columns(&columns)?;
    let inputs = Inputs::new(patterns, How::Csv(csv), columns);
    inputs.columns_of(csv).check_bytes()?;
    Ok(inputs.table())
}

/// The columns that the header of the first CSV file names that is not empty.
///
/// # Errors
/// [`ErrorKind::Input`] for files that cannot be read, and if all are empty; [`ErrorKind::Usage`] for a pipe, whose
/// beginning can be read only once.
pub fn csv_names(os: &dyn Os, patterns: &[PathBuf], csv: Csv) -> Result<Vec<String>> {
    const DOING: &str = "reading the header";
    let nothing = Inputs::new(patterns.to_vec(), How::Csv(csv), Vec::new());
    let columns = nothing.columns_of(csv);
    columns.check_bytes()?;
    let separated = Separated {
        delimiter: csv.delimiter,
        quote: csv.quote,
    };
    for path in paths::expand(os, patterns)? {
        let mut sources = run::open_inputs(os, &[Input::Path(path.clone())], true)?;
        if sources[0].meta.kind != Kind::Regular {
            let cause =
                "the header of a pipe can be read only once, so say which columns there are";
            return Err(Error::new(ErrorKind::Usage, DOING, cause).at(&path));
        }
        let found = run::look_up_names(Some(&columns), true, &mut sources, os, &Stop::new())?;
        let Some(record) = found.as_ref().and_then(Columns::header) else {
            continue;
        };
        if record.is_empty() && sources[0].meta.bytes == 0 {
            continue;
        }
        let texts = separated.texts(record);
        let texts =
            texts.map_err(|wrong| Error::new(ErrorKind::Input, DOING, wrong.cause).at(&path))?;
        let name = |text: Vec<u8>| {
            String::from_utf8(text).map_err(|_| {
                let cause = "a column's name is not UTF-8";
                Error::new(ErrorKind::Input, DOING, cause).at(&path)
            })
        };
        return texts.into_iter().map(name).collect();
    }
    let cause = "all files are empty, so nothing names their columns";
    let first = patterns.first().cloned().unwrap_or_default();
    Err(Error::new(ErrorKind::Input, DOING, cause).at(&first))
}

/// Lines that are JSON objects, of `patterns` as [`read_text`] has them. `columns` are members of them, or values within: where no
/// member is called `user.tags.0`, that is the first element of the array `tags` in the object `user`, and a backslash has a dot be
/// part of a name ([`crate::columns::steps`]). Text must be a string, and of an object or array is its JSON as it stands; a number must be
/// a number without quotes, and whole for a whole type. One that is missing or null is no value where that may
/// be ([`Column::or_null`]), and else bad input; of members of one name the last one counts; all others are passed over.
///
/// # Errors
/// [`ErrorKind::Usage`] without columns, and with two of one name.
pub fn read_jsonl(
    patterns: impl IntoIterator<Item = impl Into<PathBuf>>,
    columns: Vec<Column>,
) -> Result<Table> {
    check_columns(&columns)?;
    Ok(Inputs::new(patterns, How::Json, columns).table())
}

/// Records of `record_bytes` bytes each, of `patterns` as [`read_text`] has them: the bytes `key` of each, offset and count, as
/// the column `key`, those in front of it and behind it as `value`.
///
/// # Errors
/// [`ErrorKind::Usage`] for a key that is empty or not within the record.
pub fn read_fixed(
    patterns: impl IntoIterator<Item = impl Into<PathBuf>>,
    record_bytes: u32,
    key: (u32, u32),
) -> Result<Table> {
    let key = key_range(record_bytes, key)?;
    let how = How::Fixed { record_bytes, key };
    Ok(Inputs::new(patterns, how, pair_columns()).table())
}

/// Pairs of a key and a value of any lengths ([`Format::Kv`]), of `patterns` as [`read_text`] has them, as the columns `key`
/// and `value`.
pub fn read_kv(patterns: impl IntoIterator<Item = impl Into<PathBuf>>) -> Table {
    Inputs::new(patterns, How::Kv, pair_columns()).table()
}

/// The records that `make` makes, of `columns`: it is asked each time that the table is read, and what it answers while the job
/// has room for it. Records are read as they come; one that is not of these types ends the job.
///
/// # Errors
/// [`ErrorKind::Usage`] without columns, and with two of one name.
pub fn from_iter(columns: Vec<Column>, make: MakeRows) -> Result<Table> {
    from_rows("an iterator", columns, rows::handing(make))
}

/// The same of what is called `name` in messages, and hands over as many records at once as it likes.
///
/// # Errors
/// As [`from_iter`].
pub fn from_rows(name: &'static str, columns: Vec<Column>, make: MakeHandRows) -> Result<Table> {
    check_columns(&columns)?;
    let how = How::Rows { name, make };
    Ok(Inputs::new([""; 0], how, columns).table())
}

/// Which bytes of a record of `record_bytes` are its key.
///
/// # Errors
/// [`ErrorKind::Usage`] for a key that is empty or not within the record.
pub(super) fn key_range(record_bytes: u32, (offset, bytes): (u32, u32)) -> Result<Range<usize>> {
    let end = u64::from(offset) + u64::from(bytes);
    if bytes == 0 || end > u64::from(record_bytes) {
        return Err(wrong(format!(
            "a key of {bytes} bytes from byte {offset} on is no part of a record of {record_bytes} bytes"
        )));
    }
    Ok(offset as usize..end as usize)
}

fn pair_columns() -> Vec<Column> {
    ["key", "value"]
        .map(|name| Column::new(name, Type::Binary))
        .to_vec()
}

fn check_columns(columns: &[Column]) -> Result<()> {
    if columns.is_empty() {
        return Err(wrong("at least one column is read".to_owned()));
    }
    super::check_names(columns)
}

impl Table {
    /// The same records with the name of the file that each lies in as the column `file`, and the number of the line at which
    /// it begins there, from 1, as the column `line_number`, under these names and behind all others; `None` leaves one out.
    /// Lines are counted as they are read, each file's from its beginning, those that are passed over too; of compressed
    /// files those of what they were.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] behind any verb, for a name that is there already, and for lines of records that have none.
    pub fn with_place(&self, file: Option<&str>, line_number: Option<&str>) -> Result<Self> {
        if !self.nodes.is_empty() {
            let cause = "where a record lies is known only where it is read".to_owned();
            return Err(wrong(cause));
        }
        let mut inputs = Inputs::clone(&self.inputs);
        if line_number.is_some() && !inputs.how.has_lines() {
            return Err(wrong(format!("{} have no lines", inputs.how.name())));
        }
        inputs.file = file.map(|name| Column::new(name, Type::String));
        inputs.line_number = line_number.map(|name| Column::new(name, Type::U64));
        let table = inputs.table();
        super::check_names(&table.columns)?;
        Ok(table)
    }
}

impl Table {
    /// The same with values of CSV that say that there is none, in columns that may lack some: `texts`, and for all but texts
    /// an empty one, too. Of texts those between quotes are what they are.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] behind any verb, of what is no CSV, and where no column may lack values.
    pub fn with_nulls(&self, texts: &[&str]) -> Result<Self> {
        let mut inputs = Inputs::clone(&self.inputs);
        if !self.nodes.is_empty() || !matches!(inputs.how, How::Csv(_)) {
            let cause = "which texts say that there is no value is told where CSV is read";
            return Err(wrong(cause.to_owned()));
        }
        if !inputs.columns.iter().any(|column| column.nullable) {
            let cause = "no column may lack values, so no text can say that there is none";
            let hint = "Say of which it may: types={'km': int | None}.";
            return Err(wrong(cause.to_owned()).hint(hint));
        }
        inputs.nulls = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
        Ok(inputs.table())
    }

    /// The same without bad records, up to `most` of them in a run: those that are longer than they may be or cut off, and those
    /// of which the columns cannot be made, because there are too many or too few, a value is none of its type, or a line is
    /// no JSON object. They are counted, and the first of them told, in the report. One more ends the run.
    ///
    /// A record of CSV in which a quote is out of place counts once for each line that it takes in, since all of them look like
    /// one then; and one of CSV with quotes that is longer than it may be always ends the run.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] behind any verb, and of rows, of which none can be bad.
    pub fn with_skip_bad(&self, most: u64) -> Result<Self> {
        if !self.nodes.is_empty() || matches!(self.inputs.how, How::Rows { .. }) {
            let cause = "how many bad records are left out is told where files are read";
            return Err(wrong(cause.to_owned()));
        }
        let inputs = Inputs::clone(&self.inputs);
        let skip_bad = most;
        Ok(Inputs { skip_bad, ..inputs }.table())
    }
}

/// What a table is read from.
#[derive(Clone)]
pub(super) struct Inputs {
    /// Paths and patterns.
    patterns: Vec<PathBuf>,
    how: How,
    /// What is read out of records.
    columns: Vec<Column>,
    /// Values of CSV that say that there is none.
    nulls: Vec<Vec<u8>>,
    file: Option<Column>,
    line_number: Option<Column>,
    /// So many bad records are left out.
    skip_bad: u64,
    /// A pipe among them has been read, by this table or by another one of the same inputs.
    is_drained: Arc<AtomicBool>,
}

#[derive(Clone)]
enum How {
    Text {
        skip_header: u64,
    },
    Csv(Csv),
    Json,
    Fixed {
        record_bytes: u32,
        key: Range<usize>,
    },
    Kv,
    Rows {
        name: &'static str,
        make: MakeHandRows,
    },
}

impl How {
    fn name(&self) -> &'static str {
        match self {
            Self::Text { .. } => "lines",
            Self::Csv(_) => "CSV",
            Self::Json => "JSON lines",
            Self::Fixed { .. } => "records of a fixed size",
            Self::Kv => "pairs",
            Self::Rows { .. } => "rows",
        }
    }

    fn has_lines(&self) -> bool {
        matches!(self, Self::Text { .. } | Self::Csv(_) | Self::Json)
    }
}

impl Inputs {
    fn new(
        patterns: impl IntoIterator<Item = impl Into<PathBuf>>,
        how: How,
        columns: Vec<Column>,
    ) -> Self {
        Self {
            patterns: patterns.into_iter().map(Into::into).collect(),
            how,
            columns,
            nulls: Vec::new(),
            file: None,
            line_number: None,
            skip_bad: 0,
            is_drained: Arc::default(),
        }
    }

    fn table(self) -> Table {
        let places = [&self.file, &self.line_number].into_iter().flatten();
        let columns = self.columns.iter().chain(places).cloned().collect();
        Table {
            inputs: Arc::new(self),
            columns,
            nodes: Vec::new(),
        }
    }

    /// Whether a record is a line, each that there is.
    pub fn are_lines(&self) -> bool {
        matches!(self.how, How::Text { skip_header: 0 })
            && self.file.is_none()
            && self.line_number.is_none()
    }

    /// What is read, in words.
    pub fn words(&self) -> String {
        match self.how {
            How::Rows { name, .. } => format!("records of {name}"),
            _ => {
                let patterns = self.patterns.iter();
                let shown: Vec<String> = patterns.map(|path| path.display().to_string()).collect();
                format!("{} of {}", self.how.name(), shown.join(", "))
            }
        }
    }

    /// Says in `job` what is read and how.
    ///
    /// # Errors
    /// As [`paths::expand`].
    pub fn ask(&self, job: &mut Job, os: &dyn Os) -> Result<()> {
        let files = paths::expand(os, &self.patterns)?;
        job.inputs = files.into_iter().map(Input::Path).collect();
        job.decompress = true;
        job.map_knows_lines = self.line_number.is_some();
        job.skip_bad = self.skip_bad;
        match &self.how {
            How::Text { skip_header } => {
                job.format = Format::Lines;
                job.header_lines = *skip_header;
            }
            How::Csv(csv) => job.columns = Some(self.columns_of(*csv)),
            How::Json => {
                job.columns = Some(Columns {
                    form: Form::Json,
                    by: Vec::new(),
                    nulls: Nulls::First,
                });
            }
            How::Fixed { record_bytes, .. } => job.format = Format::Fixed(*record_bytes),
            How::Kv => job.format = Format::Kv,
            How::Rows { name, make } => {
                job.format = Format::Kv;
                job.inputs = vec![rows::input(name, &self.columns, make)];
            }
        }
        if let Some(columns) = &job.columns {
            job.format = columns.format();
        }
        Ok(())
    }

    /// How records of CSV are made of columns; those that are wanted stand where an order has those that decide, so that
    /// they are looked up.
    fn columns_of(&self, csv: Csv) -> Columns {
        let by = |(number, column): (usize, &Column)| By {
            name: match csv.header {
                true => Name::Named(column.name.clone()),
                false => Name::Number(number as u64 + 1),
            },
            compare: Compare::Text,
            reversed: false,
        };
        Columns {
            form: Form::Separated {
                delimiter: csv.delimiter,
                quote: csv.quote,
                header: match csv.header {
                    true => Header::First,
                    false => Header::None,
                },
            },
            by: self.columns.iter().enumerate().map(by).collect(),
            nulls: Nulls::First,
        }
    }

    /// Says that `sources`, which these are, will be read.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a pipe among them if one has been read before: it would be empty, or never end.
    pub fn drain(&self, sources: &[Source]) -> Result<()> {
        let Some(pipe) = sources.iter().find(|source| source.is_pipe()) else {
            return Ok(());
        };
        match self.is_drained.swap(true, Ordering::SeqCst) {
            true => Err(drained(&pipe.file.path)),
            false => Ok(()),
        }
    }

    /// They were not read after all.
    pub fn fill_again(&self) {
        self.is_drained.store(false, Ordering::SeqCst);
    }

    /// Has columns be told by their numbers in `job`, where nobody may look for their names yet.
    pub fn number(job: &mut Job) {
        let Some(columns) = &mut job.columns else {
            return;
        };
        for (by, number) in columns.by.iter_mut().zip(1..) {
            by.name = Name::Number(number);
        }
        if let Form::Separated { header, .. } = &mut columns.form {
            *header = Header::None;
        }
    }

    /// The pipes among them.
    pub fn pipes(&self, os: &dyn Os) -> Result<Vec<PathBuf>> {
        if matches!(self.how, How::Rows { .. }) {
            return Ok(Vec::new());
        }
        let files = paths::expand(os, &self.patterns)?;
        let is_pipe = |path: &PathBuf| {
            let meta = os.meta_at(path);
            meta.is_ok_and(|meta| meta.kind == Kind::Stream && path != Path::new(NOTHING))
        };
        Ok(files.into_iter().filter(is_pipe).collect())
    }

    /// How records become values, of a job whose names have been looked up.
    ///
    /// # Errors
    /// As [`Job::input_order`].
    pub fn bind(&self, job: &mut Job) -> Result<Bound> {
        let shape = match &self.how {
            How::Text { .. } => Shape::Line,
            How::Csv(csv) => {
                let found = job.columns.as_ref().map(|columns| &columns.form);
                let header_count = match found {
                    Some(Form::Separated {
                        header: Header::Found { count, .. },
                        ..
                    }) => Some(*count),
                    _ => None,
                };
                // They decide nothing, so nobody need look at them before the values are read.
                let by = job
                    .columns
                    .as_mut()
                    .map(|columns| std::mem::take(&mut columns.by));
                let number = |by: By| match by.name {
                    Name::Number(number) => number as usize - 1,
                    Name::Named(_) | Name::Path(_) => unreachable!("it has been looked up"),
                };
                let separated = Separated {
                    delimiter: csv.delimiter,
                    quote: csv.quote,
                };
                let numbers = by.into_iter().flatten().map(number).collect();
                Shape::separated(separated, numbers, header_count, self.nulls.clone())
            }
            How::Json => Shape::json(&self.columns),
            How::Fixed { key, .. } => Shape::Fixed { key: key.clone() },
            How::Kv => Shape::Pair,
            How::Rows { .. } => Shape::Row,
        };
        let paths = job.inputs.iter().map(Input::path);
        let files = paths.map(|path| path.as_os_str().as_encoded_bytes().to_vec());
        let files = self.file.is_some().then(|| files.collect());
        // The engine looks at each record where the first bad one ends the job.
        let checked_by = match &job.columns {
            Some(_) if self.skip_bad > 0 => Some(job.input_order()?),
            _ => None,
        };
        Ok(Bound {
            shape,
            columns: self.columns.clone(),
            files,
            has_line_number: self.line_number.is_some(),
            checked_by,
        })
    }
}

fn drained(path: &Path) -> Error {
    let cause = "what comes through a pipe can be read once, and it has been";
    let error = Error::new(ErrorKind::Usage, "opening the input", cause).at(path);
    error.hint("Write it to a file first (write_text, write_csv, write_jsonl), and read that.")
}

/// How the records of a job become values.
pub(super) struct Bound {
    shape: Shape,
    columns: Vec<Column>,
    /// The names of the inputs, where they are a column.
    files: Option<Vec<Vec<u8>>>,
    has_line_number: bool,
    /// What looks whether a record is one, where nobody else has.
    checked_by: Option<Order>,
}

impl Bound {
    /// How many columns there are: what is read, and the place.
    fn count(&self) -> usize {
        let places = usize::from(self.files.is_some()) + usize::from(self.has_line_number);
        self.columns.len() + places
    }
}

/// What stands at place `number` behind the columns of a record: the name of its file, if there are `files`, then the number of its line.
fn beside(number: usize, files: Option<&[Vec<u8>]>, origin: Origin) -> Value<'_> {
    match files {
        Some(files) if number == 0 => {
            let name = files.get(origin.input);
            Value::Bytes(name.map_or(&[], |name| name))
        }
        _ => Value::U64(origin.line),
    }
}

/// Makes values of records, with the scratch space of one worker.
pub(super) struct Reader {
    bound: Arc<Bound>,
    cells: Cells,
    /// The values of the last record were handed over, so there is nothing wrong with it.
    has_handed: bool,
}

impl Reader {
    pub fn new(bound: &Arc<Bound>) -> Self {
        Self {
            bound: Arc::clone(bound),
            cells: Cells::default(),
            has_handed: false,
        }
    }

    /// Whether a record is a line and nothing else.
    pub fn reads_lines(&self) -> bool {
        let Bound { shape, files, .. } = &*self.bound;
        matches!(shape, Shape::Line) && files.is_none() && !self.bound.has_line_number
    }

    /// Whether a record begins with a line as it is.
    pub fn begins_with_line(&self) -> bool {
        matches!(self.bound.shape, Shape::Line)
    }

    /// Hands the values of `record`, which lies at `origin`, to `sink`; a line that holds none it passes over.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] for what is no value of its column's type, or no record, then with where in it as the offset; that of
    /// `sink`. [`Reader::bad_count`] tells them apart.
    pub fn read(&mut self, record: &[u8], origin: Origin, sink: Sink<'_>) -> Result<()> {
        let Bound {
            shape,
            columns,
            files,
            checked_by,
            ..
        } = &*self.bound;
        self.has_handed = self.reads_lines();
        if self.has_handed {
            return sink(&[Value::Bytes(without_end(record))]);
        }
        if shape.is_nothing(record) {
            return Ok(());
        }
        if let Some(order) = checked_by {
            order.check(record).map_err(none)?;
        }
        let mut rest = record.get(KV_HEADER_BYTES..).unwrap_or_default();
        match shape {
            Shape::Row => {}
            _ => self.cells.find(shape, columns, record)?,
        }
        let cells = &self.cells;
        let value = |number: usize| match columns.get(number) {
            Some(column) if matches!(shape, Shape::Row) => {
                column.take(&mut rest).ok_or_else(corrupt)
            }
            Some(column) => cells.value(record, number, column),
            None => Ok(beside(number - columns.len(), files.as_deref(), origin)),
        };
        row(self.bound.count(), value, |values| {
            self.has_handed = true;
            sink(values)
        })
    }

    /// What tells values apart, where records may be taken several at once ([`Reader::read_found`]): of CSV in which the engine has
    /// looked for bad ones. And of how many values of each it is to be told where they end: one more than are wanted, which says that
    /// there are too many.
    pub fn separated(&self) -> Option<(Separated, usize)> {
        match &self.bound.shape {
            Shape::Separated {
                separated, wanted, ..
            } if self.bound.checked_by.is_none() => Some((*separated, wanted.len() + 1)),
            _ => None,
        }
    }

    /// Does what [`Reader::read`] does with one of `records`, whose values lie as `found` says.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub fn read_found(
        &mut self,
        records: &[u8],
        found: &Ends<'_>,
        origin: Origin,
        sink: Sink<'_>,
    ) -> Result<()> {
        self.has_handed = false;
        let Bound { columns, files, .. } = &*self.bound;
        let cells = &mut self.cells;
        if cells.take_found(&self.bound.shape, columns, records, found) {
            let value = |number: usize| match columns.get(number) {
                Some(column) => cells.value(records, number, column),
                None => Ok(beside(number - columns.len(), files.as_deref(), origin)),
            };
            let handed = row(self.bound.count(), value, |values| {
                self.has_handed = true;
                sink(values)
            });
            if handed.is_ok() || self.has_handed {
                return handed;
            }
        }
        // There is something about it that one at a time is told best.
        self.read(&records[found.record.clone()], origin, sink)
    }

    /// As how many bad records `record` counts, the last one, if that is what was wrong, and not what its values were handed
    /// to. Where a quote is out of place many lines look like one record.
    pub fn bad_count(&self, record: &[u8], error: &Error) -> Option<u64> {
        if self.has_handed || error.kind != ErrorKind::Input {
            return None;
        }
        let line = without_end(record);
        Some(match &self.bound.shape {
            Shape::Separated { separated, .. } if separated.check(line).is_err() => {
                1 + newlines(line)
            }
            _ => 1,
        })
    }
}

/// The error of what is no record.
fn none(wrong: Wrong) -> Error {
    let error = Error::new(ErrorKind::Input, "reading the input", wrong.cause);
    let error = error.offset(wrong.at as u64);
    match wrong.hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}
