//! Output that appears whole or not at all.
//!
//! In comes the name a file is to have, out goes an open file under a temporary name in the same folder.
//! What was there before keeps its name until [`Uncommitted::commit`], and what was never committed is
//! removed when the [`Uncommitted`] is dropped, on errors and panics alike:
//!
//! ```text
//! find ──> create .NAME.sortmill-<hex> ──> (the caller writes) ──> finish: cut, mode, fdatasync ──┐
//!                                                          renamed, folder synced <── commit <───┘
//! ```

mod folder;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sortmill_io::os::own_descriptor;
use sortmill_io::{Access, File, Kind, Os, align_up};

use crate::error::{Error, ErrorKind, Result};
use crate::queue::Stop;

pub use folder::{NewFolder, UncommittedFolder, remove_parts};

/// A regular file that is to be made or replaced.
pub struct Target {
    /// Its name, without symlinks.
    pub path: PathBuf,
    /// Mode and owner of the file that has this name now.
    kept: Option<(u32, (u32, u32))>,
}

impl Target {
    /// Follows the symlinks of `path` to what is to be replaced. `None` for what is written in place: a pipe or device, which has
    /// no contents to protect, and an open file of this process, as `/dev/stdout`.
    ///
    /// # Errors
    /// The system's, and a usage error if `path` is a folder, or named as one. What this user may not write is not
    /// replaced either, though whoever may write to the folder could.
    pub fn find(os: &dyn Os, path: &Path) -> Result<Option<Self>> {
        let failed = |error: io::Error| Error::io("finding the output", path, &error);
        // First what it is: `/dev/stdout` may lead to a pipe, which has no name to be resolved.
        let kept = match os.meta_at(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if path.as_os_str().as_bytes().ends_with(b"/") {
                    let cause = "its name ends as a folder's, and it is to be a file";
                    return Err(Error::new(ErrorKind::Usage, "finding the output", cause).at(path));
                }
                None
            }
            Err(error) => return Err(failed(error)),
            Ok(meta) => match meta.kind {
                // What this process has open is written on where that has come to.
                Kind::Regular if own_descriptor(path).is_some() => return Ok(None),
                // Whoever replaces a program's bytes does not hand on its right to run as its owner.
                Kind::Regular => {
                    os.may_write(path)
                        .map_err(|error| Error::io("opening the output", path, &error))?;
                    Some((meta.mode & 0o777, meta.owner))
                }
                Kind::Stream => return Ok(None),
                Kind::Directory => {
                    let cause = "it is a folder";
                    return Err(Error::new(ErrorKind::Usage, "finding the output", cause).at(path));
                }
            },
        };
        let path = os
            .resolve(path)
            .map_err(|error| no_folder(os, path).unwrap_or_else(|| failed(error)))?;
        let target = Self { path, kept };
        target.may_be_replaced(os)?;
        Ok(Some(target))
    }

    /// Refuses a file that cannot be replaced, which would show when all is done.
    fn may_be_replaced(&self, os: &dyn Os) -> Result<()> {
        const STICKY: u32 = 0o1000;
        let failed = |error: io::Error| Error::io("finding the output", &self.path, &error);
        let Some((_, owner)) = self.kept else {
            return Ok(());
        };
        let folder = os.meta_at(self.folder()).map_err(failed)?;
        let is_owner = [owner.0, folder.owner.0].contains(&os.user()) || os.user() == 0;
        if folder.mode & STICKY == 0 || is_owner {
            return Ok(());
        }
        let cause = "another user's file cannot be replaced in this folder, whose mode is sticky, only written over";
        let error = Error::new(ErrorKind::Usage, "finding the output", cause).at(&self.path);
        Err(error.hint("To write over what it holds, redirect standard output to it (> FILE)."))
    }

    /// The folder it lies in.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }
}

/// That the folder of `path` is missing, if it is.
fn no_folder(os: &dyn Os, path: &Path) -> Option<Error> {
    let folder = path.parent()?;
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let found = os.meta_at(folder).err()?;
    (found.kind() == io::ErrorKind::NotFound).then(|| {
        let cause = format!("there is no folder {}", folder.display());
        Error::new(ErrorKind::Usage, "finding the output", cause).at(path)
    })
}

/// Fails if the file system of `path` has less than `bytes_needed` left.
///
/// # Errors
/// [`ErrorKind::Space`] with both numbers, and the system's.
pub fn check_space(os: &dyn Os, path: &Path, bytes_needed: u64) -> Result<()> {
    const DOING: &str = "checking the space for the output";
    let bytes_free = os
        .space_free(path)
        .map_err(|error| Error::io(DOING, path, &error))?;
    if bytes_free >= bytes_needed {
        return Ok(());
    }
    let (needed, free) = (
        crate::text::bytes(bytes_needed),
        crate::text::bytes(bytes_free),
    );
    let cause = format!(
        "{needed} ({bytes_needed} bytes) are needed and {free} ({bytes_free} bytes) are free"
    );
    Err(Error::new(ErrorKind::Space, DOING, cause)
        .at(path)
        .room(bytes_needed, Some(bytes_needed - bytes_free))
        .hint("Free some space, or choose a path on another file system."))
}

/// Files under temporary names, all of which get their names in the end or none of them.
pub struct Uncommitted<'a> {
    os: &'a dyn Os,
    mark: u64,
    files: Vec<Named>,
    folder_made: Option<PathBuf>,
}

struct Named {
    temporary: PathBuf,
    path: PathBuf,
}

impl<'a> Uncommitted<'a> {
    /// No files yet. `mark` is a random number for their temporary names.
    pub fn new(os: &'a dyn Os, mark: u64) -> Self {
        Self {
            os,
            mark,
            files: Vec::new(),
            folder_made: None,
        }
    }

    /// The folder `path`, without symlinks; made if it is missing, and then removed again if nothing is
    /// committed.
    ///
    /// # Errors
    /// The system's, and a usage error if `path` is something else.
    pub fn folder(&mut self, path: &Path) -> Result<PathBuf> {
        let failed = |error: io::Error| Error::io("making the output folder", path, &error);
        let path = self.os.resolve(path).map_err(failed)?;
        match self.os.meta_at(&path) {
            Ok(meta) if meta.kind == Kind::Directory => {}
            Ok(_) => {
                let cause = "it is a file, and several files are to be made";
                return Err(
                    Error::new(ErrorKind::Usage, "making the output folder", cause).at(&path),
                );
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.os.create_dir(&path, 0o777).map_err(failed)?;
                self.folder_made = Some(path.clone());
            }
            Err(error) => return Err(failed(error)),
        }
        Ok(path)
    }

    /// The temporary name of what will replace `target`.
    #[must_use]
    pub fn temporary(&self, target: &Target) -> PathBuf {
        let name = temporary_name(&target.path, self.mark);
        target.folder().join(name)
    }

    /// Makes the temporary file that will replace `target`, with room for `bytes` in whole 4 KiB.
    ///
    /// # Errors
    /// The system's.
    pub fn create(&mut self, target: &Target, bytes: u64) -> Result<File> {
        let temporary = self.temporary(target);
        let failed = |error: io::Error| {
            Error::io("creating a temporary file beside it", &target.path, &error)
        };
        // What replaces a private file is private from its first byte on.
        let mode = if target.kept.is_some() { 0o600 } else { 0o666 };
        let file = self
            .os
            .create(&temporary, Access::Direct, mode)
            .map_err(failed)?;
        self.files.push(Named {
            temporary,
            path: target.path.clone(),
        });
        // Without it, each direct write that makes the file longer would wait for the one before.
        let reserved = self.os.reserve(&file, align_up(bytes));
        reserved.map_err(|error| Error::io("reserving space", &target.path, &error))?;
        Ok(file)
    }

    /// Cuts the written `file` to `bytes`, gives it mode and owner, and waits until it is on the device.
    ///
    /// # Errors
    /// The system's.
    pub fn finish(&self, target: &Target, file: &File, bytes: u64) -> Result<()> {
        let finish = || {
            self.os.set_bytes(file, bytes)?;
            if let Some((mode, owner)) = target.kept {
                self.os.set_mode_and_owner(file, mode, owner)?;
            }
            self.os.sync(file)
        };
        finish().map_err(|error| Error::io("finishing the output", &target.path, &error))
    }

    /// Gives every file its name and waits until the names are on the device.
    ///
    /// # Errors
    /// The system's, and that of `stop` if it comes before the first name is given. Names are given one
    /// at a time: if that fails among several files, those before have theirs, and the error says so.
    pub fn commit(mut self, stop: &Stop) -> Result<()> {
        stop.check()?;
        self.files.sort_by(|one, other| one.path.cmp(&other.path));
        let count = self.files.len();
        for (done, Named { temporary, path }) in self.files.iter().enumerate() {
            if let Err(error) = self.os.rename(temporary, path) {
                let mut error = Error::io("giving the output its name", path, &error);
                if done > 0 {
                    error = error.hint(format!(
                        "{done} of {count} files are already in place. Run the same command again."
                    ));
                }
                self.files.drain(..done);
                return Err(error);
            }
        }
        let parents = self
            .files
            .iter()
            .map(|file| &file.path)
            .chain(&self.folder_made);
        let folders: BTreeSet<PathBuf> = parents
            .filter_map(|path| path.parent())
            .map(Path::to_owned)
            .collect();
        self.files.clear();
        self.folder_made = None;
        for folder in folders {
            self.os.sync_dir(&folder).map_err(|error| {
                Error::io("making the name of the output last", &folder, &error).hint(
                    "The output is complete and has its name, but may lose it in a power failure.",
                )
            })?;
        }
        Ok(())
    }
}

impl Drop for Uncommitted<'_> {
    fn drop(&mut self) {
        // The error that led here is the one to tell; a second one would hide it.
        for file in &self.files {
            let _ = self.os.remove_file(&file.temporary);
        }
        if let Some(folder) = &self.folder_made {
            let _ = self.os.remove_dir(folder);
        }
    }
}

/// `.NAME.sortmill-<mark>`: hidden, and of no longer name than file systems allow.
fn temporary_name(path: &Path, mark: u64) -> OsString {
    const NAME_BYTES_KEPT: usize = 200;
    let name = path.file_name().unwrap_or_default().as_bytes();
    let mut temporary = OsString::from(".");
    temporary.push(OsStr::from_bytes(&name[..name.len().min(NAME_BYTES_KEPT)]));
    temporary.push(format!("{MARK}{mark:016x}"));
    temporary
}

/// Whether a path is one of those that outputs have before they get their names.
#[must_use]
pub fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let mark = name.len().checked_sub(16 + MARK.len());
    mark.is_some_and(|at| {
        name[0] == b'.'
            && name[at..].starts_with(MARK.as_bytes())
            && name[at + MARK.len()..].iter().all(u8::is_ascii_hexdigit)
    })
}

const MARK: &str = ".sortmill-";
