//! Values that are missing, through every verb, and quantiles, held against plain programs over what is in memory.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;
use sortmill::error::{Error, ErrorKind};
use sortmill::pipeline::{
    Aggregate, Column, Csv, Form, Gathered, MakeRows, Order, Owned, Settings, Table, Type, Value,
    approx_count_distinct, approx_quantile, count, count_distinct, count_values, fields, first,
    from_iter, matches, max, mean, min, quantile, read_csv, read_jsonl, split, sum,
};

use crate::Scratch;
use crate::pipeline::{run, small};
use crate::sort::inputs::{Random, seed};

const BARE: Form = Form::csv(false);

/// A record of a name, a whole number, a float and a truth, any of which may be missing.
#[derive(Clone, Default)]
struct Record {
    name: Option<String>,
    whole: Option<i64>,
    float: Option<f64>,
    truth: Option<bool>,
}

fn columns() -> Vec<Column> {
    let names = [
        ("name", Type::String),
        ("whole", Type::I64),
        ("float", Type::F64),
        ("truth", Type::Bool),
    ];
    names
        .map(|(name, kind)| Column::new(name, kind).or_null())
        .to_vec()
}

fn records(random: &mut Random, count: usize) -> Vec<Record> {
    let one = |_| {
        let mut there = || random.below(4) > 0;
        let there = [there(), there(), there(), there()];
        let names = 1 << random.below(8);
        let name = match random.below(names) {
            0 => String::new(),
            number => format!("name {number}"),
        };
        // Sums of multiples of 1/64 are exact in any order.
        Record {
            name: there[0].then_some(name),
            whole: there[1].then_some(random.below(2000) as i64 - 1000),
            float: there[2].then_some((random.below(1 << 16) as f64 - 30_000.0) / 64.0),
            truth: there[3].then_some(random.below(2) == 0),
        }
    };
    (0..count).map(one).collect()
}

/// As JSON lines, with what is missing left out or null.
fn as_json(records: &[Record], random: &mut Random) -> String {
    let mut text = String::new();
    for Record {
        name,
        whole,
        float,
        truth,
    } in records
    {
        let all = json!({"name": name, "whole": whole, "float": float, "truth": truth});
        let members = all.as_object().unwrap().iter();
        let members = members.filter(|(_, value)| !value.is_null() || random.below(2) == 0);
        let members: Vec<String> = members
            .map(|(name, value)| format!("\"{name}\":{value}"))
            .collect();
        text += &format!("{{{}}}\n", members.join(","));
    }
    text
}

/// What a table writes, with little memory and with much, in several threads and in one: the same.
fn written(scratch: &Scratch, table: &Table, form: Form) -> String {
    written_in(scratch, table, form, small())
}

fn written_in(scratch: &Scratch, table: &Table, form: Form, little: Settings) -> String {
    let pipeline = table.write(scratch.path("out"), form).unwrap();
    let much = Settings {
        memory_bytes: Some(64 << 20),
        threads: Some(1),
        ..Settings::default()
    };
    let mut all = Vec::new();
    for settings in [little, much] {
        run(&pipeline, &settings).unwrap();
        all.push(std::fs::read_to_string(scratch.path("out")).unwrap());
    }
    assert!(all[1] == all[0]);
    all.swap_remove(0)
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn path(scratch: &Scratch, name: &str) -> String {
    scratch.path(name).to_string_lossy().into_owned()
}

#[test]
fn aggregates_pass_by_what_is_missing() {
    let mut random = Random::new(seed("aggregates_pass_by_what_is_missing"));
    let scratch = Scratch::new("aggregates_pass_by_what_is_missing");
    let records = records(&mut random, 12_000);
    std::fs::write(scratch.path("in"), as_json(&records, &mut random)).unwrap();
    let table = read_jsonl([path(&scratch, "in")], columns()).unwrap();
    // Through a function of batches, which has to keep what is missing.
    let names = ["name", "whole", "float", "truth"];
    let kinds: Vec<Type> = columns().iter().map(|column| column.kind).collect();
    let same = move |batch: &Gathered, sink: &mut dyn FnMut(&[Value<'_>]) -> Result<(), Error>| {
        (0..batch.len()).try_for_each(|at| batch.with(&kinds, at, &mut *sink))
    };
    let table = table.map_batches(&names, columns(), 700, same).unwrap();
    // Each of two workers gathers 4 MiB of batches.
    let little = || Settings {
        memory_bytes: Some(16 << 20),
        ..small()
    };
    let of = [
        ("n", count()),
        ("values", count_values("whole")),
        ("sum", sum("whole")),
        ("float_sum", sum("float")),
        ("least", min("whole")),
        ("most", max("float")),
        ("mean", mean("whole")),
        ("last_name", max("name")),
        ("truths", min("truth")),
        ("first", first("float")),
        ("about", approx_count_distinct("truth")),
    ];
    let of: Vec<Aggregate> = of.map(|(name, one)| one.named(name)).to_vec();
    let groups = table.group_by(&["name", "truth"]).unwrap();
    // All, those that are kept in words, and how many are different.
    let combined: Vec<Aggregate> = [&of[..7], &of[8..9]].concat();
    let different = [
        count_distinct("whole").named("different"),
        count_values("float").named("floats"),
    ];

    let mut model: BTreeMap<(Option<&str>, Option<bool>), Vec<&Record>> = BTreeMap::new();
    for record in &records {
        let key = (record.name.as_deref(), record.truth);
        model.entry(key).or_default().push(record);
    }
    let line = |members: Vec<(&str, serde_json::Value)>| {
        let members = members
            .iter()
            .map(|(name, value)| format!("\"{name}\":{value}"));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    };
    let mut wanted = [Vec::new(), Vec::new(), Vec::new()];
    for ((name, truth), group) in &model {
        let wholes: Vec<i64> = group.iter().filter_map(|one| one.whole).collect();
        let floats: Vec<f64> = group.iter().filter_map(|one| one.float).collect();
        let some = |is_one: bool, value: serde_json::Value| is_one.then_some(value);
        let sum = wholes.iter().sum::<i64>();
        let mean = sum as f64 / wholes.len() as f64;
        let float_sum = floats.iter().sum::<f64>();
        // A sum of nothing but zeros is 0.
        let float_sum = if float_sum == 0.0 { 0.0 } else { float_sum };
        let most = floats.iter().copied().max_by(f64::total_cmp);
        let key = [("name", json!(name)), ("truth", json!(truth))];
        let all = [
            ("n", json!(group.len())),
            ("values", json!(wholes.len())),
            ("sum", json!(some(!wholes.is_empty(), json!(sum)))),
            (
                "float_sum",
                json!(some(!floats.is_empty(), json!(float_sum))),
            ),
            ("least", json!(wholes.iter().min())),
            ("most", json!(most)),
            ("mean", json!(some(!wholes.is_empty(), json!(mean)))),
            ("last_name", json!(name)),
            ("truths", json!(truth)),
            ("first", json!(group[0].float)),
            ("about", json!(u64::from(truth.is_some()))),
        ];
        let some = [&all[..7], &all[8..9]].concat();
        let wholes: BTreeSet<i64> = wholes.into_iter().collect();
        let counts = [
            ("different", json!(wholes.len())),
            ("floats", json!(floats.len())),
        ];
        for (lines, members) in wanted.iter_mut().zip([&all[..], &some[..], &counts[..]]) {
            lines.push(line([&key[..], members].concat()));
        }
    }
    for (of, mut wanted) in [&of[..], &combined[..], &different[..]]
        .into_iter()
        .zip(wanted)
    {
        let table = groups.agg(of).unwrap();
        let found = written_in(&scratch, &table, Form::JsonLines, little());
        wanted.sort_unstable();
        assert_eq!(sorted(&found), wanted);
    }
    // What is missing is missing behind all of them, too, and one different record as any other.
    let keys = groups.agg(&[]).unwrap();
    let different = table
        .select(&["name", "truth"])
        .unwrap()
        .distinct()
        .unwrap();
    let found = written_in(&scratch, &different, BARE, little());
    assert!(found == written_in(&scratch, &keys, BARE, little()));
    assert_eq!(found.lines().count(), model.len());
    let types = |table: &Table| {
        let types = table.columns().iter().map(Column::type_name);
        types.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        types(&groups.agg(&of).unwrap()),
        "string? bool? u64 u64 i64? f64? i64? f64? f64? string? bool? f64? u64"
    );
}

fn place<T: PartialOrd>(a: Option<T>, b: Option<T>, down: bool, last: bool) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) if down => b.partial_cmp(&a).unwrap(),
        (Some(a), Some(b)) => a.partial_cmp(&b).unwrap(),
        (a, b) if last => a.is_none().cmp(&b.is_none()),
        (a, b) => b.is_none().cmp(&a.is_none()),
    }
}

/// By two columns, missing values first or last, upwards and downwards; what was written as CSV is read again.
#[test]
fn missing_values_come_first_or_last() {
    let mut random = Random::new(seed("missing_values_come_first_or_last"));
    let scratch = Scratch::new("missing_values_come_first_or_last");
    let mut records = records(&mut random, 5_000);
    for record in &mut records {
        // Few enough that the second column decides, too.
        record.whole = record.whole.map(|whole| whole.div_euclid(200));
    }
    std::fs::write(scratch.path("in"), as_json(&records, &mut random)).unwrap();
    let table = read_jsonl([path(&scratch, "in")], columns()).unwrap();
    let csv = |records: &[&Record]| {
        let line = |record: &&Record| {
            let name = record.name.as_deref().map(|name| match name {
                "" => "\"\"",
                name => name,
            });
            let float = record.float.map(|float| format!("{float:?}"));
            let whole = record.whole.map(|whole| whole.to_string());
            let truth = record.truth.map(|truth| truth.to_string());
            let [whole, float, truth] = [whole, float, truth].map(Option::unwrap_or_default);
            format!("{},{whole},{float},{truth}\n", name.unwrap_or_default())
        };
        records.iter().map(line).collect::<String>()
    };
    for bits in 0..16 {
        let bit = |at: usize| bits >> at & 1 == 1;
        let order = |column, from| Order {
            column,
            descending: bit(from),
            nulls_last: bit(from + 1),
        };
        let mut wanted: Vec<&Record> = records.iter().collect();
        // A text in front, of any length, or a float, which its key does not tell.
        let order = match bits % 3 {
            0 => {
                wanted.sort_by(|a, b| {
                    let names = place(a.name.as_ref(), b.name.as_ref(), bit(0), bit(1));
                    names.then(place(a.whole, b.whole, bit(2), bit(3)))
                });
                [order("name", 0), order("whole", 2)]
            }
            _ => {
                wanted.sort_by(|a, b| {
                    let wholes = place(a.whole, b.whole, bit(0), bit(1));
                    wholes.then(place(a.float, b.float, bit(2), bit(3)))
                });
                [order("whole", 0), order("float", 2)]
            }
        };
        let table = table.sort_by(&order).unwrap();
        let pipeline = table.write(scratch.path("out"), BARE).unwrap();
        run(&pipeline, &small()).unwrap();
        let found = std::fs::read_to_string(scratch.path("out")).unwrap();
        assert!(found == csv(&wanted), "{order:?}");
    }

    let bare = Csv {
        header: false,
        ..Csv::default()
    };
    std::fs::rename(scratch.path("out"), scratch.path("again")).unwrap();
    let again = read_csv([path(&scratch, "again")], bare, columns()).unwrap();
    let nulls = again.with_nulls(&[""]).unwrap();
    let copy = std::fs::read_to_string(scratch.path("again")).unwrap();
    assert!(written(&scratch, &nulls, BARE) == copy);
    // Without a word on texts an empty one is one.
    let empty = copy
        .lines()
        .filter(|line| line.starts_with(',') || line.starts_with('"'));
    let empty = empty.count();
    let empties = again.keep(&matches("name", "^$")).unwrap();
    assert_eq!(written(&scratch, &empties, BARE).lines().count(), empty);
    // Of no text nobody knows whether it matches, and it has no parts.
    let wanted = records.iter().filter(|record| record.name.is_some());
    let matching = matches("name", "no such name");
    let others = nulls.keep(&matching.inverted()).unwrap();
    let parts = nulls.flat_map(&split("name", "!")).unwrap();
    let wanted = wanted.count();
    for table in [others, parts] {
        assert_eq!(written(&scratch, &table, BARE).lines().count(), wanted);
    }
    // The greatest are those that are there.
    let top = table.top(3, &[("whole", false), ("name", false)]).unwrap();
    let found = written(&scratch, &top, Form::Text);
    assert!(!found.is_empty() && found.lines().all(|line| line.contains("\t-5\t")));
}

/// The definition that numpy begins with, over all values in order.
fn quantile_of(values: &mut [f64], fraction: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let place = fraction * (values.len().checked_sub(1)? as f64);
    let (below, above) = (values[place as usize], values[place.ceil() as usize]);
    Some(below + (above - below) * place.fract())
}

/// Of groups of all sizes, one of them far larger than memory, and behind another verb.
#[test]
fn quantiles_are_exact() {
    let mut random = Random::new(seed("quantiles_are_exact"));
    let scratch = Scratch::new("quantiles_are_exact");
    let mut groups: BTreeMap<String, Vec<Option<f64>>> = BTreeMap::new();
    let mut rows = Vec::new();
    for _ in 0..30_000 {
        let group = match random.below(3) {
            0 => format!("group {}", random.below(2000)),
            _ => "hot".to_owned(),
        };
        let is_there = random.below(10) > 0;
        let number = is_there.then(|| random.next() as i64 >> random.below(64));
        let float = number.map(|number| number as f64);
        groups.entry(group.clone()).or_default().push(float);
        let number = number.map_or(Value::Null, Value::I64);
        rows.push(vec![Owned::Bytes(group.into_bytes()), Owned::new(number)]);
    }
    // Groups without a value at all.
    for number in 0..20 {
        let group = format!("nothing {number}");
        rows.push(vec![
            Owned::Bytes(group.clone().into_bytes()),
            Owned::new(Value::Null),
        ]);
        groups.entry(group).or_default().push(None);
    }
    let rows = Arc::new(rows);
    let columns = vec![
        Column::new("group", Type::String),
        Column::new("number", Type::I64).or_null(),
    ];
    let make: MakeRows = Arc::new(move || {
        let rows = Arc::clone(&rows);
        let rows = (0..rows.len()).map(move |at| Ok(rows[at].clone()));
        Ok(Box::new(rows))
    });
    let table = from_iter(columns, make).unwrap();
    let fractions = [0.0, 0.25, 0.5, 0.993, 1.0];
    let mut of: Vec<Aggregate> = fractions
        .iter()
        .map(|fraction| quantile("number", *fraction).named(format!("q{fraction}")))
        .collect();
    of.push(count_distinct("number").named("different"));
    of.push(count());
    of.push(approx_quantile("number", 0.5).named("about"));
    let behind = table.sort(&[("number", true)]).unwrap();
    for table in [&table, &behind] {
        let groups_of = table.group_by(&["group"]).unwrap();
        let found = written(&scratch, &groups_of.agg(&of).unwrap(), BARE);
        assert_eq!(found.lines().count(), groups.len());
        for line in found.lines() {
            let values: Vec<&str> = line.split(',').collect();
            let group = &groups[values[0]];
            let mut there: Vec<f64> = group.iter().copied().flatten().collect();
            for (fraction, found) in fractions.iter().zip(&values[1..]) {
                let found: Option<f64> = (!found.is_empty()).then(|| found.parse().unwrap());
                match (quantile_of(&mut there, *fraction), found) {
                    (Some(wanted), Some(found)) => {
                        // Both are rounded, from different ends.
                        let near = (wanted - found).abs() <= 1e-12 * wanted.abs().max(1.0);
                        assert!(
                            near || there.len() > 1 && {
                                let (least, most) = (there[0], there[there.len() - 1]);
                                (wanted - found).abs() <= 1e-15 * (most - least)
                            },
                            "{fraction} {wanted} {found}"
                        );
                    }
                    (None, None) => {}
                    other => panic!("{line}: {other:?}"),
                }
            }
            assert_eq!(values[7], group.len().to_string());
            // Few differ but in one group, whose numbers have both signs and 62 octaves each.
            let (about, half) = (values[8], values[3]);
            assert_eq!(about.is_empty(), half.is_empty());
            if there.len() <= 2048 {
                assert_eq!(about, half);
            } else {
                let [about, half] = [about, half].map(|value| value.parse::<f64>().unwrap());
                let near = half.abs() / 32.0 + 1.0;
                assert!((about - half).abs() <= near, "{line}");
            }
        }
    }
    let pipeline = table.group_by(&["group"]).unwrap().agg(&of).unwrap();
    let pipeline = pipeline.write(scratch.path("out"), BARE).unwrap();
    let report = run(&pipeline, &small()).unwrap();
    assert!(report.phases[0].report.bytes.temp_written > 0);
    // Of a column that lacks no value, beside what is not combined.
    let groups_of = table.group_by(&["group"]).unwrap();
    let counts = groups_of.agg(&[count().named("n")]).unwrap();
    let of = [quantile("n", 0.5).named("half"), max("group")];
    let by_count = counts.group_by(&["n"]).unwrap().agg(&of).unwrap();
    assert_eq!(by_count.columns()[1].type_name(), "f64");
    let mut model: BTreeMap<usize, &str> = BTreeMap::new();
    for (name, group) in &groups {
        let last = model.entry(group.len()).or_default();
        *last = (*last).max(name.as_str());
    }
    let line = |(n, name): (&usize, &&str)| format!("{n},{n}.0,{name}");
    let mut wanted: Vec<String> = model.iter().map(line).collect();
    wanted.sort_unstable();
    assert_eq!(sorted(&written(&scratch, &by_count, BARE)), wanted);
}

#[test]
fn what_may_not_be_missing_is_refused() {
    let scratch = Scratch::new("what_may_not_be_missing_is_refused");
    std::fs::write(scratch.path("in"), "{\"a\":1,\"b\":\"x\"}\n{\"b\":null}\n").unwrap();
    let a = Column::new("a", Type::I64);
    let b = Column::new("b", Type::String);
    let table = |columns: &[&Column]| {
        let columns = columns.iter().map(|&column| column.clone());
        read_jsonl([path(&scratch, "in")], columns.collect()).unwrap()
    };
    let may = table(&[&a.clone().or_null(), &b.clone().or_null()]);
    let fails = |table: &Table, kind: ErrorKind, cause: &str| {
        let pipeline = table.write(scratch.path("out"), BARE).unwrap();
        let error = run(&pipeline, &small()).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.to_string().contains(cause), "{error}");
        assert_eq!(scratch.names(), ["in"]);
    };
    let input = ErrorKind::Input;
    fails(&table(&[&a]), input, "line 2: it has no column a");
    fails(&table(&[&b]), input, "line 2: column b is null");
    let made = vec![Column::new("c", Type::I64)];
    let each = may.each(&["a"], made, Arc::new(|values, sink| sink(values)));
    let cause = "it made (null), which is not (i64)";
    fails(&each.unwrap(), ErrorKind::Function, cause);
    let by = may.group_by(&["b"]).unwrap();
    let cause = "column a is null, and a record of a session has its time";
    fails(&by.sessions("a", 1, "session").unwrap(), input, cause);
    let parts = fields("b", ",", vec![b.clone()]);
    let cause = "column b is null, and has no fields";
    fails(&may.flat_map(&parts).unwrap(), input, cause);

    let refused = |made: Result<Table, Error>, cause: &str| {
        let error = made.err().unwrap();
        assert_eq!(error.kind, ErrorKind::Usage, "{error}");
        assert!(error.to_string().contains(cause), "{error}");
    };
    refused(may.with_nulls(&["x"]), "where CSV is read");
    let csv = read_csv(["x"], Csv::default(), vec![a, b]).unwrap();
    refused(csv.with_nulls(&["x"]), "no column may lack values");
    let agg = |of: &[Aggregate]| by.agg(of);
    refused(
        agg(&[quantile("b", 0.5)]),
        "b is of type string, and no number",
    );
    refused(agg(&[quantile("a", 1.5)]), "1.5 is not from 0 to 1");
    refused(agg(&[quantile("a", f64::NAN)]), "is not from 0 to 1");
}

/// Groups in the order of their columns by one job, whether or not they fit into memory.
#[test]
fn groups_come_sorted() {
    let mut random = Random::new(seed("groups_come_sorted"));
    let scratch = Scratch::new("groups_come_sorted");
    let records: Vec<Record> = records(&mut random, 20_000)
        .into_iter()
        .map(|record| Record {
            name: record.name.map(|name| name + &"x".repeat(random.below(40))),
            ..record
        })
        .collect();
    std::fs::write(scratch.path("in"), as_json(&records, &mut random)).unwrap();
    let table = read_jsonl([path(&scratch, "in")], columns()).unwrap();
    // What is missing comes last.
    let mut model: BTreeMap<(bool, i64, bool, &str), Vec<&Record>> = BTreeMap::new();
    for record in &records {
        let (whole, name) = (record.whole, record.name.as_deref());
        let key = (
            whole.is_none(),
            whole.unwrap_or(0),
            name.is_none(),
            name.unwrap_or(""),
        );
        model.entry(key).or_default().push(record);
    }
    let groups = table.group_by(&["whole", "name"]).unwrap().sorted();
    let counts = groups.agg(&[count(), sum("float")]).unwrap();
    let of_first = groups.agg(&[count(), first("float"), max("name").named("last")]);
    let longest = groups.reduce(|kept, record| {
        if let Value::Bool(true) = record[3] {
            kept[3] = Owned::new(record[3]);
        }
        Ok(())
    });
    let show = |float: Option<f64>| float.map_or(String::new(), |float| format!("{float:?}"));
    let mut wanted = [const { String::new() }; 4];
    for ((no_whole, whole, no_name, name), group) in &model {
        let whole = match no_whole {
            true => String::new(),
            false => whole.to_string(),
        };
        let name = match *name {
            _ if *no_name => "",
            "" => "\"\"",
            name => name,
        };
        let key = format!("{whole},{name}");
        let floats: Vec<f64> = group.iter().filter_map(|one| one.float).collect();
        let float_sum = floats.iter().sum::<f64>() + 0.0;
        let float_sum = show((!floats.is_empty()).then_some(float_sum));
        let (n, first) = (group.len(), show(group[0].float));
        let is_true = group[1..].iter().any(|one| one.truth == Some(true));
        let truth = if is_true { Some(true) } else { group[0].truth };
        let truth = truth.map_or(String::new(), |truth| truth.to_string());
        let lines = [
            format!("{key},{n},{float_sum}\n"),
            format!("{key},{n},{first},{name}\n"),
            format!("{name},{whole},{first},{truth}\n"),
            format!("{key}\n"),
        ];
        for (all, line) in wanted.iter_mut().zip(lines) {
            all.push_str(&line);
        }
    }
    let keys = table.select(&["whole", "name"]).unwrap();
    let keys = keys.distinct_sorted();
    let tables = [Ok(counts), of_first, longest, keys];
    for (table, wanted) in tables.into_iter().zip(&wanted) {
        let table = table.unwrap();
        assert!(written(&scratch, &table, BARE) == *wanted);
        let pipeline = table.write(scratch.path("out"), BARE).unwrap();
        let report = run(&pipeline, &small()).unwrap();
        assert_eq!(report.phases.len(), 1);
    }
    // So do those that have an order within.
    let medians = groups.agg(&[quantile("float", 0.5)]).unwrap();
    let found = written(&scratch, &medians, BARE);
    let pipeline = medians.write(scratch.path("out"), BARE).unwrap();
    assert_eq!(run(&pipeline, &small()).unwrap().phases.len(), 1);
    let key = |line: &str| line.rsplit_once(',').map(|(key, _)| key.to_owned());
    assert!(
        found
            .lines()
            .map(key)
            .eq(wanted[3].lines().map(|key| Some(key.to_owned())))
    );
}
