//! A job's temporary data: a file in each of its folders, or the space of its output.
//!
//! [`Temps::allocate`] says where the next block goes, and gives away only what is set apart for the file already: so
//! a folder whose disk fills up meanwhile is left out, and the others take the rest, without a block that has to be
//! moved. Where the file system cannot set space apart, a full disk shows when a block is written.

use std::io;
use std::path::PathBuf;

use sortmill_io::sync::{Arc, Mutex, lock};
use sortmill_io::{File, Os};

use crate::error::{Error, ErrorKind, Result};
use crate::plan::Plan;
use crate::report::TempBytes;
use crate::space::Regions;
use crate::spread::{Spot, Spread, TempFolder};
use crate::temp::{Temp, Unfinished};
use crate::text;

/// All temporary data of a job. What is made goes when this is dropped.
pub struct Temps<'a> {
    os: &'a dyn Os,
    folders: Vec<Folder<'a>>,
    /// The output's file, where temporary data lie in its space.
    output_file: Mutex<Option<Arc<File>>>,
    state: Mutex<State>,
}

struct Folder<'a> {
    temp: Temp<'a>,
    /// Blocks in flight each way.
    depth: usize,
    /// What is set apart when its file is made, at least.
    expected_bytes: u64,
    /// The most that is set apart before it is needed.
    room_bytes: u64,
    /// What is set apart with each step beyond.
    step_bytes: u64,
}

struct State {
    spread: Spread,
    regions: Option<Regions>,
    /// Bytes given out.
    given_bytes: u64,
    /// Bytes set apart in each folder's file.
    reserved_bytes: Vec<u64>,
}

/// Beyond what was expected, space is set apart in steps of so many blocks: growing a file with each direct write is
/// far slower.
const STEP_BLOCKS: u64 = 64;

impl<'a> Temps<'a> {
    /// Temporary data of job number `job` in `folders`. `output` is its output, if that has a temporary name.
    #[must_use]
    pub fn new(
        os: &'a dyn Os,
        job: u64,
        folders: &[TempFolder],
        output: Option<&Unfinished>,
        plan: &Plan,
    ) -> Self {
        let step_bytes = STEP_BLOCKS * plan.block_bytes as u64;
        // What all of it would take is not set apart where it is to shrink.
        let shrinks = plan.shrinks_temp();
        let folder = |folder: &TempFolder| Folder {
            temp: Temp::new(os, &folder.path, job, output.cloned(), 0),
            depth: (plan.block_depth / folder.neighbor_count).max(1),
            expected_bytes: folder
                .expected_bytes
                .filter(|_| !shrinks)
                .unwrap_or(step_bytes),
            room_bytes: folder.room_bytes.unwrap_or(u64::MAX),
            step_bytes,
        };
        Self {
            os,
            folders: folders.iter().map(folder).collect(),
            output_file: Mutex::new(None),
            state: Mutex::new(State {
                spread: Spread::new(folders, plan.temp_bytes),
                regions: None,
                given_bytes: 0,
                reserved_bytes: vec![0; folders.len()],
            }),
        }
    }

    /// Makes the folders if they are not there yet, so that a job that cannot fails at its start.
    ///
    /// # Errors
    /// As [`Temp::make`].
    pub fn make(&self) -> Result<()> {
        self.folders
            .iter()
            .try_for_each(|folder| folder.temp.make())
    }

    /// The folders they are made in.
    pub fn bases(&self) -> impl Iterator<Item = &std::path::Path> {
        self.folders.iter().map(|folder| folder.temp.base())
    }

    /// Blocks in flight each way, in each folder.
    #[must_use]
    pub fn depths(&self) -> Vec<usize> {
        self.folders.iter().map(|folder| folder.depth).collect()
    }

    /// Puts temporary data into the space of the output `file`, which is written over them: behind it, until
    /// [`Temps::divide`] gives each slot its part.
    pub fn lie_in_output(&self, file: Arc<File>, regions: Regions) {
        lock(&self.state).regions = Some(regions);
        *lock(&self.output_file) = Some(file);
    }

    /// Whether temporary data lie in the space of the output.
    #[must_use]
    pub fn lies_in_output(&self) -> bool {
        lock(&self.output_file).is_some()
    }

    /// Gives each slot its part of the output's space above `base`, below which the output has been written, by its
    /// share of a sample, if temporary data lie there.
    pub fn divide(&self, shares: &[u64], base: u64) {
        if let Some(regions) = &mut lock(&self.state).regions {
            regions.divide(shares, base);
        }
    }

    /// Gives `bytes` of temporary space to the caller. In files of their own they are the next ones of a folder; in
    /// the output's space they lie in region `region`, or behind the output.
    ///
    /// # Errors
    /// [`ErrorKind::Space`] when every folder is full, and as [`Temp::make`].
    pub fn allocate(&self, bytes: u64, region: Option<u32>) -> Result<Spot> {
        let mut state = lock(&self.state);
        if let Some(regions) = &mut state.regions {
            let offset = regions.take(region, bytes);
            state.given_bytes += bytes;
            return Ok(Spot { folder: 0, offset });
        }
        let mut why = None;
        while let Some(number) = state.spread.choose(bytes) {
            let end = state.spread.given_bytes(number) + bytes;
            match self.set_apart(number, end, &mut state.reserved_bytes[number])? {
                None => {
                    state.given_bytes += bytes;
                    return Ok(state.spread.give(number, bytes));
                }
                Some(full) => {
                    state.spread.close(number);
                    why = Some(full);
                }
            }
        }
        Err(self.full(&state.spread, why))
    }

    /// Sets space apart for the file of folder `number` up to `end`; the error of a disk that is full.
    fn set_apart(
        &self,
        number: usize,
        end: u64,
        reserved_bytes: &mut u64,
    ) -> Result<Option<io::Error>> {
        if end <= *reserved_bytes {
            return Ok(None);
        }
        let folder = &self.folders[number];
        let file = folder.temp.spill_file()?;
        let wished = match *reserved_bytes {
            0 => folder.expected_bytes,
            reserved => reserved + folder.step_bytes,
        };
        let wished = wished.min(folder.room_bytes).max(end);
        let mut full = None;
        for bytes in [wished, end] {
            match self.os.reserve(&file, bytes) {
                Ok(()) => {
                    *reserved_bytes = bytes;
                    return Ok(None);
                }
                Err(error) => {
                    let wrong = Error::io("reserving temporary space", &file.path, &error);
                    if wrong.kind != ErrorKind::Space {
                        return Err(wrong);
                    }
                    full = Some(error);
                }
            }
        }
        Ok(full)
    }

    /// The error of folders that are full.
    fn full(&self, spread: &Spread, why: Option<io::Error>) -> Error {
        const DOING: &str = "writing temporary data";
        if let ([folder], Some(why)) = (&*self.folders, &why) {
            return Error::io(DOING, &folder.temp.spill_path(), why);
        }
        let held = |(number, base): (usize, &std::path::Path)| {
            let bytes = text::bytes(spread.given_bytes(number));
            format!("{} in {}", bytes, base.display())
        };
        let held: Vec<String> = self.bases().enumerate().map(held).collect();
        let cause = format!(
            "No space left in any of the folders: there are {}",
            held.join(", ")
        );
        Error::new(ErrorKind::Space, DOING, cause)
            .hint("Free some space, or name more folders with --temp.")
    }

    /// The disk of folder `number` has written `bytes`, and had writes in flight for `writing_ns` more.
    pub fn wrote(&self, number: usize, bytes: u64, writing_ns: u64) {
        lock(&self.state).spread.wrote(number, bytes, writing_ns);
    }

    /// Bytes given out so far.
    #[must_use]
    pub fn given_bytes(&self) -> u64 {
        lock(&self.state).given_bytes
    }

    /// Bytes given out so far in folder `number`, in a file of its own; that is where the next ones go.
    #[must_use]
    pub fn given_bytes_of(&self, number: usize) -> u64 {
        lock(&self.state).spread.given_bytes(number)
    }

    /// The file with the temporary data of folder `number`: one of its own, made if it is not there yet, or the
    /// output's.
    ///
    /// # Errors
    /// As [`Temp::make`].
    pub fn file(&self, number: usize) -> Result<Arc<File>> {
        match &*lock(&self.output_file) {
            Some(file) => Ok(Arc::clone(file)),
            None => self.folders[number].temp.spill_file(),
        }
    }

    /// The files with temporary data, as far as there are any: one of its own for each folder, or the output's.
    #[must_use]
    pub fn files(&self) -> Vec<Option<Arc<File>>> {
        match &*lock(&self.output_file) {
            Some(file) => vec![(self.given_bytes() > 0).then(|| Arc::clone(file))],
            None => self.spilled(),
        }
    }

    /// The temporary files of their own.
    #[must_use]
    pub fn spilled(&self) -> Vec<Option<Arc<File>>> {
        let folders = self.folders.iter();
        folders.map(|folder| folder.temp.spilled()).collect()
    }

    /// Where the file with the temporary data of folder `number` is, once it was made.
    #[must_use]
    pub fn path(&self, number: usize) -> PathBuf {
        match &*lock(&self.output_file) {
            Some(file) => file.path.clone(),
            None => self.folders[number].temp.spill_path(),
        }
    }

    /// What each folder got; nothing where temporary data lay in the output's space.
    #[must_use]
    pub fn report(&self) -> Vec<TempBytes> {
        if self.lies_in_output() {
            return Vec::new();
        }
        let of = |(number, base): (usize, &std::path::Path)| TempBytes {
            path: base.display().to_string(),
            bytes: self.given_bytes_of(number),
        };
        self.bases().enumerate().map(of).collect()
    }

    /// Removes the temporary files ([`Temp::remove_spill`]).
    pub fn remove_spilled(&self) {
        let folders = self.folders.iter();
        folders.for_each(|folder| folder.temp.remove_spill());
    }

    /// Removes the folders and what is in them, if they were made.
    pub fn remove(&self) {
        let folders = self.folders.iter();
        folders.for_each(|folder| folder.temp.remove());
    }
}
