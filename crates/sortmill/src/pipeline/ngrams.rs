//! Rows of words that follow one another, of a text that comes whole or piece by piece.

use super::letters::WordFinder;
use crate::error::Result;
use crate::short::push_text;

/// Makes rows of `count` words of one text after the other.
pub(super) struct Ngrams {
    count: usize,
    lower: bool,
    /// No row goes over the end of a line.
    by_lines: bool,
    /// The words that rows may still be made of, with a space behind each, and where each begins.
    words: Vec<u8>,
    starts: Vec<usize>,
}

impl Ngrams {
    /// Rows of so many words, one at least, in lower case if that is asked for.
    pub fn new(count: usize, lower: bool) -> Self {
        Self {
            count,
            lower,
            by_lines: false,
            words: Vec::new(),
            starts: Vec::new(),
        }
    }

    /// A text begins, or with `by_lines` lines that are a text each.
    pub fn begin(&mut self, by_lines: bool) {
        self.by_lines = by_lines;
        self.forget();
    }

    fn forget(&mut self) {
        self.words.clear();
        self.starts.clear();
    }

    /// Hands each row that ends in `piece`, which begins and ends between words, to `see`.
    ///
    /// # Errors
    /// Those of `see`.
    pub fn each(
        &mut self,
        piece: &[u8],
        finder: &mut WordFinder,
        mut see: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.keep_last();
        if let Some(text) = finder.ascii(piece, self.lower) {
            let mut end = 0;
            text.each_word(|word| {
                let between = &piece[end..word.start];
                if self.by_lines && between.contains(&b'\n') {
                    self.forget();
                }
                end = word.end;
                self.add(text.word(word), &mut see)
            })?;
            if self.by_lines && piece[end..].contains(&b'\n') {
                self.forget();
            }
            return Ok(());
        }
        let lower = self.lower;
        if !self.by_lines {
            return finder.each_of_any(piece, lower, |word| self.add(word, &mut see));
        }
        for line in piece.split_inclusive(|&byte| byte == b'\n') {
            finder.each_of_any(line, lower, |word| self.add(word, &mut see))?;
            if line.ends_with(b"\n") {
                self.forget();
            }
        }
        Ok(())
    }

    /// Has nothing in front of the words that the next row may begin with.
    fn keep_last(&mut self) {
        let gone = self.starts.len().saturating_sub(self.count - 1);
        if gone == 0 {
            return;
        }
        let bytes = *self.starts.get(gone).unwrap_or(&self.words.len());
        self.words.drain(..bytes);
        self.starts.drain(..gone);
        self.starts.iter_mut().for_each(|start| *start -= bytes);
    }

    #[inline(always)]
    fn add(&mut self, word: &[u8], mut see: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.starts.push(self.words.len());
        push_text(word, &mut self.words);
        self.words.push(b' ');
        match self.starts.len().checked_sub(self.count) {
            Some(first) => see(&self.words[self.starts[first]..self.words.len() - 1]),
            None => Ok(()),
        }
    }
}
