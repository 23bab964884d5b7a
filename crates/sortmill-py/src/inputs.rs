//! Where tables come from.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use sortmill::error::Result;
use sortmill::io::sync::Arc;
use sortmill::pipeline::{self, Column, Csv};

use crate::errors::{misused, raised};
use crate::table::{Table, columns};
use crate::{apart, host};

/// The lines of text files.
#[pyfunction]
pub fn read_text(patterns: Vec<PathBuf>, skip_header: u64) -> Table {
    Table::new(pipeline::read_text(patterns, skip_header))
}

/// The records of CSV files, of some columns.
#[pyfunction]
pub fn read_csv(
    py: Python<'_>,
    patterns: Vec<PathBuf>,
    columns_asked: Vec<(String, String)>,
    header: bool,
    delimiter: &str,
    quote: Option<&str>,
    nulls: Vec<String>,
) -> PyResult<Table> {
    let columns = columns(columns_asked)?;
    let csv = csv(py, (header, delimiter, quote))?;
    let table = pipeline::read_csv(patterns, csv, columns);
    let nulls: Vec<&str> = nulls.iter().map(String::as_str).collect();
    let with_nulls = |table: pipeline::Table| match &nulls[..] {
        [] => Ok(table),
        nulls => table.with_nulls(nulls),
    };
    made(py, table.and_then(with_nulls))
}

/// The columns that the first header names.
#[pyfunction]
pub fn csv_names(
    py: Python<'_>,
    patterns: Vec<PathBuf>,
    delimiter: &str,
    quote: Option<&str>,
) -> PyResult<Vec<String>> {
    let csv = csv(py, (true, delimiter, quote))?;
    apart(py, || {
        host().and_then(|host| pipeline::csv_names(&host, &patterns, csv))
    })
}

/// The columns that the first JSON objects have, and their types. So many lines may be none.
#[pyfunction]
pub fn jsonl_columns(
    py: Python<'_>,
    patterns: Vec<PathBuf>,
    skip_bad: u64,
) -> PyResult<Vec<(String, String)>> {
    let found = apart(py, || {
        host().and_then(|host| pipeline::jsonl_columns(&host, &patterns, skip_bad))
    })?;
    let told = |column: &pipeline::Column| (column.name.clone(), column.type_name());
    Ok(found.iter().map(told).collect())
}

/// JSON objects, of which some members are columns.
#[pyfunction]
pub fn read_jsonl(
    py: Python<'_>,
    patterns: Vec<PathBuf>,
    columns_asked: Vec<(String, String)>,
) -> PyResult<Table> {
    let columns = columns(columns_asked)?;
    made(py, pipeline::read_jsonl(patterns, columns))
}

/// Records of a fixed size.
#[pyfunction]
pub fn read_fixed(
    py: Python<'_>,
    patterns: Vec<PathBuf>,
    record_bytes: u32,
    key: (u32, u32),
) -> PyResult<Table> {
    made(py, pipeline::read_fixed(patterns, record_bytes, key))
}

/// Pairs of key and value.
#[pyfunction]
pub fn read_kv(patterns: Vec<PathBuf>) -> Table {
    Table::new(pipeline::read_kv(patterns))
}

/// Files of groups side by side: of each its path and its columns.
#[pyfunction]
pub fn paste(py: Python<'_>, files: Vec<(PathBuf, Vec<(String, String)>)>) -> PyResult<Table> {
    let mut read = Vec::new();
    for (path, of) in files {
        read.push((path, columns(of)?));
    }
    let files: Vec<(&Path, &[Column])> = read.iter().map(|(path, of)| (&**path, &**of)).collect();
    made(
        py,
        host().and_then(|host| pipeline::paste(Arc::new(host), &files)),
    )
}

fn made(py: Python<'_>, table: Result<pipeline::Table>) -> PyResult<Table> {
    table.map(Table::new).map_err(|error| raised(py, &error))
}

/// How CSV is read or written.
pub fn csv(
    py: Python<'_>,
    (header, delimiter, quote): (bool, &str, Option<&str>),
) -> PyResult<Csv> {
    let byte = |what: &str, text: &str| match text.as_bytes() {
        [byte] => Ok(*byte),
        _ => Err(misused(
            py,
            format!("{what} is one byte, and {text:?} is not"),
        )),
    };
    Ok(Csv {
        header,
        delimiter: byte("a delimiter", delimiter)?,
        quote: quote.map(|quote| byte("a quote", quote)).transpose()?,
    })
}
