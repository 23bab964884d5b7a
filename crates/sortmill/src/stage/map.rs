//! Batch to batches, by the user's function. Without one the batch passes as it is.

use crate::batch::{Batch, Pause, Records, Unread};
use crate::error::Error;
use crate::job::{Around, Mapper};

/// What a mapper made, or what was wrong, and where in the slab the record begins that it is about, if that is not the
/// last one.
pub type Made<'a> = Result<Batch<'a>, Box<(Error, Option<usize>)>>;

/// Records that are taken several at once have about so many bytes: what is made of those stays near the processor.
const SEVERAL_BYTES: usize = 4 << 10;

/// How records are mapped.
pub struct Calls<'m> {
    /// The function of one worker.
    pub mapper: &'m mut Mapper,
    /// What is done around its calls.
    pub around: Option<&'m Around>,
    /// It takes several records at once ([`crate::job::Job::map_takes_several`]).
    pub takes_several: bool,
}

/// Calls the mapper with records of `batch`, whose bytes begin at byte `zero` of input number `input`, from number `from` on,
/// until what it makes is a batch or no record is left; that is gathered in `made`, the caller's scratch space. Answers it,
/// or what was wrong with the last record that the mapper saw: the function failed, made a record that is not of the job's
/// format, or too much out of one; the number of the next record; and what is wrong with the one before that, if it is to be
/// left out. What the mapper held back the last time comes first.
pub fn map<'a>(
    batch: &Batch<'_>,
    from: usize,
    (input, zero): (u64, u64),
    calls: Calls<'_>,
    made: &'a mut Records,
    key: u64,
) -> (Made<'a>, usize, Option<Unread>) {
    let Calls {
        mapper,
        around,
        takes_several,
    } = calls;
    made.clear();
    let mut next = from;
    let was_held = made.is_held();
    let mut work = || {
        if was_held {
            made.pause_for(Pause::Room);
            mapper(None, made);
        }
        while next < batch.len() && !made.is_full() && !made.is_held() {
            let at = batch.offsets.range(next).start;
            made.give((input, zero.wrapping_add(at as u64)), at);
            let until = match takes_several {
                true => several(batch, next, made),
                false => next + 1,
            };
            let records = &batch.bytes[at..batch.offsets.range(until - 1).end];
            made.take_passed();
            mapper(Some(records), made);
            next = match made.take_passed() {
                0 => {
                    made.passed(records);
                    until
                }
                all if all == records.len() => until,
                bytes => batch.until(next, bytes),
            };
        }
    };
    match around {
        None => work(),
        Some(around) => around(&mut work),
    }
    assert!(
        was_held || next > from,
        "what is around a map function calls it"
    );
    let unread = made.take_unread();
    (looked_at(made, batch.chunk, key), next, unread)
}

/// Behind which record those end that come with record `from`: so few that there is room for what is made of them.
fn several(batch: &Batch<'_>, from: usize, made: &Records) -> usize {
    /// The least record, of one byte, is a pair of some thirty; of long ones a byte is no more than five.
    const GROWS: [usize; 2] = [64, 8];
    let (records, bytes) = made.room();
    let count = records.min(bytes / GROWS[0]).max(1);
    let until = batch.until(from, SEVERAL_BYTES.min(bytes / GROWS[1]));
    until.min(from + count)
}

/// What the mapper still has to say after the last record of its worker or of a chunk, as records of chunk `chunk`; an
/// empty batch when that is all of its worker's.
///
/// # Errors
/// When the function failed, made a record that is not of the job's format, or too much.
pub fn rest<'a>(
    mapper: &mut Mapper,
    pause: Pause,
    made: &'a mut Records,
    chunk: u64,
    key: u64,
) -> Made<'a> {
    made.clear();
    made.pause_for(pause);
    mapper(None, made);
    looked_at(made, chunk, key)
}

fn looked_at(made: &Records, chunk: u64, key: u64) -> Made<'_> {
    made.batch(chunk, key)
        .map_err(|error| Box::new((error, made.blamed())))
}
