//! DiskBench: what disks give to the engine's own reads and writes.
//!
//! In come folders, sizes of a block and depths; out come rates, and what a plan should take from them. Each
//! folder gets two files, laid out whole before anything is timed: one is read and one is written (to new space), in
//! sequence, through the engine's rings, from buffers of its pools: a few again and again, which a processor's cache may hold,
//! or so many that it cannot, as a sort has. After TritonSort's DiskBench
//! (Rasmussen et al., NSDI 2011), which found the disks' best request size the same way.
//!
//! ```text
//! for each round, for each setting (block x depth):
//!     each folder alone     reads | writes | reads and writes
//!     halves                the first half reads while the other writes | the other way round
//!     all together          read | write | read and write
//! ```
//!
//! Rounds go through all settings in turn, so that a disk that drifts does so for all of them; a rate is the
//! median of the rounds. What is deleted, touched for the first time or allocated is so outside the timing. How long it took to
//! lay the files out and sync them is told beside.

mod choice;
mod lane;

pub use choice::{Choice, Figures, Known, Rates, STALE_AFTER_DAYS};

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sortmill_io::os::Access;
use sortmill_io::sync::Arc;
use sortmill_io::sync::atomic::{AtomicU64, Ordering};
use sortmill_io::{File, OpKind, Os, Pool, align_down};

use crate::error::{Error, ErrorKind, Result};
use crate::metrics::per_second;
use crate::queue::Stop;
use crate::temp::{Temp, clean_up};
use crate::text;
use lane::{Bytes, Lane};

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct DiskBench {
    /// Where: files are made in each of them.
    pub folders: Vec<PathBuf>,
    /// Bytes of each of the two files in a folder; `None` is 2 GiB, 2.5 for each second that is measured if that is longer than
    /// one, or a quarter of what is free if that is less.
    pub file_bytes: Option<u64>,
    /// Sizes and depths.
    pub settings: Vec<Setting>,
    /// How often each is measured.
    pub round_count: usize,
    /// How long each time, after a quarter of that to get going.
    pub window_ns: u64,
    /// Write over what is there already. Else each measurement writes to new space, reserved before, and ends when
    /// the file is full: a sort writes its temporary data so, and many disks are slower at that.
    pub overwrite: bool,
    /// Now, in seconds since 1970, for the results.
    pub measured_s: u64,
}

/// How a disk is asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Setting {
    /// Bytes of a request, a multiple of 4 KiB.
    pub block_bytes: usize,
    /// Requests in flight each way.
    pub depth: usize,
    /// Bytes of memory that take turns each way, if they are more than those in flight; `None` is those, again and again,
    /// as fio has it. A virtual disk, whose host copies what it moves, may be faster from and to what lies in a cache.
    pub buffer_bytes: Option<u64>,
}

impl Setting {
    /// Bytes in flight each way.
    #[must_use]
    pub fn in_flight_bytes(self) -> u64 {
        self.block_bytes as u64 * self.depth as u64
    }

    /// How many buffers take turns.
    fn buffer_count(self) -> usize {
        let bytes = self.buffer_bytes.unwrap_or(0);
        (bytes as usize / self.block_bytes).max(self.depth)
    }

    /// Every one of these sizes, each with the depths and the buffers given; of none, the usual sizes (256 KiB to
    /// 16 MiB), such depths that 8 to 64 MiB are in flight, and the buffers of these.
    #[must_use]
    pub fn grid(block_bytes: &[usize], depths: &[usize], buffers: &[Option<u64>]) -> Vec<Self> {
        const USUAL: [usize; 4] = [256 << 10, 1 << 20, 4 << 20, 16 << 20];
        const IN_FLIGHT: [usize; 4] = [8 << 20, 16 << 20, 32 << 20, 64 << 20];
        let sizes = if block_bytes.is_empty() {
            &USUAL
        } else {
            block_bytes
        };
        let mut settings = Vec::new();
        for &block_bytes in sizes {
            let usual =
                IN_FLIGHT.map(|in_flight| (in_flight / block_bytes.max(1)).clamp(1, DEPTH_MAX));
            let depths = if depths.is_empty() { &usual } else { depths };
            let buffers = if buffers.is_empty() { &[None] } else { buffers };
            for &buffer_bytes in buffers {
                settings.extend(depths.iter().map(|&depth| Self {
                    block_bytes,
                    depth,
                    buffer_bytes,
                }));
            }
        }
        settings.sort_unstable();
        settings.dedup();
        settings
    }
}

/// More requests than this are never in flight.
pub const DEPTH_MAX: usize = 1024;

/// What was measured. Serialises: it is what `--json` prints and what is kept of each file system.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DiskReport {
    /// Of this form.
    pub version: u32,
    /// When, in seconds since 1970.
    pub measured_s: u64,
    /// `io_uring`, `posix` or `sim`.
    pub back_end: String,
    /// Bytes of each file.
    pub file_bytes: u64,
    /// How often each was measured.
    pub round_count: usize,
    /// How long each time, if no file was full before.
    pub window_ns: u64,
    /// How long the shortest time was.
    #[serde(default)]
    pub shortest_ns: u64,
    /// Where.
    pub folders: Vec<Folder>,
    /// The rates.
    pub rows: Vec<Row>,
}

/// A folder that was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Folder {
    /// Its name, as far as that is text.
    pub path: String,
    /// The file system's number in hexadecimal.
    pub file_system: String,
    /// The file system's size.
    pub bytes_total: u64,
    /// Model and size of the device, as far as is known.
    pub device: String,
    /// Whether the bytes went past the page cache. If not, its speed is mixed up with the disk's.
    pub direct_io: bool,
    /// What was written when its files were laid out, over the time until the system said that it would outlive a loss of power.
    /// A disk with a cache, and a virtual one whose host has one, takes bytes sooner than it has written them; an output is
    /// synced, so this is what a job gets in the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synced_bytes_per_s: Option<Spread>,
}

/// One way of using the folders, in one setting. Folders are named by their number in
/// [`DiskReport::folders`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The folders that are read.
    pub reading: Vec<usize>,
    /// The folders that are written at the same time.
    pub writing: Vec<usize>,
    /// Bytes of a request.
    pub block_bytes: u64,
    /// Requests in flight each way, for each folder.
    pub depth: usize,
    /// Bytes of memory that took turns each way, for each folder; `None` is what was in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_bytes: Option<u64>,
    /// What was read, of all folders together.
    pub read_bytes_per_s: Spread,
    /// What was written.
    pub write_bytes_per_s: Spread,
}

/// Rates of several rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Spread {
    /// The slowest round.
    pub least: u64,
    /// Half of the rounds were slower.
    pub median: u64,
    /// The fastest round.
    pub most: u64,
}

impl Spread {
    fn of(mut rates: Vec<u64>) -> Self {
        rates.sort_unstable();
        Self {
            least: rates[0],
            median: rates[(rates.len() - 1) / 2].midpoint(rates[rates.len() / 2]),
            most: rates[rates.len() - 1],
        }
    }
}

/// Measures. `told` hears how many of how many steps are done.
///
/// The memory is that of the bytes in flight, or of [`Setting::buffer_bytes`]: both ways, for each folder.
///
/// # Errors
/// Folders that cannot be written to, too little room for the files, settings that do not fit in them, and
/// the system's. No file is left behind.
pub fn measure(
    bench: &DiskBench,
    os: &dyn Os,
    stop: &Stop,
    told: &mut dyn FnMut(usize, usize),
) -> Result<DiskReport> {
    check_settings(bench)?;
    let mut folders = look_at(bench, os)?;
    let (usual, most) = room(bench, os, &folders)?;
    let file_bytes = match bench.file_bytes {
        Some(bytes) => align_down(bytes),
        None => {
            let rate = tried(os, &bench.folders[0], usual, stop);
            let rate = rate.map_err(|error| told_if_full(error, usual))?;
            align_down(long_enough(usual, rate, bench.window_ns).min(most))
        }
    };
    let rows = measure_all(bench, os, stop, (&mut folders, file_bytes), told);
    let (rows, shortest_ns) = rows.map_err(|error| told_if_full(error, file_bytes))?;
    Ok(DiskReport {
        version: 1,
        measured_s: bench.measured_s,
        back_end: os.name().to_owned(),
        file_bytes,
        round_count: bench.round_count,
        window_ns: bench.window_ns,
        shortest_ns,
        rows,
        folders,
    })
}

/// There was room at first, so somebody else took it: tells how much is needed.
fn told_if_full(error: Error, file_bytes: u64) -> Error {
    if error.kind != ErrorKind::Space || error.hint.is_some() {
        return error;
    }
    let bytes = text::bytes(file_bytes);
    error.hint(format!(
        "There was room for two files of {bytes} when the measurement began, and there is no longer. Free some \
         space, or measure with smaller files."
    ))
}

/// Lays the files out and measures every setting. Answers all rows and how long the shortest measurement was, and notes of each
/// folder whether it takes direct I/O.
fn measure_all(
    bench: &DiskBench,
    os: &dyn Os,
    stop: &Stop,
    (folders, file_bytes): (&mut [Folder], u64),
    told: &mut dyn FnMut(usize, usize),
) -> Result<(Vec<Row>, u64)> {
    let cases = cases(folders.len());
    let steps = bench.folders.len() + bench.round_count * bench.settings.len() * cases.len();
    let mut done = 0;
    let mut step = || {
        done += 1;
        told(done, steps);
    };

    let mut sites = Vec::new();
    for (folder, path) in folders.iter_mut().zip(&bench.folders) {
        let site = Site::lay_out(os, path, file_bytes, stop)?;
        // Some file systems accept it and use the page cache.
        let cached = os.cached_share(&site.read.file, site.read.bytes);
        folder.direct_io = site.read.file.access == Access::Direct && cached < 0.5;
        let laid_out = [&site.read, &site.written];
        let synced = laid_out.map(|file| per_second(file.bytes, file.synced_ns));
        folder.synced_bytes_per_s = Some(Spread::of(synced.to_vec()));
        sites.push(site);
        step();
    }
    let mut shortest_ns = u64::MAX;
    let mut rates = vec![vec![(Vec::new(), Vec::new()); cases.len()]; bench.settings.len()];
    for _ in 0..bench.round_count {
        for (setting, rates) in bench.settings.iter().zip(&mut rates) {
            let pool = pool(os, *setting, 2 * sites.len() * setting.buffer_count())?;
            for (case, (read, written)) in cases.iter().zip(rates) {
                if !bench.overwrite {
                    for &number in &case.writing {
                        sites[number].written.renew(os)?;
                    }
                }
                let lanes = case.lanes(&sites, *setting, &pool, !bench.overwrite);
                let Bytes {
                    read: read_bytes,
                    written: written_bytes,
                    took_ns,
                } = lane::run(os, stop, lanes, bench.window_ns)?;
                shortest_ns = shortest_ns.min(took_ns);
                read.push(per_second(read_bytes, took_ns));
                written.push(per_second(written_bytes, took_ns));
                step();
            }
        }
    }
    let rows = bench
        .settings
        .iter()
        .zip(rates)
        .flat_map(|(setting, rates)| {
            cases.iter().zip(rates).map(|(case, (read, written))| Row {
                reading: case.reading.clone(),
                writing: case.writing.clone(),
                block_bytes: setting.block_bytes as u64,
                depth: setting.depth,
                buffer_bytes: setting.buffer_bytes,
                read_bytes_per_s: Spread::of(read),
                write_bytes_per_s: Spread::of(written),
            })
        });
    Ok((rows.collect(), shortest_ns))
}

/// Which folders are read and which are written at the same time.
struct Case {
    reading: Vec<usize>,
    writing: Vec<usize>,
}

/// Every folder alone, then, of several, halves and all together.
fn cases(folder_count: usize) -> Vec<Case> {
    let case = |reading: &[usize], writing: &[usize]| Case {
        reading: reading.to_vec(),
        writing: writing.to_vec(),
    };
    let three_ways = |folders: &[usize]| {
        [
            case(folders, &[]),
            case(&[], folders),
            case(folders, folders),
        ]
    };
    let all: Vec<usize> = (0..folder_count).collect();
    let mut cases: Vec<Case> = all
        .iter()
        .flat_map(|&folder| three_ways(&[folder]))
        .collect();
    if folder_count > 1 {
        let (one, other) = all.split_at(folder_count.div_ceil(2));
        cases.extend([case(one, other), case(other, one)]);
        cases.extend(three_ways(&all));
    }
    cases
}

impl Case {
    /// Its lanes; `once` if what is written goes to new space.
    fn lanes<'a>(
        &self,
        sites: &'a [Site<'_>],
        setting: Setting,
        pool: &Pool,
        once: bool,
    ) -> Vec<Lane<'a>> {
        let lane = |laid_out: &'a LaidOut<'_>, kind| Lane {
            kind,
            file: Arc::clone(&laid_out.file),
            file_bytes: laid_out.bytes,
            at: &laid_out.at,
            setting,
            pool: pool.clone(),
            once: once && kind == OpKind::Write,
        };
        let reads = self.reading.iter().map(|&number| &sites[number].read);
        let writes = self.writing.iter().map(|&number| &sites[number].written);
        reads
            .map(|file| lane(file, OpKind::Read))
            .chain(writes.map(|file| lane(file, OpKind::Write)))
            .collect()
    }
}

/// A folder's two files.
struct Site<'a> {
    read: LaidOut<'a>,
    written: LaidOut<'a>,
}

/// A file that is on the disk whole. It goes with its folder when this is dropped.
struct LaidOut<'a> {
    file: Arc<File>,
    bytes: u64,
    /// Where the next measurement goes on, so that none finds what the one before left in a cache.
    at: AtomicU64,
    /// How long it took to write and sync it.
    synced_ns: u64,
    _temp: Temp<'a>,
}

impl<'a> Site<'a> {
    fn lay_out(os: &'a dyn Os, folder: &Path, bytes: u64, stop: &Stop) -> Result<Self> {
        clean_up(os, folder);
        Ok(Self {
            read: LaidOut::new(os, folder, bytes, stop)?,
            written: LaidOut::new(os, folder, bytes, stop)?,
        })
    }
}

impl<'a> LaidOut<'a> {
    /// Reserved and then written: a disk may answer reads of what was only reserved without being asked.
    fn new(os: &'a dyn Os, folder: &Path, bytes: u64, stop: &Stop) -> Result<Self> {
        const SETTING: Setting = Setting {
            block_bytes: 1 << 20,
            depth: 16,
            buffer_bytes: None,
        };
        let temp = Temp::new(os, folder, os.random(), None, bytes);
        let file = temp.spill_file().map_err(|mut error| {
            // Those of a sort speak of its flags.
            error.hint = None;
            error
        })?;
        let setting = Setting {
            block_bytes: SETTING.block_bytes.min(bytes as usize),
            ..SETTING
        };
        let pool = pool(os, setting, setting.depth)?;
        let began_ns = os.now_ns();
        lane::write_whole(os, stop, &file, bytes, setting, &pool)?;
        os.sync(&file)
            .map_err(|error| Error::io("laying out a file", &file.path, &error))?;
        let synced_ns = os.now_ns() - began_ns;
        Ok(Self {
            file,
            bytes,
            at: AtomicU64::new(0),
            synced_ns,
            _temp: temp,
        })
    }

    /// Gives the file's space back and reserves it anew. Not a part of what is measured.
    fn renew(&self, os: &dyn Os) -> Result<()> {
        self.at.store(0, Ordering::Relaxed);
        let done = os.set_bytes(&self.file, 0);
        done.and_then(|()| os.reserve(&self.file, self.bytes))
            .map_err(|error| Error::io("making room for a file anew", &self.file.path, &error))
    }
}

/// Buffers of a setting's blocks, touched, and full of what no device can make smaller.
fn pool(os: &dyn Os, setting: Setting, count: usize) -> Result<Pool> {
    let pool = Pool::new(count, setting.block_bytes).map_err(|error| {
        let cause = error.to_string();
        Error::new(ErrorKind::Memory, "mapping the benchmark's memory", cause)
    })?;
    // As long as no compressor looks back, and different in each 4 KiB for those that look for the same.
    let mut state = os.random();
    let mut next = || {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (state ^ (state >> 29)).to_le_bytes()
    };
    let noise_bytes = setting.block_bytes.min(1 << 20);
    let noise: Vec<u8> = (0..noise_bytes / 8).flat_map(|_| next()).collect();
    let mut buffers = Vec::new();
    while let Some(mut buffer) = pool.try_take() {
        for piece in buffer.chunks_mut(noise_bytes) {
            piece.copy_from_slice(&noise[..piece.len()]);
        }
        for sector in buffer.chunks_mut(sortmill_io::ALIGN_BYTES) {
            sector[..8].copy_from_slice(&next());
        }
        buffers.push(buffer);
    }
    Ok(pool)
}

fn check_settings(bench: &DiskBench) -> Result<()> {
    let wrong = |cause: &str| {
        let error = Error::new(ErrorKind::Usage, "planning the benchmark", cause);
        Err(error)
    };
    if bench.folders.is_empty() || bench.settings.is_empty() {
        return wrong("there is nothing to measure");
    }
    if bench.round_count == 0 || bench.window_ns == 0 {
        return wrong("it must be measured for some time");
    }
    for setting in &bench.settings {
        let aligned = setting.block_bytes.is_multiple_of(sortmill_io::ALIGN_BYTES);
        if setting.block_bytes == 0 || !aligned || setting.block_bytes >= 1 << 30 {
            return wrong("a block is a multiple of 4.0 KiB below 1.0 GiB");
        }
        if setting.depth == 0 || setting.depth > DEPTH_MAX {
            return wrong("from 1 to 1024 requests can be in flight");
        }
    }
    Ok(())
}

/// Which file systems the folders lie on.
fn look_at(bench: &DiskBench, os: &dyn Os) -> Result<Vec<Folder>> {
    let look = |path: &PathBuf| {
        let file_system = os
            .file_system(path)
            .map_err(|error| Error::io("looking at the file system", path, &error))?;
        Ok(Folder {
            path: path.display().to_string(),
            file_system: format!("{:016x}", file_system.id),
            bytes_total: file_system.bytes_total,
            device: file_system.device,
            direct_io: false,
            synced_bytes_per_s: None,
        })
    };
    bench.folders.iter().map(look).collect()
}

/// How long the files will be, and how long they may be. Asks every file system for the room before anything is written.
fn room(bench: &DiskBench, os: &dyn Os, folders: &[Folder]) -> Result<(u64, u64)> {
    const DOING: &str = "looking for free space";
    let mut least = u64::MAX;
    let mut tightest = &bench.folders[0];
    for (folder, path) in folders.iter().zip(&bench.folders) {
        let free = os
            .space_free(path)
            .map_err(|error| Error::io(DOING, path, &error))?;
        let beside = folders
            .iter()
            .filter(|other| other.file_system == folder.file_system);
        let for_each = free / (2 * beside.count() as u64);
        if for_each < least {
            (least, tightest) = (for_each, path);
        }
    }
    let in_flight = bench
        .settings
        .iter()
        .map(|setting| setting.in_flight_bytes());
    let needed = in_flight.max().unwrap_or(0);
    // A quarter leaves room to others, but what is in flight must fit, and some times, so that a file is not full at once.
    let most = (least / 4).max(4 * needed);
    let usual = usual_bytes(bench.window_ns).min(most);
    let bytes = align_down(bench.file_bytes.unwrap_or(usual));
    if bytes > least {
        let cause = format!(
            "two files of {} are needed here, and {} are free for each",
            text::bytes(bytes),
            text::bytes(least)
        );
        return Err(Error::new(ErrorKind::Space, DOING, cause)
            .at(tightest)
            .hint("Free some space, or measure with smaller files or fewer requests."));
    }
    if bytes < needed {
        let cause = format!(
            "files of {} are smaller than what is in flight at once, {}",
            text::bytes(bytes),
            text::bytes(needed)
        );
        return Err(Error::new(
            ErrorKind::Usage,
            "planning the benchmark",
            cause,
        ));
    }
    Ok((bytes, most))
}

/// Bytes a second that a disk takes: a file is written whole and synced, and deleted.
fn tried(os: &dyn Os, folder: &Path, usual: u64, stop: &Stop) -> Result<u64> {
    const BYTES_MAX: u64 = 512 << 20;
    let tried = LaidOut::new(os, folder, usual.min(BYTES_MAX), stop)?;
    Ok(per_second(tried.bytes, tried.synced_ns))
}

/// Bytes of a file that is not full before a window, and the time to get going, have passed, where a synced file was written at `rate`
/// bytes a second: up to 1.6 times as many may be taken without.
fn long_enough(usual: u64, rate: u64, window_ns: u64) -> u64 {
    let needed = rate as f64 * (window_ns as f64 / 1e9) * 2.0;
    usual.max(needed as u64)
}

/// How long files are if nobody says it, so that those written in `window_ns` and the time to get going are not full before, at two
/// gigabytes a second.
fn usual_bytes(window_ns: u64) -> u64 {
    const BYTES: u64 = 2 << 30;
    const NS: u64 = 1_000_000_000;
    match window_ns > NS {
        true => u64::try_from(u128::from(BYTES) * u128::from(window_ns) * 5 / 4 / u128::from(NS))
            .unwrap_or(u64::MAX),
        false => BYTES,
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::{Spread, long_enough, usual_bytes};

    /// `--seconds 60` ended after one, when files of 2 GiB were full, and said 60.
    #[test]
    fn files_are_as_long_as_what_is_measured_takes() {
        let seconds = |seconds: u64| usual_bytes(seconds * 1_000_000_000);
        assert_eq!((seconds(0), seconds(1)), (2 << 30, 2 << 30));
        assert_eq!((seconds(4), seconds(60)), (10 << 30, 150 << 30));
    }

    /// A disk that takes 7 GB/s has filled 2 GiB in a third of a second.
    #[test]
    fn files_of_a_fast_disk_are_longer() {
        const S: u64 = 1_000_000_000;
        assert_eq!(long_enough(2 << 30, 500_000_000, S), 2 << 30);
        assert_eq!(long_enough(2 << 30, 7 * S, S), 14 * S);
        assert_eq!(long_enough(2 << 30, u64::MAX, u64::MAX), u64::MAX);
    }

    #[test]
    fn the_middle_of_two_rounds_lies_between_them() {
        let median = |rates: &[u64]| Spread::of(rates.to_vec()).median;
        assert_eq!(
            [median(&[5]), median(&[9, 3]), median(&[9, 1, 4])],
            [5, 6, 4]
        );
    }
}
