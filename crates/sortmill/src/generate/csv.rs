//! Comma-separated values as RFC 4180 has them: id, time, integer, float and text.
//!
//! ```text
//! id,time,count,price,note
//! 0,2013-04-27T18:02:51Z,-5120,73.0417,tine ro and
//! 1,2027-11-02T00:40:09Z,7,5821.5,"te sa, heno tu"
//! ```
//!
//! A note is quoted where it must be: one in eight has a comma, one in 32 a quote, one in 64 a line break.

use super::data::{Data, Draws};
use super::digits;
use super::times::{self, TIME_BYTES};
use super::words::{Vocabulary, WORD_BYTES_MAX};

/// Such lines, after one that names the columns.
pub struct Csv {
    seed: u64,
    vocabulary: Vocabulary,
}

const HEADER: &[u8] = b"id,time,count,price,note\n";
const COUNT_DIGITS_MAX: usize = 9;
const PRICE_DIGITS_MAX: usize = 4;
const CENTS_DIGITS_MAX: usize = 4;
const NOTE_WORDS_MAX: u64 = 8;

const VOCABULARY_WORDS: u32 = 5_000;

/// What is drawn of a line before its digits and words.
struct Form {
    count_negative: bool,
    count_digits: usize,
    price_digits: usize,
    cents_digits: usize,
    words: u64,
    /// What stands behind the first word instead of a space.
    gap: &'static [u8],
    /// What the note's words are drawn from, and what all digits.
    note: Draws,
    digits: Draws,
}

impl Csv {
    /// Lines that follow from the seed.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            vocabulary: Vocabulary::new(seed, VOCABULARY_WORDS, 1.0),
        }
    }

    fn form(&self, id: u64) -> Form {
        let mut draws = Draws::of(self.seed, id);
        let word = draws.word();
        let below = |shift: u32, limit: u64| (((word >> shift & 0x1FFF) * limit) >> 13) as usize;
        Form {
            count_negative: word & 1 == 1,
            count_digits: 1 + below(1, COUNT_DIGITS_MAX as u64),
            price_digits: 1 + below(14, PRICE_DIGITS_MAX as u64),
            cents_digits: 1 + below(27, CENTS_DIGITS_MAX as u64),
            words: 2 + below(40, NOTE_WORDS_MAX - 1) as u64,
            gap: match word >> 58 {
                0 => b"\n",
                1 | 2 => b"\"\"",
                3..=10 => b", ",
                _ => b" ",
            },
            note: draws.other(),
            digits: draws,
        }
    }

    /// Writes the note, quoted if it must be. Returns its bytes.
    fn write_note(&self, form: &mut Form, out: &mut [u8]) -> usize {
        let quoted = form.quoted();
        out[0] = b'"';
        let mut at = usize::from(quoted);
        at += self.vocabulary.write(&mut form.note, &mut out[at..]) - 1;
        out[at..at + form.gap.len()].copy_from_slice(form.gap);
        at += form.gap.len();
        for _ in 1..form.words {
            at += self.vocabulary.write(&mut form.note, &mut out[at..]);
        }
        // In place of the space behind the last word.
        out[at - 1] = b'"';
        at - usize::from(!quoted)
    }

    fn note_bytes(&self, form: &mut Form) -> usize {
        let words: usize = (0..form.words)
            .map(|_| self.vocabulary.skip(&mut form.note))
            .sum();
        words - 2 + form.gap.len() + 2 * usize::from(form.quoted())
    }
}

impl Form {
    fn quoted(&self) -> bool {
        self.gap != b" "
    }

    /// The bytes up to the note, with all commas.
    fn bytes_before_note(&self, id: u64) -> usize {
        let count = usize::from(self.count_negative) + self.count_digits;
        let price = self.price_digits + 1 + self.cents_digits;
        digits::count(id) + 1 + TIME_BYTES + 1 + count + 1 + price + 1
    }
}

/// A line as far as it is written.
struct Line<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl Line<'_> {
    /// Adds the lowest `digits` digits of `value`, and `behind`.
    #[inline]
    fn put(&mut self, value: u64, digits: usize, behind: u8) {
        digits::write(value, &mut self.out[self.at..self.at + digits]);
        self.out[self.at + digits] = behind;
        self.at += digits + 1;
    }

    /// Adds a random number of so many digits, at most 16, and `behind`.
    #[inline]
    fn put_random(&mut self, digits: usize, draws: &mut Draws, behind: u8) {
        let rest = &mut self.out[self.at..];
        let (stored, _) = rest.split_first_chunk_mut::<16>().expect("a line has room");
        digits::scatter(digits, draws, stored);
        self.out[self.at + digits] = behind;
        self.at += digits + 1;
    }

    /// Ends the column before, and adds a sign if there is one.
    fn put_sign(&mut self, negative: bool) {
        self.out[self.at..self.at + 2].copy_from_slice(b",-");
        self.at += 1 + usize::from(negative);
    }
}

impl Data for Csv {
    fn record_bytes_fixed(&self) -> Option<u64> {
        None
    }

    fn record_bytes_max(&self) -> usize {
        let numbers =
            20 + TIME_BYTES + 1 + COUNT_DIGITS_MAX + PRICE_DIGITS_MAX + 1 + CENTS_DIGITS_MAX;
        // A word is stored with what the next one would overwrite.
        numbers + 4 + (NOTE_WORDS_MAX as usize + 1) * WORD_BYTES_MAX + 5
    }

    #[inline]
    fn record_bytes(&self, number: u64) -> u64 {
        let Some(id) = number.checked_sub(1) else {
            return HEADER.len() as u64;
        };
        let mut form = self.form(id);
        (form.bytes_before_note(id) + self.note_bytes(&mut form) + 1) as u64
    }

    #[inline]
    fn write(&self, number: u64, out: &mut [u8]) -> usize {
        let Some(id) = number.checked_sub(1) else {
            out[..HEADER.len()].copy_from_slice(HEADER);
            return HEADER.len();
        };
        let mut form = self.form(id);
        let mut line = Line { out, at: 0 };
        line.put(id, digits::count(id), b',');
        times::write(form.digits.word(), &mut line.out[line.at..]);
        line.at += TIME_BYTES;
        line.put_sign(form.count_negative);
        line.put_random(form.count_digits, &mut form.digits, b',');
        line.put_random(form.price_digits, &mut form.digits, b'.');
        line.put_random(form.cents_digits, &mut form.digits, b',');
        let Line { out, mut at } = line;
        at += self.write_note(&mut form, &mut out[at..]);
        out[at] = b'\n';
        at + 1
    }
}
