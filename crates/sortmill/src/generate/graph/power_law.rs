//! In-degrees by a power law, without chance: how many vertices have which, and whose an edge is.
//!
//! Vertices are numbered from the one with the most edges down, and the edges that end in them in layers: the
//! first edge of each vertex, then the second one of each that has two, and so on. Who has one more edge than
//! others comes before them, so a layer begins with vertex 0 and has no gaps, and a table with the first edge of
//! each layer, thousands at most, tells which vertex an edge ends in.
//!
//! ```text
//! layer 0   e0  e1  e2  e3  e4  e5  e6
//! layer 1   e7  e8  e9  e10                in-degrees 3 3 2 2 1 1 1
//! layer 2   e11 e12
//! ```

use crate::error::{Error, ErrorKind, Result};

/// The largest in-degree that can be asked for: the table has a line for each.
pub const DEGREE_MAX: u32 = 100_000;

/// Which share of the vertices has which in-degree: `d` a share in proportion to `d^-exponent`.
#[derive(Clone, Debug)]
pub struct PowerLaw {
    least: usize,
    /// Of the vertices with at most each in-degree from `least` on.
    shares: Vec<f64>,
}

impl PowerLaw {
    /// In-degrees from `least` to `most` with this mean, from which the exponent follows.
    ///
    /// # Errors
    /// A usage error for bounds out of order or above [`DEGREE_MAX`], or a mean that no falling law between
    /// them has.
    pub fn new(mean: f64, least: u32, most: u32) -> Result<Self> {
        let refuse = |cause: String| Err(Error::new(ErrorKind::Usage, "generating a graph", cause));
        if !(1 <= least && least < most && most <= DEGREE_MAX) {
            return refuse(format!(
                "in-degrees go from 1 or more up to {DEGREE_MAX} or fewer, and not from {least} to {most}"
            ));
        }
        let flat_mean = f64::from(least + most) / 2.0;
        if !(f64::from(least) < mean && mean < flat_mean) {
            return refuse(format!(
                "in-degrees of {least} to {most} by a power law have a mean between {least} and {flat_mean}, \
                 not {mean}"
            ));
        }
        let weights = |exponent: f64| {
            let weight = move |degree: u32| (f64::from(least) / f64::from(degree)).powf(exponent);
            (least..=most).map(move |degree| (f64::from(degree), weight(degree)))
        };
        let mean_of = |exponent: f64| {
            let (sum, total) = weights(exponent)
                .fold((0.0, 0.0), |(sum, total), (degree, weight)| {
                    (sum + degree * weight, total + weight)
                });
            sum / total
        };
        // The mean falls from the one in the middle towards `least` as the exponent grows.
        let (mut low, mut high) = (0.0, 1.0);
        while mean_of(high) > mean {
            (low, high) = (high, 2.0 * high);
        }
        for _ in 0..BISECTIONS {
            let middle = (low + high) / 2.0;
            match mean_of(middle) > mean {
                true => low = middle,
                false => high = middle,
            }
        }
        let total: f64 = weights(low).map(|(_, weight)| weight).sum();
        let mut so_far = 0.0;
        let shares = weights(low)
            .map(|(_, weight)| {
                so_far += weight / total;
                so_far
            })
            .collect();
        Ok(Self {
            least: least as usize,
            shares,
        })
    }

    /// How many of so many vertices have more than each in-degree from 0 on.
    fn above(&self, vertices: u64) -> impl Iterator<Item = u64> + '_ {
        // All have `least` edges, and none has more than the most.
        let (_, shares) = self.shares.split_last().expect("there are two at least");
        let at_most = move |share: &f64| ((vertices as f64 * share).round() as u64).min(vertices);
        let above = shares.iter().map(move |share| vertices - at_most(share));
        std::iter::repeat_n(vertices, self.least).chain(above)
    }

    /// The edges that end in so many vertices. One vertex more makes at least `least` more.
    pub fn edges(&self, vertices: u64) -> u64 {
        let edges: u128 = self.above(vertices).map(u128::from).sum();
        edges.try_into().unwrap_or(u64::MAX)
    }

    /// Whose each edge is, among so many vertices, which have fewer than 2^63 edges.
    pub fn ends(&self, vertices: u64) -> Ends {
        let mut edge = 0;
        let mut firsts = Vec::with_capacity(self.least + self.shares.len());
        for count in self.above(vertices) {
            firsts.push(edge);
            edge += count;
        }
        firsts.push(u64::MAX);
        let mut shift = 0;
        while edge >> shift > (GUIDES_PER_LAYER * firsts.len()) as u64 {
            shift += 1;
        }
        let mut layer = 0;
        let guide = (0..=edge >> shift)
            .map(|stretch| {
                while firsts[layer + 1] <= stretch << shift {
                    layer += 1;
                }
                layer as u32
            })
            .collect();
        Ends {
            firsts,
            guide,
            shift,
        }
    }
}

/// Halvings of the range that the exponent lies in, down to the last bits of its fraction.
const BISECTIONS: u32 = 52;

/// How finely layers are looked up.
const GUIDES_PER_LAYER: usize = 4;

/// Which vertex each edge ends in.
pub struct Ends {
    /// The first edge of each layer, and one behind all.
    firsts: Vec<u64>,
    /// The layer that each stretch of `1 << shift` edges begins in: at most a few before the one looked for.
    guide: Vec<u32>,
    shift: u32,
}

impl Ends {
    /// The vertex, from the highest in-degree down, that edge `edge` ends in.
    #[inline]
    pub fn vertex(&self, edge: u64) -> u64 {
        let mut layer = self.guide[(edge >> self.shift) as usize] as usize;
        // Often the next one; without a branch, which no processor could foresee.
        layer += usize::from(self.firsts[layer + 1] <= edge);
        while self.firsts[layer + 1] <= edge {
            layer += 1;
        }
        edge - self.firsts[layer]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_vertex_has_its_edges() {
        for (mean, least, most) in [
            (3.0, 1, 10),
            (1.001, 1, 10),
            (465.0, 100, 10_000),
            (6.4, 4, 9),
        ] {
            let law = PowerLaw::new(mean, least, most).unwrap();
            for vertices in [0, 1, 2, 100, 1_001] {
                let ends = law.ends(vertices);
                // The vertex at each place is the one that the law has there, all in order.
                let expected: Vec<u64> = (0..vertices)
                    .map(|vertex| {
                        law.above(vertices).filter(|above| *above > vertex).count() as u64
                    })
                    .collect();
                let bounds = u64::from(least)..=u64::from(most);
                assert!(expected.iter().all(|degree| bounds.contains(degree)));
                let mut found = vec![0; vertices as usize];
                for edge in 0..law.edges(vertices) {
                    found[ends.vertex(edge) as usize] += 1;
                }
                assert_eq!(found, expected, "{mean}, {least} to {most}, {vertices}");
            }
            let edges = law.edges(1_000_000) as f64 / 1e6;
            assert!((edges / mean - 1.0).abs() < 1e-3, "{edges}, {mean}");
        }
    }
}
