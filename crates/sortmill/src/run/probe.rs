//! What a device does alone, now: the same reads and writes the job made, with nothing in between.
//!
//! Runs once the output is committed, through the engine's own rings and buffers, with as many bytes in flight as the job had.
//! It reads inputs, one of each device, reads and writes the temporary file, whose blocks nobody needs any more (or reads the
//! output, where they lay in its space), and where there is none on the output's device, writes a file under the output's
//! temporary name that has no name but for a moment. What the job wrote to new space goes to new space here too, and what it wrote over
//! temporary data goes over what is there, which may be twice as fast: such a file is filled first. Only files that go past the page
//! cache are measured: memory tells nothing of a device. A probe that fails, that somebody interrupts, or that could measure only a part of what is blamed, leaves its verdict without a
//! share; the job is done already.

use std::path::Path;

use sortmill_io::os::{Access, Kind};
use sortmill_io::sync::atomic::{AtomicU64, Ordering};
use sortmill_io::sync::{Arc, spawn};
use sortmill_io::{File, Op, OpKind, Pool, align_down};

use super::Shared;
use super::distribute::join;
use super::judge::Done;
use super::room::device;
use crate::metrics::per_second;
use crate::queue::job_scope;
use crate::stage::read::{DIRECT_BYTES_MIN, Source};
use crate::stage::write::Target;
use crate::verdict::{BoundBy, Rates, Verdict};

/// All probes of a job together.
const PROBE_NS: u64 = 2_000_000_000;
/// Bytes of a file made for a probe: twice what the job would write meanwhile, or in a second if it is written over, within these, so
/// that it is not full before something is seen.
const FILE_BYTES: std::ops::RangeInclusive<u64> = (256 << 20)..=(8 << 30);

/// Adds to each verdict that blames a device what that device does alone.
pub fn probe(done: &Done<'_>, verdicts: &mut [Verdict]) {
    let ways: Vec<Vec<Way>> = verdicts.iter().map(|verdict| ways(done, verdict)).collect();
    let count = ways.iter().filter(|ways| !ways.is_empty()).count();
    // What is written over the temporary data of a phase is to be read no more: the last phase comes first.
    for (verdict, mut ways) in verdicts.iter_mut().zip(ways).rev() {
        if ways.is_empty() {
            continue;
        }
        if let Some(rates) = measure(done.shared, &mut ways, PROBE_NS / count as u64) {
            verdict.add_probe(rates);
        }
    }
}

/// One direction of transfers to or from one file.
struct Way {
    kind: OpKind,
    file: Arc<File>,
    /// Bytes of the file that may be read, or written over.
    file_bytes: u64,
    op_bytes: u64,
    depth: usize,
    /// Its space is given back and reserved anew before, and the measurement ends when it is full.
    is_new: bool,
    /// Nothing is in it, and it is filled before, as far as that goes in the time that is measured then, so that this goes over what is
    /// there.
    is_filled: bool,
}

/// The transfers that a verdict blames; none if it blames no device, or one cannot be measured.
fn ways(done: &Done<'_>, verdict: &Verdict) -> Vec<Way> {
    let write_rate = verdict.rates.write_bytes_per_s;
    // Of what is not known how fast it was, no share can be told.
    if verdict.rates == Rates::default() {
        return Vec::new();
    }
    // Of an output that temporary data lay in most is written over these, if they were that many.
    let temps = done.shared.temps;
    let is_new = !temps.lies_in_output() || 2 * temps.given_bytes() < done.output_bytes;
    let wanted = match (verdict.phase.as_str(), &verdict.bound_by) {
        ("distribute", BoundBy::Read { .. }) => inputs(done),
        ("distribute", BoundBy::Write { .. }) => temp_writes(done, write_rate),
        ("distribute", BoundBy::ReadAndWrite { .. }) => {
            let mut ways = temp_writes(done, write_rate);
            ways.extend(inputs(done));
            ways
        }
        ("sort", BoundBy::Read { .. }) => temp_reads(done),
        ("sort", BoundBy::Write { .. }) => vec![output(done, write_rate, is_new)],
        ("sort", BoundBy::ReadAndWrite { .. }) => {
            // The temporary file is read meanwhile.
            let mut ways = temp_reads(done);
            ways.push(output_apart(done, write_rate, is_new));
            ways
        }
        ("merge" | "copy" | "pass", BoundBy::Read { .. }) => inputs(done),
        ("merge" | "copy" | "pass", BoundBy::Write { .. }) => {
            vec![output(done, write_rate, is_new)]
        }
        ("merge" | "copy" | "pass", BoundBy::ReadAndWrite { .. }) => {
            let mut ways = inputs(done);
            ways.push(output(done, write_rate, is_new));
            ways
        }
        ("commit", BoundBy::Read { .. }) => vec![written(done)],
        _ => Vec::new(),
    };
    let ways: Option<Vec<Way>> = wanted.into_iter().collect();
    let mut ways = ways.unwrap_or_default();
    for way in &mut ways {
        let rate = match way.kind {
            OpKind::Read => verdict.rates.read_bytes_per_s,
            OpKind::Write => verdict.rates.write_bytes_per_s,
        };
        // A quarter of a second's worth in flight, so that a slow device does not make the probe long.
        let in_flight = align_down(rate / 4 / way.depth as u64);
        way.op_bytes = way
            .op_bytes
            .min(in_flight.max(sortmill_io::ALIGN_BYTES as u64));
    }
    let is_fit = |way: &Way| way.file.access == Access::Direct && way.file_bytes >= way.op_bytes;
    // A part of what is blamed would be compared with all of it.
    if !ways.iter().all(is_fit) {
        ways.clear();
    }
    ways
}

/// The largest input of each device.
fn inputs(done: &Done<'_>) -> Vec<Option<Way>> {
    let mut largest: Vec<&Source> = Vec::new();
    for source in done.sources {
        if source.meta.kind != Kind::Regular {
            continue;
        }
        let device = source.meta.identity.0;
        let known = largest
            .iter_mut()
            .find(|known| known.meta.identity.0 == device);
        match known {
            Some(known) if known.meta.bytes >= source.meta.bytes => {}
            Some(known) => *known = source,
            None => largest.push(source),
        }
    }
    match largest.is_empty() {
        true => vec![None],
        false => largest
            .into_iter()
            .map(|source| input(done, source))
            .collect(),
    }
}

fn input(done: &Done<'_>, source: &Source) -> Option<Way> {
    let Shared { plan, os, .. } = done.shared;
    let file = match source.file.access {
        Access::Direct => Arc::clone(&source.file),
        // Most of it lay in the page cache when it was opened: that is not what the device does.
        Access::Cached if source.meta.bytes >= DIRECT_BYTES_MIN => return None,
        // A small one came through the page cache, which holds it now.
        Access::Cached => Arc::new(os.open(&source.file.path, Access::Direct).ok()?),
    };
    Some(Way {
        kind: OpKind::Read,
        file,
        file_bytes: align_down(source.meta.bytes),
        op_bytes: plan.chunk_bytes as u64,
        depth: plan.chunk_depth,
        is_new: false,
        is_filled: false,
    })
}

/// Reads of temporary data, of all folders at once.
fn temp_reads(done: &Done<'_>) -> Vec<Option<Way>> {
    let Shared { plan, temps, .. } = done.shared;
    if !temps.lies_in_output() {
        return own_temps(done, OpKind::Read);
    }
    vec![written(done).map(|way| Way {
        op_bytes: plan.block_bytes as u64,
        depth: plan.block_depth,
        ..way
    })]
}

/// Writes of temporary data, which the job made at `rate` bytes a second, to all folders at once.
fn temp_writes(done: &Done<'_>, rate: u64) -> Vec<Option<Way>> {
    let Shared { plan, temps, .. } = done.shared;
    if !temps.lies_in_output() {
        return own_temps(done, OpKind::Write);
    }
    vec![output(done, rate, true).map(|way| Way {
        op_bytes: plan.block_bytes as u64,
        depth: plan.block_depth,
        ..way
    })]
}

/// All folders' files, those that got something; `None` where one cannot be measured.
fn own_temps(done: &Done<'_>, kind: OpKind) -> Vec<Option<Way>> {
    let Shared { plan, temps, .. } = done.shared;
    let files = temps.spilled().into_iter().zip(temps.depths());
    let given = files.enumerate().map(|(number, (file, depth))| {
        let file_bytes = align_down(temps.given_bytes_of(number));
        (file_bytes > 0).then(|| {
            Some(Way {
                kind,
                file: file?,
                file_bytes,
                op_bytes: plan.block_bytes as u64,
                depth,
                is_new: kind == OpKind::Write,
                is_filled: false,
            })
        })
    });
    let ways: Vec<Option<Way>> = given.flatten().collect();
    match ways.is_empty() {
        true => vec![None],
        false => ways,
    }
}

/// Writes on the output's device, which the job made at `rate` bytes a second, to new space or over what is there: to the temporary
/// file if that lies there, else to a file of its own.
fn output(done: &Done<'_>, rate: u64, is_new: bool) -> Option<Way> {
    let Shared { os, temps, .. } = done.shared;
    let (path, _) = output_place(done)?;
    let output_device = device(*os, path.parent()?);
    let files = temps.spilled().into_iter().zip(temps.bases()).enumerate();
    let spilled = files.filter(|(_, (_, base))| device(*os, base) == output_device);
    let spilled = spilled.filter_map(|(number, (file, _))| Some((number, file?)));
    let largest = spilled.max_by_key(|(number, _)| temps.given_bytes_of(*number));
    let largest = largest
        .map(|(number, file)| (file, align_down(temps.given_bytes_of(number))))
        // A smaller one is full before anything is seen but a cache.
        .filter(|(_, file_bytes)| file_bytes >= FILE_BYTES.start());
    match largest {
        Some((file, file_bytes)) => Some(Way {
            is_filled: false,
            ..output_to(done, file, file_bytes, is_new)?
        }),
        None => output_apart(done, rate, is_new),
    }
}

/// The same, to a file of its own in any case.
fn output_apart(done: &Done<'_>, rate: u64, is_new: bool) -> Option<Way> {
    let os = done.shared.os;
    let (path, _) = output_place(done)?;
    // The name is free since the output has its own, and known to whoever cleans up after a killed job.
    let file = os.create(path, Access::Direct, 0o600).ok()?;
    os.remove_file(path).ok()?;
    let room = os.space_free(path.parent()?).ok()? / 2;
    // To fill it takes time, too.
    let seconds = if is_new {
        2 * PROBE_NS / 1_000_000_000
    } else {
        1
    };
    let wanted = rate * seconds;
    let file_bytes = wanted.clamp(*FILE_BYTES.start(), *FILE_BYTES.end());
    let file_bytes = align_down(room.min(file_bytes));
    os.reserve(&file, file_bytes).ok()?;
    output_to(done, Arc::new(file), file_bytes, is_new)
}

fn output_to(done: &Done<'_>, file: Arc<File>, file_bytes: u64, is_new: bool) -> Option<Way> {
    let plan = done.shared.plan;
    let (_, depth) = output_place(done)?;
    Some(Way {
        kind: OpKind::Write,
        file,
        file_bytes,
        op_bytes: plan.chunk_bytes as u64,
        depth,
        is_new,
        is_filled: !is_new,
    })
}

/// The output's temporary name, which is free, and how many writes of it were in flight.
fn output_place<'d>(done: &'d Done<'_>) -> Option<(&'d Path, usize)> {
    match done.target {
        Target::File(output, depth) => Some((&output.path, *depth)),
        Target::Parts(files) => Some((&files.folder, files.depth)),
        Target::Stream(_) => None,
    }
}

fn written(done: &Done<'_>) -> Option<Way> {
    let plan = done.shared.plan;
    let Target::File(file, _) = done.target else {
        return None;
    };
    Some(Way {
        kind: OpKind::Read,
        file: Arc::clone(file),
        file_bytes: align_down(done.output_bytes),
        op_bytes: plan.chunk_bytes as u64,
        depth: plan.chunk_depth,
        is_new: false,
        is_filled: false,
    })
}

/// All `ways` at once for `probe_ns`, each from a thread and with a ring of its own, as stages have them.
fn measure(shared: &Shared<'_>, ways: &mut [Way], probe_ns: u64) -> Option<Rates> {
    for way in ways.iter().filter(|way| way.is_new) {
        shared.os.set_bytes(&way.file, 0).ok()?;
        shared.os.reserve(&way.file, way.file_bytes).ok()?;
    }
    let [blocks, chunks] = [&shared.block_pool, &shared.chunk_pool];
    let sizes = [blocks, chunks].map(|pool| (pool.buffer_bytes() as u64, pool.buffer_count()));
    let asked: Vec<(u64, usize)> = ways.iter().map(|way| (way.op_bytes, way.depth)).collect();
    for (way, (number, op_bytes, depth)) in ways.iter_mut().zip(from_pools(sizes, &asked)) {
        if way.is_filled {
            let once = Lane {
                way: &Way {
                    file: Arc::clone(&way.file),
                    is_new: true,
                    ..*way
                },
                pool: [blocks, chunks][number],
                op_bytes,
                depth,
                end_ns: &AtomicU64::new(shared.os.now_ns() + probe_ns),
            };
            way.file_bytes = once.transfer(shared)?.bytes;
        }
    }
    let ways = &*ways;
    let end_ns = AtomicU64::new(shared.os.now_ns() + probe_ns);
    let moved: Vec<Option<Moved>> = job_scope(shared.stop, |threads| {
        let started: Vec<_> = ways
            .iter()
            .zip(from_pools(sizes, &asked))
            .map(|(way, (number, op_bytes, depth))| {
                let lane = Lane {
                    way,
                    pool: [blocks, chunks][number],
                    op_bytes,
                    depth,
                    end_ns: &end_ns,
                };
                spawn(threads, "probe", move || lane.transfer(shared))
            })
            .collect();
        started.into_iter().map(join).collect()
    });
    let mut sum = Rates::default();
    for (way, moved) in ways.iter().zip(moved) {
        let Moved { bytes, ns } = moved?;
        match way.kind {
            OpKind::Read => sum.read_bytes_per_s += per_second(bytes, ns),
            OpKind::Write => sum.write_bytes_per_s += per_second(bytes, ns),
        }
    }
    Some(sum)
}

/// Which of two pools, blocks' and chunks' with sizes and counts of their buffers, each way takes buffers from that asks for so
/// many bytes so many times at once, and how many bytes how often it gets: blocks where they will do, and less than it asks for only
/// where its pool has no more for all.
fn from_pools(pools: [(u64, usize); 2], asked: &[(u64, usize)]) -> Vec<(usize, u64, usize)> {
    let number = |op_bytes: u64| usize::from(pools[0].1 == 0 || op_bytes > pools[0].0);
    let wanted = |pool| -> usize {
        let of = asked
            .iter()
            .filter(|&&(op_bytes, _)| number(op_bytes) == pool);
        of.map(|&(_, depth)| depth).sum()
    };
    let one = |&(op_bytes, depth): &(u64, usize)| {
        let pool = number(op_bytes);
        let (bytes, count) = pools[pool];
        let depth = match wanted(pool) {
            all if all > count => depth * count / all,
            _ => depth,
        };
        (pool, align_down(op_bytes.min(bytes)), depth.max(1))
    };
    asked.iter().map(one).collect()
}

/// What one way moved, and how long that took.
struct Moved {
    bytes: u64,
    ns: u64,
}

/// One way while it is measured.
struct Lane<'a> {
    way: &'a Way,
    pool: &'a Pool,
    op_bytes: u64,
    depth: usize,
    end_ns: &'a AtomicU64,
}

impl Lane<'_> {
    /// Keeps transfers in flight until the end, which is sooner where a file is full; `None` where it cannot be measured.
    fn transfer(&self, shared: &Shared<'_>) -> Option<Moved> {
        let Shared { os, stop, .. } = *shared;
        let (way, op_bytes) = (self.way, self.op_bytes);
        let mut ring = os.ring(self.depth).ok()?;
        let op_count = Some(way.file_bytes / op_bytes).filter(|&count| count > 0)?;
        let mut next = match way.is_new {
            true => 0,
            false => os.random() % op_count,
        };
        let mut bytes = 0;
        let began_ns = os.now_ns();
        let is_over = || os.now_ns() >= self.end_ns.load(Ordering::Relaxed) || stop.is_stopped();
        loop {
            while ring.in_flight() < self.depth && !is_over() {
                if next == op_count && way.is_new {
                    self.end_ns.fetch_min(os.now_ns(), Ordering::Relaxed);
                    break;
                }
                ring.submit(Op {
                    kind: way.kind,
                    file: Arc::clone(&way.file),
                    offset: next % op_count * op_bytes,
                    buffer: self.pool.try_take()?,
                    range: 0..op_bytes as usize,
                    tag: 0,
                });
                next += 1;
            }
            match ring.complete(true) {
                Some(done) => bytes += done.result.ok()? as u64,
                None => break,
            }
        }
        let ns = os.now_ns() - began_ns;
        (!stop.is_stopped()).then_some(Moved { bytes, ns })
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::from_pools;

    const MIB: u64 = 1 << 20;

    /// Of a job of 10 GB in 1 GB, which has 22 buffers for chunks: it reads 16 chunks and writes 200 blocks at once. While each way
    /// had half of the 22, reads had sixteen times as many bytes in flight as writes, and a disk divides itself by these.
    #[test]
    fn as_many_bytes_in_flight_as_the_job_had() {
        let pools = [(MIB / 4, 3000), (4 * MIB + 300_000, 22)];
        let both = [(4 * MIB, 16), (MIB / 4, 200)];
        assert_eq!(
            from_pools(pools, &both),
            [(1, 4 * MIB, 16), (0, MIB / 4, 200)]
        );
        // Two of chunks share what there is, and a job without blocks has them in chunks.
        let both = [(4 * MIB, 16), (4 * MIB, 28)];
        assert_eq!(
            from_pools(pools, &both),
            [(1, 4 * MIB, 8), (1, 4 * MIB, 14)]
        );
        assert_eq!(
            from_pools([(MIB, 0), (4 * MIB, 8)], &[(MIB, 40)]),
            [(1, MIB, 8)]
        );
        // A block that was measured to be large, of a job that was not expected to spill.
        let pools = [(MIB, 10), (4 * MIB + 1, 4)];
        assert_eq!(from_pools(pools, &[(16 * MIB, 2)]), [(1, 4 * MIB, 2)]);
        assert_eq!(
            from_pools(pools, &[(MIB, 4), (MIB, 4), (MIB, 4)])[2],
            (0, MIB, 3)
        );
    }
}
