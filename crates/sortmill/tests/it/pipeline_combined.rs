//! What is combined while records are mapped: of text, and of what came first.

use std::collections::BTreeMap;

use serde_json::json;
use sortmill::pipeline::{
    Aggregate, Form, Owned, Settings, Table, Type, Value, col, count, first, if_else, max, min,
    null,
};

use crate::pipeline::{run, small};
use crate::pipeline_groups::{Clicks, sorted};

const BARE: Form = Form::csv(false);

/// How many records were brought together.
fn brought(clicks: &Clicks, table: &Table, settings: &Settings) -> u64 {
    let out = clicks.scratch.path("brought");
    let report = run(&table.write(&out, BARE).unwrap(), settings).unwrap();
    std::fs::remove_file(out).unwrap();
    report.phases[0].report.fingerprints.distributed.records
}

fn aggregates() -> Vec<Aggregate> {
    let all = [
        ("n", count()),
        ("least", min("page")),
        ("first", first("page")),
        ("most", max("page")),
        ("when", first("time")),
    ];
    all.map(|(name, one)| one.named(name)).to_vec()
}

/// The lines that those aggregates make, where records come as `clicks` do.
fn model<'c>(clicks: impl Iterator<Item = &'c (String, i64, String)>) -> Vec<String> {
    let mut groups: BTreeMap<&str, Vec<(i64, &str)>> = BTreeMap::new();
    for (user, time, page) in clicks {
        groups.entry(user).or_default().push((*time, page));
    }
    let line = |(user, clicks): (&str, Vec<(i64, &str)>)| {
        let pages = clicks.iter().map(|(_, page)| *page);
        let (least, most) = (pages.clone().min().unwrap(), pages.max().unwrap());
        let (when, page) = clicks[0];
        format!("{user},{},{least},{page},{most},{when}", clicks.len())
    };
    groups.into_iter().map(line).collect()
}

/// Text, and what comes first, used to send each record on, however few groups there were.
#[test]
fn the_least_and_the_first_text_of_few_groups_do_not_bring_all_records_together() {
    let clicks = Clicks::new("the_least_and_the_first_text_of_few_groups", 30_000);
    let groups = clicks.table().group_by(&["user"]).unwrap();
    let table = groups.agg(&aggregates()).unwrap();
    let wanted = model(clicks.clicks.iter());
    assert_eq!(sorted(&clicks.written(&table, BARE)), wanted);
    // Each worker sends each group once, if there is memory for that, and several times if there is less.
    let roomy = Settings {
        memory_bytes: Some(64 << 20),
        ..small()
    };
    assert!(brought(&clicks, &table, &roomy) <= 2 * wanted.len() as u64);
    let little = Settings {
        memory_bytes: Some(12 << 20),
        ..small()
    };
    let several = brought(&clicks, &table, &little);
    assert!(several < 30_000 / 2, "{several}");
}

/// A place in the input says what came first, whoever met it first; where records come from a sort, they come in its order.
#[test]
fn the_first_record_is_that_of_the_input_or_of_the_sort_in_front() {
    let clicks = Clicks::new(
        "the_first_record_is_that_of_the_input_or_of_the_sort",
        20_000,
    );
    let sorted_clicks = clicks.table().sort(&[("time", true)]).unwrap();
    let table = sorted_clicks.group_by(&["user"]).unwrap();
    let table = table.agg(&aggregates()).unwrap();
    let mut latest: Vec<_> = clicks.clicks.iter().collect();
    latest.sort_by_key(|(_, time, _)| -time);
    assert_eq!(
        sorted(&clicks.written(&table, BARE)),
        model(latest.into_iter())
    );

    // Several records are made of one place.
    let both = clicks.table().unpivot(&["user", "page"], "value").unwrap();
    let table = both.group_by(&["time"]).unwrap();
    let table = table.agg(&[first("value")]).unwrap();
    let mut firsts = BTreeMap::new();
    for (user, time, _) in &clicks.clicks {
        firsts.entry(*time).or_insert(user);
    }
    let line = |(time, user): (i64, &String)| format!("{time},{user}");
    let mut wanted: Vec<String> = firsts.into_iter().map(line).collect();
    wanted.sort_unstable();
    assert_eq!(sorted(&clicks.written(&table, BARE)), wanted);
}

/// Text that is missing passes by but for what is first; texts of very different lengths take each other's places.
#[test]
fn text_that_is_missing_or_long() {
    let clicks = Clicks::new("text_that_is_missing_or_long", 20_000);
    let long = |time: i64, page: &str| page.repeat(1 + time.rem_euclid(97) as usize);
    let made = [
        ("user", Type::String),
        ("time", Type::I64),
        ("page", Type::String),
    ];
    let table = clicks
        .table()
        .map(["user", "time", "page"], made, move |record| {
            let (Value::I64(time), Value::Bytes(page)) = (record[1], record[2]) else {
                panic!("they are a number and a text");
            };
            let page = long(time, std::str::from_utf8(page).unwrap());
            Ok([Owned::new(record[0]), time.into(), page.as_str().into()])
        });
    let page = if_else(col("time").gt(7000i64), null(), col("page"));
    let table = table.unwrap().with_columns(&[("page", page)]).unwrap();
    let table = table.group_by(&["user"]).unwrap().agg(&aggregates());
    let mut groups: BTreeMap<&str, Vec<(i64, Option<String>)>> = BTreeMap::new();
    for (user, time, page) in &clicks.clicks {
        let page = (*time <= 7000).then(|| long(*time, page));
        groups.entry(user).or_default().push((*time, page));
    }
    let line = |(user, clicks): (&str, Vec<(i64, Option<String>)>)| {
        let pages = clicks.iter().filter_map(|(_, page)| page.as_ref());
        let (least, most) = (pages.clone().min(), pages.max());
        let (when, page) = &clicks[0];
        let all = json!({"user": user, "n": clicks.len(), "least": least, "first": page, "most": most, "when": when});
        all.to_string()
    };
    let mut wanted: Vec<String> = groups.into_iter().map(line).collect();
    let found = clicks.written(&table.unwrap(), Form::JsonLines);
    let plain = |line: &str| {
        serde_json::from_str::<serde_json::Value>(line)
            .unwrap()
            .to_string()
    };
    let mut found: Vec<String> = found.lines().map(plain).collect();
    found.sort_unstable();
    wanted.sort_unstable();
    assert!(found == wanted);
}
