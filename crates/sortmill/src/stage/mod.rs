//! The steps of a record's way, in order. Each is plain functions over what comes in; none knows another:
//! `run` joins them.

pub mod cut;
pub mod kernel;
pub mod load;
pub mod map;
pub mod merge;
pub mod partition;
pub mod read;
pub mod receive;
pub mod reduce;
pub mod send;
pub mod sort;
pub mod spill;
pub mod write;
