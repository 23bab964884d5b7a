//! What was asked. `Plan` is what was decided.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sortmill_io::codec::{BlockCodec, Codec};

use crate::batch::Records;
use crate::cluster::On;
use crate::columns::Columns;
use crate::disk::Figures;
use crate::emit::Emitter;
use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::line_keys::LineOrder;
use crate::made::Made;
use crate::metrics::Stage;
use crate::order::{Format, KeyPart, Order};
use crate::parts::Parts;
use crate::progress::Progress;
use crate::trace::Trace;
use crate::yields::Yield;

/// Where records come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// A file, pipe or device by name.
    Path(PathBuf),
    /// This process's standard input.
    Stdin,
    /// What a function of this process makes. Nobody looks whether it is compressed.
    Made(Made),
}

impl Input {
    /// Its name, for messages; standard input's is `-`.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Path(path) => path,
            Self::Stdin => Path::new("-"),
            Self::Made(made) => made.name(),
        }
    }
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

/// How the output is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compress {
    /// The codec.
    pub codec: Codec,
    /// One of its levels; `None` is the usual one.
    pub level: Option<u32>,
}

impl Compress {
    /// The level, as asked or as usual; 0 where there is none.
    #[must_use]
    pub fn level(&self) -> u32 {
        let usual = self.codec.levels().map_or(0, |(_, usual, _)| usual);
        self.level.unwrap_or(usual)
    }
}

/// Whether blocks are compressed on their way to temporary files, and how. What comes out does not depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompressTemp {
    /// They are written as they are.
    #[default]
    None,
    /// Those for which threads have time because they wait for the disk: by lz4, or by zstd where there is time for that.
    Auto,
    /// All that become smaller, by lz4.
    Lz4,
    /// All that become smaller, by zstd at its level 1.
    Zstd,
    /// All that become smaller, by [`Job::temp_program`].
    Program,
}

impl CompressTemp {
    /// By what blocks are compressed, of several the first.
    #[must_use]
    pub fn codec(self) -> Option<BlockCodec> {
        match self {
            Self::None => None,
            Self::Auto | Self::Lz4 => Some(BlockCodec::Lz4),
            Self::Zstd => Some(BlockCodec::Zstd),
            Self::Program => Some(BlockCodec::Program),
        }
    }

    /// Whether all that become smaller are compressed, whoever has time for it.
    #[must_use]
    pub fn is_forced(self) -> bool {
        matches!(self, Self::Lz4 | Self::Zstd | Self::Program)
    }
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

/// What becomes of an input of a merge that is not in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disorder {
    /// It ends the job, which tells where the first record lies that belongs before the one in front of it.
    Refused,
    /// It is merged as it is: of the records that the inputs go on with the least comes out next, of equal ones that of
    /// the first input, whatever lies behind it. So nothing is lost, and the output is in order as far as the inputs
    /// are. GNU `sort -m` does so.
    Kept,
}

/// A function of records, one after the other, and `None` after the last that its worker gets, again and again until it
/// adds nothing to that; it puts any number of records of any size into `Records`. It may keep state between calls, of
/// which records a worker gets nobody knows before. [`Records::pause`] says why it is called without a record.
pub type Mapper = Box<dyn FnMut(Option<&[u8]>, &mut Records) + Send>;

/// Makes the mapper of one worker, which may keep as much state as it is told, in bytes ([`Job::map_keeps_state`]).
pub type MapFn = Arc<dyn Fn(u64) -> Mapper + Send + Sync>;

/// Does the work it is handed, once. What every call of a map function needs is done here once for many calls.
pub type Around = Arc<dyn Fn(&mut dyn FnMut()) + Send + Sync>;

/// The map function that keeps nothing between calls.
pub fn each(function: impl Fn(&[u8], &mut Records) + Send + Sync + 'static) -> MapFn {
    let function = Arc::new(function);
    Arc::new(move |_| {
        let function = Arc::clone(&function);
        Box::new(move |record, made| {
            if let Some(record) = record {
                function(record, made);
            }
        })
    })
}

/// Records of few keys to one of each key, before they are sorted: of a function that combines what it reduces ([`Job::joins`]).
pub trait Join: Send {
    /// Joins records, which lie back to back, with what is there. `false` if there is no room for all of them: then what is there is
    /// worth nothing.
    fn add(&mut self, records: &[u8]) -> bool;

    /// Puts what is there behind what is in `into`, in no order; nothing is there afterwards.
    fn take(&mut self, into: &mut Vec<u8>);
}

/// How many bytes of a key tell the group of its record; of a key that is cut off among these, all of it.
pub type HeadFn = Arc<dyn Fn(&[u8]) -> usize + Send + Sync>;

/// Makes what one worker joins records with, in at most so many bytes.
pub type JoinFn = Arc<dyn Fn(u64) -> Box<dyn Join> + Send + Sync>;

/// A function of sorted records, one after the other, `None` after a partition's last; it hands what
/// comes out to its second argument. It may keep state between calls.
pub type Reducer = Box<dyn FnMut(Option<&[u8]>, &mut Emitter<'_>) + Send>;

/// Makes the reducer of one partition.
pub type ReduceFn = Arc<dyn Fn() -> Reducer + Send + Sync>;

/// Gathers what a reduce function makes, which must be pairs ([`Format::Kv`]), into pieces of the output that hold many of them:
/// it takes the next one, or `None` behind the last, and puts a piece into what is empty if one is complete, of as many pairs as it
/// answers; else 0. Behind the last nothing is left.
pub type Framer = Box<dyn FnMut(Option<&[u8]>, &mut Vec<u8>) -> Result<u64> + Send>;

/// How the records of a reduce function are gathered into pieces.
#[derive(Clone)]
pub struct Framing {
    /// Makes what gathers those of a file.
    pub make: Arc<dyn Fn() -> Framer + Send + Sync>,
    /// What comes behind the last piece of each file.
    pub tail: Vec<u8>,
    /// It holds at most about so many bytes, and a few more of a record that is longer.
    pub held_bytes: u64,
}

/// A job that sorts, or merges. Only `inputs`, `output` and `format` have no sensible default.
#[derive(Clone)]
pub struct Job {
    /// What is read, in order.
    pub inputs: Vec<Input>,
    /// Where the result goes; may be one of the inputs.
    pub output: Output,
    /// Read inputs whose first bytes say that they are compressed as what they were before.
    pub decompress: bool,
    /// How the output is compressed; `None` is not at all.
    pub compress: Option<Compress>,
    /// How records lie in the inputs.
    pub format: Format,
    /// The key, most significant part first; none means the whole record.
    pub keys: Vec<KeyPart>,
    /// Each input is in order already: they are merged, in one pass, and what becomes of one that is not is said here.
    /// Equal records come out in the order of the inputs. Inputs are files and streams, each stream once; the output is
    /// one file or a stream. Not with `map`, `reduce`, `on`, `until`, `skip_bad` and boundaries. `None` is a job that
    /// sorts.
    pub merge: Option<Disorder>,
    /// How lines lie in the inputs and what decides their order; `None` for whole lines as bytes, which newlines end,
    /// and for any other format.
    pub line_order: Option<LineOrder>,
    /// How records are made of columns and which of them decide; their format is then [`Columns::format`]. Columns that
    /// the inputs' header names are looked up first ([`crate::run::look_up_columns`]). `None` for any other key.
    pub columns: Option<Columns>,
    /// Of records with equal keys only the first of the inputs comes out. What a line order says of that is asked too.
    pub unique: bool,
    /// What comes out, where that is not all records in order.
    pub yields: Yield,
    /// The job's number, which names its temporary folder and keys its fingerprints; `None` is a random one. Two jobs
    /// of one number prove that what one wrote is what the other read.
    pub number: Option<u64>,
    /// The most memory to use, in bytes; `None` is half of what is available, of which a quarter of what may be mapped is the most,
    /// or what the job needs at least, up to three quarters of it.
    pub memory_bytes: Option<u64>,
    /// Whether that is a wish rather than a limit: less than the least plan needs becomes that, more than is available
    /// becomes what is. GNU sort takes its `-S` so.
    pub memory_is_wish: bool,
    /// The folders for temporary files, over whose disks they are spread; none is `$TMPDIR` if it is there and
    /// not in memory, else the output's.
    pub temps: Vec<PathBuf>,
    /// Keep temporary data in a file of their own, even where they could lie in the output's space. With several
    /// folders they always do.
    pub temp_apart: bool,
    /// Whether temporary data are compressed. Runs of merges are not.
    pub compress_temp: CompressTemp,
    /// The program of [`CompressTemp::Program`]: alone it compresses what it reads, with `-d` it decompresses that again. It
    /// is looked for in `$PATH`, and needed only once there are temporary data.
    pub temp_program: Option<PathBuf>,
    /// The processes that share the work; `None` is this one alone.
    pub on: Option<On>,
    /// Threads that compute; `None` is one per core.
    pub threads: Option<usize>,
    /// Read the output again from the device before it gets its name; `None` means: if it names an input.
    pub verify: Option<bool>,
    /// Ignore what is appended to an input after the start.
    pub as_of_start: bool,
    /// Lines that end in `\r\n` lose the `\r` when they have been read: of a job that only puts lines in another order, as one
    /// that shuffles them does. No line is longer than a chunk then.
    pub drops_returns: bool,
    /// How many bad records may be skipped before the job fails. A function that makes pairs of columns looks for them by itself then
    /// ([`Records::leave_out`]); other jobs that have columns skip none.
    pub skip_bad: u64,
    /// How many lines of each input are no records: its first ones. Those of the first input that has any stay at the
    /// top of the output, those of the others are left out.
    pub header_lines: u64,
    /// Where the boundaries between partitions come from.
    pub boundaries: Boundaries,
    /// Keep records with equal keys in one partition, as groups need it, or in parts of it that one reduce function takes one after
    /// the other.
    pub equal_keys_meet: bool,
    /// Keep records whose keys begin with the same head together so: groups whose records are ordered by the rest of the key.
    pub equal_heads_meet: Option<HeadFn>,
    /// What is made of groups needs all of their records: nothing made them fewer on their way.
    pub gives_groups_whole: bool,
    /// What happens to each record before it is partitioned.
    pub map: Option<MapFn>,
    /// What is done around its calls with the records of a batch, or some of them; `None` is nothing.
    pub map_around: Option<Around>,
    /// What it makes are pairs ([`Format::Kv`]), which are sorted by their keys, whatever the inputs hold.
    pub map_makes_pairs: bool,
    /// These pairs are records of so many bytes each instead ([`Format::Fixed`]), of which the first 8 are the key.
    pub pair_bytes: Option<u32>,
    /// It keeps state between records: a share of the memory is set apart for that.
    pub map_keeps_state: bool,
    /// It stops handing that on when [`Records::is_full`], and is called again: so it may keep much more.
    pub map_ends_in_pieces: bool,
    /// It is told at which line of its input each record begins ([`Records::origin`]), and so are errors: lines are counted
    /// while they are read, each file's in their order, however many threads map them.
    pub map_knows_lines: bool,
    /// It takes several records at once, back to back as they lie, and tells which one is wrong by where it begins
    /// ([`Records::refuse_at`]): of short ones, a call for each takes longer than what is done with it. One that stops before the
    /// last of them says how far it came ([`Records::passed`]), and gets the others again.
    pub map_takes_several: bool,
    /// It gathers records, of one chunk at a time, and holds at most about so many bytes of them and of what it makes of
    /// them: after the last record of a chunk it is called without one ([`crate::batch::Pause::Chunk`]). 0 for one that
    /// gathers none.
    pub map_gathers_bytes: u64,
    /// What happens to sorted records before they are written.
    pub reduce: Option<ReduceFn>,
    /// It gathers records, and holds at most about so many bytes of them and of what it makes of them; 0 if it gathers none.
    pub reduce_gathers_bytes: u64,
    /// What makes one record of several with the same key, of those that [`Job::pair_bytes`] tells of or records of a fixed size whose
    /// key is their first 8 bytes: to the reduce function it stands for them. Where partitions have few keys, only those are sorted.
    pub joins: Option<JoinFn>,
    /// What it makes are no records but bytes of any form; these come before all of them, and lines that are no records
    /// ([`Job::header_lines`]) do not come out. Such an output is one file or a stream, none of the inputs, and cannot
    /// be verified; or so many parts of equal counts, each with what comes before, of a function that makes one of each record or tells the
    /// part of each ([`Job::reduce_tells_part`]).
    pub reduce_makes_bytes: Option<Vec<u8>>,
    /// What it makes of a record begins with 8 bytes, least significant first, that tell to which of so many parts the rest
    /// goes. Parts come in rising order.
    pub reduce_tells_part: bool,
    /// What it makes is gathered into pieces, which are what comes out ([`Job::reduce_makes_bytes`]).
    pub reduce_framing: Option<Framing>,
    /// What a map function makes goes to the output in the order of the inputs, in one pass and without being sorted: its
    /// pairs, each as the bytes that a reduce function makes of it ([`Job::reduce_makes_bytes`]).
    pub passes_on: bool,
    /// Partitions are reduced one after the other, in order. Otherwise several are at once, each by a function of its own
    /// ([`ReduceFn`]); what comes out is in order either way.
    pub reduces_in_turn: bool,
    /// What the inputs must hold together, under that key: what another job wrote.
    pub expects: Option<Fingerprint>,
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
            decompress: false,
            compress: None,
            format,
            keys: Vec::new(),
            merge: None,
            line_order: None,
            columns: None,
            unique: false,
            yields: Yield::All,
            number: None,
            memory_bytes: None,
            memory_is_wish: false,
            temps: Vec::new(),
            temp_apart: false,
            compress_temp: CompressTemp::None,
            temp_program: None,
            on: None,
            threads: None,
            verify: None,
            as_of_start: false,
            drops_returns: false,
            skip_bad: 0,
            header_lines: 0,
            boundaries: Boundaries::Sample,
            equal_keys_meet: false,
            equal_heads_meet: None,
            gives_groups_whole: false,
            map: None,
            map_around: None,
            map_makes_pairs: false,
            pair_bytes: None,
            map_keeps_state: false,
            map_ends_in_pieces: false,
            map_knows_lines: false,
            map_takes_several: false,
            map_gathers_bytes: 0,
            reduce_gathers_bytes: 0,
            reduce: None,
            joins: None,
            reduce_makes_bytes: None,
            reduce_tells_part: false,
            reduce_framing: None,
            passes_on: false,
            reduces_in_turn: false,
            expects: None,
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

    /// Format and key of what is sorted, ready to be asked.
    ///
    /// # Errors
    /// As [`order_of`].
    pub fn order(&self) -> Result<Order> {
        match self.map_makes_pairs {
            true => {
                let order = match self.pair_bytes {
                    None => Order::new(Format::Kv, &[])?,
                    Some(bytes) => Order::new(Format::Fixed(bytes), &[KeyPart::plain(0, 8)])?,
                };
                Ok(order.with_unique(self.unique))
            }
            false => self.input_order(),
        }
    }

    /// Format and key of what the inputs hold: what is sorted too, unless a map function makes pairs.
    ///
    /// # Errors
    /// As [`order_of`].
    pub fn input_order(&self) -> Result<Order> {
        let lines = self.line_order.as_ref();
        let order = order_of(self.format, &self.keys, lines, self.columns.as_ref())?;
        let order = order.with_unique(self.unique);
        Ok(match self.yields {
            Yield::Shuffled(_) => order.by_place(),
            Yield::All | Yield::Runs(_) | Yield::First(_) => order,
        })
    }

    /// Refuses what says how functions work where there are none.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`].
    pub fn check_functions(&self) -> Result<()> {
        let wrong = |cause: &str| Err(Error::new(ErrorKind::Usage, "planning the job", cause));
        let says_how = self.map_makes_pairs
            || self.map_keeps_state
            || self.map_knows_lines
            || self.map_takes_several
            || self.map_around.is_some()
            || self.map_gathers_bytes > 0;
        if says_how && self.map.is_none() {
            return wrong("it says how a map function works, and has none");
        }
        if self.reduce_makes_bytes.is_some() && self.reduce.is_none() {
            return wrong("it says what a reduce function makes, and has none");
        }
        let is_formed = self.reduce_framing.is_some() || self.reduce_tells_part;
        if is_formed && self.reduce_makes_bytes.is_none() {
            return wrong(
                "it says how what a reduce function makes comes out, and that is records",
            );
        }
        if self.reduce_tells_part && !matches!(self.output, Output::Parts(_)) {
            return wrong(
                "its reduce function tells the part of each record, and there is one output",
            );
        }
        Ok(())
    }

    /// Whether of records with equal keys only the first comes out.
    #[must_use]
    pub fn is_unique(&self) -> bool {
        self.unique || self.line_order.as_ref().is_some_and(|order| order.unique)
    }

    /// Whether the records of the inputs come out as they are, all of them and nothing else, so that their bytes are known
    /// before.
    #[must_use]
    pub fn keeps_records(&self) -> bool {
        let is_changed = self.map.is_some() || self.reduce.is_some() || self.compress.is_some();
        !is_changed && !self.is_unique() && self.yields.keeps_records()
    }

    /// Whether records must be whole in memory before they come out, however long they are.
    #[must_use]
    pub fn wants_whole_records(&self) -> bool {
        let by_function = self.map.is_some() || self.reduce.is_some();
        by_function || self.drops_returns || self.on.is_some() || !self.yields.keeps_records()
    }

    /// Whether the job gets as far as `stage`, and does not end before it.
    #[must_use]
    pub fn reaches(&self, stage: Stage) -> bool {
        self.until.is_none_or(|last| stage <= last)
    }
}

/// Format and key, ready to be asked: `line_order` is what decides the order of lines, and `columns` of what is made of
/// them, where whole lines do not.
///
/// # Errors
/// [`ErrorKind::Usage`] for a key that does not suit the format.
pub fn order_of(
    format: Format,
    keys: &[KeyPart],
    line_order: Option<&LineOrder>,
    columns: Option<&Columns>,
) -> Result<Order> {
    let wrong = |cause: &str| Err(Error::new(ErrorKind::Usage, "understanding the key", cause));
    match (line_order, columns) {
        (None, None) => Order::new(format, keys),
        (Some(order), None) if format == Format::Lines && keys.is_empty() => Order::of_lines(order),
        (Some(_), None) => wrong("fields are of lines, and other records have keys of bytes"),
        (None, Some(columns)) if format == columns.format() && keys.is_empty() => {
            Order::of_columns(columns)
        }
        (_, Some(_)) => wrong("what has columns has no key but some of them"),
    }
}
