//! What was asked. `Plan` is what was decided.

use std::path::PathBuf;
use std::sync::Arc;

use crate::batch::Records;
use crate::cluster::On;
use crate::disk::Figures;
use crate::metrics::Stage;
use crate::order::{Format, KeyPart};
use crate::parts::Parts;
use crate::progress::Progress;
use crate::trace::Trace;

/// Where records come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// A file, pipe or device by name.
    Path(PathBuf),
    /// This process's standard input.
    Stdin,
}

/// Where records go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// A file by name, made whole or not at all; a pipe or device is written in place.
    Path(PathBuf),
    /// This process's standard output.
    Stdout,
    /// Several files in a folder, made whole or not at all.
    Parts(Parts),
}

/// Where the boundaries between partitions come from, and so those between parts that are cut by key.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Boundaries {
    /// From a sample of the input.
    #[default]
    Sample,
    /// The key space is cut evenly, whatever the input.
    Uniform,
    /// From the manifest of an earlier output in parts; a sample adds to them where they are few.
    Manifest(PathBuf),
}

/// A function of each record: puts any number of records of any size into `Records`.
pub type MapFn = Arc<dyn Fn(&[u8], &mut Records) + Send + Sync>;

/// A function of sorted records, one after the other, `None` after a partition's last; it hands what
/// comes out to its second argument. It may keep state between calls.
pub type Reducer = Box<dyn FnMut(Option<&[u8]>, &mut dyn FnMut(&[u8])) + Send>;

/// Makes the reducer of one partition.
pub type ReduceFn = Arc<dyn Fn() -> Reducer + Send + Sync>;

/// A sort job. Only `inputs`, `output` and `format` have no sensible default.
#[derive(Clone)]
pub struct Job {
    /// What is read, in order.
    pub inputs: Vec<Input>,
    /// Where the result goes; may be one of the inputs.
    pub output: Output,
    /// How records lie in the inputs.
    pub format: Format,
    /// The key, most significant part first; none means the whole record.
    pub keys: Vec<KeyPart>,
    /// The most memory to use, in bytes; `None` is half of what is available.
    pub memory_bytes: Option<u64>,
    /// The folders for temporary files, over whose disks they are spread; none is `$TMPDIR` unless that is in
    /// memory, else the output's.
    pub temps: Vec<PathBuf>,
    /// Keep temporary data in a file of their own, even where they could lie in the output's space. With several
    /// folders they always do.
    pub temp_apart: bool,
    /// The processes that share the work; `None` is this one alone.
    pub on: Option<On>,
    /// Threads that compute; `None` is one per core.
    pub threads: Option<usize>,
    /// Read the output again from the device before it gets its name; `None` means: if it names an input.
    pub verify: Option<bool>,
    /// Ignore what is appended to an input after the start.
    pub as_of_start: bool,
    /// How many bad records may be skipped before the job fails.
    pub skip_bad: u64,
    /// Where the boundaries between partitions come from.
    pub boundaries: Boundaries,
    /// Keep records with equal keys in one partition, as groups need it.
    pub equal_keys_meet: bool,
    /// What happens to each record before it is partitioned.
    pub map: Option<MapFn>,
    /// What happens to sorted records before they are written.
    pub reduce: Option<ReduceFn>,
    /// Run to the end of this stage, one of [`UNTIL_STAGES`], and throw away what comes out of it: nothing is
    /// opened for output, and what is there stays. It shows what each stage costs.
    pub until: Option<Stage>,
    /// Where each thread draws what it does.
    pub trace: Option<Arc<Trace>>,
    /// Where the job tells how far it is.
    pub progress: Option<Arc<Progress>>,
    /// What was measured of the disk of each folder for temporary files, in their order; `None`, and what is
    /// missing, is planned as one that is unknown.
    pub disks: Vec<Option<Figures>>,
    /// Sizes that tests shrink so that a small job goes the whole way.
    pub tuning: Tuning,
    /// Measure, once the job is done, what the device that bound it does alone; `None` means: if the job took
    /// so long that it hardly counts.
    pub probe: Option<bool>,
    /// Called at each stage border, to plant faults.
    #[cfg(feature = "tamper")]
    pub tamper: Option<crate::tamper::Tamper>,
}

/// Sizes the plan would otherwise choose. For tests and experiments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tuning {
    /// Bytes of a chunk.
    pub chunk_bytes: Option<usize>,
    /// Bytes of a block.
    pub block_bytes: Option<usize>,
    /// Bytes a partition aims at.
    pub partition_bytes: Option<u64>,
    /// Number of partitions; takes precedence over their size.
    pub partition_count: Option<usize>,
    /// How many places of the input are sampled.
    pub sample_count: Option<usize>,
}

/// The stages after which a job may end ([`Job::until`]).
pub const UNTIL_STAGES: [Stage; 7] = [
    Stage::Read,
    Stage::Cut,
    Stage::Partition,
    Stage::Spill,
    Stage::Load,
    Stage::Sort,
    Stage::Reduce,
];

impl Job {
    /// The job that sorts `inputs` into `output` with defaults for all else.
    #[must_use]
    pub fn new(inputs: Vec<Input>, output: Output, format: Format) -> Self {
        Self {
            inputs,
            output,
            format,
            keys: Vec::new(),
            memory_bytes: None,
            temps: Vec::new(),
            temp_apart: false,
            on: None,
            threads: None,
            verify: None,
            as_of_start: false,
            skip_bad: 0,
            boundaries: Boundaries::Sample,
            equal_keys_meet: false,
            map: None,
            reduce: None,
            until: None,
            trace: None,
            progress: None,
            disks: Vec::new(),
            tuning: Tuning::default(),
            probe: None,
            #[cfg(feature = "tamper")]
            tamper: None,
        }
    }

    /// Whether the job gets as far as `stage`, and does not end before it.
    #[must_use]
    pub fn reaches(&self, stage: Stage) -> bool {
        self.until.is_none_or(|last| stage <= last)
    }
}
