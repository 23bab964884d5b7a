//! The process that starts worker processes, by forking itself: `python/sortmill/_server.py` says what it does and why.
//!
//! It is started with the pool, so that it imports what it needs while the job is planned, and ends with it.

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use pyo3::prelude::*;
use sortmill::io::shared::Shared;

/// The `Server` of `python/sortmill/_pool.py`.
pub struct Server {
    server: Py<PyAny>,
}

impl Server {
    /// One that has imported the modules `imports`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn new(imports: &Bound<'_, PyAny>) -> PyResult<Self> {
        let module = imports.py().import("sortmill._pool")?;
        let server = module.call_method1("Server", (imports,))?.unbind();
        Ok(Self { server })
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        Python::attach(|py| {
            let id = self.server.getattr(py, "id");
            id.and_then(|id| id.extract(py)).unwrap_or(0)
        })
    }

    /// Has it start a worker process, which will say over `stream` who it is. That may be closed here then.
    ///
    /// # Errors
    /// Why it cannot be asked.
    pub fn start(&self, stream: &UnixStream, memory: [&Shared; 2]) -> Result<(), String> {
        Python::attach(|py| {
            let [given, made] = memory.map(Shared::number);
            let files = vec![stream.as_raw_fd(), given, made];
            let started = self.server.call_method1(py, "start", (files,));
            started.map(drop).map_err(|error| error.to_string())
        })
    }

    /// Waits so many seconds for the end of worker process `id`, then kills it; says how it ended.
    pub fn end_worker(&self, id: u32, patience_s: f64) -> String {
        Python::attach(|py| {
            let ended = self.server.call_method1(py, "end_worker", (id, patience_s));
            let told = ended.and_then(|how| how.extract(py));
            told.unwrap_or_else(|error| format!("was lost: {error}"))
        })
    }

    /// Ends it.
    pub fn end(&self) {
        Python::attach(|py| {
            if let Err(error) = self.server.call_method0(py, "end") {
                error.write_unraisable(py, None);
            }
        });
    }
}
