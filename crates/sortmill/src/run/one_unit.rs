//! One unit at a time, from its blocks to the output: what each worker of the phase `sort` does.

use std::ops::Range;

use sortmill_io::Table;

use super::Shared;
use super::gather::{gather, gather_drawn};
use super::joined::Joining;
use super::lay_out::{framed, lay_out};
use super::long::gather_long;
use super::parts::put_sorted;
use super::sorting::{Done, Phase};
use super::tail::WayOut;
use super::unmapped;
use super::until::{discard, received_bytes};
use crate::bodies::BodyReader;
use crate::error::Result;
use crate::long::Item;
use crate::metrics::{Meter, Stage, State};
use crate::queue::Queue;
use crate::stage::kernel::{self, Entry};
use crate::stage::load::LoadedUnit;
use crate::stage::reduce::Gather;
use crate::stage::sort::Load;

/// A worker: units to output, until there are no more.
pub fn work(phase: &Phase<'_>, loaded: &Queue<LoadedUnit>, meter: &mut Meter<'_>) -> Result<Done> {
    let mut done = Done::default();
    if !phase.shared.job.reaches(Stage::Sort) {
        let stop = phase.shared.stop;
        discard(
            || loaded.pop(),
            stop,
            Stage::Sort,
            meter,
            |unit| {
                done.sizes.push(received_bytes(&unit.unit));
            },
        )?;
        return Ok(done);
    }
    let mut entries = entry_table(phase.shared)?;
    let mut bodies = phase.body_reader();
    let mut joining = Joining::new(phase.shared.job, phase.shared.plan, &phase.order);
    loop {
        let unit = loaded.pop();
        meter.lap(Stage::Sort, State::Input);
        let Some(mut unit) = unit else {
            phase.shared.stop.check()?;
            return Ok(done);
        };
        sort_unit(
            phase,
            &mut unit,
            &mut entries,
            &mut bodies,
            joining.as_mut(),
            meter,
            &mut done,
        )?;
    }
}

pub fn entry_table(shared: &Shared<'_>) -> Result<Table<Entry>> {
    Table::new(shared.plan.entry_count).map_err(unmapped)
}

/// Lays a unit's blocks out, sorts them, and hands its records to the output.
fn sort_unit(
    phase: &Phase<'_>,
    unit: &mut LoadedUnit,
    entries: &mut [Entry],
    bodies: &mut BodyReader<'_>,
    joining: Option<&mut Joining>,
    meter: &mut Meter<'_>,
    done: &mut Done,
) -> Result<()> {
    let order = &phase.order;
    let (blocks, framed) = framed(phase, &mut unit.blocks, meter)?;
    if let Some(joining) = joining
        && phase.shared.job.reaches(Stage::Reduce)
        && unit.unit.range.is_none()
        && let with = (phase.shared.job, order, phase.shared.number)
        && let Some((load, gathered, count)) = joining.join(with, &framed, entries)
    {
        let (entries, scratch) = entries.split_at_mut(count);
        kernel::sort_entries(entries, scratch);
        done.joined += 1;
        count_sorted(load, load, meter, done);
        let ends = entries.first().zip(entries.last());
        let ends = ends.map(|(&first, &last)| [first, last].map(|one| joining.record(one)));
        phase.tell_ends(unit.number, ends.map(|ends| ends.map(Item::Record)))?;
        return phase.put_unit(unit.number, load.bytes, meter, done, |way, meter| {
            way.gathered.merge(&gathered);
            joining.gather(entries, way, meter)
        });
    }
    let (slab, load) = lay_out(phase, &unit.unit, (blocks, &framed), None, entries)?;
    let (entries, scratch) = entries.split_at_mut(load.records as usize);
    phase.sort(&slab, entries, scratch, bodies, meter)?;
    let kept = phase.keep_first(&slab, entries, load, bodies, meter, done)?;
    let entries = &entries[..kept.records as usize];
    count_sorted(load, kept, meter, done);
    let load = kept;
    if !phase.shared.job.reaches(Stage::Reduce) {
        return Ok(());
    }
    let item = |at: usize| slab.item(order, kernel::location(entries[at]));
    let last = entries.len().checked_sub(1);
    phase.tell_ends(unit.number, last.map(|last| [item(0), item(last)]))?;
    let mut proof = Gather::new(order, phase.shared.number);
    let record_bytes = (load.bytes / load.records.max(1)) as usize;
    let mut give = |range: Range<usize>, way: &mut WayOut<'_, '_>, meter: &mut Meter<'_>| match slab
        .has_stubs()
    {
        true => gather_long(phase, &slab, entries, range, bodies, way, meter),
        false if slab.is_drawn() => gather_drawn(&slab, &entries[range], way, meter),
        false => gather(&slab, &entries[range], record_bytes, &mut proof, way, meter),
    };
    match &phase.parts {
        None => phase.put_unit(unit.number, load.bytes, meter, done, |way, meter| {
            give(0..entries.len(), way, meter)
        }),
        Some(parts) => {
            let size = (entries.len(), load.bytes);
            put_sorted(phase, parts, unit.number, size, item, give, meter, done)
        }
    }
}

/// Counts a unit that was loaded and sorted, and what of it was kept.
fn count_sorted(load: Load, kept: Load, meter: &mut Meter<'_>, done: &mut Done) {
    let totals = meter.stage(Stage::Sort);
    totals.bytes_in += load.bytes;
    totals.bytes_out += kept.bytes;
    totals.records_in += load.records;
    totals.records_out += kept.records;
    meter.lap(Stage::Sort, State::Work);
    done.sizes.push(load.bytes);
}
