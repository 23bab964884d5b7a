//! A file that one job writes and the next one reads: for what takes two sorts.
//!
//! It lies in a folder for temporary files, under a name that unfinished outputs have, and a folder of a third job, which
//! is held as long as this lives, says whose it is: so it goes when this is dropped, and if the process is killed, with
//! the next job of the same user that uses the same folder. Both jobs have the same number, so their fingerprints are keyed alike and prove
//! that the second one read what the first one wrote.

use std::path::{Path, PathBuf};

use sortmill_io::Os;

use crate::error::{Error, ErrorKind, Result};
use crate::report::Report;
use crate::temp::{Temp, Unfinished};
use crate::text;

/// The file between two jobs. There is none before the first one has written it.
pub struct Between<'a> {
    os: &'a dyn Os,
    temp: Temp<'a>,
    /// Its name.
    pub path: PathBuf,
    /// The number of both jobs.
    pub number: u64,
}

impl<'a> Between<'a> {
    /// Makes a place for it in `folder`.
    ///
    /// # Errors
    /// When the folder is missing or not writable.
    pub fn new(os: &'a dyn Os, folder: &Path) -> Result<Self> {
        let wrong = |error| Error::io("looking for the folder for temporary files", folder, &error);
        let folder = os.resolve(folder).map_err(wrong)?;
        let number = os.random();
        let path = folder.join(format!(".counts.sortmill-{number:016x}"));
        let unfinished = Unfinished {
            path: path.clone(),
            parts: None,
        };
        let temp = Temp::new(os, &folder, os.random(), Some(unfinished), 0);
        temp.make()?;
        Ok(Self {
            os,
            temp,
            path,
            number,
        })
    }

    /// Compares what the second job read with what the first one wrote.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] if they differ.
    pub fn prove(&self, first: &Report, second: &Report) -> Result<()> {
        let (wrote, read) = (&first.fingerprints.written, &second.fingerprints.input);
        if wrote == read {
            return Ok(());
        }
        let cause = format!(
            "{} records of {} bytes were written and {} of {} were read, or some were altered",
            text::count(wrote.records),
            text::count(wrote.bytes),
            text::count(read.records),
            text::count(read.bytes),
        );
        Err(Error::new(ErrorKind::Lost, "reading what was counted", cause).at(&self.path))
    }
}

impl Drop for Between<'_> {
    fn drop(&mut self) {
        // If the first job did not come so far there is none.
        let _ = self.os.remove_file(&self.path);
        self.temp.remove();
    }
}
