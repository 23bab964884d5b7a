//! The devices under a file system, down to the disks (sysfs, `Documentation/ABI/testing/sysfs-block`).

use std::fs;
use std::path::{Path, PathBuf};

use super::Survey;
use crate::cgroup;
use crate::disks::{slaves, whole};
use crate::facts::{Device, DeviceKind, Disk, Fact, Loop, Mount, Raid};

/// Devices made of devices are followed so far down.
const DEPTH_MAX: usize = 8;

impl Survey {
    /// The device of a file system, `number` as its mount tells it.
    pub(super) fn device_of(&self, mount: &Mount, number: &str) -> Fact<Device> {
        // A file system over several devices has a number of its own, which starts with 0; its source
        // names one of them.
        let link = match number.starts_with("0:") {
            false => self.root.join("sys/dev/block").join(number),
            true => {
                let name = mount
                    .source
                    .strip_prefix("/dev/")
                    .ok_or_else(|| format!("{} has no device of its own", mount.kind))?;
                // Names as `/dev/mapper/data` are links to the kernel's own.
                let real = fs::canonicalize(&mount.source).ok();
                let real = real.as_deref().and_then(Path::file_name);
                let name = real.map_or(name.into(), |name| name.to_string_lossy());
                self.root.join("sys/class/block").join(&*name)
            }
        };
        let folder = fs::canonicalize(&link).map_err(|error| {
            let shown = link.strip_prefix(&self.root).unwrap_or(&link);
            format!("/{}: {error}", shown.display())
        })?;
        Ok(self.device(whole(folder), 0))
    }

    fn device(&self, folder: PathBuf, depth: usize) -> Device {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let own = text(&folder, "dev").unwrap_or_default();
        let (read_bytes_per_s_max, write_bytes_per_s_max) = cgroup::disk_rates(&self.root, &own);
        let parts = slaves(&folder)
            .into_iter()
            .filter(|_| depth < DEPTH_MAX)
            .map(|slave| self.device(whole(slave), depth + 1))
            .collect();
        Device {
            name: name.clone().into_owned(),
            kind: self.kind(&name, &folder),
            parts,
            read_bytes_per_s_max,
            write_bytes_per_s_max,
            trims: number(&folder, "queue/discard_max_bytes").map(|bytes| bytes > 0),
        }
    }

    fn kind(&self, name: &str, folder: &Path) -> DeviceKind {
        if let Ok(mapped) = text(folder, "dm/name") {
            let uuid = text(folder, "dm/uuid").unwrap_or_default();
            return match uuid.starts_with("CRYPT-") {
                true => DeviceKind::Crypt(mapped),
                false => DeviceKind::Mapped(mapped),
            };
        }
        if let Ok(level) = text(folder, "md/level") {
            return DeviceKind::Raid(Raid {
                level,
                disk_count: number(folder, "md/raid_disks").unwrap_or(0),
                missing_count: number(folder, "md/degraded").unwrap_or(0),
                chunk_bytes: number(folder, "md/chunk_size").unwrap_or(0),
                stripe_cache_count: number(folder, "md/stripe_cache_size").ok(),
                action: text(folder, "md/sync_action").unwrap_or_else(|_| "idle".to_owned()),
            });
        }
        if let Ok(file) = text(folder, "loop/backing_file") {
            return DeviceKind::Loop(Loop {
                file,
                is_direct: text(folder, "loop/dio").is_ok_and(|value| value == "1"),
            });
        }
        if name.starts_with("zram") || name.starts_with("ram") {
            return DeviceKind::InMemory;
        }
        DeviceKind::Disk(Disk {
            rotates: number(folder, "queue/rotational").map(|value| value != 0),
            scheduler: scheduler(folder),
            requests_max: number(folder, "queue/nr_requests"),
            device_requests_max: number(folder, "device/queue_depth").ok(),
            node: self.node_above(folder),
        })
    }

    /// The NUMA node that the first of the devices above `folder` knows.
    fn node_above(&self, folder: &Path) -> Option<u32> {
        let known = |folder: &Path| {
            let number: i64 = text(folder, "numa_node").ok()?.parse().ok()?;
            u32::try_from(number).ok()
        };
        folder
            .ancestors()
            .take_while(|above| above.starts_with(&self.root))
            .find_map(known)
    }
}

/// The word in brackets; a disk that offers one only writes it without.
fn scheduler(folder: &Path) -> Fact<String> {
    let text = text(folder, "queue/scheduler")?;
    let mut words = text.split_whitespace();
    let chosen = words.find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    Ok(chosen.unwrap_or(&text).to_owned())
}

fn text(folder: &Path, name: &str) -> Fact<String> {
    match fs::read_to_string(folder.join(name)) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(error) => Err(format!("{name} of the device: {error}")),
    }
}

/// The number a file begins with: behind it may stand what it was before (`md/chunk_size` while reshaping).
fn number(folder: &Path, name: &str) -> Fact<u64> {
    let text = text(folder, name)?;
    let first = text.split_whitespace().next().unwrap_or_default();
    first
        .parse()
        .map_err(|_| format!("{name} of the device: {text:?} is no number"))
}
