//! An input, opened: what it was when the job began, and whether it still is.

use std::path::Path;

use sortmill_io::codec::{HEADER_BYTES_MAX, Sniffed, is_lzma, skipped_bytes, sniff};
use sortmill_io::os::{Access, Kind, Meta};
use sortmill_io::process::pause;
use sortmill_io::sync::Arc;
use sortmill_io::{File, Os};

use super::DOING;
use super::packed::first_bytes;
use crate::chunks::Extent;
use crate::error::{Error, ErrorKind, Result};
use crate::job::Input;
use crate::made::Made;
use crate::queue::Stop;

/// An opened input.
pub struct Source {
    /// The file.
    pub file: Arc<File>,
    /// What it was when the job began.
    pub meta: Meta,
    /// It is read as a stream and is a file, which each that opens it reads from its beginning.
    pub begins_anew: bool,
    /// How it is compressed, if it is a file that is and shall be read as what it was before. Of a stream that shows
    /// when it comes.
    pub codec: Option<Sniffed>,
    /// What has been read of a stream already, from its beginning.
    pub ahead: Vec<u8>,
    /// Who makes its bytes, if it is a stream that nobody opens. The file is then one that is always there and is not read.
    pub made: Option<Made>,
}

/// Files below this are read through the page cache: they are likely to be there.
pub const DIRECT_BYTES_MIN: u64 = 64 << 20;
/// The same of inputs that are merged.
const DIRECT_MERGED_BYTES_MIN: u64 = 1 << 20;

/// Whoever appends has a file's time changed first and its length a moment later: so often that is waited for, so many
/// nanoseconds at a time.
const APPENDING_LOOKS: usize = 20;
const APPENDING_PAUSE_NS: u32 = 1_000_000;
/// So much is read of a file to see what lies behind frames that are skipped.
const SKIPPED_BYTES_MAX: usize = 1 << 20;

/// What can be read as often as one likes: there is nothing in it.
pub const NOTHING: &str = "/dev/null";

impl Source {
    /// Whether what is read of it once is gone for whoever opens it again.
    #[must_use]
    pub fn is_pipe(&self) -> bool {
        let is_stream = self.meta.kind == Kind::Stream && self.made.is_none();
        is_stream && !self.begins_anew && self.file.path != Path::new(NOTHING)
    }

    /// Opens an input, with direct I/O if it is a large file that the page cache does not hold. Its first bytes tell
    /// whether it is compressed, if that is asked for.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] with the path: missing, unreadable, a directory.
    pub fn open(os: &dyn Os, input: &Input, decompress: bool) -> Result<Self> {
        Self::open_as(os, input, decompress, DIRECT_BYTES_MIN)
    }

    /// The same of one of many that are merged: together they are large, so smaller ones are read with direct I/O.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub fn open_merged(os: &dyn Os, input: &Input, decompress: bool) -> Result<Self> {
        Self::open_as(os, input, decompress, DIRECT_MERGED_BYTES_MIN)
    }

    fn open_as(
        os: &dyn Os,
        input: &Input,
        decompress: bool,
        direct_bytes_min: u64,
    ) -> Result<Self> {
        let path = input.path();
        let wrong = |error: std::io::Error| {
            Error::io("opening the input", path, &error).kind(ErrorKind::Input)
        };
        let mut file = match input {
            Input::Stdin => os.stdin().map_err(wrong)?,
            Input::Path(path) => os.open(path, Access::Cached).map_err(wrong)?,
            Input::Made(made) => return Self::made(os, made).map_err(wrong),
        };
        let mut meta = os.meta(&file).map_err(wrong)?;
        if input == &Input::Stdin && meta.kind == Kind::Regular {
            // A file as standard input begins where its last reader stopped, which only reading on tells.
            meta.kind = Kind::Stream;
            meta.bytes = 0;
        }
        let is_file = meta.kind == Kind::Regular;
        if is_file && os.is_made_when_read(&file) {
            meta.kind = Kind::Stream;
            meta.bytes = 0;
        }
        if meta.kind == Kind::Regular && meta.bytes == 0 {
            // Others too, as of file systems that a program serves, say that they are empty and are not.
            let peek = os.open(path, Access::Cached).map_err(wrong)?;
            let some = os.read_stream(&peek, &mut [0], &|| false).map_err(wrong)?;
            if some > 0 {
                meta.kind = Kind::Stream;
            }
        }
        let begins_anew = is_file && meta.kind == Kind::Stream;
        if meta.kind == Kind::Directory {
            return Err(
                Error::new(ErrorKind::Input, "opening the input", "it is a directory").at(path),
            );
        }
        let mut codec = None;
        if decompress && meta.kind == Kind::Regular {
            let mut start = first_bytes(os, path, HEADER_BYTES_MAX).map_err(wrong)?;
            let skipped = skipped_bytes(&start);
            if skipped > 0 && skipped >= start.len() as u64 {
                start = first_bytes(os, path, SKIPPED_BYTES_MAX).map_err(wrong)?;
            }
            codec = match skipped_bytes(&start) {
                0 => sniff(&start),
                skipped if skipped >= start.len() as u64 => return Err(hidden(path)),
                _ => sniff(&start),
            };
            if is_called_lzma(path) && is_lzma(&start) {
                let cause = "it is compressed as .lzma, which nothing here reads";
                let error = Error::new(ErrorKind::Input, "opening the input", cause).at(path);
                return Err(error.hint(
                    "`xz --format=lzma -dc` reads it; to sort the bytes that it has, give --no-decompress.",
                ));
            }
        }
        let large = meta.kind == Kind::Regular && meta.bytes >= direct_bytes_min;
        if large && os.cached_share(&file, meta.bytes) < 0.5 {
            file = os.open(path, Access::Direct).map_err(wrong)?;
            if os.meta(&file).map_err(wrong)?.identity != meta.identity {
                return Err(replaced(path));
            }
        }
        Ok(Self {
            file: Arc::new(file),
            meta,
            begins_anew,
            codec,
            ahead: Vec::new(),
            made: None,
        })
    }

    /// One whose bytes are made.
    fn made(os: &dyn Os, made: &Made) -> std::io::Result<Self> {
        let mut file = os.open(Path::new(NOTHING), Access::Cached)?;
        let meta = os.meta(&file)?;
        made.name().clone_into(&mut file.path);
        Ok(Self {
            file: Arc::new(file),
            meta,
            begins_anew: false,
            codec: None,
            ahead: Vec::new(),
            made: Some(made.clone()),
        })
    }

    /// Fills some of `into` with what comes next of a stream of which `offset` bytes have come. Answers how many bytes; none
    /// is its end.
    ///
    /// # Errors
    /// The system's with the place, or that of who makes it.
    pub fn read_stream(
        &self,
        os: &dyn Os,
        into: &mut [u8],
        offset: u64,
        stop: &Stop,
    ) -> Result<usize> {
        if let Some(made) = &self.made {
            stop.check()?;
            return made.read(into);
        }
        let moved = os.read_stream(&self.file, into, &|| stop.is_stopped());
        moved.map_err(|error| Error::io(DOING, &self.file.path, &error).offset(offset))
    }

    /// What chunks can be cut from it.
    #[must_use]
    pub fn extent(&self) -> Extent {
        match self.meta.kind {
            Kind::Regular if self.codec.is_none() => Extent::File(self.meta.bytes),
            Kind::Regular | Kind::Directory | Kind::Stream => Extent::Stream,
        }
    }

    /// Fills the beginning of `into` with what has been read of it already from its byte `at` on. How many bytes those
    /// are.
    pub(super) fn ahead_into(&self, at: usize, into: &mut [u8]) -> usize {
        let ahead = self.ahead.get(at..).unwrap_or_default();
        let count = ahead.len().min(into.len());
        into[..count].copy_from_slice(&ahead[..count]);
        count
    }

    /// The error of a file that ends at `offset` now.
    pub(super) fn shortened(&self, offset: u64) -> Error {
        let bytes = self.meta.bytes;
        let cause = format!("the file ends here now, and had {bytes} bytes at the start");
        let error = Error::new(ErrorKind::Changed, DOING, cause);
        error.at(&self.file.path).offset(offset)
    }

    /// How many bytes longer the file is than it was when the job began.
    #[must_use]
    pub fn grown_bytes(&self, os: &dyn Os) -> u64 {
        let is_file = self.meta.kind == Kind::Regular;
        let now = is_file.then(|| os.meta(&self.file).ok()).flatten();
        now.map_or(0, |now| now.bytes.saturating_sub(self.meta.bytes))
    }

    /// Whether the file is still what it was when the job began, or has at most grown where `as_of_start` allows that.
    ///
    /// # Errors
    /// [`ErrorKind::Changed`] if not.
    pub fn check_unchanged(&self, os: &dyn Os, as_of_start: bool) -> Result<()> {
        if self.meta.kind != Kind::Regular {
            return Ok(());
        }
        let look = || {
            os.meta(&self.file)
                .map_err(|error| Error::io(DOING, &self.file.path, &error))
        };
        let mut now = look()?;
        let is_same =
            |now: &Meta| now.bytes == self.meta.bytes && now.changed_ns == self.meta.changed_ns;
        if as_of_start {
            for _ in 0..APPENDING_LOOKS {
                if now.bytes != self.meta.bytes || is_same(&now) {
                    break;
                }
                pause(APPENDING_PAUSE_NS);
                now = look()?;
            }
        }
        if is_same(&now) || (as_of_start && now.bytes > self.meta.bytes) {
            return Ok(());
        }
        let cause = match now.bytes.cmp(&self.meta.bytes) {
            std::cmp::Ordering::Equal => "it was written to while it was read".to_owned(),
            _ => format!(
                "it had {} bytes at the start and has {} now",
                self.meta.bytes, now.bytes
            ),
        };
        let error = Error::new(ErrorKind::Changed, DOING, cause).at(&self.file.path);
        Err(if now.bytes > self.meta.bytes {
            error.hint("To sort what was there at the start, give --as-of-start.")
        } else {
            error
        })
    }
}

/// That another file has an input's name by now.
#[must_use]
pub fn replaced(path: &std::path::Path) -> Error {
    let cause = "another file has this name than at the start";
    Error::new(ErrorKind::Changed, "opening the input", cause).at(path)
}

/// Such files have no magic number, so their names must tell, too.
fn is_called_lzma(path: &std::path::Path) -> bool {
    let extension = path.extension();
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("lzma"))
}

/// The devices that `sources` lie on, if all are files.
#[must_use]
pub fn devices(sources: &[Source]) -> Vec<u64> {
    let mut devices = Vec::new();
    for source in sources {
        if source.extent() == Extent::Stream {
            return Vec::new();
        }
        if !devices.contains(&source.meta.identity.0) {
            devices.push(source.meta.identity.0);
        }
    }
    devices
}

/// The error of a file of which only frames that are skipped were seen.
fn hidden(path: &std::path::Path) -> Error {
    let cause =
        "it begins with frames that zstd and lz4 skip, and has nothing else in its first MiB";
    let error = Error::new(ErrorKind::Input, "opening the input", cause).at(path);
    error.hint("To sort the bytes that it has, give --no-decompress.")
}
