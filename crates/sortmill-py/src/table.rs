//! Tables and jobs, as Python's own classes hold them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sortmill::error::Result;
use sortmill::io::codec::CODECS;
use sortmill::io::sync::Arc;
use sortmill::io::sync::atomic::{AtomicU64, Ordering};
use sortmill::job::Compress;
use sortmill::pipeline::{
    self, Aggregate, BatchFn, Column, Command, Form, Groups, MakeBatchFn, Order, Owned, Parts,
    Pipeline, Type, Value,
};

use crate::batched::{Definition, Here, Kind};
use crate::errors::raised;
use crate::expr::Expr;
use crate::function::record_dict;
use crate::grouped::groups;
use crate::host;
use crate::inputs::csv;
use crate::pooled::Pooled;
use crate::rows::RowReader;
use crate::running::Running;
use crate::runs::{Asked, Calls, Runs, Told};
use crate::streams::Rows;
use crate::work::work;

/// Makes a table or what writes it, for a run: what Python's functions do there is that run's alone, however many there are at once.
type Make<T> = Arc<dyn Fn(&Arc<Running>) -> Result<T> + Send + Sync>;

/// A table that is still to be made.
#[pyclass(frozen, module = "sortmill._sortmill")]
pub struct Table {
    make: Make<pipeline::Table>,
    /// As it is made for no run, which tells its columns.
    table: pipeline::Table,
    /// What is observed on the way to it: the name, and a number that tells it from others of that name.
    observed: Vec<(String, u64)>,
    /// The functions of Python's on the way to it.
    functions: Vec<Arc<Definition>>,
    calls: Calls,
}

type Names = Vec<String>;

/// How an output is written: how many files, which column tells that of a record, whether something may have its name, how it is compressed, by what level.
type How = (
    Option<u64>,
    Option<String>,
    bool,
    Option<String>,
    Option<u32>,
);
/// By which columns groups are made, and whether they come in the order of these.
type By = (Names, bool);

fn strs(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// A column's name, whether larger values come first, and whether records without one come last.
type Ordered = (String, bool, bool);

fn orders(by: &[Ordered]) -> Vec<Order<'_>> {
    let all = by.iter().map(|(column, descending, nulls_last)| Order {
        column,
        descending: *descending,
        nulls_last: *nulls_last,
    });
    all.collect()
}

/// The type of this name.
pub fn kind(name: &str) -> PyResult<Type> {
    let kinds = [
        Type::Binary,
        Type::String,
        Type::I64,
        Type::U64,
        Type::F64,
        Type::Bool,
        Type::Timestamp,
    ];
    let found = kinds.into_iter().find(|kind| kind.name() == name);
    found.ok_or_else(|| PyValueError::new_err(format!("there is no type {name:?}")))
}

pub fn columns(columns: Vec<(String, String)>) -> PyResult<Vec<Column>> {
    let column = |(name, of): (String, String)| {
        let (of, nullable) = or_null(&of);
        let column = Column::new(name, kind(of)?);
        Ok(if nullable { column.or_null() } else { column })
    };
    columns.into_iter().map(column).collect()
}

/// The name of a type without what says that values may be missing, and whether they may.
pub fn or_null(name: &str) -> (&str, bool) {
    match name.strip_suffix('?') {
        Some(name) => (name, true),
        None => (name, false),
    }
}

impl Table {
    /// One that is read.
    pub fn new(table: pipeline::Table) -> Self {
        let read = table.clone();
        Self {
            make: Arc::new(move |_| Ok(read.clone())),
            table,
            observed: Vec::new(),
            functions: Vec::new(),
            calls: Calls::default(),
        }
    }

    /// One that is read from what may raise exceptions.
    pub fn of_python(
        make: impl Fn(&Arc<Running>) -> Result<pipeline::Table> + Send + Sync + 'static,
    ) -> Result<Self> {
        let table = make(&Arc::default())?;
        Ok(Self {
            make: Arc::new(make),
            ..Self::new(table)
        })
    }

    fn next(
        &self,
        py: Python<'_>,
        verb: impl Fn(&pipeline::Table) -> Result<pipeline::Table> + Send + Sync + 'static,
    ) -> PyResult<Self> {
        self.next_in(py, move |table, _| verb(table))
    }

    /// The same with a verb that needs to know the run.
    fn next_in(
        &self,
        py: Python<'_>,
        verb: impl Fn(&pipeline::Table, &Arc<Running>) -> Result<pipeline::Table>
        + Send
        + Sync
        + 'static,
    ) -> PyResult<Self> {
        let table = verb(&self.table, &Arc::default()).map_err(|error| raised(py, &error))?;
        let before = Arc::clone(&self.make);
        Ok(Self {
            make: Arc::new(move |running| verb(&before(running)?, running)),
            table,
            observed: self.observed.clone(),
            functions: self.functions.clone(),
            calls: self.calls,
        })
    }

    /// How it is run.
    fn runs(&self) -> Runs {
        Runs {
            functions: self.functions.clone(),
            calls: self.calls,
        }
    }

    /// The table behind a function of Python's, of records or batches.
    fn called(self) -> Self {
        let Calls { is_behind, .. } = self.calls;
        let calls = Calls {
            behind: self.calls.behind || is_behind,
            ..self.calls
        };
        Self { calls, ..self }
    }

    /// The table behind a function of Python's, of groups.
    fn grouped(self) -> Self {
        let calls = Calls {
            of_groups: true,
            is_behind: true,
            ..self.calls
        };
        Self { calls, ..self }
    }

    /// The table behind a verb that brings records together.
    fn brought(self) -> Self {
        let calls = Calls {
            is_behind: true,
            ..self.calls
        };
        Self { calls, ..self }
    }

    fn parts(
        &self,
        py: Python<'_>,
        parts: Parts,
        kept: &Names,
        lower: bool,
        name: Option<&str>,
    ) -> PyResult<Self> {
        let parts = parts.keeping(&strs(kept));
        let parts = if lower { parts.lower() } else { parts };
        let parts = name.map_or_else(|| parts.clone(), |name| parts.clone().named(name));
        self.next(py, move |table| table.flat_map(&parts))
    }
}

/// What a program reads and writes: lines of a column, as lines of one that is made; or all columns in Arrow's streams, and those
/// that are made.
#[derive(FromPyObject)]
enum Spoken {
    #[pyo3(transparent)]
    Lines((String, String)),
    #[pyo3(transparent)]
    Arrow(Vec<(String, String)>),
}

fn groups_of(table: &pipeline::Table, (by, is_sorted): &By) -> Result<Groups> {
    let groups = table.group_by(&strs(by))?;
    Ok(if *is_sorted { groups.sorted() } else { groups })
}

#[pymethods]
impl Table {
    /// Names and types of its columns.
    fn columns(&self) -> Vec<(String, String)> {
        let columns = self.table.columns().iter();
        columns
            .map(|column| (column.name.clone(), column.type_name()))
            .collect()
    }

    /// The same with the file and the line of each record under these names.
    fn with_place(
        &self,
        py: Python<'_>,
        file: Option<String>,
        line_number: Option<String>,
    ) -> PyResult<Self> {
        self.next(py, move |table| {
            table.with_place(file.as_deref(), line_number.as_deref())
        })
    }

    /// The same without up to so many bad records.
    fn with_skip_bad(&self, py: Python<'_>, most: u64) -> PyResult<Self> {
        self.next(py, move |table| table.with_skip_bad(most))
    }

    fn words(
        &self,
        py: Python<'_>,
        column: &str,
        kept: Names,
        lower: bool,
        name: Option<&str>,
    ) -> PyResult<Self> {
        self.parts(py, pipeline::words(column), &kept, lower, name)
    }

    fn ngrams(
        &self,
        py: Python<'_>,
        column: &str,
        kept: Names,
        count: usize,
        lower: bool,
        name: Option<&str>,
    ) -> PyResult<Self> {
        self.parts(py, pipeline::ngrams(column, count), &kept, lower, name)
    }

    fn split(
        &self,
        py: Python<'_>,
        column: &str,
        kept: Names,
        by: &str,
        name: Option<&str>,
    ) -> PyResult<Self> {
        self.parts(py, pipeline::split(column, by), &kept, false, name)
    }

    fn fields(
        &self,
        py: Python<'_>,
        column: &str,
        kept: Names,
        by: &str,
        made: Vec<(String, String)>,
    ) -> PyResult<Self> {
        let parts = pipeline::fields(column, by, columns(made)?);
        self.parts(py, parts, &kept, false, None)
    }

    /// What a function makes of batches of records, or of one after the other: a `map`, `flat_map`, `filter` or
    /// `map_batches`; of so many at once, whether it is pure, and for how many seconds it may work on them.
    fn call(
        &self,
        py: Python<'_>,
        kind: &str,
        function: Py<PyAny>,
        made: Option<Vec<(String, String)>>,
        how: (usize, bool, Option<f64>),
    ) -> PyResult<Self> {
        let (batch_size, pure, timeout_s) = how;
        let kind = Kind::of(kind)
            .ok_or_else(|| PyValueError::new_err(format!("there is no verb {kind:?}")))?;
        let of = self.table.columns().to_vec();
        let made = made.map_or_else(|| Ok(of.clone()), columns)?;
        let mut definition = Definition::new(py, kind, function, of.clone(), made.clone())?;
        definition.is_pure = pure;
        definition.timeout = timeout_s.map(Duration::from_secs_f64);
        let definition = Arc::new(definition);
        let (called, number) = (Arc::clone(&definition), self.functions.len());
        let name = format!("{} {}, of Python", kind.name(), definition.name);
        let names: Names = of.into_iter().map(|column| column.name).collect();
        let verb = move |table: &pipeline::Table, running: &Arc<Running>| {
            let (called, running) = (Arc::clone(&called), Arc::clone(running));
            let make: MakeBatchFn = Arc::new(move || -> Box<dyn BatchFn> {
                match running.pool() {
                    None => Box::new(Here::new(&called, &running, number)),
                    Some(pool) => Box::new(Pooled::new(&called, number, &running, pool)),
                }
            });
            table.batches(&name, &strs(&names), made.clone(), batch_size, make)
        };
        let mut table = self.next_in(py, verb)?.called();
        table.functions.push(definition);
        Ok(table)
    }

    /// What a program makes of the lines of a column.
    fn command(
        &self,
        py: Python<'_>,
        words: Vec<std::ffi::OsString>,
        made: Spoken,
        batch_size: usize,
        timeout_s: Option<f64>,
    ) -> PyResult<Self> {
        let columns = match &made {
            Spoken::Arrow(made) => columns(made.clone())?,
            Spoken::Lines(..) => Vec::new(),
        };
        self.next_in(py, move |table, running| {
            let running = Arc::clone(running);
            let command = Command {
                words: words.clone(),
                timeout: timeout_s.map(Duration::from_secs_f64),
                is_stopped: Arc::new(move || running.is_stopped()),
            };
            match &made {
                Spoken::Lines((column, name)) => {
                    table.map_command(column, command, name, batch_size)
                }
                Spoken::Arrow(_) => table.map_command_arrow(command, columns.clone(), batch_size),
            }
        })
    }

    fn select(&self, py: Python<'_>, columns: Names) -> PyResult<Self> {
        self.next(py, move |table| table.select(&strs(&columns)))
    }

    fn sort(&self, py: Python<'_>, by: Vec<Ordered>) -> PyResult<Self> {
        let made = self.next(py, move |table| table.sort_by(&orders(&by)));
        made.map(Self::brought)
    }

    fn top(&self, py: Python<'_>, count: u64, by: Vec<(String, bool)>) -> PyResult<Self> {
        let made = self.next(py, move |table| {
            let by: Vec<(&str, bool)> = by.iter().map(|(name, down)| (&**name, *down)).collect();
            table.top(count, &by)
        });
        made.map(Self::brought)
    }

    /// Each different record once, or of those that are equal in some columns the first.
    fn distinct(&self, py: Python<'_>, columns: Option<Names>, is_sorted: bool) -> PyResult<Self> {
        let by: Option<By> = columns.map(|columns| (columns, is_sorted));
        let made = self.next(py, move |table| match (&by, is_sorted) {
            (Some(by), _) => groups_of(table, by)?.first_records(),
            (None, true) => table.distinct_sorted(),
            (None, false) => table.distinct(),
        });
        made.map(Self::brought)
    }

    /// Groups and what is computed of each.
    fn aggregate(&self, py: Python<'_>, by: By, aggregates: Vec<AggregateAsked>) -> PyResult<Self> {
        let aggregates = asked_aggregates(aggregates)?;
        let made = self.next(py, move |table| groups_of(table, &by)?.agg(&aggregates));
        made.map(Self::brought)
    }

    /// One record of what is computed of all.
    fn aggregate_all(&self, py: Python<'_>, aggregates: Vec<AggregateAsked>) -> PyResult<Self> {
        let aggregates = asked_aggregates(aggregates)?;
        let made = self.next(py, move |table| table.agg(&aggregates));
        made.map(Self::brought)
    }

    /// What a function makes of each group, whose records come in the order of `order`; the same columns if none are said. It
    /// is a `reduce` or an `apply`; whether it is pure, for how many seconds it may work on a batch, and whether it is associative.
    fn apply(
        &self,
        py: Python<'_>,
        by: By,
        order: Vec<Ordered>,
        what: (String, Py<PyAny>),
        made: Option<Vec<(String, String)>>,
        how: (bool, Option<f64>, bool),
    ) -> PyResult<Self> {
        let ((kind, function), (pure, timeout_s, is_associative)) = (what, how);
        let kind = Kind::of(&kind).filter(|kind| kind.is_of_groups());
        let kind = kind.ok_or_else(|| PyValueError::new_err("it is no verb of groups"))?;
        let of = self.table.columns().to_vec();
        let made = made.map_or_else(|| Ok(of.clone()), columns)?;
        let mut definition = Definition::new(py, kind, function, of, made.clone())?;
        definition.is_pure = pure;
        definition.timeout = timeout_s.map(Duration::from_secs_f64);
        definition.by.clone_from(&by.0);
        let definition = Arc::new(definition);
        let (called, number) = (Arc::clone(&definition), self.functions.len());
        let verb = move |table: &pipeline::Table, running: &Arc<Running>| {
            let function = groups(&called, number, running);
            let mut of = groups_of(table, &by)?;
            if is_associative {
                of = of.combined(Arc::clone(&function))?;
            }
            of.stream_by(&orders(&order), made.clone(), function)
        };
        let mut table = self.next_in(py, verb)?.grouped();
        table.functions.push(definition);
        Ok(table)
    }

    /// All columns in order of a group's times, and the number of the session.
    fn sessions(
        &self,
        py: Python<'_>,
        by: By,
        time: String,
        gap: u64,
        name: String,
    ) -> PyResult<Self> {
        let made = self.next(py, move |table| {
            groups_of(table, &by)?.sessions(&time, gap, &name)
        });
        made.map(Self::brought)
    }

    fn shuffle(&self, py: Python<'_>, seed: u64, epoch: u64) -> PyResult<Self> {
        self.next(py, move |table| table.shuffle(seed, epoch))
            .map(Self::brought)
    }

    fn sample(&self, py: Python<'_>, fraction: f64, seed: u64) -> PyResult<Self> {
        self.next(py, move |table| table.sample(fraction, seed))
    }

    fn matches(
        &self,
        py: Python<'_>,
        column: &str,
        pattern: &str,
        is_inverted: bool,
    ) -> PyResult<Self> {
        let matches = pipeline::matches(column, pattern);
        let matches = if is_inverted {
            matches.inverted()
        } else {
            matches
        };
        self.next(py, move |table| table.keep(&matches))
    }

    fn extract(
        &self,
        py: Python<'_>,
        column: &str,
        kept: Names,
        pattern: &str,
        made: Vec<(String, String)>,
    ) -> PyResult<Self> {
        let parts = pipeline::extract(column, pattern, columns(made)?);
        let parts = parts.map_err(|error| raised(py, &error))?;
        self.parts(py, parts, &kept, false, None)
    }

    /// Columns that are computed: the name, and what of.
    fn with_columns(
        &self,
        py: Python<'_>,
        computed: Vec<(String, PyRef<'_, Expr>)>,
    ) -> PyResult<Self> {
        let exprs: Vec<_> = computed
            .iter()
            .map(|(name, expr)| (name.clone(), expr.expr()))
            .collect();
        self.next(py, move |table| {
            let exprs: Vec<_> = exprs
                .iter()
                .map(|(name, expr)| (&**name, expr.clone()))
                .collect();
            table.with_columns(&exprs)
        })
    }

    /// The records for which a condition is true.
    fn keep_if(&self, py: Python<'_>, condition: &Expr) -> PyResult<Self> {
        let condition = condition.expr();
        self.next(py, move |table| table.keep_if(condition.clone()))
    }

    /// Tells in the report what aggregates make of all records, as [`Table::aggregate`] has them.
    fn observe(&self, py: Python<'_>, aggregates: Vec<AggregateAsked>) -> PyResult<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let names: Names = aggregates
            .iter()
            .map(|(_, _, name, ..)| name.clone())
            .collect();
        let aggregates = asked_aggregates(aggregates)?;
        let mut table = self.next(py, move |table| table.observe(&aggregates))?;
        let numbered = |name| (name, NUMBERS.fetch_add(1, Ordering::Relaxed));
        table.observed.extend(names.into_iter().map(numbered));
        Ok(table)
    }

    /// Groups, and lists of the numbers of a column.
    fn pack(&self, py: Python<'_>, by: By, column: String, name: String) -> PyResult<Self> {
        let made = self.next(py, move |table| groups_of(table, &by)?.pack(&column, &name));
        made.map(Self::brought)
    }

    /// A record for each value of some columns.
    fn unpivot(&self, py: Python<'_>, columns: Names, name: String) -> PyResult<Self> {
        self.next(py, move |table| table.unpivot(&strs(&columns), &name))
    }

    /// A record for each number of a list.
    fn unpack(&self, py: Python<'_>, column: String, name: String) -> PyResult<Self> {
        self.next(py, move |table| table.unpack(&column, &name))
    }

    /// What writes the table to a file, as `text`, `jsonl`, `kv`, `arrow` or `rows`.
    fn write(&self, py: Python<'_>, path: PathBuf, form: &str, how: How) -> PyResult<Job> {
        let form = match form {
            "text" => Form::Text,
            "jsonl" => Form::JsonLines,
            "kv" => Form::Kv,
            "arrow" => Form::Arrow,
            "rows" => Form::Rows,
            _ => return Err(PyValueError::new_err(format!("there is no form {form:?}"))),
        };
        self.written(py, path, form, how)
    }

    /// The same as CSV.
    fn write_csv(
        &self,
        py: Python<'_>,
        path: PathBuf,
        header: bool,
        delimiter: &str,
        quote: Option<&str>,
        how: How,
    ) -> PyResult<Job> {
        let csv = csv(py, (header, delimiter, quote))?;
        self.written(py, path, Form::Csv(csv), how)
    }

    /// The first records of the beginnings of the files, and whether no others could be the first; nothing where only a job tells.
    fn head<'py>(
        &self,
        py: Python<'py>,
        count: usize,
    ) -> PyResult<Option<(Vec<Bound<'py, PyDict>>, bool)>> {
        let running = Arc::new(Running::of_look());
        let found = work(py, &running.raised, |stop| {
            running.ends_with(stop);
            (self.make)(&running)?.head(count, &host()?, stop)
        })?;
        let one = |row: Vec<Owned>| {
            let values: Vec<Value<'_>> = row.iter().map(Owned::value).collect();
            let record = record_dict(py, self.table.columns(), &values);
            record.map_err(|error| raised(py, &error))
        };
        let Some((rows, are_first)) = found else {
            return Ok(None);
        };
        let rows: PyResult<Vec<_>> = rows.into_iter().map(one).collect();
        Ok(Some((rows?, are_first)))
    }

    /// Runs the pipeline up to this table. Answers what [`Job::run`] does, and the records for Arrow.
    fn hold(&self, py: Python<'_>, asked: Asked) -> PyResult<(Told, Rows)> {
        let columns = self.table.columns();
        self.runs()
            .run(py, &asked, |running, settings, host, stop| {
                let open = |path: &Path| Rows::open(path, columns.to_vec());
                (self.make)(running)?.hold(settings, host, stop, open)
            })
    }

    /// The same with the records for Python.
    fn hold_records(&self, py: Python<'_>, asked: Asked) -> PyResult<(Told, RowReader)> {
        let columns = self.table.columns();
        self.runs()
            .run(py, &asked, |running, settings, host, stop| {
                let open = |path: &Path| RowReader::open(path, columns);
                (self.make)(running)?.hold(settings, host, stop, open)
            })
    }

    /// The same of a sample of the input, `bytes` of its bytes, and whether that is all of it.
    fn hold_sampled(
        &self,
        py: Python<'_>,
        asked: Asked,
        bytes: usize,
    ) -> PyResult<(Told, (RowReader, bool))> {
        let columns = self.table.columns();
        self.runs()
            .run(py, &asked, |running, settings, host, stop| {
                let open = |path: &Path| RowReader::open(path, columns);
                let table = (self.make)(running)?;
                let sampled = table.sampled(bytes, host, stop)?;
                let (table, is_all) = sampled.unwrap_or((table, true));
                let (report, rows) = table.hold(settings, host, stop, open)?;
                Ok((report, (rows, is_all)))
            })
    }

    /// What writes the table to a file of records of a fixed size.
    fn write_fixed(
        &self,
        py: Python<'_>,
        path: PathBuf,
        record_bytes: u32,
        key: (u32, u32),
        how: How,
    ) -> PyResult<Job> {
        let form = Form::Fixed { record_bytes, key };
        self.written(py, path, form, how)
    }
}

/// How the codec `name` compresses, or `none`.
fn compress(name: &str, level: Option<u32>) -> PyResult<Option<Compress>> {
    if name == "none" {
        return Ok(None);
    }
    let codec = CODECS.into_iter().find(|codec| codec.name() == name);
    let unknown = || PyValueError::new_err(format!("there is no compression {name:?}"));
    let codec = codec.ok_or_else(unknown)?;
    Ok(Some(Compress { codec, level }))
}

/// An aggregate's name, its column, the name of what comes out, a fraction, and what stands between texts.
type AggregateAsked = (String, String, String, f64, String);

fn asked_aggregates(asked: Vec<AggregateAsked>) -> PyResult<Vec<Aggregate>> {
    let one = |(kind, column, name, fraction, separator): AggregateAsked| -> PyResult<Aggregate> {
        let made = match kind.as_str() {
            "count" => pipeline::count(),
            "count_values" => pipeline::count_values(column),
            "quantile" => pipeline::quantile(column, fraction),
            "approx_quantile" => pipeline::approx_quantile(column, fraction),
            "sum" => pipeline::sum(column),
            "min" => pipeline::min(column),
            "max" => pipeline::max(column),
            "mean" => pipeline::mean(column),
            "first" => pipeline::first(column),
            "count_distinct" => pipeline::count_distinct(column),
            "string_agg" => pipeline::string_agg(column, separator),
            "string_agg_distinct" => pipeline::string_agg_distinct(column, separator),
            "approx_count_distinct" => pipeline::approx_count_distinct(column),
            _ => {
                return Err(PyValueError::new_err(format!(
                    "there is no aggregate {kind:?}"
                )));
            }
        };
        Ok(made.named(name))
    };
    asked.into_iter().map(one).collect()
}

impl Table {
    fn written(
        &self,
        py: Python<'_>,
        path: PathBuf,
        form: Form,
        (files, partition, only_new, compression, level): How,
    ) -> PyResult<Job> {
        let compression = compression.map(|name| compress(&name, level)).transpose()?;
        let write = move |table: &pipeline::Table| {
            let path = path.clone();
            let mut pipeline = match (files, &partition) {
                (Some(count), Some(column)) => table.write_told(path, form, count, column)?,
                (Some(count), None) => table.write(path, form)?.in_files(count)?,
                (None, _) => table.write(path, form)?,
            };
            if let Some(compress) = compression {
                pipeline = pipeline.compressed(compress);
            }
            if only_new {
                pipeline = pipeline.only_new();
            }
            Ok(pipeline)
        };
        let pipeline = write(&self.table).map_err(|error| raised(py, &error))?;
        let make = Arc::clone(&self.make);
        Ok(Job {
            make: Arc::new(move |running| write(&make(running)?)),
            pipeline,
            observed: self.observed.clone(),
            runs: self.runs(),
        })
    }
}

/// A pipeline from files to a file.
#[pyclass(frozen, module = "sortmill._sortmill")]
pub struct Job {
    /// Makes it for a run.
    make: Make<Pipeline>,
    /// As it is for none.
    pipeline: Pipeline,
    observed: Vec<(String, u64)>,
    runs: Runs,
}

#[pymethods]
impl Job {
    /// What is observed on the way to it, each with a number of its own.
    fn observed(&self) -> Vec<(String, u64)> {
        self.observed.clone()
    }

    /// Refuses an output that may not be replaced and is there.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let checked = host().and_then(|host| self.pipeline.check(&host));
        checked.map_err(|error| raised(py, &error))
    }

    /// The pipes that it reads.
    fn pipes(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let found = host().and_then(|host| self.pipeline.pipes(&host));
        let found = found.map_err(|error| raised(py, &error))?;
        Ok(found
            .iter()
            .map(|path| path.display().to_string())
            .collect())
    }

    /// What would be done.
    fn explain(&self, py: Python<'_>, asked: Asked) -> PyResult<String> {
        self.runs.explain(py, &asked, &*self.make)
    }

    /// Does it. Answers the report as JSON, as a few lines, and what functions did, as JSON.
    fn run(&self, py: Python<'_>, asked: Asked) -> PyResult<Told> {
        let ran = self.runs.run(py, &asked, |running, settings, host, stop| {
            Ok(((self.make)(running)?.run(settings, host, stop)?, ()))
        });
        Ok(ran?.0)
    }
}
