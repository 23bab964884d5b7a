//! The real machine behind [`Os`]: system calls through rustix, rings through io_uring or threads.
//!
//! What is particular to Linux stands here and in `uring.rs`.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use rustix::fs::{FlockOperation, Mode, OFlags};

use crate::cgroup::field;
use crate::disks;
use crate::machine;
use crate::os::{Access, File, FileSystem, Handle, Kind, Machine, Meta, Os, Ring, Usage};
use crate::parked::Parked;
use crate::posix::PosixRing;

/// Which ring moves the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RingKind {
    /// io_uring where the kernel allows it, threads elsewhere.
    Auto,
    /// io_uring or an error.
    Uring,
    /// Threads with `pread` and `pwrite`.
    Posix,
}

/// The machine this process runs on.
pub struct Host {
    /// Whether rings are io_uring's; tried when the first is wanted, because small jobs want none.
    uring: OnceLock<bool>,
    /// Whether a ring of another kind is an error.
    must_be_uring: bool,
    direct: bool,
    started: Instant,
}

impl Host {
    /// Chooses the back end. `direct` false keeps everything in the page cache.
    ///
    /// # Errors
    /// When io_uring was asked for and the kernel refuses it.
    pub fn new(kind: RingKind, direct: bool) -> io::Result<Self> {
        let uring = match kind {
            RingKind::Posix => false.into(),
            RingKind::Uring => {
                uring_tried()?;
                true.into()
            }
            RingKind::Auto => OnceLock::new(),
        };
        Ok(Self {
            uring,
            must_be_uring: kind == RingKind::Uring,
            direct,
            started: Instant::now(),
        })
    }

    fn has_uring(&self) -> bool {
        *self.uring.get_or_init(|| uring_tried().is_ok())
    }

    /// Opens with direct I/O if asked and possible, else through the page cache.
    fn open_with(&self, path: &Path, flags: OFlags, access: Access, mode: u32) -> io::Result<File> {
        let mode = Mode::from_raw_mode(mode);
        let flags = flags | OFlags::CLOEXEC;
        if access == Access::Direct && self.direct {
            match rustix::fs::open(path, flags | OFlags::DIRECT, mode) {
                Ok(fd) => return Ok(file(fd, path, Access::Direct)),
                // The file system has no direct I/O. If the call made the file before it refused the
                // flag, the second attempt must not find it.
                Err(rustix::io::Errno::INVAL) => {
                    if flags.contains(OFlags::EXCL) {
                        let _ = fs::remove_file(path);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(file(
            rustix::fs::open(path, flags, mode)?,
            path,
            Access::Cached,
        ))
    }
}

/// The mode of a file that takes the place of one with `mode`, whose user and whose group it has, or not: another group may do no more
/// than everybody might, and nobody acts as another user.
fn mode_for(mode: u32, (has_user, has_group): (bool, bool)) -> u32 {
    const SET_USER: u32 = 0o4000;
    const SET_GROUP: u32 = 0o2000;
    let of_group = match has_group {
        true => mode & (SET_GROUP | 0o070),
        false => mode & 0o070 & (mode & 0o007) << 3,
    };
    let of_user = if has_user { mode & SET_USER } else { 0 };
    mode & !(SET_USER | SET_GROUP | 0o070) | of_user | of_group
}

/// Whether what was asked for is not there to be asked for.
fn is_unknown(error: rustix::io::Errno) -> bool {
    use rustix::io::Errno;
    matches!(error, Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS)
}

fn file(fd: std::os::fd::OwnedFd, path: &Path, access: Access) -> File {
    File {
        handle: Handle::Fd(fd),
        path: path.to_owned(),
        access,
    }
}

/// A stream that was opened elsewhere, with a name for messages.
pub(crate) fn stream(fd: std::os::fd::OwnedFd, name: &str) -> File {
    file(fd, Path::new(name), Access::Cached)
}

#[cfg(target_os = "linux")]
fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags};
    Ok(rustix::fs::renameat_with(
        CWD,
        one,
        CWD,
        other,
        RenameFlags::EXCHANGE,
    )?)
}

#[cfg(not(target_os = "linux"))]
fn exchange(_one: &Path, _other: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
fn uring_tried() -> io::Result<()> {
    crate::uring::UringRing::tried()
}

#[cfg(not(target_os = "linux"))]
fn uring_tried() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
fn uring_ring(depth: usize) -> io::Result<crate::uring::UringRing> {
    crate::uring::UringRing::new(depth)
}

#[cfg(not(target_os = "linux"))]
fn uring_ring(_depth: usize) -> io::Result<PosixRing> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn fd(file: &File) -> &std::os::fd::OwnedFd {
    match &file.handle {
        Handle::Fd(fd) => fd,
        Handle::Parked(_) => unreachable!("a parked file is read in rings only"),
        Handle::Sim(_) => unreachable!("a simulated file is never given to the host"),
    }
}

/// The regular file that this process has open and calls `path`, as `/dev/stdout`, to be written on where that has come to. A name
/// that leads to it would be replaced, and whoever opened it sees nothing of that.
fn own_open(path: &Path) -> Option<io::Result<std::os::fd::OwnedFd>> {
    let number = crate::os::own_descriptor(path)?;
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    // SAFETY: it makes a new number for what this one is open for, and fails if that is nothing.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Some(Err(io::Error::last_os_error()));
    }
    // SAFETY: it is open, new, and nobody else's.
    Some(Ok(unsafe { std::os::fd::FromRawFd::from_raw_fd(copy) }))
}

/// Whether a write to `stream` may wait for its reader: to a pipe, a connection or a terminal.
fn may_block(stream: &std::os::fd::OwnedFd) -> io::Result<bool> {
    if rustix::fs::fcntl_getfl(stream)?.contains(OFlags::NONBLOCK) {
        return Ok(false);
    }
    let mode = rustix::fs::fstat(stream)?.st_mode;
    Ok(match rustix::fs::FileType::from_raw_mode(mode) {
        rustix::fs::FileType::CharacterDevice => rustix::termios::isatty(stream),
        kind => kind != rustix::fs::FileType::RegularFile,
    })
}

/// Calls `look` with the descriptor of a file, parked or not.
fn with_fd<T>(
    file: &File,
    look: impl FnOnce(&std::os::fd::OwnedFd) -> io::Result<T>,
) -> io::Result<T> {
    match file.unpark()? {
        Some(open) => look(&open),
        None => look(fd(file)),
    }
}

/// The same pipe, opened once more so that writes to it never block. The flag on `pipe` itself would be
/// seen by every program that shares it. `None` for what is no pipe, or may not be opened.
fn unblocked(pipe: &std::os::fd::OwnedFd) -> Option<std::os::fd::OwnedFd> {
    let mode = rustix::fs::fstat(pipe).ok()?.st_mode;
    if rustix::fs::FileType::from_raw_mode(mode) != rustix::fs::FileType::Fifo {
        return None;
    }
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(pipe));
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).ok()
}

/// Waits until the stream is ready for `events`, asking `stopped` ten times a second.
pub(crate) fn wait_ready(
    file: &File,
    events: rustix::event::PollFlags,
    stopped: &dyn Fn() -> bool,
) -> io::Result<()> {
    let timeout = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 100_000_000,
    };
    loop {
        if stopped() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let mut polled = [rustix::event::PollFd::new(fd(file), events)];
        match rustix::event::poll(&mut polled, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

impl Os for Host {
    fn name(&self) -> &'static str {
        if self.has_uring() {
            "io_uring"
        } else {
            "posix"
        }
    }

    fn ring_over(&self, depth: usize, device_count: usize) -> io::Result<Box<dyn Ring>> {
        let threads = || Box::new(PosixRing::new(depth, device_count));
        if !self.has_uring() {
            return Ok(threads());
        }
        match uring_ring(depth) {
            // That there was one does not say that there are more: they count as pinned memory before Linux 5.12, and as open files.
            Err(_) if !self.must_be_uring => Ok(threads()),
            ring => Ok(Box::new(ring?)),
        }
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<File> {
        use std::os::unix::fs::FileTypeExt;
        // A blocking open of a pipe waits for its writer and hears nothing meanwhile; a read waits as well.
        let is_pipe = fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo());
        let flags = match is_pipe {
            true => OFlags::RDONLY | OFlags::NONBLOCK,
            false => OFlags::RDONLY,
        };
        self.open_with(path, flags, access, 0)
    }

    fn park(&self, file: File) -> io::Result<File> {
        let mut flags = OFlags::RDONLY | OFlags::CLOEXEC;
        if file.access == Access::Direct {
            flags |= OFlags::DIRECT;
        }
        let parked = with_fd(&file, |fd| Parked::new(fd, flags))?;
        Ok(File {
            handle: Handle::Parked(parked),
            ..file
        })
    }

    fn create(&self, path: &Path, access: Access, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        self.open_with(path, flags, access, mode)
    }

    fn open_for_write(&self, path: &Path, access: Access) -> io::Result<File> {
        self.open_with(path, OFlags::RDWR, access, 0)
    }

    fn open_stream_for_write(&self, path: &Path, stopped: &dyn Fn() -> bool) -> io::Result<File> {
        use std::os::unix::fs::FileTypeExt;
        if let Some(open) = own_open(path) {
            return Ok(file(open?, path, Access::Cached));
        }
        // A blocking open of a pipe waits for its reader and hears nothing meanwhile.
        let flags = OFlags::WRONLY | OFlags::NONBLOCK;
        loop {
            match self.open_with(path, flags, Access::Cached, 0) {
                Err(error)
                    if error.raw_os_error() == Some(libc::ENXIO)
                        && fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo()) =>
                {
                    if stopped() {
                        return Err(io::ErrorKind::Interrupted.into());
                    }
                    let pause = rustix::event::Timespec {
                        tv_sec: 0,
                        tv_nsec: 50_000_000,
                    };
                    let _ = rustix::event::poll(&mut [], Some(&pause));
                }
                other => return other,
            }
        }
    }

    fn stdin(&self) -> io::Result<File> {
        let copy = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        Ok(file(copy, Path::new("-"), Access::Cached))
    }

    fn stdout(&self) -> io::Result<File> {
        let copy = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
        let again = unblocked(&copy);
        Ok(file(again.unwrap_or(copy), Path::new("-"), Access::Cached))
    }

    fn read_stream(
        &self,
        file: &File,
        into: &mut [u8],
        stopped: &dyn Fn() -> bool,
    ) -> io::Result<usize> {
        loop {
            wait_ready(file, rustix::event::PollFlags::IN, stopped)?;
            match rustix::io::read(fd(file), &mut *into) {
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                other => return Ok(other?),
            }
        }
    }

    fn write_stream(
        &self,
        file: &File,
        bytes: &[u8],
        stopped: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        // A blocking write of more than a pipe has room for would not hear `stopped`; a pipe that is
        // ready has room for `PIPE_BUF` (pipe(7)).
        let piece_bytes = if may_block(fd(file))? { 4096 } else { 64 << 10 };
        for mut piece in bytes.chunks(piece_bytes) {
            while !piece.is_empty() {
                wait_ready(file, rustix::event::PollFlags::OUT, stopped)?;
                match rustix::io::write(fd(file), piece) {
                    Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    other => piece = &piece[other?..],
                }
            }
        }
        Ok(())
    }

    fn meta(&self, file: &File) -> io::Result<Meta> {
        with_fd(file, |fd| {
            let copy: fs::File = fd.try_clone()?.into();
            Ok(meta_from(&copy.metadata()?))
        })
    }

    fn is_made_when_read(&self, file: &File) -> bool {
        with_fd(file, |fd| Ok(rustix::fs::fstatfs(fd)?.f_type))
            .is_ok_and(|kind| KERNELS_OWN.contains(&(kind as u32)))
    }

    fn meta_at(&self, path: &Path) -> io::Result<Meta> {
        Ok(meta_from(&fs::metadata(path)?))
    }

    fn may_write(&self, path: &Path) -> io::Result<()> {
        use rustix::fs::{AtFlags, CWD};
        let asked = rustix::fs::Access::WRITE_OK;
        match rustix::fs::accessat(CWD, path, asked, AtFlags::EACCESS) {
            // A kernel that only knows how to ask for the real user's rights, and they may be others.
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::INVAL) => Ok(()),
            // A sandbox that does not know the call, or a file that nobody may change: asked in the old way, it is told.
            Err(rustix::io::Errno::PERM) => {
                Ok(rustix::fs::accessat(CWD, path, asked, AtFlags::empty())?)
            }
            asked => Ok(asked?),
        }
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        match fs::canonicalize(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A dangling symlink is followed by hand; any other missing last part is kept as it is.
                if let Ok(target) = fs::read_link(path) {
                    let folder = path.parent().unwrap_or(Path::new("."));
                    return self.resolve(&folder.join(target));
                }
                let name = path.file_name().ok_or(error)?;
                let folder = match path.parent() {
                    Some(folder) if !folder.as_os_str().is_empty() => folder,
                    _ => Path::new("."),
                };
                Ok(fs::canonicalize(folder)?.join(name))
            }
            other => other,
        }
    }

    fn cached_share(&self, file: &File, bytes: u64) -> f64 {
        cached_bytes(file, bytes).map_or(0.0, |cached| cached as f64 / bytes.max(1) as f64)
    }

    fn reserve(&self, file: &File, bytes: u64) -> io::Result<()> {
        use rustix::io::Errno;
        if bytes == 0 {
            return Ok(());
        }
        let empty = rustix::fs::FallocateFlags::empty();
        let (mut at, mut step) = (0, bytes);
        while at < bytes {
            match rustix::fs::fallocate(fd(file), empty, at, step.min(bytes - at)) {
                Ok(()) => at += step,
                // Where that is memory it takes its time, and whatever wakes the thread, as Ctrl-Z and `fg` do or the clock of one who
                // takes samples, ends the call, and all that it did is undone: so less at once from now on.
                Err(Errno::INTR) => step = (step / 2).max(1 << 20),
                Err(error) if is_unknown(error) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn set_bytes(&self, file: &File, bytes: u64) -> io::Result<()> {
        Ok(rustix::fs::ftruncate(fd(file), bytes)?)
    }

    fn set_mode_and_owner(&self, file: &File, mode: u32, owner: (u32, u32)) -> io::Result<()> {
        let now = self.meta(file)?;
        if now.owner != owner {
            // Only root may give files away; an ordinary user keeps the file and at most the group.
            let (user, group) = owner;
            if std::os::unix::fs::fchown(fd(file), Some(user), Some(group)).is_err() {
                let _ = std::os::unix::fs::fchown(fd(file), None, Some(group));
            }
        }
        let is_kept = self.meta(file)?.owner;
        let mode = mode_for(mode, (is_kept.0 == owner.0, is_kept.1 == owner.1));
        Ok(rustix::fs::fchmod(fd(file), Mode::from_raw_mode(mode))?)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        Ok(rustix::fs::fdatasync(fd(file))?)
    }

    fn user(&self) -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn try_lock(&self, file: &File) -> io::Result<bool> {
        match rustix::fs::flock(fd(file), FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        exchange(one, other)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        fs::DirBuilder::new().mode(mode).create(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let folder = match fs::File::open(path) {
            // One that may be written to and not be read, as a drop box: all that is to be written anywhere is made to last.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                rustix::fs::sync();
                return Ok(());
            }
            folder => folder?,
        };
        match folder.sync_all() {
            // A file system that syncs no folders, as some of those that a virtual machine's host shares: all that is to be written there.
            Err(error) if rustix::io::Errno::from_io_error(&error).is_some_and(is_unknown) => {
                Ok(rustix::fs::syncfs(&folder)?)
            }
            synced => synced,
        }
    }

    fn list_dir(&self, path: &Path) -> io::Result<Vec<OsString>> {
        fs::read_dir(path)?
            .map(|entry| Ok(entry?.file_name()))
            .collect()
    }

    fn space_free(&self, path: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(path)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn file_system(&self, path: &Path) -> io::Result<FileSystem> {
        let stat = rustix::fs::statvfs(path)?;
        let device = fs::metadata(path)?.dev();
        Ok(FileSystem {
            // Some file systems have no number of their own.
            id: if stat.f_fsid == 0 {
                device
            } else {
                stat.f_fsid
            },
            bytes_total: stat.f_blocks.saturating_mul(stat.f_frsize),
            device: device_words(device),
        })
    }

    fn disks(&self, device: u64) -> Vec<u64> {
        disks::under(Path::new("/"), device)
    }

    fn in_memory(&self, path: &Path) -> bool {
        const TMPFS_MAGIC: i64 = 0x0102_1994;
        const RAMFS_MAGIC: i64 = 0x8584_58f6;
        rustix::fs::statfs(path).is_ok_and(|stat| {
            let kind = stat.f_type;
            kind == TMPFS_MAGIC || kind == RAMFS_MAGIC
        })
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).expect("less than 500 years")
    }

    fn random(&self) -> u64 {
        let mut bytes = [0; 8];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
            .expect("the kernel has randomness");
        u64::from_le_bytes(bytes)
    }

    fn usage(&self) -> Usage {
        let counts = fs::read_to_string("/proc/self/io").unwrap_or_default();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        Usage {
            cpu_ns: cpu_ns(),
            kernel_ns: kernel_ns(),
            read_bytes: field(&counts, "read_bytes:"),
            write_bytes: field(&counts, "write_bytes:"),
            resident_bytes_peak: field(&status, "VmHWM:") * 1024,
        }
    }

    fn machine(&self) -> Machine {
        machine::offered(Path::new("/"))
    }
}

/// File systems of what the kernel tells, by the numbers of statfs(2) and `linux/magic.h`: their files have sizes of 0, of
/// 4096 bytes, or of whatever.
const KERNELS_OWN: [u32; 14] = [
    0x0000_9fa0, // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x7363_6673, // securityfs
    0x6265_6570, // configfs
    0x6165_676c, // pstore
    0xde5e_81e4, // efivarfs
    0xf97c_ff8c, // selinuxfs
    0x4341_5d53, // smackfs
    0x4249_4e4d, // binfmt_misc
    0x0765_5821, // resctrl
];

fn meta_from(meta: &fs::Metadata) -> Meta {
    let kind = if meta.is_file() {
        Kind::Regular
    } else if meta.is_dir() {
        Kind::Directory
    } else {
        Kind::Stream
    };
    Meta {
        kind,
        bytes: if kind == Kind::Regular { meta.len() } else { 0 },
        changed_ns: i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec()),
        identity: (meta.dev(), meta.ino()),
        mode: meta.mode() & 0o7777,
        owner: (meta.uid(), meta.gid()),
    }
}

/// Model and size of a block device, of the whole one if it is a part of one (sysfs(5)). Its name is left
/// out: that may change with a restart.
fn device_words(number: u64) -> String {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let Ok(folder) = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")) else {
        return String::new();
    };
    let folder = disks::whole(folder);
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let (model, sectors) = (read("device/model"), read("size"));
    match sectors.trim().parse::<u64>() {
        Ok(sectors) => format!("{} {} bytes", model.trim(), sectors * 512),
        Err(_) => model,
    }
    .trim()
    .to_owned()
}

/// User and system time of the process.
fn cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// System time of the process.
fn kernel_ns() -> u64 {
    // SAFETY: a `rusage` of zeros is one, and the call writes to it alone.
    let time = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage.ru_stime
    };
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_usec).unwrap_or(0) * 1_000
}

/// Bytes of the file's first `bytes` that the page cache holds.
#[cfg(target_os = "linux")]
pub(crate) fn cached_bytes(file: &File, bytes: u64) -> Option<u64> {
    let parked = file.unpark().ok()?;
    let raw = std::os::fd::AsRawFd::as_raw_fd(parked.as_deref().unwrap_or_else(|| fd(file)));
    counted_by_kernel(raw, bytes).or_else(|| counted_in_mapping(raw, bytes))
}

/// By `cachestat(2)` (Linux 6.5).
#[cfg(target_os = "linux")]
fn counted_by_kernel(raw: std::os::fd::RawFd, bytes: u64) -> Option<u64> {
    const CACHESTAT: libc::c_long = 451;
    let range = [0u64, bytes];
    let mut answer = [0u64; 5];
    // SAFETY: the two arrays have the layout of `struct cachestat_range` (two u64) and `struct cachestat`
    // (five u64), and live across the call.
    let failed = unsafe {
        libc::syscall(
            CACHESTAT,
            raw,
            range.as_ptr(),
            answer.as_mut_ptr(),
            0 as libc::c_uint,
        )
    };
    (failed == 0).then(|| answer[0] * rustix::param::page_size() as u64)
}

/// By `mincore(2)`, of places all over a large file, about. Only of a file of this user's: of others the kernel answers that all of
/// it is there.
#[cfg(target_os = "linux")]
fn counted_in_mapping(raw: std::os::fd::RawFd, bytes: u64) -> Option<u64> {
    const WINDOW_BYTES: u64 = 64 << 20;
    const WINDOWS_MAX: u64 = 16;
    // SAFETY: whoever calls has the file open.
    let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(raw) };
    let (user, page) = (
        rustix::process::geteuid().as_raw(),
        rustix::param::page_size() as u64,
    );
    let is_own = rustix::fs::fstat(borrowed).is_ok_and(|stat| stat.st_uid == user);
    if bytes == 0 || !(is_own || user == 0) {
        return None;
    }
    let count = bytes.div_ceil(WINDOW_BYTES).min(WINDOWS_MAX);
    let last = bytes.saturating_sub(WINDOW_BYTES);
    let (mut seen, mut cached) = (0, 0);
    for number in 0..count {
        let offset = last / (count - 1).max(1) * number / page * page;
        let length = WINDOW_BYTES.min(bytes - offset);
        let mut pages = vec![0u8; length.div_ceil(page) as usize];
        // SAFETY: a mapping at an address of the kernel's choice touches no other memory, nobody reads it, and it is gone again
        // below; `pages` has a byte for each of its pages.
        let failed = unsafe {
            let (length, flags) = (length as usize, rustix::mm::MapFlags::SHARED);
            let read = rustix::mm::ProtFlags::READ;
            let start =
                rustix::mm::mmap(std::ptr::null_mut(), length, read, flags, borrowed, offset)
                    .ok()?;
            let failed = libc::mincore(start, length, pages.as_mut_ptr());
            rustix::mm::munmap(start, length).ok()?;
            failed
        };
        if failed != 0 {
            return None;
        }
        seen += length;
        cached += page * pages.iter().filter(|&&there| there & 1 == 1).count() as u64;
    }
    Some((u128::from(cached) * u128::from(bytes) / u128::from(seen)) as u64)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn cached_bytes(_file: &File, _bytes: u64) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::mode_for;

    /// Two ways of the kernel's to tell, of which older ones have the second.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_the_page_cache_holds() {
        use super::{counted_by_kernel, counted_in_mapping};
        use std::os::fd::AsRawFd;

        const BYTES: u64 = 3 << 20;
        let path = std::env::temp_dir().join(format!("sortmill-cached-{}", std::process::id()));
        std::fs::write(&path, vec![1; BYTES as usize]).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let told = || [counted_by_kernel, counted_in_mapping].map(|by| by(file.as_raw_fd(), BYTES));
        let [by_kernel, in_mapping] = told();
        assert_eq!(in_mapping, Some(BYTES));
        assert!(by_kernel.is_none_or(|bytes| bytes == BYTES));
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let [by_kernel, in_mapping] = told();
        // What lies in memory stays there.
        assert!(by_kernel.is_none() || by_kernel == in_mapping);
        assert_eq!(counted_in_mapping(file.as_raw_fd(), 0), None);
    }

    #[test]
    fn nobody_may_do_more_than_before() {
        for (mode, kept, wanted) in [
            (0o6664, (true, true), 0o6664),
            (0o660, (true, false), 0o600),
            (0o664, (true, false), 0o644),
            (0o2775, (true, false), 0o755),
            (0o4755, (false, true), 0o755),
            (0o6770, (false, false), 0o700),
        ] {
            assert_eq!(mode_for(mode, kept), wanted, "{mode:o}");
        }
    }
}
