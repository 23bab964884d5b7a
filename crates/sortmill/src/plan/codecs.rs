//! What decompressing inputs and compressing the output take, beside the rest of a job.

use serde::{Deserialize, Serialize};
use sortmill_io::codec::{Codec, bound_bytes, encoder_bytes};

use super::{Budget, Inputs};
use crate::chunks::Extent;
use crate::job::Job;

/// Threads that decompress, and what each may take.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Decoders {
    /// Inputs that are decompressed at once.
    pub count: usize,
    /// Bytes of a read of compressed bytes; two of each input are in flight.
    pub read_bytes: usize,
    /// The most that one codec may take: one that wants more is an error.
    pub memory_bytes: u64,
    /// Whether streams are looked at, too.
    pub of_streams: bool,
    /// Chunk buffers, among all there are, for what is decompressed ahead of its turn, where chunks must come in the order of
    /// the inputs.
    #[serde(default)]
    pub ahead_count: usize,
}

/// Threads that compress.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Encoders {
    /// How many.
    pub count: usize,
    /// The codec's name.
    pub codec: String,
    /// Its level.
    pub level: u32,
    /// The output is compressed in frames of so many bytes, whatever the memory and threads.
    pub frame_bytes: usize,
}

/// What is known of compressed inputs before the start.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PackedInputs {
    /// How many there are.
    pub count: usize,
    /// The most memory that the first member of any of them wants.
    pub memory_bytes: u64,
    /// Whether a later member of any of them may want more.
    pub may_grow: bool,
    /// What all inputs together, the others among them, may become: a guess from the beginnings of some. `None` if
    /// there is a stream among them.
    pub guessed_bytes: Option<u64>,
    /// Bytes of all inputs as they lie there.
    pub stored_bytes: Option<u64>,
    /// What each input may become, a guess, of those that are compressed. Nothing at all where none is.
    pub guesses: Vec<Option<u64>>,
}

/// The most that is read of a compressed input at once: beyond, nothing is gained.
const READ_BYTES_MAX: u64 = 1 << 20;
const READ_BYTES_MIN: u64 = 4 << 10;
const ROW_READ_BYTES_MIN: u64 = 64 << 10;
/// What a member may want that says so too late to be planned for: twice what the usual levels of zstd and xz want,
/// where memory allows it, and enough for a legacy frame of lz4.
const GROWN_BYTES_MAX: u64 = 17 << 20;
/// Of files that are merged, each of which has a codec, what each may want at least: a window of 1 MiB.
const GROWN_BYTES_MIN: u64 = (512 << 10) + (1 << 20);
/// The output is compressed in frames of so many bytes: what lies side by side in sorted data is alike, so longer ones
/// hardly gain.
const FRAME_BYTES: usize = 1 << 20;

impl Decoders {
    /// Those of a job that may meet compressed bytes; `Some(None)` of one that will not, `None` if memory is too short.
    pub(super) fn new(
        job: &Job,
        inputs: &Inputs,
        (worker_count, chunk_count): (usize, usize),
        budget: &mut Budget,
    ) -> Option<Option<Self>> {
        let packed = &inputs.packed;
        let streams = inputs
            .extents
            .iter()
            .filter(|&&extent| extent == Extent::Stream);
        let of_streams = job.decompress && streams.count() > packed.count;
        if packed.count == 0 && !of_streams && job.compress.is_none() {
            return Some(None);
        }
        let own = own_bytes(job);
        let limit = budget.limit_bytes;
        let most = worker_count.min((chunk_count - 1) / 2).max(1);
        let plan = |count: usize| {
            let read_bytes = limit / 256 / count as u64;
            let read_bytes = read_bytes.clamp(READ_BYTES_MIN, READ_BYTES_MAX);
            let grown = match packed.may_grow || of_streams {
                true => (limit / 6).min(GROWN_BYTES_MAX) / count as u64,
                false => 0,
            };
            Self {
                count,
                read_bytes: sortmill_io::align_down(read_bytes) as usize,
                memory_bytes: packed.memory_bytes.max(own).max(grown),
                of_streams,
                ahead_count: 0,
            }
        };
        let counts = (1..=packed.count.clamp(1, most)).rev();
        let fitting = counts.map(plan).find(|plan| plan.bytes() <= limit / 4);
        let decoders = fitting.unwrap_or_else(|| plan(1));
        // Reads of compressed inputs, and the window and tables of a codec for each.
        budget.hold("decompressing", decoders.bytes())?;
        Some(Some(decoders))
    }

    /// Those of a job that merges `packed_count` compressed inputs and `stream_count` streams, each of which has one of its
    /// own: what each of them may take, if all go at once. `None` of one that will meet no compressed bytes.
    pub(super) fn of_rows(
        job: &Job,
        inputs: &Inputs,
        (packed_count, stream_count): (u64, u64),
        limit: u64,
    ) -> Option<Self> {
        let packed = &inputs.packed;
        let of_streams = job.decompress && stream_count > 0;
        if packed_count == 0 && !of_streams && job.compress.is_none() {
            return None;
        }
        let count = match of_streams {
            true => packed_count + stream_count,
            false => packed_count,
        };
        let count = count.max(1);
        // However many there are: small reads cost each row a seek and a hand-over.
        let least = ROW_READ_BYTES_MIN.min(limit / 512);
        let read_bytes = (limit / 256 / count).clamp(least.max(READ_BYTES_MIN), READ_BYTES_MAX);
        let grown = match packed.may_grow || of_streams {
            true => (limit / 6 / count).min(GROWN_BYTES_MAX),
            false => 0,
        };
        // Rather fewer at once than one that ends the job because its second member is longer than its first.
        let least = match packed.may_grow {
            true => GROWN_BYTES_MIN.min(limit / 8),
            false => 0,
        };
        Some(Self {
            count: count as usize,
            read_bytes: sortmill_io::align_down(read_bytes) as usize,
            memory_bytes: packed
                .memory_bytes
                .max(own_bytes(job))
                .max(grown)
                .max(least),
            of_streams,
            ahead_count: 0,
        })
    }

    /// What each of them takes.
    pub(super) fn each_bytes(&self) -> u64 {
        (2 * self.read_bytes as u64).saturating_add(self.memory_bytes)
    }

    /// What all of them take.
    pub(super) fn bytes(&self) -> u64 {
        self.each_bytes().saturating_mul(self.count as u64)
    }
}

/// What one takes that reads the output again.
pub(super) fn own_bytes(job: &Job) -> u64 {
    job.compress.map_or(0, |compress| match compress.codec {
        Codec::Bzip2 => 5 << 20,
        _ => (512 << 10) + 4 * frame_bytes(job) as u64,
    })
}

impl Encoders {
    /// Those of a job that compresses its output; as [`Decoders::new`].
    pub(super) fn new(job: &Job, worker_count: usize, budget: &mut Budget) -> Option<Option<Self>> {
        let Some(compress) = job.compress else {
            return Some(None);
        };
        let level = compress.level();
        let frame_bytes = frame_bytes(job);
        let bytes = |count: usize| {
            let each = encoder_bytes(compress.codec, level, frame_bytes);
            let each = each + bound_bytes(frame_bytes) as u64;
            count as u64 * each + ((count + Self::FRAMES_AHEAD) * frame_bytes) as u64
        };
        let count = (1..=worker_count)
            .rev()
            .find(|&count| bytes(count) <= budget.limit_bytes / 4);
        let count = count.unwrap_or(1);
        // Frames on their way, one in each thread's hands as it was and as it becomes, and the codec's tables.
        budget.hold("compressing", bytes(count))?;
        Some(Some(Self {
            count,
            codec: compress.codec.name().to_owned(),
            level,
            frame_bytes,
        }))
    }

    /// Frames that are being filled or wait, beside one in each thread's hands.
    pub const FRAMES_AHEAD: usize = 2;
}

fn frame_bytes(job: &Job) -> usize {
    job.tuning
        .chunk_bytes
        .map_or(FRAME_BYTES, |bytes| bytes.min(FRAME_BYTES))
}
