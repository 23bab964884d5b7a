//! What was measured of each file system, kept from one run to the next.
//!
//! One JSON file for each, named after the file system's number, in `$XDG_CACHE_HOME/sortmill/disks` or
//! `~/.cache/sortmill/disks`: what `bench disk --json` prints, of one folder alone (docs/disk.md). Losing them
//! costs speed only, so what cannot be read counts as not there, and is told with the plan.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sortmill::disk::{DiskReport, Figures, Known, STALE_AFTER_DAYS};
use sortmill::error::{Error, ErrorKind, Result};
use sortmill::io::Os;

/// What is known of the file system that `path` lies on.
pub fn known(os: &dyn Os, path: &Path) -> Option<Known> {
    let file_system = os.file_system(path).ok()?;
    let file = folder()?.join(file_name(&format!("{:016x}", file_system.id)));
    let unreadable = |why: String| Known::Unreadable(format!("{}: {why}", file.display()));
    let kept = match std::fs::read(&file) {
        Ok(kept) => kept,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => return Some(unreadable(error.to_string())),
    };
    let known = match serde_json::from_slice::<DiskReport>(&kept) {
        Ok(kept) => kept.known(&file_system, now_s()),
        Err(error) => return Some(unreadable(error.to_string())),
    };
    Some(known.unwrap_or_else(|| unreadable("it tells nothing of this file system".into())))
}

/// The figures to plan with, if there are any.
pub fn figures(known: &Option<Known>) -> Option<Figures> {
    match known {
        Some(Known::Figures(figures)) => Some(figures.clone()),
        Some(Known::OtherDevice(_) | Known::Later(_) | Known::Unreadable(_)) | None => None,
    }
}

/// What to do about it, as lines that follow the plan; none if it is as it should be.
pub fn advice(known: Option<&Known>, os: &dyn Os, temp: &Path) -> String {
    if os.in_memory(temp) {
        return String::new();
    }
    let measure = format!(
        "`sortmill bench disk {}` measures the temporary folder's disk",
        temp.display()
    );
    match known {
        Some(Known::Figures(figures)) if !figures.stale => String::new(),
        Some(Known::Figures(figures)) => format!(
            "The disk's figures are of {}, over {STALE_AFTER_DAYS} days old: {measure} again.\n",
            figures.measured_on
        ),
        Some(Known::OtherDevice(measured_on)) => format!(
            "The disk's figures of {measured_on} are stale and not used: the device or its size is \
             another since. {measure} again.\n"
        ),
        Some(Known::Later(measured_on)) => format!(
            "The disk's figures of {measured_on} are not used: that day is still to come, so a clock was \
             wrong. {measure} again.\n"
        ),
        Some(Known::Unreadable(why)) => {
            format!("The disk's figures are not used: {why}. {measure} again.\n")
        }
        None => format!("{measure}.\n"),
    }
}

/// Keeps what was measured of one folder, in the place of what was kept of its file system. Answers where.
pub fn keep(report: &DiskReport) -> Result<PathBuf> {
    const DOING: &str = "keeping the figures";
    let Some(folder) = folder() else {
        let cause = "neither $XDG_CACHE_HOME nor $HOME names a folder";
        return Err(Error::new(ErrorKind::Usage, DOING, cause));
    };
    let failed = |path: &Path, error: std::io::Error| Error::io(DOING, path, &error);
    std::fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
    let path = folder.join(file_name(&report.folders[0].file_system));
    // Whole or not at all, whoever else is at it.
    let unfinished = path.with_extension(format!("{}.tmp", std::process::id()));
    let text = serde_json::to_vec(report).expect("a report is text");
    let written = std::fs::File::create(&unfinished)
        .and_then(|mut file| file.write_all(&text))
        .and_then(|()| std::fs::rename(&unfinished, &path));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&unfinished);
        failed(&path, error)
    })?;
    Ok(path)
}

/// Seconds since 1970.
pub fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn file_name(file_system: &str) -> String {
    format!("{file_system}.json")
}

/// As the XDG Base Directory Specification has it: a path that is not absolute does not count.
fn folder() -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("sortmill").join("disks"))
}
