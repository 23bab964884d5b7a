//! What is known of a row of records: of one chunk by itself, and of all chunks so far, joined in order.
//!
//! ```text
//! chunk 6                  chunk 7                     chunk 8
//! [first ... last key] <─> [first record ... last] <─> [first ...
//!                       ^ joined here: only the last key of what came before is kept
//! ```
//!
//! No I/O and no threads. A [`Seen`] borrows its chunk, so that of a whole row only one key is copied.

use std::cmp::Ordering;

use crate::batch::Chunk;
use crate::fingerprint::Fingerprint;
use crate::gen_records::RECORD_BYTES;
use crate::long::Long;
use crate::manifest;
use crate::order::Order;
use crate::summary::Summary;

/// A record whose key is less than that of the record before it, or the same where there may be one only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Break {
    /// Its number in the whole row, from 0.
    pub record: u64,
    /// Which input it lies in, from 0.
    pub input: usize,
    /// Where it begins in that input, in bytes.
    pub offset: u64,
    /// The whole record.
    pub text: Vec<u8>,
}

/// What is known of all chunks so far.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Records, bytes and the keyed sum.
    pub fingerprint: Fingerprint,
    /// The sum modulo 2^128 of the CRC-32 of each record, if it was asked for.
    pub checksum: u128,
    /// Records with the same key as the one before.
    pub duplicates: u64,
    /// Records with a lesser key than the one before, or with the same one where there may be one only.
    pub unordered: u64,
    /// The first of those.
    pub first_unordered: Option<Break>,
    /// The same as the benchmark's validator tells it, where it could read the records.
    pub summary: Option<Summary>,
    /// The first lines, which are no records, of the first input that has any.
    pub header: Vec<u8>,
    /// The same of each input by itself, if that was asked for.
    pub inputs: Option<Vec<OfInput>>,
    last_key: Vec<u8>,
    /// So many bytes the last key has here, if it has more.
    last_cut: Option<usize>,
}

/// What is known of one input: its records, and the first and last key as a manifest has them.
#[derive(Clone, Debug, Default)]
pub struct OfInput {
    pub fingerprint: Fingerprint,
    pub first_key: Option<Vec<u8>>,
    pub last_key: Option<Vec<u8>>,
}

impl Row {
    /// A row without records. `summary` says whether the benchmark's summary is wanted; records must then be
    /// its own.
    #[must_use]
    pub fn new(summary: bool) -> Self {
        Self {
            summary: summary.then_some(Summary::EMPTY),
            ..Self::default()
        }
    }

    /// Appends the records of the next chunk, which lie in `input`.
    pub fn then(&mut self, order: &Order, input: usize, seen: &Seen<'_>) {
        if seen.fingerprint.records == 0 {
            return;
        }
        let before = self.fingerprint.records;
        if before > 0 {
            let cut = shorter(seen.first_cut, self.last_cut);
            let compared = match cut {
                None => order.compare_with_key(seen.first, &self.last_key),
                Some(cut) => head(order.plain_key(seen.first), cut).cmp(head(&self.last_key, cut)),
            };
            // Heads that are the same do not tell whether the keys are.
            let is_same = compared.is_eq() && cut.is_none();
            self.duplicates += u64::from(is_same);
            if compared.is_lt() || (is_same && order.is_unique()) {
                self.unordered += 1;
                self.note_break(before, input, seen.offset, seen.first);
            }
        }
        if let Some((index, offset, text)) = seen.first_unordered {
            self.note_break(before + index, input, offset, text);
        }
        self.duplicates += seen.duplicates;
        self.unordered += seen.unordered;
        self.checksum = self.checksum.wrapping_add(seen.checksum);
        self.fingerprint.merge(&seen.fingerprint);
        if let Some(inputs) = &mut self.inputs {
            let own = &mut inputs[input];
            own.fingerprint.merge(&seen.fingerprint);
            own.first_key
                .get_or_insert_with(|| manifest::key(order, seen.first));
            own.last_key = Some(manifest::key(order, seen.last));
        }
        self.last_key.clear();
        order.key_into(seen.last, &mut self.last_key);
        self.last_cut = seen.last_cut;
        if let Some(summary) = &mut self.summary {
            summary.then(&seen.summary());
        }
    }

    fn note_break(&mut self, record: u64, input: usize, offset: u64, text: &[u8]) {
        self.first_unordered.get_or_insert_with(|| Break {
            record,
            input,
            offset,
            text: text.to_vec(),
        });
    }
}

/// What is known of the records of one chunk.
pub struct Seen<'a> {
    fingerprint: Fingerprint,
    checksum: u128,
    duplicates: u64,
    unordered: u64,
    /// Index in the chunk, offset in the input, and the record.
    first_unordered: Option<(u64, u64, &'a [u8])>,
    /// Where the first record begins in its input.
    offset: u64,
    first: &'a [u8],
    last: &'a [u8],
    last_word: u64,
    /// So many bytes of its key the first record has here, if its key has more; the same of the last.
    first_cut: Option<usize>,
    last_cut: Option<usize>,
}

/// The lesser one, if any.
fn shorter(a: Option<usize>, b: Option<usize>) -> Option<usize> {
    a.into_iter().chain(b).min()
}

fn head(key: &[u8], bytes: usize) -> &[u8] {
    &key[..key.len().min(bytes)]
}

impl<'a> Seen<'a> {
    /// Looks at every record of `chunk`. `key` is the fingerprint's; the CRC-32 are taken if `checksum`.
    #[must_use]
    pub fn look(order: &Order, chunk: &'a Chunk, key: u64, checksum: bool) -> Self {
        let long_bytes = chunk.long.as_ref().map_or(0, Long::bytes);
        let offset = chunk.offset.saturating_sub(long_bytes);
        let mut seen = Self {
            fingerprint: Fingerprint::default(),
            checksum: 0,
            duplicates: 0,
            unordered: 0,
            first_unordered: None,
            offset,
            first: &[],
            last: &[],
            last_word: 0,
            first_cut: None,
            last_cut: None,
        };
        let whole: &[u8] = match &chunk.long {
            Some(Long::Whole(whole)) => whole,
            Some(Long::Passed(summed)) => {
                // It has no CRC-32, which nobody asks for where records need not be whole.
                seen.first = &summed.short;
                (seen.last, seen.last_word) = (seen.first, order.word(seen.first, 0));
                let head_bytes = order.plain_key(seen.first).len();
                seen.first_cut = (summed.key_bytes > head_bytes as u64).then_some(head_bytes);
                seen.last_cut = seen.first_cut;
                seen.fingerprint.add_hashed(summed.bytes, summed.hash);
                &[]
            }
            Some(Long::Body(..)) | None => &[],
        };
        for mut rest in [whole, &chunk.buffer[chunk.records.clone()]] {
            while !rest.is_empty() {
                let (record, after) = rest.split_at(order.record_bytes(rest));
                seen.add(order, record, key);
                if checksum {
                    seen.checksum += u128::from(crc32fast::hash(record));
                }
                rest = after;
            }
        }
        seen
    }

    #[inline]
    fn add(&mut self, order: &Order, record: &'a [u8], key: u64) {
        let word = order.word(record, 0);
        if self.fingerprint.records == 0 {
            self.first = record;
        } else {
            // Words settle nearly all pairs without a second look at the one before.
            let compared = self.last_word.cmp(&word).then_with(|| {
                match self.last_cut {
                    _ if order.ends_with(word, 0) => Ordering::Equal,
                    None => order.compare(self.last, record),
                    // What is beyond its head cannot be compared.
                    Some(cut) => order
                        .plain_key(self.last)
                        .cmp(head(order.plain_key(record), cut)),
                }
            });
            let is_same = compared.is_eq() && self.last_cut.is_none();
            self.last_cut = None;
            self.duplicates += u64::from(is_same);
            if compared.is_gt() || (is_same && order.is_unique()) {
                let Fingerprint { records, bytes, .. } = self.fingerprint;
                self.unordered += 1;
                self.first_unordered
                    .get_or_insert((records, self.offset + bytes, record));
            }
        }
        self.fingerprint.add(record, key);
        (self.last, self.last_word) = (record, word);
    }

    /// The same as the benchmark's validator tells it. The records must be its own, and there must be one.
    fn summary(&self) -> Summary {
        let whole = |record: &[u8]| -> [u8; RECORD_BYTES] {
            let record = record.try_into();
            record.expect("a summary is of the benchmark's records")
        };
        Summary {
            first_unordered: self
                .first_unordered
                .map_or(0, |(index, ..)| u128::from(index)),
            unordered_count: u128::from(self.unordered),
            record_count: u128::from(self.fingerprint.records),
            duplicate_count: u128::from(self.duplicates),
            checksum: self.checksum,
            first: whole(self.first),
            last: whole(self.last),
        }
    }
}
