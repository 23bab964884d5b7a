//! A unit that is larger than memory: pieces of it as runs, and the runs merged into the output.

use std::collections::HashMap;

use sortmill_io::sync::Arc;

use super::Shared;
use super::lay_out::{framed, lay_out};
use super::one_unit::entry_table;
use super::parts::put_merged;
use super::sorting::{Done, Phase};
use super::until::received_bytes;
use crate::error::{Error, ErrorKind, Result};
use crate::long::{Item, Stub};
use crate::metrics::{Meter, Stage};
use crate::partitions::{Content, Unit, Whereabouts};
use crate::rows::Run;
use crate::stage::kernel;
use crate::stage::load::LoadedBlock;
use crate::stage::merge::{Device, RunWriter, merge};
use crate::stage::reduce::{Stream, out_of_order};

/// Sorts a unit larger than memory: pieces of it to runs, then the runs to the output.
pub fn merge_unit(
    phase: &Phase<'_>,
    number: usize,
    unit: Unit,
    meter: &mut Meter<'_>,
    done: &mut Done,
) -> Result<()> {
    let Shared { plan, os, stop, .. } = *phase.shared;
    let ring = os.ring(1);
    let wrong =
        |error: std::io::Error| Error::new(ErrorKind::Io, "starting to merge", error.to_string());
    let mut ring = ring.map_err(wrong)?;
    let mut device = Device {
        ring: &mut *ring,
        temps: phase.shared.temps,
        pool: &phase.shared.block_pool,
        stop,
        job: phase.shared.number,
        node: plan.node(),
        run_count: &phase.run_count,
        bodies: phase.body_reader(),
        written_bytes: 0,
        read_bytes: 0,
    };
    let received = received_bytes(&unit);
    let (runs, laid_out) = make_runs(phase, unit, &mut device, meter, done)?;
    phase.places.loaded(number);
    done.merged += 1;
    if phase.shared.job.reaches(Stage::Merge) {
        let dropped = done.dropped.bytes;
        let runs = fewer_runs(phase, runs, &mut device, meter, done)?;
        let bytes = laid_out - (done.dropped.bytes - dropped);
        done.sizes.push(bytes);
        let order = &phase.order;
        if let Some(parts) = &phase.parts {
            put_merged(phase, parts, number, bytes, meter, done, |put, meter| {
                merge(
                    order,
                    plan.head_bytes,
                    runs,
                    &mut device,
                    meter,
                    |_, item, device, meter| put(item, &mut device.bodies, meter),
                )
            })?;
        } else {
            let is_drawn = phase.shared.job.yields.shuffle().is_some();
            let mut proof = Stream::new(order, plan.head_bytes);
            phase.put_unit(number, bytes, meter, done, |way, meter| {
                let mut last = 0;
                merge(
                    order,
                    plan.head_bytes,
                    runs,
                    &mut device,
                    meter,
                    |place, item, device, meter| {
                        if is_drawn && std::mem::replace(&mut last, place) > place {
                            return Err(out_of_order());
                        }
                        proof.next(item)?;
                        way.put_item(item, &mut device.bodies, meter)
                    },
                )
            })?;
            phase.tell_ends(number, proof.ends())?;
        }
    } else {
        done.sizes.push(received);
    }
    done.merge_written_bytes += device.written_bytes;
    done.merge_read_bytes += device.read_bytes;
    Ok(())
}

/// Sorts as many of a unit's blocks at a time as memory holds and writes each piece as a run. The memory
/// of blocks that no other unit shares is free afterwards. Where the order is drawn, what a record is sorted by stands in
/// a run as its chunk. Answers the bytes of the runs' records too.
fn make_runs(
    phase: &Phase<'_>,
    mut unit: Unit,
    device: &mut Device<'_>,
    meter: &mut Meter<'_>,
    done: &mut Done,
) -> Result<(Vec<Run>, u64)> {
    let plan = phase.shared.plan;
    let order = &phase.order;
    let is_drawn = phase.shared.job.yields.shuffle().is_some();
    let mut seen = HashMap::new();
    let mut entries = entry_table(phase.shared)?;
    let mut runs = Vec::new();
    let mut bytes = 0;
    let contents = std::mem::take(&mut unit.contents).into_iter();
    let blocks = |content: Arc<Content>| match Arc::try_unwrap(content) {
        Ok(content) => content.blocks,
        Err(shared) => shared.blocks.clone(),
    };
    let mut waiting = contents.flat_map(blocks).peekable();
    while waiting.peek().is_some() {
        let mut blocks: Vec<LoadedBlock> = Vec::new();
        let mut records = 0;
        while let Some(block) = waiting.peek() {
            let grown = records + block.header.record_count as usize;
            let full = blocks.len() >= plan.unit_blocks_max / 2 || grown > entries.len();
            if full && !blocks.is_empty() {
                break;
            }
            records = grown;
            let block = waiting.next().expect("it was there");
            blocks.push(match block.whereabouts {
                Whereabouts::Memory(buffer) => LoadedBlock {
                    header: block.header,
                    buffer,
                    stored: None,
                    is_unchecked: false,
                },
                Whereabouts::Leaving => unreachable!("all that left memory is on disk by now"),
                Whereabouts::Disk(stored) => LoadedBlock {
                    header: block.header,
                    buffer: Arc::new(device.read(&block.header, stored, meter)?),
                    stored: Some(stored),
                    is_unchecked: true,
                },
            });
        }
        if !phase.shared.job.reaches(Stage::Sort) {
            continue;
        }
        let seen = is_drawn.then_some(&mut seen);
        let (blocks, framed) = framed(phase, &mut blocks, meter)?;
        let (slab, load) = lay_out(phase, &unit, (blocks, &framed), seen, &mut entries)?;
        let (entries, scratch) = entries.split_at_mut(load.records as usize);
        phase.sort(&slab, entries, scratch, &mut device.bodies, meter)?;
        let kept = phase.keep_first(&slab, entries, load, &mut device.bodies, meter, done)?;
        bytes += kept.bytes;
        let mut run = RunWriter::new(device.next_run(), plan.block_bytes);
        for &entry in &entries[..kept.records as usize] {
            let chunk = match is_drawn {
                true => kernel::word(entry),
                false => slab.chunk(kernel::ordinal(entry)),
            };
            let item = slab.item(order, kernel::location(entry));
            run.put(chunk, &item, device, meter)?;
        }
        runs.push(run.finish(device, meter)?);
        let totals = meter.stage(Stage::Merge);
        totals.bytes_in += load.bytes;
        totals.bytes_out += kept.bytes;
        totals.records_in += load.records;
        totals.records_out += kept.records;
    }
    Ok((runs, bytes))
}

/// Merges neighbouring runs with each other until there is a free block for each that is left. The loader
/// alone takes blocks in this phase, so what is free now stays so. Where repeats are dropped, until one is left: before
/// that nobody knows how many bytes will come out of it.
fn fewer_runs(
    phase: &Phase<'_>,
    mut runs: Vec<Run>,
    device: &mut Device<'_>,
    meter: &mut Meter<'_>,
    done: &mut Done,
) -> Result<Vec<Run>> {
    let plan = phase.shared.plan;
    let unique = phase.order.is_unique();
    let mut at = 0;
    loop {
        // One block is for the run that is written.
        let count_max = device.pool.free_count().saturating_sub(1).max(2);
        let wanted = if unique { 1 } else { count_max };
        if runs.len() <= wanted {
            return Ok(runs);
        }
        let count = count_max.min(runs.len() - wanted + 1).min(runs.len() - at);
        if count < 2 {
            at = 0;
            continue;
        }
        let mut merged = RunWriter::new(device.next_run(), plan.block_bytes);
        let mut first = First::default();
        let some = runs.drain(at..at + count).collect();
        merge(
            &phase.order,
            plan.head_bytes,
            some,
            device,
            meter,
            |chunk, item, device, meter| {
                if unique && first.is_repeated(phase, item, device, meter, done)? {
                    return Ok(());
                }
                merged.put(chunk, item, device, meter)
            },
        )?;
        runs.insert(at, merged.finish(device, meter)?);
        at += 1;
    }
}

/// The record that went on last, so that of equal keys only the first does.
#[derive(Default)]
struct First {
    /// It, or the short one that stands for it; empty before the first.
    short: Vec<u8>,
    /// Its body, bytes and bytes of its key, if it is long.
    long: Option<(u32, u64, u64)>,
}

impl First {
    /// Whether a record's key is that of this one. If so, it is counted as dropped; else it takes its place.
    fn is_repeated(
        &mut self,
        phase: &Phase<'_>,
        item: &Item<'_>,
        device: &mut Device<'_>,
        meter: &mut Meter<'_>,
        done: &mut Done,
    ) -> Result<bool> {
        let first = match self.long {
            None => Item::Record(&self.short),
            Some((body, bytes, key_bytes)) => Item::Stub(Stub {
                body,
                bytes,
                key_bytes,
                short: &self.short,
            }),
        };
        let (bodies, dropped) = (&mut device.bodies, &mut done.dropped);
        if !self.short.is_empty() && phase.is_repeat(&first, item, bodies, meter, dropped)? {
            return Ok(true);
        }
        self.long = match item {
            Item::Record(_) => None,
            Item::Stub(stub) => Some((stub.body, stub.bytes, stub.key_bytes)),
        };
        self.short.clear();
        self.short.extend_from_slice(item.short());
        Ok(false)
    }
}
