//! Devices: disks, arrays, encryption, limits of the cgroup.

use sortmill::doctor::Level::{self, Bad, CouldBeBetter, Good, NotKnown};

use sortmill::io::survey::Survey;

use super::{Case, GONE, check, facts, nothing};
use crate::Scratch;

const ON_ARRAY: (&str, &str) = (
    "proc/self/mountinfo",
    "27 1 9:0 / / rw - ext4 /dev/md0 rw\n",
);
const ON_CRYPT: (&str, &str) = (
    "proc/self/mountinfo",
    "27 1 253:0 / / rw - ext4 /dev/mapper/home rw\n",
);
const ON_VOLUME: (&str, &str) = (
    "proc/self/mountinfo",
    "27 1 253:1 / / rw - ext4 /dev/mapper/vg-data rw\n",
);
const ON_LOOP: (&str, &str) = (
    "proc/self/mountinfo",
    "27 1 7:0 / / rw - ext4 /dev/loop0 rw\n",
);
const ON_ZRAM: (&str, &str) = (
    "proc/self/mountinfo",
    "27 1 252:0 / / rw - ext4 /dev/zram0 rw\n",
);
const LEVEL: &str = "sys/devices/virtual/md0/md/level";
const CHUNK: &str = "sys/devices/virtual/md0/md/chunk_size";
const ROTATES: &str = "sys/devices/pci/ata/sda/queue/rotational";
const SCHEDULER: &str = "sys/devices/pci/ata/sda/queue/scheduler";

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

#[test]
fn disks() {
    check(
        "disks",
        &[
            case("disk", &[(ROTATES, "1\n")], CouldBeBetter, "sda rotates"),
            case(
                "disk",
                &[
                    (ROTATES, "1\n"),
                    ("proc/cpuinfo", "flags : fpu hypervisor\n"),
                ],
                NotKnown,
                "the host does not tell",
            ),
            // Processors of ARM have no flag for it.
            case(
                "disk",
                &[
                    (ROTATES, "1\n"),
                    ("proc/cpuinfo", "Features : fp asimd\n"),
                    ("sys/bus/virtio/devices/virtio0/device", "0x0002\n"),
                ],
                NotKnown,
                "the host does not tell",
            ),
            case(
                "disk scheduler",
                &[(SCHEDULER, "none mq-deadline [bfq]\n")],
                CouldBeBetter,
                "echo none | sudo tee /sys/block/sda/queue/scheduler",
            ),
            case(
                "disk scheduler",
                &[(SCHEDULER, "mq-deadline [bfq]\n"), (ROTATES, "1\n")],
                CouldBeBetter,
                "echo mq-deadline | sudo tee",
            ),
            case(
                "disk scheduler",
                &[(SCHEDULER, "[mq-deadline] none\n")],
                Good,
                "sda: mq-deadline",
            ),
            case(
                "queue depth",
                &[("sys/devices/pci/ata/sda/queue/nr_requests", "4\n")],
                CouldBeBetter,
                "echo 256 | sudo tee /sys/block/sda/queue/nr_requests",
            ),
            case(
                "queue depth",
                &[("sys/devices/pci/ata/sda/device/queue_depth", "1\n")],
                CouldBeBetter,
                "echo 31 | sudo tee /sys/block/sda/device/queue_depth",
            ),
            case(
                "TRIM",
                &[("sys/devices/pci/ata/sda/queue/discard_max_bytes", "0\n")],
                Good,
                "does not take it",
            ),
            case(
                "disk scheduler",
                &[(SCHEDULER, GONE)],
                NotKnown,
                "queue/scheduler of the device",
            ),
            case(
                "device",
                &[(
                    "proc/self/mountinfo",
                    "27 1 0:42 / / rw - btrfs /dev/sda1 rw\n",
                )],
                Good,
                "sda",
            ),
            case(
                "device",
                &[(
                    "proc/self/mountinfo",
                    "27 1 0:42 / / rw - overlay overlay rw\n",
                )],
                NotKnown,
                "overlay has no device of its own",
            ),
        ],
    );
}

#[test]
fn arrays() {
    check(
        "arrays",
        &[
            case("device", &[ON_ARRAY], Good, "md0 (raid0) of sda, sdb"),
            case(
                "RAID",
                &[ON_ARRAY],
                Good,
                "raid0 of 2 disks, chunks of 512.0 KiB",
            ),
            // One of its disks takes no TRIM.
            case("TRIM", &[ON_ARRAY], Good, "does not take it"),
            case(
                "RAID",
                &[ON_ARRAY, (CHUNK, "4096 (524288)\n")],
                CouldBeBetter,
                "chunks of 512 KiB",
            ),
            case(
                "RAID",
                &[ON_ARRAY, (LEVEL, "linear\n")],
                CouldBeBetter,
                "the speed of one",
            ),
            case(
                "RAID",
                &[
                    ON_ARRAY,
                    (LEVEL, "raid6\n"),
                    ("sys/devices/virtual/md0/md/raid_disks", "6\n"),
                    ("sys/devices/virtual/md0/md/stripe_cache_size", "256\n"),
                ],
                CouldBeBetter,
                "a stripe of 2.0 MiB",
            ),
            case(
                "RAID",
                &[
                    ON_ARRAY,
                    (LEVEL, "raid5\n"),
                    ("sys/devices/virtual/md0/md/stripe_cache_size", "256\n"),
                ],
                CouldBeBetter,
                "tee /sys/block/md0/md/stripe_cache_size",
            ),
            case(
                "RAID",
                &[
                    ON_ARRAY,
                    (LEVEL, "raid1\n"),
                    ("sys/devices/virtual/md0/md/degraded", "1\n"),
                ],
                Bad,
                "1 missing",
            ),
            case(
                "RAID",
                &[
                    ON_ARRAY,
                    ("sys/devices/virtual/md0/md/sync_action", "resync\n"),
                ],
                CouldBeBetter,
                "busy with resync",
            ),
        ],
    );
}

#[test]
fn mapped_devices() {
    check(
        "mapped",
        &[
            case(
                "device",
                &[ON_CRYPT],
                Good,
                "dm-0 (encrypted: home) of md0 (raid0) of sda, sdb",
            ),
            // The disk below takes it, and what lies between does not pass it on.
            case("TRIM", &[ON_VOLUME], Good, "the device takes it"),
            case(
                "TRIM",
                &[
                    ON_VOLUME,
                    ("sys/devices/virtual/dm-1/queue/discard_max_bytes", "0\n"),
                ],
                Good,
                "does not take it",
            ),
            case(
                "encryption",
                &[ON_CRYPT],
                CouldBeBetter,
                "--perf-no_write_workqueue home",
            ),
            case(
                "device",
                &[ON_VOLUME],
                Good,
                "dm-1 (mapped: vg-data) of sda",
            ),
            case(
                "disk",
                &[ON_VOLUME, (ROTATES, "1\n")],
                CouldBeBetter,
                "sda rotates",
            ),
            case(
                "loop device",
                &[ON_LOOP],
                CouldBeBetter,
                "losetup --direct-io=on /dev/loop0",
            ),
            case(
                "loop device",
                &[ON_LOOP, ("sys/devices/virtual/loop0/loop/dio", "1\n")],
                CouldBeBetter,
                "the file /data/image",
            ),
            case("TRIM", &[ON_LOOP], NotKnown, "under loop0"),
            case("device in memory", &[ON_ZRAM], Bad, "zram0"),
        ],
    );
}

/// What temporary data are spread by: `st_dev` of a file system in, the disks under it out.
#[test]
fn disks_under_a_file_system() {
    let scratch = Scratch::new("doctor-disks-under");
    facts(&scratch, &[], nothing);
    let survey = Survey::at(&scratch.path("root"));
    let number = |major: u64, minor: u64| major << 8 | minor;
    let (sda, sdb) = (number(8, 0), number(8, 16));
    for (device, disks) in [
        // A partition.
        (number(8, 1), vec![sda]),
        // An array of a partition and a disk, and what is encrypted on it.
        (number(9, 0), vec![sda, sdb]),
        (number(253, 0), vec![sda, sdb]),
        // A volume beside it.
        (number(253, 1), vec![sda]),
        // A file used as a device, and what the kernel tells nothing of.
        (number(7, 0), vec![number(7, 0)]),
        (number(0, 35), vec![number(0, 35)]),
    ] {
        assert_eq!(survey.disks(device), disks, "{device:x}");
    }
}

#[test]
fn limits_of_the_cgroup() {
    check(
        "throttled",
        &[
            case(
                "I/O limit",
                &[(
                    "sys/fs/cgroup/job/io.max",
                    "8:16 rbps=1 wbps=1 riops=max wiops=max\n8:0 rbps=max wbps=100000000 riops=max wiops=max\n",
                )],
                CouldBeBetter,
                "sda: at most 100 MB/s written",
            ),
            // The least of all groups counts.
            case(
                "I/O limit",
                &[
                    ("sys/fs/cgroup/job/io.max", "8:0 rbps=300000000 wbps=max\n"),
                    ("sys/fs/cgroup/io.max", "8:0 rbps=200000000 wbps=max\n"),
                ],
                CouldBeBetter,
                "sda: at most 200 MB/s read",
            ),
            case(
                "I/O limit",
                &[
                    ("proc/self/cgroup", "3:blkio:/job\n"),
                    (
                        "sys/fs/cgroup/blkio/job/blkio.throttle.read_bps_device",
                        "8:0 50000000\n",
                    ),
                    (
                        "sys/fs/cgroup/blkio/job/blkio.throttle.write_bps_device",
                        "8:0 40000000\n",
                    ),
                ],
                CouldBeBetter,
                "50 MB/s read, 40 MB/s written",
            ),
        ],
    );
}
