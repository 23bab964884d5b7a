//! Graphs: each edge is counted, and in-degrees are held against a law worked out here.

use std::collections::HashSet;

use super::{output, program, refused, words};

/// Source and target of each edge, from lines that all have numbers of so many digits.
fn edges(line: &str, digits: usize) -> Vec<(usize, usize)> {
    let text = String::from_utf8(output(line)).unwrap();
    text.lines()
        .map(|edge| {
            let (source, target) = edge.split_once('\t').unwrap();
            assert_eq!((source.len(), target.len()), (digits, digits), "{edge}");
            (source.parse().unwrap(), target.parse().unwrap())
        })
        .collect()
}

fn fixed_edges(line: &str) -> Vec<(usize, usize)> {
    let bytes = output(line);
    let (edges, rest) = bytes.as_chunks::<16>();
    assert!(rest.is_empty(), "{line}");
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap()) as usize;
    edges
        .iter()
        .map(|edge| (number(&edge[..8]), number(&edge[8..])))
        .collect()
}

/// How many edges begin in each vertex, and how many end there.
fn degrees(edges: &[(usize, usize)], vertices: usize) -> (Vec<u64>, Vec<u64>) {
    let (mut from, mut to) = (vec![0; vertices], vec![0; vertices]);
    for &(source, target) in edges {
        from[source] += 1;
        to[target] += 1;
    }
    (from, to)
}

/// Out-degrees differ by one at most, but for the vertices without any, which lie all over the range.
fn check_sources(edges: &[(usize, usize)], out_degrees: &[u64], dangling: usize) {
    let vertices = out_degrees.len();
    let without: Vec<usize> = (0..vertices)
        .filter(|&vertex| out_degrees[vertex] == 0)
        .collect();
    assert_eq!(without.len(), dangling);
    let sources = vertices - dangling;
    let each = (edges.len() / sources) as u64;
    let allowed = [
        0,
        each,
        each + u64::from(!edges.len().is_multiple_of(sources)),
    ];
    assert!(out_degrees.iter().all(|degree| allowed.contains(degree)));
    for (number, vertex) in without.iter().enumerate() {
        let even = (number + 1) * vertices / dangling;
        assert!(vertex.abs_diff(even) <= vertices / dangling, "{without:?}");
    }
    // Each takes its turn, in an order that another turn does not have.
    let turn = |number: usize| &edges[number * sources..][..sources];
    for number in 0..2 {
        let taking: HashSet<usize> = turn(number).iter().map(|(source, _)| *source).collect();
        assert_eq!(taking.len(), sources);
    }
    let ahead = turn(0).iter().zip(turn(1));
    let same = ahead.filter(|(one, other)| one.0 == other.0).count();
    assert!(same < 12, "{same} of {sources} in the same place");
}

#[test]
fn a_uniform_graph_is_uniform() {
    let edges = edges("graph --degree 20 2000 -", 4);
    assert_eq!(edges.len(), 40_000);
    let (out_degrees, in_degrees) = degrees(&edges, 2_000);
    check_sources(&edges, &out_degrees, 20);
    // Of a binomial law mean and variance are nearly the same; five deviations of the variance.
    let variance = in_degrees
        .iter()
        .map(|&degree| (degree as f64 - 20.0).powi(2))
        .sum::<f64>()
        / 2_000.0;
    assert!((16.8..23.2).contains(&variance), "{variance}");
    check_independent(&edges, 2_000);
}

/// Which source, which target and which place in the file have nothing to do with each other: all cells of
/// four by four by four quarters are equally full.
fn check_independent(edges: &[(usize, usize)], vertices: usize) {
    let mut cells = [0_u32; 64];
    let quarter = |value: usize, count: usize| value * 4 / count;
    for (place, &(source, target)) in edges.iter().enumerate() {
        let cell = [
            quarter(place, edges.len()),
            quarter(source, vertices),
            quarter(target, vertices),
        ];
        cells[cell[0] * 16 + cell[1] * 4 + cell[2]] += 1;
    }
    let mean = edges.len() as f64 / 64.0;
    let off = cells.map(|count| (f64::from(count) - mean).abs() / mean.sqrt());
    assert!(off.iter().all(|off| *off < 6.0), "{cells:?}");
}

/// Of `vertices` those with an in-degree of at most each from `least` to `most`, by the law with this mean,
/// whose exponent is looked for in small steps.
fn law(vertices: usize, least: usize, most: usize, mean: f64) -> Vec<f64> {
    let weights = |exponent: f64| -> Vec<f64> {
        (least..=most)
            .map(|degree| (degree as f64).powf(-exponent))
            .collect()
    };
    let mean_of = |weights: &[f64]| {
        let degrees = (least..=most).map(|degree| degree as f64);
        let sum: f64 = degrees
            .zip(weights)
            .map(|(degree, weight)| degree * weight)
            .sum();
        sum / weights.iter().sum::<f64>()
    };
    let (mut exponent, mut step) = (0.0, 1.0);
    while step > 1e-12 {
        match mean_of(&weights(exponent + step)) > mean {
            true => exponent += step,
            false => step /= 2.0,
        }
    }
    let weights = weights(exponent);
    let total: f64 = weights.iter().sum();
    let mut so_far = 0.0;
    weights
        .iter()
        .map(|weight| {
            so_far += weight / total;
            so_far * vertices as f64
        })
        .collect()
}

#[test]
fn in_degrees_keep_a_power_law() {
    let cases = [
        (
            "--degree-min 10 --degree-max 1000 --degree 50 4000",
            4_000,
            10,
            1_000,
            50.0,
        ),
        (
            "--degree-min 1 --degree-max 300 --degree 4 20001",
            20_001,
            1,
            300,
            4.0,
        ),
        ("700", 700, 100, 10_000, 500.0),
    ];
    for (flags, vertices, least, most, mean) in cases {
        let edges = fixed_edges(&format!("graph --kind power-law --format fixed {flags} -"));
        let (out_degrees, in_degrees) = degrees(&edges, vertices);
        check_sources(&edges, &out_degrees, (vertices + 50) / 100);
        let mut with_degree = vec![0_u64; most + 1];
        for degree in in_degrees {
            assert!(
                (least..=most).contains(&(degree as usize)),
                "{flags}: {degree}"
            );
            with_degree[degree as usize] += 1;
        }
        let mut so_far = 0;
        for (index, expected) in law(vertices, least, most, mean).into_iter().enumerate() {
            so_far += with_degree[least + index];
            let off = (so_far as f64 - expected).abs();
            assert!(
                off < 0.51,
                "{flags}: {so_far} and {expected} up to {}",
                least + index
            );
        }
        let found = edges.len() as f64 / vertices as f64;
        assert!((found / mean - 1.0).abs() < 0.02, "{flags}: {found}");
    }
}

/// Vertices with many edges lie anywhere in the range, and their edges anywhere in the file.
#[test]
fn hubs_are_nowhere_in_particular() {
    let line = "graph --kind power-law --degree-min 10 --degree-max 1000 --degree 50 4000 -";
    let edges = edges(line, 4);
    assert_eq!(fixed_edges(&format!("{line} --format fixed")), edges);
    let (_, in_degrees) = degrees(&edges, 4_000);
    let mut hubs: Vec<usize> = (0..4_000).collect();
    hubs.sort_by_key(|&vertex| std::cmp::Reverse(in_degrees[vertex]));
    hubs.truncate(400);
    let low = hubs.iter().filter(|&&hub| hub < 2_000).count();
    assert!((150..250).contains(&low), "{low}");
    let hubs: HashSet<usize> = hubs.into_iter().collect();
    let to_hubs: Vec<usize> = (0..edges.len())
        .filter(|&at| hubs.contains(&edges[at].1))
        .collect();
    let early = to_hubs.iter().filter(|&&at| at < edges.len() / 2).count() as f64;
    let half = to_hubs.len() as f64 / 2.0;
    assert!((early - half).abs() < 5.0 * half.sqrt(), "{early}, {half}");
    let from_low = to_hubs.iter().filter(|&&at| edges[at].0 < 2_000).count() as f64;
    assert!(
        (from_low - half).abs() < 5.0 * half.sqrt(),
        "{from_low}, {half}"
    );
}

/// The largest graph that has room, and no other than the one with so many vertices.
#[test]
fn bytes_make_vertices() {
    for flags in ["", " --format fixed", " --kind power-law"] {
        for bytes in [0, 10_000, 500_000] {
            let made = program(&format!("graph{flags} --bytes {bytes} - -v"))
                .output()
                .unwrap();
            assert!(made.status.success(), "{}", words(&made));
            assert!(made.stdout.len() <= bytes, "{flags} {bytes}");
            let fits = |vertices: usize| {
                let graph = output(&format!("graph{flags} {vertices} -"));
                (graph.len() <= bytes).then_some(graph)
            };
            // Each vertex has edges of at least 100 times 4 bytes, here as everywhere.
            let (mut low, mut high) = (0, bytes / 400 + 1);
            while high - low > 1 {
                let middle = (low + high) / 2;
                match fits(middle).is_some() {
                    true => low = middle,
                    false => high = middle,
                }
            }
            assert!(fits(low).unwrap() == made.stdout, "{flags} {bytes}: {low}");
        }
    }
}

#[test]
fn small_graphs_are_whole() {
    assert_eq!(output("graph 0 -"), b"");
    assert_eq!(output("graph --degree 3 1 -"), b"0\t0\n".repeat(3));
    let edges = edges("graph --degree 1 --dangling 99 10 -", 1);
    assert_eq!(edges.len(), 10);
    assert!(edges.iter().all(|edge| edge.0 == edges[0].0));
    // A vertex of the last number, and none beyond.
    let edges = self::edges("graph --degree 4 --dangling 0 101 -", 3);
    let ends: HashSet<usize> = edges.iter().flat_map(|edge| [edge.0, edge.1]).collect();
    assert_eq!(ends.iter().max(), Some(&100));
}

#[test]
fn graphs_that_cannot_be_are_refused() {
    for (line, expected) in [
        ("graph --degree 0.5 5 -", "not between 1 and 1000000"),
        ("graph --degree-min 5 5 -", "a uniform graph has no bounds"),
        ("graph --dangling 100 5 -", "below 100"),
        (
            "graph --kind power-law --degree-max 100001 5 -",
            "not between 1 and 100000",
        ),
        (
            "graph --kind power-law --degree-max 50 5 -",
            "not from 100 to 50",
        ),
        (
            "graph --kind power-law --degree 100 5 -",
            "have a mean between 100 and 5050, not 100",
        ),
        ("graph --kind power-law --degree 6000 5 -", "not 6000"),
        ("graph 9000000000000000000 -", "2^63 bytes or more"),
        (
            "graph --kind power-law 9000000000000000000 -",
            "2^63 bytes or more",
        ),
        ("graph --kind ring 5 -", "possible values"),
    ] {
        refused(line, expected);
    }
}
