//! Whether the input is in order already, in one piece or a few: keys of the sample first, which are drawn in any case,
//! and if they look like it, one at the beginning of each stretch.

use sortmill_io::align_up;

use super::Shared;
use super::sampling::{self, Drawn, Reads};
use crate::chunks::Chunks;
use crate::error::Result;
use crate::job::{Boundaries, Job};
use crate::order::Format;
use crate::pieces::{self, Extents, Key, Stretch, count_pieces, longest_alike};
use crate::plan::Plan;
use crate::sample::{SAMPLE_KEY_BYTES_MAX, Sample};
use crate::stage::read::Source;
use crate::table::Boundary;
use crate::yields::Yield;

/// Pieces are fewer than one to so many keys that were looked at: random keys are one to three.
const KEYS_PER_PIECE: usize = 8;
/// Stretches of each piece that must fit in memory together: those read ahead, and around where a piece begins.
const STRETCHES_PER_PIECE: u64 = 4;
/// The most stretches; of a longer input each is several chunks.
const STRETCHES_MAX: u64 = 8192;
/// Of lines longer than what is read at a place a stretch has at least so many, and no more than one in twice as many
/// bytes is read to find where they begin.
const LINES_PER_STRETCH: u64 = 32;

/// Whether a job is one that may find order: its output is one file that can be read again, its inputs can be entered
/// from the middle, and they do not fit in memory.
pub fn may_find(job: &Job, plan: &Plan, sources: &[Source], writes_file: bool) -> bool {
    let fits = match plan.order.format() {
        Format::Fixed(size) => {
            let whole = |source: &Source| source.meta.bytes.is_multiple_of(u64::from(size));
            align_up(u64::from(size)) <= plan.headroom_bytes as u64 && sources.iter().all(whole)
        }
        // One that outgrows the room in front of a chunk goes into a body, or has to be whole.
        Format::Lines => plan.takes_parts,
        // They cannot be entered from the middle.
        Format::Kv | Format::Quoted(_) => false,
    };
    let unchanged = job.keeps_records() && !job.equal_keys_meet && job.yields == Yield::All;
    let spills = plan.input_bytes.is_some() && plan.temp_bytes.is_some_and(|bytes| bytes > 0);
    fits && unchanged
        && job.merge.is_none()
        && spills
        && writes_file
        && job.skip_bad == 0
        && job.header_lines == 0
        && job.on.is_none()
        && job.until.is_none()
        && matches!(job.boundaries, Boundaries::Sample)
}

/// What looking for order came to.
pub enum Noticed {
    /// It was not looked for.
    Nothing,
    /// There is none; the sample will do for what comes.
    Disorder(Drawn),
    /// There is.
    Order(Found),
}

/// Order that was found.
pub struct Found {
    /// What was drawn, of it the sample at even distances.
    pub drawn: Drawn,
    pub piece_count: usize,
    /// The last key is below the first one.
    pub falls: bool,
    /// Some records are so long that nobody knows how well they fill blocks.
    pub has_long_records: bool,
    /// Bytes of a stretch that has a key of its own, and those behind it too.
    pub stretch_bytes: u64,
    /// All of the input, in the order in which to read it.
    pub stretches: Vec<Stretch>,
}

impl Found {
    /// Whether it may be copied, and if so, whether it falls. Of long records there may be one in any chunk.
    pub fn copies(&self) -> Option<bool> {
        (self.piece_count == 1 && !self.has_long_records).then_some(self.falls)
    }
}

/// Draws the sample and looks whether the input is in order, if the job is one where that helps.
pub fn notice(shared: &Shared<'_>, sources: &[Source]) -> Result<Noticed> {
    let plan = shared.plan;
    let began_ns = shared.os.now_ns();
    if !plan.looks_for_order {
        return Ok(Noticed::Nothing);
    }
    let mut drawn = sampling::draw(shared, sources)?;
    let extents = extents(plan, sources, line_bytes(plan, &drawn.firsts));
    let stretch_bytes = extents.iter().map(|extents| extents.stretch_bytes).max();
    let stretch_bytes = stretch_bytes.unwrap_or(1);
    let room = room_bytes(shared, 0) / (STRETCHES_PER_PIECE * stretch_bytes);
    let is_order = |keys: &[Key]| {
        let (count, known) = (count_pieces(keys), keys.iter().flatten().count());
        count > 0 && count as u64 <= room && count * KEYS_PER_PIECE <= known
    };
    if !is_order(&drawn.firsts) {
        return Ok(Noticed::Disorder(drawn));
    }
    let Looked {
        mut keys,
        records,
        bytes,
    } = look(shared, sources, &extents)?;
    drawn.bytes += bytes;
    drawn.ns = shared.os.now_ns() - began_ns;
    let all = keys.concat();
    let units_fit = keys_tell_units_apart(plan, &all, stretch_bytes)
        && entries_suffice(plan, &records, stretch_bytes);
    if !is_order(&all) || !units_fit {
        return Ok(Noticed::Disorder(drawn));
    }
    let each = extents.iter().zip(&keys).enumerate();
    let mut stretches: Vec<Stretch> = each
        .flat_map(|(input, (extents, keys))| pieces::stretches(input, extents, keys))
        .collect();
    // At even distances they tell more of what is in order than keys from random places.
    drawn.sample = Sample::default();
    for (keys, extents) in keys.iter_mut().zip(&extents) {
        keys.truncate(extents.stretch_count() as usize);
        for (number, key) in keys.drain(..).enumerate() {
            let chunk = extents.number(number as u64);
            (drawn.sample).add_key(key.map(|key| Boundary { key, chunk }));
        }
    }
    pieces::by_lowest(&mut stretches);
    Ok(Noticed::Order(Found {
        has_long_records: has_long_records(plan, &drawn.firsts, &records),
        drawn,
        piece_count: count_pieces(&all),
        falls: falls(&all),
        stretch_bytes,
        stretches,
    }))
}

fn falls(keys: &[Key]) -> bool {
    let mut known = keys.iter().flatten();
    let (first, last) = (known.next(), known.next_back());
    last.is_some() && last < first
}

/// How long lines are, about, that no place holds whole: from how many places there are in which none begins.
fn line_bytes(plan: &Plan, firsts: &[Key]) -> u64 {
    let known = firsts.iter().flatten().count();
    let unknown = firsts.len() - known;
    match plan.order.format() {
        Format::Lines => (plan.sample_bytes * unknown / known.max(1)) as u64,
        Format::Fixed(_) | Format::Kv | Format::Quoted(_) => 0,
    }
}

/// Whether records are long beside a block, by their number, or some are longer than what is read of a place.
fn has_long_records(plan: &Plan, firsts: &[Key], records: &[Vec<u64>]) -> bool {
    const PLACES_PER_UNKNOWN: usize = 64;
    const RECORDS_PER_BLOCK: u64 = 16;
    let unknown = firsts.len() - firsts.iter().flatten().count();
    let records: u64 = records.iter().flatten().sum();
    let mean_bytes = plan.input_bytes.unwrap_or(0) / records.max(1);
    unknown * PLACES_PER_UNKNOWN > firsts.len()
        || mean_bytes * RECORDS_PER_BLOCK > plan.block_bytes as u64
}

/// Whether keys of stretches that were cut, and are alike then, are so few that what lies between them can be sorted in
/// memory: such units are not divided.
fn keys_tell_units_apart(plan: &Plan, keys: &[Key], stretch_bytes: u64) -> bool {
    let alike = longest_alike(keys, SAMPLE_KEY_BYTES_MAX) as u64;
    let unit_bytes = (plan.unit_blocks_max * plan.block_bytes) as u64;
    alike < 2 || (alike + 1) * stretch_bytes <= unit_bytes / 2
}

/// Whether hardly a unit has many more `records` than others, as they were counted in each stretch of each input, and more
/// than can be sorted at once: such units are not divided, but merged.
fn entries_suffice(plan: &Plan, records: &[Vec<u64>], stretch_bytes: u64) -> bool {
    const UNITS_PER_MERGED: usize = 64;
    let input_bytes = plan.input_bytes.unwrap_or(0);
    let unit_count = plan.partition_count as u64;
    let count = (input_bytes / unit_count).div_ceil(stretch_bytes).max(1) as usize;
    let mean: u64 = records.iter().flatten().sum::<u64>() / unit_count;
    let most = (2 * mean).max(plan.entry_count as u64);
    let units: Vec<u64> = (records.iter())
        .flat_map(|records| records.chunks(count))
        .map(|unit| unit.iter().sum())
        .collect();
    let merged = units.iter().filter(|&&records| records > most).count();
    merged <= (units.len() / UNITS_PER_MERGED).max(1)
}

/// How each input is cut into stretches, if some lines are as long as `line_bytes`.
fn extents(plan: &Plan, sources: &[Source], line_bytes: u64) -> Vec<Extents> {
    let chunk_bytes = plan.chunk_bytes as u64;
    let chunks: u64 = sources
        .iter()
        .map(|source| source.meta.bytes.div_ceil(chunk_bytes))
        .sum();
    let firsts = Chunks::first_chunks(&super::extents(sources), chunk_bytes);
    let least = (LINES_PER_STRETCH * line_bytes).div_ceil(chunk_bytes);
    let each = sources.iter().zip(firsts);
    each.map(|(source, first_chunk)| Extents {
        first_chunk,
        bytes: source.meta.bytes,
        chunk_bytes,
        stretch_bytes: chunk_bytes * chunks.div_ceil(STRETCHES_MAX).max(least).max(1),
    })
    .collect()
}

/// What was seen at the beginning of each stretch of each input.
struct Looked {
    /// The first key that begins there, and behind those of all stretches the last of the input.
    keys: Vec<Vec<Key>>,
    /// How many records the stretch has, if all of it is like what was seen.
    records: Vec<Vec<u64>>,
    /// Bytes read.
    bytes: u64,
}

/// Looks at the beginning of each stretch, and further where a long line goes on there.
fn look(shared: &Shared<'_>, sources: &[Source], extents: &[Extents]) -> Result<Looked> {
    let sample_bytes = shared.plan.sample_bytes as u64;
    let mut places = Vec::new();
    for (input, extents) in extents.iter().enumerate() {
        let count = extents.stretch_count();
        places.extend((0..count).map(|number| (input, number * extents.stretch_bytes)));
        let last = align_up(extents.bytes).saturating_sub(sample_bytes);
        places.extend((count > 0).then_some((input, last)));
    }
    let is_last = |number: usize| {
        let next: Option<&(usize, u64)> = places.get(number + 1);
        next.is_none_or(|next| next.0 != places[number].0)
    };
    let mut keys: Vec<Key> = vec![None; places.len()];
    let mut records = vec![0; places.len()];
    let reads = Reads::of_sample(shared);
    let bytes = sampling::read_places(&reads, sources, &places, |number, bytes| {
        let (input, offset) = places[number];
        keys[number] = match is_last(number) {
            true => sampling::last_key(shared, offset, bytes),
            false => sampling::first_key(shared, offset, bytes),
        };
        let seen = sampling::count_records(shared, offset, bytes);
        records[number] = seen * extents[input].stretch_bytes / (bytes.len() as u64).max(1);
    })?;
    let further = |number: &usize| keys[*number].is_none() && !is_last(*number);
    let waiting: Vec<usize> = (0..places.len()).filter(further).collect();
    let bytes = bytes + look_further(shared, sources, extents, &places, waiting, &mut keys)?;
    let (mut keys, mut records) = (keys.into_iter(), records.into_iter());
    let (mut keys_of, mut records_of) = (Vec::new(), Vec::new());
    for extents in extents {
        let count = extents.stretch_count() as usize;
        let places = count + count.min(1);
        keys_of.push(keys.by_ref().take(places).collect());
        let mut records: Vec<u64> = records.by_ref().take(places).collect();
        // What was seen at the end is not counted twice.
        records.truncate(count);
        records_of.push(records);
    }
    Ok(Looked {
        keys: keys_of,
        records: records_of,
        bytes,
    })
}

/// Reads on from the places of the stretches that are `waiting` for a key, as far as they go and as it may cost. Answers
/// the bytes read.
fn look_further(
    shared: &Shared<'_>,
    sources: &[Source],
    extents: &[Extents],
    places: &[(usize, u64)],
    mut waiting: Vec<usize>,
    keys: &mut [Key],
) -> Result<u64> {
    let step_bytes = shared.plan.sample_bytes as u64;
    let input_bytes: u64 = extents.iter().map(|extents| extents.bytes).sum();
    let (mut bytes, bytes_max) = (0, input_bytes / (2 * LINES_PER_STRETCH));
    let mut beyond = 0;
    loop {
        beyond += step_bytes;
        waiting.retain(|&number| {
            let (input, offset) = places[number];
            let of = &extents[input];
            let is_there = beyond < of.stretch_bytes && offset + beyond < of.bytes;
            keys[number].is_none() && is_there
        });
        if waiting.is_empty() || bytes > bytes_max {
            return Ok(bytes);
        }
        let further: Vec<(usize, u64)> = (waiting.iter())
            .map(|&number| (places[number].0, places[number].1 + beyond))
            .collect();
        bytes +=
            sampling::read_places(&Reads::of_sample(shared), sources, &further, |at, seen| {
                keys[waiting[at]] = sampling::first_key(shared, further[at].1, seen);
            })?;
    }
}

/// Bytes of records that free memory, and `block_count` blocks that are not free, take without eviction: a block of each
/// partition may stay half empty.
pub fn room_bytes(shared: &Shared<'_>, block_count: usize) -> u64 {
    let plan = shared.plan;
    let kept = plan.block_low_water + plan.partition_count / 2;
    let blocks = (shared.block_pool.free_count() + block_count).saturating_sub(kept);
    (blocks * plan.block_bytes) as u64 / 16 * 15
}
