//! Ranks the vertices of a graph by their links, with a damping of 0.85, until ranks move no more:
//! `cargo run --release -p sortmill --example pagerank -- EDGES OUTPUT FOLDER [ROUNDS]`
//!
//! An edge is a line of source and target, two whole numbers with a tab between. Ranks are whole parts of `ALL`, so that no
//! order changes a sum. Lists of targets stay in FOLDER as they are; a round moves only shares of ranks.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::{path::Path, process::exit};

use sortmill::error::Result;
use sortmill::io::{Host, Os, RingKind, sync::Arc};
use sortmill::pipeline::{self as pl, Column, Form, Settings, Table, Type, Value, each};
use sortmill::queue::Stop;

const ALL: u64 = 1 << 62;
/// No vertices: to one goes what leads nowhere, to the other by how much ranks have moved.
const LOST: u64 = u64::MAX - 1;
const MOVED: u64 = u64::MAX;

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
///
/// # Errors
/// Those of a pipeline.
pub fn pagerank(edges: &str, output: &str, folder: &Path, rounds: u32) -> Result<()> {
    let os: Arc<dyn Os> = Arc::new(Host::new(RingKind::Auto, true).expect("a back end"));
    let [lists, mut old, mut sums, mut new] =
        ["lists", "a", "b", "c"].map(|name| folder.join(name));
    let edges = pl::read_text([edges], 0);
    let edges = edges.flat_map(&pl::fields("line", "\t", numbers(&["vertex", "target"])))?;
    let packed = edges.group_by(&["vertex"])?.pack("target", "targets")?;
    run(&*os, &packed, &lists, Form::Rows)?;
    let both = each(
        ["vertex", "target"],
        [("vertex", Type::U64)],
        |ends, out| ends.iter().try_for_each(|&end| out(&[end])),
    );
    let vertices = edges
        .flat_map(both)?
        .group_by(&["vertex"])?
        .agg(&[pl::count()])?;
    let count = run(&*os, &vertices, &sums, Form::Rows)?;

    // A rank is a base and, but for the first ones, some hundredths of the sum of what was sent to the vertex.
    let rank = |(base, percent): (u64, u64), sum: Value<'_>| Ok(base + part(sum.u64()?, percent));
    let (mut before, mut now) = ((ALL / count, 0), (ALL / count, 0));
    let beside = |sums: &Path, old: &Path| {
        let (sum, old_sum) = (numbers(&["vertex", "sum"]), numbers(&["vertex", "old"]));
        let files = [(&*lists, packed.columns()), (sums, &sum), (old, &old_sum)];
        pl::paste(Arc::clone(&os), &files)
    };
    for round in 0..rounds {
        let sent = [("vertex", Type::U64), ("share", Type::U64)];
        let send = each(
            ["targets", "sum", "old"],
            sent,
            move |[targets, sum, old], out| {
                let (own, targets) = (rank(now, sum)?, pl::unpack(targets.bytes()));
                let mut send = |to, share| out(&[Value::U64(to), Value::U64(share)]);
                send(MOVED, own.abs_diff(rank(before, old)?))?;
                match targets.clone().count() as u64 {
                    0 => send(LOST, own),
                    count => targets.into_iter().try_for_each(|to| send(to, own / count)),
                }
            },
        );
        let [lost, moved] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
        let told = (Arc::clone(&lost), Arc::clone(&moved));
        let table = beside(&sums, if round == 0 { &sums } else { &old })?.flat_map(send)?;
        let table = table.group_by(&["vertex"])?.agg(&[pl::sum("share")])?;
        let table = table.filter(["vertex", "share"], move |[vertex, sum]| {
            match vertex.u64()? {
                LOST => told.0.store(sum.u64()?, SeqCst),
                MOVED => told.1.store(sum.u64()?, SeqCst),
                _ => return Ok(true),
            }
            Ok(false)
        })?;
        run(&*os, &table, &new, Form::Rows)?;
        let base = (part(ALL, 15) + part(lost.load(SeqCst), 85)) / count;
        (before, now) = (now, (base, 85));
        (old, sums, new) = (sums, new, old);
        if round > 0 && moved.load(SeqCst) < ALL / 1_000_000_000 {
            break;
        }
    }
    let made = [("vertex", Type::U64), ("rank", Type::F64)];
    let ranks = beside(&sums, &old)?.map(["vertex", "sum"], made, move |[vertex, sum]| {
        Ok([
            vertex.u64()?.into(),
            (rank(now, sum)? as f64 / ALL as f64).into(),
        ])
    })?;
    run(
        &*os,
        &ranks.sort(&[("rank", true)])?,
        Path::new(output),
        Form::Text,
    )?;
    Ok(())
}

fn part(of: u64, percent: u64) -> u64 {
    (u128::from(of) * u128::from(percent) / 100) as u64
}

fn numbers(names: &[&str]) -> Vec<Column> {
    names
        .iter()
        .map(|&name| Column::new(name, Type::U64))
        .collect()
}

/// Writes a table, tells what was done, and answers how many records it has.
fn run(os: &dyn Os, table: &Table, path: &Path, form: Form) -> Result<u64> {
    let settings = Settings {
        memory_bytes: Some(512 << 20),
        ..Settings::default()
    };
    let report = table.write(path, form)?.run(&settings, os, &Stop::new())?;
    print!("{}", report.summary());
    Ok(report.records().1)
}
