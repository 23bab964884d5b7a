//! What a reduce function makes, on its way out: many records at a time.
//!
//! Records lie back to back in memory that the function writes to, and go on together when there are enough of them.

use crate::short::push_text;

/// Records go on from so many bytes on, with one more for each of them: that many lie near a processor until then.
const FULL_BYTES: usize = 16 << 10;
/// More memory than that is kept for no record.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Records back to back.
#[derive(Default)]
pub struct Emitted {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Emitted {
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// All of them.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// One after the other.
    pub fn records(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        self.ends.iter().map(move |&end| {
            let record = &self.bytes[from..end];
            from = end;
            record
        })
    }

    /// There is nothing.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.bytes.shrink_to(KEPT_BYTES_MAX);
    }
}

/// Takes the records that a reduce function makes ([`crate::job::Reducer`]).
pub struct Emitter<'e> {
    emitted: &'e mut Emitted,
    go_on: &'e mut dyn FnMut(&mut Emitted),
}

impl<'e> Emitter<'e> {
    /// Behind those of `emitted`, which `go_on` takes when there are enough.
    pub fn new(emitted: &'e mut Emitted, go_on: &'e mut dyn FnMut(&mut Emitted)) -> Self {
        Self { emitted, go_on }
    }

    /// Takes a record.
    #[inline]
    pub fn put(&mut self, record: &[u8]) {
        push_text(record, &mut self.emitted.bytes);
        self.end();
    }

    /// Takes a record that `write` appends to what it gets.
    ///
    /// # Errors
    /// Those of `write`: then there is no such record.
    #[inline]
    pub fn put_with<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let from = self.emitted.bytes.len();
        if let Err(error) = write(&mut self.emitted.bytes) {
            self.emitted.bytes.truncate(from);
            return Err(error);
        }
        self.end();
        Ok(())
    }

    #[inline]
    fn end(&mut self) {
        let Emitted { bytes, ends } = self.emitted;
        ends.push(bytes.len());
        // Records of no bytes are some, too.
        if bytes.len() + ends.len() >= FULL_BYTES {
            (self.go_on)(self.emitted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_go_on_as_they_were_put() {
        let mut emitted = Emitted::default();
        let (mut found, mut turns): (Vec<Vec<u8>>, _) = (Vec::new(), 0);
        let mut go_on = |emitted: &mut Emitted| {
            assert_eq!(emitted.records().count(), emitted.count());
            assert_eq!(emitted.records().flatten().count(), emitted.bytes().len());
            found.extend(emitted.records().map(<[u8]>::to_vec));
            emitted.clear();
            turns += 1;
        };
        let mut wanted = Vec::new();
        let no_bytes = std::iter::repeat_n(0, 3 * FULL_BYTES);
        let mut emitter = Emitter::new(&mut emitted, &mut go_on);
        for length in (0..3000).chain([4 * KEPT_BYTES_MAX, 0, 1]).chain(no_bytes) {
            let record = vec![length as u8; length];
            if length % 2 == 0 {
                emitter.put(&record);
            } else {
                let no = |to: &mut Vec<u8>| {
                    to.extend_from_slice(&record);
                    Err(())
                };
                assert!(emitter.put_with(no).is_err());
                let write = |to: &mut Vec<u8>| {
                    to.extend_from_slice(&record);
                    Ok::<_, ()>(())
                };
                emitter.put_with(write).unwrap();
            }
            wanted.push(record);
        }
        found.extend(emitted.records().map(<[u8]>::to_vec));
        assert!(found == wanted);
        assert!(turns > 100, "{turns}");
        assert!(emitted.bytes.capacity() <= 2 * KEPT_BYTES_MAX);
        assert!(
            emitted.ends.capacity() <= FULL_BYTES,
            "{}",
            emitted.ends.capacity()
        );
    }
}
