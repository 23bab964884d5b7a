//! Temporary blocks out of the way of the output that is about to be written over them.
//!
//! Seldom needed: only where partitions came out so unlike their shares of the sample that what lies in a unit's way
//! does not fit into memory beside it ([`crate::space::Lead`]). Blocks are copied behind the output as they are.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use sortmill_io::sync::Arc;
use sortmill_io::{File, Op, OpKind};

use super::Shared;
use crate::block::Stored;
use crate::error::{Error, Result};
use crate::metrics::{Finished, Meter, Stage, State};
use crate::partitions::{Content, Unit, Whereabouts};

/// Where blocks are copied: from each key to the place beside it, so many bytes.
pub type Moves = HashMap<u64, (u64, usize)>;

/// New places for the blocks of each unit that lie below its place in `move_below`.
///
/// # Errors
/// As [`crate::temps::Temps::allocate`].
pub fn moves(shared: &Shared<'_>, units: &[Unit], move_below: &[u64]) -> Result<Moves> {
    let mut moves = Moves::new();
    for (unit, &below) in units.iter().zip(move_below) {
        for block in unit.blocks() {
            let offset = block.on_disk().map(|stored| stored.spot.offset);
            if let Some(offset) = offset.filter(|&offset| offset < below)
                && let Entry::Vacant(entry) = moves.entry(offset)
            {
                let bytes = block.disk_bytes();
                let behind = shared.temps.allocate(bytes as u64, None)?;
                entry.insert((behind.offset, bytes));
            }
        }
    }
    Ok(moves)
}

/// Bytes that `moves` copies.
pub fn moved_bytes(moves: &Moves) -> u64 {
    moves.values().map(|&(_, bytes)| bytes as u64).sum()
}

/// Copies blocks, and has the units know them by their new places. Answers what that took of the phase that began at
/// `began_ns`, if there was anything to do.
///
/// # Errors
/// The first read or write that failed, or the job's when it is ending.
pub fn relocate(
    shared: &Shared<'_>,
    units: &mut [Unit],
    moves: &Moves,
    began_ns: u64,
) -> Result<Option<Finished>> {
    if moves.is_empty() {
        return Ok(None);
    }
    let mut meter = shared.meter("relocate", &[Stage::Relocate], began_ns);
    let file = shared.temps.file(0)?;
    copy(shared, &file, moves, &mut meter)?;
    let mut changed = HashMap::new();
    for content in units.iter_mut().flat_map(|unit| &mut unit.contents) {
        let new = changed
            .entry(Arc::as_ptr(content))
            .or_insert_with(|| Arc::new(with_places(content, moves)));
        *content = Arc::clone(new);
    }
    meter.lap(Stage::Relocate, State::Work);
    Ok(Some(meter.finish(Stage::Relocate)))
}

/// Copies blocks within the file.
fn copy(shared: &Shared<'_>, file: &Arc<File>, moves: &Moves, meter: &mut Meter<'_>) -> Result<()> {
    let wrong = |what: &str, offset: u64, error: std::io::Error| {
        Error::io(what, &file.path, &error).offset(offset)
    };
    let mut ring = shared
        .os
        .ring(shared.plan.block_depth)
        .map_err(|error| Error::io("starting to move temporary data", &file.path, &error))?;
    let mut waiting = moves.iter().peekable();
    loop {
        while ring.in_flight() < shared.plan.block_depth
            && waiting.peek().is_some()
            && let Some(buffer) = shared.block_pool.try_take()
        {
            let (&from, &(_, bytes)) = waiting.next().expect("it was there");
            meter.submitted(bytes);
            ring.submit(Op {
                kind: OpKind::Read,
                file: Arc::clone(file),
                offset: from,
                buffer,
                range: 0..bytes,
                tag: from,
            });
        }
        shared.stop.check()?;
        meter.lap(Stage::Relocate, State::Work);
        let Some(done) = ring.complete(true) else {
            break;
        };
        meter.lap(Stage::Relocate, State::Device);
        let Op { kind, offset, .. } = done.op;
        meter.completed(done.op.range.len());
        match kind {
            OpKind::Read => {
                let moved = done
                    .result
                    .map_err(|error| wrong("reading back temporary data", offset, error))?;
                let (to, bytes) = moves[&offset];
                meter.read(bytes as u64);
                meter.stage(Stage::Relocate).bytes_in += bytes as u64;
                meter.submitted(bytes);
                let mut buffer = done.op.buffer;
                // What is missing shows as a block that does not open.
                buffer[moved..bytes].fill(0);
                ring.submit(Op {
                    kind: OpKind::Write,
                    offset: to,
                    buffer,
                    ..done.op
                });
            }
            OpKind::Write => {
                let bytes = done
                    .result
                    .map_err(|error| wrong("writing temporary data", offset, error))?;
                meter.wrote(bytes as u64);
                meter.stage(Stage::Relocate).bytes_out += bytes as u64;
            }
        }
    }
    match waiting.next() {
        None => Ok(()),
        Some(_) => Err(Error::new(
            crate::error::ErrorKind::Memory,
            "moving temporary data",
            "no block of memory is free",
        )),
    }
}

fn with_places(content: &Content, moves: &Moves) -> Content {
    let mut blocks = content.blocks.clone();
    for block in &mut blocks {
        if let Whereabouts::Disk(Stored { spot, .. }) = &mut block.whereabouts
            && let Some(&(to, _)) = moves.get(&spot.offset)
        {
            spot.offset = to;
        }
    }
    Content {
        blocks,
        chunks: content.chunks.clone(),
        keys: None,
        ..*content
    }
}
