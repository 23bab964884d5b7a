//! A tree of losers over rows of sorted records: which row has the next one.
//!
//! In come rows, each with a current record or at its end; out comes the row whose record is the least, and once that
//! row has moved on, the next. Each inner node keeps the row that lost there, node 0 the one that won in all, so that
//! only the matches between the winner's leaf and the root are played again (Knuth, The Art of Computer Programming
//! 3, 5.4.1). The rows own the records.
//!
//! Matches are decided by **offset-value codes** (Conner, IBM Technical Disclosure Bulletin, 1977; Graefe and Do,
//! Offset-value coding in database query processing, EDBT 2023). A code says how a record differs from one that is
//! not after it: how many words of the key both share, and the record's next word. Of two records with codes
//! relative to the same one, the one that shares more is the lesser, and of two that share as much, the one whose
//! word is: a match is one comparison of numbers, and no byte of a key is looked at. Only where codes are equal are
//! further words fetched, from there on, and the loser's new code, relative to the winner, comes out of that.
//!
//! ```text
//!              shared   next word       base, the last winner:  a a a a
//!  a a a c        3         c           the lesser: it shares more
//!  a a b a        2         b
//!  a a b d        2         b           equal codes: word 3 tells, a before d; the loser has (3, d) now
//! ```
//!
//! Every loser on the winner's way up lost to just that winner, so all codes that meet are relative to it, as is the
//! code with which the winner's row moves on: the record it has now against the one it had.

use std::cmp::Ordering;

use crate::error::Result;
use crate::order::Order;

/// How a record differs from one that is not after it. Of two relative to the same record, the lesser is the lesser
/// record's; equal ones tell nothing beyond the word they name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Code(u128);

impl Code {
    /// Of a record whose key is that of the other.
    pub const EQUAL: Self = Self(0);
    /// Of a row at its end: behind all records.
    pub const END: Self = Self(u128::MAX);

    /// The key shares `shared` words with the other; its next one is `word`.
    fn new(shared: usize, word: u64) -> Self {
        Self(u128::from(u64::MAX - 1 - shared as u64) << 64 | u128::from(word))
    }

    fn shared(self) -> usize {
        (u64::MAX - 1 - (self.0 >> 64) as u64) as usize
    }

    fn word(self) -> u64 {
        self.0 as u64
    }

    /// The code of the first record of a row, relative to one that is before all and shares nothing with any.
    #[must_use]
    pub fn first(order: &Order, record: &[u8]) -> Self {
        Self::new(0, order.word(record, 0))
    }

    /// The code of `record` relative to `before`, looking at no more than `words_max` words of the keys: of two that
    /// share so many it says just that. `None` if the words show that it belongs before the other.
    #[inline]
    #[must_use]
    pub fn after(order: &Order, before: &[u8], record: &[u8], words_max: usize) -> Option<Self> {
        for depth in 0..words_max {
            let (one, other) = (order.word(before, depth), order.word(record, depth));
            if one != other {
                return (one < other).then(|| Self::new(depth, other));
            }
            if order.ends_with(other, depth) {
                return Some(Self::EQUAL);
            }
        }
        Some(Self::new(words_max, 0))
    }
}

/// The rows that a tree is over.
pub trait Rows {
    /// Format and key of all records.
    fn order(&self) -> &Order;
    /// The current record of `row`, or what stands for it as far as [`Rows::words_max`] words tell.
    fn record(&self, row: usize) -> &[u8];
    /// Decides between equal keys, the lesser first; of equal ones the lesser row is first.
    fn place(&self, row: usize) -> u64;
    /// So many words of a key may be looked at; what more there is only [`Rows::settle`] knows.
    fn words_max(&self) -> usize;
    /// Compares the whole keys of two rows' records whose first [`Rows::words_max`] words are equal.
    ///
    /// # Errors
    /// Where that takes reading, what went wrong with it.
    fn settle(&mut self, one: usize, other: usize) -> Result<Ordering>;
}

/// The tree.
pub struct Losers {
    /// Inner nodes, from 1; who won in all stands at 0.
    nodes: Vec<Entry>,
    /// Who climbs while all matches are played.
    climbing: Vec<Entry>,
    count: usize,
    /// Words of keys that matches have fetched so far.
    pub word_count: u64,
}

/// A row in a match.
#[derive(Clone, Copy)]
struct Entry {
    code: Code,
    row: usize,
}

impl Losers {
    /// Plays all matches between rows whose current records have `codes`: [`Code::first`], or [`Code::END`].
    ///
    /// # Errors
    /// Of [`Rows::settle`].
    pub fn new(rows: &mut impl Rows, codes: &[Code]) -> Result<Self> {
        let count = codes.len();
        let nobody = Entry {
            code: Code::END,
            row: 0,
        };
        let mut tree = Self {
            nodes: vec![nobody; count.max(1)],
            climbing: vec![nobody; 2 * count],
            count,
            word_count: 0,
        };
        tree.start(rows, codes)?;
        Ok(tree)
    }

    /// Forgets what came out and plays all matches, as [`Losers::new`] does: for a row that goes on with a record that
    /// belongs before the one that won, so that no code tells how it differs.
    ///
    /// # Errors
    /// Of [`Rows::settle`].
    pub fn start(&mut self, rows: &mut impl Rows, codes: &[Code]) -> Result<()> {
        assert_eq!(codes.len(), self.count, "a code for each row");
        // Leaf `row` stands below node (count + row) / 2.
        for (row, &code) in codes.iter().enumerate() {
            self.climbing[self.count + row] = Entry { code, row };
        }
        for node in (1..self.count).rev() {
            let (one, other) = (self.climbing[2 * node], self.climbing[2 * node + 1]);
            (self.climbing[node], self.nodes[node]) = self.play(rows, one, other)?;
        }
        if let Some(&winner) = self.climbing.get(1) {
            self.nodes[0] = winner;
        }
        Ok(())
    }

    /// The row that has the least record; `None` once all rows are at their ends.
    #[inline]
    #[must_use]
    pub fn winner(&self) -> Option<usize> {
        let Entry { code, row } = self.nodes[0];
        (code != Code::END).then_some(row)
    }

    /// Whether the key of that record is the same as that of the one which won before it.
    #[inline]
    #[must_use]
    pub fn is_repeat(&self) -> bool {
        self.nodes[0].code == Code::EQUAL
    }

    /// The row that won has moved on: its record has `code` relative to the one it had ([`Code::after`]), or it is at
    /// its end. Plays its matches again, from its leaf to the root.
    ///
    /// # Errors
    /// Of [`Rows::settle`].
    #[inline]
    pub fn replay(&mut self, rows: &mut impl Rows, code: Code) -> Result<()> {
        let row = self.nodes[0].row;
        let mut climbing = Entry { code, row };
        let mut node = (self.count + row) / 2;
        while node > 0 {
            let waiting = self.nodes[node];
            match climbing.code.cmp(&waiting.code) {
                Ordering::Less => {}
                Ordering::Greater => {
                    self.nodes[node] = climbing;
                    climbing = waiting;
                }
                Ordering::Equal => {
                    (climbing, self.nodes[node]) = self.decide(rows, climbing, waiting)?;
                }
            }
            node /= 2;
        }
        self.nodes[0] = climbing;
        Ok(())
    }

    /// One match: the winner, and the loser with its code relative to that.
    fn play(&mut self, rows: &mut impl Rows, one: Entry, other: Entry) -> Result<(Entry, Entry)> {
        match one.code.cmp(&other.code) {
            Ordering::Less => Ok((one, other)),
            Ordering::Greater => Ok((other, one)),
            Ordering::Equal => self.decide(rows, one, other),
        }
    }

    /// A match between equal codes.
    #[cold]
    fn decide(&mut self, rows: &mut impl Rows, one: Entry, other: Entry) -> Result<(Entry, Entry)> {
        let in_order = |is_less: bool, code: Code| {
            let (winner, loser) = if is_less { (one, other) } else { (other, one) };
            Ok((winner, Entry { code, ..loser }))
        };
        if one.code == Code::END {
            return Ok((one, other));
        }
        if one.code == Code::EQUAL {
            return in_order(is_first(rows, one.row, other.row), Code::EQUAL);
        }
        let (mut depth, mut word) = (one.code.shared(), one.code.word());
        let words_max = rows.words_max();
        while depth < words_max {
            if rows.order().ends_with(word, depth) {
                return in_order(is_first(rows, one.row, other.row), Code::EQUAL);
            }
            depth += 1;
            if depth == words_max {
                break;
            }
            word = rows.order().word(rows.record(one.row), depth);
            let other_word = rows.order().word(rows.record(other.row), depth);
            self.word_count += 2;
            if word != other_word {
                let code = Code::new(depth, word.max(other_word));
                return in_order(word < other_word, code);
            }
        }
        let told = rows.settle(one.row, other.row)?;
        let is_less = told.is_lt() || (told.is_eq() && is_first(rows, one.row, other.row));
        in_order(is_less, Code::new(words_max, 0))
    }
}

/// Which of two rows with equal keys comes first.
fn is_first(rows: &impl Rows, one: usize, other: usize) -> bool {
    (rows.place(one), one) < (rows.place(other), other)
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::order::{Format, KeyPart};

    /// Rows in memory: records, sorted, each with its place.
    struct Model {
        order: Order,
        words_max: usize,
        rows: Vec<Vec<(Vec<u8>, u64)>>,
        /// Where each row stands.
        at: Vec<usize>,
        settled: u64,
    }

    impl Rows for Model {
        fn order(&self) -> &Order {
            &self.order
        }

        fn record(&self, row: usize) -> &[u8] {
            &self.rows[row][self.at[row]].0
        }

        fn place(&self, row: usize) -> u64 {
            self.rows[row][self.at[row]].1
        }

        fn words_max(&self) -> usize {
            self.words_max
        }

        fn settle(&mut self, one: usize, other: usize) -> Result<Ordering> {
            self.settled += 1;
            Ok(self.order.compare(self.record(one), self.record(other)))
        }
    }

    /// Deals records out to rows, sorts each, and merges them. Answers how many words that took, those of codes
    /// included, beside the records in the order in which they came out.
    fn merge(model: &mut Model) -> (u64, Vec<(Vec<u8>, u64)>) {
        let order = model.order.clone();
        let codes: Vec<Code> = model
            .rows
            .iter()
            .map(|row| {
                row.first()
                    .map_or(Code::END, |(record, _)| Code::first(&order, record))
            })
            .collect();
        let mut tree = Losers::new(model, &codes).unwrap();
        let (mut out, mut words) = (Vec::new(), 0);
        while let Some(row) = tree.winner() {
            let at = model.at[row];
            out.push(model.rows[row][at].clone());
            model.at[row] += 1;
            let code = match model.rows[row].get(at + 1) {
                None => Code::END,
                Some((record, _)) => {
                    let before = &model.rows[row][at].0;
                    Code::after(&order, before, record, model.words_max).expect("a sorted row")
                }
            };
            if code != Code::END && code != Code::EQUAL {
                words += 2 * (code.shared() as u64 + 1);
            }
            tree.replay(model, code).unwrap();
        }
        (words + tree.word_count, out)
    }

    fn check(
        order: &Order,
        words_max: usize,
        records: Vec<(usize, Vec<u8>, u64)>,
        row_count: usize,
    ) -> (u64, u64) {
        let mut rows = vec![Vec::new(); row_count];
        for (row, record, place) in records {
            rows[row].push((record, place));
        }
        let sort = |rows: &mut Vec<(usize, (Vec<u8>, u64))>| {
            rows.sort_by(|(a, (x, p)), (b, (y, q))| order.compare(x, y).then((p, a).cmp(&(q, b))));
        };
        let mut wanted = Vec::new();
        for (number, row) in rows.iter_mut().enumerate() {
            let mut numbered: Vec<_> = row.drain(..).map(|record| (number, record)).collect();
            sort(&mut numbered);
            row.extend(numbered.iter().map(|(_, record)| record.clone()));
            wanted.extend(numbered);
        }
        sort(&mut wanted);
        let mut model = Model {
            order: order.clone(),
            words_max,
            at: vec![0; row_count],
            rows,
            settled: 0,
        };
        let (words, out) = merge(&mut model);
        let wanted: Vec<_> = wanted.into_iter().map(|(_, record)| record).collect();
        assert!(out == wanted, "{row_count} rows, {words_max} words");
        (words, model.settled)
    }

    fn seed() -> u64 {
        let seed = std::env::var("SEED")
            .ok()
            .and_then(|text| text.parse().ok());
        let seed = seed.unwrap_or(1);
        println!("SEED={seed}");
        seed
    }

    /// Splitmix64.
    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A key of 0 to 40 bytes of few letters behind one of few prefixes of 0 to 300 bytes.
    fn key(state: &mut u64) -> Vec<u8> {
        let prefix_bytes = [0, 0, 3, 7, 14, 30, 300][(random(state) % 7) as usize];
        let length = [0, 1, 6, 7, 8, 13, 14, 15, 40][(random(state) % 9) as usize];
        let letters = 1 + random(state) % 3;
        let mut key = vec![b'p'; prefix_bytes];
        key.extend((0..length).map(|_| [0, b'a', 0xff][(random(state) % letters) as usize]));
        key
    }

    #[test]
    fn rows_come_out_as_a_stable_sort_has_them() {
        let mut state = seed();
        for round in 0..400 {
            let row_count = [0, 1, 2, 3, 5, 8, 17, 64][(random(&mut state) % 8) as usize];
            let count = random(&mut state) % 400;
            let order = match round % 3 {
                0 => Order::lines(),
                1 => Order::new(Format::Kv, &[]).unwrap(),
                _ => Order::new(Format::Fixed(24), &[KeyPart::plain(1, 20)]).unwrap(),
            };
            let record = |key: Vec<u8>, state: &mut u64| match order.format() {
                Format::Lines | Format::Quoted(_) => [&key[..], b"\n"].concat(),
                Format::Kv => {
                    let value = vec![b'v'; (random(state) % 20) as usize];
                    let lengths = [key.len() as u32, value.len() as u32].map(u32::to_le_bytes);
                    [&lengths.concat()[..], &key[..], &value[..]].concat()
                }
                Format::Fixed(_) => {
                    let mut record = [random(state) as u8; 24];
                    let from = key.len().saturating_sub(20);
                    record[1..21].fill(0);
                    record[1..1 + key.len() - from].copy_from_slice(&key[from..]);
                    record.to_vec()
                }
            };
            let mut make = |_| {
                let row = (random(&mut state) % row_count.max(1) as u64) as usize;
                let key = key(&mut state);
                (row, record(key, &mut state), random(&mut state) % 3)
            };
            let count = if row_count == 0 { 0 } else { count };
            let records: Vec<_> = (0..count).map(&mut make).collect();
            for words_max in [1, 2, 5, usize::MAX] {
                check(&order, words_max, records.clone(), row_count);
            }
        }
    }

    /// Keys that share 1 KB: a match that compares keys looks at all of that, and a record is in six matches here.
    /// With codes it is looked at about once for each record, when its row moves on.
    #[test]
    fn what_keys_share_is_looked_at_once() {
        let mut state = seed();
        let (count, prefix_bytes) = (20_000, 1001);
        let mut make = |_| {
            let mut line = vec![b'p'; prefix_bytes];
            line.extend(format!("{:016x}\n", random(&mut state)).bytes());
            ((random(&mut state) % 64) as usize, line, 0)
        };
        let records: Vec<_> = (0..count).map(&mut make).collect();
        let (words, _) = check(&Order::lines(), usize::MAX, records, 64);
        let shared_words = prefix_bytes as u64 / 7;
        let whole_keys = count * 6 * 2 * shared_words;
        println!("{words} words instead of {whole_keys}");
        assert!(words * 5 < whole_keys);
    }

    /// Equal keys are told by their codes: no word is fetched again, and no key is settled.
    #[test]
    fn equal_keys_take_no_words() {
        let records = (0..9_000).map(|at| (at % 9, vec![b'k'; 700], 0));
        let records: Vec<_> = records
            .map(|(row, key, place)| (row, [&key[..], b"\n"].concat(), place))
            .collect();
        let (words, settled) = check(&Order::lines(), usize::MAX, records, 9);
        assert!(words < 3_000, "{words}");
        assert_eq!(settled, 0);
    }

    #[test]
    fn what_is_out_of_order_has_no_code() {
        let order = Order::lines();
        for (before, record, is_after) in [
            (&b"b\n"[..], &b"a\n"[..], false),
            (b"ab\n", b"a\n", false),
            (b"aaaaaaaab\n", b"aaaaaaaaa\n", false),
            (b"a\0\n", b"a\n", false),
            (b"a\n", b"a\0\n", true),
            (b"a\n", b"a\n", true),
            (b"\n", b"\n", true),
        ] {
            let code = Code::after(&order, before, record, usize::MAX);
            assert_eq!(code.is_some(), is_after, "{before:?} {record:?}");
        }
    }
}
