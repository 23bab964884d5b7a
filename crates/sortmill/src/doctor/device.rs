//! The devices under a folder, down to the disks.

use sortmill_io::facts::{Device, DeviceKind, Disk, Fact, MachineFacts, Raid};

use super::{Finding, Folder};
use crate::text;

/// Reading and writing keep some 8 requests of 4 MiB in flight each, and the kernel cuts them in pieces.
const REQUESTS_MIN: u64 = 32;
const DEVICE_REQUESTS_MIN: u64 = 8;
/// Smaller pieces of an array make many small requests of one large one.
const RAID_CHUNK_BYTES_MIN: u64 = 64 << 10;
const STRIPE_CACHE_MIN: u64 = 4096;

/// Everything about the devices under a folder.
pub(super) fn findings(device: &Device, folder: &Folder, machine: &MachineFacts) -> Vec<Finding> {
    let mut found = vec![Finding::good("device", shown(device))];
    visit(device, folder, machine, &mut found);
    found
}

/// Whether it takes TRIM and passes it on: what is encrypted does not unless it was opened so.
pub(super) fn trims(device: &Device) -> Fact<bool> {
    if device.trims.is_ok() || matches!(device.kind, DeviceKind::Disk(_)) {
        return device.trims.clone();
    }
    if device.parts.is_empty() {
        return Err(format!("no disk is known under {}", device.name));
    }
    for part in &device.parts {
        if !trims(part)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// `dm-0 (encrypted: home) of md0 (raid1) of sda, sdb`.
fn shown(device: &Device) -> String {
    let name = &device.name;
    let this = match &device.kind {
        DeviceKind::Disk(_) => name.clone(),
        DeviceKind::Raid(raid) => format!("{name} ({})", raid.level),
        DeviceKind::Crypt(mapped) => format!("{name} (encrypted: {mapped})"),
        DeviceKind::Mapped(mapped) => format!("{name} (mapped: {mapped})"),
        DeviceKind::Loop(inner) => format!("{name} (the file {})", inner.file),
        DeviceKind::InMemory => format!("{name} (in memory)"),
    };
    let parts: Vec<String> = device.parts.iter().map(shown).collect();
    match parts.is_empty() {
        true => this,
        false => format!("{this} of {}", parts.join(", ")),
    }
}

/// Judges a device and those it is made of.
fn visit(device: &Device, folder: &Folder, machine: &MachineFacts, found: &mut Vec<Finding>) {
    found.extend(limits(device));
    match &device.kind {
        DeviceKind::Disk(disk) => {
            found.push(rotation(device, disk, machine));
            found.push(scheduler(device, disk));
            found.push(queue(device, disk));
            found.extend(node(device, disk, machine));
        }
        DeviceKind::Raid(raid) => found.push(array(device, raid)),
        DeviceKind::Crypt(mapped) => found.push(
            Finding::better("encryption", format!("{} ({mapped})", device.name))
                .means("Every byte is encrypted and decrypted by the processor, temporary ones too.")
                .advice("Put temporary files on a disk without it if the data allow that; else spare the detour by the kernel's queues.")
                .command(format!(
                    "sudo cryptsetup refresh --perf-no_read_workqueue --perf-no_write_workqueue {mapped}"
                )),
        ),
        DeviceKind::Loop(inner) => {
            let finding = Finding::better("loop device", format!("{} is the file {}", device.name, inner.file))
                .means("Every byte passes through another file system first.");
            found.push(match inner.is_direct {
                true => finding.advice("Use a folder of that file system itself where you can."),
                false => finding
                    .advice("Use a folder of that file system itself, or at least spare its page cache.")
                    .command(format!("sudo losetup --direct-io=on /dev/{}", device.name)),
            });
        }
        DeviceKind::InMemory => {
            let about = "device in memory";
            let finding = match folder.is_temp {
                true => Finding::bad(about, &device.name)
                    .means("Temporary files take the memory that they are to save."),
                false => Finding::better(about, &device.name)
                    .means("It takes from the memory that a job can have."),
            };
            found.push(finding.advice("Use a folder on a disk."));
        }
        DeviceKind::Mapped(_) => {}
    }
    for part in &device.parts {
        visit(part, folder, machine, found);
    }
}

fn limits(device: &Device) -> Option<Finding> {
    let rates = [
        ("read", device.read_bytes_per_s_max),
        ("written", device.write_bytes_per_s_max),
    ];
    let shown: Vec<String> = rates
        .into_iter()
        .filter_map(|(way, rate)| Some(format!("{} {way}", text::rate(rate?, 1_000_000_000))))
        .collect();
    (!shown.is_empty()).then(|| {
        Finding::better("I/O limit", format!("{}: at most {}", device.name, shown.join(", ")))
            .means("The cgroup of this process bounds it, whatever the disk can do.")
            .advice("Raise io.max (version 1: blkio.throttle.*) of the group, or the container's flags (Docker: --device-read-bps, --device-write-bps).")
    })
}

fn rotation(device: &Device, disk: &Disk, machine: &MachineFacts) -> Finding {
    const ABOUT: &str = "disk";
    let name = &device.name;
    match &disk.rotates {
        Err(why) => Finding::unknown(ABOUT, format!("{name}: {why}")),
        Ok(false) => Finding::good(ABOUT, format!("{name} does not rotate")),
        // A virtual disk is taken for a rotating one unless its host says otherwise, and few do.
        Ok(true) if machine.is_virtual == Ok(true) => Finding::unknown(
            ABOUT,
            format!("{name}: the host does not tell what it is, so the kernel takes it for a rotating one"),
        ),
        Ok(true) => Finding::better(ABOUT, format!("{name} rotates"))
            .means("Between reading and writing its heads have to move: two disks, one for temporary files, do more than twice as much.")
            .advice("Put temporary files on another disk, best one without moving parts (--temp)."),
    }
}

fn scheduler(device: &Device, disk: &Disk) -> Finding {
    const ABOUT: &str = "disk scheduler";
    let name = &device.name;
    let scheduler = match &disk.scheduler {
        Ok(scheduler) => scheduler.as_str(),
        Err(why) => return Finding::unknown(ABOUT, format!("{name}: {why}")),
    };
    let found = format!("{name}: {scheduler}");
    let set = |to: &str| format!("echo {to} | sudo tee /sys/block/{name}/queue/scheduler");
    match (scheduler, disk.rotates.as_ref().is_ok_and(|&rotates| rotates)) {
        ("bfq" | "cfq", false) => Finding::better(ABOUT, found)
            .means("It is fair between processes, for processor time with each request.")
            .command(set("none")),
        ("bfq" | "cfq", true) => Finding::better(ABOUT, found)
            .means("It divides the disk between those who want it, which a job that wants all of it need not pay for.")
            .command(set("mq-deadline")),
        _ => Finding::good(ABOUT, found),
    }
}

fn queue(device: &Device, disk: &Disk) -> Finding {
    const ABOUT: &str = "queue depth";
    let name = &device.name;
    let kernel = match &disk.requests_max {
        Ok(kernel) => *kernel,
        Err(why) => return Finding::unknown(ABOUT, format!("{name}: {why}")),
    };
    let means =
        "A job keeps many requests in flight; with less of them the disk waits for the next one.";
    if let Some(own) = disk
        .device_requests_max
        .filter(|&own| own < DEVICE_REQUESTS_MIN)
    {
        return Finding::better(ABOUT, format!("{name} takes {own}, the kernel {kernel}"))
            .means(means)
            .command(format!(
                "echo 31 | sudo tee /sys/block/{name}/device/queue_depth"
            ));
    }
    if kernel < REQUESTS_MIN {
        return Finding::better(ABOUT, format!("{name}: {kernel}"))
            .means(means)
            .command(format!(
                "echo 256 | sudo tee /sys/block/{name}/queue/nr_requests"
            ));
    }
    Finding::good(ABOUT, format!("{name}: {kernel}"))
}

fn node(device: &Device, disk: &Disk, machine: &MachineFacts) -> Option<Finding> {
    let nodes = machine
        .nodes
        .as_ref()
        .ok()
        .filter(|nodes| nodes.len() > 1)?;
    let near = nodes.iter().find(|node| Some(node.number) == disk.node)?;
    let number = near.number;
    Some(
        Finding::good(
            "NUMA node of the disk",
            format!("{} hangs on node {number}", device.name),
        )
        .means(format!("Cores {} are near it.", near.cores))
        .command(format!("numactl --cpunodebind={number} sortmill sort ...")),
    )
}

fn array(device: &Device, raid: &Raid) -> Finding {
    const ABOUT: &str = "RAID";
    let name = &device.name;
    let mut found = format!("{name}: {} of {} disks", raid.level, raid.disk_count);
    if raid.chunk_bytes > 0 {
        found += &format!(", chunks of {}", text::bytes(raid.chunk_bytes));
    }
    if raid.missing_count > 0 {
        return Finding::bad(ABOUT, format!("{found}, {} missing", raid.missing_count))
            .means("It works, slower, and one more fault may cost all that is on it.")
            .command(format!("sudo mdadm --detail /dev/{name}"));
    }
    if raid.action != "idle" && raid.action != "frozen" {
        return Finding::better(ABOUT, format!("{found}, busy with {}", raid.action))
            .means("That takes a part of the disks' time.")
            .advice("Wait until it is done.")
            .command("cat /proc/mdstat");
    }
    if let Some(parity) = parity_count(&raid.level) {
        return with_parity(name, raid, parity, found);
    }
    match raid.level.as_str() {
        "linear" => Finding::better(ABOUT, found)
            .means("One disk after the other: a job has the speed of one.")
            .advice("Temporary files are better on raid0."),
        "raid0" | "raid10" if raid.chunk_bytes < RAID_CHUNK_BYTES_MIN => {
            Finding::better(ABOUT, found)
                .means("Each request of a job, up to 4 MiB, is cut into many small ones.")
                .advice("Make the array anew with chunks of 512 KiB (mdadm --create --chunk=512).")
        }
        _ => Finding::good(ABOUT, found),
    }
}

fn parity_count(level: &str) -> Option<u64> {
    match level {
        "raid4" | "raid5" => Some(1),
        "raid6" => Some(2),
        _ => None,
    }
}

fn with_parity(name: &str, raid: &Raid, parity: u64, found: String) -> Finding {
    let stripe = raid.chunk_bytes * raid.disk_count.saturating_sub(parity);
    let finding = Finding::better("RAID", found).means(format!(
        "A write that does not fill a stripe of {} reads before it writes; temporary files need no parity.",
        text::bytes(stripe)
    ));
    match raid.stripe_cache_count {
        Some(count) if count < STRIPE_CACHE_MIN => finding
            .advice("Put temporary files elsewhere (--temp), or give the array more memory to fill stripes in.")
            .command(format!("echo 8192 | sudo tee /sys/block/{name}/md/stripe_cache_size")),
        _ => finding.advice("Put temporary files elsewhere (--temp)."),
    }
}
