//! The steps of a record's way, in order. Each is plain functions over what comes in; none knows another:
//! `run` joins them.

pub mod read;
pub mod cut;
pub mod map;
pub mod partition;
pub mod spill;
pub mod load;
pub mod sort;
pub mod merge;
pub mod reduce;
pub mod write;
