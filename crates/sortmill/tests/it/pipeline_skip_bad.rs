//! Bad records that are left out, of files that are many chunks read by several threads: held against what was written down.

use sortmill::error::{Error, ErrorKind};
use sortmill::io::codec::Codec;
use sortmill::pipeline::{
    Column, Csv, PipelineReport, Table, Type, count, from_iter, read_csv, read_fixed, read_jsonl,
    read_text, sum,
};
use sortmill::queue::Stop;

use crate::Scratch;
use crate::pipeline_inputs::{BARE, host, small};
use crate::sort::inputs::{Random, seed};
use crate::sort::packed::packed;

fn run(table: &Table, scratch: &Scratch) -> Result<(String, PipelineReport), Error> {
    let host = host();
    let out = scratch.path("out");
    let report = table
        .write(&out, BARE)?
        .run(&small(), &host, &Stop::new())?;
    Ok((std::fs::read_to_string(out).unwrap(), report))
}

/// A file of records, what is written of the good ones, their sum, and the lines of the bad ones.
#[derive(Default)]
struct File {
    text: String,
    good: String,
    sum: i64,
    bad: Vec<usize>,
}

impl File {
    fn line(&self) -> usize {
        1 + self.text.matches('\n').count()
    }
}

/// Of `count` records some twentieth are bad.
fn csv(random: &mut Random, count: usize) -> File {
    let mut file = File {
        text: "name,n\n".to_owned(),
        ..File::default()
    };
    for number in 0..count {
        if random.below(20) == 0 {
            file.bad.push(file.line());
            let bad = ["x,1,2", "x", "x,y", "x,", "x,9223372036854775808"];
            file.text += bad[random.below(bad.len())];
        } else {
            let name = ["a", "\"b\nc\"", "\"d\"\"\"", "\"\n\n,\""][random.below(4)];
            let value = format!("{name},{number}");
            file.text += &value;
            file.good += &value;
            file.good += "\n";
            file.sum += number as i64;
        }
        file.text += "\n";
    }
    file
}

fn json(random: &mut Random, count: usize) -> File {
    let mut file = File::default();
    for number in 0..count {
        if random.below(20) == 0 {
            file.bad.push(file.line());
            let bad = [
                "[]",
                "{\"name\":\"x\"}",
                "{",
                "{\"name\":\"x\",\"n\":\"1\"}",
            ];
            file.text += bad[random.below(bad.len())];
        } else {
            file.text += &format!("{{\"n\":{number},\"name\":\"a\"}}");
            file.good += &format!("a,{number}\n");
            file.sum += number as i64;
        }
        file.text += "\n";
    }
    file
}

#[test]
fn up_to_so_many_are_left_out() {
    let mut random = Random::new(seed("up_to_so_many_are_left_out"));
    let scratch = Scratch::new("up_to_so_many_are_left_out");
    let columns = || {
        vec![
            Column::new("name", Type::String),
            Column::new("n", Type::I64),
        ]
    };
    let input = scratch.path("in");
    let read_csv = || read_csv([&input], Csv::default(), columns()).unwrap();
    let read_jsonl = || read_jsonl([&input], columns()).unwrap();
    for round in 0..8 {
        let (file, table) = match round % 2 {
            0 => (csv(&mut random, 6_000), read_csv()),
            _ => (json(&mut random, 6_000), read_jsonl()),
        };
        match round {
            2 | 3 => std::fs::write(&input, packed(Codec::Zstd, file.text.as_bytes())).unwrap(),
            _ => std::fs::write(&input, &file.text).unwrap(),
        }
        let bad = file.bad.len() as u64;
        assert!(bad > 100);
        let some = table.with_skip_bad(bad).unwrap();
        let (found, report) = run(&some, &scratch).unwrap();
        assert!(found == file.good, "round {round}");
        let report = &report.phases[0].report;
        assert_eq!(report.skipped_records, bad);
        // The first hundred, whoever came upon them.
        assert_eq!(report.skipped_first.len(), 100);
        for (told, line) in report.skipped_first.iter().zip(&file.bad) {
            assert!(told.contains(&format!(": line {line}: ")), "{told}, {line}");
        }
        let prints = &report.fingerprints;
        assert_eq!(prints.input.records, 6_000 - bad);
        assert_eq!(prints.written.records, 6_000 - bad);

        // Brought together, and again by the same table.
        let sums = some.agg(&[count(), sum("n")]).unwrap();
        let (found, report) = run(&sums, &scratch).unwrap();
        assert_eq!(found, format!("{},{}\n", 6_000 - bad, file.sum));
        assert_eq!(report.phases[0].report.skipped_records, bad);
        assert_eq!(
            report.phases[0].report.fingerprints.input.records,
            6_000 - bad
        );

        for less in [bad - 1, bad / 2, 1, 0] {
            let few = table.with_skip_bad(less).unwrap();
            for few in [&few, &few.sort(&[("n", true)]).unwrap()] {
                let error = run(few, &scratch).unwrap_err();
                assert_eq!(error.kind, ErrorKind::Input, "{error}");
                assert_eq!(error.path.as_deref(), Some(&*input));
                let lines = file.bad.iter();
                let mut told = lines.map(|line| format!("line {line}: "));
                assert!(told.any(|line| error.cause.starts_with(&line)), "{error}");
                let hint = error.hint.as_deref().unwrap_or_default();
                assert!(hint.contains("--skip-bad N"), "{error}");
            }
        }
    }
}

#[test]
fn where_none_can_be_bad() {
    let columns = vec![Column::new("n", Type::I64)];
    let rows = from_iter(
        columns,
        std::sync::Arc::new(|| Ok(Box::new(std::iter::empty()))),
    )
    .unwrap();
    let behind = read_text(["in"], 0).filter(["line"], |_| Ok(true)).unwrap();
    for table in [rows, behind] {
        let error = table.with_skip_bad(1).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Usage);
        assert!(error.cause.contains("where files are read"), "{error}");
    }
    let fixed = read_fixed(["in"], 10, (0, 10)).unwrap();
    assert!(fixed.with_skip_bad(1).is_ok());
}
