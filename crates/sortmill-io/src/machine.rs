//! What this process may have of its machine: in comes the root of the file system, out go numbers.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

use crate::cgroup::{self, field};
use crate::os::Machine;

/// Processors and memory, as affinity, cgroups and limits leave them. Of memory the least limit counts, `memory.high` among
/// them: beyond that one a process is not killed, but it waits for its memory.
pub(crate) fn offered(root: &Path) -> Machine {
    let info = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let groups = cgroup::memory(root);
    let total = field(&info, "MemTotal:") * 1024;
    let available = field(&info, "MemAvailable:") * 1024;
    Machine {
        cores: crate::sync::core_count(),
        memory_bytes_available: available.min(groups.bytes_left).min(may_be_mapped_bytes()),
        memory_bytes_total: total.min(groups.bytes_limit),
    }
}

/// A quarter of what this process may map at most (`ulimit -v` and `-d`): what is for stacks and heaps of threads counts there
/// before it is used.
fn may_be_mapped_bytes() -> u64 {
    let limits = [Resource::As, Resource::Data];
    let limits = limits.map(|limit| getrlimit(limit).current.unwrap_or(u64::MAX));
    let least = limits.into_iter().min();
    least
        .filter(|&bytes| bytes < u64::MAX)
        .map_or(u64::MAX, |bytes| bytes / 4)
}
