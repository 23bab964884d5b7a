//! Where each record of a data set lies: in which file, at which byte.
//!
//! In come the data and how much of them is wanted, out comes a piece for each number. Records of one size
//! need no more than a division. Of others the bytes are summed up first, by all threads, and what is kept
//! is where every [`STEP_RECORDS`]th begins: 8 bytes for each, so that space can be checked before the
//! start, files are reserved whole, and pieces are written in any order.
//!
//! ```text
//! bytes    0        starts[1]        starts[2]             total
//! records  |--------|----------------|---------------------|      1024 each
//! files    part-00000     |part-00001           |part-00002       equally many records
//! pieces   |     |     |  |     |     |     |   |     |    |      one buffer each; records span them
//! ```

use sortmill_io::{align_up, sync};

use super::Amount;
use super::data::Data;
use crate::error::{Error, ErrorKind, Result};
use crate::queue::{Stop, job_scope};

/// What one buffer holds: this many bytes of one file.
pub struct Piece {
    /// The number of its file.
    pub file: u64,
    /// Where it lies in its file, in bytes.
    pub offset: u64,
    /// Its length.
    pub bytes: usize,
    /// The record that its first byte belongs to.
    pub first: u64,
    /// How many bytes of that record lie before it.
    pub skip: u64,
}

/// How many records are wanted, and where they begin.
pub struct Sizes<'a> {
    data: &'a dyn Data,
    count: u64,
    bytes: u64,
    /// Where each stretch of [`STEP_RECORDS`] begins; empty if all records are of one size.
    starts: Vec<u64>,
}

const STEP_RECORDS: u64 = 1024;

/// So many steps are measured by a thread before it looks whether the job was stopped.
const STEPS_AT_ONCE: u64 = 256;

const BYTES_MAX: u64 = i64::MAX as u64;

impl<'a> Sizes<'a> {
    /// Sums up the records that make `amount`.
    ///
    /// # Errors
    /// A usage error for more than 2^63 bytes, and that of `stop`.
    pub fn measure(
        data: &'a dyn Data,
        amount: Amount,
        threads: usize,
        stop: &Stop,
    ) -> Result<Self> {
        if let Some(record_bytes) = data.record_bytes_fixed() {
            let count = match amount {
                Amount::Records(count) => count,
                Amount::Bytes(bytes) => bytes / record_bytes,
            };
            refuse_more_than(BYTES_MAX / record_bytes, count)?;
            return Ok(Self {
                data,
                count,
                bytes: count * record_bytes,
                starts: Vec::new(),
            });
        }
        let mut sizes = Self {
            data,
            count: 0,
            bytes: 0,
            starts: Vec::new(),
        };
        match amount {
            Amount::Records(count) => {
                refuse_more_than(BYTES_MAX / data.record_bytes_max() as u64, count)?;
                while sizes.count < count {
                    sizes.grow(u64::MAX, count, threads, stop)?;
                }
            }
            Amount::Bytes(bytes) => {
                while sizes.bytes <= bytes {
                    // Half as much again would be wasted often; what is missing is asked for again.
                    let steps = match sizes.bytes {
                        0 => 1,
                        so_far => (bytes - so_far) / (so_far / sizes.starts.len() as u64) + 1,
                    };
                    sizes.grow(steps, u64::MAX, threads, stop)?;
                }
                sizes.cut(bytes);
            }
        }
        Ok(sizes)
    }

    /// Measures at most `steps` more steps, no record beyond `count`.
    fn grow(&mut self, steps: u64, count: u64, threads: usize, stop: &Stop) -> Result<()> {
        stop.check()?;
        let left = (count - self.count).div_ceil(STEP_RECORDS);
        let steps = steps.min(left).min(threads as u64 * STEPS_AT_ONCE) as usize;
        let mut bytes = vec![0; steps];
        let each = steps.div_ceil(threads);
        let (data, first) = (self.data, self.count);
        let step = |number: usize| {
            let start = first + number as u64 * STEP_RECORDS;
            data.bytes_of(start..start.saturating_add(STEP_RECORDS).min(count))
        };
        job_scope(stop, |scope| {
            for (part, bytes) in bytes.chunks_mut(each).enumerate() {
                sync::spawn(scope, &format!("measure-{part}"), move || {
                    for (index, bytes) in bytes.iter_mut().enumerate() {
                        *bytes = step(part * each + index);
                    }
                });
            }
        });
        for step_bytes in bytes {
            self.starts.push(self.bytes);
            self.bytes += step_bytes;
        }
        self.count = count.min(self.count.saturating_add(steps as u64 * STEP_RECORDS));
        Ok(())
    }

    /// Leaves out the records that end behind `bytes`.
    fn cut(&mut self, bytes: u64) {
        self.starts
            .truncate(self.starts.partition_point(|start| *start <= bytes));
        self.count = (self.starts.len() as u64 - 1) * STEP_RECORDS;
        self.bytes = self.starts[self.starts.len() - 1];
        loop {
            let record_bytes = self.data.record_bytes(self.count);
            if record_bytes > bytes - self.bytes {
                return;
            }
            self.bytes += record_bytes;
            self.count += 1;
        }
    }

    /// How many records there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The bytes of all of them.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where record `number` begins, which may be the one behind the last.
    fn offset(&self, number: u64) -> u64 {
        if number == self.count {
            return self.bytes;
        }
        if let Some(record_bytes) = self.data.record_bytes_fixed() {
            return number * record_bytes;
        }
        let step = number / STEP_RECORDS;
        self.starts[step as usize] + self.data.bytes_of(step * STEP_RECORDS..number)
    }

    /// The record that byte `at` belongs to, and the bytes of it that lie before.
    fn find(&self, at: u64) -> (u64, u64) {
        if let Some(record_bytes) = self.data.record_bytes_fixed() {
            return (at / record_bytes, at % record_bytes);
        }
        let step = self.starts.partition_point(|start| *start <= at) - 1;
        let mut skip = at - self.starts[step];
        let mut number = step as u64 * STEP_RECORDS;
        loop {
            let record_bytes = self.data.record_bytes(number);
            if skip < record_bytes {
                return (number, skip);
            }
            skip -= record_bytes;
            number += 1;
        }
    }
}

fn refuse_more_than(count_max: u64, count: u64) -> Result<()> {
    if count <= count_max {
        return Ok(());
    }
    let cause = format!("a data set of this kind has at most {count_max} records, not {count}");
    Err(Error::new(ErrorKind::Usage, "generating records", cause))
}

/// How a data set is cut: into files with equally many records (the first ones with one more where that
/// cannot be), and each file into pieces. An empty file is one empty piece.
pub struct Layout<'a> {
    sizes: Sizes<'a>,
    buffer_bytes: u64,
    files: Vec<Extent>,
}

struct Extent {
    /// Where the file begins in the data set, in bytes.
    start: u64,
    bytes: u64,
    first_piece: u64,
}

impl<'a> Layout<'a> {
    /// Cuts the records of `sizes` into this many files, and those into pieces of `buffer_bytes`.
    pub fn new(sizes: Sizes<'a>, file_count: u64, buffer_bytes: usize) -> Self {
        let mut layout = Self {
            buffer_bytes: buffer_bytes as u64,
            files: Vec::with_capacity(file_count as usize),
            sizes,
        };
        let (each, larger) = (
            layout.sizes.count / file_count,
            layout.sizes.count % file_count,
        );
        let (mut start, mut first_piece) = (0, 0);
        for number in 1..=file_count {
            let end = layout.sizes.offset(number * each + number.min(larger));
            let bytes = end - start;
            layout.files.push(Extent {
                start,
                bytes,
                first_piece,
            });
            first_piece += layout.pieces_in(bytes);
            start = end;
        }
        layout
    }

    /// How many records there are.
    pub fn count(&self) -> u64 {
        self.sizes.count()
    }

    /// The bytes of all of them.
    pub fn bytes(&self) -> u64 {
        self.sizes.bytes()
    }

    /// How many pieces there are.
    pub fn piece_count(&self) -> u64 {
        let last = &self.files[self.files.len() - 1];
        last.first_piece + self.pieces_in(last.bytes)
    }

    /// The piece of this number.
    pub fn piece(&self, number: u64) -> Piece {
        let file = self
            .files
            .partition_point(|file| file.first_piece <= number)
            - 1;
        let extent = &self.files[file];
        let offset = (number - extent.first_piece) * self.buffer_bytes;
        let bytes = (extent.bytes - offset).min(self.buffer_bytes);
        let (first, skip) = match bytes {
            0 => (0, 0),
            _ => self.sizes.find(extent.start + offset),
        };
        Piece {
            file: file as u64,
            offset,
            bytes: bytes as usize,
            first,
            skip,
        }
    }

    /// The bytes of file `file`.
    pub fn bytes_of(&self, file: u64) -> u64 {
        self.files[file as usize].bytes
    }

    /// The pieces of file `file`.
    pub fn pieces_of(&self, file: u64) -> u64 {
        self.pieces_in(self.bytes_of(file))
    }

    /// What the files take on a disk, in whole 4 KiB.
    pub fn disk_bytes(&self) -> u64 {
        self.files.iter().map(|file| align_up(file.bytes)).sum()
    }

    fn pieces_in(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.buffer_bytes).max(1)
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    /// Records of which each says by its number alone how long it is.
    struct Lengths(fn(u64) -> u64, Option<u64>);

    impl Data for Lengths {
        fn record_bytes_fixed(&self) -> Option<u64> {
            self.1
        }

        fn record_bytes_max(&self) -> usize {
            200
        }

        fn record_bytes(&self, number: u64) -> u64 {
            self.0(number)
        }

        fn write(&self, number: u64, out: &mut [u8]) -> usize {
            let bytes = self.0(number) as usize;
            out[..bytes].fill(number as u8);
            bytes
        }
    }

    fn check(data: &Lengths, count: u64, file_count: u64, buffer_bytes: usize) {
        let amount = Amount::Records(count);
        let sizes = Sizes::measure(data, amount, 3, &Stop::new()).unwrap();
        let layout = Layout::new(sizes, file_count, buffer_bytes);
        let mut begins = vec![0];
        for number in 0..count {
            begins.push(begins[number as usize] + data.0(number));
        }
        assert_eq!(layout.bytes(), begins[count as usize]);
        let (mut at, mut file, mut in_file) = (0, 0, 0);
        for number in 0..layout.piece_count() {
            let piece = layout.piece(number);
            if piece.file != file {
                assert_eq!((piece.file, in_file), (file + 1, layout.bytes_of(file)));
                assert!(begins.contains(&at), "a file begins with a record");
                (file, in_file) = (piece.file, 0);
            }
            assert_eq!(piece.offset, in_file);
            if piece.bytes > 0 {
                assert_eq!(begins[piece.first as usize] + piece.skip, at);
                assert!(piece.skip < data.0(piece.first));
            }
            at += piece.bytes as u64;
            in_file += piece.bytes as u64;
        }
        assert_eq!((file, at), (file_count - 1, begins[count as usize]));
        assert!(layout.disk_bytes() - layout.bytes() < 4096 * file_count);
    }

    /// Every byte lies in exactly one piece, in order, and every file begins with the record that it should.
    #[test]
    fn pieces_cover_everything_once() {
        let fixed = Lengths(|_| 100, Some(100));
        let varied = Lengths(|number| 1 + number * 7 % 200, None);
        for data in [&fixed, &varied] {
            for (count, file_count) in [(0, 1), (0, 4), (3, 5), (1, 1), (5_000, 3), (4_097, 7)] {
                check(data, count, file_count, 4_096);
                check(data, count, file_count, 12_800);
            }
        }
        let most = Amount::Records(i64::MAX as u64 / 100);
        let sizes = Sizes::measure(&fixed, most, 1, &Stop::new()).unwrap();
        let layout = Layout::new(sizes, 100_000, 4_096_000);
        let last = layout.piece(layout.piece_count() - 1);
        assert_eq!(last.file, 99_999);
        let bytes_before = 99_999 * layout.bytes_of(99_999) + layout.count() % 100_000 * 100;
        assert_eq!(last.first * 100, bytes_before + last.offset);
    }

    #[test]
    fn bytes_are_used_up() {
        let fixed = Lengths(|_| 100, Some(100));
        let varied = Lengths(|number| 1 + number * 7 % 200, None);
        for data in [&fixed, &varied] {
            for bytes in [0, 1, 99, 100, 102_399, 102_400, 1_234_567, 80_000_000] {
                let amount = Amount::Bytes(bytes);
                let sizes = Sizes::measure(data, amount, 2, &Stop::new()).unwrap();
                let next = data.0(sizes.count());
                assert_eq!(data.bytes_of(0..sizes.count()), sizes.bytes());
                assert!((sizes.bytes()..sizes.bytes() + next).contains(&bytes));
                let amount = Amount::Records(sizes.count());
                let again = Sizes::measure(data, amount, 5, &Stop::new()).unwrap();
                assert_eq!(again.bytes(), sizes.bytes());
            }
        }
    }
}
