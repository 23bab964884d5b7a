//! Lists that are unpacked to groups of their numbers, as one loop: what all records of a list add to their groups is the same, so
//! of each number no record need be made (`fused.rs` does so with text).
//!
//! ```text
//! record --> what it adds, once --.
//!      `---> its list --> numbers, some at a time --> groups that came lately (words.rs) --> records of a fixed size
//! ```

use super::column::Value;
use super::lists::{Onward, Unpack};
use super::shuffle::{Feed, Shuffle};
use super::verbs::Step;
use crate::error::Result;

/// So many numbers go over before it is asked again whether there is room.
const AT_ONCE: usize = 32;

/// A step that unpacks lists, the last one of a mapper, whose numbers are groups.
pub(super) struct FusedLists {
    unpack: Unpack,
    /// A list for whose numbers there was no room, what they add, and where to go on.
    left: Option<(Vec<u8>, Vec<u64>, Onward)>,
    words: Vec<u64>,
    out: Vec<u8>,
}

impl FusedLists {
    /// The last of `steps`, if it is such in front of `shuffle`, and the steps in front of it.
    pub fn of<'s>(steps: &'s [Step], shuffle: &Shuffle) -> (Option<Self>, &'s [Step]) {
        match (steps, shuffle.narrow()) {
            ([front @ .., Step::Unpack(unpack)], Some(narrow))
                if narrow.is_only_by(unpack.at()) =>
            {
                let fused = Self {
                    unpack: unpack.clone(),
                    left: None,
                    words: Vec::new(),
                    out: Vec::new(),
                };
                (Some(fused), front)
            }
            _ => (None, steps),
        }
    }

    /// Feeds the numbers of `record` to `feed` until `is_full`; records that come out go to `push`, back to back.
    ///
    /// # Errors
    /// When its list is none.
    pub fn feed(
        &mut self,
        record: &[Value<'_>],
        feed: &mut Feed,
        is_full: &dyn Fn() -> bool,
        push: &mut dyn FnMut(&[u8]),
    ) -> Result<()> {
        // The list in front was so long that it cannot wait.
        self.go_on(feed, &|| false, push)?;
        if let Some(words) = &feed.words {
            words.words_of(record, &mut self.words);
        }
        let list = record[self.unpack.at()].bytes();
        let words = std::mem::take(&mut self.words);
        let from = self.numbers((list, &words), (0, 0), feed, is_full, push)?;
        self.left = from.map(|from| (list.to_vec(), words.clone(), from));
        self.words = words;
        Ok(())
    }

    /// The same of what was left.
    ///
    /// # Errors
    /// As [`FusedLists::feed`].
    pub fn go_on(
        &mut self,
        feed: &mut Feed,
        is_full: &dyn Fn() -> bool,
        push: &mut dyn FnMut(&[u8]),
    ) -> Result<()> {
        let Some((list, words, from)) = self.left.take() else {
            return Ok(());
        };
        let from = self.numbers((&list, &words), from, feed, is_full, push)?;
        self.left = from.map(|from| (list, words, from));
        Ok(())
    }

    /// Whether there was no room for all numbers of the last list.
    pub fn is_held(&self) -> bool {
        self.left.is_some()
    }

    /// Where to go on, if it is full before the list ends.
    fn numbers(
        &mut self,
        (list, words): (&[u8], &[u64]),
        mut from: Onward,
        feed: &mut Feed,
        is_full: &dyn Fn() -> bool,
        push: &mut dyn FnMut(&[u8]),
    ) -> Result<Option<Onward>> {
        let Some(groups) = &mut feed.words else {
            return Ok(None);
        };
        let mut numbers = [0; AT_ONCE];
        while from.0 < list.len() {
            let count = self.unpack.some(list, &mut from, &mut numbers)?;
            groups.add_numbers(&numbers[..count], words, &mut self.out, push);
            if from.0 < list.len() && is_full() {
                return Ok(Some(from));
            }
        }
        Ok(None)
    }
}
