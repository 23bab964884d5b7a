//! The phase `sort`: load, sort, merge, reduce, write.
//!
//! One thread loads units in the order of their ranges and reads ahead, one per core sorts a unit and
//! gathers its records into output buffers, one writes. A unit that is too large for memory is merged by
//! the loading thread itself: the units below it need no memory that it waits for, and none above it has
//! been begun.

use sortmill_io::File;
use sortmill_io::sync::atomic::AtomicU32;
use sortmill_io::sync::{Arc, MutexGuard, spawn};

use super::ahead::Spares;
use super::compress::{Frames, Packed};
use super::distribute::{guarded, join};
use super::judge;
use super::made_parts::{MadeCut, MadeParts};
use super::merging::merge_unit;
use super::one_unit::work;
use super::parts::{InParts, Piece};
use super::proof::compare_bytes;
use super::tail::{Makes, Out, Tail, WayOut};
use super::until::{discard, received_bytes};
use super::{Shared, ends, expected, relocate};
use crate::bodies::{Bodies, BodyReader, Means};
use crate::cluster::message::Place;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::framing::Framed;
use crate::job::Reducer;
use crate::long::{Ends, Item};
use crate::manifest::Part;
use crate::metrics::{Finished, Meter, Metrics, Stage, State};
use crate::order::Order;
use crate::partitions::{Counts, Unit};
use crate::parts::Cuts;
use crate::places::Places;
use crate::queue::{Queue, job_scope};
use crate::report::Partitions;
use crate::runs::Counter;
use crate::space::Lead;
use crate::stage::kernel::Entry;
use crate::stage::load::{LoadedUnit, Loader};
use crate::stage::reduce::out_of_order;
use crate::stage::sort::{self, Slab};
use crate::stage::write::{OutBlock, Output, Seams, Sink, Target, write};

/// What the phase leaves.
#[derive(Default)]
pub struct Sorted {
    /// What came out of the sorters: with what they dropped it must equal what was distributed.
    pub gathered: Fingerprint,
    /// Repeats that they dropped.
    pub dropped: Fingerprint,
    /// What was handed to the writer: the same, unless a reduce function made other records.
    pub written: Fingerprint,
    /// Bytes written, padding included.
    pub written_bytes: u64,
    /// Bytes of the output where it is compressed.
    pub packed_bytes: Option<u64>,
    /// Those of one whose records come out in pieces, before that.
    pub framed_bytes: Option<u64>,
    /// What has counted lines that came as pairs: it must have counted all that was read.
    pub counter: Option<Box<Counter>>,
    /// What lies in front of the first unit.
    pub header: Vec<u8>,
    /// Bytes of blocks read back.
    pub loaded_bytes: u64,
    /// Bytes of temporary blocks that were read and written again because they lay in the output's way.
    pub moved_bytes: u64,
    /// Bytes written and read because partitions had to be merged.
    pub merge_written_bytes: u64,
    pub merge_read_bytes: u64,
    /// Bytes of each unit.
    pub sizes: Vec<u64>,
    /// What came out of each unit, in the order of units; of a job that gets as far as its output.
    pub units: Vec<Fingerprint>,
    merged: u64,
    joined: u64,
    /// The files of the output, if it has several.
    pub parts: Option<Vec<Part>>,
    /// Pieces of blocks that other nodes write to, too, and where in the output they belong.
    pub edges: Vec<(u64, Vec<u8>)>,
    /// The first and last record of all units, unless they are none or their order is drawn.
    pub ends: Option<Ends>,
    pub metrics: Metrics,
}

impl Sorted {
    /// Of a job that ends before the phase.
    pub fn nothing(units: &[Unit]) -> Self {
        Self {
            sizes: units.iter().map(received_bytes).collect(),
            ..Self::default()
        }
    }

    /// Bytes of the output as it lies there.
    pub fn stored_bytes(&self) -> u64 {
        // A header is in each of several files.
        let files = self.parts.as_ref().map_or(1, Vec::len) as u64;
        let plain = self.header.len() as u64 * files + self.written.bytes;
        self.packed_bytes.or(self.framed_bytes).unwrap_or(plain)
    }

    /// Adds what a later round did with other units. Which units there are is for the caller to know.
    pub fn then(&mut self, later: &Self) {
        self.written_bytes += later.written_bytes;
        self.loaded_bytes += later.loaded_bytes;
        self.moved_bytes += later.moved_bytes;
        self.merge_written_bytes += later.merge_written_bytes;
        self.merge_read_bytes += later.merge_read_bytes;
        self.merged += later.merged;
        self.joined += later.joined;
        self.metrics.then(&later.metrics);
    }

    /// Records, and their bytes, of the units that were laid out, merged ones included.
    pub fn laid_out(&self) -> (u64, u64) {
        let stages = [Stage::Sort, Stage::Merge].map(|stage| self.metrics.stage(stage));
        (
            stages.iter().map(|stage| stage.records_in).sum(),
            stages.iter().map(|stage| stage.bytes_in).sum(),
        )
    }

    /// The partitions, for the report.
    pub fn partitions(&self, counts: &Counts) -> Partitions {
        let mut sizes = self.sizes.clone();
        sizes.sort_unstable();
        Partitions {
            count: sizes.len() as u64,
            bytes_min: sizes.first().copied().unwrap_or(0),
            bytes_median: sizes.get(sizes.len() / 2).copied().unwrap_or(0),
            bytes_max: sizes.last().copied().unwrap_or(0),
            evicted: counts.evicted,
            divided: counts.divided,
            merged: self.merged,
            joined: self.joined,
            long_records: counts.long_records,
        }
    }
}

/// What a worker, or the loader for merged units, has done.
#[derive(Default)]
pub struct Done {
    pub gathered: Fingerprint,
    /// What came out of the sorters and is not in the output: repeats, and what is behind the first.
    pub dropped: Fingerprint,
    pub written: Fingerprint,
    pub sizes: Vec<u64>,
    /// What came out of units, by their numbers.
    pub units: Vec<(usize, Fingerprint)>,
    pub merged: u64,
    pub joined: u64,
    pub merge_written_bytes: u64,
    pub merge_read_bytes: u64,
    /// What was put into files, where the output has several.
    pub pieces: Vec<Piece>,
    /// What has counted lines that came as pairs.
    pub counter: Option<Box<Counter>>,
}

/// What all threads of the phase share.
pub struct Phase<'a> {
    pub shared: &'a Shared<'a>,
    /// The order of what is sorted.
    pub order: Order,
    /// Long records.
    bodies: &'a Bodies,
    pub output: &'a Output<'a>,
    pub places: Places,
    /// The order of units.
    ends: ends::Row,
    /// Where the output has several files.
    pub parts: Option<InParts>,
    /// Units are written one after the other: their sizes are not known before, or the output is a stream.
    in_turn: bool,
    /// Runs written so far.
    pub run_count: AtomicU32,
    padded: bool,
    /// The one sink of a phase in which units take turns.
    pub sink: sortmill_io::sync::Mutex<Option<Sink<'a>>>,
    /// What was reduced before its turn, and memory for that.
    pub spares: Spares,
    /// What units that take turns hand on to each other.
    tail: sortmill_io::sync::Mutex<Tail>,
    /// Which units go on with a group of the one in front, and the function that does, between two such.
    goes_on: Vec<bool>,
    going_on: sortmill_io::sync::Mutex<Option<Reducer>>,
}

/// Where in the output the units of one round go.
pub struct Span<'a> {
    /// Where the first one begins.
    pub base: u64,
    /// What lies in front of the first of all, if it is among them.
    pub header: &'a [u8],
    /// Bytes of their records.
    pub bytes: u64,
    /// Bytes of the whole output, where they are known and it is one file.
    pub total: Option<u64>,
    /// Blocks that they share with units of other rounds.
    pub seams: &'a Seams,
    /// The files that what a reduce function makes goes into, if these are several.
    pub made_parts: Option<MadeCut>,
    /// There is no other round.
    pub is_all: bool,
}

/// Sorts `units` into their span of `target`, in parts if there are `cuts`; without one, what comes to the writer is
/// dropped.
///
/// # Errors
/// The first of any thread.
pub fn sort(
    shared: &Shared<'_>,
    (mut units, bodies): (Vec<Unit>, &Bodies),
    span: &Span<'_>,
    target: Option<&Target>,
    cuts: Option<Cuts>,
    place: Option<Place>,
) -> Result<Sorted> {
    let Shared { plan, os, stop, .. } = *shared;
    let mut began_ns = os.now_ns();
    let unit_count = units.len();
    let loaded: Queue<LoadedUnit> = Queue::new(unit_count.max(1));
    // Where those that distributing had besides were lie entries now.
    let _aside = shared.chunk_pool.set_aside(plan.chunks_aside);
    let ahead_count = plan.decoders.as_ref().map_or(0, |all| all.ahead_count);
    let blocks: Queue<OutBlock> = Queue::new(plan.chunk_count - ahead_count);
    let (in_bodies, bodies_on_disk) = bodies.held();
    let free = plan.block_count - in_bodies;
    let lead = match shared.temps.lies_in_output() {
        true => Lead::new(&units, span.base, free, |unit| is_too_large(shared, unit)),
        false => Lead::default(),
    };
    let moves = relocate::moves(shared, &units, &lead.move_below)?;
    let moved_bytes = relocate::moved_bytes(&moves);
    let read_bytes = moved_bytes + bodies_on_disk;
    if span.is_all {
        expected::sort(
            shared,
            &units,
            span.header.len() as u64 + span.bytes,
            (read_bytes, moved_bytes),
            target,
        );
    }
    let relocated = relocate::relocate(shared, &mut units, &moves, began_ns)?;
    if relocated.is_some() {
        began_ns = os.now_ns();
    }
    let places = Places::new(unit_count, span.base, lead.needs);
    let parts = cuts.map(|cuts| InParts::new(cuts, unit_count));
    {
        let (loaded, blocks, places) = (loaded.clone(), blocks.clone(), places.clone());
        let row = parts.as_ref().map(|parts| parts.row.clone());
        stop.on_stop(move || {
            loaded.abort();
            blocks.abort();
            places.abort();
            row.as_ref().inspect(|row| row.abort());
        });
    }
    let files = shared.temps.files();
    // Without a target units are gathered as into a file: side by side.
    let is_file = !matches!(target, Some(Target::Stream(_)));
    let frames = Frames::new(shared)?;
    let writes = Output {
        pool: shared.output_pool(),
        blocks: &blocks,
        seams: span.seams,
        total: span.total.filter(|_| frames.is_none()),
        ends_exactly: false,
        stage: match frames {
            Some(_) => Stage::Compress,
            None => Stage::Reduce,
        },
        stop,
    };
    // Units go to the writer, or to who compresses them on their way.
    let packed = sortmill_io::sync::Mutex::new(Packed::default());
    let to_frames = frames
        .as_ref()
        .map(|frames| frames.output(&writes, Stage::Reduce));
    let output = to_frames.as_ref().unwrap_or(&writes);
    let phase = Phase {
        shared,
        order: plan.short_order(),
        bodies,
        output,
        places,
        ends: ends::Row::default(),
        parts,
        in_turn: !is_file
            || frames.is_some()
            || shared.job.reduce.is_some()
            || !shared.job.yields.keeps_records(),
        run_count: AtomicU32::new(0),
        padded: is_file && frames.is_none(),
        sink: sortmill_io::sync::Mutex::new(None),
        spares: Spares::new(plan.ahead_units),
        tail: sortmill_io::sync::Mutex::new(Tail::new(
            shared.job,
            shared.plan,
            shared.number,
            span,
        )),
        goes_on: units.iter().map(|unit| unit.goes_on).collect(),
        going_on: sortmill_io::sync::Mutex::new(None),
    };

    // No unit's records come before the header.
    let before_units = sortmill_io::sync::lock(&phase.sink);
    let (load_end, worker_ends, put_bytes, packed_end, write_end) = job_scope(stop, |threads| {
        let loader = spawn(threads, "load", || {
            let mut meter = shared.meter("load", &[Stage::Load, Stage::Merge], began_ns);
            let result = guarded(stop, || {
                let done = load_all(&phase, units, &files, &loaded, &mut meter)?;
                drop(files);
                // The probe of a long job writes to it; some of the job is still to come.
                let so_far_ns = os.now_ns() - shared.began_ns;
                // Workers may have bodies still to read.
                let is_read = bodies_on_disk == 0 && span.is_all;
                if is_read && !judge::is_probed(shared, so_far_ns + so_far_ns / 4) {
                    shared.temps.remove_spilled();
                }
                meter.lap(Stage::Load, State::Work);
                Ok(done)
            });
            result.map(|done| (done, meter.finish(Stage::Load)))
        });
        let workers: Vec<_> = (0..plan.worker_count)
            .map(|number| {
                let (phase, loaded) = (&phase, &loaded);
                let name = format!("sort-{number}");
                spawn(threads, &name.clone(), move || {
                    let mut stages = vec![Stage::Sort, Stage::Reduce];
                    stages.extend(shared.packers.as_ref().map(|_| Stage::Unpack));
                    let mut meter = shared.meter(&name, &stages, began_ns);
                    let result = guarded(stop, || work(phase, loaded, &mut meter));
                    result.map(|done| (done, meter.finish(Stage::Sort)))
                })
            })
            .collect();
        let writer = spawn(threads, "write", || {
            let mut meter = shared.meter("write", &[Stage::Write], began_ns);
            let result = guarded(stop, || match target {
                Some(target) => write(os, target, &blocks, stop, &mut meter),
                None => discard(|| blocks.pop(), stop, Stage::Write, &mut meter, drop).map(|()| 0),
            });
            result.map(|bytes| (bytes, meter.finish(Stage::Write)))
        });
        let to = (&writes, &packed);
        let encodings =
            (frames.as_ref()).map(|frames| (frames, frames.start(threads, shared, to, began_ns)));
        let mut meter = Meter::start(os, &[]);
        guarded(stop, || {
            phase.put_header(span.header, before_units, &mut meter)
        });
        let passing = shared.passing.as_ref();
        let passed = passing.map(|passing| phase.put_passing(passing, began_ns));
        let load_end = join(loader);
        let worker_ends: Vec<_> = workers.into_iter().map(join).chain(passed).collect();
        let put_bytes = match stop.is_stopped() {
            true => None,
            false => guarded(stop, || phase.finish(&mut meter)),
        };
        let last = meter.stage(Stage::Reduce);
        let last = (last.bytes_out, last.records_out);
        let kind = (is_file, span.made_parts.is_some());
        let packed_end = encodings
            .map(|(frames, all)| frames.end(all, to, kind, stop, &mut meter))
            .unwrap_or_default();
        blocks.close();
        let worker_ends = (worker_ends, last);
        (load_end, worker_ends, put_bytes, packed_end, join(writer))
    });
    stop.check()?;

    let end_ns = os.now_ns();
    let mut metrics = Metrics::default();
    let mut done = Done::default();
    if let Some(meter) = relocated {
        metrics.merge(&meter.until(end_ns));
    }
    let (worker_ends, last_out) = worker_ends;
    for end in worker_ends.into_iter().chain([load_end]) {
        let (one, meter): (Done, Finished) = end.expect("no error was seen");
        metrics.merge(&meter.until(end_ns));
        done.merge(one);
    }
    // The run that was open at the end came out behind all workers.
    let reduced = metrics.stage_mut(Stage::Reduce);
    reduced.bytes_out += last_out.0;
    reduced.records_out += last_out.1;
    let (packed, packed_meters) = packed_end;
    for meter in packed_meters {
        metrics.merge(&meter.expect("no error was seen").until(end_ns));
    }
    let (written_bytes, write_meter) = write_end.expect("no error was seen");
    metrics.merge(&write_meter.until(end_ns));
    let ends = match shared.job.reaches(Stage::Reduce) {
        true => phase.ends.all(unit_count)?,
        false => None,
    };
    let made_parts = match std::mem::take(&mut *sortmill_io::sync::lock(&phase.tail)) {
        Tail::Parts(parts) => Some(parts.parts(packed.as_ref().map(|packed| &packed.files[..]))),
        tail => tail.settle(&mut done).map(|()| None)?,
    };
    if phase.in_turn
        && shared.job.reduce_framing.is_none()
        && let Some(put) = put_bytes
    {
        let files = made_parts.as_ref().map_or(1, Vec::len) as u64;
        compare_bytes(span.header.len() as u64 * files + done.written.bytes, put)?;
    }
    let pieces = std::mem::take(&mut done.pieces);
    done.units.sort_unstable_by_key(|&(number, _)| number);
    let files = phase.parts.map(|parts| parts.files(pieces)).transpose()?;
    let edges = place.map(|place| {
        let range = place.from..place.from + done.written.bytes;
        phase.output.seams.take_edges(&range)
    });
    Ok(Sorted {
        parts: files.or(made_parts),
        edges: edges.unwrap_or_default(),
        ends,
        gathered: done.gathered,
        dropped: done.dropped,
        written: done.written,
        written_bytes,
        packed_bytes: packed.map(|packed| packed.all),
        framed_bytes: put_bytes.filter(|_| shared.job.reduce_framing.is_some()),
        counter: done.counter,
        header: Vec::new(),
        loaded_bytes: metrics.stage(Stage::Load).bytes_in,
        merge_written_bytes: done.merge_written_bytes,
        merge_read_bytes: done.merge_read_bytes,
        moved_bytes,
        sizes: done.sizes,
        units: done.units.into_iter().map(|(_, unit)| unit).collect(),
        merged: done.merged,
        joined: done.joined,
        metrics,
    })
}

impl Done {
    fn merge(&mut self, other: Self) {
        self.gathered.merge(&other.gathered);
        self.dropped.merge(&other.dropped);
        self.written.merge(&other.written);
        self.sizes.extend(other.sizes);
        self.units.extend(other.units);
        self.merged += other.merged;
        self.joined += other.joined;
        self.merge_written_bytes += other.merge_written_bytes;
        self.merge_read_bytes += other.merge_read_bytes;
        self.pieces.extend(other.pieces);
        self.counter = self.counter.take().or(other.counter);
    }
}

/// Whether a unit's blocks or entries do not fit in memory.
pub fn is_too_large(shared: &Shared<'_>, unit: &Unit) -> bool {
    unit.blocks().count() > shared.plan.unit_blocks_max
        || unit.records_at_most() > shared.plan.entry_count as u64
}

/// Loads all units in order and merges those that are too large.
fn load_all(
    phase: &Phase<'_>,
    units: Vec<Unit>,
    files: &[Option<Arc<File>>],
    loaded: &Queue<LoadedUnit>,
    meter: &mut Meter<'_>,
) -> Result<Done> {
    let Shared { os, stop, .. } = *phase.shared;
    let pool = &phase.shared.block_pool;
    let depths = phase.shared.temps.depths();
    let mut loader = Loader::new(os, &depths, pool, files, loaded, &phase.places, stop)?;
    let mut done = Done::default();
    for (number, unit) in units.into_iter().enumerate() {
        if is_too_large(phase.shared, &unit) {
            loader.settle(meter)?;
            merge_unit(phase, number, unit, meter, &mut done)?;
        } else {
            loader.load(number, unit, meter)?;
        }
    }
    loader.settle(meter)?;
    loaded.close();
    meter.lap(Stage::Load, State::Work);
    Ok(done)
}

impl<'a> Phase<'a> {
    /// Tells the first and last record of unit `number`, in the order of its sorted records, `None` if it has none.
    pub fn tell_ends(&self, number: usize, ends: Option<[Item<'_>; 2]>) -> Result<()> {
        // Where the order is drawn, no record tells where it belongs.
        let ends = ends.filter(|_| self.shared.job.yields.shuffle().is_none());
        let order = (&self.order, self.shared.plan.head_bytes);
        self.ends.tell(order, number, ends)
    }

    /// What one thread reads long records with.
    pub fn body_reader(&self) -> BodyReader<'_> {
        let plan = self.shared.plan;
        BodyReader::new(Means {
            os: self.shared.os,
            bodies: self.bodies,
            temps: self.shared.temps,
            packers: self.shared.packers.as_ref(),
            order: &plan.order,
            short_order: &self.order,
            head_bytes: plan.head_bytes,
            block_bytes: plan.block_bytes,
            depth: plan.body_depth,
        })
    }

    /// Sorts the entries of what was laid out.
    pub fn sort(
        &self,
        slab: &Slab<'_>,
        entries: &mut [Entry],
        scratch: &mut [Entry],
        bodies: &mut BodyReader<'_>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        if slab.is_drawn() {
            let is_sorted = slab.sort_drawn(entries, scratch);
            return is_sorted.then_some(()).ok_or_else(out_of_order);
        }
        sort::sort(&self.order, slab, entries, scratch);
        if !slab.has_stubs() {
            return Ok(());
        }
        sort::settle(
            &self.order,
            slab,
            entries,
            self.shared.plan.head_bytes,
            |a, b| bodies.compare(a, b, Stage::Sort, meter),
        )
    }

    /// Puts what lies in front of all units. Those that take turns wait for it as long as `sink` is held. Where temporary data
    /// lie in the output's space, it waits as the first unit does for those that lie where it goes.
    fn put_header(
        &self,
        header: &[u8],
        mut sink: MutexGuard<'_, Option<Sink<'a>>>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        if header.is_empty() {
            return Ok(());
        }
        if !self.in_turn && !self.places.wait_free(0) {
            return Err(self.shared.stop.error());
        }
        let framed = self.shared.job.reduce_framing.as_ref().map(Framed::new);
        let mut first = Sink::new(self.output, 0).gathering(framed);
        first.put_part(header, meter)?;
        match self.in_turn {
            true => *sink = Some(first),
            false => first.finish(meter)?,
        }
        Ok(())
    }

    /// Puts one unit's records, which `give` hands out, to the unit's place in the output.
    pub fn put_unit(
        &self,
        number: usize,
        bytes: u64,
        meter: &mut Meter<'_>,
        done: &mut Done,
        give: impl FnOnce(&mut WayOut<'_, 'a>, &mut Meter<'_>) -> Result<()>,
    ) -> Result<()> {
        if self.reduces_ahead() {
            return self.put_ahead(number, meter, done, give);
        }
        if self.in_turn {
            let its_turn = self.places.wait_turn(number);
            meter.lap(Stage::Reduce, State::Output);
            if !its_turn {
                return Err(self.shared.stop.error());
            }
            let mut kept = sortmill_io::sync::lock(&self.sink);
            let sink = kept.get_or_insert_with(|| Sink::new(self.output, 0));
            let mut tail = sortmill_io::sync::lock(&self.tail);
            let (makes, parts) = match (&mut *tail, self.shared.job.yields.keeps_records()) {
                (Tail::Parts(parts), _) => (self.makes(Some(number)), Some(&mut **parts)),
                (_, true) => (self.makes(Some(number)), None),
                (tail, false) => (Makes::ByTail(tail), None),
            };
            let goes_on = self.goes_on(number + 1);
            let unit = self.put_made((sink, parts), (makes, goes_on), meter, done, give)?;
            done.units.push((number, unit));
            drop((kept, tail));
            self.places.end_turn();
            return Ok(());
        }
        let offset = self.places.begin(number, bytes);
        meter.lap(Stage::Reduce, State::Output);
        let offset = offset.ok_or_else(|| self.shared.stop.error())?;
        let mut sink = Sink::new(self.output, offset);
        let unit = self.put_records(&mut sink, meter, done, give)?;
        done.units.push((number, unit));
        if sink.bytes != bytes {
            return Err(crate::stage::reduce::out_of_order());
        }
        sink.finish(meter)
    }

    /// Whether the unit of that number, if there is one, goes on with a group of the one in front of it.
    pub fn goes_on(&self, number: usize) -> bool {
        self.goes_on.get(number).is_some_and(|&goes_on| goes_on)
    }

    /// What becomes of a unit's records, whatever was made of those of others, unless it goes on with a group: then its turn has
    /// come. What has no number is no unit.
    pub fn makes<'p>(&self, number: Option<usize>) -> Makes<'p> {
        let Some(make) = &self.shared.job.reduce else {
            return Makes::Same;
        };
        let reducer = match number.is_some_and(|number| self.goes_on(number)) {
            true => {
                let left = sortmill_io::sync::lock(&self.going_on).take();
                left.expect("the unit in front has left it")
            }
            false => make(),
        };
        Makes::Reduced(reducer)
    }

    /// Behind a unit's last record: ends its groups, or leaves the function to the next unit, if that `goes_on` with the last of
    /// them. Then the unit has its turn.
    pub fn end_groups(
        &self,
        goes_on: bool,
        way: &mut WayOut<'_, '_>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        if !goes_on {
            return way.reduce(None, meter);
        }
        way.end_reduced(meter)?;
        if let Makes::Reduced(reducer) = std::mem::replace(&mut way.makes, Makes::Same) {
            *sortmill_io::sync::lock(&self.going_on) = Some(reducer);
        }
        Ok(())
    }

    /// Puts records into a sink. Answers the fingerprint of those.
    pub fn put_records(
        &self,
        sink: &mut Sink<'a>,
        meter: &mut Meter<'_>,
        done: &mut Done,
        give: impl FnOnce(&mut WayOut<'_, 'a>, &mut Meter<'_>) -> Result<()>,
    ) -> Result<Fingerprint> {
        self.put_made((sink, None), (self.makes(None), false), meter, done, give)
    }

    /// Puts what is made of records into a sink, and the parts if there are some, where the next unit `goes_on` with a group or not.
    /// Answers the fingerprint of the records.
    fn put_made(
        &self,
        (sink, parts): (&mut Sink<'a>, Option<&mut MadeParts>),
        (makes, goes_on): (Makes<'_>, bool),
        meter: &mut Meter<'_>,
        done: &mut Done,
        give: impl FnOnce(&mut WayOut<'_, 'a>, &mut Meter<'_>) -> Result<()>,
    ) -> Result<Fingerprint> {
        let (bytes_before, records_before) = (sink.bytes, sink.records);
        let shared = (self.shared, &self.order);
        let mut way = WayOut::new(shared, makes, Out::Sink(sink), parts);
        give(&mut way, meter)?;
        self.end_groups(goes_on, &mut way, meter)?;
        done.dropped.merge(&way.dropped);
        let (gathered, reduced) = (way.gathered.without(&way.dropped), way.made.reduced);
        let written = match self.shared.job.reduce {
            None => &gathered,
            Some(_) => &reduced,
        };
        drop(way);
        let out = (sink.bytes - bytes_before, sink.records - records_before);
        self.count_out((&gathered, written), out, meter, done);
        Ok(gathered)
    }

    /// Counts what was gathered and what was written, and what of that went to a sink, in bytes and records.
    pub fn count_out(
        &self,
        (gathered, written): (&Fingerprint, &Fingerprint),
        (bytes, records): (u64, u64),
        meter: &mut Meter<'_>,
        done: &mut Done,
    ) {
        done.gathered.merge(gathered);
        done.written.merge(written);
        let totals = meter.stage(Stage::Reduce);
        totals.bytes_in += gathered.bytes;
        totals.records_in += gathered.records;
        totals.bytes_out += bytes;
        totals.records_out += records;
        meter.lap(Stage::Reduce, State::Work);
    }

    /// Sends what the last unit of a phase with turns left in the sink, and what the last part waits for. Answers how many
    /// bytes such a phase has put there.
    fn finish(&self, meter: &mut Meter<'_>) -> Result<u64> {
        match &self.parts {
            Some(parts) => parts.finish(self, meter)?,
            // How much came out without repeats is known only now.
            None if self.order.is_unique() && !self.in_turn => {
                self.output.end_part(0, self.places.known_bytes(), meter)?;
            }
            None => {}
        }
        let mut tail = sortmill_io::sync::lock(&self.tail);
        let sink = sortmill_io::sync::lock(&self.sink).take();
        if let Tail::Parts(parts) = &mut *tail {
            return parts.end(self.output, sink, meter);
        }
        match sink {
            Some(mut sink) => {
                let before = (sink.bytes, sink.records);
                tail.end(&mut sink, meter)?;
                let totals = meter.stage(Stage::Reduce);
                totals.bytes_out += sink.bytes - before.0;
                totals.records_out += sink.records - before.1;
                sink.end_pieces(meter)?;
                let bytes = sink.bytes;
                sink.finish_all(self.padded, meter)?;
                Ok(bytes)
            }
            None => Ok(0),
        }
    }
}
