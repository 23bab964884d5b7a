//! The bodies of long records: blocks that hold nothing else, from the moment a record is read until it is written.
//!
//! Full blocks wait in memory as those of partitions do and are the first to be evicted, the oldest first: nobody
//! needs them before the output is gathered. What was evicted lies behind the output or in the temporary file and is
//! never moved. Each worker reads bodies back by itself, into a few blocks of its own, so that no worker waits for
//! memory that another has.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

use sortmill_io::frame::{HEADER_BYTES, Header};
use sortmill_io::os::Done;
use sortmill_io::sync::atomic::{AtomicUsize, Ordering as Memory};
use sortmill_io::sync::{Arc, Mutex, RwLock, lock};
use sortmill_io::{Buffer, Op, OpKind, Os, Pool, Ring};
use xxhash_rust::xxh3::Xxh3;

use crate::block::Stored;
use crate::error::{Error, ErrorKind, Result};
use crate::long::{Item, Stub};
use crate::metrics::{Meter, Stage, State};
use crate::order::Order;
use crate::packing::{self, Packers};
use crate::partitions::{Block, Whereabouts};
use crate::spills::SpillBlock;
use crate::temps::Temps;

/// The partition number that marks a block as part of a body; the body's own number is added.
const BODY: u32 = 1 << 30;

/// All bodies of a job.
#[derive(Default)]
pub struct Bodies {
    list: RwLock<Vec<Arc<Body>>>,
    /// Full blocks in memory, by body and index, the oldest first.
    waiting: Mutex<VecDeque<(u32, usize)>>,
    /// Bodies below this one have been taken.
    taken: AtomicUsize,
}

/// One long record's blocks, in order. All but the last are full.
#[derive(Default)]
pub struct Body {
    blocks: Mutex<Vec<Block>>,
}

impl Bodies {
    /// A new body: its number.
    #[must_use]
    pub fn begin(&self) -> u32 {
        let mut list = self.list.write().expect("no thread panicked");
        let number = u32::try_from(list.len()).expect("fewer than 2^30 bodies");
        assert!(number < BODY, "fewer than 2^30 bodies");
        list.push(Arc::default());
        number
    }

    /// How many have been begun so far.
    #[must_use]
    pub fn begun(&self) -> u64 {
        self.list.read().expect("no thread panicked").len() as u64
    }

    /// How many there are, those that were not wanted left out.
    #[must_use]
    pub fn count(&self) -> usize {
        let list = self.list.read().expect("no thread panicked");
        list.iter()
            .filter(|body| !lock(&body.blocks).is_empty())
            .count()
    }

    /// Adds the next `payload_bytes` of body `number`, which lie behind the room for a header.
    pub fn add(&self, number: u32, job: u64, payload_bytes: usize, buffer: Buffer) {
        let body = self.get(number);
        let mut blocks = lock(&body.blocks);
        let header = Header {
            job,
            attempt: 0,
            node: 0,
            partition: BODY + number,
            sequence: u32::try_from(blocks.len()).expect("fewer than 2^32 blocks"),
            record_count: 0,
            payload_bytes: u32::try_from(payload_bytes).expect("a block is below 4 GiB"),
        };
        blocks.push(Block {
            header,
            whereabouts: Whereabouts::Memory(Arc::new(buffer)),
            chunks: 0..0,
            keys: None,
        });
        lock(&self.waiting).push_back((number, blocks.len() - 1));
    }

    /// Takes the oldest block that is in memory out of it.
    #[must_use]
    pub fn evict_oldest(&self) -> Option<SpillBlock> {
        loop {
            let (number, index) = lock(&self.waiting).pop_front()?;
            let body = self.get(number);
            let mut blocks = lock(&body.blocks);
            // A body that was not wanted is empty.
            if let Some(block) = blocks.get_mut(index) {
                return block.leave(None);
            }
        }
    }

    /// The number of the body that the block with this header is of, if it is of one.
    #[must_use]
    pub fn number_of(header: &Header) -> Option<u32> {
        header.partition.checked_sub(BODY)
    }

    /// Block `index` of body `number` has got its place on disk. Of a body that was not wanted nobody asks for it.
    pub fn placed(&self, number: u32, index: u32, stored: Stored) {
        let body = self.get(number);
        if let Some(block) = lock(&body.blocks).get_mut(index as usize) {
            block.placed(stored);
        }
    }

    /// Takes away all blocks of a body.
    #[must_use]
    pub fn take(&self, number: u32) -> Vec<Block> {
        std::mem::take(&mut *lock(&self.get(number).blocks))
    }

    /// Blocks in memory, and bytes of the others in the temporary file, while nobody begins a body. A job that asks
    /// often does not look at those again that it has taken, which mostly are the first.
    #[must_use]
    pub fn held(&self) -> (usize, u64) {
        let (mut in_memory, mut disk_bytes) = (0, 0);
        let list = self.list.read().expect("no thread panicked");
        let taken = self.taken.load(Memory::SeqCst);
        let is_empty = |body: &&Arc<Body>| lock(&body.blocks).is_empty();
        let taken = taken + list[taken..].iter().take_while(is_empty).count();
        self.taken.store(taken, Memory::SeqCst);
        for body in &list[taken..] {
            for block in &*lock(&body.blocks) {
                match block.whereabouts {
                    Whereabouts::Memory(_) => in_memory += 1,
                    Whereabouts::Leaving | Whereabouts::Disk(_) => {
                        disk_bytes += block.disk_bytes() as u64;
                    }
                }
            }
        }
        (in_memory, disk_bytes)
    }

    fn get(&self, number: u32) -> Arc<Body> {
        let list = self.list.read().expect("no thread panicked");
        Arc::clone(&list[number as usize])
    }
}

/// Reads bodies back for one thread.
pub struct BodyReader<'a> {
    means: Means<'a>,
    /// Memory and ring, from the first block on that has to be read.
    way: Option<(Pool, Box<dyn Ring>)>,
}

/// The payload of a block.
enum Payload {
    Kept(Arc<Buffer>, usize),
    Read(Buffer, usize),
}

impl std::ops::Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Kept(buffer, bytes) => &buffer[HEADER_BYTES..HEADER_BYTES + bytes],
            Self::Read(buffer, bytes) => &buffer[HEADER_BYTES..HEADER_BYTES + bytes],
        }
    }
}

/// What a reader works with.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    /// All I/O.
    pub os: &'a dyn Os,
    /// What is read.
    pub bodies: &'a Bodies,
    /// Where those lie that were evicted.
    pub temps: &'a Temps<'a>,
    /// Who decompresses them, if they may be compressed.
    pub packers: Option<&'a Packers>,
    /// The order of the records.
    pub order: &'a Order,
    /// The order of what stands for them.
    pub short_order: &'a Order,
    /// Bytes of a key that stand for all of it.
    pub head_bytes: usize,
    /// Bytes of a block.
    pub block_bytes: usize,
    /// Blocks in the reader's hands.
    pub depth: usize,
}

impl<'a> BodyReader<'a> {
    /// A reader that has not read anything.
    #[must_use]
    pub fn new(means: Means<'a>) -> Self {
        Self { means, way: None }
    }

    /// Hands out the record that `stub` stands for piece by piece, reading ahead, and frees its body. The time counts
    /// under `stage`.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] for one that was handed out before, or does not begin as its stub says; a read that failed, a damaged block, and what
    /// `put` answers.
    pub fn give(
        &mut self,
        stub: &Stub<'_>,
        stage: Stage,
        meter: &mut Meter<'_>,
        mut put: impl FnMut(&[u8], &mut Meter<'_>) -> Result<()>,
    ) -> Result<()> {
        let blocks = self.means.bodies.take(stub.body);
        if blocks.is_empty() {
            return Err(lost("a record came out twice"));
        }
        let mut ahead: VecDeque<(usize, Header, Stored)> = blocks
            .iter()
            .enumerate()
            .filter_map(|(index, block)| Some((index, block.header, block.on_disk()?)))
            .collect();
        let mut landed: BTreeMap<usize, Buffer> = BTreeMap::new();
        for (index, block) in blocks.into_iter().enumerate() {
            let payload = match block.whereabouts {
                Whereabouts::Memory(buffer) => {
                    Payload::Kept(buffer, block.header.payload_bytes as usize)
                }
                Whereabouts::Leaving => unreachable!("all that left memory is on disk by now"),
                Whereabouts::Disk(stored) => {
                    let buffer = loop {
                        self.submit_some(&mut ahead, meter)?;
                        if let Some(buffer) = landed.remove(&index) {
                            break buffer;
                        }
                        let (index, buffer) = self.land(stage, meter)?;
                        landed.insert(index, buffer);
                    };
                    self.open(block.header, stored, buffer)?
                }
            };
            if index == 0 && !self.begins_as(stub, &payload) {
                return Err(lost("a long record is not the one that was sorted"));
            }
            put(&payload, meter)?;
        }
        Ok(())
    }

    /// Whether the key of the record that begins with `piece` begins as `stub` says; where a key may lie anywhere,
    /// nobody can tell.
    fn begins_as(&self, stub: &Stub<'_>, piece: &[u8]) -> bool {
        let Some(from) = self.means.order.key_from() else {
            return true;
        };
        let head = Item::Stub(*stub).head(self.means.short_order, self.means.head_bytes);
        piece.get(from..).is_some_and(|key| key.starts_with(head))
    }

    /// A record as one piece; a body stays where it is.
    fn whole<'r>(
        &mut self,
        item: &Item<'r>,
        stage: Stage,
        meter: &mut Meter<'_>,
    ) -> Result<Cow<'r, [u8]>> {
        let stub = match item {
            Item::Record(record) => return Ok((*record).into()),
            Item::Stub(stub) => stub,
        };
        let mut whole = Vec::new();
        let count = lock(&self.means.bodies.get(stub.body).blocks).len();
        for index in 0..count {
            whole.extend_from_slice(&self.block(stub.body, index, stage, meter)?);
        }
        Ok(whole.into())
    }

    /// Bytes of the record that `stub` stands for and its hash, keyed by `key`; its body is freed.
    ///
    /// # Errors
    /// As [`BodyReader::give`].
    pub fn hash(
        &mut self,
        stub: &Stub<'_>,
        key: u64,
        stage: Stage,
        meter: &mut Meter<'_>,
    ) -> Result<(u64, u64)> {
        let (mut hash, mut bytes) = (Xxh3::with_seed(key), 0);
        self.give(stub, stage, meter, |piece, _| {
            hash.update(piece);
            bytes += piece.len() as u64;
            Ok(())
        })?;
        Ok((bytes, hash.digest()))
    }

    /// The record that `stub` stands for as one piece; its body is freed.
    ///
    /// # Errors
    /// As [`BodyReader::give`].
    pub fn take_whole(
        &mut self,
        stub: &Stub<'_>,
        stage: Stage,
        meter: &mut Meter<'_>,
    ) -> Result<Vec<u8>> {
        let mut whole = Vec::new();
        self.give(stub, stage, meter, |piece, _| {
            whole.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(whole)
    }

    /// Compares the keys of two records, reading their bodies where their heads do not tell.
    ///
    /// # Errors
    /// As [`BodyReader::give`].
    pub fn compare(
        &mut self,
        a: &Item<'_>,
        b: &Item<'_>,
        stage: Stage,
        meter: &mut Meter<'_>,
    ) -> Result<Ordering> {
        if let Some(told) = a.compare_heads(self.means.short_order, self.means.head_bytes, b) {
            return Ok(told);
        }
        if self.means.order.key_from().is_none() {
            let (a, b) = (self.whole(a, stage, meter)?, self.whole(b, stage, meter)?);
            return Ok(self.means.order.compare(&a, &b));
        }
        let at = self.means.head_bytes as u64;
        let mut keys = [a, b].map(|item| Key {
            item: *item,
            at,
            held: None,
        });
        loop {
            for key in &mut keys {
                key.fill(self, stage, meter)?;
            }
            let [x, y] = keys.each_ref().map(|key| key.rest(self));
            let count = x.len().min(y.len());
            let compared = x[..count].cmp(&y[..count]);
            if compared.is_ne() || count == 0 {
                return Ok(compared.then(x.len().cmp(&y.len())));
            }
            for key in &mut keys {
                key.at += count as u64;
            }
        }
    }

    /// Block `index` of a body that stays where it is.
    fn block(
        &mut self,
        number: u32,
        index: usize,
        stage: Stage,
        meter: &mut Meter<'_>,
    ) -> Result<Payload> {
        let block = lock(&self.means.bodies.get(number).blocks)[index].clone();
        match block.whereabouts {
            Whereabouts::Memory(buffer) => {
                Ok(Payload::Kept(buffer, block.header.payload_bytes as usize))
            }
            Whereabouts::Leaving => unreachable!("all that left memory is on disk by now"),
            Whereabouts::Disk(stored) => {
                let mut one = VecDeque::from([(index, block.header, stored)]);
                self.submit_some(&mut one, meter)?;
                let (_, buffer) = self.land(stage, meter)?;
                self.open(block.header, stored, buffer)
            }
        }
    }

    /// Starts as many reads as there is memory for.
    fn submit_some(
        &mut self,
        ahead: &mut VecDeque<(usize, Header, Stored)>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        if ahead.is_empty() {
            return Ok(());
        }
        if self.way.is_none() {
            let wrong = |error: std::io::Error| {
                let doing = "starting to read long records";
                Error::new(ErrorKind::Io, doing, error.to_string())
            };
            let pool = Pool::new(self.means.depth, self.means.block_bytes).map_err(wrong)?;
            let ring = self.means.os.ring(self.means.depth).map_err(wrong)?;
            self.way = Some((pool, ring));
        }
        let (pool, ring) = self.way.as_mut().expect("just made");
        while let Some(&(index, header, stored)) = ahead.front()
            && let Some(buffer) = pool.try_take()
        {
            ahead.pop_front();
            let (bytes, spot) = (stored.disk_bytes(&header), stored.spot);
            ring.submit(Op {
                kind: OpKind::Read,
                file: self.means.temps.file(spot.folder)?,
                offset: spot.offset,
                buffer,
                range: 0..bytes,
                tag: index as u64,
            });
            meter.submitted(bytes);
        }
        Ok(())
    }

    /// Waits for a read: which block it was of.
    fn land(&mut self, stage: Stage, meter: &mut Meter<'_>) -> Result<(usize, Buffer)> {
        let (_, ring) = self.way.as_mut().expect("a read is in flight");
        meter.lap(stage, State::Work);
        let Done { op, result } = ring.complete(true).expect("a read is in flight");
        meter.lap(stage, State::Device);
        let asked = op.range.len();
        meter.completed(asked);
        let moved = result.map_err(|error| {
            Error::io("reading back temporary data", &op.file.path, &error).offset(op.offset)
        })?;
        meter.read(asked as u64);
        meter.stage(Stage::Load).bytes_in += moved as u64;
        let mut buffer = op.buffer;
        // A file that is shorter than it was shows as a block that does not open.
        buffer[moved..asked].fill(0);
        Ok((op.tag as usize, buffer))
    }

    fn open(&self, header: Header, stored: Stored, mut buffer: Buffer) -> Result<Payload> {
        let Means { packers, temps, .. } = self.means;
        packing::open(packers, temps, &header, &stored, &mut buffer)?;
        Ok(Payload::Read(buffer, header.payload_bytes as usize))
    }

    /// Bytes of a record in one block.
    fn piece_bytes(&self) -> u64 {
        (self.means.block_bytes - HEADER_BYTES) as u64
    }
}

fn lost(cause: &str) -> Error {
    Error::new(ErrorKind::Lost, "reading back a long record", cause)
        .hint("This is a fault of sortmill or of this machine's memory. No output was made.")
}

/// A key that is looked at from its beginning on.
struct Key<'a> {
    item: Item<'a>,
    /// How many bytes of it have been seen.
    at: u64,
    /// The block of its body that the next ones lie in.
    held: Option<(usize, Payload)>,
}

impl Key<'_> {
    /// Where in the record it goes on.
    fn place(&self, reader: &BodyReader<'_>) -> u64 {
        reader.means.order.key_from().unwrap_or(0) as u64 + self.at
    }

    /// Sees to it that the next bytes are in memory.
    fn fill(
        &mut self,
        reader: &mut BodyReader<'_>,
        stage: Stage,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let Item::Stub(stub) = self.item else {
            return Ok(());
        };
        let index = (self.place(reader) / reader.piece_bytes()) as usize;
        let is_held = self.held.as_ref().is_some_and(|&(held, _)| held == index);
        if self.at < stub.key_bytes && !is_held {
            self.held = None;
            self.held = Some((index, reader.block(stub.body, index, stage, meter)?));
        }
        Ok(())
    }

    /// The next bytes, none at its end.
    fn rest(&self, reader: &BodyReader<'_>) -> &[u8] {
        match (&self.item, &self.held) {
            (Item::Record(record), _) => {
                let key = reader.means.short_order.plain_key(record);
                &key[key.len().min(self.at as usize)..]
            }
            (Item::Stub(stub), Some((_, payload))) if self.at < stub.key_bytes => {
                let from = (self.place(reader) % reader.piece_bytes()) as usize;
                let left = (stub.key_bytes - self.at) as usize;
                &payload[from..payload.len().min(from + left)]
            }
            (Item::Stub(_), _) => &[],
        }
    }
}
