//! `sortmill gen records COUNT OUT`: flags in, a [`GenRecords`] out, and words about it on standard error.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sortmill::error::{Error, ErrorKind, Result};
use sortmill::gen_records::{Alphabet, RECORD_BYTES, Records};
use sortmill::generate::{FILES_MAX, GenRecords, GenReport, Out, THREADS_MAX, generate};
use sortmill::io::Os;
use sortmill::text;

use crate::common::{Machine, stop_on_signals};

/// Generate the records of the sort benchmark
///
/// Writes COUNT records of 100 bytes each, the first 10 of which are the key. They are byte for byte those
/// of the benchmark's own program, gensort 1.5, and each follows from its number alone, so the same command
/// always makes the same data and parts made with --start fit together.
///
/// A file appears under its name when it is complete; until then, what was there before stays.
#[derive(clap::Args, Clone, Debug)]
pub struct GenRecordsArgs {
    /// How many records to generate, such as 1000000 or 1_000_000
    #[arg(value_name = "COUNT", value_parser = count)]
    pub count: u64,

    /// Where to write them: a file, a device or pipe, or - for standard output
    ///
    /// With --files, the folder to write them in, which is made if it is missing.
    #[arg(value_name = "OUT")]
    pub out: PathBuf,

    /// Make printable lines that end in CR LF instead of binary records
    #[arg(long)]
    pub ascii: bool,

    /// Make some keys frequent, so that there are duplicates, instead of all keys equally likely
    #[arg(long)]
    pub skew: bool,

    /// Number of the first record, below 2^128
    #[arg(long, value_name = "N", default_value = "0", value_parser = number)]
    pub start: u128,

    /// Print the sum of the records' CRC-32 on standard error, in hexadecimal
    ///
    /// It does not depend on the order of the records, so it is the same before and after sorting, and
    /// the sums of the parts of a data set add up to that of the whole.
    #[arg(long)]
    pub checksum: bool,

    /// How many threads generate records [default: one per processor]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,

    /// Write N files of equal size, part-00000 and on, into the folder OUT
    ///
    /// Their concatenation is what one file would be. They get their names together at the end.
    #[arg(long, value_name = "N", value_parser = files)]
    pub files: Option<u64>,

    #[command(flatten)]
    pub machine: Machine,

    /// Say how much was written and how fast, even if standard error is not a terminal
    #[arg(long, short)]
    pub verbose: bool,
}

/// Generates what `args` ask for on this machine and says on standard error what was done.
///
/// # Errors
/// Those of [`generate`], and a usage error for flags that do not fit together.
pub fn run(args: &GenRecordsArgs) -> Result<ExitCode> {
    let os = args.machine.open()?;
    let report = generate(&args.job(os.machine().cores)?, &os, &stop_on_signals())?;
    let mut stderr = std::io::stderr();
    let words = args.words(&report, stderr.is_terminal());
    // The records are where they belong, whether or not anybody can be told.
    let _ = stderr.write_all(words.as_bytes());
    Ok(ExitCode::SUCCESS)
}

impl GenRecordsArgs {
    /// What is asked for, on a machine with this many processors.
    ///
    /// # Errors
    /// A usage error for flags that do not fit together.
    pub fn job(&self, cores: usize) -> Result<GenRecords> {
        let out = match (self.files, self.out == Path::new("-")) {
            (None, false) => Out::File(self.out.clone()),
            (None, true) => Out::Stdout,
            (Some(files), false) => Out::Directory {
                path: self.out.clone(),
                files,
            },
            (Some(_), true) => {
                let cause = "several files cannot go to standard output";
                return Err(Error::new(ErrorKind::Usage, "reading the flags", cause)
                    .hint("Name a folder, or leave `--files` out."));
            }
        };
        let alphabet = if self.ascii {
            Alphabet::Ascii
        } else {
            Alphabet::Binary
        };
        Ok(GenRecords {
            count: self.count,
            start: self.start,
            records: Records {
                alphabet,
                skew: self.skew,
            },
            threads: self.threads.unwrap_or(cores).clamp(1, THREADS_MAX),
            out,
            checksum: self.checksum,
        })
    }

    /// What to tell people: the checksum if it was asked for, and a summary if anybody is looking.
    #[must_use]
    pub fn words(&self, report: &GenReport, terminal: bool) -> String {
        let mut words = String::new();
        if let Some(checksum) = report.checksum {
            words += &format!("{checksum:x}\n");
        }
        if terminal || self.verbose {
            let size = text::bytes(report.bytes);
            let time = text::seconds(report.wall_ns);
            let rate = text::rate(report.bytes, report.wall_ns);
            words += &format!("{} records, {size} in {time}, {rate}\n", report.records);
        }
        words
    }
}

/// A decimal number with underscores anywhere behind its first digit.
fn number(text: &str) -> std::result::Result<u128, String> {
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

fn at_most(text: &str, least: u64, most: u64) -> std::result::Result<u64, String> {
    let value = number(text)?;
    let in_range = |value: &u64| (least..=most).contains(value);
    u64::try_from(value)
        .ok()
        .filter(in_range)
        .ok_or_else(|| format!("not between {least} and {most}"))
}

fn count(text: &str) -> std::result::Result<u64, String> {
    at_most(text, 0, i64::MAX as u64 / RECORD_BYTES as u64)
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
        args: GenRecordsArgs,
    }

    fn parse(line: &str) -> std::result::Result<GenRecordsArgs, String> {
        let words = std::iter::once("gen").chain(line.split(' '));
        Line::try_parse_from(words)
            .map(|line| line.args)
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
        let args =
            parse("1_000 out --ascii --skew --start 5 --checksum --threads 3 --files 7").unwrap();
        let job = args.job(2).unwrap();
        assert_eq!(
            (job.count, job.start, job.threads, job.checksum),
            (1_000, 5, 3, true)
        );
        assert_eq!(
            job.records,
            Records {
                alphabet: Alphabet::Ascii,
                skew: true
            }
        );
        assert!(
            matches!(job.out, Out::Directory { files: 7, ref path } if path == Path::new("out"))
        );

        let job = parse("10 -").unwrap().job(2).unwrap();
        assert!(matches!(job.out, Out::Stdout));
        assert_eq!((job.threads, job.checksum), (2, false));
        let job = parse("10 ./-").unwrap().job(2).unwrap();
        assert!(matches!(job.out, Out::File(_)));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "10",
            "ten out",
            "92233720368547759 out",
            "10 out --files 0",
            "10 out --files 100001",
            "10 out --threads 0",
            "10 out --io magic",
            "10 out --start -1",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
        let error = parse("10 - --files 2").unwrap().job(2).unwrap_err();
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
        let args = parse("1 out").unwrap();
        assert_eq!(args.words(&report, true), summary);
        assert_eq!(args.words(&report, false), "abc\n");
        assert_eq!(parse("1 out -v").unwrap().words(&report, false), summary);
    }
}
