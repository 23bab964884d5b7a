//! `doctor`: each finding is provoked by a machine whose `/proc` and `/sys` are made up here.
//!
//! A healthy machine is built first and nothing is found wrong with it; so whatever a case finds comes of the
//! one thing that the case changes. What only a trial tells is put into the facts by hand.

mod device;
mod folder;
mod machine;
mod memory;

use std::path::Path;

use sortmill::doctor::{Examination, Facts, Finding, Folder, Level, examine};
use sortmill::io::facts::{Direct, FirstTouch, Limit, Space, Trial};
use sortmill::io::survey::Survey;

use crate::Scratch;

pub const GIB: u64 = 1 << 30;
/// Contents of a file that is not there.
pub const GONE: &str = "(gone)";
pub const NO_LIMIT: Limit = Limit {
    soft: None,
    hard: None,
};

/// A machine that differs from the healthy one, and what is to be found.
pub struct Case {
    /// Files and what they hold.
    pub files: &'static [(&'static str, &'static str)],
    /// What is changed in the facts.
    pub change: fn(&mut Facts),
    /// What it is about.
    pub about: &'static str,
    /// How good it is.
    pub level: Level,
    /// Something it says, anywhere.
    pub says: &'static str,
}

pub fn nothing(_: &mut Facts) {}

/// Builds each machine and looks for its finding.
pub fn check(test: &str, cases: &[Case]) {
    for case in cases {
        let scratch = Scratch::new(&format!("doctor-{test}"));
        let examination = examine(&facts(&scratch, case.files, case.change));
        let found: Vec<&Finding> = findings(&examination)
            .filter(|finding| finding.about == case.about)
            .collect();
        assert!(
            found
                .iter()
                .any(|finding| finding.level == case.level && words(finding).contains(case.says)),
            "{:?} was to be {:?} and to say {:?}, for {:?}; found {found:#?}",
            case.about,
            case.level,
            case.says,
            case.files,
        );
    }
}

#[test]
fn nothing_is_wrong_with_a_healthy_machine() {
    let scratch = Scratch::new("doctor-healthy");
    let examination = examine(&facts(&scratch, &[], nothing));
    for finding in findings(&examination) {
        assert_eq!(finding.level, Level::Good, "{finding:#?}");
        assert_eq!(finding.advice, None, "{finding:#?}");
    }
    let abouts: Vec<&str> = findings(&examination)
        .map(|finding| finding.about)
        .collect();
    assert_eq!(
        abouts,
        [
            "io_uring",
            "cores",
            "processor clock",
            "NUMA",
            "network cards",
            "open files",
            "pinned memory",
            "memory",
            "memory cgroup",
            "swap",
            "huge pages",
            "huge pages, defrag",
            "huge pages, set aside",
            "mapping memory",
            "first touch of memory",
            "writing",
            "direct I/O",
            "reserving space",
            "free space",
            "file system",
            "mount options",
            "TRIM",
            "device",
            "disk",
            "disk scheduler",
            "queue depth",
        ]
    );
}

/// A container may have no `/sys` at all, and a `/proc` that shows nothing.
#[test]
fn what_cannot_be_learnt_is_said_with_the_reason() {
    let scratch = Scratch::new("doctor-nothing");
    let survey = Survey::at(&scratch.path("empty"));
    let examination = examine(&Facts {
        machine: survey.machine(),
        memory: survey.memory(),
        folders: vec![temp(&survey, &scratch.path(""))],
    });
    for about in [
        "cores",
        "processor clock",
        "NUMA",
        "network cards",
        "memory",
        "memory cgroup",
        "swap",
        "huge pages",
        "huge pages, defrag",
        "huge pages, set aside",
        "file system",
        "device",
    ] {
        let mut all = findings(&examination);
        let finding = all.find(|finding| finding.about == about).expect(about);
        assert_eq!(finding.level, Level::NotKnown, "{finding:#?}");
        assert!(
            finding.found.contains("/proc/") || finding.found.contains("/sys/"),
            "{finding:#?}"
        );
    }
}

#[test]
fn the_worst_comes_first() {
    let scratch = Scratch::new("doctor-order");
    let change = |facts: &mut Facts| {
        facts.folders[0].facts.trial = Err("Permission denied (os error 13)".into());
        facts.folders[0].facts.mount.as_mut().unwrap().kind = "nfs".into();
        facts.folders[0].facts.device = Err("it is far away".into());
    };
    let examination = examine(&facts(&scratch, &[], change));
    let folder = examination.sections.last().unwrap();
    let levels: Vec<Level> = folder
        .findings
        .iter()
        .map(|finding| finding.level)
        .collect();
    assert_eq!(levels[0], Level::Bad);
    assert!(levels.is_sorted(), "{levels:?}");
    let json: serde_json::Value = serde_json::from_str(&examination.to_json()).unwrap();
    assert_eq!(json["version"], 1);
    assert_eq!(json["sections"][2]["name"], "folder");
    assert_eq!(json["sections"][2]["uses"][0], "temporary files");
    assert_eq!(json["sections"][2]["findings"][0]["level"], "bad");
    assert_eq!(json["sections"][2]["findings"][0]["about"], "writing");
}

// -------------------------------------------------------------------------------------------------

fn findings(examination: &Examination) -> impl Iterator<Item = &Finding> {
    let sections = &examination.sections;
    sections.iter().flat_map(|section| &section.findings)
}

/// All that a finding says.
fn words(finding: &Finding) -> String {
    let parts = [Some(&finding.found), Some(&finding.means)];
    let more = [finding.advice.as_ref(), finding.command.as_ref()];
    let all: Vec<&str> = parts
        .into_iter()
        .chain(more)
        .flatten()
        .map(String::as_str)
        .collect();
    all.join("\n")
}

fn temp(survey: &Survey, path: &Path) -> Folder {
    Folder {
        facts: survey.folder(path),
        is_temp: true,
        is_output: false,
    }
}

/// The facts of the healthy machine with `files` written over it and then `change` made.
pub fn facts(scratch: &Scratch, files: &[(&str, &str)], change: fn(&mut Facts)) -> Facts {
    let root = scratch.path("root");
    for (path, text) in HEALTHY.iter().chain(files) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match *text {
            GONE => std::fs::remove_file(path).unwrap(),
            text => match text.strip_prefix("-> ") {
                Some(target) => std::os::unix::fs::symlink(target, path).unwrap(),
                None => std::fs::write(path, text).unwrap(),
            },
        }
    }
    let data = scratch.path("data");
    std::fs::create_dir_all(&data).unwrap();
    let survey = Survey::at(&root);
    let mut facts = Facts {
        machine: survey.machine(),
        memory: survey.memory(),
        folders: vec![temp(&survey, &data)],
    };
    facts.machine.io_uring = Ok(());
    facts.machine.cores_allowed = 4;
    facts.machine.open_files = NO_LIMIT;
    facts.machine.pinned_bytes = NO_LIMIT;
    facts.memory.address_bytes = NO_LIMIT;
    facts.memory.data_bytes = NO_LIMIT;
    facts.memory.first_touch = Ok(touch(64 << 20));
    let folder = &mut facts.folders[0].facts;
    folder.is_written_in_place = Ok(false);
    folder.trial = Ok(Trial {
        direct: Direct::Works,
        reserves: true,
    });
    folder.space = Ok(Space {
        bytes_free: 500 * GIB,
        bytes_total: 900 * GIB,
        files_free: Some(1000),
    });
    change(&mut facts);
    facts
}

/// 64 MiB at 0.2 s for each GiB.
pub fn touch(bytes_huge: u64) -> FirstTouch {
    FirstTouch {
        bytes: 64 << 20,
        ns: 12_500_000,
        bytes_huge: Ok(bytes_huge),
    }
}

const HEALTHY: &[(&str, &str)] = &[
    ("proc/sys/kernel/osrelease", "6.8.0-45-generic\n"),
    ("proc/sys/kernel/io_uring_disabled", "0\n"),
    ("proc/sys/kernel/numa_balancing", "0\n"),
    ("proc/sys/vm/swappiness", "60\n"),
    ("proc/sys/vm/overcommit_memory", "0\n"),
    ("proc/cpuinfo", "processor : 0\nflags : fpu sse2\n"),
    (
        "proc/meminfo",
        "MemTotal: 67108864 kB\nMemFree: 1 kB\nMemAvailable: 60000000 kB\nCommitLimit: 33554432 kB\n\
         Committed_AS: 1048576 kB\nHugetlb: 0 kB\n",
    ),
    ("proc/swaps", "Filename Type Size Used Priority\n"),
    ("proc/self/cgroup", "0::/job\n"),
    ("proc/self/status", "Name: sortmill\nTHP_enabled:\t1\n"),
    (
        "proc/self/mountinfo",
        "27 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n",
    ),
    ("sys/fs/cgroup/job/memory.max", "max\n"),
    ("sys/fs/cgroup/job/memory.current", "1048576\n"),
    (
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never\n",
    ),
    (
        "sys/kernel/mm/transparent_hugepage/defrag",
        "always defer defer+madvise [madvise] never\n",
    ),
    ("sys/devices/system/cpu/online", "0-1,4-5\n"),
    (
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        "performance\n",
    ),
    (
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver",
        "acpi-cpufreq\n",
    ),
    ("sys/devices/system/node/online", "0\n"),
    ("sys/devices/system/node/node0/cpulist", "0-1,4-5\n"),
    (
        "sys/devices/system/node/node0/meminfo",
        "Node 0 MemTotal: 67108864 kB\n",
    ),
    ("sys/class/net/lo/operstate", "unknown\n"),
    ("sys/class/net/eth0/operstate", "up\n"),
    ("sys/class/net/eth0/speed", "10000\n"),
    ("sys/class/net/eth0/device/numa_node", "0\n"),
    // A disk with a partition, and everything that can be made of it.
    ("sys/dev/block/8:1", "-> ../../devices/pci/ata/sda/sda1"),
    ("sys/class/block/sda1", "-> ../../devices/pci/ata/sda/sda1"),
    ("sys/devices/pci/numa_node", "0\n"),
    ("sys/devices/pci/ata/sda/sda1/partition", "1\n"),
    ("sys/devices/pci/ata/sda/sda1/dev", "8:1\n"),
    ("sys/devices/pci/ata/sda/dev", "8:0\n"),
    ("sys/devices/pci/ata/sda/queue/rotational", "0\n"),
    (
        "sys/devices/pci/ata/sda/queue/scheduler",
        "[none] mq-deadline bfq\n",
    ),
    ("sys/devices/pci/ata/sda/queue/nr_requests", "256\n"),
    (
        "sys/devices/pci/ata/sda/queue/discard_max_bytes",
        "1073741824\n",
    ),
    ("sys/devices/pci/ata/sda/device/queue_depth", "31\n"),
    ("sys/devices/pci/ata/sdb/dev", "8:16\n"),
    ("sys/devices/pci/ata/sdb/queue/rotational", "0\n"),
    ("sys/devices/pci/ata/sdb/queue/scheduler", "none\n"),
    ("sys/devices/pci/ata/sdb/queue/nr_requests", "256\n"),
    ("sys/devices/pci/ata/sdb/queue/discard_max_bytes", "0\n"),
    ("sys/dev/block/9:0", "-> ../../devices/virtual/md0"),
    ("sys/devices/virtual/md0/dev", "9:0\n"),
    ("sys/devices/virtual/md0/md/level", "raid0\n"),
    ("sys/devices/virtual/md0/md/raid_disks", "2\n"),
    ("sys/devices/virtual/md0/md/chunk_size", "524288\n"),
    (
        "sys/devices/virtual/md0/slaves/sda1",
        "-> ../../../pci/ata/sda/sda1",
    ),
    (
        "sys/devices/virtual/md0/slaves/sdb",
        "-> ../../../pci/ata/sdb",
    ),
    ("sys/dev/block/253:0", "-> ../../devices/virtual/dm-0"),
    ("sys/devices/virtual/dm-0/dev", "253:0\n"),
    ("sys/devices/virtual/dm-0/dm/name", "home\n"),
    (
        "sys/devices/virtual/dm-0/dm/uuid",
        "CRYPT-LUKS2-0123-home\n",
    ),
    ("sys/devices/virtual/dm-0/slaves/md0", "-> ../../md0"),
    ("sys/dev/block/253:1", "-> ../../devices/virtual/dm-1"),
    ("sys/devices/virtual/dm-1/dev", "253:1\n"),
    ("sys/devices/virtual/dm-1/dm/name", "vg-data\n"),
    ("sys/devices/virtual/dm-1/dm/uuid", "LVM-abc\n"),
    (
        "sys/devices/virtual/dm-1/slaves/sda1",
        "-> ../../../pci/ata/sda/sda1",
    ),
    ("sys/dev/block/7:0", "-> ../../devices/virtual/loop0"),
    ("sys/devices/virtual/loop0/dev", "7:0\n"),
    (
        "sys/devices/virtual/loop0/loop/backing_file",
        "/data/image\n",
    ),
    ("sys/devices/virtual/loop0/loop/dio", "0\n"),
    ("sys/dev/block/252:0", "-> ../../devices/virtual/zram0"),
    ("sys/devices/virtual/zram0/dev", "252:0\n"),
];
