//! Room on the disks: whether there is enough, whether output and temporary data can share it, and what is known of
//! each folder that temporary data are spread over; and what room in memory was taken.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use sortmill_io::Os;
use sortmill_io::os::Kind;

use super::{Shared, Where};
use crate::error::{Error, ErrorKind, Result};
use crate::job::Job;
use crate::plan::{Doubt, Plan};
use crate::report::{HolderPeak, Memory};
use crate::spread::{Spread, TempFolder};
use crate::stage::read::Source;
use crate::text;

const DOING: &str = "looking for free space";

/// The file system that `path` lies on, by its number; `None` if it cannot be looked at.
pub fn device(os: &dyn Os, path: &Path) -> Option<u64> {
    os.meta_at(path).ok().map(|meta| meta.identity.0)
}

/// The disk under a file system, if it is only one, else the file system: what reads and writes have in common.
pub fn disk(os: &dyn Os, device: u64) -> u64 {
    match *os.disks(device) {
        [only] => only,
        _ => device,
    }
}

/// Whether temporary data can lie in the space of the output: a file on the same file system that holds the records
/// of the input and nothing else. With several folders they are spread over these.
pub fn can_lie_in_output(job: &Job, os: &dyn Os, output: &Where, temps: &[PathBuf]) -> bool {
    match (output, temps) {
        // Where a node's range will lie is known when its temporary data have been written.
        (Where::NewFile(new_file), [temp])
            if job.keeps_records()
                && job.merge.is_none()
                && !job.temp_apart
                && job.on.is_none() =>
        {
            let temp = device(os, temp);
            temp.is_some() && temp == device(os, new_file.folder())
        }
        _ => false,
    }
}

/// The folders for temporary data: those asked for, each once; else `$TMPDIR` if it is there and not in memory, else the
/// output's folder, else `/var/tmp`. Never another one that nobody named: what lies there is other people's.
pub fn temp_paths(job: &Job, os: &dyn Os, output: Option<&Path>) -> Vec<PathBuf> {
    if !job.temps.is_empty() {
        let mut seen = Vec::new();
        let mut is_new = |path: &&PathBuf| {
            let resolved = os.resolve(path).unwrap_or_else(|_| path.to_path_buf());
            let is_new = !seen.contains(&resolved);
            seen.push(resolved);
            is_new
        };
        return job
            .temps
            .iter()
            .filter(|path| is_new(path))
            .cloned()
            .collect();
    }
    if let Some(folder) = std::env::var_os("TMPDIR").map(PathBuf::from)
        && os.meta_at(&folder).is_ok()
        && !os.in_memory(&folder)
    {
        return vec![folder];
    }
    vec![output.map_or_else(|| PathBuf::from("/var/tmp"), Path::to_owned)]
}

/// What is known of the folders for temporary data.
///
/// # Errors
/// A folder that cannot be looked at, if there are several.
pub fn temp_folders(
    job: &Job,
    os: &dyn Os,
    plan: &Plan,
    (sources, output): (&[Source], Option<&Path>),
    paths: Vec<PathBuf>,
) -> Result<Vec<TempFolder>> {
    if let [path] = &*paths {
        return Ok(vec![TempFolder::only(path.clone(), plan.temp_bytes)]);
    }
    let wrong =
        |path: &Path, error| Error::io("looking at the folder for temporary files", path, &error);
    let devices: Vec<u64> = paths
        .iter()
        .map(|path| {
            os.meta_at(path)
                .map(|meta| meta.identity.0)
                .map_err(|error| wrong(path, error))
        })
        .collect::<Result<_>>()?;
    let output_device = output.and_then(|folder| device(os, folder));
    let known = Disks::of(os, devices.iter().copied().chain(output_device), sources);
    let mut folders = Vec::new();
    for (number, path) in paths.into_iter().enumerate() {
        let there = devices[number];
        let in_same = devices.iter().filter(|&&other| other == there).count();
        let on_same = |&&other: &&u64| known.shares(there, other);
        let neighbor_count = devices.iter().filter(on_same).count();
        let inputs = sources.iter().filter(|source| {
            source.meta.kind == Kind::Regular && known.shares(there, source.meta.identity.0)
        });
        // What the output takes for sure, and at most as far as is known.
        let (sure, most) = (output_bytes(plan), plan.input_bytes.unwrap_or(0));
        let (output_here, kept) = match output_device == Some(there) {
            true => (sure, most.saturating_sub(sure)),
            false => (0, 0),
        };
        let is_on_disk = output_device.is_some_and(|other| known.shares(there, other));
        let output_on_disk = if is_on_disk { most.max(sure) } else { 0 };
        let input_bytes: u64 = inputs.map(|source| source.meta.bytes).sum();
        let free_bytes = os.space_free(&path).map_err(|error| wrong(&path, error))?;
        // A disk that several folders lie on does the work of each of them, and a file system has room for all.
        let figures = job.disks.get(number).and_then(Option::as_ref);
        let rates = figures.and_then(|figures| figures.rates);
        folders.push(TempFolder {
            path,
            neighbor_count,
            room_bytes: Some(free_bytes.saturating_sub(output_here) / in_same as u64),
            kept_bytes: kept / in_same as u64,
            bytes_per_s: rates.map(|rates| rates.there_and_back() / neighbor_count as f64),
            busy_bytes: (input_bytes + output_on_disk) / neighbor_count as u64,
            expected_bytes: None,
        });
    }
    if let Some(bytes) = plan.temp_bytes {
        let shares = Spread::new(&folders, plan.temp_bytes).shares(bytes);
        for (folder, share) in folders.iter_mut().zip(shares) {
            folder.expected_bytes = Some(share);
        }
    }
    Ok(folders)
}

/// The disks under each file system that a job has to do with.
struct Disks(BTreeMap<u64, Vec<u64>>);

impl Disks {
    fn of(os: &dyn Os, devices: impl Iterator<Item = u64>, sources: &[Source]) -> Self {
        let inputs = sources.iter().map(|source| source.meta.identity.0);
        let all: BTreeSet<u64> = devices.chain(inputs).collect();
        let disks = all.into_iter().map(|device| (device, os.disks(device)));
        Self(disks.collect())
    }

    /// Whether two file systems lie on one disk: they are one, or partitions of it, or a volume is in part.
    fn shares(&self, one: u64, other: u64) -> bool {
        let (one, other) = (&self.0[&one], &self.0[&other]);
        one.iter().any(|disk| other.contains(disk))
    }
}

/// Refuses a job that cannot fit on the disks, with the number that is missing.
pub fn check_space(
    os: &dyn Os,
    plan: &Plan,
    temps: &[TempFolder],
    output: Option<&Path>,
) -> Result<()> {
    let Some(temp_bytes) = plan.temp_bytes.filter(|_| plan.input_bytes.is_some()) else {
        return Ok(());
    };
    // What a function makes may be far less than what it gets.
    if plan.doubts.contains(&Doubt::Function) {
        return Ok(());
    }
    let temp_bytes = match plan.shrinks_temp() {
        true => 0,
        false => temp_bytes * u64::from(plan.node_count()),
    };
    let output_bytes = output_bytes(plan);
    let mut wanted = Vec::new();
    let mut shares_space = false;
    if let [only] = temps {
        wanted.push((only.path.clone(), temp_bytes, "temporary files need"));
        // A rename needs old and new output at once, so what is there already does not count as free.
        if let Some(folder) = output
            && device(os, folder) == device(os, &only.path)
        {
            let bytes = plan.shared_bytes.unwrap_or(temp_bytes + output_bytes);
            wanted[0] = (folder.to_owned(), bytes, "temporary data and output need");
            shares_space = true;
        }
    } else {
        check_together(temps, temp_bytes)?;
    }
    if let Some(folder) = output.filter(|_| !shares_space) {
        wanted.push((folder.to_owned(), output_bytes, "the output needs"));
    }
    for (path, bytes, what) in wanted {
        if bytes == 0 {
            continue;
        }
        let free = os.space_free(&path);
        let have = free.map_err(|error| Error::io(DOING, &path, &error))?;
        if have < bytes {
            return Err(too_little(what, bytes, have).at(&path));
        }
    }
    Ok(())
}

/// Bytes that the output will take for sure; 0 where they may be far fewer: how far it can be compressed, how few records come out, or
/// what a function makes of them shows when it is done.
fn output_bytes(plan: &Plan) -> u64 {
    let may_be_less = [Doubt::Fewer, Doubt::Function];
    let is_unsure = may_be_less.iter().any(|doubt| plan.doubts.contains(doubt));
    match plan.input_bytes {
        Some(input) if plan.encoders.is_none() && !is_unsure => {
            // Files end in the middle of a block, half of one on average.
            input + plan.part_count.unwrap_or(0) * sortmill_io::ALIGN_BYTES as u64 / 2
        }
        _ => 0,
    }
}

/// Refuses a job whose temporary data do not fit into several folders.
fn check_together(temps: &[TempFolder], bytes: u64) -> Result<()> {
    let rooms = || temps.iter().map(|folder| folder.room_bytes.unwrap_or(0));
    let have: u64 = rooms().sum();
    if have >= bytes {
        return Ok(());
    }
    let each = temps
        .iter()
        .zip(rooms())
        .map(|(folder, room)| format!("{} in {}", text::bytes(room), folder.path.display()));
    let each: Vec<String> = each.collect();
    let hint = format!(
        "There are {}, less what the output will take there.",
        each.join(", ")
    );
    Err(too_little("temporary files need", bytes, have).hint(hint))
}

fn too_little(what: &str, bytes: u64, have: u64) -> Error {
    let missing_bytes = bytes.saturating_sub(have);
    let (need, have, missing) = (
        text::bytes(bytes),
        text::bytes(have),
        text::bytes(missing_bytes),
    );
    let cause = format!("{what} {need}, and {have} are free: {missing} are missing");
    Error::new(ErrorKind::Space, DOING, cause).room(bytes, Some(missing_bytes))
}

impl Shared<'_> {
    /// The most that each holder of memory held.
    pub fn memory(&self, resident_bytes_peak: u64) -> Memory {
        let chunks = self.chunk_pool.peak_bytes();
        let aside = (self.plan.chunks_aside * self.plan.chunk_buffer_bytes()) as u64;
        let always = self.chunk_pool.bytes() - aside;
        let mut holders = Vec::new();
        for holder in &self.plan.budget.holders {
            let peak = match holder.name.as_str() {
                "chunk and output buffers" => chunks.min(always),
                "more chunk buffers" => chunks.saturating_sub(always),
                "partitions in memory" => self.block_pool.peak_bytes(),
                _ => holder.bytes,
            };
            holders.push(HolderPeak {
                name: holder.name.clone(),
                limit_bytes: holder.bytes,
                peak_bytes: peak,
                during: holder.during,
            });
        }
        Memory {
            limit_bytes: self.plan.budget.limit_bytes,
            resident_bytes_peak,
            holders,
        }
    }
}
