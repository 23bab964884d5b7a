//! Entries sorted word by word: first by the word that each has, then, where words are equal but keys may differ, by the next one.

use crate::order::{Format, Order};
use crate::stage::kernel::{self, Entry, LOOKED_BYTES};

/// After records have been sorted by so many words, whole keys are compared.
const WORDS_MAX: usize = 7;
/// Records are fetched so many entries ahead.
const AHEAD: usize = 16;

/// Records that entries tell of.
pub trait Records {
    /// The record at `location`, or what stands for it.
    fn record(&self, order: &Order, location: u32) -> &[u8];

    /// Fetches the first `bytes` of the record at `location` into the cache.
    fn prefetch(&self, location: u32, bytes: usize);
}

/// A location is an index.
impl Records for [&[u8]] {
    #[inline]
    fn record(&self, _: &Order, location: u32) -> &[u8] {
        self[location as usize]
    }

    #[inline]
    fn prefetch(&self, location: u32, bytes: usize) {
        kernel::prefetch(self[location as usize], 0, bytes);
    }
}

/// Sorts entries of which each has the word of its key that begins at byte `from`, as all bytes in front of that are alike.
pub fn sort<R: Records + ?Sized>(
    order: &Order,
    records: &R,
    from: usize,
    entries: &mut [Entry],
    scratch: &mut [Entry],
) {
    kernel::sort_by_words(entries, scratch, &|word| order.ends_from(word, from));
    refine(order, records, entries, scratch, (from, 1));
}

/// Sorts anew each run of entries whose words, which begin at byte `begin`, are equal while their keys may differ. They have
/// been sorted by so many `words`.
fn refine<R: Records + ?Sized>(
    order: &Order,
    records: &R,
    entries: &mut [Entry],
    scratch: &mut [Entry],
    (begin, words): (usize, usize),
) {
    // So few are compared by their whole keys at once. Two comparisons of keys that are made anew make four.
    let count_min = if order.is_encoded() { 3 } else { 8 };
    let mut from = 0;
    while from < entries.len() {
        let word = kernel::word(entries[from]);
        let mut count = 1;
        fetch_if_alike(order, records, entries, from, begin);
        while let Some(&entry) = entries.get(from + count)
            && kernel::word(entry) == word
        {
            fetch_if_alike(order, records, entries, from + count, begin);
            count += 1;
        }
        let run = &mut entries[from..from + count];
        from += count;
        if count == 1 || order.ends_from(word, begin) {
            continue;
        }
        let record = |entry: Entry| records.record(order, kernel::location(entry));
        if words == WORDS_MAX || count < count_min {
            run.sort_unstable_by(|&a, &b| {
                let order = order.compare(record(a), record(b));
                order.then(kernel::ordinal(a).cmp(&kernel::ordinal(b)))
            });
            continue;
        }
        let next = differ_from(order, records, run, begin + order.word_bytes());
        for at in 0..run.len() {
            fetch_ahead(order, records, run, at);
            let entry = run[at];
            let word = order.word_from(record(entry), next);
            run[at] = kernel::entry(word, kernel::ordinal(entry), kernel::location(entry));
        }
        kernel::sort_by_words(run, scratch, &|word| order.ends_from(word, next));
        refine(order, records, run, scratch, (next, words + 1));
    }
}

/// The first byte from `from` on in which not all keys are alike, or where their last word begins.
fn differ_from<R: Records + ?Sized>(
    order: &Order,
    records: &R,
    run: &[Entry],
    from: usize,
) -> usize {
    if order.is_encoded() {
        // Each word that is looked at costs as much as sorting by it.
        return from;
    }
    let record = |entry: Entry| records.record(order, kernel::location(entry));
    let first = record(run[0]);
    let mut until = usize::MAX;
    for at in 1..run.len() {
        fetch_ahead(order, records, run, at);
        until = order.alike_until(first, record(run[at]), from, until);
        if until == from {
            break;
        }
    }
    until
}

/// As far as records are soon looked at: lines until they end, which is looked for in so many bytes at once.
#[inline]
fn ahead_bytes(order: &Order) -> usize {
    match order.format() {
        Format::Lines => 2 * LOOKED_BYTES,
        _ => LOOKED_BYTES,
    }
}

/// Fetches a record that will have to be told from a neighbour by more than its word.
#[inline]
fn fetch_if_alike<R: Records + ?Sized>(
    order: &Order,
    records: &R,
    entries: &[Entry],
    at: usize,
    begin: usize,
) {
    if let Some(&[before, one, behind]) = entries.get(at + AHEAD - 1..at + AHEAD + 2) {
        let word = kernel::word(one);
        let is_alike = word == kernel::word(behind) || word == kernel::word(before);
        if is_alike && !order.ends_from(word, begin) {
            records.prefetch(kernel::location(one), ahead_bytes(order));
        }
    }
}

#[inline]
fn fetch_ahead<R: Records + ?Sized>(order: &Order, records: &R, entries: &[Entry], at: usize) {
    if let Some(&later) = entries.get(at + AHEAD) {
        records.prefetch(kernel::location(later), ahead_bytes(order));
    }
}
