//! JSON, an object in each line, as RFC 8259 has it, with what trips readers up.
//!
//! ```text
//! {"id":0,"time":"2013-04-27T18:02:51Z","user":{"name":"tine ro","age":41,"city":null},"tags":["sa","heno"],
//!  "score":-7.25e+3,"active":true,"note":"te\u00e9 sa\"henu to"}                          in one line
//! ```
//!
//! Every field but `id` and `name` may be missing or null. A string may have an escape or letters beyond ASCII
//! behind its first word. An array may be empty.
//!
//! A line is described once, to a [`Sink`]: one writes it, and one counts its bytes.

use super::data::{Data, Draws};
use super::digits;
use super::times::{self, TIME_BYTES};
use super::words::{Vocabulary, WORD_BYTES_MAX};

/// Which shares of fields and strings are out of the ordinary, each 0 to 1.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    /// Of all fields, those that are left out.
    pub missing: f64,
    /// Of the fields that are there, those that are null.
    pub null: f64,
    /// Of the strings, those with an escape or letters beyond ASCII.
    pub escaped: f64,
}

/// Such lines.
pub struct Json {
    seed: u64,
    vocabulary: Vocabulary,
    /// Below which of 2^32 random numbers a field is missing, or else null, and a string has an escape.
    missing_below: u64,
    null_below: u64,
    escaped_below: u64,
}

/// Every escape there is, and letters of 2, 3 and 4 bytes.
const ESCAPES: [&[u8]; 16] = [
    br"\n",
    br"\t",
    br"\r",
    br"\b",
    br"\f",
    br#"\""#,
    br"\\",
    br"\/",
    br"\u0000",
    br"\u00e9",
    br"\u20AC",
    br"\ud83d\ude00",
    "\u{e9}".as_bytes(),
    "\u{df}".as_bytes(),
    "\u{65e5}\u{672c}".as_bytes(),
    "\u{1f600}".as_bytes(),
];
const ESCAPE_BYTES_MAX: usize = br"\ud83d\ude00".len();

const NAME_WORDS_MAX: u64 = 2;
const TAGS_MAX: u64 = 3;
const NOTE_WORDS_MAX: u64 = 8;
const WORDS_MAX: usize = (NAME_WORDS_MAX + 1 + TAGS_MAX + NOTE_WORDS_MAX) as usize;
const STRINGS_MAX: usize = 3 + TAGS_MAX as usize;
const ID_DIGITS_MAX: usize = 20;
const SCORE_BYTES_MAX: usize = "-123456789.1234e+12".len();

/// What stands around values, with the longest of those that are not strings or numbers.
const FRAME: &str = r#"{"id":,"time":"","user":{"name":"","age":null,"city":""},"tags":["","",""],"score":,"active":false,"note":""}
"#;

const VOCABULARY_WORDS: u32 = 5_000;

impl Json {
    /// Lines that follow from the seed.
    pub fn new(seed: u64, shares: Shares) -> Self {
        let of_32_bits = |share: f64| (share * 4_294_967_296.0) as u64;
        let missing_below = of_32_bits(shares.missing);
        Self {
            seed,
            vocabulary: Vocabulary::new(seed, VOCABULARY_WORDS, 1.0),
            missing_below,
            null_below: missing_below + of_32_bits((1.0 - shares.missing) * shares.null),
            escaped_below: of_32_bits(shares.escaped),
        }
    }

    /// What a line is drawn from: its form and words, and digits, on which no length depends.
    fn begin(&self, number: u64) -> (Draws, Draws) {
        let mut draws = Draws::of(self.seed, number);
        let noise = draws.other();
        (draws, noise)
    }

    fn line<S: Sink>(&self, number: u64, draws: &mut Draws, to: &mut S) {
        to.text(br#"{"id":"#);
        to.number(number);
        self.field(br#","time":"#, draws, to, |_, to| {
            to.text(b"\"");
            to.time();
            to.text(b"\"");
        });
        self.field(br#","user":"#, draws, to, |draws, to| {
            to.text(br#"{"name":"#);
            self.string(NAME_WORDS_MAX, draws, to);
            self.field(br#","age":"#, draws, to, |_, to| {
                to.digits(2, First::NotZero)
            });
            self.field(br#","city":"#, draws, to, |draws, to| {
                self.string(1, draws, to);
            });
            to.text(b"}");
        });
        self.field(br#","tags":"#, draws, to, |draws, to| {
            to.text(b"[");
            for tag in 0..draws.below(TAGS_MAX + 1) {
                if tag > 0 {
                    to.text(b",");
                }
                self.string(1, draws, to);
            }
            to.text(b"]");
        });
        self.field(br#","score":"#, draws, to, |draws, to| score(draws, to));
        self.field(br#","active":"#, draws, to, |draws, to| {
            match draws.word() >> 63 {
                0 => to.text(b"false"),
                _ => to.text(b"true"),
            };
        });
        self.field(br#","note":"#, draws, to, |draws, to| {
            self.string(NOTE_WORDS_MAX, draws, to);
        });
        to.text(b"}\n");
    }

    /// A field that may be missing or null; its name comes with the comma before it.
    #[inline]
    fn field<S: Sink, const BYTES: usize>(
        &self,
        name: &[u8; BYTES],
        draws: &mut Draws,
        to: &mut S,
        value: impl FnOnce(&mut Draws, &mut S),
    ) {
        let chance = draws.word() >> 32;
        if chance < self.missing_below {
            return;
        }
        to.text(name);
        match chance < self.null_below {
            true => to.text(b"null"),
            false => value(draws, to),
        }
    }

    /// A string of 1 to `words_max` words.
    #[inline]
    fn string<S: Sink>(&self, words_max: u64, draws: &mut Draws, to: &mut S) {
        let form = draws.word();
        let words = 1 + (((form & 0xFF) * words_max) >> 8);
        to.text(b"\"");
        to.word(&self.vocabulary, draws);
        if form >> 32 < self.escaped_below {
            to.escape(ESCAPES[(form >> 8) as usize % ESCAPES.len()]);
        }
        for _ in 1..words {
            to.text(b" ");
            to.word(&self.vocabulary, draws);
        }
        to.text(b"\"");
    }
}

/// A number in one of the ways to write it: zero, an integer, with a point, with an exponent too.
#[inline]
fn score<S: Sink>(draws: &mut Draws, to: &mut S) {
    let form = draws.word();
    let below = |shift: u32, limit: u64| (((form >> shift & 0xFF) * limit) >> 8) as usize;
    if form >> 63 == 1 {
        to.text(b"-");
    }
    let way = below(0, 16);
    if way == 0 {
        to.text(b"0");
        return;
    }
    to.digits(1 + below(8, 9), First::NotZero);
    if way > 5 {
        to.text(b".");
        to.digits(1 + below(16, 4), First::Any);
    }
    if way > 10 {
        match below(24, 4) {
            0 => to.text(b"e+"),
            1 => to.text(b"E-"),
            2 => to.text(b"e"),
            _ => to.text(b"e-"),
        }
        to.digits(1 + below(32, 2), First::Any);
    }
}

/// What a line is told to.
trait Sink {
    /// Bytes as they are.
    fn text<const BYTES: usize>(&mut self, text: &[u8; BYTES]);
    /// One of [`ESCAPES`].
    fn escape(&mut self, escape: &[u8]);
    /// A number in decimal digits.
    fn number(&mut self, value: u64);
    /// A random number of so many digits, at most 16.
    fn digits(&mut self, digits: usize, first: First);
    /// A random time.
    fn time(&mut self);
    /// A word.
    fn word(&mut self, vocabulary: &Vocabulary, draws: &mut Draws);
}

/// What the first of several digits may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    NotZero,
    Any,
}

/// Writes.
struct Written<'a> {
    out: &'a mut [u8],
    at: usize,
    noise: Draws,
}

impl Sink for Written<'_> {
    #[inline]
    fn text<const BYTES: usize>(&mut self, text: &[u8; BYTES]) {
        self.out[self.at..self.at + BYTES].copy_from_slice(text);
        self.at += BYTES;
    }

    fn escape(&mut self, escape: &[u8]) {
        self.out[self.at..self.at + escape.len()].copy_from_slice(escape);
        self.at += escape.len();
    }

    #[inline]
    fn number(&mut self, value: u64) {
        let digits = digits::count(value);
        digits::write(value, &mut self.out[self.at..self.at + digits]);
        self.at += digits;
    }

    #[inline]
    fn digits(&mut self, digits: usize, first: First) {
        let rest = &mut self.out[self.at..];
        let (stored, _) = rest.split_first_chunk_mut::<16>().expect("a line has room");
        let number_digits = if first == First::Any { 1 } else { digits };
        digits::scatter(number_digits, &mut self.noise, stored);
        self.at += digits;
    }

    #[inline]
    fn time(&mut self) {
        times::write(self.noise.word(), &mut self.out[self.at..]);
        self.at += TIME_BYTES;
    }

    #[inline]
    fn word(&mut self, vocabulary: &Vocabulary, draws: &mut Draws) {
        // Without the space behind it.
        self.at += vocabulary.write(draws, &mut self.out[self.at..]) - 1;
    }
}

/// Counts bytes.
struct Counted(usize);

impl Sink for Counted {
    #[inline]
    fn text<const BYTES: usize>(&mut self, _text: &[u8; BYTES]) {
        self.0 += BYTES;
    }

    #[inline]
    fn escape(&mut self, escape: &[u8]) {
        self.0 += escape.len();
    }

    #[inline]
    fn number(&mut self, value: u64) {
        self.0 += digits::count(value);
    }

    #[inline]
    fn digits(&mut self, digits: usize, _first: First) {
        self.0 += digits;
    }

    #[inline]
    fn time(&mut self) {
        self.0 += TIME_BYTES;
    }

    #[inline]
    fn word(&mut self, vocabulary: &Vocabulary, draws: &mut Draws) {
        self.0 += vocabulary.skip(draws) - 1;
    }
}

impl Data for Json {
    fn record_bytes_fixed(&self) -> Option<u64> {
        None
    }

    fn record_bytes_max(&self) -> usize {
        let strings = WORDS_MAX * WORD_BYTES_MAX + STRINGS_MAX * ESCAPE_BYTES_MAX;
        let numbers = ID_DIGITS_MAX + TIME_BYTES + SCORE_BYTES_MAX;
        // Words and digits are stored with what the next ones would overwrite.
        FRAME.len() + strings + numbers + WORD_BYTES_MAX
    }

    fn record_bytes(&self, number: u64) -> u64 {
        let (mut draws, _) = self.begin(number);
        let mut counted = Counted(0);
        self.line(number, &mut draws, &mut counted);
        counted.0 as u64
    }

    fn write(&self, number: u64, out: &mut [u8]) -> usize {
        let (mut draws, noise) = self.begin(number);
        let mut written = Written { out, at: 0, noise };
        self.line(number, &mut draws, &mut written);
        written.at
    }
}
