//! Bytes: aligned memory, files, direct I/O, framed blocks. Knows nothing of records.
//!
//! Read in this order: [`buffer`] (who owns memory), [`os`] (the one trait through which all I/O,
//! clock and randomness pass), [`host`] with [`uring`] and [`posix`] (the real machine), [`sim`] (the
//! deterministic one, with faults), [`frame`] (what a block looks like on disk and wire). Beside them stand
//! [`codec`] (compressed bytes, and the way back), [`facts`] (what a machine and its folders offer) and [`survey`] (who finds it out), and, for jobs on several nodes,
//! [`process`] (who runs) and [`net`] (what connects them), and, for functions of others, [`shared`] (memory that processes
//! share) and [`filter`] (a program that reads and writes).

pub mod buffer;
pub mod caller;
mod cgroup;
pub mod codec;
mod disks;
pub mod facts;
pub mod filter;
pub mod frame;
pub mod host;
mod machine;
pub mod net;
pub mod os;
mod parked;
mod posix;
pub mod process;
pub mod shared;
pub mod signals;
pub mod sim;
#[cfg(target_os = "linux")]
pub mod survey;
pub mod sync;
#[cfg(target_os = "linux")]
mod uring;

pub use buffer::{Buffer, Pool, Table};
pub use host::{Host, RingKind};
pub use os::{Access, Done, File, Kind, Meta, Op, OpKind, Os, Ring};

/// Direct I/O wants offsets, lengths and addresses that are multiples of this.
pub const ALIGN_BYTES: usize = 4096;

/// `bytes` rounded up to a multiple of [`ALIGN_BYTES`].
#[must_use]
pub const fn align_up(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGN_BYTES as u64)
}

/// `bytes` rounded down to a multiple of [`ALIGN_BYTES`].
#[must_use]
pub const fn align_down(bytes: u64) -> u64 {
    bytes - bytes % ALIGN_BYTES as u64
}
