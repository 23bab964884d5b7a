//! Batch to batches, by the user's function. Without one the batch passes as it is.

use crate::batch::{Batch, Records};
use crate::error::Result;
use crate::job::{Around, Mapper};

/// Calls `mapper` with records of `batch`, whose bytes begin at byte `zero` of input number `input`, from number `from` on, until what it makes is a batch or no record is left; that
/// is gathered in `made`, the caller's scratch space. Answers it, or what was wrong with the last record that the mapper
/// saw: the function failed, made a record that is not of the job's format, or too much out of one; and the number of the
/// next record.
pub fn map<'a>(
    batch: &Batch<'_>,
    from: usize,
    (input, zero): (u64, u64),
    (mapper, around): (&mut Mapper, Option<&Around>),
    made: &'a mut Records,
    key: u64,
) -> (Result<Batch<'a>>, usize) {
    made.clear();
    let mut next = from;
    let mut work = || {
        while next < batch.len() && !made.is_full() {
            made.place = (
                input,
                zero.wrapping_add(batch.offsets.range(next).start as u64),
            );
            let record = batch.record(next);
            mapper(Some(record), made);
            made.passed(record);
            next += 1;
        }
    };
    match around {
        None => work(),
        Some(around) => around(&mut work),
    }
    assert!(next > from, "what is around a map function calls it");
    (made.batch(batch.chunk, key), next)
}

/// What the mapper still has to say after its worker's last record, as records of chunk `chunk`; an empty batch when
/// that is all.
///
/// # Errors
/// When the function failed, made a record that is not of the job's format, or too much.
pub fn rest<'a>(
    mapper: &mut Mapper,
    made: &'a mut Records,
    chunk: u64,
    key: u64,
) -> Result<Batch<'a>> {
    made.clear();
    mapper(None, made);
    made.batch(chunk, key)
}
