//! The one seam to the outside: files, rings, clock, randomness and what the kernel knows of us.
//!
//! [`Os`] has the real machine ([`crate::host::Host`], with io_uring or with threads) and a
//! deterministic one with faults ([`crate::sim::Sim`]) behind it. The engine names neither.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::buffer::Buffer;
use crate::parked::Parked;
use crate::sim::SimFile;
use crate::sync::Arc;

/// An open file, with the path it was opened by for messages.
pub struct File {
    pub(crate) handle: Handle,
    /// The path as the caller gave it.
    pub path: PathBuf,
    /// How it was really opened: a file system without direct I/O answers `Cached`.
    pub access: Access,
}

pub(crate) enum Handle {
    Fd(OwnedFd),
    /// Open only while it is used.
    Parked(Parked),
    Sim(Arc<SimFile>),
}

impl File {
    /// The descriptor of a parked file, which stays open as long as that is kept; `None` for one that is always open.
    pub(crate) fn unpark(&self) -> io::Result<Option<std::sync::Arc<OwnedFd>>> {
        match &self.handle {
            Handle::Parked(parked) => parked.open(&self.path).map(Some),
            Handle::Fd(_) | Handle::Sim(_) => Ok(None),
        }
    }
}

/// Whether bytes go past the page cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// `O_DIRECT`: offsets, lengths and addresses are multiples of 4 KiB.
    Direct,
    /// Through the page cache.
    Cached,
}

/// What a path is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Bytes at offsets.
    Regular,
    /// A folder.
    Directory,
    /// Anything else: pipes, devices, sockets. Read and written as a stream.
    Stream,
}

/// What the file system says of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Meta {
    /// What it is.
    pub kind: Kind,
    /// Bytes in it, 0 for streams.
    pub bytes: u64,
    /// When its contents last changed, in nanoseconds since 1970.
    pub changed_ns: i128,
    /// Device and inode: the same file under any name.
    pub identity: (u64, u64),
    /// Permission bits.
    pub mode: u32,
    /// User and group.
    pub owner: (u32, u32),
}

/// A read or a write of `range` of `buffer`. The kernel owns the buffer until the matching [`Done`].
pub struct Op {
    /// Read or write.
    pub kind: OpKind,
    /// Which file.
    pub file: Arc<File>,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// The memory.
    pub buffer: Buffer,
    /// Which part of the memory.
    pub range: std::ops::Range<usize>,
    /// The caller's mark, given back unchanged.
    pub tag: u64,
}

/// Direction of an [`Op`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpKind {
    /// File to memory.
    Read,
    /// Memory to file.
    Write,
}

/// A completed [`Op`]: its buffer is the caller's again.
pub struct Done {
    /// The operation as it was submitted.
    pub op: Op,
    /// Bytes moved. Less than asked only for a read that met the end of the file; a write is whole or
    /// an error.
    pub result: io::Result<usize>,
}

/// Several reads and writes in flight at once. One owner, one thread.
pub trait Ring: Send {
    /// Starts `op`. The caller keeps at most the depth it asked for in flight.
    fn submit(&mut self, op: Op);
    /// Starts `op` no later than the next [`Ring::submit`], [`Ring::start`] or [`Ring::complete`]: what is lined up before and
    /// lies in front of it in its file may become one request to the device with it.
    fn line_up(&mut self, op: Op) {
        self.submit(op);
    }
    /// Starts what has been lined up.
    fn start(&mut self) {}
    /// The next completed operation, in any order: waits for one if `wait` and any is in flight.
    fn complete(&mut self, wait: bool) -> Option<Done>;
    /// How many operations have been submitted or lined up and not yet been handed back by [`Ring::complete`].
    fn in_flight(&self) -> usize;
}

/// What the kernel has counted for this process so far.
#[derive(Clone, Copy, Default, Debug)]
pub struct Usage {
    /// Processor time of all threads, user and system, in nanoseconds.
    pub cpu_ns: u64,
    /// The system's part of that (getrusage(2), `ru_stime`).
    pub kernel_ns: u64,
    /// Bytes fetched from devices (`/proc/self/io`, `read_bytes`).
    pub read_bytes: u64,
    /// Bytes sent to devices (`write_bytes`).
    pub write_bytes: u64,
    /// Largest resident set, in bytes.
    pub resident_bytes_peak: u64,
}

/// What the machine offers this process.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Processors this process may run on.
    pub cores: usize,
    /// Memory left to it: the smaller of what the machine and what its cgroup have available, in bytes.
    pub memory_bytes_available: u64,
    /// All memory it could ever have: the smaller of the machine's and its cgroup's limit, in bytes.
    pub memory_bytes_total: u64,
}

/// Which file system a path lies on, and on what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileSystem {
    /// Its own number, which outlives a restart where it comes from the file system's UUID (statfs(2),
    /// `f_fsid`).
    pub id: u64,
    /// Its size.
    pub bytes_total: u64,
    /// Model and size of the device below it, as far as the kernel tells; empty if there is none.
    pub device: String,
}

/// Everything outside the process. Paths are the caller's; errors are the system's, unadorned.
pub trait Os: Send + Sync {
    /// The back end's name for reports: `io_uring`, `posix` or `sim`.
    fn name(&self) -> &'static str;
    /// A ring for `depth` operations in flight, on files of one device.
    ///
    /// # Errors
    /// When the kernel refuses another ring or thread.
    fn ring(&self, depth: usize) -> io::Result<Box<dyn Ring>> {
        self.ring_over(depth, 1)
    }
    /// A ring for `depth` operations in flight on files of `device_count` devices together: none of these waits
    /// for another.
    ///
    /// # Errors
    /// As [`Os::ring`].
    fn ring_over(&self, depth: usize, device_count: usize) -> io::Result<Box<dyn Ring>>;

    /// Opens an existing file for reading. Falls back to the page cache where direct I/O is refused.
    ///
    /// # Errors
    /// The system's.
    fn open(&self, path: &Path, access: Access) -> io::Result<File>;
    /// The same file, opened for reading, without a descriptor of its own: it is opened again whenever it is read, and
    /// must be the same file then. A stream cannot be parked.
    ///
    /// # Errors
    /// The system's.
    fn park(&self, file: File) -> io::Result<File>;
    /// Makes a new file for reading and writing with `mode`, less what the user's umask withholds; one
    /// that exists is an error.
    ///
    /// # Errors
    /// The system's.
    fn create(&self, path: &Path, access: Access, mode: u32) -> io::Result<File>;
    /// Opens an existing file for reading and writing.
    ///
    /// # Errors
    /// The system's.
    fn open_for_write(&self, path: &Path, access: Access) -> io::Result<File>;
    /// Opens an existing pipe or device for writing. A pipe that nobody reads yet is waited for, with the
    /// same view of `stopped` as [`Os::read_stream`].
    ///
    /// # Errors
    /// The system's, and `Interrupted`.
    fn open_stream_for_write(&self, path: &Path, stopped: &dyn Fn() -> bool) -> io::Result<File>;
    /// This process's standard input.
    ///
    /// # Errors
    /// The system's.
    fn stdin(&self) -> io::Result<File>;
    /// This process's standard output.
    ///
    /// # Errors
    /// The system's.
    fn stdout(&self) -> io::Result<File>;
    /// Reads some bytes of a stream, 0 at its end. Asks `stopped` several times a second while it waits
    /// and answers `ErrorKind::Interrupted` when told so.
    ///
    /// # Errors
    /// The system's, and `Interrupted`.
    fn read_stream(
        &self,
        file: &File,
        into: &mut [u8],
        stopped: &dyn Fn() -> bool,
    ) -> io::Result<usize>;
    /// Writes all of `bytes` to a stream, with the same view of `stopped`.
    ///
    /// # Errors
    /// The system's, and `Interrupted`.
    fn write_stream(&self, file: &File, bytes: &[u8], stopped: &dyn Fn() -> bool)
    -> io::Result<()>;

    /// What an open file is now.
    ///
    /// # Errors
    /// The system's.
    fn meta(&self, file: &File) -> io::Result<Meta>;
    /// Whether an open file's contents are made when they are read, as those of sysfs are: what is said of its size means
    /// nothing then.
    fn is_made_when_read(&self, _file: &File) -> bool {
        false
    }
    /// What a path is now, symlinks followed.
    ///
    /// # Errors
    /// The system's.
    fn meta_at(&self, path: &Path) -> io::Result<Meta>;
    /// Whether this user may write to a path, as far as the system tells beforehand (access(2)).
    ///
    /// # Errors
    /// The system's, `PermissionDenied` above all.
    fn may_write(&self, path: &Path) -> io::Result<()>;
    /// The path without symlinks; the last part may be missing.
    ///
    /// # Errors
    /// The system's.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf>;
    /// How much of the file lies in the page cache, 0.0 to 1.0; 0.0 where the kernel does not say.
    fn cached_share(&self, file: &File, bytes: u64) -> f64;

    /// Reserves `bytes` from the start of the file. A file system that cannot do it answers `Ok`.
    ///
    /// # Errors
    /// `StorageFull` above all.
    fn reserve(&self, file: &File, bytes: u64) -> io::Result<()>;
    /// Cuts or extends the file to `bytes`.
    ///
    /// # Errors
    /// The system's.
    fn set_bytes(&self, file: &File, bytes: u64) -> io::Result<()>;
    /// Gives the file the mode and, as far as this user may, the owner of another.
    ///
    /// # Errors
    /// The system's.
    fn set_mode_and_owner(&self, file: &File, mode: u32, owner: (u32, u32)) -> io::Result<()>;
    /// Returns when the file's bytes and length are on the device.
    ///
    /// # Errors
    /// The system's.
    fn sync(&self, file: &File) -> io::Result<()>;
    /// The user that this process acts as, by number.
    fn user(&self) -> u32;
    /// Takes the advisory lock of the file without waiting; `false` if another process holds it.
    ///
    /// # Errors
    /// The system's.
    fn try_lock(&self, file: &File) -> io::Result<bool>;

    /// Gives `from` the name `to`, replacing what was there, atomically. Of folders only an empty one is
    /// replaced.
    ///
    /// # Errors
    /// The system's.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives each of two the other's name, atomically (renameat2(2), `RENAME_EXCHANGE`).
    ///
    /// # Errors
    /// The system's; `InvalidInput` or `Unsupported` where the file system cannot.
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// The system's.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Makes a folder with `mode`, less what the user's umask withholds.
    ///
    /// # Errors
    /// The system's.
    fn create_dir(&self, path: &Path, mode: u32) -> io::Result<()>;
    /// Removes an empty folder.
    ///
    /// # Errors
    /// The system's.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Returns when the names in a folder are on the device.
    ///
    /// # Errors
    /// The system's.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// The names in a folder, in no order.
    ///
    /// # Errors
    /// The system's.
    fn list_dir(&self, path: &Path) -> io::Result<Vec<OsString>>;
    /// Bytes that this user may still write to the file system of `path`.
    ///
    /// # Errors
    /// The system's.
    fn space_free(&self, path: &Path) -> io::Result<u64>;
    /// Which file system `path` lies on.
    ///
    /// # Errors
    /// The system's.
    fn file_system(&self, path: &Path) -> io::Result<FileSystem>;
    /// The disks under the file system with this number, which is the first of [`Meta::identity`]: their own numbers,
    /// in order, at least one. Of a partition it is the whole disk, of an array or a volume what that is made of; where
    /// the system does not tell, the number itself.
    fn disks(&self, device: u64) -> Vec<u64>;
    /// Whether `path` lies on a file system that is kept in memory.
    fn in_memory(&self, path: &Path) -> bool;

    /// A clock that never goes back, in nanoseconds.
    fn now_ns(&self) -> u64;
    /// Randomness for names and keys of hashes.
    fn random(&self) -> u64;
    /// What the kernel has counted for this process.
    fn usage(&self) -> Usage;
    /// What the machine offers this process.
    fn machine(&self) -> Machine;
}

/// Whether a call failed because this process, or the machine, may open no more files.
#[must_use]
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// What to do after the kernel moved `moved` of the `asked` bytes of one request: both rings ask here, so
/// that short transfers mean the same everywhere.
pub(crate) enum Next {
    /// The operation ended with this many bytes in all.
    Done(usize),
    /// Ask again for the rest.
    Rest,
    /// Ended with an error.
    Fail(io::Error),
}

/// Decides what follows a request that ended with `result` when `before` bytes of `op` had been moved by
/// earlier requests.
pub(crate) fn after_transfer(op: &Op, before: usize, result: io::Result<usize>) -> Next {
    let asked = op.range.len();
    match result {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Next::Rest,
        Err(error) => Next::Fail(error),
        Ok(moved) if before + moved == asked => Next::Done(asked),
        Ok(0) if op.kind == OpKind::Read => Next::Done(before),
        Ok(0) => Next::Fail(io::Error::new(
            io::ErrorKind::WriteZero,
            format!("the device took {before} of {asked} bytes"),
        )),
        // A direct read that ends off the alignment has met the end of the file, and the rest could
        // not be asked for anyway.
        Ok(moved)
            if op.kind == OpKind::Read
                && op.file.access == Access::Direct
                && !moved.is_multiple_of(crate::ALIGN_BYTES) =>
        {
            Next::Done(before + moved)
        }
        Ok(_) => Next::Rest,
    }
}

/// The number of the open file of this process that `path` is a name of, `/dev/stdout`, `/dev/stderr`, `/dev/fd/N` or
/// `/proc/self/fd/N`, if it may be written to.
#[must_use]
pub fn own_descriptor(path: &Path) -> Option<i32> {
    let number = match path.to_str()? {
        "/dev/stdout" => 1,
        "/dev/stderr" => 2,
        text => text
            .strip_prefix("/dev/fd/")
            .or_else(|| text.strip_prefix("/proc/self/fd/"))?
            .parse()
            .ok()?,
    };
    // SAFETY: it asks about a number, which may be of no open file, and touches no memory.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFL) };
    (flags >= 0 && flags & libc::O_ACCMODE != libc::O_RDONLY).then_some(number)
}
