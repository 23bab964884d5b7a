//! Records: the engine that sorts, groups and reduces data far larger than memory.
//!
//! Read in this order: [`job`] (what was asked), [`plan`] (its numbers), [`run`] (the way of a record),
//! then the stages in [`stage`], in the order in which a record meets them.

pub mod bad;
pub mod batch;
pub mod best;
pub mod between;
pub mod block;
pub mod bodies;
pub mod borders;
pub mod by_words;
pub mod check;
pub mod chunks;
pub mod cluster;
pub mod columns;
pub mod commit;
pub mod compare;
pub mod counts;
pub mod disk;
pub mod doctor;
pub mod error;
pub mod fingerprint;
pub mod forecast;
pub mod gen_records;
pub mod generate;
pub mod job;
pub mod kept;
pub mod line_keys;
pub mod long;
pub mod losers;
pub mod made;
pub mod manifest;
pub mod metrics;
pub mod order;
pub mod packing;
pub mod partitions;
pub mod parts;
pub mod passing;
pub mod pieces;
pub mod pipeline;
pub mod places;
pub mod plan;
pub mod progress;
pub mod queue;
pub mod repeats;
pub mod report;
pub mod rows;
pub mod run;
pub mod runs;
pub mod sample;
pub mod shuffle;
pub mod space;
pub mod spills;
pub mod spread;
pub mod stage;
pub mod summary;
pub mod table;
pub mod tamper;
pub mod temp;
pub mod temps;
pub mod text;
pub mod trace;
pub mod verdict;
pub mod wire;
pub mod yields;

pub use sortmill_io as io;
