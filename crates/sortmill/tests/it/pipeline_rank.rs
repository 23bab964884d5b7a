//! The example that ranks a graph, held against ranks as they are written down: all vertices in memory, in floats.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::Scratch;
use crate::sort::inputs::{Random, seed};

#[path = "../../examples/pagerank.rs"]
#[expect(
    dead_code,
    reason = "it has a main function, and this a program of its own"
)]
mod example;

/// Ranks by the power method, until they move no more.
fn ranks(edges: &[(u64, u64)]) -> BTreeMap<u64, f64> {
    let mut targets: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for &(source, target) in edges {
        targets.entry(source).or_default().push(target);
        targets.entry(target).or_default();
    }
    let count = targets.len() as f64;
    let mut ranks: BTreeMap<u64, f64> = targets
        .keys()
        .map(|&vertex| (vertex, 1.0 / count))
        .collect();
    loop {
        let lost = targets.iter().filter(|(_, to)| to.is_empty());
        let lost: f64 = lost.map(|(vertex, _)| ranks[vertex]).sum();
        let base = (0.15 + 0.85 * lost) / count;
        let mut next: BTreeMap<u64, f64> = targets.keys().map(|&vertex| (vertex, base)).collect();
        for (vertex, to) in &targets {
            for target in to {
                *next.get_mut(target).unwrap() += 0.85 * ranks[vertex] / to.len() as f64;
            }
        }
        let moved: f64 = ranks
            .iter()
            .map(|(vertex, rank)| (next[vertex] - rank).abs())
            .sum();
        ranks = next;
        if moved < 1e-12 {
            return ranks;
        }
    }
}

/// Edges between vertices drawn by `target`, some twice, some back to their source; a tenth of the vertices have none.
fn check(test: &str, target: impl Fn(&mut Random) -> u64) {
    let mut random = Random::new(seed(test));
    let mut edges = vec![(0, 1), (0, 1), (5, 5), (1 << 40, 0)];
    for source in 0..500 {
        if source % 10 != 9 {
            let count = 1 + random.below(9);
            edges.extend((0..count).map(|_| (source, target(&mut random))));
        }
    }
    let scratch = Scratch::new(test);
    let mut text = String::new();
    for (source, target) in &edges {
        writeln!(text, "{source}\t{target}").unwrap();
    }
    std::fs::write(scratch.path("edges"), text).unwrap();
    let name = |name: &str| scratch.path(name).to_string_lossy().into_owned();
    std::fs::create_dir(scratch.path("lists")).unwrap();
    example::pagerank(&name("edges"), &name("ranks"), &scratch.path("lists"), 500).unwrap();
    let found = std::fs::read_to_string(scratch.path("ranks")).unwrap();
    let line = |line: &str| -> (u64, f64) {
        let (vertex, rank) = line.split_once('\t').unwrap();
        (vertex.parse().unwrap(), rank.parse().unwrap())
    };
    let found: Vec<(u64, f64)> = found.lines().map(line).collect();
    assert!(found.is_sorted_by(|one, next| one.1 >= next.1));
    let found: BTreeMap<u64, f64> = found.into_iter().collect();
    let wanted = ranks(&edges);
    assert!(found.keys().eq(wanted.keys()));
    for (vertex, rank) in &wanted {
        assert!(
            (found[vertex] - rank).abs() < 1e-8,
            "{vertex}: {} {rank}",
            found[vertex]
        );
    }
}

#[test]
fn ranks_of_a_uniform_graph() {
    check("ranks_of_a_uniform_graph", |random| {
        random.below(500) as u64
    });
}

#[test]
fn ranks_of_a_graph_by_a_power_law() {
    check("ranks_of_a_graph_by_a_power_law", |random| {
        let often = 1 << random.below(9);
        random.below(often) as u64
    });
}
