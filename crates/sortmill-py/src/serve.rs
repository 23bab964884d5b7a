//! A worker process: calls functions with the batches that another process hands it, one at a time.
//!
//! The socket to that process is this one's standard input; memory that both share is open under numbers it was told, one for
//! what is given and one for what is made of it. A function of batches gets columns as they lie in the one, and what it makes
//! is copied once, into the other.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::io::{IoSlice, Read, stdin};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use pyo3::prelude::*;
use sortmill::error::ErrorKind;
use sortmill::io::shared::{Mapped, Shared, die_with};
use sortmill::io::sync::spawn_owned;
use sortmill::pipeline::{Gathered, Laid, Laying};

use crate::arrow;
use crate::batched::{Caller, Definition, Failure, Kind};
use crate::columns::{Held, batch_in};
use crate::groups::Stream;
use crate::table::columns;
use crate::wire::{Answer, Ask, PIECE_BYTES, Request, counted};

/// Serves until nobody asks any more, in a process that was forked from one that has what it needs, or in its own.
#[pyfunction]
pub fn serve(py: Python<'_>, memory: (i32, i32), is_forked: bool) -> PyResult<()> {
    let mut stream = UnixStream::from(stdin().as_fd().try_clone_to_owned()?);
    if Answer::hello(is_forked).send(&mut stream).is_err() {
        // Nobody is there any more: it was forked ahead, and not needed.
        return Ok(());
    }
    let watched = stream.try_clone()?;
    // Whatever a function is doing, and whether it lets others go on or not.
    drop(spawn_owned("watch", move || die_with(&watched)));
    let module = py.import("sortmill._worker")?;
    module.call_method0("close_stdin")?;
    let (given, made) = (Shared::inherited(memory.0)?, Shared::inherited(memory.1)?);
    let Ok(payload) = py.detach(|| receive_payload(&mut stream, &given)) else {
        return Ok(());
    };
    let functions = load(&module, &payload);
    if Answer::default().send(&mut stream).is_err() {
        // Or by now.
        return Ok(());
    }
    let mut served = Served {
        functions,
        callers: HashMap::new(),
        open: HashMap::new(),
        streams: HashMap::new(),
        given: Given {
            shared: given,
            mapped: None,
            bytes: 0,
        },
        made,
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

/// Reads the functions, of which it is told how long they are, where they are given.
fn receive_payload(stream: &mut UnixStream, given: &Shared) -> std::io::Result<Vec<u8>> {
    let (mut length, mut payload) = ([0; 8], Vec::new());
    stream.read_exact(&mut length)?;
    given.read(u64::from_le_bytes(length) as usize, &mut payload)?;
    Ok(payload)
}

fn load(module: &Bound<'_, PyModule>, payload: &[u8]) -> PyResult<Vec<Arc<Definition>>> {
    type Names = Vec<(String, String)>;
    type Told = (String, Py<PyAny>, Names, Names, Vec<String>);
    let all: Vec<Told> = module.call_method1("load", (payload,))?.extract()?;
    let definition = |(kind, function, of, made, by): Told| -> PyResult<_> {
        let kind = Kind::of(&kind).expect("the other process knows the same");
        let (of, made) = (columns(of)?, columns(made)?);
        let definition = Definition::new(module.py(), kind, function, of, made)?;
        Ok(Arc::new(Definition { by, ..definition }))
    };
    all.into_iter().map(definition).collect()
}

struct Served {
    functions: PyResult<Vec<Arc<Definition>>>,
    /// By function, and by instance if it keeps state.
    callers: HashMap<(usize, u64), Caller>,
    /// Answers that have not been taken whole.
    open: HashMap<u64, Open>,
    /// Functions of groups at work.
    streams: HashMap<u64, Streaming>,
    given: Given,
    made: Shared,
}

/// A function of groups.
struct Streaming {
    stream: Stream,
    is_last: bool,
    /// What groups counted since it was told.
    said: Vec<u8>,
}

/// What was made, and how far it has been taken.
struct Open {
    made: Made,
    next: usize,
}

enum Made {
    Records(Gathered),
    /// None of them empty; the first is the one that is being taken.
    Columns(VecDeque<Held>),
}

impl Served {
    fn answer(&mut self, module: &Bound<'_, PyModule>, request: &Request) -> PyResult<Answer> {
        let py = module.py();
        let began = Instant::now();
        let is_of_groups = matches!(request.ask, Ask::Groups | Ask::LastGroups);
        if is_of_groups || self.streams.contains_key(&request.instance) {
            let mut answer = self.turn(module, request)?;
            answer.busy_ns = began.elapsed().as_nanos() as u64;
            return Ok(answer);
        }
        let made = match request.ask {
            Ask::More => None,
            _ => Some(self.made(py, request)),
        };
        let said = counted(py)?;
        let mut answer = Answer::default();
        match made {
            Some(Err(failure)) => answer = self.fail(module, failure)?,
            made => {
                if let Some(Ok(made)) = made {
                    self.open.insert(request.instance, Open { made, next: 0 });
                }
                let open = self.open.get_mut(&request.instance);
                let open = open.expect("it was asked for");
                open.put_piece(&self.made, &said, &mut answer)?;
                if !answer.has_more {
                    self.open.remove(&request.instance);
                }
            }
        }
        self.given.let_go()?;
        answer.busy_ns = began.elapsed().as_nanos() as u64;
        Ok(answer)
    }

    fn fail(&self, module: &Bound<'_, PyModule>, failure: Failure) -> PyResult<Answer> {
        let at = failure.at;
        let bytes = packed(module, failure)?;
        self.made.write(&bytes)?;
        Ok(Answer {
            is_failure: true,
            at,
            bytes: bytes.len(),
            ..Answer::default()
        })
    }

    /// Has a function of groups work through more records, or go on with those that it has.
    fn turn(&mut self, module: &Bound<'_, PyModule>, request: &Request) -> PyResult<Answer> {
        let py = module.py();
        let mut records = Vec::new();
        if request.ask != Ask::More {
            let mapped = self.given.map(request.bytes)?;
            records.extend_from_slice(mapped.bytes(request.bytes));
        }
        let definition = match definition_of(&self.functions, py, request) {
            Ok(definition) => definition,
            Err(failure) => return self.fail(module, failure),
        };
        let streaming = self.streams.entry(request.instance);
        let streaming = streaming.or_insert_with(|| {
            // Nobody waits for the end of this process when its job ends: nothing is ever raised there.
            Streaming {
                stream: Stream::start(definition, &Arc::default()),
                is_last: false,
                said: Vec::new(),
            }
        });
        streaming.is_last |= request.ask == Ask::LastGroups;
        let is_last = streaming.is_last;
        let stream = &mut streaming.stream;
        let turned = py.detach(|| stream.turn(&mut records, is_last, PIECE_BYTES));
        streaming.said.extend_from_slice(&turned.said);
        let said = match turned.is_through {
            true => std::mem::take(&mut streaming.said),
            false => Vec::new(),
        };
        if turned.failure.is_some() || turned.is_through && is_last {
            let streaming = self.streams.remove(&request.instance);
            py.detach(|| drop(streaming));
        }
        if let Some(failure) = turned.failure {
            return self.fail(module, failure);
        }
        let mut pieces = [IoSlice::new(&turned.made), IoSlice::new(&said)];
        self.made.write_pieces(&mut pieces)?;
        Ok(Answer {
            has_more: !turned.is_through,
            at: turned.of_open,
            count: turned.count,
            bytes: turned.made.len(),
            said_bytes: said.len(),
            ..Answer::default()
        })
    }

    fn made(&mut self, py: Python<'_>, request: &Request) -> Result<Made, Failure> {
        let definition = definition_of(&self.functions, py, request)?;
        let instance = if definition.keeps_state {
            request.instance
        } else {
            0
        };
        let key = (request.function, instance);
        if request.ask == Ask::Finish {
            return Ok(Made::Records(match self.callers.remove(&key) {
                Some(mut caller) => caller.finish(py)?,
                None => Gathered::new(&definition.made_kinds),
            }));
        }
        let mapped = self.given.map(request.bytes);
        let mapped = mapped.map_err(|error| Failure::raised(py, 0, error.into()))?;
        let bytes = mapped.bytes(request.bytes);
        let laid = Laid::find(&definition.kinds, request.count, bytes);
        let laid = laid.expect("the other process wrote a batch");
        let caller = self.callers.entry(key);
        let caller = caller.or_insert_with(|| Caller::new(definition));
        if definition.kind != Kind::Batches {
            let batch = Cow::Owned(laid.gathered(bytes));
            return caller.call(py, batch, &|| false).map(Made::Records);
        }
        let batch = batch_in(&definition.columns, &definition.schema, (&mapped, &laid));
        let batch = batch.map_err(Failure::given)?;
        drop(mapped);
        let mut made = VecDeque::from(caller.call_with_columns(py, batch)?);
        made.retain(|batch| batch.len() > 0);
        Ok(match made.is_empty() {
            true => Made::Records(Gathered::new(&definition.made_kinds)),
            false => Made::Columns(made),
        })
    }
}

/// What a request is about.
fn definition_of<'d>(
    functions: &'d PyResult<Vec<Arc<Definition>>>,
    py: Python<'_>,
    request: &Request,
) -> Result<&'d Arc<Definition>, Failure> {
    match functions {
        Ok(functions) => Ok(&functions[request.function]),
        Err(error) => Err(Failure::raised(py, 0, error.clone_ref(py))),
    }
}

impl Open {
    /// Puts the next piece into shared memory, and behind it what was `said`.
    fn put_piece(&mut self, memory: &Shared, said: &[u8], answer: &mut Answer) -> PyResult<()> {
        let from = self.next;
        let laying = match &mut self.made {
            Made::Records(made) => {
                answer.count = made.fitting(from, PIECE_BYTES);
                self.next += answer.count;
                answer.has_more = self.next < made.len();
                Laying::of(made, from..self.next, true)
            }
            Made::Columns(batches) => {
                if batches[0].len() == self.next {
                    batches.pop_front();
                    self.next = 0;
                }
                let (from, batch) = (self.next, &batches[0]);
                answer.count = batch.fitting(from, PIECE_BYTES);
                self.next += answer.count;
                answer.has_more = self.next < batch.len() || batches.len() > 1;
                batch.lay(&(from..self.next))
            }
        };
        answer.bytes = laying.bytes();
        answer.said_bytes = said.len();
        let mut pieces = laying.pieces();
        pieces.push(IoSlice::new(said));
        Ok(memory.write_pieces(&mut pieces)?)
    }
}

/// What the other process gives, where it lies in shared memory.
struct Given {
    shared: Shared,
    mapped: Option<Arc<Mapped>>,
    /// How much of it there is now.
    bytes: usize,
}

impl Given {
    /// The first `bytes` bytes, at least.
    fn map(&mut self, bytes: usize) -> std::io::Result<Arc<Mapped>> {
        self.bytes = bytes;
        if let Some(mapped) = self
            .mapped
            .as_ref()
            .filter(|mapped| mapped.length() >= bytes)
        {
            self.shared.check_length(bytes)?;
            return Ok(Arc::clone(mapped));
        }
        let mapped = Arc::new(arrow::mapped(&self.shared, bytes)?);
        self.mapped = Some(Arc::clone(&mapped));
        Ok(mapped)
    }

    /// The other process may write there again: what somebody still refers to, because a function kept it or not all of what
    /// it made has been taken, becomes a copy in the same place, and the shared memory is mapped anew.
    fn let_go(&mut self) -> std::io::Result<()> {
        if let Some(mapped) = &self.mapped
            && Arc::strong_count(mapped) > 1
        {
            mapped.keep(self.bytes)?;
            self.mapped = None;
        }
        Ok(())
    }
}

fn packed(module: &Bound<'_, PyModule>, failure: Failure) -> PyResult<Vec<u8>> {
    let kind = match failure.error.kind {
        ErrorKind::Input => "Input",
        ErrorKind::Memory => "Memory",
        _ => "Function",
    };
    let raised = failure.raised.map(|raised| raised.into_value(module.py()));
    let error = &failure.error;
    let told = (kind, &error.cause, error.hint.as_deref(), raised);
    let packed = module.call_method1("packed", told)?;
    packed.extract()
}
