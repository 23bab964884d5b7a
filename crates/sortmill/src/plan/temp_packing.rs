//! What compressing temporary data takes, beside the rest of a job.

use serde::{Deserialize, Serialize};
use sortmill_io::codec::{BlockCodec, block_coder_bytes, packed_bytes_max};

use super::{Budget, Plan};
use crate::job::{CompressTemp, Job};
use crate::metrics::Stage;

/// A buffer for what comes out of a program.
const PIPE_BYTES: u64 = 64 << 10;

/// How temporary data are compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TempPacking {
    /// By what, and which blocks.
    pub how: CompressTemp,
    /// Whether there is memory for zstd, too, where a codec is chosen block by block.
    pub has_zstd: bool,
    /// How many blocks are compressed or decompressed at once.
    pub packer_count: usize,
}

impl Plan {
    /// Whether all temporary data that can be compressed are: then what they take shows only when they are written, and a
    /// job is not refused for what they would take otherwise.
    #[must_use]
    pub fn shrinks_temp(&self) -> bool {
        self.temp_packing
            .is_some_and(|packing| packing.how.is_forced())
    }
}

impl TempPacking {
    /// That of a job that asks for it; `Some(None)` of one that does not, or writes no temporary data; `None` if memory
    /// is too short.
    pub(super) fn new(
        job: &Job,
        worker_count: usize,
        block_bytes: u64,
        budget: &mut Budget,
    ) -> Option<Option<Self>> {
        let how = job.compress_temp;
        let Some(codec) = how.codec().filter(|_| job.reaches(Stage::Spill)) else {
            return Some(None);
        };
        let block_bytes = block_bytes as usize;
        let packed_bytes = packed_bytes_max(block_bytes) as u64;
        let bytes_of = |codec| {
            packed_bytes
                + match codec {
                    // What a program has made, before it is known to be less, and what is moved to and from it.
                    BlockCodec::Program => 2 * packed_bytes + PIPE_BYTES,
                    _ => block_coder_bytes(codec, block_bytes),
                }
        };
        // One for each worker and one for the thread that writes or loads, but no more than an eighth of the memory.
        let wished = worker_count as u64 + 1;
        let most = budget.limit_bytes / 8;
        let has_zstd = how == CompressTemp::Auto
            && BlockCodec::Zstd.is_built()
            && wished * bytes_of(BlockCodec::Zstd) <= most;
        let each = bytes_of(if has_zstd { BlockCodec::Zstd } else { codec });
        let packer_count = wished.min(most / each).max(1);
        // A block as it becomes, and the codec's tables, in each thread's hands.
        budget.hold("compressing temporary data", packer_count * each)?;
        Some(Some(Self {
            how,
            has_zstd,
            packer_count: packer_count as usize,
        }))
    }
}
