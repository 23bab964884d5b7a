//! What this process may have of its machine: in comes the root of the file system, out go numbers.

use std::fs;
use std::path::Path;

use crate::cgroup::{self, field};
use crate::os::Machine;

/// Processors and memory, as affinity and cgroups leave them. Of memory the least limit counts, `memory.high` among
/// them: beyond that one a process is not killed, but it waits for its memory.
pub(crate) fn offered(root: &Path) -> Machine {
    let info = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let groups = cgroup::memory(root);
    let total = field(&info, "MemTotal:") * 1024;
    let available = field(&info, "MemAvailable:") * 1024;
    Machine {
        cores: crate::sync::core_count(),
        memory_bytes_available: available.min(groups.bytes_left),
        memory_bytes_total: total.min(groups.bytes_limit),
    }
}
