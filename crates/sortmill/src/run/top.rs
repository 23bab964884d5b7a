//! Where only the first records come out: which units hold them.
//!
//! Units are in the order of their ranges, and how many records each partition got is known. Those behind the ones that
//! hold enough are not read back at all: what they hold counts as dropped, by the sums that workers kept of it.

use super::Shared;
use crate::fingerprint::Fingerprint;
use crate::partitions::Unit;
use sortmill_io::sync::Arc;

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
    // What ancestors hold is of both their halves: nobody knows what of it would be dropped with one.
    while needed > 0
        && needed < units.len()
        && share_a_partition(&units[needed - 1], &units[needed])
    {
        needed += 1;
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

fn share_a_partition(one: &Unit, other: &Unit) -> bool {
    let is_of_one = |content| one.contents.iter().any(|own| Arc::ptr_eq(own, content));
    other.contents.iter().any(is_of_one)
}
