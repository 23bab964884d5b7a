//! The first word of a line of which fields decide, which every line costs three times: when it is distributed, when it
//! is laid out to be sorted, and when its order is proven. Lines are warm, as most are.

use sortmill::line_keys::{Compare, Ignore, KeyEnd, KeyStart, LastResort, LineKey, LineOrder};
use sortmill::order::Order;

use crate::data::hash;
use crate::timing::{Bench, Group};

/// Makes a line of a random number.
type Line = fn(u64) -> String;

/// What `sort` is given, field and comparison, and the lines it is given for.
const CASES: [(&str, u64, Compare, Line); 7] = [
    ("-n", 0, Compare::Number, |random| {
        format!("{}.{}", (random >> 40) as i32 - (1 << 23), random % 100)
    }),
    ("-t, -k2,2n", 2, Compare::Number, |random| {
        let (id, number) = (random >> 44, random >> 24 & 0xf_ffff);
        format!(
            "{id},{number},some text of a row,2026-11-22,{}",
            random % 1000
        )
    }),
    ("-g", 0, Compare::General, |random| {
        format!("{:e}", (random as i64) as f64 / 1e12)
    }),
    ("-h", 0, Compare::Human, |random| {
        let suffix = ["", "K", "M", "G"][random as usize % 4];
        format!("{}.{}{suffix}", random >> 54, random >> 32 & 7)
    }),
    ("-V", 0, Compare::Version, |random| {
        let [major, minor, patch] = [60, 56, 50].map(|shift| random >> shift & 31);
        format!("package-{major}.{minor}.{patch}.tar.gz")
    }),
    ("-M", 0, Compare::Month, |random| {
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug"];
        format!("{} {}", months[random as usize % 8], random >> 40)
    }),
    ("-f", 0, Compare::Bytes, |random| {
        format!("Name of {:x}", random)
    }),
];

/// The first word of each order.
pub fn first_words(bench: &Bench) {
    if !bench.wants("first word") {
        return;
    }
    for (name, field, compare, line) in CASES {
        let order = order(field, compare);
        let mut state = 1_u64;
        let lines: Vec<Vec<u8>> = (0..bench.size(50_000, 100))
            .map(|_| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                let line = line(state ^ (state >> 29));
                format!("{line}\n").into_bytes()
            })
            .collect();
        let bytes = lines.iter().map(Vec::len).sum();
        Group::new(format!("first word {name}"), lines.len(), bytes, lines)
            .variant("Order::word", |lines, watch| {
                watch.time(|| hash(lines.iter().map(|line| order.word(line, 0))))
            })
            .variant("of the whole key", |lines, watch| {
                let mut key = Vec::new();
                watch.time(|| {
                    hash(lines.iter().map(|line| {
                        key.clear();
                        order.key_into(line, &mut key);
                        order.word_of_key(&key, 0)
                    }))
                })
            })
            .run(bench);
    }
}

fn order(field: u64, compare: Compare) -> Order {
    let key = LineKey {
        start: KeyStart {
            field: field.max(1),
            byte: 1,
            skip_blanks: false,
        },
        end: (field > 0).then_some(KeyEnd {
            field,
            byte: 0,
            skip_blanks: false,
        }),
        compare,
        ignore: Ignore::None,
        fold: compare == Compare::Bytes,
        reversed: false,
    };
    let order = LineOrder {
        delimiter: b'\n',
        separator: (field > 0).then_some(b','),
        keys: vec![key],
        last_resort: LastResort::Line,
        unique: false,
    };
    Order::of_lines(&order).expect("fields count from 1")
}
