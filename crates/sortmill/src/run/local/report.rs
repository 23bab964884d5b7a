//! What all nodes of a job did, added up: the proof over all of them, and the one report.

use sortmill_io::Os;
use sortmill_io::os::Usage;

use crate::cluster::message::{Distributed, Done};
use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::job::Job;
use crate::plan::Plan;
use crate::report::{
    Bytes, DirectIo, Fingerprints, HolderPeak, Memory, NodeReport, Partitions, Phase, Report,
    StageReport, TempBytes, TempPacked,
};
use crate::run::proof::{check_input, compare};
use crate::stage::read::{ReadTotals, SKIPPED_TOLD_MAX};

/// What all nodes saw, together.
pub struct Sums {
    read: ReadTotals,
    input: Fingerprint,
    distributed: Fingerprint,
    /// What came out of the sorters, and went to the output.
    pub written: Fingerprint,
}

impl Sums {
    /// Adds up and compares: every byte read was cut, every record cut is on one node, and came out of its sorters.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] if not, [`ErrorKind::Input`] for more bad records than may be left out.
    pub fn of(job: &Job, nodes: &[(Distributed, Done)]) -> Result<Self> {
        let mut sums = Self {
            read: ReadTotals::default(),
            input: Fingerprint::default(),
            distributed: Fingerprint::default(),
            written: Fingerprint::default(),
        };
        for (distributed, done) in nodes {
            distributed.read.add_to(&mut sums.read);
            sums.input.merge(&distributed.input);
            sums.distributed.merge(&distributed.fingerprint);
            sums.written.merge(&done.gathered);
        }
        sums.read.skipped_first.truncate(SKIPPED_TOLD_MAX);
        if sums.read.skipped > job.skip_bad {
            let first = sums.read.skipped_first.get(job.skip_bad as usize).cloned();
            let generic = || {
                let cause = format!("{} bad records were found", sums.read.skipped);
                Error::new(ErrorKind::Input, "reading the input", cause)
            };
            return Err(first.unwrap_or_else(generic));
        }
        check_input(job, &sums.read, &sums.input)?;
        compare(&sums.input, &sums.distributed)?;
        compare(&sums.distributed, &sums.written)?;
        Ok(sums)
    }
}

/// When the coordinator was where.
pub struct Times {
    pub began_ns: u64,
    pub prepared_ns: u64,
    pub sample_ns: u64,
    pub distributed_ns: u64,
    pub sorted_ns: u64,
    /// What had been counted for this process when it began.
    pub usage_before: Usage,
}

/// The report of a job that ends now.
pub fn report(
    os: &dyn Os,
    plan: &Plan,
    times: &Times,
    sums: &Sums,
    nodes: Vec<NodeReport>,
) -> Report {
    let (ended_ns, usage) = (os.now_ns(), os.usage());
    let mut bytes = sum_bytes(&nodes);
    bytes.lower_bound = plan.lower_bound_bytes(bytes.input, bytes.input, bytes.output);
    bytes.kernel_read += usage.read_bytes - times.usage_before.read_bytes;
    bytes.kernel_written += usage.write_bytes - times.usage_before.write_bytes;
    let all_direct = |of: fn(&DirectIo) -> bool| nodes.iter().all(|node| of(&node.direct_io));
    let nodes_cpu_ns: u64 = nodes.iter().map(|node| node.cpu_ns).sum();
    let skipped_first = sums.read.skipped_first.iter().map(ToString::to_string);
    Report {
        version: 1,
        until: None,
        back_end: os.name().to_owned(),
        direct_io: DirectIo {
            input: all_direct(|direct| direct.input),
            output: all_direct(|direct| direct.output),
        },
        wall_ns: ended_ns - times.began_ns,
        cpu_ns: usage.cpu_ns - times.usage_before.cpu_ns + nodes_cpu_ns,
        phases: vec![
            sum_phases(&nodes, 0, times.distributed_ns - times.prepared_ns),
            sum_phases(&nodes, 1, times.sorted_ns - times.distributed_ns),
        ],
        sample_ns: times.sample_ns,
        commit_ns: ended_ns - times.sorted_ns,
        bytes,
        temp_folders: sum_temp_folders(&nodes),
        temp_packed: TempPacked::sum(nodes.iter().filter_map(|node| node.temp_packed)),
        memory: sum_memory(plan, &nodes, usage.resident_bytes_peak),
        partitions: sum_partitions(&nodes),
        parts: None,
        nodes,
        order: None,
        merged: None,
        fingerprints: Fingerprints {
            input: sums.input,
            distributed: sums.distributed,
            gathered: sums.written,
            dropped: Fingerprint::default(),
            written: sums.written,
        },
        skipped_records: sums.read.skipped,
        skipped_first: skipped_first.collect(),
        grown: Vec::new(),
        verified: plan.verify,
        plan: plan.clone(),
        // What a phase of several processes waited for, nobody has worked out yet.
        verdicts: Vec::new(),
        probe_ns: 0,
        before: None,
    }
}

fn sum_bytes(nodes: &[NodeReport]) -> Bytes {
    let sum = |of: fn(&Bytes) -> u64| nodes.iter().map(|node| of(&node.bytes)).sum();
    Bytes {
        input: sum(|bytes| bytes.input),
        header: 0,
        input_stored: sum(|bytes| bytes.input_stored),
        input_read: sum(|bytes| bytes.input_read),
        sample_read: 0,
        temp_written: sum(|bytes| bytes.temp_written),
        temp_read: sum(|bytes| bytes.temp_read),
        merge_extra: sum(|bytes| bytes.merge_extra),
        moved: sum(|bytes| bytes.moved),
        output_written: sum(|bytes| bytes.output_written),
        output: sum(|bytes| bytes.output),
        lower_bound: 0,
        kernel_read: sum(|bytes| bytes.kernel_read),
        kernel_written: sum(|bytes| bytes.kernel_written),
    }
}

/// Phase `index` of all nodes together, which took `wall_ns` until the last had ended it.
fn sum_phases(nodes: &[NodeReport], index: usize, wall_ns: u64) -> Phase {
    let phases = nodes.iter().filter_map(|node| node.phases.get(index));
    let mut sum: Option<Phase> = None;
    for phase in phases {
        let Some(sum) = &mut sum else {
            sum = Some(phase.clone());
            continue;
        };
        sum.cpu_ns += phase.cpu_ns;
        sum.kernel_ns += phase.kernel_ns;
        sum.memory_new_bytes += phase.memory_new_bytes;
        for StageReport { stage, metrics } in &phase.stages {
            match sum.stages.iter_mut().find(|known| known.stage == *stage) {
                Some(known) => known.metrics.merge(metrics),
                None => sum.stages.push(StageReport {
                    stage: *stage,
                    metrics: *metrics,
                }),
            }
        }
    }
    let mut sum = sum.expect("each node has both phases");
    sum.stages.sort_by_key(|one| one.stage);
    sum.wall_ns = wall_ns;
    sum
}

fn sum_memory(plan: &Plan, nodes: &[NodeReport], own_bytes_peak: u64) -> Memory {
    let mut holders: Vec<HolderPeak> = Vec::new();
    for holder in nodes.iter().flat_map(|node| &node.memory.holders) {
        match holders.iter_mut().find(|known| known.name == holder.name) {
            Some(known) => {
                known.limit_bytes += holder.limit_bytes;
                known.peak_bytes += holder.peak_bytes;
            }
            None => holders.push(holder.clone()),
        }
    }
    let peaks = nodes.iter().map(|node| node.memory.resident_bytes_peak);
    Memory {
        limit_bytes: plan.budget.limit_bytes * u64::from(plan.node_count()),
        resident_bytes_peak: own_bytes_peak + peaks.sum::<u64>(),
        holders,
    }
}

/// What all nodes wrote to each folder; every node knows all of them, in one order.
fn sum_temp_folders(nodes: &[NodeReport]) -> Vec<TempBytes> {
    let mut sum: Vec<TempBytes> = Vec::new();
    for one in nodes.iter().flat_map(|node| &node.temp_folders) {
        match sum.iter_mut().find(|known| known.path == one.path) {
            Some(known) => known.bytes += one.bytes,
            None => sum.push(one.clone()),
        }
    }
    sum
}

fn sum_partitions(nodes: &[NodeReport]) -> Partitions {
    let all = || nodes.iter().map(|node| node.partitions);
    let mut sum = Partitions {
        count: all().map(|one| one.count).sum(),
        bytes_min: all().map(|one| one.bytes_min).min().unwrap_or(0),
        bytes_median: 0,
        bytes_max: all().map(|one| one.bytes_max).max().unwrap_or(0),
        evicted: all().map(|one| one.evicted).sum(),
        divided: all().map(|one| one.divided).sum(),
        merged: all().map(|one| one.merged).sum(),
        joined: all().map(|one| one.joined).sum(),
        long_records: all().map(|one| one.long_records).sum(),
    };
    let mut medians: Vec<u64> = all().map(|one| one.bytes_median).collect();
    medians.sort_unstable();
    sum.bytes_median = medians[medians.len() / 2];
    sum
}
