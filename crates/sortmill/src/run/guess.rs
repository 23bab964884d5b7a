//! What is known of inputs before they are read: how long their records are, how much a map function makes of them, and of
//! compressed ones, what they may become and what decompressing them takes. From small parts of them.

use sortmill_io::os::Kind;
use sortmill_io::{Os, align_down};

use super::sampling::{Reads, all_over, begun_of, read_places};
use super::seen::Seen;
use crate::error::{Error, ErrorKind, Result};
use crate::job::Job;
use crate::order::{Begun, Format, Order};
use crate::plan::{Mapped, PackedInputs};
use crate::queue::Stop;
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
    Ok(match (count, all) {
        // Of what could not be decompressed nothing is.
        (0, 0) => None,
        (0, _) => Some(all as f64),
        _ => Some(sum as f64 / count as f64),
    })
}

fn largest(sources: &[Source]) -> Option<&Source> {
    let files = sources
        .iter()
        .filter(|source| source.meta.kind == Kind::Regular);
    let largest = files.max_by_key(|source| source.meta.bytes);
    largest.filter(|source| source.meta.bytes > 0)
}

/// Has the map function, if there is one, work on parts of all files, whose records have `record_bytes_mean` bytes as far as is
/// known, to learn how much it makes of what. What is wrong with them shows when the job itself comes to it.
pub fn mapped(
    job: &Job,
    os: &dyn Os,
    sources: &[Source],
    record_bytes_mean: Option<f64>,
) -> Result<Option<Mapped>> {
    if job.map.is_none() {
        return Ok(None);
    }
    let (order, input_order) = (job.order()?, job.input_order()?);
    let parts = Parts::of(job, &input_order, sources, record_bytes_mean);
    let mut seen = Seen::new(os, job, &order, 64 * LOOK_BYTES, LOOK_BYTES as u64);
    let parts = parts.read(os, sources)?;
    for at in all_over(parts.len()) {
        look(job, &input_order, &mut seen, parts[at].0, &parts[at].1);
    }
    // Records may be longer than what was looked at in one place.
    if seen.came_bytes() == 0 {
        let Some(source) = largest(sources) else {
            return Ok(None);
        };
        let (bytes, _) =
            beginning(os, source, LOOK_BYTES).map_err(|error| unreadable(source, &error))?;
        look(job, &input_order, &mut seen, 0, &bytes);
    }
    seen.end(&mut |_, _| {});
    let (ratio, record_bytes_mean) = seen.of_each().unwrap_or_default();
    Ok((seen.came_bytes() > 0).then_some(Mapped {
        ratio,
        record_bytes_mean,
    }))
}

/// Shows what lies at `offset` of a file.
fn look(job: &Job, order: &Order, seen: &mut Seen<'_>, offset: u64, bytes: &[u8]) {
    let nobody = &mut |_: &[u8], _| {};
    // A header is no record.
    let mut header_left = if offset == 0 { job.header_lines } else { 0 };
    let begun = begun_of(order, offset);
    sample_records(
        order,
        bytes,
        &begun,
        bytes.len(),
        |record| match header_left {
            0 => seen.add(record, 0, nobody),
            _ => header_left -= 1,
        },
    );
    seen.pause(0, nobody);
}

/// Bytes that are looked at in all, and in one place at least.
const LOOK_BYTES: usize = 512 << 10;
const PLACE_BYTES_MIN: usize = 32 << 10;
/// So many records are wanted of a place: of those that are cut off at its ends most are long.
const PLACE_RECORDS: f64 = 16.0;

/// What is looked at of files: places all over those that can be entered anywhere, and beginnings of the others, each as long as
/// its part of all bytes allows.
#[derive(Default, PartialEq, Debug)]
struct Parts {
    /// Bytes of a place.
    place_bytes: usize,
    /// A file, and bytes from its beginning.
    beginnings: Vec<(usize, usize)>,
    /// A file, and an aligned offset in it.
    places: Vec<(usize, u64)>,
}

impl Parts {
    /// One at the beginning of each of as many equal stretches of all files as there are places in [`LOOK_BYTES`].
    fn of(job: &Job, order: &Order, sources: &[Source], record_bytes_mean: Option<f64>) -> Self {
        let files = sources.iter().map(|source| {
            let is_file = source.meta.kind == Kind::Regular && source.made.is_none();
            let length = if is_file { source.meta.bytes } else { 0 };
            // Whether quotes are open where one enters is not known.
            let is_entered = matches!(order.format(), Format::Lines | Format::Fixed(_));
            (length, source.codec.is_none() && is_entered)
        });
        let of_records = (PLACE_RECORDS * record_bytes_mean.unwrap_or(0.0)) as usize;
        let place_bytes = match job.map_gathers_bytes {
            0 => of_records.clamp(PLACE_BYTES_MIN, LOOK_BYTES),
            // It is called at the end of each place, and what it makes of few records may say little.
            _ => LOOK_BYTES / 2,
        };
        Self::of_files(&files.collect::<Vec<_>>(), place_bytes.next_power_of_two())
    }

    /// The same, of files by their lengths and whether they can be entered anywhere.
    fn of_files(files: &[(u64, bool)], place_bytes: usize) -> Self {
        let total: u64 = files.iter().map(|&(length, _)| length).sum();
        let stretch = total.div_ceil((LOOK_BYTES / place_bytes) as u64);
        let stretch = stretch.max(place_bytes as u64);
        let mut parts = Self {
            place_bytes,
            ..Self::default()
        };
        let (mut wanted, mut from) = (0, 0);
        for (input, &(length, is_entered)) in files.iter().enumerate() {
            let places = (wanted..from + length).step_by(stretch as usize);
            let count = places.clone().count();
            wanted += count as u64 * stretch;
            // What is looked at all through needs no cuts.
            if is_entered && stretch > place_bytes as u64 {
                let places = places.map(|at| (input, align_down(at - from)));
                parts.places.extend(places);
            } else if count > 0 {
                parts.beginnings.push((input, count * place_bytes));
            }
            from += length;
        }
        parts
    }

    /// What lies there, with its offset, always in the same order, because functions may remember what came before.
    fn read(&self, os: &dyn Os, sources: &[Source]) -> Result<Vec<(u64, Vec<u8>)>> {
        let mut found = Vec::new();
        for &(input, bytes) in &self.beginnings {
            let source = &sources[input];
            // A compressed block may be longer than what is wanted of it.
            let (mut there, _) =
                beginning(os, source, LOOK_BYTES).map_err(|error| unreadable(source, &error))?;
            there.truncate(bytes);
            found.push((0, there));
        }
        let mut there = vec![Vec::new(); self.places.len()];
        if !there.is_empty() {
            let (stop, bytes) = (&Stop::new(), self.place_bytes);
            let reads = Reads {
                os,
                stop,
                bytes,
                jumps: false,
            };
            read_places(&reads, sources, &self.places, |at, bytes| {
                there[at] = bytes.to_vec()
            })?;
        }
        found.extend(self.places.iter().map(|place| place.1).zip(there));
        Ok(found)
    }
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

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::{LOOK_BYTES, PLACE_BYTES_MIN as PLACE, Parts};

    const GB: u64 = 1 << 30;

    #[test]
    fn places_are_all_over_and_packed_files_are_looked_at_in_front() {
        // Of one large file, sixteen, the first in front.
        let parts = Parts::of_files(&[(16 * GB, true)], PLACE);
        let all: Vec<(usize, u64)> = (0..16).map(|at| (0, at * GB)).collect();
        assert_eq!((parts.places, parts.beginnings), (all, vec![]));
        // Of long records fewer and longer ones.
        let parts = Parts::of_files(&[(16 * GB, true)], 256 << 10);
        assert_eq!(parts.places, vec![(0, 0), (0, 8 * GB)]);
        // A compressed one has as many in one.
        let parts = Parts::of_files(&[(16 * GB, false)], PLACE);
        let front = vec![(0, LOOK_BYTES)];
        assert_eq!((parts.places, parts.beginnings), (vec![], front));
        // Of several each has its part, and the smallest may have none.
        let files = [8 * GB, 4 * GB, GB / 2, GB / 2, 3 * GB];
        let files: Vec<(u64, bool)> = files.map(|bytes| (bytes, bytes != 4 * GB)).into();
        let parts = Parts::of_files(&files, PLACE);
        let of = |input| parts.places.iter().filter(|place| place.0 == input).count();
        assert_eq!([0, 1, 2, 3, 4].map(of), [8, 0, 1, 0, 3]);
        assert_eq!(parts.beginnings, vec![(1, 4 * PLACE)]);
        assert!(parts.places.iter().all(|&(input, at)| at < files[input].0));
        // Small files are seen whole, and empty ones not at all.
        let files = [(0, true), (10, true), (0, false), (40_000, true)];
        let parts = Parts::of_files(&files, PLACE);
        assert_eq!(
            (parts.places, parts.beginnings),
            (vec![], vec![(1, PLACE), (3, PLACE)])
        );
        assert_eq!(Parts::of_files(&[], PLACE).beginnings, vec![]);
    }
}
