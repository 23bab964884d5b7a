//! What is sorted in one go, and which blocks that takes.
//!
//! Where partitions were divided, blocks of ancestors hold records of several units, and each of these reads those that
//! it may have some in, by the least and the greatest key of a block, or, of a unit that has one key only, by its chunks.
//! That matters for streams that come in order, or to one key: the partition at the end is divided again and again, and
//! without looking each unit would read what all before it have.
//!
//! ```text
//! keys rise     a b | c d | e f | g h        each divided where the one before had come to
//! partitions    p0  | p1  | p2  | p3
//! reads         p0    p1    p2    p3         and of each one before what went beyond the boundary by then
//!
//! one key k     divided behind k, then at chunk  10      20      30
//! partitions    p0 |                 p1  |  p2   |  p3   |  p4     p5 for the keys above k
//! units                         up to k  |  k    |  k    |  k      above k
//! reads                         p0 p1       p2      p3      p4     p0 p5
//! ```
//!
//! What a partition got before it was as large as it should be is read by all: at most half of what they have themselves.

use std::ops::Range;

use sortmill_io::sync::Arc;

use super::Block;
use crate::key_span::KeySpan;
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
    /// And their keys, if that is known; of single blocks it may be known better.
    pub keys: Option<KeySpan>,
}

impl Content {
    /// Of a partition that received `records` and `bytes`, with the keys of all of it, if they are known.
    pub(super) fn new(
        partition: u32,
        blocks: Vec<Block>,
        keys: Option<KeySpan>,
        (records, bytes): (u64, u64),
    ) -> Self {
        let mut content = Self {
            partition,
            records,
            bytes,
            chunks: blocks.first().map_or(0..0, |block| block.chunks.clone()),
            keys,
            blocks,
        };
        for block in &content.blocks {
            let all = &mut content.chunks;
            *all = all.start.min(block.chunks.start)..all.end.max(block.chunks.end);
        }
        content
    }

    /// Without the blocks that hold nothing between two boundaries; `None` if none does.
    fn between(
        content: &Arc<Self>,
        from: Option<&Boundary>,
        to: Option<&Boundary>,
    ) -> Option<Arc<Self>> {
        let of_one_key = from.zip(to).filter(|(from, to)| from.key == to.key);
        let meets = |chunks: &Range<u64>, keys: Option<&KeySpan>| {
            let in_time = of_one_key
                .is_none_or(|(from, to)| chunks.start < to.chunk && from.chunk < chunks.end);
            in_time && keys.is_none_or(|keys| keys.meets(from, to))
        };
        if !meets(&content.chunks, content.keys.as_ref()) {
            return None;
        }
        let is_wanted = |block: &&Block| meets(&block.chunks, block.keys.as_deref());
        if content.blocks.iter().all(|block| is_wanted(&block)) {
            return Some(Arc::clone(content));
        }
        let blocks = content.blocks.iter().filter(is_wanted);
        Some(Arc::new(Self {
            blocks: blocks.map(Block::without_keys).collect(),
            chunks: content.chunks.clone(),
            keys: None,
            ..**content
        }))
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
    /// The first group of the slot may have begun in the one in front of it, where the partition was divided within that group.
    pub goes_on: bool,
}

impl Unit {
    /// The slot between these boundaries, of which its own partition and that one's `ancestors` hold the records.
    pub(super) fn of_slot(
        ancestors: &[Arc<Content>],
        own: Arc<Content>,
        (from, to): (Option<&Boundary>, Option<&Boundary>),
    ) -> Self {
        let wanted = |content| Content::between(content, from, to);
        let mut contents: Vec<_> = ancestors.iter().filter_map(wanted).collect();
        let range = (!contents.is_empty()).then(|| (from.cloned(), to.cloned()));
        contents.push(own);
        Self {
            contents,
            range,
            words_alike: 0,
            goes_on: false,
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

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use sortmill_io::frame::Header;

    use super::super::Whereabouts;
    use super::*;
    use crate::batch::{Batch, Offsets};
    use crate::fingerprint::Fingerprint;
    use crate::order::{Format, KeyPart, Order};

    /// What the keys of records that are their keys, of one byte, lie between.
    fn span(keys: &[u8]) -> KeySpan {
        let order = Order::new(Format::Fixed(1), &[KeyPart::plain(0, 1)]).unwrap();
        let offsets: Vec<u32> = (0..=keys.len() as u32).collect();
        let batch = Batch {
            chunk: 0,
            bytes: keys,
            offsets: Offsets::Each(&offsets),
            fingerprint: Fingerprint::default(),
        };
        let rows: Vec<u32> = (0..keys.len() as u32).collect();
        KeySpan::of(&order, &batch, &rows)
    }

    /// A partition with a block for each of these keys, `None` if nothing is kept of one, with `keys` of all.
    fn content(blocks: &[Option<&[u8]>], keys: Option<&[u8]>) -> Arc<Content> {
        let block = |keys: &Option<&[u8]>| Block {
            header: Header::default(),
            whereabouts: Whereabouts::Leaving,
            chunks: 0..1,
            keys: keys.map(|keys| Box::new(span(keys))),
        };
        let blocks = blocks.iter().map(block).collect();
        Arc::new(Content::new(0, blocks, keys.map(span), (0, 0)))
    }

    fn wanted(content: &Arc<Content>, from: &[u8], to: &[u8]) -> usize {
        let at = |key: &[u8]| Boundary {
            key: key.to_vec(),
            chunk: 0,
        };
        let found = Content::between(content, Some(&at(from)), Some(&at(to)));
        found.map_or(0, |content| content.blocks.len())
    }

    /// There is no room to know the keys of each block of a stream that goes on and on. Without the partition's own, each
    /// part of what was divided would read all that lacks them.
    #[test]
    fn a_block_of_unknown_keys_has_those_of_its_partition() {
        let some = content(&[Some(b"bc"), None, Some(b"ef")], Some(b"bf"));
        assert_eq!(wanted(&some, b"a", b"b"), 0);
        assert_eq!(wanted(&some, b"b", b"d"), 2);
        assert_eq!(wanted(&some, b"d", b"e"), 1);
        assert_eq!(wanted(&some, b"e", b"z"), 2);
        assert_eq!(wanted(&some, b"g", b"z"), 0);
        let none = content(&[Some(b"bc"), None], None);
        assert_eq!(wanted(&none, b"g", b"z"), 1);
    }
}
