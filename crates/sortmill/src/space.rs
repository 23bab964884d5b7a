//! Temporary data in the space of the output: each partition's blocks lie about where its records will be written.
//!
//! A partition's share of the sample says where its output will begin, so its blocks can wait there until they are
//! loaded, and the output is then written over them. A job needs the space of its output and little more, nothing
//! is deleted afterwards, and writing over is faster than writing to new space on many disks (docs/measuring.md).
//! The sample is never exact, so regions are a little wider than their shares, what does not fit goes behind all of
//! them, and [`Lead`] says for each unit what must have been loaded before it is written.
//!
//! Pure: numbers only, no I/O.

use crate::partitions::Unit;

/// Room for headers, padding and partitions larger than their share: a 32nd more than the records have.
const WIDER_BY: u64 = 32;

/// Where blocks go in the output's file. A region belongs to a slot of the first table.
#[derive(Clone, Debug)]
pub struct Regions {
    /// Where the next block of each region goes, and where the region ends.
    regions: Vec<(u64, u64)>,
    /// Bytes of all regions together.
    all: u64,
    /// Where the next block goes that finds its region full.
    tail: u64,
}

impl Regions {
    /// Space for the output of an input of `input_bytes`, not yet divided: all that is put there goes behind it.
    #[must_use]
    pub fn new(input_bytes: u64, block_bytes: usize) -> Self {
        let all = space_bytes(input_bytes, block_bytes);
        Self {
            regions: Vec::new(),
            all,
            tail: all,
        }
    }

    /// Makes regions, above `base`, below which the output has been written, for slots that have got `shares` of a
    /// sample of the input. The share of a slot whose output has been written is 0.
    pub fn divide(&mut self, shares: &[u64], base: u64) {
        assert!(self.regions.is_empty(), "no regions yet");
        self.regions = regions(shares, sortmill_io::align_up(base).min(self.all), self.all);
    }

    /// A place for `bytes` in region `number`, or behind all regions.
    pub fn take(&mut self, number: Option<u32>, bytes: u64) -> u64 {
        if let Some(number) = number
            && let Some((next, end)) = self.regions.get_mut(number as usize)
            && *next + bytes <= *end
        {
            *next += bytes;
            return *next - bytes;
        }
        self.tail += bytes;
        self.tail - bytes
    }
}

/// Regions from `start` to `end` that are as wide as `shares` say.
fn regions(shares: &[u64], start: u64, end: u64) -> Vec<(u64, u64)> {
    let sum = u128::from(shares.iter().sum::<u64>().max(1));
    let mut before = 0;
    let mut place = |share: u64| {
        before += share;
        let width = u128::from(end - start) * u128::from(before) / sum;
        sortmill_io::align_down(start + width as u64)
    };
    let mut from = start;
    shares
        .iter()
        .map(|&share| {
            let to = place(share);
            (std::mem::replace(&mut from, to), to)
        })
        .collect()
}

/// Bytes of all regions together: never less than the output, whose last line may get a newline.
fn space_bytes(input_bytes: u64, block_bytes: usize) -> u64 {
    let headers = input_bytes / block_bytes as u64 * sortmill_io::frame::HEADER_BYTES as u64;
    sortmill_io::align_up(input_bytes + headers + input_bytes / WIDER_BY + (1 << 20))
}

/// Bytes to set apart for the output with all its regions, and for what does not fit into them.
#[must_use]
pub fn reserve_bytes(input_bytes: u64, block_bytes: usize) -> u64 {
    space_bytes(input_bytes, block_bytes) + input_bytes / WIDER_BY
}

/// What must have been loaded before a unit is written over it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lead {
    /// For each unit, the last unit that must have been loaded before.
    pub needs: Vec<usize>,
    /// For each unit, below which place its blocks are to be moved behind the output before the first unit is
    /// written: so much cannot be in memory at once. 0 where nothing is to be moved.
    pub move_below: Vec<u64>,
}

impl Lead {
    /// Of `units` whose output begins at `base` and that are loaded in order into `block_count` blocks of memory;
    /// `is_merged` tells which are not loaded but merged, alone.
    #[must_use]
    pub fn new(
        units: &[Unit],
        base: u64,
        block_count: usize,
        is_merged: impl Fn(&Unit) -> bool,
    ) -> Self {
        let count = units.len();
        let ends = ends(units, base);
        let ahead = ahead(units, block_count, is_merged);
        // Unit v is written when at most those up to ahead[v] are loaded. Both rows rise.
        let mut move_below = vec![0; count];
        for (unit, &last) in ahead.iter().enumerate() {
            if let Some(below) = move_below.get_mut(last + 1) {
                *below = ends[unit];
            }
        }
        for unit in 1..count {
            move_below[unit] = move_below[unit].max(move_below[unit - 1]);
        }
        // The lowest place that a unit above has to be loaded from.
        let mut lowest_above = vec![u64::MAX; count];
        for unit in (1..count).rev() {
            let kept = disk_places(&units[unit]).filter(|&place| place >= move_below[unit]);
            lowest_above[unit - 1] = kept.min().unwrap_or(u64::MAX).min(lowest_above[unit]);
        }
        let mut last = 0;
        let needs = ends.iter().enumerate().map(|(unit, &end)| {
            last = last.max(unit);
            while lowest_above[last] < end {
                last += 1;
            }
            last
        });
        let needs = needs.collect();
        Self { needs, move_below }
    }
}

/// Where the output of each unit ends at the latest, in whole aligned blocks. Units that share contents count them
/// at the first of them.
fn ends(units: &[Unit], base: u64) -> Vec<u64> {
    let mut seen = std::collections::HashSet::new();
    let mut sum = base;
    units
        .iter()
        .map(|unit| {
            for content in &unit.contents {
                if seen.insert(content.partition) {
                    sum += content.bytes;
                }
            }
            sortmill_io::align_up(sum)
        })
        .collect()
}

/// For each unit, the last that fits into memory beside it, all between them, and what those above keep there.
fn ahead(units: &[Unit], block_count: usize, is_merged: impl Fn(&Unit) -> bool) -> Vec<usize> {
    let blocks: Vec<usize> = units.iter().map(|unit| unit.blocks().count()).collect();
    let kept = |unit: &Unit| unit.blocks().count() - disk_places(unit).count();
    let mut kept_above: usize = units.iter().map(kept).sum();
    let merged: Vec<bool> = units.iter().map(is_merged).collect();
    let mut last = 0;
    // Blocks of the units from this one to `last`, in memory together with `kept_above`.
    let mut held = 0;
    let mut next = 0;
    (0..units.len())
        .map(|unit| {
            while next < units.len() {
                let above = kept_above - kept(&units[next]);
                let fits = held + blocks[next] + above <= block_count && !merged[next];
                if next > unit && (!fits || merged[unit]) {
                    break;
                }
                held += blocks[next];
                kept_above = above;
                last = next;
                next += 1;
            }
            held -= blocks[unit];
            last
        })
        .collect()
}

fn disk_places(unit: &Unit) -> impl Iterator<Item = u64> {
    unit.blocks()
        .filter_map(|block| Some(block.on_disk()?.spot.offset))
}

#[cfg(test)]
mod tests {
    use sortmill_io::frame::Header;
    use sortmill_io::sync::Arc;

    use super::*;
    use crate::block::Stored;
    use crate::partitions::{Block, Content, Whereabouts};
    use crate::spread::Spot;

    /// Splitmix64.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ (mixed >> 31)) % bound
        }
    }

    const BLOCK_BYTES: u64 = 4096;

    fn unit(partition: u32, places: Vec<u64>) -> Unit {
        let header = Header {
            payload_bytes: (BLOCK_BYTES - 64) as u32,
            ..Header::default()
        };
        let block = |offset| Block {
            header,
            whereabouts: Whereabouts::Disk(Stored {
                spot: Spot { folder: 0, offset },
                packed: None,
            }),
            chunks: 0..1,
            keys: None,
        };
        let bytes = places.len() as u64 * u64::from(header.payload_bytes);
        let content = Content {
            partition,
            blocks: places.into_iter().map(block).collect(),
            records: 1,
            bytes,
            chunks: 0..1,
            keys: None,
        };
        Unit {
            contents: vec![Arc::new(content)],
            range: None,
            words_alike: 0,
            goes_on: false,
        }
    }

    #[test]
    fn places_never_meet_and_regions_come_first() {
        let mut random = Random(7);
        for _ in 0..200 {
            let shares: Vec<u64> = (0..1 + random.below(20)).map(|_| random.below(9)).collect();
            let input_bytes = random.below(1 << 22);
            let all = space_bytes(input_bytes, 65_536);
            let mut regions = Regions::new(input_bytes, 65_536);
            // What leaves memory before anything is known of the keys goes behind too.
            let mut given = vec![(all, all + BLOCK_BYTES)];
            assert_eq!(regions.take(Some(0), BLOCK_BYTES), all);
            regions.divide(&shares, 0);
            for _ in 0..300 {
                let number = random.below(shares.len() as u64 + 1);
                let number = (number > 0).then(|| number as u32 - 1);
                let bytes = BLOCK_BYTES * (1 + random.below(4));
                let place = regions.take(number, bytes);
                assert_eq!(place % BLOCK_BYTES, 0);
                assert!(number.is_some() || place >= all, "behind the output");
                given.push((place, place + bytes));
            }
            given.sort_unstable();
            assert!(given.windows(2).all(|two| two[0].1 <= two[1].0));
        }
    }

    #[test]
    fn regions_made_later_lie_above_what_was_written() {
        let input_bytes = 1 << 20;
        let base = 300_000;
        let mut regions = Regions::new(input_bytes, 65_536);
        let behind = regions.take(Some(1), BLOCK_BYTES);
        assert!(behind >= space_bytes(input_bytes, 65_536));
        regions.divide(&[0, 1, 1], base);
        let mut place = |slot| regions.take(Some(slot), BLOCK_BYTES);
        let (written, first, second) = (place(0), place(1), place(2));
        assert!(written > behind, "what is late goes behind");
        assert!(base <= first && first < second && second < behind);
    }

    /// Loads and writes units of random sizes at random places as the lead allows, in as little memory as it was
    /// promised: nothing is written over before it was loaded, and nothing waits for ever.
    #[test]
    fn what_is_written_over_was_loaded() {
        let mut random = Random(11);
        let mut moved_cases = 0;
        for case in 0..3000 {
            let count = 1 + random.below(12) as usize;
            let sizes: Vec<u64> = (0..count).map(|_| random.below(6)).collect();
            let total: u64 = sizes.iter().sum();
            let mut places: Vec<u64> = (0..2 * total).map(|at| at * BLOCK_BYTES).collect();
            if random.below(2) == 0 {
                for at in (1..places.len()).rev() {
                    places.swap(at, random.below(at as u64 + 1) as usize);
                }
            }
            let mut rest = places.into_iter();
            let units: Vec<Unit> = (0u32..)
                .zip(&sizes)
                .map(|(number, &size)| unit(number, rest.by_ref().take(size as usize).collect()))
                .collect();
            let block_count = *sizes.iter().max().unwrap() as usize + random.below(20) as usize;
            let merged = random.below(2 * count as u64) as usize;
            let merged_partition = merged as u32;
            let is_merged = |unit: &Unit| unit.contents[0].partition == merged_partition;
            let lead = Lead::new(&units, 0, block_count, is_merged);
            moved_cases += u64::from(lead.move_below.iter().any(|&below| below > 0));
            let on_disk = |number: usize| {
                let below = lead.move_below[number];
                disk_places(&units[number]).filter(move |&place| place >= below)
            };
            let ends = ends(&units, 0);
            let (mut loaded, mut held) = (0, 0);
            for written in 0..count {
                while lead.needs[written] >= loaded {
                    assert!(
                        loaded <= written || loaded != merged,
                        "case {case}: a merge waits"
                    );
                    held += sizes[loaded];
                    loaded += 1;
                }
                let in_memory = if written == merged { 0 } else { held };
                assert!(in_memory <= block_count as u64, "case {case}: no room");
                let above = (loaded..count).flat_map(on_disk).min();
                assert!(
                    above.is_none_or(|place| place >= ends[written]),
                    "case {case}: unit {written} over {above:?}"
                );
                held -= sizes[written];
            }
        }
        assert!(moved_cases > 100, "{moved_cases} cases with moves");
    }
}
