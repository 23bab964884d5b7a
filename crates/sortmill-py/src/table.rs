//! Tables and jobs, as Python's own classes hold them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sortmill::io::sync::Arc;
use sortmill::pipeline::{
    self, Aggregate, BatchFn, Column, Command, Form, MakeBatchFn, Parts, Pipeline, Type,
};

use crate::batched::{Definition, Here, Kind};
use crate::errors::raised;
use crate::function::Function;
use crate::pool::Pooled;
use crate::rows::{Rows, Source};
use crate::running::Running;
use crate::runs::{Asked, Runs, Told};
use crate::work::Raised;

/// A table that is still to be made.
#[pyclass(frozen, module = "sortmill._sortmill")]
pub struct Table {
    table: pipeline::Table,
    running: Arc<Running>,
    /// The functions of Python's on the way to it, but those of groups.
    functions: Vec<Arc<Definition>>,
    calls: Calls,
    /// What its records come from, if that is no file.
    source: Option<Arc<Source>>,
}

/// Where a table calls functions of Python's.
#[derive(Clone, Copy, Default)]
struct Calls {
    /// In front of the first verb that brings records together.
    in_front: bool,
    /// There is such a verb already.
    is_behind: bool,
}

/// The lines of text files.
#[pyfunction]
pub fn read_text(patterns: Vec<String>, skip_header: u64) -> Table {
    Table {
        table: pipeline::read_text(patterns, skip_header),
        running: Arc::default(),
        functions: Vec::new(),
        calls: Calls::default(),
        source: None,
    }
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
    fn next(
        &self,
        py: Python<'_>,
        made: sortmill::error::Result<pipeline::Table>,
    ) -> PyResult<Self> {
        Ok(Self {
            table: made.map_err(|error| raised(py, &error))?,
            running: Arc::clone(&self.running),
            functions: self.functions.clone(),
            calls: self.calls,
            source: self.source.clone(),
        })
    }

    /// The records of a source.
    pub fn of_rows(columns: Vec<Column>, source: Source) -> Self {
        let running: Arc<Running> = Arc::default();
        let told = Arc::clone(&running);
        Self {
            table: pipeline::read_rows(columns, Arc::new(move || told.pipe())),
            running,
            functions: Vec::new(),
            calls: Calls::default(),
            source: Some(Arc::new(source)),
        }
    }

    /// How it is run.
    fn runs(&self) -> Runs {
        Runs {
            running: Arc::clone(&self.running),
            functions: self.functions.clone(),
            in_front: self.calls.in_front,
            source: self.source.clone(),
        }
    }

    /// The table behind a function of Python's.
    fn called(self) -> Self {
        let in_front = self.calls.in_front || !self.calls.is_behind;
        let calls = Calls {
            in_front,
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
            raised: Raised::clone(&self.running.raised),
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
        let (number, running) = (self.functions.len(), Arc::clone(&self.running));
        let called = Arc::clone(&definition);
        let make: MakeBatchFn = Arc::new(move || -> Box<dyn BatchFn> {
            match running.pool() {
                None => Box::new(Here::new(&called, &running, number)),
                Some(pool) => Box::new(Pooled::new(&called, number, &running, &pool)),
            }
        });
        let name = format!("{} {}, of Python", kind.name(), definition.name);
        let names: Vec<&str> = of.iter().map(|column| &*column.name).collect();
        let table = self.table.batches(&name, &names, made, batch_size, make);
        let mut table = self.next(py, table)?.called();
        table.functions.push(definition);
        Ok(table)
    }

    /// What a program makes of the lines of a column.
    fn command(
        &self,
        py: Python<'_>,
        words: Vec<std::ffi::OsString>,
        column: &str,
        made: &str,
        batch_size: usize,
        timeout_s: Option<f64>,
    ) -> PyResult<Self> {
        let running = Arc::clone(&self.running);
        let command = Command {
            words,
            timeout: timeout_s.map(Duration::from_secs_f64),
            is_stopped: Arc::new(move || running.is_stopped()),
        };
        self.next(
            py,
            self.table.map_command(column, command, made, batch_size),
        )
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
        self.next(py, reduced).map(Self::brought)
    }

    /// Runs the pipeline up to this table. Answers what [`Job::run`] does, and the records.
    fn hold(&self, py: Python<'_>, asked: Asked) -> PyResult<(Told, Rows)> {
        let columns = self.table.columns();
        self.runs().run(py, &asked, |settings, host, stop| {
            let open = |path: &Path| Rows::open(path, columns.to_vec());
            self.table.hold(settings, host, stop, open)
        })
    }

    /// What writes the table to a file, as `text`, `csv`, `csv without header` or `jsonl`.
    fn write(&self, py: Python<'_>, path: PathBuf, form: &str) -> PyResult<Job> {
        let form = match form {
            "text" => Form::Text,
            "csv" => Form::Csv { header: true },
            "csv without header" => Form::Csv { header: false },
            "jsonl" => Form::JsonLines,
            _ => return Err(PyValueError::new_err(format!("there is no form {form:?}"))),
        };
        let pipeline = self.table.write(path, form);
        Ok(Job {
            pipeline: pipeline.map_err(|error| raised(py, &error))?,
            runs: self.runs(),
        })
    }
}

/// A pipeline from files to a file.
#[pyclass(frozen, module = "sortmill._sortmill")]
pub struct Job {
    pipeline: Pipeline,
    runs: Runs,
}

#[pymethods]
impl Job {
    /// What would be done.
    fn explain(&self, py: Python<'_>, asked: Asked) -> PyResult<String> {
        self.runs.explain(py, &asked, &self.pipeline)
    }

    /// Does it. Answers the report as JSON, as a few lines, and what functions did, as JSON.
    fn run(&self, py: Python<'_>, asked: Asked) -> PyResult<Told> {
        let ran = self.runs.run(py, &asked, |settings, host, stop| {
            Ok((self.pipeline.run(settings, host, stop)?, ()))
        });
        Ok(ran?.0)
    }
}
