//! An output file that appears whole or not at all.
//!
//! It is written under a temporary name beside its own, `.NAME.sortmill-<number>`; [`NewFile::commit`] cuts
//! it to its length, syncs it, gives it its name and syncs the folder. Until then what was there before
//! stays. A symlink is followed, mode and owner of an earlier file are kept. Dropped without a commit, the
//! temporary file is removed.

use std::path::{Path, PathBuf};

use sortmill_io::os::{Access, Meta};
use sortmill_io::sync::Arc;
use sortmill_io::{File, Os};

use crate::error::{Error, Result};

const MARK: &str = ".sortmill-";

/// A file on its way to its name.
pub struct NewFile<'a> {
    os: &'a dyn Os,
    /// The file under its temporary name.
    pub file: Arc<File>,
    temporary: PathBuf,
    name: PathBuf,
    before: Option<Meta>,
    committed: bool,
}

/// Where `path`'s file is written until it is whole: beside the file that `path` leads to.
///
/// # Errors
/// When the folder does not exist.
pub fn temporary_name(os: &dyn Os, path: &Path, job: u64) -> Result<(PathBuf, PathBuf)> {
    let name = os
        .resolve(path)
        .map_err(|error| Error::io("finding the output's folder", path, &error))?;
    let file_name = name.file_name().unwrap_or_default().to_string_lossy();
    // A name may be as long as the file system allows; the temporary one may not be longer.
    let short: String = file_name.chars().take(48).collect();
    let temporary = name.with_file_name(format!(".{short}{MARK}{job:016x}"));
    Ok((temporary, name))
}

/// Whether a path is one that [`temporary_name`] makes.
#[must_use]
pub fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.')
        && name
            .rfind(MARK)
            .is_some_and(|at| name[at + MARK.len()..].bytes().all(|byte| byte.is_ascii_hexdigit()))
}

impl<'a> NewFile<'a> {
    /// Makes the temporary file of the output `path` of job number `job`.
    ///
    /// # Errors
    /// When the folder is missing or not writable.
    pub fn create(os: &'a dyn Os, path: &Path, job: u64) -> Result<Self> {
        let (temporary, name) = temporary_name(os, path, job)?;
        let before = os.meta_at(&name).ok();
        let file = os
            .create(&temporary, Access::Direct)
            .map_err(|error| Error::io("making the output", &temporary, &error))?;
        Ok(Self {
            os,
            file: Arc::new(file),
            temporary,
            name,
            before,
            committed: false,
        })
    }

    /// Reserves room for the whole output, so that a full disk shows before the work.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Space`] above all.
    pub fn reserve(&self, bytes: u64) -> Result<()> {
        self.os
            .reserve(&self.file, bytes)
            .map_err(|error| Error::io("reserving room for the output", &self.temporary, &error))
    }

    /// Cuts the file to `bytes` and returns when they are on the device.
    ///
    /// # Errors
    /// The system's.
    pub fn seal(&self, bytes: u64) -> Result<()> {
        let wrong = |error: std::io::Error| Error::io("syncing the output", &self.temporary, &error);
        self.os.set_bytes(&self.file, bytes).map_err(wrong)?;
        let (mode, owner) = match &self.before {
            Some(before) => (before.mode, before.owner),
            None => {
                let made = self.os.meta(&self.file).map_err(wrong)?;
                (0o666 & !self.os.umask(), made.owner)
            }
        };
        self.os
            .set_mode_and_owner(&self.file, mode, owner)
            .map_err(wrong)?;
        self.os.sync(&self.file).map_err(wrong)
    }

    /// Gives the sealed file its name.
    ///
    /// # Errors
    /// The system's.
    pub fn commit(mut self) -> Result<()> {
        self.os
            .rename(&self.temporary, &self.name)
            .map_err(|error| Error::io("giving the output its name", &self.name, &error))?;
        self.committed = true;
        let folder = self.name.parent().unwrap_or(Path::new("/"));
        self.os
            .sync_dir(folder)
            .map_err(|error| Error::io("syncing the output's folder", folder, &error))
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        if !self.committed {
            let _ = self.os.remove_file(&self.temporary);
        }
    }
}
