//! Columns of timestamps through every verb, held against plain programs over what is in memory.

use std::collections::{BTreeMap, BTreeSet};

use sortmill::error::ErrorKind;
use sortmill::pipeline::{
    Aggregate, Column, Csv, Form, Moment, Order, Owned, Settings, TIMESTAMPS, Table, Type,
    approx_count_distinct, col, count, count_distinct, count_values, first, from_epoch, if_else,
    lit, max, mean, micros, min, parse_time, quantile, read_csv, read_jsonl, sum, timestamp,
};

use crate::Scratch;
use crate::pipeline::{run, small};
use crate::sort::inputs::{Random, seed};

const BARE: Form = Form::csv(false);

/// A name and a time, which may be missing.
type Record = (String, Option<i64>);

/// Times of all years, some of which come often, or near one another.
fn records(random: &mut Random, count: usize) -> Vec<Record> {
    let (first, last) = (*TIMESTAMPS.start(), *TIMESTAMPS.end());
    // No zone leads out of the years that there are.
    let (day, span) = (86_400_000_000, (last - first) as usize);
    let one = |_| {
        let time = match random.below(5) {
            0 => None,
            1 => Some(1_795_393_800_000_000 + random.below(40) as i64 * 250_000),
            2 => Some(random.below(3) as i64 - 1),
            3 => Some([first, last][random.below(2)]),
            _ => Some(first + day + random.below(span - 2 * day as usize) as i64),
        };
        (format!("n{}", random.below(30)), time)
    };
    (0..count).map(one).collect()
}

/// As it is written.
fn utc(micros: i64) -> String {
    let Moment {
        year,
        month,
        day,
        hour,
        minute,
        second,
        micro,
    } = Moment::of(micros);
    let fraction = match micro {
        0 => String::new(),
        micro => format!(".{micro:06}"),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// The same with the clock of some zone.
fn somewhere(micros: i64, random: &mut Random) -> String {
    let minutes = random.below(2 * 14 * 60) as i64 - 14 * 60;
    let there = micros + minutes * 60_000_000;
    if !TIMESTAMPS.contains(&there) || random.below(3) == 0 {
        return utc(micros);
    }
    let sign = if minutes < 0 { '-' } else { '+' };
    let (hours, minutes) = (minutes.abs() / 60, minutes.abs() % 60);
    utc(there).replace('Z', &format!("{sign}{hours:02}:{minutes:02}"))
}

struct Times {
    scratch: Scratch,
    records: Vec<Record>,
    table: Table,
}

impl Times {
    fn new(test: &str, count: usize) -> Self {
        let mut random = Random::new(seed(test));
        let scratch = Scratch::new(test);
        let records = records(&mut random, count);
        let mut text = String::new();
        for (name, time) in &records {
            text += &match time {
                None if random.below(2) == 0 => format!("{{\"name\":\"{name}\"}}\n"),
                None => format!("{{\"time\":null,\"name\":\"{name}\"}}\n"),
                Some(time) => {
                    let time = somewhere(*time, &mut random);
                    format!("{{\"time\":\"{time}\",\"name\":\"{name}\"}}\n")
                }
            };
        }
        std::fs::write(scratch.path("in"), text).unwrap();
        let columns = vec![
            Column::new("name", Type::String),
            Column::new("time", Type::Timestamp).or_null(),
        ];
        let table = read_jsonl([scratch.path("in")], columns).unwrap();
        Self {
            scratch,
            records,
            table,
        }
    }

    /// What a table writes, with little memory and with much: the same.
    fn written(&self, table: &Table, form: Form) -> String {
        let pipeline = table.write(self.scratch.path("out"), form).unwrap();
        let much = Settings {
            memory_bytes: Some(64 << 20),
            threads: Some(1),
            ..Settings::default()
        };
        let all = [small(), much].map(|settings| {
            run(&pipeline, &settings).unwrap();
            std::fs::read_to_string(self.scratch.path("out")).unwrap()
        });
        assert!(all[0] == all[1]);
        let [one, _] = all;
        one
    }
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn times_are_ordered_as_they_follow_each_other() {
    let times = Times::new("times_are_ordered_as_they_follow_each_other", 4_000);
    let line = |(name, time): &&Record| format!("{},{name}\n", time.map(utc).unwrap_or_default());
    for (descending, nulls_last) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut wanted: Vec<&Record> = times.records.iter().collect();
        wanted.sort_by_key(|(_, time)| match time {
            None => (i128::from(nulls_last) * 2, 0),
            Some(time) if descending => (1, -i128::from(*time)),
            Some(time) => (1, i128::from(*time)),
        });
        let order = Order {
            column: "time",
            descending,
            nulls_last,
        };
        let table = times.table.sort_by(&[order]).unwrap();
        let found = times.written(&table.select(&["time", "name"]).unwrap(), BARE);
        assert!(found == wanted.iter().map(line).collect::<String>());
    }
    // What was written is read again, from CSV as from JSON lines.
    let form = Form::csv(true);
    let csv = times.written(&times.table, form);
    std::fs::write(times.scratch.path("csv"), &csv).unwrap();
    let columns = times.table.columns().to_vec();
    let path = times.scratch.path("csv");
    let again = read_csv([&path], Csv::default(), columns).unwrap();
    assert!(times.written(&again, form) == csv);
    let json = times.written(&times.table, Form::JsonLines);
    assert!(times.written(&again, Form::JsonLines) == json);
    let line = |(name, time): &Record| {
        let time = time.map_or("null".to_owned(), |time| format!("\"{}\"", utc(time)));
        format!("{{\"name\":\"{name}\",\"time\":{time}}}\n")
    };
    assert!(json == times.records.iter().map(line).collect::<String>());
}

#[test]
fn times_are_grouped_and_aggregated() {
    let times = Times::new("times_are_grouped_and_aggregated", 8_000);
    let groups = times.table.group_by(&["name"]).unwrap();
    let of = |all: &[Aggregate]| sorted_lines(&times.written(&groups.agg(all).unwrap(), BARE));
    let mut model: BTreeMap<&str, Vec<Option<i64>>> = BTreeMap::new();
    for (name, time) in &times.records {
        model.entry(name).or_default().push(*time);
    }
    let wanted = |line: &dyn Fn(&[Option<i64>]) -> String| {
        let lines = model
            .iter()
            .map(|(name, all)| format!("{name},{}", line(all)));
        let mut lines: Vec<String> = lines.collect();
        lines.sort_unstable();
        lines
    };
    let shown = |time: Option<i64>| time.map(utc).unwrap_or_default();
    let known = |all: &[Option<i64>]| all.iter().flatten().copied().collect::<BTreeSet<i64>>();
    let ends = |all: &[Option<i64>]| {
        let known = known(all);
        format!(
            "{},{}",
            shown(known.first().copied()),
            shown(known.last().copied())
        )
    };
    let values = |all: &[Option<i64>]| all.iter().flatten().count();
    // Combined while they are mapped, and in the order of the input.
    assert_eq!(
        of(&[
            min("time").named("a"),
            max("time").named("b"),
            count_values("time").named("c")
        ]),
        wanted(&|all| format!("{},{}", ends(all), values(all)))
    );
    assert_eq!(
        of(&[
            first("time").named("a"),
            min("time").named("b"),
            max("time").named("c")
        ]),
        wanted(&|all| format!("{},{}", shown(all[0]), ends(all)))
    );
    assert_eq!(
        of(&[count_distinct("time")]),
        wanted(&|all| known(all).len().to_string())
    );
    let about = of(&[approx_count_distinct("time")]);
    for (line, all) in about.iter().zip(model.values()) {
        let (_, found) = line.split_once(',').unwrap();
        let exact = known(all).len() as f64;
        assert!(
            (found.parse::<f64>().unwrap() - exact).abs() <= 0.1 * exact + 1.0,
            "{line}"
        );
    }
    // Times as groups: some missing, and of all that are there as whole numbers.
    let there = times
        .table
        .filter(["time"], |[time]| Ok(!time.is_null()))
        .unwrap();
    let sure = there
        .map(["time"], [("time", Type::Timestamp)], |[time]| {
            Ok([Owned::timestamp(time.timestamp()?)])
        })
        .unwrap();
    for (table, has_missing) in [(&times.table, true), (&sure, false)] {
        let counts = table.group_by(&["time"]).unwrap();
        let all = [count(), min("time").named("least")];
        let found = times.written(&counts.agg(&all).unwrap(), BARE);
        let mut model: BTreeMap<Option<i64>, u64> = BTreeMap::new();
        for (_, time) in times
            .records
            .iter()
            .filter(|(_, time)| has_missing || time.is_some())
        {
            *model.entry(*time).or_default() += 1;
        }
        let line = |(time, n): (&Option<i64>, &u64)| format!("{0},{n},{0}", shown(*time));
        let mut wanted: Vec<String> = model.iter().map(line).collect();
        wanted.sort_unstable();
        assert_eq!(sorted(&found), wanted);
        let ordered = table
            .group_by(&["time"])
            .unwrap()
            .sorted()
            .agg(&all[..1])
            .unwrap();
        let (none, some): (Vec<_>, Vec<_>) = model.iter().partition(|(time, _)| time.is_none());
        let line = |(time, n): &(&Option<i64>, &u64)| format!("{},{n}\n", shown(**time));
        let wanted: String = some.iter().chain(&none).map(line).collect();
        assert!(times.written(&ordered, BARE) == wanted);
    }
}

fn sorted_lines(text: &str) -> Vec<String> {
    sorted(text).into_iter().map(str::to_owned).collect()
}

#[test]
fn sessions_and_numbers_of_times() {
    let times = Times::new("sessions_and_numbers_of_times", 3_000);
    let there = times
        .table
        .filter(["time"], |[time]| Ok(!time.is_null()))
        .unwrap();
    let numbered = there.with_columns(&[("us", micros("time"))]).unwrap();
    let by = |table: &Table, time| {
        let groups = table.group_by(&["name"]).unwrap();
        groups.sessions(time, 500_000, "session").unwrap()
    };
    let of_times = times.written(&by(&numbered, "time"), BARE);
    assert!(of_times == times.written(&by(&numbered, "us"), BARE));
    let records = times.records.iter();
    let line = |(name, time): &Record| time.map(|time| format!("{name},{},{time}\n", utc(time)));
    let wanted: String = records.filter_map(line).collect();
    assert!(times.written(&numbered, BARE) == wanted);
}

#[test]
fn times_are_made_cut_and_moved() {
    let times = Times::new("times_are_made_cut_and_moved", 3_000);
    let at = || col("time");
    let made = times.table.with_columns(&[
        ("again", at().micros().from_epoch(1)),
        ("hour", at().truncate("1h")),
        (
            "near",
            if_else(
                at().lt(lit(Owned::timestamp(0))),
                at().offset_by(7),
                at().offset_by(-7),
            ),
        ),
        ("apart", at() - lit(Owned::timestamp(1_000_000))),
        (
            "read",
            at().cast(Type::String).parse(Type::Timestamp).or_null(),
        ),
        ("text", at().cast(Type::String)),
    ]);
    let line = |(name, time): &Record| {
        let Some(time) = *time else {
            return format!("{name},,,,,,,\n");
        };
        let hour = time - time.rem_euclid(3_600_000_000);
        let near = if time < 0 { time + 7 } else { time - 7 };
        let [at, hour, near] = [time, hour, near].map(utc);
        format!(
            "{name},{at},{at},{hour},{near},{},{at},{at}\n",
            time - 1_000_000
        )
    };
    let wanted: String = times.records.iter().map(line).collect();
    assert!(times.written(&made.unwrap(), BARE) == wanted);

    let scratch = Scratch::new("times_are_made_cut_and_moved_of_text");
    let path = scratch.path("in.csv");
    let said = "ms,said\n1767225600013,23/Nov/2026:01:30:00 +0100\n-1,01/jan/1970:00:00:00 +0001\n";
    std::fs::write(&path, said).unwrap();
    let columns = vec![
        Column::new("ms", Type::I64),
        Column::new("said", Type::String),
    ];
    let table = read_csv([&path], Csv::default(), columns).unwrap();
    let formulas = [
        ("ms", from_epoch("ms", 1_000)),
        ("said", parse_time("said", "%d/%b/%Y:%H:%M:%S %z")),
    ];
    let made = table.with_columns(&formulas).unwrap();
    let pipeline = made.write(scratch.path("out"), BARE).unwrap();
    run(&pipeline, &small()).unwrap();
    let wanted = "2026-01-01T00:00:00.013000Z,2026-11-23T00:30:00Z\n\
                  1969-12-31T23:59:59.999000Z,1969-12-31T23:59:00Z\n";
    assert_eq!(
        std::fs::read_to_string(scratch.path("out")).unwrap(),
        wanted
    );
    for formula in [
        col("ms").truncate("1mo"),
        col("ms") + lit(Owned::timestamp(0)),
        parse_time("said", "%Y"),
        from_epoch("said", 1),
    ] {
        let error = table.with_columns(&[("x", formula)]).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Usage);
    }
}

#[test]
fn what_is_no_time_is_refused() {
    let scratch = Scratch::new("what_is_no_time_is_refused");
    let path = scratch.path("in.csv");
    let columns = || {
        vec![
            Column::new("n", Type::I64),
            Column::new("at", Type::Timestamp),
        ]
    };
    let table = || read_csv([&path], Csv::default(), columns()).unwrap();
    let alone = Settings {
        threads: Some(1),
        ..small()
    };
    let fails = |table: &Table| {
        let pipeline = table.write(scratch.path("out"), BARE).unwrap();
        run(&pipeline, &alone).unwrap_err()
    };
    for bad in [
        "2026-02-30",
        "yesterday",
        "",
        "2026-01-01T25:00:00Z",
        "10000-01-01",
    ] {
        std::fs::write(&path, format!("n,at\n1,2026-01-01\n2,{bad}\n")).unwrap();
        let error = fails(&table());
        assert_eq!(
            (error.kind, error.offset),
            (ErrorKind::Input, Some(18)),
            "{error}"
        );
        assert_eq!(error.path.as_deref(), Some(&*path));
        let wanted = format!("line 3: column at: {bad:?} is no value of type timestamp");
        assert!(error.to_string().contains(&wanted), "{error}");
    }
    std::fs::write(&path, "n,at\n1,2026-01-01\n").unwrap();
    let beyond = table().map(["at"], [("at", Type::Timestamp)], |_| {
        Ok([Owned::timestamp(TIMESTAMPS.end() + 1)])
    });
    let error = fails(&beyond.unwrap());
    assert_eq!(error.kind, ErrorKind::Function);
    assert!(
        error
            .to_string()
            .contains("253402300800000000 microseconds"),
        "{error}"
    );
    let number = table().map(["at"], [("at", Type::Timestamp)], |_| Ok([5i64.into()]));
    assert_eq!(fails(&number.unwrap()).kind, ErrorKind::Function);
    let groups = table().group_by(&["n"]).unwrap();
    for aggregate in [sum("at"), mean("at"), quantile("at", 0.5)] {
        let error = groups.agg(&[aggregate]).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Usage);
        assert!(
            error
                .to_string()
                .contains("at is of type timestamp, and no number"),
            "{error}"
        );
    }
    let error = table()
        .with_columns(&[("x", timestamp("n"))])
        .err()
        .unwrap();
    assert!(
        error.to_string().contains("n is of type i64, and no text"),
        "{error}"
    );
}
