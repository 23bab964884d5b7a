//! Inputs that others append to while they are sorted: what they had at the start is sorted, and how much came since is
//! told.

use serde::{Deserialize, Serialize};
use sortmill_io::Os;

use crate::stage::read::Source;
use crate::text;

/// One input that has grown.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Grown {
    /// The input.
    pub path: String,
    /// Bytes that it had when the job began: those were sorted.
    pub bytes: u64,
    /// Bytes that had come since when the job ended.
    pub grown_bytes: u64,
}

impl Grown {
    /// Those of `sources` that are longer by now.
    #[must_use]
    pub fn of(sources: &[Source], os: &dyn Os) -> Vec<Self> {
        let grown = sources.iter().map(|source| Self {
            path: source.file.path.display().to_string(),
            bytes: source.meta.bytes,
            grown_bytes: source.grown_bytes(os),
        });
        grown.filter(|grown| grown.grown_bytes > 0).collect()
    }

    /// The same for people.
    #[must_use]
    pub fn words(&self) -> String {
        format!(
            "{} grew by {} meanwhile, which were not looked at: sorted is what there was at the start ({} bytes)",
            self.path,
            text::bytes(self.grown_bytes),
            text::count(self.bytes),
        )
    }
}
