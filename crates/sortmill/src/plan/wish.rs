//! What a wish for memory becomes, where inputs may have long records. Pure; no I/O.
//!
//! GNU sort takes a record of any length, whatever its `-S`. So a wish is raised to what records of up to 16 MiB take,
//! unless no input is as long as that: memory that is set apart for them and is not touched where there are none.

use super::Inputs;
use crate::chunks::Extent;
use crate::job::Job;
use crate::long::WHOLE_COUNT;
use crate::order::{Format, Order};

/// Records up to this are seen to.
pub const RECORD_BYTES: u64 = 16 << 20;
/// What a merge of few inputs takes for that.
const MERGED_BYTES: u64 = 512 << 20;
/// Inputs of at most so many bytes fit the room that any merge has in front of a read.
const SHORT_BYTES: u64 = 16 << 10;

/// No record of `inputs` is longer. Of a stream nobody knows.
pub fn longest(inputs: &Inputs) -> u64 {
    let longest = inputs.extents.iter().map(|extent| match extent {
        // With the newline that it may lack.
        Extent::File(bytes) => bytes + 1,
        Extent::Stream => u64::MAX,
    });
    longest.max().unwrap_or(0)
}

/// So long a record must be able to be, of a job that sorts, and in which records must be whole unless it `takes_parts`.
pub fn record_bytes(job: &Job, inputs: &Inputs, takes_parts: bool) -> usize {
    let is_sized = matches!(job.format, Format::Fixed(_));
    match job.memory_is_wish && !takes_parts && !is_sized && job.map.is_none() {
        true => longest(inputs).min(RECORD_BYTES) as usize,
        false => 0,
    }
}

/// The memory to plan `job` with, of which so much is `available`.
pub fn limit(job: &Job, order: &Order, inputs: &Inputs, available: u64) -> u64 {
    let asked = job.memory_bytes.unwrap_or(available / 2);
    if !job.memory_is_wish {
        return asked;
    }
    let takes_parts = order.key_from().is_some() && !job.wants_whole_records();
    let record = record_bytes(job, inputs, takes_parts) as u64;
    let raised = match job.merge {
        Some(_) if longest(inputs) > SHORT_BYTES => asked.max(MERGED_BYTES.min(available / 4)),
        None if asked / 64 < record => asked + WHOLE_COUNT as u64 * record,
        // Half of the memory is what a record in parts may have.
        None if takes_parts && job.map.is_none() => {
            asked.max(2 * longest(inputs).min(RECORD_BYTES) + SHORT_BYTES)
        }
        _ => asked,
    };
    raised.min(available)
}
