//! One run of a pipeline: where its functions run, and what is told of it.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use sortmill::error::{Error, ErrorKind};
use sortmill::io::Host;
use sortmill::io::sync::Arc;
use sortmill::pipeline::{PhaseNow, Pipeline, PipelineReport, Settings, Watched};
use sortmill::progress::{Part, Snapshot};
use sortmill::queue::Stop;

use crate::batched::Definition;
use crate::errors::raised;
use crate::host;
use crate::pool::Pool;
use crate::running::Running;
use crate::work::{work, work_watched};

/// The report as JSON, as a few lines, and what functions did, as JSON.
pub type Told = (String, String, String);

/// What a job may use, as Python says it.
#[derive(FromPyObject)]
pub struct Asked {
    #[pyo3(item)]
    memory: Option<u64>,
    #[pyo3(item)]
    temp: Vec<PathBuf>,
    #[pyo3(item)]
    threads: Option<usize>,
    #[pyo3(item)]
    processes: Option<usize>,
    #[pyo3(item)]
    worker_memory: Option<u64>,
    /// Is called with how far the pipeline is, many times a second.
    #[pyo3(item)]
    progress: Option<Py<PyAny>>,
}

impl Asked {
    fn settings(&self) -> Settings {
        Settings {
            memory_bytes: self.memory,
            temps: self.temp.clone(),
            threads: self.threads,
            ..Settings::default()
        }
    }
}

/// Where a table calls functions of Python's.
#[derive(Clone, Copy, Default)]
pub struct Calls {
    /// Those of records or batches, behind a verb that brings records together.
    pub behind: bool,
    /// Those of groups.
    pub of_groups: bool,
    /// There is such a verb already.
    pub is_behind: bool,
}

/// What a pipeline has of Python's.
pub struct Runs {
    pub functions: Vec<Arc<Definition>>,
    pub calls: Calls,
}

/// Where functions run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In this process, by so many threads at once: one where the interpreter has a lock (the GIL).
    Here(usize),
    /// In so many worker processes.
    Processes(usize),
}

impl Place {
    fn words(self) -> String {
        match self {
            Self::Here(1) => "in this process, one at a time".to_owned(),
            Self::Here(count) => format!("in {count} threads of this process"),
            Self::Processes(count) => format!("in {count} processes"),
        }
    }
}

/// Whether functions may run at the same time in this process: the interpreter is one without a lock, and has not been given
/// it back by a module that needs it (PEP 703).
fn runs_threads(py: Python<'_>) -> bool {
    let is_enabled = || -> PyResult<bool> {
        let sys = py.import("sys")?;
        sys.getattr("_is_gil_enabled")?.call0()?.extract()
    };
    !is_enabled().unwrap_or(true)
}

impl Runs {
    /// Where functions run if nobody says it: in processes, or in threads where these run at the same time. Only a process can be
    /// ended when it takes too long or too much memory, or end without the user's own.
    fn place(&self, py: Python<'_>, asked: &Asked) -> PyResult<Place> {
        let threads = asked
            .threads
            .unwrap_or_else(sortmill::io::sync::core_count)
            .max(1);
        let is_free = runs_threads(py);
        let here = Place::Here(if is_free { threads } else { 1 });
        let has_timeout = || self.functions.iter().any(|one| one.timeout.is_some());
        let needs_process = || asked.worker_memory.is_some() || has_timeout();
        Ok(match asked.processes {
            _ if self.functions.is_empty() => here,
            Some(0) if has_timeout() => {
                let cause =
                    "timeout= ends a worker process that takes too long, and processes=0 has none";
                let error = Error::new(ErrorKind::Usage, "planning the job", cause);
                return Err(raised(py, &error));
            }
            Some(0) => here,
            Some(count) => Place::Processes(count),
            None if is_free && !needs_process() => here,
            None => Place::Processes(threads),
        })
    }

    /// What functions run in at `place`, of which at most `most` processes are needed.
    fn pool(
        &self,
        py: Python<'_>,
        asked: &Asked,
        (place, most): (Place, usize),
    ) -> PyResult<Option<Arc<Pool>>> {
        let Place::Processes(count) = place else {
            return Ok(None);
        };
        let pool = Pool::new(py, &self.functions, count.min(most), asked.worker_memory)?;
        Ok(Some(Arc::new(pool)))
    }

    /// What would be done. Functions are called with some records, where they would be when it is done.
    pub fn explain(
        &self,
        py: Python<'_>,
        asked: &Asked,
        make: impl Fn(&Arc<Running>) -> Result<Pipeline, Error> + Sync,
    ) -> PyResult<String> {
        let place = self.place(py, asked)?;
        // One plan calls one function at a time.
        let pool = self.pool(py, asked, (place, 1))?;
        let running = Arc::new(Running::new(pool.clone()));
        let told = work(py, &running.raised, |stop| {
            running.ends_with(stop);
            if let Some(pool) = &pool {
                pool.ends_with(stop);
            }
            make(&running)?.explain(&asked.settings(), &host()?)
        });
        if let Some(pool) = &pool {
            pool.end(told.is_ok());
        }
        let mut told = told?;
        if !self.functions.is_empty() {
            told += &format!("functions        {}\n", place.words());
        }
        Ok(told)
    }

    /// Does `what`.
    pub fn run<T: Send>(
        &self,
        py: Python<'_>,
        asked: &Asked,
        what: impl FnOnce(&Arc<Running>, &Settings, &Host, &Stop) -> Result<(PipelineReport, T), Error>
        + Send,
    ) -> PyResult<(Told, T)> {
        let place = self.place(py, asked)?;
        let pool = self.pool(py, asked, (place, usize::MAX))?;
        let running = Arc::new(Running::new(pool.clone()));
        let watched: Arc<Watched> = Arc::default();
        let host = host().map_err(|error| raised(py, &error))?;
        let look = |py: Python<'_>| match (&asked.progress, watched.now(&host)) {
            (Some(callback), Some(now)) => tell(py, callback, &now),
            _ => Ok(()),
        };
        let done = work_watched(py, &running.raised, look, |stop| {
            running.ends_with(stop);
            if let Some(pool) = &pool {
                pool.ends_with(stop);
            }
            let settings = Settings {
                // One at a time gains nothing from threads.
                reduces_in_turn: (self.calls.of_groups || self.calls.behind)
                    && place == Place::Here(1),
                watched: asked.progress.is_some().then(|| Arc::clone(&watched)),
                ..asked.settings()
            };
            what(&running, &settings, &host, stop)
        });
        if let Some(pool) = &pool {
            pool.end(done.is_ok());
        }
        let (report, made) = done?;
        let told = running.told(&self.functions, place);
        Ok(((report.to_json(), report.summary(), told.to_string()), made))
    }
}

/// Tells how far a phase is: its verb, number and count of phases; what the job does; seconds; the part that is done, from
/// 0 to 1, and the seconds left, where they are known.
fn tell(py: Python<'_>, callback: &Py<PyAny>, now: &PhaseNow) -> PyResult<()> {
    let snapshot = &now.snapshot;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let told = PyDict::new(py);
    told.set_item("verb", &now.name)?;
    told.set_item("number", now.number + 1)?;
    told.set_item("count", now.count)?;
    told.set_item("phase", snapshot.phase.name())?;
    told.set_item("seconds", seconds(snapshot.elapsed_ns))?;
    told.set_item("share", snapshot.share)?;
    told.set_item("seconds_left", snapshot.left_ns().map(seconds))?;
    told.set_item("bytes_read", sum(snapshot, |part| part.read_bytes))?;
    told.set_item("bytes_written", sum(snapshot, |part| part.written_bytes))?;
    callback.call1(py, (told,)).map(drop)
}

fn sum(snapshot: &Snapshot, bytes: impl Fn(&Part) -> u64) -> u64 {
    snapshot.parts.iter().map(bytes).sum()
}
