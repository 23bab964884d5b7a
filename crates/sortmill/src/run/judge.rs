//! Names the ends of a job, has its phases judged, and measures what the device that bound one does alone.

use sortmill_io::Os;
use sortmill_io::os::{Kind, Usage};

use super::room::{device, disk};
use super::{Shared, Where, probe};
use crate::progress;
use crate::report::Phase;
use crate::stage::read::Source;
use crate::stage::write::Target;
use crate::temps::Temps;
use crate::verdict::{self, Commit, End, Ends, Verdict};

/// Jobs that take at least so long are probed unless told otherwise: the probe adds less than 4 %.
const PROBED_NS_MIN: u64 = 60_000_000_000;

/// What is judged, once the output is committed and before the temporary file is removed.
pub struct Done<'a> {
    pub shared: &'a Shared<'a>,
    pub sources: &'a [Source],
    pub output: &'a Where,
    pub target: &'a Target,
    pub phases: &'a [Phase],
    pub output_bytes: u64,
    pub wall_ns: u64,
    pub sample_ns: u64,
    pub commit: Commit,
}

/// What was found, and what finding it cost, which is not the job's.
#[derive(Default)]
pub struct Judged {
    pub verdicts: Vec<Verdict>,
    pub probe_ns: u64,
    pub probe_usage: Usage,
}

pub fn judge(done: &Done<'_>) -> Judged {
    let os = done.shared.os;
    let too_short = |ns: u64| ns < verdict::JUDGED_NS_MIN;
    if too_short(done.commit.all_ns()) && done.phases.iter().all(|phase| too_short(phase.wall_ns)) {
        return Judged::default();
    }
    let ends = ends(done);
    let mut verdicts = verdict::judge(done.phases, &ends, done.sample_ns);
    verdicts.extend(verdict::judge_commit(
        done.commit,
        done.output_bytes,
        &ends.output,
    ));
    if !is_probed(done.shared, done.wall_ns) {
        return Judged {
            verdicts,
            ..Judged::default()
        };
    }
    super::expected::enter(done.shared.job, progress::Phase::Probe, os);
    let (began_ns, before) = (os.now_ns(), os.usage());
    let _begun = done.shared.begun("probe");
    probe::probe(done, &mut verdicts);
    let after = os.usage();
    Judged {
        verdicts,
        probe_ns: os.now_ns() - began_ns,
        probe_usage: Usage {
            cpu_ns: after.cpu_ns - before.cpu_ns,
            kernel_ns: after.kernel_ns - before.kernel_ns,
            read_bytes: after.read_bytes - before.read_bytes,
            write_bytes: after.write_bytes - before.write_bytes,
            resident_bytes_peak: after.resident_bytes_peak,
        },
    }
}

/// Whether a job that has taken `wall_ns` so far will be probed: then its temporary file is still needed.
pub fn is_probed(shared: &Shared<'_>, wall_ns: u64) -> bool {
    shared.job.probe.unwrap_or(wall_ns >= PROBED_NS_MIN)
}

fn ends(done: &Done<'_>) -> Ends {
    let os = done.shared.os;
    Ends {
        input: input(os, done.sources),
        temp: temp(os, done.shared.temps),
        output: output(os, done),
        core_count: os.machine().cores as u64,
    }
}

fn temp(os: &dyn Os, temps: &Temps<'_>) -> End {
    let names: Vec<String> = temps
        .bases()
        .map(|base| base.display().to_string())
        .collect();
    let mut devices = temps.bases().map(|base| Some(disk(os, device(os, base)?)));
    let first = devices.next().flatten();
    End {
        name: names.join(" and "),
        is_stream: false,
        device: first.filter(|_| devices.all(|other| other == first)),
    }
}

fn input(os: &dyn Os, sources: &[Source]) -> End {
    // What a job reads as a stream may be a file all the same: one that was redirected, or the kernel's own.
    let metas: Vec<_> = sources
        .iter()
        .filter_map(|source| os.meta(&source.file).ok())
        .collect();
    let is_stream = metas.iter().any(|meta| meta.kind == Kind::Stream);
    let mut devices: Vec<u64> = metas.iter().map(|meta| meta.identity.0).collect();
    devices.sort_unstable();
    devices.dedup();
    let mut disks = devices.into_iter().map(|device| disk(os, device));
    let first_disk = disks.next();
    let one_disk = disks.all(|other| Some(other) == first_disk);
    // Of a stream it is said who feeds it.
    let named = |source: &&Source| {
        let meta = os.meta(&source.file);
        !is_stream || meta.is_ok_and(|meta| meta.kind == Kind::Stream)
    };
    let first = sources
        .iter()
        .find(named)
        .map_or_else(String::new, |source| {
            stream_name(&source.file.path, "input")
        });
    End {
        name: match sources.len() {
            0 | 1 => first,
            count => format!("{first} and {} more", count - 1),
        },
        is_stream,
        device: first_disk.filter(|_| one_disk && !is_stream),
    }
}

fn output(os: &dyn Os, done: &Done<'_>) -> End {
    let (name, meta) = match (done.output, done.target) {
        (Where::Parts(folder), _) => {
            let name = folder.path.display().to_string();
            (name, os.meta_at(&folder.path).ok())
        }
        (Where::NewFile(new_file), Target::File(file, _)) => {
            (new_file.path.display().to_string(), os.meta(file).ok())
        }
        (_, Target::File(file, _) | Target::Stream(file)) => {
            (stream_name(&file.path, "output"), os.meta(file).ok())
        }
        (_, Target::Parts(_)) => unreachable!("parts are written to a folder"),
    };
    End {
        name,
        is_stream: meta.as_ref().is_some_and(|meta| meta.kind == Kind::Stream),
        device: meta.map(|meta| disk(os, meta.identity.0)),
    }
}

fn stream_name(path: &std::path::Path, which: &str) -> String {
    match path.as_os_str() == "-" {
        true => format!("standard {which}"),
        false => path.display().to_string(),
    }
}
