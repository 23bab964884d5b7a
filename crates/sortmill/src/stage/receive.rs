//! Batch from another node: frames off one connection, checked, their records handed on segment by segment.
//!
//! One thread reads one connection, so the segments of a chunk come in the order in which they were sent. Nothing is
//! believed before it has been checked: length, checksum, job, sender, receiver, sequence, then the segments and the
//! records in them. The memory is two buffers of the caller's: one for a frame, one for a record that is longer than a
//! frame and is put together there.

use sortmill_io::frame::{Damage, HEADER_BYTES, Header, Segment};
use sortmill_io::{Buffer, File, Os};

use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::metrics::{Meter, Stage, State};
use crate::order::Order;
use crate::queue::Stop;
use crate::wire::{END, END_PAYLOAD_BYTES, get_end};

const DOING: &str = "receiving records";

/// A record that is longer than a frame, put together from its fragments.
pub struct Fragments {
    buffer: Buffer,
    bytes: usize,
}

impl Fragments {
    /// None yet. `buffer` has room for the longest record.
    #[must_use]
    pub fn new(buffer: Buffer) -> Self {
        Self { buffer, bytes: 0 }
    }

    /// Appends the next fragment. The caller has seen to it that there is room.
    fn append(&mut self, fragment: &[u8]) {
        self.buffer[self.bytes..self.bytes + fragment.len()].copy_from_slice(fragment);
        self.bytes += fragment.len();
    }

    fn bytes(&self) -> &[u8] {
        &self.buffer[..self.bytes]
    }
}

/// What comes from one other node.
pub struct Incoming<'a> {
    /// All I/O.
    pub os: &'a dyn Os,
    /// The connection, called as the other node is.
    pub connection: &'a File,
    /// What the header of each frame says, but for its numbers: job, sender, and the receiver as partition.
    pub header: Header,
    /// What a record is.
    pub order: &'a Order,
    /// The longest record.
    pub record_bytes_max: usize,
    /// Ends the job.
    pub stop: &'a Stop,
}

/// Takes frames until the end marker, and hands each segment's records on with the number of their chunk. Answers what
/// the other node says that they add up to. `frame` has room for the longest frame, `long` for the longest record.
///
/// # Errors
/// [`ErrorKind::Corrupt`] for what is not as it was sent, [`ErrorKind::Io`] for a connection that ends before its end
/// marker, and whatever `give` answers.
pub fn receive(
    incoming: &Incoming<'_>,
    frame: &mut [u8],
    long: &mut Fragments,
    meter: &mut Meter<'_>,
    mut give: impl FnMut(u64, &[u8], &mut Meter<'_>) -> Result<()>,
) -> Result<Fingerprint> {
    let mut begun = false;
    let mut at = 0;
    for sequence in 1.. {
        let begins_at = at;
        let header = read_frame(incoming, frame, &mut at, meter)?;
        let damaged = |why: Damage| incoming.damaged(why).offset(begins_at);
        let payload = &frame[HEADER_BYTES..HEADER_BYTES + header.payload_bytes as usize];
        let expected = Header {
            sequence,
            record_count: header.record_count,
            payload_bytes: header.payload_bytes,
            ..incoming.header
        };
        let end = Header {
            partition: END,
            record_count: 0,
            payload_bytes: END_PAYLOAD_BYTES as u32,
            ..expected
        };
        if header == end && !begun {
            let sent = get_end(payload.try_into().expect("just so long"));
            let behind = read_some(incoming, &mut frame[..1], at)?;
            return match behind {
                0 => Ok(sent),
                _ => Err(incoming.damaged(Damage::Length).offset(at)),
            };
        }
        if header != expected {
            return Err(damaged(Damage::Stranger));
        }
        let mut rest = payload;
        let mut record_count = 0;
        while !rest.is_empty() {
            let (segment, header_bytes) = Segment::get(rest).map_err(damaged)?;
            let (records, behind) = rest[header_bytes..].split_at(segment.bytes as usize);
            rest = behind;
            record_count += u64::from(segment.record_count);
            let is_fragment = begun || segment.record_count == 0;
            if !is_fragment {
                check_records(incoming, records, segment.record_count).map_err(damaged)?;
                give(segment.chunk, records, meter)?;
                continue;
            }
            if segment.record_count > 1 || long.bytes + records.len() > incoming.record_bytes_max {
                return Err(damaged(Damage::Segments));
            }
            long.append(records);
            begun = segment.record_count == 0;
            if !begun {
                check_records(incoming, long.bytes(), 1).map_err(damaged)?;
                give(segment.chunk, long.bytes(), meter)?;
                long.bytes = 0;
            }
        }
        if record_count != u64::from(header.record_count) {
            return Err(damaged(Damage::Segments));
        }
        let totals = meter.stage(Stage::Receive);
        totals.bytes_in += (HEADER_BYTES + payload.len()) as u64;
        totals.bytes_out += payload.len() as u64;
        totals.records_in += record_count;
        totals.records_out += record_count;
    }
    unreachable!("there are not so many frames");
}

/// Whether these are so many whole records.
fn check_records(
    incoming: &Incoming<'_>,
    records: &[u8],
    count: u32,
) -> std::result::Result<(), Damage> {
    match incoming.order.whole_records(records) {
        Some(found) if found == u64::from(count) => Ok(()),
        _ => Err(Damage::Segments),
    }
}

/// Reads the next frame, whose first byte is the connection's byte `at`.
fn read_frame(
    incoming: &Incoming<'_>,
    frame: &mut [u8],
    at: &mut u64,
    meter: &mut Meter<'_>,
) -> Result<Header> {
    let begins_at = *at;
    let damaged = |why: Damage| incoming.damaged(why).offset(begins_at);
    let (first, _) = frame
        .split_first_chunk_mut::<HEADER_BYTES>()
        .expect("room for a header");
    read_exactly(incoming, first, at, meter)?;
    let bytes = Header::block_bytes(first).map_err(damaged)?;
    if bytes > frame.len() {
        return Err(damaged(Damage::Length));
    }
    read_exactly(incoming, &mut frame[HEADER_BYTES..bytes], at, meter)?;
    let header = Header::read(&frame[..bytes]).map_err(damaged)?;
    meter.lap(Stage::Receive, State::Work);
    Ok(header)
}

fn read_exactly(
    incoming: &Incoming<'_>,
    into: &mut [u8],
    at: &mut u64,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let mut have = 0;
    meter.lap(Stage::Receive, State::Work);
    while have < into.len() {
        let moved = read_some(incoming, &mut into[have..], *at)?;
        if moved == 0 {
            let cause = "the connection was closed before the end of what was sent";
            let error = Error::new(ErrorKind::Io, DOING, cause);
            return Err(error.at(&incoming.connection.path).offset(*at));
        }
        have += moved;
        *at += moved as u64;
    }
    meter.lap(Stage::Receive, State::Input);
    Ok(())
}

/// Reads what there is, from the connection's byte `at` on; 0 at its end.
fn read_some(incoming: &Incoming<'_>, into: &mut [u8], at: u64) -> Result<usize> {
    let Incoming { os, connection, .. } = *incoming;
    os.read_stream(connection, into, &|| incoming.stop.is_stopped())
        .map_err(|error| Error::io(DOING, &connection.path, &error).offset(at))
}

impl Incoming<'_> {
    fn damaged(&self, why: Damage) -> Error {
        Error::new(ErrorKind::Corrupt, DOING, why.to_string()).at(&self.connection.path)
    }
}
