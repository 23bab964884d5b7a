//! Ranks the vertices of a graph by their links, with a damping of 0.85, until ranks move no more:
//! `cargo run --release -p sortmill --example pagerank -- EDGES OUTPUT FOLDER [ROUNDS]`
//!
//! An edge is a line of source and target, two whole numbers with a tab between. Lists of targets stay in FOLDER as they are;
//! a round moves only shares of ranks, which are whole numbers of `PARTS`, so that no order changes a sum.

use sortmill::{error::Result, pipeline::*};
use std::{mem::replace, path::Path, process::exit};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [edges, output, folder, rounds @ ..] = &words[..] else {
        eprintln!("pagerank EDGES OUTPUT FOLDER [ROUNDS]");
        exit(2);
    };
    let rounds = rounds.first().and_then(|rounds| rounds.parse().ok());
    if let Err(error) = pagerank(edges, output, Path::new(folder), rounds.unwrap_or(500)) {
        eprintln!("{error}");
        exit(2);
    }
}

/// Writes each vertex and its rank, the highest first, after `rounds` rounds at most.
pub fn pagerank(edges: &str, output: &str, folder: &Path, rounds: usize) -> Result<()> {
    const PARTS: f64 = (1u64 << 62) as f64;
    let runner = Runner::new(Settings::within(512 << 20))?.in_folder(folder);
    let numbers = columns_of([("vertex", Type::U64), ("target", Type::U64)]);
    let edges = read_csv([edges], Csv::plain(b'\t'), numbers)?;
    let lists = edges.group_by(&["vertex"])?.pack("target", "targets")?;
    let lists = runner.keep(&lists, "lists")?;
    let ends = edges.unpivot(&["vertex", "target"], "vertex")?.distinct()?;
    let mut new = runner.keep(&ends.with_columns(&[("sum", lit(0u64))])?, "a")?;
    print!("{}{}", lists.report, new.report);
    // A rank is a base, the same for all, and what was sent to the vertex: nothing yet.
    let rank = |sum: &str, base: f64| col(sum) * (0.85 / PARTS) + base;
    let (mut old, count) = (new.clone(), new.report.records().1 as f64);
    let (mut before, mut base, mut moved, mut round) = (0.0, 1.0 / count, f64::min(1.0, count), 0);
    while round < rounds && moved > 1e-9 {
        let (now, then) = (rank("sum", base), rank("old", before));
        let share = (&now * PARTS / list_length("targets")).cast(Type::U64);
        let beside = runner.paste(&[&lists, &new, &old.renamed(&["vertex", "old"])])?;
        let table = beside.with_columns(&[
            ("moved", (&now - then).abs()),
            ("lost", if_else(list_length("targets").eq(0), now, 0.0)),
            ("share", if_else(list_length("targets").gt(0), share, 0u64)),
        ])?;
        let table = table.observe(&[sum("moved"), sum("lost")])?;
        let shares = table.unpack("targets", "to")?.group_by(&["to"])?;
        let sums = shares.agg(&[sum("share").named("sum")])?;
        old = replace(&mut new, runner.keep(&sums, ["b", "c", "a"][round % 3])?);
        (before, moved, round) = (base, new.report.observed.number("moved")?, round + 1);
        base = (1.0 - 0.85 + 0.85 * new.report.observed.number("lost")?) / count;
        print!("round {round}, ranks moved by {moved:e}: {}", new.report);
    }
    let ranks = runner.paste(&[&lists, &new])?;
    let ranks = ranks.with_columns(&[("rank", rank("sum", base))])?;
    let ranks = ranks.select(&["vertex", "rank"])?.sort(&[("rank", true)])?;
    print!("{}", runner.run(&ranks.write(output, Form::Text)?)?);
    Ok(())
}
