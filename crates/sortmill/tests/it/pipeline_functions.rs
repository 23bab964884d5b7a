//! Verbs with functions of a Rust program, groups of whole numbers, lists and files side by side, held against plain
//! programs over what is in memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sortmill::error::{Error, ErrorKind};
use sortmill::io::{Host, Os, RingKind};
use sortmill::pipeline::{
    Column, Form, Settings, Table, Type, Value, count, each, fields, max, mean, min, paste,
    read_text, sum, unpack, words,
};

use crate::Scratch;
use crate::pipeline::{run, small};
use crate::sort::inputs::{Random, seed};

/// Lines of a key, a number and some text.
struct Lines {
    scratch: Scratch,
    lines: Vec<(i64, u64, String)>,
}

impl Lines {
    fn new(test: &str, line_count: usize, key_count: usize) -> Self {
        let mut random = Random::new(seed(test));
        let scratch = Scratch::new(test);
        let line = |random: &mut Random| {
            // A third of them have one key.
            let key = match random.below(3) {
                0 => -7,
                _ => random.below(key_count) as i64 - 50,
            };
            let number = random.next() >> random.below(60);
            (key, number, format!("a{} b", random.below(90)))
        };
        let lines: Vec<_> = (0..line_count).map(|_| line(&mut random)).collect();
        let text = lines
            .iter()
            .map(|(key, number, text)| format!("{key}\t{number}\t{text}\n"));
        std::fs::write(scratch.path("in.txt"), text.collect::<String>()).unwrap();
        Self { scratch, lines }
    }

    fn table(&self) -> Table {
        let columns = [
            Column::new("key", Type::I64),
            Column::new("number", Type::U64),
            Column::new("text", Type::String),
        ];
        let table = read_text([self.scratch.path("in.txt")], 0);
        table
            .flat_map(&fields("line", "\t", columns.to_vec()))
            .unwrap()
    }

    fn out(&self, name: &str) -> PathBuf {
        self.scratch.path(name)
    }

    /// What a table writes, with little memory and with much, in several threads and in one: the same.
    fn written(&self, table: &Table) -> String {
        let pipeline = table.write(self.out("out"), Form::Text).unwrap();
        let much = Settings {
            memory_bytes: Some(64 << 20),
            threads: Some(1),
            ..Settings::default()
        };
        let all = [small(), much].map(|settings| {
            run(&pipeline, &settings).unwrap();
            std::fs::read_to_string(self.out("out")).unwrap()
        });
        assert!(all[0] == all[1]);
        all[0].clone()
    }

    fn fails(&self, table: &Table, kind: ErrorKind, cause: &str) -> Error {
        let form = Form::csv(false);
        let pipeline = table.write(self.out("failed"), form).unwrap();
        let error = run(&pipeline, &small()).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.to_string().contains(cause), "{error}");
        assert!(!self.out("failed").exists());
        error
    }
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn host() -> Arc<dyn Os> {
    Arc::new(Host::new(RingKind::Posix, false).unwrap())
}

#[test]
fn map_flat_map_and_filter() {
    let lines = Lines::new("map_flat_map_and_filter", 20_000, 300);
    let made = [("text", Type::String), ("even", Type::Bool)];
    let table = lines
        .table()
        .map(["text", "number"], made, |[text, number]| {
            Ok([
                text.text()?.to_uppercase().into(),
                (number.u64()? % 2 == 0).into(),
            ])
        });
    let table = table
        .unwrap()
        .filter(["even"], |[even]| even.bool())
        .unwrap();
    let table = table.flat_map(&words("text")).unwrap();
    let made = [("word", Type::String), ("at", Type::I64)];
    let letters = each(["word"], made, |[word], out| {
        let letters = word.text()?.bytes().enumerate();
        letters
            .into_iter()
            .try_for_each(|(at, letter)| out(&[Value::Bytes(&[letter]), Value::I64(at as i64)]))
    });
    let found = lines.written(&table.flat_map(letters).unwrap());
    let mut wanted = String::new();
    for (_, _, text) in lines.lines.iter().filter(|(_, number, _)| number % 2 == 0) {
        for word in text.to_uppercase().split(' ') {
            for (at, letter) in word.chars().enumerate() {
                wanted += &format!("{letter}\t{at}\n");
            }
        }
    }
    assert!(found == wanted && wanted.len() > 10_000);

    // A function that asks for another type than the column's, and a column that is not there.
    let wrong = lines.table().filter(["key"], |[key]| Ok(key.f64()? > 0.0));
    lines.fails(&wrong.unwrap(), ErrorKind::Function, "i64 ");
    let error = lines
        .table()
        .map(["other"], [("x", Type::Bool)], |_| Ok([true.into()]));
    assert_eq!(error.err().unwrap().kind, ErrorKind::Usage);
}

#[test]
fn whole_groups_are_iterators() {
    let lines = Lines::new("whole_groups_are_iterators", 30_000, 2_000);
    let made = [
        ("key", Type::I64),
        ("first", Type::U64),
        ("rest", Type::U64),
    ];
    let groups = lines.table().group_by(&["key"]).unwrap();
    // Groups of some keys are left before their end, so the next one must begin where it begins.
    let table = groups.apply(&[("number", true)], made, |group, out| {
        let first = group.next().expect("a group has a record");
        let (key, number) = (first[0].value(), first[1].value());
        let rest = match key.i64()? % 3 {
            0 => group.take(5).count(),
            _ => group.count(),
        };
        out(&[key, number, Value::U64(rest as u64)])
    });
    let found = lines.written(&table.unwrap());
    let mut model: BTreeMap<i64, Vec<u64>> = BTreeMap::new();
    for (key, number, _) in &lines.lines {
        model.entry(*key).or_default().push(*number);
    }
    let line = |(key, numbers): (&i64, &Vec<u64>)| {
        let rest = numbers.len() - 1;
        let rest = if key % 3 == 0 { rest.min(5) } else { rest };
        format!("{key}\t{}\t{rest}", numbers.iter().max().unwrap())
    };
    let mut wanted: Vec<String> = model.iter().map(line).collect();
    wanted.sort_unstable();
    assert!(sorted(&found) == wanted);

    // One that makes more than is handed over at once, and one that fails in the midst of it.
    let many = groups.apply(&[], [("key", Type::I64)], |group, out| {
        group.try_for_each(|record| (0..3).try_for_each(|_| out(&[record[0].value()])))
    });
    let found = lines.written(&many.unwrap());
    let keys = lines
        .lines
        .iter()
        .flat_map(|(key, _, _)| [key; 3])
        .map(i64::to_string);
    let mut wanted: Vec<String> = keys.collect();
    wanted.sort_unstable();
    assert!(sorted(&found) == wanted);
    let failing = groups.apply(&[], [("key", Type::I64)], |group, _| match group.count() {
        0..1_000 => Ok(()),
        _ => Err(Error::new(ErrorKind::Function, "asking", "no answer")),
    });
    lines.fails(&failing.unwrap(), ErrorKind::Function, "no answer");
    let wrong = groups.apply(&[], [("key", Type::I64)], |_, out| {
        out(&[Value::Bool(true)])
    });
    lines.fails(&wrong.unwrap(), ErrorKind::Function, "which is not (i64)");
}

/// Records of a fixed size instead of pairs, with most groups kept in tables and with few, in front of other verbs and
/// behind them.
#[test]
fn groups_of_whole_numbers() {
    let lines = Lines::new("groups_of_whole_numbers", 60_000, 9_000);
    let asked = [
        count(),
        min("number").named("min"),
        max("number").named("max"),
        max("key").named("same"),
    ];
    let table = lines
        .table()
        .group_by(&["key"])
        .unwrap()
        .agg(&asked)
        .unwrap();
    let mut model: BTreeMap<i64, (u64, u64, u64)> = BTreeMap::new();
    for &(key, number, _) in &lines.lines {
        let one = model.entry(key).or_insert((0, u64::MAX, 0));
        *one = (one.0 + 1, one.1.min(number), one.2.max(number));
    }
    let line = |(key, (count, min, max)): (&i64, &(u64, u64, u64))| {
        format!("{key}\t{count}\t{min}\t{max}\t{key}")
    };
    let mut wanted: Vec<String> = model.iter().map(line).collect();
    wanted.sort_unstable();
    assert!(sorted(&lines.written(&table)) == wanted);

    // Of counts their own, and groups without an aggregate.
    let counts = table
        .group_by(&["count"])
        .unwrap()
        .agg(&[sum("same")])
        .unwrap();
    let mut model_of_counts: BTreeMap<u64, i64> = BTreeMap::new();
    for (key, (count, _, _)) in &model {
        *model_of_counts.entry(*count).or_default() += key;
    }
    let all = model_of_counts
        .iter()
        .map(|(count, sum)| format!("{count}\t{sum}"));
    let mut wanted: Vec<String> = all.collect();
    wanted.sort_unstable();
    assert!(sorted(&lines.written(&counts)) == wanted);
    let keys = lines.table().select(&["key"]).unwrap().distinct().unwrap();
    let mut wanted: Vec<String> = model.keys().map(i64::to_string).collect();
    wanted.sort_unstable();
    assert!(sorted(&lines.written(&keys)) == wanted);

    // Others are pairs, and their groups come in the same order.
    let means = lines.table().group_by(&["key"]).unwrap();
    let means = means.agg(&[mean("number")]).unwrap();
    let key = |line: &str| line.split('\t').next().map(str::to_owned);
    let order = lines.written(&means);
    assert!(
        order
            .lines()
            .map(key)
            .eq(lines.written(&table).lines().map(key))
    );

    // A sum that no u64 holds.
    let sums = lines.table().group_by(&["key"]).unwrap();
    let sums = sums.agg(&[sum("number")]).unwrap();
    let total = |wanted: i64| -> u128 {
        let these = lines.lines.iter().filter(|(key, _, _)| *key == wanted);
        these.map(|&(_, number, _)| u128::from(number)).sum()
    };
    assert!(total(-7) > u128::from(u64::MAX));
    lines.fails(&sums, ErrorKind::Input, "beyond what u64 holds");
}

#[test]
fn lists_and_files_side_by_side() {
    let lines = Lines::new("lists_and_files_side_by_side", 30_000, 5_000);
    let write = |table: &Table, name: &str| -> (PathBuf, Vec<Column>) {
        let pipeline = table.write(lines.out(name), Form::Rows).unwrap();
        run(&pipeline, &small()).unwrap();
        (lines.out(name), table.columns().to_vec())
    };
    let positive = lines
        .table()
        .filter(["key"], |[key]| Ok(key.i64()? >= 0))
        .unwrap();
    let lists = positive
        .group_by(&["key"])
        .unwrap()
        .pack("number", "list")
        .unwrap();
    let few = lines
        .table()
        .filter(["number"], |[number]| Ok(number.u64()? < 1000))
        .unwrap();
    let counts = few.group_by(&["key"]).unwrap().agg(&[count()]).unwrap();
    let means = lines.table().group_by(&["key"]).unwrap();
    let means = means
        .agg(&[mean("number"), min("text").named("least")])
        .unwrap();
    let files = [
        write(&lists, "lists"),
        write(&counts, "counts"),
        write(&means, "means"),
    ];
    let side_by_side = |files: &[(PathBuf, Vec<Column>)]| {
        let files: Vec<(&Path, &[Column])> =
            files.iter().map(|(path, of)| (&**path, &**of)).collect();
        paste(host(), &files)
    };
    let table = side_by_side(&files).unwrap();
    let made = [
        ("key", Type::I64),
        ("list", Type::String),
        ("rest", Type::String),
    ];
    let wanted_columns = ["key", "list", "count", "least"];
    let table = table.map(wanted_columns, made, |[key, list, count, least]| {
        let numbers: Vec<String> = unpack(list.bytes())
            .map(|number| number.to_string())
            .collect();
        let rest = format!("{} {}", count.u64()?, least.text()?);
        Ok([key.i64()?.into(), numbers.join(" ").into(), rest.into()])
    });
    let found = lines.written(&table.unwrap());
    let mut model: BTreeMap<i64, (Vec<u64>, u64, &str)> = BTreeMap::new();
    for (key, number, text) in &lines.lines {
        let (list, count, least) = model.entry(*key).or_insert((Vec::new(), 0, text));
        if *key >= 0 {
            list.push(*number);
        }
        *count += u64::from(*number < 1000);
        *least = (*least).min(text);
    }
    let line = |(key, (mut list, count, least)): (i64, (Vec<u64>, u64, &str))| {
        list.sort_unstable();
        let list: Vec<String> = list.iter().map(u64::to_string).collect();
        format!("{key}\t{}\t{count} {least}", list.join(" "))
    };
    assert!(model.values().any(|one| one.0.is_empty()) && model.values().any(|one| one.1 == 0));
    let mut wanted: Vec<String> = model.into_iter().map(line).collect();
    wanted.sort_unstable();
    assert!(sorted(&found) == wanted);

    // A file in another order, one that is cut off, one that is not there, and columns that do not go together.
    let by_key = write(&counts.sort(&[("key", false)]).unwrap(), "by key");
    let pasted = side_by_side(&[files[0].clone(), by_key]).unwrap();
    let error = lines.fails(
        &pasted,
        ErrorKind::Input,
        "not in the order in which groups come",
    );
    assert!(error.path.as_ref().unwrap().ends_with("by key"));
    let bytes = std::fs::read(&files[2].0).unwrap();
    std::fs::write(&files[2].0, &bytes[..bytes.len() - 3]).unwrap();
    let error = lines.fails(
        &side_by_side(&files).unwrap(),
        ErrorKind::Input,
        "the file ends within a record",
    );
    assert!(error.path.as_ref().unwrap().ends_with("means"), "{error}");
    assert!(
        error
            .offset
            .is_some_and(|offset| offset < bytes.len() as u64 && offset > 0)
    );
    std::fs::remove_file(&files[2].0).unwrap();
    let error = run(
        &side_by_side(&files)
            .unwrap()
            .write(lines.out("failed"), Form::Text)
            .unwrap(),
        &small(),
    );
    assert!(error.unwrap_err().path.as_ref().unwrap().ends_with("means"));
    let twice = side_by_side(&[files[1].clone(), files[1].clone()]);
    assert_eq!(twice.err().unwrap().kind, ErrorKind::Usage);
    let text = lines
        .table()
        .group_by(&["key"])
        .unwrap()
        .pack("text", "list");
    assert_eq!(text.err().unwrap().kind, ErrorKind::Usage);
}
