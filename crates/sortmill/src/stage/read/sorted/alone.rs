//! A row that has a thread of its own, to pieces: a stream, or a compressed input.
//!
//! It has two buffers: one is merged while the other is filled. What is compressed is decompressed by this thread into
//! them; a file's bytes come from the thread that reads for all of these ([`super::super::Fetches`]), those of a stream
//! are read here. Whether a stream is compressed shows when it comes, and its first buffer holds its beginning until that
//! is used.

use sortmill_io::codec::{Codec, Decoder};
use sortmill_io::{Buffer, Pool};

use super::super::decompress::{fill as fill_unpacked, told};
use super::super::packed::Packed;
use super::super::{Fetches, Source, codec_of, fill};
use super::{Cutter, RowsRead, SortedReader, count_in, put};
use crate::error::{Error, ErrorKind, Result};
use crate::metrics::{Meter, Stage, State};
use crate::plan::STREAM_BUFFERS;

/// Reads the stream of `row` to its end.
///
/// # Errors
/// A read that failed, what is damaged or not as its format says, and the job's, when it is ending.
pub fn read_stream_row<'a>(
    reader: &SortedReader<'a>,
    row: usize,
    source: &'a Source,
    meter: &mut Meter<'_>,
) -> Result<RowsRead> {
    let SortedReader { os, stop, .. } = *reader;
    let pool = own_pool(reader)?;
    let decoders = reader.plan.decoders.as_ref();
    let looks = source.made.is_none() && decoders.is_some_and(|decoders| decoders.of_streams);
    let mut cutter = Cutter::new(reader, source);
    let from = reader.merging.headroom_bytes;
    let mut offset = 0;
    loop {
        meter.lap(Stage::Read, State::Work);
        let buffer = pool.take();
        // It is the merge that it waits for, and not that there were too few: another row may be slower.
        meter.lap(Stage::Read, State::Output);
        let mut buffer = buffer.ok_or_else(|| stop.error())?;
        let into = &mut buffer[from..from + reader.merging.read_bytes];
        let bytes = fill(os, source, into, offset, stop, meter)?;
        cutter.read.totals.device_bytes += bytes as u64;
        count_in(meter, bytes);
        if let (true, Some(codec)) = (looks && offset == 0, codec_of(&into[..bytes])) {
            cutter.read.totals.packed_bytes += bytes as u64;
            cutter.is_unpacked = true;
            let begun = (buffer, from..from + bytes);
            meter.stage(Stage::Decompress).worker_count = 1;
            let packed = Packed::of_stream(os, source, stop, begun, meter);
            return unpack_row(reader, (row, source, codec), &pool, cutter, packed);
        }
        let is_last = bytes < reader.merging.read_bytes;
        let piece = cutter.cut(buffer, bytes, offset, is_last)?;
        put(reader, row, piece.map(|(piece, _)| piece), meter)?;
        offset += bytes as u64;
        if is_last {
            reader.queues.end(row);
            return Ok(cutter.read);
        }
    }
}

/// Decompresses the file of `row`, which another thread reads, to its end.
///
/// # Errors
/// What is damaged or not as its format says, and the job's, when it is ending.
pub fn read_packed_row<'a>(
    reader: &SortedReader<'a>,
    (row, source, codec): (usize, &'a Source, Codec),
    fetches: &Fetches,
    meter: &mut Meter<'_>,
) -> Result<RowsRead> {
    let SortedReader { os, stop, .. } = *reader;
    let pool = own_pool(reader)?;
    let cutter = Cutter::new(reader, source);
    let packed = Packed::fetched(os, source, stop, (fetches, row), meter);
    unpack_row(reader, (row, source, codec), &pool, cutter, packed)
}

/// The two buffers of a row.
fn own_pool(reader: &SortedReader<'_>) -> Result<Pool> {
    let pool = Pool::new(STREAM_BUFFERS, reader.plan.block_bytes)
        .map_err(|error| Error::new(ErrorKind::Memory, "mapping memory", error.to_string()))?;
    // There is one for each row of each step, and none outlives its row.
    reader.stop.on_stop(pool.closer());
    Ok(pool)
}

/// Decompresses what `packed` gives to its end.
fn unpack_row(
    reader: &SortedReader<'_>,
    (row, source, codec): (usize, &Source, Codec),
    pool: &Pool,
    mut cutter: Cutter<'_>,
    mut packed: Packed<'_, '_, '_>,
) -> Result<RowsRead> {
    let decoders = reader.plan.decoders.as_ref();
    let limit = decoders.map_or(0, |decoders| decoders.memory_bytes);
    let told = |wrong, at| told(wrong, codec, source, at, limit);
    let counted = packed.meter.stage(Stage::Decompress).bytes_in;
    let mut decoder = Decoder::new(codec, &mut packed, limit).map_err(|wrong| told(wrong, 0))?;
    let (from, read_bytes) = (reader.merging.headroom_bytes, reader.merging.read_bytes);
    let mut offset = 0;
    loop {
        let meter = &mut *decoder.reader().meter;
        meter.lap(Stage::Decompress, State::Work);
        let buffer: Option<Buffer> = pool.take();
        meter.lap(Stage::Decompress, State::Output);
        let mut buffer = buffer.ok_or_else(|| reader.stop.error())?;
        let bytes = fill_unpacked(&mut decoder, &mut buffer[from..from + read_bytes], told)?;
        let meter = &mut *decoder.reader().meter;
        meter.stage(Stage::Decompress).bytes_out += bytes as u64;
        meter.lap(Stage::Decompress, State::Work);
        cutter.read.totals.unpacked_bytes += bytes as u64;
        let is_last = bytes < read_bytes;
        let piece = cutter.cut(buffer, bytes, offset, is_last)?;
        put(reader, row, piece.map(|(piece, _)| piece), meter)?;
        offset += bytes as u64;
        if is_last {
            reader.queues.end(row);
            let used = meter.stage(Stage::Decompress).bytes_in - counted;
            cutter.read.totals.device_bytes += used;
            cutter.read.totals.packed_bytes += used;
            return Ok(cutter.read);
        }
    }
}
