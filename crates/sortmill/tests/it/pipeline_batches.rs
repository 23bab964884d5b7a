//! Functions of batches in pipelines, held against what they make of all records in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sortmill::error::{Error, ErrorKind};
use sortmill::io::{Host, RingKind};
use sortmill::job::Tuning;
use sortmill::pipeline::{
    Column, Form, Gathered, Owned, Pipeline, Settings, Table, Type, Value, read_text, words,
};
use sortmill::queue::Stop;

use crate::Scratch;

fn run(pipeline: &Pipeline, memory_bytes: u64, threads: usize) -> Result<(u64, u64), Error> {
    let settings = Settings {
        memory_bytes: Some(memory_bytes),
        threads: Some(threads),
        tuning: Tuning {
            chunk_bytes: Some(64 << 10),
            block_bytes: Some(4096),
            ..Tuning::default()
        },
        ..Settings::default()
    };
    let host = Host::new(RingKind::Posix, false).unwrap();
    let report = pipeline.run(&settings, &host, &Stop::new())?;
    Ok(report.records())
}

fn text_of(batch: &Gathered, at: usize) -> String {
    let text = |values: &[Value<'_>]| Ok(String::from_utf8(values[0].bytes().to_vec()).unwrap());
    batch.with(&[Type::String], at, text).unwrap()
}

/// Each record with the number of its batch's records and its place in it, three times: more comes out of one batch than
/// there is room for at once.
#[test]
fn batches_keep_the_order_and_are_cut_alike() {
    let scratch = Scratch::new("batches_keep_the_order_and_are_cut_alike");
    let lines: Vec<String> = (0..30_000).map(|number| format!("line {number}")).collect();
    let text = lines.join("\n") + "\n";
    std::fs::write(scratch.path("in"), &text).unwrap();
    let table = read_text([scratch.path("in").to_str().unwrap()], 0);
    let made = vec![
        Column::new("line", Type::String),
        Column::new("of", Type::U64),
    ];
    let largest = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&largest);
    let thrice = table
        .map_batches(&["line"], made, 1000, move |batch, sink| {
            seen.fetch_max(batch.len(), Ordering::SeqCst);
            for at in 0..batch.len() {
                let line = text_of(batch, at).repeat(20);
                for number in 0..3 {
                    let line = format!("{line} {number} {at}");
                    sink(&[
                        Value::Bytes(line.as_bytes()),
                        Value::U64(batch.len() as u64),
                    ])?;
                }
            }
            Ok(())
        })
        .unwrap();
    // Another one behind it, of batches that are cut anew.
    let made = vec![
        Column::new("line", Type::String),
        Column::new("end", Type::Bool),
    ];
    let both = thrice
        .map_batches(&["line"], made, 77, |batch, sink| {
            for at in 0..batch.len() {
                let line = text_of(batch, at);
                sink(&[
                    Value::Bytes(line.as_bytes()),
                    Value::Bool(at + 1 == batch.len()),
                ])?;
            }
            Ok(())
        })
        .unwrap();
    let pipeline = both.write(scratch.path("out"), Form::Text).unwrap();
    let counts = run(&pipeline, 32 << 20, 2).unwrap();
    assert_eq!(counts, (30_000, 90_000));
    assert_eq!(largest.load(Ordering::SeqCst), 1000);
    let first = std::fs::read_to_string(scratch.path("out")).unwrap();
    run(&pipeline, 64 << 20, 1).unwrap();
    assert!(std::fs::read_to_string(scratch.path("out")).unwrap() == first);

    let mut wanted = String::new();
    let (mut at, mut bytes) = (0, 0);
    let mut chunk = 0;
    let mut starts = Vec::new();
    // A record belongs to the chunk that it ends in.
    for line in &lines {
        bytes += line.len() + 1;
        let ends_in = (bytes - 1) / (64 << 10);
        if ends_in != chunk || at == 1000 {
            (chunk, at) = (ends_in, 0);
        }
        starts.push(at);
        at += 1;
    }
    for (line, at) in lines.iter().zip(starts) {
        for number in 0..3 {
            wanted += &format!("{} {number} {at}\n", line.repeat(20));
        }
    }
    let lines_out = first.lines().map(|line| line.rsplit_once('\t').unwrap().0);
    assert!(lines_out.eq(wanted.lines()));
    let ends = first.lines().filter(|line| line.ends_with("true")).count();
    assert!(ends >= 90_000 / 77, "{ends}");
    assert_eq!(scratch.names(), ["in", "out"]);
}

/// In front of a verb that brings records together, and behind it.
#[test]
fn batches_around_groups() {
    let scratch = Scratch::new("batches_around_groups");
    let lines: Vec<String> = (0..5000)
        .map(|number| format!("a{} b", number % 700))
        .collect();
    std::fs::write(scratch.path("in"), lines.join("\n")).unwrap();
    let table = read_text([scratch.path("in").to_str().unwrap()], 0);
    let table = table.flat_map(&words("line")).unwrap();
    let upper = |batch: &Gathered, sink: &mut dyn FnMut(&[Value<'_>]) -> Result<(), Error>| {
        (0..batch.len()).try_for_each(|at| {
            let word = text_of(batch, at).to_uppercase();
            sink(&[Value::Bytes(word.as_bytes())])
        })
    };
    let made = vec![Column::new("word", Type::String)];
    let table = table
        .map_batches(&["word"], made.clone(), 100, upper)
        .unwrap();
    let table = table.distinct().unwrap().sort(&[("word", false)]).unwrap();
    let table = table
        .map_batches(&["word"], made, 10, |batch, sink| {
            let all: Vec<String> = (0..batch.len()).map(|at| text_of(batch, at)).collect();
            all.iter()
                .try_for_each(|word| sink(&[Value::Bytes(word.as_bytes())]))
        })
        .unwrap();
    run(
        &table.write(scratch.path("out"), Form::Text).unwrap(),
        16 << 20,
        2,
    )
    .unwrap();
    let mut wanted: Vec<String> = (0..700).map(|number| format!("A{number}")).collect();
    wanted.push("B".to_owned());
    wanted.sort();
    let found = std::fs::read_to_string(scratch.path("out")).unwrap();
    assert!(found.lines().eq(wanted.iter()));
}

#[test]
fn a_batch_that_fails_names_its_first_record() {
    let scratch = Scratch::new("a_batch_that_fails_names_its_first_record");
    let lines: Vec<String> = (0..9000).map(|number| format!("{number:07}")).collect();
    std::fs::write(scratch.path("in"), lines.join("\n")).unwrap();
    let table = read_text([scratch.path("in").to_str().unwrap()], 0);
    let made = vec![Column::new("line", Type::String)];
    let fails = table
        .map_batches(&["line"], made.clone(), 100, |batch, _| {
            match (0..batch.len()).any(|at| text_of(batch, at) == "0008250") {
                true => Err(Error::new(ErrorKind::Function, "calling it", "it failed")),
                false => Ok(()),
            }
        })
        .unwrap();
    let pipeline = fails.write(scratch.path("out"), Form::Text).unwrap();
    let error = run(&pipeline, 16 << 20, 2).unwrap_err();
    // The second chunk, and so a batch, begins with record 8192.
    assert_eq!(error.offset, Some(8192 * 8), "{error}");
    assert_eq!(error.path, Some(scratch.path("in")));
    let wrong = table
        .map_batches(&["line"], made, 100, |_, sink| sink(&[Value::I64(3)]))
        .unwrap();
    let pipeline = wrong.write(scratch.path("out"), Form::Text).unwrap();
    let error = run(&pipeline, 16 << 20, 1).unwrap_err();
    assert_eq!((error.kind, error.offset), (ErrorKind::Function, Some(0)));
    assert_eq!(scratch.names(), ["in"]);
}

/// What is drawn behind a function of batches follows from the records that its were made of and from how many there were, not
/// from when there was room for them; and the first records are those of the table.
#[test]
fn samples_and_orders_behind_batches() {
    let scratch = Scratch::new("samples_and_orders_behind_batches");
    let text: String = (0..20_000).map(|number| format!("{number}\n")).collect();
    std::fs::write(scratch.path("in"), text).unwrap();
    let table = read_text([scratch.path("in").to_str().unwrap()], 0);
    let made = vec![Column::new("line", Type::String)];
    let thrice = table
        .map_batches(&["line"], made, 500, |batch, sink| {
            for at in 0..batch.len() {
                for number in 0..3 {
                    let line = format!("{} {number} {:300}", text_of(batch, at), "");
                    sink(&[Value::Bytes(line.as_bytes())])?;
                }
            }
            Ok(())
        })
        .unwrap();
    let written = |table: &Table, memory_bytes: u64, threads: usize| {
        let pipeline = table.write(scratch.path("out"), Form::Text).unwrap();
        run(&pipeline, memory_bytes, threads).unwrap();
        std::fs::read_to_string(scratch.path("out")).unwrap()
    };
    let whole = written(&thrice, 32 << 20, 2);

    let sample = thrice.sample(0.25, 3).unwrap();
    let kept = written(&sample, 32 << 20, 2);
    assert!(written(&sample, 16 << 20, 1) == kept);
    let count = kept.lines().count() as f64;
    // Ten standard deviations.
    assert!(
        (count - 15_000.0).abs() < 10.0 * (60_000.0f64 * 0.25 * 0.75).sqrt(),
        "{count}"
    );
    let mut left = whole.lines();
    assert!(kept.lines().all(|line| left.any(|other| other == line)));

    let shuffled = thrice.shuffle(5, 0).unwrap();
    let mixed = written(&shuffled, 32 << 20, 2);
    assert!(written(&shuffled, 16 << 20, 1) == mixed);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    assert!(mixed != whole && sorted(&mixed) == sorted(&whole));

    let host = Host::new(RingKind::Posix, false).unwrap();
    for (count, wanted) in [(0, 0), (4, 4), (1000, 1000), (70_000, 60_000)] {
        let (rows, are_first) = thrice.head(count, &host, &Stop::new()).unwrap().unwrap();
        assert!(are_first);
        assert_eq!(rows.len(), wanted);
        let lines = rows.iter().map(|row| match &row[..] {
            [Owned::Bytes(line)] => std::str::from_utf8(line).unwrap(),
            other => panic!("{other:?}"),
        });
        assert!(lines.eq(whole.lines().take(wanted)));
    }
}
