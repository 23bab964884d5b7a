//! The disks that a file system lies on (sysfs): in comes its number, out go theirs.
//!
//! ```text
//! /sys/dev/block/253:0 -> .../dm-0      a volume, or an encrypted one
//!                         slaves/md0    an array
//!                           slaves/sda1 -> .../sda/sda1 (`partition`): 8:0
//!                           slaves/sdb  -> .../sdb: 8:16
//! ```

use std::fs;
use std::path::{Path, PathBuf};

/// Devices made of devices are followed so far down.
const DEPTH_MAX: usize = 8;

/// The numbers of the disks under the file system with the number `device` (`st_dev`), in order, each once, as
/// `root/sys` tells; `device` itself where that does not, as of file systems over several devices. A file used as a
/// device is a disk of its own.
pub(crate) fn under(root: &Path, device: u64) -> Vec<u64> {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let link = root.join(format!("sys/dev/block/{major}:{minor}"));
    let mut disks = Vec::new();
    if let Ok(folder) = fs::canonicalize(link) {
        collect(&whole(folder), 0, &mut disks);
    }
    if disks.is_empty() {
        disks.push(device);
    }
    disks.sort_unstable();
    disks.dedup();
    disks
}

fn collect(folder: &Path, depth: usize, disks: &mut Vec<u64>) {
    let parts = slaves(folder);
    if parts.is_empty() || depth == DEPTH_MAX {
        disks.extend(number(folder));
        return;
    }
    for part in parts {
        collect(&whole(part), depth + 1, disks);
    }
}

/// The folders of the devices that the one in `folder` is made of, in order; partitions among them.
pub(crate) fn slaves(folder: &Path) -> Vec<PathBuf> {
    let mut slaves: Vec<PathBuf> = fs::read_dir(folder.join("slaves"))
        .into_iter()
        .flatten()
        .filter_map(|entry| fs::canonicalize(entry.ok()?.path()).ok())
        .collect();
    slaves.sort();
    slaves
}

/// The disk that a partition is a part of.
pub(crate) fn whole(folder: PathBuf) -> PathBuf {
    match (folder.join("partition").exists(), folder.parent()) {
        (true, Some(disk)) => disk.to_owned(),
        _ => folder,
    }
}

/// The device's number, which is told as `8:0`.
fn number(folder: &Path) -> Option<u64> {
    let text = fs::read_to_string(folder.join("dev")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some(rustix::fs::makedev(
        major.parse().ok()?,
        minor.parse().ok()?,
    ))
}
