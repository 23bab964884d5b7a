//! What is known of inputs before they are read: how long their records are, and of compressed ones, what they may
//! become and what decompressing them takes. From the beginnings of some.

use sortmill_io::Os;
use sortmill_io::os::Kind;

use crate::batch::Records;
use crate::error::{Error, ErrorKind, Result};
use crate::job::Job;
use crate::order::{Begun, Format};
use crate::plan::{Mapped, PackedInputs};
use crate::stage::read::{Source, beginning, sample_records};

/// Looks at the beginning of the largest file to learn how long its records are, if they are of any length.
pub fn mean_record_bytes(job: &Job, os: &dyn Os, sources: &[Source]) -> Result<Option<f64>> {
    const LOOK_BYTES: usize = 64 << 10;
    if matches!(job.format, Format::Fixed(_)) {
        return Ok(None);
    }
    let order = job.input_order()?;
    let Some(source) = largest(sources) else {
        return Ok(None);
    };
    let (bytes, _) =
        beginning(os, source, LOOK_BYTES).map_err(|error| unreadable(source, &error))?;
    let (mut count, mut sum) = (0u64, 0u64);
    let all = bytes.len();
    sample_records(&order, &bytes, &Begun::default(), all, |record| {
        count += 1;
        sum += record.len() as u64;
    });
    // Of records that are longer than all that was looked at, that much is known.
    Ok(Some(match count {
        0 => all as f64,
        _ => sum as f64 / count as f64,
    }))
}

fn largest(sources: &[Source]) -> Option<&Source> {
    let files = sources
        .iter()
        .filter(|source| source.meta.kind == Kind::Regular);
    let largest = files.max_by_key(|source| source.meta.bytes);
    largest.filter(|source| source.meta.bytes > 0)
}

/// Has the map function, if there is one, work on the beginning of the largest file, to learn how much it makes of what.
/// What is wrong with that shows when the job itself comes to it.
pub fn mapped(job: &Job, os: &dyn Os, sources: &[Source]) -> Result<Option<Mapped>> {
    const LOOK_BYTES: usize = 512 << 10;
    let (Some(make), Some(source)) = (&job.map, largest(sources)) else {
        return Ok(None);
    };
    let (bytes, _) =
        beginning(os, source, LOOK_BYTES).map_err(|error| unreadable(source, &error))?;
    let mut mapper = make(LOOK_BYTES as u64);
    let mut made = Records::new(job.order()?, 64 * LOOK_BYTES, usize::MAX).of_sample();
    let (mut from_bytes, mut count, mut sum) = (0u64, 0u64, 0u64);
    let mut see = |made: &mut Records| {
        let seen = made.sizes();
        count += seen.0;
        sum += seen.1;
        made.clear();
        seen.0 > 0
    };
    let all = bytes.len();
    let mut header_left = job.header_lines;
    sample_records(
        &job.input_order()?,
        &bytes,
        &Begun::default(),
        all,
        |record| {
            if header_left > 0 {
                header_left -= 1;
                return;
            }
            from_bytes += record.len() as u64;
            made.place.1 += 1;
            mapper(Some(record), &mut made);
            see(&mut made);
        },
    );
    loop {
        mapper(None, &mut made);
        if !see(&mut made) {
            break;
        }
    }
    Ok((from_bytes > 0).then(|| Mapped {
        ratio: sum as f64 / from_bytes as f64,
        record_bytes_mean: sum as f64 / count.max(1) as f64,
    }))
}

/// No file is so large, and plans can still reckon with it.
const GUESS_BYTES_MAX: u64 = 1 << 56;

/// Looks at the beginnings of the largest compressed files.
pub fn packed_inputs(os: &dyn Os, sources: &[Source]) -> Result<PackedInputs> {
    const LOOK_COUNT: usize = 4;
    const LOOK_BYTES: usize = 4 << 20;
    let mut packed: Vec<&Source> = (sources.iter())
        .filter(|source| source.codec.is_some())
        .collect();
    if packed.is_empty() {
        return Ok(PackedInputs::default());
    }
    packed.sort_by_key(|source| std::cmp::Reverse(source.meta.bytes));
    let (mut unpacked, mut used) = (0, 0);
    for source in packed.iter().take(LOOK_COUNT) {
        let (bytes, from) =
            beginning(os, source, LOOK_BYTES).map_err(|error| unreadable(source, &error))?;
        unpacked += bytes.len();
        used += from;
    }
    let ratio = unpacked as f64 / used.max(1) as f64;
    let bytes_of = |is_packed: bool| -> u64 {
        let these = sources
            .iter()
            .filter(|source| source.codec.is_some() == is_packed);
        these.map(|source| source.meta.bytes).sum()
    };
    let all_are_files = sources
        .iter()
        .all(|source| source.meta.kind == Kind::Regular);
    let guessed = |stored: u64| ((stored as f64 * ratio) as u64).min(GUESS_BYTES_MAX);
    let guess = |source: &Source| source.codec.map(|_| guessed(source.meta.bytes));
    let all = bytes_of(false).saturating_add(guessed(bytes_of(true)));
    let sniffed = || packed.iter().filter_map(|source| source.codec);
    Ok(PackedInputs {
        count: packed.len(),
        memory_bytes: sniffed().map(|one| one.memory_bytes).max().unwrap_or(0),
        may_grow: sniffed().any(|one| one.may_grow),
        guessed_bytes: all_are_files.then_some(all.min(GUESS_BYTES_MAX)),
        stored_bytes: all_are_files.then(|| bytes_of(false) + bytes_of(true)),
        guesses: sources.iter().map(guess).collect(),
    })
}

fn unreadable(source: &Source, error: &std::io::Error) -> Error {
    Error::io("reading the input", &source.file.path, error).kind(ErrorKind::Input)
}
