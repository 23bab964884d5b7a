//! Groups whose records stand together behind `sessions` are not brought together once more, and what is made of them is what a plain
//! program makes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sortmill::error::{Error, ErrorKind};
use sortmill::pipeline::{
    Column, Form, Groups, Order, Owned, Settings, Table, Type, Value, col, count, count_distinct,
    first, if_else, lit, max, mean, min, null, sum,
};

use crate::pipeline::{host, run, small};
use crate::pipeline_groups::{Clicks, sorted};

const BARE: Form = Form::csv(false);
const GAP: i64 = 40;

/// A click: time, page, session.
type Click<'c> = (i64, &'c str, u64);

/// Each user's clicks in the order of their times, those that are equal there in that of the input.
fn sessions(clicks: &Clicks) -> BTreeMap<&str, Vec<Click<'_>>> {
    let mut users: BTreeMap<&str, Vec<Click<'_>>> = BTreeMap::new();
    for (user, time, page) in &clicks.clicks {
        users.entry(user).or_default().push((*time, page, 0));
    }
    for clicks in users.values_mut() {
        clicks.sort_by_key(|click| click.0);
        for at in 1..clicks.len() {
            let (before, session) = (clicks[at - 1].0, clicks[at - 1].2);
            clicks[at].2 = session + u64::from(clicks[at].0 - before > GAP);
        }
    }
    users
}

fn numbered(clicks: &Clicks) -> Table {
    let groups = clicks.table().group_by(&["user"]).unwrap();
    groups.sessions("time", GAP as u64, "session").unwrap()
}

/// What a table writes, and the phases that make it, as they are told.
fn made(clicks: &Clicks, table: &Table) -> (String, Vec<String>) {
    let pipeline = table.write(clicks.scratch.path("out"), BARE).unwrap();
    let report = run(&pipeline, &small()).unwrap();
    let names: Vec<String> = report.phases.into_iter().map(|phase| phase.name).collect();
    let told = pipeline.explain(&small(), &host()).unwrap();
    assert_eq!(told.matches("\nplan of phase ").count(), names.len());
    (clicks.written(table, BARE), names)
}

const ONE: &str = "group by user, sorted by time";

#[test]
fn groups_behind_sessions_take_one_job() {
    let clicks = Clicks::new("groups_behind_sessions_take_one_job", 30_000);
    let late = numbered(&clicks)
        .with_columns(&[("second", col("time") / 10)])
        .unwrap()
        .filter(["time"], |[time]| Ok(time.i64()? % 3 != 0))
        .unwrap()
        .select(&["page", "session", "time", "user"])
        .unwrap();
    let per_session = late.group_by(&["session", "user"]).unwrap();
    let per_session = per_session
        .agg(&[
            count().named("n"),
            min("time").named("begins"),
            max("time").named("ends"),
            sum("time").named("sum"),
            mean("time").named("mean"),
            first("page").named("page"),
            max("page").named("most"),
        ])
        .unwrap();
    let (found, names) = made(&clicks, &per_session);
    assert_eq!(names, [ONE]);
    let (mut wanted, mut rolled) = (Vec::new(), Vec::new());
    for (user, all) in sessions(&clicks) {
        let kept: Vec<Click<'_>> = all.into_iter().filter(|one| one.0 % 3 != 0).collect();
        let (mut count, mut longest) = (0, 0);
        for session in kept.chunk_by(|a, b| a.2 == b.2) {
            let (begins, page, number) = session[0];
            let ends = session.last().unwrap().0;
            let (n, sum) = (session.len(), session.iter().map(|one| one.0).sum::<i64>());
            let most = session.iter().map(|one| one.1).max().unwrap();
            let mean = sum as f64 / n as f64;
            wanted.push((
                (number, user.to_owned(), n, begins, ends, sum),
                (mean, page.to_owned(), most.to_owned()),
            ));
            (count, longest) = (count + 1, longest.max(n));
        }
        if count > 0 {
            rolled.push(format!("{user},{count},{longest}"));
        }
    }
    let read = |line: &str| {
        let values: Vec<&str> = line.split(',').collect();
        let number = |at: usize| values[at].parse::<i64>().unwrap();
        let (n, session) = (number(2) as usize, number(0) as u64);
        (
            (
                session,
                values[1].to_owned(),
                n,
                number(3),
                number(4),
                number(5),
            ),
            (
                values[6].parse::<f64>().unwrap(),
                values[7].to_owned(),
                values[8].to_owned(),
            ),
        )
    };
    let mut found: Vec<_> = found.lines().map(read).collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    wanted.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(found == wanted);
    // And those of a user's sessions in the same job.
    let users = per_session.group_by(&["user"]).unwrap();
    let users = users.agg(&[count(), max("n")]).unwrap();
    let (found, names) = made(&clicks, &users);
    assert_eq!(names, [ONE]);
    assert!(sorted(&found) == rolled);
}

#[test]
fn functions_of_sessions_take_one_job() {
    let clicks = Clicks::new("functions_of_sessions_take_one_job", 30_000);
    let made_columns = ["user", "pages"].map(|name| Column::new(name, Type::String));
    let pages = |order: &[(&str, bool)], by: &[&str]| {
        let groups = numbered(&clicks).group_by(by).unwrap();
        let function = || {
            let (mut user, mut pages) = (Vec::new(), Vec::new());
            let function: sortmill::pipeline::GroupFn = Box::new(move |record, out| {
                let Some(record) = record else {
                    out(&[Value::Bytes(&user), Value::Bytes(&pages)])?;
                    (user, pages) = (Vec::new(), Vec::new());
                    return Ok(());
                };
                user = record[0].bytes().to_vec();
                pages.extend_from_slice(record[2].bytes());
                Ok(())
            });
            function
        };
        let make = std::sync::Arc::new(function);
        let table = groups.apply_sorted(order, made_columns.to_vec(), make);
        made(&clicks, &table.unwrap())
    };
    let model = |by_session: bool| {
        let mut wanted = Vec::new();
        for (user, all) in sessions(&clicks) {
            for session in all.chunk_by(|a, b| !by_session || a.2 == b.2) {
                let pages: String = session.iter().map(|one| one.1).collect();
                wanted.push(format!("{user},{pages}"));
            }
        }
        wanted.sort_unstable();
        wanted
    };
    // In the order that they have, and in the one that was asked for and is the same.
    for order in [&[][..], &[("time", false)]] {
        let (found, names) = pages(order, &["user", "session"]);
        assert_eq!(names, [ONE]);
        assert!(sorted(&found) == model(true));
        let (found, names) = pages(order, &["user"]);
        assert_eq!(names, [ONE]);
        assert!(sorted(&found) == model(false));
    }
    // Another order is made.
    let (_, names) = pages(&[("time", true)], &["user", "session"]);
    assert_eq!(names.len(), 2, "{names:?}");
    let (_, names) = pages(&[("time", false), ("page", false)], &["user"]);
    assert_eq!(names.len(), 2, "{names:?}");
}

/// What only seems to stand together is brought together.
#[test]
fn other_groups_are_brought_together() {
    let clicks = Clicks::new("other_groups_are_brought_together", 20_000);
    let numbered = numbered(&clicks);
    let mut by_session: BTreeMap<u64, u64> = BTreeMap::new();
    let mut by_all: BTreeMap<(&str, u64), u64> = BTreeMap::new();
    for (user, all) in sessions(&clicks) {
        for (_, _, session) in all {
            *by_session.entry(session).or_default() += 1;
            *by_all.entry((user, session / 2)).or_default() += 1;
        }
    }
    let by_session: Vec<String> = by_session
        .iter()
        .map(|(session, count)| format!("{session},{count}"))
        .collect();
    let by_all: Vec<String> = by_all
        .iter()
        .map(|((user, half), count)| format!("{user},{half},{count}"))
        .collect();
    let counted = |table: &Table, by: &[&str]| {
        let groups = table.group_by(by).unwrap().agg(&[count()]).unwrap();
        let (found, names) = made(&clicks, &groups);
        assert_eq!(names.len(), 2, "{by:?}: {names:?}");
        sorted(&found)
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    // Of several users.
    assert!(counted(&numbered, &["session"]) == sorted(&by_session.join("\n")));
    // A column of that name which is another one.
    let halves = numbered
        .with_columns(&[("session", col("session").floor_div(2))])
        .unwrap();
    assert!(counted(&halves, &["user", "session"]) == sorted(&by_all.join("\n")));
    // One that stands nowhere together, and one that a function makes.
    let minutes = clicks
        .clicks
        .iter()
        .map(|(user, time, _)| format!("{user},{time}"));
    let mut minutes_wanted: BTreeMap<String, u64> = BTreeMap::new();
    minutes.for_each(|of| *minutes_wanted.entry(of).or_default() += 1);
    let minutes_wanted: Vec<String> = minutes_wanted
        .iter()
        .map(|(of, count)| format!("{of},{count}"))
        .collect();
    assert!(counted(&numbered, &["user", "time"]) == sorted(&minutes_wanted.join("\n")));
    let mapped = numbered
        .map(
            ["user", "time"],
            [("user", Type::String), ("time", Type::I64)],
            |values| Ok(values.map(Owned::new)),
        )
        .unwrap();
    assert!(counted(&mapped, &["user", "time"]) == sorted(&minutes_wanted.join("\n")));
}

/// Groups that are to come sorted are brought together in their order, with no hash in front of it, and nothing sorts them once more:
/// neither for `sorted` nor for a sort behind them.
#[test]
fn groups_behind_sessions_come_sorted_by_the_same_job() {
    let mut clicks = Clicks::new("groups_behind_sessions_come_sorted", 40_000);
    // One user has half of them, and of some the names begin alike.
    let input = clicks.scratch.path("in.txt");
    let mut text = String::new();
    for (at, (user, time, page)) in clicks.clicks.iter_mut().enumerate() {
        if at % 2 == 0 {
            *user = "user 1\0b".to_owned();
        }
        text += &format!("{user}\t{time}\t{page}\n");
    }
    std::fs::write(&input, text).unwrap();
    let all = sessions(&clicks);
    let mut per_session = String::new();
    let (mut per_user, mut of_clicks) = (String::new(), String::new());
    for (user, of_user) in &all {
        for session in of_user.chunk_by(|a, b| a.2 == b.2) {
            let (begins, ends) = (session[0].0, session.last().unwrap().0);
            per_session += &format!("{user},{},{begins},{ends}\n", session[0].2);
        }
        per_user += &format!("{user},{}\n", of_user.len());
        for (time, page, session) in of_user {
            of_clicks += &format!("{user},{time},{page},{session}\n");
        }
    }
    let hashed = numbered(&clicks);
    let groups = clicks.table().group_by(&["user"]).unwrap().sorted();
    let in_order = groups.sessions("time", GAP as u64, "session").unwrap();
    let check = |table: &Table, wanted: &str, phase_count: usize| {
        let (found, names) = made(&clicks, table);
        assert_eq!(names.len(), phase_count, "{names:?}");
        assert!(found == wanted, "{names:?}");
    };
    let up = |columns: &'static [&'static str]| -> Vec<(&'static str, bool)> {
        columns.iter().map(|&column| (column, false)).collect()
    };
    let of = [min("time").named("begins"), max("time").named("ends")];
    for numbered in [&hashed, &in_order] {
        let by_session = numbered.group_by(&["user", "session"]).unwrap();
        let made = by_session.agg(&of).unwrap();
        check(
            &made.sort(&up(&["user", "session"])).unwrap(),
            &per_session,
            1,
        );
        check(
            &by_session.clone().sorted().agg(&of).unwrap(),
            &per_session,
            1,
        );
        let kept = made.filter(["begins"], |[_]| Ok(true)).unwrap();
        check(
            &kept.sort(&up(&["user", "session"])).unwrap(),
            &per_session,
            1,
        );
        let by_user = numbered.group_by(&["user"]).unwrap();
        check(
            &by_user.clone().sorted().agg(&[count()]).unwrap(),
            &per_user,
            1,
        );
        for within in [
            &["user"][..],
            &["user", "time"],
            &["user", "session", "time"],
        ] {
            let order: Vec<(&str, bool)> = within.iter().map(|&column| (column, false)).collect();
            check(&numbered.sort(&order).unwrap(), &of_clicks, 1);
        }
        // What of several is in order, a function of whole groups takes as it comes.
        let taken = by_user.sorted().apply_sorted(
            &[("time", false)],
            numbered.columns().to_vec(),
            Arc::new(|| Box::new(|record, out| record.map_or(Ok(()), &mut *out))),
        );
        let phase_count = if std::ptr::eq(numbered, &in_order) {
            1
        } else {
            2
        };
        check(&taken.unwrap(), &of_clicks, phase_count);
    }
    // Groups without a value come last, so a sort that has them first is one of its own.
    let known = if_else(col("user").eq("user 1"), null(), col("user"));
    let lacking = clicks.table().with_columns(&[("user", known)]).unwrap();
    let lacking = lacking.group_by(&["user"]).unwrap();
    let lacking = lacking.sessions("time", GAP as u64, "session").unwrap();
    let firsts = lacking.sort(&up(&["user"])).unwrap();
    let lasts = lacking.sort_by(&[Order {
        column: "user",
        descending: false,
        nulls_last: true,
    }]);
    for (table, phase_count) in [(firsts, 2), (lasts.unwrap(), 1)] {
        let (found, names) = made(&clicks, &table);
        assert_eq!(names.len(), phase_count, "{names:?}");
        let is_null = |line: &str| line.starts_with(',');
        let nulls = found.lines().filter(|line| is_null(line)).count();
        assert_eq!(nulls, all["user 1"].len());
        let users: Vec<&str> = match phase_count {
            2 => found.lines().skip(nulls).collect(),
            _ => found.lines().take(found.lines().count() - nulls).collect(),
        };
        assert!(!users.iter().any(|line| is_null(line)));
        assert!(users.is_sorted_by_key(|line| line.split(',').next()));
    }
    // Other orders are no such ones.
    let downwards = hashed.sort(&[("user", true), ("session", false)]).unwrap();
    assert_eq!(made(&clicks, &downwards).1.len(), 2);
    let by_session = hashed.sort(&up(&["session", "user"])).unwrap();
    assert_eq!(made(&clicks, &by_session).1.len(), 2);
    let late = hashed.sort(&[("user", false), ("time", true)]).unwrap();
    assert_eq!(made(&clicks, &late).1.len(), 2);
}

/// A group whose values fit into some memory is one pair; of a larger one each value is one.
#[test]
fn different_values_of_groups_that_stand_together_are_counted() {
    let mut clicks = Clicks::new("different_values_of_groups_that_stand_together", 60_000);
    // In front of what follows them in a key zeros are marked.
    let input = clicks.scratch.path("in.txt");
    let text = std::fs::read_to_string(&input).unwrap();
    std::fs::write(&input, text.replace("user ", "\0u\0")).unwrap();
    for (user, ..) in &mut clicks.clicks {
        *user = user.replace("user ", "\0u\0");
    }
    let far = 1 << 40;
    for (gap, by) in [
        (GAP, &["user", "session"][..]),
        (far, &["user", "session"]),
        (GAP, &["session", "user"]),
        (GAP, &["user"]),
    ] {
        for column in ["page", "when"] {
            let (wanted, most) = wanted_of(&clicks, gap, by, column);
            let groups = clicks.table().group_by(&["user"]).unwrap();
            let numbered = groups.sessions("time", gap as u64, "session").unwrap();
            let shown = |name: &str| if_else(col("time").gt(7000i64), null(), col(name));
            let numbered = numbered
                .with_columns(&[("page", shown("page")), ("when", shown("time"))])
                .unwrap();
            check_different(
                &clicks,
                &numbered.group_by(by).unwrap(),
                column,
                &wanted,
                most,
            );
        }
    }
}

/// What comes of each group, and how many values differ in it at most; clicks after 7000 show neither page nor time.
fn wanted_of(clicks: &Clicks, gap: i64, by: &[&str], column: &str) -> (Vec<String>, usize) {
    let (mut wanted, mut most) = (Vec::new(), 0);
    for (user, mut all) in sessions(clicks) {
        if gap != GAP {
            all.iter_mut().for_each(|one| one.2 = 0);
        }
        for group in all.chunk_by(|a, b| by.len() == 1 || a.2 == b.2) {
            let shown = || group.iter().filter(|one| one.0 <= 7000);
            let different = match column {
                "page" => shown().map(|one| one.1).collect::<BTreeSet<_>>().len(),
                _ => shown().map(|one| one.0).collect::<BTreeSet<_>>().len(),
            };
            let (begins, session) = (group[0].0, group[0].2);
            let (n, sum) = (group.len(), group.iter().map(|one| one.0).sum::<i64>());
            let ends = group.last().unwrap().0;
            let least = shown().map(|one| one.1).min().unwrap_or("");
            let told = match by {
                ["user"] => user.to_owned(),
                ["user", _] => format!("{user},{session}"),
                _ => format!("{session},{user}"),
            };
            wanted.push(format!(
                "{told},{different},{n},{begins},{ends},{sum},{least}"
            ));
            most = most.max(different);
        }
    }
    wanted.sort_unstable();
    (wanted, most)
}

fn check_different(clicks: &Clicks, groups: &Groups, column: &str, wanted: &[String], most: usize) {
    let of = [
        count_distinct(column).named("different"),
        count(),
        min("time").named("begins"),
        max("time").named("ends"),
        sum("time").named("sum"),
        min("page").named("least"),
    ];
    let (found, names) = made(clicks, &groups.agg(&of).unwrap());
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(sorted(&found) == wanted);
    let pair_count = |threads: usize| {
        let pipeline = groups.agg(&of).unwrap();
        let pipeline = pipeline.write(clicks.scratch.path("out"), BARE).unwrap();
        let settings = Settings {
            memory_bytes: Some(160 << 20),
            threads: Some(threads),
            ..small()
        };
        let report = run(&pipeline, &settings).unwrap();
        report.phases[1].report.fingerprints.distributed.records as usize
    };
    // A quarter of a MiB for each of four threads, of which a time takes 9 and 48 beside it.
    let is_too_large = most * 57 > 256 << 10;
    assert_eq!(is_too_large, column == "when");
    let (one, four) = (pair_count(1), pair_count(4));
    assert_eq!(one, wanted.len(), "{column}");
    match is_too_large {
        true => assert!(four > wanted.len() + most, "{four}"),
        false => assert_eq!(four, wanted.len(), "{column}"),
    }
    // In order as well.
    let (found, names) = made(clicks, &groups.clone().sorted().agg(&of).unwrap());
    assert_eq!(names.len(), 2, "{names:?}");
    let firsts: Vec<&str> = found
        .lines()
        .map(|line| line.split(',').next().unwrap())
        .collect();
    let numbers: Option<Vec<u64>> = firsts.iter().map(|first| first.parse().ok()).collect();
    assert!(numbers.map_or_else(|| firsts.is_sorted(), |numbers| numbers.is_sorted()));
    assert!(sorted(&found) == wanted);
}

/// The last group of each partition comes at its end, and what gathers batches behind it ends after that.
#[test]
fn what_is_behind_them_gets_all_groups() {
    let clicks = Clicks::new("what_is_behind_them_gets_all_groups", 20_000);
    let mut wanted = Vec::new();
    for (user, all) in sessions(&clicks) {
        for session in all.chunk_by(|a, b| a.2 == b.2) {
            wanted.push(format!("{user},{},{}", session[0].2, 2 * session.len()));
        }
    }
    wanted.sort_unstable();
    let groups = numbered(&clicks).group_by(&["user", "session"]).unwrap();
    let columns = [
        ("user", Type::String),
        ("session", Type::U64),
        ("twice", Type::U64),
    ];
    let columns = columns.map(|(name, kind)| Column::new(name, kind));
    let kinds = columns.each_ref().map(|column| column.kind);
    let doubled = groups
        .agg(&[count()])
        .unwrap()
        .map_batches(
            &["user", "session", "count"],
            columns.to_vec(),
            70,
            move |batch, out| {
                for at in 0..batch.len() {
                    batch.with(&kinds, at, |values| {
                        let Value::U64(count) = values[2] else {
                            panic!("{values:?}");
                        };
                        out(&[values[0], values[1], Value::U64(2 * count)])
                    })?;
                }
                Ok(())
            },
        )
        .unwrap()
        .observe(&[count().named("seen"), sum("twice").named("all")])
        .unwrap();
    let (found, names) = made(&clicks, &doubled);
    assert_eq!(names, [ONE]);
    assert!(sorted(&found) == wanted);
    let pipeline = doubled.write(clicks.scratch.path("out"), BARE).unwrap();
    let observed = run(&pipeline, &small()).unwrap().observed;
    assert_eq!(observed.number("seen").unwrap(), wanted.len() as f64);
    assert_eq!(
        observed.number("all").unwrap(),
        2.0 * clicks.clicks.len() as f64
    );
}

#[test]
fn what_fails_there_names_the_group() {
    let clicks = Clicks::new("what_fails_there_names_the_group", 3_000);
    let groups = numbered(&clicks)
        .with_columns(&[("much", lit(i64::MAX))])
        .unwrap()
        .group_by(&["user", "session"])
        .unwrap();
    let pipeline = |table: Table| table.write(clicks.scratch.path("out"), BARE).unwrap();
    let sums = pipeline(groups.agg(&[sum("much")]).unwrap());
    let error = run(&sums, &small()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Input);
    assert!(
        error.cause.contains("of column much") && error.cause.contains("in the group \"user"),
        "{error}"
    );
    let function = || {
        let function: sortmill::pipeline::GroupFn = Box::new(|record, _| match record {
            Some(_) => Ok(()),
            None => Err(Error::new(ErrorKind::Function, "trying", "it would not")),
        });
        function
    };
    let columns = vec![Column::new("n", Type::U64)];
    let table = groups.apply_sorted(&[], columns, std::sync::Arc::new(function));
    let error = run(&pipeline(table.unwrap()), &small()).unwrap_err();
    assert_eq!(error.cause, "it would not");
    assert_eq!(clicks.scratch.names(), ["in.txt"]);
}
