//! Checking under shuttle's scheduler: whatever order threads run in, turns come in the order of chunks.
//! `cargo test --features shuttle --test it`

use std::path::PathBuf;

use sortmill::check::{Check, check};
use sortmill::job::Input;
use sortmill::order::{Format, KeyPart};
use sortmill::queue::Stop;
use sortmill_io::sim::{Fault, FaultKind, Sim};

/// Ascending keys, but for one record in the middle and one that opens a chunk; more chunks than buffers.
fn bytes() -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..4000u32)
        .flat_map(|number| [number.to_be_bytes(), [1; 4], [2; 4], [3; 4]].concat())
        .collect();
    bytes[256 * 5 * 16..][..4].fill(0);
    bytes[3000 * 16..][..4].fill(0);
    bytes
}

fn under_schedules(fault_at: Option<u64>) {
    let once = move || {
        let sim = Sim::new(shuttle::rand::Rng::r#gen(&mut shuttle::rand::thread_rng()));
        sim.put("/in", &bytes());
        sim.set_fault(fault_at.map(|at| Fault {
            at,
            for_good: false,
            kind: FaultKind::Error(5),
        }));
        let job = Check {
            keys: vec![KeyPart::plain(0, 4)],
            threads: Some(3),
            chunk_bytes: Some(4096),
            ..Check::new(vec![Input::Path("/in".into())], Format::Fixed(16))
        };
        let result = check(&job, &sim, &Stop::new());
        assert_eq!(result.is_err(), fault_at.is_some());
        if let Ok(found) = result {
            let first = found.first_unordered.unwrap();
            assert_eq!((found.unordered, found.duplicates), (2, 0));
            assert_eq!(
                (first.record, first.offset, first.path),
                (1280, 1280 * 16, PathBuf::from("/in"))
            );
        }
    };
    // The one lets every thread come forward now and then, the other starves some of them for long.
    shuttle::check_random(once, 200);
    shuttle::check_pct(once, 200, 3);
}

#[test]
fn chunks_are_joined_in_order() {
    under_schedules(None);
}

#[test]
fn a_failed_read_ends_the_check() {
    for at in [2, 3, 5, 12] {
        under_schedules(Some(at));
    }
}
