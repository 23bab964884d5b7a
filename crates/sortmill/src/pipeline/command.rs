//! Any program as a function of lines: it is started for each batch, reads its lines and writes others. Columns go to one as
//! Arrow's streams (`arrow/command.rs`).
//!
//! That is how GNU parallel's `--pipe` does it. A program that ran on would have to be asked which line it made of which,
//! and nobody could tell; this way lines keep the order of the input, and an error has a place.

use std::ffi::OsString;
use std::time::Duration;

use sortmill_io::filter::{Refused as Ended, filter};
use sortmill_io::process::Ending;
use sortmill_io::sync::Arc;

use super::column::{Column, Type, Value};
use super::gather::{BATCH_BYTES, BatchFn, Gathered, MakeBatchFn, Refused, RowSink};
use super::{Table, wrong};
use crate::error::{Error, ErrorKind, Result};

/// A program may make so much of one batch.
pub(super) const MADE_BYTES_MAX: usize = 64 * BATCH_BYTES;

/// A program, and how long it may take.
#[derive(Clone)]
pub struct Command {
    /// Its name or path, and its arguments.
    pub words: Vec<OsString>,
    /// For one batch; `None` is as long as it likes.
    pub timeout: Option<Duration>,
    /// Whether nobody wants it any more.
    pub is_stopped: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Command {
    /// What it is called in a plan.
    pub(super) fn name(&self) -> Result<String> {
        match self.words.first() {
            Some(program) => Ok(format!("command {}", program.display())),
            None => Err(wrong("there is no program".to_owned())),
        }
    }

    /// What it writes of what it is `given`, if all goes well.
    pub(super) fn filter(&self, given: &[u8]) -> std::result::Result<Vec<u8>, Refused> {
        let Command {
            words,
            timeout,
            is_stopped,
        } = self;
        let name = words[0].display();
        let done = filter(words, given, MADE_BYTES_MAX, *timeout, &|| is_stopped());
        let done = done.map_err(|ended| {
            let error = match ended {
                Ended::Late => failed(format!("{name} took longer than its timeout")),
                Ended::Long => failed(format!("{name} made more than 64 MiB of one batch")),
                Ended::Stopped => Error::interrupted(),
                Ended::Io(error) => failed(format!("{name}: {error}")),
            };
            (0, Box::new(error))
        })?;
        let how = match done.ending {
            Ending::Exited(0) => return Ok(done.made),
            Ending::Exited(code) => format!("ended with exit code {code}"),
            Ending::Signal(signal) => format!("was killed by signal {signal}"),
            Ending::Killed => "was killed".to_owned(),
        };
        let said = String::from_utf8_lossy(&done.said);
        let mut last: Vec<&str> = said.lines().rev().take(5).collect();
        last.reverse();
        let said = match last.is_empty() {
            true => String::new(),
            false => format!("; it said last: {}", last.join(" | ")),
        };
        Err((0, Box::new(failed(format!("{name} {how}{said}")))))
    }
}

impl Table {
    /// The lines that a program makes of those of the text `column`, as the column `made`. It is started for each batch of
    /// at most `size` of them, must end with exit code 0, and may write at most 64 MiB.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a column that is not there or no text, and without a program.
    pub fn map_command(
        &self,
        column: &str,
        command: Command,
        made: &str,
        size: usize,
    ) -> Result<Self> {
        let kind = self.columns().iter().find(|one| one.name == column);
        if let Some(Column { kind, .. }) = kind
            && !kind.is_bytes()
        {
            return Err(wrong(format!("{column} is of type {}", kind.name())));
        }
        let name = command.name()?;
        let make: MakeBatchFn = Arc::new(move || -> Box<dyn BatchFn> {
            Box::new(Lines {
                command: command.clone(),
                given: Vec::new(),
                made: Vec::new(),
                at: 0,
            })
        });
        let made = vec![Column::new(made, Type::String)];
        self.batches(&name, &[column], made, size, make)
    }
}

/// A program at the hands of one worker.
struct Lines {
    command: Command,
    given: Vec<u8>,
    made: Vec<u8>,
    /// Where in that the lines begin that have not been handed over.
    at: usize,
}

impl BatchFn for Lines {
    fn call(&mut self, batch: &Gathered, _: bool) -> std::result::Result<(), Refused> {
        self.given.clear();
        for at in 0..batch.len() {
            let line = |values: &[Value<'_>]| {
                if values[0].is_null() {
                    return Err(
                        failed("it is null, and programs are given lines").kind(ErrorKind::Input)
                    );
                }
                let line = values[0].bytes();
                if line.contains(&b'\n') {
                    return Err(failed("it has a newline, and programs are given lines")
                        .kind(ErrorKind::Input));
                }
                self.given.extend_from_slice(line);
                self.given.push(b'\n');
                Ok(())
            };
            batch
                .with(&[Type::String], at, line)
                .map_err(|error| (at, Box::new(error)))?;
        }
        (self.made, self.at) = (self.command.filter(&self.given)?, 0);
        Ok(())
    }

    fn rows(&mut self, sink: RowSink<'_>, is_full: &dyn Fn() -> bool) -> Result<bool> {
        while self.at < self.made.len() {
            if is_full() {
                return Ok(false);
            }
            let rest = &self.made[self.at..];
            let (line, with_end) = match memchr::memchr(b'\n', rest) {
                Some(end) => (&rest[..end], end + 1),
                None => (rest, rest.len()),
            };
            sink(0, &[Value::Bytes(line)])?;
            self.at += with_end;
        }
        Ok(true)
    }

    fn finish(&mut self, _: bool) -> Result<()> {
        self.made.clear();
        self.at = 0;
        Ok(())
    }
}

pub(super) fn failed(cause: impl Into<String>) -> Error {
    Error::new(ErrorKind::Function, "running a program over records", cause)
}
