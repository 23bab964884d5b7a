//! A folder: whether it can be written to, its room, its file system and how that is mounted.

use sortmill_io::facts::{Direct, FolderFacts, MachineFacts, Mount};

use super::{Finding, Folder, device};
use crate::text;

const MIB: u64 = 1 << 20;
const FREE_BYTES_MIN: u64 = 64 * MIB;
const FREE_BYTES_FEW: u64 = 1024 * MIB;

/// Everything about a folder.
pub(super) fn findings(folder: &Folder, machine: &MachineFacts) -> Vec<Finding> {
    let facts = &folder.facts;
    if let Err(why) = &facts.resolved {
        return vec![
            Finding::bad("folder", why)
                .advice("Name another one, or make it.")
                .command(format!(
                    "mkdir -p {}",
                    quoted(&facts.path.to_string_lossy())
                )),
        ];
    }
    let mut found = vec![writing(folder)];
    found.extend(direct(facts));
    found.extend(reserving(facts));
    found.push(space(folder));
    match &facts.mount {
        Ok(mount) => {
            found.push(file_system(folder, mount));
            found.extend(options(mount));
            found.extend(trim(facts, mount));
        }
        Err(why) => found.push(Finding::unknown("file system", why)),
    }
    match &facts.device {
        Ok(device) => found.extend(device::findings(device, folder, machine)),
        Err(why) => found.push(Finding::unknown("device", why)),
    }
    found
}

/// Whether temporary files and the output share a disk.
pub(super) fn shared_device(temp: &FolderFacts, output: &FolderFacts) -> Finding {
    const ABOUT: &str = "temporary files and output";
    let shared = match (&temp.device, &output.device) {
        (Ok(temp), Ok(output)) => {
            let output = output.disk_names();
            let mut shared = temp.disk_names();
            shared.retain(|name| output.contains(name));
            shared.join(", ")
        }
        // A file system without a device, as a container's, is one thing all the same.
        (Err(why), _) | (_, Err(why)) => match (&temp.mount, &output.mount) {
            (Ok(one), Ok(other)) if one == other => {
                format!("{}, {}", one.folder.display(), one.kind)
            }
            _ => return Finding::unknown(ABOUT, why),
        },
    };
    if shared.is_empty() {
        return Finding::good(
            ABOUT,
            "on different disks: one is read while the other is written",
        );
    }
    Finding::better(ABOUT, format!("both on {shared}"))
        .means("One disk reads and writes by turns, and each gets a part of its speed.")
        .advice("If there is another disk, put temporary files there with --temp.")
}

/// Whether a folder for temporary files shares a disk with `others`; nothing if it is the only one.
pub(super) fn shared_temps<'a>(
    folder: &Folder,
    others: impl Iterator<Item = &'a Folder>,
) -> Option<Finding> {
    const ABOUT: &str = "temporary folders";
    let others: Vec<&Folder> = others.filter(|_| folder.is_temp).collect();
    if others.is_empty() {
        return None;
    }
    let mut names = Vec::new();
    for other in &others {
        match &other.facts.device {
            Ok(device) => names.extend(device.disk_names()),
            Err(why) => return Some(Finding::unknown(ABOUT, why)),
        }
    }
    let own = match &folder.facts.device {
        Ok(device) => device.disk_names(),
        Err(why) => return Some(Finding::unknown(ABOUT, why)),
    };
    let shared: Vec<&str> = own
        .into_iter()
        .filter(|name| names.contains(name))
        .collect();
    if shared.is_empty() {
        return Some(Finding::good(
            ABOUT,
            "on different disks: all of them are used at once",
        ));
    }
    let finding = Finding::better(
        ABOUT,
        format!("another one is on {} too", shared.join(", ")),
    )
    .means("Temporary data spread over both are no faster than in one.")
    .advice("Name one folder for each disk.");
    Some(finding)
}

fn writing(folder: &Folder) -> Finding {
    const ABOUT: &str = "writing";
    let why = match &folder.facts.trial {
        Ok(_) => return Finding::good(ABOUT, "a file was made, written, read back and removed"),
        Err(why) => why,
    };
    match folder.is_temp || folder.is_output {
        true => Finding::bad(ABOUT, why)
            .means("A job that is to write here ends with this error.")
            .advice("Choose another folder (--temp, --output), or make this one writable for you."),
        false => Finding::better(ABOUT, why).means("It is good for inputs only."),
    }
}

fn direct(facts: &FolderFacts) -> Option<Finding> {
    const ABOUT: &str = "direct I/O";
    let means = "All bytes go through the page cache: they are copied once more, push out what others keep there, and \
                 count against the cgroup.";
    let trial = facts.trial.as_ref().ok()?;
    Some(match &trial.direct {
        Direct::Works => Finding::good(ABOUT, "works"),
        Direct::Refused => Finding::better(ABOUT, "this file system has none")
            .means(means)
            .advice("Where there is a choice, use a folder on ext4 or XFS."),
        Direct::Cached => Finding::better(ABOUT, "accepted, but the page cache is used all the same")
            .means(means)
            .advice("On ext4 that comes of data=journal or encryption, on btrfs and ZFS of compression or checksums, see below."),
        Direct::Accepted => Finding::unknown(
            ABOUT,
            "accepted; whether the page cache is used all the same this kernel does not tell (Linux 6.5 does)",
        ),
        Direct::Fails(why) => Finding::bad(ABOUT, format!("accepted, then fails: {why}"))
            .means("The device wants larger multiples than 4 KiB; jobs that write here fail.")
            .advice("Go through the page cache.")
            .command("sortmill sort --no-direct ..."),
    })
}

fn reserving(facts: &FolderFacts) -> Option<Finding> {
    const ABOUT: &str = "reserving space";
    let trial = facts.trial.as_ref().ok()?;
    Some(match trial.reserves {
        true => Finding::good(ABOUT, "works"),
        false => Finding::better(ABOUT, "this file system cannot")
            .means("Files grow with each write, which is slower, and a disk that fills up shows in the middle of a job.")
            .advice("Where there is a choice, use a folder on ext4 or XFS."),
    })
}

fn space(folder: &Folder) -> Finding {
    const ABOUT: &str = "free space";
    let space = match &folder.facts.space {
        Ok(space) => space,
        Err(why) => return Finding::unknown(ABOUT, why),
    };
    let mut found = format!(
        "{} of {}",
        text::bytes(space.bytes_free),
        text::bytes(space.bytes_total)
    );
    let is_written = folder.is_temp || folder.is_output;
    let no_files = space.files_free == Some(0);
    if no_files {
        found += ", but no file can be made any more (inodes)";
    }
    let means = match (folder.is_temp, folder.is_output) {
        (true, true) => {
            "Temporary data lie in the output's space, which together take some 7 % more than the data; twice as much where the output \
             is a stream or has several parts, and with --temp-apart."
        }
        (true, false) => "Temporary files take as much as the data, less what fits into memory.",
        (false, true) => "The output takes as much as the data, beside what it replaces.",
        (false, false) => "",
    };
    let advice = "Make room, or choose a folder on another file system.";
    if is_written && (no_files || space.bytes_free < FREE_BYTES_MIN) {
        return Finding::bad(ABOUT, found).means(means).advice(advice);
    }
    if space.bytes_free < FREE_BYTES_FEW || space.bytes_free < space.bytes_total / 20 {
        return Finding::better(ABOUT, found).means(means).advice(advice);
    }
    Finding::good(ABOUT, found).means(means)
}

fn file_system(folder: &Folder, mount: &Mount) -> Finding {
    const ABOUT: &str = "file system";
    let found = format!(
        "{} ({} on {})",
        mount.kind,
        mount.source,
        mount.folder.display()
    );
    let disk = "Use a folder on a disk of this machine, above all for temporary files (--temp).";
    match mount.kind.as_str() {
        "ext4" | "xfs" | "f2fs" => Finding::good(ABOUT, found),
        "tmpfs" | "ramfs" | "devtmpfs" if folder.is_temp => Finding::bad(ABOUT, found)
            .means("It is in memory: temporary files take the memory that they are to save.")
            .advice("Name a folder on a disk.")
            .command("sortmill sort --temp /var/tmp ..."),
        "tmpfs" | "ramfs" | "devtmpfs" => Finding::better(ABOUT, found)
            .means("It is in memory, and takes from what a job can have.")
            .advice(disk),
        "btrfs" | "bcachefs" => copy_on_write(folder, mount, found),
        "zfs" => Finding::better(ABOUT, found)
            .means("It copies on write, sums and compresses every byte, and its cache competes for memory.")
            .advice("Give temporary files a data set of their own with large records, and bound the cache (zfs_arc_max).")
            .command(format!(
                "sudo zfs create -o recordsize=1M -o compression=off {}",
                quoted(&format!("{}/sortmill", mount.source))
            )),
        "overlay" => Finding::better(ABOUT, found)
            .means("It is a container's writable layer: what is written goes to the host's disk by way of it, and counts as the container's.")
            .advice("Mount a folder of the host into the container for temporary files and output (Docker: -v /data:/data)."),
        kind if is_remote(kind) => Finding::better(ABOUT, found)
            .means("Every byte crosses a network or leaves the virtual machine, temporary ones twice.")
            .advice(disk),
        "vfat" | "msdos" => {
            let finding = match folder.is_temp || folder.is_output {
                true => Finding::bad(ABOUT, found),
                false => Finding::better(ABOUT, found),
            };
            finding.means("A file here holds 4 GiB at most.").advice(disk)
        }
        "ecryptfs" => Finding::better(ABOUT, found)
            .means("It encrypts every byte, temporary ones too, and has no direct I/O.")
            .advice(disk),
        kind if kind.starts_with("fuse") => Finding::better(ABOUT, found)
            .means("Every read and write passes through a process besides the kernel.")
            .advice(disk),
        "ext2" | "ext3" | "exfat" | "ntfs3" | "reiserfs" | "jfs" | "nilfs2" => Finding::better(ABOUT, found)
            .means("It is not made for large files written at speed.")
            .advice("Use a folder on ext4 or XFS."),
        _ => Finding::unknown(ABOUT, format!("{found}: nothing is known of its kind here")),
    }
}

fn is_remote(kind: &str) -> bool {
    const REMOTE: [&str; 15] = [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "ceph",
        "lustre",
        "gpfs",
        "beegfs",
        "afs",
        "9p",
        "virtiofs",
        "vboxsf",
        "fuse.sshfs",
        "fuse.glusterfs",
    ];
    REMOTE.contains(&kind)
}

fn copy_on_write(folder: &Folder, mount: &Mount, found: String) -> Finding {
    const ABOUT: &str = "file system";
    let in_place = folder.facts.is_written_in_place == Ok(true);
    let compresses = mount
        .options
        .iter()
        .any(|option| option.starts_with("compress"));
    if in_place || mount.options.iter().any(|option| option == "nodatacow") {
        return Finding::good(ABOUT, format!("{found}, new files written in place"));
    }
    let found = match compresses {
        true => format!("{found}, copies on write, compresses"),
        false => format!("{found}, copies on write"),
    };
    let finding = Finding::better(ABOUT, found)
        .means("Every byte is summed, and blocks written out of turn leave the files in pieces; what it compresses goes through the page cache.");
    if !folder.is_temp {
        // What stays should keep its sums.
        return finding
            .advice("Name a folder for temporary files (--temp) where they are written in place.");
    }
    let own = folder.facts.path.join("sortmill-temp");
    let own = quoted(&own.to_string_lossy());
    finding
        .advice("Give temporary files a folder where new ones are written in place, without sums and compression: Sortmill has checksums of its own in them.")
        .command(format!("mkdir {own} && chattr +C {own}"))
}

/// A finding for each option that costs something, or one for all of them.
fn options(mount: &Mount) -> Vec<Finding> {
    const ABOUT: &str = "mount options";
    let has = |wanted: &str| mount.options.iter().any(|option| option == wanted);
    let at = quoted(&mount.folder.to_string_lossy());
    let mut found = Vec::new();
    if has("ro") {
        found.push(
            Finding::better(ABOUT, "ro")
                .means("Nothing can be written here: it is good for inputs only.")
                .advice("If nobody mounted it so, the kernel did because of an error on the disk: see dmesg before anything is written there."),
        );
    }
    if has("sync") {
        found.push(
            Finding::better(ABOUT, "sync")
                .means("Every write waits until the device has it, though a job asks for that once, at its end.")
                .command(format!("sudo mount -o remount,async {at}")),
        );
    }
    if has("data=journal") {
        found.push(
            Finding::better(ABOUT, "data=journal")
                .means("Every byte is written twice, first to the journal, and goes through the page cache.")
                .advice("Write data=ordered in /etc/fstab and mount it anew."),
        );
    }
    if has("nobarrier") || has("barrier=0") {
        found.push(
            Finding::better(ABOUT, "nobarrier")
                .means(
                    "What was synced may be lost when the power fails, a finished output among it.",
                )
                .command(format!("sudo mount -o remount,barrier {at}")),
        );
    }
    if found.is_empty() {
        found.push(Finding::good(ABOUT, mount.options.join(",")));
    }
    found
}

fn trim(facts: &FolderFacts, mount: &Mount) -> Option<Finding> {
    const ABOUT: &str = "TRIM";
    let at_once = mount
        .options
        .iter()
        .any(|option| option == "discard" || option == "discard=sync");
    // F2fs sends it in idle moments whatever its option is called.
    if at_once && mount.kind != "f2fs" {
        let finding = Finding::better(ABOUT, "sent whenever a file is removed (discard)")
            .means("Removing temporary files, and replacing an output, takes as long as the device needs for it.")
            .advice("Leave it to a weekly fstrim: sudo systemctl enable --now fstrim.timer")
            .command(format!(
                "sudo mount -o remount,nodiscard {}",
                quoted(&mount.folder.to_string_lossy())
            ));
        return Some(finding);
    }
    // What is not known of the device is said where it is due.
    let device = facts.device.as_ref().ok()?;
    Some(match device::trims(device) {
        Err(why) => Finding::unknown(ABOUT, why),
        Ok(true) => Finding::good(ABOUT, "not sent while a job waits; the device takes it"),
        Ok(false) => Finding::good(ABOUT, "the device does not take it"),
    })
}

/// A path as a shell takes it.
fn quoted(path: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "/._-+=:@,".contains(char);
    match !path.is_empty() && path.chars().all(is_plain) {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}
