//! Arithmetic of floats none of which may be missing: steps one after the other on a stack instead of a tree, where each part would be
//! asked whether it has a value, and answer through memory.
//!
//! ```text
//! (a + 1.5) * (b / c)  ->  push a; + 1.5; push b; / c; *
//! ```

use super::aggregate::Owned;
use super::column::{Type, Value};
use super::express::{Binary, Unary};
use super::reckon::{Node, float, of_floats, one_nan};
use super::texts::Texts;
use crate::error::Result;

/// So many floats wait for others at most.
const WAITING_MAX: usize = 8;

/// What comes to one float.
#[derive(Clone, Debug)]
pub(super) struct Floats {
    steps: Vec<Step>,
    /// How many floats wait at the same time, the one in hand among them.
    waiting: usize,
}

#[derive(Clone, Debug)]
enum Step {
    /// The one in hand waits for another one: a column, a literal, what a tree comes to.
    Column(usize),
    Literal(f64),
    Other(Box<Node>),
    /// Of the one in hand and a column, or a literal.
    WithColumn(Binary, usize),
    WithLiteral(Binary, f64),
    /// Of the last one that waits and the one in hand.
    Both(Binary),
    Minus,
    Abs,
    Sqrt,
}

impl Floats {
    /// That of a number, or of false and true, that is always there.
    fn new(node: Node) -> Self {
        let step = match node {
            Node::Floats(floats) => return floats,
            Node::Cast(Type::F64, of) => return Self::new(*of),
            Node::Column(at) => Step::Column(at),
            Node::Literal(Owned::Plain(value)) => match float(value) {
                Some(value) => Step::Literal(value),
                None => Step::Other(Box::new(node)),
            },
            node => Step::Other(Box::new(node)),
        };
        Self {
            steps: vec![step],
            waiting: 1,
        }
    }

    /// That of what is made of two.
    pub fn of_both(what: Binary, [one, other]: [Node; 2]) -> Self {
        let (mut made, mut other) = (Self::new(one), Self::new(other));
        if other.waiting >= WAITING_MAX {
            other = Self {
                steps: vec![Step::Other(Box::new(Node::Floats(other)))],
                waiting: 1,
            };
        }
        match other.steps[..] {
            [Step::Column(at)] => made.steps.push(Step::WithColumn(what, at)),
            [Step::Literal(value)] => made.steps.push(Step::WithLiteral(what, value)),
            _ => {
                made.waiting = made.waiting.max(1 + other.waiting);
                made.steps.append(&mut other.steps);
                made.steps.push(Step::Both(what));
            }
        }
        made
    }

    /// That of what is made of one, [`Unary::Minus`], [`Unary::Sqrt`] or [`Unary::Abs`].
    pub fn of_one(what: Unary, one: Node) -> Self {
        let mut made = Self::new(one);
        made.steps.push(match what {
            Unary::Minus => Step::Minus,
            Unary::Sqrt => Step::Sqrt,
            _ => Step::Abs,
        });
        made
    }

    /// What it comes to; of all that are no numbers the same one.
    ///
    /// # Errors
    /// Those of the trees in it.
    pub fn value(&self, record: &[Value<'_>]) -> Result<f64> {
        let there = |value: Option<f64>| value.expect("no value is missing");
        let (mut waiting, mut count, mut hand) = ([0.0; WAITING_MAX], 0, 0.0);
        for step in &self.steps {
            let next = match step {
                Step::WithColumn(what, at) => {
                    hand = of_floats(*what, hand, there(float(record[*at])));
                    continue;
                }
                Step::WithLiteral(what, value) => {
                    hand = of_floats(*what, hand, *value);
                    continue;
                }
                Step::Both(what) => {
                    count -= 1;
                    hand = of_floats(*what, waiting[count], hand);
                    continue;
                }
                Step::Minus => {
                    hand = -hand;
                    continue;
                }
                Step::Abs => {
                    hand = hand.abs();
                    continue;
                }
                Step::Sqrt => {
                    hand = hand.sqrt();
                    continue;
                }
                Step::Column(at) => there(float(record[*at])),
                Step::Literal(value) => *value,
                Step::Other(node) => there(float(node.value(record, &Texts::default())?)),
            };
            // The first one has nothing to wait in front of, and leaves a place that nobody looks at.
            waiting[count] = hand;
            count += 1;
            hand = next;
        }
        Ok(one_nan(hand))
    }
}
