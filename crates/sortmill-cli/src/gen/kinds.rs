//! The kinds of data other than keys of many shapes: one subcommand each.

use std::process::ExitCode;

use clap::Args;
use sortmill::error::Result;
use sortmill::gen_records::{Alphabet, RecordsFrom};
use sortmill::generate::Amount;
use sortmill::generate::csv::Csv as CsvLines;
use sortmill::generate::kv::Kv;
use sortmill::generate::numbers::Numbers as NumberLines;
use sortmill::generate::words::{Text as TextLines, VOCABULARY_MAX, Vocabulary, WORDS_MAX};

use super::{Checksum, Output, Seed, at_most, bytes, exponent, number};

/// The records of the sort benchmark: 100 bytes, uniform keys
///
/// The first 10 bytes of a record are the key. Records are byte for byte those of the benchmark's own
/// program, gensort 1.5, and each follows from its number alone, so the same command always makes the same
/// data and parts made with --start fit together.
#[derive(Args)]
pub struct Records {
    #[command(flatten)]
    output: Output,

    /// Make printable lines that end in CR LF instead of binary records
    #[arg(long)]
    ascii: bool,

    /// Make some keys frequent, so that there are duplicates, instead of all keys equally likely
    #[arg(long)]
    skew: bool,

    /// Number of the first record, below 2^128
    #[arg(long, value_name = "N", default_value = "0", value_parser = number)]
    start: u128,

    #[command(flatten)]
    checksum: Checksum,
}

impl Records {
    pub fn run(&self) -> Result<ExitCode> {
        let alphabet = match self.ascii {
            true => Alphabet::Ascii,
            false => Alphabet::Binary,
        };
        let data = RecordsFrom {
            records: sortmill::gen_records::Records {
                alphabet,
                skew: self.skew,
            },
            start: self.start,
        };
        self.output
            .run(self.checksum.wanted, |amount, _, _| Ok((data, amount)))
    }
}

/// Keys and values whose lengths follow Pareto's law, 100 bytes to --largest
///
/// A record is the length of its key and that of its value (4 bytes each, little-endian), the key and the
/// value, which begins with the record's number as 8 little-endian bytes. Lengths have the exponent 1.5, so
/// their mean is 300 and their variance has no bound. One key and one value, of different records, have
/// exactly the largest length; the seed says which, and all others are shorter.
#[derive(Args)]
pub struct Pareto {
    #[command(flatten)]
    output: Output,

    /// Bytes of the largest key and of the largest value, up to 1GiB
    #[arg(long, value_name = "SIZE", default_value = "32MB", value_parser = bytes)]
    largest: u64,

    #[command(flatten)]
    seed: Seed,
}

impl Pareto {
    pub fn run(&self) -> Result<ExitCode> {
        self.output.run(false, |amount, threads, stop| {
            let (data, count) = Kv::pareto(self.seed.number, self.largest, amount, threads, stop)?;
            Ok((data, Amount::Records(count)))
        })
    }
}

/// Keys and values many of which are empty
///
/// Records as `pareto` makes them. A quarter has neither key nor value, a quarter no key, a quarter no value,
/// and the others have a key of 1 to 32 bytes and a value of 1 to 64.
#[derive(Args)]
pub struct Empty {
    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    seed: Seed,
}

impl Empty {
    pub fn run(&self) -> Result<ExitCode> {
        let data = Kv::empty(self.seed.number);
        self.output.run(false, |amount, _, _| Ok((data, amount)))
    }
}

/// Lines of words that occur by Zipf's law
///
/// COUNT is the number of lines. A line has none to twice --words words, all numbers equally likely, with a
/// space between two. Words have 1 to 14 letters from a to z, frequent ones fewer.
#[derive(Args)]
pub struct Text {
    #[command(flatten)]
    output: Output,

    /// Words of a line, in the mean
    #[arg(long, value_name = "N", default_value = "10", value_parser = words)]
    words: u32,

    /// Different words
    #[arg(long, value_name = "N", default_value = "30000", value_parser = vocabulary)]
    vocabulary: u32,

    /// Exponent: the k-th most frequent word occurs in proportion to 1 / k^S
    #[arg(long, value_name = "S", default_value = "1", value_parser = exponent)]
    exponent: f64,

    #[command(flatten)]
    seed: Seed,
}

impl Text {
    pub fn run(&self) -> Result<ExitCode> {
        let seed = self.seed.number;
        self.output.run(false, |amount, _, _| {
            let vocabulary = Vocabulary::new(seed, self.vocabulary, self.exponent);
            Ok((TextLines::new(seed, self.words, vocabulary), amount))
        })
    }
}

/// Lines of one number each, signed integers and decimals
///
/// COUNT is the number of lines. A number has 1 to 18 digits, and half of them 1 to 6 more behind a point, all
/// lengths equally likely.
#[derive(Args)]
pub struct Numbers {
    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    seed: Seed,
}

impl Numbers {
    pub fn run(&self) -> Result<ExitCode> {
        let data = NumberLines::new(self.seed.number);
        self.output.run(false, |amount, _, _| Ok((data, amount)))
    }
}

/// Comma-separated values: id, time, integer, float, text
///
/// COUNT is the number of records behind the header line, with which the first file begins. Text fields are
/// quoted where they must be: one in eight has a comma, one in 32 a quote, one in 64 a line break.
#[derive(Args)]
pub struct Csv {
    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    seed: Seed,
}

impl Csv {
    pub fn run(&self) -> Result<ExitCode> {
        let data = CsvLines::new(self.seed.number);
        self.output.run(false, |amount, _, _| {
            let with_header = match amount {
                Amount::Records(count) => Amount::Records(count.saturating_add(1)),
                bytes => bytes,
            };
            Ok((data, with_header))
        })
    }
}

fn words(text: &str) -> std::result::Result<u32, String> {
    at_most(text, 1, WORDS_MAX.into()).map(|words| words as u32)
}

fn vocabulary(text: &str) -> std::result::Result<u32, String> {
    at_most(text, 1, VOCABULARY_MAX.into()).map(|words| words as u32)
}
