//! Each kind of line takes the bytes that it was measured with, wherever it is written.

use sortmill::generate::Amount;
use sortmill::generate::clicks::Clicks;
use sortmill::generate::csv::Csv;
use sortmill::generate::data::Data;
use sortmill::generate::graph::{Degrees, Format, Graph, PowerLaw, Shape};
use sortmill::generate::json::{Json, Shares};
use sortmill::generate::numbers::Numbers;
use sortmill::generate::words::{Text, Vocabulary};

fn kinds(seed: u64) -> Vec<(&'static str, Box<dyn Data>)> {
    let shares = |missing, null, escaped| Shares {
        missing,
        null,
        escaped,
    };
    let clicks = |users, rate| {
        Box::new(Clicks::new(seed, users, 1.0, rate, Amount::Records(10_000)).unwrap())
    };
    let graph = |degrees, format, vertices| {
        let shape = Shape {
            degrees,
            dangling: 0.3,
            format,
        };
        Box::new(Graph::new(seed, &shape, vertices).unwrap())
    };
    let law = Degrees::PowerLaw(PowerLaw::new(7.0, 3, 50).unwrap());
    vec![
        (
            "text",
            Box::new(Text::new(seed, 5, Vocabulary::new(seed, 100, 1.0))),
        ),
        ("numbers", Box::new(Numbers::new(seed))),
        ("csv", Box::new(Csv::new(seed))),
        ("json", Box::new(Json::new(seed, shares(0.1, 0.1, 0.1)))),
        (
            "json in full",
            Box::new(Json::new(seed, shares(0.0, 0.0, 1.0))),
        ),
        (
            "json without",
            Box::new(Json::new(seed, shares(1.0, 1.0, 1.0))),
        ),
        ("clicks", clicks(7, 1)),
        ("clicks of many", clicks(12_345, 1_000_000)),
        (
            "uniform graph",
            graph(Degrees::Uniform(2.5), Format::Lines, 10_001),
        ),
        ("graph by a law", graph(law.clone(), Format::Lines, 3_000)),
        ("fixed graph", graph(law, Format::Fixed, 3_000)),
    ]
}

/// A line is written into just the room that the longest takes, and beside bytes that are not its own.
#[test]
fn lines_are_as_long_as_they_were_measured() {
    for seed in [1, 2] {
        for (name, data) in kinds(seed) {
            let most = data.record_bytes_max();
            for number in 0..3_000 {
                let mut whole = vec![0xFF; most];
                let bytes = data.write(number, &mut whole);
                assert_eq!(data.record_bytes(number), bytes as u64, "{name}, {number}");
                assert_eq!(
                    data.record_bytes_fixed().unwrap_or(bytes as u64),
                    bytes as u64
                );
                let line = &whole[..bytes];
                assert!(
                    name == "fixed graph" || line[bytes - 1] == b'\n',
                    "{name}, {number}"
                );
                let mut rest = vec![0; 40];
                let from = bytes / 2;
                let rest_bytes = data.part(number, from as u64, &mut rest);
                assert_eq!(rest_bytes, (bytes - from).min(40), "{name}, {number}");
                assert!(
                    line[from..].starts_with(&rest[..rest_bytes]),
                    "{name}, {number}"
                );
            }
        }
    }
}
