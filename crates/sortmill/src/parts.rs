//! An output in several files: what they are called, and where each begins. No I/O.
//!
//! Cuts are made in what comes out of the sorters, never in what goes into them: a record's part follows from
//! where it lies in the whole output, or from its key. The output is the same for any memory, threads and back
//! end, so such cuts are too. Only where each partition becomes a part does the plan decide.
//!
//! ```text
//! unit 0          unit 1                unit 2      units, in order, found by any worker in any order
//! |-----------|-------------------|-----------|
//! part 0  | part 1        | part 2            |     Cuts says where parts begin within a unit,
//!                         ^ start of part 2         Row in which part the next unit goes on
//! ```

use std::path::PathBuf;
use std::str::FromStr;

use sortmill_io::sync::{Arc, Condvar, Mutex, lock, wait};

use crate::error::{Error, ErrorKind, Result};
use crate::long::Item;
use crate::order::{Format, Order};

/// What was asked of an output in several files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parts {
    /// The folder that holds them in the end, and `manifest.json`.
    pub folder: PathBuf,
    /// Where one ends and the next begins.
    pub cut: PartCut,
    /// What they are called.
    pub name: PartName,
    /// Whether `folder` may be one that an earlier run made, which is then replaced.
    pub overwrite: bool,
}

/// Where one part ends and the next begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartCut {
    /// At each partition: as many parts as the plan, and dividing, make of the input.
    Partitions,
    /// As few even parts as keep each of them within so many bytes and one record.
    Bytes(u64),
    /// Just so many.
    Count(u64),
}

/// The most parts: names of five digits sort as their numbers do.
pub const PARTS_MAX: u64 = 100_000;

impl PartCut {
    /// How many parts an output of `bytes` bytes has; `None` where partitions decide.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for none, or more than [`PARTS_MAX`].
    pub fn count(self, bytes: u64) -> Result<Option<u64>> {
        let count = match self {
            Self::Partitions => return Ok(None),
            Self::Bytes(0) => {
                let cause = "a part has at least one byte";
                return Err(Error::new(ErrorKind::Usage, "cutting the output", cause));
            }
            Self::Bytes(part_bytes) => bytes.div_ceil(part_bytes).max(1),
            Self::Count(count) => count,
        };
        if (1..=PARTS_MAX).contains(&count) {
            return Ok(Some(count));
        }
        let cause = format!("there can be 1 to {PARTS_MAX} parts, not {count}");
        Err(Error::new(ErrorKind::Usage, "cutting the output", cause))
    }
}

/// A name with the number of the part in it: `part-{:05}` is `part-00000`, `part-00001` and so on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartName {
    before: String,
    width: usize,
    after: String,
}

impl PartName {
    /// The name of part `number`.
    #[must_use]
    pub fn of(&self, number: u64) -> String {
        let (before, after) = (&self.before, &self.after);
        format!("{before}{number:0width$}{after}", width = self.width)
    }

    /// The number of the part that has this name; `None` if none has.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(&self.before)?.strip_suffix(&self.after)?;
        let number = digits.parse().ok()?;
        (self.of(number) == name).then_some(number)
    }
}

impl Default for PartName {
    fn default() -> Self {
        Self {
            before: "part-".into(),
            width: 5,
            after: String::new(),
        }
    }
}

impl std::fmt::Display for PartName {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.width {
            0 => write!(out, "{}{{}}{}", self.before, self.after),
            width => write!(out, "{}{{:0{width}}}{}", self.before, self.after),
        }
    }
}

impl FromStr for PartName {
    type Err = String;

    /// Text with one `{}`, or `{:0W}` for at least W digits, in it. Without one all parts would have one name.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        const WIDTH_MAX: usize = 20;
        let form = "a name has one {} for the number, or {:05} for at least five digits of it";
        let (before, rest) = text
            .split_once('{')
            .ok_or_else(|| format!("all parts would be called {text:?}: {form}"))?;
        let (number, after) = rest.split_once('}').ok_or(form)?;
        let width = match number {
            "" => 0,
            _ => number
                .strip_prefix(":0")
                .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))
                .and_then(|digits| digits.parse().ok())
                .filter(|width| (1..=WIDTH_MAX).contains(width))
                .ok_or(form)?,
        };
        if [before, after].iter().any(|text| text.contains(['{', '}'])) {
            return Err(form.into());
        }
        if [before, after]
            .iter()
            .any(|text| text.contains(['/', '\0']))
        {
            return Err("parts lie in one folder: their names have no /".into());
        }
        if before.len() + WIDTH_MAX + after.len() > 255 {
            return Err("a name has at most 255 bytes".into());
        }
        Ok(Self {
            before: before.into(),
            width,
            after: after.into(),
        })
    }
}

/// Which part each record falls into.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cuts {
    /// A part for each unit that has records.
    Units,
    /// Record after record into `count` even parts of an output of `bytes` bytes: one that begins at byte `at`
    /// goes into part `at * count / bytes`.
    Even {
        /// How many parts.
        count: u64,
        /// Bytes of the whole output.
        bytes: u64,
    },
    /// Record after record into parts of equal counts, where all units below number i have `firsts[i]` records.
    Records {
        /// How many parts, and records.
        even: Even,
        /// The number of each unit's first record in the output.
        firsts: Vec<u64>,
    },
    /// By key: part i + 1 begins where keys are no longer below key i. Nothing goes to or beyond a part whose
    /// key is `None`.
    Keys(Vec<Option<Vec<u8>>>),
}

/// So many parts of so many records: each has as many as any other, or one more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Even {
    /// How many parts.
    pub count: u64,
    /// How many records in all of them.
    pub records: u64,
}

impl Even {
    /// The record that `part` begins with, from 0.
    #[must_use]
    pub fn begin(self, part: u64) -> u64 {
        (u128::from(part) * u128::from(self.records) / u128::from(self.count)) as u64
    }

    /// The part of a record, from 0; there are records.
    #[must_use]
    pub fn part(self, record: u64) -> u64 {
        // The last one that begins no later.
        let behind = u128::from(record + 1) * u128::from(self.count) - 1;
        (behind / u128::from(self.records)) as u64
    }
}

/// Where a record comes in the output.
#[derive(Clone, Copy, Debug)]
pub struct Stands {
    /// The number of its unit.
    pub unit: usize,
    /// Its index in that.
    pub index: usize,
    /// The byte of the output at which it begins.
    pub at: u64,
}

/// Where a part begins within a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Begin {
    /// Which part; a new one if none is said.
    pub part: Option<u64>,
    /// Its first record in the unit.
    pub index: usize,
    /// Bytes of the unit before that record.
    pub offset: u64,
}

impl Cuts {
    /// Into `count` parts of equal counts, of units of so many records.
    pub fn even_records(count: u64, units: impl Iterator<Item = u64>) -> Self {
        let (mut records, mut firsts) = (0, Vec::new());
        for unit in units {
            firsts.push(records);
            records += unit;
        }
        Self::Records {
            even: Even { count, records },
            firsts,
        }
    }

    /// How many parts there are when the last record went into part `last`.
    #[must_use]
    pub fn count(&self, last: u64) -> u64 {
        match self {
            Self::Units => last + 1,
            Self::Even { count, .. } => *count,
            Self::Records { even, .. } => even.count,
            Self::Keys(keys) => keys.len() as u64 + 1,
        }
    }

    /// The key from which on records belong to `part`, where keys decide.
    #[must_use]
    pub fn from_key(&self, part: u64) -> Option<&Vec<u8>> {
        match self {
            Self::Keys(keys) if part > 0 => keys[part as usize - 1].as_ref(),
            _ => None,
        }
    }

    /// The part of a record that stands there; `None` where units decide.
    #[must_use]
    pub fn part(&self, order: &Order, record: &[u8], stands: Stands) -> Option<u64> {
        match self {
            Self::Units => None,
            Self::Even { count, bytes } => {
                let at = u128::from(stands.at);
                Some((at * u128::from(*count) / u128::from(*bytes)) as u64)
            }
            Self::Records { even, firsts } => {
                Some(even.part(firsts[stands.unit] + stands.index as u64))
            }
            Self::Keys(keys) => Some(keys.partition_point(|key| {
                key.as_ref()
                    .is_some_and(|key| order.compare_with_key(record, key).is_ge())
            }) as u64),
        }
    }

    /// The byte of the output that `part` reaches at least; 0 where nobody knows.
    #[must_use]
    pub fn reaches(&self, part: u64) -> u64 {
        match self {
            Self::Even { count, bytes } => {
                let end = u128::from(part + 1) * u128::from(*bytes);
                end.div_ceil(u128::from(*count)) as u64
            }
            Self::Units | Self::Records { .. } | Self::Keys(_) => 0,
        }
    }

    /// Where parts begin in unit number `unit` of `count` sorted records and `bytes` bytes that begins at byte `start` of the
    /// output: one for its first record, and one wherever another part begins.
    pub fn in_unit<'a>(
        &self,
        order: &Order,
        (unit, start): (usize, u64),
        (count, bytes): (usize, u64),
        item: impl Fn(usize) -> Item<'a>,
    ) -> Vec<Begin> {
        let mut begins: Vec<Begin> = Vec::new();
        let mut at = At {
            index: 0,
            offset: 0,
        };
        while at.index < count {
            let stands = Stands {
                unit,
                index: at.index,
                at: start + at.offset,
            };
            let part = self.part(order, item(at.index).short(), stands);
            begins.push(Begin {
                part,
                index: at.index,
                offset: at.offset,
            });
            let size = match order.format() {
                Format::Fixed(size) => Some(u64::from(size)),
                _ => None,
            };
            match (self, part) {
                (Self::Even { .. }, Some(part)) => {
                    let target = self.reaches(part) - start;
                    if target >= bytes {
                        break;
                    }
                    at.go_to_byte(target, size, count, &item);
                }
                (Self::Records { even, firsts }, Some(part)) => {
                    let index = (even.begin(part + 1) - firsts[unit]) as usize;
                    if index >= count {
                        break;
                    }
                    at.go_to_record(index, size, &item);
                }
                (Self::Keys(keys), Some(part)) => {
                    let Some(Some(next)) = keys.get(part as usize) else {
                        break;
                    };
                    let is_below =
                        |index: usize| order.compare_with_key(item(index).short(), next).is_lt();
                    let index = partition_point(at.index, count, is_below);
                    if index == count {
                        break;
                    }
                    at.go_to_record(index, size, &item);
                }
                _ => break,
            }
        }
        begins
    }
}

/// A place among a unit's records.
struct At {
    index: usize,
    offset: u64,
}

impl At {
    /// To the first record that begins at or behind byte `target`; `size` is that of all records, if they have one.
    fn go_to_byte<'a>(
        &mut self,
        target: u64,
        size: Option<u64>,
        count: usize,
        item: impl Fn(usize) -> Item<'a>,
    ) {
        if let Some(size) = size {
            self.index = target.div_ceil(size) as usize;
            self.offset = self.index as u64 * size;
            return;
        }
        while self.offset < target && self.index < count {
            self.offset += item(self.index).bytes();
            self.index += 1;
        }
    }

    /// To record `index`.
    fn go_to_record<'a>(
        &mut self,
        index: usize,
        size: Option<u64>,
        item: impl Fn(usize) -> Item<'a>,
    ) {
        self.offset += match size {
            Some(size) => (index - self.index) as u64 * size,
            None => (self.index..index).map(|index| item(index).bytes()).sum(),
        };
        self.index = index;
    }
}

/// The first of `from..to` that is not below.
fn partition_point(from: usize, to: usize, is_below: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (from, to);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_below(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The part that records go into, and where in the output it begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    /// Which part.
    pub part: u64,
    /// The byte of the output that is its first.
    pub start: u64,
    /// Whether any record has gone into it or a part before.
    pub begun: bool,
}

impl Standing {
    /// Where things stand once the record at byte `at` of the output has gone into `part`, a new one if none
    /// is said.
    #[must_use]
    pub fn then(self, part: Option<u64>, at: u64) -> Self {
        let new = self.part + u64::from(self.begun);
        let part = part.unwrap_or(new);
        let same = self.begun && part == self.part;
        Self {
            part,
            start: if same { self.start } else { at },
            begun: true,
        }
    }
}

/// In which part each unit goes on: a state machine without I/O. Cloning shares it.
#[derive(Clone)]
pub struct Row {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// What units have told, until it is used.
    told: Vec<Option<Told>>,
    /// Where things stand before each unit, as far as that is known.
    before: Vec<Standing>,
    aborted: bool,
}

/// What a unit tells: the byte of the output it begins at, and the first and the last of the places where parts
/// begin in it.
struct Told {
    start: u64,
    begins: Option<(Begin, Begin)>,
}

impl Row {
    /// Of `count` units, of which nothing is known.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    told: (0..count).map(|_| None).collect(),
                    before: vec![Standing::default()],
                    aborted: false,
                }),
                changed: Condvar::new(),
            }),
        }
    }

    /// Tells where parts begin in unit `number`, which begins at byte `start` of the output.
    pub fn tell(&self, number: usize, start: u64, begins: &[Begin]) {
        let mut guard = lock(&self.shared.state);
        let state = &mut *guard;
        state.told[number] = Some(Told {
            start,
            begins: begins.first().copied().zip(begins.last().copied()),
        });
        loop {
            let known = state.before.len() - 1;
            let Some(told) = state.told.get_mut(known).and_then(Option::take) else {
                break;
            };
            state.before.push(told.after(state.before[known]));
        }
        self.shared.changed.notify_all();
    }

    /// Where things stand before unit `number`, or after the last: waits until all units below have told.
    /// `None` when the job is ending.
    #[must_use]
    pub fn before(&self, number: usize) -> Option<Standing> {
        let mut state = lock(&self.shared.state);
        loop {
            if state.aborted {
                return None;
            }
            if let Some(&standing) = state.before.get(number) {
                return Some(standing);
            }
            state = wait(&self.shared.changed, state);
        }
    }

    /// Ends every wait, now and later.
    pub fn abort(&self) {
        lock(&self.shared.state).aborted = true;
        self.shared.changed.notify_all();
    }
}

impl Told {
    fn after(&self, before: Standing) -> Standing {
        let Some((first, last)) = self.begins else {
            return before;
        };
        let standing = before.then(first.part, self.start);
        match last.index > 0 {
            true => standing.then(last.part, self.start + last.offset),
            false => standing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_is_in_the_part_that_begins_before_it() {
        for count in 1..20 {
            for records in 1..60 {
                let even = Even { count, records };
                for record in 0..records {
                    let part = even.part(record);
                    let within = even.begin(part)..even.begin(part + 1);
                    assert!(
                        part < count && within.contains(&record),
                        "{even:?} {record}"
                    );
                }
            }
        }
    }
}
