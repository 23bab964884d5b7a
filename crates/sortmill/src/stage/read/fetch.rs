//! Compressed files to the threads that decompress them, where many are read side by side: one thread reads for all.
//!
//! ```text
//!            asks (one queue for all rows)
//!   [fetch] <--------------------------------- [decompress-n]   a thread for each row
//!    a ring  ---------------------------------> uses one buffer while the next is read
//!            fetched (a queue for each row)
//! ```
//!
//! A thousand rings would cost a thousand descriptors; this one has files open only while they are read. Whoever takes a
//! buffer asks for the next one, so a row has one that is used and one that comes, and the pool has two for each.

use std::collections::VecDeque;

use sortmill_io::sync::Arc;
use sortmill_io::{Access, Buffer, Op, OpKind, Os, Pool, align_up};

use super::Source;
use super::decompress::DOING;
use crate::error::{Error, ErrorKind, Result};
use crate::metrics::{Meter, Stage, State};
use crate::queue::{Queue, Stop};

/// Buffers of each row.
const BUFFERS: usize = 2;
/// The most reads in flight: a file is open while it is read, and a process may have as few as 64 descriptors.
const DEPTH_MAX: usize = 16;

/// What lies between who reads compressed rows and those who decompress them.
pub struct Fetches {
    /// Rows that want to be read on.
    asks: Queue<usize>,
    /// What has been read of each: the memory, and how many bytes.
    fetched: Vec<Queue<(Buffer, usize)>>,
    pool: Pool,
}

impl Fetches {
    /// Those for `packed_count` of `row_count` rows, in reads of `read_bytes`.
    ///
    /// # Errors
    /// When the system refuses the memory.
    pub fn new(
        (row_count, packed_count): (usize, usize),
        read_bytes: usize,
        stop: &Stop,
    ) -> Result<Self> {
        let pool = Pool::new(BUFFERS * packed_count, read_bytes)
            .map_err(|error| Error::new(ErrorKind::Memory, "mapping memory", error.to_string()))?;
        let fetches = Self {
            asks: Queue::growing(packed_count),
            fetched: (0..row_count).map(|_| Queue::growing(BUFFERS)).collect(),
            pool,
        };
        let (asks, fetched) = (fetches.asks.clone(), fetches.fetched.clone());
        stop.on_stop(move || {
            asks.abort();
            fetched.iter().for_each(Queue::abort);
        });
        Ok(fetches)
    }

    /// The next bytes of `row`. `None` at its end, and when the job is ending.
    pub(super) fn next(&self, row: usize) -> Option<(Buffer, usize)> {
        let fetched = self.fetched[row].pop()?;
        // Nobody hears it once all has been read.
        let _ = self.asks.push(row);
        Some(fetched)
    }
}

/// Reads files, each for its row, to their ends.
///
/// # Errors
/// The first that is unreadable or has changed, and the job's, when it is ending.
pub fn fetch(
    os: &dyn Os,
    rows: &[(usize, &Source)],
    fetches: &Fetches,
    stop: &Stop,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let depth = rows.len().min(DEPTH_MAX);
    let mut ring = os
        .ring(depth)
        .map_err(|error| Error::new(ErrorKind::Io, "starting to read", error.to_string()))?;
    let lane_of = |row: usize| rows.partition_point(|&(number, _)| number < row);
    let mut next = vec![0; rows.len()];
    let mut wanted: VecDeque<usize> = (0..rows.len()).collect();
    let mut left = rows.len();
    while left > 0 {
        stop.check()?;
        while ring.in_flight() < depth {
            let asked = match (wanted.pop_front(), ring.in_flight()) {
                (Some(lane), _) => Some(lane),
                (None, 0) => {
                    meter.lap(Stage::Read, State::Work);
                    let row = fetches.asks.pop();
                    meter.lap(Stage::Read, State::Output);
                    Some(lane_of(row.ok_or_else(|| stop.error())?))
                }
                (None, _) => fetches.asks.try_pop().map(lane_of),
            };
            let Some(lane) = asked else { break };
            let source = rows[lane].1;
            // Its last bytes have been handed on.
            if next[lane] == source.meta.bytes {
                continue;
            }
            let buffer = fetches.pool.try_take().expect("two for each row");
            let bytes = (source.meta.bytes - next[lane]).min(buffer.len() as u64);
            let asked = match source.file.access {
                Access::Direct => align_up(bytes),
                Access::Cached => bytes,
            };
            ring.submit(Op {
                kind: OpKind::Read,
                offset: next[lane],
                file: Arc::clone(&source.file),
                buffer,
                range: 0..asked as usize,
                tag: lane as u64,
            });
            meter.submitted(asked as usize);
            next[lane] += bytes;
        }
        if ring.in_flight() == 0 {
            continue;
        }
        meter.lap(Stage::Read, State::Work);
        let done = ring.complete(true).expect("a read is in flight");
        meter.lap(Stage::Read, State::Device);
        meter.completed(done.op.range.len());
        let lane = done.op.tag as usize;
        let (row, source) = rows[lane];
        let (path, offset) = (&done.op.file.path, done.op.offset);
        let moved = done
            .result
            .map_err(|error| Error::io(DOING, path, &error).offset(offset))?;
        let bytes = (next[lane] - offset) as usize;
        if moved < bytes {
            return Err(source.shortened(offset + moved as u64));
        }
        let totals = meter.stage(Stage::Read);
        totals.bytes_in += bytes as u64;
        totals.bytes_out += bytes as u64;
        let fetched = &fetches.fetched[row];
        let pushed = fetched.push((done.op.buffer, bytes));
        pushed.map_err(|_| stop.error())?;
        if next[lane] == source.meta.bytes {
            fetched.close();
            left -= 1;
        }
    }
    fetches.asks.close();
    Ok(())
}
