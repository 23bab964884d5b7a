//! The innermost loops, each beside what was tried instead.
//!
//! In come records of the sort benchmark, made here; out go a table for people on standard error and a line
//! of CSV for each timed run on standard output. The variants of a group take turns, in turned order every
//! other round, and must all come to the same result: its hash is printed, so nothing is optimised away and
//! a wrong variant ends the program. Data are as large as the job's, so that they come from where the job's
//! come from: chunks and partitions rotate over more memory than the caches hold.
//!
//! ```sh
//! cargo bench -p sortmill --bench kernels                   # all of it, some minutes
//! cargo bench -p sortmill --bench kernels -- sort gather    # the groups whose names begin so
//! ```
//!
//! Under `cargo test` each variant runs once over a little data, so that none of them rots.

mod copy;
mod data;
mod distribute;
mod find;
mod gather;
mod keys;
mod sort;
mod streaming;
mod timing;

use timing::Bench;

fn main() {
    // Locks are shuttle's under its feature, and work inside its scheduler only.
    if cfg!(feature = "shuttle") {
        return;
    }
    let bench = Bench::from_args(std::env::args().skip(1));
    distribute::fingerprints(&bench);
    keys::first_words(&bench);
    find::find_partition(&bench);
    find::partition_batches(&bench);
    copy::into_blocks(&bench);
    copy::copy_rows(&bench);
    distribute::checksums(&bench);
    gather::lay_out(&bench);
    sort::sort_entries(&bench);
    gather::gather(&bench);
}
