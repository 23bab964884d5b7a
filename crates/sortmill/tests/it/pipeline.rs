//! Pipelines through the shipped engine, held against plain programs over what is in memory.
//!
//! Sizes are tuned down so that a megabyte is spilled, divided and merged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use num_bigint::BigInt;
use sortmill::error::{Error, ErrorKind};
use sortmill::io::codec::Codec;
use sortmill::io::{Host, RingKind};
use sortmill::job::Tuning;
use sortmill::pipeline::{
    Column, Form, Pipeline, PipelineReport, Settings, Table, Type, Value, count, fields, first,
    max, mean, min, ngrams, read_text, split, sum, words,
};
use sortmill::queue::Stop;

use crate::Scratch;
use crate::sort::inputs::{Random, seed};
use crate::sort::packed::{packed, unpacked};

#[path = "../../examples/word_count.rs"]
#[expect(
    dead_code,
    reason = "it has a main function, and this a program of its own"
)]
mod example;

const CSV: Form = Form::csv(true);
const BARE: Form = Form::csv(false);

/// Memory that a few megabytes of records are too much for.
pub fn small() -> Settings {
    Settings {
        memory_bytes: Some(6 << 20),
        threads: Some(2),
        tuning: Tuning {
            chunk_bytes: Some(16 << 10),
            block_bytes: Some(4096),
            ..Tuning::default()
        },
        ..Settings::default()
    }
}

pub fn host() -> Host {
    Host::new(RingKind::Posix, false).unwrap()
}

pub fn run(pipeline: &Pipeline, settings: &Settings) -> Result<PipelineReport, Error> {
    pipeline.run(settings, &host(), &Stop::new())
}

/// A folder with a text of words whose frequencies are as uneven as those of a language, in three files.
struct Text {
    scratch: Scratch,
    lines: Vec<String>,
}

impl Text {
    fn new(test: &str, line_count: usize) -> Self {
        let mut random = Random::new(seed(test));
        let scratch = Scratch::new(test);
        let mut lines = Vec::new();
        for _ in 0..line_count {
            let word = |random: &mut Random| {
                let rare = 1 << random.below(14);
                let number = random.below(rare);
                match number % 7 {
                    0 => format!("Ärger{number}"),
                    1 => format!("W{number:x}"),
                    _ => format!("w{number}x{number}"),
                }
            };
            let length = random.below(14);
            let words: Vec<String> = (0..length).map(|_| word(&mut random)).collect();
            let between = [" ", ", ", "\t", " - "][random.below(4)];
            lines.push(words.join(between));
        }
        let third = lines.len().div_ceil(3).max(1);
        let parts: Vec<String> = lines
            .chunks(third)
            .map(|part| part.join("\n") + "\n")
            .collect();
        std::fs::create_dir_all(scratch.path("in/deep")).unwrap();
        let codecs = [None, Some(Codec::Gzip), Some(Codec::Lz4)];
        let names = ["in/a.txt", "in/deep/b.txt.gz", "in/deep/c.txt.lz4"];
        for ((part, codec), name) in parts.iter().zip(codecs).zip(names) {
            let bytes = match codec {
                None => part.as_bytes().to_vec(),
                Some(codec) => packed(codec, part.as_bytes()),
            };
            std::fs::write(scratch.path(name), bytes).unwrap();
        }
        Self { scratch, lines }
    }

    fn pattern(&self, pattern: &str) -> String {
        self.scratch.path(pattern).to_string_lossy().into_owned()
    }

    fn table(&self) -> Table {
        read_text([self.pattern("in/**/*.txt*")], 0)
    }

    fn out(&self, name: &str) -> PathBuf {
        self.scratch.path(name)
    }

    fn words(&self) -> Vec<String> {
        let separators = [' ', ',', '\t', '-'];
        let words = self.lines.iter().flat_map(|line| line.split(separators));
        words
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for word in self.words() {
            *counts.entry(word.to_lowercase()).or_default() += 1;
        }
        counts
    }

    /// Nothing is left but what was there before and `made`.
    fn check_left(&self, made: &[&str]) {
        let mut names = vec!["in"];
        names.extend(made);
        names.sort_unstable();
        assert_eq!(self.scratch.names(), names);
    }
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn word_count_and_the_most_frequent() {
    let text = Text::new("word_count_and_the_most_frequent", 20_000);
    let table = text.table().flat_map(&words("line").lower()).unwrap();
    let counts = table
        .group_by(&["word"])
        .unwrap()
        .agg(&[count().named("n")])
        .unwrap();

    let report = run(
        &counts.write(text.out("counts.csv"), CSV).unwrap(),
        &small(),
    )
    .unwrap();
    let model = text.counts();
    let wanted: Vec<String> = model
        .iter()
        .map(|(word, n)| format!("{word},{n}"))
        .collect();
    let found = std::fs::read_to_string(text.out("counts.csv")).unwrap();
    let (heading, rest) = found.split_once('\n').unwrap();
    assert_eq!(heading, "word,n");
    assert_eq!(sorted(rest), wanted);
    let record_counts = (text.lines.len() as u64, wanted.len() as u64);
    assert_eq!(report.records(), record_counts);

    let top = counts.top(50, &[("n", true)]).unwrap();
    let report = run(&top.write(text.out("top.csv.gz"), CSV).unwrap(), &small()).unwrap();
    let mut by_count: Vec<(&String, &u64)> = model.iter().collect();
    by_count.sort_by_key(|&(word, &n)| (std::cmp::Reverse(n), word));
    let lines = by_count
        .iter()
        .take(50)
        .map(|(word, n)| format!("{word},{n}\n"));
    let wanted = "word,n\n".to_owned() + &lines.collect::<String>();
    let found = unpacked(Codec::Gzip, &std::fs::read(text.out("top.csv.gz")).unwrap());
    assert_eq!(String::from_utf8(found).unwrap(), wanted);
    // With the usual memory far less goes into partitions than all words: they are combined.
    let pipeline = counts.write(text.out("counts.csv"), CSV).unwrap();
    let combined = run(&pipeline, &Settings::default()).unwrap();
    let brought = combined.phases[0].report.fingerprints.distributed.records;
    assert!(brought < text.words().len() as u64 / 2, "{brought}");
    let [one, two] = &report.phases[..] else {
        panic!("{:?}", report.phases.len());
    };
    assert_eq!(
        one.report.fingerprints.written,
        two.report.fingerprints.input
    );
    text.check_left(&["counts.csv", "top.csv.gz"]);
}

#[test]
fn the_example_counts_words() {
    let text = Text::new("the_example_counts_words", 3_000);
    let names =
        ["in/a.txt", "in/deep/b.txt.gz", "in/deep/c.txt.lz4"].map(|name| text.pattern(name));
    let summary = example::word_count(names.to_vec(), &text.pattern("top.csv")).unwrap();
    assert!(summary.contains("3,000 records in"), "{summary}");
    let model = text.counts();
    let mut by_count: Vec<(&String, &u64)> = model.iter().collect();
    by_count.sort_by_key(|&(word, &n)| (std::cmp::Reverse(n), word));
    assert!(by_count.len() > 1000);
    let lines = by_count[..1000]
        .iter()
        .map(|(word, n)| format!("{word},{n}\n"));
    let wanted = "word,n\n".to_owned() + &lines.collect::<String>();
    assert_eq!(
        std::fs::read_to_string(text.out("top.csv")).unwrap(),
        wanted
    );
}

/// The same bytes for any memory, threads and back end, of groups that do not fit into memory too.
#[test]
fn the_same_whatever_the_memory() {
    let text = Text::new("the_same_whatever_the_memory", 30_000);
    let table = text.table().flat_map(&ngrams("line", 3)).unwrap();
    let aggregates = [count(), min("ngram").named("least")];
    let counts = table
        .group_by(&["ngram"])
        .unwrap()
        .agg(&aggregates)
        .unwrap();
    let pipeline = counts.write(text.out("out"), Form::JsonLines).unwrap();
    let mut model: BTreeMap<String, u64> = BTreeMap::new();
    for line in &text.lines {
        let split = line.split([' ', ',', '\t', '-']);
        let words: Vec<&str> = split.filter(|word| !word.is_empty()).collect();
        for three in words.windows(3) {
            *model.entry(three.join(" ")).or_default() += 1;
        }
    }
    let line = |(three, n): (&String, &u64)| {
        format!("{{\"ngram\":\"{three}\",\"count\":{n},\"least\":\"{three}\"}}")
    };
    let mut wanted: Vec<String> = model.iter().map(line).collect();
    wanted.sort_unstable();
    let report = run(&pipeline, &small()).unwrap();
    let first = std::fs::read_to_string(text.out("out")).unwrap();
    assert!(sorted(&first) == wanted);
    assert!(report.phases[0].report.bytes.temp_written > 100_000);
    let settings = Settings {
        memory_bytes: Some(64 << 20),
        threads: Some(1),
        ..Settings::default()
    };
    let host = Host::new(RingKind::Auto, true).unwrap();
    pipeline.run(&settings, &host, &Stop::new()).unwrap();
    assert!(std::fs::read_to_string(text.out("out")).unwrap() == first);
}

#[test]
fn distinct_select_filter_and_split() {
    let text = Text::new("distinct_select_filter_and_split", 8_000);
    let table = text.table().flat_map(&words("line")).unwrap();
    let long = table.filter(["word"], |[word]| Ok(word.bytes().len() > 5));
    let table = long.unwrap();
    let table = table.distinct().unwrap().sort(&[("word", true)]).unwrap();
    run(&table.write(text.out("out"), Form::Text).unwrap(), &small()).unwrap();
    let all: BTreeSet<String> = text.words().into_iter().collect();
    let wanted: Vec<&String> = all.iter().rev().filter(|word| word.len() > 5).collect();
    let found = std::fs::read_to_string(text.out("out")).unwrap();
    assert_eq!(found.lines().collect::<Vec<_>>(), wanted);

    // Without anything that brings records together: the order of the input.
    let parts = text
        .table()
        .flat_map(&split("line", " - ").named("one"))
        .unwrap();
    run(&parts.write(text.out("out"), Form::Text).unwrap(), &small()).unwrap();
    let wanted: Vec<&str> = text
        .lines
        .iter()
        .flat_map(|line| line.split(" - "))
        .collect();
    let found = std::fs::read_to_string(text.out("out")).unwrap();
    assert!(found.lines().collect::<Vec<_>>() == wanted);
}

/// A table of a city, a whole number, a float and a bool.
struct Sales {
    text: Text,
    lines: Vec<(String, i64, f64, bool)>,
}

impl Sales {
    fn new(test: &str) -> Self {
        let mut random = Random::new(seed(test));
        let text = Text::new(test, 0);
        let mut lines = Vec::new();
        let mut file = "city\tcount\tprice\tpaid\r\n".to_owned();
        for _ in 0..20_000 {
            let below = 1 + random.below(40);
            let city = format!("city {}", random.below(below));
            let whole = random.next() as i64 >> (random.below(50) + 10);
            let price = (random.below(1 << 20) as f64 - 500_000.0)
                * 10f64.powi(random.below(300) as i32 - 150);
            let paid = random.below(2) == 0;
            file += &format!("{city}\t{whole}\t{price:?}\t{paid}\r\n");
            lines.push((city, whole, price, paid));
        }
        std::fs::write(text.out("in/sales.tsv"), file).unwrap();
        Self { text, lines }
    }

    fn table(&self) -> Table {
        let columns = vec![
            Column::new("city", Type::String),
            Column::new("count", Type::I64),
            Column::new("price", Type::F64),
            Column::new("paid", Type::Bool),
        ];
        let table = read_text([self.text.pattern("in/sales.tsv")], 1);
        table.flat_map(&fields("line", "\t", columns)).unwrap()
    }
}

#[test]
fn sorted_by_columns_in_both_directions() {
    let sales = Sales::new("sorted_by_columns_in_both_directions");
    let table = sales
        .table()
        .sort(&[("paid", true), ("price", false), ("city", true)])
        .unwrap();
    let table = table.select(&["price", "city", "paid", "count"]).unwrap();
    run(&table.write(sales.text.out("out"), BARE).unwrap(), &small()).unwrap();
    let mut model = sales.lines.clone();
    model.sort_by(|a, b| {
        let by_price = a.2.partial_cmp(&b.2).unwrap();
        b.3.cmp(&a.3).then(by_price).then(b.0.cmp(&a.0))
    });
    let line = |(city, whole, price, paid): &(String, i64, f64, bool)| {
        format!("{price:?},{city},{paid},{whole}")
    };
    let wanted: Vec<String> = model.iter().map(line).collect();
    let found = std::fs::read_to_string(sales.text.out("out")).unwrap();
    assert!(found.lines().collect::<Vec<_>>() == wanted);
}

#[test]
fn aggregates_of_groups() {
    let sales = Sales::new("aggregates_of_groups");
    let aggregates = [
        count(),
        sum("count"),
        sum("price").named("turnover"),
        mean("count").named("mean"),
        min("price").named("least"),
        max("count").named("most"),
        first("price").named("first"),
        max("paid").named("any"),
    ];
    let mut named = aggregates.to_vec();
    named[0].name = "n".to_owned();
    let table = sales
        .table()
        .group_by(&["city", "paid"])
        .unwrap()
        .agg(&named)
        .unwrap();
    let mut groups: BTreeMap<(String, bool), Vec<(i64, f64)>> = BTreeMap::new();
    for (city, whole, price, paid) in &sales.lines {
        groups
            .entry((city.clone(), *paid))
            .or_default()
            .push((*whole, *price));
    }
    // Sorted by size, so that the model adds no small number to a large one: 2^-40 is near enough.
    let near = |a: f64, b: f64| (a - b).abs() <= b.abs() * 2f64.powi(-40);
    run(&table.write(sales.text.out("out"), BARE).unwrap(), &small()).unwrap();
    let found = std::fs::read_to_string(sales.text.out("out")).unwrap();
    assert_eq!(found.lines().count(), groups.len());
    for line in found.lines() {
        let values: Vec<&str> = line.split(',').collect();
        let number = |at: usize| values[at].parse::<f64>().unwrap();
        let group = &groups[&(values[0].to_owned(), values[1] == "true")];
        let whole: i64 = group.iter().map(|one| one.0).sum();
        let mut prices: Vec<f64> = group.iter().map(|one| one.1).collect();
        let first = prices[0];
        prices.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        assert_eq!(values[2], group.len().to_string());
        assert_eq!(values[3], whole.to_string());
        assert!(near(number(4), prices.iter().sum()), "{line}");
        // By decimal digits, which the standard library reads exactly, and one that tells that they go on.
        let digits = BigInt::from(whole) * BigInt::from(10).pow(40);
        let (quotient, left) = (&digits / group.len(), &digits % group.len());
        let last = u8::from(left != BigInt::default());
        assert_eq!(
            number(5),
            format!("{quotient}{last}e-41").parse::<f64>().unwrap()
        );
        assert_eq!(
            number(6),
            prices.iter().copied().fold(f64::INFINITY, f64::min)
        );
        assert_eq!(
            values[7],
            group.iter().map(|one| one.0).max().unwrap().to_string()
        );
        assert_eq!(number(8), first);
        assert_eq!(values[9], values[1]);
    }

    // All states are combined while records are mapped, and come to the same.
    let pipeline = table.write(sales.text.out("combined"), BARE).unwrap();
    for settings in [small(), Settings::default()] {
        let report = run(&pipeline, &settings).unwrap();
        let brought = report.phases[0].report.fingerprints.distributed.records;
        // With little memory the table holds few sums of floats and stands aside.
        assert!(
            settings.memory_bytes.is_some() || brought < 1_000,
            "{brought}"
        );
        let combined = std::fs::read_to_string(sales.text.out("combined")).unwrap();
        assert_eq!(combined, found);
    }
}

#[test]
fn functions_of_groups_and_records() {
    let sales = Sales::new("functions_of_groups_and_records");
    let doubled = |values: &[Value<'_>], out: sortmill::pipeline::Sink<'_>| {
        let [city, Value::I64(whole)] = values else {
            unreachable!("as the columns are");
        };
        out(&[*city, Value::I64(whole / 2)])?;
        out(&[*city, Value::I64(whole - whole / 2)])
    };
    let columns = vec![
        Column::new("city", Type::String),
        Column::new("half", Type::I64),
    ];
    let table = sales
        .table()
        .each(&["city", "count"], columns, Arc::new(doubled))
        .unwrap();
    let least = table.group_by(&["city"]).unwrap().reduce(|sum, one| {
        if let (Value::I64(a), Value::I64(b)) = (sum[1].value(), one[1]) {
            sum[1] = sortmill::pipeline::Owned::new(Value::I64(a.min(b)));
        }
        Ok(())
    });
    run(
        &least.unwrap().write(sales.text.out("out"), BARE).unwrap(),
        &small(),
    )
    .unwrap();
    let mut model: BTreeMap<String, i64> = BTreeMap::new();
    for (city, whole, ..) in &sales.lines {
        let least = model.entry(city.clone()).or_insert(i64::MAX);
        *least = (*least).min(whole / 2).min(whole - whole / 2);
    }
    let wanted: Vec<String> = model
        .iter()
        .map(|(city, least)| format!("{city},{least}"))
        .collect();
    let found = std::fs::read_to_string(sales.text.out("out")).unwrap();
    let mut wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    wanted.sort_unstable();
    assert_eq!(sorted(&found), wanted);
}

/// Nearly all records are of one group, which is larger than memory: it is handed out as a stream, in the order of the
/// input, and an aggregate of it takes no more than one record for each worker and table that was full.
#[test]
fn one_group_larger_than_memory() {
    let text = Text::new("one_group_larger_than_memory", 0);
    let mut random = Random::new(seed("one_group_larger_than_memory"));
    let key = |number: usize| if number % 10 == 9 { "rare" } else { "hot" };
    let mut file = String::new();
    for number in 0..60_000 {
        let padding = "x".repeat(100 + random.below(200));
        file += &format!("{} {number} {padding}\n", key(number));
    }
    assert!(file.len() > 10 << 20);
    std::fs::write(text.out("in/a.txt"), &file).unwrap();
    let columns = ["key", "padding"].map(|name| Column::new(name, Type::String));
    let mut columns = columns.to_vec();
    columns.insert(1, Column::new("number", Type::U64));
    let table = read_text([text.pattern("in/a.txt")], 0);
    let table = table.flat_map(&fields("line", " ", columns)).unwrap();
    let groups = table.group_by(&["key"]).unwrap();

    let made = vec![
        Column::new("key", Type::String),
        Column::new("n", Type::U64),
    ];
    let in_order = groups.apply_sorted(
        &[],
        made,
        Arc::new(|| {
            let mut open: Option<(Vec<u8>, u64, u64)> = None;
            Box::new(move |record, out| {
                let Some(record) = record else {
                    let (key, _, count) = open.take().expect("a group has a record");
                    return out(&[Value::Bytes(&key), Value::U64(count)]);
                };
                let (key, Value::U64(number)) = (record[0].bytes(), record[1]) else {
                    unreachable!("as the columns are");
                };
                let (_, last, count) = open.get_or_insert_with(|| (key.to_vec(), number, 0));
                assert!(*count == 0 || number > *last, "{number} after {last}");
                (*last, *count) = (number, *count + 1);
                Ok(())
            })
        }),
    );
    let in_order = in_order.unwrap().sort(&[("key", false)]).unwrap();
    let report = run(&in_order.write(text.out("out"), BARE).unwrap(), &small()).unwrap();
    let partitions = &report.phases[0].report.partitions;
    assert!(partitions.divided > 0, "{partitions:?}");
    assert_eq!(
        std::fs::read_to_string(text.out("out")).unwrap(),
        "hot,54000\nrare,6000\n"
    );

    let aggregates = [
        count().named("n"),
        max("number"),
        first("number").named("first"),
    ];
    for aggregates in [&aggregates[..2], &aggregates] {
        let table = groups
            .agg(aggregates)
            .unwrap()
            .sort(&[("key", false)])
            .unwrap();
        let report = run(&table.write(text.out("out"), BARE).unwrap(), &small()).unwrap();
        let found = std::fs::read_to_string(text.out("out")).unwrap();
        let brought = report.phases[0].report.fingerprints.distributed.records;
        match aggregates.len() {
            2 => {
                assert_eq!(found, "hot,54000,59998\nrare,6000,59999\n");
                assert!(brought < 100, "{brought}");
            }
            _ => assert_eq!(found, "hot,54000,59998,0\nrare,6000,59999,9\n"),
        }
    }
}

/// A pipe as input and a pipe as output.
#[test]
fn through_pipes() {
    let text = Text::new("through_pipes", 3_000);
    let (from, to) = (text.out("from"), text.out("to"));
    for pipe in [&from, &to] {
        assert!(
            std::process::Command::new("mkfifo")
                .arg(pipe)
                .status()
                .unwrap()
                .success()
        );
    }
    let table = read_text([&from], 0)
        .flat_map(&words("line").lower())
        .unwrap();
    let counts = table.group_by(&["word"]).unwrap().agg(&[count()]).unwrap();
    let counts = counts.sort(&[("word", false)]).unwrap();
    let pipeline = counts.write(&to, BARE).unwrap();
    let found = std::thread::scope(|threads| {
        let job = threads.spawn(|| {
            let settings = Settings {
                memory_bytes: Some(256 << 20),
                ..Settings::default()
            };
            run(&pipeline, &settings).map(|report| report.records())
        });
        // If the last line is empty, that it has no end says that there is none.
        let joined = text.lines.join("\n");
        let line_count = joined.lines().count() as u64;
        let from = &from;
        threads.spawn(move || std::fs::write(from, joined).unwrap());
        let found = std::fs::read_to_string(&to).unwrap();
        assert_eq!(job.join().unwrap().unwrap().0, line_count);
        found
    });
    let model = text.counts();
    let wanted: String = model
        .iter()
        .map(|(word, n)| format!("{word},{n}\n"))
        .collect();
    assert_eq!(found, wanted);
}

#[test]
fn what_goes_wrong_is_told() {
    let sales = Sales::new("what_goes_wrong_is_told");
    let out = sales.text.out("out");
    std::fs::write(&out, "old").unwrap();
    let table = sales.table();
    let usage = |error: Option<Error>, wanted: &str| {
        let error = error.unwrap();
        assert_eq!(error.kind, ErrorKind::Usage);
        assert!(error.to_string().contains(wanted), "{error}");
    };
    usage(
        table.sort(&[("town", false)]).err(),
        "no column town, only city, count, price, paid",
    );
    usage(
        table.group_by(&["city"]).unwrap().agg(&[sum("city")]).err(),
        "no number",
    );
    usage(
        table.flat_map(&words("count")).err(),
        "count is of type i64",
    );
    usage(
        table
            .group_by(&["city"])
            .unwrap()
            .agg(&[count(), count()])
            .err(),
        "two columns are called count",
    );

    let fails = |table: &Table, settings: &Settings, kind: ErrorKind, wanted: &str| {
        let error = run(&table.write(&out, BARE).unwrap(), settings).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.to_string().contains(wanted), "{error}");
        assert_eq!(std::fs::read_to_string(&out).unwrap(), "old");
        sales.text.check_left(&["out"]);
        error
    };
    let none = read_text([sales.text.pattern("in/*.none")], 0);
    fails(&none, &small(), ErrorKind::Input, "no file matches");
    let tiny = Settings {
        memory_bytes: Some(1 << 20),
        ..Settings::default()
    };
    fails(
        &table.distinct().unwrap(),
        &tiny,
        ErrorKind::Memory,
        "needs at least",
    );

    // A value in the middle that is no number, with its file and offset.
    let mut file = std::fs::read(sales.text.out("in/sales.tsv")).unwrap();
    let line = file[200_000..]
        .iter()
        .position(|&byte| byte == b'\n')
        .unwrap()
        + 200_001;
    file.splice(line..line, b"x\ty\t1\ttrue\n".iter().copied());
    std::fs::write(sales.text.out("in/sales.tsv"), file).unwrap();
    let error = fails(
        &table.distinct().unwrap(),
        &small(),
        ErrorKind::Input,
        "column count: \"y\" is no value",
    );
    assert_eq!(error.offset, Some(line as u64));
    assert!(error.path.as_ref().unwrap().ends_with("in/sales.tsv"));

    // The same of lines that come several at once to what counts a field of theirs.
    let texts = ["city", "count", "price", "open"].map(|name| Column::new(name, Type::String));
    let file = std::fs::read(sales.text.out("in/sales.tsv")).unwrap();
    let misfit = [&file[..line], b"x\ty\n", &file[line..]].concat();
    std::fs::write(sales.text.out("in/sales.tsv"), misfit).unwrap();
    let lines = read_text([sales.text.pattern("in/sales.tsv")], 0);
    let cities = lines.flat_map(&fields("line", *b"\t", texts.to_vec()));
    let cities = cities.unwrap().select(&["city"]).unwrap();
    let cause = "it has 2 fields where 4 are expected";
    let error = fails(
        &cities.distinct().unwrap(),
        &small(),
        ErrorKind::Input,
        cause,
    );
    assert_eq!(error.offset, Some(line as u64));
    assert!(error.path.as_ref().unwrap().ends_with("in/sales.tsv"));

    // A function that fails on the way into and out of partitions, and one that makes another type.
    let lines = read_text([sales.text.pattern("in/sales.tsv")], 0);
    let refuse = |_: [Value<'_>; 1]| Err(Error::new(ErrorKind::Function, "asking", "no answer"));
    let before = lines.filter(["line"], refuse).unwrap();
    fails(&before, &small(), ErrorKind::Function, "no answer");
    let after = lines
        .sort(&[("line", false)])
        .unwrap()
        .filter(["line"], refuse)
        .unwrap();
    fails(&after, &small(), ErrorKind::Function, "no answer");
    let other = |_: &[Value<'_>], out: sortmill::pipeline::Sink<'_>| out(&[Value::I64(1)]);
    let columns = vec![Column::new("text", Type::String)];
    let other = lines.each(&["line"], columns, Arc::new(other)).unwrap();
    fails(
        &other,
        &small(),
        ErrorKind::Function,
        "which is not (string)",
    );

    // The output is an input, and an integer that no column holds.
    let pipeline = lines
        .write(sales.text.out("in/sales.tsv"), Form::Text)
        .unwrap();
    assert_eq!(run(&pipeline, &small()).unwrap_err().kind, ErrorKind::Usage);
    let huge = format!("{}\n", i64::MAX).repeat(2);
    std::fs::write(sales.text.out("in/sales.tsv"), huge).unwrap();
    let columns = vec![Column::new("n", Type::I64)];
    let huge = lines.flat_map(&fields("line", "\t", columns)).unwrap();
    let huge = huge
        .each(
            &["n"],
            vec![Column::new("a", Type::Bool), Column::new("n", Type::I64)],
            Arc::new(|values, out| out(&[Value::Bool(true), values[0]])),
        )
        .unwrap();
    let huge = huge
        .group_by(&["a"])
        .unwrap()
        .agg(&[sum("n").named("all")])
        .unwrap();
    let cause = "of column n is beyond what i64 holds, in the group true";
    fails(&huge, &small(), ErrorKind::Input, cause);
}

#[test]
fn explained_before_it_is_done() {
    let text = Text::new("explained_before_it_is_done", 1_000);
    let table = text.table().flat_map(&words("line").lower()).unwrap();
    let counts = table.group_by(&["word"]).unwrap().agg(&[count()]).unwrap();
    let top = counts.top(9, &[("count", true)]).unwrap();
    let told = top
        .write(text.out("out"), CSV)
        .unwrap()
        .explain(&small(), &host())
        .unwrap();
    for line in [
        "maps: words of line",
        "combines what comes lately",
        "brings together: group by word, in the order of a hash",
        "brings together: top 9 by count downwards",
        "writes CSV to",
        "state of the map function",
        "reduced before its turn",
    ] {
        assert!(told.contains(line), "{line} is not in\n{told}");
    }
    text.check_left(&[]);
}
