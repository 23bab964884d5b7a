//! The kinds of records that differ in their keys: one subcommand each.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use sortmill::error::Result;
use sortmill::generate::Amount;
use sortmill::generate::keys::{Keys, Lengths, RECORD_BYTES_MAX, Shape};

use super::{Checksum, Output, Seed, bytes, percent, some};

/// How the keys are distributed or ordered.
#[derive(Subcommand)]
pub enum Kind {
    /// Records with keys by Zipf's law
    ///
    /// The k-th most frequent key occurs in proportion to 1 / k^S.
    Zipf(Zipf),

    /// Records with few distinct keys, all equally likely
    Distinct(Distinct),

    /// Records with two keys
    Two(Common),

    /// Records that all have one key
    One(Common),

    /// Records of which 99 % have one key, and the others uniform ones
    Hot(Hot),

    /// Records in order
    Sorted(Common),

    /// Records in reversed order
    Reversed(Common),

    /// Records in order up to the middle, and from there in reversed order
    OrganPipe(Common),

    /// Records in sorted blocks, each of which covers all keys
    Blocks(Blocks),

    /// Records in order, but for the last one, which belongs first
    SortedButLast(Common),

    /// Records whose keys move through their range along the file
    ///
    /// At any place they are uniform within an eighth of the range, which goes from its bottom to its top.
    Drift(Common),

    /// Records with a long common prefix in all keys, uniform behind it
    Prefix(Prefix),

    /// Records whose keys differ in their last byte only
    LastByte(Common),

    /// Records with a hot key that begins behind what was sampled
    ///
    /// Before it keys are uniform, and behind it there is no other.
    SampleKiller(SampleKiller),
}

#[derive(Args)]
pub struct Common {
    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    seed: Seed,

    /// Bytes of a record: its key, its number as 8 little-endian bytes, and noise
    #[arg(long, value_name = "SIZE", default_value = "100", value_parser = record_bytes)]
    record_bytes: usize,

    /// Bytes of the key, which comes first
    #[arg(long, value_name = "SIZE", default_value = "10", value_parser = record_bytes)]
    key_bytes: usize,

    #[command(flatten)]
    checksum: Checksum,
}

#[derive(Args)]
pub struct Zipf {
    /// Exponent, above 0: at 0.5 hardly skewed, at 2 one key has 61 % of all records
    #[arg(long, value_name = "S", default_value = "1", value_parser = super::exponent)]
    exponent: f64,

    /// How many distinct keys
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = some)]
    distinct: u64,

    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
pub struct Distinct {
    /// How many distinct keys
    #[arg(long, value_name = "N", default_value = "100", value_parser = some)]
    distinct: u64,

    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
pub struct Hot {
    /// How many of 100 records have the one key
    #[arg(long, value_name = "PERCENT", default_value = "99", value_parser = percent)]
    share: f64,

    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
pub struct Blocks {
    /// Records in a block
    #[arg(long, value_name = "RECORDS", default_value = "100000", value_parser = some)]
    block: u64,

    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
pub struct Prefix {
    /// Bytes that all keys begin with; they come on top of --key-bytes and --record-bytes
    #[arg(long, value_name = "BYTES", default_value = "50", value_parser = record_bytes)]
    prefix: usize,

    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
pub struct SampleKiller {
    /// Bytes before the one key begins [default: half of all]
    ///
    /// A sort of a stream samples what its memory held when that was full, so this much or more hides the key
    /// from it. A sort of a file samples places all over it and does see the key.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    after: Option<u64>,

    #[command(flatten)]
    common: Common,
}

impl Kind {
    pub fn run(&self) -> Result<ExitCode> {
        let plain = |common: &'_ Common, shape| common.run(shape, common.lengths());
        match self {
            Self::Zipf(kind) => {
                let (distinct, exponent) = (kind.distinct, kind.exponent);
                plain(&kind.common, Shape::Zipf { distinct, exponent })
            }
            Self::Distinct(kind) => plain(&kind.common, Shape::Distinct(kind.distinct)),
            Self::Two(common) => plain(common, Shape::Distinct(2)),
            Self::One(common) => plain(common, Shape::Distinct(1)),
            Self::Hot(kind) => plain(&kind.common, Shape::Hot(kind.share / 100.0)),
            Self::Sorted(common) => plain(common, Shape::Sorted),
            Self::Reversed(common) => plain(common, Shape::Reversed),
            Self::OrganPipe(common) => plain(common, Shape::OrganPipe),
            Self::Blocks(kind) => plain(&kind.common, Shape::Blocks(kind.block)),
            Self::SortedButLast(common) => plain(common, Shape::SortedButLast),
            Self::Drift(common) => plain(common, Shape::Drift),
            Self::Prefix(kind) => {
                let mut lengths = kind.common.lengths();
                lengths.record_bytes += kind.prefix;
                lengths.key_bytes += kind.prefix;
                lengths.prefix_bytes = kind.prefix;
                kind.common.run(Shape::Uniform, lengths)
            }
            Self::LastByte(common) => {
                let mut lengths = common.lengths();
                lengths.prefix_bytes = common.key_bytes - 1;
                common.run(Shape::Uniform, lengths)
            }
            Self::SampleKiller(kind) => {
                let record_bytes = kind.common.record_bytes;
                let half = count(kind.common.output.amount(), record_bytes) / 2;
                let after = kind.after.map_or(half, |after| after / record_bytes as u64);
                plain(&kind.common, Shape::HotFrom(after))
            }
        }
    }
}

impl Common {
    fn lengths(&self) -> Lengths {
        Lengths {
            record_bytes: self.record_bytes,
            key_bytes: self.key_bytes,
            prefix_bytes: 0,
        }
    }

    fn run(&self, shape: Shape, lengths: Lengths) -> Result<ExitCode> {
        self.output.run(self.checksum.wanted, |amount, _, _| {
            let count = count(amount, lengths.record_bytes);
            let keys = Keys::new(shape, self.seed.number, count, lengths)?;
            Ok((keys, Amount::Records(count)))
        })
    }
}

fn count(amount: Amount, record_bytes: usize) -> u64 {
    match amount {
        Amount::Records(count) => count,
        Amount::Bytes(bytes) => bytes / record_bytes as u64,
    }
}

fn record_bytes(text: &str) -> std::result::Result<usize, String> {
    match bytes(text)? as usize {
        bytes @ 1..=RECORD_BYTES_MAX => Ok(bytes),
        _ => Err(format!("not between 1 and {RECORD_BYTES_MAX} bytes")),
    }
}
