//! What is sorted in one go, and which blocks that takes.
//!
//! Where partitions were divided, blocks of ancestors hold records of several units, and each of these reads them. But of
//! a unit that has one key only, from some chunks, blocks from other chunks hold nothing. That matters where one key
//! comes all the time and was not in the sample: its partition is divided again and again, always at the chunk that is
//! being distributed, and without looking each unit would read what all before it have.
//!
//! ```text
//! divided       behind k, then at chunk  10      20      30
//! partitions    p0 |                 p1  |  p2   |  p3   |  p4     p5 for the keys above k
//! units                         up to k  |  k    |  k    |  k      above k
//! reads                         p0 p1       p2      p3      p4     p0 p5
//! ```

use std::ops::Range;

use sortmill_io::sync::Arc;

use super::Block;
use crate::table::Boundary;

/// Everything a partition received, or of it what a unit may want.
pub struct Content {
    /// Its number.
    pub partition: u32,
    /// Its blocks in the order they were filled.
    pub blocks: Vec<Block>,
    /// Records that the partition received.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What the chunks that they came from lie between.
    pub chunks: Range<u64>,
}

impl Content {
    /// Without the blocks that hold nothing from these chunks; `None` if none does.
    fn of_chunks(&self, chunks: &Range<u64>) -> Option<Self> {
        let meets = |other: &Range<u64>| other.start < chunks.end && chunks.start < other.end;
        if !meets(&self.chunks) {
            return None;
        }
        let blocks = self.blocks.iter().filter(|block| meets(&block.chunks));
        Some(Self {
            blocks: blocks.cloned().collect(),
            chunks: self.chunks.clone(),
            ..*self
        })
    }
}

/// What is sorted in one go: one slot of the table.
pub struct Unit {
    /// The partitions that hold its records: where some were divided, ancestors of its own one, and that one, the last.
    pub contents: Vec<Arc<Content>>,
    /// The slot's range, if the contents hold records of other slots too.
    pub range: Option<(Option<Boundary>, Option<Boundary>)>,
    /// Words that all keys in the slot's range begin with.
    pub words_alike: usize,
}

impl Unit {
    /// The slot between these boundaries, of which its own partition and that one's `ancestors` hold the records.
    pub(super) fn of_slot(
        ancestors: Vec<Arc<Content>>,
        own: Arc<Content>,
        (from, to): (Option<&Boundary>, Option<&Boundary>),
        words_alike: usize,
    ) -> Self {
        let range = (!ancestors.is_empty()).then(|| (from.cloned(), to.cloned()));
        let mut contents = ancestors;
        if let (Some(from), Some(to)) = (from, to)
            && from.key == to.key
        {
            let chunks = from.chunk..to.chunk;
            let wanted = contents
                .iter()
                .filter_map(|content| content.of_chunks(&chunks));
            contents = wanted.map(Arc::new).collect();
        }
        contents.push(own);
        Self {
            contents,
            range,
            words_alike,
        }
    }

    /// All its blocks.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.contents.iter().flat_map(|content| &content.blocks)
    }

    /// Bytes of its records; `None` if not all records of its contents are its own.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        match &self.range {
            None => Some(self.contents.iter().map(|content| content.bytes).sum()),
            Some(_) => None,
        }
    }

    /// Records its blocks hold, its own or not.
    #[must_use]
    pub fn records_at_most(&self) -> u64 {
        let records = |block: &Block| u64::from(block.header.record_count);
        self.blocks().map(records).sum()
    }
}
