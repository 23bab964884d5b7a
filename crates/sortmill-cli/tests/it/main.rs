//! The program: standard output is data, standard error is words, exit codes are promises.

mod bench;
mod check;
mod doctor;
mod generate;
mod installed;
mod made;
mod memory;
mod merge;
mod readers;
mod sort;
mod verdict;

use std::path::{Path, PathBuf};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_sortmill");

/// A folder of one test on a real disk, empty at first and gone at the end.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub fn new(test: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self { path }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// What lies in it, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.path).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
