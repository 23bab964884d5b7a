//! Memory.

use sortmill::doctor::Facts;
use sortmill::doctor::Level::{self, Bad, CouldBeBetter, Good, NotKnown};
use sortmill::io::facts::Limit;

use sortmill::io::survey::Survey;

use super::{Case, GIB, check, facts, nothing, touch};
use crate::Scratch;

const THP: &str = "sys/kernel/mm/transparent_hugepage/enabled";
const DEFRAG: &str = "sys/kernel/mm/transparent_hugepage/defrag";
const SWAP: (&str, &str) = (
    "proc/swaps",
    "Filename Type Size Used Priority\n/dev/sda2 partition 4194304 2097152 -2\n",
);

fn case(
    about: &'static str,
    files: &'static [(&'static str, &'static str)],
    level: Level,
    says: &'static str,
) -> Case {
    Case {
        files,
        change: nothing,
        about,
        level,
        says,
    }
}

fn changed(
    about: &'static str,
    change: fn(&mut Facts),
    files: &'static [(&'static str, &'static str)],
    level: Level,
    says: &'static str,
) -> Case {
    Case {
        files,
        change,
        about,
        level,
        says,
    }
}

#[test]
fn size() {
    check(
        "memory",
        &[
            changed(
                "memory",
                |facts| facts.memory.bytes_available = Ok(100 << 20),
                &[],
                Bad,
                "100.0 MiB of it available",
            ),
            changed(
                "memory",
                |facts| facts.memory.bytes_available = Ok(8 * GIB),
                &[],
                CouldBeBetter,
                "64.0 GiB, 8.0 GiB of it available",
            ),
            case(
                "memory",
                &[("proc/meminfo", "MemTotal: 1048576 kB\n")],
                NotKnown,
                "/proc/meminfo has no MemAvailable:",
            ),
        ],
    );
}

#[test]
fn cgroups() {
    const MAX: &str = "sys/fs/cgroup/job/memory.max";
    const CURRENT: &str = "sys/fs/cgroup/job/memory.current";
    const STAT: &str = "sys/fs/cgroup/job/memory.stat";
    const HIGH: &str = "sys/fs/cgroup/job/memory.high";
    let group = |files, level, says| case("memory cgroup", files, level, says);
    check(
        "cgroups",
        &[
            group(
                &[(MAX, "4294967296"), (CURRENT, "4290772992")],
                Bad,
                "limit 4.0 GiB, 4.0 MiB of it left (version 2",
            ),
            group(
                &[(MAX, "4294967296"), (CURRENT, "3758096384")],
                CouldBeBetter,
                "512.0 MiB of it left",
            ),
            // What is page cache can be had.
            group(
                &[
                    (MAX, "4294967296"),
                    (CURRENT, "3758096384"),
                    (STAT, "inactive_file 1073741824\nactive_file 1073741824\n"),
                ],
                Good,
                "2.5 GiB of it left",
            ),
            // The group above bounds as well.
            group(
                &[("sys/fs/cgroup/memory.max", "2147483648")],
                Good,
                "limit 2.0 GiB",
            ),
            // Inside a container the path leads nowhere, and its own group is the root.
            group(
                &[
                    ("proc/self/cgroup", "0::/system.slice/docker-0123.scope\n"),
                    ("sys/fs/cgroup/memory.max", "1073741824"),
                ],
                Good,
                "limit 1.0 GiB",
            ),
            group(
                &[
                    ("proc/self/cgroup", "5:cpu:/\n4:memory:/job\n0::/\n"),
                    (
                        "sys/fs/cgroup/memory/job/memory.limit_in_bytes",
                        "1073741824",
                    ),
                    (
                        "sys/fs/cgroup/memory/memory.limit_in_bytes",
                        "9223372036854771712",
                    ),
                ],
                Good,
                "limit 1.0 GiB, 1.0 GiB of it left (version 1",
            ),
            // There what is used is that of all groups below, and so must be what is page cache.
            group(
                &[
                    ("proc/self/cgroup", "4:memory:/job/step\n0::/\n"),
                    (
                        "sys/fs/cgroup/memory/job/memory.limit_in_bytes",
                        "4294967296",
                    ),
                    (
                        "sys/fs/cgroup/memory/job/memory.usage_in_bytes",
                        "4290772992",
                    ),
                    (
                        "sys/fs/cgroup/memory/job/memory.stat",
                        "inactive_file 0\nactive_file 0\ntotal_inactive_file 1073741824\ntotal_active_file 1073741824\n",
                    ),
                ],
                Good,
                "2.0 GiB of it left (version 1",
            ),
            group(
                &[(MAX, "4294967296"), (HIGH, "2147483648")],
                Good,
                "limit 4.0 GiB, slowed down above 2.0 GiB, 2.0 GiB left below it",
            ),
            group(
                &[(HIGH, "2147483648"), (CURRENT, "1879048192")],
                CouldBeBetter,
                "no limit, slowed down above 2.0 GiB, 256.0 MiB left below it",
            ),
            // Beyond what may be had at all it does not count.
            group(
                &[(MAX, "1073741824"), (HIGH, "2147483648")],
                Good,
                "limit 1.0 GiB, 1023.0 MiB of it left",
            ),
            // A group above with a higher limit leaves less, since others use most of it: for a while the lowest limit was told.
            group(
                &[
                    (MAX, "2147483648"),
                    ("sys/fs/cgroup/memory.high", "4294967296"),
                    ("sys/fs/cgroup/memory.current", "3758096384"),
                ],
                CouldBeBetter,
                "limit 2.0 GiB, slowed down above 4.0 GiB, 512.0 MiB left below it",
            ),
            group(
                &[
                    (MAX, "2147483648"),
                    ("sys/fs/cgroup/memory.max", "4294967296"),
                    ("sys/fs/cgroup/memory.current", "3758096384"),
                ],
                CouldBeBetter,
                "limit 4.0 GiB, 512.0 MiB of it left",
            ),
        ],
    );
}

/// Names and texts of files.
type Files = &'static [(&'static str, &'static str)];

/// What a job may have by default is half of what the tightest limit leaves, of all groups above it too.
#[test]
fn what_groups_leave_to_a_job() {
    const MIB: u64 = 1 << 20;
    let group = "sys/fs/cgroup/job/memory";
    let above = "sys/fs/cgroup/memory";
    let cases: [(Files, u64, u64); 6] = [
        (&[], 64 * GIB, 60_000_000 << 10),
        (&[("max", "4294967296")], 4 * GIB, 4 * GIB - MIB),
        (&[("high", "2147483648")], 2 * GIB, 2 * GIB - MIB),
        (
            &[("max", "1073741824"), ("high", "2147483648")],
            GIB,
            GIB - MIB,
        ),
        // The group above has the higher limit, and others use most of it.
        (
            &[
                ("max", "2147483648"),
                ("^high", "4294967296"),
                ("^current", "3758096384"),
            ],
            2 * GIB,
            GIB / 2,
        ),
        // But what is page cache can be had.
        (
            &[
                ("high", "4294967296"),
                ("current", "3758096384"),
                ("stat", "inactive_file 1073741824\nactive_file 1073741824\n"),
                ("^high", "max"),
            ],
            4 * GIB,
            GIB / 2 + 2 * GIB,
        ),
    ];
    for (files, total, available) in cases {
        let named: Vec<(String, &str)> = files
            .iter()
            .map(|(name, text)| match name.strip_prefix('^') {
                Some(name) => (format!("{above}.{name}"), *text),
                None => (format!("{group}.{name}"), *text),
            })
            .collect();
        let named: Vec<(&str, &str)> = named.iter().map(|(path, text)| (&**path, *text)).collect();
        let scratch = Scratch::new("doctor-offered");
        facts(&scratch, &named, nothing);
        let offered = Survey::at(&scratch.path("root")).offered();
        let have = (offered.memory_bytes_total, offered.memory_bytes_available);
        assert_eq!(have, (total, available), "{files:?}");
    }
}

#[test]
fn swap() {
    check(
        "swap",
        &[
            case(
                "swap",
                &[SWAP],
                CouldBeBetter,
                "4.0 GiB on /dev/sda2, 2.0 GiB in use, swappiness 60",
            ),
            case(
                "swap",
                &[SWAP],
                CouldBeBetter,
                "sudo sysctl vm.swappiness=1",
            ),
            case(
                "swap",
                &[SWAP, ("proc/sys/vm/swappiness", "1\n")],
                CouldBeBetter,
                "Memory has been short",
            ),
            case(
                "swap",
                &[
                    (
                        "proc/swaps",
                        "Filename Type Size Used Priority\n/swap\\040file file 4194304 0 -2\n",
                    ),
                    ("proc/sys/vm/swappiness", "1\n"),
                ],
                Good,
                "on /swap file, 0 B in use",
            ),
        ],
    );
}

#[test]
fn huge_pages() {
    let none = |facts: &mut Facts| facts.memory.first_touch = Ok(touch(2 << 20));
    check(
        "huge",
        &[
            case(
                "huge pages",
                &[(THP, "always madvise [never]\n")],
                CouldBeBetter,
                "echo madvise | sudo tee",
            ),
            case(
                "huge pages",
                &[(THP, "[always] madvise never\n")],
                Good,
                "always",
            ),
            case(
                "huge pages",
                &[("proc/self/status", "THP_enabled:\t0\n")],
                CouldBeBetter,
                "PR_SET_THP_DISABLE",
            ),
            changed(
                "huge pages",
                none,
                &[],
                CouldBeBetter,
                "of 64.0 MiB asked for, 2.0 MiB came",
            ),
            case(
                "huge pages, defrag",
                &[(DEFRAG, "always defer defer+madvise madvise [never]\n")],
                CouldBeBetter,
                "transparent_hugepage/defrag",
            ),
            case(
                "huge pages, defrag",
                &[(DEFRAG, "always [defer] defer+madvise madvise never\n")],
                CouldBeBetter,
                "transparent_hugepage/defrag",
            ),
            changed(
                "huge pages, set aside",
                |facts| facts.memory.bytes_set_aside = Ok(8 * GIB),
                &[],
                CouldBeBetter,
                "8.0 GiB",
            ),
        ],
    );
}

#[test]
fn mapping() {
    const STRICT: &[(&str, &str)] = &[("proc/sys/vm/overcommit_memory", "2\n")];
    check(
        "mapping",
        &[
            case(
                "mapping memory",
                STRICT,
                CouldBeBetter,
                "counted strictly, 31.0 GiB left",
            ),
            changed(
                "mapping memory",
                |facts| facts.memory.bytes_left_to_map = Ok(1 << 20),
                STRICT,
                Bad,
                "sudo sysctl vm.overcommit_memory=0",
            ),
            changed(
                "mapping memory",
                |facts| {
                    facts.memory.address_bytes = Limit {
                        soft: Some(4 * GIB),
                        hard: None,
                    };
                },
                &[],
                CouldBeBetter,
                "ulimit -v unlimited",
            ),
            changed(
                "mapping memory",
                |facts| {
                    facts.memory.data_bytes = Limit {
                        soft: Some(GIB / 2),
                        hard: None,
                    };
                },
                &[],
                CouldBeBetter,
                "ulimit -d unlimited",
            ),
        ],
    );
}

#[test]
fn first_touch() {
    const ABOUT: &str = "first touch of memory";
    // Feature 5 of the balloon, counted from 0; the second device is a disk with all of them.
    const REPORTS: &[(&str, &str)] = &[
        ("sys/bus/virtio/devices/virtio0/device", "0x0002\n"),
        ("sys/bus/virtio/devices/virtio0/features", "1111111111\n"),
        ("sys/bus/virtio/devices/virtio1/device", "0x0005\n"),
        ("sys/bus/virtio/devices/virtio1/features", "0110010000\n"),
    ];
    const KEEPS: &[(&str, &str)] = &[
        ("sys/bus/virtio/devices/virtio0/device", "0x0002\n"),
        ("sys/bus/virtio/devices/virtio0/features", "1111111111\n"),
        ("sys/bus/virtio/devices/virtio1/device", "0x0005\n"),
        ("sys/bus/virtio/devices/virtio1/features", "0110000000\n"),
    ];
    let slow = |facts: &mut Facts| facts.memory.first_touch.as_mut().unwrap().ns = 225_000_000;
    check(
        "touch",
        &[
            changed(ABOUT, slow, &[], CouldBeBetter, "3.6 s for each GiB"),
            changed(ABOUT, slow, &[], CouldBeBetter, "14.4 s of a job in 4 GiB"),
            changed(
                ABOUT,
                slow,
                REPORTS,
                CouldBeBetter,
                "free-page-reporting=off",
            ),
            case(ABOUT, REPORTS, CouldBeBetter, "had not gone yet"),
            case(ABOUT, KEEPS, Good, "0.2 s for each GiB"),
            changed(
                ABOUT,
                |facts| facts.memory.first_touch = Err("too little memory".into()),
                &[],
                NotKnown,
                "too little memory",
            ),
        ],
    );
}
