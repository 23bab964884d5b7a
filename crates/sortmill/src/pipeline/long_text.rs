//! Texts that are cut into so many parts that there may be no room for all of them at once: what becomes of such a text is
//! handed over as there is room, and the rest of it waits, beside what stays of its record.

use super::aggregate::Owned;
use super::column::{Value, row};
use super::letters::WordFinder;
use super::ngrams::Ngrams;
use super::parts::{How, Parts};
use super::verbs::Sink;
use crate::error::Result;

/// What becomes of a record may have so many bytes without being waited for: any mapper has room for that.
const AT_ONCE_BYTES: usize = 1 << 20;
/// So many bytes are made before it is asked again whether there is room.
const PIECE_BYTES: usize = 64 << 10;
/// What stands around a part in a pair.
const AROUND_BYTES: usize = 32;

/// A text that is being cut.
pub(super) struct Cutting {
    /// Where its record begins in its slab.
    pub place: u32,
    text: Vec<u8>,
    /// What makes rows of its words.
    rows: Option<Ngrams>,
    /// What stays of the record.
    kept: Vec<Owned>,
    /// Bytes of each record that is made besides the part.
    beside_bytes: usize,
    /// The byte to go on with; `None` at the end.
    from: Option<usize>,
}

impl Cutting {
    /// Begins with a `text`, beside what stays of its record, which begins at `place`, if it may become more than what is handed
    /// over at once. Texts of which one record is made never do.
    pub fn of<'v>(
        parts: &Parts,
        text: &[u8],
        kept: impl Iterator<Item = Value<'v>> + Clone,
        place: u32,
    ) -> Option<Box<Self>> {
        let words_each = parts.words_each()?;
        let kept_bytes: usize = kept.clone().map(|value| value.bytes().len() + 9).sum();
        let beside_bytes = AROUND_BYTES + kept_bytes;
        let cutting = || {
            Box::new(Self {
                place,
                text: text.to_vec(),
                rows: parts.rows_of_words(),
                kept: kept.map(Owned::new).collect(),
                beside_bytes,
                from: Some(0),
            })
        };
        may_be_much(text.len(), beside_bytes, words_each).then(cutting)
    }

    /// Hands over what becomes of it until `is_full`; answers whether that was all.
    pub fn go_on(
        &mut self,
        parts: &Parts,
        finder: &mut WordFinder,
        is_full: &dyn Fn() -> bool,
        next: Sink<'_>,
    ) -> Result<bool> {
        let Self {
            text,
            rows,
            kept,
            beside_bytes: beside,
            ..
        } = self;
        let beside = *beside;
        let mut put = |part: &[u8]| {
            let get = |number: usize| {
                let kept = kept.get(number).map(Owned::value);
                Ok(kept.unwrap_or(Value::Bytes(part)))
            };
            row(kept.len() + 1, get, &mut *next)
        };
        let mut from = self.from;
        while let Some(at) = from {
            from = match &parts.how {
                How::Words { lower } => {
                    let see = |piece: &[u8]| finder.each(piece, *lower, &mut put);
                    words((text, at), beside, 1, see)?
                }
                How::Split { by } => split((text, at), by, beside, &mut put)?,
                How::Ngrams { count, .. } => {
                    let rows = rows.as_mut().expect("they are made of such a text");
                    let see = |piece: &[u8]| rows.each(piece, finder, &mut put);
                    words((text, at), beside, *count, see)?
                }
                How::Fields { .. } | How::Extract { .. } => None,
            };
            if is_full() {
                break;
            }
        }
        self.from = from;
        Ok(from.is_none())
    }
}

/// Whether a text of `bytes` may become more than what is handed over at once: a part of each two bytes, as a record with what stays
/// beside it.
fn may_be_much(bytes: usize, beside: usize, words_each: usize) -> bool {
    let most = (bytes / 2 + 1).saturating_mul(beside);
    most.saturating_add(bytes.saturating_mul(words_each)) > AT_ONCE_BYTES
}

/// The words that wait of a text that is nothing but them, or rows of them, from a byte on.
#[derive(Default)]
pub(super) struct WordsLeft {
    text: Vec<u8>,
    at: usize,
    words_each: usize,
}

impl WordsLeft {
    /// Those of `text`, or its rows of so many, if they may have to wait.
    pub fn of(text: &[u8], words_each: usize) -> Option<Self> {
        may_be_much(text.len(), AROUND_BYTES, words_each).then(|| Self {
            text: text.to_vec(),
            at: 0,
            words_each,
        })
    }

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.at == self.text.len()
    }

    /// Hands texts that begin and end between words to `put` until `is_full`, or there are no more.
    ///
    /// # Errors
    /// Those of `put`.
    pub fn go_on(
        &mut self,
        is_full: &dyn Fn() -> bool,
        mut put: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        while !self.is_empty() {
            let rest = &self.text[self.at..];
            let end = piece_of_words(rest, AROUND_BYTES, self.words_each);
            let piece = &rest[..end.unwrap_or(rest.len())];
            self.at += piece.len();
            put(piece)?;
            if is_full() {
                break;
            }
        }
        if self.is_empty() {
            *self = Self::default();
        }
        Ok(())
    }
}

type Put<'p> = &'p mut dyn FnMut(&[u8]) -> Result<()>;

/// Has a piece seen, from byte `at` on, that ends between two words; where the next piece begins.
fn words(
    (text, at): (&[u8], usize),
    beside: usize,
    words_each: usize,
    see: impl FnOnce(&[u8]) -> Result<()>,
) -> Result<Option<usize>> {
    let rest = &text[at..];
    let end = piece_of_words(rest, beside, words_each);
    see(&rest[..end.unwrap_or(rest.len())])?;
    Ok(end.map(|end| at + end))
}

/// Where the words end that are handed over at once, or rows of so many, if there are more.
fn piece_of_words(text: &[u8], beside: usize, words_each: usize) -> Option<usize> {
    let wanted = PIECE_BYTES / words_each.saturating_add(beside / 2) + 1;
    let end = text.get(wanted..).and_then(border);
    end.map(|end| wanted + end)
}

/// Where between two words the first of `text` that is no letter nor digit stands, which may begin within a letter. No more is looked
/// at than a little behind it.
fn border(text: &[u8]) -> Option<usize> {
    const LOOK_BYTES: usize = 256;
    let is_within = |byte: &u8| (0x80..0xc0).contains(byte);
    let mut at = text
        .iter()
        .take(3)
        .take_while(|&byte| is_within(byte))
        .count();
    while at < text.len() {
        let end = text.len().min(at + LOOK_BYTES);
        for chunk in text[at..end].utf8_chunks() {
            let mut letters = chunk.valid().char_indices();
            if let Some((end, _)) = letters.find(|(_, letter)| !letter.is_alphanumeric()) {
                return Some(at + end);
            }
            at += chunk.valid().len();
            let invalid = chunk.invalid().len();
            // What is cut off may be the beginning of a letter: it is looked at again with what follows.
            let may_be_cut = at + invalid == end && end < text.len();
            if invalid > 0 && !may_be_cut {
                return Some(at);
            }
        }
    }
    None
}

/// The parts between the places where `by` is, from byte `at` on; where the part behind them begins.
fn split(
    (text, at): (&[u8], usize),
    by: &[u8],
    beside: usize,
    put: Put<'_>,
) -> Result<Option<usize>> {
    let (mut from, mut made) = (at, 0);
    while made < PIECE_BYTES {
        let Some(found) = memchr::memmem::find(&text[from..], by) else {
            put(&text[from..])?;
            return Ok(None);
        };
        put(&text[from..from + found])?;
        made += found + beside;
        from += found + by.len();
    }
    Ok(Some(from))
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use std::cell::Cell;

    use super::super::parts::{ngrams, split, words};
    use super::super::verbs::{Going, Step, Steps};
    use super::*;
    use crate::batch::Pause;

    /// What comes of a text in pieces, with room for `room` records at a time, and all at once.
    fn check(parts: &Parts, text: &str, room: usize) {
        assert!(parts.wrong().is_none());
        let step = Step::PartsBeside {
            at: 0,
            kept: vec![1],
            parts: parts.clone(),
        };
        let mut steps = Steps::new(&[step]);
        let (sunk, blamed) = (Cell::new(0), Cell::new(None));
        let (mut all, taken): (Vec<(Vec<u8>, u64)>, _) = (Vec::new(), Cell::new(0));
        let mut turns = 0;
        {
            let mut sink = |made: &[Value<'_>]| {
                let Value::U64(number) = made[0] else {
                    panic!("{made:?}");
                };
                all.push((made[1].bytes().to_vec(), number));
                taken.set(taken.get() + 1);
                Ok(())
            };
            let is_full = || taken.get() >= room;
            let going = Going {
                is_full: &is_full,
                ..Going::of_no_place(&sunk, &blamed)
            };
            let records = [text, "a b,c"].map(|text| Value::Bytes(text.as_bytes()));
            for (number, text) in records.into_iter().enumerate() {
                let record = [text, Value::U64(number as u64)];
                steps.go(going, &record, &mut sink).unwrap();
                while steps.is_held() {
                    taken.set(0);
                    turns += 1;
                    steps.pause(Pause::Room, going, &mut sink).unwrap();
                }
            }
        }
        let mut wanted: Vec<(Vec<u8>, u64)> = Vec::new();
        for (number, text) in [text, "a b,c"].into_iter().enumerate() {
            let all_words: Vec<&str> = (text.split(|letter: char| !letter.is_alphanumeric()))
                .filter(|word| !word.is_empty())
                .collect();
            let made: Vec<String> = match &parts.how {
                How::Words { .. } => all_words.iter().map(|&word| word.to_owned()).collect(),
                How::Ngrams { count, .. } => {
                    all_words.windows(*count).map(|of| of.join(" ")).collect()
                }
                How::Split { by } => {
                    let by = std::str::from_utf8(by).unwrap();
                    text.split(by).map(str::to_owned).collect()
                }
                _ => unreachable!(),
            };
            wanted.extend(
                made.into_iter()
                    .map(|part| (part.into_bytes(), number as u64)),
            );
        }
        assert!(
            all == wanted,
            "{parts:?}: {} and {}",
            all.len(),
            wanted.len()
        );
        assert!(turns > 1, "{parts:?}: {turns} turns");
    }

    /// Built-in verbs ended jobs of long lines: all that came of one had to lie in memory at once.
    #[test]
    fn long_texts_are_cut_as_there_is_room() {
        // Words of any length and script, what is no letter, empty parts, and a word longer than a piece.
        let pieces = [
            "a", "ärger ", ", ", ",,", "b1 ", "😀", "x,y z ", "_", "\u{300}",
        ];
        let mut text: String = (0..300_000)
            .map(|at| pieces[at * at % 61 % pieces.len()])
            .collect();
        text.insert_str(100_000, &"w".repeat(10_000));
        for room in [1, 5000] {
            check(&words("line"), &text, room);
            check(&split("line", ","), &text, room);
            check(&split("line", ",,"), &text, room);
            check(&ngrams("line", 3), &text, room);
        }
        // An end at a border, and a text with no border in it.
        check(&split("line", ","), &",".repeat(70_000), 10);
        check(&words("line"), &"a ".repeat(40_000), 10);
        check(&ngrams("line", 3000), &"a ".repeat(4000), 1);
        // Words of letters of three bytes, which are looked at in parts that end within one.
        let long = "語".repeat(50_000);
        check(&words("line"), &format!("a {long} b {long} c"), 1);
        // Borders that are not ASCII.
        check(&words("line"), &"語文，字。".repeat(20_000), 10);
    }

    /// For each piece all of the rest was looked at for a border, so a long line took time in the square of its length: of 16 MiB, as
    /// here, most of a minute.
    #[test]
    fn a_border_is_looked_for_nearby() {
        let far = |tail: &[u8]| [&b"ab ".repeat(30)[..], tail].concat();
        assert_eq!(border(&far(b"")), Some(2));
        assert_eq!(border("語語".as_bytes()), None);
        assert_eq!(border(&"語".as_bytes()[1..]), None);
        for length in 250..262 {
            let word = "w".repeat(length);
            assert_eq!(border(word.as_bytes()), None);
            for (tail, is_border) in [("語x", false), ("。x", true), ("😀", true)] {
                let text = format!("{word}{tail}");
                assert_eq!(
                    border(text.as_bytes()),
                    is_border.then_some(length),
                    "{tail} at {length}"
                );
                let cut = &text.as_bytes()[..length + 2];
                assert_eq!(border(cut), Some(length), "{tail} cut off at {length}");
            }
            let mut bad = word.clone().into_bytes();
            bad.extend_from_slice(b"\xff\xfe");
            assert_eq!(border(&bad), Some(length));
        }
        check(
            &words("line"),
            &format!("{} ", "w".repeat(2000)).repeat(8000),
            10,
        );
    }

    /// Two such steps in a row: what the first one makes waits until the second has room again.
    #[test]
    fn no_turn_hands_over_much_more_than_there_is_room_for() {
        let steps = [split("line", ";"), words("part")].map(|parts| Step::Parts { at: 0, parts });
        let mut steps = Steps::new(&steps);
        let text = ["ab ".repeat(100_000), "cd ".repeat(100_000)]
            .join(";")
            .repeat(3);
        let (sunk, blamed) = (Cell::new(0), Cell::new(None));
        let (taken, mut count, mut most) = (Cell::new(0), 0, 0);
        let mut sink = |made: &[Value<'_>]| {
            taken.set(taken.get() + AROUND_BYTES + made[0].bytes().len());
            count += 1;
            Ok(())
        };
        let is_full = || taken.get() >= PIECE_BYTES;
        let going = Going {
            is_full: &is_full,
            ..Going::of_no_place(&sunk, &blamed)
        };
        steps
            .go(going, &[Value::Bytes(text.as_bytes())], &mut sink)
            .unwrap();
        while steps.is_held() {
            most = most.max(taken.replace(0));
            steps.pause(Pause::Room, going, &mut sink).unwrap();
        }
        assert_eq!(count, 600_000);
        assert!(most <= 4 * PIECE_BYTES, "{most}");
    }
}
