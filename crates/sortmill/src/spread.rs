//! Temporary data over several folders: which one the next block goes to.
//!
//! A block is the unit, not a partition. A partition is loaded with all disks at once then, however few partitions
//! are read ahead, and shares come out as they should to within a block. Each folder's file is filled from its
//! beginning on, so what is long on one disk stays long on several.
//!
//! ```text
//!  partition 7's blocks       0  1  2  3  4  5  6  7      a folder that gives three times as much
//!  first folder's file        0           4               gets three times as many
//!  second folder's file          1  2  3     5  6  7
//! ```
//!
//! Shares go by **speed**: what was measured of the file systems if that is known of all, else what this job's own
//! writes have shown so far, equal at first. What the input and the output have a disk do counts too, so folders
//! on other disks come first. Where what is expected would not fit so, shares go by free **room**, so that no disk
//! is full while there is room on another. A folder that is full gets no more. (TritonSort spreads whole
//! partitions over many disks and reads one from each at a time: Rasmussen et al., NSDI 2011, 3.3. That takes a
//! partition in memory for each disk.)
//!
//! Pure: numbers only, no I/O.

use std::path::PathBuf;

/// Where a block of temporary data lies: in the file of which folder, and where in it. Where temporary data lie in
/// the output's space there is one file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Spot {
    /// The folder's number, from 0.
    pub folder: usize,
    /// Where in its file, in bytes.
    pub offset: u64,
}

/// What is known of a folder for temporary files before the first block comes.
#[derive(Clone, PartialEq, Debug)]
pub struct TempFolder {
    /// Its name.
    pub path: PathBuf,
    /// How many of a job's folders lie on its disk, it among them: they share its speed, and what is in flight there.
    pub neighbor_count: usize,
    /// Bytes that fit there beside what the output takes for sure; `None` where that is not looked at.
    pub room_bytes: Option<u64>,
    /// How many of these the output may come to need, of which it is not known how long it will be: other folders come first.
    pub kept_bytes: u64,
    /// Bytes a second, each written and read once, if they were measured.
    pub bytes_per_s: Option<f64>,
    /// Bytes of inputs and output that its disk moves besides, two for each byte that is written and read.
    pub busy_bytes: u64,
    /// Bytes it is expected to get.
    pub expected_bytes: Option<u64>,
}

impl TempFolder {
    /// A folder of which nothing is known, and nothing need be: the only one.
    #[must_use]
    pub fn only(path: PathBuf, expected_bytes: Option<u64>) -> Self {
        Self {
            path,
            neighbor_count: 1,
            room_bytes: None,
            kept_bytes: 0,
            bytes_per_s: None,
            busy_bytes: 0,
            expected_bytes,
        }
    }
}

/// Who has got what so far.
#[derive(Clone, PartialEq, Debug)]
pub struct Spread {
    lanes: Vec<Lane>,
    /// Whether weights follow from what is written.
    learns: bool,
}

/// One folder.
#[derive(Clone, PartialEq, Debug)]
struct Lane {
    /// Shares are in proportion to it.
    weight: f64,
    /// Counts as given from the start.
    busy_bytes: u64,
    given_bytes: u64,
    room_bytes: u64,
    /// Of these, what had better stay free.
    kept_bytes: u64,
    is_full: bool,
    /// What was written, and for how long writes were in flight meanwhile.
    written_bytes: u64,
    writing_ns: u64,
}

impl Lane {
    /// Room that nobody else may come to need.
    fn free_room(&self) -> u64 {
        self.room_bytes.saturating_sub(self.kept_bytes)
    }
}

/// Expected data that would fill a folder more than this go by room instead.
const ROOM_PERCENT: u64 = 95;

impl Spread {
    /// Over `folders`, of `expected_bytes` if that is known.
    #[must_use]
    pub fn new(folders: &[TempFolder], expected_bytes: Option<u64>) -> Self {
        let known = folders.iter().all(|folder| folder.bytes_per_s.is_some());
        let lane = |folder: &TempFolder| Lane {
            weight: folder.bytes_per_s.filter(|_| known).unwrap_or(1.0).max(1.0),
            busy_bytes: folder.busy_bytes / 2,
            given_bytes: 0,
            room_bytes: folder.room_bytes.unwrap_or(u64::MAX),
            kept_bytes: folder.kept_bytes,
            is_full: false,
            written_bytes: 0,
            writing_ns: 0,
        };
        let mut spread = Self {
            lanes: folders.iter().map(lane).collect(),
            learns: !known,
        };
        let shares = spread.shares(expected_bytes.unwrap_or(0));
        let fits = |(lane, share): (&Lane, u64)| {
            u128::from(share) * 100 <= u128::from(lane.free_room()) * u128::from(ROOM_PERCENT)
        };
        if !spread.lanes.iter().zip(shares).all(fits) {
            spread.go_by_room();
        }
        spread
    }

    fn go_by_room(&mut self) {
        self.learns = false;
        for lane in &mut self.lanes {
            lane.weight = (lane.free_room() as f64).max(1.0);
            lane.busy_bytes = 0;
        }
    }

    /// What each folder gets of `bytes`, as it looks now.
    #[must_use]
    pub fn shares(&self, bytes: u64) -> Vec<u64> {
        let mut active: Vec<usize> = (0..self.lanes.len()).collect();
        let mut shares = vec![0; self.lanes.len()];
        loop {
            let lanes = || active.iter().map(|&number| &self.lanes[number]);
            let weight: f64 = lanes().map(|lane| lane.weight).sum();
            let busy: u64 = lanes().map(|lane| lane.busy_bytes).sum();
            let level = (bytes + busy) as f64 / weight;
            let above = |lane: &Lane| level * lane.weight - lane.busy_bytes as f64;
            let before = active.len();
            // What is too busy to get any does not count: the others fill up without it.
            active.retain(|&number| above(&self.lanes[number]) > 0.0);
            if active.len() == before || active.is_empty() {
                for number in active {
                    shares[number] = above(&self.lanes[number]) as u64;
                }
                return shares;
            }
        }
    }

    /// The folder that the next `bytes` should go to; `None` when all are full.
    #[must_use]
    pub fn choose(&self, bytes: u64) -> Option<usize> {
        let load =
            |lane: &Lane| (lane.busy_bytes + lane.given_bytes + bytes) as f64 / self.weight(lane);
        let least = |room: fn(&Lane) -> u64| {
            let fits = |lane: &Lane| !lane.is_full && lane.given_bytes + bytes <= room(lane);
            let lanes = self.lanes.iter().enumerate();
            let open = lanes.filter(|(_, lane)| fits(lane));
            open.min_by(|(_, one), (_, other)| load(one).total_cmp(&load(other)))
        };
        least(Lane::free_room)
            .or_else(|| least(|lane| lane.room_bytes))
            .map(|(number, _)| number)
    }

    /// Gives the next `bytes` of a folder away: where they begin in its file.
    pub fn give(&mut self, folder: usize, bytes: u64) -> Spot {
        let lane = &mut self.lanes[folder];
        let offset = lane.given_bytes;
        lane.given_bytes += bytes;
        Spot { folder, offset }
    }

    /// A folder has no room for more, whatever was thought.
    pub fn close(&mut self, folder: usize) {
        self.lanes[folder].is_full = true;
    }

    /// Bytes that a folder was given.
    #[must_use]
    pub fn given_bytes(&self, folder: usize) -> u64 {
        self.lanes[folder].given_bytes
    }

    /// A folder's disk has written `bytes`, and had writes in flight for `writing_ns` more.
    pub fn wrote(&mut self, folder: usize, bytes: u64, writing_ns: u64) {
        let lane = &mut self.lanes[folder];
        lane.written_bytes += bytes;
        lane.writing_ns += writing_ns;
    }

    fn weight(&self, lane: &Lane) -> f64 {
        let is_told = |lane: &Lane| lane.written_bytes > 0 && lane.writing_ns > 0;
        match self.learns && self.lanes.iter().all(is_told) {
            true => lane.written_bytes as f64 / lane.writing_ns as f64,
            false => lane.weight,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn folder(room_bytes: u64, bytes_per_s: Option<f64>, busy_bytes: u64) -> TempFolder {
        TempFolder {
            room_bytes: Some(room_bytes),
            bytes_per_s,
            busy_bytes,
            ..TempFolder::only(PathBuf::new(), None)
        }
    }

    /// Gives away `bytes` in blocks; what each folder got, and what was left over.
    fn give_all(spread: &mut Spread, bytes: u64) -> (Vec<u64>, u64) {
        const BLOCK: u64 = MIB / 4;
        let mut left = bytes;
        let mut next = vec![0; spread.lanes.len()];
        while left > 0 {
            let Some(number) = spread.choose(BLOCK) else {
                break;
            };
            let spot = spread.give(number, BLOCK);
            assert_eq!((spot.folder, spot.offset), (number, next[number]));
            next[number] += BLOCK;
            left -= BLOCK;
        }
        (next, left)
    }

    fn check(folders: &[TempFolder], bytes: u64, expected: Option<u64>, shares: &[u64]) {
        let mut spread = Spread::new(folders, expected);
        let foreseen = spread.shares(bytes);
        let (given, left) = give_all(&mut spread, bytes);
        for (number, &share) in shares.iter().enumerate() {
            let near = |have: u64| have.abs_diff(share) <= MIB;
            assert!(near(given[number]), "{given:?} for {shares:?}, {left} left");
            let foretold = expected.is_some();
            assert!(!foretold || near(foreseen[number]), "foreseen {foreseen:?}");
        }
    }

    #[test]
    fn by_speed_if_it_is_known_of_all() {
        let known = |rate| folder(1000 * MIB, Some(rate), 0);
        let fast_and_slow = [known(300e6), known(100e6)];
        check(
            &fast_and_slow,
            400 * MIB,
            Some(400 * MIB),
            &[300 * MIB, 100 * MIB],
        );
        check(&fast_and_slow, 400 * MIB, None, &[300 * MIB, 100 * MIB]);
        let half_known = [known(300e6), folder(1000 * MIB, None, 0)];
        check(
            &half_known,
            400 * MIB,
            Some(400 * MIB),
            &[200 * MIB, 200 * MIB],
        );
    }

    #[test]
    fn by_room_where_speed_would_fill_one() {
        let with_room = |mib| folder(mib * MIB, None, 0);
        let small_and_large = [with_room(100), with_room(300)];
        check(
            &small_and_large,
            300 * MIB,
            Some(300 * MIB),
            &[75 * MIB, 225 * MIB],
        );
        check(
            &small_and_large,
            390 * MIB,
            Some(390 * MIB),
            &[97 * MIB, 292 * MIB],
        );
        // It fits, and speed is what counts.
        check(
            &small_and_large,
            100 * MIB,
            Some(100 * MIB),
            &[50 * MIB, 50 * MIB],
        );
        // Nobody knew how much would come: one is filled, the rest goes to the other, and then there is none.
        check(&small_and_large, 300 * MIB, None, &[100 * MIB, 200 * MIB]);
        check(&small_and_large, 500 * MIB, None, &[100 * MIB, 300 * MIB]);
    }

    /// Of the output of `-u` nobody knows how long it will be: while it was reckoned as none, temporary data took the room that it then
    /// needed, though there was room elsewhere.
    #[test]
    fn room_that_the_output_may_need_is_taken_last() {
        let beside_output = TempFolder {
            kept_bytes: 300 * MIB,
            ..folder(350 * MIB, None, 0)
        };
        let folders = [beside_output, folder(400 * MIB, None, 0)];
        check(&folders, 300 * MIB, Some(300 * MIB), &[33 * MIB, 267 * MIB]);
        check(&folders, 500 * MIB, None, &[100 * MIB, 400 * MIB]);
        check(&folders, 800 * MIB, None, &[350 * MIB, 400 * MIB]);
    }

    #[test]
    fn other_disks_before_those_of_input_and_output() {
        let all = 1000 * MIB;
        let folders = |busy| [folder(all, None, busy), folder(all, None, 0)];
        check(
            &folders(200 * MIB),
            100 * MIB,
            Some(100 * MIB),
            &[0, 100 * MIB],
        );
        check(
            &folders(200 * MIB),
            200 * MIB,
            Some(200 * MIB),
            &[50 * MIB, 150 * MIB],
        );
    }

    #[test]
    fn what_is_written_tells_how_fast_each_is() {
        let unknown = folder(u64::MAX, None, 0);
        let mut spread = Spread::new(&[unknown.clone(), unknown], Some(800 * MIB));
        let (first, _) = give_all(&mut spread, 40 * MIB);
        assert_eq!(first, [20 * MIB, 20 * MIB]);
        spread.wrote(0, 10 * MIB, 300);
        // One of them has told nothing yet.
        assert_eq!(spread.weight(&spread.lanes[0]), 1.0);
        spread.wrote(1, 10 * MIB, 100);
        let (mut given, mut rest) = ([0, 0], 760 * MIB);
        while rest > 0 {
            let number = spread.choose(MIB).unwrap();
            let spot = spread.give(number, MIB);
            given[number] = spot.offset + MIB;
            rest -= MIB;
        }
        assert!(given[0].abs_diff(200 * MIB) <= MIB, "{given:?}");
    }

    #[test]
    fn a_folder_that_fills_up_before_its_time() {
        let mut spread = Spread::new(&[folder(MIB, None, 0), folder(MIB, None, 0)], None);
        spread.close(0);
        assert_eq!(spread.choose(MIB), Some(1));
        spread.close(1);
        assert_eq!(spread.choose(1), None);
    }
}
