//! Whether two names, or a name and an open file, are of one file, so that what is written does not replace what is read.

use std::fs::{File, Metadata};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where a file lies, whether it is there or not.
#[derive(Default)]
pub struct Place {
    /// Device and inode of a file that is there and keeps what is written to it.
    identity: Option<(u64, u64)>,
    /// Where it will be, if it is not there.
    path: Option<PathBuf>,
}

impl Place {
    pub fn of(path: &Path) -> Self {
        if let Ok(meta) = std::fs::metadata(path) {
            return Self::of_meta(&meta);
        }
        // The name of a link that leads to nothing is not what will be written to.
        let path = std::fs::read_link(path).map_or_else(
            |_| path.to_owned(),
            |target| path.parent().unwrap_or(Path::new(".")).join(target),
        );
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let folder = std::fs::canonicalize(folder.unwrap_or(Path::new(".")));
        let name = path.file_name();
        Self {
            identity: None,
            path: folder
                .ok()
                .zip(name)
                .map(|(folder, name)| folder.join(name)),
        }
    }

    pub fn of_open(file: BorrowedFd<'_>) -> Self {
        let copy = file.try_clone_to_owned().map(File::from);
        let meta = copy.and_then(|file| file.metadata());
        meta.map_or_else(|_| Self::default(), |meta| Self::of_meta(&meta))
    }

    /// A terminal, a pipe or `/dev/null` takes several things.
    fn of_meta(meta: &Metadata) -> Self {
        let keeps = meta.is_file() || meta.is_dir();
        Self {
            identity: keeps.then(|| (meta.dev(), meta.ino())),
            path: None,
        }
    }

    pub fn is(&self, other: &Self) -> bool {
        (self.identity.is_some() && self.identity == other.identity)
            || (self.path.is_some() && self.path == other.path)
    }
}
