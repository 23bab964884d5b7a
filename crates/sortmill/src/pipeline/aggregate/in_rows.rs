//! States as they lie in rows of words, in a table of many groups (`combine.rs`).
//!
//! | aggregate | words | beside them |
//! |---|---|---|
//! | count, exact quantile | 1 | |
//! | sum, mean of integers | 3: the sum twice as wide, how many | |
//! | sum, mean of floats | 2: its number, how many | the exact sum |
//! | min, max | 1: the value, or where its text lies; 1 more that says whether it is there, if it may be missing | text |
//! | first | of those that lead 3: where the record came from; then as min | text |
//! | approximate ones | 1: its number | a sketch, or steps |
//! | different values, counted in order | none | |

use super::{Computed, Kind, Spot, Type, Value, bits, compare, count_bytes, put_held, put_spot};
use crate::pipeline::count_bytes::COUNT_BYTES_MAX;
use crate::pipeline::exact::ExactSum;
use crate::pipeline::sketch::Sketch;
use crate::pipeline::steps::Steps;

const SPOT_WORDS: usize = 3;

/// What the states of a table have beside their words.
#[derive(Default)]
pub(in crate::pipeline) struct Beside {
    floats: Vec<ExactSum>,
    sketches: Vec<Sketch>,
    steps: Vec<Steps>,
    /// What is held, and what has been since it was cleared: a longer one in place of another lies behind all.
    texts: Vec<u8>,
    /// Whether the record that is being added came before those of its group that are there, once the aggregate that leads has
    /// told.
    is_earlier: bool,
}

impl Beside {
    /// Forgets all of it.
    pub fn clear(&mut self) {
        self.floats.clear();
        self.sketches.clear();
        self.steps.clear();
        self.texts.clear();
    }

    /// Bytes of texts.
    pub fn text_bytes(&self) -> usize {
        self.texts.len()
    }

    /// The text that lies where `word` says: where it begins in the upper half, its length in the lower.
    fn text(&self, word: u64) -> &[u8] {
        let from = (word >> 32) as usize;
        &self.texts[from..from + word as u32 as usize]
    }

    /// Keeps a text in place of the one that `word` tells of, and tells where it lies.
    fn keep_text(&mut self, word: u64, text: &[u8]) -> u64 {
        let from = match text.len() <= word as u32 as usize {
            true => (word >> 32) as usize,
            false => {
                self.texts.resize(self.texts.len() + text.len(), 0);
                self.texts.len() - text.len()
            }
        };
        self.texts[from..from + text.len()].copy_from_slice(text);
        (from as u64) << 32 | text.len() as u64
    }
}

impl Computed {
    /// How many words a state is.
    pub fn word_count(&self) -> usize {
        match (self.kind, self.of) {
            (Kind::Min | Kind::Max, _) => self.held_words(),
            (Kind::First, _) => self.spot_words() + self.held_words(),
            (Kind::Sum | Kind::Mean, Type::F64) => 2,
            (Kind::Sum | Kind::Mean, _) => 3,
            (Kind::CountDistinct, _) => 0,
            _ => 1,
        }
    }

    /// Bytes that a state takes beside its words.
    pub fn beside_bytes(&self) -> usize {
        match (self.kind, self.of) {
            (Kind::Sum | Kind::Mean, Type::F64) => size_of::<ExactSum>(),
            (Kind::ApproxCountDistinct, _) => Sketch::BYTES_MAX,
            (Kind::ApproxQuantile(_), _) => Steps::BYTES_MAX,
            _ => 0,
        }
    }

    /// Words of where a record came from.
    fn spot_words(&self) -> usize {
        if self.leads { SPOT_WORDS } else { 0 }
    }

    /// Words of a value that is held.
    fn held_words(&self) -> usize {
        1 + usize::from(self.nullable)
    }

    /// The column whose text is held beside, if it is one of text.
    pub fn text_held(&self) -> Option<usize> {
        let holds = matches!(self.kind, Kind::Min | Kind::Max | Kind::First);
        (holds && self.of.is_bytes()).then_some(self.at)
    }

    /// The state of one record, which came from `spot`.
    pub fn begin_words(
        &self,
        words: &mut [u64],
        beside: &mut Beside,
        record: &[Value<'_>],
        spot: &Spot,
    ) {
        words.fill(0);
        match (self.kind, self.of) {
            (Kind::Min | Kind::Max, _) if !self.passes_by(record) => {
                return self.hold_words(words, beside, &record[self.at]);
            }
            (Kind::First, _) => {
                let (from, held) = words.split_at_mut(self.spot_words());
                from.copy_from_slice(&spot[..from.len()]);
                return self.hold_words(held, beside, &record[self.at]);
            }
            (Kind::Sum | Kind::Mean, Type::F64) => {
                words[0] = beside.floats.len() as u64;
                beside.floats.push(ExactSum::default());
            }
            (Kind::ApproxCountDistinct, _) => {
                words[0] = beside.sketches.len() as u64;
                beside.sketches.push(Sketch::default());
            }
            (Kind::ApproxQuantile(_), _) => {
                words[0] = beside.steps.len() as u64;
                beside.steps.push(Steps::default());
            }
            _ => {}
        }
        self.add_words(words, beside, record, spot);
    }

    /// Takes a record, which came from `spot`.
    #[inline]
    pub fn add_words(
        &self,
        words: &mut [u64],
        beside: &mut Beside,
        record: &[Value<'_>],
        spot: &Spot,
    ) {
        if self.passes_by(record) {
            return;
        }
        let value = match self.kind {
            Kind::Count | Kind::CountValues | Kind::Quantile(_) => return words[0] += 1,
            Kind::CountDistinct => return,
            _ => &record[self.at],
        };
        match (self.kind, value) {
            (Kind::ApproxCountDistinct, value) => beside.sketches[words[0] as usize].add(value),
            (Kind::ApproxQuantile(_), value) => beside.steps[words[0] as usize].add(value),
            (Kind::Sum | Kind::Mean, Value::F64(value)) => {
                beside.floats[words[0] as usize].add(*value);
                words[1] += 1;
            }
            (Kind::Sum | Kind::Mean, _) => {
                let more = match *value {
                    Value::I64(value) => i128::from(value),
                    Value::U64(value) => i128::from(value),
                    _ => 0,
                };
                let sum = (u128::from(words[1]) << 64 | u128::from(words[0])) as i128 + more;
                (words[0], words[1]) = (sum as u64, (sum as u128 >> 64) as u64);
                words[2] += 1;
            }
            (Kind::First, value) => {
                let (from, held) = words.split_at_mut(self.spot_words());
                if self.leads {
                    beside.is_earlier = spot[..] < *from;
                }
                if beside.is_earlier {
                    from.copy_from_slice(&spot[..from.len()]);
                    self.hold_words(held, beside, value);
                }
            }
            _ => {
                let held = self.held(words, beside);
                let is_better = held.is_null()
                    || match self.kind {
                        Kind::Min => compare(value, &held).is_lt(),
                        _ => compare(value, &held).is_gt(),
                    };
                if is_better {
                    self.hold_words(words, beside, value);
                }
            }
        }
    }

    /// Holds a value in place of what was there.
    fn hold_words(&self, words: &mut [u64], beside: &mut Beside, value: &Value<'_>) {
        if let Some(is_there) = words.get_mut(1) {
            *is_there = u64::from(!value.is_null());
        }
        words[0] = match value {
            Value::Null => words[0],
            Value::Bytes(text) => beside.keep_text(words[0], text),
            value => bits(value),
        };
    }

    /// The value that is held.
    fn held<'b>(&self, words: &[u64], beside: &'b Beside) -> Value<'b> {
        match self.nullable && words[1] == 0 {
            true => Value::Null,
            false if self.of.is_bytes() => Value::Bytes(beside.text(words[0])),
            false => self.of_bits(words[0]),
        }
    }

    /// Appends what [`Computed::merge`] reads.
    pub fn write_words(&self, words: &[u64], beside: &Beside, to: &mut Vec<u8>) {
        match (self.kind, self.of) {
            (Kind::ApproxCountDistinct, _) => beside.sketches[words[0] as usize].write(to),
            (Kind::ApproxQuantile(_), _) => beside.steps[words[0] as usize].write(to),
            (Kind::Min | Kind::Max, _) => put_held(self.nullable, &self.held(words, beside), to),
            (Kind::First, _) => {
                let (from, held) = words.split_at(self.spot_words());
                put_spot(from, to);
                put_held(self.nullable, &self.held(held, beside), to);
            }
            (Kind::Sum | Kind::Mean, Type::F64) => {
                beside.floats[words[0] as usize].write(to);
                to.extend_from_slice(&words[1].to_le_bytes());
            }
            (Kind::Count | Kind::CountValues, _) => {
                to.extend_from_slice(count_bytes(words[0], &mut [0; COUNT_BYTES_MAX]));
            }
            _ => words
                .iter()
                .for_each(|word| to.extend_from_slice(&word.to_le_bytes())),
        }
    }
}
