//! Plans, partition tables and samples as data.

use std::sync::Arc;

use sortmill::chunks::Extent;
use sortmill::disk::Figures;
use sortmill::io::codec::CODECS;
use sortmill::io::os::Machine;
use sortmill::job::{Compress, HeadFn, Input, Job, Output, Tuning};
use sortmill::order::{Format, KeyPart, Number, Order};
use sortmill::plan::{Inputs, PackedInputs, Plan};
use sortmill::sample::Sample;
use sortmill::table::{Boundary, Table};
use sortmill::yields::Yield;

use super::inputs::{Random, seed};

fn machine(random: &mut Random) -> Machine {
    Machine {
        cores: 1 + random.below(64),
        memory_bytes_available: (1 + random.below(512) as u64) << 30,
        memory_bytes_total: 1 << 40,
    }
}

/// Any job, any input, any machine: a plan or an error that says how much memory it needs, never a panic;
/// within the budget; and whole again after it was text.
#[test]
fn any_plan_keeps_its_budget_and_survives_serialisation() {
    let mut random = Random::new(seed("any_plan_keeps_its_budget_and_survives_serialisation"));
    let mut made = 0;
    for _ in 0..1_000 {
        let mut job = Job::new(vec![Input::Stdin], Output::Stdout, Format::Lines);
        if random.below(2) == 0 {
            let number = [Number::Bytes, Number::Signed][random.below(2)];
            let size = 10 + (random.next() % (1 << random.below(24))) as u32;
            job.format = Format::Fixed(size);
            job.keys = vec![KeyPart {
                number,
                ..KeyPart::plain(0, 10)
            }];
        }
        job.yields = match random.below(4) {
            0 => Yield::Shuffled(random.next()),
            1 => Yield::First(random.next() >> random.below(64)),
            _ => Yield::All,
        };
        job.memory_bytes = (random.below(8) > 0).then(|| random.next() >> (12 + random.below(52)));
        job.temps = vec!["/temp".into(); random.below(5)];
        job.threads = (random.below(2) == 0).then(|| 1 + random.below(1024));
        if random.below(3) == 0 {
            job.tuning = Tuning {
                chunk_bytes: Some(4096 << random.below(4)),
                block_bytes: Some(4096 << random.below(6)),
                partition_bytes: None,
                partition_count: (random.below(2) == 0).then(|| 1 + random.below(1000)),
                sample_count: None,
            };
        }
        if random.below(3) == 0 {
            let figures = Some(Figures {
                block_bytes_max: random.next() >> random.below(64),
                in_flight_bytes: random.next() >> random.below(64),
                measured_on: "1970-01-01".to_owned(),
                stale: false,
                rates: None,
            });
            job.disks = vec![figures; job.temps.len().max(1)];
        }
        job.decompress = random.below(2) == 0;
        job.compress = (CODECS.get(random.below(8)).copied()).map(|codec| Compress {
            codec,
            level: codec.levels().map(|(_, _, most)| most),
        });
        let mut inputs = Inputs {
            extents: match random.below(3) {
                0 => vec![Extent::Stream],
                1 => vec![],
                _ => vec![Extent::File(random.next() >> (8 + random.below(56)))],
            },
            record_bytes_mean: (random.below(2) == 0).then(|| 1.0 + random.below(10_000) as f64),
            device_count: random.below(5),
            ..Inputs::default()
        };
        if job.decompress && random.below(2) == 0 {
            inputs.packed = PackedInputs {
                count: 1 + random.below(70),
                memory_bytes: random.next() >> random.below(64),
                may_grow: random.below(2) == 0,
                guessed_bytes: (random.below(2) == 0)
                    .then(|| random.next() >> (8 + random.below(56))),
                stored_bytes: Some(random.next() >> 8),
                ..PackedInputs::default()
            };
            let packed = vec![Extent::Stream; inputs.packed.count];
            inputs.extents.extend(packed);
        }
        let machine = machine(&mut random);
        let described = format!(
            "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {inputs:?} {machine:?}",
            job.compress,
            job.format,
            job.memory_bytes,
            job.threads,
            job.tuning,
            job.temps,
            job.disks
        );
        let planned = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            Plan::new(&job, &inputs, &machine)
        }));
        let planned = planned.unwrap_or_else(|_| panic!("a plan panicked: {described}"));
        let plan = match planned {
            Ok(plan) => plan,
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("needs at least"), "{text}: {described}");
                continue;
            }
        };
        made += 1;
        let held = plan.budget.held_bytes();
        assert!(held <= plan.budget.limit_bytes, "{described}");
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    }
    println!("{made} plans");
    assert!(made > 250, "most jobs can be planned: {made}");
}

/// What a plan asks for when there is too little memory is enough.
#[test]
fn the_memory_that_is_asked_for_is_enough() {
    for threads in [1, 2, 8, 64] {
        let mut job = Job::new(vec![Input::Stdin], Output::Stdout, Format::Lines);
        job.threads = Some(threads);
        for bytes in [0, 1, 1 << 20, 10 << 20, 20 << 20, 30 << 20] {
            job.memory_bytes = Some(bytes);
            let mut random = Random::new(1);
            let machine = machine(&mut random);
            let inputs = Inputs::default();
            let Err(error) = Plan::new(&job, &inputs, &machine) else {
                continue;
            };
            let text = error.to_string();
            let (_, rest) = text.split_once("at least ").unwrap();
            let (number, rest) = rest.split_once(' ').unwrap();
            assert!(rest.starts_with("MiB"), "{text}");
            let mib: f64 = number.parse().unwrap();
            // It is shown with one decimal.
            job.memory_bytes = Some(((mib + 0.05) * f64::from(1 << 20)) as u64);
            if let Err(again) = Plan::new(&job, &inputs, &machine) {
                panic!("{text}, but given that: {again}");
            }
        }
    }
}

#[test]
fn a_hash_table_spreads_evenly_and_always_the_same_way() {
    let order = Order::new(Format::Fixed(8), &[]).unwrap();
    let (table, again) = (Table::hash(64, 5), Table::hash(64, 5));
    let other = Table::hash(64, 6);
    let mut counts = [0u64; 64];
    let mut key = Vec::new();
    let mut moved = 0;
    for number in 0..64_000u64 {
        let record = number.to_le_bytes();
        let word = order.word(&record, 0);
        let slot = table.slot(&order, &record, word, number, &mut key);
        assert_eq!(slot, again.slot(&order, &record, word, 0, &mut key));
        moved += u64::from(slot != other.slot(&order, &record, word, 0, &mut key));
        assert_eq!(table.owner(slot) as usize, slot);
        counts[slot] += 1;
    }
    // 1000 each, give or take six standard deviations.
    assert!(
        counts.iter().all(|count| (800..1200).contains(count)),
        "{counts:?}"
    );
    assert!(moved > 60_000, "another seed, another table");
    assert!(table.around(3).0.is_none() && table.around(3).1.is_none());
    let boundary = Boundary {
        key: vec![1],
        chunk: 0,
    };
    assert!(table.divide(&order, 3, boundary, (64, 65)).is_none());
}

#[test]
fn a_hash_table_keeps_equal_keys_together() {
    let order = Order::new(Format::Fixed(8), &[KeyPart::plain(2, 3)]).unwrap();
    let table = Table::hash(100, 1);
    let mut key = Vec::new();
    let mut slot = |record: &[u8; 8], chunk| {
        table.slot(&order, record, order.word(record, 0), chunk, &mut key)
    };
    let first = slot(b"abKEYcde", 0);
    assert_eq!(first, slot(b"..KEY...", 17));
}

/// A slot is where the boundaries say, for any boundaries, and after any divisions; all keys in it begin with the words
/// that are said to be alike.
#[test]
fn a_range_table_agrees_with_a_linear_search() {
    let mut random = Random::new(seed("a_range_table_agrees_with_a_linear_search"));
    let lines = Order::new(Format::Lines, &[]).unwrap();
    let fixed = Order::new(
        Format::Fixed(12),
        &[KeyPart {
            reversed: true,
            ..KeyPart::plain(1, 9)
        }],
    )
    .unwrap();
    let mut skipped = 0;
    for round in 0..60 {
        let order = if round % 2 == 0 { &lines } else { &fixed };
        let bytes_alike = [0, 7, 9][round / 2 % 3];
        let record = |random: &mut Random| -> Vec<u8> {
            let mut record: Vec<u8> = (0..12).map(|_| random.below(3) as u8).collect();
            record[..bytes_alike].fill(1);
            if order.format() == Format::Lines {
                record.truncate(bytes_alike + random.below(12 - bytes_alike));
                record.push(b'\n');
            }
            record
        };
        let mut boundaries: Vec<Boundary> = (0..random.below(30))
            .map(|_| {
                let mut key = Vec::new();
                order.key_into(&record(&mut random), &mut key);
                let chunk = random.below(4) as u64;
                Boundary { key, chunk }
            })
            .collect();
        boundaries.sort();
        boundaries.dedup();
        let mut table = Table::range(order, boundaries);
        for next in 0..6 {
            let slot = random.below(table.slot_count());
            let mut key = Vec::new();
            order.key_into(&record(&mut random), &mut key);
            let boundary = Boundary { key, chunk: 1 };
            let halves = (1000 + 2 * next, 1001 + 2 * next);
            let before = table.slot_count();
            if let Some(divided) = table.divide(order, slot, boundary, halves) {
                table = divided;
                assert_eq!(table.slot_count(), before + 1);
                assert_eq!((table.owner(slot), table.owner(slot + 1)), halves);
            }
        }
        let mut scratch = Vec::new();
        let mut words_of = vec![None; table.slot_count()];
        for _ in 0..500 {
            let record = record(&mut random);
            let chunk = random.below(5) as u64;
            let slot = table.slot(order, &record, order.word(&record, 0), chunk, &mut scratch);
            let mut key = Vec::new();
            order.key_into(&record, &mut key);
            let here = Boundary { key, chunk };
            let (from, to) = table.around(slot);
            assert!(from.is_none_or(|from| *from <= here), "{record:?} {chunk}");
            assert!(to.is_none_or(|to| here < *to), "{record:?} {chunk}");
            let depths = 0..table.words_alike(order, slot);
            skipped += depths.len();
            let words: Vec<u64> = depths.map(|depth| order.word(&record, depth)).collect();
            let mut depths = words.iter().enumerate();
            assert!(depths.all(|(depth, &word)| !order.ends_with(word, depth)));
            let before = words_of[slot].get_or_insert_with(|| words.clone());
            assert_eq!(*before, words, "{record:?} {chunk}");
        }
    }
    assert!(
        skipped > 1000,
        "keys that begin alike were drawn: {skipped}"
    );
}

#[test]
fn samples_merge_in_any_order_to_the_same_boundaries() {
    let mut random = Random::new(seed("samples_merge_in_any_order_to_the_same_boundaries"));
    let order = Order::new(Format::Fixed(4), &[KeyPart::plain(0, 2)]).unwrap();
    let records: Vec<(Vec<u8>, u64)> = (0..5000)
        .map(|_| (random.bytes(4), random.below(100) as u64))
        .collect();
    let sample = |records: &mut dyn Iterator<Item = &(Vec<u8>, u64)>| {
        let mut sample = Sample::default();
        for (record, chunk) in records {
            sample.add(&order, record, *chunk);
        }
        sample
    };
    let mut forwards = sample(&mut records.iter().take(2000));
    forwards.merge(sample(&mut records.iter().skip(2000)));
    let mut backwards = sample(&mut records.iter().skip(3000).rev());
    backwards.merge(sample(&mut records.iter().take(3000)));
    assert_eq!((forwards.len(), backwards.len()), (5000, 5000));
    let (one, other) = (
        forwards.boundaries(16, false),
        backwards.boundaries(16, false),
    );
    assert_eq!(one, other);
    assert_eq!(one.len(), 15);
    let table = Table::range(&order, one);
    let mut counts = vec![0; table.slot_count()];
    let mut key = Vec::new();
    for (record, chunk) in &records {
        counts[table.slot(&order, record, order.word(record, 0), *chunk, &mut key)] += 1;
    }
    assert!(
        counts.iter().all(|&count| (310..=315).contains(&count)),
        "{counts:?}"
    );

    // One key alone makes several partitions, unless equal keys must meet.
    for (meet, wanted) in [(false, 4), (true, 1)] {
        let mut sample = Sample::default();
        (0..100).for_each(|chunk| sample.add(&order, b"same", chunk));
        let boundaries = sample.boundaries(4, meet);
        assert_eq!(boundaries.len() + 1, wanted, "{boundaries:?}");
        assert!(
            boundaries
                .iter()
                .all(|boundary| !meet || boundary.chunk == 0)
        );
    }
    assert!(Sample::default().boundaries(8, false).is_empty());
}

/// A group that has several of them has boundaries within itself, where a function goes on from one side to the other; any other has
/// none.
#[test]
fn boundaries_lie_between_groups() {
    let order = Order::new(Format::Kv, &[]).unwrap();
    let mut sample = Sample::default();
    let mut add = |group: &str, within: u32| {
        let key = [group.as_bytes(), b"|", &within.to_be_bytes()].concat();
        let lengths = [key.len() as u32, 0].map(u32::to_le_bytes).concat();
        sample.add(&order, &[&lengths[..], &key].concat(), 7);
    };
    for at in 0..100 {
        (0..2).for_each(|group| add(&format!("a{group}"), at));
        add("large", at);
        add("large", 1000 + at);
        add("large", 2000 + at);
        add("small", at);
    }
    let head: HeadFn = Arc::new(|key| {
        let end = key.iter().position(|&byte| byte == b'|');
        end.map_or(key.len(), |end| end + 1)
    });
    let found = |sample: &mut Sample, count: usize, goes_on: bool| -> Vec<(String, bool)> {
        let found = sample.boundaries_of_groups(count, &head, goes_on);
        assert!(found.iter().all(|(boundary, _)| boundary.chunk == 0));
        let shown = |(boundary, is_large): (Boundary, bool)| {
            let (group, within) = boundary.key.split_at(head(&boundary.key));
            let within = match within {
                [] => String::new(),
                bytes => u32::from_be_bytes(bytes.try_into().unwrap()).to_string(),
            };
            (
                String::from_utf8_lossy(group).into_owned() + &within,
                is_large,
            )
        };
        found.into_iter().map(shown).collect()
    };
    let shown = |text: &str, is_large| (text.to_owned(), is_large);
    let wanted = [
        shown("a1|", false),
        shown("large|", false),
        shown("small|", false),
    ];
    assert_eq!(found(&mut sample, 6, false), wanted);
    let wanted = [
        shown("a1|", false),
        shown("large|", true),
        shown("large|1000", true),
        shown("large|2000", true),
        shown("small|", false),
    ];
    assert_eq!(found(&mut sample, 6, true), wanted);
    assert_eq!(found(&mut sample, 2, true), [shown("large|", false)]);
    // All of one key, and none at all.
    let mut same = Sample::default();
    (0..100).for_each(|chunk| same.add(&order, b"\x02\0\0\0\0\0\0\0k|", chunk));
    assert_eq!(found(&mut same, 8, true), []);
    assert_eq!(found(&mut Sample::default(), 8, true), []);
}
