//! Long records on their way into partitions: their bytes into bodies, stubs in their place.
//!
//! The reader fills a body with a record that goes on and on, a worker with one that it has whole. Either has one
//! open block at a time; a full one can be evicted at once. So a record may be longer than what is free, and threads
//! never wait for each other's memory.

use sortmill_io::Buffer;
use sortmill_io::frame::HEADER_BYTES;
use sortmill_io::sync::atomic::Ordering;
use sortmill_io::sync::lock;

use super::Partitions;
use crate::block::Open;
use crate::error::Result;
use crate::long::{Long, Longs, Stub, Summed, Summing, Whole, short_of_fixed, short_of_line};
use crate::metrics::{Meter, Stage};
use crate::order::Format;

/// Where a body is filled.
#[derive(Default)]
struct Filling {
    /// The body's number, once a block is full.
    body: Option<u32>,
    /// The block that is being filled, and where it goes on.
    open: Option<(Buffer, usize)>,
}

impl Partitions<'_> {
    /// Appends a record that the caller has whole.
    pub(super) fn append_long(
        &self,
        id: u32,
        chunk: u64,
        record: &[u8],
        spare: &mut Option<Buffer>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let order = &self.plan.order;
        let summed = match order.format() {
            Format::Fixed(_) => short_of_fixed(order, record, self.plan.head_bytes),
            Format::Lines | Format::Quoted(_) if order.key_from().is_none() => {
                short_of_line(order, record, self.plan.head_bytes)
            }
            Format::Lines | Format::Quoted(_) | Format::Kv => {
                let mut summing = Summing::new(order, self.plan.head_bytes, self.job);
                summing.add(record);
                summing.end()
            }
        };
        let mut filling = Filling::default();
        self.fill(&mut filling, record, Stage::Partition, meter)?;
        let body = self.end(&mut filling);
        self.append_stub(id, chunk, &summed.stub(body), spare, meter)
    }

    /// Appends the stub of a record of which a body has been made.
    ///
    /// # Errors
    /// The job's, when it is ending.
    pub fn append_stub(
        &self,
        id: u32,
        chunk: u64,
        stub: &Stub<'_>,
        spare: &mut Option<Buffer>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let partition = self.partition(id);
        loop {
            if spare.is_none() {
                *spare = Some(self.take_block(Stage::Partition, meter)?);
            }
            let mut state = lock(&partition.state);
            if state.open.is_none() {
                state.open = spare.take().map(Open::new);
            }
            let open = state.open.as_mut().expect("just made");
            let has_room = (open.records() as usize) < self.plan.block_records_max;
            if has_room && open.put_stub(chunk, stub) {
                self.received.fetch_add(stub.bytes, Ordering::Relaxed);
                state.records += 1;
                state.bytes += stub.bytes;
                state.held_bytes += stub.put_bytes() as u64;
                return Ok(());
            }
            self.close_open(&partition, &mut state);
        }
    }

    /// Puts the next part of a record into its body.
    fn fill(
        &self,
        filling: &mut Filling,
        mut part: &[u8],
        stage: Stage,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        while !part.is_empty() {
            if filling
                .open
                .as_ref()
                .is_some_and(|(buffer, used)| *used == buffer.len())
            {
                self.end(filling);
            }
            if filling.open.is_none() {
                filling.open = Some((self.take_block(stage, meter)?, HEADER_BYTES));
            }
            let (buffer, used) = filling.open.as_mut().expect("just made");
            let count = part.len().min(buffer.len() - *used);
            buffer[*used..*used + count].copy_from_slice(&part[..count]);
            *used += count;
            part = &part[count..];
        }
        Ok(())
    }

    /// Ends the open block. Answers the body's number.
    fn end(&self, filling: &mut Filling) -> u32 {
        let body = *filling.body.get_or_insert_with(|| self.bodies.begin());
        if let Some((buffer, used)) = filling.open.take() {
            self.bodies.add(body, self.job, used - HEADER_BYTES, buffer);
        }
        body
    }

    /// Sends the oldest full blocks of bodies to disk, `count` if there are as many. Answers how many.
    pub(super) fn evict_bodies(&self, count: usize) -> Result<usize> {
        let mut full = Vec::new();
        while full.len() < count
            && let Some(block) = self.bodies.evict_oldest()
        {
            full.push(block);
        }
        let evicted = full.len();
        self.send(full)?;
        Ok(evicted)
    }
}

/// Puts the records that outgrow the reader's room into bodies, as they come.
pub struct BodyLongs<'a> {
    partitions: &'a Partitions<'a>,
    summing: Option<Summing>,
    filling: Filling,
}

impl<'a> BodyLongs<'a> {
    /// Into bodies beside `partitions`.
    #[must_use]
    pub fn new(partitions: &'a Partitions<'a>) -> Self {
        Self {
            partitions,
            summing: None,
            filling: Filling::default(),
        }
    }
}

impl Longs for BodyLongs<'_> {
    /// Blocks come back from the spiller, which waits for nobody.
    fn has_room(&self) -> bool {
        true
    }

    fn append(&mut self, part: &[u8], meter: &mut Meter<'_>) -> Result<()> {
        let Partitions { plan, job, .. } = *self.partitions;
        let begin = || Summing::new(&plan.order, plan.head_bytes, job);
        self.summing.get_or_insert_with(begin).add(part);
        self.partitions
            .fill(&mut self.filling, part, Stage::Read, meter)
    }

    fn end(&mut self) -> Long {
        let summed: Summed = self.summing.take().expect("a record was begun").end();
        let mut filling = std::mem::take(&mut self.filling);
        // One that fits a block after all is distributed as any other.
        if filling.body.is_none()
            && summed.bytes <= self.partitions.long_from() as u64
            && let Some((buffer, used)) = filling.open.take()
        {
            return Long::Whole(Whole::new(buffer, HEADER_BYTES..used));
        }
        Long::Body(self.partitions.end(&mut filling), summed)
    }

    fn forget(&mut self) {
        self.summing = None;
        let filling = std::mem::take(&mut self.filling);
        if let Some(body) = filling.body {
            drop(self.partitions.bodies.take(body));
        }
    }
}
