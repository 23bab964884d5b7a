//! Sorted partition to records, by the user's function, proving the order on the way.
//!
//! Records are taken from where they lie in the order of their entries: the gather. Each is compared with
//! the one before it, so that a fault of the sorter ends the job instead of reaching the output.

use std::cmp::Ordering;

use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::long::{Item, Kept};
use crate::order::Order;

/// Bytes of an encoded key that are kept for the comparison with the next one.
const HEAD_BYTES: usize = 32;

/// Takes sorted records one after the other: checks their order and sums them up.
pub struct Gather<'a> {
    order: &'a Order,
    key: u64,
    previous: Option<(&'a [u8], u64, u64)>,
    /// How the key of the one before begins, and that of the next, where keys are encoded.
    heads: [Vec<u8>; 2],
    /// What has passed.
    pub fingerprint: Fingerprint,
}

impl<'a> Gather<'a> {
    /// Nothing has passed yet. `key` is the fingerprint's.
    #[must_use]
    pub fn new(order: &'a Order, key: u64) -> Self {
        Self {
            order,
            key,
            previous: None,
            heads: [Vec::new(), Vec::new()],
            fingerprint: Fingerprint::default(),
        }
    }

    /// The next record, which is number `ordinal` in the order of places.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] when it is out of order.
    #[inline]
    pub fn next(&mut self, record: &'a [u8], ordinal: u64) -> Result<()> {
        let word = match self.order.is_encoded() {
            true => self.encode(record),
            false => self.order.word(record, 0),
        };
        if let Some((before, before_word, before_ordinal)) = self.previous {
            let order =
                (before_word.cmp(&word)).then_with(|| self.compare_behind_words(before, record));
            let by_place = match self.order.is_unique() {
                true => Ordering::Equal,
                false => before_ordinal.cmp(&ordinal),
            };
            if order.then(by_place) != Ordering::Less {
                return Err(out_of_order());
            }
        }
        self.previous = Some((record, word, ordinal));
        self.fingerprint.add(record, self.key);
        Ok(())
    }

    /// Which of two records comes first, whose words are equal.
    fn compare_behind_words(&self, before: &[u8], record: &[u8]) -> Ordering {
        // Not for keys as they are: comparing two heads that were never filled takes an AVX-512 processor hundreds of
        // cycles, since a masked load from an address that is not mapped needs its microcode's assistance.
        if !self.order.is_encoded() {
            return self.order.compare(before, record);
        }
        let [before_head, head] = &self.heads;
        before_head
            .cmp(head)
            .then_with(|| match head.len() < HEAD_BYTES {
                true => Ordering::Equal,
                false => self.order.compare(before, record),
            })
    }

    /// Word 0 of the next record's key, of which the head is kept beside that of the one before.
    fn encode(&mut self, record: &[u8]) -> u64 {
        self.heads.swap(0, 1);
        let head = &mut self.heads[1];
        head.clear();
        self.order.key_head_into(record, HEAD_BYTES, head);
        self.order.word_of_key(head, 0)
    }
}

/// The same proof for records that do not stay where they are: the one before is kept as a copy, and so is the first.
pub struct Stream<'a> {
    order: &'a Order,
    head_bytes: usize,
    first: Kept,
    previous: Kept,
}

impl<'a> Stream<'a> {
    /// Nothing has passed yet. Of long keys heads of `head_bytes` are compared.
    #[must_use]
    pub fn new(order: &'a Order, head_bytes: usize) -> Self {
        Self {
            order,
            head_bytes,
            first: Kept::default(),
            previous: Kept::default(),
        }
    }

    /// The first and the last that passed, if any did.
    #[must_use]
    pub fn ends(&self) -> Option<[Item<'_>; 2]> {
        (!self.previous.is_empty()).then(|| [self.first.item(), self.previous.item()])
    }

    /// The record that passed last, or the short one that stands for it.
    #[must_use]
    pub fn last(&self) -> &[u8] {
        self.previous.item().short()
    }

    /// The next record.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] when its key is below that of the one before, as far as heads tell.
    pub fn next(&mut self, item: &Item<'_>) -> Result<()> {
        match self.previous.is_empty() {
            true => self.first.keep(item),
            false => check_order(self.order, self.head_bytes, &self.previous.item(), item)?,
        }
        self.previous.keep(item);
        Ok(())
    }
}

/// Checks that `behind` may come after `before`, as far as heads of `head_bytes` tell.
///
/// # Errors
/// [`ErrorKind::Lost`] when its key is below that one's, or the same where each comes once.
pub fn check_order(
    order: &Order,
    head_bytes: usize,
    before: &Item<'_>,
    behind: &Item<'_>,
) -> Result<()> {
    let is_wrong = match order.is_unique() {
        true => Ordering::is_ge,
        false => Ordering::is_gt,
    };
    match before.compare_heads(order, head_bytes, behind) {
        Some(compared) if is_wrong(compared) => Err(out_of_order()),
        _ => Ok(()),
    }
}

/// The error of a sorter that did not sort.
#[must_use]
pub fn out_of_order() -> Error {
    Error::new(
        ErrorKind::Lost,
        "checking the order of what is written",
        "two records are out of order",
    )
    .hint("This is a fault of sortmill or of this machine's memory. No output was made.")
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::line_keys::{Compare, Ignore, KeyStart, LastResort, LineKey, LineOrder};

    /// Lines by version, and of the same version by `last_resort`.
    fn by_version(last_resort: LastResort) -> Order {
        let start = KeyStart {
            field: 1,
            byte: 1,
            skip_blanks: false,
        };
        let key = LineKey {
            start,
            end: None,
            compare: Compare::Version,
            ignore: Ignore::None,
            fold: false,
            reversed: false,
        };
        let order = LineOrder {
            delimiter: b'\n',
            separator: None,
            keys: vec![key],
            last_resort,
            unique: false,
        };
        Order::of_lines(&order).unwrap()
    }

    fn passes(order: &Order, lines: [(&str, u64); 2]) -> bool {
        let lines = lines.map(|(line, ordinal)| (format!("{line}\n"), ordinal));
        let mut gather = Gather::new(order, 1);
        lines
            .iter()
            .all(|(line, ordinal)| gather.next(line.as_bytes(), *ordinal).is_ok())
    }

    /// Keys are compared by their heads, and further where these are equal; lines of equal keys by their places.
    #[test]
    fn encoded_keys_out_of_order_are_seen() {
        let order = by_version(LastResort::Place);
        let alike = "a".repeat(3 * HEAD_BYTES);
        let long = |end: &str| format!("{alike}{end}");
        let pairs = [
            ("file-9".to_owned(), "file-10".to_owned()),
            ("file-2".to_owned(), "file-2.1".to_owned()),
            (long("9"), long("10")),
        ];
        for (less, more) in &pairs {
            assert!(passes(&order, [(less, 1), (more, 0)]), "{less} {more}");
            assert!(!passes(&order, [(more, 0), (less, 1)]), "{more} {less}");
        }
        for line in ["file-9", &alike] {
            assert!(passes(&order, [(line, 0), (line, 1)]), "{line}");
            assert!(!passes(&order, [(line, 1), (line, 0)]), "{line}");
        }
        let by_line = by_version(LastResort::Line);
        assert!(passes(&by_line, [("file-01", 1), ("file-1", 0)]));
        assert!(!passes(&by_line, [("file-1", 0), ("file-01", 1)]));
    }
}
