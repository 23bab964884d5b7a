//! `sortmill gen graph`: edges of a directed graph.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use sortmill::error::{Error, ErrorKind, Result};
use sortmill::generate::Amount;
use sortmill::generate::graph::{
    DEGREE_MAX, Degrees, Format, Graph as Edges, MEAN_MAX, PowerLaw, Shape,
};

use super::{Output, Seed, at_most};

/// Edges of a directed graph: uniform, or with in-degrees by a power law
///
/// COUNT is the number of vertices, and with --bytes there are as many as have their edges fit. A line is an
/// edge: its source, a tab and its target, numbers from 0 on with as many digits as the last vertex has. Edges
/// come in no order, and out-degrees differ by at most one. An edge may lead back to its source, and two may be
/// the same.
#[derive(Args)]
pub struct Graph {
    #[command(flatten)]
    output: Output,

    /// How many edges end in a vertex
    #[arg(long, value_enum, default_value = "uniform")]
    kind: Kind,

    /// Edges for each vertex, in the mean [default: 100, and 500 by a power law]
    #[arg(long, value_name = "MEAN", value_parser = degree)]
    degree: Option<f64>,

    /// By a power law: the fewest edges that end in a vertex [default: 100]
    #[arg(long, value_name = "N", value_parser = degree_bound)]
    degree_min: Option<u32>,

    /// By a power law: the most edges that end in a vertex [default: 10000]
    ///
    /// Where there are few vertices none may have so many.
    #[arg(long, value_name = "N", value_parser = degree_bound)]
    degree_max: Option<u32>,

    /// How many of 100 vertices have no edge that begins there
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = dangling)]
    dangling: f64,

    /// How an edge is written
    #[arg(long, value_enum, default_value = "lines")]
    format: Written,

    #[command(flatten)]
    seed: Seed,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// By chance, all vertices being equally likely
    Uniform,
    /// N in proportion to a power of N, which follows from the mean
    PowerLaw,
}

#[derive(Clone, Copy, ValueEnum)]
enum Written {
    /// Source, tab, target and line end
    Lines,
    /// Source and target as 8 bytes each, little-endian
    Fixed,
}

impl Graph {
    pub fn run(&self) -> Result<ExitCode> {
        let shape = self.shape()?;
        self.output.run(false, |amount, _, _| {
            let vertices = match amount {
                Amount::Records(vertices) => vertices,
                Amount::Bytes(bytes) => shape.vertices_in(bytes),
            };
            let graph = Edges::new(self.seed.number, &shape, vertices)?;
            Ok((graph, Amount::Records(shape.edges(vertices))))
        })
    }

    fn shape(&self) -> Result<Shape> {
        let degrees =
            match self.kind {
                Kind::Uniform if self.degree_min.is_some() || self.degree_max.is_some() => {
                    let cause = "a uniform graph has no bounds of in-degrees";
                    return Err(Error::new(ErrorKind::Usage, "reading the flags", cause).hint(
                    "Leave `--degree-min` and `--degree-max` out, or add `--kind power-law`.",
                ));
                }
                Kind::Uniform => Degrees::Uniform(self.degree.unwrap_or(100.0)),
                Kind::PowerLaw => Degrees::PowerLaw(PowerLaw::new(
                    self.degree.unwrap_or(500.0),
                    self.degree_min.unwrap_or(100),
                    self.degree_max.unwrap_or(10_000),
                )?),
            };
        Ok(Shape {
            degrees,
            dangling: self.dangling / 100.0,
            format: match self.format {
                Written::Lines => Format::Lines,
                Written::Fixed => Format::Fixed,
            },
        })
    }
}

fn degree(text: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(mean) if (1.0..=MEAN_MAX).contains(&mean) => Ok(mean),
        _ => Err(format!("not between 1 and {MEAN_MAX}")),
    }
}

fn degree_bound(text: &str) -> std::result::Result<u32, String> {
    at_most(text, 1, DEGREE_MAX.into()).map(|degree| degree as u32)
}

fn dangling(text: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent),
        _ => Err("not 0 or more and below 100".into()),
    }
}
