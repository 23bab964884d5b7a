//! Blocks on their way out of memory: a queue of those that wait for the disk, from which threads with nothing else to do
//! take some to compress them.
//!
//! ```text
//!            evicted                                            written, in the order of eviction
//!  partitions ------> | plain blocks ....................... | -------> [spill]
//!                       ^ first: forced            last: auto ^             ^
//!                       |                                     |             |
//!                       +----- [threads that would wait] -----+--> ready ---+
//! ```
//!
//! **auto** ([`auto`]): a block is compressed only while threads would wait anyway, and only where that is because the disk
//! takes blocks more slowly than they come: then its time, which is what all wait for, goes to fewer bytes. Threads take the
//! block that would wait longest, the spiller the one that has; so disk and processors both work, and nobody waits for who
//! compresses. **lz4, zstd**: all blocks are compressed; threads that would wait take the one that is written next, and the
//! spiller does what they have no time for.

mod auto;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sortmill_io::Buffer;
use sortmill_io::codec::BlockCodec;
use sortmill_io::frame::{Header, Packed};
use sortmill_io::sync::{Arc, Condvar, Mutex, lock, wait};

use crate::job::CompressTemp;
use crate::plan::TempPacking;
use crate::queue::Stop;

use auto::Auto;

/// A block on its way to the temporary file.
pub struct SpillBlock {
    /// The memory; free again when written.
    pub buffer: Buffer,
    /// What the block's header will say.
    pub header: Header,
    /// The region of the output's space that it goes to, if temporary data lie there and it has one.
    pub region: Option<u32>,
    /// How it is compressed, if it is.
    pub packed: Option<Packed>,
    /// Whether it has been compressed, or found not to shrink.
    pub is_ready: bool,
}

/// What became of blocks that left memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Spilled {
    /// How many there were.
    pub blocks: u64,
    /// How many of them were compressed.
    pub packed_blocks: u64,
    /// Bytes that all would have taken on disk.
    pub plain_bytes: u64,
    /// Bytes that they took.
    pub stored_bytes: u64,
}

impl Spilled {
    /// Adds what became of others.
    pub fn merge(&mut self, other: &Self) {
        self.blocks += other.blocks;
        self.packed_blocks += other.packed_blocks;
        self.plain_bytes += other.plain_bytes;
        self.stored_bytes += other.stored_bytes;
    }
}

/// The queue. Cloning shares it. It is never full: there are no more blocks than memory has.
#[derive(Clone)]
pub struct Spills {
    shared: Arc<Shared>,
}

struct Shared {
    how: CompressTemp,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Numbers blocks in the order of eviction.
    next: u64,
    plain: BTreeMap<u64, SpillBlock>,
    ready: BTreeMap<u64, SpillBlock>,
    /// Blocks that are being compressed.
    in_hand: usize,
    closed: bool,
    aborted: bool,
    auto: Auto,
}

/// A block that was taken to be compressed, to be put back with its number.
pub struct InHand {
    number: u64,
    /// The block.
    pub block: SpillBlock,
    /// By what.
    pub codec: BlockCodec,
}

impl Spills {
    /// No blocks yet, to be compressed as `packing` says, if at all, by `worker_count` threads.
    #[must_use]
    pub fn new(packing: Option<TempPacking>, worker_count: usize) -> Self {
        let knows_zstd = packing.is_some_and(|packing| packing.has_zstd);
        Self {
            shared: Arc::new(Shared {
                how: packing.map_or(CompressTemp::None, |packing| packing.how),
                state: Mutex::new(State {
                    next: 0,
                    plain: BTreeMap::new(),
                    ready: BTreeMap::new(),
                    in_hand: 0,
                    closed: false,
                    aborted: false,
                    auto: Auto::new(worker_count, knows_zstd),
                }),
                changed: Condvar::new(),
            }),
        }
    }

    /// Appends blocks. `false` if nobody takes any more: they are dropped.
    #[must_use]
    pub fn push(&self, blocks: Vec<SpillBlock>) -> bool {
        let mut state = lock(&self.shared.state);
        if state.closed {
            return false;
        }
        for block in blocks {
            let number = state.next;
            state.next += 1;
            state.plain.insert(number, block);
        }
        drop(state);
        self.shared.changed.notify_all();
        true
    }

    /// Waits for a block to be written. `None` once the queue is closed and empty, and no block is in anybody's hands.
    #[must_use]
    pub fn pop(&self) -> Option<SpillBlock> {
        let mut state = lock(&self.shared.state);
        loop {
            if let Some(block) = state.pop(self.shared.how) {
                return Some(block);
            }
            if state.closed && (state.in_hand == 0 || state.aborted) {
                return None;
            }
            state = wait(&self.shared.changed, state);
        }
    }

    /// A block to be written, if there is one now.
    #[must_use]
    pub fn try_pop(&self) -> Option<SpillBlock> {
        lock(&self.shared.state).pop(self.shared.how)
    }

    /// A block to be compressed by a thread that would wait otherwise, if that is worth while `now_ns`. It must be put
    /// back.
    #[must_use]
    pub fn take_to_pack(&self, now_ns: u64) -> Option<InHand> {
        let mut state = lock(&self.shared.state);
        let (number, block, codec) = match self.shared.how {
            CompressTemp::Auto if state.plain.len() > LEFT_FOR_DISK => {
                let codec = state.auto.for_waiting(now_ns)?;
                let (number, block) = state.plain.pop_last()?;
                (number, block, codec)
            }
            CompressTemp::Auto | CompressTemp::None => return None,
            CompressTemp::Lz4 | CompressTemp::Zstd | CompressTemp::Program => {
                let (number, block) = state.plain.pop_first()?;
                (number, block, self.shared.how.codec()?)
            }
        };
        state.in_hand += 1;
        Some(InHand {
            number,
            block,
            codec,
        })
    }

    /// By what who writes blocks is to compress one first that nobody else has, `now_ns`, if that is to be; what came of
    /// it is to be [told](Spills::tried).
    #[must_use]
    pub fn codec_before_writing(&self, now_ns: u64) -> Option<BlockCodec> {
        match self.shared.how {
            CompressTemp::Auto => lock(&self.shared.state).auto.for_writing(now_ns),
            how => how.codec(),
        }
    }

    /// Who writes blocks has tried to compress one.
    pub fn tried(&self, has_shrunk: bool) {
        lock(&self.shared.state).auto.tried(has_shrunk);
    }

    /// Puts a block back that was taken, ready to be written, `now_ns`; compressing it has taken `worked_ns`.
    pub fn put_back(&self, taken: InHand, now_ns: u64, worked_ns: u64) {
        let InHand {
            number, mut block, ..
        } = taken;
        block.is_ready = true;
        let mut state = lock(&self.shared.state);
        state.in_hand -= 1;
        state.auto.worked(now_ns, worked_ns);
        state.auto.tried(block.packed.is_some());
        if !state.aborted {
            state.ready.insert(number, block);
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Whether blocks wait to be written: who waits meanwhile may well wait for the disk.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.shared.how == CompressTemp::Auto && {
            let state = lock(&self.shared.state);
            !state.plain.is_empty() || !state.ready.is_empty()
        }
    }

    /// A thread has waited for the disk for `waited_ns`, until `now_ns`.
    pub fn waited(&self, now_ns: u64, waited_ns: u64) {
        if self.shared.how == CompressTemp::Auto {
            lock(&self.shared.state).auto.waited(now_ns, waited_ns);
        }
    }

    /// No more blocks will come; those inside can still be taken.
    pub fn close(&self) {
        lock(&self.shared.state).closed = true;
        self.shared.changed.notify_all();
    }

    /// Blocks come again, unless the job is ending.
    pub fn reopen(&self, stop: &Stop) {
        lock(&self.shared.state).closed = false;
        // Whoever ends the job from now on closes it again.
        if stop.is_stopped() {
            self.abort();
        }
    }

    /// No more blocks will come or go: those inside are dropped.
    pub fn abort(&self) {
        let mut state = lock(&self.shared.state);
        state.closed = true;
        state.aborted = true;
        let dropped = (
            std::mem::take(&mut state.plain),
            std::mem::take(&mut state.ready),
        );
        drop(state);
        self.shared.changed.notify_all();
        drop(dropped);
    }
}

/// So many blocks are left for the disk to go on with, beside those that are on their way to it.
const LEFT_FOR_DISK: usize = 1;

impl State {
    /// The next block to be written.
    fn pop(&mut self, how: CompressTemp) -> Option<SpillBlock> {
        let first_plain = self.plain.first_key_value().map(|(number, _)| *number);
        let first_ready = self.ready.first_key_value().map(|(number, _)| *number);
        let takes_ready = match (first_ready, first_plain) {
            (Some(_), None) => true,
            (Some(ready), Some(plain)) => how.is_forced() || ready < plain,
            (None, _) => false,
        };
        let from = match takes_ready {
            true => &mut self.ready,
            false => &mut self.plain,
        };
        from.pop_first().map(|(_, block)| block)
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use sortmill_io::Pool;

    use super::auto::STRETCH_NS;
    use super::*;

    const PACKED: Option<Packed> = Some(Packed {
        codec: BlockCodec::Lz4,
        bytes: 1,
    });

    /// `count` blocks, numbered in their headers.
    fn blocks(pool: &Pool, count: usize) -> Vec<SpillBlock> {
        let block = |sequence| SpillBlock {
            buffer: pool.take().unwrap(),
            header: Header {
                sequence,
                ..Header::default()
            },
            region: None,
            packed: None,
            is_ready: false,
        };
        (0..count as u32).map(block).collect()
    }

    fn packing(how: CompressTemp) -> Option<TempPacking> {
        (how != CompressTemp::None).then_some(TempPacking {
            how,
            has_zstd: true,
            packer_count: 1,
        })
    }

    fn filled(how: CompressTemp, pool: &Pool, count: usize) -> Spills {
        let spills = Spills::new(packing(how), 1);
        assert!(spills.push(blocks(pool, count)));
        spills
    }

    fn popped(spills: &Spills) -> Vec<u32> {
        let pop = || spills.try_pop().map(|block| block.header.sequence);
        std::iter::from_fn(pop).collect()
    }

    /// A thread that has waited all the time.
    fn idle(spills: &Spills) {
        spills.waited(0, 0);
        spills.waited(STRETCH_NS, STRETCH_NS);
    }

    #[test]
    fn without_compression_none_is_given_out() {
        let pool = Pool::new(8, 4096).unwrap();
        let spills = filled(CompressTemp::None, &pool, 8);
        idle(&spills);
        assert!(spills.take_to_pack(STRETCH_NS).is_none());
        assert_eq!(popped(&spills), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(pool.free_count(), 8, "dropped as they were popped");
    }

    #[test]
    fn auto_takes_the_last_and_writes_in_order() {
        let pool = Pool::new(8, 4096).unwrap();
        let spills = filled(CompressTemp::Auto, &pool, 7);
        assert!(spills.take_to_pack(0).is_none(), "nobody knows of slack");
        idle(&spills);
        let mut taken = Vec::new();
        while let Some(one) = spills.take_to_pack(STRETCH_NS) {
            taken.push(one);
        }
        let numbers: Vec<u32> = taken.iter().map(|one| one.block.header.sequence).collect();
        assert_eq!(numbers, [6, 5, 4, 3, 2, 1], "one is left for the disk");
        let mut last = taken.remove(0);
        last.block.packed = PACKED;
        spills.put_back(last, STRETCH_NS, 1);
        assert_eq!(popped(&spills), [0, 6]);
        for one in taken {
            spills.put_back(one, STRETCH_NS, 1);
        }
        assert_eq!(popped(&spills), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn who_writes_is_told_by_what() {
        let spills = |how| Spills::new(packing(how), 1);
        let before = |how| spills(how).codec_before_writing(0);
        assert_eq!(before(CompressTemp::None), None);
        assert_eq!(before(CompressTemp::Auto), None, "nobody knows of slack");
        assert_eq!(before(CompressTemp::Lz4), Some(BlockCodec::Lz4));
        assert_eq!(before(CompressTemp::Zstd), Some(BlockCodec::Zstd));
        let auto = spills(CompressTemp::Auto);
        idle(&auto);
        assert_eq!(auto.codec_before_writing(STRETCH_NS), Some(BlockCodec::Lz4));
        auto.tried(false);
        assert_eq!(auto.codec_before_writing(STRETCH_NS), None, "not at once");
    }

    #[test]
    fn forced_takes_the_first_and_writes_what_is_ready_before_the_rest() {
        let pool = Pool::new(8, 4096).unwrap();
        let spills = filled(CompressTemp::Zstd, &pool, 6);
        let first = spills.take_to_pack(0).unwrap();
        let second = spills.take_to_pack(0).unwrap();
        assert_eq!(first.block.header.sequence, 0);
        spills.put_back(second, 0, 0);
        let next = spills.try_pop().unwrap();
        assert_eq!((next.header.sequence, next.is_ready), (1, true));
        let next = spills.try_pop().unwrap();
        assert_eq!((next.header.sequence, next.is_ready), (2, false));
        spills.put_back(first, 0, 0);
        assert_eq!(popped(&spills), [0, 3, 4, 5]);
    }

    /// A closed queue is not at its end before what is in somebody's hands has come back.
    #[test]
    fn who_pops_waits_for_who_packs() {
        let pool = Pool::new(2, 4096).unwrap();
        let spills = filled(CompressTemp::Lz4, &pool, 1);
        let taken = spills.take_to_pack(0).unwrap();
        spills.close();
        assert!(!spills.push(blocks(&pool, 1)), "closed");
        std::thread::scope(|scope| {
            let popping = scope.spawn(|| spills.pop().is_some());
            spills.put_back(taken, 0, 0);
            assert!(popping.join().unwrap());
        });
        assert!(spills.pop().is_none());
    }

    #[test]
    fn an_aborted_queue_waits_for_nobody_and_keeps_nothing() {
        let pool = Pool::new(4, 4096).unwrap();
        let spills = filled(CompressTemp::Lz4, &pool, 4);
        let taken = spills.take_to_pack(0).unwrap();
        std::thread::scope(|scope| {
            let popping = scope.spawn(|| while spills.pop().is_some() {});
            spills.abort();
            popping.join().unwrap();
        });
        spills.put_back(taken, 0, 0);
        assert_eq!(pool.free_count(), 4);
        assert!(spills.take_to_pack(0).is_none());
    }
}
