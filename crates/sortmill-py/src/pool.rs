//! A pool of worker processes that functions of Python's run in, since one interpreter runs one at a time.
//!
//! ```text
//! thread of the engine --batch in shared memory, request--> process: calls the function
//!                      <--pieces of what it made, answer---
//! ```
//!
//! A thread asks and waits for the answer, so nothing is queued: there are as many batches on their way as threads. Each
//! worker of a step is bound to one process, so that an object that keeps state sees one row of batches; a process that
//! several are bound to serves one after the other. Memory is shared for each way: a batch is copied into the one, and what
//! the process made out of the other; the function looks at it where it lies (`columns.rs`).
//!
//! Processes are forks of a server that has imported what they need to begin with (`server.rs`), so one takes some
//! milliseconds to be there. From the first one on that dies, another one is forked ahead, and loads the functions meanwhile.
//!
//! A process that dies takes its batch along: of a pure function it is called again in a new process, three times at most,
//! of any other the job fails. The processes end when the pool does, and by themselves when this process dies
//! (`sortmill_io::shared::die_with`); the shared memory is nameless and goes with them.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;
use sortmill::error::{Error, ErrorKind};
use sortmill::io::shared::{self, Shared, resident_bytes};
use sortmill::io::sync::atomic::{AtomicU64, Ordering};
use sortmill::io::sync::{Mutex, lock};
use sortmill::queue::Stop;
use sortmill::text;

use crate::batched::Definition;
use crate::running::Running;
use crate::server::Server;
use crate::wire::{ANSWER_BYTES, Answer, Ask, PIECE_BYTES, Request};

/// So often a thread that waits looks whether the job is ending and how much memory its process has.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// So long a process may take to end when it is asked to.
const END_PATIENCE_S: f64 = 5.0;

/// The processes of one run.
pub struct Pool {
    functions: Vec<Arc<Definition>>,
    /// The functions, pickled.
    payload: Vec<u8>,
    /// What starts processes.
    server: Server,
    processes: Vec<Mutex<Process>>,
    /// One that was forked ahead, and has been asked nothing yet.
    spare: Mutex<Option<Live>>,
    /// How many workers of the engine are bound to each process.
    bound: Mutex<Vec<usize>>,
    stop: Mutex<Stop>,
    worker_memory_bytes: Option<u64>,
    instances: AtomicU64,
    started: AtomicU64,
    forked: AtomicU64,
    died: AtomicU64,
    resident_bytes_peak: AtomicU64,
    server_bytes_peak: AtomicU64,
    wait_ns: AtomicU64,
}

#[derive(Default)]
struct Process {
    live: Option<Live>,
    /// How many there were in its place: what was asked of one, another knows nothing of.
    generation: u64,
}

/// A process at work.
struct Live {
    /// 0 as long as it has not told.
    id: u32,
    stream: UnixStream,
    /// For batches on their way there and back.
    given: Shared,
    made: Shared,
    /// When its memory was last looked at.
    looked: Option<Instant>,
}

/// Why there is no answer.
pub enum Broken {
    /// The process has gone, in these words.
    Died(String),
    Job(Box<Error>),
}

impl From<std::io::Error> for Broken {
    fn from(error: std::io::Error) -> Self {
        let doing = "asking a worker process";
        Self::Job(Box::new(Error::new(
            ErrorKind::Io,
            doing,
            error.to_string(),
        )))
    }
}

fn not_started(cause: &str) -> Broken {
    let cause = format!("a worker process cannot be started: {cause}");
    let doing = "starting a worker process";
    Broken::Job(Box::new(Error::new(ErrorKind::Io, doing, cause)))
}

fn function_error(cause: String) -> Error {
    Error::new(ErrorKind::Function, "calling a Python function", cause)
}

impl Pool {
    /// One of at most `count` processes, each of which has at most so much memory. They are started when they are needed.
    ///
    /// # Errors
    /// When a function cannot be pickled.
    pub fn new(
        py: Python<'_>,
        functions: &[Arc<Definition>],
        count: usize,
        worker_memory_bytes: Option<u64>,
    ) -> PyResult<Self> {
        let names = |columns: &[sortmill::pipeline::Column]| -> Vec<(String, String)> {
            let one =
                |column: &sortmill::pipeline::Column| (column.name.clone(), column.type_name());
            columns.iter().map(one).collect()
        };
        let all: Vec<_> = functions
            .iter()
            .map(|of| {
                (
                    of.kind.name(),
                    &of.function,
                    names(&of.columns),
                    names(&of.made),
                    &of.by,
                )
            })
            .collect();
        let module = py.import("sortmill._pool")?;
        let all = all.into_pyobject(py)?;
        let payload = module.call_method1("pickled", (&all,))?.extract()?;
        Ok(Self {
            functions: functions.to_vec(),
            payload,
            server: Server::new(&module.call_method1("imports", (&all,))?)?,
            processes: (0..count).map(|_| Mutex::default()).collect(),
            spare: Mutex::default(),
            bound: Mutex::new(vec![0; count]),
            stop: Mutex::default(),
            worker_memory_bytes,
            instances: AtomicU64::new(0),
            started: AtomicU64::new(0),
            forked: AtomicU64::new(0),
            died: AtomicU64::new(0),
            resident_bytes_peak: AtomicU64::new(0),
            server_bytes_peak: AtomicU64::new(0),
            wait_ns: AtomicU64::new(0),
        })
    }

    /// No more waiting once `stop` ends the job.
    pub fn ends_with(&self, stop: &Stop) {
        *lock(&self.stop) = stop.clone();
    }

    /// What became of the processes, as data.
    pub fn told(&self) -> serde_json::Value {
        let number = |of: &AtomicU64| of.load(Ordering::Relaxed);
        json!({
            "count": self.processes.len(),
            "started": number(&self.started),
            "forked": number(&self.forked),
            "died": number(&self.died),
            "resident_bytes_peak": number(&self.resident_bytes_peak),
            "server_bytes_peak": number(&self.server_bytes_peak),
            "worker_memory_bytes": self.worker_memory_bytes,
            "wait_ns": number(&self.wait_ns),
        })
    }

    /// Ends all processes: lets them finish what they print if the job went well, kills them if not.
    pub fn end(&self, is_well: bool) {
        let mut lives: Vec<Live> = self
            .processes
            .iter()
            .filter_map(|process| lock(process).live.take())
            .collect();
        // It ends when nobody is at the other end.
        drop(lock(&self.spare).take());
        let quit = Request::new(Ask::Quit);
        let asked: Vec<bool> = lives
            .iter_mut()
            .map(|live| {
                self.measure(live);
                is_well && quit.send(&mut live.stream).is_ok()
            })
            .collect();
        for (live, asked) in lives.into_iter().zip(asked) {
            self.end_one(live, if asked { END_PATIENCE_S } else { 0.0 });
        }
        self.server.end();
    }

    /// Waits so many seconds for the end of a process, then kills it; says how it ended.
    fn end_one(&self, live: Live, patience_s: f64) -> String {
        match live.id {
            0 => "ended before it began".to_owned(),
            id => self.server.end_worker(id, patience_s),
        }
    }

    /// Starts a process; one that ends before it was asked anything has called nothing, so another one takes its place, whatever the
    /// function.
    fn start(&self) -> Result<Live, Broken> {
        let mut ended = String::new();
        for _ in 0..ATTEMPTS {
            match self.start_one() {
                Err(Broken::Died(how)) => ended = how,
                started => return started,
            }
        }
        let cause = format!(
            "{ATTEMPTS} worker processes, one after the other, were started and called nothing: the last one {ended}"
        );
        Err(Broken::Job(Box::new(function_error(cause))))
    }

    fn start_one(&self) -> Result<Live, Broken> {
        let spare = lock(&self.spare).take();
        let mut live = match spare {
            Some(spare) => spare,
            None => self.fork()?,
        };
        if self.died.load(Ordering::Relaxed) > 0 {
            // If there cannot be one, whoever needs one says why.
            *lock(&self.spare) = self.fork().ok();
        }
        self.started.fetch_add(1, Ordering::Relaxed);
        match self.begin(&mut live) {
            Ok(()) => Ok(live),
            Err(Broken::Died(_)) => Err(Broken::Died(self.end_one(live, END_PATIENCE_S))),
            Err(job) => {
                self.end_one(live, 0.0);
                Err(job)
            }
        }
    }

    /// Has the server start a process, without waiting for it. What it needs lies there when it begins: a module of the user's may
    /// take long to import, and one that was forked ahead does that while others work.
    fn fork(&self) -> Result<Live, Broken> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut live = Live {
            id: 0,
            stream: ours,
            given: Shared::new()?,
            made: Shared::new()?,
            looked: None,
        };
        live.given.write(&self.payload)?;
        let length = (self.payload.len() as u64).to_le_bytes();
        live.stream.write_all(&length)?;
        self.server
            .start(&theirs, [&live.given, &live.made])
            .map_err(|cause| not_started(&cause))?;
        Ok(live)
    }

    /// Hears who a process is and that it has what it needs; no function pays for that with its time.
    fn begin(&self, live: &mut Live) -> Result<(), Broken> {
        live.stream.set_read_timeout(Some(LOOK_EVERY))?;
        let hello = self.receive(live, None)?;
        if hello.is_failure {
            let error = std::io::Error::from_raw_os_error(hello.at as i32);
            return Err(not_started(&error.to_string()));
        }
        live.id = hello.at as u32;
        self.forked
            .fetch_add(u64::from(hello.count > 0), Ordering::Relaxed);
        if let Some(resident) = resident_bytes(self.server.id()) {
            self.server_bytes_peak
                .fetch_max(resident, Ordering::Relaxed);
        }
        // It says when it has all it needs to begin with.
        self.receive(live, None).map(drop)
    }

    /// Asks a process, which is started if it is not there; what it made and said takes the place of what is in `into`.
    fn ask(
        &self,
        process: &mut Process,
        request: &Request,
        sent: &[u8],
        into: &mut Vec<u8>,
    ) -> Result<Answer, Broken> {
        if process.live.is_none() {
            process.live = Some(self.start()?);
            process.generation += 1;
        }
        let live = process.live.as_mut().expect("it was just started");
        let began = Instant::now();
        let timeout = self.functions[request.function].timeout;
        let answer = self.exchange(live, request, sent, timeout.map(|of| began + of));
        let waited = began.elapsed().as_nanos() as u64;
        self.wait_ns.fetch_add(waited, Ordering::Relaxed);
        match answer {
            Ok(answer) => {
                live.made.read(answer.bytes + answer.said_bytes, into)?;
                live.made.shrink(8 * PIECE_BYTES as u64)?;
                live.given.shrink(8 * PIECE_BYTES as u64)?;
                Ok(answer)
            }
            Err(broken) => {
                let live = process.live.take().expect("it was asked");
                let patience = match broken {
                    Broken::Died(_) => END_PATIENCE_S,
                    Broken::Job(_) => 0.0,
                };
                let how = self.end_one(live, patience);
                self.died.fetch_add(1, Ordering::Relaxed);
                Err(match broken {
                    Broken::Died(_) => Broken::Died(how),
                    job => job,
                })
            }
        }
    }

    fn exchange(
        &self,
        live: &mut Live,
        request: &Request,
        sent: &[u8],
        deadline: Option<Instant>,
    ) -> Result<Answer, Broken> {
        live.given.write(sent)?;
        if request.send(&mut live.stream).is_err() {
            return Err(Broken::Died(String::new()));
        }
        let timeout = self.functions[request.function].timeout;
        let answer = self.receive(live, deadline.zip(timeout))?;
        // Short calls are never looked at while they work.
        if live.looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
            self.look(live, None)?;
        }
        Ok(answer)
    }

    /// The next answer of a process; with a deadline, and how long that was at first.
    fn receive(
        &self,
        live: &mut Live,
        deadline: Option<(Instant, Duration)>,
    ) -> Result<Answer, Broken> {
        let (mut bytes, mut have) = ([0; ANSWER_BYTES], 0);
        let mut has_ended = false;
        while have < ANSWER_BYTES {
            match live.stream.read(&mut bytes[have..]) {
                Ok(0) => return Err(Broken::Died(String::new())),
                Ok(moved) => have += moved,
                Err(error) => match error.kind() {
                    std::io::ErrorKind::WouldBlock
                    | std::io::ErrorKind::TimedOut
                    | std::io::ErrorKind::Interrupted => {}
                    _ => return Err(Broken::Died(String::new())),
                },
            }
            if have < ANSWER_BYTES {
                if has_ended {
                    return Err(Broken::Died(String::new()));
                }
                self.look(live, deadline)?;
                // Its end of the socket stays open as long as a process that it forked has it. What it said before it ended is
                // there when it is looked for once more.
                has_ended = shared::has_ended(live.id);
            }
        }
        Ok(Answer::of(&bytes))
    }

    /// Whether to wait on.
    fn look(&self, live: &mut Live, deadline: Option<(Instant, Duration)>) -> Result<(), Broken> {
        if lock(&self.stop).is_stopped() {
            return Err(Broken::Job(Box::new(Error::interrupted())));
        }
        if let Some((deadline, timeout)) = deadline
            && Instant::now() >= deadline
        {
            let seconds = timeout.as_secs_f64();
            let cause =
                format!("it has worked on one batch for more than its timeout of {seconds} s");
            return Err(Broken::Job(Box::new(function_error(cause))));
        }
        let resident = self.measure(live);
        match self.worker_memory_bytes {
            Some(most) if resident > most => {
                let cause = format!(
                    "its process has {} in use, and worker_memory is {}",
                    text::bytes(resident),
                    text::bytes(most)
                );
                Err(Broken::Job(Box::new(function_error(cause))))
            }
            _ => Ok(()),
        }
    }

    /// How much memory a process has in use, as far as that is known.
    fn measure(&self, live: &mut Live) -> u64 {
        live.looked = Some(Instant::now());
        let resident = resident_bytes(live.id).unwrap_or(0);
        self.resident_bytes_peak
            .fetch_max(resident, Ordering::Relaxed);
        resident
    }

    /// The process that the fewest workers are bound to, which one more is bound to now.
    fn bind(&self) -> usize {
        let mut bound = lock(&self.bound);
        let least = (0..bound.len()).min_by_key(|&at| bound[at]);
        let least = least.expect("a pool has a process");
        bound[least] += 1;
        least
    }
}

/// What binds a worker of the engine to a process. What it asked of one that is no more, the next one knows nothing of.
pub struct Bond {
    pool: Arc<Pool>,
    /// By which it is known to the process.
    instance: u64,
    /// The process, and which of those in its place was asked last.
    process: Option<(usize, u64)>,
}

impl Bond {
    /// To a process that is found when it is first asked.
    pub fn new(pool: &Arc<Pool>) -> Self {
        Self {
            instance: pool.instances.fetch_add(1, Ordering::Relaxed),
            pool: Arc::clone(pool),
            process: None,
        }
    }

    /// Whether it was ever asked.
    pub fn has_begun(&self) -> bool {
        self.process.is_some()
    }

    /// Asks; what the process made and said takes the place of what is in `into`. If it goes on with what was asked before,
    /// it `needs_the_same` process.
    pub fn ask(
        &mut self,
        request: Request,
        sent: &[u8],
        needs_the_same: bool,
        into: &mut Vec<u8>,
    ) -> Result<Answer, Broken> {
        let (at, known) = match self.process {
            Some((at, generation)) => (at, Some(generation)),
            None => (self.pool.bind(), None),
        };
        let mut process = lock(&self.pool.processes[at]);
        self.process = Some((at, process.generation));
        let is_same = |known: u64| process.live.is_some() && known == process.generation;
        if needs_the_same && !known.is_some_and(is_same) {
            // It died while somebody else asked it.
            return Err(Broken::Died("died".to_owned()));
        }
        let request = Request {
            instance: self.instance,
            bytes: sent.len(),
            ..request
        };
        let answer = self.pool.ask(&mut process, &request, sent, into);
        self.process = Some((at, process.generation));
        answer
    }
}

impl Drop for Bond {
    fn drop(&mut self) {
        if let Some((at, _)) = self.process {
            lock(&self.pool.bound)[at] -= 1;
        }
    }
}

/// So often one batch is called with before its function is thought to be what kills its process.
pub const ATTEMPTS: u32 = 3;

/// That a process died with what a function was given.
pub fn died(definition: &Definition, how: &str, why_not_again: &str) -> Error {
    let name = &definition.name;
    if definition.is_pure {
        return function_error(format!(
            "the process that called {name} {how}; {why_not_again}"
        ));
    }
    let why = "it is not declared pure, so nobody may call it with the same records again";
    let error = function_error(format!("the process that called {name} {how}; {why}"));
    error.hint("Declare it with pure=True if a batch may be given to it twice.")
}

/// Who must act, why, what to do, and what was raised.
type Unpickled = (String, String, Option<String>, Option<Py<PyAny>>);

/// The error that a process pickled. What was raised there is raised here.
pub fn failure(running: &Running, bytes: &[u8], is_sample: bool) -> Error {
    Python::attach(|py| {
        let unpickled = || -> PyResult<Unpickled> {
            let unpickle = py.import("sortmill._pool")?.getattr("failure")?;
            unpickle.call1((PyBytes::new(py, bytes),))?.extract()
        };
        match unpickled() {
            Ok((kind, cause, hint, raised)) => {
                if let Some(raised) = raised {
                    running.raise(PyErr::from_value(raised.into_bound(py)), is_sample);
                }
                let error = function_error(cause);
                let error = match hint {
                    Some(hint) => error.hint(hint),
                    None => error,
                };
                match kind.as_str() {
                    "Input" => error.kind(ErrorKind::Input),
                    "Memory" => error.kind(ErrorKind::Memory),
                    _ => error,
                }
            }
            Err(error) => function_error(format!("its error cannot be read: {error}")),
        }
    })
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.end(false);
    }
}
