//! Batch to batch, by the user's function. Without one the batch passes as it is.

use crate::batch::{Batch, Records};
use crate::error::Result;
use crate::job::MapFn;

/// Calls `function` with each record of `batch`; what it makes is gathered in `made`, the caller's scratch
/// space. Without a function the batch itself comes back.
///
/// # Errors
/// When the function made a record that is not of the job's format, or too much.
pub fn map<'a>(
    batch: Batch<'a>,
    function: Option<&MapFn>,
    made: &'a mut Records,
    key: u64,
) -> Result<Batch<'a>> {
    let Some(function) = function else {
        return Ok(batch);
    };
    made.clear();
    for record in batch.records() {
        function(record, made);
    }
    made.batch(batch.chunk, key)
}
