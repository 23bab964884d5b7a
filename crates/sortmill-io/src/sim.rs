//! A deterministic machine in memory, with faults: the third back end behind [`Os`], for tests.
//!
//! Every call that could fail on a real machine is numbered. A [`Fault`] makes the N-th one fail, once or
//! from then on, so that "fail the N-th operation, for every N" is an ordinary loop. Operations of a ring
//! complete in an order drawn from the seed, in pieces now and then; under shuttle the threads are
//! scheduled from a seed too, so a failing run can be run again.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::os::{
    Access, Done, File, FileSystem, Handle, Kind, Machine, Meta, Next, Op, OpKind, Os, Ring, Usage,
    after_transfer,
};
use crate::sync::{Arc, Mutex, lock};

/// What goes wrong, and when.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The number of the operation, from 0.
    pub at: u64,
    /// Whether every later operation fails too.
    pub for_good: bool,
    /// What happens.
    pub kind: FaultKind,
}

/// How an operation goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// It fails with this error number.
    Error(i32),
    /// It succeeds, but one bit of what it moved is wrong. Operations that move nothing are spared.
    Flip,
    /// A write says that it succeeded and writes nothing. Other operations are spared.
    Lie,
    /// Another file, with its second half in front of it, takes its name just before.
    Replaced,
}

/// The operation that a fault struck.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Struck {
    /// Its name, as in [`Os`]; `read` or `write` for a ring's.
    pub operation: &'static str,
    /// The file or folder it was about.
    pub path: PathBuf,
}

/// The machine. Cloning shares it.
#[derive(Clone)]
pub struct Sim {
    state: Arc<Mutex<State>>,
}

struct State {
    files: BTreeMap<PathBuf, Arc<SimFile>>,
    folders: Vec<PathBuf>,
    operation_count: u64,
    fault: Option<Fault>,
    struck: Option<Struck>,
    space_bytes: u64,
    /// Folders that are disks of their own, and how many bytes each may hold.
    disks: Vec<(PathBuf, u64)>,
    /// Of those, the numbers of some that are parts of a disk, and of the disk.
    partitions: Vec<(u64, u64)>,
    random: u64,
    clock_ns: u64,
    /// Bytes a second that a transfer takes on the clock; 0 takes none.
    bytes_per_s: u64,
    watch: Option<Watch>,
    file_count: u64,
    stdout: Arc<SimFile>,
    stdin: Arc<SimFile>,
}

/// Who is called after each transfer.
type Watch = std::sync::Arc<dyn Fn(&Sim) + Send + Sync>;

/// One file's bytes.
pub struct SimFile {
    number: u64,
    state: Mutex<Contents>,
}

#[derive(Default)]
struct Contents {
    bytes: Vec<u8>,
    changed_ns: i128,
    read_at: usize,
    locked: bool,
}

/// What an operation is to do after the fault plan was asked.
enum Verdict {
    Work,
    Flip,
    Lie,
}

impl Sim {
    /// An empty machine whose choices follow from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            state: Arc::new(Mutex::new(State {
                files: BTreeMap::new(),
                folders: vec![PathBuf::from("/")],
                operation_count: 0,
                fault: None,
                struck: None,
                space_bytes: u64::MAX / 4,
                disks: Vec::new(),
                partitions: Vec::new(),
                random: seed,
                clock_ns: 0,
                bytes_per_s: 0,
                watch: None,
                file_count: 2,
                stdout: new_file(0),
                stdin: new_file(1),
            })),
        }
    }

    /// Gives the disks of this machine a speed: they serve one transfer after the other, at so many bytes a second.
    /// The clock stands still meanwhile, but for them and whoever looks at it. Calls `watch` after each transfer.
    pub fn set_pace(&self, bytes_per_s: u64, watch: impl Fn(&Self) + Send + Sync + 'static) {
        let mut state = lock(&self.state);
        state.bytes_per_s = bytes_per_s;
        state.watch = Some(std::sync::Arc::new(watch));
    }

    /// A transfer of `bytes` has ended.
    fn transferred(&self, bytes: usize) {
        let mut state = lock(&self.state);
        let Some(watch) = state.watch.clone() else {
            return;
        };
        let ns = bytes as u64 * 1_000_000_000;
        state.clock_ns += ns.checked_div(state.bytes_per_s).unwrap_or(0);
        drop(state);
        watch(self);
    }

    /// Plans a fault, or none.
    pub fn set_fault(&self, fault: Option<Fault>) {
        let mut state = lock(&self.state);
        state.fault = fault;
        state.struck = None;
    }

    /// Whether the planned fault has struck.
    #[must_use]
    pub fn fault_hit(&self) -> bool {
        lock(&self.state).struck.is_some()
    }

    /// Where the planned fault struck first.
    #[must_use]
    pub fn struck(&self) -> Option<Struck> {
        lock(&self.state).struck.clone()
    }

    /// How many operations there were so far.
    #[must_use]
    pub fn operation_count(&self) -> u64 {
        lock(&self.state).operation_count
    }

    /// Makes a folder that is a disk of its own: its files may hold so many bytes together. Without an operation.
    pub fn put_disk(&self, path: impl AsRef<Path>, space_bytes: u64) {
        let mut state = lock(&self.state);
        state.folders.push(path.as_ref().to_owned());
        state.disks.push((path.as_ref().to_owned(), space_bytes));
    }

    /// Makes a folder that is a file system of its own, for so many bytes, on the disk that `beside` lies on.
    pub fn put_partition(&self, path: impl AsRef<Path>, space_bytes: u64, beside: &Path) {
        self.put_disk(path, space_bytes);
        let mut state = lock(&self.state);
        let (new, disk) = (state.disks.len() as u64 + 1, state.device(beside));
        state.partitions.push((new, disk));
    }

    /// How many bytes all files together may hold, but for those on disks of their own.
    pub fn set_space(&self, bytes: u64) {
        lock(&self.state).space_bytes = bytes;
    }

    /// Puts a file there, without an operation.
    pub fn put(&self, path: impl AsRef<Path>, bytes: &[u8]) {
        let mut state = lock(&self.state);
        state.clock_ns += 1;
        let now = i128::from(state.clock_ns);
        let file = state.add(path.as_ref());
        let mut contents = lock(&file.state);
        contents.bytes = bytes.to_vec();
        contents.changed_ns = now;
    }

    /// The bytes of a file, if there is one, without an operation.
    #[must_use]
    pub fn get(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let file = lock(&self.state).files.get(path.as_ref()).cloned()?;
        let contents = lock(&file.state);
        Some(contents.bytes.clone())
    }

    /// Makes a folder, without an operation.
    pub fn put_dir(&self, path: impl AsRef<Path>) {
        lock(&self.state).folders.push(path.as_ref().to_owned());
    }

    /// Puts bytes where the next reader of standard input finds them.
    pub fn put_stdin(&self, bytes: &[u8]) {
        let file = Arc::clone(&lock(&self.state).stdin);
        *lock(&file.state) = Contents {
            bytes: bytes.to_vec(),
            ..Contents::default()
        };
    }

    /// What was written to standard output so far.
    #[must_use]
    pub fn get_stdout(&self) -> Vec<u8> {
        let file = Arc::clone(&lock(&self.state).stdout);
        let contents = lock(&file.state);
        contents.bytes.clone()
    }

    /// Every file and folder there is, without an operation.
    #[must_use]
    pub fn names(&self) -> Vec<PathBuf> {
        let state = lock(&self.state);
        let mut names: Vec<PathBuf> = state.files.keys().cloned().collect();
        names.extend(state.folders.iter().skip(1).cloned());
        names
    }

    /// Numbers an operation and asks the fault plan.
    fn operation(
        &self,
        name: &'static str,
        path: &Path,
        moves: Option<OpKind>,
    ) -> io::Result<Verdict> {
        let mut state = lock(&self.state);
        let number = state.operation_count;
        state.operation_count += 1;
        let Some(fault) = state.fault else {
            return Ok(Verdict::Work);
        };
        if number < fault.at || (number > fault.at && !fault.for_good) {
            return Ok(Verdict::Work);
        }
        let strike = |state: &mut State| {
            state.struck.get_or_insert_with(|| Struck {
                operation: name,
                path: path.to_owned(),
            });
        };
        match (fault.kind, moves) {
            (FaultKind::Error(code), _) => {
                strike(&mut state);
                Err(io::Error::from_raw_os_error(code))
            }
            (FaultKind::Flip, Some(_)) => {
                strike(&mut state);
                Ok(Verdict::Flip)
            }
            (FaultKind::Replaced, _) => {
                strike(&mut state);
                drop(state);
                let bytes = self.get(path).unwrap_or_default();
                self.put(path, &[&bytes[bytes.len() / 2..], &bytes].concat());
                Ok(Verdict::Work)
            }
            (FaultKind::Lie, Some(OpKind::Write)) => {
                strike(&mut state);
                Ok(Verdict::Lie)
            }
            _ => Ok(Verdict::Work),
        }
    }

    fn random_below(&self, bound: usize) -> usize {
        let mut state = lock(&self.state);
        (state.next_random() % bound.max(1) as u64) as usize
    }

    fn open_file(&self, path: &Path) -> io::Result<Arc<SimFile>> {
        let state = lock(&self.state);
        if state.folders.iter().any(|folder| folder == path) {
            // Opened to change its mode and owner only.
            return Ok(new_file(u64::MAX));
        }
        let file = state.files.get(path).cloned();
        file.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Bytes that the disk of `path` still takes.
    fn space_left(&self, path: &Path) -> u64 {
        let state = lock(&self.state);
        let disk = state.disk(path);
        let files = state.files.iter();
        let there = files.filter(|(path, _)| state.disk(path) == disk);
        let used: usize = there.map(|(_, file)| lock(&file.state).bytes.len()).sum();
        let space_bytes = disk.map_or(state.space_bytes, |disk| state.disks[disk].1);
        space_bytes.saturating_sub(used as u64)
    }

    /// What the file at `path` is.
    fn meta_of(&self, file: &SimFile, path: &Path) -> Meta {
        let state = lock(&self.state);
        let device = match state.disk(path) {
            Some(_) => state.device(path),
            None => 0,
        };
        drop(state);
        meta_of(file, device)
    }

    /// Writes `from` at `offset` of the file at `path`, as far as there is space.
    fn write(&self, file: &SimFile, path: &Path, offset: usize, from: &[u8]) -> io::Result<()> {
        let end = offset + from.len();
        let grown = end.saturating_sub(lock(&file.state).bytes.len());
        if grown as u64 > self.space_left(path) {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        let now = self.tick();
        let mut contents = lock(&file.state);
        if contents.bytes.len() < end {
            contents.bytes.resize(end, 0);
        }
        contents.bytes[offset..end].copy_from_slice(from);
        contents.changed_ns = now;
        Ok(())
    }

    fn tick(&self) -> i128 {
        let mut state = lock(&self.state);
        state.clock_ns += 1;
        i128::from(state.clock_ns)
    }

    fn transfer(&self, op: &mut Op, before: usize) -> io::Result<usize> {
        let name = match op.kind {
            OpKind::Read => "read",
            OpKind::Write => "write",
        };
        let path = op.file.path.clone();
        let verdict = self.operation(name, &path, Some(op.kind))?;
        let Handle::Sim(file) = &op.file.handle else {
            unreachable!("a real file is never given to the simulation");
        };
        let file = Arc::clone(file);
        let mut range = op.range.start + before..op.range.end;
        let offset = usize::try_from(op.offset).expect("a small file") + before;
        // Now and then only a part is moved, as kernels may do.
        if range.len() > crate::ALIGN_BYTES && self.random_below(8) == 0 {
            range.end = range.start + crate::align_down(range.len() as u64 / 2) as usize;
            range.end = range.end.max(range.start + crate::ALIGN_BYTES);
        }
        let flip = |bytes: &mut [u8]| {
            if let (Verdict::Flip, false) = (&verdict, bytes.is_empty()) {
                let bit = self.random_below(bytes.len() * 8);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        };
        match op.kind {
            OpKind::Read => {
                let contents = lock(&file.state);
                let have = contents.bytes.len().saturating_sub(offset).min(range.len());
                let into = &mut op.buffer[range.start..range.start + have];
                into.copy_from_slice(&contents.bytes[offset..offset + have]);
                drop(contents);
                flip(into);
                Ok(have)
            }
            OpKind::Write => {
                if !matches!(verdict, Verdict::Lie) {
                    let mut bytes = op.buffer[range.clone()].to_vec();
                    flip(&mut bytes);
                    self.write(&file, &path, offset, &bytes)?;
                }
                Ok(range.len())
            }
        }
    }
}

impl State {
    /// Splitmix64.
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Gives every file and folder the name that `moved` says, if it says one.
    fn move_all(&mut self, moved: impl Fn(&Path) -> Option<PathBuf>) {
        let new_name = |path: PathBuf| moved(&path).unwrap_or(path);
        let files = std::mem::take(&mut self.files).into_iter();
        self.files = files.map(|(path, file)| (new_name(path), file)).collect();
        let folders = std::mem::take(&mut self.folders).into_iter();
        self.folders = folders.map(new_name).collect();
    }

    /// The number of the disk of its own that `path` lies on, if it is one.
    fn disk(&self, path: &Path) -> Option<usize> {
        let mut disks = self.disks.iter();
        disks.position(|(folder, _)| path.starts_with(folder))
    }

    /// The number of the file system that `path` lies on.
    fn device(&self, path: &Path) -> u64 {
        self.disk(path).map_or(1, |disk| disk as u64 + 2)
    }

    fn add(&mut self, path: &Path) -> Arc<SimFile> {
        self.file_count += 1;
        let file = new_file(self.file_count);
        self.files.insert(path.to_owned(), Arc::clone(&file));
        file
    }
}

/// Where `path` lies once the folder `from` has the name `to`; `None` if that changes nothing.
fn moved(path: &Path, from: &Path, to: &Path) -> Option<PathBuf> {
    let within = path.strip_prefix(from).ok()?;
    Some(match within.as_os_str().is_empty() {
        true => to.to_owned(),
        false => to.join(within),
    })
}

fn new_file(number: u64) -> Arc<SimFile> {
    Arc::new(SimFile {
        number,
        state: Mutex::new(Contents::default()),
    })
}

fn handle(file: &File) -> &Arc<SimFile> {
    match &file.handle {
        Handle::Sim(file) => file,
        Handle::Fd(_) | Handle::Parked(_) => {
            unreachable!("a real file is never given to the simulation")
        }
    }
}

fn opened(file: Arc<SimFile>, path: &Path, access: Access) -> File {
    File {
        handle: Handle::Sim(file),
        path: path.to_owned(),
        access,
    }
}

fn meta_of(file: &SimFile, device: u64) -> Meta {
    let contents = lock(&file.state);
    Meta {
        kind: match file.number {
            0 | 1 => Kind::Stream,
            _ => Kind::Regular,
        },
        bytes: contents.bytes.len() as u64,
        changed_ns: contents.changed_ns,
        identity: (device, file.number),
        mode: 0o644,
        owner: (0, 0),
    }
}

/// A ring whose operations complete in an order drawn from the machine's seed.
struct SimRing {
    sim: Sim,
    waiting: Vec<Op>,
}

impl Ring for SimRing {
    fn submit(&mut self, op: Op) {
        self.waiting.push(op);
    }

    fn complete(&mut self, wait: bool) -> Option<Done> {
        if self.waiting.is_empty() || (!wait && self.sim.random_below(2) == 0) {
            return None;
        }
        let index = self.sim.random_below(self.waiting.len());
        let mut op = self.waiting.swap_remove(index);
        let mut before = 0;
        loop {
            let result = self.sim.transfer(&mut op, before);
            let moved = result.as_ref().map_or(0, |moved| *moved);
            let result = match after_transfer(&op, before, result) {
                Next::Rest => {
                    before += moved;
                    continue;
                }
                Next::Done(bytes) => Ok(bytes),
                Next::Fail(error) => Err(error),
            };
            self.sim.transferred(*result.as_ref().unwrap_or(&0));
            return Some(Done { op, result });
        }
    }

    fn in_flight(&self) -> usize {
        self.waiting.len()
    }
}

impl Os for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn ring_over(&self, _depth: usize, _device_count: usize) -> io::Result<Box<dyn Ring>> {
        self.operation("ring", Path::new(""), None)?;
        Ok(Box::new(SimRing {
            sim: self.clone(),
            waiting: Vec::new(),
        }))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<File> {
        self.operation("open", path, None)?;
        let file = self.open_file(path)?;
        // Whoever opens a file reads it from its beginning.
        lock(&file.state).read_at = 0;
        Ok(opened(file, path, access))
    }

    fn park(&self, file: File) -> io::Result<File> {
        Ok(file)
    }

    fn create(&self, path: &Path, access: Access, _mode: u32) -> io::Result<File> {
        self.operation("create", path, None)?;
        let mut state = lock(&self.state);
        if state.files.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        Ok(opened(state.add(path), path, access))
    }

    fn open_for_write(&self, path: &Path, access: Access) -> io::Result<File> {
        self.operation("open_for_write", path, None)?;
        Ok(opened(self.open_file(path)?, path, access))
    }

    fn open_stream_for_write(&self, path: &Path, _stopped: &dyn Fn() -> bool) -> io::Result<File> {
        self.open(path, Access::Cached)
    }

    fn stdin(&self) -> io::Result<File> {
        self.operation("stdin", Path::new("-"), None)?;
        let file = Arc::clone(&lock(&self.state).stdin);
        Ok(opened(file, Path::new("-"), Access::Cached))
    }

    fn stdout(&self) -> io::Result<File> {
        self.operation("stdout", Path::new("-"), None)?;
        let file = Arc::clone(&lock(&self.state).stdout);
        Ok(opened(file, Path::new("-"), Access::Cached))
    }

    fn read_stream(
        &self,
        file: &File,
        into: &mut [u8],
        stopped: &dyn Fn() -> bool,
    ) -> io::Result<usize> {
        self.operation("read_stream", &file.path, None)?;
        if stopped() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let wanted = 1 + self.random_below(into.len());
        let mut contents = lock(&handle(file).state);
        let from = contents.read_at;
        let have = (contents.bytes.len() - from).min(wanted);
        into[..have].copy_from_slice(&contents.bytes[from..from + have]);
        contents.read_at += have;
        Ok(have)
    }

    fn write_stream(
        &self,
        file: &File,
        bytes: &[u8],
        stopped: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        self.operation("write_stream", &file.path, None)?;
        if stopped() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        lock(&handle(file).state).bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn meta(&self, file: &File) -> io::Result<Meta> {
        self.operation("meta", &file.path, None)?;
        Ok(self.meta_of(handle(file), &file.path))
    }

    fn meta_at(&self, path: &Path) -> io::Result<Meta> {
        self.operation("meta_at", path, None)?;
        let folder = {
            let state = lock(&self.state);
            let is_folder = state.folders.iter().any(|folder| folder == path);
            is_folder.then(|| Meta {
                kind: Kind::Directory,
                bytes: 0,
                changed_ns: 0,
                identity: (state.device(path), 0),
                mode: 0o755,
                owner: (0, 0),
            })
        };
        folder.map_or_else(|| Ok(self.meta_of(&*self.open_file(path)?, path)), Ok)
    }

    fn may_write(&self, path: &Path) -> io::Result<()> {
        self.operation("may_write", path, None).map(drop)
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    fn cached_share(&self, _file: &File, _bytes: u64) -> f64 {
        0.0
    }

    fn reserve(&self, file: &File, bytes: u64) -> io::Result<()> {
        self.operation("reserve", &file.path, None)?;
        let have = lock(&handle(file).state).bytes.len() as u64;
        if bytes.saturating_sub(have) > self.space_left(&file.path) {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        let mut contents = lock(&handle(file).state);
        let bytes = usize::try_from(bytes).expect("a small file");
        if contents.bytes.len() < bytes {
            contents.bytes.resize(bytes, 0);
        }
        Ok(())
    }

    fn set_bytes(&self, file: &File, bytes: u64) -> io::Result<()> {
        self.operation("set_bytes", &file.path, None)?;
        let bytes = usize::try_from(bytes).expect("a small file");
        lock(&handle(file).state).bytes.resize(bytes, 0);
        Ok(())
    }

    fn set_mode_and_owner(&self, file: &File, _mode: u32, _owner: (u32, u32)) -> io::Result<()> {
        self.operation("set_mode_and_owner", &file.path, None)?;
        Ok(())
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        self.operation("sync", &file.path, None).map(drop)
    }

    fn user(&self) -> u32 {
        0
    }

    fn try_lock(&self, file: &File) -> io::Result<bool> {
        self.operation("try_lock", &file.path, None)?;
        let mut contents = lock(&handle(file).state);
        Ok(!std::mem::replace(&mut contents.locked, true))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.operation("rename", to, None)?;
        let mut state = lock(&self.state);
        if state.folders.iter().any(|folder| folder == from) {
            if state.files.keys().any(|file| file.starts_with(to)) {
                return Err(io::Error::from_raw_os_error(libc::ENOTEMPTY));
            }
            state.folders.retain(|folder| folder != to);
            state.move_all(|path| moved(path, from, to));
            return Ok(());
        }
        let file = state.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.files.insert(to.to_owned(), file);
        Ok(())
    }

    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        self.operation("exchange", other, None)?;
        let mut state = lock(&self.state);
        for path in [one, other] {
            if !state.folders.iter().any(|folder| folder == path) {
                return Err(io::ErrorKind::NotFound.into());
            }
        }
        state.move_all(|path| moved(path, one, other).or_else(|| moved(path, other, one)));
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.operation("remove_file", path, None)?;
        let removed = lock(&self.state).files.remove(path);
        removed
            .map(drop)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn create_dir(&self, path: &Path, _mode: u32) -> io::Result<()> {
        self.operation("create_dir", path, None)?;
        let mut state = lock(&self.state);
        if state.folders.iter().any(|folder| folder == path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.folders.push(path.to_owned());
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.operation("remove_dir", path, None)?;
        let mut state = lock(&self.state);
        if state.files.keys().any(|file| file.starts_with(path)) {
            return Err(io::Error::from_raw_os_error(libc::ENOTEMPTY));
        }
        state.folders.retain(|folder| folder != path);
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.operation("sync_dir", path, None)?;
        Ok(())
    }

    fn list_dir(&self, path: &Path) -> io::Result<Vec<OsString>> {
        self.operation("list_dir", path, None)?;
        Ok(self
            .names()
            .iter()
            .filter(|name| name.parent() == Some(path))
            .filter_map(|name| Some(name.file_name()?.to_owned()))
            .collect())
    }

    fn space_free(&self, path: &Path) -> io::Result<u64> {
        self.operation("space_free", path, None)?;
        Ok(self.space_left(path))
    }

    fn file_system(&self, path: &Path) -> io::Result<FileSystem> {
        self.operation("file_system", path, None)?;
        let state = lock(&self.state);
        let disk = state.disk(path);
        Ok(FileSystem {
            id: state.device(path),
            bytes_total: disk.map_or(state.space_bytes, |disk| state.disks[disk].1),
            device: "sim".into(),
        })
    }

    fn disks(&self, device: u64) -> Vec<u64> {
        let state = lock(&self.state);
        let part = state.partitions.iter().find(|part| part.0 == device);
        vec![part.map_or(device, |part| part.1)]
    }

    fn in_memory(&self, _path: &Path) -> bool {
        false
    }

    fn now_ns(&self) -> u64 {
        let mut state = lock(&self.state);
        state.clock_ns += 1_000;
        state.clock_ns
    }

    fn random(&self) -> u64 {
        lock(&self.state).next_random()
    }

    fn usage(&self) -> Usage {
        Usage::default()
    }

    fn machine(&self) -> Machine {
        Machine {
            cores: 2,
            memory_bytes_available: 1 << 30,
            memory_bytes_total: 1 << 30,
        }
    }
}
