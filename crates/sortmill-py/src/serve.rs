//! A worker process: calls functions with the batches that another process hands it, one at a time.
//!
//! The socket to that process is this one's standard input; the memory that both share is open under a number it was told.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{Read, stdin};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use pyo3::prelude::*;
use sortmill::error::ErrorKind;
use sortmill::io::shared::{Shared, die_with};
use sortmill::io::sync::spawn_owned;
use sortmill::pipeline::Gathered;

use crate::batched::{Caller, Definition, Failure, Kind};
use crate::table::columns;
use crate::wire::{Answer, Ask, PIECE_BYTES, Request, counted};

/// Serves until nobody asks any more.
#[pyfunction]
pub fn serve(py: Python<'_>, memory_number: i32) -> PyResult<()> {
    let mut stream = UnixStream::from(stdin().as_fd().try_clone_to_owned()?);
    let watched = stream.try_clone()?;
    // Whatever a function is doing, and whether it lets others go on or not.
    drop(spawn_owned("watch", move || die_with(&watched)));
    let module = py.import("sortmill._worker")?;
    module.call_method0("close_stdin")?;
    let memory = Shared::inherited(memory_number)?;
    let payload = py.detach(|| receive_payload(&mut stream))?;
    let functions = load(&module, &payload);
    Answer::default().send(&mut stream)?;
    let mut served = Served {
        functions,
        callers: HashMap::new(),
        open: HashMap::new(),
        memory,
        bytes: Vec::new(),
    };
    loop {
        let Some(request) = py.detach(|| Request::receive(&mut stream))? else {
            return Ok(());
        };
        if request.ask == Ask::Quit {
            return Ok(());
        }
        let answer = served.answer(&module, &request)?;
        answer.send(&mut stream)?;
    }
}

fn receive_payload(stream: &mut UnixStream) -> std::io::Result<Vec<u8>> {
    let mut length = [0; 8];
    stream.read_exact(&mut length)?;
    let mut payload = Vec::new();
    let length = u64::from_le_bytes(length);
    Read::take(stream, length).read_to_end(&mut payload)?;
    Ok(payload)
}

fn load(module: &Bound<'_, PyModule>, payload: &[u8]) -> PyResult<Vec<Arc<Definition>>> {
    type Names = Vec<(String, String)>;
    let all: Vec<(String, Py<PyAny>, Names, Names)> =
        module.call_method1("load", (payload,))?.extract()?;
    let definition = |(kind, function, of, made): (String, Py<PyAny>, Names, Names)| {
        let kind = Kind::of(&kind).expect("the other process knows the same");
        let definition = Definition::new(module.py(), kind, function, columns(of)?, columns(made)?);
        definition.map(Arc::new)
    };
    all.into_iter().map(definition).collect()
}

struct Served {
    functions: PyResult<Vec<Arc<Definition>>>,
    /// By function, and by instance if it keeps state.
    callers: HashMap<(usize, u64), Caller>,
    /// Answers that have not been taken whole, and how far they have.
    open: HashMap<u64, (Gathered, usize)>,
    memory: Shared,
    bytes: Vec<u8>,
}

impl Served {
    fn answer(&mut self, module: &Bound<'_, PyModule>, request: &Request) -> PyResult<Answer> {
        let py = module.py();
        let began = Instant::now();
        let made = match request.ask {
            Ask::More => None,
            _ => Some(self.made(py, request)),
        };
        let busy_ns = began.elapsed().as_nanos() as u64;
        let said = counted(py)?;
        match made {
            Some(Err(failure)) => {
                let at = failure.at;
                self.bytes = packed(module, failure)?;
                self.memory.write(&self.bytes)?;
                return Ok(Answer {
                    is_failure: true,
                    at,
                    bytes: self.bytes.len(),
                    busy_ns,
                    ..Answer::default()
                });
            }
            Some(Ok(made)) => {
                self.open.insert(request.instance, (made, 0));
            }
            None => {}
        }
        let (made, next) = self
            .open
            .get_mut(&request.instance)
            .expect("it was asked for");
        let count = made.fitting(*next, PIECE_BYTES);
        self.bytes.clear();
        made.write(*next..*next + count, &mut self.bytes);
        *next += count;
        let answer = Answer {
            has_more: *next < made.len(),
            count,
            bytes: self.bytes.len(),
            said_bytes: said.len(),
            busy_ns,
            ..Answer::default()
        };
        if !answer.has_more {
            self.open.remove(&request.instance);
        }
        self.bytes.extend_from_slice(&said);
        self.memory.write(&self.bytes)?;
        Ok(answer)
    }

    fn made(&mut self, py: Python<'_>, request: &Request) -> Result<Gathered, Failure> {
        let functions = self.functions.as_ref();
        let functions = functions.map_err(|error| Failure::raised(py, 0, error.clone_ref(py)))?;
        let definition = &functions[request.function];
        let instance = if definition.keeps_state {
            request.instance
        } else {
            0
        };
        let key = (request.function, instance);
        if request.ask == Ask::Finish {
            let caller = self.callers.remove(&key);
            let finish = |mut caller: Caller| caller.finish(py);
            return caller.map_or_else(|| Ok(Gathered::new(&definition.made_kinds)), finish);
        }
        let mut batch = Gathered::new(&definition.kinds);
        let read = self.memory.read(request.bytes, &mut self.bytes);
        read.map_err(|error| Failure::raised(py, 0, error.into()))?;
        let is_batch = batch.read(request.count, &self.bytes);
        is_batch.expect("the other process wrote a batch");
        let caller = self.callers.entry(key);
        caller
            .or_insert_with(|| Caller::new(definition))
            .call(py, Cow::Owned(batch), &|| false)
    }
}

fn packed(module: &Bound<'_, PyModule>, failure: Failure) -> PyResult<Vec<u8>> {
    let kind = match failure.error.kind {
        ErrorKind::Input => "Input",
        ErrorKind::Memory => "Memory",
        _ => "Function",
    };
    let raised = failure.raised.map(|raised| raised.into_value(module.py()));
    let packed = module.call_method1("packed", (kind, failure.error.cause, raised))?;
    packed.extract()
}
