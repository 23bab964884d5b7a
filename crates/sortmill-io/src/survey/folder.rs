//! What a folder offers: its file system and device are read, a file in it is tried.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::{NOT_TRIED, Survey, unescape};
use crate::facts::{Direct, Fact, FolderFacts, Mount, Space, Trial};
use crate::host::{cached_bytes, fd};
use crate::sync::Arc;
use crate::{Access, Buffer, File, Host, Op, OpKind, Os, Pool, RingKind};

const TRIAL_BYTES: usize = 64 << 10;

impl Survey {
    /// What `path` offers. For that a file of 64 KiB is made in it, written, read back and removed.
    #[must_use]
    pub fn folder(&self, path: &Path) -> FolderFacts {
        let resolved = resolve(path);
        let of = || resolved.clone();
        let mount = of().and_then(|folder| self.mount(&folder));
        FolderFacts {
            path: path.to_owned(),
            trial: of().and_then(|folder| match self.tries {
                true => try_file(&folder),
                false => Err(NOT_TRIED.to_owned()),
            }),
            space: of().and_then(|folder| space(&folder)),
            is_written_in_place: of().and_then(|folder| is_written_in_place(&folder)),
            device: mount
                .clone()
                .and_then(|(mount, number)| self.device_of(&mount, &number)),
            mount: mount.map(|(mount, _)| mount),
            resolved,
        }
    }

    /// The file system that `folder` lies in, and the number of its device, as `8:1` (proc(5), mountinfo).
    fn mount(&self, folder: &Path) -> Fact<(Mount, String)> {
        let text = self.text("proc/self/mountinfo")?;
        let mut nearest: Option<(Mount, String)> = None;
        for (mount, number) in text.lines().filter_map(mount_of) {
            // Of several at the same place the last one hides the others.
            let is_nearer = nearest.as_ref().is_none_or(|(near, _)| {
                mount.folder.components().count() >= near.folder.components().count()
            });
            if folder.starts_with(&mount.folder) && is_nearer {
                nearest = Some((mount, number));
            }
        }
        nearest.ok_or_else(|| "/proc/self/mountinfo does not name it".to_owned())
    }
}

fn mount_of(line: &str) -> Option<(Mount, String)> {
    let (left, right) = line.split_once(" - ")?;
    let left: Vec<&str> = left.split(' ').collect();
    let right: Vec<&str> = right.split(' ').collect();
    let (&[_, _, number, _, folder, options, ..], &[kind, source, more, ..]) =
        (&left[..], &right[..])
    else {
        return None;
    };
    // Both have some words, as `rw`: once is enough, but if either is `ro` it matters.
    let mut options: Vec<&str> = options.split(',').chain(more.split(',')).collect();
    let read_only = options.contains(&"ro");
    let mut seen = std::collections::BTreeSet::new();
    options.retain(|&option| seen.insert(option) && !(read_only && option == "rw"));
    let mount = Mount {
        folder: PathBuf::from(unescape(folder)),
        kind: kind.to_owned(),
        source: unescape(source),
        options: options.into_iter().map(str::to_owned).collect(),
    };
    Some((mount, number.to_owned()))
}

fn resolve(path: &Path) -> Fact<PathBuf> {
    let resolved = fs::canonicalize(path).map_err(|error| error.to_string())?;
    match resolved.is_dir() {
        true => Ok(resolved),
        false => Err("it is not a folder".to_owned()),
    }
}

fn space(folder: &Path) -> Fact<Space> {
    let stat = rustix::fs::statvfs(folder).map_err(|error| error.to_string())?;
    Ok(Space {
        bytes_free: stat.f_bavail.saturating_mul(stat.f_frsize),
        bytes_total: stat.f_blocks.saturating_mul(stat.f_frsize),
        files_free: (stat.f_files > 0).then_some(stat.f_favail),
    })
}

/// Asks for the folder's attributes, which new files inherit (ioctl_iflags(2), `FS_NOCOW_FL`).
fn is_written_in_place(folder: &Path) -> Fact<bool> {
    let open = fs::File::open(folder).map_err(|error| error.to_string())?;
    let flags = rustix::fs::ioctl_getflags(&open).map_err(|error| error.to_string())?;
    Ok(flags.contains(rustix::fs::IFlags::NOCOW))
}

/// Makes a file as a job does, writes to it, reads it back.
fn try_file(folder: &Path) -> Fact<Trial> {
    let words = |error: io::Error| error.to_string();
    let os = Host::new(RingKind::Auto, true).map_err(words)?;
    let path = folder.join(format!(".sortmill-doctor-{:016x}", os.random()));
    let file = os.create(&path, Access::Direct, 0o600).map_err(words)?;
    // The name goes at once: then nothing stays behind, whatever happens.
    os.remove_file(&path).map_err(words)?;
    let bytes = TRIAL_BYTES as u64;
    let reserves = match rustix::fs::fallocate(fd(&file), FallocateFlags::empty(), 0, bytes) {
        Ok(()) => true,
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => false,
        Err(error) => return Err(words(error.into())),
    };
    let is_direct = file.access == Access::Direct;
    let file = Arc::new(file);
    let written = write_and_read(&os, &file);
    let direct = match (is_direct, written) {
        (true, Ok(Some(false))) => Direct::Works,
        (true, Ok(Some(true))) => Direct::Cached,
        (true, Ok(None)) => Direct::Accepted,
        (false, Ok(_)) => Direct::Refused,
        (true, Err(error)) if error.raw_os_error() == Some(libc::EINVAL) => {
            Direct::Fails(words(error))
        }
        (_, Err(error)) => return Err(words(error)),
    };
    Ok(Trial { direct, reserves })
}

/// Writes to `file` and reads that again. Whether the page cache held it in between, where the kernel tells.
fn write_and_read(os: &Host, file: &Arc<File>) -> io::Result<Option<bool>> {
    let pool = Pool::new(1, TRIAL_BYTES)?;
    let mut ring = os.ring(1)?;
    let mut transfer = |kind: OpKind, buffer: Buffer| -> io::Result<Buffer> {
        ring.submit(Op {
            kind,
            file: Arc::clone(file),
            offset: 0,
            buffer,
            range: 0..TRIAL_BYTES,
            tag: 0,
        });
        let done = ring.complete(true).expect("one is in flight");
        match done.result? {
            TRIAL_BYTES => Ok(done.op.buffer),
            moved => Err(io::Error::other(format!(
                "{moved} of {TRIAL_BYTES} bytes were moved"
            ))),
        }
    };
    let mut buffer = pool.take().expect("the pool is open");
    buffer.fill(0xa5);
    let mut buffer = transfer(OpKind::Write, buffer)?;
    let is_cached = cached_bytes(file, TRIAL_BYTES as u64).map(|bytes| bytes > 0);
    buffer.fill(0);
    let buffer = transfer(OpKind::Read, buffer)?;
    match buffer.iter().all(|&byte| byte == 0xa5) {
        true => Ok(is_cached),
        false => Err(io::Error::other("other bytes came back than were written")),
    }
}
