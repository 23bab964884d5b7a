//! Directed graphs as lists of their edges, in no order.
//!
//! ```text
//! 00321<tab>00007      lines: source and target, with as many digits as the last vertex has
//! | source, u64 le | target, u64 le |      fixed: 16 bytes
//! ```
//!
//! Sources take turns: in each turn every vertex that has edges at all comes once, in an order of the turn's
//! own, so that out-degrees differ by at most one. In a uniform graph each edge draws its target. In one by a
//! power law in-degrees are fixed beforehand, and the ends of edges are dealt out in a random order: the
//! configuration model (M. Newman, S. Strogatz, D. Watts, "Random graphs with arbitrary degree distributions
//! and their applications", 2001). Either may lead back to its source, and lead there twice, as chance has it.

mod power_law;

pub use power_law::{DEGREE_MAX, PowerLaw};

use power_law::Ends;

use super::data::{Data, Draws, scaled};
use super::digits;
use super::permutation::Permutation;
use crate::error::{Error, ErrorKind, Result};

/// What a graph is like, whatever its size.
#[derive(Clone, Debug)]
pub struct Shape {
    /// How many edges end in each vertex.
    pub degrees: Degrees,
    /// The share of vertices that no edge begins in, 0 to below 1. They are spread evenly.
    pub dangling: f64,
    /// How an edge is written.
    pub format: Format,
}

/// How many edges end in each vertex.
#[derive(Clone, Debug)]
pub enum Degrees {
    /// By chance, all vertices being equally likely; so many in the mean, 1 to [`MEAN_MAX`].
    Uniform(f64),
    /// By a power law.
    PowerLaw(PowerLaw),
}

/// How an edge is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Source, tab, target and line end; all numbers have as many digits as the largest.
    Lines,
    /// Source and target as 8 bytes each, little-endian.
    Fixed,
}

/// The most edges for each vertex of a uniform graph, in the mean.
pub const MEAN_MAX: f64 = 1e6;

impl Shape {
    /// The edges of a graph with so many vertices.
    pub fn edges(&self, vertices: u64) -> u64 {
        match &self.degrees {
            Degrees::Uniform(mean) => (vertices as f64 * mean).round() as u64,
            Degrees::PowerLaw(law) => law.edges(vertices),
        }
    }

    /// The vertices of the largest graph whose edges fit into so many bytes.
    pub fn vertices_in(&self, bytes: u64) -> u64 {
        let fits = |vertices: u64| {
            let edge_bytes = self.format.edge_bytes(digits_of(vertices)) as u128;
            u128::from(self.edges(vertices)) * edge_bytes <= u128::from(bytes)
        };
        // Each vertex adds an edge at least, and that more than a byte.
        let (mut fitting, mut beyond) = (0, bytes.saturating_add(1));
        while beyond - fitting > 1 {
            let middle = fitting + (beyond - fitting) / 2;
            match fits(middle) {
                true => fitting = middle,
                false => beyond = middle,
            }
        }
        fitting
    }
}

impl Format {
    fn edge_bytes(self, digits: usize) -> usize {
        match self {
            Self::Lines => 2 * (digits + 1),
            Self::Fixed => 16,
        }
    }
}

/// Of the last of so many vertices.
fn digits_of(vertices: u64) -> usize {
    digits::count(vertices.saturating_sub(1))
}

/// The edges of a graph, one after another.
pub struct Graph {
    seed: u64,
    vertices: u64,
    format: Format,
    edge_bytes: usize,
    sources: Sources,
    targets: Targets,
}

/// The vertices that have edges.
struct Sources {
    count: u64,
    /// How far the next one is beyond the next vertex, in parts of 2^64.
    gap: u128,
    order: Permutation,
}

/// Where an edge begins, and where it ends.
#[derive(Clone, Copy, Default)]
struct Edge {
    source: u64,
    target: u64,
}

/// So many edges are worked out side by side.
const BATCH_EDGES: usize = 64;

enum Targets {
    Uniform,
    PowerLaw {
        /// Which of the ends each edge gets.
        deal: Permutation,
        ends: Ends,
        /// Which vertex is the one with this place by in-degree.
        vertices: Permutation,
    },
}

impl Graph {
    /// The graph of this shape with the vertices 0 to `vertices - 1` that follows from the seed. It has
    /// [`Shape::edges`], and takes up to a megabyte, or 10 at [`DEGREE_MAX`].
    ///
    /// # Errors
    /// A usage error for a graph of 2^63 bytes or more.
    pub fn new(seed: u64, shape: &Shape, vertices: u64) -> Result<Self> {
        let edge_bytes = shape.format.edge_bytes(digits_of(vertices));
        let edges = shape.edges(vertices);
        if edges > i64::MAX as u64 / edge_bytes as u64 {
            let cause = format!("a graph of {vertices} vertices like this has 2^63 bytes or more");
            return Err(Error::new(ErrorKind::Usage, "generating a graph", cause));
        }
        let mut draws = Draws::of(seed, u64::MAX);
        let dangling = (vertices as f64 * shape.dangling).round() as u64;
        let count = vertices.saturating_sub(dangling).max(1);
        let sources = Sources {
            count,
            gap: (u128::from(vertices.saturating_sub(count)) << 64) / u128::from(count),
            order: Permutation::new(draws.other(), count),
        };
        let targets = match &shape.degrees {
            Degrees::Uniform(_) => Targets::Uniform,
            Degrees::PowerLaw(law) => Targets::PowerLaw {
                deal: Permutation::new(draws.other(), edges),
                ends: law.ends(vertices),
                vertices: Permutation::new(draws.other(), vertices),
            },
        };
        Ok(Self {
            seed,
            vertices,
            format: shape.format,
            edge_bytes,
            sources,
            targets,
        })
    }

    /// What the edges from `first` on are.
    fn fetch(&self, first: u64, edges: &mut [Edge]) {
        self.sources.fetch(first, edges);
        match &self.targets {
            Targets::Uniform => {
                for (number, edge) in (first..).zip(edges) {
                    edge.target = scaled(Draws::of(self.seed, number).word(), self.vertices);
                }
            }
            Targets::PowerLaw {
                deal,
                ends,
                vertices,
            } => {
                for (number, edge) in (first..).zip(edges.iter_mut()) {
                    edge.target = deal.number(0, number);
                }
                // By itself, as it is not foreseen how far it looks: with the others in one loop, what had been
                // begun of the next edges would be thrown away with it, which took half as long again.
                for edge in edges.iter_mut() {
                    edge.target = ends.vertex(edge.target);
                }
                for edge in edges {
                    edge.target = vertices.number(0, edge.target);
                }
            }
        }
    }

    #[inline]
    fn put(&self, edge: Edge, out: &mut [u8]) {
        let half = self.edge_bytes / 2;
        match self.format {
            Format::Lines => {
                digits::store(edge.source, half - 1, out);
                out[half - 1] = b'\t';
                digits::store(edge.target, half - 1, &mut out[half..]);
                out[2 * half - 1] = b'\n';
            }
            Format::Fixed => {
                out[..8].copy_from_slice(&edge.source.to_le_bytes());
                out[8..16].copy_from_slice(&edge.target.to_le_bytes());
            }
        }
    }
}

impl Sources {
    /// Which vertices the edges from `first` on begin in.
    #[inline]
    fn fetch(&self, first: u64, edges: &mut [Edge]) {
        let (mut turn, mut place) = (first / self.count, first % self.count);
        for edge in edges {
            let place_in_order = self.order.number(turn, place);
            edge.source = place_in_order + ((u128::from(place_in_order) * self.gap) >> 64) as u64;
            place += 1;
            if place == self.count {
                (turn, place) = (turn + 1, 0);
            }
        }
    }
}

impl Data for Graph {
    fn record_bytes_fixed(&self) -> Option<u64> {
        Some(self.edge_bytes as u64)
    }

    fn record_bytes_max(&self) -> usize {
        // Short numbers are stored with what the next one would overwrite.
        self.edge_bytes + digits::STORED_BYTES
    }

    fn record_bytes(&self, _number: u64) -> u64 {
        self.edge_bytes as u64
    }

    fn write(&self, number: u64, out: &mut [u8]) -> usize {
        let mut edge = [Edge::default()];
        self.fetch(number, &mut edge);
        self.put(edge[0], out);
        self.edge_bytes
    }

    fn fill(&self, first: u64, out: &mut [u8]) -> (u64, usize) {
        let mut batch = [Edge::default(); BATCH_EDGES];
        let count = out.len().saturating_sub(digits::STORED_BYTES) / self.edge_bytes;
        for start in (0..count).step_by(BATCH_EDGES) {
            let edges = &mut batch[..BATCH_EDGES.min(count - start)];
            self.fetch(first + start as u64, edges);
            for (number, edge) in (start..).zip(edges) {
                self.put(*edge, &mut out[number * self.edge_bytes..]);
            }
        }
        (count as u64, count * self.edge_bytes)
    }
}
