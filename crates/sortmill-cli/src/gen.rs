//! `sortmill gen KIND COUNT OUT`: flags in, data and a [`Generate`] out, and words about it on standard error.
//!
//! Each kind of data is a subcommand. What all have in common is [`Output`], and a seed for all but the
//! records of the sort benchmark, which follow from their numbers.

mod arrange;
mod graph;
mod keys;
mod kinds;
mod logs;

pub use arrange::arranged;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Subcommand;
use sortmill::error::{Error, ErrorKind, Result};
use sortmill::generate::data::Data;
use sortmill::generate::{Amount, FILES_MAX, GenReport, Generate, Out, THREADS_MAX, generate};
use sortmill::io::Os;
use sortmill::job;
use sortmill::queue::Stop;
use sortmill::text;

use crate::common::Machine;
use crate::progress;
use crate::signals::stop_on_signals;
use crate::size::{self, Size};

/// A kind of data.
#[derive(Subcommand)]
pub enum Gen {
    Records(kinds::Records),
    #[command(flatten)]
    Keys(keys::Kind),
    Pareto(kinds::Pareto),
    Empty(kinds::Empty),
    Text(kinds::Text),
    Numbers(kinds::Numbers),
    Csv(kinds::Csv),
    Json(logs::Json),
    Clicks(logs::Clicks),
    Graph(graph::Graph),
}

impl Gen {
    /// Generates what is asked for on this machine and says on standard error what was done.
    ///
    /// # Errors
    /// Those of [`generate`], and a usage error for flags that do not fit together.
    pub fn run(&self) -> Result<ExitCode> {
        match self {
            Self::Records(kind) => kind.run(),
            Self::Keys(kind) => kind.run(),
            Self::Pareto(kind) => kind.run(),
            Self::Empty(kind) => kind.run(),
            Self::Text(kind) => kind.run(),
            Self::Numbers(kind) => kind.run(),
            Self::Csv(kind) => kind.run(),
            Self::Json(kind) => kind.run(),
            Self::Clicks(kind) => kind.run(),
            Self::Graph(kind) => kind.run(),
        }
    }
}

/// How much, and where to.
#[derive(clap::Args, Clone, Debug)]
#[command(allow_missing_positional = true)]
pub struct Output {
    /// How many records to generate, such as 1000000 or 1_000_000
    #[arg(value_name = "COUNT", value_parser = count, required_unless_present = "bytes")]
    pub count: Option<u64>,

    /// Where to write them: a file, a device or pipe, or - for standard output
    ///
    /// With --files, the folder to write them in, which is made if it is missing. A file appears under its
    /// name when it is complete; until then, what was there before stays.
    #[arg(value_name = "OUT", required = true)]
    pub out: PathBuf,

    /// Instead of COUNT: as many whole records as fit into SIZE, such as 2GB or 512MiB
    #[arg(long, value_name = "SIZE", value_parser = bytes, conflicts_with = "count")]
    pub bytes: Option<u64>,

    /// Write N files with equally many records, part-00000 and on, into the folder OUT
    ///
    /// Their concatenation is what one file would be. They get their names together at the end.
    #[arg(long, value_name = "N", value_parser = files)]
    pub files: Option<u64>,

    /// How many threads generate records [default: one per processor]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,

    #[command(flatten)]
    pub machine: Machine,

    #[command(flatten)]
    pub progress: progress::Flag,

    /// Say how much was written and how fast, even if standard error is not a terminal
    #[arg(long, short)]
    pub verbose: bool,

    /// Say nothing but the checksum, and no progress unless --progress asks for it
    #[arg(long, short, conflicts_with = "verbose")]
    pub quiet: bool,
}

/// What the records follow from.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Seed {
    /// Number from which all data follow: the same one makes the same data, whatever the threads
    #[arg(long = "seed", value_name = "N", default_value = "1", value_parser = seed)]
    pub number: u64,
}

/// A sum to compare a sorted output with.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Checksum {
    /// Print the sum of the records' CRC-32 on standard error, in hexadecimal
    ///
    /// It does not depend on the order of the records, so it is the same before and after sorting, and
    /// the sums of the parts of a data set add up to that of the whole.
    #[arg(long = "checksum")]
    pub wanted: bool,
}

impl Output {
    /// How much is wanted.
    pub fn amount(&self) -> Amount {
        match (self.count, self.bytes) {
            (Some(count), _) => Amount::Records(count),
            (None, bytes) => Amount::Bytes(bytes.unwrap_or(0)),
        }
    }

    /// How many threads are wanted, on a machine with this many processors.
    pub fn threads(&self, cores: usize) -> usize {
        self.threads.unwrap_or(cores).clamp(1, THREADS_MAX)
    }

    /// Where the records are wanted.
    ///
    /// # Errors
    /// A usage error for flags that do not fit together.
    pub fn out(&self) -> Result<Out> {
        match (self.files, self.out == Path::new("-")) {
            (None, false) => Ok(Out::File(self.out.clone())),
            (None, true) => Ok(Out::Stdout),
            (Some(files), false) => Ok(Out::Directory {
                path: self.out.clone(),
                files,
            }),
            (Some(_), true) => {
                let cause = "several files cannot go to standard output";
                Err(Error::new(ErrorKind::Usage, "reading the flags", cause)
                    .hint("Name a folder, or leave `--files` out."))
            }
        }
    }

    /// Writes what `make` makes of the amount, the threads and a switch, and tells of it.
    fn run<D: Data>(
        &self,
        checksum: bool,
        make: impl FnOnce(Amount, usize, &Stop) -> Result<(D, Amount)>,
    ) -> Result<ExitCode> {
        let os = self.machine.open()?;
        let (out, threads) = (self.out()?, self.threads(os.machine().cores));
        let stop = stop_on_signals();
        let (data, amount) = make(self.amount(), threads, &stop)?;
        let shown = self
            .progress
            .shown(self.quiet, &[], output_of(&out).as_ref());
        let job = Generate {
            data: &data,
            amount,
            threads,
            out,
            checksum,
            progress: shown.as_ref().map(|_| Arc::default()),
        };
        let work = || generate(&job, &os, &stop);
        let report = progress::show(shown, job.progress.as_ref(), &os, &stop, work)?;
        let mut stderr = std::io::stderr();
        let words = self.words(&report, stderr.is_terminal());
        // The records are where they belong, whether or not anybody can be told.
        let _ = stderr.write_all(words.as_bytes());
        Ok(ExitCode::SUCCESS)
    }

    /// What to tell people: the checksum if there is one, and a summary if anybody is looking.
    #[must_use]
    pub fn words(&self, report: &GenReport, terminal: bool) -> String {
        let mut words = String::new();
        if let Some(checksum) = report.checksum {
            words += &format!("{checksum:x}\n");
        }
        if (terminal || self.verbose) && !self.quiet {
            let size = text::bytes(report.bytes);
            let time = text::seconds(report.wall_ns);
            let rate = text::rate(report.bytes, report.wall_ns);
            words += &format!("{} records, {size} in {time}, {rate}\n", report.records);
        }
        words
    }
}

/// Where records may appear on a terminal; `None` for files in a folder.
fn output_of(out: &Out) -> Option<job::Output> {
    match out {
        Out::Stdout => Some(job::Output::Stdout),
        Out::File(path) => Some(job::Output::Path(path.clone())),
        Out::Directory { .. } => None,
    }
}

/// A decimal number with underscores anywhere behind its first digit.
pub fn number(text: &str) -> std::result::Result<u128, String> {
    let decimal = text.starts_with(|first: char| first.is_ascii_digit())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'_');
    if !decimal {
        return Err("not a decimal number such as 1000000 or 1_000_000".into());
    }
    text.replace('_', "")
        .parse()
        .map_err(|_| "not below 2^128".into())
}

/// A decimal number in a range.
pub fn at_most(text: &str, least: u64, most: u64) -> std::result::Result<u64, String> {
    let value = number(text)?;
    let in_range = |value: &u64| (least..=most).contains(value);
    u64::try_from(value)
        .ok()
        .filter(in_range)
        .ok_or_else(|| format!("not between {least} and {most}"))
}

/// A size in bytes.
pub fn bytes(text: &str) -> std::result::Result<u64, String> {
    match size::parse(text)? {
        Size::Bytes(bytes) if bytes <= i64::MAX as u64 => Ok(bytes),
        Size::Bytes(_) => Err("more than 2^63 bytes".into()),
        Size::Percent(_) => Err("not a part of something; try 2GB or 512MiB".into()),
    }
}

/// A number of something, at least one.
pub fn some(text: &str) -> std::result::Result<u64, String> {
    at_most(text, 1, i64::MAX as u64)
}

/// An exponent of Zipf's law.
pub fn exponent(text: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(exponent) if exponent > 0.0 && exponent <= 10.0 => Ok(exponent),
        _ => Err("not above 0 and at most 10".into()),
    }
}

/// So many of 100.
pub fn percent(text: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("not between 0 and 100".into()),
    }
}

fn count(text: &str) -> std::result::Result<u64, String> {
    at_most(text, 0, i64::MAX as u64)
}

fn seed(text: &str) -> std::result::Result<u64, String> {
    at_most(text, 0, u64::MAX)
}

fn threads(text: &str) -> std::result::Result<usize, String> {
    at_most(text, 1, THREADS_MAX as u64).map(|threads| threads as usize)
}

fn files(text: &str) -> std::result::Result<u64, String> {
    at_most(text, 1, FILES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        output: Output,
    }

    fn parse(line: &str) -> std::result::Result<Output, String> {
        let words = std::iter::once("gen").chain(line.split(' '));
        Line::try_parse_from(words)
            .map(|line| line.output)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn numbers_are_plain_or_grouped() {
        for (text, expected) in [
            ("0", Some(0)),
            ("007", Some(7)),
            ("1_000_000", Some(1_000_000)),
            ("340282366920938463463374607431768211455", Some(u128::MAX)),
            ("340282366920938463463374607431768211456", None),
            ("_1", None),
            ("", None),
            ("+1", None),
            ("1k", None),
            ("1e6", None),
            ("0x10", None),
        ] {
            assert_eq!(number(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn flags_become_a_job() {
        let output = parse("1_000 out --threads 3 --files 7").unwrap();
        assert_eq!(output.amount(), Amount::Records(1_000));
        assert_eq!(output.threads(2), 3);
        assert!(
            matches!(output.out().unwrap(), Out::Directory { files: 7, ref path } if path == Path::new("out"))
        );

        let output = parse("10 -").unwrap();
        assert!(matches!(output.out().unwrap(), Out::Stdout));
        assert_eq!(output.threads(2), 2);
        let output = parse("10 ./-").unwrap();
        assert!(matches!(output.out().unwrap(), Out::File(_)));

        for line in ["--bytes 2GB out", "out --bytes 2GB"] {
            let output = parse(line).unwrap();
            assert_eq!(output.amount(), Amount::Bytes(2_000_000_000), "{line}");
            assert_eq!(output.out, Path::new("out"), "{line}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "10",
            "out",
            "ten out",
            "9223372036854775808 out",
            "10 out --bytes 2GB",
            "out --bytes 25%",
            "out --bytes 16EiB",
            "10 out --files 0",
            "10 out --files 100001",
            "10 out --threads 0",
            "10 out --io magic",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
        let error = parse("10 - --files 2").unwrap().out().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage);
    }

    #[test]
    fn words_are_few() {
        let report = GenReport {
            records: 10_000_000,
            bytes: 1_000_000_000,
            checksum: Some(0xABC),
            wall_ns: 500_000_000,
        };
        let summary = "abc\n10000000 records, 953.7 MiB in 0.5 s, 2000 MB/s\n";
        let output = parse("1 out").unwrap();
        assert_eq!(output.words(&report, true), summary);
        assert_eq!(output.words(&report, false), "abc\n");
        assert_eq!(parse("1 out -v").unwrap().words(&report, false), summary);
        assert_eq!(parse("1 out -q").unwrap().words(&report, true), "abc\n");
        assert!(parse("1 out -q -v").is_err());
    }
}
