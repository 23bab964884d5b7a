//! What a machine and its folders offer, as plain values: each is learnt, or says why it is not.
//!
//! [`crate::survey`] gathers them from the system. Whoever judges them needs no system at all.

use std::io;
use std::path::PathBuf;

/// Something learnt, or in words why it could not be.
pub type Fact<T> = Result<T, String>;

/// Kernel, processors, network cards and limits of this process.
#[derive(Debug)]
pub struct MachineFacts {
    /// The kernel's release, as `6.18.4-generic`.
    pub kernel: Fact<String>,
    /// Whether the processor says that it is a virtual machine's.
    pub is_virtual: Fact<bool>,
    /// What became of making a ring.
    pub io_uring: io::Result<()>,
    /// `kernel.io_uring_disabled`: 0 allowed, 1 for one group only, 2 forbidden.
    pub io_uring_disabled: Fact<u64>,
    /// Processors that are switched on.
    pub cores_online: Fact<usize>,
    /// Processors that affinity and cgroup leave to this process.
    pub cores_allowed: usize,
    /// What sets the processors' clock, each kind once.
    pub governors: Fact<Vec<Governor>>,
    /// NUMA nodes in order.
    pub nodes: Fact<Vec<Node>>,
    /// Whether the kernel moves memory between nodes by itself.
    pub numa_balancing: Fact<bool>,
    /// Network cards that are hardware, in order of their names.
    pub cards: Fact<Vec<Card>>,
    /// Open files of this process (`RLIMIT_NOFILE`).
    pub open_files: Limit,
    /// Bytes of memory that this process may pin (`RLIMIT_MEMLOCK`).
    pub pinned_bytes: Limit,
}

/// A limit of a process; `None` is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// What holds now.
    pub soft: Option<u64>,
    /// What the process may raise it to.
    pub hard: Option<u64>,
}

/// What sets the clock of some processors.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Governor {
    /// As `performance`.
    pub name: String,
    /// As `acpi-cpufreq`; empty if it has no name.
    pub driver: String,
    /// What a driver that decides by itself prefers, as `balance_power`.
    pub preference: Option<String>,
}

/// Processors and memory that are near each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// The kernel's number for it.
    pub number: u32,
    /// Its processors, as `0-7,16-23`; empty if it has memory only.
    pub cores: String,
    /// Its memory.
    pub memory_bytes: Fact<u64>,
}

/// A network card.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Card {
    /// As `eth0`.
    pub name: String,
    /// Whether it carries anything now.
    pub is_up: bool,
    /// Bytes a second each way, if it says so.
    pub bytes_per_s: Option<u64>,
    /// The NUMA node it hangs on, if it says so.
    pub node: Option<u32>,
}

/// Memory, and what the kernel does with it.
#[derive(Debug)]
pub struct MemoryFacts {
    /// All of the machine's.
    pub bytes_total: Fact<u64>,
    /// What could be had without swapping.
    pub bytes_available: Fact<u64>,
    /// The tightest cgroup that limits this process, if any does.
    pub group: Fact<Option<MemoryGroup>>,
    /// The cgroup with the least `memory.high`, if any has one: above it the kernel slows a process down.
    pub group_high: Option<MemoryGroup>,
    /// Where memory is swapped to.
    pub swaps: Fact<Vec<Swap>>,
    /// `vm.swappiness`, 0 to 200.
    pub swappiness: Fact<u64>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub huge_pages: Fact<String>,
    /// Who waits for one to be put together: `always`, `defer`, `defer+madvise`, `madvise` or `never`.
    pub huge_pages_defrag: Fact<String>,
    /// Whether this process was started with them switched off (`PR_SET_THP_DISABLE`).
    pub huge_pages_switched_off: Fact<bool>,
    /// Memory set aside for hugetlb, which nobody else gets.
    pub bytes_set_aside: Fact<u64>,
    /// `vm.overcommit_memory`: 2 counts what is mapped rather than what is used.
    pub overcommit: Fact<u64>,
    /// What may still be mapped where that is counted.
    pub bytes_left_to_map: Fact<u64>,
    /// Address space of this process (`RLIMIT_AS`).
    pub address_bytes: Limit,
    /// Memory of its own that it may map (`RLIMIT_DATA`).
    pub data_bytes: Limit,
    /// The balloon through which a host takes memory back, if there is one.
    pub balloon: Fact<Option<Balloon>>,
    /// What touching new memory costs.
    pub first_touch: Fact<FirstTouch>,
}

/// A memory cgroup with a limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryGroup {
    /// Where its files are.
    pub folder: PathBuf,
    /// The version of the interface: 1 or 2.
    pub version: u32,
    /// The limit: `memory.max`, `memory.high` or their like.
    pub bytes_limit: u64,
    /// What is used, page cache not counted: the kernel gives that back.
    pub bytes_used: u64,
}

impl MemoryGroup {
    /// What it leaves below its limit.
    #[must_use]
    pub fn bytes_left(&self) -> u64 {
        self.bytes_limit.saturating_sub(self.bytes_used)
    }
}

/// A device or file that memory is swapped to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Swap {
    /// Its path.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// What lies in it now.
    pub bytes_used: u64,
}

/// A virtual machine's balloon.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Balloon {
    /// Its name among the virtual devices.
    pub name: String,
    /// Whether the kernel tells the host which memory is free, which then takes it.
    pub reports_free: bool,
}

/// New memory that was touched once, as the engine's buffers are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FirstTouch {
    /// How much.
    pub bytes: u64,
    /// How long it took.
    pub ns: u64,
    /// How much of it came in huge pages.
    pub bytes_huge: Fact<u64>,
}

/// A folder and what lies under it.
#[derive(Debug)]
pub struct FolderFacts {
    /// As it was named.
    pub path: PathBuf,
    /// The same without symlinks; if there is no such folder, why.
    pub resolved: Fact<PathBuf>,
    /// What became of writing a file as a job does.
    pub trial: Fact<Trial>,
    /// Room.
    pub space: Fact<Space>,
    /// The file system.
    pub mount: Fact<Mount>,
    /// Whether files made in it are written in place (`chattr +C`) by a file system that copies on write.
    pub is_written_in_place: Fact<bool>,
    /// The device under the file system.
    pub device: Fact<Device>,
}

/// A file made in a folder, written, read back and gone again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trial {
    /// How it was written.
    pub direct: Direct,
    /// Whether room can be reserved beforehand.
    pub reserves: bool,
}

/// What a file system does when asked to go past the page cache.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Direct {
    /// It does.
    Works,
    /// It says that it cannot; the page cache is used.
    Refused,
    /// It says yes and uses the page cache.
    Cached,
    /// It says yes, and the kernel does not tell whether the page cache is used (`cachestat`, Linux 6.5).
    Accepted,
    /// It says yes, and then the write or the read fails.
    Fails(String),
}

/// Room in a file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Space {
    /// What this user may still write.
    pub bytes_free: u64,
    /// All of it.
    pub bytes_total: u64,
    /// How many files may still be made; `None` where they are not counted.
    pub files_free: Option<u64>,
}

/// A mounted file system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mount {
    /// Where it is mounted.
    pub folder: PathBuf,
    /// As `ext4`.
    pub kind: String,
    /// As `/dev/sda1`.
    pub source: String,
    /// The options of the mount and of the file system, as `discard` and `data=journal`.
    pub options: Vec<String>,
}

/// A block device, with those it is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// The kernel's name, as `nvme0n1`.
    pub name: String,
    /// What it is.
    pub kind: DeviceKind,
    /// The devices it is made of; none for a disk.
    pub parts: Vec<Device>,
    /// What cgroups let this process read of it, in bytes a second.
    pub read_bytes_per_s_max: Option<u64>,
    /// What they let it write.
    pub write_bytes_per_s_max: Option<u64>,
    /// Whether it can be told what is no longer needed (TRIM), and passes it on.
    pub trims: Fact<bool>,
}

/// Kinds of block devices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeviceKind {
    /// A disk, or whatever the kernel takes for one.
    Disk(Disk),
    /// Several disks as one (md).
    Raid(Raid),
    /// Encrypted (dm-crypt), with the name it was opened by.
    Crypt(String),
    /// Another mapped device, as a logical volume, with its name.
    Mapped(String),
    /// A file used as a device.
    Loop(Loop),
    /// Compressed memory used as a device.
    InMemory,
}

/// A disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Disk {
    /// Whether it says that it rotates.
    pub rotates: Fact<bool>,
    /// What puts requests in order: `none`, `mq-deadline`, `kyber`, `bfq`.
    pub scheduler: Fact<String>,
    /// Requests the kernel keeps for it.
    pub requests_max: Fact<u64>,
    /// Requests the device itself takes at once, where it says so.
    pub device_requests_max: Option<u64>,
    /// The NUMA node it hangs on, if it says so.
    pub node: Option<u32>,
}

/// An array of disks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Raid {
    /// As `raid0`.
    pub level: String,
    /// Disks it should have.
    pub disk_count: u64,
    /// Disks it lacks.
    pub missing_count: u64,
    /// Bytes in a row on one disk; 0 where it does not stripe.
    pub chunk_bytes: u64,
    /// Stripes kept in memory while they are put together, where parity is.
    pub stripe_cache_count: Option<u64>,
    /// What it does besides: `idle`, `resync`, `recover`, `check`.
    pub action: String,
}

/// A file used as a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loop {
    /// The file.
    pub file: String,
    /// Whether it goes past the page cache to it.
    pub is_direct: bool,
}

impl Device {
    /// The names of the disks it is made of in the end; its own if it is one.
    #[must_use]
    pub fn disk_names(&self) -> Vec<&str> {
        match self.parts.is_empty() {
            true => vec![&self.name],
            false => self.parts.iter().flat_map(Self::disk_names).collect(),
        }
    }
}
