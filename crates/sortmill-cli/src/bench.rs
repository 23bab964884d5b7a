//! `sortmill bench disk`: flags in, a [`DiskBench`] out, and its rates on standard output.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use sortmill::disk::{DEPTH_MAX, DiskBench, DiskReport, Setting, Spread, measure};
use sortmill::error::Result;
use sortmill::io::Os;
use sortmill::text;

use crate::common::{Machine, note, print, say};
use crate::disks;
use crate::progress::Line;
use crate::signals::stop_on_signals;
use crate::size;

/// Measure what disks give to the engine: reading, writing, and both at once
///
/// Each folder gets two temporary files, which are laid out first; one is read and the other written, to new space, in
/// sequence, as the engine does it. Each folder is measured alone; of several also one half reading while the
/// other writes, and all together. What is found best for a folder's file system is kept in
/// $XDG_CACHE_HOME/sortmill or ~/.cache/sortmill, and `sort` plans with it when its temporary files go there.
#[derive(Args)]
pub struct Disk {
    /// Folders to measure, one for each disk
    #[arg(value_name = "DIR", default_value = ".")]
    folders: Vec<PathBuf>,

    /// How long each measurement takes, after a quarter of that to get going, unless a file is full before. More shows what a disk
    /// gives when its caches are full; with less than half a second nothing is kept
    #[arg(long, value_name = "N", default_value = "1", value_parser = seconds)]
    seconds: f64,

    /// How often each is measured, all settings in turn; the median counts. What is measured once is not kept
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,

    /// Size of each of the two files in a folder. Default: 2 GiB, with --seconds above 1 2.5 GiB for each of them, more on a fast disk, or an eighth
    /// of what is free, so that both take a quarter. What is measured in files below 512 MiB is not kept
    #[arg(long, value_name = "SIZE", value_parser = file_size)]
    bytes: Option<u64>,

    /// Write over what is there. Else writes go to new space until the file is full, as those of a sort do;
    /// many disks are slower at that
    #[arg(long)]
    overwrite: bool,

    /// Size of a request, and of others if repeated. Default: 256 KiB, 1 MiB, 4 MiB and 16 MiB. What is
    /// measured with sizes or depths of one's own is not kept
    #[arg(long = "block", value_name = "SIZE", value_parser = block)]
    blocks: Vec<u64>,

    /// Requests in flight each way, repeatable. Default: such that 8, 16, 32 and 64 MiB are in flight
    #[arg(long = "depth", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=DEPTH_MAX as i64))]
    depths: Vec<u16>,

    /// Memory that takes turns each way, for each folder, repeatable. Default: 0, what is in flight again and again, which
    /// a processor's cache may hold. With more than a cache holds (512MiB) a virtual disk shows what it gives to a sort,
    /// whose data come from all of its memory. What is measured with this is not kept
    #[arg(long, value_name = "SIZE", value_parser = buffers)]
    buffers: Vec<u64>,

    #[command(flatten)]
    machine: Machine,

    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

impl Disk {
    /// Runs the command.
    pub fn run(self) -> Result<ExitCode> {
        let os = self.machine.open()?;
        let stop = stop_on_signals();
        let bench = self.bench();
        let mut line = Line::is_possible().then(Line::default);
        let mut told = |done: usize, steps: usize| {
            if let Some(line) = &mut line {
                line.draw(&[format!("{done} of {steps} measured")]);
            }
        };
        let measured = measure(&bench, &os, &stop, &mut told);
        drop(line);
        let report = measured?;
        if self.json {
            let json = serde_json::to_string_pretty(&report).expect("a report is text");
            print(&(json + "\n"))?;
        } else {
            print(&table(&report))?;
        }
        let is_usual = self.blocks.is_empty() && self.depths.is_empty() && self.buffers.is_empty();
        if is_usual && !self.overwrite {
            self.keep(&report, &os);
        }
        Ok(ExitCode::SUCCESS)
    }

    fn bench(&self) -> DiskBench {
        let blocks: Vec<usize> = self.blocks.iter().map(|&bytes| bytes as usize).collect();
        let depths: Vec<usize> = self.depths.iter().copied().map(usize::from).collect();
        let buffers = self
            .buffers
            .iter()
            .map(|&bytes| (bytes > 0).then_some(bytes));
        let buffers: Vec<Option<u64>> = buffers.collect();
        DiskBench {
            folders: self.folders.clone(),
            file_bytes: self.bytes,
            settings: Setting::grid(&blocks, &depths, &buffers),
            round_count: usize::from(self.rounds),
            window_ns: (self.seconds * 1e9) as u64,
            overwrite: self.overwrite,
            measured_s: disks::now_s(),
        }
    }

    /// Keeps the figures of each file system once. That they cannot be kept does not make them wrong.
    fn keep(&self, report: &DiskReport, os: &dyn Os) {
        for (number, folder) in report.folders.iter().enumerate() {
            let before = &report.folders[..number];
            if (before.iter()).any(|other| other.file_system == folder.file_system) {
                continue;
            }
            if !folder.direct_io || os.in_memory(&self.folders[number]) {
                say(&format!(
                    "{}: the figures are not kept, because they are memory's as much as a disk's. \
                     Name a folder on a disk that takes direct I/O.\n",
                    folder.path
                ));
                continue;
            }
            let ns = (report.window_ns, report.shortest_ns);
            if let Some(why) = too_little(ns, report.round_count, report.file_bytes) {
                say(&format!(
                    "{}: the figures are not kept, because {why}\n",
                    folder.path
                ));
                continue;
            }
            match disks::keep(&report.of_folder(number)) {
                Ok(path) => say(&format!("{}: kept in {}\n", folder.path, path.display())),
                Err(error) => note(&error.to_string()),
            }
        }
    }
}

/// Why what was measured tells too little of a disk to plan with; `None` if it does not.
fn too_little(
    (window_ns, shortest_ns): (u64, u64),
    round_count: usize,
    file_bytes: u64,
) -> Option<String> {
    const WINDOW_NS_MIN: u64 = 500_000_000;
    const SHORTEST_NS_MIN: u64 = WINDOW_NS_MIN / 2;
    const ROUNDS_MIN: usize = 2;
    const FILE_BYTES_MIN: u64 = 512 << 20;
    if window_ns < WINDOW_NS_MIN {
        let (least, took) = (text::seconds(WINDOW_NS_MIN), text::seconds(window_ns));
        return Some(format!(
            "{took} shows what a cache gives, not a disk. Measure each for {least} or more (--seconds)."
        ));
    }
    if shortest_ns < SHORTEST_NS_MIN {
        let (took, bytes) = (text::seconds(shortest_ns), text::bytes(file_bytes));
        return Some(format!(
            "a file of {bytes} was full after {took}, which shows what a cache gives, not a disk. Measure with longer ones (--bytes)."
        ));
    }
    if round_count < ROUNDS_MIN {
        return Some(format!(
            "one round may be one accident. Measure {ROUNDS_MIN} or more (--rounds)."
        ));
    }
    if file_bytes < FILE_BYTES_MIN {
        let (least, bytes) = (text::bytes(FILE_BYTES_MIN), text::bytes(file_bytes));
        return Some(format!(
            "files of {bytes} are at their ends before a disk shows its pace. Measure with {least} or more (--bytes)."
        ));
    }
    None
}

/// What was measured, for people: first how and where, then every rate, then what is best.
fn table(report: &DiskReport) -> String {
    let mut each = text::seconds(report.window_ns);
    if report.shortest_ns < report.window_ns / 10 * 9 {
        each += &format!(
            " of each or until a file was full ({} the soonest)",
            text::seconds(report.shortest_ns)
        );
    } else {
        each += " of each";
    }
    let mut out = format!(
        "{} x {each}, median (least - most); files of {}, {}\n\n",
        report.round_count,
        text::bytes(report.file_bytes),
        report.back_end
    );
    for (number, folder) in report.folders.iter().enumerate() {
        let direct = if folder.direct_io {
            "direct I/O"
        } else {
            "through the page cache"
        };
        let size = text::bytes(folder.bytes_total);
        out += &format!("{}  {}, {size}, {direct}", number + 1, folder.path);
        if let Some(synced) = folder.synced_bytes_per_s {
            out += &format!("; {} written and synced", rates(&[number], synced));
        }
        out.push('\n');
    }
    out += &format!(
        "\n{:<9} {:<9} {:>9} {:>6} {:>9}   {:<29} {}\n",
        "reading", "writing", "block", "depth", "memory", "read", "written"
    );
    for row in &report.rows {
        let line = format!(
            "{:<9} {:<9} {:>9} {:>6} {:>9}   {:<29} {}",
            numbers(&row.reading),
            numbers(&row.writing),
            text::bytes(row.block_bytes),
            row.depth,
            text::bytes(
                row.buffer_bytes
                    .unwrap_or(row.block_bytes * row.depth as u64)
            ),
            rates(&row.reading, row.read_bytes_per_s),
            rates(&row.writing, row.write_bytes_per_s)
        );
        out += line.trim_end();
        out.push('\n');
    }
    for (number, folder) in report.folders.iter().enumerate() {
        let Some(best) = report.choice(number) else {
            continue;
        };
        out += &format!(
            "\n{}: blocks of {}, {} in flight each way: {} read and {} written at once",
            folder.path,
            text::bytes(best.block_bytes),
            text::bytes(best.in_flight_bytes),
            rate(best.read_bytes_per_s),
            rate(best.write_bytes_per_s)
        );
    }
    out.trim_end().to_owned() + "\n"
}

/// The numbers of folders as people count, `1,2`.
fn numbers(folders: &[usize]) -> String {
    if folders.is_empty() {
        return "-".to_owned();
    }
    let numbers: Vec<String> = folders
        .iter()
        .map(|number| (number + 1).to_string())
        .collect();
    numbers.join(",")
}

fn rates(folders: &[usize], spread: Spread) -> String {
    if folders.is_empty() {
        return "-".to_owned();
    }
    let (median, least, most) = (rate(spread.median), rate(spread.least), rate(spread.most));
    // The unit is said once.
    let least = least.split(' ').next().unwrap_or_default();
    format!(
        "{median} ({least} - {})",
        most.split(' ').next().unwrap_or_default()
    )
}

fn rate(bytes_per_s: u64) -> String {
    text::rate(bytes_per_s, 1_000_000_000)
}

/// As [`size::parse_bytes`], of requests: whole aligned ones.
fn block(text: &str) -> std::result::Result<u64, String> {
    let bytes = size::parse_bytes(text)?;
    match (4096..1 << 30).contains(&bytes) && bytes.is_multiple_of(4096) {
        true => Ok(bytes),
        false => Err("a block is a multiple of 4.0 KiB below 1.0 GiB, and not nothing".into()),
    }
}

/// As [`size::parse_bytes`], of files that have something in them.
fn file_size(text: &str) -> std::result::Result<u64, String> {
    match size::parse_bytes(text)? {
        0..4096 => Err("a file of 4.0 KiB is the smallest that can be measured".into()),
        bytes => Ok(bytes),
    }
}

/// As [`size::parse_bytes`], or 0.
fn buffers(text: &str) -> std::result::Result<u64, String> {
    match text {
        "0" => Ok(0),
        _ => size::parse_bytes(text).map_err(|error| error.to_string()),
    }
}

fn seconds(text: &str) -> std::result::Result<f64, String> {
    let seconds = text.parse().ok();
    seconds
        .filter(|seconds| (0.001..=3600.0).contains(seconds))
        .ok_or_else(|| "not a number of seconds between 0.001 and 3600".into())
}

#[cfg(test)]
mod tests {
    use super::too_little;

    #[test]
    fn what_is_too_short_or_too_small_is_told_in_turn() {
        const WHOLE: (u64, u64) = (500_000_000, 500_000_000);
        let said = |ns, rounds, bytes| too_little(ns, rounds, bytes).unwrap();
        assert!(said((499_999_999, 499_999_999), 1, 1).contains("what a cache gives"));
        let full = said((1_000_000_000, 240_000_000), 1, 2 << 30);
        assert!(
            full.starts_with("a file of 2.0 GiB was full after "),
            "{full}"
        );
        assert!(said(WHOLE, 1, 1).starts_with("one round may be"));
        assert!(said(WHOLE, 2, 64 << 20).starts_with("files of 64.0 MiB are"));
        assert_eq!(too_little((1_000_000_000, 250_000_000), 2, 512 << 20), None);
    }
}
