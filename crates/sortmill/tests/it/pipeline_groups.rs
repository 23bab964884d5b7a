//! Groups in order, samples, shuffles and what is built in, held against plain programs over what is in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use sortmill::check::check_parts;
use sortmill::error::{Error, ErrorKind};
use sortmill::io::codec::Codec;
use sortmill::job::Compress;
use sortmill::pipeline::{
    Column, Csv, Form, GroupFn, Moment, Settings, Table, Type, Value, approx_count_distinct, count,
    count_distinct, extract, fields, first, hash, matches, min, parse, read_csv, read_text, split,
    sum, timestamp, words,
};
use sortmill::queue::Stop;

use crate::Scratch;
use crate::pipeline::{host, run, small};
use crate::sort::inputs::{Random, seed};
use crate::sort::packed::{packed, unpacked};

const BARE: Form = Form::csv(false);

/// Clicks: a user, a time and a page, in no order at all; some twice.
pub struct Clicks {
    pub scratch: Scratch,
    pub clicks: Vec<(String, i64, String)>,
}

impl Clicks {
    pub fn new(test: &str, click_count: usize) -> Self {
        let mut random = Random::new(seed(test));
        let scratch = Scratch::new(test);
        let mut clicks = Vec::new();
        for _ in 0..click_count {
            let often = 1 << random.below(10);
            let user = format!("user {}", random.below(often));
            let time = random.below(20_000) as i64 - 10_000;
            let page = format!("/{:x}", random.below(300));
            clicks.push((user, time, page));
        }
        let line = |(user, time, page): &(String, i64, String)| format!("{user}\t{time}\t{page}\n");
        let text: String = clicks.iter().map(line).collect();
        std::fs::write(scratch.path("in.txt"), text).unwrap();
        Self { scratch, clicks }
    }

    pub fn table(&self) -> Table {
        let names = [
            ("user", Type::String),
            ("time", Type::I64),
            ("page", Type::String),
        ];
        let columns = names.map(|(name, kind)| Column::new(name, kind)).to_vec();
        let table = read_text([self.scratch.path("in.txt")], 0);
        table.flat_map(&fields("line", "\t", columns)).unwrap()
    }

    pub fn out(&self) -> PathBuf {
        self.scratch.path("out")
    }

    /// What a table writes, with little memory and with much, in several threads and in one: the same.
    pub fn written(&self, table: &Table, form: Form) -> String {
        let pipeline = table.write(self.out(), form).unwrap();
        let mut all = Vec::new();
        let much = Settings {
            memory_bytes: Some(64 << 20),
            threads: Some(1),
            ..Settings::default()
        };
        let many = Settings {
            memory_bytes: Some(12 << 20),
            threads: Some(4),
            ..small()
        };
        // Units that end before their turn are left until it comes.
        let ahead = Settings {
            memory_bytes: Some(160 << 20),
            threads: Some(4),
            ..small()
        };
        for settings in [small(), many, much, ahead] {
            run(&pipeline, &settings).unwrap();
            all.push(std::fs::read_to_string(self.out()).unwrap());
        }
        assert!(all.iter().all(|other| *other == all[0]));
        assert_eq!(self.scratch.names(), ["in.txt", "out"]);
        all.swap_remove(0)
    }

    pub fn groups(&self) -> BTreeMap<&str, Vec<(i64, &str)>> {
        let mut groups: BTreeMap<&str, Vec<(i64, &str)>> = BTreeMap::new();
        for (user, time, page) in &self.clicks {
            groups.entry(user).or_default().push((*time, page));
        }
        groups
    }
}

pub fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// A function that makes one record of each group: its key and all of its pages.
fn pages() -> GroupFn {
    let (mut key, mut pages) = (Vec::new(), Vec::new());
    Box::new(move |record, out| {
        let Some(record) = record else {
            out(&[Value::Bytes(&key), Value::Bytes(&pages)])?;
            (key, pages) = (Vec::new(), Vec::new());
            return Ok(());
        };
        key = record[0].bytes().to_vec();
        pages.push(b' ');
        pages.extend_from_slice(record[2].bytes());
        Ok(())
    })
}

#[test]
fn the_first_record_of_each_group() {
    let clicks = Clicks::new("the_first_record_of_each_group", 20_000);
    let groups = clicks.table().group_by(&["page"]).unwrap();
    let firsts = groups.sorted().first_records().unwrap();
    assert_eq!(firsts.columns(), clicks.table().columns());
    let mut wanted: BTreeMap<&str, String> = BTreeMap::new();
    for (user, time, page) in &clicks.clicks {
        let line = || format!("{user}\t{time}\t{page}\n");
        wanted.entry(page).or_insert_with(line);
    }
    let wanted: String = wanted.into_values().collect();
    assert!(clicks.written(&firsts, Form::Text) == wanted);
    // Of all columns, in any order, those that differ.
    let all = clicks.table().group_by(&["time", "page", "user"]).unwrap();
    let (all, once) = (all.first_records(), clicks.table().distinct());
    let [all, once] = [all, once].map(|table| clicks.written(&table.unwrap(), Form::Text));
    assert_eq!(sorted(&all), sorted(&once));
}

/// What is told apart or counted by one field is found and counted in one loop, but not where a filter, which keeps all here, stands
/// between both. Either way comes to the same, and a line with another number of fields is refused.
#[test]
fn keys_are_counted_in_one_loop_as_in_steps() {
    let clicks = Clicks::new("keys_are_counted_in_one_loop_as_in_steps", 40_000);
    let texts = ["user", "time", "page"].map(|name| Column::new(name, Type::String));
    let input = clicks.scratch.path("in.txt");
    let lines = read_text([&input], 0);
    let cut = lines.flat_map(&fields("line", "\t", texts.to_vec()));
    let cut = cut.unwrap();
    let stepwise = cut.filter(["page"], |[_]| Ok(true)).unwrap();
    for (at, name) in ["user", "time", "page"].into_iter().enumerate() {
        let mut wanted: BTreeMap<String, u64> = BTreeMap::new();
        for (user, time, page) in &clicks.clicks {
            let key = [user.clone(), time.to_string(), page.clone()][at].clone();
            *wanted.entry(key).or_default() += 1;
        }
        let line = |(key, count): (&String, &u64)| format!("{key}\t{count}");
        let wanted: Vec<String> = wanted.iter().map(line).collect();
        for table in [&cut, &stepwise] {
            let keys = table.select(&[name]).unwrap();
            let counts = keys.group_by(&[name]).unwrap().agg(&[count()]).unwrap();
            let found = clicks.written(&counts, Form::Text);
            assert!(sorted(&found) == wanted, "{name}");
            let apart = clicks.written(&keys.distinct().unwrap(), Form::Text);
            let keys = wanted.iter().map(|line| line.split('\t').next().unwrap());
            assert!(sorted(&apart).into_iter().eq(keys), "{name}");
        }
    }
    let mut text = std::fs::read_to_string(&input).unwrap();
    text.push_str("only\ttwo\n");
    std::fs::write(&input, text).unwrap();
    for table in [&cut, &stepwise] {
        let keys = table.select(&["page"]).unwrap().distinct().unwrap();
        let pipeline = keys.write(clicks.out(), Form::Text).unwrap();
        let error = run(&pipeline, &small()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Input);
        assert!(
            error.cause.contains("it has 2 fields where 3 are expected"),
            "{error}"
        );
    }
}

/// Keys that come twice and then no more fill the memory for groups, and are handed on when others come: many more of them than what
/// may be made of one record. All at once they were too many, and the job failed.
#[test]
fn keys_that_come_no_more_are_handed_on_in_pieces() {
    let clicks = Clicks::new("keys_that_come_no_more_are_handed_on_in_pieces", 0);
    let input = clicks.scratch.path("in.txt");
    let key_count = 410_000;
    let text: String = (0..2 * key_count)
        .map(|at| format!("k{:07}\n", at / 2))
        .collect();
    std::fs::write(&input, text).unwrap();
    let lines = read_text([&input], 0);
    // Of words, which are counted where they are found, and of lines as they are.
    let by_word = lines.flat_map(&words("line")).unwrap();
    for (table, column) in [(by_word, "word"), (lines, "line")] {
        let counts = table.group_by(&[column]).unwrap().agg(&[count()]).unwrap();
        let pipeline = counts.write(clicks.out(), Form::Text).unwrap();
        let settings = Settings {
            memory_bytes: Some(64 << 20),
            threads: Some(1),
            ..small()
        };
        run(&pipeline, &settings).unwrap();
        let found = std::fs::read_to_string(clicks.out()).unwrap();
        let wanted = (0..key_count).map(|at| format!("k{at:07}\t2"));
        assert!(sorted(&found).into_iter().eq(wanted), "{column}");
    }
}

/// Words likewise: of no length, of those at which keys are held otherwise, and longer than what is looked at together; lines of ASCII
/// and others between them.
#[test]
fn words_are_counted_in_one_loop_as_in_steps() {
    let clicks = Clicks::new("words_are_counted_in_one_loop_as_in_steps", 0);
    let mut random = Random::new(seed("words_are_counted_in_one_loop_as_in_steps"));
    let mut text = String::new();
    for number in 0..20_000 {
        for _ in 0..random.below(8) {
            let letters = if number % 9 == 0 { "äZ" } else { "aZ9" };
            let letter = letters.chars().nth(random.below(letters.chars().count()));
            let length = [random.below(20), random.below(150)][usize::from(random.below(20) == 0)];
            text.extend(std::iter::repeat_n(letter.unwrap(), length));
            text.push_str([" ", ", ", "\0"][random.below(3)]);
        }
        text.push('\n');
    }
    let input = clicks.scratch.path("in.txt");
    std::fs::write(&input, &text).unwrap();
    let mut wanted: BTreeMap<String, u64> = BTreeMap::new();
    for word in text.split(|letter: char| !letter.is_alphanumeric()) {
        if !word.is_empty() {
            *wanted.entry(word.to_lowercase()).or_default() += 1;
        }
    }
    let mut wanted: Vec<String> = (wanted.iter())
        .map(|(word, count)| format!("{word}\t{count}"))
        .collect();
    wanted.sort_unstable();
    let lines = read_text([&input], 0);
    let cut = lines.flat_map(&words("line").lower()).unwrap();
    let stepwise = cut.filter(["word"], |[_]| Ok(true)).unwrap();
    for table in [&cut, &stepwise] {
        let counts = table.group_by(&["word"]).unwrap().agg(&[count()]).unwrap();
        assert!(sorted(&clicks.written(&counts, Form::Text)) == wanted);
    }
}

#[test]
fn groups_come_in_the_order_that_is_asked() {
    let clicks = Clicks::new("groups_come_in_the_order_that_is_asked", 60_000);
    let made = ["user", "pages"].map(|name| Column::new(name, Type::String));
    let groups = clicks.table().group_by(&["user"]).unwrap();
    let order = [("time", true), ("page", false)];
    let table = groups
        .apply_sorted(&order, made.to_vec(), Arc::new(pages))
        .unwrap();
    let found = clicks.written(&table, Form::Text);
    let line = |(user, mut group): (&str, Vec<(i64, &str)>)| {
        group.sort_by_key(|&(time, page)| (std::cmp::Reverse(time), page));
        let pages: String = group.iter().map(|(_, page)| format!(" {page}")).collect();
        format!("{user}\t{pages}")
    };
    let mut wanted: Vec<String> = clicks.groups().into_iter().map(line).collect();
    wanted.sort_unstable();
    assert!(sorted(&found) == wanted);
    // Groups come in the same order, whatever orders their records.
    let counts = groups.agg(&[count()]).unwrap();
    let counted = clicks.written(&counts, Form::Text);
    let user = |line: &str| line.split('\t').next().map(str::to_owned);
    assert!(counted.lines().map(user).eq(found.lines().map(user)));
    // Or in their own.
    let in_order = groups.sorted();
    let table = in_order.apply_sorted(&order, made.to_vec(), Arc::new(pages));
    let found = clicks.written(&table.unwrap(), Form::Text);
    assert!(found.lines().eq(wanted.iter().map(String::as_str)));
}

/// Most records are of one group, which is larger than memory and therefore has several partitions: it comes whole all the same, and in order.
#[test]
fn an_ordered_group_larger_than_memory_is_one() {
    let mut random = Random::new(seed("an_ordered_group_larger_than_memory_is_one"));
    let scratch = Scratch::new("an_ordered_group_larger_than_memory_is_one");
    let mut text = String::new();
    let mut wanted: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for _ in 0..50_000 {
        let key = match random.below(5) {
            0 => format!("rare {}", random.below(200)),
            _ => "hot".to_owned(),
        };
        let number = random.below(1 << 20) as u64;
        text += &format!("{key}\t{number}\t{}\n", "x".repeat(100 + random.below(200)));
        wanted.entry(key).or_default().push(number);
    }
    assert!(text.len() > 8 << 20);
    std::fs::write(scratch.path("in.txt"), text).unwrap();
    let columns = [
        ("key", Type::String),
        ("number", Type::U64),
        ("rest", Type::String),
    ];
    let columns = columns.map(|(name, kind)| Column::new(name, kind)).to_vec();
    let made = columns[..2].to_vec();
    let table = read_text([scratch.path("in.txt")], 0);
    let table = table.flat_map(&fields("line", "\t", columns)).unwrap();
    let groups = table.group_by(&["key"]).unwrap();
    let each = || -> GroupFn { Box::new(|record, out| record.map_or(Ok(()), |of| out(&of[..2]))) };
    for model in wanted.values_mut() {
        model.sort_unstable();
    }
    // In the order of a hash, and in that of their keys.
    for in_order in [false, true] {
        let groups = match in_order {
            true => groups.clone().sorted(),
            false => groups.clone(),
        };
        let table = groups.apply_sorted(&[("number", false)], made.clone(), Arc::new(each));
        let pipeline = table
            .unwrap()
            .write(scratch.path("out"), Form::Text)
            .unwrap();
        let report = run(&pipeline, &small()).unwrap();
        let partitions = &report.phases[0].report.partitions;
        // A quarter of the group is more than any partition has.
        assert!(4 * partitions.bytes_max < 6 << 20, "{partitions:?}");
        let found = std::fs::read_to_string(scratch.path("out")).unwrap();
        let lines: Vec<(&str, u64)> = found
            .lines()
            .map(|line| line.split_once('\t').unwrap())
            .map(|(key, number)| (key, number.parse().unwrap()))
            .collect();
        let mut seen = BTreeSet::new();
        for group in lines.chunk_by(|a, b| a.0 == b.0) {
            assert!(seen.insert(group[0].0), "{} came in pieces", group[0].0);
            let model = &wanted[group[0].0];
            assert!(group.iter().map(|(_, number)| number).eq(model.iter()));
        }
        assert_eq!(seen.len(), wanted.len());
        assert!(!in_order || lines.is_sorted());
    }
}

#[test]
fn sessions_end_with_a_pause() {
    let clicks = Clicks::new("sessions_end_with_a_pause", 30_000);
    let groups = clicks.table().group_by(&["user"]).unwrap();
    let sessions = groups.sessions("time", 40, "session").unwrap();
    let sessions = sessions.select(&["user", "time", "session"]).unwrap();
    let found = clicks.written(&sessions, Form::Text);
    let mut wanted = Vec::new();
    for (user, mut group) in clicks.groups() {
        group.sort_unstable();
        let (mut before, mut session) = (group[0].0, 0);
        for (time, _) in group {
            session += u64::from(time - before > 40);
            before = time;
            wanted.push(format!("{user}\t{time}\t{session}"));
        }
    }
    wanted.sort_unstable();
    assert!(sorted(&found) == wanted);
}

/// How many pages and times of a group differ.
fn different(group: &[(i64, &str)]) -> (usize, usize) {
    let pages: BTreeSet<&str> = group.iter().map(|(_, page)| *page).collect();
    let times: BTreeSet<i64> = group.iter().map(|(time, _)| *time).collect();
    (pages.len(), times.len())
}

#[test]
fn different_values_are_counted() {
    let clicks = Clicks::new("different_values_are_counted", 40_000);
    let groups = clicks.table().group_by(&["user"]).unwrap();
    let of = [
        count_distinct("page"),
        approx_count_distinct("time"),
        count(),
        sum("time"),
    ];
    let of = ["pages", "times", "n", "sum"]
        .into_iter()
        .zip(of)
        .map(|(name, one)| one.named(name));
    let mut of: Vec<_> = of.collect();
    // With what is not combined, and without.
    for is_combined in [true, false] {
        if !is_combined {
            of.push(min("page").named("least"));
        }
        let found = clicks.written(&groups.agg(&of).unwrap(), BARE);
        assert_eq!(found.lines().count(), clicks.groups().len());
        for line in found.lines() {
            let values: Vec<&str> = line.split(',').collect();
            let group = &clicks.groups()[values[0]];
            let (pages, times) = different(group);
            let sum: i64 = group.iter().map(|(time, _)| time).sum();
            let wanted = [pages.to_string(), group.len().to_string(), sum.to_string()];
            assert_eq!([values[1], values[3], values[4]], wanted);
            let (about, truth) = (values[2].parse::<f64>().unwrap(), times as f64);
            // Six standard errors, and of few values two that share a register.
            assert!(
                (about - truth).abs() <= 0.1 * truth + 2.5,
                "{about} {truth}"
            );
        }
    }
    // Of two columns, each of which wants an order of its own; and of groups in order.
    let two = [
        count_distinct("page").named("pages"),
        count_distinct("time").named("times"),
    ];
    let line = |(user, group): (&str, Vec<(i64, &str)>)| {
        let (pages, times) = different(&group);
        format!("{user},{pages},{times}")
    };
    let wanted: Vec<String> = clicks.groups().into_iter().map(line).collect();
    let found = clicks.written(&groups.agg(&two).unwrap(), BARE);
    assert!(sorted(&found) == sorted(&wanted.join("\n")));
    let in_order = groups.sorted();
    let found = clicks.written(&in_order.agg(&two).unwrap(), BARE);
    assert!(found.lines().eq(wanted.iter().map(String::as_str)));
    let found = clicks.written(&in_order.agg(&two[..1]).unwrap(), BARE);
    let of_pages = wanted.iter().map(|line| line.rsplit_once(',').unwrap().0);
    assert!(found.lines().eq(of_pages));
}

/// One record is made of all: by what is added up while records are read, by what takes values in order, by both at once, and by what
/// follows the input.
#[test]
fn all_records_are_one_group() {
    let clicks = Clicks::new("all_records_are_one_group", 40_000);
    let all: Vec<(i64, &str)> = clicks.groups().into_values().flatten().collect();
    let (pages, times) = different(&all);
    let sum_of_all: i64 = all.iter().map(|(time, _)| time).sum();
    let of = [
        (count().named("n"), all.len().to_string()),
        (sum("time").named("sum"), sum_of_all.to_string()),
        (count_distinct("page").named("pages"), pages.to_string()),
        (count_distinct("time").named("times"), times.to_string()),
        (first("user"), clicks.clicks[0].0.clone()),
    ];
    let table = clicks.table();
    for parts in [0..1, 0..2, 2..3, 0..3, 0..4, 4..5, 0..5] {
        let (asked, wanted): (Vec<_>, Vec<_>) = of[parts].iter().cloned().unzip();
        let found = clicks.written(&table.agg(&asked).unwrap(), BARE);
        assert_eq!(found, format!("{}\n", wanted.join(",")));
    }
    let none = table.keep(&matches("page", "no page")).unwrap();
    assert_eq!(clicks.written(&none.agg(&[count()]).unwrap(), BARE), "");
    assert_eq!(table.agg(&[]).err().unwrap().kind, ErrorKind::Usage);
}

/// All records come out, in an order that seed and epoch decide and nothing else, before and behind other verbs.
#[test]
fn shuffled_by_seed_and_epoch() {
    let clicks = Clicks::new("shuffled_by_seed_and_epoch", 20_000);
    let mut orders = BTreeSet::new();
    let lines: Vec<String> = clicks
        .clicks
        .iter()
        .map(|(user, time, page)| format!("{user}\t{time}\t{page}"))
        .collect();
    let mut wanted: Vec<&str> = lines.iter().map(String::as_str).collect();
    wanted.sort_unstable();
    let sorted_before = clicks.table().sort(&[("time", false)]).unwrap();
    for (table, seed, epoch) in [
        (clicks.table(), 1, 0),
        (clicks.table(), 1, 1),
        (clicks.table(), 2, 0),
        (sorted_before, 1, 0),
    ] {
        let found = clicks.written(&table.shuffle(seed, epoch).unwrap(), Form::Text);
        assert!(sorted(&found) == wanted);
        // Of two neighbours the one that was first before is first now about as often as not.
        let place: BTreeMap<&str, usize> = lines
            .iter()
            .enumerate()
            .map(|(at, line)| (&**line, at))
            .collect();
        let places: Vec<usize> = found.lines().map(|line| place[line]).collect();
        let rising = places.windows(2).filter(|pair| pair[0] < pair[1]).count() as f64;
        // Ten standard deviations.
        let off = (rising / places.len() as f64 - 0.5).abs();
        assert!(
            off < 10.0 * (1.0 / 12.0 / places.len() as f64).sqrt(),
            "{off}"
        );
        assert!(orders.insert(found));
    }
}

/// Lines that are only shuffled go through the engine as they are; with another verb, or compressed to several files, in pairs.
#[test]
fn shuffled_lines_end_in_a_newline_however_they_ended() {
    let name = "shuffled_lines_end_in_a_newline_however_they_ended";
    let (mut random, scratch) = (Random::new(seed(name)), Scratch::new(name));
    let mut wanted = Vec::new();
    for (file, codec) in [(0, None), (1, Some(Codec::Gzip)), (2, None)] {
        let mut text = Vec::new();
        for _ in 0..1000 {
            let most = if random.below(200) == 0 { 9000 } else { 120 };
            let length = random.below(most);
            let line: Vec<u8> = (0..length)
                .map(|_| b"ab\r\0\xff "[random.below(6)])
                .collect();
            text.extend_from_slice(&line);
            text.extend_from_slice(if random.below(2) == 0 { b"\r\n" } else { b"\n" });
        }
        if file == 1 {
            // The last line has half an end, or none.
            text.truncate(text.len() - 1);
        }
        let ended = [&text[..], b"\n"].concat();
        let ended = ended
            .strip_suffix(b"\n\n")
            .map_or(&ended[..ended.len() - 1], |text| text);
        let lines = ended.split(|&byte| byte == b'\n');
        wanted.extend(lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line).to_vec()));
        let bytes = codec.map_or(text.clone(), |codec| packed(codec, &text));
        std::fs::write(scratch.path(&format!("in{file}")), bytes).unwrap();
    }
    wanted.sort_unstable();
    let input = scratch.path("in*").to_string_lossy().into_owned();
    let shuffled = |seed| read_text([&input], 0).shuffle(seed, 3).unwrap();
    let lines = |bytes: &[u8]| -> Vec<Vec<u8>> {
        let text = bytes.strip_suffix(b"\n").expect("every line has an end");
        text.split(|&byte| byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect()
    };
    let out = scratch.path("out");
    let mut orders = BTreeSet::new();
    for (seed, settings) in [
        (1, small()),
        (
            1,
            Settings {
                memory_bytes: Some(64 << 20),
                threads: Some(1),
                ..small()
            },
        ),
        (2, small()),
    ] {
        let report = run(&shuffled(seed).write(&out, Form::Text).unwrap(), &settings).unwrap();
        assert_eq!(report.records(), (wanted.len() as u64, wanted.len() as u64));
        // The engine's seed is none that anybody gave.
        assert!(!report.summary().contains("--seed"));
        let mut found = lines(&std::fs::read(&out).unwrap());
        orders.insert(found.clone());
        found.sort_unstable();
        assert!(found == wanted, "seed {seed}");
    }
    assert_eq!(orders.len(), 2);
    // Several files are the same cut where counts are equal; a manifest says what they hold. Compressed ones are made of pairs.
    for (count, compress) in [(3, None), (7, Some(Codec::Zstd)), (5_000, None)] {
        let folder = scratch.path(&format!("parts-{count}"));
        let pipeline = shuffled(1).write(&folder, Form::Text).unwrap();
        let compress = compress.map(|codec| Compress { codec, level: None });
        let pipeline = pipeline.compressed(compress).in_files(count).unwrap();
        let memory_bytes = Some(16 << 20);
        let settings = Settings {
            memory_bytes,
            ..small()
        };
        run(&pipeline, &settings).unwrap();
        let ending = if compress.is_some() { ".zst" } else { "" };
        let (mut found, mut counts) = (Vec::new(), BTreeSet::new());
        for part in 0..count {
            let part = folder.join(format!("part-{part:05}.txt{ending}"));
            let bytes = std::fs::read(part).unwrap();
            let bytes = compress.map_or(bytes.clone(), |one| unpacked(one.codec, &bytes));
            let of_part = if bytes.is_empty() {
                Vec::new()
            } else {
                lines(&bytes)
            };
            counts.insert(of_part.len());
            found.extend(of_part);
        }
        assert_eq!(orders.contains(&found), compress.is_none(), "{count} files");
        found.sort_unstable();
        assert!(found == wanted, "{count} files");
        let (least, most) = (counts.first().unwrap(), counts.last().unwrap());
        assert!(most - least <= 1, "{counts:?}");
        assert!(folder.join("manifest.json").exists());
        if compress.is_none() {
            // Lines that were put in no order are not out of it: that was told of all of them.
            let checked = check_parts(&folder, Some(2), None, &host(), &Stop::new()).unwrap();
            assert!(checked.faults.is_empty(), "{:?}", checked.faults);
            assert_eq!(checked.fingerprint.records, wanted.len() as u64);
        }
    }
    // Behind another verb lines go in pairs.
    let short = matches("line", "^.{0,20}$");
    let pipeline = shuffled(1)
        .keep(&short)
        .unwrap()
        .write(&out, Form::Text)
        .unwrap();
    run(&pipeline, &small()).unwrap();
    let found = lines(&std::fs::read(&out).unwrap());
    assert!(!found.is_empty() && found.iter().all(|line| wanted.binary_search(line).is_ok()));
}

#[test]
fn a_sample_is_the_same_for_a_seed() {
    let clicks = Clicks::new("a_sample_is_the_same_for_a_seed", 30_000);
    let parts = clicks.table().flat_map(&split("user", " ")).unwrap();
    let mut seen = BTreeSet::new();
    for seed in [1, 2] {
        let found = clicks.written(&parts.sample(0.25, seed).unwrap(), BARE);
        let kept = found.lines().count() as f64;
        // Ten standard deviations.
        assert!(
            (kept - 15_000.0).abs() < 10.0 * (60_000.0f64 * 0.25 * 0.75).sqrt(),
            "{kept}"
        );
        assert!(seen.insert(found));
    }
    let usage = |error: Option<Error>| assert_eq!(error.unwrap().kind, ErrorKind::Usage);
    usage(parts.sample(1.5, 1).err());
    // Behind what brings records together the hash of a column draws, as the hint has it.
    let distinct = parts.distinct().unwrap();
    let name = &distinct.columns()[0].name;
    let hint = distinct
        .sample(0.25, 1)
        .err()
        .unwrap()
        .hint
        .clone()
        .unwrap();
    let said = format!("keep_if((hash({name:?}, 1) % 1000000).lt(250000))");
    assert!(hint.contains(&said), "{hint}");
    usage(distinct.sample(0.25, 1).err());
    let drawn = distinct.keep_if((hash(name, 1) % 1_000_000).lt(250_000));
    let [all, drawn] = [distinct.clone(), drawn.unwrap()].map(|table| clicks.written(&table, BARE));
    let all: BTreeSet<&str> = all.lines().collect();
    let count = drawn.lines().filter(|line| all.contains(line)).count();
    assert!(count == drawn.lines().count() && 0 < count && count < all.len());
}

#[test]
fn patterns_and_computed_columns() {
    let scratch = Scratch::new("patterns_and_computed_columns");
    let mut random = Random::new(seed("patterns_and_computed_columns"));
    let mut text = String::new();
    let mut wanted = BTreeMap::new();
    for number in 0..5000 {
        let (day, second) = (1 + random.below(28), random.below(60));
        let level = ["info", "warn", "error"][random.below(3)];
        text += &format!("2026-02-{day:02} 00:00:{second:02}Z [{level}] took {number} ms\n");
        if level != "info" {
            let time = (1_769_904_000 + (day as i64 - 1) * 86_400 + second as i64) * 1_000_000;
            let entry = wanted.entry(level).or_insert((0, 0, i64::MAX));
            *entry = (entry.0 + 1, entry.1 + number, entry.2.min(time));
        }
    }
    text += "no such line\n";
    std::fs::write(scratch.path("in.txt"), text).unwrap();
    let lines = read_text([scratch.path("in.txt")], 0);
    let columns = ["time", "level", "took"].map(|name| Column::new(name, Type::String));
    let parts = extract(
        "line",
        r"^(.{20}) \[(\w+)\] took (\d+) ms$",
        columns.to_vec(),
    )
    .unwrap();
    let table = lines.flat_map(&parts).unwrap();
    let table = table.keep(&matches("level", "^info$").inverted()).unwrap();
    let computed = [
        ("time", timestamp("time")),
        ("took", parse("took", Type::I64)),
        ("hash", hash("level", 1)),
    ];
    let table = table.with_columns(&computed).unwrap();
    let groups = table.group_by(&["level", "hash"]).unwrap();
    let aggregates = [count(), sum("took"), min("time")];
    let table = groups
        .agg(&aggregates)
        .unwrap()
        .sort(&[("level", false)])
        .unwrap();
    let table = table.select(&["level", "count", "took", "time"]).unwrap();
    let pipeline = table.write(scratch.path("out"), BARE).unwrap();
    run(&pipeline, &small()).unwrap();
    let line = |(level, (n, took, time)): (&&str, &(u64, i64, i64))| {
        let Moment { day, second, .. } = Moment::of(*time);
        format!("{level},{n},{took},2026-02-{day:02}T00:00:{second:02}Z\n")
    };
    let wanted: String = wanted.iter().map(line).collect();
    assert_eq!(
        std::fs::read_to_string(scratch.path("out")).unwrap(),
        wanted
    );

    let usage = |error: Option<Error>, wanted: &str| {
        let error = error.unwrap();
        assert_eq!(error.kind, ErrorKind::Usage);
        assert!(error.to_string().contains(wanted), "{error}");
    };
    usage(lines.keep(&matches("line", "(")).err(), "unclosed group");
    usage(
        extract("line", "(a)", Vec::new()).err(),
        "1 parts in parentheses and 0 columns",
    );
    usage(
        table.keep(&matches("count", "1")).err(),
        "count is of type u64",
    );
    let bad = lines.with_columns(&[("time", timestamp("line"))]).unwrap();
    let bad = bad.write(scratch.path("out"), BARE).unwrap();
    // Of several bad lines one is told: where one thread reads them, the first.
    let alone = Settings {
        threads: Some(1),
        ..small()
    };
    let error = run(&bad, &alone).unwrap_err();
    assert_eq!((error.kind, error.offset), (ErrorKind::Input, Some(0)));
    let cause = "is no value of type timestamp";
    assert!(error.to_string().contains(cause), "{error}");
    let found = std::fs::read_to_string(scratch.path("out")).unwrap();
    assert_eq!(found, wanted);
}

/// Entries weigh twice what a number does. Numbers were taken for records of 32 bytes where nothing was known of them, and tables
/// of entries were an eighth of the memory, so that most partitions had a few more records than one table: they were merged, by
/// one thread, after they had been written and read once more.
#[test]
fn short_records_in_little_memory_are_not_merged() {
    const COUNT: usize = 2_000_000;
    let mut random = Random::new(seed("short_records_in_little_memory_are_not_merged"));
    let scratch = Scratch::new("short-records");
    let path = scratch.path("in").to_string_lossy().into_owned();
    let settings = Settings {
        memory_bytes: Some(40 << 20),
        threads: Some(2),
        ..Settings::default()
    };
    // Numbers that come once or twice, and some that come ten times, more of them than the mapper's table holds.
    for (below, is_joined) in [(1 << 40, false), (COUNT / 10, true)] {
        let numbers: Vec<u64> = (0..COUNT).map(|_| random.below(below) as u64).collect();
        let text: String = numbers.iter().map(|number| format!("{number}\n")).collect();
        std::fs::write(scratch.path("in"), text).unwrap();
        let column = vec![Column::new("n", Type::U64)];
        let table = read_csv([&path], Csv::plain(b','), column).unwrap();
        let distinct = table.distinct().unwrap();
        let pipeline = distinct.write(scratch.path("out"), BARE).unwrap();
        let report = run(&pipeline, &settings).unwrap();
        let partitions = &report.phases[0].report.partitions;
        assert_eq!(partitions.merged, 0, "{partitions:?}");
        assert_eq!(partitions.joined > 0, is_joined, "{partitions:?}");
        assert!(partitions.evicted > 0 || is_joined, "{partitions:?}");
        let written = std::fs::read_to_string(scratch.path("out")).unwrap();
        let mut found: Vec<u64> = written.lines().map(|line| line.parse().unwrap()).collect();
        found.sort_unstable();
        let wanted: BTreeSet<u64> = numbers.into_iter().collect();
        assert!(found.iter().eq(&wanted));
        std::fs::remove_file(scratch.path("out")).unwrap();
    }
}
