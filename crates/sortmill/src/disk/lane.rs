//! One file, one way, in sequence, with a number of requests always in flight.
//!
//! A lane is a thread with a ring of its own, as the engine's reader, spiller, loader and writer are. All
//! lanes of a measurement run over the same time, and only what completes within the window counts.

use std::collections::VecDeque;

use sortmill_io::sync::atomic::{AtomicU64, Ordering};
use sortmill_io::sync::{Arc, spawn};
use sortmill_io::{Buffer, File, Op, OpKind, Os, Pool, Ring};

use super::Setting;
use crate::error::{Error, ErrorKind, Result};
use crate::queue::{Stop, job_scope};

/// What one thread does.
pub struct Lane<'a> {
    /// Read or write.
    pub kind: OpKind,
    /// The file, `file_bytes` long.
    pub file: Arc<File>,
    /// Bytes of it that are used.
    pub file_bytes: u64,
    /// Where the next request begins, modulo the file.
    pub at: &'a AtomicU64,
    /// Bytes and number of requests in flight.
    pub setting: Setting,
    /// Memory of all lanes: for each as many buffers as its setting says.
    pub pool: Pool,
    /// Goes through the file once: when it is full, the measurement ends.
    pub once: bool,
}

/// Bytes that went each way, and the time it took.
#[derive(Default)]
pub struct Bytes {
    pub read: u64,
    pub written: u64,
    pub took_ns: u64,
}

/// When bytes count.
struct Window {
    began_ns: u64,
    from_ns: u64,
    to_ns: u64,
    /// When the first file was full that is gone through once.
    full_ns: AtomicU64,
}

impl Window {
    fn end_ns(&self) -> u64 {
        self.full_ns.load(Ordering::Relaxed).min(self.to_ns)
    }

    /// Whether so little is left of it that the time to get going counts too.
    fn is_short(&self) -> bool {
        self.end_ns().saturating_sub(self.from_ns) < (self.to_ns - self.from_ns) / 4
    }
}

/// Bytes that one lane moved: since its beginning, and within the window.
#[derive(Default)]
struct Moved {
    all: u64,
    within: u64,
}

/// Runs all lanes at once for `window_ns`, after a quarter of that to get going; for less if a file is full before.
///
/// # Errors
/// The first request that failed, and that of `stop`.
pub fn run(os: &dyn Os, stop: &Stop, lanes: Vec<Lane<'_>>, window_ns: u64) -> Result<Bytes> {
    let with_rings = lanes
        .into_iter()
        .map(|lane| Ok((ring(os, &lane.file, lane.setting.depth)?, lane)))
        .collect::<Result<Vec<_>>>()?;
    let began_ns = os.now_ns();
    let from_ns = began_ns + window_ns / 4;
    let window = Window {
        began_ns,
        from_ns,
        to_ns: from_ns + window_ns,
        full_ns: AtomicU64::new(u64::MAX),
    };
    let moved: Vec<(OpKind, Moved)> = job_scope(stop, |threads| {
        let started: Vec<_> = with_rings
            .into_iter()
            .map(|(ring, lane)| {
                let window = &window;
                let kind = lane.kind;
                let work = move || {
                    lane.run(os, stop, ring, window)
                        .map_err(|error| stop.fail(error))
                };
                (kind, spawn(threads, "disk-lane", work))
            })
            .collect();
        // Why a lane failed is told by `stop`.
        let ended = started.into_iter().map(|(kind, thread)| {
            let moved = thread.join().expect("a lane does not panic");
            (kind, moved.unwrap_or_default())
        });
        ended.collect()
    });
    stop.check()?;
    let from_ns = match window.is_short() {
        true => window.began_ns,
        false => window.from_ns,
    };
    let mut bytes = Bytes {
        took_ns: (window.end_ns() - from_ns).max(1),
        ..Bytes::default()
    };
    for (kind, moved) in moved {
        let counted = match window.is_short() {
            true => moved.all,
            false => moved.within,
        };
        match kind {
            OpKind::Read => bytes.read += counted,
            OpKind::Write => bytes.written += counted,
        }
    }
    Ok(bytes)
}

impl Lane<'_> {
    /// Answers the bytes that were moved.
    fn run(&self, os: &dyn Os, stop: &Stop, ring: Box<dyn Ring>, window: &Window) -> Result<Moved> {
        let block_bytes = self.setting.block_bytes as u64;
        let block_count = self.file_bytes / block_bytes;
        let mut moved = Moved::default();
        // The clock is read once for each request, when it has completed.
        let next = |completed_bytes: u64| {
            let now_ns = os.now_ns();
            if now_ns >= window.end_ns() || stop.is_stopped() {
                return None;
            }
            moved.all += completed_bytes;
            if now_ns >= window.from_ns {
                moved.within += completed_bytes;
            }
            let at = self.at.fetch_add(block_bytes, Ordering::Relaxed);
            if self.once && at / block_bytes >= block_count {
                window.full_ns.fetch_min(now_ns, Ordering::Relaxed);
                return None;
            }
            Some(at / block_bytes % block_count * block_bytes)
        };
        let buffers = take(&self.pool, self.setting.buffer_count());
        keep_busy(self.kind, &self.file, self.setting, buffers, ring, next)?;
        Ok(moved)
    }
}

/// Writes the file from its beginning to `bytes`.
///
/// # Errors
/// As [`run`].
pub fn write_whole(
    os: &dyn Os,
    stop: &Stop,
    file: &Arc<File>,
    bytes: u64,
    setting: Setting,
    pool: &Pool,
) -> Result<()> {
    let block_bytes = setting.block_bytes as u64;
    let mut at = 0;
    let next = |_: u64| {
        if at == bytes || stop.is_stopped() {
            return None;
        }
        // The last block of an odd file is written over the one before, so that all are whole.
        let offset = at.min(bytes - block_bytes);
        at = (at + block_bytes).min(bytes);
        Some(offset)
    };
    let ring = ring(os, file, setting.depth)?;
    let buffers = take(pool, setting.depth);
    keep_busy(OpKind::Write, file, setting, buffers, ring, next)?;
    stop.check()
}

fn take(pool: &Pool, count: usize) -> VecDeque<Buffer> {
    let buffers: VecDeque<Buffer> = (0..count).map_while(|_| pool.try_take()).collect();
    assert_eq!(buffers.len(), count, "the pool was made for all lanes");
    buffers
}

fn ring(os: &dyn Os, file: &File, depth: usize) -> Result<Box<dyn Ring>> {
    os.ring(depth).map_err(|error| {
        let cause = error.to_string();
        Error::new(ErrorKind::Io, "starting a ring", cause).at(&file.path)
    })
}

/// Keeps requests in flight until `next` names no further offset. It is called once for each, first with 0
/// and then with the bytes of the one that has just completed and made room for it. The buffers take turns.
fn keep_busy(
    kind: OpKind,
    file: &Arc<File>,
    setting: Setting,
    mut buffers: VecDeque<Buffer>,
    mut ring: Box<dyn Ring>,
    mut next: impl FnMut(u64) -> Option<u64>,
) -> Result<()> {
    let request = |buffer, offset| Op {
        kind,
        file: Arc::clone(file),
        offset,
        buffer,
        range: 0..setting.block_bytes,
        tag: 0,
    };
    for _ in 0..setting.depth {
        let Some(offset) = next(0) else { break };
        let buffer = buffers.pop_front().expect("a buffer for each request");
        ring.submit(request(buffer, offset));
    }
    let mut result = Ok(());
    while let Some(done) = ring.complete(true) {
        let whole = check(&done.op, done.result, setting.block_bytes);
        buffers.push_back(done.op.buffer);
        match whole {
            Ok(()) if result.is_ok() => {
                if let Some(offset) = next(setting.block_bytes as u64) {
                    let buffer = buffers.pop_front().expect("one has just come back");
                    ring.submit(request(buffer, offset));
                }
            }
            Ok(()) => {}
            // The others are waited for: the kernel still has their buffers.
            Err(error) => result = result.and(Err(error)),
        }
    }
    result
}

fn check(op: &Op, result: std::io::Result<usize>, block_bytes: usize) -> Result<()> {
    let doing = match op.kind {
        OpKind::Read => "reading a file of the benchmark",
        OpKind::Write => "writing a file of the benchmark",
    };
    let moved =
        result.map_err(|error| Error::io(doing, &op.file.path, &error).offset(op.offset))?;
    if moved == block_bytes {
        return Ok(());
    }
    let cause = format!("{moved} of {block_bytes} bytes came: somebody has cut the file");
    Err(Error::new(ErrorKind::Changed, doing, cause)
        .at(&op.file.path)
        .offset(op.offset))
}
