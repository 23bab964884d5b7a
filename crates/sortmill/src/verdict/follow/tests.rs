//! Phases as their threads spent them, and what is said of each.

use super::super::{Ends, judge};
use super::*;
use crate::metrics::Metrics;
use crate::report::{StageReport, Took};

/// Percents of a phase that a thread worked, waited for input, output, memory and a device, and was done.
type Shares = [u64; 6];

const GB: u64 = 1_000_000_000;

/// One more thread of a phase.
fn add_stage(phase: &mut Phase, stage: Stage, shares: Shares) {
    add_stages(phase, stage, 1, shares);
}

/// So many more threads of a phase.
fn add_stages(phase: &mut Phase, stage: Stage, count: u64, shares: Shares) {
    let metrics = thread_metrics(count, shares);
    phase.stages.push(StageReport { stage, metrics });
}

/// What `count` threads did of ten seconds each.
fn thread_metrics(count: u64, shares: Shares) -> StageMetrics {
    let [work, input, output, memory, device, finished] =
        shares.map(|percent| count * percent * GB / 10);
    StageMetrics {
        worker_count: count,
        bytes_in: 5 * GB,
        bytes_out: 5 * GB,
        work_ns: work,
        wait_input_ns: input,
        wait_output_ns: output,
        wait_memory_ns: memory,
        wait_device_ns: device,
        finished_ns: finished,
        ..StageMetrics::default()
    }
}

fn phase(name: &str, source: Shares, workers: Shares, drain: Shares) -> Phase {
    let stages = match name {
        "distribute" => [Stage::Read, Stage::Partition, Stage::Spill],
        _ => [Stage::Load, Stage::Sort, Stage::Write],
    };
    let mut metrics = Metrics::default();
    for (stage, (shares, count)) in stages
        .into_iter()
        .zip([(source, 1), (workers, 2), (drain, 1)])
    {
        *metrics.stage_mut(stage) = thread_metrics(count, shares);
    }
    let took = Took {
        wall_ns: 10 * GB,
        cpu_ns: 15 * GB,
        kernel_ns: GB,
        memory_new_bytes: GB,
    };
    Phase::new(name, took, &metrics)
}

/// A job's three ends, all files, each on the device of this number.
fn ends(devices: [u64; 3]) -> Ends {
    let [input, temp, output] = [("in", 0), ("temp", 1), ("out", 2)].map(|(name, number)| End {
        name: name.to_owned(),
        is_stream: false,
        device: Some(devices[number]),
    });
    Ends {
        input,
        temp,
        output,
        core_count: 2,
    }
}

fn check(phase: &Phase, ends: &Ends, sample_ns: u64, expected: &str) {
    let verdicts = judge(std::slice::from_ref(phase), ends, sample_ns);
    assert_eq!(verdicts[0].sentence, expected, "{:#?}", verdicts[0]);
}

/// A merge whose output is waited for by nobody; who reads and who merges is to be added.
fn merging() -> Phase {
    let mut merge = phase("sort", [0; 6], [0; 6], [1, 96, 0, 0, 3, 0]);
    merge.name = "merge".to_owned();
    merge
}

#[test]
fn one_disk_for_all() {
    let ends = ends([1, 1, 1]);
    // Three phases of the main benchmark (bench/runs): nothing is spilled before memory is full.
    let distribute = phase(
        "distribute",
        [1, 0, 0, 29, 70, 0],
        [57, 10, 0, 33, 0, 0],
        [14, 39, 0, 0, 47, 0],
    );
    check(
        &distribute,
        &ends,
        0,
        "distribute was bound by reads of in and writes to temp together, on one disk: \
         704 MB/s and 820 MB/s",
    );
    let reading = phase(
        "sort",
        [2, 0, 0, 0, 98, 0],
        [35, 65, 0, 0, 0, 0],
        [1, 38, 0, 0, 61, 0],
    );
    check(
        &reading,
        &ends,
        0,
        "sort was bound by reads of temp and writes to out together, on one disk: \
         500 MB/s and 806 MB/s",
    );
    let sorting = phase(
        "sort",
        [4, 0, 0, 0, 94, 2],
        [93, 2, 2, 3, 0, 0],
        [2, 18, 0, 0, 80, 0],
    );
    check(
        &sorting,
        &ends,
        0,
        "sort was bound by the processor: 2 threads on 2 cores, mostly in sort, 3.7 s of a core \
         for each GB",
    );
}

#[test]
fn what_the_system_took_is_told() {
    let mut distribute = phase(
        "distribute",
        [2, 0, 0, 68, 30, 0],
        [99, 1, 0, 0, 0, 0],
        [0, 100, 0, 0, 0, 0],
    );
    let known = "distribute was bound by the processor: 2 threads on 2 cores, mostly in partition, 4.0 s of a core \
                 for each GB";
    check(&distribute, &ends([1, 1, 1]), 0, known);
    // 10 GB in 16 GB of memory, on a virtual machine whose host had taken back what was free.
    distribute.kernel_ns = 9 * GB;
    distribute.memory_new_bytes = 9 << 30;
    let with_memory = format!(
        "{known}; 60 % of the processor time went to the system, which gave the process 9.0 GiB of memory it had not had before \
         (sortmill doctor tells what that costs here)"
    );
    check(&distribute, &ends([1, 1, 1]), 0, &with_memory);
    distribute.memory_new_bytes = 0;
    let without = format!("{known}; 60 % of the processor time went to the system");
    check(&distribute, &ends([1, 1, 1]), 0, &without);
}

/// A phase in which workers compressed what waited for the drain, for so many percents of their time.
fn packed(mut phase: Phase, percent: u64) -> Phase {
    let metrics = StageMetrics {
        worker_count: 2,
        bytes_in: 5 * GB,
        bytes_out: 2 * GB,
        work_ns: 2 * percent * GB / 10,
        ..StageMetrics::default()
    };
    let stage = Stage::Pack;
    phase.stages.push(StageReport { stage, metrics });
    phase
}

#[test]
fn who_compresses_while_the_disk_is_busy_waits_for_it() {
    let distribute = phase(
        "distribute",
        [1, 0, 0, 89, 10, 0],
        [20, 5, 0, 15, 0, 0],
        [3, 4, 0, 0, 93, 0],
    );
    check(
        &packed(distribute, 60),
        &ends([1, 2, 3]),
        0,
        "distribute was bound by writes to temp: 521 MB/s",
    );
    // Hardly anything was left for the disk.
    let distribute = phase(
        "distribute",
        [1, 0, 0, 89, 10, 0],
        [20, 5, 0, 5, 0, 0],
        [3, 70, 0, 0, 27, 0],
    );
    check(
        &packed(distribute, 70),
        &ends([1, 2, 3]),
        0,
        "distribute was bound by the processor: 2 threads on 2 cores, mostly in pack, 2.8 s of a \
         core for each GB",
    );
}

/// The same phase with two threads more, which helped its source or its drain.
fn helped(mut phase: Phase, stage: Stage, shares: Shares) -> Phase {
    let [work, input, output, memory, device, _] = shares.map(|percent| percent * GB / 5);
    let metrics = StageMetrics {
        worker_count: 2,
        bytes_in: 5 * GB,
        bytes_out: GB,
        work_ns: work,
        wait_input_ns: input,
        wait_output_ns: output,
        wait_memory_ns: memory,
        wait_device_ns: device,
        ..StageMetrics::default()
    };
    phase.stages.push(StageReport { stage, metrics });
    phase
}

#[test]
fn whoever_decompresses_or_compresses_is_the_bound() {
    let distribute = phase(
        "distribute",
        [2, 98, 0, 0, 0, 0],
        [10, 90, 0, 0, 0, 0],
        [0, 100, 0, 0, 0, 0],
    );
    check(
        &helped(distribute, Stage::Decompress, [70, 0, 0, 0, 30, 0]),
        &ends([1, 1, 1]),
        0,
        "distribute was bound by the processor: 2 threads on 2 cores, mostly in decompress, \
         2.8 s of a core for each GB",
    );
    let sort = phase(
        "sort",
        [1, 0, 90, 0, 9, 0],
        [5, 0, 50, 45, 0, 0],
        [1, 94, 0, 0, 5, 0],
    );
    check(
        &helped(sort, Stage::Compress, [70, 10, 20, 0, 0, 0]),
        &ends([1, 1, 1]),
        0,
        "sort was bound by the processor: 2 threads on 2 cores, mostly in compress, 2.8 s of a \
         core for each GB",
    );
}

/// One thread writes or reads, and its device is slow: seven that work a third of the time each are together more than it waits.
#[test]
fn many_who_help_a_little_are_not_the_bound() {
    let many = |mut phase: Phase, stage: Stage| {
        let metrics = StageMetrics {
            worker_count: 7,
            bytes_in: 5 * GB,
            bytes_out: 5 * GB,
            work_ns: 7 * 3 * GB,
            wait_input_ns: 7 * 7 * GB,
            ..StageMetrics::default()
        };
        phase.stages.push(StageReport { stage, metrics });
        phase
    };
    let sort = phase(
        "sort",
        [1, 0, 90, 0, 9, 0],
        [10, 0, 40, 50, 0, 0],
        [2, 1, 0, 0, 97, 0],
    );
    check(
        &many(sort, Stage::Compress),
        &ends([1, 2, 3]),
        0,
        "sort was bound by writes to out: 505 MB/s",
    );
    let mut merge = merging();
    let threads = [
        (Stage::Read, [2, 0, 0, 0, 98, 0]),
        (Stage::Merge, [10, 90, 0, 0, 0, 0]),
    ];
    for (stage, shares) in threads {
        add_stage(&mut merge, stage, shares);
    }
    check(
        &many(merge, Stage::Decompress),
        &ends([1, 2, 3]),
        0,
        "merge was bound by reads of in: 500 MB/s",
    );
}

/// A merge of more files than memory has buffers for writes runs and reads them again, one request at a time.
#[test]
fn a_worker_that_waits_for_its_device_itself() {
    let mut merge = merging();
    add_stage(&mut merge, Stage::Merge, [40, 0, 0, 0, 60, 0]);
    check(
        &merge,
        &ends([1, 2, 3]),
        0,
        "merge was bound by reads and writes of temp together",
    );
}

#[test]
fn each_end_on_its_own_disk() {
    let ends = ends([1, 2, 3]);
    let writing = phase(
        "distribute",
        [1, 0, 0, 29, 70, 0],
        [57, 10, 0, 33, 0, 0],
        [14, 39, 0, 0, 47, 0],
    );
    check(
        &writing,
        &ends,
        0,
        "distribute was bound by writes to temp: 820 MB/s",
    );
    let reading = phase(
        "sort",
        [2, 0, 0, 0, 98, 0],
        [35, 65, 0, 0, 0, 0],
        [1, 38, 0, 0, 61, 0],
    );
    check(
        &reading,
        &ends,
        0,
        "sort was bound by reads of temp: 500 MB/s",
    );
}

#[test]
fn waits_at_different_times_explain_nothing() {
    let ends = ends([1, 1, 1]);
    // Workers waited at the start for the first chunk, the reader later for chunks to come back.
    let working = phase(
        "distribute",
        [20, 0, 0, 60, 0, 20],
        [78, 22, 0, 0, 0, 0],
        [2, 98, 0, 0, 0, 0],
    );
    check(
        &working,
        &ends,
        GB,
        "distribute was bound by the processor: 2 threads on 2 cores, mostly in partition, \
         3.1 s of a core for each GB",
    );
    let starving = phase(
        "sort",
        [5, 0, 0, 90, 5, 0],
        [20, 80, 0, 0, 0, 0],
        [2, 80, 0, 0, 18, 0],
    );
    check(
        &starving,
        &ends,
        0,
        "sort was bound by memory: load had no free buffer while the others waited for it",
    );
    let turns = phase(
        "distribute",
        [15, 0, 0, 55, 30, 0],
        [20, 50, 0, 30, 0, 0],
        [5, 90, 0, 0, 5, 0],
    );
    check(
        &turns,
        &ends,
        9 * GB,
        "distribute was bound by the small reads of the sample of in",
    );
}

/// On a machine that was busy with others, one of two workers ended long before the other, while the
/// device wrote what it was given without delay: for a while that was told as bound by the device.
#[test]
fn a_worker_that_ends_early_waits_for_its_fellow() {
    let uneven = phase(
        "sort",
        [0, 0, 0, 0, 0, 100],
        [87, 0, 1, 0, 0, 12],
        [1, 72, 0, 0, 27, 0],
    );
    check(
        &uneven,
        &ends([1, 1, 1]),
        0,
        "sort was bound by the processor: 2 threads on 2 cores, mostly in sort, 3.5 s of a core \
         for each GB",
    );
    let draining = phase(
        "sort",
        [0, 0, 0, 0, 0, 100],
        [30, 0, 0, 10, 0, 60],
        [1, 20, 0, 0, 79, 0],
    );
    check(
        &draining,
        &ends([1, 2, 3]),
        0,
        "sort was bound by writes to out: 625 MB/s",
    );
}

/// Workers that work nearly all the time wait a little for a device that is idle for most of it: for a while that was told as bound
/// by the device, since it had been busy for as long as they waited.
#[test]
fn a_device_that_is_idle_most_of_the_time_is_not_the_bound() {
    let bound = "sort was bound by the processor: 2 threads on 2 cores, mostly in sort, 3.4 s of a core for each GB";
    let writing = phase(
        "sort",
        [1, 0, 99, 0, 0, 0],
        [85, 0, 0, 15, 0, 0],
        [0, 87, 0, 0, 13, 0],
    );
    check(&writing, &ends([1, 2, 3]), 0, bound);
    // The loader waited for the disk at the start, and then for workers to take what it had.
    let loading = phase(
        "sort",
        [1, 0, 84, 0, 15, 0],
        [85, 15, 0, 0, 0, 0],
        [0, 87, 0, 0, 13, 0],
    );
    check(&loading, &ends([1, 2, 3]), 0, bound);
    // Busy for half of the phase, or for longer than the workers were, it is.
    let writing = phase(
        "sort",
        [1, 0, 99, 0, 0, 0],
        [55, 0, 0, 45, 0, 0],
        [2, 50, 0, 0, 48, 0],
    );
    check(
        &writing,
        &ends([1, 2, 3]),
        0,
        "sort was bound by writes to out: 1000 MB/s",
    );
}

/// 32 threads that compress 3 % of the time each are no drain that is busy: workers that ended early waited for their fellows.
#[test]
fn many_who_compress_a_little_do_not_drain() {
    let mut uneven = phase(
        "sort",
        [0, 0, 0, 0, 0, 100],
        [40, 0, 0, 0, 0, 60],
        [1, 94, 0, 0, 5, 0],
    );
    add_stages(&mut uneven, Stage::Compress, 32, [3, 97, 0, 0, 0, 0]);
    check(
        &uneven,
        &ends([1, 2, 3]),
        0,
        "sort was bound by the processor: 2 threads on 2 cores, mostly in sort, 1.6 s of a core for each GB",
    );
}

/// Sixteen threads decompress what is merged, and cut it: the time that one of them reads is that of the files.
#[test]
fn reading_time_of_many_is_that_of_one() {
    let mut merge = merging();
    add_stage(&mut merge, Stage::Read, [2, 0, 0, 0, 98, 0]);
    add_stage(&mut merge, Stage::Merge, [10, 90, 0, 0, 0, 0]);
    for (stage, shares) in [
        (Stage::Decompress, [20, 0, 60, 0, 15, 0]),
        (Stage::Cut, [5, 0, 0, 0, 0, 0]),
    ] {
        add_stages(&mut merge, stage, 16, shares);
    }
    check(
        &merge,
        &ends([1, 2, 3]),
        0,
        "merge was bound by reads of in: 476 MB/s",
    );
}

#[test]
fn somebody_elses_pace() {
    let mut ends = ends([1, 2, 3]);
    ends.input.is_stream = true;
    ends.output.is_stream = true;
    let fed = phase(
        "distribute",
        [1, 0, 1, 0, 98, 0],
        [5, 95, 0, 0, 0, 0],
        [2, 95, 0, 0, 3, 0],
    );
    check(
        &fed,
        &ends,
        0,
        "distribute was bound by the program that feeds in: 500 MB/s",
    );
    // One worker has the turn and waits for a buffer, the other waits for its turn.
    let read = phase(
        "sort",
        [1, 0, 0, 40, 1, 58],
        [4, 0, 48, 40, 0, 8],
        [1, 1, 0, 0, 98, 0],
    );
    check(
        &read,
        &ends,
        0,
        "sort was bound by whoever reads out: 500 MB/s",
    );
    // The one that has the turn works: the waits of the others are not for the output.
    let working = phase(
        "sort",
        [1, 0, 0, 40, 1, 58],
        [50, 2, 46, 1, 0, 1],
        [20, 75, 0, 0, 5, 0],
    );
    check(
        &working,
        &ends,
        0,
        "sort was bound by the processor: 2 threads on 2 cores, mostly in sort, 2.0 s of a core \
         for each GB",
    );
}

/// What merging read and wrote is counted elsewhere, so no rate is told, and nothing is compared with what the disk does.
#[test]
fn runs_that_were_merged_have_no_rates() {
    let mut merged = phase(
        "sort",
        [0, 0, 0, 0, 0, 0],
        [5, 95, 0, 0, 0, 0],
        [1, 98, 0, 0, 1, 0],
    );
    add_stage(&mut merged, Stage::Merge, [10, 0, 0, 0, 90, 0]);
    check(
        &merged,
        &ends([1, 1, 1]),
        0,
        "sort was bound by reads and writes of temp together",
    );
}

#[test]
fn a_probe_gives_the_share() {
    let ends = ends([1, 2, 3]);
    let writing = phase(
        "distribute",
        [1, 0, 0, 89, 10, 0],
        [5, 0, 0, 95, 0, 0],
        [2, 0, 0, 0, 98, 0],
    );
    let mut verdict = judge(&[writing], &ends, 0).remove(0);
    verdict.add_probe(Rates {
        read_bytes_per_s: 0,
        write_bytes_per_s: GB * 52 / 100,
    });
    assert_eq!(
        verdict.sentence,
        "distribute was bound by writes to temp: 500 MB/s, 96 % of what it does alone now"
    );
}
