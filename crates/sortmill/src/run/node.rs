//! One node of a job: what the coordinator starts, as a process of its own.
//!
//! In come messages on standard input, out go messages on standard output (`cluster::message`); records come and go
//! through files and connections. The job is the ordinary one, with two differences: of the input it reads a share,
//! and records of other nodes leave between partition and spill, while theirs for this node come in. When standard
//! input ends before the job, the coordinator is gone, or wants this node to be: it ends, and leaves nothing behind.

use std::path::Path;

use sortmill_io::os::{Access, Usage};
use sortmill_io::process::pause;
use sortmill_io::sync::atomic::{AtomicBool, Ordering};
use sortmill_io::sync::{Arc, Mutex, lock, spawn};
use sortmill_io::{File, Os, net};

use super::distribute::{Distributed, distribute, join};
use super::exchange::{Exchange, Other};
use super::proof::compare;
use super::sorting::{self, Sorted, Span};
use super::way::Since;
use super::{Needed, Shared, direct_io, expected, room};
use crate::cluster::message::{self, Done, Failure, Fault, FromNode, Lines, Place, Start, ToNode};
use crate::error::{Error, ErrorKind, Result};
use crate::job::{Input, Job, Output};
use crate::plan::Plan;
use crate::progress::{self, Progress, Snapshot};
use crate::queue::{Promise, Stop, job_scope};
use crate::report::{Bytes, NodeReport, Phase, TempPacked};
use crate::stage::read::{Left, ReadTotals, Share, Source, replaced};
use crate::stage::write::{Seams, Target};
use crate::temp::clean_up;
use crate::temps::Temps;
use crate::wire;

/// Is a node: takes its part in one job, told by standard input and telling on standard output.
///
/// # Errors
/// Why it did not come to its end. The coordinator has been told.
pub fn node(os: &dyn Os, stop: &Stop) -> Result<()> {
    let failed =
        |error: std::io::Error| Error::io("reaching the coordinator", Path::new("-"), &error);
    let coordinator = Coordinator {
        os,
        from: os.stdin().map_err(failed)?,
        to: Mutex::new(os.stdout().map_err(failed)?),
        told: Told::default(),
        moved: Mutex::new(None),
        has_ended: AtomicBool::new(false),
        has_hung_up: AtomicBool::new(false),
    };
    let told = coordinator.told.clone();
    stop.on_stop(move || {
        told.start.abort();
        told.left.abort();
        told.place.abort();
    });
    let result = job_scope(stop, |threads| {
        let ears = spawn(threads, "hear", || coordinator.hear(stop));
        let result = take_part(&coordinator, os, stop);
        coordinator.has_ended.store(true, Ordering::SeqCst);
        join(ears);
        result
    });
    let Err(error) = result else {
        return Ok(());
    };
    stop.fail(error);
    let error = stop.error();
    let hung_up = coordinator.has_hung_up.load(Ordering::SeqCst);
    let failure = Failure {
        fault: Fault::of(&error),
        followed: hung_up || (error.kind == ErrorKind::Io && is_node(&error)),
    };
    if coordinator.say(&FromNode::Failed(failure)).is_err()
        && let Some(start) = coordinator.told.start.now()
    {
        clean_up_behind(os, &start);
    }
    Err(error)
}

/// The other end of the pipes.
struct Coordinator<'a> {
    os: &'a dyn Os,
    from: File,
    to: Mutex<File>,
    told: Told,
    /// What it is told of the bytes that are moved.
    moved: Mutex<Option<Moved>>,
    /// Nothing more is expected from it.
    has_ended: AtomicBool,
    /// It says nothing more.
    has_hung_up: AtomicBool,
}

/// How far this node is, and how far it was when that was told last.
struct Moved {
    progress: Arc<Progress>,
    last: Snapshot,
}

/// What it says, each once.
#[derive(Clone, Default)]
struct Told {
    start: Promise<Arc<Start>>,
    left: Promise<Left>,
    place: Promise<Place>,
}

impl Coordinator<'_> {
    fn say(&self, message: &FromNode) -> Result<()> {
        let to = lock(&self.to);
        let said = self
            .os
            .write_stream(&to, &message::line(message), &|| false);
        said.map_err(|error| Error::io("telling the coordinator", Path::new("-"), &error))
    }

    /// Keeps what is said until the node has ended; the job ends with what is said.
    fn hear(&self, stop: &Stop) {
        let mut lines = Lines::default();
        let mut bytes = vec![0; 64 << 10];
        loop {
            let stopped = || {
                self.tell_progress();
                stop.is_stopped() || self.has_ended.load(Ordering::SeqCst)
            };
            let heard = match self.os.read_stream(&self.from, &mut bytes, &stopped) {
                Ok(0) => {
                    let has_failed = stop.is_stopped();
                    self.has_hung_up.store(!has_failed, Ordering::SeqCst);
                    let cause = "the process that coordinates it has ended";
                    Err(Error::new(ErrorKind::Interrupted, "running the job", cause))
                }
                Ok(count) => lines.take(&bytes[..count]).and_then(|()| {
                    while let Some(message) = lines.next_message()? {
                        self.told.keep(message);
                    }
                    Ok(())
                }),
                Err(_) if stop.is_stopped() || self.has_ended.load(Ordering::SeqCst) => return,
                Err(error) => Err(Error::io("hearing the coordinator", Path::new("-"), &error)),
            };
            if let Err(error) = heard {
                if !self.has_ended.load(Ordering::SeqCst) {
                    stop.fail(error);
                }
                return;
            }
        }
    }

    /// Says how much was moved since it was said last.
    fn tell_progress(&self) {
        let mut moved = lock(&self.moved);
        let Some(Moved { progress, last }) = &mut *moved else {
            return;
        };
        let now = progress.now(self.os);
        let (read, written, _) = now.since(last);
        if read + written > 0 && self.say(&FromNode::Moved(read, written)).is_ok() {
            *last = now;
        }
    }
}

impl Told {
    fn keep(&self, message: ToNode) {
        match message {
            ToNode::Start(start) => self.start.keep(Arc::new(*start)),
            ToNode::GoOn(left) => self.left.keep(left),
            ToNode::Write(place) => self.place.keep(place),
        }
    }
}

/// Whether an error is about the connection to another node.
fn is_node(error: &Error) -> bool {
    let path = error.path.as_ref().and_then(|path| path.to_str());
    path.is_some_and(|path| path.starts_with(NODE))
}

/// What connections are called in messages, before the number.
const NODE: &str = "node ";

/// Removes what the coordinator would have removed, had it not been killed.
fn clean_up_behind(os: &dyn Os, start: &Start) {
    // Its locks go a moment after its pipes.
    for _ in 0..100 {
        for folder in &start.temps {
            clean_up(os, &folder.0);
        }
        if os.meta_at(&start.output).is_err() {
            return;
        }
        pause(20_000_000);
    }
}

/// Its part, from the first word to the last.
fn take_part(coordinator: &Coordinator<'_>, os: &dyn Os, stop: &Stop) -> Result<()> {
    let listening = |error: std::io::Error| {
        Error::new(
            ErrorKind::Io,
            "listening for other nodes",
            error.to_string(),
        )
    };
    let listener = net::Listener::on_loopback().map_err(listening)?;
    coordinator.say(&FromNode::Ready(listener.port()))?;
    let start = coordinator.told.start.get().ok_or_else(|| stop.error())?;
    let job = job_of(&start);
    if let Some(progress) = &job.progress {
        expected::enter(&job, progress::Phase::Distribute, os);
        let begin = progress.now(os);
        *lock(&coordinator.moved) = Some(Moved {
            progress: Arc::clone(progress),
            last: begin,
        });
    }
    let sources = open_inputs(os, &start)?;
    let connections = connect(os, stop, listener, &start)?;
    let plan = &start.plan;
    let ends = (&*sources, start.output.parent());
    let paths = start.temps.iter().map(|folder| folder.0.clone()).collect();
    let folders = room::temp_folders(&job, os, plan, ends, paths)?;
    let temps = Temps::new(os, os.random(), &folders, None, plan);
    if plan.temp_bytes != Some(0) {
        temps.make()?;
    }
    let shared = Shared::new(&job, plan, os, stop, start.job, &temps)?;
    let worked = work(coordinator, &start, &shared, &sources, connections);
    worked.map_err(|error| {
        let needed = Needed {
            temp_bytes: 0,
            taken_bytes: temps.given_bytes(),
            output_bytes: plan.input_bytes.unwrap_or(0),
            is_unknown: false,
            is_unread: false,
        };
        needed.explain(error, os)
    })
}

/// Both phases, with the wait for all other nodes between them.
fn work(
    coordinator: &Coordinator<'_>,
    start: &Start,
    shared: &Shared<'_>,
    sources: &[Source],
    connections: Vec<(u32, File)>,
) -> Result<()> {
    let Shared { plan, os, stop, .. } = *shared;
    let others = connections
        .into_iter()
        .map(|(number, connection)| Other::new(shared, number, connection));
    let exchange = Exchange {
        between: start.between.clone(),
        inside: start.inside.clone(),
        share: Share {
            chunks: start.chunks.0..start.chunks.1,
            before: &|| coordinator.told.left.get().ok_or_else(|| stop.error()),
            after: &|left| coordinator.say(&FromNode::Reached(left)),
        },
        others: others.collect::<Result<_>>()?,
    };
    let began = Since::now(os);
    let distributed = distribute(shared, sources, None, Some(&exchange))?;
    drop(exchange);
    let distribute_phase = Phase::new("distribute", began.took(os), &distributed.metrics);
    coordinator.tell_progress();
    coordinator.say(&FromNode::Distributed(Box::new(message::Distributed {
        read: message::Read::of(&distributed.read),
        input: distributed.input,
        fingerprint: distributed.fingerprint,
        spilled_bytes: distributed.counts.spilled_bytes,
    })))?;
    let place = coordinator.told.place.get().ok_or_else(|| stop.error())?;

    let began = Since::now(os);
    let file = os
        .open_for_write(&start.output, Access::Direct)
        .map_err(|error| Error::io("opening the output", &start.output, &error))?;
    let target = Target::File(Arc::new(file), plan.chunk_depth);
    let Distributed {
        units,
        bodies,
        read,
        fingerprint,
        counts,
        ..
    } = distributed;
    let span = Span {
        base: place.from,
        header: &[],
        bytes: fingerprint.bytes,
        total: Some(place.file_bytes),
        seams: &Seams::default(),
        made_parts: None,
        is_all: true,
    };
    let sorted = sorting::sort(
        shared,
        (units, &bodies),
        &span,
        Some(&target),
        None,
        Some(place),
    )?;
    stop.check()?;
    compare(&fingerprint, &sorted.gathered)?;
    let sort_phase = Phase::new("sort", began.took(os), &sorted.metrics);
    let temp_folders = shared.temps.report();
    shared.temps.remove();
    coordinator.tell_progress();
    let usage = os.usage();
    let report = NodeReport {
        node: plan.node(),
        back_end: os.name().to_owned(),
        direct_io: direct_io(sources, Some(&target)),
        cpu_ns: usage.cpu_ns,
        phases: vec![distribute_phase, sort_phase],
        bytes: bytes(plan, &read, counts.spilled_bytes, &sorted, usage),
        temp_folders,
        temp_packed: TempPacked::of(plan, counts.spilled),
        memory: shared.memory(usage.resident_bytes_peak),
        partitions: sorted.partitions(&counts),
    };
    coordinator.say(&FromNode::Done(Box::new(Done {
        gathered: sorted.gathered,
        edges: sorted.edges,
        ends: sorted.ends,
        report,
    })))
}

fn bytes(
    plan: &Plan,
    read: &ReadTotals,
    spilled_bytes: u64,
    sorted: &Sorted,
    usage: Usage,
) -> Bytes {
    Bytes {
        input: read.bytes,
        header: 0,
        input_stored: read.stored_bytes(),
        input_read: read.device_bytes,
        sample_read: 0,
        temp_written: spilled_bytes + sorted.moved_bytes + sorted.merge_written_bytes,
        temp_read: sorted.loaded_bytes + sorted.moved_bytes + sorted.merge_read_bytes,
        moved: sorted.moved_bytes,
        merge_extra: sorted.merge_written_bytes + sorted.merge_read_bytes,
        output_written: sorted.written_bytes,
        output: sorted.written.bytes,
        lower_bound: plan.lower_bound_bytes(read.bytes, read.bytes, sorted.written.bytes),
        kernel_read: usage.read_bytes,
        kernel_written: usage.write_bytes,
    }
}

/// The job, as far as a node has to know it.
fn job_of(start: &Start) -> Job {
    let inputs = start.inputs.iter();
    let inputs = inputs
        .map(|input| Input::Path(input.path.clone()))
        .collect();
    let output = Output::Path(start.output.clone());
    let mut job = Job::new(inputs, output, start.plan.order.format());
    job.keys.clone_from(&start.keys);
    job.as_of_start = start.as_of_start;
    job.skip_bad = start.skip_bad;
    job.temp_program = start.temp_program.clone().map(|program| program.0);
    job.probe = Some(false);
    job.progress = start.tells_progress.then(Arc::default);
    job
}

/// Opens the inputs, which must be what the coordinator saw.
fn open_inputs(os: &dyn Os, start: &Start) -> Result<Vec<Source>> {
    let paths = start.inputs.iter();
    let paths: Vec<Input> = paths.map(|input| Input::Path(input.path.clone())).collect();
    let same = |(input, mut source): (&message::InputFile, Source)| {
        if source.meta.identity != input.identity {
            return Err(replaced(&input.path));
        }
        source.meta.bytes = input.bytes;
        source.meta.changed_ns = input.changed_ns;
        source.check_unchanged(os, start.as_of_start)?;
        Ok(source)
    };
    let sources = Source::open_all(os, &paths, false)?;
    start.inputs.iter().zip(sources).map(same).collect()
}

/// Connects to the nodes before this one, and waits for those behind it.
fn connect(
    os: &dyn Os,
    stop: &Stop,
    mut listener: net::Listener,
    start: &Start,
) -> Result<Vec<(u32, File)>> {
    let own = start.plan.node();
    let count = start.plan.node_count();
    let mut connections: Vec<(u32, File)> = Vec::new();
    for number in 0..own {
        let name = format!("{NODE}{number}");
        let wrong = |error: std::io::Error| Error::io("connecting", Path::new(&name), &error);
        let connection = net::connect(start.ports[number as usize], &name).map_err(wrong)?;
        say_hello(os, stop, &connection, start, number)?;
        let frame = read_hello(os, &connection, &|| stop.is_stopped()).map_err(wrong)?;
        if wire::heard(&frame, start.job, own, start.secret) != Ok(number) {
            let cause = "who listens there does not know the job's secret";
            let error = Error::new(ErrorKind::Io, "connecting", cause);
            return Err(error.at(Path::new(&name)));
        }
        connections.push((number, connection));
    }
    while connections.len() + 1 < count as usize {
        let heard = listener.hear(wire::HELLO_BYTES, "another node", &|| stop.is_stopped());
        stop.check()?;
        let (mut connection, frame) = heard.map_err(|error| {
            let doing = "listening for other nodes";
            Error::new(ErrorKind::Io, doing, error.to_string())
        })?;
        let frame = frame.try_into().expect("it is as long as was asked for");
        // A stranger is let go.
        let Ok(number) = wire::heard(&frame, start.job, own, start.secret) else {
            continue;
        };
        let is_known = connections.iter().any(|(known, _)| *known == number);
        if is_known || number <= own || number >= count {
            continue;
        }
        connection.path = format!("{NODE}{number}").into();
        say_hello(os, stop, &connection, start, number)?;
        connections.push((number, connection));
    }
    connections.sort_unstable_by_key(|(number, _)| *number);
    Ok(connections)
}

fn say_hello(os: &dyn Os, stop: &Stop, to: &File, start: &Start, number: u32) -> Result<()> {
    let frame = wire::hello(start.job, (start.plan.node(), number), start.secret);
    os.write_stream(to, &frame, &|| stop.is_stopped())
        .map_err(|error| Error::io("connecting", &to.path, &error))
}

fn read_hello(
    os: &dyn Os,
    from: &File,
    stopped: &dyn Fn() -> bool,
) -> std::io::Result<[u8; wire::HELLO_BYTES]> {
    let mut frame = [0; wire::HELLO_BYTES];
    let mut have = 0;
    while have < frame.len() {
        match os.read_stream(from, &mut frame[have..], stopped)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            moved => have += moved,
        }
    }
    Ok(frame)
}
