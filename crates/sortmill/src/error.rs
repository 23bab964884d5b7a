//! What can go wrong, told to the one who must act: kind, what was being done, where, cause, a hint.

use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Who must act.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The request cannot be carried out as it was put.
    Usage,
    /// An input is missing, unreadable or not what its format says.
    Input,
    /// A function of the user's failed, or made what it should not.
    Function,
    /// An input changed while it was read.
    Changed,
    /// Not enough room on a disk.
    Space,
    /// A limit of memory was met that no plan can go around.
    Memory,
    /// The system or a device failed.
    Io,
    /// Temporary data or the output did not come back as it was written.
    Corrupt,
    /// Whoever read the output has gone away.
    Reader,
    /// Somebody asked the job to stop.
    Interrupted,
    /// Records were lost, doubled or out of order: a fault of this program, found before the output got
    /// its name.
    Lost,
}

/// An operating error. Prints as one line, and a hint after a blank line. It is one pointer to its [`Details`], since functions
/// that are called for every record answer whether they failed.
#[derive(Clone, Debug)]
pub struct Error(Box<Details>);

/// What an [`Error`] tells.
#[derive(Clone, Debug)]
pub struct Details {
    /// Who must act.
    pub kind: ErrorKind,
    /// What was being done, as `reading the input`.
    pub doing: String,
    /// The file, if there is one.
    pub path: Option<PathBuf>,
    /// The byte offset in it, if one is known.
    pub offset: Option<u64>,
    /// Why.
    pub cause: String,
    /// What to do about it.
    pub hint: Option<Box<str>>,
    /// Of a disk that is full, what is known of how much is needed.
    pub room: Option<Box<Room>>,
}

/// How much room there should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Room {
    /// What is needed, as far as it can be foreseen.
    pub needed_bytes: u64,
    /// How much more would have to be free for that.
    pub missing_bytes: Option<u64>,
}

impl Error {
    /// An error of `kind` while `doing` something, because of `cause`.
    pub fn new(kind: ErrorKind, doing: impl Into<String>, cause: impl Into<String>) -> Self {
        Self::of(Details {
            kind,
            doing: doing.into(),
            path: None,
            offset: None,
            cause: cause.into(),
            hint: None,
            room: None,
        })
    }

    /// The error that tells this.
    #[must_use]
    pub fn of(details: Details) -> Self {
        Self(Box::new(details))
    }

    /// A failed system call while `doing` something with `path`. A full disk becomes
    /// [`ErrorKind::Space`], a request to stop [`ErrorKind::Interrupted`].
    pub fn io(doing: &str, path: &Path, error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Space,
            io::ErrorKind::Interrupted => ErrorKind::Interrupted,
            _ => ErrorKind::Io,
        };
        let told = Self::new(kind, doing, error.to_string()).at(path);
        match sortmill_io::os::is_out_of_descriptors(error) {
            true => told.hint(
                "Raise the limit of open files: ulimit -n 64 is enough for any number of inputs.",
            ),
            false => told,
        }
    }

    /// A failed write while `doing` something with `path`: as [`Error::io`], and [`ErrorKind::Reader`] where nobody reads any more.
    pub fn writing(doing: &str, path: &Path, error: &io::Error) -> Self {
        let told = Self::io(doing, path, error);
        match error.kind() {
            io::ErrorKind::BrokenPipe => told.kind(ErrorKind::Reader),
            _ => told,
        }
    }

    /// The same error with the file it is about.
    #[must_use]
    pub fn at(mut self, path: &Path) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    /// The same error with the byte offset it is about.
    #[must_use]
    pub fn offset(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }

    /// The same error with the kind that its place tells.
    #[must_use]
    pub fn kind(mut self, kind: ErrorKind) -> Self {
        self.kind = kind;
        self
    }

    /// The same error with a way out of it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into().into_boxed_str());
        self
    }

    /// The same error without one.
    #[must_use]
    pub fn without_hint(mut self) -> Self {
        self.hint = None;
        self
    }

    /// The same error with how much room is needed, and how much of that is missing, if it is known and any is.
    #[must_use]
    pub fn room(mut self, needed_bytes: u64, missing_bytes: Option<u64>) -> Self {
        self.room = Some(Box::new(Room {
            needed_bytes,
            missing_bytes: missing_bytes.filter(|&bytes| bytes > 0),
        }));
        self
    }

    /// The error of a job that was told to stop.
    #[must_use]
    pub fn interrupted() -> Self {
        Self::new(
            ErrorKind::Interrupted,
            "running the job",
            "it was told to stop",
        )
    }
}

impl Deref for Error {
    type Target = Details;

    fn deref(&self) -> &Details {
        &self.0
    }
}

impl DerefMut for Error {
    fn deref_mut(&mut self) -> &mut Details {
        &mut self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            let shown = if path.as_os_str() == "-" {
                "standard stream".into()
            } else {
                path.display().to_string()
            };
            write!(out, "{shown}: ")?;
            if let Some(offset) = self.offset {
                write!(out, "at byte {offset}: ")?;
            }
        }
        write!(out, "{}: {}", self.doing, self.cause)?;
        if let Some(hint) = &self.hint {
            write!(out, "\n\n{hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// What fallible functions of this crate answer.
pub type Result<T> = std::result::Result<T, Error>;
