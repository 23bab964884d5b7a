//! Measuring disks on the simulated machine: every step may fail, and nothing is left behind.

use std::path::PathBuf;

#[cfg(not(feature = "shuttle"))]
use sortmill::disk::Row;
use sortmill::disk::{DiskBench, DiskReport, Setting, measure};
use sortmill::error::{Error, ErrorKind};
use sortmill::queue::Stop;
use sortmill_io::sim::Sim;

/// Two folders, two settings, and the least time: the simulated clock goes on by a microsecond a look.
fn bench() -> DiskBench {
    DiskBench {
        folders: vec!["/one".into(), "/two".into()],
        file_bytes: Some(100 << 10),
        settings: Setting::grid(&[4096, 16384], &[3], &[]),
        round_count: 2,
        window_ns: 40_000,
        overwrite: false,
        measured_s: 0,
    }
}

fn machine(seed: u64) -> Sim {
    let sim = Sim::new(seed);
    sim.put_dir("/one");
    sim.put_dir("/two");
    sim
}

fn measure_quietly(bench: &DiskBench, sim: &Sim) -> Result<DiskReport, Error> {
    measure(bench, sim, &Stop::new(), &mut |_, _| {})
}

fn left(sim: &Sim) -> Vec<PathBuf> {
    let mut names = sim.names();
    names.retain(|name| name.parent() != Some(std::path::Path::new("/")));
    names
}

/// In this order: each alone, halves, all.
#[cfg(not(feature = "shuttle"))]
fn check_rows(rows: &[Row]) {
    let ways: Vec<(&[usize], &[usize])> = vec![
        (&[0], &[]),
        (&[], &[0]),
        (&[0], &[0]),
        (&[1], &[]),
        (&[], &[1]),
        (&[1], &[1]),
        (&[0], &[1]),
        (&[1], &[0]),
        (&[0, 1], &[]),
        (&[], &[0, 1]),
        (&[0, 1], &[0, 1]),
    ];
    assert_eq!(rows.len(), 2 * ways.len());
    for (row, (reading, writing)) in rows.iter().zip(ways.iter().cycle()) {
        assert_eq!((&row.reading[..], &row.writing[..]), (*reading, *writing));
        let (read, written) = (row.read_bytes_per_s.most, row.write_bytes_per_s.most);
        assert!(!reading.is_empty() || read == 0, "{row:?}");
        assert!(!writing.is_empty() || written == 0, "{row:?}");
        // The simulated clock goes on only where it is looked at: of two threads one may use it all up.
        assert!(read + written > 0, "{row:?}");
    }
}

#[cfg(not(feature = "shuttle"))]
#[test]
fn folders_alone_in_halves_and_together() {
    let sim = machine(1);
    let mut steps = Vec::new();
    let told = &mut |done, of| steps.push((done, of));
    let report = measure(&bench(), &sim, &Stop::new(), told).unwrap();
    check_rows(&report.rows);
    for folder in &report.folders {
        assert!(folder.synced_bytes_per_s.unwrap().least > 0, "{folder:?}");
    }
    assert_eq!(left(&sim), Vec::<PathBuf>::new());
    let all = 2 + 2 * 2 * 11;
    let expected: Vec<(usize, usize)> = (1..=all).map(|done| (done, all)).collect();
    assert_eq!(steps, expected);
    // What is kept of one folder says of it what the whole does.
    let kept = report.of_folder(1);
    assert_eq!(kept.rows.len(), 2 * 3);
    assert_eq!(kept.choice(0), report.choice(1));
    let again = serde_json::from_str(&serde_json::to_string(&report).unwrap());
    assert_eq!(report, again.unwrap());
}

/// Few buffers and many: each has rows of its own, and only those with the usual ones say what to plan with.
#[cfg(not(feature = "shuttle"))]
#[test]
fn buffers_that_take_turns_have_rows_of_their_own() {
    let many = Some(200 << 10);
    let bench = DiskBench {
        settings: Setting::grid(&[4 << 20], &[1], &[many]),
        file_bytes: Some(8 << 20),
        ..bench()
    };
    let report = measure_quietly(&bench, &machine(4)).unwrap();
    assert!(report.rows.iter().all(|row| row.buffer_bytes == many));
    assert_eq!(report.choice(0), None);
    let bench = DiskBench {
        settings: Setting::grid(&[4096], &[3], &[None, many]),
        ..self::bench()
    };
    let report = measure_quietly(&bench, &machine(4)).unwrap();
    let (few, turns): (Vec<&Row>, Vec<&Row>) =
        (report.rows.iter()).partition(|row| row.buffer_bytes.is_none());
    assert_eq!((few.len(), turns.len()), (11, 11));
    assert!(
        turns
            .iter()
            .all(|row| row.read_bytes_per_s.most + row.write_bytes_per_s.most > 0)
    );
}

#[cfg(not(feature = "shuttle"))]
#[test]
fn any_operation_may_fail() {
    use sortmill_io::sim::{Fault, FaultKind};
    for (code, kind) in [(5, ErrorKind::Io), (28, ErrorKind::Space)] {
        for for_good in [false, true] {
            let mut at = 0;
            loop {
                let sim = machine(at);
                sim.set_fault(Some(Fault {
                    at,
                    for_good,
                    kind: FaultKind::Error(code),
                }));
                let result = measure_quietly(&bench(), &sim);
                let Some(struck) = sim.struck() else {
                    result.unwrap();
                    assert!(at > 100, "{at}");
                    break;
                };
                // What a killed job left is looked for, but not needed; what is deleted is not needed either.
                let not_needed = ["list_dir", "remove_file", "remove_dir"];
                match result {
                    Ok(_) => assert!(not_needed.contains(&struck.operation), "{struck:?}"),
                    Err(error) => {
                        let of_a_ring = error.doing == "starting a ring";
                        assert!(of_a_ring || error.kind == kind, "{error}: {struck:?}");
                    }
                }
                if !for_good && !not_needed.contains(&struck.operation) {
                    assert_eq!(left(&sim), Vec::<PathBuf>::new(), "{struck:?}");
                }
                // Most operations are requests like those before them.
                at += if at < 120 { 1 } else { 37 };
            }
        }
    }
}

#[cfg(not(feature = "shuttle"))]
#[test]
fn room_is_asked_for_first() {
    let check = |bench: &DiskBench, kind: ErrorKind, words: &str| {
        let sim = machine(3);
        sim.set_space(390 << 10);
        let error = measure_quietly(bench, &sim).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(left(&sim), Vec::<PathBuf>::new());
        // Nothing was written but asked.
        assert!(sim.operation_count() < 6, "{}", sim.operation_count());
    };
    // Four files of 100 KiB do not fit into 390.
    check(
        &bench(),
        ErrorKind::Space,
        "two files of 100.0 KiB are needed here",
    );
    let chosen = DiskBench {
        file_bytes: None,
        settings: Setting::grid(&[16384], &[7], &[]),
        ..bench()
    };
    check(&chosen, ErrorKind::Space, "97.5 KiB are free for each");
    let small = DiskBench {
        file_bytes: Some(20 << 10),
        ..bench()
    };
    check(&small, ErrorKind::Usage, "in flight at once, 48.0 KiB");
    let odd = DiskBench {
        settings: Setting::grid(&[5000], &[1], &[]),
        ..bench()
    };
    check(&odd, ErrorKind::Usage, "a multiple of 4.0 KiB");
}

/// Somebody else takes the room while it measures, whenever that is.
#[cfg(not(feature = "shuttle"))]
#[test]
fn a_disk_that_fills_up_ends_it() {
    for at in 1..40 {
        let sim = machine(at as u64);
        let told = &mut |done: usize, _: usize| {
            if done == at {
                sim.set_space(0);
            }
        };
        let error = measure(&bench(), &sim, &Stop::new(), told).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Space, "{at}: {error}");
        assert!(error.path.is_some(), "{at}: {error}");
        let needed = "room for two files of 100.0 KiB";
        assert!(error.to_string().contains(needed), "{at}: {error}");
        assert_eq!(left(&sim), Vec::<PathBuf>::new(), "{at}");
    }
}

#[cfg(not(feature = "shuttle"))]
#[test]
fn a_stop_ends_it() {
    let sim = machine(4);
    let stop = Stop::new();
    let told = &mut |done: usize, _: usize| {
        if done == 5 {
            stop.interrupt();
        }
    };
    let error = measure(&bench(), &sim, &stop, told).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Interrupted);
    assert_eq!(left(&sim), Vec::<PathBuf>::new());
}

/// Whatever order the threads run in.
#[cfg(feature = "shuttle")]
#[test]
fn under_schedules() {
    let once = || {
        let sim = machine(shuttle::rand::Rng::r#gen(&mut shuttle::rand::thread_rng()));
        let report = measure_quietly(&bench(), &sim).unwrap();
        assert_eq!(report.rows.len(), 22);
        assert_eq!(left(&sim), Vec::<PathBuf>::new());
        sim.set_space(0);
        let error: Error = measure_quietly(&bench(), &sim).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Space);
    };
    shuttle::check_random(once, 20);
}
