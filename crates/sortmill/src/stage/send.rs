//! Batch to another node: records in frames, which are blocks as they are on disk, over one connection.
//!
//! Workers put the records of a batch that are another node's into the one open frame to that node; full ones wait
//! for the one thread that writes to its connection. So the segments of a chunk leave in the order in which its worker
//! put them. A frame's memory belongs to this node's pool for that other node: a slow one makes those wait who have
//! something for it. After the last record comes the end marker, with what all of them add up to: a connection that is
//! closed without it has been lost (`docs/formats.md`, Frames).

use sortmill_io::frame::{HEADER_BYTES, Header};
use sortmill_io::sync::{Mutex, lock};
use sortmill_io::{Buffer, File, Os, Pool};

use crate::batch::Batch;
use crate::block::{Open, record_bytes_max};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::metrics::{Meter, Stage, State};
use crate::queue::{Queue, Stop};
use crate::wire::{END, END_PAYLOAD_BYTES, put_end};

/// A frame on its way to the connection.
pub struct Frame {
    buffer: Buffer,
    header: Header,
}

/// What goes to one other node.
pub struct Outgoing {
    pool: Pool,
    frames: Queue<Frame>,
    /// What the header of each frame says, but for its numbers.
    header: Header,
    open: Mutex<Filling>,
}

#[derive(Default)]
struct Filling {
    open: Option<Open>,
    /// Frames that were filled.
    count: u32,
    /// The records in them.
    sent: Fingerprint,
}

impl Outgoing {
    /// Frames of `frame_bytes` from node `from` to node `to` of job `job`, at most `frame_count` of them at once.
    ///
    /// # Errors
    /// When the system refuses the address space.
    pub fn new(
        job: u64,
        (from, to): (u32, u32),
        frame_bytes: usize,
        frame_count: usize,
    ) -> std::io::Result<Self> {
        Ok(Self {
            pool: Pool::new(frame_count, frame_bytes)?,
            frames: Queue::new(frame_count),
            header: Header {
                job,
                node: from,
                partition: to,
                ..Header::default()
            },
            open: Mutex::default(),
        })
    }

    /// Ends all waits when the job ends early.
    pub fn end_with(&self, stop: &Stop) {
        let (pool, frames) = (self.pool.clone(), self.frames.clone());
        stop.on_stop(move || {
            pool.close();
            frames.abort();
        });
    }

    /// Puts the records `rows` of `batch` into frames, in order. `key` is that of the job's fingerprints.
    ///
    /// # Errors
    /// The job's, when it is ending.
    pub fn put(
        &self,
        batch: &Batch<'_>,
        rows: &[u32],
        key: u64,
        stop: &Stop,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let mut sent = Fingerprint::default();
        for &row in rows {
            sent.add(batch.record(row as usize), key);
        }
        let long_from = record_bytes_max(self.pool.buffer_bytes());
        let mut state = lock(&self.open);
        let mut rest = rows;
        while let Some(&row) = rest.first() {
            let record = batch.record(row as usize);
            if record.len() > long_from {
                self.put_long(&mut state, batch.chunk, record, stop, meter)?;
                rest = &rest[1..];
                continue;
            }
            let open = match state.open.take() {
                Some(open) => open,
                None => self.new_frame(stop, meter)?,
            };
            let put = state.open.insert(open).put(batch, rest, None);
            if put == 0 {
                self.close(&mut state, stop)?;
            }
            rest = &rest[put..];
        }
        state.sent.merge(&sent);
        Ok(())
    }

    /// Puts a record that is longer than a frame into several, a fragment each, one after the other.
    fn put_long(
        &self,
        state: &mut Filling,
        chunk: u64,
        record: &[u8],
        stop: &Stop,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        self.close(state, stop)?;
        let mut fragments = record
            .chunks(record_bytes_max(self.pool.buffer_bytes()))
            .peekable();
        while let Some(fragment) = fragments.next() {
            let is_last = fragments.peek().is_none();
            let mut frame = self.new_frame(stop, meter)?;
            frame.put_fragment(chunk, fragment, is_last);
            state.open = Some(frame);
            if !is_last {
                self.close(state, stop)?;
            }
        }
        Ok(())
    }

    fn new_frame(&self, stop: &Stop, meter: &mut Meter<'_>) -> Result<Open> {
        if let Some(buffer) = self.pool.try_take() {
            return Ok(Open::new(buffer));
        }
        meter.lap(Stage::Partition, State::Work);
        let buffer = self.pool.take();
        meter.lap(Stage::Partition, State::Output);
        buffer.map(Open::new).ok_or_else(|| stop.error())
    }

    /// Hands the open frame on.
    fn close(&self, state: &mut Filling, stop: &Stop) -> Result<()> {
        let Some(open) = state.open.take() else {
            return Ok(());
        };
        state.count += 1;
        let header = Header {
            sequence: state.count,
            record_count: open.records(),
            payload_bytes: open.payload_bytes(),
            ..self.header
        };
        let buffer = open.into_buffer();
        let sent = self.frames.push(Frame { buffer, header });
        sent.map_err(|_| stop.error())
    }

    /// All records have been put: sends what is left, and the end marker. Answers what they add up to.
    ///
    /// # Errors
    /// The job's, when it is ending.
    pub fn end(&self, stop: &Stop) -> Result<Fingerprint> {
        let mut state = lock(&self.open);
        self.close(&mut state, stop)?;
        let mut buffer = self.pool.take().ok_or_else(|| stop.error())?;
        put_end(&state.sent, &mut buffer[HEADER_BYTES..]);
        let header = Header {
            partition: END,
            sequence: state.count + 1,
            payload_bytes: END_PAYLOAD_BYTES as u32,
            ..self.header
        };
        let sent = self.frames.push(Frame { buffer, header });
        sent.map_err(|_| stop.error())?;
        self.frames.close();
        Ok(state.sent)
    }

    /// Writes frames to the connection until the end marker has been written, and ends it this way.
    ///
    /// # Errors
    /// That of the connection, which has been lost, or the job's, when it is ending.
    pub fn send(
        &self,
        os: &dyn Os,
        connection: &File,
        stop: &Stop,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        let lost = |error: std::io::Error| Error::io("sending records", &connection.path, &error);
        loop {
            meter.lap(Stage::Send, State::Work);
            let frame = self.frames.pop();
            meter.lap(Stage::Send, State::Input);
            stop.check()?;
            let Some(Frame { mut buffer, header }) = frame else {
                return sortmill_io::net::end_sending(connection).map_err(lost);
            };
            header.seal(&mut buffer);
            let bytes = HEADER_BYTES + header.payload_bytes as usize;
            meter.lap(Stage::Send, State::Work);
            os.write_stream(connection, &buffer[..bytes], &|| stop.is_stopped())
                .map_err(lost)?;
            meter.lap(Stage::Send, State::Device);
            let totals = meter.stage(Stage::Send);
            totals.bytes_in += u64::from(header.payload_bytes);
            totals.bytes_out += bytes as u64;
            totals.records_in += u64::from(header.record_count);
            totals.records_out += u64::from(header.record_count);
        }
    }
}
