//! Columns by arithmetic, columns that become one, what passes by observed, and lists unpacked, held against plain programs
//! over what is in memory.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use sortmill::error::{Error, ErrorKind};
use sortmill::io::{Host, RingKind};
use sortmill::pipeline::{
    Aggregate, Csv, EachFn, Form, Owned, Runner, Settings, Table, Type, Value,
    approx_count_distinct, col, columns_of, count, count_distinct, each, fields, first, if_else,
    list_length, lit, max, mean, min, ngrams, null, read_csv, read_text, sum, words,
};
use sortmill::queue::Stop;

use crate::Scratch;
use crate::pipeline::{host, run, small};
use crate::sort::inputs::{Random, seed};

/// Records of two whole numbers and a float, as lines.
struct Numbers {
    scratch: Scratch,
    records: Vec<(i64, u64, f64)>,
}

impl Numbers {
    fn new(test: &str, record_count: usize) -> Self {
        let mut random = Random::new(seed(test));
        let record = |random: &mut Random| {
            let float = random.below(2000) as f64 / 64.0 - 10.0;
            let whole = random.next() >> (4 + random.below(59));
            (random.below(2000) as i64 - 1000, whole, float)
        };
        let records: Vec<_> = (0..record_count).map(|_| record(&mut random)).collect();
        let scratch = Scratch::new(test);
        let lines = records.iter().map(|(a, b, c)| format!("{a}\t{b}\t{c}\n"));
        std::fs::write(scratch.path("in.tsv"), lines.collect::<String>()).unwrap();
        Self { scratch, records }
    }

    fn table(&self) -> Table {
        let columns = columns_of([("i", Type::I64), ("u", Type::U64), ("f", Type::F64)]);
        let path = self.scratch.path("in.tsv").to_string_lossy().into_owned();
        read_csv([&path], Csv::plain(b'\t'), columns).unwrap()
    }

    fn out(&self, name: &str) -> PathBuf {
        self.scratch.path(name)
    }

    fn written(&self, table: &Table) -> String {
        let pipeline = table.write(self.out("out"), Form::Text).unwrap();
        run(&pipeline, &small()).unwrap();
        std::fs::read_to_string(self.out("out")).unwrap()
    }

    fn fails(&self, table: &Table, kind: ErrorKind, cause: &str) -> Error {
        let pipeline = table.write(self.out("failed"), Form::Text).unwrap();
        let error = run(&pipeline, &small()).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.to_string().contains(cause), "{error}");
        assert!(!self.out("failed").exists());
        error
    }
}

#[test]
fn columns_are_reckoned_in_mappers_and_reducers() {
    let numbers = Numbers::new("columns_are_reckoned_in_mappers_and_reducers", 20_000);
    let table = numbers.table().keep_if(col("i").ne(7) & !col("u").lt(3));
    let table = table.unwrap().with_columns(&[
        ("rest", col("i") % 10),
        ("part", (col("u") % 1000) * 3 + 1),
        ("f", col("f") * 2.0 - col("i") / 4),
    ]);
    let sums = table.unwrap().group_by(&["rest"]).unwrap();
    let sums = sums.agg(&[sum("part"), sum("f"), count()]).unwrap();
    let means = sums.with_columns(&[
        ("mean", col("f") / col("count")),
        ("is_many", col("count").gt(1900)),
    ]);
    let means = means.unwrap().select(&["rest", "part", "mean", "is_many"]);
    let found = numbers.written(&means.unwrap().sort(&[("rest", false)]).unwrap());

    let mut model: BTreeMap<i64, (u64, f64, u64)> = BTreeMap::new();
    let kept = numbers
        .records
        .iter()
        .filter(|one| one.0 != 7 && one.1 >= 3);
    for &(i, u, f) in kept {
        let one = model.entry(i.rem_euclid(10)).or_default();
        // Quarters and their like, so that the sum is exact in any order.
        *one = (
            one.0 + u % 1000 * 3 + 1,
            one.1 + (f * 2.0 - i as f64 / 4.0),
            one.2 + 1,
        );
    }
    let line = |(rest, (part, f, count)): (&i64, &(u64, f64, u64))| {
        format!(
            "{rest}\t{part}\t{:?}\t{}\n",
            f / *count as f64,
            *count > 1900
        )
    };
    assert_eq!(found, model.iter().map(line).collect::<String>());
}

#[test]
fn a_number_that_its_type_does_not_hold_is_told_with_its_place() {
    let numbers = Numbers::new(
        "a_number_that_its_type_does_not_hold_is_told_with_its_place",
        3000,
    );
    std::fs::write(numbers.out("in.tsv"), "1\t2\t3\n-5\t4\t1\n").unwrap();
    let wrong = numbers
        .table()
        .with_columns(&[("less", col("u") - 3)])
        .unwrap();
    let error = numbers.fails(&wrong, ErrorKind::Input, "column less: 2 - 3 is no value");
    assert!(error.path.as_ref().unwrap().ends_with("in.tsv"));
    assert_eq!(error.offset, Some(0));
    let wrong = numbers
        .table()
        .keep_if(col("i").cast(Type::U64).gt(0))
        .unwrap();
    let error = numbers.fails(&wrong, ErrorKind::Input, "-5 is no value of type u64");
    assert_eq!(error.offset, Some(6));
    // In a reducer no place is known.
    let grouped = numbers.table().group_by(&["i"]).unwrap();
    let grouped = grouped.agg(&[sum("u")]).unwrap();
    let wrong = grouped
        .with_columns(&[("none", col("u").floor_div(0))])
        .unwrap();
    numbers.fails(&wrong, ErrorKind::Input, "column none: ");
    let usage = |made: Result<Table, Error>| assert_eq!(made.err().unwrap().kind, ErrorKind::Usage);
    usage(numbers.table().keep_if(col("i") + 1));
    usage(numbers.table().with_columns(&[("x", null())]));
    usage(numbers.table().keep_if(null().eq(col("i"))));
    usage(numbers.table().with_columns(&[("x", col("nothing"))]));
    usage(numbers.table().unpivot(&["i", "f"], "x"));
    usage(numbers.table().unpivot(&["i"], "u"));
    usage(numbers.table().unpivot(&[], "x"));
    usage(numbers.table().unpack("u", "x"));
}

#[test]
fn columns_become_one() {
    let numbers = Numbers::new("columns_become_one", 3000);
    let twice = numbers
        .table()
        .with_columns(&[("j", col("i") * 2)])
        .unwrap();
    let one = twice.unpivot(&["j", "i"], "all").unwrap();
    let names: Vec<&str> = one.columns().iter().map(|column| &*column.name).collect();
    assert_eq!(names, ["u", "f", "all"]);
    let lines = numbers.records.iter();
    let lines = lines.flat_map(|&(i, u, f)| [2 * i, i].map(|all| format!("{u}\t{f:?}\t{all}\n")));
    assert!(numbers.written(&one) == lines.collect::<String>());
}

#[test]
fn what_passes_by_is_observed() {
    let numbers = Numbers::new("what_passes_by_is_observed", 20_000);
    let table = numbers
        .table()
        .observe(&[count(), sum("i"), mean("f").named("mean")]);
    let table = table.unwrap().keep_if(col("i").gt(0)).unwrap();
    let table = table.observe(&[min("u"), approx_count_distinct("i").named("about")]);
    let grouped = table.unwrap().group_by(&["i"]).unwrap().agg(&[sum("u")]);
    let grouped = grouped
        .unwrap()
        .observe(&[count().named("groups"), max("u").named("most")]);
    let nothing = grouped.unwrap().keep_if(col("u").eq(u64::MAX)).unwrap();
    let nothing = nothing
        .observe(&[count().named("none"), min("i").named("least")])
        .unwrap();
    let pipeline = nothing.write(numbers.out("out"), Form::Text).unwrap();

    let (mut total, mut wide) = (0, 0.0);
    let mut groups: BTreeMap<i64, u64> = BTreeMap::new();
    for &(i, u, f) in &numbers.records {
        total += i;
        wide += f;
        if i > 0 {
            *groups.entry(i).or_default() += u;
        }
    }
    let least = numbers
        .records
        .iter()
        .filter(|one| one.0 > 0)
        .map(|one| one.1)
        .min()
        .unwrap();
    let much = Settings {
        threads: Some(1),
        ..Settings::within(64 << 20)
    };
    // Each run counts for itself.
    for settings in [small(), much, small()] {
        let report = run(&pipeline, &settings).unwrap();
        let of = |name: &str| report.observed.get(name).unwrap();
        assert_eq!(of("count"), Value::U64(20_000));
        assert_eq!(of("i"), Value::I64(total));
        assert_eq!(of("mean"), Value::F64(wide / 20_000.0));
        assert_eq!(of("u"), Value::U64(least));
        assert_eq!(of("groups"), Value::U64(groups.len() as u64));
        assert_eq!(of("most"), Value::U64(*groups.values().max().unwrap()));
        let about = report.observed.number("about").unwrap() / groups.len() as f64;
        assert!((0.9..1.1).contains(&about), "{about}");
        assert_eq!([of("none"), of("least")], [Value::U64(0), Value::Null]);
        assert!(report.observed.get("x").is_none() && report.observed.number("least").is_err());
        let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
        assert_eq!(json["observed"]["i"], total);
        assert!(json["observed"]["least"].is_null());
        assert!(report.summary().contains(&format!("observed i: {total}\n")));
    }
    let host = Host::new(RingKind::Posix, false).unwrap();
    let told = pipeline.explain(&small(), &host).unwrap();
    assert!(told.contains("maps: observe count, i, mean"), "{told}");
    assert!(told.contains("reduces: observe none, least"), "{told}");

    // In one pass, and of sums that their type does not hold.
    let wide = numbers
        .table()
        .with_columns(&[("x", if_else(col("i").ge(-2000), lit(u64::MAX), 0u64))]);
    let wide = wide
        .unwrap()
        .observe(&[sum("x")])
        .unwrap()
        .write(numbers.out("out"), Form::Text);
    let report = run(&wide.unwrap(), &small()).unwrap();
    let found = report.observed.number("x").unwrap() / (u64::MAX as f64 * 20_000.0);
    assert!((found - 1.0).abs() < 1e-12, "{found}");

    for made in [
        numbers.table().observe(&[first("u")]),
        numbers.table().observe(&[count_distinct("u")]),
        numbers.table().observe(&[count(), count()]),
        numbers.table().observe(&[sum("nothing")]),
        nothing.observe(&[count()]),
    ] {
        assert_eq!(made.err().unwrap().kind, ErrorKind::Usage);
    }
}

/// Lists of any length, some of them with more numbers than there is room for at once.
#[test]
fn lists_are_unpacked() {
    let test = "lists_are_unpacked";
    let mut random = Random::new(seed(test));
    let scratch = Scratch::new(test);
    let mut edges = Vec::new();
    for (source, count) in [(3, 60_000), (4, 1), (5, 20_000), (6, 70)] {
        edges.extend((0..count).map(|_| (source, random.below(1 << 18) as u64)));
    }
    edges.extend((0..2000).map(|_| (random.below(300) as u64 + 10, random.below(50) as u64)));
    let lines = edges
        .iter()
        .map(|(source, target)| format!("{source}\t{target}\n"));
    std::fs::write(scratch.path("edges"), lines.collect::<String>()).unwrap();
    let runner = Runner::new(small()).unwrap().in_folder(scratch.path(""));
    let columns = columns_of([("source", Type::U64), ("target", Type::U64)]);
    let path = scratch.path("edges").to_string_lossy().into_owned();
    let table = read_csv([&path], Csv::plain(b'\t'), columns).unwrap();
    let lists = table
        .group_by(&["source"])
        .unwrap()
        .pack("target", "targets")
        .unwrap();
    let lists = runner.keep(&lists, "lists").unwrap();
    let lists = runner.paste(&[&lists]).unwrap();
    let lengths = lists.with_columns(&[("targets", list_length("targets"))]);
    let unpacked = lists.unpack("targets", "target").unwrap();
    // Told apart and put in order again by what is brought together behind, and as it comes in one pass.
    let groups = unpacked.group_by(&["target"]).unwrap();
    let written = |table: &Table| {
        runner
            .run(&table.write(scratch.path("out"), Form::Text).unwrap())
            .unwrap();
        std::fs::read_to_string(scratch.path("out")).unwrap()
    };
    let as_they_come = written(&unpacked);
    let sorted = |text: String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let mut wanted: BTreeMap<u64, [u64; 3]> = BTreeMap::new();
    let mut degrees: BTreeMap<u64, u64> = BTreeMap::new();
    for (source, target) in &edges {
        let [count, sum, most] = wanted.entry(*target).or_default();
        (*count, *sum, *most) = (*count + 1, *sum + source, (*most).max(*source));
        *degrees.entry(*source).or_default() += 1;
    }
    // As many words to a record of a group as there are aggregates.
    let all = [count(), sum("source").named("sum"), max("source")];
    for of in [&[0][..], &[1], &[2], &[0, 1], &[2, 1, 0]] {
        let asked: Vec<Aggregate> = of.iter().map(|&at| all[at].clone()).collect();
        let line = |(target, values): (&u64, &[u64; 3])| {
            let values: String = of.iter().map(|&at| format!("\t{}", values[at])).collect();
            format!("{target}{values}\n")
        };
        let found = sorted(written(&groups.agg(&asked).unwrap()));
        assert!(found == sorted(wanted.iter().map(line).collect()), "{of:?}");
    }
    let targets = unpacked.select(&["target"]).unwrap().distinct().unwrap();
    let line = |target: &u64| format!("{target}\n");
    assert!(sorted(written(&targets)) == sorted(wanted.keys().map(line).collect()));
    let line = |(source, degree): (&u64, &u64)| format!("{source}\t{degree}\n");
    assert_eq!(
        sorted(written(&lengths.unwrap())),
        sorted(degrees.iter().map(line).collect())
    );
    edges.sort_unstable();
    let all = edges
        .iter()
        .map(|(source, target)| format!("{source}\t{target}\n"));
    assert!(sorted(as_they_come.clone()) == sorted(all.collect()));
    let targets = |text: &str, source: &str| -> Vec<u64> {
        let pairs = text.lines().map(|line| line.split_once('\t').unwrap());
        let of = pairs.filter(|pair| pair.0 == source);
        of.map(|pair| pair.1.parse().unwrap()).collect()
    };
    assert!(targets(&as_they_come, "3").is_sorted());

    // Bytes that are no list.
    std::fs::write(scratch.path("text"), "good\n\u{7f}\u{ff}\n").unwrap();
    let path = scratch.path("text").to_string_lossy().into_owned();
    let bytes = each(["line"], [("list", Type::Binary)], |[line], out| {
        out(&[line])
    });
    let bytes = read_text([&path], 0).flat_map(bytes).unwrap();
    // Whatever is below 128 is a number of one byte.
    let numbers = bytes.unpack("list", "n").unwrap();
    let counts = numbers.group_by(&["n"]).unwrap().agg(&[count()]);
    for wrong in [numbers, counts.unwrap()] {
        let wrong = wrong.write(scratch.path("failed"), Form::Text);
        let error = run(&wrong.unwrap(), &small()).unwrap_err();
        assert_eq!((error.kind, error.offset), (ErrorKind::Input, Some(5)));
        assert!(error.cause.contains("column list are no list"), "{error}");
    }
}

/// Beside a number with a sign one without used to have to be one with a sign, too.
#[test]
fn a_quotient_is_a_float_of_any_whole_numbers() {
    let scratch = Scratch::new("quotient");
    std::fs::write(scratch.path("in.tsv"), format!("{}\t4\n6\t-4\n", u64::MAX)).unwrap();
    let columns = columns_of([("u", Type::U64), ("i", Type::I64)]);
    let table = read_text([scratch.path("in.tsv")], 0);
    let table = table.flat_map(&fields("line", "\t", columns)).unwrap();
    let quotients = [("ui", col("u") / col("i")), ("iu", col("i") / col("u"))];
    let table = table
        .with_columns(&quotients)
        .unwrap()
        .select(&["ui", "iu"]);
    let rows = table
        .unwrap()
        .head(2, &host(), &Stop::new())
        .unwrap()
        .unwrap()
        .0;
    let numbers: Vec<f64> = rows
        .iter()
        .flatten()
        .map(|one| one.value().f64().unwrap())
        .collect();
    let most = u64::MAX as f64;
    assert_eq!(numbers, [most / 4.0, 4.0 / most, -1.5, -4.0 / 6.0]);
}

/// What a program of its own gets of a table: all records, the first ones, and one after the other until it has enough.
#[test]
fn records_come_to_the_program() {
    let test = "records_come_to_the_program";
    let mut random = Random::new(seed(test));
    let scratch = Scratch::new(test);
    let numbers: Vec<u64> = (0..30_000).map(|_| random.below(900) as u64).collect();
    let lines = numbers.iter().map(|number| format!("{number}\n"));
    std::fs::write(scratch.path("in"), lines.collect::<String>()).unwrap();
    let settings = Settings {
        temps: vec![scratch.path("")],
        ..small()
    };
    let runner = Runner::new(settings).unwrap();
    let columns = columns_of([("n", Type::U64)]);
    let path = scratch.path("in").to_string_lossy().into_owned();
    let table = read_csv([&path], Csv::plain(b'\t'), columns).unwrap();
    let counts = table.group_by(&["n"]).unwrap().sorted();
    let counts = counts.agg(&[count()]).unwrap();

    let mut wanted: BTreeMap<u64, u64> = BTreeMap::new();
    for number in &numbers {
        *wanted.entry(*number).or_default() += 1;
    }
    let wanted: Vec<[u64; 2]> = wanted.into_iter().map(|(n, count)| [n, count]).collect();
    let plain = |rows: &[Vec<Owned>]| -> Vec<[u64; 2]> {
        let pair = |row: &Vec<Owned>| [0, 1].map(|at| row[at].value().u64().unwrap());
        rows.iter().map(pair).collect()
    };
    assert_eq!(plain(&runner.collect(&counts).unwrap()), wanted);
    assert_eq!(plain(&runner.head(&counts, 5).unwrap()), wanted[..5]);
    assert_eq!(plain(&runner.head(&counts, 5000).unwrap()), wanted);
    // A sample of all is the table; of a part, it has as many records as lie there.
    let (all, is_all) = runner.sampled(&counts, 1 << 20).unwrap();
    assert!(is_all);
    assert_eq!(plain(&runner.collect(&all).unwrap()), wanted);
    let (part, is_all) = runner.sampled(&counts, 4096).unwrap();
    assert!(!is_all);
    let part = plain(&runner.collect(&part).unwrap());
    let text = std::fs::read(&path).unwrap();
    let lines = text[..4096].iter().filter(|&&byte| byte == b'\n').count() as u64;
    assert_eq!(part.iter().map(|[_, count]| count).sum::<u64>(), lines);
    // Of what needs no job, the beginning of the file.
    let first = runner.head(&table, 3).unwrap();
    let first: Vec<u64> = first
        .iter()
        .map(|row| row[0].value().u64().unwrap())
        .collect();
    assert_eq!(first, numbers[..3]);
    let mut sum = 0;
    let report = runner.for_each(&counts, |row| {
        sum += row[0].u64()? * row[1].u64()?;
        Ok(())
    });
    assert_eq!(sum, numbers.iter().sum::<u64>());
    assert_eq!(report.unwrap().records(), (30_000, wanted.len() as u64));
    let mut seen = 0;
    let enough = runner.for_each(&counts, |_| {
        seen += 1;
        match seen {
            4 => Err(Error::new(ErrorKind::Function, "reading", "that will do")),
            _ => Ok(()),
        }
    });
    assert_eq!((enough.unwrap_err().kind, seen), (ErrorKind::Function, 4));
    // Nothing stays but the input.
    assert_eq!(std::fs::read_dir(scratch.path("")).unwrap().count(), 1);
}

/// More comes of one line than a mapper has room for, whatever becomes of that: it was an error.
#[test]
fn a_line_of_a_million_words() {
    let scratch = Scratch::new("a_line_of_a_million_words");
    let count = 1_000_000;
    let line: String = (0..count).map(|at| format!("{} ", at % 7)).collect();
    std::fs::write(scratch.path("in"), format!("0 1\n{line}\n2\n")).unwrap();
    let path = scratch.path("in").to_string_lossy().into_owned();
    let table = read_text([&path], 0);
    let runner = Runner::new(Settings::within(64 << 20)).unwrap();
    let written = |table: &Table| {
        let pipeline = table.write(scratch.path("out"), Form::Text).unwrap();
        runner.run(&pipeline).unwrap();
        std::fs::read_to_string(scratch.path("out")).unwrap()
    };
    let wanted: Vec<String> = [0, 1]
        .into_iter()
        .chain((0..count).map(|at| at % 7))
        .chain([2])
        .map(|word| word.to_string())
        .collect();
    let words = table.flat_map(&words("line")).unwrap();
    assert!(written(&words).lines().eq(&wanted));
    let mut sorted = wanted.clone();
    sorted.sort_unstable();
    let by_word = words.sort(&[("word", false)]).unwrap();
    assert!(written(&by_word).lines().eq(&sorted));
    let pairs = table.flat_map(&ngrams("line", 2)).unwrap();
    let in_lines = [&wanted[..2], &wanted[2..wanted.len() - 1]];
    let pairs_wanted = in_lines
        .iter()
        .flat_map(|line| line.windows(2))
        .map(|two| two.join(" "));
    assert!(written(&pairs).lines().eq(pairs_wanted));
}

/// Words that are counted at once where they are found wait, too: of more different ones in a line than there is room for, the job
/// ended. It does where a function makes them, which no job can stop in the middle, and says where that is and what would help.
#[test]
fn a_line_of_many_different_words() {
    let scratch = Scratch::new("a_line_of_many_different_words");
    let word_count = 700_000;
    let line: String = (0..word_count).map(|at| format!("{at:x} ")).collect();
    std::fs::write(scratch.path("in"), format!("{line}\n0 0\n")).unwrap();
    let path = scratch.path("in").to_string_lossy().into_owned();
    let lines = read_text([&path], 0);
    let column = columns_of([("line", Type::String)]);
    let rows = read_csv([&path], Csv::plain(b'\t'), column).unwrap();
    let sums = |words: &Table, memory_bytes| {
        let counted = words.group_by(&["word"]).unwrap();
        let counted = counted.agg(&[count()]).unwrap();
        let (mut rows, mut sum) = (0, 0);
        let runner = Runner::new(Settings::within(memory_bytes)).unwrap();
        let done = runner.for_each(&counted, |row| {
            rows += 1;
            sum += row[1].u64()?;
            Ok(())
        });
        done.map(|_| (rows, sum))
    };
    for table in [&lines, &rows] {
        let words = table.flat_map(&words("line")).unwrap();
        for memory_bytes in [512 << 20, 64 << 20] {
            let found = sums(&words, memory_bytes).unwrap();
            assert_eq!(found, (word_count, word_count + 2));
        }
    }
    let made = columns_of([("word", Type::String)]);
    let by_function: EachFn = Arc::new(|line, out| {
        let words = line[0].bytes().split(|&byte| byte == b' ');
        let mut words = words.filter(|word| !word.is_empty());
        words.try_for_each(|word| out(&[Value::Bytes(word)]))
    });
    let words = lines.each(&["line"], made, by_function).unwrap();
    let found = sums(&words, 512 << 20).unwrap();
    assert_eq!(found, (word_count, word_count + 2));
    let error = sums(&words, 64 << 20).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Memory, "{error}");
    let told = error.to_string();
    for part in [&path, "at byte 0", "Give the job more memory"] {
        assert!(told.contains(part), "{told}");
    }
}
