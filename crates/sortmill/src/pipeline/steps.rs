//! About which value a fraction of all lie below, in at most 64 KiB.
//!
//! Values are counted by steps: floats that begin with the same bits, of those that compare as floats do (`key.rs`). A step is
//! one value at first; when there are too many, each two beside each other become one, and so on. So a step is wide where
//! values are large, and all are as narrow as their number allows. Uniform collapse, as this is called (I. Epicoco et al., UDDSketch,
//! 2020, over the logarithmic steps of C. Masson et al., DDSketch, VLDB 2019), makes steps of any part of the values at most as wide
//! as those of all, so neither order nor the way of merging change anything; bits need no logarithm that could differ between machines.

use super::column::{Value, take};
use super::key::{float, float_bits};

/// So many steps at most. Of 30 octaves of one sign they have 6 bits behind the first one: a step is at most 1/64 of its values.
const STEPS_MAX: usize = 2048;

/// What is known of the values that have come.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    /// So many bits at the end tell nothing.
    shift: u32,
    /// What is in front of those, in order, and how many values have it.
    steps: Vec<(u64, u64)>,
    /// All bits of the least value and of the greatest one.
    ends: Option<(u64, u64)>,
}

impl Steps {
    /// The most that one takes, itself included: what grows is doubled.
    pub const BYTES_MAX: usize = size_of::<Self>() + 2 * STEPS_MAX * size_of::<(u64, u64)>();

    /// Takes a value; none is not counted.
    pub fn add(&mut self, value: &Value<'_>) {
        let bits = float_bits(match *value {
            Value::I64(value) => value as f64,
            Value::U64(value) => value as f64,
            Value::F64(value) => value,
            _ => return,
        });
        self.stretch((bits, bits));
        self.count(bits >> self.shift, 1)
            .expect("so many records there are not");
        self.join();
    }

    fn stretch(&mut self, (least, most): (u64, u64)) {
        let (first, last) = self.ends.unwrap_or((least, most));
        self.ends = Some((first.min(least), last.max(most)));
    }

    /// `None` if that is too many.
    fn count(&mut self, step: u64, count: u64) -> Option<()> {
        match self.steps.binary_search_by_key(&step, |&(step, _)| step) {
            Ok(at) => self.steps[at].1 = self.steps[at].1.checked_add(count)?,
            Err(at) => self.steps.insert(at, (step, count)),
        }
        Some(())
    }

    /// Makes steps wider until there are few enough.
    fn join(&mut self) {
        while self.steps.len() > STEPS_MAX {
            self.widen(self.shift + 1);
        }
    }

    fn widen(&mut self, shift: u32) {
        let by = shift - self.shift;
        self.shift = shift;
        let mut kept: usize = 0;
        for at in 0..self.steps.len() {
            let (step, count) = (self.steps[at].0 >> by, self.steps[at].1);
            match kept
                .checked_sub(1)
                .filter(|&last| self.steps[last].0 == step)
            {
                Some(last) => self.steps[last].1 += count,
                None => {
                    self.steps[kept] = (step, count);
                    kept += 1;
                }
            }
        }
        self.steps.truncate(kept);
    }

    /// Appends what [`Steps::merge`] reads: the shift (a byte), how many steps (2 bytes), of each its bits and its count (8 bytes
    /// each), and, where a step is more than one value, the least value and the greatest one (8 bytes each).
    pub fn write(&self, to: &mut Vec<u8>) {
        to.push(self.shift as u8);
        to.extend((self.steps.len() as u16).to_le_bytes());
        for (step, count) in &self.steps {
            to.extend(step.to_le_bytes());
            to.extend(count.to_le_bytes());
        }
        if let (1.., Some((least, most))) = (self.shift, self.ends) {
            to.extend(least.to_le_bytes());
            to.extend(most.to_le_bytes());
        }
    }

    /// Takes what [`Steps::write`] wrote of other values. `None` if that is none.
    pub fn merge(&mut self, from: &mut &[u8]) -> Option<()> {
        let number = |from: &mut &[u8]| {
            let bytes = take(from, 8)?.try_into().expect("eight bytes");
            Some(u64::from_le_bytes(bytes))
        };
        let shift = u32::from(take(from, 1)?[0]);
        let count = take(from, 2)?.try_into().expect("two bytes");
        let count = usize::from(u16::from_le_bytes(count));
        if shift >= u64::BITS || count > STEPS_MAX || shift > 0 && count == 0 {
            return None;
        }
        if shift > self.shift {
            self.widen(shift);
        }
        for _ in 0..count {
            let (step, count) = (number(from)?, number(from)?);
            if shift == 0 {
                self.stretch((step, step));
            }
            self.count(step >> (self.shift - shift), count)?;
            self.join();
        }
        if shift > 0 {
            let ends = (number(from)?, number(from)?);
            self.stretch(ends);
        }
        Some(())
    }

    /// The value at `fraction` of the way from the least to the greatest, or nothing of none: exactly, as `quantile.rs` has it, as
    /// long as there are few enough different values, and else the middle of the step that the value is in that is nearest.
    #[must_use]
    pub fn value(&self, fraction: f64) -> Value<'static> {
        let total: u64 = self.steps.iter().map(|(_, count)| count).sum();
        let (Some(last), Some((least, most))) = (total.checked_sub(1), self.ends) else {
            return Value::Null;
        };
        let place = fraction * last as f64;
        if self.shift == 0 {
            let below = float(self.at(place as u64));
            let above = float(self.at((place as u64).saturating_add(1).min(last)));
            return Value::F64(super::quantile::between(below, above, place.fract()));
        }
        let place = (place.round() as u64).min(last);
        let (first, end) = match place {
            0 => (least, least),
            place if place == last => (most, most),
            place => {
                let step = self.at(place) << self.shift;
                let end = step | ((1 << self.shift) - 1);
                (step.max(least), end.min(most))
            }
        };
        let (first, end) = (float(first), float(end));
        Value::F64(if first == end {
            first
        } else {
            first / 2.0 + end / 2.0
        })
    }

    /// The step that the value at `place` is in.
    fn at(&self, place: u64) -> u64 {
        let mut before = 0;
        let step = self.steps.iter().find(|(_, count)| {
            before += count;
            before > place
        });
        step.or(self.steps.last()).map_or(0, |&(step, _)| step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Steps {
        let mut steps = Steps::default();
        values
            .iter()
            .for_each(|&value| steps.add(&Value::F64(value)));
        steps
    }

    fn at(steps: &Steps, fraction: f64) -> f64 {
        match steps.value(fraction) {
            Value::F64(value) => value,
            other => panic!("{other:?}"),
        }
    }

    /// Values of many sizes, from a generator that is always the same.
    fn drawn(count: usize, octaves: u64) -> Vec<f64> {
        let mut state = 20_261_123u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005);
            state = state.wrapping_add(1_442_695_040_888_963_407);
            state >> 11
        };
        let one = |_| {
            let fraction = next() as f64 / (1u64 << 53) as f64;
            (1.0 + fraction) * 2f64.powi((next() % octaves) as i32 - 10)
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn near_the_truth_and_exact_where_values_are_few() {
        for (count, octaves, error) in [
            (20_000, 29, 1.0 / 128.0),
            (20_000, 60, 1.0 / 64.0),
            (20_000, 1, 1.0 / 2048.0),
            (2_000, 60, 1e-12),
        ] {
            let mut values = drawn(count, octaves);
            let steps = of(&values);
            assert!(steps.steps.len() <= STEPS_MAX);
            values.sort_by(f64::total_cmp);
            for fraction in [0.0, 0.01, 0.25, 0.5, 0.9, 0.999, 1.0] {
                let place = fraction * (count - 1) as f64;
                let near = values[place.round() as usize];
                let (below, above) = (values[place as usize], values[place.ceil() as usize]);
                let exact = below + (above - below) * place.fract();
                let wanted = if error < 1e-9 { exact } else { near };
                let found = at(&steps, fraction);
                let off = (found - wanted).abs() / wanted;
                assert!(
                    off <= error,
                    "{count} {octaves} {fraction} {found} {wanted}"
                );
            }
            assert_eq!(
                (at(&steps, 0.0), at(&steps, 1.0)),
                (values[0], values[count - 1])
            );
        }
        assert_eq!(Steps::default().value(0.5), Value::Null);
        let signed = of(&[-3.0, -1.0, 0.0, 5.0, f64::INFINITY]);
        assert_eq!(
            [0.0, 0.25, 0.5, 1.0].map(|of| at(&signed, of)),
            [-3.0, -1.0, 0.0, f64::INFINITY]
        );
    }

    #[test]
    fn parts_in_any_order_are_the_whole() {
        let mut values = drawn(9_000, 40);
        values.extend(drawn(3_000, 3).iter().map(|value| -value));
        let whole = of(&values);
        assert!(whole.shift > 0);
        for size in [1, 700, 5_000] {
            let mut parts: Vec<Steps> = values.chunks(size).map(of).collect();
            if size == 700 {
                parts.reverse();
            }
            let mut bytes = Vec::new();
            parts.iter().for_each(|part| part.write(&mut bytes));
            let (mut merged, mut from) = (Steps::default(), &bytes[..]);
            while !from.is_empty() {
                merged.merge(&mut from).unwrap();
            }
            assert_eq!(merged.shift, whole.shift);
            assert!(merged.steps == whole.steps && merged.ends == whole.ends);
        }
        let mut bytes = Vec::new();
        whole.write(&mut bytes);
        for end in (0..bytes.len()).step_by(97) {
            assert!(Steps::default().merge(&mut &bytes[..end]).is_none());
        }
        for foreign in [[64, 1, 0], [0, 1, 8], [3, 0, 0]] {
            assert!(Steps::default().merge(&mut &foreign[..]).is_none());
        }
    }
}
