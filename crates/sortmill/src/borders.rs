//! Where records begin at the borders of what is read at a time, as far as anybody has seen.
//!
//! Who reads a part of an input alone does not know where its first line begins, but whoever read the part before
//! does, and the other way round. Of fixed records it is arithmetic.
//!
//! Pure: no I/O. Grows by an entry for each part that is read.

use std::collections::HashMap;

use sortmill_io::sync::{Mutex, lock};

use crate::order::Format;

/// The borders of a job.
pub struct Borders {
    /// Bytes of each record, if all have as many.
    record_bytes: Option<u64>,
    /// By input and offset: where the first record begins from there on.
    seen: Mutex<HashMap<(usize, u64), u64>>,
}

impl Borders {
    /// Of inputs of which nothing has been seen.
    #[must_use]
    pub fn new(format: Format) -> Self {
        let record_bytes = match format {
            Format::Fixed(size) => Some(u64::from(size)),
            Format::Lines | Format::Quoted(_) | Format::Kv => None,
        };
        Self {
            record_bytes,
            seen: Mutex::default(),
        }
    }

    /// Where the first record begins that begins at byte `offset` of an input or behind it; `None` if nobody knows.
    #[must_use]
    pub fn first_begin(&self, input: usize, offset: u64) -> Option<u64> {
        match self.record_bytes {
            _ if offset == 0 => Some(0),
            Some(bytes) => Some(offset.next_multiple_of(bytes)),
            None => lock(&self.seen).get(&(input, offset)).copied(),
        }
    }

    /// The first record that begins at byte `offset` of an input or behind it begins at `begin`.
    pub fn saw(&self, input: usize, offset: u64, begin: u64) {
        if self.record_bytes.is_none() {
            lock(&self.seen).insert((input, offset), begin);
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn borders_of_fixed_records_are_arithmetic_and_those_of_lines_are_seen() {
        let (fixed, lines) = (Borders::new(Format::Fixed(24)), Borders::new(Format::Lines));
        for borders in [&fixed, &lines] {
            assert_eq!(borders.first_begin(3, 0), Some(0));
            borders.saw(3, 100, 107);
        }
        assert_eq!(fixed.first_begin(3, 100), Some(120));
        assert_eq!(fixed.first_begin(3, 120), Some(120));
        assert_eq!(lines.first_begin(3, 100), Some(107));
        assert_eq!(lines.first_begin(2, 100), None);
        assert_eq!(lines.first_begin(3, 107), None);
    }
}
