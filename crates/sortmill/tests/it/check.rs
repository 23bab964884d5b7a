//! Checking against a plain model in memory: planted disorder, duplicates across edges, any number of inputs.

mod verify;

use std::cmp::Ordering;
use std::ops::Range;
use std::path::{Path, PathBuf};

use sortmill::check::{Check, Checked, Unordered, check, merge, write_summary};
use sortmill::error::ErrorKind;
use sortmill::fingerprint::Fingerprint;
use sortmill::gen_records::{Alphabet, Records};
use sortmill::job::Input;
use sortmill::order::{Format, KeyPart, Number};
use sortmill::queue::Stop;
use sortmill::summary::Summary;
use sortmill_io::sim::{Fault, FaultKind, Sim};
use sortmill_io::{Host, Os, RingKind};

use crate::Scratch;

// The model.

/// A kind of records, how they compare in plain words, and how one is made whose key is near `number`.
struct Kind {
    name: &'static str,
    format: Format,
    keys: Vec<KeyPart>,
    compare: fn(&[u8], &[u8]) -> Ordering,
    make: fn(&mut Random, u64) -> Vec<u8>,
}

fn noise(random: &mut Random, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|_| random.below(256) as u8).collect()
}

/// A record of `bytes` with `field` at `offset` and noise elsewhere.
fn record(random: &mut Random, bytes: usize, offset: usize, field: &[u8]) -> Vec<u8> {
    let mut record = noise(random, bytes);
    record[offset..offset + field.len()].copy_from_slice(field);
    record
}

fn line(random: &mut Random, number: u64, bytes_max: usize) -> Vec<u8> {
    let mut line = format!("{number:07}").into_bytes();
    line.truncate(random.below(8));
    if random.below(2) == 0 {
        line.extend(b"x".repeat(random.below(bytes_max)));
    }
    line.push(b'\n');
    line
}

fn field<const BYTES: usize>(record: &[u8], offset: usize) -> [u8; BYTES] {
    record[offset..offset + BYTES].try_into().unwrap()
}

fn benchmark() -> Kind {
    Kind {
        name: "fixed:100, key 0:10",
        format: Format::Fixed(100),
        keys: vec![KeyPart::plain(0, 10)],
        compare: |a, b| a[..10].cmp(&b[..10]),
        make: |random, number| {
            let key = [[0; 2].as_slice(), &number.to_be_bytes()].concat();
            record(random, 100, 0, &key)
        },
    }
}

fn lines() -> Kind {
    Kind {
        name: "lines",
        format: Format::Lines,
        keys: Vec::new(),
        compare: |a, b| a[..a.len() - 1].cmp(&b[..b.len() - 1]),
        make: |random, number| line(random, number, 12),
    }
}

fn kinds() -> Vec<Kind> {
    let part = |offset, bytes, number, little_endian, reversed| KeyPart {
        offset,
        bytes,
        number,
        little_endian,
        reversed,
    };
    vec![
        benchmark(),
        lines(),
        Kind {
            name: "lines longer than a chunk",
            make: |random, number| {
                let long = random.below(10) == 0;
                line(random, number, if long { 20_000 } else { 90 })
            },
            ..lines()
        },
        Kind {
            name: "fixed:64, records end where chunks do",
            format: Format::Fixed(64),
            keys: vec![KeyPart::plain(3, 4)],
            compare: |a, b| a[3..7].cmp(&b[3..7]),
            make: |random, number| record(random, 64, 3, &(number as u32).to_be_bytes()),
        },
        Kind {
            name: "fixed:5000, whole, longer than a chunk",
            format: Format::Fixed(5000),
            keys: Vec::new(),
            compare: Ord::cmp,
            make: |random, number| {
                let mut record = vec![b'.'; 5000];
                record[4990..4998].copy_from_slice(&number.to_be_bytes());
                record[4999] = random.below(2) as u8;
                record
            },
        },
        Kind {
            name: "fixed:24, a reversed float and a signed number",
            format: Format::Fixed(24),
            keys: vec![
                part(8, 8, Number::Float, true, true),
                part(1, 4, Number::Signed, false, false),
            ],
            compare: |a, b| {
                let float = |record| f64::from_le_bytes(field(record, 8));
                let signed = |record| i32::from_be_bytes(field(record, 1));
                (float(b).total_cmp(&float(a))).then(signed(a).cmp(&signed(b)))
            },
            make: |random, number| {
                let float = 50.0 - (number / 4) as f64;
                let mut made = record(random, 24, 8, &float.to_le_bytes());
                let signed = (number % 4) as i32 - 2;
                made[1..5].copy_from_slice(&signed.to_be_bytes());
                made
            },
        },
        Kind {
            name: "fixed:13, an unsigned number",
            format: Format::Fixed(13),
            keys: vec![part(5, 4, Number::Unsigned, true, false)],
            compare: |a, b| {
                let unsigned = |record| u32::from_le_bytes(field(record, 5));
                unsigned(a).cmp(&unsigned(b))
            },
            make: |random, number| record(random, 13, 5, &(number as u32).to_le_bytes()),
        },
        Kind {
            name: "pairs, some longer than a chunk",
            format: Format::Kv,
            keys: Vec::new(),
            compare: |a, b| {
                let key = |pair: &[u8]| {
                    let bytes = u32::from_le_bytes(field(pair, 0)) as usize;
                    pair[8..8 + bytes].to_vec()
                };
                key(a).cmp(&key(b))
            },
            make: |random, number| {
                let mut key = line(random, number, 9);
                key.pop();
                let bytes = [90, 20_000][usize::from(random.below(10) == 0)];
                let bytes = random.below(bytes);
                let value = noise(random, bytes);
                let lengths = [key.len() as u32, bytes as u32].map(u32::to_le_bytes);
                [&lengths.concat(), key.as_slice(), &value].concat()
            },
        },
    ]
}

/// Records in order and how they are divided among inputs.
struct Data {
    records: Vec<Vec<u8>>,
    inputs: Vec<Range<usize>>,
}

const FINGERPRINT_KEY: u64 = 7;

impl Data {
    /// About `bytes` of records in order, some equal, in one input.
    fn new(kind: &Kind, random: &mut Random, bytes: usize, key_count: usize) -> Self {
        let mut records = Vec::new();
        let mut made = 0;
        while made < bytes {
            let number = random.below(key_count) as u64;
            let record = (kind.make)(random, number);
            made += record.len();
            records.push(record);
        }
        records.sort_by(|a, b| (kind.compare)(a, b));
        let inputs = vec![0..records.len(); 1];
        Self { records, inputs }
    }

    /// Divides the records among `count` inputs, some of which may have none.
    fn divide(&mut self, random: &mut Random, count: usize) {
        let mut edges: Vec<usize> = (1..count)
            .map(|_| random.below(self.records.len() + 1))
            .chain([0, self.records.len()])
            .collect();
        edges.sort_unstable();
        self.inputs = edges.windows(2).map(|pair| pair[0]..pair[1]).collect();
    }

    /// Swaps records with ones far away or near: at `places`, of which each is a number of a record.
    fn plant(&mut self, random: &mut Random, places: &[usize]) {
        for &place in places {
            let count = self.records.len();
            let other = match random.below(2) {
                0 => random.below(count),
                _ => place + 1,
            };
            self.records
                .swap(place.min(count - 1), other.min(count - 1));
        }
    }

    /// The records at and around multiples of `chunk_bytes` of each input, and at the edges of inputs.
    fn edges(&self, chunk_bytes: usize) -> Vec<usize> {
        let mut edges = Vec::new();
        for input in &self.inputs {
            edges.push(input.start.saturating_sub(1));
            let mut offset = 0;
            for number in input.clone() {
                let end = offset + self.records[number].len();
                if offset % chunk_bytes == 0 || offset / chunk_bytes != end / chunk_bytes {
                    edges.extend([number.saturating_sub(1), number]);
                }
                offset = end;
            }
        }
        edges
    }

    fn bytes(&self, input: usize) -> Vec<u8> {
        self.records[self.inputs[input].clone()].concat()
    }

    /// What a check of inputs called `names` must find.
    fn expected(&self, kind: &Kind, names: &[PathBuf]) -> Checked {
        let compare =
            |number: usize| (kind.compare)(&self.records[number - 1], &self.records[number]);
        let all = 1..self.records.len();
        let unordered: Vec<usize> = all.clone().filter(|&at| compare(at).is_gt()).collect();
        let duplicates = all.filter(|&at| compare(at).is_eq()).count();
        let mut fingerprint = Fingerprint::default();
        let mut checksum = 0;
        for record in &self.records {
            fingerprint.add(record, FINGERPRINT_KEY);
            checksum += u128::from(crc32fast::hash(record));
        }
        let first_unordered = unordered.first().map(|&record| {
            let inside = |input: &Range<usize>| input.contains(&record);
            let input = self.inputs.iter().position(inside).unwrap();
            let before = &self.records[self.inputs[input].start..record];
            Unordered {
                record: record as u64,
                path: names[input].clone(),
                offset: before.iter().map(Vec::len).sum::<usize>() as u64,
                text: self.records[record].clone(),
            }
        });
        let is_summed = kind.name == benchmark().name;
        let summary = is_summed.then(|| match (self.records.first(), self.records.last()) {
            (Some(first), Some(last)) => Summary {
                first_unordered: unordered.first().map_or(0, |&number| number as u128),
                unordered_count: unordered.len() as u128,
                record_count: self.records.len() as u128,
                duplicate_count: duplicates as u128,
                checksum,
                first: field(first, 0),
                last: field(last, 0),
            },
            _ => Summary::EMPTY,
        });
        Checked {
            fingerprint,
            checksum,
            duplicates: duplicates as u64,
            unordered: unordered.len() as u64,
            first_unordered,
            summary,
        }
    }
}

fn names(folder: &Path, count: usize) -> Vec<PathBuf> {
    (0..count)
        .map(|number| folder.join(format!("in-{number}")))
        .collect()
}

fn job(kind: &Kind, names: &[PathBuf], threads: usize) -> Check {
    let input = |name: &PathBuf| match name.as_os_str() == "-" {
        true => Input::Stdin,
        false => Input::Path(name.clone()),
    };
    Check {
        keys: kind.keys.clone(),
        threads: Some(threads),
        fingerprint_key: FINGERPRINT_KEY,
        ..Check::new(names.iter().map(input).collect(), kind.format)
    }
}

// Against the model.

/// On the simulated machine, in chunks of 4 KiB. One of the inputs may be standard input, and the last line
/// of an input may lack its newline.
fn check_simulated(kind: &Kind, random: &mut Random, data: &Data) {
    let sim = Sim::new(random.next());
    let mut names = names(Path::new("/"), data.inputs.len());
    let stream = random.below(2 * names.len());
    for (input, name) in names.iter_mut().enumerate() {
        let mut bytes = data.bytes(input);
        // A line of no bytes without its newline is none.
        let may_lack = kind.format == Format::Lines && bytes.len() > 1 && !bytes.ends_with(b"\n\n");
        if may_lack && random.below(2) == 0 {
            bytes.pop();
        }
        if input == stream {
            sim.put_stdin(&bytes);
            *name = "-".into();
        } else {
            sim.put(&name, &bytes);
        }
    }
    let expected = data.expected(kind, &names);
    let job = Check {
        chunk_bytes: Some(4096),
        ..job(kind, &names, 1 + 2 * random.below(2))
    };
    assert_eq!(
        check(&job, &sim, &Stop::new()).unwrap(),
        expected,
        "{}",
        kind.name
    );
}

#[test]
fn disorder_is_found_wherever_it_is() {
    let mut random = Random::new("disorder_is_found_wherever_it_is");
    for kind in kinds() {
        for round in 0..12 {
            let bytes = random.below(200_000);
            let key_count = [2, 50, 1_000_000][random.below(3)];
            let mut data = Data::new(&kind, &mut random, bytes, key_count);
            let input_count = 1 + random.below(5);
            data.divide(&mut random, input_count);
            let mut places = data.edges(4096);
            match round {
                // Nothing, anything, each edge, one edge, two records.
                0 => places.clear(),
                1 => places = (0..data.records.len()).collect(),
                2 | 3 => {}
                4..=7 if !places.is_empty() => places = vec![places[random.below(places.len())]],
                _ => places = vec![random.below(data.records.len().max(1)); 2],
            }
            if !data.records.is_empty() {
                data.plant(&mut random, &places);
            }
            check_simulated(&kind, &mut random, &data);
        }
    }
}

#[test]
fn a_single_pair_out_of_order_is_found_at_every_place() {
    let mut random = Random::new("a_single_pair_out_of_order_is_found_at_every_place");
    let kind = benchmark();
    let mut data = Data::new(&kind, &mut random, 20_000, 1 << 40);
    data.divide(&mut random, 3);
    for place in 1..data.records.len() {
        data.records.swap(place - 1, place);
        check_simulated(&kind, &mut random, &data);
        data.records.swap(place - 1, place);
    }
}

fn hosts() -> Vec<Host> {
    let uring =
        Host::new(RingKind::Uring, true).inspect_err(|error| println!("no io_uring here: {error}"));
    let posix = Host::new(RingKind::Posix, true).unwrap();
    let cached = Host::new(RingKind::Auto, false).unwrap();
    uring.into_iter().chain([posix, cached]).collect()
}

/// On this machine, in the chunks of everyday, with either ring.
#[test]
fn real_files_in_real_chunks() {
    let mut random = Random::new("real_files_in_real_chunks");
    let scratch = Scratch::new("check-real");
    for kind in [benchmark(), lines()] {
        let mut data = Data::new(&kind, &mut random, 10_000_000, 300_000);
        for inputs in [1, 3] {
            data.divide(&mut random, inputs);
            let places = data.edges(4 << 20);
            assert!(places.len() >= 5, "edges of chunks are among them");
            data.plant(&mut random, &places);
            let names = names(&scratch.path(""), inputs);
            for (input, name) in names.iter().enumerate() {
                std::fs::write(name, data.bytes(input)).unwrap();
            }
            let expected = data.expected(&kind, &names);
            assert!(expected.unordered > 0);
            for host in hosts() {
                for threads in [1, 3] {
                    let found = check(&job(&kind, &names, threads), &host, &Stop::new());
                    assert_eq!(found.unwrap(), expected, "{} {}", kind.name, host.name());
                }
            }
        }
    }
}

#[test]
fn checksums_are_the_references() {
    let sums = [
        (Alphabet::Binary, false, [0x55fea8a1a, 0xc3068574c6ff]),
        (Alphabet::Ascii, false, [0x469302dca, 0xc34e19c81885]),
        (Alphabet::Binary, true, [0x5d95519b3, 0xc3480c053dda]),
        (Alphabet::Ascii, true, [0x46073c01c, 0xc30e6c1fe3e5]),
    ];
    for (alphabet, skew, sums) in sums {
        for (count, sum) in [10, 100_000].into_iter().zip(sums) {
            let sim = Sim::new(count);
            let mut bytes = vec![0; count as usize * 100];
            Records { alphabet, skew }.fill(0, &mut bytes);
            sim.put("/in", &bytes);
            let job = job(&benchmark(), &["/in".into()], 2);
            let found = check(&job, &sim, &Stop::new()).unwrap();
            assert_eq!(found.checksum, sum, "{alphabet:?} {skew} {count}");
            assert_eq!(found.fingerprint.records, count);
            // Each line of text has 100 bytes as well.
            let lines = Check::new(job.inputs, Format::Lines);
            let by_line = check(&lines, &sim, &Stop::new()).unwrap();
            assert_eq!(by_line.checksum == sum, alphabet == Alphabet::Ascii);
        }
    }
}

#[test]
fn nothing_is_in_order() {
    let sim = Sim::new(1);
    sim.put("/empty", b"");
    sim.put_stdin(b"");
    let names: [PathBuf; 3] = ["/empty".into(), "-".into(), "/empty".into()];
    for kind in kinds() {
        let found = check(&job(&kind, &names, 2), &sim, &Stop::new()).unwrap();
        assert_eq!(found.fingerprint, Fingerprint::default());
        assert_eq!(
            (found.unordered, found.duplicates, found.first_unordered),
            (0, 0, None)
        );
    }
}

// Summaries.

#[test]
fn summaries_of_files_add_up_to_that_of_the_whole() {
    let mut random = Random::new("summaries_of_files_add_up_to_that_of_the_whole");
    let kind = benchmark();
    for round in 0..10 {
        let sim = Sim::new(random.next());
        let mut data = Data::new(&kind, &mut random, 60_000, 500);
        data.divide(&mut random, 4);
        let places = data.edges(4096);
        data.plant(&mut random, &places[..if round == 0 { 0 } else { round }]);
        let names = names(Path::new("/"), 4);
        for (input, name) in names.iter().enumerate() {
            sim.put(name, &data.bytes(input));
            let part = check(
                &job(&kind, std::slice::from_ref(name), 2),
                &sim,
                &Stop::new(),
            )
            .unwrap();
            let out = name.with_extension("summary");
            write_summary(&part.summary.unwrap(), &out, &sim, &Stop::new()).unwrap();
        }
        let whole = check(&job(&kind, &names, 2), &sim, &Stop::new()).unwrap();
        assert_eq!(whole, data.expected(&kind, &names));

        let summaries: Vec<PathBuf> = names
            .iter()
            .map(|name| name.with_extension("summary"))
            .collect();
        let inputs: Vec<Input> = summaries.iter().cloned().map(Input::Path).collect();
        let merged = merge(&inputs, &sim, &Stop::new()).unwrap();
        assert_eq!(Some(&merged), whole.summary.as_ref());

        // Behind each other in a stream they are the same.
        let bytes: Vec<Vec<u8>> = summaries
            .iter()
            .map(|path| sim.get(path).unwrap())
            .collect();
        assert!(bytes.iter().all(|bytes| bytes.len() == 280));
        sim.put_stdin(&bytes.concat());
        let merged = merge(&[Input::Stdin], &sim, &Stop::new()).unwrap();
        assert_eq!(Some(merged), whole.summary);
    }
}

#[test]
fn many_summaries_in_one_file() {
    let sim = Sim::new(3);
    let record = |number: u8| [number; 100];
    let one = |number: u8| Summary {
        record_count: 1,
        checksum: 5,
        first: record(number),
        last: record(number),
        ..Summary::EMPTY
    };
    let rows: Vec<u8> = (0..1000u32)
        .flat_map(|number| one((number / 4) as u8).to_bytes())
        .collect();
    sim.put("/rows", &rows);
    let merged = merge(&[Input::Path("/rows".into())], &sim, &Stop::new()).unwrap();
    let found = (
        merged.record_count,
        merged.checksum,
        merged.duplicate_count,
        merged.unordered_count,
    );
    assert_eq!(found, (1000, 5000, 750, 0));
}

#[test]
fn what_is_no_summary_is_refused() {
    let sim = Sim::new(3);
    let sound = Summary::EMPTY.to_bytes();
    let forged = Summary {
        unordered_count: 5,
        record_count: 9,
        ..Summary::EMPTY
    };
    for (bytes, offset, word) in [
        (sound[..279].to_vec(), 0, "279 of 280"),
        ([&sound[..], &sound, b"x"].concat(), 560, "1 of 280"),
        ([sound, forged.to_bytes()].concat(), 280, "contradict"),
    ] {
        sim.put("/rows", &bytes);
        let error = merge(&[Input::Path("/rows".into())], &sim, &Stop::new()).unwrap_err();
        assert_eq!((error.kind, error.offset), (ErrorKind::Input, Some(offset)));
        assert!(error.to_string().contains(word), "{error}");
    }
    let error = merge(&[Input::Path("/none".into())], &sim, &Stop::new()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Input);
}

#[test]
fn a_summary_is_written_whole_or_not_at_all() {
    let summary = Summary::EMPTY;
    for at in 0.. {
        let sim = Sim::new(at);
        sim.put("/summary", b"old");
        sim.set_fault(Some(Fault {
            at,
            for_good: false,
            kind: FaultKind::Error(28),
        }));
        let result = write_summary(&summary, Path::new("/summary"), &sim, &Stop::new());
        assert_eq!(result.is_err(), sim.fault_hit());
        assert_eq!(sim.names().len(), 1, "{:?}", sim.names());
        let found = sim.get("/summary").unwrap();
        match result {
            Ok(()) => {
                assert_eq!(found, summary.to_bytes());
                break;
            }
            Err(error) if error.doing.contains("last") => assert_eq!(found, summary.to_bytes()),
            Err(_) => assert_eq!(found, b"old"),
        }
    }
}

#[test]
fn a_check_may_end_at_the_first_record_out_of_order() {
    let mut random = Random::new("a_check_may_end_at_the_first_record_out_of_order");
    for round in 0..30 {
        let count = random.below(3000) + 2;
        let wrong = random.below(count - 1) + 1;
        let mut wanted = Vec::new();
        let mut bytes = Vec::new();
        for number in 0..count {
            let line = match number == wrong {
                true => format!("!low {number}\n"),
                false => format!("{number:09} {}\n", "x".repeat(number % 50)),
            };
            if number == wrong {
                wanted = line.clone().into_bytes();
            }
            bytes.extend(line.bytes());
        }
        // What is behind it is long, and in order again or not.
        bytes.extend(b"a\n".repeat(100_000));
        let sim = Sim::new(round);
        sim.put_stdin(&bytes);
        let job = Check {
            first_only: true,
            chunk_bytes: Some(8192),
            ..job(&lines(), &["-".into()], 1 + random.below(4))
        };
        let stop = Stop::new();
        let found = check(&job, &sim, &stop).unwrap().first_unordered.unwrap();
        assert_eq!((found.record, found.text), (wrong as u64, wanted));
    }
}

// What goes wrong.

#[test]
fn bad_inputs_are_errors_that_name_the_place() {
    let sim = Sim::new(1);
    sim.put("/good", &[7; 1000]);
    sim.put("/cut", &[7; 1042]);
    for (path, offset, word) in [
        ("/cut", Some(1000), "42 of 100 bytes"),
        ("/missing", None, "opening"),
    ] {
        let names = ["/good".into(), path.into()];
        let error = check(&job(&benchmark(), &names, 2), &sim, &Stop::new()).unwrap_err();
        assert_eq!((error.kind, error.offset), (ErrorKind::Input, offset));
        assert_eq!(error.path.as_deref(), Some(Path::new(path)));
        assert!(error.to_string().contains(word), "{error}");
        assert!(!error.to_string().contains("--skip-bad"), "{error}");
    }
    let unsuitable = Check {
        keys: vec![KeyPart::plain(95, 10)],
        ..job(&benchmark(), &["/good".into()], 1)
    };
    let error = check(&unsuitable, &sim, &Stop::new()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Usage);
}

#[test]
fn every_fault_is_told_and_none_is_invented() {
    let mut random = Random::new("every_fault_is_told_and_none_is_invented");
    let kind = lines();
    let data = Data::new(&kind, &mut random, 100_000, 1000);
    for kind_of_fault in [FaultKind::Error(5), FaultKind::Flip] {
        for at in 0.. {
            let sim = Sim::new(random.next());
            sim.put("/a", &data.bytes(0));
            sim.put_stdin(&data.bytes(0));
            let names: [PathBuf; 2] = ["/a".into(), "-".into()];
            sim.set_fault(Some(Fault {
                at,
                for_good: false,
                kind: kind_of_fault,
            }));
            let job = Check {
                chunk_bytes: Some(8192),
                ..job(&kind, &names, 3)
            };
            let result = check(&job, &sim, &Stop::new());
            if at > sim.operation_count() {
                break;
            }
            match (kind_of_fault, result) {
                (FaultKind::Error(_), result) => {
                    let hit = sim.fault_hit();
                    assert_eq!(result.is_err(), hit, "operation {at}");
                }
                // A flipped bit is another file, but not another number of bytes.
                (_, Ok(found)) => {
                    assert_eq!(found.fingerprint.bytes, 2 * data.bytes(0).len() as u64)
                }
                (_, Err(error)) => panic!("operation {at}: {error}"),
            }
        }
    }
}

#[test]
fn a_check_that_is_told_to_stop_does() {
    let sim = Sim::new(1);
    sim.put("/in", &[7; 100_000]);
    let stop = Stop::new();
    stop.interrupt();
    let error = check(&job(&benchmark(), &["/in".into()], 2), &sim, &stop).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Interrupted);
}

/// A small source of random numbers (splitmix64) that names its seed; set `SEED` to have a run again.
struct Random(u64);

impl Random {
    fn new(test: &str) -> Self {
        use std::hash::BuildHasher;
        let seed = match std::env::var("SEED") {
            Ok(seed) => seed.parse().expect("SEED is a decimal number of 64 bits"),
            Err(_) => std::hash::RandomState::new().hash_one(0),
        };
        println!("{test}: SEED={seed}");
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}
