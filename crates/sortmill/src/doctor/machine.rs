//! Kernel, processors, NUMA, network cards and limits of the process.

use std::io::ErrorKind;

use sortmill_io::facts::{Fact, Governor, Limit, MachineFacts};

use super::Finding;
use crate::text;

/// Enough for any number of inputs, partitions and parts: they take turns.
const FILES_ENOUGH: u64 = 64;
/// Since Linux 5.12 rings are counted against the memory cgroup, no longer against what may be pinned.
const RINGS_ARE_NOT_PINNED: (u32, u32) = (5, 12);
const PINNED_BYTES_ENOUGH: u64 = 1 << 20;

/// Everything about the machine but its memory.
pub(super) fn findings(facts: &MachineFacts) -> Vec<Finding> {
    let mut found = vec![
        io_uring(facts),
        cores(facts),
        clock(&facts.governors),
        numa(facts),
        cards(facts),
        open_files(facts.open_files),
        pinned(facts),
    ];
    if let Some(moving) = numa_balancing(facts) {
        found.push(moving);
    }
    found
}

fn io_uring(facts: &MachineFacts) -> Finding {
    let error = match &facts.io_uring {
        Ok(()) => return Finding::good("io_uring", "works"),
        Err(error) => error,
    };
    let finding = Finding::better("io_uring", format!("refused: {error}"))
        .means("Threads with pread and pwrite move the bytes instead: the same result for more processor time.");
    match (error.kind(), &facts.io_uring_disabled) {
        (_, Ok(1 | 2)) => finding
            .advice("The administrator has switched it off.")
            .command("sudo sysctl kernel.io_uring_disabled=0"),
        (ErrorKind::PermissionDenied, _) => finding.advice(
            "The container's filter of system calls forbids it: allow io_uring_setup, io_uring_enter and \
             io_uring_register there (Docker: --security-opt seccomp=PROFILE).",
        ),
        (ErrorKind::OutOfMemory, _) => finding
            .advice("Let this process pin more memory, which kernels before 5.12 count rings against.")
            .command("ulimit -l unlimited"),
        (ErrorKind::Unsupported, _) => {
            finding.advice("Use a kernel of 5.6 or later that has it built in.")
        }
        _ => finding.advice("Use --io posix if jobs fail by it."),
    }
}

fn cores(facts: &MachineFacts) -> Finding {
    let allowed = facts.cores_allowed;
    match &facts.cores_online {
        Err(why) => Finding::unknown("cores", format!("this process may use {allowed}; {why}")),
        Ok(online) if allowed < *online => {
            Finding::better("cores", format!("this process may use {allowed} of {online}"))
                .means("A job computes with so many threads.")
                .advice("Affinity (taskset) or the cgroup's quota (cpu.max) keeps the others away; raise it if they are free.")
        }
        Ok(online) => Finding::good("cores", format!("this process may use all {online}")),
    }
}

fn clock(governors: &Fact<Vec<Governor>>) -> Finding {
    const ABOUT: &str = "processor clock";
    let governors = match governors {
        Ok(governors) => governors,
        Err(why) => return Finding::unknown(ABOUT, why),
    };
    let shown: Vec<&str> = governors
        .iter()
        .map(|governor| governor.name.as_str())
        .collect();
    let shown = format!("governor {}", shown.join(", "));
    // These drivers choose the clock themselves; their `powersave` is not slow, but what they prefer may be.
    let decides = |governor: &Governor| {
        governor.driver == "intel_pstate" || governor.driver == "amd-pstate-epp"
    };
    let is_slow = |governor: &Governor| match governor.name.as_str() {
        "powersave" if decides(governor) => governor
            .preference
            .as_deref()
            .is_some_and(|preference| preference.ends_with("power")),
        name => matches!(name, "powersave" | "conservative"),
    };
    if !governors.iter().any(is_slow) {
        return Finding::good(ABOUT, shown);
    }
    Finding::better(ABOUT, shown)
        .means("Processors run below their speed, or take long to reach it: sorting and checksums take longer.")
        .command("echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")
}

fn numa(facts: &MachineFacts) -> Finding {
    const ABOUT: &str = "NUMA";
    let nodes = match &facts.nodes {
        Ok(nodes) => nodes,
        Err(why) => return Finding::unknown(ABOUT, why),
    };
    if nodes.len() < 2 {
        return Finding::good(ABOUT, "one node: all memory is equally near");
    }
    let shown: Vec<String> = nodes
        .iter()
        .map(|node| {
            let memory = node.memory_bytes.as_ref();
            let memory = memory.map_or("memory not known".to_owned(), |&bytes| text::bytes(bytes));
            let cores = match node.cores.as_str() {
                "" => "no cores".to_owned(),
                cores => format!("cores {cores}"),
            };
            format!("node {}: {cores}, {memory}", node.number)
        })
        .collect();
    Finding::better(ABOUT, shown.join("; "))
        .means("Sortmill does not place its threads and buffers: a part of all memory traffic crosses between nodes.")
        .advice("If one node's cores and memory are enough, stay on it, best on the one that the disk hangs on.")
        .command("numactl --cpunodebind=0 --preferred=0 sortmill sort ...")
}

fn numa_balancing(facts: &MachineFacts) -> Option<Finding> {
    let many = facts.nodes.as_ref().is_ok_and(|nodes| nodes.len() > 1);
    let moves = facts.numa_balancing.as_ref().is_ok_and(|&moves| moves);
    (many && moves).then(|| {
        Finding::better("NUMA balancing", "on")
            .means("The kernel unmaps memory again and again to see who uses it; buffers pass from thread to thread, so it moves them in vain.")
            .command("sudo sysctl kernel.numa_balancing=0")
    })
}

/// Cards are told, never judged: what crosses them is the file system's choice, or a pipe's.
fn cards(facts: &MachineFacts) -> Finding {
    const ABOUT: &str = "network cards";
    let cards = match &facts.cards {
        Ok(cards) => cards,
        Err(why) => return Finding::unknown(ABOUT, why),
    };
    let many_nodes = facts.nodes.as_ref().is_ok_and(|nodes| nodes.len() > 1);
    let shown: Vec<String> = cards
        .iter()
        .map(|card| {
            let mut shown = format!("{} {}", card.name, if card.is_up { "up" } else { "down" });
            match card.bytes_per_s {
                Some(bytes) => shown += &format!(", {}", text::rate(bytes, 1_000_000_000)),
                None if card.is_up => shown += ", speed not told",
                None => {}
            }
            if let Some(node) = card.node.filter(|_| many_nodes) {
                shown += &format!(", node {node}");
            }
            shown
        })
        .collect();
    match shown.is_empty() {
        true => Finding::good(ABOUT, "none"),
        false => Finding::good(ABOUT, shown.join("; ")),
    }
}

fn open_files(limit: Limit) -> Finding {
    const ABOUT: &str = "open files";
    let Some(soft) = limit.soft else {
        return Finding::good(ABOUT, "no limit");
    };
    if soft >= FILES_ENOUGH {
        return Finding::good(ABOUT, format!("at most {}", text::count(soft)));
    }
    let found = format!("at most {}", text::count(soft));
    let finding = Finding::bad(ABOUT, found).means(format!(
        "A job may need {FILES_ENOUGH}, whatever it reads and writes, and two more for each node of --on."
    ));
    match limit.hard {
        Some(hard) if hard < FILES_ENOUGH => finding
            .advice("The hard limit is as low: raise it in /etc/security/limits.conf (nofile) or the service (LimitNOFILE=)."),
        hard => {
            let most = hard.map_or(65_536, |hard| hard.min(65_536));
            finding.command(format!("ulimit -n {most}"))
        }
    }
}

fn pinned(facts: &MachineFacts) -> Finding {
    const ABOUT: &str = "pinned memory";
    let Some(soft) = facts.pinned_bytes.soft else {
        return Finding::good(ABOUT, "no limit");
    };
    let found = format!("at most {}", text::bytes(soft));
    let kernel = facts.kernel.as_deref().ok().and_then(version);
    if kernel.is_some_and(|kernel| kernel >= RINGS_ARE_NOT_PINNED) || soft >= PINNED_BYTES_ENOUGH {
        return Finding::good(
            ABOUT,
            format!("{found}, which is enough: buffers are not pinned"),
        );
    }
    Finding::better(ABOUT, found)
        .means("This kernel counts the rings of io_uring against it: with several jobs at once some may be refused.")
        .command("ulimit -l 1024")
}

/// `6.18.4-generic` is (6, 18).
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|char: char| !char.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}
