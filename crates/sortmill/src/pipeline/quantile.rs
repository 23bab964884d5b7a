//! The value that a fraction of a group's values lie below, exactly, of groups of any size.
//!
//! Which places in order are wanted is known once it is known how many values there are. So the first pairs of a group have
//! counts and no value (their key comes in front of those of all values, `key.rs`); then values come in order, each with how
//! often it is there, and the two that are wanted are taken as they pass by.
//!
//! Between two values it lies on the line from one to the other, as numpy has it where nothing else is said (definition 7 of R. J.
//! Hyndman and Y. Fan, Sample quantiles in statistical packages, 1996).

use super::column::Value;

/// What is known so far of a group's values.
#[derive(Clone, Copy, Default, Debug)]
pub struct Quantile {
    fraction: f64,
    /// How many values there are, and how many have come.
    total: u64,
    seen: u64,
    /// The one that is coming.
    value: f64,
    /// Those at the wanted place and behind it.
    below: f64,
    above: f64,
}

impl Quantile {
    /// The one at `fraction` of the way from the least value to the greatest, from 0 to 1.
    #[must_use]
    pub fn new(fraction: f64) -> Self {
        Self {
            fraction,
            ..Self::default()
        }
    }

    /// There are so many more values. `None` if that is too many.
    pub fn expect(&mut self, count: u64) -> Option<()> {
        self.total = self.total.checked_add(count)?;
        Some(())
    }

    /// The next value in order comes.
    pub fn next(&mut self, value: &Value<'_>) {
        self.value = match *value {
            Value::I64(value) => value as f64,
            Value::U64(value) => value as f64,
            Value::F64(value) => value,
            _ => return,
        };
    }

    /// It is there so often, or so often more. `None` if that is too often.
    pub fn pass(&mut self, count: u64) -> Option<()> {
        let (place, _) = self.place();
        let end = self.seen.checked_add(count)?;
        let has = |place: u64| (self.seen..end).contains(&place);
        if has(place) {
            self.below = self.value;
        }
        if has(place.saturating_add(1)) {
            self.above = self.value;
        }
        self.seen = end;
        Some(())
    }

    /// How many values have come.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// The wanted place in order, from 0, and how far on to the next one.
    fn place(&self) -> (u64, f64) {
        let place = self.fraction * self.total.saturating_sub(1) as f64;
        (place as u64, place.fract())
    }

    /// What comes out; nothing of no values. `None` if not as many values came as were expected.
    #[must_use]
    pub fn value(&self) -> Option<Value<'static>> {
        if self.seen != self.total {
            return None;
        }
        let (place, on) = self.place();
        Some(match self.total {
            0 => Value::Null,
            // Nothing is behind the last one.
            _ if place + 1 >= self.total => Value::F64(self.below),
            _ => Value::F64(between(self.below, self.above, on)),
        })
    }
}

/// What lies `on` of the way from one value to another, from 0 to 1.
pub fn between(below: f64, above: f64, on: f64) -> f64 {
    match on {
        // Beside what is no number nothing is between.
        _ if on == 0.0 || below == above => below,
        // So far from each other that their difference is none.
        _ if (above - below).is_infinite() && below.is_finite() && above.is_finite() => {
            below * (1.0 - on) + above * on
        }
        // From the nearer end, so that both ends are exact.
        _ if on < 0.5 => below + (above - below) * on,
        _ => above - (above - below) * (1.0 - on),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of values in order, of which pairs have come in some pieces.
    fn check(fraction: f64, values: &[(f64, u64)], wanted: Value<'_>) {
        let mut one = Quantile::new(fraction);
        for (_, count) in values {
            one.expect(*count).unwrap();
        }
        for (value, count) in values {
            one.next(&Value::F64(*value));
            one.pass(count / 3).unwrap();
            one.pass(count - count / 3).unwrap();
        }
        assert_eq!(one.value(), Some(wanted), "{fraction} of {values:?}");
        one.expect(1).unwrap();
        assert_eq!(one.value(), None);
    }

    #[test]
    fn the_value_at_a_place_in_order() {
        let f64 = Value::F64;
        check(0.5, &[], Value::Null);
        // Their difference is no float.
        let end = 1.5 * 2.0f64.powi(1023);
        let far = [(-end, 1), (end, 1)];
        check(0.25, &far, f64(-end / 2.0));
        check(0.75, &far, f64(end / 2.0));
        for fraction in [0.0, 0.3, 1.0] {
            check(fraction, &[(7.0, 1)], f64(7.0));
            check(fraction, &[(7.0, 1000)], f64(7.0));
        }
        let values = [(-2.0, 1), (1.0, 5), (3.0, 2)];
        check(0.0, &values, f64(-2.0));
        check(0.5, &values, f64(1.0));
        check(1.0, &values, f64(3.0));
        // At 5.25 of 0 to 7, a quarter of the way from 1 to 3.
        check(0.75, &values, f64(1.5));
        check(0.5, &[(1.0, 1), (2.0, 1)], f64(1.5));
        check(0.5, &[(1.0, 1), (f64::INFINITY, 3)], f64(f64::INFINITY));
    }
}
