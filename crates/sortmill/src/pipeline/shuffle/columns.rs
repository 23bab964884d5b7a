//! A sort or shuffle of fewer columns: those that nobody asks for behind it need not go through it.

use super::{How, Shuffle};

impl Shuffle {
    /// The same of a table with fewer columns, and the numbers of these, upwards, if all columns `wanted` come out of that, too: of
    /// one that hands out the records that it took, those and the ones that their order is by.
    pub fn for_columns(&self, wanted: &[usize]) -> Option<(Vec<usize>, Self)> {
        let how = match self.how {
            How::Keep => How::Keep,
            How::Sort => How::Sort,
            How::Random(draw) => How::Random(draw),
            How::Top(_) | How::Group(_) | How::Apply(..) => return None,
        };
        let orders = |at: &usize| self.key.iter().any(|part| part.at == *at);
        let is_needed = |at: &usize| wanted.contains(at) || orders(at);
        let kept: Vec<usize> = (0..self.columns.len()).filter(is_needed).collect();
        if kept.len() == self.columns.len() {
            return None;
        }
        let place = |at: usize| kept.binary_search(&at).ok();
        let mut key = self.key.clone();
        for part in &mut key {
            part.at = place(part.at)?;
        }
        let narrow = Self {
            how,
            key,
            counted: None,
            stand_together: false,
            group_count: self.group_count,
            is_sorted: self.is_sorted,
            rest: self.rest.iter().filter_map(|&at| place(at)).collect(),
            columns: kept.iter().map(|&at| self.columns[at].clone()).collect(),
            told: kept.iter().map(|&at| self.told[at]).collect(),
            narrow: None,
        };
        Some((kept, narrow))
    }
}
