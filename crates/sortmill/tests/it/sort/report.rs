//! Whether a report adds up.

use sortmill::metrics::{Stage, StageMetrics};
use sortmill::plan::During;
use sortmill::report::{HolderPeak, Phase, Report};

use super::inputs::Random;
use super::{Case, Machine};

/// What must hold for every job that ended well.
pub fn check(case: &Case, report: &Report, output: &[u8], record_count: u64) {
    let prints = &report.fingerprints;
    let mut out = prints.gathered;
    out.merge(&prints.dropped);
    assert_eq!(prints.distributed, out);
    let keeps = case.yields.keeps_records() && !report.plan.order.is_unique();
    assert!(prints.dropped.records == 0 || !keeps);
    if case.yields.is_counted() {
        assert_eq!(prints.written.records, record_count);
    } else if case.early {
        assert_eq!(prints.distributed, prints.gathered);
    } else if case.map.is_none() && case.reduce.is_none() {
        assert_eq!(prints.input, out);
        assert_eq!(prints.gathered, prints.written);
        assert_eq!(prints.written.records, record_count);
    }
    if case.compress.is_none() {
        assert_eq!(prints.written.bytes, output.len() as u64);
    }

    let bytes = &report.bytes;
    let input: usize = case.inputs.iter().map(Vec::len).sum();
    assert_eq!(bytes.input, input as u64);
    assert_eq!(bytes.output, output.len() as u64);
    let stored = (0..case.inputs.len()).map(|number| case.stored(number).len());
    assert_eq!(bytes.input_stored, stored.sum::<usize>() as u64);
    assert!(bytes.input_read >= bytes.input_stored);
    assert!(bytes.output_written >= bytes.output);
    match &report.order {
        None => {
            assert!(bytes.input_read <= bytes.input_stored + 4095 * case.inputs.len() as u64);
            assert!(bytes.output_written <= bytes.output + 4095);
        }
        Some(order) => {
            let again = order.again_bytes + 2 * 4096;
            assert!(
                bytes.output_written <= bytes.output + 4095 + again,
                "{report:?}"
            );
            assert!(!order.is_one_pass || order.late_bytes == 0);
            // Copying reads and writes a little further than order goes.
            let copied = report.phases[0].name == "copy" && order.copied_bytes < bytes.output;
            let again = order.again_read_bytes + order.again_bytes;
            assert!(
                order.late_bytes > 0 || copied || again <= 4095,
                "{report:?}"
            );
        }
    }
    let runs = report.merged.map_or(0, |merged| merged.runs);
    assert_eq!(report.merged.is_some(), case.merge.is_some());
    assert_eq!(
        bytes.merge_extra > 0,
        report.partitions.merged > 0 || runs > 0
    );
    let plain_written = bytes.temp_written > 0;
    let moved = report.partitions.evicted + report.partitions.merged + runs > 0;
    let has_long = report.partitions.long_records > 0;
    assert!(plain_written >= moved, "{report:?}");
    assert!(!plain_written || moved || has_long, "{report:?}");
    let in_folders: u64 = report.temp_folders.iter().map(|folder| folder.bytes).sum();
    match report.temp_folders.len() {
        0 => assert!(report.plan.shared_bytes.is_some()),
        count => assert_eq!((count, in_folders), (case.temp_count, bytes.temp_written)),
    }
    let packs = report.plan.temp_packing.is_some();
    assert_eq!(report.temp_packed.is_some(), packs);
    if let Some(packed) = report.temp_packed {
        let packed = packed.spilled;
        assert!(packed.packed_blocks <= packed.blocks, "{packed:?}");
        assert!(packed.stored_bytes <= packed.plain_bytes, "{packed:?}");
        let is_less = packed.stored_bytes < packed.plain_bytes;
        assert_eq!(is_less, packed.packed_blocks > 0, "{packed:?}");
        if report.partitions.merged == 0 {
            let all = packed.stored_bytes + bytes.moved;
            assert_eq!(all, bytes.temp_written, "{packed:?}");
        }
    }
    let is_all_read = case.yields.first().is_none();
    if report.partitions.divided == 0 && report.partitions.merged == 0 && is_all_read {
        // Long keys that begin alike are read once more to be compared.
        let again = bytes.temp_read.saturating_sub(bytes.temp_written);
        assert!(
            bytes.temp_read >= bytes.temp_written && (again == 0 || has_long),
            "what was spilled was loaded: {bytes:?}"
        );
    }

    let stages = report.phases.iter().flat_map(|phase| &phase.stages);
    let relocated: Vec<&StageMetrics> = stages
        .filter(|stage| stage.stage == Stage::Relocate)
        .map(|stage| &stage.metrics)
        .collect();
    assert_eq!(relocated.is_empty(), bytes.moved == 0);
    for moved in relocated {
        assert_eq!(
            (moved.bytes_in, moved.bytes_out),
            (bytes.moved, bytes.moved)
        );
        assert!(
            moved.worker_count == 1 && moved.wait_device_ns > 0,
            "{moved:?}"
        );
    }

    let memory = &report.memory;
    assert_eq!(memory.limit_bytes, case.memory_bytes);
    for phase in [During::Distribute, During::Sort] {
        let is_then = |holder: &&HolderPeak| holder.during.is_none_or(|during| during == phase);
        let then = memory.holders.iter().filter(is_then);
        let held: u64 = then.map(|holder| holder.limit_bytes).sum();
        assert!(held <= memory.limit_bytes, "{phase:?}");
    }
    for holder in &memory.holders {
        assert!(holder.peak_bytes <= holder.limit_bytes, "{holder:?}");
    }
    let partitions = &report.partitions;
    assert!(partitions.bytes_min <= partitions.bytes_median);
    assert!(partitions.bytes_median <= partitions.bytes_max);
    assert!(partitions.divided + report.plan.partition_count as u64 >= partitions.count);

    let text = report.to_json();
    let again: Report = serde_json::from_str(&text).unwrap();
    assert_eq!(again.to_json(), text, "a report survives its file");
    assert_eq!(again.plan, report.plan, "a plan survives serialisation");
}

/// By how much the times of a phase's stages, over all workers, differ from the phase's own.
fn off_by(phase: &Phase) -> f64 {
    let worker_count: u64 = match phase.name.as_str() {
        "distribute" => workers(phase, &["read", "cut", "spill"]),
        _ => workers(phase, &["load", "sort", "write"]),
    };
    let sum: u64 = phase
        .stages
        .iter()
        .map(|stage| stage.metrics.all_ns())
        .sum();
    let wall = worker_count * phase.wall_ns;
    sum as f64 / wall as f64 - 1.0
}

fn workers(phase: &Phase, first_stages: &[&str]) -> u64 {
    phase
        .stages
        .iter()
        .filter(|stage| {
            first_stages.contains(&format!("{:?}", stage.stage).to_lowercase().as_str())
        })
        .map(|stage| stage.metrics.worker_count)
        .sum()
}

#[test]
fn the_times_of_the_stages_are_the_time_of_the_phase() {
    let mut random = Random::new(7);
    let input = random.bytes(100_000_000);
    for machine in [Machine::Uring, Machine::Posix] {
        let case = Case {
            memory_bytes: 48 << 20,
            tuning: sortmill::job::Tuning::default(),
            ..Case::fixed(
                100,
                &[sortmill::order::KeyPart::plain(0, 10)],
                vec![input.clone()],
            )
        };
        // A thread that gets no processor just before the phase begins or just after it ends is no worker's time: on a
        // machine that others use, some run goes without that.
        let mut tries = 0;
        let report = loop {
            let report = case.check(machine, "times");
            let off: Vec<f64> = report.phases.iter().map(off_by).collect();
            println!("{machine:?}: off by {off:.4?}");
            assert!(off.iter().all(|&off| off < 0.03), "{:#?}", report.phases);
            if off.iter().all(|&off| off > -0.03) {
                break report;
            }
            tries += 1;
            assert!(tries < 10, "{:#?}", report.phases);
        };
        assert!(report.partitions.evicted > 0);
        let sum: u64 = report.phases.iter().map(|phase| phase.wall_ns).sum();
        assert!(sum + report.commit_ns <= report.wall_ns);
    }
}
