//! What the control groups of this process limit: in comes the root of the file system, out go numbers.
//!
//! Version 2 has one tree for all, version 1 one for each controller. A process is bounded by its own group
//! and by all above it. Inside a container the path that the kernel tells may be missing: then the groups
//! above it that exist count.

use std::fs;
use std::path::{Path, PathBuf};

use crate::facts::MemoryGroup;

/// What the memory groups of this process limit. What a group's page cache holds counts as free: the kernel gives it
/// back.
pub(crate) struct Memory {
    /// The group that leaves least: beyond its limit a process is killed.
    pub hard: Option<MemoryGroup>,
    /// The group that leaves least below its `memory.high`, which only version 2 has: beyond it a process is slowed down.
    pub high: Option<MemoryGroup>,
    /// The least of all limits, of both kinds.
    pub bytes_limit: u64,
    /// The least that any of them leaves. It need not be the least limit that does: others share the groups above.
    pub bytes_left: u64,
}

/// Looks at all groups of this process.
pub(crate) fn memory(root: &Path) -> Memory {
    let mut memory = Memory {
        hard: None,
        high: None,
        bytes_limit: u64::MAX,
        bytes_left: u64::MAX,
    };
    for (version, folder) in groups(root, "memory") {
        let (hard, used) = match version {
            2 => ("memory.max", "memory.current"),
            _ => ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        };
        // Without a limit a file says `max`.
        let limit = |name: &str| read_number(&folder.join(name));
        let (hard, high) = (limit(hard), limit("memory.high"));
        if hard.or(high).is_none() {
            continue;
        }
        let used = read_number(&folder.join(used)).unwrap_or(0);
        let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        // Of version 1 a number is that of the group alone, where not `total` stands in front of it; what is used is that of all below.
        let total = if version == 1 { "total_" } else { "" };
        let of_all = |name: &str| field(&stat, &format!("{total}{name} "));
        let cached = of_all("inactive_file") + of_all("active_file");
        let bytes_used = used.saturating_sub(cached);
        for (limit, fullest) in [(hard, &mut memory.hard), (high, &mut memory.high)] {
            let Some(bytes_limit) = limit else { continue };
            memory.bytes_limit = memory.bytes_limit.min(bytes_limit);
            let left = bytes_limit.saturating_sub(bytes_used);
            memory.bytes_left = memory.bytes_left.min(left);
            // Of equals the one within.
            if fullest
                .as_ref()
                .is_none_or(|found| left < found.bytes_left())
            {
                *fullest = Some(MemoryGroup {
                    folder: folder.clone(),
                    version,
                    bytes_limit,
                    bytes_used,
                });
            }
        }
    }
    memory
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
