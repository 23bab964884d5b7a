//! The files of an output in parts, a few of them open at a time.
//!
//! In come blocks of any part in any order, out goes the open file that each belongs to. A part that has got
//! all its bytes is not told from one that waits for more: the file that was used longest ago is closed when
//! another is needed, and opened again if it must be. So thousands of parts need few descriptors.

use std::path::PathBuf;

use sortmill_io::sync::Arc;
use sortmill_io::sync::atomic::{AtomicBool, Ordering};
use sortmill_io::{Access, File, Os, align_up};

use super::{DOING, OutBlock};
use crate::error::{Error, Result};
use crate::parts::PartName;

/// Files open at a time: more than there are writes in flight, so that one of them is always idle.
const OPEN_MAX: usize = 24;

/// Where parts are written.
pub struct PartFiles {
    /// The folder they are made in.
    pub folder: PathBuf,
    name: PartName,
    mode: u32,
    /// Writes in flight.
    pub depth: usize,
    cached: AtomicBool,
}

impl PartFiles {
    /// Files in `folder` of names like `name`, made with `mode` less what the user's umask withholds and written
    /// with `depth` writes in flight.
    #[must_use]
    pub fn new(folder: PathBuf, name: PartName, mode: u32, depth: usize) -> Self {
        Self {
            folder,
            name,
            mode,
            depth,
            cached: AtomicBool::new(false),
        }
    }

    /// Whether all that was written went past the page cache.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        !self.cached.load(Ordering::SeqCst)
    }

    /// With none open.
    pub(super) fn open<'a>(&'a self, os: &'a dyn Os) -> OpenParts<'a> {
        OpenParts {
            os,
            files: self,
            open: Vec::with_capacity(OPEN_MAX),
        }
    }
}

/// The files that are open, the one used last at the end.
pub(super) struct OpenParts<'a> {
    os: &'a dyn Os,
    files: &'a PartFiles,
    open: Vec<OpenPart>,
}

struct OpenPart {
    part: u64,
    file: Arc<File>,
    reserved_bytes: u64,
}

impl OpenParts<'_> {
    /// The file of a block, made if it is the part's first, with room for what is known to come.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn file(&mut self, block: &OutBlock) -> Result<Arc<File>> {
        let found = self.open.iter().position(|open| open.part == block.part);
        let mut open = match found {
            Some(at) => self.open.remove(at),
            None => self.open_part(block.part)?,
        };
        if block.reserve_bytes > open.reserved_bytes {
            // Without it, each direct write that makes the file longer would wait for the one before.
            let reserved = self.os.reserve(&open.file, align_up(block.reserve_bytes));
            reserved.map_err(|error| Error::io("reserving space", &open.file.path, &error))?;
            open.reserved_bytes = block.reserve_bytes;
        }
        let file = Arc::clone(&open.file);
        self.open.push(open);
        Ok(file)
    }

    fn open_part(&mut self, part: u64) -> Result<OpenPart> {
        if self.open.len() >= OPEN_MAX
            && let Some(idle) = self
                .open
                .iter()
                .position(|open| Arc::strong_count(&open.file) == 1)
        {
            self.open.remove(idle);
        }
        let path = self.files.folder.join(self.files.name.of(part));
        let (access, mode) = (Access::Direct, self.files.mode);
        let file = match self.os.open_for_write(&path, access) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                self.os.create(&path, access, mode)
            }
            opened => opened,
        };
        let file = file.map_err(|error| Error::io(DOING, &path, &error))?;
        if file.access == Access::Cached {
            self.files.cached.store(true, Ordering::SeqCst);
        }
        Ok(OpenPart {
            part,
            file: Arc::new(file),
            reserved_bytes: 0,
        })
    }
}
