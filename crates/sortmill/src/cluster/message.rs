//! What coordinator and nodes tell each other: JSON, a line each, through the pipes of the node's process.
//!
//! Records do not go this way, but for the few bytes at the seams of the output and the first and last record of each node.
//! Paths and keys are bytes, for neither need be text.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Details, Error, ErrorKind, Result, Room};
use crate::fingerprint::Fingerprint;
use crate::long::Ends;
use crate::order::KeyPart;
use crate::plan::Plan;
use crate::report::NodeReport;
use crate::stage::read::{Left, ReadTotals};
use crate::table::Boundary;

/// A message is no longer than this; the longest holds the names of all inputs and the boundaries of a node.
pub const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// What a node is told.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum ToNode {
    /// All it has to know to begin.
    Start(Box<Start>),
    /// Where the pairs stand that the node before has read, for the one that cannot find out by itself.
    GoOn(Left),
    /// Every record is where it belongs: this is where yours go.
    Write(Place),
}

/// What a node tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum FromNode {
    /// It listens at this port.
    Ready(u16),
    /// It has read and written so many bytes more.
    Moved(u64, u64),
    /// It has read its share: where the next node goes on.
    Reached(Left),
    /// It has sent and received all records.
    Distributed(Box<Distributed>),
    /// It has written its range.
    Done(Box<Done>),
    /// It ends.
    Failed(Failure),
}

/// The job, for one node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Start {
    /// The job's random number.
    pub job: u64,
    /// What connections have to show.
    pub secret: [u64; 2],
    /// Where the nodes listen, in their order.
    pub ports: Vec<u16>,
    /// The numbers; `plan.nodes` says which node this is.
    pub plan: Plan,
    /// The parts of the key, as the job has them.
    pub keys: Vec<KeyPart>,
    /// All inputs, in order, as they were when the job began.
    pub inputs: Vec<InputFile>,
    /// Ignore what is appended to them.
    pub as_of_start: bool,
    /// How many bad records may be left out.
    pub skip_bad: u64,
    /// The chunks to read: from this one, up to but not including the other.
    pub chunks: (u64, u64),
    /// The boundaries between nodes.
    pub between: Vec<Boundary>,
    /// Those between the partitions of this node.
    pub inside: Vec<Boundary>,
    /// The folders in each of which it may make one for temporary files.
    pub temps: Vec<Folder>,
    /// The program that compresses temporary data, if one does.
    pub temp_program: Option<Folder>,
    /// The output's file under its temporary name.
    #[serde(with = "path_bytes")]
    pub output: PathBuf,
    /// Whether somebody wants to know how far it is.
    pub tells_progress: bool,
}

/// The name of a folder or program, which need not be text.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Folder(#[serde(with = "path_bytes")] pub PathBuf);

/// An input, as it was when the job began.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct InputFile {
    /// Its name.
    #[serde(with = "path_bytes")]
    pub path: PathBuf,
    /// Device and inode.
    pub identity: (u64, u64),
    /// Its length.
    pub bytes: u64,
    /// When it last changed, in nanoseconds since 1970.
    pub changed_ns: i128,
}

/// Where a node's range lies in the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Place {
    /// Its first byte.
    pub from: u64,
    /// Bytes of the whole output.
    pub file_bytes: u64,
}

/// What a node has read and received.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Distributed {
    /// What was read.
    pub read: Read,
    /// The records that were cut out of it.
    pub input: Fingerprint,
    /// The records it has now: its own and those of others.
    pub fingerprint: Fingerprint,
    /// Bytes of its temporary files.
    pub spilled_bytes: u64,
}

/// What was read, as [`ReadTotals`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Read {
    bytes: u64,
    device_bytes: u64,
    record_bytes: u64,
    skipped: u64,
    skipped_bytes: u64,
    added_bytes: u64,
    skipped_first: Vec<Fault>,
}

impl Read {
    /// The message that says so.
    #[must_use]
    pub fn of(totals: &ReadTotals) -> Self {
        Self {
            bytes: totals.bytes,
            device_bytes: totals.device_bytes,
            record_bytes: totals.record_bytes,
            skipped: totals.skipped,
            skipped_bytes: totals.skipped_bytes,
            added_bytes: totals.added_bytes,
            skipped_first: totals.skipped_first.iter().map(Fault::of).collect(),
        }
    }

    /// Adds it to what other nodes read.
    pub fn add_to(&self, totals: &mut ReadTotals) {
        totals.bytes += self.bytes;
        totals.device_bytes += self.device_bytes;
        totals.record_bytes += self.record_bytes;
        totals.skipped += self.skipped;
        totals.skipped_bytes += self.skipped_bytes;
        totals.added_bytes += self.added_bytes;
        let faults = self.skipped_first.iter().map(Fault::error);
        totals.skipped_first.extend(faults);
    }
}

/// What a node has written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Done {
    /// What came out of its sorters.
    pub gathered: Fingerprint,
    /// Bytes of the output that share an aligned block with another node's, and where they go.
    pub edges: Vec<(u64, Vec<u8>)>,
    /// Its first and last record, if it has any.
    pub ends: Option<Ends>,
    /// What it did, for the report.
    pub report: NodeReport,
}

/// Why a node ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// The error.
    pub fault: Fault,
    /// It only saw what followed from something else: another node was gone, or it was told to end.
    pub followed: bool,
}

/// An error that goes from process to process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fault {
    kind: ErrorKind,
    doing: String,
    path: Option<Vec<u8>>,
    offset: Option<u64>,
    cause: String,
    hint: Option<Box<str>>,
    room: Option<Box<Room>>,
}

impl Fault {
    /// The message that tells of `error`.
    #[must_use]
    pub fn of(error: &Error) -> Self {
        let path = error.path.as_ref();
        Self {
            kind: error.kind,
            doing: error.doing.clone(),
            path: path.map(|path| path.as_os_str().as_bytes().to_vec()),
            offset: error.offset,
            cause: error.cause.clone(),
            hint: error.hint.clone(),
            room: error.room.clone(),
        }
    }

    /// The error it tells of.
    #[must_use]
    pub fn error(&self) -> Error {
        let path = self.path.clone();
        Error::of(Details {
            kind: self.kind,
            doing: self.doing.clone(),
            path: path.map(|path| OsString::from_vec(path).into()),
            offset: self.offset,
            cause: self.cause.clone(),
            hint: self.hint.clone(),
            room: self.room.clone(),
        })
    }
}

/// The message as a line.
pub fn line<T: Serialize>(message: &T) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("a message is text");
    line.push(b'\n');
    line
}

/// Lines out of a stream: takes bytes as they come, gives messages as they are complete.
#[derive(Default)]
pub struct Lines {
    bytes: Vec<u8>,
    /// So many of them hold no newline.
    seen: usize,
}

impl Lines {
    /// Takes what has come.
    ///
    /// # Errors
    /// More than a message may have, without an end.
    pub fn take(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(bytes);
        match self.bytes.len() > MESSAGE_BYTES_MAX {
            true => Err(garbled("a message does not end")),
            false => Ok(()),
        }
    }

    /// The next message.
    ///
    /// # Errors
    /// A line that is none.
    pub fn next_message<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        let Some(end) = memchr::memchr(b'\n', &self.bytes[self.seen..]) else {
            self.seen = self.bytes.len();
            return Ok(None);
        };
        let line: Vec<u8> = self.bytes.drain(..=self.seen + end).collect();
        self.seen = 0;
        let message = serde_json::from_slice(&line);
        message
            .map(Some)
            .map_err(|error| garbled(&error.to_string()))
    }
}

fn garbled(cause: &str) -> Error {
    let doing = "understanding what a node and its coordinator say";
    Error::new(ErrorKind::Corrupt, doing, cause)
}

/// Paths as bytes: a name need not be text.
mod path_bytes {
    use super::{OsStrExt, OsString, OsStringExt, Path, PathBuf};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().as_bytes().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Vec::<u8>::deserialize(from).map(|bytes| OsString::from_vec(bytes).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever pieces the bytes come in.
    #[test]
    fn messages_come_back_from_any_pieces() {
        let fault = Error::new(ErrorKind::Space, "writing", "no room")
            .at(Path::new(std::ffi::OsStr::from_bytes(b"/data/\xff name")))
            .offset(u64::MAX)
            .hint("Free some.")
            .room(u64::MAX, Some(1));
        let sent = [
            ToNode::GoOn(Left::default()),
            ToNode::Write(Place {
                from: 1,
                file_bytes: u64::MAX,
            }),
        ];
        let mut bytes: Vec<u8> = sent.iter().flat_map(line).collect();
        bytes.extend(line(&Fault::of(&fault)));
        for piece_bytes in 1..bytes.len() {
            let mut lines = Lines::default();
            let mut came = Vec::new();
            let mut told = None;
            for piece in bytes.chunks(piece_bytes) {
                lines.take(piece).unwrap();
                while came.len() < sent.len() {
                    let Some(message) = lines.next_message::<ToNode>().unwrap() else {
                        break;
                    };
                    came.push(message);
                }
                if came.len() == sent.len() && told.is_none() {
                    told = lines.next_message::<Fault>().unwrap();
                }
            }
            assert_eq!(came, sent, "pieces of {piece_bytes}");
            let told = told.unwrap().error();
            assert_eq!(told.to_string(), fault.to_string());
            assert_eq!((told.kind, &told.path), (fault.kind, &fault.path));
        }
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        for words in ["\n", "{}\n", "null\n", "{\"GoOn\":1}\n", "\u{0}\n"] {
            let mut lines = Lines::default();
            lines.take(words.as_bytes()).unwrap();
            assert!(lines.next_message::<ToNode>().is_err(), "{words:?}");
        }
        let mut lines = Lines::default();
        assert!(lines.take(&vec![b' '; MESSAGE_BYTES_MAX + 1]).is_err());
    }
}
