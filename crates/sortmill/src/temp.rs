//! The job's folder for temporary files, and what killed jobs left behind.
//!
//! One folder per job, `sortmill-<number>`, with the file `owner`, which its job keeps locked as long as it
//! lives and which names what else belongs to it (`docs/formats.md`), and the file `spill`. The folder goes
//! when the job ends, however it ends. A job that was killed leaves it, unlocked; the next job of the same user in the same
//! place takes it away (promise 6), never one that is locked.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sortmill_io::os::{Access, Kind, Meta};
use sortmill_io::sync::{Arc, Mutex, lock};
use sortmill_io::{File, Os};

use crate::error::{Error, ErrorKind, Result};
use crate::parts::PartName;

const PREFIX: &str = "sortmill-";
const OWNER: &str = "owner";
const SPILL: &str = "spill";
/// What may lie there between two jobs of a pipeline: what one has made and what the next one makes.
pub const BETWEEN: [&str; 2] = ["between-0", "between-1"];

/// What the file `owner` says.
#[derive(Serialize, Deserialize)]
struct Manifest {
    /// The version of this form.
    version: u32,
    /// The output under its temporary name, if it is a file: as bytes, for a name need not be text.
    output: Option<Vec<u8>>,
    /// What the files in it are called, if it is a folder of parts.
    #[serde(default)]
    parts: Option<String>,
}

/// The output of a job under its temporary name.
#[derive(Clone)]
pub struct Unfinished {
    /// The name.
    pub path: PathBuf,
    /// What the files in it are called, if it is a folder of parts.
    pub parts: Option<PartName>,
}

/// A job's folder. Made when it is first needed, gone when dropped.
pub struct Temp<'a> {
    os: &'a dyn Os,
    base: PathBuf,
    job: u64,
    output: Option<Unfinished>,
    reserve_bytes: u64,
    made: Mutex<Option<Made>>,
}

struct Made {
    folder: PathBuf,
    /// Keeps the lock.
    _owner: File,
    spill: Option<Arc<File>>,
}

impl<'a> Temp<'a> {
    /// The folder of job number `job` in `base`. `output` is its output, if that has a temporary name,
    /// `reserve_bytes` what is set apart for the temporary file when it is made.
    #[must_use]
    pub fn new(
        os: &'a dyn Os,
        base: &Path,
        job: u64,
        output: Option<Unfinished>,
        reserve_bytes: u64,
    ) -> Self {
        Self {
            os,
            base: base.to_owned(),
            job,
            output,
            reserve_bytes,
            made: Mutex::new(None),
        }
    }

    /// The folder it is made in.
    #[must_use]
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// Makes the folder if it is not there yet, so that a job that cannot fails at its start.
    ///
    /// # Errors
    /// When the base is missing or not writable.
    pub fn make(&self) -> Result<()> {
        let mut made = lock(&self.made);
        if made.is_none() {
            *made = Some(self.make_folder()?);
        }
        Ok(())
    }

    /// The temporary file, made if it is not there yet.
    ///
    /// # Errors
    /// As [`Temp::make`].
    pub fn spill_file(&self) -> Result<Arc<File>> {
        self.make()?;
        let mut made = lock(&self.made);
        let made = made.as_mut().expect("it was just made");
        if let Some(file) = &made.spill {
            return Ok(Arc::clone(file));
        }
        let path = made.folder.join(SPILL);
        let file = self
            .os
            .create(&path, Access::Direct, 0o600)
            .map_err(|error| Error::io("making the temporary file", &path, &error))?;
        // Growing a file with each direct write is far slower than filling a reserved one.
        self.os
            .reserve(&file, self.reserve_bytes)
            .map_err(|error| Error::io("reserving temporary space", &path, &error))?;
        let file = Arc::new(file);
        made.spill = Some(Arc::clone(&file));
        Ok(file)
    }

    /// Where the temporary file is, once it was made.
    #[must_use]
    pub fn spill_path(&self) -> PathBuf {
        let made = lock(&self.made);
        let folder = made.as_ref().map_or(&self.base, |made| &made.folder);
        folder.join(SPILL)
    }

    /// The temporary file, if it was made and not removed.
    #[must_use]
    pub fn spilled(&self) -> Option<Arc<File>> {
        lock(&self.made).as_ref()?.spill.clone()
    }

    /// Removes the temporary file: all of it has been read. It goes when nobody else has it open, and to
    /// tell a device what is free takes it a while (0.2 s per GB on one that was measured), better while
    /// the last units are sorted than after them.
    pub fn remove_spill(&self) {
        if let Some(made) = lock(&self.made).as_mut()
            && let Some(file) = made.spill.take()
        {
            let _ = self.os.remove_file(&file.path);
        }
    }

    /// Makes the folder. Another job that cleans up may take away one that is not yet locked: then the next
    /// number is tried.
    fn make_folder(&self) -> Result<Made> {
        const ATTEMPTS: u64 = 4;
        let mut attempt = 0;
        loop {
            let number = self.job.wrapping_add(attempt);
            let folder = self.base.join(format!("{PREFIX}{number:016x}"));
            let wrong = |error: std::io::Error| {
                let error = Error::io("making the folder for temporary files", &folder, &error);
                match error.kind {
                    ErrorKind::Io => error.hint("Choose another folder with --temp."),
                    _ => error,
                }
            };
            self.os.create_dir(&folder, 0o700).map_err(wrong)?;
            match self.make_owner(&folder) {
                Ok(_owner) => {
                    return Ok(Made {
                        folder,
                        _owner,
                        spill: None,
                    });
                }
                Err(error) => {
                    remove(self.os, &folder);
                    attempt += 1;
                    let taken = matches!(
                        error.kind(),
                        std::io::ErrorKind::NotFound | std::io::ErrorKind::ResourceBusy
                    );
                    if !taken || attempt == ATTEMPTS {
                        return Err(wrong(error));
                    }
                }
            }
        }
    }

    fn make_owner(&self, folder: &Path) -> std::io::Result<File> {
        let owner = self.os.create(&folder.join(OWNER), Access::Cached, 0o600)?;
        let locked = self.os.try_lock(&owner)?;
        let found = self.os.meta_at(&folder.join(OWNER))?;
        if !locked || found.identity != self.os.meta(&owner)?.identity {
            return Err(std::io::ErrorKind::ResourceBusy.into());
        }
        let output = self.output.as_ref();
        let manifest = Manifest {
            version: 1,
            output: output.map(|output| output.path.as_os_str().as_bytes().to_vec()),
            parts: output.and_then(|output| output.parts.as_ref().map(PartName::to_string)),
        };
        let text = serde_json::to_vec(&manifest).expect("a manifest is text");
        self.os.write_stream(&owner, &text, &|| false)?;
        Ok(owner)
    }
}

impl Temp<'_> {
    /// Removes the folder and what is in it, if it was made.
    pub fn remove(&self) {
        if let Some(made) = lock(&self.made).take() {
            remove(self.os, &made.folder);
        }
    }
}

impl Drop for Temp<'_> {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Removes a job's folder and what is in it.
fn remove(os: &dyn Os, folder: &Path) {
    for name in [BETWEEN[0], BETWEEN[1], SPILL, OWNER] {
        let _ = os.remove_file(&folder.join(name));
    }
    let _ = os.remove_dir(folder);
}

/// Takes away what killed jobs left in `base`. Whatever stands in the way is left for the next time.
pub fn clean_up(os: &dyn Os, base: &Path) {
    let Ok(names) = os.list_dir(base) else { return };
    for name in names.iter().filter(|name| is_job_folder(name)) {
        let folder = base.join(name);
        if !is_itself(os, &folder) || !is_ours(os, os.meta_at(&folder), Kind::Directory) {
            continue;
        }
        if !is_itself(os, &folder.join(OWNER)) {
            continue;
        }
        let owner = match os.open(&folder.join(OWNER), Access::Cached) {
            Ok(owner) => owner,
            // Its job was killed before it had an owner, or is about to have one: an empty folder can go.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let _ = os.remove_dir(&folder);
                continue;
            }
            Err(_) => continue,
        };
        let meta = os.meta(&owner);
        if !is_ours(os, meta, Kind::Regular) || !os.try_lock(&owner).unwrap_or(false) {
            continue;
        }
        if let Some(Manifest {
            output: Some(output),
            parts,
            ..
        }) = read_manifest(os, &owner)
        {
            let output = PathBuf::from(OsString::from_vec(output));
            // Only a name that this program gives to unfinished outputs is believed, and none that leads elsewhere.
            if crate::commit::is_temporary(&output) && is_itself(os, &output) {
                let name = parts.and_then(|name| name.parse().ok());
                let _ = os
                    .remove_file(&output)
                    .or_else(|_| crate::commit::remove_parts(os, &output, name.as_ref()));
            }
        }
        remove(os, &folder);
    }
}

/// Whether a path is that of a job's folder for temporary files, or of what is in one.
#[must_use]
pub fn is_of_job(path: &Path) -> bool {
    let folders = path.ancestors().take(2);
    folders.filter_map(Path::file_name).any(is_job_folder)
}

/// Whether a path is that of a file or folder itself: no link stands there, and nothing behind its name. Others may write where
/// temporary files lie.
fn is_itself(os: &dyn Os, path: &Path) -> bool {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return false;
    };
    let folder = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let is_its_end = path.as_os_str().as_bytes().ends_with(name.as_bytes());
    let lies_there = || Some(os.resolve(path).ok()? == os.resolve(folder).ok()?.join(name));
    is_its_end && lies_there().unwrap_or(false)
}

/// Whether something was made by this user, and is of this kind: of a pipe, say, one would wait for who writes to it.
fn is_ours(os: &dyn Os, meta: std::io::Result<Meta>, kind: Kind) -> bool {
    meta.is_ok_and(|meta| meta.kind == kind && meta.owner.0 == os.user())
}

fn is_job_folder(name: &OsStr) -> bool {
    let name = name.to_str().unwrap_or_default();
    name.strip_prefix(PREFIX)
        .is_some_and(|rest| rest.len() == 16 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn read_manifest(os: &dyn Os, owner: &File) -> Option<Manifest> {
    const BYTES_MAX: usize = 16 << 10;
    let mut bytes = vec![0; BYTES_MAX];
    let mut have = 0;
    while have < BYTES_MAX {
        match os.read_stream(owner, &mut bytes[have..], &|| false).ok()? {
            0 => break,
            moved => have += moved,
        }
    }
    serde_json::from_slice(&bytes[..have]).ok()
}
