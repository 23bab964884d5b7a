//! Batches: records gathered as columns, for functions that take many at once.
//!
//! ```text
//! records --push--> Gathered --call--> a function of batches --rows--> records
//! ```
//!
//! A batch is called for when it has as many records as were asked for, or [`BATCH_BYTES`], or its chunk of the input or its
//! partition ends: which records are in it follows from the input alone in front of the first verb that brings records
//! together, behind it from the memory as well. The layout of a column is Arrow's (Columnar Format, 1.0: variable-size
//! binary, fixed-size primitive), so that whoever wants Arrow copies columns, not values.

use sortmill_io::sync::Arc;

use super::column::{Column, Type, Value, row};
use super::verbs::{Sink, check_values};
use crate::error::{Error, ErrorKind, Result};

/// A batch with so many bytes is large enough.
pub const BATCH_BYTES: usize = 1 << 20;

/// Where values end is told in 31 bits.
const COLUMN_BYTES_MAX: usize = 1 << 30;

/// What is held of a batch at once, at most about: its records, a copy that is handed over, and the same of what is made.
pub(super) const HELD_BYTES: u64 = 4 * BATCH_BYTES as u64;

/// Records as columns.
#[derive(Clone, Default, Debug)]
pub struct Gathered {
    columns: Vec<Gather>,
    /// Which values of each column are there.
    present: Vec<Present>,
    /// For each record where what it was made of begins: a byte of a slab, or the number of a record of a batch before.
    places: Vec<u32>,
}

/// Which values of a column are there: 1 for one that is, 0 for one that is missing, whose place another value takes. `None` if
/// all are there.
pub type Present = Option<Vec<u8>>;

/// The values of one column.
#[derive(Clone, PartialEq, Debug)]
pub enum Gather {
    /// Value i is `bytes[ends[i]..ends[i + 1]]`.
    Bytes {
        /// Where values end; the first is 0.
        ends: Vec<i32>,
        /// All of them.
        bytes: Vec<u8>,
    },
    /// 8 bytes each: integers, microseconds, or the bits of floats.
    Words(Vec<u64>),
    /// 0 or 1 each.
    Bools(Vec<u8>),
}

impl Gather {
    /// Nothing yet, of values of type `kind`.
    #[must_use]
    pub fn new(kind: Type) -> Self {
        match kind {
            Type::Binary | Type::String => Self::Bytes {
                ends: vec![0],
                bytes: Vec::new(),
            },
            Type::I64 | Type::U64 | Type::F64 | Type::Timestamp => Self::Words(Vec::new()),
            Type::Bool => Self::Bools(Vec::new()),
        }
    }

    /// What lies in the place of `count` values that are missing, of type `kind`.
    #[must_use]
    pub fn of_nothing(kind: Type, count: usize) -> Self {
        let mut made = Self::new(kind);
        (0..count).for_each(|_| made.push(Value::Null));
        made
    }

    fn clear(&mut self) {
        match self {
            Self::Bytes { ends, bytes } => {
                ends.truncate(1);
                bytes.clear();
            }
            Self::Words(words) => words.clear(),
            Self::Bools(bools) => bools.clear(),
        }
    }

    fn push(&mut self, value: Value<'_>) {
        match (self, value) {
            (Self::Bytes { ends, bytes }, Value::Bytes(more)) => {
                bytes.extend_from_slice(more);
                ends.push(bytes.len() as i32);
            }
            (Self::Words(words), Value::I64(value) | Value::Timestamp(value)) => {
                words.push(value as u64);
            }
            (Self::Words(words), Value::U64(value)) => words.push(value),
            (Self::Words(words), Value::F64(value)) => words.push(value.to_bits()),
            (Self::Bools(bools), Value::Bool(value)) => bools.push(u8::from(value)),
            // Something has to lie in its place.
            (Self::Bytes { ends, bytes }, Value::Null) => ends.push(bytes.len() as i32),
            (Self::Words(words), Value::Null) => words.push(0),
            (Self::Bools(bools), Value::Null) => bools.push(0),
            (column, value) => panic!("{value:?} is no value of {column:?}"),
        }
    }

    fn get(&self, kind: Type, at: usize) -> Value<'_> {
        match self {
            Self::Bytes { ends, bytes } => {
                Value::Bytes(&bytes[ends[at] as usize..ends[at + 1] as usize])
            }
            Self::Words(words) => match kind {
                Type::I64 => Value::I64(words[at] as i64),
                Type::Timestamp => Value::Timestamp(words[at] as i64),
                Type::F64 => Value::F64(f64::from_bits(words[at])),
                _ => Value::U64(words[at]),
            },
            Self::Bools(bools) => Value::Bool(bools[at] != 0),
        }
    }

    /// How many values there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes { ends, .. } => ends.len() - 1,
            Self::Words(words) => words.len(),
            Self::Bools(bools) => bools.len(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the values `range`.
    fn bytes(&self, range: std::ops::Range<usize>) -> usize {
        match self {
            Self::Bytes { ends, .. } => {
                (ends[range.end] - ends[range.start]) as usize + 4 * range.len()
            }
            Self::Words(_) => 8 * range.len(),
            Self::Bools(_) => range.len(),
        }
    }
}

impl Gathered {
    /// None yet, with columns of these types.
    #[must_use]
    pub fn new(kinds: &[Type]) -> Self {
        Self {
            columns: kinds.iter().map(|&kind| Gather::new(kind)).collect(),
            present: vec![None; kinds.len()],
            places: Vec::new(),
        }
    }

    /// Those of `columns`, which are equally long, all made of record `place`.
    ///
    /// # Panics
    /// When they are not equally long.
    #[must_use]
    pub fn of(columns: Vec<Gather>, place: u32) -> Self {
        let count = columns.first().map_or(0, Gather::len);
        assert!(columns.iter().all(|column| column.len() == count));
        Self {
            present: vec![None; columns.len()],
            columns,
            places: vec![place; count],
        }
    }

    /// The same records, of whose values those are missing that `present` says, column by column.
    ///
    /// # Panics
    /// When it says so of more or fewer values than there are.
    #[must_use]
    pub fn with_present(self, present: Vec<Present>) -> Self {
        assert_eq!(present.len(), self.columns.len());
        let mut known = present.iter().flatten();
        assert!(known.all(|present| present.len() == self.places.len()));
        Self { present, ..self }
    }

    /// Which values of each column are there.
    #[must_use]
    pub fn present(&self) -> &[Present] {
        &self.present
    }

    /// Appends a record, made of what begins at `place`.
    ///
    /// # Errors
    /// [`ErrorKind::Memory`] when there are more than 1 GiB of records.
    ///
    /// # Panics
    /// When values are not of their columns' types.
    pub fn push(&mut self, place: u32, values: &[Value<'_>]) -> Result<()> {
        let are_short = values
            .iter()
            .all(|value| value.bytes().len() < COLUMN_BYTES_MAX);
        if !are_short || self.bytes() > COLUMN_BYTES_MAX {
            let cause = "a batch has at most 1 GiB";
            return Err(Error::new(ErrorKind::Memory, "gathering a batch", cause));
        }
        let columns = self.columns.iter_mut().zip(&mut self.present);
        for ((column, present), &value) in columns.zip(values) {
            if value.is_null() && present.is_none() {
                *present = Some(vec![1; self.places.len()]);
            }
            if let Some(present) = present {
                present.push(u8::from(!value.is_null()));
            }
            column.push(value);
        }
        self.places.push(place);
        Ok(())
    }

    /// Forgets all records.
    pub fn clear(&mut self) {
        self.columns.iter_mut().for_each(Gather::clear);
        self.present.fill(None);
        self.places.clear();
    }

    /// How many records there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Its columns.
    #[must_use]
    pub fn columns(&self) -> &[Gather] {
        &self.columns
    }

    /// The same without anything copied.
    #[must_use]
    pub fn into_columns(self) -> Vec<Gather> {
        self.columns
    }

    /// Where what record `at` was made of begins.
    #[must_use]
    pub fn place(&self, at: usize) -> u32 {
        self.places[at]
    }

    /// Calls `with` with the values of record `at`, which are of these types.
    ///
    /// # Errors
    /// What `with` answers.
    pub fn with<T>(
        &self,
        kinds: &[Type],
        at: usize,
        with: impl FnOnce(&[Value<'_>]) -> Result<T>,
    ) -> Result<T> {
        let get = |number: usize| match &self.present[number] {
            Some(present) if present[at] == 0 => Ok(Value::Null),
            _ => Ok(self.columns[number].get(kinds[number], at)),
        };
        row(self.columns.len(), get, with)
    }

    /// Bytes of all records.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let bytes = |column: &Gather| column.bytes(0..column.len());
        let present: usize = self.present.iter().flatten().map(Vec::len).sum();
        self.columns.iter().map(bytes).sum::<usize>() + present + 4 * self.len()
    }

    /// How many records from number `from` on have about `bytes_max` bytes together; at least one, if there is one.
    #[must_use]
    pub fn fitting(&self, from: usize, bytes_max: usize) -> usize {
        let bytes = |count: usize| -> usize {
            let of = |column: &Gather| column.bytes(from..from + count);
            let present = count * self.present.iter().flatten().count();
            self.columns.iter().map(of).sum::<usize>() + present
        };
        most_within(self.len() - from, bytes_max, bytes)
    }
}

/// How many of `count` records have at most `bytes_max` bytes together, where the first so many have `bytes`; at least one,
/// if there is one.
#[must_use]
pub fn most_within(count: usize, bytes_max: usize, bytes: impl Fn(usize) -> usize) -> usize {
    if bytes(count) <= bytes_max {
        return count;
    }
    let (mut least, mut most) = (1, count);
    while least + 1 < most {
        let middle = least.midpoint(most);
        match bytes(middle) <= bytes_max {
            true => least = middle,
            false => most = middle,
        }
    }
    least
}

/// What was wrong with a batch: the number of the record it is about, and why.
pub type Refused = (usize, Box<Error>);

/// Takes a record, and of which record of the batch it was made.
pub type RowSink<'s> = &'s mut dyn FnMut(usize, &[Value<'_>]) -> Result<()>;

/// A function of batches, of one worker.
pub trait BatchFn: Send {
    /// Has it work on a batch, which is not empty. One whose answer is only looked at is a sample.
    ///
    /// # Errors
    /// When it fails or makes what it should not.
    fn call(&mut self, batch: &Gathered, is_sample: bool) -> std::result::Result<(), Refused>;

    /// Hands over what it made of the batch, in order, until `is_full` or all has been; answers whether it has.
    ///
    /// # Errors
    /// As [`BatchFn::call`], and what `sink` answers.
    fn rows(&mut self, sink: RowSink<'_>, is_full: &dyn Fn() -> bool) -> Result<bool>;

    /// Has it make what is left, if it keeps something, after its worker's last batch.
    ///
    /// # Errors
    /// As [`BatchFn::call`].
    fn finish(&mut self, is_sample: bool) -> Result<()>;
}

/// Makes the function of one worker.
pub type MakeBatchFn = Arc<dyn Fn() -> Box<dyn BatchFn> + Send + Sync>;

/// A step that takes batches.
#[derive(Clone)]
pub(super) struct Batches {
    /// Which columns go in, of these types.
    pub at: Vec<usize>,
    pub kinds: Vec<Type>,
    /// What comes out.
    pub made: Vec<Column>,
    /// The most records of a batch.
    pub size: usize,
    pub make: MakeBatchFn,
}

/// A step that takes batches, at work in one worker.
pub(super) struct Batching {
    step: Batches,
    gathered: Gathered,
    /// Where the records of the batch that was called with begin.
    called: Vec<u32>,
    function: Box<dyn BatchFn>,
    /// It has not handed over all it made.
    pub is_pending: bool,
    has_finished: bool,
}

impl Batching {
    pub fn new(step: &Batches) -> Self {
        Self {
            gathered: Gathered::new(&step.kinds),
            called: Vec::new(),
            function: (step.make)(),
            step: step.clone(),
            is_pending: false,
            has_finished: false,
        }
    }

    /// Takes a record; `true` if the batch is to be called with.
    pub fn push(&mut self, place: u32, record: &[Value<'_>]) -> Result<bool> {
        let Batches { at, size, .. } = &self.step;
        row(
            at.len(),
            |number| Ok(record[at[number]]),
            |values| self.gathered.push(place, values),
        )?;
        // Of a batch whose function has more to hand over only a record that makes too much of itself fills another.
        Ok(self.gathered.len() >= *size || self.gathered.bytes() >= BATCH_BYTES)
    }

    /// Calls the function with what has been gathered, if that is anything; the place of what is wrong goes to `blame`.
    pub fn call(&mut self, is_sample: bool, blame: &mut dyn FnMut(u32)) -> Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        self.called.clear();
        self.called.extend_from_slice(&self.gathered.places);
        let called = self.function.call(&self.gathered, is_sample);
        self.gathered.clear();
        self.is_pending = called.is_ok();
        called.map_err(|(at, error)| {
            blame(self.called.get(at).copied().unwrap_or(self.called[0]));
            *error
        })
    }

    /// Has the function make what is left, once.
    pub fn finish(&mut self, is_sample: bool) -> Result<()> {
        if std::mem::replace(&mut self.has_finished, true) {
            return Ok(());
        }
        self.function.finish(is_sample)?;
        self.is_pending = true;
        Ok(())
    }

    /// Hands over what was made, each with the place of what it was made of.
    pub fn drain(
        &mut self,
        mut sink: impl FnMut(u32, &[Value<'_>]) -> Result<()>,
        is_full: &dyn Fn() -> bool,
    ) -> Result<()> {
        let (called, made) = (&self.called, &self.step.made);
        let mut put = |at: usize, values: &[Value<'_>]| {
            check_values(values, made)?;
            let place = called.get(at).or(called.first());
            sink(place.copied().unwrap_or(0), values)
        };
        self.is_pending = !self.function.rows(&mut put, is_full)?;
        Ok(())
    }
}

/// Calls a plain function of batches, which keeps nothing between them.
pub(super) struct Plain<F> {
    pub function: Arc<F>,
    pub made_columns: Vec<Column>,
    pub made_kinds: Vec<Type>,
    pub made: Gathered,
    pub next: usize,
}

impl<F> BatchFn for Plain<F>
where
    F: Fn(&Gathered, Sink<'_>) -> Result<()> + Send + Sync,
{
    fn call(&mut self, batch: &Gathered, _: bool) -> std::result::Result<(), Refused> {
        self.made.clear();
        self.next = 0;
        let (made, columns) = (&mut self.made, &self.made_columns);
        let mut put = |values: &[Value<'_>]| {
            check_values(values, columns)?;
            made.push(0, values)
        };
        (self.function)(batch, &mut put).map_err(|error| (0, Box::new(error)))
    }

    fn rows(&mut self, sink: RowSink<'_>, is_full: &dyn Fn() -> bool) -> Result<bool> {
        hand_over(&self.made, &self.made_kinds, &mut self.next, sink, is_full)
    }

    fn finish(&mut self, _: bool) -> Result<()> {
        self.made.clear();
        self.next = 0;
        Ok(())
    }
}

/// Hands over the records of `made` from number `next` on, until `is_full`; answers whether all have been.
///
/// # Errors
/// What `sink` answers.
pub fn hand_over(
    made: &Gathered,
    kinds: &[Type],
    next: &mut usize,
    sink: RowSink<'_>,
    is_full: &dyn Fn() -> bool,
) -> Result<bool> {
    while *next < made.len() {
        if is_full() {
            return Ok(false);
        }
        let place = made.place(*next) as usize;
        made.with(kinds, *next, |values| sink(place, values))?;
        *next += 1;
    }
    Ok(true)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub const KINDS: [Type; 4] = [Type::String, Type::I64, Type::F64, Type::Bool];

    pub fn gathered() -> Gathered {
        lacking(|_, _| false)
    }

    /// Records of which some values are missing.
    pub fn lacking(is_missing: impl Fn(usize, usize) -> bool) -> Gathered {
        let mut gathered = Gathered::new(&KINDS);
        for number in 0..10 {
            let text = vec![b'a' + number as u8; number];
            let mut values = [
                Value::Bytes(&text),
                Value::I64(-(number as i64)),
                Value::F64(number as f64 / 4.0),
                Value::Bool(number % 3 == 0),
            ];
            for (at, value) in values.iter_mut().enumerate() {
                if is_missing(number, at) {
                    *value = Value::Null;
                }
            }
            gathered.push(100 + number as u32, &values).unwrap();
        }
        gathered
    }

    #[test]
    fn some_values_are_missing() {
        // None of the first column, all of the last.
        let some = lacking(|number, at| number % 5 < at && at > 0 || at == 3);
        assert!(some.present()[0].is_none());
        assert_eq!(some.present()[3], Some(vec![0; 10]));
        let first = some.with(&KINDS, 5, |values| Ok(format!("{values:?}")));
        assert!(first.unwrap().ends_with("Null, Null, Null]"));
        assert_eq!(some.bytes(), gathered().bytes() + 30);
    }

    #[test]
    fn some_fit() {
        let all = gathered();
        assert_eq!(all.fitting(0, usize::MAX), 10);
        assert_eq!(all.fitting(0, 0), 1);
        // Without text: 4 bytes for its end, 8, 8 and 1.
        assert_eq!(all.fitting(0, 3 * 21 + 3), 3);
        assert_eq!(all.fitting(0, 3 * 21 + 2), 2);
        assert_eq!(all.fitting(9, 30), 1);
    }
}
