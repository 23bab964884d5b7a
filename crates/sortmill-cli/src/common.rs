//! What several commands share: flags for formats and back ends, telling an error.

use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

use clap::{Args, ValueEnum};
use sortmill::columns::Columns;
use sortmill::error::{Error, ErrorKind, Result};
use sortmill::io::{Host, RingKind, caller, signals};
use sortmill::job::Input;
use sortmill::line_keys::LineOrder;
use sortmill::order::{Format, KeyPart, Number};

use crate::columns::{By, Kind};
use crate::sort::keys::{line_order, refused};
use crate::sort::options::Gnu;

/// How records lie in the input and what they are ordered by.
#[derive(Args, Debug)]
pub struct Shape {
    /// How records lie in the input: `lines`; `fixed:SIZE` for records of SIZE bytes; `kv` for pairs, which
    /// are the length of the key and that of the value, 4 bytes each and the lowest first, then the key, then
    /// the value, and are ordered by their keys; `csv`, `tsv` and `jsonl` for records of columns, which --by names
    #[arg(long, value_name = "FORMAT", default_value = "lines", value_parser = parse_kind)]
    pub format: Kind,

    /// Part of the key. Of lines, as GNU sort has it: F[.C][OPTS][,F[.C][OPTS]], fields and characters from 1, to
    /// the line's end if none is named, and OPTS any of bdfghiMnRrV for this key in place of the options for all. Of
    /// fixed records: OFFSET:LENGTH in bytes, then any of `:r` (reversed), `:unsigned`, `:signed`, `:float` and `:le`,
    /// `:be` (byte order of numbers; be if not said). Several parts, the most significant first; none is the whole
    /// record
    #[arg(short = 'k', long = "key", value_name = "KEY")]
    pub keys: Vec<OsString>,

    #[command(flatten)]
    pub by: By,
}

impl Shape {
    /// How records lie in the input.
    ///
    /// # Errors
    /// As [`By::columns`].
    pub fn records(&self) -> Result<Format> {
        Ok(match (self.format, self.columns()?) {
            (Kind::Plain(format), _) => format,
            (_, columns) => columns.map_or(Format::Lines, |columns| columns.format()),
        })
    }

    /// The columns of records that are made of such.
    ///
    /// # Errors
    /// As [`By::columns`], and a key beside them.
    pub fn columns(&self) -> Result<Option<Columns>> {
        let columns = self.by.columns(self.format)?;
        if columns.is_some() && !self.keys.is_empty() {
            return Err(refused(
                "columns are named by --by, and -k is of other formats",
            ));
        }
        Ok(columns)
    }

    /// The parts of the key of fixed records; of others there are none.
    pub fn parts(&self) -> Result<Vec<KeyPart>> {
        if !matches!(self.format, Kind::Plain(format) if format != Format::Lines) {
            return Ok(Vec::new());
        }
        let keys = self.keys.iter().map(|text| {
            let text = text.to_string_lossy();
            parse_key(&text).map_err(|cause| {
                let cause = format!("key {text}: {cause}");
                Error::new(ErrorKind::Usage, "reading the options", cause)
            })
        });
        keys.collect()
    }

    /// The order of lines, where keys say that it is not that of their bytes.
    pub fn line_order(&self) -> Result<Option<LineOrder>> {
        if !self.format.is_lines() || self.keys.is_empty() {
            return Ok(None);
        }
        let mut keys = line_order(&Gnu::default(), &self.keys)?;
        if keys.seeds().next().is_some() {
            return Err(refused("a key in no order (R) cannot be looked at again"));
        }
        Ok(Some(keys.order))
    }
}

/// Which back end moves the bytes.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Io {
    /// io_uring where the kernel allows it, else threads
    Auto,
    /// io_uring or an error
    Uring,
    /// Threads with pread and pwrite
    Posix,
}

/// The machine's flags.
#[derive(Args, Clone, Debug)]
pub struct Machine {
    /// Which back end moves the bytes
    #[arg(long, value_enum, default_value = "auto")]
    pub io: Io,

    /// Go through the page cache even where direct I/O is possible
    #[arg(long)]
    pub no_direct: bool,
}

impl Machine {
    /// The words that make another process of this program a node with the same machine.
    pub fn node_words(&self) -> Vec<OsString> {
        let io = match self.io {
            Io::Auto => "auto",
            Io::Uring => "uring",
            Io::Posix => "posix",
        };
        let mut words: Vec<OsString> = ["node", "--io", io].map(OsString::from).into();
        if self.no_direct {
            words.push("--no-direct".into());
        }
        words
    }

    /// The machine, as the flags want it.
    pub fn open(&self) -> Result<Host> {
        let kind = match self.io {
            Io::Auto => RingKind::Auto,
            Io::Uring => RingKind::Uring,
            Io::Posix => RingKind::Posix,
        };
        Host::new(kind, !self.no_direct).map_err(|error| {
            Error::new(ErrorKind::Io, "starting io_uring", error.to_string())
                .hint("This kernel or container forbids it; --io posix works everywhere.")
        })
    }
}

/// What starts another process of this program, and the words in front of its command line.
type NodeProgram = (PathBuf, Vec<OsString>);

/// Set once, by a program of which this command is a part.
static NODE_PROGRAM: OnceLock<NodeProgram> = OnceLock::new();

/// The processes of `--on` are started by `program` with `words` in front, because this process is another program than
/// `sortmill`. What was said first holds.
pub fn nodes_are_started_by(program: PathBuf, words: Vec<OsString>) {
    NODE_PROGRAM.get_or_init(|| (program, words));
}

/// What starts a process of `--on`: this very program, even if another one has its name by now, unless something else
/// was said.
pub fn node_program() -> NodeProgram {
    let own = || ("/proc/self/exe".into(), Vec::new());
    NODE_PROGRAM.get().cloned().unwrap_or_else(own)
}

/// The files named on the command line; none, or `-`, is standard input.
pub fn inputs(files: &[PathBuf]) -> Vec<Input> {
    if files.is_empty() {
        return vec![Input::Stdin];
    }
    files
        .iter()
        .map(|file| match file.as_os_str() == "-" {
            true => Input::Stdin,
            false => Input::Path(file.clone()),
        })
        .collect()
}

/// What this program is called, if it is not `sortmill`.
static NAME: OnceLock<&str> = OnceLock::new();

/// Messages begin with `name` from now on.
pub fn called(name: &'static str) {
    NAME.get_or_init(|| name);
}

/// What a command that failed ends with. A process whose reader has gone away ends in silence, by the signal that it would
/// have had; what it had made is gone by now.
pub fn ended(error: &Error) -> ExitCode {
    if error.kind == ErrorKind::Reader && !caller::ignores_pipe() {
        signals::end_by(signals::PIPE);
    }
    tell(error)
}

/// Says what went wrong on stderr.
pub fn tell(error: &Error) -> ExitCode {
    note(&error.to_string());
    ExitCode::from(2)
}

/// Words for people about the job, on stderr, behind the name of the program that says them.
pub fn note(words: &str) {
    say(&noted(words));
}

/// The same words, as they are said.
pub fn noted(words: &str) -> String {
    format!("{}: {words}\n", NAME.get().unwrap_or(&"sortmill"))
}

/// Words for people, on stderr. What was done is done, whether or not anybody can be told.
pub fn say(words: &str) {
    let _ = std::io::stderr().write_all(words.as_bytes());
}

/// Ends the process with what clap tells in place of an answer: why it cannot read the words, or the help and version that
/// were asked for.
pub fn end_with(told: &clap::Error) -> ! {
    if told.use_stderr() && NAME.get().is_some() {
        // Whoever reads it knows the name that words of this program begin with.
        let words = told.render().to_string();
        note(words.trim_start_matches("error: ").trim_end());
        std::process::exit(told.exit_code());
    }
    if told.use_stderr() || std::io::stdout().is_terminal() {
        told.exit();
    }
    let printed = print(&told.render().to_string());
    std::process::exit(match printed {
        Ok(()) => 0,
        Err(error) => {
            ended(&error);
            2
        }
    });
}

/// What a command was asked for, on stdout.
pub fn print(text: &str) -> Result<()> {
    stdout()
        .and_then(|mut stdout| stdout.write_all(text.as_bytes()))
        .map_err(|error| Error::writing("writing to standard output", Path::new("-"), &error))
}

/// Standard output, without a buffer. The standard library's takes all that is written to a closed one and says nothing.
pub fn stdout() -> std::io::Result<File> {
    let stdout = std::io::stdout().as_fd().try_clone_to_owned()?;
    Ok(stdout.into())
}

fn parse_kind(text: &str) -> std::result::Result<Kind, String> {
    match text {
        "lines" => return Ok(Kind::Plain(Format::Lines)),
        "kv" => return Ok(Kind::Plain(Format::Kv)),
        "csv" => return Ok(Kind::Csv),
        "tsv" => return Ok(Kind::Tsv),
        "jsonl" => return Ok(Kind::Json),
        _ => {}
    }
    let size = text
        .strip_prefix("fixed:")
        .ok_or("the formats are lines, fixed:SIZE, kv, csv, tsv and jsonl")?;
    match size.parse() {
        Ok(bytes) if bytes > 0 => Ok(Kind::Plain(Format::Fixed(bytes))),
        _ => Err(format!(
            "{size:?} is no record size in bytes, from 1 to {}",
            u32::MAX
        )),
    }
}

fn parse_key(text: &str) -> std::result::Result<KeyPart, String> {
    let mut words = text.split(':');
    let mut number = |what: &str| -> std::result::Result<u32, String> {
        let word = words.next().unwrap_or_default();
        word.parse()
            .map_err(|_| format!("{word:?} is no {what} in bytes; a key is OFFSET:LENGTH"))
    };
    let (offset, bytes) = (number("offset")?, number("length")?);
    let mut part = KeyPart::plain(offset, bytes);
    for word in words {
        match word {
            "r" | "reversed" => part.reversed = true,
            "u" | "unsigned" => part.number = Number::Unsigned,
            "s" | "signed" => part.number = Number::Signed,
            "f" | "float" => part.number = Number::Float,
            "le" => part.little_endian = true,
            "be" => part.little_endian = false,
            _ => {
                return Err(format!(
                    "{word:?} is not one of r, unsigned, signed, float, le, be"
                ));
            }
        }
    }
    if part.little_endian && part.number == Number::Bytes {
        return Err("a byte order needs unsigned, signed or float".into());
    }
    Ok(part)
}
