//! Memory that is promised: to whom, and in which phase. Pure; no I/O.

use serde::{Deserialize, Serialize};

/// Memory named after what it is for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Holder {
    /// Who holds it.
    pub name: String,
    /// At most so many bytes.
    pub bytes: u64,
    /// The phase that it holds them in; absent where that is all of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub during: Option<During>,
}

/// A phase of a job, for who holds memory in no other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum During {
    /// Until all records are in partitions.
    Distribute,
    /// From then on.
    Sort,
}

impl std::fmt::Display for During {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Distribute => "while distributing",
            Self::Sort => "while sorting",
        })
    }
}

/// The budget: a limit and what of it has been promised to whom.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Budget {
    /// The most bytes all holders may have together at one time.
    pub limit_bytes: u64,
    /// Who has how much.
    pub holders: Vec<Holder>,
}

impl Budget {
    pub(super) fn new(limit_bytes: u64) -> Self {
        Self {
            limit_bytes,
            holders: Vec::new(),
        }
    }

    /// The most bytes that are held at one time.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.most_at_once(|holder| holder.bytes)
    }

    /// The same of the bytes that each of the holders has by what `of` says.
    pub fn most_at_once(&self, of: impl Fn(&Holder) -> u64) -> u64 {
        let phases = [During::Distribute, During::Sort];
        let held = phases.map(|phase| self.in_phase(phase).map(&of).sum());
        held.into_iter().max().unwrap_or(0)
    }

    /// Who holds something then.
    fn in_phase(&self, phase: During) -> impl Iterator<Item = &Holder> {
        let is_then = move |holder: &&Holder| holder.during.is_none_or(|during| during == phase);
        self.holders.iter().filter(is_then)
    }

    /// Bytes that nobody holds yet, whatever the phase.
    #[must_use]
    pub fn left_bytes(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.held_bytes())
    }

    /// Bytes that nobody holds in `phase` and somebody in the other one.
    pub(super) fn spare_bytes(&self, phase: During) -> u64 {
        let held: u64 = self.in_phase(phase).map(|holder| holder.bytes).sum();
        self.held_bytes() - held
    }

    /// Gives `bytes` to `name`, beside what it may have, if they are left.
    pub(super) fn hold(&mut self, name: &str, bytes: u64) -> Option<()> {
        self.hold_during(None, name, bytes)
    }

    /// The same in one phase: in the other one somebody else may have them.
    pub(super) fn hold_during(
        &mut self,
        during: Option<During>,
        name: &str,
        bytes: u64,
    ) -> Option<()> {
        let held = match during {
            None => self.held_bytes(),
            Some(phase) => self.in_phase(phase).map(|holder| holder.bytes).sum(),
        };
        if bytes > self.limit_bytes.saturating_sub(held) {
            return None;
        }
        match self.holders.iter_mut().find(|holder| holder.name == name) {
            Some(holder) => holder.bytes += bytes,
            None => self.holders.push(Holder {
                name: name.to_owned(),
                bytes,
                during,
            }),
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_phase_needs_the_other_may_have() {
        let mut budget = Budget::new(100);
        let (distribute, sort) = (Some(During::Distribute), Some(During::Sort));
        budget.hold("always", 20).unwrap();
        budget.hold_during(distribute, "first", 50).unwrap();
        assert_eq!(budget.hold_during(distribute, "too much", 31), None);
        budget.hold_during(sort, "then", 70).unwrap();
        let spare = [During::Distribute, During::Sort].map(|phase| budget.spare_bytes(phase));
        assert_eq!(spare, [20, 0]);
        assert_eq!((budget.held_bytes(), budget.left_bytes()), (90, 10));
        assert_eq!(budget.hold("always", 11), None);
        budget.hold("always", 10).unwrap();
        budget.hold_during(distribute, "first", 20).unwrap();
        assert_eq!((budget.left_bytes(), budget.holders.len()), (0, 3));
    }
}
