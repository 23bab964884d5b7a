//! Faults in jobs whose temporary data are compressed: by all threads, by the spiller, while they wait.

use std::path::Path;

use sortmill::error::ErrorKind;
use sortmill::io::sim::{Fault, FaultKind};
use sortmill::job::CompressTemp;

use super::{Case, alter, judge, seed, sweep};

impl Case {
    /// Blocks large enough to become smaller.
    fn packing(mut self, how: CompressTemp) -> Self {
        self.tuning.chunk_bytes = Some(16 << 10);
        self.tuning.block_bytes = Some(16 << 10);
        self.memory_bytes = 1_500_000;
        self.compress_temp = how;
        self
    }
}

#[test]
fn the_jobs_with_compressed_temporary_data_go_the_whole_way() {
    for how in [CompressTemp::Lz4, CompressTemp::Zstd] {
        for temp_apart in [false, true] {
            let mut case = Case::new(seed(), 2_500_000).packing(how);
            case.temp_apart = temp_apart;
            let outcome = case.run(seed(), None);
            judge(&case, &outcome, false);
            let report = outcome.result.unwrap();
            let packed = report.temp_packed.unwrap().spilled;
            println!("{how:?}: {packed:?}, {} operations", outcome.operations);
            assert!(packed.packed_blocks * 10 > packed.blocks * 8, "{packed:?}");
            assert!(report.partitions.evicted >= 4, "{:?}", report.partitions);
        }
    }
}

#[test]
fn faults_with_compressed_temporary_data() {
    let case = Case::new(seed(), 2_000_000).packing(CompressTemp::Lz4);
    sweep(&case, FaultKind::Error(5), false, 17);
    sweep(&case, FaultKind::Error(28), true, 23);
    let mut case = Case::new(seed(), 2_000_000).packing(CompressTemp::Zstd);
    case.temp_apart = true;
    sweep(&case, FaultKind::Error(5), false, 29);
}

/// Threads compress while they wait for a slow disk.
#[test]
fn faults_where_waiting_threads_compress() {
    let mut case = Case::new(seed(), 2_500_000).packing(CompressTemp::Auto);
    case.pace = 500_000;
    let healthy = case.run(seed(), None);
    let packed = healthy.result.unwrap().temp_packed.unwrap().spilled;
    println!("{packed:?}");
    assert!(packed.packed_blocks > 4, "{packed:?}");
    assert!(packed.packed_blocks < packed.blocks, "{packed:?}");
    for at in (0..healthy.operations).step_by(23) {
        let kind = FaultKind::Error(5);
        let for_good = false;
        let fault = Fault { at, for_good, kind };
        let outcome = case.run(seed().wrapping_mul(1_000_003) + at, Some(fault));
        judge(&case, &outcome, for_good);
        // What slow jobs look at for their verdict is no more than a name.
        let is_transfer = |operation: &str| matches!(operation, "read" | "write");
        let struck = outcome
            .struck
            .is_some_and(|struck| is_transfer(struck.operation));
        assert!(
            !struck || outcome.result.is_err(),
            "a failed transfer passed unnoticed"
        );
    }
}

#[test]
fn faults_with_compressed_temporary_data_on_two_disks() {
    let mut case = Case::new(seed(), 1_800_000).packing(CompressTemp::Lz4);
    case.temps = vec!["/disk1".into(), "/disk2".into()];
    sweep(&case, FaultKind::Error(28), true, 29);
    case.stream = true;
    sweep(&case, FaultKind::Error(5), false, 29);
}

#[test]
fn faults_in_a_job_that_compresses_and_merges() {
    let mut case = Case::new(seed(), 2_000_000).packing(CompressTemp::Lz4);
    case.tuning.partition_count = Some(1);
    let report = case.run(seed(), None).result.unwrap();
    assert!(report.partitions.merged > 0, "{:?}", report.partitions);
    assert!(report.temp_packed.unwrap().spilled.packed_blocks > 10);
    sweep(&case, FaultKind::Error(5), false, 29);
}

/// The bodies of long records are compressed, too.
#[test]
fn faults_in_a_job_that_compresses_long_lines() {
    let case = Case::with_long_lines(seed(), 3_000_000).packing(CompressTemp::Lz4);
    let report = case.run(seed(), None).result.unwrap();
    assert!(
        report.partitions.long_records > 5,
        "{:?}",
        report.partitions
    );
    assert!(report.temp_packed.unwrap().spilled.packed_blocks > 10);
    sweep(&case, FaultKind::Error(5), false, 29);
}

/// A bit that turns over in a compressed block, on its way out or back, is found, and so is one that was never written.
#[test]
fn faults_that_alter_compressed_temporary_data() {
    for (case, step, least) in [
        (Case::new(seed(), 1_600_000), 11, 8),
        // Of long lines of one letter little is left, so most of what is struck is padding.
        (Case::with_long_lines(seed(), 2_000_000), 13, 1),
    ] {
        let mut case = case.packing(CompressTemp::Lz4);
        case.memory_bytes = 1_100_000;
        case.temp_apart = true;
        for kind in [FaultKind::Flip, FaultKind::Lie] {
            let mut found = 0;
            let is_spill = |path: &Path| path.ends_with("spill");
            alter(&case, kind, step, is_spill, |error| {
                assert_eq!(error.kind, ErrorKind::Corrupt, "{error}");
                let path = error.path.as_ref();
                assert!(path.is_some_and(|path| path.ends_with("spill")), "{error}");
                assert!(error.offset.is_some(), "{error}");
                found += 1;
            });
            assert!(found >= least, "{kind:?}: {found} found");
        }
    }
}
