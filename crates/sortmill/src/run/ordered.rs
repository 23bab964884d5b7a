//! Input that is in order already, in one piece or a few: read once and written once.
//!
//! The sample comes from known places, so it shows whether the input rises or falls in long pieces
//! ([`crate::pieces`]). Then the two phases take turns. A round distributes as many stretches as fit in memory, those
//! with the lowest keys first, and sorts and writes the units below all stretches to come. That goes on until the
//! input is at its end: one pass. Memory holds what each piece is ahead.
//!
//! ```text
//! round 1   read [s1 s2 s3]   units 0 1 2 | 3 begun     write 0 1 2
//! round 2   read [s4 s5 s6]           3 4 5 | 6 begun     write 3 4 5      a record of unit 1 comes: late
//! the rest  read [s7 ...], spill as always, sort and write the rest behind the room for what is late
//! mend      units 5, 4, ... down to 1: written a little further right; unit 1 is made again from the input, with
//!           its late records
//! ```
//!
//! A round reads what it reads of each input from front to back, in parts ([`crate::stage::read::read_apart`]); where a
//! line goes over the end of a part, the parts of later rounds know of it ([`Borders`]). Long lines take more memory than
//! they have bytes, so each round takes as much as the one before shows to fit.
//!
//! Where order ends, with the first late record or where nothing completes a unit any more, nothing else is written
//! early, and the rest takes the two passes that it takes in any job. What was written early is read and written once
//! more at most, from the first unit with late records on. So no byte is read or written more than twice, whatever
//! the input, but for the partition in which copying ([`copy`]) ends: once more. Mending goes downwards, so no unit is written over one that is still to be read.

mod copy;

use sortmill_io::sync::Arc;
use sortmill_io::sync::atomic::Ordering;
use sortmill_io::{ALIGN_BYTES, File, Op, OpKind, align_down};

use super::distribute::{Distributed, Queues, Reads, round};
use super::notice::{Found, room_bytes};
use super::origins::Origins;
use super::proof::check_all_read;
use super::sorting::{self, Sorted, Span};
use super::way::{Since, Way};
use super::{Shared, expected, sampling};
use crate::batch::Goes;
use crate::borders::Borders;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::metrics::Metrics;
use crate::partitions::{BodyLongs, Counts, Partitions, Unit};
use crate::pieces::{NUMBERS_PER_CHUNK, Stretch};
use crate::report::{Order, Took};
use crate::stage::read::{ApartReader, Part, ReadTotals, Source};
use crate::stage::write::{Seams, Target};
use crate::table::{Boundary, Table};

/// What lies between the records of units may be read again, up to a part of the input: one in so many bytes; and as much
/// of lines that are passed over because they began before.
const EXCESS_PART: u64 = 64;
/// A round may take so much more memory than it has bytes before the next one is made smaller: in eighths.
const FILL_EIGHTHS: u64 = 9;

/// Sorts input that was found in order.
///
/// # Errors
/// As any job.
pub fn sort(shared: &Shared<'_>, sources: &[Source], target: &Target, found: Found) -> Result<Way> {
    let copies = found.copies();
    let mut rounds = Rounds::begin(shared, sources, target, found)?;
    if let Some(falls) = copies {
        rounds.copy(falls)?;
    }
    if !rounds.order().is_one_pass {
        rounds.write_early()?;
        let mut places = rounds.write_rest()?;
        if places.late_bytes() > 0 {
            rounds.mend(&mut places)?;
        }
    }
    rounds.end()
}

/// A job in rounds.
struct Rounds<'a> {
    shared: &'a Shared<'a>,
    sources: &'a [Source],
    target: &'a Target,
    /// The output's.
    file: Arc<File>,
    queues: Queues,
    partitions: Partitions<'a>,
    table: Table,
    /// How much of the sample each slot has.
    shares: Vec<u64>,
    stretches: Vec<Stretch>,
    /// Bytes of one without a long line.
    stretch_bytes: u64,
    /// The stretch to be read next.
    next: usize,
    borders: Borders,
    origins: Origins,
    seams: Seams,
    /// What was written of each slot so far, and where the next one begins.
    written: Vec<Fingerprint>,
    base: u64,
    /// What may still be read in excess, and passed over.
    excess_left: u64,
    passed_left: u64,
    /// Of the last large round, its bytes and those of the memory that they took.
    filled: (u64, u64),
    way: Way,
}

impl<'a> Rounds<'a> {
    fn begin(
        shared: &'a Shared<'a>,
        sources: &'a [Source],
        target: &'a Target,
        found: Found,
    ) -> Result<Self> {
        let plan = shared.plan;
        let Target::File(file, _) = target else {
            unreachable!("order is looked for where the output is a file");
        };
        let input_bytes = plan.input_bytes.expect("all inputs are files");
        expected::in_order(shared, input_bytes);
        // Each round has its threads; as many again may mend.
        let rounds = input_bytes / room_bytes(shared, 0).max(1) + 3;
        shared.rounds.store(2 * rounds as usize, Ordering::SeqCst);
        let mut drawn = found.drawn;
        let boundaries = sampling::boundaries(shared, &mut drawn.sample);
        let shares = sampling::shares(&drawn.sample, &boundaries);
        let table = Table::range(&plan.order, boundaries);
        let queues = Queues::new(shared);
        let partitions = queues.partitions(shared).undivided();
        partitions.begin(table.clone());
        let bodies = partitions.bodies();
        Ok(Self {
            shared,
            sources,
            target,
            file: Arc::clone(file),
            queues,
            partitions,
            origins: Origins::new(table.slot_count()),
            table,
            shares,
            stretches: found.stretches,
            stretch_bytes: found.stretch_bytes,
            next: 0,
            borders: Borders::new(plan.order.format()),
            seams: Seams::default(),
            written: Vec::new(),
            base: 0,
            excess_left: input_bytes / EXCESS_PART,
            passed_left: input_bytes / EXCESS_PART,
            // Of long records nobody knows yet how well they fill blocks: hardly half.
            filled: (16, if found.has_long_records { 36 } else { 16 }),
            way: Way {
                distributed: Distributed {
                    units: Vec::new(),
                    bodies,
                    read: ReadTotals::default(),
                    sample_bytes: drawn.bytes,
                    sample_ns: drawn.ns,
                    input: Fingerprint::default(),
                    fingerprint: Fingerprint::default(),
                    dropped: Fingerprint::default(),
                    counts: Counts::default(),
                    metrics: Metrics::default(),
                },
                sorted: Sorted::default(),
                distribute: Took::default(),
                sort: Took::default(),
                order: Some(Order {
                    pieces: found.piece_count as u64,
                    ..Order::default()
                }),
                copied: None,
                passed: false,
                merged: None,
            },
        })
    }

    /// Reads as much as fits in memory and writes what is complete then, until the rest fits or order ends.
    fn write_early(&mut self) -> Result<()> {
        loop {
            let until = self.fits_until();
            if until == self.next || until == self.stretches.len() {
                return Ok(());
            }
            let complete = self.complete_below(self.stretches[until].lowest.as_ref());
            let parts = self.parts(&self.stretches[self.next..until]);
            self.next = until;
            let from = self.written.len();
            let origins = &self.origins;
            let excess_left = &mut self.excess_left;
            let round = round_of(
                &mut self.way,
                self.shared,
                (&self.queues, &self.partitions, &self.borders),
                Some(origins),
                (&parts, true),
                |partitions| {
                    let held = partitions.held_bytes();
                    let is_late = held[..from].iter().any(|&bytes| bytes > 0);
                    let to = match is_late {
                        true => from,
                        false => affordable(origins, from..complete.max(from), &held, excess_left),
                    };
                    partitions.end_round(&(from..to))?;
                    Ok(to)
                },
            )?;
            self.note_fill(&round);
            let to = round.ended;
            let units = self.partitions.take(from..to);
            let passed_left = self.passed_left.checked_sub(round.passed_bytes);
            self.passed_left = passed_left.unwrap_or(0);
            let base = self.base;
            let written = self.write(units, base, None)?;
            self.base += written.iter().map(|unit| unit.bytes).sum::<u64>();
            self.written.extend(written);
            self.origins.written = self.written.len();
            if to < complete || passed_left.is_none() {
                return Ok(());
            }
        }
    }

    /// Remembers how much memory the records of a round took. Of a small one blocks tell that are hardly begun.
    fn note_fill<T>(&mut self, round: &RoundOf<T>) {
        let plan = self.shared.plan;
        if round.bytes > (plan.block_count * plan.block_bytes) as u64 / 8 {
            self.filled = (round.bytes, round.taken_bytes);
        }
    }

    /// Bytes of records that free memory takes without eviction, if they fill it as those of the last round did, or,
    /// `with_bodies`, if those of long records leave it.
    fn room_bytes(&self, with_bodies: bool) -> u64 {
        let block_count = match with_bodies {
            true => self.way.distributed.bodies.held().0,
            false => 0,
        };
        let room = room_bytes(self.shared, block_count);
        let (bytes, taken_bytes) = self.filled;
        match taken_bytes * 8 > bytes * FILL_EIGHTHS {
            true => (u128::from(room) * u128::from(bytes) / u128::from(taken_bytes)) as u64,
            false => room,
        }
    }

    /// The stretch behind the last one that fits in memory. Lest order end with a long record, which may lie there until
    /// others have come, its body leaves memory for them, and a stretch with one is read though it does not fit.
    fn fits_until(&self) -> usize {
        let rest = &self.stretches[self.next..];
        let count_in = |mut room: u64| {
            let fits = rest.iter().take_while(|stretch| {
                let left = room.checked_sub(stretch.bytes);
                room = left.unwrap_or(0);
                left.is_some()
            });
            fits.count()
        };
        let mut count = count_in(self.room_bytes(false));
        if count == 0 {
            count = count_in(self.room_bytes(true));
        }
        let is_long = |stretch: &Stretch| stretch.bytes > self.stretch_bytes;
        let goes_on = count == 0 && rest.first().is_some_and(is_long);
        self.next + count.max(usize::from(goes_on))
    }

    /// The slot behind the last one that has all its records, if all that come are not below `lowest`.
    fn complete_below(&self, lowest: Option<&Boundary>) -> usize {
        let Some(lowest) = lowest else { return 0 };
        let is_complete = |slot: &usize| {
            let (_, to) = self.table.around(*slot);
            to.is_some_and(|to| to <= lowest)
        };
        (0..self.table.slot_count()).take_while(is_complete).count()
    }

    /// The parts of the inputs that are `stretches`, from front to back.
    fn parts(&self, stretches: &[Stretch]) -> Vec<Part> {
        let mut stretches: Vec<&Stretch> = stretches.iter().collect();
        stretches.sort_unstable_by_key(|stretch| stretch.chunk);
        let mut parts: Vec<Part> = Vec::new();
        for stretch in stretches {
            let (input, from) = (stretch.input, stretch.offset);
            let goes_on = |part: &&mut Part| part.input == input && part.to == from;
            if let Some(part) = parts.last_mut().filter(goes_on) {
                part.to += stretch.bytes;
                part.bytes += stretch.bytes;
                continue;
            }
            let source = &self.sources[input];
            parts.push(Part {
                file: Arc::clone(&source.file),
                file_bytes: source.meta.bytes,
                input,
                from,
                to: from + stretch.bytes,
                begins: false,
                end: None,
                chunk: stretch.chunk,
                is_of_one_chunk: false,
                bytes: stretch.bytes,
                goes: Goes::ByKey,
            });
        }
        parts.iter_mut().for_each(|part| self.set_borders(part));
        parts
    }

    /// Has a part begin and end where its records do, as far as that is known.
    fn set_borders(&self, part: &mut Part) {
        let chunk_bytes = self.shared.plan.chunk_bytes as u64;
        part.end = match part.to == part.file_bytes {
            true => Some(part.to),
            false => self.borders.first_begin(part.input, part.to),
        };
        let Some(begin) = self.borders.first_begin(part.input, part.from) else {
            return;
        };
        let chunks = begin / chunk_bytes - part.from / chunk_bytes;
        part.chunk += chunks * NUMBERS_PER_CHUNK;
        part.from = begin;
        part.begins = true;
        if begin >= part.to {
            self.borders.saw(part.input, part.to, begin);
        }
    }

    /// Sorts units and writes them from `base` on. Answers what was written of each.
    fn write(
        &mut self,
        units: Vec<Unit>,
        base: u64,
        total: Option<u64>,
    ) -> Result<Vec<Fingerprint>> {
        let before = Since::now(self.shared.os);
        let _begun = self.shared.begun("sort");
        let span = Span {
            base,
            header: &[],
            bytes: units.iter().filter_map(Unit::bytes).sum(),
            total,
            seams: &self.seams,
            made_parts: None,
            is_all: false,
        };
        let (shared, units) = (self.shared, (units, &*self.way.distributed.bodies));
        let sorted = sorting::sort(shared, units, &span, Some(self.target), None, None)?;
        self.way.sorted.then(&sorted);
        self.way.sort.add_since(&before, self.shared.os);
        Ok(sorted.units)
    }

    /// Reads what is left, as any job does, and writes its units, behind the room for what is late.
    fn write_rest(&mut self) -> Result<Early> {
        let shared = self.shared;
        let from = self.written.len();
        let rest = self.stretches.split_off(self.next);
        if self.fits_until_end(&rest) {
            self.order().is_one_pass = true;
        } else {
            self.shares[..from].fill(0);
            let input_bytes = shared.plan.input_bytes.expect("all inputs are files");
            shared.temps.divide(&self.shares, self.base);
            expected::out_of_order(shared, input_bytes, self.base);
        }
        let parts = self.parts(&rest);
        let all = from..self.table.slot_count();
        round_of(
            &mut self.way,
            shared,
            (&self.queues, &self.partitions, &self.borders),
            Some(&self.origins),
            (&parts, true),
            |partitions| partitions.end_round(&all),
        )?;
        let units = self.partitions.take(all);
        let mut late = self.partitions.held_bytes();
        late.truncate(from);
        let places = Early::new(&self.written, late);
        let base = self.base + places.late_bytes();
        let total = self.way.distributed.fingerprint.bytes;
        self.order().early_bytes = self.base;
        if places.late_bytes() > 0 {
            self.order().is_one_pass = false;
            self.order().late_bytes = places.late_bytes();
            self.flush(self.base)?;
        }
        let written = self.write(units, base, Some(total))?;
        self.written.extend(written);
        Ok(places)
    }

    fn fits_until_end(&self, rest: &[Stretch]) -> bool {
        let bytes: u64 = rest.iter().map(|stretch| stretch.bytes).sum();
        bytes <= self.room_bytes(true)
    }

    /// Writes the units that were written early again, from the highest to the first with late records, as many at a
    /// time as fit in memory.
    fn mend(&mut self, places: &mut Early) -> Result<()> {
        let total = self.way.distributed.fingerprint.bytes;
        let first = places.first_late();
        let block = align_down(places.new[first]);
        let bytes = self.read_block(block)?;
        let before = (places.new[first] - block) as usize;
        self.seams.begin(block, &bytes[..before], Some(total))?;
        let mut to = places.late.len();
        while to > first {
            let from = places.fits_from(first, to, self.room_bytes(false));
            let parts: Vec<Part> = (from..to)
                .flat_map(|slot| match places.late[slot] {
                    0 => vec![self.written_part(slot, places.old[slot])],
                    _ => self.origin_parts(slot),
                })
                .collect();
            self.order().again_read_bytes += parts.iter().map(|part| part.bytes).sum::<u64>();
            let round = round_of(
                &mut self.way,
                self.shared,
                (&self.queues, &self.partitions, &self.borders),
                None,
                (&parts, false),
                |partitions| partitions.end_round(&(from..to)),
            )?;
            self.note_fill(&round);
            let units = self.partitions.take(from..to);
            let again = self.write(units, places.new[from], Some(total))?;
            self.order().again_bytes += again.iter().map(|unit| unit.bytes).sum::<u64>();
            self.written.splice(from..to, again);
            to = from;
        }
        Ok(())
    }

    /// What was written of a slot at `offset`.
    fn written_part(&self, slot: usize, offset: u64) -> Part {
        let bytes = self.written[slot].bytes;
        Part {
            file: Arc::clone(&self.file),
            // It is written to behind what is read.
            file_bytes: u64::MAX,
            input: 0,
            from: offset,
            to: offset + bytes,
            begins: true,
            end: Some(offset + bytes),
            // Sorted already: this keeps it so.
            chunk: 0,
            is_of_one_chunk: false,
            bytes,
            goes: Goes::AllToSlot(slot),
        }
    }

    /// Where the records of a slot came from that were not late.
    fn origin_parts(&self, slot: usize) -> Vec<Part> {
        let origins = self.origins.of(slot).into_iter();
        origins
            .map(|origin| {
                let source = &self.sources[origin.input];
                // A newline that was added is not in the file.
                let to = origin.to.min(source.meta.bytes);
                Part {
                    file: Arc::clone(&source.file),
                    file_bytes: source.meta.bytes,
                    input: origin.input,
                    from: origin.from,
                    to,
                    begins: true,
                    end: Some(to),
                    chunk: origin.chunk,
                    is_of_one_chunk: true,
                    bytes: to - origin.from,
                    goes: Goes::OnlySlot(slot),
                }
            })
            .collect()
    }

    /// Writes the block of the output that was to be completed by what now goes elsewhere.
    fn flush(&mut self, end: u64) -> Result<()> {
        let seams = std::mem::take(&mut self.seams);
        match seams.unfinished(end) {
            Some(block) => self.write_block(align_down(end), &block),
            None => Ok(()),
        }
    }

    fn read_block(&mut self, offset: u64) -> Result<Vec<u8>> {
        self.transfer(OpKind::Read, offset, &[])
    }

    fn write_block(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.transfer(OpKind::Write, offset, bytes)?;
        self.way.sorted.written_bytes += ALIGN_BYTES as u64;
        if let Some(progress) = &self.shared.job.progress {
            progress.wrote(ALIGN_BYTES as u64);
        }
        Ok(())
    }

    /// Reads or writes one aligned block of the output. Answers what is there now.
    fn transfer(&self, kind: OpKind, offset: u64, bytes: &[u8]) -> Result<Vec<u8>> {
        let Shared { os, stop, .. } = *self.shared;
        let doing = match kind {
            OpKind::Read => "reading what was written of the output",
            OpKind::Write => "writing the output",
        };
        let wrong =
            |error: std::io::Error| Error::io(doing, &self.file.path, &error).offset(offset);
        let mut ring = os.ring(1).map_err(wrong)?;
        let buffer = self.shared.chunk_pool.take();
        let mut buffer = buffer.ok_or_else(|| stop.error())?;
        buffer[..bytes.len()].copy_from_slice(bytes);
        ring.submit(Op {
            kind,
            file: Arc::clone(&self.file),
            offset,
            buffer,
            range: 0..ALIGN_BYTES,
            tag: 0,
        });
        let done = ring.complete(true).expect("it is in flight");
        done.result.map_err(wrong)?;
        Ok(done.op.buffer[..ALIGN_BYTES].to_vec())
    }

    fn order(&mut self) -> &mut Order {
        self.way.order.as_mut().expect("it was found")
    }

    /// What the job has done, once nothing is left to be written and the inputs are what they were.
    fn end(mut self) -> Result<Way> {
        let total = self.way.distributed.fingerprint.bytes;
        self.flush(total)?;
        let input_bytes = self.shared.plan.input_bytes.expect("all inputs are files");
        check_all_read(input_bytes, self.way.distributed.read.bytes)?;
        for source in self.sources {
            source.check_unchanged(self.shared.os, self.shared.job.as_of_start)?;
        }
        let sorted = &mut self.way.sorted;
        for unit in &self.written {
            sorted.gathered.merge(unit);
        }
        sorted.written = sorted.gathered;
        sorted.sizes = self.written.iter().map(|unit| unit.bytes).collect();
        let counts = &mut self.way.distributed.counts;
        counts.evicted = self.partitions.evicted_count();
        Ok(self.way)
    }
}

/// What a round did.
struct RoundOf<T> {
    /// What it was ended with.
    ended: T,
    /// Bytes that were distributed, and those of the memory that they took, evicted or not.
    bytes: u64,
    taken_bytes: u64,
    /// Bytes that were passed over.
    passed_bytes: u64,
}

/// Distributes `parts`, `first` if they have not been read before, and ends the round with `end`.
fn round_of<T>(
    way: &mut Way,
    shared: &Shared<'_>,
    (queues, partitions, borders): (&Queues, &Partitions<'_>, &Borders),
    origins: Option<&Origins>,
    (parts, first): (&[Part], bool),
    end: impl FnOnce(&Partitions<'_>) -> Result<T>,
) -> Result<RoundOf<T>> {
    let (before, given) = (Since::now(shared.os), shared.temps.given_bytes());
    let _begun = shared.begun("distribute");
    let left_bytes = partitions.left_bytes();
    let (free, bodies) = (shared.block_pool.free_count(), partitions.bodies().begun());
    let mut longs = BodyLongs::new(partitions);
    let reader = ApartReader {
        os: shared.os,
        plan: shared.plan,
        pool: &shared.chunk_pool,
        chunks: &queues.chunks,
        stop: shared.stop,
        longs: &mut longs,
        borders,
        enough: None,
    };
    let reads = Reads::Apart(reader, parts);
    let end = || {
        let taken = free.saturating_sub(shared.block_pool.free_count());
        let taken_bytes = (taken * shared.plan.block_bytes) as u64;
        let evicted_bytes = partitions.left_bytes() - left_bytes;
        end(partitions).map(|ended| (ended, taken_bytes + evicted_bytes))
    };
    let round = round(
        shared,
        queues,
        partitions,
        (origins, None),
        reads,
        || Ok(()),
        end,
    )?;
    let distributed = &mut way.distributed;
    let read = &mut distributed.read;
    read.device_bytes += round.read.device_bytes;
    if first {
        read.bytes += round.read.bytes;
        read.record_bytes += round.read.record_bytes;
        read.added_bytes += round.read.added_bytes;
        distributed.input.merge(&round.input);
        distributed.fingerprint.merge(&round.fingerprint);
        distributed.counts.long_records += partitions.bodies().begun() - bodies;
    }
    distributed.metrics.then(&round.metrics);
    distributed.counts.spilled_bytes += shared.temps.given_bytes() - given;
    distributed.counts.spilled.merge(&round.spilled);
    way.distribute.add_since(&before, shared.os);
    if let Some(order) = &mut way.order {
        order.rounds += 1;
    }
    let (ended, taken_bytes) = round.ended;
    Ok(RoundOf {
        ended,
        bytes: round.fingerprint.bytes,
        taken_bytes,
        passed_bytes: round.read.passed_bytes,
    })
}

/// The slot behind the last of `slots` that could be made again from the input without reading much else.
fn affordable(
    origins: &Origins,
    slots: std::ops::Range<usize>,
    held: &[u64],
    excess_left: &mut u64,
) -> usize {
    for slot in slots.clone() {
        let excess = origins.bytes(slot).saturating_sub(held[slot]);
        match excess_left.checked_sub(excess) {
            Some(left) => *excess_left = left,
            None => return slot,
        }
    }
    slots.end
}

/// Where the units lie that were written early, and where they belong.
struct Early {
    /// Bytes that came late for each.
    late: Vec<u64>,
    old: Vec<u64>,
    new: Vec<u64>,
    /// Bytes of each, with what came late.
    bytes: Vec<u64>,
}

impl Early {
    fn new(written: &[Fingerprint], late: Vec<u64>) -> Self {
        let sums = |bytes: &[u64]| {
            let begin = |sum: &mut u64, bytes: &u64| {
                let begin = *sum;
                *sum += bytes;
                Some(begin)
            };
            bytes.iter().scan(0, begin).collect()
        };
        let old: Vec<u64> = written.iter().map(|unit| unit.bytes).collect();
        let bytes: Vec<u64> = old
            .iter()
            .zip(&late)
            .map(|(old, late)| old + late)
            .collect();
        Self {
            old: sums(&old),
            new: sums(&bytes),
            bytes,
            late,
        }
    }

    fn late_bytes(&self) -> u64 {
        self.late.iter().sum()
    }

    fn first_late(&self) -> usize {
        let first = self.late.iter().position(|&late| late > 0);
        first.expect("some are late")
    }

    /// From which slot on those below `to`, but none below `first`, fit into `room` bytes together: one at least.
    fn fits_from(&self, first: usize, to: usize, room: u64) -> usize {
        let mut sum = 0;
        let fits = (first..to).rev().take_while(|&slot| {
            sum += self.bytes[slot];
            sum <= room
        });
        to - fits.count().max(1)
    }
}
