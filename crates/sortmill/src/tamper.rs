//! Faults planted between stages, for tests: whatever happens to a record there must be found.

/// A place between two stages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Border {
    /// Cut and map.
    Map,
    /// Map and partition.
    Partition,
    /// Load and sort.
    Sort,
    /// Sort and reduce.
    Reduce,
}

/// Sees the records that pass a border and may do anything to them.
#[cfg(feature = "tamper")]
pub type Tamper = std::sync::Arc<dyn Fn(Border, &mut Vec<Vec<u8>>) + Send + Sync>;
