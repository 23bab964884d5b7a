//! A pool of worker processes that functions of Python's run in, since one interpreter runs one at a time.
//!
//! ```text
//! thread of the engine --batch in shared memory, request--> process: calls the function
//!                      <--pieces of what it made, answer---
//! ```
//!
//! A thread asks and waits for the answer, so nothing is queued: there are as many batches on their way as threads. Each
//! worker of a step is bound to one process, so that an object that keeps state sees one row of batches; a process that
//! several are bound to serves one after the other. The memory is written and read by offset, a copy each way.
//!
//! A process that dies takes its batch along: of a pure function it is called again in a new process, three times at most,
//! of any other the job fails. The processes end when the pool does, and by themselves when this process dies
//! (`sortmill_io::shared::die_with`); the shared memory is nameless and goes with them.

use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;
use sortmill::error::{Error, ErrorKind};
use sortmill::io::shared::{Shared, resident_bytes};
use sortmill::io::sync::atomic::{AtomicU64, Ordering};
use sortmill::io::sync::{Mutex, lock};
use sortmill::pipeline::{BatchFn, Gathered, Refused, RowSink, hand_over};
use sortmill::queue::Stop;
use sortmill::text;

use crate::batched::Definition;
use crate::running::Running;
use crate::wire::{ANSWER_BYTES, Answer, Ask, PIECE_BYTES, Request};

/// So often a thread that waits looks whether the job is ending and how much memory its process has.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// So often one batch is called with before its function is thought to be what kills its process.
const ATTEMPTS: u32 = 3;

/// So long a process may take to end when it is asked to.
const END_PATIENCE_S: f64 = 5.0;

/// The processes of one run.
pub struct Pool {
    functions: Vec<Arc<Definition>>,
    /// The functions, pickled.
    payload: Vec<u8>,
    processes: Vec<Mutex<Process>>,
    /// How many workers of the engine are bound to each process.
    bound: Mutex<Vec<usize>>,
    stop: Mutex<Stop>,
    worker_memory_bytes: Option<u64>,
    instances: AtomicU64,
    started: AtomicU64,
    died: AtomicU64,
    resident_bytes_peak: AtomicU64,
    wait_ns: AtomicU64,
}

#[derive(Default)]
struct Process {
    live: Option<Live>,
    /// How many there were in its place: what was asked of one, another knows nothing of.
    generation: u64,
    /// What comes and goes.
    scratch: Vec<u8>,
}

/// A process at work.
struct Live {
    child: Py<PyAny>,
    id: u32,
    stream: UnixStream,
    memory: Shared,
}

/// Why there is no answer.
enum Broken {
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
                )
            })
            .collect();
        let payload = py
            .import("sortmill._pool")?
            .getattr("pickled")?
            .call1((all,))?
            .extract()?;
        Ok(Self {
            functions: functions.to_vec(),
            payload,
            processes: (0..count).map(|_| Mutex::default()).collect(),
            bound: Mutex::new(vec![0; count]),
            stop: Mutex::default(),
            worker_memory_bytes,
            instances: AtomicU64::new(0),
            started: AtomicU64::new(0),
            died: AtomicU64::new(0),
            resident_bytes_peak: AtomicU64::new(0),
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
            "died": number(&self.died),
            "resident_bytes_peak": number(&self.resident_bytes_peak),
            "worker_memory_bytes": self.worker_memory_bytes,
            "wait_ns": number(&self.wait_ns),
        })
    }

    /// Ends all processes: lets them finish what they print if the job went well, kills them if not.
    pub fn end(&self, is_well: bool) {
        for process in &self.processes {
            let mut process = lock(process);
            if let Some(mut live) = process.live.take() {
                let request = Request {
                    ask: Ask::Quit,
                    function: 0,
                    instance: 0,
                    is_sample: false,
                    count: 0,
                    bytes: 0,
                };
                let asked = is_well && request.send(&mut live.stream).is_ok();
                live.end(if asked { END_PATIENCE_S } else { 0.0 });
            }
        }
    }

    fn start(&self) -> Result<Live, Broken> {
        let (mut ours, theirs) = UnixStream::pair()?;
        let memory = Shared::new()?;
        let child = Python::attach(|py| -> PyResult<_> {
            let start = py.import("sortmill._pool")?.getattr("start")?;
            let child = start.call1((theirs.as_raw_fd(), memory.number()))?;
            let id = child.getattr("pid")?.extract()?;
            Ok((child.unbind(), id))
        });
        let (child, id) = child.map_err(|error| {
            let cause = format!("a worker process cannot be started: {error}");
            Broken::Job(Box::new(Error::new(
                ErrorKind::Io,
                "starting a worker process",
                cause,
            )))
        })?;
        drop(theirs);
        self.started.fetch_add(1, Ordering::Relaxed);
        let mut live = Live {
            child,
            id,
            stream: ours.try_clone()?,
            memory,
        };
        // It reads this first of all; one that dies before it does closes its end.
        let length = (self.payload.len() as u64).to_le_bytes();
        let sent = std::io::Write::write_all(&mut ours, &length)
            .and_then(|()| std::io::Write::write_all(&mut ours, &self.payload));
        if sent.is_err() {
            return Err(Broken::Died(live.end(END_PATIENCE_S)));
        }
        ours.set_read_timeout(Some(LOOK_EVERY))?;
        // It says when it has all it needs to begin with: no function pays for that with its time.
        match self.receive(&mut live, None) {
            Ok(_) => Ok(live),
            Err(Broken::Died(_)) => Err(Broken::Died(live.end(END_PATIENCE_S))),
            Err(job) => {
                live.end(0.0);
                Err(job)
            }
        }
    }

    /// Asks process `number`, which is started if it is not there, and answers its generation and what it says, whose bytes
    /// lie in its scratch space.
    fn ask(&self, process: &mut Process, request: &Request, sent: &[u8]) -> Result<Answer, Broken> {
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
        let answer = match answer {
            Ok(answer) => {
                let bytes = answer.bytes + answer.said_bytes;
                live.memory.read(bytes, &mut process.scratch)?;
                live.memory.shrink(8 * PIECE_BYTES as u64)?;
                Ok(answer)
            }
            Err(broken) => {
                let mut live = process.live.take().expect("it was asked");
                let patience = match broken {
                    Broken::Died(_) => END_PATIENCE_S,
                    Broken::Job(_) => 0.0,
                };
                let how = live.end(patience);
                self.died.fetch_add(1, Ordering::Relaxed);
                Err(match broken {
                    Broken::Died(_) => Broken::Died(how),
                    job => job,
                })
            }
        };
        if process.scratch.capacity() > 8 * PIECE_BYTES {
            process.scratch.shrink_to(8 * PIECE_BYTES);
        }
        answer
    }

    fn exchange(
        &self,
        live: &mut Live,
        request: &Request,
        sent: &[u8],
        deadline: Option<Instant>,
    ) -> Result<Answer, Broken> {
        live.memory.write(sent)?;
        if request.send(&mut live.stream).is_err() {
            return Err(Broken::Died(String::new()));
        }
        let timeout = self.functions[request.function].timeout;
        let answer = self.receive(live, deadline.zip(timeout))?;
        // Looked at once more when it is done: short calls are never looked at while they work.
        self.look(live, None)?;
        Ok(answer)
    }

    /// The next answer of a process; with a deadline, and how long that was at first.
    fn receive(
        &self,
        live: &mut Live,
        deadline: Option<(Instant, Duration)>,
    ) -> Result<Answer, Broken> {
        let (mut bytes, mut have) = ([0; ANSWER_BYTES], 0);
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
                self.look(live, deadline)?;
            }
        }
        Ok(Answer::of(&bytes))
    }

    /// Whether to wait on.
    fn look(&self, live: &Live, deadline: Option<(Instant, Duration)>) -> Result<(), Broken> {
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
        let Some(resident) = resident_bytes(live.id) else {
            return Ok(());
        };
        self.resident_bytes_peak
            .fetch_max(resident, Ordering::Relaxed);
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

    /// The process that the fewest workers are bound to, which one more is bound to now.
    fn bind(&self) -> usize {
        let mut bound = lock(&self.bound);
        let least = (0..bound.len()).min_by_key(|&at| bound[at]);
        let least = least.expect("a pool has a process");
        bound[least] += 1;
        least
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.end(false);
    }
}

impl Live {
    /// Waits so many seconds for its end, then kills it; says how it ended.
    fn end(&mut self, patience_s: f64) -> String {
        Python::attach(|py| {
            let end = || -> PyResult<String> {
                let end = py.import("sortmill._pool")?.getattr("end")?;
                end.call1((&self.child, patience_s))?.extract()
            };
            end().unwrap_or_else(|error| format!("it was lost: {error}"))
        })
    }
}

/// A function that is called in a process of a pool.
pub struct Pooled {
    definition: Arc<Definition>,
    number: usize,
    running: Arc<Running>,
    pool: Arc<Pool>,
    instance: u64,
    /// The process it is bound to, and which of those in its place has seen it.
    process: Option<(usize, u64)>,
    /// The batch, as it was sent.
    sent: Vec<u8>,
    count: usize,
    is_sample: bool,
    /// A piece of the answer, and how many of its records have been handed over.
    piece: Gathered,
    next: usize,
    has_more: bool,
    /// How many records of the answer lie in front of the piece's end.
    received: usize,
    /// How long the function worked for this piece, and what it counted meanwhile, as JSON.
    busy_ns: u64,
    said: Vec<u8>,
}

impl Pooled {
    pub fn new(
        definition: &Arc<Definition>,
        number: usize,
        running: &Arc<Running>,
        pool: &Arc<Pool>,
    ) -> Self {
        Self {
            definition: Arc::clone(definition),
            number,
            running: Arc::clone(running),
            instance: pool.instances.fetch_add(1, Ordering::Relaxed),
            pool: Arc::clone(pool),
            process: None,
            sent: Vec::new(),
            count: 0,
            is_sample: false,
            piece: Gathered::new(&definition.made_kinds),
            next: 0,
            has_more: false,
            received: 0,
            busy_ns: 0,
            said: Vec::new(),
        }
    }

    /// Asks for the next piece.
    fn ask(&mut self, ask: Ask) -> Result<(), Refused> {
        let mut attempt = 1;
        let mut ask_now = ask;
        // How many records of an answer that is asked for again have come before.
        let mut again = 0;
        loop {
            match self.ask_once(ask_now) {
                // All of this piece has come before.
                Ok(()) if self.received <= again && self.has_more => ask_now = Ask::More,
                Ok(()) => {
                    let behind = self.received.saturating_sub(again);
                    self.next = self.piece.len().saturating_sub(behind);
                    if !self.is_sample {
                        let of = if ask == Ask::Call { self.count } else { 0 };
                        let made = self.piece.len() - self.next;
                        self.running.tally(self.number, of, made, self.busy_ns);
                        if again == 0 {
                            self.running.count(&self.said);
                        }
                    }
                    return Ok(());
                }
                Err((at, Broken::Job(error))) => return Err((at, error)),
                Err((at, Broken::Died(how))) => {
                    self.next = 0;
                    let is_lost = self.definition.keeps_state && self.process.is_some();
                    let may_again = self.definition.is_pure && !is_lost && attempt < ATTEMPTS;
                    if !may_again {
                        return Err((at, Box::new(self.died(&how, is_lost, attempt))));
                    }
                    attempt += 1;
                    again = again.max(self.received);
                    self.received = 0;
                    ask_now = if ask == Ask::Finish { ask } else { Ask::Call };
                }
            }
        }
    }

    fn died(&self, how: &str, is_lost: bool, attempt: u32) -> Error {
        let name = &self.definition.name;
        let again = match self.definition.is_pure {
            false => "it is not declared pure, so nobody may call it with the same records again"
                .to_owned(),
            true if is_lost => "what its object kept is lost".to_owned(),
            true => format!("this happened {attempt} times with the same records"),
        };
        let error = function_error(format!("the process that called {name} {how}; {again}"));
        match self.definition.is_pure {
            true => error,
            false => error.hint("Declare it with pure=True if a batch may be given to it twice."),
        }
    }

    fn ask_once(&mut self, ask: Ask) -> Result<(), (usize, Broken)> {
        let pool = Arc::clone(&self.pool);
        let (at, known) = match self.process {
            Some((at, generation)) => (at, Some(generation)),
            None => (pool.bind(), None),
        };
        let mut process = lock(&pool.processes[at]);
        let is_gone =
            known.is_some_and(|known| process.live.is_none() || known != process.generation);
        // Whoever it was bound to died while somebody else asked it.
        if is_gone && (self.definition.keeps_state || ask == Ask::More) {
            let error = Broken::Died("died".to_owned());
            if !self.definition.keeps_state {
                self.process = Some((at, process.generation));
            }
            return Err((0, error));
        }
        if known.is_none() {
            self.process = Some((at, process.generation));
        }
        let sent: &[u8] = if ask == Ask::Call { &self.sent } else { &[] };
        let request = Request {
            ask,
            function: self.number,
            instance: self.instance,
            is_sample: self.is_sample,
            count: self.count,
            bytes: sent.len(),
        };
        let answer = pool.ask(&mut process, &request, sent);
        self.process = Some((at, process.generation));
        let answer = answer.map_err(|broken| (0, broken))?;
        let (bytes, said) = process.scratch.split_at(answer.bytes);
        if answer.is_failure {
            return Err((answer.at, Broken::Job(Box::new(self.failure(bytes)))));
        }
        self.piece.read(answer.count, bytes).ok_or_else(|| {
            let cause = "a worker process answered what is no batch";
            let error = Error::new(ErrorKind::Corrupt, "asking a worker process", cause);
            (0, Broken::Job(Box::new(error)))
        })?;
        self.busy_ns = answer.busy_ns;
        self.said.clear();
        self.said.extend_from_slice(said);
        self.next = 0;
        self.received += answer.count;
        self.has_more = answer.has_more;
        Ok(())
    }

    /// The error that a process pickled.
    fn failure(&self, bytes: &[u8]) -> Error {
        Python::attach(|py| {
            let unpickled = || -> PyResult<(String, String, Option<Py<PyAny>>)> {
                let unpickle = py.import("sortmill._pool")?.getattr("failure")?;
                unpickle.call1((PyBytes::new(py, bytes),))?.extract()
            };
            match unpickled() {
                Ok((kind, cause, raised)) => {
                    if let Some(raised) = raised {
                        self.running.raise(PyErr::from_value(raised.into_bound(py)));
                    }
                    let error = function_error(cause);
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
}

impl BatchFn for Pooled {
    fn call(&mut self, batch: &Gathered, is_sample: bool) -> Result<(), Refused> {
        self.sent.clear();
        batch.write(0..batch.len(), &mut self.sent);
        (self.count, self.is_sample) = (batch.len(), is_sample);
        (self.received, self.next) = (0, 0);
        self.ask(Ask::Call)
    }

    fn rows(&mut self, sink: RowSink<'_>, is_full: &dyn Fn() -> bool) -> Result<bool, Error> {
        loop {
            let kinds = &self.definition.made_kinds;
            if !hand_over(&self.piece, kinds, &mut self.next, sink, is_full)? {
                return Ok(false);
            }
            if !self.has_more {
                return Ok(true);
            }
            if is_full() {
                return Ok(false);
            }
            self.ask(Ask::More).map_err(|(_, error)| *error)?;
        }
    }

    fn finish(&mut self, is_sample: bool) -> Result<(), Error> {
        self.piece.clear();
        (self.next, self.has_more, self.received) = (0, false, 0);
        if !self.definition.keeps_state || self.process.is_none() {
            return Ok(());
        }
        (self.count, self.is_sample) = (0, is_sample);
        self.ask(Ask::Finish).map_err(|(_, error)| *error)
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        if let Some((at, _)) = self.process {
            lock(&self.pool.bound)[at] -= 1;
        }
    }
}
