//! Blocks of a unit, as they came into memory, to entries: those that were compressed are decompressed first.
//!
//! Whoever sorts a unit does so, not the one thread that loads: there are as many as cores, and a block that was just
//! decompressed is in the cache of the one who makes its entries.

use std::collections::HashMap;

use sortmill_io::sync::Arc;

use super::border;
use super::sorting::Phase;
use crate::block::Stored;
use crate::error::Result;
use crate::metrics::{Meter, Stage, State};
use crate::packing;
use crate::partitions::{Unit, damaged};
use crate::stage::kernel::Entry;
use crate::stage::load::LoadedBlock;
use crate::stage::sort::{Drawing, Framed, Keys, Load, Slab};

/// A unit's blocks as they are looked at, once those that were compressed are decompressed.
///
/// # Errors
/// The first one that cannot be, with file and offset.
pub fn framed<'b>(
    phase: &Phase<'_>,
    blocks: &'b mut [LoadedBlock],
    meter: &mut Meter<'_>,
) -> Result<(&'b [LoadedBlock], Vec<Framed<'b>>)> {
    unpack(phase, blocks, meter)?;
    let blocks: &'b [LoadedBlock] = blocks;
    let framed = blocks
        .iter()
        .map(|block| Framed {
            header: block.header,
            bytes: &block.buffer,
            unchecked: block.is_unchecked,
        })
        .collect();
    Ok((blocks, border::blocks(phase.shared.job, framed)))
}

/// Checks a unit's blocks and makes its entries. Of one that is laid out in pieces, how many records of each chunk have
/// been `seen` is kept, where their order is drawn.
///
/// # Errors
/// The first block that is not what was written, with file and offset.
pub fn lay_out<'b>(
    phase: &Phase<'_>,
    unit: &Unit,
    (blocks, framed): (&'b [LoadedBlock], &[Framed<'b>]),
    seen: Option<&mut HashMap<u64, u32>>,
    entries: &mut [Entry],
) -> Result<(Slab<'b>, Load)> {
    let plan = phase.shared.plan;
    let drawing = phase.shared.job.yields.shuffle().map(|shuffle| Drawing {
        shuffle,
        partition: blocks.first().map_or(0, |block| block.header.partition),
        seen,
    });
    let range = unit.range.as_ref();
    let range = range.map(|(from, to)| (from.as_ref(), to.as_ref()));
    let keys = Keys {
        range,
        words_alike: unit.words_alike,
    };
    let (order, block_bytes) = (&phase.order, plan.block_bytes);
    let laid = Slab::lay_out(order, framed, block_bytes, keys, drawing, entries);
    laid.map_err(|wrong| {
        let stored = blocks[wrong.block].stored.unwrap_or_default();
        damaged(phase.shared.temps, stored.spot, wrong.why)
    })
}

/// Has the blocks that were compressed hold what they held before.
fn unpack(phase: &Phase<'_>, blocks: &mut [LoadedBlock], meter: &mut Meter<'_>) -> Result<()> {
    let Some(packers) = &phase.shared.packers else {
        return Ok(());
    };
    for block in blocks {
        let Some(
            stored @ Stored {
                packed: Some(packed),
                ..
            },
        ) = block.stored
        else {
            continue;
        };
        let header = &block.header;
        let buffer = Arc::get_mut(&mut block.buffer).expect("it was read for this unit alone");
        packing::open(Some(packers), phase.shared.temps, header, &stored, buffer)?;
        block.is_unchecked = false;
        let totals = meter.stage(Stage::Unpack);
        totals.bytes_in += u64::from(packed.bytes);
        totals.bytes_out += u64::from(header.payload_bytes);
        totals.records_in += u64::from(header.record_count);
        totals.records_out += u64::from(header.record_count);
    }
    meter.lap(Stage::Unpack, State::Work);
    Ok(())
}
