//! Batches as bytes that lie as Arrow wants them, so that whoever gets them looks at them where they are.
//!
//! ```text
//! places?  missing? of each column   u64 each, 0 or 1
//! [places]                           u32 each
//! column   [present]                 a byte each, 0 where a value is missing
//!          ends                      i32 each, one more than values; value i is ends[i] - ends[0] .. ends[i + 1] - ends[0] of
//!          values                    bytes
//!    or    values                    u64 each, or a byte each, 0 or 1
//! ```
//!
//! Everything is little-endian, and each part begins at a multiple of [`ALIGN_BYTES`]. What is read is checked before it is looked at, so wrong bytes are no batch, whoever wrote them.

use std::borrow::Cow;
use std::io::IoSlice;
use std::ops::Range;

use super::column::{Type, Value, row};
use super::gather::{Gather, Gathered, Present};
use crate::error::Result;

/// Parts begin at multiples of so many bytes (Arrow Columnar Format, 1.0, Buffer Alignment and Padding).
pub const ALIGN_BYTES: usize = 64;

const WORD_BYTES: usize = 8;

/// Bytes of a batch that is being laid out, piece by piece, as far as they can be as they are.
pub struct Laying<'b> {
    pieces: Vec<Cow<'b, [u8]>>,
    bytes: usize,
}

impl<'b> Laying<'b> {
    /// One whose columns are still to come, of each of which some values are missing or none: `places` first, if records have
    /// some.
    #[must_use]
    pub fn new(places: Option<Vec<u8>>, are_missing: impl ExactSizeIterator<Item = bool>) -> Self {
        let mut laying = Self {
            pieces: Vec::new(),
            bytes: 0,
        };
        let mut head = vec![0; WORD_BYTES * (1 + are_missing.len())];
        head[0] = u8::from(places.is_some());
        for (number, is_missing) in are_missing.enumerate() {
            head[WORD_BYTES * (1 + number)] = u8::from(is_missing);
        }
        laying.part(Cow::Owned(head));
        if let Some(places) = places {
            laying.part(Cow::Owned(places));
        }
        laying
    }

    /// The records `range` of `gathered`, with their places if that is asked.
    #[must_use]
    pub fn of(gathered: &'b Gathered, range: Range<usize>, with_places: bool) -> Self {
        let places = || bytes_of(range.clone().map(|at| gathered.place(at).to_le_bytes()));
        let are_missing = gathered.present().iter().map(Option::is_some);
        let mut laying = Self::new(with_places.then(places), are_missing);
        for (column, present) in gathered.columns().iter().zip(gathered.present()) {
            if let Some(present) = present {
                laying.part(Cow::Borrowed(&present[range.clone()]));
            }
            match column {
                Gather::Bytes { ends, bytes } => {
                    let those = &ends[range.start..=range.end];
                    let within = ends[range.start] as usize..ends[range.end] as usize;
                    laying.part(Cow::Owned(bytes_of(
                        those.iter().map(|end| end.to_le_bytes()),
                    )));
                    laying.part(Cow::Borrowed(&bytes[within]));
                }
                Gather::Words(words) => {
                    let those = &words[range.clone()];
                    laying.part(Cow::Owned(bytes_of(
                        those.iter().map(|word| word.to_le_bytes()),
                    )));
                }
                Gather::Bools(bools) => laying.part(Cow::Borrowed(&bools[range.clone()])),
            }
        }
        laying
    }

    /// Puts the next part behind those before.
    pub fn part(&mut self, part: Cow<'b, [u8]>) {
        static ZEROS: [u8; ALIGN_BYTES] = [0; ALIGN_BYTES];
        let behind = part.len().next_multiple_of(ALIGN_BYTES) - part.len();
        self.bytes += part.len() + behind;
        self.pieces.push(part);
        self.pieces.push(Cow::Borrowed(&ZEROS[..behind]));
    }

    /// How many bytes all of it has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// All of it, in pieces that lie one behind the other.
    #[must_use]
    pub fn pieces(&self) -> Vec<IoSlice<'_>> {
        self.pieces
            .iter()
            .map(|piece| IoSlice::new(piece))
            .collect()
    }

    /// Puts all of it in the place of what is in `into`.
    pub fn write(&self, into: &mut Vec<u8>) {
        into.clear();
        into.reserve(self.bytes);
        self.pieces
            .iter()
            .for_each(|piece| into.extend_from_slice(piece));
    }
}

fn bytes_of<const N: usize>(values: impl ExactSizeIterator<Item = [u8; N]>) -> Vec<u8> {
    let mut bytes = vec![0; N * values.len()];
    let (places, _) = bytes.as_chunks_mut();
    places
        .iter_mut()
        .zip(values)
        .for_each(|(place, value)| *place = value);
    bytes
}

/// Where a batch lies among bytes.
#[derive(Clone, Default, Debug)]
pub struct Laid {
    count: usize,
    places: Option<Range<usize>>,
    columns: Vec<LaidColumn>,
    present: Vec<Option<Range<usize>>>,
}

/// Where a column does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LaidColumn {
    /// Where its values end, and they themselves.
    Bytes {
        /// 4 bytes each, and one more than values.
        ends: Range<usize>,
        /// All of them.
        bytes: Range<usize>,
    },
    /// 8 bytes each.
    Words(Range<usize>),
    /// A byte each.
    Bools(Range<usize>),
}

impl Laid {
    /// Finds a batch of `count` records with columns of these types, which all of `bytes` are. `None` if they are none.
    #[must_use]
    pub fn find(kinds: &[Type], count: usize, bytes: &[u8]) -> Option<Self> {
        let mut at = 0_usize;
        let mut take = |length: usize| -> Option<Range<usize>> {
            let range = at..at.checked_add(length)?;
            at = range.end.checked_next_multiple_of(ALIGN_BYTES)?;
            (at <= bytes.len()).then_some(range)
        };
        let head = &bytes[take(WORD_BYTES * (1 + kinds.len()))?];
        let (words, _) = head.as_chunks::<WORD_BYTES>();
        let flag = |word: [u8; WORD_BYTES]| match u64::from_le_bytes(word) {
            word @ 0..=1 => Some(word > 0),
            _ => None,
        };
        let has_places = flag(words[0])?;
        let are_missing: Vec<bool> = words[1..]
            .iter()
            .map(|&word| flag(word))
            .collect::<Option<_>>()?;
        let places = match has_places {
            true => Some(take(count.checked_mul(4)?)?),
            false => None,
        };
        let mut columns = Vec::with_capacity(kinds.len());
        let mut present = Vec::with_capacity(kinds.len());
        for (kind, is_missing) in kinds.iter().zip(are_missing) {
            present.push(match is_missing {
                true => Some(take(count)?),
                false => None,
            });
            columns.push(match kind {
                Type::Binary | Type::String => {
                    let ends = take(count.checked_add(1)?.checked_mul(4)?)?;
                    let (four, _) = bytes[ends.clone()].as_chunks::<4>();
                    let are_right = four.is_sorted_by_key(|&end| i32::from_le_bytes(end));
                    let first = i32::from_le_bytes(four[0]);
                    let last = i32::from_le_bytes(four[count]);
                    let length = usize::try_from(last.checked_sub(first)?).ok()?;
                    (are_right && first >= 0).then_some(())?;
                    LaidColumn::Bytes {
                        ends,
                        bytes: take(length)?,
                    }
                }
                Type::I64 | Type::U64 | Type::F64 | Type::Timestamp => {
                    LaidColumn::Words(take(count.checked_mul(8)?)?)
                }
                Type::Bool => LaidColumn::Bools(take(count)?),
            });
        }
        (at == bytes.len()).then_some(Self {
            count,
            places,
            columns,
            present,
        })
    }

    /// How many records there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Where its columns lie.
    #[must_use]
    pub fn columns(&self) -> &[LaidColumn] {
        &self.columns
    }

    /// For each column, where it is told which of its values are there, unless all are.
    #[must_use]
    pub fn present(&self) -> &[Option<Range<usize>>] {
        &self.present
    }

    /// Of which record record `at` was made: the first, if nothing is said. `bytes` are those it was found in.
    #[must_use]
    pub fn place(&self, bytes: &[u8], at: usize) -> usize {
        self.places.as_ref().map_or(0, |places| {
            u32::from_le_bytes(nth(&bytes[places.clone()], at)) as usize
        })
    }

    /// Calls `with` with the values of record `at`, which are of these types. `bytes` are those it was found in.
    ///
    /// # Errors
    /// What `with` answers.
    pub fn with<T>(
        &self,
        kinds: &[Type],
        bytes: &[u8],
        at: usize,
        with: impl FnOnce(&[Value<'_>]) -> Result<T>,
    ) -> Result<T> {
        let get = |number: usize| match &self.present[number] {
            Some(present) if bytes[present.clone()][at] == 0 => Ok(Value::Null),
            _ => Ok(self.columns[number].value(kinds[number], bytes, at)),
        };
        row(self.columns.len(), get, with)
    }

    /// All of them as columns. `bytes` are those they were found in.
    #[must_use]
    pub fn gathered(&self, bytes: &[u8]) -> Gathered {
        let columns = self
            .columns
            .iter()
            .map(|column| column.gather(bytes))
            .collect();
        let present = |range: &Option<Range<usize>>| -> Present {
            range.as_ref().map(|range| bytes[range.clone()].to_vec())
        };
        Gathered::of(columns, 0).with_present(self.present.iter().map(present).collect())
    }
}

impl LaidColumn {
    fn value<'b>(&self, kind: Type, bytes: &'b [u8], at: usize) -> Value<'b> {
        match self {
            Self::Bytes {
                ends,
                bytes: within,
            } => {
                let ends = &bytes[ends.clone()];
                let end = |at: usize| i32::from_le_bytes(nth(ends, at));
                let from = |at: usize| (end(at) - end(0)) as usize;
                Value::Bytes(&bytes[within.clone()][from(at)..from(at + 1)])
            }
            Self::Words(within) => {
                let word = u64::from_le_bytes(nth(&bytes[within.clone()], at));
                match kind {
                    Type::I64 => Value::I64(word as i64),
                    Type::Timestamp => Value::Timestamp(word as i64),
                    Type::F64 => Value::F64(f64::from_bits(word)),
                    _ => Value::U64(word),
                }
            }
            Self::Bools(within) => Value::Bool(bytes[within.clone()][at] != 0),
        }
    }

    fn gather(&self, bytes: &[u8]) -> Gather {
        match self {
            Self::Bytes {
                ends,
                bytes: within,
            } => {
                let (four, _) = bytes[ends.clone()].as_chunks::<4>();
                let first = i32::from_le_bytes(four[0]);
                let end = |&end: &[u8; 4]| i32::from_le_bytes(end) - first;
                Gather::Bytes {
                    ends: four.iter().map(end).collect(),
                    bytes: bytes[within.clone()].to_vec(),
                }
            }
            Self::Words(within) => {
                let (eight, _) = bytes[within.clone()].as_chunks();
                Gather::Words(eight.iter().map(|&word| u64::from_le_bytes(word)).collect())
            }
            Self::Bools(within) => Gather::Bools(bytes[within.clone()].to_vec()),
        }
    }
}

fn nth<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let value = &bytes[N * at..N * (at + 1)];
    value.try_into().expect("it was cut so")
}

#[cfg(test)]
mod tests {
    use super::super::gather::tests::{KINDS, gathered, lacking};
    use super::*;

    #[test]
    fn what_is_laid_out_is_found() {
        check_laid(&gathered());
        check_laid(&lacking(|number, at| number % 4 < at || at == 3));
    }

    fn check_laid(all: &Gathered) {
        for with_places in [false, true] {
            for range in [0..10, 3..7, 9..10, 4..4] {
                let laying = Laying::of(all, range.clone(), with_places);
                let mut bytes = vec![9; 3];
                laying.write(&mut bytes);
                assert_eq!(bytes.len(), laying.bytes());
                let pieces: Vec<&[u8]> = laying.pieces.iter().map(|piece| &**piece).collect();
                assert_eq!(bytes, pieces.concat());
                let laid = Laid::find(&KINDS, range.len(), &bytes).unwrap();
                let copy = laid.gathered(&bytes);
                assert_eq!((laid.len(), copy.len()), (range.len(), range.len()));
                for (at, number) in range.clone().enumerate() {
                    let place = if with_places { all.place(number) } else { 0 };
                    assert_eq!(laid.place(&bytes, at), place as usize);
                    let wanted = all.with(&KINDS, number, |values| Ok(format!("{values:?}")));
                    let found = laid.with(&KINDS, &bytes, at, |values| Ok(format!("{values:?}")));
                    let copied = copy.with(&KINDS, at, |values| Ok(format!("{values:?}")));
                    let wanted = wanted.unwrap();
                    assert_eq!(found.unwrap(), wanted);
                    assert_eq!(copied.unwrap(), wanted);
                }
                assert!(Laid::find(&KINDS, range.len() + 1000, &bytes).is_none());
                bytes.push(0);
                assert!(Laid::find(&KINDS, range.len(), &bytes).is_none());
                bytes.truncate(bytes.len() - 1 - ALIGN_BYTES);
                assert!(Laid::find(&KINDS, range.len(), &bytes).is_none());
            }
        }
    }

    #[test]
    fn parts_begin_where_arrow_wants_them() {
        let all = gathered();
        let mut bytes = Vec::new();
        Laying::of(&all, 1..9, true).write(&mut bytes);
        let laid = Laid::find(&KINDS, 8, &bytes).unwrap();
        for column in laid.columns() {
            let parts = match column.clone() {
                LaidColumn::Bytes { ends, bytes } => vec![ends.start, bytes.start],
                LaidColumn::Words(words) => vec![words.start],
                LaidColumn::Bools(bools) => vec![bools.start],
            };
            assert!(parts.iter().all(|start| start.is_multiple_of(ALIGN_BYTES)));
        }
    }

    #[test]
    fn wrong_bytes_are_no_batch() {
        let all = gathered();
        let mut bytes = Vec::new();
        Laying::of(&all, 0..10, false).write(&mut bytes);
        assert!(Laid::find(&KINDS, 10, &bytes).is_some());
        // A flag that is none, values that would be told to be missing and are not, ends out of order, and such as lie behind all values.
        for (at, byte) in [
            (0, 2),
            (8, 1),
            (ALIGN_BYTES + 4, 200),
            (ALIGN_BYTES + 41, 1),
        ] {
            let mut wrong = bytes.clone();
            wrong[at] = byte;
            assert!(Laid::find(&KINDS, 10, &wrong).is_none(), "{at}");
        }
        assert!(Laid::find(&KINDS, usize::MAX, &bytes).is_none());
        assert!(Laid::find(&KINDS, 0, &[]).is_none());
    }
}
