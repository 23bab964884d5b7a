//! Generating data: on this machine with either ring, on the simulated one with faults, under schedules.

#[cfg(not(feature = "shuttle"))]
mod faults;
#[cfg(not(feature = "shuttle"))]
mod host;
#[cfg(not(feature = "shuttle"))]
mod lengths;
#[cfg(feature = "shuttle")]
mod schedules;

#[cfg(not(feature = "shuttle"))]
use crate::Scratch;
use sortmill::gen_records::{Alphabet, RECORD_BYTES, Records, RecordsFrom};
use sortmill::generate::{Amount, Generate, Out};

const BINARY: Records = Records {
    alphabet: Alphabet::Binary,
    skew: false,
};

static FROM_ZERO: RecordsFrom = RecordsFrom {
    records: BINARY,
    start: 0,
};

/// A job of the most ordinary kind.
fn job(count: u64, out: Out) -> Generate<'static> {
    Generate {
        data: &FROM_ZERO,
        amount: Amount::Records(count),
        threads: 3,
        out,
        checksum: false,
        progress: None,
    }
}

/// What `count` records from `start` are.
fn bytes(records: Records, start: u128, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count * RECORD_BYTES];
    records.fill(start, &mut bytes);
    bytes
}
