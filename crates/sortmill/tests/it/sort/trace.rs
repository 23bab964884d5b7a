//! The trace of a job that panicked: the threads' tracks are in it all the same.

use std::sync::{Arc, OnceLock};
use std::thread;

use serde_json::Value;
use sortmill::job::each;
use sortmill::trace::Trace;

use super::{Case, Machine};

#[test]
fn a_function_that_panics_shows_where_it_was() {
    let trace = Arc::new(Trace::default());
    // The job's own thread tries it first, to plan.
    let own = OnceLock::new();
    let is_tried = move || *own.get_or_init(|| thread::current().id()) == thread::current().id();
    let case = Case {
        map: Some(each(move |line, made| {
            assert!(is_tried() || line != b"bad\n", "this one");
            made.push(line);
        })),
        trace: Some(Arc::clone(&trace)),
        ..Case::lines(vec![[&b"good\n".repeat(50_000)[..], b"bad\n"].concat()])
    };
    let panicked = thread::spawn(move || case.try_run(Machine::Sim).map(|_| ()));
    let panic = panicked.join().expect_err("it panics");
    let said = panic.downcast_ref::<&str>().unwrap();
    assert!(said.contains("this one"), "{said}");
    let mut written = Vec::new();
    trace.write(&mut written).unwrap();
    let written: Value = serde_json::from_slice(&written).unwrap();
    let events = written["traceEvents"].as_array().unwrap();
    let count = |name: &str| events.iter().filter(|event| event["name"] == name).count();
    assert_eq!((count("prepare"), count("distribute")), (1, 1));
    assert!(count("partition: work") > 0 && count("read: work") > 0);
    // One worker was in the function.
    assert!(count("cut short") > 0);
}
