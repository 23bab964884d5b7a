//! Groups that one text tells, counted or only told apart, on their way out of a reducer. The key of such a pair is a hash and the text
//! as it is, so groups are told, kept and handed on by the bytes of their keys, and nothing is taken apart.

use super::column::{Value, corrupt};
use super::combine::HASH_BYTES;
use super::count_bytes::take_count;
use super::rows::halves;
use super::verbs::Sink;
use crate::error::Result;
use crate::short::push_text;

/// The group that is open, if one is.
pub(super) struct Tallied {
    is_open: bool,
    /// Its key, hash and all.
    key: Vec<u8>,
    /// How many records it has, where that is asked for.
    count: Option<u64>,
}

impl Tallied {
    /// None is open. Whether records are counted.
    pub fn new(counts: bool) -> Self {
        Self {
            is_open: false,
            key: Vec::new(),
            count: counts.then_some(0),
        }
    }

    /// Takes the next pair.
    ///
    /// # Errors
    /// Those of `sink`, and [`crate::error::ErrorKind::Corrupt`] for what is no such pair.
    pub fn add(&mut self, pair: &[u8], sink: Sink<'_>) -> Result<()> {
        let (key, mut value) = halves(pair).ok_or_else(corrupt)?;
        if !self.is_open || self.key != key {
            self.end(sink)?;
            if key.len() < HASH_BYTES {
                return Err(corrupt());
            }
            self.key.clear();
            push_text(key, &mut self.key);
            self.is_open = true;
        }
        if let Some(count) = &mut self.count {
            let more = take_count(&mut value).and_then(|more| count.checked_add(more));
            *count = more.ok_or_else(corrupt)?;
        }
        value.is_empty().then_some(()).ok_or_else(corrupt)
    }

    /// Ends the group that is open, if one is.
    ///
    /// # Errors
    /// Those of `sink`.
    pub fn end(&mut self, sink: Sink<'_>) -> Result<()> {
        if !std::mem::take(&mut self.is_open) {
            return Ok(());
        }
        let text = Value::Bytes(&self.key[HASH_BYTES..]);
        match &mut self.count {
            Some(count) => sink(&[text, Value::U64(std::mem::take(count))]),
            None => sink(&[text]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::pipeline::count_bytes::{COUNT_BYTES_MAX, count_bytes};

    fn pair(key: &[u8], value: &[u8]) -> Vec<u8> {
        let lengths = [key.len(), value.len()].map(|bytes| (bytes as u32).to_le_bytes());
        [&lengths.concat(), key, value].concat()
    }

    /// What comes out of pairs: texts, and counts if there are any.
    fn groups(counts: bool, pairs: &[Vec<u8>]) -> Result<Vec<(String, Option<u64>)>> {
        let (mut tallied, mut found) = (Tallied::new(counts), Vec::new());
        let mut sink = |record: &[Value<'_>]| {
            let text = String::from_utf8(record[0].bytes().to_vec()).unwrap();
            let count = match record[1..] {
                [] => None,
                [Value::U64(count)] => Some(count),
                _ => panic!("{record:?}"),
            };
            found.push((text, count));
            Ok(())
        };
        for pair in pairs {
            tallied.add(pair, &mut sink)?;
        }
        for _ in 0..2 {
            tallied.end(&mut sink)?;
        }
        Ok(found)
    }

    /// Groups whose texts or hashes differ are apart, whatever else is alike; a text may be empty.
    #[test]
    fn pairs_of_one_key_are_one_group() {
        let keys = ["12345678", "12345678b", "12345678bc", "22345678bc"];
        let of = |key: &str, count: Option<u64>| {
            let mut bytes = [0; COUNT_BYTES_MAX];
            let value = count.map_or(&[][..], |count| count_bytes(count, &mut bytes));
            pair(key.as_bytes(), value)
        };
        for counts in [false, true] {
            let pairs: Vec<_> = keys
                .iter()
                .zip(1..)
                .flat_map(|(key, more)| {
                    [0, 1, 300].map(|count| of(key, counts.then_some(count * more)))
                })
                .collect();
            let wanted: Vec<_> = ["", "b", "bc", "bc"]
                .into_iter()
                .zip(1..)
                .map(|(text, more)| (text.to_owned(), counts.then_some(301 * more)))
                .collect();
            assert_eq!(groups(counts, &pairs).unwrap(), wanted);
            assert_eq!(groups(counts, &[]).unwrap(), []);
        }
    }

    #[test]
    fn what_is_no_such_pair_is_refused() {
        let key = b"12345678b";
        let most = count_bytes(u64::MAX, &mut [0; COUNT_BYTES_MAX]).to_vec();
        let wrong: [(bool, &[Vec<u8>]); 6] = [
            (true, &[b"123".to_vec()]),
            (true, &[pair(b"1234567", &[1])]),
            (true, &[pair(key, &[])]),
            (true, &[pair(key, &[1, 1])]),
            (true, &[pair(key, &most), pair(key, &[1])]),
            (false, &[pair(key, &[1])]),
        ];
        for (number, (counts, pairs)) in wrong.into_iter().enumerate() {
            let error = groups(counts, pairs).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Corrupt, "{number}");
        }
    }
}
