//! Where only the first records come out: which units hold them.
//!
//! Units are in the order of their ranges, and how many records each partition got is known. Those behind the ones that
//! hold enough are not read back at all: what they hold counts as dropped, by the sums that workers kept of it.

use std::collections::HashSet;

use super::Shared;
use crate::fingerprint::Fingerprint;
use crate::partitions::Unit;

/// The units that the first `count` records are in, and what the others hold, whose memory is free afterwards.
pub fn needed(shared: &Shared<'_>, mut units: Vec<Unit>, count: u64) -> (Vec<Unit>, Fingerprint) {
    let mut have = 0;
    let mut needed = units.len();
    for (number, unit) in units.iter().enumerate() {
        if have >= count {
            needed = number;
            break;
        }
        // What its own partition got is in its range; what ancestors got may not be.
        have += unit.contents.last().map_or(0, |own| own.records);
    }
    // What ancestors hold is of several units: nobody knows what of it would be dropped with one.
    let mut kept = HashSet::new();
    let mut looked_at = 0;
    while looked_at < needed {
        kept.extend(partitions(&units[looked_at]));
        looked_at += 1;
        if looked_at == needed {
            let shares = |unit: &Unit| partitions(unit).any(|partition| kept.contains(&partition));
            needed += units[needed..]
                .iter()
                .rposition(shares)
                .map_or(0, |last| last + 1);
        }
    }
    let mut dropped = Fingerprint::default();
    let mut seen = Vec::new();
    for unit in units.drain(needed..) {
        for content in unit.contents {
            if !seen.contains(&content.partition) {
                seen.push(content.partition);
                dropped.merge(&shared.bar.appended(content.partition));
            }
        }
    }
    (units, dropped)
}

fn partitions(unit: &Unit) -> impl Iterator<Item = u32> {
    unit.contents.iter().map(|content| content.partition)
}
