//! Tables and jobs, as Python's own classes hold them.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sortmill::io::sync::Arc;
use sortmill::job::Around;
use sortmill::pipeline::{
    self, Aggregate, Column, Form, Owned, Parts, Pipeline, Settings, Type, Value,
};

use crate::errors::raised;
use crate::function::Function;
use crate::host;
use crate::rows::dict;
use crate::work::{Raised, work};

/// A table that is still to be made.
#[pyclass(frozen, module = "sortmill._sortmill")]
pub struct Table {
    table: pipeline::Table,
    raised: Raised,
    calls: Calls,
}

/// Where a table calls functions of Python's.
#[derive(Clone, Copy, Default)]
struct Calls {
    /// In front of the first verb that brings records together.
    in_front: bool,
    /// There is such a verb already.
    is_behind: bool,
    /// Behind such a verb.
    behind: bool,
}

type Names = Vec<String>;

fn strs(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

fn bys(by: &[(String, bool)]) -> Vec<(&str, bool)> {
    by.iter()
        .map(|(name, down)| (name.as_str(), *down))
        .collect()
}

fn kind(name: &str) -> PyResult<Type> {
    let kinds = [
        Type::Binary,
        Type::String,
        Type::I64,
        Type::U64,
        Type::F64,
        Type::Bool,
    ];
    let found = kinds.into_iter().find(|kind| kind.name() == name);
    found.ok_or_else(|| PyValueError::new_err(format!("there is no type {name:?}")))
}

pub fn columns(columns: Vec<(String, String)>) -> PyResult<Vec<Column>> {
    let column = |(name, of): (String, String)| Ok(Column::new(name, kind(&of)?));
    columns.into_iter().map(column).collect()
}

impl Table {
    /// One that is read.
    pub fn new(table: pipeline::Table) -> Self {
        Self::raising(table, Raised::default())
    }

    /// One that is read from what may raise exceptions.
    pub fn raising(table: pipeline::Table, raised: Raised) -> Self {
        Self {
            table,
            raised,
            calls: Calls::default(),
        }
    }

    /// Its columns.
    pub fn columns_of(&self) -> &[Column] {
        self.table.columns()
    }

    fn next(
        &self,
        py: Python<'_>,
        made: sortmill::error::Result<pipeline::Table>,
    ) -> PyResult<Self> {
        Ok(Self {
            table: made.map_err(|error| raised(py, &error))?,
            raised: Raised::clone(&self.raised),
            calls: self.calls,
        })
    }

    /// The table behind a function of Python's.
    fn called(self) -> Self {
        let Calls { is_behind, .. } = self.calls;
        let calls = Calls {
            in_front: self.calls.in_front || !is_behind,
            is_behind,
            behind: self.calls.behind || is_behind,
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
        lower: bool,
        name: Option<&str>,
    ) -> PyResult<Self> {
        let parts = if lower { parts.lower() } else { parts };
        let parts = name.map_or_else(|| parts.clone(), |name| parts.clone().named(name));
        self.next(py, self.table.flat_map(&parts))
    }

    fn function(&self, function: Py<PyAny>) -> (Vec<&str>, Function) {
        let columns = self.table.columns();
        let names = columns.iter().map(|column| &*column.name).collect();
        let function = Function {
            function,
            columns: columns.to_vec(),
            raised: Raised::clone(&self.raised),
        };
        (names, function)
    }
}

#[pymethods]
impl Table {
    /// Names and types of its columns.
    fn columns(&self) -> Vec<(String, &'static str)> {
        let columns = self.table.columns().iter();
        columns
            .map(|column| (column.name.clone(), column.kind.name()))
            .collect()
    }

    /// The same with the file and the line of each record under these names.
    fn with_place(
        &self,
        py: Python<'_>,
        file: Option<&str>,
        line_number: Option<&str>,
    ) -> PyResult<Self> {
        self.next(py, self.table.with_place(file, line_number))
    }

    fn words(
        &self,
        py: Python<'_>,
        column: &str,
        lower: bool,
        name: Option<&str>,
    ) -> PyResult<Self> {
        self.parts(py, pipeline::words(column), lower, name)
    }

    fn ngrams(
        &self,
        py: Python<'_>,
        column: &str,
        count: usize,
        lower: bool,
        name: Option<&str>,
    ) -> PyResult<Self> {
        self.parts(py, pipeline::ngrams(column, count), lower, name)
    }

    fn split(&self, py: Python<'_>, column: &str, by: &str, name: Option<&str>) -> PyResult<Self> {
        self.parts(py, pipeline::split(column, by), false, name)
    }

    fn fields(
        &self,
        py: Python<'_>,
        column: &str,
        by: &str,
        made: Vec<(String, String)>,
    ) -> PyResult<Self> {
        let parts = pipeline::fields(column, by, columns(made)?);
        self.next(py, self.table.flat_map(&parts))
    }

    fn filter(&self, py: Python<'_>, function: Py<PyAny>) -> PyResult<Self> {
        let (names, function) = self.function(function);
        let made = self.next(py, self.table.filter(&names, function.filter()));
        made.map(Self::called)
    }

    fn each(
        &self,
        py: Python<'_>,
        function: Py<PyAny>,
        made: Vec<(String, String)>,
        many: bool,
    ) -> PyResult<Self> {
        let (names, function) = self.function(function);
        let made = columns(made)?;
        let function = function.each(made.clone(), many);
        let made = self.next(py, self.table.each(&names, made, function));
        made.map(Self::called)
    }

    fn select(&self, py: Python<'_>, columns: Names) -> PyResult<Self> {
        self.next(py, self.table.select(&strs(&columns)))
    }

    fn sort(&self, py: Python<'_>, by: Vec<(String, bool)>) -> PyResult<Self> {
        self.next(py, self.table.sort(&bys(&by))).map(Self::brought)
    }

    fn top(&self, py: Python<'_>, count: u64, by: Vec<(String, bool)>) -> PyResult<Self> {
        let made = self.next(py, self.table.top(count, &bys(&by)));
        made.map(Self::brought)
    }

    fn distinct(&self, py: Python<'_>) -> PyResult<Self> {
        self.next(py, self.table.distinct()).map(Self::brought)
    }

    /// Groups and what is computed of each: the aggregate's name, its column and the name of what comes out.
    fn aggregate(
        &self,
        py: Python<'_>,
        by: Names,
        aggregates: Vec<(String, String, String)>,
    ) -> PyResult<Self> {
        let one = |(kind, column, name): (String, String, String)| -> PyResult<Aggregate> {
            let made = match kind.as_str() {
                "count" => pipeline::count(),
                "sum" => pipeline::sum(column),
                "min" => pipeline::min(column),
                "max" => pipeline::max(column),
                "mean" => pipeline::mean(column),
                "first" => pipeline::first(column),
                "count_distinct" => pipeline::count_distinct(column),
                "approx_count_distinct" => pipeline::approx_count_distinct(column),
                _ => {
                    return Err(PyValueError::new_err(format!(
                        "there is no aggregate {kind:?}"
                    )));
                }
            };
            Ok(made.named(name))
        };
        let aggregates: Vec<Aggregate> =
            aggregates.into_iter().map(one).collect::<PyResult<_>>()?;
        let groups = self.table.group_by(&strs(&by));
        let made = groups.and_then(|groups| groups.agg(&aggregates));
        self.next(py, made).map(Self::brought)
    }

    /// A record for each group, which a function makes of two.
    fn reduce(&self, py: Python<'_>, by: Names, function: Py<PyAny>) -> PyResult<Self> {
        let (_, function) = self.function(function);
        let columns = self.table.columns().to_vec();
        let groups = self.table.group_by(&strs(&by));
        let reduced = groups.and_then(|groups| groups.apply(columns, function.reduce()));
        self.next(py, reduced).map(Self::brought).map(Self::called)
    }

    /// What a function makes of each group, whose records come in the order of `order`.
    fn apply(
        &self,
        py: Python<'_>,
        by: Names,
        order: Vec<(String, bool)>,
        function: Py<PyAny>,
        made: Vec<(String, String)>,
    ) -> PyResult<Self> {
        let (_, function) = self.function(function);
        let made = columns(made)?;
        let groups = self.table.group_by(&strs(&by));
        let function = function.groups(by, made.clone());
        let applied = groups.and_then(|groups| groups.stream(&bys(&order), made, function));
        self.next(py, applied).map(Self::brought).map(Self::called)
    }

    /// All columns in order of a group's times, and the number of the session.
    fn sessions(
        &self,
        py: Python<'_>,
        by: Names,
        time: &str,
        gap: u64,
        name: &str,
    ) -> PyResult<Self> {
        let groups = self.table.group_by(&strs(&by));
        let made = groups.and_then(|groups| groups.sessions(time, gap, name));
        self.next(py, made).map(Self::brought)
    }

    fn shuffle(&self, py: Python<'_>, seed: u64, epoch: u64) -> PyResult<Self> {
        self.next(py, self.table.shuffle(seed, epoch))
            .map(Self::brought)
    }

    fn sample(&self, py: Python<'_>, fraction: f64, seed: u64) -> PyResult<Self> {
        self.next(py, self.table.sample(fraction, seed))
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
        self.next(py, self.table.keep(&matches))
    }

    fn extract(
        &self,
        py: Python<'_>,
        column: &str,
        pattern: &str,
        made: Vec<(String, String)>,
    ) -> PyResult<Self> {
        let parts = pipeline::extract(column, pattern, columns(made)?);
        self.next(py, parts.and_then(|parts| self.table.flat_map(&parts)))
    }

    /// Columns that are computed: the name, what is done, the column it is done to, and the type or seed.
    fn with_columns(
        &self,
        py: Python<'_>,
        computed: Vec<(String, String, String, String, u64)>,
    ) -> PyResult<Self> {
        let mut formulas = Vec::new();
        for (name, how, column, of, seed) in &computed {
            let formula = match how.as_str() {
                "parse" => pipeline::parse(column, kind(of)?),
                "timestamp" => pipeline::timestamp(column),
                "hash" => pipeline::hash(column, *seed),
                _ => {
                    return Err(PyValueError::new_err(format!(
                        "there is no formula {how:?}"
                    )));
                }
            };
            formulas.push((name.as_str(), formula));
        }
        self.next(py, self.table.with_columns(&formulas))
    }

    /// What writes the table to a file, as `text`, `csv`, `csv without header`, `jsonl` or `kv`.
    fn write(
        &self,
        py: Python<'_>,
        path: PathBuf,
        form: &str,
        files: Option<u64>,
        only_new: bool,
    ) -> PyResult<Job> {
        let form = match form {
            "text" => Form::Text,
            "csv" => Form::Csv { header: true },
            "csv without header" => Form::Csv { header: false },
            "jsonl" => Form::JsonLines,
            "kv" => Form::Kv,
            _ => return Err(PyValueError::new_err(format!("there is no form {form:?}"))),
        };
        self.written(py, path, form, (files, only_new))
    }

    /// The first records, if no job is needed to know them.
    fn head<'py>(
        &self,
        py: Python<'py>,
        count: usize,
    ) -> PyResult<Option<Vec<Bound<'py, PyDict>>>> {
        let rows = work(py, &self.raised, |_| self.table.head(count, &host()?))?;
        let one = |row: Vec<Owned>| {
            let values: Vec<Value<'_>> = row.iter().map(Owned::value).collect();
            dict(py, self.table.columns(), &values)
        };
        let all = |rows: Vec<Vec<Owned>>| rows.into_iter().map(one).collect();
        rows.map(all).transpose()
    }

    /// What writes the table to a file of rows.
    fn write_rows(&self, py: Python<'_>, path: PathBuf) -> PyResult<Job> {
        self.written(py, path, Form::Rows, (None, true))
    }

    /// What writes the table to a file of records of a fixed size.
    fn write_fixed(
        &self,
        py: Python<'_>,
        path: PathBuf,
        record_bytes: u32,
        key: (u32, u32),
        files: Option<u64>,
        only_new: bool,
    ) -> PyResult<Job> {
        let form = Form::Fixed { record_bytes, key };
        self.written(py, path, form, (files, only_new))
    }
}

impl Table {
    fn written(
        &self,
        py: Python<'_>,
        path: PathBuf,
        form: Form,
        (files, only_new): (Option<u64>, bool),
    ) -> PyResult<Job> {
        let mut pipeline = self.table.write(path, form);
        if let Some(count) = files {
            pipeline = pipeline.and_then(|pipeline| pipeline.in_files(count));
        }
        if only_new {
            pipeline = pipeline.map(Pipeline::only_new);
        }
        Ok(Job {
            pipeline: pipeline.map_err(|error| raised(py, &error))?,
            raised: Raised::clone(&self.raised),
            calls: self.calls,
        })
    }
}

/// A pipeline from files to a file.
#[pyclass(frozen, module = "sortmill._sortmill")]
pub struct Job {
    pipeline: Pipeline,
    raised: Raised,
    calls: Calls,
}

impl Job {
    fn settings(
        &self,
        memory_bytes: Option<u64>,
        temps: Vec<PathBuf>,
        threads: Option<usize>,
    ) -> Settings {
        // The interpreter is taken once for many records: threads that take turns at each wait more than they work.
        let taken: Around = Arc::new(|work| Python::attach(|_| work()));
        Settings {
            memory_bytes,
            temps,
            threads,
            around: self.calls.in_front.then_some(taken),
            // Functions of Python's have one interpreter among them.
            reduces_in_turn: self.calls.behind,
            ..Settings::default()
        }
    }
}

#[pymethods]
impl Job {
    /// Refuses an output that may not be replaced and is there.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let checked = host().and_then(|host| self.pipeline.check(&host));
        checked.map_err(|error| raised(py, &error))
    }

    /// What would be done.
    fn explain(
        &self,
        py: Python<'_>,
        memory_bytes: Option<u64>,
        temps: Vec<PathBuf>,
        threads: Option<usize>,
    ) -> PyResult<String> {
        let settings = self.settings(memory_bytes, temps, threads);
        work(py, &self.raised, |_| {
            self.pipeline.explain(&settings, &host()?)
        })
    }

    /// Does it. Answers the report as JSON, and as a few lines.
    fn run(
        &self,
        py: Python<'_>,
        memory_bytes: Option<u64>,
        temps: Vec<PathBuf>,
        threads: Option<usize>,
    ) -> PyResult<(String, String)> {
        let settings = self.settings(memory_bytes, temps, threads);
        let report = work(py, &self.raised, |stop| {
            self.pipeline.run(&settings, &host()?, stop)
        })?;
        Ok((report.to_json(), report.summary()))
    }
}
