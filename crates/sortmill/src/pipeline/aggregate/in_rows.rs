//! States as they lie in rows of words, in a table of many groups (`combine.rs`).
//!
//! | aggregate | words | beside them |
//! |---|---|---|
//! | count, exact quantile, texts joined | 1 | |
//! | sum, mean of integers | 3: the sum twice as wide, how many | |
//! | sum, mean of floats | 2: its number, how many | the exact sum, more for one of numbers of very different sizes |
//! | min, max | 1: the value, or where its text lies; 1 more that says whether it is there, if it may be missing | text |
//! | first | of those that lead 3: where the record came from; then as min | text |
//! | approximate ones | 1: its number | a sketch, or steps |
//! | different values, counted or joined in order | none | |
//!
//! A text lies in a slot of a power of two of bytes, and stays there as long as it fits: what texts of a group have taken in all
//! is at most twice the last slot.

use super::{Computed, Kind, Spot, Type, Value, bits, count_bytes, put_held, put_spot};
use crate::pipeline::count_bytes::COUNT_BYTES_MAX;
use crate::pipeline::exact::ExactSum;
use crate::pipeline::sketch::Sketch;
use crate::pipeline::steps::Steps;

const SPOT_WORDS: usize = 3;

/// What the states of a table have beside their words.
#[derive(Default)]
pub(in crate::pipeline) struct Beside {
    floats: Vec<ExactSum>,
    /// Bytes that some of these take besides.
    wide_bytes: usize,
    sketches: Vec<Sketch>,
    steps: Vec<Steps>,
    /// Slots of the texts that are held, and of shorter ones that were held before them.
    texts: Vec<u8>,
    /// Whether the record that is being added came before those of its group that are there, once the aggregate that leads has
    /// told.
    is_earlier: bool,
}

impl Beside {
    /// Forgets all of it, and keeps memory for about so many bytes of text.
    pub fn clear(&mut self, text_bytes: usize) {
        self.floats.clear();
        self.wide_bytes = 0;
        self.sketches.clear();
        self.steps.clear();
        self.texts.clear();
        self.texts.shrink_to(text_bytes);
    }

    /// Bytes of texts, and of what else has grown.
    pub fn grown_bytes(&self) -> usize {
        self.texts.len() + self.wide_bytes
    }

    /// The text that lies where `word` says.
    fn text(&self, word: u64) -> &[u8] {
        let (from, length) = (slot_begin(word), word as u32 as usize);
        &self.texts[from..from + length]
    }

    /// Keeps a text in place of the one that `word` tells of, and tells where it lies.
    fn keep_text(&mut self, word: u64, text: &[u8]) -> u64 {
        let (from, class) = match new_slot(word, text.len()) {
            None => (slot_begin(word), slot_class(word)),
            Some(bytes) => {
                let from = self.texts.len();
                self.texts.resize(from + bytes, 0);
                (from, bytes.trailing_zeros() - SLOT_BITS + 1)
            }
        };
        self.texts[from..from + text.len()].copy_from_slice(text);
        (from as u64 >> SLOT_BITS) << 37 | u64::from(class) << 32 | text.len() as u64
    }
}

// A word that tells of a text: in the lower half its length; of its slot in five bits how long that is, 0 where there is none and each
// one more for twice the bytes, and in the others where it begins.

/// Slots begin at multiples of eight bytes, and have as many at least.
const SLOT_BITS: u32 = 3;

fn slot_begin(word: u64) -> usize {
    ((word >> 37) as usize) << SLOT_BITS
}

fn slot_class(word: u64) -> u32 {
    (word >> 32) as u32 & 31
}

/// Bytes of the slot that a text of `length` bytes needs in place of the one that `word` tells of, if it does not fit there.
fn new_slot(word: u64, length: usize) -> Option<usize> {
    let bytes = match slot_class(word) {
        0 => 0,
        class => 1 << (class - 1 + SLOT_BITS),
    };
    let needed = length.next_power_of_two().max(1 << SLOT_BITS);
    (needed > bytes).then_some(needed)
}

impl Computed {
    /// How many words a state is.
    pub fn word_count(&self) -> usize {
        match (self.kind, self.of) {
            (Kind::Min | Kind::Max, _) => self.held_words(),
            (Kind::First, _) => self.spot_words() + self.held_words(),
            (Kind::Sum | Kind::Mean, Type::F64) => 2,
            (Kind::Sum | Kind::Mean, _) => 3,
            (Kind::CountDistinct | Kind::StringAgg { is_distinct: true }, _) => 0,
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

    /// Whether what a state takes beside its words may grow.
    pub fn grows(&self) -> bool {
        let sums_floats = matches!(self.kind, Kind::Sum | Kind::Mean) && self.of == Type::F64;
        sums_floats || self.text_held().is_some()
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
            Kind::Count
            | Kind::CountValues
            | Kind::Quantile(_)
            | Kind::StringAgg { is_distinct: false } => return words[0] += 1,
            Kind::CountDistinct | Kind::StringAgg { is_distinct: true } => return,
            _ => &record[self.at],
        };
        match (self.kind, value) {
            (Kind::ApproxCountDistinct, value) => beside.sketches[words[0] as usize].add(value),
            (Kind::ApproxQuantile(_), value) => beside.steps[words[0] as usize].add(value),
            (Kind::Sum | Kind::Mean, Value::F64(value)) => {
                let sum = &mut beside.floats[words[0] as usize];
                let was_wide = sum.is_wide();
                sum.add(*value);
                if sum.is_wide() && !was_wide {
                    beside.wide_bytes += ExactSum::WIDE_BYTES;
                }
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
                if self.is_better(value, &self.held(words, beside)) {
                    self.hold_words(words, beside, value);
                }
            }
        }
    }

    /// How many bytes more are taken beside when [`Computed::add_words`] takes a record. Whether it comes before those of its group
    /// is in `is_earlier`, once the one that leads has been asked.
    pub fn needed(
        &self,
        words: &[u64],
        beside: &Beside,
        record: &[Value<'_>],
        spot: &Spot,
        is_earlier: &mut bool,
    ) -> usize {
        let (from, held) = match self.kind {
            Kind::First => words.split_at(self.spot_words()),
            _ => (&[][..], words),
        };
        if self.kind == Kind::First && self.leads {
            *is_earlier = spot[..] < *from;
        }
        if let (Kind::Sum | Kind::Mean, Type::F64) = (self.kind, self.of) {
            return match record[self.at] {
                Value::F64(value) if beside.floats[words[0] as usize].widens(value) => {
                    ExactSum::WIDE_BYTES
                }
                _ => 0,
            };
        }
        let Some(at) = self.text_held() else { return 0 };
        let is_held = match self.kind {
            Kind::First => *is_earlier,
            _ => !self.passes_by(record) && self.is_better(&record[at], &self.held(held, beside)),
        };
        match (is_held, record[at]) {
            (true, Value::Bytes(text)) => new_slot(held[0], text.len()).unwrap_or(0),
            _ => 0,
        }
    }

    /// How many bytes of text are taken beside when [`Computed::begin_words`] takes a record.
    pub fn text_begun(&self, record: &[Value<'_>]) -> usize {
        match self.text_held().map(|at| record[at]) {
            Some(Value::Bytes(text)) => new_slot(0, text.len()).unwrap_or(0),
            _ => 0,
        }
    }

    /// Appends what [`Computed::merge`] reads of one record, which came from `spot`, with nothing kept of its text. What it needs of words, as many as a
    /// state has, and beside them is scratch space.
    pub fn write_one(
        &self,
        (words, beside): (&mut [u64], &mut Beside),
        record: &[Value<'_>],
        spot: &Spot,
        to: &mut Vec<u8>,
    ) {
        match self.kind {
            Kind::Min | Kind::Max => put_held(self.nullable, &record[self.at], to),
            Kind::First => {
                put_spot(&spot[..self.spot_words()], to);
                put_held(self.nullable, &record[self.at], to);
            }
            _ => {
                self.begin_words(words, beside, record, spot);
                self.write_words(words, beside, to);
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
            (Kind::Count | Kind::CountValues | Kind::StringAgg { is_distinct: false }, _) => {
                to.extend_from_slice(count_bytes(words[0], &mut [0; COUNT_BYTES_MAX]));
            }
            _ => words
                .iter()
                .for_each(|word| to.extend_from_slice(&word.to_le_bytes())),
        }
    }
}
