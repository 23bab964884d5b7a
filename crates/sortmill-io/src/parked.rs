//! Files that are open only while they are used: of thousands of inputs that is a few at a time.
//!
//! A process may have as few as 64 descriptors (`ulimit -n`). A parked file has none; whoever reads it takes one for as
//! long as that lasts, and all who do so at once share it. What is opened again must be the same file, by device and
//! inode: a name may have been given to another one meanwhile.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Weak};

use rustix::fs::{Mode, OFlags};

use crate::sync::{Mutex, lock};

/// How to open a file again.
pub(crate) struct Parked {
    flags: OFlags,
    /// Device and inode.
    identity: (u64, u64),
    /// The descriptor, while somebody uses it.
    open: Mutex<Weak<OwnedFd>>,
}

impl Parked {
    /// Of the file that `fd` is, which was opened with `flags`.
    ///
    /// # Errors
    /// The system's.
    pub fn new(fd: &OwnedFd, flags: OFlags) -> io::Result<Self> {
        Ok(Self {
            flags,
            identity: identity(fd)?,
            open: Mutex::new(Weak::new()),
        })
    }

    /// The file's descriptor; it is closed when the last one of these is dropped. `path` is the file's name.
    ///
    /// # Errors
    /// The system's, and one for another file of that name.
    pub fn open(&self, path: &Path) -> io::Result<Arc<OwnedFd>> {
        let mut open = lock(&self.open);
        if let Some(fd) = open.upgrade() {
            return Ok(fd);
        }
        let fd = rustix::fs::open(path, self.flags, Mode::empty())?;
        if identity(&fd)? != self.identity {
            return Err(io::Error::other(
                "another file has this name than at the start",
            ));
        }
        let fd = Arc::new(fd);
        *open = Arc::downgrade(&fd);
        Ok(fd)
    }
}

fn identity(fd: &OwnedFd) -> io::Result<(u64, u64)> {
    let meta = std::fs::File::from(fd.try_clone()?).metadata()?;
    Ok((meta.dev(), meta.ino()))
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    fn opened(path: &Path) -> OwnedFd {
        std::fs::File::open(path).unwrap().into()
    }

    #[test]
    fn users_share_a_descriptor_and_another_file_is_refused() {
        let folder = std::env::temp_dir().join(format!("sortmill-parked-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("file");
        std::fs::write(&path, b"one").unwrap();
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let parked = Parked::new(&opened(&path), flags).unwrap();
        let (first, second) = (parked.open(&path).unwrap(), parked.open(&path).unwrap());
        assert_eq!(first.as_raw_fd(), second.as_raw_fd());
        drop((first, second));
        assert!(lock(&parked.open).upgrade().is_none(), "nobody uses it");
        // It may grow, but not be another one.
        std::fs::write(&path, b"one and more").unwrap();
        parked.open(&path).unwrap();
        std::fs::write(folder.join("other"), b"two").unwrap();
        std::fs::rename(folder.join("other"), &path).unwrap();
        let error = parked.open(&path).unwrap_err();
        assert!(error.to_string().contains("another file"), "{error}");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(
            parked.open(&path).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
