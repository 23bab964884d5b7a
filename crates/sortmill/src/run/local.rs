//! A job on several nodes, seen from the process that the user started: the coordinator's hands.
//!
//! It opens and plans as any job does, makes the output's file under its temporary name, starts the nodes, draws the
//! sample while they start, and then does what the state machine says (`cluster::coordinator`). At the end it writes
//! the few blocks that two nodes share and gives the output its name. Whatever happens, every node has ended, and what
//! it left is gone, before this returns.

mod report;

use std::collections::BTreeMap;

use sortmill_io::os::is_out_of_descriptors;
use sortmill_io::process::{self, Child};
use sortmill_io::sync::{Arc, spawn};
use sortmill_io::{ALIGN_BYTES, File, Op, OpKind, Os, Pool, align_down, align_up};

use super::distribute::{guarded, join};
use super::sampling::draw_sample;
use super::{Prepared, Shared, Where, ends, expected, extents, room};
use crate::chunks::{Chunks, Extent};
use crate::cluster::On;
use crate::cluster::coordinator::{Action, Coordinator, Event};
use crate::cluster::message::{self, Distributed, Done, Folder, InputFile, Lines, Start};
use crate::commit::Uncommitted;
use crate::error::{Error, ErrorKind, Result};
use crate::job::Job;
use crate::order::{Begun, Format};
use crate::plan::Plan;
use crate::progress;
use crate::queue::{Queue, Stop, job_scope};
use crate::report::{Grown, Report};
use crate::sample::Sample;
use crate::stage::read::{Source, sample_records};
use crate::table::Boundary;
use crate::temp::{Unfinished, clean_up};
use crate::temps::Temps;

use report::{Sums, Times, report};

/// A node that was told to end has so long before it is killed.
const PATIENCE_NS: u64 = 2_000_000_000;

/// Refuses what several processes cannot share: inputs and outputs that are streams.
///
/// # Errors
/// [`ErrorKind::Usage`] with the path.
pub fn check_files(sources: &[Source], output: &Where) -> Result<()> {
    let refuse = |path: &std::path::Path, cause: &str| {
        let doing = "sharing the job between nodes";
        Err(Error::new(ErrorKind::Usage, doing, cause).at(path))
    };
    if let Some(stream) = sources
        .iter()
        .find(|source| source.extent() == Extent::Stream)
    {
        let cause = match stream.codec {
            None => "--on reads files that have a name and a length, and this is a stream",
            Some(_) => "--on reads files whose length is known, and this one is compressed",
        };
        return refuse(&stream.file.path, cause);
    }
    match output {
        Where::InPlace(path) => refuse(path, "--on writes a file, and this is a pipe or a device"),
        _ => Ok(()),
    }
}

/// Sorts what was prepared, on the nodes of `on`.
///
/// # Errors
/// As [`super::sort`], and of a node that did not come to its end.
pub fn sort(on: &On, job: &Job, prepared: Prepared, os: &dyn Os, stop: &Stop) -> Result<Report> {
    let Prepared {
        plan,
        temps: folders,
        sources,
        output,
        ..
    } = prepared;
    let Where::NewFile(new_file) = &output else {
        unreachable!("nothing else was accepted");
    };
    let began_ns = os.now_ns();
    let usage_before = os.usage();
    expected::before(job, &plan, os, &sources, &output, &folders);
    let number = os.random();
    let mut uncommitted = Uncommitted::new(os, number);
    let unfinished = Unfinished {
        path: uncommitted.temporary(new_file),
        parts: None,
    };
    let output_path = unfinished.path.clone();
    for folder in &folders {
        clean_up(os, &folder.path);
    }
    room::check_space(os, &plan, &folders, output.folder())?;
    let temps = Temps::new(os, number, &folders, Some(&unfinished), &plan);
    // Should this process be killed, whoever comes next finds the unfinished output by it.
    temps.make()?;
    let file = Arc::new(uncommitted.create(new_file, plan.input_bytes.unwrap_or(0))?);
    let shared = Shared::new(job, &plan, os, stop, number, &temps)?;

    let prepared_ns = os.now_ns();
    expected::enter(job, progress::Phase::Distribute, os);
    let mut nodes = Nodes::start(on, stop)?;
    let drawn = draw(&shared, &sources);
    let ran = drawn.and_then(|drawn| {
        let sampled_ns = os.now_ns() - prepared_ns;
        let starts = starts(&shared, &sources, &drawn, &output_path);
        let ran = nodes.run(&shared, starts)?;
        Ok((ran, drawn.bytes, sampled_ns))
    });
    // However it went, no node is left, and nothing of one that was killed.
    drop(nodes);
    for folder in &folders {
        clean_up(os, &folder.path);
    }
    let (ran, sample_bytes, sample_ns) = ran?;
    let sorted_ns = os.now_ns();

    let sums = Sums::of(job, &ran.nodes)?;
    check_order(&plan, &ran.nodes)?;
    let edge_bytes = write_edges(&shared, &file, &ran.nodes, sums.written.bytes)?;
    expected::enter(job, progress::Phase::Sync, os);
    uncommitted.finish(new_file, &file, sums.written.bytes)?;
    if plan.verify {
        expected::verify(job, os, sums.written.bytes);
        crate::check::verify(job, &shared, &file.path, (&[], &sums.written), 0)?;
    }
    uncommitted.commit(stop)?;
    temps.remove();
    expected::enter(job, progress::Phase::Done, os);
    let times = Times {
        began_ns,
        prepared_ns,
        sample_ns,
        distributed_ns: ran.distributed_ns,
        sorted_ns,
        usage_before,
    };
    let nodes = ran.nodes.into_iter().map(|(_, done)| done.report).collect();
    let mut report = report(os, &plan, &times, &sums, nodes);
    report.bytes.sample_read = sample_bytes;
    report.grown = Grown::of(job, &sources, os);
    report.bytes.output_written += edge_bytes;
    Ok(report)
}

/// What was sampled, and the bytes read for it.
struct Drawn {
    between: Vec<Boundary>,
    all: Vec<Boundary>,
    bytes: u64,
}

/// Draws the boundaries between nodes and those between their partitions from one sample.
fn draw(shared: &Shared<'_>, sources: &[Source]) -> Result<Drawn> {
    let plan = shared.plan;
    let (mut sample, bytes) = match plan.order.format() {
        // In the middle of a file nobody can tell where a pair begins.
        Format::Kv => sample_beginnings(shared, sources)?,
        Format::Lines | Format::Quoted(_) | Format::Fixed(_) => {
            let drawn = draw_sample(shared, sources)?;
            (drawn.sample, drawn.bytes)
        }
    };
    let node_count = plan.node_count() as usize;
    Ok(Drawn {
        between: sample.boundaries(node_count, plan.equal_keys_meet),
        all: sample.boundaries(node_count * plan.partition_count, plan.equal_keys_meet),
        bytes,
    })
}

/// Samples the first chunk of some inputs, spread evenly.
fn sample_beginnings(shared: &Shared<'_>, sources: &[Source]) -> Result<(Sample, u64)> {
    const INPUTS_MAX: usize = 16;
    const KEYS_PER_INPUT: usize = 4096;
    let Shared { plan, os, .. } = *shared;
    let first_chunks = Chunks::first_chunks(&extents(sources), plan.chunk_bytes as u64);
    let mut sample = Sample::default();
    let mut sum = 0;
    for (source, chunk) in sources
        .iter()
        .zip(first_chunks)
        .step_by(sources.len().div_ceil(INPUTS_MAX).max(1))
    {
        let bytes = source.meta.bytes.min(plan.chunk_bytes as u64);
        let buffer = shared
            .chunk_pool
            .take()
            .ok_or_else(|| shared.stop.error())?;
        let op = Op {
            kind: OpKind::Read,
            file: Arc::clone(&source.file),
            offset: 0,
            buffer,
            range: 0..align_up(bytes) as usize,
            tag: 0,
        };
        let (buffer, moved) = move_one(os, "sampling the input", op)?;
        sum += moved as u64;
        let bytes = &buffer[..moved.min(bytes as usize)];
        sample_records(
            &plan.order,
            bytes,
            &Begun::default(),
            KEYS_PER_INPUT,
            |record| {
                sample.add(&plan.order, record, chunk);
            },
        );
    }
    Ok((sample, sum))
}

/// Does one operation, and waits for it. Answers the memory and the bytes moved.
fn move_one(os: &dyn Os, doing: &str, op: Op) -> Result<(sortmill_io::Buffer, usize)> {
    if op.range.is_empty() {
        return Ok((op.buffer, 0));
    }
    let path = op.file.path.clone();
    let wrong = |error: std::io::Error| Error::io(doing, &path, &error);
    let mut ring = os.ring(1).map_err(wrong)?;
    ring.submit(op);
    let done = ring.complete(true).expect("one is in flight");
    let moved = done
        .result
        .map_err(|error| wrong(error).offset(done.op.offset))?;
    Ok((done.op.buffer, moved))
}

/// A name that is of the same file for a node: `/dev/stdin` is another one there.
fn as_of_any_process(os: &dyn Os, path: &std::path::Path) -> std::path::PathBuf {
    let is_own = ["/dev/stdin", "/dev/fd", "/proc/self"]
        .iter()
        .any(|own| path.starts_with(own));
    let resolved = is_own.then(|| os.resolve(path).ok()).flatten();
    resolved.unwrap_or_else(|| path.to_owned())
}

/// What each node is to be told.
fn starts(
    shared: &Shared<'_>,
    sources: &[Source],
    drawn: &Drawn,
    output: &std::path::Path,
) -> Vec<Start> {
    let Shared { job, plan, os, .. } = *shared;
    let secret = [os.random(), os.random()];
    let inputs: Vec<InputFile> = sources
        .iter()
        .map(|source| InputFile {
            path: as_of_any_process(os, &source.file.path),
            identity: source.meta.identity,
            bytes: source.meta.bytes,
            changed_ns: source.meta.changed_ns,
        })
        .collect();
    let count = plan.node_count();
    let chunk_count = Chunks::count(&extents(sources), plan.chunk_bytes as u64);
    let share = |node: u32| chunk_count * u64::from(node) / u64::from(count);
    let start = |node: u32| {
        let mut plan = plan.clone();
        let nodes = plan.nodes.as_mut().expect("a plan of several nodes");
        nodes.number = node;
        let (from, to) = (
            node.checked_sub(1)
                .and_then(|below| drawn.between.get(below as usize)),
            drawn.between.get(node as usize),
        );
        let is_inside = |boundary: &&Boundary| {
            from.is_none_or(|from| from < *boundary) && to.is_none_or(|to| *boundary < to)
        };
        Start {
            job: shared.number,
            secret,
            ports: Vec::new(),
            plan,
            keys: job.keys.clone(),
            inputs: inputs.clone(),
            as_of_start: job.as_of_start,
            skip_bad: job.skip_bad,
            chunks: (share(node), share(node + 1)),
            between: drawn.between.clone(),
            inside: drawn.all.iter().filter(is_inside).cloned().collect(),
            temps: shared
                .temps
                .bases()
                .map(|base| Folder(base.to_owned()))
                .collect(),
            temp_program: job.temp_program.clone().map(Folder),
            output: output.to_owned(),
            tells_progress: job.progress.is_some(),
        }
    };
    (0..count).map(start).collect()
}

/// The processes of the nodes.
struct Nodes {
    children: Vec<Child>,
    to: Vec<File>,
    from: Vec<File>,
}

/// What came of them.
struct Ran {
    nodes: Vec<(Distributed, Done)>,
    distributed_ns: u64,
}

impl Nodes {
    fn start(on: &On, stop: &Stop) -> Result<Self> {
        let mut nodes = Self {
            children: Vec::new(),
            to: Vec::new(),
            from: Vec::new(),
        };
        for number in 0..on.node_count {
            stop.check()?;
            let name = format!("node {number}");
            // This very program has no name that tells; an interpreter finds its libraries by its own.
            let called = on.program.starts_with("/proc").then_some("sortmill");
            let started = process::start(&on.program, called, &on.words, &name);
            let started = started.map_err(|error| {
                let told = Error::io("starting a node", &on.program, &error);
                match is_out_of_descriptors(&error) {
                    // A pipe each way.
                    true => told.hint(format!(
                        "Raise the limit of open files: ulimit -n {} is enough for {} nodes.",
                        64 + 2 * on.node_count,
                        on.node_count
                    )),
                    false => told,
                }
            })?;
            nodes.children.push(started.child);
            nodes.to.push(started.to);
            nodes.from.push(started.from);
        }
        Ok(nodes)
    }

    /// Does what the coordinator says until all nodes have ended.
    fn run(&mut self, shared: &Shared<'_>, starts: Vec<Start>) -> Result<Ran> {
        let Shared { job, os, stop, .. } = *shared;
        let events: Queue<Event> = Queue::new(64 * self.children.len());
        stop.on_stop({
            let events = events.clone();
            move || events.close()
        });
        let mut coordinator = Coordinator::new(starts);
        let mut distributed_ns = 0;
        let from = std::mem::take(&mut self.from);
        job_scope(stop, |threads| {
            let listeners: Vec<_> = from
                .iter()
                .zip(0..)
                .map(|(from, node)| {
                    let events = events.clone();
                    spawn(threads, &format!("hear-{node}"), move || {
                        guarded(stop, || {
                            hear(os, from, node, &events);
                            Ok(())
                        })
                    })
                })
                .collect();
            let mut hung_up = 0;
            while !coordinator.is_over() {
                let Some(event) = events.pop() else { break };
                hung_up += usize::from(matches!(event, Event::HungUp(_)));
                for action in coordinator.step(event) {
                    match action {
                        Action::Tell(node, message) => {
                            let line = message::line(&message);
                            let to = &self.to[node as usize];
                            // One that hears nothing more is about to end, which says more.
                            let _ = os.write_stream(to, &line, &|| stop.is_stopped());
                        }
                        Action::Moved(read, written) => {
                            if let Some(progress) = &job.progress {
                                progress.read(read);
                                progress.wrote(written);
                            }
                        }
                        Action::Distributed(spilled, bytes) => {
                            distributed_ns = os.now_ns();
                            expected::on_nodes(job, os, spilled, bytes, shared.plan.verify);
                        }
                    }
                }
            }
            // Whoever still works hears that nobody will listen.
            self.to.clear();
            let deadline_ns = os.now_ns() + PATIENCE_NS;
            let mut endings = Vec::new();
            for (child, node) in self.children.iter_mut().zip(0..) {
                let left_ns = deadline_ns.saturating_sub(os.now_ns());
                endings.push((node, child.end(left_ns)));
            }
            // What they said at last may tell why.
            while hung_up < from.len()
                && let Some(event) = events.pop()
            {
                hung_up += usize::from(matches!(event, Event::HungUp(_)));
                let _ = coordinator.step(event);
            }
            for listener in listeners {
                join(listener);
            }
            for (node, ending) in endings {
                let ending = ending.map_err(|error| {
                    Error::new(ErrorKind::Io, "waiting for a node", error.to_string())
                })?;
                let _ = coordinator.step(Event::Ended(node, ending));
            }
            Ok::<_, Error>(())
        })?;
        stop.check()?;
        Ok(Ran {
            nodes: coordinator.outcome()?,
            distributed_ns,
        })
    }
}

/// Hands on what a node says, until it says nothing more.
fn hear(os: &dyn Os, from: &File, node: u32, events: &Queue<Event>) {
    let mut lines = Lines::default();
    let mut bytes = vec![0; 64 << 10];
    // Its pipe ends when the process does, which nobody waits for longer than it takes to kill it.
    while let Ok(count @ 1..) = os.read_stream(from, &mut bytes, &|| false) {
        let mut heard = lines.take(&bytes[..count]);
        while heard.is_ok() {
            match lines.next_message() {
                Ok(None) => break,
                Ok(Some(message)) => {
                    // When the queue is closed the job is ending, and nobody needs to know why.
                    let _ = events.push(Event::Told(node, message));
                }
                Err(error) => heard = Err(error),
            }
        }
        if let Err(error) = heard {
            let _ = events.push(Event::Garbled(node, error));
            break;
        }
    }
    let _ = events.push(Event::HungUp(node));
}

/// Checks that no node's records begin below where those of the ones before it end.
fn check_order(plan: &Plan, nodes: &[(Distributed, Done)]) -> Result<()> {
    let (order, row) = (plan.short_order(), ends::Row::default());
    for (number, (_, done)) in nodes.iter().enumerate() {
        let ends = done.ends.as_ref();
        let ends = ends.map(|ends| [ends.first(), ends.last()]);
        row.tell((&order, plan.head_bytes), number, ends)?;
    }
    Ok(())
}

/// Writes the blocks of the output that more than one node has a part of. Answers the bytes written.
fn write_edges(
    shared: &Shared<'_>,
    file: &Arc<File>,
    nodes: &[(Distributed, Done)],
    file_bytes: u64,
) -> Result<u64> {
    const DOING: &str = "writing the output";
    let lost = |cause: &str| Error::new(ErrorKind::Lost, DOING, cause).at(&file.path);
    let mut blocks: BTreeMap<u64, (Vec<u8>, usize)> = BTreeMap::new();
    for (offset, piece) in nodes.iter().flat_map(|(_, done)| &done.edges) {
        let start = align_down(*offset);
        let at = (offset - start) as usize;
        let (block, filled) = blocks
            .entry(start)
            .or_insert_with(|| (vec![0; ALIGN_BYTES], 0));
        let into = block.get_mut(at..at.saturating_add(piece.len()));
        let into = into.ok_or_else(|| lost("a node's piece of a block is too long"))?;
        into.copy_from_slice(piece);
        *filled += piece.len();
    }
    let pool = Pool::new(1, ALIGN_BYTES)
        .map_err(|error| Error::new(ErrorKind::Memory, DOING, error.to_string()))?;
    let bytes = (blocks.len() * ALIGN_BYTES) as u64;
    for (start, (block, filled)) in blocks {
        if filled as u64 != (ALIGN_BYTES as u64).min(file_bytes.saturating_sub(start)) {
            return Err(lost("a block between nodes is not complete"));
        }
        let mut buffer = pool.take().expect("the one before is written");
        buffer.copy_from_slice(&block);
        let op = Op {
            kind: OpKind::Write,
            file: Arc::clone(file),
            offset: start,
            buffer,
            range: 0..ALIGN_BYTES,
            tag: 0,
        };
        move_one(shared.os, DOING, op)?;
    }
    Ok(bytes)
}
