//! A fault at every few operations of a pipeline from CSV to a folder of several files: all of them are there and right, or
//! none is, and nothing is left.

use sortmill::io::codec::{Codec, Decoder};
use sortmill::io::sim::{Fault, FaultKind, Sim, Struck};
use sortmill::job::Compress;
use sortmill::pipeline::{Column, Csv, Form, Pipeline, Settings, Type, read_csv};
use sortmill::queue::Stop;

use super::{Case, Error, harmless, leftovers, random, seed, under_schedule};

const FILE_COUNT: usize = 4;

/// Sorted by a number that stands behind a text with newlines in it.
fn pipeline() -> Pipeline {
    let columns = vec![
        Column::new("n", Type::U64),
        Column::new("text", Type::String),
    ];
    let table = read_csv(["/in"], Csv::default(), columns).unwrap();
    let table = table.with_place(None, Some("line")).unwrap();
    let sorted = table.sort(&[("n", false)]).unwrap();
    let pipeline = sorted.write("/out", Form::Csv { header: true }).unwrap();
    pipeline.in_files(FILE_COUNT as u64).unwrap()
}

/// Some CSV, and what should be in the files together but for their headers.
fn case(seed: u64) -> (Vec<u8>, String) {
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
        rows.push((number, format!("{number},{quoted},{line}\n")));
        line += 1 + number % 3;
    }
    rows.sort_unstable();
    let wanted = rows.into_iter().map(|(_, row)| row).collect();
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

fn run(seed: u64, input: &[u8], fault: Option<Fault>) -> Ended {
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
        let result = pipeline().run(&settings, &sim, &Stop::new());
        let result = result.map(|report| report.phases[0].report.bytes.temp_written);
        let name = |number| format!("/out/part-{number:05}.csv");
        let files = (0..FILE_COUNT).map(|number| sim.get(name(number)));
        let files: Option<Vec<Vec<u8>>> = files.collect();
        let text = |file: &Vec<u8>| {
            let text = String::from_utf8(file.clone()).unwrap();
            text.strip_prefix("n,text,line\n").unwrap().to_owned()
        };
        let mut left = leftovers(&sim);
        left.retain(|name| !name.starts_with("/out/"));
        Ended {
            result,
            found: files.map(|files| files.iter().map(text).collect()),
            struck: sim.struck(),
            operations: sim.operation_count(),
            left: left.len(),
        }
    })
}

#[test]
fn faults_in_files_of_equal_counts() {
    const STEP: usize = 9;
    let seed = seed();
    println!("SEED={seed}");
    let (input, wanted) = case(seed);
    let healthy = run(seed, &input, None);
    assert!(
        matches!(healthy.result, Ok(20_000..)),
        "{:?}",
        healthy.result
    );
    assert_eq!(healthy.found.as_ref(), Some(&wanted));
    let mut failed = 0;
    for at in (0..healthy.operations).step_by(STEP) {
        let fault = Fault {
            at,
            for_good: false,
            kind: FaultKind::Error(5),
        };
        let ended = run(seed.wrapping_mul(1_000_003) + at, &input, Some(fault));
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
    let tried = healthy.operations / STEP as u64;
    assert!(failed > tried / 2, "{failed} of {tried} failed");
}

/// Several threads compress, whatever the schedule, and each file is whole by itself.
#[test]
fn compressed_files_of_equal_counts_under_schedules() {
    let seed = seed();
    println!("SEED={seed}");
    let (input, wanted) = case(seed);
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
                let pipeline = pipeline().compressed(Some(compress));
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
