//! Under shuttle's scheduler: whatever order threads run in, jobs end and their bytes are right.
//! `cargo test --features shuttle --test it`

use sortmill::generate::{Out, generate};
use sortmill::queue::Stop;
use sortmill_io::sim::{Fault, FaultKind, Sim};

use super::{BINARY, bytes, job};

/// More pieces than buffers, so that workers wait for what the writer holds.
const COUNT: u64 = 40_000;

fn under_schedules(out: Out, count: u64, fault: Option<Fault>) {
    let new = std::sync::Arc::new(bytes(BINARY, 0, count as usize));
    let once = move || {
        let sim = Sim::new(shuttle::rand::Rng::r#gen(&mut shuttle::rand::thread_rng()));
        sim.set_fault(fault);
        let result = generate(&job(count, out.clone()), &sim, &Stop::new());
        assert_eq!(result.is_err(), sim.fault_hit());
        let found = match out {
            Out::Stdout => Some(sim.get_stdout()),
            _ => sim.get("/out"),
        };
        assert!(result.is_err() || found.unwrap() == *new);
    };
    // The one lets every thread come forward now and then, the other starves some of them for long.
    shuttle::check_random(once.clone(), 300);
    shuttle::check_pct(once, 300, 3);
}

fn fault(at: u64) -> Option<Fault> {
    Some(Fault {
        at,
        for_good: false,
        kind: FaultKind::Error(5),
    })
}

#[test]
fn a_file_is_whole() {
    under_schedules(Out::File("/out".into()), COUNT, None);
}

#[test]
fn a_stream_is_in_order() {
    under_schedules(Out::Stdout, COUNT, None);
}

#[test]
fn a_failed_write_ends_the_job() {
    for at in [4, 7, 12] {
        under_schedules(Out::File("/out".into()), 5_000, fault(at));
        under_schedules(Out::Stdout, 5_000, fault(at));
    }
}
