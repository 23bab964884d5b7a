//! A fault at every few operations of a pipeline from CSV to a folder of several files: all of them are there and right, or
//! none is, and nothing is left.

use sortmill::io::codec::{Codec, Decoder};
use sortmill::io::sim::{Fault, FaultKind, Sim, Struck};
use sortmill::job::Compress;
use sortmill::pipeline::{Column, Csv, Form, Pipeline, Settings, Type, col, read_csv};
use sortmill::queue::Stop;

use super::{Case, Error, harmless, leftovers, random, seed, under_schedule};

const FILE_COUNT: usize = 4;

/// What tells how many records a file has.
#[derive(Clone, Copy)]
enum Files {
    /// As many as any other.
    Equal,
    /// What remains of the number divided tells the file.
    Told,
}

/// Sorted by a number that stands behind a text with newlines in it.
fn pipeline(files: Files) -> Pipeline {
    let columns = vec![
        Column::new("n", Type::U64),
        Column::new("text", Type::String),
    ];
    let table = read_csv(["/in"], Csv::default(), columns).unwrap();
    let table = table.with_place(None, Some("line")).unwrap();
    let form = Form::csv(true);
    match files {
        Files::Equal => {
            let sorted = table.sort(&[("n", false)]).unwrap();
            let pipeline = sorted.write("/out", form).unwrap();
            pipeline.in_files(FILE_COUNT as u64).unwrap()
        }
        Files::Told => {
            let part = ("part", col("n") % FILE_COUNT as u64);
            let told = table.with_columns(&[part]).unwrap();
            let sorted = told.sort(&[("part", false), ("n", false)]).unwrap();
            let files = sorted.write_told("/out", form, FILE_COUNT as u64, "part");
            files.unwrap()
        }
    }
}

/// Some CSV, and what should be in the files one after the other but for their headers.
fn case(seed: u64, files: Files) -> (Vec<u8>, String) {
    let (mut state, mut line) = (seed, 2);
    let (mut input, mut rows) = ("text,n\n".to_owned(), Vec::new());
    while input.len() < 300_000 {
        let number = random(&mut state);
        let text = "\n".repeat((number % 3) as usize) + &"x".repeat((number % 50) as usize);
        input += &format!("\"{text}\",{number}\n");
        let quoted = match text.contains('\n') {
            true => format!("\"{text}\""),
            false => text.clone(),
        };
        let part = match files {
            Files::Equal => 0,
            Files::Told => number % FILE_COUNT as u64,
        };
        rows.push((part, number, format!("{number},{quoted},{line}\n")));
        line += 1 + number % 3;
    }
    rows.sort_unstable();
    let wanted = rows.into_iter().map(|(_, _, row)| row).collect();
    (input.into_bytes(), wanted)
}

struct Ended {
    /// Bytes of temporary data.
    result: Result<u64, Error>,
    /// What is in the files, if they are there.
    found: Option<String>,
    struck: Option<Struck>,
    operations: u64,
    left: usize,
}

fn run(seed: u64, files: Files, input: &[u8], fault: Option<Fault>) -> Ended {
    let input = input.to_vec();
    under_schedule(seed, move || {
        let sim = Sim::new(seed);
        sim.put_dir("/temp");
        sim.put("/in", &input);
        sim.set_fault(fault);
        let settings = Settings {
            memory_bytes: Some(400 << 10),
            temps: vec!["/temp".into()],
            threads: Some(2),
            tuning: Case::new(seed, 100).tuning,
            ..Settings::default()
        };
        let result = pipeline(files).run(&settings, &sim, &Stop::new());
        let result = result.map(|report| report.phases[0].report.bytes.temp_written);
        let name = |number| format!("/out/part-{number:05}.csv");
        let parts = (0..FILE_COUNT).map(|number| sim.get(name(number)));
        let parts: Option<Vec<Vec<u8>>> = parts.collect();
        let text = |file: &Vec<u8>| {
            let text = String::from_utf8(file.clone()).unwrap();
            text.strip_prefix("n,text,line\n").unwrap().to_owned()
        };
        let mut left = leftovers(&sim);
        left.retain(|name| !name.starts_with("/out/"));
        Ended {
            result,
            found: parts.map(|parts| parts.iter().map(text).collect()),
            struck: sim.struck(),
            operations: sim.operation_count(),
            left: left.len(),
        }
    })
}

#[test]
fn faults_in_files_of_equal_counts() {
    faults_in(Files::Equal, 3);
}

#[test]
fn faults_in_files_that_a_column_tells() {
    faults_in(Files::Told, 3);
}

fn faults_in(files: Files, step: usize) {
    let seed = seed();
    println!("SEED={seed}");
    let (input, wanted) = case(seed, files);
    let healthy = run(seed, files, &input, None);
    assert!(
        matches!(healthy.result, Ok(20_000..)),
        "{:?}",
        healthy.result
    );
    assert_eq!(healthy.found.as_ref(), Some(&wanted));
    let mut failed = 0;
    for at in (0..healthy.operations).step_by(step) {
        let fault = Fault {
            at,
            for_good: false,
            kind: FaultKind::Error(5),
        };
        let ended = run(
            seed.wrapping_mul(1_000_003) + at,
            files,
            &input,
            Some(fault),
        );
        let told = format!("{:?} {:?}", ended.struck, ended.result);
        let place = ended.struck.as_ref();
        let operation = place.map_or("none", |place| place.operation);
        match &ended.result {
            Ok(_) => assert_eq!(ended.found.as_ref(), Some(&wanted), "wrong output: {told}"),
            // Only this comes after the name was given.
            Err(_) if operation == "sync_dir" => {}
            Err(_) => assert!(ended.found.is_none(), "output of a failed job: {told}"),
        }
        if let (Ok(_), Some(place)) = (&ended.result, place) {
            let harmless = harmless(place) || place.path.ends_with("owner");
            assert!(harmless, "{place:?} passed unnoticed");
        }
        if !operation.starts_with("remove") && operation != "list_dir" {
            assert_eq!(ended.left, 0, "something left: {told}");
        }
        failed += u64::from(ended.result.is_err());
    }
    let tried = healthy.operations / step as u64;
    assert!(failed > tried / 2, "{failed} of {tried} failed");
}

/// Several threads compress, whatever the schedule, and each file is whole by itself.
#[test]
fn compressed_files_of_equal_counts_under_schedules() {
    let seed = seed();
    println!("SEED={seed}");
    let (input, wanted) = case(seed, Files::Equal);
    for number in 0..3 {
        let seed = seed.wrapping_mul(1_000_033) + number;
        let codec = Codec::Lz4;
        let compress = Compress { codec, level: None };
        let found = under_schedule(seed, {
            let input = input.clone();
            move || {
                let sim = Sim::new(seed);
                sim.put_dir("/temp");
                sim.put("/in", &input);
                let settings = Settings {
                    memory_bytes: Some(16 << 20),
                    temps: vec!["/temp".into()],
                    threads: Some(2),
                    tuning: Case::new(seed, 100).tuning,
                    ..Settings::default()
                };
                let pipeline = pipeline(Files::Equal).compressed(Some(compress));
                pipeline.run(&settings, &sim, &Stop::new()).unwrap();
                let mut found = String::new();
                for number in 0..FILE_COUNT {
                    let packed = sim.get(format!("/out/part-{number:05}.csv.lz4")).unwrap();
                    let mut decoder = Decoder::new(codec, &packed[..], 64 << 20).ok().unwrap();
                    let (mut text, mut some) = (Vec::new(), vec![0; 4096]);
                    loop {
                        match decoder.read(&mut some).ok().unwrap() {
                            0 => break,
                            count => text.extend_from_slice(&some[..count]),
                        }
                    }
                    let text = String::from_utf8(text).unwrap();
                    found += text.strip_prefix("n,text,line\n").unwrap();
                }
                found
            }
        });
        assert!(found == wanted, "{seed}");
    }
}
