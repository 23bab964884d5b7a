//! Input that is in order, almost in order, or only seems to be: the same bytes as a stable sort makes, one pass where
//! it is, and never more than two.

use sortmill::job::Tuning;
use sortmill::order::KeyPart;
use sortmill::report::{Order, Report};

use super::inputs::{Random, seed};
use super::{Case, MACHINES, Machine};

const RECORD_BYTES: u32 = 24;

/// How the keys of an input follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Sorted,
    Reversed,
    OrganPipe,
    Valley,
    /// So many sorted blocks, each over the whole range.
    Blocks(usize),
    /// The same, but falling.
    FallingBlocks(usize),
    /// The last record is the lowest.
    ButLast,
    /// The first record is the highest.
    ButFirst,
    /// One record in so many belongs elsewhere.
    Strays(usize),
    /// So many records in a row, somewhere, are in no order.
    Hidden(usize),
    /// Sorted, with so many different keys.
    Distinct(usize),
    /// So many sorted blocks of 100 different keys.
    DistinctBlocks(usize),
    /// Falling, with so many different keys.
    FallingDistinct(usize),
    /// Few keys, and one record in so many belongs elsewhere.
    DistinctStrays(usize),
    /// Sorted for two thirds, then in no order.
    ThenRandom,
}

fn keys(kind: Kind, count: usize, random: &mut Random) -> Vec<u64> {
    let spread = |at: usize| at as u64 * 1_000 + 7;
    let rising = || (0..count).map(spread).collect::<Vec<u64>>();
    let blocks = |blocks: usize| {
        let each = count.div_ceil(blocks);
        (0..count).map(move |at| spread(at % each * blocks + at / each))
    };
    let mut strays = |mut keys: Vec<u64>, every: usize| {
        let highest = *keys.iter().max().unwrap();
        for _ in 0..count / every {
            let at = random.below(count);
            keys[at] = random.next() % highest;
        }
        keys
    };
    match kind {
        Kind::Sorted => rising(),
        Kind::Reversed => (0..count).rev().map(spread).collect(),
        Kind::OrganPipe => (0..count)
            .map(|at| spread(at.min(count - at) * 2))
            .collect(),
        Kind::Valley => {
            let from_middle = |at: usize| at.abs_diff(count / 2) * 2;
            (0..count).map(|at| spread(from_middle(at))).collect()
        }
        Kind::Blocks(number) => blocks(number).collect(),
        Kind::FallingBlocks(number) => blocks(number).map(|key| spread(count) - key).collect(),
        Kind::ButLast => {
            let mut keys = rising();
            keys[count - 1] = 1;
            keys
        }
        Kind::ButFirst => {
            let mut keys = rising();
            keys[0] = u64::MAX;
            keys
        }
        Kind::Strays(every) => strays(rising(), every),
        Kind::Hidden(length) => {
            let mut keys = rising();
            let from = count / 2;
            keys[from..from + length].fill_with(|| random.next() % spread(count));
            keys
        }
        Kind::Distinct(number) => (0..count).map(|at| (at * number / count) as u64).collect(),
        Kind::DistinctBlocks(number) => blocks(number)
            .map(|key| key * 100 / spread(count))
            .collect(),
        Kind::FallingDistinct(number) => (0..count)
            .map(|at| (number - at * number / count) as u64)
            .collect(),
        Kind::DistinctStrays(every) => strays(
            (0..count).map(|at| (at * 50 / count) as u64).collect(),
            every,
        ),
        Kind::ThenRandom => {
            let mut keys = rising();
            let highest = spread(count);
            keys[count * 2 / 3..].fill_with(|| random.next() % highest);
            keys
        }
    }
}

/// Records of a key and their number, so that equal keys tell whether they kept their order.
fn fixed(keys: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(keys.len() * RECORD_BYTES as usize);
    for (number, key) in keys.iter().enumerate() {
        bytes.extend(key.to_be_bytes());
        bytes.extend((number as u64).to_be_bytes());
        bytes.extend([b'.'; RECORD_BYTES as usize - 16]);
    }
    bytes
}

/// Lines of a key and a tail of any length; equal lines are equal throughout.
fn lines(keys: &[u64], random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for key in keys {
        let line = format!("{key:016x} {:width$}\n", "", width = random.below(30));
        bytes.extend(line.bytes());
    }
    bytes
}

fn fixed_case(kind: Kind, count: usize, random: &mut Random) -> Case {
    let input = fixed(&keys(kind, count, random));
    Case::fixed(RECORD_BYTES, &[KeyPart::plain(0, 8)], vec![input])
}

fn order(report: &Report, what: &str) -> Order {
    report
        .order
        .unwrap_or_else(|| panic!("{what}: no order was found: {report:#?}"))
}

const IN_ORDER: [Kind; 11] = [
    Kind::Sorted,
    Kind::Reversed,
    Kind::OrganPipe,
    Kind::Valley,
    Kind::Blocks(2),
    Kind::FallingBlocks(2),
    Kind::ButFirst,
    Kind::Distinct(1),
    Kind::Distinct(100),
    Kind::DistinctBlocks(2),
    Kind::FallingDistinct(100),
];

const ALMOST: [Kind; 8] = [
    Kind::ButLast,
    Kind::Strays(2_000),
    Kind::Strays(20_000),
    Kind::Hidden(30),
    Kind::Hidden(1_000),
    Kind::DistinctStrays(2_000),
    Kind::DistinctStrays(50_000),
    Kind::ThenRandom,
];

#[test]
fn what_is_in_order_takes_one_pass() {
    let mut random = Random::new(seed("what_is_in_order_takes_one_pass"));
    for kind in IN_ORDER {
        let case = Case {
            memory_bytes: 2 << 20,
            ..fixed_case(kind, 300_000, &mut random)
        };
        for machine in [Machine::Sim, Machine::Posix, Machine::Uring] {
            let what = format!("{kind:?}");
            let report = case.check(machine, &what);
            let order = order(&report, &what);
            println!("{what}: {order:?} {:?}", report.partitions);
            assert!(order.is_one_pass, "{what}: {order:?} {:?}", report.bytes);
            assert_eq!(report.bytes.temp_written, 0, "{what}");
            assert!(
                order.early_bytes > 0 && order.rounds > 2,
                "{what}: {order:?}"
            );
        }
    }
}

#[test]
fn what_is_almost_in_order_is_mended() {
    let mut random = Random::new(seed("what_is_almost_in_order_is_mended"));
    let mut late = 0;
    for kind in ALMOST {
        let case = Case {
            memory_bytes: 2 << 20,
            ..fixed_case(kind, 300_000, &mut random)
        };
        for machine in [Machine::Sim, Machine::Posix, Machine::Uring] {
            let what = format!("{kind:?}");
            let report = case.check(machine, &what);
            println!("{what}: {:?}", report.order);
            late += report.order.map_or(0, |order| order.late_bytes);
        }
    }
    assert!(late > 0, "something was late");
}

/// Every kind, as lines and as records, in several files and one, in several memories, with 1 to 4 threads.
#[test]
fn any_order_comes_out_the_same() {
    let mut random = Random::new(seed("any_order_comes_out_the_same"));
    for kind in IN_ORDER.into_iter().chain(ALMOST) {
        let keys = keys(kind, 80_000, &mut random);
        for (number, memory_bytes) in [1 << 20, 1_500_000, 2 << 20].into_iter().enumerate() {
            let threads = [1, 2, 4][random.below(3)];
            let machine = MACHINES[random.below(4)];
            let file_count = [1, 1, 3][random.below(3)];
            let mut inputs = Vec::new();
            let is_lines = number != 1;
            for part in keys.chunks(keys.len() / file_count + 1) {
                let mut input = match is_lines {
                    true => lines(part, &mut random),
                    false => fixed(part),
                };
                if is_lines && random.below(2) == 0 {
                    input.pop();
                }
                inputs.push(input);
            }
            let case = match is_lines {
                true => Case::lines(inputs),
                false => Case::fixed(RECORD_BYTES, &[KeyPart::plain(0, 8)], inputs),
            };
            let case = Case {
                memory_bytes,
                threads,
                temp_apart: random.below(2) == 0,
                ..case
            };
            let what =
                format!("{kind:?} {memory_bytes} bytes, {threads} threads, {file_count} files");
            let report = case.check(machine, &what);
            println!("{what}: {:?}", report.order);
        }
    }
}

/// Lines longer than the room in front of a chunk, and than a chunk, which none of its neighbours holds whole.
#[test]
fn long_lines_in_order() {
    let mut random = Random::new(seed("long_lines_in_order"));
    for kind in [Kind::Sorted, Kind::Reversed, Kind::ButLast, Kind::Blocks(2)] {
        let mut input = Vec::new();
        for key in keys(kind, 60_000, &mut random) {
            let width = match random.below(3_000) {
                0 => random.below(18_000),
                1..10 => random.below(6_000),
                _ => random.below(30),
            };
            input.extend(format!("{key:016x} {:width$}\n", "").bytes());
        }
        for threads in [1, 3] {
            let case = Case {
                memory_bytes: 2 << 20,
                threads,
                ..Case::lines(vec![input.clone()])
            };
            let report = case.check(Machine::Sim, &format!("{kind:?}, long lines"));
            println!("{kind:?}: {:?}", report.order);
        }
    }
}

#[test]
fn sorted_files_are_pieces_or_one() {
    let mut random = Random::new(seed("sorted_files_are_pieces_or_one"));
    for (kind, pieces) in [(Kind::Sorted, 1), (Kind::Blocks(3), 3), (Kind::Reversed, 1)] {
        let keys = keys(kind, 300_000, &mut random);
        let inputs = keys.chunks(100_000).map(fixed).collect();
        let case = Case {
            memory_bytes: 2 << 20,
            ..Case::fixed(RECORD_BYTES, &[KeyPart::plain(0, 8)], inputs)
        };
        let report = case.check(Machine::Posix, "sorted files");
        let order = order(&report, "sorted files");
        assert_eq!(order.pieces, pieces, "{order:?}");
        assert!(order.is_one_pass, "{order:?}");
    }
}

#[test]
fn no_order_is_found_where_there_is_none() {
    let mut random = Random::new(seed("no_order_is_found_where_there_is_none"));
    let keys: Vec<u64> = (0..300_000).map(|_| random.next()).collect();
    let case = Case {
        memory_bytes: 2 << 20,
        ..Case::fixed(RECORD_BYTES, &[KeyPart::plain(0, 8)], vec![fixed(&keys)])
    };
    let report = case.check(Machine::Posix, "random");
    assert!(report.order.is_none() && report.plan.looks_for_order);
}

/// The bytes moved, in real sizes: one pass for what is in order, two for anything else.
#[test]
fn order_costs_one_pass_and_disorder_two() {
    let mut random = Random::new(seed("order_costs_one_pass_and_disorder_two"));
    const COUNT: usize = 9_000_000;
    for (kind, passes) in [
        (Kind::Sorted, 1),
        (Kind::Reversed, 1),
        (Kind::ButLast, 2),
        (Kind::Strays(100_000), 2),
        (Kind::Hidden(5_000), 2),
        (Kind::ThenRandom, 2),
    ] {
        let case = Case {
            memory_bytes: 96 << 20,
            tuning: Tuning::default(),
            ..fixed_case(kind, COUNT, &mut random)
        };
        let report = case.check(Machine::Uring, &format!("{kind:?}"));
        let bytes = &report.bytes;
        let over = bytes.moved() as f64 / (2 * passes * bytes.input) as f64;
        println!("{kind:?}: {over:.4} of {passes} passes; {:?}", report.order);
        assert!(over <= 1.03, "{kind:?}: {over} {bytes:?}");
    }
}
