//! Sortmill for Python, the thin part: `sortmill._sortmill`. Its public face is `python/sortmill`.
//!
//! In come plain values, out go plain values, tables and exceptions. Nothing is computed here. While the engine works, the
//! interpreter is free, and signals are looked for many times a second (`work.rs`). Functions of the user's get batches
//! (`batched.rs`, as Arrow's columns by `arrow.rs`), and those of groups an iterator of records (`grouped.rs`, `groups.rs`), in
//! this process or in a pool of others (`pool.rs`, which speaks by `wire.rs` with `serve.rs`).

mod arrow;
mod batched;
mod columns;
mod errors;
mod expr;
mod function;
mod grouped;
mod groups;
mod inputs;
mod pool;
mod pooled;
mod rows;
mod running;
mod runs;
mod serve;
mod server;
mod streams;
mod table;
mod time;
mod wire;
mod work;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sortmill::io::{Host, RingKind};
use sortmill::pipeline;

use errors::raised;
use work::{Raised, work};

/// Does what a command line says and answers its exit code. `node_words` start a process for `--on`: a program and the
/// words in front.
#[pyfunction]
fn run_command(py: Python<'_>, words: Vec<OsString>, node_words: Vec<OsString>) -> u8 {
    if let Some((program, before)) = node_words.split_first() {
        sortmill_cli::nodes_are_started_by(PathBuf::from(program), before.to_vec());
    }
    py.detach(|| sortmill_cli::run(words))
}

/// Sorts as `sortmill sort` with these words behind it does. Answers the report as JSON, and as a few lines.
#[pyfunction]
fn sort(
    py: Python<'_>,
    words: Vec<OsString>,
    node_words: Vec<OsString>,
) -> PyResult<(String, String)> {
    if let Some((program, before)) = node_words.split_first() {
        sortmill_cli::nodes_are_started_by(PathBuf::from(program), before.to_vec());
    }
    let report = work(py, &Raised::default(), |stop| {
        sortmill_cli::sort_as_asked(words, stop)
    })?;
    Ok((report.to_json(), report.summary()))
}

/// The long names of its options, and what each takes: `nothing`, a `value`, or `either`.
#[pyfunction]
fn sort_options() -> HashMap<String, &'static str> {
    sortmill_cli::sort_options().collect()
}

/// The files that patterns mean.
#[pyfunction]
fn expand(py: Python<'_>, patterns: Vec<PathBuf>) -> PyResult<Vec<PathBuf>> {
    apart(py, || {
        host().and_then(|host| pipeline::expand(&host, &patterns))
    })
}

/// Does what may take long without holding up other threads of the interpreter.
fn apart<T: Send>(
    py: Python<'_>,
    what: impl FnOnce() -> sortmill::error::Result<T> + Send,
) -> PyResult<T> {
    py.detach(what).map_err(|error| raised(py, &error))
}

/// The bytes that a size in words is, of all this machine's memory where it is a share.
#[pyfunction]
fn parse_size(py: Python<'_>, text: &str) -> PyResult<u64> {
    let total = || -> sortmill::error::Result<u64> {
        let host = host()?;
        Ok(sortmill::io::Os::machine(&host).memory_bytes_total)
    };
    let total = total().map_err(|error| raised(py, &error))?;
    sortmill_cli::size_in_bytes(text, total).map_err(PyValueError::new_err)
}

/// The machine.
fn host() -> sortmill::error::Result<Host> {
    use sortmill::error::{Error, ErrorKind};
    Host::new(RingKind::Auto, true)
        .map_err(|error| Error::new(ErrorKind::Io, "starting io_uring", error.to_string()))
}

#[pymodule(gil_used = false)]
fn _sortmill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<table::Table>()?;
    module.add_class::<table::Job>()?;
    module.add_class::<expr::Expr>()?;
    module.add_class::<arrow::Batch>()?;
    module.add_class::<rows::RowReader>()?;
    module.add_class::<streams::Rows>()?;
    module.add_function(wrap_pyfunction!(sort_options, module)?)?;
    module.add_function(wrap_pyfunction!(rows::from_iter, module)?)?;
    module.add_function(wrap_pyfunction!(streams::from_arrow, module)?)?;
    module.add_function(wrap_pyfunction!(serve::serve, module)?)?;
    module.add_function(wrap_pyfunction!(inputs::read_text, module)?)?;
    module.add_function(wrap_pyfunction!(inputs::read_csv, module)?)?;
    module.add_function(wrap_pyfunction!(inputs::csv_names, module)?)?;
    module.add_function(wrap_pyfunction!(inputs::jsonl_columns, module)?)?;
    module.add_function(wrap_pyfunction!(inputs::read_jsonl, module)?)?;
    module.add_function(wrap_pyfunction!(inputs::read_fixed, module)?)?;
    module.add_function(wrap_pyfunction!(inputs::read_kv, module)?)?;
    module.add_function(wrap_pyfunction!(inputs::paste, module)?)?;
    module.add_function(wrap_pyfunction!(run_command, module)?)?;
    module.add_function(wrap_pyfunction!(sort, module)?)?;
    module.add_function(wrap_pyfunction!(expand, module)?)?;
    module.add_function(wrap_pyfunction!(parse_size, module)?)?;
    Ok(())
}
