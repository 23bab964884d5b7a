//! The way of a record, joined: the only module that names two stages.
//!
//! *read, cut, map, partition, spill* in [`distribute`]; *load, sort, merge, reduce, write* in
//! [`sorting`]; inputs that are sorted already take one step, [`merge_inputs`]. All threads are joined before [`sort`]
//! returns; the first error wins.

mod ahead;
mod border;
mod columns;
mod compress;
mod distribute;
mod ends;
mod exchange;
mod expected;
mod first;
mod gather;
mod guess;
mod head;
mod joined;
mod judge;
mod lay_out;
mod local;
mod long;
mod made_parts;
mod merge_inputs;
mod merging;
mod needed;
mod node;
mod notice;
mod one_unit;
mod ordered;
mod origins;
mod parts;
mod pass;
mod probe;
mod proof;
mod relocate;
mod room;
mod sampling;
mod seen;
mod small;
mod sorting;
mod tail;
mod top;
mod until;
mod way;

pub use columns::{look_up_columns, look_up_names};
pub use head::{Look, first_records};
pub use node::node;
pub use small::{Small, sort_small};

use std::path::{Path, PathBuf};

use sortmill_io::os::Access;
use sortmill_io::sync::Arc;
use sortmill_io::sync::atomic::{AtomicUsize, Ordering};
use sortmill_io::{Os, Pool};

use crate::best::Bar;
use crate::chunks::Extent;
use crate::commit::{NewFolder, Target as NewFile, Uncommitted, UncommittedFolder};
use crate::error::{Error, ErrorKind, Result};
use crate::job::{Boundaries, Input, Job, Output};
use crate::manifest::{Manifest, Part};
use crate::metrics::{Meter, Stage};
use crate::packing::Packers;
use crate::partitions::Counts;
use crate::parts::{Even, PartCut, Parts};
use crate::passing::Passing;
use crate::plan::{Inputs, Plan};
use crate::queue::Stop;
use crate::report::{Bytes, Fingerprints, Grown, PartSizes, Report, TempPacked};
use crate::run::judge::Judged;
use crate::run::made_parts::MadeCut;
use crate::run::needed::Needed;
use crate::run::proof::{check_expected, check_input, compare};
use crate::run::sorting::Sorted;
use crate::space::Regions;
use crate::spread::TempFolder;
use crate::stage::read::{Source, devices};
use crate::stage::write::{PartFiles, Target};
use crate::temp::{Unfinished, clean_up};
use crate::temps::Temps;
use crate::trace::Begun;
use crate::verdict::Commit;
use crate::yields;
use crate::{bad, check, cluster, progress};

/// What is known once the inputs have been opened and nothing has been written.
pub struct Prepared {
    /// The plan.
    pub plan: Plan,
    /// The folders temporary files would go to.
    pub temps: Vec<TempFolder>,
    sources: Vec<Source>,
    output: Where,
    /// The keys at which the parts of an earlier output are cut, if the job asks for those.
    cut_keys: Option<CutKeys>,
}

impl Prepared {
    /// Refuses a job for which there is too little room on the disks now. The job itself looks again, once what killed
    /// jobs left behind is gone.
    ///
    /// # Errors
    /// [`ErrorKind::Space`] with the number that is missing.
    pub fn check_space(&self, os: &dyn Os) -> Result<()> {
        let checked = room::check_space(os, &self.plan, &self.temps, self.output.folder());
        checked.map_err(|error| Needed::of(&self.plan).explain(error, os))
    }
}

/// Keys at which parts are cut; `None` where nothing goes beyond.
pub type CutKeys = Vec<Option<Vec<u8>>>;

/// What the output's name leads to.
enum Where {
    /// A file, to be made anew.
    NewFile(NewFile),
    /// A folder of parts, to be made anew.
    Parts(Box<NewFolder>),
    /// A pipe or device, written in place.
    InPlace(PathBuf),
    /// Standard output.
    Stdout,
    /// The job ends before it writes.
    Nowhere,
}

/// Opens the inputs of a job.
///
/// # Errors
/// The first that cannot be read.
pub fn open(job: &Job, os: &dyn Os) -> Result<Vec<Source>> {
    match job.merge {
        Some(_) => Source::open_all_merged(os, &job.inputs, job.decompress),
        None => open_inputs(os, &job.inputs, job.decompress),
    }
}

/// Plans the job whose inputs have been opened by [`open`], and whose columns have been looked up by
/// [`look_up_columns`].
///
/// # Errors
/// Inputs that cannot be read, a key that does not suit, too little memory.
pub fn prepare_opened(job: &Job, sources: Vec<Source>, os: &dyn Os) -> Result<Prepared> {
    until::check_stage(job)?;
    columns::check(job)?;
    job.check_functions()?;
    pass::check(job)?;
    yields::check(job)?;
    cluster::check(job)?;
    if job.merge.is_some() {
        merge_inputs::check(job, &sources)?;
    }
    let mut output = find_output(job, os)?;
    compress::check(job, &output)?;
    check_header(job)?;
    if job.on.is_some() {
        local::check_files(&sources, &output)?;
    }
    let record_bytes_mean = guess::mean_record_bytes(job, os, &sources)?;
    let inputs = Inputs {
        extents: extents(&sources),
        record_bytes_mean,
        mapped: guess::mapped(job, os, &sources, record_bytes_mean)?,
        device_count: devices(&sources).len(),
        packed: guess::packed_inputs(os, &sources)?,
        ahead_bytes: sources.iter().map(|source| source.ahead.len() as u64).sum(),
    };
    let mut plan = Plan::new(job, &inputs, &os.machine())?;
    let cut_keys = earlier_cut_keys(job, os, &plan)?;
    if let Output::Parts(parts) = &job.output {
        plan.part_count = Some(foresee_parts(job, parts, &plan, cut_keys.as_ref())?);
    }
    plan.verify =
        job.verify.unwrap_or(false) || (job.verify.is_none() && names_input(os, &output, &sources));
    if job.reduce_makes_bytes.is_some() && plan.verify {
        let cause = "what is made of an input cannot be looked through again before it takes its place, so it needs a name of its own";
        return Err(Error::new(ErrorKind::Usage, "verifying the output", cause));
    }
    let temps = room::temp_paths(job, os, output.folder());
    if job.until.is_some() {
        output = Where::Nowhere;
    }
    if !matches!(output, Where::NewFile(_) | Where::Parts(_)) {
        plan.verify = false;
    }
    if room::can_lie_in_output(job, os, &output, &temps) {
        plan.lie_in_output();
    }
    let temps = room::temp_folders(job, os, &plan, (&sources, output.folder()), temps)?;
    let writes_file = matches!(output, Where::NewFile(_));
    plan.looks_for_order = notice::may_find(job, &plan, &sources, writes_file);
    Ok(Prepared {
        plan,
        temps,
        sources,
        output,
        cut_keys,
    })
}

/// Refuses headers where there are none.
fn check_header(job: &Job) -> Result<()> {
    let cause = match (job.header_lines, &job.output, &job.on) {
        (0, _, _) => return Ok(()),
        _ if job.reduce_makes_bytes.is_some() => return Ok(()),
        _ if !job.format.has_delimiter() => "records of this format have no lines in front of them",
        (_, Output::Parts(_), _) => "in which of several parts they should stay is not settled yet",
        (_, _, Some(_)) => "--on does not know of them yet",
        _ => return Ok(()),
    };
    Err(Error::new(
        ErrorKind::Usage,
        "keeping the header lines",
        cause,
    ))
}

/// Reads the manifest that the job wants its boundaries from.
fn earlier_cut_keys(job: &Job, os: &dyn Os, plan: &Plan) -> Result<Option<CutKeys>> {
    let Boundaries::Manifest(path) = &job.boundaries else {
        return Ok(None);
    };
    let manifest = Manifest::read_file(os, path)?;
    if manifest.order()? == plan.order {
        return Ok(Some(manifest.cut_keys()));
    }
    let cause = "it is of records with another format or key, whose boundaries mean nothing here";
    Err(Error::new(ErrorKind::Usage, "reading the boundaries", cause).at(path))
}

/// How many parts there will be, as far as that is known; refuses what cannot be cut.
fn foresee_parts(job: &Job, parts: &Parts, plan: &Plan, cut_keys: Option<&CutKeys>) -> Result<u64> {
    let refuse = |cause: &str| {
        let cause = cause.to_owned();
        Err(Error::new(ErrorKind::Usage, "cutting the output", cause))
    };
    if job.reduce.is_some() {
        return match made_parts(job, 0)? {
            Some(cut) => Ok(cut.count()),
            None => {
                refuse("what a reduce function makes goes to one file, or, as bytes, to so many")
            }
        };
    }
    if job.is_unique() && parts.cut != PartCut::Partitions && job.boundaries != Boundaries::Uniform
    {
        return refuse(
            "where repeats are dropped nobody knows before how much comes out, so parts have no size; \
             cut them at partitions or at keys",
        );
    }
    match (&job.boundaries, parts.cut) {
        (Boundaries::Manifest(_), PartCut::Bytes(_) | PartCut::Count(_)) => {
            return refuse(
                "a manifest says itself how many parts there are, and where they are cut",
            );
        }
        (Boundaries::Uniform, PartCut::Bytes(_)) => {
            return refuse(
                "uniform boundaries are about keys, so parts have no size; say how many",
            );
        }
        _ => {}
    }
    let count = parts.cut.count(plan.input_bytes.unwrap_or(0))?;
    Ok(match cut_keys {
        Some(keys) => keys.len() as u64 + 1,
        None => count.unwrap_or(plan.partition_count as u64),
    })
}

/// The files that what a reduce function makes of `records` records goes into, if these are several.
fn made_parts(job: &Job, records: u64) -> Result<Option<MadeCut>> {
    let (Output::Parts(parts), Some(_), None) = (&job.output, &job.reduce_makes_bytes, job.until)
    else {
        return Ok(None);
    };
    let PartCut::Count(_) = parts.cut else {
        return Ok(None);
    };
    let count = parts.cut.count(0)?;
    Ok(count.map(|count| match job.reduce_tells_part {
        true => MadeCut::Told(count),
        false => MadeCut::Even(Even { count, records }),
    }))
}

/// The folders that a job would write to.
pub struct Folders {
    /// For temporary files.
    pub temps: Vec<PathBuf>,
    /// For the output; `None` if it is written in place.
    pub output: Option<PathBuf>,
}

/// Finds the folders that a job would write to. Its inputs are not looked at.
///
/// # Errors
/// An output that cannot be one.
pub fn folders(job: &Job, os: &dyn Os) -> Result<Folders> {
    let output = find_output(job, os)?;
    Ok(Folders {
        temps: room::temp_paths(job, os, output.folder()),
        output: output.folder().map(Path::to_owned),
    })
}

impl Where {
    fn folder(&self) -> Option<&Path> {
        match self {
            Self::NewFile(new_file) => Some(new_file.folder()),
            Self::Parts(folder) => Some(folder.beside()),
            Self::InPlace(_) | Self::Stdout | Self::Nowhere => None,
        }
    }
}

fn find_output(job: &Job, os: &dyn Os) -> Result<Where> {
    let path = match &job.output {
        Output::Stdout => return Ok(Where::Stdout),
        Output::Parts(parts) => {
            return Ok(Where::Parts(Box::new(NewFolder::find(os, parts)?)));
        }
        Output::Path(path) => path,
    };
    Ok(match NewFile::find(os, path)? {
        Some(new_file) => Where::NewFile(new_file),
        None => Where::InPlace(path.clone()),
    })
}

/// Whether the output is also an input: then a fault after the rename would cost the only copy.
fn names_input(os: &dyn Os, output: &Where, sources: &[Source]) -> bool {
    let is_input = |path: &Path| {
        os.meta_at(path).is_ok_and(|meta| {
            sources
                .iter()
                .any(|source| source.meta.identity == meta.identity)
        })
    };
    match output {
        Where::NewFile(new_file) => is_input(&new_file.path),
        Where::Parts(folder) => folder.old_parts().any(|path| is_input(&path)),
        Where::InPlace(_) | Where::Stdout | Where::Nowhere => false,
    }
}

/// Sorts. The report tells what was done.
///
/// # Errors
/// Anything but a proven, complete output. What was at the output's name before is still there.
pub fn sort(job: &Job, os: &dyn Os, stop: &Stop) -> Result<Report> {
    let mut sources = open(job, os)?;
    let found = look_up_columns(job, &mut sources, os, stop)?;
    let job = found.as_ref().unwrap_or(job);
    let prepared = prepare_opened(job, sources, os)?;
    sort_prepared(job, prepared, os, stop)
}

/// Sorts what [`prepare_opened`] planned.
///
/// # Errors
/// As [`sort`].
pub fn sort_prepared(job: &Job, prepared: Prepared, os: &dyn Os, stop: &Stop) -> Result<Report> {
    let mut needed = Needed::of(&prepared.plan);
    let result = match &job.on {
        None => sort_inner(job, prepared, os, stop, &mut needed),
        Some(on) => local::sort(on, job, prepared, os, stop),
    };
    // Whoever noticed the end of the job last must not hide why it ended.
    match result {
        Err(error) => {
            stop.fail(error);
            let error = needed.explain(stop.error(), os);
            if let Some(trace) = &job.trace {
                trace.fail(&error, os);
            }
            Err(error)
        }
        Ok(report) => Ok(report),
    }
}

fn sort_inner(
    job: &Job,
    prepared: Prepared,
    os: &dyn Os,
    stop: &Stop,
    needed: &mut Needed,
) -> Result<Report> {
    let Prepared {
        plan,
        temps: folders,
        sources,
        output,
        cut_keys,
    } = prepared;
    let began_ns = os.now_ns();
    let preparing = Begun::now("prepare", job.trace.as_ref(), os);
    expected::before(job, &plan, os, &sources, &output, &folders);
    let usage_before = os.usage();
    let number = job.number.unwrap_or_else(|| os.random());
    let mut uncommitted = Uncommitted::new(os, number);
    let mut uncommitted_folder = None;
    let unfinished = match &output {
        Where::NewFile(new_file) => Some(Unfinished {
            path: uncommitted.temporary(new_file),
            parts: None,
        }),
        Where::Parts(folder) => {
            let made = uncommitted_folder.insert(UncommittedFolder::new(os, folder, number));
            Some(Unfinished {
                path: made.path.clone(),
                parts: Some(folder.name.clone()),
            })
        }
        Where::InPlace(_) | Where::Stdout | Where::Nowhere => None,
    };
    let paths: Vec<PathBuf> = folders.into_iter().map(|folder| folder.path).collect();
    for path in &paths {
        clean_up(os, path);
    }
    // Looked at again, now that what killed jobs left is gone.
    let folders = room::temp_folders(job, os, &plan, (&sources, output.folder()), paths)?;
    room::check_space(os, &plan, &folders, output.folder())?;
    let temps = Temps::new(os, number, &folders, unfinished.as_ref(), &plan);
    if plan.temp_bytes != Some(0) {
        temps.make()?;
    } else if unfinished.is_some() {
        // Not needed, but should the job be killed, the next one finds its unfinished output by it.
        let _ = temps.make();
    }
    if let Some(folder) = &mut uncommitted_folder {
        folder.make()?;
    }
    let target = open_target(job, &plan, os, stop, (&output, number), &mut uncommitted)?;
    if let (Some(Target::File(file, _)), Some(_)) = (&target, plan.shared_bytes) {
        let input_bytes = plan.input_bytes.expect("the output has a known size");
        let regions = Regions::new(input_bytes, plan.block_bytes);
        temps.lie_in_output(Arc::clone(file), regions);
    }
    let mut shared = Shared::new(job, &plan, os, stop, number, &temps)?;
    shared.cut_keys = cut_keys.as_ref();
    shared.began_ns = began_ns;

    preparing.end();
    expected::first_phase(job, os);
    let mut distributed_bytes = None;
    let way = way::go(&shared, &sources, target.as_ref(), &mut distributed_bytes);
    needed.taken_bytes = temps.given_bytes();
    if let Some(bytes) = distributed_bytes {
        needed.output_bytes = plan.shared_bytes.unwrap_or(bytes);
        needed.is_unread = false;
    }
    let way = way?;
    let (distributed, sorted) = (&way.distributed, &way.sorted);
    stop.check()?;
    check_input(job, &distributed.read, &distributed.input)?;
    check_expected(job, &distributed.input)?;
    let mut dropped = distributed.dropped;
    dropped.merge(&sorted.dropped);
    if job.reaches(Stage::Reduce) {
        let mut out = sorted.gathered;
        out.merge(&dropped);
        compare(&distributed.fingerprint, &out)?;
        if let Some(counter) = &sorted.counter {
            counter.prove(&distributed.input)?;
        }
    } else {
        let Counts { records, bytes, .. } = distributed.counts;
        let early = distributed.dropped;
        let with_dropped = |(records, bytes)| (records + early.records, bytes + early.bytes);
        until::check_counts(
            job,
            &distributed.fingerprint,
            with_dropped((records, bytes)),
            with_dropped(sorted.laid_out()),
        )?;
    }
    let sorted_ns = os.now_ns();
    let committing = shared.begun("commit");
    let (mut took, mut lap_ns) = (Commit::default(), sorted_ns);
    let mut lap = || {
        let before_ns = std::mem::replace(&mut lap_ns, os.now_ns());
        lap_ns - before_ns
    };

    match (&output, &target) {
        (Where::NewFile(new_file), Some(Target::File(file, _))) => {
            expected::enter(job, progress::Phase::Sync, os);
            uncommitted.finish(new_file, file, sorted.stored_bytes())?;
            took.sync_ns = lap();
            if plan.verify {
                expected::verify(job, os, sorted.stored_bytes());
                let breaks = way.merged.map_or(0, |merged| merged.breaks);
                let written = (&sorted.header[..], &sorted.written);
                took.verify_cpu_ns = check::verify(job, &shared, &file.path, written, breaks)?;
                took.verify_ns = lap();
            }
            uncommitted.commit(stop)?;
            took.name_ns = lap();
        }
        (Where::Parts(new_folder), Some(Target::Parts(_))) => {
            expected::enter(job, progress::Phase::Sync, os);
            let folder = uncommitted_folder.expect("it was made");
            took = commit_parts(&shared, new_folder, folder, sorted, lap)?;
        }
        _ => {}
    }
    let committed_ns = os.now_ns();
    let mut phases = way.phases();
    until::keep_reached(job, &mut phases);
    let output_bytes = match job.until {
        None => sorted.stored_bytes(),
        Some(_) => 0,
    };
    let judged = target.as_ref().map_or_else(Judged::default, |target| {
        judge::judge(&judge::Done {
            shared: &shared,
            sources: &sources,
            output: &output,
            target,
            phases: &phases,
            output_bytes,
            wall_ns: committed_ns - began_ns,
            sample_ns: distributed.sample_ns,
            commit: took,
        })
    });
    let temp_folders = match job.reaches(Stage::Spill) {
        true => temps.report(),
        false => Vec::new(),
    };
    temps.remove();
    committing.end();
    expected::enter(job, progress::Phase::Done, os);
    // What the probe took is not the job's.
    let ended_ns = os.now_ns() - judged.probe_ns;
    let usage = os.usage();
    Ok(Report {
        version: 1,
        until: job.until,
        back_end: os.name().to_owned(),
        direct_io: direct_io(&sources, target.as_ref()),
        wall_ns: ended_ns - began_ns,
        cpu_ns: usage.cpu_ns - usage_before.cpu_ns - judged.probe_usage.cpu_ns,
        phases,
        sample_ns: distributed.sample_ns,
        commit_ns: ended_ns - sorted_ns,
        bytes: Bytes {
            input: distributed.read.bytes,
            input_read: distributed.read.device_bytes,
            sample_read: distributed.sample_bytes,
            temp_written: distributed.counts.spilled_bytes
                + sorted.moved_bytes
                + sorted.merge_written_bytes,
            temp_read: sorted.loaded_bytes + sorted.moved_bytes + sorted.merge_read_bytes,
            moved: sorted.moved_bytes,
            merge_extra: sorted.merge_written_bytes + sorted.merge_read_bytes,
            output_written: sorted.written_bytes,
            output: output_bytes,
            header: sorted.header.len() as u64,
            input_stored: distributed.read.stored_bytes(),
            lower_bound: way.lower_bound_bytes(&plan, output_bytes),
            kernel_read: usage.read_bytes - usage_before.read_bytes - judged.probe_usage.read_bytes,
            kernel_written: usage.write_bytes
                - usage_before.write_bytes
                - judged.probe_usage.write_bytes,
        },
        temp_folders,
        temp_packed: TempPacked::of(&plan, distributed.counts.spilled),
        memory: shared.memory(usage.resident_bytes_peak),
        partitions: sorted.partitions(&distributed.counts),
        parts: sorted.parts.as_deref().map(PartSizes::of),
        nodes: Vec::new(),
        fingerprints: Fingerprints {
            input: distributed.input,
            distributed: distributed.fingerprint,
            gathered: sorted.gathered,
            dropped,
            written: sorted.written,
        },
        skipped_records: distributed.read.skipped,
        skipped_first: distributed
            .read
            .skipped_first
            .iter()
            .map(ToString::to_string)
            .collect(),
        grown: Grown::of(job, &sources, os),
        verified: plan.verify,
        plan,
        verdicts: judged.verdicts,
        probe_ns: judged.probe_ns,
        before: None,
        order: way.order,
        merged: way.merged,
    })
}

/// Makes a folder of parts of what was written: names, lengths, the manifest. The parts must add up to the whole.
fn commit_parts(
    shared: &Shared<'_>,
    target: &NewFolder,
    folder: UncommittedFolder<'_>,
    sorted: &Sorted,
    mut lap: impl FnMut() -> u64,
) -> Result<Commit> {
    let mut took = Commit::default();
    let Shared {
        job, stop, number, ..
    } = *shared;
    let mut parts: Vec<Part> = sorted.parts.clone().expect("the output was cut");
    for (number, part) in parts.iter_mut().enumerate() {
        part.name = target.name.of(number as u64);
    }
    let manifest = Manifest::new(job, target.name.clone(), number, parts);
    compare(&sorted.written, &manifest.whole)?;
    let part_bytes: Vec<u64> = manifest
        .parts
        .iter()
        .map(|part| manifest.file_bytes(part))
        .collect();
    folder.finish(&part_bytes, stop)?;
    took.sync_ns = lap();
    if shared.plan.verify {
        expected::verify(job, shared.os, sorted.written.bytes);
        took.verify_cpu_ns = check::verify_parts(shared, &folder.path, &target.path, &manifest)?;
        took.verify_ns = lap();
    }
    folder.commit(&manifest, stop)?;
    took.name_ns = lap();
    Ok(took)
}

/// Opens what is written to: a file under its temporary name, with room for all of it where its size is
/// known, or a stream; nothing for a job that ends before it writes.
fn open_target(
    job: &Job,
    plan: &Plan,
    os: &dyn Os,
    stop: &Stop,
    (output, number): (&Where, u64),
    uncommitted: &mut Uncommitted<'_>,
) -> Result<Option<Target>> {
    let wrong = |path: &Path, error| Error::io("opening the output", path, &error);
    Ok(Some(match output {
        Where::NewFile(new_file) => {
            let known = plan.input_bytes.filter(|_| job.keeps_records());
            let bytes = plan.shared_bytes.or(known).unwrap_or(0);
            let file = uncommitted.create(new_file, bytes)?;
            Target::File(Arc::new(file), plan.chunk_depth)
        }
        Where::Parts(folder) => Target::Parts(PartFiles::new(
            folder.temporary(number),
            folder.name.clone(),
            folder.file_mode(),
            plan.chunk_depth,
        )),
        Where::InPlace(path) => {
            let file = os.open_stream_for_write(path, &|| stop.is_stopped());
            Target::Stream(Arc::new(file.map_err(|error| wrong(path, error))?))
        }
        Where::Stdout => {
            let file = os.stdout().map_err(|error| wrong(Path::new("-"), error))?;
            Target::Stream(Arc::new(file))
        }
        Where::Nowhere => return Ok(None),
    }))
}

/// What both phases work with.
pub struct Shared<'a> {
    pub(crate) job: &'a Job,
    pub(crate) plan: &'a Plan,
    pub(crate) os: &'a dyn Os,
    pub(crate) stop: &'a Stop,
    /// The job's random number: its name, and the key of its fingerprints.
    pub(crate) number: u64,
    /// Chunks while distributing, output while sorting.
    pub(crate) chunk_pool: Pool,
    /// Partitions in memory.
    pub(crate) block_pool: Pool,
    /// Who compresses temporary data, of a job that may do so.
    packers: Option<Packers>,
    /// What lies between mapping and writing, of a job that does nothing else.
    passing: Option<Arc<Passing>>,
    temps: &'a Temps<'a>,
    /// How many bad records may still be left out.
    allowed: bad::Allowed,
    /// What workers know of the first records, where only those come out.
    pub(crate) bar: Bar,
    /// The keys that boundaries are taken from, if the job says so.
    pub(crate) cut_keys: Option<&'a CutKeys>,
    /// When the job began.
    began_ns: u64,
    /// How often its phases are expected to take turns.
    rounds: AtomicUsize,
}

impl<'a> Shared<'a> {
    /// What both phases work with, its memory mapped.
    fn new(
        job: &'a Job,
        plan: &'a Plan,
        os: &'a dyn Os,
        stop: &'a Stop,
        number: u64,
        temps: &'a Temps<'a>,
    ) -> Result<Self> {
        let map = |count, bytes| {
            let pool = mapped(count, bytes)?;
            let closed = pool.clone();
            stop.on_stop(move || closed.close());
            Ok(pool)
        };
        Ok(Self {
            job,
            plan,
            os,
            stop,
            number,
            chunk_pool: map(plan.chunk_count, plan.chunk_buffer_bytes())?,
            block_pool: map(plan.block_count, plan.block_bytes)?,
            packers: plan
                .temp_packing
                .as_ref()
                .map(|packing| Packers::new(packing, plan.block_bytes, job, stop)),
            passing: pass::passing(job, plan, stop),
            temps,
            allowed: bad::Allowed::of(job),
            bar: Bar::default(),
            cut_keys: None,
            began_ns: os.now_ns(),
            rounds: AtomicUsize::new(1),
        })
    }
}

/// `count` buffers of `bytes` each.
fn mapped(count: usize, bytes: usize) -> Result<Pool> {
    Pool::new(count, bytes).map_err(unmapped)
}

/// The error of memory of the plan's that there is not.
#[expect(clippy::needless_pass_by_value, reason = "it is mapped over results")]
fn unmapped(error: std::io::Error) -> Error {
    let doing = "mapping the job's memory";
    Error::new(ErrorKind::Memory, doing, error.to_string())
}

impl Shared<'_> {
    /// Whether the lines of the inputs are counted.
    pub(crate) fn counts_lines(&self) -> bool {
        self.job.map_knows_lines || self.plan.input_order().has_columns()
    }

    /// A meter for the thread `name` of a phase that began at `began_ns`.
    pub(crate) fn meter(&self, name: &str, stages: &[Stage], began_ns: u64) -> Meter<'_> {
        let count = self.plan.thread_count(self.rounds.load(Ordering::SeqCst));
        let trace = self.job.trace.as_ref();
        let track = trace.map(|trace| trace.track(name, count));
        Meter::start_at(self.os, stages, began_ns)
            .drawn_on(track)
            .telling(self.job.progress.as_deref())
    }
}

fn direct_io(sources: &[Source], target: Option<&Target>) -> crate::report::DirectIo {
    let all_input = sources
        .iter()
        .all(|source| source.file.access == Access::Direct);
    let output = match target {
        Some(Target::File(file, _)) => file.access == Access::Direct,
        Some(Target::Parts(files)) => files.is_direct(),
        Some(Target::Stream(_)) | None => false,
    };
    crate::report::DirectIo {
        input: all_input && !sources.is_empty(),
        output,
    }
}

/// The extents of all sources.
fn extents(sources: &[Source]) -> Vec<Extent> {
    sources.iter().map(Source::extent).collect()
}

/// Opens standard input and files as a job's inputs do, for other commands; compressed ones as what they were, if they
/// are to be decompressed.
///
/// # Errors
/// As [`open`]'s.
pub fn open_inputs(os: &dyn Os, inputs: &[Input], decompress: bool) -> Result<Vec<Source>> {
    Source::open_all(os, inputs, decompress)
}
