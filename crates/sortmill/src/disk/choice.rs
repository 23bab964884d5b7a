//! What a plan takes from measured rates: how large a block may be, and how many bytes are in flight.
//!
//! Pure. A job reads and writes at once in both of its phases, with chunks of 4 MiB on one side and blocks of
//! the temporary file on the other. So the pace of a setting is the slower of its two rates while reading
//! and writing; the fewest bytes in flight are taken at which chunks come near the best pace, and at so many
//! bytes the smallest block that does: what is in flight is memory that holds no partition.

use serde::{Deserialize, Serialize};
use sortmill_io::os::FileSystem;

use super::{DiskReport, Row};
use crate::text;

/// Nearer than this to the best, in percent, settings count as equal.
const NEAR_PERCENT: u64 = 95;
/// As near the usual bytes in flight must come: rates of one disk differ by more within minutes, and too few cost a job more than too many.
const USUAL_NEAR_PERCENT: u64 = 85;
/// Blocks must be as near. A larger one costs memory: half of each partition's open block is empty.
const BLOCK_NEAR_PERCENT: u64 = 80;
/// The size in which inputs are read and outputs written, whatever the disk.
const CHUNK_BYTES: u64 = crate::plan::CHUNK_BYTES as u64;
/// Figures older than this are used, but said to be stale.
pub const STALE_AFTER_DAYS: u64 = 30;

/// The best setting of one folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Bytes of the smallest block that is near the best.
    pub block_bytes: u64,
    /// Bytes in flight each way: those of a disk that nobody measured if they are near the best, else the fewest
    /// that are.
    pub in_flight_bytes: u64,
    /// What is read with these while as much is in flight the other way.
    pub read_bytes_per_s: u64,
    /// What is written.
    pub write_bytes_per_s: u64,
}

/// What a plan takes from a measurement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// Blocks are not larger than this: as usual, or more where the disk was found to want it.
    pub block_bytes_max: u64,
    /// Bytes in flight each way.
    pub in_flight_bytes: u64,
    /// The day they were measured, `2026-11-22`.
    pub measured_on: String,
    /// Whether that is more than [`STALE_AFTER_DAYS`] ago.
    pub stale: bool,
    /// What the disk gives so; `None` if it was not measured each way alone. It decides nothing: progress is
    /// held against it.
    #[serde(default)]
    pub rates: Option<Rates>,
}

impl Figures {
    /// What a plan takes from the figures of `disks` that work side by side: the largest block and the most in flight
    /// on each. `None` if any of them is unknown. Several together have no rates.
    #[must_use]
    pub fn together(disks: &[Option<Self>]) -> Option<Self> {
        let mut disks = disks.iter().map(Option::as_ref);
        let first = disks.next()??.clone();
        disks.try_fold(first, |all, next| {
            let next = next?;
            Some(Self {
                block_bytes_max: all.block_bytes_max.max(next.block_bytes_max),
                in_flight_bytes: all.in_flight_bytes.max(next.in_flight_bytes),
                measured_on: all.measured_on.min(next.measured_on.clone()),
                stale: all.stale || next.stale,
                rates: None,
            })
        })
    }
}

/// What a disk gives, in bytes a second: one way alone, and both ways at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rates {
    /// Reading, while nothing is written.
    pub read_alone: u64,
    /// Writing, while nothing is read.
    pub write_alone: u64,
    /// Reading, while as much is in flight the other way.
    pub read_mixed: u64,
    /// Writing, while as much is in flight the other way.
    pub write_mixed: u64,
}

impl Rates {
    /// Bytes a second, each written and later read.
    #[must_use]
    pub fn there_and_back(&self) -> f64 {
        let time = |rate: u64| 1.0 / rate.max(1) as f64;
        1.0 / (time(self.write_alone) + time(self.read_alone))
    }

    /// The least time, in seconds, in which the disk reads and writes so many bytes: one after the other, or
    /// both at once, whichever it does better. `make bench` reckons its floor so too (docs/measuring.md).
    #[must_use]
    pub fn needed_s(&self, read_bytes: u64, written_bytes: u64) -> f64 {
        let time = |bytes: u64, rate: u64| bytes as f64 / rate.max(1) as f64;
        let apart = time(read_bytes, self.read_alone) + time(written_bytes, self.write_alone);
        let together = time(read_bytes, self.read_mixed).max(time(written_bytes, self.write_mixed));
        apart.min(together)
    }
}

/// What a kept measurement says of a file system today.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Known {
    /// Figures to plan with.
    Figures(Figures),
    /// It was measured on this day, and lies on another device or is of another size since.
    OtherDevice(String),
    /// It was measured on this day, which is still to come: a clock was wrong, then or now.
    Later(String),
    /// Something is kept, and it is not what was measured: why.
    Unreadable(String),
}

impl DiskReport {
    /// The best setting of folder number `folder`, if chunks were read and written at once there.
    #[must_use]
    pub fn choice(&self, folder: usize) -> Option<Choice> {
        let rows: Vec<&Row> = self
            .rows
            .iter()
            .filter(|row| {
                row.reading == [folder] && row.writing == [folder] && row.buffer_bytes.is_none()
            })
            .collect();
        let chunks = rows.iter().filter(|row| row.block_bytes == CHUNK_BYTES);
        let near = |percent| near_the_best(chunks.clone().copied(), percent).into_iter();
        let usual = crate::plan::IN_FLIGHT_BYTES;
        // A job has pauses that a measurement has not, and more in flight bridges them.
        let in_flight_bytes =
            match near(USUAL_NEAR_PERCENT).any(|row| in_flight_bytes_is(row, usual)) {
                true => usual,
                false => near(NEAR_PERCENT).map(in_flight_bytes).min()?,
            };
        let there = rows
            .iter()
            .filter(|row| in_flight_bytes_is(row, in_flight_bytes));
        let there = near_the_best(there.copied(), BLOCK_NEAR_PERCENT);
        let best = there.into_iter().min_by_key(|row| row.block_bytes)?;
        Some(Choice {
            block_bytes: best.block_bytes,
            in_flight_bytes,
            read_bytes_per_s: best.read_bytes_per_s.median,
            write_bytes_per_s: best.write_bytes_per_s.median,
        })
    }

    /// What folder number `folder` gives with the setting `best`, if it was measured each way alone too.
    fn rates(&self, folder: usize, best: &Choice) -> Option<Rates> {
        let row = |reading: &[usize], writing: &[usize]| {
            self.rows.iter().find(|row| {
                (row.reading == reading && row.writing == writing)
                    && row.block_bytes == best.block_bytes
                    && row.buffer_bytes.is_none()
                    && in_flight_bytes_is(row, best.in_flight_bytes)
            })
        };
        Some(Rates {
            read_alone: row(&[folder], &[])?.read_bytes_per_s.median,
            write_alone: row(&[], &[folder])?.write_bytes_per_s.median,
            read_mixed: best.read_bytes_per_s,
            write_mixed: best.write_bytes_per_s,
        })
    }

    /// What is kept of one folder: it alone.
    #[must_use]
    pub fn of_folder(&self, folder: usize) -> Self {
        let alone = |folders: &[usize]| folders.iter().all(|&number| number == folder);
        let rows = self
            .rows
            .iter()
            .filter(|row| alone(&row.reading) && alone(&row.writing));
        let rows = rows.map(|row| Row {
            reading: row.reading.iter().map(|_| 0).collect(),
            writing: row.writing.iter().map(|_| 0).collect(),
            ..row.clone()
        });
        Self {
            folders: vec![self.folders[folder].clone()],
            rows: rows.collect(),
            ..self.clone()
        }
    }

    /// What this, as it was kept of one folder, says of `file_system` at `now_s`, in seconds since 1970.
    /// `None` if it says nothing.
    #[must_use]
    pub fn known(&self, file_system: &FileSystem, now_s: u64) -> Option<Known> {
        let folder = self.folders.first()?;
        if self.version != 1 || folder.file_system != format!("{:016x}", file_system.id) {
            return None;
        }
        let choice = self.choice(0)?;
        let measured_on = text::date(self.measured_s);
        // A data set's size is what it may still grow to, which changes with every write to its pool (ZFS).
        let (then, now) = (folder.bytes_total, file_system.bytes_total);
        let is_as_large = then.abs_diff(now) <= then.max(now) / 10;
        if !is_as_large || folder.device != file_system.device {
            return Some(Known::OtherDevice(measured_on));
        }
        // Clocks that are set right jump by less.
        if self.measured_s > now_s.saturating_add(86_400) {
            return Some(Known::Later(measured_on));
        }
        Some(Known::Figures(Figures {
            block_bytes_max: choice.block_bytes.max(crate::plan::BLOCK_BYTES_MAX),
            in_flight_bytes: choice.in_flight_bytes,
            measured_on,
            stale: now_s.saturating_sub(self.measured_s) > STALE_AFTER_DAYS * 86_400,
            rates: self.rates(0, &choice),
        }))
    }
}

fn in_flight_bytes(row: &Row) -> u64 {
    row.block_bytes * row.depth as u64
}

fn in_flight_bytes_is(row: &Row, bytes: u64) -> bool {
    in_flight_bytes(row) == bytes
}

fn pace(row: &Row) -> u64 {
    row.read_bytes_per_s
        .median
        .min(row.write_bytes_per_s.median)
}

fn near_the_best<'a>(rows: impl Iterator<Item = &'a Row> + Clone, percent: u64) -> Vec<&'a Row> {
    let best = rows.clone().map(pace).max().unwrap_or(0);
    let near = |row: &&Row| u128::from(pace(row)) * 100 >= u128::from(best) * u128::from(percent);
    rows.filter(near).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Folder, Spread};

    const MIB: u64 = 1 << 20;

    fn report(mixed: &[(u64, usize, u64, u64)]) -> DiskReport {
        let same = |rate| Spread {
            least: rate,
            median: rate,
            most: rate,
        };
        DiskReport {
            version: 1,
            measured_s: 100 * 86_400,
            back_end: "sim".into(),
            file_bytes: MIB,
            round_count: 1,
            window_ns: 1,
            shortest_ns: 1,
            folders: vec![Folder {
                path: "/data".into(),
                file_system: format!("{:016x}", 7),
                bytes_total: 1000,
                device: "disk".into(),
                direct_io: true,
                synced_bytes_per_s: None,
            }],
            rows: mixed
                .iter()
                .map(|&(block_bytes, depth, read, write)| Row {
                    reading: vec![0],
                    writing: vec![0],
                    block_bytes,
                    depth,
                    buffer_bytes: None,
                    read_bytes_per_s: same(read),
                    write_bytes_per_s: same(write),
                })
                .collect(),
        }
    }

    fn check(mixed: &[(u64, usize, u64, u64)], expected: Option<(u64, u64)>) {
        let choice = report(mixed).choice(0);
        let found = choice.map(|choice| (choice.block_bytes, choice.in_flight_bytes));
        assert_eq!(found, expected, "{mixed:?}");
    }

    #[test]
    fn what_is_usual_or_the_least_that_is_near_the_best() {
        check(&[], None);
        // Chunks were not measured.
        check(&[(MIB, 8, 500, 500)], None);
        // Flash: what is in flight counts, not in how many pieces.
        let flash = [
            (MIB, 8, 300, 300),
            (4 * MIB, 2, 310, 310),
            (MIB, 32, 490, 500),
            (4 * MIB, 8, 500, 500),
            (16 * MIB, 2, 500, 500),
            (MIB, 64, 505, 505),
            (4 * MIB, 4, 490, 490),
            (4 * MIB, 16, 510, 510),
        ];
        check(&flash, Some((MIB, 64 * MIB)));
        // A virtual disk in a bad moment: with the fewest within 95 % jobs took 8 % longer.
        let drifted = [
            (4 * MIB, 2, 1366, 1369),
            (4 * MIB, 4, 1418, 1418),
            (4 * MIB, 8, 1300, 1300),
            (4 * MIB, 16, 1426, 1426),
        ];
        check(&drifted, Some((4 * MIB, 64 * MIB)));
        // A spinning disk: large ones, so that few are as many bytes.
        let spinning = [
            (MIB, 16, 20, 20),
            (4 * MIB, 4, 50, 50),
            (16 * MIB, 1, 80, 80),
            (MIB, 64, 22, 22),
            (4 * MIB, 16, 51, 51),
            (16 * MIB, 4, 80, 80),
        ];
        check(&spinning, Some((16 * MIB, 64 * MIB)));
        // The slower way is the pace.
        let uneven = [(4 * MIB, 2, 900, 100), (4 * MIB, 4, 300, 300)];
        check(&uneven, Some((4 * MIB, 16 * MIB)));
        // A disk that gives nothing makes no choice fail.
        check(&[(4 * MIB, 2, 0, 0)], Some((4 * MIB, 8 * MIB)));
    }

    #[test]
    fn what_is_known_grows_old() {
        let kept = report(&[(4 * MIB, 2, 300, 300)]);
        let file_system = FileSystem {
            id: 7,
            bytes_total: 1000,
            device: "disk".into(),
        };
        let day = |days: u64| days * 86_400;
        let stale = |now_s| match kept.known(&file_system, now_s) {
            Some(Known::Figures(figures)) => figures.stale,
            other => panic!("{other:?}"),
        };
        assert!(!stale(day(100)) && !stale(day(130)) && stale(day(130) + 1));
        // A clock that is set right jumps by less than a day; one that is wrong by more tells nothing.
        assert!(!stale(day(99)));
        let later = Some(Known::Later("1970-04-11".into()));
        assert_eq!(kept.known(&file_system, day(99) - 1), later);
        assert_eq!(kept.known(&file_system, 0), later);
        let at = |file_system: FileSystem| kept.known(&file_system, day(101));
        let other = Some(Known::OtherDevice("1970-04-11".into()));
        let changed = FileSystem {
            device: "another".into(),
            ..file_system.clone()
        };
        assert_eq!(at(changed), other);
        let grown = FileSystem {
            bytes_total: 2000,
            ..file_system.clone()
        };
        assert_eq!(at(grown), other);
        let written = FileSystem {
            bytes_total: 950,
            ..file_system.clone()
        };
        assert!(matches!(at(written), Some(Known::Figures(_))));
        let elsewhere = FileSystem {
            id: 8,
            ..file_system
        };
        assert_eq!(at(elsewhere), None);
    }
}
