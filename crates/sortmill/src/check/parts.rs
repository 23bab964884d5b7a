//! The parts of an output against its manifest: before it gets its name, and whenever somebody asks.
//!
//! In come a folder and its manifest, out goes what does not agree. The parts are read in their order as if they
//! were one file, a few at a time so that few descriptors are needed, and each is summed up by itself.

use std::io;
use std::path::{Path, PathBuf};

use sortmill_io::sync::Arc;
use sortmill_io::{Access, Kind, Os, Pool};

use super::row::{OfInput, Row};
use super::verify::{came_back_wrong, difference, told_of_output, verified_head_bytes};
use super::{Check, Walk, plan};
use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::manifest::{Manifest, Part};
use crate::metrics::{Meter, Stage};
use crate::progress::{Phase, Progress};
use crate::queue::Stop;
use crate::run::Shared;
use crate::stage::read::Source;
use crate::text;

/// Parts that are open at a time.
const OPEN_COUNT: usize = 16;

/// What was found in a folder of parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckedParts {
    /// How many parts the manifest names.
    pub part_count: u64,
    /// Records, bytes and keyed sum of what was read.
    pub fingerprint: Fingerprint,
    /// The sum modulo 2^128 of the CRC-32 of each record.
    pub checksum: u128,
    /// Whether they lie in an order that was drawn, so that none of them is out of order.
    pub shuffled: bool,
    /// Records with the same key as the one before.
    pub duplicates: u64,
    /// Records with a lesser key than the one before.
    pub unordered: u64,
    /// What is not as the manifest says, in words.
    pub faults: Vec<String>,
}

/// Reads the parts in `folder` once and holds them against its manifest: whether each is there, has the length,
/// the records and the first and last key that the manifest says, whether all are in order, and whether there is
/// a file that looks like another part. A part of another length is told of and not read. `threads` as in [`Check`];
/// `progress` hears how far it is.
///
/// # Errors
/// [`ErrorKind::Input`] without a manifest, or with one that makes no sense; the system's. What is not as the
/// manifest says is no error.
pub fn check_parts(
    folder: &Path,
    threads: Option<usize>,
    progress: Option<&Progress>,
    os: &dyn Os,
    stop: &Stop,
) -> Result<CheckedParts> {
    let manifest = Manifest::read(os, folder)?;
    if let (true, Err(error)) = (manifest.made, manifest.order()) {
        return Err(error.at(folder));
    }
    let check = Check {
        keys: manifest.keys.clone(),
        line_order: manifest.line_order.clone(),
        columns: manifest.columns.clone(),
        unique: manifest.unique,
        threads,
        ..Check::new(Vec::new(), manifest.format)
    };
    let mut plan = plan(&check, os)?;
    if manifest.shuffled {
        plan.order = manifest.order()?;
    }
    let pool = Pool::new(plan.chunk_count, plan.chunk_buffer_bytes())
        .map_err(|error| Error::new(ErrorKind::Memory, "mapping buffers", error.to_string()))?;
    stop.on_stop({
        let pool = pool.clone();
        move || pool.close()
    });
    if let Some(progress) = progress {
        let bytes = |part: &Part| part.fingerprint.bytes;
        let all = manifest.parts.iter().map(bytes).sum();
        progress.expect(Phase::Check, Some(all), Some(0));
        progress.enter(Phase::Check, os);
    }
    let mut faults = Vec::new();
    let mut row = Row::default();
    for parts in manifest.parts.chunks(OPEN_COUNT) {
        let mut sound = Vec::new();
        let mut sources = Vec::new();
        for part in parts {
            match open(os, folder, part)? {
                Ok(source) => {
                    sound.push(part);
                    sources.push(source);
                }
                Err(fault) => faults.push(format!("{}: {fault}", part.name)),
            }
        }
        row.inputs = Some(vec![OfInput::default(); sources.len()]);
        row.first_unordered = None;
        row = Walk {
            os,
            stop,
            plan: &plan,
            sources: &sources,
            pool: &pool,
            fingerprint_key: manifest.fingerprint_key,
            checksum: true,
            first_only: false,
            as_of_start: false,
            told: &Error::without_hint,
            head_bytes: None,
            header_lines: 0,
            header: None,
        }
        .run(row, &mut Meter::start(os, &[Stage::Read]).telling(progress))?;
        for (part, own) in sound.iter().zip(row.inputs.iter().flatten()) {
            faults.extend(differs(part, own).map(|fault| format!("{}: {fault}", part.name)));
        }
        if let Some(found) = row.first_unordered {
            let name = &sound[found.input].name;
            faults.push(format!("{name}: out of order at byte {}", found.offset));
        }
    }
    faults.extend(misplaced(&manifest));
    let names = os
        .list_dir(folder)
        .map_err(|error| Error::io("listing the parts", folder, &error))?;
    let mut extra: Vec<String> = names
        .into_iter()
        .filter_map(|name| name.into_string().ok())
        .filter(|name| manifest.name.number(name).is_some() && !manifest.names(name))
        .collect();
    extra.sort();
    faults.extend(
        extra
            .iter()
            .map(|name| format!("{name}: the manifest knows of no such part")),
    );
    if let Some(progress) = progress {
        progress.enter(Phase::Done, os);
    }
    Ok(CheckedParts {
        part_count: manifest.parts.len() as u64,
        fingerprint: row.fingerprint,
        checksum: row.checksum,
        shuffled: manifest.shuffled,
        // To an order that knows no keys all records are the same.
        duplicates: if manifest.shuffled { 0 } else { row.duplicates },
        unordered: row.unordered,
        faults,
    })
}

/// Opens a part that is there and has the length it should have; else says what is wrong with it.
fn open(os: &dyn Os, folder: &Path, part: &Part) -> Result<std::result::Result<Source, String>> {
    let path = folder.join(&part.name);
    let failed = |error: io::Error| Error::io("reading the input", &path, &error);
    let file = match os.open(&path, Access::Direct) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Err("it is missing".into()));
        }
        opened => opened.map_err(failed)?,
    };
    let meta = os.meta(&file).map_err(failed)?;
    if meta.kind != Kind::Regular {
        return Ok(Err("it is no file".into()));
    }
    let (have, want) = (meta.bytes, part.fingerprint.bytes);
    if have != want {
        let (have, want) = (text::count(have), text::count(want));
        return Ok(Err(format!("it has {have} bytes and should have {want}")));
    }
    Ok(Ok(Source {
        begins_anew: false,
        file: Arc::new(file),
        meta,
        codec: None,
        ahead: Vec::new(),
        made: None,
    }))
}

/// In what a part is not as its manifest says.
fn differs(part: &Part, own: &OfInput) -> Option<String> {
    if own.fingerprint != part.fingerprint {
        return Some(difference(&part.fingerprint, &own.fingerprint));
    }
    let same = own.first_key == part.first_key && own.last_key == part.last_key;
    (!same).then(|| "its first or last key is not that of the manifest".to_owned())
}

/// The parts whose records would not come to them by the keys from which on the manifest says that they would.
fn misplaced(manifest: &Manifest) -> Vec<String> {
    let mut faults = Vec::new();
    // Drawn orders know of no keys.
    let parts = if manifest.shuffled {
        &[][..]
    } else {
        &manifest.parts
    };
    let mut last_key: Option<&Vec<u8>> = None;
    for part in parts {
        if let (Some(from), Some(first)) = (&part.from_key, &part.first_key)
            && (from > first || last_key.is_some_and(|last| last > from))
        {
            let fault = "the key that it begins from is greater than its first key, or less than the last key of the part before";
            faults.push(format!("{}: {fault}", part.name));
        }
        last_key = part.last_key.as_ref().or(last_key);
    }
    faults
}

/// Reads parts that were just written and synced to `folder` again, and holds them against the manifest they are
/// to get. They are told under the name of `target`, the folder that they are for. Answers the processor time that it took.
///
/// # Errors
/// As [`super::verify`].
pub fn verify_parts(
    shared: &Shared<'_>,
    folder: &Path,
    target: &Path,
    manifest: &Manifest,
) -> Result<u64> {
    let Shared { os, plan, stop, .. } = *shared;
    let before = os.usage();
    let mut row = Row::default();
    let _begun = shared.begun("verify");
    let mut meter = shared.meter("verify", &[Stage::Read], os.now_ns());
    for parts in manifest.parts.chunks(OPEN_COUNT) {
        let name = |at: usize| -> PathBuf { target.join(&parts[at].name) };
        let mut sources = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let source = open(os, folder, part).map_err(|error| error.at(&name(at)))?;
            sources.push(source.map_err(|fault| came_back_wrong(&fault, &name(at)))?);
        }
        row.inputs = Some(vec![OfInput::default(); parts.len()]);
        row = Walk {
            os,
            stop,
            plan,
            sources: &sources,
            pool: &shared.chunk_pool,
            fingerprint_key: shared.number,
            checksum: false,
            first_only: false,
            as_of_start: false,
            told: &|error| told_of_output(error, target),
            head_bytes: verified_head_bytes(plan),
            header_lines: 0,
            header: None,
        }
        .run(row, &mut meter)?;
        for (at, own) in row.inputs.iter().flatten().enumerate() {
            if let Some(fault) = differs(&parts[at], own) {
                return Err(came_back_wrong(&fault, &name(at)));
            }
        }
        if let Some(found) = row.first_unordered {
            let what = "a record sorts before the one before it";
            return Err(came_back_wrong(what, &name(found.input)).offset(found.offset));
        }
    }
    drop(meter.finish(Stage::Read));
    Ok(os.usage().cpu_ns - before.cpu_ns)
}
