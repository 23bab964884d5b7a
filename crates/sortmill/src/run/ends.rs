//! The proof that units come in order: none begins below where the one before it ends.
//!
//! Inside a unit each record is compared with the one before it. A record that came to a wrong partition is in order there, and
//! number and fingerprint of all records are what they should be; but it is the first or the last of that unit. Units are
//! done in any order, so ends wait here for those beside them.

use std::collections::BTreeMap;

use sortmill_io::sync::{Mutex, lock};

use super::proof::lost;
use crate::error::Result;
use crate::long::{Ends, Item};
use crate::order::Order;
use crate::stage::reduce::check_order;

/// First and last records of units, as far as they are done.
#[derive(Default)]
pub struct Row {
    /// By the number of the first unit of each stretch of neighbours: that behind the last one, and its ends, unless it holds no
    /// record.
    stretches: Mutex<BTreeMap<usize, (usize, Option<Ends>)>>,
}

impl Row {
    /// Takes the first and last record of unit `number`, `None` if it has none.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Lost`] when they are out of order with those beside it, as far as heads tell, or were there.
    pub fn tell(
        &self,
        (order, head_bytes): (&Order, usize),
        number: usize,
        ends: Option<[Item<'_>; 2]>,
    ) -> Result<()> {
        let ends = ends.map(|[first, last]| Ends::of(&first, &last));
        let mut stretches = lock(&self.stretches);
        let joined = |before: Option<Ends>, behind: Option<Ends>| match (before, behind) {
            (Some(before), Some(behind)) => {
                check_order(order, head_bytes, &before.last(), &behind.first())?;
                Ok(Some(before.until(behind)))
            }
            (before, behind) => Ok(before.or(behind)),
        };
        let (mut from, mut to, mut all) = (number, number + 1, ends);
        let before = stretches.range(..=number).next_back();
        if let Some((&begins, &(until, _))) = before
            && until >= number
        {
            let (_, its) = stretches.remove(&begins).expect("it was there");
            if until > number {
                return Err(lost(format!("partition {number} came out twice")));
            }
            (from, all) = (begins, joined(its, all)?);
        }
        if let Some((until, its)) = stretches.remove(&to) {
            (to, all) = (until, joined(all, its)?);
        }
        stretches.insert(from, (to, all));
        Ok(())
    }

    /// The first and last record of all `count` units.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Lost`] when not all of them were told.
    pub fn all(&self, count: usize) -> Result<Option<Ends>> {
        let mut stretches = lock(&self.stretches);
        match (count, stretches.remove(&0), stretches.is_empty()) {
            (0, None, true) => Ok(None),
            (_, Some((until, ends)), true) if until == count => Ok(ends),
            _ => Err(lost(format!("not all of {count} partitions came out"))),
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    /// Told in this order, units of these ends; whether that is refused.
    fn is_refused(units: &[(usize, Option<[&str; 2]>)], count: usize) -> bool {
        let (order, row) = (Order::lines(), Row::default());
        let told = units.iter().try_for_each(|(number, ends)| {
            let ends = ends.map(|ends| ends.map(|line| Item::Record(line.as_bytes())));
            row.tell((&order, 100), *number, ends)
        });
        told.and_then(|()| row.all(count)).is_err()
    }

    #[test]
    fn units_are_in_order_in_whatever_order_they_are_done() {
        let ends = [
            Some(["a\n", "c\n"]),
            None,
            None,
            Some(["c\n", "d\n"]),
            Some(["e\n", "e\n"]),
        ];
        let mut turns: Vec<Vec<usize>> = vec![vec![]];
        for number in 0..ends.len() {
            let grown = turns.iter().flat_map(|turn| {
                (0..=turn.len()).map(|at| {
                    let mut grown = turn.clone();
                    grown.insert(at, number);
                    grown
                })
            });
            turns = grown.collect();
        }
        assert_eq!(turns.len(), 120);
        for turn in turns {
            let of = |ends: &[Option<[&'static str; 2]>]| -> Vec<_> {
                turn.iter().map(|&number| (number, ends[number])).collect()
            };
            assert!(!is_refused(&of(&ends), 5), "{turn:?}");
            for (number, wrong) in [
                (0, ["a\n", "cc\n"]),
                (3, ["b\n", "d\n"]),
                (4, ["cz\n", "e\n"]),
            ] {
                let mut ends = ends;
                ends[number] = Some(wrong);
                assert!(is_refused(&of(&ends), 5), "{turn:?} {number}");
            }
        }
        assert!(!is_refused(&[], 0));
        let known = [(0, None), (1, None)];
        assert!(!is_refused(&known, 2));
        for (units, count) in [
            (&known[..1], 2),
            (&known[1..], 2),
            (&known[..], 1),
            (&[known[0]; 2][..], 1),
        ] {
            assert!(is_refused(units, count), "{units:?}");
        }
    }
}
