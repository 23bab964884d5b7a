//! What the control groups of this process limit: in comes the root of the file system, out go numbers.
//!
//! Version 2 has one tree for all, version 1 one for each controller. A process is bounded by its own group
//! and by all above it. Inside a container the path that the kernel tells may be missing: then the groups
//! above it that exist count.

use std::fs;
use std::path::{Path, PathBuf};

use crate::facts::MemoryGroup;

/// The tightest memory cgroup. What the group's page cache holds counts as free: the kernel gives it back.
pub(crate) fn memory(root: &Path) -> Option<MemoryGroup> {
    let mut tightest: Option<MemoryGroup> = None;
    for (version, folder) in groups(root, "memory") {
        let (limit, used) = match version {
            2 => ("memory.max", "memory.current"),
            _ => ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        };
        let Some(bytes_limit) = read_number(&folder.join(limit)) else {
            continue;
        };
        if tightest
            .as_ref()
            .is_some_and(|found| found.bytes_limit <= bytes_limit)
        {
            continue;
        }
        let used = read_number(&folder.join(used)).unwrap_or(0);
        let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let cached = field(&stat, "inactive_file ") + field(&stat, "active_file ");
        tightest = Some(MemoryGroup {
            folder,
            version,
            bytes_limit,
            bytes_used: used.saturating_sub(cached),
        });
    }
    tightest
}

/// The least `memory.high` of all groups, which only version 2 has.
pub(crate) fn memory_high(root: &Path) -> Option<u64> {
    groups(root, "memory")
        .into_iter()
        .filter_map(|(_, folder)| read_number(&folder.join("memory.high")))
        .min()
}

/// The least bytes a second that may be read from and written to the device `number`, as `8:0`.
pub(crate) fn disk_rates(root: &Path, number: &str) -> (Option<u64>, Option<u64>) {
    let (mut read, mut write) = (None, None);
    let lower = |least: &mut Option<u64>, found: Option<u64>| {
        *least = least.iter().copied().chain(found).min();
    };
    let line_of = |path: PathBuf| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(number)?.strip_prefix(' '));
        line.map(str::to_owned)
    };
    for (version, folder) in groups(root, "blkio") {
        if version == 1 {
            let rate = |name: &str| line_of(folder.join(name))?.trim().parse().ok();
            lower(&mut read, rate("blkio.throttle.read_bps_device"));
            lower(&mut write, rate("blkio.throttle.write_bps_device"));
            continue;
        }
        let Some(line) = line_of(folder.join("io.max")) else {
            continue;
        };
        let rate = |name: &str| {
            let mut words = line.split_whitespace();
            words.find_map(|word| word.strip_prefix(name)?.parse().ok())
        };
        lower(&mut read, rate("rbps="));
        lower(&mut write, rate("wbps="));
    }
    (read, write)
}

/// The groups of this process that may hold `controller`, each with its version, innermost first.
fn groups(root: &Path, controller: &str) -> Vec<(u32, PathBuf)> {
    let text = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut found = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (_, Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        if controllers.is_empty() {
            climb(root.join("sys/fs/cgroup"), path, 2, &mut found);
            climb(root.join("sys/fs/cgroup/unified"), path, 2, &mut found);
        } else if controllers.split(',').any(|name| name == controller) {
            let tree = root.join("sys/fs/cgroup").join(controller);
            climb(tree, path, 1, &mut found);
        }
    }
    found
}

fn climb(tree: PathBuf, path: &str, version: u32, found: &mut Vec<(u32, PathBuf)>) {
    let mut folder = tree.join(path.trim_start_matches('/'));
    while folder.starts_with(&tree) {
        if folder.is_dir() {
            found.push((version, folder.clone()));
        }
        if !folder.pop() {
            break;
        }
    }
}

/// The number behind `name` in one of the kernel's `name number` lists, 0 if it is not there.
pub(crate) fn field(text: &str, name: &str) -> u64 {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

fn read_number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
