//! Finds out what the machine and its folders offer: [`Survey`] in, [`crate::facts`] out.
//!
//! `/proc` and `/sys` are read under a root of the caller's choice, so that a test can show any machine.
//! What only a trial tells is tried, if it is this machine's own root: a ring is made, memory touched, a
//! file written. Nothing is changed, and nothing stays behind. All of this is particular to Linux.

mod block;
mod folder;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::process::{Resource, getrlimit};

use crate::cgroup::{self, field};
use crate::facts::{
    Balloon, Card, Fact, FirstTouch, Governor, Limit, MachineFacts, MemoryFacts, Node, Swap,
};
use crate::os::Machine;
use crate::{Host, RingKind, Table, disks, machine};

/// Memory touched to learn what touching costs.
const TOUCH_BYTES: usize = 64 << 20;
/// With less than this available the trial would disturb others more than it tells.
const TOUCH_BYTES_AVAILABLE_MIN: u64 = 256 << 20;

const NOT_TRIED: &str = "not tried: this is not the machine that runs";

/// Where `proc` and `sys` are found.
pub struct Survey {
    root: PathBuf,
    tries: bool,
}

impl Survey {
    /// The machine this runs on.
    #[must_use]
    pub fn here() -> Self {
        Self {
            root: PathBuf::from("/"),
            tries: true,
        }
    }

    /// The machine whose `proc` and `sys` lie in `root`. Nothing is tried on it.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self {
            // Devices are found by links, and what a link leads to is compared with this.
            root: fs::canonicalize(root).unwrap_or_else(|_| root.to_owned()),
            tries: false,
        }
    }

    /// Kernel, processors, network cards and limits.
    #[must_use]
    pub fn machine(&self) -> MachineFacts {
        let info = self.text("proc/cpuinfo");
        MachineFacts {
            kernel: self.text("proc/sys/kernel/osrelease"),
            is_virtual: info.and_then(|text| self.is_virtual(&text)),
            io_uring: match self.tries {
                true => Host::new(RingKind::Uring, true).map(|_| ()),
                false => Err(io::Error::other(NOT_TRIED)),
            },
            io_uring_disabled: self.number("proc/sys/kernel/io_uring_disabled"),
            cores_online: self
                .text("sys/devices/system/cpu/online")
                .map(|list| count_of(&list)),
            cores_allowed: crate::sync::core_count(),
            governors: self.governors(),
            nodes: self.nodes(),
            numa_balancing: self
                .number("proc/sys/kernel/numa_balancing")
                .map(|value| value != 0),
            cards: self.cards(),
            open_files: limit(Resource::Nofile),
            pinned_bytes: limit(Resource::Memlock),
        }
    }

    /// What a plan takes from it, as [`crate::Os::machine`] tells of the machine this runs on.
    #[must_use]
    pub fn offered(&self) -> Machine {
        machine::offered(&self.root)
    }

    /// The disks under a file system, as [`crate::Os::disks`] tells of the machine this runs on.
    #[must_use]
    pub fn disks(&self, device: u64) -> Vec<u64> {
        disks::under(&self.root, device)
    }

    /// Memory, and what the kernel does with it.
    #[must_use]
    pub fn memory(&self) -> MemoryFacts {
        let info = self.text("proc/meminfo");
        let kib = |name: &str| {
            let info = info.as_ref().map_err(Clone::clone)?;
            match info.lines().any(|line| line.starts_with(name)) {
                true => Ok(field(info, name) * 1024),
                false => Err(format!("/proc/meminfo has no {name}")),
            }
        };
        let available = kib("MemAvailable:");
        let groups = cgroup::memory(&self.root);
        let thp = "sys/kernel/mm/transparent_hugepage";
        MemoryFacts {
            bytes_total: kib("MemTotal:"),
            first_touch: match self.tries {
                // Beyond what its cgroup leaves, a process is killed for touching it.
                true => available
                    .clone()
                    .and_then(|available| first_touch(available.min(groups.bytes_left))),
                false => Err(NOT_TRIED.to_owned()),
            },
            bytes_available: available,
            group: self.text("proc/self/cgroup").map(|_| groups.hard),
            group_high: groups.high,
            swaps: self.swaps(),
            swappiness: self.number("proc/sys/vm/swappiness"),
            huge_pages: self.chosen(&format!("{thp}/enabled")),
            huge_pages_defrag: self.chosen(&format!("{thp}/defrag")),
            huge_pages_switched_off: self.text("proc/self/status").map(|text| {
                text.lines()
                    .any(|line| line.split_whitespace().eq(["THP_enabled:", "0"]))
            }),
            bytes_set_aside: kib("Hugetlb:"),
            overcommit: self.number("proc/sys/vm/overcommit_memory"),
            bytes_left_to_map: kib("CommitLimit:")
                .and_then(|limit| Ok(limit.saturating_sub(kib("Committed_AS:")?))),
            address_bytes: limit(Resource::As),
            data_bytes: limit(Resource::Data),
            balloon: self.balloon(),
        }
    }

    /// Whether a hypervisor runs this machine. Processors of x86 have a flag for it; elsewhere devices that only a hypervisor offers tell.
    fn is_virtual(&self, info: &str) -> Fact<bool> {
        let mut flags = info.lines().filter(|line| line.starts_with("flags"));
        if let Some(flags) = flags.next() {
            return Ok(flags.split_whitespace().any(|flag| flag == "hypervisor"));
        }
        match self.names("sys/bus/virtio/devices") {
            Ok(names) if !names.is_empty() => Ok(true),
            _ => Err("/proc/cpuinfo does not tell it of such processors".to_owned()),
        }
    }

    fn governors(&self) -> Fact<Vec<Governor>> {
        let mut found: Vec<Governor> = Vec::new();
        for name in self.names("sys/devices/system/cpu")? {
            let folder = format!("sys/devices/system/cpu/{name}/cpufreq");
            if let Ok(governor) = self.text(&format!("{folder}/scaling_governor")) {
                found.push(Governor {
                    name: governor,
                    driver: self
                        .text(&format!("{folder}/scaling_driver"))
                        .unwrap_or_default(),
                    preference: self
                        .text(&format!("{folder}/energy_performance_preference"))
                        .ok(),
                });
            }
        }
        found.sort();
        found.dedup();
        match found.is_empty() {
            true => Err("the kernel does not set the processors' clock here".to_owned()),
            false => Ok(found),
        }
    }

    fn nodes(&self) -> Fact<Vec<Node>> {
        let mut found = Vec::new();
        for name in self.names("sys/devices/system/node")? {
            let Some(number) = name.strip_prefix("node").and_then(|rest| rest.parse().ok()) else {
                continue;
            };
            let folder = format!("sys/devices/system/node/{name}");
            let memory_bytes = self.text(&format!("{folder}/meminfo")).and_then(|text| {
                let kib = text.lines().find_map(|line| {
                    let (_, rest) = line.split_once("MemTotal:")?;
                    rest.split_whitespace().next()?.parse::<u64>().ok()
                });
                Ok(kib.ok_or("its meminfo has no MemTotal")? * 1024)
            });
            found.push(Node {
                number,
                cores: self.text(&format!("{folder}/cpulist"))?,
                memory_bytes,
            });
        }
        found.sort_by_key(|node| node.number);
        Ok(found)
    }

    fn cards(&self) -> Fact<Vec<Card>> {
        let mut found = Vec::new();
        for name in self.names("sys/class/net")? {
            let folder = format!("sys/class/net/{name}");
            // A card is hardware if something stands behind it: not so `lo`, bridges and tunnels.
            if !self.root.join(&folder).join("device").exists() {
                continue;
            }
            let mbit: Fact<i64> = self.parse(&format!("{folder}/speed"));
            found.push(Card {
                is_up: self
                    .text(&format!("{folder}/operstate"))
                    .is_ok_and(|state| state == "up"),
                bytes_per_s: mbit
                    .ok()
                    .and_then(|mbit| u64::try_from(mbit).ok())
                    .filter(|&mbit| mbit > 0)
                    .map(|mbit| mbit * 1_000_000 / 8),
                node: self
                    .parse::<i64>(&format!("{folder}/device/numa_node"))
                    .ok()
                    .and_then(|node| u32::try_from(node).ok()),
                name,
            });
        }
        Ok(found)
    }

    fn swaps(&self) -> Fact<Vec<Swap>> {
        let text = self.text("proc/swaps")?;
        let swap = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [name, _, kib, kib_used, ..] = words[..] else {
                return None;
            };
            Some(Swap {
                name: unescape(name),
                bytes: kib.parse::<u64>().ok()? * 1024,
                bytes_used: kib_used.parse::<u64>().ok()? * 1024,
            })
        };
        Ok(text.lines().skip(1).filter_map(swap).collect())
    }

    /// Device 5 of virtio is the balloon; its feature 5 is free page reporting (virtio 1.2, 5.5).
    fn balloon(&self) -> Fact<Option<Balloon>> {
        let devices = "sys/bus/virtio/devices";
        if !self.root.join(devices).exists() {
            return Ok(None);
        }
        for name in self.names(devices)? {
            if self.text(&format!("{devices}/{name}/device"))? == "0x0005" {
                let features = self.text(&format!("{devices}/{name}/features"))?;
                return Ok(Some(Balloon {
                    name,
                    reports_free: features.as_bytes().get(5) == Some(&b'1'),
                }));
            }
        }
        Ok(None)
    }

    /// A file's text, without the spaces and ends of lines around it.
    fn text(&self, path: &str) -> Fact<String> {
        match fs::read_to_string(self.root.join(path)) {
            Ok(text) => Ok(text.trim().to_owned()),
            Err(error) => Err(format!("/{path}: {error}")),
        }
    }

    fn parse<T: std::str::FromStr>(&self, path: &str) -> Fact<T> {
        let text = self.text(path)?;
        text.parse()
            .map_err(|_| format!("/{path}: {text:?} is no number"))
    }

    fn number(&self, path: &str) -> Fact<u64> {
        self.parse(path)
    }

    /// The word in brackets of `always [madvise] never`.
    fn chosen(&self, path: &str) -> Fact<String> {
        let text = self.text(path)?;
        let mut words = text.split_whitespace();
        let chosen = words.find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
        chosen
            .map(str::to_owned)
            .ok_or_else(|| format!("/{path}: nothing in {text:?} is chosen"))
    }

    /// The names in a folder, in order.
    fn names(&self, path: &str) -> Fact<Vec<String>> {
        let failed = |error: io::Error| format!("/{path}: {error}");
        let entries = fs::read_dir(self.root.join(path)).map_err(failed)?;
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            names.push(name.to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }
}

fn limit(resource: Resource) -> Limit {
    let limit = getrlimit(resource);
    Limit {
        soft: limit.current,
        hard: limit.maximum,
    }
}

/// Maps memory as the engine does and touches each 4 KiB of it once.
fn first_touch(bytes_available: u64) -> Fact<FirstTouch> {
    const STEP: usize = crate::ALIGN_BYTES / size_of::<u128>();
    if bytes_available < TOUCH_BYTES_AVAILABLE_MIN {
        return Err("too little memory is available to try it".to_owned());
    }
    let failed = |error: io::Error| format!("mapping memory to try it: {error}");
    let mut table = Table::<u128>::new(TOUCH_BYTES / size_of::<u128>()).map_err(failed)?;
    let huge_before = bytes_huge();
    let began = Instant::now();
    for value in table.iter_mut().step_by(STEP) {
        *value = 1;
    }
    std::hint::black_box(&table[..]);
    let ns = began.elapsed().as_nanos();
    Ok(FirstTouch {
        bytes: TOUCH_BYTES as u64,
        ns: u64::try_from(ns).expect("less than 500 years"),
        bytes_huge: huge_before.and_then(|before| Ok(bytes_huge()?.saturating_sub(before))),
    })
}

/// Bytes of this process that lie in huge pages.
fn bytes_huge() -> Fact<u64> {
    let path = "/proc/self/smaps_rollup";
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    Ok(field(&text, "AnonHugePages:") * 1024)
}

/// How many numbers a list as `0-3,8` names.
fn count_of(list: &str) -> usize {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        Some(last.saturating_sub(first) + 1)
    };
    list.split(',').filter_map(range).sum()
}

/// `\040` and its like in the kernel's lists of paths are characters again.
fn unescape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after
            .get(..3)
            .filter(|_| first == b'\\')
            .and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        out.push(code.unwrap_or(first));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    String::from_utf8_lossy(&out).into_owned()
}
