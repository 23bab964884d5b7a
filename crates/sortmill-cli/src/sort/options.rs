//! The options of GNU sort, under its names: with [`super::Sort`] the one table that the parser, `--help`, completions
//! and the man page are made from.
//!
//! In come words that [`super::words`] has put into their long forms; out go plain values, which [`super::keys`]
//! and [`super::refusals`] make sense of. What may be said once only, or once in each kind, is a list here, so that
//! saying it twice can be refused in our words.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::size::{self, Size};

/// What GNU sort has and our own flags do not.
#[derive(Args, Default, Debug)]
#[command(next_help_heading = "Order of lines, as in GNU sort")]
pub struct Gnu {
    /// Skip the blanks that a field begins with
    #[arg(short = 'b', long)]
    pub ignore_leading_blanks: bool,

    /// Only blanks, letters and digits count
    #[arg(short = 'd', long)]
    pub dictionary_order: bool,

    /// Small letters count as capitals
    #[arg(short = 'f', long)]
    pub ignore_case: bool,

    /// By the number a key begins with, as C reads it: 1e3, 0x1f, inf, nan
    #[arg(short = 'g', long)]
    pub general_numeric_sort: bool,

    /// Only printable bytes count
    #[arg(short = 'i', long)]
    pub ignore_nonprinting: bool,

    /// By the name of a month: anything else < JAN < ... < DEC
    #[arg(short = 'M', long)]
    pub month_sort: bool,

    /// By size: 2K < 1M < 1G
    #[arg(short = 'h', long)]
    pub human_numeric_sort: bool,

    /// By the decimal number a key begins with, of any length
    #[arg(short = 'n', long)]
    pub numeric_sort: bool,

    /// In no order, but equal keys together
    #[arg(short = 'R', long)]
    pub random_sort: bool,

    /// Take from FILE the 16 bytes that decide the order of -R
    #[arg(long, value_name = "FILE")]
    pub random_source: Vec<PathBuf>,

    /// Larger first
    #[arg(short = 'r', long)]
    pub reverse: bool,

    /// One of -g -h -M -n -R -V, as a word
    #[arg(long, value_name = "WORD", value_enum)]
    pub sort: Vec<SortWord>,

    /// By the numbers within, as versions are: 1.9 < 1.10
    #[arg(short = 'V', long)]
    pub version_sort: bool,

    /// What separates fields, one byte; \0 is NUL. Default: a field begins with the blanks in front of it
    #[arg(short = 't', long, value_name = "SEP")]
    pub field_separator: Vec<OsString>,

    /// Lines with equal keys stay as the input has them. Default: their whole bytes decide
    #[arg(short = 's', long)]
    pub stable: bool,

    /// Of lines with equal keys only the first
    #[arg(short = 'u', long)]
    pub unique: bool,

    /// Lines end with NUL instead of newline
    #[arg(short = 'z', long)]
    pub zero_terminated: bool,

    /// Underline in each line what its keys are, and warn of doubtful ones on stderr
    #[arg(long)]
    pub debug: bool,

    /// Do not sort: exit with 1 if the input is not in order, and say where (diagnose-first, as -c), or not (quiet,
    /// as -C)
    #[arg(short = 'c', long, value_name = "HOW", value_enum, num_args = 0..=1, require_equals = true,
        default_missing_value = "diagnose-first", help_heading = "Instead of sorting, as in GNU sort")]
    pub check: Vec<CheckWord>,

    /// The same as --check=quiet
    #[arg(short = 'C', help_heading = "Instead of sorting, as in GNU sort")]
    pub check_quietly: bool,

    /// Merge inputs that are in order already, in one pass. Others are merged as they are, as in GNU sort; `sortmill
    /// merge` refuses them
    #[arg(short = 'm', long, help_heading = "Instead of sorting, as in GNU sort")]
    pub merge: bool,

    /// Read the files whose names, each ended by NUL, are in F; - is standard input
    #[arg(long, value_name = "F", help_heading = MEANS)]
    pub files0_from: Option<PathBuf>,

    /// As --memory, in GNU's units (a plain number is KiB), and as a wish: raised to the least that the job needs,
    /// cut to what there is
    #[arg(short = 'S', long, value_name = "SIZE", value_parser = size::parse_wish, help_heading = MEANS)]
    pub buffer_size: Vec<Size>,

    /// As --threads, but never more than there are cores
    #[arg(long, value_name = "N", value_parser = parse_parallel, help_heading = MEANS)]
    pub parallel: Option<usize>,

    /// Accepted: how many inputs are merged at once follows from the memory
    #[arg(long, value_name = "N", value_parser = parse_batch_size, help_heading = MEANS)]
    pub batch_size: Option<u64>,

    /// Compress temporary data by PROG, and decompress them by PROG -d, run for each of their blocks. lz4 and zstd, and
    /// zstd for gzip, are libraries of ours, as with --compress-temp: no program is run
    #[arg(long, value_name = "PROG", help_heading = MEANS)]
    pub compress_program: Vec<OsString>,

    /// Ignored, as GNU sort does for the sake of old scripts
    #[arg(short = 'y', value_name = "SIZE", hide = true)]
    pub ignored: Option<OsString>,
}

const MEANS: &str = "Means, as in GNU sort";

/// GNU's long names that stand elsewhere in the table, because our own flags are the same.
pub const SHARED_NAMES: [&str; 5] = ["help", "key", "output", "temporary-directory", "version"];

/// What `--sort` takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum SortWord {
    /// -g
    GeneralNumeric,
    /// -h
    HumanNumeric,
    /// -M
    Month,
    /// -n
    Numeric,
    /// -R
    Random,
    /// -V
    Version,
}

/// What `--check` takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum CheckWord {
    /// Say where the first line out of order is
    DiagnoseFirst,
    /// Say nothing
    #[value(alias = "silent")]
    Quiet,
}

impl Gnu {
    /// Whether `word` or the option it stands for was given.
    pub fn sorts_by(&self, word: SortWord) -> bool {
        let flag = match word {
            SortWord::GeneralNumeric => self.general_numeric_sort,
            SortWord::HumanNumeric => self.human_numeric_sort,
            SortWord::Month => self.month_sort,
            SortWord::Numeric => self.numeric_sort,
            SortWord::Random => self.random_sort,
            SortWord::Version => self.version_sort,
        };
        flag || self.sort.contains(&word)
    }

    /// How to check instead of sorting, if so.
    pub fn checks(&self) -> Option<CheckWord> {
        match self.check_quietly {
            true => Some(CheckWord::Quiet),
            false => self.check.first().copied(),
        }
    }
}

/// A whole number as GNU reads one: blanks and a plus may stand in front. `Ok(None)` is more than can be counted.
fn parse_count(text: &str) -> Result<Option<u64>, String> {
    let digits = text.trim_start().trim_start_matches('+');
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("{text:?} is no whole number"));
    }
    Ok(digits.parse().ok())
}

fn parse_parallel(text: &str) -> Result<usize, String> {
    match parse_count(text)? {
        Some(0) => Err("it takes one thread at least".into()),
        count => Ok(count.map_or(usize::MAX, |count| count as usize)),
    }
}

/// The bounds are GNU's: two inputs make a merge, and each needs a descriptor beside the standard ones.
fn parse_batch_size(text: &str) -> Result<u64, String> {
    let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let most = descriptors.unwrap_or(u64::MAX).saturating_sub(3);
    match parse_count(text)? {
        Some(count) if count < 2 => Err("it takes two inputs to merge".into()),
        Some(count) if count <= most => Ok(count),
        _ => Err(format!("at most {most} files can be open")),
    }
}
