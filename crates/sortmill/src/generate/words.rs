//! Lines of words that occur by Zipf's law, from a vocabulary made up for the seed.
//!
//! A word is drawn from a table and stored as 16 bytes, of which the next one overwrites the excess: there is
//! neither a search nor a loop over letters.

use std::collections::HashSet;

use super::data::{Data, Draws};
use super::zipf::Alias;

/// Words, the most frequent first, and how frequent they are.
pub struct Vocabulary {
    /// The letters, a space, and in the last byte how many these are together.
    words: Vec<[u8; WORD_BYTES_MAX]>,
    slots: Vec<Slot>,
}

/// One of as many equally likely ones as there are words: belongs to the word of its own number, and to
/// another. It knows the bytes of both, so that who wants no more need not look at the words.
#[derive(Clone, Copy)]
struct Slot {
    /// Below which 32 random bits it is its own word.
    own_below: u32,
    /// The other word's number, and in the lowest bits the bytes of the other and of its own word.
    packed: u32,
}

const LENGTH_BITS: u32 = 4;

/// What a word is stored in, with the space behind it.
pub const WORD_BYTES_MAX: usize = 16;
const LETTERS_MAX: usize = WORD_BYTES_MAX - 2;

/// The most words of a vocabulary.
pub const VOCABULARY_MAX: u32 = 1 << 22;
const _: () = assert!(VOCABULARY_MAX <= 1 << (32 - 2 * LENGTH_BITS));
const _: () = assert!(LETTERS_MAX + 1 < 1 << LENGTH_BITS);

impl Vocabulary {
    /// So many different words, 1 to [`VOCABULARY_MAX`], of 1 to 14 letters from `a` to `z`. The `k`-th has
    /// a probability in proportion to `1 / k^exponent`, and rare ones are longer.
    pub fn new(seed: u64, count: u32, exponent: f64) -> Self {
        let mut draws = Draws::of(seed, u64::MAX);
        let mut taken = HashSet::with_capacity(count as usize);
        let mut words = Vec::with_capacity(count as usize);
        for rank in 0..count {
            let letters = 1 + (rank + 1).ilog2() * 9 / 20 + draws.below(4) as u32;
            let mut word = invent(letters as usize, &mut draws);
            let mut tries = letters;
            while !taken.insert(word) {
                // Short words are soon used up.
                tries += 1;
                word = invent(
                    (tries as usize / 4).max(letters as usize).min(LETTERS_MAX),
                    &mut draws,
                );
            }
            words.push(word);
        }
        let bytes_of = |number: usize| u32::from(words[number][WORD_BYTES_MAX - 1]);
        let slots = Alias::zipf(count, exponent)
            .into_slots()
            .into_iter()
            .enumerate()
            .map(|(own, (own_below, other))| Slot {
                own_below,
                packed: other << (2 * LENGTH_BITS)
                    | bytes_of(other as usize) << LENGTH_BITS
                    | bytes_of(own),
            })
            .collect();
        Self { words, slots }
    }

    /// Writes a word and a space into the first 16 bytes of `out`. Returns how many of these it takes.
    #[inline]
    pub fn write(&self, draws: &mut Draws, out: &mut [u8]) -> usize {
        let (own, slot, is_own) = self.draw(draws);
        let other = slot.packed >> (2 * LENGTH_BITS);
        let number = if is_own { own } else { other as usize };
        out[..WORD_BYTES_MAX].copy_from_slice(&self.words[number]);
        slot.bytes(is_own)
    }

    /// What [`write`](Self::write) would return.
    #[inline]
    pub fn skip(&self, draws: &mut Draws) -> usize {
        let (_, slot, is_own) = self.draw(draws);
        slot.bytes(is_own)
    }

    #[inline]
    fn draw(&self, draws: &mut Draws) -> (usize, Slot, bool) {
        let word = draws.word();
        let own = (((word >> 32) * self.slots.len() as u64) >> 32) as usize;
        let slot = self.slots[own];
        (own, slot, (word as u32) < slot.own_below)
    }
}

impl Slot {
    #[inline]
    fn bytes(self, is_own: bool) -> usize {
        let shift = if is_own { 0 } else { LENGTH_BITS };
        (self.packed >> shift) as usize & ((1 << LENGTH_BITS) - 1)
    }
}

/// Consonants and vowels in turn, as they come in English.
fn invent(letters: usize, draws: &mut Draws) -> [u8; WORD_BYTES_MAX] {
    const CONSONANTS: &[u8; 32] = b"ttttnnnnssssrrrhhhddlllccmmpfgbv";
    const VOWELS: &[u8; 8] = b"eeeaaiou";
    const RARE: &[u8; 8] = b"wykjxqzu";
    let letters = letters.min(LETTERS_MAX);
    let mut word = [b' '; WORD_BYTES_MAX];
    let vowel_first = draws.below(2) as usize;
    for (at, letter) in word[..letters].iter_mut().enumerate() {
        let draw = draws.word();
        *letter = match (at + vowel_first) % 2 {
            _ if draw >> 59 == 0 => RARE[draw as usize % 8],
            0 => CONSONANTS[draw as usize % 32],
            _ => VOWELS[draw as usize % 8],
        };
    }
    word[WORD_BYTES_MAX - 1] = letters as u8 + 1;
    word
}

/// Lines of such words.
pub struct Text {
    seed: u64,
    words_mean: u32,
    vocabulary: Vocabulary,
}

/// The most words of a line in the mean.
pub const WORDS_MAX: u32 = 10_000;

impl Text {
    /// Lines with `words_mean` words in the mean, 1 to [`WORDS_MAX`]; of none to twice as many, all numbers
    /// are equally likely.
    pub fn new(seed: u64, words_mean: u32, vocabulary: Vocabulary) -> Self {
        Self {
            seed,
            words_mean,
            vocabulary,
        }
    }

    fn begin(&self, number: u64) -> (u64, Draws) {
        let mut draws = Draws::of(self.seed, number);
        let words = draws.below(2 * u64::from(self.words_mean) + 1);
        (words, draws)
    }
}

impl Data for Text {
    fn record_bytes_fixed(&self) -> Option<u64> {
        None
    }

    fn record_bytes_max(&self) -> usize {
        // The last word is stored with what the next one would overwrite.
        2 * self.words_mean as usize * (LETTERS_MAX + 1) + WORD_BYTES_MAX
    }

    #[inline]
    fn record_bytes(&self, number: u64) -> u64 {
        let (words, mut draws) = self.begin(number);
        let letters: usize = (0..words).map(|_| self.vocabulary.skip(&mut draws)).sum();
        letters.max(1) as u64
    }

    #[inline]
    fn write(&self, number: u64, out: &mut [u8]) -> usize {
        let (words, mut draws) = self.begin(number);
        let mut at = 0;
        for _ in 0..words {
            at += self.vocabulary.write(&mut draws, &mut out[at..]);
        }
        // The space behind the last word, or nothing.
        let bytes = at.max(1);
        out[bytes - 1] = b'\n';
        bytes
    }
}
