//! What a device does alone, now: the same reads and writes the job made, with nothing in between.
//!
//! Runs once the output is committed, through the engine's own rings and buffers. It reads an input, reads
//! and writes the temporary file, whose blocks nobody needs any more (or reads the output, where they lay in
//! its space), and where there is none on the output's device, writes a file under the output's temporary
//! name that has no name but for a moment. Only files that go past the page cache are measured: memory tells
//! nothing of a device. A probe that fails, or that somebody interrupts, leaves its verdict without a share; the
//! job is done already.

use sortmill_io::os::{Access, Kind};
use sortmill_io::sync::{Arc, spawn};
use sortmill_io::{File, Op, OpKind, align_down};

use super::Shared;
use super::distribute::join;
use super::judge::Done;
use super::room::device;
use crate::queue::job_scope;
use crate::stage::write::Target;
use crate::verdict::{BoundBy, Rates, Verdict};

/// All probes of a job together.
const PROBE_NS: u64 = 2_000_000_000;
/// The most bytes of a file made for a probe.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Adds to each verdict that blames a device what that device does alone.
pub fn probe(done: &Done<'_>, verdicts: &mut [Verdict]) {
    let ways: Vec<Vec<Way>> = verdicts.iter().map(|verdict| ways(done, verdict)).collect();
    let count = ways.iter().filter(|ways| !ways.is_empty()).count();
    for (verdict, ways) in verdicts.iter_mut().zip(ways) {
        if ways.is_empty() {
            continue;
        }
        if let Some(rates) = measure(done.shared, &ways, PROBE_NS / count as u64) {
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
}

/// The transfers that a verdict blames; none if it blames no device, or one cannot be measured.
fn ways(done: &Done<'_>, verdict: &Verdict) -> Vec<Way> {
    let (read, write) = (OpKind::Read, OpKind::Write);
    let wanted = match (verdict.phase.as_str(), &verdict.bound_by) {
        ("distribute", BoundBy::Read { .. }) => vec![input(done)],
        ("distribute", BoundBy::Write { .. }) => temp(done, write),
        ("distribute", BoundBy::ReadAndWrite { .. }) => {
            let mut ways = temp(done, write);
            ways.push(input(done));
            ways
        }
        ("sort", BoundBy::Read { .. }) => temp(done, read),
        ("sort", BoundBy::Write { .. }) => vec![output(done)],
        (
            "sort",
            BoundBy::ReadAndWrite {
                read_path,
                write_path,
            },
        ) if read_path == write_path => {
            let mut ways = temp(done, read);
            ways.extend(temp(done, write));
            ways
        }
        ("sort", BoundBy::ReadAndWrite { .. }) => {
            let mut ways = temp(done, read);
            ways.push(output(done));
            ways
        }
        ("merge" | "copy", BoundBy::Read { .. }) => vec![input(done)],
        ("merge" | "copy", BoundBy::Write { .. }) => vec![output(done)],
        ("merge" | "copy", BoundBy::ReadAndWrite { .. }) => vec![input(done), output(done)],
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
    ways.retain(|way| way.file.access == Access::Direct && way.file_bytes >= way.op_bytes);
    ways
}

fn input(done: &Done<'_>) -> Option<Way> {
    let plan = done.shared.plan;
    let regular = |source: &&crate::stage::read::Source| source.meta.kind == Kind::Regular;
    let sources = done.sources.iter().filter(regular);
    let largest = sources.max_by_key(|source| source.meta.bytes)?;
    let file = match largest.file.access {
        Access::Direct => Arc::clone(&largest.file),
        // It came through the page cache, which holds it now.
        Access::Cached => Arc::new(
            done.shared
                .os
                .open(&largest.file.path, Access::Direct)
                .ok()?,
        ),
    };
    Some(Way {
        kind: OpKind::Read,
        file,
        file_bytes: align_down(largest.meta.bytes),
        op_bytes: plan.chunk_bytes as u64,
        depth: plan.chunk_depth,
    })
}

/// All folders' files at once, those that got something; `None` where one cannot be measured.
fn temp(done: &Done<'_>, kind: OpKind) -> Vec<Option<Way>> {
    let Shared { plan, temps, .. } = done.shared;
    if temps.lies_in_output() {
        let way = match kind {
            OpKind::Read => written(done),
            OpKind::Write => output(done),
        };
        return vec![way.map(|way| Way {
            op_bytes: plan.block_bytes as u64,
            depth: plan.block_depth,
            ..way
        })];
    }
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
            })
        })
    });
    let ways: Vec<Option<Way>> = given.flatten().collect();
    match ways.is_empty() {
        true => vec![None],
        false => ways,
    }
}

/// Writes on the output's device: over the temporary file if that lies there, else to a file of its own.
fn output(done: &Done<'_>) -> Option<Way> {
    let Shared {
        plan, os, temps, ..
    } = done.shared;
    let (path, depth) = match done.target {
        Target::File(output, depth) => (&output.path, *depth),
        Target::Parts(files) => (&files.folder, files.depth),
        Target::Stream(_) => return None,
    };
    let output_device = device(*os, path.parent()?);
    let files = temps.spilled().into_iter().zip(temps.bases()).enumerate();
    let spilled = files.filter(|(_, (_, base))| device(*os, base) == output_device);
    let spilled = spilled.filter_map(|(number, (file, _))| Some((number, file?)));
    let largest = spilled.max_by_key(|(number, _)| temps.given_bytes_of(*number));
    let (file, file_bytes) = if let Some((number, file)) = largest {
        (file, align_down(temps.given_bytes_of(number)))
    } else {
        // The name is free since the output has its own, and known to whoever cleans up after a killed job.
        let file = os.create(path, Access::Direct, 0o600).ok()?;
        os.remove_file(path).ok()?;
        let room = os.space_free(path.parent()?).ok()? / 2;
        let file_bytes = align_down(room.min(FILE_BYTES_MAX));
        os.reserve(&file, file_bytes).ok()?;
        (Arc::new(file), file_bytes)
    };
    Some(Way {
        kind: OpKind::Write,
        file,
        file_bytes,
        op_bytes: plan.chunk_bytes as u64,
        depth,
    })
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
    })
}

/// All `ways` at once for `probe_ns`, each from a thread and with a ring of its own, as stages have them.
fn measure(shared: &Shared<'_>, ways: &[Way], probe_ns: u64) -> Option<Rates> {
    let end_ns = shared.os.now_ns() + probe_ns;
    let depth_max = (shared.chunk_pool.buffer_count() / ways.len()).max(1);
    let rates: Vec<Option<u64>> = job_scope(shared.stop, |threads| {
        let started: Vec<_> = ways
            .iter()
            .map(|way| {
                spawn(threads, "probe", move || {
                    transfer(shared, way, way.depth.min(depth_max), end_ns)
                })
            })
            .collect();
        started.into_iter().map(join).collect()
    });
    let mut sum = Rates::default();
    for (way, rate) in ways.iter().zip(rates) {
        match way.kind {
            OpKind::Read => sum.read_bytes_per_s += rate?,
            OpKind::Write => sum.write_bytes_per_s += rate?,
        }
    }
    Some(sum)
}

/// Keeps `depth` transfers in flight until `end_ns`. Answers bytes a second.
fn transfer(shared: &Shared<'_>, way: &Way, depth: usize, end_ns: u64) -> Option<u64> {
    let Shared { os, stop, .. } = *shared;
    let mut ring = os.ring(depth).ok()?;
    let op_count = way.file_bytes / way.op_bytes;
    let mut next = os.random() % op_count;
    let mut moved = 0;
    let began_ns = os.now_ns();
    loop {
        while ring.in_flight() < depth && os.now_ns() < end_ns && !stop.is_stopped() {
            ring.submit(Op {
                kind: way.kind,
                file: Arc::clone(&way.file),
                offset: next * way.op_bytes,
                buffer: shared.chunk_pool.try_take()?,
                range: 0..way.op_bytes as usize,
                tag: 0,
            });
            next = (next + 1) % op_count;
        }
        match ring.complete(true) {
            Some(done) => moved += done.result.ok()? as u64,
            None => break,
        }
    }
    let took_ns = (os.now_ns() - began_ns).max(1);
    (!stop.is_stopped()).then(|| (u128::from(moved) * 1_000_000_000 / u128::from(took_ns)) as u64)
}
