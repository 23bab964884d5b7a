//! An input that nobody opens: bytes that a function of this process makes while the job reads them.
//!
//! The reader asks for as many bytes as it has room for, so whoever makes them is never ahead of the job by more than a chunk.
//! Nothing is copied but into that chunk, and no thread or pipe stands between. What fails in the function ends the job with
//! its own error.

use std::fmt;
use std::path::{Path, PathBuf};

use sortmill_io::sync::{Arc, Mutex, lock};

use crate::error::Result;

/// Fills some of a buffer from its beginning. Answers how many bytes; none is the end.
pub type Make = Box<dyn FnMut(&mut [u8]) -> Result<usize> + Send>;

/// Such an input. It can be read once.
#[derive(Clone)]
pub struct Made {
    name: PathBuf,
    make: Arc<Mutex<Make>>,
}

impl Made {
    /// What `make` makes, called `name` in messages.
    pub fn new(name: impl Into<PathBuf>, make: Make) -> Self {
        Self {
            name: name.into(),
            make: Arc::new(Mutex::new(make)),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Fills some of `into` from its beginning. Answers how many bytes; none is the end.
    ///
    /// # Errors
    /// The function's.
    pub fn read(&self, into: &mut [u8]) -> Result<usize> {
        let mut make = lock(&self.make);
        (*make)(into)
    }
}

impl PartialEq for Made {
    /// Whether it is the same function, not one that makes the same.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.make, &other.make)
    }
}

impl Eq for Made {}

impl fmt::Debug for Made {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Made").field(&self.name).finish()
    }
}
