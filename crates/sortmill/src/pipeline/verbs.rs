//! What is done to one record after the other: verbs that need no other record.
//!
//! In comes a record, as a row of values; out go any number of records to whoever is next. Each worker has steps of its
//! own, with their scratch space. Text is cut where it lies, and copied where words are looked for.

use std::cell::Cell;

use regex::bytes::CaptureLocations;
use sortmill_io::sync::Arc;

use super::aggregate::State;
use super::closures::told;
use super::column::{Column, Value, row};
use super::compute::With;
use super::draw::{Place, Sample};
use super::gather::{Batches, Batching};
use super::letters::WordFinder;
use super::lists::{Unpack, Unpacking};
use super::long_text::Cutting;
use super::ngrams::Ngrams;
use super::observe::Observe;
use super::parts::{How, Parts};
use super::patterns::Pattern;
use super::reckon::Reckoned;
use super::several::Spread;
use super::time::TIMESTAMPS;
use super::together::{Open, Together};
use super::unpivot::Unpivot;
use crate::batch::Pause;
use crate::error::{Error, ErrorKind, Result};
use crate::stage::kernel::marks;

/// Takes one record after the other.
pub type Sink<'s> = &'s mut dyn FnMut(&[Value<'_>]) -> Result<()>;

/// Whether a record is kept, by the values of the columns it was asked for.
pub type FilterFn = Arc<dyn Fn(&[Value<'_>]) -> Result<bool> + Send + Sync>;

/// A function of the values of the columns it was asked for, which hands any number of records to its second argument.
pub type EachFn = Arc<dyn Fn(&[Value<'_>], Sink<'_>) -> Result<()> + Send + Sync>;

/// A step, and where its columns are.
#[derive(Clone)]
pub(super) enum Step {
    Parts {
        at: usize,
        parts: Parts,
    },
    /// The same, and in front of the parts the values of some columns.
    PartsBeside {
        at: usize,
        kept: Vec<usize>,
        parts: Parts,
    },
    Filter {
        at: Vec<usize>,
        function: FilterFn,
    },
    Select(Vec<usize>),
    /// Those in whose column a pattern is found, or those in which it is not.
    Matches {
        at: usize,
        pattern: Pattern,
        is_inverted: bool,
    },
    With(With),
    Sample(Sample),
    Each {
        at: Vec<usize>,
        made: Vec<Column>,
        function: EachFn,
    },
    Batches(Batches),
    KeepIf(Reckoned),
    Observe(Observe),
    Unpack(Unpack),
    Unpivot(Unpivot),
    Spread(Spread),
    Together(Together),
}

impl Step {
    /// Where column `at` is behind it, if the values of each record that comes out are there as they were, and records keep their order.
    pub fn keeps(&self, at: usize) -> Option<usize> {
        match self {
            Self::Filter { .. }
            | Self::Matches { .. }
            | Self::Sample(_)
            | Self::KeepIf(_)
            | Self::Observe(_) => Some(at),
            Self::Select(columns) => columns.iter().position(|&column| column == at),
            Self::With(with) => with.keeps(at),
            Self::Together(together) => together.keeps(at),
            Self::Parts { .. }
            | Self::PartsBeside { .. }
            | Self::Each { .. }
            | Self::Batches(_)
            | Self::Unpack(_)
            | Self::Unpivot(_)
            | Self::Spread(_) => None,
        }
    }
}

/// Where the record in hand comes from and where what becomes of it goes.
#[derive(Clone, Copy)]
pub(super) struct Going<'g> {
    /// Where its slab lies: the number of the input, and the byte there that the slab begins with.
    pub slab: Place,
    /// Where it begins in its slab.
    pub place: u32,
    /// The same of what comes to the sink: behind functions of batches that is made of records before.
    pub sunk: &'g Cell<u32>,
    /// It is only looked at.
    pub is_sample: bool,
    /// Whether functions of batches had better hold back what more they make.
    pub is_full: &'g dyn Fn() -> bool,
    /// Where the record begins that an error is about.
    pub blamed: &'g Cell<Option<u32>>,
}

impl<'g> Going<'g> {
    /// That of a record which has no place in an input, and of which everything goes on at once.
    pub fn of_no_place(sunk: &'g Cell<u32>, blamed: &'g Cell<Option<u32>>) -> Self {
        Self {
            slab: (0, 0),
            place: 0,
            sunk,
            is_sample: false,
            is_full: &|| false,
            blamed,
        }
    }

    /// Where the record lies that begins at `place` of the slab.
    pub fn lies(&self, place: u32) -> Place {
        (self.slab.0, self.slab.1.wrapping_add(u64::from(place)))
    }
}

/// Steps with the scratch space of one worker.
pub(super) struct Steps {
    steps: Vec<(Step, Scratch)>,
}

#[derive(Default)]
struct Scratch {
    finder: WordFinder,
    rows: Option<Ngrams>,
    found: Option<CaptureLocations>,
    /// Where the last record lies that one was made of, and how many have come from there.
    place: Option<Place>,
    from_place: u64,
    batching: Option<Box<Batching>>,
    /// What has been observed.
    seen: Vec<State>,
    /// A list for whose numbers there was no room, or a text for whose parts.
    unpacking: Option<Box<Unpacking>>,
    cutting: Option<Box<Cutting>>,
    /// The group that is open.
    open: Option<Box<Open>>,
}

impl Scratch {
    /// Whether something of a record is left that there was no room for.
    fn has_rest(&self) -> bool {
        self.unpacking.is_some() || self.cutting.is_some()
    }
}

impl Steps {
    pub fn new(steps: &[Step]) -> Self {
        let with_scratch = |step: &Step| {
            let mut scratch = Scratch::default();
            if let Step::Batches(batches) = step {
                scratch.batching = Some(Box::new(Batching::new(batches)));
            }
            if let Step::Together(together) = step {
                scratch.open = Some(Box::new(together.begin()));
            }
            (step.clone(), scratch)
        };
        Self {
            steps: steps.iter().map(with_scratch).collect(),
        }
    }

    /// Whether records pass as they are.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Hands what becomes of `record` to `sink`, as far as that is known already.
    pub fn go(&mut self, going: Going<'_>, record: &[Value<'_>], sink: Sink<'_>) -> Result<()> {
        go(&mut self.steps, going, record, sink)
    }

    /// Hands on what functions of batches have held back, and, unless there is only `Room` for that, what they make of the
    /// records gathered so far.
    pub fn pause(&mut self, pause: Pause, going: Going<'_>, sink: Sink<'_>) -> Result<()> {
        for at in (0..self.steps.len()).rev() {
            drain(&mut self.steps[at..], going, sink)?;
            // What comes from in front of one that still has something would have to go over at once.
            if self.steps[at..].iter().any(holds) {
                break;
            }
        }
        for at in 0..self.steps.len() {
            if pause == Pause::Room || self.is_held() {
                break;
            }
            if pause == Pause::End {
                end_groups(&mut self.steps[at..], going, sink)?;
            }
            let Some(batching) = &mut self.steps[at].1.batching else {
                continue;
            };
            call(batching, going)?;
            drain(&mut self.steps[at..], going, sink)?;
            if pause == Pause::End
                && let Some(batching) = &mut self.steps[at].1.batching
                && !batching.is_pending
            {
                batching.finish(going.is_sample)?;
                drain(&mut self.steps[at..], going, sink)?;
            }
        }
        if pause == Pause::End && !self.is_held() {
            for (step, scratch) in &mut self.steps {
                if let Step::Observe(observe) = step {
                    observe.end(&mut scratch.seen)?;
                }
            }
        }
        Ok(())
    }

    /// Whether something is held back.
    pub fn is_held(&self) -> bool {
        self.steps.iter().any(holds)
    }
}

/// Whether a step holds something back.
fn holds((_, scratch): &(Step, Scratch)) -> bool {
    let batching = scratch.batching.as_ref();
    batching.is_some_and(|batching| batching.is_pending) || scratch.has_rest()
}

/// Calls the function of a batch.
fn call(batching: &mut Batching, going: Going<'_>) -> Result<()> {
    batching.call(going.is_sample, &mut |place| {
        going.blamed.set(Some(place));
    })
}

/// Hands on what the first of `steps` has to hand over, if it is one that takes batches, unpacks lists or cuts long texts.
fn drain(steps: &mut [(Step, Scratch)], going: Going<'_>, sink: Sink<'_>) -> Result<()> {
    let Some(((step, scratch), rest)) = steps.split_first_mut() else {
        return Ok(());
    };
    if let (Step::Unpack(unpack), Some(left)) = (&*step, scratch.unpacking.take()) {
        let place = left.place;
        let mut next = |made: &[Value<'_>]| {
            going.sunk.set(place);
            go(rest, Going { place, ..going }, made, sink)
        };
        scratch.unpacking = unpack.go_on(left, going.is_full, &mut next)?;
        return Ok(());
    }
    if let (Step::Parts { parts, .. } | Step::PartsBeside { parts, .. }, Some(mut left)) =
        (&*step, scratch.cutting.take())
    {
        let place = left.place;
        let mut next = |made: &[Value<'_>]| {
            going.sunk.set(place);
            go(rest, Going { place, ..going }, made, sink)
        };
        let is_all = left.go_on(parts, &mut scratch.finder, going.is_full, &mut next)?;
        scratch.cutting = (!is_all).then_some(left);
        return Ok(());
    }
    let batching = &mut scratch.batching;
    let Some(batching) = batching.as_mut().filter(|batching| batching.is_pending) else {
        return Ok(());
    };
    let next = |place: u32, made: &[Value<'_>]| {
        going.sunk.set(place);
        go(rest, Going { place, ..going }, made, sink)
    };
    batching.drain(next, going.is_full)
}

/// Ends the groups of the first of `steps`, if it is one that has some.
fn end_groups(steps: &mut [(Step, Scratch)], going: Going<'_>, sink: Sink<'_>) -> Result<()> {
    let Some(((step, scratch), rest)) = steps.split_first_mut() else {
        return Ok(());
    };
    let (Step::Together(together), Some(open)) = (step, &mut scratch.open) else {
        return Ok(());
    };
    together.end(open, &mut |made| go(rest, going, made, sink))
}

fn go(
    steps: &mut [(Step, Scratch)],
    going: Going<'_>,
    record: &[Value<'_>],
    sink: Sink<'_>,
) -> Result<()> {
    let Some(((step, scratch), _)) = steps.split_first_mut() else {
        return sink(record);
    };
    if let (Step::Batches(_), Some(batching)) = (step, &mut scratch.batching) {
        if !batching.push(going.place, record)? {
            return Ok(());
        }
        if batching.is_pending {
            // The record in front made so much of itself that it cannot wait.
            let going = Going {
                is_full: &|| false,
                ..going
            };
            drain(steps, going, sink)?;
        }
        let batching = steps[0].1.batching.as_mut().expect("it was there");
        call(batching, going)?;
        return drain(steps, going, sink);
    }
    if scratch.has_rest() {
        // The list or text in front was so long that it cannot wait.
        let sunk = going.sunk.get();
        let without_bound = Going {
            is_full: &|| false,
            ..going
        };
        drain(steps, without_bound, sink)?;
        going.sunk.set(sunk);
    }
    let Some(((step, scratch), rest)) = steps.split_first_mut() else {
        return Ok(());
    };
    let next: Sink<'_> = match rest.is_empty() {
        true => sink,
        false => &mut |made: &[Value<'_>]| go(rest, going, made, sink),
    };
    match step {
        Step::Batches(_) => Ok(()),
        Step::Parts { at, parts } => match record[*at] {
            Value::Null => parts.of_null(),
            value if is_begun(parts, value.bytes(), &[], (record, going.place), scratch) => {
                drain(steps, going, sink)
            }
            value => cut(parts, value.bytes(), scratch, next),
        },
        Step::PartsBeside { at, kept, parts } => match record[*at] {
            Value::Null => parts.of_null(),
            value if is_begun(parts, value.bytes(), kept, (record, going.place), scratch) => {
                drain(steps, going, sink)
            }
            value => cut(parts, value.bytes(), scratch, &mut |made| {
                let get = |number: usize| match kept.get(number) {
                    Some(&at) => Ok(record[at]),
                    None => Ok(made[number - kept.len()]),
                };
                row(kept.len() + made.len(), get, &mut *next)
            }),
        },
        Step::Filter { at, function } => {
            match row(
                at.len(),
                |number| Ok(record[at[number]]),
                |values| function(values),
            )? {
                true => next(record),
                false => Ok(()),
            }
        }
        Step::Matches {
            at,
            pattern,
            is_inverted,
        } => match record[*at] {
            // Nobody knows whether it would be found there.
            Value::Null => Ok(()),
            value if pattern.is_in(value.bytes()) != *is_inverted => next(record),
            _ => Ok(()),
        },
        Step::With(with) => with.go(record, next),
        Step::Unpivot(unpivot) => unpivot.go(record, next),
        Step::Spread(spread) => spread.go(record, next),
        Step::Together(together) => {
            let open = scratch.open.as_mut().expect("it was made");
            together.go(open, record, next)
        }
        Step::KeepIf(condition) => match condition.is_true(record)? {
            true => next(record),
            false => Ok(()),
        },
        Step::Observe(observe) => {
            if !going.is_sample {
                observe.add(&mut scratch.seen, record);
            }
            next(record)
        }
        Step::Unpack(unpack) => {
            scratch.unpacking = unpack.go(going.place, record, going.is_full, next)?;
            Ok(())
        }
        Step::Sample(sample) => {
            let place = going.lies(going.place);
            if scratch.place.replace(place) != Some(place) {
                scratch.from_place = 0;
            }
            let index = scratch.from_place;
            scratch.from_place += 1;
            match sample.keeps(place, index) {
                true => next(record),
                false => Ok(()),
            }
        }
        Step::Select(at) => row(at.len(), |number| Ok(record[at[number]]), next),
        Step::Each { at, made, function } => row(
            at.len(),
            |number| Ok(record[at[number]]),
            |values| {
                function(values, &mut |values| {
                    check_values(values, made)?;
                    next(values)
                })
            },
        ),
    }
}

/// Refuses what a function made if it is not what the columns `made` hold.
pub(super) fn check_values(values: &[Value<'_>], made: &[Column]) -> Result<()> {
    let mut both = values.iter().zip(made);
    let are_right = both.all(|(value, column)| column.holds(value));
    if are_right && values.len() == made.len() {
        return Ok(());
    }
    let beyond = |value: &&Value<'_>| matches!(value, Value::Timestamp(micros) if !TIMESTAMPS.contains(micros));
    let cause = match values.iter().find(beyond) {
        Some(Value::Timestamp(micros)) => format!(
            "{micros} microseconds since 1970 are no timestamp: it is one of the years 1 to 9999"
        ),
        _ => {
            let wanted: Vec<String> = made.iter().map(Column::type_name).collect();
            let found: Vec<String> = values.iter().map(|&value| told(value)).collect();
            format!(
                "it made ({}), which is not ({})",
                found.join(", "),
                wanted.join(", ")
            )
        }
    };
    Err(Error::new(ErrorKind::Function, "calling a function", cause))
}

/// Begins to cut a text that is so long that not all of it need be handed over at once, beside the columns `kept` of its record,
/// which begins at a place; whether it is one.
fn is_begun(
    parts: &Parts,
    text: &[u8],
    kept: &[usize],
    (record, place): (&[Value<'_>], u32),
    scratch: &mut Scratch,
) -> bool {
    let kept = kept.iter().map(|&at| record[at]);
    scratch.cutting = Cutting::of(parts, text, kept, place);
    scratch.cutting.is_some()
}

fn cut(parts: &Parts, text: &[u8], scratch: &mut Scratch, next: Sink<'_>) -> Result<()> {
    match &parts.how {
        How::Words { lower } => scratch
            .finder
            .each(text, *lower, |word| next(&[Value::Bytes(word)])),
        How::Ngrams { count, lower } => {
            let rows = scratch
                .rows
                .get_or_insert_with(|| Ngrams::new(*count, *lower));
            rows.begin(false);
            rows.each(text, &mut scratch.finder, |row| next(&[Value::Bytes(row)]))
        }
        How::Extract { pattern } => pattern.extract(text, &parts.made, &mut scratch.found, next),
        How::Split { by } => each_part(text, by, |part| next(&[Value::Bytes(part)])),
        How::Fields { by } => {
            // So many need no memory of their own.
            const FEW: usize = 8;
            let (mut few, mut many) = ([Value::Null; FEW], Vec::new());
            let values = match few.get_mut(..parts.made.len()) {
                Some(few) => few,
                None => {
                    many.resize(parts.made.len(), Value::Null);
                    &mut many[..]
                }
            };
            let mut found = 0;
            each_part(text, by, |part| {
                if let (Some(column), Some(value)) = (parts.made.get(found), values.get_mut(found))
                {
                    *value = match column.kind.is_bytes() && !column.nullable {
                        true => Value::Bytes(part),
                        false => column.read(part)?,
                    };
                }
                found += 1;
                Ok(())
            })?;
            parts.check_count(found)?;
            next(values)
        }
    }
}

/// Hands what stands between the places where `by` is in `text` to `see`.
#[inline(always)]
pub(super) fn each_part<'a>(
    text: &'a [u8],
    by: &[u8],
    mut see: impl FnMut(&'a [u8]) -> Result<()>,
) -> Result<()> {
    let mut from = 0;
    if let &[by] = by {
        if let Some(mut marks) = marks(text, by) {
            while marks != 0 {
                let at = marks.trailing_zeros() as usize;
                see(&text[from..at])?;
                from = at + 1;
                marks &= marks - 1;
            }
            return see(&text[from..]);
        }
        // To make ready to look for more takes longer than to look for one.
        for at in memchr::memchr_iter(by, text) {
            see(&text[from..at])?;
            from = at + 1;
        }
        return see(&text[from..]);
    }
    for at in memchr::memmem::find_iter(text, by) {
        see(&text[from..at])?;
        from = at + by.len();
    }
    see(&text[from..])
}

#[cfg(test)]
mod tests {
    use super::super::column::Type;
    use super::super::parts::{fields, ngrams, split, words};
    use super::*;

    /// Has one step work on a record.
    fn go(step: Step, record: &[Value<'_>], sink: Sink<'_>) -> Result<()> {
        let (sunk, blamed) = (Cell::new(0), Cell::new(None));
        let going = Going::of_no_place(&sunk, &blamed);
        Steps::new(&[step]).go(going, record, sink)
    }

    fn check(parts: &Parts, text: &str, wanted: &[&str]) {
        assert!(parts.wrong().is_none());
        let step = Step::Parts {
            at: 0,
            parts: parts.clone(),
        };
        let mut found = Vec::new();
        let mut see = |values: &[Value<'_>]| {
            let text = |value: &Value<'_>| match value {
                Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                other => format!("{other:?}"),
            };
            found.push(values.iter().map(text).collect::<Vec<_>>().join("|"));
            Ok(())
        };
        let record = [Value::Bytes(text.as_bytes())];
        go(step, &record, &mut see).unwrap();
        assert_eq!(found, wanted, "{text:?}");
    }

    #[test]
    fn words_are_letters_and_digits_of_any_script() {
        check(
            &words("line"),
            "It's 2 O'Clock!",
            &["It", "s", "2", "O", "Clock"],
        );
        check(
            &words("line").lower(),
            "ÄRGER in Straße,ΣΑΣ",
            &["ärger", "in", "straße", "σας"],
        );
        check(&words("line"), "", &[]);
        check(&words("line"), " - ", &[]);
        check(&words("line"), "日本 x", &["日本", "x"]);
        let step = Step::Parts {
            at: 0,
            parts: words("line"),
        };
        let mut found = Vec::new();
        let record = [Value::Bytes(b"a\xffb\xc3")];
        let mut see = |values: &[Value<'_>]| {
            found.push(values[0].bytes().to_vec());
            Ok(())
        };
        go(step, &record, &mut see).unwrap();
        assert_eq!(found, [b"a", b"b"]);
    }

    #[test]
    fn ngrams_split_and_fields() {
        check(
            &ngrams("line", 2).lower(),
            "One two, THREE",
            &["one two", "two three"],
        );
        check(&ngrams("line", 1), "One two", &["One", "two"]);
        check(&ngrams("line", 4), "One two three", &[]);
        check(&split("line", ", "), "a, b,c, ", &["a", "b,c", ""]);
        let columns = vec![Column::new("a", Type::String), Column::new("b", Type::F64)];
        check(
            &fields("line", "\t", columns.clone()),
            "x\t 2.5",
            &["x|F64(2.5)"],
        );
        for (text, cause) in [
            ("x", "1 fields"),
            ("x\t1\t2", "3 fields"),
            ("x\ty", "column b"),
        ] {
            let step = Step::Parts {
                at: 0,
                parts: fields("line", "\t", columns.clone()),
            };
            let record = [Value::Bytes(text.as_bytes())];
            let error = go(step, &record, &mut |_| Ok(())).unwrap_err();
            assert!(error.cause.contains(cause), "{error}");
        }
    }
}
