//! Whether the input is in order already, in one piece or a few: keys of the sample first, which are drawn in any case,
//! and if they look like it, one at the beginning of each stretch.

use sortmill_io::align_up;

use super::Shared;
use super::sampling::{self, Drawn};
use crate::chunks::Chunks;
use crate::error::Result;
use crate::job::{Boundaries, Job};
use crate::order::Format;
use crate::pieces::{self, Extents, Key, Stretch, count_pieces};
use crate::plan::Plan;
use crate::sample::Sample;
use crate::stage::read::Source;
use crate::table::Boundary;

/// Pieces are fewer than one to so many keys that were looked at: random keys are one to three.
const KEYS_PER_PIECE: usize = 8;
/// Stretches of each piece that must fit in memory together: those read ahead, and around where a piece begins.
const STRETCHES_PER_PIECE: u64 = 4;
/// The most stretches; of a longer input each is several chunks.
const STRETCHES_MAX: u64 = 8192;
/// Whether a job is one that may find order: its output is one file that can be read again, its inputs can be entered
/// from the middle, and they do not fit in memory.
pub fn may_find(job: &Job, plan: &Plan, sources: &[Source], writes_file: bool) -> bool {
    let fits = match plan.order.format() {
        Format::Fixed(size) => {
            let whole = |source: &Source| source.meta.bytes.is_multiple_of(u64::from(size));
            align_up(u64::from(size)) <= plan.headroom_bytes as u64 && sources.iter().all(whole)
        }
        // A line may be longer than what is read of one at a time; pairs cannot be entered from the middle.
        Format::Lines | Format::Kv => false,
    };
    let unchanged = job.map.is_none() && job.reduce.is_none() && !job.equal_keys_meet;
    let spills = plan.input_bytes.is_some() && plan.temp_bytes.is_some_and(|bytes| bytes > 0);
    fits && unchanged
        && spills
        && writes_file
        && job.skip_bad == 0
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
    /// All of the input, in the order in which to read it.
    pub stretches: Vec<Stretch>,
}

/// Draws the sample and looks whether the input is in order, if the job is one where that helps.
pub fn notice(shared: &Shared<'_>, sources: &[Source]) -> Result<Noticed> {
    let plan = shared.plan;
    let began_ns = shared.os.now_ns();
    if !plan.looks_for_order {
        return Ok(Noticed::Nothing);
    }
    let mut drawn = sampling::draw(shared, sources)?;
    let extents = extents(plan, sources);
    let stretch_bytes = extents.iter().map(|extents| extents.stretch_bytes).max();
    let room = room_bytes(shared) / (STRETCHES_PER_PIECE * stretch_bytes.unwrap_or(1));
    let is_order = |keys: &[Key]| {
        let count = count_pieces(keys);
        count > 0 && count as u64 <= room && count * KEYS_PER_PIECE <= keys.len()
    };
    if !is_order(&drawn.firsts) {
        return Ok(Noticed::Disorder(drawn));
    }
    let (mut keys, bytes) = keys_of(shared, sources, &extents)?;
    drawn.bytes += bytes;
    drawn.ns = shared.os.now_ns() - began_ns;
    let all = keys.concat();
    if !is_order(&all) {
        return Ok(Noticed::Disorder(drawn));
    }
    let each = extents.iter().zip(&keys).enumerate();
    let mut stretches: Vec<Stretch> = each
        .flat_map(|(input, (extents, keys))| pieces::stretches(input, extents, keys))
        .collect();
    // At even distances they tell more of what is in order than keys from random places.
    let starts = (keys.iter_mut()).flat_map(|keys| keys.drain(..keys.len().saturating_sub(1)));
    drawn.sample = Sample::default();
    for (key, stretch) in starts.zip(&stretches) {
        let chunk = stretch.chunk;
        (drawn.sample).add_key(key.map(|key| Boundary { key, chunk }));
    }
    pieces::by_lowest(&mut stretches);
    Ok(Noticed::Order(Found {
        drawn,
        piece_count: count_pieces(&all),
        stretches,
    }))
}

/// How each input is cut into stretches.
fn extents(plan: &Plan, sources: &[Source]) -> Vec<Extents> {
    let chunk_bytes = plan.chunk_bytes as u64;
    let chunks: u64 = sources
        .iter()
        .map(|source| source.meta.bytes.div_ceil(chunk_bytes))
        .sum();
    let firsts = Chunks::first_chunks(&super::extents(sources), chunk_bytes);
    let each = sources.iter().zip(firsts);
    each.map(|(source, first_chunk)| Extents {
        first_chunk,
        bytes: source.meta.bytes,
        chunk_bytes,
        stretch_bytes: chunk_bytes * chunks.div_ceil(STRETCHES_MAX).max(1),
    })
    .collect()
}

/// For each input the keys at the beginning of each stretch, and its last one; and the bytes read for that.
fn keys_of(
    shared: &Shared<'_>,
    sources: &[Source],
    extents: &[Extents],
) -> Result<(Vec<Vec<Key>>, u64)> {
    let sample_bytes = shared.plan.sample_bytes as u64;
    let mut places = Vec::new();
    for (input, extents) in extents.iter().enumerate() {
        let count = extents.stretch_count();
        places.extend((0..count).map(|number| (input, number * extents.stretch_bytes)));
        let last = align_up(extents.bytes).saturating_sub(sample_bytes);
        places.extend((count > 0).then_some((input, last)));
    }
    let mut keys: Vec<Key> = vec![None; places.len()];
    let bytes = sampling::read_places(shared, sources, &places, |number, bytes| {
        let (input, offset) = places[number];
        let is_last = places.get(number + 1).is_none_or(|next| next.0 != input);
        keys[number] = match is_last {
            true => sampling::last_key(shared, offset, bytes),
            false => sampling::first_key(shared, offset, bytes),
        };
    })?;
    let mut keys = keys.into_iter();
    let of = |extents: &Extents| {
        let count = extents.stretch_count() as usize;
        keys.by_ref().take(count + count.min(1)).collect()
    };
    Ok((extents.iter().map(of).collect(), bytes))
}

/// Bytes of records that free memory takes without eviction: a block of each partition may stay half empty.
pub fn room_bytes(shared: &Shared<'_>) -> u64 {
    let plan = shared.plan;
    let kept = plan.block_low_water + plan.partition_count / 2;
    let blocks = shared.block_pool.free_count().saturating_sub(kept);
    (blocks * plan.block_bytes) as u64 / 16 * 15
}
