//! What a process and its worker process say to one another: fixed headers over a socket, records in shared memory.
//!
//! ```text
//! request  kind  function  instance  is_sample  count  bytes          u64 each, little-endian
//! answer   is_failure  has_more  at  count  bytes  said_bytes  busy_ns
//! ```
//!
//! A process first says who it is, then reads a length and that many bytes, the functions, and says that it has them. Then
//! one speaks, then the other; what is given lies in one shared memory, what is made in another: `count` records in `bytes`
//! bytes (`sortmill::pipeline::Laid`), and behind what is made `said_bytes` bytes of counters, as JSON. A failure's bytes are
//! pickled.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use pyo3::prelude::*;
use sortmill::error::{Error, ErrorKind};
use sortmill::pipeline::BATCH_BYTES;

/// Records come back in pieces of about so many bytes.
pub const PIECE_BYTES: usize = BATCH_BYTES;

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Call a function with the records in memory, and answer the first piece of what it makes.
    Call,
    /// The next piece.
    More,
    /// What an instance makes when there are no more records.
    Finish,
    /// Go on with the records of groups in memory.
    Groups,
    /// The same, and none come behind them.
    LastGroups,
    /// End.
    Quit,
}

const ASKS: [Ask; 6] = [
    Ask::Call,
    Ask::More,
    Ask::Finish,
    Ask::Groups,
    Ask::LastGroups,
    Ask::Quit,
];

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub ask: Ask,
    pub function: usize,
    /// Whose state and answers are meant.
    pub instance: u64,
    pub is_sample: bool,
    pub count: usize,
    pub bytes: usize,
}

/// An answer.
#[derive(Clone, Copy, Default, Debug)]
pub struct Answer {
    pub is_failure: bool,
    pub has_more: bool,
    /// Which record a failure is about; of groups how many records the one that is open has made so far.
    pub at: usize,
    pub count: usize,
    pub bytes: usize,
    pub said_bytes: usize,
    /// How long the function worked.
    pub busy_ns: u64,
}

const REQUEST_BYTES: usize = 6 * 8;
pub const ANSWER_BYTES: usize = 7 * 8;

impl Request {
    /// One about nothing yet.
    pub fn new(ask: Ask) -> Self {
        Self {
            ask,
            function: 0,
            instance: 0,
            is_sample: false,
            count: 0,
            bytes: 0,
        }
    }

    pub fn send(&self, to: &mut UnixStream) -> std::io::Result<()> {
        let ask = ASKS.iter().position(|&ask| ask == self.ask);
        let words = [
            ask.expect("it is one of them") as u64,
            self.function as u64,
            self.instance,
            u64::from(self.is_sample),
            self.count as u64,
            self.bytes as u64,
        ];
        to.write_all(&words.map(u64::to_le_bytes).concat())
    }

    /// The next request; `None` when nobody asks any more.
    pub fn receive(from: &mut UnixStream) -> std::io::Result<Option<Self>> {
        use std::io::ErrorKind::{ConnectionReset, UnexpectedEof};
        let mut bytes = [0; REQUEST_BYTES];
        match from.read_exact(&mut bytes) {
            // Reset is what whoever went away leaves where he has not read all answers.
            Err(error) if matches!(error.kind(), UnexpectedEof | ConnectionReset) => {
                return Ok(None);
            }
            done => done?,
        }
        let words = words(&bytes);
        let ask = ASKS.get(words[0] as usize).copied();
        Ok(ask.map(|ask| Self {
            ask,
            function: words[1] as usize,
            instance: words[2],
            is_sample: words[3] != 0,
            count: words[4] as usize,
            bytes: words[5] as usize,
        }))
    }
}

impl Answer {
    /// What a process says first of all: its number, and whether it was forked. That of its server that it could not be is
    /// a failure, with the system's error as a number.
    pub fn hello(is_forked: bool) -> Self {
        Self {
            at: std::process::id() as usize,
            count: usize::from(is_forked),
            ..Self::default()
        }
    }

    pub fn send(&self, to: &mut UnixStream) -> std::io::Result<()> {
        let words = [
            u64::from(self.is_failure),
            u64::from(self.has_more),
            self.at as u64,
            self.count as u64,
            self.bytes as u64,
            self.said_bytes as u64,
            self.busy_ns,
        ];
        to.write_all(&words.map(u64::to_le_bytes).concat())
    }

    pub fn of(bytes: &[u8; ANSWER_BYTES]) -> Self {
        let words = words(bytes);
        Self {
            is_failure: words[0] != 0,
            has_more: words[1] != 0,
            at: words[2] as usize,
            count: words[3] as usize,
            bytes: words[4] as usize,
            said_bytes: words[5] as usize,
            busy_ns: words[6],
        }
    }
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let eight = bytes.chunks_exact(8);
    eight
        .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
        .collect()
}

/// The error of an answer that is none.
pub fn no_batch() -> Error {
    let cause = "a worker process answered what is no batch";
    Error::new(ErrorKind::Corrupt, "asking a worker process", cause)
}

/// What a function counted since this was last asked, in this thread, as JSON; empty if nothing.
pub fn counted(py: Python<'_>) -> PyResult<Vec<u8>> {
    let module = py.import(pyo3::intern!(py, "sortmill._functions"))?;
    module.call_method0(pyo3::intern!(py, "counted"))?.extract()
}
