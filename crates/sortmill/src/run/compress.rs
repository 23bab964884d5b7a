//! The output compressed, by threads of their own, on its way from the sorters to the writer.
//!
//! ```text
//!   units, in turn --> Sink --frames--> [compress-0 .. C-1] --in turn--> Sink --blocks--> [write]
//!                      1 MiB each         each: one frame as it becomes
//! ```
//!
//! Frames are cut at fixed offsets of the output and each is compressed on its own, so that the compressed bytes
//! depend neither on memory nor on threads. Frames have a pool of their own: were they the writer's buffers, threads
//! that have something to write could wait for those that wait for them. Whoever has compressed a frame waits until
//! all before it have been put into the writer's buffers, so nothing lies in a list.
//!
//! Each of several files is compressed by itself: a frame is of one of them, and each has one at least, so that programs
//! take it.

use sortmill_io::Pool;
use sortmill_io::codec::{Codec, Encoder, bound_bytes};
use sortmill_io::sync::{Mutex, Scope, ScopedJoinHandle, lock, spawn};

use super::distribute::{guarded, join};
use super::{Shared, Where, mapped};
use crate::error::{Error, ErrorKind, Result};
use crate::job::{Compress, Job};
use crate::metrics::{Finished, Meter, Stage, State};
use crate::places::Places;
use crate::plan::Encoders;
use crate::queue::{Queue, Stop};
use crate::stage::write::{OutBlock, Output, Sink};

const DOING: &str = "compressing the output";

/// Refuses what cannot be compressed.
///
/// # Errors
/// [`ErrorKind::Usage`], with what could be asked for instead.
pub fn check(job: &Job, output: &Where) -> Result<()> {
    let temp = job.compress_temp.codec();
    if let Some(codec) = temp.filter(|codec| !codec.is_built()) {
        let cause = format!("this sortmill was built without {}", codec.name());
        return Err(Error::new(
            ErrorKind::Usage,
            "compressing temporary data",
            cause,
        ));
    }
    let Some(Compress { codec, level }) = job.compress else {
        return Ok(());
    };
    let refuse = |cause: String| {
        let error = Error::new(ErrorKind::Usage, DOING, cause);
        Err(error.hint("With --compress-output none the output is written as it is."))
    };
    let name = codec.name();
    if !codec.is_built() {
        return refuse(format!("this sortmill was built without {name}"));
    }
    match (codec.levels(), level) {
        (None, Some(_)) => return refuse(format!("{name} has no levels here")),
        (Some((least, _, most)), Some(level)) if !(least..=most).contains(&level) => {
            return refuse(format!(
                "{level} is no level of {name}: they are {least} to {most}"
            ));
        }
        _ => {}
    }
    if job.on.is_some() {
        return refuse("--on writes its output as it is".to_owned());
    }
    match output {
        Where::Parts(_) if job.reduce_makes_bytes.is_none() => {
            refuse("the files of --parts are written as they are".to_owned())
        }
        _ => Ok(()),
    }
}

/// What lies between the sorters and the writer.
pub struct Frames {
    codec: Codec,
    level: u32,
    frame_bytes: usize,
    pool: Pool,
    /// Frames in their order.
    pub queue: Queue<OutBlock>,
    /// How many have been taken. Locked while one is, so that the next one is taken next.
    taken: Mutex<usize>,
    turns: Places,
}

/// Where frames go once they are compressed.
#[derive(Default)]
pub struct Packed<'a> {
    sink: Option<Sink<'a>>,
    /// Bytes of each file that has ended, where there are several.
    files: Vec<u64>,
}

impl<'a> Packed<'a> {
    /// Takes a frame of file `part`.
    fn put(
        &mut self,
        output: &'a Output<'a>,
        part: u64,
        bytes: &[u8],
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let sink = self.sink.get_or_insert_with(|| Sink::new(output, 0));
        while sink.part() < part {
            self.files.push(sink.part_bytes());
            sink.end_part(meter)?;
            sink.next_part();
        }
        sink.put_part(bytes, meter)
    }
}

/// A thread that compresses.
pub type Encoding<'scope> = ScopedJoinHandle<'scope, Option<Finished>>;

/// Bytes of the compressed output, and of each of its files if there are several.
pub struct PackedBytes {
    pub all: u64,
    pub files: Vec<u64>,
}

impl Frames {
    /// Those of a job that compresses its output.
    pub fn new(shared: &Shared<'_>) -> Result<Option<Self>> {
        let (Some(compress), Some(encoders)) = (shared.job.compress, &shared.plan.encoders) else {
            return Ok(None);
        };
        let count = encoders.count + Encoders::FRAMES_AHEAD;
        let pool = mapped(count, encoders.frame_bytes)?;
        let frames = Self {
            codec: compress.codec,
            level: encoders.level,
            frame_bytes: encoders.frame_bytes,
            queue: Queue::new(count),
            taken: Mutex::new(0),
            turns: Places::new(0, 0, Vec::new()),
            pool,
        };
        let (pool, queue, turns) = (
            frames.pool.clone(),
            frames.queue.clone(),
            frames.turns.clone(),
        );
        shared.stop.on_stop(move || {
            pool.close();
            queue.abort();
            turns.abort();
        });
        Ok(Some(frames))
    }

    /// What a sink of units, or of a merge, fills instead of the writer's buffers, as `stage`.
    pub fn output<'a>(&'a self, behind: &Output<'a>, stage: Stage) -> Output<'a> {
        Output {
            pool: &self.pool,
            blocks: &self.queue,
            seams: behind.seams,
            total: None,
            ends_exactly: true,
            stage,
            stop: behind.stop,
        }
    }

    /// Starts the threads that compress, for `to`.
    pub fn start<'scope, 'a: 'scope>(
        &'scope self,
        threads: &'scope Scope<'scope, '_>,
        shared: &'scope Shared<'_>,
        (output, packed): (&'a Output<'a>, &'scope Mutex<Packed<'a>>),
        began_ns: u64,
    ) -> Vec<Encoding<'scope>> {
        let start_one = |number| {
            let name = format!("compress-{number}");
            spawn(threads, &name.clone(), move || {
                let mut meter = shared.meter(&name, &[Stage::Compress], began_ns);
                let result = guarded(shared.stop, || self.compress(output, packed, &mut meter));
                result.map(|()| meter.finish(Stage::Compress))
            })
        };
        let encoders = shared.plan.encoders.as_ref();
        (0..encoders.map_or(0, |encoders| encoders.count))
            .map(start_one)
            .collect()
    }

    /// No more frames come: waits for the threads, and finishes what they made unless the job is ending. Answers how much
    /// that is, and what each of them did.
    pub fn end<'a>(
        &self,
        encodings: Vec<Encoding<'_>>,
        (output, packed): (&'a Output<'a>, &Mutex<Packed<'a>>),
        kind: (bool, bool),
        stop: &Stop,
        meter: &mut Meter<'_>,
    ) -> (Option<PackedBytes>, Vec<Option<Finished>>) {
        self.queue.close();
        let ends = encodings.into_iter().map(join).collect();
        let made = match stop.is_stopped() {
            true => None,
            false => guarded(stop, || self.finish(output, packed, kind, meter)),
        };
        (made, ends)
    }

    /// A thread: frames to `sink`, until there are no more.
    fn compress<'a>(
        &self,
        output: &'a Output<'a>,
        packed: &Mutex<Packed<'a>>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let mut encoder = Encoder::new(self.codec, self.level, self.frame_bytes).map_err(wrong)?;
        let mut out = Vec::with_capacity(bound_bytes(self.frame_bytes));
        loop {
            meter.lap(Stage::Compress, State::Work);
            let (frame, turn) = {
                let mut taken = lock(&self.taken);
                let frame = self.queue.pop();
                let turn = *taken;
                *taken += usize::from(frame.is_some());
                (frame, turn)
            };
            meter.lap(Stage::Compress, State::Input);
            let Some(frame) = frame else {
                return output.stop.check();
            };
            encoder
                .encode(&frame.buffer[frame.range.clone()], &mut out)
                .map_err(wrong)?;
            let totals = meter.stage(Stage::Compress);
            totals.bytes_in += frame.range.len() as u64;
            totals.bytes_out += out.len() as u64;
            let part = frame.part;
            drop(frame);
            meter.lap(Stage::Compress, State::Work);
            let its_turn = self.turns.wait_turn(turn);
            meter.lap(Stage::Compress, State::Output);
            if !its_turn {
                return Err(output.stop.error());
            }
            lock(packed).put(output, part, &out, meter)?;
            self.turns.end_turn();
        }
    }

    /// All frames have been compressed: sends what is left, padded to whole blocks if the output is a file, or several files.
    /// Answers the bytes of the compressed output. Of an output without a record that is one empty frame, as programs want it.
    fn finish<'a>(
        &self,
        output: &'a Output<'a>,
        packed: &Mutex<Packed<'a>>,
        (is_file, is_several): (bool, bool),
        meter: &mut Meter<'_>,
    ) -> Result<PackedBytes> {
        let Packed { sink, mut files } = std::mem::take(&mut *lock(packed));
        let mut rest = Packed {
            sink,
            files: Vec::new(),
        };
        if rest.sink.is_none() {
            let mut out = Vec::new();
            let mut encoder =
                Encoder::new(self.codec, self.level, self.frame_bytes).map_err(wrong)?;
            encoder.encode(&[], &mut out).map_err(wrong)?;
            rest.put(output, 0, &out, meter)?;
        }
        let mut sink = rest.sink.expect("something was put");
        let all = sink.bytes;
        if is_several {
            files.push(sink.part_bytes());
            sink.end_part(meter)?;
        } else {
            sink.finish_all(is_file, meter)?;
        }
        Ok(PackedBytes { all, files })
    }
}

fn wrong(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, DOING, error.to_string())
}
