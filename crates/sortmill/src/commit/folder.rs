//! A folder of parts that appears whole or not at all.
//!
//! In comes the name it is to have, out goes a folder under a temporary name beside it:
//!
//! ```text
//! find ──> make .NAME.sortmill-<hex>/ ──> (the caller writes parts) ──> finish: cut, mode, fdatasync
//!                      renamed or exchanged, synced <── commit <── manifest.json, when all is there
//! ```
//!
//! What had the name before is exchanged for the new one in one step, and only then removed: so at any moment
//! the name stands for all of the old output or all of the new one. It is removed file by file, as its own
//! manifest names them; a folder with anything else in it is refused before the work begins.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use sortmill_io::{Access, Kind, Os};

use super::temporary_name;
use crate::error::{Error, ErrorKind, Result};
use crate::manifest::{self, Manifest};
use crate::parts::{PartName, Parts};
use crate::queue::Stop;

const FINDING: &str = "finding the output folder";
const FINISHING: &str = "finishing the output";

/// A folder that is to be made or replaced.
pub struct NewFolder {
    /// Its name, without symlinks.
    pub path: PathBuf,
    /// What its parts will be called.
    pub name: PartName,
    /// Mode and owner of the folder that has this name now.
    kept: Option<(u32, (u32, u32))>,
    old: Option<Old>,
}

/// The output of an earlier run that is to be replaced.
struct Old {
    manifest: Manifest,
    /// Mode and owner of its files.
    kept: (u32, (u32, u32)),
}

impl NewFolder {
    /// Follows the symlinks of the folder that `parts` names, and looks at what has that name now.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for what is no folder, for one that is not empty unless it is to be replaced and
    /// holds an earlier output and nothing else, and for a whole file system; the system's.
    pub fn find(os: &dyn Os, parts: &Parts) -> Result<Self> {
        let failed = |error: io::Error| Error::io(FINDING, &parts.folder, &error);
        let path = os.resolve(&parts.folder).map_err(failed)?;
        let refuse = |cause: &str| Error::new(ErrorKind::Usage, FINDING, cause).at(&parts.folder);
        let mut folder = Self {
            path,
            name: parts.name.clone(),
            kept: None,
            old: None,
        };
        let meta = match os.meta_at(&folder.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(folder),
            found => found.map_err(failed)?,
        };
        if meta.kind != Kind::Directory {
            return Err(refuse("it is no folder"));
        }
        let around = os.meta_at(folder.beside()).map_err(failed)?;
        if around.identity.0 != meta.identity.0 {
            return Err(
                refuse("it is a whole file system, which cannot be replaced")
                    .hint("Name a folder in it."),
            );
        }
        folder.kept = Some((meta.mode, meta.owner));
        let names = os.list_dir(&folder.path).map_err(failed)?;
        if names.is_empty() {
            return Ok(folder);
        }
        if !parts.overwrite {
            return Err(refuse("it is not empty")
                .hint("--overwrite replaces what an earlier run made; or choose another folder."));
        }
        folder.old = Some(Old::find(os, &folder.path)?);
        Ok(folder)
    }

    /// The folder it lies in.
    #[must_use]
    pub fn beside(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// Its name until it is complete. `mark` is a random number.
    #[must_use]
    pub fn temporary(&self, mark: u64) -> PathBuf {
        self.beside().join(temporary_name(&self.path, mark))
    }

    /// The parts that will be replaced.
    pub fn old_parts(&self) -> impl Iterator<Item = PathBuf> {
        let manifest = self.old.as_ref().map(|old| &old.manifest);
        let parts = manifest.map_or(&[][..], |manifest| &manifest.parts[..]);
        parts.iter().map(|part| self.path.join(&part.name))
    }

    /// Permissions of files that are made in it: what replaces private files is private from the first byte on.
    #[must_use]
    pub fn file_mode(&self) -> u32 {
        if self.old.is_some() { 0o600 } else { 0o666 }
    }
}

impl Old {
    fn find(os: &dyn Os, path: &Path) -> Result<Self> {
        let manifest = Manifest::read(os, path).map_err(|error| match error.kind {
            ErrorKind::Input => Error::new(
                ErrorKind::Usage,
                FINDING,
                format!("it holds no output of sort --parts: {}", error.cause),
            )
            .at(error.path.as_deref().unwrap_or(path))
            .hint("Nothing was changed. Empty the folder, or choose another one."),
            _ => error,
        })?;
        refuse_others(os, path, &manifest)?;
        let first = path.join(&manifest.parts[0].name);
        let meta = os
            .meta_at(&first)
            .or_else(|_| os.meta_at(&path.join(manifest::NAME)))
            .map_err(|error| Error::io(FINDING, path, &error))?;
        Ok(Self {
            manifest,
            kept: (meta.mode & 0o777, meta.owner),
        })
    }
}

/// Fails if a folder holds anything that its manifest does not name.
fn refuse_others(os: &dyn Os, path: &Path, manifest: &Manifest) -> Result<()> {
    let names = os
        .list_dir(path)
        .map_err(|error| Error::io(FINDING, path, &error))?;
    let is_other = |name: &&OsString| !name.to_str().is_some_and(|name| manifest.names(name));
    match names.iter().find(is_other) {
        None => Ok(()),
        Some(name) => {
            let cause = format!("it holds {name:?}, which is no part of the earlier output");
            Err(Error::new(ErrorKind::Usage, FINDING, cause)
                .at(path)
                .hint("Nothing was changed. Move that away, or choose another folder."))
        }
    }
}

/// The folder under its temporary name. Gone with its parts when dropped, unless it was committed.
pub struct UncommittedFolder<'a> {
    os: &'a dyn Os,
    target: &'a NewFolder,
    /// The temporary name.
    pub path: PathBuf,
    made: bool,
}

impl<'a> UncommittedFolder<'a> {
    /// Not made yet. `mark` is a random number for its temporary name.
    #[must_use]
    pub fn new(os: &'a dyn Os, target: &'a NewFolder, mark: u64) -> Self {
        Self {
            os,
            target,
            path: target.temporary(mark),
            made: false,
        }
    }

    /// Makes it. Where it will take the place of another one, tries first whether the file system can do that.
    ///
    /// # Errors
    /// The system's; [`ErrorKind::Usage`] where an earlier output cannot be replaced in one step.
    pub fn make(&mut self) -> Result<()> {
        let failed = |error: io::Error| {
            Error::io(
                "making a temporary folder beside it",
                &self.target.path,
                &error,
            )
        };
        let mode = if self.target.kept.is_some() {
            0o700
        } else {
            0o777
        };
        self.os.create_dir(&self.path, mode).map_err(failed)?;
        self.made = true;
        if self.target.old.is_none() {
            return Ok(());
        }
        let tried = TRIED.map(|name| self.path.join(name));
        for path in &tried {
            self.os.create_dir(path, 0o700).map_err(failed)?;
        }
        let exchanged = self.os.exchange(&tried[0], &tried[1]);
        for path in &tried {
            self.os.remove_dir(path).map_err(failed)?;
        }
        exchanged.map_err(|error| {
            let cause = format!("this file system cannot exchange two folders: {error}");
            Error::new(ErrorKind::Usage, FINDING, cause)
                .at(&self.target.path)
                .hint("Remove the earlier output first, or choose another folder.")
        })
    }

    /// Cuts each part to its bytes, makes those that have none, gives them mode and owner of the files they
    /// replace, and waits until all of them are on the device.
    ///
    /// # Errors
    /// The system's, and that of `stop`.
    pub fn finish(&self, part_bytes: &[u64], stop: &Stop) -> Result<()> {
        let path = |number: usize| self.path.join(self.target.name.of(number as u64));
        for (number, &bytes) in part_bytes.iter().enumerate() {
            stop.check()?;
            let path = path(number);
            self.finish_part(&path, bytes)
                .map_err(|error| Error::io(FINISHING, &path, &error))?;
        }
        // Only now: the first of these makes most of the others cheap, where a file system keeps a journal.
        for number in 0..part_bytes.len() {
            stop.check()?;
            let path = path(number);
            let open = self.os.open_for_write(&path, Access::Cached);
            open.and_then(|file| self.os.sync(&file))
                .map_err(|error| Error::io(FINISHING, &path, &error))?;
        }
        Ok(())
    }

    fn finish_part(&self, path: &Path, bytes: u64) -> io::Result<()> {
        let file = match bytes {
            0 => self
                .os
                .create(path, Access::Cached, self.target.file_mode())?,
            _ => self.os.open_for_write(path, Access::Cached)?,
        };
        self.os.set_bytes(&file, bytes)?;
        if let Some(Old { kept, .. }) = &self.target.old {
            self.os.set_mode_and_owner(&file, kept.0, kept.1)?;
        }
        Ok(())
    }

    /// Writes the manifest, gives the folder its name and waits until that is on the device. What had the name
    /// before is removed afterwards.
    ///
    /// # Errors
    /// The system's, that of `stop` if it comes before the name is given, and [`ErrorKind::Usage`] if somebody
    /// put something into the folder meanwhile: then it stays as it is.
    pub fn commit(mut self, manifest: &Manifest, stop: &Stop) -> Result<()> {
        let (os, target) = (self.os, self.target);
        let failed = |error: io::Error| Error::io(FINISHING, &target.path, &error);
        let file = manifest.write(os, &self.path, target.file_mode())?;
        if let Some(Old { kept, .. }) = &target.old {
            os.set_mode_and_owner(&file, kept.0, kept.1)
                .map_err(failed)?;
        }
        os.sync(&file).map_err(failed)?;
        if let Some((mode, owner)) = target.kept {
            let folder = os.open(&self.path, Access::Cached).map_err(failed)?;
            os.set_mode_and_owner(&folder, mode, owner)
                .map_err(failed)?;
        }
        os.sync_dir(&self.path).map_err(failed)?;
        stop.check()?;
        let naming = |error| Error::io("giving the output its name", &target.path, &error);
        match &target.old {
            None => os.rename(&self.path, &target.path).map_err(naming)?,
            Some(old) => {
                refuse_others(os, &target.path, &old.manifest)?;
                os.exchange(&self.path, &target.path).map_err(naming)?;
            }
        }
        self.made = false;
        os.sync_dir(target.beside()).map_err(|error| {
            let old = match &target.old {
                None => String::new(),
                Some(_) => format!(" What it replaced is kept as {}.", self.path.display()),
            };
            Error::io(
                "making the name of the output last",
                target.beside(),
                &error,
            )
            .hint(format!(
                "The output is complete and has its name, but may lose it in a power failure.{old}"
            ))
        })?;
        match &target.old {
            None => Ok(()),
            Some(old) => {
                let removed = remove(os, &self.path, |file| old.manifest.names(file));
                removed.map_err(|error| {
                    Error::io("removing what was there before", &self.path, &error)
                        .hint("The output is complete. What it replaced is left here.")
                })
            }
        }
    }
}

impl Drop for UncommittedFolder<'_> {
    fn drop(&mut self) {
        if self.made {
            // The error that led here is the one to tell; a second one would hide it.
            let name = &self.target.name;
            let _ = remove(self.os, &self.path, |file| name.number(file).is_some());
        }
    }
}

/// Removes a folder of parts that a killed job left: what its manifest names, if it has one, and what has a name
/// like `name`, then the folder itself unless something else lies in it.
///
/// # Errors
/// The system's.
pub fn remove_parts(os: &dyn Os, path: &Path, name: Option<&PartName>) -> io::Result<()> {
    let manifest = Manifest::read(os, path).ok();
    remove(os, path, |file| {
        let known = manifest
            .as_ref()
            .is_some_and(|manifest| manifest.names(file));
        known || name.is_some_and(|name| name.number(file).is_some())
    })
}

fn remove(os: &dyn Os, path: &Path, is_part: impl Fn(&str) -> bool) -> io::Result<()> {
    let names = os.list_dir(path)?;
    for file in names.iter().filter_map(|file| file.to_str()) {
        if file == manifest::NAME {
            continue;
        }
        if is_part(file) {
            os.remove_file(&path.join(file))?;
        } else if TRIED.contains(&file) {
            os.remove_dir(&path.join(file))?;
        }
    }
    // The manifest last: whoever has to go on with this learns from it what else to remove.
    if names.iter().any(|file| file == manifest::NAME) {
        os.remove_file(&path.join(manifest::NAME))?;
    }
    os.remove_dir(path)
}

/// Folders that are exchanged to see whether that can be done.
const TRIED: [&str; 2] = ["one", "other"];
