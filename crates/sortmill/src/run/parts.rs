//! The phase `sort` where the output has several files: which records of which unit go into which.
//!
//! A worker learns from the units below where its own begins in the output, finds out where parts begin in it,
//! tells that to the units above, and then puts piece after piece into its file, as it does with one file. It
//! ends the part before each part that begins in its unit; the last part ends when all units have.

use std::ops::Range;

use crate::bodies::BodyReader;
use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::job::{Boundaries, Job, Output};
use crate::long::Item;
use crate::manifest::{self, Part};
use crate::metrics::{Meter, Stage, State};
use crate::partitions::Unit;
use crate::parts::{Begin, Cuts, PARTS_MAX, Row, Standing, Stands};
use crate::stage::reduce::{Stream, out_of_order};
use crate::stage::write::Sink;
use crate::table::uniform_keys;
use crate::yields::Yield;

use super::CutKeys;
use super::long::put_item;
use super::sorting::{Done, Phase};
use super::tail::WayOut;

/// Where the output of `units`, of `bytes` bytes, is cut into parts, if it is.
pub fn cuts(
    job: &Job,
    cut_keys: Option<CutKeys>,
    bytes: u64,
    units: &[Unit],
) -> Result<Option<Cuts>> {
    let (Output::Parts(parts), None, None) = (&job.output, job.until, &job.reduce) else {
        return Ok(None);
    };
    if let Some(keys) = cut_keys {
        return Ok(Some(Cuts::Keys(keys)));
    }
    Ok(Some(match (parts.cut.count(bytes)?, &job.boundaries) {
        (None, _) => Cuts::Units,
        (Some(count), Boundaries::Uniform) => {
            Cuts::Keys(uniform_keys(count).into_iter().map(Some).collect())
        }
        (Some(count), _) if matches!(job.yields, Yield::Shuffled(_)) => {
            Cuts::even_records(count, units.iter().map(Unit::records_at_most))
        }
        (Some(count), _) => Cuts::Even { count, bytes },
    }))
}

/// How a phase makes parts.
pub struct InParts {
    cuts: Cuts,
    pub row: Row,
    unit_count: usize,
}

/// The records of one unit in one part.
pub struct Piece {
    part: u64,
    /// Where it begins in the part, in bytes.
    offset: u64,
    fingerprint: Fingerprint,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
}

/// Puts the sorted records of unit `number`, as many and of as many bytes as `size` says, into their parts.
/// `item` looks at one, `give` hands some out.
#[expect(
    clippy::too_many_arguments,
    reason = "two ways to the records, three to what is known of them"
)]
pub fn put_sorted<'a, 'r>(
    phase: &Phase<'a>,
    parts: &InParts,
    number: usize,
    size: (usize, u64),
    item: impl Fn(usize) -> Item<'r>,
    mut give: impl FnMut(Range<usize>, &mut WayOut<'_, 'a>, &mut Meter<'_>) -> Result<()>,
    meter: &mut Meter<'_>,
    done: &mut Done,
) -> Result<()> {
    let order = &phase.order;
    let begun = phase.places.begin(number, size.1);
    meter.lap(Stage::Reduce, State::Output);
    let start = begun.ok_or_else(|| phase.shared.stop.error())?;
    let begins = parts.cuts.in_unit(order, (number, start), size, &item);
    parts.row.tell(number, start, &begins);
    meter.lap(Stage::Reduce, State::Work);
    let before = parts.row.before(number);
    meter.lap(Stage::Reduce, State::Output);
    let mut standing = before.ok_or_else(|| phase.shared.stop.error())?;
    for (at, begin) in begins.iter().enumerate() {
        let next = begins.get(at + 1);
        let (end, end_offset) = next.map_or(size, |next| (next.index, next.offset));
        let bytes = end_offset - begin.offset;
        standing = parts.enter(phase, standing, begin.part, start + begin.offset, meter)?;
        let offset = start + begin.offset - standing.start;
        let mut sink = parts.sink(phase, standing, offset, bytes);
        let range = begin.index..end;
        let fingerprint =
            phase.put_records(&mut sink, meter, done, |way, meter| give(range, way, meter))?;
        if sink.bytes != bytes {
            return Err(out_of_order());
        }
        sink.finish(meter)?;
        done.pieces.push(Piece {
            part: standing.part,
            offset,
            fingerprint,
            first_key: manifest::key(order, item(begin.index).short()),
            last_key: manifest::key(order, item(end - 1).short()),
        });
    }
    Ok(())
}

/// Takes the next record of a unit that comes record by record.
type Put<'p> = dyn FnMut(&Item<'_>, &mut BodyReader<'_>, &mut Meter<'_>) -> Result<()> + 'p;

/// Puts the records of unit `number`, of `bytes` bytes, into their parts as `give` hands them out one by one:
/// the unit is larger than memory, so where parts begin in it shows only then. None above it has been begun.
pub fn put_merged(
    phase: &Phase<'_>,
    parts: &InParts,
    number: usize,
    bytes: u64,
    meter: &mut Meter<'_>,
    done: &mut Done,
    give: impl FnOnce(&mut Put<'_>, &mut Meter<'_>) -> Result<()>,
) -> Result<()> {
    let stop = phase.shared.stop;
    let start = phase.places.begin(number, bytes);
    let standing = parts.row.before(number);
    meter.lap(Stage::Reduce, State::Output);
    let (Some(start), Some(standing)) = (start, standing) else {
        return Err(stop.error());
    };
    let order = &phase.order;
    let mut unit = Merged {
        phase,
        parts,
        number,
        start,
        standing,
        begins: Vec::new(),
        index: 0,
        offset: 0,
        piece: None,
        proof: Stream::new(order, phase.shared.plan.head_bytes),
        fingerprint: Fingerprint::default(),
    };
    give(
        &mut |item, bodies, meter| unit.put(item, bodies, meter, done),
        meter,
    )?;
    unit.end_piece(meter, done)?;
    phase.tell_ends(number, unit.proof.ends())?;
    if unit.offset != bytes {
        return Err(out_of_order());
    }
    parts.row.tell(number, start, &unit.begins);
    Ok(())
}

/// A unit that comes record by record.
struct Merged<'p, 'a> {
    phase: &'p Phase<'a>,
    parts: &'p InParts,
    number: usize,
    start: u64,
    standing: Standing,
    begins: Vec<Begin>,
    index: usize,
    offset: u64,
    piece: Option<Open<'a>>,
    proof: Stream<'p>,
    /// Of the piece.
    fingerprint: Fingerprint,
}

/// The piece that records go into.
struct Open<'a> {
    sink: Sink<'a>,
    offset: u64,
    first_key: Vec<u8>,
}

impl Merged<'_, '_> {
    fn put(
        &mut self,
        item: &Item<'_>,
        bodies: &mut BodyReader<'_>,
        meter: &mut Meter<'_>,
        done: &mut Done,
    ) -> Result<()> {
        let order = &self.phase.order;
        let at = self.start + self.offset;
        let stands = Stands {
            unit: self.number,
            index: self.index,
            at,
        };
        let part = self.parts.cuts.part(order, item.short(), stands);
        let goes_on = part.is_none_or(|part| part == self.standing.part);
        if self.piece.is_none() || !goes_on {
            self.end_piece(meter, done)?;
            self.begins.push(Begin {
                part,
                index: self.index,
                offset: self.offset,
            });
            self.standing = self
                .parts
                .enter(self.phase, self.standing, part, at, meter)?;
            let offset = at - self.standing.start;
            self.piece = Some(Open {
                sink: self.parts.sink(self.phase, self.standing, offset, 0),
                offset,
                first_key: manifest::key(order, item.short()),
            });
        }
        self.proof.next(item)?;
        self.index += 1;
        self.offset += item.bytes();
        let sink = &mut self.piece.as_mut().expect("a piece was begun").sink;
        let key = self.phase.shared.number;
        put_item(sink, &mut self.fingerprint, key, item, bodies, meter)
    }

    fn end_piece(&mut self, meter: &mut Meter<'_>, done: &mut Done) -> Result<()> {
        let Some(piece) = self.piece.take() else {
            return Ok(());
        };
        let order = &self.phase.order;
        let fingerprint = std::mem::take(&mut self.fingerprint);
        let (bytes, records) = (piece.sink.bytes, piece.sink.records);
        let sums = (&fingerprint, &fingerprint);
        self.phase.count_out(sums, (bytes, records), meter, done);
        piece.sink.finish(meter)?;
        done.pieces.push(Piece {
            part: self.standing.part,
            offset: piece.offset,
            fingerprint,
            first_key: piece.first_key,
            last_key: manifest::key(order, self.proof.last()),
        });
        Ok(())
    }
}

impl InParts {
    /// Of the output of so many units.
    pub fn new(cuts: Cuts, unit_count: usize) -> Self {
        Self {
            cuts,
            row: Row::new(unit_count),
            unit_count,
        }
    }

    /// Goes on to `part` with the record at byte `at` of the output, and ends the part before.
    fn enter(
        &self,
        phase: &Phase<'_>,
        standing: Standing,
        part: Option<u64>,
        at: u64,
        meter: &mut Meter<'_>,
    ) -> Result<Standing> {
        let next = standing.then(part, at);
        if standing.begun && next.part != standing.part {
            let bytes = at - standing.start;
            phase.output.end_part(standing.part, bytes, meter)?;
        }
        Ok(next)
    }

    /// A sink for `bytes` bytes that begin at `offset` of the part.
    fn sink<'a>(&self, phase: &Phase<'a>, standing: Standing, offset: u64, bytes: u64) -> Sink<'a> {
        let part_bytes = self
            .cuts
            .reaches(standing.part)
            .saturating_sub(standing.start);
        let reserve_bytes = part_bytes.max(offset + bytes);
        Sink::in_part(phase.output, standing.part, offset, reserve_bytes)
    }

    /// Ends the last part.
    pub fn finish(&self, phase: &Phase<'_>, meter: &mut Meter<'_>) -> Result<()> {
        let last = self.row.before(self.unit_count);
        let last = last.ok_or_else(|| phase.shared.stop.error())?;
        let total = phase.places.known_bytes();
        phase.output.end_part(last.part, total - last.start, meter)
    }

    /// The parts that the pieces make up, in order. Their names are still to be given.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] if a piece is missing, [`ErrorKind::Usage`] for more than [`PARTS_MAX`] parts.
    pub fn files(self, mut pieces: Vec<Piece>) -> Result<Vec<Part>> {
        pieces.sort_unstable_by_key(|piece| (piece.part, piece.offset));
        let count = self.cuts.count(pieces.last().map_or(0, |piece| piece.part));
        if count > PARTS_MAX {
            let cause =
                format!("{count} partitions came out of it, and there can be {PARTS_MAX} parts");
            return Err(Error::new(ErrorKind::Usage, "cutting the output", cause)
                .hint("Say how many parts there should be, or how large."));
        }
        let mut parts = vec![Part::default(); count as usize];
        for piece in pieces {
            let part = &mut parts[piece.part as usize];
            if piece.offset != part.fingerprint.bytes {
                let cause = "what was put into a part does not follow what was put there before";
                return Err(Error::new(ErrorKind::Lost, "cutting the output", cause));
            }
            part.fingerprint.merge(&piece.fingerprint);
            part.first_key.get_or_insert(piece.first_key);
            part.last_key = Some(piece.last_key);
        }
        // Where keys do not decide, what is above an empty part decides what could come to it.
        let mut above = None;
        for (number, part) in parts.iter_mut().enumerate().rev() {
            above = part.first_key.clone().or(above);
            part.from_key = match (&self.cuts, number) {
                (_, 0) => Some(Vec::new()),
                (Cuts::Keys(_), _) => self.cuts.from_key(number as u64).cloned(),
                _ => above.clone(),
            };
        }
        Ok(parts)
    }
}
