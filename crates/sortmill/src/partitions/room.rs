//! Room to load each unit in, made when all has been distributed: the highest partitions are evicted for it.

use sortmill_io::sync::{Arc, lock};

use super::{Block, Partition, Partitions, SPARE_BLOCKS, Whereabouts};
use crate::error::Result;

impl Partitions<'_> {
    /// Evicts, bodies first, until each unit can be loaded beside what those above it keep in memory; what those below
    /// it kept is free by then. A unit that will be merged needs, beside what it has in memory, as much as the largest one
    /// that is loaded.
    pub(super) fn make_room(&self, list: &[Arc<Partition>]) -> Result<()> {
        if self.left_bytes() == 0 {
            return Ok(());
        }
        // Of each partition its blocks, and how many of them are in memory.
        let count = |partition: &Arc<Partition>| {
            let state = lock(&partition.state);
            let is_in_memory = |block: &&Block| matches!(block.whereabouts, Whereabouts::Memory(_));
            let in_memory = state.blocks.iter().filter(is_in_memory).count();
            (
                state.blocks.len(),
                in_memory + usize::from(state.open.is_some()),
            )
        };
        let mut counts: Vec<(usize, usize)> = list.iter().map(count).collect();
        let unit_blocks = |id: u32, counts: &[(usize, usize)]| -> usize {
            let family = list[id as usize].ancestors.iter().chain([&id]);
            let (all, in_memory) = family
                .map(|&id| counts[id as usize])
                .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            match all <= self.plan.unit_blocks_max {
                true => all,
                false => in_memory + self.plan.unit_blocks_max,
            }
        };
        let by_range = lock(&self.by_range).clone();
        let mut highest = by_range.len();
        // Bodies are held until their records are written, whenever that is.
        let mut in_bodies = self.bodies.held().0;
        loop {
            let mut held_above = 0;
            let mut most = 0;
            for &id in by_range.iter().rev() {
                most = most.max(unit_blocks(id, &counts) + held_above);
                held_above += counts[id as usize].1;
            }
            let wanted = (most + in_bodies + SPARE_BLOCKS).saturating_sub(self.plan.block_count);
            if wanted == 0 || (highest == 0 && in_bodies == 0) {
                return Ok(());
            }
            if in_bodies > 0 {
                let evicted = self.evict_bodies(wanted)?;
                in_bodies = if evicted < wanted {
                    0
                } else {
                    in_bodies - evicted
                };
                continue;
            }
            highest -= 1;
            let partition = &list[by_range[highest] as usize];
            if self.evict(partition)? {
                counts[by_range[highest] as usize] = count(partition);
            }
        }
    }
}
