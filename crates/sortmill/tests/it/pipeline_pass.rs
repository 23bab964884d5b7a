//! Tables that nothing is brought together of: in one pass, in the order of the input.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sortmill::error::{Error, ErrorKind};
use sortmill::io::codec::{CODECS, Codec};
use sortmill::io::{Host, RingKind};
use sortmill::job::Tuning;
use sortmill::pipeline::{Form, Pipeline, Settings, Table, Type, Value, each, read_text, words};
use sortmill::queue::Stop;

use crate::Scratch;
use crate::pipeline::{run, small};
use crate::sort::inputs::{Random, seed};
use crate::sort::packed::{packed, unpacked};

/// Texts of very uneven lines, one of them compressed, and all lines in their order.
struct Texts {
    scratch: Scratch,
    lines: Vec<String>,
}

impl Texts {
    fn new(test: &str) -> Self {
        let mut random = Random::new(seed(test));
        let scratch = Scratch::new(test);
        let mut lines = Vec::new();
        for name in ["a.txt", "b.txt.zst", "c.txt"] {
            let count = 2_000 + random.below(4_000);
            let mut of_file: Vec<String> = Vec::new();
            for _ in 0..count {
                let often = 1 << random.below(7);
                let word_count = random.below(often);
                let words = (0..word_count).map(|_| format!("w{}", random.below(1000)));
                of_file.push(words.collect::<Vec<_>>().join(" "));
            }
            let text = of_file.join("\n") + "\n";
            let bytes = match name.ends_with("zst") {
                true => packed(Codec::Zstd, text.as_bytes()),
                false => text.into_bytes(),
            };
            std::fs::write(scratch.path(name), bytes).unwrap();
            lines.extend(of_file);
        }
        Self { scratch, lines }
    }

    fn table(&self) -> Table {
        read_text([self.scratch.path("*.txt*")], 0)
    }

    /// Each line with its words told apart, but for those that have none; and what that should be.
    fn marked(&self) -> (Table, String) {
        let table = self
            .table()
            .filter(["line"], |[line]| Ok(!line.bytes().is_empty()))
            .unwrap();
        let made = [("line", Type::String), ("words", Type::U64)];
        let table = table.flat_map(each(["line"], made, |[line], out| {
            let count = line.text()?.split(' ').count() as u64;
            // Lines of many words come often, so that some chunks make much more than others.
            (0..=count / 8).try_for_each(|_| out(&[line, Value::U64(count)]))
        }));
        let mut wanted = String::new();
        for line in self.lines.iter().filter(|line| !line.is_empty()) {
            let count = line.split(' ').count();
            (0..=count / 8).for_each(|_| wanted += &format!("{line}\t{count}\n"));
        }
        (table.unwrap(), wanted)
    }

    fn pipeline(&self, table: &Table, form: Form) -> Pipeline {
        table.write(self.scratch.path("out"), form).unwrap()
    }

    fn out(&self) -> String {
        std::fs::read_to_string(self.scratch.path("out")).unwrap()
    }
}

#[test]
fn records_pass_in_order_without_being_spilled() {
    let texts = Texts::new("records_pass_in_order_without_being_spilled");
    let (table, wanted) = texts.marked();
    let pipeline = texts.pipeline(&table, Form::Text);
    let host = Host::new(RingKind::Posix, false).unwrap();
    let explained = pipeline.explain(&small(), &host).unwrap();
    assert!(
        explained.contains("keeps the order of the input: one pass"),
        "{explained}"
    );
    assert!(explained.contains("passes           1\n"), "{explained}");
    for threads in [1, 2, 5] {
        let settings = Settings {
            threads: Some(threads),
            memory_bytes: Some(if threads > 2 { 16 << 20 } else { 6 << 20 }),
            ..small()
        };
        let report = run(&pipeline, &settings).unwrap();
        assert!(texts.out() == wanted);
        let [phase] = &report.phases[..] else {
            panic!("one phase");
        };
        let bytes = &phase.report.bytes;
        assert_eq!((bytes.temp_written, bytes.temp_read), (0, 0));
        assert_eq!(bytes.output, wanted.len() as u64);
        let fingerprints = &phase.report.fingerprints;
        assert_eq!(fingerprints.distributed, fingerprints.gathered);
        assert_eq!(fingerprints.written.records, wanted.lines().count() as u64);
        let names: Vec<&str> = phase.report.phases.iter().map(|one| &*one.name).collect();
        assert_eq!(names, ["pass"]);
    }
    // Nothing at all, a heading alone, and compressed.
    let none = table
        .filter(["words"], |[words]| Ok(words.u64()? > 1_000))
        .unwrap();
    run(&texts.pipeline(&none, Form::Text), &small()).unwrap();
    assert_eq!(texts.out(), "");
    run(&texts.pipeline(&none, Form::csv(true)), &small()).unwrap();
    assert_eq!(texts.out(), "line,words\n");
    let compressed = table
        .write(texts.scratch.path("out.zst"), Form::Text)
        .unwrap();
    let more = Settings {
        memory_bytes: Some(24 << 20),
        ..small()
    };
    run(&compressed, &more).unwrap();
    let bytes = std::fs::read(texts.scratch.path("out.zst")).unwrap();
    assert!(unpacked(Codec::Zstd, &bytes) == wanted.as_bytes());
    // For files of equal counts records are counted before they are written.
    let files = table
        .write(texts.scratch.path("files"), Form::Text)
        .unwrap();
    let report = run(&files.in_files(3).unwrap(), &small()).unwrap();
    assert_eq!(report.phases[0].report.phases[0].name, "distribute");
}

#[test]
fn a_function_that_fails_leaves_what_was_there() {
    let texts = Texts::new("a_function_that_fails_leaves_what_was_there");
    std::fs::write(texts.scratch.path("out"), "old").unwrap();
    let calls = Arc::new(AtomicU64::new(0));
    for at in [0, 700, 5_000] {
        let seen = Arc::clone(&calls);
        seen.store(0, Ordering::SeqCst);
        let table = texts.table().filter(["line"], move |_| {
            match seen.fetch_add(1, Ordering::SeqCst) < at {
                true => Ok(true),
                false => Err(Error::new(ErrorKind::Function, "asking", "no answer")),
            }
        });
        let pipeline = texts.pipeline(&table.unwrap(), Form::Text);
        let error = run(&pipeline, &small()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Function, "{error}");
        assert!(error.path.is_some() && error.offset.is_some(), "{error}");
        assert_eq!(texts.out(), "old");
    }
    let stop = Stop::new();
    let ended = stop.clone();
    let table = texts.table().flat_map(&words("line")).unwrap();
    let table = table.filter(["word"], move |_| {
        ended.fail(Error::new(ErrorKind::Interrupted, "waiting", "enough"));
        Ok(true)
    });
    let host = Host::new(RingKind::Posix, false).unwrap();
    let pipeline = texts.pipeline(&table.unwrap(), Form::Text);
    let error = pipeline.run(&small(), &host, &stop).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Interrupted, "{error}");
    assert_eq!(texts.out(), "old");
    let names = ["a.txt", "b.txt.zst", "c.txt", "out"];
    assert_eq!(texts.scratch.names(), names);
}

/// What is made of early chunks is long in coming, so that later ones wait, and no more of them than there is room for.
#[test]
fn what_waits_for_its_turn_is_bounded() {
    let scratch = Scratch::new("what_waits_for_its_turn_is_bounded");
    let line = "x".repeat(99) + "\n";
    std::fs::write(scratch.path("in.txt"), line.repeat(20_000)).unwrap();
    let table = read_text([scratch.path("in.txt")], 0);
    let table = table.flat_map(each(["line"], [("line", Type::String)], |[line], out| {
        (0..20).try_for_each(|_| out(&[line]))
    }));
    let pipeline = table
        .unwrap()
        .write(scratch.path("out"), Form::Text)
        .unwrap();
    let settings = Settings {
        memory_bytes: Some(8 << 20),
        threads: Some(4),
        tuning: Tuning {
            chunk_bytes: Some(64 << 10),
            ..small().tuning
        },
        ..small()
    };
    let report = run(&pipeline, &settings).unwrap();
    assert_eq!(
        std::fs::metadata(scratch.path("out")).unwrap().len(),
        40_000_000
    );
    let holders = &report.phases[0].report.memory.holders;
    assert!(
        holders
            .iter()
            .all(|holder| holder.peak_bytes <= holder.limit_bytes),
        "{holders:?}"
    );
}

/// Compressed inputs of very uneven lengths, an empty one and a plain one among them, are decompressed side by side: of any
/// memory and for any threads their records come in the order of the inputs, and their lines are counted right.
#[test]
fn compressed_inputs_that_are_ahead_wait_for_their_turn() {
    let test = "compressed_inputs_that_are_ahead_wait_for_their_turn";
    let mut random = Random::new(seed(test));
    let scratch = Scratch::new(test);
    let mut wanted = String::new();
    for number in 0..9 {
        // The first one is the longest, and others are decompressed long before it.
        let count = match number {
            0 => 20_000,
            4 => 0,
            _ => 1_000 + random.below(5_000),
        };
        let mut text = String::new();
        let path = scratch.path(&format!("in-{number}"));
        for line in 1..=count {
            let words = format!("{} {}", random.below(1000), "x".repeat(random.below(60)));
            text += &format!("{words}\n");
            wanted += &format!("{words}\t{}\t{line}\n", path.display());
        }
        let codec = CODECS[random.below(CODECS.len())];
        let bytes = match number {
            6 => text.into_bytes(),
            _ => packed(codec, text.as_bytes()),
        };
        std::fs::write(path, bytes).unwrap();
    }
    let table = read_text([scratch.path("in-*")], 0);
    let table = table.with_place(Some("file"), Some("number")).unwrap();
    let pipeline = table.write(scratch.path("out"), Form::Text).unwrap();
    let host = Host::new(RingKind::Posix, false).unwrap();
    for (threads, mib) in [(1, 96), (2, 96), (3, 144), (2, 192)] {
        let settings = Settings {
            threads: Some(threads),
            memory_bytes: Some(mib << 20),
            ..small()
        };
        let report = run(&pipeline, &settings).unwrap();
        let found = std::fs::read_to_string(scratch.path("out")).unwrap();
        assert!(found == wanted, "{threads} threads, {mib} MiB");
        let [phase] = &report.phases[..] else {
            panic!("one phase");
        };
        assert_eq!(phase.report.bytes.temp_written, 0);
        let decoders = phase.report.plan.decoders.as_ref().unwrap();
        let is_ahead = decoders.count > 1 && decoders.ahead_count > 0;
        assert_eq!(is_ahead, threads > 1, "{threads} threads, {decoders:?}");
        let explained = pipeline.explain(&settings, &host).unwrap();
        assert_eq!(explained.contains("ahead of their turn"), is_ahead);
        let holders = &phase.report.memory.holders;
        let mut each = holders.iter();
        assert!(
            each.all(|holder| holder.peak_bytes <= holder.limit_bytes),
            "{holders:?}"
        );
    }
    // One that is damaged ends the job, whenever it is found.
    let bytes = std::fs::read(scratch.path("in-8")).unwrap();
    std::fs::write(scratch.path("in-8"), &bytes[..bytes.len() - 3]).unwrap();
    let more = Settings {
        memory_bytes: Some(96 << 20),
        ..small()
    };
    let error = run(&pipeline, &more).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Input, "{error}");
    assert!(error.path.as_ref().unwrap().ends_with("in-8"));
    assert!(std::fs::read_to_string(scratch.path("out")).unwrap() == wanted);
}

#[cfg(feature = "tamper")]
mod planted {
    use super::*;
    use sortmill::io::sim::Sim;
    use sortmill::job::{Input, Job, Output, each};
    use sortmill::order::Format;
    use sortmill::run;
    use sortmill::tamper::Border;

    /// A record that is lost, doubled or altered on its way is found before the output has its name.
    #[test]
    fn what_happens_to_a_record_on_its_way_is_found() {
        for deed in 0..3 {
            let sim = Sim::new(7);
            sim.put("/in", "some line\n".repeat(5_000).as_bytes());
            sim.put("/out", b"old");
            let out = Output::Path("/out".into());
            let mut job = Job::new(vec![Input::Path("/in".into())], out, Format::Lines);
            job.memory_bytes = Some(6 << 20);
            job.tuning.chunk_bytes = Some(4096);
            job.map = Some(each(|line, made| made.push_pair(&[], line)));
            job.map_makes_pairs = true;
            job.passes_on = true;
            job.boundaries = sortmill::job::Boundaries::Uniform;
            job.reduce_makes_bytes = Some(Vec::new());
            job.reduce = Some(Arc::new(|| {
                Box::new(|pair, out| {
                    if let Some(pair) = pair {
                        out.put(&pair[8..]);
                    }
                })
            }));
            let left = AtomicU64::new(2);
            job.tamper = Some(Arc::new(move |here, records| {
                if here != Border::Partition
                    || records.is_empty()
                    || left.fetch_sub(1, Ordering::SeqCst) != 1
                {
                    return;
                }
                match deed {
                    0 => drop(records.pop()),
                    1 => records.push(records[0].clone()),
                    _ => *records[0].last_mut().unwrap() ^= 1,
                }
            }));
            let result = run::sort(&job, &sim, &Stop::new());
            let error = result.expect_err("it was seen");
            assert_eq!(error.kind, ErrorKind::Lost, "{error}");
            assert_eq!(sim.get("/out").unwrap(), b"old");
        }
    }
}
