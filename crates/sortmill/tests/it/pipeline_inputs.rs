//! What pipelines read: CSV, JSON lines, records of a fixed size, pairs; and where each record lies. Held against what was
//! drawn before it was written down.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use sortmill::error::{Error, ErrorKind};
use sortmill::io::codec::Codec;
use sortmill::io::{Host, RingKind};
use sortmill::job::Tuning;
use sortmill::pipeline::{
    Column, Csv, Form, MakeRows, Owned, PipelineReport, RowFile, Settings, Table, Type, Value,
    csv_names, from_iter, max, read_csv, read_fixed, read_jsonl, read_kv, read_text, sum,
};
use sortmill::queue::Stop;

use crate::Scratch;
use crate::sort::inputs::{Random, seed};
use crate::sort::packed::packed;

pub const BARE: Form = Form::csv(false);

/// Chunks so small that every file is many of them.
pub fn small() -> Settings {
    Settings {
        memory_bytes: Some(8 << 20),
        threads: Some(3),
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

/// Runs what writes the table. What it wrote.
fn written(table: &Table, form: Form, out: &PathBuf) -> Result<Vec<u8>, Error> {
    let pipeline = table.write(out, form)?;
    let _: PipelineReport = pipeline.run(&small(), &host(), &Stop::new())?;
    Ok(std::fs::read(out).unwrap())
}

fn column(name: &str, kind: Type) -> Column {
    Column::new(name, kind)
}

fn text(scratch: &Scratch, name: &str) -> String {
    scratch.path(name).to_string_lossy().into_owned()
}

/// A row of a table of a text, a whole number and a float.
type Row = (String, i64, f64);

/// Texts with everything in them that CSV quotes and JSON escapes.
fn rows(random: &mut Random, count: usize) -> Vec<Row> {
    let letters = [
        "a",
        "b\u{e4}",
        ",",
        "\"",
        "\n",
        "\r\n",
        " ",
        "\u{1f600}",
        "\\",
        "\t",
        ";",
    ];
    let row = |_| {
        let length = match random.below(400) {
            0 => 10_000,
            _ => random.below(12),
        };
        let name = (0..length).map(|_| letters[random.below(letters.len())]);
        let name: String = name.collect();
        let whole = random.next() as i64 >> random.below(64);
        let float = (random.below(1 << 20) as f64 - 500_000.0) / 64.0;
        (name, whole, float)
    };
    (0..count).map(row).collect()
}

/// A value of CSV, quoted where it must be and sometimes where it need not.
fn quoted(text: &str, random: &mut Random) -> String {
    match text.contains(['"', ';', '\n', '\r']) || random.below(4) == 0 {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[test]
fn csv_by_its_header() {
    let mut random = Random::new(seed("csv_by_its_header"));
    let scratch = Scratch::new("csv_by_its_header");
    let rows = rows(&mut random, 6_000);
    let third = rows.len() / 3;
    for (number, part) in rows.chunks(third).enumerate() {
        // Some with a byte order mark, some with the other end of lines, the last without an end; each with two columns
        // that are not asked for.
        let end = ["\n", "\r\n"][number % 2];
        let mark = ["", "\u{feff}"][number % 2];
        let mut file = format!("{mark}whole;\"skip; this\";name;float;last{end}");
        for (name, whole, float) in part {
            let name = quoted(name, &mut random);
            let skipped = quoted(&format!("{whole};\n"), &mut random);
            file += &format!("{whole};{skipped};{name};{float:?};x{end}");
        }
        let file = file.strip_suffix(end).unwrap().as_bytes();
        let path = scratch.path(&format!("{number}.csv"));
        match number {
            1 => std::fs::write(path, packed(Codec::Zstd, file)).unwrap(),
            _ => std::fs::write(path, file).unwrap(),
        }
    }
    let csv = Csv {
        delimiter: b';',
        ..Csv::default()
    };
    let pattern = [scratch.path("?.csv")];
    let names = csv_names(&host(), &pattern, csv).unwrap();
    assert_eq!(names, ["whole", "skip; this", "name", "float", "last"]);
    let columns = vec![
        column("name", Type::String),
        column("whole", Type::I64),
        column("float", Type::F64),
    ];
    let table = read_csv(pattern.clone(), csv, columns).unwrap();

    let found = written(&table, Form::JsonLines, &scratch.path("out")).unwrap();
    let line = |(name, whole, float): &Row| {
        format!(
            "{{\"name\":{},\"whole\":{whole},\"float\":{float:?}}}\n",
            json!(name)
        )
    };
    let wanted: String = rows.iter().map(line).collect();
    assert!(String::from_utf8(found).unwrap() == wanted);

    // And what was written is read again, in another order.
    let again = vec![column("float", Type::F64), column("name", Type::String)];
    let table = read_jsonl([text(&scratch, "out")], again).unwrap();
    let table = table.sort(&[("float", true), ("name", false)]).unwrap();
    let found = written(&table, Form::JsonLines, &scratch.path("sorted")).unwrap();
    let mut sorted: Vec<(f64, &str)> = rows.iter().map(|row| (row.2, &*row.0)).collect();
    sorted.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let line =
        |(float, name): &(f64, &str)| format!("{{\"float\":{float:?},\"name\":{}}}\n", json!(name));
    let wanted: String = sorted.iter().map(line).collect();
    assert!(String::from_utf8(found).unwrap() == wanted);
}

#[test]
fn csv_without_header_and_without_quotes() {
    let scratch = Scratch::new("csv_without_header_and_without_quotes");
    std::fs::write(scratch.path("in"), "x\t\"1\t2\ny\"\t3\t4").unwrap();
    let csv = Csv {
        header: false,
        delimiter: b'\t',
        quote: None,
    };
    let kinds = [("a", Type::String), ("b", Type::Binary), ("c", Type::U64)];
    let columns = kinds.map(|(name, kind)| column(name, kind)).to_vec();
    let table = read_csv([text(&scratch, "in")], csv, columns).unwrap();
    let table = table.select(&["c", "b", "a"]).unwrap();
    let found = written(&table, Form::Text, &scratch.path("out")).unwrap();
    assert_eq!(String::from_utf8(found).unwrap(), "2\t\"1\tx\n4\t3\ty\"\n");
}

#[test]
fn json_lines_in_any_shape() {
    let mut random = Random::new(seed("json_lines_in_any_shape"));
    let scratch = Scratch::new("json_lines_in_any_shape");
    let rows = rows(&mut random, 4_000);
    let mut file = String::new();
    for (name, whole, float) in &rows {
        let name = match random.below(2) {
            0 => json!(name).to_string(),
            _ => {
                let escaped = name.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
                format!("\"{}\"", escaped.collect::<String>())
            }
        };
        let mut members = [
            format!("\"name\" : {name}"),
            format!("\"whole\":{whole}"),
            "\"n\\u0061me2\":{\"name\":[1,{}]}".to_owned(),
            format!("\"float\": {float:e}"),
        ];
        for at in (1..members.len()).rev() {
            members.swap(at, random.below(at + 1));
        }
        file += &format!(" {{{}}}\r\n", members.join(" ,"));
    }
    std::fs::write(scratch.path("in.lz4"), packed(Codec::Lz4, file.as_bytes())).unwrap();
    let columns = vec![
        column("whole", Type::I64),
        column("name", Type::String),
        column("float", Type::F64),
    ];
    let table = read_jsonl([text(&scratch, "in.lz4")], columns).unwrap();
    let grouped = table.group_by(&["name"]).unwrap();
    let grouped = grouped.agg(&[max("whole"), sum("float")]).unwrap();
    let grouped = grouped.sort(&[("name", false)]).unwrap();
    let found = written(&grouped, Form::JsonLines, &scratch.path("out")).unwrap();
    let mut model: BTreeMap<&str, (i64, f64)> = BTreeMap::new();
    for (name, whole, float) in &rows {
        let group = model.entry(name).or_insert((i64::MIN, 0.0));
        // Floats that are multiples of 1/64 add up exactly.
        *group = (group.0.max(*whole), group.1 + float);
    }
    let line = |(name, (whole, float)): (&&str, &(i64, f64))| {
        let float = if *float == 0.0 { 0.0 } else { *float };
        format!(
            "{{\"name\":{},\"whole\":{whole},\"float\":{float:?}}}\n",
            json!(name)
        )
    };
    let wanted: String = model.iter().map(line).collect();
    assert!(String::from_utf8(found).unwrap() == wanted);
}

/// Against `serde_json`, whose pointers lead the same ways.
#[test]
fn json_values_that_lie_in_others() {
    let mut random = Random::new(seed("json_values_that_lie_in_others"));
    let scratch = Scratch::new("json_values_that_lie_in_others");
    let (mut file, mut model) = (String::new(), String::new());
    for (name, whole, float) in rows(&mut random, 4_000) {
        let tags: Vec<i64> = (0..random.below(3) as i64)
            .map(|tag| whole / 2 + tag)
            .collect();
        let mut object = json!({
            "first": {"user": "none of these", "tags": [[]]},
            "user": {"name": name, "tags": tags, "at": {"x.y": float, "x": {"y": "another"}}},
        });
        if random.below(4) == 0 {
            object["user.name"] = json!(format!("is called so {name}"));
        }
        let at = |path: &str| object.pointer(path).cloned();
        let line = json!({
            "user.name": at("/user.name").or_else(|| at("/user/name")),
            "user.tags.1": at("/user/tags/1"),
            "user.at.x\\.y": float,
            "user.tags": at("/user/tags").unwrap().to_string(),
        });
        file += &format!("{object}\n");
        model += &format!("{line}\n");
    }
    std::fs::write(scratch.path("in"), file).unwrap();
    let columns = vec![
        column("user.at.x\\.y", Type::F64),
        column("user.name", Type::String),
        column("user.tags", Type::String),
        column("user.tags.1", Type::I64).or_null(),
    ];
    let table = read_jsonl([text(&scratch, "in")], columns).unwrap();
    let found = written(&table, Form::JsonLines, &scratch.path("out")).unwrap();
    let read = |text: &str| -> Vec<serde_json::Value> {
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    assert!(read(std::str::from_utf8(&found).unwrap()) == read(&model));
}

#[test]
fn records_of_a_fixed_size_and_pairs() {
    let mut random = Random::new(seed("records_of_a_fixed_size_and_pairs"));
    let scratch = Scratch::new("records_of_a_fixed_size_and_pairs");
    let records: Vec<Vec<u8>> = (0..5_000).map(|_| random.bytes(40)).collect();
    std::fs::write(scratch.path("in.bin"), records.concat()).unwrap();
    let key = (7, 10);
    let table = read_fixed([text(&scratch, "in.bin")], 40, key).unwrap();
    let sorted = table.sort(&[("key", true)]).unwrap();
    let form = Form::Fixed {
        record_bytes: 40,
        key,
    };
    let found = written(&sorted, form, &scratch.path("out")).unwrap();
    let mut model = records.clone();
    model.sort_by(|a, b| b[7..17].cmp(&a[7..17]));
    assert!(found == model.concat());

    let mut file = Vec::new();
    let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for _ in 0..3_000 {
        let below = 1 << random.below(15);
        let lengths = [random.below(20), random.below(below)];
        let [key, value] = lengths.map(|length| random.bytes(length));
        file.extend((key.len() as u32).to_le_bytes());
        file.extend((value.len() as u32).to_le_bytes());
        file.extend(key.iter().chain(&value));
        pairs.push((key, value));
    }
    std::fs::write(scratch.path("in.kv"), &file).unwrap();
    let table = read_kv([text(&scratch, "in.kv")]);
    let found = written(&table, Form::Kv, &scratch.path("out")).unwrap();
    assert!(found == file);
    let swapped = table.select(&["value", "key"]).unwrap();
    let swapped = swapped.sort(&[("value", false)]).unwrap();
    let found = written(&swapped, Form::Kv, &scratch.path("out")).unwrap();
    pairs.sort_by(|a, b| a.1.cmp(&b.1));
    let mut wanted = Vec::new();
    for (key, value) in &pairs {
        wanted.extend((value.len() as u32).to_le_bytes());
        wanted.extend((key.len() as u32).to_le_bytes());
        wanted.extend(value.iter().chain(key));
    }
    assert!(found == wanted);

    // One that is cut off, and one of another size.
    file.pop();
    std::fs::write(scratch.path("in.kv"), &file).unwrap();
    let error = written(&table, Form::Kv, &scratch.path("out")).unwrap_err();
    assert!(
        error.to_string().contains("the last record is cut off"),
        "{error}"
    );
    assert!(std::fs::read(scratch.path("out")).unwrap() == wanted);
    let error = written(&swapped, form, &scratch.path("out")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Input, "{error}");
}

/// Lines of files that are split, one of them compressed, one with lines that are longer than chunks.
#[test]
fn grep_with_file_and_line() {
    let mut random = Random::new(seed("grep_with_file_and_line"));
    let scratch = Scratch::new("grep_with_file_and_line");
    let mut wanted = Vec::new();
    for name in ["a.txt", "b.txt.gz", "c.txt"] {
        let mut file = String::new();
        for number in 1..=4_000 {
            let length = match random.below(500) {
                0 if name == "c.txt" => 40_000,
                _ => random.below(60),
            };
            let is_wanted = random.below(20) == 0;
            let needle = if is_wanted { "needle" } else { "" };
            let line = format!("{}{needle}", "x".repeat(length));
            if is_wanted && number > 2 {
                wanted.push(format!("{}\t{number}\t{line}\n", text(&scratch, name)));
            }
            file += &line;
            file += ["\n", "\r\n"][random.below(2)];
        }
        let bytes = match name.ends_with("gz") {
            true => packed(Codec::Gzip, file.as_bytes()),
            false => file.into_bytes(),
        };
        std::fs::write(scratch.path(name), bytes).unwrap();
    }
    let table = read_text([text(&scratch, "*.txt*")], 2);
    let table = table.with_place(Some("file"), Some("number")).unwrap();
    let has = table.filter(["line"], |[line]| Ok(line.bytes().ends_with(b"needle")));
    let table = has.unwrap();
    let table = table.select(&["file", "number", "line"]).unwrap();
    let found = written(&table, Form::Text, &scratch.path("out")).unwrap();
    assert!(String::from_utf8(found).unwrap() == wanted.concat());

    // Also where they decide the order.
    let table = table.sort(&[("number", true), ("file", false)]).unwrap();
    let found = written(&table, Form::Text, &scratch.path("out")).unwrap();
    let number = |line: &String| line.split('\t').nth(1).unwrap().parse::<u64>().unwrap();
    wanted.sort_by_key(|line| std::cmp::Reverse(number(line)));
    assert!(String::from_utf8(found).unwrap() == wanted.concat());
}

/// Of records that have newlines in them the line is that where they begin, in a pipe too.
#[test]
fn lines_of_csv() {
    let scratch = Scratch::new("lines_of_csv");
    let pipe = scratch.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let columns = vec![column("b", Type::I64)];
    let table = read_csv([text(&scratch, "pipe")], Csv::default(), columns).unwrap();
    let table = table.with_place(Some("file"), Some("line")).unwrap();
    let found = std::thread::scope(|threads| {
        let bytes = "a,b\n\"1\n\n2\",1\nx,2\n\"\n\",3\ny,4";
        let pipe = &pipe;
        threads.spawn(move || std::fs::write(pipe, bytes).unwrap());
        written(&table, BARE, &scratch.path("out")).unwrap()
    });
    let wanted = [(1, 2), (2, 5), (3, 6), (4, 8)];
    let line = |(value, line)| format!("{value},{},{line}\n", text(&scratch, "pipe"));
    let wanted: String = wanted.map(line).concat();
    assert_eq!(String::from_utf8(found).unwrap(), wanted);
}

/// Lines without anything are no records, where that cannot be what a record is: they count as lines, and no more.
#[test]
fn empty_lines_are_no_records() {
    let mut random = Random::new(seed("empty_lines_are_no_records"));
    let scratch = Scratch::new("empty_lines_are_no_records");
    let bare = Csv {
        header: false,
        ..Csv::default()
    };
    let mut csv = "b,a\n".to_owned();
    let (mut unnamed, mut json, mut one) = ("\n".to_owned(), " \r\n".to_owned(), "a\n".to_owned());
    let (mut wanted, mut wanted_one) = (String::new(), String::new());
    let (mut line, mut count) = (1, 0);
    for number in 0..20_000 {
        line += 1;
        if random.below(3) == 0 {
            let end = ["\n", "\r\n"][random.below(2)];
            for file in [&mut csv, &mut unnamed, &mut one] {
                *file += end;
            }
            json += [" \t", ""][random.below(2)];
            json += end;
            wanted_one += "\"\"\n";
            continue;
        }
        // The value between quotes goes on in the next line.
        csv += &format!("\"x\n\",{number}\n");
        unnamed += &format!("\"x\n\",{number}\n");
        json += &format!("{{\"a\":{number}}}\n");
        one += &format!("{number}\n");
        wanted += &format!("{number},{line}\n");
        wanted_one += &format!("{number}\n");
        line += 1;
        // So that lines are as many in all of them.
        json += "\n";
        count += 1;
    }
    for (name, file) in [
        ("csv", &csv),
        ("unnamed", &unnamed),
        ("json", &json),
        ("one", &one),
    ] {
        std::fs::write(scratch.path(name), file).unwrap();
    }
    let (a, b) = (column("a", Type::U64), column("b", Type::String));
    let named = read_csv([text(&scratch, "csv")], Csv::default(), vec![a.clone()]).unwrap();
    let unnamed = read_csv([text(&scratch, "unnamed")], bare, vec![b, a.clone()]).unwrap();
    let json = read_jsonl([text(&scratch, "json")], vec![a]).unwrap();
    for (name, table) in [("named", named), ("unnamed", unnamed), ("json", json)] {
        let table = table.with_place(None, Some("line")).unwrap();
        let table = table.select(&["a", "line"]).unwrap();
        let found = written(&table, BARE, &scratch.path("out")).unwrap();
        assert!(String::from_utf8(found).unwrap() == wanted, "{name}");

        // Their number is known nowhere but where they come out.
        let parts = scratch.path(&format!("parts of {name}"));
        let parted = table.write(&parts, BARE).unwrap().in_files(7).unwrap();
        parted.run(&small(), &host(), &Stop::new()).unwrap();
        let lines = |part| {
            let part = std::fs::read_to_string(parts.join(format!("part-{part:05}.csv")));
            part.unwrap().lines().count()
        };
        let counts: Vec<usize> = (0..7).map(lines).collect();
        assert_eq!(counts.iter().sum::<usize>(), count, "{name}");
        assert!(counts.iter().all(|&part| part.abs_diff(count / 7) <= 1));
    }
    let texts = vec![column("a", Type::String)];
    let one = read_csv([text(&scratch, "one")], Csv::default(), texts).unwrap();
    let found = written(&one, BARE, &scratch.path("out")).unwrap();
    assert!(String::from_utf8(found).unwrap() == wanted_one);
}

#[test]
fn what_is_no_such_record_is_told_with_its_place() {
    let scratch = Scratch::new("what_is_no_such_record_is_told_with_its_place");
    let [good, input, out] = ["good", "in", "out"].map(|name| scratch.path(name));
    std::fs::write(&out, "old").unwrap();
    std::fs::write(&good, "a,b\n1,2\n").unwrap();
    let rest = "x,1\n".repeat(20_000);
    let json_rest = "{\"a\":\"x\",\"b\":1}\n".repeat(8_000);
    let columns = || vec![column("a", Type::String), column("b", Type::I64)];
    let csv = || read_csv([text(&scratch, "in")], Csv::default(), columns());
    let json = || read_jsonl([text(&scratch, "in")], columns());
    let bare = Csv {
        header: false,
        ..Csv::default()
    };
    let unnamed = || read_csv([text(&scratch, "in")], bare, columns());
    type Make<'m> = &'m dyn Fn() -> Result<Table, Error>;
    let cases: [(Make<'_>, &str, &str, &str); 9] = [
        (
            &csv,
            &format!("a,b\n{rest}\"x\ny\",z\n"),
            "\"",
            "column b: \"z\" is no value of type i64",
        ),
        (
            &csv,
            &format!("a,b\n{rest}x,\n"),
            "x",
            "column b: \"\" is no value",
        ),
        (
            &csv,
            &format!("a,b\n{rest}x,1,2\n{rest}"),
            "x",
            "it has 3 columns, and the header has 2",
        ),
        (
            &csv,
            &format!("a,b\n{rest}x\"y,1\n"),
            "\"",
            "a quote stands within a value",
        ),
        (&csv, &format!("a,b\n{rest}\"x,1\n"), "\"", "never closed"),
        (
            &unnamed,
            &format!("{rest}x\n{rest}"),
            "x",
            "it has 1 columns where 2",
        ),
        (
            &json,
            &format!("{json_rest}{{\"a\":\"y\"}}\n"),
            "{",
            "it has no column b",
        ),
        (
            &json,
            &format!("{json_rest}{{\"a\":\"y\",\"b\":null}}\n"),
            "{",
            "column b is null",
        ),
        (
            &json,
            &format!("{json_rest}{{\"a\":\"y\",\"b\":1\n{json_rest}"),
            "",
            "this is no JSON",
        ),
    ];
    for (make, file, at, cause) in cases {
        std::fs::write(&input, file).unwrap();
        let error = written(&make().unwrap(), BARE, &out).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Input, "{error}");
        assert!(error.cause.contains(cause), "{cause}: {error}");
        assert_eq!(error.path.as_ref(), Some(&input), "{error}");
        let line = 1
            + rest.lines().count().min(file.lines().count()) as u64
            + u64::from(file.starts_with("a,b"));
        let json_line = 1 + json_rest.lines().count();
        let line = if file.starts_with('{') {
            json_line as u64
        } else {
            line
        };
        assert!(
            error.cause.starts_with(&format!("line {line}: ")),
            "{error}"
        );
        let offset = error.offset.unwrap() as usize;
        assert!(file[offset..].starts_with(at), "{error}");
        assert!(offset >= rest.len().min(json_rest.len()), "{error}");
        assert_eq!(std::fs::read_to_string(&out).unwrap(), "old");
        assert_eq!(scratch.names(), ["good", "in", "out"]);
    }

    // Headers that differ, columns that are not there.
    std::fs::write(&input, "a,c\n1,2\n").unwrap();
    let both = [text(&scratch, "good"), text(&scratch, "in")];
    let table = read_csv(both, Csv::default(), columns()).unwrap();
    let error = written(&table, BARE, &out).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("its header is not that of the first"),
        "{error}"
    );
    let error = written(&csv().unwrap(), BARE, &out).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Usage);
    assert!(
        error
            .to_string()
            .contains("there is no column \"b\": there are a, c"),
        "{error}"
    );
    let twice = vec![column("a", Type::I64), column("a", Type::I64)];
    let error = read_jsonl(["x"], twice).err().unwrap();
    assert!(
        error.to_string().contains("two columns are called a"),
        "{error}"
    );
    let error = read_kv(["x"]).with_place(None, Some("line")).err().unwrap();
    assert!(error.to_string().contains("pairs have no lines"), "{error}");
    let error = read_fixed(["x"], 10, (5, 6)).err().unwrap();
    assert!(
        error.to_string().contains("is no part of a record"),
        "{error}"
    );
    std::fs::write(&input, "").unwrap();
    let error = csv_names(&host(), &[scratch.path("in")], Csv::default()).unwrap_err();
    assert!(error.to_string().contains("all files are empty"), "{error}");
    // But where columns are named there are no records in them, and that is all.
    assert_eq!(written(&csv().unwrap(), BARE, &out).unwrap(), b"");
}

/// Records that are made while the job reads them, far more than it has memory for, and rows that come out again.
#[test]
fn an_iterator_and_rows() {
    let seed = seed("an_iterator_and_rows");
    let scratch = Scratch::new("an_iterator_and_rows");
    let columns = vec![
        column("number", Type::U64),
        column("text", Type::Binary),
        column("is", Type::Bool),
    ];
    let row = |number: u64, random: &mut Random| {
        let length = match number % 5_000 {
            17 => 60_000,
            _ => random.below(100),
        };
        let text = random.bytes(length);
        vec![
            Owned::Plain(Value::U64(number)),
            Owned::Bytes(text),
            Owned::Plain(Value::Bool(number.is_multiple_of(3))),
        ]
    };
    const COUNT: u64 = 60_000;
    let make: MakeRows = Arc::new(move || {
        let mut random = Random::new(seed);
        Ok(Box::new(
            (0..COUNT).map(move |number| Ok(row(number, &mut random))),
        ))
    });
    let table = from_iter(columns.clone(), make).unwrap();
    let sorted = table.sort(&[("text", true), ("number", false)]).unwrap();
    let out = scratch.path("out");
    // As often as it is asked.
    for _ in 0..2 {
        let pipeline = sorted.write(&out, Form::Rows).unwrap();
        pipeline.explain(&small(), &host()).unwrap();
        let report = pipeline.run(&small(), &host(), &Stop::new()).unwrap();
        assert_eq!(report.records(), (COUNT, COUNT));
        assert!(report.phases[0].report.bytes.temp_written > 0);
    }
    let mut random = Random::new(seed);
    let mut model: Vec<(Vec<u8>, u64)> = (0..COUNT)
        .map(|number| match &row(number, &mut random)[1] {
            Owned::Bytes(text) => (text.clone(), number),
            Owned::Plain(_) => panic!("it is bytes"),
        })
        .collect();
    model.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut rows = RowFile::open(&host(), &out, &columns).unwrap();
    for (text, number) in &model {
        let see = |values: &[Value<'_>]| {
            let is = Value::Bool(number.is_multiple_of(3));
            assert_eq!(values, [Value::U64(*number), Value::Bytes(text), is]);
            Ok(())
        };
        assert!(rows.next(&host(), see).unwrap());
    }
    assert!(!rows.next(&host(), |_| panic!("there are no more")).unwrap());

    // One that fails, and one that makes what it should not: what was there stays.
    let before = std::fs::read(&out).unwrap();
    type Fail = fn(u64) -> Result<Vec<Owned>, Error>;
    let fails: [Fail; 2] = [
        |_| {
            Err(Error::new(
                ErrorKind::Function,
                "iterating",
                "no more of that",
            ))
        },
        |_| Ok(vec![Owned::Plain(Value::U64(1))]),
    ];
    for (fail, cause) in fails
        .into_iter()
        .zip(["no more of that", "which is not (u64)"])
    {
        let make: MakeRows = Arc::new(move || {
            let rows = (0..COUNT).map(move |number| match number {
                50_000 => fail(number).map(|mut row| {
                    row.push(Owned::Plain(Value::Bool(true)));
                    row
                }),
                _ => Ok(vec![Owned::Plain(Value::U64(number))]),
            });
            Ok(Box::new(rows))
        });
        let table = from_iter(columns[..1].to_vec(), make).unwrap();
        let error = written(&table, Form::Rows, &out).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Function, "{error}");
        assert!(error.to_string().contains(cause), "{error}");
        assert_eq!(scratch.names(), ["out"]);
        assert!(std::fs::read(&out).unwrap() == before);
    }
}

/// A few records from the beginning are those that the job would make first, and nothing is made.
#[test]
fn the_first_records_without_a_job() {
    let scratch = Scratch::new("the_first_records_without_a_job");
    let numbers = 0..30_000;
    let file: String = numbers
        .map(|number| format!("\"{number}\n\",{number}\n"))
        .collect();
    let (one, two) = file.split_at(file.find("\"20000").unwrap());
    std::fs::write(scratch.path("a.csv"), format!("name,n\n{one}")).unwrap();
    let two = packed(Codec::Zstd, format!("name,n\n{two}").as_bytes());
    std::fs::write(scratch.path("b.csv"), two).unwrap();
    let columns = vec![column("n", Type::I64)];
    let table = read_csv([text(&scratch, "?.csv")], Csv::default(), columns).unwrap();
    let table = table.with_place(None, Some("line")).unwrap();
    let rare = table.filter(["n"], |[n]| Ok(n.i64()? % 7_000 == 0));
    let rare = rare.unwrap();
    let head = |table: &Table, count: usize| {
        let (rows, are_first) = table.head(count, &host(), &Stop::new()).unwrap()?;
        assert!(are_first);
        let number = |row: &Vec<Owned>| match (row[0].value(), row[1].value()) {
            (Value::I64(number), Value::U64(line)) => (number, line),
            other => panic!("{other:?}"),
        };
        Some(rows.iter().map(number).collect::<Vec<_>>())
    };
    assert_eq!(head(&table, 2), Some(vec![(0, 2), (1, 4)]));
    assert_eq!(head(&table, 0), Some(vec![]));
    let wanted = vec![
        (0, 2),
        (7_000, 14_002),
        (14_000, 28_002),
        (21_000, 2_002),
        (28_000, 16_002),
    ];
    assert_eq!(head(&rare, 4), Some(wanted[..4].to_vec()));
    assert_eq!(head(&rare, 40), Some(wanted));
    assert_eq!(head(&table.sort(&[("n", true)]).unwrap(), 4), None);
    assert_eq!(scratch.names(), ["a.csv", "b.csv"]);
    std::fs::write(scratch.path("a.csv"), "name,n\nx,1\n\"\n\",y\n").unwrap();
    let error = table.head(5, &host(), &Stop::new()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("line 3: column n: \"y\" is no value"),
        "{error}"
    );
    assert_eq!(error.offset, Some(11));
}
