//! Kernel, processors, NUMA, network cards, limits.

use std::io::Error;

use sortmill::doctor::Level::{Bad, CouldBeBetter, Good, NotKnown};
use sortmill::io::facts::Limit;

use super::{Case, GONE, check, nothing};

const EPERM: i32 = 1;
const ENOMEM: i32 = 12;
const ENOSYS: i32 = 38;
const GOVERNOR: &str = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
const DRIVER: &str = "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver";
const PREFERENCE: &str = "sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference";
const NODE_1: (&str, &str) = ("sys/devices/system/node/node1/cpulist", "8-15\n");
const NODE_1_MEMORY: (&str, &str) = (
    "sys/devices/system/node/node1/meminfo",
    "Node 1 MemTotal: 33554432 kB\n",
);

#[test]
fn io_uring() {
    let case = |files, change, says| Case {
        files,
        change,
        about: "io_uring",
        level: CouldBeBetter,
        says,
    };
    check(
        "io-uring",
        &[
            case(
                &[("proc/sys/kernel/io_uring_disabled", "2\n")],
                |facts| facts.machine.io_uring = Err(Error::from_raw_os_error(EPERM)),
                "sudo sysctl kernel.io_uring_disabled=0",
            ),
            case(
                &[],
                |facts| facts.machine.io_uring = Err(Error::from_raw_os_error(EPERM)),
                "--security-opt seccomp=",
            ),
            case(
                &[("proc/sys/kernel/io_uring_disabled", GONE)],
                |facts| facts.machine.io_uring = Err(Error::from_raw_os_error(ENOSYS)),
                "a kernel of 5.6 or later",
            ),
            case(
                &[],
                |facts| facts.machine.io_uring = Err(Error::from_raw_os_error(ENOMEM)),
                "ulimit -l",
            ),
        ],
    );
}

#[test]
fn processors() {
    let clock = |files, level, says| Case {
        files,
        change: nothing,
        about: "processor clock",
        level,
        says,
    };
    check(
        "processors",
        &[
            Case {
                files: &[("sys/devices/system/cpu/online", "0-7\n")],
                change: nothing,
                about: "cores",
                level: CouldBeBetter,
                says: "may use 4 of 8",
            },
            clock(&[(GOVERNOR, "powersave\n")], CouldBeBetter, "tee /sys"),
            clock(&[(GOVERNOR, "conservative\n")], CouldBeBetter, "tee /sys"),
            clock(&[(GOVERNOR, "schedutil\n")], Good, "schedutil"),
            clock(
                &[
                    (GOVERNOR, "powersave\n"),
                    (DRIVER, "intel_pstate\n"),
                    (PREFERENCE, "balance_performance\n"),
                ],
                Good,
                "powersave",
            ),
            clock(
                &[
                    (GOVERNOR, "powersave\n"),
                    (DRIVER, "amd-pstate-epp\n"),
                    (PREFERENCE, "balance_power\n"),
                ],
                CouldBeBetter,
                "tee /sys",
            ),
            clock(
                &[(
                    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
                    "powersave\n",
                )],
                CouldBeBetter,
                "governor performance, powersave",
            ),
            clock(&[(GOVERNOR, GONE)], NotKnown, "does not set"),
        ],
    );
}

#[test]
fn numa() {
    check(
        "numa",
        &[
            Case {
                files: &[NODE_1, NODE_1_MEMORY],
                change: nothing,
                about: "NUMA",
                level: CouldBeBetter,
                says: "node 0: cores 0-1,4-5, 64.0 GiB; node 1: cores 8-15, 32.0 GiB",
            },
            Case {
                files: &[NODE_1, ("proc/sys/kernel/numa_balancing", "1\n")],
                change: nothing,
                about: "NUMA balancing",
                level: CouldBeBetter,
                says: "sudo sysctl kernel.numa_balancing=0",
            },
            // Only the bridge that the disk hangs on says where it is.
            Case {
                files: &[NODE_1, ("sys/devices/pci/numa_node", "1\n")],
                change: nothing,
                about: "NUMA node of the disk",
                level: Good,
                says: "numactl --cpunodebind=1",
            },
            Case {
                files: &[NODE_1],
                change: nothing,
                about: "network cards",
                level: Good,
                says: "eth0 up, 1250 MB/s, node 0",
            },
        ],
    );
}

#[test]
fn network_cards() {
    let case = |files, says| Case {
        files,
        change: nothing,
        about: "network cards",
        level: Good,
        says,
    };
    check(
        "cards",
        &[
            case(
                &[("sys/class/net/eth0/speed", "-1\n")],
                "eth0 up, speed not told",
            ),
            case(
                &[
                    ("sys/class/net/eth1/operstate", "down\n"),
                    ("sys/class/net/eth1/device/numa_node", "-1\n"),
                ],
                "eth0 up, 1250 MB/s; eth1 down",
            ),
        ],
    );
}

#[test]
fn limits() {
    let files = |change, level, says| Case {
        files: &[],
        change,
        about: "open files",
        level,
        says,
    };
    check(
        "limits",
        &[
            files(
                |facts| facts.machine.open_files = limit(40, 4096),
                Bad,
                "ulimit -n 4096",
            ),
            files(
                |facts| facts.machine.open_files = limit(40, 40),
                Bad,
                "limits.conf",
            ),
            files(
                |facts| facts.machine.open_files = limit(40, 4096),
                Bad,
                "A job may need 64, whatever it reads and writes",
            ),
            files(
                |facts| facts.machine.open_files = limit(64, 4096),
                Good,
                "at most 64",
            ),
            Case {
                files: &[("proc/sys/kernel/osrelease", "5.4.0-generic\n")],
                change: |facts| facts.machine.pinned_bytes = limit(64 << 10, 64 << 10),
                about: "pinned memory",
                level: CouldBeBetter,
                says: "ulimit -l",
            },
            Case {
                files: &[("proc/sys/kernel/osrelease", "5.15.0\n")],
                change: |facts| facts.machine.pinned_bytes = limit(64 << 10, 64 << 10),
                about: "pinned memory",
                level: Good,
                says: "at most 64.0 KiB",
            },
        ],
    );
}

fn limit(soft: u64, hard: u64) -> Limit {
    Limit {
        soft: Some(soft),
        hard: Some(hard),
    }
}
