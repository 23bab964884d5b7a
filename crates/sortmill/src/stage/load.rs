//! Partitions back to memory, in the order of their ranges.
//!
//! One thread owns the ring and reads ahead as far as there are free blocks, across units, so that no
//! device waits for the sorters, and from each device only so much at a time. What is in memory already is passed on as it is.

use std::collections::VecDeque;

use sortmill_io::frame::Header;
use sortmill_io::sync::Arc;
use sortmill_io::{Buffer, Done, File, Op, OpKind, Os, Pool, Ring};

use crate::block::Stored;
use crate::error::{Error, Result};
use crate::metrics::{Meter, Stage, State};
use crate::partitions::{Unit, Whereabouts};
use crate::places::Places;
use crate::queue::{Queue, Stop};

/// A block in memory.
#[derive(Clone)]
pub struct LoadedBlock {
    /// What its header must say.
    pub header: Header,
    /// Its bytes.
    pub buffer: Arc<Buffer>,
    /// Where among the temporary data it came from, and how it lay there, if it did.
    pub stored: Option<Stored>,
    /// Whether it is still to be checked and, if it is compressed, to be decompressed.
    pub is_unchecked: bool,
}

/// A unit whose blocks are all in memory.
pub struct LoadedUnit {
    /// Its number, in the order of ranges.
    pub number: usize,
    /// What it is.
    pub unit: Unit,
    /// Its blocks, those of ancestors first, each partition's in the order they were filled.
    pub blocks: Vec<LoadedBlock>,
}

/// What the loader works with.
pub struct Loader<'a> {
    /// Memory for blocks.
    pub pool: &'a Pool,
    /// The temporary files, as far as anything was spilled.
    pub files: &'a [Option<Arc<File>>],
    /// Where loaded units go.
    pub loaded: &'a Queue<LoadedUnit>,
    /// Told of each unit that is loaded.
    pub places: &'a Places,
    /// Ends the job.
    pub stop: &'a Stop,
    ring: Option<Box<dyn Ring>>,
    /// How many reads of each file may be in flight, and are.
    depths: &'a [usize],
    in_flight: Vec<usize>,
    /// Units whose blocks have been asked for, in order.
    begun: VecDeque<Begun>,
}

struct Begun {
    number: usize,
    unit: Unit,
    blocks: Vec<Option<LoadedBlock>>,
    missing: usize,
}

impl<'a> Loader<'a> {
    /// A loader with at most as many reads of each file in flight as `depths` says.
    ///
    /// # Errors
    /// When the kernel refuses a ring.
    pub fn new(
        os: &dyn Os,
        depths: &'a [usize],
        pool: &'a Pool,
        files: &'a [Option<Arc<File>>],
        loaded: &'a Queue<LoadedUnit>,
        places: &'a Places,
        stop: &'a Stop,
    ) -> Result<Self> {
        let ring = files
            .iter()
            .flatten()
            .next()
            .map(|file| {
                os.ring_over(depths.iter().sum(), depths.len())
                    .map_err(|error| Error::io("starting to read", &file.path, &error))
            })
            .transpose()?;
        Ok(Self {
            pool,
            files,
            loaded,
            places,
            stop,
            ring,
            depths,
            in_flight: vec![0; depths.len()],
            begun: VecDeque::new(),
        })
    }

    /// Begins to load a unit; returns when all its reads are on their way.
    ///
    /// # Errors
    /// A read that failed, or the job's when it is ending.
    pub fn load(&mut self, number: usize, unit: Unit, meter: &mut Meter<'_>) -> Result<()> {
        let blocks: Vec<Option<LoadedBlock>> = unit
            .blocks()
            .map(|block| match &block.whereabouts {
                Whereabouts::Memory(buffer) => Some(LoadedBlock {
                    header: block.header,
                    buffer: Arc::clone(buffer),
                    stored: None,
                    is_unchecked: false,
                }),
                Whereabouts::Leaving | Whereabouts::Disk(_) => None,
            })
            .collect();
        let wanted: Vec<(usize, Stored, usize)> = unit
            .blocks()
            .enumerate()
            .filter_map(|(index, block)| Some((index, block.on_disk()?, block.disk_bytes())))
            .collect();
        self.begun.push_back(Begun {
            number,
            unit,
            missing: wanted.len(),
            blocks,
        });
        let unit_tag = (number as u64) << 32;
        for (index, Stored { spot, .. }, bytes) in wanted {
            let buffer = self.free_block(spot.folder, meter)?;
            let file = self.files[spot.folder].as_ref();
            let file = Arc::clone(file.expect("blocks on disk have a file"));
            self.ring().line_up(Op {
                kind: OpKind::Read,
                file,
                offset: spot.offset,
                buffer,
                range: 0..bytes,
                tag: unit_tag | index as u64,
            });
            self.in_flight[spot.folder] += 1;
            meter.submitted(bytes);
        }
        if let Some(ring) = &mut self.ring {
            ring.start();
        }
        self.pass_on(meter)
    }

    /// Waits until every unit begun so far is loaded and passed on.
    ///
    /// # Errors
    /// As [`Loader::load`].
    pub fn settle(&mut self, meter: &mut Meter<'_>) -> Result<()> {
        while !self.begun.is_empty() {
            self.land(meter)?;
        }
        Ok(())
    }

    fn ring(&mut self) -> &mut dyn Ring {
        &mut **self.ring.as_mut().expect("blocks on disk have a ring")
    }

    /// A free block for a read of file number `folder`, landing reads while there is none.
    fn free_block(&mut self, folder: usize, meter: &mut Meter<'_>) -> Result<Buffer> {
        loop {
            if self.in_flight[folder] < self.depths[folder]
                && let Some(buffer) = self.pool.try_take()
            {
                return Ok(buffer);
            }
            if self.ring().in_flight() > 0 {
                self.land(meter)?;
                continue;
            }
            meter.lap(Stage::Load, State::Work);
            let buffer = self.pool.take();
            meter.lap(Stage::Load, State::Memory);
            return buffer.ok_or_else(|| self.stop.error());
        }
    }

    /// Waits for a read, and takes all that have ended by then.
    fn land(&mut self, meter: &mut Meter<'_>) -> Result<()> {
        meter.lap(Stage::Load, State::Work);
        let first = self.ring().complete(true).expect("a read is in flight");
        meter.lap(Stage::Load, State::Device);
        self.landed(first, meter)?;
        while let Some(done) = self.ring().complete(false) {
            self.landed(done, meter)?;
        }
        self.pass_on(meter)
    }

    fn landed(&mut self, done: Done, meter: &mut Meter<'_>) -> Result<()> {
        meter.completed(done.op.range.len());
        let path = &done.op.file.path;
        let moved = done.result.map_err(|error| {
            Error::io("reading back temporary data", path, &error).offset(done.op.offset)
        })?;
        // A file that is shorter than it was shows as a block that does not open.
        let (number, index) = ((done.op.tag >> 32) as usize, done.op.tag as u32 as usize);
        let mut buffer = done.op.buffer;
        let asked = done.op.range.len();
        buffer[moved..asked].fill(0);
        meter.read(asked as u64);
        let first = self.begun.front().expect("a unit waits for it").number;
        let begun = &mut self.begun[number - first];
        let block = begun.unit.blocks().nth(index);
        let block = block.expect("the block was asked for");
        let header = block.header;
        let stored = block.on_disk().expect("it was read from a file");
        self.in_flight[stored.spot.folder] -= 1;
        begun.blocks[index] = Some(LoadedBlock {
            header,
            buffer: Arc::new(buffer),
            stored: Some(stored),
            is_unchecked: true,
        });
        begun.missing -= 1;
        let totals = meter.stage(Stage::Load);
        totals.bytes_in += moved as u64;
        totals.bytes_out += u64::from(header.payload_bytes);
        totals.records_in += u64::from(header.record_count);
        totals.records_out += u64::from(header.record_count);
        Ok(())
    }

    /// Passes on the units at the front that are complete.
    fn pass_on(&mut self, meter: &mut Meter<'_>) -> Result<()> {
        while self.begun.front().is_some_and(|begun| begun.missing == 0) {
            let begun = self.begun.pop_front().expect("it is there");
            let blocks = begun.blocks.into_iter().flatten().collect();
            self.places.loaded(begun.number);
            meter.lap(Stage::Load, State::Work);
            let sent = self.loaded.push(LoadedUnit {
                number: begun.number,
                unit: begun.unit,
                blocks,
            });
            meter.lap(Stage::Load, State::Output);
            sent.map_err(|_| self.stop.error())?;
        }
        Ok(())
    }
}
