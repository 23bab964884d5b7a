//! Functions of two records, held against plain loops over what is in memory.
//!
//! The records are maps `x -> a x + b` modulo a prime, and what reduces them puts one behind the other: that is associative and
//! not commutative, so whoever loses, doubles or turns two of a group around makes another map of it.

use std::collections::BTreeMap;
use std::path::Path;

use sortmill::error::{ErrorKind, Result};
use sortmill::io::codec::Codec;
use sortmill::job::Tuning;
use sortmill::pipeline::{
    Form, Groups, Owned, PipelineReport, Settings, Table, Type, Value, columns_of, fields,
    read_text,
};

use crate::Scratch;
use crate::pipeline::{run, small};
use crate::sort::inputs::{Random, seed};
use crate::sort::packed::packed;

const PRIME: u64 = 2_147_483_647;
const BARE: Form = Form::csv(false);

/// What a few batches are held in as well.
fn settings() -> Settings {
    Settings {
        memory_bytes: Some(12 << 20),
        ..small()
    }
}

/// Key, then the map.
type Record = (String, u64, u64);

fn composed(before: (u64, u64), after: (u64, u64)) -> (u64, u64) {
    let scale = before.0 * after.0 % PRIME;
    (scale, (before.1 * after.0 + after.1) % PRIME)
}

fn compose(kept: &mut [Owned], record: &[Value<'_>]) -> Result<()> {
    let before = (kept[1].value().u64()?, kept[2].value().u64()?);
    let made = composed(before, (record[1].u64()?, record[2].u64()?));
    (kept[1], kept[2]) = (made.0.into(), made.1.into());
    Ok(())
}

/// Records of `key_count` keys, of which one has `hot` of a hundred.
fn records(random: &mut Random, count: usize, key_count: usize, hot: usize) -> Vec<Record> {
    let one = |_| {
        let key = match random.below(100) < hot {
            true => "hot".to_owned(),
            false => format!("k{}", random.below(key_count)),
        };
        let map = [(); 2].map(|()| random.below(PRIME as usize) as u64);
        (key, map[0], map[1])
    };
    (0..count).map(one).collect()
}

/// A table of the records, in a file that is split and one that is not.
fn table(scratch: &Scratch, records: &[Record]) -> Table {
    let text = |records: &[Record]| -> String {
        let lines = records.iter().map(|(key, a, b)| format!("{key} {a} {b}\n"));
        lines.collect()
    };
    let (first, rest) = records.split_at(records.len() / 3);
    std::fs::write(
        scratch.path("a.txt.gz"),
        packed(Codec::Gzip, text(first).as_bytes()),
    )
    .unwrap();
    std::fs::write(scratch.path("b.txt"), text(rest)).unwrap();
    let names = ["a.txt.gz", "b.txt"].map(|name| scratch.path(name).to_string_lossy().into_owned());
    let columns = columns_of([("key", Type::String), ("a", Type::U64), ("b", Type::U64)]);
    read_text(names, 0)
        .flat_map(&fields("line", " ", columns))
        .unwrap()
}

fn reduced(
    scratch: &Scratch,
    table: &Table,
    reduce: impl Fn(&Groups) -> Result<Table>,
) -> (Vec<String>, PipelineReport) {
    let made = reduce(&table.group_by(&["key"]).unwrap()).unwrap();
    let out = scratch.path("out");
    let report = run(&made.write(&out, BARE).unwrap(), &settings()).unwrap();
    (lines(&out), report)
}

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

fn model(records: &[Record], add: impl Fn((u64, u64), (u64, u64)) -> (u64, u64)) -> Vec<String> {
    let mut model: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (key, a, b) in records {
        let kept = model
            .get(&**key)
            .map_or((*a, *b), |&kept| add(kept, (*a, *b)));
        model.insert(key, kept);
    }
    let mut lines: Vec<String> = model
        .iter()
        .map(|(key, (a, b))| format!("{key},{a},{b}"))
        .collect();
    lines.sort_unstable();
    lines
}

#[test]
fn an_associative_reduce_is_combined_and_keeps_the_order() {
    let mut random = Random::new(seed("reduce"));
    for (key_count, hot, is_combined) in [
        (5, 0, true),
        (300, 30, true),
        (1 << 20, 0, false),
        (1, 100, true),
    ] {
        let scratch = Scratch::new("reduce");
        let records = records(&mut random, 60_000, key_count, hot);
        let table = table(&scratch, &records);
        let (found, report) = reduced(&scratch, &table, |groups| groups.reduce(compose));
        assert_eq!(
            found,
            model(&records, composed),
            "{key_count} keys, {hot} %"
        );
        let came = report.phases[0].report.fingerprints.distributed.records;
        match is_combined {
            // A batch is a chunk of 16 KiB here, of some 600 records.
            true => assert!(came < 30_000, "{came} of {key_count} keys, {hot} %"),
            false => assert!(came > 59_000, "{came}"),
        }
    }
}

/// What is added one after the other need not be associative, and is not combined.
#[test]
fn a_fold_takes_all_records_in_order() {
    let mut random = Random::new(seed("fold"));
    let scratch = Scratch::new("fold");
    let records = records(&mut random, 20_000, 30, 10);
    let table = table(&scratch, &records);
    let add = |kept: (u64, u64), one: (u64, u64)| ((3 * kept.0 + one.0) % PRIME, kept.1 + 1);
    let (found, report) = reduced(&scratch, &table, |groups| {
        groups.fold(move |kept, record| {
            let kept_now = (kept[1].value().u64()?, kept[2].value().u64()?);
            let made = add(kept_now, (record[1].u64()?, record[2].u64()?));
            (kept[1], kept[2]) = (made.0.into(), made.1.into());
            Ok(())
        })
    });
    assert_eq!(found, model(&records, add));
    assert_eq!(
        report.phases[0].report.fingerprints.distributed.records,
        20_000
    );
}

/// A function that writes over the key used to be able to; its part of a group would go to another one.
#[test]
fn what_is_reduced_stays_in_its_group() {
    let mut random = Random::new(seed("reduce-key"));
    let scratch = Scratch::new("reduce-key");
    let records = records(&mut random, 5_000, 10, 0);
    let table = table(&scratch, &records);
    let renaming = |kept: &mut [Owned], record: &[Value<'_>]| {
        kept[0] = "another".into();
        compose(kept, record)
    };
    for is_fold in [false, true] {
        let (found, _) = reduced(&scratch, &table, |groups| match is_fold {
            true => groups.fold(renaming),
            false => groups.reduce(renaming),
        });
        assert_eq!(found, model(&records, composed));
    }
}

/// What comes of a verb that brings records together is cut by the memory, too: it is reduced whole.
#[test]
fn behind_another_verb_nothing_is_combined() {
    let mut random = Random::new(seed("reduce-behind"));
    let scratch = Scratch::new("reduce-behind");
    let records = records(&mut random, 10_000, 10, 0);
    let table = table(&scratch, &records).sort(&[("a", true)]).unwrap();
    let (found, report) = reduced(&scratch, &table, |groups| groups.reduce(compose));
    let mut in_order = records.clone();
    in_order.sort_by_key(|&(_, a, _)| std::cmp::Reverse(a));
    assert_eq!(found, model(&in_order, composed));
    assert_eq!(
        report.phases[1].report.fingerprints.distributed.records,
        10_000
    );
}

#[test]
fn what_fails_while_it_is_combined_has_a_place() {
    let mut random = Random::new(seed("reduce-fails"));
    let scratch = Scratch::new("reduce-fails");
    let mut records = records(&mut random, 3_000, 20, 0);
    (records[2_500].1, records[2_500].0) = (PRIME, "k1".to_owned());
    let table = table(&scratch, &records);
    let made = table.group_by(&["key"]).unwrap().reduce(|kept, record| {
        if record[1].u64()? == PRIME || kept[1].value().u64()? == PRIME {
            let cause = "no number modulo a prime";
            return Err(sortmill::error::Error::new(
                ErrorKind::Function,
                "adding",
                cause,
            ));
        }
        compose(kept, record)
    });
    let made = made.unwrap().write(scratch.path("out"), BARE).unwrap();
    let error = run(&made, &settings()).expect_err("a number is too large");
    assert_eq!(error.kind, ErrorKind::Function, "{error}");
    assert!(
        error.cause.starts_with("no number modulo a prime, in the "),
        "{error}"
    );
    assert_eq!(error.path.as_deref(), Some(&*scratch.path("b.txt")));
    let at = error.offset.expect("it has a place") as usize;
    let text = std::fs::read(scratch.path("b.txt")).unwrap();
    let wrong = text
        .windows(13)
        .position(|window| window == b"k1 2147483647")
        .unwrap();
    // Where the records begin that were looked at together.
    assert!(at <= wrong && wrong < at + (16 << 10), "{at} {wrong}");
}

/// Sums of floats depend on the order and on what was added first: not on memory and threads, nor on where the bytes come from.
#[test]
fn the_same_bytes_of_what_is_associative_only_nearly() {
    let mut random = Random::new(seed("reduce-floats"));
    let scratch = Scratch::new("reduce-floats");
    let lines: String = (0..40_000)
        .map(|_| {
            let scale = 10f64.powi(random.below(30) as i32 - 15);
            let float = random.below(1 << 30) as f64 * scale;
            format!("{} {float}\n", random.below(50))
        })
        .collect();
    std::fs::write(scratch.path("in.txt"), &lines).unwrap();
    std::fs::write(
        scratch.path("in.txt.gz"),
        packed(Codec::Gzip, lines.as_bytes()),
    )
    .unwrap();
    let columns = columns_of([("key", Type::I64), ("float", Type::F64)]);
    let mut outputs = Vec::new();
    for (name, memory_bytes, threads) in [
        ("in.txt", 12 << 20, 2),
        ("in.txt", 200 << 20, 1),
        ("in.txt", 64 << 20, 5),
        ("in.txt.gz", 20 << 20, 2),
        ("in.txt.gz", 200 << 20, 3),
    ] {
        let table = read_text([scratch.path(name)], 0);
        let table = table
            .flat_map(&fields("line", " ", columns.clone()))
            .unwrap();
        let sums = table.group_by(&["key"]).unwrap().reduce(|kept, record| {
            kept[1] = (kept[1].value().f64()? + record[1].f64()?).into();
            Ok(())
        });
        let out = scratch.path("out");
        let settings = Settings {
            memory_bytes: Some(memory_bytes),
            threads: Some(threads),
            ..small()
        };
        let report = run(&sums.unwrap().write(&out, BARE).unwrap(), &settings).unwrap();
        let came = report.phases[0].report.fingerprints.distributed.records;
        assert!(came < 20_000, "{came}");
        outputs.push(std::fs::read(&out).unwrap());
    }
    assert!(outputs.windows(2).all(|two| two[0] == two[1]));
}

/// Where few records of a batch have a group in common all pass, and the sum is the same.
#[test]
fn it_stands_aside_where_it_does_not_pay() {
    let mut random = Random::new(seed("reduce-aside"));
    for (key_count, came_least, came_most) in [(30_000, 50_000, 50_000), (2_000, 0, 45_000)] {
        let scratch = Scratch::new("reduce-aside");
        let records = records(&mut random, 50_000, key_count, 0);
        let table = table(&scratch, &records);
        let made = table.group_by(&["key"]).unwrap().reduce(compose).unwrap();
        let settings = Settings {
            memory_bytes: Some(64 << 20),
            tuning: Tuning {
                chunk_bytes: Some(256 << 10),
                ..small().tuning
            },
            ..small()
        };
        let out = scratch.path("out");
        let report = run(&made.write(&out, BARE).unwrap(), &settings).unwrap();
        assert_eq!(lines(&out), model(&records, composed), "{key_count} keys");
        let came = report.phases[0].report.fingerprints.distributed.records;
        assert!(
            (came_least..=came_most).contains(&came),
            "{came} of {key_count}"
        );
    }
}

/// Of a function that makes another type; numbers of another sign and floats used to come out of it.
#[test]
fn a_wrong_type_is_told_while_it_is_combined() {
    let mut random = Random::new(seed("reduce-type"));
    let scratch = Scratch::new("reduce-type");
    let records = records(&mut random, 100, 3, 0);
    let table = table(&scratch, &records);
    for wrong in [Owned::from(-1i64), Owned::from(0.5), Owned::from("text")] {
        let made = table.group_by(&["key"]).unwrap().reduce(move |kept, _| {
            kept[1] = wrong.clone();
            Ok(())
        });
        let made = made.unwrap().write(scratch.path("out"), BARE).unwrap();
        let error = run(&made, &settings()).expect_err("the column is of another type");
        assert_eq!(error.kind, ErrorKind::Function, "{error}");
    }
}
