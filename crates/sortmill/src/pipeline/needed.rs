//! Which verbs have to be done: an order that a later verb does away with is not made.
//!
//! ```text
//! sort -> filter -> group_by.agg      only the groups
//! sort -> sort by the same and more   only the second one: what is equal for it is equal for the first one
//! shuffle -> top                      only the first records
//! ```
//!
//! A function of batches between them might go by the order, and so do `first`, `reduce` and `apply`; for them it is made. So it is for
//! a `shuffle`, whose order follows from the places of records.

use super::verbs::Step;
use super::{Node, NodeKind};

/// A verb that has to be done.
pub(super) struct Needed<'n> {
    pub node: &'n Node,
    /// Those in front of it that are not, because of it.
    pub left_out: Vec<&'n str>,
}

/// Those of `nodes` that have to be done, in order.
pub(super) fn needed(nodes: &[Node]) -> Vec<Needed<'_>> {
    let mut kept: Vec<Needed<'_>> = Vec::new();
    for node in nodes.iter().rev() {
        match behind(&mut kept, node) {
            Some(by) => by.left_out.insert(0, &node.name),
            None => kept.push(Needed {
                node,
                left_out: Vec::new(),
            }),
        }
    }
    kept.reverse();
    kept
}

/// The verb among those behind `node`, the last one first, for which nobody needs what that does.
fn behind<'k, 'n>(kept: &'k mut [Needed<'n>], node: &Node) -> Option<&'k mut Needed<'n>> {
    let NodeKind::Shuffle(shuffle) = &node.kind else {
        return None;
    };
    if !shuffle.keeps_count() {
        return None;
    }
    let mut is_next = true;
    for by in kept.iter_mut().rev() {
        match &by.node.kind {
            NodeKind::Shuffle(other) => {
                let orders_anew = is_next && other.orders_all_of(shuffle);
                return (orders_anew || other.is_blind()).then_some(by);
            }
            NodeKind::Step(Step::Batches(_)) => return None,
            NodeKind::Step(_) => is_next = false,
        }
    }
    None
}
