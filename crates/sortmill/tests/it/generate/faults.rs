//! On the simulated machine, where any operation can be made to fail.

use std::path::{Path, PathBuf};

use sortmill::error::{Error, ErrorKind};
use sortmill::generate::{Out, generate};
use sortmill::queue::Stop;
use sortmill_io::sim::{Fault, FaultKind, Sim};

use super::{BINARY, bytes, job};

const COUNT: u64 = 100_000;
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

fn temporary(sim: &Sim) -> Vec<PathBuf> {
    let named = |path: &PathBuf| path.to_string_lossy().contains(".sortmill-");
    sim.names().into_iter().filter(named).collect()
}

/// Runs jobs on machines made by `machine`, each with a fault one operation later than the one before,
/// until a job is not hit. `check` sees the machine, the error if there was one, and whether every
/// operation behind the fault failed too.
fn at_every_operation(
    out: &Out,
    machine: impl Fn(u64) -> Sim,
    check: impl Fn(&Sim, Option<&Error>, bool),
) {
    for (code, kind) in [(EIO, ErrorKind::Io), (ENOSPC, ErrorKind::Space)] {
        for for_good in [false, true] {
            for at in 0.. {
                let sim = machine(at);
                sim.set_fault(Some(Fault {
                    at,
                    for_good,
                    kind: FaultKind::Error(code),
                }));
                let result = generate(&job(COUNT, out.clone()), &sim, &Stop::new());
                let hit = sim.fault_hit();
                println!(
                    "operation {at}, for good {for_good}, hit {hit}: {:?}",
                    result.as_ref().err()
                );
                assert_eq!(
                    result.is_err(),
                    hit,
                    "no fault is passed over, and none is invented"
                );
                let error = result.err();
                if let Some(error) = &error {
                    let ring = error.doing.contains("a ring");
                    assert_eq!(
                        error.kind,
                        if ring { ErrorKind::Io } else { kind },
                        "{error}"
                    );
                }
                check(&sim, error.as_ref(), for_good);
                if !hit {
                    assert!(at > 2);
                    break;
                }
            }
        }
    }
}

#[test]
fn a_file_is_the_old_one_or_the_new_one() {
    let new = bytes(BINARY, 0, COUNT as usize);
    let machine = |seed| {
        let sim = Sim::new(seed);
        sim.put("/out", b"old");
        sim
    };
    at_every_operation(
        &Out::File("/out".into()),
        machine,
        |sim, error, for_good| {
            let found = sim.get("/out").unwrap();
            match error {
                // The last of all operations makes the new name last, so it is there already.
                Some(error) if error.doing.contains("name of the output last") => {
                    assert!(found == new)
                }
                Some(_) => assert_eq!(found, b"old"),
                None => assert!(found == new),
            }
            assert!(
                for_good || temporary(sim).is_empty(),
                "left: {:?}",
                temporary(sim)
            );
        },
    );
}

#[test]
fn each_file_of_a_set_is_the_old_one_or_the_new_one() {
    let set = Out::Directory {
        path: "/set".into(),
        files: 3,
    };
    let new = bytes(BINARY, 0, COUNT as usize);
    let new = [
        &new[..3_333_400],
        &new[3_333_400..6_666_700],
        &new[6_666_700..],
    ];
    let machine = |seed| {
        let sim = Sim::new(seed);
        sim.put_dir("/set");
        sim.put("/set/part-00001", b"old");
        sim
    };
    at_every_operation(&set, machine, |sim, error, for_good| {
        for (number, new) in new.iter().enumerate() {
            match sim.get(format!("/set/part-{number:05}")) {
                Some(found) if found == b"old" => assert!(error.is_some() && number == 1),
                Some(found) => assert!(found == *new),
                None => assert!(error.is_some() && number != 1),
            }
        }
        assert!(
            for_good || temporary(sim).is_empty(),
            "left: {:?}",
            temporary(sim)
        );
        assert!(sim.names().contains(&PathBuf::from("/set")));
    });
}

#[test]
fn a_folder_that_was_made_for_nothing_goes() {
    let set = Out::Directory {
        path: "/set".into(),
        files: 2,
    };
    at_every_operation(&set, Sim::new, |sim, error, for_good| {
        let named = sim
            .names()
            .iter()
            .any(|path| path.to_string_lossy().contains("part-"));
        let folder = sim.names().iter().any(|path| path == Path::new("/set"));
        assert!(for_good || named == folder, "{:?}", sim.names());
        assert!(error.is_some() || folder);
    });
}

#[test]
fn a_stream_is_a_beginning_of_the_whole() {
    let new = bytes(BINARY, 0, COUNT as usize);
    at_every_operation(&Out::Stdout, Sim::new, |sim, error, _| {
        let found = sim.get_stdout();
        assert!(new.starts_with(&found));
        assert_eq!(found.len() == new.len(), error.is_none());
    });
}

#[test]
fn too_little_space_is_told_before_anything_is_made() {
    let sim = Sim::new(1);
    sim.put("/out", b"old");
    let needed = (COUNT * 100).next_multiple_of(4096);
    sim.set_space(3 + needed - 1);
    let error = generate(&job(COUNT, Out::File("/out".into())), &sim, &Stop::new()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Space);
    for words in [
        format!("({needed} bytes) are needed"),
        format!("({} bytes) are free", needed - 1),
    ] {
        assert!(error.to_string().contains(&words), "{error}");
    }
    assert_eq!(sim.get("/out").unwrap(), b"old");
    assert_eq!(sim.names().len(), 1);

    let set = Out::Directory {
        path: "/set".into(),
        files: 7,
    };
    let error = generate(&job(COUNT, set), &sim, &Stop::new()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Space);
    assert_eq!(sim.names().len(), 1);

    sim.set_space(3 + needed);
    generate(&job(COUNT, Out::File("/out".into())), &sim, &Stop::new()).unwrap();
    assert!(sim.get("/out").unwrap() == bytes(BINARY, 0, COUNT as usize));
}
